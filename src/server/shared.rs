//! What all cores share: nothing else is shared between them.

use std::{
    net::SocketAddr,
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    announce::Announcer,
    conversation::SuspendedShares,
    guard::Guard,
    message::CoreMessage,
    openapi::Descriptions,
    parts::KeptResults,
    publication::{Publication, Published},
    reload::ReloadState,
    request_state::RequestStates,
    subscriptions::Subscriptions,
    upstreams::Keeper,
};
use crate::{
    audit::AuditLog,
    governance::Limiter,
    http::Limits,
    mcp::ServerInfo,
    rt::{InboxSender, Undelivered, WorkerPool},
    sessions::{SessionIds, SessionTable},
    settings::Settings,
    store::Store,
    streams::frame,
    telemetry::{CoreMetrics, Metrics},
};

/// What the state behind every core is made of: given once, at the start.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) publication: Publication,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) reload: Arc<ReloadState>,
    pub(crate) sessions: Arc<SessionTable>,
    pub(crate) session_ids: SessionIds,
    pub(crate) request_states: RequestStates,
    pub(crate) store: Store,
    pub(crate) audit: AuditLog,
    pub(crate) workers: WorkerPool,
    pub(crate) metrics: Metrics,
    /// This start of the process, unlike any before in the same data directory.
    pub(crate) boot: u32,
    pub(crate) started_ms: u64,
    /// Where clients are accepted.
    pub(crate) runtime_address: SocketAddr,
    /// Connections each core may hold: as set, or as many as the process has descriptors for.
    pub(crate) connections_max: usize,
    /// One for each core.
    pub(crate) inboxes: Vec<InboxSender<CoreMessage>>,
}

/// The state behind every core: its parts, reached through `Deref`, and what follows from them.
#[derive(Debug)]
pub(crate) struct Shared {
    parts: Parts,
    pub(crate) guard: Guard,
    pub(crate) started: Instant,
    /// Wall time of the last beat of all cores, in milliseconds.
    pub(crate) last_beat_ms: AtomicU64,
    /// A listener failed: this process no longer accepts all it should.
    pub(crate) deaf: AtomicBool,
    pub(crate) timing: Timing,
    pub(crate) http_limits: Limits,
    /// The comment that keeps an idle event stream open.
    pub(crate) keep_alive_frame: Arc<Vec<u8>>,
    pub(crate) server_info: ServerInfo,
    pub(crate) announcer: Announcer,
    pub(crate) descriptions: Descriptions,
    /// What was left out of answers.
    pub(crate) kept: KeptResults,
    /// Who is told when which resources change.
    pub(crate) subscriptions: Subscriptions,
    /// How many requests wait to be sent again.
    pub(crate) suspended: Arc<SuspendedShares>,
    /// How much everybody has used of what they may.
    pub(crate) limiter: Limiter,
    driver: OnceLock<&'static str>,
    /// Cores that have answered all they will.
    cores_done: AtomicUsize,
}

impl Deref for Shared {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

/// Settings that are times, ready to use.
#[derive(Debug)]
pub(crate) struct Timing {
    pub(crate) keep_alive: Duration,
    pub(crate) write: Duration,
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) body: Duration,
    /// How long a call may run before its answer becomes an event stream.
    pub(crate) upgrade_after: Duration,
}

impl Timing {
    fn new(settings: &Settings) -> Self {
        let (sse, http) = (&settings.runtime.mcp.sse, &settings.http);
        Self {
            keep_alive: Duration::from_secs(sse.keep_alive_seconds),
            write: Duration::from_millis(http.write_timeout_ms),
            idle: Duration::from_millis(http.idle_timeout_ms),
            head: Duration::from_millis(http.head_timeout_ms),
            body: Duration::from_millis(http.body_timeout_ms),
            upgrade_after: Duration::from_millis(sse.sse_upgrade_after_ms),
        }
    }
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let settings = &parts.settings;
        Self {
            guard: Guard::new(settings),
            started: Instant::now(),
            last_beat_ms: AtomicU64::new(parts.started_ms),
            deaf: AtomicBool::new(false),
            timing: Timing::new(settings),
            http_limits: Limits {
                head_bytes_max: settings.http.head_bytes_max,
                headers_max: settings.http.headers_max,
                body_bytes_max: settings.http.body_bytes_max,
            },
            keep_alive_frame: Arc::new(frame::KEEP_ALIVE.to_vec()),
            server_info: ServerInfo::new(
                "ringway",
                "Ringway",
                env!("CARGO_PKG_VERSION"),
                settings.runtime.mcp.sse.enabled,
                settings.runtime.mcp.cache_ttl_ms,
            ),
            announcer: Announcer::new(parts.publication.current().snapshot.clone()),
            descriptions: Descriptions::default(),
            kept: KeptResults::new(&settings.runtime.results),
            subscriptions: Subscriptions::default(),
            suspended: SuspendedShares::new(
                settings.runtime.mcp.asking.suspended_max,
                settings.runtime.mcp.asking.suspended_per_tenant_max,
            ),
            limiter: Limiter::default(),
            driver: OnceLock::new(),
            cores_done: AtomicUsize::new(0),
            parts,
        }
    }

    pub(crate) fn published_version(&self) -> u64 {
        self.publication.version()
    }

    pub(crate) fn published(&self) -> Published {
        Published::clone(&self.publication.current())
    }

    /// The clock of limits: nanoseconds since the process started, the same on all cores.
    pub(crate) fn now_ns(&self) -> u64 {
        self.ns_at(Instant::now())
    }

    /// What that clock showed at a moment.
    pub(crate) fn ns_at(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.started);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The figures of one core.
    pub(crate) fn core_metrics(&self, core: u16) -> Arc<CoreMetrics> {
        self.metrics.core(usize::from(core)).cloned().unwrap_or_default()
    }

    /// Event streams with a client attached, on all cores.
    pub(crate) fn open_streams(&self) -> u64 {
        let open: i64 = self.metrics.cores().iter().map(|core| core.streams_open.value()).sum();
        u64::try_from(open).unwrap_or(0)
    }

    /// How the cores wait for the kernel, once one of them runs.
    pub(crate) fn driver(&self) -> &'static str {
        self.driver.get().unwrap_or(&"starting")
    }

    /// A core runs, and says how.
    pub(crate) fn core_runs(&self, driver: &'static str) {
        let _ = self.driver.set(driver);
    }

    /// A core has answered all it will before the process ends. Tells whether it is the last one.
    pub(crate) fn core_is_done(&self) -> bool {
        self.cores_done.fetch_add(1, Ordering::AcqRel) + 1 == self.cores()
    }

    pub(crate) fn cores(&self) -> usize {
        self.inboxes.len()
    }

    /// Puts a message into a core's inbox; gives it back when the inbox is full or closed.
    pub(crate) fn send(
        &self,
        core: usize,
        message: CoreMessage,
    ) -> Result<(), Undelivered<CoreMessage>> {
        match self.inboxes.get(core) {
            Some(inbox) => inbox.push(message),
            None => Err(Undelivered::Closed(message)),
        }
    }
}
