//! What upstream servers say by themselves, outside any request.
//!
//! It comes on whatever core; where it goes follows from the server's tenant and from the session of
//! the client in whose name it was said. What belongs to no one client is told to none: a session at
//! a server that many share says nothing to any of them but that resources and lists changed.

use std::{rc::Rc, sync::Arc, time::Duration};

use super::{
    conversation,
    core::Core,
    message::CoreMessage,
    outlet,
    shared::Shared,
    subscriptions::{Resource, Subscriber},
};
use crate::{
    catalog::{TenantId, ToolsetId, UpstreamServer},
    downstream::{AnswerSender, Heard, Listener},
    mcp::{self, Ask, AskOutcome, Told},
    rt::{self, Either},
    sessions::{ClientCapabilities, Session, SessionKey},
    streams::{StreamId, frame},
};

/// How often it is looked whether a question was taken back.
const TAKEN_BACK_STEP: Duration = Duration::from_secs(1);

/// A question of a server that belongs to no request of a client.
#[derive(Debug)]
pub(crate) struct AskedOutside {
    session: SessionKey,
    ask: Ask,
    answer: AnswerSender,
}

impl AskedOutside {
    /// What it weighs among the messages of a core.
    pub(crate) fn bytes(&self) -> usize {
        self.ask.params.as_raw().text().len()
    }
}

impl Listener for Shared {
    fn heard(&self, server: &Arc<UpstreamServer>, session: Option<SessionKey>, heard: Heard) {
        match heard {
            Heard::ToolsChanged | Heard::PromptsChanged | Heard::ResourcesChanged => {
                self.lists_changed(&server.tenant, &server.toolset);
            }
            Heard::ResourceUpdated(uri) => self.resource_updated(server, session, uri),
            Heard::Told(told) => {
                if let Some(session) = self.session_of(server, session) {
                    self.tell(&session, &told);
                }
            }
            Heard::Asked(ask, answer) => match self.session_of(server, session) {
                Some(session) => self.ask(&session, ask, answer),
                None => answer_to(&answer, AskOutcome::Unheard),
            },
        }
    }
}

impl Shared {
    /// What a toolset's server offers may be something else now: it is to be asked.
    pub(crate) fn lists_changed(&self, tenant: &TenantId, toolset: &ToolsetId) {
        self.keeper.lists_changed(tenant, toolset);
    }

    /// The session that a server speaks in; none of another tenant's, whatever is said.
    fn session_of(
        &self,
        server: &UpstreamServer,
        session: Option<SessionKey>,
    ) -> Option<Arc<Session>> {
        let session = self.sessions.peek(session?)?;
        (session.tenant() == server.tenant.as_str() && !session.is_ended()).then_some(session)
    }

    /// Tells who subscribed: all of them, or, where the server speaks in one session, that one.
    fn resource_updated(
        &self,
        server: &UpstreamServer,
        session: Option<SessionKey>,
        uri: Box<str>,
    ) {
        let (tenant, toolset) = (server.tenant.clone(), server.toolset.clone());
        let resource = Resource { tenant, toolset, uri };
        // What a session has subscribed to is said in its own session at the server, if it has one.
        let is_shared = server.shares_sessions();
        for subscriber in self.subscriptions.of(&resource) {
            match subscriber {
                Subscriber::Session(key)
                    if session == Some(key) || (is_shared && session.is_none()) =>
                {
                    let Some(session) = self.session_of(server, Some(key)) else { continue };
                    // Its standing stream comes first; on one of them, never on several.
                    if let Some(stream) = session.streams().first() {
                        self.publish(*stream, mcp::resource_updated(&resource.uri, None));
                    }
                }
                Subscriber::Listening(outlet, id) if session.is_none() => {
                    let payload = mcp::resource_updated(&resource.uri, Some(&id));
                    let frame = Arc::new(frame::control(None, None, Some(&payload)));
                    let message = CoreMessage::Deliver { outlet, frame };
                    self.try_send(outlet::core_of(outlet), message);
                }
                Subscriber::Session(_) | Subscriber::Listening(..) => {}
            }
        }
    }

    /// Tells a session on its standing stream. How far a request is cannot be told there.
    fn tell(&self, session: &Session, told: &Told) {
        let payload = match told {
            Told::Message(level, message) if conversation::hears(session, *level) => {
                mcp::log_message(message.as_raw())
            }
            Told::ElicitationComplete(told)
                if session.capabilities().contains(ClientCapabilities::ELICITATION_URL) =>
            {
                mcp::elicitation_complete(told.as_raw())
            }
            Told::Progress(_) | Told::Message(..) | Told::ElicitationComplete(_) => return,
        };
        if let Some(standing) = session.standing() {
            self.publish(standing, payload);
        }
    }

    /// Has a core ask the session's client: the one with its standing stream, which is to be asked on.
    fn ask(&self, session: &Session, ask: Ask, answer: AnswerSender) {
        let Some(standing) = session.standing() else {
            return answer_to(&answer, AskOutcome::Unheard);
        };
        let core = usize::from(standing.core) % self.cores();
        let asked = AskedOutside { session: session.key(), ask, answer: Arc::clone(&answer) };
        if !self.try_send(core, CoreMessage::AskOutside(Box::new(asked))) {
            answer_to(&answer, AskOutcome::Unheard);
        }
    }

    fn publish(&self, stream: StreamId, payload: Vec<u8>) {
        let core = usize::from(stream.core) % self.cores();
        self.try_send(core, CoreMessage::Publish { stream, payload });
    }

    fn try_send(&self, core: usize, message: CoreMessage) -> bool {
        let is_sent = self.send(core, message).is_ok();
        if !is_sent {
            tracing::warn!(core, "a core's inbox is full; what an upstream server said is lost");
        }
        is_sent
    }
}

/// Asks the client of a session on its standing stream, and hands on what comes of it.
pub(crate) fn ask(core: &Rc<Core>, asked: AskedOutside) {
    let AskedOutside { session, ask, answer } = asked;
    let Some(session) = core.shared.sessions.peek(session) else {
        return answer_to(&answer, AskOutcome::Unheard);
    };
    let core = Rc::clone(core);
    rt::spawn(async move {
        let asked = conversation::ask_outside(&core, &session, &ask);
        if let Either::Left(outcome) = rt::race(asked, taken_back(&answer)).await {
            answer_to(&answer, outcome);
        }
    });
}

/// Waits until nobody wants the answer any more: whoever asked has taken its sender away.
async fn taken_back(answer: &AnswerSender) {
    while answer.lock().is_some() {
        rt::sleep(TAKEN_BACK_STEP).await;
    }
}

fn answer_to(answer: &AnswerSender, outcome: AskOutcome) {
    let sender = answer.lock().take();
    if let Some(sender) = sender {
        // Nobody waiting for it any more is fine.
        let _ = sender.send(outcome);
    }
}

#[cfg(test)]
#[path = "listener_tests.rs"]
mod tests;
