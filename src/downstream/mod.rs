//! Doing a call outside: what a tool stands for is done here and nowhere else.
//!
//! ```text
//! rest      a call of an HTTP API, from request to outcome
//! call      what one call knows and how its fate is told
//! pool      idle connections, kept for the next call
//! request   the bytes of a request
//! exchange  a request and its answer over one connection
//! answer    from an answer to an outcome: content (its codings), media (its kind),
//!           failure (its refusals in words), credentials (which never get into either)
//! soap      the same for envelopes, faults and attachments; ws_security proves who asks
//! correlation  which ids of a call the API is told
//! egress    addresses that are out of bounds
//! error     why there was no usable answer
//! builtin   the appliance's own tools
//! ```
//!
//! Invariants worth naming:
//!
//! - Nothing of the client's goes out: only what the connection and the mapping say.
//! - Every address is judged after its name is resolved, and every wait, body and retry has a
//!   limit.
//! - Dropping a call closes its socket at once; that is what cancelling is.
//! - A credential never shows in an outcome, an error or a log line.
//! - An API that says no gives a failed [`ToolOutcome`](crate::mcp::ToolOutcome); a [`CallError`]
//!   means there was no usable answer.
//!
//! It must not know protocols of clients, and nothing of the server above it: the server comes in
//! as an [`Appliance`].

mod answer;
mod builtin;
mod call;
mod content;
mod correlation;
mod credentials;
mod egress;
mod error;
mod exchange;
mod failure;
mod media;
mod pool;
mod request;
mod rest;
mod soap;
#[cfg(test)]
mod tests;
mod ws_security;

pub use builtin::{Appliance, LISTED_MAX, Scope, run_builtin};
pub use content::ContentError;
pub use error::{Awaited, Blame, CallError, Unreachable};
pub use rest::{CallEnvironment, Called, RestCaller};
