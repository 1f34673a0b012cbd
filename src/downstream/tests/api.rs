//! A small HTTP API on threads, scripted by hand: what it says and when is up to the test.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// An API that listens as long as the process lives.
pub(super) struct Api {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Api {
    /// `script` runs once for each connection, on a thread of its own, with the connection's
    /// number.
    pub(super) fn start(script: impl Fn(usize, &mut Talk) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (script, count) = (Arc::new(script), Arc::clone(&connections));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let script = Arc::clone(&script);
                thread::spawn(move || script(number, &mut Talk::new(stream.unwrap())));
            }
        });
        Self { address, connections }
    }

    /// Answers every request of every connection with `answer`.
    pub(super) fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |_, talk| {
            while talk.request().is_some() {
                talk.say(&answer);
            }
        })
    }

    /// How many connections were made to it.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// One connection, from the API's side.
pub(super) struct Talk {
    stream: TcpStream,
    pending: Vec<u8>,
}

impl Talk {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { stream, pending: Vec::new() }
    }

    /// The next request, head and body; nothing when the client has gone.
    pub(super) fn request(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.request_end() {
                let request: Vec<u8> = self.pending.drain(..end).collect();
                return Some(String::from_utf8(request).unwrap());
            }
            let mut bytes = [0; 8192];
            match self.stream.read(&mut bytes) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.pending.extend_from_slice(&bytes[..count]),
            }
        }
    }

    fn request_end(&self) -> Option<usize> {
        let head = self.pending.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&self.pending[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let end = head + length.map_or(0, |length| length.trim().parse().unwrap());
        (self.pending.len() >= end).then_some(end)
    }

    /// Sends bytes; whether the client was still there.
    pub(super) fn say(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Reads a few bytes and no more.
    pub(super) fn sip(&mut self) {
        let _ = self.stream.read(&mut [0; 64]);
    }

    /// How long it took the client to go away, at most `limit`.
    pub(super) fn gone_within(&mut self, limit: Duration) -> Option<Duration> {
        let started = Instant::now();
        self.stream.set_read_timeout(Some(limit)).unwrap();
        match self.stream.read(&mut [0; 64]) {
            Ok(1..) => None,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                None
            }
            Ok(0) | Err(_) => Some(started.elapsed()),
        }
    }

    /// Closes with a reset instead of a goodbye.
    pub(super) fn reset(&mut self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
}

/// Lets time pass on the API's thread.
pub(super) fn pause(duration: Duration) {
    thread::park_timeout(duration);
}

/// A JSON answer with its length.
pub(super) fn json_answer(status: &str, body: &str) -> String {
    answer(status, "Content-Type: application/json\r\n", body.as_bytes())
}

/// An answer with its length; for bodies that are text.
pub(super) fn answer(status: &str, headers: &str, body: &[u8]) -> String {
    String::from_utf8(raw_answer(status, headers, body)).unwrap()
}

/// An answer with its length.
pub(super) fn raw_answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
