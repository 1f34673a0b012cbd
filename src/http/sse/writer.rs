//! Writing events. What is written is read back as exactly one event, whatever the data holds.

use memchr::memchr2;

/// Appends one event.
///
/// Data is split at line breaks into as many `data` lines; `Some(b"")` gives an event with empty
/// data, `None` one that clients only take id and retry from. An id with a line break or NUL, and
/// an event name with a line break, is left out: it could end the event early.
pub fn event(
    out: &mut Vec<u8>,
    id: Option<&str>,
    event: Option<&str>,
    retry_ms: Option<u32>,
    data: Option<&[u8]>,
) {
    if let Some(id) = id.filter(|id| is_one_line(id) && !id.contains('\0')) {
        line(out, b"id: ", id.as_bytes());
    }
    if let Some(event) = event.filter(|event| is_one_line(event)) {
        line(out, b"event: ", event.as_bytes());
    }
    if let Some(retry_ms) = retry_ms {
        line(out, b"retry: ", itoa::Buffer::new().format(retry_ms).as_bytes());
    }
    if let Some(data) = data {
        lines(out, b"data: ", data);
    }
    out.push(b'\n');
}

/// Appends a comment, which clients ignore. Line breaks make further comment lines.
pub fn comment(out: &mut Vec<u8>, text: &str) {
    lines(out, b": ", text.as_bytes());
    out.push(b'\n');
}

fn is_one_line(text: &str) -> bool {
    memchr2(b'\r', b'\n', text.as_bytes()).is_none()
}

fn line(out: &mut Vec<u8>, field: &[u8], value: &[u8]) {
    out.extend_from_slice(field);
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// One line of `field` for every line of `text`; CR, LF and CRLF all end one.
fn lines(out: &mut Vec<u8>, field: &[u8], text: &[u8]) {
    let mut rest = text;
    out.reserve(text.len() + field.len() + 2);
    while let Some(end) = memchr2(b'\r', b'\n', rest) {
        line(out, field, &rest[..end]);
        let is_pair = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
        rest = &rest[end + 1 + usize::from(is_pair)..];
    }
    line(out, field, rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(
        id: Option<&str>,
        name: Option<&str>,
        retry_ms: Option<u32>,
        data: Option<&[u8]>,
    ) -> String {
        let mut out = Vec::new();
        event(&mut out, id, name, retry_ms, data);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_events() {
        assert_eq!(
            written(Some("1-2"), Some("message"), Some(1000), Some(b"{}")),
            "id: 1-2\nevent: message\nretry: 1000\ndata: {}\n\n"
        );
        assert_eq!(written(Some("p"), None, None, Some(b"")), "id: p\ndata: \n\n");
        assert_eq!(written(None, None, Some(5), None), "retry: 5\n\n");
        assert_eq!(
            written(None, None, None, Some(b"a\nb\r\nc\rd\n")),
            "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"
        );
    }

    #[test]
    fn nothing_breaks_out_of_an_event() {
        assert_eq!(
            written(Some("a\ndata: x"), Some("b\rdata: y"), None, Some(b"z")),
            "data: z\n\n"
        );
        assert_eq!(written(Some("a\0"), None, None, None), "\n");
        let mut out = Vec::new();
        comment(&mut out, "keep-alive\ndata: x\r\n");
        assert_eq!(String::from_utf8(out).unwrap(), ": keep-alive\n: data: x\n: \n\n");
    }
}
