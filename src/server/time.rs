//! The clock of a core: wall time, and the `Date` header made once a second.

use std::{
    cell::{Cell, RefCell},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};

/// Wall time and its text. Not monotonic: intervals are measured with `Instant`.
#[derive(Debug)]
pub(crate) struct Clock {
    second: Cell<u64>,
    date: RefCell<String>,
    /// A moment, and what the wall clock showed then, in microseconds.
    read: Cell<(Instant, u64)>,
}

/// For how long what the wall clock showed is good for reckoning: one that is set is noticed then.
const READ_FOR: Duration = Duration::from_millis(100);

impl Clock {
    pub(crate) fn new() -> Self {
        let read = Cell::new((Instant::now(), now_us()));
        Self { second: Cell::new(u64::MAX), date: RefCell::default(), read }
    }

    /// Unix time in milliseconds.
    #[expect(clippy::unused_self, reason = "the one place a core asks; a virtual clock goes here")]
    pub(crate) fn now_ms(&self) -> u64 {
        now_ms()
    }

    /// Unix time in milliseconds at a moment that has just been. Most often nothing but a sum.
    pub(crate) fn ms_at(&self, moment: Instant) -> u64 {
        let (read_at, us) = self.read.get();
        let since = moment.checked_duration_since(read_at).filter(|since| *since < READ_FOR);
        let us = if let Some(since) = since {
            us + u64::from(since.subsec_micros())
        } else {
            let us = now_us();
            self.read.set((moment, us));
            us
        };
        us / 1000
    }

    /// Hands out the current IMF-fixdate (RFC 9110, 5.6.7).
    pub(crate) fn with_date<R>(&self, use_date: impl FnOnce(&str) -> R) -> R {
        let second = now_ms() / 1000;
        if self.second.get() != second {
            self.second.set(second);
            *self.date.borrow_mut() = date_of(second);
        }
        use_date(&self.date.borrow())
    }
}

/// Unix time in milliseconds, for what runs on no core.
pub(crate) fn now_ms() -> u64 {
    now_us() / 1000
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A time as operators read it: RFC 3339 to the second.
pub(crate) fn text_of_ms(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map_or_else(|_| ms.to_string(), |time| time.to_string())
}

fn date_of(second: u64) -> String {
    i64::try_from(second)
        .ok()
        .and_then(|second| Timestamp::from_second(second).ok())
        .and_then(|time| DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok())
        .unwrap_or_else(|| "Thu, 01 Jan 1970 00:00:00 GMT".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_reckoned_from_a_reading_that_is_renewed() {
        let clock = Clock::new();
        let (begun, us) = (Instant::now(), 1_796_000_000_000_900);
        clock.read.set((begun, us));
        for (after_us, ms) in [(0, 0), (99, 0), (100, 1), (99_999, 100)] {
            let moment = begun + Duration::from_micros(after_us);
            assert_eq!(clock.ms_at(moment), us / 1000 + ms, "{after_us}");
        }
        // Too long ago, or before: the clock itself is asked.
        let earlier = begun.checked_sub(Duration::from_millis(1)).unwrap();
        for moment in [begun + READ_FOR, earlier] {
            clock.read.set((begun, us));
            assert!(clock.ms_at(moment).abs_diff(now_ms()) < 10_000);
            assert_eq!(clock.read.get().0, moment);
        }
    }

    #[test]
    fn dates_are_imf_fixdates() {
        assert_eq!(date_of(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date_of(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text_of_ms(784_111_777_123), "1994-11-06T08:49:37Z");
    }
}
