//! MCP servers that fail, in every way there is.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{
    Client, Events, NEWEST, Ringway, Setup, Upstream, call, eventually, ping, rpc,
};

pub(crate) const TRUST: &str = r#"upstream = { definitions = "trust" }"#;

/// A server before one upstream that is trusted.
pub(crate) fn before(upstream: &Upstream, connection: &str) -> Ringway {
    Setup::new().mcp("up", &upstream.url(), TRUST, connection).start()
}

/// A client in a session that is shown what the upstream offers.
pub(crate) fn client(server: &Ringway) -> Client {
    Client::open(server).shown("echo")
}

/// The text of a result.
#[track_caller]
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// A call that fails, and says this.
#[track_caller]
fn fails(client: &Client, tool: &str, arguments: Value, parts: &[&str]) {
    let result = client.called(tool, arguments);
    assert_eq!(result["isError"], true, "{result}");
    for part in parts {
        assert!(text(&result).contains(part), "no {part:?} in {result}");
    }
}

#[track_caller]
pub(crate) fn echoes(client: &Client) {
    let result = client.called("echo", json!({ "text": "hello" }));
    assert_eq!(text(&result), "hello", "{result}");
}

/// All messages of a stream but those that tell of lists that changed.
pub(crate) fn said(stream: &mut Events) -> Vec<Value> {
    let mut messages = stream.rest();
    messages.retain(|it| !it["method"].as_str().unwrap_or_default().ends_with("/list_changed"));
    messages
}

/// The values of all progress notifications.
pub(crate) fn progress(messages: &[Value]) -> Vec<f64> {
    let told = messages.iter().filter(|message| message["method"] == "notifications/progress");
    told.map(|message| message["params"]["progress"].as_f64().unwrap()).collect()
}

pub(crate) fn with_token(mut call: Value) -> Value {
    call["params"]["_meta"] = json!({ "progressToken": "token" });
    call
}

#[test]
fn one_that_dies_in_mid_call_is_spoken_to_again_when_it_is_back() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "");
        let client = client(&server);
        echoes(&client);
        fails(&client, "die", json!({}), &["up"]);
        fails(&client, "echo", json!({ "text": "hello" }), &["up"]);
        upstream.restart();
        echoes(&client);
        // It is not asked what may be done twice a second time without a reason.
        assert_eq!(upstream.state()["calls"].as_array().unwrap().len(), 1, "{revision}");
    }
}

#[test]
fn over_events_too() {
    let mut upstream = Upstream::start("2024-11-05", &[]);
    let server = before(&upstream, "");
    let client = client(&server);
    echoes(&client);
    fails(&client, "die", json!({}), &["up"]);
    upstream.restart();
    eventually("it is spoken to again", || {
        client.called("echo", json!({ "text": "hello" }))["isError"] != true
    });
}

#[test]
fn one_that_is_frozen_delays_no_other() {
    let frozen = Upstream::start("2025-11-25", &[]);
    let well = Upstream::start("2025-11-25", &[]);
    let server = Setup::new()
        .mcp("cold", &frozen.url(), TRUST, "headers_timeout_ms = 1500")
        .mcp("warm", &well.url(), TRUST, "")
        .start();
    let client = Client::open(&server).shown("cold_echo").shown("warm_echo");
    let said = json!({ "text": "hello" });
    client.called("cold_echo", said.clone());
    frozen.fault("frozen");
    let mut wire = client.connect();
    wire.send(&client.message(&call(7, "cold_echo", said.clone())));
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(500) {
        let asked = Instant::now();
        assert_eq!(text(&client.called("warm_echo", said.clone())), "hello");
        assert!(asked.elapsed() < Duration::from_secs(1));
    }
    let answer = match Events::of(wire) {
        Ok(mut stream) => stream.answer(),
        Err(answer) => answer.json(),
    };
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    assert!(text(result).contains("1500 ms"), "{answer}");
    frozen.control("clear");
    assert_eq!(text(&client.called("cold_echo", said)), "hello");
}

#[test]
fn one_that_is_stopped_is_given_up_after_the_time_for_its_head() {
    let upstream = Upstream::start("2026-07-28", &[]);
    let server = before(&upstream, "headers_timeout_ms = 700");
    let client = client(&server);
    upstream.signal("STOP");
    fails(&client, "echo", json!({ "text": "hello" }), &["700 ms"]);
    upstream.signal("CONT");
    eventually("it is spoken to again", || {
        client.called("echo", json!({ "text": "hello" }))["isError"] != true
    });
}

#[test]
fn one_that_forgets_its_sessions_is_asked_in_new_ones() {
    for revision in ["2025-11-25", "2024-11-05"] {
        let upstream = Upstream::start(revision, &["--fault", "forget=10"]);
        let server = before(&upstream, "");
        let client = client(&server);
        let before = upstream.state()["initialized"].as_u64().unwrap();
        for number in 0..30 {
            let result = client.called("echo", json!({ "text": number.to_string() }));
            assert_eq!(text(&result), number.to_string(), "{revision}");
        }
        let after = upstream.state()["initialized"].as_u64().unwrap();
        // Those of the standing streams are among them.
        assert!((3..=12).contains(&(after - before)), "{revision}: {before} and {after}");
    }
}

#[test]
fn a_list_that_leads_back_to_itself_ends_there() {
    let endless = Upstream::start("2025-11-25", &["--fault", "cycle"]);
    let well = Upstream::start("2025-11-25", &["--page", "3"]);
    let server = Setup::new()
        .mcp("endless", &endless.url(), TRUST, "")
        .mcp("well", &well.url(), TRUST, "")
        .start();
    let client = Client::open(&server).shown("endless_echo").shown("well_die");
    let shown = server.admin("GET", "/upstreams/demo/endless", None).expect(200).json();
    let mut notes = shown["notes"].as_array().unwrap().iter();
    assert!(notes.any(|note| note.as_str().unwrap().contains("leads back")), "{shown}");
    assert_eq!(endless.requests("resources/list"), 2);
    let shown = server.admin("GET", "/upstreams/demo/well", None).expect(200).json();
    assert_eq!(shown["notes"], json!([]));
    assert_eq!(text(&client.called("well_echo", json!({ "text": "hello" }))), "hello");
}

#[test]
fn a_connection_that_is_reset_is_a_failure_and_no_more() {
    let upstream = Upstream::start("2025-11-25", &[]);
    let server = before(&upstream, "");
    let client = client(&server);
    echoes(&client);
    upstream.fault("reset&value=tools/call");
    fails(&client, "echo", json!({ "text": "hello" }), &["up"]);
    upstream.control("clear");
    echoes(&client);
}

#[test]
fn statuses_of_failure_are_told() {
    let upstream = Upstream::start("2025-11-25", &[]);
    let server = before(&upstream, "");
    let client = client(&server);
    echoes(&client);
    for status in ["500", "502", "503"] {
        upstream.fault(&format!("status&value={status}:tools/call"));
        fails(&client, "echo", json!({ "text": "hello" }), &[status]);
        client.post(&ping()).expect(200);
    }
    upstream.control("clear");
    echoes(&client);
}

#[test]
fn what_servers_do_beside_the_protocol_does_no_harm() {
    for fault in ["no-get", "accepted-body", "no-delete", "noise", "session-changes", "open"] {
        let upstream = Upstream::start("2025-11-25", &["--fault", fault]);
        let server = before(&upstream, "");
        let client = client(&server);
        let mut standing = client.standing();
        standing.primed();
        let messages = heard(&client);
        assert_eq!(progress(&messages), [1.0, 2.0, 3.0], "{fault}: {messages:?}");
        assert_eq!(text(&messages.last().unwrap()["result"]), "3 steps done", "{fault}");
        client.delete().expect(204);
    }
}

/// What a client hears of a slow call.
fn heard(client: &Client) -> Vec<Value> {
    let body = with_token(call(1, "slow", json!({ "steps": 3, "milliseconds": 20 })));
    said(&mut client.post_stream(&body))
}

#[test]
fn one_that_lets_its_client_poll_is_polled() {
    let upstream = Upstream::start("2025-11-25", &["--fault", "poll=50"]);
    let server = before(&upstream, "");
    let client = client(&server);
    let messages = heard(&client);
    assert_eq!(progress(&messages), [1.0, 2.0, 3.0], "{messages:?}");
    assert_eq!(text(&messages.last().unwrap()["result"]), "3 steps done");
    assert_ne!(upstream.state()["resumed"], json!([]));
    assert_eq!(text(&client.called("leave", json!({}))), "came back");
}

#[test]
fn a_stream_that_breaks_anywhere_brings_the_same_messages() {
    let upstream = Upstream::start("2025-11-25", &["--fault", "retry=50"]);
    let server = before(&upstream, "");
    let client = client(&server);
    let whole = heard(&client);
    assert_eq!(whole.len(), 4, "{whole:?}");
    // Behind the priming event, in the middle of events and at their ends.
    for cut in [70, 100, 150, 213, 260, 333, 401, 450, 520] {
        upstream.fault(&format!("cut&value={cut}"));
        assert_eq!(heard(&client), whole, "cut at {cut}");
    }
    assert!(upstream.state()["resumed"].as_array().unwrap().len() >= 9);
    assert_eq!(upstream.state()["calls"].as_array().unwrap().len(), 10, "each was made once");
}

#[test]
fn fifty_megabytes_are_refused_and_less_arrives() {
    for answers in ["json", "sse"] {
        let upstream = Upstream::start("2025-11-25", &["--answers", answers]);
        let server = before(&upstream, "");
        let client = client(&server);
        echoes(&client);
        let before = resident_kilobytes(server.pid());
        for _ in 0..3 {
            fails(&client, "large", json!({ "bytes": 50_000_000 }), &["up"]);
        }
        let more = resident_kilobytes(server.pid()).saturating_sub(before);
        assert!(more < 120_000, "{answers}: {more} kB more");
        let result = client.called("large", json!({ "bytes": 3_000_000 }));
        assert_eq!(text(&result).len(), 3_000_000, "{answers}");
    }
}

/// `VmRSS` of a process.
pub(crate) fn resident_kilobytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn prompts_and_resources_fail_as_errors() {
    let upstream = Upstream::start("2025-11-25", &[]);
    let server = before(&upstream, "headers_timeout_ms = 500");
    let client = client(&server).without_session().in_session(NEWEST);
    upstream.fault("frozen&value=prompts/get");
    let answer = client.reply(&rpc(1, "prompts/get", json!({ "name": "plain" })));
    assert!(answer["error"]["message"].as_str().unwrap().contains("500 ms"), "{answer}");
    upstream.fault("status&value=500:resources/read");
    let read = rpc(1, "resources/read", json!({ "uri": "test://static/text" }));
    let answer = client.reply(&read);
    assert!(answer["error"]["message"].as_str().unwrap().contains("500"), "{answer}");
    upstream.control("clear");
    let answer = client.reply(&read);
    assert_eq!(answer["result"]["contents"][0]["text"], "static text", "{answer}");
}
