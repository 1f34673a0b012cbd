//! Reading events as they arrive, cut anywhere.
//!
//! Every byte is looked at once. A line and an event are bounded; past a bound the stream is of no
//! more use, for where the next event starts is known, but what was lost is not.

use std::fmt;

use memchr::memchr2;
use thiserror::Error;

/// The byte order mark that may start a stream.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The stream's last event id as of this event; ids stick until another one comes.
    pub id: Option<String>,
    /// The event's name; `None` stands for `message`.
    pub event: Option<String>,
    /// The data lines, joined by line feeds. Raw bytes: whoever reads them checks them.
    pub data: Vec<u8>,
    /// The reconnection time this event set.
    pub retry_ms: Option<u32>,
}

/// What cannot be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ParserError {
    /// A line is too long.
    #[error("a line of the event stream is longer than {limit} bytes")]
    LineTooLong {
        /// Longest line read.
        limit: usize,
    },
    /// An event is too large.
    #[error("an event of the stream is larger than {limit} bytes")]
    EventTooLarge {
        /// Largest event read.
        limit: usize,
    },
}

/// Reads one event stream.
#[derive(Clone)]
pub struct Parser {
    line_bytes_max: usize,
    event_bytes_max: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    event: Option<String>,
    event_retry_ms: Option<u32>,
    /// The id that the event being read has, its own or that of the one before.
    last_id: Option<String>,
    /// The id of the last event that was complete.
    dispatched_id: Option<String>,
    retry_ms: Option<u32>,
    /// The line before ended in CR: an LF that follows belongs to it.
    after_return: bool,
    is_first_line: bool,
    failed: Option<ParserError>,
}

impl Parser {
    /// A parser at the start of a stream.
    pub fn new(line_bytes_max: usize, event_bytes_max: usize) -> Self {
        Self {
            line_bytes_max,
            event_bytes_max,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event: None,
            event_retry_ms: None,
            last_id: None,
            dispatched_id: None,
            retry_ms: None,
            after_return: false,
            is_first_line: true,
            failed: None,
        }
    }

    /// Takes in bytes and appends the events they complete. An error is final; the events before
    /// it are delivered. What is incomplete when the stream ends never was an event.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), ParserError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let outcome = self.read(bytes, events);
        self.failed = outcome.err();
        outcome
    }

    /// The id of the last complete event that had one, for `Last-Event-ID` when reconnecting: an
    /// event that broke off is sent again only to who does not name it.
    pub fn last_event_id(&self) -> Option<&str> {
        self.dispatched_id.as_deref()
    }

    /// How long to wait before reconnecting, where the stream said so.
    pub fn retry_ms(&self) -> Option<u32> {
        self.retry_ms
    }

    fn read(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), ParserError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\r', b'\n', rest) else {
                self.check_line(self.line.len() + rest.len())?;
                self.line.extend_from_slice(rest);
                return Ok(());
            };
            self.check_line(self.line.len() + end)?;
            self.after_return = rest[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&rest[..end], events)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&rest[..end]);
                let outcome = self.take_line(&line, events);
                line.clear();
                self.line = line;
                outcome?;
            }
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    fn check_line(&self, length: usize) -> Result<(), ParserError> {
        let limit = self.line_bytes_max;
        if length > limit { Err(ParserError::LineTooLong { limit }) } else { Ok(()) }
    }

    /// Takes in one line without its end.
    fn take_line(&mut self, line: &[u8], events: &mut Vec<Event>) -> Result<(), ParserError> {
        let mut line = line;
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.append_data(value)?,
            b"event" => self.event = (!value.is_empty()).then(|| text(value)),
            // An id with NUL is ignored; an empty one resets (both by the standard).
            b"id" if !value.contains(&0) => {
                self.last_id = (!value.is_empty()).then(|| text(value));
            }
            b"retry" => {
                if let Some(retry_ms) = digits(value) {
                    self.event_retry_ms = Some(retry_ms);
                    self.retry_ms = Some(retry_ms);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn append_data(&mut self, value: &[u8]) -> Result<(), ParserError> {
        let limit = self.event_bytes_max;
        if self.data.len() + usize::from(self.has_data) + value.len() > limit {
            return Err(ParserError::EventTooLarge { limit });
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(())
    }

    /// An empty line ends the event. Without a data line there was none, but its id counts.
    fn dispatch(&mut self, events: &mut Vec<Event>) {
        self.dispatched_id.clone_from(&self.last_id);
        let (event, retry_ms) = (self.event.take(), self.event_retry_ms.take());
        if std::mem::take(&mut self.has_data) {
            let data = std::mem::take(&mut self.data);
            events.push(Event { id: self.last_id.clone(), event, data, retry_ms });
        }
    }
}

impl fmt::Debug for Parser {
    /// Data is not shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Parser")
            .field("last_id", &self.last_id)
            .field("buffered_bytes", &(self.line.len() + self.data.len()))
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// A number of ASCII digits only; one that is out of range is ignored like any other malformed
/// one.
fn digits(value: &[u8]) -> Option<u32> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http::sse;

    fn feed_pieces(pieces: &[&[u8]]) -> (Vec<Event>, Result<(), ParserError>, Parser) {
        let mut parser = Parser::new(64, 96);
        let mut events = Vec::new();
        for piece in pieces {
            if let Err(error) = parser.feed(piece, &mut events) {
                return (events, Err(error), parser);
            }
        }
        (events, Ok(()), parser)
    }

    /// Parses whole, cut at every point and byte by byte; all must agree.
    fn feed(bytes: &[u8]) -> (Vec<Event>, Result<(), ParserError>, Parser) {
        let whole = feed_pieces(&[bytes]);
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            let cut_once = feed_pieces(&[left, right]);
            assert_eq!((&cut_once.0, &cut_once.1), (&whole.0, &whole.1), "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let bytewise = feed_pieces(&single);
        assert_eq!((&bytewise.0, &bytewise.1), (&whole.0, &whole.1), "byte by byte");
        whole
    }

    fn event(id: Option<&str>, name: Option<&str>, data: &str, retry_ms: Option<u32>) -> Event {
        let (id, event) = (id.map(str::to_owned), name.map(str::to_owned));
        Event { id, event, data: data.as_bytes().to_vec(), retry_ms }
    }

    #[test]
    fn reads_events() {
        let cases: [(&str, Vec<Event>); 14] = [
            ("", vec![]),
            ("data: a\n\n", vec![event(None, None, "a", None)]),
            ("\u{feff}data: a\r\n\r\n", vec![event(None, None, "a", None)]),
            ("data:a\rdata: b\r\r", vec![event(None, None, "a\nb", None)]),
            ("data:  a\n\n", vec![event(None, None, " a", None)]),
            ("data\n\ndata:\n\n", vec![event(None, None, "", None), event(None, None, "", None)]),
            (": comment\n\nevent: x\n\n", vec![]),
            (
                "id: 7\nevent: message\nretry: 12\ndata: {}\n\ndata: b\n\n",
                vec![
                    event(Some("7"), Some("message"), "{}", Some(12)),
                    event(Some("7"), None, "b", None),
                ],
            ),
            ("id: 1\n\ndata: a\n\n", vec![event(Some("1"), None, "a", None)]),
            ("id: 1\nid: 2\0\ndata: a\n\n", vec![event(Some("1"), None, "a", None)]),
            ("id: 1\nid\ndata: a\n\n", vec![event(None, None, "a", None)]),
            ("retry: 1x\nretry: +1\nretry: 99999999999\ndata: a\n\n", {
                vec![event(None, None, "a", None)]
            }),
            ("data: a\nDATA: b\ndata : c\n\n", vec![event(None, None, "a", None)]),
            ("data: unfinished\n", vec![]),
        ];
        for (text, expected) in cases {
            let (events, outcome, _) = feed(text.as_bytes());
            assert_eq!((events, outcome), (expected, Ok(())), "{text:?}");
        }
    }

    #[test]
    fn remembers_id_and_retry_without_data() {
        let (events, _, parser) = feed(b"id: 3\nretry: 40\n\n");
        assert_eq!(events, vec![]);
        assert_eq!((parser.last_event_id(), parser.retry_ms()), (Some("3"), Some(40)));
    }

    #[test]
    fn an_event_that_breaks_off_has_no_id_to_go_on_from() {
        let (_, _, parser) = feed(b"id: 3\ndata: a\n\nid: 4\ndata: b\n");
        assert_eq!(parser.last_event_id(), Some("3"));
        let (_, _, parser) = feed(b"id: 3\ndata: a\n\nid: 4\ndata: b\n\n");
        assert_eq!(parser.last_event_id(), Some("4"));
    }

    #[test]
    fn bounds_lines_and_events() {
        let line = |length: usize| format!("data: {}\n\n", "x".repeat(length - 6));
        assert_eq!(feed(line(64).as_bytes()).1, Ok(()));
        let (_, outcome, mut parser) = feed(line(65).as_bytes());
        assert_eq!(outcome, Err(ParserError::LineTooLong { limit: 64 }));
        let refused = parser.feed(b"data: a\n\n", &mut Vec::new());
        assert_eq!(refused, Err(ParserError::LineTooLong { limit: 64 }));
        let many = "data: 0123456789\n".repeat(9);
        assert_eq!(feed(many.as_bytes()).1, Err(ParserError::EventTooLarge { limit: 96 }));
        assert_eq!(feed("event: x\n\n".repeat(99).as_bytes()).1, Ok(()));
    }

    proptest! {
        #[test]
        fn garbage_is_the_same_however_it_is_cut(
            text in "(data|id|event|retry|[:\r\n\0 a7é\u{feff}]){0,40}",
            cuts in proptest::collection::vec(1_usize..9, 1..20),
        ) {
            let bytes = text.as_bytes();
            let whole = feed_pieces(&[bytes]);
            let (mut pieces, mut rest) = (Vec::new(), bytes);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, behind) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = behind;
            }
            let cut = feed_pieces(&pieces);
            prop_assert_eq!((cut.0, cut.1), (whole.0, whole.1));
        }

        #[test]
        fn what_is_written_is_read_back_as_one_event(
            data in "[a-z:\r\n \0é]{0,30}", id in "[a-z0-9-]{1,9}", retry_ms in any::<u32>(),
        ) {
            let mut out = Vec::new();
            sse::event(&mut out, Some(&id), Some("message"), Some(retry_ms), Some(data.as_bytes()));
            let mut events = Vec::new();
            Parser::new(4096, 4096).feed(&out, &mut events).unwrap();
            let expected = data.replace("\r\n", "\n").replace('\r', "\n");
            let expected = event(Some(&id), Some("message"), &expected, Some(retry_ms));
            prop_assert_eq!(events, vec![expected]);
        }
    }
}
