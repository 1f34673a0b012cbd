//! Lines that wait in memory, in the runs that they are ordered by.

use super::chain::Span;
use super::line::{mark_payloads_left_out, write_record};
use super::record::Record;
use super::repeat::Run;

/// What a buffer has from the begin, and keeps.
const BUFFER_BYTES: usize = 64 << 10;
/// The longest run of lines under one mark: what is ordered and written is moved in such pieces.
const RUN_BYTES_MAX: usize = 64 << 10;

/// What is known of a run of lines in a buffer: those that ended within a millisecond.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// When the calls ended.
    pub(super) end_ms: u64,
    /// The earliest and the latest time in the lines.
    pub(super) span: Span,
    pub(super) bytes: u32,
    pub(super) records: u32,
}

/// What a record takes beside its line, at most.
pub(super) const MARK_BYTES: usize = size_of::<Mark>();

/// Lines, and the runs they are in.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) lines: Vec<u8>,
    pub(super) marks: Vec<Mark>,
    /// What the lines of the last run have said.
    said: Run,
}

impl Buffer {
    pub(super) fn new() -> Self {
        Self {
            lines: Vec::with_capacity(BUFFER_BYTES),
            marks: Vec::with_capacity(64),
            said: Run::default(),
        }
    }

    /// What it counts for against the bound.
    pub(super) fn weight(&self) -> u64 {
        (self.lines.len() + self.marks.len() * MARK_BYTES) as u64
    }

    pub(super) fn records(&self) -> u64 {
        self.marks.iter().map(|mark| u64::from(mark.records)).sum()
    }

    /// Appends the line of `record`: to the last run, or as the first of the next, which refers to
    /// none before it. Its bytes.
    pub(super) fn append(
        &mut self,
        record: &Record<'_>,
        payload_bytes_max: usize,
        left_out: bool,
    ) -> u32 {
        let end_ms = record.end_ms();
        let goes_on = self.marks.last().is_some_and(|mark| {
            // Lines stay in their order, whatever the clock does.
            mark.end_ms >= end_ms && mark.bytes as usize <= RUN_BYTES_MAX
        });
        if !goes_on {
            let end_ms = self.marks.last().map_or(end_ms, |last| last.end_ms.max(end_ms));
            self.marks.push(Mark { end_ms, span: Span::EMPTY, bytes: 0, records: 0 });
            self.said = Run::default();
        }
        let begin = self.lines.len();
        write_record(&mut self.lines, record, &mut self.said, payload_bytes_max);
        if left_out {
            mark_payloads_left_out(&mut self.lines);
        }
        // Lossless: payloads have at most 1 MiB each.
        let bytes = (self.lines.len() - begin) as u32;
        if let Some(mark) = self.marks.last_mut() {
            mark.span.include(record.time_ms);
            mark.bytes += bytes;
            mark.records += 1;
        }
        bytes
    }

    /// Makes it empty. It keeps what it was filled with again and again; what a burst made of it is
    /// given back the next time.
    pub(super) fn clear(&mut self) {
        let (lines, marks) = (self.lines.len(), self.marks.len());
        self.lines.clear();
        self.marks.clear();
        self.lines.shrink_to((2 * lines).max(BUFFER_BYTES));
        self.marks.shrink_to((2 * marks).max(BUFFER_BYTES / MARK_BYTES));
    }
}
