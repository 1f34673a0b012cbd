//! Heads and chunks, appended to an outgoing buffer.
//!
//! Nothing is formatted: every part is one append. A field that could break out of its line is
//! never written.

use thiserror::Error;

use super::field::{is_field_name, is_token_byte};

/// The chunk that ends a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The interim response a client with `Expect: 100-continue` waits for.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How the body behind a head is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// This many bytes follow (or would, where the request was a HEAD).
    Known(usize),
    /// Chunks follow. Not for HTTP/1.0.
    Chunked,
    /// No framing is announced: there is no body, or it lasts until the connection is closed.
    None,
}

/// Why a request head was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeadRefused {
    /// The method is not a token.
    #[error("the request method holds a byte that no method may hold")]
    Method,
    /// The target is empty or holds white space, control or non-ASCII bytes.
    #[error("the request target holds a byte that no target may hold")]
    Target,
    /// The host is empty or holds white space, control or non-ASCII bytes.
    #[error("the host holds a byte that no host may hold")]
    Host,
    /// A field's name is not a token, or its value holds a line break or another control byte.
    #[error("header field {position} has a malformed name, or a control byte in its value")]
    Header {
        /// Which of the given fields, counted from 0. Its text may be a secret and is not
        /// repeated.
        position: usize,
    },
}

/// Appends the head of a response. `date` is a ready IMF-fixdate, or empty for none.
///
/// A field that is malformed or would break its line is left out; how many were comes back.
/// `connection: close` is written where `keep_alive` is false. An HTTP/1.0 client that is to keep
/// its connection must be told so by a `connection: keep-alive` among `headers`.
pub fn write_response_head(
    out: &mut Vec<u8>,
    status: u16,
    headers: &[(&str, &str)],
    body: BodyLength,
    keep_alive: bool,
    date: &str,
) -> usize {
    let mut refused = 0;
    if status == 200 {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        let status = if (100..=999).contains(&status) { status } else { 500 };
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        out.push(b' ');
        out.extend_from_slice(reason(status).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if !date.is_empty() {
        refused += usize::from(!field(out, "date", date));
    }
    for (name, value) in headers {
        refused += usize::from(!field(out, name, value));
    }
    if !keep_alive {
        out.extend_from_slice(b"connection: close\r\n");
    }
    end_of_head(out, body);
    refused
}

/// Appends the head of a request, Host first. Where anything in it is malformed, nothing is
/// written: a request without one of its fields would be another request.
pub fn write_request_head<'a>(
    out: &mut Vec<u8>,
    method: &str,
    target: &str,
    host: &str,
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    body: BodyLength,
) -> Result<(), HeadRefused> {
    let is_graphic = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    if method.is_empty() || !method.bytes().all(is_token_byte) {
        return Err(HeadRefused::Method);
    }
    if !is_graphic(target) {
        return Err(HeadRefused::Target);
    }
    if !is_graphic(host) {
        return Err(HeadRefused::Host);
    }
    let start = out.len();
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\nhost: ");
    out.extend_from_slice(host.as_bytes());
    out.extend_from_slice(b"\r\n");
    for (position, (name, value)) in headers.enumerate() {
        if !field(out, name, value) {
            out.truncate(start);
            return Err(HeadRefused::Header { position });
        }
    }
    end_of_head(out, body);
    Ok(())
}

/// Appends one field, unless it is malformed.
fn field(out: &mut Vec<u8>, name: &str, value: &str) -> bool {
    if !is_field_name(name) || !is_field_value(value) {
        return false;
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
    true
}

/// Whether `value` stays in its line. Written without branches, so that the compiler can look at
/// many bytes at once.
fn is_field_value(value: &str) -> bool {
    let is_control = |byte: u8| (byte < b' ' && byte != b'\t') || byte == 0x7f;
    !value.bytes().fold(false, |found, byte| found | is_control(byte))
}

/// Appends the framing fields and the empty line.
fn end_of_head(out: &mut Vec<u8>, body: BodyLength) {
    match body {
        BodyLength::Known(length) => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n\r\n");
        }
        BodyLength::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n"),
        BodyLength::None => out.extend_from_slice(b"\r\n"),
    }
}

/// Appends `bytes` as one chunk. Nothing is written for no bytes: an empty chunk would end the
/// body.
pub fn chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    if bytes.is_empty() {
        return;
    }
    let mut size = [0; 2 * size_of::<usize>()];
    let (mut left, mut start) = (bytes.len(), size.len());
    while left > 0 {
        start -= 1;
        size[start] = DIGITS[left & 0xf];
        left >>= 4;
    }
    out.extend_from_slice(&size[start..]);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The reason phrase of a status; empty for one this product never sends.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[(&str, &str)], body: BodyLength, keep: bool) -> String {
        let mut out = Vec::new();
        write_response_head(&mut out, status, headers, body, keep, "");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_response_heads() {
        let mut out = Vec::new();
        let date = "Mon, 30 Nov 2026 14:00:00 GMT";
        let headers = [("content-type", "application/json"), ("allow", "")];
        let refused =
            write_response_head(&mut out, 200, &headers, BodyLength::Known(120), true, date);
        assert_eq!(refused, 0);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 14:00:00 GMT\r\n\
             content-type: application/json\r\nallow: \r\ncontent-length: 120\r\n\r\n"
        );
        assert_eq!(
            response(404, &[], BodyLength::Chunked, false),
            "HTTP/1.1 404 Not Found\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        assert_eq!(response(204, &[], BodyLength::None, true), "HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(response(799, &[], BodyLength::None, true), "HTTP/1.1 799 \r\n\r\n");
        assert_eq!(
            response(7, &[], BodyLength::Known(0), true),
            "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"
        );
    }

    #[test]
    fn no_field_breaks_out_of_its_line() {
        let bad = [
            ("x", "a\r\nset-cookie: b"),
            ("x", "a\n"),
            ("x", "a\r"),
            ("x", "a\0"),
            ("x", "a\x7f"),
            ("x\r\ny", "a"),
            ("x y", "a"),
            ("x:", "a"),
            ("", "a"),
            ("ü", "a"),
        ];
        let clean = response(200, &[], BodyLength::None, true);
        for header in bad {
            assert_eq!(response(200, &[header], BodyLength::None, true), clean, "{header:?}");
            let mut out = b"before".to_vec();
            let headers = [("fine", "1"), header];
            let written = write_request_head(
                &mut out,
                "GET",
                "/",
                "h",
                headers.into_iter(),
                BodyLength::None,
            );
            assert_eq!(written, Err(HeadRefused::Header { position: 1 }), "{header:?}");
            assert_eq!(out, b"before");
        }
        let mut out = Vec::new();
        assert_eq!(write_response_head(&mut out, 200, &bad, BodyLength::None, true, "x\r\n"), 11);
        assert!(
            response(200, &[("x", "a\tb ü")], BodyLength::None, true).contains("x: a\tb ü\r\n")
        );
    }

    #[test]
    fn writes_request_heads() {
        let write = |method: &str, target: &str, host: &str| {
            let mut out = Vec::new();
            let headers = [("accept", "*/*")].into_iter();
            write_request_head(&mut out, method, target, host, headers, BodyLength::Known(2))
                .map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(
            write("POST", "/a?b=c", "api.test:8080").unwrap(),
            "POST /a?b=c HTTP/1.1\r\nhost: api.test:8080\r\naccept: */*\r\n\
             content-length: 2\r\n\r\n"
        );
        assert_eq!(write("PO ST", "/", "h"), Err(HeadRefused::Method));
        assert_eq!(write("", "/", "h"), Err(HeadRefused::Method));
        for target in ["", "/a b", "/a\r\nx: y", "/ü", "/\0"] {
            assert_eq!(write("GET", target, "h"), Err(HeadRefused::Target), "{target:?}");
        }
        for host in ["", "h\r\nx: y", "h h"] {
            assert_eq!(write("GET", "/", host), Err(HeadRefused::Host), "{host:?}");
        }
    }

    #[test]
    fn writes_chunks() {
        let mut out = Vec::new();
        chunk(&mut out, b"");
        chunk(&mut out, b"a");
        chunk(&mut out, &[b'x'; 0x1a0]);
        assert!(out.starts_with(b"1\r\na\r\n1a0\r\nxxx"));
        assert!(out.ends_with(b"x\r\n"));
        assert_eq!(out.len(), 6 + 5 + 0x1a0 + 2);
    }

    #[test]
    fn every_status_sent_has_a_reason() {
        for status in [400, 405, 408, 413, 414, 417, 431, 501, 502, 505] {
            assert!(!reason(status).is_empty(), "{status}");
        }
    }
}
