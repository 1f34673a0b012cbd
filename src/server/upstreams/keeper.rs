//! What is known of every upstream server, shared by all cores.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use parking_lot::Mutex;

use super::{
    discovery::{Discovered, Found},
    kept::{self, KeptError, Key},
    pace::Pace,
};
use crate::{
    catalog::{TenantId, ToolsetId, UpstreamDefinitions, UpstreamServer},
    governance::definitions::{Act, Book, BookError, Counts, Event, Reach, Subject},
    rt::{self, OneshotReceiver, OneshotSender},
    server::{change_error::ChangeError, publication::Publication},
    settings,
    store::{Store, StoreError},
};

/// How long what a server offered stays in lists while it does not answer, where its toolset says
/// nothing.
const GRACE_MS: u64 = 24 * 3600 * 1000;

/// Tells how many sessions are open at the server behind a toolset.
pub(crate) type SessionsOf = Box<dyn Fn(&TenantId, &ToolsetId) -> usize + Send + Sync>;

/// What is known of every upstream server.
pub(crate) struct Keeper {
    store: Store,
    settings: settings::Discovery,
    started: Instant,
    pub(super) table: Mutex<Table>,
    pub(super) answered: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) sessions_of: OnceLock<SessionsOf>,
}

#[derive(Default)]
pub(super) struct Table {
    pub(super) slots: BTreeMap<Key, Slot>,
    /// Wakes the one who asks.
    wake: Option<OneshotSender<()>>,
}

pub(super) struct Slot {
    /// `None`: nobody is shown anything of it, so it is not asked.
    pub(super) server: Option<Arc<UpstreamServer>>,
    pub(super) book: Arc<Mutex<Kept>>,
    pace: Pace,
    pub(super) last: Last,
    /// Operators who wait for the end of the asking under way.
    waiting: Vec<OneshotSender<()>>,
    /// Operators who wait for the asking that is due: one that begins after they wanted it.
    waiting_for_next: Vec<OneshotSender<()>>,
}

/// How the last askings went. Times are Unix times in milliseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Last {
    pub(super) asked_ms: Option<u64>,
    pub(super) answered_ms: Option<u64>,
    pub(super) error: Option<Arc<str>>,
    pub(super) notes: Vec<String>,
    pub(super) counts: Counts,
    pub(super) reach: Reach,
}

/// A book, and what of it the store has.
pub(super) struct Kept {
    pub(super) now: Book,
    stored: Book,
    /// Its toolset is gone: nothing is written any more.
    is_closed: bool,
}

/// What an operator decides about.
#[derive(Debug)]
pub(crate) enum Deciding {
    /// These, as they were seen; all of them or none.
    These(Vec<(Subject, [u8; 32])>),
    /// Everything that waits, where that is what this tag names.
    All(String),
}

/// What an operator decided.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) act: Act,
    pub(crate) what: Deciding,
    /// The operator.
    pub(crate) by: String,
    /// Unix time in milliseconds.
    pub(crate) at_ms: u64,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error("there is no upstream server behind a toolset {0}/{1}")]
    NoSuch(String, String),
    #[error("{0}")]
    Book(#[from] BookError),
    #[error("it could not be kept, so nothing was done: {0}")]
    Store(#[from] StoreError),
    #[error("it is kept, but cannot be shown to clients: {0}")]
    Change(#[from] ChangeError),
}

/// What an asking shows that was not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turned {
    /// It fails now.
    Failed,
    /// It answers again.
    Back,
}

impl Keeper {
    /// Reads what the store has.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn load(store: &Store, settings: &settings::Discovery) -> Result<Self, KeptError> {
        let books = kept::read(store)?;
        let slots = books.into_iter().map(|(whose, book)| (whose, Slot::new(book))).collect();
        Ok(Self {
            store: store.clone(),
            settings: settings.clone(),
            started: Instant::now(),
            table: Mutex::new(Table { slots, wake: None }),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            sessions_of: OnceLock::new(),
        })
    }

    /// What was accepted of each server and is to be shown.
    pub(crate) fn definitions(&self) -> UpstreamDefinitions {
        let table = self.table.lock();
        let shown = |(whose, slot): (&Key, &Slot)| {
            Some((whose.clone(), Arc::new(slot.book.lock().now.shown()?)))
        };
        table.slots.iter().filter_map(shown).collect()
    }

    /// From now on sessions at servers are counted so.
    pub(crate) fn count_sessions(&self, sessions_of: SessionsOf) {
        let _ = self.sessions_of.set(sessions_of);
    }

    // ---- when servers are asked

    /// A server told that what it lists is another now. From any core; it is asked soon.
    pub(crate) fn lists_changed(&self, tenant: &TenantId, toolset: &ToolsetId) {
        let now_ms = self.now_ms();
        self.stir(tenant, toolset, |slot| slot.pace.told(now_ms));
    }

    /// An operator wants a server asked now; resolves when it was, by an asking that began after
    /// this. `None`: there is none.
    pub(crate) fn refresh(
        &self,
        tenant: &TenantId,
        toolset: &ToolsetId,
    ) -> Option<OneshotReceiver<()>> {
        let (sender, receiver) = rt::oneshot();
        let now_ms = self.now_ms();
        self.stir(tenant, toolset, |slot| {
            slot.pace.at_once(now_ms);
            if slot.server.is_some() {
                slot.waiting_for_next.push(sender);
            }
        })
        .then_some(receiver)
    }

    fn stir(&self, tenant: &TenantId, toolset: &ToolsetId, change: impl FnOnce(&mut Slot)) -> bool {
        let mut table = self.table.lock();
        let Some(slot) = table.slots.get_mut(&(tenant.clone(), toolset.clone())) else {
            return false;
        };
        change(slot);
        if let Some(wake) = table.wake.take() {
            let _ = wake.send(());
        }
        true
    }

    /// Resolves when there may be more to ask than when this was called.
    pub(super) fn stirred(&self) -> OneshotReceiver<()> {
        let (sender, receiver) = rt::oneshot();
        self.table.lock().wake = Some(sender);
        receiver
    }

    /// From now on there are these servers, behind these toolsets of the catalog; of other toolsets
    /// nothing is known any more, and they are given back to be [forgotten](Self::forget).
    pub(super) fn follow(
        &self,
        servers: Vec<Arc<UpstreamServer>>,
        toolsets: &BTreeSet<Key>,
    ) -> Vec<Forgotten> {
        let now_ms = self.now_ms();
        let mut table = self.table.lock();
        let mut servers: BTreeMap<Key, Arc<UpstreamServer>> = servers
            .into_iter()
            .map(|server| ((server.tenant.clone(), server.toolset.clone()), server))
            .collect();
        let is_gone = |whose: &&Key| !toolsets.contains(whose);
        let gone: Vec<Key> = table.slots.keys().filter(is_gone).cloned().collect();
        let forgotten = gone
            .into_iter()
            .filter_map(|whose| {
                let slot = table.slots.remove(&whose)?;
                Some(Forgotten { whose, book: slot.book })
            })
            .collect();
        for whose in toolsets {
            let slot = table.slots.entry(whose.clone());
            let slot = slot.or_insert_with(|| Slot::new(Book::default()));
            let server = servers.remove(whose);
            let is_new = match (&slot.server, &server) {
                (Some(before), Some(now)) => !is_same_server(before, now),
                (None, Some(_)) => true,
                (_, None) => false,
            };
            slot.server = server;
            if is_new {
                slot.pace.at_once(now_ms);
            }
            if slot.server.is_none() {
                // It is not asked any more.
                slot.waiting_for_next.clear();
            }
        }
        forgotten
    }

    /// Takes what is known of toolsets that are gone out of the store. Blocks.
    pub(super) fn forget(&self, forgotten: &[Forgotten]) {
        for Forgotten { whose, book } in forgotten {
            let mut book = book.lock();
            book.is_closed = true;
            let rows = [book.stored.row_keys(), book.now.row_keys()].concat();
            let rows = rows.into_iter().map(|key| (key, None)).collect();
            if let Err(error) = kept::write(&self.store, whose, rows) {
                // The next start finds them again, and that their toolset is gone.
                tracing::warn!(tenant = %whose.0, toolset = %whose.1, %error,
                    "what is known of an upstream server that is gone stays in the store");
            }
        }
    }

    /// The servers to be asked now, as many as there is room for, and how long it is to the next.
    pub(super) fn take_due(&self, now_unix_ms: u64) -> (Vec<Arc<UpstreamServer>>, Option<u64>) {
        let now_ms = self.now_ms();
        let mut table = self.table.lock();
        let asking = table.slots.values().filter(|slot| slot.pace.is_asking()).count();
        let room = self.settings.concurrent_max.saturating_sub(asking);
        let mut due: Vec<(u64, &mut Slot)> = table
            .slots
            .values_mut()
            .filter(|slot| slot.server.is_some())
            .filter_map(|slot| Some((slot.pace.due_ms()?, slot)))
            .collect();
        // Who has waited longest comes first.
        due.sort_by_key(|(due_ms, _)| *due_ms);
        let mut taken = Vec::new();
        let mut next = None;
        for (due_ms, slot) in due {
            if due_ms > now_ms {
                next = Some(due_ms - now_ms);
                break;
            }
            if taken.len() == room {
                // The end of an asking stirs.
                break;
            }
            slot.pace.begin(now_ms);
            slot.waiting = std::mem::take(&mut slot.waiting_for_next);
            slot.last.asked_ms = Some(now_unix_ms);
            taken.extend(slot.server.clone());
        }
        (taken, next)
    }

    /// An asking is over and what came of it taken in. Tells whether that is other than before.
    pub(super) fn end(
        &self,
        server: &UpstreamServer,
        error: Option<String>,
        now_unix_ms: u64,
        chance: u64,
    ) -> Option<Turned> {
        let counter = if error.is_none() { &self.answered } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        let now_ms = self.now_ms();
        let mut turned = None;
        self.stir(&server.tenant, &server.toolset, |slot| {
            turned = match (&slot.last.error, &error) {
                (None, Some(_)) => Some(Turned::Failed),
                (Some(_), None) => Some(Turned::Back),
                _ => None,
            };
            slot.pace.end(error.is_none(), &self.settings, now_ms, chance);
            if error.is_none() {
                slot.last.answered_ms = Some(now_unix_ms);
            }
            slot.last.error = error.map(Arc::from);
            for waiting in slot.waiting.drain(..) {
                let _ = waiting.send(());
            }
        });
        turned
    }

    // ---- what servers offer

    /// Takes in what came of asking a server. Blocks. Tells what turned, and why the server counts as
    /// one that failed.
    pub(super) fn take_in(
        &self,
        publication: &Publication,
        server: &UpstreamServer,
        discovered: Discovered,
        now_unix_ms: u64,
    ) -> (Vec<Event>, Option<String>) {
        let whose = (server.tenant.clone(), server.toolset.clone());
        let Some(book) = self.book_of(&whose) else { return (Vec::new(), None) };
        let mut book = book.lock();
        let (events, mut error) = match discovered {
            Ok(Found { offer, notes }) => {
                self.stir(&server.tenant, &server.toolset, |slot| slot.last.notes = notes);
                (book.now.learn(offer, server.settings.definitions, now_unix_ms), None)
            }
            Err(error) => {
                let grace_ms = server.settings.grace_ms.unwrap_or(GRACE_MS);
                book.now.failed(now_unix_ms, grace_ms);
                (Vec::new(), Some(error))
            }
        };
        if let Err(unkept) = self.keep(&whose, &mut book) {
            // What is withheld now is withheld all the same; the next asking keeps it.
            error = Some(format!("what it offers could not be kept: {unkept}"));
        }
        if let Err(unshown) = show(publication, &whose, &book) {
            error = Some(format!("what it offers cannot be shown: {unshown}"));
        }
        (events, error)
    }

    /// Does what an operator decided. Blocks.
    pub(crate) fn decide(
        &self,
        publication: &Publication,
        tenant: &TenantId,
        toolset: &ToolsetId,
        decision: &Decision,
    ) -> Result<Vec<Event>, UpstreamError> {
        let whose = (tenant.clone(), toolset.clone());
        let missing = || UpstreamError::NoSuch(tenant.to_string(), toolset.to_string());
        let book = self.book_of(&whose).ok_or_else(missing)?;
        let mut book = book.lock();
        if book.is_closed {
            return Err(missing());
        }
        let mut decided = book.now.clone();
        let Decision { act, what, by, at_ms } = decision;
        let events = match what {
            Deciding::All(tag) => decided.decide_all(*act, tag, by, *at_ms)?,
            Deciding::These(all) => {
                let decide = |(subject, hash): &(Subject, [u8; 32])| {
                    decided.decide(*act, subject, hash, by, *at_ms)
                };
                all.iter().map(decide).collect::<Result<_, _>>()?
            }
        };
        let before = std::mem::replace(&mut book.now, decided);
        if let Err(error) = self.keep(&whose, &mut book) {
            book.now = before;
            return Err(error.into());
        }
        show(publication, &whose, &book)?;
        Ok(events)
    }

    /// Keeps what of a book the store does not have.
    fn keep(&self, whose: &Key, book: &mut Kept) -> Result<(), StoreError> {
        if !book.is_closed {
            kept::write(&self.store, whose, book.now.rows_since(&book.stored))?;
            book.stored = book.now.clone();
        }
        let mut table = self.table.lock();
        if let Some(slot) = table.slots.get_mut(whose) {
            slot.last.counts = book.now.counts();
            slot.last.reach = book.now.server().reach;
        }
        Ok(())
    }

    fn book_of(&self, whose: &Key) -> Option<Arc<Mutex<Kept>>> {
        self.table.lock().slots.get(whose).map(|slot| slot.book.clone())
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Slot {
    fn new(book: Book) -> Self {
        let last = Last { counts: book.counts(), reach: book.server().reach, ..Last::default() };
        let kept = Kept { stored: book.clone(), now: book, is_closed: false };
        let book = Arc::new(Mutex::new(kept));
        Self {
            server: None,
            book,
            pace: Pace::new(0),
            last,
            waiting: Vec::new(),
            waiting_for_next: Vec::new(),
        }
    }
}

/// A toolset that is gone, and what was known of its server.
pub(super) struct Forgotten {
    whose: Key,
    book: Arc<Mutex<Kept>>,
}

/// Publishes what is to be shown. Where that cannot be compiled nothing is shown: what is shown now
/// is not what the server offers.
fn show(
    publication: &Publication,
    (tenant, toolset): &Key,
    book: &Kept,
) -> Result<(), ChangeError> {
    if book.is_closed {
        return Ok(());
    }
    let shown = book.now.shown().map(Arc::new);
    if let Err(error) = publication.set_definitions(tenant, toolset, shown) {
        publication.set_definitions(tenant, toolset, None)?;
        return Err(error);
    }
    Ok(())
}

/// Whether two are the same one for who asks what it offers. What is accepted of it does not count.
fn is_same_server(one: &Arc<UpstreamServer>, other: &Arc<UpstreamServer>) -> bool {
    Arc::ptr_eq(one, other)
        || (Arc::ptr_eq(&one.connection, &other.connection) && one.settings == other.settings)
}
