//! The loopback API that tool calls reach. It lives in the load's own loop: a process of its own
//! on the same core would add two switches a call, and the load would be what is measured.

use crate::ring::{Event, Ring};
use crate::upstream;
use memchr::memmem;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const REQUEST_BYTES_MAX: usize = 64 << 10;
const JSON_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
const XML_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Length: ";

/// Answers every request with the request's own body, or with `{}` where it has none. An envelope
/// comes back as the answer of a SOAP service whose messages are alike; below `/mcp` are MCP servers.
pub(crate) struct Api {
    listener: TcpListener,
    connections: HashMap<usize, Vec<u8>>,
    answer: Vec<u8>,
}

impl Api {
    pub(crate) fn new() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        Ok(Self { listener, connections: HashMap::new(), answer: Vec::new() })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves on this ring from now on; connections of an earlier ring are gone.
    pub(crate) fn attach(&mut self, ring: &mut Ring) -> io::Result<()> {
        self.connections.clear();
        ring.listen(self.listener.try_clone()?);
        Ok(())
    }

    /// Serves while `work` goes on beside it: what is set up before a measurement may need the API,
    /// which is attached to this ring.
    pub(crate) fn while_serving<T: Send>(
        &mut self,
        ring: &mut Ring,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        thread::scope(|scope| {
            let working = scope.spawn(work);
            let mut events = Vec::new();
            while !working.is_finished() {
                ring.wait(Duration::from_millis(10), &mut events)?;
                for event in events.drain(..) {
                    match event {
                        Event::Accepted(stream) => self.accepted(ring, stream)?,
                        Event::Received { slot, bytes } => self.received(ring, slot, bytes),
                        Event::Failed { slot, .. } => self.closed(slot),
                    }
                }
            }
            working.join().unwrap_or_else(|_| Err(io::Error::other("the work panicked")))
        })
    }

    pub(crate) fn accepted(&mut self, ring: &mut Ring, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let slot = ring.add(stream);
        self.connections.insert(slot, Vec::with_capacity(1024));
        ring.receive(slot);
        Ok(())
    }

    pub(crate) fn owns(&self, slot: usize) -> bool {
        self.connections.contains_key(&slot)
    }

    pub(crate) fn received(&mut self, ring: &mut Ring, slot: usize, bytes: usize) {
        let Some(pending) = self.connections.get_mut(&slot) else { return };
        if bytes == 0 || pending.len() + bytes > REQUEST_BYTES_MAX {
            return self.closed(slot);
        }
        pending.extend_from_slice(ring.received(slot, bytes));
        if let Some((head, length)) = whole_request(pending) {
            let (request, body) = (&pending[..head], &pending[head..head + length]);
            self.answer.clear();
            if !upstream::answer(&mut self.answer, request, body) {
                let body: &[u8] = if body.is_empty() { b"{}" } else { body };
                let reply = if body.starts_with(b"<") { XML_HEAD } else { JSON_HEAD };
                self.answer.extend_from_slice(reply);
                self.answer.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
                self.answer.extend_from_slice(b"\r\n\r\n");
                self.answer.extend_from_slice(body);
            }
            pending.drain(..head + length);
            ring.send(slot, &self.answer);
        }
        ring.receive(slot);
    }

    pub(crate) fn closed(&mut self, slot: usize) {
        self.connections.remove(&slot);
    }
}

/// The lengths of head and body, once both are there.
fn whole_request(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = memmem::find(bytes, b"\r\n\r\n")? + 4;
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(&bytes[..head]).ok()?;
    let length = request
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .and_then(|header| std::str::from_utf8(header.value).ok())
        .map_or(Some(0), |text| text.trim().parse().ok())?;
    (bytes.len() >= head + length).then_some((head, length))
}
