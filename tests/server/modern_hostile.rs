//! Clients of 2026-07-28 that break its rules, and what servers would have them do.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use crate::harness::{Client, PATIENCE, Ringway, Setup};
use crate::hostile_upstreams::{EVENTS, accept, event, say, server, upstream};
use crate::modern::{headers, modern, with};

const MISMATCH: i64 = -32020;

fn appliance() -> (Ringway, Client) {
    let server = Setup::new().start();
    let client = Client::new(&server, "demo/assistant");
    (server, client)
}

/// A call whose headers were changed: the status, and the code of the error.
fn changed(client: &Client, change: impl FnOnce(&mut Vec<(String, String)>)) -> (u16, Option<i64>) {
    let body = modern(1, "tools/call", json!({ "name": "runtime_status", "arguments": {} }));
    let mut headers = headers(&body);
    change(&mut headers);
    let answer = client.send(&with(client, &body, &headers));
    (answer.status, answer.json()["error"]["code"].as_i64())
}

/// MCP 2026-07-28, Streamable HTTP, server validation.
#[test]
fn headers_say_once_what_the_body_says() {
    let (_server, client) = appliance();
    for name in ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"] {
        let refused = (400, Some(MISMATCH));
        assert_eq!(changed(&client, |all| all.retain(|(key, _)| key != name)), refused, "{name}");
        let twice = changed(&client, |all| {
            let again = all.iter().find(|(key, _)| key == name).unwrap().clone();
            all.push(again);
        });
        assert_eq!(twice, refused, "{name} twice");
        for value in
            ["", "x", "RUNTIME_STATUS", "runtime_status, runtime_status", "=?base64?eA==?="]
        {
            let set = |all: &mut Vec<(String, String)>| {
                all.iter_mut().find(|(key, _)| key == name).unwrap().1 = value.to_owned();
            };
            assert_eq!(changed(&client, set), refused, "{name}: {value}");
        }
    }
    for value in ["=?base64?cnVudGltZV9zdGF0dXM=?=", " \truntime_status\t "] {
        let set = |all: &mut Vec<(String, String)>| all[2].1 = value.to_owned();
        assert_eq!(changed(&client, set), (200, None), "{value:?}");
    }
    let unread = changed(&client, |all| all.push(("Mcp-Param-Other".to_owned(), "x".to_owned())));
    assert_eq!(unread, (200, None));
}

#[test]
fn states_and_answers_of_wrong_types_are_refused() {
    let (_server, client) = appliance();
    for (key, value) in [
        ("requestState", json!(5)),
        ("requestState", json!(["x"])),
        ("requestState", json!("x")),
        ("requestState", json!("A".repeat(70_000))),
        ("inputResponses", json!([])),
        ("inputResponses", json!("x")),
    ] {
        let mut params = json!({ "name": "runtime_status", "arguments": {} });
        params[key] = value;
        let body = modern(1, "tools/call", params);
        let answer = client.send(&with(&client, &body, &headers(&body)));
        assert_eq!(answer.json()["error"]["code"], -32602, "{key}: {}", answer.text());
    }
}

/// What opens by a click may be a script.
#[test]
fn nobody_is_sent_to_what_is_no_page_of_the_web() {
    let (answered, answers) = channel();
    let answered = Mutex::new(answered);
    let url = upstream(move |message, socket| {
        if message.legacy(socket, &json!({ "tools": {} })) {
            return;
        }
        if message.method().is_empty() {
            answered.lock().unwrap().send(message.body.clone()).unwrap();
            return accept(socket);
        }
        let params = json!({ "mode": "url", "message": "m", "elicitationId": "e",
            "url": message.body["params"]["arguments"]["url"] });
        say(socket, EVENTS);
        say(
            socket,
            &event(&json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
            "params": params })),
        );
        say(socket, &event(&message.result(&json!({ "content": [] }))));
    });
    let server = server(&url);
    let client = Client::keyless(&server, "demo/public");
    for url in ["javascript:alert(1)", "file:///etc/passwd", "//host/x", ""] {
        let params = json!({ "name": "t", "arguments": { "url": url } });
        let mut body = modern(1, "tools/call", params);
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": { "url": {} } });
        let answer = client.send(&with(&client, &body, &headers(&body))).expect(200);
        assert!(!answer.text().contains("input_required"), "{}", answer.text());
        let told: Value = answers.recv_timeout(PATIENCE).unwrap();
        assert_eq!((&told["id"], &told["error"]["code"]), (&json!("q"), &json!(-32602)), "{told}");
    }
}
