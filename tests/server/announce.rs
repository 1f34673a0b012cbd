//! Notifications of changed lists: who gets them, how often, how soon.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Client, Events, NEWEST, Ringway, Service, Setup, call, initialize, pause};

const CHANGED: &str = "notifications/tools/list_changed";
const HOLD: (&str, &str, &str, &str) = ("hold", "GET", "/hold", "");
/// A second, in which clients hear of a change, and in which changes gather.
const SECOND: Duration = Duration::from_secs(1);

/// Has `demo/desk` use the appliance's tools, or not.
fn assign(server: &Ringway, enabled: bool) {
    let text = format!(
        "[[assignment]]\ntenant = \"demo\"\nclient_application = \"desk\"\n\
         toolset = \"appliance\"\nenabled = {enabled}\n"
    );
    let file = server.write("assignment.toml", &text);
    server.command(&["apply", &file]).succeeded();
}

/// The standing streams of a client application: of a session, outside sessions, HTTP+SSE.
fn streams_of(server: &Ringway, of: &str, each: usize) -> Vec<Events> {
    let client = Client::new(server, of);
    let legacy = Client { path: client.path.replace("/mcp", "/sse"), ..client.clone() };
    let mut streams = Vec::new();
    for _ in 0..each {
        let mut standing = client.in_session(NEWEST).standing();
        standing.primed();
        streams.push(standing);
        let mut sessionless = client.standing();
        sessionless.next();
        streams.push(sessionless);
        let mut events = legacy.stream(None).unwrap();
        assert_eq!(events.next().unwrap().kind.as_deref(), Some("endpoint"));
        streams.push(events);
    }
    streams
}

/// The methods of all that still comes, until the server stops.
fn rest(streams: &mut [Events]) -> Vec<Vec<Value>> {
    streams
        .iter_mut()
        .map(|stream| stream.rest().into_iter().map(|message| message["method"].clone()).collect())
        .collect()
}

#[test]
fn exactly_the_streams_of_changed_views_are_told_once_and_soon() {
    let mut server = Setup::new().set("runtime.cores", 4).start();
    let mut desk = streams_of(&server, "demo/desk", 24);
    let mut neighbours = streams_of(&server, "demo/assistant", 12);
    let mut strangers = streams_of(&server, "other/assistant", 12);
    assign(&server, true);
    let begin = Instant::now();
    for stream in &mut desk {
        let message = stream.message().unwrap();
        assert_eq!(message, json!({ "jsonrpc": "2.0", "method": CHANGED }));
    }
    assert!(begin.elapsed() < SECOND, "{:?}", begin.elapsed());
    pause(SECOND);
    server.stop();
    for told in [rest(&mut desk), rest(&mut neighbours), rest(&mut strangers)] {
        assert!(told.iter().all(Vec::is_empty), "{told:?}");
    }
}

#[test]
fn several_changes_are_one_notification_and_a_change_back_is_none() {
    let mut server = Setup::new().start();
    let mut desk = streams_of(&server, "demo/desk", 4);
    let begin = Instant::now();
    assign(&server, true);
    assign(&server, false);
    if begin.elapsed() > SECOND / 2 {
        return; // This machine is too slow to make two changes within what gathers.
    }
    pause(SECOND + SECOND / 2);
    for enabled in [true, false, true] {
        assign(&server, enabled);
    }
    pause(SECOND + SECOND / 2);
    server.stop();
    let told = rest(&mut desk);
    assert!(told.iter().all(|told| *told == [CHANGED]), "{told:?}");
}

#[test]
fn a_session_is_told_on_one_of_its_streams() {
    let service = Service::holding();
    let desk =
        "[[assignment]]\ntenant = \"demo\"\nclient_application = \"desk\"\ntoolset = \"api\"\n";
    let server =
        Setup::new().set("runtime.cores", 4).api(&service.base(), &[HOLD]).catalog(desk).start();
    let client = Client::new(&server, "demo/desk");
    let (with, without) = (client.in_session(NEWEST), client.in_session(NEWEST));
    let mut standing = with.standing();
    standing.primed();
    let post = |client: &Client, id: u64| {
        let mut stream = client.post_stream(&call(id, "hold", json!({})));
        stream.primed();
        stream
    };
    let mut beside = [post(&with, 1), post(&with, 2)];
    let mut alone = [post(&without, 1), post(&without, 2), post(&without, 3)];
    assign(&server, true);
    assert_eq!(standing.message().unwrap()["method"], CHANGED);
    pause(SECOND);
    service.release();
    let answers_of = |streams: &mut [Events]| -> (usize, usize) {
        let messages: Vec<Value> = streams.iter_mut().flat_map(Events::rest).collect();
        let told = messages.iter().filter(|message| message["method"] == CHANGED).count();
        (told, messages.len() - told)
    };
    assert_eq!(answers_of(&mut beside), (0, 2));
    assert_eq!(answers_of(&mut alone), (1, 3));
    with.delete().expect(204);
    assert_eq!(standing.rest().len(), 0);
}

#[test]
fn nothing_is_kept_for_who_comes_later() {
    let mut server = Setup::new().start();
    let client = Client::new(&server, "demo/desk").in_session(NEWEST);
    assign(&server, true);
    pause(SECOND + SECOND / 2);
    let mut late = client.standing();
    late.primed();
    server.stop();
    assert_eq!(late.rest().len(), 0);
}

#[test]
fn what_is_told_is_promised() {
    for (enabled, expected) in [(true, json!({ "listChanged": true })), (false, json!({}))] {
        let server = Setup::new().set("runtime.mcp.sse.enabled", enabled).start();
        let client = Client::new(&server, "demo/desk");
        let result = client.post(&initialize(NEWEST)).expect(200).result();
        for list in ["tools", "prompts", "resources"] {
            assert_eq!(result["capabilities"][list], expected, "{list}");
        }
    }
}
