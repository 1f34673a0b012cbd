//! `[http]`: limits of requests and connections on the runtime plane.

use serde::{Deserialize, Serialize};

use super::Findings;
use super::check::MILLISECONDS_MAX;

/// Limits of requests and connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Bytes of request line and headers; more is answered 431.
    pub head_bytes_max: usize,
    /// Headers of one request; more is answered 431.
    pub headers_max: usize,
    /// Bytes of one request's body; more is answered 413.
    pub body_bytes_max: usize,
    /// How long a request's head may take to arrive; longer is answered 408.
    pub head_timeout_ms: u64,
    /// How long a request's body may take to arrive; longer is answered 408.
    pub body_timeout_ms: u64,
    /// How long a connection may rest between requests.
    pub idle_timeout_ms: u64,
    /// How long a write may make no progress.
    pub write_timeout_ms: u64,
    /// Connections one core holds; more are closed as they come.
    pub connections_max: usize,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            head_bytes_max: 32_768,
            headers_max: 100,
            body_bytes_max: 4 << 20,
            head_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            idle_timeout_ms: 75_000,
            write_timeout_ms: 30_000,
            connections_max: 20_000,
        }
    }
}

impl Http {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        findings.within("http.head_bytes_max", self.head_bytes_max, 1024..=1 << 20);
        // The parser of heads has room for no more.
        findings.within("http.headers_max", self.headers_max, 8..=250);
        // Spans into a request are 32 bits wide.
        findings.within("http.body_bytes_max", self.body_bytes_max, 1024..=1 << 30);
        let timeouts = [
            ("http.head_timeout_ms", self.head_timeout_ms),
            ("http.body_timeout_ms", self.body_timeout_ms),
            ("http.idle_timeout_ms", self.idle_timeout_ms),
            ("http.write_timeout_ms", self.write_timeout_ms),
        ];
        for (key, value) in timeouts {
            findings.within(key, value, 100..=MILLISECONDS_MAX);
        }
        findings.within("http.connections_max", self.connections_max, 1..=10_000_000);
    }
}
