//! Groups of writes, applied to the engine as one.

use std::collections::HashMap;

use super::ledger::KEPT;
use super::opened::Opened;
use super::opening::contained;
use super::{Batch, Tree};

/// Changes applied to the engine in one go at most; bounds how long a reader behind them waits.
const GROUP_CHANGES_MAX: usize = 4096;
const GROUP_BYTES_MAX: usize = 4 << 20;

/// Changes of many batches, merged into one for each tree. The last change of a key holds.
#[derive(Default)]
pub(super) struct Group {
    trees: [Option<sled::Batch>; Tree::ALL.len()],
    /// Rows of the trees that are counted, and whether they are there afterwards.
    counted: [HashMap<Box<[u8]>, bool>; KEPT.len()],
    /// Number of the last write in it; none: there is none, not even an empty one.
    through: Option<u64>,
    changes: usize,
    bytes: usize,
}

impl Group {
    /// Adds the write `number`; none: it was withdrawn.
    pub(super) fn add(&mut self, number: u64, batch: Option<&Batch>) {
        self.through = Some(number);
        let Some(batch) = batch else { return };
        for change in batch.changes() {
            let tree = self.trees[change.tree as usize].get_or_insert_default();
            match change.value {
                Some(value) => tree.insert(change.key, value),
                None => tree.remove(change.key),
            }
            if let Some(place) = KEPT.iter().position(|kept| *kept == change.tree) {
                self.counted[place].insert(change.key.into(), change.value.is_some());
            }
        }
        self.changes += batch.len();
        self.bytes += batch.bytes();
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_large(&self) -> bool {
        self.changes >= GROUP_CHANGES_MAX || self.bytes >= GROUP_BYTES_MAX
    }

    /// Hands it to the engine. Not on disk yet.
    pub(super) fn apply(self, opened: &mut Opened) -> Result<(), String> {
        let Some(through) = self.through else { return Ok(()) };
        let rows = attempt(|| self.rows_after(opened))?;
        opened.ledger.lower(rows).map_err(|error| error.to_string())?;
        attempt(|| opened.apply(&self.trees, through))?;
        opened.holding.rows = rows;
        Ok(())
    }

    /// How many rows the counted trees will have.
    fn rows_after(&self, opened: &Opened) -> sled::Result<[u64; KEPT.len()]> {
        let mut rows = opened.holding.rows;
        for ((tree, counted), rows) in KEPT.into_iter().zip(&self.counted).zip(&mut rows) {
            for (key, is_there) in counted {
                match (opened.tree(tree).contains_key(key)?, *is_there) {
                    (false, true) => *rows += 1,
                    (true, false) => *rows = rows.saturating_sub(1),
                    _ => {}
                }
            }
        }
        Ok(rows)
    }
}

/// Runs one step of the engine; its errors and panics become a reason.
pub(super) fn attempt<T>(step: impl FnOnce() -> sled::Result<T>) -> Result<T, String> {
    contained(step)?.map_err(|error| error.to_string())
}
