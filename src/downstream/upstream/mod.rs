//! Asking an upstream MCP server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::{CallEnvironment, CallError};
use crate::catalog::UpstreamServer;
use crate::json::OwnedRaw;
use crate::mcp::{Ask, AskOutcome, Asks, LogLevel, Told};
use crate::rpc::RpcError;
use crate::sessions::{ClientCapabilities, SessionKey};

/// The client whose request is passed on. The server comes in as one.
pub trait Client {
    /// What it can be asked: what it has declared, and what there is a way for.
    fn capabilities(&self) -> ClientCapabilities;

    /// What it wants to hear of what its request logs; nothing, where `None`.
    fn log_level(&self) -> Option<LogLevel>;

    /// Whether it gave a progress token.
    fn wants_progress(&self) -> bool;

    /// Whether questions of the server are best handed back as they are, all at once, because the
    /// client sends its request again with the answers.
    fn is_modern(&self) -> bool;

    /// Tells it something, on the stream of its request. What it has not asked for is dropped.
    fn tell(&self, told: Told);

    /// Asks it, and waits. The time that takes is the client's, not the server's.
    fn ask(&self, ask: Ask) -> Pin<Box<dyn Future<Output = AskOutcome> + '_>>;
}

/// Whose session at a server a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionScope<'a> {
    /// A session of a client.
    Session(SessionKey),
    /// All callers of a client application.
    Shared(&'a str),
    /// This request alone, and what it leads to.
    Request,
}

/// What is asked of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum UpstreamMethod {
    ToolsCall,
    ResourcesRead,
    PromptsGet,
    Complete,
    Subscribe,
    Unsubscribe,
}

/// A request of a client that is passed on.
#[expect(missing_debug_implementations, reason = "it holds a client")]
pub struct UpstreamRequest<'a> {
    /// To whom.
    pub server: &'a Arc<UpstreamServer>,
    /// In whose session there.
    pub scope: SessionScope<'a>,
    /// What is asked.
    pub method: UpstreamMethod,
    /// `params`, an object without `_meta`, with the names the server has.
    pub params: &'a OwnedRaw,
    /// Whether asking twice does what asking once does.
    pub is_repeatable: bool,
    /// The answers to what it asked before, and its state then (MCP 2026-07-28).
    pub continues: Option<(&'a [(Box<str>, OwnedRaw)], Option<&'a str>)>,
    /// Who asks.
    pub client: &'a dyn Client,
}

/// What a server answered.
#[derive(Debug, Clone)]
pub enum UpstreamAnswer {
    /// Its result, an object.
    Result(OwnedRaw),
    /// Its error.
    Error(RpcError),
    /// It wants to know something first; the request is sent again with the answers and this state.
    InputRequired {
        /// What it asks.
        asks: Asks,
        /// To be given back as it is.
        state: Option<Box<str>>,
    },
}

/// What a server says by itself, outside any request.
#[derive(Debug, Clone)]
pub enum Heard {
    /// `notifications/tools/list_changed`
    ToolsChanged,
    /// `notifications/prompts/list_changed`
    PromptsChanged,
    /// `notifications/resources/list_changed`
    ResourcesChanged,
    /// `notifications/resources/updated`: the URI.
    ResourceUpdated(Box<str>),
    /// Something that a running request tells, of a server that does not say of which.
    Told(Told),
    /// A question outside any request, and where the answer goes.
    Asked(Ask, AnswerSender),
}

/// Where the answer to a question outside any request goes.
pub type AnswerSender = Arc<parking_lot::Mutex<Option<crate::rt::OneshotSender<AskOutcome>>>>;

/// Who hears what servers say by themselves. The server above comes in as one.
pub trait Listener: Send + Sync {
    /// `session` is that of the client whose session at `server` it came in, where it is one
    /// client's.
    fn heard(&self, server: &Arc<UpstreamServer>, session: Option<SessionKey>, heard: Heard);
}

/// What became of a request that was passed on.
#[derive(Debug)]
pub struct UpstreamCalled {
    /// The answer, or why there was no usable one.
    pub result: Result<UpstreamAnswer, CallError>,
    /// The HTTP status of the answer, where one came.
    pub status: Option<u16>,
    /// The time it took, without that in which the client was asked.
    pub elapsed: Duration,
}

/// Asks upstream servers from one core.
#[derive(Debug, Default)]
pub struct Upstreams {}

impl Upstreams {
    /// Passes a request on.
    pub async fn ask(
        &self,
        _request: &UpstreamRequest<'_>,
        _environment: &CallEnvironment<'_>,
    ) -> UpstreamCalled {
        UpstreamCalled { result: Err(CallError::NotRest), status: None, elapsed: Duration::ZERO }
    }
}
