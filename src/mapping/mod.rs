//! From tool arguments to a request of the API, and from its answer back.
//!
//! An operator describes an API field by field with [`FieldRule`]s. From them come the schema that
//! clients see ([`input_schema`]), the [`RequestPlan`] that checks arguments and places them in
//! path, query, headers, cookies and body, and the [`ResponsePlan`] that picks the fields of the
//! answer and renames them. What clients see of a schema depends on what they can read
//! ([`in_dialect`]) and should ([`structure_only`], [`lazy_schema`]); arguments are always checked
//! against the full one. Answers that are too large are cut to a [`ResultBudget`].
//!
//! Invariants worth naming:
//!
//! - Values travel as exact text: a number leaves with the digits it came with, a string is never
//!   taken for a number, no field is dropped because of its name.
//! - Every name that a client sees is a key that every model can write, at every depth, and plans
//!   know which field it stands for.
//! - What no response rule names does not reach a client, whatever shape an answer has, unless the
//!   operator says that it may pass.
//! - A string of a field that takes strings is never looked into, whatever it holds.
//! - What a client can write never changes the form of a request: it stays inside its path
//!   segment, its query value, its header, its cookie, its field of a form, its part of a body.
//! - Plans are compiled once, off the cores, and are immutable; using one cannot fail.
//! - Recursion is only over the compiled tree, at most [`SEGMENTS_MAX`] levels, and over checked
//!   JSON, at most [`DEPTH_MAX`](crate::json::DEPTH_MAX).
//!
//! This room does no I/O and knows nothing of connections, credentials or MCP. Only
//! `validator.rs` names `jsonschema`.

mod arguments;
mod body;
pub mod budget;
mod check;
mod dialect;
mod digits;
mod discovery;
mod error;
mod file;
mod format;
mod keys;
mod kinds;
mod media;
mod messages;
mod mirror;
mod parameter;
mod passed;
mod path;
mod placement;
mod raw_schema;
mod repair;
mod request;
mod requirement;
mod response;
mod rule;
mod schema;
mod shape;
pub mod soap;
mod structure;
mod style;
mod translate;
mod validator;
pub mod xml;
mod xml_types;

pub use arguments::Arguments;
pub(crate) use body::part_header_problem;
pub use budget::ResultBudget;
pub use dialect::{Dialect, in_dialect};
pub use discovery::{Discovery, SCHEMA_DISCOVERY, discovery, lazy_schema};
pub use error::{FieldProblem, InvalidArguments, MappingError, MappingErrors};
pub use file::{FILE_BYTES_MAX, RESOURCES_MAX, Resource, ResourceUse, Resources};
pub use format::{BodyFormat, ParameterStyle, RequestBody};
pub use keys::KEY_BYTES_MAX;
pub use messages::Messages;
pub use mirror::{HEADER_PREFIX, MirroredArgument};
pub use passed::{Passed, PassedPlan};
pub use path::{FieldPath, PathError, SEGMENTS_MAX, Segment, below_arrays, in_member};
pub use repair::{REPAIRS_NAMED_MAX, Repair, RepairKind, Repairs};
pub use request::{OutgoingRequest, RequestPlan};
pub use requirement::Requirement;
pub use response::{ResponsePlan, Translated};
pub use rule::{FieldRule, FieldType, Location};
pub use schema::{OutputSchema, input_schema, output, output_schema};
pub use shape::RULES_MAX;
pub use structure::structure_only;
pub use translate::Unmapped;
pub use xml_types::{
    SoapBody, SoapMessage, SoapOperation, SoapVersion, TEXT_MEMBER, TYPE_MEMBER, XmlAttribute,
    XmlBodies, XmlContent, XmlElement, XmlGroup, XmlName, XmlParticle, XmlType, XmlTypes, XmlValue,
};

fn check_count(rules: &[FieldRule]) -> Result<(), MappingError> {
    if rules.len() > RULES_MAX { Err(MappingError::TooManyRules) } else { Ok(()) }
}
