//! The requests under way in one session, and which of them a server means that does not say.
//!
//! Over HTTP+SSE, and on the stream that belongs to no request, nothing tells for which request a
//! server asks. In a session of one client it asks that client, whichever request it is for. In one
//! that several callers share it could ask a stranger, so there it must be certain: one request is
//! under way, and none that the server may still work on was given up before its answer. What was
//! answered is asked about no more: questions come before the answer, on the same stream.

use std::collections::BTreeSet;

/// Requests given up that are kept in mind. Of a session with more it is never certain again.
const GIVEN_UP_MAX: usize = 64;

/// The requests of a session, and where what is said for each goes.
#[derive(Debug)]
pub(super) struct UnderWay<T> {
    /// The latest last.
    running: Vec<(i64, T)>,
    /// Those given up that the server has not answered.
    given_up: BTreeSet<i64>,
    has_lost_count: bool,
}

impl<T> Default for UnderWay<T> {
    fn default() -> Self {
        Self { running: Vec::new(), given_up: BTreeSet::new(), has_lost_count: false }
    }
}

impl<T> UnderWay<T> {
    pub(super) fn begin(&mut self, id: i64, to: T) {
        self.running.push((id, to));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn find(&self, id: i64) -> Option<&T> {
        self.running.iter().find(|(other, _)| *other == id).map(|(_, to)| to)
    }

    /// The one that began last.
    pub(super) fn latest(&self) -> Option<&T> {
        self.running.last().map(|(_, to)| to)
    }

    /// The one that alone can have led to what the server asks now.
    pub(super) fn only(&self) -> Option<&T> {
        match &*self.running {
            [(_, only)] if self.given_up.is_empty() && !self.has_lost_count => Some(only),
            _ => None,
        }
    }

    /// The server has answered the request, or never got it.
    pub(super) fn settle(&mut self, id: i64) -> Option<T> {
        self.given_up.remove(&id);
        self.take(id)
    }

    /// Nobody waits for the request any more. One that is not settled yet may still be asked about.
    pub(super) fn give_up(&mut self, id: i64) -> Option<T> {
        let taken = self.take(id)?;
        if self.given_up.len() < GIVEN_UP_MAX {
            self.given_up.insert(id);
        } else {
            self.has_lost_count = true;
        }
        Some(taken)
    }

    /// Takes out all: the session is over.
    pub(super) fn end(&mut self) -> Vec<(i64, T)> {
        std::mem::take(&mut self.running)
    }

    fn take(&mut self, id: i64) -> Option<T> {
        let place = self.running.iter().position(|(other, _)| *other == id)?;
        Some(self.running.remove(place).1)
    }
}

/// Whom a question is for that does not say so.
#[derive(Debug)]
pub(super) enum Questioned<T> {
    /// For the client of this request.
    Request(T),
    /// For the one client of the session, outside any request.
    Outside,
    /// For one of several callers, and it cannot be told for which.
    Unclear,
}

impl<T> Questioned<T> {
    pub(super) fn request(self) -> Option<T> {
        match self {
            Self::Request(request) => Some(request),
            Self::Outside | Self::Unclear => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(ids: &[i64]) -> UnderWay<i64> {
        let mut under_way = UnderWay::default();
        for id in ids {
            under_way.begin(*id, *id);
        }
        under_way
    }

    #[test]
    fn one_alone_is_meant() {
        assert_eq!(with(&[]).only(), None);
        assert_eq!(with(&[1]).only(), Some(&1));
        assert_eq!(with(&[1, 2]).only(), None);
        assert_eq!(with(&[1, 2]).latest(), Some(&2));
    }

    #[test]
    fn what_was_answered_is_asked_about_no_more() {
        let mut under_way = with(&[1, 2]);
        assert_eq!(under_way.settle(1), Some(1));
        assert_eq!(under_way.only(), Some(&2));
        // Its end comes after its answer.
        assert_eq!(under_way.give_up(1), None);
        assert_eq!(under_way.only(), Some(&2));
    }

    #[test]
    fn what_was_given_up_may_be_until_it_is_answered() {
        let mut under_way = with(&[1]);
        assert_eq!(under_way.give_up(1), Some(1));
        under_way.begin(2, 2);
        assert_eq!(under_way.only(), None);
        assert_eq!(under_way.settle(1), None);
        assert_eq!(under_way.only(), Some(&2));
    }

    #[test]
    fn of_too_many_that_were_given_up_none_is_forgotten() {
        let ids: Vec<i64> = (0..).take(GIVEN_UP_MAX + 1).collect();
        let mut under_way = with(&ids);
        for id in &ids {
            assert!(under_way.give_up(*id).is_some());
        }
        assert_eq!(under_way.given_up.len(), GIVEN_UP_MAX);
        for id in &ids {
            assert!(under_way.settle(*id).is_none());
        }
        under_way.begin(1000, 1000);
        assert_eq!(under_way.only(), None);
    }
}
