//! Catalog and keys as the cores see them, and the one way they change.
//!
//! A change is judged whole, written to the store, then published: cores notice a new version by
//! one atomic load. A change that is wrong, or that the store cannot keep, publishes nothing.
//! Everything here blocks and runs on a worker, never on a core.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use thiserror::Error;

use super::{
    change_log::{self, ChangeLog, ChangeLogError, Kept},
    time,
};
use crate::{
    catalog::{
        Action, ChangeHeader, ChangeRecord, Entities, EntityChange, EntityName, InvalidEntity,
        Problem, RowError, Snapshot,
    },
    identity::{KeyId, KeyRecord, KeyRecordError, KeyTable},
    settings::Settings,
    store::{Batch, Row, Store, StoreError, Tree},
};

/// What is published at one time. Immutable.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) version: u64,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) keys: Arc<KeyTable>,
}

/// Why a change was not made.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// The declarations are wrong; each problem names its file and line.
    #[error("{}", list(.0))]
    Problems(Vec<Problem>),
    /// Stored or sent rows cannot be read.
    #[error("{}", list(.0))]
    Rows(Vec<RowError>),
    /// A stored key cannot be read.
    #[error("a stored API key cannot be read: {0}")]
    Key(#[from] KeyRecordError),
    /// No key has this id.
    #[error("no key {0}; `ringway key list` shows those there are")]
    NoSuchKey(String),
    /// The key's client application is not in the catalog.
    #[error(
        "the catalog has no client application {tenant}/{client_application}; `ringway status` \
         lists those it has"
    )]
    NoSuchClientApplication {
        /// The tenant asked for.
        tenant: String,
        /// The client application asked for.
        client_application: String,
    },
    /// What was sent is no entity.
    #[error("{0}")]
    Invalid(#[from] InvalidEntity),
    /// Nothing has this name.
    #[error("there is no {0}")]
    NoSuchEntity(EntityName),
    /// Something has this name.
    #[error("{0} exists already: replace or patch it, or choose another name")]
    Exists(EntityName),
    /// Somebody else changed it meanwhile.
    #[error("{0}")]
    Conflict(String),
    /// It is not known whether somebody else changed it meanwhile.
    #[error(
        "{0} exists: send If-Match with the ETag you read it with, so that nobody's change is lost \
         (or If-Match: * to change it whatever it is)"
    )]
    Unconditional(EntityName),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Refused(String),
    /// The change log cannot tell.
    #[error("{0}")]
    Log(#[from] ChangeLogError),
    /// The store could not keep the change.
    #[error("the change could not be kept, so it was not made: {0}")]
    Store(#[from] StoreError),
}

fn list(problems: &[impl ToString]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
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
    current: ArcSwap<Published>,
    version: AtomicU64,
    /// The entities behind the current snapshot. Whoever reads them never waits for a change.
    entities: ArcSwap<Entities>,
    /// Held while a change is made.
    log: Mutex<ChangeLog>,
}

/// Rows read from the store at a time.
const SCAN_ROWS: usize = 1024;

impl Publication {
    /// Loads what the store has, lays `declared` over it, and keeps the result.
    pub(crate) fn load(
        store: &Store,
        settings: &Settings,
        declared: Entities,
        new_keys: Vec<KeyRecord>,
    ) -> Result<Self, ChangeError> {
        let (stored, mut log) = stored(store, settings)?;
        let mut entities = stored.clone();
        entities.overlay(declared);
        entities.unmask_secrets(&stored).map_err(ChangeError::Problems)?;
        let changes = stored.changes(&entities);
        let version = log.newest() + u64::from(!changes.is_empty());
        let snapshot = Snapshot::compile(&entities, version).map_err(ChangeError::Problems)?;
        let mut keys = KeyTable::default();
        for (_, record) in all_rows(store, Tree::Keys)? {
            keys.insert(KeyRecord::decode(&record)?);
        }
        let mut batch = Batch::new();
        let written = (!changes.is_empty()).then(|| {
            let record = record(Intent::own(Action::Start), version, None, changes);
            write(&record, &log, &mut batch)
        });
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
        Ok(Self {
            store: store.clone(),
            version: AtomicU64::new(published.version),
            current: ArcSwap::from_pointee(published),
            entities: ArcSwap::from_pointee(entities),
            log: Mutex::new(log),
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
        let mut log = self.log.lock();
        self.change_locked(&mut log, intent, None, edit)
    }

    /// Brings the catalog back to what it was at `version`, as a new change.
    pub(crate) fn rollback(
        &self,
        mut intent: Intent,
        version: u64,
    ) -> Result<Applied, ChangeError> {
        let mut log = self.log.lock();
        log.reaches(version)?;
        let mut later = Vec::new();
        for version in (version + 1..=log.newest()).rev() {
            let record = change_log::read(&self.store, version)?;
            later.push(ChangeRecord::decode(&record).map_err(ChangeLogError::from)?);
        }
        intent.action = Action::Rollback;
        self.change_locked(&mut log, intent, Some(version), |current| {
            let mut older = current.clone();
            for record in &later {
                older.undo(&record.entities)?;
            }
            Ok(older)
        })
    }

    fn change_locked(
        &self,
        log: &mut ChangeLog,
        intent: Intent,
        restored: Option<u64>,
        edit: impl FnOnce(&Entities) -> Result<Entities, ChangeError>,
    ) -> Result<Applied, ChangeError> {
        let (current, entities) = (self.current(), self.entities());
        let before = log.newest();
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
            return Ok(Applied { changes, version: before, before: None, entities });
        }
        let version = before + 1;
        let snapshot = Snapshot::compile(&newer, version).map_err(ChangeError::Problems)?;
        let newer = Arc::new(newer);
        if intent.dry_run {
            return Ok(Applied { changes, version: before, before: None, entities: newer });
        }
        let record = record(intent, version, restored, changes);
        let mut batch = Batch::new();
        let written = write(&record, log, &mut batch);
        self.store.write_blocking(batch)?;
        log.written(written);
        let ChangeHeader { action, author, .. } = &record.header;
        tracing::info!(version, action = action.as_str(), author, "catalog changed");
        self.entities.store(newer.clone());
        self.publish(Published {
            version: current.version + 1,
            snapshot: Arc::new(snapshot),
            keys: current.keys.clone(),
        });
        let before = Some(current.snapshot.clone());
        Ok(Applied { changes: record.entities, version, before, entities: newer })
    }

    /// Up to `limit` changes before the version `before`, or the newest, the newest first; and the
    /// oldest there is.
    pub(crate) fn history(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<ChangeHeader>, u64), ChangeLogError> {
        let (versions, oldest) = {
            let log = self.log.lock();
            (log.versions(before, limit), log.oldest())
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
        self.log.lock().has(version)?;
        Ok(ChangeRecord::decode(&change_log::read(&self.store, version)?)?)
    }

    /// Takes a new key in.
    pub(crate) fn add_key(&self, record: KeyRecord) -> Result<(), ChangeError> {
        let _changing = self.log.lock();
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
        let _changing = self.log.lock();
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
    /// The snapshot before, where there is a new one.
    pub(crate) before: Option<Arc<Snapshot>>,
    /// What the catalog consists of after it.
    pub(crate) entities: Arc<Entities>,
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
fn write(record: &ChangeRecord, log: &ChangeLog, batch: &mut Batch) -> change_log::Written {
    for change in &record.entities {
        match change.row() {
            (key, Some(value)) => batch.put(Tree::Catalog, &key, &value),
            (key, None) => batch.remove(Tree::Catalog, &key),
        }
    }
    log.write(record, batch)
}

/// What the store has of the catalog and its past.
fn stored(store: &Store, settings: &Settings) -> Result<(Entities, ChangeLog), ChangeError> {
    let (mut rows, mut records) = (Vec::new(), Vec::new());
    for_each_row(store, Tree::Catalog, |key, value| {
        if ChangeLog::is_record(&key) {
            let version = ChangeLog::version_of(&value).map_err(ChangeLogError::from)?;
            records.push((version, value.len()));
        } else {
            rows.push((key, value));
        }
        Ok::<_, ChangeError>(())
    })?;
    let runtime = &settings.runtime;
    let kept = Kept { changes_max: runtime.history_max, bytes_max: runtime.history_bytes_max };
    let entities = Entities::from_rows(rows).map_err(ChangeError::Rows)?;
    Ok((entities, ChangeLog::load(records, kept)))
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
