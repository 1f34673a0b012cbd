//! Tests of requests: placement, names, validation, repairs, compile errors, timing.

use std::hint::black_box;
use std::time::Instant;

use serde_json::json;

use super::super::{REPAIRS_NAMED_MAX, Repair, input_schema};
use super::*;
use crate::json::guard;

fn rules(value: &Value) -> Vec<FieldRule> {
    serde_json::from_value(value.clone()).unwrap()
}

pub(super) fn plan(method: &str, path: &str, list: &Value) -> RequestPlan {
    let list = rules(list);
    let plan = RequestPlan::compile(method, path, &list, RequestBody::default()).unwrap();
    assert_eq!(plan.input_schema(), &input_schema(&list).unwrap());
    plan
}

pub(super) fn raw(text: &str) -> Raw<'_> {
    guard(text.as_bytes()).unwrap().root()
}

fn sent(plan: &RequestPlan, arguments: &str) -> OutgoingRequest {
    plan.build(&plan.validate(Some(raw(arguments))).unwrap())
}

pub(super) fn body(request: &OutgoingRequest) -> &str {
    std::str::from_utf8(request.body.as_deref().unwrap()).unwrap()
}

fn refused(plan: &RequestPlan, arguments: &str) -> String {
    plan.validate(Some(raw(arguments))).unwrap_err().to_string()
}

#[test]
fn one_name_in_four_places_is_four_inputs() {
    let list = json!([
        {"source_field_name": "name"},
        {"source_field_name": "id"},
        {"source_field_name": "id", "location": "header"},
        {"source_field_name": "id", "location": "query"},
        {"source_field_name": "id", "location": "path"},
    ]);
    let forward = plan("put", "/users/{id}", &list);
    let arguments = r#"{"id":"a/b","id_query":"2","id_header":"3","id_body":"4","name":"n"}"#;
    let request = sent(&forward, arguments);
    assert_eq!(&*request.method, "PUT");
    assert_eq!(request.target, "/users/a%2Fb?id=2");
    assert_eq!(request.headers, [("id".to_owned(), "3".to_owned())]);
    assert_eq!(body(&request), r#"{"id":"4","name":"n"}"#);
    assert_eq!(request.content_type.as_deref(), Some("application/json"));
    // The order of the rules does not matter.
    let mut reversed = list.as_array().unwrap().clone();
    reversed.reverse();
    assert_eq!(plan("PUT", "/users/{id}", &json!(reversed)).input_schema(), forward.input_schema());
}

#[test]
fn numbers_and_texts_keep_their_digits() {
    let list = json!([
        {"source_field_name": "amount", "location": "query", "type": "number"},
        {"source_field_name": "limit", "location": "query", "type": "integer"},
        {"source_field_name": "open", "location": "query", "type": "boolean"},
        {"source_field_name": "day", "location": "query", "format": "date"},
        {"source_field_name": "price", "type": "number"},
        {"source_field_name": "count", "type": "integer"},
    ]);
    let plan = plan("POST", "/x", &list);
    let arguments = r#"{"amount":1e21,"limit":1000000,"open":false,"day":"2026-02-30",
        "price":1.50,"count":123456789012345678901234567890}"#;
    let request = sent(&plan, arguments);
    assert_eq!(request.target, "/x?amount=1e21&limit=1000000&open=false&day=2026-02-30");
    assert_eq!(body(&request), r#"{"price":1.50,"count":123456789012345678901234567890}"#);
    assert_eq!(body(&sent(&plan, r#"{"price":1e400}"#)), r#"{"price":1e400}"#);
    assert_eq!(body(&sent(&plan, r#"{"price":1.0}"#)), r#"{"price":1.0}"#);
}

#[test]
fn arrays_are_placed_by_their_location() {
    let list = json!([
        {"source_field_name": "ids[*]", "location": "path", "array_item_type": "integer"},
        {"source_field_name": "tag[*]", "location": "query"},
        {"source_field_name": "filter[state]", "location": "query"},
        {"source_field_name": "X-Tags", "location": "header", "type": "array"},
        {"source_field_name": "c", "location": "cookie", "type": "array"},
        {"source_field_name": "session", "location": "cookie", "constant": "a;b"},
    ]);
    let plan = plan("GET", "/{ids}/items?v=1", &list);
    let arguments =
        r#"{"ids":[1,2],"tag":["a&b","c d"],"filter_state":"é","X-Tags":["x","y"],"c":["1","2"]}"#;
    let request = sent(&plan, arguments);
    assert_eq!(request.target, "/1,2/items?v=1&tag=a%26b&tag=c%20d&filter%5Bstate%5D=%C3%A9");
    let headers = [("X-Tags", "x,y"), ("Cookie", "c=1,2; session=a%3Bb")];
    assert_eq!(request.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!((request.body, request.content_type), (None, None));
    let request = sent(&plan, r#"{"ids":[7],"tag":[],"X-Tags":[]}"#);
    assert_eq!(request.target, "/7/items?v=1");
    assert_eq!(request.headers, [("Cookie".to_owned(), "session=a%3Bb".to_owned())]);
}

#[test]
fn every_placeholder_is_filled() {
    let list = json!([
        {"source_field_name": "a", "location": "path"},
        {"source_field_name": "b", "location": "path", "exposed_field_name": "second"},
    ]);
    let plan = plan("DELETE", "/{a}/{b}/x/{a}", &list);
    assert_eq!(sent(&plan, r#"{"a":"1","second":"?#"}"#).target, "/1/%3F%23/x/1");
    for value in ["", "..", ".", "x/../y", "..\\\\x"] {
        let message = refused(&plan, &format!(r#"{{"a":"{value}","second":"x"}}"#));
        assert!(message.starts_with("invalid arguments: a: must not"), "{message}");
    }
}

pub(super) fn order_rules() -> Value {
    json!([
        {"source_field_name": "order", "type": "object", "exposed_field_name": "purchase"},
        {"source_field_name": "order.lines", "type": "array", "exposed_field_name": "rows",
         "required": true, "description": "The rows"},
        {"source_field_name": "order.lines[*].sku", "exposed_field_name": "article",
         "required": true},
        {"source_field_name": "order.lines[*].unit", "constant": "pcs"},
        {"source_field_name": "order.lines[*].tags[*]", "array_item_type": "integer",
         "enum": [1, 2]},
        {"source_field_name": "order.currency", "constant": "EUR"},
        {"source_field_name": "order.note.text", "exposed_field_name": "remark",
         "default": "-", "send_default": true},
        {"source_field_name": "source", "constant": "mcp"},
        {"source_field_name": "priority", "type": "integer", "default": 3, "send_default": true},
        {"source_field_name": "mode", "default": "fast", "enum": ["fast", "safe"]},
    ])
}

#[test]
fn bodies_are_nested_by_source_path() {
    let plan = plan("POST", "/orders", &order_rules());
    let arguments = r#"{"purchase":{"rows":[{"article":"A-1","tags":[1]},{"article":"B"}],
        "note":{}},"priority":1.0}"#;
    assert_eq!(
        body(&sent(&plan, arguments)),
        concat!(
            r#"{"order":{"lines":[{"sku":"A-1","tags":[1],"unit":"pcs"},"#,
            r#"{"sku":"B","unit":"pcs"}],"note":{"text":"-"},"#,
            r#""currency":"EUR"},"priority":1.0,"source":"mcp"}"#
        )
    );
    // Constants are always sent; a default only where its object is; `mode` only if it is given.
    let expected = r#"{"priority":3,"order":{"currency":"EUR"},"source":"mcp"}"#;
    assert_eq!(body(&plan.build(&plan.validate(None).unwrap())), expected);
    assert_eq!(body(&plan.build(&plan.validate(Some(raw("null"))).unwrap())), expected);
    assert_eq!(body(&sent(&plan, "{}")), expected);
}

#[test]
fn schemas_are_nested_as_the_source_is() {
    let row = json!({
        "type": "object", "required": ["article"], "additionalProperties": false,
        "properties": {
            "article": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "integer", "enum": [1, 2]}},
        },
    });
    let expected = json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "purchase": {
                "type": "object", "additionalProperties": false, "required": ["rows"],
                "properties": {
                    "rows": {"type": "array", "description": "The rows", "items": row},
                    "note": {
                        "type": "object", "additionalProperties": false,
                        "properties": {"remark": {"type": "string", "default": "-"}},
                    },
                },
            },
            "priority": {"type": "integer", "default": 3},
            "mode": {"type": "string", "default": "fast", "enum": ["fast", "safe"]},
        },
    });
    assert_eq!(input_schema(&rules(&order_rules())).unwrap(), expected);
    let nothing = json!({"type": "object", "additionalProperties": false});
    assert_eq!(input_schema(&[]).unwrap(), nothing);
    assert_eq!(
        input_schema(&rules(
            &json!([{"source_field_name": "a", "constant": 1, "type": "integer"}])
        ))
        .unwrap(),
        nothing
    );
}

#[test]
fn arrays_always_say_what_they_hold() {
    let items = |rule: Value| -> Value {
        let schema = input_schema(&rules(&json!([rule]))).unwrap();
        schema["properties"].as_object().unwrap().values().next().unwrap()["items"].clone()
    };
    let string = json!({"type": "string"});
    assert_eq!(items(json!({"source_field_name": "a", "type": "array"})), string);
    assert_eq!(items(json!({"source_field_name": "a[*]"})), string);
    assert_eq!(
        items(json!({"source_field_name": "a[*]", "type": "integer"})),
        json!({"type": "integer"})
    );
    assert_eq!(
        items(json!({"source_field_name": "a[*][*]", "array_item_type": "number"})),
        json!({"type": "array", "items": {"type": "number"}})
    );
    assert_eq!(
        items(json!({"source_field_name": "a", "type": "array", "array_item_type": "array"})),
        json!({"type": "array", "items": string})
    );
    let object = json!({
        "source_field_name": "a[*]", "array_item_type": "object",
        "additional_properties": {"type": "number"},
    });
    assert_eq!(
        items(object),
        json!({"type": "object", "additionalProperties": {"type": "number"}})
    );
}

#[test]
fn an_array_or_a_value_can_be_the_whole_body() {
    let list = json!([
        {"source_field_name": "[*].id", "exposed_field_name": "key", "required": true},
        {"source_field_name": "[*].kind", "constant": "x"},
    ]);
    let rows = plan("POST", "/bulk", &list);
    assert_eq!(
        body(&sent(&rows, r#"{"items":[{"key":"1"},{"key":"2"}]}"#)),
        r#"[{"id":"1","kind":"x"},{"id":"2","kind":"x"}]"#
    );
    assert_eq!(sent(&rows, "{}").body, None);
    let list = json!([{
        "source_field_name": "[*]", "exposed_field_name": "ids", "array_item_type": "integer",
    }]);
    assert_eq!(body(&sent(&plan("POST", "/", &list), r#"{"ids":[1,2.0]}"#)), "[1,2.0]");
    let list = json!([{"source_field_name": "$", "exposed_field_name": "vote", "type": "object"}]);
    let whole = plan("POST", "/", &list);
    assert_eq!(body(&sent(&whole, r#"{"vote":{"a":[1.50]}}"#)), r#"{"a":[1.50]}"#);
    let list = json!([{"source_field_name": "[*]", "constant": ["a"]}]);
    assert_eq!(body(&sent(&plan("POST", "/", &list), "{}")), r#"["a"]"#);
}

#[test]
fn additional_properties_pass_but_override_nothing() {
    let list = json!([
        {"source_field_name": "meta", "type": "object", "additional_properties": true},
        {"source_field_name": "meta.owner", "constant": "me"},
        {"source_field_name": "meta.a", "exposed_field_name": "b"},
        {"source_field_name": "free", "type": "object"},
    ]);
    let plan = plan("POST", "/", &list);
    let arguments =
        r#"{"meta":{"x":1.50,"owner":"you","a":"smuggled","b":"1"},"free":{"owner":[1]}}"#;
    assert_eq!(
        body(&sent(&plan, arguments)),
        r#"{"meta":{"x":1.50,"a":"1","owner":"me"},"free":{"owner":[1]}}"#
    );
}

#[test]
fn problems_name_the_exposed_field_and_what_is_expected() {
    let plan = plan("POST", "/orders", &order_rules());
    let arguments = r#"{"purchase":{"rows":[{"article":5},{},{"article":"x","tags":[3]}]},
        "mode":"slow","prio":1}"#;
    let error = plan.validate(Some(raw(arguments))).unwrap_err();
    let mut problems: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    problems.sort_unstable();
    assert_eq!(
        problems,
        [
            "mode: expected one of \"fast\", \"safe\"",
            "prio: there is no such field",
            "purchase.rows[0].article: expected string, got a number",
            "purchase.rows[1].article: this field is required",
            "purchase.rows[2].tags[0]: expected one of 1, 2",
        ]
    );
    assert_eq!(
        refused(&plan, "[]"),
        "invalid arguments: arguments: expected an object, got an array"
    );
    assert!(refused(&plan, r#""x""#).contains("expected an object, got a string"));
    assert!(refused(&plan, r#"{"source":"other"}"#).contains("source: there is no such field"));
}

#[test]
fn header_values_cannot_end_their_line() {
    let list = json!([{"source_field_name": "X-A", "location": "header"}]);
    let plan = plan("GET", "/", &list);
    for value in [r"a\r\nHost: x", r"a\u0000", r"\n"] {
        let message = refused(&plan, &format!(r#"{{"X-A":"{value}"}}"#));
        assert!(message.contains("X-A: must not have control characters"), "{message}");
    }
    assert_eq!(sent(&plan, r#"{"X-A":"a b"}"#).headers, [("X-A".to_owned(), "a b".to_owned())]);
}

#[test]
fn a_constant_content_type_is_that_of_the_body() {
    let list = json!([
        {"source_field_name": "Content-Type", "location": "header",
         "constant": "application/vnd.api+json"},
        {"source_field_name": "a"},
    ]);
    let request = sent(&plan("PATCH", "/", &list), "{}");
    assert_eq!(request.content_type.as_deref(), Some("application/vnd.api+json"));
    assert_eq!((request.headers.len(), request.body.as_deref()), (0, Some(&b"{}"[..])));
}

#[test]
fn texts_are_taken_for_what_they_hold_only_where_that_is_declared() {
    let list = json!([
        {"source_field_name": "fields", "type": "object"},
        {"source_field_name": "text"},
        {"source_field_name": "limit", "type": "integer"},
        {"source_field_name": "ratio", "type": "number"},
        {"source_field_name": "open", "type": "boolean"},
        {"source_field_name": "rows[*].n", "type": "integer"},
    ]);
    let plan = plan("POST", "/", &list);
    let arguments = r#"{"fields":"{\"a\":1.50}","text":"{\"a\":1}","limit":"-10","ratio":"1e3",
        "open":"true","rows":"[{\"n\":\"1\"}]"}"#;
    let valid = plan.validate(Some(raw(arguments))).unwrap();
    assert_eq!(valid.repairs().count, 6);
    let named = |repair: &Repair| format!("{} {}", repair.field, repair.kind.as_str());
    let named: Vec<String> = valid.repairs().named.iter().map(named).collect();
    let expected = ["fields", "limit", "ratio", "open", "rows", "rows[0].n"];
    assert_eq!(named, expected.map(|field| format!("{field} text_as_value")));
    assert_eq!(
        body(&plan.build(&valid)),
        concat!(
            r#"{"fields":{"a":1.50},"text":"{\"a\":1}","limit":-10,"ratio":1e3,"#,
            r#""open":true,"rows":[{"n":1}]}"#
        )
    );
    for bad in [
        r#"{"limit":"1e3"}"#,
        r#"{"limit":"1.0"}"#,
        r#"{"limit":"ten"}"#,
        r#"{"limit":""}"#,
        r#"{"fields":"[1]"}"#,
        r#"{"fields":"{\"a\":1,\"a\":2}"}"#,
        r#"{"text":1}"#,
        r#"{"open":"yes"}"#,
        r#"{"limit":"1 2"}"#,
    ] {
        assert!(plan.validate(Some(raw(bad))).is_err(), "{bad}");
    }
    assert_eq!(plan.validate(Some(raw(r#"{"limit":1}"#))).unwrap().repairs().count, 0);
    let bomb = format!(r#"{{"fields":"{}"}}"#, "[".repeat(1_000_000));
    assert!(plan.validate(Some(raw(&bomb))).is_err());
}

#[test]
fn numbers_can_be_shown_as_texts() {
    let list = json!([
        {"source_field_name": "id", "type": "integer", "as_string": true, "format": "int64"},
        {"source_field_name": "price", "type": "number", "as_string": true, "default": 1.5,
         "send_default": true},
        {"source_field_name": "rows[*].n[*]", "type": "integer", "as_string": true,
         "enum": [1, "12345678901234567890123"]},
        {"source_field_name": "q", "type": "integer", "as_string": true, "location": "query"},
        {"source_field_name": "c", "type": "integer", "as_string": true,
         "constant": "98765432109876543210"},
    ]);
    let plan = plan("POST", "/", &list);
    let properties = &plan.input_schema()["properties"];
    let pattern = "^-?(0|[1-9][0-9]*)$";
    assert_eq!(properties["id"], json!({"type": "string", "pattern": pattern, "format": "int64"}));
    assert_eq!(properties["price"]["default"], json!("1.5"));
    let n = &properties["rows"]["items"]["properties"]["n"];
    assert_eq!(n["items"]["enum"], json!(["1", "12345678901234567890123"]));
    let arguments = r#"{"id":"9007199254740993","rows":[{"n":["12345678901234567890123"]}],
        "q":"-5"}"#;
    let request = sent(&plan, arguments);
    assert_eq!(request.target, "/?q=-5");
    assert_eq!(
        body(&request),
        concat!(
            r#"{"id":9007199254740993,"rows":[{"n":[12345678901234567890123]}],"#,
            r#""price":1.5,"c":98765432109876543210}"#
        )
    );
    assert_eq!(
        body(&sent(&plan, r#"{"price":"-1.50e+7"}"#)),
        r#"{"price":-1.50e+7,"c":98765432109876543210}"#
    );
    for bad in [r#"{"id":"1.0"}"#, r#"{"id":"01"}"#, r#"{"id":"1\n"}"#, r#"{"price":"1,5"}"#] {
        assert!(plan.validate(Some(raw(bad))).is_err(), "{bad}");
    }
}

#[test]
fn no_field_has_the_name_of_the_placeholder() {
    let list = json!([{"source_field_name": "_schema_discovery"}]);
    let plan = plan("POST", "/", &list);
    let request = sent(&plan, r#"{"_schema_discovery_body":"x"}"#);
    assert_eq!(body(&request), r#"{"_schema_discovery":"x"}"#);
}

#[test]
fn null_means_absent_where_a_value_is_optional() {
    let list = json!([
        {"source_field_name": "id", "location": "path", "type": "integer"},
        {"source_field_name": "q", "location": "query"},
        {"source_field_name": "o", "type": "object"},
        {"source_field_name": "o.a", "type": "integer"},
        {"source_field_name": "o.b", "required": true},
        {"source_field_name": "n", "schema": {"type": ["integer", "null"]}},
        {"source_field_name": "m", "default": "x", "send_default": true},
        {"source_field_name": "big", "type": "integer", "as_string": true},
        {"source_field_name": "rows[*]", "type": "integer"},
        {"source_field_name": "free", "type": "object", "additional_properties":
            {"type": "object", "properties": {"k": {"type": "integer"}}}},
    ]);
    let plan = plan("POST", "/{id}", &list);
    let text = r#"{"id":"1","q":null,"o":{"a":null,"b":"null"},"n":null,"m":null,"big":-12,
        "rows":null,"free":{"any":{"k":"5"}}}"#;
    let valid = plan.validate(Some(raw(text))).unwrap();
    let request = plan.build(&valid);
    assert_eq!(request.target, "/1");
    assert_eq!(
        body(&request),
        r#"{"o":{"b":"null"},"n":null,"big":-12,"free":{"any":{"k":5}},"m":"x"}"#
    );
    let kinds: Vec<&str> =
        valid.repairs().named.iter().map(|repair| repair.kind.as_str()).collect();
    let (text, null) = ("text_as_value", "null_as_absent");
    assert_eq!(kinds, [text, null, null, null, "number_as_text", null, text]);
    for bad in [
        r#"{"id":null}"#,
        r#"{"id":1,"o":{"b":null}}"#,
        r#"{"id":1,"rows":[null]}"#,
        r#"{"id":1,"unknown":null}"#,
        r#"{"id":1,"q":5}"#,
    ] {
        assert!(plan.validate(Some(raw(bad))).is_err(), "{bad}");
    }
    let many = format!(r#"{{"id":1,"rows":[{}"2"]}}"#, r#""1","#.repeat(1000));
    let valid = plan.validate(Some(raw(&many))).unwrap();
    assert_eq!((valid.repairs().count, valid.repairs().named.len()), (1001, REPAIRS_NAMED_MAX));
}

#[test]
fn one_argument_can_be_read_as_a_text() {
    let list = json!([
        {"source_field_name": "x.mode", "exposed_field_name": "m", "enum": ["a", "b"]},
        {"source_field_name": "n", "type": "integer"},
        {"source_field_name": "d", "type": "boolean", "default": false, "send_default": true},
        {"source_field_name": "l[*]"},
        {"source_field_name": "p.k", "default": "v", "send_default": true},
        {"source_field_name": "f.k", "default": "w", "send_default": true},
        {"source_field_name": "f.c.c", "constant": 1, "type": "integer"},
    ]);
    let plan = plan("POST", "/", &list);
    for (path, expected) in
        [("x.m", true), ("n", true), ("d", true), ("l", false), ("x", false), ("x.mode", false)]
    {
        assert_eq!(plan.has_single_argument(path), expected, "{path}");
    }
    let valid = plan.validate(Some(raw(r#"{"x":{"m":"\u0061"},"n":1.0,"l":[]}"#))).unwrap();
    let text = |path| plan.argument_text(&valid, path);
    assert_eq!(text("x.m").as_deref(), Some("a"));
    assert_eq!(text("n").as_deref(), Some("1"));
    assert_eq!(text("d").as_deref(), Some("false"));
    assert_eq!((text("l"), text("x"), text("z")), (None, None, None));
    // A default goes out where its object does.
    assert_eq!((text("p.k"), text("f.k").as_deref()), (None, Some("w")));
    let valid = plan.validate(Some(raw(r#"{"p":{}}"#))).unwrap();
    assert_eq!(plan.argument_text(&valid, "p.k").as_deref(), Some("v"));
    assert_eq!(body(&plan.build(&valid)), r#"{"p":{"k":"v"},"d":false,"f":{"k":"w","c":{"c":1}}}"#);
}

/// `cargo test --release --lib mapping -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn timing() {
    let list = json!([
        {"source_field_name": "id", "location": "path", "type": "integer"},
        {"source_field_name": "limit", "location": "query", "type": "integer"},
        {"source_field_name": "order.note", "exposed_field_name": "remark", "required": true},
    ]);
    let plan = plan("POST", "/orders/{id}", &list);
    let text = r#"{"id":1042,"limit":25,"order":{"remark":"please ring twice"}}"#;
    let rounds = 200_000_u32;
    let began = Instant::now();
    for _ in 0..rounds {
        let valid = plan.validate(Some(raw(black_box(text)))).unwrap();
        black_box(plan.build(&valid));
    }
    println!("guard, validate and build of 3 arguments: {:?}", began.elapsed() / rounds);
}
