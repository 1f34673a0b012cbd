//! Writing parts.

use std::collections::HashSet;

use memchr::memmem;

use super::Boundary;

/// What every boundary of ours begins with.
const PREFIX: &str = "ringway-";
/// And how many hexadecimal digits follow.
const DIGITS: usize = 16;

/// The head of a part (RFC 2046 section 5.1; of a form RFC 7578 section 4.2).
#[derive(Debug, Clone, Copy, Default)]
pub struct PartHead<'a> {
    /// The name of the field. Without it the part is none of a form.
    pub name: Option<&'a str>,
    /// The name of the file, where the part is one.
    pub filename: Option<&'a str>,
    /// What the part holds; text where absent.
    pub content_type: Option<&'a str>,
    /// Others. A `Content-Disposition` of them stands in place of the one that the name makes.
    pub headers: &'a [(Box<str>, Box<str>)],
}

impl PartHead<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let is_disposition =
            |(name, _): &(Box<str>, Box<str>)| name.eq_ignore_ascii_case("Content-Disposition");
        let name = self.name.filter(|_| !self.headers.iter().any(is_disposition));
        if let Some(name) = name {
            out.extend_from_slice(b"\r\nContent-Disposition: form-data; name=\"");
            write_name(out, name);
            if let Some(filename) = self.filename {
                out.extend_from_slice(b"\"; filename=\"");
                write_name(out, filename);
            }
            out.push(b'"');
        }
        let content_type = self.content_type.map(|value| ("Content-Type", value));
        let others = self.headers.iter().map(|(name, value)| (&**name, &**value));
        for (name, value) in content_type.into_iter().chain(others) {
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend(value.bytes().filter(|byte| !byte.is_ascii_control()));
        }
    }
}

/// Writes a body of parts.
///
/// The boundary is chosen when all is written: the first of a row that stands nowhere in it. Until
/// then its digits are left open.
#[derive(Debug)]
pub struct PartWriter {
    out: Vec<u8>,
    /// Where digits are missing.
    open: Vec<usize>,
}

impl PartWriter {
    /// A body of about this size.
    pub fn new(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), open: Vec::new() }
    }

    /// Begins a part; its content is to be appended to what is given.
    pub fn part(&mut self, head: PartHead<'_>) -> &mut Vec<u8> {
        if !self.open.is_empty() {
            self.out.extend_from_slice(b"\r\n");
        }
        self.delimiter();
        head.write(&mut self.out);
        self.out.extend_from_slice(b"\r\n\r\n");
        &mut self.out
    }

    /// The whole body, and what its content type has to name.
    pub fn finish(mut self) -> (Vec<u8>, Boundary) {
        if !self.open.is_empty() {
            self.out.extend_from_slice(b"\r\n");
        }
        self.delimiter();
        self.out.extend_from_slice(b"--\r\n");
        let digits = free_digits(&self.out);
        for at in self.open {
            if let Some(open) = self.out.get_mut(at..at + DIGITS) {
                open.copy_from_slice(digits.as_bytes());
            }
        }
        (self.out, Boundary([PREFIX, &digits].concat().into_boxed_str()))
    }

    fn delimiter(&mut self) {
        self.out.extend_from_slice(b"--");
        self.out.extend_from_slice(PREFIX.as_bytes());
        self.open.push(self.out.len());
        // No content can be taken for it: these are no digits.
        self.out.extend_from_slice(&[0; DIGITS]);
    }
}

/// The first digits that do not follow the prefix anywhere. Each number that is taken costs the
/// content more bytes than it costs a step, so this is linear.
fn free_digits(written: &[u8]) -> String {
    let mut taken = HashSet::new();
    for found in memmem::find_iter(written, PREFIX.as_bytes()) {
        let start = found + PREFIX.len();
        let digits = written.get(start..start + DIGITS);
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if let Some(digits) = digits.filter(|digits| digits.bytes().all(is_digit)) {
            taken.extend(u64::from_str_radix(digits, 16));
        }
    }
    let free = (0..u64::MAX).find(|number| !taken.contains(number)).unwrap_or_default();
    format!("{free:016x}")
}

/// RFC 7578 section 4.2 leaves the escaping open; this is what browsers do, for every control
/// character.
fn write_name(out: &mut Vec<u8>, name: &str) {
    for byte in name.bytes() {
        if byte == b'"' || byte.is_ascii_control() {
            const HEXADECIMAL: &[u8; 16] = b"0123456789ABCDEF";
            let digit = |nibble: u8| HEXADECIMAL[usize::from(nibble & 15)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte)]);
        } else {
            out.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{PartLimits, parameter, parts};
    use super::*;

    fn written(list: &[(PartHead<'_>, &[u8])]) -> (Vec<u8>, Boundary) {
        let mut writer = PartWriter::new(0);
        for (head, body) in list {
            writer.part(*head).extend_from_slice(body);
        }
        writer.finish()
    }

    #[test]
    fn a_form_is_written_to_the_byte() {
        let field = PartHead { name: Some("note"), ..PartHead::default() };
        let file = PartHead {
            name: Some("a\"b\r\n"),
            filename: Some("größe.png"),
            content_type: Some("image/png"),
            headers: &[],
        };
        let (body, boundary) = written(&[(field, b"x\r\ny"), (file, b"\0\xff")]);
        assert_eq!(boundary.as_str(), "ringway-0000000000000000");
        let mut expected = concat!(
            "--ringway-0000000000000000\r\n",
            "Content-Disposition: form-data; name=\"note\"\r\n\r\nx\r\ny\r\n",
            "--ringway-0000000000000000\r\n",
            "Content-Disposition: form-data; name=\"a%22b%0D%0A\"; filename=\"größe.png\"\r\n",
            "Content-Type: image/png\r\n\r\n"
        )
        .as_bytes()
        .to_vec();
        expected.extend_from_slice(b"\0\xff\r\n--ringway-0000000000000000--\r\n");
        assert_eq!(body, expected);
        assert_eq!(written(&[]).0, b"--ringway-0000000000000000--\r\n");
    }

    #[test]
    fn a_part_without_a_name_has_the_headers_it_is_given() {
        let headers = [("Content-ID".into(), "<a@b>".into()), ("X-A".into(), "x\r\nY: 1".into())];
        let bare = PartHead { content_type: Some("a/b"), headers: &headers, ..PartHead::default() };
        let (body, _) = written(&[(bare, b"x"), (PartHead::default(), b"y")]);
        let expected = "--ringway-0000000000000000\r\nContent-Type: a/b\r\nContent-ID: <a@b>\r\n\
                        X-A: xY: 1\r\n\r\nx\r\n--ringway-0000000000000000\r\n\r\ny\r\n\
                        --ringway-0000000000000000--\r\n";
        assert_eq!(String::from_utf8(body).unwrap(), expected);
        let headers = [("content-disposition".into(), "attachment".into())];
        let own = PartHead { name: Some("a"), headers: &headers, ..PartHead::default() };
        let (body, _) = written(&[(own, b"x")]);
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains("0\r\ncontent-disposition: attachment\r\n\r\nx"), "{body}");
        assert!(!body.contains("form-data"), "{body}");
    }

    #[test]
    fn a_boundary_that_stands_in_the_content_is_not_taken() {
        let head = PartHead { name: Some("a"), ..PartHead::default() };
        let (first, boundary) = written(&[(head, b"")]);
        assert_eq!(boundary.as_str(), "ringway-0000000000000000");
        let (second, boundary) = written(&[(head, &first)]);
        assert_eq!(boundary.as_str(), "ringway-0000000000000001");
        let both = [first, second].concat();
        let (third, boundary) = written(&[(head, &both)]);
        assert_eq!(boundary.as_str(), "ringway-0000000000000002");
        let read = parts(&third, &boundary, PartLimits::default()).unwrap();
        assert_eq!((read.len(), read[0].body), (1, &*both));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            list in prop::collection::vec(
                ("[a-z\"\\r\\né;= ]{0,8}", prop::option::of("[a-z.é;]{1,8}"), prop::collection::vec(
                    prop::sample::select(vec![
                        "--", "ringway-", "0000000000000000", "0000000000000001", "\r\n", "x", "\0",
                    ]),
                    0..12,
                )),
                0..5,
            ),
        ) {
            let bodies: Vec<String> = list.iter().map(|(.., pieces)| pieces.concat()).collect();
            let heads = list.iter().zip(&bodies).map(|((name, filename, _), body)| {
                let head = PartHead {
                    name: Some(name),
                    filename: filename.as_deref(),
                    content_type: Some("a/b"),
                    headers: &[],
                };
                (head, body.as_bytes())
            });
            let (body, boundary) = written(&heads.collect::<Vec<_>>());
            let read = parts(&body, &boundary, PartLimits::default()).unwrap();
            prop_assert_eq!(read.len(), list.len());
            for ((part, (name, filename, _)), body) in read.iter().zip(&list).zip(&bodies) {
                prop_assert_eq!(part.body, body.as_bytes());
                let disposition = part.header("content-disposition").unwrap();
                let shown = |text: &str| {
                    text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
                };
                prop_assert_eq!(parameter(&disposition, "name").unwrap(), shown(name));
                let read_name = parameter(&disposition, "filename");
                prop_assert_eq!(read_name.as_deref(), filename.as_deref());
                prop_assert_eq!(part.headers().count(), 2);
            }
        }
    }
}
