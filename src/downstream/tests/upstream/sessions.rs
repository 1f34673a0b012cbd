//! Sessions at servers: whose they are, when they begin and end.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::super::api::pause;
use super::super::support::{SECOND, on_a_core};
use super::script::{Asked, CALL, Server, Someone, accepted, begin, desk, desk_with, key, shown};
use crate::downstream::SessionScope;
use crate::rt;
use crate::sessions::ClientCapabilities;

/// Gives each session its number, and says it in each answer.
fn numbering() -> Server {
    let sessions = AtomicUsize::new(0);
    Server::start(move |call, talk| {
        if call.method() == "initialize" {
            let id = format!("s-{}", sessions.fetch_add(1, Ordering::SeqCst));
            pause(Duration::from_millis(100));
            return begin(call, talk, "2025-11-25", &id);
        }
        if begin(call, talk, "2025-11-25", "") {
            return true;
        }
        match call.method() {
            "tools/call" => talk.say(call.result(&json!(
                { "session": call.header("mcp-session-id") }
            ))),
            _ => talk.say(accepted()),
        }
    })
}

#[test]
fn who_comes_while_a_session_is_opened_waits_for_it() {
    let server = numbering();
    let upstream = server.upstream();
    on_a_core(async {
        let desk = Rc::new(desk());
        let done = Rc::new(std::cell::Cell::new(0));
        for _ in 0..8 {
            let (desk, upstream) = (Rc::clone(&desk), std::sync::Arc::clone(&upstream));
            let done = Rc::clone(&done);
            rt::spawn(async move {
                assert_eq!(desk.call(&upstream).await, r#"{"session":"s-0"}"#);
                done.set(done.get() + 1);
            });
        }
        rt::sleep(SECOND).await;
        assert_eq!((done.get(), desk.upstreams.count()), (8, 1));
    });
}

#[test]
fn sessions_are_as_separate_as_their_scopes() {
    let server = numbering();
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let other = Someone { capabilities: ClientCapabilities::NONE, ..Someone::default() };
        let client = Someone::default();
        let mut seen = Vec::new();
        for (client, scope) in [
            (&client, SessionScope::Session(key(1))),
            (&client, SessionScope::Session(key(2))),
            (&client, SessionScope::Session(key(1))),
            (&client, SessionScope::Shared("desk")),
            (&client, SessionScope::Shared("desk")),
            (&client, SessionScope::Shared("other")),
            // What one client can be asked is not what another can be.
            (&other, SessionScope::Shared("desk")),
            (&client, SessionScope::Request),
            (&client, SessionScope::Request),
        ] {
            let called = desk.ask(&upstream, client, &Asked { scope, ..CALL }).await;
            seen.push(shown(&called).replace(r#"{"session":"s-"#, "").replace("\"}", ""));
        }
        assert_eq!(seen, ["0", "1", "0", "2", "2", "3", "4", "5", "6"]);
        rt::sleep(Duration::from_millis(300)).await;
        assert_eq!(desk.upstreams.count(), 5);
        let ended = server.calls().into_iter().filter(|call| call.http() == "DELETE");
        assert_eq!(ended.count(), 2, "those of single requests");
        desk.upstreams.end_session(key(1)).await;
        assert_eq!(desk.upstreams.count(), 4);
        let ended = server.next("DELETE");
        assert_eq!(ended.header("mcp-session-id"), Some("s-0"));
        let again = Asked { scope: SessionScope::Session(key(1)), ..CALL };
        let called = desk.ask(&upstream, &client, &again).await;
        assert_eq!(shown(&called), r#"{"session":"s-7"}"#);
    });
}

#[test]
fn servers_hear_that_roots_changed_in_the_sessions_of_that_client() {
    let server = numbering();
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        desk.call(&upstream).await;
        desk.upstreams.roots_changed(key(8));
        desk.upstreams.roots_changed(key(7));
        rt::sleep(Duration::from_millis(300)).await;
    });
    let told = server.calls().into_iter().filter(|call| call.method().contains("roots"));
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].method(), "notifications/roots/list_changed");
    assert_eq!(told[0].header("mcp-session-id"), Some("s-0"));
}

#[test]
fn a_session_that_nobody_uses_is_ended() {
    let server = numbering();
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk_with(|settings| settings.session_idle_seconds = 1);
        desk.call(&upstream).await;
        rt::sleep(Duration::from_millis(600)).await;
        desk.call(&upstream).await;
        assert_eq!(desk.upstreams.count(), 1);
        rt::sleep(2 * SECOND).await;
        assert_eq!(desk.upstreams.count(), 0);
    });
    assert_eq!(server.next("DELETE").header("mcp-session-id"), Some("s-0"));
}

#[test]
fn an_opening_that_fails_fails_for_all_and_is_tried_again() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |call, talk| {
        if call.method() == "initialize" && count.fetch_add(1, Ordering::SeqCst) == 0 {
            return talk.say(super::super::api::answer("503 Oh", "", b""));
        }
        begin(call, talk, "2025-11-25", "s") || talk.say(call.result(&json!({})))
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let text = desk.call(&upstream).await;
        assert!(text.contains("HTTP 503"), "{text}");
        assert_eq!(desk.call(&upstream).await, "{}");
    });
}
