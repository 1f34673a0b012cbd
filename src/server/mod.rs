//! The server: cores, connections, the way of a request, both planes.
//!
//! ```text
//! start cores core       the process, the life of a core, its state; message: between cores
//! connection pipeline    from bytes to the transport that answers: streamable (modern: the era
//!                        without sessions), legacy, facade
//! execute batch          from messages to work; waiting: for the workers first
//! answer                 what came of a request, as a reply in its client's revision
//! invoke judge tool_call a tool call, from its name to its outcome; ending: how it ends
//! pass_on                other requests that upstream servers answer
//! calls running          what runs, and how its answer reaches the client
//! conversation           what a running request says to its client, and asks; input_required,
//!                        request_state: questions that the client answers by asking again
//! listen subscriptions   who hears what outside requests; watch, listener: where it comes from
//! upstreams              what upstream servers offer: found out, judged, kept
//! publication            catalog and keys, and the one way they change
//! admin                  the admin plane
//! trail refusal          what is recorded of a request; every way to refuse one
//! ```
//!
//! Invariants worth naming:
//! - A request is read, judged, executed and answered on the core that accepted its connection.
//!   What belongs to another core (a stream, an outlet, a running call) is asked of it by one
//!   message; see `core`.
//! - Every transport goes through one pipeline and one execution; there is one table of refusals.
//! - No borrow of a core's state is held over a wait.
//! - Whatever a client can make grow has a bound: connections, queued frames, streams, windows,
//!   sessions, calls of a session, bodies, heads.
//! - Changes of catalog and keys run on workers; a core only ever sees a finished, published state.

mod admin;
mod along;
mod announce;
mod answer;
mod appliance;
mod batch;
mod calls;
mod change_error;
mod change_log;
mod confirm;
mod connection;
mod connections;
mod conversation;
mod core;
mod cores;
mod declared;
mod ending;
mod event_stream;
mod execute;
mod facade;
mod file;
#[cfg(test)]
mod fixture;
mod guard;
mod health;
mod housekeeping;
mod input_required;
mod invoke;
mod judge;
mod legacy;
mod listen;
mod listener;
mod memory;
mod message;
mod modern;
mod note;
mod offload;
mod openapi;
mod operators;
mod outlet;
mod parts;
mod pass_on;
mod pipeline;
mod processors;
mod publication;
mod recovery;
mod redact;
mod refusal;
mod reload;
mod request_state;
mod respond;
mod route;
mod running;
mod scan;
mod sealing;
mod session;
mod shared;
mod sockets;
mod start;
mod streamable;
mod subscriptions;
mod time;
mod tool_call;
mod trail;
mod upstreams;
mod waiting;
mod watch;
mod write_behind;

pub use admin::key_record;
pub use change_error::ChangeError;
pub use change_log::ChangeLogError;
pub use recovery::RecoveryError;
pub use start::{Running, Start, StartError, start};
pub use upstreams::KeptError;

/// Fills `bytes` from the system's secure random source.
///
/// # Panics
/// When the system has no randomness to give: nothing this server does would be safe then.
pub fn random_bytes(bytes: &mut [u8]) {
    #[expect(clippy::expect_used, reason = "keys and session ids must never be predictable")]
    aws_lc_rs::rand::fill(bytes).expect("the system's random source works");
}
