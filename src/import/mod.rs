//! From the description of an API to the entities of a catalog.
//!
//! ```text
//! Documents ──openapi::read / wsdl::read──▶ Step::Need(locations): add them and read again
//!                                         ▶ Step::Done(Description)
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
//! - nothing here knows of tenants, of what is published, or of consent before the merge.
//!
//! This room does no I/O: documents come in as bytes, and what is still wanted comes out.

mod description;
mod documents;
mod error;
pub mod openapi;
pub mod wsdl;

pub use description::{
    DescribedConnection, Description, Operation, OperationTool, Options, Step, Verdict,
};
pub use documents::{
    DOCUMENT_BYTES_MAX, DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, Documents, LOCATION_BYTES_MAX, Location,
};
pub use error::ImportError;
