//! An MCP client that does only what it is told, a request at a time.

use std::io;

use serde_json::{Value, json};

use super::{Answer, Request, Ringway, Wire};

const BOTH: &str = "application/json, text/event-stream";
pub(crate) const NEWEST: &str = "2025-11-25";

pub(crate) fn rpc(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(crate) fn ping() -> Value {
    rpc(1, "ping", json!({}))
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    rpc(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

pub(crate) fn cancel(id: u64) -> Value {
    let params = json!({ "requestId": id });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

pub(crate) fn initialize(revision: &str) -> Value {
    let client = json!({ "name": "integration", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
    rpc(0, "initialize", params)
}

/// A client application's endpoint, with what opens it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) session: Option<String>,
}

impl Client {
    /// A client of `demo/assistant` or another `tenant/client`, with a new key.
    pub(crate) fn new(server: &Ringway, of: &str) -> Self {
        Self::keyless(server, of).with_key(&server.new_key(of))
    }

    pub(crate) fn keyless(server: &Ringway, of: &str) -> Self {
        let path = format!("/runtime/{of}/mcp");
        Self { address: server.address(), path, key: None, session: None }
    }

    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// The same client after the server came back on another port.
    pub(crate) fn at(&self, server: &Ringway) -> Self {
        Self { address: server.address(), ..self.clone() }
    }

    pub(crate) fn without_session(&self) -> Self {
        Self { session: None, ..self.clone() }
    }

    /// A client in a session of its own.
    pub(crate) fn in_session(&self, revision: &str) -> Self {
        let answer = self.without_session().post(&initialize(revision)).expect(200);
        let session = answer.header("Mcp-Session-Id").unwrap().to_owned();
        Self { session: Some(session), ..self.clone() }
    }

    pub(crate) fn open(server: &Ringway) -> Self {
        Self::new(server, "demo/assistant").in_session(NEWEST)
    }

    /// A request with this client's credential and session.
    pub(crate) fn request(&self, method: &str) -> Request {
        let mut request = Request::new(method, &self.path);
        if let Some(key) = &self.key {
            request = request.header("Authorization", &format!("Bearer {key}"));
        }
        if let Some(session) = &self.session {
            request = request.header("Mcp-Session-Id", session);
        }
        request
    }

    pub(crate) fn message(&self, body: &Value) -> Request {
        self.request("POST").header("Accept", BOTH).json(body)
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::tcp(self.address)
    }

    /// Any request, on a connection of its own.
    pub(crate) fn send(&self, request: &Request) -> Answer {
        self.connect().ask(request)
    }

    pub(crate) fn post(&self, body: &Value) -> Answer {
        self.send(&self.message(body))
    }

    /// The result of a call, whichever kind of answer it comes in.
    pub(crate) fn called(&self, tool: &str, arguments: Value) -> Value {
        let message = self.reply(&call(1, tool, arguments));
        message.get("result").cloned().unwrap_or_else(|| panic!("no result: {message}"))
    }

    /// The JSON-RPC answer to a request, whichever kind of answer it comes in.
    pub(crate) fn reply(&self, body: &Value) -> Value {
        match Events::open(self.connect(), &self.message(body)) {
            Ok(mut stream) => {
                let message = stream.answer();
                assert_eq!(stream.rest().len(), 0, "the stream ends with the answer");
                message
            }
            Err(answer) => answer.expect(200).json(),
        }
    }

    pub(crate) fn delete(&self) -> Answer {
        self.send(&self.request("DELETE"))
    }

    pub(crate) fn get(&self, last_event: Option<&str>) -> Request {
        let request = self.request("GET").header("Accept", "text/event-stream");
        match last_event {
            Some(event) => request.header("Last-Event-ID", event),
            None => request,
        }
    }

    /// A GET stream; the whole answer where it is none.
    pub(crate) fn stream(&self, last_event: Option<&str>) -> Result<Events, Answer> {
        Events::open(self.connect(), &self.get(last_event))
    }

    /// The standing stream, past its greeting.
    pub(crate) fn standing(&self) -> Events {
        self.stream(None).unwrap()
    }

    /// The stream of a POST.
    pub(crate) fn post_stream(&self, body: &Value) -> Events {
        Events::open(self.connect(), &self.message(body)).unwrap()
    }
}

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) comment: Option<String>,
}

/// An open event stream.
pub(crate) struct Events {
    wire: Wire,
    text: String,
    /// The id of the last event that had one.
    pub(crate) last: Option<String>,
}

impl Events {
    pub(crate) fn open(mut wire: Wire, request: &Request) -> Result<Self, Answer> {
        wire.send(request);
        Self::of(wire)
    }

    /// The stream that answers a request sent already.
    pub(crate) fn of(mut wire: Wire) -> Result<Self, Answer> {
        let mut answer = wire.head();
        let is_stream = answer.header("Content-Type") == Some("text/event-stream");
        if answer.status == 200 && is_stream {
            return Ok(Self { wire, text: String::new(), last: None });
        }
        if let Some(length) = answer.header("Content-Length") {
            answer.body = wire.take(length.parse().unwrap());
        }
        Err(answer)
    }

    /// The next event or comment; `None` at the proper end, an error where the stream breaks off.
    pub(crate) fn try_next(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let event = parse(block);
                self.text = rest.to_owned();
                if event.id.is_some() {
                    self.last.clone_from(&event.id);
                }
                return Ok(Some(event));
            }
            match self.wire.chunk()? {
                Some(chunk) => self.text += std::str::from_utf8(&chunk).unwrap(),
                None => return Ok(None),
            }
        }
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        self.try_next().unwrap()
    }

    /// The next message; `None` at the proper end of the stream.
    pub(crate) fn message(&mut self) -> Option<Value> {
        while let Some(event) = self.next() {
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                return Some(serde_json::from_str(&data).unwrap());
            }
        }
        None
    }

    /// The next message that does not tell of a list that changed, which may come any time.
    pub(crate) fn answer(&mut self) -> Value {
        loop {
            let message = self.message().expect("an answer on the stream");
            let method = message["method"].as_str().unwrap_or_default();
            if !method.ends_with("/list_changed") {
                return message;
            }
        }
    }

    /// The event of the next message.
    pub(crate) fn message_event(&mut self) -> Event {
        loop {
            let event = self.next().expect("the stream ended");
            if event.data.as_ref().is_some_and(|data| !data.is_empty()) {
                return event;
            }
        }
    }

    /// Whether the stream is cut off, not ended.
    pub(crate) fn breaks_off(&mut self) -> bool {
        loop {
            match self.try_next() {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(error) => {
                    let waited = error.kind() == io::ErrorKind::WouldBlock;
                    assert!(!waited, "the stream goes on");
                    return true;
                }
            }
        }
    }

    /// All messages to the stream's proper end.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.message()).collect()
    }

    /// The id of the first event that has one.
    pub(crate) fn primed(&mut self) -> String {
        while self.last.is_none() {
            assert!(self.next().is_some(), "no event with an id");
        }
        self.last.clone().unwrap()
    }

    /// The connection, for its next request.
    pub(crate) fn into_wire(self) -> Wire {
        self.wire
    }
}

fn parse(block: &str) -> Event {
    let mut event = Event::default();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "" => event.comment = Some(value),
            "id" => event.id = Some(value),
            "event" => event.kind = Some(value),
            "data" => {
                let before = event.data.take().map(|data| data + "\n").unwrap_or_default();
                event.data = Some(before + &value);
            }
            _ => {}
        }
    }
    event
}
