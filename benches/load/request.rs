//! Requests with an id that can be changed in place, and a small blocking client for what comes
//! before a measurement.

use crate::response::{Progress, Response};
use memchr::memmem;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) const BOTH: &str = "application/json, text/event-stream";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
pub(crate) const REVISION: &str = "2025-11-25";
pub(crate) const MODERN_REVISION: &str = "2026-07-28";

/// Ids have ten digits, so that one takes another's place.
const ID_MARK: &str = "1000000000";
const ID_DIGITS: usize = 10;
pub(crate) const FIRST_ID: u32 = 1_000_000_001;
const ANSWER_SECONDS_MAX: u64 = 30;

/// A server under test. Only loopback addresses can be one.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    address: SocketAddr,
    path: String,
    key: Option<String>,
}

impl Target {
    pub(crate) fn new(address: SocketAddr, path: &str, key: Option<&str>) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            return Err(io::Error::other(format!("{address} is not a loopback address")));
        }
        Ok(Self { address, path: path.to_owned(), key: key.map(str::to_owned) })
    }

    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// One request's bytes, with the place of its id.
#[derive(Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    id_at: Option<usize>,
}

impl Request {
    pub(crate) fn post(target: &Target, accept: &str, session: Option<&str>, body: &str) -> Self {
        Self::new(target, "POST", accept, session, Some(body))
    }

    pub(crate) fn get(target: &Target, session: Option<&str>) -> Self {
        Self::new(target, "GET", EVENT_STREAM, session, None)
    }

    fn new(
        target: &Target,
        verb: &str,
        accept: &str,
        session: Option<&str>,
        body: Option<&str>,
    ) -> Self {
        let Target { address, path, key } = target;
        let mut text = format!("{verb} {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n");
        if let Some(key) = key {
            text += &format!("Authorization: Bearer {key}\r\n");
        }
        if let Some(session) = session {
            text += &format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {REVISION}\r\n");
        }
        let head_bytes = text.len();
        if let Some(body) = body {
            let length = body.len();
            text += "Content-Type: application/json\r\n";
            text += &format!("Content-Length: {length}\r\n\r\n{body}");
        } else {
            text += "\r\n";
        }
        let id_at = text[head_bytes..].find(ID_MARK).map(|at| head_bytes + at);
        Self { bytes: text.into_bytes(), id_at }
    }

    /// With more lines at the end of its head.
    pub(crate) fn with_headers(mut self, lines: &str) -> Self {
        if let Some(end) = memmem::find(&self.bytes, b"\r\n\r\n") {
            let at = end + 2;
            self.bytes.splice(at..at, lines.bytes());
            self.id_at = self.id_at.map(|id_at| id_at + lines.len());
        }
        self
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn set_id(&mut self, id: u32) {
        let Some(at) = self.id_at else { return };
        let mut left = id;
        for digit in self.bytes[at..at + ID_DIGITS].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
    }

    /// The id's digits, which the answer must have; empty without an id.
    pub(crate) fn id(&self) -> &[u8] {
        self.id_at.map_or(&[], |at| &self.bytes[at..at + ID_DIGITS])
    }
}

/// The body of a JSON-RPC request, to be given its id later.
pub(crate) fn rpc(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{ID_MARK},"method":"{method}","params":{params}}}"#)
}

/// As [`rpc`], of the modern era: its `params` say which revision and which client this is.
pub(crate) fn modern_rpc(method: &str, params: &str) -> String {
    let key = "io.modelcontextprotocol";
    let version = format!(r#""{key}/protocolVersion":"{MODERN_REVISION}""#);
    let client = format!(r#""{key}/clientInfo":{{"name":"ringway-load","version":"0.1.0"}}"#);
    let meta = format!(r#"{{{version},{client},"{key}/clientCapabilities":{{}}}}"#);
    let params = params.strip_prefix('{').unwrap_or(params);
    rpc(method, &format!(r#"{{"_meta":{meta},{params}"#))
}

/// The head lines that go with a modern call of a tool.
pub(crate) fn modern_headers(tool: &str) -> String {
    format!(
        "MCP-Protocol-Version: {MODERN_REVISION}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    )
}

pub(crate) fn initialize() -> String {
    let client = r#"{"name":"ringway-load","version":"0.1.0"}"#;
    let params =
        format!(r#"{{"protocolVersion":"{REVISION}","capabilities":{{}},"clientInfo":{client}}}"#);
    rpc("initialize", &params)
}

/// A connection that sends one request and waits for its answer.
pub(crate) struct Exchange<'t> {
    target: &'t Target,
    stream: TcpStream,
    response: Response,
}

impl<'t> Exchange<'t> {
    pub(crate) fn new(target: &'t Target) -> io::Result<Self> {
        let stream = target.connect()?;
        stream.set_read_timeout(Some(Duration::from_secs(ANSWER_SECONDS_MAX)))?;
        Ok(Self { target, stream, response: Response::new() })
    }

    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<&Response> {
        self.send(request)?;
        self.answer()
    }

    pub(crate) fn send(&mut self, request: &Request) -> io::Result<()> {
        if self.response.keep_alive {
            self.response.next();
        } else {
            *self = Self::new(self.target)?;
        }
        self.stream.write_all(request.bytes())
    }

    pub(crate) fn answer(&mut self) -> io::Result<&Response> {
        let mut piece = [0; 16 << 10];
        loop {
            let bytes = match self.stream.read(&mut piece) {
                Ok(bytes) => bytes,
                // The end of an earlier ring may interrupt a read that has a time limit.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            match self.response.push(&piece[..bytes]) {
                Progress::NeedMore => {}
                Progress::Complete => return Ok(&self.response),
                Progress::Malformed => return Err(io::Error::other("a malformed answer")),
            }
        }
    }

    /// The MCP handshake; gives the session's id where the server opened one.
    pub(crate) fn handshake(&mut self) -> io::Result<Option<String>> {
        let hello = Request::post(self.target, BOTH, None, &initialize());
        let answer = self.ask(&hello)?;
        if answer.status != 200 {
            let text = String::from_utf8_lossy(answer.body());
            return Err(io::Error::other(format!("initialize: HTTP {}: {text}", answer.status)));
        }
        let session = answer.session.clone();
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.ask(&Request::post(self.target, BOTH, session.as_deref(), note))?;
        Ok(session)
    }
}
