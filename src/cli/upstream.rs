//! `ringway upstream`: the MCP servers behind toolsets, and what becomes of their definitions.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AdminArguments, AuthorArguments, CommandError, admin_client::AdminClient, output};
use crate::http::Method;

/// Arguments of `ringway upstream`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: UpstreamCommand,
}

#[derive(Debug, Subcommand)]
enum UpstreamCommand {
    /// List the servers and how they stand
    List {
        /// Only those of this tenant
        #[arg(long)]
        tenant: Option<String>,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: AdminArguments,
    },
    /// Show one of them, and what of it waits: how it differs, what is remarkable about it
    Show {
        /// Its toolset
        #[arg(value_name = "TENANT/TOOLSET", value_parser = server)]
        server: Server,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: AdminArguments,
    },
    /// Accept definitions as they were shown
    Approve(Decision),
    /// Refuse definitions: they are not served, and do not wait
    Refuse(Decision),
    /// Ask a server now what it offers, and show it
    Refresh {
        /// Its toolset
        #[arg(value_name = "TENANT/TOOLSET", value_parser = server)]
        server: Server,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        admin: AdminArguments,
    },
}

#[derive(Debug, clap::Args)]
struct Decision {
    /// Their server's toolset
    #[arg(value_name = "TENANT/TOOLSET", value_parser = server)]
    server: Server,
    /// The definitions, by their hashes or the beginning of them, as `upstream show` tells them
    #[arg(value_name = "HASH", required_unless_present = "all", conflicts_with = "all")]
    hashes: Vec<String>,
    /// Everything that waits, if it is still what `upstream show` told this tag for
    #[arg(long, value_name = "TAG")]
    all: Option<String>,
    /// Print how the server stands then as JSON
    #[arg(long)]
    json: bool,
    /// Who decides, besides the user who runs the command
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    #[command(flatten)]
    admin: AdminArguments,
}

/// A server, by its tenant and its toolset.
#[derive(Debug, Clone)]
struct Server {
    tenant: String,
    toolset: String,
}

fn server(text: &str) -> Result<Server, String> {
    let parts = text.split_once('/').filter(|(tenant, toolset)| {
        !tenant.is_empty() && !toolset.is_empty() && !toolset.contains('/')
    });
    let (tenant, toolset) =
        parts.ok_or_else(|| format!("{text:?} is not a toolset as TENANT/TOOLSET"))?;
    Ok(Server { tenant: encoded(tenant), toolset: encoded(toolset) })
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

impl Server {
    fn target(&self, more: &str) -> String {
        format!("/upstreams/{}/{}{more}", self.tenant, self.toolset)
    }
}

#[derive(Debug, Deserialize)]
struct Listed {
    upstreams: Vec<Summary>,
}

#[derive(Debug, Deserialize)]
struct Summary {
    tenant: String,
    toolset: String,
    status: String,
    down_since: Option<String>,
    error: Option<String>,
    revision: Option<String>,
    server_name: Option<String>,
    server_version: Option<String>,
    trust: Option<String>,
    accepted: u64,
    pending: u64,
    refused: u64,
    gone: u64,
    findings: u64,
    sessions: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Whole {
    #[serde(flatten)]
    summary: Summary,
    notes: Vec<String>,
    waiting: Vec<Withheld>,
    withheld: Vec<Withheld>,
    missing: Vec<Named>,
    definitions: Vec<Named>,
    tag: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Named {
    kind: String,
    name: String,
    hash: String,
}

#[derive(Debug, Deserialize)]
struct Withheld {
    #[serde(flatten)]
    named: Named,
    change: String,
    since: String,
    refused: Option<Refused>,
    findings: Vec<Finding>,
    differences: Option<Vec<Difference>>,
    definition: Value,
}

#[derive(Debug, Deserialize)]
struct Refused {
    by: String,
    at: String,
}

#[derive(Debug, Deserialize)]
struct Finding {
    flaw: String,
    field: String,
    detail: String,
    withholds: bool,
}

#[derive(Debug, Deserialize)]
struct Difference {
    field: String,
    before: Option<Value>,
    after: Option<Value>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    match &arguments.command {
        UpstreamCommand::List { tenant, json, admin } => list(tenant.as_deref(), *json, admin),
        UpstreamCommand::Show { server, json, admin } => {
            let client = AdminClient::find(admin)?;
            told(client.json(Method::Get, &server.target(""), None)?, *json, server)
        }
        UpstreamCommand::Refresh { server, json, admin } => {
            let client = AdminClient::find(admin)?;
            told(client.json(Method::Post, &server.target("/refresh"), None)?, *json, server)
        }
        UpstreamCommand::Approve(decision) => decide(decision, "/approve"),
        UpstreamCommand::Refuse(decision) => decide(decision, "/refuse"),
    }
}

fn list(tenant: Option<&str>, as_json: bool, admin: &AdminArguments) -> Result<(), CommandError> {
    let target = match tenant {
        Some(tenant) => format!("/upstreams?tenant={}", encoded(tenant)),
        None => "/upstreams".to_owned(),
    };
    let value: Value = AdminClient::find(admin)?.json(Method::Get, &target, None)?;
    if as_json {
        output::line(format_args!("{value:#}"));
        return Ok(());
    }
    let listed: Listed = read(value)?;
    let rows = listed.upstreams.iter().map(|upstream| {
        let name = upstream.server_name.as_deref().unwrap_or_default();
        let version = upstream.server_version.as_deref().unwrap_or_default();
        vec![
            format!("{}/{}", upstream.tenant, upstream.toolset),
            upstream.status.clone(),
            output::tame(format!("{name} {version}").trim()),
            upstream.revision.clone().unwrap_or_default(),
            upstream.trust.clone().unwrap_or_default(),
            upstream.accepted.to_string(),
            upstream.pending.to_string(),
            upstream.refused.to_string(),
            upstream.findings.to_string(),
            upstream.sessions.map_or_else(String::new, |sessions| sessions.to_string()),
        ]
    });
    let header = [
        "TOOLSET", "STATUS", "SERVER", "REVISION", "TRUST", "ACCEPTED", "PENDING", "REFUSED",
        "FINDINGS", "SESSIONS",
    ];
    output::table(&header, &rows.collect::<Vec<_>>());
    Ok(())
}

fn decide(decision: &Decision, act: &str) -> Result<(), CommandError> {
    let client = AdminClient::find(&decision.admin)?;
    let server = &decision.server;
    let author = AuthorArguments { author: decision.author.clone(), comment: String::new() };
    let target = server.target(act);
    let value: Value = if let Some(tag) = &decision.all {
        let tag = format!("\"{tag}\"");
        client.json_if(&author, &tag, Method::Post, &target, &json!({ "all": true }))?
    } else {
        let whole: Whole = client.json(Method::Get, &server.target(""), None)?;
        let known: Vec<&Named> = whole.named().collect();
        let mut definitions = Vec::new();
        for hash in &decision.hashes {
            for Named { kind, name, hash } in meant(&known, hash)? {
                definitions.push(json!({ "kind": kind, "name": name, "hash": hash }));
            }
        }
        let body = json!({ "definitions": definitions });
        client.json_by(&author, Method::Post, &target, Some(&body))?
    };
    told(value, decision.json, server)
}

/// Fewest digits that name a definition.
const HASH_DIGITS_MIN: usize = 8;
/// Digits of a hash that are shown.
const HASH_DIGITS: usize = 16;

/// The definitions that the beginning of a hash means: all with the one hash that begins so.
fn meant<'a>(known: &[&'a Named], beginning: &str) -> Result<Vec<&'a Named>, CommandError> {
    let beginning = beginning.to_ascii_lowercase();
    if beginning.len() < HASH_DIGITS_MIN {
        return Err(CommandError::Usage(format!(
            "{beginning:?} is too short: give at least {HASH_DIGITS_MIN} digits of the hash"
        )));
    }
    let found: Vec<&Named> =
        known.iter().copied().filter(|named| named.hash.starts_with(&beginning)).collect();
    match found.as_slice() {
        [] => Err(CommandError::Usage(format!(
            "nothing with the hash {beginning} is there any more: look again with `upstream show`"
        ))),
        [first, rest @ ..] if rest.iter().any(|named| named.hash != first.hash) => {
            Err(CommandError::Usage(format!(
                "several hashes begin with {beginning}: give more of its digits"
            )))
        }
        _ => Ok(found),
    }
}

impl Whole {
    fn named(&self) -> impl Iterator<Item = &Named> {
        let withheld = self.waiting.iter().chain(&self.withheld).map(|withheld| &withheld.named);
        withheld.chain(&self.missing).chain(&self.definitions)
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, CommandError> {
    serde_json::from_value(value)
        .map_err(|error| CommandError::Usage(format!("the server is of another release: {error}")))
}

fn told(value: Value, as_json: bool, server: &Server) -> Result<(), CommandError> {
    if as_json {
        output::line(format_args!("{value:#}"));
        return Ok(());
    }
    let whole: Whole = read(value)?;
    let summary = &whole.summary;
    output::line(format_args!(
        "{}/{}: {}, {} accepted, {} waiting, {} refused, {} gone",
        summary.tenant,
        summary.toolset,
        summary.status,
        summary.accepted,
        summary.pending,
        summary.refused,
        summary.gone
    ));
    if let Some(since) = &summary.down_since {
        output::line(format_args!("It does not answer since {since}."));
    }
    for text in summary.error.iter().chain(&whole.notes) {
        output::line(output::tame(text));
    }
    for withheld in whole.waiting.iter().chain(&whole.withheld) {
        print(withheld);
    }
    for Named { kind, name, hash } in &whole.missing {
        let (name, hash) = (output::tame(name), beginning(hash));
        output::line(format_args!("\ngone {kind} {name} {hash}"));
    }
    if !whole.waiting.is_empty() {
        output::remark(format_args!(
            "\nAccept what you have seen with `ringway upstream approve {}/{} HASH...`, or all that \
             waits with `--all {}`; refuse it with `refuse` in place of `approve`.",
            server.tenant, server.toolset, whole.tag
        ));
    }
    Ok(())
}

fn print(withheld: &Withheld) {
    let Withheld { named, change, since, refused, findings, differences, definition } = withheld;
    let (kind, name, hash) = (&named.kind, output::tame(&named.name), beginning(&named.hash));
    output::line(format_args!("\n{change} {kind} {name} {hash} since {since}"));
    if let Some(Refused { by, at }) = refused {
        output::line(format_args!("  refused by {} at {at}", output::tame(by)));
    }
    for Finding { flaw, field, detail, withholds } in findings {
        let mark = if *withholds { "!!" } else { "!" };
        let (field, detail) = (output::tame(field), output::tame(detail));
        output::line(format_args!("  {mark} {flaw} in {field}: {detail}"));
    }
    let shown =
        |value: &Option<Value>| value.as_ref().map_or_else(|| "(nothing)".to_owned(), visible);
    match differences {
        Some(differences) => {
            for Difference { field, before, after } in differences {
                let (before, after) = (shown(before), shown(after));
                output::line(format_args!("  {}: {before} -> {after}", output::tame(field)));
            }
        }
        None => output::line(format_args!("  {}", visible(definition))),
    }
}

/// A value in one line in which nothing hides.
fn visible(value: &Value) -> String {
    output::tame(&crate::governance::definitions::visible(&value.to_string()))
}

fn beginning(hash: &str) -> &str {
    hash.get(..HASH_DIGITS).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_by_tenant_and_toolset() {
        assert_eq!(server("acme/docs").unwrap().target("/x"), "/upstreams/acme/docs/x");
        for bad in ["", "acme", "/docs", "acme/", "a/b/c"] {
            assert!(server(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hashes_are_named_by_their_beginning() {
        let named = |kind: &str, hash: &str| Named {
            kind: kind.to_owned(),
            name: "a".to_owned(),
            hash: hash.to_owned(),
        };
        let all = [
            named("tool", "0123456789abcdef"),
            named("prompt", "0123456789abcdef"),
            named("tool", "0123456789abcdee"),
        ];
        let known: Vec<&Named> = all.iter().collect();
        assert_eq!(meant(&known, "0123456789ABCDEF").unwrap(), [&all[0], &all[1]]);
        for bad in ["0123", "0123456789", "ffffffffff"] {
            assert!(meant(&known, bad).is_err(), "{bad}");
        }
    }
}
