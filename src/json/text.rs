//! Strings of JSON: finding their end, decoding and writing them, eight bytes at a time.

use std::borrow::Cow;

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Where the first byte at or after `at` stands that ends the plain run of a string: a quote, a
/// backslash or a control character. The length of `bytes` when there is none.
#[inline]
pub(super) fn plain_run_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let special = special_bytes(word);
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            break;
        }
        at += 1;
    }
    at
}

/// High bits mark the special bytes of the word. A borrow can mark a byte wrongly only above one
/// that is marked rightly, so the lowest mark is exact.
#[inline]
const fn special_bytes(word: u64) -> u64 {
    let control = word.wrapping_sub(LOW_BITS * 0x20) & !word;
    let quote = word ^ (LOW_BITS * b'"' as u64);
    let quote = quote.wrapping_sub(LOW_BITS) & !quote;
    let backslash = word ^ (LOW_BITS * b'\\' as u64);
    let backslash = backslash.wrapping_sub(LOW_BITS) & !backslash;
    (control | quote | backslash) & HIGH_BITS
}

/// The end of a string inside checked text: `at` stands after the opening quote, the answer on
/// the closing one.
#[inline]
pub(super) fn checked_string_end(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at = plain_run_end(bytes, at);
        if bytes.get(at) != Some(&b'\\') {
            return at;
        }
        at += 2;
    }
}

/// Decodes the inside of a checked string; borrowed when it has no escapes.
pub(super) fn decode(inside: &str) -> Cow<'_, str> {
    match memchr::memchr(b'\\', inside.as_bytes()) {
        None => Cow::Borrowed(inside),
        Some(first) => Cow::Owned(decode_escapes(inside, first)),
    }
}

fn decode_escapes(inside: &str, first: usize) -> String {
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    let mut next = Some(first);
    while let Some(at) = next {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        let (character, length) = decode_escape(escape);
        text.push(character);
        rest = escape.get(length..).unwrap_or_default();
        next = memchr::memchr(b'\\', rest.as_bytes());
    }
    text.push_str(rest);
    text
}

/// One escape at the start of `escape`, and how long it is. The guard has seen that it is right;
/// anything else would decode as U+FFFD.
fn decode_escape(escape: &str) -> (char, usize) {
    let character = match escape.as_bytes().get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return decode_unicode_escape(escape.as_bytes()),
        Some(&other) => char::from(other),
        None => char::REPLACEMENT_CHARACTER,
    };
    (character, 2)
}

fn decode_unicode_escape(escape: &[u8]) -> (char, usize) {
    let Some(unit) = hex_unit(escape, 2) else { return (char::REPLACEMENT_CHARACTER, 2) };
    if !is_leading_surrogate(unit) {
        return (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), 6);
    }
    let trailing = hex_unit(escape, 8).unwrap_or_default();
    let character = 0x1_0000 + ((unit - 0xd800) << 10) + (trailing.wrapping_sub(0xdc00) & 0x3ff);
    (char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
}

/// The four hexadecimal digits at `at`.
pub(super) fn hex_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..)?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
}

pub(super) const fn is_leading_surrogate(unit: u32) -> bool {
    matches!(unit, 0xd800..=0xdbff)
}

pub(super) const fn is_trailing_surrogate(unit: u32) -> bool {
    matches!(unit, 0xdc00..=0xdfff)
}

/// Appends `text` as a JSON string: quoted, with what must be escaped escaped and nothing else.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut written = 0;
    loop {
        let special = plain_run_end(bytes, written);
        out.extend_from_slice(bytes.get(written..special).unwrap_or_default());
        let Some(&byte) = bytes.get(special) else { break };
        write_escape(out, byte);
        written = special + 1;
    }
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let low = HEX[usize::from(byte & 0xf)];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], low]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_run_ends_at_the_first_special_byte_wherever_it_stands() {
        for length in 0..40_usize {
            for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
                for filler in [b'a', 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![filler; length];
                    assert_eq!(plain_run_end(&bytes, 0), length);
                    bytes.push(special);
                    bytes.extend_from_slice(b"\"\\\x01");
                    assert_eq!(plain_run_end(&bytes, 0), length, "{special} after {filler}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn strings_are_written_as_serde_json_writes_them(text in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            let expected = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(std::str::from_utf8(&out).unwrap(), &expected);
            let inside = &expected[1..expected.len() - 1];
            prop_assert_eq!(decode(inside), text.as_str());
            prop_assert_eq!(checked_string_end(expected.as_bytes(), 1), expected.len() - 1);
        }

        #[test]
        fn escapes_decode_as_serde_json_decodes_them(text in any::<String>()) {
            let mut inside = String::new();
            for character in text.chars() {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(inside, "\\u{unit:04X}").unwrap();
                }
            }
            let expected: String = serde_json::from_str(&format!("\"{inside}\"")).unwrap();
            prop_assert_eq!(decode(&inside), expected);
        }
    }
}
