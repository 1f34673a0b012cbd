//! Values in path, query, headers and cookies: percent-encoding, and what may not stand there.

use std::borrow::Cow;
use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

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
    let dots = text.split(SLASHES).any(is_dots);
    dots.then_some("must not have '.' or '..' as a part of a path")
}

/// What servers take for the end of a segment, once they have decoded it.
const SLASHES: [char; 2] = ['/', '\\'];

fn is_dots(part: &str) -> bool {
    matches!(part, "." | "..")
}

/// What keeps a text from a place in a path beside dots, besides what keeps it from any: with a
/// slash at its edge it would leave the dots alone in their segment.
pub(super) fn edge_problem(text: &str) -> Option<&'static str> {
    let has_edge = text.starts_with(SLASHES) || text.ends_with(SLASHES);
    has_edge.then_some("must not begin or end with a slash, because dots are beside it in the path")
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
    let query = path.split_once('?').map_or("", |(_, query)| query);
    if query.contains('{') {
        return refuse(
            "placeholders cannot stand in the query; use fields with location \"query\"",
        );
    }
    Ok(pieces)
}

/// The placeholders of a template beside which a part of a path is nothing but `.` or `..`:
/// `{id}.{format}`.
///
/// Together with what is said of each value this keeps every dot segment out of a target. Cut at its
/// slashes, a target has parts that are made of text of the template and of parts of values. One that
/// is made of dots only has no part of a value in it that is not made of dots, and such a part is
/// neither `.` nor `..` ([`path_problem`]): it is empty, or it makes the whole longer than two dots.
/// So the dots are text of the template, and what stands on either side is the end of the segment or
/// a value whose edge there is empty: a slash, since no value is empty. That is what
/// [`edge_problem`] refuses.
pub(super) fn beside_dots(path: &str) -> Vec<Box<str>> {
    let pieces = parse_template(path).unwrap_or_default();
    let mut names = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let Piece::Placeholder(name) = piece else { continue };
        let text_at = |at: Option<usize>| match at.and_then(|at| pieces.get(at)) {
            Some(Piece::Text(text)) => percent_decode_str(text).decode_utf8_lossy(),
            _ => Cow::Borrowed(""),
        };
        let (before, after) = (text_at(at.checked_sub(1)), text_at(Some(at + 1)));
        let after = after.split('?').next().unwrap_or_default();
        let before = before.rsplit(SLASHES).next().unwrap_or_default();
        let after = after.split(SLASHES).next().unwrap_or_default();
        if (is_dots(before) || is_dots(after)) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
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
        for path in ["", "a", "/{", "/}", "/{}", "/a b", "/#", "/{a/b}", "/{{a}}", "/?x={a}", "/\n"]
        {
            assert!(parse_template(path).is_err(), "{path}");
        }
    }

    #[test]
    fn dots_beside_placeholders_are_found() {
        for (path, expected) in [
            ("/{a}.{b}", &["a", "b"][..]),
            ("/{a}..{b}x", &["a", "b"]),
            ("/{a}...{b}", &[]),
            ("/.{a}/{b}..", &["a", "b"]),
            ("/%2e{a}/x%2F.{b}", &["a", "b"]),
            ("/{a}.?v=1", &["a"]),
            ("/{a}{b}/{c}.json", &[]),
            ("/v1.{a}/.well-known/{b}", &[]),
            ("/{a}x.{b}/{a}.", &["a"]),
        ] {
            let found = beside_dots(path);
            assert_eq!(found.iter().map(|name| &**name).collect::<Vec<_>>(), expected, "{path}");
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
