//! What goes out, and where to.

use std::sync::mpsc::channel;

use super::api::{Api, answer, json_answer};
use super::support::{
    ENVIRONMENT, call, caller, caller_with, declared, failure, json, on_a_core, posting, request,
    tool, tool_at,
};
use crate::catalog::ToolKind;
use crate::downstream::CallEnvironment;
use crate::downstream::error::{Blame, CallError, Unreachable};

#[test]
fn the_request_holds_what_connection_and_mapping_say_and_no_more() {
    let (seen, requests) = channel();
    let api = Api::start(move |_, talk| {
        while let Some(request) = talk.request() {
            seen.send(request).unwrap();
            talk.say(json_answer("200 OK", "{}"));
        }
    });
    let tool = tool(
        &api,
        "headers = { Authorization = \"Bearer s3cr3t\" }\n\
         correlation = { strategy = \"external_id\" }",
    );
    let mut asked = posting(b"{\"n\":1.50}");
    asked.headers.push(("X-Trace".to_owned(), "7".to_owned()));
    // No argument stands in for the id.
    asked.headers.push(("x-correlation-id".to_owned(), "forged".to_owned()));
    let environment = CallEnvironment { external_id: Some("c-1"), ..ENVIRONMENT };
    let outcome = on_a_core(async { caller().run(&tool, &asked, &environment).await.result });
    assert_eq!(outcome, json("{}"));
    let request = requests.recv().unwrap().to_ascii_lowercase();
    let mut lines: Vec<&str> = request.split("\r\n").collect();
    assert_eq!(lines[0], "post /v1/orders http/1.1");
    assert_eq!(lines.pop(), Some("{\"n\":1.50}"));
    let mut headers = lines[1..lines.len() - 1].to_vec();
    headers.sort_unstable();
    let user_agent = format!("user-agent: ringway/{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        headers,
        [
            "accept-encoding: gzip, br, zstd, deflate",
            "accept: application/json, */*;q=0.5",
            "authorization: bearer s3cr3t",
            "content-length: 10",
            "content-type: application/json",
            &format!("host: {}", api.address),
            &user_agent,
            "x-correlation-id: c-1",
            "x-trace: 7",
        ]
    );
}

#[test]
fn arguments_go_where_the_rules_say_and_answers_come_back_in_their_words() {
    let (seen, requests) = channel();
    let api = Api::start(move |_, talk| {
        while let Some(request) = talk.request() {
            seen.send(request).unwrap();
            talk.say(json_answer("200 OK", "{\"order_no\":1.50}"));
        }
    });
    let tool = declared(
        &format!("http://{}/v1", api.address),
        "",
        r#"
        method = "PUT"
        path = "/orders/{id}"
        fields = [
            { source_field_name = "id", location = "path", required = true },
            { source_field_name = "dry", location = "query", type = "boolean" },
            { source_field_name = "X-Trace", exposed_field_name = "trace", location = "header" },
            { source_field_name = "sum", exposed_field_name = "amount", type = "number" },
        ]
        response_fields = [
            { source_field_name = "order_no", exposed_field_name = "number", type = "number" },
        ]
        "#,
    );
    let ToolKind::Rest { request, .. } = &tool.kind else { panic!() };
    let text = br#"{"id":"a/b c","dry":true,"trace":"7","amount":1e6}"#;
    let checked = crate::json::guard(text).unwrap();
    let arguments = request.validate(Some(checked.root())).unwrap();
    let outcome = call(&tool, &request.build(&arguments));
    assert_eq!(outcome, json("{\"number\":1.50}"));
    let request = requests.recv().unwrap();
    assert!(request.starts_with("PUT /v1/orders/a%2Fb%20c?dry=true HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nX-Trace: 7\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"sum\":1e6}"), "{request}");
}

#[test]
fn a_header_that_would_break_its_line_is_not_sent() {
    let api = Api::answering(json_answer("200 OK", "{}"));
    let mut asked = request("GET", "/x");
    asked.headers.push(("X-A".to_owned(), "1\r\nX-B: 2".to_owned()));
    let error = call(&tool(&api, ""), &asked).unwrap_err();
    assert!(matches!(error, CallError::Unsendable { .. }), "{error}");
    assert_eq!(error.blame(), Blame::Client);
}

fn redirecting() -> Api {
    Api::start(|_, talk| {
        while let Some(request) = talk.request() {
            let target = request.split(' ').nth(1).unwrap().to_owned();
            let location = match &*target {
                "/v1/one" => "two?a=b",
                "/v1/two?a=b" => "/v1/three",
                "/v1/loop" => "/v1/loop",
                "/v1/away" => "https://login.example.com/?state=s3cr3t",
                _ => {
                    talk.say(json_answer("200 OK", &format!("\"{target}\"")));
                    continue;
                }
            };
            talk.say(answer("302 Found", &format!("Location: {location}\r\n"), b"moved"));
        }
    })
}

#[test]
fn redirects_are_failures_that_name_no_host() {
    let api = redirecting();
    let told = failure(call(&tool(&api, ""), &request("GET", "/away")));
    assert!(told.contains("redirects to another host,"), "{told}");
    assert!(!told.contains("state") && !told.contains("example"), "{told}");
    let told = failure(call(&tool(&api, ""), &request("GET", "/one")));
    assert!(told.contains("within the same host"), "{told}");
}

#[test]
fn a_connection_may_follow_redirects_of_its_own_origin() {
    let api = redirecting();
    let tool = tool(&api, "follow_redirects = true");
    assert_eq!(call(&tool, &request("GET", "/one")), json("\"/v1/three\""));
    assert_eq!(api.connections(), 1, "over one connection");
    assert!(failure(call(&tool, &request("GET", "/loop"))).starts_with("HTTP 302"));
    assert!(failure(call(&tool, &request("GET", "/away"))).contains("to another host"));
    assert!(failure(call(&tool, &request("POST", "/one"))).starts_with("HTTP 302"));
}

#[test]
fn blocked_networks_are_not_reached_under_any_name() {
    let api = Api::answering(json_answer("200 OK", "{}"));
    let port = api.address.port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let tool = tool_at(&format!("http://{host}:{port}"), "");
        let error = on_a_core(async {
            let caller = caller_with(|settings| {
                settings.blocked_networks =
                    vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()];
            });
            caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await.result.unwrap_err()
        });
        let problem = Unreachable::Blocked;
        assert!(matches!(&error, CallError::Unreachable { problem: p, .. } if *p == problem));
        assert_eq!((error.blame(), error.may_retry()), (Blame::Us, false), "{host}");
    }
    assert_eq!(api.connections(), 0);
}

#[test]
fn a_closed_door_says_what_to_check() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed = tool_at(&format!("http://127.0.0.1:{port}"), "");
    let nowhere = tool_at("http://no-such-host.invalid", "");
    let sealed = tool_at("https://127.0.0.1:1", "");
    for (tool, problem) in [
        (closed, Unreachable::Unconnected),
        (nowhere, Unreachable::Unresolved),
        (sealed, Unreachable::NoTls),
    ] {
        let error = call(&tool, &request("GET", "/")).unwrap_err();
        assert!(
            matches!(&error, CallError::Unreachable { problem: p, .. } if *p == problem),
            "{error}: {}",
            error.detail()
        );
        assert!(!error.to_string().contains("127.0.0.1"), "{error}");
    }
}
