//! Bodies of several parts: forms and others out, `multipart/related` and its kin back (RFC 2046
//! section 5.1, RFC 7578).
//!
//! Invariants worth naming:
//!
//! - The boundary that is written stands nowhere in what is written, and is told by the content
//!   alone: one content, one body. No randomness is needed.
//! - Names, file names and content types cannot end their line.
//! - A reader's outcome never depends on how the bytes were cut into reads. Parts, the head of each,
//!   and its fields are bounded; the body itself is by whoever receives it.
//! - A line that begins as a delimiter and does not go on as one is refused, not guessed at: two
//!   readers could see other parts there.

mod read;
mod write;

use std::borrow::Cow;

pub use read::{MultipartError, Part, PartLimits, PartProgress, PartReader, parts};
pub use write::{PartHead, PartWriter};

/// Longest boundary (RFC 2046 section 5.1.1).
pub const BOUNDARY_BYTES_MAX: usize = 70;

/// What stands between parts, without the two hyphens in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary(Box<str>);

impl Boundary {
    /// A boundary by the grammar of RFC 2046; `None` for what is none.
    pub fn new(text: &str) -> Option<Self> {
        let is_boundary = (1..=BOUNDARY_BYTES_MAX).contains(&text.len())
            && !text.ends_with(' ')
            && text.bytes().all(is_boundary_byte);
        is_boundary.then(|| Self(text.into()))
    }

    /// The one a content type names, such as `multipart/related; boundary="x"`. `None` where it is
    /// of another kind, or names none or two.
    pub fn of_content_type(content_type: &str) -> Option<Self> {
        let (group, _) = content_type.trim_start().split_once('/')?;
        if !group.eq_ignore_ascii_case("multipart")
            || parameters(content_type, "boundary").count() != 1
        {
            return None;
        }
        Self::new(&parameter(content_type, "boundary")?)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// RFC 2046 section 5.1.1: `bchars`.
const fn is_boundary_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'\''
                | b'('
                | b')'
                | b'+'
                | b'_'
                | b','
                | b'-'
                | b'.'
                | b'/'
                | b':'
                | b'='
                | b'?'
                | b' '
        )
}

/// The first parameter of this name behind a value: `b` of `x of a; x="b"`, quotes taken off.
pub fn parameter<'a>(value: &'a str, name: &str) -> Option<Cow<'a, str>> {
    parameters(value, name).next()
}

fn parameters<'a>(value: &'a str, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    let mut rest = after_semicolon(value);
    std::iter::from_fn(move || {
        loop {
            let (key, behind) = rest?.split_once('=')?;
            let (given, behind) = parameter_value(behind.trim_start());
            rest = after_semicolon(behind);
            // What stands before the name belongs to a parameter without a value.
            let key = key.rsplit(';').next().unwrap_or(key).trim();
            if key.eq_ignore_ascii_case(name) {
                return Some(given);
            }
        }
    })
}

fn after_semicolon(text: &str) -> Option<&str> {
    text.split_once(';').map(|(_, behind)| behind)
}

/// RFC 9110 section 5.6.6: a token or a quoted string, and what follows.
fn parameter_value(text: &str) -> (Cow<'_, str>, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        let (value, behind) = text.split_at(end);
        return (Cow::Borrowed(value.trim_end()), behind);
    };
    let mut value = String::new();
    let mut is_escaped = false;
    for (at, character) in quoted.char_indices() {
        match character {
            _ if is_escaped => {
                is_escaped = false;
                value.push(character);
            }
            '\\' => is_escaped = true,
            '"' => return (Cow::Owned(value), quoted.get(at + 1..).unwrap_or_default()),
            _ => value.push(character),
        }
    }
    (Cow::Owned(value), "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn boundaries_are_those_of_the_standard() {
        for text in ["a", "gc0pJq0M:08jU534c0p", "(a b)", "'+_,-./:=?", &"x".repeat(70)] {
            assert_eq!(Boundary::new(text).unwrap().as_str(), text);
        }
        for text in ["", "a ", "a\r", "a;b", "a\"b", "é", &"x".repeat(71)] {
            assert_eq!(Boundary::new(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_content_type_names_one_boundary() {
        for (content_type, expected) in [
            ("multipart/related; boundary=abc", Some("abc")),
            ("Multipart/Related;boundary=\"a b:c\"; type=\"text/xml\"", Some("a b:c")),
            ("multipart/related; type=\"a;boundary=x\"; BOUNDARY = \"y\\z\"", Some("yz")),
            ("multipart/mixed; flag; boundary=abc ; a=b", Some("abc")),
            ("multipart/mixed; boundary=a; boundary=a", None),
            ("multipart/mixed", None),
            ("multipart/mixed; boundary=", None),
            ("text/plain; boundary=abc", None),
            ("boundary=abc", None),
            ("multipart/mixed; boundary=\"a", Some("a")),
        ] {
            let boundary = Boundary::of_content_type(content_type);
            assert_eq!(boundary.as_ref().map(Boundary::as_str), expected, "{content_type}");
        }
    }

    proptest! {
        #[test]
        fn any_value_has_parameters_or_none(text in "[a=;\" \\\\é]{0,20}") {
            prop_assert!(parameters(&text, "a").count() <= text.len());
        }
    }
}
