//! An MCP server that answers by a script, and a client whose requests are passed on to it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::api::{Api, Talk, answer, json_answer};
use super::super::support::{ENVIRONMENT, caller_with};
use crate::catalog::{CompiledConnection, Definitions, ToolKind, Upstream, UpstreamServer};
use crate::downstream::tests::support::declared;
use crate::downstream::{
    AcrossCores, Client, Heard, Listener, Reach, RestCaller, SessionScope, UpstreamAnswer,
    UpstreamCalled, UpstreamMethod, UpstreamRequest, Upstreams,
};
use crate::json::OwnedRaw;
use crate::mcp::{Ask, AskOutcome, LogLevel, Told};
use crate::rt::{Notify, Resolver, WorkerPool};
use crate::sessions::{ClientCapabilities, SessionKey};
use crate::settings;

/// One request to the server.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) line: String,
    /// In lower case.
    head: String,
    pub(super) body: Value,
}

impl Call {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let (line, head) = head.split_once("\r\n").unwrap();
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
        let head = head.lines().map(|line| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}\n", name.to_ascii_lowercase()),
            None => String::new(),
        });
        Self { line: line.to_owned(), head: head.collect(), body }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let start = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&start))
    }

    pub(super) fn http(&self) -> &str {
        self.line.split(' ').next().unwrap()
    }

    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(super) fn id(&self) -> &Value {
        &self.body["id"]
    }

    pub(super) fn result(&self, result: &Value) -> String {
        json_answer("200 OK", &self.message(result))
    }

    pub(super) fn message(&self, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.id(), "result": result}).to_string()
    }

    pub(super) fn error(&self, status: &str, code: i32) -> String {
        let error = json!({"code": code, "message": "no"});
        let body = json!({"jsonrpc": "2.0", "id": self.id(), "error": error}).to_string();
        json_answer(status, &body)
    }
}

/// A head that begins an event stream without an end.
pub(super) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// One event as a chunk.
pub(super) fn event(data: &str) -> String {
    chunk(&format!("event: message\ndata: {data}\n\n"))
}

pub(super) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

pub(super) const END: &str = "0\r\n\r\n";

pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

pub(super) fn accepted() -> String {
    answer("202 Accepted", "", b"")
}

/// A server, and what it was asked.
pub(super) struct Server {
    pub(super) api: Api,
    calls: Mutex<Receiver<Call>>,
}

impl Server {
    /// `script` answers each request; `false` ends the connection.
    pub(super) fn start(script: impl Fn(&Call, &mut Talk) -> bool + Send + Sync + 'static) -> Self {
        let (seen, calls): (Sender<Call>, _) = channel();
        let seen = Mutex::new(seen);
        let api = Api::start(move |_, talk| {
            while let Some(text) = talk.request() {
                let call = Call::of(&text);
                let _ = seen.lock().send(call.clone());
                if !script(&call, talk) {
                    return;
                }
            }
        });
        Self { api, calls: Mutex::new(calls) }
    }

    /// One of the era with sessions: the session's id is `s-1`. `script` answers all but the
    /// beginning.
    pub(super) fn legacy(
        revision: &'static str,
        script: impl Fn(&Call, &mut Talk) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |call, talk| begin(call, talk, revision, "s-1") || script(call, talk))
    }

    /// One of the era without. `script` answers all but `server/discover`.
    pub(super) fn modern(
        script: impl Fn(&Call, &mut Talk) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |call, talk| match call.method() {
            "server/discover" => talk.say(call.result(&json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}},
                "ttlMs": 0, "cacheScope": "public", "instructions": "Read me",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "m", "version": "1"}}}))),
            _ => script(call, talk),
        })
    }

    /// What it was asked since the last time.
    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.lock().try_iter().collect()
    }

    /// The same, in short: HTTP method and method.
    pub(super) fn said(&self) -> Vec<String> {
        let calls = self.calls();
        calls.iter().map(|call| format!("{} {}", call.http(), call.method())).collect()
    }

    /// The next request with this method, within five seconds.
    pub(super) fn next(&self, method: &str) -> Call {
        loop {
            let call = self.calls.lock().recv_timeout(Duration::from_secs(5));
            let call = call.unwrap_or_else(|_| panic!("no {method}"));
            if call.method() == method || call.http() == method {
                return call;
            }
        }
    }

    pub(super) fn upstream(&self) -> Arc<UpstreamServer> {
        self.upstream_with("", Upstream::default())
    }

    pub(super) fn upstream_with(&self, lines: &str, settings: Upstream) -> Arc<UpstreamServer> {
        upstream_at(&format!("http://{}/mcp", self.api.address), lines, settings)
    }
}

/// Answers the beginning of a session with this id; whether it was that.
pub(super) fn begin(call: &Call, talk: &mut Talk, revision: &str, session: &str) -> bool {
    let said = match (call.http(), call.method()) {
        ("POST", "server/discover") => call.error("400 Bad Request", -32000),
        ("POST", "initialize") => {
            let capabilities = json!({"tools": {}, "logging": {}, "prompts": {},
                "resources": {"subscribe": true}, "completions": {}});
            let result = json!({"protocolVersion": revision, "capabilities": capabilities,
                "serverInfo": {"name": "l", "version": "2"}, "instructions": "Read me"});
            let body = call.message(&result);
            let session = format!("Mcp-Session-Id: {session}\r\n");
            let headers = format!("Content-Type: application/json\r\n{session}");
            answer("200 OK", &headers, body.as_bytes())
        }
        ("POST", "notifications/initialized") => accepted(),
        ("DELETE", _) => answer("204 No Content", "", b""),
        _ => return false,
    };
    talk.say(said)
}

pub(super) fn upstream_at(url: &str, lines: &str, settings: Upstream) -> Arc<UpstreamServer> {
    let tool = declared(url, lines, "method = \"GET\"\npath = \"/anything\"");
    let ToolKind::Rest { connection, .. } = &tool.kind else { panic!() };
    let connection: Arc<CompiledConnection> = Arc::clone(connection);
    Arc::new(UpstreamServer {
        tenant: connection.tenant.clone(),
        toolset: crate::catalog::ToolsetId::new("shop").unwrap(),
        connection,
        settings,
        definitions: Arc::new(Definitions::default()),
    })
}

/// Hears what servers say, for a look at it.
#[derive(Default)]
pub(super) struct Ears(pub(super) Mutex<Vec<String>>);

impl Ears {
    pub(super) fn heard(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl Listener for Ears {
    fn heard(&self, _: &Arc<UpstreamServer>, session: Option<SessionKey>, heard: Heard) {
        let whose = if session.is_some() { "" } else { "nobody's " };
        let text = match heard {
            Heard::ToolsChanged => "tools".to_owned(),
            Heard::PromptsChanged => "prompts".to_owned(),
            Heard::ResourcesChanged => "resources".to_owned(),
            Heard::ResourceUpdated(uri) => format!("updated {uri}"),
            Heard::Told(told) => describe(&told),
            Heard::Asked(ask, sender) => {
                let answer = OwnedRaw::parse(br#"{"roots":[]}"#).unwrap();
                let sender = sender.lock().take().unwrap();
                let _ = sender.send(AskOutcome::Answer(answer));
                format!("asked {}", ask.method.name())
            }
        };
        self.0.lock().push(format!("{whose}{text}"));
    }
}

pub(super) fn describe(told: &Told) -> String {
    match told {
        Told::Progress(params) => format!("progress {}", params.as_raw().text()),
        Told::Message(level, params) => {
            format!("{} {}", level.name(), params.as_raw().text())
        }
        Told::ElicitationComplete(params) => format!("complete {}", params.as_raw().text()),
    }
}

/// Asks from one core.
pub(super) struct Desk {
    pub(super) upstreams: Upstreams,
    pub(super) ears: Arc<Ears>,
    /// Holds the pool.
    _rest: RestCaller,
}

pub(super) fn desk_with(change: impl FnOnce(&mut settings::UpstreamServers)) -> Desk {
    let mut settings = settings::UpstreamServers::default();
    change(&mut settings);
    let rest = caller_with(|_| {});
    let ears = Arc::new(Ears::default());
    let listener = Arc::clone(&ears) as Arc<dyn Listener>;
    Desk { upstreams: Upstreams::new(&rest, &settings, listener), ears, _rest: rest }
}

/// One of several cores, each on its thread.
pub(super) fn desk_across(across: &AcrossCores) -> Desk {
    let workers = WorkerPool::start(1, 64).unwrap();
    let reach = Reach::new(
        &settings::Downstream::default(),
        &settings::Http::default(),
        Resolver::new(workers.clone()),
        workers,
        None,
        across.clone(),
        Arc::default(),
    );
    let rest = RestCaller::new(reach);
    let ears = Arc::new(Ears::default());
    let listener = Arc::clone(&ears) as Arc<dyn Listener>;
    let settings = settings::UpstreamServers::default();
    Desk { upstreams: Upstreams::new(&rest, &settings, listener), ears, _rest: rest }
}

pub(super) fn desk() -> Desk {
    desk_with(|_| {})
}

/// A client that wants to hear everything and answers what it is asked.
pub(super) struct Someone {
    pub(super) capabilities: ClientCapabilities,
    pub(super) is_modern: bool,
    pub(super) level: Option<LogLevel>,
    pub(super) told: RefCell<Vec<String>>,
    pub(super) asked: RefCell<Vec<String>>,
    /// How long it thinks.
    pub(super) thinks: Duration,
    /// Whether there is room for what it is told; else it waits for the note.
    pub(super) has_room: bool,
    pub(super) room: Notify,
}

impl Default for Someone {
    fn default() -> Self {
        let all = [ClientCapabilities::ELICITATION_FORM, ClientCapabilities::ROOTS];
        Self {
            capabilities: all.into_iter().fold(ClientCapabilities::NONE, ClientCapabilities::with),
            is_modern: false,
            level: Some(LogLevel::Info),
            told: RefCell::default(),
            asked: RefCell::default(),
            thinks: Duration::ZERO,
            has_room: true,
            room: Notify::new(),
        }
    }
}

impl Client for Someone {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.level
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn is_modern(&self) -> bool {
        self.is_modern
    }

    fn tell(&self, told: Told) {
        self.told.borrow_mut().push(describe(&told));
    }

    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            if !self.has_room {
                self.room.notified().await;
            }
        })
    }

    fn ask(&self, ask: Ask) -> Pin<Box<dyn Future<Output = AskOutcome> + '_>> {
        let text = format!("{} {}", ask.method.name(), ask.params.as_raw().text());
        self.asked.borrow_mut().push(text);
        Box::pin(async {
            if !self.thinks.is_zero() {
                crate::rt::sleep(self.thinks).await;
            }
            AskOutcome::Answer(
                OwnedRaw::parse(br#"{"action":"accept","content":{"a":1}}"#).unwrap(),
            )
        })
    }
}

/// A session of a client.
pub(super) const SESSION: SessionScope<'_> = SessionScope::Session(key(7));

pub(super) const fn key(number: u8) -> SessionKey {
    SessionKey::from_bytes([number; 16])
}

/// How a tool is called.
pub(super) struct Asked<'a> {
    pub(super) scope: SessionScope<'a>,
    pub(super) method: UpstreamMethod,
    pub(super) params: &'a str,
    pub(super) is_repeatable: bool,
}

pub(super) const CALL: Asked<'_> = Asked {
    scope: SESSION,
    method: UpstreamMethod::ToolsCall,
    params: r#"{"name":"t","arguments":{"a":1.50}}"#,
    is_repeatable: false,
};

impl Desk {
    pub(super) async fn ask(
        &self,
        server: &Arc<UpstreamServer>,
        client: &Someone,
        asked: &Asked<'_>,
    ) -> UpstreamCalled {
        let params = OwnedRaw::parse(asked.params.as_bytes()).unwrap();
        let request = UpstreamRequest {
            server,
            scope: asked.scope,
            method: asked.method,
            params: &params,
            is_repeatable: asked.is_repeatable,
            continues: None,
            client,
        };
        self.upstreams.ask(&request, &ENVIRONMENT).await
    }

    /// Calls the tool for a client like any other.
    pub(super) async fn call(&self, server: &Arc<UpstreamServer>) -> String {
        shown(&self.ask(server, &Someone::default(), &CALL).await)
    }
}

/// What came of it, in short.
pub(super) fn shown(called: &UpstreamCalled) -> String {
    match &called.result {
        Ok(UpstreamAnswer::Result(result)) => result.as_raw().text().to_owned(),
        Ok(UpstreamAnswer::Error(error)) => format!("error {}", error.code),
        Ok(UpstreamAnswer::InputRequired { asks, state }) => {
            let keys: BTreeSet<&str> = asks.iter().map(|(key, _)| &**key).collect();
            format!("wants {keys:?} {state:?}")
        }
        Err(error) => format!("failed: {error}"),
    }
}
