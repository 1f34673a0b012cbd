//! One session at a server for several callers: whose questions reach whom.

use serde_json::{Value, json};

use crate::harness::{
    Client, Events, NEWEST, Ringway, Setup, Upstream, call, cancel, eventually, initialize,
};
use crate::upstream_faults::text;

const SHARED: &str = r#"upstream = { definitions = "trust", sessions = "shared" }"#;

/// A client in a session of its own that can be asked for its roots.
fn caller(server: &Ringway) -> Client {
    let client = Client::new(server, "demo/assistant");
    let mut body = initialize(NEWEST);
    body["params"]["capabilities"] = json!({ "roots": {} });
    let answer = client.post(&body).expect(200);
    let session = answer.header("Mcp-Session-Id").unwrap().to_owned();
    Client { session: Some(session), ..client }.shown("list_roots")
}

/// Answers the question for roots that comes next, and gives the result that follows.
fn rooted(client: &Client, stream: &mut Events) -> Value {
    let question = stream.answer();
    assert_eq!(question["method"], "roots/list", "{question}");
    let roots = json!({ "roots": [{ "uri": "file:///mine" }] });
    let body = json!({ "jsonrpc": "2.0", "id": question["id"], "result": roots });
    client.post(&body).expect(202);
    stream.answer()["result"].clone()
}

#[test]
fn a_question_reaches_a_caller_only_where_nobody_else_can_be_meant() {
    let upstream = Upstream::start("2024-11-05", &[]);
    let server = Setup::new().mcp("up", &upstream.url(), SHARED, "").start();
    let (one, other) = (caller(&server), caller(&server));
    // One after the other, both in one session of the server.
    for client in [&one, &other] {
        let mut stream = client.post_stream(&call(1, "list_roots", json!({})));
        assert_eq!(text(&rooted(client, &mut stream)), "file:///mine");
    }
    assert_eq!(upstream.requests("initialize"), 2, "that of the callers, and that of discovery");

    // Two at a time: nobody is asked.
    let waits = json!({ "seconds": 3600, "label": "waits" });
    let mut waiting = other.post_stream(&call(2, "wait", waits));
    upstream.wait_for_call("waits", "running");
    let refused = one.called("list_roots", json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains("sessions = \"separate\""), "{refused}");

    // What is asked for a call that was given up does not reach the one that is left.
    let given_up = one.post_stream(&call(3, "ask_late", json!({ "label": "late" })));
    upstream.wait_for_call("late", "running");
    one.post(&cancel(3)).expect(202);
    upstream.wait_for_call("late", "cancelled");
    let came = || text(&one.called("came_late", json!({}))).to_owned();
    eventually("the late question is refused", || !came().is_empty());
    assert!(came().starts_with("refused: ") && came().contains("sessions = \"separate\""));
    drop(given_up);
    other.post(&cancel(2)).expect(202);
    for message in waiting.rest() {
        assert_ne!(message["method"], "roots/list", "{message}");
    }
}

#[test]
fn where_sessions_are_separate_each_is_asked_for_its_own_calls() {
    const SEPARATE: &str = r#"upstream = { definitions = "trust" }"#;
    let upstream = Upstream::start("2024-11-05", &[]);
    let server = Setup::new().mcp("up", &upstream.url(), SEPARATE, "").start();
    let (one, other) = (caller(&server), caller(&server));
    let waits = json!({ "seconds": 3600, "label": "waits" });
    let waiting = other.post_stream(&call(2, "wait", waits));
    upstream.wait_for_call("waits", "running");
    let mut stream = one.post_stream(&call(1, "list_roots", json!({})));
    assert_eq!(text(&rooted(&one, &mut stream)), "file:///mine");
    drop(waiting);
}
