//! One core: its state, and what it does for other cores.
//!
//! Everything here is of one thread. What is asked of a stream or an outlet of another core goes
//! as a message to that core's inbox; `send` is the one way there.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    rc::Rc,
    sync::Arc,
};

use super::{
    announce,
    connections::Connections,
    conversation::{Questions, Suspended, Ways},
    listener,
    message::{Attach, CoreMessage},
    outlet::{self, Outlets},
    publication::Published,
    random_bytes,
    shared::Shared,
    time::Clock,
    write_behind::WriteBehind,
};
use crate::{
    audit::{self, Writer},
    downstream::{RestCaller, Upstreams},
    http::{self, BodyLength},
    identity::Caller,
    rt::{self, Notify, OneshotSender, Stop, Undelivered},
    streams::{EventId, OutletId, SessionKey, StreamId, StreamKind, StreamTable},
    telemetry::{CoreMetrics, ExecutionId, ExecutionIds},
};

/// How long a question to another core may go unanswered.
const CORE_ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_millis(700);

/// Messages kept for cores that have no room; more are lost, and said to be.
const PUT_OFF_MAX: usize = 65_536;

/// The state of one core.
pub(crate) struct Core {
    pub(crate) index: u16,
    pub(crate) shared: Arc<Shared>,
    pub(crate) metrics: Arc<CoreMetrics>,
    pub(crate) clock: Clock,
    pub(crate) stop: Stop,
    pub(crate) connections: Rc<Connections>,
    pub(crate) streams: RefCell<StreamTable>,
    pub(crate) outlets: Rc<Outlets>,
    pub(crate) rest: RestCaller,
    pub(crate) upstreams: Upstreams,
    /// Questions to clients that wait here.
    pub(crate) questions: Questions,
    /// Responses that requests of other cores are heard on.
    pub(crate) ways: Ways,
    /// Requests that wait here until they are sent again.
    pub(crate) suspended: Suspended,
    execution_ids: RefCell<ExecutionIds>,
    pub(crate) write_behind: WriteBehind,
    /// This core's end of the audit log.
    pub(crate) audit: Writer,
    calls: RefCell<HashMap<u64, Rc<Notify>>>,
    next_call: Cell<u64>,
    call_over: Notify,
    /// Messages other cores had no room for.
    put_off: RefCell<VecDeque<(usize, CoreMessage)>>,
    published: RefCell<Rc<Published>>,
    /// When it was last logged that requests are refused because they could not be recorded.
    unrecorded_logged_ms: Cell<u64>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("index", &self.index).finish_non_exhaustive()
    }
}

/// What a new core is made of.
pub(crate) struct Parts {
    pub(crate) index: u16,
    pub(crate) shared: Arc<Shared>,
    pub(crate) streams: StreamTable,
    pub(crate) write_behind: WriteBehind,
    pub(crate) rest: RestCaller,
    pub(crate) upstreams: Upstreams,
}

impl Core {
    pub(crate) fn new(parts: Parts) -> Rc<Self> {
        let Parts { index, shared, streams, write_behind, rest, upstreams } = parts;
        let mut seed = [0; 8];
        random_bytes(&mut seed);
        let settings = &shared.settings;
        Rc::new(Self {
            index,
            metrics: shared.core_metrics(index),
            clock: Clock::new(),
            stop: Stop::new(),
            connections: Rc::new(Connections::new(shared.connections_max)),
            streams: RefCell::new(streams),
            outlets: Rc::new(Outlets::new(index, settings.runtime.mcp.sse.outlet_bytes_max)),
            rest,
            upstreams,
            questions: Questions::default(),
            ways: Ways::default(),
            suspended: Suspended::default(),
            execution_ids: RefCell::new(ExecutionIds::new(u64::from_le_bytes(seed))),
            write_behind,
            audit: shared.audit.writer(usize::from(index)),
            calls: RefCell::default(),
            next_call: Cell::new(0),
            call_over: Notify::new(),
            put_off: RefCell::default(),
            published: RefCell::new(Rc::new(shared.published())),
            unrecorded_logged_ms: Cell::new(0),
            shared,
        })
    }

    /// The catalog and keys as last published. Costs one atomic load when nothing changed.
    pub(crate) fn published(&self) -> Rc<Published> {
        if self.published.borrow().version != self.shared.published_version() {
            *self.published.borrow_mut() = Rc::new(self.shared.published());
        }
        self.published.borrow().clone()
    }

    /// Starts a response: status line, headers, `Date`.
    pub(crate) fn write_head(
        &self,
        out: &mut Vec<u8>,
        status: u16,
        headers: &[(&str, &str)],
        body: BodyLength,
        keep_alive: bool,
    ) {
        self.clock.with_date(|date| {
            http::write_response_head(out, status, headers, body, keep_alive, date);
        });
    }

    /// The id under which the log knows a call that began at this time.
    pub(crate) fn next_execution_id(&self, at_ms: u64) -> ExecutionId {
        self.execution_ids.borrow_mut().next(at_ms)
    }

    /// Logs that a request is refused because it could not be recorded: seldom, because it is so of
    /// all that follow.
    pub(crate) fn log_unrecorded(&self, refused: audit::Refused) {
        const PAUSE_MS: u64 = 10_000;
        let now_ms = self.clock.now_ms();
        if now_ms.saturating_sub(self.unrecorded_logged_ms.get()) >= PAUSE_MS {
            self.unrecorded_logged_ms.set(now_ms);
            tracing::warn!("requests are refused: {refused}");
        }
    }

    // ---- calls

    /// Registers a running call, so that a cancellation finds it.
    pub(crate) fn register_call(&self) -> (u64, Rc<Notify>) {
        let number = self.next_call.get();
        self.next_call.set(number + 1);
        let cancelled = Rc::new(Notify::new());
        self.calls.borrow_mut().insert(number, cancelled.clone());
        (number, cancelled)
    }

    pub(crate) fn forget_call(&self, number: u64) {
        self.calls.borrow_mut().remove(&number);
        self.call_over.notify();
    }

    /// Waits until no registered call runs.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn all_calls_over(&self) {
        while !self.calls.borrow().is_empty() {
            self.call_over.notified().await;
        }
    }

    /// Cancels a call wherever it runs; one that is over already stays over.
    pub(crate) fn cancel_call(self: &Rc<Self>, core: u16, number: u64) {
        self.send(usize::from(core), CoreMessage::CancelCall { number });
    }

    // ---- streams

    /// Attaches an outlet of this core to a stream, wherever the stream lives, and sends it what
    /// followed the event. `None` when the session has no such stream any more; an error when the
    /// stream's core did not answer, and then nothing was attached.
    pub(crate) async fn attach(
        self: &Rc<Self>,
        event: EventId,
        session: SessionKey,
        outlet: OutletId,
    ) -> Result<Option<StreamKind>, rt::Elapsed> {
        let owner = self.owner(event.stream);
        let (answer, found) = rt::oneshot();
        self.send(
            owner,
            CoreMessage::Attach(Attach {
                stream: event.stream,
                session,
                after: event.position,
                outlet,
                answer,
            }),
        );
        match rt::timeout(CORE_ANSWER_WITHIN, found).await {
            Ok(found) => Ok(found.unwrap_or(None)),
            Err(elapsed) => {
                // Behind the question in the same inbox, so it undoes whatever came of it.
                self.detach(event.stream, outlet);
                Err(elapsed)
            }
        }
    }

    /// Tells a stream that the client behind `outlet` is gone.
    pub(crate) fn detach(self: &Rc<Self>, stream: StreamId, outlet: OutletId) {
        self.send(self.owner(stream), CoreMessage::Detach { stream, outlet });
    }

    /// Publishes a message on a stream, wherever it lives.
    pub(crate) fn publish(self: &Rc<Self>, stream: StreamId, payload: Vec<u8>) {
        self.send(self.owner(stream), CoreMessage::Publish { stream, payload });
    }

    /// Ends a stream and forgets its window.
    pub(crate) fn end_stream(self: &Rc<Self>, stream: StreamId) {
        self.send(self.owner(stream), CoreMessage::EndStream { stream });
    }

    /// Whether a living client is attached to the stream: asked of its owner, then of the
    /// connection itself, which writes to the client and waits for its acknowledgement.
    pub(crate) async fn is_stream_alive(self: &Rc<Self>, stream: StreamId) -> bool {
        let (answer, found) = rt::oneshot();
        self.send(self.owner(stream), CoreMessage::FindOutlet { stream, answer });
        let Ok(Ok(Some(outlet))) = rt::timeout(CORE_ANSWER_WITHIN, found).await else {
            return false;
        };
        let (answer, alive) = rt::oneshot();
        self.send(outlet::core_of(outlet), CoreMessage::Probe { outlet, answer });
        matches!(rt::timeout(CORE_ANSWER_WITHIN, alive).await, Ok(Ok(true)))
    }

    /// A frame for an outlet, on this core or another.
    pub(crate) fn deliver(self: &Rc<Self>, outlet: OutletId, frame: Arc<Vec<u8>>) {
        self.send(outlet::core_of(outlet), CoreMessage::Deliver { outlet, frame });
    }

    fn owner(&self, stream: StreamId) -> usize {
        usize::from(stream.core) % self.shared.cores()
    }

    // ---- between cores

    /// Hands a message to a core: at once if it is this one, through its inbox otherwise.
    pub(crate) fn send(self: &Rc<Self>, core: usize, message: CoreMessage) {
        if core == usize::from(self.index) {
            return self.handle(message);
        }
        self.metrics.cross_core_hops.increment();
        if let Err(Undelivered::Full(message)) = self.shared.send(core, message) {
            self.metrics.messages_undelivered.increment();
            self.put_off(core, message);
        }
    }

    /// A core whose inbox is full gets what matters later. A client that missed a frame must not go
    /// on as if it had not: its connection is dropped, and the frame comes from the window when it
    /// resumes.
    fn put_off(&self, core: usize, message: CoreMessage) {
        let message = match message {
            CoreMessage::Deliver { outlet, .. } | CoreMessage::Replay { outlet, .. } => {
                CoreMessage::DropOutlet { outlet }
            }
            message => message,
        };
        let mut put_off = self.put_off.borrow_mut();
        if put_off.len() < PUT_OFF_MAX {
            put_off.push_back((core, message));
        } else {
            tracing::error!(core, "a core takes no messages; one was lost");
        }
    }

    /// Sends again what other cores had no room for, in order.
    pub(crate) fn send_put_off(&self) {
        let mut put_off = self.put_off.borrow_mut();
        while let Some((core, message)) = put_off.pop_front() {
            if let Err(Undelivered::Full(message)) = self.shared.send(core, message) {
                return put_off.push_front((core, message));
            }
        }
    }

    /// Does what a message asks.
    pub(crate) fn handle(self: &Rc<Self>, message: CoreMessage) {
        match message {
            CoreMessage::Deliver { outlet, frame } => {
                if let Some(outlet) = self.outlets.find(outlet) {
                    outlet.push(frame);
                }
            }
            CoreMessage::Replay { outlet, frames } => {
                if let Some(outlet) = self.outlets.find(outlet) {
                    outlet.replay(frames);
                }
            }
            CoreMessage::FinishOutlet { outlet } => {
                if let Some(outlet) = self.outlets.find(outlet) {
                    outlet.finish();
                }
            }
            CoreMessage::DropOutlet { outlet } => {
                if let Some(outlet) = self.outlets.find(outlet) {
                    outlet.drop_connection();
                }
            }
            CoreMessage::Probe { outlet, answer } => match self.outlets.find(outlet) {
                Some(outlet) => outlet.probe(answer),
                None => say(answer, false),
            },
            CoreMessage::Publish { stream, payload } => self.publish_here(stream, &payload),
            CoreMessage::Attach(attach) => self.attach_here(attach),
            CoreMessage::Detach { stream, outlet } => {
                self.streams.borrow_mut().detach(stream, outlet, self.clock.now_ms());
            }
            CoreMessage::FindOutlet { stream, answer } => {
                say(answer, self.streams.borrow().outlet(stream));
            }
            CoreMessage::EndStream { stream } => self.end_stream_here(stream),
            CoreMessage::CancelCall { number } => {
                if let Some(cancelled) = self.calls.borrow().get(&number) {
                    cancelled.notify();
                }
            }
            CoreMessage::Answer { number, outcome } => self.questions.answer(number, *outcome),
            CoreMessage::AskOutside(asked) => listener::ask(self, *asked),
            CoreMessage::Said { way, said } => self.ways.say(way, *said),
            CoreMessage::Resume(resume) => self.suspended.resume(*resume),
            CoreMessage::Heard(heard) => heard.deliver(),
            CoreMessage::Abandon(abandoned) => self.suspended.abandon(abandoned),
            CoreMessage::Gather => announce::gather(self),
            CoreMessage::Announce(announcement) => announce::announce(self, &announcement),
            CoreMessage::CheckListeners => self.check_listeners(),
            CoreMessage::Beat { answer } => say(answer, ()),
            CoreMessage::Stop => {
                self.stop.stop();
                self.outlets.finish_standing();
            }
        }
    }

    /// Closes the streams of callers whose keys were revoked or have expired.
    pub(crate) fn check_listeners(&self) {
        let published = self.published();
        let now_ms = self.clock.now_ms();
        self.outlets.drop_listeners(|caller| match caller {
            Caller::Key(id) => published.keys.is_good(id, now_ms),
            Caller::Open | Caller::Operator => true,
        });
    }

    fn publish_here(self: &Rc<Self>, stream: StreamId, payload: &[u8]) {
        let published = self.streams.borrow_mut().publish(stream, payload, self.clock.now_ms());
        self.write_behind.wake();
        if let Some(published) = published
            && let Some(outlet) = published.outlet
        {
            self.deliver(outlet, published.frame);
        }
    }

    fn attach_here(self: &Rc<Self>, attach: Attach) {
        let Attach { stream, session, after, outlet, answer } = attach;
        let attached = self.streams.borrow_mut().attach(
            stream,
            session,
            Some(after),
            outlet,
            self.clock.now_ms(),
        );
        let Some(attached) = attached else { return say(answer, None) };
        if let Some(displaced) = attached.displaced {
            self.send(outlet::core_of(displaced), CoreMessage::DropOutlet { outlet: displaced });
        }
        if !attached.replay.is_empty() {
            let frames = attached.replay;
            self.send(outlet::core_of(outlet), CoreMessage::Replay { outlet, frames });
        }
        if attached.finished {
            self.streams.borrow_mut().detach(stream, outlet, self.clock.now_ms());
            self.send(outlet::core_of(outlet), CoreMessage::FinishOutlet { outlet });
        }
        say(answer, self.streams.borrow().kind(stream));
    }

    /// A finished stream of this core: its client's response ends, its window is kept.
    pub(crate) fn finish_stream_here(self: &Rc<Self>, stream: StreamId) {
        let outlet = self.streams.borrow_mut().finish(stream, self.clock.now_ms());
        self.write_behind.wake();
        if let Some(outlet) = outlet {
            self.send(outlet::core_of(outlet), CoreMessage::FinishOutlet { outlet });
        }
    }

    fn end_stream_here(self: &Rc<Self>, stream: StreamId) {
        let outlet = self.streams.borrow_mut().end(stream);
        self.write_behind.wake();
        if let Some(outlet) = outlet {
            self.send(outlet::core_of(outlet), CoreMessage::FinishOutlet { outlet });
        }
    }
}

/// Answers a question; nobody waiting for it any more is fine.
fn say<T: Send>(answer: OneshotSender<T>, value: T) {
    let _ = answer.send(value);
}
