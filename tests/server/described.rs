//! Whole ways: from a description of an API over the command line to a call and what the API reads.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::harness::{Client, Plan, Ringway, Service, Setup, answer, call, json_answer, rpc};

fn import(server: &Ringway, format: &str, source: &str, toolset: &str) -> Value {
    let words = ["import", format, source, "--toolset", toolset, "--tenant", "demo"];
    let output = server.command(&[&words[..], &["--publish", "--json"]].concat()).succeeded();
    serde_json::from_str(&output.stdout).unwrap()
}

fn assign(server: &Ringway, toolset: &str) {
    server.apply(&format!(
        "[[assignment]]\ntenant = \"demo\"\nclient_application = \"assistant\"\ntoolset = \"{toolset}\"\n"
    ));
}

/// A server with the tools of one description, and a client that has them.
fn start(description: &Value) -> (Ringway, Client) {
    let server = Setup::new().start();
    let source = server.write("api.json", &description.to_string());
    let report = import(&server, "openapi", &source, "api");
    let told = |report: &Value| report["remarks"].to_string().contains("[[assignment]]");
    assert!(told(&report), "{report:#}");
    assign(&server, "api");
    assert!(!told(&import(&server, "openapi", &source, "api")));
    let client = Client::open(&server);
    (server, client)
}

/// The tools of imported toolsets: those whose description is a method and a path.
fn imported_tools(client: &Client) -> Vec<Value> {
    let listed = client.reply(&rpc(1, "tools/list", json!({})))["result"]["tools"].clone();
    let tools = listed.as_array().unwrap().iter();
    tools
        .filter(|tool| tool["description"].as_str().unwrap().starts_with("GET /"))
        .cloned()
        .collect()
}

fn names(tools: &[Value]) -> BTreeSet<String> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn names_are_legal_distinct_and_stay_whatever_operations_are_called() {
    let long = "operation".repeat(14);
    let ids = [
        Some(&*long),
        Some("pets.list"),
        Some("1-click/app"),
        Some("Größe abrufen"),
        Some("a--b"),
        Some("get /x"),
        Some("same"),
        Some("same"),
        None,
    ];
    let service = Service::echo();
    let describe = |backwards: bool| {
        let mut paths: Vec<(usize, Option<&str>)> = ids.iter().copied().enumerate().collect();
        if backwards {
            paths.reverse();
        }
        // As text, so that the order is the one meant.
        let paths = paths.iter().map(|(number, id)| {
            let get =
                json!({ "operationId": id, "responses": { "200": { "description": "Ok." } } });
            format!("\"/o{number}\": {{ \"get\": {get} }}")
        });
        format!(
            r#"{{ "openapi": "3.1.0", "info": {{ "title": "T", "version": "1" }},
                "servers": [{{ "url": "{}" }}], "paths": {{ {} }} }}"#,
            service.base(),
            paths.collect::<Vec<_>>().join(", ").replace("\"operationId\":null,", "")
        )
    };
    let server = Setup::new().start();
    let source = server.write("names.json", &describe(false));
    for toolset in ["one", "two"] {
        assert_eq!(import(&server, "openapi", &source, toolset)["counts"]["published"], 9);
        assign(&server, toolset);
    }
    let client = Client::open(&server);
    let tools = imported_tools(&client);
    let before = names(&tools);
    assert_eq!(before.len(), 18, "{before:?}");
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        let first = name.chars().next().unwrap();
        assert!(name.len() <= 48 && !first.is_ascii_digit() && first != '-', "{name}");
        let is_legal = |one: char| one.is_ascii_alphanumeric() || one == '_' || one == '-';
        assert!(name.chars().all(is_legal), "{name}");
        let result = client.called(name, json!({}));
        let said = tool["description"].as_str().unwrap();
        assert_eq!(
            format!("GET {}", result["structuredContent"]["target"].as_str().unwrap()),
            said
        );
    }
    server.write("names.json", &describe(true));
    for toolset in ["one", "two"] {
        assert_eq!(import(&server, "openapi", &source, toolset)["counts"]["unchanged"], 9);
        // Of a catalog without them they come out the same.
        let fresh = Setup::new().start();
        let source = fresh.write("names.json", &describe(true));
        let report = import(&fresh, "openapi", &source, toolset);
        let again =
            import(&server, "openapi", &server.write("names.json", &describe(false)), toolset);
        let of = |report: &Value| -> BTreeSet<(String, String)> {
            let operations = report["operations"].as_array().unwrap().iter();
            operations.map(|one| (one["operation"].to_string(), one["tool"].to_string())).collect()
        };
        assert_eq!(of(&report), of(&again));
    }
    assert_eq!(names(&imported_tools(&client)), before);
}

#[test]
fn answers_with_null_and_types_without_end_are_good_ones() {
    let service = Service::start(|_| {
        Plan::Answer(json_answer(r#"{"id":7,"price":null,"kind":null,"parts":[{"price":1.0}]}"#))
    });
    let part = json!({ "$ref": "#/components/schemas/Part" });
    let (_server, client) = start(&json!({
        "openapi": "3.0.3",
        "info": { "title": "Parts", "version": "1" },
        "servers": [{ "url": service.base() }],
        "paths": { "/parts": { "post": {
            "operationId": "addPart",
            "requestBody": { "required": true, "content": { "application/json": { "schema": part } } },
            "responses": { "200": { "description": "It.", "content": { "application/json": { "schema": part } } } },
        } } },
        "components": { "schemas": {
            "Alias": { "$ref": "#/components/schemas/Alias" },
            "Part": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {
                    "id": { "type": "integer", "readOnly": true },
                    "name": { "type": "string" },
                    "secret": { "type": "string", "writeOnly": true },
                    "made": { "type": "string", "format": "date" },
                    "weight": { "type": "number", "default": 2.5 },
                    "price": { "type": "number", "nullable": true },
                    "kind": { "type": "string", "enum": ["A", "B"], "nullable": true },
                    "tags": { "type": "array" },
                    "parts": { "type": "array", "items": { "$ref": "#/components/schemas/Part" } },
                    "odd": { "$ref": "#/components/schemas/Alias" },
                },
            },
        } },
    }));
    let tools = client.reply(&rpc(1, "tools/list", json!({})))["result"]["tools"].clone();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "addPart").unwrap();
    let fields = &tool["inputSchema"]["properties"];
    assert_eq!(fields["id"], Value::Null, "{fields:#}");
    assert!(fields["tags"]["items"].is_object(), "{fields:#}");
    assert_eq!(fields["weight"]["default"], 2.5);
    assert_eq!(tool["inputSchema"]["required"], json!(["name"]));
    assert_eq!(tool["outputSchema"]["properties"]["secret"], Value::Null, "{tool:#}");
    let arguments =
        json!({ "name": "", "price": null, "kind": null, "made": "2026-02-30", "tags": "[1]" });
    let result = client.called("addPart", arguments);
    assert_ne!(result["isError"], true, "{result:#}");
    let content = &result["structuredContent"];
    assert_eq!(content["price"], Value::Null);
    assert!(content.as_object().unwrap().contains_key("kind"), "{content}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("1.0"), "{result}");
    // A default is told and not sent, null is a value where it may be one, a text that stands for
    // an array is one, and a date stays as it was written.
    let sent = service.asked().json();
    let expected =
        json!({ "name": "", "price": null, "kind": null, "made": "2026-02-30", "tags": [1] });
    assert_eq!(sent, expected);
}

#[test]
fn parts_fields_and_files_arrive_as_they_were_given() {
    let service = Service::echo();
    let file = json!({ "type": "string", "format": "binary" });
    let (_server, client) = start(&json!({
        "openapi": "3.0.3",
        "info": { "title": "Files", "version": "1" },
        "servers": [{ "url": service.base() }],
        "paths": { "/files": { "post": {
            "operationId": "upload",
            "requestBody": { "content": { "multipart/form-data": {
                "schema": { "type": "object", "properties": {
                    "one": file, "two": file, "title": { "type": "string" },
                    "count": { "type": "integer" }, "is_open": { "type": "boolean" },
                    "about": { "type": "object", "properties": { "by": { "type": "string" } } },
                } },
                "encoding": { "about": { "contentType": "application/vnd.about+json" } },
            } } },
            "responses": { "200": { "description": "Ok." } },
        } } },
    }));
    let bytes: Vec<u8> = (0..=255).collect();
    let given = |name: &str| json!({ "filename": name, "contentType": "image/png", "base64": STANDARD.encode(&bytes) });
    client.called(
        "upload",
        json!({
            "one": given("a.png"), "two": given("b \"2\".png"), "title": "é & =", "count": 3,
            "is_open": true, "about": { "by": "Ada" },
        }),
    );
    let asked = service.asked();
    let kind = asked.header("Content-Type").unwrap();
    let boundary = format!("--{}", kind.strip_prefix("multipart/form-data; boundary=").unwrap());
    let find = |text: &[u8], from: usize| {
        asked.body[from..].windows(text.len()).position(|part| part == text).map(|at| from + at)
    };
    let mut starts = vec![];
    while let Some(at) = find(boundary.as_bytes(), starts.last().map_or(0, |at| at + 1)) {
        starts.push(at);
    }
    assert_eq!(starts.len(), 7, "six parts and an end");
    for (head, content) in [
        ("name=\"one\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n", bytes.as_slice()),
        ("filename=\"b %222%22.png\"\r\nContent-Type: image/png\r\n\r\n", &bytes),
        ("name=\"title\"\r\n\r\n", "é & =".as_bytes()),
        ("name=\"count\"\r\n\r\n", b"3"),
        ("name=\"is_open\"\r\n\r\n", b"true"),
        ("name=\"about\"\r\nContent-Type: application/vnd.about+json\r\n\r\n", b"{\"by\":\"Ada\"}"),
    ] {
        let part = [head.as_bytes(), content, b"\r\n", boundary.as_bytes()].concat();
        assert!(find(&part, 0).is_some(), "{head} in {}", String::from_utf8_lossy(&asked.body));
    }
}

#[test]
fn one_name_in_four_places_and_one_placeholder_twice_reach_the_base_path() {
    let service = Service::echo();
    let base = service.base();
    let host = base.strip_prefix("http://").unwrap();
    let text = |name: &str, place: &str| json!({ "name": name, "in": place, "type": "string", "required": true });
    let ok = json!({ "200": { "description": "Ok." } });
    let (_server, client) = start(&json!({
        "swagger": "2.0",
        "info": { "title": "Old", "version": "1" },
        "host": host, "basePath": "/base/v2/", "schemes": ["http"],
        "paths": {
            "/users/{id}": { "put": {
                "operationId": "putUser",
                "parameters": [
                    text("id", "path"), text("id", "query"), text("id", "header"),
                    { "name": "body", "in": "body", "schema": { "type": "object", "properties": {
                        "id": { "type": "string" }, "name": { "type": "string" } } } },
                ],
                "responses": ok,
            } },
            "/{a}/{b}/x/{a}": { "get": {
                "operationId": "twice", "parameters": [text("a", "path"), text("b", "path")],
                "responses": ok,
            } },
        },
    }));
    client.called("twice", json!({ "a": "1 2", "b": "é" }));
    assert_eq!(service.asked().target, "/base/v2/1%202/%C3%A9/x/1%202");
    let tools = client.reply(&rpc(1, "tools/list", json!({})))["result"]["tools"].clone();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "putUser").unwrap();
    let fields = tool["inputSchema"]["properties"].as_object().unwrap();
    assert_eq!(fields.len(), 5, "{fields:?}");
    // Whichever names they have, each argument goes to one place of its own.
    let arguments: serde_json::Map<String, Value> =
        fields.keys().map(|name| (name.clone(), json!(format!("v-{name}")))).collect();
    client.called("putUser", Value::Object(arguments));
    let asked = service.asked();
    let (path, query) = asked.target.split_once("?id=").unwrap();
    let body = asked.json();
    let places: BTreeSet<&str> = [
        path.strip_prefix("/base/v2/users/").unwrap(),
        query,
        asked.header("id").unwrap(),
        body["id"].as_str().unwrap(),
        body["name"].as_str().unwrap(),
    ]
    .into();
    assert_eq!(places.len(), 5, "{places:?}");
    assert_eq!(body.as_object().unwrap().len(), 2, "the body is no member of itself: {body}");
}

#[test]
fn arguments_that_are_no_object_are_refused_and_none_are_an_empty_one() {
    let service = Service::echo();
    let (_server, client) = start(&json!({
        "openapi": "3.1.0",
        "info": { "title": "Plain", "version": "1" },
        "servers": [{ "url": service.base() }],
        "paths": { "/plain": { "get": { "operationId": "plain", "responses": {} } } },
    }));
    for params in [
        json!({ "name": "plain" }),
        json!({ "name": "plain", "arguments": null }),
        json!({ "name": "plain", "arguments": {} }),
    ] {
        assert_eq!(client.reply(&rpc(1, "tools/call", params))["result"]["isError"], false);
        assert_eq!(service.asked().target, "/plain");
    }
    for wrong in [json!([]), json!("x")] {
        let refused = client.post(&call(1, "plain", wrong)).json();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

const WSDL: &str = include_str!("described.wsdl");
const TYPES: &str = r#"<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" elementFormDefault="qualified">
  <xsd:include schemaLocation="types.xsd"/>
  <xsd:complexType name="Book"><xsd:sequence>
    <xsd:element name="title" type="xsd:string"/>
    <xsd:element name="tag" type="xsd:string" minOccurs="0" maxOccurs="unbounded"/>
  </xsd:sequence><xsd:attribute name="isbn" type="xsd:string" use="required"/></xsd:complexType>
</xsd:schema>"#;

#[test]
fn a_soap_service_is_imported_from_where_it_describes_itself() {
    let service = Service::start(|asked| {
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        let xml: &[(&str, &str)] = &[("Content-Type", "text/xml; charset=utf-8")];
        let envelope = |content: &str| {
            format!(
                "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body>{content}</s:Body></s:Envelope>"
            )
        };
        Plan::Answer(match &*asked.target {
            "/old?wsdl" => answer("302 Found", &[("Location", "/library?wsdl")], b""),
            "/library?wsdl" => answer("200 OK", xml, WSDL.as_bytes()),
            "/types.xsd" => answer("200 OK", xml, TYPES.as_bytes()),
            _ if body.contains(">page<") => {
                answer("503 Service Unavailable", &[("Content-Type", "text/html")], b"<html>")
            }
            _ if body.contains(">fault<") => {
                let fault = "<s:Fault><faultcode>s:Client</faultcode><faultstring>No reader</faultstring></s:Fault>";
                answer("200 OK", xml, envelope(fault).as_bytes())
            }
            _ => {
                let lent = "<r:LendResponse xmlns:r='urn:library'><r:book isbn='1'><r:title>Emma</r:title><r:tag>old</r:tag></r:book></r:LendResponse>";
                answer("200 OK", xml, envelope(lent).as_bytes())
            }
        })
    });
    let server = Setup::new().start();
    let url = format!("{}/old?wsdl", service.base());
    let report = import(&server, "wsdl", &url, "library");
    assert_eq!(report["counts"]["imported"], 1, "{report:#}");
    // The service says an address that is no use to anybody else; the operator knows better.
    let words =
        ["import", "wsdl", &url, "--toolset", "library", "--tenant", "demo", "--publish", "--json"];
    let at = format!("{}/library", service.base());
    server.command(&[&words[..], &["--base-url", &at]].concat()).succeeded();
    assign(&server, "library");
    let client = Client::open(&server);
    let lent = client.called("Lend", json!({ "title": "Emma", "reader": 7 }));
    let book = json!({ "isbn": "1", "title": "Emma", "tag": ["old"] });
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(serde_json::from_str::<Value>(&text(&lent)).unwrap(), json!({ "book": [book] }));
    let asked =
        std::iter::repeat_with(|| service.asked()).find(|asked| asked.method == "POST").unwrap();
    assert_eq!(
        (&*asked.target, asked.header("SOAPAction")),
        ("/library", Some("\"urn:library/Lend\""))
    );
    let body = String::from_utf8(asked.body).unwrap();
    assert!(body.find(">7<").unwrap() < body.find(">Emma<").unwrap(), "{body}");
    let fault = client.called("Lend", json!({ "reader": 7, "title": "fault" }));
    assert!(fault["isError"] == true && text(&fault).contains("No reader"), "{fault:#}");
    let page = client.called("Lend", json!({ "reader": 7, "title": "page" }));
    assert!(page["isError"] == true && text(&page).contains("503"), "{page:#}");
    let other = ["import", "openapi", &url, "--toolset", "library", "--tenant", "demo"];
    server.command(&other).failed_with(&["import wsdl"]);
}
