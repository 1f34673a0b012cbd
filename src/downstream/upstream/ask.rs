//! Passing a request on.
//!
//! A request is sent again, once for each reason: in a new session where the server had lost the
//! old one and refused it, so that it was not done; to the server as it is now where it has learned
//! another revision; and where the connection says so, as every call that may be repeated.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::DefinitionKind;
use crate::downstream::error::{Blame, CallError, UpstreamProblem};
use crate::downstream::resilience::{Attempts, Ended, pause};
use crate::downstream::rest::{CallEnvironment, Tally, log};
use crate::json::{OwnedRaw, Raw};
use crate::mcp::AskOutcome;
use crate::mcp::upstream::{Answered, Continued, answered};
use crate::rpc::{RpcError, code};
use crate::telemetry::DownstreamLabel;

use super::clock::Clock;
use super::errand::{Errand, Parting};
use super::office::Office;
use super::once::Once;
use super::open::Opened;
use super::sessions::Session;
use super::talk::Response;
use super::{UpstreamAnswer, UpstreamCalled, UpstreamMethod, UpstreamRequest};

/// How often a client is asked by one request before it is given up.
const ROUNDS_MAX: usize = 8;
/// The version of the request is not spoken there (MCP 2026-07-28).
const UNSUPPORTED_VERSION: i32 = -32022;

impl UpstreamMethod {
    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ToolsCall => "tools/call",
            Self::ResourcesRead => "resources/read",
            Self::PromptsGet => "prompts/get",
            Self::Complete => "completion/complete",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::List(DefinitionKind::Tool) => "tools/list",
            Self::List(DefinitionKind::Prompt) => "prompts/list",
            Self::List(DefinitionKind::Resource) => "resources/list",
            Self::List(DefinitionKind::ResourceTemplate) => "resources/templates/list",
            Self::Discover => "server/discover",
        }
    }
}

/// What has come of a request by now.
pub(super) struct Course {
    pub(super) clock: Clock,
    pub(super) status: Option<u16>,
    has_lost_session: bool,
    has_changed_revision: bool,
}

/// What one try came to.
pub(super) enum Outcome {
    Response(Response),
    /// Refused because the session is gone: not done.
    SessionLost,
}

impl Office {
    pub(super) async fn ask(
        self: &Rc<Self>,
        request: &UpstreamRequest<'_>,
        environment: &CallEnvironment<'_>,
    ) -> UpstreamCalled {
        let connection = &request.server.connection;
        let now = Instant::now();
        let tally = Tally::start(&self.reach.metrics, now);
        let clock = Clock::new(now, connection.total_timeout);
        let mut course =
            Course { clock, status: None, has_lost_session: false, has_changed_revision: false };
        let result = match self.reach.across.conditions.begin(connection, now) {
            Ok(attempts) => self.persist(request, environment, attempts, &mut course).await,
            Err(rest) => {
                let connection = connection.id.as_str().to_owned();
                // Rounded up.
                Err(CallError::Resting { connection, seconds: rest.as_secs() + 1 })
            }
        };
        let elapsed = course.clock.elapsed(Instant::now());
        tally.end(match &result {
            Ok(UpstreamAnswer::Error(_)) => DownstreamLabel::ClientError,
            Ok(_) => DownstreamLabel::Ok,
            Err(error) => error.label(),
        });
        if let Err(error) = &result {
            log(error, connection, environment);
        }
        UpstreamCalled { result, status: course.status, elapsed }
    }

    async fn persist(
        self: &Rc<Self>,
        request: &UpstreamRequest<'_>,
        environment: &CallEnvironment<'_>,
        mut attempts: Option<Attempts>,
        course: &mut Course,
    ) -> Result<UpstreamAnswer, CallError> {
        loop {
            let result = Box::pin(self.rounds(request, environment, course)).await;
            let Some(attempts) = &mut attempts else { return result };
            let (ended, may_help) = match &result {
                Err(error) => match (error, error.blame()) {
                    (
                        CallError::Unreachable { .. }
                        | CallError::TimedOut { .. }
                        | CallError::Closed { .. },
                        Blame::Downstream,
                    ) => (Ended::Failed, error.may_retry()),
                    (
                        CallError::Upstream { problem: UpstreamProblem::Status(502..=504), .. },
                        _,
                    ) => (Ended::Failed, request.is_repeatable),
                    (_, Blame::Downstream) => (Ended::Well, false),
                    (_, Blame::Client | Blame::Us) => (Ended::Dropped, false),
                },
                Ok(_) => (Ended::Well, false),
            };
            let now = Instant::now();
            attempts.note(ended, now);
            if !may_help {
                return result;
            }
            let left = course.clock.left(now).unwrap_or(Duration::MAX);
            match attempts.next(environment.execution_id.chance(), None) {
                Some(wait) if wait < left => pause(wait).await,
                _ => return result,
            }
        }
    }

    /// Asks, and where the server wants to know something first and the client cannot be told so by
    /// its result, asks the client and asks again (MCP 2026-07-28, multi-round-trip requests).
    async fn rounds(
        self: &Rc<Self>,
        request: &UpstreamRequest<'_>,
        environment: &CallEnvironment<'_>,
        course: &mut Course,
    ) -> Result<UpstreamAnswer, CallError> {
        let client = request.client;
        let mut given: Vec<(Box<str>, OwnedRaw)> = Vec::new();
        let mut state: Option<Box<str>> = None;
        for round in 0..=ROUNDS_MAX {
            let continues =
                if round == 0 { request.continues } else { Some((&*given, state.as_deref())) };
            let (session, response) =
                self.sessions(request, continues, environment, course).await?;
            let result = match response {
                Err(error) => return Ok(UpstreamAnswer::Error(error)),
                Ok(result) => result,
            };
            let connection = &request.server.connection;
            let link = self.link(connection, environment, None);
            let meaning = answered(result.as_raw(), session.revision, client.capabilities());
            let asks = match meaning {
                Answered::Complete => return Ok(UpstreamAnswer::Result(result)),
                Answered::Invalid(what) => return Err(link.invalid(what)),
                Answered::InputRequired { asks, state } if client.is_modern() => {
                    return Ok(UpstreamAnswer::InputRequired { asks, state });
                }
                Answered::InputRequired { asks, state: given_state } => {
                    state = given_state;
                    asks
                }
            };
            if round == ROUNDS_MAX {
                break;
            }
            given.clear();
            course.clock.pause(true, Instant::now());
            for (key, ask) in asks {
                match client.ask(ask).await {
                    AskOutcome::Answer(answer) => given.push((key, answer)),
                    AskOutcome::Refused(error) => return Ok(UpstreamAnswer::Error(error)),
                    AskOutcome::Unheard => {
                        let text = "The server asks the client something that it does not answer";
                        return Ok(UpstreamAnswer::Error(RpcError::new(code::SERVER, text)));
                    }
                }
            }
            course.clock.pause(false, Instant::now());
        }
        let connection = request.server.connection.id.as_str().to_owned();
        Err(CallError::Upstream { connection, problem: UpstreamProblem::EndlessQuestions })
    }

    /// Asks in a session; in a new one where the old one is gone.
    async fn sessions(
        self: &Rc<Self>,
        request: &UpstreamRequest<'_>,
        continues: Option<Continued<'_>>,
        environment: &CallEnvironment<'_>,
        course: &mut Course,
    ) -> Result<(Arc<Session>, Response), CallError> {
        let server = request.server;
        loop {
            let capabilities = request.client.capabilities();
            let opening = self.session(server, request.scope, capabilities, environment);
            let Opened { session, single } = opening.await?;
            let parting = single.map(|single| {
                Parting::new(Errand::new(self, server, environment), &session, single)
            });
            let once = Once { office: self, request, environment, session: &session };
            let outcome = Box::pin(once.ask(continues, course)).await;
            drop(parting);
            let outcome = match outcome {
                // What was under way is lost; what may be done twice is.
                Err(
                    CallError::Closed { answering: true, .. }
                    | CallError::Upstream { problem: UpstreamProblem::Lost(_), .. },
                ) if request.is_repeatable
                    && !std::mem::replace(&mut course.has_lost_session, true) =>
                {
                    continue;
                }
                // It speaks, and not as it did.
                Err(CallError::Upstream { problem: UpstreamProblem::Status(status), .. })
                    if session.revision.is_modern()
                        && is_of_another_era(&session, status, code::SERVER)
                        && !std::mem::replace(&mut course.has_changed_revision, true) =>
                {
                    self.servers().unlearn(server);
                    continue;
                }
                outcome => outcome?,
            };
            match outcome {
                Outcome::SessionLost if !std::mem::replace(&mut course.has_lost_session, true) => {
                    self.servers().forget(&session);
                }
                Outcome::SessionLost => {
                    self.servers().forget(&session);
                    let connection = server.connection.id.as_str().to_owned();
                    let problem = UpstreamProblem::Lost("it forgets sessions as they are opened");
                    return Err(CallError::Upstream { connection, problem });
                }
                Outcome::Response(Err(error))
                    if is_of_another_era(
                        &session,
                        course.status.unwrap_or_default(),
                        error.code,
                    ) && !std::mem::replace(&mut course.has_changed_revision, true) =>
                {
                    self.servers().unlearn(server);
                    self.servers().forget(&session);
                }
                Outcome::Response(response) => return Ok((session, response)),
            }
        }
    }
}

/// Whether a server says that it does not know requests of this era, so that nothing was done (MCP
/// 2026-07-28, versioning). One of the era without sessions says so in so many words, as it knows no
/// other; an older one refuses as it refuses whatever comes without a session.
fn is_of_another_era(session: &Session, status: u16, code: i32) -> bool {
    let is_refusal = matches!(code, code::SERVER | code::SESSION_NOT_FOUND | code::INVALID_REQUEST);
    let is_old = is_refusal && matches!(status, 400 | 404..=406);
    code == UNSUPPORTED_VERSION || (session.revision.is_modern() && is_old)
}

/// The answer to what is answered here.
pub(super) fn nothing() -> OwnedRaw {
    Raw::EMPTY_OBJECT.to_owned()
}
