//! What outlives the process: catalog, keys, sessions, replay windows.
//!
//! One thread of its own owns the storage engine; everybody else sends it commands through a
//! bounded queue. It takes all that waits, applies it as one group, flushes, and answers.
//!
//! Invariants worth naming:
//! - [`Store::write_blocking`] answers when the batch survives a power failure,
//!   [`Store::write_behind`] before anything has happened: its batch is with the kernel, and
//!   survives the process, within `flush_ms`. Where the engine is late with it, because the disk
//!   is, a second thread writes it beside the engine: see `tail.rs`.
//! - Commands take effect in the order in which they were queued: a read sees every write before
//!   it, flushed or not.
//! - A write that fails turns the store read-only with a reason, never the process. Reads go on;
//!   what was accepted by `write_behind` and is not on disk is kept in memory; the engine is
//!   reopened, and when it can write again they are repeated. Only in between can a read miss
//!   them.
//! - What was accepted counts against the queue's bounds until it is on disk.
//! - A store of an unknown format is refused without a byte being written.
//! - A store that holds less than it did is refused and stays as it was found: what an orderly
//!   stop left is known by its checksum, what a crash left by its ledger.
//!
//! Keys that are counters or times must be hashed: the engine leaks memory where keys rise and old
//! ones are removed. The first byte of every record is the version of its
//! layout, written by the room that owns the record.
//!
//! This room must not know what is in a record, and is the only one that names sled.

mod batch;
mod closing;
mod command;
mod copies;
mod error;
mod files;
mod format;
mod group;
mod ledger;
mod mark;
mod opened;
mod opening;
mod queue;
mod seal;
mod space;
mod tail;
mod uncommitted;
mod worker;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

pub use self::batch::{Batch, Tree};
use self::command::{Command, Load};
pub use self::error::StoreError;
use self::queue::Shared;
pub use self::seal::{CREDENTIAL_NAME, FILE_NAME, Seal, SealError};
use crate::rt::{OneshotReceiver, OneshotSender, oneshot};

/// Version of the layout of a store: its trees and what their keys mean.
pub(crate) const FORMAT: u32 = 1;

/// Key and value.
pub type Row = (Vec<u8>, Vec<u8>);

/// How a store behaves: the section `[store]` of the settings. An eighth of the queue's bounds is
/// kept for reads and for writes that somebody waits for.
pub use crate::settings::Store as StoreOptions;

/// A batch that was not queued, given back.
#[derive(Debug)]
pub struct NotQueued {
    /// Why.
    pub error: StoreError,
    /// The batch, untouched.
    pub batch: Batch,
}

/// Whether writes are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreState {
    /// They are.
    Healthy,
    /// They are refused until the cause is gone.
    ReadOnly {
        /// The cause, and what an operator can do about it.
        reason: Arc<str>,
    },
}

/// A handle on the open store; clones are cheap and equal. When the last one is dropped, what
/// was accepted is still written, but only [`Store::stop`] waits for that.
#[derive(Clone)]
pub struct Store {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Store {
    /// Opens the store in `directory`, or makes one there. Blocks; not for a core.
    ///
    /// # Errors
    /// The directory cannot be used, is in use by another process, is of an unknown format, or
    /// its content is damaged. Each says what to do.
    pub fn open(directory: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let bound = Load { count: options.queue_max, bytes: options.queue_bytes_max };
        let shared = Arc::new(Shared::new(bound, Duration::from_millis(options.flush_ms)));
        let thread = worker::start(directory, options, Arc::clone(&shared))?;
        let thread = Mutex::new(Some(thread));
        Ok(Self { handle: Arc::new(Handle { shared, thread }) })
    }

    /// Writes `batch` and answers when it survives a power failure.
    ///
    /// # Errors
    /// Refused (full, too large, read-only, stopped), or failed while it was written: then it is
    /// not known whether a restart will find it.
    pub fn write_blocking(&self, batch: Batch) -> Result<(), StoreError> {
        answer(self.ask_write(batch)?.recv_blocking())
    }

    /// Queues `batch` to survive the process within `flush_ms`. Never waits; reads see it at once.
    ///
    /// # Errors
    /// Refused: full, too large, read-only, or stopped.
    pub fn write_behind(&self, batch: Batch) -> Result<(), NotQueued> {
        if let Err(error) = self.handle.shared.writable() {
            return Err(NotQueued { error, batch });
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.handle.shared.push_behind(batch).map_err(|(error, batch)| NotQueued { error, batch })
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// Refused (full, stopped), or the record cannot be read.
    pub async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        answer(self.ask_get(tree, key)?.await)
    }

    /// [`Store::get`] for threads that may block.
    pub fn get_blocking(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        answer(self.ask_get(tree, key)?.recv_blocking())
    }

    /// Up to `limit` rows behind the key `after` (none: from the first), in the order of their
    /// keys. Fewer than `limit`: there are no more.
    ///
    /// # Errors
    /// Refused (full, stopped), or a record cannot be read.
    pub async fn scan(
        &self,
        tree: Tree,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        answer(self.ask_scan(tree, after, limit)?.await)
    }

    /// [`Store::scan`] for threads that may block.
    pub fn scan_blocking(
        &self,
        tree: Tree,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        answer(self.ask_scan(tree, after, limit)?.recv_blocking())
    }

    /// Whether writes are taken, and if not, why.
    pub fn state(&self) -> StoreState {
        self.handle.shared.state()
    }

    /// Takes nothing more, writes what was accepted, closes the files and waits for all that.
    /// Blocks; not for a core. Later calls do nothing.
    ///
    /// # Errors
    /// Not everything that was accepted is on disk.
    pub fn stop(&self) -> Result<(), StoreError> {
        self.handle.shared.close();
        match self.handle.thread.lock().take() {
            // The thread contains its panics; were one to escape, nobody could say what is lost.
            Some(thread) => thread.join().unwrap_or(Err(StoreError::Stopped)),
            None => Ok(()),
        }
    }

    fn ask_write(&self, batch: Batch) -> Result<Answer<()>, StoreError> {
        self.handle.shared.writable()?;
        self.ask(|reply| Command::Write { batch: Arc::new(batch), reply })
    }

    fn ask_get(&self, tree: Tree, key: &[u8]) -> Result<Answer<Option<Vec<u8>>>, StoreError> {
        self.ask(|reply| Command::Get { tree, key: key.to_vec(), reply })
    }

    fn ask_scan(
        &self,
        tree: Tree,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Answer<Vec<Row>>, StoreError> {
        let after = after.map(<[u8]>::to_vec);
        self.ask(|reply| Command::Scan { tree, after, limit, reply })
    }

    fn ask<T: Send>(
        &self,
        command: impl FnOnce(OneshotSender<Result<T, StoreError>>) -> Command,
    ) -> Result<Answer<T>, StoreError> {
        let (reply, receiver) = oneshot();
        self.handle.shared.push(command(reply))?;
        Ok(receiver)
    }
}

type Answer<T> = OneshotReceiver<Result<T, StoreError>>;

fn answer<T>(received: Result<Result<T, StoreError>, crate::rt::Dropped>) -> Result<T, StoreError> {
    received.unwrap_or(Err(StoreError::Stopped))
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("state", &self.state()).finish_non_exhaustive()
    }
}
