//! The MCP server `tests/upstream/server.mjs` as what stands behind a toolset.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{Answer, Client, Request, Setup, Wire, eventually};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstream/server.mjs");

/// The server, and most of the time its process.
pub(crate) struct Upstream {
    process: Option<Child>,
    words: Vec<String>,
    address: SocketAddr,
    path: String,
}

impl Upstream {
    /// One that speaks this revision, with more words of its command line.
    pub(crate) fn start(revision: &str, words: &[&str]) -> Self {
        let words: Vec<String> =
            [&["--revision", revision], words].concat().into_iter().map(str::to_owned).collect();
        let (process, address, path) = run(&words, 0).expect("the upstream did not start");
        Self { process: Some(process), words, address, path }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            process.wait().unwrap();
        }
    }

    /// A new process, which knows nothing of the old one, at the same URL.
    pub(crate) fn restart(&mut self) {
        self.kill();
        eventually("the upstream has its port again", || {
            let started = run(&self.words, self.address.port());
            self.process = started.map(|(process, ..)| process);
            self.process.is_some()
        });
    }

    /// Sends the process a signal, such as STOP.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.as_ref().unwrap().id();
        let kill = format!("kill -{signal} {id}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// A word at the side door, with its query.
    pub(crate) fn control(&self, word: &str) {
        self.ask("POST", word).expect(204);
    }

    /// Switches a fault on: `name` or `name&value=..`.
    pub(crate) fn fault(&self, fault: &str) {
        self.control(&format!("fault?name={fault}"));
    }

    pub(crate) fn state(&self) -> Value {
        self.ask("GET", "state").expect(200).json()
    }

    /// How often a method was asked for.
    pub(crate) fn requests(&self, method: &str) -> u64 {
        self.state()["requests"][method].as_u64().unwrap_or_default()
    }

    /// What became of the call with this label; null before it came.
    pub(crate) fn call(&self, label: &str) -> Value {
        let state = self.state();
        let mut calls = state["calls"].as_array().unwrap().iter();
        calls.find(|call| call["label"] == label).map_or(Value::Null, |call| call["state"].clone())
    }

    pub(crate) fn wait_for_call(&self, label: &str, state: &str) {
        eventually(&format!("the call {label} is {state}"), || self.call(label) == state);
    }

    fn ask(&self, method: &str, word: &str) -> Answer {
        let host = self.address.to_string();
        let request = Request::new(method, &format!("/control/{word}"))
            .header("Host", &host)
            .header("Connection", "close")
            .body("");
        Wire::tcp(self.address).ask(&request)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a process and waits until it listens. `None` where it cannot.
fn run(words: &[String], port: u16) -> Option<(Child, SocketAddr, String)> {
    let mut command = Command::new("node");
    command.arg(PROGRAM).args(words).args(["--port", &port.to_string()]);
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Some(url) = line.trim().strip_prefix("listening http://") else {
        let _ = process.kill();
        let _ = process.wait();
        return None;
    };
    let (address, path) = url.split_once('/').unwrap();
    Some((process, address.parse().unwrap(), format!("/{path}")))
}

impl Setup {
    /// A toolset of an MCP server for `demo/assistant` and `demo/public`; `upstream` and
    /// `connection` are more lines of the toolset and its connection.
    pub(crate) fn mcp(self, id: &str, url: &str, upstream: &str, connection: &str) -> Self {
        let assignments = ["assistant", "public"].map(|client| {
            format!(
                "[[assignment]]\ntenant = \"demo\"\nclient_application = \"{client}\"\n\
                 toolset = \"{id}\"\n"
            )
        });
        self.unassigned_mcp(id, url, upstream, connection).catalog(&assignments.concat())
    }

    /// The same for nobody; so the server is not asked.
    pub(crate) fn unassigned_mcp(
        self,
        id: &str,
        url: &str,
        upstream: &str,
        connection: &str,
    ) -> Self {
        self.catalog(&format!(
            "[[connection]]\ntenant = \"demo\"\nid = \"{id}\"\nbase_url = \"{url}\"\n{connection}\n\
             [[toolset]]\ntenant = \"demo\"\nid = \"{id}\"\nkind = \"mcp\"\nconnection = \"{id}\"\n\
             {upstream}\n"
        ))
    }
}

impl Client {
    /// The names of the tools it is shown.
    pub(crate) fn tools(&self) -> Vec<String> {
        let listed = self.reply(&super::rpc(1, "tools/list", serde_json::json!({})));
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until it is shown a tool.
    pub(crate) fn shown(self, tool: &str) -> Self {
        eventually(&format!("{tool} is in the list"), || self.tools().iter().any(|it| it == tool));
        self
    }
}
