//! Tests of what is given of answers, and under which names.

use std::hint::black_box;
use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::validator::Validator;
use super::super::{FieldType, output_schema};
use super::*;
use crate::json::{any_json, guard};

fn rules(value: &Value) -> Vec<FieldRule> {
    serde_json::from_value(value.clone()).unwrap()
}

fn compiled(list: &Value, unmapped: Unmapped) -> ResponsePlan {
    ResponsePlan::compile(&rules(list), unmapped).unwrap()
}

fn text_of(plan: &ResponsePlan, body: &str) -> (String, Translated) {
    let translated = plan.translate(guard(body.as_bytes()).unwrap().root());
    (String::from_utf8(translated.json.clone()).unwrap(), translated)
}

/// With everything that no rule names.
fn passed(list: &Value, body: &str) -> String {
    text_of(&compiled(list, Unmapped::Keep), body).0
}

/// What rules name, whether that is nothing, and how many values were withheld.
fn picked(list: &Value, body: &str) -> (String, bool, u64) {
    let (text, translated) = text_of(&compiled(list, Unmapped::Drop), body);
    (text, translated.is_nothing, translated.withheld)
}

#[test]
fn fields_are_renamed_at_every_level() {
    let list = json!([
        {"source_field_name": "ord.lns[*].sku", "exposed_field_name": "article"},
        {"source_field_name": "ord", "type": "object", "exposed_field_name": "order"},
        {"source_field_name": "ord.lns", "type": "array", "exposed_field_name": "lines"},
        {"source_field_name": "total", "type": "number"},
    ]);
    let body =
        r#"{"total":2.50,"ord":{"lns":[{"sku":"A","n":1.0},{"n":2}],"x":null},"rest":[1e400]}"#;
    let expected = concat!(
        r#"{"total":2.50,"order":{"lines":[{"article":"A","n":1.0},{"n":2}],"x":null},"#,
        r#""rest":[1e400]}"#
    );
    assert_eq!(passed(&list, body), expected);
    // What is not as the rules say stays as it is.
    for odd in ["null", "[1]", "\"ord\"", "{}", r#"{"order":{"lines":"none"}}"#] {
        let body = odd.replace("order", "ord").replace("lines", "lns");
        assert_eq!(passed(&list, &body).is_empty(), odd.is_empty());
    }
    assert_eq!(passed(&list, r#"{"ord":[1],"x":{"ord":1}}"#), r#"{"order":[1],"x":{"ord":1}}"#);
}

#[test]
fn numbers_are_shown_as_texts_with_their_digits() {
    let list = json!([
        {"source_field_name": "id", "type": "integer", "as_string": true},
        {"source_field_name": "a[*].p[*]", "type": "number", "as_string": true},
    ]);
    let body = r#"{"id":12345678901234567890123,"a":[{"p":[1.50,1e400,"x",null]}],"n":1.0}"#;
    let expected =
        r#"{"id":"12345678901234567890123","a":[{"p":["1.50","1e400","x",null]}],"n":1.0}"#;
    assert_eq!(passed(&list, body), expected);
    let schema = output_schema(&rules(&list)).unwrap().unwrap();
    assert_eq!(schema["properties"]["id"]["description"], json!("(string)"));
}

#[test]
fn an_array_can_be_the_root() {
    let list = json!([{"source_field_name": "[*].id", "exposed_field_name": "key"}]);
    assert_eq!(
        passed(&list, r#"[{"id":1},{"id":2,"a":0}, 3]"#),
        r#"[{"key":1},{"key":2,"a":0},3]"#
    );
}

#[test]
fn no_rules_or_no_new_names_leave_the_bytes_alone() {
    let body = " { \"a\" : [ 1.50 , \"\\u00e9\" ] } ";
    for list in [json!([]), json!([{"source_field_name": "a[*]"}, {"source_field_name": "b.c"}])] {
        assert!(compiled(&list, Unmapped::Keep).step.is_none());
        assert_eq!(passed(&list, body), body.trim());
    }
}

#[test]
fn the_mapped_field_wins_its_name() {
    let list = json!([{"source_field_name": "a", "exposed_field_name": "b"}]);
    assert_eq!(passed(&list, r#"{"b":1,"a":2}"#), r#"{"b":2}"#);
    assert_eq!(passed(&list, r#"{"b":1}"#), r#"{"b":1}"#);
    let swapped = json!([
        {"source_field_name": "a", "exposed_field_name": "b"},
        {"source_field_name": "b", "exposed_field_name": "a"},
    ]);
    assert_eq!(passed(&swapped, r#"{"b":1,"a":2}"#), r#"{"a":1,"b":2}"#);
}

#[test]
fn request_keys_are_refused() {
    for list in [
        json!([{"source_field_name": "a", "location": "header"}]),
        json!([{"source_field_name": "a", "constant": "x"}]),
    ] {
        let error = ResponsePlan::compile(&rules(&list), Unmapped::Drop).unwrap_err().to_string();
        assert!(error.contains("response field a ("), "{error}");
    }
}

#[test]
fn output_schemas_demand_nothing_that_an_api_could_break() {
    assert_eq!(output_schema(&[]).unwrap(), None);
    let list = json!([
        {"source_field_name": "id", "type": "integer", "description": "The number"},
        {"source_field_name": "lns[*].sku", "exposed_field_name": "article", "format": "uuid"},
    ]);
    let expected = json!({
        "type": "object",
        "properties": {
            "id": {"description": "The number (integer)"},
            "lns": {"items": {"properties": {"article": {"description": "(string, uuid)"}}}},
        },
    });
    assert_eq!(output_schema(&rules(&list)).unwrap(), Some(expected));
    let list = json!([{"source_field_name": "[*]", "array_item_type": "integer"}]);
    let items = json!({"description": "(array)", "items": {}});
    let expected = json!({"type": "object", "properties": {"result": items}});
    assert_eq!(output_schema(&rules(&list)).unwrap(), Some(expected));
}

proptest! {
    /// Forth and back is the same document, for every document that has no member under a name
    /// that only the other side uses.
    #[test]
    fn translation_and_its_inverse_give_the_original(value in any_json()) {
        let list = rules(&json!([
            {"source_field_name": "a", "exposed_field_name": "A", "type": "array"},
            {"source_field_name": "a[*].b", "exposed_field_name": "B"},
            {"source_field_name": "a[*].c[*][*].d", "exposed_field_name": "D"},
            {"source_field_name": "b", "exposed_field_name": "B", "type": "object"},
            {"source_field_name": "b.a.c", "exposed_field_name": "C"},
        ]));
        let root = shape::body(&list, &mut MappingErrors::default());
        let there = Step::compile(&root, &list, Direction::Response(Unmapped::Keep)).unwrap();
        let back = Step::compile(&root, &list, Direction::Request).unwrap();
        let deep = json!({"a": [{"b": value, "c": [[value]]}], "b": {"a": value}});
        for value in [json!({"a": value, "c": value}), deep, value] {
            let text = value.to_string();
            let mut exposed = Vec::new();
            let tally = &mut Tally::default();
            there.write(guard(text.as_bytes()).unwrap().root(), &mut exposed, tally);
            let mut source = Vec::new();
            back.write(guard(&exposed).unwrap().root(), &mut source, tally);
            prop_assert_eq!(String::from_utf8(source).unwrap(), text);
        }
    }
}

const SHOP: &str = r#"[
    {"source_field_name": "ord.lns[*].sku", "exposed_field_name": "article"},
    {"source_field_name": "ord", "type": "object", "exposed_field_name": "order"},
    {"source_field_name": "ord.lns", "type": "array", "exposed_field_name": "lines"},
    {"source_field_name": "total", "type": "number"},
    {"source_field_name": "whole", "type": "object"},
    {"source_field_name": "any"}
]"#;

#[test]
fn only_what_rules_name_is_given() {
    let list = serde_json::from_str(SHOP).unwrap();
    let body = concat!(
        r#"{"secret":1,"whole":{"x":[1.50,{"y":null}]},"total":2.50,"any":{"z":1},"#,
        r#""ord":{"secret":2,"lns":[{"n":1,"sku":"A"},{"n":2},{},{"sku":null}]},"order":3}"#
    );
    let expected = concat!(
        r#"{"whole":{"x":[1.50,{"y":null}]},"total":2.50,"any":{"z":1},"#,
        r#""order":{"lines":[{"article":"A"},{},{},{"article":null}]}}"#
    );
    assert_eq!(picked(&list, body), (expected.to_owned(), false, 0));
}

#[test]
fn an_object_keeps_its_other_members_where_its_rule_says_so() {
    for (additional, kept) in [
        (json!(true), r#","c":{"d":2}"#),
        (json!({"type": "string"}), r#","c":{"d":2}"#),
        (json!(false), ""),
        (json!(null), ""),
    ] {
        let list = json!([
            {"source_field_name": "o", "type": "object", "additional_properties": additional},
            {"source_field_name": "o.a", "exposed_field_name": "b"},
            // Of an array it is said for the objects in it.
            {"source_field_name": "l[*]", "array_item_type": "object",
             "additional_properties": additional},
            {"source_field_name": "l[*].a", "exposed_field_name": "b"},
        ]);
        // A member cannot take the name of the one that is renamed.
        let body = r#"{"o":{"a":1,"b":0,"c":{"d":2}},"p":3,"l":[{"b":0,"a":1,"c":{"d":2}}]}"#;
        let expected = format!(r#"{{"o":{{"b":1{kept}}},"l":[{{"b":1{kept}}}]}}"#);
        assert_eq!(picked(&list, body), (expected, false, 0), "{additional}");
    }
}

#[test]
fn a_raw_schema_gives_its_field_whole() {
    let schema = json!({"properties": {"$a": {"type": "string"}}, "additionalProperties": false});
    let list = json!([{"source_field_name": "f", "schema": schema}]);
    let expected = r#"{"f":{"a":{"x":1},"b":[2]}}"#.to_owned();
    assert_eq!(picked(&list, r#"{"f":{"$a":{"x":1},"b":[2]},"g":0}"#), (expected, false, 0));
    assert_eq!(picked(&list, r#"{"f":["s"]}"#).0, r#"{"f":["s"]}"#);
}

#[test]
fn no_shape_gets_around_the_rules() {
    let list = json!([
        {"source_field_name": "id", "type": "integer", "as_string": true},
        {"source_field_name": "owner.name", "exposed_field_name": "called"},
        {"source_field_name": "tags[*]", "type": "string"},
        {"source_field_name": "rows[*].n", "type": "integer"},
    ]);
    let nothing = ("{}", true);
    for (body, expected, is_nothing, withheld) in [
        // Nothing of it has a name.
        (r#"{"error":"no such pet","s":1}"#, nothing.0, nothing.1, 0),
        (r#"{"owner":{"s":1}}"#, r#"{"owner":{}}"#, true, 0),
        (r#"[{"s":1},{"s":2}]"#, "[{},{}]", true, 0),
        // The whole answer is a single value.
        (r#""secret""#, nothing.0, nothing.1, 1),
        ("7", nothing.0, nothing.1, 1),
        // Many where one is meant, one where many are.
        (r#"[{"id":1,"s":2},"s",null]"#, r#"[{"id":"1"},null,null]"#, false, 1),
        (
            r#"{"owner":[{"name":"a","s":1},[{"s":2}]]}"#,
            r#"{"owner":[{"called":"a"},[{}]]}"#,
            false,
            0,
        ),
        (r#"{"rows":{"n":1,"s":2}}"#, r#"{"rows":{"n":1}}"#, false, 0),
        (r#"{"tags":"one"}"#, r#"{"tags":"one"}"#, false, 0),
        // An object where a single value is said, and the other way round.
        (r#"{"id":{"s":1},"tags":{"s":1}}"#, r#"{"id":null,"tags":null}"#, true, 2),
        (
            r#"{"tags":["a",{"s":1},["b",{}],null]}"#,
            r#"{"tags":["a",null,["b",null],null]}"#,
            false,
            2,
        ),
        (r#"{"owner":"secret","id":"x"}"#, r#"{"owner":null,"id":"x"}"#, false, 1),
        (r#"{"rows":["s",{"n":[1,{"s":1}]}]}"#, r#"{"rows":[null,{"n":[1,null]}]}"#, false, 2),
        // That there is nothing is an answer.
        ("{}", "{}", false, 0),
        ("[]", "[]", false, 0),
        ("null", "null", false, 0),
        (r#"{"rows":[],"s":0}"#, r#"{"rows":[]}"#, false, 0),
        (r#"{"owner":{},"s":0}"#, r#"{"owner":{}}"#, false, 0),
        (r#"{"owner":[],"s":0}"#, r#"{"owner":[]}"#, false, 0),
        (r#"{"owner":null,"s":0}"#, r#"{"owner":null}"#, false, 0),
    ] {
        assert_eq!(picked(&list, body), (expected.to_owned(), is_nothing, withheld), "{body}");
    }
    let rows = json!([{"source_field_name": "[*].id", "exposed_field_name": "key"}]);
    assert_eq!(
        picked(&rows, r#"[{"id":1,"s":0},{},3]"#),
        (r#"[{"key":1},{},null]"#.to_owned(), false, 1)
    );
    assert_eq!(picked(&rows, r#"{"id":1,"s":2}"#).0, r#"{"key":1}"#);
    assert_eq!(picked(&rows, r#"{"error":"s"}"#), ("{}".to_owned(), true, 0));
}

#[test]
fn only_plans_that_leave_something_out_pick() {
    for (list, unmapped, picks) in [
        (json!([]), Unmapped::Drop, false),
        (json!([{"source_field_name": "a"}]), Unmapped::Drop, true),
        (json!([{"source_field_name": "a"}]), Unmapped::Keep, false),
        (json!([{"source_field_name": "$", "type": "object"}]), Unmapped::Drop, false),
        (json!([{"source_field_name": "[*]", "type": "array"}]), Unmapped::Drop, false),
        (json!([{"source_field_name": "[*]", "type": "string"}]), Unmapped::Drop, true),
    ] {
        assert_eq!(compiled(&list, unmapped).picks(), picks, "{list} {unmapped:?}");
    }
}

/// The same by a simple walk over the tree of rules.
fn expected(value: &Value, node: &shape::Node, list: &[FieldRule]) -> Value {
    let rule = node.rule.and_then(|index| list.get(index));
    let is_open = rule.is_some_and(|rule| {
        rule.additional_properties.as_ref().is_some_and(|value| *value != json!(false))
    });
    let said = rule.and_then(|rule| rule.array_item_type.or(rule.field_type));
    match (&node.content, value) {
        (shape::Content::Array(item), Value::Array(values)) => {
            values.iter().map(|value| expected(value, item, list)).collect()
        }
        (shape::Content::Leaf, _) if !said.is_some_and(FieldType::is_scalar) => value.clone(),
        (_, Value::Array(values)) => {
            values.iter().map(|value| expected(value, node, list)).collect()
        }
        (shape::Content::Array(item), _) => expected(value, item, list),
        (shape::Content::Leaf, Value::Object(_)) => Value::Null,
        (shape::Content::Leaf, _) => value.clone(),
        (shape::Content::Object(nodes), Value::Object(members)) => {
            let named = |name: &str| nodes.iter().find(|node| *node.source == *name);
            let taken = |name: &str| {
                nodes.iter().any(|node| {
                    *node.exposed == *name
                        && *node.source != *node.exposed
                        && members.contains_key(&*node.source)
                })
            };
            let given = members.iter().filter_map(|(name, value)| match named(name) {
                Some(node) => Some((node.exposed.to_string(), expected(value, node, list))),
                None => (is_open && !taken(name)).then(|| (name.clone(), value.clone())),
            });
            Value::Object(given.collect())
        }
        (shape::Content::Object(_), _) if is_open => value.clone(),
        (shape::Content::Object(_), _) => Value::Null,
    }
}

fn has_value(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(values) => values.iter().any(has_value),
        Value::Object(members) => members.values().any(has_value),
        _ => true,
    }
}

proptest! {
    /// Whatever an answer is like: what is given is what the rules name, and the published schema
    /// holds for it.
    #[test]
    fn what_is_given_is_named_and_conforms(value in any_json(), which in 0..3_usize) {
        let lists = [
            json!([
                {"source_field_name": "a", "exposed_field_name": "A", "type": "array"},
                {"source_field_name": "a[*].b", "exposed_field_name": "B"},
                {"source_field_name": "a[*].c[*][*].d", "exposed_field_name": "D", "type": "string"},
                {"source_field_name": "b", "type": "object", "additional_properties": true},
                {"source_field_name": "b.a.c", "exposed_field_name": "C"},
                {"source_field_name": "b.d", "exposed_field_name": "b", "type": "integer"},
                {"source_field_name": "c", "exposed_field_name": "d", "type": "boolean"},
            ]),
            json!([
                {"source_field_name": "[*].a", "type": "array", "array_item_type": "number"},
                {"source_field_name": "[*].b.a"},
            ]),
            json!([{"source_field_name": "a", "exposed_field_name": "b"}]),
        ];
        let list = rules(&lists[which]);
        let plan = ResponsePlan::compile(&list, Unmapped::Drop).unwrap();
        let schema = Validator::compile(&output_schema(&list).unwrap().unwrap()).unwrap();
        let root = shape::body(&list, &mut MappingErrors::default());
        let deep = json!({"a": [{"b": value, "c": [[value]]}, value], "b": {"a": value}, "x": 1});
        for value in [json!({"a": value, "b": value, "d": 1}), json!([value, deep]), deep, value] {
            let body = value.to_string();
            let (text, translated) = text_of(&plan, &body);
            let given: Value = serde_json::from_str(&text).unwrap();
            let single = !value.is_object() && !value.is_array() && !value.is_null();
            let whole = if single { json!({}) } else { expected(&value, &root, &list) };
            prop_assert_eq!(&given, &whole, "{}", body);
            prop_assert!(!translated.is_nothing || !has_value(&given), "{} of {}", text, body);
            let wrapped = if given.is_object() { given } else { json!({ "result": given }) };
            prop_assert!(schema.accepts_value(&wrapped), "{}", wrapped);
        }
    }
}

/// `cargo test --release --lib mapping -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn timing() {
    let body = concat!(
        r#"{"id":"ord-10042","status":"open","total":1249.50,"currency":"EUR","lines":["#,
        r#"{"sku":"A-1","quantity":2,"price":99.90},{"sku":"B-7","quantity":1,"#,
        r#""price":1049.70}],"customer":{"id":"C-1042"}}"#
    );
    let list = json!([
        {"source_field_name": "lines[*].sku", "exposed_field_name": "article"},
        {"source_field_name": "customer.id", "exposed_field_name": "number"},
    ]);
    let plan = compiled(&list, Unmapped::Drop);
    let root = guard(body.as_bytes()).unwrap().root();
    let rounds = 200_000_u32;
    let began = Instant::now();
    (0..rounds).for_each(|_| drop(black_box(plan.translate(black_box(root)))));
    println!("translation of {} bytes: {:?}", body.len(), began.elapsed() / rounds);
}
