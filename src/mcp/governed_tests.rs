//! Prompts, resources and meta tools as a client sees them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::catalog::{MetaTool, View, fixture};
use crate::json::OwnedRaw;
use crate::rpc::{self, Incoming, RpcError};

const CATALOG: &str = r#"
[[tenant]]
id = "acme"

[[connection]]
tenant = "acme"
id = "api"
base_url = "http://api.example"

[[client_application]]
tenant = "acme"
id = "desk"
system_prompt = "You serve the desk."

[[client_application]]
tenant = "acme"
id = "finder"
tool_listing = "search"
favourites = ["list_pets"]

[[toolset]]
tenant = "acme"
id = "pets"
kind = "rest"
connection = "api"
title = "Pets"
system_prompt = "Pets are \"animals\"."
discovery_mode = "lazy"

[[toolset]]
tenant = "acme"
id = "quiet"
kind = "rest"
connection = "api"

[[tool]]
tenant = "acme"
toolset = "pets"
name = "list_pets"
description = "Lists the pets of the shop."
method = "GET"
path = "/pets"
fields = [{ source_field_name = "kind", location = "query", description = "Cat or dog" }]
response_fields = [{ source_field_name = "name" }]

[[tool]]
tenant = "acme"
toolset = "quiet"
name = "weigh"
description = "Tells how heavy an animal is."
method = "GET"
path = "/weight"

[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "pets"
include_client_prompt = true
prompt = "Be brief."

[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "quiet"

[[assignment]]
tenant = "acme"
client_application = "finder"
toolset = "pets"

[[assignment]]
tenant = "acme"
client_application = "finder"
toolset = "quiet"
"#;

fn view(client_application: &str) -> Arc<View> {
    fixture::view_of(client_application, CATALOG)
}

fn step(view: &View, revision: Revision, page_size: usize, text: &str) -> Step<'static> {
    let server = ServerInfo::new("ringway", "Ringway", "1.2.3", true, 60_000);
    let context = DispatchContext { view, revision, in_session: false, page_size, server: &server };
    let text: &'static str = text.to_owned().leak();
    let Incoming::Single(message) = rpc::parse(text.as_bytes()).unwrap() else { panic!("{text}") };
    dispatch(&context, &message)
}

fn ask_in(
    view: &View,
    revision: Revision,
    page_size: usize,
    method: &str,
    params: &Value,
) -> Result<Value, RpcError> {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    match step(view, revision, page_size, &request.to_string()) {
        Step::Reply(body) => Ok(serde_json::from_slice(&body.as_bytes()).unwrap()),
        Step::Error(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

fn ask(view: &View, method: &str, params: &Value) -> Result<Value, RpcError> {
    ask_in(view, Revision::NEWEST_WITH_SESSIONS, 0, method, params)
}

const PROMPT: &str = "Pets are \"animals\".\n\nYou serve the desk.\n\nBe brief.";

#[test]
fn an_effective_prompt_is_a_prompt_and_a_resource() {
    let desk = view("desk");
    let uri = "runtime://toolsets/pets/system-prompt";
    let listed = ask(&desk, "prompts/list", &json!({})).unwrap();
    assert_eq!(listed["prompts"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["prompts"][0]["name"], "pets");
    let got = ask(&desk, "prompts/get", &json!({"name": "pets"})).unwrap();
    let content = json!({"type": "text", "text": PROMPT});
    assert_eq!(got["messages"], json!([{"role": "user", "content": content}]));
    let listed = ask(&desk, "resources/list", &json!({})).unwrap();
    assert_eq!(listed["resources"][0]["uri"], uri);
    let read = ask(&desk, "resources/read", &json!({"uri": uri})).unwrap();
    let contents = json!([{"uri": uri, "mimeType": "text/plain", "text": PROMPT}]);
    assert_eq!(read, json!({"contents": contents}));
    assert_eq!(ask(&desk, "prompts/get", &json!({"name": "quiet"})).unwrap_err().code, -32602);
    let foreign = json!({"uri": "runtime://toolsets/quiet/system-prompt"});
    assert_eq!(ask(&desk, "resources/read", &foreign).unwrap_err().code, -32002);
}

#[test]
fn lists_of_prompts_and_resources_have_the_form_of_the_revision_and_come_in_pages() {
    let desk = view("desk");
    for revision in Revision::ALL {
        let titled = revision >= Revision::V20250618;
        for page_size in [0, 1] {
            let ask = |method| ask_in(&desk, revision, page_size, method, &json!({})).unwrap();
            assert_eq!(ask("prompts/list")["prompts"][0].get("title").is_some(), titled);
            assert_eq!(ask("resources/list")["resources"][0].get("title").is_some(), titled);
            let templates = ask("resources/templates/list");
            assert_eq!(templates["resourceTemplates"][0].get("title").is_some(), titled);
            let count = templates["resourceTemplates"].as_array().unwrap().len();
            assert_eq!(count, if page_size == 0 { 2 } else { page_size });
            assert_eq!(templates.get("nextCursor").is_some(), page_size == 1);
        }
    }
    // A cursor is good for the list it was made for and for no other.
    let finder = view("finder");
    let page =
        ask_in(&finder, Revision::NEWEST_WITH_SESSIONS, 1, "tools/list", &json!({})).unwrap();
    let cursor = json!({"cursor": page["nextCursor"]});
    assert!(ask(&finder, "tools/list", &cursor).is_ok());
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        assert_eq!(ask(&finder, method, &cursor).unwrap_err().code, -32602, "{method}");
    }
}

#[test]
fn the_schema_of_a_tool_is_a_resource() {
    let desk = view("desk");
    let uri = "runtime://tools/list_pets/schema";
    let read = ask(&desk, "resources/read", &json!({"uri": uri})).unwrap();
    assert_eq!(read["contents"][0]["mimeType"], "application/json");
    let text = read["contents"][0]["text"].as_str().unwrap();
    let schemas: Value = serde_json::from_str(text).unwrap();
    let tool = desk.tool("list_pets").unwrap();
    assert_eq!(schemas["inputSchema"], *tool.input_schema());
    assert_eq!(schemas["outputSchema"], *tool.output_schema().unwrap());
    assert_eq!(schemas["schemaHash"], tool.schema_hash_text());
    for wrong in ["runtime://tools/nothing/schema", "runtime://tools//schema", "runtime://tools/"] {
        let error = ask(&desk, "resources/read", &json!({"uri": wrong})).unwrap_err();
        assert_eq!(error.code, -32002, "{wrong}");
    }
}

#[test]
fn the_rest_of_a_result_is_for_whoever_keeps_it() {
    let desk = view("desk");
    let uri = "runtime://results/abc";
    let text =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}});
    let step = step(&desk, Revision::NEWEST_WITH_SESSIONS, 0, &text.to_string());
    assert!(matches!(step, Step::ReadKept(kept) if kept == uri), "{text}");
}

fn called(meta_tool: MetaTool, arguments: &OwnedRaw) -> Result<MetaToolCall<'_>, ToolOutcome> {
    MetaToolCall::read(meta_tool, Some(arguments.as_raw()))
}

fn raw(value: &Value) -> OwnedRaw {
    OwnedRaw::parse(value.to_string().as_bytes()).unwrap()
}

#[test]
fn meta_tools_read_what_they_are_asked() {
    let arguments = raw(&json!({"tool_id": "a"}));
    let call = called(MetaTool::DiscoverToolSchema, &arguments).unwrap();
    assert!(matches!(call, MetaToolCall::Schema(name) if name == "a"));
    let arguments = raw(&json!({"name": "a"}));
    let call = called(MetaTool::DescribeTool, &arguments).unwrap();
    assert!(matches!(call, MetaToolCall::Description(name) if name == "a"));
    let arguments = OwnedRaw::parse(br#"{"name":"a","arguments":{"b":1.50}}"#).unwrap();
    let call = called(MetaTool::CallTool, &arguments).unwrap();
    let MetaToolCall::Call { name, arguments: Some(inner) } = call else { panic!("{call:?}") };
    assert_eq!((&*name, inner.as_raw().text()), ("a", r#"{"b":1.50}"#));
    let as_text = raw(&json!({"name": "a", "arguments": "{\"b\":1.50}"}));
    let call = called(MetaTool::CallTool, &as_text).unwrap();
    let MetaToolCall::Call { arguments: Some(inner), .. } = call else { panic!("{call:?}") };
    assert_eq!(inner.as_raw().text(), r#"{"b":1.50}"#);
    for (limit, expected) in [(json!(3), 3), (json!("7"), 7), (json!(null), 10)] {
        let arguments = raw(&json!({"query": "pets", "limit": limit}));
        let call = called(MetaTool::SearchTools, &arguments).unwrap();
        assert!(matches!(call, MetaToolCall::Search { limit, .. } if limit == expected));
    }
    for (meta_tool, wrong) in [
        (MetaTool::DiscoverToolSchema, json!({})),
        (MetaTool::DiscoverToolSchema, json!({"tool_id": 7})),
        (MetaTool::DiscoverToolSchema, json!({"tool_id": ""})),
        (MetaTool::DescribeTool, json!({"tool_id": "a"})),
        (MetaTool::CallTool, json!({"name": "a", "arguments": []})),
        (MetaTool::CallTool, json!({"name": "a", "arguments": "[]"})),
        (MetaTool::CallTool, json!({"name": "a", "arguments": "{"})),
        (MetaTool::CallTool, json!({"arguments": {}})),
        (MetaTool::SearchTools, json!({"query": "a", "limit": 0})),
        (MetaTool::SearchTools, json!({"query": "a", "limit": 51})),
        (MetaTool::SearchTools, json!({"query": "a", "limit": -1})),
        (MetaTool::SearchTools, json!({"query": "a", "limit": 1.5})),
    ] {
        let arguments = raw(&wrong);
        let outcome = called(meta_tool, &arguments).unwrap_err();
        assert!(matches!(outcome, ToolOutcome::InvalidArguments { .. }), "{wrong}");
    }
    assert!(MetaToolCall::read(MetaTool::SearchTools, None).is_err());
}

#[test]
fn tools_are_found_by_what_they_do() {
    let finder = view("finder");
    let listed = ask(&finder, "tools/list", &json!({})).unwrap();
    let names: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(
        names,
        ["search_tools", "describe_tool", "call_tool", "discover_tool_schema", "list_pets"]
    );
    let found = |query: &str| match search(&finder, query, 10) {
        ToolOutcome::Success { structured_json: Some(json), text } => {
            (serde_json::from_slice::<Value>(&json).unwrap(), text)
        }
        other => panic!("{other:?}"),
    };
    let (weigh, text) = found("heavy animal");
    assert_eq!((weigh["tools"][0]["name"].as_str(), text), (Some("weigh"), None));
    let (pets, _) = found("dog");
    assert_eq!(pets["tools"][0]["name"], "list_pets", "by an argument's description");
    let (nothing, text) = found("xylophone");
    assert_eq!(nothing["tools"], json!([]));
    assert!(text.unwrap().contains("2 tools"));
}

#[test]
fn a_description_has_all_that_a_call_needs() {
    let desk = view("desk");
    let tool = desk.tool("list_pets").unwrap();
    let told: Value = serde_json::from_slice(&described(tool)).unwrap();
    assert_eq!(told["name"], "list_pets");
    assert_eq!(told["toolset"], "pets");
    assert_eq!(told["inputSchema"]["properties"]["kind"]["description"], "Cat or dog");
    assert_eq!(told["sideEffect"], "read");
    assert_eq!(told["confirmationRecommended"], false);
    let schemas: Value = serde_json::from_slice(&schemas(tool)).unwrap();
    assert_eq!(schemas["tool_id"], "list_pets");
    assert_eq!(schemas["schemaVersion"], *tool.schema_version);
}
