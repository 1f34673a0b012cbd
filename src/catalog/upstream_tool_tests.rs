//! Tools of upstream servers in views.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::catalog::fixture::{definitions, entities};
use crate::catalog::{
    DefinitionKind, Entities, SAFETY_META, SideEffect, Snapshot, TenantId, ToolKind, ToolShape,
    ToolsetId, UpstreamTool, View,
};
use crate::json::OwnedRaw;
use crate::mapping::Dialect;

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
    let arguments =
        tool.arguments(Some(given.as_raw()), Dialect::Full).map_err(|error| error.to_string())?;
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
    assert!(draw.arguments(Some(OwnedRaw::parse(b"[]").unwrap().as_raw()), Dialect::Full).is_err());
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

fn problems(lines: &[(&str, &str)], tools: &[Value]) -> Vec<String> {
    let problems = Snapshot::compile(&with(lines, tools), 1).err().unwrap_or_default();
    problems.into_iter().map(|problem| problem.message).collect()
}

fn remarks(lines: &[(&str, &str)], tools: &[Value]) -> Vec<String> {
    let snapshot = Snapshot::compile(&with(lines, tools), 1).unwrap();
    snapshot.remarks().iter().map(|remark| remark.message.clone()).collect()
}

#[test]
fn a_revision_is_shown_what_it_has() {
    let more = json!({
        "title": "Draw", "icons": [{"src": "https://h/i.png", "sizes": ["any"]}, {"src": "file:///x"}],
        "_meta": {"a/b": [1], SAFETY_META: "mine"}, "execution": {"taskSupport": "optional"},
        "outputSchema": {"type": ["array", "null"]}, "unknown": 1,
    });
    let view = desk(&[], &[tool(&more)]);
    let shown = |shape| listed(&view, shape)[0].clone();
    let keys = |shown: &Value| shown.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let newest = shown(ToolShape::V20260728);
    assert_eq!(
        keys(&newest),
        ["_meta", "description", "icons", "inputSchema", "name", "outputSchema", "title"]
    );
    assert_eq!(newest["icons"], json!([{"src": "https://h/i.png", "sizes": ["any"]}]));
    assert_eq!(newest["_meta"]["a/b"], json!([1]));
    assert_eq!(newest["_meta"][SAFETY_META]["sideEffect"], "destructive");
    // Output schemas of other kinds came with 2026-07-28, icons with 2025-11-25.
    let mut older = newest;
    older.as_object_mut().unwrap().remove("outputSchema");
    assert_eq!(shown(ToolShape::V20251125), older);
    older.as_object_mut().unwrap().remove("icons");
    assert_eq!(shown(ToolShape::V20250618), older);
    assert_eq!(
        keys(&shown(ToolShape::V20250326)),
        ["annotations", "description", "inputSchema", "name"]
    );
    assert_eq!(keys(&shown(ToolShape::V20241105)), ["description", "inputSchema", "name"]);
}

#[test]
fn dialects_and_modes_are_those_of_every_tool() {
    for (line, expected) in [
        ("schema_dialect = 'portable'", "\"enum\":[\"a\",\"b\"]"),
        ("schema_dialect = 'gemini'", "\"enum\":[\"a\",\"b\"]"),
        ("schema_dialect = 'openai_strict'", "\"additionalProperties\":false"),
    ] {
        let view = desk(&[("client", line)], &[tool(&json!({}))]);
        let input = listed(&view, ToolShape::V20251125)[0]["inputSchema"].clone();
        assert!(input.to_string().contains(expected), "{line}: {input}");
        assert!(input.get("$defs").is_none() && input.get("if").is_none(), "{line}: {input}");
    }
    let view = desk(&[("toolset", "discovery_mode = 'lazy'")], &[tool(&json!({}))]);
    assert!(view.meta_tool("discover_tool_schema").is_some());
    assert_eq!(view.tool("draw").unwrap().input_schema(), &schema());
}

#[test]
fn the_rest_of_a_cut_result_can_be_asked_for() {
    let lines = override_of("draw", "budget = { rows = 5 }");
    let view = desk(&[("toolset", &lines)], &[tool(&json!({}))]);
    assert_eq!(view.tool("draw").unwrap().next_argument, Some("next"));
    let input = listed(&view, ToolShape::V20251125)[0]["inputSchema"].clone();
    assert_eq!(input["properties"]["next"]["type"], "string");
    assert_eq!(input["if"], schema()["if"]);
    assert_eq!(&input, view.tool("draw").unwrap().input_schema());
    assert_eq!(desk(&[], &[tool(&json!({}))]).tool("draw").unwrap().next_argument, None);
}

#[test]
fn names_are_kept_where_models_can_write_them() {
    let long = "x".repeat(257);
    let names: Vec<Value> = ["get-x_1", "a.b/c", "2nd", "ok", "a\nb", &long]
        .iter()
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .collect();
    let view = desk(&[], &names);
    let found: Vec<(&str, &str)> =
        view.tools().iter().map(|tool| (tool.name.as_str(), tool.source_name.as_str())).collect();
    let all = [("_2nd", "2nd"), ("a_b_c", "a.b/c"), ("get-x_1", "get-x_1"), ("ok", "ok")];
    assert_eq!(found, all);
    let listed = listed(&view, ToolShape::V20251125);
    assert_eq!((&listed[0]["title"], &listed[1]["title"]), (&json!("2nd"), &json!("a.b/c")));
    assert_eq!(upstream(&view, "a_b_c").source_name(), "a.b/c");
    // What has control characters or no end is not offered, and said to be left out.
    let told = remarks(&[], &names);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().any(|one| one.contains(r#"the tool "a\nb" is left out"#)), "{told:?}");
    assert!(told.iter().any(|one| one.contains("the tool \"xxx")), "{told:?}");
}

#[test]
fn names_that_come_out_the_same_are_told_apart() {
    let names: Vec<Value> = ["docs/search", "docs_search", "docs.search"]
        .iter()
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .collect();
    let of = |names: &[Value]| -> Vec<(String, String)> {
        let view = desk(&[], names);
        let tools = view.tools().iter();
        tools.map(|tool| (tool.name.to_string(), tool.source_name.to_string())).collect()
    };
    let found = of(&names);
    let shown: std::collections::BTreeSet<&String> = found.iter().map(|(name, _)| name).collect();
    assert_eq!(shown.len(), 3, "{found:?}");
    let reversed: Vec<Value> = names.iter().rev().cloned().collect();
    assert_eq!(of(&reversed), found);
}

#[test]
fn an_override_names_a_tool_as_its_server_does() {
    let slash = json!({"name": "docs/search", "title": "Find", "inputSchema": {"type": "object"}});
    let lines = override_of("docs/search", "exposed_name = 'find'\nside_effect = 'read'");
    let view = desk(&[("toolset", &lines)], std::slice::from_ref(&slash));
    let shown = &listed(&view, ToolShape::V20251125)[0];
    assert_eq!((&shown["name"], &shown["title"]), (&json!("find"), &json!("Find")));
    assert_eq!(view.tool("find").unwrap().side_effect, SideEffect::Read);
    assert_eq!(upstream(&view, "find").source_name(), "docs/search");
    let gone = override_of("docs/search", "enabled = false");
    assert!(desk(&[("toolset", &gone)], &[slash]).tools().is_empty());
}

#[test]
fn what_cannot_be_offered_is_left_out_and_told() {
    let mut deep = json!({});
    (0..80).for_each(|_| deep = json!({"items": deep}));
    let rename =
        override_of("draw", "fields = [{ source_field_name = 'at', exposed_field_name = 'kind' }]");
    let by = override_of("draw", "side_effect_by = { argument = 'x', values = { a = 'read' } }");
    let long = "x".repeat(300_000);
    for (lines, more, expected) in [
        ("", json!({"inputSchema": deep}), "deeper than 64 levels"),
        ("", json!({"inputSchema": 5}), "its input schema is a number"),
        ("", json!({"inputSchema": {"type": "array"}}), "is not one of objects"),
        ("", json!({"_meta": {"a": long}}), "longer than 262144 bytes"),
        (&*rename, json!({}), "`at` cannot be exposed as `kind`"),
        (&*by, json!({}), "side_effect_by.argument: no single field is exposed as \"x\""),
    ] {
        let (lines, tools) = ([("toolset", lines)], [tool(&more)]);
        assert!(desk(&lines, &tools).tool("draw").is_none(), "{expected}");
        let told = remarks(&lines, &tools);
        assert!(told.iter().any(|one| one.contains(expected)), "{expected}: {told:?}");
    }
    for (more, expected) in [
        (json!({"inputSchema": null}), "it has no input schema"),
        (json!({"outputSchema": true}), "its output schema is a boolean, and left out"),
        (json!({"description": "ä".repeat(40_000)}), "its description is cut to 65536 bytes"),
        (
            json!({"inputSchema": {"$schema": "urn:unknown", "type": "object"}}),
            "checked by the server alone",
        ),
    ] {
        let tools = [tool(&more)];
        assert!(desk(&[], &tools).tool("draw").is_some(), "{expected}");
        let told = remarks(&[], &tools);
        assert!(told.len() == 1 && told[0].contains(expected), "{expected}: {told:?}");
    }
    let gone = override_of("gone", "enabled = false");
    let told = remarks(&[("toolset", &gone)], &[tool(&json!({}))]);
    assert!(told[0].starts_with("tool acme/up/gone: the server offers no such tool"), "{told:?}");
}

#[test]
fn what_makes_no_sense_of_a_server_is_a_fault() {
    for (lines, expected) in [
        ("method = 'GET'", "tool acme/up/draw: method: tools of a toolset of kind `mcp`"),
        ("path = '/x'", "tool acme/up/draw: path: tools"),
        ("connection = 'up'", "tool acme/up/draw: connection: tools"),
        ("body_format = 'form'", "tool acme/up/draw: body_format: tools"),
        ("polling = { interval_ms = 5 }", "tool acme/up/draw: polling: tools"),
        ("pass_unmapped = true", "tool acme/up/draw: pass_unmapped: tools"),
        ("total_timeout_ms = 0", "tool acme/up/draw: total_timeout_ms: expected"),
        ("weight = 0", "tool acme/up/draw: weight: expected"),
        (
            "fields = [{ source_field_name = 'a', location = 'query' }]",
            "tool acme/up/draw: field a: the server says what an argument is: remove `location`",
        ),
        (
            "fields = [{ source_field_name = 'a', hidden = true, description = 'x' }]",
            "tool acme/up/draw: field a: clients do not see it",
        ),
        (
            "fields = [{ source_field_name = 'a', exposed_field_name = 'b c' }]",
            "tool acme/up/draw: field a: exposed_field_name",
        ),
    ] {
        let found = problems(&[("toolset", &override_of("draw", lines))], &[]);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{lines}: {found:?}");
    }
    for (line, expected) in [
        ("upstream = { revision = '2025-01-01' }", "toolset acme/up: upstream.revision"),
        ("upstream = { grace_ms = 5 }", "toolset acme/up: upstream.grace_ms"),
        (
            "upstream = { transport = 'http_sse', revision = '2026-07-28' }",
            "toolset acme/up: upstream.transport",
        ),
    ] {
        let found = problems(&[("toolset", line)], &[]);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{line}: {found:?}");
    }
    let mapped = BASE.replace("kind = 'mcp'", "kind = 'rest'\nupstream = { grace_ms = 5000 }");
    let found: Vec<String> =
        entities(&mapped).check().into_iter().map(|problem| problem.message).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("has a query, which only toolsets of kind `mcp`"), "{found:?}");
    assert!(found[1].contains("upstream: only a toolset of kind `mcp`"), "{found:?}");
    let unconnected = BASE.replace("connection = 'up'\n#toolset", "#toolset");
    let found = entities(&unconnected).check();
    assert!(found[0].message.contains("kind `mcp` needs a `connection`"), "{found:?}");
}

#[test]
fn mapped_tools_have_what_they_need() {
    let mapped = |lines: &str| {
        let text = BASE.replace("kind = 'mcp'", "kind = 'rest'").replace("/?k=v", "");
        let text = text.replace("#toolset\n", &override_of("draw", lines));
        let problems = entities(&text).check();
        problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>()
    };
    let good = "description = 'x'\nmethod = 'POST'\npath = '/x'";
    assert_eq!(mapped(good), Vec::<String>::new());
    for (lines, expected) in [
        ("method = 'GET'\npath = '/x'", "description: is empty"),
        ("description = 'x'\npath = '/x'", "method: is missing"),
        ("description = 'x'\nmethod = 'GET'", "the path \"\""),
        (
            "description = 'x'\nmethod = 'POST'\npath = '/x'\n\
             fields = [{ source_field_name = 'a', hidden = true }]",
            "field a: hidden is for tools of MCP servers",
        ),
    ] {
        let found = mapped(lines);
        assert!(found.len() == 1 && found[0].contains(expected), "{lines}: {found:?}");
    }
}

#[test]
fn the_argument_that_decides_is_read_as_it_is_sent() {
    let lines = override_of(
        "draw",
        "side_effect = 'write'\n\
         side_effect_by = { argument = 'what', values = { a = 'read', b = 'destructive' } }\n\
         fields = [{ source_field_name = 'kind', exposed_field_name = 'what', default = 'b', \
         send_default = true }]",
    );
    let view = desk(&[("toolset", &lines)], &[tool(&json!({}))]);
    let draw = view.tool("draw").unwrap();
    let effect = |given: &str| {
        let given = OwnedRaw::parse(given.as_bytes()).unwrap();
        let arguments =
            upstream(&view, "draw").arguments(Some(given.as_raw()), Dialect::Full).unwrap();
        draw.side_effect_of(&arguments)
    };
    assert_eq!(effect(r#"{"what":"a"}"#), SideEffect::Read);
    assert_eq!(effect(r#"{"what":"b","count":1}"#), SideEffect::Destructive);
    assert_eq!(effect(r#"{"count":1}"#), SideEffect::Destructive);
}

#[test]
fn a_disabled_override_hides_its_tool() {
    let lines = override_of("draw", "enabled = false");
    let other = json!({"name": "other", "inputSchema": {"type": "object"}});
    let view = desk(&[("toolset", &lines)], &[tool(&json!({})), other]);
    let names: Vec<&str> = view.tools().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["other"]);
    assert!(view.hidden("draw").is_none());
}

#[test]
fn names_that_two_tools_want_are_told_apart() {
    let lines = override_of("draw", "exposed_name = 'other'");
    let other = json!({"name": "other", "inputSchema": {"type": "object"}});
    let view = desk(&[("toolset", &lines)], &[tool(&json!({})), other]);
    let names: Vec<&str> = view.tools().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| name.starts_with("other_")), "{names:?}");
}
