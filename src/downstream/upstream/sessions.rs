//! Sessions at servers: one table for all cores.
//!
//! A session is opened when something is first asked in it, once at a time: who comes meanwhile,
//! waits for it. It is forgotten when the server has lost it, when nobody used it for long, and when
//! the client's own session ends. After a restart the table is empty, so that all are opened anew.
//! Its lock is held for a look-up and never while anything is waited for.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::catalog::{CompiledConnection, TenantId, ToolsetId, UpstreamServer};
use crate::downstream::error::CallError;
use crate::mcp::LogLevel;
use crate::mcp::upstream::{Received, ServerFacts, UpstreamKind};
use crate::rt::{
    InboxReceiver, InboxSender, OneshotReceiver, OneshotSender, Weigh, inbox, oneshot,
};
use crate::sessions::{ClientCapabilities, Revision, SessionKey};

use super::SessionScope;
use super::under_way::{Questioned, UnderWay};
use super::wanted::Wish;

/// What may wait for one request that comes by another way than its own response: the largest event,
/// and some small ones.
const WAITING_MESSAGES_MAX: usize = 256;
const WAITING_BYTES_MORE: usize = 1 << 20;
/// Messages without an answer of their own that are on their way to a server in one session.
const ERRANDS_MAX: usize = 64;

/// Whose a session at a server is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Whose {
    Session(SessionKey),
    /// Clients that can be asked other things are not told for one another.
    Shared(Box<str>, ClientCapabilities),
    Keeper,
}

impl Whose {
    /// None for a request that has its own.
    pub(super) fn of(scope: SessionScope<'_>, capabilities: ClientCapabilities) -> Option<Self> {
        match scope {
            SessionScope::Session(key) => Some(Self::Session(key)),
            SessionScope::Shared(application) => {
                Some(Self::Shared(application.into(), capabilities))
            }
            SessionScope::Keeper => Some(Self::Keeper),
            SessionScope::Request => None,
        }
    }

    /// Whether several callers have it.
    fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(..))
    }

    pub(super) fn session(&self) -> Option<SessionKey> {
        match self {
            Self::Session(key) => Some(*key),
            Self::Shared(..) | Self::Keeper => None,
        }
    }
}

/// Names a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) tenant: TenantId,
    pub(super) toolset: ToolsetId,
    pub(super) whose: Whose,
}

/// A message on its way to the request it belongs to.
#[derive(Debug)]
pub(super) struct Passed(pub(super) Received);

impl Weigh for Passed {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// A session at a server; at one without sessions, what is known of the server.
pub(super) struct Session {
    /// None where it is one request's.
    pub(super) key: Option<Key>,
    pub(super) server: Arc<UpstreamServer>,
    pub(super) kind: UpstreamKind,
    pub(super) revision: Revision,
    pub(super) id: Option<Box<str>>,
    /// Where messages are posted.
    pub(super) target: Box<str>,
    pub(super) facts: ServerFacts,
    pub(super) subscribed: Mutex<BTreeSet<Box<str>>>,
    pub(super) log_level: Mutex<Option<LogLevel>>,
    /// A GET was answered that there is no stream.
    has_no_stream: AtomicBool,
    next_id: AtomicI64,
    /// Messages on their way that nobody waits for.
    errands: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    under_way: UnderWay<InboxSender<Passed>>,
    used: Instant,
    has_ended: bool,
    /// Dropped, it ends the stream that the session hangs on.
    stream: Option<InboxSender<Passed>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Session")
            .field("kind", &self.kind)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

/// What is agreed on at the beginning of a session.
pub(super) struct Agreed {
    pub(super) kind: UpstreamKind,
    pub(super) revision: Revision,
    pub(super) id: Option<Box<str>>,
    pub(super) target: Box<str>,
    pub(super) facts: ServerFacts,
    pub(super) stream: Option<InboxSender<Passed>>,
}

impl Session {
    pub(super) fn new(key: Option<Key>, server: Arc<UpstreamServer>, agreed: Agreed) -> Arc<Self> {
        let Agreed { kind, revision, id, target, facts, stream } = agreed;
        let under_way = UnderWay::default();
        let state = State { under_way, used: Instant::now(), has_ended: false, stream };
        Arc::new(Self {
            key,
            server,
            kind,
            revision,
            id,
            target,
            facts,
            subscribed: Mutex::default(),
            log_level: Mutex::default(),
            has_no_stream: AtomicBool::new(false),
            next_id: AtomicI64::new(1),
            errands: AtomicUsize::new(0),
            state: Mutex::new(state),
        })
    }

    /// A place for one more message that nobody waits for. None where a server that asks without end
    /// takes no answers: it would have a connection of ours for each.
    pub(super) fn on_the_way(self: &Arc<Self>) -> Option<OnTheWay> {
        let before = self.errands.fetch_add(1, Ordering::Relaxed);
        let place = OnTheWay(Arc::clone(self));
        (before < ERRANDS_MAX).then_some(place)
    }

    /// The id of the next request.
    pub(super) fn next_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Whose client hears what is said in it.
    pub(super) fn client(&self) -> Option<SessionKey> {
        self.key.as_ref()?.whose.session()
    }

    pub(super) fn has_no_stream(&self) -> bool {
        self.has_no_stream.load(Ordering::Relaxed)
    }

    pub(super) fn note_no_stream(&self) {
        self.has_no_stream.store(true, Ordering::Relaxed);
    }

    /// From now on a request is under way. What comes for it by another way than its own response
    /// comes to the receiver.
    pub(super) fn begin(self: &Arc<Self>, id: i64, event_bytes_max: usize) -> Running {
        let bytes_max = event_bytes_max.saturating_add(WAITING_BYTES_MORE);
        let (sender, receiver) = inbox(WAITING_MESSAGES_MAX, bytes_max);
        let mut state = self.state.lock();
        // Closed at once where the session has ended.
        if !state.has_ended {
            state.under_way.begin(id, sender);
        }
        state.used = Instant::now();
        Running { session: Arc::clone(self), id, receiver, is_settled: false }
    }

    /// The request with this id, where it is under way.
    pub(super) fn running(&self, id: &[u8]) -> Option<InboxSender<Passed>> {
        self.state.lock().under_way.find(number(id)?).cloned()
    }

    /// Whom a question without a mark is for.
    pub(super) fn questioned(&self) -> Questioned<InboxSender<Passed>> {
        let state = self.state.lock();
        let is_shared = self.key.as_ref().is_some_and(|key| key.whose.is_shared());
        let meant = if is_shared { state.under_way.only() } else { state.under_way.latest() };
        match meant {
            Some(request) => Questioned::Request(request.clone()),
            None if is_shared => Questioned::Unclear,
            None => Questioned::Outside,
        }
    }

    /// The answer to a request has come. Nothing more is passed on to it.
    pub(super) fn settle(&self, id: &[u8]) {
        let Some(id) = number(id) else { return };
        let settled = self.state.lock().under_way.settle(id);
        drop(settled);
    }

    /// It is used no more. Whoever waits for something in it, waits in vain.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.has_ended = true;
        state.stream = None;
        let under_way = state.under_way.end();
        drop(state);
        drop(under_way);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().has_ended
    }

    fn is_idle(&self, now: Instant, idle_max: Duration) -> bool {
        let state = self.state.lock();
        state.under_way.is_empty() && now.saturating_duration_since(state.used) >= idle_max
    }

    fn is_at(&self, connection: &CompiledConnection) -> bool {
        place(&self.server.connection) == place(connection)
    }
}

/// The number in an id of ours.
fn number(id: &[u8]) -> Option<i64> {
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// A message on its way that nobody waits for.
pub(super) struct OnTheWay(Arc<Session>);

impl Drop for OnTheWay {
    fn drop(&mut self) {
        self.0.errands.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request under way.
pub(super) struct Running {
    session: Arc<Session>,
    pub(super) id: i64,
    pub(super) receiver: InboxReceiver<Passed>,
    /// Its answer has come, or it never reached the server.
    pub(super) is_settled: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        let gone = if self.is_settled {
            state.under_way.settle(self.id)
        } else {
            state.under_way.give_up(self.id)
        };
        state.used = Instant::now();
        drop(state);
        drop(gone);
    }
}

/// Where a server is.
fn place(connection: &CompiledConnection) -> (bool, &str, &str) {
    (connection.is_https, &connection.authority, &connection.target)
}

type Opened = Result<Arc<Session>, CallError>;

enum Slot {
    Opening(Vec<OneshotSender<Opened>>),
    Open(Arc<Session>),
}

/// What was found out about a server.
#[derive(Clone)]
struct Found {
    at: (bool, Box<str>, Box<str>),
    kind: UpstreamKind,
    /// Of one without sessions, what all its requests share.
    modern: Option<Arc<Session>>,
}

#[derive(Default)]
pub(super) struct Table {
    slots: HashMap<Key, Slot>,
    found: HashMap<(TenantId, ToolsetId), Found>,
    pub(super) wanted: HashMap<Key, Wish>,
    is_swept: bool,
}

/// The sessions of all cores.
#[derive(Clone, Default)]
pub struct AtServers {
    pub(super) table: Arc<Mutex<Table>>,
    /// Those of single requests.
    single: Arc<AtomicUsize>,
}

impl std::fmt::Debug for AtServers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AtServers").field("open", &self.count()).finish_non_exhaustive()
    }
}

/// What whoever needs a session has to do.
pub(super) enum Look {
    /// Take it.
    Open(Arc<Session>),
    /// Wait for it.
    Wait(OneshotReceiver<Opened>),
    /// Open it, and wait for that.
    ToOpen(Ticket, OneshotReceiver<Opened>),
}

/// To open a session. Dropped, it fails for all who wait.
pub(super) struct Ticket {
    sessions: AtServers,
    key: Key,
    is_done: bool,
}

impl Ticket {
    pub(super) fn finish(mut self, opened: Opened) {
        self.is_done = true;
        self.sessions.opened(&self.key, opened);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_done {
            self.sessions.opened(&self.key, Err(CallError::Overloaded));
        }
    }
}

/// Counts the session of a single request as long as it is there.
pub(super) struct Single(Arc<AtomicUsize>);

impl Drop for Single {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AtServers {
    /// How many are open.
    pub(super) fn count(&self) -> usize {
        let table = self.table.lock();
        let open = table.slots.values().filter(|slot| matches!(slot, Slot::Open(_))).count();
        open + self.single.load(Ordering::Relaxed)
    }

    /// How many are kept open at the server of a toolset. Those of one request alone are not among
    /// them.
    pub fn count_at(&self, tenant: &TenantId, toolset: &ToolsetId) -> usize {
        let table = self.table.lock();
        let at_server = table.slots.iter().filter(|(key, slot)| {
            matches!(slot, Slot::Open(_)) && key.tenant == *tenant && key.toolset == *toolset
        });
        at_server.count()
    }

    pub(super) fn single(&self) -> Single {
        self.single.fetch_add(1, Ordering::Relaxed);
        Single(Arc::clone(&self.single))
    }

    pub(super) fn look(&self, key: &Key, connection: &CompiledConnection) -> Look {
        let mut table = self.table.lock();
        let mut stale = None;
        let look = match table.slots.get_mut(key) {
            Some(Slot::Open(session)) if !session.has_ended() && session.is_at(connection) => {
                Look::Open(Arc::clone(session))
            }
            Some(Slot::Opening(waiting)) => {
                let (sender, receiver) = oneshot();
                waiting.push(sender);
                Look::Wait(receiver)
            }
            _ => {
                let (sender, receiver) = oneshot();
                stale = table.slots.insert(key.clone(), Slot::Opening(vec![sender]));
                let sessions = self.clone();
                Look::ToOpen(Ticket { sessions, key: key.clone(), is_done: false }, receiver)
            }
        };
        drop(table);
        if let Some(Slot::Open(session)) = stale {
            session.end();
        }
        look
    }

    fn opened(&self, key: &Key, opened: Opened) {
        let mut table = self.table.lock();
        let before = table.slots.remove(key);
        match &opened {
            // One without sessions has none to be kept.
            Ok(session) if session.kind != UpstreamKind::Modern => {
                table.slots.insert(key.clone(), Slot::Open(Arc::clone(session)));
            }
            _ => {}
        }
        drop(table);
        if let Some(Slot::Opening(waiting)) = before {
            for sender in waiting {
                // Who waited may have gone.
                let _ = sender.send(opened.clone());
            }
        }
    }

    /// How a server was found to be spoken to.
    pub(super) fn found(&self, server: &UpstreamServer) -> Option<UpstreamKind> {
        self.known(server).map(|found| found.kind)
    }

    /// What all requests to a server without sessions share.
    pub(super) fn modern(&self, server: &UpstreamServer) -> Option<Arc<Session>> {
        self.known(server)?.modern
    }

    fn known(&self, server: &UpstreamServer) -> Option<Found> {
        let table = self.table.lock();
        let found = table.found.get(&name_of(server))?;
        let (is_https, authority, target) = &found.at;
        let is_there = place(&server.connection) == (*is_https, &**authority, &**target);
        is_there.then(|| found.clone())
    }

    pub(super) fn learn(&self, session: &Arc<Session>) {
        let server = &session.server;
        let (is_https, authority, target) = place(&server.connection);
        let modern = (session.kind == UpstreamKind::Modern).then(|| Arc::clone(session));
        let at = (is_https, authority.into(), target.into());
        let found = Found { at, kind: session.kind, modern };
        self.table.lock().found.insert(name_of(server), found);
    }

    /// What was found out about a server is not so any more.
    pub(super) fn unlearn(&self, server: &UpstreamServer) {
        self.table.lock().found.remove(&name_of(server));
    }

    /// A session is used no more. Whether it was.
    pub(super) fn forget(&self, session: &Arc<Session>) -> bool {
        let mut was_known = false;
        if let Some(key) = &session.key {
            let mut table = self.table.lock();
            was_known = matches!(
                table.slots.get(key), Some(Slot::Open(other)) if Arc::ptr_eq(other, session)
            );
            if was_known {
                table.slots.remove(key);
            }
        }
        session.end();
        was_known
    }

    /// All that belongs to a client's session.
    pub(super) fn open_of(&self, client: SessionKey) -> Vec<Arc<Session>> {
        let table = self.table.lock();
        let slots = table.slots.iter().filter(|(key, _)| key.whose == Whose::Session(client));
        let open = slots.filter_map(|(_, slot)| match slot {
            Slot::Open(session) => Some(Arc::clone(session)),
            Slot::Opening(_) => None,
        });
        open.collect()
    }

    /// Takes out all that belongs to a client's session.
    pub(super) fn take_of(&self, client: SessionKey) -> Vec<Arc<Session>> {
        let is_its = |key: &Key| key.whose == Whose::Session(client);
        let mut table = self.table.lock();
        table.wanted.retain(|key, _| !is_its(key));
        take_out(&mut table, |key, _| is_its(key))
    }

    /// Takes out all there are.
    pub(super) fn take_all(&self) -> Vec<Arc<Session>> {
        let mut table = self.table.lock();
        table.wanted.clear();
        take_out(&mut table, |_, _| true)
    }

    /// Takes out those that nobody used for so long and that nobody listens to. Whether any are left.
    pub(super) fn take_idle(&self, now: Instant, idle_max: Duration) -> (Vec<Arc<Session>>, bool) {
        let mut table = self.table.lock();
        let wanted: Vec<Key> = table.wanted.keys().cloned().collect();
        let idle = take_out(&mut table, |key, session| {
            session.is_idle(now, idle_max) && !wanted.contains(key)
        });
        (idle, !table.slots.is_empty())
    }

    /// Whether this core is now the one that looks for idle sessions.
    pub(super) fn start_sweeping(&self) -> bool {
        !std::mem::replace(&mut self.table.lock().is_swept, true)
    }

    pub(super) fn stop_sweeping(&self) {
        self.table.lock().is_swept = false;
    }
}

fn take_out(table: &mut Table, which: impl Fn(&Key, &Session) -> bool) -> Vec<Arc<Session>> {
    let mut taken = Vec::new();
    table.slots.retain(|key, slot| match slot {
        Slot::Open(session) if which(key, session) => {
            taken.push(Arc::clone(session));
            false
        }
        _ => true,
    });
    taken
}

fn name_of(server: &UpstreamServer) -> (TenantId, ToolsetId) {
    (server.tenant.clone(), server.toolset.clone())
}
