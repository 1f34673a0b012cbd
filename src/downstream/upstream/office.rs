//! What asking servers from one core has in common.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::CompiledConnection;
use crate::downstream::exchange::Budget;
use crate::downstream::reach::Reach;
use crate::downstream::rest::CallEnvironment;
use crate::mcp::upstream::{ListingLimits, Posted, request_headers};
use crate::rt::{Deadline, Either, race};
use crate::settings;

use super::Listener;
use super::link::Link;
use super::sessions::{AtServers, Session};

/// As good as no limit.
const FOREVER: Duration = Duration::from_hours(240);

pub(super) struct Office {
    pub(super) reach: Rc<Reach>,
    pub(super) listener: Arc<dyn Listener>,
    pub(super) event_bytes_max: usize,
    pub(super) silent: Option<Duration>,
    pub(super) session_idle: Duration,
    pub(super) listing: ListingLimits,
}

impl Office {
    pub(super) fn new(
        reach: Rc<Reach>,
        settings: &settings::UpstreamServers,
        listener: Arc<dyn Listener>,
    ) -> Self {
        let silent = settings.silent_seconds_max;
        Self {
            reach,
            listener,
            event_bytes_max: settings.event_bytes_max,
            silent: (silent > 0).then(|| Duration::from_secs(silent)),
            session_idle: Duration::from_secs(settings.session_idle_seconds),
            listing: ListingLimits {
                entries_max: settings.list_entries_max,
                bytes_max: settings.list_bytes_max,
            },
        }
    }

    pub(super) fn servers(&self) -> &AtServers {
        &self.reach.across.servers
    }

    /// With the time that `left` says, or with all of it.
    pub(super) fn link<'a>(
        &'a self,
        connection: &'a Arc<CompiledConnection>,
        environment: &'a CallEnvironment<'a>,
        left: Option<Duration>,
    ) -> Link<'a> {
        let budget: Budget = self.reach.budget(connection, Some(left.unwrap_or(FOREVER)));
        let silent = self.silent;
        Link { reach: &self.reach, connection, environment, budget, is_repeatable: false, silent }
    }
}

/// What goes into the head of whatever belongs to a session.
pub(super) fn headers_of(session: &Session) -> Vec<(String, String)> {
    request_headers(&Posted {
        revision: Some(session.revision),
        session: session.id.as_deref(),
        method: None,
        params: None,
        schema: None,
    })
}

/// What a future comes to within a time; with a deadline as every long wait.
pub(super) async fn within<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    let deadline = Deadline::new();
    deadline.set(time);
    match race(future, deadline.expired()).await {
        Either::Left(done) => Some(done),
        Either::Right(()) => None,
    }
}
