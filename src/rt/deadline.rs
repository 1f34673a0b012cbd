//! Coarse deadlines, thousands a core, at the price of a store each time one is set.
//!
//! A wheel of slots, one tick of 100 ms each. Setting a deadline only notes when it is due; the
//! entry stays in the slot where it was put, and when that slot comes up it moves on to where it is
//! due by then. So a connection that arms its deadline a thousand times a second is touched once in
//! the length of the deadline. One task a core turns the wheel, sleeps from one filled slot to the
//! next, and ends when the wheel is empty.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::notify::Notify;
use super::{race, sleep, tasks};

const TICK_MS: u64 = 100;
/// 51 s around. What is due later passes its slot again.
const SLOTS: u64 = 512;
/// Entries of dropped deadlines that are kept for new ones, so that a flood of short connections
/// does not fill the wheel.
const SPARE_ENTRIES_MAX: usize = 1024;
/// A slot keeps its allocation up to this many entries.
const SLOT_CAPACITY_KEPT: usize = 256;
const NEVER: u64 = u64::MAX;

/// A deadline that can be armed again and again. Ticks are 100 ms: it expires after the time
/// given, at most two ticks late. One task waits for it at a time. Belongs to one core.
pub struct Deadline {
    entry: Rc<Entry>,
}

struct Entry {
    /// Tick at which it expires.
    due: Cell<u64>,
    /// Tick of the slot that holds it; an older slot may still hold it too and is then ignored.
    queued: Cell<u64>,
    expired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

struct Wheel {
    origin: Instant,
    /// All ticks up to this one have been handled.
    done: Cell<u64>,
    slots: RefCell<Vec<Vec<Rc<Entry>>>>,
    turning: Cell<bool>,
    /// Tick for which the turning task sleeps.
    wake_at: Cell<u64>,
    earlier: Notify,
    spare: RefCell<Vec<Rc<Entry>>>,
}

thread_local! {
    static WHEEL: Wheel = Wheel {
        origin: Instant::now(),
        done: Cell::new(0),
        slots: RefCell::new(Vec::new()),
        turning: Cell::new(false),
        wake_at: Cell::new(NEVER),
        earlier: Notify::new(),
        spare: RefCell::new(Vec::new()),
    };
}

impl Deadline {
    /// Not armed.
    pub fn new() -> Self {
        let spare = WHEEL.with(|wheel| wheel.spare.borrow_mut().pop());
        let entry = spare.unwrap_or_else(|| {
            Rc::new(Entry {
                due: Cell::new(NEVER),
                queued: Cell::new(NEVER),
                expired: Cell::new(false),
                waker: RefCell::new(None),
            })
        });
        Self { entry }
    }

    /// Arms it to expire `after` from now, whatever it was before.
    ///
    /// # Panics
    ///
    /// Outside a core.
    pub fn set(&self, after: Duration) {
        WHEEL.with(|wheel| {
            let ms = wheel.origin.elapsed().saturating_add(after).as_millis();
            // Rounded up: never early.
            let due = u64::try_from(ms).unwrap_or(NEVER - TICK_MS) / TICK_MS + 1;
            self.entry.expired.set(false);
            self.entry.due.set(due);
            if self.entry.queued.get() > due {
                wheel.queue(&self.entry);
            }
        });
    }

    /// Takes it back: it will not expire.
    pub fn clear(&self) {
        self.entry.due.set(NEVER);
        self.entry.expired.set(false);
    }

    /// Whether it has expired since it was last set.
    pub fn is_expired(&self) -> bool {
        self.entry.expired.get()
    }

    /// Waits until it expires; for ever while it is not armed.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing; the deadline stays as it is.
    pub async fn expired(&self) {
        poll_fn(|context| self.poll_expired(context)).await;
    }

    pub(super) fn poll_expired(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.entry.expired.get() {
            return Poll::Ready(());
        }
        match &mut *self.entry.waker.borrow_mut() {
            // `clone_from` keeps a waker that is the same already.
            Some(waker) => waker.clone_from(context.waker()),
            empty => *empty = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Default for Deadline {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.clear();
        let waker = self.entry.waker.take();
        drop(waker);
        if self.entry.queued.get() == NEVER {
            return;
        }
        // It is still in the wheel: the next deadline may have it. The thread may be ending.
        let _ = WHEEL.try_with(|wheel| {
            let mut spare = wheel.spare.borrow_mut();
            if spare.len() < SPARE_ENTRIES_MAX {
                spare.push(Rc::clone(&self.entry));
            }
        });
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Deadline")
            .field("armed", &(self.entry.due.get() != NEVER))
            .field("expired", &self.is_expired())
            .finish()
    }
}

impl Wheel {
    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(NEVER) / TICK_MS
    }

    /// Puts an entry into the slot where it is due, or as near to it as the wheel reaches.
    fn queue(&self, entry: &Rc<Entry>) {
        if !self.turning.get() {
            self.done.set(self.now());
        }
        let done = self.done.get();
        let tick = entry.due.get().clamp(done + 1, done + SLOTS - 1);
        entry.queued.set(tick);
        {
            let mut slots = self.slots.borrow_mut();
            if slots.is_empty() {
                slots.resize_with(SLOTS as usize, Vec::new);
            }
            if let Some(slot) = slots.get_mut((tick % SLOTS) as usize) {
                slot.push(Rc::clone(entry));
            }
        }
        if !self.turning.replace(true) {
            tasks::spawn_unwatched(turn());
        } else if tick < self.wake_at.get() {
            self.earlier.notify();
        }
    }

    /// The next tick whose slot holds something.
    fn next(&self) -> Option<u64> {
        let slots = self.slots.borrow();
        let first = self.done.get() + 1;
        (first..first + SLOTS)
            .find(|tick| slots.get((tick % SLOTS) as usize).is_some_and(|slot| !slot.is_empty()))
    }

    /// Handles all slots that have come up.
    fn advance(&self) {
        let now = self.now();
        let done = self.done.get();
        // After a long stall one round meets every slot.
        for tick in done + 1..=now.min(done + SLOTS - 1) {
            self.done.set(tick);
            self.handle(tick, now);
        }
        self.done.set(now.max(done));
    }

    fn handle(&self, tick: u64, now: u64) {
        let index = (tick % SLOTS) as usize;
        let taken = self.slots.borrow_mut().get_mut(index).map(std::mem::take);
        let Some(mut entries) = taken else { return };
        for entry in entries.drain(..) {
            if entry.queued.get() != tick {
                // It was put into an earlier slot since.
                continue;
            }
            entry.queued.set(NEVER);
            let due = entry.due.get();
            if due == NEVER {
                continue;
            }
            if due > now {
                self.queue(&entry);
                continue;
            }
            entry.due.set(NEVER);
            entry.expired.set(true);
            if let Some(waker) = entry.waker.take() {
                waker.wake();
            }
        }
        if entries.capacity() <= SLOT_CAPACITY_KEPT
            && let Some(slot) = self.slots.borrow_mut().get_mut(index)
            && slot.is_empty()
        {
            *slot = entries;
        }
    }
}

/// Turns the wheel of this core while anything is in it.
async fn turn() {
    loop {
        let wait = WHEEL.with(|wheel| {
            wheel.advance();
            let Some(next) = wheel.next() else {
                wheel.turning.set(false);
                wheel.wake_at.set(NEVER);
                return None;
            };
            wheel.wake_at.set(next);
            let at = wheel.origin + Duration::from_millis(next.saturating_mul(TICK_MS));
            Some(at.saturating_duration_since(Instant::now()))
        });
        let Some(wait) = wait else { return };
        let earlier = poll_fn(|context| WHEEL.with(|wheel| wheel.earlier.poll_notified(context)));
        race(sleep(wait), earlier).await;
    }
}

/// Empties the wheel when a core ends; its turning task then ends by itself.
pub(super) fn reset() {
    WHEEL.with(|wheel| {
        let slots = wheel.slots.take();
        for entry in slots.iter().flatten() {
            entry.queued.set(NEVER);
        }
        drop(slots);
        drop(wheel.spare.take());
        if wheel.turning.get() {
            wheel.earlier.notify();
        }
    });
}

/// Entries in the wheel of this core, those that are taken back included.
#[cfg(test)]
pub(super) fn entries_queued() -> usize {
    WHEEL.with(|wheel| wheel.slots.borrow().iter().map(Vec::len).sum())
}

#[cfg(test)]
pub(super) fn is_turning() -> bool {
    WHEEL.with(|wheel| wheel.turning.get())
}
