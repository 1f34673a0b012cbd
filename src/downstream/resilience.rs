//! Trying again, and giving a connection a rest.
//!
//! Time comes in as an argument, what to do comes out. What is known of a connection is known
//! to all cores, under a lock that is held for a few additions.
//!
//! A call is tried again only where that does no harm: its method may be repeated (RFC 9110 section
//! 9.2.2), its tool says so, it carries a key of its own, or nothing of it left. Second attempts of
//! a connection are at most a tenth of its calls, with a few to begin with: an API that is down is
//! not asked several times as often as one that is well.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::catalog::{CircuitBreaker, CompiledConnection, Retries};
use crate::rt;

/// Second attempts that a connection may have before calls have earned any.
const ATTEMPTS_SAVED_MAX: f64 = 10.0;
/// What a call earns.
const ATTEMPTS_EARNED: f64 = 0.1;
/// Longest wait between two attempts, also where the API asks for a longer one.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);
/// How many connections are remembered.
const CONNECTIONS_MAX: usize = 100_000;

/// Waits between two requests of a call. A timer is large and few calls wait: it is apart from the
/// future of the call.
pub(crate) async fn pause(wait: Duration) {
    Box::pin(rt::sleep(wait)).await;
}

/// What is known of connections that are tried again or given a rest, over all cores.
#[derive(Debug, Clone, Default)]
pub struct Conditions(Arc<Mutex<HashMap<Box<str>, Condition>>>);

/// How a connection is.
#[derive(Debug, Clone, Copy)]
struct Condition {
    /// Second attempts it may still have.
    attempts_saved: f64,
    /// Failures since the last success.
    failures: u32,
    /// It rests until then; afterwards one call tries how it is.
    rests_until: Option<Instant>,
    is_tried: bool,
}

impl Default for Condition {
    fn default() -> Self {
        Self { attempts_saved: ATTEMPTS_SAVED_MAX, failures: 0, rests_until: None, is_tried: false }
    }
}

impl Condition {
    /// Whether a call may go; else how long the connection rests.
    fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        self.attempts_saved = (self.attempts_saved + ATTEMPTS_EARNED).min(ATTEMPTS_SAVED_MAX);
        let Some(until) = self.rests_until else { return Ok(()) };
        match until.saturating_duration_since(now) {
            Duration::ZERO if !self.is_tried => {
                self.is_tried = true;
                Ok(())
            }
            Duration::ZERO => Err(Duration::from_secs(1)),
            left => Err(left),
        }
    }

    fn note(&mut self, ended: Ended, breaker: Option<CircuitBreaker>, now: Instant) {
        let was_tried = std::mem::take(&mut self.is_tried);
        match (ended, breaker) {
            (Ended::Well, _) | (_, None) => {
                self.failures = 0;
                self.rests_until = None;
            }
            (Ended::Failed, Some(breaker)) => {
                self.failures = self.failures.saturating_add(1);
                if was_tried || self.failures >= breaker.failures {
                    self.rests_until = now.checked_add(Duration::from_millis(breaker.rest_ms));
                }
            }
            // Nothing was learned.
            (Ended::Dropped, Some(_)) => {}
        }
    }

    /// A connection that rests has none.
    fn take_attempt(&mut self) -> bool {
        let has_one = self.attempts_saved >= 1.0 && self.rests_until.is_none();
        if has_one {
            self.attempts_saved -= 1.0;
        }
        has_one
    }
}

/// How an attempt ended, as far as the connection is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The API answered, whatever it said.
    Well,
    /// It could not be reached, or said nothing, or that it is not well.
    Failed,
    /// Nobody waited for it.
    Dropped,
}

/// One call of a connection that may be tried again or given a rest.
#[derive(Debug)]
pub(crate) struct Attempts {
    conditions: Conditions,
    connection: Box<str>,
    retries: Retries,
    breaker: Option<CircuitBreaker>,
    made: u8,
    /// The attempt that is under way has not been told of.
    is_open: bool,
}

impl Conditions {
    /// Begins a call; `None` where its connection is neither tried again nor given a rest.
    ///
    /// # Errors
    /// How long the connection rests.
    pub(crate) fn begin(
        &self,
        connection: &CompiledConnection,
        now: Instant,
    ) -> Result<Option<Attempts>, Duration> {
        let (retries, breaker) = (connection.retries, connection.circuit_breaker);
        if retries.is_none() && breaker.is_none() {
            return Ok(None);
        }
        let name = format!("{}/{}", connection.tenant, connection.id).into_boxed_str();
        let mut known = self.0.lock();
        if known.len() >= CONNECTIONS_MAX && !known.contains_key(&name) {
            known.clear();
        }
        known.entry(name.clone()).or_default().admit(now)?;
        let retries = retries.unwrap_or(Retries { attempts: 1, first_wait_ms: 0 });
        Ok(Some(Attempts {
            conditions: self.clone(),
            connection: name,
            retries,
            breaker,
            made: 1,
            is_open: true,
        }))
    }

    fn with<T>(&self, connection: &str, change: impl FnOnce(&mut Condition) -> T) -> Option<T> {
        self.0.lock().get_mut(connection).map(change)
    }
}

impl Attempts {
    /// Tells how the attempt ended.
    pub(crate) fn note(&mut self, ended: Ended, now: Instant) {
        self.is_open = false;
        let breaker = self.breaker;
        self.conditions.with(&self.connection, |known| known.note(ended, breaker, now));
    }

    /// How long to wait before the next attempt, where there may be one. `chance` is any number;
    /// `asked` is what the API wants to be waited for.
    pub(crate) fn next(&mut self, chance: u64, asked: Option<Duration>) -> Option<Duration> {
        if self.made >= self.retries.attempts
            || asked.is_some_and(|asked| asked > WAIT_MAX)
            || !self.conditions.with(&self.connection, Condition::take_attempt)?
        {
            return None;
        }
        let doubled = self.retries.first_wait_ms << (self.made - 1).min(16);
        self.made += 1;
        self.is_open = true;
        // Half of it at least, so that many calls do not come back together.
        let spread = doubled / 2 + chance % (doubled / 2 + 1);
        Some(Duration::from_millis(spread).max(asked.unwrap_or_default()).min(WAIT_MAX))
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        if self.is_open {
            self.note(Ended::Dropped, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BREAKER: CircuitBreaker = CircuitBreaker { failures: 3, rest_ms: 1000 };

    fn after(begin: Instant, ms: u64) -> Instant {
        begin + Duration::from_millis(ms)
    }

    #[test]
    fn a_connection_rests_after_failures_and_is_tried_once() {
        let begin = Instant::now();
        let mut known = Condition::default();
        for _ in 0..2 {
            assert_eq!(known.admit(begin), Ok(()));
            known.note(Ended::Failed, Some(BREAKER), begin);
        }
        known.note(Ended::Well, Some(BREAKER), begin);
        for _ in 0..3 {
            assert_eq!(known.admit(begin), Ok(()), "a success forgives");
            known.note(Ended::Failed, Some(BREAKER), begin);
        }
        assert!(!known.take_attempt(), "nothing is tried again while it rests");
        assert_eq!(known.admit(after(begin, 400)), Err(Duration::from_millis(600)));
        assert_eq!(known.admit(after(begin, 1000)), Ok(()));
        assert!(known.admit(after(begin, 1000)).is_err(), "one tries for all");
        known.note(Ended::Failed, Some(BREAKER), after(begin, 1100));
        assert!(known.admit(after(begin, 2000)).is_err(), "it rests again at once");
        assert_eq!(known.admit(after(begin, 2100)), Ok(()));
        known.note(Ended::Dropped, Some(BREAKER), after(begin, 2100));
        assert_eq!(known.admit(after(begin, 2100)), Ok(()), "a dropped try frees its place");
        known.note(Ended::Well, Some(BREAKER), after(begin, 2100));
        assert_eq!(known.admit(after(begin, 2100)), Ok(()));
        assert_eq!(known.admit(after(begin, 2100)), Ok(()));
    }

    #[test]
    fn second_attempts_are_a_tenth_of_the_calls() {
        let begin = Instant::now();
        let mut known = Condition::default();
        let mut tried_again = 0;
        for _ in 0..1000 {
            known.admit(begin).unwrap();
            tried_again += u32::from(known.take_attempt());
        }
        assert!((105..=110).contains(&tried_again), "{tried_again}");
    }

    #[test]
    fn waits_double_within_their_spread() {
        let conditions = Conditions::default();
        conditions.0.lock().insert("a/b".into(), Condition::default());
        let attempts = |chance: u64, asked: Option<u64>| {
            let mut attempts = Attempts {
                conditions: conditions.clone(),
                connection: "a/b".into(),
                retries: Retries { attempts: 4, first_wait_ms: 100 },
                breaker: None,
                made: 1,
                is_open: false,
            };
            let asked = asked.map(Duration::from_millis);
            let waits = std::iter::from_fn(|| attempts.next(chance, asked));
            waits.map(|wait| wait.as_millis()).collect::<Vec<_>>()
        };
        assert_eq!(attempts(0, None), [50, 100, 200]);
        assert_eq!(attempts(50, None), [100, 150, 250]);
        assert_eq!(attempts(0, Some(180)), [180, 180, 200]);
        assert!(attempts(0, Some(11_000)).is_empty(), "longer than anybody waits");
    }
}
