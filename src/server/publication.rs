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

use crate::{
    catalog::{Difference, Entities, Problem, RowError, Snapshot},
    identity::{KeyId, KeyRecord, KeyRecordError, KeyTable},
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
    /// The store could not keep the change.
    #[error("the change could not be kept, so it was not made: {0}")]
    Store(#[from] StoreError),
}

fn list(problems: &[impl ToString]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The published state and its changes.
#[derive(Debug)]
pub(crate) struct Publication {
    store: Store,
    current: ArcSwap<Published>,
    version: AtomicU64,
    /// The entities behind the current snapshot; held while a change is made.
    entities: Mutex<Entities>,
}

/// Rows read from the store at a time.
const SCAN_ROWS: usize = 1024;

impl Publication {
    /// The entities behind the current snapshot. Waits for a change that is being made.
    pub(crate) fn entities(&self) -> Arc<Entities> {
        Arc::new(self.entities.lock().clone())
    }

    /// Loads what the store has, lays `declared` over it, and keeps the result.
    pub(crate) fn load(
        store: &Store,
        declared: Entities,
        new_keys: Vec<KeyRecord>,
    ) -> Result<Self, ChangeError> {
        let stored =
            Entities::from_rows(all_rows(store, Tree::Catalog)?).map_err(ChangeError::Rows)?;
        let mut entities = stored.clone();
        entities.overlay(declared);
        let snapshot = Snapshot::compile(&entities, 1).map_err(ChangeError::Problems)?;
        let mut keys = KeyTable::default();
        for (_, record) in all_rows(store, Tree::Keys)? {
            keys.insert(KeyRecord::decode(&record)?);
        }
        let mut batch = changes(&entities, &stored.difference(&entities));
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
        let published =
            Published { version: 1, snapshot: Arc::new(snapshot), keys: Arc::new(keys) };
        Ok(Self {
            store: store.clone(),
            version: AtomicU64::new(published.version),
            current: ArcSwap::from_pointee(published),
            entities: Mutex::new(entities),
        })
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn current(&self) -> Arc<Published> {
        self.current.load_full()
    }

    /// Lays `declared` over the catalog. With `dry_run` only says what would change.
    pub(crate) fn apply(&self, declared: Entities, dry_run: bool) -> Result<Applied, ChangeError> {
        let mut entities = self.entities.lock();
        let current = self.current();
        let mut newer = entities.clone();
        newer.overlay(declared);
        let version = current.version + 1;
        let snapshot = Snapshot::compile(&newer, version).map_err(ChangeError::Problems)?;
        let difference = entities.difference(&newer);
        if dry_run || difference.is_empty() {
            return Ok(Applied { difference, version: current.version, before: None });
        }
        self.store.write_blocking(changes(&newer, &difference))?;
        *entities = newer;
        self.publish(Published {
            version,
            snapshot: Arc::new(snapshot),
            keys: current.keys.clone(),
        });
        let before = Some(current.snapshot.clone());
        Ok(Applied { difference, version, before })
    }

    /// Takes a new key in.
    pub(crate) fn add_key(&self, record: KeyRecord) -> Result<(), ChangeError> {
        let _changing = self.entities.lock();
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
        let _changing = self.entities.lock();
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
    pub(crate) difference: Difference,
    pub(crate) version: u64,
    /// The snapshot before, where there is a new one.
    pub(crate) before: Option<Arc<Snapshot>>,
}

/// The rows that make the store what `new` is.
fn changes(new: &Entities, difference: &Difference) -> Batch {
    let mut batch = Batch::new();
    let keys: std::collections::HashSet<Vec<u8>> = difference
        .added
        .iter()
        .chain(&difference.changed)
        .map(crate::catalog::EntityName::row_key)
        .collect();
    for (key, value) in new.rows() {
        if keys.contains(&key) {
            batch.put(Tree::Catalog, &key, &value);
        }
    }
    for name in &difference.removed {
        batch.remove(Tree::Catalog, &name.row_key());
    }
    batch
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
