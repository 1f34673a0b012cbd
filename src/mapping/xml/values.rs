//! The texts of elements and attributes: written from JSON, read into JSON.

use std::borrow::Cow;

use super::super::{XmlName, XmlValue};
use super::Unreadable;
use crate::json::{Kind, Raw, write_string};
use crate::xml::{Element, XmlError, escape_attribute, escape_text};

/// A decimal point may be moved this far; a number beyond it stays as it was written.
const EXPONENT_MAX: i32 = 400;

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mapping) enum Place {
    Text,
    Attribute,
}

/// Namespaces that a value needs a prefix for: ` xmlns:q1="urn:shop"`.
#[derive(Debug, Default)]
pub(in crate::mapping) struct Declarations {
    pub(in crate::mapping) text: String,
    count: usize,
}

impl Declarations {
    /// More of an element that has these already.
    pub(in crate::mapping) fn after(&self) -> Self {
        Self { text: String::new(), count: self.count }
    }

    /// A prefix of this element's own.
    fn prefix(&mut self, namespace: &str) -> Result<String, XmlError> {
        self.count += 1;
        let prefix = format!("q{}", self.count);
        self.text.push_str(" xmlns:");
        self.text.push_str(&prefix);
        self.text.push_str("=\"");
        escape_attribute(namespace, &mut self.text)?;
        self.text.push('"');
        Ok(prefix)
    }
}

/// Writes a value; what is wrong with it where it cannot be.
pub(in crate::mapping) fn write(
    value: &XmlValue,
    raw: Raw<'_>,
    place: Place,
    out: &mut String,
    declarations: &mut Declarations,
) -> Result<(), String> {
    match (value, raw.kind()) {
        (XmlValue::List(item), Kind::Array) => {
            for (index, raw) in raw.items().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_item(item, raw, place, out, declarations)?;
            }
            Ok(())
        }
        (_, kind @ (Kind::Object | Kind::Array | Kind::Null)) => {
            Err(format!("expected a single value, got {}", kind.described()))
        }
        (XmlValue::Integer, Kind::Number) => match whole(raw.text()) {
            Some(digits) => {
                out.push_str(&digits);
                Ok(())
            }
            None => Err("expected a whole number".to_owned()),
        },
        (XmlValue::Decimal, Kind::Number) => {
            out.push_str(&plain(raw.text()));
            Ok(())
        }
        (_, Kind::Number | Kind::Bool) => {
            out.push_str(raw.text());
            Ok(())
        }
        (value, Kind::String) => {
            let text = raw.as_str().unwrap_or_default();
            match value {
                XmlValue::Base64 if !is_base64(&text) => Err("expected base64".to_owned()),
                XmlValue::Name => write_name(&text, place, out, declarations),
                _ => escape(&text, place, out),
            }
        }
    }
}

fn write_item(
    value: &XmlValue,
    raw: Raw<'_>,
    place: Place,
    out: &mut String,
    declarations: &mut Declarations,
) -> Result<(), String> {
    if let Some(text) = raw.as_str()
        && (text.is_empty() || text.contains(is_blank))
    {
        return Err("an item of this list cannot be empty or have blanks".to_owned());
    }
    write(value, raw, place, out, declarations)
}

fn escape(text: &str, place: Place, out: &mut String) -> Result<(), String> {
    let escaped = match place {
        Place::Text => escape_text(text, out),
        Place::Attribute => escape_attribute(text, out),
    };
    escaped.map_err(|error| error.to_string())
}

fn write_name(
    text: &str,
    place: Place,
    out: &mut String,
    declarations: &mut Declarations,
) -> Result<(), String> {
    let name = XmlName::parse(text.trim_matches(is_blank));
    let name = name.filter(|name| crate::xml::is_name(&name.local));
    let expected = || "expected a name such as `order` or `{urn:shop}order`".to_owned();
    let name = name.ok_or_else(expected)?;
    if !name.namespace.is_empty() {
        let prefix = declarations.prefix(&name.namespace).map_err(|error| error.to_string())?;
        out.push_str(&prefix);
        out.push(':');
    }
    escape(&name.local, place, out)
}

/// Reads a value into JSON. `element` is where prefixes are looked up.
///
/// # Errors
/// Where what it repeats of namespaces takes more than `left`.
pub(in crate::mapping) fn read(
    value: &XmlValue,
    text: &str,
    element: Element<'_>,
    left: &mut usize,
    out: &mut Vec<u8>,
) -> Result<(), Unreadable> {
    let trimmed = text.trim_matches(is_blank);
    match value {
        XmlValue::Boolean => match trimmed {
            "true" | "1" => out.extend_from_slice(b"true"),
            "false" | "0" => out.extend_from_slice(b"false"),
            _ => write_string(out, text),
        },
        XmlValue::Integer | XmlValue::Decimal => {
            let has_fraction = matches!(value, XmlValue::Decimal);
            match number(trimmed, has_fraction) {
                Some(digits) => out.extend_from_slice(digits.as_bytes()),
                None => write_string(out, text),
            }
        }
        XmlValue::Base64 if text.contains(is_blank) => {
            let packed: String = text.chars().filter(|next| !is_blank(*next)).collect();
            write_string(out, &packed);
        }
        XmlValue::String | XmlValue::Base64 => write_string(out, text),
        XmlValue::Token => write_string(out, &collapsed(trimmed)),
        XmlValue::Name => match element.qualified(trimmed) {
            Some((namespace, local)) if !local.is_empty() => {
                *left = left.checked_sub(namespace.len()).ok_or(Unreadable::TooLarge)?;
                write_string(out, &XmlName::new(namespace, local).to_string());
            }
            _ => write_string(out, text),
        },
        XmlValue::List(item) => {
            out.push(b'[');
            for (index, text) in text.split(is_blank).filter(|text| !text.is_empty()).enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                // Lists of lists were refused.
                let item =
                    if matches!(**item, XmlValue::List(_)) { &XmlValue::String } else { item };
                read(item, text, element, left, out)?;
            }
            out.push(b']');
        }
    }
    Ok(())
}

/// XML Schema Part 2, section 4.3.6: `collapse`, of a text without blanks around it.
fn collapsed(trimmed: &str) -> Cow<'_, str> {
    let is_plain = !trimmed.contains(['\t', '\r', '\n']) && !trimmed.contains("  ");
    if is_plain {
        return Cow::Borrowed(trimmed);
    }
    let words: Vec<&str> = trimmed.split(is_blank).filter(|word| !word.is_empty()).collect();
    Cow::Owned(words.join(" "))
}

/// White space of XML 1.0, section 2.3.
pub(in crate::mapping) const fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn is_base64(text: &str) -> bool {
    let (mut digits, mut padding) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'=' => padding += 1,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if padding == 0 => digits += 1,
            _ => return false,
        }
    }
    padding <= 2 && (digits + padding).is_multiple_of(4)
}

/// A number of XML Schema as one of JSON: the same digits, without `+` and leading zeros, and with
/// a digit on both sides of the point. `None` for what is no number of either.
fn number(text: &str, has_fraction: bool) -> Option<Cow<'_, str>> {
    if super::super::digits::is_number(text) && (has_fraction || is_whole(text)) {
        return Some(Cow::Borrowed(text));
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, behind) = rest.split_at(end);
    let (fraction, exponent) = match behind.strip_prefix('.') {
        None => ("", behind),
        Some(behind) => behind
            .split_at(behind.find(|next: char| !next.is_ascii_digit()).unwrap_or(behind.len())),
    };
    if digits.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let point = if fraction.is_empty() { "" } else { "." };
    let written = format!("{sign}{digits}{point}{fraction}{exponent}");
    let is_number = super::super::digits::is_number(&written);
    (is_number && (has_fraction || (is_whole(&written) && !behind.starts_with('.'))))
        .then_some(Cow::Owned(written))
}

fn is_whole(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// A number of JSON without exponent, which decimals of XML Schema do not have.
fn plain(text: &str) -> Cow<'_, str> {
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        return Cow::Borrowed(text);
    };
    let Some(exponent) = exponent.parse::<i32>().ok().filter(|by| by.abs() <= EXPONENT_MAX) else {
        return Cow::Borrowed(text);
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (digits, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let moved = usize::try_from(exponent.unsigned_abs()).unwrap_or_default();
    let (digits, fraction) = if exponent >= 0 {
        let taken = moved.min(fraction.len());
        let (inside, rest) = fraction.split_at(taken);
        (format!("{digits}{inside}{}", "0".repeat(moved - taken)), rest.to_owned())
    } else {
        let kept = digits.len().saturating_sub(moved);
        let (rest, inside) = digits.split_at(kept);
        let zeros = "0".repeat(moved.saturating_sub(digits.len()));
        (rest.to_owned(), format!("{zeros}{inside}{fraction}"))
    };
    let digits = digits.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let point = if fraction.is_empty() { "" } else { "." };
    Cow::Owned(format!("{sign}{digits}{point}{fraction}"))
}

/// A whole number, however it is written; `None` for one with a fraction.
fn whole(text: &str) -> Option<Cow<'_, str>> {
    if is_whole(text) {
        return Some(Cow::Borrowed(text));
    }
    let written = plain(text);
    let (digits, fraction) = written.split_once('.').unwrap_or((&written, ""));
    (is_whole(digits) && fraction.bytes().all(|digit| digit == b'0'))
        .then(|| Cow::Owned(digits.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_become_digits() {
        for (text, expected) in [
            ("1", "1"),
            ("1.50", "1.50"),
            ("1e3", "1000"),
            ("1.5E+2", "150"),
            ("-1.2345e2", "-123.45"),
            ("5e-3", "0.005"),
            ("125e-2", "1.25"),
            ("0e5", "0"),
            ("1e999", "1e999"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
        for (text, expected) in [
            ("10", Some("10")),
            ("10.0", Some("10")),
            ("1e2", Some("100")),
            ("12.50e1", Some("125")),
            ("1.5", None),
            ("1e999", None),
        ] {
            assert_eq!(whole(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn numbers_of_schemas_are_numbers_of_json() {
        for (text, has_fraction, expected) in [
            ("12345678901234567890123", false, Some("12345678901234567890123")),
            ("+7", false, Some("7")),
            ("007", false, Some("7")),
            ("-0", false, Some("-0")),
            ("1.50", true, Some("1.50")),
            (".5", true, Some("0.5")),
            ("5.", true, Some("5")),
            ("-.5E10", true, Some("-0.5E10")),
            ("+01.2e+3", true, Some("1.2e+3")),
            ("1.0", false, None),
            ("INF", true, None),
            ("", true, None),
            (".", true, None),
            ("1,5", true, None),
            ("٣", true, None),
            ("1e", true, None),
        ] {
            assert_eq!(number(text, has_fraction).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn base64_is_told_from_other_texts() {
        for text in ["", "YQ==", "YWI=", "YWJj", "YWJj\nYWJj "] {
            assert!(is_base64(text), "{text}");
        }
        for text in ["Y", "YQ=", "YQ=a", "Y?==", "===="] {
            assert!(!is_base64(text), "{text}");
        }
    }
}
