//! The table of the three-way merge.

use serde_json::{Value, json};

use super::*;

/// A tool as an import makes it, with these parts besides.
fn described(more: Value) -> Tool {
    let mut whole = json!({
        "tenant": "t", "toolset": "s", "name": "n", "description": "d", "method": "GET",
        "path": "/a", "enabled": false,
    });
    let (Value::Object(members), Value::Object(more)) = (&mut whole, more) else { panic!() };
    members.extend(more);
    let mut tool: Tool = serde_json::from_value(whole).unwrap();
    tool.imported = Some(Parts::of(&tool).remember("GET /a"));
    tool
}

/// The same tool after the operator's hand.
fn touched(tool: &Tool, edit: impl FnOnce(&mut Tool)) -> Tool {
    let mut tool = tool.clone();
    edit(&mut tool);
    tool
}

fn rule(name: &str, more: Value) -> Value {
    let mut rule = json!({ "source_field_name": name, "location": "query" });
    let (Value::Object(members), Value::Object(more)) = (&mut rule, more) else { panic!() };
    members.extend(more);
    rule
}

fn conflicts(merged: &Merged) -> Vec<&str> {
    merged.conflicts.iter().map(|conflict| conflict.part.as_str()).collect()
}

#[test]
fn nothing_new_changes_nothing() {
    let tool = described(json!({ "fields": [rule("a", json!({})), rule("b", json!({}))] }));
    let merged = merge(&tool, &tool, false).unwrap();
    assert_eq!((merged.tool, merged.conflicts.len()), (tool, 0));
    // The operator's own order, and what no import says, stay too.
    let tool = described(json!({ "fields": [rule("a", json!({})), rule("b", json!({}))] }));
    let mine = touched(&tool, |tool| {
        tool.fields.reverse();
        tool.weight = Some(7);
    });
    assert_eq!(merge(&mine, &tool, false).unwrap().tool, mine);
}

#[test]
fn what_nobody_touched_follows_the_description() {
    let old =
        described(json!({ "title": "old", "fields": [rule("a", json!({ "required": true }))] }));
    let new = described(json!({
        "description": "new", "path": "/b", "fields": [rule("b", json!({})), rule("a", json!({}))]
    }));
    let merged = merge(&old, &new, false).unwrap();
    assert!(merged.conflicts.is_empty());
    assert_eq!((merged.tool.description.as_str(), merged.tool.title), ("new", None));
    let names: Vec<&str> =
        merged.tool.fields.iter().map(|f| f.source_field_name.as_str()).collect();
    assert_eq!((names, merged.tool.fields[0].required), (vec!["a", "b"], false));
    assert_eq!(merged.tool.imported, new.imported);
    let gone = described(json!({}));
    assert!(merge(&old, &gone, false).unwrap().tool.fields.is_empty());
}

#[test]
fn what_the_operator_touched_stays_and_is_told_where_both_changed_it() {
    let old =
        described(json!({ "title": "T", "fields": [rule("a", json!({ "description": "d" }))] }));
    let mine = touched(&old, |tool| {
        tool.description = "mine".to_owned();
        tool.title = None;
        tool.fields[0].description = Some("mine".to_owned());
        tool.annotations.read_only_hint = Some(true);
    });
    // The description is as it was: no conflict, and the rest of the rule follows.
    let same = described(json!({
        "title": "T", "fields": [rule("a", json!({ "description": "d", "required": true }))]
    }));
    let merged = merge(&mine, &same, false).unwrap();
    assert!(merged.conflicts.is_empty());
    assert_eq!((merged.tool.description.as_str(), merged.tool.title.as_deref()), ("mine", None));
    assert_eq!(merged.tool.annotations.read_only_hint, Some(true));
    let field = &merged.tool.fields[0];
    assert_eq!((field.description.as_deref(), field.required), (Some("mine"), true));
    // It changed too.
    let new = described(json!({
        "description": "new", "title": "N", "annotations": { "read_only_hint": false },
        "fields": [rule("a", json!({ "description": "new" }))]
    }));
    let merged = merge(&mine, &new, false).unwrap();
    let expected =
        ["annotations/read_only_hint", "description", "title", "fields/query/a/description"];
    assert_eq!(conflicts(&merged), expected);
    assert_eq!(merged.tool.description, "mine");
    // Told once: the next time the description is as remembered.
    assert!(merge(&merged.tool, &new, false).unwrap().conflicts.is_empty());
    // What both changed alike is no conflict.
    let alike = described(json!({ "description": "mine", "title": "T" }));
    let merged =
        merge(&touched(&old, |t| t.description = "mine".to_owned()), &alike, false).unwrap();
    assert_eq!(conflicts(&merged), Vec::<&str>::new());
}

#[test]
fn rules_that_come_and_go() {
    let a = || rule("a", json!({}));
    let old = described(json!({ "fields": [a()] }));
    let none = described(json!({}));
    let both = described(json!({ "fields": [a(), rule("b", json!({}))] }));
    let own = |name: &str| serde_json::from_value(rule(name, json!({ "constant": 1 }))).unwrap();
    // The operator's own rule stays, whether the description knows it or not.
    let mine = touched(&old, |tool| tool.fields.push(own("b")));
    assert_eq!(merge(&mine, &old, false).unwrap().tool, mine);
    let merged = merge(&mine, &both, false).unwrap();
    assert_eq!(conflicts(&merged), ["fields/query/b"]);
    assert_eq!(merged.tool.fields, mine.fields);
    // What he took out stays out; told where it is another now.
    let mine = touched(&old, |tool| tool.fields.clear());
    assert_eq!(merge(&mine, &old, false).unwrap().tool, mine);
    let changed = described(json!({ "fields": [rule("a", json!({ "required": true }))] }));
    let merged = merge(&mine, &changed, false).unwrap();
    assert_eq!((conflicts(&merged), merged.tool.fields.len()), (vec!["fields/query/a"], 0));
    // What he touched and the description dropped stays, and is told.
    let mine = touched(&old, |tool| tool.fields[0].constant = Some(json!(1)));
    let merged = merge(&mine, &none, false).unwrap();
    assert_eq!((conflicts(&merged), merged.tool.fields.len()), (vec!["fields/query/a"], 1));
}

#[test]
fn publishing_is_the_operators() {
    let tool = described(json!({}));
    let enabled = |tool: &Tool, publish| merge(tool, &described(json!({})), publish).unwrap().tool;
    assert!(!enabled(&tool, false).enabled);
    let published = enabled(&tool, true);
    assert!(published.enabled && enabled(&published, false).enabled);
    // Taken back by hand: no import publishes it again.
    let taken_back = touched(&published, |tool| tool.enabled = false);
    let again = enabled(&taken_back, true);
    assert!(!again.enabled && !enabled(&again, true).enabled);
    // Published by hand: it stays so.
    let by_hand = touched(&tool, |tool| tool.enabled = true);
    assert!(enabled(&enabled(&by_hand, false), true).enabled);
}

#[test]
fn a_tool_that_no_import_made_keeps_everything() {
    let mine = touched(&described(json!({})), |tool| tool.imported = None);
    let new = described(json!({ "description": "new", "fields": [rule("a", json!({}))] }));
    let merged = merge(&mine, &new, false).unwrap();
    assert_eq!(merged.tool.description, "d");
    assert_eq!(conflicts(&merged), ["description"]);
}
