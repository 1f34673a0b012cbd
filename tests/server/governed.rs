//! Policies as clients meet them: what is shown, what is refused, in which words.

use serde_json::json;

use crate::harness::{Answer, Client, NEWEST, Request, Ringway, Service, Setup, call, rpc};

const LOOK: (&str, &str, &str, &str) = ("look", "GET", "/look", "");
const DROP: (&str, &str, &str, &str) = ("drop", "DELETE", "/drop", "");
const FIND: (&str, &str, &str, &str) = (
    "find",
    "GET",
    "/find",
    r#"fields = [{ source_field_name = "q", location = "query", required = true }]"#,
);

/// A server with an open client application `demo/governed`, under these lines of it and of its
/// assignment.
fn server(service: &Service, client: &str, assignment: &str) -> Ringway {
    let text = format!(
        "[[client_application]]\ntenant = \"demo\"\nid = \"governed\"\nopen = true\n{client}\n\
         [[assignment]]\ntenant = \"demo\"\nclient_application = \"governed\"\n\
         toolset = \"api\"\n{assignment}\n"
    );
    Setup::new().api(&service.base(), &[LOOK, DROP, FIND]).catalog(&text).start()
}

fn client(server: &Ringway) -> Client {
    Client::keyless(server, "demo/governed")
}

fn facade(client: &Client, tool: &str) -> Answer {
    let target = format!("/runtime/demo/governed/tools/{tool}");
    client.send(&Request::new("POST", &target).json(&json!({})))
}

#[test]
fn a_denied_tool_is_not_there() {
    let service = Service::echo();
    let policy = "policy = { rules = [{ effect = \"deny\", side_effects = [\"destructive\"] }] }";
    let server = server(&service, policy, "");
    let client = client(&server);
    let list = client.reply(&rpc(1, "tools/list", json!({})));
    assert!(!list.to_string().contains("\"drop\""), "{list}");
    let error = &client.reply(&call(1, "drop", json!({})))["error"];
    assert_eq!(error["code"], -32602);
    assert_eq!(facade(&client, "drop").expect(404).json()["status"], "unknown_tool");
    assert!(service.is_quiet());
    client.called("look", json!({}));
}

#[test]
fn a_caller_without_trust_is_told_what_it_takes() {
    let service = Service::echo();
    let policy = "policy = { rules = [{ effect = \"allow\", tools = [\"look\"], \
                  required_trust = \"high\" }] }";
    let server = server(&service, "", policy);
    let client = client(&server);
    let result = client.called("look", json!({}));
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`high`"), "{text}");
    assert_eq!(facade(&client, "look").expect(403).json()["status"], "trust_too_low");
    assert!(service.is_quiet());
}

#[test]
fn a_policy_that_observes_refuses_nothing() {
    let service = Service::echo();
    let policy = "policy = { mode = \"observe\", rules = [{ effect = \"deny\" }] }";
    let server = server(&service, policy, "");
    assert_eq!(client(&server).called("look", json!({}))["isError"], false);
}

#[test]
fn a_schema_that_is_not_shown_is_asked_for_first() {
    let service = Service::echo();
    let server = server(&service, "", "discovery_mode = \"lazy\"");
    let client = client(&server).in_session(NEWEST);
    let told = client.called("find", json!({ "_schema_discovery": "" }));
    assert_eq!(told["isError"], true);
    assert!(told["content"][0]["text"].as_str().unwrap().contains("discover_tool_schema"));
    assert!(service.is_quiet());
    let told = client.called("find", json!({ "_schema_discovery": "x", "q": "7" }));
    assert_eq!(told["isError"], false);
    assert_eq!(service.asked().target, "/find?q=7");
}
