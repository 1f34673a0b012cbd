use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    Deciding, Decision, Keeper, Round, UpstreamError,
    discovery::{Discover, Discovered, Found},
    run,
};
use crate::{
    audit::AuditLog,
    catalog::{
        self, Action, Definition, DefinitionKind, DefinitionTrust, Snapshot, TenantId, ToolKind,
        ToolsetId, Upstream, UpstreamServer,
        fixture::{self, entities as read},
    },
    governance::definitions::{Act, BookError, Event, Offer, Reach, Subject, Turn},
    json::OwnedRaw,
    rt::{self, CoreOptions, Stop, WorkerPool},
    scratch,
    server::{
        message::CoreMessage,
        publication::{Intent, Publication},
        recovery,
        reload::ReloadState,
        request_state::RequestStates,
        shared::{self, Shared},
    },
    sessions::SessionIds,
    settings::Settings,
    store::{Batch, Seal, Store, StoreOptions, Tree},
    telemetry::{Metrics, ProcessFigures},
};

fn toolset(id: &str) -> String {
    format!("[[toolset]]\ntenant = \"acme\"\nid = \"{id}\"\nkind = \"mcp\"\nconnection = \"api\"\n")
}

/// An API, whose connection is good enough for upstream servers too.
fn catalog(upstreams: &[&str]) -> String {
    let upstreams: String = upstreams.iter().map(|id| toolset(id)).collect();
    [fixture::api("rest"), fixture::tool("rest", "find"), upstreams].concat()
}

fn both() -> String {
    catalog(&["docs", "mail"])
}

fn acme() -> TenantId {
    TenantId::new("acme").unwrap()
}

fn id(toolset: &str) -> ToolsetId {
    ToolsetId::new(toolset).unwrap()
}

fn tool(name: &str, description: &str) -> Definition {
    let json = serde_json::json!({ "name": name, "description": description }).to_string();
    let mut hash = [0; 32];
    for (place, byte) in json.bytes().enumerate() {
        hash[place % 32] ^= byte.rotate_left(u32::try_from(place / 32).unwrap());
    }
    let json = OwnedRaw::parse(json.as_bytes()).unwrap();
    Definition { kind: DefinitionKind::Tool, name: name.into(), json, hash }
}

/// How a server behaves.
#[derive(Clone)]
enum Behaviour {
    Offers(Vec<Definition>),
    Fails,
    Hangs,
    Panics,
}

/// Servers that do as they are told.
#[derive(Default)]
struct Fake {
    servers: RefCell<BTreeMap<String, Behaviour>>,
    asked: RefCell<BTreeMap<String, usize>>,
    asking: Cell<usize>,
    asking_most: Cell<usize>,
}

impl Fake {
    fn set(&self, toolset: &str, behaviour: Behaviour) {
        self.servers.borrow_mut().insert(toolset.to_owned(), behaviour);
    }

    fn offers(&self, toolset: &str, definitions: &[Definition]) {
        self.set(toolset, Behaviour::Offers(definitions.to_vec()));
    }

    fn asked(&self, toolset: &str) -> usize {
        self.asked.borrow().get(toolset).copied().unwrap_or(0)
    }
}

impl Discover for Fake {
    fn discover<'a>(
        &'a self,
        server: &'a Arc<UpstreamServer>,
    ) -> Pin<Box<dyn Future<Output = Discovered> + 'a>> {
        let name = server.toolset.to_string();
        *self.asked.borrow_mut().entry(name.clone()).or_default() += 1;
        Box::pin(async move {
            let _asking = Counting::of(self);
            rt::sleep(Duration::from_millis(2)).await;
            let behaviour = self.servers.borrow().get(&name).cloned();
            match behaviour {
                Some(Behaviour::Offers(definitions)) => Ok(Found {
                    offer: Offer { definitions, ..Offer::default() },
                    notes: vec!["one was left out".to_owned()],
                }),
                Some(Behaviour::Hangs) => std::future::pending().await,
                Some(Behaviour::Panics) => panic!("a test"),
                Some(Behaviour::Fails) | None => Err("it cannot be reached".to_owned()),
            }
        })
    }
}

/// Counts askings that are under way.
struct Counting<'a>(&'a Fake);

impl<'a> Counting<'a> {
    fn of(fake: &'a Fake) -> Self {
        fake.asking.set(fake.asking.get() + 1);
        fake.asking_most.set(fake.asking_most.get().max(fake.asking.get()));
        Self(fake)
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.0.asking.set(self.0.asking.get() - 1);
    }
}

/// The state behind cores, without cores, over a directory that outlives it.
struct Fixture {
    folder: TempDir,
    settings: Settings,
    trust: DefinitionTrust,
    grace_ms: u64,
}

/// What a test has while the state lives.
struct Running {
    shared: Arc<Shared>,
    fake: Rc<Fake>,
    events: Rc<RefCell<Vec<(String, Turn)>>>,
    stop: Stop,
}

impl Fixture {
    fn new() -> Self {
        let mut settings = Settings::default();
        settings.store.free_bytes_min = 0;
        settings.audit.enabled = false;
        let discovery = &mut settings.downstream.discovery;
        discovery.retry_min_ms = 100;
        discovery.retry_max_ms = 200;
        discovery.deadline_ms = 300;
        let folder = scratch::in_memory();
        Self { folder, settings, trust: DefinitionTrust::Pin, grace_ms: 3_600_000 }
    }

    fn store(&self) -> Store {
        let options = StoreOptions { flush_ms: 5, ..self.settings.store.clone() };
        Store::open(self.folder.path(), options).unwrap()
    }

    /// Runs `test` beside the task that asks.
    fn run(&self, catalog: &str, test: impl AsyncFnOnce(&Running)) {
        rt::install_crypto_provider();
        let options = CoreOptions::default();
        rt::run_once(options, async {
            let running = self.start(catalog);
            rt::spawn(run(self.round(&running)));
            let done = rt::timeout(Duration::from_secs(20), test(&running)).await;
            done.expect("the test hangs");
            running.stop.stop();
            running.shared.store.stop().unwrap();
        })
        .unwrap();
    }

    fn start(&self, catalog: &str) -> Running {
        let (store, settings) = (self.store(), self.settings.clone());
        let seal = Seal::open(self.folder.path()).unwrap();
        let keeper = Arc::new(Keeper::load(&store, &settings.downstream.discovery).unwrap());
        let accepted = keeper.definitions();
        let publication =
            Publication::load(&store, seal, &settings, read(catalog), Vec::new(), accepted)
                .unwrap();
        let sessions = Arc::new(recovery::sessions(&store, &settings).unwrap());
        let (inbox, _) = rt::inbox::<CoreMessage>(16, 1 << 16);
        let audit = AuditLog::open(&self.folder.path().join("audit"), &settings.audit).unwrap();
        let shared = Arc::new(Shared::new(shared::Parts {
            publication,
            keeper,
            reload: Arc::new(ReloadState::new(catalog::files::fingerprint(&[]))),
            sessions,
            session_ids: SessionIds::new(&[0; 32], recovery::NODE),
            request_states: RequestStates::new(&[0; 32]).unwrap(),
            store,
            audit,
            workers: WorkerPool::start(1, 64).unwrap(),
            metrics: Metrics::new(1, 0, ProcessFigures::default),
            boot: 1,
            inboxes: vec![inbox],
            started_ms: 0,
            connections_max: 100,
            runtime_address: "127.0.0.1:0".parse().unwrap(),
            settings,
        }));
        Running { shared, fake: Rc::default(), events: Rc::default(), stop: Stop::new() }
    }

    fn round(&self, running: &Running) -> Round {
        let (shared, events) = (running.shared.clone(), running.events.clone());
        let settings = Upstream {
            definitions: self.trust,
            grace_ms: Some(self.grace_ms),
            ..Upstream::default()
        };
        Round {
            shared: running.shared.clone(),
            discover: running.fake.clone(),
            servers: Rc::new(move |snapshot| servers(&shared.publication, snapshot, &settings)),
            told: Rc::new(move |_, told: &[Event]| {
                let told = told.iter().map(|event| (event.subject.name().to_owned(), event.turn));
                events.borrow_mut().extend(told);
            }),
            stop: running.stop.clone(),
        }
    }
}

/// A server behind every toolset of the kind, as if each were assigned.
fn servers(
    publication: &Publication,
    snapshot: &Snapshot,
    settings: &Upstream,
) -> Vec<Arc<UpstreamServer>> {
    let view = snapshot.view("acme", "desk").unwrap();
    let ToolKind::Rest { connection, .. } = &view.tools()[0].tool.kind else { panic!() };
    let entities = publication.entities();
    let toolsets = entities.toolsets.iter().map(|entry| &entry.value);
    toolsets
        .filter(|toolset| toolset.kind == catalog::ToolsetKind::Mcp)
        .map(|toolset| {
            let whose = (toolset.tenant.clone(), toolset.id.clone());
            Arc::new(UpstreamServer {
                tenant: toolset.tenant.clone(),
                toolset: toolset.id.clone(),
                connection: connection.clone(),
                settings: settings.clone(),
                definitions: entities.definitions.get(&whose).cloned().unwrap_or_default(),
            })
        })
        .collect()
}

impl Running {
    /// What is published of a server.
    fn published(&self, toolset: &str) -> Option<Vec<String>> {
        let entities = self.shared.publication.entities();
        let definitions = entities.definitions.get(&(acme(), id(toolset)))?;
        Some(definitions.all.iter().map(|definition| definition.name.to_string()).collect())
    }

    fn reach(&self, toolset: &str) -> Reach {
        self.shared.keeper.state(&acme(), &id(toolset)).unwrap().book.server().reach
    }

    async fn refresh(&self, toolset: &str) {
        self.shared.keeper.refresh(&acme(), &id(toolset)).unwrap().await.unwrap();
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            rt::sleep(Duration::from_millis(5)).await;
        }
    }

    fn decide(&self, toolset: &str, act: Act, what: Deciding) -> Result<Vec<Event>, UpstreamError> {
        let (shared, decision) =
            (&self.shared, Decision { act, what, by: "ada".to_owned(), at_ms: 1 });
        shared.keeper.decide(&shared.publication, &acme(), &id(toolset), &decision)
    }

    fn turns(&self) -> Vec<(String, Turn)> {
        let mut turns = std::mem::take(&mut *self.events.borrow_mut());
        turns.sort_by(|(one, _), (other, _)| one.cmp(other));
        turns
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_is_accepted_is_published_and_what_changes_waits() {
    Fixture::new().run(&both(), async |running| {
        let (fake, version) = (&running.fake, running.shared.published().snapshot.version());
        fake.offers("docs", &[tool("search", "Searches"), tool("list", "Lists")]);
        fake.offers("mail", &[]);
        running.until(|running| running.published("docs").is_some()).await;
        assert_eq!(running.published("docs"), Some(names(&["list", "search"])));
        running.until(|running| running.published("mail") == Some(names(&[]))).await;
        // What was there at first is put on record right after.
        running.until(|running| running.events.borrow().len() >= 2).await;
        let turns = running.turns();
        assert!(turns.iter().all(|(_, turn)| *turn == Turn::First), "{turns:?}");

        // It tells of a change, and is asked within a moment.
        let other = tool("search", "Searches, and sends what it finds elsewhere");
        fake.offers("docs", &[other.clone(), tool("list", "Lists")]);
        running.shared.keeper.lists_changed(&acme(), &id("docs"));
        running.until(|running| running.published("docs") == Some(names(&["list"]))).await;
        // It is put on record right after.
        running.until(|running| !running.events.borrow().is_empty()).await;
        assert_eq!(running.turns(), [("search".to_owned(), Turn::Changed)]);
        assert_eq!(running.shared.keeper.troubles().1, ["acme/docs"]);
        let state = running.shared.keeper.state(&acme(), &id("docs")).unwrap();
        assert_eq!(state.notes, ["one was left out"]);
        assert_eq!(running.shared.keeper.figures().upstreams[0].pending, 1);

        // Approved as it was seen, it is back, and no change of the catalog was made.
        let seen = || Deciding::These(vec![(Subject::of(&other), other.hash)]);
        running.decide("docs", Act::Approve, seen()).unwrap();
        assert_eq!(running.published("docs"), Some(names(&["list", "search"])));
        assert_eq!(running.shared.published().snapshot.version(), version);
        let twice = running.decide("docs", Act::Approve, seen());
        assert!(matches!(twice, Err(UpstreamError::Book(BookError::Moved { .. }))));
        let none = running.decide("none", Act::Approve, seen());
        assert!(matches!(none, Err(UpstreamError::NoSuch(..))));
    });
}

#[test]
fn a_server_that_is_down_stays_in_the_lists_until_its_grace_is_over() {
    let fixture = Fixture { grace_ms: 2_500, ..Fixture::new() };
    fixture.run(&both(), async |running| {
        let fake = &running.fake;
        fake.offers("docs", &[tool("search", "Searches")]);
        running.until(|running| running.published("docs").is_some()).await;
        fake.set("docs", Behaviour::Fails);
        running.refresh("docs").await;
        assert!(matches!(running.reach("docs"), Reach::Stale { .. }));
        assert_eq!(running.published("docs"), Some(names(&["search"])));
        assert!(running.shared.keeper.troubles().0.contains(&"acme/docs".to_owned()));
        running.until(|running| running.published("docs").is_none()).await;
        assert!(matches!(running.reach("docs"), Reach::Dropped { .. }));
        // It is asked on, and is back with its next answer, without anybody's approval.
        fake.offers("docs", &[tool("search", "Searches")]);
        running.until(|running| running.published("docs") == Some(names(&["search"]))).await;
        assert_eq!(running.reach("docs"), Reach::Up);
    });
}

#[test]
fn one_that_hangs_or_breaks_delays_no_other() {
    let mut fixture = Fixture::new();
    fixture.settings.downstream.discovery.concurrent_max = 2;
    let all = [both(), toolset("slow"), toolset("bad")].concat();
    fixture.run(&all, async |running| {
        let fake = &running.fake;
        fake.set("slow", Behaviour::Hangs);
        fake.set("bad", Behaviour::Panics);
        fake.offers("docs", &[tool("search", "Searches")]);
        fake.offers("mail", &[tool("send", "Sends")]);
        let begun = Instant::now();
        running
            .until(|running| {
                running.published("docs").is_some() && running.published("mail").is_some()
            })
            .await;
        assert!(begun.elapsed() < Duration::from_secs(5));
        running.until(|running| running.fake.asked("slow") > 1).await;
        running.until(|running| running.fake.asked("bad") > 1).await;
        assert_eq!(running.fake.asking_most.get(), 2);
        let state = |toolset| running.shared.keeper.state(&acme(), &id(toolset)).unwrap();
        running.until(|_| state("slow").error.is_some() && state("bad").error.is_some()).await;
        assert!(state("slow").error.unwrap().contains("300 ms"));
        assert!(state("bad").error.unwrap().contains("broken off"));
        assert_eq!(fake.asked("docs"), 1, "who answered is left alone");
    });
}

#[test]
fn what_was_accepted_is_there_before_any_server_is_asked() {
    let fixture = Fixture::new();
    fixture.run(&both(), async |running| {
        running.fake.offers("docs", &[tool("search", "Searches")]);
        running.until(|running| running.published("docs") == Some(names(&["search"]))).await;
        running.fake.offers("docs", &[tool("search", "Searches"), tool("late", "Is late")]);
        running.refresh("docs").await;
        assert_eq!(running.shared.keeper.troubles().1, ["acme/docs"]);
    });
    let running = fixture.start("");
    assert_eq!(running.published("docs"), Some(names(&["search"])));
    assert_eq!(running.shared.keeper.troubles().1, ["acme/docs"]);
    running.shared.store.stop().unwrap();
    drop(running);
    fixture.run("", async |running| {
        // The list after a restart is not the first one.
        running.fake.offers("docs", &[tool("search", "Searches"), tool("third", "Is third")]);
        running.until(|running| running.fake.asked("docs") > 0).await;
        running.refresh("docs").await;
        assert_eq!(running.published("docs"), Some(names(&["search"])));
    });
}

#[test]
fn what_is_known_goes_with_its_toolset() {
    let fixture = Fixture::new();
    fixture.run(&both(), async |running| {
        running.fake.offers("docs", &[tool("search", "Searches")]);
        running.fake.offers("mail", &[tool("send", "Sends")]);
        running
            .until(|running| {
                running.published("docs").is_some() && running.published("mail").is_some()
            })
            .await;
        let without = read(&catalog(&["mail"]));
        running.shared.publication.apply(Intent::own(Action::Apply), without, true).unwrap();
        assert_eq!(running.published("docs"), None);
        running.until(|running| running.shared.keeper.state(&acme(), &id("docs")).is_none()).await;
        let kept = || {
            let rows = running.shared.store.scan_blocking(Tree::Upstreams, None, 100).unwrap();
            let text = |(key, _): (Vec<u8>, _)| String::from_utf8(key).unwrap();
            rows.into_iter().map(text).collect::<BTreeSet<_>>()
        };
        running.until(|_| !kept().iter().any(|key| key.starts_with("acme/docs/"))).await;
        assert!(kept().contains("acme/mail/tool/send"));
        // The same name again is another one, whose first list this is.
        running.shared.publication.apply(Intent::own(Action::Apply), read(&both()), false).unwrap();
        running.fake.offers("docs", &[tool("other", "Is other")]);
        running.until(|running| running.published("docs") == Some(names(&["other"]))).await;
    });
}

#[test]
fn nothing_is_accepted_where_all_is_to_be_approved() {
    let fixture = Fixture { trust: DefinitionTrust::ApproveNew, ..Fixture::new() };
    fixture.run(&both(), async |running| {
        running.fake.offers("docs", &[tool("a", "A"), tool("b", "B")]);
        running.until(|running| running.published("docs") == Some(names(&[]))).await;
        let seen = running.shared.keeper.state(&acme(), &id("docs")).unwrap().book.tag();
        let stale = running.decide("docs", Act::Approve, Deciding::All("0".repeat(32)));
        assert!(matches!(stale, Err(UpstreamError::Book(BookError::OtherTag))));
        let events = running.decide("docs", Act::Approve, Deciding::All(seen)).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!(running.published("docs"), Some(names(&["a", "b"])));
        let a = tool("a", "A");
        let refused = Deciding::These(vec![(Subject::of(&a), a.hash)]);
        running.decide("docs", Act::Refuse, refused).unwrap();
        assert_eq!(running.published("docs"), Some(names(&["b"])));
    });
}

#[test]
fn rows_of_another_release_stop_the_start() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let mut batch = Batch::new();
    batch.put(Tree::Upstreams, b"acme/docs/tool/search", b"\x07{}");
    store.write_blocking(batch).unwrap();
    let error = Keeper::load(&store, &fixture.settings.downstream.discovery).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("acme/docs/tool/search") && text.contains("format version 7"), "{text}");
    store.stop().unwrap();
}
