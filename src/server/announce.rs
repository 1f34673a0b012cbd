//! Telling clients that their lists are others now.
//!
//! Changes of the catalog are gathered for a moment, then what clients see is compared with what
//! they were last told of: several changes are one notification, and one that was taken back is
//! none. Each core gets the announcement once and tells the streams it holds: those that have a
//! client now, of the views that really differ. Nothing is kept for those that have none, because
//! lists are read again on reconnect.
//!
//! A session hears of it once, whatever streams it has and on whatever cores: its standing stream
//! if it has one, else one of the streams that carry its answers. Which one, the announcement
//! itself settles.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use super::{core::Core, message::CoreMessage, shared::Shared};
use crate::{
    catalog::{ClientApplicationId, Snapshot, TenantId, ViewChange},
    mcp::Happening,
    rt,
    streams::{OutletId, SessionKey, StreamId, StreamKind},
};

/// How long changes are gathered. With the way to the clients it stays below a second.
const GATHER: Duration = Duration::from_millis(750);
/// How long standing streams of other cores have the first word.
const STANDING_FIRST: Duration = Duration::from_millis(50);
/// The pause before busy workers are asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// Streams that are told in one go: a few milliseconds.
const STEP_STREAMS: usize = 256;
/// Parts of the set of sessions that were told, each with a lock of its own.
const SHARDS: usize = 16;

/// What clients were last told of.
#[derive(Debug)]
pub(crate) struct Announcer {
    told: Mutex<Arc<Snapshot>>,
    /// There was a change that clients may not know of.
    is_due: AtomicBool,
    /// It gathers more.
    is_gathering: AtomicBool,
}

impl Announcer {
    pub(crate) fn new(current: Arc<Snapshot>) -> Self {
        Self {
            told: Mutex::new(current),
            is_due: AtomicBool::new(false),
            is_gathering: AtomicBool::new(false),
        }
    }

    /// What differs between `current` and what clients know, which from now on is `current`.
    fn changes(&self, current: &Arc<Snapshot>) -> Option<Announcement> {
        let mut told = self.told.lock();
        let before = std::mem::replace(&mut *told, Arc::clone(current));
        let mut views: Views = BTreeMap::new();
        for ViewChange { view, tools, prompts, resources } in current.changes(&before) {
            let of_tenant = views.entry(view.tenant.clone()).or_default();
            let lists = Lists { tools, prompts, resources };
            of_tenant.insert(view.client_application.clone(), lists);
        }
        (!views.is_empty()).then(|| Announcement::new(Audience::Views(views)))
    }
}

type Views = BTreeMap<TenantId, HashMap<ClientApplicationId, Lists>>;

/// The lists that are others now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Lists {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl Lists {
    /// What clients are to be told of.
    fn happenings(self) -> impl Iterator<Item = Happening<'static>> {
        let all = [
            (self.tools, Happening::Tools),
            (self.prompts, Happening::Prompts),
            (self.resources, Happening::Resources),
        ];
        all.into_iter().filter_map(|(is_changed, happening)| is_changed.then_some(happening))
    }
}

#[derive(Debug)]
enum Audience {
    Views(Views),
    /// Every client, of every tenant: an operator asked for it.
    Everyone,
}

/// One announcement, the same for all cores.
#[derive(Debug)]
pub(crate) struct Announcement {
    audience: Audience,
    /// Sessions that were told.
    told: [Mutex<HashSet<SessionKey>>; SHARDS],
}

impl Announcement {
    fn new(audience: Audience) -> Self {
        Self { audience, told: Default::default() }
    }

    fn lists(&self, tenant: &str, client_application: &str) -> Option<Lists> {
        match &self.audience {
            Audience::Views(views) => views.get(tenant)?.get(client_application).copied(),
            Audience::Everyone => Some(Lists { tools: true, ..Lists::default() }),
        }
    }

    /// True for the first who asks for this session, on whatever core.
    fn claim(&self, session: SessionKey) -> bool {
        let shard = usize::from(session.as_bytes()[15]) % SHARDS;
        self.told[shard].lock().insert(session)
    }
}

impl Shared {
    /// The catalog changed: who sees something else now hears of it within a second.
    pub(crate) fn tell_clients(&self) {
        self.announcer.is_due.store(true, Ordering::Release);
        // Where its inbox is full, that core looks for itself once a second.
        let _ = self.send(0, CoreMessage::Gather);
    }

    /// Tells every client, of every tenant, that its tools are others.
    pub(crate) fn tell_everyone(&self) {
        let announcement = Arc::new(Announcement::new(Audience::Everyone));
        for core in 0..self.cores() {
            let told = self.send(core, CoreMessage::Announce(announcement.clone()));
            if told.is_err() {
                tracing::warn!(core, "a core's inbox is full; its clients are not told");
            }
        }
    }
}

/// Lets changes gather, if there are any, then has all cores tell of what came of them.
pub(crate) fn gather(core: &Rc<Core>) {
    let announcer = &core.shared.announcer;
    if !announcer.is_due.load(Ordering::Acquire)
        || announcer.is_gathering.swap(true, Ordering::AcqRel)
    {
        return;
    }
    let core = core.clone();
    rt::spawn(async move {
        rt::sleep(GATHER).await;
        // Before the catalog is looked at: what changes from here on gathers anew.
        core.shared.announcer.is_due.store(false, Ordering::Release);
        core.shared.announcer.is_gathering.store(false, Ordering::Release);
        loop {
            let shared = core.shared.clone();
            let compare = move || shared.announcer.changes(&shared.publication.current().snapshot);
            match core.shared.workers.run(compare).await {
                Ok(None) => return,
                Ok(Some(announcement)) => {
                    let announcement = Arc::new(announcement);
                    for other in 0..core.shared.cores() {
                        core.send(other, CoreMessage::Announce(announcement.clone()));
                    }
                    return;
                }
                Err(_) if core.stop.is_stopped() => return,
                Err(_) => rt::sleep(BUSY_PAUSE).await,
            }
        }
    });
}

/// Tells the clients of this core.
pub(crate) fn announce(core: &Rc<Core>, announcement: &Arc<Announcement>) {
    core.outlets.for_each_audience(|outlet, tenant, client_application| {
        let lists = announcement.lists(tenant, client_application);
        let happenings = lists.into_iter().flat_map(Lists::happenings);
        happenings.for_each(|happening| outlet.hear(happening));
    });
    let (core, announcement) = (core.clone(), announcement.clone());
    rt::spawn(async move {
        let heard = attached(&core, &announcement).into_iter();
        let (answering, standing): (Vec<_>, Vec<_>) =
            heard.partition(|heard| heard.kind == StreamKind::Post);
        tell_in_steps(&core, &announcement, &standing).await;
        if !answering.is_empty() {
            rt::sleep(STANDING_FIRST).await;
            tell_in_steps(&core, &announcement, &answering).await;
        }
    });
}

/// Tells many streams without holding the core: what was told is written before more is told.
async fn tell_in_steps(core: &Rc<Core>, announcement: &Announcement, all: &[Heard]) {
    for step in all.chunks(STEP_STREAMS) {
        for heard in step {
            // Its client may have gone meanwhile, or its answer may have ended it.
            if core.streams.borrow().outlet(heard.stream) == Some(heard.outlet) {
                tell(core, announcement, heard);
            }
        }
        core.write_behind.wake();
        rt::sleep(Duration::ZERO).await;
    }
}

/// A stream of this core with a client who is concerned.
struct Heard {
    stream: StreamId,
    outlet: OutletId,
    session: SessionKey,
    kind: StreamKind,
    lists: Lists,
}

fn attached(core: &Core, announcement: &Announcement) -> Vec<Heard> {
    let streams = core.streams.borrow();
    let heard = streams.open_streams().filter_map(|(stream, key, kind)| {
        let outlet = streams.outlet(stream)?;
        let session = core.shared.sessions.peek(key)?;
        let lists = announcement.lists(session.tenant(), session.client_application())?;
        Some(Heard { stream, outlet, session: key, kind, lists })
    });
    heard.collect()
}

fn tell(core: &Rc<Core>, announcement: &Announcement, heard: &Heard) {
    if !announcement.claim(heard.session) {
        return;
    }
    for happening in heard.lists.happenings() {
        let (payload, now_ms) = (happening.untagged(), core.clock.now_ms());
        let published = core.streams.borrow_mut().publish(heard.stream, &payload, now_ms);
        if let Some(published) = published
            && let Some(outlet) = published.outlet
        {
            core.deliver(outlet, published.frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::fixture;

    fn snapshot(assigned: &[&str], version: u64) -> Arc<Snapshot> {
        let clients = ["desk", "shop"].map(|client| {
            format!("[[client_application]]\ntenant = \"acme\"\nid = \"{client}\"\n")
        });
        let assignments = assigned.iter().map(|client| {
            format!(
                "[[assignment]]\ntenant = \"acme\"\nclient_application = \"{client}\"\n\
                 toolset = \"own\"\n"
            )
        });
        let text = "[[tenant]]\nid = \"acme\"\n[[toolset]]\ntenant = \"acme\"\n\
                    id = \"own\"\nkind = \"builtin\"\n";
        let text = text.to_owned() + &clients.concat() + &assignments.collect::<String>();
        Arc::new(Snapshot::compile(&fixture::entities(&text), version).unwrap())
    }

    #[test]
    fn only_views_that_differ_are_told_and_a_change_back_is_none() {
        let announcer = Announcer::new(snapshot(&["desk"], 1));
        assert!(announcer.changes(&snapshot(&["desk"], 2)).is_none());
        let announcement = announcer.changes(&snapshot(&["desk", "shop"], 3)).unwrap();
        assert!(announcement.lists("acme", "desk").is_none());
        assert!(announcement.lists("other", "shop").is_none());
        let lists = announcement.lists("acme", "shop").unwrap();
        assert_eq!(lists.happenings().collect::<Vec<_>>(), [Happening::Tools]);
        // Told once, it is known.
        assert!(announcer.changes(&snapshot(&["desk", "shop"], 4)).is_none());
    }

    #[test]
    fn a_session_is_told_once() {
        let announcement = Announcement::new(Audience::Everyone);
        let (one, other) = (SessionKey::from_bytes([1; 16]), SessionKey::from_bytes([2; 16]));
        assert_eq!(
            [announcement.claim(one), announcement.claim(one), announcement.claim(other)],
            [true, false, true]
        );
    }
}
