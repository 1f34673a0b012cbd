//! What is measured: the release binary with a catalog of its own, and the bare server beside it,
//! both on the same core. Everything they write goes into a folder that ends with the run.

use crate::process::{Server, free_address};
use crate::request::{BOTH, Exchange, Request, Target, rpc};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

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
    pub(crate) const FIFTY: Self = Self { listed: 50, governance: Governance::Shipped };
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
    listed: usize,
    admin: PathBuf,
}

pub(crate) struct Bare {
    pub(crate) server: Server,
    pub(crate) answers: Target,
    pub(crate) hops: Target,
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
        let target = |client: &str| {
            let key = self.new_key(client, data_variable)?;
            Target::new(address, &format!("/runtime/{TENANT}/{client}/mcp"), Some(&key))
        };
        Ok(Ringway {
            calls: target(CALLS)?,
            lists: target(LISTS)?,
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
            notify: target("/notify")?,
        })
    }
}

impl Ringway {
    /// The result object of `tools/list`, checked to hold as many tools as it should.
    pub(crate) fn tool_list(&self) -> io::Result<Vec<u8>> {
        let mut exchange = Exchange::new(&self.lists)?;
        let session = exchange.handshake()?;
        let body = rpc("tools/list", "{}");
        let request = Request::post(&self.lists, BOTH, session.as_deref(), &body);
        let answer: serde_json::Value = serde_json::from_slice(exchange.ask(&request)?.body())?;
        let listed = answer["result"]["tools"].as_array().map_or(0, Vec::len);
        if listed != self.listed {
            return Err(io::Error::other(format!("{listed} tools, not {}", self.listed)));
        }
        Ok(answer["result"].to_string().into_bytes())
    }

    /// Has every standing stream told that its tool list changed.
    pub(crate) fn notify(&self) -> io::Result<()> {
        let mut admin = UnixStream::connect(&self.admin)?;
        admin.set_read_timeout(Some(Duration::from_secs(30)))?;
        admin.write_all(
            b"POST /notify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\
            Connection: close\r\n\r\n",
        )?;
        let mut answer = [0; 12];
        admin.read_exact(&mut answer)?;
        if answer.starts_with(b"HTTP/1.1 2") {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(&answer);
        Err(io::Error::other(format!("POST /notify was answered {shown}")))
    }
}

impl Bare {
    pub(crate) fn notify(&self) -> io::Result<()> {
        let request = Request::post(&self.notify, BOTH, None, "");
        Exchange::new(&self.notify)?.ask(&request).map(drop)
    }
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

[[connection]]
tenant = "{TENANT}"
id = "api"
base_url = "http://{api}"
"#
    );
    if is_governed {
        text = text.replacen("id =", "limits = { requests = { count = 900000000 } }\nid =", 1);
    }
    for (client, toolsets) in [(CALLS, &["echo", "appliance"][..]), (LISTS, &["listed"][..])] {
        text += &format!("\n[[client_application]]\ntenant = \"{TENANT}\"\nid = \"{client}\"\n");
        if is_governed {
            text += CLIENT_GOVERNANCE;
        }
        for toolset in toolsets {
            let kind = if *toolset == "appliance" {
                "kind = \"builtin\""
            } else {
                "kind = \"rest\"\nconnection = \"api\""
            };
            text += &format!(
                "\n[[toolset]]\ntenant = \"{TENANT}\"\nid = \"{toolset}\"\n{kind}\n\
                \n[[assignment]]\ntenant = \"{TENANT}\"\nclient_application = \"{client}\"\n\
                toolset = \"{toolset}\"\nenabled = true\n"
            );
            if is_governed {
                text += ASSIGNMENT_GOVERNANCE;
            }
        }
    }
    text += &tool("echo", "echo", "Sends a message to the API and returns what it says.");
    if is_governed {
        text += "limit = { count = 900000000 }\n";
    }
    for number in 0..offer.listed {
        let about = format!("Tool number {number}: looks something up and returns it.");
        text += &tool("listed", &format!("tool_{number:02}"), &about);
    }
    text
}

/// Limits nobody reaches and rules that all have to be looked at.
const CLIENT_GOVERNANCE: &str = r#"
limits = { requests = { count = 900000000 }, mutations = { count = 900000000 }, tool_calls = { count = 900000000 } }
caller_limits = { requests = { count = 900000000 }, mutations = { count = 900000000 }, tool_calls = { count = 900000000 } }
policy = { rules = [
    { effect = "deny", tools = ["*delete*"] },
    { effect = "deny", side_effects = ["destructive"] },
    { effect = "allow", required_trust = "low", windows = [{ from = "00:00", to = "12:00" }, { from = "12:00", to = "00:00" }] },
] }
"#;
const ASSIGNMENT_GOVERNANCE: &str = r#"
policy = { rules = [{ effect = "deny", tools = ["nothing/*"] }, { effect = "allow" }] }
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
