//! The catalog and its past as rows of the store.

use std::collections::BTreeMap;

use crate::{
    catalog::{ChangeRecord, Entities, FormerTools, Snapshot},
    server::{
        change_error::ChangeError,
        change_log::{self, ChangeLog, ChangeLogError, Kept},
        declared::Declared,
        scan::for_each_row,
        sealing::{self, Stale},
    },
    settings::Settings,
    store::{Batch, Seal, Store, Tree},
};

pub(super) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the store has of the catalog and its past.
pub(super) struct Stored {
    pub(super) entities: Entities,
    pub(super) former: FormerTools,
    pub(super) log: ChangeLog,
    pub(super) former_rows: Rows,
    pub(super) declared: Declared,
    pub(super) stale: Stale,
}

impl Stored {
    pub(super) fn read(
        store: &Store,
        seal: &Seal,
        settings: &Settings,
    ) -> Result<Self, ChangeError> {
        let (mut rows, mut former_rows, mut records) = (Vec::new(), Rows::new(), Vec::new());
        let mut declared = Declared::default();
        let mut stale = Stale::default();
        for_each_row(store, Tree::Catalog, |key, value| {
            if ChangeLog::is_record(&key) {
                let version = ChangeLog::version_of(&value).map_err(ChangeLogError::from)?;
                records.push((version, value.len()));
                if !change_log::is_current(&value, seal)? {
                    stale.records.push(key);
                }
            } else if FormerTools::is_row(&key) {
                former_rows.insert(key, value);
            } else if Declared::is_row(&key) {
                declared.add(&key, value);
            } else {
                let (value, is_stale) = sealing::opened(&key, value, seal)?;
                if is_stale {
                    stale.rows.push((key.clone(), value.clone()));
                }
                rows.push((key, value));
            }
            Ok::<_, ChangeError>(())
        })?;
        let runtime = &settings.runtime;
        let kept = Kept { changes_max: runtime.history_max, bytes_max: runtime.history_bytes_max };
        Ok(Self {
            entities: Entities::from_rows(rows).map_err(ChangeError::Rows)?,
            former: FormerTools::from_rows(&former_rows).map_err(ChangeError::Rows)?,
            log: ChangeLog::load(records, kept),
            former_rows,
            declared,
            stale,
        })
    }
}

/// The rows of a change: its entities, and its place in the log.
pub(super) fn write(
    record: &ChangeRecord,
    log: &ChangeLog,
    seal: &Seal,
    batch: &mut Batch,
) -> Result<change_log::Written, ChangeError> {
    for change in &record.entities {
        match change.row() {
            (key, Some(plain)) => {
                batch.put(Tree::Catalog, &key, &sealing::sealed(&key, plain, seal)?);
            }
            (key, None) => batch.remove(Tree::Catalog, &key),
        }
    }
    Ok(log.write(record, seal, batch)?)
}

/// The changes that make the store's rows of tools that went those of `snapshot`.
pub(super) fn keep_former(snapshot: &Snapshot, before: Rows, batch: &mut Batch) -> Rows {
    let rows: Rows = snapshot.deprecated_rows().into_iter().collect();
    for (key, value) in &rows {
        if before.get(key) != Some(value) {
            batch.put(Tree::Catalog, key, value);
        }
    }
    for key in before.keys().filter(|key| !rows.contains_key(*key)) {
        batch.remove(Tree::Catalog, key);
    }
    rows
}
