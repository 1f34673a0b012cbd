//! Two schemas that both hold, as one.
//!
//! Both are results of the conversion: without references, in the words of 2020-12.

use serde_json::{Map, Value, json};

use super::words;

/// How deep members of members are merged; deeper ones stand side by side in `allOf`.
const LEVELS_MAX: usize = 24;

/// Makes `into` say what `other` says too. Gives what cannot be said together; then `into` has its
/// own word.
pub(super) fn into(into: &mut Map<String, Value>, other: Map<String, Value>) -> Option<String> {
    merge(into, other, LEVELS_MAX)
}

fn merge(
    into: &mut Map<String, Value>,
    other: Map<String, Value>,
    levels: usize,
) -> Option<String> {
    let mut conflict = None;
    let mut apart = Map::new();
    let types = merged_types(into, &other);
    for (word, value) in other {
        let Some(own) = into.get_mut(&word) else {
            into.insert(word, value);
            continue;
        };
        if *own == value {
            continue;
        }
        match word.as_str() {
            "properties" => {
                let found = members(own, value, levels);
                conflict = conflict.or(found);
            }
            "required" => unite(own, value),
            "allOf" => {
                if let (Value::Array(own), Value::Array(other)) = (own, value) {
                    own.extend(other);
                }
            }
            "enum" => {
                if let (Value::Array(own), Value::Array(other)) = (own, value) {
                    let common: Vec<Value> =
                        own.iter().filter(|value| other.contains(value)).cloned().collect();
                    if common.is_empty() {
                        conflict = Some(contradiction("enum"));
                    } else {
                        *own = common;
                    }
                }
            }
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                if number(&value) > number(own) {
                    *own = value;
                }
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                if number(&value) < number(own) {
                    *own = value;
                }
            }
            "items" | "not" if levels == 0 => drop(apart.insert(word, value)),
            "items" => match (own, value) {
                (Value::Object(own), Value::Object(other)) => {
                    conflict = conflict.or(merge(own, other, levels - 1));
                }
                (own, Value::Bool(false)) => *own = Value::Bool(false),
                _ => {}
            },
            "additionalProperties" => match (&*own, &value) {
                (Value::Bool(true), _) | (_, Value::Bool(false)) => *own = value,
                (Value::Bool(false), _) | (_, Value::Bool(true)) => {}
                _ => drop(apart.insert(word, value)),
            },
            "uniqueItems" | "deprecated" => *own = json!(true),
            // Types are merged below; the outer one describes the whole.
            "type" | "description" | "default" | "format" | "title" | "examples"
            | "contentEncoding" | "contentMediaType" => {}
            "const" => conflict = Some(contradiction("const")),
            _ => drop(apart.insert(word, value)),
        }
    }
    match types {
        Some(types) if types.is_empty() => conflict = Some(contradiction("type")),
        Some(types) => words::set_types(into, types),
        None => {}
    }
    if !apart.is_empty() {
        let all = into.entry("allOf").or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.push(Value::Object(apart));
        }
    }
    conflict
}

fn contradiction(word: &str) -> String {
    format!("parts of an `allOf` contradict each other in `{word}`; the first one counts")
}

/// The types that both take, where both say some.
fn merged_types(
    into: &Map<String, Value>,
    other: &Map<String, Value>,
) -> Option<Vec<&'static str>> {
    let (own, other) = (words::types(into).0, words::types(other).0);
    if own.is_empty() || other.is_empty() {
        return None;
    }
    let takes = |types: &[&str], word: &str| {
        types.contains(&word) || (word == "integer" && types.contains(&"number"))
    };
    let all = own.iter().chain(&other).copied();
    let mut common: Vec<&'static str> = Vec::new();
    for word in all.filter(|word| takes(&own, word) && takes(&other, word)) {
        if !common.contains(&word) {
            common.push(word);
        }
    }
    Some(common)
}

fn members(own: &mut Value, other: Value, levels: usize) -> Option<String> {
    let (Value::Object(own), Value::Object(other)) = (own, other) else { return None };
    let mut conflict = None;
    for (name, schema) in other {
        match own.get_mut(&name) {
            None => drop(own.insert(name, schema)),
            Some(known) if *known == schema => {}
            Some(known) => conflict = conflict.or(both(known, schema, levels)),
        }
    }
    conflict
}

/// Makes a schema say what another one says too.
fn both(known: &mut Value, other: Value, levels: usize) -> Option<String> {
    match (&mut *known, other) {
        (Value::Object(known), Value::Object(other)) if levels > 0 => {
            merge(known, other, levels - 1)
        }
        (Value::Bool(false), _) => None,
        (_, Value::Bool(false)) => {
            *known = Value::Bool(false);
            None
        }
        (known, other) => {
            *known = json!({ "allOf": [known.take(), other] });
            None
        }
    }
}

fn unite(own: &mut Value, other: Value) {
    if let (Value::Array(own), Value::Array(other)) = (own, other) {
        for name in other {
            if !own.contains(&name) {
                own.push(name);
            }
        }
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(left: Value, right: Value) -> (Value, bool) {
        let (Value::Object(mut left), Value::Object(right)) = (left, right) else { panic!() };
        let conflict = into(&mut left, right).is_some();
        (Value::Object(left), conflict)
    }

    #[test]
    fn both_hold() {
        let left = json!({
            "type": "object", "properties": {"a": {"type": "number", "minimum": 1}, "b": {}},
            "required": ["a"], "minProperties": 1,
        });
        let right = json!({
            "type": ["object", "null"], "required": ["b", "a"], "minProperties": 2,
            "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}, "c": {"type": "string"}},
        });
        let expected = json!({
            "type": "object", "minProperties": 2, "required": ["a", "b"],
            "properties": {
                "a": {"type": "integer", "minimum": 1, "maximum": 9}, "b": {},
                "c": {"type": "string"},
            },
        });
        assert_eq!(merged(left, right), (expected, false));
        let (both, _) = merged(json!({"oneOf": [1]}), json!({"oneOf": [2], "pattern": "a"}));
        assert_eq!(both, json!({"oneOf": [1], "pattern": "a", "allOf": [{"oneOf": [2]}]}));
        let (both, _) = merged(json!({"enum": [1, 2, 3]}), json!({"enum": [3, 2]}));
        assert_eq!(both, json!({"enum": [2, 3]}));
    }

    #[test]
    fn contradictions_are_told() {
        for (left, right) in [
            (json!({"type": "string"}), json!({"type": "object"})),
            (json!({"enum": ["a"]}), json!({"enum": ["b"]})),
            (json!({"const": 1}), json!({"const": 2})),
            (
                json!({"properties": {"a": {"type": "string"}}}),
                json!({"properties": {"a": {"type": "array"}}}),
            ),
        ] {
            let (both, conflict) = merged(left.clone(), right);
            assert!(conflict, "{left}");
            assert_eq!(both, left);
        }
    }
}
