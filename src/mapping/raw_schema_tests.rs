//! Tests of raw schemas: what is taken over, what is refused, names on both sides.

use serde_json::json;

use super::super::{
    FieldRule, RequestBody, RequestPlan, ResponsePlan, Unmapped, input_schema, output_schema,
};
use super::*;
use crate::json::guard;

fn rules(value: Value) -> Vec<FieldRule> {
    serde_json::from_value(value).unwrap()
}

fn field(schema: Value) -> Vec<FieldRule> {
    rules(json!([{"source_field_name": "f", "schema": schema}]))
}

fn taken(schema: Value) -> Value {
    input_schema(&field(schema)).unwrap()["properties"]["f"].clone()
}

fn refused(schema: Value) -> String {
    RequestPlan::compile("POST", "/", &field(schema), RequestBody::default())
        .unwrap_err()
        .to_string()
}

fn sent(plan: &RequestPlan, arguments: &str) -> Result<String, String> {
    let root = guard(arguments.as_bytes()).unwrap().root();
    let valid = plan.validate(Some(root)).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(plan.build(&valid).body.unwrap()).unwrap())
}

#[test]
fn a_schema_stands_in_place_of_the_rule() {
    let schema = json!({
        "type": "object", "title": "T", "required": ["a"], "minProperties": 1,
        "properties": {
            "a": {"type": ["integer", "null"], "minimum": 5, "x-note": {"k": [1]}},
            "b": {"oneOf": [{"type": "string", "format": "date"}, {"const": false}]},
            "c": {"type": "array", "items": {"$ref": "#/$defs/c", "description": "D"}},
        },
        "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false,
        "$defs": {"c": {"enum": ["x", "y"], "description": "old"}}, "$comment": "gone",
    });
    let mut expected = schema.clone();
    expected["properties"]["c"]["items"] = json!({"enum": ["x", "y"], "description": "D"});
    for word in ["$defs", "$comment"] {
        expected.as_object_mut().unwrap().remove(word);
    }
    assert_eq!(taken(schema.clone()), expected);
    let plan = RequestPlan::compile("POST", "/", &field(schema), RequestBody::default()).unwrap();
    assert_eq!(
        sent(&plan, r#"{"f":{"a":5,"b":false,"c":["x"],"x-1":"v"}}"#).unwrap(),
        r#"{"f":{"a":5,"b":false,"c":["x"],"x-1":"v"}}"#
    );
    for bad in [
        r#"{"f":{"a":4}}"#,
        r#"{"f":{}}"#,
        r#"{"f":{"a":null,"b":1}}"#,
        r#"{"f":{"a":9,"c":["z"]}}"#,
        r#"{"f":{"a":9,"q":1}}"#,
        r#"{"f":{"a":9,"x-1":1}}"#,
        r#"{"f":"x"}"#,
    ] {
        assert!(sent(&plan, bad).unwrap_err().contains(": f"), "{bad}");
    }
}

#[test]
fn arrays_have_items_and_paths_keep_their_meaning() {
    assert_eq!(taken(json!({"type": "array"})), json!({"type": "array", "items": {}}));
    let nested = json!({"type": ["array", "null"], "items": {"type": "array"}});
    assert_eq!(taken(nested)["items"], json!({"type": "array", "items": {}}));
    assert_eq!(taken(json!({})), json!({}));
    let list = rules(json!([
        {"source_field_name": "a.b[*][*]", "schema": {"type": "integer", "maximum": 9}},
        {"source_field_name": "q[*]", "location": "query", "schema": {"enum": [1, "x"]}},
    ]));
    let schema = input_schema(&list).unwrap();
    let inner = json!({"type": "integer", "maximum": 9});
    let items = &schema["properties"]["a"]["properties"]["b"]["items"];
    assert_eq!(*items, json!({"type": "array", "items": inner}));
    let plan = RequestPlan::compile("POST", "/", &list, RequestBody::default()).unwrap();
    assert_eq!(sent(&plan, r#"{"a":{"b":[["7"]]},"q":[1,"x"]}"#).unwrap(), r#"{"a":{"b":[[7]]}}"#);
}

#[test]
fn names_that_are_no_keys_are_mapped_at_every_depth() {
    let schema = json!({
        "type": "object", "required": ["@type", "$ids"],
        "properties": {
            "@type": {"type": "string"},
            "type": {"type": "string"},
            "$ids": {"type": "array", "items": {
                "type": "object", "required": ["größe"],
                "properties": {"größe": {"type": "number"}, "n": {"type": "integer"}},
            }},
        },
    });
    let shown = taken(schema.clone());
    let names: Vec<&String> = shown["properties"].as_object().unwrap().keys().collect();
    assert_eq!((names.len(), names[0].as_str(), names[1].as_str()), (3, "ids", "type"));
    assert!(names[2].starts_with("type_"));
    let items = &shown["properties"]["ids"]["items"];
    assert_eq!(items["required"], json!(["gr_e"]));
    let plan =
        RequestPlan::compile("POST", "/", &field(schema.clone()), RequestBody::default()).unwrap();
    let exposed = format!(
        r#"{{"f":{{"{}":"a","type":"b","ids":[{{"gr_e":1.50,"n":1}}],"free":[1]}}}}"#,
        names[2]
    );
    let source = r#"{"f":{"@type":"a","type":"b","$ids":[{"größe":1.50,"n":1}],"free":[1]}}"#;
    assert_eq!(sent(&plan, &exposed).unwrap(), source);
    let answers = ResponsePlan::compile(&field(schema), Unmapped::Drop).unwrap();
    let back = answers.translate(guard(source.as_bytes()).unwrap().root()).json;
    assert_eq!(String::from_utf8(back).unwrap(), exposed);
}

#[test]
fn what_cannot_be_checked_is_refused() {
    for (schema, expected) in [
        (json!(true), "has to be an object"),
        (json!({"minLenght": 1}), "`minLenght` cannot be checked; correct or remove it"),
        (json!({"items": {"nullable": true}}), "[\"string\", \"null\"]"),
        (json!({"$id": "x"}), "pointers such as"),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#"}), "$schema"),
        (json!({"$ref": "http://127.0.0.1/x"}), "points to nothing"),
        (json!({"$ref": "#/$defs/x"}), "points to nothing"),
        (json!({"properties": {"a": {"$ref": "#"}}}), "goes round"),
        (json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}), "goes round"),
        (json!({"$defs": {"a": {}}, "$ref": "#/$defs/a", "type": "string"}), "`allOf`"),
        (json!({"pattern": "(?=x)"}), "field f (body): schema: "),
        (json!({"type": "text"}), "field f (body): schema: "),
        (json!({"type": "integer", "exclusiveMinimum": true}), "field f (body): schema: "),
        (json!({"items": 5}), "where a schema belongs"),
        (json!({"anyOf": {}}), "is no list"),
        (json!({"anyOf": [{"properties": {"@x": {}}}]}), "\"@x\" cannot be shown"),
        (json!({"allOf": [{"required": ["@x"]}]}), "\"@x\" cannot be shown"),
        (json!({"properties": {"@x": {}}, "enum": [{}]}), "remove these"),
    ] {
        let message = refused(schema.clone());
        assert!(message.contains(expected), "{schema}\n{message}");
    }
    for (rule, expected) in [
        (json!({"schema": {}, "type": "string"}), "says itself what `type` says"),
        (json!({"schema": {}, "enum": ["a"]}), "says itself what `enum` says"),
        (json!({"schema": {"type": "string"}, "default": 5}), "default does not fit"),
        (
            json!({"schema": {"type": "string"}, "location": "query", "style": "deep_object"}),
            "is for objects",
        ),
        (
            json!({"schema": {}, "location": "header", "style": "form"}),
            "has the style simple or json",
        ),
    ] {
        let mut rule = rule;
        rule["source_field_name"] = json!("f");
        let message =
            RequestPlan::compile("POST", "/", &rules(json!([rule])), RequestBody::default())
                .unwrap_err()
                .to_string();
        assert!(message.contains(expected), "{message}");
    }
    let both = json!([
        {"source_field_name": "f", "schema": {"type": "object"}}, {"source_field_name": "f.a"},
    ]);
    let message = input_schema(&rules(both)).unwrap_err().to_string();
    assert!(message.contains("where members have rules"), "{message}");
}

#[test]
fn sizes_are_bounded() {
    let mut deep = json!({"type": "string"});
    (0..60_u8).for_each(|_| deep = json!({"type": "array", "items": deep}));
    assert!(input_schema(&field(deep.clone())).is_ok());
    (0..20_u8).for_each(|_| deep = json!({"type": "array", "items": deep}));
    assert!(refused(deep).contains("nested deeper"));
    // Each level says the one below twice.
    let mut definitions = json!({"d0": {"type": "string"}});
    for level in 1..16_u8 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        definitions[format!("d{level}")] = json!({"properties": {"a": below, "b": below}});
    }
    let bomb = json!({"$ref": "#/$defs/d15", "$defs": definitions});
    assert!(refused(bomb).contains("more than"));
    assert!(refused(json!({"enum": vec!["x"; VALUES_MAX]})).contains("more than"));
    assert!(refused(json!({"description": "x".repeat(TEXT_BYTES_MAX + 1)})).contains("more than"));
}

#[test]
fn output_schemas_tell_and_do_not_demand() {
    let list = field(json!({
        "type": "object", "description": "All", "required": ["a"], "additionalProperties": false,
        "properties": {
            "a": {"type": ["integer", "null"], "minimum": 5},
            "b": {"type": "array", "items": {"type": "string", "format": "date"}},
        },
    }));
    let a = json!({"description": "(integer or null)"});
    let b = json!({"description": "(array)", "items": {"description": "(string, date)"}});
    let f = json!({"description": "All (object)", "properties": {"a": a, "b": b}});
    let expected = json!({"type": "object", "properties": {"f": f}});
    assert_eq!(output_schema(&list).unwrap(), Some(expected));
}
