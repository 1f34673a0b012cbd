//! Why an audit log cannot be opened, read or closed.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What went wrong with an audit log.
#[derive(Debug, Error)]
pub enum AuditError {
    /// A file or directory cannot be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process writes this log.
    #[error("the audit log in {} is written by another process", directory.display())]
    InUse {
        /// Where it is.
        directory: PathBuf,
    },
    /// A file that should hold a key holds something else.
    #[error(
        "{} is not a key of an audit log; put the right file back (from a backup)",
        path.display()
    )]
    Key {
        /// The file.
        path: PathBuf,
    },
    /// There are segments, and the key that signs them is gone.
    #[error(
        "{} is missing, and there are segments it has signed\nPut it back from a backup, or move \
         the whole directory away to begin a new log.",
        path.display()
    )]
    KeyMissing {
        /// Where the key should be.
        path: PathBuf,
    },
    /// There is no log.
    #[error("there is no audit log in {}", directory.display())]
    NoLog {
        /// Where it should be.
        directory: PathBuf,
    },
    /// The audit thread cannot be started.
    #[error("the audit thread cannot be started: {0}")]
    Thread(io::Error),
    /// The log was closed while the disk did not take everything.
    #[error("{records} records could not be written to the audit log in {}", directory.display())]
    NotWritten {
        /// Where it is.
        directory: PathBuf,
        /// How many records are lost.
        records: u64,
    },
    /// The disk did not answer while the log was being closed.
    #[error("the disk of the audit log in {} does not answer; gave up waiting", directory.display())]
    NotStopped {
        /// Where it is.
        directory: PathBuf,
    },
}

impl AuditError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}
