//! `ringway quickstart`: one command from nothing to a working MCP endpoint.
//!
//! It has a data directory of its own, a demo tenant with one client application and one key. The
//! key is kept beside the data, so that clients configured once go on working.

use std::{
    fmt::Write as _,
    fs,
    io::Write,
    net::{IpAddr, SocketAddr},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    CommandError,
    admin_client::AdminClient,
    check,
    import::{
        demo::{DemoApi, Owner},
        source::{self, Kind},
    },
    output,
};
use crate::{
    catalog::{self, Endpoint, Entities},
    downstream::Egress,
    identity::{ApiKey, KEY_RANDOM_BYTES, KeyRecord},
    rt::Signals,
    server::{self, Running, Start},
    settings::{self, Network, Settings},
};

/// Arguments of `ringway quickstart`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// What the demo client application gets: the description of an API (OpenAPI, Swagger or WSDL;
    /// a file, directory, zip archive or URL), or a catalog file (TOML, YAML or JSON)
    #[arg(long, value_name = "SOURCE")]
    api: Option<String>,
    /// Where the API is, whatever its description says
    #[arg(long, value_name = "URL", requires = "api")]
    base_url: Option<String>,
    /// Data directory [default: ringway/quickstart in the user's data directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8420", value_parser = address)]
    listen: SocketAddr,
}

/// The demo's declarations: what every catalog file looks like.
const DEMO_CATALOG: &str = include_str!("../../config/quickstart.toml");
const TENANT: &str = "demo";
const CLIENT_APPLICATION: &str = "assistant";
const KEY_LABEL: &str = "quickstart";

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an IP address and a port, as in 127.0.0.1:9000".to_owned())
}

/// Where quickstart keeps its data: `ringway/quickstart` below `XDG_DATA_HOME`, or below
/// `~/.local/share`.
pub(super) fn default_data_directory() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|at| at.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|at| at.join("ringway/quickstart"))
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let data = arguments.data.clone().or_else(default_data_directory).ok_or_else(|| {
        CommandError::Usage("no home directory is set; name a data directory with --data".into())
    })?;
    let mut settings = Settings::load(None, settings::environment().into_iter())?;
    let (entities, api) = declared(arguments, &settings)?;
    make_private(&data)
        .map_err(|source| CommandError::DataDirectory { path: data.clone(), source })?;
    let key_file = data.join("quickstart.key");
    let key = demo_key(&key_file)?;
    let record = demo_record(&key)?;
    settings.runtime.data_directory.clone_from(&data);
    settings.listen.runtime = arguments.listen;
    settings.listen.admin_socket = None;
    let signals = Signals::install().map_err(server::StartError::Signals)?;
    let running = server::start(Start { settings, entities: Some(entities), keys: vec![record] })?;
    let key = usable_key(&running, key, &key_file)?;
    if let Some(api) = api {
        let report = api.publish(&AdminClient::at(running.admin_socket()))?;
        api.introduce(&report);
    }
    introduce(&running, key.text(), &data, arguments.data.is_some());
    running.run(signals)?;
    Ok(())
}

/// Makes the data directory, for this user alone.
fn make_private(data: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data)
}

/// What is there before the start: the demo's entities with those of a catalog file, and an API that
/// was read from its description.
fn declared(
    arguments: &Arguments,
    settings: &Settings,
) -> Result<(Entities, Option<DemoApi>), CommandError> {
    let Some(api) = &arguments.api else { return Ok((entities(None)?, None)) };
    if source::kind_of(api)? == Kind::Other {
        if arguments.base_url.is_some() {
            return Err(CommandError::Usage(
                "--base-url is for the description of an API; a catalog file says it itself".into(),
            ));
        }
        return Ok((entities(Some(Path::new(api)))?, None));
    }
    let mut entities = entities(None)?;
    let owner = Owner { tenant: TENANT, client_application: CLIENT_APPLICATION };
    let base_url = arguments.base_url.as_deref();
    let api = DemoApi::read(api, base_url, &entities, owner, &settings.downstream)?;
    for entry in &mut entities.tenants {
        Arc::make_mut(&mut entry.value).egress_allowances.clone_from(&api.allowances);
    }
    Ok((entities, Some(api)))
}

/// The demo's entities, with those of the file; what the file leaves unassigned of the demo tenant
/// is assigned to the demo client application.
fn entities(api: Option<&Path>) -> Result<Entities, CommandError> {
    let (mut entities, problems) =
        catalog::files::read_text(Path::new("quickstart.toml"), DEMO_CATALOG);
    if !problems.is_empty() {
        return Err(CommandError::problems(&problems));
    }
    if let Some(api) = api {
        let declared = check::read_catalog(&[api.to_owned()])?;
        if let Some(toolset) = declared.toolsets.iter().find(|t| t.value.tenant.as_str() != TENANT)
        {
            return Err(CommandError::Usage(format!(
                "{}: quickstart serves the tenant `{TENANT}` alone, and toolset `{}` belongs to \
                 `{}`: write tenant = \"{TENANT}\", or run `ringway serve` with a catalog of your own",
                api.display(),
                toolset.value.id,
                toolset.value.tenant
            )));
        }
        entities.overlay(declared);
        assign_the_rest(&mut entities)?;
        allow_named(&mut entities);
    }
    let problems = entities.check();
    if problems.is_empty() { Ok(entities) } else { Err(CommandError::problems(&problems)) }
}

/// Whoever names an API on this machine or in a network of its own wants it to be reached: the demo
/// tenant may, and nothing else that is not public.
fn allow_named(entities: &mut Entities) {
    let mut named: Vec<Network> = Vec::new();
    for entry in entities.connections.iter().filter(|c| c.value.tenant.as_str() == TENANT) {
        let Ok(endpoint) = Endpoint::parse(&entry.value.base_url) else { continue };
        let host = &*endpoint.host;
        let addresses = if host == "localhost" { &["127.0.0.1", "::1"][..] } else { &[host] };
        let addresses = addresses.iter().filter_map(|text| text.parse().ok());
        for address in addresses.filter(|one: &IpAddr| Egress::default().judge(&[], *one).is_err())
        {
            named.extend(address.to_string().parse::<Network>());
        }
    }
    let demo = entities.tenants.iter_mut().find(|entry| entry.value.id.as_str() == TENANT);
    let Some(demo) = demo else { return };
    let is_new = |network: &Network| {
        let allowances = &demo.value.egress_allowances;
        !allowances
            .iter()
            .any(|known| known.contains(network.address()) && known.prefix() <= network.prefix())
    };
    named.retain(is_new);
    named.sort_unstable_by_key(ToString::to_string);
    named.dedup();
    if !named.is_empty() {
        Arc::make_mut(&mut demo.value).egress_allowances.extend(named);
    }
}

fn assign_the_rest(entities: &mut Entities) -> Result<(), CommandError> {
    let mut declarations = String::new();
    for toolset in &entities.toolsets {
        let toolset = &toolset.value;
        let assigned = entities
            .assignments
            .iter()
            .any(|entry| entry.value.tenant == toolset.tenant && entry.value.toolset == toolset.id);
        if toolset.tenant.as_str() == TENANT && !assigned {
            // Ids hold no quotes or backslashes.
            let _ = writeln!(
                declarations,
                "[[assignment]]\ntenant = \"{TENANT}\"\nclient_application = \
                 \"{CLIENT_APPLICATION}\"\ntoolset = \"{}\"",
                toolset.id
            );
        }
    }
    let (assignments, problems) =
        catalog::files::read_text(Path::new("quickstart.toml"), &declarations);
    entities.overlay(assignments);
    if problems.is_empty() { Ok(()) } else { Err(CommandError::problems(&problems)) }
}

/// The key of earlier runs, or a new one.
fn demo_key(path: &Path) -> Result<ApiKey, CommandError> {
    let file_error = |source| CommandError::File { path: path.to_owned(), source };
    match fs::read_to_string(path) {
        Ok(text) => {
            return ApiKey::from_text(text.trim()).ok_or_else(|| {
                CommandError::Usage(format!(
                    "{} holds no API key; remove the file and a new key is made",
                    path.display()
                ))
            });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(file_error(error)),
    }
    new_key(path)
}

/// Makes a key and keeps its text beside the data.
fn new_key(path: &Path) -> Result<ApiKey, CommandError> {
    let file_error = |source| CommandError::File { path: path.to_owned(), source };
    let mut random = [0; KEY_RANDOM_BYTES];
    server::random_bytes(&mut random);
    let key = ApiKey::generate(random);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(file_error)?;
    file.write_all(key.text().as_bytes()).map_err(file_error)?;
    Ok(key)
}

/// The key, or a new one in its place where it was revoked.
fn usable_key(running: &Running, key: ApiKey, path: &Path) -> Result<ApiKey, CommandError> {
    if running.is_key_good(key.id()) {
        return Ok(key);
    }
    output::remark("The key of earlier runs was revoked; here is a new one.");
    let key = new_key(path)?;
    running.add_key(demo_record(&key)?).map_err(server::StartError::from)?;
    Ok(key)
}

fn demo_record(key: &ApiKey) -> Result<KeyRecord, CommandError> {
    server::key_record(key, TENANT, CLIENT_APPLICATION, KEY_LABEL, None)
        .map_err(CommandError::Usage)
}

/// Prints how to connect: the URL, the key, a curl line, and settings for common clients.
fn introduce(running: &Running, key: &str, data: &Path, names_data: bool) {
    let url = format!("{}/runtime/{TENANT}/{CLIENT_APPLICATION}/mcp", running.base_url());
    // The other commands find the usual data directory by themselves.
    let admin = if names_data {
        format!("\n(each with --admin {})", running.admin_socket().display())
    } else {
        String::new()
    };
    output::line(format_args!(
        r#"Ringway is running. Its data is in {data}.

  MCP endpoint   {url}
  API key        {key}

Try it:

  curl -s {url} \
    -H 'Authorization: Bearer {key}' \
    -H 'Content-Type: application/json' \
    -d '{{"jsonrpc":"2.0","id":1,"method":"tools/list"}}'

Claude Code:

  claude mcp add --transport http ringway {url} --header "Authorization: Bearer {key}"

Cursor, VS Code and others (mcp.json; VS Code calls the first key "servers"):

  {{
    "mcpServers": {{
      "ringway": {{
        "type": "http",
        "url": "{url}",
        "headers": {{ "Authorization": "Bearer {key}" }}
      }}
    }}
  }}

From another terminal: ringway tools, ringway call runtime_status, ringway status.{admin}
Stop with Ctrl-C."#,
        data = data.display()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_file_names_is_allowed() {
        let allowed = |base_url: &str, more: &str| {
            let text = format!(
                "[[tenant]]\nid = \"demo\"\n{more}\n[[connection]]\ntenant = \"demo\"\nid = \"api\"\n\
                 base_url = \"{base_url}\"\n"
            );
            let (mut entities, problems) = catalog::files::read_text(Path::new("a.toml"), &text);
            assert!(problems.is_empty(), "{problems:?}");
            allow_named(&mut entities);
            let allowances = &entities.tenants[0].value.egress_allowances;
            allowances.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(allowed("http://127.0.0.1:8000", ""), ["127.0.0.1/32"]);
        assert_eq!(allowed("http://localhost:8000/v1", ""), ["127.0.0.1/32", "::1/128"]);
        assert_eq!(allowed("http://[fd00::7]/", ""), ["fd00::7/128"]);
        for elsewhere in ["https://api.example.com", "https://1.1.1.1"] {
            assert!(allowed(elsewhere, "").is_empty());
        }
        let own = "egress_allowances = [\"127.0.0.0/8\"]";
        assert_eq!(allowed("http://127.0.0.1:8000", own), ["127.0.0.0/8"]);
    }
}
