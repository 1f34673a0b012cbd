//! What was accepted and is not yet for good in the engine, numbered in the order of the queue.

use std::collections::VecDeque;
use std::collections::vec_deque::Drain;
use std::sync::Arc;
use std::time::Instant;

use super::Batch;

/// A write; none where it was withdrawn: its number stays.
pub(super) type Entry = Option<Arc<Batch>>;

/// Accepted writes from the first that can still be lost to the last.
#[derive(Debug)]
pub(super) struct Uncommitted {
    entries: VecDeque<Entry>,
    /// Number of the first entry, or of the next one where there is none.
    first: u64,
    /// When some of them came: a number, and a time at or before which nothing from it on came.
    /// One for each group of the queue, not for each write.
    marks: VecDeque<(u64, Instant)>,
    /// The next write begins a new mark.
    wants_mark: bool,
}

impl Uncommitted {
    /// Nothing; `through` was the last number before.
    pub(super) fn new(through: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            first: through.saturating_add(1),
            marks: VecDeque::new(),
            wants_mark: true,
        }
    }

    /// Takes a write. `now` is asked for where it is needed.
    pub(super) fn push(&mut self, batch: Arc<Batch>, now: impl FnOnce() -> Instant) {
        if std::mem::take(&mut self.wants_mark) {
            self.marks.push_back((self.end(), now()));
        }
        self.entries.push_back(Some(batch));
    }

    /// The write behind this call begins a new group.
    pub(super) fn end_group(&mut self) {
        self.wants_mark = true;
    }

    /// The engine has everything up to number `through`; gives it back, to be dropped.
    pub(super) fn settle(&mut self, through: u64) -> Drain<'_, Entry> {
        let count = self.position(through.saturating_add(1));
        self.first += count as u64;
        self.forget_marks(self.first);
        self.entries.drain(..count)
    }

    /// The last number that the engine has.
    pub(super) fn settled(&self) -> u64 {
        self.first - 1
    }

    /// The write of this number is not wanted any more.
    pub(super) fn withdraw(&mut self, number: u64) {
        let position = self.position(number);
        if number >= self.first
            && let Some(entry) = self.entries.get_mut(position)
        {
            *entry = None;
        }
    }

    /// When the first one behind number `after` came, or somewhat earlier.
    pub(super) fn oldest_behind(&mut self, after: u64) -> Option<Instant> {
        let number = self.first.max(after.saturating_add(1));
        if number >= self.end() {
            return None;
        }
        self.forget_marks(number);
        self.marks.front().map(|(_, at)| *at)
    }

    /// Those behind number `after`.
    pub(super) fn behind(&self, after: u64) -> impl Iterator<Item = &Entry> {
        self.entries.range(self.position(after.saturating_add(1))..)
    }

    /// The number of the next one.
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Where `number` is, within the bounds.
    fn position(&self, number: u64) -> usize {
        let distance = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        distance.min(self.entries.len())
    }

    /// Keeps the mark that `number` falls under and those behind it.
    fn forget_marks(&mut self, number: u64) {
        while self.marks.get(1).is_some_and(|(begins, _)| *begins <= number) {
            self.marks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn push(uncommitted: &mut Uncommitted, now: Instant) {
        uncommitted.push(Arc::new(Batch::new()), || now);
    }

    #[test]
    fn numbers_follow_the_order_and_the_ages_are_never_too_young() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let mut uncommitted = Uncommitted::new(10);
        assert_eq!(uncommitted.oldest_behind(0), None);
        push(&mut uncommitted, at(1)); // 11
        push(&mut uncommitted, at(2)); // 12, of the same group
        uncommitted.end_group();
        push(&mut uncommitted, at(3)); // 13
        assert_eq!(uncommitted.oldest_behind(10), Some(at(1)));
        assert_eq!(uncommitted.oldest_behind(11), Some(at(1)));
        assert_eq!(uncommitted.oldest_behind(12), Some(at(3)));
        assert_eq!(uncommitted.oldest_behind(13), None);
        assert_eq!(uncommitted.settle(12).count(), 2);
        assert_eq!(uncommitted.settled(), 12);
        assert_eq!(uncommitted.oldest_behind(0), Some(at(3)));
        assert_eq!(uncommitted.behind(0).count(), 1);
        assert_eq!(uncommitted.behind(13).count(), 0);
        assert_eq!(uncommitted.settle(99).count(), 1);
        push(&mut uncommitted, at(4)); // 14: the group goes on
        uncommitted.end_group();
        push(&mut uncommitted, at(5));
        assert_eq!(uncommitted.oldest_behind(14), Some(at(5)));
        assert_eq!(uncommitted.settle(3).count(), 0);
        assert_eq!(uncommitted.settled(), 13);
    }

    #[test]
    fn a_withdrawn_write_keeps_its_number() {
        let mut uncommitted = Uncommitted::new(0);
        for _ in 0..3 {
            push(&mut uncommitted, Instant::now());
        }
        for number in [0, 2, 4] {
            uncommitted.withdraw(number);
        }
        let kept: Vec<_> = uncommitted.behind(0).map(Option::is_some).collect();
        assert_eq!(kept, [true, false, true]);
    }
}
