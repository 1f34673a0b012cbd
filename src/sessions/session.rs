//! A session in the heap.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::SessionKey;
use super::activity::{Activity, CallHandle, CallRefused, TooManyQuestions, TooManyStreams};
use super::record::{ClientCapabilities, SessionRecord};
use super::revision::Revision;
use super::tenants::TenantSessions;
use crate::streams::StreamId;

/// How soon a refused client has to ask again to insist.
const INSISTING_MS_MAX: u64 = 30_000;

/// A session that some core works with. Shared by reference; what changes are counters and the
/// short-locked activity. Its record is reached through `Deref`.
pub struct Session {
    key: SessionKey,
    record: SessionRecord,
    last_seen_ms: AtomicU64,
    /// The `last_seen_ms` of its row, or of its entry in the journal; 0 where that was lost.
    stored_ms: AtomicU64,
    /// Whether it has a row; a young session is in the journal only.
    has_row: AtomicBool,
    /// Calls and attached streams that keep it from becoming idle.
    holds: AtomicU32,
    ended: AtomicBool,
    /// The code of the revision, where it is negotiated after the session was opened; else 0.
    renegotiated: AtomicU8,
    /// What its client said it can do, where that is known only since.
    renegotiated_capabilities: AtomicU32,
    connection_bound: AtomicBool,
    /// How grave what its client hears of must be, as a code; 0 where it did not say.
    log_level: AtomicU8,
    /// When a client was last refused the standing stream because another one holds it.
    refused_standing_ms: AtomicU64,
    pub(super) tenant: Arc<TenantSessions>,
    /// Most sessions have none for most of their time.
    activity: Mutex<Option<Box<Activity>>>,
}

/// Keeps a session from becoming idle until it is dropped.
#[derive(Debug)]
pub struct Hold {
    session: Arc<Session>,
}

impl Hold {
    /// The session held.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.session.holds.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    pub(super) fn new(
        key: SessionKey,
        record: SessionRecord,
        tenant: Arc<TenantSessions>,
        has_row: bool,
    ) -> Arc<Self> {
        let (seen_ms, log_level) = (record.last_seen_ms, record.log_level);
        Arc::new(Self {
            key,
            record,
            last_seen_ms: AtomicU64::new(seen_ms),
            stored_ms: AtomicU64::new(seen_ms),
            has_row: AtomicBool::new(has_row),
            holds: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            renegotiated: AtomicU8::new(0),
            renegotiated_capabilities: AtomicU32::new(0),
            connection_bound: AtomicBool::new(false),
            log_level: AtomicU8::new(log_level),
            refused_standing_ms: AtomicU64::new(0),
            tenant,
            activity: Mutex::new(None),
        })
    }

    /// Its key.
    pub fn key(&self) -> SessionKey {
        self.key
    }

    /// When its client was last seen.
    pub fn seen_ms(&self) -> u64 {
        self.last_seen_ms.load(Ordering::Relaxed)
    }

    /// Whether it was ended or has expired since it was found.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Its row, as of now.
    pub fn row(&self) -> Vec<u8> {
        self.record.encode_seen(self.seen_ms(), self.log_level())
    }

    /// Whether the store has, or was handed, a row of its own for it.
    pub fn has_row(&self) -> bool {
        self.has_row.load(Ordering::Relaxed)
    }

    /// The store did not take a row: it is due again.
    pub fn row_was_lost(&self) {
        self.stored_ms.store(0, Ordering::Relaxed);
    }

    /// The revision it speaks: that of its record, or what was negotiated since.
    pub fn revision(&self) -> Revision {
        let code = self.renegotiated.load(Ordering::Relaxed);
        Revision::from_code(code).unwrap_or_else(|| self.record.revision())
    }

    /// Notes what was negotiated after the session was opened, as HTTP+SSE does. It is not part of
    /// the row: such a session does not outlive its connection.
    pub fn negotiate(&self, revision: Revision, capabilities: ClientCapabilities) {
        self.renegotiated_capabilities.store(capabilities.bits(), Ordering::Relaxed);
        self.renegotiated.store(revision.code(), Ordering::Release);
    }

    /// What its client can do: as of its record, or of what was negotiated since.
    pub fn capabilities(&self) -> ClientCapabilities {
        if self.renegotiated.load(Ordering::Acquire) == 0 {
            return self.record.capabilities();
        }
        ClientCapabilities::of_bits(self.renegotiated_capabilities.load(Ordering::Relaxed))
    }

    /// Whether a revision was negotiated after the session was opened.
    pub fn is_negotiated(&self) -> bool {
        self.renegotiated.load(Ordering::Relaxed) != 0
    }

    /// How grave what its client hears of must be, as a code; 0 where it did not say.
    pub fn log_level(&self) -> u8 {
        self.log_level.load(Ordering::Relaxed)
    }

    pub(super) fn set_log_level(&self, code: u8) -> bool {
        self.log_level.swap(code, Ordering::Relaxed) != code
    }

    /// The session is its connection's: HTTP+SSE. It is not kept, because it cannot be resumed.
    pub fn bind_to_connection(&self) {
        self.connection_bound.store(true, Ordering::Relaxed);
    }

    /// Whether the session ends with its connection.
    pub fn is_connection_bound(&self) -> bool {
        self.connection_bound.load(Ordering::Relaxed)
    }

    /// A client asks for the standing stream that another connection holds. `true` where one was
    /// refused it a moment ago: a client that asks again has lost the other connection, whatever
    /// the network still says of it.
    pub fn is_refused_again(&self, now_ms: u64) -> bool {
        let refused_ms = self.refused_standing_ms.swap(now_ms, Ordering::Relaxed);
        now_ms.saturating_sub(refused_ms) < INSISTING_MS_MAX
    }

    /// Keeps it from becoming idle: for a running call, for an attached stream.
    pub fn hold(self: &Arc<Self>) -> Hold {
        self.holds.fetch_add(1, Ordering::Relaxed);
        Hold { session: Arc::clone(self) }
    }

    /// Registers a running call under the exact text of its request's id.
    pub fn begin_call(&self, id: &[u8], handle: CallHandle) -> Result<(), CallRefused> {
        self.activity.lock().get_or_insert_default().begin_call(id, handle)
    }

    /// Where the call with this id runs.
    pub fn call(&self, id: &[u8]) -> Option<CallHandle> {
        self.activity.lock().as_ref()?.call(id)
    }

    /// A call is over. `false` where it was not registered.
    pub fn finish_call(&self, handle: CallHandle) -> bool {
        self.activity.lock().as_mut().is_some_and(|activity| activity.finish_call(handle))
    }

    /// All running calls.
    pub fn calls(&self) -> Vec<CallHandle> {
        self.activity.lock().as_ref().map(|activity| activity.calls()).unwrap_or_default()
    }

    /// Registers a question that its client is asked.
    pub fn add_question(&self, handle: CallHandle) -> Result<(), TooManyQuestions> {
        if self.is_ended() {
            return Err(TooManyQuestions);
        }
        self.activity.lock().get_or_insert_default().add_question(handle)
    }

    /// Takes a question out. `false` where it is not one of this session, or not any more: of
    /// several answers the first one counts.
    pub fn take_question(&self, handle: CallHandle) -> bool {
        self.activity.lock().as_mut().is_some_and(|activity| activity.take_question(handle))
    }

    /// Takes all questions out: nobody will answer them.
    pub fn take_questions(&self) -> Vec<CallHandle> {
        let mut activity = self.activity.lock();
        activity.as_mut().map(|activity| activity.take_questions()).unwrap_or_default()
    }

    /// Registers an open stream.
    pub fn add_stream(&self, id: StreamId) -> Result<(), TooManyStreams> {
        self.activity.lock().get_or_insert_default().add_stream(id)
    }

    /// A stream is finished or gone, be it the standing one. `false` where it was not registered.
    pub fn remove_stream(&self, id: StreamId) -> bool {
        self.activity.lock().as_mut().is_some_and(|activity| activity.remove_stream(id))
    }

    /// All open streams, the standing one first.
    pub fn streams(&self) -> Vec<StreamId> {
        self.activity.lock().as_ref().map(|activity| activity.streams()).unwrap_or_default()
    }

    /// The standing stream.
    pub fn standing(&self) -> Option<StreamId> {
        self.activity.lock().as_ref()?.standing()
    }

    /// Makes `id` the standing stream if it still is `expected`; else says what it is. So two
    /// cores that open one at the same time do not both succeed.
    pub fn replace_standing(
        &self,
        expected: Option<StreamId>,
        id: StreamId,
    ) -> Result<(), Option<StreamId>> {
        let mut activity = self.activity.lock();
        let activity = activity.get_or_insert_default();
        let current = activity.standing();
        if current != expected {
            return Err(current);
        }
        activity.set_standing(id);
        Ok(())
    }

    pub(super) fn is_held(&self) -> bool {
        self.holds.load(Ordering::Relaxed) > 0
            || self.activity.lock().as_ref().is_some_and(|activity| activity.has_calls())
    }

    /// Gives back what a session without calls and streams does not need.
    pub(super) fn release_memory(&self) {
        let mut activity = self.activity.lock();
        if activity.as_ref().is_some_and(|activity| activity.is_empty()) {
            *activity = None;
        }
    }

    pub(super) fn see(&self, now_ms: u64) {
        // Two cores may race; both are now.
        if now_ms > self.seen_ms() {
            self.last_seen_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Whether the row is older than what is known.
    pub(super) fn is_unsaved(&self) -> bool {
        !self.has_row() || self.stored_ms.load(Ordering::Relaxed) < self.seen_ms()
    }

    /// Claims its row for what changed besides the time it was seen.
    pub(super) fn claim_any_row(&self) {
        self.has_row.store(true, Ordering::Relaxed);
        self.stored_ms.store(self.seen_ms(), Ordering::Relaxed);
    }

    /// Claims its first row, which one caller of several gets to write.
    pub(super) fn claim_first_row(&self) -> bool {
        let first = !self.has_row.swap(true, Ordering::Relaxed);
        if first {
            self.stored_ms.store(self.seen_ms(), Ordering::Relaxed);
        }
        first
    }

    /// Whether the row is `age_ms` behind; one caller of several gets `true` and has to write it.
    pub(super) fn claim_row(&self, age_ms: u64) -> bool {
        let stored_ms = self.stored_ms.load(Ordering::Relaxed);
        let seen_ms = self.seen_ms();
        self.has_row()
            && seen_ms.saturating_sub(stored_ms) >= age_ms
            && seen_ms != stored_ms
            && self
                .stored_ms
                .compare_exchange(stored_ms, seen_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

impl Deref for Session {
    type Target = SessionRecord;

    fn deref(&self) -> &SessionRecord {
        &self.record
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("key", &self.key)
            .field("record", &self.record)
            .field("seen_ms", &self.seen_ms())
            .finish_non_exhaustive()
    }
}
