//! Arguments passed on to whoever describes them.

use serde_json::json;

use super::*;

fn raw(text: &str) -> OwnedRaw {
    OwnedRaw::parse(text.as_bytes()).unwrap()
}

#[test]
fn a_schema_is_kept_to_the_byte_but_for_blanks() {
    let schema = raw(r#"{ "type" : "object", "z": 1.50, "a": [1e400, "x y"] }"#);
    let Passed { plan, notes } = PassedPlan::compile(schema.as_raw(), &[]).unwrap();
    assert_eq!(plan.input_text(), r#"{"type":"object","z":1.50,"a":[1e400,"x y"]}"#);
    assert!(notes.is_empty() && plan.is_checked(), "{notes:?}");
    let given = raw(r#"{"any": [1.0]}"#);
    let arguments = plan.validate(Some(given.as_raw())).unwrap();
    assert!(matches!(plan.build(&arguments), Cow::Borrowed(r#"{"any": [1.0]}"#)));
    assert_eq!(plan.build(&plan.validate(None).unwrap()), "{}");
    assert_eq!(plan.input_schema()["type"], json!("object"));
}

fn compiled(schema: &str, rules: &[FieldRule]) -> Result<Passed, String> {
    PassedPlan::compile(raw(schema).as_raw(), rules)
}

fn judged(plan: &PassedPlan, given: &str) -> Result<String, String> {
    let given = raw(given);
    let arguments = plan.validate(Some(given.as_raw())).map_err(|error| error.to_string())?;
    Ok(plan.build(&arguments).into_owned())
}

#[test]
fn what_cannot_be_checked_is_passed_on() {
    for schema in [
        r#"{"$schema":"https://example.com/own-dialect","type":"object"}"#,
        r#"{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}"#,
        r#"{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}"#,
        r##"{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}"##,
        r#"{"type":"object","properties":{"a":{"pattern":"(?=a)b"}}}"#,
        r#"{"type":"object","required":"a"}"#,
    ] {
        let Passed { plan, notes } = compiled(schema, &[]).unwrap();
        assert!(!plan.is_checked() && notes.len() == 1, "{schema}");
        assert_eq!(plan.input_text(), schema);
        assert_eq!(judged(&plan, r#"{"a":1}"#).unwrap(), r#"{"a":1}"#);
        assert!(judged(&plan, "[]").is_err());
    }
    // What is hidden stays hidden, whoever checks.
    let hidden = FieldRule { hidden: true, ..FieldRule::new("a", Location::Body) };
    let schema = r#"{"$schema":"urn:x","type":"object","properties":{"a":{},"b":{}}}"#;
    let Passed { plan, .. } = compiled(schema, &[hidden]).unwrap();
    assert!(judged(&plan, r#"{"a":1}"#).unwrap_err().contains("a: there is no such field"));
    assert_eq!(judged(&plan, r#"{"b":1}"#).unwrap(), r#"{"b":1}"#);
}

#[test]
fn older_dialects_are_checked_as_they_are_declared() {
    let schema = r##"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
        "properties":{"a":{"type":"array","items":[{"type":"string"}]}},
        "definitions":{"n":{"type":"integer"}},"additionalProperties":{"$ref":"#/definitions/n"}}"##
        .replace('\n', "");
    let Passed { plan, notes } = compiled(&schema, &[]).unwrap();
    assert!(plan.is_checked(), "{notes:?}");
    assert!(judged(&plan, r#"{"a":["x",5],"b":1}"#).is_ok());
    assert!(judged(&plan, r#"{"a":[5]}"#).is_err());
    assert!(judged(&plan, r#"{"b":"x y"}"#).is_err());
}

#[test]
fn schemas_that_go_round_end() {
    let mut doubling = json!({"type": "object", "allOf": [{"$ref": "#/$defs/d0"}], "$defs": {}});
    for at in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        doubling["$defs"][format!("d{at}")] = json!({"allOf": [next, next]});
    }
    doubling["$defs"]["d40"] = json!({"type": "object"});
    let node = json!({"$ref": "#/$defs/n"});
    let tree = json!({
        "type": "object", "$ref": "#/$defs/n",
        "$defs": {"n": {"anyOf": [
            {"required": ["x"], "properties": {"a": node, "b": node}},
            {"properties": {"a": node, "b": node}},
        ]}},
    });
    let mut given = json!({"c": 1});
    (0..60).for_each(|_| given = json!({"a": given}));
    let started = std::time::Instant::now();
    for schema in [
        r##"{"type":"object","$ref":"#"}"##.to_owned(),
        r##"{"type":"object","allOf":[{"$ref":"#"}]}"##.to_owned(),
        r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##.to_owned(),
        r##"{"type":"object","not":{"not":{"$ref":"#"}}}"##.to_owned(),
        doubling.to_string(),
        tree.to_string(),
    ] {
        let Passed { plan, notes } = compiled(&schema, &[]).unwrap();
        assert!(!plan.is_checked() && notes.len() == 1, "{notes:?}");
        assert!(judged(&plan, &given.to_string()).is_ok());
    }
    let plain = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/x%20y"},"b":{"$ref":"#z"}},
        "$defs":{"x y":{"type":"string"},"z":{"$anchor":"z","type":"null"}}}"##;
    let Passed { plan, .. } = compiled(plain, &[]).unwrap();
    assert!(plan.is_checked() && judged(&plan, r#"{"a":"x","b":null}"#).is_ok());
    assert!(judged(&plan, r#"{"b":1}"#).is_err());
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn a_constant_that_the_server_will_refuse_is_told() {
    let schema =
        r##"{"type":"object","properties":{"bytes":{"type":"integer"},"to":{"$ref":"#/x"}}}"##;
    let fixed = |source: &str, constant: Value| FieldRule {
        constant: Some(constant),
        ..FieldRule::new(source, Location::Body)
    };
    let notes = |rule| compiled(schema, &[rule]).unwrap().notes;
    let is_told = |notes: Vec<String>| notes.iter().any(|note| note.contains("`bytes`"));
    assert!(is_told(notes(fixed("bytes", json!("text")))));
    assert!(!is_told(notes(fixed("bytes", json!(7)))));
    assert!(!is_told(notes(fixed("to", json!(7)))));
    let mirrored = FieldRule {
        mcp_header: Some("Bytes".to_owned()),
        ..FieldRule::new("bytes", Location::Body)
    };
    assert!(PassedPlan::faults(&[mirrored])[0].contains("remove `mcp_header`"));
}

#[test]
fn errors_have_the_names_that_clients_know() {
    let rule = |source: &str| FieldRule::new(source, Location::Body);
    let renamed = FieldRule { exposed_field_name: Some("who".to_owned()), ..rule("user") };
    let fixed = FieldRule { constant: Some(json!("x")), ..rule("mode") };
    let schema = r#"{"type":"object","properties":{"user":{"type":"object","properties":
        {"id":{"type":"integer"}}},"mode":{"type":"string"}},"required":["user","mode"],
        "dependentRequired":{"user":["extra"]}}"#
        .replace('\n', "");
    let Passed { plan, notes } = compiled(&schema, &[renamed, fixed]).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    assert!(plan.input_schema().get("dependentRequired").is_none());
    let good = judged(&plan, r#"{"who":{"id":"7"},"extra":1}"#).unwrap();
    assert_eq!(good, r#"{"user":{"id":7},"extra":1,"mode":"x"}"#);
    for (given, expected) in [
        ("{}", "who: this field is required"),
        (r#"{"who":{"id":"x"}}"#, "who.id: expected integer"),
        (r#"{"who":{},"user":{}}"#, "user: there is no such field"),
        (r#"{"who":{},"mode":"y"}"#, "mode: there is no such field"),
        (r#"{"who":{}}"#, "extra"),
    ] {
        let error = judged(&plan, given).unwrap_err();
        assert!(error.contains(expected), "{given}: {error}");
    }
}

#[test]
fn names_may_be_exchanged() {
    let rename = |source: &str, exposed: &str| FieldRule {
        exposed_field_name: Some(exposed.to_owned()),
        ..FieldRule::new(source, Location::Body)
    };
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}}}"#;
    let Passed { plan, .. } = compiled(schema, &[rename("a", "b"), rename("b", "a")]).unwrap();
    assert_eq!(judged(&plan, r#"{"a":true,"b":"x"}"#).unwrap(), r#"{"b":true,"a":"x"}"#);
    let error = compiled(schema, &[rename("a", "b")]).unwrap_err();
    assert!(error.contains("another argument is called that"), "{error}");
    // Something in the schema points to what is not there any more.
    let pointing =
        r##"{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}"##;
    let error = compiled(pointing, &[rename("a", "c")]).unwrap_err();
    assert!(error.contains("refers to arguments"), "{error}");
}

#[test]
fn other_texts_change_nothing_of_what_goes_on() {
    let rule =
        FieldRule { description: Some("What".to_owned()), ..FieldRule::new("a", Location::Body) };
    let schema =
        r#"{"type":"object","properties":{"a":{"description":"old","type":"string"}},"if":{}}"#;
    let Passed { plan, .. } = compiled(schema, &[rule]).unwrap();
    assert_eq!(
        plan.input_text(),
        r#"{"type":"object","properties":{"a":{"type":"string","description":"What"}},"if":{}}"#
    );
    let given = raw(r#"{"a":"x"}"#);
    let arguments = plan.validate(Some(given.as_raw())).unwrap();
    assert!(matches!(plan.build(&arguments), Cow::Borrowed(_)));
}
