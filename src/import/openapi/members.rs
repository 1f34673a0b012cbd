//! A JSON body or a form as fields: one for each member of an object, else one for all of it.

use serde_json::{Map, Value};

use super::body::{Body, whole};
use super::clean;
use super::notes::Notes;
use super::rules;
use super::unions;
use super::words;
use crate::mapping::{FieldRule, RULES_MAX};

/// The rules of a JSON body: one for each member of an object, else one for all of it.
pub(super) fn json_rules(
    schema: Value,
    is_required: Option<bool>,
    body: &mut Body,
    notes: &mut Notes,
) -> Vec<FieldRule> {
    let required = is_required != Some(false);
    let words = words_of(&schema);
    let is_open = words.is_some_and(|words| {
        words.get("additionalProperties").is_some_and(Value::is_object)
            || words.contains_key("patternProperties")
    });
    if !is_open
        && let Some(rules) = member_rules(schema.clone(), required, body, notes)
        && rules.len() < RULES_MAX / 2
        && !rules.is_empty()
    {
        return rules;
    }
    body.rule.clear();
    body.requires.clear();
    vec![whole(schema, is_required)]
}

/// One rule for each member of an object; `None` where it is none, or not of described members.
pub(super) fn member_rules(
    schema: Value,
    is_required: bool,
    body: &mut Body,
    notes: &mut Notes,
) -> Option<Vec<FieldRule>> {
    let Value::Object(mut words) = schema else { return None };
    words::remove_null(&mut words);
    let (types, _) = words::types(&words);
    let has_union = ["oneOf", "anyOf", "allOf"].iter().any(|word| words.contains_key(*word));
    if !types.iter().all(|word| *word == "object")
        || !(has_union || words.contains_key("properties"))
    {
        return None;
    }
    if ["not", "if", "enum", "const"].iter().any(|word| words.contains_key(*word)) {
        notes.add("what its members have to keep to together is judged by the API only");
        for word in ["not", "if", "then", "else", "enum", "const"] {
            words.remove(word);
        }
    }
    if has_union {
        let folded = unions::fold(words)?;
        body.rule = folded.rule;
        if is_required {
            body.requires = folded.requires;
        }
        words = folded.schema;
    }
    if words.get("additionalProperties") == Some(&Value::Bool(true)) {
        notes.add("members beside the described ones cannot be given");
    }
    if !is_required && let Some(Value::Array(names)) = words.get("required") {
        let names: Vec<String> =
            names.iter().filter_map(Value::as_str).map(clean::quoted).collect();
        let names = names.join(", ");
        let rule = &mut body.rule;
        let blank = if rule.is_empty() { "" } else { " " };
        *rule = format!("{rule}{blank}The body may be left out; else it needs {names}.");
        words.remove("required");
    }
    Some(rules::of_members(words))
}

pub(super) fn words_of(schema: &Value) -> Option<&Map<String, Value>> {
    schema.as_object()
}

/// Whether a schema says what members or items there are.
pub(super) fn has_parts(words: &Map<String, Value>) -> bool {
    ["oneOf", "anyOf", "allOf", "properties", "items"].iter().any(|word| words.contains_key(*word))
}

pub(super) fn is_structured(words: &Map<String, Value>) -> bool {
    let (types, _) = words::types(words);
    types.iter().any(|word| matches!(*word, "object" | "array")) || has_parts(words)
}
