//! The time of one request, which stands still while its client is asked something.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Clock {
    started: Instant,
    total: Option<Duration>,
    paused: Duration,
    since: Option<Instant>,
}

impl Clock {
    /// Runs from now on. `total` is all the time there is.
    pub(super) fn new(now: Instant, total: Option<Duration>) -> Self {
        Self { started: now, total, paused: Duration::ZERO, since: None }
    }

    /// Stands still, or goes on.
    pub(super) fn pause(&mut self, is_paused: bool, now: Instant) {
        match (is_paused, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.paused += now.saturating_duration_since(since);
                self.since = None;
            }
            _ => {}
        }
    }

    /// The time that counts.
    pub(super) fn elapsed(&self, now: Instant) -> Duration {
        let until = self.since.unwrap_or(now);
        until.saturating_duration_since(self.started).saturating_sub(self.paused)
    }

    /// What is left; none where there is no end.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        self.total.map(|total| total.saturating_sub(self.elapsed(now)))
    }

    /// All the time there is.
    pub(super) fn total(&self) -> Option<Duration> {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_client_does_not_count() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut clock = Clock::new(begin, Some(Duration::from_secs(10)));
        assert_eq!(clock.left(at(3)), Some(Duration::from_secs(7)));
        clock.pause(true, at(4));
        clock.pause(true, at(50));
        assert_eq!(clock.elapsed(at(100)), Duration::from_secs(4));
        clock.pause(false, at(100));
        clock.pause(false, at(101));
        assert_eq!(clock.left(at(105)), Some(Duration::from_secs(1)));
        assert_eq!(clock.left(at(200)), Some(Duration::ZERO));
        assert_eq!(Clock::new(begin, None).left(at(1000)), None);
    }
}
