//! A schema without its human text.

use serde_json::{Map, Value};

/// How deep a schema is followed; what stands deeper is left out.
const LEVELS_MAX: usize = 128;

/// What stays of a schema for `data_structure_only`: names, types, nesting, `items`,
/// `additionalProperties` and `required`. Descriptions, titles, formats, defaults, examples, lists
/// of values and bounds go. It is made from the full tree, so both have the same names.
pub fn structure_only(schema: &Value) -> Value {
    stripped(schema, LEVELS_MAX)
}

fn stripped(schema: &Value, levels: usize) -> Value {
    let (Value::Object(words), Some(levels)) = (schema, levels.checked_sub(1)) else {
        return match schema {
            Value::Bool(_) => schema.clone(),
            _ => Value::Object(Map::new()),
        };
    };
    let mut out = Map::new();
    for (word, value) in words {
        let kept = match (word.as_str(), value) {
            ("type" | "required" | "$ref" | "$schema" | "nullable", _) => value.clone(),
            ("items" | "additionalProperties", _) => stripped(value, levels),
            (
                "properties" | "patternProperties" | "$defs" | "definitions",
                Value::Object(schemas),
            ) => schemas
                .iter()
                .map(|(name, schema)| (name.clone(), stripped(schema, levels)))
                .collect::<Map<_, _>>()
                .into(),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().map(|schema| stripped(schema, levels)).collect()
            }
            _ => continue,
        };
        out.insert(word.clone(), kept);
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn human_text_goes_and_structure_stays() {
        let full = json!({
            "type": "object", "description": "D", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": {"type": "string", "format": "date", "title": "T", "examples": ["x"],
                      "enum": ["p"], "pattern": "p", "minLength": 1, "default": "p"},
                // A field may be called as a word is.
                "description": {"type": "array", "items": {"type": "integer", "description": "D"}},
                "free": {"type": "object", "additionalProperties": {"type": "number", "title": "T"}},
                "one": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/d"}]},
            },
            "$defs": {"d": {"type": "boolean", "description": "D"}},
        });
        let expected = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": {"type": "string"},
                "description": {"type": "array", "items": {"type": "integer"}},
                "free": {"type": "object", "additionalProperties": {"type": "number"}},
                "one": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/d"}]},
            },
            "$defs": {"d": {"type": "boolean"}},
        });
        assert_eq!(structure_only(&full), expected);
        assert_eq!(structure_only(&expected), expected);
        let mut deep = json!({});
        (0..500_u16).for_each(|_| deep = json!({"items": deep}));
        structure_only(&deep);
    }
}
