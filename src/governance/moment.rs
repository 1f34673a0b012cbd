//! Times as people read them.

use jiff::Timestamp;

/// RFC 3339 in UTC, to the second.
pub(super) fn text(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map_or_else(|_| format!("{ms} ms"), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_read_by_people() {
        assert_eq!(super::text(784_111_777_123), "1994-11-06T08:49:37Z");
        assert_eq!(super::text(u64::MAX), format!("{} ms", u64::MAX));
    }
}
