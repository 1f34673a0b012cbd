//! What is asked of the store's thread, and how much it weighs in the queue.

use std::sync::Arc;

use super::{Batch, Row, StoreError, Tree};
use crate::rt::OneshotSender;

/// Answer to a write.
pub(super) type Written = Result<(), StoreError>;
/// Answer to a get.
pub(super) type Got = Result<Option<Vec<u8>>, StoreError>;
/// Answer to a scan.
pub(super) type Scanned = Result<Vec<Row>, StoreError>;

/// What the store's thread is asked to do.
pub(super) enum Command {
    Write { batch: Arc<Batch>, reply: OneshotSender<Written> },
    Behind(Arc<Batch>),
    Get { tree: Tree, key: Vec<u8>, reply: OneshotSender<Got> },
    Scan { tree: Tree, after: Option<Vec<u8>>, limit: usize, reply: OneshotSender<Scanned> },
}

/// What each waiting command costs beside its bytes.
pub(super) const COMMAND_BYTES: usize = 128;

impl Command {
    /// The load it puts on the queue.
    pub(super) fn load(&self) -> Load {
        let bytes = match self {
            Self::Write { batch, .. } | Self::Behind(batch) => batch.bytes(),
            Self::Get { key, .. } => key.len(),
            Self::Scan { after, .. } => after.as_ref().map_or(0, Vec::len),
        };
        Load { count: 1, bytes: bytes + COMMAND_BYTES }
    }

    /// What it writes.
    pub(super) fn batch(&self) -> Option<&Arc<Batch>> {
        match self {
            Self::Write { batch, .. } | Self::Behind(batch) => Some(batch),
            Self::Get { .. } | Self::Scan { .. } => None,
        }
    }

    /// Somebody waits for it.
    pub(super) fn is_urgent(&self) -> bool {
        !matches!(self, Self::Behind(_))
    }
}

/// How much has been accepted and is not done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) count: usize,
    pub(super) bytes: usize,
}

impl Load {
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }

    pub(super) fn subtract(&mut self, other: Self) {
        self.count = self.count.saturating_sub(other.count);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }

    /// Whether it fits into `bound`.
    pub(super) fn fits(self, bound: Self) -> bool {
        self.count <= bound.count && self.bytes <= bound.bytes
    }
}
