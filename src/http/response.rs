//! Responses of one connection, client side.

use std::fmt;

use super::{
    HttpError, INTERIM_RESPONSES_MAX, Known, Limits, Method,
    body::{Announced, Body, Framed, announced},
    buffer::MessageBuffer,
    head::{self, Fields, HeadScan, Scanned},
};

/// How far a response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseProgress {
    /// Bytes are missing.
    NeedMore,
    /// Status, fields and body are there.
    Ready,
}

/// Where the reader is.
#[derive(Debug)]
enum State {
    /// No request is out.
    Idle,
    Head {
        scan: HeadScan,
        interim: usize,
    },
    Body(Body),
    Ready(Framed),
    Failed(HttpError),
}

/// Reads the responses of one connection. One request is out at a time; [`expect`](Self::expect)
/// names it before its first byte is sent.
pub struct ResponseReader {
    limits: Limits,
    buffer: MessageBuffer,
    state: State,
    request_method: Method,
    status: u16,
    keep_alive: bool,
    head_bytes: usize,
    fields: Fields,
}

impl ResponseReader {
    /// A reader for a fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: limits.clamped(),
            buffer: MessageBuffer::default(),
            state: State::Idle,
            request_method: Method::Other,
            status: 0,
            keep_alive: false,
            head_bytes: 0,
            fields: Fields::default(),
        }
    }

    /// Where arriving bytes are to be appended; what is in there already must stay.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.append_here()
    }

    /// A request with this method goes out: its response is next. Bytes that are there already
    /// make the connection unusable, for they answer nothing.
    pub fn expect(&mut self, request_method: Method) {
        self.request_method = request_method;
        self.state = match self.state {
            State::Failed(error) => State::Failed(error),
            _ if !self.buffer.is_empty() => State::Failed(HttpError::Unsolicited),
            _ => State::Head { scan: HeadScan::default(), interim: 0 },
        };
    }

    /// Looks at the bytes that are there. An error is final: it is repeated from then on.
    pub fn poll(&mut self) -> Result<ResponseProgress, HttpError> {
        let outcome = self.advance();
        self.keep_failure(outcome)
    }

    /// Whether the head of the response is there: status and fields can be read, and the body either
    /// whole, with [`poll`](Self::poll), or in parts, with [`take_body`](Self::take_body).
    pub fn poll_head(&mut self) -> Result<bool, HttpError> {
        let outcome = match self.state {
            State::Failed(error) => Err(error),
            State::Idle if !self.buffer.is_empty() => Err(HttpError::Unsolicited),
            State::Idle => Ok(false),
            _ => self.read_head(),
        };
        self.keep_failure(outcome)
    }

    /// Appends what has come of the body to `out` and forgets it: a body of any length takes no room
    /// here. Ready when the body has ended. For once the head is there, instead of
    /// [`poll`](Self::poll).
    pub fn take_body(&mut self, out: &mut Vec<u8>) -> Result<ResponseProgress, HttpError> {
        let outcome = match &mut self.state {
            State::Body(body) => body.take(&mut self.buffer, self.head_bytes, out),
            State::Ready(framed) => Ok(Some(*framed)),
            State::Failed(error) => Err(*error),
            State::Idle | State::Head { .. } => Ok(None),
        };
        match self.keep_failure(outcome)? {
            Some(framed) => {
                self.state = State::Ready(framed);
                Ok(ResponseProgress::Ready)
            }
            None => Ok(ResponseProgress::NeedMore),
        }
    }

    /// The server closed its side while its body was taken in parts. An error where the body was to
    /// be longer.
    pub fn end_of_taken(&mut self) -> Result<(), HttpError> {
        let outcome = match self.state {
            State::Body(Body::UntilClose) | State::Ready(_) => Ok(()),
            State::Failed(error) => Err(error),
            _ => Err(HttpError::Truncated),
        };
        self.keep_alive = false;
        self.keep_failure(outcome)
    }

    fn keep_failure<T>(&mut self, outcome: Result<T, HttpError>) -> Result<T, HttpError> {
        if let Err(error) = &outcome {
            let error = *error;
            self.state = State::Failed(error);
        }
        outcome
    }

    /// The server closed its side. Ends a body that lasts until then; anywhere else a message is
    /// cut.
    pub fn end_of_stream(&mut self) -> Result<ResponseProgress, HttpError> {
        let progress = self.poll()?;
        if progress == ResponseProgress::Ready {
            self.keep_alive = false;
            return Ok(progress);
        }
        let error = match self.state {
            State::Body(Body::UntilClose) => {
                let end = self.buffer.message().len();
                self.state = State::Ready(Framed { body_end: end, message_end: end });
                return Ok(ResponseProgress::Ready);
            }
            State::Body(_) => HttpError::Truncated,
            _ if self.buffer.is_empty() => HttpError::Closed,
            _ => HttpError::Truncated,
        };
        self.state = State::Failed(error);
        Err(error)
    }

    fn advance(&mut self) -> Result<ResponseProgress, HttpError> {
        if matches!(self.state, State::Head { .. }) && !self.read_head()? {
            return Ok(ResponseProgress::NeedMore);
        }
        match &mut self.state {
            State::Idle if self.buffer.is_empty() => Ok(ResponseProgress::NeedMore),
            State::Idle => Err(HttpError::Unsolicited),
            State::Body(body) => {
                let framed = body.advance(&mut self.buffer, self.head_bytes, &self.limits)?;
                let Some(framed) = framed else { return Ok(ResponseProgress::NeedMore) };
                self.state = State::Ready(framed);
                Ok(ResponseProgress::Ready)
            }
            State::Ready(_) => Ok(ResponseProgress::Ready),
            State::Failed(error) => Err(*error),
            State::Head { .. } => Ok(ResponseProgress::NeedMore),
        }
    }

    /// Whether the head of the final response is there.
    fn read_head(&mut self) -> Result<bool, HttpError> {
        loop {
            let State::Head { scan, interim } = &mut self.state else { return Ok(true) };
            let length = match scan.advance(self.buffer.message(), &self.limits)? {
                Scanned::Incomplete => return Ok(false),
                Scanned::LeadingLine => return Err(HttpError::LeadingLines),
                Scanned::FirstLineTooLong => return Err(HttpError::StatusLine),
                Scanned::Complete(length) => length,
            };
            let mut interim = *interim;
            let is_http_10 = self.parse_head(length)?;
            match self.status {
                101 => return Err(HttpError::SwitchedProtocols),
                100..=199 => {
                    interim += 1;
                    if interim > INTERIM_RESPONSES_MAX {
                        return Err(HttpError::InterimResponses { limit: INTERIM_RESPONSES_MAX });
                    }
                    self.buffer.consume(length);
                    self.head_bytes = 0;
                    self.state = State::Head { scan: HeadScan::default(), interim };
                }
                _ => self.state = State::Body(self.body_of(length, is_http_10)?),
            }
        }
    }

    /// Parses a whole head; tells whether the server speaks HTTP/1.0.
    fn parse_head(&mut self, length: usize) -> Result<bool, HttpError> {
        let head = self.buffer.message().get(..length).unwrap_or_default();
        let mut slots = head::slots();
        let mut response = httparse::Response::new(&mut []);
        let slots = &mut slots[..self.limits.headers_max];
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            head,
            slots,
        );
        match parsed {
            Ok(httparse::Status::Complete(end)) if end == length => {}
            Ok(_) => return Err(HttpError::StatusLine),
            Err(error) => {
                return Err(head::head_error(error, HttpError::StatusLine, &self.limits));
            }
        }
        let (Some(version), Some(status)) = (response.version, response.code) else {
            return Err(HttpError::StatusLine);
        };
        if !(100..=599).contains(&status) {
            return Err(HttpError::StatusLine);
        }
        self.status = status;
        self.head_bytes = length;
        self.fields.index(head, response.headers);
        self.keep_alive = head::keeps_alive(&self.fields, head, version == 0);
        Ok(version == 0)
    }

    /// How the body is framed (RFC 9112 section 6.3).
    fn body_of(&mut self, head_end: usize, is_http_10: bool) -> Result<Body, HttpError> {
        let head = self.buffer.message().get(..head_end).unwrap_or_default();
        let announced = announced(&self.fields, head, is_http_10)?;
        if self.request_method == Method::Head {
            return Ok(Body::None);
        }
        if matches!(self.status, 204 | 304) {
            // What is announced may come nevertheless, and would be taken for the next response. For
            // 304 a length is that of another response (RFC 9110 section 8.6).
            let is_body_announced = match announced {
                Announced::Chunked => true,
                Announced::Length(bytes) => self.status == 204 && bytes > 0,
                Announced::Nothing => false,
            };
            self.keep_alive &= !is_body_announced;
            return Ok(Body::None);
        }
        match announced {
            // Whether that is too long depends on how it is read.
            Announced::Length(bytes) => usize::try_from(bytes)
                .map(Body::Length)
                .map_err(|_| HttpError::BodyTooLarge { limit: self.limits.body_bytes_max }),
            Announced::Chunked => Ok(Body::chunked(head_end)),
            Announced::Nothing => {
                self.keep_alive = false;
                Ok(Body::UntilClose)
            }
        }
    }

    fn head(&self) -> &[u8] {
        self.buffer.message().get(..self.head_bytes).unwrap_or_default()
    }

    /// The status of the response that is ready.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first value of a field.
    pub fn header(&self, known: Known) -> Option<&[u8]> {
        self.fields.value(known, self.head())
    }

    /// Whether a field stands in the head more than once.
    pub fn repeated(&self, known: Known) -> bool {
        self.fields.is_repeated(known)
    }

    /// All fields in the order and case they were sent.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter(self.head())
    }

    /// The body of the response that is ready, without any transfer framing.
    pub fn body(&self) -> &[u8] {
        match self.state {
            State::Ready(framed) => {
                self.buffer.message().get(self.head_bytes..framed.body_end).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// Whether the connection can carry another request after this response.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Drops the response that was ready.
    pub fn consume(&mut self) {
        if let State::Ready(framed) = self.state {
            self.buffer.consume(framed.message_end);
            self.fields.clear();
            self.head_bytes = 0;
            self.state = State::Idle;
        }
    }

    /// Whether the head has arrived and the body has not: from here another deadline holds.
    pub fn is_in_body(&self) -> bool {
        matches!(self.state, State::Body(_))
    }

    /// Whether no request is out and nothing is buffered: only such a connection may be used
    /// again.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle) && self.buffer.is_empty()
    }
}

impl fmt::Debug for ResponseReader {
    /// Fields and body may hold credentials: neither is shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ResponseReader")
            .field("status", &self.status)
            .field("buffered_bytes", &self.buffer.message().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
