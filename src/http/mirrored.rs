//! Values of a body that stand in a header too (MCP 2026-07-28, Streamable HTTP, value encoding).
//!
//! What no header can carry as it is goes as `=?base64?…?=`; so does what looks like that.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const OPENING: &str = "=?base64?";
const CLOSING: &str = "?=";

/// Whether a header's value says this text. Blanks around a value are not part of it.
pub fn says(value: &[u8], text: &str) -> bool {
    match encoded(value) {
        None => value == text.as_bytes() && is_plain(text),
        Some(encoded) => STANDARD.decode(encoded).is_ok_and(|bytes| bytes == text.as_bytes()),
    }
}

/// Whether a header's value says this number, however either of them is written: `42` is `42.0`.
pub fn says_number(value: &[u8], text: &str) -> bool {
    if says(value, text) {
        return true;
    }
    let Some(number) = whole(text.as_bytes()) else { return false };
    match encoded(value) {
        None => whole(value) == Some(number),
        Some(encoded) => STANDARD.decode(encoded).is_ok_and(|bytes| whole(&bytes) == Some(number)),
    }
}

/// A text as a header's value. What is allowed as it is, but not left be by everybody on the way (a
/// tab) or not read alike by all (marks that overlap), is encoded too.
pub fn encode(text: &str) -> Cow<'_, str> {
    let is_marked = text.starts_with(OPENING) && text.ends_with(CLOSING);
    if is_plain(text) && !is_marked && !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut out = OPENING.to_owned();
    STANDARD.encode_string(text, &mut out);
    out.push_str(CLOSING);
    Cow::Owned(out)
}

/// What stands between the marks, where both are there.
fn encoded(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(OPENING.as_bytes())?.strip_suffix(CLOSING.as_bytes())
}

/// Whether a text can be a header's value as it is.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    bytes.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        && !is_blank(bytes.first())
        && !is_blank(bytes.last())
        && encoded(bytes).is_none()
}

/// The digits of a whole number without what says nothing: leading and decimal zeros.
fn whole(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = is_digits(digits) && is_digits(decimals) && decimals.bytes().all(|b| b == b'0');
    is_whole.then_some(if digits.bytes().all(|byte| byte == b'0') { "0" } else { whole })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_written_as_the_specification_shows() {
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
            ("=?BASE64?x?=", "=?BASE64?x?="),
            ("", ""),
        ] {
            assert_eq!(encode(text), value);
            assert!(says(value.as_bytes(), text), "{text:?}");
        }
        // What may go as it is may go encoded too.
        assert!(says(b"=?base64?dXM=?=", "us"));
        for (value, text) in [
            ("us", "US"),
            ("us ", "us"),
            ("=?base64?dXM?=", "us"),
            ("=?base64?dXM=", "us"),
            ("=?base64?!?=", "!"),
            ("=?base64?literal?=", "=?base64?literal?="),
            ("ü", "ü"),
        ] {
            assert!(!says(value.as_bytes(), text), "{value:?}");
        }
    }

    #[test]
    fn whole_numbers_are_compared_by_what_they_are() {
        for (value, text, expected) in [
            ("42", "42", true),
            ("42.0", "42", true),
            ("42", "42.00", true),
            ("-7", "-7.0", true),
            ("-0", "0", true),
            ("=?base64?NDI=?=", "42.0", true),
            ("42.5", "42", false),
            ("4.2e1", "42", false),
            ("4.2e1", "4.2e1", true),
            ("x", "42", false),
            ("", "x", false),
            ("7", "-7", false),
        ] {
            assert_eq!(says_number(value.as_bytes(), text), expected, "{value} {text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(text in any::<String>()) {
            let value = encode(&text);
            prop_assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert!(says(value.as_bytes(), &text));
        }

        #[test]
        fn noise_says_nothing_it_does_not_hold(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            says(&value, "text");
            says_number(&value, "42");
        }
    }
}
