//! `[audit]`: the record of every call.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Findings;
use super::check::{BYTES_MAX, SECONDS_MAX};

/// The audit log: segments of JSON lines in `audit` below the data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Audit {
    /// Whether calls are recorded at all.
    pub enabled: bool,
    /// Whether a call is refused when its record could be lost, instead of being run unrecorded.
    pub strict: bool,
    /// Bytes of records that may wait on one core for the disk.
    pub buffer_bytes_max: usize,
    /// Bytes one recorded payload may take in the log.
    pub payload_bytes_max: usize,
    /// Size at which a segment is closed and the next one begun.
    pub segment_bytes_max: u64,
    /// Age at which a segment is closed and the next one begun.
    pub segment_seconds: u64,
    /// How long written records may wait for a signed checkpoint.
    pub checkpoint_seconds: u64,
    /// How long written records may wait to be on the disk itself. 0: after every write.
    pub sync_ms: u64,
    /// Age at which whole segments are deleted. 0: never.
    pub keep_days: u64,
    /// Size of all segments together above which the oldest are deleted. 0: no bound.
    pub keep_bytes_max: u64,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            enabled: true,
            strict: false,
            buffer_bytes_max: 4 << 20,
            payload_bytes_max: 16 << 10,
            segment_bytes_max: 64 << 20,
            segment_seconds: 86_400,
            checkpoint_seconds: 10,
            sync_ms: 1000,
            keep_days: 90,
            keep_bytes_max: 10 << 30,
        }
    }
}

impl Audit {
    /// Age at which whole segments are deleted, where there is one.
    pub fn keep(&self) -> Option<Duration> {
        (self.keep_days > 0).then(|| Duration::from_secs(self.keep_days * 86_400))
    }

    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        findings.within("audit.buffer_bytes_max", self.buffer_bytes_max, 1 << 16..=BYTES_MAX >> 6);
        findings.within("audit.payload_bytes_max", self.payload_bytes_max, 256..=1 << 20);
        findings.within("audit.segment_bytes_max", self.segment_bytes_max, 1 << 16..=1 << 40);
        findings.within("audit.segment_seconds", self.segment_seconds, 60..=SECONDS_MAX);
        findings.within("audit.checkpoint_seconds", self.checkpoint_seconds, 1..=86_400);
        findings.within("audit.sync_ms", self.sync_ms, 0..=60_000);
        findings.within("audit.keep_days", self.keep_days, 0..=36_600);
        findings.within("audit.keep_bytes_max", self.keep_bytes_max, 0..=1 << 50);
        if self.keep_bytes_max > 0 && self.keep_bytes_max < 2 * self.segment_bytes_max {
            findings.add(
                "audit.keep_bytes_max",
                format!(
                    "{} is less than two segments: only whole segments are deleted, never the \
                     current one; make it at least twice audit.segment_bytes_max ({})",
                    self.keep_bytes_max, self.segment_bytes_max
                ),
            );
        }
        if self.payload_bytes_max > self.buffer_bytes_max / 8 {
            findings.add(
                "audit.payload_bytes_max",
                format!(
                    "{} is more than an eighth of audit.buffer_bytes_max ({}): a few records would \
                     fill the buffer",
                    self.payload_bytes_max, self.buffer_bytes_max
                ),
            );
        }
    }
}
