//! `[runtime.mcp.asking]`: questions to clients.

use serde::{Deserialize, Serialize};

use super::Findings;
use super::check::SECONDS_MAX;

/// Questions to clients and their users while a request runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asking {
    /// How long a client, and so a user, may take to answer.
    pub answer_seconds: u64,
    /// Questions that one running request may put to its client.
    pub questions_per_call_max: u32,
    /// Requests that wait at a time until their clients send them again with the answers.
    pub suspended_max: usize,
    /// Most of them that are one tenant's.
    pub suspended_per_tenant_max: usize,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            answer_seconds: 600,
            questions_per_call_max: 64,
            suspended_max: 10_000,
            suspended_per_tenant_max: 1000,
        }
    }
}

impl Asking {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        findings.within("runtime.mcp.asking.answer_seconds", self.answer_seconds, 1..=SECONDS_MAX);
        let questions = self.questions_per_call_max;
        findings.within("runtime.mcp.asking.questions_per_call_max", questions, 1..=10_000);
        let all = self.suspended_max;
        findings.within("runtime.mcp.asking.suspended_max", all, 0..=1_000_000);
        let tenants = self.suspended_per_tenant_max;
        findings.within("runtime.mcp.asking.suspended_per_tenant_max", tenants, 0..=1_000_000);
    }
}
