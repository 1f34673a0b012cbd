//! Requests and their answers, of each era and transport.

use std::sync::mpsc::channel;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;

use super::super::api::{answer, json_answer, pause};
use super::super::support::{SECOND, on_a_core};
use super::script::{
    Asked, CALL, END, EVENTS, Server, Someone, accepted, chunk, desk, event, notification, shown,
};
use crate::catalog::{Upstream, UpstreamTransport};
use crate::downstream::UpstreamMethod;
use crate::mcp::LogLevel;

#[test]
fn a_modern_server_is_asked_with_an_envelope_and_no_session() {
    let server = Server::modern(|call, talk| {
        talk.say(call.result(&json!({"resultType": "complete", "content": [], "n": 1})))
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        for _ in 0..2 {
            let text = desk.call(&upstream).await;
            assert!(text.contains("\"n\":1"), "{text}");
        }
        assert_eq!(desk.upstreams.count(), 0);
    });
    let calls = server.calls();
    assert_eq!(calls.len(), 3, "the server is asked once what it is");
    let call = &calls[1];
    assert_eq!(call.line, "POST /mcp HTTP/1.1");
    assert_eq!(call.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(call.header("mcp-method"), Some("tools/call"));
    assert_eq!(call.header("mcp-name"), Some("t"));
    assert_eq!(call.header("mcp-session-id"), None);
    assert_eq!(call.header("content-type"), Some("application/json"));
    assert_eq!(call.header("accept"), Some("application/json, text/event-stream"));
    let meta = &call.body["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "info");
    let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*capabilities, json!({"roots": {}, "elicitation": {}}));
    assert_ne!(calls[1].id(), calls[2].id());
    assert_eq!(server.api.connections(), 1);
}

#[test]
fn a_legacy_server_is_asked_in_one_session() {
    let server = Server::legacy("2025-06-18", |call, talk| match call.method() {
        "logging/setLevel" => talk.say(call.result(&json!({}))),
        _ => talk.say(call.result(&json!({"content": [], "exact": 1}))),
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        for _ in 0..2 {
            assert_eq!(desk.call(&upstream).await, r#"{"content":[],"exact":1}"#);
        }
        assert_eq!(desk.upstreams.count(), 1);
    });
    let calls = server.calls();
    let said: Vec<&str> = calls.iter().map(super::script::Call::method).collect();
    let expected = [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "tools/call",
        "tools/call",
    ];
    assert_eq!(said, expected);
    let initialize = &calls[1].body["params"];
    assert_eq!(initialize["protocolVersion"], "2025-11-25");
    assert_eq!(initialize["capabilities"], json!({"roots": {}, "elicitation": {}}));
    assert_eq!(calls[1].header("mcp-session-id"), None);
    for call in &calls[2..] {
        assert_eq!(call.header("mcp-session-id"), Some("s-1"));
        assert_eq!(call.header("mcp-protocol-version"), Some("2025-06-18"));
        assert_eq!(call.header("mcp-method"), None);
    }
    assert_eq!(calls[4].body["params"]["_meta"], json!({"progressToken": calls[4].id()}));
    assert_eq!(calls[3].body["params"]["level"], "info");
}

/// Progress, log messages and a question on the stream of the answer.
#[test]
fn what_is_said_on_the_stream_of_an_answer_reaches_the_client() {
    let (answered, answers) = channel();
    let answers = Mutex::new(answers);
    let server = Server::legacy("2025-11-25", move |call, talk| {
        if call.body.get("method").is_none() {
            answered.send(call.body.clone()).unwrap();
            return talk.say(answer("202 Accepted", "Content-Type: text/plain\r\n", b"Accepted"));
        }
        if call.method() == "logging/setLevel" {
            return talk.say(call.result(&json!({})));
        }
        talk.say(EVENTS);
        talk.say(chunk("id: 1\nretry: 100\ndata:\n\n"));
        let token = call.id();
        let of_others = json!({"progressToken": 999, "progress": 1});
        talk.say(event(&notification("notifications/progress", &of_others)));
        let progress = json!({"progressToken": token, "progress": 1, "total": 2});
        talk.say(event(&notification("notifications/progress", &progress)));
        talk.say(event(&notification("notifications/message", &json!({"level": "debug"}))));
        let message = json!({"level": "error", "data": "x"});
        talk.say(event(&notification("notifications/message", &message)));
        talk.say(event(&notification("notifications/tools/list_changed", &json!({}))));
        let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
            "params": {"message": "Sure?", "requestedSchema": {}}});
        talk.say(event(&question.to_string()));
        let ping = json!({"jsonrpc": "2.0", "id": 5, "method": "ping"});
        talk.say(event(&ping.to_string()));
        let odd = json!({"jsonrpc": "2.0", "id": 6, "method": "tasks/list"});
        talk.say(event(&odd.to_string()));
        let mut all: Vec<String> =
            (0..3).map(|_| answers.lock().recv_timeout(5 * SECOND).unwrap().to_string()).collect();
        all.sort();
        talk.say(event(&call.message(&json!({ "answers": all }))));
        talk.say(END)
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let client = Someone::default();
        let text = shown(&desk.ask(&upstream, &client, &CALL).await);
        let result: serde_json::Value = serde_json::from_str(&text).unwrap();
        let answers: Vec<serde_json::Value> = result["answers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| serde_json::from_str(text.as_str().unwrap()).unwrap())
            .collect();
        let of = |id: &serde_json::Value| answers.iter().find(|one| one["id"] == *id).unwrap();
        assert_eq!(of(&json!("q"))["result"]["action"], "accept");
        assert_eq!(of(&json!(5))["result"], json!({}));
        assert_eq!(of(&json!(6))["error"]["code"], -32601);
        let told = client.told.borrow();
        assert_eq!(
            *told,
            [r#"progress {"progress":1,"total":2}"#, r#"error {"data":"x","level":"error"}"#]
        );
        assert!(client.asked.borrow()[0].starts_with("elicitation/create {\"message\":\"Sure?\""));
        assert_eq!(desk.ears.heard(), ["tools"]);
    });
}

/// A server of the first transport: `t` is answered, `break` ends its stream.
fn of_the_first_transport() -> Server {
    let (posted, messages) = channel::<String>();
    let messages = Mutex::new(messages);
    let posted = Mutex::new(posted);
    Server::start(move |call, talk| {
        let target = call.line.split(' ').nth(1).unwrap();
        match (call.http(), target) {
            ("GET", "/mcp") => {
                talk.say(EVENTS);
                talk.say(chunk("event: endpoint\ndata: /messages?sessionId=7\n\n"));
                let messages = messages.lock();
                while let Ok(message) = messages.recv_timeout(5 * SECOND) {
                    if message == "end" || !talk.say(event(&message)) {
                        return false;
                    }
                }
                false
            }
            ("POST", "/mcp") => talk.say(answer("405 Method Not Allowed", "", b"")),
            ("POST", "/messages?sessionId=7") => {
                let posted = posted.lock();
                match call.method() {
                    "initialize" => {
                        let result = json!({"protocolVersion": "2024-11-05",
                            "capabilities": {"tools": {}}, "serverInfo": {"name": "old"}});
                        posted.send(call.message(&result)).unwrap();
                    }
                    "tools/call" => {
                        let progress = json!({"progressToken": call.id(), "progress": 1});
                        let progress = notification("notifications/progress", &progress);
                        posted.send(progress).unwrap();
                        let question = json!({"jsonrpc": "2.0", "id": 3, "method": "roots/list"});
                        posted.send(question.to_string()).unwrap();
                        if call.body["params"]["name"] == "t" {
                            posted.send(call.message(&json!({"old": true}))).unwrap();
                        } else {
                            posted.send("end".to_owned()).unwrap();
                        }
                    }
                    _ => {}
                }
                talk.say(answer("202 Accepted", "", b"Accepted"))
            }
            _ => talk.say(answer("404 Not Found", "", b"")),
        }
    })
}

/// The first transport: answers come on the stream that the session hangs on.
#[test]
fn a_server_of_the_first_transport_is_found_and_asked() {
    let server = of_the_first_transport();
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let client = Someone::default();
        for _ in 0..2 {
            let called = desk.ask(&upstream, &client, &CALL).await;
            assert_eq!(shown(&called), r#"{"old":true}"#);
        }
        assert_eq!(client.told.borrow().len(), 2);
        assert_eq!(client.asked.borrow().len(), 2);
        assert_eq!(desk.upstreams.count(), 1);
        // The stream ends in the middle of a call.
        let breaking = Asked { params: r#"{"name":"break"}"#, ..CALL };
        let text = shown(&desk.ask(&upstream, &client, &breaking).await);
        assert!(text.contains("in the middle of its answer"), "{text}");
        assert_eq!(desk.upstreams.count(), 0);
    });
}

/// Its stream is read by one core, and its answers are for all.
#[test]
fn cores_share_a_session_that_hangs_on_a_stream() {
    let server = of_the_first_transport();
    let upstream = server.upstream();
    let across = crate::downstream::AcrossCores::default();
    let (opened, is_open) = channel();
    let first = {
        let (across, upstream) = (across.clone(), std::sync::Arc::clone(&upstream));
        std::thread::spawn(move || {
            on_a_core(async {
                let desk = super::script::desk_across(&across);
                assert_eq!(desk.call(&upstream).await, r#"{"old":true}"#);
                opened.send(()).unwrap();
                crate::rt::sleep(2 * SECOND).await;
            });
        })
    };
    is_open.recv_timeout(5 * SECOND).unwrap();
    on_a_core(async {
        let (desk, client) = (super::script::desk_across(&across), Someone::default());
        for _ in 0..3 {
            let called = desk.ask(&upstream, &client, &CALL).await;
            assert_eq!(shown(&called), r#"{"old":true}"#);
        }
        assert_eq!((client.told.borrow().len(), client.asked.borrow().len()), (3, 3));
        assert_eq!(desk.upstreams.count(), 1);
    });
    first.join().unwrap();
    let begun = server.said().iter().filter(|one| one.starts_with("GET")).count();
    assert_eq!(begun, 1);
}

#[test]
fn arguments_go_into_headers_where_the_accepted_tool_says_so() {
    let server = Server::modern(|call, talk| {
        let region = call.header("mcp-param-region").map(str::to_owned);
        talk.say(call.result(&json!({"resultType": "complete", "region": region})))
    });
    let plain = server.upstream();
    let tool = r#"{"name":"t","inputSchema":{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"}}}}"#;
    let json = crate::json::OwnedRaw::parse(tool.as_bytes()).unwrap();
    let kind = crate::catalog::DefinitionKind::Tool;
    let definition = crate::catalog::Definition { kind, name: "t".into(), json, hash: [0; 32] };
    let definitions = crate::catalog::Definitions {
        all: vec![std::sync::Arc::new(definition)],
        ..crate::catalog::Definitions::default()
    };
    let upstream = std::sync::Arc::new(crate::catalog::UpstreamServer {
        tenant: plain.tenant.clone(),
        toolset: plain.toolset.clone(),
        connection: std::sync::Arc::clone(&plain.connection),
        settings: Upstream::default(),
        definitions: std::sync::Arc::new(definitions),
    });
    on_a_core(async {
        let asked = Asked { params: r#"{"name":"t","arguments":{"region":"größe"}}"#, ..CALL };
        let text = shown(&desk().ask(&upstream, &Someone::default(), &asked).await);
        assert!(text.contains("=?base64?Z3LDtsOfZQ==?="), "{text}");
    });
}

#[test]
fn what_is_pinned_is_not_searched_for() {
    let server = Server::legacy("2025-03-26", |call, talk| talk.say(call.result(&json!({}))));
    let settings = Upstream {
        revision: Some("2025-03-26".to_owned()),
        transport: UpstreamTransport::StreamableHttp,
        ..Upstream::default()
    };
    let upstream = server.upstream_with("", settings);
    on_a_core(async { assert_eq!(desk().call(&upstream).await, "{}") });
    let calls = server.calls();
    assert_eq!(calls[0].body["params"]["protocolVersion"], "2025-03-26");
    // That revision has no such header.
    assert!(calls.iter().all(|call| call.header("mcp-protocol-version").is_none()));
}

#[test]
fn errors_of_the_server_are_its_answers_whatever_their_status() {
    for (status, code) in
        [("200 OK", -32602), ("400 Bad Request", -32602), ("500 Oh", 7), ("404 Not Found", -32601)]
    {
        let server = Server::legacy("2025-11-25", move |call, talk| match call.method() {
            "tools/call" => talk.say(call.error(status, code)),
            _ => talk.say(accepted()),
        });
        let upstream = server.upstream();
        on_a_core(async {
            assert_eq!(desk().call(&upstream).await, format!("error {code}"), "{status}");
        });
    }
}

#[test]
fn answers_that_are_none_fail_with_words_for_it() {
    let cases: [(String, &str); 6] = [
        (answer("502 Bad Gateway", "", b"<html>"), "answered with HTTP 502"),
        (answer("403 Forbidden", "", b""), "answered with HTTP 403"),
        (accepted(), "gave no answer"),
        (json_answer("200 OK", "[1"), "breaks the protocol"),
        (json_answer("200 OK", r#"{"jsonrpc":"2.0","id":99,"result":{}}"#), "gave no answer"),
        (format!("{EVENTS}{}{END}", event("hello")), "breaks the protocol"),
    ];
    for (said, expected) in cases {
        let shown = said.clone();
        let server = Server::legacy("2025-11-25", move |call, talk| match call.method() {
            "tools/call" => talk.say(&said),
            _ => talk.say(accepted()),
        });
        let upstream = server.upstream();
        on_a_core(async {
            let text = desk().call(&upstream).await;
            assert!(text.contains(expected) && !text.contains("/mcp"), "{shown}: {text}");
        });
    }
}

#[test]
fn a_modern_server_asks_by_its_result_and_a_legacy_client_is_asked() {
    let rounds = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::modern(move |call, talk| {
        let params = &call.body["params"];
        let result = match rounds.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => json!({"resultType": "input_required", "requestState": "one", "inputRequests": {
                "a": {"method": "elicitation/create", "params": {"message": "A?"}},
                "b": {"method": "roots/list", "params": {}}}}),
            1 => {
                assert_eq!(params["requestState"], "one");
                assert_eq!(params["inputResponses"]["a"]["action"], "accept");
                assert!(params["inputResponses"]["b"].is_object());
                json!({"resultType": "input_required", "requestState": "two"})
            }
            _ => {
                assert_eq!(params["requestState"], "two");
                assert!(params.get("inputResponses").is_none());
                json!({"resultType": "complete", "done": true})
            }
        };
        talk.say(call.result(&result))
    });
    let upstream = server.upstream();
    on_a_core(async {
        let (desk, client) = (desk(), Someone::default());
        let text = shown(&desk.ask(&upstream, &client, &CALL).await);
        assert!(text.contains("\"done\":true"), "{text}");
        assert_eq!(client.asked.borrow().len(), 2);
    });
    let ids: Vec<String> = server.calls().iter().map(|call| call.id().to_string()).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().collect::<std::collections::BTreeSet<_>>().len() == 4, "{ids:?}");
}

#[test]
fn a_modern_client_is_given_the_questions_and_endless_ones_end() {
    let server = Server::modern(|call, talk| {
        talk.say(call.result(&json!({"resultType": "input_required", "requestState": "s",
            "inputRequests": {"a": {"method": "roots/list"}}})))
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let modern = Someone { is_modern: true, ..Someone::default() };
        let called = desk.ask(&upstream, &modern, &CALL).await;
        assert_eq!(shown(&called), r#"wants {"a"} Some("s")"#);
        let text = desk.call(&upstream).await;
        assert!(text.contains("again and again"), "{text}");
    });
    assert_eq!(server.calls().len(), 1 + 1 + 9);
}

#[test]
fn a_stream_that_was_ended_after_an_id_is_taken_up_again() {
    let server = Server::legacy("2025-11-25", |call, talk| match (call.http(), call.method()) {
        ("POST", "tools/call") => {
            talk.say(EVENTS);
            talk.say(chunk("id: 7\nretry: 60\ndata:\n\n"));
            talk.say(END)
        }
        ("GET", _) => {
            talk.say(EVENTS);
            let from = call.header("last-event-id").unwrap_or_default();
            let said = match from {
                // Nothing yet: the client is to ask later.
                "7" => chunk("id: 8\nretry: 50\ndata:\n\n"),
                "8" => event(r#"{"jsonrpc":"2.0","id":2,"result":{"late":true}}"#),
                _ => panic!("{from}"),
            };
            talk.say(said);
            talk.say(END)
        }
        _ => talk.say(accepted()),
    });
    let upstream = server.upstream();
    on_a_core(async { assert_eq!(desk().call(&upstream).await, r#"{"late":true}"#) });
}

#[test]
fn level_is_set_when_it_changes() {
    let server = Server::legacy("2025-11-25", |call, talk| talk.say(call.result(&json!({}))));
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        for level in [None, Some(LogLevel::Error), Some(LogLevel::Error), Some(LogLevel::Debug)] {
            let client = Someone { level, ..Someone::default() };
            assert_eq!(shown(&desk.ask(&upstream, &client, &CALL).await), "{}");
        }
    });
    let said = server.said();
    let levels = said.iter().filter(|one| *one == "POST logging/setLevel").count();
    assert_eq!(levels, 2, "{said:?}");
}

#[test]
fn a_redirect_within_the_origin_keeps_the_method() {
    let server = Server::start(|call, talk| {
        let target = call.line.split(' ').nth(1).unwrap();
        match target {
            "/mcp" => talk.say(answer("307 Temporary Redirect", "Location: /mcp/\r\n", b"")),
            _ => {
                super::script::begin(call, talk, "2025-11-25", "s")
                    || talk.say(call.result(&json!({"moved": call.http()})))
            }
        }
    });
    let upstream = server.upstream();
    on_a_core(async { assert_eq!(desk().call(&upstream).await, r#"{"moved":"POST"}"#) });
    let away = Server::start(|_, talk| {
        let elsewhere = "Location: http://127.0.0.1:1/mcp\r\n";
        talk.say(answer("307 Temporary Redirect", elsewhere, b""))
    });
    let upstream = away.upstream();
    on_a_core(async {
        let text = desk().call(&upstream).await;
        assert!(text.contains("HTTP 307"), "{text}");
    });
}

#[test]
fn completion_is_asked_like_everything_else() {
    let server = Server::legacy("2025-11-25", |call, talk| match call.method() {
        "completion/complete" => talk.say(call.result(&json!({"completion": {"values": []}}))),
        _ => talk.say(accepted()),
    });
    let upstream = server.upstream();
    on_a_core(async {
        let asked = Asked { method: UpstreamMethod::Complete, params: "{}", ..CALL };
        let text = shown(&desk().ask(&upstream, &Someone::default(), &asked).await);
        assert_eq!(text, r#"{"completion":{"values":[]}}"#);
    });
    pause(Duration::ZERO);
}
