//! Whether a changed schema still takes what the old one took, or promises what it promised.
//!
//! Asked as: is every value of one schema a value of the other? Where that is not certain the
//! answer is no. What says nothing about values (descriptions, examples, formats) does not count.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Who the schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Arguments: what was taken must still be.
    Input,
    /// Results: what was promised must still be.
    Output,
}

/// Deeper than this, what differs is taken for breaking.
const DEPTH_MAX: usize = 64;
/// Most reasons given.
const REASONS_MAX: usize = 20;

/// They say nothing about which values there are.
const SILENT: [&str; 14] = [
    "$comment",
    "$id",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "default",
    "deprecated",
    "description",
    "example",
    "examples",
    "format",
    "readOnly",
    "title",
    "writeOnly",
];
const LOWER_BOUNDS: [&str; 5] =
    ["exclusiveMinimum", "minItems", "minLength", "minProperties", "minimum"];
const UPPER_BOUNDS: [&str; 5] =
    ["exclusiveMaximum", "maxItems", "maxLength", "maxProperties", "maximum"];
/// Looked at together by their own rules.
const READ: [&str; 9] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "items",
    "oneOf",
    "properties",
    "required",
];

/// Why the change from `old` to `new` breaks who relies on `old`, each reason with the place.
pub(super) fn breaks(old: &Value, new: &Value, direction: Direction) -> Vec<String> {
    let mut comparing = Comparing { direction, path: Vec::new(), reasons: Vec::new() };
    match direction {
        Direction::Input => comparing.schemas(old, new),
        Direction::Output => comparing.schemas(new, old),
    }
    comparing.reasons
}

struct Comparing<'a> {
    direction: Direction,
    path: Vec<&'a str>,
    reasons: Vec<String>,
}

impl<'a> Comparing<'a> {
    fn note(&mut self, what: &str) {
        if self.reasons.len() < REASONS_MAX {
            let place = self.path.join(".");
            let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
            self.reasons.push(format!("{place}{what}"));
        }
    }

    fn is_input(&self) -> bool {
        self.direction == Direction::Input
    }

    /// Every value of `narrow` has to be one of `wide`.
    fn schemas(&mut self, narrow: &'a Value, wide: &'a Value) {
        if narrow == wide || *narrow == Value::Bool(false) || is_anything(wide) {
            return;
        }
        if self.path.len() > DEPTH_MAX {
            return self.note("differs");
        }
        let empty = || {
            static EMPTY: std::sync::LazyLock<Map<String, Value>> =
                std::sync::LazyLock::new(Map::new);
            &*EMPTY
        };
        let narrow = match narrow {
            Value::Object(members) => members,
            _ => empty(),
        };
        let Value::Object(wide) = wide else { return self.note("nothing fits any more") };
        self.types(narrow, wide);
        self.values(narrow, wide);
        self.bounds(narrow, wide);
        self.members(narrow, wide);
        if let Some(items) = wide.get("items") {
            self.path.push("[]");
            self.schemas(narrow.get("items").unwrap_or(&Value::Bool(true)), items);
            self.path.pop();
        }
        self.branches(narrow, wide);
        for (key, said) in wide {
            let is_read = key.as_str() == "type"
                || key.starts_with("x-")
                || [&SILENT[..], &LOWER_BOUNDS, &UPPER_BOUNDS, &READ]
                    .iter()
                    .any(|known| known.contains(&key.as_str()));
            if !is_read && narrow.get(key) != Some(said) {
                self.note(&format!("`{key}` differs"));
            }
        }
    }

    fn types(&mut self, narrow: &Map<String, Value>, wide: &Map<String, Value>) {
        let Some(allowed) = types(wide) else { return };
        let is_allowed = |name: &&str| {
            allowed.contains(name) || (*name == "integer" && allowed.contains("number"))
        };
        let fits = match types(narrow) {
            Some(names) => names.iter().all(is_allowed),
            None => match listed(narrow) {
                Some(values) => values.iter().all(|value| is_allowed(&type_of(value))),
                None => false,
            },
        };
        if !fits {
            let shown = |types: Option<BTreeSet<&str>>| {
                types.map_or("any".to_owned(), |names| {
                    names.into_iter().collect::<Vec<_>>().join(" or ")
                })
            };
            let (one, other) = (shown(types(narrow)), shown(Some(allowed)));
            let (old, new) = if self.is_input() { (one, other) } else { (other, one) };
            self.note(&format!("type: {old} -> {new}"));
        }
    }

    fn values(&mut self, narrow: &Map<String, Value>, wide: &Map<String, Value>) {
        let Some(allowed) = listed(wide) else { return };
        let verb = if self.is_input() { "no longer allowed" } else { "may come now" };
        match listed(narrow) {
            None => self.note(if self.is_input() {
                "only some values are allowed now"
            } else {
                "any value may come now"
            }),
            Some(values) => {
                for value in values.into_iter().filter(|value| !allowed.contains(value)) {
                    self.note(&format!("{} {verb}", short(value)));
                }
            }
        }
    }

    fn bounds(&mut self, narrow: &Map<String, Value>, wide: &Map<String, Value>) {
        for (keys, is_lower) in [(LOWER_BOUNDS, true), (UPPER_BOUNDS, false)] {
            for key in keys {
                let Some(bound) = wide.get(key) else { continue };
                let number = |value: Option<&Value>| value.and_then(Value::as_f64);
                let fits = match (number(narrow.get(key)), number(Some(bound))) {
                    (Some(one), Some(other)) if is_lower => one >= other,
                    (Some(one), Some(other)) => one <= other,
                    (None, Some(bound))
                        if is_lower && key.starts_with("min") && key != "minimum" =>
                    {
                        bound <= 0.0
                    }
                    _ => narrow.get(key) == Some(bound),
                };
                if !fits {
                    self.note(&format!("`{key}` differs"));
                }
            }
        }
    }

    fn members(&mut self, narrow: &'a Map<String, Value>, wide: &'a Map<String, Value>) {
        let before = names(narrow);
        for name in names(wide).difference(&before) {
            self.note(&if self.is_input() {
                format!("`{name}` is required now")
            } else {
                format!("`{name}` is no longer promised")
            });
        }
        let empty = Map::new();
        let open = |schema: &Map<String, Value>| {
            !matches!(schema.get("additionalProperties"), Some(Value::Bool(false)))
        };
        let (old, new) = if self.is_input() { (narrow, wide) } else { (wide, narrow) };
        for name in properties(old).unwrap_or(&empty).keys() {
            if !properties(new).unwrap_or(&empty).contains_key(name) {
                self.note(&format!("`{name}` is no longer there"));
            }
        }
        if let (Some(one), Some(other)) = (properties(narrow), properties(wide)) {
            for (name, schema) in one {
                if let Some(wide) = other.get(name) {
                    self.path.push(name);
                    self.schemas(schema, wide);
                    self.path.pop();
                }
            }
        }
        match (narrow.get("additionalProperties"), wide.get("additionalProperties")) {
            (_, Some(Value::Bool(false))) if open(narrow) && self.is_input() => {
                self.note("further members are no longer allowed");
            }
            // That more members may come than described breaks nobody.
            (_, None | Some(Value::Bool(false))) => {}
            (one, Some(schema)) => {
                self.path.push("*");
                self.schemas(one.unwrap_or(&Value::Bool(true)), schema);
                self.path.pop();
            }
        }
    }

    /// `anyOf` and `oneOf` may gain branches, `allOf` may lose some.
    fn branches(&mut self, narrow: &Map<String, Value>, wide: &Map<String, Value>) {
        let list = |schema: &Map<String, Value>, key: &str| -> Option<Vec<Value>> {
            schema.get(key).and_then(Value::as_array).cloned()
        };
        for key in ["anyOf", "oneOf"] {
            let Some(wide) = list(wide, key) else { continue };
            let fits = list(narrow, key)
                .is_some_and(|narrow| narrow.iter().all(|branch| wide.contains(branch)));
            if !fits {
                self.note(&format!("`{key}` differs"));
            }
        }
        if let Some(wide) = list(wide, "allOf") {
            let narrow = list(narrow, "allOf").unwrap_or_default();
            if !wide.iter().all(|branch| narrow.contains(branch)) {
                self.note("`allOf` differs");
            }
        }
    }
}

fn is_anything(schema: &Value) -> bool {
    match schema {
        Value::Bool(anything) => *anything,
        Value::Object(members) => members.keys().all(|key| SILENT.contains(&key.as_str())),
        _ => false,
    }
}

fn properties(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn types(schema: &Map<String, Value>) -> Option<BTreeSet<&str>> {
    match schema.get("type")? {
        Value::String(name) => Some(BTreeSet::from([name.as_str()])),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

/// The values that are allowed, where they are listed.
fn listed(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn names(schema: &Map<String, Value>) -> BTreeSet<&str> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_narrows_an_input_breaks_it_and_what_widens_an_output_breaks_that() {
        let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
        let a = json!({ "type": "string" });
        // A schema, a wider one; whether the change narrow -> wide breaks the input and the output.
        for (narrow, wide) in [
            (json!({ "type": "integer" }), json!({ "type": "number" })),
            (a.clone(), json!({ "type": ["string", "null"] })),
            (
                json!({ "type": "string", "enum": ["a"] }),
                json!({ "type": "string", "enum": ["a", "b"] }),
            ),
            (json!({ "type": "string", "enum": ["a"] }), a.clone()),
            (json!({ "enum": ["a"] }), a.clone()),
            (json!({ "const": 1 }), json!({ "enum": [1, 2] })),
            (
                json!({ "type": "string", "maxLength": 3 }),
                json!({ "type": "string", "maxLength": 4 }),
            ),
            (
                json!({ "type": "string", "minLength": 2 }),
                json!({ "type": "string", "minLength": 1 }),
            ),
            (json!({ "type": "string", "pattern": "x" }), a.clone()),
            (object(json!({ "a": a }), json!(["a"])), object(json!({ "a": a }), json!([]))),
            (
                json!({ "type": "array", "items": { "type": "integer" } }),
                json!({ "type": "array", "items": { "type": "number" } }),
            ),
            (json!({ "type": "array", "items": a }), json!({ "type": "array" })),
            (json!({ "anyOf": [a] }), json!({ "anyOf": [a, { "type": "null" }] })),
            (json!({ "allOf": [a, { "maxLength": 2 }] }), json!({ "allOf": [a] })),
            (a.clone(), json!(true)),
            (a.clone(), json!({})),
        ] {
            let broken = |old, new, direction| !breaks(old, new, direction).is_empty();
            assert!(!broken(&narrow, &wide, Direction::Input), "{narrow} -> {wide}");
            assert!(broken(&wide, &narrow, Direction::Input), "{wide} -> {narrow}");
            assert!(broken(&narrow, &wide, Direction::Output), "{narrow} -> {wide}");
            assert!(!broken(&wide, &narrow, Direction::Output), "{wide} -> {narrow}");
        }
    }

    #[test]
    fn members_that_come_and_go() {
        let of = |names: &[&str]| {
            let members: Map<String, Value> = names
                .iter()
                .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
                .collect();
            json!({ "type": "object", "properties": members })
        };
        for direction in [Direction::Input, Direction::Output] {
            assert!(breaks(&of(&["a"]), &of(&["a", "b"]), direction).is_empty(), "{direction:?}");
            assert_eq!(
                breaks(&of(&["a", "b"]), &of(&["a"]), direction),
                ["`b` is no longer there"]
            );
        }
        let closed = json!({ "type": "object", "additionalProperties": false });
        assert_eq!(breaks(&of(&[]), &closed, Direction::Input).len(), 1);
        assert!(breaks(&closed, &of(&[]), Direction::Input).is_empty());
        assert!(breaks(&closed, &of(&["a"]), Direction::Output).is_empty());
    }

    #[test]
    fn reasons_say_where() {
        let of = |inner: Value| json!({ "properties": { "a": { "items": { "properties": { "b": inner } } } } });
        let reasons = breaks(
            &of(json!({ "type": "string" })),
            &of(json!({ "type": "integer" })),
            Direction::Input,
        );
        assert_eq!(reasons, ["a.[].b: type: string -> integer"]);
    }

    #[test]
    fn what_says_nothing_about_values_does_not_count_and_what_nobody_knows_does() {
        let old = json!({ "type": "string", "description": "a", "format": "uuid", "x-a": 1 });
        let new = json!({ "type": "string", "description": "b", "examples": [1], "x-a": 2 });
        assert!(breaks(&old, &new, Direction::Input).is_empty());
        let strange = json!({ "type": "string", "unheardOf": 1 });
        assert_eq!(breaks(&old, &strange, Direction::Input), ["`unheardOf` differs"]);
        assert!(breaks(&strange, &old, Direction::Input).is_empty());
    }

    #[test]
    fn depth_and_width_are_bounded() {
        let nest = |leaf: &str| {
            (0..500).fold(json!({ "type": leaf }), |inner, _| json!({ "items": inner }))
        };
        assert_eq!(breaks(&nest("string"), &nest("integer"), Direction::Input).len(), 1);
        let wide = |value: &str| {
            let values: Vec<String> = (0..1000).map(|at| format!("{value}{at}")).collect();
            json!({ "enum": values })
        };
        assert_eq!(breaks(&wide("a"), &wide("b"), Direction::Input).len(), REASONS_MAX);
    }
}
