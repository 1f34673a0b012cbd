//! From messages to answers: what is known at once, and what has to run.
//!
//! Every transport comes through here. Arguments are judged and the outgoing request is built
//! before anything runs, so a running call owns all it needs and outlives the connection it came
//! on.

use std::{future::poll_fn, rc::Rc, sync::Arc, task::Poll, time::Instant};

use super::{
    core::Core,
    note,
    refusal::Refusal,
    running::{Answered, Job, Outcome, Registration, Running, Single},
};
use crate::{
    catalog::{BuiltinTool, ToolKind, View, ViewTool},
    downstream::{self, CallEnvironment},
    mapping::OutgoingRequest,
    mcp::{self, DispatchContext, Initialization, Invocation, Revision, Step, ToolOutcome},
    rpc::{Id, Incoming, Message, OwnedId, Reply, RpcError, code},
    rt::{self, Either},
    sessions::Session,
    telemetry::{MethodLabel, OutcomeLabel},
};

/// Who asks, as execution needs it.
pub(crate) struct Asking<'a> {
    pub(crate) core: &'a Rc<Core>,
    pub(crate) view: &'a Arc<View>,
    pub(crate) revision: Revision,
    pub(crate) session: Option<&'a Arc<Session>>,
    /// The message came in a session that has been initialized.
    pub(crate) initialized: bool,
    pub(crate) correlation: Option<&'a str>,
}

/// What a body leads to.
pub(crate) enum Work {
    /// Nothing to answer: notifications and responses only.
    Nothing,
    /// Answered already.
    Done(Outcome),
    /// Under way.
    Running(Job),
}

/// Opens a session for an `initialize`, where the transport has sessions to open.
pub(crate) type OpenSession<'a> = &'a mut dyn FnMut(&Initialization<'_>) -> Result<(), Refusal>;

/// Begins the work for a body.
pub(crate) fn begin(
    asking: &Asking<'_>,
    incoming: &Incoming<'_>,
    open_session: OpenSession<'_>,
) -> Result<Work, Refusal> {
    mcp::check_batch(incoming, asking.revision)?;
    match incoming {
        Incoming::Single(message) => single(asking, message, open_session),
        Incoming::Batch(entries) => batch(asking, entries, open_session),
    }
}

fn single(
    asking: &Asking<'_>,
    message: &Message<'_>,
    open_session: OpenSession<'_>,
) -> Result<Work, Refusal> {
    let Some(id) = message.request_id() else {
        heed(asking, message);
        return Ok(Work::Nothing);
    };
    Ok(match request(asking, id, message, open_session)? {
        Entry::Done(reply) => Work::Done(Outcome::Reply(reply)),
        Entry::Running { call, progress_token } => {
            let running = Running::Single(call);
            Work::Running(Job { running, progress_token, note: note::single(id) })
        }
    })
}

fn batch(
    asking: &Asking<'_>,
    entries: &[Result<Message<'_>, RpcError>],
    open_session: OpenSession<'_>,
) -> Result<Work, Refusal> {
    let mut parts = Vec::with_capacity(entries.len());
    let mut ids = Vec::new();
    for entry in entries {
        match entry {
            Ok(message) => match message.request_id() {
                Some(id) => {
                    ids.push(id);
                    parts.push(request(asking, id, message, &mut *open_session)?);
                }
                None => heed(asking, message),
            },
            Err(error) => parts.push(Entry::Done(Reply::without_id(error.clone()))),
        }
    }
    if parts.is_empty() {
        return Ok(Work::Nothing);
    }
    if parts.iter().all(|part| matches!(part, Entry::Done(_))) {
        let replies = bounded(parts.into_iter().filter_map(Entry::done));
        return Ok(Work::Done(Outcome::Batch(replies)));
    }
    let note = note::batch(ids.into_iter());
    let running = Running::Batch(Box::pin(all(parts)));
    Ok(Work::Running(Job { running, progress_token: None, note }))
}

/// Answers of a batch beyond this size are errors instead: a hundred small requests must not make
/// an answer a hundred times the largest one.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The answers of a batch, within its size.
fn bounded(parts: impl Iterator<Item = Reply>) -> Vec<Reply> {
    let mut bytes = 0;
    parts
        .map(|reply| {
            bytes += reply.len();
            match (bytes > BATCH_BYTES_MAX, reply.id) {
                (true, Some(id)) => {
                    let text = "the answers of this batch are too large together; ask one by one";
                    Reply::new(id, Err(RpcError::new(code::SERVER, text)))
                }
                (_, id) => Reply { id, body: reply.body },
            }
        })
        .collect()
}

/// One request's part of the work.
enum Entry {
    Done(Reply),
    Running { call: Single, progress_token: Option<Box<str>> },
}

impl Entry {
    fn done(self) -> Option<Reply> {
        match self {
            Self::Done(reply) => Some(reply),
            Self::Running { .. } => None,
        }
    }
}

/// Runs the calls of a batch side by side; its size is bounded where it is parsed.
async fn all(mut parts: Vec<Entry>) -> Vec<Reply> {
    poll_fn(|context| {
        let mut open = false;
        for part in &mut parts {
            let Entry::Running { call, .. } = part else { continue };
            match call.as_mut().poll(context) {
                Poll::Pending => open = true,
                Poll::Ready(answered) => *part = Entry::Done(answered.reply()),
            }
        }
        if open { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    bounded(parts.into_iter().filter_map(Entry::done))
}

fn context<'a>(asking: &Asking<'a>) -> DispatchContext<'a> {
    DispatchContext {
        view: asking.view,
        revision: asking.revision,
        in_session: asking.initialized,
        page_size: asking.core.shared.settings.runtime.mcp.page_size,
        server: &asking.core.shared.server_info,
    }
}

/// Takes note of a notification or a response.
fn heed(asking: &Asking<'_>, message: &Message<'_>) {
    let started = Instant::now();
    if let Step::Cancel(id) = mcp::dispatch(&context(asking), message)
        && let Some(call) = asking.session.and_then(|session| session.call(id.text().as_bytes()))
    {
        asking.core.cancel_call(call.core, call.number);
    }
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    asking.core.metrics.request(
        MethodLabel::of(method.name()),
        OutcomeLabel::Ok,
        started.elapsed(),
    );
}

fn request(
    asking: &Asking<'_>,
    id: Id<'_>,
    message: &Message<'_>,
    open_session: OpenSession<'_>,
) -> Result<Entry, Refusal> {
    let started = Instant::now();
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    let body = match mcp::dispatch(&context(asking), message) {
        Step::Reply(body) => Ok(body),
        Step::Error(error) => Err(error),
        Step::Initialize(initialization) => {
            open_session(&initialization)?;
            Ok(initialization.result)
        }
        Step::Invoke(invocation) => {
            return Ok(invoke(asking, id.to_owned_id(), &invocation, started));
        }
        // Neither comes of a request.
        Step::Accepted | Step::Cancel(_) => Err(RpcError::internal()),
    };
    let label = if body.is_ok() { OutcomeLabel::Ok } else { OutcomeLabel::Error };
    asking.core.metrics.request(MethodLabel::of(method.name()), label, started.elapsed());
    Ok(Entry::Done(Reply::new(id.to_owned_id(), body)))
}

fn invoke(
    asking: &Asking<'_>,
    id: OwnedId,
    invocation: &Invocation<'_>,
    started: Instant,
) -> Entry {
    let core = asking.core;
    let done = |outcome: ToolOutcome, id| {
        Entry::Done(shaped(core, &outcome, asking.revision, id, started))
    };
    match &invocation.tool.kind {
        // Whoever has many sessions: they are not looked through on a core.
        ToolKind::Builtin(tool @ BuiltinTool::ListSessions) => {
            let call = BuiltinCall {
                core: core.clone(),
                tool: *tool,
                view: asking.view.clone(),
                revision: asking.revision,
                id,
                started,
            };
            Entry::Running { call: Box::pin(call.run()), progress_token: None }
        }
        ToolKind::Builtin(tool) => {
            done(downstream::run_builtin(*tool, &*core.shared, asking.view), id)
        }
        ToolKind::Rest { request, .. } => {
            let arguments = match request.validate(invocation.arguments) {
                Ok(arguments) => arguments,
                Err(invalid) => {
                    let text = invalid.to_string();
                    return done(ToolOutcome::InvalidArguments { text }, id);
                }
            };
            let registration = match Registration::new(core, asking.session, &id) {
                Ok(registration) => registration,
                Err(error) => return Entry::Done(Reply::new(id, Err(error))),
            };
            let call = RestCall {
                core: core.clone(),
                view: asking.view.clone(),
                tool: invocation.tool.clone(),
                request: request.build(&arguments),
                registration,
                revision: asking.revision,
                correlation: asking.correlation.map(Box::from),
                id,
                started,
            };
            let progress_token = invocation.progress_token.map(|token| token.text().into());
            Entry::Running { call: Box::pin(call.run()), progress_token }
        }
    }
}

/// A call of one of the appliance's own tools that takes a worker.
struct BuiltinCall {
    core: Rc<Core>,
    tool: BuiltinTool,
    view: Arc<View>,
    revision: Revision,
    id: OwnedId,
    started: Instant,
}

impl BuiltinCall {
    async fn run(self) -> Answered {
        let (shared, view, tool) = (self.core.shared.clone(), self.view, self.tool);
        let ran = self
            .core
            .shared
            .workers
            .run(move || downstream::run_builtin(tool, &*shared, &view))
            .await;
        let outcome = ran.unwrap_or_else(|error| ToolOutcome::Failure {
            text: format!("The server is busy ({error}). Try again shortly."),
        });
        Answered::Reply(shaped(&self.core, &outcome, self.revision, self.id, self.started))
    }
}

/// A call of an HTTP API, with all it needs.
struct RestCall {
    core: Rc<Core>,
    view: Arc<View>,
    tool: Arc<ViewTool>,
    request: OutgoingRequest,
    registration: Option<Registration>,
    revision: Revision,
    correlation: Option<Box<str>>,
    id: OwnedId,
    started: Instant,
}

impl RestCall {
    async fn run(self) -> Answered {
        let core = &self.core;
        let execution_id = core.next_execution_id();
        let environment =
            CallEnvironment { execution_id, correlation_id: self.correlation.as_deref() };
        let call = core.rest.run(&self.tool.tool, &self.request, &environment);
        let called = match &self.registration {
            None => call.await,
            Some(registration) => match rt::race(call, registration.cancelled()).await {
                Either::Left(called) => called,
                Either::Right(()) => {
                    tracing::debug!(%execution_id, "call cancelled by the client");
                    let (method, outcome) = (MethodLabel::ToolsCall, OutcomeLabel::Cancelled);
                    core.metrics.request(method, outcome, self.started.elapsed());
                    return Answered::Cancelled(self.id);
                }
            },
        };
        // What went wrong on the way is for the model to read, as an API's refusal is.
        let outcome =
            called.unwrap_or_else(|error| ToolOutcome::Failure { text: error.to_string() });
        let outcome = if self.tool.has_output_schema { outcome.structured() } else { outcome };
        tracing::debug!(
            %execution_id,
            tenant = self.view.tenant.as_str(),
            client_application = self.view.client_application.as_str(),
            tool = self.tool.name.as_str(),
            failed = matches!(outcome, ToolOutcome::Failure { .. }),
            microseconds = self.started.elapsed().as_micros() as u64,
            "tool called"
        );
        Answered::Reply(shaped(core, &outcome, self.revision, self.id, self.started))
    }
}

/// A tool's outcome as the client's revision has it.
fn shaped(
    core: &Core,
    outcome: &ToolOutcome,
    revision: Revision,
    id: OwnedId,
    started: Instant,
) -> Reply {
    let label = match outcome {
        ToolOutcome::Success { .. } => OutcomeLabel::Ok,
        ToolOutcome::Failure { .. } | ToolOutcome::InvalidArguments { .. } => {
            OutcomeLabel::ToolError
        }
    };
    core.metrics.request(MethodLabel::ToolsCall, label, started.elapsed());
    Reply::new(id, mcp::tool_result(outcome, revision))
}
