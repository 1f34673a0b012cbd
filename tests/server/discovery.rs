//! How much of a schema lists show, and how clients get the rest.

use serde_json::{Map, Value, json};

use crate::harness::{Client, NEWEST, Request, Ringway, Service, Setup, call, rpc};

const ORDER: (&str, &str, &str, &str) = (
    "order",
    "POST",
    "/order",
    r#"fields = [
    { source_field_name = "customer.name", location = "body", required = true, description = "Who pays." },
    { source_field_name = "due", location = "body", format = "date", description = "When." },
    { source_field_name = "kind", location = "body", enum = ["gift", "sale"] },
    { source_field_name = "lines[*].count", location = "body", type = "integer", required = true },
    { source_field_name = "notes[*]", location = "body" },
    { source_field_name = "labels", location = "body", type = "object", additional_properties = { type = "string", description = "A label." } },
]
response_fields = [
    { source_field_name = "target", exposed_field_name = "where", description = "What was asked." },
]"#,
);
/// Hidden: from everybody, by a policy, by another toolset.
const GONE: (&str, &str, &str, &str) = ("gone", "GET", "/gone", "enabled = false");
const DENIED: (&str, &str, &str, &str) = ("denied", "DELETE", "/denied", "");

/// Client applications of the toolset, which is lazy: one for each mode.
fn server(service: &Service) -> Ringway {
    let mut text = String::new();
    for (client, mode) in [
        ("full", "discovery_mode = \"full\""),
        ("shape", "discovery_mode = \"data_structure_only\""),
        ("lazy", ""),
    ] {
        text += &format!(
            "[[client_application]]\ntenant = \"demo\"\nid = \"{client}\"\nopen = true\n\
             [[assignment]]\ntenant = \"demo\"\nclient_application = \"{client}\"\n\
             toolset = \"api\"\n{mode}\n\
             policy = {{ rules = [{{ effect = \"deny\", side_effects = [\"destructive\"] }}] }}\n"
        );
    }
    let tenant = "[[tool]]\ntenant = \"demo\"\ntoolset = \"api\"\nname = \"first\"\n\
                  description = \"A tool.\"\nmethod = \"GET\"\npath = \"/first\"\n";
    text += tenant;
    // What is foreign is of another tenant.
    text += &format!(
        "[[connection]]\ntenant = \"other\"\nid = \"api\"\nbase_url = \"{}\"\n\
         [[toolset]]\ntenant = \"other\"\nid = \"api\"\nkind = \"rest\"\nconnection = \"api\"\n\
         [[assignment]]\ntenant = \"other\"\nclient_application = \"assistant\"\ntoolset = \"api\"\n\
         [[tool]]\ntenant = \"other\"\ntoolset = \"api\"\nname = \"foreign\"\n\
         description = \"A tool.\"\nmethod = \"GET\"\npath = \"/foreign\"\n",
        service.base()
    );
    let mut server = Setup::new()
        .set("runtime.cores", 1)
        .api(&service.base(), &[ORDER, GONE, DENIED])
        .catalog(&text)
        .prepare();
    let catalog = server.folder().join("catalog.toml");
    let written = std::fs::read_to_string(&catalog).unwrap();
    let lazy = "id = \"api\"\nkind = \"rest\"\nconnection = \"api\"\n";
    let written = written.replacen(lazy, &format!("{lazy}discovery_mode = \"lazy\"\n"), 1);
    std::fs::write(&catalog, written).unwrap();
    server.start();
    server
}

fn client(server: &Ringway, id: &str) -> Client {
    Client::keyless(server, &format!("demo/{id}")).in_session(NEWEST)
}

fn listed(client: &Client) -> Map<String, Value> {
    let result = client.post(&rpc(1, "tools/list", json!({}))).expect(200).result();
    let tools = result["tools"].as_array().unwrap().iter();
    tools.map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool.clone())).collect()
}

/// The schema without human text, by the issue's words.
fn stripped(schema: &Value) -> Value {
    let mut out = Map::new();
    for (word, value) in schema.as_object().unwrap() {
        match word.as_str() {
            "type" | "required" => drop(out.insert(word.clone(), value.clone())),
            "items" => drop(out.insert(word.clone(), stripped(value))),
            "additionalProperties" => {
                let value = if value.is_object() { stripped(value) } else { value.clone() };
                out.insert(word.clone(), value);
            }
            "properties" => {
                let members = value.as_object().unwrap().iter();
                let members = members.map(|(name, schema)| (name.clone(), stripped(schema)));
                out.insert(word.clone(), members.collect::<Map<_, _>>().into());
            }
            _ => {}
        }
    }
    out.into()
}

#[test]
fn lists_show_the_whole_schema_or_its_structure_or_a_placeholder() {
    let service = Service::echo();
    let server = server(&service);
    let full = listed(&client(&server, "full"));
    assert_eq!(full.keys().collect::<Vec<_>>(), ["first", "order"], "nothing to discover");
    let schema = &full["order"]["inputSchema"];
    assert_eq!(schema["properties"]["customer"]["properties"]["name"]["description"], "Who pays.");
    assert_eq!(schema["properties"]["notes"]["items"]["type"], "string");

    let shape = listed(&client(&server, "shape"));
    assert_eq!(shape["order"]["inputSchema"], stripped(schema));
    let output = &full["order"]["outputSchema"];
    assert_eq!(shape["order"]["outputSchema"], stripped(output));
    assert!(!shape["order"]["inputSchema"].to_string().contains("description"));
    assert!(shape.contains_key("discover_tool_schema"));

    let lazy = listed(&client(&server, "lazy"));
    let properties = lazy["order"]["inputSchema"]["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["_schema_discovery"]);
    assert!(lazy["order"].get("outputSchema").is_none());
    assert_eq!(lazy["discover_tool_schema"]["inputSchema"]["required"], json!(["tool_id"]));
    // An assignment that is changed changes what is shown.
    server.apply(
        "[[assignment]]\ntenant = \"demo\"\nclient_application = \"lazy\"\ntoolset = \"api\"\n\
         discovery_mode = \"full\"\n",
    );
    let now = listed(&client(&server, "lazy"));
    assert_eq!(now["order"]["inputSchema"], *schema);
    assert!(!now.contains_key("discover_tool_schema"));
}

#[test]
fn discovery_tells_the_full_schemas_with_their_version_and_hash() {
    let service = Service::echo();
    let server = server(&service);
    let full = listed(&client(&server, "full"))["order"].clone();
    let mut hashes = Vec::new();
    for mode in ["shape", "lazy"] {
        let client = client(&server, mode);
        for client in [client.in_session("2025-06-18"), client] {
            let told = client.called("discover_tool_schema", json!({ "tool_id": "order" }));
            let told = &told["structuredContent"];
            assert_eq!(told["inputSchema"], full["inputSchema"]);
            assert_eq!(told["outputSchema"], full["outputSchema"]);
            assert!(told["schemaVersion"].as_str().is_some_and(|version| !version.is_empty()));
            hashes.push(told["schemaHash"].as_str().unwrap().to_owned());
        }
    }
    assert!(hashes.iter().all(|hash| hash.len() == 64 && *hash == hashes[0]), "{hashes:?}");
    let client = client(&server, "lazy");
    let first = client.called("discover_tool_schema", json!({ "tool_id": "first" }));
    assert!(first["structuredContent"].get("outputSchema").is_none(), "{first}");
    // Recorded as what it is, with the schema that was told.
    let records = server.records();
    let of = |kind: &str| records.iter().filter(|record| record["call_type"] == kind).count();
    assert_eq!(of("tool_execution"), 0, "{records:#?}");
    crate::harness::eventually("all discoveries are recorded", || {
        let records = server.records();
        let found = records.iter().filter(|record| record["call_type"] == "schema_discovery");
        found.filter(|record| record["schema_hash"] == *hashes[0]).count() == 4
    });
    // A changed field has another hash.
    let (name, method, path, more) = ORDER;
    server.apply(&format!(
        "[[tool]]\ntenant = \"demo\"\ntoolset = \"api\"\nname = \"{name}\"\n\
         description = \"A tool.\"\nmethod = \"{method}\"\npath = \"{path}\"\n{}\n",
        more.replace("\"gift\"", "\"present\"")
    ));
    let told = client.called("discover_tool_schema", json!({ "tool_id": "order" }));
    assert_ne!(told["structuredContent"]["schemaHash"], *hashes[0]);
}

#[test]
fn what_is_unknown_and_what_is_not_shown_cannot_be_told_apart() {
    let service = Service::echo();
    let server = server(&service);
    let client = client(&server, "lazy");
    let error = |tool: &str| {
        let asked = call(1, "discover_tool_schema", json!({ "tool_id": tool }));
        let mut reply = client.reply(&asked);
        let message = reply["error"]["message"].as_str().unwrap().replace(tool, "{}");
        reply["error"]["message"] = message.into();
        reply
    };
    let unknown = error("never_was");
    assert_eq!(unknown["error"]["code"], -32602);
    for hidden in ["gone", "denied", "foreign", "runtime_status"] {
        assert_eq!(error(hidden), unknown, "{hidden}");
    }
    // The same as the answer to a call.
    let called = client.reply(&call(1, "never_was", json!({})));
    assert_eq!(called["error"]["code"], -32602);
    // The meta tool itself is not there where nothing has to be discovered.
    let full = self::client(&server, "full");
    let reply = full.reply(&call(1, "discover_tool_schema", json!({ "tool_id": "order" })));
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    assert!(service.is_quiet());
}

#[test]
fn a_placeholder_alone_is_advice_and_beside_arguments_nothing_on_every_way() {
    let service = Service::echo();
    let server = server(&service);
    let client = client(&server, "lazy");
    let plain = |arguments: Value| {
        let request = Request::new("POST", "/runtime/demo/lazy/tools/order").json(&arguments);
        client.send(&request)
    };
    let alone = json!({ "_schema_discovery": "yes" });
    let told = client.called("order", alone.clone());
    let advice = told["content"][0]["text"].as_str().unwrap();
    assert_eq!(told["isError"], true);
    assert!(advice.contains("discover_tool_schema") && advice.contains("order"), "{advice}");
    let over_http = plain(alone).expect(400).json();
    assert_eq!(over_http["content"][0]["text"], advice);
    assert!(service.is_quiet());
    let whole = json!({ "_schema_discovery": "x", "customer": { "name": "A" } });
    assert_eq!(client.called("order", whole.clone())["isError"], false);
    assert_eq!(service.asked().json(), json!({ "customer": { "name": "A" } }));
    plain(whole).expect(200);
    assert_eq!(service.asked().json(), json!({ "customer": { "name": "A" } }));
    // What is left is checked like any arguments: on the full schema.
    let told = client.called("order", json!({ "_schema_discovery": "x", "kind": "loan" }));
    assert_eq!(told["isError"], true);
    assert!(told["content"][0]["text"].as_str().unwrap().contains("customer"), "{told}");
}
