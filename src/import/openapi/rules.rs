//! A schema as a field rule: in the words of a rule where they are enough, else as it is.

use serde_json::{Map, Value, json};

use super::clean::{self, FIELD_TEXT_MAX};
use super::words;
use crate::mapping::{FieldRule, FieldType, Location};

/// The source of a body that is one value.
pub(super) const WHOLE_BODY: &str = "$";

/// The rule of one field with a converted schema.
pub(super) fn rule(source: String, location: Location, schema: Value, required: bool) -> FieldRule {
    let mut rule = FieldRule { required, ..FieldRule::new(source, location) };
    let mut schema = match schema {
        Value::Object(words) => words,
        Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
        _ => Map::new(),
    };
    rule.description = schema.remove("description").and_then(text);
    rule.default = schema.remove("default").filter(|value| !value.is_null());
    if schema.remove("deprecated").is_some() {
        deprecate(&mut rule);
    }
    if location == Location::Body {
        rule.nullable = words::takes_null(&Value::Object(schema.clone()))
            || ["oneOf", "anyOf"].iter().any(|word| {
                let branches = schema.get(*word).and_then(Value::as_array);
                branches.is_some_and(|branches| branches.iter().any(words::takes_null))
            });
    } else {
        // There is no null on the wire.
        words::remove_null(&mut schema);
    }
    if !say(&mut rule, &schema) {
        rule.schema = Some(Value::Object(schema));
    }
    let fits = |value: &Value| rule.field_type.is_none_or(|own| is_of(value, own));
    if !rule.default.as_ref().is_none_or(fits) {
        rule.default = None;
    }
    rule
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Says first of all that a field should not be used.
pub(super) fn deprecate(rule: &mut FieldRule) {
    let text = rule.description.take().unwrap_or_default();
    if text.starts_with("Deprecated") {
        rule.description = Some(text);
    } else {
        rule.description = Some(format!("Deprecated. {text}").trim_end().to_owned());
    }
}

/// Adds a sentence to what is told of a field.
pub(super) fn tell(rule: &mut FieldRule, sentence: &str) {
    let text = rule.description.take().unwrap_or_default();
    let joined = if text.is_empty() { sentence.to_owned() } else { format!("{text}\n{sentence}") };
    rule.description = Some(clean::lines(&joined, FIELD_TEXT_MAX + 400));
}

/// Says a schema in the words of a rule, where they are enough.
fn say(rule: &mut FieldRule, schema: &Map<String, Value>) -> bool {
    let of_items = schema.get("type") == Some(&json!("array"));
    let single = if of_items {
        match schema.get("items") {
            Some(Value::Object(items)) if schema.len() == 2 => items,
            _ => return false,
        }
    } else {
        schema
    };
    let known = ["type", "format", "enum"];
    if !single.keys().all(|word| known.contains(&word.as_str())) {
        return false;
    }
    let (mut types, _) = words::types(single);
    let mut allowed = single.get("enum").and_then(Value::as_array).cloned();
    if rule.nullable && !of_items {
        types.retain(|word| *word != "null");
        if let Some(values) = &mut allowed {
            values.retain(|value| !value.is_null());
        }
    }
    let [only] = types.as_slice() else { return false };
    let Some(field_type) = scalar(only) else { return false };
    let all_fit = allowed.iter().flatten().all(|value| is_of(value, field_type));
    if !all_fit || allowed.as_ref().is_some_and(Vec::is_empty) {
        return false;
    }
    rule.format = single.get("format").and_then(Value::as_str).map(ToOwned::to_owned);
    rule.allowed = allowed;
    if of_items {
        rule.field_type = Some(FieldType::Array);
        rule.array_item_type = Some(field_type);
    } else {
        rule.field_type = Some(field_type);
    }
    true
}

fn scalar(word: &str) -> Option<FieldType> {
    Some(match word {
        "string" => FieldType::String,
        "integer" => FieldType::Integer,
        "number" => FieldType::Number,
        "boolean" => FieldType::Boolean,
        _ => return None,
    })
}

fn is_of(value: &Value, field_type: FieldType) -> bool {
    match field_type {
        FieldType::String => value.is_string(),
        FieldType::Integer | FieldType::Number => value.is_number(),
        FieldType::Boolean => value.is_boolean(),
        FieldType::Object => value.is_object(),
        FieldType::Array => value.is_array(),
        FieldType::File => false,
    }
}

/// The name of a member as a source path (see `FieldPath`).
pub(super) fn source_of(name: &str) -> String {
    let mut source = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, '.' | '[' | ']' | '\\') || name == "$" {
            source.push('\\');
        }
        source.push(character);
    }
    source
}

/// One rule for each member of an object; its schema is converted and has no unions.
pub(super) fn of_members(mut schema: Map<String, Value>) -> Vec<FieldRule> {
    let required: Vec<String> = match schema.remove("required") {
        Some(Value::Array(names)) => names.into_iter().filter_map(text).collect(),
        _ => Vec::new(),
    };
    let mut rules = Vec::new();
    let mut named = match schema.remove("properties") {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    // What is demanded and not described can be anything.
    for name in &required {
        if !name.is_empty() && !named.contains_key(name) {
            named.insert(name.clone(), json!({}));
        }
    }
    for (name, member) in named {
        if member != Value::Bool(false) {
            let is_required = required.contains(&name);
            rules.push(rule(source_of(&name), Location::Body, member, is_required));
        }
    }
    rules
}

/// What makes a converted schema a file, where its place can carry one.
pub(super) fn is_file(schema: &Map<String, Value>) -> bool {
    let (types, _) = words::types(schema);
    let is_text = types.iter().all(|word| matches!(*word, "string" | "null"));
    // Some write an object of the format for want of a type.
    let format = schema.get("format").and_then(Value::as_str);
    let binary = matches!(format, Some("binary" | "file"));
    if binary && !schema.contains_key("properties") && types == ["object"] {
        return true;
    }
    let media = schema.contains_key("contentMediaType") && !schema.contains_key("contentEncoding");
    is_text && (binary || media)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::FieldPath;

    #[test]
    fn simple_schemas_are_said_in_words() {
        let shown = |schema: Value| {
            let rule = rule("a".to_owned(), Location::Body, schema, false);
            serde_json::to_value(&rule).unwrap()
        };
        let base = json!({"source_field_name": "a", "location": "body"});
        for (schema, expected) in [
            (json!({"type": "string"}), json!({"type": "string"})),
            (
                json!({"type": ["integer", "null"], "description": "d", "default": 3}),
                json!({"type": "integer", "nullable": true, "description": "d", "default": 3}),
            ),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["x"]}}),
                json!({"type": "array", "array_item_type": "string", "enum": ["x"]}),
            ),
            (
                json!({"type": ["string", "null"], "enum": ["x", null]}),
                json!({"type": "string", "nullable": true, "enum": ["x"]}),
            ),
            (
                json!({"type": "string", "minLength": 1, "default": 5}),
                json!({"schema": {"type": "string", "minLength": 1}, "default": 5}),
            ),
            (json!({"type": "string", "default": 5}), json!({"type": "string"})),
            (json!({}), json!({"schema": {}})),
            (
                json!({"type": "string", "deprecated": true, "description": "d"}),
                json!({"type": "string", "description": "Deprecated. d"}),
            ),
        ] {
            let mut all = base.clone();
            for (key, value) in expected.as_object().unwrap() {
                all[key] = value.clone();
            }
            assert_eq!(shown(schema.clone()), all, "{schema}");
        }
    }

    #[test]
    fn sources_are_paths_to_the_member() {
        for name in ["a", "a.b", "a[0]", "x\\y", "$", "$ref", "@type", "[*]"] {
            let path = FieldPath::parse(&source_of(name)).unwrap();
            assert_eq!((path.segments().len(), path.leaf()), (1, Some(name)));
        }
    }
}
