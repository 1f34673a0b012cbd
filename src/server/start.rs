//! From settings to a running process, and back down.
//!
//! Everything that can be wrong is found before the first client is accepted: settings, TLS
//! files, the store, the catalog, the addresses. Then the cores start, and the main thread waits
//! for a signal.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    change_error::ChangeError,
    connections::{self, TooFewDescriptors},
    core::{self, Core},
    cores,
    message::CoreMessage,
    processors,
    publication::Publication,
    recovery::{self, RecoveryError},
    reload::{self, ReloadState},
    request_state::RequestStates,
    shared::{self, Shared},
    sockets::Sockets,
    time,
    upstreams::{Keeper, KeptError},
    write_behind::WriteBehind,
};
use crate::{
    audit::{AuditError, AuditLog},
    catalog::{self, Entities},
    downstream::{AcrossCores, Listener, Reach, RestCaller, Upstreams},
    identity::{KeyId, KeyRecord},
    rt::{
        self, BoundListener, ClientTls, CoreError, CoreOptions, Cores, DriverChoice, InboxReceiver,
        Resolver, ServerTls, Signal, Signals, TlsError, Undelivered, WorkerPool, service_manager,
    },
    sessions::{SessionIds, SessionTable},
    settings::{Driver, Ring, Settings},
    store::{Seal, SealError, Store, StoreError, StoreOptions, StoreState},
    streams::{JournalRing, StreamTable},
    telemetry::{self, LogGuard, Metrics, ProcessFigures},
};

/// Messages a core's inbox holds at most, and their bytes.
const INBOX_MESSAGES_MAX: usize = 262_144;
const INBOX_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Work waiting for the worker threads.
const WORK_QUEUE_MAX: usize = 4096;
/// How long a full inbox gets to empty before it is tried again.
const INBOX_FULL_PAUSE: Duration = Duration::from_millis(1);
/// How often the cores are asked whether they turn.
const BEAT: Duration = Duration::from_secs(2);

/// What a start is made of.
#[derive(Debug, Default)]
pub struct Start {
    /// The settings.
    pub settings: Settings,
    /// Entities besides those the settings' catalog files declare.
    pub entities: Option<Entities>,
    /// Keys to take in, if they are not there yet.
    pub keys: Vec<KeyRecord>,
}

/// Why the server did not start. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Signal handlers cannot be installed.
    #[error("signals cannot be handled: {0}")]
    Signals(#[source] io::Error),
    /// The log cannot be set up.
    #[error("{0}")]
    Logging(String),
    /// The certificate or key cannot be used.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The process may open too few files.
    #[error("{0}")]
    Descriptors(#[from] TooFewDescriptors),
    /// The store cannot be opened.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The key of the store's secrets cannot be used.
    #[error("{0}")]
    Seal(#[from] SealError),
    /// The audit log cannot be opened, or not all of it could be written.
    #[error("{0}")]
    Audit(#[from] AuditError),
    /// The state of the last run cannot be used.
    #[error("{0}")]
    Recovery(#[from] RecoveryError),
    /// What is known of upstream servers cannot be used.
    #[error("{0}")]
    Upstreams(#[from] KeptError),
    /// The catalog is wrong.
    #[error("the catalog cannot be used:\n{0}")]
    Catalog(#[from] ChangeError),
    /// The cipher that states of requests are sealed with cannot be used.
    #[error("the cipher AES-256-GCM cannot be used on this machine")]
    Cipher,
    /// An address cannot be listened on.
    #[error("{0}")]
    Listen(#[source] io::Error),
    /// Threads or runtimes cannot be made.
    #[error("the cores cannot start: {0}")]
    Cores(#[source] io::Error),
    /// A core ended badly.
    #[error("{0}")]
    Core(#[from] CoreError),
}

/// A running server.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    cores: Cores,
    admin_socket: PathBuf,
    admin_inherited: bool,
    tls: Option<ServerTls>,
    _logging: LogGuard,
}

/// Starts the server and returns once it accepts clients.
///
/// # Errors
/// Anything that keeps it from serving; nothing is left running then.
pub fn start(start: Start) -> Result<Running, StartError> {
    let Start { settings, entities, keys } = start;
    let logging = telemetry::start_logging(&settings.telemetry)
        .map_err(|error| StartError::Logging(error.to_string()))?;
    rt::install_crypto_provider();
    let tls = match (&settings.listen.certificate, &settings.listen.key) {
        (Some(certificate), Some(key)) => Some(ServerTls::load(certificate, key)?),
        _ => None,
    };
    // Before the reading: what changes during it is seen afterwards.
    let seen = catalog::files::fingerprint(&settings.runtime.catalog);
    let declared = reload::declared(&settings, entities)?;
    let processors = processors::allowed();
    let count = match settings.runtime.cores {
        0 => processors.len(),
        cores => cores,
    };
    let connections_max = connections_max(&settings, count)?;
    let store = Store::open(&settings.runtime.data_directory, store_options(&settings))?;
    let audit = AuditLog::open(&settings.audit_directory(), &settings.audit)?;
    // Addresses before anything is written: a start that fails must not leave its catalog behind.
    let listeners = Sockets::bind(&settings, count).map_err(StartError::Listen)?;
    let seal = Seal::open(&settings.runtime.data_directory)?;
    let keeper = Arc::new(Keeper::load(&store, &settings.downstream.discovery)?);
    let accepted = keeper.definitions();
    let publication = Publication::load(&store, seal, &settings, declared, keys, accepted)?;
    let now_ms = time::now_ms();
    let identity = recovery::identity(&store)?;
    let sessions = recovery::sessions(&store, &settings)?;
    let streams = recovery::streams(&store, &settings, count, identity.boot, now_ms)?;
    let (inboxes, receivers): (Vec<_>, Vec<_>) =
        (0..count).map(|_| rt::inbox(INBOX_MESSAGES_MAX, INBOX_BYTES_MAX)).unzip();
    let workers = WorkerPool::start(settings.runtime.worker_threads, WORK_QUEUE_MAX)
        .map_err(StartError::Cores)?;
    let sessions = Arc::new(sessions);
    let reload = Arc::new(ReloadState::new(seen));
    let figures = metrics(count, now_ms, &logging, &store, &audit, &sessions, (&reload, &keeper));
    let shared = Arc::new(Shared::new(shared::Parts {
        publication,
        keeper,
        reload,
        sessions,
        session_ids: SessionIds::new(&identity.secret, recovery::NODE),
        request_states: RequestStates::new(&identity.secret).ok_or(StartError::Cipher)?,
        store,
        audit,
        workers,
        metrics: figures,
        boot: identity.boot,
        inboxes,
        started_ms: now_ms,
        connections_max,
        runtime_address: listeners.runtime_address,
        settings,
    }));
    let admin_socket = shared.settings.admin_socket();
    let admin_inherited = listeners.admin_inherited;
    let cores = start_cores(&shared, processors, tls.clone(), streams, listeners, receivers)?;
    watch_cores(&shared).map_err(StartError::Cores)?;
    reload::watch(&shared).map_err(StartError::Cores)?;
    let address = shared.runtime_address;
    tracing::info!(%address, cores = count, boot = shared.boot, "serving");
    service_manager::ready(&format!("serving on {address}"));
    Ok(Running { shared, cores, admin_socket, admin_inherited, tls, _logging: logging })
}

impl Running {
    /// The address of the runtime plane; the port is the real one even where 0 was asked for.
    pub fn runtime_address(&self) -> SocketAddr {
        self.shared.runtime_address
    }

    /// The admin socket.
    pub fn admin_socket(&self) -> &Path {
        &self.admin_socket
    }

    /// Whether a key is known and good now.
    pub fn is_key_good(&self, id: KeyId) -> bool {
        self.shared.published().keys.is_good(id, time::now_ms())
    }

    /// Takes a new key in. Blocks until it is kept.
    ///
    /// # Errors
    /// Its client application is unknown, or the store cannot keep it.
    pub fn add_key(&self, record: KeyRecord) -> Result<(), ChangeError> {
        self.shared.publication.add_key(record)
    }

    /// The URL clients reach the runtime plane under, without a trailing slash.
    pub fn base_url(&self) -> String {
        let listen = &self.shared.settings.listen;
        match &listen.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None if listen.certificate.is_some() => format!("https://{}", self.runtime_address()),
            None => format!("http://{}", self.runtime_address()),
        }
    }

    /// Serves until the process is told to stop, then stops: what runs gets the grace time, what
    /// was accepted is written.
    ///
    /// # Errors
    /// A core that ended badly, or rows the store could not keep.
    pub fn run(self, mut signals: Signals) -> Result<(), StartError> {
        while signals.wait() == Signal::Reload {
            if let Some(Err(error)) = self.tls.as_ref().map(ServerTls::reload) {
                tracing::error!("the old certificate stays: {error}");
            }
            // Its outcome is logged, and on record for `status`.
            let _ = reload::reload(&self.shared);
        }
        tracing::info!("stopping");
        service_manager::stopping();
        for core in 0..self.shared.cores() {
            // An inbox too full for this is emptied first; one that is closed has stopped already.
            while let Err(Undelivered::Full(_)) = self.shared.send(core, CoreMessage::Stop) {
                thread::park_timeout(INBOX_FULL_PAUSE);
            }
        }
        self.cores.join()?;
        self.shared.workers.stop();
        // Commands look for a running server by its socket.
        if !self.admin_inherited {
            let _ = fs::remove_file(&self.admin_socket);
        }
        let recorded = self.shared.audit.stop();
        self.shared.store.stop()?;
        recorded?;
        tracing::info!("stopped");
        Ok(())
    }
}

/// How many connections each core may hold.
fn connections_max(settings: &Settings, cores: usize) -> Result<usize, TooFewDescriptors> {
    let (wanted, limit) = (settings.http.connections_max, rt::descriptors_max());
    let fitting = connections::places(wanted, cores, limit)?;
    if fitting < wanted {
        tracing::warn!(
            http.connections_max = wanted,
            used = fitting,
            open_files_max = limit,
            "each core holds fewer connections than set: the process may not have more files \
             open (`ulimit -n`, or LimitNOFILE of the service)"
        );
    }
    Ok(fitting)
}

/// A core gathers for one half of `flush_ms`, the store for the other.
fn store_options(settings: &Settings) -> StoreOptions {
    let flush_ms = settings.store.flush_ms - recovery::gather_ms(settings);
    StoreOptions { flush_ms, ..settings.store.clone() }
}

/// The figures of the process, asked for when metrics are read.
fn metrics(
    cores: usize,
    now_ms: u64,
    logging: &LogGuard,
    store: &Store,
    audit: &AuditLog,
    sessions: &Arc<SessionTable>,
    (reload, keeper): (&Arc<ReloadState>, &Arc<Keeper>),
) -> Metrics {
    let (dropped, store, sessions) = (logging.dropped_lines(), store.clone(), sessions.clone());
    let reload = reload.clone();
    let audit = audit.clone();
    let keeper = keeper.clone();
    Metrics::new(cores, now_ms, move || ProcessFigures {
        panics_contained: rt::panics_contained(),
        log_lines_dropped: dropped.count(),
        store_writable: store.state() == StoreState::Healthy,
        sessions_open: sessions.total(),
        catalog_reload_failures: reload.failures(),
        catalog_files_bad: reload.bad().is_some(),
        audit: audit.figures(),
        upstreams: keeper.figures(),
    })
}

/// What one core's thread takes with it.
struct Crew {
    streams: StreamTable,
    ring: JournalRing,
    runtime: BoundListener,
    admin: Vec<BoundListener>,
    inbox: InboxReceiver<CoreMessage>,
}

fn start_cores(
    shared: &Arc<Shared>,
    processors: Vec<usize>,
    tls: Option<ServerTls>,
    streams: Vec<(StreamTable, JournalRing)>,
    listeners: Sockets,
    receivers: Vec<InboxReceiver<CoreMessage>>,
) -> Result<Cores, StartError> {
    let mut admin = listeners.admin;
    let crews: Vec<Mutex<Option<Crew>>> = streams
        .into_iter()
        .zip(listeners.runtime)
        .zip(receivers)
        .map(|(((streams, ring), runtime), inbox)| {
            // The first core serves the operators.
            let admin = std::mem::take(&mut admin);
            Mutex::new(Some(Crew { streams, ring, runtime, admin, inbox }))
        })
        .collect();
    let count = crews.len();
    let shared = shared.clone();
    let options = core_options(&shared.settings, processors);
    let resolver = Resolver::new(shared.workers.clone());
    let client_tls = client_tls(&shared.settings)?;
    let across = AcrossCores::default();
    let servers = across.servers.clone();
    let sessions_of = move |tenant: &_, toolset: &_| servers.count_at(tenant, toolset);
    shared.keeper.count_sessions(Box::new(sessions_of));
    let body = move |index: usize| {
        let crew = crews.get(index).and_then(|crew| crew.lock().take());
        let (shared, tls) = (shared.clone(), tls.clone());
        let (resolver, client_tls) = (resolver.clone(), client_tls.clone());
        let across = across.clone();
        async move {
            let Some(Crew { streams, ring, runtime, admin, inbox }) = crew else { return };
            let number = u16::try_from(index).unwrap_or(u16::MAX);
            let gather = Duration::from_millis(recovery::gather_ms(&shared.settings));
            let write_behind = WriteBehind::new(number, ring, gather);
            let rest = rest_caller(&shared, number, &resolver, client_tls.clone(), &across);
            let listener = Arc::clone(&shared) as Arc<dyn Listener>;
            let settings = &shared.settings.downstream.mcp;
            let upstreams = Upstreams::new(&rest, settings, listener);
            let core = Core::new(core::Parts {
                index: number,
                shared,
                streams,
                write_behind,
                rest,
                upstreams,
            });
            cores::run(core, cores::Sockets { runtime, admin, tls }, inbox).await;
        }
    };
    Cores::start(options, count, body).map_err(StartError::Cores)
}

/// What HTTPS APIs are verified with. A machine without certificate authorities can still serve
/// APIs over plain HTTP; calls over HTTPS say what is missing.
fn client_tls(settings: &Settings) -> Result<Option<ClientTls>, TlsError> {
    match ClientTls::new(&settings.downstream.extra_roots) {
        Ok(tls) => Ok(Some(tls)),
        Err(error @ TlsError::NoRoots { .. }) => {
            tracing::warn!("calls to https APIs will fail: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn rest_caller(
    shared: &Shared,
    core: u16,
    resolver: &Resolver,
    tls: Option<ClientTls>,
    across: &AcrossCores,
) -> RestCaller {
    let settings = &shared.settings;
    let (resolver, workers) = (resolver.clone(), shared.workers.clone());
    let metrics = shared.core_metrics(core);
    let across = across.clone();
    let (downstream, http) = (&settings.downstream, &settings.http);
    RestCaller::new(Reach::new(downstream, http, resolver, workers, tls, across, metrics))
}

fn core_options(settings: &Settings, processors: Vec<usize>) -> CoreOptions {
    CoreOptions {
        driver: match settings.runtime.driver {
            Driver::Auto => DriverChoice::Auto,
            Driver::IoUring => DriverChoice::IoUring,
            Driver::Epoll => DriverChoice::Epoll,
        },
        tuned_ring: settings.runtime.ring == Ring::Tuned,
        ring_entries: settings.runtime.ring_entries,
        cpus: if settings.runtime.pin { processors } else { Vec::new() },
    }
}

/// A thread that asks every core whether it turns. Readiness and the service manager's watchdog
/// rest on the answers: a core that hangs is noticed, and only the service manager can help it.
fn watch_cores(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::downgrade(shared);
    let pause = service_manager::watchdog_interval().map_or(BEAT, |limit| BEAT.min(limit / 2));
    thread::Builder::new().name("watch".to_owned()).spawn(move || {
        while let Some(shared) = shared.upgrade() {
            for core in 0..shared.cores() {
                let (answer, beat) = rt::oneshot();
                let asked = shared.send(core, CoreMessage::Beat { answer });
                if asked.is_err() || beat.recv_blocking().is_err() {
                    return;
                }
            }
            shared.last_beat_ms.store(time::now_ms(), Ordering::Relaxed);
            service_manager::keep_alive();
            drop(shared);
            thread::park_timeout(pause);
        }
    })?;
    Ok(())
}
