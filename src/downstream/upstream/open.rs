//! Beginning with a server: which transport and revision it speaks, and a session where it has some.
//!
//! A session is opened in a task of its own, so that whoever began it may go while others wait.
//! What was found out is tried first the next time, and forgotten when it no longer holds.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::{UpstreamServer, UpstreamTransport};
use crate::downstream::call::same_origin;
use crate::downstream::error::{Awaited, CallError, UpstreamProblem};
use crate::downstream::exchange::Broken;
use crate::downstream::rest::CallEnvironment;
use crate::http::Method;
use crate::json::Raw;
use crate::mcp::upstream::{
    Failure, Meta, Posted, Reaction, Received, Search, ServerFacts, Try, UpstreamKind, Verdict,
    request_headers, write_initialize, write_notification, write_request,
};
use crate::rpc::OwnedId;
use crate::rt::{self, inbox};
use crate::sessions::{ClientCapabilities, Revision};

use super::SessionScope;
use super::errand::Errand;
use super::link::{Answer, Content, Link, Request};
use super::office::{Office, within};
use super::sessions::{Agreed, Key, Look, Passed, Session, Single, Whose};
use super::standing::Pump;
use super::stream::{Came, Stream};

/// How long a server may think about a request of another era before it gets one of its own.
const PROBE_WITHIN: Duration = Duration::from_secs(5);
/// How long beginning may take in all.
const OPENING_WITHIN: Duration = Duration::from_mins(2);
/// The id of the request that begins.
const FIRST_ID: i64 = 0;
/// Longest text of a server in an error.
const SHOWN_BYTES_MAX: usize = 200;

/// What came of a try, besides what it means.
#[derive(Default)]
struct Tried {
    session_id: Option<Box<str>>,
    target: Option<Box<str>>,
    stream: Option<Stream>,
}

/// A session to ask in, and what ends it with the request where it is that request's own.
pub(super) struct Opened {
    pub(super) session: Arc<Session>,
    pub(super) single: Option<Single>,
}

impl Office {
    /// The session to ask in; opened where there is none yet.
    ///
    /// # Cancel safety
    /// Dropping the future leaves what others wait for under way.
    pub(super) async fn session(
        self: &Rc<Self>,
        server: &Arc<UpstreamServer>,
        scope: SessionScope<'_>,
        capabilities: ClientCapabilities,
        environment: &CallEnvironment<'_>,
    ) -> Result<Opened, CallError> {
        let servers = self.servers();
        if may_be_modern(server)
            && let Some(session) = servers.modern(server)
        {
            return Ok(Opened { session, single: None });
        }
        let errand = Errand::new(self, server, environment);
        let Some(whose) = Whose::of(scope, capabilities) else {
            let session = Box::pin(errand.open(None, capabilities)).await?;
            let is_kept = session.kind != UpstreamKind::Modern;
            let single = is_kept.then(|| servers.single());
            return Ok(Opened { session, single });
        };
        let key = Key { tenant: server.tenant.clone(), toolset: server.toolset.clone(), whose };
        let receiver = match servers.look(&key, &server.connection) {
            Look::Open(session) => return Ok(Opened { session, single: None }),
            Look::Wait(receiver) => receiver,
            Look::ToOpen(ticket, receiver) => {
                self.start_sweeping();
                rt::spawn(async move {
                    let opening = Box::pin(errand.open(Some(key), capabilities));
                    let opened = within(OPENING_WITHIN, opening).await;
                    ticket.finish(opened.unwrap_or_else(|| {
                        Err(CallError::TimedOut {
                            connection: errand.server.connection.id.as_str().to_owned(),
                            awaited: Awaited::Head,
                            limit_ms: u64::try_from(OPENING_WITHIN.as_millis()).unwrap_or_default(),
                            repeatable: true,
                        })
                    }));
                });
                receiver
            }
        };
        let session = receiver.await.unwrap_or(Err(CallError::Overloaded))?;
        Ok(Opened { session, single: None })
    }
}

fn may_be_modern(server: &UpstreamServer) -> bool {
    server.settings.transport != UpstreamTransport::HttpSse
        && pinned(server).ok().flatten().is_none_or(Revision::is_modern)
}

fn pinned(server: &UpstreamServer) -> Result<Option<Revision>, UpstreamProblem> {
    let Some(text) = &server.settings.revision else { return Ok(None) };
    Revision::parse(text.as_bytes()).map(Some).ok_or(UpstreamProblem::Revision)
}

impl Errand {
    /// Finds out how the server is spoken to, and begins.
    async fn open(
        &self,
        key: Option<Key>,
        capabilities: ClientCapabilities,
    ) -> Result<Arc<Session>, CallError> {
        let servers = self.office.servers();
        let environment = self.environment();
        let link = self.office.link(&self.server.connection, &environment, Some(OPENING_WITHIN));
        let pinned = pinned(&self.server).map_err(|problem| link.problem(problem))?;
        let found = servers.found(&self.server);
        let mut search = Search::new(self.server.settings.transport, pinned, found);
        let mut last_error = None;
        loop {
            let mut tried = Tried::default();
            let is_probe = pinned.is_none() && search.now() == Try::Discover;
            let attempt = self.attempt(&link, search.now(), is_probe, capabilities, &mut tried);
            let reaction = match Box::pin(attempt).await {
                Ok(reaction) => reaction,
                Err(error) if is_of_the_way(&error) => return Err(error),
                Err(error) => {
                    last_error = Some(error);
                    Reaction::Nothing
                }
            };
            match search.heard(&reaction) {
                Verdict::Try(_) => {}
                Verdict::Modern(facts) => {
                    let facts = facts.map_or_else(ServerFacts::default, |facts| *facts);
                    let agreed = self.agreed(UpstreamKind::Modern, Revision::V20260728, facts);
                    let session = Session::new(None, Arc::clone(&self.server), agreed);
                    servers.learn(&session);
                    return Ok(session);
                }
                Verdict::Open(facts, revision) => {
                    let session = self.begun(key, *facts, revision, tried);
                    self.say_initialized(&session).await?;
                    servers.learn(&session);
                    return Ok(session);
                }
                Verdict::Failed(failure) => {
                    servers.unlearn(&self.server);
                    return Err(failed(&link, failure, last_error));
                }
            }
        }
    }

    fn agreed(&self, kind: UpstreamKind, revision: Revision, facts: ServerFacts) -> Agreed {
        let target = self.server.connection.target.clone();
        Agreed { kind, revision, id: None, target, facts, stream: None }
    }

    fn begun(
        &self,
        key: Option<Key>,
        facts: ServerFacts,
        revision: Revision,
        tried: Tried,
    ) -> Arc<Session> {
        let mut agreed = self.agreed(UpstreamKind::Streamable, revision, facts);
        agreed.id = tried.session_id;
        let Some(stream) = tried.stream else {
            return Session::new(key, Arc::clone(&self.server), agreed);
        };
        let (sender, receiver) = inbox::<Passed>(1, 1);
        agreed.kind = UpstreamKind::Events;
        agreed.target = tried.target.unwrap_or(agreed.target);
        agreed.stream = Some(sender);
        let session = Session::new(key, Arc::clone(&self.server), agreed);
        Pump { errand: self.clone(), session: Arc::clone(&session) }.start(stream, receiver);
        session
    }

    /// MCP 2025-11-25, lifecycle: before anything else is asked.
    async fn say_initialized(&self, session: &Session) -> Result<(), CallError> {
        let mut body = Vec::new();
        write_notification(&mut body, "notifications/initialized", None);
        // What a server says to it does not matter.
        self.deliver(session, &body).await.map(|_| ())
    }

    async fn attempt(
        &self,
        link: &Link<'_>,
        now: Try,
        is_probe: bool,
        capabilities: ClientCapabilities,
        tried: &mut Tried,
    ) -> Result<Reaction, CallError> {
        let target = &*self.server.connection.target;
        let mut body = Vec::new();
        match now {
            Try::Discover => {
                let mut link = *link;
                if is_probe {
                    link.budget.headers = link.budget.headers.min(PROBE_WITHIN);
                }
                let (method, revision) = ("server/discover", Revision::V20260728);
                let meta = Meta::plain(revision);
                write_request(&mut body, FIRST_ID, method, Raw::EMPTY_OBJECT, &meta);
                let headers = head_of(Some(revision), method);
                let request = Request { method: Method::Post, target, headers, body: Some(&body) };
                let answer = link.send(&request).await?;
                self.reaction(&link, answer).await
            }
            Try::Initialize(revision) => {
                write_initialize(&mut body, FIRST_ID, revision, capabilities);
                let headers = head_of(None, "initialize");
                let request = Request { method: Method::Post, target, headers, body: Some(&body) };
                let answer = link.send(&request).await?;
                tried.session_id = answer.session_id();
                self.reaction(link, answer).await
            }
            Try::Events(revision) => {
                write_initialize(&mut body, FIRST_ID, revision, capabilities);
                self.events(link, &body, tried).await
            }
        }
    }

    /// MCP 2024-11-05, HTTP with SSE.
    async fn events(
        &self,
        link: &Link<'_>,
        body: &[u8],
        tried: &mut Tried,
    ) -> Result<Reaction, CallError> {
        let target = &*self.server.connection.target;
        let headers = vec![
            ("Accept".to_owned(), "text/event-stream".to_owned()),
            ("Accept-Encoding".to_owned(), "identity".to_owned()),
        ];
        let request = Request { method: Method::Get, target, headers, body: None };
        let answer = link.send(&request).await?;
        if !answer.is_success() || answer.content() != Content::Events {
            return Ok(Reaction::Status(answer.status()));
        }
        let proof = Arc::clone(&answer.proof);
        let mut stream = Stream::new(answer, self.office.event_bytes_max);
        let endpoint = loop {
            match self.in_time(link, stream.next(link)).await? {
                Came::Endpoint(endpoint) => break endpoint,
                Came::Messages(_) => {}
                Came::End => return Ok(Reaction::Nothing),
            }
        };
        let endpoint = same_origin(&endpoint, &self.server.connection, &proof, target);
        let Some(endpoint) = endpoint else {
            return Err(link.invalid("its endpoint is of another origin"));
        };
        let headers = head_of(None, "initialize");
        let request =
            Request { method: Method::Post, target: &endpoint, headers, body: Some(body) };
        let answer = link.send(&request).await?;
        if !answer.is_success() {
            return Ok(Reaction::Status(answer.status()));
        }
        link.leave(answer).await;
        let reaction = self.first(link, &mut stream, 200).await?;
        tried.target = Some(endpoint.into());
        tried.stream = Some(stream);
        Ok(reaction)
    }

    async fn reaction(&self, link: &Link<'_>, answer: Answer) -> Result<Reaction, CallError> {
        let status = answer.status();
        if answer.is_success() && answer.content() == Content::Events {
            let mut stream = Stream::new(answer, self.office.event_bytes_max);
            return self.first(link, &mut stream, status).await;
        }
        let is_success = answer.is_success();
        let proof = Arc::clone(&answer.proof);
        let body = self.in_time(link, Box::pin(link.body(answer))).await?;
        let messages = match link.messages(&proof, body).await {
            Ok(messages) => messages,
            Err(CallError::Overloaded) => return Err(CallError::Overloaded),
            Err(_) => return Ok(Reaction::Status(status)),
        };
        let reaction = messages.into_iter().find_map(|message| own(message, status));
        Ok(match reaction {
            // A result with an error's status is none.
            Some(Reaction::Result(_)) if !is_success => Reaction::Status(status),
            other => other.unwrap_or(Reaction::Status(status)),
        })
    }

    /// The answer to the request that begins, on a stream.
    async fn first(
        &self,
        link: &Link<'_>,
        stream: &mut Stream,
        status: u16,
    ) -> Result<Reaction, CallError> {
        loop {
            match self.in_time(link, stream.next(link)).await? {
                Came::Messages(messages) => {
                    let found = messages.into_iter().find_map(|message| own(message, status));
                    if let Some(reaction) = found {
                        return Ok(reaction);
                    }
                }
                Came::Endpoint(_) => {}
                Came::End => return Ok(Reaction::Nothing),
            }
        }
    }

    /// What a beginning is waited for is limited like the head of an answer.
    async fn in_time<T>(
        &self,
        link: &Link<'_>,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let left = link.budget.headers.min(link.budget.left(Instant::now()));
        let done = within(left, work).await;
        done.unwrap_or_else(|| Err(link.broken(Broken::TimedOut(Awaited::Head))))
    }
}

fn own(message: Received, status: u16) -> Option<Reaction> {
    let Received::Response { id, outcome } = message else { return None };
    let is_own = id.is_none_or(|id| id == OwnedId::from(FIRST_ID));
    is_own.then_some(match outcome {
        Ok(result) => Reaction::Result(result),
        Err(error) => Reaction::Error(status, error),
    })
}

fn head_of(revision: Option<Revision>, method: &str) -> Vec<(String, String)> {
    let method = Some(method);
    request_headers(&Posted { revision, session: None, method, params: None, schema: None })
}

/// Whether the server was not even reached: no other way to begin will help.
fn is_of_the_way(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Unreachable { .. }
            | CallError::Credential { .. }
            | CallError::Unsendable { .. }
            | CallError::Overloaded
    )
}

fn failed(link: &Link<'_>, failure: Failure, last_error: Option<CallError>) -> CallError {
    match failure {
        Failure::Status(status) => link.problem(UpstreamProblem::Status(status)),
        Failure::Error(error) => {
            let text = &error.message;
            let shown = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
            link.problem(UpstreamProblem::Refused(shown.into()))
        }
        Failure::Revision => link.problem(UpstreamProblem::Revision),
        Failure::Nothing => {
            last_error.unwrap_or_else(|| link.problem(UpstreamProblem::NoBeginning))
        }
    }
}
