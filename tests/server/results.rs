//! What of an API's answer a client gets: picked and renamed, digit for digit, within a budget.

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Plan, Request, Service, Setup, json_answer, rpc};

const DOCUMENT: &str = r#"{"id":9007199254740993,"price":12345678901234567890.123400,"tiny":1E-400,"secret":"s","owner":{"full_name":"A","age":7},"rows":[{"sku":"a","count":1,"hidden":1},{"sku":"b","count":2.50}],"free":{"x":1,"y":[1,2]}}"#;
const PICKED: (&str, &str, &str, &str) = (
    "picked",
    "GET",
    "/document",
    r#"response_fields = [
    { source_field_name = "id", exposed_field_name = "number", type = "integer", as_string = true },
    { source_field_name = "price", type = "number", as_string = true },
    { source_field_name = "tiny", type = "number" },
    { source_field_name = "owner.full_name", exposed_field_name = "name" },
    { source_field_name = "rows[*].sku", exposed_field_name = "article" },
    { source_field_name = "rows[*].count", type = "number" },
    { source_field_name = "free", type = "object" },
]"#,
);
const WHOLE: (&str, &str, &str, &str) = ("whole", "GET", "/document", "");
const SEND: (&str, &str, &str, &str) = (
    "send",
    "POST",
    "/send",
    r#"fields = [
    { source_field_name = "id", exposed_field_name = "number", location = "body", type = "integer", as_string = true },
    { source_field_name = "price", location = "body", type = "number", as_string = true },
    { source_field_name = "ids", location = "body", type = "array", array_item_type = "integer", as_string = true },
    { source_field_name = "plain", location = "body", type = "number" },
]"#,
);

fn service() -> Service {
    Service::start(|asked| {
        Plan::Answer(json_answer(if asked.target == "/document" { DOCUMENT } else { "{}" }))
    })
}

/// The body of an answer to a call, as it was sent.
fn raw(client: &Client, tool: &str) -> String {
    client.post(&crate::harness::call(1, tool, json!({}))).expect(200).text()
}

#[test]
fn rules_pick_and_rename_what_is_shown_and_keep_rows() {
    let service = service();
    let server = Setup::new().api(&service.base(), &[PICKED, WHOLE]).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let result = client.called("picked", json!({}));
    let told = &result["structuredContent"];
    let keys: Vec<_> = told.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["free", "number", "owner", "price", "rows", "tiny"]);
    assert_eq!(told["owner"], json!({ "name": "A" }));
    assert_eq!(
        told["rows"],
        json!([{ "article": "a", "count": 1 }, { "article": "b", "count": 2.5 }])
    );
    assert_eq!(told["free"], json!({ "x": 1, "y": [1, 2] }));
    assert!(!result.to_string().contains("hidden") && !result.to_string().contains("secret"));
    // The text is the same document, and the schema that is shown describes it.
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, *told);
    let listed = client.post(&rpc(1, "tools/list", json!({}))).expect(200).result();
    let tools = listed["tools"].as_array().unwrap();
    let picked = tools.iter().find(|tool| tool["name"] == "picked").unwrap();
    let validator = jsonschema::validator_for(&picked["outputSchema"]).unwrap();
    assert!(validator.is_valid(told), "{}", picked["outputSchema"]);
    // What a field holds is told and not held to: an API that answers otherwise is no fault of its.
    let described = &picked["outputSchema"]["properties"]["number"]["description"];
    assert!(described.as_str().unwrap().contains("string"), "{described}");
}

#[test]
fn numbers_keep_their_digits() {
    let service = service();
    let server = Setup::new().api(&service.base(), &[PICKED, WHOLE]).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let whole = raw(&client, "whole");
    for digits in ["\"id\":9007199254740993", "12345678901234567890.123400", "1E-400", "2.50"] {
        assert!(whole.contains(digits), "{digits} in {whole}");
    }
    let picked = raw(&client, "picked");
    for digits in
        ["\"number\":\"9007199254740993\"", "\"price\":\"12345678901234567890.123400\"", "1E-400"]
    {
        assert!(picked.contains(digits), "{digits} in {picked}");
    }
    // Plain HTTP gives the same digits.
    let request = Request::new("POST", "/runtime/demo/public/tools/whole").json(&json!({}));
    let text = client.send(&request).expect(200).text();
    assert!(text.contains("12345678901234567890.123400"), "{text}");
}

#[test]
fn what_was_shown_as_a_text_goes_back_as_the_number() {
    let service = service();
    let server = Setup::new().api(&service.base(), &[PICKED, SEND]).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let told = client.called("picked", json!({}))["structuredContent"].clone();
    service.asked();
    let listed = client.post(&rpc(1, "tools/list", json!({}))).expect(200).result();
    let tools = listed["tools"].as_array().unwrap();
    let send = tools.iter().find(|tool| tool["name"] == "send").unwrap();
    let properties = &send["inputSchema"]["properties"];
    assert_eq!(properties["number"]["type"], "string");
    assert_eq!(properties["ids"]["items"]["type"], "string");
    let arguments = json!({
        "number": told["number"], "price": told["price"], "ids": ["18446744073709551617", "-1"],
    });
    assert_eq!(client.called("send", arguments)["isError"], false);
    let body = String::from_utf8(service.asked().body).unwrap();
    for part in [
        "\"id\":9007199254740993",
        "\"price\":12345678901234567890.123400",
        "\"ids\":[18446744073709551617,-1]",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
    // A number itself is taken as well; what holds none is refused.
    assert_eq!(client.called("send", json!({ "number": 7 }))["isError"], false);
    assert_eq!(service.asked().json(), json!({ "id": 7 }));
    for wrong in ["1.5", "", "x", "0x10", "1,000"] {
        let result = client.called("send", json!({ "number": wrong }));
        assert_eq!(result["isError"], true, "{wrong}: {result}");
    }
    // Digits that are no text are sent as they were written.
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send","arguments":{"plain":0.10000000000000000000000001}}}"#;
    let request = client.message(&json!({})).body(message);
    client.send(&request).expect(200);
    let body = String::from_utf8(service.asked().body).unwrap();
    assert!(body.contains("0.10000000000000000000000001"), "{body}");
}

/// Puts the pieces of all parts together, asking by the argument or by the resource.
fn gathered(client: &Client, tool: &str, by_resource: bool) -> (usize, usize) {
    let (mut bytes, mut parts) = (0, 0);
    let mut result = client.called(tool, json!({}));
    loop {
        let text = result["content"][0]["text"].as_str().unwrap();
        let part: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        bytes += part.to_string().matches('Z').count();
        parts += 1;
        let rest = &result["_meta"]["io.ringway/rest"];
        let Some(next) = rest["next"].as_str() else { return (bytes, parts) };
        assert!(rest["missing"].is_object(), "{rest}");
        if by_resource {
            let read = rpc(1, "resources/read", json!({ "uri": rest["uri"] }));
            let read = client.reply(&read)["result"].clone();
            let text = read["contents"][0]["text"].as_str().unwrap();
            let part: Value = serde_json::from_str(text).unwrap();
            assert!(part["continues"].is_array(), "{part}");
        }
        result = client.called(tool, json!({ "next": next }));
        assert_eq!(result["isError"], false, "{result}");
    }
}

#[test]
fn long_texts_and_large_documents_are_cut_to_valid_json_and_given_in_parts() {
    let service = Service::start(|_| {
        let rows: Vec<Value> =
            (0..50).map(|row| json!({ "row": row, "t": "Z".repeat(100) })).collect();
        Plan::Answer(json_answer(&json!({ "long": "Z".repeat(5000), "rows": rows }).to_string()))
    });
    let strings = ("strings", "GET", "/", "budget = { string_bytes = 600 }");
    let bytes = ("bytes", "GET", "/", "budget = { bytes = 2048 }");
    let server =
        Setup::new().set("runtime.cores", 1).api(&service.base(), &[strings, bytes]).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let first = client.called("strings", json!({}));
    let long = first["structuredContent"]["long"].as_str().unwrap();
    assert!(long.len() <= 600, "{}", long.len());
    assert_eq!(first["structuredContent"]["rows"].as_array().unwrap().len(), 50);
    let first = client.called("bytes", json!({}));
    assert!(first["structuredContent"].to_string().len() <= 2048);
    for tool in ["strings", "bytes"] {
        for by_resource in [false, true] {
            let (letters, parts) = gathered(&client, tool, by_resource);
            assert_eq!(letters, 5000 + 50 * 100, "{tool}: nothing is lost, nothing comes twice");
            assert!(parts > 4, "{tool}: {parts}");
        }
    }
    // That results were cut is on record, and that parts are no calls of the API.
    crate::harness::eventually("cut results are recorded", || {
        let records = server.records();
        let cut = records.iter().filter(|record| record["cut"] == true);
        cut.filter(|record| record["downstream_status"] == 200).count() == 6
    });
}
