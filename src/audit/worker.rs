//! The audit thread: takes what the cores have and writes it as blocks, one write each.
//!
//! Invariants worth naming:
//! - What was taken is kept until it is written; while writing fails nothing more is taken, and
//!   the bounds of the lanes hold.
//! - The chain moves on only when its bytes are with the kernel: after a failure the same block is
//!   written again.
//! - The head is replaced after the segment was synced, never before.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::AuditError;
use super::chain::{Chain, Link, Span};
use super::compose::{Composition, Pending, SegmentSoFar};
use super::directory::SegmentFile;
use super::group::Group;
use super::head::Head;
use super::key::SigningKey;
use super::lane::Urgency;
use super::line;
use super::resume::Resumed;
use super::retention;
use super::segment::Segment;
use super::shared::Shared;
use crate::settings::Audit;

/// How long records gather before they are taken. Rest of the 50 ms: for waking and writing.
const GATHER: Duration = Duration::from_millis(35);
/// How long to wait before what failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often to look for segments that are too old.
const RETENTION_EVERY: Duration = Duration::from_mins(10);
/// Least time between two log lines about losses.
const LOSSES_LOGGED_EVERY: Duration = Duration::from_secs(10);
/// Blocks between two checkpoints.
const CHECKPOINT_BLOCKS: u64 = 1000;

/// Milliseconds since the Unix epoch.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    settings: Audit,
    directory: PathBuf,
    key: SigningKey,
    chain: Chain,
    /// None: the next block begins one.
    segment: Option<Segment>,
    group: Group,
    /// The first of its runs that was not composed yet.
    next: usize,
    /// Lines of this thread that belong before the group.
    notes: Vec<u8>,
    note_count: u64,
    pending: Option<Pending>,
    /// The last block under a checkpoint.
    signed_block: u64,
    sign_at: Option<Instant>,
    sync_at: Option<Instant>,
    retention_at: Instant,
    retry_at: Option<Instant>,
    losses_logged_at: Option<Instant>,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<Shared>,
        settings: Audit,
        directory: PathBuf,
        key: SigningKey,
        resumed: Resumed,
    ) -> Self {
        let mut worker = Self {
            shared,
            settings,
            directory,
            key,
            signed_block: resumed.signed_block,
            chain: resumed.chain,
            segment: resumed.segment,
            group: Group::default(),
            next: 0,
            notes: resumed.notes,
            note_count: resumed.note_count,
            pending: None,
            sign_at: None,
            sync_at: None,
            retention_at: Instant::now(),
            retry_at: None,
            losses_logged_at: None,
        };
        let now_ms = worker.shared.now_ms();
        worker.note(|out| line::write_started(out, now_ms));
        worker
    }

    /// Runs until the log is closed. An error: what was accepted is not all on disk.
    pub(super) fn run(mut self) -> Result<(), AuditError> {
        loop {
            let is_closed = self.shared.is_closed();
            if self.is_written() {
                self.group.find_lanes(&self.shared);
                self.take();
            }
            if is_closed {
                return self.finish();
            }
            self.write_group(false);
            self.keep_house();
            self.wait();
        }
    }

    /// Everything that was accepted, the last words, and a checkpoint.
    fn finish(mut self) -> Result<(), AuditError> {
        self.retry_at = None;
        self.write_group(false);
        if self.is_written() {
            self.take();
            let now_ms = self.shared.now_ms();
            self.note(|out| line::write_stopped(out, now_ms));
            self.write_group(true);
        }
        let lost = self.group.records_from(self.next)
            + self.pending.as_ref().map_or(0, |pending| pending.records);
        if self.is_written() && self.signed_block == self.chain.last().block {
            Ok(())
        } else {
            Err(AuditError::NotWritten { directory: self.directory, records: lost })
        }
    }

    /// Sleeps until records have gathered, or something is due.
    fn wait(&self) {
        let begun = Instant::now();
        let mut gather_until = None;
        loop {
            let now = Instant::now();
            let mut due = [self.retry_at, self.sync_at, self.sign_at, Some(self.retention_at)]
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(now + RETENTION_EVERY);
            if let Some(retry_at) = self.retry_at {
                // Nothing else can be done before.
                due = retry_at;
            } else {
                match self.group.wants() {
                    Some(Urgency::Now) => return,
                    Some(Urgency::Soon) => {
                        let until = *gather_until.get_or_insert(now.max(begun) + GATHER);
                        due = due.min(until);
                    }
                    None => {}
                }
            }
            let has_new_lanes = self.retry_at.is_none() && self.shared.has_new_lanes();
            if now >= due || self.shared.is_closed() || has_new_lanes {
                return;
            }
            thread::park_timeout(due - now);
        }
    }

    /// Whether nothing waits that was taken.
    fn is_written(&self) -> bool {
        self.pending.is_none() && self.next == self.group.runs()
    }

    fn note(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.notes);
        self.note_count += 1;
    }

    /// Takes what the cores have.
    fn take(&mut self) {
        let now_ms = self.shared.now_ms();
        let mut losses = 0;
        let (notes, note_count) = (&mut self.notes, &mut self.note_count);
        self.next = 0;
        self.group.take(|core, dropped| {
            line::write_dropped(notes, now_ms, core, dropped);
            *note_count += 1;
            losses += dropped;
        });
        if losses > 0 {
            self.log_losses(losses);
        }
    }

    fn log_losses(&mut self, losses: u64) {
        let now = Instant::now();
        if self.losses_logged_at.is_none_or(|at| now >= at + LOSSES_LOGGED_EVERY) {
            self.losses_logged_at = Some(now);
            tracing::warn!(
                records = losses,
                "audit records were dropped: the disk does not take them as fast as they come"
            );
        }
    }

    /// Writes the group, block by block, until it is written or writing fails.
    fn write_group(&mut self, is_last: bool) {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        loop {
            if self.pending.is_none() {
                if self.next == self.group.runs() && self.notes.is_empty() {
                    break;
                }
                self.compose(is_last);
            }
            if !self.write_pending() {
                return;
            }
        }
        self.group.finish();
        self.next = 0;
    }

    /// Makes the next block, and signs it where a checkpoint is due.
    fn compose(&mut self, is_last: bool) {
        let now_ms = self.shared.now_ms();
        let segment = self
            .segment
            .as_ref()
            .map(|segment| SegmentSoFar { span: segment.span, length: segment.length() });
        let mut block = Composition {
            chain: &self.chain,
            segment,
            group: &self.group,
            next: self.next,
            notes: std::mem::take(&mut self.notes),
            note_count: std::mem::take(&mut self.note_count),
            key: &self.key,
            now_ms,
        }
        .compose();
        let is_old = self.segment.as_ref().is_some_and(|segment| {
            now_ms.saturating_sub(segment.begun_ms) / 1000 >= self.settings.segment_seconds
        });
        let is_full = segment
            .is_some_and(|segment| block.length_behind(segment) >= self.settings.segment_bytes_max);
        let is_due = self.sign_at.is_some_and(|at| Instant::now() >= at)
            || block.link.block - self.signed_block >= CHECKPOINT_BLOCKS;
        if is_old || is_full || is_due || (is_last && block.is_last_of(&self.group)) {
            block.sign(&self.key, now_ms, is_old || is_full);
        }
        let pending = block.finish();
        self.next = pending.runs.end;
        self.pending = Some(pending);
    }

    /// Writes the block that was made. False: not yet.
    fn write_pending(&mut self) -> bool {
        let Some(pending) = self.pending.take() else { return true };
        if let Err(error) = self.append(&pending) {
            self.failed("write", &error);
            self.pending = Some(pending);
            return false;
        }
        self.succeeded();
        self.shared.records.add(pending.records);
        self.chain = pending.chain;
        if let Some(segment) = &mut self.segment {
            segment.span = pending.span;
        }
        let now = Instant::now();
        let sync_ms = Duration::from_millis(self.settings.sync_ms);
        self.sync_at.get_or_insert(now + sync_ms);
        if let Some(link) = pending.signed {
            self.signed(link);
        } else {
            let wait = Duration::from_secs(self.settings.checkpoint_seconds);
            self.sign_at.get_or_insert(now + wait);
            if self.settings.sync_ms == 0 {
                self.sync();
            }
        }
        if pending.ends_segment {
            self.segment = None;
            self.retain();
        }
        true
    }

    fn append(&mut self, pending: &Pending) -> std::io::Result<()> {
        let segment = match &mut self.segment {
            Some(segment) => segment,
            none => {
                let name = SegmentFile::new(&self.directory, self.chain.last().block + 1);
                let segment = Segment::create(name, self.shared.now_ms())?;
                self.shared.segments.add(1);
                none.insert(segment)
            }
        };
        segment.append(&mut pending.pieces(&self.group), &self.shared)?;
        self.shared.bytes.add(pending.bytes);
        Ok(())
    }

    /// A checkpoint was written: brings it to the disk, and a copy of it beside the segments.
    fn signed(&mut self, link: Link) {
        self.signed_block = link.block;
        self.sign_at = None;
        if !self.sync() {
            return;
        }
        let written = Head::write(&self.directory, link, self.shared.now_ms(), &self.key);
        if let Err(error) = written {
            self.count_error("write the last checkpoint beside", &error);
        }
        if self.segment.as_ref().is_some_and(|segment| !segment.is_there()) {
            tracing::error!(
                directory = %self.directory.display(),
                "the current segment of the audit log was removed by somebody; what was in it is \
                 lost, and `ringway audit verify` will say so"
            );
            self.segment = None;
        }
    }

    fn sync(&mut self) -> bool {
        self.sync_at = None;
        match self.segment.as_ref().map_or(Ok(()), Segment::sync) {
            Ok(()) => true,
            Err(error) => {
                self.count_error("sync", &error);
                false
            }
        }
    }

    /// What is due without new records.
    fn keep_house(&mut self) {
        let now = Instant::now();
        if !self.is_written() {
            return;
        }
        if self.segment.is_none() {
            // Its end is signed and synced.
            self.sign_at = None;
            self.sync_at = None;
        }
        if self.sign_at.is_some_and(|at| now >= at) {
            let span = self.segment.as_ref().map_or(Span::EMPTY, |segment| segment.span);
            let now_ms = self.shared.now_ms();
            self.pending = Some(Pending::checkpoint(&self.chain, span, &self.key, now_ms));
            self.write_pending();
        }
        if self.sync_at.is_some_and(|at| now >= at) {
            self.sync();
        }
        if now >= self.retention_at {
            self.retain();
        }
    }

    /// Deletes segments that are too old or too many.
    fn retain(&mut self) {
        self.retention_at = Instant::now() + RETENTION_EVERY;
        let current = self.segment.as_ref().map(Segment::name);
        let now_ms = self.shared.now_ms();
        let done = retention::apply(&self.directory, &self.settings, &self.key, current, now_ms);
        match done {
            Ok(done) => {
                self.shared.segments.set(i64::try_from(done.left).unwrap_or(i64::MAX));
                if let Some(removal) = done.removed {
                    let (count, block) = (done.count, removal.through.block);
                    self.note(|out| line::write_removed(out, now_ms, count, block));
                    tracing::info!(segments = count, "deleted old segments of the audit log");
                }
            }
            Err(error) => self.count_error("delete old segments of", &error),
        }
    }

    /// Writing failed: said once, and tried again later.
    fn failed(&mut self, what: &str, error: &dyn Display) {
        self.retry_at = Some(Instant::now() + RETRY_AFTER);
        if self.shared.is_writable() {
            self.count_error(what, error);
            self.shared.set_writable(false);
        } else {
            self.shared.write_errors.increment();
        }
    }

    fn succeeded(&mut self) {
        self.retry_at = None;
        if !self.shared.is_writable() {
            self.shared.set_writable(true);
            tracing::info!("the audit log is written again");
        }
    }

    fn count_error(&self, what: &str, error: &dyn Display) {
        self.shared.write_errors.increment();
        tracing::error!(
            directory = %self.directory.display(),
            %error,
            "cannot {what} the audit log"
        );
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("chain", &self.chain).finish_non_exhaustive()
    }
}
