//! `[downstream.mcp]`: MCP servers behind toolsets.

use serde::{Deserialize, Serialize};

use super::Findings;
use super::check::{BYTES_MAX, SECONDS_MAX};

/// How MCP servers are spoken to. What `[downstream]` says holds for them too, but for the time of
/// a whole call, which only a connection can limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamServers {
    /// Bytes of one event of a stream.
    pub event_bytes_max: usize,
    /// How long a stream with an answer on its way may be silent; 0: as long as it likes.
    pub silent_seconds_max: u64,
    /// How long a session there is kept that nobody uses.
    pub session_idle_seconds: u64,
    /// Things of one kind that a server may offer.
    pub list_entries_max: usize,
    /// Bytes of all that a server offers together.
    pub list_bytes_max: usize,
}

impl Default for UpstreamServers {
    fn default() -> Self {
        Self {
            event_bytes_max: 16 << 20,
            silent_seconds_max: 300,
            session_idle_seconds: 1800,
            list_entries_max: 10_000,
            list_bytes_max: 32 << 20,
        }
    }
}

impl UpstreamServers {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        let bytes = [
            ("downstream.mcp.event_bytes_max", self.event_bytes_max),
            ("downstream.mcp.list_bytes_max", self.list_bytes_max),
        ];
        for (key, value) in bytes {
            findings.within(key, value, 1024..=BYTES_MAX);
        }
        let silent = self.silent_seconds_max;
        findings.within("downstream.mcp.silent_seconds_max", silent, 0..=SECONDS_MAX);
        let idle = self.session_idle_seconds;
        findings.within("downstream.mcp.session_idle_seconds", idle, 1..=SECONDS_MAX);
        let entries = self.list_entries_max;
        findings.within("downstream.mcp.list_entries_max", entries, 1..=1_000_000);
    }
}
