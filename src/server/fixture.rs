//! Cores for tests, without sockets: all of them on one thread, with a store in memory.

use std::{cell::OnceCell, rc::Rc, sync::Arc, time::Duration, time::Instant};

use tempfile::TempDir;

use super::{
    core::{self, Core},
    cores,
    execute::Asking,
    publication::Publication,
    recovery,
    reload::ReloadState,
    request_state::RequestStates,
    session::{self, Introduction},
    shared::{self, Shared},
    trail::{self, Origin},
    upstreams::Keeper,
    write_behind::WriteBehind,
};
use crate::{
    audit::{AuditLog, Transport},
    catalog::{self, Trust, fixture},
    downstream::{AcrossCores, Listener, Reach, RestCaller, Upstreams},
    http::{Limits, Progress, RequestReader},
    identity::Caller,
    json::OwnedRaw,
    mcp::{Envelope, Revision},
    rpc::{self, Incoming, Message},
    rt::{self, CoreOptions, Resolver, WorkerPool},
    scratch,
    sessions::{ClientCapabilities, ClientInfo, Session, SessionIds},
    settings::Settings,
    store::{Seal, Store},
    telemetry::{Metrics, ProcessFigures},
};

/// Two tenants, each with a client application `desk`.
const CATALOG: &str = r#"
[[tenant]]
id = "acme"
[[client_application]]
tenant = "acme"
id = "desk"
open = true
[[tenant]]
id = "other"
[[client_application]]
tenant = "other"
id = "desk"
open = true
"#;

/// Cores that take each other's messages.
pub(crate) struct Cores {
    pub(crate) all: Vec<Rc<Core>>,
    _directory: TempDir,
}

/// Runs a test on two cores.
pub(crate) fn on_cores(test: impl AsyncFnOnce(&Cores)) {
    on_cores_with(Settings::default(), test);
}

/// The same with these settings.
pub(crate) fn on_cores_with(mut settings: Settings, test: impl AsyncFnOnce(&Cores)) {
    settings.store.free_bytes_min = 0;
    settings.audit.enabled = false;
    rt::install_crypto_provider();
    let directory = scratch::in_memory();
    rt::run_once(CoreOptions::default(), async move {
        let cores = Cores::new(settings, directory);
        let done = rt::timeout(Duration::from_secs(20), test(&cores)).await;
        done.expect("the test hangs");
        cores.all[0].shared.store.stop().unwrap();
    })
    .unwrap();
}

impl Cores {
    fn new(settings: Settings, directory: TempDir) -> Self {
        const COUNT: usize = 2;
        let store = Store::open(directory.path(), settings.store.clone()).unwrap();
        let seal = Seal::open(directory.path()).unwrap();
        let declared = fixture::entities(CATALOG);
        let keeper = Arc::new(Keeper::load(&store, &settings.downstream.discovery).unwrap());
        let accepted = keeper.definitions();
        let publication =
            Publication::load(&store, seal, &settings, declared, Vec::new(), accepted).unwrap();
        let identity = recovery::identity(&store).unwrap();
        let sessions = Arc::new(recovery::sessions(&store, &settings).unwrap());
        let streams = recovery::streams(&store, &settings, COUNT, identity.boot, 0).unwrap();
        let (inboxes, receivers): (Vec<_>, Vec<_>) =
            (0..COUNT).map(|_| rt::inbox(1000, 1 << 20)).unzip();
        let shared = Arc::new(Shared::new(shared::Parts {
            publication,
            keeper,
            reload: Arc::new(ReloadState::new(catalog::files::fingerprint(&[]))),
            sessions,
            session_ids: SessionIds::new(&identity.secret, recovery::NODE),
            request_states: RequestStates::new(&identity.secret).unwrap(),
            store,
            audit: AuditLog::open(&directory.path().join("audit"), &settings.audit).unwrap(),
            workers: WorkerPool::start(1, 16).unwrap(),
            metrics: Metrics::new(COUNT, 0, ProcessFigures::default),
            boot: identity.boot,
            inboxes,
            started_ms: 0,
            connections_max: 100,
            runtime_address: "127.0.0.1:0".parse().unwrap(),
            settings,
        }));
        let across = AcrossCores::default();
        let all = streams.into_iter().zip(receivers).enumerate().map(|(index, parts)| {
            let ((streams, ring), inbox) = parts;
            let number = u16::try_from(index).unwrap();
            let metrics = shared.core_metrics(number);
            let reach = Reach::new(
                &shared.settings.downstream,
                &shared.settings.http,
                Resolver::new(shared.workers.clone()),
                shared.workers.clone(),
                None,
                across.clone(),
                metrics,
            );
            let rest = RestCaller::new(reach);
            let write_behind = WriteBehind::new(number, ring, Duration::from_millis(5));
            let shared = shared.clone();
            let listener = Arc::clone(&shared) as Arc<dyn Listener>;
            let upstreams = Upstreams::new(&rest, &shared.settings.downstream.mcp, listener);
            let core = Core::new(core::Parts {
                index: number,
                shared,
                streams,
                write_behind,
                rest,
                upstreams,
            });
            rt::spawn(cores::read_inbox(core.clone(), inbox));
            core
        });
        Self { all: all.collect(), _directory: directory }
    }

    /// A session of the tenant's `desk`, opened on the first core.
    pub(crate) fn session(
        &self,
        tenant: &str,
        revision: Revision,
        capabilities: ClientCapabilities,
    ) -> Arc<Session> {
        let core = &self.all[0];
        let published = core.published();
        let view = published.snapshot.view(tenant, "desk").unwrap();
        let client = ClientInfo { name: "test", version: "1" };
        let introduction = Introduction { revision, client, capabilities };
        session::open(core, view, Caller::Open, &introduction).unwrap().1
    }
}

/// A request as it comes to a core.
pub(crate) struct Request<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) caller: Caller,
    pub(crate) revision: Revision,
    pub(crate) session: Option<&'a Arc<Session>>,
    pub(crate) envelope: Option<&'a Envelope<'a>>,
    /// The message.
    pub(crate) text: &'a str,
}

impl Request<'_> {
    /// Has it asked on a core.
    pub(crate) fn on<T>(
        &self,
        core: &Rc<Core>,
        ask: impl FnOnce(&Asking<'_>, &Message<'_>) -> T,
    ) -> T {
        let mut reader = RequestReader::new(Limits {
            head_bytes_max: 1024,
            headers_max: 10,
            body_bytes_max: 1024,
        });
        reader
            .buffer()
            .extend_from_slice(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        assert!(matches!(reader.poll(), Ok(Progress::Ready)));
        let published = core.published();
        let view = published.snapshot.view(self.tenant, "desk").unwrap();
        let limits = core.shared.limiter.handles(view, self.caller);
        let asker = trail::asker(view, self.caller, Trust::default());
        let asking = Asking {
            origin: Origin {
                core,
                view,
                caller: self.caller,
                trust: Trust::default(),
                limits: &limits,
                asker: &asker,
                transport: Transport::StreamableHttp,
                session: self.session.map(|session| session.key()),
                revision: Some(self.revision),
                external_id: None,
                arrived: Instant::now(),
                arrived_ms: core.clock.now_ms(),
            },
            revision: self.revision,
            session: self.session,
            initialized: self.session.is_some(),
            envelope: self.envelope,
            http: reader.request(),
            way: OnceCell::new(),
        };
        let text = OwnedRaw::parse(self.text.as_bytes()).unwrap();
        let Incoming::Single(message) = rpc::read(text.as_raw()).unwrap() else { panic!() };
        ask(&asking, &message)
    }
}
