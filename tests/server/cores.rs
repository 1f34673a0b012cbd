//! Several cores: whatever core a connection falls to, a session is one thing.

use serde_json::json;

use crate::harness::{
    Client, Events, NEWEST, Ringway, Service, Setup, call, cancel, initialize, ping,
};

const HOPS: &str = "ringway_cross_core_hops_total";
const HOLD: (&str, &str, &str, &str) = ("hold", "GET", "/hold", "");

fn four_cores() -> Setup {
    Setup::new().set("runtime.cores", 4)
}

/// Repeats `round` until it has happened both within a core and across cores, and at least
/// `least` times. Which core a connection falls to is the kernel's choice.
fn on_any_core(server: &Ringway, least: usize, mut round: impl FnMut()) {
    let (mut within, mut across) = (0, 0);
    for number in 0..400 {
        let before = server.metric(HOPS);
        round();
        if server.metric(HOPS) > before {
            across += 1;
        } else {
            within += 1;
        }
        if number + 1 >= least && within > 0 && across > 0 {
            return;
        }
    }
    panic!("{within} rounds within a core, {across} across cores");
}

#[test]
fn post_streams_resume_on_any_core() {
    let service = Service::holding();
    let server = four_cores().api(&service.base(), &[HOLD]).start();
    let client = Client::open(&server);
    let broken: Vec<(u64, String)> = (1..=8)
        .map(|number| {
            let mut posted = client.post_stream(&call(number, "hold", json!({})));
            (number, posted.primed())
        })
        .collect();
    service.release();
    let mut at = broken.iter().cycle();
    on_any_core(&server, 16, || {
        let (number, event) = at.next().unwrap();
        let rest = client.stream(Some(event)).unwrap().rest();
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!(rest[0]["id"], *number);
    });
}

#[test]
fn the_standing_stream_resumes_on_any_core() {
    let server = four_cores().start();
    let client = Client::open(&server);
    let mut stream = client.standing();
    let mut last = stream.primed();
    on_any_core(&server, 8, || {
        // Two messages, of which the client goes on from before the first.
        server.notify();
        let first = stream.message_event();
        server.notify();
        let second = stream.message_event();
        let mut again = client.stream(Some(&last)).unwrap();
        assert_eq!(again.message_event(), first);
        assert_eq!(again.message_event(), second);
        last = second.id.unwrap();
        // The connection before it is over, whichever core held it.
        assert!(stream.breaks_off());
        stream = again;
    });
}

#[test]
fn messages_of_the_old_transport_are_posted_on_any_core() {
    let service = Service::echo();
    let find = ("find", "GET", "/find", "");
    let server = four_cores().api(&service.base(), &[find]).start();
    let client = Client::new(&server, "demo/assistant");
    let mut legacy = client.clone();
    legacy.path = "/runtime/demo/assistant/sse".to_owned();
    let mut stream = legacy.standing();
    let endpoint = stream.next().unwrap();
    assert_eq!(endpoint.kind.as_deref(), Some("endpoint"));
    legacy.path = format!("/runtime/demo/assistant/{}", endpoint.data.unwrap());
    legacy.post(&initialize("2024-11-05")).expect(202);
    assert_eq!(stream.message().unwrap()["result"]["protocolVersion"], "2024-11-05");
    let mut number = 0;
    on_any_core(&server, 8, || {
        number += 1;
        legacy.post(&call(number, "find", json!({}))).expect(202);
        let message = stream.message().unwrap();
        assert_eq!(message["id"], number);
        assert!(message["result"]["content"][0]["text"].as_str().unwrap().contains("/find"));
    });
}

#[test]
fn a_cancellation_finds_its_call_on_any_core() {
    let service = Service::holding();
    let server = four_cores().api(&service.base(), &[HOLD]).start();
    let client = Client::open(&server);
    let mut number = 0;
    on_any_core(&server, 4, || {
        number += 1;
        let mut posted = client.post_stream(&call(number, "hold", json!({})));
        service.asked();
        client.post(&cancel(number)).expect(202);
        // MCP, cancellation: no answer. And the API learns of it.
        assert_eq!(posted.rest(), Vec::<serde_json::Value>::new());
        service.closed();
    });
}

#[test]
fn an_ended_session_ends_everywhere() {
    let service = Service::holding();
    let server = four_cores().api(&service.base(), &[HOLD]).start();
    let client = Client::new(&server, "demo/assistant");
    // With five streams on four cores, some are always elsewhere.
    for _ in 0..5 {
        let client = client.in_session(NEWEST);
        let mut standing = client.standing();
        let event = standing.primed();
        let mut posted: Vec<Events> = (1..=4)
            .map(|number| {
                let mut stream = client.post_stream(&call(number, "hold", json!({})));
                stream.primed();
                stream
            })
            .collect();
        client.delete().expect(204);
        assert_eq!(standing.rest().len(), 0);
        for stream in &mut posted {
            assert_eq!(stream.rest().len(), 0);
            service.closed();
        }
        let bodies = [
            client.post(&ping()).expect(404).text(),
            client.stream(None).err().unwrap().expect(404).text(),
            client.stream(Some(&event)).err().unwrap().expect(404).text(),
            client.delete().expect(404).text(),
        ];
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    }
    assert!(server.metric(HOPS) > 0.0);
    assert!(server.metric("ringway_sessions_open") < 1.0);
}

#[test]
fn one_connection_serves_many_sessions() {
    let server = four_cores().start();
    let client = Client::new(&server, "demo/assistant");
    let sessions = [client.in_session(NEWEST), client.in_session("2025-06-18")];
    let mut wire = client.connect();
    for _ in 0..3 {
        for session in &sessions {
            wire.ask(&session.message(&ping())).expect(200);
        }
    }
    sessions[0].delete().expect(204);
    // What this connection remembers of the session is not believed any more.
    wire.ask(&sessions[0].message(&ping())).expect(404);
    wire.ask(&sessions[1].message(&ping())).expect(200);
}
