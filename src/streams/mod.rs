//! Streams: replay windows of server-sent events, who may read them, and their journal.
//!
//! A *stream* is what a client listens on: the answer to one POST, the standing GET stream of a
//! session, or an HTTP+SSE stream. It has an id that names node and core, a window of its last
//! events, and at most one attached connection (an opaque [`OutletId`]). A stream belongs to one
//! core: [`StreamTable`] is plain data of that core and is never shared.
//!
//! Invariants
//! - An event is framed once ([`frame`]): a complete HTTP chunk around a complete SSE event. The
//!   same bytes go to the connection, into the window and into the journal.
//! - Positions of a stream rise by one from 1. A window holds a gapless run of the newest ones, so
//!   a replay is exactly what followed, or nothing.
//! - A stream is shown only to the session that opened it. Another session's key, an unknown id
//!   and an expired one give the same answer.
//! - Windows are bounded in events, bytes and age, the whole table in bytes: the oldest finished
//!   stream goes first, then the oldest event.
//! - Each change is appended to the [`journal`], whose chunks stand alone: any of them may be lost
//!   or overwritten, and what the rest says is still true. [`StreamTable::recover`] rebuilds the
//!   table; afterwards no stream is attached.
//!
//! This room does no input or output. Wall time comes in as unix milliseconds because it must keep
//! its meaning over a restart.

pub mod frame;
mod ids;
pub mod journal;
mod recovery;
mod ring;
mod stream;
mod table;
mod window;

#[cfg(test)]
mod tests;

pub use ids::{EventId, IdText, SessionKey, StreamId};
pub use journal::{Chunk, JournalError, SealedChunk};
pub use ring::{JournalRing, Placement, slot_key};
pub use stream::{OutletId, StreamKind};
pub use table::{
    Attached, ExpiredStream, Place, Published, StreamError, StreamLimits, StreamTable,
    UnfinishedStream,
};
pub use window::{Window, WindowLimits};
