//! Who is told when which resources of upstream servers change.
//!
//! A subscription belongs to a session, or to a request that listens (MCP 2026-07-28,
//! `subscriptions/listen`), and ends with it. It names tenant, toolset and URI, so what a server says
//! reaches the callers of its own tenant alone. Shared by all cores; kept in memory, because the
//! servers' own sessions do not outlive a restart either.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::{
    catalog::{TenantId, ToolsetId, UpstreamServer},
    rpc::RpcError,
    sessions::SessionKey,
    streams::OutletId,
};

/// Most resources one session, or one request that listens, is told of.
const EACH_MAX: usize = 1000;
/// Most subscriptions of one tenant.
const TENANT_MAX: usize = 100_000;
/// Longest URI that can be subscribed to.
const URI_BYTES_MAX: usize = 8 * 1024;

/// Who is told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Subscriber {
    /// A session, on one of its streams.
    Session(SessionKey),
    /// A request that listens: its connection, and its id as JSON text.
    Listening(OutletId, Box<str>),
}

/// A resource of an upstream server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    pub(crate) tenant: TenantId,
    pub(crate) toolset: ToolsetId,
    pub(crate) uri: Box<str>,
}

impl Resource {
    /// That of a server with this URI.
    pub(crate) fn of(server: &UpstreamServer, uri: &str) -> Self {
        let (tenant, toolset) = (server.tenant.clone(), server.toolset.clone());
        Self { tenant, toolset, uri: uri.into() }
    }
}

/// What came of the end of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There was none.
    Nothing,
    /// Others still are told of the resource.
    OthersStay,
    /// Nobody is told of it any more.
    Last,
}

/// There are as many as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooMany {
    #[error("one session is told of 1000 resources at most; unsubscribe from others first")]
    Each,
    #[error("the subscriptions of this tenant are 100000, the most there may be")]
    Tenant,
    #[error("the URI is longer than 8 KiB, the most that can be subscribed to")]
    Uri,
}

impl From<TooMany> for RpcError {
    fn from(error: TooMany) -> Self {
        Self::invalid_params(error.to_string())
    }
}

/// All subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    told: HashMap<Resource, Vec<Subscriber>>,
    each: HashMap<Subscriber, HashSet<Resource>>,
    tenants: HashMap<TenantId, usize>,
}

impl Subscriptions {
    /// From now on the subscriber is told. `false` where it is already.
    ///
    /// # Errors
    /// It would be more than there may be.
    pub(crate) fn subscribe(
        &self,
        subscriber: Subscriber,
        resource: Resource,
    ) -> Result<bool, TooMany> {
        if resource.uri.len() > URI_BYTES_MAX {
            return Err(TooMany::Uri);
        }
        let Table { told, each, tenants } = &mut *self.0.lock();
        let own = each.get(&subscriber);
        if own.is_some_and(|own| own.contains(&resource)) {
            return Ok(false);
        }
        if own.is_some_and(|own| own.len() >= EACH_MAX) {
            return Err(TooMany::Each);
        }
        let of_tenant = tenants.get(&resource.tenant).copied().unwrap_or(0);
        if of_tenant >= TENANT_MAX {
            return Err(TooMany::Tenant);
        }
        tenants.insert(resource.tenant.clone(), of_tenant + 1);
        each.entry(subscriber.clone()).or_default().insert(resource.clone());
        told.entry(resource).or_default().push(subscriber);
        Ok(true)
    }

    /// From now on the subscriber is not told of it.
    pub(crate) fn unsubscribe(&self, subscriber: &Subscriber, resource: &Resource) -> Ended {
        let mut table = self.0.lock();
        let Some(own) = table.each.get_mut(subscriber) else { return Ended::Nothing };
        if !own.remove(resource) {
            return Ended::Nothing;
        }
        if own.is_empty() {
            table.each.remove(subscriber);
        }
        table.end(subscriber, resource)
    }

    /// The subscriber is gone. What it was told of, and whether nobody else is.
    pub(crate) fn forget(&self, subscriber: &Subscriber) -> Vec<(Resource, Ended)> {
        let mut table = self.0.lock();
        let own = table.each.remove(subscriber).unwrap_or_default();
        let ended = own.into_iter().map(|resource| {
            let ended = table.end(subscriber, &resource);
            (resource, ended)
        });
        ended.collect()
    }

    /// Who is told of a resource.
    pub(crate) fn of(&self, resource: &Resource) -> Vec<Subscriber> {
        self.0.lock().told.get(resource).cloned().unwrap_or_default()
    }
}

impl Table {
    fn end(&mut self, subscriber: &Subscriber, resource: &Resource) -> Ended {
        if let Some(count) = self.tenants.get_mut(&resource.tenant) {
            *count -= 1;
            if *count == 0 {
                self.tenants.remove(&resource.tenant);
            }
        }
        let Some(told) = self.told.get_mut(resource) else { return Ended::Last };
        told.retain(|one| one != subscriber);
        if !told.is_empty() {
            return Ended::OthersStay;
        }
        self.told.remove(resource);
        Ended::Last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(tenant: &str, uri: &str) -> Resource {
        let (tenant, toolset) = (TenantId::new(tenant).unwrap(), ToolsetId::new("notes").unwrap());
        Resource { tenant, toolset, uri: uri.into() }
    }

    fn session(number: u8) -> Subscriber {
        Subscriber::Session(SessionKey::from_bytes([number; 16]))
    }

    #[test]
    fn subscribers_of_one_tenant_are_told_until_they_end() {
        let all = Subscriptions::default();
        let (ours, theirs) = (resource("acme", "a:1"), resource("other", "a:1"));
        let listening = Subscriber::Listening(OutletId(4), "\"l\"".into());
        assert_eq!(all.subscribe(session(1), ours.clone()), Ok(true));
        assert_eq!(all.subscribe(session(1), ours.clone()), Ok(false));
        assert_eq!(all.subscribe(listening.clone(), ours.clone()), Ok(true));
        assert_eq!(all.subscribe(session(2), theirs.clone()), Ok(true));
        assert_eq!(all.of(&ours), [session(1), listening.clone()]);
        assert_eq!(all.of(&theirs), [session(2)]);
        assert_eq!(all.of(&resource("acme", "a:2")), []);
        assert_eq!(all.unsubscribe(&session(2), &ours), Ended::Nothing);
        assert_eq!(all.unsubscribe(&session(1), &ours), Ended::OthersStay);
        assert_eq!(all.unsubscribe(&session(1), &ours), Ended::Nothing);
        assert_eq!(all.forget(&listening), [(ours.clone(), Ended::Last)]);
        assert_eq!(all.forget(&listening), []);
        assert_eq!(all.unsubscribe(&session(2), &theirs), Ended::Last);
        let table = all.0.lock();
        assert!(table.told.is_empty() && table.each.is_empty() && table.tenants.is_empty());
    }

    #[test]
    fn subscriptions_are_bounded() {
        let all = Subscriptions::default();
        for number in 0..EACH_MAX {
            all.subscribe(session(1), resource("acme", &number.to_string())).unwrap();
        }
        let more = || resource("acme", "more");
        assert_eq!(all.subscribe(session(1), more()), Err(TooMany::Each));
        assert_eq!(all.subscribe(session(2), more()), Ok(true));
        let long = resource("acme", &"x".repeat(URI_BYTES_MAX + 1));
        assert_eq!(all.subscribe(session(2), long), Err(TooMany::Uri));
        all.0.lock().tenants.insert(more().tenant, TENANT_MAX);
        assert_eq!(all.subscribe(session(3), more()), Err(TooMany::Tenant));
    }
}
