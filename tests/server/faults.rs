//! What once went wrong under attack or at the edges of the protocol, so that it does not again.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{
    Answer, Client, Events, PATIENCE, Request, Service, Setup, Wire, call, pause, ping, rpc,
};

const HOLD: (&str, &str, &str, &str) = ("hold", "GET", "/hold", "");
const FIND: (&str, &str, &str, &str) = ("find", "GET", "/find", "");
/// Longer than a call that is answered as JSON runs before its client is watched.
const WATCHED: Duration = Duration::from_millis(400);

/// A connection, and its socket for what a `Wire` does not do.
pub(crate) fn connect(address: SocketAddr) -> (TcpStream, Wire) {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    let wire = Wire::over(socket.try_clone().unwrap());
    (socket, wire)
}

/// A message whose answer must be plain JSON.
fn json_only(client: &Client, body: &Value) -> Request {
    client.request("POST").header("Accept", "application/json").json(body)
}

/// The head of a request whose body of `length` bytes is still to come.
fn head_before_body(client: &Client, length: usize) -> Request {
    client
        .request("POST")
        .header("Accept", "application/json, text/event-stream")
        .header("Content-Type", "application/json")
        .header("Content-Length", &length.to_string())
}

/// The client over HTTP+SSE: its stream, and where it posts to.
pub(crate) fn legacy(client: &Client) -> (Events, Client) {
    let mut legacy = client.clone();
    legacy.path = client.path.replace("/mcp", "/sse");
    let mut stream = legacy.standing();
    let endpoint = stream.next().unwrap();
    assert_eq!(endpoint.kind.as_deref(), Some("endpoint"));
    legacy.path = client.path.replace("/mcp", &format!("/{}", endpoint.data.unwrap()));
    (stream, legacy)
}

fn number_of(answer: Answer) -> Value {
    answer.expect(200).json()["id"].clone()
}

#[test]
fn requests_behind_a_slow_call_are_answered_in_order() {
    let pinged = |id| rpc(id, "ping", json!({}));
    // The cut: where in the third request the first piece of what comes during the call ends.
    for cut in [0, 1, 40, 150] {
        let service = Service::holding();
        let server = Setup::new().api(&service.base(), &[HOLD]).start();
        let client = Client::keyless(&server, "demo/public");
        let (mut socket, mut wire) = connect(server.address());
        let second = json_only(&client, &pinged(2)).bytes();
        let third = json_only(&client, &pinged(3)).bytes();
        wire.send(&json_only(&client, &call(1, "hold", json!({}))));
        service.asked();
        pause(WATCHED);
        socket.write_all(&[&second, &third[..cut]].concat()).unwrap();
        pause(Duration::from_millis(100));
        socket.write_all(&third[cut..]).unwrap();
        pause(Duration::from_millis(100));
        service.release();
        wire.send(&json_only(&client, &pinged(4)));
        for id in 1..=4 {
            assert_eq!(number_of(wire.answer()), id, "cut at {cut}");
        }
    }
}

#[test]
fn a_request_torn_before_its_predecessor_is_watched_is_whole_again() {
    let service = Service::holding();
    let server = Setup::new().api(&service.base(), &[HOLD]).start();
    let client = Client::keyless(&server, "demo/public");
    let (mut socket, mut wire) = connect(server.address());
    let slow = json_only(&client, &call(1, "hold", json!({}))).bytes();
    let next = json_only(&client, &rpc(2, "ping", json!({}))).bytes();
    socket.write_all(&[&slow, &next[..30]].concat()).unwrap();
    service.asked();
    pause(WATCHED);
    socket.write_all(&next[30..]).unwrap();
    pause(Duration::from_millis(100));
    service.release();
    assert_eq!(number_of(wire.answer()), 1);
    assert_eq!(number_of(wire.answer()), 2);
}

#[test]
fn who_may_not_send_is_refused_before_the_body() {
    const LENGTH: usize = 4 * 1024 * 1024;
    let server = Setup::new().start();
    let wrong = Client::keyless(&server, "demo/assistant").with_key("rw_000000000000_wrong");
    let mut nowhere = wrong.clone();
    nowhere.path = "/nowhere".to_owned();
    let mut short = wrong.clone();
    short.path = "/mcp".to_owned();
    for (client, status) in [(&wrong, 401), (&short, 401), (&nowhere, 404)] {
        for part in [&b" ".repeat(20 * 1024)[..], b""] {
            let (mut socket, mut wire) = connect(server.address());
            wire.send(&head_before_body(client, LENGTH));
            socket.write_all(part).unwrap();
            wire.answer().expect(status);
            // The rest of the body is not taken for a request.
            assert!(wire.is_closed());
        }
        // What comes first is the refusal, not an invitation.
        let expecting = head_before_body(client, LENGTH).header("Expect", "100-continue");
        client.connect().ask(&expecting).expect(status);
    }
}

#[test]
fn a_large_body_in_pieces_is_taken_from_who_may_send() {
    let server = Setup::new().start();
    let client = Client::new(&server, "demo/assistant");
    let body = rpc(1, "ping", json!({ "padding": "x".repeat(3 * 1024 * 1024) })).to_string();
    let (mut socket, mut wire) = connect(server.address());
    for _ in 0..2 {
        wire.send(&head_before_body(&client, body.len()));
        for piece in body.as_bytes().chunks(300_000) {
            socket.write_all(piece).unwrap();
            pause(Duration::from_millis(5));
        }
        assert_eq!(number_of(wire.answer()), 1);
    }
    wire.send(&head_before_body(&client, body.len()).header("Expect", "100-continue"));
    wire.head().expect(100);
    socket.write_all(body.as_bytes()).unwrap();
    assert_eq!(number_of(wire.answer()), 1);
}

#[test]
fn a_body_that_trickles_is_ended() {
    let server = Setup::new().set("http.body_timeout_ms", 1000).start();
    let client = Client::new(&server, "demo/assistant");
    let (mut socket, mut wire) = connect(server.address());
    wire.send(&head_before_body(&client, 1000));
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let begin = Instant::now();
    let mut bytes = [0; 1024];
    let read = loop {
        socket.write_all(b" ").unwrap();
        match socket.read(&mut bytes) {
            Ok(read) => break read,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
        assert!(begin.elapsed() < Duration::from_secs(5), "it goes on");
    };
    assert!(begin.elapsed() > Duration::from_millis(900), "{:?}", begin.elapsed());
    let head = String::from_utf8_lossy(&bytes[..read]);
    assert!(head.starts_with("HTTP/1.1 408 "), "{head}");
}

/// A toolset of so many tools with long titles, and `find`.
fn many_tools(number: usize, base: &str) -> Setup {
    let names: Vec<String> = (0..number).map(|number| format!("tool_{number}")).collect();
    let title = format!("title = \"{}\"", "long ".repeat(20));
    let mut tools: Vec<(&str, &str, &str, &str)> =
        names.iter().map(|name| (name.as_str(), "GET", "/x", title.as_str())).collect();
    tools.push(FIND);
    Setup::new().api(base, &tools)
}

#[test]
fn the_answer_to_a_batch_is_bounded() {
    let service = Service::echo();
    let server = many_tools(2000, &service.base()).start();
    let client = Client::new(&server, "demo/assistant").in_session("2025-03-26");
    let one = client.post(&rpc(1, "tools/list", json!({}))).expect(200).body.len();
    assert!(one > 200_000, "{one} bytes in a list");
    let mut batch: Vec<Value> = (1..=100).map(|id| rpc(id, "tools/list", json!({}))).collect();
    // Answered at once; and with a call under way among them.
    for first_list in 0..2 {
        let answer = client.post(&json!(batch)).expect(200);
        assert!(answer.body.len() < 12 * 1024 * 1024, "{} bytes", answer.body.len());
        let answers = answer.json();
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), batch.len());
        for (asked, answer) in batch.iter().zip(answers) {
            assert_eq!(asked["id"], answer["id"]);
            assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{answer}");
        }
        assert!(answers[first_list]["result"]["tools"].is_array());
        assert!(answers[99]["error"]["message"].is_string(), "the last was answered in full");
        batch[0] = call(200, "find", json!({}));
    }
}

#[test]
fn a_client_in_a_session_that_has_said_all_is_answered() {
    let service = Service::holding();
    let server = Setup::new().api(&service.base(), &[HOLD]).start();
    let client = Client::open(&server);
    let hold = |id| call(id, "hold", json!({}));
    // Closed with the request, and while the call is under way.
    let mut plain = Vec::new();
    let mut streams = Vec::new();
    for (id, wait) in [(1, Duration::ZERO), (2, WATCHED)] {
        let (socket, mut wire) = connect(server.address());
        wire.send(&json_only(&client, &hold(id)));
        pause(wait);
        socket.shutdown(Shutdown::Write).unwrap();
        plain.push((id, wire));
        let (socket, mut wire) = connect(server.address());
        wire.send(&client.message(&hold(id + 10)));
        pause(wait);
        socket.shutdown(Shutdown::Write).unwrap();
        streams.push((id + 10, wire));
    }
    for _ in 0..4 {
        service.asked();
    }
    pause(WATCHED);
    assert!(service.is_quiet(), "a call was given up");
    service.release();
    for (id, mut wire) in plain {
        assert_eq!(number_of(wire.answer()), id);
        assert!(wire.is_closed());
    }
    for (id, wire) in streams {
        let mut stream = Events::of(wire).unwrap();
        // To the last chunk, or this fails.
        let rest = stream.rest();
        assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(id)), "{rest:?}");
        assert!(stream.into_wire().is_closed());
    }
}

#[test]
fn a_client_without_a_session_that_has_said_all_ends_its_call() {
    let service = Service::holding();
    let server = Setup::new().api(&service.base(), &[HOLD]).start();
    let client = Client::keyless(&server, "demo/public");
    let hold = call(1, "hold", json!({}));
    for request in [json_only(&client, &hold), client.message(&hold)] {
        let (socket, mut wire) = connect(server.address());
        wire.send(&request);
        service.asked();
        socket.shutdown(Shutdown::Write).unwrap();
        service.closed();
    }
}

#[test]
fn the_short_endpoint_takes_the_pages_of_the_keys_tenant() {
    let server = Setup::new()
        .catalog(
            "[[tenant]]\nid = \"web\"\nallowed_origins = [\"https://web.example\"]\n\
             [[client_application]]\ntenant = \"web\"\nid = \"page\"\n\
             [[tenant]]\nid = \"rival\"\nallowed_origins = [\"https://rival.example\"]\n\
             [[client_application]]\ntenant = \"rival\"\nid = \"page\"\n",
        )
        .start();
    let mut client = Client::new(&server, "web/page");
    client.path = "/mcp".to_owned();
    let asked = |origin: &str| client.send(&client.message(&ping()).header("Origin", origin));
    let allowed = |answer: &Answer| answer.header("Access-Control-Allow-Origin").map(str::to_owned);
    let served = asked("https://web.example").expect(200);
    assert_eq!(allowed(&served).as_deref(), Some("https://web.example"));
    for origin in ["https://rival.example", "https://nobody.example"] {
        assert_eq!(allowed(&asked(origin).expect(403)), None, "{origin}");
    }
    // Before a page has shown a key, whose it is cannot be known.
    let preflight = |origin: &str| {
        let request = Request::new("OPTIONS", "/mcp").header("Origin", origin);
        client.send(&request.header("Access-Control-Request-Method", "POST"))
    };
    for origin in ["https://web.example", "https://rival.example"] {
        let answer = preflight(origin).expect(204);
        assert_eq!(allowed(&answer).as_deref(), Some(origin));
        assert!(answer.header("Access-Control-Allow-Headers").is_some());
    }
    preflight("https://nobody.example").expect(403);
}

#[test]
fn the_admin_address_is_not_for_web_pages() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let server = Setup::new().set("listen.admin_address", free).start();
    let host = free.to_string();
    let ask = |request: &Request| Wire::tcp(free).ask(request);
    let get = |host: &str| Request::new("GET", "/status").header("Host", host);
    for host in [&host, "localhost", "[::1]:1"] {
        assert_eq!(ask(&get(host)).expect(200).json()["ready"], "yes");
    }
    for other in ["evil.example", "localhost.evil.example"] {
        ask(&get(other)).expect(403);
    }
    for origin in ["http://evil.example", &format!("http://{host}"), "null"] {
        ask(&get(&host).header("Origin", origin)).expect(403);
    }
    let post = || Request::new("POST", "/notify").header("Host", &host);
    ask(&post().header("Content-Type", "text/plain").body("{}")).expect(415);
    ask(&post().body("{}")).expect(415);
    ask(&post().json(&json!({}))).expect(200);
    // Nobody knows who asks here, whatever they say.
    let title = json!({ "title": "Theirs" });
    let patch = Request::new("PATCH", "/catalog/tenants/demo").header("Host", &host).json(&title);
    let claims = "root as \"ada\"";
    ask(&patch.header("If-Match", "*").header("X-Author", claims)).expect(200);
    let history = ask(&Request::new("GET", "/changes?limit=1").header("Host", &host)).json();
    assert_eq!(history["changes"][0]["author"], "(unverified) \"root as \\\"ada\\\"\"");
    // The clients' endpoints are open to operators here, and as closed to pages.
    let endpoint = || Request::new("POST", "/runtime/demo/assistant/mcp").json(&ping());
    ask(&endpoint()).expect(200);
    ask(&endpoint().header("Host", "evil.example")).expect(403);
    ask(&endpoint().header("Origin", "http://evil.example")).expect(403);
    // Refused before it sends the much that only operators may send.
    let much = post().header("Origin", "http://evil.example").header("Content-Length", "99000000");
    ask(&much.header("Content-Type", "application/json")).expect(403);
    let socket = Wire::unix(&server.admin_socket()).ask(&get("evil.example"));
    socket.expect(200);
}

#[test]
fn a_head_request_tells_whether_a_session_is_known() {
    let server = Setup::new().start();
    let client = Client::open(&server);
    let status = |session: Option<&str>| {
        let asking = Client { session: session.map(str::to_owned), ..client.clone() };
        let (mut socket, mut wire) = connect(server.address());
        socket.write_all(&asking.request("HEAD").bytes()).unwrap();
        wire.head().status
    };
    assert_eq!(status(None), 204);
    assert_eq!(status(client.session.as_deref()), 204);
    assert_eq!(status(Some("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")), 404);
    client.delete().expect(204);
    assert_eq!(status(client.session.as_deref()), 404);
}

#[test]
fn an_id_in_use_is_refused_to_a_second_request() {
    let service = Service::holding();
    let server = Setup::new().api(&service.base(), &[HOLD, FIND]).start();
    let client = Client::new(&server, "demo/assistant").in_session("2025-03-26");
    let mut first = client.post_stream(&call(7, "hold", json!({})));
    service.asked();
    let find = |id| call(id, "find", json!({}));
    let second = client.reply(&find(7));
    assert_eq!(second["id"], 7);
    assert!(second["error"]["code"].is_number() && second.get("result").is_none(), "{second}");
    let batch = client.post(&json!([find(6), find(7), find(8)])).expect(200).json();
    for (at, id) in [6, 7, 8].into_iter().enumerate() {
        assert_eq!(batch[at]["id"], id, "{batch}");
        assert_eq!(batch[at].get("error").is_some(), id == 7, "{batch}");
    }
    service.release();
    let rest = first.rest();
    assert_eq!(rest[0]["result"]["isError"], false, "{rest:?}");
    // Answered, the id is free again.
    assert_ne!(client.called("find", json!({}))["isError"], true);
    assert!(client.reply(&find(7)).get("result").is_some());
}

#[test]
fn headers_that_must_be_single_are() {
    let server = Setup::new().start();
    let client = Client::open(&server);
    let session = client.session.as_deref().unwrap();
    for method in ["POST", "GET", "DELETE"] {
        let mut request = client.get(None);
        if method != "GET" {
            request = client.request(method);
        }
        if method == "POST" {
            request = client.message(&ping());
        }
        client.send(&request.header("Mcp-Session-Id", session)).expect(404);
    }
    for kind in ["application/json", "text/plain"] {
        client.send(&client.message(&ping()).header("Content-Type", kind)).expect(415);
    }
    client.post(&ping()).expect(200);
}
