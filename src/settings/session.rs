//! `[runtime.mcp.session]`: how long sessions live.

use serde::{Deserialize, Serialize};

use super::Findings;
use super::check::SECONDS_MAX;

/// How long sessions live and how many there may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// A session without a request or an open stream for this long ends.
    pub idle_seconds: u64,
    /// A session ends this long after it began, however busy it is.
    pub lifetime_seconds: u64,
    /// Sessions one tenant may have open.
    pub per_tenant_max: usize,
    /// A session idle for this long is kept in the store only, not in memory.
    pub heap_idle_seconds: u64,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            idle_seconds: 1800,
            lifetime_seconds: 86_400,
            per_tenant_max: 100_000,
            heap_idle_seconds: 60,
        }
    }
}

impl Session {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        findings.within("runtime.mcp.session.idle_seconds", self.idle_seconds, 1..=SECONDS_MAX);
        let lifetime = self.lifetime_seconds;
        findings.within("runtime.mcp.session.lifetime_seconds", lifetime, 1..=SECONDS_MAX);
        let sessions = self.per_tenant_max;
        findings.within("runtime.mcp.session.per_tenant_max", sessions, 1..=100_000_000);
        let heap_idle = self.heap_idle_seconds;
        findings.within("runtime.mcp.session.heap_idle_seconds", heap_idle, 1..=SECONDS_MAX);
        if self.lifetime_seconds < self.idle_seconds {
            findings.add(
                "runtime.mcp.session.lifetime_seconds",
                "is less than idle_seconds: no session could ever become idle",
            );
        }
    }
}
