//! Reading parts.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use thiserror::Error;

use super::Boundary;
use crate::http::is_field_name;

/// What a reader accepts before it refuses a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartLimits {
    /// Most parts of one body.
    pub parts_max: usize,
    /// Longest head of a part.
    pub head_bytes_max: usize,
    /// Most fields in the head of a part.
    pub headers_max: usize,
}

impl Default for PartLimits {
    fn default() -> Self {
        Self { parts_max: 1_000, head_bytes_max: 16 * 1024, headers_max: 50 }
    }
}

/// Why a body is not of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MultipartError {
    /// A line begins with the boundary and goes on as no delimiter does.
    #[error("a line begins with the boundary and is no delimiter")]
    Delimiter,
    /// The head of a part has a field that is none, or a line that does not end in CRLF.
    #[error("the head of a part is malformed")]
    Head,
    /// The head of a part is too long.
    #[error("the head of a part is longer than {limit} bytes")]
    HeadTooLarge {
        /// Longest head read.
        limit: usize,
    },
    /// The head of a part has too many fields.
    #[error("a part has more than {limit} header fields")]
    TooManyHeaders {
        /// Most fields read.
        limit: usize,
    },
    /// There are too many parts.
    #[error("the body has more than {limit} parts")]
    TooManyParts {
        /// Most parts read.
        limit: usize,
    },
    /// The body ends before its last delimiter.
    #[error("the body ends before its last delimiter")]
    Truncated,
}

/// How far a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartProgress {
    /// The body goes on.
    Incomplete,
    /// The last delimiter ends here; what follows means nothing.
    Complete(usize),
}

/// One part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    head: &'a [u8],
    /// Its content, as it was sent.
    pub body: &'a [u8],
}

impl<'a> Part<'a> {
    /// Its fields in order. Folded lines are put together with a space; broken text is replaced.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> + use<'a> {
        let mut rest = self.head;
        std::iter::from_fn(move || {
            let (field, behind) = rest.split_at(field_end(rest));
            rest = behind;
            let colon = memchr(b':', field)?;
            let (name, value) = field.split_at(colon);
            Some((std::str::from_utf8(name).ok()?, unfolded(value.get(1..)?)))
        })
    }

    /// The value of the first field of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<Cow<'a, str>> {
        self.headers().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// All parts of a whole body.
///
/// # Errors
///
/// What is wrong with it.
pub fn parts<'a>(
    body: &'a [u8],
    boundary: &Boundary,
    limits: PartLimits,
) -> Result<Vec<Part<'a>>, MultipartError> {
    let mut reader = PartReader::new(boundary, limits);
    match reader.advance(body)? {
        PartProgress::Complete(_) => Ok(reader.parts(body).collect()),
        PartProgress::Incomplete => Err(MultipartError::Truncated),
    }
}

/// Finds the parts of a body that arrives bit by bit, looking at each byte of content once.
#[derive(Debug)]
pub struct PartReader {
    /// With the hyphens, as it stands at the beginning of a line.
    delimiter: Box<str>,
    limits: PartLimits,
    state: State,
    /// From here on nothing was looked at.
    scanned: usize,
    spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Preamble,
    /// In a line that begins with the boundary.
    Delimiter,
    Head,
    Body,
    Complete,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    head: usize,
    body: usize,
    end: usize,
}

impl PartReader {
    /// A reader of a body whose content type names this boundary.
    pub fn new(boundary: &Boundary, limits: PartLimits) -> Self {
        let delimiter = ["--", boundary.as_str()].concat().into_boxed_str();
        Self { delimiter, limits, state: State::Preamble, scanned: 0, spans: Vec::new() }
    }

    /// Looks at what was appended to `bytes`, the body so far, since the last call.
    ///
    /// # Errors
    ///
    /// What is wrong with the body. The reader is of no more use then.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<PartProgress, MultipartError> {
        loop {
            let is_done = match self.state {
                State::Preamble => self.preamble(bytes),
                State::Delimiter => self.delimiter_line(bytes)?,
                State::Head => self.head(bytes)?,
                State::Body => self.body(bytes),
                State::Complete => return Ok(PartProgress::Complete(self.scanned)),
            };
            if !is_done {
                return Ok(PartProgress::Incomplete);
            }
        }
    }

    /// The parts found so far that are whole. `bytes` is the body as [`advance`](Self::advance)
    /// saw it last.
    pub fn parts<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = Part<'a>> {
        let is_open = matches!(self.state, State::Head | State::Body);
        let whole = self.spans.len() - usize::from(is_open && !self.spans.is_empty());
        self.spans.iter().take(whole).map(|span| Part {
            head: bytes.get(span.head..span.body).unwrap_or_default(),
            body: bytes.get(span.body..span.end).unwrap_or_default(),
        })
    }

    /// RFC 2046 section 5.1.1: the first delimiter begins the body, or a line of it.
    fn preamble(&mut self, bytes: &[u8]) -> bool {
        if self.scanned == 0 {
            let delimiter = self.delimiter.as_bytes();
            if bytes.starts_with(delimiter) {
                self.scanned = delimiter.len();
                self.state = State::Delimiter;
                return true;
            }
            if delimiter.starts_with(bytes) {
                return false;
            }
        }
        self.find_delimiter(bytes).is_some()
    }

    /// Looks for the delimiter of a line that is not the first; where the line end before it is.
    fn find_delimiter(&mut self, bytes: &[u8]) -> Option<usize> {
        let whole = ["\r\n", &*self.delimiter].concat();
        let rest = bytes.get(self.scanned..).unwrap_or_default();
        if let Some(found) = memmem::find(rest, whole.as_bytes()) {
            let at = self.scanned + found;
            self.scanned = at + whole.len();
            self.state = State::Delimiter;
            return Some(at);
        }
        // Its beginning may stand at the end.
        self.scanned = self.scanned.max((bytes.len() + 1).saturating_sub(whole.len()));
        None
    }

    /// What follows a boundary: two hyphens, or blanks and the end of the line.
    fn delimiter_line(&mut self, bytes: &[u8]) -> Result<bool, MultipartError> {
        let rest = bytes.get(self.scanned..).unwrap_or_default();
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let blanks = rest.iter().take_while(|byte| is_blank(byte)).count();
        if blanks > self.limits.head_bytes_max {
            return Err(MultipartError::Delimiter);
        }
        match rest.get(blanks..).unwrap_or_default() {
            [] | [b'\r'] => Ok(false),
            [b'-'] if blanks == 0 => Ok(false),
            [b'-', b'-', ..] if blanks == 0 => {
                self.scanned += 2;
                self.state = State::Complete;
                Ok(true)
            }
            [b'\r', b'\n', ..] => {
                if self.spans.len() == self.limits.parts_max {
                    return Err(MultipartError::TooManyParts { limit: self.limits.parts_max });
                }
                self.scanned += blanks + 2;
                let at = self.scanned;
                self.spans.push(Span { head: at, body: at, end: at });
                self.state = State::Head;
                Ok(true)
            }
            _ => Err(MultipartError::Delimiter),
        }
    }

    /// Lines up to an empty one.
    fn head(&mut self, bytes: &[u8]) -> Result<bool, MultipartError> {
        let start = self.spans.last().map_or(self.scanned, |span| span.head);
        let limit = self.limits.head_bytes_max;
        loop {
            let line = bytes.get(self.scanned..).unwrap_or_default();
            let found = memchr(b'\n', line);
            let length = found.map_or(line.len(), |end| end + 1);
            if self.scanned + length - start > limit {
                return Err(MultipartError::HeadTooLarge { limit });
            }
            if found.is_none() {
                return Ok(false);
            }
            let line = line.get(..length).unwrap_or_default();
            let Some(line) = line.strip_suffix(b"\r\n") else { return Err(MultipartError::Head) };
            if line.is_empty() {
                let body = self.scanned + 2;
                let head = bytes.get(start..self.scanned).unwrap_or_default();
                self.check_head(head)?;
                if let Some(span) = self.spans.last_mut() {
                    (span.body, span.end) = (body, body);
                }
                // RFC 2046 section 5.1.1: of a part without content, the empty line is that of the
                // delimiter.
                self.state = State::Body;
                return Ok(true);
            }
            if line.starts_with(self.delimiter.as_bytes()) {
                return Err(MultipartError::Delimiter);
            }
            self.scanned += length;
        }
    }

    fn check_head(&self, head: &[u8]) -> Result<(), MultipartError> {
        let (mut rest, mut count) = (head, 0);
        while !rest.is_empty() {
            let (field, behind) = rest.split_at(field_end(rest));
            rest = behind;
            count += 1;
            if count > self.limits.headers_max {
                return Err(MultipartError::TooManyHeaders { limit: self.limits.headers_max });
            }
            let name = memchr(b':', field).and_then(|colon| field.get(..colon));
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            let is_bad = |byte: &u8| *byte == 0 || *byte == 0x7f;
            if !name.is_some_and(is_field_name) || field.iter().any(is_bad) {
                return Err(MultipartError::Head);
            }
        }
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> bool {
        let Some(at) = self.find_delimiter(bytes) else { return false };
        if let Some(span) = self.spans.last_mut() {
            span.end = at.max(span.body);
        }
        true
    }
}

/// Where the first field of a head ends: at a line end that no blank follows.
fn field_end(head: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr(b'\n', head.get(at..).unwrap_or_default()) {
        at += found + 1;
        if !matches!(head.get(at), Some(b' ' | b'\t')) {
            return at;
        }
    }
    head.len()
}

fn unfolded(value: &[u8]) -> Cow<'_, str> {
    let value = value.trim_ascii();
    if memchr(b'\n', value).is_none() {
        return String::from_utf8_lossy(value);
    }
    let lines = value.split(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = lines.map(<[u8]>::trim_ascii).collect();
    Cow::Owned(String::from_utf8_lossy(&lines.join(&b' ')).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn boundary() -> Boundary {
        Boundary::new("b b").unwrap()
    }

    fn limits() -> PartLimits {
        PartLimits { parts_max: 4, head_bytes_max: 64, headers_max: 3 }
    }

    /// Each part as `head|body`, read at once.
    fn read(body: &str) -> Result<Vec<String>, MultipartError> {
        let parts = parts(body.as_bytes(), &boundary(), limits())?;
        let shown = parts.iter().map(|part| {
            let head: Vec<String> =
                part.headers().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{}|{}", head.join(","), String::from_utf8_lossy(part.body))
        });
        Ok(shown.collect())
    }

    #[test]
    fn parts_are_read_as_they_were_written() {
        let table: &[(&str, &[&str])] = &[
            ("--b b--", &[]),
            ("--b b\r\n\r\nx\r\n--b b--", &["|x"]),
            ("--b b\r\n\r\n\r\n--b b--\r\n", &["|"]),
            // Without content: the empty line is that of the delimiter.
            ("--b b\r\nA: 1\r\n\r\n--b b--", &["A=1|"]),
            (
                "--b b \t\r\nA:1\r\nB: 2 \r\n\r\nx\r\ny\r\n--b b\r\n\r\nz\r\n--b b--end",
                &["A=1,B=2|x\r\ny", "|z"],
            ),
            ("pre\r\n--b b\r\n\r\nx\r\n--b b--\r\n--b b\r\n", &["|x"]),
            ("--b\r\n--b b\r\n\r\nx\r\n--b\r\n--b b--", &["|x\r\n--b"]),
            (
                "--b b\r\nType: a;\r\n b=c;\r\n\td=e\r\n\r\n\r\n\r\n--b b--",
                &["Type=a; b=c; d=e|\r\n"],
            ),
            ("--b b\r\n\r\nx --b b\n--b b\r\n--b b--", &["|x --b b\n--b b"]),
            ("--b b\r\nA:\r\n\r\n\r\n\r\n\r\n--b b--", &["A=|\r\n\r\n"]),
        ];
        for (body, expected) in table {
            assert_eq!(
                read(body).as_deref(),
                Ok(&*expected.iter().map(ToString::to_string).collect::<Vec<_>>()),
                "{body:?}"
            );
        }
    }

    #[test]
    fn what_is_not_of_parts_is_refused() {
        let part = "--b b\r\n\r\nx\r\n";
        for (body, expected) in [
            ("", MultipartError::Truncated),
            ("x", MultipartError::Truncated),
            ("--b b", MultipartError::Truncated),
            ("--b b-", MultipartError::Truncated),
            (" --b b--", MultipartError::Truncated),
            (part, MultipartError::Truncated),
            ("--b b\r\nA: 1", MultipartError::Truncated),
            ("--b bx\r\n\r\n--b b--", MultipartError::Delimiter),
            ("--b b x\r\n\r\n--b b--", MultipartError::Delimiter),
            ("--b b -- \r\n", MultipartError::Delimiter),
            ("--b b\n\r\nx\r\n--b b--", MultipartError::Delimiter),
            ("--b b\r\n\r\nx\r\n--b b.\r\n--b b--", MultipartError::Delimiter),
            ("--b b\r\nA: 1\n\r\nx\r\n--b b--", MultipartError::Head),
            ("--b b\r\nA\r\n\r\nx\r\n--b b--", MultipartError::Head),
            ("--b b\r\n: 1\r\n\r\nx\r\n--b b--", MultipartError::Head),
            ("--b b\r\nA : 1\r\n\r\nx\r\n--b b--", MultipartError::Head),
            ("--b b\r\n A: 1\r\n\r\nx\r\n--b b--", MultipartError::Head),
            ("--b b\r\nA: \0\r\n\r\nx\r\n--b b--", MultipartError::Head),
            ("--b b\r\n--b b--\r\n", MultipartError::Delimiter),
            ("--b b\r\nA: 1\r\n--b b--\r\n\r\n", MultipartError::Delimiter),
            (
                "--b b\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\n\r\n--b b--",
                MultipartError::TooManyHeaders { limit: 3 },
            ),
            (
                &format!("--b b\r\nA: {}", "x".repeat(70)),
                MultipartError::HeadTooLarge { limit: 64 },
            ),
            (&format!("{}--b b--", part.repeat(5)), MultipartError::TooManyParts { limit: 4 }),
        ] {
            assert_eq!(read(body), Err(expected), "{body:?}");
        }
        assert_eq!(read(&format!("{}--b b--", part.repeat(4))).unwrap().len(), 4);
    }

    #[test]
    fn fields_are_found_in_any_case() {
        let body = b"--b b\r\ncontent-ID: <a>\r\nContent-Type: t/x\r\n\r\n\r\n--b b--";
        let part = parts(body, &boundary(), limits()).unwrap()[0];
        assert_eq!(part.header("Content-Id").as_deref(), Some("<a>"));
        assert_eq!(part.header("content-type").as_deref(), Some("t/x"));
        assert_eq!(part.header("x"), None);
    }

    proptest! {
        /// The last word does not depend on how the bytes came.
        #[test]
        fn cuts_change_nothing(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "--b b", "--", "\r\n", "\r\n", "\r\n\r\n", "A: 1", " ", "x", "-", "\n", "--b", ":",
                ]),
                0..24,
            ),
        ) {
            let body = pieces.concat();
            let bytes = body.as_bytes();
            let at_once = parts(bytes, &boundary(), limits());
            let mut reader = PartReader::new(&boundary(), limits());
            let mut by_byte = Err(MultipartError::Truncated);
            for end in 0..=bytes.len() {
                match reader.advance(&bytes[..end]) {
                    Ok(PartProgress::Incomplete) => {
                        let before = reader.parts(&bytes[..end]).collect::<Vec<_>>();
                        prop_assert!(before.iter().all(|part| part.body.len() <= end));
                    }
                    Ok(PartProgress::Complete(at)) => {
                        prop_assert!(at <= end);
                        by_byte = Ok(reader.parts(bytes).collect());
                        break;
                    }
                    Err(error) => {
                        by_byte = Err(error);
                        break;
                    }
                }
            }
            prop_assert_eq!(at_once, by_byte);
        }

        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parts(&body, &boundary(), limits());
        }
    }
}
