//! What kind of body an answer has.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use memchr::memmem;

/// The kinds of body that are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Media<'a> {
    /// JSON, declared, or undeclared and looking like it.
    Json(Charset),
    /// A page for people.
    Html(Charset),
    /// Other text.
    Text(Charset),
    /// Everything else.
    Binary {
        /// The declared type, shortened; [`UNDECLARED`] where there is none.
        name: Cow<'a, str>,
    },
}

/// The character set a body was declared to be in, where it was.
pub(crate) type Charset = Option<&'static Encoding>;

/// The type of a body nobody told the type of (RFC 2046 section 4.5.1).
pub(crate) const UNDECLARED: &str = "application/octet-stream";

const NAME_CHARACTERS_MAX: usize = 80;
/// Where a document may say its own character set (the HTML standard looks at as much).
const PROLOGUE_BYTES: usize = 1024;

impl<'a> Media<'a> {
    /// From the declared type; without one, from the look of the body.
    pub(crate) fn of(content_type: Option<&'a str>, body: &[u8]) -> Self {
        let Some(declared) = content_type.map(str::trim).filter(|text| !text.is_empty()) else {
            return Self::sniff(body);
        };
        // The one that nearly every answer carries.
        if declared == "application/json" {
            return Self::Json(None);
        }
        let (essence, parameters) = declared.split_once(';').unwrap_or((declared, ""));
        let essence = essence.trim().to_ascii_lowercase();
        let (kind, subtype) = essence.split_once('/').unwrap_or((&essence, ""));
        let charset = || charset(parameters);
        match (kind, subtype) {
            ("application" | "text", "json") => Self::Json(charset()),
            ("text", "html") | ("application", "xhtml+xml") => Self::Html(charset()),
            (_, subtype) if subtype.ends_with("+json") => Self::Json(charset()),
            // A picture that is a text too.
            ("image", "svg+xml") => Self::Binary { name: essence.into() },
            ("text", _) => Self::Text(charset()),
            ("application", subtype) if is_textual(subtype) => Self::Text(charset()),
            (_, subtype) if subtype.ends_with("+xml") => Self::Text(charset()),
            _ => {
                let shown = essence.chars().filter(|c| !c.is_control());
                Self::Binary { name: shown.take(NAME_CHARACTERS_MAX).collect() }
            }
        }
    }

    fn sniff(body: &[u8]) -> Self {
        if Encoding::for_bom(body).is_some_and(|(encoding, _)| encoding != UTF_8) {
            return Self::Text(None);
        }
        let start = unmarked(body).trim_ascii_start();
        match start.first() {
            Some(b'{' | b'[') => Self::Json(None),
            Some(b'<') if is_page(start) => Self::Html(None),
            _ if std::str::from_utf8(body).is_ok() => Self::Text(None),
            _ => Self::Binary { name: Cow::Borrowed(UNDECLARED) },
        }
    }
}

/// The body without the byte order mark that some servers put before JSON.
fn unmarked(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// JSON is UTF-8 (RFC 8259 section 8.1); what was declared, or marked, as something else becomes
/// it.
pub(crate) fn json_of(charset: Charset, body: &[u8]) -> Cow<'_, [u8]> {
    let marked = Encoding::for_bom(body).map(|(encoding, _)| encoding);
    match marked.or(charset) {
        None => Cow::Borrowed(body),
        Some(encoding) if encoding == UTF_8 => Cow::Borrowed(unmarked(body)),
        Some(encoding) => match encoding.decode(body).0 {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
    }
}

/// The text of a body: by its byte order mark, else by the declared character set, else by what
/// the document says itself, else as UTF-8. What is none of its characters is replaced, never
/// dropped; a text that was not declared and is no UTF-8 is taken for windows-1252, in which every
/// byte is a character.
pub(crate) fn text_of(charset: Charset, body: &[u8]) -> Cow<'_, str> {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding.decode(body).0;
    }
    if let Some(encoding) = charset.or_else(|| self_declared(body)) {
        return encoding.decode(body).0;
    }
    match std::str::from_utf8(body) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => WINDOWS_1252.decode(body).0,
    }
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
    TEXTUAL.contains(&subtype) || subtype.ends_with("+yaml")
}

/// The `charset` among the parameters of a content type. An unknown one is as good as none.
fn charset(parameters: &str) -> Charset {
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| Encoding::for_label(value.as_bytes())).flatten()
    })
}

/// What `<?xml encoding="…"?>` or `<meta charset="…">` says.
fn self_declared(body: &[u8]) -> Charset {
    let start = &body[..body.len().min(PROLOGUE_BYTES)];
    if start.trim_ascii_start().first() != Some(&b'<') {
        return None;
    }
    let lower = start.to_ascii_lowercase();
    let word: &[u8] =
        if lower.trim_ascii_start().starts_with(b"<?xml") { b"encoding" } else { b"charset" };
    let at = memmem::find(&lower, word)? + word.len();
    let value = lower[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    let length = value.iter().take_while(|byte| is_name(byte)).count();
    Encoding::for_label(&value[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_apart() {
        let latin = Some(WINDOWS_1252);
        let binary = |name: &'static str| Media::Binary { name: name.into() };
        let table = [
            (Some("application/json"), Media::Json(None)),
            (Some("Application/JSON;charset=UTF-8"), Media::Json(Some(UTF_8))),
            (Some("application/problem+json"), Media::Json(None)),
            (Some("application/vnd.api+json; version=1"), Media::Json(None)),
            (Some("text/json"), Media::Json(None)),
            (Some("text/html; charset=utf-8"), Media::Html(Some(UTF_8))),
            (Some("text/csv"), Media::Text(None)),
            (Some("application/soap+xml"), Media::Text(None)),
            (Some("model/x3d+xml"), Media::Text(None)),
            (Some("application/x-ndjson"), Media::Text(None)),
            (Some("text/plain; charset=\"ISO-8859-1\""), Media::Text(latin)),
            (Some("text/plain; charset=martian"), Media::Text(None)),
            (Some("image/svg+xml; charset=utf-8"), binary("image/svg+xml")),
            (Some("application/pdf"), binary("application/pdf")),
            (Some("nonsense"), binary("nonsense")),
        ];
        for (declared, expected) in table {
            assert_eq!(Media::of(declared, b"{}"), expected, "{declared:?}");
        }
    }

    #[test]
    fn undeclared_bodies_are_judged_by_their_look() {
        assert_eq!(Media::of(None, b"\xef\xbb\xbf {\"a\":1}"), Media::Json(None));
        assert_eq!(Media::of(Some(" "), b"[]"), Media::Json(None));
        assert_eq!(Media::of(None, b"<!DOCTYPE HTML>"), Media::Html(None));
        assert_eq!(Media::of(None, b"<a/>"), Media::Text(None));
        assert_eq!(Media::of(None, b""), Media::Text(None));
        assert_eq!(Media::of(None, b"\xff\xfea\0"), Media::Text(None));
        assert!(matches!(Media::of(None, b"\xff\x00"), Media::Binary { .. }));
    }

    #[test]
    fn text_is_read_in_its_character_set() {
        let table: [(&str, &[u8], &str); 11] = [
            ("text/plain; charset=latin1", b"caf\xe9", "café"),
            ("text/plain; charset=windows-1252", b"\x80 5", "€ 5"),
            ("text/plain; charset=Shift_JIS", b"\x93\xfa\x96\x7b", "日本"),
            ("text/plain; charset=koi8-r", b"\xed\xe9\xf2", "МИР"),
            ("text/plain", b"\xef\xbb\xbfcaf\xff", "caf\u{fffd}"),
            ("text/plain; charset=latin1", b"\xff\xfe\x42\x04", "т"),
            ("text/plain", "žlutý".as_bytes(), "žlutý"),
            ("text/plain", b"caf\xe9", "café"),
            (
                "application/xml",
                b"<?xml version='1.0' encoding = 'iso-8859-15'?><a>\xa4</a>",
                "<?xml version='1.0' encoding = 'iso-8859-15'?><a>€</a>",
            ),
            ("text/html", b"<meta charset=latin2>\xb1", "<meta charset=latin2>ą"),
            ("text/xml", b"<a>caf\xe9 charset</a>", "<a>café charset</a>"),
        ];
        for (declared, body, expected) in table {
            let media = Media::of(Some(declared), body);
            let (Media::Text(charset) | Media::Html(charset)) = media else {
                unreachable!("{declared} is text")
            };
            assert_eq!(text_of(charset, body), expected, "{declared} {body:?}");
        }
    }

    #[test]
    fn json_becomes_utf_8() {
        assert_eq!(*json_of(None, b"[1]"), *b"[1]");
        assert_eq!(*json_of(None, b"\xef\xbb\xbf[1]"), *b"[1]");
        assert_eq!(*json_of(None, b"\xff\xfe[\x001\x00]\x00"), *b"[1]");
        assert_eq!(*json_of(Some(WINDOWS_1252), b"[\"\xe9\"]"), *"[\"é\"]".as_bytes());
        assert_eq!(*json_of(Some(UTF_8), b"[\"\xe9\"]"), *b"[\"\xe9\"]", "left to be refused");
    }
}
