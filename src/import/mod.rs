//! From the description of an API to the entities of a catalog.
//!
//! ```text
//! Documents ──openapi::read / wsdl::read──▶ Step::Need(locations): add them and read again
//!                                         ▶ Step::Done(Description)
//! Description + what is published ──plan──▶ Entities to apply, Report
//! ```
//!
//! A description document may lead to others. A reader never fetches: it says which documents it
//! misses, whoever asked adds them to the [`Documents`] (or says why they cannot be had) and asks
//! again, until there is a [`Description`].
//!
//! Invariants:
//! - every operation of a description has a verdict; one bad operation never costs another;
//! - a document that came from the network leads to the network only, never to a file;
//! - what is read is bounded: documents, their bytes, and what becomes of them;
//! - readers know nothing of tenants, of what is published, or of consent: only the plan does;
//! - nothing is published, and no published tool changed, without the operator's consent.
//!
//! This room does no I/O: documents come in as bytes, and what is still wanted comes out.

mod archive;
mod bindings;
mod breaking;
mod clean;
mod connections;
mod description;
mod detect;
mod documents;
mod error;
mod merge;
mod message_types;
mod names;
pub mod openapi;
mod parts;
mod placeholders;
mod plan;
mod report;
mod schema_change;
mod selection;
mod target;
mod tools;
pub mod wsdl;

pub use archive::Archive;
pub use breaking::PartChange;
pub use connections::id_of;
pub use description::{
    DescribedConnection, Description, Operation, OperationTool, Options, Step, Verdict,
};
pub use detect::{Detected, detect};
pub use documents::{
    DOCUMENT_BYTES_MAX, DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, Documents, LOCATION_BYTES_MAX, Location,
};
pub use error::{ImportError, PlanError};
pub use merge::Conflict;
pub use plan::{Plan, plan};
pub use report::{Change, Counts, Outcome, Report, ReportedConnection, ReportedOperation};
pub use selection::{InvalidSelection, Selection};
pub use target::{Consent, Target};
