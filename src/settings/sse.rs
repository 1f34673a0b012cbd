//! `[runtime.mcp.sse]`: event streams and their replay windows.

use serde::{Deserialize, Serialize};

use super::Findings;
use super::check::{BYTES_MAX, MILLISECONDS_MAX, SECONDS_MAX};

/// Event streams and their replay windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sse {
    /// Whether GET opens a standing stream.
    pub enabled: bool,
    /// Whether every request but `initialize` must name a session.
    pub require_session: bool,
    /// How long an answer may take before its response becomes a stream; 0: always a stream. Less
    /// than the time in which the answers of a request are gathered (20 ms) works as that.
    pub sse_upgrade_after_ms: u64,
    /// How long a POST stream can be resumed after its response was sent.
    pub post_stream_retention_seconds: u64,
    /// Interval of keep-alive comments; 0: none.
    pub keep_alive_seconds: u64,
    /// What clients are told to wait before they reconnect.
    pub retry_ms: u32,
    /// How a standing stream greets.
    pub connected: Connected,
    /// Events a stream keeps for replay.
    pub window_events_max: usize,
    /// Bytes a stream keeps for replay.
    pub window_bytes_max: usize,
    /// How long a stream keeps an event for replay.
    pub window_seconds: u64,
    /// Bytes all streams of one core keep for replay.
    pub retained_bytes_max: usize,
    /// Bytes queued for one slow client before its connection is closed.
    pub outlet_bytes_max: usize,
    /// Whether the HTTP+SSE transport of 2024-11-05 is served.
    pub legacy_transport: bool,
}

/// How a standing stream greets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connected {
    /// A comment line, which clients skip.
    Comment,
    /// An event of type `connected`.
    Event,
    /// Nothing.
    Off,
}

impl Default for Sse {
    fn default() -> Self {
        Self {
            enabled: true,
            require_session: false,
            sse_upgrade_after_ms: 100,
            post_stream_retention_seconds: 60,
            keep_alive_seconds: 15,
            retry_ms: 1000,
            connected: Connected::Comment,
            window_events_max: 256,
            window_bytes_max: 1 << 20,
            window_seconds: 300,
            retained_bytes_max: 64 << 20,
            outlet_bytes_max: 1 << 20,
            legacy_transport: true,
        }
    }
}

impl Sse {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        let upgrade = self.sse_upgrade_after_ms;
        let retention = self.post_stream_retention_seconds;
        findings.within("runtime.mcp.sse.sse_upgrade_after_ms", upgrade, 0..=MILLISECONDS_MAX);
        findings.within(
            "runtime.mcp.sse.post_stream_retention_seconds",
            retention,
            0..=SECONDS_MAX,
        );
        findings.within("runtime.mcp.sse.keep_alive_seconds", self.keep_alive_seconds, 0..=3600);
        findings.within("runtime.mcp.sse.retry_ms", self.retry_ms, 0..=3_600_000);
        findings.within("runtime.mcp.sse.window_events_max", self.window_events_max, 1..=1_000_000);
        let bytes = [
            ("runtime.mcp.sse.window_bytes_max", self.window_bytes_max),
            ("runtime.mcp.sse.retained_bytes_max", self.retained_bytes_max),
            ("runtime.mcp.sse.outlet_bytes_max", self.outlet_bytes_max),
        ];
        for (key, value) in bytes {
            findings.within(key, value, 4096..=BYTES_MAX);
        }
        findings.within("runtime.mcp.sse.window_seconds", self.window_seconds, 1..=SECONDS_MAX);
        if self.retained_bytes_max < self.window_bytes_max {
            findings.add(
                "runtime.mcp.sse.retained_bytes_max",
                "is less than window_bytes_max: one full window would not fit",
            );
        }
    }
}
