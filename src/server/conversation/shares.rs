//! The places of requests that wait for their clients: bounded for all tenants together and for each,
//! so that no tenant takes them all.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use crate::catalog::TenantId;

/// How many requests wait on all cores, and of each tenant.
#[derive(Debug)]
pub(crate) struct SuspendedShares {
    counts: Mutex<Counts>,
    max: usize,
    per_tenant_max: usize,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    tenants: HashMap<TenantId, usize>,
}

impl SuspendedShares {
    pub(crate) fn new(max: usize, per_tenant_max: usize) -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), max, per_tenant_max })
    }

    /// Takes a place, where there is one.
    pub(super) fn reserve(self: &Arc<Self>, tenant: &TenantId) -> Option<Share> {
        let mut counts = self.counts.lock();
        let of_tenant = counts.tenants.get(tenant).copied().unwrap_or(0);
        if counts.total >= self.max || of_tenant >= self.per_tenant_max {
            return None;
        }
        counts.total += 1;
        counts.tenants.insert(tenant.clone(), of_tenant + 1);
        Some(Share { shares: Arc::downgrade(self), tenant: tenant.clone() })
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.counts.lock().total
    }
}

/// A place among those that wait; free again when it is dropped.
pub(super) struct Share {
    shares: Weak<SuspendedShares>,
    tenant: TenantId,
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(shares) = self.shares.upgrade() else { return };
        let mut counts = shares.counts.lock();
        counts.total = counts.total.saturating_sub(1);
        if let Some(count) = counts.tenants.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.tenants.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_for_all_and_for_each_tenant() {
        let shares = SuspendedShares::new(3, 2);
        let [acme, other] = ["acme", "other"].map(|id| TenantId::new(id).unwrap());
        let first = shares.reserve(&acme).unwrap();
        let second = shares.reserve(&acme).unwrap();
        assert!(shares.reserve(&acme).is_none());
        let third = shares.reserve(&other).unwrap();
        assert!(shares.reserve(&other).is_none(), "three are all there may be");
        drop(first);
        let fourth = shares.reserve(&acme).unwrap();
        assert_eq!(shares.count(), 3);
        drop((second, third, fourth));
        assert_eq!(shares.count(), 0);
        assert!(shares.counts.lock().tenants.is_empty());
    }
}
