use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::catalog::fixture::{entities, snapshot as compiled};
use crate::catalog::{BuiltinTool, Kind, SAFETY_META, ToolKind, ToolShape, files};

const GOOD: &str = r#"
[[tenant]]
id = "acme"
allowed_origins = ["https://app.example.com"]
sessions_max = 5

[[client_application]]
tenant = "acme"
id = "desk"
title = "Desk"
open = true
require_session = false
instructions = "Be kind."

[[client_application]]
tenant = "acme"
id = "till"

[[connection]]
tenant = "acme"
id = "api"
base_url = "https://api.example.com/v1"
headers = { Authorization = "Bearer s3cr3t", X-Team = "desk" }
total_timeout_ms = 7000

[[toolset]]
tenant = "acme"
id = "pets"
kind = "rest"
connection = "api"

[[toolset]]
tenant = "acme"
id = "own"
kind = "builtin"

[[tool]]
tenant = "acme"
toolset = "pets"
name = "show_pet"
title = "Show a pet"
description = "Shows one pet."
method = "GET"
path = "/pets/{id}"
total_timeout_ms = 1000
[[tool.fields]]
source_field_name = "id"
location = "path"

[[tool]]
tenant = "acme"
toolset = "pets"
name = "add_pet"
description = "Adds a pet."
method = "POST"
path = "/pets"
annotations = { destructive_hint = false }

[[tool]]
tenant = "acme"
toolset = "pets"
name = "hidden"
description = "Not shown."
method = "GET"
path = "/hidden"
enabled = false

[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "pets"

[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "own"

[[assignment]]
tenant = "acme"
client_application = "till"
toolset = "pets"
enabled = false
"#;

fn listed(view: &View, shape: ToolShape) -> Vec<Value> {
    let result: Value = serde_json::from_slice(view.tools_list(shape)).unwrap();
    result["tools"].as_array().unwrap().clone()
}

/// The problems of `GOOD` with one text replaced by another, as `line: message`.
fn problems_with(from: &str, to: &str) -> Vec<String> {
    assert!(GOOD.contains(from), "{from}");
    let problems = entities(&GOOD.replacen(from, to, 1)).check();
    problems.iter().map(|problem| format!("{}: {}", problem.line(), problem.message)).collect()
}

fn assert_send_and_sync<T: Send + Sync>(_: &T) {}

#[test]
fn a_view_has_what_its_client_application_is_assigned() {
    let snapshot = compiled(GOOD);
    assert_send_and_sync(&snapshot);
    assert_eq!(snapshot.version(), 1);
    assert_eq!(snapshot.views().count(), 2);
    let desk = snapshot.view("acme", "desk").unwrap();
    let names: Vec<&str> = desk.tools().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add_pet", "list_sessions", "list_tools", "runtime_status", "show_pet"]);
    assert!(desk.open);
    assert_eq!(desk.require_session, Some(false));
    assert_eq!(desk.instructions.as_deref(), Some("Be kind."));
    assert_eq!(*desk.allowed_origins, ["https://app.example.com".into()]);
    assert_eq!(desk.sessions_max, Some(5));
    for (place, name) in names.iter().enumerate() {
        assert!(Arc::ptr_eq(desk.tool(name).unwrap(), &desk.tools()[place]));
    }
    assert!(desk.tool("hidden").is_none());

    let till = snapshot.view("acme", "till").unwrap();
    assert!(till.tools().is_empty() && !till.open);
    assert_eq!(**till.tools_list(ToolShape::V20251125), *b"{\"tools\":[]}");
    assert!(snapshot.view("acme", "other").is_none());
    assert!(snapshot.view("other", "desk").is_none());
}

#[test]
fn tools_know_where_to_and_how_long() {
    let snapshot = compiled(GOOD);
    let desk = snapshot.view("acme", "desk").unwrap();
    let show = desk.tool("show_pet").unwrap();
    let ToolKind::Rest { connection, .. } = &show.kind else { unreachable!("{show:?}") };
    assert_eq!(&*connection.host, "api.example.com");
    assert_eq!(show.total_timeout, Some(Duration::from_secs(1)));
    let add = desk.tool("add_pet").unwrap();
    assert_eq!(add.total_timeout, Some(Duration::from_secs(7)));
    let status = desk.tool("runtime_status").unwrap();
    assert!(matches!(status.kind, ToolKind::Builtin(BuiltinTool::RuntimeStatus)));
    assert!(!format!("{snapshot:?}").contains("s3cr3t"));
}

#[test]
fn each_shape_has_what_its_revision_has() {
    let snapshot = compiled(GOOD);
    let desk = snapshot.view("acme", "desk").unwrap();
    let keys = |shape, place: usize| {
        let tools = listed(desk, shape);
        let mut keys: Vec<String> = tools[place].as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys.join(" ")
    };
    let (add, status, show) = (0, 3, 4);
    for place in [add, status, show] {
        assert_eq!(keys(ToolShape::V20241105, place), "description inputSchema name");
        let with_annotations = "annotations description inputSchema name";
        assert_eq!(keys(ToolShape::V20250326, place), with_annotations);
    }
    for shape in [ToolShape::V20250618, ToolShape::V20251125] {
        assert_eq!(keys(shape, add), "_meta annotations description inputSchema name");
        assert_eq!(keys(shape, show), "_meta annotations description inputSchema name title");
        let all = "_meta annotations description inputSchema name outputSchema title";
        assert_eq!(keys(shape, status), all);
        assert_eq!(listed(desk, shape)[status]["outputSchema"]["type"], "object");
    }
    let old = listed(desk, ToolShape::V20250326);
    let expected = json!({"title": "Show a pet", "readOnlyHint": true});
    assert_eq!(old[show]["annotations"], expected);
    assert_eq!(old[add]["annotations"], json!({"destructiveHint": false}));
    let new = listed(desk, ToolShape::V20251125);
    assert_eq!(new[show]["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(new[status]["annotations"], json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(new[show]["inputSchema"]["type"], "object");
    let safety = |place: usize| new[place]["_meta"][SAFETY_META].clone();
    let reads = json!({
        "sideEffect": "read", "mutationIntent": false, "confirmationRecommended": false,
    });
    assert_eq!(safety(show), reads);
    assert_eq!(safety(status), reads);
    let writes = json!({
        "sideEffect": "write", "mutationIntent": true, "confirmationRecommended": false,
    });
    assert_eq!(safety(add), writes);
}

#[test]
fn schemas_come_from_the_field_rules() {
    let rules = "location = \"path\"\n[[tool.response_fields]]\nsource_field_name = \"nm\"\n\
                 exposed_field_name = \"name\"\n";
    let snapshot = compiled(&GOOD.replacen("location = \"path\"\n", rules, 1));
    let desk = snapshot.view("acme", "desk").unwrap();
    assert!(desk.tool("show_pet").unwrap().has_output_schema);
    assert!(!desk.tool("add_pet").unwrap().has_output_schema);
    let show = &listed(desk, ToolShape::V20251125)[4];
    assert_eq!(show["inputSchema"]["required"], json!(["id"]));
    assert_eq!(show["inputSchema"]["properties"]["id"]["type"], "string");
    assert_eq!(show["outputSchema"]["type"], "object");
    assert!(show["outputSchema"]["properties"]["name"].is_object());
    let add = &listed(desk, ToolShape::V20251125)[0];
    assert_eq!(add["inputSchema"], json!({"type": "object", "additionalProperties": false}));
}

#[test]
fn what_no_response_rule_names_passes_only_where_the_tool_says_so() {
    let body = r#"{"nm":"Rex","chip":1.50}"#;
    for (says, expected) in [
        ("", r#"{"name":"Rex"}"#),
        ("pass_unmapped = false\n", r#"{"name":"Rex"}"#),
        ("pass_unmapped = true\n", r#"{"name":"Rex","chip":1.50}"#),
    ] {
        let rules = "location = \"path\"\n[[tool.response_fields]]\nsource_field_name = \"nm\"\n\
             exposed_field_name = \"name\"\n";
        let text =
            GOOD.replacen("name = \"show_pet\"\n", &format!("name = \"show_pet\"\n{says}"), 1);
        let snapshot = compiled(&text.replacen("location = \"path\"\n", rules, 1));
        let tool = snapshot.view("acme", "desk").unwrap().tool("show_pet").unwrap();
        let ToolKind::Rest { response, .. } = &tool.kind else { unreachable!() };
        let given = response.translate(crate::json::guard(body.as_bytes()).unwrap().root());
        assert_eq!(String::from_utf8(given.json).unwrap(), expected, "{says}");
    }
}

#[test]
fn results_are_their_fragments_joined() {
    let snapshot = compiled(GOOD);
    let desk = snapshot.view("acme", "desk").unwrap();
    for shape in [ToolShape::V20241105, ToolShape::V20250326, ToolShape::V20251125] {
        let fragments: Vec<&[u8]> = desk.tools().iter().map(|tool| tool.fragment(shape)).collect();
        let joined = [b"{\"tools\":[", &*fragments.join(&b","[..]), b"]}"].concat();
        assert_eq!(**desk.tools_list(shape), *joined);
    }
    let first = desk.tools_list(ToolShape::V20250618);
    assert!(Arc::ptr_eq(first, desk.tools_list(ToolShape::V20251125)));
}

#[test]
fn every_missing_or_wrong_reference_is_found_at_its_entity() {
    let table: &[(&str, &str, &str)] = &[
        ("sessions_max = 5", "sessions_max = 0", "2: tenant acme: sessions_max"),
        ("https://app.example.com", "https://app.example.com/", "2: tenant acme: allowed_origins"),
        ("https://app.example.com", "app.example.com", "2: tenant acme: allowed_origins"),
        (
            "https://api.example.com/v1",
            "ftp://api.example.com",
            "19: connection acme/api: base_url: expected http",
        ),
        ("Authorization", "Host", "19: connection acme/api: headers: `Host` is written"),
        (
            "connection = \"api\"",
            "connection = \"apo\"",
            "26: toolset acme/pets: there is no connection acme/apo",
        ),
        (
            "connection = \"api\"",
            "",
            "26: toolset acme/pets: a toolset of kind `rest` needs a `connection`",
        ),
        (
            "kind = \"builtin\"",
            "kind = \"builtin\"\nconnection = \"api\"",
            "32: toolset acme/own: a toolset of kind `builtin` has no `connection`",
        ),
        (
            "toolset = \"pets\"\nname = \"show_pet\"",
            "toolset = \"pet\"\nname = \"show_pet\"",
            "37: tool acme/pet/show_pet: there is no toolset acme/pet",
        ),
        (
            "toolset = \"pets\"\nname = \"show_pet\"",
            "toolset = \"own\"\nname = \"show_pet\"",
            "37: tool acme/own/show_pet: its toolset is of kind `builtin`",
        ),
        (
            "name = \"add_pet\"",
            "name = \"show_pet\"",
            "50: duplicate tool acme/pets/show_pet: it is at a.toml:37 already",
        ),
        ("\"Shows one pet.\"", "\" \"", "37: tool acme/pets/show_pet: description: is empty"),
        (
            "total_timeout_ms = 1000",
            "total_timeout_ms = 0",
            "37: tool acme/pets/show_pet: total_timeout_ms: expected 1",
        ),
        (
            "path = \"/pets/{id}\"",
            "path = \"/pets\"",
            "37: tool acme/pets/show_pet: field id (path): the path \"/pets\" has no placeholder",
        ),
        (
            "path = \"/pets\"\n",
            "path = \"/pets/{id}\"\n",
            "50: tool acme/pets/add_pet: the path \"/pets/{id}\" has the placeholder {id} without",
        ),
        (
            "annotations = { destructive_hint = false }\n",
            "[[tool.fields]]\nsource_field_name = \"order[1].sku\"\n",
            "50: tool acme/pets/add_pet: field order[1].sku",
        ),
        (
            "location = \"path\"\n",
            "location = \"path\"\n[[tool.response_fields]]\nsource_field_name = \"a..b\"\n",
            "37: tool acme/pets/show_pet: response_fields: ",
        ),
        (
            "location = \"path\"\n",
            "location = \"path\"\n[[tool.fields]]\nsource_field_name = \"x-team\"\n\
             location = \"header\"\n",
            "37: tool acme/pets/show_pet: field x-team (header): the connection `api` sets",
        ),
        (
            "client_application = \"till\"",
            "client_application = \"tilt\"",
            "78: assignment acme/tilt/pets: there is no client_application acme/tilt",
        ),
        (
            "tenant = \"acme\"\nclient_application = \"till\"",
            "tenant = \"acne\"\nclient_application = \"till\"",
            "78: assignment acne/till/pets: there is no tenant acne",
        ),
    ];
    for (from, to, expected) in table {
        let problems = problems_with(from, to);
        let expected = expected.replace("client_application acme", "client application acme");
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert!(problems[0].starts_with(&expected), "{}\nexpected {expected}", problems[0]);
    }
}

#[test]
fn what_a_tool_says_of_its_body_has_to_fit_its_fields() {
    for (says, expected) in [
        ("body_format = \"multipart\"\n", "body_format: no field is in the body; add a field"),
        ("body_content_type = \"text/csv\"\n", "body_content_type \"text/csv\": is not one of"),
        (
            "[[tool.fields]]\nsource_field_name = \"photo\"\ntype = \"file\"\n",
            "field photo (body): a file is a field of a multipart body or a whole binary one; set \
             body_format",
        ),
    ] {
        let problems = problems_with("annotations = { destructive_hint = false }\n", says);
        assert_eq!(problems.len(), 1, "{problems:#?}");
        let expected = format!("50: tool acme/pets/add_pet: {expected}");
        assert!(problems[0].starts_with(&expected), "{}\nexpected {expected}", problems[0]);
    }
}

#[test]
fn what_could_not_be_read_whole_is_not_compiled() {
    let text = GOOD.replacen("https://api.example.com/v1\"", "https://h\"\nnonsense = 1", 1);
    let (entities, problems) = files::read_text(Path::new("a.toml"), &text);
    assert_eq!(problems.len(), 1);
    assert!(entities.check().is_empty());
    let problems = Snapshot::compile(&entities, 1).unwrap_err();
    assert!(problems[0].message.contains("could not be read"), "{problems:?}");
}

#[test]
fn all_problems_come_in_one_run_in_the_order_of_lines() {
    let text = GOOD
        .replacen("sessions_max = 5", "sessions_max = 0", 1)
        .replacen("https://api.example.com/v1", "api", 1)
        .replacen("client_application = \"till\"", "client_application = \"tilt\"", 1)
        .replacen("total_timeout_ms = 1000", "total_timeout_ms = 0", 1);
    let lines: Vec<u32> = entities(&text).check().iter().map(Problem::line).collect();
    assert_eq!(lines, [2, 19, 37, 78]);
    assert!(Snapshot::compile(&entities(&text), 1).is_err());
}

#[test]
fn rows_bring_everything_back() {
    let entities = entities(GOOD);
    let rows = entities.rows();
    assert_eq!(rows.len(), entities.len());
    let keys: Vec<&[u8]> = rows.iter().map(|(key, _)| &key[..]).collect();
    assert!(keys.contains(&&b"tool/acme/pets/show_pet"[..]), "{keys:?}");
    let read = Entities::from_rows(rows.clone()).unwrap();
    assert_eq!(read.rows(), rows);
    assert!(entities.difference(&read).is_empty());
    let show = read.tools.iter().find(|entry| entry.value.name.as_str() == "show_pet").unwrap();
    assert_eq!(show.origin.to_string(), "a.toml:37");
    assert_eq!(read.connections[0].value.headers["Authorization"].expose(), "Bearer s3cr3t");
}

#[test]
fn rows_of_another_version_or_damaged_ones_are_named() {
    let mut rows = entities(GOOD).rows();
    rows[0].1[0] = 9;
    rows[1].1.truncate(20);
    rows[2].0 = b"client_application/acme/other".to_vec();
    rows[3].0 = b"nonsense".to_vec();
    rows[4].1.clear();
    let errors = Entities::from_rows(rows).unwrap_err();
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(shown[0].starts_with("stored tenant/acme has format version 9"), "{shown:?}");
    assert!(shown[1].starts_with("stored client_application/acme/desk is damaged"), "{shown:?}");
    assert!(shown[2].contains("it holds another entity"), "{shown:?}");
    assert!(shown[3].contains("no such kind"), "{shown:?}");
    assert!(shown[4].contains("it is empty"), "{shown:?}");
    assert_eq!(shown.len(), 5);
}

#[test]
fn differences_name_what_was_added_changed_and_removed() {
    let old = entities(GOOD);
    let text = GOOD.replacen("Shows one pet.", "Shows a pet.", 1).replacen(
        "name = \"hidden\"",
        "name = \"fresh\"",
        1,
    );
    // Lines move, and that is no change.
    let new = entities(&format!("\n\n{text}"));
    let difference = old.difference(&new);
    let shown = |names: &[crate::catalog::EntityName]| {
        names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(&difference.added), "tool acme/pets/fresh");
    assert_eq!(shown(&difference.changed), "tool acme/pets/show_pet");
    assert_eq!(shown(&difference.removed), "tool acme/pets/hidden");
    assert_eq!(difference.removed[0].kind, Kind::Tool);
    assert_eq!(difference.removed[0].row_key(), b"tool/acme/pets/hidden");

    let mut merged = old.clone();
    merged.overlay(new.clone());
    assert_eq!(merged.len(), old.len() + 1);
    assert!(new.difference(&merged).changed.is_empty());
}

#[test]
fn views_that_changed_are_found() {
    let before = compiled(GOOD);
    let same = compiled(&format!("\n{GOOD}"));
    assert!(same.changes(&before).is_empty());
    let after = compiled(&GOOD.replacen("Shows one pet.", "Shows a pet.", 1));
    let changes = after.changes(&before);
    let [change] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!(change.view.client_application.as_str(), "desk");
    assert!(change.tools && !change.prompts && !change.resources);
}
