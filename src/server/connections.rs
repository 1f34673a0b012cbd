//! How many connections a core carries, and how many it may.

use std::{cell::Cell, rc::Rc};

use crate::rt::Notify;

/// Bodies that have not arrived whole, on one core together, hold at most this much. A client that
/// would exceed it is refused; others are not touched.
const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Small bodies are not counted: they are bounded by the number of connections.
const COUNTED_BYTES_MIN: usize = 16 * 1024;

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
