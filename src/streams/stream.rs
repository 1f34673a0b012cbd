//! One stream of a table.

use super::ids::{SessionKey, StreamId};
use super::journal::{Change, Declaration, Declared, Journal};
use super::table::StreamLimits;
use super::window::Window;

/// Longest note of a stream; a longer one is left out.
const NOTE_BYTES_MAX: usize = 4096;

/// The owner's handle of an attached connection; the table only keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OutletId(pub u64);

/// What opened a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamKind {
    /// The answer to a POST: ends with its response, is kept for a while after it.
    Post,
    /// The session's standing stream (GET): goes on over many connections.
    Standing,
    /// HTTP+SSE (2024-11-05): named `message` events without ids, never kept or journaled.
    Legacy,
}

/// A stream of the table.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) session: SessionKey,
    pub(super) kind: StreamKind,
    pub(super) finished_ms: Option<u64>,
    pub(super) outlet: Option<OutletId>,
    /// Since when no connection is attached; meaningless while one is.
    pub(super) unattached_ms: u64,
    pub(super) window: Window,
    pub(super) note: Box<[u8]>,
    /// It comes from the journal: nobody works on its answer any more.
    pub(super) recovered: bool,
    declared: Declared,
}

impl StreamKind {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Post => 1,
            Self::Standing => 2,
            Self::Legacy => 3,
        }
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        [Self::Post, Self::Standing, Self::Legacy].into_iter().find(|kind| kind.code() == code)
    }

    pub(super) fn is_kept(self) -> bool {
        self != Self::Legacy
    }
}

impl Stream {
    pub(super) fn new(
        kind: StreamKind,
        session: SessionKey,
        note: &[u8],
        next_position: u64,
        now_ms: u64,
    ) -> Self {
        let note = if note.len() > NOTE_BYTES_MAX { &[] } else { note };
        Self {
            session,
            kind,
            finished_ms: None,
            outlet: None,
            unattached_ms: now_ms,
            window: Window::new(next_position),
            note: note.into(),
            recovered: false,
            declared: Declared::NEVER,
        }
    }

    /// Whether its time is over: finished and retained long enough, or standing with no client
    /// for as long as events are kept.
    pub(super) fn is_over(&self, limits: &StreamLimits, now_ms: u64) -> bool {
        if let Some(finished_ms) = self.finished_ms {
            return now_ms.saturating_sub(finished_ms) > limits.retention_ms;
        }
        self.kind == StreamKind::Standing
            && self.outlet.is_none()
            && now_ms.saturating_sub(self.unattached_ms) > limits.window.age_ms_max
    }

    pub(super) fn log(&mut self, journal: &mut Journal, id: StreamId, change: &Change<'_>) {
        let declaration = Declaration {
            id,
            kind: self.kind,
            session: self.session,
            next_position: self.window.next_position(),
            finished_ms: self.finished_ms,
            note: &self.note,
        };
        journal.append(&mut self.declared, &declaration, change);
    }
}
