//! All accounts of the appliance, and where callers find theirs.
//!
//! An account is kept for each limit by whom it is for and the rate it is at: a new catalog with
//! the same rate goes on with it, one with another rate begins anew. An account that is at rest is
//! as good as a new one, so [`Limiter::sweep`] drops those nobody holds without anybody noticing.
//! Accounts of callers have a bound; callers beyond it share one for each client application.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::gauge::{Capped, Gauge};
use super::handles::{Handles, Meter, Meters, ViewMeters, address};
use super::pace::{Account, Pace};
use super::{Class, Level};
use crate::catalog::{ClientApplicationId, CompiledTool, Limits, Rate, TenantId, ToolsetId, View};
use crate::identity::Caller;

/// Accounts of callers; see the module.
pub const ACCOUNTS_MAX: usize = 1 << 18;

/// Parts of each table. One is swept at a time.
const SHARDS: usize = 16;

/// The limits of everybody. Shared by all cores; see the room.
#[derive(Debug)]
pub struct Limiter {
    accounts: Table<AccountKey, Arc<Account>>,
    gauges: Table<Scope, Arc<Gauge>>,
    views: Table<(TenantId, ClientApplicationId), Weak<ViewMeters>>,
    callers: Table<Scope, Weak<Handles>>,
    next_shard: AtomicUsize,
    accounts_max: usize,
}

/// Whom an account is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Scope {
    tenant: TenantId,
    of: Of,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Of {
    Tenant,
    Client(ClientApplicationId),
    Caller(ClientApplicationId, Caller),
    /// The callers beyond the bound.
    OtherCallers(ClientApplicationId),
    Tool(ClientApplicationId, ToolsetId, Box<str>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct AccountKey {
    scope: Scope,
    class: Class,
    rate: (u32, u32, Option<u32>),
}

/// What a sweep found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweptAccounts {
    /// Accounts that were dropped.
    pub dropped: usize,
    /// Accounts in all parts together.
    pub kept: usize,
}

impl Default for Limiter {
    fn default() -> Self {
        Self::new(ACCOUNTS_MAX)
    }
}

impl Limiter {
    /// With room for the accounts of callers of `accounts_max` limits.
    pub fn new(accounts_max: usize) -> Self {
        Self {
            accounts: Table::default(),
            gauges: Table::default(),
            views: Table::default(),
            callers: Table::default(),
            next_shard: AtomicUsize::new(0),
            accounts_max,
        }
    }

    /// The limits of a caller in a view. To be asked once for each connection and snapshot, and
    /// kept: this takes locks. All connections of a caller get the same.
    pub fn handles(&self, view: &Arc<View>, caller: Caller) -> Arc<Handles> {
        let scope = scope(view, Of::Caller(view.client_application.clone(), caller));
        let known = self.callers.find(&scope).and_then(|known| known.upgrade());
        if let Some(known) = known.filter(|known| Arc::ptr_eq(known.view(), view)) {
            return known;
        }
        let shared = self.view_meters(view);
        let own = self.meters(Level::Caller, &scope, &view.caller_limits);
        let handles = Arc::new(Handles { shared, own });
        if self.callers.len() < self.accounts_max {
            self.callers.put(scope, Arc::downgrade(&handles));
        }
        handles
    }

    /// The limits a view's callers share, without any of one caller: for explaining.
    pub fn shared_handles(&self, view: &Arc<View>) -> Handles {
        Handles { shared: self.view_meters(view), own: Meters::default() }
    }

    /// Drops what nobody holds any more, in one part of sixteen; called once a second.
    pub fn sweep(&self, now_ns: u64) -> SweptAccounts {
        let shard = self.next_shard.fetch_add(1, Ordering::Relaxed) % SHARDS;
        // Nobody else has it, and nobody can get it while the part is locked.
        let dropped = self
            .accounts
            .retain(shard, |account| Arc::strong_count(account) > 1 || !account.is_at_rest(now_ns));
        self.gauges.retain(shard, |gauge| Arc::strong_count(gauge) > 1);
        self.views.retain(shard, |view| view.strong_count() > 0);
        self.callers.retain(shard, |handles| handles.strong_count() > 0);
        SweptAccounts { dropped, kept: self.accounts.len() }
    }

    fn view_meters(&self, view: &Arc<View>) -> Arc<ViewMeters> {
        let key = (view.tenant.clone(), view.client_application.clone());
        let known = self.views.find(&key).and_then(|known| known.upgrade());
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.view, view)) {
            return known;
        }
        let of_tenant = scope(view, Of::Tenant);
        let mut shared = self.meters(Level::Tenant, &of_tenant, &view.tenant_limits);
        let of_client = scope(view, Of::Client(view.client_application.clone()));
        let of_client = self.meters(Level::ClientApplication, &of_client, &view.limits);
        for (meters, more) in shared.rates.iter_mut().zip(of_client.rates) {
            meters.extend(more);
        }
        shared.streams.extend(of_client.streams);
        let mut tools: Vec<(usize, Meter)> = view
            .assigned()
            .filter_map(|tool| Some((address(tool), self.tool_meter(view, tool)?)))
            .collect();
        tools.sort_unstable_by_key(|(address, _)| *address);
        let meters = Arc::new(ViewMeters { view: Arc::clone(view), shared, tools });
        self.views.put(key, Arc::downgrade(&meters));
        meters
    }

    fn tool_meter(&self, view: &View, tool: &CompiledTool) -> Option<Meter> {
        let rate = tool.limit?;
        let client = view.client_application.clone();
        let of = Of::Tool(client, tool.toolset.clone(), tool.source_name.as_str().into());
        Some(self.meter(Level::Tool, Class::ToolCalls, &scope(view, of), rate))
    }

    fn meters(&self, level: Level, scope: &Scope, limits: &Limits) -> Meters {
        let mut meters = Meters::default();
        for (class, rate) in [
            (Class::Light, limits.light),
            (Class::Requests, limits.requests),
            (Class::ToolCalls, limits.tool_calls),
            (Class::Mutations, limits.mutations),
        ] {
            if let (Some(rate), Some(place)) = (rate, class.place()) {
                meters.rates[place].push(self.meter(level, class, scope, rate));
            }
        }
        if let Some(most) = limits.listening_streams {
            let gauge = self.gauges.entry(scope.clone());
            meters.streams.push((level, Capped { gauge, most }));
        }
        meters
    }

    fn meter(&self, level: Level, class: Class, scope: &Scope, rate: Rate) -> Meter {
        let key = |scope: Scope| {
            let rate = (rate.count, rate.seconds, rate.burst);
            AccountKey { scope, class, rate }
        };
        let own = key(scope.clone());
        let account = match (&scope.of, self.accounts.find(&own)) {
            (_, Some(account)) => account,
            (Of::Caller(client, _), None) if self.accounts.len() >= self.accounts_max => {
                let of = Of::OtherCallers(client.clone());
                self.accounts.entry(key(Scope { tenant: scope.tenant.clone(), of }))
            }
            (_, None) => self.accounts.entry(own),
        };
        Meter { account, pace: Pace::new(rate), rate, level, class }
    }
}

fn scope(view: &View, of: Of) -> Scope {
    Scope { tenant: view.tenant.clone(), of }
}

/// A map in parts, each with its own lock. Nothing is done under a lock but looking and putting.
#[derive(Debug)]
struct Table<K, V> {
    shards: [Mutex<HashMap<K, V>>; SHARDS],
    hasher: RandomState,
    len: AtomicUsize,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            len: AtomicUsize::new(0),
        }
    }
}

impl<K: Eq + Hash, V: Clone> Table<K, V> {
    fn shard(&self, key: &K) -> &Mutex<HashMap<K, V>> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    fn find(&self, key: &K) -> Option<V> {
        self.shard(key).lock().get(key).cloned()
    }

    fn put(&self, key: K, value: V) {
        if self.shard(&key).lock().insert(key, value).is_none() {
            self.len.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The value, a new one where there is none.
    fn entry(&self, key: K) -> V
    where
        V: Default,
    {
        let shard = self.shard(&key);
        let mut values = shard.lock();
        if let Some(known) = values.get(&key) {
            return known.clone();
        }
        let value = V::default();
        values.insert(key, value.clone());
        self.len.fetch_add(1, Ordering::Relaxed);
        value
    }

    /// Drops the values of one part that are not to be kept; tells how many.
    fn retain(&self, shard: usize, keep: impl Fn(&V) -> bool) -> usize {
        let mut values = self.shards[shard].lock();
        let before = values.len();
        values.retain(|_, value| keep(value));
        let dropped = before - values.len();
        // A burst of callers must not keep its memory for ever.
        if values.capacity() > 64 && values.len() < values.capacity() / 4 {
            values.shrink_to_fit();
        }
        self.len.fetch_sub(dropped, Ordering::Relaxed);
        dropped
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "limiter_tests.rs"]
mod tests;
