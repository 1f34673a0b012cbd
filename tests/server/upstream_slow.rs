//! Clients that read slowly or not at all, and those that go away.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::faults::connect;
use crate::harness::{
    Asked, Client, Events, Plan, Request, Ringway, Service, Setup, Upstream, answer, call,
    eventually, json_answer, pause,
};
use crate::modern::{headers, modern, with};
use crate::upstream_faults::{TRUST, before, client, resident_kilobytes, text};

const EVENTS: usize = 1000;
const EVENT_BYTES: usize = 64 * 1024;
/// What the kernel holds for the two connections, and some more.
const ON_THE_WAY_BYTES: usize = 24 << 20;

/// An MCP server whose one tool says very much while it runs; how often it has.
fn talkative() -> (Service, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let service = Service::start(move |asked| plan(asked, &counted));
    (service, count)
}

fn plan(asked: &Asked, count: &Arc<AtomicUsize>) -> Plan {
    if asked.method != "POST" {
        return Plan::Answer(answer("405 Method Not Allowed", &[], b""));
    }
    let message = asked.json();
    let Some(id) = message.get("id").cloned() else {
        return Plan::Answer(answer("202 Accepted", &[], b""));
    };
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {}, "logging": {} },
            "serverInfo": { "name": "talkative", "version": "1" },
        }),
        "tools/list" => {
            json!({ "tools": [{ "name": "talk", "inputSchema": { "type": "object" } }] })
        }
        "tools/call" => return Plan::Poured(Box::new(talk(id, count.clone()))),
        "logging/setLevel" => json!({}),
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            return Plan::Answer(answer(
                "404 Not Found",
                &[("Content-Type", "application/json")],
                body.to_string().as_bytes(),
            ));
        }
    };
    let body = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    Plan::Answer(json_answer(&body.to_string()))
}

fn talk(id: Value, count: Arc<AtomicUsize>) -> impl Iterator<Item = Vec<u8>> + Send {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let event = |message: Value| format!("event: message\ndata: {message}\n\n").into_bytes();
    let filler = "x".repeat(EVENT_BYTES);
    let said = (0..EVENTS).map(move |number| {
        count.store(number + 1, Ordering::Relaxed);
        let params = json!({ "level": "error", "data": { "number": number, "filler": filler } });
        event(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }))
    });
    let result = json!({ "content": [{ "type": "text", "text": "talked" }] });
    let last = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    std::iter::once(head.to_vec()).chain(said).chain(std::iter::once_with(move || event(last)))
}

fn before_talkative(service: &Service) -> Ringway {
    Setup::new().mcp("up", &service.base(), TRUST, "").start()
}

/// Reads a kilobyte a second for a moment, then all there is: every message, in order.
fn read_slowly(server: &Ringway, count: &AtomicUsize, asked: &Request, more_max: u64) {
    let (mut socket, mut wire) = connect(server.address());
    let before = resident_kilobytes(server.pid());
    wire.send(asked);
    eventually("it talks", || count.load(Ordering::Relaxed) > 0);
    let mut first = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        let mut bytes = [0; 100];
        let read = socket.read(&mut bytes).unwrap();
        first.extend_from_slice(&bytes[..read]);
        pause(Duration::from_millis(100));
    }
    let said = count.load(Ordering::Relaxed) * EVENT_BYTES;
    assert!(said < ON_THE_WAY_BYTES, "{said} bytes were let in");
    let more = resident_kilobytes(server.pid()).saturating_sub(before);
    assert!(more < more_max, "{more} kB more");
    wire.received_before(&first);
    let mut stream = Events::of(wire).unwrap_or_else(|answer| panic!("{}", answer.text()));
    for number in 0..EVENTS {
        let message = stream.answer();
        assert_eq!(message["params"]["data"]["number"], number, "{}", message["method"]);
    }
    let last = stream.answer();
    assert_eq!(text(&last["result"]), "talked");
    let more = resident_kilobytes(server.pid()).saturating_sub(before);
    assert!(more < more_max, "{more} kB more");
}

#[test]
fn a_session_that_reads_slowly_slows_its_upstream() {
    let (service, count) = talkative();
    let server = before_talkative(&service);
    let client = Client::open(&server).shown("talk");
    let asked = client.message(&call(1, "talk", json!({})));
    // The store keeps what can be resumed, and its page cache takes its room.
    read_slowly(&server, &count, &asked, 160 << 10);
}

#[test]
fn a_request_without_session_that_reads_slowly_slows_its_upstream() {
    let (service, count) = talkative();
    let server = before_talkative(&service);
    let client = Client::new(&server, "demo/assistant").shown("talk");
    let mut body = modern(1, "tools/call", json!({ "name": "talk", "arguments": {} }));
    body["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let asked = with(&client, &body, &headers(&body));
    read_slowly(&server, &count, &asked, 32 << 10);
}

const WAIT: &str = "wait";

#[test]
fn who_goes_without_a_session_takes_the_call_along() {
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "");
        let client = Client::new(&server, "demo/assistant").shown("echo");
        let body = call(1, WAIT, json!({ "seconds": 60, "label": "old" }));
        let old = {
            let mut wire = client.connect();
            wire.send(&client.message(&body));
            upstream.wait_for_call("old", "running");
            wire
        };
        let params = json!({ "name": WAIT, "arguments": { "seconds": 60, "label": "new" } });
        let body = modern(1, "tools/call", params);
        let mut wire = client.connect();
        wire.send(&with(&client, &body, &headers(&body)));
        upstream.wait_for_call("new", "running");
        drop(old);
        upstream.wait_for_call("old", "cancelled");
        assert_eq!(upstream.call("new"), "running", "{revision}");
        drop(wire);
        upstream.wait_for_call("new", "cancelled");
    }
}

#[test]
fn who_goes_with_a_session_finds_the_answer_later() {
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "");
        let client = client(&server);
        let body = call(1, WAIT, json!({ "seconds": 1, "label": "kept" }));
        let mut stream = client.post_stream(&body);
        let event = stream.primed();
        upstream.wait_for_call("kept", "running");
        drop(stream);
        upstream.wait_for_call("kept", "done");
        let mut again = client.stream(Some(&event)).unwrap();
        let answer = again.answer();
        assert_eq!(text(&answer["result"]), "waited", "{revision}");
    }
}

#[test]
fn a_cancelled_call_is_cancelled_there() {
    for revision in ["2024-11-05", "2025-06-18", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "");
        let client = client(&server);
        let mut stream =
            client.post_stream(&call(9, WAIT, json!({ "seconds": 60, "label": "one" })));
        upstream.wait_for_call("one", "running");
        client.post(&crate::harness::cancel(9)).expect(202);
        upstream.wait_for_call("one", "cancelled");
        assert!(stream.rest().iter().all(|message| message["id"] != 9));
    }
}
