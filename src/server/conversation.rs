//! What is said between a running request and its client, in both eras.
//!
//! A conversation is one request's end of it. What it tells goes out on the way of the request; see
//! `way`. A client with a session is asked by a request of ours; see `question`. A client of the
//! era without sessions is asked by the answer to its request, which it sends again: the request
//! waits meanwhile; see `suspended`.
//!
//! Invariants
//! - A question is put to the client whose request led to it, and to nobody else: it is bound to
//!   that session, or to the caller and the request by a sealed state.
//! - A request asks its client no more often than settings say, however its server asks.
//! - Nothing is told after the answer, and progress only rises.
//! - Time that a client takes to answer is bounded by settings, and is not the time of the tool:
//!   whoever calls `ask` stops its own clock until that returns.

mod question;
mod shares;
mod suspended;
mod way;

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::Arc,
};

pub(crate) use self::{
    question::{Questions, answered, unheard},
    shares::SuspendedShares,
    suspended::{Abandoned, HeardBody, Resume, Suspended, request_state, resumed, suspendable},
    way::{Said, SaidKind, Sink, Way, Ways},
};
use super::{core::Core, execute::Asking, message::CoreMessage, request_state::Binding};
use crate::{
    catalog::View,
    downstream,
    json::{OwnedRaw, Raw},
    mcp::{self, Ask, AskOutcome, LogLevel, Revision, Told},
    rpc::{Message, RpcError, code},
    rt::{self, Notify, OneshotSender},
    sessions::{ClientCapabilities, Session},
};

/// What clients of the older era hear of where they did not say: the specification leaves it to the
/// server.
const LOG_LEVEL: LogLevel = LogLevel::Info;
/// Most questions of one request that wait for a client of the era without sessions.
const ASKS_MAX: usize = 32;

/// One request's end of what is said to its client. It outlives the connection it came on.
pub(crate) struct Conversation {
    core: Rc<Core>,
    view: Arc<View>,
    session: Option<Arc<Session>>,
    revision: Revision,
    method: Box<str>,
    /// What a state given to the client is bound to; of the era without sessions only.
    binding: Option<Binding>,
    client: RefCell<Hearing>,
    /// The greatest progress that was told.
    progress: Cell<f64>,
    /// Questions that wait for the client to send the request again.
    asks: RefCell<Vec<OpenAsk>>,
    next_key: Cell<u32>,
    /// Questions that were put to the client.
    asked: Cell<u32>,
    /// There are others than before.
    changed: Notify,
}

/// The client as the request, or what it was sent again as, describes it.
struct Hearing {
    ears: Ears,
    capabilities: ClientCapabilities,
    log_level: Option<LogLevel>,
    /// As JSON text.
    progress_token: Option<Box<str>>,
}

/// Where the client hears what is said.
enum Ears {
    /// The request runs for a response of this core.
    Here(Rc<Way>),
    /// It goes on for a response of whatever core.
    There { core: u16, way: u64 },
    /// It waits to be sent again.
    Nowhere,
}

struct OpenAsk {
    key: Box<str>,
    ask: Ask,
    answer: OneshotSender<AskOutcome>,
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let revision = self.revision;
        formatter.debug_struct("Conversation").field("revision", &revision).finish_non_exhaustive()
    }
}

impl Conversation {
    /// With the client of a request.
    pub(crate) fn of(asking: &Asking<'_>, message: &Message<'_>) -> Rc<Self> {
        let origin = &asking.origin;
        let (method, params) = (message.method().unwrap_or_default(), message.params());
        let is_modern = asking.revision.is_modern();
        let progress_token = mcp::progress_token(params).map(|token| token.text().into());
        let (capabilities, log_level) = match (asking.envelope, asking.session) {
            (Some(envelope), _) if is_modern => (envelope.capabilities, envelope.log_level),
            (_, Some(session)) if !is_modern => (session.capabilities(), None),
            _ => (ClientCapabilities::NONE, None),
        };
        let ears = Ears::Here(Rc::clone(asking.way()));
        Rc::new(Self {
            core: Rc::clone(origin.core),
            view: Arc::clone(origin.view),
            session: asking.session.filter(|_| !is_modern).cloned(),
            revision: asking.revision,
            method: method.into(),
            binding: is_modern.then(|| Binding::of(origin, method, params)),
            client: RefCell::new(Hearing { ears, capabilities, log_level, progress_token }),
            progress: Cell::new(f64::NEG_INFINITY),
            asks: RefCell::default(),
            next_key: Cell::new(1),
            asked: Cell::new(0),
            changed: Notify::new(),
        })
    }

    fn say(&self, payload: Vec<u8>, kind: SaidKind) {
        let said = Said { payload, kind };
        let (core, way) = match &self.client.borrow().ears {
            Ears::Here(way) => {
                way.say(said);
                return;
            }
            Ears::There { core, way } => (*core, *way),
            Ears::Nowhere => return,
        };
        self.core.send(usize::from(core), CoreMessage::Said { way, said: Box::new(said) });
    }

    fn tell_progress(&self, report: Raw<'_>) {
        let Some(token) = self.client.borrow().progress_token.clone() else { return };
        let progress = report.get("progress").and_then(|value| value.text().parse::<f64>().ok());
        let rises = |progress: &f64| progress.is_finite() && *progress > self.progress.get();
        let Some(progress) = progress.filter(rises) else { return };
        self.progress.set(progress);
        self.say(mcp::progress_report(&token, report, self.revision), SaidKind::Progress);
    }

    /// Takes the place of one more question.
    ///
    /// # Errors
    /// There were as many as one request may put to its client.
    fn count_question(&self) -> Result<(), RpcError> {
        let questions_max = self.core.shared.settings.runtime.mcp.asking.questions_per_call_max;
        let asked = self.asked.get();
        if asked >= questions_max {
            let text = format!(
                "too many questions: this request has asked its client {asked} times, the most it \
                 may (runtime.mcp.asking.questions_per_call_max)"
            );
            return Err(RpcError::new(code::SERVER, text));
        }
        self.asked.set(asked + 1);
        Ok(())
    }

    /// Asks a client that sends its request again with the answer.
    async fn ask_back(&self, ask: Ask) -> AskOutcome {
        let (key, answer) = {
            let mut asks = self.asks.borrow_mut();
            if asks.len() >= ASKS_MAX {
                return AskOutcome::Unheard;
            }
            let number = self.next_key.replace(self.next_key.get() + 1);
            let key: Box<str> = format!("ask-{number}").into();
            let (sender, answer) = rt::oneshot();
            asks.push(OpenAsk { key: key.clone(), ask, answer: sender });
            (key, answer)
        };
        let _open = TakenBack { conversation: self, key };
        self.changed.notify();
        answer.await.unwrap_or(AskOutcome::Unheard)
    }

    /// Whether questions wait for the client.
    fn is_asking(&self) -> bool {
        !self.asks.borrow().is_empty()
    }

    /// Gives an answer to whoever waits for it. What is no object is none.
    fn hear(&self, key: &str, answer: OwnedRaw) {
        let taken = {
            let mut asks = self.asks.borrow_mut();
            let at = asks.iter().position(|open| *open.key == *key);
            at.map(|at| asks.swap_remove(at))
        };
        if let Some(open) = taken {
            let _ = open.answer.send(mcp::answer(Ok(answer.as_raw())));
        }
    }

    /// Nobody can be asked: who waits for an answer hears so.
    fn refuse_asks(&self) {
        for open in self.asks.take() {
            let _ = open.answer.send(AskOutcome::Unheard);
        }
    }
}

/// A question that is not waited for any more is not asked again.
struct TakenBack<'a> {
    conversation: &'a Conversation,
    key: Box<str>,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        self.conversation.asks.borrow_mut().retain(|open| open.key != self.key);
    }
}

impl downstream::Client for Conversation {
    fn capabilities(&self) -> ClientCapabilities {
        self.client.borrow().capabilities
    }

    fn log_level(&self) -> Option<LogLevel> {
        if self.revision.is_modern() {
            return self.client.borrow().log_level;
        }
        let said = self.session.as_ref().and_then(|session| log_level_of(session));
        Some(said.unwrap_or(LOG_LEVEL))
    }

    fn wants_progress(&self) -> bool {
        self.client.borrow().progress_token.is_some()
    }

    fn is_modern(&self) -> bool {
        self.revision.is_modern()
    }

    fn tell(&self, told: Told) {
        match told {
            Told::Progress(report) => self.tell_progress(report.as_raw()),
            Told::Message(level, message) => {
                if self.log_level().is_some_and(|wanted| level >= wanted) {
                    self.say(mcp::log_message(message.as_raw()), SaidKind::Told);
                }
            }
            Told::ElicitationComplete(told) => {
                let can = self.capabilities().contains(ClientCapabilities::ELICITATION_URL);
                if can && !self.revision.is_modern() {
                    self.say(mcp::elicitation_complete(told.as_raw()), SaidKind::Asked);
                }
            }
        }
    }

    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        let way = match &self.client.borrow().ears {
            Ears::Here(way) => Some(Rc::clone(way)),
            // What does not fit there is left out there.
            Ears::There { .. } | Ears::Nowhere => None,
        };
        Box::pin(async move {
            if let Some(way) = way {
                way.ready().await;
            }
        })
    }

    fn ask(&self, ask: Ask) -> Pin<Box<dyn Future<Output = AskOutcome> + '_>> {
        Box::pin(async move {
            if !self.capabilities().contains(ask.method.needs(ask.params.as_raw())) {
                return AskOutcome::Unheard;
            }
            if let Err(refused) = self.count_question() {
                return AskOutcome::Refused(refused);
            }
            if self.revision.is_modern() {
                return self.ask_back(ask).await;
            }
            let way = match &self.client.borrow().ears {
                Ears::Here(way) => Rc::clone(way),
                Ears::There { .. } | Ears::Nowhere => return AskOutcome::Unheard,
            };
            let Some(session) = &self.session else { return AskOutcome::Unheard };
            question::ask(&self.core, session, question::Route::Way(&way), &ask).await
        })
    }
}

impl Conversation {
    /// For whom and for which request a state holds that the client is given to keep.
    pub(super) fn binding(&self) -> Option<&Binding> {
        self.binding.as_ref()
    }
}

/// Asks the client of a session outside any request.
pub(crate) async fn ask_outside(core: &Rc<Core>, session: &Arc<Session>, ask: &Ask) -> AskOutcome {
    question::ask(core, session, question::Route::Standing, ask).await
}

/// The level the session's client has set.
pub(crate) fn log_level_of(session: &Session) -> Option<LogLevel> {
    LogLevel::from_code(session.log_level())
}

/// Whether the session's client hears of what is as grave as that.
pub(crate) fn hears(session: &Session, level: LogLevel) -> bool {
    level >= log_level_of(session).unwrap_or(LOG_LEVEL)
}
