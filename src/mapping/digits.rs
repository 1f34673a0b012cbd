//! Numbers that clients see as texts, because theirs would round them: 64-bit integers, decimals.

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
