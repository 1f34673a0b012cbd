//! Words of JSON Schema.

use serde_json::{Map, Value, json};

use super::model::SimpleType;
use crate::mapping::{FieldRule, FieldType};

/// The first of two texts that says something.
pub(super) fn first(texts: [&String; 2]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).map_or("", String::as_str)
}

/// What holds XML.
pub(super) fn xml_text() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("string"))])
}

/// An array with a bound on both sides, where there is one.
pub(super) fn array_of(items: Map<String, Value>, least: u32, most: u32) -> Map<String, Value> {
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("array")),
        ("items".to_owned(), Value::Object(items)),
    ]);
    if least > 0 {
        schema.insert("minItems".to_owned(), json!(least));
    }
    if most != u32::MAX {
        schema.insert("maxItems".to_owned(), json!(most));
    }
    schema
}

/// The same, or `null`.
pub(super) fn or_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
    schema
}

/// Adds the default of a schema document, where it is one of JSON.
pub(super) fn insert_default(
    schema: &mut Map<String, Value>,
    simple: &SimpleType,
    default: Option<&str>,
) {
    let Some(value) = default.and_then(|text| simple.json_of(text)) else { return };
    let fits = match schema.get("enum") {
        Some(Value::Array(values)) => values.contains(&value),
        _ => true,
    };
    // Other words could refuse it; a default that does not fit is worse than none.
    let is_free = [
        "pattern",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]
    .iter()
    .all(|word| !schema.contains_key(*word));
    if fits && is_free {
        schema.insert("default".to_owned(), value);
    }
}

/// The one value that it may have, where it is there.
pub(super) fn fix(schema: &mut Map<String, Value>, simple: &SimpleType, fixed: Option<&str>) {
    if let Some(value) = fixed.and_then(|text| simple.json_of(text)) {
        schema.insert("enum".to_owned(), json!([value]));
    }
}

/// Says in the rule itself what the schema says, where it has words for all of it.
pub(super) fn is_plain(schema: &Map<String, Value>, rule: &mut FieldRule) -> bool {
    let field_type = match schema.get("type").and_then(Value::as_str) {
        Some("string") => FieldType::String,
        Some("integer") => FieldType::Integer,
        Some("number") => FieldType::Number,
        Some("boolean") => FieldType::Boolean,
        _ => return false,
    };
    let known = |word: &String| matches!(word.as_str(), "type" | "format" | "enum");
    if !schema.keys().all(known) {
        return false;
    }
    rule.field_type = Some(field_type);
    rule.format = schema.get("format").and_then(Value::as_str).map(str::to_owned);
    rule.allowed = schema.get("enum").and_then(Value::as_array).cloned();
    true
}
