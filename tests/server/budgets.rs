//! Results larger than their tool's budget: cut, and the rest asked for.

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Plan, Request, Ringway, Service, Setup, json_answer, rpc};

const LIST: (&str, &str, &str, &str) = ("list", "GET", "/list", "budget = { rows = 3 }");
const OTHER: (&str, &str, &str, &str) = ("other", "GET", "/list", "budget = { rows = 3 }");

/// Answers with ten rows.
fn service() -> Service {
    Service::start(|_| {
        let rows: Vec<u32> = (0..10).collect();
        Plan::Answer(json_answer(&json!({ "rows": rows, "total": 10 }).to_string()))
    })
}

fn start(service: &Service) -> Ringway {
    Setup::new().set("runtime.cores", 4).api(&service.base(), &[LIST, OTHER]).start()
}

/// The handle of what is missing.
fn handle(result: &Value) -> Option<String> {
    let rest = &result["_meta"]["io.ringway/rest"];
    let handle = rest["next"].as_str()?;
    assert_eq!(rest["uri"], format!("runtime://results/{handle}"));
    Some(handle.to_owned())
}

fn read(client: &Client, handle: &str) -> Value {
    let uri = format!("runtime://results/{handle}");
    client.reply(&rpc(1, "resources/read", json!({ "uri": uri })))
}

#[test]
fn a_cut_result_says_what_is_missing_and_how_to_get_it() {
    let service = service();
    let server = start(&service);
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let result = client.called("list", json!({}));
    assert_eq!(result["structuredContent"], json!({ "rows": [0, 1, 2], "total": 10 }));
    let note = result["content"][1]["text"].as_str().unwrap();
    assert!(note.contains("7 more rows at /rows") && note.contains("\"next\""), "{note}");
    assert_eq!(result["_meta"]["io.ringway/rest"]["missing"]["rows"], 7);
    // By the argument, a part after the other; each connection falls to some core.
    let mut next = handle(&result);
    let mut rows = vec![0, 1, 2];
    while let Some(handle_of_part) = next {
        let part = client.called("list", json!({ "next": handle_of_part }));
        let piece = &part["structuredContent"]["continues"][0];
        assert_eq!((&piece["at"], &piece["from"]), (&"/rows".into(), &rows.len().into()));
        rows.extend(piece["rows"].as_array().unwrap().iter().map(|row| row.as_i64().unwrap()));
        next = handle(&part);
    }
    assert_eq!(rows, (0..10).collect::<Vec<_>>());
    // The API was asked once.
    service.asked();
    assert!(service.is_quiet());
}

#[test]
fn the_rest_is_a_resource_of_its_caller_and_no_other() {
    let service = service();
    let server = start(&service);
    let client = Client::new(&server, "demo/assistant").in_session(NEWEST);
    let first = handle(&client.called("list", json!({}))).unwrap();
    let contents = read(&client, &first)["result"]["contents"].clone();
    assert_eq!(contents[0]["mimeType"], "application/json");
    let part: Value = serde_json::from_str(contents[0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(part["continues"][0]["rows"], json!([3, 4, 5]));
    assert!(contents[1]["text"].as_str().unwrap().contains("runtime://results/"));
    // An answer that was lost is given again.
    assert_eq!(read(&client, &first)["result"]["contents"][0], contents[0]);
    for other in [
        Client::new(&server, "demo/assistant").in_session(NEWEST),
        Client::keyless(&server, "demo/public").in_session(NEWEST),
    ] {
        assert_eq!(read(&other, &first)["error"]["code"], -32002);
        assert_eq!(other.called("list", json!({ "next": first }))["isError"], true);
    }
    assert_eq!(client.called("other", json!({ "next": first }))["isError"], true);
    // What is no handle at all is told the same as one that is not kept.
    let told = client.called("list", json!({ "next": "é" }));
    assert!(told["content"][0]["text"].as_str().unwrap().contains("not kept any more"), "{told}");
    let gone = read(&client, "AAAAAAAAAAAAAAAAAAAAAA.0");
    assert_eq!(gone["error"]["code"], -32002);
}

const SEND: (&str, &str, &str, &str) = (
    "send",
    "POST",
    "/send",
    r#"body_format = "multipart"
fields = [
    { source_field_name = "note" },
    { source_field_name = "file", type = "file", required = true },
]"#,
);

#[test]
fn the_rest_can_be_sent_on_as_a_file() {
    let service = service();
    let server =
        Setup::new().set("runtime.cores", 2).api(&service.base(), &[LIST, OTHER, SEND]).start();
    let client = Client::new(&server, "demo/assistant").in_session(NEWEST);
    let first = handle(&client.called("list", json!({}))).unwrap();
    service.asked();
    let uri = format!("runtime://results/{first}");
    let sent = client.called("send", json!({ "note": "all", "file": uri }));
    assert_ne!(sent["isError"], true, "{sent}");
    let asked = service.asked();
    let content_type = asked.header("Content-Type").unwrap();
    assert!(content_type.starts_with("multipart/form-data; boundary="), "{content_type}");
    let body = String::from_utf8_lossy(&asked.body);
    assert!(body.contains("name=\"note\"\r\n\r\nall\r\n"), "{body}");
    let head = "name=\"file\"; filename=\"result.json\"\r\nContent-Type: application/json\r\n\r\n{";
    assert!(body.contains(head) && body.contains("\"rows\":[3,4,5]"), "{body}");
    // Bytes of the caller's own, of which there are many.
    let large = "QUJD".repeat(50_000);
    let sent = client.called("send", json!({ "file": { "base64": large, "filename": "a.txt" } }));
    assert_ne!(sent["isError"], true, "{sent}");
    let body = service.asked().body;
    assert_eq!(body.windows(3).filter(|part| part == b"ABC").count(), 50_000);
    // What is another caller's, or nobody's, or no file at all is not sent.
    let other = Client::keyless(&server, "demo/public").in_session(NEWEST);
    for (client, file) in [
        (&other, json!(uri)),
        (&client, json!("runtime://results/AAAAAAAAAAAAAAAAAAAAAA.0")),
        (&client, json!("file:///etc/passwd")),
        (&client, json!({ "base64": "*" })),
    ] {
        let refused = client.called("send", json!({ "file": file }));
        let told = refused["content"][0]["text"].as_str().unwrap();
        assert!(refused["isError"] == true && told.contains("file: "), "{told}");
    }
    assert!(service.is_quiet());
}

#[test]
fn the_rest_is_for_those_who_may_call_its_tool_now() {
    let service = service();
    let server = start(&service);
    let client = Client::new(&server, "demo/assistant").in_session(NEWEST);
    let first = handle(&client.called("list", json!({}))).unwrap();
    let require = |trust: &str| {
        server.apply(&format!(
            "[[assignment]]\ntenant = \"demo\"\nclient_application = \"assistant\"\n\
             toolset = \"api\"\n\
             policy = {{ rules = [{{ effect = \"allow\", required_trust = \"{trust}\" }}] }}\n"
        ));
    };
    require("high");
    assert_eq!(read(&client, &first)["error"]["code"], -32002);
    assert_eq!(client.called("list", json!({ "next": first }))["isError"], true);
    // It was not used up by that.
    require("medium");
    assert!(read(&client, &first)["result"]["contents"].is_array());
}

#[test]
fn plain_http_gets_the_same() {
    let service = service();
    let server = start(&service);
    let client = Client::keyless(&server, "demo/public");
    let call = |arguments: Value| {
        let request = Request::new("POST", "/runtime/demo/public/tools/list").json(&arguments);
        client.send(&request).expect(200).json()
    };
    let first = call(json!({}));
    assert_eq!(first["structuredContent"]["rows"], json!([0, 1, 2]));
    let next = call(json!({ "next": handle(&first).unwrap() }));
    assert_eq!(next["structuredContent"]["continues"][0]["rows"], json!([3, 4, 5]));
}

#[test]
fn what_has_no_room_any_more_is_said_to_be_gone() {
    let service = service();
    let server = Setup::new()
        .set("runtime.results.tenant_bytes_max", 4096)
        .set("runtime.results.bytes_max", 4096)
        .api(&service.base(), &[LIST])
        .start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let first = handle(&client.called("list", json!({}))).unwrap();
    for _ in 0..20 {
        client.called("list", json!({}));
    }
    let told = client.called("list", json!({ "next": first }));
    assert!(told["content"][0]["text"].as_str().unwrap().contains("not kept any more"));
}

#[test]
fn the_argument_for_the_rest_is_in_the_schema_and_others_beside_it_do_not_matter() {
    let service = service();
    let needing = (
        "needing",
        "GET",
        "/list",
        r#"budget = { rows = 3 }
fields = [{ source_field_name = "q", location = "query", type = "integer", required = true }]"#,
    );
    let own = (
        "own",
        "GET",
        "/list",
        r#"budget = { rows = 3 }
fields = [{ source_field_name = "next", location = "query", type = "integer" }]"#,
    );
    let whole = ("whole", "GET", "/list", "");
    let server = Setup::new().api(&service.base(), &[needing, own, whole]).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let listed = client.reply(&rpc(1, "tools/list", json!({})))["result"]["tools"].clone();
    let next = |name: &str| {
        let tools = listed.as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["inputSchema"]["properties"]["next"]["type"].clone()
    };
    assert_eq!((next("needing"), next("whole")), ("string".into(), Value::Null));
    assert_eq!(next("own"), "integer", "a field of that name keeps it");
    let first = client.called("needing", json!({ "q": 1, "next": null }));
    assert_eq!(service.asked().target, "/list?q=1");
    let rest = handle(&first).unwrap();
    for arguments in [json!({ "next": rest }), json!({ "q": 1, "next": rest })] {
        let part = client.called("needing", arguments);
        assert_eq!(part["structuredContent"]["continues"][0]["rows"], json!([3, 4, 5]), "{part}");
    }
    assert!(service.is_quiet());
    client.called("needing", json!({ "q": 2, "next": "" }));
    assert_eq!(service.asked().target, "/list?q=2");
    let own = client.called("own", json!({ "next": 7 }));
    assert_eq!(service.asked().target, "/list?next=7");
    // The advice makes no second call.
    let rest_of_own = handle(&own).unwrap();
    let note = own["content"][1]["text"].as_str().unwrap();
    assert!(note.contains(&json!({ "next_part": rest_of_own }).to_string()), "{note}");
    assert_eq!(own["_meta"]["io.ringway/rest"]["argument"], "next_part");
    let part = client.called("own", json!({ "next_part": rest_of_own }));
    assert_eq!(part["structuredContent"]["continues"][0]["rows"], json!([3, 4, 5]), "{part}");
    assert!(service.is_quiet());
    assert_eq!(client.called("whole", json!({ "next": rest }))["isError"], true);
}
