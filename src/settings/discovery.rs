//! `[downstream.discovery]`: when MCP servers behind toolsets are asked what they offer.

use serde::{Deserialize, Serialize};

use super::Findings;
use super::check::{MILLISECONDS_MAX, SECONDS_MAX};

/// When MCP servers behind toolsets are asked what they offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Discovery {
    /// How often each server is asked, whether or not it told of a change.
    pub refresh_seconds: u64,
    /// How long one that did not answer is left alone at first.
    pub retry_min_ms: u64,
    /// How long at most.
    pub retry_max_ms: u64,
    /// How long a server may take to tell everything.
    pub deadline_ms: u64,
    /// Servers that are asked at the same time.
    pub concurrent_max: usize,
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            refresh_seconds: 300,
            retry_min_ms: 1000,
            retry_max_ms: 300_000,
            deadline_ms: 20_000,
            concurrent_max: 16,
        }
    }
}

impl Discovery {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        let refresh = self.refresh_seconds;
        findings.within("downstream.discovery.refresh_seconds", refresh, 1..=SECONDS_MAX);
        let (low, high) = (self.retry_min_ms, self.retry_max_ms);
        findings.within("downstream.discovery.retry_min_ms", low, 100..=MILLISECONDS_MAX);
        findings.within("downstream.discovery.retry_max_ms", high, 100..=MILLISECONDS_MAX);
        if low > high {
            let message = format!("{low} is more than retry_max_ms, {high}");
            findings.add("downstream.discovery.retry_min_ms", message);
        }
        let deadline = self.deadline_ms;
        findings.within("downstream.discovery.deadline_ms", deadline, 100..=MILLISECONDS_MAX);
        let concurrent = self.concurrent_max;
        findings.within("downstream.discovery.concurrent_max", concurrent, 1..=1024);
    }
}
