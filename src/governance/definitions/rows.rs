//! The book as rows of a store: one for the server, one for each definition. A value begins with the
//! version of its layout; JSON follows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::book::{Accepted, Book, Entry, Offer, Subject, Verdict, Withheld};
use super::hash::{hash_text, parse_hash};
use crate::catalog::{Definition, DefinitionKind, UpstreamEra};
use crate::json::OwnedRaw;

const ROW_VERSION: u8 = 1;
/// The key of the row of the server itself.
const SERVER_KEY: &str = "server";

/// A row that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BookRowError {
    /// Written by a newer release.
    #[error(
        "format version {found}; this release reads version {ROW_VERSION}: start the release that \
         wrote it"
    )]
    Version {
        /// The version byte.
        found: u8,
    },
    /// Not what this release writes.
    #[error("damaged: {0}")]
    Damaged(String),
}

/// Whether a server answers. Times are Unix times in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// It did when it was last asked.
    #[default]
    Up,
    /// It has not since then; what was accepted is still shown.
    Stale {
        /// Since when.
        since_ms: u64,
    },
    /// It has not for longer than its grace time: nothing of it is shown.
    Dropped {
        /// Since when it does not answer.
        since_ms: u64,
    },
}

impl Reach {
    /// Since when it does not answer.
    pub const fn down_since_ms(self) -> Option<u64> {
        match self {
            Self::Up => None,
            Self::Stale { since_ms } | Self::Dropped { since_ms } => Some(since_ms),
        }
    }

    /// What one failure more makes of it.
    #[must_use]
    pub const fn failed(self, now_ms: u64, grace_ms: u64) -> Self {
        let since_ms = match self {
            Self::Up => now_ms,
            Self::Stale { since_ms } => since_ms,
            Self::Dropped { .. } => return self,
        };
        if now_ms.saturating_sub(since_ms) >= grace_ms {
            Self::Dropped { since_ms }
        } else {
            Self::Stale { since_ms }
        }
    }
}

/// What is known of a server itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerRecord {
    /// A list of it was taken in: what comes is not the first one.
    pub has_list: bool,
    /// Its era.
    pub era: UpstreamEra,
    /// It completes arguments.
    pub completes: bool,
    /// Its resources can be subscribed to.
    pub subscribes: bool,
    /// The revision spoken with it.
    pub revision: Option<Box<str>>,
    /// What it calls itself.
    pub server_name: Option<Box<str>>,
    /// The version it says it has.
    pub server_version: Option<Box<str>>,
    /// Whether it answers.
    pub reach: Reach,
    /// When its list last was another one than before, Unix time in milliseconds.
    pub changed_ms: u64,
}

impl ServerRecord {
    /// It was heard of.
    pub(super) fn take(&mut self, offer: Offer, now_ms: u64, is_changed: bool) {
        let Offer { era, completes, subscribes, revision, server_name, server_version, .. } = offer;
        let is_changed = is_changed || !self.has_list;
        let changed_ms = if is_changed { now_ms } else { self.changed_ms };
        *self = Self {
            has_list: true,
            era,
            completes,
            subscribes,
            revision,
            server_name,
            server_version,
            reach: Reach::Up,
            changed_ms,
        };
    }
}

/// A row: its key, and its value, or that there is none any more.
pub type BookRow = (Vec<u8>, Option<Vec<u8>>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefinitionRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<AcceptedRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    withheld: Option<WithheldRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone_since_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedRow {
    json: String,
    hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<VerdictRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WithheldRow {
    json: String,
    hash: String,
    since_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<VerdictRow>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_ambiguous: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VerdictRow {
    by: Box<str>,
    at_ms: u64,
}

impl Book {
    /// The rows that differ from those of `before`.
    pub fn rows_since(&self, before: &Self) -> Vec<BookRow> {
        let mut rows = Vec::new();
        if self.server != before.server {
            rows.push((SERVER_KEY.into(), Some(encoded(&self.server))));
        }
        for (subject, entry) in &self.entries {
            if before.entries.get(subject) != Some(entry) {
                rows.push((key(subject), Some(encoded(&row(entry)))));
            }
        }
        for subject in before.entries.keys() {
            if !self.entries.contains_key(subject) {
                rows.push((key(subject), None));
            }
        }
        rows
    }

    /// The keys of all its rows.
    pub fn row_keys(&self) -> Vec<Vec<u8>> {
        let own = std::iter::once(SERVER_KEY.into());
        own.chain(self.entries.keys().map(key)).collect()
    }

    /// Takes in a row that [`Self::rows_since`] wrote.
    ///
    /// # Errors
    /// This release did not write it, or it is damaged.
    pub fn add_row(&mut self, key: &[u8], value: &[u8]) -> Result<(), BookRowError> {
        let json = match value {
            [ROW_VERSION, json @ ..] => json,
            [found, ..] => return Err(BookRowError::Version { found: *found }),
            [] => return Err(BookRowError::Damaged("it is empty".to_owned())),
        };
        let key = std::str::from_utf8(key).map_err(damaged)?;
        if key == SERVER_KEY {
            self.server = serde_json::from_slice(json).map_err(damaged)?;
            return Ok(());
        }
        let (kind, name) = key.split_once('/').unwrap_or((key, ""));
        let subject = Subject::parse(kind, name).ok_or_else(|| damaged("its key is unknown"))?;
        let entry = entry(&subject, serde_json::from_slice(json).map_err(damaged)?)?;
        self.entries.insert(subject, entry);
        Ok(())
    }
}

fn damaged(reason: impl ToString) -> BookRowError {
    BookRowError::Damaged(reason.to_string())
}

fn key(subject: &Subject) -> Vec<u8> {
    format!("{}/{}", subject.kind(), subject.name()).into_bytes()
}

fn encoded(row: &impl Serialize) -> Vec<u8> {
    let mut value = vec![ROW_VERSION];
    // Texts, numbers and options only, with texts for keys: nothing in it can fail.
    let _ = serde_json::to_writer(&mut value, row);
    value
}

fn row(entry: &Entry) -> DefinitionRow {
    let (accepted, withheld, gone_since_ms) = match entry {
        Entry::Served(accepted) => (Some(accepted), None, None),
        Entry::Withheld(accepted, withheld) => (accepted.as_ref(), Some(withheld), None),
        Entry::Gone(accepted, since_ms) => (Some(accepted), None, Some(*since_ms)),
    };
    let text = |definition: &Definition| definition.json.as_raw().text().to_owned();
    DefinitionRow {
        accepted: accepted.map(|accepted| AcceptedRow {
            json: text(&accepted.definition),
            hash: hash_text(&accepted.definition.hash),
            verdict: accepted.verdict.as_ref().map(verdict_row),
        }),
        withheld: withheld.map(|withheld| WithheldRow {
            json: text(&withheld.definition),
            hash: hash_text(&withheld.definition.hash),
            since_ms: withheld.since_ms,
            refused: withheld.refused.as_ref().map(verdict_row),
            is_ambiguous: withheld.is_ambiguous,
        }),
        gone_since_ms,
    }
}

fn entry(subject: &Subject, row: DefinitionRow) -> Result<Entry, BookRowError> {
    let verdict = |row: VerdictRow| Verdict { by: row.by, at_ms: row.at_ms };
    let accepted = match row.accepted {
        Some(AcceptedRow { json, hash, verdict: by }) => Some(Accepted {
            definition: definition(subject, &json, &hash)?,
            verdict: by.map(verdict),
        }),
        None => None,
    };
    match (accepted, row.withheld, row.gone_since_ms) {
        (accepted, Some(withheld), None) => {
            let WithheldRow { json, hash, since_ms, refused, is_ambiguous } = withheld;
            let withheld = Withheld {
                definition: definition(subject, &json, &hash)?,
                since_ms,
                refused: refused.map(verdict),
                is_ambiguous,
            };
            Ok(Entry::Withheld(accepted, withheld))
        }
        (Some(accepted), None, Some(since_ms)) => Ok(Entry::Gone(accepted, since_ms)),
        (Some(accepted), None, None) => Ok(Entry::Served(accepted)),
        _ => Err(damaged("it says nothing, or two things")),
    }
}

fn verdict_row(verdict: &Verdict) -> VerdictRow {
    VerdictRow { by: verdict.by.clone(), at_ms: verdict.at_ms }
}

fn definition(subject: &Subject, json: &str, hash: &str) -> Result<Arc<Definition>, BookRowError> {
    let json = OwnedRaw::parse(json.as_bytes()).map_err(damaged)?;
    let hash = parse_hash(hash).ok_or_else(|| damaged("its hash is none"))?;
    let (kind, name) = match subject {
        Subject::Instructions => (DefinitionKind::Prompt, "instructions".into()),
        Subject::Listed(kind, name) => (*kind, name.clone()),
    };
    Ok(Arc::new(Definition { kind, name, json, hash }))
}
