//! One rate and one account of it: GCRA, the leaky bucket that needs one number.
//!
//! An account is the moment at which all that was taken will have been earned again (the
//! *theoretical arrival time*). A unit taken moves it on by the time a unit takes to earn; a take
//! is granted while the account is no further ahead of now than the burst. The number is one
//! atomic cell, so cores share an account without a lock.
//!
//! Time is counted in sixteenths of a nanosecond: a unit's time is rounded up to the next tick, so
//! never more is granted than the rate says, and less by one part in 16 000 at a million units a
//! second (1 % at 160 million). 64 bits of it last 36 years from the clock's start. Everything
//! saturates; nothing wraps.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::catalog::Rate;

const TICKS_PER_NANOSECOND: u64 = 16;
const TICKS_PER_SECOND: u128 = 1_000_000_000 * TICKS_PER_NANOSECOND as u128;
/// The longest time anything takes: nine years. Sums of two of them still fit.
const TICKS_MAX: u64 = 1 << 62;

/// A rate, ready for reckoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// Ticks in which one unit is earned.
    unit: u64,
    /// Ticks an account may be ahead: the burst.
    capacity: u64,
}

impl Pace {
    pub(super) fn new(rate: Rate) -> Self {
        let burst = rate.burst();
        let window = u128::from(rate.seconds.max(1)) * TICKS_PER_SECOND;
        // A rate of nothing grants nothing: its unit is longer than its capacity.
        let unit = bounded(window.div_ceil(u128::from(rate.count.max(1))));
        let burst = if rate.count == 0 { 0 } else { burst };
        Self { unit, capacity: bounded(u128::from(unit) * u128::from(burst)) }
    }

    fn cost(self, weight: u32) -> u64 {
        self.unit.saturating_mul(u64::from(weight)).min(TICKS_MAX)
    }

    /// What must be free for `weight` units. More than the burst can never be: such a take waits
    /// for the whole burst and is charged in full, so the rate holds and nothing waits for ever.
    fn demand(self, weight: u32) -> u64 {
        self.cost(weight).min(self.capacity).max(self.unit)
    }
}

/// How much of a rate is used. One for all cores.
#[derive(Debug, Default)]
pub(super) struct Account(AtomicU64);

impl Account {
    /// Whether `weight` units could be taken now.
    ///
    /// # Errors
    /// In how many nanoseconds, if nobody else takes any, they can be.
    pub(super) fn check(&self, pace: Pace, weight: u32, now_ns: u64) -> Result<(), u64> {
        admit(self.0.load(Ordering::Relaxed), pace, weight, ticks(now_ns)).map(drop)
    }

    /// Takes `weight` units.
    ///
    /// # Errors
    /// As [`Self::check`]; nothing is taken then.
    pub(super) fn charge(&self, pace: Pace, weight: u32, now_ns: u64) -> Result<(), u64> {
        let now = ticks(now_ns);
        // The account stands for itself: nothing else is published with it.
        let mut before = self.0.load(Ordering::Relaxed);
        loop {
            let after = admit(before, pace, weight, now)?;
            match self.0.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Ok(()),
                Err(changed) => before = changed,
            }
        }
    }

    /// Gives units back that were taken an instant ago.
    pub(super) fn refund(&self, pace: Pace, weight: u32) {
        let cost = pace.cost(weight);
        let give = |account: u64| Some(account.saturating_sub(cost));
        // The closure always gives a value, so this cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, give);
    }

    /// How many units could be taken now.
    pub(super) fn remaining(&self, pace: Pace, now_ns: u64) -> u32 {
        let ahead = self.0.load(Ordering::Relaxed).saturating_sub(ticks(now_ns));
        let units = pace.capacity.saturating_sub(ahead) / pace.unit.max(1);
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// Nothing of it is used: it is as a new one.
    pub(super) fn is_at_rest(&self, now_ns: u64) -> bool {
        self.0.load(Ordering::Relaxed) <= ticks(now_ns)
    }
}

/// The account after the take, or the nanoseconds to wait.
///
/// A clock that goes backwards finds the account further ahead: it grants less, never more.
fn admit(account: u64, pace: Pace, weight: u32, now: u64) -> Result<u64, u64> {
    if weight == 0 {
        return Ok(account);
    }
    let base = account.max(now);
    let ahead = (base - now).saturating_add(pace.demand(weight));
    match ahead.checked_sub(pace.capacity) {
        None | Some(0) => Ok(base.saturating_add(pace.cost(weight))),
        Some(over) => Err(over.div_ceil(TICKS_PER_NANOSECOND)),
    }
}

fn ticks(now_ns: u64) -> u64 {
    now_ns.saturating_mul(TICKS_PER_NANOSECOND)
}

fn bounded(ticks: u128) -> u64 {
    u64::try_from(ticks).unwrap_or(TICKS_MAX).min(TICKS_MAX)
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "times of a test, compared within a percent")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn pace(count: u32, seconds: u32, burst: Option<u32>) -> Pace {
        Pace::new(Rate { count, seconds, burst })
    }

    fn taken(account: &Account, pace: Pace, tries: u32, now_ns: u64) -> u32 {
        (0..tries).filter(|_| account.charge(pace, 1, now_ns).is_ok()).count() as u32
    }

    #[test]
    fn a_burst_then_the_rate() {
        let (account, pace) = (Account::default(), pace(60, 60, Some(5)));
        assert_eq!(account.remaining(pace, 0), 5);
        assert_eq!(taken(&account, pace, 10, 0), 5);
        assert_eq!(account.charge(pace, 1, 0), Err(SECOND));
        assert_eq!(account.charge(pace, 1, SECOND - 1), Err(1));
        assert_eq!(account.charge(pace, 1, SECOND), Ok(()));
        assert_eq!(taken(&account, pace, 10, 3 * SECOND), 2);
        // However long it rests, no more than the burst comes together.
        assert_eq!(taken(&account, pace, 10, 1_000 * SECOND), 5);
        assert_eq!(account.remaining(pace, 1_000 * SECOND), 0);
    }

    #[test]
    fn the_burst_is_the_count_where_none_is_said() {
        // A seventh of a minute is no whole number of ticks.
        let (account, pace) = (Account::default(), pace(7, 60, None));
        assert_eq!(taken(&account, pace, 20, 0), 7);
        assert!(!account.is_at_rest(59 * SECOND));
        assert_eq!(account.remaining(pace, 61 * SECOND), 7);
        assert!(account.is_at_rest(61 * SECOND));
    }

    #[test]
    fn weights_count_and_more_than_the_burst_waits_for_all_of_it() {
        let (account, pace) = (Account::default(), pace(10, 10, None));
        assert_eq!(account.charge(pace, 4, 0), Ok(()));
        assert_eq!(account.charge(pace, 7, 0), Err(SECOND));
        assert_eq!(account.charge(pace, 6, 0), Ok(()));
        assert_eq!(account.charge(pace, 25, 9 * SECOND), Err(SECOND));
        assert_eq!(account.charge(pace, 25, 10 * SECOND), Ok(()));
        // 25 were charged: the next is earned when fewer than ten are owed.
        assert_eq!(account.charge(pace, 1, 25 * SECOND), Err(SECOND));
        assert_eq!(account.charge(pace, 1, 26 * SECOND), Ok(()));
        assert_eq!(account.charge(pace, 0, 0), Ok(()));
    }

    #[test]
    fn a_rate_or_burst_of_nothing_grants_nothing() {
        for pace in [pace(0, 60, None), pace(0, 60, Some(9)), pace(9, 60, Some(0))] {
            assert!(Account::default().charge(pace, 1, SECOND).is_err(), "{pace:?}");
            assert_eq!(Account::default().remaining(pace, SECOND), 0);
        }
    }

    #[test]
    fn a_clock_going_backwards_grants_no_more() {
        let (account, pace) = (Account::default(), pace(10, 10, Some(2)));
        assert_eq!(taken(&account, pace, 9, 100 * SECOND), 2);
        for back in [99, 50, 0] {
            assert_eq!(taken(&account, pace, 9, back * SECOND), 0);
        }
        assert_eq!(taken(&account, pace, 9, 101 * SECOND), 1);
    }

    #[test]
    fn a_refund_leaves_the_account_as_it_was() {
        let (account, pace) = (Account::default(), pace(10, 10, None));
        assert_eq!(taken(&account, pace, 3, SECOND), 3);
        account.charge(pace, 5, SECOND).unwrap();
        account.refund(pace, 5);
        assert_eq!(account.remaining(pace, SECOND), 7);
    }

    #[test]
    fn no_drift_over_days_and_odd_rates() {
        for (count, seconds) in [(7, 60), (1_000, 1), (333_333, 1), (1, 86_400), (86_399, 86_400)] {
            let (account, pace) = (Account::default(), pace(count, seconds, Some(2)));
            let (mut now_ns, mut granted) = (0, 0_u64);
            let end_ns = if count > 1_000 { 2 * SECOND } else { 100 * 86_400 * SECOND };
            while granted < 200_000 && now_ns < end_ns {
                match account.charge(pace, 1, now_ns) {
                    Ok(()) => granted += 1,
                    Err(wait_ns) => now_ns += wait_ns,
                }
            }
            let earned = 2.0 + now_ns as f64 * f64::from(count) / (f64::from(seconds) * 1e9);
            let error = (granted as f64 - earned).abs();
            assert!(error <= 1.0 + earned * 1e-4, "{count}/{seconds}: {granted} of {earned}");
        }
    }

    /// Every try of every thread moves the clock on, so the demand is many times the rate however
    /// busy the machine is, and threads see the clock out of order, as cores do.
    #[test]
    fn threads_together_get_what_one_would() {
        const THREADS: u32 = 4;
        const TRIES: u32 = 500_000;
        const TRY_NS: u64 = 250;
        let pace = pace(200_000, 1, Some(1_000));
        let (account, clock) = (Account::default(), AtomicU64::new(0));
        let run = || {
            let now_ns = || clock.fetch_add(TRY_NS, Ordering::Relaxed);
            (0..TRIES).filter(|_| account.charge(pace, 1, now_ns()).is_ok()).count() as u32
        };
        let granted: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let seconds = f64::from(THREADS * TRIES) * TRY_NS as f64 / 1e9;
        let (granted, most) = (f64::from(granted), 200_000.0 * seconds + 1_000.0);
        assert!(granted <= most && granted >= most * 0.99, "{granted} of {most}");
    }

    #[test]
    fn threads_at_one_instant_share_one_burst() {
        let pace = pace(10_000, 60, None);
        let account = Account::default();
        let granted: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| taken(&account, pace, 5_000, SECOND))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(granted, 10_000);
    }

    proptest! {
        #[test]
        fn whatever_the_rate_nothing_overflows_and_waits_are_exact(
            count in any::<u32>(),
            seconds in any::<u32>(),
            burst in any::<Option<u32>>(),
            takes in prop::collection::vec((any::<u32>(), any::<u64>()), 1..20),
        ) {
            let (account, pace) = (Account::default(), pace(count, seconds, burst));
            for (weight, now_ns) in takes {
                let now_ns = now_ns >> 6;
                if let Err(wait_ns) = account.charge(pace, weight, now_ns) {
                    prop_assert!(wait_ns > 0);
                    if pace.unit <= pace.capacity && wait_ns < 1 << 57 {
                        prop_assert!(account.check(pace, weight, now_ns + wait_ns - 1).is_err());
                        prop_assert_eq!(account.check(pace, weight, now_ns + wait_ns), Ok(()));
                    }
                }
                let _ = account.remaining(pace, now_ns);
            }
        }

        #[test]
        fn no_window_grants_more_than_rate_and_burst(
            count in 1_u32..1_000,
            seconds in 1_u32..100,
            burst in 1_u32..50,
            steps in prop::collection::vec((0_u64..2_000_000_000, 1_u32..4), 1..300),
        ) {
            let (account, pace) = (Account::default(), pace(count, seconds, Some(burst)));
            prop_assume!(burst >= 4);
            let (mut now_ns, mut granted) = (0, 0_u64);
            for (step, weight) in steps {
                now_ns += step;
                if account.charge(pace, weight, now_ns).is_ok() {
                    granted += u64::from(weight);
                }
                let earned = u128::from(now_ns) * u128::from(count)
                    / (u128::from(seconds) * u128::from(SECOND));
                prop_assert!(u128::from(granted) <= earned + u128::from(burst));
            }
        }
    }
}
