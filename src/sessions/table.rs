//! The table of sessions, shared by all cores.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use super::SessionKey;
use super::owner::Owner;
use super::record::SessionRecord;
use super::session::Session;
use super::tenants::{AtCapacity, Reservation, Tenants};

const SHARDS: usize = 64;
/// How long an ended session is remembered, so that a row read before its end cannot revive it.
const ENDED_KEPT_MS: u64 = 30_000;
/// How long a session lives from its entry in the journal alone, in milliseconds.
const JOURNALED_MS: u64 = 30_000;
/// Most ended sessions remembered in one shard.
const ENDED_MAX: usize = 4096;

/// Times of a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// A session nobody used for so long is over, in milliseconds.
    pub idle_ms: u64,
    /// No session lives longer, in milliseconds.
    pub lifetime_ms: u64,
    /// A session nobody used for so long is kept in the store only, in milliseconds.
    pub heap_idle_ms: u64,
}

/// What is known about a session.
#[derive(Clone, Debug)]
pub enum Find {
    /// It lives and belongs to the owner.
    Found(Arc<Session>),
    /// It was ended.
    Ended,
    /// Its time is over.
    Expired,
    /// It belongs to somebody else.
    Foreign,
    /// It may be in the store.
    NotInMemory,
}

/// What [`SessionTable::adopt`] made of a stored record. The same as [`Find`], without the doubt.
#[derive(Clone, Debug)]
pub enum Adopted {
    /// It lives and belongs to the owner.
    Found(Arc<Session>),
    /// It was ended.
    Ended,
    /// Its time is over.
    Expired,
    /// It belongs to somebody else.
    Foreign,
}

/// An idle session that can leave the heap.
#[derive(Clone, Debug)]
pub struct Evictable {
    /// Its key.
    pub key: SessionKey,
    /// What has to be in the store before: `None` where its row is up to date.
    pub row: Option<Vec<u8>>,
    seen_ms: u64,
}

/// What a sweep found to do.
#[derive(Default, Debug)]
pub struct Swept {
    /// Sessions whose time is over, out of the table already: their rows are to be removed, their
    /// streams and calls to be ended.
    pub expired: Vec<Arc<Session>>,
    /// Rows to be written again.
    pub rows: Vec<(SessionKey, Vec<u8>)>,
    /// Sessions to hand to [`SessionTable::evict`].
    pub evictable: Vec<Evictable>,
}

/// All sessions in the heap, and the number of all sessions. See the room.
#[derive(Debug)]
pub struct SessionTable {
    shards: [Mutex<Shard>; SHARDS],
    tenants: Tenants,
    limits: SessionLimits,
}

#[derive(Default, Debug)]
struct Shard {
    sessions: HashMap<SessionKey, Arc<Session>, BuildHasherDefault<KeyHasher>>,
    /// Ended sessions, and when each may be forgotten.
    ended: HashMap<SessionKey, u64, BuildHasherDefault<KeyHasher>>,
}

impl SessionTable {
    /// How long the journal must keep a chunk, in seconds: by then every session in it has a row
    /// or has ended, whatever the sweeps' pace.
    pub const JOURNAL_KEPT_SECONDS: u64 = 4 * JOURNALED_MS / 1000;

    /// How many parts [`Self::sweep_shard`] divides a sweep into.
    pub const SHARDS: usize = SHARDS;

    /// An empty table.
    pub fn new(limits: SessionLimits) -> Self {
        // Leaving the heap must come well before the end, or rows could not be told apart in time.
        let heap_idle_ms = limits.heap_idle_ms.min(limits.idle_ms / 2);
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            tenants: Tenants::default(),
            limits: SessionLimits { heap_idle_ms, ..limits },
        }
    }

    /// When a session that opens now ends at the latest.
    pub fn expires_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add(self.limits.lifetime_ms)
    }

    /// Takes a place for one more session of the tenant.
    pub fn reserve(&self, tenant: &str, sessions_max: u32) -> Result<Reservation, AtCapacity> {
        // When a place gets free is not known; sessions become idle all the time.
        let seconds = (self.limits.idle_ms / 8000).clamp(1, 60) as u32;
        self.tenants.reserve(tenant, sessions_max, seconds)
    }

    /// Puts a new session in. The caller notes it in the journal ([`super::SessionJournal`]); it gets
    /// a row of its own when it grows old.
    pub fn insert(
        &self,
        reservation: Reservation,
        key: SessionKey,
        record: SessionRecord,
    ) -> Arc<Session> {
        let tenant = reservation.take().unwrap_or_else(|| self.tenants.tenant(record.tenant()));
        let session = Session::new(key, record, tenant, false);
        self.shard(key).lock().sessions.insert(key, Arc::clone(&session));
        session
    }

    /// Finds a session by its key.
    pub fn find(&self, key: SessionKey, owner: &Owner<'_>, now_ms: u64) -> Find {
        let session = {
            let shard = self.shard(key).lock();
            match shard.sessions.get(&key) {
                Some(session) => Arc::clone(session),
                None if shard.ended.contains_key(&key) => return Find::Ended,
                None => return Find::NotInMemory,
            }
        };
        if !session.belongs_to(owner) {
            Find::Foreign
        } else if session.is_ended() {
            Find::Ended
        } else if self.is_over(&session, now_ms) {
            Find::Expired
        } else {
            Find::Found(session)
        }
    }

    /// Brings a session back from its row. The first of several callers makes it, all get it.
    pub fn adopt(
        &self,
        key: SessionKey,
        record: SessionRecord,
        owner: &Owner<'_>,
        now_ms: u64,
    ) -> Adopted {
        if !record.belongs_to(owner) {
            return Adopted::Foreign;
        }
        if self.is_record_over(&record, now_ms) {
            return Adopted::Expired;
        }
        let tenant = self.tenants.tenant(record.tenant());
        let mut shard = self.shard(key).lock();
        if shard.ended.contains_key(&key) {
            return Adopted::Ended;
        }
        let session = shard.sessions.entry(key);
        Adopted::Found(Arc::clone(
            session.or_insert_with(|| Session::new(key, record, tenant, true)),
        ))
    }

    /// The session of a key, whoever asks: for what the server itself does with sessions.
    pub fn peek(&self, key: SessionKey) -> Option<Arc<Session>> {
        self.shard(key).lock().sessions.get(&key).cloned()
    }

    /// The client was seen. `true`: the caller is to write the row again, which is `idle / 8`
    /// behind. (So much of a session's idle time may be lost in a crash.)
    ///
    /// After a row is handed to the store, [`Self::is_ended`] has to be asked: where it says yes,
    /// the session was ended meanwhile and its row must be removed again.
    pub fn touch(&self, session: &Session, now_ms: u64) -> bool {
        session.see(now_ms);
        session.claim_row(self.row_age_ms()) && !session.is_ended()
    }

    /// The client said how grave what it hears of must be. `true`: the caller is to write the row,
    /// as after [`Self::touch`].
    pub fn set_log_level(&self, session: &Session, code: u8) -> bool {
        let is_news = session.set_log_level(code) && !session.is_connection_bound();
        if is_news {
            session.claim_any_row();
        }
        is_news && !session.is_ended()
    }

    /// Ends a session: it is out of the table, and stays unknown. Its row is to be removed, its
    /// streams and calls to be ended. `None` where it is not in the heap (it may be in the store:
    /// adopt it first) or somebody else ended it.
    pub fn end(&self, key: SessionKey, now_ms: u64) -> Option<Arc<Session>> {
        let mut shard = self.shard(key).lock();
        let session = shard.sessions.remove(&key)?;
        shard.remember_ended(key, now_ms);
        drop(shard);
        session.end();
        session.tenant.release();
        Some(session)
    }

    /// Whether the session was ended a short while ago.
    pub fn is_ended(&self, key: SessionKey) -> bool {
        self.shard(key).lock().ended.contains_key(&key)
    }

    /// Sweeps all shards at once; see [`Self::sweep_shard`].
    pub fn sweep(&self, now_ms: u64) -> Swept {
        let mut swept = Swept::default();
        for shard in 0..SHARDS {
            self.sweep_shard(shard, now_ms, &mut swept);
        }
        swept
    }

    /// Looks through one part of the table: what expired, which rows are behind, who can leave the
    /// heap. Sessions that are held count as seen now. A part a tick keeps the locks short. With
    /// the last part, tenants without sessions are forgotten.
    pub fn sweep_shard(&self, number: usize, now_ms: u64, swept: &mut Swept) {
        let Some(shard) = self.shards.get(number) else { return };
        let mut shard = shard.lock();
        shard.ended.retain(|_, until_ms| *until_ms > now_ms);
        let first = swept.expired.len();
        for (key, session) in &shard.sessions {
            if session.is_held() {
                session.see(now_ms);
            }
            if self.is_over(session, now_ms) {
                swept.expired.push(Arc::clone(session));
            } else if now_ms.saturating_sub(session.seen_ms()) >= self.limits.heap_idle_ms {
                let row =
                    session.claim_first_row() || (session.is_unsaved() && session.claim_row(0));
                let row = row.then(|| session.row());
                let seen_ms = session.seen_ms();
                swept.evictable.push(Evictable { key: *key, row, seen_ms });
                session.release_memory();
            } else if session.is_connection_bound() {
                // It has no row and gets none.
            } else if session.claim_row(self.row_age_ms())
                || (self.is_old(session, now_ms) && session.claim_first_row())
            {
                swept.rows.push((*key, session.row()));
            }
        }
        for session in swept.expired.get(first..).unwrap_or_default() {
            shard.sessions.remove(&session.key());
            // A pass over the store may hold its row already, and would count it a second time.
            shard.remember_ended(session.key(), now_ms);
            session.end();
            session.tenant.release();
        }
        shard.give_back();
        drop(shard);
        if number + 1 == SHARDS {
            self.tenants.prune();
        }
    }

    /// Lets an idle session leave the heap, once its row is with the store. `false` where it was
    /// used meanwhile: it stays.
    pub fn evict(&self, evictable: &Evictable) -> bool {
        let mut shard = self.shard(evictable.key).lock();
        let idle = shard.sessions.get(&evictable.key).is_some_and(|session| {
            // Only this lock's holder can make a new reference from the table's own.
            Arc::strong_count(session) == 1
                && session.seen_ms() == evictable.seen_ms
                && !session.is_unsaved()
                && !session.is_held()
                && session.streams().is_empty()
        });
        if idle {
            shard.sessions.remove(&evictable.key);
            shard.give_back();
        }
        idle
    }

    /// The store did not take a row of a sweep: it is due again.
    pub fn row_was_lost(&self, key: SessionKey) {
        if let Some(session) = self.shard(key).lock().sessions.get(&key) {
            session.row_was_lost();
        }
    }

    /// Counts a row found at start.
    pub fn count_stored(&self, record: &SessionRecord) {
        self.tenants.count_one(record.tenant());
    }

    /// Judges a row met in a pass over the store. `true`: its time is over and nobody has it in
    /// the heap; it is not counted any more and the row is to be removed.
    pub fn expire_stored(&self, key: SessionKey, record: &SessionRecord, now_ms: u64) -> bool {
        if !self.is_record_over(record, now_ms) {
            return false;
        }
        let shard = self.shard(key).lock();
        let free = !shard.sessions.contains_key(&key) && !shard.ended.contains_key(&key);
        if free {
            self.tenants.tenant(record.tenant()).release();
        }
        free
    }

    /// Visits all sessions in the heap, without a lock while the visitor runs.
    pub fn for_each(&self, mut visit: impl FnMut(&Arc<Session>)) {
        for shard in &self.shards {
            let sessions: Vec<_> = shard.lock().sessions.values().cloned().collect();
            sessions.iter().for_each(&mut visit);
        }
    }

    /// Sessions in the heap.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().sessions.len()).sum()
    }

    /// Whether no session is in the heap.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All sessions, those in the store included.
    pub fn total(&self) -> u64 {
        self.tenants.total()
    }

    /// All sessions of a tenant, those in the store included.
    pub fn tenant_total(&self, tenant: &str) -> u32 {
        self.tenants.count(tenant)
    }

    fn shard(&self, key: SessionKey) -> &Mutex<Shard> {
        // The last byte: the maps hash the first eight.
        let [.., last] = key.as_bytes();
        &self.shards[usize::from(*last) % SHARDS]
    }

    fn row_age_ms(&self) -> u64 {
        (self.limits.idle_ms / 8).max(1)
    }

    /// Whether a session leaves the journal for a row of its own.
    fn is_old(&self, session: &Session, now_ms: u64) -> bool {
        let journaled_ms = JOURNALED_MS.min(self.row_age_ms());
        now_ms.saturating_sub(session.created_ms()) >= journaled_ms
    }

    fn is_over(&self, session: &Session, now_ms: u64) -> bool {
        now_ms >= session.expires_ms()
            || (self.is_idle(session.seen_ms(), now_ms) && !session.is_held())
    }

    fn is_record_over(&self, record: &SessionRecord, now_ms: u64) -> bool {
        now_ms >= record.expires_ms() || self.is_idle(record.last_seen_ms(), now_ms)
    }

    fn is_idle(&self, seen_ms: u64, now_ms: u64) -> bool {
        now_ms.saturating_sub(seen_ms) >= self.limits.idle_ms
    }
}

impl Shard {
    /// Over the bound it is not remembered: it takes a row read at this very moment to matter.
    fn remember_ended(&mut self, key: SessionKey, now_ms: u64) {
        if self.ended.len() < ENDED_MAX {
            self.ended.insert(key, now_ms.saturating_add(ENDED_KEPT_MS));
        }
    }

    /// After a flood of sessions the maps do not keep its memory.
    fn give_back(&mut self) {
        if self.sessions.capacity() > 64 + 4 * self.sessions.len() {
            self.sessions.shrink_to(2 * self.sessions.len());
        }
        if self.ended.capacity() > 64 + 4 * self.ended.len() {
            self.ended.shrink_to(2 * self.ended.len());
        }
    }
}

/// Session keys are hashes already.
#[derive(Default, Debug)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
