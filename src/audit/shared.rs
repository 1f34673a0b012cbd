//! What all cores share with the audit thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Instant;

use parking_lot::Mutex;

use super::lane::Lane;
use crate::settings::Audit;
use crate::telemetry::{AuditFigures, Counter, Gauge};

/// How long a record may wait for the disk before the log says that it cannot be written.
const STALLED_AFTER_MS: u64 = 5000;

/// Flags and figures; each figure is written by the audit thread only.
#[derive(Debug)]
pub(super) struct Shared {
    /// When the clock of [`Shared::clock_ms`] began.
    begun: Instant,
    is_enabled: bool,
    is_strict: bool,
    is_closed: AtomicBool,
    is_failing: AtomicBool,
    thread: OnceLock<Thread>,
    lanes: Mutex<Vec<Arc<Lane>>>,
    has_new_lanes: AtomicBool,
    /// Losses of lanes that are no more.
    past_dropped: AtomicU64,
    past_left_out: AtomicU64,
    pub(super) records: Counter,
    pub(super) bytes: Counter,
    pub(super) segments: Gauge,
    pub(super) write_errors: Counter,
    /// Lets a test be the disk.
    #[cfg(test)]
    pub(super) disk: super::tests::Disk,
}

impl Shared {
    pub(super) fn new(settings: &Audit) -> Self {
        Self {
            begun: Instant::now(),
            is_enabled: settings.enabled,
            is_strict: settings.enabled && settings.strict,
            is_closed: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
            thread: OnceLock::new(),
            lanes: Mutex::default(),
            has_new_lanes: AtomicBool::new(false),
            past_dropped: AtomicU64::new(0),
            past_left_out: AtomicU64::new(0),
            records: Counter::default(),
            bytes: Counter::default(),
            segments: Gauge::default(),
            write_errors: Counter::default(),
            #[cfg(test)]
            disk: super::tests::Disk::default(),
        }
    }

    /// Milliseconds of a clock that never steps, the same for all cores.
    pub(super) fn clock_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Unix time in milliseconds; a test can move it.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "a test's disk has its own time"))]
    pub(super) fn now_ms(&self) -> u64 {
        #[cfg(test)]
        return super::worker::now_ms() + self.disk.later_ms();
        #[cfg(not(test))]
        super::worker::now_ms()
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    pub(super) fn is_strict(&self) -> bool {
        self.is_strict
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(super) fn is_writable(&self) -> bool {
        !self.is_failing.load(Ordering::Relaxed)
    }

    /// Whether a record has been waiting for the disk for too long: it hangs, or is far too slow.
    pub(super) fn is_stalled_at(&self, clock_ms: u64) -> bool {
        let lanes = self.lanes.lock();
        let oldest = lanes.iter().filter_map(|lane| lane.waits_since_ms()).min();
        oldest.is_some_and(|since| clock_ms.saturating_sub(since) > STALLED_AFTER_MS)
    }

    pub(super) fn set_writable(&self, is_writable: bool) {
        self.is_failing.store(!is_writable, Ordering::Relaxed);
    }

    /// Nothing is taken any more.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.wake();
    }

    /// Says which thread [`Shared::wake`] wakes.
    pub(super) fn set_thread(&self, thread: Thread) {
        let _ = self.thread.set(thread);
    }

    pub(super) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    pub(super) fn add_lane(&self, lane: Arc<Lane>) {
        self.lanes.lock().push(lane);
        self.has_new_lanes.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether one was added since they were last asked for.
    pub(super) fn has_new_lanes(&self) -> bool {
        self.has_new_lanes.load(Ordering::Acquire)
    }

    /// The lanes there are; those that are abandoned are let go.
    pub(super) fn lanes(&self) -> Vec<Arc<Lane>> {
        self.has_new_lanes.store(false, Ordering::Release);
        let mut lanes = self.lanes.lock();
        lanes.retain(|lane| {
            let is_done = lane.is_done();
            if is_done {
                self.past_dropped.fetch_add(lane.dropped.value(), Ordering::Relaxed);
                self.past_left_out.fetch_add(lane.payloads_left_out.value(), Ordering::Relaxed);
            }
            !is_done
        });
        lanes.clone()
    }

    pub(super) fn figures(&self) -> AuditFigures {
        let writable = self.is_writable() && !self.is_stalled_at(self.clock_ms());
        let lanes = self.lanes.lock();
        let sum = |value: fn(&Lane) -> u64| lanes.iter().map(|lane| value(lane)).sum::<u64>();
        AuditFigures {
            records: self.records.value(),
            dropped: self.past_dropped.load(Ordering::Relaxed) + sum(|lane| lane.dropped.value()),
            bytes: self.bytes.value(),
            segments: u64::try_from(self.segments.value()).unwrap_or_default(),
            write_errors: self.write_errors.value(),
            payloads_left_out: self.past_left_out.load(Ordering::Relaxed)
                + sum(|lane| lane.payloads_left_out.value()),
            writable,
        }
    }
}
