//! Arguments held to a schema, and repaired where that makes them fit.

use serde_json::Value;

use super::MappingError;
use super::arguments::{Arguments, ArgumentsText};
use super::error::{FieldProblem, InvalidArguments};
use super::repair::{Expected, Repairs};
use super::validator::Validator;
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

    /// The arguments as they fit; absent and `null` ones are an empty object.
    pub(super) fn judge<'a>(
        &self,
        given: Option<Raw<'a>>,
    ) -> Result<Arguments<'a>, InvalidArguments> {
        let mut arguments = read(given)?;
        if !self.validator.accepts(object(&arguments)) {
            if let Some((repaired, repairs)) = self.expected.repair(object(&arguments)) {
                arguments = Arguments { text: ArgumentsText::Repaired(repaired), repairs };
            }
            if arguments.repairs.count == 0 || !self.validator.accepts(object(&arguments)) {
                return Err(InvalidArguments::new(self.problems(object(&arguments))));
            }
        }
        Ok(arguments)
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
