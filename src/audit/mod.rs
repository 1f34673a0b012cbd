//! The audit log: what was called, by whom, what was decided and why, and what came of it.
//!
//! Each core writes its records as lines of JSON into a buffer of its own. One thread takes the
//! buffers, orders the lines by when their calls ended and appends them to the current segment, a
//! block at a time. Blocks are chained by hashes, and checkpoints signed with a key of this log: what
//! is changed, removed, inserted or reordered later is found by [`verify`].
//!
//! Invariants worth naming:
//! - A core never waits for the log. What the disk does not take in time is dropped and counted,
//!   in a figure and in the log itself; where the log is strict, [`Writer::reserve`] refuses the
//!   call before it is run.
//! - Memory is bounded: by `buffer_bytes_max` for each core, whatever the disk does.
//! - Records are with the kernel within some 50 ms, on the disk within `sync_ms` more, under a
//!   signature within `checkpoint_seconds`. A killed process loses at most the first, a power
//!   failure the first two.
//! - A log that has a key has a head: without one, or behind one, it is at fault, and stays so.
//! - The log only grows at its end. Old segments are deleted whole, and a signed statement says so.
//!
//! In the data directory, `audit/` holds the segments (`audit-<first block>.jsonl`), the key
//! (`signing.key`, `signing.pub`), and signed statements about the last block under a checkpoint
//! (`head`) and about deleted segments (`removed`).
//!
//! This room must not decide anything: what a record says is up to its callers, and so is what may
//! be in a payload.

mod buffer;
mod chain;
mod compose;
mod directory;
mod error;
mod filter;
mod group;
mod head;
mod key;
mod lane;
mod line;
mod members;
mod reader;
mod record;
mod repeat;
mod resume;
mod retention;
mod segment;
mod shared;
mod verify;
mod worker;

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use self::chain::Link;
pub use self::error::AuditError;
pub use self::filter::{Entry, Filter};
use self::head::Head;
use self::key::SigningKey;
use self::lane::Lane;
pub use self::lane::{Dropped, Refused, Reservation, Writer};
pub use self::members::{Asker, Subject};
pub use self::reader::Reader;
pub use self::record::{ALLOWED, CallType, Decision, Outcome, Payload, Record, Transport};
use self::shared::Shared;
pub use self::verify::{Fault, Verified, VerifiedSegment, verify};
use self::worker::Worker;
use crate::rt::files::{make_private_directory, private};
use crate::settings::Audit;
use crate::telemetry::AuditFigures;

/// How long a log that is being closed may take to write what it has.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// The open log of this process; clones are equal. When the last one is dropped, what was accepted
/// is still written, but only [`AuditLog::stop`] waits for that.
#[derive(Clone)]
pub struct AuditLog {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    settings: Audit,
    directory: PathBuf,
    stopped: Mutex<Option<mpsc::Receiver<Result<(), AuditError>>>>,
}

impl AuditLog {
    /// Opens the log in `directory` ([`crate::settings::Settings::audit_directory`]), or makes one
    /// there. Where the settings turn it off, nothing is opened, and writers take records and
    /// forget them. Blocks; not for a core.
    ///
    /// # Errors
    /// The directory cannot be used, another process writes there, or the key is gone. A full disk
    /// is none: it is logged, counted and waited for.
    pub fn open(directory: &Path, settings: &Audit) -> Result<Self, AuditError> {
        let shared = Arc::new(Shared::new(settings));
        let stopped =
            if settings.enabled { Some(start(directory, settings, &shared)?) } else { None };
        Ok(Self {
            handle: Arc::new(Handle {
                shared,
                settings: settings.clone(),
                directory: directory.to_owned(),
                stopped: Mutex::new(stopped),
            }),
        })
    }

    /// The end of the log for one core; `core` names it where the log speaks of losses. Each call
    /// makes a new one, with a buffer of its own.
    pub fn writer(&self, core: usize) -> Writer {
        let Audit { buffer_bytes_max, payload_bytes_max, .. } = self.handle.settings;
        let lane = Arc::new(Lane::new(core, buffer_bytes_max, payload_bytes_max));
        if self.handle.settings.enabled {
            self.handle.shared.add_lane(Arc::clone(&lane));
        }
        Writer::new(Arc::clone(&self.handle.shared), lane)
    }

    /// What it has done so far, for the metrics.
    pub fn figures(&self) -> AuditFigures {
        self.handle.shared.figures()
    }

    /// Takes nothing more, writes what was accepted, signs it and closes the files. To be called
    /// when the cores have ended: what they append from now on is dropped. Blocks, but not longer
    /// than ten seconds; not for a core. Later calls do nothing.
    ///
    /// # Errors
    /// Not everything that was accepted is on disk.
    pub fn stop(&self) -> Result<(), AuditError> {
        self.stop_within(STOP_WITHIN)
    }

    fn stop_within(&self, patience: Duration) -> Result<(), AuditError> {
        self.handle.shared.close();
        let Some(stopped) = self.handle.stopped.lock().take() else { return Ok(()) };
        let directory = || self.handle.directory.clone();
        match stopped.recv_timeout(patience) {
            Ok(done) => done,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Err(AuditError::NotStopped { directory: directory() })
            }
            // The thread is gone without a word: a panic.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(AuditError::NotWritten { directory: directory(), records: 0 })
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog")
            .field("directory", &self.handle.directory)
            .finish_non_exhaustive()
    }
}

/// Opens the files and starts the thread.
fn start(
    directory: &Path,
    settings: &Audit,
    shared: &Arc<Shared>,
) -> Result<mpsc::Receiver<Result<(), AuditError>>, AuditError> {
    make_private_directory(directory)
        .map_err(|source| AuditError::io("make", directory, source))?;
    let lock = lock(directory)?;
    let failed = |source| AuditError::io("read", directory, source);
    let has_segments = !directory::segments(directory).map_err(failed)?.is_empty();
    let key = match SigningKey::read(directory) {
        Err(AuditError::KeyMissing { .. }) if !has_segments => {
            let write_head = |key: &_| Head::write(directory, Link::FIRST, worker::now_ms(), key);
            SigningKey::make(directory, write_head)?
        }
        key => key?,
    };
    let resumed = resume::resume(directory, &key)?;
    let worker =
        Worker::new(Arc::clone(shared), settings.clone(), directory.to_owned(), key, resumed);
    let (done, stopped) = mpsc::sync_channel(1);
    let thread = thread::Builder::new()
        .name("ringway-audit".to_owned())
        .spawn({
            let closing = CloseOnDrop(Arc::clone(shared));
            move || {
                let result = worker.run();
                // Not by closing it alone: a process that is being started may have a copy for a
                // moment.
                let _ = lock.unlock();
                drop(closing);
                let _ = done.send(result);
            }
        })
        .map_err(AuditError::Thread)?;
    shared.set_thread(thread.thread().clone());
    Ok(stopped)
}

/// However the thread ends, nobody may go on filling buffers for it.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
        self.0.set_writable(false);
    }
}

/// Held as long as this process writes the log.
fn lock(directory: &Path) -> Result<File, AuditError> {
    let path = directory.join(directory::LOCK_NAME);
    let failed = |source| AuditError::io("open", &path, source);
    // A pipe in its place is not waited for.
    let mut options = private();
    options.write(true).create(true).truncate(false).custom_flags(libc::O_NONBLOCK);
    let file = options.open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(AuditError::InUse { directory: directory.to_owned() })
        }
        Err(std::fs::TryLockError::Error(source)) => Err(failed(source)),
    }
}
