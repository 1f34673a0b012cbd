//! What the fields of a body have to keep to together, which no rule of one field can say.
//!
//! A schema says it with `oneOf` and `anyOf` at its root. The root that clients see is a plain object
//! all the same, since models refuse anything else there; so it is told in the description, and
//! checked here.

use serde::{Deserialize, Serialize};

use super::path::{FieldPath, Segment};
use super::shape::Field;
use super::{FieldRule, Location, MappingError};
use crate::json::Raw;

/// Most lists of one requirement, and most fields of one list.
pub(super) const CHOICES_MAX: usize = 64;

/// Which fields of its body a call has to give, each list by the source names of its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// All of at least one list.
    AnyOf(Vec<Vec<String>>),
    /// All of one list, and of no other one.
    OneOf(Vec<Vec<String>>),
}

/// One of them, by the names that clients see.
#[derive(Debug)]
pub(super) struct Demand {
    choices: Box<[Box<[Wanted]>]>,
    is_exclusive: bool,
}

#[derive(Debug)]
struct Wanted {
    exposed: Box<str>,
    /// `null` is a value of it.
    is_nullable: bool,
}

impl Demand {
    /// Those of a tool. A field that is sent in any case is given.
    pub(super) fn all(
        requirements: &[Requirement],
        fields: &[Field],
        rules: &[FieldRule],
    ) -> Result<Box<[Self]>, MappingError> {
        requirements.iter().map(|one| Self::compile(one, fields, rules)).collect()
    }

    fn compile(
        requirement: &Requirement,
        fields: &[Field],
        rules: &[FieldRule],
    ) -> Result<Self, MappingError> {
        let (lists, is_exclusive) = match requirement {
            Requirement::AnyOf(lists) => (lists, false),
            Requirement::OneOf(lists) => (lists, true),
        };
        let refuse = |problem: String| Err(MappingError::Body { problem });
        if lists.is_empty() {
            return refuse("requires: a list without choices; name fields or remove it".to_owned());
        }
        if lists.len() > CHOICES_MAX || lists.iter().any(|list| list.len() > CHOICES_MAX) {
            return refuse(format!("requires: a list has at most {CHOICES_MAX}; remove some"));
        }
        let mut choices = Vec::with_capacity(lists.len());
        for list in lists {
            let mut choice = Vec::with_capacity(list.len());
            for source in list {
                let Some(field) = field_of(source, fields) else {
                    return refuse(format!(
                        "requires: no field of the body has the source {source:?}; name one of \
                         the outermost members of a body that is an object"
                    ));
                };
                let rule = field.node.rule.and_then(|index| rules.get(index));
                let is_sent = field.node.is_hidden(rules)
                    || rule.is_some_and(|rule| rule.send_default && rule.default.is_some());
                if !is_sent {
                    choice.push(Wanted {
                        exposed: field.node.exposed.clone(),
                        is_nullable: rule.is_some_and(|rule| rule.nullable),
                    });
                }
            }
            choices.push(choice.into_boxed_slice());
        }
        Ok(Self { choices: choices.into_boxed_slice(), is_exclusive })
    }

    /// What is wrong with the arguments; `None` when nothing is.
    #[inline]
    pub(super) fn problem(&self, arguments: Raw<'_>) -> Option<String> {
        let met = self.choices.iter().filter(|choice| is_met(choice, arguments)).count();
        let is_good = met == 1 || (met > 1 && !self.is_exclusive);
        (!is_good).then(|| self.told(met))
    }

    #[cold]
    fn told(&self, met: usize) -> String {
        let names = |choice: &[Wanted]| {
            let names: Vec<String> =
                choice.iter().map(|one| format!("\"{}\"", one.exposed)).collect();
            if names.is_empty() { "nothing more".to_owned() } else { names.join(" and ") }
        };
        let choices: Vec<String> = self.choices.iter().map(|choice| names(choice)).collect();
        let choices = choices.join(", or ");
        match (self.is_exclusive, met) {
            (false, _) => format!("at least one of these is required: {choices}"),
            (true, 0) => format!("exactly one of these is required: {choices}"),
            (true, _) => format!("exactly one of these may be given, not several: {choices}"),
        }
    }
}

fn is_met(choice: &[Wanted], arguments: Raw<'_>) -> bool {
    choice.iter().all(|wanted| {
        let value = arguments.get(&wanted.exposed);
        value.is_some_and(|value| wanted.is_nullable || !value.is_null())
    })
}

fn field_of<'f>(source: &str, fields: &'f [Field]) -> Option<&'f Field> {
    let path = FieldPath::parse(source).ok()?;
    let ([Segment::Name(name), Segment::Each] | [Segment::Name(name)]) = path.segments() else {
        return None;
    };
    let is_it = |field: &&Field| {
        field.location == Location::Body && !field.whole && *field.node.source == **name
    };
    fields.iter().find(is_it)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{MappingErrors, RequestBody, RequestPlan};
    use super::*;
    use crate::json::guard;

    fn compiled(fields: &Value, requires: &Value) -> Result<RequestPlan, MappingErrors> {
        let rules: Vec<FieldRule> = serde_json::from_value(fields.clone()).unwrap();
        let requires: Vec<Requirement> = serde_json::from_value(requires.clone()).unwrap();
        let body = RequestBody { requires: &requires, ..RequestBody::default() };
        RequestPlan::compile("POST", "/", &rules, body)
    }

    fn fields() -> Value {
        let field = |name: &str| json!({ "source_field_name": name, "location": "body" });
        let mut fields = vec![field("a"), field("c"), field("list[*]")];
        fields.push(json!({
            "source_field_name": "b", "location": "body", "exposed_field_name": "bee",
        }));
        fields.push(json!({ "source_field_name": "n", "location": "body", "nullable": true }));
        fields.push(json!({ "source_field_name": "k", "location": "body", "constant": "x" }));
        Value::Array(fields)
    }

    fn outcome(plan: &RequestPlan, arguments: &Value) -> Result<(), String> {
        let text = arguments.to_string();
        let guarded = guard(text.as_bytes()).unwrap();
        plan.validate(Some(guarded.root())).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn one_of_takes_exactly_one() {
        let plan = compiled(&fields(), &json!([{ "one_of": [["a"], ["b"]] }])).unwrap();
        let neither = "invalid arguments: exactly one of these is required: \"a\", or \"bee\"";
        for arguments in [json!({}), json!({ "c": "x" }), json!({ "a": null })] {
            assert_eq!(outcome(&plan, &arguments).unwrap_err(), neither);
        }
        for arguments in [json!({ "a": "x" }), json!({ "bee": "" }), json!({ "bee": "", "c": "" })]
        {
            assert_eq!(outcome(&plan, &arguments), Ok(()));
        }
        let both = outcome(&plan, &json!({ "a": "x", "bee": "y" })).unwrap_err();
        assert!(both.contains("not several: \"a\", or \"bee\""), "{both}");
        // The root that clients see has none of it.
        let text = plan.input_schema().to_string();
        assert!(!text.contains("oneOf") && !text.contains("anyOf"), "{text}");
    }

    #[test]
    fn any_of_takes_one_or_more() {
        let plan = compiled(&fields(), &json!([{ "any_of": [["a", "c"], ["n"]] }])).unwrap();
        let error = outcome(&plan, &json!({ "a": "x" })).unwrap_err();
        assert!(error.contains("at least one of these is required: \"a\" and \"c\", or \"n\""));
        for arguments in [
            json!({ "a": "x", "c": "y" }),
            json!({ "n": null }),
            json!({ "a": "x", "c": "y", "n": "z" }),
        ] {
            assert_eq!(outcome(&plan, &arguments), Ok(()));
        }
    }

    #[test]
    fn what_is_always_sent_is_given() {
        let plan = compiled(&fields(), &json!([{ "any_of": [["a"], ["k"]] }])).unwrap();
        assert_eq!(outcome(&plan, &json!({})), Ok(()));
        let plan =
            compiled(&fields(), &json!([{ "any_of": [["list"]] }, { "one_of": [["a", "k"]] }]));
        let error = outcome(&plan.unwrap(), &json!({})).unwrap_err();
        assert!(error.contains("\"list\"; exactly one of these is required: \"a\""), "{error}");
    }

    #[test]
    fn names_that_are_no_fields_are_told() {
        for requires in [
            json!([{ "any_of": [["missing"]] }]),
            json!([{ "any_of": [["a.b"]] }]),
            json!([{ "any_of": [["bee"]] }]),
            json!([{ "any_of": [] }]),
            json!([{ "any_of": vec![["a"]; CHOICES_MAX + 1] }]),
        ] {
            let error = compiled(&fields(), &requires).unwrap_err().to_string();
            assert!(error.starts_with("requires: "), "{error}");
        }
        let whole = json!([{ "source_field_name": "$", "location": "body", "type": "object" }]);
        assert!(compiled(&whole, &json!([{ "any_of": [["a"]] }])).is_err());
    }
}
