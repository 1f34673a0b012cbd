//! Frames: one SSE event (or comment) as one complete HTTP chunk, in one allocation.
//!
//! Streams are answered with chunked transfer coding, and a frame is written to the socket, kept in
//! a window and journaled without being touched again. So the chunk's size line and its closing
//! CRLF are part of the frame. The size has eight digits, leading zeros included (RFC 9112 section
//! 7.1 allows any number): it is filled in when the event's length is known. For the rare HTTP/1.0
//! client.

use super::ids::EventId;
use crate::http::sse;

/// `: keep-alive`, ready for the socket.
pub const KEEP_ALIVE: &[u8] = b"0000000e\r\n: keep-alive\n\n\r\n";

const SIZE_LINE: &[u8] = b"00000000\r\n";
const SIZE_DIGITS: usize = 8;
const END: &[u8] = b"\r\n";
/// Field names, id and line ends of an event with one line of data.
const ROOM: usize = 96;

/// A frame that carries `data` under an event id.
pub fn event(id: EventId, name: Option<&str>, retry_ms: Option<u32>, data: &[u8]) -> Vec<u8> {
    let mut frame = begin(data.len() + name.map_or(0, str::len));
    sse::event(&mut frame, Some(id.text().as_str()), name, retry_ms, Some(data));
    close(frame)
}

/// A frame without an id, which a client does not resume from: `endpoint`, `connected`, `retry`.
pub fn control(name: Option<&str>, retry_ms: Option<u32>, data: Option<&[u8]>) -> Vec<u8> {
    let mut frame = begin(data.map_or(0, <[u8]>::len) + name.map_or(0, str::len));
    sse::event(&mut frame, None, name, retry_ms, data);
    close(frame)
}

/// A frame of a comment.
pub fn comment(text: &str) -> Vec<u8> {
    let mut frame = begin(text.len());
    sse::comment(&mut frame, text);
    close(frame)
}

/// The SSE event inside a frame, without its chunk.
#[cfg(test)]
pub(super) fn event_of(frame: &[u8]) -> &[u8] {
    let start = frame.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    frame.get(start..frame.len().saturating_sub(END.len())).unwrap_or_default()
}

fn begin(length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ROOM + length);
    frame.extend_from_slice(SIZE_LINE);
    frame
}

/// Fills in the size and closes the chunk.
fn close(mut frame: Vec<u8>) -> Vec<u8> {
    let mut length = frame.len() - SIZE_LINE.len();
    frame.extend_from_slice(END);
    for digit in frame.iter_mut().take(SIZE_DIGITS).rev() {
        *digit = b"0123456789abcdef"[length & 15];
        length >>= 4;
    }
    if length > 0 {
        // Over 4 GiB: no limit in the settings comes near, yet the size must not lie.
        frame.splice(0..0, format!("{length:x}").into_bytes());
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::super::ids::StreamId;
    use super::*;
    use proptest::prelude::*;

    const ID: EventId =
        EventId { stream: StreamId { node: 0, core: 1, boot: 40, number: 7 }, position: 36 };

    fn text(frame: &[u8]) -> &str {
        let text = std::str::from_utf8(frame).unwrap();
        let (size, rest) = text.split_once("\r\n").unwrap();
        let event = rest.strip_suffix("\r\n").unwrap();
        assert_eq!(usize::from_str_radix(size, 16).unwrap(), event.len());
        assert_eq!(event_of(frame), event.as_bytes());
        event
    }

    #[test]
    fn frames_are_whole_chunks() {
        let cases: [(Vec<u8>, &str); 8] = [
            (event(ID, None, None, b"{}"), "id: 0-1-14-7-10\ndata: {}\n\n"),
            (event(ID, None, Some(1000), b""), "id: 0-1-14-7-10\nretry: 1000\ndata: \n\n"),
            (
                event(ID, Some("message"), None, b"[1,\r\n2,\n3,\r4]"),
                "id: 0-1-14-7-10\nevent: message\ndata: [1,\ndata: 2,\ndata: 3,\ndata: 4]\n\n",
            ),
            (control(Some("endpoint"), None, Some(b"/x")), "event: endpoint\ndata: /x\n\n"),
            (control(None, Some(5), None), "retry: 5\n\n"),
            (comment("connected"), ": connected\n\n"),
            (comment("two\nlines"), ": two\n: lines\n\n"),
            (KEEP_ALIVE.to_vec(), ": keep-alive\n\n"),
        ];
        for (frame, expected) in cases {
            assert_eq!(text(&frame), expected);
        }
    }

    #[test]
    fn a_usual_frame_is_one_allocation() {
        let frame = event(ID, None, Some(1000), &[b'x'; 2000]);
        assert!(frame.capacity() <= 2000 + ROOM);
    }

    proptest! {
        #[test]
        fn data_comes_back_line_by_line(data in "[a-c\r\n]{0,40}") {
            let frame = event(ID, None, None, data.as_bytes());
            let lines: Vec<_> = text(&frame)
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(|line| line.strip_prefix(' ').unwrap_or(line))
                .collect();
            let plain = data.replace("\r\n", "\n").replace('\r', "\n");
            prop_assert_eq!(lines.join("\n"), plain);
        }
    }
}
