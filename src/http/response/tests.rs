use proptest::prelude::*;

use super::*;
use crate::http::BodyLength;

const LIMITS: Limits = Limits { head_bytes_max: 4096, headers_max: 8, body_bytes_max: 64 };

type Outcome = Result<(u16, Vec<u8>, bool), HttpError>;

/// Reads one response; the end of the stream follows the last piece.
fn read_pieces(method: Method, pieces: &[&[u8]]) -> Outcome {
    let mut reader = ResponseReader::new(LIMITS);
    reader.expect(method);
    for piece in pieces {
        reader.buffer().extend_from_slice(piece);
        if reader.poll()? == ResponseProgress::Ready {
            return Ok((reader.status(), reader.body().to_vec(), reader.keep_alive()));
        }
    }
    reader.end_of_stream()?;
    Ok((reader.status(), reader.body().to_vec(), reader.keep_alive()))
}

/// The outcome of a response, the same wherever it is cut.
fn read(method: Method, text: &[u8]) -> Outcome {
    let whole = read_pieces(method, &[text]);
    for cut in 0..=text.len() {
        let (left, right) = text.split_at(cut);
        assert_eq!(read_pieces(method, &[left, right]), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = text.chunks(1).collect();
    assert_eq!(read_pieces(method, &bytes), whole, "byte by byte");
    whole
}

#[test]
fn reads_good_responses() {
    let cases = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", 200, "{}", true),
        ("HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", 200, "", true),
        ("HTTP/1.1 200 \r\nconnection: close\r\ncontent-length: 0\r\n\r\n", 200, "", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", 200, "x", false),
        ("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx", 200, "x", true),
        ("HTTP/1.1 404 Not Found\r\n\r\ngone", 404, "gone", false),
        ("HTTP/1.0 200 OK\r\n\r\n", 200, "", false),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", 304, "", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x\r\nbc\r\n0\r\n\r\n",
            200,
            "abc",
            true,
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n\
             HTTP/1.1 201 Created\r\ncontent-length: 1\r\n\r\ny",
            201,
            "y",
            true,
        ),
    ];
    for (text, status, body, keep_alive) in cases {
        let expected = Ok((status, body.as_bytes().to_vec(), keep_alive));
        assert_eq!(read(Method::Get, text.as_bytes()), expected, "{text:?}");
    }
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n";
    assert_eq!(read(Method::Head, head), Ok((200, Vec::new(), true)));
}

#[test]
fn refuses_bad_responses() {
    use HttpError as E;
    let cases = [
        ("", E::Closed),
        ("HTTP/1.1 200 OK\r\ncont", E::Truncated),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", E::Truncated),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n", E::Truncated),
        ("HTTP/1.1 100 Continue\r\n\r\n", E::Closed),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", E::SwitchedProtocols),
        ("HTTP/2.0 200 OK\r\n\r\n", E::Version),
        ("ICY 200 OK\r\n\r\n", E::Version),
        ("HTTP/1.1 20 OK\r\n\r\n", E::StatusLine),
        ("HTTP/1.1 099 OK\r\n\r\n", E::StatusLine),
        ("HTTP/1.1 600 OK\r\n\r\n", E::StatusLine),
        ("HTTP/1.1 2000 OK\r\n\r\n", E::StatusLine),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", E::LeadingLines),
        ("HTTP/1.1 200 OK\n\n", E::BareLineFeed),
        ("HTTP/1.1 200 OK\r\nx: y\n\r\n", E::BareLineFeed),
        ("HTTP/1.1 200 OK\r\nx: y\r\n z\r\n\r\n", E::Header),
        ("HTTP/1.1 200 OK\r\nx : y\r\n\r\n", E::Header),
        ("HTTP/1.1 200 OK\r\nx: \0\r\n\r\n", E::Header),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx", E::ContentLength),
        ("HTTP/1.1 204 No\r\ncontent-length: x\r\n\r\n", E::ContentLength),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            E::BothLengths,
        ),
        ("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", E::TransferEncoding),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n", E::TransferCoding),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\nx", E::Chunk),
    ];
    for (text, error) in cases {
        assert_eq!(read(Method::Get, text.as_bytes()), Err(error), "{text:?}");
    }
}

#[test]
fn every_limit_is_hit() {
    let large = Err(HttpError::BodyTooLarge { limit: 64 });
    let read = |text: String| read_pieces(Method::Get, &[text.as_bytes()]);
    assert_eq!(read("HTTP/1.1 200 OK\r\ncontent-length: 65\r\n\r\n".into()), large);
    assert_eq!(read("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n41\r\n".into()), large);
    assert!(read(format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(64))).is_ok());
    assert_eq!(read(format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(65))), large);
    assert_eq!(
        HttpError::BodyTooLarge { limit: 64 }.to_string(),
        "the body is longer than 64 bytes"
    );
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_RESPONSES_MAX + 1);
    let limit = INTERIM_RESPONSES_MAX;
    assert_eq!(read(interim), Err(HttpError::InterimResponses { limit }));
    let fields = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(9));
    assert_eq!(read(fields), Err(HttpError::TooManyHeaders { limit: 8 }));
    let head = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(4096));
    assert_eq!(read(head), Err(HttpError::HeadTooLarge { limit: 4096 }));
    assert_eq!(read(format!("HTTP/1.1 200 {}", "y".repeat(9000))), Err(HttpError::StatusLine));
}

#[test]
fn a_connection_carries_one_exchange_after_the_other() {
    let mut reader = ResponseReader::new(LIMITS);
    assert!(reader.is_idle());
    for body in ["first", "second"] {
        reader.expect(Method::Post);
        assert!(!reader.is_idle());
        let length = body.len();
        let text = format!("HTTP/1.1 200 OK\r\nRetry-After: 7\r\ncontent-length: {length}\r\n\r\n");
        reader.buffer().extend_from_slice(text.as_bytes());
        assert!(!reader.is_in_body());
        assert_eq!(reader.poll(), Ok(ResponseProgress::NeedMore));
        assert!(reader.is_in_body());
        reader.buffer().extend_from_slice(body.as_bytes());
        assert_eq!(reader.poll(), Ok(ResponseProgress::Ready));
        assert_eq!(reader.header(Known::RetryAfter), Some(&b"7"[..]));
        assert_eq!(reader.headers().count(), 2);
        assert_eq!(reader.body(), body.as_bytes());
        reader.consume();
        assert!(reader.is_idle() && reader.body().is_empty());
    }
}

#[test]
fn bytes_nobody_asked_for_end_the_connection() {
    let mut reader = ResponseReader::new(LIMITS);
    reader.buffer().extend_from_slice(b"HTTP/1.1 408 Request Timeout\r\n\r\n");
    assert!(!reader.is_idle());
    assert_eq!(reader.poll(), Err(HttpError::Unsolicited));
    reader.expect(Method::Get);
    assert_eq!(reader.poll(), Err(HttpError::Unsolicited));

    let mut reader = ResponseReader::new(LIMITS);
    reader.expect(Method::Get);
    reader.buffer().extend_from_slice(b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(reader.poll(), Ok(ResponseProgress::Ready));
    reader.consume();
    assert!(!reader.is_idle());
    reader.expect(Method::Get);
    assert_eq!(reader.poll(), Err(HttpError::Unsolicited));
}

/// Streams that are nearly responses.
const PIECES: &str = concat!(
    "(HTTP/1.1 200 OK\r\n|HTTP/1.1 100 C\r\n\r\n|content-length: 3|",
    "transfer-encoding: chunked|\r\n|[\r\n\0:a10]){0,20}"
);

proptest! {
    #[test]
    fn garbage_is_the_same_however_it_is_cut(
        text in PIECES,
        head in any::<bool>(),
    ) {
        read(if head { Method::Head } else { Method::Get }, text.as_bytes()).ok();
    }

    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_pieces(Method::Get, &[&noise]).ok();
        read_pieces(Method::Get, &[b"HTTP/1.1 200 OK\r\n", &noise]).ok();
    }

    #[test]
    fn what_is_written_is_read_back(
        status in 200_u16..600,
        value in "[ -~]{0,30}",
        body in "[ -~]{0,60}",
        keep in any::<bool>(),
    ) {
        prop_assume!(!matches!(status, 204 | 304));
        let mut out = Vec::new();
        let headers = [("location", value.as_str())];
        let length = BodyLength::Known(body.len());
        crate::http::write_response_head(&mut out, status, &headers, length, keep, "");
        out.extend_from_slice(body.as_bytes());
        let mut reader = ResponseReader::new(LIMITS);
        reader.expect(Method::Get);
        reader.buffer().extend_from_slice(&out);
        prop_assert_eq!(reader.poll(), Ok(ResponseProgress::Ready));
        prop_assert_eq!(reader.header(Known::Location), Some(value.trim().as_bytes()));
        prop_assert_eq!((reader.status(), reader.keep_alive()), (status, keep));
        prop_assert_eq!(reader.body(), body.as_bytes());
    }
}

/// Takes a body in parts as the pieces come; the end of the stream follows the last.
fn take_pieces(pieces: &[&[u8]]) -> Outcome {
    let mut reader = ResponseReader::new(LIMITS);
    reader.expect(Method::Post);
    let mut body = Vec::new();
    for piece in pieces {
        reader.buffer().extend_from_slice(piece);
        if !reader.poll_head()? {
            continue;
        }
        let progress = reader.take_body(&mut body)?;
        assert!(reader.buffer().len() <= 4096 + piece.len(), "what was taken is gone");
        if progress == ResponseProgress::Ready {
            let (status, keep_alive) = (reader.status(), reader.keep_alive());
            reader.consume();
            return Ok((status, body, keep_alive && reader.is_idle()));
        }
    }
    reader.end_of_taken()?;
    Ok((reader.status(), body, reader.keep_alive()))
}

#[test]
fn a_body_is_taken_in_parts_however_long_it_is() {
    let long = "x".repeat(1000);
    let chunks = "c8\r\n".to_owned() + &"x".repeat(200) + "\r\n";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned()
        + &chunks.repeat(5)
        + "0\r\na: b\r\n\r\n";
    let cases = [
        (format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{long}"), true),
        (format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{long}surplus"), false),
        (format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{long}"), false),
        (chunked.clone(), true),
        (chunked + "surplus", false),
    ];
    for (text, keep_alive) in cases {
        for cut in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(cut);
            let (status, body, kept) = take_pieces(&[left, right]).unwrap();
            assert_eq!((status, body.len()), (200, 1000), "cut at {cut}");
            // What was not read yet is not known to be too much.
            assert!(kept == keep_alive || text.ends_with("surplus"), "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(take_pieces(&bytes).unwrap().1.len(), 1000);
        assert!(read_pieces(Method::Post, &[text.as_bytes()]).is_err(), "whole, it is too long");
    }
}

#[test]
fn a_body_that_is_cut_is_an_error_also_in_parts() {
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\ncont",
    ] {
        assert_eq!(take_pieces(&[text.as_bytes()]), Err(HttpError::Truncated), "{text}");
    }
    let empty = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(take_pieces(&[empty.as_bytes()]), Ok((202, Vec::new(), true)));
    let garbage = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n";
    assert_eq!(take_pieces(&[garbage.as_bytes()]), Err(HttpError::Chunk));
}
