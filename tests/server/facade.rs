//! The REST facade: the tools of a client application as plain HTTP resources.

use serde_json::{Value, json};

use crate::harness::{Answer, Client, Plan, Request, Ringway, Service, Setup, answer, json_answer};

const ITEM: (&str, &str, &str, &str) = (
    "item",
    "GET",
    "/items/{id}",
    r#"fields = [
    { source_field_name = "id", location = "path", type = "integer", required = true },
]"#,
);

/// A tool for each way an API can answer.
const WAYS: [(&str, &str, &str, &str); 6] = [
    ITEM,
    ("missing", "GET", "/missing", ""),
    ("broken", "GET", "/broken", ""),
    ("busy", "GET", "/busy", ""),
    ("paced", "GET", "/paced", ""),
    ("slow", "GET", "/silence", "total_timeout_ms = 200"),
];

fn api() -> Service {
    Service::start(|asked| match &*asked.target {
        "/missing" => Plan::Answer(answer("404 Not Found", &[], b"no such item")),
        "/broken" => Plan::Answer(answer("500 Internal Server Error", &[], b"")),
        "/busy" => Plan::Answer(answer("503 Service Unavailable", &[], b"")),
        "/paced" => Plan::Answer(answer("429 Too Many", &[("Retry-After", "7")], b"")),
        "/silence" => Plan::Silence,
        target => Plan::Answer(json_answer(&json!({ "target": target, "n": 1.5 }).to_string())),
    })
}

fn server(service: &Service) -> Ringway {
    Setup::new().api(&service.base(), &WAYS).start()
}

fn public(server: &Ringway) -> Client {
    Client::keyless(server, "demo/public")
}

fn request(method: &str, path: &str) -> Request {
    Request::new(method, &format!("/runtime/demo/public/{path}"))
}

fn call(client: &Client, tool: &str, arguments: &Value) -> Answer {
    client.send(&request("POST", &format!("tools/{tool}")).json(arguments))
}

#[test]
fn a_call_answers_with_the_result_and_the_execution() {
    let service = api();
    let server = server(&service);
    let answer = call(&public(&server), "item", &json!({ "id": "7" })).expect(200).json();
    assert_eq!(service.asked().target, "/items/7");
    assert_eq!(answer["status"], "ok");
    assert_eq!(answer["isError"], false);
    assert_eq!(answer["downstreamStatus"], 200);
    assert_eq!(answer["structuredContent"], json!({ "target": "/items/7", "n": 1.5 }));
    assert!(answer["content"][0]["text"].as_str().unwrap().contains("/items/7"));
    let id = answer["executionId"].as_str().unwrap();
    assert!(id.len() == 36 && id.as_bytes()[14] == b'7', "{id}");
}

#[test]
fn the_status_says_who_is_to_blame() {
    let service = api();
    let server = server(&service);
    let client = public(&server);
    for (tool, arguments, status, word) in [
        ("item", json!({}), 400, "invalid_arguments"),
        ("item", json!([]), 400, "invalid_arguments"),
        ("nothing", json!({}), 404, "unknown_tool"),
        ("missing", json!({}), 422, "refused_by_api"),
        ("broken", json!({}), 502, "api_failed"),
        ("slow", json!({}), 504, "api_timed_out"),
    ] {
        let told = call(&client, tool, &arguments).expect(status).json();
        assert_eq!((&told["status"], &told["isError"]), (&word.into(), &true.into()), "{told}");
        assert!(told["executionId"].is_string() && told["content"][0]["text"].is_string());
    }
    let told = client.send(&request("POST", "tools/item").body(b"{".to_vec())).expect(400).json();
    assert_eq!(told["status"], "invalid_arguments");
    // No body stands for no arguments.
    client.send(&request("POST", "tools/missing")).expect(422);
    // When to come back is what the API says, or nothing.
    for (tool, when) in [("paced", Some("7")), ("busy", None)] {
        let told = call(&client, tool, &json!({})).expect(503);
        assert_eq!(told.json()["status"], "api_busy");
        assert_eq!(told.header("Retry-After"), when, "{tool}");
    }
}

#[test]
fn what_is_listed_is_what_the_protocol_lists() {
    let service = api();
    let server = server(&service);
    let client = public(&server);
    let listed = client.send(&request("GET", "tools")).expect(200).json();
    let over_mcp = client.reply(&crate::harness::rpc(1, "tools/list", json!({})));
    let names = |list: &Value| -> Vec<Value> {
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect()
    };
    assert_eq!(names(&listed), names(&over_mcp["result"]));
    let one = client.send(&request("GET", "tools/item")).expect(200).json();
    assert_eq!(one["inputSchema"]["required"], json!(["id"]));
    let told = client.send(&request("GET", "tools/nothing")).expect(404).json();
    assert_eq!(told["status"], "unknown_tool");
    // Nothing follows the head of an answer to HEAD but the next answer.
    let mut wire = client.connect();
    wire.send(&request("HEAD", "tools"));
    assert_eq!(wire.head().status, 200);
    wire.ask(&request("GET", "tools")).expect(200);
}

#[test]
fn the_description_names_every_tool() {
    let service = api();
    let server = server(&service);
    let client = public(&server);
    let document = client.send(&request("GET", "openapi.json")).expect(200).json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0]["url"], "/runtime/demo/public");
    for (tool, ..) in WAYS {
        let post = &document["paths"][format!("/tools/{tool}")]["post"];
        assert_eq!(post["operationId"], tool);
        let get = &document["paths"][format!("/tools/{tool}")]["get"];
        assert_eq!(get["operationId"], format!("{tool}.description"));
    }
    let described = &document["components"]["responses"]["Description"]["content"];
    let schema = described["application/json"]["schema"].clone();
    let told = client.send(&request("GET", &format!("tools/{}", WAYS[0].0))).expect(200).json();
    for key in schema["required"].as_array().unwrap() {
        assert!(told.get(key.as_str().unwrap()).is_some(), "{key}");
    }
    for key in told.as_object().unwrap().keys() {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
    // Of the tools as they are now.
    let more = r#"
        [[tool]]
        tenant = "demo"
        toolset = "api"
        name = "another"
        description = "A tool."
        method = "GET"
        path = "/another"
    "#;
    let file = server.write("more.toml", more);
    server.command(&["apply", &file]).succeeded();
    let document = client.send(&request("GET", "openapi.json")).expect(200).json();
    assert!(document["paths"]["/tools/another"].is_object());
}

#[test]
fn guards_and_credentials_are_those_of_every_endpoint() {
    let service = api();
    let server = server(&service);
    let client = Client::new(&server, "demo/assistant");
    let path = "/runtime/demo/assistant/tools";
    let told = client.send(&Request::new("GET", path)).expect(401);
    assert!(told.header("WWW-Authenticate").is_some());
    assert_eq!(told.json()["isError"], true);
    let with_key = |request: Request| {
        request.header("Authorization", &format!("Bearer {}", client.key.as_deref().unwrap()))
    };
    client.send(&with_key(Request::new("GET", path))).expect(200);
    let foreign = with_key(Request::new("GET", path)).header("Origin", "https://evil.example");
    assert_eq!(client.send(&foreign).expect(403).json()["status"], "foreign_origin");
    client.send(&with_key(Request::new("GET", "/runtime/other/assistant/tools"))).expect(401);
    let wrong = client.send(&with_key(Request::new("DELETE", path))).expect(405);
    assert_eq!(wrong.header("Allow"), Some("GET, HEAD, OPTIONS"));
    let typed = request("POST", "tools/item").header("Content-Type", "text/plain");
    client.send(&typed.body(b"{}".to_vec())).expect(415);
}
