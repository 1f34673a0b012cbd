//! Ids of streams and events, and the key of the session that owns them.
//!
//! Text forms are parts in base 36 joined by `-`, without leading zeros: one value has exactly one
//! text, and the parser takes no other.

use std::fmt;
use std::hash::{Hash, Hasher};

const TEXT_BYTES_MAX: usize = 40;
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// Digits of `u64::MAX` in base 36.
const DIGITS_MAX: usize = 13;

/// What maps, rows, streams and logs use instead of a session id.
///
/// A session id is a bearer capability; its key (a truncated hash, made by the sessions room)
/// names the same session and opens nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey([u8; 16]);

impl SessionKey {
    /// The key whose bytes these are.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The key whose bytes these are, where they come from a row's key.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes: the key of its row.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl Hash for SessionKey {
    /// The bytes are a hash already; a map needs no more of them than eight.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (words, _) = self.0.as_chunks::<8>();
        state.write_u64(words.first().copied().map_or(0, u64::from_le_bytes));
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SessionKey({self})")
    }
}

/// Names a stream in the whole cluster. Node and core say where to find it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StreamId {
    /// The node that opened it.
    pub node: u16,
    /// The core of that node.
    pub core: u16,
    /// The node's start that opened it, so that numbers may begin anew with each start.
    pub boot: u32,
    /// Counts the core's streams since that start.
    pub number: u32,
}

impl StreamId {
    /// Reads the text form; `None` for anything that is not exactly one.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut parts = text.split(|byte| *byte == b'-');
        let id = Self::from_parts(&mut parts)?;
        parts.next().is_none().then_some(id)
    }

    /// The text form.
    pub fn text(self) -> IdText {
        let mut text = IdText::EMPTY;
        self.append_to(&mut text);
        text
    }

    fn append_to(self, text: &mut IdText) {
        text.number(u64::from(self.node));
        text.byte(b'-');
        text.number(u64::from(self.core));
        text.byte(b'-');
        text.number(u64::from(self.boot));
        text.byte(b'-');
        text.number(u64::from(self.number));
    }

    fn from_parts<'a>(parts: &mut impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        Some(Self {
            node: number(parts.next()?)?.try_into().ok()?,
            core: number(parts.next()?)?.try_into().ok()?,
            boot: number(parts.next()?)?.try_into().ok()?,
            number: number(parts.next()?)?.try_into().ok()?,
        })
    }
}

impl Hash for StreamId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let place = u64::from(self.node) << 48 | u64::from(self.core) << 32;
        state.write_u64(place | u64::from(self.number));
        state.write_u64(u64::from(self.boot));
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text().as_str())
    }
}

/// Names one event: what a client gives back in `Last-Event-ID`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventId {
    /// The stream it was sent on.
    pub stream: StreamId,
    /// Its place there; the first event has 1.
    pub position: u64,
}

impl EventId {
    /// Reads the text form; `None` for anything that is not exactly one.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut parts = text.split(|byte| *byte == b'-');
        let stream = StreamId::from_parts(&mut parts)?;
        let position = number(parts.next()?)?;
        parts.next().is_none().then_some(Self { stream, position })
    }

    /// The text form.
    pub fn text(self) -> IdText {
        let mut text = IdText::EMPTY;
        self.stream.append_to(&mut text);
        text.byte(b'-');
        text.number(self.position);
        text
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text().as_str())
    }
}

/// An id's text, held in place: making one allocates nothing.
#[derive(Clone, Copy, Debug)]
pub struct IdText {
    bytes: [u8; TEXT_BYTES_MAX],
    length: usize,
}

impl IdText {
    const EMPTY: Self = Self { bytes: [0; TEXT_BYTES_MAX], length: 0 };

    /// The text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Only digits and dashes are ever put in.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    fn byte(&mut self, byte: u8) {
        // The longest id (4 + 4 + 7 + 7 + 13 digits and 4 dashes) fits.
        debug_assert!(self.length < TEXT_BYTES_MAX);
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn number(&mut self, mut value: u64) {
        let mut digits = [0_u8; DIGITS_MAX];
        let mut start = DIGITS_MAX;
        loop {
            start -= 1;
            digits[start] = DIGITS[(value % 36) as usize];
            value /= 36;
            if value == 0 {
                break;
            }
        }
        for digit in &digits[start..] {
            self.byte(*digit);
        }
    }
}

/// Strict base 36: lower case, no sign, no leading zero, no overflow.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > DIGITS_MAX || (digits.len() > 1 && digits[0] == b'0') {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'z' => digit - b'a' + 10,
            _ => return None,
        };
        value.checked_mul(36)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_id_fits() {
        let stream = StreamId { node: u16::MAX, core: u16::MAX, boot: u32::MAX, number: u32::MAX };
        let event = EventId { stream, position: u64::MAX };
        assert_eq!(event.to_string(), "1ekf-1ekf-1z141z3-1z141z3-3w5e11264sgsf");
        assert_eq!(EventId::parse(event.text().as_bytes()), Some(event));
        assert_eq!(StreamId::parse(stream.text().as_bytes()), Some(stream));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "-",
            "0",
            "0-0-0-0",
            "0-0-0-0-",
            "0-0-0-0-0-0",
            "-0-0-0-0-0",
            "00-0-0-0-0",
            "0-0-0-0-01",
            "0-0-0-0-A",
            "0-0-0-0-+1",
            "0-0-0-0- 1",
            "0-0-0-0-1 ",
            "0-0-0-0-1\n",
            "1ekg-0-0-0-0",
            "0-1ekg-0-0-0",
            "0-0-1z141z4-0-0",
            "0-0-0-1z141z4-0",
            "0-0-0-0-3w5e11264sgsg",
            "0-0-0-0-zzzzzzzzzzzzz",
            "0-0-0-0-11111111111111",
            "0-0-0-0-\u{e9}",
            "0--0-0-0",
            "12345678901234567890123456789012345678901",
        ] {
            assert_eq!(EventId::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(StreamId::parse(b"0-0-0-0-0"), None);
        assert_eq!(StreamId::parse(b"0-0-0"), None);
    }

    #[test]
    fn a_key_is_shown_as_hex() {
        let key = SessionKey::from_bytes(*b"0123456789abcdef");
        assert_eq!(key.to_string(), "30313233343536373839616263646566");
        assert_eq!(SessionKey::from_slice(key.as_bytes()), Some(key));
        assert_eq!(SessionKey::from_slice(b"short"), None);
    }

    proptest! {
        #[test]
        fn text_and_value_are_one_to_one(
            node: u16, core: u16, boot: u32, number: u32, position: u64
        ) {
            let event = EventId { stream: StreamId { node, core, boot, number }, position };
            prop_assert_eq!(EventId::parse(event.text().as_bytes()), Some(event));
        }

        #[test]
        fn what_parses_is_canonical(text in "[0-9a-zA-Z-]{0,44}") {
            if let Some(event) = EventId::parse(text.as_bytes()) {
                prop_assert_eq!(event.to_string(), text);
            }
        }
    }
}
