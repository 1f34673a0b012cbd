//! What a change does to who calls a tool, part by part.
//!
//! A change is breaking where a call that was right may be wrong afterwards, does something else,
//! or gives less than was promised. What is not certain counts as breaking.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::parts::{Parts, Rule};
use super::schema_change::{Direction, breaks};
use crate::catalog::Tool;

/// A part that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartChange {
    /// Its path: `fields/query/limit/required`.
    pub part: String,
    /// What it was; `None` where it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it becomes; `None` where it is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Why it breaks who calls the tool; nothing where it does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breaking: Vec<String>,
}

/// What differs between two versions of a tool, in the order of parts.
pub(super) fn changes(before: &Tool, after: &Tool) -> Vec<PartChange> {
    let (old, new) = (Parts::of(before), Parts::of(after));
    let mut changes = Vec::new();
    for key in union(&old.plain, &new.plain) {
        let (before, after) = (old.plain.get(key), new.plain.get(key));
        if before != after {
            let breaking = plain(key, before, after).map(str::to_owned).into_iter().collect();
            changes.push(change(key.clone(), before, after, breaking));
        }
    }
    let [old_fields, old_answers] = &old.lists;
    let [new_fields, new_answers] = &new.lists;
    rules(old_fields, new_fields, &mut changes, input);
    // Without rules everything is given.
    let promises_less = !old_answers.is_empty() && new_answers.is_empty();
    let gives_less = old_answers.is_empty() && !new_answers.is_empty() && !after.pass_unmapped;
    let from = changes.len();
    rules(old_answers, new_answers, &mut changes, output);
    if let Some(first) = changes.get_mut(from).filter(|_| gives_less) {
        first.breaking.push("what no rule names is no longer given".to_owned());
    }
    if let Some(first) = changes.get_mut(from).filter(|_| promises_less) {
        first.breaking.push("no output is promised any more".to_owned());
    }
    changes
}

fn change(
    part: String,
    before: Option<&Value>,
    after: Option<&Value>,
    breaking: Vec<String>,
) -> PartChange {
    PartChange { part, before: before.cloned(), after: after.cloned(), breaking }
}

fn union<'a, T>(old: &'a BTreeMap<String, T>, new: &'a BTreeMap<String, T>) -> Vec<&'a String> {
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Why a change of a part that is no rule breaks.
fn plain(part: &str, before: Option<&Value>, after: Option<&Value>) -> Option<&'static str> {
    let is_true = |value: Option<&Value>| value == Some(&Value::Bool(true));
    match part {
        "method" => Some("the request has another method"),
        "path" => Some("the request goes to another path"),
        "connection" => Some("the request goes to another API"),
        "body_format" | "body_content_type" => Some("the body is written another way"),
        "requires" if after.is_some() => Some("fields have to be given that had not to before"),
        "soap" | "xml" => Some("the message is another one"),
        "pass_unmapped" if is_true(before) => Some("what no rule names is no longer given"),
        "side_effect" => Some("a call does something else to the world"),
        "annotations/read_only_hint" if is_true(before) => Some("it no longer only reads"),
        "annotations/idempotent_hint" if is_true(before) => Some("it is no longer idempotent"),
        "annotations/destructive_hint" if is_true(after) => Some("it may destroy now"),
        "enabled" if is_true(before) => Some("it is no longer published"),
        _ => None,
    }
}

/// Judges a rule's change: what is different, with the reasons.
type Judge = fn(Option<&Rule>, Option<&Rule>) -> BTreeMap<String, Vec<String>>;

fn rules(old: &[Rule], new: &[Rule], changes: &mut Vec<PartChange>, judge: Judge) {
    let by_path = |rules: &[Rule]| -> BTreeMap<String, Rule> {
        rules.iter().map(|rule| (rule.path.clone(), rule.clone())).collect()
    };
    let (old, new) = (by_path(old), by_path(new));
    for path in union(&old, &new) {
        let (before, after) = (old.get(path), new.get(path));
        if before == after {
            continue;
        }
        let mut reasons = judge(before, after);
        let (Some(one), Some(other)) = (before, after) else {
            let whole = |rule: Option<&Rule>| rule.map(|rule| Value::Object(rule.said.clone()));
            let breaking = reasons.into_values().flatten().collect();
            changes.push(change(
                path.clone(),
                whole(before).as_ref(),
                whole(after).as_ref(),
                breaking,
            ));
            continue;
        };
        let keys: std::collections::BTreeSet<&String> =
            one.said.keys().chain(other.said.keys()).collect();
        for key in keys.into_iter().filter(|key| one.said.get(*key) != other.said.get(*key)) {
            let breaking = reasons.remove(key).unwrap_or_default();
            let part = format!("{path}/{key}");
            changes.push(change(part, one.said.get(key), other.said.get(key), breaking));
        }
    }
}

fn is_set(rule: &Rule, key: &str) -> bool {
    rule.said.get(key) == Some(&Value::Bool(true))
}

/// Whether a client has to give the field.
fn is_asked_for(rule: &Rule) -> bool {
    let is_path = rule.said.get("location").and_then(Value::as_str) == Some("path");
    is_visible(rule) && (is_path || is_set(rule, "required")) && !is_set(rule, "send_default")
}

fn is_visible(rule: &Rule) -> bool {
    !rule.said.contains_key("constant")
}

fn input(before: Option<&Rule>, after: Option<&Rule>) -> BTreeMap<String, Vec<String>> {
    let mut reasons = Reasons::default();
    match (before, after) {
        (Some(old), None) if is_visible(old) => reasons.add("", "the field is gone"),
        (None, Some(new)) if is_asked_for(new) => reasons.add("", "a new field is required"),
        (Some(old), Some(new)) => match (is_visible(old), is_visible(new)) {
            (true, false) => reasons.add("constant", "the field is gone"),
            (false, true) if is_asked_for(new) => {
                reasons.add("constant", "a new field is required");
            }
            (true, true) => {
                if is_asked_for(new) && !is_asked_for(old) {
                    let key = if is_set(old, "send_default") && !is_set(new, "send_default") {
                        "send_default"
                    } else {
                        "required"
                    };
                    reasons.add(key, "the field is required now");
                }
                if is_set(old, "nullable") && !is_set(new, "nullable") {
                    reasons.add("nullable", "null is no longer taken");
                }
                reasons.shape(old, new, Direction::Input);
            }
            _ => {}
        },
        _ => {}
    }
    reasons.0
}

fn output(before: Option<&Rule>, after: Option<&Rule>) -> BTreeMap<String, Vec<String>> {
    let mut reasons = Reasons::default();
    match (before, after) {
        (Some(_), None) => reasons.add("", "the field is gone"),
        (Some(old), Some(new)) => {
            if is_set(old, "required") && !is_set(new, "required") {
                reasons.add("required", "the field is no longer promised");
            }
            if is_set(new, "nullable") && !is_set(old, "nullable") {
                reasons.add("nullable", "null may come now");
            }
            reasons.shape(old, new, Direction::Output);
        }
        _ => {}
    }
    reasons.0
}

/// Reasons by the key of the rule they belong to.
#[derive(Default)]
struct Reasons(BTreeMap<String, Vec<String>>);

impl Reasons {
    fn add(&mut self, key: &str, reason: &str) {
        self.0.entry(key.to_owned()).or_default().push(reason.to_owned());
    }

    /// What the rule's name and values are.
    fn shape(&mut self, old: &Rule, new: &Rule, direction: Direction) {
        if old.said.get("exposed_field_name") != new.said.get("exposed_field_name") {
            self.add("exposed_field_name", "the field has another name");
        }
        if is_set(old, "as_string") != is_set(new, "as_string") {
            self.add("as_string", "the number is written another way");
        }
        let found = breaks(&schema_of(&old.said), &schema_of(&new.said), direction);
        if found.is_empty() {
            return;
        }
        // The first key that differs stands for all of them.
        let keys = ["schema", "type", "array_item_type", "enum", "additional_properties"];
        let differs = |key: &&str| old.said.get(*key) != new.said.get(*key);
        let key = keys.into_iter().find(differs).unwrap_or("type");
        self.0.entry(key.to_owned()).or_default().extend(found);
    }
}

/// What a rule says of values, as a schema.
fn schema_of(said: &Map<String, Value>) -> Value {
    let source = said.get("source_field_name").and_then(Value::as_str).unwrap_or_default();
    let is_list = source.ends_with("[*]");
    let in_list = |schema: Value| {
        if is_list { json!({ "type": "array", "items": schema }) } else { schema }
    };
    if let Some(schema) = said.get("schema") {
        return in_list(schema.clone());
    }
    let mut schema = Map::new();
    let default = if is_list { "array" } else { "string" };
    let kind = said.get("type").and_then(Value::as_str).unwrap_or(default);
    let mut inner = Map::new();
    if kind == "array" {
        let item = said.get("array_item_type").cloned().unwrap_or_else(|| json!("string"));
        inner.insert("type".to_owned(), item);
    } else {
        inner.insert("type".to_owned(), json!(kind));
    }
    for (from, to) in [("enum", "enum"), ("additional_properties", "additionalProperties")] {
        if let Some(value) = said.get(from) {
            inner.insert(to.to_owned(), value.clone());
        }
    }
    if kind != "array" {
        return Value::Object(inner);
    }
    schema.insert("type".to_owned(), json!("array"));
    schema.insert("items".to_owned(), Value::Object(inner));
    Value::Object(schema)
}

#[cfg(test)]
#[path = "breaking_tests.rs"]
mod tests;
