//! How servers stand, as operators and metrics see it.

use std::sync::{Arc, atomic::Ordering};

use super::{
    keeper::{Keeper, Last, Slot},
    kept::Key,
};
use crate::{
    catalog::{TenantId, ToolsetId, UpstreamServer},
    governance::definitions::Book,
    telemetry::{UpstreamFigures, UpstreamsFigures},
};

/// How one server stands.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamState {
    pub(crate) tenant: TenantId,
    pub(crate) toolset: ToolsetId,
    pub(crate) server: Option<Arc<UpstreamServer>>,
    pub(crate) book: Book,
    pub(crate) asked_ms: Option<u64>,
    pub(crate) answered_ms: Option<u64>,
    pub(crate) error: Option<Arc<str>>,
    /// What was left out of what it offers.
    pub(crate) notes: Vec<String>,
    /// Sessions open there, where they are counted.
    pub(crate) sessions: Option<usize>,
}

impl Keeper {
    /// How every server stands, in the order of their names. May wait for the store; not for a core.
    pub(crate) fn states(&self) -> Vec<UpstreamState> {
        let keys: Vec<Key> = self.table.lock().slots.keys().cloned().collect();
        keys.iter().filter_map(|(tenant, toolset)| self.state(tenant, toolset)).collect()
    }

    /// How one server stands. May wait for the store; not for a core.
    pub(crate) fn state(&self, tenant: &TenantId, toolset: &ToolsetId) -> Option<UpstreamState> {
        let whose = (tenant.clone(), toolset.clone());
        let (server, book, last) = {
            let table = self.table.lock();
            let slot = table.slots.get(&whose)?;
            (slot.server.clone(), slot.book.clone(), slot.last.clone())
        };
        let book = book.lock().now.clone();
        Some(UpstreamState {
            tenant: tenant.clone(),
            toolset: toolset.clone(),
            server,
            book,
            asked_ms: last.asked_ms,
            answered_ms: last.answered_ms,
            error: last.error,
            notes: last.notes,
            sessions: self.sessions(&whose),
        })
    }

    /// The servers that do not answer, and those of which something waits: each as
    /// `tenant/toolset`.
    pub(crate) fn troubles(&self) -> (Vec<String>, Vec<String>) {
        let table = self.table.lock();
        let named = |is_such: fn(&Last) -> bool| {
            let such = table.slots.iter().filter(|(_, slot)| is_such(&slot.last));
            such.map(|((tenant, toolset), _)| format!("{tenant}/{toolset}")).collect()
        };
        (named(|last| last.reach.down_since_ms().is_some()), named(|last| last.counts.pending > 0))
    }

    /// What is measured.
    pub(crate) fn figures(&self) -> UpstreamsFigures {
        let figures = |(whose, slot): (&Key, &Slot)| UpstreamFigures {
            tenant: whose.0.to_string(),
            toolset: whose.1.to_string(),
            is_up: slot.is_up(),
            pending: slot.last.counts.pending as u64,
            sessions: self.sessions(whose).map(|sessions| sessions as u64),
        };
        UpstreamsFigures {
            answered: self.answered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            upstreams: self.table.lock().slots.iter().map(figures).collect(),
        }
    }

    fn sessions(&self, (tenant, toolset): &Key) -> Option<usize> {
        self.sessions_of.get().map(|sessions_of| sessions_of(tenant, toolset))
    }
}

impl Slot {
    /// Whether it answered when it was last asked; `None`: it was not since the start.
    fn is_up(&self) -> Option<bool> {
        let was_asked = self.last.answered_ms.is_some() || self.last.error.is_some();
        (self.server.is_some() && was_asked).then_some(self.last.error.is_none())
    }
}
