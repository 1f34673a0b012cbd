//! Names of tools and of their arguments: what models can write, told apart, always the same, and
//! each reaching the operation it stands for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Request, Ringway, Service, Setup, rpc};

/// Operations of the two toolsets. Several want the same name in each view, or one that belongs to
/// the runtime.
const LEFT: [&str; 6] = [
    "find",
    "call_tool",
    "a.b",
    "größe messen",
    "a very long name that somebody gave to one operation of an interface, first",
    "same start of the name, then a tail one",
];
const RIGHT: [&str; 7] = [
    "find",
    "discover_tool_schema",
    "a b",
    "名前を変える",
    "検索",
    "a very long name that somebody gave to one operation of an interface, second",
    "same start of the name, then a tail two",
];
/// Client applications and their name budgets.
const CLIENTS: [(&str, usize); 3] = [("narrow", 16), ("usual", 48), ("wide", 64)];

/// A tool of each operation, whose path tells which one it is.
fn tools() -> Vec<(String, String)> {
    let of = |toolset: &str, operations: &[&str]| -> Vec<(String, String)> {
        operations
            .iter()
            .enumerate()
            .map(|(place, name)| {
                let path = format!("/{toolset}/{place}");
                let text = format!(
                    "[[tool]]\ntenant = \"demo\"\ntoolset = \"{toolset}\"\nname = \"{name}\"\n\
                     description = \"A tool.\"\nmethod = \"GET\"\npath = \"{path}\"\n"
                );
                (path, text)
            })
            .collect()
    };
    [of("left", &LEFT), of("right", &RIGHT)].concat()
}

/// The catalog, its entities in this order or the other way round.
fn catalog(base: &str, is_reversed: bool) -> String {
    let mut parts =
        vec![format!("[[connection]]\ntenant = \"demo\"\nid = \"api\"\nbase_url = \"{base}\"\n")];
    for toolset in ["left", "right"] {
        parts.push(format!(
            "[[toolset]]\ntenant = \"demo\"\nid = \"{toolset}\"\nkind = \"rest\"\n\
             connection = \"api\"\n"
        ));
        for (client, _) in CLIENTS {
            parts.push(format!(
                "[[assignment]]\ntenant = \"demo\"\nclient_application = \"{client}\"\n\
                 toolset = \"{toolset}\"\n"
            ));
        }
    }
    for (client, budget) in CLIENTS {
        let budget = match client {
            "usual" => String::new(),
            _ => format!("name_budget = {budget}\n"),
        };
        parts.push(format!(
            "[[client_application]]\ntenant = \"demo\"\nid = \"{client}\"\nopen = true\n{budget}"
        ));
    }
    parts.extend(tools().into_iter().map(|(_, text)| text));
    if is_reversed {
        parts.reverse();
    }
    parts.concat()
}

fn open(server: &Ringway, client: &str) -> Client {
    Client::keyless(server, &format!("demo/{client}")).in_session(NEWEST)
}

fn listed(server: &Ringway, client: &str) -> Vec<Value> {
    let client = open(server, client);
    let result = client.post(&rpc(1, "tools/list", json!({}))).expect(200).result();
    result["tools"].as_array().unwrap().clone()
}

/// Names with the titles beside them.
fn names(server: &Ringway, client: &str) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tools = listed(server, client);
    tools.iter().map(|tool| (text(&tool["name"]), text(&tool["title"]))).collect()
}

fn is_plain(name: &str) -> bool {
    let starts = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.as_bytes().first().is_some_and(starts)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[test]
fn every_name_can_be_written_within_the_budget_and_calls_its_own_operation() {
    let service = Service::echo();
    let server = Setup::new().catalog(&catalog(&service.base(), false)).start();
    for (client, budget) in CLIENTS {
        let names = names(&server, client);
        assert_eq!(names.len(), LEFT.len() + RIGHT.len(), "{client}: unique");
        let client = open(&server, client);
        let mut reached = BTreeSet::new();
        for (name, title) in &names {
            assert!(is_plain(name) && name.len() <= budget, "{name}");
            let result = client.called(name, json!({}));
            let target = result["structuredContent"]["target"].as_str().unwrap().to_owned();
            let (toolset, place) = target.trim_start_matches('/').split_once('/').unwrap();
            let operations: &[&str] = if toolset == "left" { &LEFT } else { &RIGHT };
            let operation = operations[place.parse::<usize>().unwrap()];
            // What it is called where it comes from stands in the title wherever the name differs.
            assert!(title == operation || name == operation, "{name}: {title}, {operation}");
            reached.insert(target);
            // Plain HTTP knows it by the same name.
            let path = client.path.replace("/mcp", &format!("/tools/{name}"));
            let request = Request::new("POST", &path).json(&json!({}));
            let answer = client.send(&request).expect(200).json();
            assert_eq!(answer["structuredContent"], result["structuredContent"]);
        }
        let all: BTreeSet<String> = tools().into_iter().map(|(path, _)| path).collect();
        assert_eq!(reached, all);
    }
}

#[test]
fn names_do_not_depend_on_the_order_of_files_nor_on_other_toolsets_coming_and_going() {
    let service = Service::echo();
    let (one, other) = (catalog(&service.base(), false), catalog(&service.base(), true));
    let server = Setup::new().catalog(&one).start();
    let reversed = Setup::new().catalog(&other).start();
    let before: Vec<_> = CLIENTS.iter().map(|(client, _)| names(&server, client)).collect();
    for ((client, _), before) in CLIENTS.iter().zip(&before) {
        assert_eq!(names(&reversed, client), *before, "{client}");
    }
    // Imported again in the other order, nothing differs at all.
    let file = server.write("reversed.toml", &other);
    let told = server.command(&["apply", &file]).succeeded().stdout;
    assert!(told.contains("0 added, 0 changed, 0 removed"), "{told}");
    // Away and back.
    let toggle = |enabled: bool| {
        server.apply(&format!(
            "[[assignment]]\ntenant = \"demo\"\nclient_application = \"usual\"\n\
             toolset = \"right\"\nenabled = {enabled}\n"
        ));
        names(&server, "usual")
    };
    let alone = toggle(false);
    // What nobody contests has the same name as before.
    for (name, title) in &alone {
        let contested = ["find", "a.b"].iter().any(|one| name == one || title == one);
        assert!(contested || before[1].contains(&(name.clone(), title.clone())), "{name}");
    }
    assert_eq!(toggle(true), before[1]);
    // And after a restart.
    let mut server = server;
    server.kill_and_restart();
    for ((client, _), before) in CLIENTS.iter().zip(&before) {
        assert_eq!(names(&server, client), *before, "{client}");
    }
}

#[test]
fn every_argument_has_a_key_that_can_be_written_and_arrives_under_its_own_name() {
    let long = "n".repeat(80);
    let fields = format!(
        r#"fields = [
    {{ source_field_name = "$filter[a]", location = "query" }},
    {{ source_field_name = "filter_a", location = "query" }},
    {{ source_field_name = "größe.maß", location = "body", type = "integer", required = true }},
    {{ source_field_name = "größe.@id", location = "body" }},
    {{ source_field_name = "lines[*].名前", location = "body" }},
    {{ source_field_name = "{long}", location = "body" }},
]"#
    );
    let service = Service::echo();
    let tool = ("measure", "POST", "/measure", fields.as_str());
    let server = Setup::new().api(&service.base(), &[tool]).start();
    let tools = listed(&server, "public");
    let schema = &tools[0]["inputSchema"];
    let keys = |schema: &Value| -> Vec<String> {
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let find = |schema: &Value, part: &str| -> String {
        let mut found = keys(schema).into_iter().filter(|key| key.contains(part));
        found.next().unwrap_or_else(|| panic!("no {part} in {schema}"))
    };
    for key in keys(schema) {
        assert!(is_plain(&key) && key.len() <= 64, "{key}");
    }
    assert_eq!(keys(schema).len(), 5, "{schema}");
    // Fill each by the type it shows, and remember under which key.
    let size =
        keys(schema).into_iter().find(|key| schema["properties"][key]["type"] == "object").unwrap();
    let inner = &schema["properties"][&size];
    let id = find(inner, "id");
    let measure = keys(inner).into_iter().find(|key| *key != id).unwrap();
    let lines = find(schema, "lines");
    let name = keys(&schema["properties"][&lines]["items"]).remove(0);
    assert!([&id, &measure, &name].iter().all(|key| is_plain(key)));
    let arguments = json!({
        &size: { &measure: 7, &id: "x" },
        &lines: [{ &name: "n1" }, { &name: "n2" }],
        find(schema, "nnn"): "long",
        "filter_a": "plain",
        keys(schema).into_iter().find(|key| key.starts_with("filter_a_")).unwrap(): "odd",
    });
    let client = open(&server, "public");
    assert_eq!(client.called("measure", arguments.clone())["isError"], false);
    let asked = service.asked();
    assert!(asked.target.contains("filter_a=plain"), "{}", asked.target);
    let odd =
        asked.target.contains("%24filter%5Ba%5D=odd") || asked.target.contains("$filter[a]=odd");
    assert!(odd, "{}", asked.target);
    let expected = json!({
        "größe": { "maß": 7, "@id": "x" },
        "lines": [{ "名前": "n1" }, { "名前": "n2" }],
        long: "long",
    });
    assert_eq!(asked.json(), expected);
    // Errors speak of the key that the client knows.
    let told = client.called("measure", json!({ &size: { &measure: "seven" } }));
    let text = told["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&format!("{size}/{measure}")) || text.contains(&measure), "{text}");
}
