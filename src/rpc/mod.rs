//! JSON-RPC 2.0: reading messages out of checked JSON, and writing answers of known length.
//!
//! Invariants worth naming:
//!
//! - An id leaves as it came, to the byte: an integer no i64 can hold, an escape in a string.
//! - Nothing is read that did not pass [`json::guard`](crate::json::guard); duplicate keys are
//!   refused there, so a message cannot mean two things.
//! - A single request is read in one pass over its members, without allocating.
//! - What a client sends decides nothing about memory beyond its own bytes: ids and batches are
//!   bounded.
//!
//! This room knows no method names and no transport. Which revision allows batches is for `mcp` to
//! say.

mod error;
mod id;
mod message;
mod reply;

pub use error::{RpcError, code};
pub use id::{Id, OwnedId};
pub use message::{Incoming, Message, parse, read};
pub use reply::{Reply, ResultBody, batch_len, write_batch, write_notification};

/// Most entries of one batch.
pub const BATCH_ENTRIES_MAX: usize = 100;

/// Longest id, in bytes of its JSON text. Ids are kept as long as their calls run.
pub const ID_BYTES_MAX: usize = 1024;
