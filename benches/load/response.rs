//! Incremental HTTP/1.1 response reader: bodies by length, chunked, or until the close.

use memchr::memmem;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

#[derive(Clone, Copy)]
enum Chunk {
    Size,
    Data(usize),
    Trailer,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    NeedMore,
    Complete,
    Malformed,
}

pub(crate) struct Response {
    bytes: Vec<u8>,
    /// What of `bytes` the head and the chunk framing have used up.
    at: usize,
    framing: Option<Framing>,
    chunk: Chunk,
    decoded: Vec<u8>,
    head_bytes: usize,
    pub(crate) status: u16,
    pub(crate) event_stream: bool,
    pub(crate) keep_alive: bool,
    pub(crate) session: Option<String>,
}

impl Response {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            at: 0,
            framing: None,
            chunk: Chunk::Size,
            decoded: Vec::new(),
            head_bytes: 0,
            status: 0,
            event_stream: false,
            keep_alive: true,
            session: None,
        }
    }

    /// Takes what arrived. An empty piece means that the peer closed.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Progress {
        if piece.is_empty() {
            self.keep_alive = false;
            return match self.framing {
                Some(Framing::UntilClose) => Progress::Complete,
                _ => Progress::Malformed,
            };
        }
        self.bytes.extend_from_slice(piece);
        if self.framing.is_none() {
            match self.read_head() {
                Progress::Complete => {}
                other => return other,
            }
        }
        match self.framing {
            Some(Framing::Length(length)) if self.bytes.len() >= self.head_bytes + length => {
                Progress::Complete
            }
            Some(Framing::Chunked) => self.dechunk(),
            _ => Progress::NeedMore,
        }
    }

    /// Forgets the response in hand, for the next one of the same connection.
    pub(crate) fn next(&mut self) {
        let end = match self.framing {
            Some(Framing::Length(length)) => (self.head_bytes + length).min(self.bytes.len()),
            Some(Framing::Chunked) => self.at,
            _ => self.bytes.len(),
        };
        self.bytes.drain(..end);
        self.at = 0;
        self.framing = None;
        self.chunk = Chunk::Size;
        self.decoded.clear();
        self.session = None;
    }

    pub(crate) fn has_head(&self) -> bool {
        self.framing.is_some()
    }

    /// The body as far as it is there.
    pub(crate) fn body(&self) -> &[u8] {
        match self.framing {
            Some(Framing::Length(length)) => {
                &self.bytes[self.head_bytes..(self.head_bytes + length).min(self.bytes.len())]
            }
            Some(Framing::Chunked) => &self.decoded,
            Some(Framing::UntilClose) => &self.bytes[self.head_bytes..],
            None => &[],
        }
    }

    /// Drops what of a long-lived stream has been looked at, so that it does not grow.
    pub(crate) fn forget_body(&mut self) {
        match self.framing {
            Some(Framing::Chunked) => {
                self.decoded.clear();
                self.bytes.drain(..self.at);
                self.at = 0;
                self.head_bytes = 0;
            }
            Some(Framing::UntilClose) => self.bytes.truncate(self.head_bytes),
            _ => {}
        }
    }

    fn read_head(&mut self) -> Progress {
        let mut headers = [httparse::EMPTY_HEADER; 48];
        let mut head = httparse::Response::new(&mut headers);
        self.head_bytes = match head.parse(&self.bytes) {
            Ok(httparse::Status::Complete(bytes)) => bytes,
            Ok(httparse::Status::Partial) => return Progress::NeedMore,
            Err(_) => return Progress::Malformed,
        };
        self.status = head.code.unwrap_or(0);
        self.keep_alive = head.version == Some(1);
        self.event_stream = false;
        let mut framing = Framing::UntilClose;
        for header in head.headers.iter() {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let text = std::str::from_utf8(header.value).unwrap_or_default();
                let Ok(length) = text.trim().parse() else { return Progress::Malformed };
                framing = Framing::Length(length);
            } else if is("transfer-encoding") {
                framing = Framing::Chunked;
            } else if is("content-type") {
                self.event_stream = header.value.starts_with(b"text/event-stream");
            } else if is("connection") {
                self.keep_alive = !header.value.eq_ignore_ascii_case(b"close");
            } else if is("mcp-session-id") {
                self.session = Some(String::from_utf8_lossy(header.value).into_owned());
            }
        }
        if matches!(self.status, 100..=199 | 204 | 304) {
            framing = Framing::Length(0);
        }
        self.framing = Some(framing);
        self.at = self.head_bytes;
        Progress::Complete
    }

    fn dechunk(&mut self) -> Progress {
        loop {
            let rest = &self.bytes[self.at..];
            if let Chunk::Data(size) = self.chunk {
                if rest.len() < size + 2 {
                    return Progress::NeedMore;
                }
                self.decoded.extend_from_slice(&rest[..size]);
                self.at += size + 2;
                self.chunk = Chunk::Size;
                continue;
            }
            let Some(line_end) = memchr::memchr(b'\n', rest) else { return Progress::NeedMore };
            let line = rest[..line_end].trim_ascii();
            self.at += line_end + 1;
            if matches!(self.chunk, Chunk::Trailer) {
                if line.is_empty() {
                    return Progress::Complete;
                }
                continue;
            }
            let digits = std::str::from_utf8(line).unwrap_or_default();
            self.chunk = match usize::from_str_radix(digits, 16) {
                Ok(0) => Chunk::Trailer,
                Ok(size) => Chunk::Data(size),
                Err(_) => return Progress::Malformed,
            };
        }
    }
}

/// What is wrong with a finished answer, if anything is: it must have status 200, be of the kind
/// asked for, carry the request's own id, and be no error of either sort.
pub(crate) fn fault(response: &Response, id: &[u8], event_stream: bool) -> Option<&'static str> {
    let body = response.body();
    let has = |text: &[u8]| memmem::find(body, text).is_some();
    if response.status != 200 {
        Some("the status is not 200")
    } else if response.event_stream != event_stream {
        Some("the answer is of the other kind (JSON or event stream)")
    } else if !has(id) {
        Some("the request's id is not in the answer")
    } else if has(b"\"error\":") || has(b"\"isError\":true") {
        Some("the answer is an error")
    } else {
        None
    }
}
