//! The protocol from the other side: this runtime as the client of an MCP server.
//!
//! ```text
//! search        which transport and which revision a server speaks: a state machine of tries
//! facts         what a server says of itself, at `initialize` or `server/discover`
//! write         requests, notifications and answers, as each revision has them
//! headers       what goes into the HTTP head beside them (mirrored: `x-mcp-header`)
//! received      messages of a server
//! events        an event stream of a server, from bytes to messages
//! answer        what a result means: done, or something has to be answered first
//! listing       lists over all their pages
//! ```
//!
//! Invariants
//! - A server decides nothing about memory but within the bounds it is read with: pages, entries,
//!   cursors, events and questions are counted.
//! - What a stream says does not depend on how its bytes were cut.
//! - A server that breaks the protocol is told from one that says no.
//!
//! This room does no input or output and keeps no state between connections.

mod answer;
mod events;
mod facts;
mod headers;
mod listing;
mod received;
mod search;
mod write;

pub use answer::{Answered, answered};
pub use events::{EventReader, StreamEvent};
pub use facts::{ListChanges, ServerFacts, supported_revisions};
pub use headers::{Posted, faulty_headers, request_headers};
pub use listing::{Listing, ListingLimits, NextPage};
pub use received::{Received, receive};
pub use search::{Failure, Reaction, Search, Try, UpstreamKind, Verdict};
pub use write::{
    Continued, Meta, write_answer, write_capabilities, write_initialize, write_notification,
    write_request,
};

/// What an upstream server is spoken to as.
pub const CLIENT_NAME: &str = "ringway";
