//! The head of a message: finding its end in linear time, and indexing its fields.
//!
//! [`HeadScan`] remembers where it stopped, so a head that arrives byte by byte is looked at once.
//! It also refuses what httparse lets through: a line that does not end in CRLF. Only a whole head
//! is parsed.

use std::mem::MaybeUninit;

use memchr::memchr;
use smallvec::SmallVec;

use super::{HttpError, Known, Limits, TARGET_BYTES_MAX};

/// Longest first line: the longest target, a method, a version and two spaces.
const FIRST_LINE_BYTES_MAX: usize = TARGET_BYTES_MAX + 64;

/// Most header fields any configuration can allow; their places fit a byte.
pub(super) const HEADERS_CEILING: usize = 250;

/// The uninitialised slots httparse fills.
pub(super) type Slots<'a> = [MaybeUninit<httparse::Header<'a>>; HEADERS_CEILING];

/// Room for the most header fields any configuration allows; costs nothing until written.
#[inline]
pub(super) fn slots<'a>() -> Slots<'a> {
    [const { MaybeUninit::uninit() }; HEADERS_CEILING]
}

/// A range of the message's bytes, counted from its first byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

impl Span {
    /// The place of `part`, which is a slice of `whole`. Anything else gives an empty span.
    #[inline]
    pub(super) fn within(whole: &[u8], part: &[u8]) -> Self {
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        if start > whole.len() {
            return Self::default();
        }
        Self { start: start as u32, length: part.len() as u32 }
    }

    /// The bytes of this span; empty where `whole` is too short for it.
    #[inline]
    pub(super) fn of(self, whole: &[u8]) -> &[u8] {
        let start = self.start as usize;
        whole.get(start..start + self.length as usize).unwrap_or_default()
    }

    /// The text of this span; empty where it is not UTF-8.
    #[inline]
    pub(super) fn text(self, whole: &[u8]) -> &str {
        std::str::from_utf8(self.of(whole)).unwrap_or_default()
    }

    /// Whether the span holds nothing.
    pub(super) fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// What a look at the bytes so far found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    /// The head goes on.
    Incomplete,
    /// An empty line (two bytes) stands before the message.
    LeadingLine,
    /// The first line is longer than any this product reads.
    FirstLineTooLong,
    /// The head is complete and this long, its empty line included.
    Complete(usize),
}

/// Looks for the end of a head, each byte once.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct HeadScan {
    scanned: usize,
    line_start: usize,
    lines: usize,
}

impl HeadScan {
    /// Looks at what was appended to `bytes`, the message so far, since the last call.
    ///
    /// The outcome does not depend on how the bytes were cut: a limit is judged by position, never
    /// by how much happens to be there.
    pub(super) fn advance(&mut self, bytes: &[u8], limits: &Limits) -> Result<Scanned, HttpError> {
        while let Some(offset) = memchr(b'\n', bytes.get(self.scanned..).unwrap_or_default()) {
            let line_feed = self.scanned + offset;
            if let Some(refusal) = self.over_limit(line_feed, limits)? {
                return Ok(refusal);
            }
            if line_feed == self.line_start || bytes[line_feed - 1] != b'\r' {
                return Err(HttpError::BareLineFeed);
            }
            let is_empty = line_feed - 1 == self.line_start;
            self.scanned = line_feed + 1;
            self.line_start = self.scanned;
            if is_empty {
                if self.lines == 0 {
                    return Ok(Scanned::LeadingLine);
                }
                return Ok(Scanned::Complete(self.scanned));
            }
            self.lines += 1;
            if self.lines > limits.headers_max + 1 {
                return Err(HttpError::TooManyHeaders { limit: limits.headers_max });
            }
        }
        self.scanned = bytes.len();
        Ok(self.over_limit(bytes.len(), limits)?.unwrap_or(Scanned::Incomplete))
    }

    /// Whether a line feed at `position` comes too late.
    fn over_limit(&self, position: usize, limits: &Limits) -> Result<Option<Scanned>, HttpError> {
        if self.lines == 0 && position >= FIRST_LINE_BYTES_MAX.min(limits.head_bytes_max) {
            return Ok(Some(Scanned::FirstLineTooLong));
        }
        if position >= limits.head_bytes_max {
            return Err(HttpError::HeadTooLarge { limit: limits.head_bytes_max });
        }
        Ok(None)
    }
}

/// Where a field's name and value stand.
#[derive(Debug, Clone, Copy)]
struct FieldSpan {
    name: Span,
    value: Span,
}

/// The fields of a head as spans, with the first of every known one indexed.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    spans: SmallVec<[FieldSpan; 16]>,
    /// Place in `spans` plus one; 0: the field is absent.
    places: [u8; Known::COUNT],
    repeated: u32,
}

impl Fields {
    /// Indexes `headers`, parsed out of `whole`, in one pass.
    pub(super) fn index(&mut self, whole: &[u8], headers: &[httparse::Header<'_>]) {
        self.clear();
        let (places, repeated) = (&mut self.places, &mut self.repeated);
        let headers = headers.get(..HEADERS_CEILING).unwrap_or(headers);
        self.spans.extend(headers.iter().zip(1_u8..).map(|(header, place)| {
            let name = header.name.as_bytes();
            if let Some(known) = Known::of(name) {
                if places[known as usize] == 0 {
                    places[known as usize] = place;
                } else {
                    *repeated |= 1 << known as u8;
                }
            }
            FieldSpan { name: Span::within(whole, name), value: Span::within(whole, header.value) }
        }));
    }

    /// Forgets all fields; the memory stays unless it is out of the ordinary.
    pub(super) fn clear(&mut self) {
        self.spans.clear();
        self.places = [0; Known::COUNT];
        self.repeated = 0;
    }

    /// The first value of `known`.
    #[inline]
    pub(super) fn value<'a>(&self, known: Known, whole: &'a [u8]) -> Option<&'a [u8]> {
        let place = usize::from(self.places[known as usize]).checked_sub(1)?;
        self.spans.get(place).map(|field| field.value.of(whole))
    }

    /// Whether `known` stands in the head more than once.
    #[inline]
    pub(super) fn is_repeated(&self, known: Known) -> bool {
        self.repeated & (1 << known as u8) != 0
    }

    /// All fields in their order.
    pub(super) fn iter<'a>(&'a self, whole: &'a [u8]) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.spans.iter().map(move |field| (field.name.text(whole), field.value.of(whole)))
    }

    /// All values of `known`, where a field may legally be given in several lines.
    pub(super) fn values<'a>(
        &'a self,
        known: Known,
        whole: &'a [u8],
    ) -> impl Iterator<Item = &'a [u8]> {
        let from = usize::from(self.places[known as usize]).wrapping_sub(1);
        let spans = self.spans.get(from..).unwrap_or_default();
        let spans = if self.is_repeated(known) { spans } else { &spans[..spans.len().min(1)] };
        spans
            .iter()
            .filter(move |field| field.name.of(whole).eq_ignore_ascii_case(known.name().as_bytes()))
            .map(move |field| field.value.of(whole))
    }
}

/// Maps what httparse found wrong; `first_line` is the error of the message's own first line.
pub(super) fn head_error(
    error: httparse::Error,
    first_line: HttpError,
    limits: &Limits,
) -> HttpError {
    match error {
        httparse::Error::HeaderName | httparse::Error::HeaderValue => HttpError::Header,
        httparse::Error::TooManyHeaders => HttpError::TooManyHeaders { limit: limits.headers_max },
        httparse::Error::Version => HttpError::Version,
        httparse::Error::NewLine | httparse::Error::Status | httparse::Error::Token => first_line,
    }
}

/// The members of a comma-separated list, trimmed; empty ones are left out.
pub(super) fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// Whether the connection outlives this message (RFC 9112 section 9.3): `close` always wins.
pub(super) fn keeps_alive(fields: &Fields, whole: &[u8], is_http_10: bool) -> bool {
    // Nearly all heads: the field once, with one option.
    if !fields.is_repeated(Known::Connection) {
        match fields.value(Known::Connection, whole) {
            None => return !is_http_10,
            Some(value) if value.eq_ignore_ascii_case(b"keep-alive") => return true,
            Some(_) => {}
        }
    }
    let mut keep = !is_http_10;
    for value in fields.values(Known::Connection, whole) {
        for option in list_members(value) {
            if option.eq_ignore_ascii_case(b"close") {
                return false;
            }
            keep |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
    keep
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Result<Scanned, HttpError> {
        let limits = Limits { head_bytes_max: 64, headers_max: 3, body_bytes_max: 0 };
        let whole = HeadScan::default().advance(text.as_bytes(), &limits);
        let mut piecewise = HeadScan::default();
        let mut last = Ok(Scanned::Incomplete);
        for end in 1..=text.len() {
            last = piecewise.advance(&text.as_bytes()[..end], &limits);
            assert!(last != Ok(Scanned::Incomplete) || piecewise.scanned == end, "looks once");
            if last != Ok(Scanned::Incomplete) {
                break;
            }
        }
        assert_eq!(whole, last, "{text:?} read at once and byte by byte");
        whole
    }

    #[test]
    fn finds_the_end_of_a_head() {
        let cases = [
            ("GET / HTTP/1.1\r\n\r\nrest", Ok(Scanned::Complete(18))),
            ("GET / HTTP/1.1\r\na: b\r\n\r\n", Ok(Scanned::Complete(24))),
            ("GET / HTTP/1.1\r\na: b\r\n\r", Ok(Scanned::Incomplete)),
            ("\r\nGET", Ok(Scanned::LeadingLine)),
            ("GET / HTTP/1.1\n\n", Err(HttpError::BareLineFeed)),
            ("GET / HTTP/1.1\r\na: b\n\r\n", Err(HttpError::BareLineFeed)),
            ("GET / HTTP/1.1\r\na: b\r\n\n", Err(HttpError::BareLineFeed)),
            ("\nGET", Err(HttpError::BareLineFeed)),
            ("G\r\na\r\nb\r\nc\r\n\r\n", Ok(Scanned::Complete(14))),
            ("G\r\na\r\nb\r\nc\r\nd\r\n", Err(HttpError::TooManyHeaders { limit: 3 })),
        ];
        for (text, expected) in cases {
            assert_eq!(scan(text), expected, "{text:?}");
        }
    }

    #[test]
    fn bounds_the_head() {
        let head = |length: usize| format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(length));
        assert_eq!(scan(&head(64 - 23)), Ok(Scanned::Complete(64)));
        assert_eq!(scan(&head(65 - 23)), Err(HttpError::HeadTooLarge { limit: 64 }));
    }

    #[test]
    fn close_wins_over_keep_alive() {
        let cases: [(&str, bool, bool); 8] = [
            ("", false, true),
            ("", true, false),
            ("connection: close\r\n", false, false),
            ("connection: Keep-Alive\r\n", true, true),
            ("connection: keep-alive, CLOSE\r\n", false, false),
            ("connection: keep-alive\r\nconnection: close\r\n", true, false),
            ("connection: x-close\r\n", false, true),
            ("connection: upgrade\r\nx: y\r\nconnection: keep-alive\r\n", true, true),
        ];
        for (lines, is_http_10, expected) in cases {
            let text = format!("{lines}\r\n");
            let mut storage = [httparse::EMPTY_HEADER; 8];
            let headers = match httparse::parse_headers(text.as_bytes(), &mut storage) {
                Ok(httparse::Status::Complete((_, headers))) => headers,
                other => panic!("{other:?}"),
            };
            let mut fields = Fields::default();
            fields.index(text.as_bytes(), headers);
            let found = keeps_alive(&fields, text.as_bytes(), is_http_10);
            assert_eq!(found, expected, "{lines:?}");
        }
    }
}
