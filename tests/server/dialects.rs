//! Schemas in the dialect of a client application's models: each entry of a list keeps to the rules
//! of its readers, and a call that such a model would make works.

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Plan, Ringway, Service, Setup, json_answer, rpc};

const DIALECTS: [&str; 4] = ["full", "portable", "gemini", "openai_strict"];

/// Everything that dialects differ in.
const BOOK: (&str, &str, &str, &str) = (
    "book",
    "POST",
    "/book/{room}",
    r##"fields = [
    { source_field_name = "room", location = "path", type = "integer", required = true },
    { source_field_name = "guest.name", location = "body", required = true, description = "Who comes." },
    { source_field_name = "guest.age", location = "body", type = "integer" },
    { source_field_name = "from", location = "body", format = "date", default = "2030-01-01" },
    { source_field_name = "at", location = "body", format = "date-time" },
    { source_field_name = "level", location = "body", type = "integer", enum = [1, 2, 3] },
    { source_field_name = "labels", location = "body", type = "object", additional_properties = true },
    { source_field_name = "beds[*].wide", location = "body", type = "boolean", required = true },
    { source_field_name = "extras[*]", location = "body" },
    { source_field_name = "price", location = "body", schema = { anyOf = [{ type = "number" }, { "$ref" = "#/$defs/sum" }], "$defs" = { sum = { type = "object", properties = { amount = { type = "number" }, currency = { type = ["string", "null"] } }, required = ["amount"] } } } },
]"##,
);
const NOTHING: (&str, &str, &str, &str) = ("nothing", "GET", "/nothing", "");

/// A value that may be cleared, and need not be said.
const NOTE: (&str, &str, &str, &str) = (
    "note",
    "PATCH",
    "/note",
    r#"fields = [
    { source_field_name = "text", location = "body", required = true },
    { source_field_name = "until", location = "body", schema = { type = ["string", "null"] } },
]"#,
);

/// Too much at once, and a default that is sent.
const PAGES: (&str, &str, &str, &str) = (
    "pages",
    "GET",
    "/pages",
    r#"budget = { rows = 2 }
fields = [
    { source_field_name = "size", location = "query", type = "integer", default = 50, send_default = true },
    { source_field_name = "order", location = "query", default = "up" },
]"#,
);

fn server(service: &Service) -> Ringway {
    let clients = DIALECTS.map(|dialect| {
        format!(
            "[[client_application]]\ntenant = \"demo\"\nid = \"{dialect}\"\nopen = true\n\
             schema_dialect = \"{dialect}\"\n\
             [[assignment]]\ntenant = \"demo\"\nclient_application = \"{dialect}\"\n\
             toolset = \"api\"\n"
        )
    });
    // Meta tools are written in the dialect too.
    let search = DIALECTS.map(|dialect| {
        format!(
            "[[client_application]]\ntenant = \"demo\"\nid = \"search_{dialect}\"\nopen = true\n\
             schema_dialect = \"{dialect}\"\ntool_listing = \"search\"\n\
             [[assignment]]\ntenant = \"demo\"\nclient_application = \"search_{dialect}\"\n\
             toolset = \"api\"\ndiscovery_mode = \"data_structure_only\"\n"
        )
    });
    let text = clients.concat() + &search.concat();
    Setup::new().api(&service.base(), &[BOOK, NOTHING, NOTE, PAGES]).catalog(&text).start()
}

fn client(server: &Ringway, id: &str) -> Client {
    Client::keyless(server, &format!("demo/{id}")).in_session(NEWEST)
}

/// The input schemas of all that is listed, by name.
fn schemas(client: &Client) -> Vec<(String, Value)> {
    let result = client.post(&rpc(1, "tools/list", json!({}))).expect(200).result();
    let tools = result["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["inputSchema"].clone()))
        .collect()
}

fn schema(client: &Client, name: &str) -> Value {
    let mut all = schemas(client).into_iter();
    all.find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// Every schema in `schema`, itself among them, with its depth.
fn each<'a>(schema: &'a Value, depth: usize, all: &mut Vec<(&'a Value, usize)>) {
    all.push((schema, depth));
    for (_, member) in schema["properties"].as_object().into_iter().flatten() {
        each(member, depth + 1, all);
    }
    for word in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(word).filter(|inner| inner.is_object()) {
            each(inner, depth + 1, all);
        }
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for inner in schema[word].as_array().into_iter().flatten() {
            each(inner, depth, all);
        }
    }
}

fn all(schema: &Value) -> Vec<(&Value, usize)> {
    let mut all = Vec::new();
    each(schema, 0, &mut all);
    all
}

fn names(schema: &Value) -> Vec<&String> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name).collect()
}

fn is_portable(root: &Value) {
    assert_eq!(root["type"], "object");
    for word in ["anyOf", "oneOf", "allOf", "not", "$ref", "$defs", "enum"] {
        assert!(root.get(word).is_none(), "{word} at the root of {root}");
    }
    assert!(!root.to_string().contains("$ref") && !root.to_string().contains("$defs"), "{root}");
    for (schema, _) in all(root) {
        assert!(schema.get("type").is_none_or(Value::is_string), "{schema}");
        assert!(schema["type"] != "array" || schema["items"].is_object(), "{schema}");
    }
}

fn is_for_gemini(root: &Value) {
    const WORDS: [&str; 8] =
        ["type", "format", "description", "nullable", "enum", "items", "properties", "required"];
    assert_eq!(root["type"], "object");
    for (schema, depth) in all(root) {
        let words = schema.as_object().unwrap();
        assert!(words.keys().all(|word| WORDS.contains(&word.as_str())), "{schema}");
        let kind = schema["type"].as_str().unwrap();
        assert!(kind != "array" || schema["items"].is_object(), "{schema}");
        // An object without properties is refused; only the parameters as a whole may have none.
        assert!(depth == 0 || kind != "object" || !names(schema).is_empty(), "{schema}");
        let values = schema["enum"].as_array().into_iter().flatten();
        assert!(values.into_iter().all(|value| kind == "string" && value.is_string()), "{schema}");
        let formats: &[&str] = match kind {
            "string" => &["date-time"],
            "integer" => &["int32", "int64"],
            "number" => &["float", "double"],
            _ => &[],
        };
        let format = schema.get("format").and_then(Value::as_str);
        assert!(format.is_none_or(|format| formats.contains(&format)), "{schema}");
    }
}

fn is_for_openai(root: &Value) {
    assert!(root["type"] == "object" && root.get("anyOf").is_none(), "{root}");
    for (schema, depth) in all(root) {
        assert!(schema.get("default").is_none() && schema.get("$ref").is_none(), "{schema}");
        assert!(schema.get("oneOf").is_none() && schema.get("allOf").is_none(), "{schema}");
        if schema["type"] == "object" || schema["type"] == json!(["object", "null"]) {
            assert_eq!(schema["additionalProperties"], false, "{schema}");
            let required: Vec<&str> =
                schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(required, names(schema), "{schema}");
        }
        assert!(depth <= 10);
    }
}

fn check(dialect: &str, schema: &Value) {
    match dialect {
        "portable" => is_portable(schema),
        "gemini" => is_for_gemini(schema),
        "openai_strict" => is_for_openai(schema),
        _ => assert!(jsonschema::validator_for(schema).is_ok(), "{schema}"),
    }
}

#[test]
fn every_entry_of_a_list_keeps_to_the_rules_of_its_dialect() {
    let service = Service::echo();
    let server = server(&service);
    for dialect in DIALECTS {
        for id in [dialect.to_owned(), format!("search_{dialect}")] {
            let schemas = schemas(&client(&server, &id));
            assert!(schemas.len() >= 2, "{schemas:?}");
            for (name, schema) in &schemas {
                eprintln!("{id} {name}");
                check(dialect, schema);
            }
        }
    }
}

/// What arrives at the API for a call with these arguments, of a client that was shown `dialect`.
fn sent(server: &Ringway, service: &Service, dialect: &str, arguments: &Value) -> (String, Value) {
    let client = client(server, dialect);
    if dialect != "gemini" {
        // A model is held to what it was shown.
        let shown = schema(&client, "book");
        let validator = jsonschema::validator_for(&shown).unwrap();
        let errors: Vec<_> =
            validator.iter_errors(arguments).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    let result = client.called("book", arguments.clone());
    assert_eq!(result["isError"], false, "{result}");
    let asked = service.asked();
    (asked.target.clone(), asked.json())
}

#[test]
fn a_call_made_as_its_models_make_it_arrives_the_same() {
    let service = Service::echo();
    let server = server(&service);
    let whole = json!({
        "guest": { "name": "A", "age": 7 }, "level": 2, "labels": { "vip": true },
        "beds": [{ "wide": true }], "extras": ["tea"], "price": { "amount": 12.5 },
    });
    let expected = ("/book/10".to_owned(), whole.clone());
    let with = |more: &[(&str, Value)]| {
        let mut arguments = whole.clone();
        arguments["room"] = 10.into();
        for (name, value) in more {
            arguments[*name] = value.clone();
        }
        arguments
    };
    assert_eq!(sent(&server, &service, "full", &with(&[])), expected);
    assert_eq!(sent(&server, &service, "portable", &with(&[])), expected);
    let gemini = with(&[("level", json!("2")), ("labels", json!("{\"vip\":true}"))]);
    let shown = schema(&client(&server, "gemini"), "book");
    assert_eq!(shown["properties"]["labels"]["type"], "string");
    assert_eq!(shown["properties"]["level"]["enum"], json!(["1", "2", "3"]));
    // Which of several forms it was shown, is the dialect's choice: an amount is one of them.
    let mut plain = gemini.clone();
    plain["price"] = if shown["properties"]["price"]["type"] == "number" {
        json!(12.5)
    } else {
        json!({ "amount": 12.5 })
    };
    let mut as_shown = expected.clone();
    as_shown.1["price"] = plain["price"].clone();
    assert_eq!(sent(&server, &service, "gemini", &plain), as_shown);
    // With `strict` everything is there, `null` where there is nothing.
    let strict = with(&[
        ("from", Value::Null),
        ("at", Value::Null),
        ("labels", json!("{\"vip\":true}")),
        ("price", json!({ "amount": 12.5, "currency": null })),
    ]);
    assert_eq!(sent(&server, &service, "openai_strict", &strict), expected);
}

#[test]
fn a_model_that_leaves_everything_out_by_null_sends_nothing_of_it() {
    let service = Service::echo();
    let server = server(&service);
    let arguments = json!({
        "room": 1, "guest": { "name": "A", "age": null }, "from": null, "at": null, "level": null,
        "labels": null, "beds": null, "extras": null, "price": null,
    });
    let expected = ("/book/1".to_owned(), json!({ "guest": { "name": "A" } }));
    assert_eq!(sent(&server, &service, "openai_strict", &arguments), expected);
    crate::harness::eventually("the repairs are counted", || {
        server.records().iter().any(|record| record["repairs"] == 8)
    });
}

#[test]
fn arguments_are_always_checked_against_the_full_schema() {
    let service = Service::echo();
    let server = server(&service);
    for dialect in DIALECTS {
        let client = client(&server, dialect);
        for (wrong, part) in [
            (json!({ "room": 1, "guest": {} }), "name"),
            (json!({ "room": 1, "guest": { "name": "A" }, "level": 7 }), "level"),
            (json!({ "room": 1, "guest": { "name": "A" }, "labels": "no object" }), "labels"),
            (json!({ "room": 1, "guest": { "name": "A" }, "beds": [{}] }), "wide"),
            (json!({ "room": "one", "guest": { "name": "A" } }), "room"),
        ] {
            let result = client.called("book", wrong);
            assert_eq!(result["isError"], true, "{dialect}: {result}");
            assert!(result["content"][0]["text"].as_str().unwrap().contains(part), "{result}");
        }
    }
    assert!(service.is_quiet());
    // What is declared as a text stays what it is, however it looks.
    let client = client(&server, "openai_strict");
    let text = json!({ "room": "7", "guest": { "name": "10" }, "extras": ["{\"a\":1}", "null"] });
    assert_eq!(client.called("book", text)["isError"], false);
    let expected = json!({ "guest": { "name": "10" }, "extras": ["{\"a\":1}", "null"] });
    assert_eq!(service.asked().json(), expected);
}

#[test]
fn what_a_strict_client_leaves_out_is_not_cleared() {
    let service = Service::echo();
    let server = server(&service);
    let given = json!({ "text": "a", "until": null });
    for (dialect, sent) in [("openai_strict", json!({ "text": "a" })), ("full", given.clone())] {
        assert_eq!(client(&server, dialect).called("note", given.clone())["isError"], false);
        assert_eq!(service.asked().json(), sent, "{dialect}");
    }
}

#[test]
fn parts_of_a_result_and_defaults_work_in_every_dialect() {
    let service = Service::start(|asked| {
        let rows: Vec<u32> = (0..5).collect();
        Plan::Answer(json_answer(&json!({ "target": asked.target, "rows": rows }).to_string()))
    });
    let server = server(&service);
    for dialect in DIALECTS {
        let client = client(&server, dialect);
        let shown = schema(&client, "pages");
        assert_eq!(names(&shown), ["next", "order", "size"], "{dialect}");
        // With `strict` all that is left out is `null`.
        let strict = |next: Value| json!({ "next": next, "order": null, "size": null });
        let is_strict = dialect == "openai_strict";
        let arguments = if is_strict { strict(Value::Null) } else { json!({}) };
        let first = client.called("pages", arguments);
        assert_eq!(first["structuredContent"]["rows"], json!([0, 1]), "{dialect}: {first}");
        assert_eq!(first["structuredContent"]["target"], "/pages?size=50", "{dialect}");
        let next = first["_meta"]["io.ringway/rest"]["next"].clone();
        let arguments = if is_strict { strict(next) } else { json!({ "next": next }) };
        let part = client.called("pages", arguments);
        assert_eq!(part["structuredContent"]["continues"][0]["rows"], json!([2, 3]), "{dialect}");
    }
}

#[test]
fn lazy_tools_of_a_strict_client_name_their_arguments() {
    let service = Service::echo();
    let server = server(&service);
    server.apply(
        "[[assignment]]\ntenant = \"demo\"\nclient_application = \"openai_strict\"\n\
         toolset = \"api\"\ndiscovery_mode = \"lazy\"\n",
    );
    let client = client(&server, "openai_strict");
    for (_, schema) in schemas(&client) {
        is_for_openai(&schema);
    }
    // A placeholder would keep out what it stands for.
    let shown = schema(&client, "book");
    assert!(names(&shown).contains(&&"guest".to_owned()), "{shown}");
    let told = client.called("discover_tool_schema", json!({ "tool_id": "book" }));
    let full = &told["structuredContent"]["inputSchema"];
    assert_eq!(full["properties"]["guest"]["properties"]["name"]["description"], "Who comes.");
}
