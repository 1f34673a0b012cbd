//! `[store]`: the embedded store.

use serde::{Deserialize, Serialize};

use super::Findings;
use super::check::BYTES_MAX;

/// The embedded store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// How long session and stream records may wait before the operating system has them.
    pub flush_ms: u64,
    /// Size of the page cache.
    pub cache_bytes: u64,
    /// The store turns read-only while the file system has less free space than this.
    pub free_bytes_min: u64,
    /// Requests that may wait for the store.
    pub queue_max: usize,
    /// Bytes of requests that may wait for the store.
    pub queue_bytes_max: usize,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            flush_ms: 50,
            cache_bytes: 32 << 20,
            free_bytes_min: 64 << 20,
            queue_max: 65_536,
            queue_bytes_max: 64 << 20,
        }
    }
}

impl Store {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        findings.within("store.flush_ms", self.flush_ms, 1..=60_000);
        findings.within("store.cache_bytes", self.cache_bytes, 1 << 20..=64 << 30);
        findings.within("store.free_bytes_min", self.free_bytes_min, 0..=1 << 50);
        findings.within("store.queue_max", self.queue_max, 16..=100_000_000);
        findings.within("store.queue_bytes_max", self.queue_bytes_max, 1 << 20..=BYTES_MAX);
    }
}
