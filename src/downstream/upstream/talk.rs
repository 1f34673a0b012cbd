//! What a server says while a request of a client runs: told to that client, asked of it, or heard
//! by nobody.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use crate::json::{OwnedRaw, Raw};
use crate::mcp::upstream::Received;
use crate::mcp::{Ask, AskMethod, AskOutcome, LogLevel, Told};
use crate::rpc::{OwnedId, RpcError, code};

use super::errand::Errand;
use super::office::Office;
use super::sessions::Session;
use super::{Client, Heard, UpstreamRequest};
use crate::downstream::rest::CallEnvironment;

/// What a server is told that sends the user elsewhere.
pub(super) const NO_PAGE: &str = "The URL must be one of http or https";
/// Questions of one request that are open at a time.
const ASKS_MAX: usize = 16;

type Asked<'a> = Pin<Box<dyn Future<Output = AskOutcome> + 'a>>;

/// One request's end of what is said.
pub(super) struct Talk<'a> {
    office: &'a Rc<Office>,
    request: &'a UpstreamRequest<'a>,
    environment: &'a CallEnvironment<'a>,
    session: &'a Arc<Session>,
    id: i64,
    asks: Vec<(OwnedId, Asked<'a>)>,
    /// The client was told something since it was last waited for.
    has_told: bool,
}

/// The answer to the request.
pub(super) type Response = Result<OwnedRaw, RpcError>;

impl<'a> Talk<'a> {
    pub(super) fn new(
        office: &'a Rc<Office>,
        request: &'a UpstreamRequest<'a>,
        environment: &'a CallEnvironment<'a>,
        session: &'a Arc<Session>,
        id: i64,
    ) -> Self {
        Self { office, request, environment, session, id, asks: Vec::new(), has_told: false }
    }

    fn client(&self) -> &'a dyn Client {
        self.request.client
    }

    /// Whether the client is asked something.
    pub(super) fn is_asking(&self) -> bool {
        !self.asks.is_empty()
    }

    /// Waits until there is room for more that the client is told.
    pub(super) async fn ready(&mut self) {
        if std::mem::take(&mut self.has_told) {
            self.client().ready().await;
        }
    }

    /// Waits for the client to answer something, and passes that on; for ever while nothing is asked.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn answered(&mut self) {
        let asks = &mut self.asks;
        let (id, outcome) = poll_fn(|context| {
            for place in 0..asks.len() {
                if let Poll::Ready(outcome) = asks[place].1.as_mut().poll(context) {
                    let (id, _) = asks.swap_remove(place);
                    return Poll::Ready((id, outcome));
                }
            }
            Poll::Pending
        })
        .await;
        self.errand().answer(self.session, &id, &outcome);
    }

    fn errand(&self) -> Errand {
        Errand::new(self.office, self.request.server, self.environment)
    }

    /// Takes in messages; the answer to the request, where it is among them.
    pub(super) fn take_in(&mut self, messages: Vec<Received>) -> Option<Response> {
        let mut answer = None;
        for message in messages {
            match message {
                Received::Response { id, outcome } => {
                    let is_ours = id.is_none_or(|id| id == OwnedId::from(self.id));
                    if is_ours && answer.is_none() {
                        answer = Some(outcome);
                    }
                }
                Received::Request { id, method, params } => self.asked(id, &method, &params),
                Received::Notification { method, params } => self.told(&method, &params),
            }
        }
        answer
    }

    fn asked(&mut self, id: OwnedId, method: &str, params: &OwnedRaw) {
        // Whoever stands alone sends no requests (MCP 2026-07-28, streamable HTTP).
        if self.session.revision.is_modern() {
            return;
        }
        let refused = match AskMethod::of(method) {
            Some(method) if self.asks.len() < ASKS_MAX => {
                let ask = Ask { method, params: params.as_raw().without(&["_meta"]) };
                if ask.is_fit() {
                    self.asks.push((id, self.client().ask(ask)));
                    return;
                }
                RpcError::new(code::INVALID_PARAMS, NO_PAGE)
            }
            Some(_) => RpcError::new(code::SERVER, "Too many questions at once"),
            None if method == "ping" => {
                let nothing = AskOutcome::Answer(Raw::EMPTY_OBJECT.to_owned());
                self.errand().answer(self.session, &id, &nothing);
                return;
            }
            None => RpcError::new(code::METHOD_NOT_FOUND, "Method not found"),
        };
        self.errand().answer(self.session, &id, &AskOutcome::Refused(refused));
    }

    fn told(&mut self, method: &str, params: &OwnedRaw) {
        let raw = params.as_raw();
        let told = match method {
            "notifications/progress" => {
                let is_ours = raw.get("progressToken").and_then(Raw::as_i64) == Some(self.id);
                if !is_ours || !self.client().wants_progress() {
                    return;
                }
                Told::Progress(raw.without(&["progressToken", "_meta"]))
            }
            "notifications/cancelled" => {
                let asked = raw.get("requestId").map(Raw::text).unwrap_or_default();
                self.asks.retain(|(id, _)| id.as_bytes() != asked.as_bytes());
                return;
            }
            _ => match said(method, raw) {
                Some(Heard::Told(told)) => {
                    if let Told::Message(level, _) = &told
                        && self.client().log_level().is_none_or(|wanted| *level < wanted)
                    {
                        return;
                    }
                    told
                }
                Some(heard) => {
                    let (server, client) = (self.request.server, self.session.client());
                    self.office.listener.heard(server, client, heard);
                    return;
                }
                None => return,
            },
        };
        self.client().tell(told);
        self.has_told = true;
    }
}

/// What a notification means to whoever hears it.
pub(super) fn said(method: &str, params: Raw<'_>) -> Option<Heard> {
    Some(match method {
        "notifications/message" => {
            let level = params.get("level").and_then(Raw::as_str);
            let level = level.and_then(|name| LogLevel::of(&name))?;
            Heard::Told(Told::Message(level, params.without(&["_meta"])))
        }
        "notifications/elicitation/complete" => {
            Heard::Told(Told::ElicitationComplete(params.without(&["_meta"])))
        }
        "notifications/tools/list_changed" => Heard::ToolsChanged,
        "notifications/prompts/list_changed" => Heard::PromptsChanged,
        "notifications/resources/list_changed" => Heard::ResourcesChanged,
        "notifications/resources/updated" => {
            Heard::ResourceUpdated(params.get("uri").and_then(Raw::as_str)?.into())
        }
        _ => return None,
    })
}
