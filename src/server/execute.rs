//! From JSON-RPC messages to answers: what is known at once, and what has to run.
//!
//! Both transports of the protocol come through here. A tool call is handed to `invoke`, which
//! knows nothing of JSON-RPC; here its ending becomes a reply. What is too large for a core is waited
//! for before the work counts as begun, so that it is refused as everything else is.

use std::{future::poll_fn, sync::Arc, task::Poll};

use super::{
    invoke::{self, Beginning, Begun, Ended, Ending, Judging, Refused, ToolCall, ToolRequest},
    note, offload,
    parts::{self, ReadResource},
    refusal::Refusal,
    running::{Answered, Job, Outcome, Registration, Running, Single, cancelled},
    trail::{Origin, Trail, call_type_of},
};
use crate::{
    audit,
    catalog::ToolShape,
    governance::{Class, Level, Limited},
    http::RequestView,
    json::Kind,
    mcp::{
        self, Caching, DispatchContext, Envelope, Initialization, Invocation, Revision, Step,
        Supplement, ToolOutcome,
    },
    rpc::{Id, Incoming, Message, OwnedId, Reply, ResultBody, RpcError, code},
    rt::{self, Either},
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
    /// What a request of the era without sessions says of itself.
    pub(crate) envelope: Option<&'a Envelope<'a>>,
    /// The HTTP request.
    pub(crate) http: RequestView<'a>,
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
pub(crate) type OpenSession<'a> =
    &'a mut dyn FnMut(&Initialization<'_>) -> Result<Arc<Session>, Refusal>;

/// Takes a message that came alone from its class of limits, before anything else is done about
/// it. The messages of a batch are taken one by one as they are begun.
pub(crate) fn charge_single(origin: &Origin<'_>, incoming: &Incoming<'_>) -> Result<(), Refusal> {
    match incoming {
        Incoming::Single(message) => charge(origin, message).map_err(Refusal::Limited),
        Incoming::Batch(_) => Ok(()),
    }
}

fn charge(origin: &Origin<'_>, message: &Message<'_>) -> Result<(), Limited> {
    let class = match message {
        Message::Request { method, .. } if !is_light(method) => Class::Requests,
        _ => Class::Light,
    };
    origin.take(class)
}

/// What keeps a client connected is cheap, and must not wait behind what it does.
fn is_light(method: &str) -> bool {
    matches!(
        mcp::Method::of(method),
        mcp::Method::Initialize | mcp::Method::Ping | mcp::Method::Discover | mcp::Method::Listen
    )
}

/// Records the requests of a body that is refused as a whole.
pub(crate) fn note_refused(origin: &Origin<'_>, incoming: &Incoming<'_>, refusal: &Refusal) {
    match incoming {
        Incoming::Single(message) => note_refused_one(origin, message, refusal),
        Incoming::Batch(entries) => {
            let messages = entries.iter().flatten();
            messages.for_each(|message| note_refused_one(origin, message, refusal));
        }
    }
}

fn note_refused_one(origin: &Origin<'_>, message: &Message<'_>, refusal: &Refusal) {
    let Message::Request { method, .. } = message else { return };
    let method = mcp::Method::of(method);
    if let Some(call_type) = call_type_of(method)
        && let Ok(trail) = Trail::begin(origin, call_type, method.name())
    {
        trail.refuse(refusal.reason());
    }
}

/// Begins the work for a body.
pub(crate) async fn begin(
    asking: &Asking<'_>,
    incoming: &Incoming<'_>,
    open_session: OpenSession<'_>,
) -> Result<Work, Refusal> {
    if let Err(error) = mcp::check_batch(incoming, asking.revision) {
        let refusal = Refusal::from(error);
        note_refused(&asking.origin, incoming, &refusal);
        return Err(refusal);
    }
    match incoming {
        Incoming::Single(message) => single(asking, message, open_session).await,
        Incoming::Batch(entries) => batch(asking, entries, open_session).await,
    }
}

async fn single(
    asking: &Asking<'_>,
    message: &Message<'_>,
    open_session: OpenSession<'_>,
) -> Result<Work, Refusal> {
    let Some(id) = message.request_id() else {
        heed(asking, message);
        return Ok(Work::Nothing);
    };
    let entry = match request(asking, id, message, open_session)? {
        Next::Entry(entry) => entry,
        Next::Waiting(waiting) => Box::pin(waiting.over(asking, id, message)).await?,
    };
    Ok(match entry {
        Entry::Done(reply) => Work::Done(Outcome::Reply(reply)),
        Entry::Cancelled(id) => Work::Done(Outcome::Cancelled(id)),
        Entry::Running { call, progress_token } => {
            let running = Running::Single(call);
            Work::Running(Job { running, progress_token, note: note::single(id) })
        }
    })
}

async fn batch(
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
                    parts.push(entry_of(asking, id, message, &mut *open_session).await?);
                }
                // What is over a limit is passed over: nobody can be told.
                None if charge(&asking.origin, message).is_err() => {}
                None => heed(asking, message),
            },
            Err(error) => parts.push(Entry::Done(Reply::without_id(error.clone()))),
        }
    }
    if parts.is_empty() {
        return Ok(Work::Nothing);
    }
    if !parts.iter().any(|part| matches!(part, Entry::Running { .. })) {
        let replies = bounded(parts.into_iter().filter_map(Entry::done));
        return Ok(Work::Done(Outcome::Batch(replies)));
    }
    let note = note::batch(ids.into_iter());
    let running = Running::Batch(Box::pin(all(parts)));
    Ok(Work::Running(Job { running, progress_token: None, note }))
}

/// A request of a batch. One that there is no room for has its own error; the others go on.
async fn entry_of(
    asking: &Asking<'_>,
    id: Id<'_>,
    message: &Message<'_>,
    open_session: OpenSession<'_>,
) -> Result<Entry, Refusal> {
    let charged = charge(&asking.origin, message).map_err(|limited| {
        let refusal = Refusal::Limited(limited);
        note_refused_one(&asking.origin, message, &refusal);
        refusal
    });
    let next = charged.and_then(|()| request(asking, id, message, open_session));
    let entry = match next {
        Ok(Next::Waiting(waiting)) => Box::pin(waiting.over(asking, id, message)).await,
        Ok(Next::Entry(entry)) => Ok(entry),
        Err(refusal) => Err(refusal),
    };
    match entry {
        Err(
            refusal @ (Refusal::Limited(_)
            | Refusal::AuditUnavailable
            | Refusal::Busy
            | Refusal::TenantBusy),
        ) => Ok(Entry::Done(Reply::new(id.to_owned_id(), Err(refusal.error())))),
        other => other,
    }
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

/// What becomes of a request at once.
enum Next {
    Entry(Entry),
    Waiting(Waiting),
}

/// A request that goes on once the workers have done something for it.
enum Waiting {
    /// The list of tools is put together.
    List(Box<Trail>, ToolShape),
    /// The part of a result with this URI is made.
    Kept(Box<Trail>, Box<str>),
    /// The arguments of a call are judged.
    Call(Box<Judging>, Option<Box<str>>),
}

impl Waiting {
    /// Waits, and goes on.
    async fn over(
        self,
        asking: &Asking<'_>,
        id: Id<'_>,
        message: &Message<'_>,
    ) -> Result<Entry, Refusal> {
        match self {
            Self::Call(judging, progress_token) => {
                let id = id.to_owned_id();
                // Registered now, so that the client can cancel it already.
                let registration = match Registration::new(asking.origin.core, asking.session, &id)
                {
                    Ok(registration) => registration,
                    Err(error) => {
                        judging.refuse(reason_of(&error));
                        return Ok(Entry::Done(Reply::new(id, Err(error))));
                    }
                };
                let judged = judging.judged();
                let begun = match &registration {
                    None => judged.await?,
                    Some(registration) => match rt::race(judged, registration.cancelled()).await {
                        Either::Left(begun) => begun?,
                        Either::Right(()) => {
                            note_cancelled(&asking.origin);
                            return Ok(Entry::Cancelled(id));
                        }
                    },
                };
                match begun {
                    Begun::Ended(ended) => over(ended, asking.revision, id),
                    Begun::Running(call) => {
                        Ok(running(call, asking.revision, id, registration, progress_token))
                    }
                }
            }
            Self::List(trail, shape) => {
                let origin = &asking.origin;
                if let Err(refusal) = offload::make_list(origin.core, origin.view, shape).await {
                    return Err(refused(*trail, refusal));
                }
                let body = match mcp::dispatch(&context(asking), message) {
                    Step::Reply(body) => Ok(body),
                    Step::Error(error) => Err(error),
                    _ => Err(RpcError::internal()),
                };
                let body = body.map(|body| (body, None));
                Ok(replied(asking, id, message, Some(*trail), body, shared_by(asking)))
            }
            Self::Kept(trail, uri) => match parts::read(&asking.origin, &uri).await {
                Ok(body) => Ok(replied(asking, id, message, Some(*trail), body, Caching::Never)),
                Err(error) => Err(refused(*trail, error.into())),
            },
        }
    }
}

/// A request that was begun and is refused after all.
fn refused(trail: Trail, refusal: Refusal) -> Refusal {
    trail.refuse(refusal.reason());
    refusal
}

/// One request's part of the work.
enum Entry {
    Done(Reply),
    Running {
        call: Single,
        progress_token: Option<Box<str>>,
    },
    /// Its client wants no answer any more.
    Cancelled(OwnedId),
}

impl Entry {
    fn done(self) -> Option<Reply> {
        match self {
            Self::Done(reply) => Some(reply),
            Self::Cancelled(id) => Some(cancelled(id)),
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
    let core = asking.origin.core;
    if let Step::Cancel(id) = mcp::dispatch(&context(asking), message)
        && let Some(call) = asking.session.and_then(|session| session.call(id.text().as_bytes()))
    {
        core.cancel_call(call.core, call.number);
    }
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    core.metrics.request(
        MethodLabel::of(method.name()),
        OutcomeLabel::Ok,
        asking.origin.arrived.elapsed(),
    );
}

fn request(
    asking: &Asking<'_>,
    id: Id<'_>,
    message: &Message<'_>,
    open_session: OpenSession<'_>,
) -> Result<Next, Refusal> {
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    let begin = |call_type| Trail::begin(&asking.origin, call_type, method.name());
    let mut trail = call_type_of(method).map(begin).transpose()?;
    if let Some(trail) = &mut trail {
        trail.request_bytes = message.params().map_or(0, |params| params.text().len());
    }
    let body = match mcp::dispatch(&context(asking), message) {
        Step::Reply(body) => Ok(body),
        Step::Error(error) => Err(error),
        Step::Initialize(initialization) => match open_session(&initialization) {
            Ok(session) => {
                if let Some(trail) = &mut trail {
                    trail.opened(&session);
                }
                Ok(initialization.result)
            }
            Err(refusal) => {
                if let Some(trail) = trail {
                    trail.refuse(refusal.reason());
                }
                return Err(refusal);
            }
        },
        Step::Invoke(invocation) => match trail {
            Some(trail) => return invoke(asking, id.to_owned_id(), &invocation, trail),
            None => Err(RpcError::internal()),
        },
        Step::MakeToolsList(shape) => match trail {
            Some(trail) => return Ok(Next::Waiting(Waiting::List(Box::new(trail), shape))),
            None => Err(RpcError::internal()),
        },
        Step::ReadKept(uri) => match trail {
            Some(trail) => {
                return Ok(Next::Waiting(Waiting::Kept(Box::new(trail), (&*uri).into())));
            }
            None => Err(RpcError::internal()),
        },
        // Neither comes of a request.
        Step::Accepted | Step::Cancel(_) => Err(RpcError::internal()),
    };
    let body = body.map(|body| (body, None));
    let caching = if method.is_cacheable() { shared_by(asking) } else { Caching::Unsaid };
    Ok(Next::Entry(replied(asking, id, message, trail, body, caching)))
}

/// For whom what a client is told of its view may be kept.
fn shared_by(asking: &Asking<'_>) -> Caching {
    if asking.origin.view.is_public() { Caching::Public } else { Caching::Private }
}

/// The entry of a request that is answered.
fn replied(
    asking: &Asking<'_>,
    id: Id<'_>,
    message: &Message<'_>,
    trail: Option<Trail>,
    body: Result<ReadResource, RpcError>,
    caching: Caching,
) -> Entry {
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    let label = if body.is_ok() { OutcomeLabel::Ok } else { OutcomeLabel::Error };
    let elapsed = asking.origin.arrived.elapsed();
    asking.origin.core.metrics.request(MethodLabel::of(method.name()), label, elapsed);
    let reason = body.as_ref().err().map(reason_of);
    let (body, meta) = match body {
        Ok((body, meta)) => (Ok(body), meta),
        Err(error) => (Err(error), None),
    };
    let server = &asking.origin.core.shared.server_info;
    let body = server.answer(body, meta.as_deref(), caching, asking.revision);
    let reply = Reply::new(id.to_owned_id(), body);
    if let Some(mut trail) = trail {
        trail.asked = subject(method, message);
        trail.took = Some(elapsed);
        let outcome = if let Ok(body) = &reply.body {
            if method == mcp::Method::ToolsList {
                trail.keep_listed(body);
            }
            audit::Outcome::Ok
        } else {
            trail.denied(reason.unwrap_or("failed"));
            audit::Outcome::Error
        };
        trail.close(outcome, reply.len());
    }
    Entry::Done(reply)
}

/// What a request asks for by name, where that is no tool.
fn subject(method: mcp::Method, message: &Message<'_>) -> Option<Box<str>> {
    let key = match method {
        mcp::Method::ResourcesRead => "uri",
        mcp::Method::PromptsGet | mcp::Method::ToolsCall => "name",
        _ => return None,
    };
    let params = message.params().filter(|params| params.kind() == Kind::Object)?;
    let name = params.get(key)?.as_str()?;
    Some(invoke::shortened(&name))
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

fn invoke(
    asking: &Asking<'_>,
    id: OwnedId,
    invocation: &Invocation<'_>,
    trail: Trail,
) -> Result<Next, Refusal> {
    let asked =
        ToolRequest { name: &invocation.name, arguments: invocation.arguments, http: asking.http };
    let progress_token = invocation.progress_token.map(|token| token.text().into());
    let revision = asking.revision;
    let call = match invoke::begin(trail, &asked) {
        Beginning::Judging(judging) => {
            return Ok(Next::Waiting(Waiting::Call(judging, progress_token)));
        }
        Beginning::Begun(Begun::Ended(ended)) => return over(ended, revision, id).map(Next::Entry),
        Beginning::Begun(Begun::Running(call)) => call,
    };
    Ok(Next::Entry(match Registration::new(asking.origin.core, asking.session, &id) {
        Ok(registration) => running(call, revision, id, registration, progress_token),
        Err(error) => {
            call.refuse(reason_of(&error));
            Entry::Done(Reply::new(id, Err(error)))
        }
    }))
}

/// The entry of a call that is over at once.
fn over(ended: Ended, revision: Revision, id: OwnedId) -> Result<Entry, Refusal> {
    match ended {
        // Over HTTP a request that is over a limit has a status of its own; only the tool's own
        // limit is for the model to read.
        Ended { ending: Ending::Limited(limited), trail, .. } if limited.level != Level::Tool => {
            trail.close(audit::Outcome::Error, 0);
            Err(Refusal::Limited(limited))
        }
        ended => Ok(Entry::Done(answered(ended, revision, id).reply())),
    }
}

/// The entry of a call that is under way.
fn running(
    call: ToolCall,
    revision: Revision,
    id: OwnedId,
    registration: Option<Registration>,
    progress_token: Option<Box<str>>,
) -> Entry {
    let running = async move { answered(call.run(registration).await, revision, id) };
    Entry::Running { call: Box::pin(running), progress_token }
}

/// Counts a call that its client cancelled before it was begun; its trail tells of it by itself.
fn note_cancelled(origin: &Origin<'_>) {
    let elapsed = origin.arrived.elapsed();
    origin.core.metrics.request(MethodLabel::ToolsCall, OutcomeLabel::Cancelled, elapsed);
}

/// A call's ending as the client's revision has it.
fn answered(mut ended: Ended, revision: Revision, id: OwnedId) -> Answered {
    let outcome = ended.settle();
    let Ended { ending, mut supplement, trail, .. } = ended;
    let meta = if revision.is_modern() { supplement.meta.take() } else { None };
    let owes_object = trail.tool.as_ref().is_some_and(|tool| tool.owes_object());
    let body = match ending {
        Ending::Ran(outcome) => mcp::tool_result(&outcome, &supplement, revision, owes_object),
        // What went wrong on the way is for the model to read, as an API's refusal is.
        Ending::Failed(error) => failure(error.to_string(), revision),
        Ending::Limited(limited) => failure(limited.text(), revision),
        Ending::Refused(Refused::Unknown) => Err(mcp::unknown_tool(trail.asked())),
        Ending::Refused(refused) => failure(refused.text(&trail), revision),
        Ending::Cancelled => {
            drop(trail);
            return Answered::Cancelled(id);
        }
    };
    let server = &trail.core.shared.server_info;
    let body = server.answer(body, meta.as_deref(), Caching::Unsaid, revision);
    let reply = Reply::new(id, body);
    trail.close(outcome, reply.len());
    Answered::Reply(reply)
}

fn failure(text: String, revision: Revision) -> Result<ResultBody, RpcError> {
    mcp::tool_result(&ToolOutcome::Failure { text }, &Supplement::NONE, revision, false)
}
