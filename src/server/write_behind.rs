//! What a core hands to the store in groups: session rows, and the journals of new sessions and of
//! its streams.
//!
//! Nothing waits for it: at most `store.flush_ms` of it is lost when the process is killed. The
//! task sleeps until there is something, gathers for a moment, and hands it over in one batch.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use super::core::Core;
use crate::{
    rt::{self, Notify},
    sessions::{Session, SessionJournal, SessionTable},
    store::{Batch, NotQueued, Tree},
    streams::{JournalRing, SessionKey, slot_key},
};

/// Batches the store would not take are merged up to this size and tried again.
const HELD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The rows of one core that are not yet with the store.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    pending: RefCell<Pending>,
    windows: RefCell<JournalRing>,
    recent: RefCell<Recent>,
    awake: Cell<bool>,
    wake: Notify,
    gather: Duration,
    core: u16,
    refused: Cell<bool>,
}

/// Rows of sessions, and which of them the batch puts.
#[derive(Debug, Default)]
struct Pending {
    batch: Batch,
    put: Vec<SessionKey>,
}

/// The journal of new sessions and where its chunks go.
#[derive(Debug)]
struct Recent {
    journal: SessionJournal,
    ring: JournalRing,
    sequence: u64,
}

impl WriteBehind {
    /// `gather`: how long rows are gathered; the store adds its own share of `flush_ms`.
    pub(crate) fn new(core: u16, windows: JournalRing, gather: Duration) -> Self {
        let seconds = SessionTable::JOURNAL_KEPT_SECONDS;
        let gather_ms = u64::try_from(gather.as_millis()).unwrap_or(u64::MAX);
        // Bounded by the rate of new sessions and the time they are kept, not in bytes: a chunk
        // must not go before its sessions have rows.
        let slots = JournalRing::slots_for(seconds, gather_ms);
        let ring = JournalRing::new(slots, usize::MAX, seconds);
        Self {
            pending: RefCell::default(),
            windows: RefCell::new(windows),
            recent: RefCell::new(Recent { journal: SessionJournal::default(), ring, sequence: 0 }),
            awake: Cell::new(false),
            wake: Notify::new(),
            gather,
            core,
            refused: Cell::new(false),
        }
    }

    /// Notes a new session.
    pub(crate) fn session_opened(&self, session: &Session) {
        self.recent.borrow_mut().journal.opened(session);
        self.wake();
    }

    /// Notes that a session ended, and removes its row where it has one.
    pub(crate) fn session_ended(&self, session: &Session) {
        if session.has_row() {
            self.pending.borrow_mut().batch.remove(Tree::Sessions, session.key().as_bytes());
        }
        self.recent.borrow_mut().journal.ended(session.key());
        self.wake();
    }

    /// Keeps a session's row.
    pub(crate) fn put_session(&self, key: SessionKey, row: &[u8]) {
        let mut pending = self.pending.borrow_mut();
        pending.batch.put(Tree::Sessions, key.as_bytes(), row);
        pending.put.push(key);
        drop(pending);
        self.wake();
    }

    /// Removes a session's row.
    pub(crate) fn remove_session(&self, key: SessionKey) {
        self.pending.borrow_mut().batch.remove(Tree::Sessions, key.as_bytes());
        self.wake();
    }

    /// There is something to hand over, or the journal has grown.
    pub(crate) fn wake(&self) {
        if !self.awake.replace(true) {
            self.wake.notify();
        }
    }

    /// Hands everything to the store now. False when the store would not take it: it is kept, up
    /// to a bound, and tried again.
    pub(crate) fn flush(&self, core: &Core) -> bool {
        self.awake.set(false);
        let Pending { mut batch, put } = self.pending.take();
        let now_ms = core.clock.now_ms();
        if let Some(chunk) = core.streams.borrow_mut().take_chunk(now_ms) {
            let mut ring = self.windows.borrow_mut();
            self.place(&mut batch, Tree::Windows, &mut ring, chunk.sequence, &chunk.bytes, now_ms);
        }
        let mut recent = self.recent.borrow_mut();
        if let Some(bytes) = recent.journal.take() {
            let sequence = recent.sequence;
            recent.sequence += 1;
            let tree = Tree::RecentSessions;
            self.place(&mut batch, tree, &mut recent.ring, sequence, &bytes, now_ms);
        }
        drop(recent);
        if batch.is_empty() {
            return true;
        }
        let Err(refused) = core.shared.store.write_behind(batch) else {
            self.refused.set(false);
            self.undo_ended(core, &put);
            return true;
        };
        self.keep(core, refused, put);
        false
    }

    /// A session that another core ended while its row was on the way here: the store may have had
    /// the removal before the row.
    fn undo_ended(&self, core: &Core, put: &[SessionKey]) {
        for key in put {
            if core.shared.sessions.is_ended(*key) {
                self.remove_session(*key);
            }
        }
    }

    /// Keeps what the store refused for the next try, as long as it is not too much.
    fn keep(&self, core: &Core, refused: NotQueued, put: Vec<SessionKey>) {
        let NotQueued { error, batch } = refused;
        if !self.refused.replace(true) {
            tracing::error!(%error, "the store takes no rows; sessions may be lost at a restart");
        }
        if batch.bytes() <= HELD_BYTES_MAX {
            // Nothing was added meanwhile: all this happens in one step of the core.
            *self.pending.borrow_mut() = Pending { batch, put };
        } else {
            tracing::error!(sessions = put.len(), "rows were dropped; they are written again");
            for key in put {
                core.shared.sessions.row_was_lost(key);
            }
        }
    }

    /// Puts a journal's chunk into its place in the ring, over or instead of older ones.
    fn place(
        &self,
        batch: &mut Batch,
        tree: Tree,
        ring: &mut JournalRing,
        sequence: u64,
        bytes: &[u8],
        now_ms: u64,
    ) {
        let placement = ring.place(sequence, bytes.len(), now_ms);
        batch.put(tree, &slot_key(self.core, placement.slot), bytes);
        for slot in placement.remove {
            batch.remove(tree, &slot_key(self.core, slot));
        }
    }

    /// Drops journal rows that have aged out although nothing new was written.
    pub(crate) fn expire(&self, now_ms: u64) {
        let windows = self.windows.borrow_mut().expire(now_ms);
        let recent = self.recent.borrow_mut().ring.expire(now_ms);
        let aged = windows
            .into_iter()
            .map(|slot| (Tree::Windows, slot))
            .chain(recent.into_iter().map(|slot| (Tree::RecentSessions, slot)));
        for (tree, slot) in aged {
            self.pending.borrow_mut().batch.remove(tree, &slot_key(self.core, slot));
            self.wake();
        }
    }
}

/// The task that hands over; runs as long as the core.
pub(crate) async fn run(core: Rc<Core>) {
    loop {
        core.write_behind.wake.notified().await;
        rt::sleep(core.write_behind.gather).await;
        if !core.write_behind.flush(&core) {
            rt::sleep(Duration::from_secs(1)).await;
            core.write_behind.wake();
        }
    }
}
