//! Catalog and keys as the cores see them, and the one way they change.
//!
//! A change is judged whole, written to the store, then published: cores notice a new version by
//! one atomic load. A change that is wrong, or that the store cannot keep, publishes nothing.
//! Everything here blocks and runs on a worker, never on a core.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::{
    change_error::ChangeError,
    change_log::{self, ChangeLog, ChangeLogError, Kept},
    sealing::{self, Stale},
    time,
};
use crate::{
    catalog::{
        Action, ChangeHeader, ChangeRecord, Entities, EntityChange, FormerTools, Grace, Snapshot,
    },
    downstream,
    identity::{KeyId, KeyRecord, KeyTable},
    settings::Settings,
    store::{Batch, Row, Seal, Store, StoreError, Tree},
};

/// What is published at one time. Immutable.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) version: u64,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) keys: Arc<KeyTable>,
}

/// Who changes the catalog, why, and on what condition.
#[derive(Debug, Clone)]
pub(crate) struct Intent {
    pub(crate) action: Action,
    pub(crate) author: String,
    pub(crate) comment: String,
    /// Only say what would change.
    pub(crate) dry_run: bool,
    /// The version the change was made for; any, where absent.
    pub(crate) expected: Option<u64>,
}

impl Intent {
    /// What this process does by itself.
    pub(crate) fn own(action: Action) -> Self {
        let author = "ringway".to_owned();
        Self { action, author, comment: String::new(), dry_run: false, expected: None }
    }
}

/// The published state and its changes.
#[derive(Debug)]
pub(crate) struct Publication {
    store: Store,
    /// Over what the store has of secrets.
    seal: Seal,
    current: ArcSwap<Published>,
    version: AtomicU64,
    /// The entities behind the current snapshot. Whoever reads them never waits for a change.
    entities: ArcSwap<Entities>,
    /// Held while a change is made.
    past: Mutex<Past>,
    /// How long a tool that went stays callable.
    tool_grace_ms: u64,
}

/// What is kept of how the catalog was.
#[derive(Debug)]
struct Past {
    log: ChangeLog,
    /// The rows of tools that went, as the store has them.
    former_rows: Rows,
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Rows read from the store at a time.
const SCAN_ROWS: usize = 1024;

impl Publication {
    /// Loads what the store has, lays `declared` over it, and keeps the result.
    pub(crate) fn load(
        store: &Store,
        seal: Seal,
        settings: &Settings,
        declared: Entities,
        new_keys: Vec<KeyRecord>,
    ) -> Result<Self, ChangeError> {
        let Stored { entities: stored, former, mut log, former_rows, stale } =
            Stored::read(store, &seal, settings)?;
        // All that is sealed could be opened.
        seal.ensure()?;
        let mut entities = stored.clone();
        entities.overlay(declared);
        entities.unmask_secrets(&stored).map_err(ChangeError::Problems)?;
        let changes = stored.changes(&entities);
        let version = log.newest() + u64::from(!changes.is_empty());
        let grace = grace_of(settings);
        let restored = Snapshot::restore(&stored, log.newest(), &former, grace.now_ms);
        let snapshot = match &restored {
            Ok(restored) => Snapshot::recompile(restored, &entities, version, grace),
            // What was good for an older release; the files may mend it.
            Err(_) => Snapshot::restore(&entities, version, &former, grace.now_ms),
        };
        let snapshot = snapshot.map_err(ChangeError::Problems)?;
        let mut keys = KeyTable::default();
        for (_, record) in all_rows(store, Tree::Keys)? {
            keys.insert(KeyRecord::decode(&record)?);
        }
        let mut batch = Batch::new();
        let former_rows = keep_former(&snapshot, former_rows, &mut batch);
        let written = if changes.is_empty() {
            None
        } else {
            let record = record(Intent::own(Action::Start), version, None, changes);
            Some(write(&record, &log, &seal, &mut batch)?)
        };
        stale.reseal(store, &seal)?;
        for record in new_keys {
            // A key that is known stays as it is: it may have been revoked.
            if keys.find(record.id).is_none() {
                batch.put(Tree::Keys, record.id.as_bytes(), &record.encode());
                keys.insert(record);
            }
        }
        if !batch.is_empty() {
            store.write_blocking(batch)?;
        }
        if let Some(written) = written {
            log.written(written);
        }
        let published =
            Published { version: 1, snapshot: Arc::new(snapshot), keys: Arc::new(keys) };
        warn_of_missing(&entities);
        Ok(Self {
            store: store.clone(),
            seal,
            version: AtomicU64::new(published.version),
            current: ArcSwap::from_pointee(published),
            entities: ArcSwap::from_pointee(entities),
            past: Mutex::new(Past { log, former_rows }),
            tool_grace_ms: grace.callable_ms,
        })
    }

    /// Counts everything that is published: the catalog's own version counts its changes only.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn current(&self) -> Arc<Published> {
        self.current.load_full()
    }

    /// What the catalog consists of now.
    pub(crate) fn entities(&self) -> Arc<Entities> {
        self.entities.load_full()
    }

    /// Lays `declared` over the catalog; with `prune`, also takes out what it does not name.
    pub(crate) fn apply(
        &self,
        intent: Intent,
        declared: Entities,
        prune: bool,
    ) -> Result<Applied, ChangeError> {
        if prune && declared.is_empty() {
            return Err(ChangeError::Refused(
                "the files declare nothing, and pruning would empty the whole catalog: check the \
                 paths"
                    .to_owned(),
            ));
        }
        self.change(intent, |current| {
            let mut newer = current.clone();
            if prune {
                newer.prune(&declared);
            }
            newer.overlay(declared);
            Ok(newer)
        })
    }

    /// Makes what `edit` makes of the catalog the catalog. One transaction: all of it is kept and
    /// published, with its place in the log, or nothing is.
    pub(crate) fn change(
        &self,
        intent: Intent,
        edit: impl FnOnce(&Entities) -> Result<Entities, ChangeError>,
    ) -> Result<Applied, ChangeError> {
        let mut past = self.past.lock();
        self.change_locked(&mut past, intent, None, edit)
    }

    /// Brings the catalog back to what it was at `version`, as a new change.
    pub(crate) fn rollback(
        &self,
        mut intent: Intent,
        version: u64,
    ) -> Result<Applied, ChangeError> {
        let mut past = self.past.lock();
        past.log.reaches(version)?;
        // Of each entity, what the first change since then replaced.
        let mut replaced = BTreeMap::new();
        for version in (version + 1..=past.log.newest()).rev() {
            let record = change_log::read_whole(&self.store, &self.seal, version)?;
            for change in record.entities {
                replaced.insert(change.name(), EntityChange { after: None, ..change });
            }
        }
        intent.action = Action::Rollback;
        self.change_locked(&mut past, intent, Some(version), |current| {
            let mut older = current.clone();
            older.undo(replaced.into_values())?;
            Ok(older)
        })
    }

    fn change_locked(
        &self,
        past: &mut Past,
        intent: Intent,
        restored: Option<u64>,
        edit: impl FnOnce(&Entities) -> Result<Entities, ChangeError>,
    ) -> Result<Applied, ChangeError> {
        let (current, entities) = (self.current(), self.entities());
        let before = past.log.newest();
        if let Some(expected) = intent.expected.filter(|expected| *expected != before) {
            return Err(ChangeError::Conflict(format!(
                "the catalog is at version {before}, and this change was made for version \
                 {expected}: look at it again"
            )));
        }
        let mut newer = edit(&entities)?;
        newer.unmask_secrets(&entities).map_err(ChangeError::Problems)?;
        let changes = entities.changes(&newer);
        if changes.is_empty() {
            return Ok(Applied::new(changes, before, false, entities));
        }
        let version = before + 1;
        let grace = Grace { now_ms: time::now_ms(), callable_ms: self.tool_grace_ms };
        let snapshot = Snapshot::recompile(&current.snapshot, &newer, version, grace)
            .map_err(ChangeError::Problems)?;
        let newer = Arc::new(newer);
        if intent.dry_run {
            return Ok(Applied::new(changes, before, false, newer));
        }
        let record = record(intent, version, restored, changes);
        let mut batch = Batch::new();
        let written = write(&record, &past.log, &self.seal, &mut batch)?;
        let former_rows = keep_former(&snapshot, past.former_rows.clone(), &mut batch);
        self.store.write_blocking(batch)?;
        past.log.written(written);
        past.former_rows = former_rows;
        let ChangeHeader { action, author, .. } = &record.header;
        tracing::info!(version, action = action.as_str(), author, "catalog changed");
        self.entities.store(newer.clone());
        self.publish(Published {
            version: current.version + 1,
            snapshot: Arc::new(snapshot),
            keys: current.keys.clone(),
        });
        Ok(Applied::new(record.entities, version, true, newer))
    }

    /// Up to `limit` changes before the version `before`, or the newest, the newest first; and the
    /// oldest there is.
    pub(crate) fn history(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<ChangeHeader>, u64), ChangeLogError> {
        let (versions, oldest) = {
            let past = self.past.lock();
            (past.log.versions(before, limit), past.log.oldest())
        };
        let mut headers = Vec::with_capacity(versions.len());
        for version in versions {
            let record = change_log::read(&self.store, version)?;
            headers.push(ChangeHeader::decode(&record)?);
        }
        Ok((headers, oldest))
    }

    /// The change that made a version.
    pub(crate) fn change_of(&self, version: u64) -> Result<ChangeRecord, ChangeLogError> {
        self.past.lock().log.has(version)?;
        change_log::read_whole(&self.store, &self.seal, version)
    }

    /// Takes a new key in.
    pub(crate) fn add_key(&self, record: KeyRecord) -> Result<(), ChangeError> {
        let _changing = self.past.lock();
        let current = self.current();
        let (tenant, client) = (record.tenant.as_str(), record.client_application.as_str());
        if current.snapshot.view(tenant, client).is_none() {
            return Err(ChangeError::NoSuchClientApplication {
                tenant: tenant.to_owned(),
                client_application: client.to_owned(),
            });
        }
        let mut keys = KeyTable::clone(&current.keys);
        self.keep_key(&record)?;
        keys.insert(record);
        self.publish_keys(&current, keys);
        Ok(())
    }

    /// Withdraws a key; requests with it are refused from the next one on.
    pub(crate) fn revoke_key(&self, id: &str, now_ms: u64) -> Result<(), ChangeError> {
        let _changing = self.past.lock();
        let current = self.current();
        let mut keys = KeyTable::clone(&current.keys);
        let missing = || ChangeError::NoSuchKey(id.chars().take(40).collect());
        let known = KeyId::parse(id).ok_or_else(missing)?;
        self.keep_key(keys.revoke(known, now_ms).ok_or_else(missing)?)?;
        self.publish_keys(&current, keys);
        Ok(())
    }

    fn keep_key(&self, record: &KeyRecord) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        batch.put(Tree::Keys, record.id.as_bytes(), &record.encode());
        self.store.write_blocking(batch)
    }

    fn publish_keys(&self, current: &Published, keys: KeyTable) {
        self.publish(Published {
            version: current.version + 1,
            snapshot: current.snapshot.clone(),
            keys: Arc::new(keys),
        });
    }

    fn publish(&self, published: Published) {
        let version = published.version;
        self.current.store(Arc::new(published));
        self.version.store(version, Ordering::Release);
    }
}

/// A change that was made, or would be.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) changes: Vec<EntityChange>,
    /// The version of the catalog: the new one where it changed.
    pub(crate) version: u64,
    /// Whether it was made: something differs, and it was not only asked what would.
    pub(crate) is_made: bool,
    /// What the catalog consists of after it.
    pub(crate) entities: Arc<Entities>,
    /// Secrets that are not where the catalog says: calls that need them fail.
    pub(crate) warnings: Vec<String>,
}

impl Applied {
    fn new(
        changes: Vec<EntityChange>,
        version: u64,
        is_made: bool,
        entities: Arc<Entities>,
    ) -> Self {
        let warnings = if is_made {
            warn_of_missing(&entities)
        } else {
            downstream::missing_secrets(&entities).iter().map(ToString::to_string).collect()
        };
        Self { changes, version, is_made, entities, warnings }
    }
}

/// Says in the log what is missing, and tells it.
fn warn_of_missing(entities: &Entities) -> Vec<String> {
    let missing = downstream::missing_secrets(entities);
    for problem in &missing {
        tracing::warn!("calls will fail: {problem}");
    }
    missing.iter().map(ToString::to_string).collect()
}

fn record(
    intent: Intent,
    version: u64,
    restored: Option<u64>,
    entities: Vec<EntityChange>,
) -> ChangeRecord {
    let count = |has_before, has_after| {
        let is_such = |change: &&EntityChange| {
            change.before.is_some() == has_before && change.after.is_some() == has_after
        };
        entities.iter().filter(is_such).count()
    };
    let header = ChangeHeader {
        version,
        time_ms: time::now_ms(),
        author: intent.author,
        comment: intent.comment,
        action: intent.action,
        restored,
        added: count(false, true),
        changed: count(true, true),
        removed: count(true, false),
    };
    ChangeRecord { header, entities }
}

/// The rows of a change: its entities, and its place in the log.
fn write(
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
fn keep_former(snapshot: &Snapshot, before: Rows, batch: &mut Batch) -> Rows {
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

fn grace_of(settings: &Settings) -> Grace {
    let callable_ms = settings.runtime.tool_grace_seconds.saturating_mul(1000);
    Grace { now_ms: time::now_ms(), callable_ms }
}

/// What the store has of the catalog and its past.
struct Stored {
    entities: Entities,
    former: FormerTools,
    log: ChangeLog,
    former_rows: Rows,
    stale: Stale,
}

impl Stored {
    fn read(store: &Store, seal: &Seal, settings: &Settings) -> Result<Self, ChangeError> {
        let (mut rows, mut former_rows, mut records) = (Vec::new(), Rows::new(), Vec::new());
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
            stale,
        })
    }
}

/// Every row of a tree.
pub(crate) fn all_rows(store: &Store, tree: Tree) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for_each_row(store, tree, |key, value| {
        rows.push((key, value));
        Ok::<_, StoreError>(())
    })?;
    Ok(rows)
}

/// Visits every row of a tree, a bounded number of them in memory at a time.
pub(crate) fn for_each_row<E: From<StoreError>>(
    store: &Store,
    tree: Tree,
    mut visit: impl FnMut(Vec<u8>, Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let rows = store.scan_blocking(tree, after.as_deref(), SCAN_ROWS)?;
        if rows.len() < SCAN_ROWS {
            return rows.into_iter().try_for_each(|(key, value)| visit(key, value));
        }
        after = rows.last().map(|(key, _)| key.clone());
        rows.into_iter().try_for_each(|(key, value)| visit(key, value))?;
    }
}

#[cfg(test)]
#[path = "publication_tests.rs"]
mod tests;
