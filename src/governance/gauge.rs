//! How many of something are open, with a cap.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A count of what is open. One for all cores.
#[derive(Debug, Default)]
pub(super) struct Gauge(AtomicU32);

impl Gauge {
    /// How many are open.
    pub(super) fn open(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more, unless there are `most` already.
    fn enter(&self, most: u32) -> bool {
        let more = |open: u32| (open < most).then(|| open + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// A gauge and the cap that holds for it in one snapshot. The count outlives the cap.
#[derive(Debug, Clone)]
pub(super) struct Capped {
    pub(super) gauge: Arc<Gauge>,
    pub(super) most: u32,
}

impl Capped {
    /// A place, unless all are taken.
    pub(super) fn enter(&self) -> Option<Place> {
        self.gauge.enter(self.most).then(|| Place(Arc::clone(&self.gauge)))
    }
}

/// One that is counted; dropping it gives its place back.
#[derive(Debug)]
pub(super) struct Place(Arc<Gauge>);

impl Drop for Place {
    fn drop(&mut self) {
        // It was counted when this was made, so there is one to take off.
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back_and_never_more_than_the_cap() {
        let capped = Capped { gauge: Arc::default(), most: 2 };
        let first = capped.enter().unwrap();
        let _second = capped.enter().unwrap();
        assert!(capped.enter().is_none());
        drop(first);
        let _third = capped.enter().unwrap();
        assert_eq!(capped.gauge.open(), 2);
        // A lower cap counts those that are there.
        assert!(Capped { gauge: Arc::clone(&capped.gauge), most: 1 }.enter().is_none());
        assert!(Capped { gauge: capped.gauge, most: 3 }.enter().is_some());
    }

    #[test]
    fn threads_share_the_cap() {
        let capped = Capped { gauge: Arc::default(), most: 100 };
        let held: Vec<Place> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..80).filter_map(|_| capped.enter()).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(held.len(), 100);
        drop(held);
        assert_eq!(capped.gauge.open(), 0);
    }
}
