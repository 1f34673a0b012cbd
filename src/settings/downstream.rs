//! `[downstream]`: calls to the services behind the tools.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::check::{BYTES_MAX, MILLISECONDS_MAX, SECONDS_MAX};
use super::{Discovery, Findings, Network, UpstreamServers};

/// Calls to the services behind the tools. Connections and tools may set shorter times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Downstream {
    /// How long resolving, connecting and the TLS handshake may take together.
    pub connect_timeout_ms: u64,
    /// How long the response's head may take after the request was sent.
    pub headers_timeout_ms: u64,
    /// How long a whole call may take.
    pub total_timeout_ms: u64,
    /// Bytes of one response body as it comes over the wire.
    pub response_bytes_max: usize,
    /// Bytes of one response body after decompression.
    pub decoded_bytes_max: usize,
    /// Connections kept open for reuse, per host and core.
    pub idle_connections_max: usize,
    /// How long a connection is kept open for reuse.
    pub idle_connection_seconds: u64,
    /// Networks no tool may reach, whatever its connection says.
    pub blocked_networks: Vec<Network>,
    /// PEM files of certificate authorities to trust beside the system's.
    pub extra_roots: Vec<PathBuf>,
    /// When MCP servers are asked what they offer.
    pub discovery: Discovery,
    /// `[downstream.mcp]`.
    pub mcp: UpstreamServers,
}

impl Default for Downstream {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 5000,
            headers_timeout_ms: 30_000,
            total_timeout_ms: 60_000,
            response_bytes_max: 4 << 20,
            decoded_bytes_max: 16 << 20,
            idle_connections_max: 64,
            idle_connection_seconds: 30,
            // Link-local: where cloud machines answer with their credentials.
            blocked_networks: vec![
                Network::fixed(IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
                Network::fixed(IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
            ],
            extra_roots: Vec::new(),
            discovery: Discovery::default(),
            mcp: UpstreamServers::default(),
        }
    }
}

impl Downstream {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        let timeouts = [
            ("downstream.connect_timeout_ms", self.connect_timeout_ms),
            ("downstream.headers_timeout_ms", self.headers_timeout_ms),
            ("downstream.total_timeout_ms", self.total_timeout_ms),
        ];
        for (key, value) in timeouts {
            findings.within(key, value, 10..=MILLISECONDS_MAX);
        }
        let bytes = [
            ("downstream.response_bytes_max", self.response_bytes_max),
            ("downstream.decoded_bytes_max", self.decoded_bytes_max),
        ];
        for (key, value) in bytes {
            findings.within(key, value, 1024..=BYTES_MAX);
        }
        let idle = self.idle_connections_max;
        findings.within("downstream.idle_connections_max", idle, 0..=100_000);
        let seconds = self.idle_connection_seconds;
        findings.within("downstream.idle_connection_seconds", seconds, 1..=SECONDS_MAX);
        if self.extra_roots.iter().any(|path| path.as_os_str().is_empty()) {
            findings.add("downstream.extra_roots", "holds an empty path");
        }
        self.discovery.validate(findings);
        self.mcp.validate(findings);
    }
}
