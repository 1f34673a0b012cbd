//! One request in one session: its message, and everything until its answer is there.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use crate::catalog::DefinitionKind;
use crate::downstream::error::{Awaited, CallError, UpstreamProblem};
use crate::downstream::rest::CallEnvironment;
use crate::http::Method;
use crate::json::{OwnedRaw, Raw};
use crate::mcp::upstream::{
    Continued, Meta, Posted, Received, UpstreamKind, request_headers, write_request,
};
use crate::rpc::code;
use crate::rt::{Deadline, Either, race};

use super::UpstreamRequest;
use super::ask::{Course, Outcome};
use super::clock::Clock;
use super::errand::{Cancelling, Errand};
use super::link::{Answer, Content, Link, Request};
use super::office::Office;
use super::resume::{Resuming, resume, wait};
use super::sessions::{Passed, Running, Session};
use super::stream::{Came, Stream};
use super::talk::{Response, Talk};

/// Streams in a row that end with nothing in them.
const EMPTY_STREAMS_MAX: usize = 1000;

/// Where the answer comes from.
enum Source<'a> {
    Stream(Box<Stream>),
    Resuming(Resuming<'a>),
    /// From the stream that the session hangs on.
    Elsewhere,
}

/// One request in one session.
pub(super) struct Once<'a> {
    pub(super) office: &'a Rc<Office>,
    pub(super) request: &'a UpstreamRequest<'a>,
    pub(super) environment: &'a CallEnvironment<'a>,
    pub(super) session: &'a Arc<Session>,
}

impl<'a> Once<'a> {
    /// What came of it.
    ///
    /// # Cancel safety
    /// Dropping the future takes the request back.
    pub(super) async fn ask(
        &self,
        continues: Option<Continued<'_>>,
        course: &mut Course,
    ) -> Result<Outcome, CallError> {
        let Self { office, request, environment, session } = *self;
        if let Some(answer) = office.subscribed(self.request, session, environment).await {
            return Ok(Outcome::Response(Ok(answer)));
        }
        self.set_level().await;
        let id = session.next_id();
        let client = request.client;
        let meta = Meta {
            revision: session.revision,
            wants_progress: client.wants_progress(),
            capabilities: client.capabilities(),
            log_level: client.log_level(),
            continues,
        };
        let (method, params) = (request.method.name(), request.params.as_raw());
        let mut body = Vec::with_capacity(256 + params.text().len());
        write_request(&mut body, id, method, params, &meta);
        let headers = self.headers(method, params);
        let mut link =
            office.link(&request.server.connection, environment, course.clock.left(Instant::now()));
        link.is_repeatable = request.is_repeatable;
        let has_session = !session.revision.is_modern();
        let mut running = has_session.then(|| session.begin(id, office.event_bytes_max));
        let errand = Errand::new(office, request.server, environment);
        let mut cancelling = Cancelling::new(errand, session, id);
        let post =
            Request { method: Method::Post, target: &session.target, headers, body: Some(&body) };
        let sent = link.send(&post).await;
        let result = match sent {
            Ok(answer) => {
                course.status = Some(answer.status());
                let talk = Talk::new(office, request, environment, session, id);
                self.hear(&link, answer, talk, running.as_mut(), &mut course.clock).await
            }
            Err(error) => Err(error),
        };
        if let (Some(running), Ok(_) | Err(CallError::Unreachable { .. })) = (&mut running, &result)
        {
            running.is_settled = true;
        }
        // A server that still works on it is told so; any other is not.
        if !matches!(result, Err(CallError::TimedOut { .. })) {
            cancelling.forget();
        }
        let outcome = result?;
        if let Outcome::Response(Ok(_)) = &outcome {
            office.note_subscription(request, session, environment);
        }
        Ok(outcome)
    }

    fn headers(&self, method: &str, params: Raw<'_>) -> Vec<(String, String)> {
        let Self { request, session, .. } = self;
        let name = params.get("name").and_then(Raw::as_str).unwrap_or_default();
        let is_mirrored = session.revision.is_modern() && method == "tools/call";
        let all = &request.server.definitions.all;
        let found = is_mirrored.then(|| {
            let wanted = (DefinitionKind::Tool, &*name);
            let place = all.binary_search_by(|one| (one.kind, &*one.name).cmp(&wanted));
            place.ok().and_then(|place| all.get(place))
        });
        let entry = found.flatten().map(|definition| definition.json.as_raw());
        let entry = entry.filter(|entry| entry.text().contains("x-mcp-header"));
        request_headers(&Posted {
            revision: Some(session.revision),
            session: session.id.as_deref(),
            method: Some(method),
            params: Some(params),
            schema: entry.and_then(|entry| entry.get("inputSchema")),
        })
    }

    /// Up to 2025-11-25 what is logged is set for the session: where several clients share it, to
    /// what the one wants that wants most.
    async fn set_level(&self) {
        let Self { office, request, environment, session } = *self;
        let Some(level) = request.client.log_level() else { return };
        if session.revision.is_modern() || !session.facts.logs {
            return;
        }
        {
            let mut known = session.log_level.lock();
            let is_enough = match *known {
                Some(known) if session.client().is_some() => known == level,
                Some(known) => known <= level,
                None => false,
            };
            if is_enough {
                return;
            }
            *known = Some(level);
        }
        let text = format!(r#"{{"level":"{}"}}"#, level.name());
        let Ok(params) = OwnedRaw::parse(text.as_bytes()) else { return };
        let mut body = Vec::new();
        let meta = Meta::plain(session.revision);
        let id = session.next_id();
        write_request(&mut body, id, "logging/setLevel", params.as_raw(), &meta);
        // That it fails costs log messages, and not the request.
        let _ = Errand::new(office, request.server, environment).deliver(session, &body).await;
    }

    /// What the server answers, and whatever it says before that.
    async fn hear(
        &self,
        link: &Link<'a>,
        answer: Answer,
        mut talk: Talk<'a>,
        running: Option<&mut Running>,
        clock: &mut Clock,
    ) -> Result<Outcome, CallError> {
        let (status, is_success) = (answer.status(), answer.is_success());
        if is_success && answer.content() == Content::Events {
            let stream = Stream::new(answer, self.office.event_bytes_max);
            let source = Source::Stream(Box::new(stream));
            return self.converse(link, source, talk, running, clock).await.map(Outcome::Response);
        }
        let proof = Arc::clone(&answer.proof);
        let body = Box::pin(link.body(answer)).await?;
        let is_elsewhere = is_success && self.session.kind == UpstreamKind::Events;
        if is_elsewhere {
            let source = Source::Elsewhere;
            return self.converse(link, source, talk, running, clock).await.map(Outcome::Response);
        }
        let messages = match link.messages(&proof, body).await {
            Ok(messages) => messages,
            Err(error) if is_success && status != 202 => return Err(error),
            Err(CallError::Overloaded) => return Err(CallError::Overloaded),
            Err(_) => Vec::new(),
        };
        if !is_success && self.is_lost(status, &messages) {
            return Ok(Outcome::SessionLost);
        }
        let response = talk.take_in(messages);
        talk.ready().await;
        match response {
            Some(Ok(_)) if !is_success => Err(link.problem(UpstreamProblem::Status(status))),
            Some(response) => Ok(Outcome::Response(response)),
            None if is_success => Err(link.problem(UpstreamProblem::NoAnswer)),
            None => Err(link.problem(UpstreamProblem::Status(status))),
        }
    }

    /// Whether a refusal says that the session is gone: 404 (MCP 2025-11-25, session management),
    /// unless it is about the method; and what servers of the official SDK answer to an id that they
    /// do not know, 400 with an error of the transport.
    fn is_lost(&self, status: u16, messages: &[Received]) -> bool {
        let session = self.session;
        if session.id.is_none() && session.kind != UpstreamKind::Events {
            return false;
        }
        let error = messages.iter().find_map(|message| match message {
            Received::Response { id, outcome: Err(error) } => Some((id.is_some(), error.code)),
            _ => None,
        });
        match (status, error) {
            (404, Some((true, code))) => {
                !matches!(code, code::METHOD_NOT_FOUND | code::INVALID_PARAMS)
            }
            (404, _) => true,
            (400, Some((false, code))) => {
                matches!(code, code::SERVER | code::SESSION_NOT_FOUND)
            }
            _ => false,
        }
    }

    async fn converse(
        &self,
        link: &Link<'a>,
        mut source: Source<'a>,
        mut talk: Talk<'a>,
        mut running: Option<&mut Running>,
        clock: &mut Clock,
    ) -> Result<Response, CallError> {
        let alarm = Deadline::new();
        let mut empty_streams = 0;
        loop {
            self.set_alarm(&alarm, clock, talk.is_asking());
            let passed = async {
                let mut passed = Vec::new();
                match &mut running {
                    Some(running) => (running.receiver.drain(&mut passed).await, passed),
                    None => std::future::pending().await,
                }
            };
            let read = async {
                match &mut source {
                    Source::Stream(stream) => Read::Came(stream.next(link).await),
                    Source::Resuming(resuming) => Read::Resumed(resuming.as_mut().await),
                    Source::Elsewhere => std::future::pending().await,
                }
            };
            let heard = race(read, race(passed, race(talk.answered(), alarm.expired())));
            match heard.await {
                Either::Left(Read::Came(came)) => match came? {
                    Came::Messages(messages) => {
                        empty_streams = 0;
                        if let Some(response) = talk.take_in(messages) {
                            if let Source::Stream(stream) = source {
                                stream.part(link);
                            }
                            return Ok(response);
                        }
                        talk.ready().await;
                    }
                    Came::Endpoint(_) => {}
                    Came::End => {
                        let Source::Stream(stream) = &source else { continue };
                        empty_streams += 1;
                        let last = stream.last_event_id().filter(|_| running.is_some());
                        let (Some(last), true) = (last, empty_streams < EMPTY_STREAMS_MAX) else {
                            return Err(Self::broken_off(link));
                        };
                        let (last, wait) = (last.to_owned(), wait(stream.retry_ms()));
                        let (office, session) = (self.office, self.session);
                        source = Source::Resuming(resume(office, session, *link, last, wait));
                    }
                },
                Either::Left(Read::Resumed(stream)) => source = Source::Stream(stream?),
                Either::Right(Either::Left((is_open, passed))) => {
                    let messages = passed.into_iter().map(|Passed(message)| message).collect();
                    if let Some(response) = talk.take_in(messages) {
                        return Ok(response);
                    }
                    talk.ready().await;
                    if !is_open {
                        return Err(Self::broken_off(link));
                    }
                }
                Either::Right(Either::Right(Either::Left(()))) => {}
                Either::Right(Either::Right(Either::Right(()))) => {
                    return Err(self.timed_out(clock));
                }
            }
        }
    }

    /// No time passes while the client is asked.
    fn set_alarm(&self, alarm: &Deadline, clock: &mut Clock, is_asking: bool) {
        let now = Instant::now();
        clock.pause(is_asking, now);
        let limits = [self.office.silent, clock.left(now)];
        match limits.into_iter().flatten().min() {
            Some(limit) if !is_asking => alarm.set(limit),
            _ => alarm.clear(),
        }
    }

    fn timed_out(&self, clock: &Clock) -> CallError {
        let is_over = clock.left(Instant::now()).is_some_and(|left| left.is_zero());
        let limit = if is_over { clock.total() } else { self.office.silent };
        let limit_ms = u64::try_from(limit.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
        CallError::TimedOut {
            connection: self.request.server.connection.id.as_str().to_owned(),
            awaited: Awaited::Body,
            limit_ms,
            repeatable: self.request.is_repeatable,
        }
    }

    fn broken_off(link: &Link<'_>) -> CallError {
        let connection = link.connection.id.as_str().to_owned();
        CallError::Closed { connection, answering: true, repeatable: link.is_repeatable }
    }
}

enum Read {
    Came(Result<Came, CallError>),
    Resumed(Result<Box<Stream>, CallError>),
}
