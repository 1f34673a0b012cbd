//! The change log: what of it is in the store, and what is written and forgotten with a change.
//!
//! Its rows are in the catalog's own tree, because rows of one tree are found all or not at all
//! after a crash: no change is without its record, and no record without its change. A row's key is
//! [`KEY_PREFIX`] and the version, scrambled so that keys do not rise. The newest record is never
//! forgotten: it holds the version of the catalog.

use std::collections::VecDeque;

use crate::{
    catalog::{ChangeHeader, ChangeRecord, HistoryError},
    store::{Batch, Seal, SealError, Store, StoreError, Tree},
};

/// Begins the key of every record; no kind of entity has this name.
const KEY_PREFIX: &[u8] = b"change/";

/// Most changes in one list.
pub(crate) const LISTED_MAX: usize = 1000;

/// Why the log cannot tell.
#[derive(Debug, thiserror::Error)]
pub enum ChangeLogError {
    /// The store cannot be read.
    #[error("the change log cannot be read: {0}")]
    Store(#[from] StoreError),
    /// A record cannot be used.
    #[error("the change log cannot be read: {0}")]
    Record(#[from] HistoryError),
    /// A record cannot be sealed or opened.
    #[error("{0}")]
    Seal(#[from] SealError),
    /// Never made, or forgotten.
    #[error(
        "the change log has no version {version}: it reaches from {oldest} to {newest}; \
         `ringway history` lists what it has"
    )]
    NoSuchVersion {
        /// What was asked for.
        version: u64,
        /// The oldest change it has.
        oldest: u64,
        /// The newest.
        newest: u64,
    },
}

/// How much of the past is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) changes_max: usize,
    pub(crate) bytes_max: usize,
}

/// Which changes the store has, the oldest first and without gaps.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    kept: Kept,
    /// Versions and the bytes of their records.
    records: VecDeque<(u64, usize)>,
    bytes: usize,
}

impl ChangeLog {
    /// The log made of those rows that [`ChangeLog::is_record`] names.
    pub(crate) fn load(rows: Vec<(u64, usize)>, kept: Kept) -> Self {
        let mut records = rows;
        records.sort_unstable();
        // Behind a gap nothing could be brought back.
        let gap = records.windows(2).rposition(|pair| pair[1].0 != pair[0].0 + 1);
        let records: VecDeque<_> = records.drain(gap.map_or(0, |at| at + 1)..).collect();
        let bytes = records.iter().map(|(_, bytes)| bytes).sum();
        Self { kept, records, bytes }
    }

    /// Whether a row of the catalog's tree is a record.
    pub(crate) fn is_record(key: &[u8]) -> bool {
        key.starts_with(KEY_PREFIX)
    }

    /// The version of a record.
    pub(crate) fn version_of(record: &[u8]) -> Result<u64, HistoryError> {
        ChangeHeader::decode(record).map(|header| header.version)
    }

    /// The version of the catalog: that of the newest change, 0 where there was none.
    pub(crate) fn newest(&self) -> u64 {
        self.records.back().map_or(0, |(version, _)| *version)
    }

    /// The oldest change it still has.
    pub(crate) fn oldest(&self) -> u64 {
        self.records.front().map_or(0, |(version, _)| *version)
    }

    /// Adds a record to `batch`, and takes out those for which there is no room any more. Call
    /// [`ChangeLog::written`] with the outcome once the store has the batch.
    pub(crate) fn write(
        &self,
        record: &ChangeRecord,
        seal: &Seal,
        batch: &mut Batch,
    ) -> Result<Written, ChangeLogError> {
        let version = record.header.version;
        let key = row_key(version);
        let bytes = sealed(&key, &record.encode(), seal)?;
        batch.put(Tree::Catalog, &key, &bytes);
        let mut forgotten = 0;
        let (mut count, mut total) = (self.records.len() + 1, self.bytes + bytes.len());
        for (oldest, oldest_bytes) in &self.records {
            if count <= self.kept.changes_max && total <= self.kept.bytes_max {
                break;
            }
            batch.remove(Tree::Catalog, &row_key(*oldest));
            forgotten += 1;
            count -= 1;
            total -= oldest_bytes;
        }
        Ok(Written { version, bytes: bytes.len(), forgotten })
    }

    /// The store has it.
    pub(crate) fn written(&mut self, written: Written) {
        for (_, bytes) in self.records.drain(..written.forgotten.min(self.records.len())) {
            self.bytes -= bytes;
        }
        self.records.push_back((written.version, written.bytes));
        self.bytes += written.bytes;
    }

    /// Up to `limit` versions before `before`, or the newest, the newest first.
    pub(crate) fn versions(&self, before: Option<u64>, limit: usize) -> Vec<u64> {
        let versions = self.records.iter().rev().map(|(version, _)| *version);
        versions
            .filter(|version| before.is_none_or(|before| *version < before))
            .take(limit.min(LISTED_MAX))
            .collect()
    }

    /// Whether what was at `version` can be brought back: every later change is here.
    pub(crate) fn reaches(&self, version: u64) -> Result<(), ChangeLogError> {
        let (oldest, newest) = (self.oldest(), self.newest());
        if version <= newest && version + 1 >= oldest {
            return Ok(());
        }
        Err(ChangeLogError::NoSuchVersion { version, oldest: oldest.saturating_sub(1), newest })
    }

    /// Whether the change that made `version` is here.
    pub(crate) fn has(&self, version: u64) -> Result<(), ChangeLogError> {
        let (oldest, newest) = (self.oldest(), self.newest());
        if version > 0 && (oldest..=newest).contains(&version) {
            return Ok(());
        }
        Err(ChangeLogError::NoSuchVersion { version, oldest, newest })
    }
}

/// What a batch does to the log.
#[derive(Debug)]
pub(crate) struct Written {
    version: u64,
    bytes: usize,
    forgotten: usize,
}

/// The bytes of a record, as they are kept: enough for its header. Blocks.
pub(crate) fn read(store: &Store, version: u64) -> Result<Vec<u8>, ChangeLogError> {
    let row = store.get_blocking(Tree::Catalog, &row_key(version))?;
    row.ok_or_else(|| HistoryError::Damaged(format!("version {version} is missing")).into())
}

/// A whole record. Blocks.
pub(crate) fn read_whole(
    store: &Store,
    seal: &Seal,
    version: u64,
) -> Result<ChangeRecord, ChangeLogError> {
    let record = opened(&row_key(version), &read(store, version)?, seal)?;
    Ok(ChangeRecord::decode(&record)?)
}

/// Whether a record is as it would be written now.
pub(crate) fn is_current(record: &[u8], seal: &Seal) -> Result<bool, ChangeLogError> {
    let (is_sealed, entities) = ChangeRecord::entities_of(record)?;
    Ok(is_sealed && seal.is_current(entities))
}

/// A record whose entities, which hold secrets, are sealed.
pub(crate) fn sealed(key: &[u8], record: &[u8], seal: &Seal) -> Result<Vec<u8>, ChangeLogError> {
    let (_, entities) = ChangeRecord::entities_of(record)?;
    let entities = seal.seal(key, entities)?;
    Ok(ChangeRecord::with_entities(record, true, &entities)?)
}

/// A record with its entities opened; those of earlier releases were never sealed.
pub(crate) fn opened(key: &[u8], record: &[u8], seal: &Seal) -> Result<Vec<u8>, ChangeLogError> {
    match ChangeRecord::entities_of(record)? {
        (false, _) => Ok(record.to_vec()),
        (true, entities) => {
            let entities = seal.unseal(key, entities)?;
            Ok(ChangeRecord::with_entities(record, false, &entities)?)
        }
    }
}

fn row_key(version: u64) -> Vec<u8> {
    // Odd, so that no two versions share a key; its product spreads them.
    let scrambled = version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [KEY_PREFIX, format!("{scrambled:016x}").as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Action;

    fn record(version: u64) -> ChangeRecord {
        let header = ChangeHeader {
            version,
            time_ms: 0,
            author: "ada".to_owned(),
            comment: String::new(),
            action: Action::Apply,
            restored: None,
            added: 0,
            changed: 0,
            removed: 0,
        };
        ChangeRecord { header, entities: Vec::new() }
    }

    fn add(log: &mut ChangeLog) -> usize {
        let mut batch = Batch::new();
        let directory = tempfile::tempdir().unwrap();
        let seal = Seal::open(directory.path()).unwrap();
        seal.ensure().unwrap();
        let written = log.write(&record(log.newest() + 1), &seal, &mut batch).unwrap();
        log.written(written);
        batch.len()
    }

    #[test]
    fn the_oldest_are_forgotten_by_number() {
        let mut log = ChangeLog::load(Vec::new(), Kept { changes_max: 3, bytes_max: 1 << 20 });
        assert_eq!((log.newest(), add(&mut log), add(&mut log), add(&mut log)), (0, 1, 1, 1));
        assert_eq!(add(&mut log), 2, "one put, one removed");
        assert_eq!((log.oldest(), log.newest()), (2, 4));
        assert_eq!(log.versions(None, 2), [4, 3]);
        assert_eq!(log.versions(Some(4), 9), [3, 2]);
        assert!(log.reaches(1).is_ok() && log.reaches(4).is_ok());
        assert!(log.reaches(0).is_err() && log.reaches(5).is_err());
        assert!(log.has(1).is_err() && log.has(2).is_ok() && log.has(5).is_err());
        let error = log.reaches(0).unwrap_err().to_string();
        assert!(error.contains("it reaches from 1 to 4"), "{error}");
    }

    #[test]
    fn the_oldest_are_forgotten_by_size_but_never_the_newest() {
        let mut log = ChangeLog::load(Vec::new(), Kept { changes_max: 100, bytes_max: 1 });
        for version in 1..=5 {
            add(&mut log);
            assert_eq!((log.oldest(), log.newest()), (version, version));
        }
    }

    #[test]
    fn nothing_behind_a_gap_counts() {
        let kept = Kept { changes_max: 100, bytes_max: 1 << 20 };
        let log = ChangeLog::load(vec![(9, 1), (3, 1), (8, 1), (2, 1)], kept);
        assert_eq!((log.oldest(), log.newest()), (8, 9));
        assert_eq!(log.bytes, 2);
    }

    #[test]
    fn keys_are_unlike_each_other_and_no_entity() {
        let keys: std::collections::HashSet<_> = (0..10_000).map(row_key).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| ChangeLog::is_record(key)));
        assert!(!ChangeLog::is_record(b"tenant/change/x"));
    }
}
