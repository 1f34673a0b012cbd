//! What a client finds again after the process ended, however it ended.

use serde_json::json;

use crate::harness::{Client, NEWEST, Ringway, Service, Setup, call, ping, rpc};

/// Half-read streams in several sessions, the end of the process, as many cores as `cores`
/// afterwards: everybody gets exactly what is left, and what is new.
fn outlives(end: impl FnOnce(&mut Ringway), cores: usize) {
    let mut server = Setup::new().set("runtime.cores", 4).start();
    let client = Client::new(&server, "demo/assistant");
    let sessions: Vec<Client> = (0..6).map(|_| client.in_session(NEWEST)).collect();
    let mut streams: Vec<_> = sessions.iter().map(Client::standing).collect();
    for _ in 0..4 {
        server.notify();
    }
    let read: Vec<_> = streams
        .iter_mut()
        .enumerate()
        .map(|(at, stream)| {
            let all: Vec<_> = (0..4).map(|_| stream.message_event()).collect();
            // As far as the server can know, this client read one more than the one before it.
            (all[at % 4].id.clone().unwrap(), all[at % 4 + 1..].to_vec())
        })
        .collect();
    end(&mut server);
    server.set("runtime.cores", cores);
    server.start();
    for (session, (last, rest)) in sessions.iter().zip(&read) {
        let session = session.at(&server);
        session.post(&ping()).expect(200);
        let mut again = session.stream(Some(last)).unwrap();
        for event in rest {
            assert_eq!(again.message_event(), *event);
        }
        server.notify();
        let fresh = again.message_event().id;
        assert!(!rest.iter().any(|event| event.id == fresh), "an event id came twice");
        // Another client of the session is told that the stream is taken.
        session.stream(None).err().unwrap().expect(409);
        session.delete().expect(204);
        assert_eq!(again.rest().len(), 0);
    }
}

#[test]
fn streams_outlive_a_crash_and_go_on_with_fewer_cores() {
    outlives(
        |server| {
            server.flushed();
            server.kill();
        },
        2,
    );
}

#[test]
fn streams_outlive_a_stop_and_go_on_with_more_cores() {
    outlives(Ringway::stop, 6);
}

#[test]
fn calls_lost_in_a_crash_are_answered_on_resumption() {
    let service = Service::holding();
    let hold = ("hold", "GET", "/hold", "");
    let mut server = Setup::new().api(&service.base(), &[hold]).start();
    let client = Client::open(&server);
    let mut posted = client.post_stream(&call(77, "hold", json!({})));
    let event = posted.primed();
    let mut named = client.post_stream(&json!({
        "jsonrpc": "2.0", "id": "a\"b", "method": "tools/call",
        "params": { "name": "hold", "arguments": {} },
    }));
    let named_event = named.primed();
    server.kill_and_restart();
    let client = client.at(&server);
    for (event, id) in [(event, json!(77)), (named_event, json!("a\"b"))] {
        let rest = client.stream(Some(&event)).unwrap().rest();
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!(rest[0]["id"], id);
        let text = rest[0]["error"]["message"].as_str().unwrap();
        assert!(text.contains("restarted") && text.contains("not known"), "{text}");
    }
}

#[test]
fn an_event_that_aged_out_replays_nothing() {
    let server = Setup::new().set("runtime.mcp.sse.window_events_max", 2).start();
    let client = Client::open(&server);
    let mut stream = client.standing();
    let first = stream.primed();
    for _ in 0..5 {
        server.notify();
        stream.message_event();
    }
    let mut again = client.stream(Some(&first)).unwrap();
    client.post(&rpc(5, "ping", json!({}))).expect(200);
    server.notify();
    assert!(again.message().is_some());
    client.delete().expect(204);
    assert_eq!(again.rest().len(), 0, "more than the one new message");
}
