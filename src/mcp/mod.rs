//! The protocol: what a client may ask, and what it is answered.
//!
//! [`dispatch`] is a function from a message and what is known about its sender to a [`Step`]: a
//! ready result, an error, an invocation for somebody to carry out, or nothing to say. The server
//! performs the step; the outcome of an invocation comes back through [`tool_result`], which gives
//! it the form of the client's revision. Every transport goes this way.
//!
//! ```text
//! method dispatch   what is asked, and the step it leads to
//! envelope          what a request of the era without sessions says of itself
//! initialize        how a session begins; discover: what is told without one
//! call outcome      a tool call and its result; relayed: the result of an upstream server
//! pass_on           a request that an upstream server answers
//! paging            lists in pages; templates, resources: those that are no tools
//! conversation      what client and server say while a request runs; asking, notifications: how it
//!                   is written for each revision
//! subscription      what a request listens for
//! refusal           errors; ending: what every result of a revision has
//! upstream          the protocol from the other side
//! ```
//!
//! Invariants
//! - What a client sees depends on its view and its revision, never on how it is connected.
//! - Lists are finished bytes of the view; nothing is formatted per request but a page's cursor.
//! - What is unknown is named in the error, shortened: an error never carries a whole input back.
//! - A notification or a response is never answered, whatever it holds.
//!
//! This room does no input or output and keeps no state.

mod asking;
mod batch;
mod call;
mod completion;
mod conversation;
mod discover;
mod dispatch;
mod ending;
mod envelope;
mod initialize;
mod meta_tool;
mod method;
mod notifications;
mod outcome;
mod paging;
mod pass_on;
mod refusal;
mod relayed;
mod resources;
mod subscription;
mod templates;
pub mod upstream;

#[cfg(test)]
mod governed_tests;
#[cfg(test)]
mod modern_tests;
#[cfg(test)]
mod outcome_tests;
#[cfg(test)]
mod tests;

pub use asking::{answer, cancel_question, input_required, question};
pub use batch::check_batch;
pub use call::{Invocation, progress_token};
pub use conversation::{Ask, AskMethod, AskOutcome, Asks, LogLevel, Told};
pub use dispatch::{DispatchContext, Step, dispatch};
pub use ending::Caching;
pub use envelope::Envelope;
pub use initialize::{Initialization, Offers, ServerInfo, negotiate};
pub use meta_tool::{MetaToolCall, described, schemas, search};
pub use method::Method;
pub use notifications::{
    elicitation_complete, log_message, progress, progress_report, progress_until_reported,
    resource_updated,
};
pub use outcome::{File, KeptAt, Supplement, ToolOutcome, tool_result};
pub use pass_on::PassOn;
pub use refusal::{missing_capabilities, unknown_resource, unknown_tool, unsupported_version};
pub use relayed::{Relayed, relayed_error, relayed_result};
pub use resources::{KEPT_RESULTS, blob_resource, json_resource};
pub use subscription::{Happening, SUBSCRIBED_MAX, Subscription};

pub use crate::sessions::Revision;
