//! The way of records from a core to the audit thread.
//!
//! Invariants worth naming:
//! - A core never waits here. It writes into one of two buffers under a lock that it only tries;
//!   the thread holds one of the two at a time, for the moment of an exchange.
//! - Bytes that were appended and are not yet on disk are at most `bytes_max`, wherever they are.
//! - What a reservation holds is never given to another record.
//! - A record that does not fit is counted, first without its payloads, then as dropped.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::chain::Span;
use super::line::{RECORD_BYTES_MAX, mark_payloads_left_out, payload_bytes_bound, write_record};
use super::record::Record;
use super::shared::Shared;
use crate::telemetry::Counter;

/// What a buffer has from the begin, and keeps.
const BUFFER_BYTES: usize = 64 << 10;
/// A buffer with more in it is to be taken at once: what waits longer has left the processor's
/// caches by the time it is hashed and written.
const TAKEN_ABOVE: u64 = 256 << 10;

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
const MARK_BYTES: usize = size_of::<Mark>();

/// Lines, and the runs they are in.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) lines: Vec<u8>,
    pub(super) marks: Vec<Mark>,
}

impl Buffer {
    pub(super) fn new() -> Self {
        Self { lines: Vec::with_capacity(BUFFER_BYTES), marks: Vec::with_capacity(64) }
    }

    /// What it counts for against the bound.
    fn weight(&self) -> u64 {
        (self.lines.len() + self.marks.len() * MARK_BYTES) as u64
    }

    pub(super) fn records(&self) -> u64 {
        self.marks.iter().map(|mark| u64::from(mark.records)).sum()
    }

    /// Notes that a line of `record` was appended.
    fn mark(&mut self, record: &Record<'_>, bytes: u32) {
        let end_ms = record.end_ms();
        if let Some(mark) = self.marks.last_mut()
            // Lines stay in their order, whatever the clock does.
            && mark.end_ms >= end_ms
            && mark.bytes as usize <= RUN_BYTES_MAX
        {
            mark.span.include(record.time_ms);
            mark.bytes += bytes;
            mark.records += 1;
            return;
        }
        let mut span = Span::EMPTY;
        span.include(record.time_ms);
        let end_ms = self.marks.last().map_or(end_ms, |last| last.end_ms.max(end_ms));
        self.marks.push(Mark { end_ms, span, bytes, records: 1 });
    }

    /// Makes it empty. It keeps what it was filled with again and again; what a burst made of it is
    /// given back the next time.
    fn clear(&mut self) {
        let (lines, marks) = (self.lines.len(), self.marks.len());
        self.lines.clear();
        self.marks.clear();
        self.lines.shrink_to((2 * lines).max(BUFFER_BYTES));
        self.marks.shrink_to((2 * marks).max(BUFFER_BYTES / MARK_BYTES));
    }
}

/// How much a lane wants the thread.
const SILENT: u8 = 0;
const HAS_RECORDS: u8 = 1;
const IS_FILLING: u8 = 2;

/// In the place of a time.
const NEVER: u64 = u64::MAX;

/// What a core and the thread share. The counters have one writer each.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Lane {
    core: usize,
    bytes_max: u64,
    payload_bytes_max: usize,
    buffers: [Mutex<Buffer>; 2],
    /// Bytes ever appended: the core's.
    appended: AtomicU64,
    /// Bytes reserved and not yet used: the core's.
    reserved: AtomicU64,
    /// Bytes that were appended and are on disk: the thread's.
    finished: AtomicU64,
    wants: AtomicU8,
    /// When the first of the records came that nobody has taken, in the log's own milliseconds: the
    /// core's. Says nothing while the lane is silent.
    since_ms: AtomicU64,
    /// The same of those that were taken and are not on disk, or [`NEVER`]: the thread's.
    taken_since_ms: AtomicU64,
    has_writer: AtomicBool,
    pub(super) dropped: Counter,
    /// Losses that the log tells of: the thread's.
    noted_dropped: Counter,
    pub(super) payloads_left_out: Counter,
}

impl Lane {
    pub(super) fn new(core: usize, bytes_max: usize, payload_bytes_max: usize) -> Self {
        Self {
            core,
            bytes_max: bytes_max as u64,
            payload_bytes_max,
            buffers: [Mutex::new(Buffer::new()), Mutex::new(Buffer::new())],
            appended: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            wants: AtomicU8::new(SILENT),
            since_ms: AtomicU64::new(NEVER),
            taken_since_ms: AtomicU64::new(NEVER),
            has_writer: AtomicBool::new(true),
            dropped: Counter::default(),
            noted_dropped: Counter::default(),
            payloads_left_out: Counter::default(),
        }
    }

    pub(super) fn core(&self) -> usize {
        self.core
    }

    /// Bytes that are not yet on disk.
    pub(super) fn waiting(&self) -> u64 {
        let appended = self.appended.load(Ordering::Relaxed);
        appended.saturating_sub(self.finished.load(Ordering::Relaxed))
    }

    /// Whether the core has gone and everything of it is in the log.
    pub(super) fn is_done(&self) -> bool {
        !self.has_writer.load(Ordering::Acquire)
            && self.waiting() == 0
            && self.dropped.value() == self.noted_dropped.value()
    }

    /// Losses that the log does not tell of yet; from now on it does.
    pub(super) fn note_dropped(&self) -> u64 {
        let news = self.dropped.value() - self.noted_dropped.value();
        self.noted_dropped.add(news);
        news
    }

    /// Whether there is something to take, and whether that is urgent.
    pub(super) fn wants(&self) -> Option<Urgency> {
        match self.wants.load(Ordering::Acquire) {
            SILENT => None,
            HAS_RECORDS => Some(Urgency::Soon),
            _ => Some(Urgency::Now),
        }
    }

    /// Takes everything, in the order in which it was appended. `taken` must be empty.
    pub(super) fn take(&self, taken: &mut [Buffer; 2]) {
        // Before the exchange: what is appended later asks again.
        if self.wants.swap(SILENT, Ordering::AcqRel) != SILENT {
            self.taken_since_ms.store(self.since_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for (buffer, taken) in self.buffers.iter().zip(taken) {
            std::mem::swap(&mut *buffer.lock(), taken);
        }
    }

    /// What was taken is on disk.
    pub(super) fn finish(&self, taken: &mut [Buffer; 2]) {
        let weight: u64 = taken.iter().map(Buffer::weight).sum();
        let finished = self.finished.load(Ordering::Relaxed);
        self.finished.store(finished + weight, Ordering::Release);
        self.taken_since_ms.store(NEVER, Ordering::Relaxed);
        taken.iter_mut().for_each(Buffer::clear);
    }

    /// Records that nobody has taken.
    pub(super) fn records(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.lock().records()).sum()
    }

    /// When the oldest record came that is not on disk, in the log's own milliseconds.
    pub(super) fn waits_since_ms(&self) -> Option<u64> {
        let is_silent = self.wants.load(Ordering::Acquire) == SILENT;
        let untaken = if is_silent { NEVER } else { self.since_ms.load(Ordering::Relaxed) };
        let oldest = untaken.min(self.taken_since_ms.load(Ordering::Relaxed));
        (oldest != NEVER).then_some(oldest)
    }

    fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.waiting() + self.reserved() + bytes as u64 <= self.bytes_max
    }

    /// Appends `record` in the room that must be there. Core only.
    fn append(&self, record: &Record<'_>, bound: usize, left_out: bool, shared: &Shared) {
        let Some(mut buffer) = self.buffers.iter().find_map(Mutex::try_lock) else {
            // The thread holds one at most, and this core is the only other.
            self.dropped.increment();
            return;
        };
        let begin = buffer.lines.len();
        buffer.lines.reserve(bound);
        write_record(&mut buffer.lines, record, self.payload_bytes_max);
        if left_out {
            mark_payloads_left_out(&mut buffer.lines);
        }
        // Lossless: payloads have at most 1 MiB each.
        let bytes = (buffer.lines.len() - begin) as u32;
        let marks = buffer.marks.len();
        buffer.mark(record, bytes);
        let weight = u64::from(bytes) + ((buffer.marks.len() - marks) * MARK_BYTES) as u64;
        let is_filling = buffer.weight() > TAKEN_ABOVE.min(self.bytes_max / 4);
        drop(buffer);
        let appended = self.appended.load(Ordering::Relaxed);
        self.appended.store(appended + weight, Ordering::Relaxed);
        let wants = if is_filling { IS_FILLING } else { HAS_RECORDS };
        // The thread sets this before it locks a buffer: where it is read as it was before, the
        // thread has yet to look into this one.
        let wanted = self.wants.load(Ordering::Relaxed);
        if wanted == SILENT {
            self.since_ms.store(shared.clock_ms(), Ordering::Relaxed);
        }
        if wanted < wants && self.wants.fetch_max(wants, Ordering::AcqRel) < wants {
            shared.wake();
        }
    }
}

/// How soon a lane wants to be emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// When its records have gathered for a while.
    Soon,
    /// At once: it fills up.
    Now,
}

/// Why a record is not in the log. It was counted, and the log itself will say how many are
/// missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// The disk does not take records as fast as they come.
    #[error("the audit log cannot be written as fast as records come")]
    NoRoom,
    /// The log was stopped.
    #[error("the audit log is closed")]
    Closed,
}

/// Why a call must not be run, where the log is strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The disk does not take records as fast as they come.
    #[error("the audit log cannot be written as fast as records come; try again later")]
    NoRoom,
    /// Writing fails.
    #[error("the audit log cannot be written; the operator must make room on its disk")]
    NotWritable,
    /// The log was stopped.
    #[error("the audit log is closed")]
    Closed,
}

/// The end of the log that belongs to one core. It may move to that core's thread; from then on it
/// is the core's alone.
pub struct Writer {
    shared: Arc<Shared>,
    lane: Arc<Lane>,
    only_here: PhantomData<Cell<()>>,
}

/// Room for one record, kept from before a call until its record is appended. Dropped unused, it
/// gives the room back. It belongs on the core whose writer made it.
#[must_use = "dropped, it keeps no room"]
pub struct Reservation {
    lane: Option<Arc<Lane>>,
    only_here: PhantomData<*const ()>,
}

/// Room a record without payloads takes at most.
const ROOM: usize = RECORD_BYTES_MAX + MARK_BYTES;

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, lane: Arc<Lane>) -> Self {
        Self { shared, lane, only_here: PhantomData }
    }

    /// Appends a record; it is with the kernel within some 50 ms. Never waits.
    ///
    /// # Errors
    /// It did not fit, and is counted.
    pub fn append(&self, record: &Record<'_>) -> Result<(), Dropped> {
        if !self.shared.is_enabled() {
            return Ok(());
        }
        if self.shared.is_closed() {
            self.lane.dropped.increment();
            return Err(Dropped::Closed);
        }
        if !record.has_payloads() {
            if self.lane.has_room_for(ROOM) {
                self.lane.append(record, RECORD_BYTES_MAX, false, &self.shared);
                return Ok(());
            }
        } else if self.append_with_payloads(record) {
            return Ok(());
        }
        self.lane.dropped.increment();
        Err(Dropped::NoRoom)
    }

    /// Appends a record in the room that was reserved for it; only payloads can be left out.
    ///
    /// # Errors
    /// The log was stopped since.
    pub fn append_reserved(
        &self,
        reservation: Reservation,
        record: &Record<'_>,
    ) -> Result<(), Dropped> {
        drop(reservation);
        self.append(record)
    }

    /// Whether a record appended now would fit. Says nothing about the next one.
    pub fn has_room(&self) -> bool {
        self.lane.has_room_for(ROOM)
    }

    /// Bytes that were appended here and are not yet with the kernel.
    pub fn waiting_bytes(&self) -> u64 {
        self.lane.waiting()
    }

    /// Before a call: keeps room for its record. Where the log is not strict the answer is always
    /// yes, and nothing is kept.
    ///
    /// # Errors
    /// The log is strict, and the call must not be run.
    pub fn reserve(&self) -> Result<Reservation, Refused> {
        if !self.shared.is_strict() {
            return Ok(Reservation { lane: None, only_here: PhantomData });
        }
        if self.shared.is_closed() {
            return Err(Refused::Closed);
        }
        if !self.shared.is_writable() {
            return Err(Refused::NotWritable);
        }
        if !self.lane.has_room_for(ROOM) {
            return Err(Refused::NoRoom);
        }
        self.lane.reserved.store(self.lane.reserved() + ROOM as u64, Ordering::Relaxed);
        Ok(Reservation { lane: Some(Arc::clone(&self.lane)), only_here: PhantomData })
    }

    /// With its payloads, or without where only they do not fit.
    fn append_with_payloads(&self, record: &Record<'_>) -> bool {
        let payloads = payload_bytes_bound(record, self.lane.payload_bytes_max);
        if self.lane.has_room_for(ROOM + payloads) {
            self.lane.append(record, RECORD_BYTES_MAX + payloads, false, &self.shared);
            return true;
        }
        let fits = self.lane.has_room_for(ROOM);
        if fits {
            self.lane.payloads_left_out.increment();
            let record = record.without_payloads();
            self.lane.append(&record, RECORD_BYTES_MAX, true, &self.shared);
        }
        fits
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("core", &self.lane.core).finish_non_exhaustive()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.lane.has_writer.store(false, Ordering::Release);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("keeps_room", &self.lane.is_some()).finish()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(lane) = &self.lane {
            let reserved = lane.reserved().saturating_sub(ROOM as u64);
            lane.reserved.store(reserved, Ordering::Relaxed);
        }
    }
}
