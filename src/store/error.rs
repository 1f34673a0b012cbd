//! What can go wrong with the store, and what to do about it.

use std::path::PathBuf;
use std::sync::Arc;

/// Why the store could not be opened, or did not do what it was asked.
///
/// All of it is ours or the machine's doing, never a client's.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The directory cannot be used at all.
    #[error(
        "cannot use {} for the store: {cause}; check that it exists, belongs to this user and \
         is on a writable file system", directory.display()
    )]
    Directory {
        /// The store's directory.
        directory: PathBuf,
        /// What the operating system said.
        cause: Arc<std::io::Error>,
    },
    /// The disk is too full to open it.
    #[error(
        "no room to open the store in {}: the disk is full ({} KiB free); make at least {} KiB of \
         room there", directory.display(), free_bytes / 1024, needed_bytes.div_ceil(1024)
    )]
    NoRoom {
        /// The store's directory.
        directory: PathBuf,
        /// Room that is left.
        free_bytes: u64,
        /// Room that is needed for it to take writes.
        needed_bytes: u64,
    },
    /// Another process has it open.
    #[error(
        "the store in {} is in use by another process; stop that one, or choose another data \
         directory", directory.display()
    )]
    InUse {
        /// The store's directory.
        directory: PathBuf,
    },
    /// It was written by another version. Nothing was changed.
    #[error(
        "the store in {} has format {found}, this version reads {known}; start the version that \
         wrote it, or choose another data directory (nothing was changed)", directory.display()
    )]
    UnknownFormat {
        /// The store's directory.
        directory: PathBuf,
        /// What was found.
        found: String,
        /// The format of this version.
        known: u32,
    },
    /// It cannot be read.
    #[error(
        "the store in {} is damaged: {detail}; restore the whole directory from a backup, or move \
         it aside to start with an empty one", directory.display()
    )]
    Damaged {
        /// The store's directory.
        directory: PathBuf,
        /// What the storage engine said.
        detail: String,
    },
    /// The store's thread could not be started.
    #[error("cannot start the store's thread: {0}")]
    Thread(Arc<std::io::Error>),
    /// Too much is waiting already.
    #[error("the store is busy: its queue is full")]
    Full,
    /// The batch alone is larger than the queue.
    #[error("a batch of {bytes} bytes is larger than the store's queue ({bytes_max} bytes)")]
    TooLarge {
        /// Size of the batch.
        bytes: usize,
        /// Size of the queue.
        bytes_max: usize,
    },
    /// Writes are refused for now. Of a `write` that was waiting when this happened it is not
    /// known whether it will be found after a restart.
    #[error("the store is read-only: {reason}")]
    ReadOnly {
        /// Why.
        reason: Arc<str>,
    },
    /// A record could not be read.
    #[error("cannot read from the store: {0}")]
    Read(String),
    /// The store was stopped.
    #[error("the store is stopped")]
    Stopped,
}
