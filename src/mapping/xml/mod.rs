//! Messages in XML: from the JSON of a call to elements, and from elements back to JSON.
//!
//! ```text
//! types     the types of a toolset, resolved once for all its tools; builder makes them
//! write     JSON to XML            values   texts of elements and attributes, both ways
//! read      XML to JSON            choice   which parts a call means
//! bodies    bodies of requests and answers without an envelope
//! ```
//!
//! What the JSON of a message looks like is told at [`XmlTypes`](super::XmlTypes).
//!
//! Invariants worth naming:
//!
//! - Elements leave in the order of the schema, whatever the order of the JSON. What the schema does
//!   not know is an error that names it, never left out.
//! - Digits, booleans and texts leave as they are written and come back with every digit. A value
//!   that is not of its type comes back as a text: what a service sends is told, not judged.
//! - No text gets out of its place: there is one escape function. What XML cannot hold is an error
//!   that names the field.
//! - An array is one because the schema says that an element may repeat, never because of how many
//!   arrived.
//! - Plans are immutable. Reading and writing goes as deep as the message does, at most
//!   [`DEPTH_MAX`] levels.

mod attachments;
mod bodies;
pub(super) mod builder;
mod choice;
mod error;
pub(super) mod read;
pub(super) mod types;
mod values;
pub(super) mod write;

#[cfg(test)]
mod tests;

pub use attachments::Attachments;
pub use bodies::BodiesPlan;
pub use error::{PlanError, Unreadable};
pub use read::Message;
pub use types::TypePlans;

/// How deep messages may nest. What is read must be JSON that others accept.
pub(crate) const DEPTH_MAX: usize = crate::json::DEPTH_MAX - 8;
/// How deep groups of one type may nest.
const CONTENT_DEPTH_MAX: usize = 64;
/// How many types stand between one and the first that it is derived from.
const DERIVATIONS_MAX: usize = 64;

pub(super) const INSTANCE_NAMESPACE: &str = "http://www.w3.org/2001/XMLSchema-instance";
const INCLUDE_NAMESPACE: &str = "http://www.w3.org/2004/08/xop/include";
