//! How long a group is collected, so that it is on disk when it was promised to be.

use std::time::Duration;

/// What waking up and a busy machine may take.
const SLACK: Duration = Duration::from_millis(1);

/// Learns how long writing a group takes, and leaves that much of the promise for it.
#[derive(Debug)]
pub(super) struct Pace {
    promise: Duration,
    /// The longest of late; fades with every group that takes less.
    taken: Duration,
}

impl Pace {
    pub(super) fn new(promise: Duration) -> Self {
        Self { promise, taken: Duration::ZERO }
    }

    /// Notes how long a group took to be written.
    pub(super) fn note(&mut self, taken: Duration) {
        self.taken = taken.max(self.taken * 7 / 8);
    }

    /// How long the next group may collect. At most three quarters of the promise: the first slow
    /// group must fit as well; at least a quarter: writing alone must not take all the time.
    pub(super) fn interval(&self) -> Duration {
        self.promise
            .saturating_sub(self.taken + self.taken / 4 + SLACK)
            .clamp(self.promise / 4, self.promise * 3 / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_groups_start_earlier_and_fast_ones_bring_it_back() {
        let ms = Duration::from_millis;
        let mut pace = Pace::new(ms(40));
        assert_eq!(pace.interval(), ms(30));
        pace.note(ms(16));
        assert_eq!(pace.interval(), ms(19));
        pace.note(ms(500));
        assert_eq!(pace.interval(), ms(10));
        for _ in 0..60 {
            pace.note(ms(1));
        }
        assert_eq!(pace.interval(), ms(30));
        assert_eq!(Pace::new(Duration::ZERO).interval(), Duration::ZERO);
    }
}
