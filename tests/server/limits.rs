//! Limits as clients meet them: what is refused, how they are told, what goes on.

use serde_json::{Value, json};

use crate::harness::{
    Answer, Client, NEWEST, Request, Ringway, Service, Setup, call, eventually, ping, rpc,
};

const LOOK: (&str, &str, &str, &str) = ("look", "GET", "/look", "");
const ONCE: (&str, &str, &str, &str) =
    ("once", "GET", "/once", "limit = { count = 1, seconds = 3600 }");

/// A server with an open client application `demo/limited` that has these limits.
fn server(service: &Service, limits: &str) -> Ringway {
    let text = format!(
        "[[client_application]]\ntenant = \"demo\"\nid = \"limited\"\nopen = true\n{limits}\n\
         [[assignment]]\ntenant = \"demo\"\nclient_application = \"limited\"\ntoolset = \"api\"\n"
    );
    Setup::new().set("runtime.cores", 4).api(&service.base(), &[LOOK, ONCE]).catalog(&text).start()
}

fn client(server: &Ringway) -> Client {
    Client::keyless(server, "demo/limited")
}

fn facade(client: &Client, tool: &str) -> Answer {
    let target = format!("/runtime/demo/limited/tools/{tool}");
    client.send(&Request::new("POST", &target).json(&json!({})))
}

fn list() -> Value {
    rpc(1, "tools/list", json!({}))
}

#[track_caller]
fn refused(answer: Answer, reason: &str) {
    let answer = answer.expect(429);
    let seconds: u64 = answer.header("Retry-After").unwrap().parse().unwrap();
    assert!((1..=3600).contains(&seconds), "{seconds}");
    let error = &answer.json()["error"];
    assert_eq!(error["data"]["reason"], reason, "{error}");
    assert_eq!(error["data"]["retryAfterSeconds"], seconds);
}

#[test]
fn one_request_too_many_has_a_status_and_what_is_light_goes_on() {
    let service = Service::echo();
    let server = server(&service, "limits = { requests = { count = 3, seconds = 3600 } }");
    let client = client(&server);
    // Every connection falls to some core: the limit is one for all.
    for _ in 0..3 {
        client.post(&list()).expect(200);
    }
    refused(client.post(&list()), "rate_limited");
    refused(client.post(&call(1, "look", json!({}))), "rate_limited");
    let told = facade(&client, "look").expect(429);
    assert!(told.header("Retry-After").is_some());
    assert_eq!(told.json()["status"], "rate_limited");
    client.post(&ping()).expect(200);
    client.in_session(NEWEST);
    assert!(service.is_quiet());
    // Others are not concerned.
    Client::keyless(&server, "demo/public").post(&list()).expect(200);
}

#[test]
fn entries_of_a_batch_count_one_by_one() {
    let service = Service::echo();
    let server = server(&service, "caller_limits = { requests = { count = 3, seconds = 3600 } }");
    let client = client(&server).in_session("2025-03-26");
    let mut batch: Vec<Value> = (1..=5).map(|id| rpc(id, "tools/list", json!({}))).collect();
    batch.push(rpc(6, "ping", json!({})));
    let replies = client.post(&Value::Array(batch)).expect(200).json();
    let is_error: Vec<bool> =
        replies.as_array().unwrap().iter().map(|reply| reply.get("error").is_some()).collect();
    assert_eq!(is_error, [false, false, false, true, true, false]);
    assert_eq!(replies[3]["error"]["data"]["reason"], "rate_limited");
    assert_eq!(replies[3]["id"], 4);
}

#[test]
fn calls_have_a_quota_and_a_tool_its_own_which_the_model_reads() {
    let service = Service::echo();
    let server = server(&service, "limits = { tool_calls = { count = 3, seconds = 3600 } }");
    let client = client(&server);
    assert_eq!(client.called("once", json!({}))["isError"], false);
    let told = client.called("once", json!({}));
    assert_eq!(told["isError"], true);
    let text = told["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("of this tool") && text.contains("Try again in"), "{text}");
    // What was refused used up nothing.
    client.called("look", json!({}));
    let told = facade(&client, "once").expect(429);
    assert_eq!(told.json()["status"], "quota_exceeded");
    assert!(told.header("Retry-After").is_some());
    client.called("look", json!({}));
    refused(client.post(&call(1, "look", json!({}))), "quota_exceeded");
    assert_eq!(service.asked().target, "/once");
}

#[test]
fn listening_streams_are_counted_while_they_are_open() {
    let service = Service::echo();
    let server = server(&service, "limits = { listening_streams = 2 }");
    let client = client(&server);
    let mut one = client.standing();
    one.next();
    let mut other = client.in_session(NEWEST).standing();
    other.primed();
    let third = client.in_session(NEWEST);
    refused(third.stream(None).err().unwrap(), "too_many_streams");
    drop(one);
    eventually("the place is free", || third.stream(None).is_ok());
}

#[test]
fn who_comes_back_to_its_stream_takes_its_own_place() {
    let service = Service::echo();
    let server = server(&service, "limits = { listening_streams = 1 }");
    let client = client(&server).in_session(NEWEST);
    let mut first = client.standing();
    let event = first.primed();
    for _ in 0..3 {
        let mut next = client.stream(Some(&event)).ok().unwrap();
        server.notify();
        assert!(next.message().is_some());
    }
}

/// Plain HTTP with a key, as `demo/limited`.
fn with_key(server: &Ringway) -> Client {
    Client::new(server, "demo/limited")
}

#[test]
fn callers_have_limits_of_their_own_beside_those_they_share() {
    let service = Service::echo();
    let limits = "caller_limits = { requests = { count = 2, seconds = 3600 } }\n\
                  limits = { requests = { count = 5, seconds = 3600 } }";
    let server = server(&service, limits);
    let [one, other, third] = [(); 3].map(|()| with_key(&server));
    for client in [&one, &other] {
        client.post(&list()).expect(200);
        // Plain HTTP and the protocol draw from the same.
        let request = Request::new("GET", "/runtime/demo/limited/tools");
        let key = format!("Bearer {}", client.key.as_deref().unwrap());
        client.send(&request.header("Authorization", &key)).expect(200);
        refused(client.post(&list()), "rate_limited");
    }
    // What was refused used up nothing: one is left of what all share.
    third.post(&list()).expect(200);
    refused(third.post(&list()), "rate_limited");
    let levels = server.command(&["explain", "--client", "demo/limited", "--tool", "look"]);
    let text = levels.succeeded().stdout;
    for part in ["requests of the caller: 2 in 3600 s", "requests of the client application: 5 in"]
    {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn a_tenants_limit_is_one_for_all_its_client_applications_and_no_other_tenants() {
    let service = Service::echo();
    let server = server(&service, "");
    server.apply(
        "[[tenant]]\nid = \"demo\"\nlimits = { requests = { count = 3, seconds = 3600 } }\n",
    );
    let (limited, public) = (client(&server), Client::keyless(&server, "demo/public"));
    limited.post(&list()).expect(200);
    public.post(&list()).expect(200);
    limited.post(&list()).expect(200);
    refused(limited.post(&list()), "rate_limited");
    refused(public.post(&list()), "rate_limited");
    Client::new(&server, "other/assistant").post(&list()).expect(200);
    // Taken away, there is none any more.
    server.apply("[[tenant]]\nid = \"demo\"\n");
    public.post(&list()).expect(200);
}

#[test]
fn calls_count_by_their_weight_and_those_that_change_something_in_a_class_of_their_own() {
    let service = Service::echo();
    let server = server(
        &service,
        "limits = { tool_calls = { count = 10, seconds = 3600 }, mutations = { count = 2, seconds = 3600 } }",
    );
    let tool = |name: &str, method: &str, more: &str| {
        format!(
            "[[tool]]\ntenant = \"demo\"\ntoolset = \"api\"\nname = \"{name}\"\n\
             description = \"A tool.\"\nmethod = \"{method}\"\npath = \"/{name}\"\n{more}\n"
        )
    };
    server.apply(&(tool("heavy", "GET", "weight = 4") + &tool("save", "POST", "")));
    let client = client(&server);
    client.called("save", json!({}));
    client.called("save", json!({}));
    refused(client.post(&call(1, "save", json!({}))), "quota_exceeded");
    // Reading goes on: 8 of 10 are left, which is two heavy ones and nothing.
    client.called("heavy", json!({}));
    client.called("heavy", json!({}));
    refused(client.post(&call(1, "look", json!({}))), "quota_exceeded");
}

#[test]
fn what_is_light_has_a_limit_of_its_own() {
    let service = Service::echo();
    let server = server(&service, "limits = { light = { count = 3, seconds = 3600 } }");
    let client = client(&server).in_session(NEWEST);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    client.post(&initialized).expect(202);
    client.post(&ping()).expect(200);
    refused(client.post(&ping()), "rate_limited");
    client.post(&initialized).expect(429);
    // What is not light is not concerned.
    for _ in 0..5 {
        client.post(&list()).expect(200);
    }
    client.called("look", json!({}));
}

#[test]
fn what_is_refused_is_on_record_with_its_reason_and_counted_once() {
    let service = Service::echo();
    let server = server(&service, "limits = { tool_calls = { count = 1, seconds = 3600 } }");
    let client = client(&server);
    client.called("look", json!({}));
    refused(client.post(&call(1, "look", json!({}))), "quota_exceeded");
    facade(&client, "look").expect(429);
    eventually("three calls are recorded", || server.records().len() == 3);
    let told: Vec<_> = server
        .records()
        .iter()
        .map(|record| {
            (record["call_type"].clone(), record["decision"].clone(), record["reason"].clone())
        })
        .collect();
    // Each core writes for itself: the order is not said.
    let count = |kind: &str, reason: &str| {
        told.iter().filter(|(call_type, _, code)| *call_type == kind && *code == reason).count()
    };
    assert_eq!(count("tool_execution", "allowed"), 1, "{told:?}");
    assert_eq!(count("tool_execution", "quota_exceeded"), 1, "{told:?}");
    assert_eq!(count("rest_invocation", "quota_exceeded"), 1, "{told:?}");
}

#[test]
fn the_streams_of_both_transports_count_together() {
    let service = Service::echo();
    let server = server(&service, "caller_limits = { listening_streams = 2 }");
    let one = with_key(&server);
    let legacy = Client { path: one.path.replace("/mcp", "/sse"), ..one.clone() };
    let mut first = one.standing();
    first.next();
    let mut second = legacy.stream(None).ok().unwrap();
    second.next();
    refused(legacy.stream(None).err().unwrap(), "too_many_streams");
    refused(one.stream(None).err().unwrap(), "too_many_streams");
    // Another caller has streams of its own.
    with_key(&server).standing().next();
    drop(second);
    eventually("the place is free", || legacy.stream(None).is_ok());
}

#[test]
fn a_limit_is_exact_however_many_ask_at_once_on_all_cores() {
    const ALLOWED: usize = 200;
    let service = Service::echo();
    let limits = format!("limits = {{ requests = {{ count = {ALLOWED}, seconds = 86400 }} }}");
    let server = server(&service, &limits);
    let client = client(&server);
    let asking: Vec<_> = (0..16)
        .map(|_| {
            let client = client.clone();
            std::thread::spawn(move || {
                let mut wire = client.connect();
                let request = client.message(&list());
                (0..25).filter(|_| wire.ask(&request).status == 200).count()
            })
        })
        .collect();
    let allowed: usize = asking.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(allowed, ALLOWED);
}

#[test]
fn an_operator_is_told_what_is_used_up() {
    let service = Service::echo();
    let server = server(&service, "caller_limits = { tool_calls = { count = 1, seconds = 3600 } }");
    let client = with_key(&server);
    let key = client.key.clone().unwrap();
    let id = key.split('_').nth(1).unwrap();
    let explained = || {
        let words = ["explain", "--client", "demo/limited", "--tool", "look", "--key", id];
        server.command(&words).succeeded().stdout
    };
    assert!(explained().contains("ALLOWED"), "{}", explained());
    client.called("look", json!({}));
    refused(client.post(&call(1, "look", json!({}))), "quota_exceeded");
    let told = explained();
    assert!(told.contains("LIMITED") && told.contains("0 left"), "{told}");
}

#[test]
fn the_old_transport_is_limited_like_the_new_one() {
    let service = Service::echo();
    let server = server(&service, "limits = { requests = { count = 2, seconds = 3600 } }");
    let client = client(&server);
    let legacy = Client { path: client.path.replace("/mcp", "/sse"), ..client.clone() };
    let mut stream = legacy.stream(None).ok().unwrap();
    let endpoint = stream.next().unwrap().data.unwrap();
    let posts = Client { path: format!("/runtime/demo/limited/{endpoint}"), ..client.clone() };
    posts.post(&crate::harness::initialize("2024-11-05")).expect(202);
    assert!(stream.message().unwrap()["result"].is_object());
    posts.post(&list()).expect(202);
    assert!(stream.message().unwrap()["result"].is_object());
    client.post(&list()).expect(200);
    refused(posts.post(&list()), "rate_limited");
    posts.post(&ping()).expect(202);
    assert!(stream.message().unwrap()["result"].is_object());
}
