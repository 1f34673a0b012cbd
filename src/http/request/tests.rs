use proptest::prelude::*;

use super::*;
use crate::http::{CHUNK_OVERHEAD_BYTES_MAX, CONTINUE, chunk};

const LIMITS: Limits = Limits { head_bytes_max: 16 * 1024, headers_max: 8, body_bytes_max: 64 };

/// Method, path, query, body and keep-alive of a request.
type Told = (String, String, Option<String>, Vec<u8>, bool);

/// What a reader made of a stream: the requests it gave, the last error, and what it was left
/// with.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    requests: Vec<Told>,
    error: Option<HttpError>,
    is_idle: bool,
}

fn tell(pieces: &[&[u8]]) -> Story {
    let mut reader = RequestReader::new(LIMITS);
    let mut requests = Vec::new();
    let mut error = None;
    'pieces: for piece in pieces {
        reader.buffer().extend_from_slice(piece);
        loop {
            match reader.poll() {
                Ok(Progress::Ready) => {
                    let request = reader.request();
                    requests.push((
                        request.method_text().to_owned(),
                        request.path().to_owned(),
                        request.query().map(str::to_owned),
                        request.body().to_vec(),
                        request.keep_alive(),
                    ));
                    reader.consume();
                }
                Ok(Progress::NeedMore { .. }) => break,
                Err(found) => {
                    assert_eq!(reader.poll(), Err(found), "an error is final");
                    error = Some(found);
                    break 'pieces;
                }
            }
        }
    }
    Story { requests, error, is_idle: error.is_none() && reader.is_idle() }
}

/// The story of a stream, the same wherever it is cut.
fn read(text: &[u8]) -> Story {
    let whole = tell(&[text]);
    for cut in 0..=text.len() {
        let (left, right) = text.split_at(cut);
        assert_eq!(tell(&[left, right]), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = text.chunks(1).collect();
    assert_eq!(tell(&bytes), whole, "byte by byte");
    whole
}

fn one(text: &str) -> Told {
    let mut story = read(text.as_bytes());
    assert_eq!((story.requests.len(), story.error), (1, None), "{text:?}");
    assert!(story.is_idle, "{text:?}");
    story.requests.remove(0)
}

fn refused(text: &str) -> HttpError {
    let story = read(text.as_bytes());
    assert_eq!(story.requests, vec![], "{text:?}");
    story.error.unwrap_or_else(|| panic!("{text:?} was accepted"))
}

#[test]
fn reads_a_typical_request() {
    let text = "POST /runtime/acme/desk/mcp?x=1 HTTP/1.1\r\nHost: 127.0.0.1:8420\r\n\
        Content-Type: application/json\r\nACCEPT: application/json\r\nx-other: \ta b \t\r\n\
        Accept: text/event-stream\r\nMcp-Session-Id: 1-abc\r\ncontent-length: 2\r\n\r\n{}";
    let mut reader = RequestReader::new(LIMITS);
    assert!(reader.is_idle());
    reader.buffer().extend_from_slice(text.as_bytes());
    assert_eq!(reader.poll(), Ok(Progress::Ready));
    let request = reader.request();
    assert_eq!(request.method(), Method::Post);
    assert_eq!(request.target(), "/runtime/acme/desk/mcp?x=1");
    assert_eq!((request.path(), request.query()), ("/runtime/acme/desk/mcp", Some("x=1")));
    assert_eq!(request.header(Known::McpSessionId), Some(&b"1-abc"[..]));
    assert_eq!(request.header_text(Known::Host), Some("127.0.0.1:8420"));
    assert_eq!(request.header(Known::Authorization), None);
    assert!(request.repeated(Known::Accept) && !request.repeated(Known::Host));
    assert_eq!(request.header_values(Known::Accept).count(), 2);
    assert_eq!(request.header_values(Known::Origin).count(), 0);
    assert!(request.accepts().json && request.accepts().event_stream);
    assert_eq!(request.headers().nth(3), Some(("x-other", &b"a b"[..])));
    assert_eq!(request.headers().count(), 7);
    assert!(request.keep_alive() && !request.is_http_10());
    assert_eq!(request.body(), b"{}");
    reader.consume();
    assert!(reader.is_idle());
}

#[test]
fn reads_good_requests() {
    let cases = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", None, "", true),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET", "/", None, "", false),
        ("GET / HTTP/1.0\r\n\r\n", "GET", "/", None, "", false),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET", "/", None, "", true),
        ("POST / HTTP/1.0\r\ncontent-length: 1\r\n\r\nx", "POST", "/", None, "x", false),
        ("\r\nGET /a?b?c HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/a", Some("b?c"), "", true),
        ("get /%7e?= HTTP/1.1\r\nHost: a\r\n\r\n", "get", "/%7e", Some("="), "", true),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS", "*", None, "", true),
        ("GET http://A:80/p?q HTTP/1.1\r\nHost: a:80\r\n\r\n", "GET", "/p", Some("q"), "", true),
        ("GET HTTPS://a HTTP/1.1\r\nHost: A\r\n\r\n", "GET", "/", None, "", true),
        ("GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", Some("q"), "", true),
        ("GET //evil.test/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "//evil.test/x", None, "", true),
        (
            "DELETE / HTTP/1.1\r\nHost: a\r\ncontent-length: 0\r\n\r\n",
            "DELETE",
            "/",
            None,
            "",
            true,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: chunked\r\n\r\n\
             3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nsum: 1\r\n\r\n",
            "POST",
            "/",
            None,
            "abcde",
            true,
        ),
    ];
    for (text, method, path, query, body, keep_alive) in cases {
        let expected = (
            method.to_owned(),
            path.to_owned(),
            query.map(str::to_owned),
            body.as_bytes().to_vec(),
            keep_alive,
        );
        assert_eq!(one(text), expected, "{text:?}");
    }
}

#[test]
fn refuses_bad_requests() {
    use HttpError as E;
    let cases = [
        ("GET / HTTP/2.0\r\n\r\n", E::Version, 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", E::Version, 505),
        ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", E::Version, 505),
        ("GET /\r\n\r\n", E::RequestLine, 400),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", E::RequestLine, 400),
        ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", E::RequestLine, 400),
        ("GET / x HTTP/1.1\r\nHost: a\r\n\r\n", E::Version, 505),
        ("G\u{e9}T / HTTP/1.1\r\nHost: a\r\n\r\n", E::RequestLine, 400),
        ("\x16\x03\x01\x02", E::RequestLine, 400),
        ("{\"jsonrpc\"", E::RequestLine, 400),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", E::LeadingLines, 400),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", E::BareLineFeed, 400),
        ("GET / HTTP/1.1\nHost: a\n\n", E::BareLineFeed, 400),
        ("GET / HTTP/1.1\r\nHost: a\nx: y\r\n\r\n", E::BareLineFeed, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", E::BareLineFeed, 400),
        ("GET / HTTP/1.1\rHost: a\r\n\r\n", E::RequestLine, 400),
        ("GET / HTTP/1.1\r\nHost: a\rx: y\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nx: y\r\n z\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nx : y\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nx\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nx: a\0b\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nx\0: b\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nx: \x7f\r\n\r\n", E::Header, 400),
        ("GET / HTTP/1.1\r\n\r\n", E::HostMissing, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", E::HostRepeated, 400),
        ("GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", E::HostRepeated, 400),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", E::Host, 400),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", E::Host, 400),
        ("GET / HTTP/1.0\r\nHost: u@a\r\n\r\n", E::Host, 400),
        ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", E::Host, 400),
        ("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", E::HostMismatch, 400),
        ("GET http://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n", E::HostMismatch, 400),
        ("GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n", E::HostMismatch, 400),
        ("GET http://a/ HTTP/1.0\r\n\r\n", E::HostMismatch, 400),
        ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", E::Target, 400),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", E::Target, 400),
        ("GET a HTTP/1.1\r\nHost: a\r\n\r\n", E::Target, 400),
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", E::Target, 400),
        ("GET /\u{fc} HTTP/1.1\r\nHost: a\r\n\r\n", E::Target, 400),
        ("GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", E::Target, 400),
        ("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", E::RequestLine, 400),
        ("GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", E::RequestLine, 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n", E::Expectation, 417),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", E::ContentLength, 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            E::BothLengths,
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            E::TransferCoding,
            501,
        ),
        (
            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            E::TransferEncoding,
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
            E::Chunk,
            400,
        ),
    ];
    for (text, error, status) in cases {
        assert_eq!(refused(text), error, "{text:?}");
        assert_eq!(error.status(), status);
    }
}

#[test]
fn every_limit_is_hit_with_its_own_status() {
    let large = HttpError::BodyTooLarge { limit: 64 };
    assert_eq!(refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65\r\n\r\n"), large);
    let huge = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n";
    assert_eq!(refused(huge), large);
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refused(&format!("{chunked}41\r\n")), large);
    assert_eq!(large.status(), 413);

    let fields =
        |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "x: y\r\n".repeat(count - 1));
    one(&fields(8));
    assert_eq!(refused(&fields(9)), HttpError::TooManyHeaders { limit: 8 });
    assert_eq!(HttpError::TooManyHeaders { limit: 8 }.status(), 431);

    let mut story =
        tell(&[format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(8191)).as_bytes()]);
    assert_eq!(story.requests.len(), 1);
    let long = HttpError::TargetTooLong { limit: TARGET_BYTES_MAX };
    for length in [8192, 9000, 40_000] {
        story =
            tell(&[format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(length)).as_bytes()]);
        assert_eq!(story.error, Some(long), "{length}");
    }
    assert_eq!(tell(&["GET /".as_bytes(), &[b'x'; 8300]]).error, Some(long));
    assert_eq!(long.status(), 414);

    let head = "GET / HTTP/1.1\r\nHost: a\r\nx: ".to_owned() + &"y".repeat(16 * 1024);
    let error = HttpError::HeadTooLarge { limit: 16 * 1024 };
    assert_eq!(tell(&[head.as_bytes()]).error, Some(error));
    assert_eq!(error.status(), 431);
    let overhead = HttpError::ChunkOverhead { limit: CHUNK_OVERHEAD_BYTES_MAX };
    let text = format!("{chunked}1;{}\r\n", "x".repeat(CHUNK_OVERHEAD_BYTES_MAX + 1));
    assert_eq!(tell(&[text.as_bytes()]).error, Some(overhead));
}

#[test]
fn settings_cannot_exceed_what_positions_can_hold() {
    let limits = Limits { head_bytes_max: usize::MAX, headers_max: usize::MAX, body_bytes_max: 0 };
    let mut reader = RequestReader::new(limits);
    let fields = "x: y\r\n".repeat(head::HEADERS_CEILING);
    reader.buffer().extend_from_slice(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes());
    assert_eq!(reader.poll(), Err(HttpError::HostMissing));
    let mut reader = RequestReader::new(limits);
    reader.buffer().extend_from_slice(format!("GET / HTTP/1.1\r\n{fields}x: y\r\n\r\n").as_bytes());
    assert_eq!(reader.poll(), Err(HttpError::TooManyHeaders { limit: head::HEADERS_CEILING }));
}

#[test]
fn pipelined_requests_come_out_in_order() {
    let text =
        b"POST /1 HTTP/1.1\r\nHost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n\
        POST /2 HTTP/1.1\r\nHost: a\r\ncontent-length: 3\r\n\r\ncde\r\n\
        GET /3 HTTP/1.1\r\nHost: a\r\n\r\nGET /4 HTTP/1.1\r\nHost";
    let story = read(text);
    let seen: Vec<(&str, &[u8])> =
        story.requests.iter().map(|(_, path, _, body, _)| (path.as_str(), &body[..])).collect();
    assert_eq!(seen, [("/1", &b"ab"[..]), ("/2", b"cde"), ("/3", b"")]);
    assert_eq!((story.error, story.is_idle), (None, false));
}

#[test]
fn bytes_may_arrive_while_a_request_is_being_answered() {
    let mut reader = RequestReader::new(LIMITS);
    reader.buffer().extend_from_slice(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\n");
    assert_eq!(reader.poll(), Ok(Progress::Ready));
    reader.consume();
    reader.buffer().extend_from_slice(b"Host: b\r\ncontent-length: 1\r\n\r\nxGET /3");
    assert_eq!(reader.poll(), Ok(Progress::Ready));
    reader.buffer().extend_from_slice(b" HTTP/1.1\r\nHost: c\r\n\r\n");
    assert_eq!(reader.poll(), Ok(Progress::Ready));
    assert_eq!((reader.request().path(), reader.request().body()), ("/2", &b"x"[..]));
    reader.consume();
    assert_eq!(reader.poll(), Ok(Progress::Ready));
    assert_eq!(reader.request().header(Known::Host), Some(&b"c"[..]));
}

#[test]
fn continue_is_asked_for_once_and_only_where_the_client_waits() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\ncontent-length: 2\r\n\r\n";
    let asks = |head: &str, body: &[u8]| {
        let mut reader = RequestReader::new(LIMITS);
        reader.buffer().extend_from_slice(head.as_bytes());
        reader.buffer().extend_from_slice(body);
        let first = reader.poll().unwrap();
        if first != Progress::Ready {
            assert_eq!(reader.poll(), Ok(Progress::NeedMore { send_continue: false }));
            assert!(reader.is_in_body());
            assert_eq!(reader.partial().unwrap().method(), Method::Post);
        }
        first == Progress::NeedMore { send_continue: true }
    };
    assert!(asks(head, b""));
    assert!(!asks(head, b"x"));
    assert!(!asks(head, b"xy"));
    assert!(!asks(&head.replace("1.1", "1.0"), b""));
    assert!(!asks(&head.replace("length: 2", "length: 0"), b""));
    assert!(asks(&head.replace("content-length: 2", "transfer-encoding: chunked"), b""));
    let mut reader = RequestReader::new(LIMITS);
    reader.buffer().extend_from_slice(head.replace("length: 2", "length: 65").as_bytes());
    assert_eq!(reader.poll(), Err(HttpError::BodyTooLarge { limit: 64 }));
    assert_eq!(reader.partial().unwrap().path(), "/");
    assert!(CONTINUE.ends_with(b"\r\n\r\n"));
}

#[test]
fn chunk_framing_takes_no_memory() {
    let limits = Limits { body_bytes_max: 100_000, ..LIMITS };
    let mut reader = RequestReader::new(limits);
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    reader.buffer().extend_from_slice(head);
    for _ in 0..10_000 {
        reader.buffer().extend_from_slice(b"0000000000000001\r\nx\r\n");
        assert_eq!(reader.poll(), Ok(Progress::NeedMore { send_continue: false }));
    }
    assert_eq!(reader.buffer().len(), head.len() + 10_000);
    reader.buffer().extend_from_slice(b"0\r\n\r\n");
    assert_eq!(reader.poll(), Ok(Progress::Ready));
    assert_eq!(reader.request().body().len(), 10_000);
}

fn any_request() -> impl Strategy<Value = Vec<u8>> {
    let body = proptest::collection::vec(any::<u8>(), 0..40);
    let pieces = proptest::collection::vec(body, 0..3);
    (any::<bool>(), "[a-z/%0-9]{0,9}", "[ -~]{0,20}", pieces).prop_map(
        |(is_chunked, path, value, pieces)| {
            let mut out =
                format!("POST /{path} HTTP/1.1\r\nHost: a\r\nx: {value}\r\n").into_bytes();
            if is_chunked {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                for piece in &pieces {
                    chunk(&mut out, piece);
                }
                out.extend_from_slice(b"0\r\n\r\n");
            } else {
                let body = pieces.concat();
                out.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
                out.extend_from_slice(&body);
            }
            out
        },
    )
}

/// Cuts `bytes` into pieces of the given lengths, over and over.
fn cut<'a>(bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at((*length).min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

/// Streams that are nearly requests.
const PIECES: &str = concat!(
    "(GET|POST| |/|HTTP/1.1|\r\n|[\r\n\0:a]|Host: a\r\n|",
    "content-length: 1|transfer-encoding: chunked|é){0,30}"
);

proptest! {
    #[test]
    fn streams_are_the_same_however_they_are_cut(
        requests in proptest::collection::vec(any_request(), 1..4),
        lengths in proptest::collection::vec(1_usize..50, 1..10),
    ) {
        let stream = requests.concat();
        let whole = tell(&[&stream]);
        prop_assert_eq!(tell(&cut(&stream, &lengths)), whole);
    }

    #[test]
    fn damaged_streams_are_the_same_however_they_are_cut(
        request in any_request(),
        position in any::<prop::sample::Index>(),
        damage in prop::sample::select(b"\r\n\0 :;,0a\xff".to_vec()),
        lengths in proptest::collection::vec(1_usize..50, 1..10),
    ) {
        let mut stream = request;
        let position = position.index(stream.len());
        stream[position] = damage;
        stream.extend_from_slice(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let whole = tell(&[&stream]);
        prop_assert_eq!(tell(&cut(&stream, &lengths)), whole);
    }

    #[test]
    fn garbage_is_the_same_however_it_is_cut(
        text in PIECES,
        lengths in proptest::collection::vec(1_usize..9, 1..10),
    ) {
        let whole = tell(&[text.as_bytes()]);
        prop_assert_eq!(tell(&cut(text.as_bytes(), &lengths)), whole);
    }

    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        tell(&[&noise]);
        tell(&[b"GET / HTTP/1.1\r\n", &noise]);
    }
}

#[test]
fn a_buffer_that_was_emptied_against_the_rules_harms_nobody() {
    for text in ["GET / HTT", "POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 9\r\n\r\nabc"] {
        let mut reader = RequestReader::new(LIMITS);
        reader.buffer().extend_from_slice(text.as_bytes());
        assert_eq!(reader.poll(), Ok(Progress::NeedMore { send_continue: false }));
        reader.buffer().clear();
        reader.poll().ok();
        assert_eq!(reader.request().body(), b"");
        reader.consume();
    }
}
