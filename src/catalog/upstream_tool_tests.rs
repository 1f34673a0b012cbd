//! Tools of upstream servers in views.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::catalog::fixture::{definitions, entities};
use crate::catalog::{
    DefinitionKind, Entities, SAFETY_META, SideEffect, Snapshot, TenantId, ToolKind, ToolShape,
    ToolsetId, UpstreamTool, View,
};
use crate::json::OwnedRaw;

const BASE: &str = "
[[tenant]]
id = 'acme'
[[client_application]]
tenant = 'acme'
id = 'desk'
#client
[[connection]]
tenant = 'acme'
id = 'up'
base_url = 'http://h/mcp/?k=v'
[[toolset]]
tenant = 'acme'
id = 'up'
kind = 'mcp'
connection = 'up'
#toolset
[[assignment]]
tenant = 'acme'
client_application = 'desk'
toolset = 'up'
#assignment
";

fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"point": {"$anchor": "p", "type": "object", "properties": {"x": {"type": "number"}}}},
        "properties": {
            "at": {"$ref": "#/$defs/point"},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "count": {"type": "integer", "x-mcp-header": "Count"},
        },
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "b"}}},
        "then": {"required": ["count"]},
        "allOf": [{"anyOf": [{"required": ["kind"]}, {"required": ["at"]}]}],
        "additionalProperties": false,
    })
}

fn tool(more: &Value) -> Value {
    let mut tool = json!({"name": "draw", "description": "Draws.", "inputSchema": schema()});
    for (key, value) in more.as_object().unwrap() {
        tool[key] = value.clone();
    }
    tool
}

/// The catalog with lines put in at places, and a server that offers these tools.
fn with(lines: &[(&str, &str)], tools: &[Value]) -> Entities {
    let text = lines.iter().fold(BASE.to_owned(), |text, (place, line)| {
        let place = format!("#{place}\n");
        assert!(text.contains(&place), "{place}");
        text.replacen(&place, &format!("{line}\n{place}"), 1)
    });
    let mut entities = entities(&text);
    let all: Vec<_> = tools.iter().map(|tool| (DefinitionKind::Tool, tool.clone())).collect();
    let key = (TenantId::new("acme").unwrap(), ToolsetId::new("up").unwrap());
    entities.definitions.insert(key, definitions(&all));
    entities
}

fn desk(lines: &[(&str, &str)], tools: &[Value]) -> Arc<View> {
    let snapshot = Snapshot::compile(&with(lines, tools), 1).unwrap();
    Arc::clone(snapshot.view("acme", "desk").unwrap())
}

fn listed(view: &View, shape: ToolShape) -> Vec<Value> {
    let list: Value = serde_json::from_slice(view.tools_list(shape)).unwrap();
    list["tools"].as_array().unwrap().clone()
}

fn upstream<'a>(view: &'a View, name: &str) -> &'a UpstreamTool {
    match &view.tool(name).unwrap().tool.kind {
        ToolKind::Upstream(upstream) => upstream,
        _ => unreachable!(),
    }
}

fn override_of(name: &str, lines: &str) -> String {
    format!("[[tool]]\ntenant = 'acme'\ntoolset = 'up'\nname = '{name}'\n{lines}\n")
}

fn sent(tool: &UpstreamTool, given: &str) -> Result<String, String> {
    let given = OwnedRaw::parse(given.as_bytes()).unwrap();
    let arguments = tool.arguments(Some(given.as_raw())).map_err(|error| error.to_string())?;
    Ok(tool.sent(&arguments).into_owned())
}

#[test]
fn schemas_pass_unharmed() {
    let view = desk(&[], &[tool(&json!({"outputSchema": {"type": "object", "$comment": "x"}}))]);
    assert_eq!(&*upstream(&view, "draw").server.connection.target, "/mcp/?k=v");
    for shape in [ToolShape::V20241105, ToolShape::V20250618, ToolShape::V20260728] {
        let shown = &listed(&view, shape)[0];
        assert_eq!(shown["inputSchema"], schema(), "{shape:?}");
        assert_eq!(shown["description"], "Draws.");
        let output = json!({"type": "object", "$comment": "x"});
        assert_eq!(shown.get("outputSchema"), shape.has_titles().then_some(&output));
    }
}

#[test]
fn arguments_go_on_as_they_came() {
    let view = desk(&[], &[tool(&json!({}))]);
    let draw = upstream(&view, "draw");
    let given = r#"{"kind":"a","at":{"x":1.50}, "count":12345678901234567890123}"#;
    assert_eq!(sent(draw, given).unwrap(), given);
    assert_eq!(sent(draw, r#"{"kind":"b","count":"7"}"#).unwrap(), r#"{"kind":"b","count":7}"#);
    for (given, expected) in [
        ("{}", "kind: this field is required"),
        (r#"{"kind":"b"}"#, "count: this field is required"),
        (r#"{"kind":"a","x":1}"#, "x: there is no such field"),
        (r#"{"kind":"a","at":{"x":"y"}}"#, "at.x: expected number"),
    ] {
        let error = sent(draw, given).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert!(draw.arguments(Some(OwnedRaw::parse(b"[]").unwrap().as_raw())).is_err());
}

#[test]
fn an_override_renames_fixes_and_hides() {
    let lines = override_of(
        "draw",
        "exposed_name = 'paint'\ndescription = 'Paints.'\nside_effect = 'read'\n\
         fields = [\n\
         { source_field_name = 'kind', constant = 'b' },\n\
         { source_field_name = 'count', exposed_field_name = 'times', description = 'How often', \
           default = 3, send_default = true },\n\
         { source_field_name = 'at', hidden = true },\n]",
    );
    let view = desk(&[("toolset", &lines)], &[tool(&json!({}))]);
    let shown = &listed(&view, ToolShape::V20251125)[0];
    assert_eq!((&shown["name"], &shown["description"]), (&json!("paint"), &json!("Paints.")));
    assert_eq!(shown.get("title"), None);
    let input = &shown["inputSchema"];
    let times = json!({"type": "integer", "x-mcp-header": "Count", "description": "How often", "default": 3});
    assert_eq!(input["properties"], json!({ "times": times }));
    assert_eq!(input["required"], json!([]));
    assert!(input.get("if").is_none() && input["$defs"].is_object());
    assert_eq!(shown["_meta"][SAFETY_META]["sideEffect"], "read");
    let paint = upstream(&view, "paint");
    assert_eq!(paint.source_name(), "draw");
    assert_eq!(sent(paint, "{}").unwrap(), r#"{"count":3,"kind":"b"}"#);
    assert_eq!(
        sent(paint, r#"{"times":9007199254740993}"#).unwrap(),
        r#"{"count":9007199254740993,"kind":"b"}"#
    );
    for given in [r#"{"kind":"a"}"#, r#"{"count":1}"#, r#"{"at":{}}"#, r#"{"ki\u006ed":"a"}"#] {
        let error = sent(paint, given).unwrap_err();
        assert!(error.contains("there is no such field"), "{error}");
    }
}

#[test]
fn hints_are_shown_and_trusted_only_where_somebody_says_so() {
    let read =
        json!({"annotations": {"readOnlyHint": true, "title": "Draw it", "openWorldHint": 5}});
    let trust = |trust: &str| format!("upstream = {{ definitions = '{trust}' }}");
    for (lines, hints, expected) in [
        (String::new(), &read, SideEffect::Destructive),
        (trust("trust"), &read, SideEffect::Read),
        (trust("approve_new"), &read, SideEffect::Read),
        (trust("trust"), &json!({}), SideEffect::Destructive),
        (trust("trust"), &json!({"annotations": {"destructiveHint": false}}), SideEffect::Write),
        (override_of("draw", "side_effect = 'write'"), &read, SideEffect::Write),
        (
            override_of("draw", "annotations = { read_only_hint = true }"),
            &json!({}),
            SideEffect::Read,
        ),
    ] {
        let view = desk(&[("toolset", &lines)], &[tool(hints)]);
        assert_eq!(view.tool("draw").unwrap().side_effect, expected, "{lines} {hints}");
    }
    let view = desk(&[], &[tool(&read)]);
    let shown = &listed(&view, ToolShape::V20251125)[0];
    assert_eq!(shown["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(shown["title"], "Draw it");
}
