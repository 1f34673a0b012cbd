//! Waiting: sleeps, timeouts and races.
//!
//! A timer is as large as 800 bytes, in the future that holds it. What waits for long, or again and
//! again, takes a [`Deadline`](super::Deadline) instead.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::raw::{Race, Within};

/// The time given to [`timeout`] passed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time for this operation has passed")]
pub struct Elapsed;

/// Which of two futures finished first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first one.
    Left(A),
    /// The second one.
    Right(B),
}

/// Waits for `duration`, counted from the first poll. A duration of zero is a fair yield: sockets
/// and timers get their turn. It may be polled by one task and then by another.
pub async fn sleep(duration: Duration) {
    let mut timer = pin!(monoio::time::sleep(duration));
    let mut waiting: Option<Waker> = None;
    poll_fn(move |context| {
        if timer.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let waker = context.waker();
        if waiting.as_ref().is_some_and(|known| known.will_wake(waker)) {
            return Poll::Pending;
        }
        // A timer wakes whoever polled it first and nobody else: another task takes a new one.
        if waiting.replace(waker.clone()).is_some() {
            let until = timer.deadline();
            timer.set(monoio::time::sleep_until(until));
            return timer.as_mut().poll(context);
        }
        Poll::Pending
    })
    .await;
}

/// Runs `future` for at most `duration`, then drops it.
///
/// # Errors
///
/// [`Elapsed`] when the time passes first.
pub fn timeout<F: Future>(
    duration: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
    // Made at the first poll: a timer needs a core, a future that was not polled yet does not.
    Within::new(future, sleep(duration))
}

/// Polls both until one is done, `first` before `second`, and drops the other.
///
/// Kept across rounds of a loop, a future is passed as `Pin<&mut _>`.
pub fn race<A, B>(
    first: A,
    second: B,
) -> impl Future<Output = Either<A::Output, B::Output>> + use<A, B>
where
    A: Future,
    B: Future,
{
    Race::new(first, second)
}
