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
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::buffer::{Buffer, MARK_BYTES};
use super::line::{RECORD_BYTES_MAX, payload_bytes_bound};
use super::record::Record;
use super::shared::Shared;
use crate::telemetry::Counter;

/// A buffer with more in it is to be taken at once: what waits longer has left the processor's
/// caches by the time it is hashed and written.
const TAKEN_ABOVE: u64 = 256 << 10;

/// How often a core tries to lock one buffer or the other. The third succeeds, unless the thread has
/// written everything in between; so that nothing depends on it, there is an end.
const LOCK_TRIES: usize = 16;

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
    /// The buffer that was appended to last: the core's.
    current: AtomicUsize,
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
            current: AtomicUsize::new(0),
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

    /// A buffer to append to: the one that was appended to last, as long as the thread does not take
    /// it. So all that waits is in one, or what is in the first was appended before the rest. Core
    /// only.
    fn try_lock(&self) -> Option<MutexGuard<'_, Buffer>> {
        let first = self.current.load(Ordering::Relaxed);
        // The thread holds one at most, but may go from the one to the other between two tries. Then
        // the one is free, until everything is written and more is taken.
        for at in (0..LOCK_TRIES).map(|number| (first + number) % 2) {
            if let Some(buffer) = self.buffers[at].try_lock() {
                self.current.store(at, Ordering::Relaxed);
                return Some(buffer);
            }
        }
        None
    }

    /// Appends `record` in the room that must be there. Core only.
    fn append(&self, record: &Record<'_>, bound: usize, left_out: bool, shared: &Shared) {
        let Some(mut buffer) = self.try_lock() else {
            self.dropped.increment();
            return;
        };
        buffer.lines.reserve(bound);
        let marks = buffer.marks.len();
        let bytes = buffer.append(record, self.payload_bytes_max, left_out);
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

#[cfg(test)]
mod tests {
    use super::super::members::Asker;
    use super::super::record::{CallType, Transport};
    use super::*;
    use crate::settings::Audit;
    use crate::telemetry::ExecutionIds;

    /// Appends a record that ended at that time.
    fn append(lane: &Lane, shared: &Shared, asker: &Asker, time_ms: u64) {
        let id = ExecutionIds::new(1).next(time_ms);
        let (transport, call_type) = (Transport::Rest, CallType::RestInvocation);
        let record = Record::new(time_ms, id, asker, transport, call_type, "POST");
        lane.append(&record, RECORD_BYTES_MAX, false, shared);
    }

    fn times(taken: &[Buffer; 2]) -> Vec<u64> {
        let lines = taken.iter().flat_map(|buffer| buffer.lines.split(|byte| *byte == b'\n'));
        lines.filter(|line| !line.is_empty()).map(super::super::resume::record_time).collect()
    }

    #[test]
    fn whichever_buffer_is_being_taken_records_stay_in_their_order() {
        let lane = Lane::new(0, 1 << 20, 0);
        let (shared, asker) = (Shared::new(&Audit::default()), Asker::new("a", "b", "c", None));
        let mut taken = [Buffer::new(), Buffer::new()];
        for held in [0, 1, 0, 0, 1] {
            let guard = lane.buffers[held].lock();
            append(&lane, &shared, &asker, 7);
            drop(guard);
            append(&lane, &shared, &asker, 8);
            append(&lane, &shared, &asker, 9);
            lane.take(&mut taken);
            assert_eq!(times(&taken), [7, 8, 9], "{held}");
            assert!(taken.iter().any(|buffer| buffer.lines.is_empty()));
            lane.finish(&mut taken);
        }
        assert_eq!((lane.dropped.value(), lane.waiting()), (0, 0));
    }

    #[test]
    fn nothing_is_lost_however_often_records_are_taken() {
        const RECORDS: u64 = 100_000;
        let lane = Lane::new(0, 1 << 30, 0);
        let (shared, asker) = (Shared::new(&Audit::default()), Asker::new("a", "b", "c", None));
        let found = std::thread::scope(|scope| {
            let core = scope.spawn(|| {
                for number in 0..RECORDS {
                    append(&lane, &shared, &asker, number);
                }
            });
            let mut taken = [Buffer::new(), Buffer::new()];
            let mut found = Vec::new();
            let mut is_last = false;
            while !is_last {
                is_last = core.is_finished();
                lane.take(&mut taken);
                found.extend(times(&taken));
                lane.finish(&mut taken);
            }
            found
        });
        assert_eq!(lane.dropped.value(), 0);
        assert!(found.iter().copied().eq(0..RECORDS), "{} found", found.len());
    }
}
