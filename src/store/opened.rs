//! An open engine: its trees, and two numbers that tell what is in them.
//!
//! A group of changes is applied to all its trees at once, together with the number of its last
//! write: after a crash all of that is there or nothing. The number of a flush is behind all that
//! was flushed with it.

use sled::Transactional as _;
use sled::transaction::{ConflictableTransactionResult, TransactionError, TransactionalTree};

use super::Tree;
use super::ledger::{Holding, KEPT, Ledger};
use super::space::Disk;
use super::tail::Identity;

/// The tree and the key of the number of the last flush. A tree of its own: its one small page is
/// written with every flush.
pub(super) const SEQUENCE_NAME: &str = "sequence";
/// The key in it of the store's identity and the number of the last write.
const THROUGH_NAME: &str = "through";

/// An open store.
pub(super) struct Opened {
    pub(super) db: sled::Db,
    pub(super) trees: [sled::Tree; Tree::ALL.len()],
    pub(super) sequence: sled::Tree,
    /// What has to be synced for a write to survive a power failure.
    pub(super) disk: Disk,
    pub(super) ledger: Ledger,
    /// What is applied, flushed or not.
    pub(super) holding: Holding,
    pub(super) through: Through,
}

/// What of the queue is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Through {
    /// Whose queue it is: made with the store.
    pub(super) identity: Identity,
    /// Number of the last write.
    pub(super) number: u64,
}

impl Through {
    /// None: the store is new, or of a version that kept none.
    pub(super) fn read(sequence: &sled::Tree) -> sled::Result<Option<Self>> {
        let Some(row) = sequence.get(THROUGH_NAME)? else { return Ok(None) };
        Ok(row.split_first_chunk::<16>().and_then(|(identity, number)| {
            let number = u64::from_le_bytes(number.try_into().ok()?);
            Some(Self { identity: *identity, number })
        }))
    }

    pub(super) fn write(&self, sequence: &sled::Tree) -> sled::Result<()> {
        sequence.insert(THROUGH_NAME, &self.encode()).map(drop)
    }

    fn encode(&self) -> [u8; 24] {
        let mut row = [0; 24];
        row[..16].copy_from_slice(&self.identity);
        row[16..].copy_from_slice(&self.number.to_le_bytes());
        row
    }
}

impl Opened {
    pub(super) fn tree(&self, tree: Tree) -> &sled::Tree {
        &self.trees[tree as usize]
    }

    /// Applies the changes, those of each tree and none where it has none. `number` is that of
    /// the last write in them. All is found or nothing after a crash.
    pub(super) fn apply(
        &mut self,
        changes: &[Option<sled::Batch>; Tree::ALL.len()],
        number: u64,
    ) -> sled::Result<()> {
        let through = Through { number, ..self.through };
        let (mut trees, batches): (Vec<_>, Vec<_>) = self
            .trees
            .iter()
            .zip(changes)
            .filter_map(|(tree, batch)| Some((tree, batch.as_ref()?)))
            .unzip();
        trees.push(&self.sequence);
        let row = through.encode();
        let apply = |views: &Vec<TransactionalTree>| -> ConflictableTransactionResult<(), ()> {
            for (view, batch) in views.iter().zip(&batches) {
                view.apply_batch(batch)?;
            }
            if let Some(sequence) = views.last() {
                sequence.insert(THROUGH_NAME, &row)?;
            }
            Ok(())
        };
        match trees.as_slice().transaction(apply) {
            Ok(()) => {}
            Err(TransactionError::Storage(error)) => return Err(error),
            // Nothing above does that.
            Err(TransactionError::Abort(())) => {
                return Err(sled::Error::Unsupported("a group was aborted".to_owned()));
            }
        }
        self.through = through;
        Ok(())
    }

    /// Hands everything applied so far to the kernel, behind it the number of this flush.
    pub(super) fn flush(&mut self) -> sled::Result<()> {
        self.holding.sequence += 1;
        self.sequence.insert(SEQUENCE_NAME, &self.holding.sequence.to_le_bytes())?;
        self.db.flush().map(drop)
    }
}

/// Counts what is in the trees.
pub(super) fn held(trees: &[sled::Tree], sequence: &sled::Tree) -> sled::Result<Holding> {
    let mut holding = Holding::default();
    for (tree, rows) in KEPT.into_iter().zip(&mut holding.rows) {
        for row in trees.get(tree as usize).into_iter().flat_map(sled::Tree::iter) {
            row?;
            *rows += 1;
        }
    }
    if let Some(number) = sequence.get(SEQUENCE_NAME)? {
        let number = number.as_ref().try_into();
        holding.sequence = number.map_or(0, u64::from_le_bytes);
    }
    Ok(holding)
}
