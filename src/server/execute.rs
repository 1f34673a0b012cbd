//! From JSON-RPC messages to answers: what is known at once, and what has to run.
//!
//! Both transports of the protocol come through here. A tool call is handed to `invoke`, which
//! knows nothing of JSON-RPC; here its ending becomes a reply.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Instant};

use super::{
    invoke::{self, Begun, Ended, Ending, ToolRequest},
    note,
    refusal::Refusal,
    running::{Answered, Job, Outcome, Registration, Running, Single},
    trail::{CallType, Origin, Trail},
};
use crate::{
    mcp::{self, DispatchContext, Initialization, Invocation, Revision, Step, ToolOutcome},
    rpc::{Id, Incoming, Message, OwnedId, Reply, ResultBody, RpcError, code},
    sessions::Session,
    telemetry::{MethodLabel, OutcomeLabel},
};

/// Who asks, as execution needs it.
pub(crate) struct Asking<'a> {
    pub(crate) origin: Origin<'a>,
    pub(crate) revision: Revision,
    pub(crate) session: Option<&'a Arc<Session>>,
    /// The message came in a session that has been initialized.
    pub(crate) initialized: bool,
    /// The `traceparent` the request came with.
    pub(crate) trace: Option<&'a [u8]>,
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
    let core = asking.origin.core;
    DispatchContext {
        view: asking.origin.view,
        revision: asking.revision,
        in_session: asking.initialized,
        page_size: core.shared.settings.runtime.mcp.page_size,
        server: &core.shared.server_info,
    }
}

/// Takes note of a notification or a response.
fn heed(asking: &Asking<'_>, message: &Message<'_>) {
    let (started, core) = (Instant::now(), asking.origin.core);
    if let Step::Cancel(id) = mcp::dispatch(&context(asking), message)
        && let Some(call) = asking.session.and_then(|session| session.call(id.text().as_bytes()))
    {
        core.cancel_call(call.core, call.number);
    }
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    core.metrics.request(MethodLabel::of(method.name()), OutcomeLabel::Ok, started.elapsed());
}

fn request(
    asking: &Asking<'_>,
    id: Id<'_>,
    message: &Message<'_>,
    open_session: OpenSession<'_>,
) -> Result<Entry, Refusal> {
    let started = Instant::now();
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    let trail = CallType::of(method).map(|call_type| {
        let mut trail = Trail::begin(&asking.origin, call_type);
        trail.request_bytes = message.params().map_or(0, |params| params.text().len());
        trail
    });
    let body = match (mcp::dispatch(&context(asking), message), trail) {
        (Step::Invoke(invocation), Some(trail)) => {
            return Ok(invoke(asking, id.to_owned_id(), &invocation, trail));
        }
        (Step::Initialize(initialization), trail) => match open_session(&initialization) {
            Ok(()) => Ok((initialization.result, trail)),
            Err(refusal) => {
                if let Some(trail) = trail {
                    trail.refuse(refusal.reason());
                }
                return Err(refusal);
            }
        },
        (Step::Reply(body), trail) => Ok((body, trail)),
        (Step::Error(error), trail) => Err((error, trail)),
        // None of them comes of a request.
        (Step::Accepted | Step::Cancel(_) | Step::Invoke(_), trail) => {
            Err((RpcError::internal(), trail))
        }
    };
    let label = if body.is_ok() { OutcomeLabel::Ok } else { OutcomeLabel::Error };
    let elapsed = started.elapsed();
    asking.origin.core.metrics.request(MethodLabel::of(method.name()), label, elapsed);
    let (body, trail) = match body {
        Ok((body, trail)) => (Ok(body), trail),
        Err((error, trail)) => {
            let trail = trail.map(|mut trail| {
                trail.decided(false, reason_of(&error));
                trail
            });
            (Err(error), trail)
        }
    };
    let reply = Reply::new(id.to_owned_id(), body);
    if let Some(trail) = trail {
        trail.close(reply.len());
    }
    Ok(Entry::Done(reply))
}

/// The reason of a request that was answered with this error, as records name it.
fn reason_of(error: &RpcError) -> &'static str {
    match error.code {
        code::METHOD_NOT_FOUND => "method_not_found",
        code::RESOURCE_NOT_FOUND => "unknown_resource",
        code::INVALID_PARAMS => "invalid_params",
        code::INVALID_REQUEST => "invalid_request",
        _ => "failed",
    }
}

fn invoke(asking: &Asking<'_>, id: OwnedId, invocation: &Invocation<'_>, trail: Trail) -> Entry {
    let revision = asking.revision;
    let asked = ToolRequest {
        name: &invocation.name,
        arguments: invocation.arguments,
        trace: asking.trace,
    };
    let call = match invoke::begin(trail, &asked) {
        Begun::Ended(ended) => {
            let answered = answered(ended, revision, id, &invocation.name);
            return Entry::Done(answered.reply());
        }
        Begun::Running(call) => call,
    };
    let registration = match Registration::new(asking.origin.core, asking.session, &id) {
        Ok(registration) => registration,
        Err(error) => {
            call.refuse(reason_of(&error));
            return Entry::Done(Reply::new(id, Err(error)));
        }
    };
    let progress_token = invocation.progress_token.map(|token| token.text().into());
    let running = async move { answered(call.run(registration).await, revision, id, "") };
    Entry::Running { call: Box::pin(running), progress_token }
}

/// A call's ending as the client's revision has it.
fn answered(ended: Ended, revision: Revision, id: OwnedId, name: &str) -> Answered {
    ended.count();
    let Ended { ending, trail } = ended;
    let body = match ending {
        Ending::Ran(outcome) => mcp::tool_result(&outcome, revision),
        // What went wrong on the way is for the model to read, as an API's refusal is.
        Ending::Failed(error) => failure(error.to_string(), revision),
        Ending::Unknown => Err(mcp::unknown_tool(name)),
        Ending::Cancelled => {
            drop(trail);
            return Answered::Cancelled(id);
        }
    };
    let reply = Reply::new(id, body);
    trail.close(reply.len());
    Answered::Reply(reply)
}

fn failure(text: String, revision: Revision) -> Result<ResultBody, RpcError> {
    mcp::tool_result(&ToolOutcome::Failure { text }, revision)
}
