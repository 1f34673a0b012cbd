//! Changes as the store keeps them: who did what when, and every entity before and after.
//!
//! A record is a version byte, the length and the JSON of its header, and its entities as deflated
//! JSON: a list of changes reads headers only. Of a sealed record the entities are sealed.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::EntityChange;

const RECORD_VERSION: u8 = 1;
/// A record whose entities were sealed by whoever keeps it.
const SEALED_VERSION: u8 = 2;
/// Version byte and length of the header.
const HEAD_BYTES: usize = 5;
/// Largest entities of one change, inflated.
const INFLATED_BYTES_MAX: u64 = 1 << 30;

/// Why the catalog changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The files of the settings, read at start.
    Start,
    /// The files of the settings, read again.
    Reload,
    /// Files that an operator applied.
    Apply,
    /// A new entity.
    Create,
    /// An entity replaced whole.
    Replace,
    /// Fields of an entity.
    Patch,
    /// An entity taken out.
    Delete,
    /// A tool shown.
    Publish,
    /// A tool hidden.
    Unpublish,
    /// An earlier version brought back.
    Rollback,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Start,
        Self::Reload,
        Self::Apply,
        Self::Create,
        Self::Replace,
        Self::Patch,
        Self::Delete,
        Self::Publish,
        Self::Unpublish,
        Self::Rollback,
    ];

    /// As operators read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Reload => "reload",
            Self::Apply => "apply",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Publish => "publish",
            Self::Unpublish => "unpublish",
            Self::Rollback => "rollback",
        }
    }
}

/// What a list of changes shows of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeHeader {
    /// The version of the catalog it made.
    pub version: u64,
    /// When, as Unix time in milliseconds.
    pub time_ms: u64,
    /// Who made it.
    pub author: String,
    /// Why, in the author's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// What was done.
    pub action: Action,
    /// The version that was brought back, by a rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<u64>,
    /// Entities added.
    pub added: usize,
    /// Entities changed.
    pub changed: usize,
    /// Entities removed.
    pub removed: usize,
}

/// A change with every entity it touched.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRecord {
    /// Who, when, why.
    pub header: ChangeHeader,
    /// What it did, in the order of kinds and keys.
    pub entities: Vec<EntityChange>,
}

/// A stored change that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HistoryError {
    /// Written by a newer release.
    #[error(
        "a stored change has format version {0}; this release reads up to version {SEALED_VERSION}: \
         start the release that wrote it"
    )]
    Version(u8),
    /// Not what this release writes.
    #[error("a stored change is damaged: {0}")]
    Damaged(String),
    /// Its entities are still sealed.
    #[error("a stored change is sealed")]
    Sealed,
}

impl ChangeRecord {
    /// The record's bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Writing to memory cannot fail, and there is nothing in it that JSON cannot hold.
        let header = serde_json::to_vec(&self.header).unwrap_or_default();
        let mut bytes = vec![RECORD_VERSION];
        bytes.extend_from_slice(&u32::try_from(header.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&header);
        let mut encoder = DeflateEncoder::new(bytes, Compression::fast());
        let entities = serde_json::to_vec(&self.entities).unwrap_or_default();
        let _ = encoder.write_all(&entities);
        encoder.finish().unwrap_or_default()
    }

    /// Reads a whole record.
    ///
    /// # Errors
    /// It is not one, or of a newer release.
    pub fn decode(bytes: &[u8]) -> Result<Self, HistoryError> {
        let (version, header, rest) = split(bytes)?;
        if version == SEALED_VERSION {
            return Err(HistoryError::Sealed);
        }
        let mut entities = Vec::new();
        let damaged = |error: &dyn ToString| HistoryError::Damaged(error.to_string());
        DeflateDecoder::new(rest)
            .take(INFLATED_BYTES_MAX)
            .read_to_end(&mut entities)
            .map_err(|error| damaged(&error))?;
        let entities = serde_json::from_slice(&entities).map_err(|error| damaged(&error))?;
        Ok(Self { header, entities })
    }

    /// Whether the entities of a record are sealed, and their bytes.
    ///
    /// # Errors
    /// It is not one, or of a newer release.
    pub fn entities_of(bytes: &[u8]) -> Result<(bool, &[u8]), HistoryError> {
        let (version, _, rest) = body(bytes)?;
        Ok((version == SEALED_VERSION, rest))
    }

    /// The same record with these bytes for its entities: sealed ones, or the opened ones.
    ///
    /// # Errors
    /// It is not one, or of a newer release.
    pub fn with_entities(
        bytes: &[u8],
        is_sealed: bool,
        entities: &[u8],
    ) -> Result<Vec<u8>, HistoryError> {
        let (_, _, rest) = body(bytes)?;
        let head = bytes.get(1..bytes.len() - rest.len()).unwrap_or_default();
        let version = if is_sealed { SEALED_VERSION } else { RECORD_VERSION };
        Ok([&[version], head, entities].concat())
    }
}

impl ChangeHeader {
    /// Reads the header of a record.
    ///
    /// # Errors
    /// It is not one, or of a newer release.
    pub fn decode(bytes: &[u8]) -> Result<Self, HistoryError> {
        split(bytes).map(|(_, header, _)| header)
    }
}

fn split(bytes: &[u8]) -> Result<(u8, ChangeHeader, &[u8]), HistoryError> {
    let (version, header, rest) = body(bytes)?;
    let header =
        serde_json::from_slice(header).map_err(|error| HistoryError::Damaged(error.to_string()))?;
    Ok((version, header, rest))
}

/// Version, header and entities, as bytes.
fn body(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), HistoryError> {
    let short = || HistoryError::Damaged("it is too short".to_owned());
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or_else(short)?;
    let [version, length @ ..] = *head;
    if !matches!(version, RECORD_VERSION | SEALED_VERSION) {
        return Err(HistoryError::Version(version));
    }
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| short())?;
    let (header, rest) = rest.split_at_checked(length).ok_or_else(short)?;
    Ok((version, header, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::catalog::{Entities, Kind, Origin};

    fn record() -> ChangeRecord {
        let (mut before, mut after) = (Entities::default(), Entities::default());
        let origin = Origin::new("a.toml", 3);
        before.put(Kind::Tenant, json!({ "id": "a" }), &origin).unwrap();
        after.put(Kind::Tenant, json!({ "id": "a", "title": "A" }), &origin).unwrap();
        after.put(Kind::Tenant, json!({ "id": "b" }), &origin).unwrap();
        let header = ChangeHeader {
            version: 7,
            time_ms: 1,
            author: "ada".to_owned(),
            comment: "why".to_owned(),
            action: Action::Apply,
            restored: None,
            added: 1,
            changed: 1,
            removed: 0,
        };
        ChangeRecord { header, entities: before.changes(&after) }
    }

    #[test]
    fn records_come_back_as_they_were() {
        let record = record();
        let bytes = record.encode();
        assert_eq!(ChangeRecord::decode(&bytes).unwrap(), record);
        assert_eq!(ChangeHeader::decode(&bytes).unwrap(), record.header);
        assert_eq!(record.entities.len(), 2);
    }

    #[test]
    fn newer_records_are_refused() {
        let mut bytes = record().encode();
        bytes[0] = 3;
        assert_eq!(ChangeRecord::decode(&bytes), Err(HistoryError::Version(3)));
    }

    #[test]
    fn sealed_entities_leave_the_header_to_be_read() {
        let record = record();
        let plain = record.encode();
        let (is_sealed, entities) = ChangeRecord::entities_of(&plain).unwrap();
        assert!(!is_sealed);
        let turned: Vec<u8> = entities.iter().map(|byte| !byte).collect();
        let sealed = ChangeRecord::with_entities(&plain, true, &turned).unwrap();
        assert_eq!(ChangeHeader::decode(&sealed).unwrap(), record.header);
        assert_eq!(ChangeRecord::decode(&sealed), Err(HistoryError::Sealed));
        assert_eq!(ChangeRecord::entities_of(&sealed).unwrap(), (true, &*turned));
        assert_eq!(ChangeRecord::with_entities(&sealed, false, entities).unwrap(), plain);
    }

    proptest! {
        #[test]
        fn damage_is_an_error_and_no_panic(cut in 0usize..200, at in 0usize..200, bit: u8) {
            let mut bytes = record().encode();
            bytes.truncate(cut);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= bit;
            }
            let _ = ChangeRecord::decode(&bytes);
        }
    }
}
