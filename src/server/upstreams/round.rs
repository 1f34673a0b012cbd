//! Asking servers what they offer, each in its time: one task of the first core.

use std::{fmt, rc::Rc, sync::Arc, time::Duration};

use super::{
    discovery::{Discover, Discovered},
    keeper::Turned,
    record,
};
use crate::{
    catalog::{Snapshot, ToolsetKind, UpstreamServer},
    governance::definitions::Event,
    rt::{self, Stop, WorkError},
    server::{core::Core, random_bytes, shared::Shared, time},
};

/// How often it is looked whether the catalog has other servers now.
const LOOK: Duration = Duration::from_secs(1);

/// What asking servers needs of a core.
#[derive(Clone)]
pub(crate) struct Round {
    pub(crate) shared: Arc<Shared>,
    pub(crate) discover: Rc<dyn Discover>,
    /// The servers of the catalog.
    pub(crate) servers: Rc<dyn Fn(&Snapshot) -> Vec<Arc<UpstreamServer>>>,
    /// Puts on record what turned.
    pub(crate) told: Rc<dyn Fn(&UpstreamServer, &[Event])>,
    pub(crate) stop: Stop,
}

impl fmt::Debug for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Round").finish_non_exhaustive()
    }
}

impl Round {
    /// That of a core.
    pub(crate) fn of(core: &Rc<Core>, discover: Rc<dyn Discover>) -> Self {
        let recording = core.clone();
        Self {
            shared: core.shared.clone(),
            discover,
            servers: Rc::new(servers),
            told: Rc::new(move |server, events| {
                record::recorded(&recording, &server.tenant, &server.toolset, record::OWN, events);
            }),
            stop: core.stop.clone(),
        }
    }
}

/// The upstream servers of all views, each once.
fn servers(snapshot: &Snapshot) -> Vec<Arc<UpstreamServer>> {
    snapshot.views().flat_map(|view| view.upstreams()).cloned().collect()
}

/// Asks servers until the core stops.
pub(crate) async fn run(round: Round) {
    let keeper = round.shared.keeper.clone();
    let mut seen = None;
    while !round.stop.is_stopped() {
        // Before the looking: what changes during it is seen afterwards.
        let stirred = keeper.stirred();
        let version = round.shared.published_version();
        if seen != Some(version) {
            follow(&round).await;
            seen = Some(version);
        }
        let (due, next_ms) = keeper.take_due(time::now_ms());
        for server in due {
            rt::spawn(ask(round.clone(), server));
        }
        let pause = next_ms.map_or(LOOK, |next_ms| LOOK.min(Duration::from_millis(next_ms)));
        let _ = rt::timeout(pause, stirred).await;
    }
}

async fn follow(round: &Round) {
    let shared = round.shared.clone();
    let servers = (round.servers)(&shared.publication.current().snapshot);
    let forgotten = {
        let entities = shared.publication.entities();
        let toolsets = entities.toolsets.iter().map(|entry| &entry.value);
        let upstreams = toolsets
            .filter(|toolset| toolset.kind == ToolsetKind::Mcp)
            .map(|toolset| (toolset.tenant.clone(), toolset.id.clone()))
            .collect();
        shared.keeper.follow(servers, &upstreams)
    };
    if !forgotten.is_empty() {
        // What the workers leave undone the next start does.
        let _ = on_worker(round, move |shared| shared.keeper.forget(&forgotten)).await;
    }
}

/// Asks one server and takes in what it says. Ends in bounded time, whatever the server does.
async fn ask(round: Round, server: Arc<UpstreamServer>) {
    let asking = Asking { round: &round, server: &server, outcome: Some(BROKEN_OFF.to_owned()) };
    let deadline_ms = round.shared.settings.downstream.discovery.deadline_ms;
    let discovered = round.discover.discover(&server);
    let discovered = rt::timeout(Duration::from_millis(deadline_ms), discovered).await;
    let discovered: Discovered = discovered
        .unwrap_or_else(|_| Err(format!("it did not tell what it offers within {deadline_ms} ms")));
    let (taking, now_ms) = (server.clone(), time::now_ms());
    let taken = on_worker(&round, move |shared| {
        let before = shared.published_version();
        let taken = shared.keeper.take_in(&shared.publication, &taking, discovered, now_ms);
        (taken, shared.published_version() != before)
    });
    match taken.await {
        Ok(((events, error), is_published)) => {
            if is_published {
                round.shared.tell_clients();
            }
            (round.told)(&server, &events);
            asking.end(error);
        }
        Err(error) => asking.end(Some(error.to_string())),
    }
}

/// One asking; it ends on every way out.
struct Asking<'a> {
    round: &'a Round,
    server: &'a UpstreamServer,
    /// Why it failed.
    outcome: Option<String>,
}

const BROKEN_OFF: &str = "asking it was broken off";

impl Asking<'_> {
    fn end(mut self, error: Option<String>) {
        self.outcome = error;
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let error = self.outcome.take();
        let (keeper, server) = (&self.round.shared.keeper, self.server);
        let mut chance = [0; 8];
        random_bytes(&mut chance);
        let chance = u64::from_le_bytes(chance);
        let (tenant, toolset) = (&server.tenant, &server.toolset);
        match (keeper.end(server, error.clone(), time::now_ms(), chance), error) {
            (Some(Turned::Failed), Some(error)) => {
                tracing::warn!(%tenant, %toolset, %error, "an upstream server cannot be asked");
            }
            (Some(Turned::Back), _) => {
                tracing::info!(%tenant, %toolset, "an upstream server answers again");
            }
            _ => {}
        }
    }
}

/// Runs what blocks on a worker.
async fn on_worker<T: Send + 'static>(
    round: &Round,
    work: impl FnOnce(&Shared) -> T + Send + 'static,
) -> Result<T, WorkError> {
    let shared = round.shared.clone();
    round.shared.workers.run(move || work(&shared)).await
}
