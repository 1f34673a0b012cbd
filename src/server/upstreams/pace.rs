//! When a server is asked next. Pure: times come in as milliseconds of a clock that never goes back.

use crate::settings;

/// How long what servers tell of changes is gathered before they are asked.
const GATHER_MS: u64 = 200;
/// Between two askings because of what a server tells: one that tells without end is not asked so.
const PAUSE_MS: u64 = 1000;

/// Where a server stands between two askings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    state: State,
    /// When it was last asked; `None`: never.
    asked_ms: Option<u64>,
    /// Failures since it last answered.
    failures: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is asked then.
    Due(u64),
    /// It is being asked; and again behind that within this time, where somebody wants more than
    /// this asking may tell.
    Asking { again_within_ms: Option<u64> },
}

impl Pace {
    /// Of a server that is asked at once.
    pub(super) fn new(now_ms: u64) -> Self {
        Self { state: State::Due(now_ms), asked_ms: None, failures: 0 }
    }

    /// When it is due; `None` while it is asked.
    pub(super) fn due_ms(&self) -> Option<u64> {
        match self.state {
            State::Due(at) => Some(at),
            State::Asking { .. } => None,
        }
    }

    /// Whether it is being asked.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.state, State::Asking { .. })
    }

    /// It is asked now.
    pub(super) fn begin(&mut self, now_ms: u64) {
        self.state = State::Asking { again_within_ms: None };
        self.asked_ms = Some(now_ms);
    }

    /// It told of a change.
    pub(super) fn told(&mut self, now_ms: u64) {
        let earliest = self.asked_ms.map_or(0, |asked_ms| asked_ms + PAUSE_MS);
        self.at(earliest.max(now_ms + GATHER_MS), PAUSE_MS);
    }

    /// It is to be asked as soon as may be: where it is being asked, once more right behind that.
    pub(super) fn at_once(&mut self, now_ms: u64) {
        self.at(now_ms, 0);
    }

    fn at(&mut self, at_ms: u64, within_ms: u64) {
        self.state = match self.state {
            State::Due(before) => State::Due(before.min(at_ms)),
            State::Asking { again_within_ms: before } => State::Asking {
                again_within_ms: Some(before.map_or(within_ms, |before| before.min(within_ms))),
            },
        };
    }

    /// It answered, or not. `chance` is any number: it spreads what would else come all at once.
    pub(super) fn end(
        &mut self,
        is_good: bool,
        settings: &settings::Discovery,
        now_ms: u64,
        chance: u64,
    ) {
        let again_within_ms = match self.state {
            State::Asking { again_within_ms } => again_within_ms,
            State::Due(_) => None,
        };
        let wait_ms = if is_good {
            self.failures = 0;
            let period_ms = settings.refresh_seconds.saturating_mul(1000);
            // Nine tenths to eleven.
            period_ms - period_ms / 10 + part(period_ms / 5, chance)
        } else {
            self.failures = self.failures.saturating_add(1);
            let doubled = 1_u64 << (self.failures - 1).min(32);
            let wait_ms = settings.retry_min_ms.saturating_mul(doubled).min(settings.retry_max_ms);
            // A half to the whole.
            wait_ms / 2 + part(wait_ms / 2, chance)
        };
        let wait_ms = wait_ms.min(again_within_ms.unwrap_or(u64::MAX));
        self.state = State::Due(now_ms.saturating_add(wait_ms));
    }
}

/// A part of `whole` that a chance picks.
fn part(whole: u64, chance: u64) -> u64 {
    chance % (whole + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_are_gathered_and_a_server_that_tells_without_end_is_not_asked_so() {
        let settings = settings::Discovery::default();
        let mut pace = Pace::new(5);
        assert_eq!(pace.due_ms(), Some(5));
        pace.begin(10);
        assert_eq!((pace.due_ms(), pace.is_asking()), (None, true));
        pace.told(20);
        pace.end(true, &settings, 30, 7);
        assert_eq!(pace.due_ms(), Some(30 + PAUSE_MS), "it changed while it was asked");
        pace.begin(1030);
        pace.end(true, &settings, 1040, 0);
        assert_eq!(pace.due_ms(), Some(1040 + 270_000));
        pace.told(1050);
        assert_eq!(pace.due_ms(), Some(2030));
        pace.told(5000);
        assert_eq!(pace.due_ms(), Some(2030));
        pace.at_once(2000);
        assert_eq!(pace.due_ms(), Some(2000));
    }

    #[test]
    fn who_wants_it_asked_while_it_is_asked_has_it_asked_again_at_once() {
        let settings = settings::Discovery::default();
        for is_good in [true, false] {
            let mut pace = Pace::new(0);
            pace.begin(0);
            pace.at_once(1);
            pace.told(2);
            pace.end(is_good, &settings, 3, 7);
            assert_eq!(pace.due_ms(), Some(3));
        }
    }

    proptest! {
        #[test]
        fn failures_are_spread_and_bounded(failures in 1_u32..200, chance: u64) {
            let settings = settings::Discovery::default();
            let mut pace = Pace::new(0);
            for _ in 0..failures {
                pace.begin(0);
                pace.end(false, &settings, 0, chance);
            }
            let due_ms = pace.due_ms().unwrap();
            let whole = settings.retry_max_ms.min(1000 << (failures - 1).min(20));
            prop_assert!(due_ms >= whole / 2 && due_ms <= whole);
            pace.begin(0);
            pace.end(true, &settings, 0, chance);
            let due_ms = pace.due_ms().unwrap();
            prop_assert!((270_000..=330_000).contains(&due_ms));
        }
    }
}
