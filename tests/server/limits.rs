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
