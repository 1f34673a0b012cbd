//! The way from what runs to its client: the response to one POST, whatever becomes of it.
//!
//! A response begins as nothing. What is said then waits, for a moment and within bounds, and asks
//! for the response to become an event stream; where the client takes nothing but JSON there is no
//! way. All requests of a batch share one way.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::{Rc, Weak},
    sync::Arc,
};

use crate::{
    rt::Notify,
    server::{core::Core, outlet::Outlet},
    streams::{StreamId, frame},
};

/// What may wait for a response to become a stream.
const WAITING_MAX: usize = 64;
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// Where the messages of a response that is a stream go.
#[derive(Debug, Clone)]
pub(crate) enum Sink {
    /// To a stream of a session, whether or not a client is attached.
    Stream(StreamId),
    /// To this connection and no other.
    Outlet(Rc<Outlet>),
}

impl Sink {
    pub(crate) fn send(&self, core: &Rc<Core>, payload: Vec<u8>) {
        match self {
            Self::Stream(stream) => core.publish(*stream, payload),
            Self::Outlet(outlet) => {
                outlet.push(Arc::new(frame::control(None, None, Some(&payload))));
            }
        }
    }

    /// Waits until the client has taken most of what it was sent. One that is not there, or is on
    /// another core, is not waited for: what it can still have is in the stream's window.
    async fn drained(&self, core: &Core) {
        let outlet = match self {
            Self::Outlet(outlet) => Some(Rc::clone(outlet)),
            Self::Stream(stream) => {
                let attached = core.streams.borrow().outlet(*stream);
                attached.and_then(|id| core.outlets.find(id))
            }
        };
        if let Some(outlet) = outlet {
            outlet.drained().await;
        }
    }

    /// Whether something that can be left out still fits. What a client on a session's stream has
    /// not read waits in the stream's window, which has bounds of its own.
    fn has_room(&self, payload: &[u8]) -> bool {
        match self {
            Self::Stream(_) => true,
            Self::Outlet(outlet) => outlet.has_room_for(payload.len()),
        }
    }
}

/// A message for a client.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) payload: Vec<u8>,
    pub(crate) kind: SaidKind,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SaidKind {
    /// How far a request is.
    Progress,
    /// Something else that can be left out.
    Told,
    /// Part of a question: it must arrive.
    Asked,
}

enum State {
    /// Nothing is written yet.
    Undecided { waiting: Vec<Said>, bytes: usize },
    /// It is an event stream.
    Open(Sink),
    /// It will be one JSON document.
    Json,
    /// It is complete.
    Over,
}

/// The way to the client of one POST.
pub(crate) struct Way {
    core: Rc<Core>,
    state: RefCell<State>,
    wanted: Notify,
    /// It is decided what the response is.
    decided: Notify,
    reports: Cell<bool>,
    /// Under which other cores know it.
    number: Cell<Option<u64>>,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Way").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Way {
    /// Of a response of which nothing is written yet.
    pub(crate) fn new(core: &Rc<Core>) -> Rc<Self> {
        Rc::new(Self {
            core: Rc::clone(core),
            state: RefCell::new(State::Undecided { waiting: Vec::new(), bytes: 0 }),
            wanted: Notify::new(),
            decided: Notify::new(),
            reports: Cell::new(false),
            number: Cell::new(None),
        })
    }

    /// A number under which other cores reach it until it is dropped.
    pub(crate) fn number(self: &Rc<Self>) -> u64 {
        if let Some(number) = self.number.get() {
            return number;
        }
        let number = self.core.ways.add(self);
        self.number.set(Some(number));
        number
    }

    /// Waits until something is said that wants the response to be a stream.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Whether something was said that still waits for that.
    pub(crate) fn has_waiting(&self) -> bool {
        matches!(&*self.state.borrow(), State::Undecided { waiting, .. } if !waiting.is_empty())
    }

    /// Whether another server reports how far the request is.
    pub(crate) fn reports(&self) -> bool {
        self.reports.get()
    }

    /// The response is an event stream from now on: what waited is sent.
    pub(crate) fn open(&self, sink: Sink) {
        let before = self.state.replace(State::Open(sink.clone()));
        if let State::Undecided { waiting, .. } = before {
            for said in waiting {
                sink.send(&self.core, said.payload);
            }
        }
        self.decided.notify();
    }

    /// The response will be one JSON document.
    pub(crate) fn only_json(&self) {
        self.state.replace(State::Json);
        self.decided.notify();
    }

    /// The answer comes next: nothing may follow it.
    pub(crate) fn close(&self) {
        self.state.replace(State::Over);
        self.decided.notify();
    }

    /// Waits until there is room for more.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn ready(&self) {
        while self.is_filling() {
            self.decided.notified().await;
            // For the others of a batch.
            self.decided.notify();
        }
        let sink = match &*self.state.borrow() {
            State::Open(sink) => sink.clone(),
            State::Undecided { .. } | State::Json | State::Over => return,
        };
        sink.drained(&self.core).await;
    }

    /// Whether much of what may wait for the response to become a stream is there.
    fn is_filling(&self) -> bool {
        match &*self.state.borrow() {
            State::Undecided { waiting, bytes } => {
                waiting.len() >= WAITING_MAX / 2 || *bytes >= WAITING_BYTES_MAX / 2
            }
            State::Open(_) | State::Json | State::Over => false,
        }
    }

    /// Sends a message. `false` where there is no way for it.
    pub(crate) fn say(&self, said: Said) -> bool {
        if said.kind == SaidKind::Progress {
            self.reports.set(true);
        }
        let sink = match &mut *self.state.borrow_mut() {
            State::Undecided { waiting, bytes } => {
                let after = *bytes + said.payload.len();
                let has_room = waiting.len() < WAITING_MAX && after <= WAITING_BYTES_MAX;
                if has_room {
                    *bytes = after;
                    waiting.push(said);
                    self.wanted.notify();
                }
                return has_room;
            }
            State::Open(sink) => sink.clone(),
            State::Json | State::Over => return false,
        };
        let is_sent = said.kind == SaidKind::Asked || sink.has_room(&said.payload);
        if is_sent {
            sink.send(&self.core, said.payload);
        }
        is_sent
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        if let Some(number) = self.number.get() {
            self.core.ways.remove(number);
        }
    }
}

/// The ways of one core that other cores know.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    known: RefCell<HashMap<u64, Weak<Way>>>,
    next: Cell<u64>,
}

impl Ways {
    fn add(&self, way: &Rc<Way>) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.known.borrow_mut().insert(number, Rc::downgrade(way));
        number
    }

    fn remove(&self, number: u64) {
        self.known.borrow_mut().remove(&number);
    }

    /// Sends what another core has to say, where its client is still there.
    pub(crate) fn say(&self, number: u64, said: Said) {
        let way = self.known.borrow().get(&number).and_then(Weak::upgrade);
        if let Some(way) = way {
            way.say(said);
        }
    }
}
