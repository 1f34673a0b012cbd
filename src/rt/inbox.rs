//! Messages from any thread to the one core that owns the receiver.
//!
//! Bounded in count and in bytes; what does not fit comes back to the sender. The receiver takes
//! everything that waits in one go: many messages cost one lock and one wake-up.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// How much memory a message stands for in an inbox's byte limit.
pub trait Weigh {
    /// Bytes that the message keeps alive.
    fn bytes(&self) -> usize;
}

/// A message that did not get in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered<T> {
    /// As many messages or bytes as allowed wait already; may be tried again later.
    #[error("the inbox is full")]
    Full(T),
    /// The owner is gone or has closed the inbox.
    #[error("the inbox is closed")]
    Closed(T),
}

struct Shared<T> {
    state: Mutex<State<T>>,
    count_max: usize,
    bytes_max: usize,
}

struct State<T> {
    messages: Vec<T>,
    bytes: usize,
    senders: usize,
    closed: bool,
    waker: Option<Waker>,
}

/// The sending side; any number of them, on any thread.
pub struct InboxSender<T> {
    shared: Arc<Shared<T>>,
}

/// The receiving side, owned by one core.
pub struct InboxReceiver<T> {
    shared: Arc<Shared<T>>,
}

/// An inbox for at most `count_max` messages that together weigh at most `bytes_max`. A message
/// heavier than that never gets in.
pub fn inbox<T: Weigh + Send>(
    count_max: usize,
    bytes_max: usize,
) -> (InboxSender<T>, InboxReceiver<T>) {
    let state = State { messages: Vec::new(), bytes: 0, senders: 1, closed: false, waker: None };
    let shared = Arc::new(Shared { state: Mutex::new(state), count_max, bytes_max });
    (InboxSender { shared: Arc::clone(&shared) }, InboxReceiver { shared })
}

impl<T: Weigh + Send> InboxSender<T> {
    /// Puts the message in and wakes the owner.
    ///
    /// # Errors
    ///
    /// The message itself, with the reason.
    pub fn push(&self, message: T) -> Result<(), Undelivered<T>> {
        let weight = message.bytes();
        let waker = {
            let mut state = self.shared.state.lock();
            if state.closed {
                return Err(Undelivered::Closed(message));
            }
            let bytes = state.bytes.saturating_add(weight);
            if state.messages.len() >= self.shared.count_max || bytes > self.shared.bytes_max {
                return Err(Undelivered::Full(message));
            }
            state.bytes = bytes;
            state.messages.push(message);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }
}

impl<T> Clone for InboxSender<T> {
    fn clone(&self) -> Self {
        self.shared.state.lock().senders += 1;
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drop for InboxSender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.shared.state.lock();
            state.senders -= 1;
            if state.senders > 0 {
                return;
            }
            state.closed = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T: Weigh + Send> InboxReceiver<T> {
    /// Waits until something is there and appends all of it to `out`. False once the inbox is
    /// closed (by [`close`](Self::close), or because all senders are gone) and empty.
    ///
    /// # Cancel safety
    ///
    /// Messages are taken only by a call that returns.
    pub async fn drain(&mut self, out: &mut Vec<T>) -> bool {
        poll_fn(|context| self.poll_drain(context, out)).await
    }

    fn poll_drain(&self, context: &mut Context<'_>, out: &mut Vec<T>) -> Poll<bool> {
        let mut state = self.shared.state.lock();
        if !state.messages.is_empty() {
            state.bytes = 0;
            if out.is_empty() {
                // Both vectors keep their allocations and change places for ever.
                std::mem::swap(&mut state.messages, out);
            } else {
                out.append(&mut state.messages);
            }
            return Poll::Ready(true);
        }
        if state.closed {
            return Poll::Ready(false);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => state.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Lets nothing more in. What waits can still be drained.
    pub fn close(&self) {
        let waker = {
            let mut state = self.shared.state.lock();
            state.closed = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for InboxReceiver<T> {
    fn drop(&mut self) {
        // Taken out here so that no sender's thread ever frees a task of this core.
        let (messages, waker) = {
            let mut state = self.shared.state.lock();
            state.closed = true;
            state.bytes = 0;
            (std::mem::take(&mut state.messages), state.waker.take())
        };
        drop((messages, waker));
    }
}

impl<T> std::fmt::Debug for InboxSender<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("InboxSender").finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for InboxReceiver<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("InboxReceiver").finish_non_exhaustive()
    }
}
