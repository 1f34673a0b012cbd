//! What can be wrong with rules (the operator's fault) and with arguments (the client's).

use std::fmt;

use super::path::PathError;
use super::{RULES_MAX, SEGMENTS_MAX};

/// All that is wrong with the rules of one mapping. What is given out has one error or more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MappingErrors(Vec<MappingError>);

impl MappingErrors {
    /// Keeps the error, gives the value.
    pub(super) fn note<T>(&mut self, outcome: Result<T, MappingError>) -> Option<T> {
        outcome.map_err(|error| self.0.push(error)).ok()
    }

    /// Whether nothing was noted.
    pub(super) fn check(&mut self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(std::mem::take(self)) }
    }
}

impl From<MappingError> for MappingErrors {
    fn from(error: MappingError) -> Self {
        Self(vec![error])
    }
}

impl IntoIterator for MappingErrors {
    type Item = MappingError;
    type IntoIter = std::vec::IntoIter<MappingError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for MappingErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for MappingErrors {}

/// Why field rules do not make a mapping. Each text names the rule, as `source (location)`, and
/// says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// A source name of a body field is not a path.
    #[error("field {field}: {error}")]
    Path {
        /// The rule.
        field: String,
        /// What is wrong with the path.
        error: PathError,
    },
    /// A field without a usable name.
    #[error(
        "field {field}: its name is empty or has control characters; set source_field_name and \
         exposed_field_name"
    )]
    NoName {
        /// The rule.
        field: String,
    },
    /// A path where one name is meant.
    #[error(
        "field {field}: exposed_field_name names one field and is not a path; write its last part \
         only, and give the objects and arrays around it rules of their own to rename them"
    )]
    NameIsPath {
        /// The rule.
        field: String,
    },
    /// Two rules for one field.
    #[error("field {field}: another rule has the same source field; remove one of them")]
    Duplicate {
        /// The later rule.
        field: String,
    },
    /// Two fields with one name in the same object.
    #[error(
        "field {field}: another field is also exposed as \"{name}\"; set exposed_field_name to \
         another name"
    )]
    SameName {
        /// The later rule.
        field: String,
        /// The name both want.
        name: String,
    },
    /// The rule contradicts another one about what the field is.
    #[error(
        "field {field}: the rules disagree whether this or a part of its path is an object, an \
         array or a single value; make type, array_item_type and the source paths of its members \
         agree"
    )]
    Conflict {
        /// The rule.
        field: String,
    },
    /// `array_item_type` without an array.
    #[error(
        "field {field}: array_item_type is set but the field is no array; set type to \"array\" \
         or remove it"
    )]
    NoArray {
        /// The rule.
        field: String,
    },
    /// `additional_properties` without an object.
    #[error(
        "field {field}: additional_properties is set but the field is no object; set type to \
         \"object\" or remove it"
    )]
    NoObject {
        /// The rule.
        field: String,
    },
    /// `send_default` without a default.
    #[error(
        "field {field}: send_default is set without a default; add default or remove send_default"
    )]
    NoDefault {
        /// The rule.
        field: String,
    },
    /// A fixed value for an object whose members have rules.
    #[error(
        "field {field}: constant and send_default cannot be set where members have rules; set \
         them on the members"
    )]
    FixedWithMembers {
        /// The rule.
        field: String,
    },
    /// A constant, default or allowed value is of another type than its field.
    #[error("field {field}: {key} has a value that is no {expected}; change the value or the type")]
    Value {
        /// The rule.
        field: String,
        /// The key of the rule.
        key: &'static str,
        /// What the value has to be.
        expected: &'static str,
    },
    /// Keys of the rule that mean nothing where the field goes.
    #[error("field {field}: {problem}")]
    Rule {
        /// The rule.
        field: String,
        /// What is wrong and what to change.
        problem: &'static str,
    },
    /// What the tool says of its body does not fit its fields.
    #[error("{problem}")]
    Body {
        /// The key of the tool, what is wrong and what to change.
        problem: String,
    },
    /// A path field whose placeholder is missing.
    #[error(
        "field {field}: the path \"{path}\" has no placeholder of this name; add {{…}} to the \
         path or change the location"
    )]
    NotInPath {
        /// The rule.
        field: String,
        /// The path template.
        path: String,
    },
    /// A placeholder without a rule.
    #[error(
        "the path \"{path}\" has the placeholder {{{placeholder}}} without a field rule; add a \
         rule with location \"path\""
    )]
    NoRule {
        /// The placeholder.
        placeholder: String,
        /// The path template.
        path: String,
    },
    /// The path template cannot be used.
    #[error("the path \"{path}\": {problem}")]
    Template {
        /// The path template.
        path: String,
        /// What is wrong and what to change.
        problem: &'static str,
    },
    /// The method cannot be used.
    #[error("the method \"{method}\": {problem}")]
    Method {
        /// The method.
        method: String,
        /// What is wrong and what to change.
        problem: &'static str,
    },
    /// A header or cookie that rules may not set.
    #[error("field {field}: {problem}")]
    Header {
        /// The rule.
        field: String,
        /// What is wrong and what to change.
        problem: &'static str,
    },
    /// A fixed value that cannot stand where it goes.
    #[error("field {field}: its constant or default {problem}; change it")]
    Fixed {
        /// The rule.
        field: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A key of the rule that means nothing for answers.
    #[error("response field {field}: {problem}")]
    Response {
        /// The rule.
        field: String,
        /// What is wrong and what to change.
        problem: &'static str,
    },
    /// A raw schema that cannot be used.
    #[error("field {field}: schema: {problem}")]
    RawSchema {
        /// The rule.
        field: String,
        /// What is wrong and what to change.
        problem: String,
    },
    /// A raw schema beside rules that look into the field.
    #[error(
        "field {field}: schema cannot be set where members have rules; set it on the members, or \
         describe them in it"
    )]
    SchemaWithMembers {
        /// The rule.
        field: String,
    },
    /// `as_string` without a number.
    #[error(
        "field {field}: as_string is set but the field holds no integers or numbers; set type or \
         array_item_type, or remove it"
    )]
    NoNumber {
        /// The rule.
        field: String,
    },
    /// The schema that the rules make is not one.
    #[error("the schema of the fields cannot be used, look at additional_properties: {problem}")]
    Schema {
        /// What the schema compiler says.
        problem: String,
    },
    /// More rules than [`RULES_MAX`].
    #[error(
        "a mapping has at most {RULES_MAX} field rules, each at most {SEGMENTS_MAX} levels deep; \
         remove some"
    )]
    TooManyRules,
}

/// How many problems one error tells.
pub(super) const PROBLEMS_MAX: usize = 20;

/// One bad field of the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// Where, by exposed names: `order.lines[2].sku`. Empty for the arguments as a whole.
    pub field: String,
    /// What is expected there. Never has the value itself.
    pub problem: String,
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            formatter.write_str(&self.problem)
        } else {
            write!(formatter, "{}: {}", self.field, self.problem)
        }
    }
}

/// The arguments of a call do not fit; nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidArguments {
    problems: Vec<FieldProblem>,
}

impl InvalidArguments {
    pub(super) const fn new(problems: Vec<FieldProblem>) -> Self {
        Self { problems }
    }

    /// Every bad field.
    pub fn problems(&self) -> &[FieldProblem] {
        &self.problems
    }
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("invalid arguments: ")?;
        for (index, problem) in self.problems.iter().take(PROBLEMS_MAX).enumerate() {
            if index > 0 {
                formatter.write_str("; ")?;
            }
            write!(formatter, "{problem}")?;
        }
        let more = self.problems.len().saturating_sub(PROBLEMS_MAX);
        if more > 0 { write!(formatter, "; and {more} more") } else { Ok(()) }
    }
}

impl std::error::Error for InvalidArguments {}
