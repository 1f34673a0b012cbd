//! Notifications of changed lists: who gets them, how often, how soon.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{
    Client, Events, NEWEST, Ringway, Service, Setup, call, eventually, initialize, pause,
};

const CHANGED: &str = "notifications/tools/list_changed";
const HOLD: (&str, &str, &str, &str) = ("hold", "GET", "/hold", "");
/// Changes within this time are one.
const AT_ONCE: Duration = Duration::from_millis(700);
/// A second, in which clients hear of a change, and in which changes gather.
const SECOND: Duration = Duration::from_secs(1);

/// Has `demo/desk` use the appliance's tools, or not.
fn assign(server: &Ringway, enabled: bool) {
    server.apply(&format!(
        "[[assignment]]\ntenant = \"demo\"\nclient_application = \"desk\"\n\
         toolset = \"appliance\"\nenabled = {enabled}\n"
    ));
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

/// Streams of POSTs that wait for their answers, each the only stream of its session.
fn waiting_of(server: &Ringway, of: &str, count: usize) -> Vec<Events> {
    let client = Client::new(server, of);
    let open = |_| {
        let mut stream = client.in_session(NEWEST).post_stream(&call(1, "hold", json!({})));
        stream.primed();
        stream
    };
    (0..count).map(open).collect()
}

/// The methods of all that still comes, until the server stops.
fn rest(streams: &mut [Events]) -> Vec<Vec<Value>> {
    streams
        .iter_mut()
        .map(|stream| stream.rest().into_iter().map(|message| message["method"].clone()).collect())
        .collect()
}

/// `other/assistant` gets a tool `hold` too, and so does `demo/desk`.
fn holding(base: &str) -> String {
    let hold = "name = \"hold\"\ndescription = \"Waits.\"\nmethod = \"GET\"\npath = \"/hold\"\n";
    format!(
        "[[assignment]]\ntenant = \"demo\"\nclient_application = \"desk\"\ntoolset = \"api\"\n\
         [[connection]]\ntenant = \"other\"\nid = \"api\"\nbase_url = \"{base}\"\n\
         [[toolset]]\ntenant = \"other\"\nid = \"api\"\nkind = \"rest\"\nconnection = \"api\"\n\
         [[assignment]]\ntenant = \"other\"\nclient_application = \"assistant\"\n\
         toolset = \"api\"\n[[tool]]\ntenant = \"other\"\ntoolset = \"api\"\n{hold}"
    )
}

#[test]
fn of_200_streams_exactly_those_of_the_changed_view_are_told_once_and_soon() {
    let service = Service::holding();
    let server = Setup::new()
        .set("runtime.cores", 4)
        .api(&service.base(), &[HOLD])
        .catalog(&holding(&service.base()))
        .start();
    let mut desk = streams_of(&server, "demo/desk", 24);
    let mut neighbours = streams_of(&server, "demo/assistant", 14);
    let mut strangers = streams_of(&server, "other/assistant", 14);
    let mut desk_waiting = waiting_of(&server, "demo/desk", 24);
    let mut others_waiting = waiting_of(&server, "demo/assistant", 10);
    others_waiting.extend(waiting_of(&server, "other/assistant", 10));
    let count = desk.len() + neighbours.len() + strangers.len();
    assert_eq!(count + desk_waiting.len() + others_waiting.len(), 200);
    assign(&server, true);
    let begin = Instant::now();
    for stream in desk.iter_mut().chain(&mut desk_waiting) {
        let message = stream.message().unwrap();
        assert_eq!(message, json!({ "jsonrpc": "2.0", "method": CHANGED }));
    }
    assert!(begin.elapsed() < SECOND, "{:?}", begin.elapsed());
    pause(SECOND);
    // What waited gets its answer and nothing else.
    service.release();
    for stream in desk_waiting.iter_mut().chain(&mut others_waiting) {
        let messages = stream.rest();
        let [answer] = messages.as_slice() else { panic!("{messages:?}") };
        assert!(answer["result"].is_object(), "{answer}");
    }
    let mut server = server;
    server.stop();
    for told in [rest(&mut desk), rest(&mut neighbours), rest(&mut strangers)] {
        assert!(told.iter().all(Vec::is_empty), "{told:?}");
    }
}

/// Takes the newest change back.
fn roll_back(server: &Ringway) {
    let status = server.admin("GET", "/status", None).expect(200).json();
    let before = status["catalog_version"].as_u64().unwrap() - 1;
    server.command(&["rollback", &before.to_string()]).succeeded();
}

/// What a change is called, how it is made, and the notifications it leads to.
type Change<'a> = (&'a str, &'a dyn Fn(&Ringway), &'a [&'a str]);

/// The lines of what can change: the toolset, the assignment of `demo/desk`, itself.
const TOOLSET: &str =
    "[[toolset]]\ntenant = \"demo\"\nid = \"api\"\nkind = \"rest\"\nconnection = \"api\"\n";
const ASSIGNMENT: &str =
    "[[assignment]]\ntenant = \"demo\"\nclient_application = \"desk\"\ntoolset = \"api\"\n";
const CLIENT: &str = "[[client_application]]\ntenant = \"demo\"\nid = \"desk\"\n";

#[test]
fn each_kind_of_change_tells_of_the_lists_it_changes_and_of_no_other() {
    const TOOLS: &[&str] = &[CHANGED];
    const PROMPTS: &[&str] =
        &["notifications/prompts/list_changed", "notifications/resources/list_changed"];
    let all: &[&str] = &[TOOLS[0], PROMPTS[0], PROMPTS[1]];
    let service = Service::echo();
    let look = ("look", "GET", "/look", "");
    let drop = ("drop", "DELETE", "/drop", "");
    let mut server = Setup::new()
        .set("runtime.cores", 4)
        .api(&service.base(), &[look, drop])
        .catalog(ASSIGNMENT)
        .start();
    let mut desk = streams_of(&server, "demo/desk", 2);
    // Neighbours who have the toolset and see nothing of it, and another tenant.
    let nothing = "policy = { rules = [{ effect = \"deny\" }] }\n";
    server.apply(&(ASSIGNMENT.replace("desk", "assistant") + nothing));
    pause(SECOND);
    let mut others = streams_of(&server, "demo/assistant", 2);
    others.extend(streams_of(&server, "other/assistant", 2));
    let publish = |server: &Ringway, tool: &str, what: &str| {
        let target = format!("/catalog/tools/demo/api/{tool}/{what}");
        server.admin("POST", &target, None).expect(200);
    };
    let apply = |server: &Ringway, of: &str, more: &str| server.apply(&format!("{of}{more}\n"));
    let denied = "policy = { rules = [{ effect = \"deny\", tools = [\"drop\"] }] }";
    let prompt = "system_prompt = \"Look first.\"";
    let changes: &[Change<'_>] = &[
        ("a policy that hides", &|server| apply(server, ASSIGNMENT, denied), TOOLS),
        ("a policy that does not", &|server| apply(server, ASSIGNMENT, ""), TOOLS),
        ("unpublished", &|server| publish(server, "look", "unpublish"), TOOLS),
        ("published", &|server| publish(server, "look", "publish"), TOOLS),
        ("a toolset's prompt", &|server| apply(server, TOOLSET, prompt), PROMPTS),
        (
            "a prompt of the same length",
            &|server| apply(server, TOOLSET, &prompt.replace("Look", "Read")),
            PROMPTS,
        ),
        (
            "an assignment's prompt",
            &|server| apply(server, ASSIGNMENT, "prompt = \"Own.\""),
            PROMPTS,
        ),
        (
            "a mode",
            &|server| apply(server, ASSIGNMENT, "discovery_mode = \"lazy\"\nprompt = \"Own.\""),
            TOOLS,
        ),
        ("an assignment that ends", &|server| apply(server, ASSIGNMENT, "enabled = false"), all),
        ("one that begins", &|server| apply(server, ASSIGNMENT, ""), all),
        ("a dialect", &|server| apply(server, CLIENT, "schema_dialect = \"openai_strict\""), TOOLS),
        ("a change that is rolled back", &roll_back, TOOLS),
        ("and that again", &roll_back, TOOLS),
    ];
    for (what, change, expected) in changes {
        change(&server);
        for stream in &mut desk {
            let told: Vec<Value> =
                expected.iter().map(|_| stream.message().unwrap()["method"].clone()).collect();
            assert_eq!(told, *expected, "{what}");
        }
    }
    // What changes no list is told to nobody: when a tool may be called, how much, by whom.
    apply(
        &server,
        ASSIGNMENT,
        "policy = { rules = [{ effect = \"allow\", required_trust = \"high\" }] }",
    );
    apply(
        &server,
        CLIENT,
        "schema_dialect = \"openai_strict\"\ntitle = \"Desk\"\nlimits = { requests = { count = 900 } }",
    );
    pause(SECOND + SECOND / 2);
    server.stop();
    let mut streams = desk;
    streams.extend(others);
    let told = rest(&mut streams);
    assert!(told.iter().all(Vec::is_empty), "{told:?}");
}

#[test]
fn several_changes_are_one_notification_and_a_change_back_is_none() {
    let service = Service::echo();
    let look = ("look", "GET", "/look", "");
    let mut server = Setup::new().api(&service.base(), &[look, HOLD]).catalog(ASSIGNMENT).start();
    let mut desk = streams_of(&server, "demo/desk", 4);
    // Over the admin API, where a change takes a moment: they gather for most of a second.
    let publish = |tool: &str, what: &str| {
        let target = format!("/catalog/tools/demo/api/{tool}/{what}");
        server.admin("POST", &target, None).expect(200);
    };
    let begin = Instant::now();
    publish("look", "unpublish");
    publish("look", "publish");
    assert!(begin.elapsed() < AT_ONCE, "too slow to be two changes at once");
    pause(SECOND + SECOND / 2);
    let begin = Instant::now();
    publish("look", "unpublish");
    publish("hold", "unpublish");
    publish("look", "publish");
    assert!(begin.elapsed() < AT_ONCE, "too slow to be three changes at once");
    for stream in &mut desk {
        assert_eq!(stream.message().unwrap()["method"], CHANGED);
    }
    // The next one is told again.
    publish("hold", "publish");
    for stream in &mut desk {
        assert_eq!(stream.message().unwrap()["method"], CHANGED);
    }
    pause(SECOND + SECOND / 2);
    server.stop();
    let told = rest(&mut desk);
    assert!(told.iter().all(Vec::is_empty), "{told:?}");
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

#[test]
fn nothing_is_kept_for_a_call_whose_client_is_known_to_be_away() {
    let service = Service::holding();
    let server = Setup::new()
        .set("runtime.cores", 4)
        .set("runtime.mcp.sse.keep_alive_seconds", 1)
        .api(&service.base(), &[HOLD])
        .catalog(ASSIGNMENT)
        .start();
    let client = Client::new(&server, "demo/desk").in_session(NEWEST);
    let mut stream = client.post_stream(&call(1, "hold", json!({})));
    let event = stream.primed();
    service.asked();
    drop(stream);
    // One that only closed its own direction would still hear; this one does not take the next
    // comment.
    eventually("the client is known to be away", || server.metric("ringway_streams_open") < 1.0);
    assign(&server, true);
    pause(SECOND + SECOND / 2);
    service.release();
    let messages = client.stream(Some(&event)).ok().unwrap().rest();
    let [answer] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(answer["id"], 1);
}
