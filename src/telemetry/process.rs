//! The figures of the process: what whoever has them says when metrics are asked for.

/// What belongs to the process and not to one core, as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// Panics that were contained.
    pub panics_contained: u64,
    /// Log lines that were dropped.
    pub log_lines_dropped: u64,
    /// Whether the store takes writes.
    pub store_writable: bool,
    /// Sessions alive, in memory or only in the store.
    pub sessions_open: u64,
    /// The audit log.
    pub audit: AuditFigures,
    /// Readings of the catalog files that changed nothing because something was wrong.
    pub catalog_reload_failures: u64,
    /// Whether the last one was such.
    pub catalog_files_bad: bool,
    /// The MCP servers behind toolsets.
    pub upstreams: UpstreamsFigures,
}

/// What is known of the MCP servers behind toolsets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamsFigures {
    /// How often one told what it offers.
    pub answered: u64,
    /// How often one was asked in vain.
    pub failed: u64,
    /// Each of them.
    pub upstreams: Vec<UpstreamFigures>,
}

/// One MCP server behind a toolset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamFigures {
    /// Whose it is.
    pub tenant: String,
    /// The toolset it is behind.
    pub toolset: String,
    /// Whether it answered when it was last asked, if it was.
    pub is_up: Option<bool>,
    /// Definitions that wait for an operator.
    pub pending: u64,
    /// Sessions open there, where they are counted.
    pub sessions: Option<u64>,
}

/// What the audit log has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditFigures {
    /// Records written to a segment.
    pub records: u64,
    /// Records that were lost because the disk was too slow or full.
    pub dropped: u64,
    /// Bytes written to segments, with hashes and checkpoints.
    pub bytes: u64,
    /// Segments there are now.
    pub segments: u64,
    /// Writes and syncs that failed.
    pub write_errors: u64,
    /// Records without the payloads they should have: there was no room for them.
    pub payloads_left_out: u64,
    /// Whether the last write succeeded.
    pub writable: bool,
}
