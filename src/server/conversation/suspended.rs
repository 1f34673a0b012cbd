//! Requests of the era without sessions that ask their client something (MCP 2026-07-28,
//! multi-round-trip requests).
//!
//! ```text
//! runs for a response --asks--> a task of its own, which answers that response with the questions
//!        ^                                          |
//!        +------ sent again, with answers ----------+--- not sent again in time ---> given up
//! ```
//!
//! A request that asks goes on in a task of its own, on the core where it began. Its response is
//! answered with the questions and a sealed state that says where the request waits; whoever sends
//! the same request again with that state, on whatever core, hears the rest. Nothing is judged or
//! counted a second time: to send a request again costs what any request costs, and no more of the
//! tool's limits. It is recorded once, when it ends; what it was sent again as is logged.
//!
//! Invariants
//! - At most one response hears a request. A later one takes the place of an earlier one.
//! - A response that its client closes ends the request, as it would have at first. While it waits
//!   no response is open, and it lives until its time is over.
//! - Waiting requests are bounded, for all tenants together and for each; see `shares`. One over the
//!   bound goes on without its answers.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::Duration,
};

use aws_lc_rs::constant_time::verify_slices_are_equal;

use super::{Conversation, Ears, Hearing, Way, shares::Share};
use crate::{
    json::OwnedRaw,
    mcp::{self, LogLevel},
    rpc::{Id, Message, OwnedId, Reply, ResultBody, RpcError},
    rt::{self, Deadline, Either, OneshotReceiver, OneshotSender},
    server::{
        core::Core,
        execute::Asking,
        message::CoreMessage,
        random_bytes,
        request_state::{Binding, RequestState, SuspendedCall},
        running::{Answered, Single},
    },
    sessions::ClientCapabilities,
};

/// Questions that come within so long are put together.
const GATHER: Duration = Duration::from_millis(20);

/// What a response hears of a request that goes on elsewhere: its body.
type Body = Result<ResultBody, RpcError>;

/// The requests of one core that ask, or have asked, their clients.
#[derive(Debug, Default)]
pub(crate) struct Suspended {
    table: RefCell<HashMap<u64, Rc<Waiting>>>,
    next: Cell<u64>,
    next_hearer: Cell<u64>,
}

/// A request that asks, as messages find it.
struct Waiting {
    conversation: Rc<Conversation>,
    random: [u8; 16],
    hearer: RefCell<Option<Hearer>>,
    is_abandoned: Cell<bool>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Waiting").finish_non_exhaustive()
    }
}

/// The response that hears what becomes of it.
struct Hearer {
    core: u16,
    number: u64,
    body: OneshotSender<Body>,
}

impl Hearer {
    /// By the way that what was told before takes, so that it comes after that.
    fn hear(self, own: &Rc<Core>, body: Body) {
        let heard = CoreMessage::Heard(Box::new(HeardBody { body, hearer: self.body }));
        own.send(usize::from(self.core), heard);
    }
}

/// What a response hears of a request of another core.
#[derive(Debug)]
pub(crate) struct HeardBody {
    body: Body,
    hearer: OneshotSender<Body>,
}

impl HeardBody {
    /// Hands it to the response. A client that has gone may send the request again all the same.
    pub(crate) fn deliver(self) {
        let _ = self.hearer.send(self.body);
    }

    /// What it weighs among the messages of a core.
    pub(crate) fn bytes(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.as_bytes().len())
    }
}

/// A request was sent again.
#[derive(Debug)]
pub(crate) struct Resume {
    number: u64,
    random: [u8; 16],
    answers: Vec<(Box<str>, OwnedRaw)>,
    capabilities: ClientCapabilities,
    log_level: Option<LogLevel>,
    progress_token: Option<Box<str>>,
    /// The response that hears the rest: its core, and the number of its way there.
    way: (u16, u64),
    hearer: u64,
    body: OneshotSender<Body>,
}

impl Resume {
    /// What it weighs among the messages of a core.
    pub(crate) fn bytes(&self) -> usize {
        let answer =
            |(key, answer): &(Box<str>, OwnedRaw)| key.len() + answer.as_raw().text().len();
        self.answers.iter().map(answer).sum()
    }
}

/// The client closed the response that heard a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abandoned {
    number: u64,
    hearer: u64,
}

impl Suspended {
    /// A request that waits here was sent again.
    pub(crate) fn resume(&self, resume: Resume) {
        let waiting = self.table.borrow().get(&resume.number).cloned();
        // Whoever sent it hears that the sender is gone.
        let Some(waiting) = waiting else { return };
        if verify_slices_are_equal(&waiting.random, &resume.random).is_err() {
            return;
        }
        let conversation = &waiting.conversation;
        let (core, way) = resume.way;
        conversation.client.replace(Hearing {
            ears: Ears::There { core, way },
            capabilities: resume.capabilities,
            log_level: resume.log_level,
            progress_token: resume.progress_token,
        });
        conversation.progress.set(f64::NEG_INFINITY);
        waiting.hearer.replace(Some(Hearer { core, number: resume.hearer, body: resume.body }));
        for (key, answer) in resume.answers {
            conversation.hear(&key, answer);
        }
        conversation.changed.notify();
    }

    /// A response that heard a request was closed by its client.
    pub(crate) fn abandon(&self, abandoned: Abandoned) {
        let waiting = self.table.borrow().get(&abandoned.number).cloned();
        let Some(waiting) = waiting else { return };
        let hears = waiting.hearer.borrow().as_ref().map(|hearer| hearer.number);
        if hears == Some(abandoned.hearer) {
            waiting.is_abandoned.set(true);
            waiting.conversation.changed.notify();
        }
    }

    /// A number for a response, unlike that of any other on any core.
    fn next_hearer(&self, core: u16) -> u64 {
        let number = self.next_hearer.get();
        self.next_hearer.set(number + 1);
        u64::from(core) << 48 | number
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.table.borrow().len()
    }
}

/// The call of a request, which may ask its client meanwhile. Only where the client is one of the
/// era without sessions does that make it another one.
pub(crate) fn suspendable(
    conversation: &Rc<Conversation>,
    mut call: Single,
    id: OwnedId,
) -> Single {
    if conversation.binding.is_none() {
        return call;
    }
    let conversation = Rc::clone(conversation);
    Box::pin(async move {
        loop {
            let asked = async {
                while !conversation.is_asking() {
                    conversation.changed.notified().await;
                }
            };
            if let Either::Left(answered) = rt::race(&mut call, asked).await {
                return answered;
            }
            match suspend(&conversation, call) {
                Ok(heard) => return heard.over(id).await,
                Err(back) => call = back,
            }
            tracing::warn!(
                tenant = conversation.view.tenant.as_str(),
                "a client is not asked: too many requests wait for answers"
            );
            conversation.refuse_asks();
        }
    })
}

/// Lets the call go on in a task of its own. Gives it back where no more may wait.
fn suspend(conversation: &Rc<Conversation>, call: Single) -> Result<Heard, Single> {
    let core = &conversation.core;
    let Some(share) = core.shared.suspended.reserve(&conversation.view.tenant) else {
        return Err(call);
    };
    let suspended = &core.suspended;
    let number = suspended.next.get();
    suspended.next.set(number + 1);
    let mut random = [0; 16];
    random_bytes(&mut random);
    let (body, heard) = rt::oneshot();
    let hearer = suspended.next_hearer(core.index);
    let waiting = Rc::new(Waiting {
        conversation: Rc::clone(conversation),
        random,
        hearer: RefCell::new(Some(Hearer { core: core.index, number: hearer, body })),
        is_abandoned: Cell::new(false),
    });
    suspended.table.borrow_mut().insert(number, Rc::clone(&waiting));
    let place = Place { core: Rc::clone(core), number, _share: share };
    rt::spawn(go_on(waiting, call, place));
    let abandoned = Abandoned { number, hearer };
    Ok(Heard::new(Rc::clone(core), core.index, abandoned, heard, None))
}

/// Its place in the table; taken out when it is dropped.
struct Place {
    core: Rc<Core>,
    number: u64,
    _share: Share,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.core.suspended.table.borrow_mut().remove(&self.number);
    }
}

/// Runs a call that asks to its end. Dropping it ends the call.
async fn go_on(waiting: Rc<Waiting>, mut call: Single, place: Place) {
    let conversation = &waiting.conversation;
    let deadline = Deadline::new();
    loop {
        // What is known is looked at before anything is waited for: it may be there already.
        if waiting.is_abandoned.get() {
            return;
        }
        let is_heard = waiting.hearer.borrow().is_some();
        if is_heard {
            deadline.clear();
        }
        if is_heard && conversation.is_asking() {
            if let Either::Left(answered) = rt::race(&mut call, rt::sleep(GATHER)).await {
                return waiting.answered(answered, &deadline).await;
            }
            if conversation.is_asking() && !waiting.is_abandoned.get() {
                waiting.ask(&place, &deadline);
            }
            continue;
        }
        let changed = rt::race(conversation.changed.notified(), deadline.expired());
        match rt::race(&mut call, changed).await {
            Either::Left(answered) => return waiting.answered(answered, &deadline).await,
            Either::Right(Either::Left(())) => {}
            Either::Right(Either::Right(())) => {
                tracing::debug!(
                    tenant = conversation.view.tenant.as_str(),
                    method = &*conversation.method,
                    "a request was not sent again in time and is given up"
                );
                return;
            }
        }
    }
}

impl Waiting {
    /// Answers the response that hears with the questions; from now on the client's time runs.
    fn ask(&self, place: &Place, deadline: &Deadline) {
        let conversation = &self.conversation;
        let core = &conversation.core;
        let Some(hearer) = self.hearer.take() else { return };
        conversation.client.borrow_mut().ears = Ears::Nowhere;
        let seconds = core.shared.settings.runtime.mcp.asking.answer_seconds;
        deadline.set(Duration::from_secs(seconds));
        let expires_ms = core.clock.now_ms().saturating_add(seconds.saturating_mul(1000));
        let state = RequestState::Suspended(SuspendedCall {
            boot: core.shared.boot,
            core: core.index,
            number: place.number,
            random: self.random,
        });
        let sealed = conversation
            .binding
            .as_ref()
            .and_then(|binding| core.shared.request_states.seal(&state, binding, expires_ms).ok());
        let asks = conversation.asks.borrow();
        let asked = asks.iter().map(|open| (&*open.key, &open.ask));
        let answer = match sealed {
            Some(sealed) => Ok(mcp::input_required(asked, Some(&sealed))),
            // Without randomness nothing can be sealed.
            None => Err(RpcError::internal()),
        };
        hearer.hear(core, answer);
    }

    /// The call is over. Where its client is about to send it again, the answer waits for that.
    async fn answered(&self, answered: Answered, deadline: &Deadline) {
        let body = answered.reply().body;
        loop {
            if let Some(hearer) = self.hearer.take() {
                return hearer.hear(&self.conversation.core, body);
            }
            let changed = self.conversation.changed.notified();
            if let Either::Right(()) = rt::race(changed, deadline.expired()).await {
                return;
            }
        }
    }
}

/// What a response hears. Dropped before it has heard anything, it says that its client is gone.
struct Heard {
    core: Rc<Core>,
    owner: u16,
    abandoned: Abandoned,
    body: OneshotReceiver<Body>,
    is_over: bool,
    /// Kept, not read: the way of the response is known while something may be told on it.
    _way: Option<Rc<Way>>,
}

impl Heard {
    fn new(
        core: Rc<Core>,
        owner: u16,
        abandoned: Abandoned,
        body: OneshotReceiver<Body>,
        way: Option<Rc<Way>>,
    ) -> Self {
        Self { core, owner, abandoned, body, is_over: false, _way: way }
    }

    /// Waits for the body of the answer to the request with this id.
    async fn over(mut self, id: OwnedId) -> Answered {
        let body = (&mut self.body).await;
        self.is_over = true;
        let gone = || {
            Err(RpcError::invalid_params(
                "the request that `requestState` belongs to is over: send the request again \
                 without it",
            ))
        };
        Answered::Reply(Reply::new(id, body.unwrap_or_else(|_| gone())))
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if !self.is_over {
            self.core.send(usize::from(self.owner), CoreMessage::Abandon(self.abandoned));
        }
    }
}

/// What goes on for a request that was sent again; `None` where it was not, or not for a request
/// that waits here: what else its state says is for others.
///
/// # Errors
/// Its state is not one that was given to this caller for this request.
pub(crate) fn resumed(
    asking: &Asking<'_>,
    message: &Message<'_>,
    id: Id<'_>,
) -> Result<Option<Single>, RpcError> {
    let Some(state) = request_state(asking, message)? else { return Ok(None) };
    let RequestState::Suspended(call) = state else { return Ok(None) };
    let origin = &asking.origin;
    let core = origin.core;
    if call.boot != core.shared.boot || usize::from(call.core) >= core.shared.cores() {
        return Err(RpcError::invalid_params(
            "the server was restarted since it asked: send the request again without \
             `requestState`",
        ));
    }
    let envelope = asking.envelope;
    let answers = envelope.and_then(|envelope| envelope.input_responses);
    let answers = answers.iter().flat_map(|answers| answers.entries());
    let way = asking.way();
    let hearer = core.suspended.next_hearer(core.index);
    let (body, heard) = rt::oneshot();
    let resume = Resume {
        number: call.number,
        random: call.random,
        answers: answers.map(|(key, answer)| (key.into(), answer.to_owned())).collect(),
        capabilities: envelope.map_or(ClientCapabilities::NONE, |one| one.capabilities),
        log_level: envelope.and_then(|envelope| envelope.log_level),
        progress_token: mcp::progress_token(message.params()).map(|token| token.text().into()),
        way: (core.index, way.number()),
        hearer,
        body,
    };
    tracing::debug!(
        tenant = origin.view.tenant.as_str(),
        client_application = origin.view.client_application.as_str(),
        method = message.method(),
        core = call.core,
        number = call.number,
        answers = resume.answers.len(),
        "a request goes on that was sent again"
    );
    core.send(usize::from(call.core), CoreMessage::Resume(Box::new(resume)));
    let abandoned = Abandoned { number: call.number, hearer };
    let way = Some(Rc::clone(way));
    let heard = Heard::new(Rc::clone(core), call.core, abandoned, heard, way);
    Ok(Some(Box::pin(heard.over(id.to_owned_id()))))
}

/// What the state says that a request came back with, where it did.
///
/// # Errors
/// It is not one that was given to this caller for this request.
pub(crate) fn request_state(
    asking: &Asking<'_>,
    message: &Message<'_>,
) -> Result<Option<RequestState>, RpcError> {
    let Some(envelope) = asking.envelope else { return Ok(None) };
    let Some(text) = envelope.request_state.as_deref() else { return Ok(None) };
    let origin = &asking.origin;
    let method = message.method().unwrap_or_default();
    let binding = Binding::of(origin, method, message.params());
    origin.core.shared.request_states.open(text, &binding, origin.core.clock.now_ms()).map(Some)
}
