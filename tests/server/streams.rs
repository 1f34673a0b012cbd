//! Streams at their edges: idle, aged out, of the old transport, of keys that are revoked.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::faults::{connect, legacy};
use crate::harness::{
    Client, Events, NEWEST, Plan, Service, Setup, answer, call, eventually, initialize, pause, ping,
};

const HOLD: (&str, &str, &str, &str) = ("hold", "GET", "/hold", "");

/// Processor time a process has used, in hundredths of a second.
fn processor_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn without_keep_alives_an_idle_stream_is_idle() {
    let service = Service::holding();
    let server = Setup::new()
        .set("runtime.mcp.sse.keep_alive_seconds", 0)
        .set("runtime.mcp.sse.connected", "off")
        .api(&service.base(), &[HOLD])
        .start();
    let client = Client::open(&server);
    let mut standing = client.standing();
    standing.primed();
    // One whose client has closed its direction waits in another way.
    let (socket, mut wire) = connect(server.address());
    wire.send(&client.message(&call(1, "hold", json!({}))));
    let mut posted = Events::of(wire).unwrap();
    posted.primed();
    socket.shutdown(Shutdown::Write).unwrap();
    service.asked();
    pause(Duration::from_millis(300));
    let before = processor_time(server.pid());
    pause(Duration::from_secs(2));
    let used = processor_time(server.pid()) - before;
    assert!(used < 20, "{used} hundredths of a second");
    server.notify();
    service.release();
    for stream in [&mut standing, &mut posted] {
        let event = stream.next().unwrap();
        assert!(event.comment.is_none() && event.data.is_some(), "{event:?}");
    }
}

#[test]
fn a_lost_call_that_aged_out_leaves_the_standing_stream_alone() {
    let service = Service::holding();
    let server = Setup::new()
        .set("runtime.mcp.sse.post_stream_retention_seconds", 1)
        .api(&service.base(), &[HOLD])
        .start();
    let client = Client::open(&server);
    let mut standing = client.standing();
    standing.primed();
    let mut posted = client.post_stream(&call(1, "hold", json!({})));
    let event = posted.primed();
    service.release();
    assert_eq!(posted.rest().len(), 1);
    eventually("the call's stream has aged out", || {
        pause(Duration::from_millis(1500));
        // A stream, and one that ends: both or this fails.
        client.stream(Some(&event)).unwrap().rest().is_empty()
    });
    let mut again = client.stream(Some(&event)).unwrap();
    assert_eq!(again.rest().len(), 0);
    server.notify();
    let message = standing.message().expect("the standing stream was ended");
    assert_eq!(message["method"], "notifications/tools/list_changed");
}

#[test]
fn the_old_transport_takes_its_own_sessions_and_one_initialization() {
    let server = Setup::new().start();
    let client = Client::new(&server, "demo/assistant");
    let streamable = client.in_session(NEWEST);
    let (mut stream, messages) = legacy(&client);
    let mut foreign = client.clone();
    let id = streamable.session.as_deref().unwrap();
    foreign.path = client.path.replace("/mcp", &format!("/messages?sessionId={id}"));
    foreign.post(&ping()).expect(404);
    streamable.standing().primed();
    foreign.post(&ping()).expect(404);

    messages.post(&initialize("2024-11-05")).expect(202);
    assert_eq!(stream.message().unwrap()["result"]["protocolVersion"], "2024-11-05");
    messages.post(&initialize("2024-11-05")).expect(202);
    let second = stream.message().unwrap();
    assert_eq!((&second["id"], &second["error"]["code"]), (&json!(0), &json!(-32600)), "{second}");
    messages.post(&ping()).expect(202);
    assert!(stream.message().unwrap().get("result").is_some());
}

#[test]
fn large_answers_of_the_old_transport_all_arrive() {
    const CALLS: u64 = 6;
    const BYTES: usize = 900 * 1024;
    let text = answer("200 OK", &[("Content-Type", "text/plain")], &b"x".repeat(BYTES));
    let service = Service::start(move |_| Plan::Held(text.clone()));
    let server = Setup::new().api(&service.base(), &[HOLD]).start();
    let (mut stream, messages) = legacy(&Client::new(&server, "demo/assistant"));
    messages.post(&initialize("2024-11-05")).expect(202);
    assert!(stream.message().is_some());
    for id in 1..=CALLS {
        messages.post(&call(id, "hold", json!({}))).expect(202);
        service.asked();
    }
    service.release();
    let mut ids: Vec<u64> = (0..CALLS)
        .map(|_| {
            let message = stream.message().expect("the stream was ended");
            let text = message["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.len() >= BYTES, "{} bytes", text.len());
            message["id"].as_u64().unwrap()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=CALLS).collect::<Vec<_>>());
}

/// Whether a connection is closed, however properly, long before a keep-alive would show it.
fn ends_at_once(socket: &mut TcpStream) -> bool {
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut bytes = [0; 4096];
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        match socket.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
    false
}

/// Whether a connection is open and quiet.
fn stays_open(socket: &mut TcpStream) -> bool {
    let mut bytes = [0; 4096];
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    matches!(socket.read(&mut bytes), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn the_open_streams_of_a_revoked_key_are_closed() {
    let server = Setup::new().start();
    let created = server.command(&["key", "create", "--client", "demo/assistant"]).succeeded();
    let id = created.stderr.split_whitespace().nth(1).unwrap();
    let revoked = Client::keyless(&server, "demo/assistant").with_key(created.stdout.trim());
    let kept = Client::new(&server, "demo/assistant");
    let open = Client::keyless(&server, "demo/public");
    // A session's, one without a session, and one of HTTP+SSE, past their greetings.
    let streams = |client: &Client| {
        let sse = Client { path: client.path.replace("/mcp", "/sse"), ..client.clone() };
        [client.in_session(NEWEST), client.clone(), sse].map(|client| {
            let (mut socket, mut wire) = connect(server.address());
            wire.send(&client.get(None));
            Events::of(wire).unwrap().next().unwrap();
            while !stays_open(&mut socket) {}
            socket
        })
    };
    let mut lost = streams(&revoked);
    let mut living: Vec<TcpStream> = [&kept, &open].into_iter().flat_map(streams).collect();
    server.command(&["key", "revoke", id]).succeeded();
    for (at, socket) in lost.iter_mut().enumerate() {
        assert!(ends_at_once(socket), "stream {at} of the revoked key");
    }
    for (at, socket) in living.iter_mut().enumerate() {
        assert!(stays_open(socket), "stream {at} of others was closed");
    }
}
