//! HTTP/1.1 over any byte stream, as a client: bytes out, answers and chunks in.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use super::PATIENCE;

/// A request to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        let (method, target) = (method.to_owned(), target.to_owned());
        Self { method, target, headers: Vec::new(), body: None }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body(body.to_string()).header("Content-Type", "application/json")
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// The bytes as they go over the wire, with a `Host` if it names none itself.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name == "Host") {
            text += "Host: 127.0.0.1\r\n";
        }
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = &self.body {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }
}

/// An answer; the body is empty where only the head was read.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; of a stream of events, which an answer becomes that takes its time, the last
    /// message.
    pub(crate) fn json(&self) -> Value {
        let is_stream = self
            .header("Content-Type")
            .is_some_and(|content_type| content_type.starts_with("text/event-stream"));
        let text = self.text();
        let mut events = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let message = events.next_back().filter(|_| is_stream);
        serde_json::from_slice(message.map_or(&self.body[..], str::as_bytes))
            .unwrap_or_else(|error| panic!("{error}: HTTP {} {}", self.status, self.text()))
    }

    /// The result of a JSON-RPC answer.
    pub(crate) fn result(&self) -> Value {
        let json = self.json();
        json.get("result").cloned().unwrap_or_else(|| panic!("no result: {json}"))
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// A byte stream both ways.
pub(crate) trait Socket: Read + Write + Send {}
impl<T: Read + Write + Send> Socket for T {}

/// One connection.
pub(crate) struct Wire {
    socket: Box<dyn Socket>,
    received: Vec<u8>,
}

impl Wire {
    pub(crate) fn over(socket: impl Socket + 'static) -> Self {
        Self { socket: Box::new(socket), received: Vec::new() }
    }

    pub(crate) fn tcp(address: SocketAddr) -> Self {
        let socket = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self::over(socket)
    }

    pub(crate) fn unix(path: &Path) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::over(socket)
    }

    pub(crate) fn send(&mut self, request: &Request) {
        assert!(self.try_send(request), "the connection is closed");
    }

    /// Whether the connection took the request.
    pub(crate) fn try_send(&mut self, request: &Request) -> bool {
        let sent = self.socket.write_all(&request.bytes()).and_then(|()| self.socket.flush());
        sent.is_ok()
    }

    /// Sends and reads the whole answer.
    pub(crate) fn ask(&mut self, request: &Request) -> Answer {
        self.send(request);
        self.answer()
    }

    /// The next answer, read to its end.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        if answer.header("Transfer-Encoding").is_some() {
            while let Some(chunk) = self.chunk().unwrap() {
                answer.body.extend_from_slice(&chunk);
            }
        } else if let Some(length) = answer.header("Content-Length") {
            answer.body = self.take(length.parse().unwrap());
        }
        answer
    }

    /// So many bytes.
    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        while self.received.len() < length {
            assert!(self.fill().unwrap() > 0, "the body broke off");
        }
        self.received.drain(..length).collect()
    }

    /// The head of the next answer.
    pub(crate) fn head(&mut self) -> Answer {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.fill().unwrap() > 0, "closed without an answer");
        };
        let head: Vec<u8> = self.received.drain(..end).collect();
        let text = String::from_utf8(head).unwrap();
        let mut lines = text.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Answer { status, headers, body: Vec::new() }
    }

    /// The next chunk of a chunked body; `None` at its proper end.
    pub(crate) fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.until(b"\r\n")?;
        let size = std::str::from_utf8(&line).unwrap().trim();
        let size = usize::from_str_radix(size, 16).unwrap();
        while self.received.len() < size + 2 {
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let chunk: Vec<u8> = self.received.drain(..size).collect();
        self.received.drain(..2);
        Ok((size > 0).then_some(chunk))
    }

    /// Takes in what was read from the socket by other means.
    pub(crate) fn received_before(&mut self, bytes: &[u8]) {
        self.received.splice(0..0, bytes.iter().copied());
    }

    /// Whether the server closes the connection without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        let reset = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionReset;
        self.received.is_empty()
            && match self.fill() {
                Ok(read) => read == 0,
                Err(error) => reset(&error),
            }
    }

    fn until(&mut self, mark: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            let found = self.received.windows(mark.len()).position(|window| window == mark);
            if let Some(at) = found {
                let taken = self.received.drain(..at + mark.len()).collect();
                return Ok(taken);
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 16 * 1024];
        let read = self.socket.read(&mut bytes)?;
        self.received.extend_from_slice(&bytes[..read]);
        Ok(read)
    }
}
