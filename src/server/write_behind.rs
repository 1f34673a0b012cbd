//! What a core hands to the store in groups: session rows and the journal of its streams.
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
    store::{Batch, NotQueued, Tree},
    streams::{JournalRing, SessionKey, slot_key},
};

/// Batches the store would not take are merged up to this size and tried again.
const HELD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The rows of one core that are not yet with the store.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    pending: RefCell<Batch>,
    ring: RefCell<JournalRing>,
    awake: Cell<bool>,
    wake: Notify,
    gather: Duration,
    core: u16,
    refused: Cell<bool>,
}

impl WriteBehind {
    /// `gather`: how long rows are gathered; the store adds its own share of `flush_ms`.
    pub(crate) fn new(core: u16, ring: JournalRing, gather: Duration) -> Self {
        Self {
            pending: RefCell::new(Batch::new()),
            ring: RefCell::new(ring),
            awake: Cell::new(false),
            wake: Notify::new(),
            gather,
            core,
            refused: Cell::new(false),
        }
    }

    /// Keeps a session's row.
    pub(crate) fn put_session(&self, key: SessionKey, row: &[u8]) {
        self.pending.borrow_mut().put(Tree::Sessions, key.as_bytes(), row);
        self.wake();
    }

    /// Forgets a session's row.
    pub(crate) fn remove_session(&self, key: SessionKey) {
        self.pending.borrow_mut().remove(Tree::Sessions, key.as_bytes());
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
        let mut batch = self.pending.take();
        let now_ms = core.clock.now_ms();
        if let Some(chunk) = core.streams.borrow_mut().take_chunk(now_ms) {
            let mut ring = self.ring.borrow_mut();
            let placement = ring.place(chunk.sequence, chunk.bytes.len(), now_ms);
            batch.put(Tree::Windows, &slot_key(self.core, placement.slot), &chunk.bytes);
            for slot in placement.remove {
                batch.remove(Tree::Windows, &slot_key(self.core, slot));
            }
        }
        if batch.is_empty() {
            return true;
        }
        let Err(refused) = core.shared.store.write_behind(batch) else {
            self.refused.set(false);
            return true;
        };
        let NotQueued { error, batch } = refused;
        if !self.refused.replace(true) {
            tracing::error!(%error, "the store takes no rows; sessions may be lost at a restart");
        }
        if batch.bytes() <= HELD_BYTES_MAX {
            *self.pending.borrow_mut() = batch;
        }
        false
    }

    /// Drops journal rows that have aged out although nothing new was written.
    pub(crate) fn expire(&self, now_ms: u64) {
        for slot in self.ring.borrow_mut().expire(now_ms) {
            self.pending.borrow_mut().remove(Tree::Windows, &slot_key(self.core, slot));
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
