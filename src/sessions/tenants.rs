//! How many sessions each tenant has, in the heap and in the store together.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::RwLock;

/// The tenant has as many sessions as it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this tenant has {sessions} sessions, the most it may; end one or wait")]
pub struct AtCapacity {
    /// The limit.
    pub sessions: u32,
    /// When to try again.
    pub retry_after_seconds: u32,
}

/// A place for one more session of a tenant; given back when it is dropped unused.
#[derive(Debug)]
pub struct Reservation {
    tenant: Option<Arc<TenantSessions>>,
}

impl Reservation {
    /// The place is taken by a session now.
    pub(super) fn take(mut self) -> Option<Arc<TenantSessions>> {
        self.tenant.take()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(tenant) = self.tenant.take() {
            tenant.release();
        }
    }
}

/// One tenant's count.
#[derive(Default, Debug)]
pub(super) struct TenantSessions {
    count: AtomicU32,
}

impl TenantSessions {
    pub(super) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn release(&self) {
        let decrement = |count: u32| Some(count.saturating_sub(1));
        // The closure always gives a value.
        let _ = self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement);
    }
}

/// All tenants that have sessions.
#[derive(Default, Debug)]
pub(super) struct Tenants {
    by_name: RwLock<HashMap<Box<str>, Arc<TenantSessions>>>,
}

impl Tenants {
    pub(super) fn tenant(&self, name: &str) -> Arc<TenantSessions> {
        if let Some(tenant) = self.by_name.read().get(name) {
            return Arc::clone(tenant);
        }
        Arc::clone(self.by_name.write().entry(name.into()).or_default())
    }

    pub(super) fn reserve(
        &self,
        name: &str,
        sessions_max: u32,
        retry_after_seconds: u32,
    ) -> Result<Reservation, AtCapacity> {
        let tenant = self.tenant(name);
        let increment = |count: u32| (count < sessions_max).then(|| count + 1);
        match tenant.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increment) {
            Ok(_) => Ok(Reservation { tenant: Some(tenant) }),
            Err(_) => Err(AtCapacity { sessions: sessions_max, retry_after_seconds }),
        }
    }

    /// Counts a session found in the store; no limit is asked.
    pub(super) fn count_one(&self, name: &str) {
        self.tenant(name).count.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets tenants without sessions.
    pub(super) fn prune(&self) {
        let unused =
            |tenant: &Arc<TenantSessions>| tenant.count() == 0 && Arc::strong_count(tenant) == 1;
        if self.by_name.read().values().any(unused) {
            // Nobody can get hold of one while this lock is held.
            self.by_name.write().retain(|_, tenant| !unused(tenant));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_name.read().len()
    }

    /// Sessions of one tenant.
    pub(super) fn count(&self, name: &str) -> u32 {
        self.by_name.read().get(name).map_or(0, |tenant| tenant.count())
    }

    /// Sessions of all tenants.
    pub(super) fn total(&self) -> u64 {
        self.by_name.read().values().map(|tenant| u64::from(tenant.count())).sum()
    }
}
