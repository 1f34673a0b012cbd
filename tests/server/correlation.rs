//! The ids that tie a request to what it caused.

use serde_json::json;

use crate::harness::{Answer, Client, Request, Service, Setup, call, initialize, ping};

const TOOL: (&str, &str, &str, &str) = ("look", "GET", "/look", "");
const NAME: &str = "X-External-Correlation-Id";

fn with_id(request: Request) -> Request {
    request.header("X-Correlation-Id", "order-7:a.b_c")
}

#[test]
fn an_accepted_id_is_echoed_on_every_answer() {
    let service = Service::echo();
    let server = Setup::new().api(&service.base(), &[TOOL]).start();
    let client = Client::new(&server, "demo/assistant");
    let session = client.in_session("2025-11-25");
    let facade = |method: &str, path: &str| {
        let request = Request::new(method, &format!("/runtime/demo/public/{path}"));
        if method == "POST" { request.json(&json!({})) } else { request }
    };
    let requests = [
        client.message(&ping()),
        client.message(&initialize("2025-11-25")),
        client.message(&call(1, "look", json!({}))),
        client.message(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
        client.message(&json!(7)),
        client.request("PUT"),
        client.get(None),
        Request::new("POST", &client.path),
        Request::new("GET", "/healthz"),
        Request::new("GET", "/readyz"),
        Request::new("GET", "/"),
        Request::new("GET", "/nowhere"),
        facade("GET", "tools"),
        facade("GET", "openapi.json"),
        facade("POST", "tools/look"),
        facade("POST", "tools/nothing"),
        session.request("DELETE"),
    ];
    for request in requests {
        let mut wire = client.connect();
        wire.send(&with_id(request));
        let answer: Answer = wire.head();
        assert_eq!(answer.header(NAME), Some("order-7:a.b_c"), "{answer:?}");
    }
}

#[test]
fn what_is_no_id_is_ignored() {
    let server = Setup::new().start();
    let client = Client::keyless(&server, "demo/public");
    let long = "x".repeat(129);
    for id in ["", "a b", "a/b", "é", &long] {
        let answer = client.send(&client.message(&ping()).header("X-Correlation-Id", id));
        assert_eq!(answer.expect(200).header(NAME), None, "{id}");
    }
    let longest = &long[1..];
    let answer = client.send(&client.message(&ping()).header("X-Correlation-Id", longest));
    assert_eq!(answer.header(NAME), Some(longest));
    // Two of them name nothing.
    let twice = with_id(with_id(client.message(&ping())));
    assert_eq!(client.send(&twice).header(NAME), None);
}

/// What the API is told of a call with these headers, behind a connection with this line.
fn told(line: &str, headers: &[(&str, &str)]) -> (serde_json::Value, crate::harness::Asked) {
    let service = Service::echo();
    let connection = format!("base_url = \"{}\"\n{line}", service.base());
    let server = Setup::new().api_with(&connection, &[TOOL]).start();
    let mut request = Request::new("POST", "/runtime/demo/public/tools/look").json(&json!({}));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let answer = Client::keyless(&server, "demo/public").send(&request).expect(200).json();
    (answer["executionId"].clone(), service.asked())
}

#[test]
fn the_connection_says_which_id_goes_on_and_under_which_name() {
    let id = [("X-Correlation-Id", "order-7")];
    let (_, asked) = told("", &id);
    assert!(asked.header("X-Correlation-Id").is_none() && asked.header("traceparent").is_none());
    let (_, asked) = told("correlation = { strategy = \"external_id\" }", &id);
    assert_eq!(asked.header("X-Correlation-Id"), Some("order-7"));
    let (_, asked) = told("correlation = { strategy = \"external_id\" }", &[]);
    assert_eq!(asked.header("X-Correlation-Id"), None);
    let line = "correlation = { strategy = \"execution_id\", header = \"X-Call\" }";
    let (execution, asked) = told(line, &id);
    assert_eq!(asked.header("X-Call"), execution.as_str());
    assert_ne!(asked.header("X-Call"), Some("order-7"));
    assert_eq!(asked.header("X-Correlation-Id"), None);
}

#[test]
fn a_trace_is_continued_or_begun() {
    let line = "correlation = { traceparent = true }";
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let (_, asked) = told(line, &[("traceparent", parent)]);
    let sent = asked.header("traceparent").unwrap();
    assert_eq!(sent[..36], parent[..36]);
    assert_ne!(sent[36..52], parent[36..52]);
    let (execution, asked) = told(line, &[("traceparent", "00-0-0-0")]);
    let own = execution.as_str().unwrap().replace('-', "");
    assert_eq!(&asked.header("traceparent").unwrap()[3..35], own);
}
