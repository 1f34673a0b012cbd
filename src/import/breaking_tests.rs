//! The table of what breaks.

use serde_json::{Value, json};

use super::*;

fn tool(more: &Value) -> Tool {
    let mut whole = json!({
        "tenant": "t", "toolset": "s", "name": "n", "description": "d", "method": "GET", "path": "/a",
    });
    let (Value::Object(members), Value::Object(more)) = (&mut whole, more) else { panic!() };
    members.extend(more.clone());
    serde_json::from_value(whole).unwrap()
}

/// The parts that differ, those that break with a `!` in front.
fn found(before: &Value, after: &Value) -> Vec<String> {
    let sign = |change: &PartChange| if change.breaking.is_empty() { "" } else { "!" };
    let changes = changes(&tool(before), &tool(after));
    changes.iter().map(|change| format!("{}{}", sign(change), change.part)).collect()
}

#[test]
fn parts_that_are_no_rules() {
    let hint = |name: &str, value: bool| json!({ "annotations": { name: value } });
    for (before, after, expected) in [
        (json!({}), json!({}), vec![]),
        (json!({}), json!({ "description": "e", "title": "t" }), vec!["description", "title"]),
        (json!({}), json!({ "method": "POST" }), vec!["!method"]),
        (json!({}), json!({ "path": "/b" }), vec!["!path"]),
        (json!({}), json!({ "connection": "c" }), vec!["!connection"]),
        (json!({}), json!({ "body_format": "form" }), vec!["!body_format"]),
        (json!({}), json!({ "pass_unmapped": true }), vec!["pass_unmapped"]),
        (json!({ "pass_unmapped": true }), json!({}), vec!["!pass_unmapped"]),
        (hint("read_only_hint", true), json!({}), vec!["!annotations/read_only_hint"]),
        (json!({}), hint("read_only_hint", true), vec!["annotations/read_only_hint"]),
        (json!({}), hint("destructive_hint", true), vec!["!annotations/destructive_hint"]),
        (json!({}), json!({ "enabled": false }), vec!["!enabled"]),
        (json!({}), json!({ "weight": 3 }), vec![]),
    ] {
        assert_eq!(found(&before, &after), expected, "{before} -> {after}");
    }
}

#[test]
fn fields() {
    // What the rule of the field `q` says before and after; `null` is no rule.
    for (before, after, expected) in [
        (json!(null), json!({}), vec!["fields/query/q"]),
        (json!(null), json!({ "required": true }), vec!["!fields/query/q"]),
        (json!(null), json!({ "required": true, "constant": 1 }), vec!["fields/query/q"]),
        (
            json!(null),
            json!({ "required": true, "default": 1, "send_default": true }),
            vec!["fields/query/q"],
        ),
        (json!({}), json!(null), vec!["!fields/query/q"]),
        (json!({ "constant": 1 }), json!(null), vec!["fields/query/q"]),
        (json!({}), json!({ "required": true }), vec!["!fields/query/q/required"]),
        (json!({ "required": true }), json!({}), vec!["fields/query/q/required"]),
        (json!({}), json!({ "description": "d" }), vec!["fields/query/q/description"]),
        (json!({}), json!({ "constant": "x" }), vec!["!fields/query/q/constant"]),
        (json!({}), json!({ "type": "integer" }), vec!["!fields/query/q/type"]),
        (json!({ "type": "integer" }), json!({ "type": "number" }), vec!["fields/query/q/type"]),
        (json!({}), json!({ "type": "string" }), vec!["fields/query/q/type"]),
        (json!({}), json!({ "enum": ["a"] }), vec!["!fields/query/q/enum"]),
        (json!({ "enum": ["a"] }), json!({ "enum": ["a", "b"] }), vec!["fields/query/q/enum"]),
        (json!({ "enum": ["a", "b"] }), json!({ "enum": ["a"] }), vec!["!fields/query/q/enum"]),
        (json!({ "nullable": true }), json!({}), vec!["!fields/query/q/nullable"]),
        (
            json!({}),
            json!({ "exposed_field_name": "r" }),
            vec!["!fields/query/q/exposed_field_name"],
        ),
        (json!({}), json!({ "style": "form" }), vec!["fields/query/q/style"]),
        (
            json!({ "schema": { "type": "string" } }),
            json!({ "schema": { "type": "string", "maxLength": 2 } }),
            vec!["!fields/query/q/schema"],
        ),
        // The same, said in another way.
        (
            json!({ "schema": { "type": "integer" } }),
            json!({ "type": "integer" }),
            vec!["fields/query/q/schema", "fields/query/q/type"],
        ),
    ] {
        assert_eq!(
            found(&list("fields", &before), &list("fields", &after)),
            expected,
            "{before} -> {after}"
        );
    }
    let moved = json!({ "fields": [{ "source_field_name": "q", "location": "header" }] });
    let expected = ["fields/header/q", "!fields/query/q"];
    assert_eq!(found(&list("fields", &json!({})), &moved), expected);
    let path = json!({ "fields": [{ "source_field_name": "q", "location": "path" }] });
    assert_eq!(found(&json!({}), &path), ["!fields/path/q"]);
}

#[test]
fn answers() {
    for (before, after, expected) in [
        (json!(null), json!({}), vec!["!response_fields/body/q"]),
        (json!({}), json!(null), vec!["!response_fields/body/q"]),
        (json!({ "required": true }), json!({}), vec!["!response_fields/body/q/required"]),
        (json!({}), json!({ "required": true }), vec!["response_fields/body/q/required"]),
        (json!({}), json!({ "nullable": true }), vec!["!response_fields/body/q/nullable"]),
        (
            json!({ "type": "number" }),
            json!({ "type": "integer" }),
            vec!["response_fields/body/q/type"],
        ),
        (
            json!({ "type": "integer" }),
            json!({ "type": "number" }),
            vec!["!response_fields/body/q/type"],
        ),
        (
            json!({ "enum": ["a"] }),
            json!({ "enum": ["a", "b"] }),
            vec!["!response_fields/body/q/enum"],
        ),
    ] {
        let list = |rule: &Value| list("response_fields", rule);
        assert_eq!(found(&list(&before), &list(&after)), expected, "{before} -> {after}");
    }
}

fn list(name: &str, rule: &Value) -> Value {
    let Value::Object(more) = rule else { return json!({}) };
    let location = if name == "fields" { "query" } else { "body" };
    let mut rule = json!({ "source_field_name": "q", "location": location });
    rule.as_object_mut().unwrap().extend(more.clone());
    json!({ name: [rule] })
}
