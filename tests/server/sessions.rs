//! How many sessions there may be, how long they live, whose they are, where they are kept.

use std::time::Duration;

use serde_json::json;

use crate::harness::{Client, NEWEST, Ringway, Setup, eventually, initialize, pause, ping};

fn open_sessions(server: &Ringway) -> f64 {
    server.metric("ringway_sessions_open")
}

#[test]
fn a_tenant_has_as_many_sessions_as_it_may() {
    let server = Setup::new().set("runtime.mcp.session.per_tenant_max", 2).start();
    let client = Client::new(&server, "demo/assistant");
    let first = client.in_session(NEWEST);
    Client::keyless(&server, "demo/public").in_session(NEWEST);
    let refused = client.post(&initialize(NEWEST)).expect(429);
    let seconds: u32 = refused.header("Retry-After").unwrap().parse().unwrap();
    assert!(seconds > 0);
    assert!(refused.header("Mcp-Session-Id").is_none());
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("DELETE"));
    // What is full is the tenant: another is not, and without a session all goes on.
    Client::new(&server, "other/assistant").in_session(NEWEST);
    client.post(&ping()).expect(200);
    first.delete().expect(204);
    client.in_session(NEWEST);
}

#[test]
fn the_catalog_says_how_many_of_a_tenant() {
    let tenant = "[[tenant]]\nid = \"small\"\nsessions_max = 1\n\
                  [[client_application]]\ntenant = \"small\"\nid = \"one\"\nopen = true\n";
    let server = Setup::new().catalog(tenant).start();
    let client = Client::keyless(&server, "small/one");
    client.in_session(NEWEST);
    client.post(&initialize(NEWEST)).expect(429);
}

#[test]
fn idle_sessions_expire_and_watched_ones_do_not() {
    let server = Setup::new().set("runtime.mcp.session.idle_seconds", 1).start();
    let client = Client::new(&server, "demo/assistant");
    let idle = client.in_session(NEWEST);
    let watched = client.in_session(NEWEST);
    let mut stream = watched.standing();
    pause(Duration::from_millis(1300));
    let unknown = idle.post(&ping()).expect(404);
    assert_eq!(idle.delete().expect(404).body, unknown.body);
    watched.post(&ping()).expect(200);
    server.notify();
    assert!(stream.message().is_some());
    drop(stream);
    // Nobody asks for them, and still they are gone.
    eventually("every session is swept", || open_sessions(&server) < 1.0);
    watched.post(&ping()).expect(404);
}

#[test]
fn a_session_in_use_ends_with_its_lifetime() {
    let server = Setup::new()
        .set("runtime.mcp.session.idle_seconds", 1)
        .set("runtime.mcp.session.lifetime_seconds", 1)
        .start();
    let client = Client::open(&server);
    let mut wire = client.connect();
    wire.ask(&client.message(&ping())).expect(200);
    eventually("the lifetime is over", || wire.ask(&client.message(&ping())).status == 404);
}

#[test]
fn somebody_elses_session_is_an_unknown_one() {
    let server = Setup::new().start();
    let owner = Client::open(&server);
    let mut unknown = owner.clone();
    unknown.session = Some("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned());
    let mut changed = owner.clone();
    let mut id = owner.session.clone().unwrap().into_bytes();
    let last = id.len() - 1;
    id[last] = if id[last] == b'A' { b'B' } else { b'A' };
    changed.session = Some(String::from_utf8(id).unwrap());
    let mut foreign: Vec<Client> = ["demo/assistant", "demo/desk", "other/assistant"]
        .into_iter()
        .map(|of| Client { session: owner.session.clone(), ..Client::new(&server, of) })
        .collect();
    foreign
        .push(Client { session: owner.session.clone(), ..Client::keyless(&server, "demo/public") });
    foreign.extend([changed, unknown.clone()]);
    let expected = unknown.post(&ping()).expect(404);
    for client in &foreign {
        let answers = [
            client.post(&ping()),
            client.stream(None).err().unwrap(),
            client.delete(),
            client.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
        ];
        for answer in answers {
            assert_eq!((answer.status, answer.text()), (404, expected.text()), "{}", client.path);
            assert_eq!(answer.header("Content-Type"), expected.header("Content-Type"));
        }
    }
    owner.post(&ping()).expect(200);
}

#[test]
fn a_session_out_of_the_heap_answers_from_the_store() {
    let server = Setup::new().set("runtime.mcp.session.heap_idle_seconds", 1).start();
    let client = Client::open(&server);
    let older = Client::new(&server, "demo/desk").in_session("2025-03-26");
    let in_heap = || {
        let listed = server.admin("GET", "/sessions", None).expect(200).json();
        listed["sessions"].as_array().unwrap().len()
    };
    eventually("the heap is empty", || in_heap() == 0);
    assert!((open_sessions(&server) - 2.0).abs() < 0.5, "they still count");
    client.post(&ping()).expect(200);
    // Its revision too is what it was: only this one has batches.
    let batch = older.post(&json!([ping()])).expect(200).json();
    assert_eq!(batch.as_array().unwrap().len(), 1);
    client.post(&json!([ping()])).expect(400);
    let stranger = Client { session: client.session.clone(), ..older };
    stranger.post(&ping()).expect(404);
    client.delete().expect(204);
    client.post(&ping()).expect(404);
}

#[test]
fn many_short_sessions_leave_nothing_behind() {
    const SESSIONS: u32 = 20_000;
    const AT_A_TIME: u32 = 50;
    let server = Setup::new().set("runtime.mcp.session.idle_seconds", 1).start();
    let client = Client::new(&server, "demo/assistant");
    let request = client.message(&initialize(NEWEST));
    let before_kib = resident_kib(server.pid());
    let mut wire = client.connect();
    for _ in 0..SESSIONS / AT_A_TIME {
        for _ in 0..AT_A_TIME {
            wire.send(&request);
        }
        for _ in 0..AT_A_TIME {
            wire.answer().expect(200);
        }
    }
    let opened = server.metric("ringway_sessions_opened_total");
    assert!((opened - f64::from(SESSIONS)).abs() < 0.5, "{opened} opened");
    eventually("the sessions are gone", || open_sessions(&server) < 1.0);
    // Each is counted right after it has gone.
    eventually("all that were opened have ended", || {
        (opened - server.metric("ringway_sessions_ended_total")).abs() < 0.5
    });
    // The store's cache and its garbage, which it clears when it works; no session's.
    let more_kib = resident_kib(server.pid()).saturating_sub(before_kib);
    assert!(more_kib < 256 * 1024, "{more_kib} KiB more");
    let status = server.admin("GET", "/status", None).expect(200).json();
    assert_eq!(status["sessions"], 0);
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse().unwrap()
}
