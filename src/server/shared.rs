//! What all cores share: nothing else is shared between them.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64},
    },
    time::{Duration, Instant},
};

use super::{
    guard::Guard,
    message::CoreMessage,
    publication::{Publication, Published},
    reload::ReloadState,
};
use crate::{
    catalog::{Snapshot, TenantId},
    http::Limits,
    mcp::{self, ServerInfo},
    rt::{InboxSender, Undelivered, WorkerPool},
    sessions::{SessionIds, SessionTable},
    settings::Settings,
    store::Store,
    streams::frame,
    telemetry::{CoreMetrics, Metrics},
};

/// The state behind every core: settings, published catalog, sessions, store, ways to each other.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) guard: Guard,
    pub(crate) publication: Publication,
    pub(crate) reload: Arc<ReloadState>,
    pub(crate) sessions: Arc<SessionTable>,
    pub(crate) session_ids: SessionIds,
    pub(crate) store: Store,
    pub(crate) workers: WorkerPool,
    pub(crate) metrics: Metrics,
    pub(crate) started: Instant,
    pub(crate) started_ms: u64,
    /// This start of the process, unlike any before in the same data directory.
    pub(crate) boot: u32,
    /// Wall time of the last beat of all cores, in milliseconds.
    pub(crate) last_beat_ms: AtomicU64,
    /// A listener failed: this process no longer accepts all it should.
    pub(crate) deaf: AtomicBool,
    pub(crate) timing: Timing,
    pub(crate) http_limits: Limits,
    /// The comment that keeps an idle event stream open.
    pub(crate) keep_alive_frame: Arc<Vec<u8>>,
    pub(crate) server_info: ServerInfo,
    driver: OnceLock<&'static str>,
    /// Where clients are accepted.
    pub(crate) runtime_address: SocketAddr,
    inboxes: Vec<InboxSender<CoreMessage>>,
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

/// What `Shared` is made of, besides what it derives.
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) publication: Publication,
    pub(crate) reload: Arc<ReloadState>,
    pub(crate) sessions: Arc<SessionTable>,
    pub(crate) session_ids: SessionIds,
    pub(crate) store: Store,
    pub(crate) workers: WorkerPool,
    pub(crate) metrics: Metrics,
    pub(crate) boot: u32,
    pub(crate) inboxes: Vec<InboxSender<CoreMessage>>,
    pub(crate) now_ms: u64,
    pub(crate) runtime_address: SocketAddr,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let settings = parts.settings;
        Self {
            guard: Guard::new(&settings),
            timing: Timing::new(&settings),
            http_limits: Limits {
                head_bytes_max: settings.http.head_bytes_max,
                headers_max: settings.http.headers_max,
                body_bytes_max: settings.http.body_bytes_max,
            },
            keep_alive_frame: Arc::new(frame::KEEP_ALIVE.to_vec()),
            server_info: ServerInfo::new("ringway", "Ringway", env!("CARGO_PKG_VERSION")),
            publication: parts.publication,
            reload: parts.reload,
            sessions: parts.sessions,
            session_ids: parts.session_ids,
            store: parts.store,
            workers: parts.workers,
            metrics: parts.metrics,
            started: Instant::now(),
            started_ms: parts.now_ms,
            boot: parts.boot,
            last_beat_ms: AtomicU64::new(parts.now_ms),
            deaf: AtomicBool::new(false),
            inboxes: parts.inboxes,
            driver: OnceLock::new(),
            runtime_address: parts.runtime_address,
            settings,
        }
    }

    pub(crate) fn published_version(&self) -> u64 {
        self.publication.version()
    }

    pub(crate) fn published(&self) -> Published {
        Published::clone(&self.publication.current())
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

    pub(crate) fn cores(&self) -> usize {
        self.inboxes.len()
    }

    /// Tells the live streams of every tenant whose tools differ from `before`.
    pub(crate) fn tell_clients(&self, before: &Snapshot) {
        let published = self.publication.current();
        let changed = published.snapshot.changed_views(before);
        let tenants: BTreeSet<TenantId> = changed.iter().map(|view| view.tenant.clone()).collect();
        for tenant in tenants {
            self.notify_standing(Some(&tenant));
        }
    }

    /// Sends `notifications/tools/list_changed` to the standalone streams of a tenant, or of all.
    pub(crate) fn notify_standing(&self, tenant: Option<&TenantId>) {
        let payload = Arc::new(mcp::TOOLS_LIST_CHANGED.to_vec());
        for core in 0..self.cores() {
            let (tenant, payload) = (tenant.cloned(), payload.clone());
            if self.send(core, CoreMessage::NotifyStanding { tenant, payload }).is_err() {
                tracing::warn!(
                    core,
                    "a core's inbox is full; its clients are not told of a change"
                );
            }
        }
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
