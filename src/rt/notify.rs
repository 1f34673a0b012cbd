//! Wake-ups between tasks of one core.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Wakes one waiting task. One permit is kept for a task that comes later. Not for other threads.
#[derive(Debug, Default)]
pub struct Notify {
    permit: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Notify {
    /// Without a permit, without anyone waiting.
    pub const fn new() -> Self {
        Self { permit: Cell::new(false), waiting: RefCell::new(Vec::new()) }
    }

    /// Leaves a permit. One waiting task takes it; where none waits, the next that asks.
    pub fn notify(&self) {
        self.permit.set(true);
        // All are woken, the first takes the permit, the others wait again: a waiter that was
        // dropped can thus not swallow the wake-up of another.
        let mut waiting = self.waiting.take();
        waiting.drain(..).for_each(Waker::wake);
        let mut now = self.waiting.borrow_mut();
        if now.is_empty() {
            // Keep the allocation: most are notified for as long as they live.
            *now = waiting;
        }
    }

    /// Waits for a permit and takes it.
    ///
    /// # Cancel safety
    ///
    /// A permit is taken only by a call that returns.
    pub async fn notified(&self) {
        poll_fn(|context| self.poll_notified(context)).await;
    }

    pub(super) fn poll_notified(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.permit.replace(false) {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// A flag that is raised once and that any number of tasks of one core wait for.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    shared: Rc<StopShared>,
}

#[derive(Debug, Default)]
struct StopShared {
    stopped: Cell<bool>,
    waiting: RefCell<Vec<Option<Waker>>>,
    free: RefCell<Vec<usize>>,
}

impl Stop {
    /// Not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag for good and wakes all that wait.
    pub fn stop(&self) {
        if self.shared.stopped.replace(true) {
            return;
        }
        let waiting = self.shared.waiting.take();
        self.shared.free.take();
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Whether it was raised.
    pub fn is_stopped(&self) -> bool {
        self.shared.stopped.get()
    }

    /// Places in the list of those that wait.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.shared.waiting.borrow().len()
    }

    /// Waits until it is raised.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub async fn stopped(&self) {
        Stopped { shared: &self.shared, place: None }.await;
    }
}

/// A waiter with its own place in the list: waiting again costs the same with ten thousand others.
struct Stopped<'a> {
    shared: &'a StopShared,
    place: Option<usize>,
}

impl Future for Stopped<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.shared.stopped.get() {
            self.place = None;
            return Poll::Ready(());
        }
        let mut waiting = self.shared.waiting.borrow_mut();
        if let Some(place) = self.place {
            if let Some(slot) = waiting.get_mut(place) {
                match slot {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => *slot = Some(context.waker().clone()),
                }
            }
            return Poll::Pending;
        }
        let place = self.shared.free.borrow_mut().pop().unwrap_or(waiting.len());
        let waker = Some(context.waker().clone());
        match waiting.get_mut(place) {
            Some(slot) => *slot = waker,
            None => waiting.push(waker),
        }
        drop(waiting);
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let mut waiting = self.shared.waiting.borrow_mut();
        // After the flag was raised the list is gone, and with it the place.
        if let Some(slot) = waiting.get_mut(place) {
            *slot = None;
            self.shared.free.borrow_mut().push(place);
        }
    }
}
