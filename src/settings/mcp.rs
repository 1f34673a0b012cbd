//! `[runtime.mcp]`: the Model Context Protocol.

use serde::{Deserialize, Serialize};

use super::check::MILLISECONDS_MAX;
use super::{Asking, Findings, Session, Sse};

/// What clients see of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// Entries of one page of a list; 0: everything in one page.
    pub page_size: usize,
    /// Whether a POST must accept both JSON and event streams, as the specification says.
    pub strict_accept: bool,
    /// How long clients of 2026-07-28 may take what they were told for fresh; 0: not at all.
    pub cache_ttl_ms: u64,
    /// `[runtime.mcp.sse]`.
    pub sse: Sse,
    /// `[runtime.mcp.session]`.
    pub session: Session,
    /// `[runtime.mcp.asking]`.
    pub asking: Asking,
}

impl Default for Mcp {
    fn default() -> Self {
        Self {
            page_size: 0,
            strict_accept: false,
            cache_ttl_ms: 60_000,
            sse: Sse::default(),
            session: Session::default(),
            asking: Asking::default(),
        }
    }
}

impl Mcp {
    /// Checks this section and those below it.
    pub fn validate(&self, findings: &mut Findings) {
        findings.within("runtime.mcp.page_size", self.page_size, 0..=100_000);
        findings.within("runtime.mcp.cache_ttl_ms", self.cache_ttl_ms, 0..=MILLISECONDS_MAX);
        self.sse.validate(findings);
        self.session.validate(findings);
        self.asking.validate(findings);
    }
}
