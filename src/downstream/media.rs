//! What kind of body an answer has.

use std::borrow::Cow;

/// The kinds of body that are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Media<'a> {
    /// JSON, declared, or undeclared and looking like it.
    Json,
    /// A page for people.
    Html,
    /// Other text.
    Text {
        /// Each byte is one character (ISO 8859-1 and its relatives) instead of UTF-8.
        single_byte: bool,
    },
    /// Everything else.
    Binary {
        /// The declared type, shortened.
        name: Cow<'a, str>,
    },
}

const NAME_CHARACTERS_MAX: usize = 80;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<'a> Media<'a> {
    /// From the declared type; without one, from the look of the body.
    pub(crate) fn of(content_type: Option<&'a str>, body: &[u8]) -> Self {
        let Some(declared) = content_type.map(str::trim).filter(|text| !text.is_empty()) else {
            return Self::sniff(body);
        };
        // The one that nearly every answer carries.
        if declared == "application/json" {
            return Self::Json;
        }
        let (essence, parameters) = declared.split_once(';').unwrap_or((declared, ""));
        let essence = essence.trim().to_ascii_lowercase();
        let (kind, subtype) = essence.split_once('/').unwrap_or((&essence, ""));
        match (kind, subtype) {
            ("application" | "text", "json") => Self::Json,
            ("text", "html") | ("application", "xhtml+xml") => Self::Html,
            (_, subtype) if subtype.ends_with("+json") => Self::Json,
            ("text", _) => Self::Text { single_byte: is_single_byte(parameters) },
            ("application", subtype) if is_textual(subtype) => {
                Self::Text { single_byte: is_single_byte(parameters) }
            }
            _ => {
                let shown = essence.chars().filter(|c| !c.is_control());
                Self::Binary { name: shown.take(NAME_CHARACTERS_MAX).collect() }
            }
        }
    }

    fn sniff(body: &[u8]) -> Self {
        let start = unmarked(body).trim_ascii_start();
        match start.first() {
            Some(b'{' | b'[') => Self::Json,
            Some(b'<') if is_page(start) => Self::Html,
            _ if std::str::from_utf8(body).is_ok() => Self::Text { single_byte: false },
            _ => Self::Binary { name: Cow::Borrowed("an undeclared type") },
        }
    }
}

/// The body without the byte order mark that some servers put before JSON.
pub(crate) fn unmarked(body: &[u8]) -> &[u8] {
    body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body)
}

fn is_page(start: &[u8]) -> bool {
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|opening| opening.eq_ignore_ascii_case(tag)))
}

fn is_textual(subtype: &str) -> bool {
    const TEXTUAL: [&str; 8] = [
        "xml",
        "javascript",
        "x-www-form-urlencoded",
        "yaml",
        "x-yaml",
        "x-ndjson",
        "jsonl",
        "graphql",
    ];
    TEXTUAL.contains(&subtype) || subtype.ends_with("+xml") || subtype.ends_with("+yaml")
}

fn is_single_byte(parameters: &str) -> bool {
    parameters.split(';').any(|parameter| {
        let Some((name, value)) = parameter.split_once('=') else { return false };
        let value = value.trim().trim_matches('"').to_ascii_lowercase();
        name.trim().eq_ignore_ascii_case("charset")
            && (value.starts_with("iso-8859-") || matches!(&*value, "latin1" | "windows-1252"))
    })
}

/// The text of a body. What is no UTF-8 is replaced, never dropped.
pub(crate) fn text_of<'b>(media: &Media<'_>, body: &'b [u8]) -> Cow<'b, str> {
    match media {
        Media::Text { single_byte: true } => body.iter().map(|&byte| char::from(byte)).collect(),
        _ => String::from_utf8_lossy(unmarked(body)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_apart() {
        let text = Media::Text { single_byte: false };
        let table = [
            (Some("application/json"), Media::Json),
            (Some("Application/JSON;charset=UTF-8"), Media::Json),
            (Some("application/problem+json"), Media::Json),
            (Some("application/vnd.api+json; version=1"), Media::Json),
            (Some("text/json"), Media::Json),
            (Some("text/html; charset=utf-8"), Media::Html),
            (Some("text/csv"), text.clone()),
            (Some("application/soap+xml"), text.clone()),
            (Some("application/x-ndjson"), text.clone()),
            (Some("text/plain; charset=\"ISO-8859-1\""), Media::Text { single_byte: true }),
            (Some("application/pdf"), Media::Binary { name: "application/pdf".into() }),
            (Some("nonsense"), Media::Binary { name: "nonsense".into() }),
        ];
        for (declared, expected) in table {
            assert_eq!(Media::of(declared, b"{}"), expected, "{declared:?}");
        }
    }

    #[test]
    fn undeclared_bodies_are_judged_by_their_look() {
        assert_eq!(Media::of(None, b"\xef\xbb\xbf {\"a\":1}"), Media::Json);
        assert_eq!(Media::of(Some(" "), b"[]"), Media::Json);
        assert_eq!(Media::of(None, b"<!DOCTYPE HTML>"), Media::Html);
        assert_eq!(Media::of(None, b"<a/>"), Media::Text { single_byte: false });
        assert_eq!(Media::of(None, b""), Media::Text { single_byte: false });
        assert!(matches!(Media::of(None, b"\xff\xfe\x00"), Media::Binary { .. }));
    }

    #[test]
    fn text_is_read_in_its_character_set() {
        let latin = Media::of(Some("text/plain; charset=latin1"), b"");
        assert_eq!(text_of(&latin, b"caf\xe9"), "café");
        let text = Media::of(Some("text/plain"), b"");
        assert_eq!(text_of(&text, b"\xef\xbb\xbfcaf\xff"), "caf\u{fffd}");
    }
}
