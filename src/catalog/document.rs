//! Entities of any kind by name: as JSON, found, listed, put and removed.
//!
//! What the store, the change log and the admin interface hold of an entity is a [`Document`]: the
//! entity as JSON, and the place it was written at.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::entities::{for_each_list, with_list};
use super::secrets;
use super::{Entities, Entity, EntityChange, EntityName, Entry, Kind, Origin};

/// An entity as JSON and the place it was written at.
///
/// Holds secrets as they are; [`Document::masked`] is for whoever asks.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) entity: Value,
}

/// JSON that is no entity of the kind it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {reason}", .kind.as_str().replace('_', " "))]
pub struct InvalidEntity {
    /// What it should be.
    pub kind: Kind,
    /// What is wrong with it.
    pub reason: String,
}

impl Document {
    pub(super) fn of<T: Entity>(entry: &Entry<T>) -> Self {
        Self {
            file: entry.origin.file.to_string_lossy().into_owned(),
            line: entry.origin.line,
            // The model has nothing that JSON cannot hold.
            entity: serde_json::to_value(&*entry.value).unwrap_or_default(),
        }
    }

    /// The entity, secrets and all.
    pub fn entity(&self) -> &Value {
        &self.entity
    }

    /// The entity with [`MASK`](super::MASK) in place of its secrets.
    pub fn masked(&self, kind: Kind) -> Value {
        let mut entity = self.entity.clone();
        secrets::mask(kind, &mut entity);
        entity
    }

    /// Where it was written.
    pub fn origin(&self) -> Origin {
        Origin::new(Path::new(&self.file), self.line)
    }

    /// Names the content, secrets included: the same for the same content, whatever the order in
    /// which it was written. For `ETag`, without quotes.
    pub fn tag(&self) -> String {
        // Maps of `Value` are in the order of their keys.
        let content = serde_json::to_vec(&self.entity).unwrap_or_default();
        let hash = digest::digest(&digest::SHA256, &content);
        let head = hash.as_ref().first_chunk().copied().unwrap_or_default();
        format!("{:032x}", u128::from_be_bytes(head))
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({})", self.origin())
    }
}

impl Entities {
    /// The entity of that name.
    pub fn document(&self, name: &EntityName) -> Option<Document> {
        with_list!(name.kind, ref self, list => {
            list.iter().find(|entry| entry.value.key() == name.key).map(Document::of)
        })
    }

    /// Up to `limit` entities of a kind behind the key `after`, of one tenant or of all, in the
    /// order of their keys; and whether there are more.
    pub fn documents(
        &self,
        kind: Kind,
        tenant: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> (Vec<(EntityName, Document)>, bool) {
        let is_wanted = |key: &str| {
            tenant.is_none_or(|tenant| key.split('/').next() == Some(tenant))
                && after.is_none_or(|after| key > after)
        };
        with_list!(kind, ref self, list => {
            let keys = list.iter().enumerate().map(|(place, entry)| (entry.value.key(), place));
            let mut keys: Vec<_> = keys.filter(|(key, _)| is_wanted(key)).collect();
            keys.sort_unstable();
            let has_more = keys.len() > limit;
            let page = keys.into_iter().take(limit).filter_map(|(key, place)| {
                Some((EntityName { kind, key }, Document::of(list.get(place)?)))
            });
            (page.collect(), has_more)
        })
    }

    /// Puts an entity in, in the place of the one with its name where there is one.
    ///
    /// # Errors
    /// `entity` is not one of that kind; nothing is changed then.
    pub fn put(
        &mut self,
        kind: Kind,
        entity: Value,
        origin: &Origin,
    ) -> Result<EntityName, InvalidEntity> {
        with_list!(kind, mut self, list => put(list, kind, entity, origin))
    }

    /// Takes an entity out; tells whether it was there.
    pub fn remove(&mut self, name: &EntityName) -> bool {
        with_list!(name.kind, mut self, list => {
            let before = list.len();
            list.retain(|entry| entry.value.key() != name.key);
            list.len() < before
        })
    }

    /// Takes out everything that `declared` does not name.
    pub fn prune(&mut self, declared: &Self) {
        let mut names = HashSet::new();
        for_each_list!(ref declared, list => {
            names.extend(list.iter().map(|entry| entry.value.name()));
        });
        for_each_list!(mut self, list => {
            list.retain(|entry| names.contains(&entry.value.name()));
        });
    }

    /// Puts back what each of `changes`, no two of one entity, replaced.
    ///
    /// # Errors
    /// What was replaced is no entity for this release.
    pub fn undo(
        &mut self,
        changes: impl IntoIterator<Item = EntityChange>,
    ) -> Result<(), InvalidEntity> {
        let (mut older, mut added) = (Self::default(), HashSet::new());
        for EntityChange { kind, key, before, .. } in changes {
            match before {
                Some(before) => with_list!(kind, mut older, list => {
                    let origin = before.origin();
                    list.push(Entry::new(read(kind, before.entity)?, origin));
                }),
                None => {
                    added.insert(EntityName { kind, key });
                }
            }
        }
        for_each_list!(mut self, list => {
            list.retain(|entry| !added.contains(&entry.value.name()));
        });
        self.overlay(older);
        Ok(())
    }
}

fn read<T: Entity>(kind: Kind, entity: Value) -> Result<T, InvalidEntity> {
    serde_json::from_value(entity).map_err(|error| {
        let reason = error.to_string();
        // Without the names that types have in the program.
        let reason = match reason.split_once(", expected struct ") {
            Some((found, _)) => format!("{found}, expected an object"),
            None => reason,
        };
        InvalidEntity { kind, reason }
    })
}

fn put<T: Entity>(
    list: &mut Vec<Entry<T>>,
    kind: Kind,
    entity: Value,
    origin: &Origin,
) -> Result<EntityName, InvalidEntity> {
    let value: T = read(kind, entity)?;
    let name = value.name();
    let entry = Entry::new(value, origin.clone());
    match list.iter_mut().find(|entry| entry.value.key() == name.key) {
        Some(slot) if slot.value == entry.value => {}
        Some(slot) => *slot = entry,
        None => list.push(entry),
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn origin() -> Origin {
        Origin::new("test", 0)
    }

    fn tenant(id: &str) -> Value {
        json!({ "id": id })
    }

    fn name(kind: Kind, key: &str) -> EntityName {
        EntityName { kind, key: key.to_owned() }
    }

    #[test]
    fn entities_are_put_found_and_removed_by_name() {
        let mut entities = Entities::default();
        let put = entities.put(Kind::Tenant, tenant("acme"), &origin()).unwrap();
        assert_eq!(put, name(Kind::Tenant, "acme"));
        let found = entities.document(&put).unwrap();
        assert_eq!(found.entity(), &tenant("acme"));
        let titled = json!({ "id": "acme", "title": "Acme" });
        entities.put(Kind::Tenant, titled, &origin()).unwrap();
        assert_eq!(entities.len(), 1);
        assert_ne!(entities.document(&put).unwrap().tag(), found.tag());
        assert!(entities.remove(&put));
        assert!(!entities.remove(&put));
        assert!(entities.is_empty());
    }

    #[test]
    fn what_should_be_an_object_is_called_one() {
        let connection = json!({ "tenant": "a", "id": "b", "base_url": "http://c", "retries": 3 });
        let refused = Entities::default().put(Kind::Connection, connection, &origin());
        let told = refused.unwrap_err().to_string();
        assert_eq!(told, "connection: invalid type: integer `3`, expected an object");
    }

    #[test]
    fn what_is_no_entity_is_refused_with_its_kind() {
        let mut entities = Entities::default();
        let error = entities.put(Kind::Tenant, json!({ "id": "acme", "x": 1 }), &origin());
        assert!(error.unwrap_err().to_string().starts_with("tenant: unknown field `x`"));
        let error = entities.put(Kind::ClientApplication, json!([]), &origin()).unwrap_err();
        assert!(error.to_string().starts_with("client application: "), "{error}");
        assert!(entities.is_empty());
    }

    #[test]
    fn pages_are_in_order_and_end() {
        let mut entities = Entities::default();
        for id in ["c", "a", "d", "b"] {
            entities.put(Kind::Tenant, tenant(id), &origin()).unwrap();
            for toolset in ["y", "x"] {
                let content = json!({ "tenant": id, "id": toolset, "kind": "builtin" });
                entities.put(Kind::Toolset, content, &origin()).unwrap();
            }
        }
        let keys = |(page, more): (Vec<(EntityName, Document)>, bool)| {
            (page.into_iter().map(|(name, _)| name.key).collect::<Vec<_>>(), more)
        };
        let page = keys(entities.documents(Kind::Tenant, None, None, 3));
        assert_eq!(page, (vec!["a".into(), "b".into(), "c".into()], true));
        let page = keys(entities.documents(Kind::Tenant, None, Some("c"), 3));
        assert_eq!(page, (vec!["d".into()], false));
        let page = keys(entities.documents(Kind::Toolset, Some("b"), None, 10));
        assert_eq!(page, (vec!["b/x".into(), "b/y".into()], false));
    }

    #[test]
    fn pruning_keeps_what_is_declared() {
        let mut entities = Entities::default();
        for id in ["a", "b"] {
            entities.put(Kind::Tenant, tenant(id), &origin()).unwrap();
        }
        let mut declared = Entities::default();
        declared.put(Kind::Tenant, tenant("b"), &origin()).unwrap();
        entities.prune(&declared);
        assert!(entities.difference(&declared).is_empty());
    }

    #[test]
    fn debug_shows_no_content() {
        let mut entities = Entities::default();
        let content = json!({ "tenant": "a", "id": "api", "base_url": "http://h",
            "headers": { "Authorization": "Bearer hidden" } });
        let put = entities.put(Kind::Connection, content, &origin()).unwrap();
        let document = entities.document(&put).unwrap();
        assert!(!format!("{document:?}{entities:?}").contains("hidden"));
        assert_eq!(document.masked(Kind::Connection)["headers"]["Authorization"], "***");
    }
}
