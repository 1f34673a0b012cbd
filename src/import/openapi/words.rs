//! The words of JSON Schema: types, null, and which of them judge a value.

use serde_json::{Map, Value, json};

use crate::mapping::KEY_BYTES_MAX;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Words that say what values are taken.
const JUDGING: &[&str] = &[
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "items",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "additionalProperties",
];

/// Whether a word says what values are taken.
pub(super) fn is_judging(word: &str) -> bool {
    JUDGING.contains(&word)
}

/// Whether clients are shown a property by this name.
pub(super) fn is_key(name: &str) -> bool {
    let starts = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.len() <= KEY_BYTES_MAX
        && name.as_bytes().first().is_some_and(starts)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The types that a schema says, and a word among them that is none.
pub(super) fn types(words: &Map<String, Value>) -> (Vec<&'static str>, Option<&str>) {
    let listed = match words.get("type") {
        Some(Value::Array(listed)) => listed.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let mut types = Vec::new();
    let mut unknown = None;
    for word in listed.iter().filter_map(Value::as_str) {
        let word = word.trim();
        let known = TYPES.iter().find(|known| known.eq_ignore_ascii_case(word)).copied();
        let known = known.or_else(|| (word == "file").then_some("string"));
        match known {
            Some(known) if types.contains(&known) => {}
            Some(known) => types.push(known),
            // Swagger's way to say nothing.
            None if word.eq_ignore_ascii_case("any") => return (Vec::new(), None),
            None => unknown = Some(word),
        }
    }
    if unknown.is_some() {
        // One of several is as good as none: the unknown one may be what is sent.
        types.clear();
    }
    (types, unknown)
}

/// Writes the types of a schema; none is no word.
pub(super) fn set_types(out: &mut Map<String, Value>, types: Vec<&'static str>) {
    match types.as_slice() {
        [] => drop(out.remove("type")),
        [one] => drop(out.insert("type".to_owned(), json!(one))),
        several => drop(out.insert("type".to_owned(), json!(several))),
    }
}

/// A schema with members is one of objects, whether it says so or not.
pub(super) fn imply_type(out: &mut Map<String, Value>) {
    let has = |word: &str| out.contains_key(word);
    if has("type") || has("oneOf") || has("anyOf") || has("enum") || has("const") {
        return;
    }
    let implied = if has("properties") {
        "object"
    } else if has("items") {
        "array"
    } else {
        return;
    };
    out.insert("type".to_owned(), json!(implied));
}

/// Lets a schema take `null` too.
pub(super) fn add_null(out: &mut Map<String, Value>) {
    if out.contains_key("allOf") || out.contains_key("not") {
        let described = out.remove("description");
        let inner = std::mem::take(out);
        out.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
        if let Some(described) = described {
            out.insert("description".to_owned(), described);
        }
        return;
    }
    let (mut types, _) = types(out);
    if !types.is_empty() && !types.contains(&"null") {
        types.push("null");
        set_types(out, types);
    }
    if let Some(constant) = out.remove("const") {
        out.insert("enum".to_owned(), json!([constant]));
    }
    if let Some(Value::Array(allowed)) = out.get_mut("enum")
        && !allowed.contains(&Value::Null)
    {
        allowed.push(Value::Null);
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(Value::Array(branches)) = out.get_mut(word)
            && !branches.iter().any(takes_null)
        {
            branches.push(json!({ "type": "null" }));
        }
    }
}

/// Whether a converted schema plainly takes `null`.
pub(super) fn takes_null(schema: &Value) -> bool {
    let Value::Object(words) = schema else { return *schema == Value::Bool(true) };
    if let Some(Value::Array(allowed)) = words.get("enum") {
        return allowed.contains(&Value::Null);
    }
    match words.get("type") {
        Some(Value::Array(types)) => types.iter().any(|word| word == "null"),
        Some(word) => word == "null",
        None => false,
    }
}

/// Takes `null` from what a converted schema takes, as far as it plainly says so. Gives whether it
/// did.
pub(super) fn remove_null(out: &mut Map<String, Value>) -> bool {
    let (mut types, _) = types(out);
    let mut removed = types.len() > 1 && types.contains(&"null");
    if removed {
        types.retain(|word| *word != "null");
        set_types(out, types);
    }
    for word in ["enum", "oneOf", "anyOf"] {
        if let Some(Value::Array(values)) = out.get_mut(word)
            && values.len() > 1
        {
            let before = values.len();
            let is_null = |value: &Value| value.is_null() || *value == json!({ "type": "null" });
            values.retain(|value| !is_null(value));
            removed |= values.len() < before;
        }
    }
    removed
}

/// A value of a list that is written otherwise than its type: `1` among texts. `None` where it
/// cannot be of the type at all.
pub(super) fn of_types(value: &Value, types: &[&str]) -> Option<Value> {
    let has = |word: &str| types.contains(&word);
    let fits = match value {
        Value::Null => has("null"),
        Value::Bool(_) => has("boolean"),
        Value::Number(number) => has("number") || (has("integer") && is_whole(number)),
        Value::String(_) => has("string"),
        Value::Array(_) => has("array"),
        Value::Object(_) => has("object"),
    };
    if types.is_empty() || fits {
        return Some(value.clone());
    }
    match value {
        Value::Bool(_) if has("string") => Some(json!(value.to_string())),
        // Of `1.10` and `1e3` it cannot be told any more how they were written.
        Value::Number(number) if has("string") && (number.is_i64() || number.is_u64()) => {
            Some(json!(value.to_string()))
        }
        Value::String(text) => {
            let read: Value = serde_json::from_str(text.trim()).ok()?;
            let is_single = read.is_number() || read.is_boolean();
            if is_single { of_types(&read, types) } else { None }
        }
        _ => None,
    }
}

fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64()
        || number.is_u64()
        || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(words) = value else { panic!() };
        words
    }

    #[test]
    fn types_are_read_as_written() {
        for (schema, expected, unknown) in [
            (json!({"type": "String"}), vec!["string"], None),
            (json!({"type": ["integer", "null"]}), vec!["integer", "null"], None),
            (json!({"type": "file"}), vec!["string"], None),
            (json!({"type": "any"}), vec![], None),
            (json!({"type": ["string", "long"]}), vec![], Some("long")),
            (json!({"type": 1}), vec![], None),
            (json!({}), vec![], None),
        ] {
            assert_eq!(types(&object(schema.clone())), (expected, unknown), "{schema}");
        }
    }

    #[test]
    fn null_is_added_and_removed() {
        for (schema, with) in [
            (json!({"type": "string"}), json!({"type": ["string", "null"]})),
            (
                json!({"type": "string", "enum": ["a"]}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "array"}]}),
                json!({"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "null"}]}),
            ),
        ] {
            let mut words = object(schema.clone());
            add_null(&mut words);
            assert_eq!(Value::Object(words.clone()), with);
            add_null(&mut words);
            assert_eq!(Value::Object(words.clone()), with);
            assert!(remove_null(&mut words));
            assert!(!remove_null(&mut words));
            assert_eq!(words, object(schema));
        }
        let mut words = object(json!({"allOf": [{}], "description": "d"}));
        add_null(&mut words);
        let expected = json!({"anyOf": [{"allOf": [{}]}, {"type": "null"}], "description": "d"});
        assert_eq!(Value::Object(words), expected);
    }

    #[test]
    fn values_become_what_their_type_says() {
        assert_eq!(of_types(&json!(1), &["string"]), Some(json!("1")));
        assert_eq!(of_types(&json!(1.5), &["string"]), None);
        assert_eq!(of_types(&json!("1"), &["integer"]), Some(json!(1)));
        assert_eq!(of_types(&json!("true"), &["boolean"]), Some(json!(true)));
        assert_eq!(of_types(&json!("x"), &["integer"]), None);
        assert_eq!(of_types(&json!("{}"), &["object"]), None);
        assert_eq!(of_types(&json!(null), &["string"]), None);
        assert_eq!(of_types(&json!(2.0), &["integer"]), Some(json!(2.0)));
        assert_eq!(of_types(&json!("x"), &[]), Some(json!("x")));
    }
}
