//! What is measured: the release binary with a catalog of its own, and the bare server beside it,
//! both on the same core. Everything they write goes into a folder that ends with the run.

use crate::process::{Server, free_address, pause};
use crate::request::{BOTH, Exchange, Request, Target, rpc};
use crate::upstream::{RELAYS, Relay};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const RELAYS_WITHIN: Duration = Duration::from_secs(20);
pub(crate) const TENANT: &str = "bench";
/// Sees the tools that are called: `echo` and the appliance's own.
pub(crate) const CALLS: &str = "calls";
/// Sees the listed tools and no more.
pub(crate) const LISTS: &str = "lists";

/// What a Ringway offers and how it is governed.
#[derive(Clone, Copy)]
pub(crate) struct Offer {
    /// Tools of the client application [`LISTS`].
    pub(crate) listed: usize,
    pub(crate) governance: Governance,
    /// Whether the client application [`CALLS`] sees the tools of upstream MCP servers as well.
    pub(crate) relays: bool,
}

/// What stands between a call and its tool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Governance {
    /// What a fresh installation has: the audit.
    Shipped,
    /// Neither policy nor limits nor audit.
    Off,
    /// Policies of client application and assignment, limits of every level, and the audit.
    Full,
}

impl Offer {
    pub(crate) const FIFTY: Self =
        Self { listed: 50, governance: Governance::Shipped, relays: false };
}

pub(crate) struct Setup {
    pub(crate) binary: PathBuf,
    pub(crate) bare: PathBuf,
    pub(crate) server_cpu: usize,
    pub(crate) api: SocketAddr,
    pub(crate) folder: tempfile::TempDir,
}

/// A running Ringway and the two client applications the cases use.
pub(crate) struct Ringway {
    pub(crate) server: Server,
    pub(crate) calls: Target,
    pub(crate) lists: Target,
    /// The id of the key that `calls` has.
    calls_key: String,
    listed: usize,
    admin: PathBuf,
}

pub(crate) struct Bare {
    pub(crate) server: Server,
    pub(crate) answers: Target,
    pub(crate) hops: Target,
    pub(crate) soap_hops: Target,
    pub(crate) relays: Target,
    notify: Target,
}

impl Setup {
    pub(crate) fn start_ringway(&self, name: &str, offer: Offer) -> io::Result<Ringway> {
        let folder = self.folder.path().join(name);
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        let catalog = folder.join("catalog.toml");
        fs::write(&catalog, catalog_text(self.api, offer))?;
        let address = free_address()?;
        let settings = folder.join("ringway.toml");
        fs::write(&settings, settings_text(address, &data, &catalog, offer.governance))?;
        let data_variable = ("RINGWAY_RUNTIME__DATA_DIRECTORY", data.as_os_str());
        let server = Server::start(
            self.server_cpu,
            &self.binary,
            &[OsStr::new("serve"), OsStr::new("--config"), settings.as_os_str()],
            &[data_variable],
            address,
            &folder.join("log"),
        )?;
        let target = |client: &str, key: &str| {
            Target::new(address, &format!("/runtime/{TENANT}/{client}/mcp"), Some(key))
        };
        let calls_key = self.new_key(CALLS, data_variable)?;
        let lists_key = self.new_key(LISTS, data_variable)?;
        Ok(Ringway {
            calls: target(CALLS, &calls_key)?,
            lists: target(LISTS, &lists_key)?,
            calls_key: key_id(&calls_key)?,
            listed: offer.listed,
            server,
            admin: data.join("admin.sock"),
        })
    }

    fn new_key(&self, client: &str, variable: (&str, &OsStr)) -> io::Result<String> {
        let client = format!("{TENANT}/{client}");
        let made = Command::new(&self.binary)
            .args(["key", "create", "--client", &client])
            .env(variable.0, variable.1)
            .output()?;
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr).into_owned();
            return Err(io::Error::other(format!("ringway key create: {why}")));
        }
        Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
    }

    /// The bare server answers `tools/list` with the very bytes Ringway answers it with.
    pub(crate) fn start_bare(&self, name: &str, tool_list: &[u8]) -> io::Result<Bare> {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder)?;
        let list = folder.join("tools.json");
        fs::write(&list, tool_list)?;
        let address = free_address()?;
        let (listen, upstream) = (address.to_string(), self.api.to_string());
        let server = Server::start(
            self.server_cpu,
            &self.bare,
            &[OsStr::new(&listen), OsStr::new(&upstream), list.as_os_str()],
            &[],
            address,
            &folder.join("log"),
        )?;
        let target = |path: &str| Target::new(address, path, None);
        Ok(Bare {
            server,
            answers: target("/mcp")?,
            hops: target("/hop")?,
            soap_hops: target("/soap")?,
            relays: target("/relay")?,
            notify: target("/notify")?,
        })
    }
}

impl Ringway {
    /// The result object of `tools/list`, checked to hold as many tools as it should.
    pub(crate) fn tool_list(&self) -> io::Result<Vec<u8>> {
        let answer = list(&self.lists)?;
        let listed = answer["result"]["tools"].as_array().map_or(0, Vec::len);
        if listed != self.listed {
            return Err(io::Error::other(format!("{listed} tools, not {}", self.listed)));
        }
        Ok(answer["result"].to_string().into_bytes())
    }

    /// Until the tools of the upstream MCP servers are there, which have to be asked for them.
    pub(crate) fn wait_for_relays(&self) -> io::Result<()> {
        let end = Instant::now() + RELAYS_WITHIN;
        loop {
            let answer = list(&self.calls)?;
            let tools = answer["result"]["tools"].as_array().into_iter().flatten();
            let names: Vec<_> = tools.filter_map(|tool| tool["name"].as_str()).collect();
            if RELAYS.iter().all(|relay| names.contains(&relay.tool)) {
                return Ok(());
            }
            if Instant::now() > end {
                let text = format!("the tools of upstream MCP servers are not in {names:?}");
                return Err(io::Error::other(text));
            }
            pause(50);
        }
    }

    /// Has every standing stream told that its tool list changed.
    pub(crate) fn notify(&self) -> io::Result<()> {
        self.operate("POST /notify").map(drop)
    }

    /// How many records the audit has written.
    pub(crate) fn audit_records(&self) -> io::Result<u64> {
        let metrics = self.operate("GET /metrics")?;
        let records = metrics.lines().find_map(|line| {
            line.strip_prefix("ringway_audit_records_total ")?.trim().parse().ok()
        });
        records.ok_or_else(|| io::Error::other("the metrics do not count audit records"))
    }

    /// The limits of calls of `echo` of which something is used up, each as level and class.
    pub(crate) fn used_limits(&self) -> io::Result<BTreeSet<String>> {
        let path = format!("/explain?client={TENANT}/{CALLS}&tool=echo&key={}", self.calls_key);
        let explained: serde_json::Value =
            serde_json::from_str(&self.operate(&format!("GET {path}"))?)?;
        let limits = explained["limits"].as_array().into_iter().flatten();
        let used = limits.filter(|limit| limit["remaining"].as_u64() < limit["burst"].as_u64());
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let name = |limit: &serde_json::Value| text(&limit["level"]) + " " + &text(&limit["class"]);
        Ok(used.map(name).collect())
    }

    /// Asks the admin plane; gives the body of a good answer.
    fn operate(&self, what: &str) -> io::Result<String> {
        let mut admin = UnixStream::connect(&self.admin)?;
        admin.set_read_timeout(Some(Duration::from_secs(30)))?;
        let head = "Host: localhost\r\nContent-Length: 0\r\nConnection: close";
        admin.write_all(format!("{what} HTTP/1.1\r\n{head}\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        admin.read_to_string(&mut answer)?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 2") => Ok(body.to_owned()),
            _ => Err(io::Error::other(format!("{what} was answered {answer}"))),
        }
    }
}

impl Bare {
    pub(crate) fn notify(&self) -> io::Result<()> {
        let request = Request::post(&self.notify, BOTH, None, "");
        Exchange::new(&self.notify)?.ask(&request).map(drop)
    }
}

/// The answer to `tools/list`.
fn list(target: &Target) -> io::Result<serde_json::Value> {
    let mut exchange = Exchange::new(target)?;
    let session = exchange.handshake()?;
    let request = Request::post(target, BOTH, session.as_deref(), &rpc("tools/list", "{}"));
    Ok(serde_json::from_slice(exchange.ask(&request)?.body())?)
}

/// The id in a key, `rw_ID_SECRET`.
fn key_id(key: &str) -> io::Result<String> {
    let id = key.split('_').nth(1);
    id.map(str::to_owned).ok_or_else(|| io::Error::other("a key without an id"))
}

fn settings_text(
    address: SocketAddr,
    data: &Path,
    catalog: &Path,
    governance: Governance,
) -> String {
    let (data, catalog) = (data.display(), catalog.display());
    let audit = governance != Governance::Off;
    format!(
        r#"[listen]
runtime = "{address}"
backlog = 8192

[runtime]
data_directory = "{data}"
catalog = ["{catalog}"]

[runtime.mcp.session]
per_tenant_max = 1000000

# A client that takes both kinds gets plain JSON however busy the machine is.
[runtime.mcp.sse]
sse_upgrade_after_ms = 60000

[audit]
enabled = {audit}

[telemetry]
filter = "warn"
"#
    )
}

fn catalog_text(api: SocketAddr, offer: Offer) -> String {
    let is_governed = offer.governance == Governance::Full;
    let mut text = format!(
        r#"[[tenant]]
id = "{TENANT}"
egress_allowances = ["127.0.0.0/8", "::1/128"]

[[connection]]
tenant = "{TENANT}"
id = "api"
base_url = "http://{api}"
"#
    );
    let limits = CLASSES.map(|class| format!("{class} = {LIMIT}")).join(", ");
    let limits = format!("{{ {limits} }}");
    if is_governed {
        text = text.replacen("id =", &format!("limits = {limits}\nid ="), 1);
    }
    for (client, toolsets) in
        [(CALLS, &["echo", "appliance", "service"][..]), (LISTS, &["listed"][..])]
    {
        text += &format!("\n[[client_application]]\ntenant = \"{TENANT}\"\nid = \"{client}\"\n");
        if is_governed {
            text += &format!("limits = {limits}\ncaller_limits = {limits}\n{CLIENT_POLICY}");
        }
        for toolset in toolsets {
            let kind = match *toolset {
                "appliance" => "kind = \"builtin\"",
                "service" => "kind = \"soap\"\nconnection = \"api\"",
                _ => "kind = \"rest\"\nconnection = \"api\"",
            };
            let types = if *toolset == "service" { SOAP_TYPES } else { "" };
            text += &format!(
                "\n[[toolset]]\ntenant = \"{TENANT}\"\nid = \"{toolset}\"\n{kind}\n{types}\
                \n[[assignment]]\ntenant = \"{TENANT}\"\nclient_application = \"{client}\"\n\
                toolset = \"{toolset}\"\nenabled = true\n"
            );
            if is_governed {
                text += ASSIGNMENT_POLICY;
            }
        }
    }
    if offer.relays {
        text += &relays_text(api);
    }
    text += &tool("echo", "echo", "Sends a message to the API and returns what it says.");
    if is_governed {
        text += &format!("limit = {LIMIT}\n");
    }
    let say = tool("service", "say", "Sends a message to the service and returns what it says.");
    text += &say.replace("path = \"/echo\"", "path = \"/\"");
    text += SOAP_MESSAGES;
    for number in 0..offer.listed {
        let about = format!("Tool number {number}: looks something up and returns it.");
        text += &tool("listed", &format!("tool_{number:02}"), &about);
    }
    text
}

/// The upstream MCP servers, for the client application [`CALLS`].
fn relays_text(api: SocketAddr) -> String {
    let one = |relay: &Relay| {
        let (path, id) = (relay.path, relay.tool);
        format!(
            r#"
[[connection]]
tenant = "{TENANT}"
id = "{id}"
base_url = "http://{api}{path}"

[[toolset]]
tenant = "{TENANT}"
id = "{id}"
kind = "mcp"
connection = "{id}"
upstream = {{ definitions = "trust" }}

[[assignment]]
tenant = "{TENANT}"
client_application = "{CALLS}"
toolset = "{id}"
"#
        )
    };
    RELAYS.iter().map(one).collect()
}

/// A limit nobody reaches in a few minutes, though it is used up faster than it grows back.
const LIMIT: &str = "{ count = 10000000, seconds = 3600 }";
/// The classes that calls of a tool which changes something come under.
pub(crate) const CLASSES: [&str; 3] = ["requests", "mutations", "tool_calls"];
/// Rules that all have to be looked at.
const CLIENT_POLICY: &str = r#"
policy = { rules = [
    { effect = "deny", tools = ["*delete*"] },
    { effect = "deny", side_effects = ["destructive"] },
    { effect = "allow", required_trust = "low", windows = [{ from = "00:00", to = "12:00" }, { from = "12:00", to = "00:00" }] },
] }
"#;
const ASSIGNMENT_POLICY: &str = r#"
policy = { rules = [{ effect = "deny", tools = ["nothing/*"] }, { effect = "allow" }] }
"#;

/// What follows the toolset of the SOAP service: its types.
const SOAP_TYPES: &str = r#"
[toolset.xml_types."{urn:say}Say"]
content = [
    { element = { name = "{urn:say}message", member = "message", holds = { value = "string" }, required = true } },
    { element = { name = "{urn:say}count", member = "count", holds = { value = "integer" } } },
    { element = { name = "{urn:say}tags", member = "tags", holds = { value = "string" }, repeats = true } },
]
"#;
/// What follows its tool: messages that are alike, so that an API which echoes is such a service.
const SOAP_MESSAGES: &str = r#"
[tool.soap]
version = "1.1"
action = "urn:say"
[tool.soap.input.body.wrapped]
name = "{urn:say}say"
member = "say"
holds = { type = "{urn:say}Say" }
[tool.soap.output.body.wrapped]
name = "{urn:say}say"
member = "say"
holds = { type = "{urn:say}Say" }
"#;

/// One tool of a toolset as a catalog file has it.
pub(crate) fn tool(toolset: &str, name: &str, description: &str) -> String {
    format!(
        r#"
[[tool]]
tenant = "{TENANT}"
toolset = "{toolset}"
name = "{name}"
description = "{description}"
method = "POST"
path = "/echo"
fields = [
    {{ source_field_name = "message", location = "body", type = "string", required = true, description = "What to say" }},
    {{ source_field_name = "count", location = "body", type = "integer", description = "How often" }},
    {{ source_field_name = "tags", location = "body", type = "array", array_item_type = "string" }},
]
"#
    )
}
