//! Requests of one connection, server side.

use std::fmt;

use memchr::memchr;

use super::{
    HttpError, Known, Limits, TARGET_BYTES_MAX,
    accept::{self, Accepts},
    body::{Announced, Body, Framed, announced},
    buffer::MessageBuffer,
    field::is_token_byte,
    head::{self, Fields, HeadScan, Scanned, Span},
    origin::is_host_and_port,
};

/// A request method. Methods are case-sensitive: `get` is [`Method::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// GET
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
    /// Any other token; the head keeps its text.
    Other,
}

impl Method {
    /// The method called `text`.
    pub fn of(text: &str) -> Self {
        match text {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "PATCH" => Self::Patch,
            "DELETE" => Self::Delete,
            "OPTIONS" => Self::Options,
            _ => Self::Other,
        }
    }

    /// Its name; `OTHER` for a method without one here.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Other => "OTHER",
        }
    }
}

/// What is known of a request line and its fields, as places in the head's bytes.
#[derive(Debug, Clone)]
struct Index {
    method: Method,
    is_http_10: bool,
    keep_alive: bool,
    expects_continue: bool,
    method_text: Span,
    target: Span,
    path: Span,
    query: Option<Span>,
    /// Length of a head that was found good; 0 as long as there is none.
    head_bytes: usize,
    fields: Fields,
}

impl Index {
    fn new() -> Self {
        Self {
            method: Method::Other,
            is_http_10: false,
            keep_alive: false,
            expects_continue: false,
            method_text: Span::default(),
            target: Span::default(),
            path: Span::default(),
            query: None,
            head_bytes: 0,
            fields: Fields::default(),
        }
    }

    /// Reads a whole head and judges all of it; what it announces of the body comes back.
    fn read(&mut self, head: &[u8], limits: &Limits) -> Result<Announced, HttpError> {
        self.head_bytes = 0;
        let mut slots = head::slots();
        let mut request = httparse::Request::new(&mut []);
        let slots = &mut slots[..limits.headers_max];
        match request.parse_with_uninit_headers(head, slots) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => {}
            Ok(_) => return Err(HttpError::RequestLine),
            Err(error) => return Err(head::head_error(error, HttpError::RequestLine, limits)),
        }
        let (Some(method), Some(target), Some(version)) =
            (request.method, request.path, request.version)
        else {
            return Err(HttpError::RequestLine);
        };
        self.method = Method::of(method);
        self.method_text = Span::within(head, method.as_bytes());
        self.is_http_10 = version == 0;
        self.fields.index(head, request.headers);
        let host = self.host(head)?;
        self.read_target(head, target, host)?;
        self.keep_alive = head::keeps_alive(&self.fields, head, self.is_http_10);
        self.expects_continue = self.expectation(head)?;
        let announced = announced(&self.fields, head, self.is_http_10)?;
        self.head_bytes = head.len();
        Ok(announced)
    }

    /// The one well-formed Host; HTTP/1.0 may do without.
    fn host<'a>(&self, head: &'a [u8]) -> Result<Option<&'a [u8]>, HttpError> {
        if self.fields.is_repeated(Known::Host) {
            return Err(HttpError::HostRepeated);
        }
        match self.fields.value(Known::Host, head) {
            Some(host) if is_host_and_port(host) => Ok(Some(host)),
            Some(_) => Err(HttpError::Host),
            None if self.is_http_10 => Ok(None),
            None => Err(HttpError::HostMissing),
        }
    }

    /// Splits the target. A URL is taken for its path only where it names this very host: whoever
    /// routes by one and whoever routes by the other must mean the same.
    fn read_target(
        &mut self,
        head: &[u8],
        target: &str,
        host: Option<&[u8]>,
    ) -> Result<(), HttpError> {
        if target.len() > TARGET_BYTES_MAX {
            return Err(HttpError::TargetTooLong { limit: TARGET_BYTES_MAX });
        }
        // Without an early exit the compiler looks at many bytes at once.
        let is_bad = |byte: u8| !byte.is_ascii_graphic() || byte == b'#';
        if target.bytes().fold(false, |found, byte| found | is_bad(byte)) {
            return Err(HttpError::Target);
        }
        let is_asterisk = target == "*" && self.method == Method::Options;
        let path_and_query = if target.starts_with('/') || is_asterisk {
            target
        } else {
            let (scheme, rest) = target.split_once("://").ok_or(HttpError::Target)?;
            if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
                return Err(HttpError::Target);
            }
            let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            if !host.is_some_and(|host| host.eq_ignore_ascii_case(authority.as_bytes())) {
                return Err(HttpError::HostMismatch);
            }
            path
        };
        let path_and_query = path_and_query.as_bytes();
        let (path, query) = match memchr(b'?', path_and_query) {
            Some(mark) => (&path_and_query[..mark], Some(&path_and_query[mark + 1..])),
            None => (path_and_query, None),
        };
        self.target = Span::within(head, target.as_bytes());
        self.path = Span::within(head, path);
        self.query = query.map(|query| Span::within(head, query));
        Ok(())
    }

    /// Whether the client waits for `100 Continue`. An HTTP/1.0 client cannot (RFC 9110 section
    /// 10.1.1).
    fn expectation(&self, head: &[u8]) -> Result<bool, HttpError> {
        if self.is_http_10 {
            return Ok(false);
        }
        let mut expects = false;
        for value in self.fields.values(Known::Expect, head) {
            if !value.eq_ignore_ascii_case(b"100-continue") {
                return Err(HttpError::Expectation);
            }
            expects = true;
        }
        Ok(expects)
    }
}

/// A request inside the reader's buffer. Cheap to copy.
#[derive(Clone, Copy)]
pub struct RequestView<'a> {
    index: &'a Index,
    head: &'a [u8],
    body: &'a [u8],
}

impl<'a> RequestView<'a> {
    /// The method.
    pub fn method(&self) -> Method {
        self.index.method
    }

    /// The method as it was sent.
    pub fn method_text(&self) -> &'a str {
        self.index.method_text.text(self.head)
    }

    /// The target as it was sent.
    pub fn target(&self) -> &'a str {
        self.index.target.text(self.head)
    }

    /// The path, percent-encoded as it was sent; `*` for an OPTIONS about the whole server.
    pub fn path(&self) -> &'a str {
        if self.index.path.is_empty() { "/" } else { self.index.path.text(self.head) }
    }

    /// What follows the first question mark.
    pub fn query(&self) -> Option<&'a str> {
        self.index.query.map(|query| query.text(self.head))
    }

    /// Whether the client speaks HTTP/1.0: no chunked answer, and keep-alive must be told.
    pub fn is_http_10(&self) -> bool {
        self.index.is_http_10
    }

    /// Whether the client means to send another request on this connection.
    pub fn keep_alive(&self) -> bool {
        self.index.keep_alive
    }

    /// The first value of a field.
    #[inline]
    pub fn header(&self, known: Known) -> Option<&'a [u8]> {
        self.index.fields.value(known, self.head)
    }

    /// The first value of a field as text; `None` also where it is not UTF-8.
    #[inline]
    pub fn header_text(&self, known: Known) -> Option<&'a str> {
        self.header(known).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// All values of a field that may be given in several lines.
    pub fn header_values(&self, known: Known) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.index.fields.values(known, self.head)
    }

    /// Whether a field stands in the head more than once.
    pub fn repeated(&self, known: Known) -> bool {
        self.index.fields.is_repeated(known)
    }

    /// All fields in the order and case they were sent.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.index.fields.iter(self.head)
    }

    /// What the client accepts, over all its Accept lines.
    pub fn accepts(&self) -> Accepts {
        accept::parse_all(self.header_values(Known::Accept))
    }

    /// The body, without any transfer framing.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

impl fmt::Debug for RequestView<'_> {
    /// Fields and query may hold credentials: neither is shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RequestView")
            .field("method", &self.method_text())
            .field("path", &self.path())
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Bytes are missing.
    NeedMore {
        /// The client holds its body back until it reads [`super::CONTINUE`]. Told once a request.
        send_continue: bool,
    },
    /// [`RequestReader::request`] gives the request.
    Ready,
}

/// Where the reader is in the current request.
#[derive(Debug)]
enum State {
    Head { scan: HeadScan, blank_line_skipped: bool },
    Body { body: Body, owes_continue: bool },
    Ready(Framed),
    Failed(HttpError),
}

impl State {
    fn start() -> Self {
        Self::Head { scan: HeadScan::default(), blank_line_skipped: false }
    }
}

/// Reads the requests of one connection, one after the other, out of one buffer.
///
/// Bytes go in through [`buffer`](Self::buffer), [`poll`](Self::poll) says whether a request is
/// there, [`consume`](Self::consume) makes way for the next. Bodies stay where they arrived.
#[derive(Debug)]
pub struct RequestReader {
    limits: Limits,
    buffer: MessageBuffer,
    state: State,
    index: Index,
}

impl RequestReader {
    /// A reader for a fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: limits.clamped(),
            buffer: MessageBuffer::default(),
            state: State::start(),
            index: Index::new(),
        }
    }

    /// Where arriving bytes are to be appended; what is in there already must stay. Allowed at any
    /// time, also while a request is ready: it and all its positions stay true.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.append_here()
    }

    /// Looks at the bytes that are there. An error is final: it is repeated from then on.
    pub fn poll(&mut self) -> Result<Progress, HttpError> {
        let outcome = self.advance();
        if let Err(error) = outcome {
            self.state = State::Failed(error);
        }
        outcome
    }

    fn advance(&mut self) -> Result<Progress, HttpError> {
        if matches!(self.state, State::Head { .. }) && !self.read_head()? {
            return Ok(Progress::NeedMore { send_continue: false });
        }
        match &mut self.state {
            State::Body { body, owes_continue } => {
                let head_end = self.index.head_bytes;
                if let Some(framed) = body.advance(&mut self.buffer, head_end, &self.limits)? {
                    self.state = State::Ready(framed);
                    return Ok(Progress::Ready);
                }
                // A client that has begun to send its body waits for nothing.
                let send_continue = std::mem::take(owes_continue)
                    && matches!(body, Body::Length(_) | Body::Chunked { .. })
                    && self.buffer.message().len() == head_end;
                Ok(Progress::NeedMore { send_continue })
            }
            State::Ready(_) => Ok(Progress::Ready),
            State::Failed(error) => Err(*error),
            State::Head { .. } => Ok(Progress::NeedMore { send_continue: false }),
        }
    }

    /// Whether the head is there; if so, it was judged and the body is next.
    fn read_head(&mut self) -> Result<bool, HttpError> {
        loop {
            let State::Head { scan, blank_line_skipped } = &mut self.state else {
                return Ok(true);
            };
            let message = self.buffer.message();
            match message.first() {
                None => return Ok(false),
                // Another protocol (TLS, as a rule) would otherwise be waited on until the
                // timeout.
                Some(first) if !is_token_byte(*first) && !b"\r\n".contains(first) => {
                    return Err(HttpError::RequestLine);
                }
                Some(_) => {}
            }
            match scan.advance(message, &self.limits)? {
                Scanned::Incomplete => return Ok(false),
                Scanned::FirstLineTooLong => {
                    return Err(HttpError::TargetTooLong { limit: TARGET_BYTES_MAX });
                }
                // One is forgiven (RFC 9112 section 2.2): some clients end a body with it.
                Scanned::LeadingLine if *blank_line_skipped => return Err(HttpError::LeadingLines),
                Scanned::LeadingLine => {
                    *scan = HeadScan::default();
                    *blank_line_skipped = true;
                    self.buffer.consume(2);
                }
                Scanned::Complete(length) => {
                    let announced = self.index.read(&message[..length], &self.limits)?;
                    let body = match announced {
                        Announced::Nothing => Body::None,
                        Announced::Length(bytes) => Body::of_length(bytes, &self.limits)?,
                        Announced::Chunked => Body::chunked(length),
                    };
                    let owes_continue = self.index.expects_continue;
                    self.state = State::Body { body, owes_continue };
                }
            }
        }
    }

    /// The request, once [`poll`](Self::poll) said it is ready; before that, a view without body
    /// of whatever head was read last.
    pub fn request(&self) -> RequestView<'_> {
        let message = self.buffer.message();
        let head = message.get(..self.index.head_bytes).unwrap_or_default();
        let body = match self.state {
            State::Ready(framed) => message.get(head.len()..framed.body_end).unwrap_or_default(),
            _ => &[],
        };
        RequestView { index: &self.index, head, body }
    }

    /// The head of a request whose body is still arriving or was refused, for an early answer.
    pub fn partial(&self) -> Option<RequestView<'_>> {
        (self.index.head_bytes > 0).then(|| self.request())
    }

    /// Drops the request that was ready; pipelined bytes behind it stay.
    pub fn consume(&mut self) {
        if let State::Ready(framed) = self.state {
            self.buffer.consume(framed.message_end);
            self.index.head_bytes = 0;
            self.state = State::start();
        }
    }

    /// Whether the connection is between requests with nothing buffered: closing it loses nothing.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Head { .. }) && self.buffer.is_empty()
    }

    /// Whether the current request's head has arrived and its body has not.
    pub fn is_in_body(&self) -> bool {
        matches!(self.state, State::Body { .. })
    }
}

#[cfg(test)]
mod tests;
