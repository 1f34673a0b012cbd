//! Numbers that clients see as texts, because theirs would round them: 64-bit integers, decimals.

use std::borrow::Cow;

use serde_json::Value;

use super::FieldType;
use crate::json::Raw;

/// What an integer is as a text. Without `+`, leading zeros and exponent: one number, one text.
pub(super) const INTEGER_PATTERN: &str = "^-?(0|[1-9][0-9]*)$";
/// What any number of JSON is as a text.
pub(super) const NUMBER_PATTERN: &str = "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$";

/// What the text of a number of this type looks like; `None` for what is no number.
pub(super) const fn pattern(field_type: FieldType) -> Option<&'static str> {
    match field_type {
        FieldType::Integer => Some(INTEGER_PATTERN),
        FieldType::Number => Some(NUMBER_PATTERN),
        _ => None,
    }
}

/// Whether the text is a number by the grammar of JSON (RFC 8259 section 6).
pub(super) fn is_number(text: &str) -> bool {
    fn digits(text: &[u8]) -> Option<&[u8]> {
        let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        if end == 0 { None } else { text.get(end..) }
    }
    fn rest(text: &[u8]) -> Option<&[u8]> {
        let text = text.strip_prefix(b"-").unwrap_or(text);
        let mut text = match text.strip_prefix(b"0") {
            Some(rest) => rest,
            None => digits(text)?,
        };
        if let Some(fraction) = text.strip_prefix(b".") {
            text = digits(fraction)?;
        }
        if let [b'e' | b'E', exponent @ ..] = text {
            let unsigned = exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-"));
            text = digits(unsigned.unwrap_or(exponent))?;
        }
        Some(text)
    }
    rest(text.as_bytes()).is_some_and(<[u8]>::is_empty)
}

/// Longest whole number that is written without its exponent.
const PLAIN_DIGITS_MAX: usize = 64;

/// A whole number by its digits alone: `1e6` and `1000000.0` are `1000000`. What is no whole number
/// or has too many digits stays as it is.
#[inline]
pub(super) fn plain_integer(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return Cow::Borrowed(text);
    }
    without_point(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn without_point(text: &str) -> Option<String> {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    // Where the point stands once the exponent is applied.
    let exponent: i64 = exponent.parse().ok()?;
    let point = i64::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let point = usize::try_from(point).ok().filter(|point| *point <= PLAIN_DIGITS_MAX)?;
    let kept = digits.get(..point.min(digits.len()))?;
    let dropped = digits.get(kept.len()..)?;
    if dropped.bytes().any(|digit| digit != b'0') {
        return None;
    }
    let zeros = "0".repeat(point.saturating_sub(digits.len()));
    let plain = [kept.trim_start_matches('0'), &zeros].concat();
    Some([sign, &plain].concat())
}

/// Appends the number that a text holds; whatever holds none as it is.
pub(super) fn write_number(raw: Raw<'_>, out: &mut Vec<u8>) {
    match raw.as_str() {
        Some(text) if is_number(&text) => out.extend_from_slice(text.as_bytes()),
        _ => out.extend_from_slice(raw.text().as_bytes()),
    }
}

/// Appends a number as a text; anything else as it is.
pub(super) fn write_text(raw: Raw<'_>, out: &mut Vec<u8>) {
    let quote: &[u8] = if raw.kind() == crate::json::Kind::Number { b"\"" } else { b"" };
    out.extend_from_slice(quote);
    out.extend_from_slice(raw.text().as_bytes());
    out.extend_from_slice(quote);
}

/// A value of a rule as the API takes it: texts of digits, alone or in an array, are numbers.
pub(super) fn sent(value: &Value) -> String {
    match value {
        Value::String(text) if is_number(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(sent).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

/// The same as the client sees it.
pub(super) fn shown(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Array(items) => items.iter().map(shown).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::guard;

    #[test]
    fn whole_numbers_are_written_by_their_digits() {
        for (text, expected) in [
            ("1", "1"),
            ("-12", "-12"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("1e6", "1000000"),
            ("-1E+3", "-1000"),
            ("1.0", "1"),
            ("1.50e1", "15"),
            ("1500e-2", "15"),
            ("0.5e1", "5"),
            ("0.0", "0"),
            ("-0e7", "0"),
            ("1.5", "1.5"),
            ("15e-1", "15e-1"),
            ("1e63", &format!("1{}", "0".repeat(63))),
            ("1e64", "1e64"),
            ("1e99999999999999999999", "1e99999999999999999999"),
            ("1e-9223372036854775808", "1e-9223372036854775808"),
        ] {
            assert_eq!(plain_integer(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_told_as_the_guard_tells_them() {
        for text in [
            "0",
            "-0",
            "10",
            "1.5",
            "1e3",
            "-1.50E-7",
            "1e+9",
            "123456789012345678901234567890",
            "",
            "-",
            "01",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "0x1",
            " 1",
            "1 ",
            "1\n",
            "NaN",
            "1.e1",
            "--1",
            "1e1.0",
        ] {
            let blank = text.trim() != text;
            assert_eq!(is_number(text), !blank && guard(text.as_bytes()).is_ok(), "{text:?}");
        }
    }
}
