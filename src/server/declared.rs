//! What the catalog files of the settings said when they were last read.
//!
//! A declaration counts when it is news: when a file says something else of an entity than it said
//! before, or says something of it for the first time. What was changed or removed since over the
//! admin API stays so while its file stays as it is, also over restarts; who changes the file, or
//! applies it, decides anew.
//!
//! Of each declared entity the store has a row with the tag of its content, in the catalog's own tree:
//! rows of one tree are found all or not at all after a crash.

use std::collections::BTreeMap;

use crate::{
    catalog::Entities,
    store::{Batch, Tree},
};

/// Begins the key of every row; no kind of entity has this name.
const KEY_PREFIX: &[u8] = b"declared/";

/// The tags of declared entities, by the keys of their rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Declared(BTreeMap<Vec<u8>, Vec<u8>>);

impl Declared {
    /// Whether a row of the catalog's tree is one of these.
    pub(crate) fn is_row(key: &[u8]) -> bool {
        key.starts_with(KEY_PREFIX)
    }

    /// Takes in a row that [`Declared::is_row`] names.
    pub(crate) fn add(&mut self, key: &[u8], value: Vec<u8>) {
        if let Some(key) = key.strip_prefix(KEY_PREFIX) {
            self.0.insert(key.to_vec(), value);
        }
    }

    /// What files declare now.
    pub(crate) fn of(entities: &Entities) -> Self {
        Self(entities.tags().map(|(key, tag)| (key, tag.into_bytes())).collect())
    }

    /// What of `entities` is to be laid over `current`: what is news since `self`, and what is there
    /// as it is declared, so that it is known where that stands now. `now` is what they declare.
    pub(crate) fn news(&self, now: &Self, entities: &Entities, current: &Entities) -> Entities {
        let current = Self::of(current);
        let mut news = entities.clone();
        news.retain(|key| {
            let tag = now.0.get(key);
            self.0.get(key) != tag || current.0.get(key) == tag
        });
        news
    }

    /// The changes that make the store's rows those of `now`.
    pub(crate) fn write(&self, now: &Self, batch: &mut Batch) {
        let row_key = |key: &[u8]| [KEY_PREFIX, key].concat();
        for (key, tag) in now.0.iter().filter(|(key, tag)| self.0.get(*key) != Some(*tag)) {
            batch.put(Tree::Catalog, &row_key(key), tag);
        }
        for key in self.0.keys().filter(|key| !now.0.contains_key(*key)) {
            batch.remove(Tree::Catalog, &row_key(key));
        }
    }
}
