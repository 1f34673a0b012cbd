//! `[runtime.results]`: what is kept of answers that were cut to a tool's budget.

use serde::{Deserialize, Serialize};

use super::Findings;
use super::check::{BYTES_MAX, SECONDS_MAX};

/// What is kept of answers that were cut to a tool's budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Results {
    /// How long the rest of an answer can be asked for.
    pub keep_seconds: u64,
    /// Bytes kept for one tenant.
    pub tenant_bytes_max: usize,
    /// Bytes kept in all.
    pub bytes_max: usize,
}

impl Default for Results {
    fn default() -> Self {
        Self { keep_seconds: 600, tenant_bytes_max: 32 << 20, bytes_max: 256 << 20 }
    }
}

impl Results {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        findings.within("runtime.results.keep_seconds", self.keep_seconds, 1..=SECONDS_MAX);
        let bytes = [
            ("runtime.results.tenant_bytes_max", self.tenant_bytes_max),
            ("runtime.results.bytes_max", self.bytes_max),
        ];
        for (key, value) in bytes {
            findings.within(key, value, 4096..=BYTES_MAX);
        }
        if self.bytes_max < self.tenant_bytes_max {
            findings.add(
                "runtime.results.bytes_max",
                "is less than tenant_bytes_max: what one tenant may keep would not fit",
            );
        }
    }
}
