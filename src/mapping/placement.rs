//! Values in path, query, headers and cookies: percent-encoding, and what may not stand there.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{FieldRule, Location, MappingError};
use crate::http::{is_framing, is_token_byte};

/// RFC 3986 section 2.3: everything but the unreserved characters is encoded, so a value can
/// neither end its segment nor start a parameter.
pub(super) const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Headers that belong to the body or to the way to the API, besides those that frame a message.
const FORBIDDEN_HEADERS: [&str; 4] =
    ["accept-encoding", "content-encoding", "proxy-authenticate", "proxy-authorization"];

/// Appends `text` percent-encoded.
pub(super) fn encode(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, ENCODED));
}

/// What keeps a text from its place; `None` when nothing does.
pub(super) fn text_problem(location: Location, text: &str) -> Option<&'static str> {
    match location {
        Location::Path => path_problem(text),
        Location::Header => header_problem(text),
        Location::Query | Location::Cookie | Location::Body => None,
    }
}

/// Of a value that would leave out a part of the path.
pub(super) const EMPTY: &str = "must not be empty, because it is a part of the path";

/// Servers decode a path before they resolve `..` in it, so encoding does not help: such a value
/// would reach another resource than the one the operator mapped.
fn path_problem(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some(EMPTY);
    }
    let dots = text.split(['/', '\\']).any(|part| matches!(part, "." | ".."));
    dots.then_some("must not have '.' or '..' as a part of a path")
}

/// RFC 9110 section 5.5: a field value with CR, LF or NUL is dangerous.
fn header_problem(text: &str) -> Option<&'static str> {
    let control = text.bytes().any(|byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f);
    control.then_some("must not have control characters, because it is sent as a header")
}

/// Whether rules may set this header or cookie.
pub(super) fn check_name(rule: &FieldRule, name: &str) -> Result<(), MappingError> {
    let refuse = |problem| Err(MappingError::Header { field: rule.name(), problem });
    if !name.bytes().all(is_token_byte) {
        return refuse(
            "the name has characters that may not stand in it; change source_field_name",
        );
    }
    if rule.location != Location::Header {
        return Ok(());
    }
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "cookie" => refuse("cookies are set with location \"cookie\""),
        "content-type" if rule.constant.is_none() => {
            refuse("Content-Type can only be a constant; set constant or remove the rule")
        }
        "authorization" => {
            refuse("credentials belong into the headers of the connection; remove the rule")
        }
        _ if is_framing(name) || FORBIDDEN_HEADERS.contains(&lower.as_str()) => refuse(
            "this header belongs to the connection and is set by the runtime; remove the rule",
        ),
        _ => Ok(()),
    }
}

/// A path template in pieces.
#[derive(Debug)]
pub(super) enum Piece {
    Text(Box<str>),
    Placeholder(Box<str>),
}

/// Cuts a template at its placeholders.
pub(super) fn parse_template(path: &str) -> Result<Vec<Piece>, MappingError> {
    let refuse = |problem| Err(MappingError::Template { path: path.to_owned(), problem });
    if !path.starts_with('/') {
        return refuse("it has to start with '/'");
    }
    if path
        .contains(|character: char| character.is_control() || matches!(character, ' ' | '#' | '\\'))
    {
        return refuse(
            "it has a blank, control character, '#' or '\\'; write them percent-encoded",
        );
    }
    let mut pieces = Vec::new();
    let mut rest = path;
    loop {
        let (text, after) = match rest.split_once('{') {
            None => (rest, None),
            Some((text, after)) => (text, Some(after)),
        };
        if text.contains('}') {
            return refuse("a '}' has no '{' before it");
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(ascii(text)));
        }
        let Some(after) = after else { break };
        let Some((name, after)) = after.split_once('}') else {
            return refuse("a '{' has no '}' after it");
        };
        if name.is_empty() || name.contains(['{', '/', '?']) {
            return refuse("a placeholder has no usable name between '{' and '}'");
        }
        pieces.push(Piece::Placeholder(name.into()));
        rest = after;
    }
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    if query.contains('{') {
        return refuse(
            "placeholders cannot stand in the query; use fields with location \"query\"",
        );
    }
    // Values are never empty, so only one beside one dot can come to no more than two characters.
    let dotted =
        |segment: &str| segment.matches('{').count() == 1 && without_placeholders(segment) == ".";
    if plain.split('/').any(dotted) {
        return refuse("a segment is a placeholder and a dot; a value could make it '..'");
    }
    Ok(pieces)
}

fn without_placeholders(segment: &str) -> String {
    let mut literal = String::new();
    for part in segment.split('{') {
        literal.push_str(part.split_once('}').map_or(part, |(_, after)| after));
    }
    literal
}

/// Characters beyond ASCII percent-encoded; what the operator encoded stays.
fn ascii(text: &str) -> Box<str> {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii() {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out.into_boxed_str()
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_cannot_leave_their_segment() {
        for text in ["", ".", "..", "../x", "a/../b", "a/..", "..\\x", "./a", "a/./b", "/.."] {
            assert!(path_problem(text).is_some(), "{text}");
        }
        for text in ["a", "...", "..a", "a..", "a/b", "v1.2", ".hidden", "/", "..%2f", "a?b#c"] {
            assert!(path_problem(text).is_none(), "{text}");
        }
    }

    #[test]
    fn header_values_have_no_control_characters() {
        for text in ["a\r\nX: 1", "a\n", "\0", "\u{7f}", "\r"] {
            assert!(header_problem(text).is_some(), "{text:?}");
        }
        for text in ["", "a b\tc", "é", "\"quoted\""] {
            assert!(header_problem(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn templates_are_cut_at_their_placeholders() {
        let shown = |path| -> Vec<String> {
            let pieces = parse_template(path).unwrap();
            let show = |piece: &Piece| match piece {
                Piece::Text(text) => text.to_string(),
                Piece::Placeholder(name) => format!("<{name}>"),
            };
            pieces.iter().map(show).collect()
        };
        assert_eq!(shown("/"), ["/"]);
        assert_eq!(shown("/{a}/{b}/x/{a}"), ["/", "<a>", "/", "<b>", "/x/", "<a>"]);
        assert_eq!(shown("/größe/{a}.json?v=1"), ["/gr%C3%B6%C3%9Fe/", "<a>", ".json?v=1"]);
        // No value makes these lead elsewhere: none is empty.
        for path in ["/{base}...{head}", "/{name}.{format}", "/{a}..", "/x.{a}"] {
            assert!(parse_template(path).is_ok(), "{path}");
        }
        for path in [
            "", "a", "/{", "/}", "/{}", "/a b", "/#", "/{a/b}", "/{{a}}", "/?x={a}", "/.{a}",
            "/{a}.", "/\n",
        ] {
            assert!(parse_template(path).is_err(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn encoding_round_trips(text in any::<String>()) {
            let mut encoded = String::new();
            encode(&mut encoded, &text);
            let reserved = |byte: u8| !byte.is_ascii_alphanumeric() && !b"-._~%".contains(&byte);
            prop_assert!(!encoded.bytes().any(reserved));
            prop_assert_eq!(percent_decode_str(&encoded).decode_utf8().unwrap(), text.as_str());
        }
    }
}
