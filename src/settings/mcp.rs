//! `[runtime.mcp]`: the Model Context Protocol.

use serde::{Deserialize, Serialize};

use super::{Asking, Findings, Session, Sse};

/// What clients see of the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// Entries of one page of a list; 0: everything in one page.
    pub page_size: usize,
    /// Whether a POST must accept both JSON and event streams, as the specification says.
    pub strict_accept: bool,
    /// `[runtime.mcp.sse]`.
    pub sse: Sse,
    /// `[runtime.mcp.session]`.
    pub session: Session,
    /// `[runtime.mcp.asking]`.
    pub asking: Asking,
}

impl Mcp {
    /// Checks this section and those below it.
    pub fn validate(&self, findings: &mut Findings) {
        findings.within("runtime.mcp.page_size", self.page_size, 0..=100_000);
        self.sse.validate(findings);
        self.session.validate(findings);
        self.asking.validate(findings);
    }
}
