//! How many connections a core carries, and how many it may.

use std::{cell::Cell, rc::Rc};

use crate::rt::Notify;

/// Bodies that have not arrived whole, on one core together, hold at most this much. A client that
/// would exceed it is refused; others are not touched.
const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Small bodies are not counted: they are bounded by the number of connections.
const COUNTED_BYTES_MIN: usize = 16 * 1024;

/// Descriptors that clients never get: those of the store, the audit log and the operators. Of a
/// high limit it is this share of it.
const KEPT_DESCRIPTORS_MIN: usize = 64;
const KEPT_DESCRIPTORS_SHARE: usize = 16;
/// And for each core: its ring or poll, its wakers, its listeners, a connection on its way out.
const CORE_DESCRIPTORS: usize = 16;
/// Of three descriptors two are places for connections of clients. The third is for what these cause:
/// connections to upstreams, for most connections wait for something most of the time, and TLS
/// handshakes.
const OF_DESCRIPTORS: usize = 3;
const ARE_PLACES: usize = 2;

/// The process may open too few files to serve anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the process may have {limit} files open, and {cores} cores need {needed} at least; raise the \
     limit (`ulimit -n`, or LimitNOFILE of the service) or set runtime.cores lower"
)]
pub struct TooFewDescriptors {
    limit: usize,
    cores: usize,
    needed: usize,
}

/// How many connections each of `cores` may hold where `wanted` are set and the process may have
/// `limit` descriptors: clients alone must not be able to use them up.
pub(crate) fn places(
    wanted: usize,
    cores: usize,
    limit: usize,
) -> Result<usize, TooFewDescriptors> {
    let of_cores = cores.saturating_mul(CORE_DESCRIPTORS);
    let kept = KEPT_DESCRIPTORS_MIN.max(limit / KEPT_DESCRIPTORS_SHARE).saturating_add(of_cores);
    let of_each = limit.saturating_sub(kept) / cores.max(1);
    let fitting = of_each / OF_DESCRIPTORS * ARE_PLACES;
    if fitting == 0 {
        let each = CORE_DESCRIPTORS + OF_DESCRIPTORS;
        let used = cores.saturating_mul(each);
        let share = KEPT_DESCRIPTORS_SHARE;
        let needed = used
            .saturating_add(KEPT_DESCRIPTORS_MIN)
            .max(used.saturating_mul(share).div_ceil(share - 1));
        return Err(TooFewDescriptors { limit, cores, needed });
    }
    Ok(wanted.min(fitting))
}

/// How many TLS handshakes each core may have at once beside so many places: a handshake has no
/// place yet, but a descriptor, of the third that is not for places. Few slow clients must not keep
/// all others out, however few places are set.
pub(crate) fn handshakes(places: usize) -> usize {
    (places / 4).max(CORE_DESCRIPTORS)
}

/// The connections of one core.
#[derive(Debug)]
pub(crate) struct Connections {
    held_bytes: Cell<usize>,
    open: Cell<usize>,
    open_max: usize,
    closed: Notify,
}

/// A connection's place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Place(Rc<Connections>);

impl Connections {
    pub(crate) fn new(open_max: usize) -> Self {
        Self { held_bytes: Cell::new(0), open: Cell::new(0), open_max, closed: Notify::new() }
    }

    /// A place for one more connection, if there is one.
    pub(crate) fn admit(self: &Rc<Self>) -> Option<Place> {
        if self.open.get() >= self.open_max {
            return None;
        }
        self.open.set(self.open.get() + 1);
        Some(Place(self.clone()))
    }

    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    /// Waits until no connection is open.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn all_closed(&self) {
        while self.open.get() > 0 {
            self.closed.notified().await;
        }
    }
}

/// What one connection holds of a body that is still arriving.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    connections: Rc<Connections>,
    bytes: usize,
}

impl HeldBytes {
    pub(crate) fn none(connections: Rc<Connections>) -> Self {
        Self { connections, bytes: 0 }
    }

    /// It holds `bytes` now. False when the core would hold too much; then nothing is counted.
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let bytes = if bytes < COUNTED_BYTES_MIN { 0 } else { bytes };
        if bytes == self.bytes {
            return true;
        }
        let others = self.connections.held_bytes.get() - self.bytes;
        if bytes > self.bytes && others + bytes > HELD_BYTES_MAX {
            return false;
        }
        self.connections.held_bytes.set(others + bytes);
        self.bytes = bytes;
        true
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.closed.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let connections = Rc::new(Connections::new(2));
        let first = connections.admit();
        let second = connections.admit();
        assert!(first.is_some() && second.is_some() && connections.admit().is_none());
        drop(first);
        assert_eq!(connections.open(), 1);
        assert!(connections.admit().is_some());
    }

    #[test]
    fn clients_leave_descriptors_for_everything_else() {
        assert_eq!(places(20_000, 2, 1 << 20), Ok(20_000));
        assert_eq!(places(20_000, 64, usize::MAX), Ok(20_000));
        assert_eq!(places(20_000, 1, 1024), Ok((1024 - 64 - 16) / 3 * 2));
        assert_eq!(places(20_000, 4, 32_768), Ok((32_768 - 2048 - 64) / 12 * 2));
        assert_eq!(places(10, 1, 1024), Ok(10));
        for limit in 0..5000 {
            for cores in [1, 2, 7, 64] {
                let kept = 64.max(limit / 16) + cores * 16;
                match places(usize::MAX, cores, limit) {
                    Ok(fitting) => assert!(fitting > 0 && fitting / 2 * cores * 3 + kept <= limit),
                    Err(error) => assert!(limit < error.needed, "{error}"),
                }
            }
        }
    }

    #[test]
    fn handshakes_take_half_of_what_is_no_place() {
        assert_eq!(handshakes(2), 16);
        let fitting = places(usize::MAX, 1, 1 << 16).unwrap();
        assert!(handshakes(fitting) <= fitting / 2 / 2);
    }

    #[test]
    fn what_is_said_to_be_needed_is_enough() {
        for cores in [1, 2, 64, 300] {
            let needed = places(1, cores, 64).unwrap_err().needed;
            assert!(places(1, cores, needed).is_ok(), "{cores}");
        }
    }

    #[test]
    fn bodies_on_their_way_are_bounded_together() {
        let connections = Rc::new(Connections::new(2));
        let mut one = HeldBytes::none(connections.clone());
        let mut other = HeldBytes::none(connections.clone());
        assert!(one.set(HELD_BYTES_MAX - COUNTED_BYTES_MIN));
        assert!(other.set(COUNTED_BYTES_MIN - 1), "small ones are free");
        assert!(other.set(COUNTED_BYTES_MIN));
        assert!(!other.set(COUNTED_BYTES_MIN + 1));
        assert!(one.set(0) && other.set(COUNTED_BYTES_MIN + 1));
        drop((one, other));
        assert_eq!(connections.held_bytes.get(), 0);
    }
}
