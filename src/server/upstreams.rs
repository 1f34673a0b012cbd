//! Upstream MCP servers: what they offer is found out, judged, kept, and becomes part of the catalog.
//!
//! ```text
//! round      one task of the first core: which server is asked when (`pace`)
//!   └ Discover ──▶ Offer ──▶ keeper: the server's book (governance::definitions)
//!                              ├ kept: its rows in the store
//!                              ├ Publication::set_definitions: the lists of clients
//!                              └ record: the audit log, the log
//! ```
//!
//! Invariants worth naming:
//! - What was accepted before the start is served before any server is asked.
//! - A server that is slow or down delays no other: each has its own deadline, and who waits for
//!   its turn waits for room only.
//! - What is judged is kept before it is shown. Where the store cannot write, what is withheld is
//!   withheld all the same, and no operator accepts anything.
//! - One that is down stays in the lists until its grace is over, and is back with its next answer.

mod discovery;
mod keeper;
mod kept;
mod pace;
mod record;
mod round;

pub(crate) use self::{
    keeper::{Deciding, Keeper, UpstreamError, UpstreamState},
    record::recorded,
    round::{Round, run},
};
pub use kept::KeptError;

#[cfg(test)]
mod tests;
