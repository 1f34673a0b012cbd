//! Catalog and keys as the cores see them, and the one way they change.
//!
//! A change is judged whole, written to the store, then published: cores notice a new version by
//! one atomic load. A change that is wrong, or that the store cannot keep, publishes nothing.
//! Everything here blocks and runs on a worker, never on a core.

mod change;
mod definitions;
mod rows;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use self::{
    change::{Source, record},
    rows::{Rows, Stored, keep_former, write},
};
use super::{
    change_error::ChangeError,
    change_log::{self, ChangeLog, ChangeLogError},
    declared::Declared,
    scan::all_rows,
    time,
};
use crate::{
    catalog::{
        Action, ChangeHeader, ChangeRecord, Entities, EntityChange, Grace, Problem, Snapshot,
        UpstreamDefinitions,
    },
    downstream::{self, Egress},
    identity::{KeyId, KeyRecord, KeyTable},
    settings::Settings,
    store::{Batch, Seal, Store, StoreError, Tree},
};

pub(crate) use self::change::{Applied, Intent};

/// What is published at one time. Immutable.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) version: u64,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) keys: Arc<KeyTable>,
}

/// The published state and its changes.
#[derive(Debug)]
pub(crate) struct Publication {
    store: Store,
    /// Over what the store has of secrets.
    seal: Seal,
    /// Whereto calls may go.
    egress: Egress,
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
    /// What the settings' files said when they were last read.
    declared: Declared,
}

impl Publication {
    /// Loads what the store has, lays over it what is news in `declared`, and keeps the result.
    /// `definitions` are those that were accepted before.
    pub(crate) fn load(
        store: &Store,
        seal: Seal,
        settings: &Settings,
        declared: Entities,
        new_keys: Vec<KeyRecord>,
        definitions: UpstreamDefinitions,
    ) -> Result<Self, ChangeError> {
        let Stored { entities: mut stored, former, mut log, former_rows, stale, declared: before } =
            Stored::read(store, &seal, settings)?;
        stored.definitions = definitions;
        // All that is sealed could be opened.
        seal.ensure()?;
        let grace = grace_of(settings);
        let restored = Snapshot::restore(&stored, log.newest(), &former, grace.now_ms);
        let mut compile = |declared: &Entities| {
            let mut entities = stored.clone();
            entities.overlay(declared.clone());
            entities.unmask_secrets(&stored).map_err(ChangeError::Problems)?;
            definitions::drop_orphans(&mut entities);
            let changes = stored.changes(&entities);
            let version = log.newest() + u64::from(!changes.is_empty());
            let snapshot = match &restored {
                Ok(restored) => Snapshot::recompile(restored, &entities, version, grace),
                // What was good for an older release; the files may mend it.
                Err(_) => Snapshot::restore(&entities, version, &former, grace.now_ms),
            };
            let snapshot = snapshot.map_err(ChangeError::Problems)?;
            Ok((entities, changes, version, snapshot))
        };
        let now = Declared::of(&declared);
        let news = before.news(&now, &declared, &stored);
        let (entities, changes, version, snapshot) = news_or_all(news, &declared, &mut compile)?;
        let mut keys = stored_keys(store)?;
        let mut batch = Batch::new();
        before.write(&now, &mut batch);
        let former_rows = keep_former(&snapshot, former_rows, &mut batch);
        let written = if changes.is_empty() {
            None
        } else {
            let record = record(Intent::own(Action::Start), version, None, changes);
            Some(write(&record, &log, &seal, &mut batch)?)
        };
        stale.reseal(store, &seal)?;
        take_in(new_keys, &mut keys, &mut batch);
        if !batch.is_empty() {
            store.write_blocking(batch)?;
        }
        if let Some(written) = written {
            log.written(written);
        }
        let published =
            Published { version: 1, snapshot: Arc::new(snapshot), keys: Arc::new(keys) };
        let egress = Egress::new(&settings.downstream.blocked_networks);
        warn(&downstream::foreseen_failures(&entities, &egress));
        Ok(Self {
            store: store.clone(),
            seal,
            egress,
            version: AtomicU64::new(published.version),
            current: ArcSwap::from_pointee(published),
            entities: ArcSwap::from_pointee(entities),
            past: Mutex::new(Past { log, former_rows, declared: now }),
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

    /// Lays over the catalog what is news in the settings' files, which declare `declared` now.
    pub(crate) fn reload(
        &self,
        intent: &Intent,
        declared: &Entities,
    ) -> Result<Applied, ChangeError> {
        let mut past = self.past.lock();
        let now = Declared::of(declared);
        let news = past.declared.news(&now, declared, &self.entities());
        news_or_all(news, declared, |declared| {
            let origin = Source::Files(now.clone());
            self.change_locked(&mut past, intent.clone(), origin, |current| {
                let mut newer = current.clone();
                newer.overlay(declared.clone());
                Ok(newer)
            })
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
        self.change_locked(&mut past, intent, Source::Operator, edit)
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
        self.change_locked(&mut past, intent, Source::Past(version), |current| {
            let mut older = current.clone();
            older.undo(replaced.into_values())?;
            if older.is_empty() && !current.is_empty() {
                return Err(ChangeError::Refused(format!(
                    "the catalog was empty at version {version}, and everything would go: name a \
                     later version, or delete what is to go"
                )));
            }
            Ok(older)
        })
    }

    fn change_locked(
        &self,
        past: &mut Past,
        intent: Intent,
        source: Source,
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
        definitions::drop_orphans(&mut newer);
        let changes = entities.changes(&newer);
        let mut batch = Batch::new();
        if let Source::Files(now) = &source {
            past.declared.write(now, &mut batch);
        }
        if changes.is_empty() {
            let mut entities = entities;
            if matches!(source, Source::Files(_)) {
                if !batch.is_empty() {
                    self.store.write_blocking(batch)?;
                }
                source.written(past);
                // Where each stands may be new.
                entities = Arc::new(newer);
                self.entities.store(entities.clone());
            }
            let remarks = current.snapshot.remarks().to_vec();
            return Ok(self.applied(changes, before, false, entities, remarks));
        }
        let version = before + 1;
        let grace = Grace { now_ms: time::now_ms(), callable_ms: self.tool_grace_ms };
        let snapshot = Snapshot::recompile(&current.snapshot, &newer, version, grace)
            .map_err(ChangeError::Problems)?;
        let newer = Arc::new(newer);
        let remarks = snapshot.remarks().to_vec();
        if intent.dry_run {
            return Ok(self.applied(changes, before, false, newer, remarks));
        }
        let record = record(intent, version, source.restored(), changes);
        let written = write(&record, &past.log, &self.seal, &mut batch)?;
        let former_rows = keep_former(&snapshot, past.former_rows.clone(), &mut batch);
        self.store.write_blocking(batch)?;
        past.log.written(written);
        past.former_rows = former_rows;
        source.written(past);
        let ChangeHeader { action, author, .. } = &record.header;
        tracing::info!(version, action = action.as_str(), author, "catalog changed");
        self.entities.store(newer.clone());
        self.publish(Published {
            version: current.version + 1,
            snapshot: Arc::new(snapshot),
            keys: current.keys.clone(),
        });
        Ok(self.applied(record.entities, version, true, newer, remarks))
    }

    fn applied(
        &self,
        changes: Vec<EntityChange>,
        version: u64,
        is_made: bool,
        entities: Arc<Entities>,
        remarks: Vec<Problem>,
    ) -> Applied {
        let foreseen = downstream::foreseen_failures(&entities, &self.egress);
        if is_made {
            warn(&foreseen);
        }
        let warnings = foreseen.iter().map(ToString::to_string).collect();
        Applied { changes, version, is_made, entities, warnings, remarks }
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

fn stored_keys(store: &Store) -> Result<KeyTable, ChangeError> {
    let mut keys = KeyTable::default();
    for (_, record) in all_rows(store, Tree::Keys)? {
        keys.insert(KeyRecord::decode(&record)?);
    }
    Ok(keys)
}

/// Adds keys to those there are. One that is known stays as it is: it may have been revoked.
fn take_in(new_keys: Vec<KeyRecord>, keys: &mut KeyTable, batch: &mut Batch) {
    for record in new_keys {
        if keys.find(record.id).is_none() {
            batch.put(Tree::Keys, record.id.as_bytes(), &record.encode());
            keys.insert(record);
        }
    }
}

/// Takes what is news in files. Where that cannot stand with what is there, because what it needs was
/// removed over the API, everything the files declare is taken.
fn news_or_all<T>(
    news: Entities,
    declared: &Entities,
    mut take: impl FnMut(&Entities) -> Result<T, ChangeError>,
) -> Result<T, ChangeError> {
    let left = declared.len() - news.len();
    match take(&news) {
        Err(ChangeError::Problems(_)) if left > 0 => take(declared),
        taken => {
            if left > 0 {
                tracing::info!(
                    left,
                    "entities that their files declare otherwise are left as they were changed \
                     since: `ringway apply` takes the files as they are"
                );
            }
            taken
        }
    }
}

fn warn(foreseen: &[Problem]) {
    for problem in foreseen {
        tracing::warn!("calls will fail: {problem}");
    }
}

fn grace_of(settings: &Settings) -> Grace {
    let callable_ms = settings.runtime.tool_grace_seconds.saturating_mul(1000);
    Grace { now_ms: time::now_ms(), callable_ms }
}

#[cfg(test)]
#[path = "publication_tests.rs"]
mod tests;
