//! What was taken from the cores and is not yet written, in the order in which it will be.
//!
//! Lines stay where their cores wrote them until they are on disk. They are ordered by when their
//! calls ended, to the millisecond; those of one core stay as that core appended them.

use std::sync::Arc;

use super::buffer::{Buffer, Mark};
use super::lane::{Lane, Urgency};
use super::shared::Shared;

/// A lane, and the buffers its own are exchanged for.
struct Source {
    lane: Arc<Lane>,
    taken: [Buffer; 2],
}

/// Where a run of lines is.
#[derive(Clone, Copy)]
struct Place {
    end_ms: u64,
    source: u32,
    buffer: u32,
    mark: usize,
    begin: usize,
}

/// Lanes, and what was taken from them.
#[derive(Default)]
pub(super) struct Group {
    sources: Vec<Source>,
    order: Vec<Place>,
}

impl Group {
    /// Takes up new lanes and lets those go whose cores have. Nothing that was taken may be left.
    pub(super) fn find_lanes(&mut self, shared: &Shared) {
        let lanes = shared.lanes();
        self.sources.retain(|source| lanes.iter().any(|lane| Arc::ptr_eq(lane, &source.lane)));
        for lane in lanes {
            if !self.sources.iter().any(|source| Arc::ptr_eq(&lane, &source.lane)) {
                self.sources.push(Source { lane, taken: [Buffer::new(), Buffer::new()] });
            }
        }
    }

    /// How soon the lanes want to be emptied.
    pub(super) fn wants(&self) -> Option<Urgency> {
        self.sources.iter().filter_map(|source| source.lane.wants()).max()
    }

    /// Takes what the cores have. Calls `dropped` for each lane with the records that it dropped.
    pub(super) fn take(&mut self, mut dropped: impl FnMut(usize, u64)) {
        self.order.clear();
        for (at, source) in self.sources.iter_mut().enumerate() {
            source.lane.take(&mut source.taken);
            // A core that changed buffers may have had its clock set back there.
            let mut end_ms = 0;
            for (buffer, taken) in source.taken.iter().enumerate() {
                let mut begin = 0;
                for (number, mark) in taken.marks.iter().enumerate() {
                    let (source, buffer) = (at as u32, buffer as u32);
                    end_ms = mark.end_ms.max(end_ms);
                    self.order.push(Place { end_ms, source, buffer, mark: number, begin });
                    begin += mark.bytes as usize;
                }
            }
            let news = source.lane.note_dropped();
            if news > 0 {
                dropped(source.lane.core(), news);
            }
        }
        // Stable: what a core appended at one time stays in its order.
        self.order.sort_by_key(|place| place.end_ms);
    }

    /// Runs of lines that were taken.
    pub(super) fn runs(&self) -> usize {
        self.order.len()
    }

    /// What is known of a run.
    pub(super) fn mark(&self, run: usize) -> Option<&Mark> {
        let place = self.order.get(run)?;
        self.buffer(place).marks.get(place.mark)
    }

    /// Calls `piece` with the bytes of some runs, in order; runs that follow each other in a buffer
    /// are one piece.
    pub(super) fn pieces<'a>(
        &'a self,
        runs: std::ops::Range<usize>,
        mut piece: impl FnMut(&'a [u8]),
    ) {
        let mut open: Option<(&Place, usize)> = None;
        for place in self.order.get(runs).unwrap_or_default() {
            let bytes =
                self.buffer(place).marks.get(place.mark).map_or(0, |mark| mark.bytes as usize);
            open = match open {
                Some((first, end)) if first.is_in_one_with(place) && end == place.begin => {
                    Some((first, end + bytes))
                }
                before => {
                    if let Some((first, end)) = before {
                        piece(self.lines(first, end));
                    }
                    Some((place, place.begin + bytes))
                }
            };
        }
        if let Some((first, end)) = open {
            piece(self.lines(first, end));
        }
    }

    /// Everything that was taken is on disk.
    pub(super) fn finish(&mut self) {
        for source in &mut self.sources {
            source.lane.finish(&mut source.taken);
        }
        self.order.clear();
    }

    /// Records from that run on, and those that nobody has taken.
    pub(super) fn records_from(&self, run: usize) -> u64 {
        let taken = (run..self.order.len()).filter_map(|run| self.mark(run));
        taken.map(|mark| u64::from(mark.records)).sum::<u64>()
            + self.sources.iter().map(|source| source.lane.records()).sum::<u64>()
    }

    fn buffer(&self, place: &Place) -> &Buffer {
        &self.sources[place.source as usize].taken[place.buffer as usize]
    }

    fn lines(&self, first: &Place, end: usize) -> &[u8] {
        self.buffer(first).lines.get(first.begin..end).unwrap_or_default()
    }
}

impl Place {
    fn is_in_one_with(&self, other: &Self) -> bool {
        (self.source, self.buffer) == (other.source, other.buffer)
    }
}
