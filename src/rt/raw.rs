//! The only unsafe code of the crate: pinned fields, inherited file descriptors, one `ioctl`.
#![expect(unsafe_code, reason = "pin projection, inherited descriptors, SIOCOUTQ; nothing else")]

use std::future::Future;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::time::{Either, Elapsed};

/// Two futures side by side; the first is polled first. Kept as a plain struct because an `async`
/// block would hold both futures twice, once as captures and once pinned.
#[derive(Debug)]
pub(super) struct Race<A, B> {
    first: A,
    second: B,
}

impl<A, B> Race<A, B> {
    pub(super) fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A: Future, B: Future> Future for Race<A, B> {
    type Output = Either<A::Output, B::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: both fields are pinned whenever the struct is: it has no `Drop`, hands out no
        // `&mut` to a field, moves neither, and is `Unpin` only if both fields are.
        let (first, second) = unsafe {
            let race = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut race.first), Pin::new_unchecked(&mut race.second))
        };
        if let Poll::Ready(output) = first.poll(context) {
            return Poll::Ready(Either::Left(output));
        }
        second.poll(context).map(Either::Right)
    }
}

/// A race against time. Not an `async` block for the same reason.
#[derive(Debug)]
pub(super) struct Within<F, S> {
    race: Race<F, S>,
}

impl<F, S> Within<F, S> {
    pub(super) fn new(future: F, sleep: S) -> Self {
        Self { race: Race::new(future, sleep) }
    }
}

impl<F: Future, S: Future> Future for Within<F, S> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the one field is pinned whenever the struct is, as above.
        let race = unsafe { self.map_unchecked_mut(|within| &mut within.race) };
        race.poll(context).map(|outcome| match outcome {
            Either::Left(output) => Ok(output),
            Either::Right(_) => Err(Elapsed),
        })
    }
}

/// Takes ownership of a descriptor that the service manager passed to this process.
///
/// The caller takes each number at most once; [`super::listener`] keeps a process-wide flag.
pub(super) fn own_inherited(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl with F_GETFD only asks whether the descriptor is open.
    if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, was made for this process, and nobody else here owns it (see above).
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Bytes in the send queue of a TCP socket that the peer's kernel has not acknowledged.
pub(super) fn unacknowledged_bytes(descriptor: RawFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int, and `bytes` is one.
    let outcome = unsafe { libc::ioctl(descriptor, libc::TIOCOUTQ, &raw mut bytes) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(bytes).unwrap_or(0))
}
