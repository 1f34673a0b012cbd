//! Sessions: who a client is between its requests.
//!
//! A session is opened by `initialize` and belongs to one [`Owner`]: tenant, client application and
//! caller. Its id is a bearer capability the client sends with each request. Everything else (maps,
//! rows, streams, logs) uses the id's [`SessionKey`], which opens nothing.
//!
//! Invariants
//! - An id carries a tag over its random bits and its owner. [`SessionIds::belongs`] tells ids that
//!   this installation never gave to this owner from ids that may be stored, without a look-up.
//! - Unknown, ended, expired and foreign sessions are different values here, for metrics and logs,
//!   and one answer outside: 404.
//! - [`SessionTable`] is shared by all cores. Its locks are short and never held while anything
//!   outside is called.
//! - A session is either in the heap or only a row of the store: the sweep moves idle ones out,
//!   [`SessionTable::adopt`] brings them back. At most one [`Session`] of a key exists at a time.
//! - A session that is held (a running call, an attached stream) does not become idle; its
//!   lifetime still ends.
//!
//! This room does no input or output. Wall time comes in as unix milliseconds because records
//! outlive the process; a clock set back only makes sessions live longer.

mod activity;
mod id;
mod journal;
mod owner;
mod record;
mod revision;
mod session;
mod table;
mod tenants;

pub use activity::{
    CALLS_MAX, CallHandle, CallRefused, QUESTIONS_MAX, STREAMS_MAX, TooManyQuestions,
    TooManyStreams,
};
pub use id::{SessionId, SessionIds};
pub use journal::{RecentSessions, SessionJournal, SessionJournalError};
pub use owner::{Owner, OwnerTooLong};
pub use record::{ClientCapabilities, ClientInfo, RecordError, SessionRecord};
pub use revision::Revision;
pub use session::{Hold, Session};
pub use table::{Adopted, Evictable, Find, SessionLimits, SessionTable, Swept};
pub use tenants::{AtCapacity, Reservation};

pub use crate::streams::SessionKey;
