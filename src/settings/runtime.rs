//! `[runtime]`: threads, data directory, catalog.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::check::{BYTES_MAX, MILLISECONDS_MAX};
use super::{Findings, Mcp, Results};
use crate::http::origin::Origin;

/// Threads, data directory, catalog, and the protocol below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Runtime {
    /// Where the store and the admin socket live.
    pub data_directory: PathBuf,
    /// Number of cores; 0: one per CPU this process may run on.
    pub cores: usize,
    /// Whether each core stays on one CPU.
    pub pin: bool,
    /// How cores wait for the kernel.
    pub driver: Driver,
    /// Which setup flags the io_uring driver asks for.
    pub ring: Ring,
    /// Submission queue entries of each core's ring.
    pub ring_entries: u32,
    /// Threads for name resolution, hashing and compilation.
    pub worker_threads: usize,
    /// How long open requests may take to finish after SIGTERM.
    pub shutdown_grace_ms: u64,
    /// Origins of browsers that may call, beside the server's own and those of each tenant.
    pub allowed_origins: Vec<String>,
    /// Catalog files, or directories of them, read at start, on SIGHUP and when they change.
    pub catalog: Vec<PathBuf>,
    /// How often the catalog files are looked at for changes; 0: never, only SIGHUP counts.
    pub catalog_poll_ms: u64,
    /// How long a tool that was removed, hidden or renamed stays callable under its old name.
    pub tool_grace_seconds: u64,
    /// Most changes of the catalog that are kept for `history` and `rollback`.
    pub history_max: usize,
    /// Most bytes of them in the store; the newest is kept whatever its size.
    pub history_bytes_max: usize,
    /// `[runtime.mcp]`.
    pub mcp: Mcp,
    /// `[runtime.results]`.
    pub results: Results,
}

/// How cores wait for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// io_uring, epoll where the kernel refuses it.
    Auto,
    /// io_uring or no start.
    IoUring,
    /// epoll.
    Epoll,
}

/// Which setup flags the io_uring driver asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ring {
    /// Single issuer, cooperative and deferred task work; the default where refused.
    Tuned,
    /// The kernel's default.
    Default,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            data_directory: "/var/lib/ringway".into(),
            cores: 0,
            pin: true,
            driver: Driver::Auto,
            ring: Ring::Tuned,
            ring_entries: 1024,
            worker_threads: 2,
            shutdown_grace_ms: 3000,
            allowed_origins: Vec::new(),
            catalog: Vec::new(),
            catalog_poll_ms: 2000,
            tool_grace_seconds: 3600,
            history_max: 1000,
            history_bytes_max: 64 << 20,
            mcp: Mcp::default(),
            results: Results::default(),
        }
    }
}

impl Runtime {
    /// Checks this section and those below it.
    pub fn validate(&self, findings: &mut Findings) {
        if self.data_directory.as_os_str().is_empty() {
            findings.add("runtime.data_directory", "is empty: name a directory");
        }
        findings.within("runtime.cores", self.cores, 0..=1024);
        findings.within("runtime.ring_entries", self.ring_entries, 64..=32_768);
        if !self.ring_entries.is_power_of_two() {
            findings.add(
                "runtime.ring_entries",
                format!("{} is not a power of two such as 1024", self.ring_entries),
            );
        }
        findings.within("runtime.worker_threads", self.worker_threads, 1..=64);
        findings.within("runtime.shutdown_grace_ms", self.shutdown_grace_ms, 0..=MILLISECONDS_MAX);
        for origin in &self.allowed_origins {
            if origin != "*" && !Origin::is_one(origin) {
                findings.add(
                    "runtime.allowed_origins",
                    format!("`{origin}` is not an origin such as https://app.example.com"),
                );
            }
        }
        if self.catalog.iter().any(|path| path.as_os_str().is_empty()) {
            findings.add("runtime.catalog", "holds an empty path");
        }
        if self.catalog_poll_ms != 0 {
            findings.within("runtime.catalog_poll_ms", self.catalog_poll_ms, 100..=86_400_000);
        }
        findings.within("runtime.tool_grace_seconds", self.tool_grace_seconds, 0..=30 * 86_400);
        findings.within("runtime.history_max", self.history_max, 1..=1_000_000);
        findings.within("runtime.history_bytes_max", self.history_bytes_max, 0..=BYTES_MAX);
        self.mcp.validate(findings);
        self.results.validate(findings);
    }
}
