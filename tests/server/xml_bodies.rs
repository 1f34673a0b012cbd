//! APIs that speak XML without envelopes: from their description to what they read and answer.

use serde_json::{Value, json};

use crate::harness::{Asked, Client, Plan, Ringway, Service, Setup, answer, call};

const XML: &[(&str, &str)] = &[("Content-Type", "application/xml; charset=ISO-8859-1")];

/// A zoo that has one bear, and answers odd things to those who ask for odd ones.
fn zoo(asked: &Asked) -> Plan {
    let bear = b"<?xml version='1.0' encoding='ISO-8859-1'?>\n<z:pet xmlns:z='urn:zoo' id='0012'>\
                 <z:name>B\xe4r</z:name><z:weight>120.50</z:weight><z:photos><z:photo>1.png</z:photo>\
                 </z:photos><z:tag>brown</z:tag><z:secret>x</z:secret></z:pet>";
    Plan::Answer(match (&*asked.method, &*asked.target) {
        ("POST", _) => answer("201 Created", XML, bear),
        (_, "/pets") => answer("200 OK", XML, b"<pets><pet id='1'/><pet><tag>a</tag></pet></pets>"),
        (_, "/pets/html") => {
            answer("200 OK", XML, b"<maintenance><until>noon</until></maintenance>")
        }
        (_, "/pets/json") => {
            answer("200 OK", &[("Content-Type", "application/json")], b"{\"id\":3,\"name\":\"J\"}")
        }
        (_, "/pets/broken") => answer("200 OK", XML, b"<pet><name></pet>"),
        _ => answer("404 Not Found", XML, b"<error><text>No such pet</text></error>"),
    })
}

fn description(base: &str) -> Value {
    let pet = json!({ "$ref": "#/components/schemas/Pet" });
    let gives = |schema: Value| json!({ "200": { "description": "Ok.", "content": { "application/xml": { "schema": schema } } } });
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Zoo", "version": "1" },
        "servers": [{ "url": base }],
        "paths": {
            "/pets": {
                "post": {
                    "operationId": "addPet",
                    "requestBody": { "required": true, "content": { "application/xml": { "schema": pet } } },
                    "responses": gives(pet.clone()),
                },
                "get": {
                    "operationId": "listPets",
                    "responses": gives(json!({ "type": "array", "items": pet })),
                },
            },
            "/pets/{id}": {
                "get": {
                    "operationId": "showPet",
                    "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }],
                    "responses": gives(pet.clone()),
                },
            },
        },
        "components": { "schemas": { "Pet": {
            "type": "object",
            "required": ["name"],
            "xml": { "name": "pet", "namespace": "urn:zoo", "prefix": "z" },
            "properties": {
                "id": { "type": "integer", "xml": { "attribute": true } },
                "name": { "type": "string", "xml": { "prefix": "z" } },
                "weight": { "type": "number", "xml": { "prefix": "z" } },
                "photos": {
                    "type": "array",
                    "xml": { "wrapped": true, "prefix": "z" },
                    "items": { "type": "string", "xml": { "name": "photo", "prefix": "z" } },
                },
                "tags": { "type": "array", "items": { "type": "string", "xml": { "name": "tag" } } },
            },
        } } },
    })
}

fn start(service: &Service) -> (Ringway, Client) {
    let server = Setup::new().start();
    let source = server.write("zoo.json", &description(&service.base()).to_string());
    let words = ["import", "openapi", &source, "--toolset", "zoo", "--tenant", "demo", "--publish"];
    server.command(&words).succeeded();
    server.apply(
        "[[assignment]]\ntenant = \"demo\"\nclient_application = \"assistant\"\ntoolset = \"zoo\"\n",
    );
    // Nothing of it is lost on the way out and in again.
    let path = server.folder().join("all.toml").display().to_string();
    server.command(&["export", &path]).succeeded();
    let applied = server.command(&["apply", "--prune", &path]).succeeded().stdout;
    assert!(applied.starts_with("0 added, 0 changed, 0 removed"), "{applied}");
    let again = server.command(&[&words[..], &["--json"]].concat()).succeeded().stdout;
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["counts"]["unchanged"], 3, "{again}");
    let client = Client::open(&server);
    (server, client)
}

#[test]
fn an_imported_tool_sends_and_reads_xml() {
    let service = Service::start(zoo);
    let (_server, client) = start(&service);
    let pet = json!({ "name": "a & b", "id": 7, "photos": ["<1>"], "tags": ["x", "y"] });
    let added = client.called("addPet", pet);
    let asked = service.asked();
    assert_eq!((&*asked.method, &*asked.target), ("POST", "/pets"));
    assert_eq!(asked.header("Content-Type"), Some("application/xml"));
    assert!(asked.header("Accept").unwrap().starts_with("application/xml, "));
    let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?><z:pet xmlns:z=\"urn:zoo\" id=\"7\">\
                    <z:name>a &amp; b</z:name><z:photos><z:photo>&lt;1&gt;</z:photo></z:photos>\
                    <tag>x</tag><tag>y</tag></z:pet>";
    assert_eq!(String::from_utf8(asked.body).unwrap(), expected);
    let bear =
        json!({ "id": 12, "name": "Bär", "weight": 120.5, "photos": ["1.png"], "tags": ["brown"] });
    assert_eq!(added["structuredContent"], bear, "{added}");
    assert!(added["content"][0]["text"].as_str().unwrap().contains("120.50"), "{added}");
    let listed = client.called("listPets", json!({}));
    service.asked();
    let pets = json!([{ "id": 1, "tags": [] }, { "tags": ["a"] }]);
    let text = listed["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), pets, "{listed}");
}

#[test]
fn answers_that_are_not_as_described_are_told_as_they_are() {
    let service = Service::start(zoo);
    let (_server, client) = start(&service);
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    let json = client.called("showPet", json!({ "id": "json" }));
    assert_eq!(json["structuredContent"], json!({ "id": 3, "name": "J" }));
    for odd in ["html", "broken"] {
        let shown = client.called("showPet", json!({ "id": odd }));
        assert_ne!(shown["isError"], true, "{shown}");
        assert!(text(&shown).contains(if odd == "html" { "noon" } else { "<pet>" }), "{shown}");
    }
    let missing = client.called("showPet", json!({ "id": "none" }));
    assert_eq!(missing["isError"], true);
    assert!(text(&missing).contains("HTTP 404") && text(&missing).contains("No such pet"));
}

#[test]
fn what_xml_cannot_hold_is_not_sent() {
    let service = Service::start(zoo);
    let (_server, client) = start(&service);
    let refused = client.post(&call(1, "addPet", json!({ "name": "a\u{1}" }))).json();
    assert!(refused.to_string().contains("name: the character U+0001"), "{refused}");
    assert!(service.is_quiet());
}
