//! Answers: from the names of the API to those of the tool.

use super::translate::{Direction, Step};
use super::{FieldRule, Location, MappingError, MappingErrors, check_count, shape};
use crate::json::Raw;

/// The compiled rules for the answers of one tool.
#[derive(Debug, Default)]
pub struct ResponsePlan {
    /// `None` where nothing is renamed.
    step: Option<Step>,
}

impl ResponsePlan {
    /// Compiles the rules; without any, answers pass as they are.
    ///
    /// # Errors
    ///
    /// Names every rule that does not fit and what to change.
    pub fn compile(rules: &[FieldRule]) -> Result<Self, MappingErrors> {
        check_count(rules)?;
        let mut errors = MappingErrors::default();
        for rule in rules {
            let mut refuse = |problem| {
                errors.note::<()>(Err(MappingError::Response { field: rule.name(), problem }));
            };
            if rule.location != Location::Body {
                refuse("answers are mapped from the body only; set location to \"body\"");
            }
            if rule.constant.is_some() || rule.send_default {
                refuse("constant and send_default mean nothing here; remove them");
            }
        }
        let root = shape::body(rules, &mut errors);
        errors.check()?;
        let step = Step::compile(&root, rules, Direction::Response)?;
        Ok(Self { step: Some(step).filter(|step| !step.is_plain()) })
    }

    /// The answer under exposed names.
    ///
    /// Fields that no rule names stay, unless their name is what another field of the object was
    /// renamed to: then the mapped field has it. Values are exact text; a value of another kind
    /// than the rules say stays as it is.
    pub fn translate(&self, body: Raw<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(body.text().len() + 32);
        match &self.step {
            Some(step) => step.write(body, &mut out),
            None => out.extend_from_slice(body.text().as_bytes()),
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Instant;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::translate::Step;
    use super::super::{output_schema, shape};
    use super::*;
    use crate::json::{any_json, guard};

    fn rules(value: &Value) -> Vec<FieldRule> {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn translated(list: &Value, body: &str) -> String {
        let plan = ResponsePlan::compile(&rules(list)).unwrap();
        String::from_utf8(plan.translate(guard(body.as_bytes()).unwrap().root())).unwrap()
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
        assert_eq!(translated(&list, body), expected);
        // What is not as the rules say stays as it is.
        for odd in ["null", "[1]", "\"ord\"", "{}", r#"{"order":{"lines":"none"}}"#] {
            let body = odd.replace("order", "ord").replace("lines", "lns");
            assert_eq!(translated(&list, &body).is_empty(), odd.is_empty());
        }
        assert_eq!(
            translated(&list, r#"{"ord":[1],"x":{"ord":1}}"#),
            r#"{"order":[1],"x":{"ord":1}}"#
        );
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
        assert_eq!(translated(&list, body), expected);
        let schema = output_schema(&rules(&list)).unwrap().unwrap();
        assert_eq!(schema["properties"]["id"]["description"], json!("(string)"));
    }

    #[test]
    fn an_array_can_be_the_root() {
        let list = json!([{"source_field_name": "[*].id", "exposed_field_name": "key"}]);
        assert_eq!(
            translated(&list, r#"[{"id":1},{"id":2,"a":0}, 3]"#),
            r#"[{"key":1},{"key":2,"a":0},3]"#
        );
    }

    #[test]
    fn no_rules_or_no_new_names_leave_the_bytes_alone() {
        let body = " { \"a\" : [ 1.50 , \"\\u00e9\" ] } ";
        for list in
            [json!([]), json!([{"source_field_name": "a[*]"}, {"source_field_name": "b.c"}])]
        {
            assert!(ResponsePlan::compile(&rules(&list)).unwrap().step.is_none());
            assert_eq!(translated(&list, body), body.trim());
        }
    }

    #[test]
    fn the_mapped_field_wins_its_name() {
        let list = json!([{"source_field_name": "a", "exposed_field_name": "b"}]);
        assert_eq!(translated(&list, r#"{"b":1,"a":2}"#), r#"{"b":2}"#);
        assert_eq!(translated(&list, r#"{"b":1}"#), r#"{"b":1}"#);
        let swapped = json!([
            {"source_field_name": "a", "exposed_field_name": "b"},
            {"source_field_name": "b", "exposed_field_name": "a"},
        ]);
        assert_eq!(translated(&swapped, r#"{"b":1,"a":2}"#), r#"{"a":1,"b":2}"#);
    }

    #[test]
    fn request_keys_are_refused() {
        for list in [
            json!([{"source_field_name": "a", "location": "header"}]),
            json!([{"source_field_name": "a", "constant": "x"}]),
        ] {
            let error = ResponsePlan::compile(&rules(&list)).unwrap_err().to_string();
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
            let there = Step::compile(&root, &list, Direction::Response).unwrap();
            let back = Step::compile(&root, &list, Direction::Request).unwrap();
            let deep = json!({"a": [{"b": value, "c": [[value]]}], "b": {"a": value}});
            for value in [json!({"a": value, "c": value}), deep, value] {
                let text = value.to_string();
                let mut exposed = Vec::new();
                there.write(guard(text.as_bytes()).unwrap().root(), &mut exposed);
                let mut source = Vec::new();
                back.write(guard(&exposed).unwrap().root(), &mut source);
                prop_assert_eq!(String::from_utf8(source).unwrap(), text);
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
        let plan = ResponsePlan::compile(&rules(&list)).unwrap();
        let root = guard(body.as_bytes()).unwrap().root();
        let rounds = 200_000_u32;
        let began = Instant::now();
        (0..rounds).for_each(|_| drop(black_box(plan.translate(black_box(root)))));
        println!("translation of {} bytes: {:?}", body.len(), began.elapsed() / rounds);
    }
}
