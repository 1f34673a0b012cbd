//! What a client accepts (RFC 9110 section 12.5.1), as far as MCP asks: JSON, an event stream, or
//! both.
//!
//! Lenient on purpose: real clients send every shape of this field. What cannot be read counts as
//! not said; only a clear exclusion excludes.

/// The two kinds of answer, and whether the client cared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// `application/json` may be answered.
    pub json: bool,
    /// `text/event-stream` may be answered.
    pub event_stream: bool,
    /// Neither kind was named: the field is absent, empty, or only `*/*` covers both.
    pub absent_or_any: bool,
}

/// How closely a media range fits; the closest one decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    None,
    Anything,
    Group,
    Exact,
}

/// The best range found so far for one kind.
#[derive(Debug, Clone, Copy)]
struct Verdict {
    fit: Fit,
    is_accepted: bool,
}

impl Verdict {
    const UNKNOWN: Self = Self { fit: Fit::None, is_accepted: false };

    /// Takes a range into account. Between ranges that fit alike, one that accepts wins.
    fn hear(&mut self, fit: Fit, is_accepted: bool) {
        if fit > self.fit {
            *self = Self { fit, is_accepted };
        } else if fit == self.fit && fit != Fit::None {
            self.is_accepted |= is_accepted;
        }
    }
}

/// Reads one Accept field; `None` stands for an absent one.
pub fn parse(value: Option<&[u8]>) -> Accepts {
    parse_all(value.into_iter())
}

/// What the official clients send, word for word.
const BOTH_NAMED: &[u8] = b"application/json, text/event-stream";

/// Reads all Accept fields of a head, which together are one list.
pub fn parse_all<'a>(values: impl Iterator<Item = &'a [u8]>) -> Accepts {
    let (mut json, mut event_stream) = (Verdict::UNKNOWN, Verdict::UNKNOWN);
    let mut said_anything = false;
    for value in values {
        if value == BOTH_NAMED {
            return Accepts { json: true, event_stream: true, absent_or_any: false };
        }
        for member in Split::new(value, b',') {
            let Some(range) = Range::read(member) else { continue };
            said_anything = true;
            json.hear(range.fit(b"application", b"json"), range.is_accepted);
            event_stream.hear(range.fit(b"text", b"event-stream"), range.is_accepted);
        }
    }
    if !said_anything {
        return Accepts { json: true, event_stream: true, absent_or_any: true };
    }
    Accepts {
        json: json.is_accepted,
        event_stream: event_stream.is_accepted,
        absent_or_any: json.is_accepted
            && event_stream.is_accepted
            && json.fit == Fit::Anything
            && event_stream.fit == Fit::Anything,
    }
}

/// One media range.
struct Range<'a> {
    kind: &'a [u8],
    subtype: &'a [u8],
    is_accepted: bool,
}

impl<'a> Range<'a> {
    /// Reads `type/subtype;parameter=value;q=0.5`; `None` for anything else.
    fn read(member: &'a [u8]) -> Option<Self> {
        let mut parts = Split::new(member, b';');
        let name = parts.next()?.trim_ascii();
        let slash = name.iter().position(|byte| *byte == b'/');
        let (kind, subtype) = match slash {
            Some(slash) => (&name[..slash], &name[slash + 1..]),
            // Java's URLConnection sends a lone star.
            None if name == b"*" => (name, name),
            None => return None,
        };
        if kind.is_empty() || subtype.is_empty() {
            return None;
        }
        Some(Self { kind, subtype, is_accepted: !parts.any(is_zero_weight) })
    }

    fn fit(&self, kind: &[u8], subtype: &[u8]) -> Fit {
        if self.kind == b"*" {
            return if self.subtype == b"*" { Fit::Anything } else { Fit::None };
        }
        if !self.kind.eq_ignore_ascii_case(kind) {
            Fit::None
        } else if self.subtype == b"*" {
            Fit::Group
        } else if self.subtype.eq_ignore_ascii_case(subtype) {
            Fit::Exact
        } else {
            Fit::None
        }
    }
}

/// Whether a parameter is `q=0`, `q=0.0` and the like. A weight that cannot be read is no
/// exclusion.
fn is_zero_weight(parameter: &[u8]) -> bool {
    let parameter = parameter.trim_ascii();
    let Some(equals) = parameter.iter().position(|byte| *byte == b'=') else { return false };
    let (name, value) = (parameter[..equals].trim_ascii(), parameter[equals + 1..].trim_ascii());
    if !name.eq_ignore_ascii_case(b"q") {
        return false;
    }
    match value.split_first() {
        Some((b'0', [])) => true,
        Some((b'0', [b'.', decimals @ ..])) => decimals.iter().all(|digit| *digit == b'0'),
        _ => false,
    }
}

/// Splits at a separator that stands outside quotes.
struct Split<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Split<'a> {
    fn new(text: &'a [u8], separator: u8) -> Self {
        Self { rest: Some(text), separator }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let (mut is_quoted, mut is_escaped) = (false, false);
        for (position, byte) in rest.iter().copied().enumerate() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_quoted => is_escaped = true,
                b'"' => is_quoted = !is_quoted,
                _ if byte == self.separator && !is_quoted => {
                    self.rest = Some(&rest[position + 1..]);
                    return Some(&rest[..position]);
                }
                _ => {}
            }
        }
        self.rest = None;
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn understands_what_clients_send() {
        let cases: [(&str, bool, bool, bool); 24] = [
            ("", true, true, true),
            (" , ,", true, true, true),
            ("*/*", true, true, true),
            ("*", true, true, true),
            ("*/*;q=0.8", true, true, true),
            ("text/html, */*;q=0.1", true, true, true),
            ("application/json", true, false, false),
            ("APPLICATION/JSON", true, false, false),
            ("text/event-stream", false, true, false),
            ("application/json, text/event-stream", true, true, false),
            ("text/event-stream,application/json", true, true, false),
            ("application/json;q=0.9, text/*", true, true, false),
            ("text/event-stream, */*", true, true, false),
            ("application/json, */*", true, true, false),
            ("text/html", false, false, false),
            ("application/json;q=0", false, false, false),
            ("application/json;q=0.000, */*", false, true, false),
            ("application/json; Q = 0 , text/event-stream;q=0.001", false, true, false),
            ("text/*;q=0, text/event-stream", false, true, false),
            ("*/*;q=0", false, false, false),
            ("application/json;charset=\"a,b;q=0\"", true, false, false),
            ("application/json;x=\"\\\"\", text/event-stream", true, true, false),
            ("application/json;q=abc", true, false, false),
            ("application/jsonx, application/*;q=0.5", true, false, false),
        ];
        for (value, json, event_stream, absent_or_any) in cases {
            let expected = Accepts { json, event_stream, absent_or_any };
            assert_eq!(parse(Some(value.as_bytes())), expected, "{value:?}");
        }
        assert!(parse(None).absent_or_any);
        let lines: [&[u8]; 2] = [b"application/json", b"text/event-stream"];
        let both = Accepts { json: true, event_stream: true, absent_or_any: false };
        assert_eq!(parse_all(lines.into_iter()), both);
    }

    proptest! {
        #[test]
        fn garbage_is_read_without_harm(value in proptest::collection::vec(any::<u8>(), 0..80)) {
            let accepts = parse(Some(&value));
            prop_assert!(!accepts.absent_or_any || (accepts.json && accepts.event_stream));
        }
    }
}
