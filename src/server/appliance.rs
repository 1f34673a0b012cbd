//! What the appliance's own tools tell about it.

use std::sync::Arc;

use super::core::Core;
use crate::{
    catalog::{RuntimeStatus, SessionList, SessionSummary},
    downstream::{Appliance, Scope},
    rt,
    sessions::Session,
};

impl Appliance for Core {
    fn status(&self, scope: Scope<'_>) -> RuntimeStatus {
        RuntimeStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.shared.started.elapsed().as_secs(),
            cores: self.shared.cores() as u64,
            driver: rt::driver_name().to_owned(),
            catalog_version: self.published().snapshot.version(),
            sessions: self
                .shared
                .sessions
                .client_total_in_heap(scope.tenant.as_str(), scope.client_application.as_str())
                as u64,
        }
    }

    fn sessions(&self, scope: Scope<'_>, count_max: usize) -> SessionList {
        let mut own: Vec<Arc<Session>> = Vec::new();
        self.shared.sessions.for_each(|session| {
            if session.tenant() == scope.tenant.as_str()
                && session.client_application() == scope.client_application.as_str()
            {
                own.push(session.clone());
            }
        });
        own.sort_by_key(|session| std::cmp::Reverse(session.created_ms()));
        let total = own.len() as u64;
        let sessions = own
            .iter()
            .take(count_max)
            .map(|session| {
                let client = session.client();
                SessionSummary {
                    session: session.key().to_string(),
                    client: format!("{} {}", client.name, client.version).trim().to_owned(),
                    revision: session.revision().text().to_owned(),
                    created_ms: session.created_ms(),
                    last_seen_ms: session.seen_ms(),
                }
            })
            .collect();
        SessionList { sessions, total }
    }
}
