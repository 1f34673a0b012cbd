//! The clock of a core: wall time, and the `Date` header made once a second.

use std::{
    cell::{Cell, RefCell},
    time::{SystemTime, UNIX_EPOCH},
};

use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};

/// Wall time and its text. Not monotonic: intervals are measured with `Instant`.
#[derive(Debug)]
pub(crate) struct Clock {
    second: Cell<u64>,
    date: RefCell<String>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { second: Cell::new(u64::MAX), date: RefCell::default() }
    }

    /// Unix time in milliseconds.
    #[expect(clippy::unused_self, reason = "the one place a core asks; a virtual clock goes here")]
    pub(crate) fn now_ms(&self) -> u64 {
        now_ms()
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
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
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
    fn dates_are_imf_fixdates() {
        assert_eq!(date_of(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date_of(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text_of_ms(784_111_777_123), "1994-11-06T08:49:37Z");
    }
}
