//! Each dialect is proven by the list of rules of its readers, on schemas of every make; and a call
//! made from what a dialect shows passes the full schema.

use proptest::prelude::*;

use super::super::{FieldRule, RequestBody, RequestPlan, structure_only};
use super::*;
use crate::json::guard;

/// Calls `each` with every schema inside, its depth in objects and arrays, and whether it is items.
fn visit(schema: &Value, depth: usize, is_items: bool, each: &mut impl FnMut(&Value, usize, bool)) {
    each(schema, depth, is_items);
    for (_, member) in schema["properties"].as_object().into_iter().flatten() {
        visit(member, depth + 1, false, each);
    }
    if let Some(items) = schema.get("items") {
        visit(items, depth + 1, true, each);
    }
    for branch in schema["anyOf"].as_array().into_iter().flatten() {
        visit(branch, depth, false, each);
    }
    if let Some(others) = schema.get("additionalProperties").filter(|others| others.is_object()) {
        visit(others, depth + 1, false, each);
    }
}

fn names(schema: &Value) -> Vec<&str> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap()).collect()
}

fn only(schema: &Value, words: &[&str]) {
    for word in schema.as_object().unwrap().keys() {
        assert!(words.contains(&word.as_str()), "{word} in {schema}");
    }
}

fn check_portable(root: &Value) {
    assert_eq!(root["type"], "object");
    assert!(root.get("anyOf").is_none());
    visit(root, 0, false, &mut |schema, _, is_items| {
        only(
            schema,
            &[
                "type",
                "description",
                "default",
                "format",
                "pattern",
                "minLength",
                "maxLength",
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
                "minItems",
                "maxItems",
                "uniqueItems",
                "minProperties",
                "maxProperties",
                "enum",
                "items",
                "properties",
                "required",
                "additionalProperties",
                "anyOf",
            ],
        );
        assert!(schema.get("type").is_none_or(Value::is_string), "{schema}");
        assert_eq!(schema["type"] == "array", schema.get("items").is_some(), "{schema}");
        assert!(!is_items || schema.get("type").is_some() || schema.get("anyOf").is_some());
    });
}

fn check_gemini(root: &Value) {
    assert_eq!(root["type"], "object");
    visit(root, 0, false, &mut |schema, depth, _| {
        only(
            schema,
            &[
                "type",
                "format",
                "description",
                "nullable",
                "enum",
                "items",
                "properties",
                "required",
            ],
        );
        let kind = schema["type"].as_str().unwrap();
        assert!(["string", "number", "integer", "boolean", "array", "object"].contains(&kind));
        assert_eq!(kind == "array", schema.get("items").is_some(), "{schema}");
        assert!(depth == 0 || kind != "object" || !names(schema).is_empty(), "{schema}");
        assert!(required(schema).iter().all(|name| names(schema).contains(name)), "{schema}");
        if let Some(list) = schema.get("enum") {
            assert_eq!(kind, "string");
            let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
            assert!(!list.as_array().unwrap().is_empty());
            assert!(list.as_array().unwrap().iter().all(is_text), "{schema}");
        }
        if let Some(format) = schema.get("format") {
            let known: &[&str] = match kind {
                "string" => &["date-time"],
                "integer" => &["int32", "int64"],
                "number" => &["float", "double"],
                _ => &[],
            };
            assert!(known.contains(&format.as_str().unwrap()), "{schema}");
        }
        assert!(schema.get("nullable").is_none_or(|nullable| *nullable == json!(true)));
    });
}

fn check_strict(root: &Value) {
    assert_eq!((&root["type"], root.get("anyOf")), (&json!("object"), None));
    let (mut properties, mut listed, mut chars) = (0, 0, 0);
    visit(root, 1, false, &mut |schema, depth, _| {
        let mut words = vec![
            "type",
            "description",
            "enum",
            "format",
            "items",
            "properties",
            "required",
            "additionalProperties",
            "anyOf",
        ];
        words.extend(strict::WORDS);
        only(schema, &words);
        assert!(depth <= strict::LEVELS_MAX + 1, "{depth}");
        let is = |kind: &str| {
            schema["type"] == kind
                || schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!(kind)))
        };
        assert!(schema.get("type").is_some() != schema.get("anyOf").is_some(), "{schema}");
        assert_eq!(is("object"), schema.get("additionalProperties") == Some(&json!(false)));
        assert_eq!(is("array"), schema.get("items").is_some());
        if is("object") {
            assert_eq!(required(schema), names(schema));
        }
        if let Some(format) = schema.get("format") {
            assert!(is("string") && strict::FORMATS.contains(&format.as_str().unwrap()));
        }
        properties += names(schema).len();
        chars += names(schema).iter().map(|name| name.chars().count()).sum::<usize>();
        for value in schema["enum"].as_array().into_iter().flatten() {
            listed += 1;
            chars += value.as_str().map_or(0, |text| text.chars().count());
        }
        assert!(
            is("null") == schema["enum"].as_array().is_none_or(|list| list.contains(&Value::Null))
                || schema.get("enum").is_none()
        );
    });
    assert!(properties <= strict::PROPERTIES_MAX && listed <= strict::LISTED_MAX);
    assert!(chars <= strict::CHARS_MAX);
}

fn check_all(schema: &Value) {
    assert_eq!(in_dialect(schema, Dialect::Full), *schema);
    for schema in [schema, &structure_only(schema)] {
        check_portable(&in_dialect(schema, Dialect::Portable));
        check_gemini(&in_dialect(schema, Dialect::Gemini));
        check_strict(&in_dialect(schema, Dialect::OpenaiStrict));
    }
}

fn rich() -> Value {
    json!({
        "type": "object", "required": ["id", "mode"], "additionalProperties": false,
        "properties": {
            "id": {"type": "integer", "format": "int64", "exclusiveMinimum": 0, "description": "Id"},
            "mode": {"type": ["string", "null"], "enum": ["a", "b", null]},
            "level": {"enum": [1, 2], "default": 1},
            "when": {"type": "string", "format": "date", "maxLength": 10},
            "tags": {"type": "array"},
            "free": {"type": "object", "description": "Labels"},
            "both": {"type": ["integer", "string"], "pattern": "^x"},
            "tree": {"$ref": "#/$defs/node"},
            "pick": {"oneOf": [{"type": "object", "properties": {"a": {}}, "required": ["a"]},
                               {"type": "object", "properties": {"b": {}}, "required": ["b"]}]},
            "sum": {"allOf": [{"properties": {"x": {"type": "number"}}}, {"required": ["x"]}],
                    "type": "object"},
            "never": false,
        },
        "$defs": {"node": {"type": "object", "properties": {
            "name": {"const": "n"}, "below": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        }}},
    })
}

#[test]
fn one_rich_schema_in_four_dialects() {
    let rich = rich();
    check_all(&rich);
    let portable = in_dialect(&rich, Dialect::Portable)["properties"].clone();
    assert_eq!(portable["tags"], json!({"type": "array", "items": {"type": "string"}}));
    assert_eq!(portable["mode"], json!({"type": "string", "enum": ["a", "b"]}));
    let both = json!([{"type": "string", "pattern": "^x"}, {"type": "integer"}]);
    assert_eq!(portable["both"], json!({"anyOf": both}));
    assert!(portable.get("never").is_none());
    let gemini = in_dialect(&rich, Dialect::Gemini)["properties"].clone();
    let id = json!({
        "type": "integer", "format": "int64", "description": "Id (exclusive minimum: 0)",
    });
    assert_eq!(gemini["id"], id);
    assert_eq!(gemini["mode"], json!({"type": "string", "enum": ["a", "b"], "nullable": true}));
    let level = json!({"type": "string", "enum": ["1", "2"], "description": "(default: 1)"});
    assert_eq!(gemini["level"], level);
    let free = json!({"type": "string", "description": "Labels A JSON object, written as text."});
    assert_eq!(gemini["free"], free);
    assert_eq!(gemini["pick"]["description"], "Needs one of these sets: a; b.");
    let strict = in_dialect(&rich, Dialect::OpenaiStrict)["properties"].clone();
    assert_eq!(strict["mode"], json!({"type": ["string", "null"], "enum": ["a", "b", null]}));
    let when = json!({
        "type": ["string", "null"], "format": "date", "description": "(max length: 10)",
    });
    assert_eq!(strict["when"], when);
    assert_eq!(strict["sum"]["required"], json!(["x"]));
    assert_eq!(strict["tree"]["properties"]["name"]["enum"], json!(["n", null]));
}

#[test]
fn roots_are_objects_without_combinators() {
    for root in [
        json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object",
               "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
        json!({"oneOf": [{"type": "object"}, {"type": "string"}]}),
        json!({"allOf": [{"$ref": "#/allOf/0"}]}),
        json!({"$ref": "#"}),
        json!(true),
        json!({}),
        json!({"type": "array"}),
        json!([]),
        json!(null),
        json!({"type": "object", "properties": 5}),
    ] {
        check_all(&root);
    }
    let folded = in_dialect(
        &json!({"type": "object", "properties": {"a": {}, "b": {}, "c": {}},
                "oneOf": [{"required": ["a", "c"]}, {"required": ["b", "c"]}]}),
        Dialect::Portable,
    );
    assert_eq!(folded["required"], json!(["c"]));
    assert_eq!(folded["description"], "Needs one of these sets: a, c; b, c.");
}

#[test]
fn fields_may_be_called_as_words_are() {
    let names =
        ["$ref", "$defs", "definitions", "anyOf", "items", "type", "required", "properties"];
    let properties: Map<String, Value> = names
        .iter()
        .map(|name| {
            (
                (*name).to_owned(),
                json!({"type": "object", "properties": {"$ref": {"type": "string"}}}),
            )
        })
        .collect();
    let schema = json!({"type": "object", "properties": properties, "default": {"$ref": "#"}});
    for dialect in [Dialect::Portable, Dialect::Gemini, Dialect::OpenaiStrict] {
        let shown = in_dialect(&schema, dialect);
        for name in names {
            assert!(shown["properties"][name]["properties"].get("$ref").is_some(), "{shown}");
        }
    }
    assert_eq!(in_dialect(&schema, Dialect::Portable)["default"], json!({"$ref": "#"}));
    assert_eq!(structure_only(&schema)["properties"], schema["properties"]);
}

#[test]
fn sizes_are_bounded() {
    let mut deep = json!({"type": "string"});
    for _ in 0..300 {
        deep = json!({"type": "object", "properties": {"a": deep}, "required": ["a"]});
    }
    check_all(&deep);
    let many = |count: usize| -> Value {
        (0..count)
            .map(|index| (format!("p{index}"), json!({"type": "string"})))
            .collect::<Map<_, _>>()
            .into()
    };
    let wide = json!({"type": "object", "properties": many(300)});
    let members: Map<String, Value> =
        (0..20).map(|index| (format!("o{index}"), wide.clone())).collect();
    check_all(&json!({"type": "object", "properties": members}));
    let list: Vec<String> = (0..900).map(|index| format!("value {index}")).collect();
    let listed = json!({"type": "string", "enum": list});
    check_all(&json!({"type": "object", "properties": {"a": listed, "b": listed}}));
    let mut bomb = json!({"d0": {"type": "string"}});
    for level in 1..60 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        bomb[format!("d{level}")] =
            json!({"type": "object", "properties": {"a": below, "b": below}});
    }
    check_all(&json!({"$defs": bomb, "$ref": "#/$defs/d59"}));
}

/// Any schema that makes sense, and some that do not.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!({"type": "null"})),
        Just(json!({"type": ["integer", "null"]})),
        Just(json!({"type": "string", "format": "uri", "minLength": 1, "default": ""})),
        Just(json!({"type": "string", "enum": ["", "x"]})),
        Just(json!({"enum": [1, "x", null, []]})),
        Just(json!({"const": 2.5})),
        Just(json!({"type": "number", "format": "double"})),
        Just(json!({"type": ["string", "boolean", "object"]})),
        Just(json!({"type": "array"})),
        Just(json!({"type": "object", "additionalProperties": true})),
        Just(json!({"type": "integer", "enum": []})),
        Just(json!({"not": {}})),
    ];
    leaf.prop_recursive(5, 60, 4, |inner| {
        let some = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            (some.clone(), any::<u8>()).prop_map(|(members, bits)| {
                let named = members.into_iter().zip(["a", "b", "c", "d"]);
                let properties: Map<String, Value> =
                    named.map(|(member, name)| (name.to_owned(), member)).collect();
                let is_required = |index: usize| bits >> index & 1 == 1;
                let required: Vec<&str> = ["a", "b", "z"]
                    .into_iter()
                    .enumerate()
                    .filter(|(index, _)| is_required(*index))
                    .map(|(_, name)| name)
                    .collect();
                json!({"type": "object", "properties": properties, "required": required})
            }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "maxItems": 3})),
            inner
                .clone()
                .prop_map(|other| json!({"type": "object", "additionalProperties": other})),
            (some.clone(), "anyOf|oneOf|allOf").prop_map(|(list, key)| json!({key: list})),
            (some, inner).prop_map(|(list, member)| {
                json!({"anyOf": list, "properties": {"a": member}, "description": "D"})
            }),
        ]
    })
}

/// Schemas of which a dialect loses nothing that a call could miss.
fn plain_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "number"})),
        Just(json!({"type": "boolean"})),
        Just(json!({})),
        Just(json!({"type": "string", "enum": ["x", "y"]})),
        Just(json!({"enum": [1, 2]})),
        Just(json!({"type": ["integer", "null"]})),
        Just(json!({"type": ["string", "integer"]})),
        Just(json!({"type": "object"})),
        Just(json!({"type": "object", "additionalProperties": {"type": "integer"}})),
        Just(
            json!({"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"k": {"type": "boolean"}}}]})
        ),
        Just(json!({"type": "integer", "enum": [7]})),
        Just(json!({"type": "array"})),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 1..4), any::<u8>()).prop_map(
                |(members, bits)| {
                    let named = members.into_iter().zip(["@a", "b", "c"]);
                    let properties: Map<String, Value> =
                        named.map(|(member, name)| (name.to_owned(), member)).collect();
                    let required: Vec<&String> = properties
                        .keys()
                        .enumerate()
                        .filter(|(index, _)| bits >> index & 1 == 1)
                        .map(|(_, name)| name)
                        .collect();
                    json!({"type": "object", "properties": properties.clone(), "required": required,
                       "additionalProperties": bits & 8 == 8})
                }
            ),
            inner.prop_map(|items| json!({"type": "array", "items": items})),
        ]
    })
}

/// A call as a model makes it from what it is shown.
fn call(schema: &Value, seed: &mut u64) -> Value {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let dice = usize::try_from(*seed >> 40).unwrap();
    let pick = |list: &Value| list[dice % list.as_array().unwrap().len()].clone();
    if let Some(list) = schema.get("enum") {
        return pick(list);
    }
    if let Some(branches) = schema.get("anyOf") {
        return call(&pick(branches), seed);
    }
    if schema.get("nullable").is_some() && dice % 3 == 0 {
        return Value::Null;
    }
    let kind = match &schema["type"] {
        Value::Array(_) => pick(&schema["type"]),
        kind => kind.clone(),
    };
    let told = schema["description"].as_str().unwrap_or_default();
    match kind.as_str() {
        Some("string") if told.ends_with("JSON object, written as text.") => json!("{}"),
        Some("string") if told.ends_with("JSON array, written as text.") => json!("[]"),
        Some("integer") => json!(dice % 100),
        Some("number") => json!(1.5),
        Some("boolean") => json!(dice % 2 == 0),
        Some("null") => Value::Null,
        Some("array") => (0..dice % 3).map(|_| call(&schema["items"], seed)).collect(),
        Some("object") => {
            let is_required = |name: &str| required(schema).contains(&name);
            let mut out = Map::new();
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                let value = call(member, seed);
                if is_required(name) || dice % 2 == 0 {
                    out.insert(name.clone(), value);
                }
            }
            Value::Object(out)
        }
        _ => json!("text"),
    }
}

proptest! {
    #[test]
    fn every_schema_keeps_the_rules(schema in any_schema()) {
        check_all(&schema);
        check_all(&json!({"type": "object", "properties": {"a": schema}}));
    }

    #[test]
    fn calls_from_any_dialect_pass_the_full_schema(schema in plain_schema(), seed: u64) {
        let mut rule = FieldRule::new("f", super::super::Location::Body);
        rule.schema = Some(schema);
        let other = FieldRule { required: true, ..FieldRule::new("o.p", super::super::Location::Body) };
        let plan = RequestPlan::compile("POST", "/", &[rule, other], RequestBody::default()).unwrap();
        for dialect in [Dialect::Full, Dialect::Portable, Dialect::Gemini, Dialect::OpenaiStrict] {
            let shown = in_dialect(plan.input_schema(), dialect);
            let mut seed = seed;
            for _ in 0..4 {
                let arguments = call(&shown, &mut seed).to_string();
                let root = guard(arguments.as_bytes()).unwrap().root();
                let valid = plan.validate(Some(root));
                prop_assert!(valid.is_ok(), "{dialect:?} {shown}\n{arguments}\n{valid:?}");
                let body = plan.build(&valid.unwrap()).body.unwrap();
                prop_assert!(guard(&body).is_ok());
            }
        }
    }
}
