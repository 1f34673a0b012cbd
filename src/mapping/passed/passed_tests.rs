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
