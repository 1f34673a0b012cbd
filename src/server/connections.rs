//! How many connections a core carries, and how many it may.

use std::{cell::Cell, rc::Rc};

use crate::rt::Notify;

/// The connections of one core.
#[derive(Debug)]
pub(crate) struct Connections {
    open: Cell<usize>,
    open_max: usize,
    closed: Notify,
}

/// A connection's place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Place(Rc<Connections>);

impl Connections {
    pub(crate) fn new(open_max: usize) -> Self {
        Self { open: Cell::new(0), open_max, closed: Notify::new() }
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
}
