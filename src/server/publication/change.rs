//! One change of the catalog: who makes it and why, where it comes from, what came of it.

use std::sync::Arc;

use super::Past;
use crate::{
    catalog::{Action, ChangeHeader, ChangeRecord, Entities, EntityChange, Problem},
    server::{declared::Declared, time},
};

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

/// Where a change comes from.
pub(super) enum Source {
    /// Somebody who asks for it.
    Operator,
    /// The version it brings back.
    Past(u64),
    /// The settings' files, which declare this now.
    Files(Declared),
}

impl Source {
    pub(super) fn restored(&self) -> Option<u64> {
        match self {
            Self::Past(version) => Some(*version),
            Self::Operator | Self::Files(_) => None,
        }
    }

    /// The store has the change.
    pub(super) fn written(self, past: &mut Past) {
        if let Self::Files(now) = self {
            past.declared = now;
        }
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
    /// What will make calls fail.
    pub(crate) warnings: Vec<String>,
    /// What of it has no effect.
    pub(crate) remarks: Vec<Problem>,
}

/// The change as the log keeps it.
pub(super) fn record(
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
