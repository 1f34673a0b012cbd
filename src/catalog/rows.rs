//! Entities as the store keeps them.
//!
//! A row's key is the kind and the entity's key (`tool/acme/pets/list_pets`); its value is a
//! version byte and a JSON object with the entity and the place it was written at.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::entities::for_each_list;
use super::{Document, Entities, Entity, EntityChange, EntityName, Entry, Kind, Origin};

const ROW_VERSION: u8 = 1;

/// A key and a value for the store.
pub type Row = (Vec<u8>, Vec<u8>);

/// A stored entity that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RowError {
    /// Written by a newer release.
    #[error(
        "stored {name} has format version {found}; this release reads version {ROW_VERSION}: \
         start the release that wrote it"
    )]
    Version {
        /// The row's key.
        name: String,
        /// The version byte.
        found: u8,
    },
    /// Not what this release writes.
    #[error("stored {name} is damaged: {reason}: apply the catalog files again")]
    Damaged {
        /// The row's key.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Serialize)]
struct Written<'a, T> {
    file: &'a str,
    line: u32,
    entity: &'a T,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read<T> {
    file: String,
    line: u32,
    entity: T,
}

impl EntityName {
    /// The key of this entity's row.
    pub fn row_key(&self) -> Vec<u8> {
        format!("{}/{}", self.kind.as_str(), self.key).into_bytes()
    }
}

impl EntityChange {
    /// The row this change leaves: its key, and its value unless the entity was removed.
    pub fn row(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let value = self.after.as_ref().map(|after| {
            let mut value = vec![ROW_VERSION];
            // Writing to memory cannot fail, and there is nothing in it that JSON cannot hold.
            let _ = serde_json::to_writer(&mut value, after);
            value
        });
        (self.name().row_key(), value)
    }
}

impl Entities {
    /// The tag of each entity's content, by the key of its row: see [`Document::tag`].
    pub fn tags(&self) -> impl Iterator<Item = (Vec<u8>, String)> {
        fn all<T: Entity>(list: &[Entry<T>]) -> impl Iterator<Item = (Vec<u8>, String)> + '_ {
            list.iter().map(|entry| (entry.value.name().row_key(), Document::of(entry).tag()))
        }
        all(&self.tenants)
            .chain(all(&self.client_applications))
            .chain(all(&self.connections))
            .chain(all(&self.toolsets))
            .chain(all(&self.tools))
            .chain(all(&self.assignments))
    }

    /// Keeps those whose row's key is one that `keeps`.
    pub fn retain(&mut self, mut keeps: impl FnMut(&[u8]) -> bool) {
        for_each_list!(mut self, list => {
            list.retain(|entry| keeps(&entry.value.name().row_key()));
        });
    }

    /// All rows. Of two entities with one name the later one counts, as in [`Entities::overlay`].
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::with_capacity(self.len());
        for_each_list!(ref self, list => rows.extend(list.iter().map(row)));
        rows
    }

    /// Reads rows back.
    ///
    /// # Errors
    /// Every row that cannot be used.
    pub fn from_rows<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, Vec<RowError>> {
        let mut entities = Self::default();
        let mut files = Files::default();
        let mut errors = Vec::new();
        for (key, value) in rows {
            if let Err(error) = entities.add_row(key.as_ref(), value.as_ref(), &mut files) {
                errors.push(error);
            }
        }
        if errors.is_empty() { Ok(entities) } else { Err(errors) }
    }

    fn add_row(&mut self, key: &[u8], value: &[u8], files: &mut Files) -> Result<(), RowError> {
        let name = String::from_utf8_lossy(key).into_owned();
        let kind = name.split_once('/').and_then(|(kind, _)| Kind::parse(kind));
        match kind {
            Some(Kind::Tenant) => read(name, value, files, &mut self.tenants),
            Some(Kind::ClientApplication) => {
                read(name, value, files, &mut self.client_applications)
            }
            Some(Kind::Connection) => read(name, value, files, &mut self.connections),
            Some(Kind::Toolset) => read(name, value, files, &mut self.toolsets),
            Some(Kind::Tool) => read(name, value, files, &mut self.tools),
            Some(Kind::Assignment) => read(name, value, files, &mut self.assignments),
            None => Err(RowError::Damaged { name, reason: "no such kind of entity".to_owned() }),
        }
    }
}

fn row<T: Entity>(entry: &Entry<T>) -> Row {
    let file = entry.origin.file.to_string_lossy();
    let written = Written { file: &file, line: entry.origin.line, entity: &*entry.value };
    let mut value = vec![ROW_VERSION];
    // Writing to memory cannot fail, and the model has nothing that JSON cannot hold.
    let _ = serde_json::to_writer(&mut value, &written);
    (entry.value.name().row_key(), value)
}

fn read<T: Entity>(
    name: String,
    value: &[u8],
    files: &mut Files,
    into: &mut Vec<Entry<T>>,
) -> Result<(), RowError> {
    let damaged = |reason: &str| RowError::Damaged { name: name.clone(), reason: reason.into() };
    let (&found, json) = value.split_first().ok_or_else(|| damaged("it is empty"))?;
    if found != ROW_VERSION {
        return Err(RowError::Version { name, found });
    }
    let read: Read<T> =
        serde_json::from_slice(json).map_err(|error| damaged(&error.to_string()))?;
    if read.entity.name().row_key() != name.as_bytes() {
        return Err(damaged("it holds another entity"));
    }
    let origin = Origin { file: files.share(read.file), line: read.line };
    into.push(Entry::new(read.entity, origin));
    Ok(())
}

/// Thousands of entities come from one file: its name is kept once.
#[derive(Default)]
struct Files(HashMap<String, Arc<Path>>);

impl Files {
    fn share(&mut self, file: String) -> Arc<Path> {
        if let Some(known) = self.0.get(&file) {
            return Arc::clone(known);
        }
        let shared: Arc<Path> = Arc::from(Path::new(&file));
        self.0.insert(file, Arc::clone(&shared));
        shared
    }
}
