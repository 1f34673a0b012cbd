//! Arguments held to a schema, and repaired where that makes them fit.

use serde_json::Value;

use super::arguments::{Arguments, ArgumentsText};
use super::error::{FieldProblem, InvalidArguments};
use super::repair::{Expected, Repairs};
use super::validator::Validator;
use super::{Dialect, MappingError};
use crate::json::{Kind, Raw};

/// A schema that arguments are held to.
#[derive(Debug)]
pub(super) struct Check {
    validator: Validator,
    expected: Expected,
}

impl Check {
    pub(super) fn compile(schema: &Value) -> Result<Self, MappingError> {
        Ok(Self { validator: Validator::compile(schema)?, expected: Expected::of(schema) })
    }

    /// The arguments as they fit; absent and `null` ones are an empty object. A client that was shown
    /// a dialect in which everything is required leaves out what is optional with `null`.
    pub(super) fn judge<'a>(
        &self,
        given: Option<Raw<'a>>,
        dialect: Dialect,
    ) -> Result<Arguments<'a>, InvalidArguments> {
        let mut arguments = read(given)?;
        if dialect == Dialect::OpenaiStrict
            && let Some((text, repairs)) = self.expected.without_nulls(object(&arguments))
        {
            arguments = Arguments { text: ArgumentsText::Repaired(text), repairs };
        }
        if self.validator.accepts(object(&arguments)) {
            return Ok(arguments);
        }
        if let Some((text, mut repairs)) = self.expected.repair(object(&arguments)) {
            repairs.follow(arguments.repairs);
            arguments = Arguments { text: ArgumentsText::Repaired(text), repairs };
            if self.validator.accepts(object(&arguments)) {
                return Ok(arguments);
            }
        }
        Err(InvalidArguments::new(self.problems(object(&arguments))))
    }

    pub(super) fn accepts(&self, arguments: Raw<'_>) -> bool {
        self.validator.accepts(arguments)
    }

    /// What is wrong with arguments that are not accepted.
    #[cold]
    pub(super) fn problems(&self, arguments: Raw<'_>) -> Vec<FieldProblem> {
        let mut problems = self.validator.problems(arguments);
        if problems.is_empty() {
            let problem = "the arguments do not fit the schema of the tool".to_owned();
            problems.push(FieldProblem { field: String::new(), problem });
        }
        problems
    }
}

/// Arguments that nothing is known of but that they are an object.
pub(super) fn read(given: Option<Raw<'_>>) -> Result<Arguments<'_>, InvalidArguments> {
    let text = match given {
        None => ArgumentsText::Absent,
        Some(raw) => match raw.kind() {
            Kind::Null => ArgumentsText::Absent,
            Kind::Object => ArgumentsText::Given(raw),
            other => return Err(not_an_object(other)),
        },
    };
    Ok(Arguments { text, repairs: Repairs::default() })
}

/// The arguments to look at; absent ones are an empty object.
pub(super) fn object<'a>(arguments: &'a Arguments<'_>) -> Raw<'a> {
    arguments.raw().unwrap_or(Raw::EMPTY_OBJECT)
}

fn not_an_object(kind: Kind) -> InvalidArguments {
    let problem = format!("expected an object, got {}", kind.described());
    InvalidArguments::new(vec![FieldProblem { field: "arguments".to_owned(), problem }])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::guard;

    #[test]
    fn null_leaves_out_what_is_optional_where_a_dialect_has_no_other_way() {
        let check = Check::compile(&json!({
            "properties": {
                "nn": {"type": ["string", "null"]},
                "must": {"type": ["string", "null"]},
                "count": {"type": "integer"},
                "rows": {"items": {"properties": {"nn": {"type": ["integer", "null"]}}}},
                "free": {"type": "object"},
            },
            "required": ["must"],
        }))
        .unwrap();
        let taken = |text: &str, dialect| {
            let checked = guard(text.as_bytes()).unwrap();
            let arguments = check.judge(Some(checked.root()), dialect).unwrap();
            (object(&arguments).text().to_owned(), arguments.repairs.count)
        };
        let given = r#"{"nn":null,"must":null,"rows":[{"nn":null}],"free":{"x":null}}"#;
        let expected = r#"{"must":null,"rows":[{}],"free":{"x":null}}"#;
        assert_eq!(taken(given, Dialect::OpenaiStrict), (expected.to_owned(), 2));
        assert_eq!(taken(given, Dialect::Full), (given.to_owned(), 0));
        // Both kinds of repairs are told.
        let given = r#"{"nn":null,"must":"null","count":"7"}"#;
        let expected = r#"{"must":"null","count":7}"#;
        assert_eq!(taken(given, Dialect::OpenaiStrict), (expected.to_owned(), 2));
        let given = r#"{"must":"null"}"#;
        assert_eq!(taken(given, Dialect::OpenaiStrict), (given.to_owned(), 0));
    }

    #[test]
    fn a_tool_without_fields_says_so() {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let check = Check::compile(&schema).unwrap();
        let checked = guard(br#"{"a":1}"#).unwrap();
        let told = check.judge(Some(checked.root()), Dialect::Full).unwrap_err().to_string();
        assert!(told.contains("there is no "), "{told}");
        assert!(!told.contains("schema"), "{told}");
    }
}
