//! What the appliance's own tools tell about it.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use super::shared::Shared;
use crate::{
    catalog::{RuntimeStatus, SessionList, SessionSummary},
    downstream::{Appliance, Scope},
    sessions::{Session, SessionTable},
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
        let (newest, total) = newest(&self.sessions, count_max, |session| {
            session.tenant() == scope.tenant.as_str()
                && session.client_application() == scope.client_application.as_str()
        });
        SessionList { sessions: newest.iter().map(|session| summary(session)).collect(), total }
    }
}

/// The newest of the wanted sessions in memory, the newest first, and how many are wanted. Looks at
/// every session: for a worker, not for a core.
pub(crate) fn newest(
    table: &SessionTable,
    count_max: usize,
    is_wanted: impl Fn(&Session) -> bool,
) -> (Vec<Arc<Session>>, u64) {
    let mut total = 0;
    // The oldest of the newest is on top, to go when a newer one comes.
    let mut newest = BinaryHeap::new();
    table.for_each(|session| {
        if is_wanted(session) {
            total += 1;
            newest.push(Reverse(ByAge(session.clone())));
            if newest.len() > count_max {
                newest.pop();
            }
        }
    });
    let newest = newest.into_sorted_vec().into_iter();
    (newest.map(|Reverse(ByAge(session))| session).collect(), total)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::{
        ClientCapabilities, ClientInfo, Owner, Revision, SessionKey, SessionLimits, SessionRecord,
    };

    #[test]
    fn the_newest_come_first_and_all_are_counted() {
        let limits = SessionLimits { idle_ms: 1000, lifetime_ms: 9000, heap_idle_ms: 100 };
        let table = SessionTable::new(limits);
        for (number, created_ms) in [(1, 30), (2, 10), (3, 20)] {
            let tenant = if number == 1 { "other" } else { "acme" };
            let owner = Owner::new(tenant, "desk", "open").unwrap();
            let client = ClientInfo { name: "client", version: "1" };
            let capabilities = ClientCapabilities::default();
            let record = SessionRecord::new(
                &owner,
                Revision::NEWEST_WITH_SESSIONS,
                client,
                capabilities,
                created_ms,
                9000,
            );
            let key = SessionKey::from_slice(&[number; 16]).unwrap();
            table.insert(table.reserve(tenant, 9).unwrap(), key, record);
        }
        let created = |(sessions, total): (Vec<Arc<Session>>, u64)| {
            (sessions.iter().map(|session| session.created_ms()).collect::<Vec<_>>(), total)
        };
        assert_eq!(created(newest(&table, 2, |_| true)), (vec![30, 20], 3));
        let own = newest(&table, 9, |session| session.tenant() == "acme");
        assert_eq!(created(own), (vec![20, 10], 2));
    }
}
