//! An event stream of a server, from bytes to messages.
//!
//! Servers end lines in any of the three ways, name their events `message` or not at all, send
//! comments and empty `data` to keep a stream alive or to give it an id, and spread one message
//! over several `data` lines. Events of other names are passed over, as the SDKs do.

use crate::http::sse::{Event, Parser, ParserError};

/// A line holds more than its data: `data: `.
const LINE_BYTES_MORE: usize = 64;
/// Longest id of an event that is given back.
const EVENT_ID_BYTES_MAX: usize = 1024;

/// What an event stream brought.
#[derive(Debug, Clone)]
pub enum StreamEvent {
    /// The bytes of a message, for [`receive`](super::receive).
    Data(Vec<u8>),
    /// Where messages are to be posted (MCP 2024-11-05, HTTP with SSE).
    Endpoint(Box<str>),
}

/// Reads one event stream.
#[derive(Debug)]
pub struct EventReader {
    parser: Parser,
    events: Vec<Event>,
}

impl EventReader {
    /// At the start of a stream whose events have at most this size.
    pub fn new(event_bytes_max: usize) -> Self {
        let line_bytes_max = event_bytes_max.saturating_add(LINE_BYTES_MORE);
        Self { parser: Parser::new(line_bytes_max, event_bytes_max), events: Vec::new() }
    }

    /// Takes in bytes and appends what they complete.
    ///
    /// # Errors
    /// What is too large. What came before it is appended.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>) -> Result<(), ParserError> {
        let fed = self.parser.feed(bytes, &mut self.events);
        for event in self.events.drain(..) {
            match event.event.as_deref() {
                // Nothing but an id (MCP 2025-11-25, sending messages: priming), or a sign of life.
                _ if event.data.is_empty() => {}
                None | Some("message") => out.push(StreamEvent::Data(event.data)),
                Some("endpoint") => {
                    let target = String::from_utf8_lossy(&event.data).trim().into();
                    out.push(StreamEvent::Endpoint(target));
                }
                Some(_) => {}
            }
        }
        fed
    }

    /// Where to go on when the stream breaks.
    pub fn last_event_id(&self) -> Option<&str> {
        let id = self.parser.last_event_id();
        id.filter(|id| id.len() <= EVENT_ID_BYTES_MAX)
    }

    /// How long to wait before that, where the server said so.
    pub fn retry_ms(&self) -> Option<u32> {
        self.parser.retry_ms()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mcp::upstream::receive;

    fn read(pieces: &[&[u8]]) -> (Vec<String>, Option<String>, Option<u32>) {
        let mut reader = EventReader::new(4096);
        let mut events = Vec::new();
        for piece in pieces {
            reader.feed(piece, &mut events).unwrap();
        }
        let text = |event: &StreamEvent| match event {
            StreamEvent::Data(data) => format!("{:?}", receive(data).unwrap()),
            StreamEvent::Endpoint(target) => format!("to {target}"),
        };
        let events = events.iter().map(text).collect();
        (events, reader.last_event_id().map(str::to_owned), reader.retry_ms())
    }

    const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"text":"ä\n"}}"#;

    /// As servers of all kinds write them.
    fn dialects() -> Vec<String> {
        vec![
            format!("event: message\ndata: {RESULT}\n\n"),
            format!("data:{RESULT}\n\n"),
            format!("\u{feff}: hello\r\n\r\nevent:message\r\nid: 7\r\ndata: {RESULT}\r\n\r\n"),
            format!("id: a\rretry: 50\rdata:\r\rdata: {RESULT}\r\r"),
            format!("event: ping\ndata: 2026-01-01\n\nevent: connected\ndata: x\n\ndata: {RESULT}\n\n"),
            "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\ndata: \"result\":{\"text\":\"ä\\n\"}}\n\n"
                .to_owned(),
            format!("id: 3\ndata: \n\n:keep\n\nevent: message\ndata: {RESULT}\nid: 4\n\n"),
            format!("event: endpoint\ndata: /messages?sessionId=1\n\ndata: {RESULT}\n\n"),
        ]
    }

    #[test]
    fn every_dialect_cut_at_every_byte_gives_the_same_messages() {
        for text in dialects() {
            let bytes = text.as_bytes();
            let whole = read(&[bytes]);
            assert!(whole.0.last().unwrap().contains("Response"), "{text}");
            for cut in 0..=bytes.len() {
                let (left, right) = bytes.split_at(cut);
                assert_eq!(read(&[left, right]), whole, "cut at {cut}: {text}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single), whole);
        }
    }

    #[test]
    fn ids_and_waits_are_kept_also_of_events_without_data() {
        assert_eq!(read(&[b"id: 9\nretry: 20\ndata:\n\n"]), (vec![], Some("9".into()), Some(20)));
        let long = format!("id: {}\ndata:\n\n", "x".repeat(EVENT_ID_BYTES_MAX + 1));
        assert_eq!(read(&[long.as_bytes()]).1, None);
    }

    #[test]
    fn what_is_too_large_ends_the_stream() {
        let mut events = Vec::new();
        let mut feed = |text: &str| EventReader::new(64).feed(text.as_bytes(), &mut events);
        let large = format!("data: {}\n\n", "x".repeat(65));
        assert!(matches!(feed(&large), Err(ParserError::EventTooLarge { .. })));
        assert!(feed("event: log\ndata: hello\n\n").is_ok() && events.is_empty());
    }

    proptest! {
        #[test]
        fn many_messages_come_whole_however_they_are_cut(
            picks in proptest::collection::vec(0_usize..8, 1..6),
            cuts in proptest::collection::vec(0_usize..2000, 0..8),
        ) {
            let dialects = dialects();
            let text: String = picks.iter().map(|pick| {
                // A byte order mark stands at the beginning only.
                dialects[*pick].trim_start_matches('\u{feff}').to_owned()
            }).collect();
            let whole = read(&[text.as_bytes()]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % text.len()).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                pieces.push(&text.as_bytes()[from..cut]);
                from = cut;
            }
            prop_assert_eq!(read(&pieces), whole);
        }
    }
}
