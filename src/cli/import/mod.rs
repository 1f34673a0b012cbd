//! `ringway import`: the description of an API becomes tools of the running server.
//!
//! ```text
//! source   the description's documents: a file, a directory, an archive or a URL
//! demo     the API of quickstart
//! report   what becomes of every operation, for people
//! ```
//!
//! What is printed is what is done: the plan is made for one version of the catalog and applied to
//! that one alone, in one transaction.

pub(super) mod demo;
mod report;
pub(super) mod source;

use std::collections::HashMap;

use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Value, json};

use self::source::{Reading, Source};
use super::{
    AdminArguments, AuthorArguments, CommandError, admin_client::AdminClient, difference::Told,
    output,
};
use crate::{
    catalog::{ConnectionId, Entities, TenantId, ToolsetId},
    http::Method,
    import::{self, Consent, Detected, Options, Plan, Report, Selection, Target},
    mapping::SoapVersion,
    settings::{self, Settings},
};

/// What the description is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// OpenAPI 3.0 and 3.1, Swagger 2.0; JSON or YAML
    Openapi,
    /// WSDL 1.1
    Wsdl,
}

impl Format {
    /// What a document seems to be written in.
    fn of(detected: Detected) -> Option<Self> {
        match detected {
            Detected::OpenApi => Some(Self::Openapi),
            Detected::Wsdl => Some(Self::Wsdl),
            Detected::Zip => None,
        }
    }

    /// As the command line has it.
    fn word(self) -> &'static str {
        match self {
            Self::Openapi => "openapi",
            Self::Wsdl => "wsdl",
        }
    }
}

/// Arguments of `ringway import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "New tools are not published unless --publish says so: look at them first. \
                        Published tools change with --publish only, and where that breaks who calls \
                        them, with --accept-breaking besides. What you changed yourself stays."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Arguments {
    /// What the description is written in
    #[arg(value_enum)]
    format: Format,
    /// The description: a file, a directory or zip archive with its files, or an http(s) URL
    source: String,
    /// The toolset the tools belong to; it is made where it is not there
    #[arg(long, value_parser = toolset)]
    toolset: ToolsetId,
    /// Whose toolset it is [default: the only tenant there is]
    #[arg(long, value_parser = tenant)]
    tenant: Option<TenantId>,
    /// The connection of the toolset; it is made where it is not there [default: called like the
    /// toolset]
    #[arg(long, value_parser = connection)]
    connection: Option<ConnectionId>,
    /// Where the API is, whatever the description says
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Which of several servers the description names: its place from 0, URL or description
    #[arg(long, value_name = "SERVER", conflicts_with = "base_url")]
    server: Option<String>,
    /// The SOAP version of the calls, where a WSDL has both [default: 1.1]
    #[arg(long, value_name = "VERSION", value_parser = soap_version)]
    soap_version: Option<SoapVersion>,
    /// Import only these operations: tag:NAME, a key such as "GET /pets*", or a name; * stands for
    /// any text. May be repeated
    #[arg(long, value_name = "PATTERN")]
    select: Vec<String>,
    /// The description within a directory or archive that has several
    #[arg(long, value_name = "PATH")]
    root: Option<String>,
    /// Let a description that is a file refer to documents on the network
    #[arg(long)]
    allow_remote: bool,
    /// Let the host of the URL be one whose name leads to addresses that are not public
    #[arg(long)]
    allow_private: bool,
    /// Publish new tools, and change published ones
    #[arg(long)]
    publish: bool,
    /// Change published tools even where that breaks who calls them, and unpublish those whose
    /// operation is gone
    #[arg(long, requires = "publish")]
    accept_breaking: bool,
    /// Tell what would be done and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    author: AuthorArguments,
    #[command(flatten)]
    admin: AdminArguments,
}

fn soap_version(text: &str) -> Result<SoapVersion, String> {
    match text {
        "1.1" => Ok(SoapVersion::V1_1),
        "1.2" => Ok(SoapVersion::V1_2),
        _ => Err("expected 1.1 or 1.2".to_owned()),
    }
}

fn toolset(text: &str) -> Result<ToolsetId, String> {
    ToolsetId::new(text).map_err(|error| error.to_string())
}

fn tenant(text: &str) -> Result<TenantId, String> {
    TenantId::new(text).map_err(|error| error.to_string())
}

fn connection(text: &str) -> Result<ConnectionId, String> {
    ConnectionId::new(text).map_err(|error| error.to_string())
}

#[derive(Debug, Deserialize)]
struct Exported {
    rows: HashMap<String, String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let selection = Selection::parse(&arguments.select)
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    let client = AdminClient::find(&arguments.admin)?;
    let (before, published) = catalog_of(&client)?;
    let tenant = tenant_of(arguments, &published)?;
    let allowances = published.tenants.iter().find(|entry| entry.value.id == tenant);
    let allowances = allowances.map(|entry| entry.value.egress_allowances.clone());
    let config = arguments.admin.config.as_deref();
    let settings = Settings::load(config, settings::environment().into_iter())?;
    let reading = Reading {
        format: Some(arguments.format),
        options: Options {
            base_url: arguments.base_url.clone(),
            soap_version: arguments.soap_version,
            server: arguments.server.clone(),
        },
        allow_remote: arguments.allow_remote,
        allow_private: arguments.allow_private,
        tenant: tenant.as_str(),
        allowances: allowances.unwrap_or_default(),
        settings: &settings.downstream,
    };
    let source = Source::open(&arguments.source, arguments.root.as_deref())?;
    let description = reading.read(source)?;
    let target = Target {
        tenant,
        toolset: arguments.toolset.clone(),
        connection: arguments.connection.clone(),
        base_url: arguments.base_url.clone(),
        origin: format!("import of {}", source::shown(&arguments.source)),
    };
    let consent =
        Consent { publish: arguments.publish, accept_breaking: arguments.accept_breaking };
    let plan = import::plan(&published, &description, &target, &selection, consent)
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    let comment = match arguments.author.comment.as_str() {
        "" => target.origin.as_str(),
        comment => comment,
    };
    let applying = Applying { author: &arguments.author, comment, dry_run: arguments.dry_run };
    let done = carry_out(&client, &applying, before, &plan)?;
    tell(arguments, &plan.report, &done)
}

/// The catalog and what is told of it, its version above all. Secrets are masked: none is needed,
/// and none goes through here.
fn catalog_of(client: &AdminClient) -> Result<(Told, Entities), CommandError> {
    let nothing = json!({ "rows": {}, "dry_run": true });
    let told: Told = client.json(Method::Post, "/apply", Some(&nothing))?;
    let exported: Exported = client.json(Method::Get, "/export?mask=true", None)?;
    let entities = Entities::from_rows(exported.rows).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        CommandError::Usage(lines.join("\n"))
    })?;
    Ok((told, entities))
}

fn tenant_of(arguments: &Arguments, published: &Entities) -> Result<TenantId, CommandError> {
    match (&arguments.tenant, published.tenants.as_slice()) {
        (Some(tenant), _) => Ok(tenant.clone()),
        (None, [only]) => Ok(only.value.id.clone()),
        (None, tenants) => {
            let mut ids: Vec<&str> = tenants.iter().map(|entry| entry.value.id.as_str()).collect();
            ids.sort_unstable();
            let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            Err(CommandError::Usage(format!(
                "name the tenant with --tenant; there are: {}",
                output::tame(&ids)
            )))
        }
    }
}

/// In whose name a plan is carried out, and whether it really is.
#[derive(Debug)]
struct Applying<'a> {
    author: &'a AuthorArguments,
    comment: &'a str,
    dry_run: bool,
}

/// Applies the plan to the catalog it was made for, which `before` tells of; a dry run lets the
/// server judge it.
fn carry_out(
    client: &AdminClient,
    applying: &Applying<'_>,
    before: Told,
    plan: &Plan,
) -> Result<Told, CommandError> {
    if plan.entities.is_empty() {
        return Ok(before);
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let rows: HashMap<String, String> =
        plan.entities.rows().into_iter().map(|(key, value)| (text(key), text(value))).collect();
    let body = json!({
        "rows": rows,
        "dry_run": applying.dry_run,
        "expected_version": before.version,
        "comment": applying.comment,
    });
    client.json_by(applying.author, Method::Post, "/apply", Some(&body))
}

/// Prints the report; an import that made no tool is a failure.
fn tell(arguments: &Arguments, report: &Report, done: &Told) -> Result<(), CommandError> {
    if arguments.json {
        let mut body = serde_json::to_value(report).unwrap_or(Value::Null);
        if let Some(body) = body.as_object_mut() {
            body.insert("dry_run".to_owned(), arguments.dry_run.into());
            body.insert("version".to_owned(), done.version.into());
            body.insert("remarks".to_owned(), json!(done.remarks));
            body.insert("warnings".to_owned(), json!(done.warnings));
        }
        output::text(&format!("{body:#}\n"));
    } else {
        report::print(report);
        done.print_remarks();
        output::line(match (arguments.dry_run, !done.changes.is_empty()) {
            (true, _) => "Nothing was changed (--dry-run).".to_owned(),
            (false, true) => format!("The catalog is at version {}.", done.version),
            (false, false) => {
                format!("Nothing to change; the catalog is at version {}.", done.version)
            }
        });
    }
    if report.counts.tools() == 0 { Err(CommandError::NothingImported) } else { Ok(()) }
}
