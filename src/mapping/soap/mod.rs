//! Messages of SOAP services: [XML](super::xml) in envelopes.
//!
//! ```text
//! plan      one operation: its envelopes, its content type, its action
//! read      an envelope to JSON    fault    what went wrong at the service
//! ```

mod fault;
mod plan;
mod read;

#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use plan::{SoapPlan, insert_header_block};
pub use read::Answer;
