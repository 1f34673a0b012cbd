//! What servers say outside any request.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::super::api::{answer, pause};
use super::super::support::{SECOND, on_a_core};
use super::script::{
    Asked, CALL, END, EVENTS, SESSION, Server, Someone, accepted, begin, chunk, desk, event, key,
    notification, shown,
};
use crate::downstream::{Carried, SessionScope, UpstreamMethod, Wanted};
use crate::rt;
use crate::sessions::ClientCapabilities;

const NONE: ClientCapabilities = ClientCapabilities::NONE;

fn lists() -> Wanted {
    Wanted { tools: true, prompts: true, resources: true, ..Wanted::default() }
}

#[test]
fn a_stream_is_held_open_and_opened_again_where_it_ended() {
    let streams = AtomicUsize::new(0);
    let server = Server::legacy("2025-11-25", move |call, talk| {
        if call.http() != "GET" {
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        if streams.fetch_add(1, Ordering::SeqCst) == 0 {
            let changed = notification("notifications/tools/list_changed", &json!({}));
            talk.say(chunk(&format!("id: 4\ndata: {changed}\n\n")));
            let question = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"});
            talk.say(event(&question.to_string()));
            let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
            talk.say(event(&ping.to_string()));
            return talk.say(END);
        }
        let updated = json!({"uri": "u:1"});
        talk.say(event(&notification("notifications/resources/updated", &updated)));
        talk.say(event(&notification("notifications/message", &json!({"level": "error"}))));
        talk.gone_within(9 * SECOND);
        false
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        desk.upstreams.listen(&upstream, SESSION, NONE, lists(), &Carried::NONE);
        desk.upstreams.listen(&upstream, SESSION, NONE, lists(), &Carried::NONE);
        rt::sleep(3 * SECOND).await;
        let heard = desk.ears.heard();
        assert_eq!(heard[..2], ["tools", "asked roots/list"]);
        assert_eq!(heard[2..], ["updated u:1", r#"error {"level":"error"}"#]);
        // Ended with the client's own session.
        desk.upstreams.end_session(key(7)).await;
        rt::sleep(Duration::from_millis(300)).await;
    });
    let calls = server.calls();
    let streams: Vec<_> = calls.iter().filter(|call| call.http() == "GET").collect();
    assert_eq!(streams.len(), 2, "one listens, however often it is said");
    assert_eq!(streams[1].header("last-event-id"), Some("4"));
    assert_eq!(streams[0].header("accept"), Some("text/event-stream"));
    let answers: Vec<_> = calls.iter().filter(|call| call.body.get("result").is_some()).collect();
    assert_eq!(answers.len(), 2);
    assert!(calls.iter().any(|call| call.http() == "DELETE"));
}

#[test]
fn where_there_is_no_stream_it_is_not_asked_for_again() {
    let server = Server::legacy("2025-11-25", |call, talk| match call.http() {
        "GET" => talk.say(answer("405 Method Not Allowed", "Allow: POST\r\n", b"")),
        _ => talk.say(accepted()),
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let scope = SessionScope::Keeper;
        desk.upstreams.listen(&upstream, scope, NONE, lists(), &Carried::NONE);
        rt::sleep(3 * SECOND).await;
        desk.upstreams.listen(&upstream, scope, NONE, Wanted::default(), &Carried::NONE);
    });
    let asked = server.said().iter().filter(|one| one.starts_with("GET")).count();
    assert_eq!(asked, 1);
}

#[test]
fn what_is_wanted_of_a_modern_server_is_said() {
    let server = Server::modern(|call, talk| {
        if call.method() != "subscriptions/listen" {
            return talk.say(call.result(&json!({"resultType": "complete"})));
        }
        let tag = json!({"io.modelcontextprotocol/subscriptionId": call.id()});
        let granted = json!({"notifications": {}, "_meta": tag});
        talk.say(EVENTS);
        talk.say(event(&notification("notifications/subscriptions/acknowledged", &granted)));
        if call.body["params"]["notifications"].get("resourceSubscriptions").is_some() {
            let updated = json!({"uri": "u:1", "_meta": tag});
            talk.say(event(&notification("notifications/resources/updated", &updated)));
        }
        talk.gone_within(5 * SECOND);
        false
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let wanted = Wanted { tools: true, ..Wanted::default() };
        desk.upstreams.listen(&upstream, SESSION, NONE, wanted, &Carried::NONE);
        rt::sleep(Duration::from_millis(500)).await;
        let asked = Asked { method: UpstreamMethod::Subscribe, params: r#"{"uri":"u:1"}"#, ..CALL };
        let client = Someone::default();
        assert_eq!(shown(&desk.ask(&upstream, &client, &asked).await), "{}");
        rt::sleep(Duration::from_millis(500)).await;
        assert_eq!(desk.ears.heard(), ["updated u:1"]);
        let asked = Asked { method: UpstreamMethod::Unsubscribe, ..asked };
        assert_eq!(shown(&desk.ask(&upstream, &client, &asked).await), "{}");
        rt::sleep(Duration::from_millis(500)).await;
    });
    let calls = server.calls();
    let listened: Vec<_> = calls
        .iter()
        .filter(|call| call.method() == "subscriptions/listen")
        .map(|call| call.body["params"]["notifications"].clone())
        .collect();
    let lists = json!({"toolsListChanged": true});
    let both = json!({"toolsListChanged": true, "resourceSubscriptions": ["u:1"]});
    assert_eq!(listened, [lists.clone(), both, lists]);
    assert!(!calls.iter().any(|call| call.method().starts_with("resources/")));
}

/// What a client subscribed to is subscribed to again in a session that replaces a lost one.
#[test]
fn subscriptions_outlive_the_session_they_were_made_in() {
    let sessions = AtomicUsize::new(0);
    let server = Server::start(move |call, talk| {
        if call.method() == "initialize" {
            sessions.fetch_add(1, Ordering::SeqCst);
        }
        let number = sessions.load(Ordering::SeqCst);
        if begin(call, talk, "2025-11-25", &format!("s-{number}")) {
            return true;
        }
        match (call.http(), call.header("last-event-id")) {
            // The first session has one stream, and is lost afterwards.
            ("GET", Some(_)) => talk.say(answer("404 Not Found", "", b"")),
            ("GET", None) => {
                talk.say(EVENTS);
                talk.say(chunk("id: 1\ndata:\n\n"));
                pause(if number == 1 { Duration::from_millis(600) } else { 3 * SECOND });
                talk.say(END)
            }
            _ => talk.say(call.result(&json!({}))),
        }
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let asked = Asked { method: UpstreamMethod::Subscribe, params: r#"{"uri":"u:1"}"#, ..CALL };
        assert_eq!(shown(&desk.ask(&upstream, &Someone::default(), &asked).await), "{}");
        rt::sleep(Duration::from_millis(300)).await;
        let wanted = Wanted { uris: BTreeSet::from(["u:2".into()]), ..Wanted::default() };
        desk.upstreams.listen(&upstream, SESSION, NONE, wanted, &Carried::NONE);
        rt::sleep(4 * SECOND).await;
    });
    let calls = server.calls();
    let made = |session: &str| {
        let made = calls.iter().filter(|call| call.method() == "resources/subscribe");
        let made = made.filter(|call| call.header("mcp-session-id") == Some(session));
        let mut uris: Vec<&str> =
            made.map(|call| call.body["params"]["uri"].as_str().unwrap()).collect();
        uris.sort_unstable();
        uris.join(" ")
    };
    assert_eq!((&*made("s-1"), &*made("s-2")), ("u:1 u:2", "u:1 u:2"), "each once");
}

/// A server that asks on the stream that belongs to no request means the request that runs.
#[test]
fn a_question_without_a_mark_belongs_to_the_request_that_runs() {
    let (asked, questions) = std::sync::mpsc::channel::<()>();
    let (answered, answers) = std::sync::mpsc::channel::<()>();
    let (asked, questions) = (parking_lot::Mutex::new(asked), parking_lot::Mutex::new(questions));
    let (answered, answers) = (parking_lot::Mutex::new(answered), parking_lot::Mutex::new(answers));
    let server = Server::legacy("2025-11-25", move |call, talk| {
        if call.http() == "GET" {
            talk.say(EVENTS);
            questions.lock().recv_timeout(5 * SECOND).unwrap();
            let question = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"});
            talk.say(event(&question.to_string()));
            talk.gone_within(5 * SECOND);
            return false;
        }
        if call.body.get("method").is_none() {
            answered.lock().send(()).unwrap();
            return talk.say(accepted());
        }
        if call.method() != "tools/call" {
            return talk.say(accepted());
        }
        talk.say(EVENTS);
        asked.lock().send(()).unwrap();
        answers.lock().recv_timeout(5 * SECOND).unwrap();
        talk.say(event(&call.message(&json!({"asked": true}))))
    });
    let upstream = server.upstream();
    on_a_core(async {
        let (desk, client) = (desk(), Someone::default());
        desk.upstreams.listen(&upstream, SESSION, NONE, lists(), &Carried::NONE);
        rt::sleep(Duration::from_millis(300)).await;
        let called = desk.ask(&upstream, &client, &CALL).await;
        assert_eq!(shown(&called), r#"{"asked":true}"#);
        assert_eq!(client.asked.borrow().len(), 1);
        assert!(desk.ears.heard().is_empty());
    });
}
