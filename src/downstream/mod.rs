//! Doing a call outside: what a tool stands for is done here and nowhere else.
//!
//! ```text
//! rest         a call of an HTTP API, from request to outcome
//! upstream     a request passed on to an MCP server, and what it says by itself
//! reach        what both go through
//! resilience   trying again, and giving a connection a rest
//! accepted     work that is only accepted: looking until it is done (polling says what each look
//!              means)
//! call         what one call knows and how its fate is told
//! pool         idle connections, kept for the next call
//! request      the bytes of a request
//! exchange     a request and its answer over one connection
//! answer       from an answer to an outcome: content (its codings), media (its kind),
//!              failure (its refusals in words), credentials (which never get into either)
//! messages     the same for XML; soap: for envelopes, faults and attachments; ws_security proves who
//!              asks
//! correlation  which ids of a call the API is told
//! carried      what of the client's request goes on to the API
//! keyring      what a call proves itself with: secret_places (where secrets are kept), tokens
//!              (whose, and who asks for them), token_request (what is asked, and what the answer
//!              means)
//! foreseen     calls that will fail, told before they are made
//! dial         opening a connection; egress: whereto one may be opened
//! fetch        documents: descriptions of APIs and what they refer to
//! error        why there was no usable answer
//! builtin      the appliance's own tools
//! ```
//!
//! Invariants worth naming:
//!
//! - Nothing of the client's goes out: only what the connection and the mapping say.
//! - Every address is judged after its name is resolved, and every wait, body and retry has a
//!   limit. A socket that was opened for one serves nobody who might not have opened it.
//! - Dropping a call closes its socket at once; that is what cancelling is.
//! - A credential never shows in an outcome, an error or a log line.
//! - An API that says no gives a failed [`ToolOutcome`](crate::mcp::ToolOutcome); a [`CallError`]
//!   means there was no usable answer.
//!
//! It must not know protocols of clients, and nothing of the server above it: the server comes in
//! as an [`Appliance`].

mod accepted;
mod answer;
mod builtin;
mod call;
mod carried;
mod content;
mod correlation;
mod credentials;
mod dial;
mod egress;
mod error;
mod exchange;
mod failure;
mod fetch;
mod foreseen;
mod keyring;
mod media;
mod messages;
mod polling;
mod pool;
mod reach;
mod request;
mod resilience;
mod rest;
mod secret_places;
mod soap;
#[cfg(test)]
mod tests;
mod token_request;
mod tokens;
mod upstream;
mod whereabouts;
mod ws_security;

pub use builtin::{Appliance, LISTED_MAX, Scope, run_builtin};
pub use carried::Carried;
pub use content::ContentError;
pub use egress::{DenialReason, Denied, Egress, Range};
pub use error::{Awaited, Blame, CallError, CredentialProblem, Unreachable, UpstreamProblem};
pub use fetch::{FetchError, FetchRules, Fetched, Fetcher};
pub use foreseen::foreseen_failures;
pub use keyring::Keyring;
pub use reach::{AcrossCores, Reach};
pub use resilience::Conditions;
pub use rest::{CallEnvironment, Called, RestCaller};
pub use upstream::{
    AnswerSender, AtServers, Client, Discovery, Heard, Listener, Nobody, SessionScope,
    UpstreamAnswer, UpstreamCalled, UpstreamMethod, UpstreamRequest, Upstreams, Wanted,
};
