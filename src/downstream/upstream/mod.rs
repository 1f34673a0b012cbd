//! Asking an upstream MCP server, and hearing what it says by itself.
//!
//! ```text
//! ask         a request, from the client's params to the server's answer: once for each session it
//!             takes; resume: where a stream broke
//! talk        what the server says while one runs
//! open        beginning: which transport and revision, and the session
//! sessions    those that are open, of all cores
//! errand      what is sent with nobody waiting: answers, cancellations, goodbyes
//! standing    what servers say outside any request; route: where it goes
//! wanted      what of that is wanted, of all cores; subscribing: of resources
//! discover    all that a server offers
//! link stream one HTTP request; an event stream as it comes
//! nobody      the client of what is asked for no client
//! ```
//!
//! Invariants
//! - Nothing is read from a server as long as its client takes nothing, and no more than one event
//!   is held.
//! - A request that may have been done is sent again only where that does no harm.
//! - What a client is asked never counts as the server's time.
//! - Each session is of one client, or of one application where the catalog says so: what is said in
//!   it reaches nobody else.

mod ask;
mod clock;
mod discover;
mod errand;
mod link;
mod nobody;
mod office;
mod once;
mod open;
mod resume;
mod route;
mod sessions;
mod standing;
mod stream;
mod subscribing;
mod talk;
mod under_way;
mod wanted;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{Definition, DefinitionKind, UpstreamEra, UpstreamServer};
use crate::json::OwnedRaw;
use crate::mcp::upstream::Continued;
use crate::mcp::{Ask, AskOutcome, Asks, LogLevel, Told};
use crate::rpc::RpcError;
use crate::sessions::{ClientCapabilities, Revision, SessionKey};
use crate::settings;

use super::carried::Carried;
use super::error::CallError;
use super::rest::{CallEnvironment, RestCaller};
pub use nobody::Nobody;
use office::Office;
pub use sessions::AtServers;

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

    /// Waits until there is room for more that it is told: nothing is read from the server as long
    /// as its client takes nothing.
    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::ready(()))
    }

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
    /// Nobody's: what this appliance itself wants to know of the server.
    Keeper,
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
    /// One page of a list.
    List(DefinitionKind),
    /// `server/discover`
    Discover,
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
    pub continues: Option<Continued<'a>>,
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

/// What became of a request.
#[derive(Debug, Clone)]
pub struct UpstreamCalled {
    /// What the server answered, or why there was no usable answer.
    pub result: Result<UpstreamAnswer, CallError>,
    /// The status of its HTTP response, where one came.
    pub status: Option<u16>,
    /// From the first attempt to connect until the answer was there, without the time in which the
    /// client was asked.
    pub elapsed: Duration,
}

/// What a server says of itself, and all that it offers.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is said by itself")]
pub struct Discovery {
    /// In the order of its lists: tools, prompts, resources, templates. No name of a kind twice.
    pub definitions: Vec<Definition>,
    /// How it is spoken to.
    pub era: UpstreamEra,
    /// The revision that is spoken with it.
    pub revision: Option<Revision>,
    /// It completes arguments.
    pub completes: bool,
    /// Its resources can be subscribed to.
    pub subscribes: bool,
    /// It tells that its tools changed.
    pub tools_list_changed: bool,
    /// It tells that its prompts changed.
    pub prompts_list_changed: bool,
    /// It tells that its resources changed.
    pub resources_list_changed: bool,
    /// What models are to read.
    pub instructions: Option<Box<str>>,
    /// What it calls itself.
    pub server_name: Box<str>,
    /// Its own version.
    pub server_version: Box<str>,
    /// What was left out and why, in words for the operator.
    pub notes: Vec<String>,
}

/// What of what a server says by itself is wanted in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is said by itself")]
pub struct Wanted {
    /// That its tools changed.
    pub tools: bool,
    /// That its prompts changed.
    pub prompts: bool,
    /// That its resources changed.
    pub resources: bool,
    /// That these resources were updated.
    pub uris: BTreeSet<Box<str>>,
    /// Whatever else it may say outside a request (up to 2025-11-25): questions, log messages.
    pub anything: bool,
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

impl Wanted {
    /// Whether nothing is.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Asks MCP servers from one core, over the same connections as everything else of it.
#[derive(Clone)]
pub struct Upstreams(Rc<Office>);

impl fmt::Debug for Upstreams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Upstreams").field("sessions", &self.count()).finish_non_exhaustive()
    }
}

impl Upstreams {
    /// Beside the caller of HTTP APIs of the same core. `listener` hears what servers say by
    /// themselves.
    pub fn new(
        rest: &RestCaller,
        settings: &settings::UpstreamServers,
        listener: Arc<dyn Listener>,
    ) -> Self {
        Self(Rc::new(Office::new(Rc::clone(&rest.reach), settings, listener)))
    }

    /// Passes a request on to its server and waits for the answer; what the server tells and asks
    /// meanwhile goes to the client of the request.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request at the server.
    pub async fn ask(
        &self,
        request: &UpstreamRequest<'_>,
        environment: &CallEnvironment<'_>,
    ) -> UpstreamCalled {
        Box::pin(self.0.ask(request, environment)).await
    }

    /// Asks a server for all that it offers, in the session of [`SessionScope::Keeper`].
    ///
    /// # Errors
    /// Why there is no complete answer.
    ///
    /// # Cancel safety
    /// Dropping the future cancels what is asked.
    pub async fn discover(&self, server: &Arc<UpstreamServer>) -> Result<Discovery, CallError> {
        Box::pin(self.0.discover(server)).await
    }

    /// From now on `wanted` is what the listener hears of a server in this session, from whichever
    /// core it was said before; nothing wanted ends it. A stream is held open for it by this core,
    /// and opened again when it breaks. Resources that a client subscribed to with
    /// [`UpstreamMethod::Subscribe`] need not be named again.
    pub fn listen(
        &self,
        server: &Arc<UpstreamServer>,
        scope: SessionScope<'_>,
        capabilities: ClientCapabilities,
        wanted: Wanted,
        carried: &Carried,
    ) {
        self.0.listen(server, scope, capabilities, wanted, carried);
    }

    /// Ends the sessions that a client's session has at servers, wherever they were opened.
    ///
    /// # Cancel safety
    /// Dropping the future leaves servers to find out by themselves.
    pub async fn end_session(&self, session: SessionKey) {
        Box::pin(self.0.end_session(session)).await;
    }

    /// Ends the sessions at all servers, of all cores: the process ends, and opens others when it is
    /// back.
    ///
    /// # Cancel safety
    /// Dropping the future leaves servers to find out by themselves.
    pub async fn end_all(&self) {
        Box::pin(self.0.end_all()).await;
    }

    /// Tells the servers at which a client's session has sessions that its roots are others now.
    pub fn roots_changed(&self, session: SessionKey) {
        self.0.roots_changed(session);
    }

    /// How many sessions are open at servers, of all cores.
    pub fn count(&self) -> usize {
        self.0.reach.across.servers.count()
    }
}
