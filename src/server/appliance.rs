//! What the appliance's own tools tell about it.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use super::shared::Shared;
use crate::{
    catalog::{RuntimeStatus, SessionList, SessionSummary},
    downstream::{Appliance, Scope},
    sessions::Session,
};

impl Appliance for Shared {
    fn status(&self, scope: Scope<'_>) -> RuntimeStatus {
        RuntimeStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.started.elapsed().as_secs(),
            cores: self.cores() as u64,
            driver: self.driver().to_owned(),
            catalog_version: self.published().snapshot.version(),
            sessions: u64::from(self.sessions.tenant_total(scope.tenant.as_str())),
        }
    }

    /// Looks at every session in memory: for a worker, not for a core.
    fn sessions(&self, scope: Scope<'_>, count_max: usize) -> SessionList {
        let mut total = 0;
        // The oldest of the newest is on top, to go when a newer one comes.
        let mut newest = BinaryHeap::new();
        self.sessions.for_each(|session| {
            if session.tenant() == scope.tenant.as_str()
                && session.client_application() == scope.client_application.as_str()
            {
                total += 1;
                newest.push(Reverse(ByAge(session.clone())));
                if newest.len() > count_max {
                    newest.pop();
                }
            }
        });
        let newest = newest.into_sorted_vec();
        let sessions = newest.iter().map(|Reverse(ByAge(session))| summary(session)).collect();
        SessionList { sessions, total }
    }
}

fn summary(session: &Session) -> SessionSummary {
    let client = session.client();
    SessionSummary {
        session: session.key().to_string(),
        client: format!("{} {}", client.name, client.version).trim().to_owned(),
        revision: session.revision().text().to_owned(),
        created_ms: session.created_ms(),
        last_seen_ms: session.seen_ms(),
    }
}

/// A session, compared by when it was opened.
struct ByAge(Arc<Session>);

impl Ord for ByAge {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.created_ms().cmp(&other.0.created_ms())
    }
}

impl PartialOrd for ByAge {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByAge {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByAge {}
