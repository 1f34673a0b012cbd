//! Servers that fail: killed, frozen, forgetful, endless.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::json;

use super::super::api::{answer, json_answer, pause};
use super::super::support::{SECOND, on_a_core};
use super::script::{
    Asked, CALL, EVENTS, Server, Someone, accepted, begin, chunk, desk, desk_with, event,
    notification, shown,
};
use crate::catalog::Upstream;
use crate::downstream::{CallError, UpstreamMethod};
use crate::rt::{self, Either};

const LOOKING: Asked<'_> = Asked {
    method: UpstreamMethod::ResourcesRead,
    params: r#"{"uri":"u:1"}"#,
    is_repeatable: true,
    ..CALL
};

#[test]
fn a_server_that_forgets_sessions_is_begun_with_again() {
    for refusal in [
        answer("404 Not Found", "", b""),
        json_answer(
            "404 Not Found",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        json_answer(
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session"}}"#,
        ),
    ] {
        let count = AtomicUsize::new(0);
        let sessions = AtomicUsize::new(0);
        let server = Server::start(move |call, talk| {
            if call.method() == "initialize" {
                sessions.fetch_add(1, Ordering::SeqCst);
            }
            let id = format!("s-{}", sessions.load(Ordering::SeqCst));
            if begin(call, talk, "2025-11-25", &id) {
                return true;
            }
            if call.method() != "tools/call" {
                return talk.say(accepted());
            }
            // Every third call it has forgotten.
            if count.fetch_add(1, Ordering::SeqCst) % 3 == 2 {
                return talk.say(&refusal);
            }
            talk.say(call.result(&json!({"session": call.header("mcp-session-id")})))
        });
        let upstream = server.upstream();
        on_a_core(async {
            let desk = desk();
            for _ in 0..10 {
                let text = desk.call(&upstream).await;
                assert!(text.contains("s-"), "{text}");
            }
            assert_eq!(desk.upstreams.count(), 1);
        });
    }
}

#[test]
fn a_server_that_knows_no_session_at_all_is_given_up() {
    let server = Server::legacy("2025-11-25", |_, talk| talk.say(answer("404 Not Found", "", b"")));
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let text = desk.call(&upstream).await;
        assert!(text.contains("forgets sessions"), "{text}");
        assert_eq!(desk.upstreams.count(), 0);
    });
    let begun = server.said().iter().filter(|one| *one == "POST initialize").count();
    assert_eq!(begun, 2);
}

#[test]
fn a_server_killed_in_the_middle_of_a_call_fails_it() {
    let server = Server::legacy("2025-11-25", |call, talk| {
        if call.method() != "tools/call" {
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        talk.say(event(&notification("notifications/message", &json!({"level": "error"}))));
        talk.reset();
        false
    });
    let upstream = server.upstream();
    on_a_core(async {
        let called = desk().ask(&upstream, &Someone::default(), &CALL).await;
        let error = called.result.unwrap_err();
        let CallError::Closed { answering: true, repeatable: false, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(called.status, Some(200));
    });
}

#[test]
fn a_stream_that_cannot_be_taken_up_again_fails_its_call() {
    for refusal in ["405 Method Not Allowed", "404 Not Found", "400 Bad Request"] {
        let server =
            Server::legacy("2025-11-25", move |call, talk| match (call.http(), call.method()) {
                ("POST", "tools/call") => {
                    talk.say(EVENTS);
                    talk.say(chunk("id: 7\nretry: 50\ndata:\n\n"));
                    false
                }
                ("GET", _) => talk.say(answer(refusal, "", b"")),
                _ => talk.say(accepted()),
            });
        let upstream = server.upstream();
        on_a_core(async {
            let text = desk().call(&upstream).await;
            assert!(text.contains("lost the request"), "{refusal}: {text}");
        });
    }
}

#[test]
fn a_frozen_server_is_given_up_and_told_so() {
    let server = Server::legacy("2025-11-25", |call, talk| {
        if call.method() != "tools/call" {
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        pause(4 * SECOND);
        true
    });
    let upstream = server.upstream();
    let started = Instant::now();
    on_a_core(async {
        let desk = desk_with(|settings| settings.silent_seconds_max = 1);
        let called = desk.ask(&upstream, &Someone::default(), &CALL).await;
        let error = called.result.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { limit_ms: 1000, .. }), "{error}");
        rt::sleep(Duration::from_millis(300)).await;
    });
    assert!(started.elapsed() < 4 * SECOND);
    let cancelled = server.next("notifications/cancelled");
    assert_eq!(cancelled.body["params"]["requestId"], 2);
}

#[test]
fn a_server_that_never_begins_to_answer_is_given_up() {
    let server = Server::legacy("2025-11-25", |call, talk| match call.method() {
        "tools/call" => {
            pause(4 * SECOND);
            true
        }
        _ => talk.say(accepted()),
    });
    let upstream = server.upstream_with("headers_timeout_ms = 300", Upstream::default());
    on_a_core(async {
        let called = desk().ask(&upstream, &Someone::default(), &CALL).await;
        let error = called.result.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { limit_ms: 300, .. }), "{error}");
    });
}

#[test]
fn the_whole_of_a_call_is_limited_only_where_its_connection_says_so() {
    let server = Server::legacy("2025-11-25", |call, talk| {
        if call.method() != "tools/call" {
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        while talk.say(chunk(": still here\n\n")) {
            pause(Duration::from_millis(50));
        }
        false
    });
    let upstream = server.upstream_with("total_timeout_ms = 500", Upstream::default());
    on_a_core(async {
        let called = desk().ask(&upstream, &Someone::default(), &CALL).await;
        let error = called.result.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { limit_ms: 500, .. }), "{error}");
    });
}

#[test]
fn the_time_in_which_the_client_is_asked_does_not_count() {
    let (answered, answers) = channel();
    let (answered, answers) = (Mutex::new(answered), Mutex::new(answers));
    let server = Server::legacy("2025-11-25", move |call, talk| {
        if call.body.get("method").is_none() {
            answered.lock().send(()).unwrap();
            return talk.say(accepted());
        }
        if call.method() != "tools/call" {
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        let question = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
        talk.say(event(&question.to_string()));
        answers.lock().recv_timeout(5 * SECOND).unwrap();
        talk.say(event(&call.message(&json!({"patient": true}))))
    });
    let upstream = server.upstream_with("total_timeout_ms = 700", Upstream::default());
    on_a_core(async {
        let desk = desk_with(|settings| settings.silent_seconds_max = 1);
        let client = Someone { thinks: 2 * SECOND, ..Someone::default() };
        let called = desk.ask(&upstream, &client, &CALL).await;
        assert_eq!(shown(&called), r#"{"patient":true}"#);
        assert!(called.elapsed < SECOND, "{:?}", called.elapsed);
    });
}

#[test]
fn a_question_that_is_taken_back_is_not_answered() {
    let server = Server::legacy("2025-11-25", |call, talk| {
        if call.method() != "tools/call" {
            assert!(call.body.get("method").is_some(), "{:?}", call.body);
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        let question = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"});
        talk.say(event(&question.to_string()));
        let cancelled = json!({"requestId": "q"});
        talk.say(event(&notification("notifications/cancelled", &cancelled)));
        pause(Duration::from_millis(300));
        talk.say(event(&call.message(&json!({"done": true}))))
    });
    let upstream = server.upstream();
    on_a_core(async {
        let client = Someone { thinks: Duration::from_millis(150), ..Someone::default() };
        let called = desk().ask(&upstream, &client, &CALL).await;
        assert_eq!(shown(&called), r#"{"done":true}"#);
        assert_eq!(client.asked.borrow().len(), 1);
    });
}

#[test]
fn dropping_a_request_takes_it_back() {
    let server = Server::legacy("2025-11-25", |call, talk| {
        if call.method() != "tools/call" {
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        talk.gone_within(5 * SECOND);
        false
    });
    let upstream = server.upstream();
    on_a_core(async {
        let (desk, client) = (desk(), Someone::default());
        let ask = Box::pin(desk.ask(&upstream, &client, &CALL));
        let dropped = rt::race(ask, rt::sleep(Duration::from_millis(400))).await;
        assert!(matches!(dropped, Either::Right(())));
        rt::sleep(Duration::from_millis(300)).await;
    });
    let cancelled = server.next("notifications/cancelled");
    assert_eq!(cancelled.body["params"]["requestId"], 2);
    assert_eq!(cancelled.header("mcp-session-id"), Some("s-1"));
}

/// From 2026-07-28 on closing the stream is all there is to it.
#[test]
fn dropping_a_modern_request_closes_its_stream() {
    let (seen, gone) = channel();
    let seen = Mutex::new(seen);
    let server = Server::modern(move |_, talk| {
        talk.say(EVENTS);
        seen.lock().send(talk.gone_within(5 * SECOND).is_some()).unwrap();
        false
    });
    let upstream = server.upstream();
    on_a_core(async {
        let (desk, client) = (desk(), Someone::default());
        let ask = Box::pin(desk.ask(&upstream, &client, &CALL));
        rt::race(ask, rt::sleep(Duration::from_millis(300))).await;
        rt::sleep(Duration::from_millis(200)).await;
    });
    assert!(gone.recv_timeout(SECOND).unwrap());
    assert!(!server.said().iter().any(|one| one.contains("cancelled")));
}

#[test]
fn fifty_megabytes_are_not_taken() {
    let as_events = |is_event: bool| {
        Server::legacy("2025-11-25", move |call, talk| {
            if call.method() != "tools/call" {
                return talk.say(accepted());
            }
            let large = "x".repeat(50 << 20);
            let body = call.message(&json!({"text": large}));
            if is_event {
                talk.say(EVENTS);
                talk.say(event(&body));
            } else {
                talk.say(json_answer("200 OK", &body));
            }
            false
        })
    };
    for is_event in [false, true] {
        let server = as_events(is_event);
        let upstream = server.upstream();
        on_a_core(async {
            let text = desk().call(&upstream).await;
            assert!(text.contains("larger than") || text.contains("longer than"), "{text}");
        });
    }
}

#[test]
fn large_events_within_the_limit_come_whole() {
    let server = Server::legacy("2025-11-25", |call, talk| {
        if call.method() != "tools/call" {
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        talk.say(event(&call.message(&json!({"text": "x".repeat(8 << 20)}))))
    });
    let upstream = server.upstream();
    on_a_core(async { assert!(desk().call(&upstream).await.len() > 8 << 20) });
}

/// A client that takes nothing: nothing more is read, so the server has to wait.
#[test]
fn nothing_is_read_for_a_client_that_takes_nothing() {
    let (wrote, written) = channel();
    let wrote = Mutex::new(wrote);
    let server = Server::legacy("2025-11-25", move |call, talk| {
        if call.method() != "tools/call" {
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        let message = json!({"level": "error", "data": "x".repeat(64 << 10)});
        let one = event(&notification("notifications/message", &message));
        for _ in 0..400 {
            if !talk.say(&one) {
                return false;
            }
            wrote.lock().send(one.len()).unwrap();
        }
        talk.say(event(&call.message(&json!({}))))
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let client = Someone { has_room: false, ..Someone::default() };
        let ask = Box::pin(desk.ask(&upstream, &client, &CALL));
        rt::race(ask, rt::sleep(2 * SECOND)).await;
        assert_eq!(client.told.borrow().len(), 1);
    });
    let bytes: usize = written.try_iter().sum();
    assert!(bytes < 16 << 20, "{bytes} of {}", 400 * (64 << 10));
}

#[test]
fn what_may_be_repeated_is_tried_again_where_the_connection_says_so() {
    let count = AtomicUsize::new(0);
    let server = Server::legacy("2025-11-25", move |call, talk| {
        if !matches!(call.method(), "resources/read" | "tools/call") {
            return talk.say(accepted());
        }
        if count.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return talk.say(answer("503 Service Unavailable", "", b""));
        }
        talk.say(call.result(&json!({"second": true})))
    });
    let lines = "retries = { attempts = 2, first_wait_ms = 10 }";
    let upstream = server.upstream_with(lines, Upstream::default());
    on_a_core(async {
        let (desk, client) = (desk(), Someone::default());
        let text = shown(&desk.ask(&upstream, &client, &LOOKING).await);
        assert_eq!(text, r#"{"second":true}"#);
        let text = shown(&desk.ask(&upstream, &client, &CALL).await);
        assert!(text.contains("HTTP 503"), "{text}");
    });
}

#[test]
fn credentials_are_not_repeated_to_the_client() {
    let server = Server::legacy("2025-11-25", |call, talk| {
        let authorization = call.header("authorization").unwrap_or_default().to_owned();
        assert_eq!(authorization, "Bearer s3cr3t-value");
        talk.say(call.result(&json!({"echo": authorization})))
    });
    let lines = "headers = { Authorization = \"Bearer s3cr3t-value\" }";
    let upstream = server.upstream_with(lines, Upstream::default());
    on_a_core(async {
        assert_eq!(desk().call(&upstream).await, r#"{"echo":"[removed]"}"#);
    });
}
