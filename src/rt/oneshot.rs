//! One value, once, from one thread to another.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Condvar, Mutex};

/// The sender went away without sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other side went away without an answer")]
pub struct Dropped;

struct Shared<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
    sender_gone: bool,
    receiver_gone: bool,
}

/// The sending side.
pub struct OneshotSender<T> {
    shared: Arc<Shared<T>>,
}

/// The receiving side: a future, or [`recv_blocking`](Self::recv_blocking) on a plain thread.
pub struct OneshotReceiver<T> {
    shared: Arc<Shared<T>>,
}

/// A channel for one value.
pub fn oneshot<T: Send>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let state = State { value: None, waker: None, sender_gone: false, receiver_gone: false };
    let shared = Arc::new(Shared { state: Mutex::new(state), arrived: Condvar::new() });
    (OneshotSender { shared: Arc::clone(&shared) }, OneshotReceiver { shared })
}

impl<T: Send> OneshotSender<T> {
    /// Sends the value.
    ///
    /// # Errors
    ///
    /// The value itself when nobody waits for it any more.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut state = self.shared.state.lock();
        if state.receiver_gone {
            return Err(value);
        }
        state.value = Some(value);
        // The wake-up happens in `drop`, together with the end of the sender.
        Ok(())
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.shared.state.lock();
            state.sender_gone = true;
            state.waker.take()
        };
        self.shared.arrived.notify_one();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T: Send> OneshotReceiver<T> {
    /// Waits on a plain thread. Never on a core.
    ///
    /// # Errors
    ///
    /// [`Dropped`] when the sender went away.
    pub fn recv_blocking(self) -> Result<T, Dropped> {
        let mut state = self.shared.state.lock();
        loop {
            if let Some(value) = state.value.take() {
                return Ok(value);
            }
            if state.sender_gone {
                return Err(Dropped);
            }
            self.shared.arrived.wait(&mut state);
        }
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, Dropped>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.state.lock();
        if let Some(value) = state.value.take() {
            return Poll::Ready(Ok(value));
        }
        if state.sender_gone {
            return Poll::Ready(Err(Dropped));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => state.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        // The waker belongs to this core and is dropped here, not by the sender's thread.
        let (waker, value) = {
            let mut state = self.shared.state.lock();
            state.receiver_gone = true;
            (state.waker.take(), state.value.take())
        };
        drop((waker, value));
    }
}

impl<T> std::fmt::Debug for OneshotSender<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OneshotSender").finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for OneshotReceiver<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OneshotReceiver").finish_non_exhaustive()
    }
}
