//! An outlet: the connection end of an event stream.
//!
//! Whoever has a frame for a client puts it into the outlet's queue; the task that owns the
//! socket takes it from there. The queue is bounded in bytes: a client that does not read what
//! it is sent loses its connection, not the server its memory; what it missed waits in the
//! stream's window. An outlet lives on one core and is addressed from others by its number.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{HashMap, VecDeque},
    rc::Rc,
    sync::Arc,
};

use crate::{
    catalog::{ClientApplicationId, TenantId},
    identity::Caller,
    mcp::{Happening, Subscription},
    rt::Notify,
    streams::{OutletId, frame},
};

/// Bits of an outlet's number that count outlets of one core; the bits above name the core.
const NUMBER_BITS: u32 = 48;

/// How an outlet stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutletState {
    /// Frames are taken and sent.
    Open,
    /// What is queued is still sent, then the response ends properly.
    Finishing,
    /// The connection is to be closed at once; nothing more is sent.
    Dropped,
}

/// What a connection's stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It carries what the server has to say, for as long as the client listens.
    Standing,
    /// It carries the answer to a request, and ends with it.
    Answer,
    /// It carries every answer and message of a session (HTTP+SSE). What its client misses is lost,
    /// so more may wait for it.
    Everything,
}

/// How much more may wait for a client that gets everything over one stream.
const EVERYTHING_TIMES: usize = 16;

/// The queue between a stream and the task that writes it.
pub(crate) struct Outlet {
    pub(crate) id: OutletId,
    purpose: Purpose,
    /// Who listens, where that must stay allowed for as long as the stream is open.
    listener: Cell<Option<Caller>>,
    /// Whose lists its client reads, where it shows no stream of a session.
    audience: RefCell<Option<(TenantId, ClientApplicationId)>>,
    /// What its client wants to hear of, where it said so, and the message it ends with then.
    subscription: OnceCell<(Subscription, Arc<Vec<u8>>)>,
    queue: RefCell<VecDeque<Arc<Vec<u8>>>>,
    queued_bytes: Cell<usize>,
    queued_bytes_max: Cell<usize>,
    state: Cell<OutletState>,
    probes: RefCell<Vec<crate::rt::OneshotSender<bool>>>,
    wake: Notify,
    /// There is room again.
    drained: Notify,
    gone: Notify,
}

impl std::fmt::Debug for Outlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outlet")
            .field("id", &self.id)
            .field("queued_bytes", &self.queued_bytes.get())
            .field("state", &self.state.get())
            .finish_non_exhaustive()
    }
}

impl Outlet {
    /// Queues `frame`. An outlet that would hold more than it may is dropped instead.
    pub(crate) fn push(&self, frame: Arc<Vec<u8>>) {
        if self.state.get() != OutletState::Open {
            return;
        }
        let bytes = self.queued_bytes.get() + frame.len();
        if bytes > self.queued_bytes_max.get() && self.queued_bytes.get() > 0 {
            return self.drop_connection();
        }
        self.queued_bytes.set(bytes);
        self.queue.borrow_mut().push_back(frame);
        self.wake.notify();
    }

    /// Whether so many bytes more leave half of the room for what must arrive.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.queued_bytes.get() + bytes <= self.queued_bytes_max.get() / 2
    }

    /// Queues what a client has missed. It is bounded by the stream's window, which holds these
    /// frames anyway, and not by what may be queued for a slow client: who has fallen far behind
    /// could never catch up otherwise.
    pub(crate) fn replay(&self, frames: Vec<Arc<Vec<u8>>>) {
        let bytes: usize = frames.iter().map(|frame| frame.len()).sum();
        self.queued_bytes_max.set(self.queued_bytes_max.get().saturating_add(bytes));
        for frame in frames {
            self.push(frame);
        }
    }

    /// The next frame to write.
    pub(crate) fn pop(&self) -> Option<Arc<Vec<u8>>> {
        let frame = self.queue.borrow_mut().pop_front()?;
        self.queued_bytes.set(self.queued_bytes.get() - frame.len());
        if !self.is_slow() {
            self.drained.notify();
        }
        Some(frame)
    }

    /// Whether so much waits that whoever can had better say nothing more.
    fn is_slow(&self) -> bool {
        self.state.get() == OutletState::Open
            && self.queued_bytes.get() > self.queued_bytes_max.get() / 4
    }

    /// Waits until the client has taken most of what was queued, or takes nothing any more.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn drained(&self) {
        let mut has_waited = false;
        while self.is_slow() {
            has_waited = true;
            self.drained.notified().await;
        }
        if has_waited {
            // For the next that waits.
            self.drained.notify();
        }
    }

    /// Whether there is anything for the writing task to do.
    pub(crate) fn has_work(&self) -> bool {
        self.state.get() != OutletState::Open
            || !self.queue.borrow().is_empty()
            || !self.probes.borrow().is_empty()
    }

    /// The number of frames waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.borrow().len()
    }

    /// Lets the response end once the queue is empty. A subscription ends with its answer.
    pub(crate) fn finish(&self) {
        if let Some((_, over)) = self.subscription.get() {
            self.push(over.clone());
        }
        if self.state.get() == OutletState::Open {
            self.state.set(OutletState::Finishing);
            self.wake.notify();
            self.drained.notify();
        }
    }

    /// Ends the connection at once and forgets what was queued.
    pub(crate) fn drop_connection(&self) {
        self.state.set(OutletState::Dropped);
        self.queue.borrow_mut().clear();
        self.queued_bytes.set(0);
        self.wake.notify();
        self.drained.notify();
    }

    /// Says who listens.
    pub(crate) fn set_listener(&self, listener: Caller) {
        self.listener.set(Some(listener));
    }

    /// Says whose lists the client of a stream outside sessions reads.
    pub(crate) fn set_audience(&self, tenant: TenantId, client_application: ClientApplicationId) {
        self.audience.replace(Some((tenant, client_application)));
    }

    /// Says what the client wants to hear of, and what it is sent when the server ends that.
    pub(crate) fn subscribe(&self, to: Subscription, over: Arc<Vec<u8>>) {
        // A request asks once.
        let _ = self.subscription.set((to, over));
    }

    /// Tells the client of a stream outside sessions of something, unless it wants to hear of other
    /// things only.
    pub(crate) fn hear(&self, happening: Happening<'_>) {
        let payload = match self.subscription.get() {
            Some((subscription, _)) => subscription.told(happening),
            None => match happening {
                Happening::Updated(_) => None,
                listed => Some(listed.untagged()),
            },
        };
        if let Some(payload) = payload {
            self.push(Arc::new(frame::control(None, None, Some(&payload))));
        }
    }

    pub(crate) fn purpose(&self) -> Purpose {
        self.purpose
    }

    pub(crate) fn state(&self) -> OutletState {
        self.state.get()
    }

    /// Waits until there is something to do: a frame, a probe or a new state.
    ///
    /// # Cancel safety
    /// Safe: a wake-up that was not awaited is kept.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Asks the writing task whether its client is alive.
    pub(crate) fn probe(&self, answer: crate::rt::OneshotSender<bool>) {
        if self.state.get() == OutletState::Open {
            self.probes.borrow_mut().push(answer);
            self.wake.notify();
        } else {
            let _ = answer.send(false);
        }
    }

    /// The probes that wait for an answer.
    pub(crate) fn take_probes(&self) -> Vec<crate::rt::OneshotSender<bool>> {
        std::mem::take(&mut *self.probes.borrow_mut())
    }

    /// Waits until the client's connection is over.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn gone(&self) {
        self.gone.notified().await;
    }

    fn mark_gone(&self) {
        self.state.set(OutletState::Dropped);
        self.drained.notify();
        self.gone.notify();
    }
}

/// The outlets of one core.
#[derive(Debug)]
pub(crate) struct Outlets {
    core: u16,
    next: Cell<u64>,
    open: RefCell<HashMap<OutletId, Rc<Outlet>>>,
    queued_bytes_max: usize,
}

impl Outlets {
    pub(crate) fn new(core: u16, queued_bytes_max: usize) -> Self {
        Self { core, next: Cell::new(0), open: RefCell::default(), queued_bytes_max }
    }

    /// Registers a new outlet; it stays reachable until the guard is dropped.
    pub(crate) fn open(self: &Rc<Self>, purpose: Purpose) -> OpenOutlet {
        let times = if purpose == Purpose::Everything { EVERYTHING_TIMES } else { 1 };
        let number = self.next.get();
        self.next.set(number + 1);
        let id = OutletId(u64::from(self.core) << NUMBER_BITS | number);
        let outlet = Rc::new(Outlet {
            id,
            purpose,
            listener: Cell::new(None),
            audience: RefCell::default(),
            subscription: OnceCell::new(),
            queue: RefCell::default(),
            queued_bytes: Cell::new(0),
            queued_bytes_max: Cell::new(self.queued_bytes_max.saturating_mul(times)),
            state: Cell::new(OutletState::Open),
            probes: RefCell::default(),
            wake: Notify::new(),
            drained: Notify::new(),
            gone: Notify::new(),
        });
        self.open.borrow_mut().insert(id, outlet.clone());
        OpenOutlet { outlet, registry: self.clone() }
    }

    pub(crate) fn find(&self, id: OutletId) -> Option<Rc<Outlet>> {
        self.open.borrow().get(&id).cloned()
    }

    /// Closes the streams of listeners that may no longer listen. Who subscribed is told that it is
    /// over, and nothing else any more.
    pub(crate) fn drop_listeners(&self, may_listen: impl Fn(Caller) -> bool) {
        for outlet in self.open.borrow().values() {
            if outlet.listener.get().is_some_and(|listener| !may_listen(listener)) {
                match outlet.subscription.get() {
                    Some(_) => outlet.finish(),
                    None => outlet.drop_connection(),
                }
            }
        }
    }

    /// Visits the outlets outside sessions whose clients listen for changes of their lists.
    pub(crate) fn for_each_audience(&self, visit: impl Fn(&Outlet, &str, &str)) {
        for outlet in self.open.borrow().values() {
            if let Some((tenant, client_application)) = &*outlet.audience.borrow() {
                visit(outlet, tenant.as_str(), client_application.as_str());
            }
        }
    }

    /// Ends the standing streams properly, for shutdown. Answers end with their calls.
    pub(crate) fn finish_standing(&self) {
        for outlet in self.open.borrow().values() {
            if outlet.purpose != Purpose::Answer {
                outlet.finish();
            }
        }
    }
}

/// The core that holds an outlet.
pub(crate) fn core_of(id: OutletId) -> usize {
    usize::try_from(id.0 >> NUMBER_BITS).unwrap_or(usize::MAX)
}

/// A registered outlet; dropping it takes it out of the registry and tells who waits for `gone`.
#[derive(Debug)]
pub(crate) struct OpenOutlet {
    outlet: Rc<Outlet>,
    registry: Rc<Outlets>,
}

impl std::ops::Deref for OpenOutlet {
    type Target = Rc<Outlet>;
    fn deref(&self) -> &Rc<Outlet> {
        &self.outlet
    }
}

impl Drop for OpenOutlet {
    fn drop(&mut self) {
        self.registry.open.borrow_mut().remove(&self.outlet.id);
        self.outlet.mark_gone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> Arc<Vec<u8>> {
        Arc::new(vec![b'x'; bytes])
    }

    #[test]
    fn a_client_that_does_not_read_loses_its_connection_not_the_servers_memory() {
        let outlets = Rc::new(Outlets::new(3, 100));
        let outlet = outlets.open(Purpose::Standing);
        assert_eq!(core_of(outlet.id), 3);
        outlet.push(frame(60));
        outlet.push(frame(40));
        assert_eq!((outlet.state(), outlet.waiting()), (OutletState::Open, 2));
        outlet.push(frame(1));
        assert_eq!((outlet.state(), outlet.waiting()), (OutletState::Dropped, 0));
    }

    #[test]
    fn one_frame_larger_than_the_bound_still_passes() {
        let outlets = Rc::new(Outlets::new(0, 100));
        let outlet = outlets.open(Purpose::Standing);
        outlet.push(frame(1000));
        assert_eq!(outlet.pop().map(|f| f.len()), Some(1000));
    }

    #[test]
    fn a_replay_larger_than_the_bound_passes_and_the_bound_holds_for_what_follows() {
        let outlets = Rc::new(Outlets::new(0, 100));
        let outlet = outlets.open(Purpose::Standing);
        outlet.push(frame(30));
        outlet.replay(vec![frame(90), frame(90)]);
        assert_eq!((outlet.state(), outlet.waiting()), (OutletState::Open, 3));
        outlet.push(frame(70));
        assert_eq!(outlet.state(), OutletState::Open);
        outlet.push(frame(1));
        assert_eq!(outlet.state(), OutletState::Dropped);
    }

    #[test]
    fn finishing_keeps_what_is_queued_and_takes_nothing_more() {
        let outlets = Rc::new(Outlets::new(0, 100));
        let outlet = outlets.open(Purpose::Standing);
        outlet.push(frame(1));
        outlet.finish();
        outlet.push(frame(2));
        assert_eq!(outlet.pop().map(|f| f.len()), Some(1));
        assert!(outlet.pop().is_none());
        assert_eq!(outlet.state(), OutletState::Finishing);
    }

    #[test]
    fn a_dropped_outlet_is_no_longer_found() {
        let outlets = Rc::new(Outlets::new(0, 100));
        let outlet = outlets.open(Purpose::Standing);
        let id = outlet.id;
        assert!(outlets.find(id).is_some());
        drop(outlet);
        assert!(outlets.find(id).is_none());
    }
}
