//! What is said between server and client besides answers, as far as no upstream server is needed.

use serde_json::{Value, json};

use crate::{
    harness::{Client, NEWEST, Setup, initialize, ping, rpc},
    modern::{headers, modern, with},
};

#[test]
fn what_no_server_of_the_view_does_is_neither_promised_nor_known() {
    let server = Setup::new().start();
    let client = Client::new(&server, "demo/assistant");
    let answer = client.post(&initialize(NEWEST)).expect(200).json();
    let capabilities = &answer["result"]["capabilities"];
    for absent in ["logging", "completions"] {
        assert_eq!(capabilities.get(absent), None, "{capabilities}");
    }
    assert_eq!(capabilities["resources"].get("subscribe"), None);
    let client = client.in_session(NEWEST);
    for (method, params) in [
        ("logging/setLevel", json!({ "level": "info" })),
        ("resources/subscribe", json!({ "uri": "a:b" })),
        ("resources/unsubscribe", json!({ "uri": "a:b" })),
    ] {
        let answer = client.reply(&rpc(1, method, params));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

#[test]
fn answers_to_what_was_not_asked_are_accepted_and_go_nowhere() {
    let server = Setup::new().start();
    let client = Client::open(&server);
    let response = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    for body in [
        response(json!(1)),
        response(json!("ringway-0-0-1-0")),
        response(json!("ringway-0-65535-1-18446744073709551615")),
        json!({ "jsonrpc": "2.0", "id": "x", "error": { "code": -1, "message": "no" } }),
        json!({ "jsonrpc": "2.0", "error": { "code": -1, "message": "no" } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }),
    ] {
        let answer = client.post(&body).expect(202);
        assert_eq!(answer.body, b"", "{body}");
        client.without_session().post(&body).expect(202);
    }
    client.post(&ping()).expect(200);
}

#[test]
fn a_state_that_was_never_given_is_refused() {
    let server = Setup::new().start();
    let client = Client::new(&server, "demo/assistant");
    for state in ["", "x", &"A".repeat(200), &"A".repeat(100_000)] {
        let params = json!({
            "name": "a",
            "arguments": {},
            "requestState": state,
            "inputResponses": { "ask-1": { "action": "accept" } },
        });
        let body = modern(1, "tools/call", params);
        let answer = client.send(&with(&client, &body, &headers(&body)));
        let answer = answer.json();
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(text.contains("requestState"), "{text}");
    }
}
