//! What one core counts.

use std::time::Duration;

use super::figures::{Counter, Gauge, Latency};
use super::labels::{DownstreamLabel, MethodLabel, OutcomeLabel};

/// What one core counts. Written by that core only, read when metrics are asked for.
// Two cache lines of distance: no core may slow another by counting.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CoreMetrics {
    pub(super) requests: [[Counter; OutcomeLabel::COUNT]; MethodLabel::COUNT],
    pub(super) request_latency: [Latency; MethodLabel::COUNT],
    pub(super) downstream_calls: [Counter; DownstreamLabel::COUNT],
    pub(super) downstream_latency: Latency,
    /// Sessions that began.
    pub sessions_opened: Counter,
    /// Sessions that ended: deleted, idle, or too old.
    pub sessions_ended: Counter,
    /// Event streams with a client attached.
    pub streams_open: Gauge,
    /// Bytes kept for replay.
    pub retained_bytes: Gauge,
    /// Connections accepted.
    pub connections_accepted: Counter,
    /// Connections open now.
    pub connections_open: Gauge,
    /// HTTP requests read, whatever came of them.
    pub http_requests: Counter,
    /// Bytes read from clients, as they are without TLS.
    pub received_bytes: Counter,
    /// Bytes of answers written to clients, as they are without TLS; what goes out on an event
    /// stream after its head is not among them.
    pub sent_bytes: Counter,
    /// Connections closed at once because the core carried as many as it may.
    pub connections_refused: Counter,
    /// Requests refused before any method was run: guards, credentials, sessions, limits.
    pub requests_refused: Counter,
    /// Requests that were no HTTP this server takes.
    pub requests_malformed: Counter,
    /// Messages another core had no room for.
    pub messages_undelivered: Counter,
    /// Changes of streams that were left out of the journal, so that a restart will not find them.
    pub journal_left_out: Counter,
    /// Messages handed to another core.
    pub cross_core_hops: Counter,
}

impl CoreMetrics {
    /// Counts one request, with the time from its dispatch to its answer.
    #[inline]
    pub fn request(&self, method: MethodLabel, outcome: OutcomeLabel, elapsed: Duration) {
        self.requests[method as usize][outcome as usize].increment();
        self.request_latency[method as usize].record(elapsed);
    }

    /// Counts one call to a service behind a tool.
    #[inline]
    pub fn downstream_call(&self, outcome: DownstreamLabel, elapsed: Duration) {
        self.downstream_calls[outcome as usize].increment();
        self.downstream_latency.record(elapsed);
    }
}
