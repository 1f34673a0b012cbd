//! Times of day: when the next one begins. Whether one is open, the catalog's own type says.

use crate::catalog::TimeWindow;

const MINUTE_MS: u64 = 60_000;
const DAY_MINUTES: i64 = 24 * 60;
const WEEK_DAYS: i64 = 7;
/// 1970-01-01 was a Thursday.
const WEEKDAY_OF_DAY_0: i64 = 3;
/// How often the windows of several conditions are gone through to find a time in all of them.
const ROUNDS_MAX: usize = 64;

/// Whether one of `windows` is open at `now_ms`, Unix milliseconds; where there are none, always.
pub(super) fn is_open(windows: &[TimeWindow], now_ms: u64) -> bool {
    windows.is_empty() || windows.iter().any(|window| window.is_open(now_ms))
}

/// When the next of `windows` opens after `now_ms`; `None` where none ever does.
pub(super) fn next_opening_ms(windows: &[TimeWindow], now_ms: u64) -> Option<u64> {
    windows.iter().filter_map(|window| opening_ms(window, now_ms)).min()
}

/// The first time from `now_ms` on at which each of several lists has an open window. `None` where
/// there is none, or none is found in some weeks.
pub(super) fn next_all_open_ms<'a>(
    lists: impl Iterator<Item = &'a [TimeWindow]> + Clone,
    now_ms: u64,
) -> Option<u64> {
    let mut time_ms = now_ms;
    for _ in 0..ROUNDS_MAX {
        match lists.clone().find(|windows| !is_open(windows, time_ms)) {
            None => return Some(time_ms),
            // Closed until then, so nothing in between is passed over.
            Some(closed) => time_ms = next_opening_ms(closed, time_ms)?,
        }
    }
    None
}

fn opening_ms(window: &TimeWindow, now_ms: u64) -> Option<u64> {
    let offset = i64::from(window.utc_offset.minutes());
    // The minutes of 64 bits of milliseconds fit.
    let local = i64::try_from(now_ms / MINUTE_MS).ok()? + offset;
    let (today, minute) = (local.div_euclid(DAY_MINUTES), local.rem_euclid(DAY_MINUTES));
    let from = i64::from(window.from.minutes());
    let first = if minute < from { today } else { today + 1 };
    let begins_on = |day: &i64| {
        let weekday = (day + WEEKDAY_OF_DAY_0).rem_euclid(WEEK_DAYS);
        window.days.is_empty() || window.days.iter().any(|day| *day as i64 == weekday)
    };
    let day = (first..first + WEEK_DAYS).find(begins_on)?;
    u64::try_from(day * DAY_MINUTES + from - offset).ok()?.checked_mul(MINUTE_MS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::{ClockTime, UtcOffset, Weekday};

    const WEEKDAYS: [Weekday; 7] = [
        Weekday::Mon,
        Weekday::Tue,
        Weekday::Wed,
        Weekday::Thu,
        Weekday::Fri,
        Weekday::Sat,
        Weekday::Sun,
    ];

    const HOUR_MS: u64 = 60 * MINUTE_MS;
    const DAY_MS: u64 = 24 * HOUR_MS;
    /// Monday, 2024-01-01, 00:00 UTC.
    const MONDAY_MS: u64 = 1_704_067_200_000;

    fn window(days: &[Weekday], from: &str, to: &str, utc_offset: &str) -> TimeWindow {
        TimeWindow {
            days: days.to_vec(),
            from: ClockTime::parse(from).unwrap(),
            to: ClockTime::parse(to).unwrap(),
            utc_offset: UtcOffset::parse(utc_offset).unwrap(),
        }
    }

    fn at(day: u64, hour: u64, minute: u64) -> u64 {
        MONDAY_MS + day * DAY_MS + hour * HOUR_MS + minute * MINUTE_MS
    }

    #[test]
    fn working_hours() {
        let windows = [window(&[Weekday::Mon, Weekday::Fri], "08:00", "17:30", "+00:00")];
        for (now_ms, expected) in [
            (at(0, 7, 59), false),
            (at(0, 8, 0), true),
            (at(0, 17, 29) + 59_999, true),
            (at(0, 17, 30), false),
            (at(1, 9, 0), false),
            (at(4, 9, 0), true),
            (at(7, 9, 0), true),
        ] {
            assert_eq!(is_open(&windows, now_ms), expected, "{now_ms}");
        }
        assert_eq!(next_opening_ms(&windows, at(0, 7, 0)), Some(at(0, 8, 0)));
        assert_eq!(next_opening_ms(&windows, at(0, 9, 0)), Some(at(4, 8, 0)));
        assert_eq!(next_opening_ms(&windows, at(4, 18, 0)), Some(at(7, 8, 0)));
        assert!(is_open(&[], 0));
    }

    #[test]
    fn nights_belong_to_the_day_they_begin_on_and_offsets_move_it() {
        let windows = [window(&[Weekday::Fri], "22:00", "06:00", "+00:00")];
        for (hour, expected) in
            [(5, false), (21, false), (22, true), (23, true), (24, true), (29, true), (30, false)]
        {
            assert_eq!(is_open(&windows, at(4, hour, 0)), expected, "{hour}");
        }
        // Monday 00:30 there is Sunday in UTC.
        let windows = [window(&[Weekday::Mon], "00:00", "01:00", "+13:00")];
        assert!(is_open(&windows, MONDAY_MS - 13 * HOUR_MS + 30 * MINUTE_MS));
        let windows = [window(&[Weekday::Sun], "20:00", "24:00", "-03:30")];
        assert!(is_open(&windows, at(0, 3, 29)) && !is_open(&windows, at(0, 3, 30)));
    }

    #[test]
    fn several_lists_must_all_be_open() {
        let day = [window(&[], "08:00", "18:00", "+00:00")];
        let late = [window(&[], "16:00", "23:00", "+00:00")];
        let friday = [window(&[Weekday::Fri], "00:00", "24:00", "+00:00")];
        let never = [window(&[], "19:00", "20:00", "+00:00")];
        let next = |lists: &[&[TimeWindow]]| next_all_open_ms(lists.iter().copied(), at(0, 17, 0));
        assert_eq!(next(&[]), Some(at(0, 17, 0)));
        assert_eq!(next(&[&day, &late]), Some(at(0, 17, 0)));
        assert_eq!(next(&[&day, &late, &friday]), Some(at(4, 16, 0)));
        assert_eq!(next(&[&day, &never]), None);
    }

    #[test]
    fn the_ends_of_time_are_survived() {
        let windows =
            [window(&[], "22:00", "06:00", "+14:00"), window(&[], "01:00", "02:00", "-14:00")];
        for now_ms in [0, 1, u64::MAX] {
            let _ = is_open(&windows, now_ms);
            let _ = next_opening_ms(&windows, now_ms);
        }
    }

    proptest! {
        #[test]
        fn the_next_opening_is_the_first_minute_that_is_open(
            days in prop::sample::subsequence(WEEKDAYS.to_vec(), 0..=7),
            from in 0_u16..1440,
            to in 0_u16..=1440,
            offset in -840_i16..=840,
            minute in 0_u64..20_160,
        ) {
            prop_assume!(from != to);
            let time = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
            let sign = if offset < 0 { '-' } else { '+' };
            let offset = format!("{sign}{}", time(offset.unsigned_abs()));
            let windows = [window(&days, &time(from), &time(to), &offset)];
            let now_ms = MONDAY_MS + minute * MINUTE_MS;
            let open = |ms: u64| is_open(&windows, ms);
            let next_ms = next_opening_ms(&windows, now_ms).unwrap();
            prop_assert!(next_ms > now_ms && next_ms <= now_ms + 8 * DAY_MS);
            prop_assert!(open(next_ms));
            if !open(now_ms) {
                let first = (now_ms..).step_by(MINUTE_MS as usize).find(|ms| open(*ms)).unwrap();
                prop_assert_eq!(first, next_ms);
            }
        }
    }
}
