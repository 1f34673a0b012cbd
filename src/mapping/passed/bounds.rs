//! Whether arguments can be held to a schema in bounded time, whoever wrote it.
//!
//! A `$ref` that goes round is followed as deep as the arguments are, and where two of them meet at
//! each level the work doubles with each. Schemas that refer to one another in a chain double
//! likewise. So only what stays small with every `$ref` replaced is checked.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// How many values a schema may have, `$ref`s replaced.
const VALUES_MAX: usize = 10_000;
/// How deep it may nest, `$ref`s replaced.
const DEPTH_MAX: usize = 200;

/// Why a schema is not checked; `None` where it is.
pub(super) fn problem(schema: &Value) -> Option<&'static str> {
    let names_places = |key: &str| {
        schema.get("$schema").and_then(Value::as_str).is_some_and(|said| said.contains(key))
    };
    // Up to draft 4 a place was named by `id`.
    let id = if names_places("draft-04") || names_places("draft-03") { "id" } else { "$id" };
    if count(schema) > VALUES_MAX {
        return Some("it is too large");
    }
    let mut walk = Walk { root: schema, id, open: Vec::new(), values: 0 };
    walk.value(schema, 0).err()
}

/// Recursion is bounded by the depth of checked JSON, here and below.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>() + 1,
        Value::Object(members) => members.values().map(count).sum::<usize>() + 1,
        _ => 1,
    }
}

struct Walk<'a> {
    root: &'a Value,
    id: &'static str,
    /// The `$ref`s that are being replaced.
    open: Vec<&'a str>,
    values: usize,
}

impl<'a> Walk<'a> {
    /// Schemas and what only looks like one are not told apart: that errs on the safe side.
    fn value(&mut self, value: &'a Value, depth: usize) -> Result<(), &'static str> {
        self.values += 1;
        if self.values > VALUES_MAX || depth > DEPTH_MAX {
            return Err("with every $ref replaced it is too large");
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item, depth + 1)),
            Value::Object(words) => {
                let is_text = |word: &str| words.get(word).is_some_and(Value::is_string);
                if is_text("$dynamicRef") || is_text("$recursiveRef") {
                    return Err("what its dynamic $ref leads to depends on the way there");
                }
                if depth > 0 && is_text(self.id) {
                    return Err("its parts have names of their own for $ref");
                }
                if let Some(Value::String(reference)) = words.get("$ref") {
                    self.reference(reference, depth)?;
                }
                words.values().try_for_each(|value| self.value(value, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn reference(&mut self, reference: &'a str, depth: usize) -> Result<(), &'static str> {
        if self.open.contains(&reference) {
            return Err("a $ref goes round");
        }
        let name = reference.strip_prefix('#').ok_or("a $ref leads out of it")?;
        let target = if name.is_empty() || name.starts_with('/') {
            self.root.pointer(&decoded(name))
        } else {
            anchored(self.root, name)
        };
        let target = target.ok_or("a $ref leads to nothing")?;
        self.open.push(reference);
        let result = self.value(target, depth + 1);
        self.open.pop();
        result
    }
}

/// A pointer in a fragment may be percent-encoded (RFC 6901 section 6).
fn decoded(pointer: &str) -> Cow<'_, str> {
    percent_decode_str(pointer).decode_utf8_lossy()
}

/// The part with this anchor.
fn anchored<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| anchored(item, name)),
        Value::Object(words) if words.get("$anchor").is_some_and(|anchor| anchor == name) => {
            Some(value)
        }
        Value::Object(words) => words.values().find_map(|value| anchored(value, name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_doubles_with_each_step_is_not_checked() {
        let mut parts = serde_json::Map::new();
        for step in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", step + 1) });
            parts.insert(format!("d{step}"), json!({ "anyOf": [next, next] }));
        }
        parts.insert("d40".to_owned(), json!({ "type": "integer" }));
        let schema = json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": parts });
        assert_eq!(problem(&schema), Some("with every $ref replaced it is too large"));
        assert_eq!(problem(&json!({ "$ref": "#/$defs/a", "$defs": { "a": {} } })), None);
        let round = json!({ "properties": { "a": { "$ref": "#" } } });
        assert_eq!(problem(&round), Some("a $ref goes round"));
    }
}
