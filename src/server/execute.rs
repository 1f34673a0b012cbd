//! From JSON-RPC messages to answers: what is known at once, and what has to run.
//!
//! Both transports of the protocol come through here. A tool call is handed to `invoke`, which
//! knows nothing of JSON-RPC; `answer` makes a reply of its ending. What is too large for a core is waited
//! for before the work counts as begun, so that it is refused as everything else is.

use std::{cell::OnceCell, rc::Rc, sync::Arc};

use super::{
    answer::{answered, reason_of, replied, shape_large, shared_by},
    batch,
    conversation::{self, Conversation, Way},
    ending::{Ended, Ending},
    invoke::{self, Beginning, Begun, Partner, ToolRequest},
    note,
    pass_on::PassedOn,
    refusal::Refusal,
    running::{Job, Outcome, Registration, Running, Single, cancelled},
    subscriptions::{Resource, Subscriber},
    tool_call::ToolCall,
    trail::{Origin, Trail, call_type_of, subject},
    waiting::Waiting,
    watch,
};
use crate::{
    audit,
    governance::{Class, Level, Limited},
    http::RequestView,
    mcp::{
        self, Caching, DispatchContext, Envelope, Initialization, Invocation, LogLevel, PassOn,
        Revision, Step,
    },
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
    /// What the request says of itself, in the era without sessions.
    pub(crate) envelope: Option<&'a Envelope<'a>>,
    /// The HTTP request.
    pub(crate) http: RequestView<'a>,
    /// The way to the client, once something needs it. One for all requests of a batch.
    pub(crate) way: OnceCell<Rc<Way>>,
}

impl Asking<'_> {
    /// The way to the client, for what is said before the answer.
    pub(crate) fn way(&self) -> &Rc<Way> {
        self.way.get_or_init(|| Way::new(self.origin.core))
    }
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

pub(super) fn charge(origin: &Origin<'_>, message: &Message<'_>) -> Result<(), Limited> {
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

pub(super) fn note_refused_one(origin: &Origin<'_>, message: &Message<'_>, refusal: &Refusal) {
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
        Incoming::Batch(entries) => batch::begin(asking, entries, open_session).await,
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
            let way = asking.way.get().cloned();
            Work::Running(Job { running, progress_token, note: note::single(id), way })
        }
    })
}

/// What becomes of a request at once.
pub(super) enum Next {
    Entry(Entry),
    Waiting(Waiting),
}

/// One request's part of the work.
pub(super) enum Entry {
    Done(Reply),
    Running {
        call: Single,
        progress_token: Option<Box<str>>,
    },
    /// Its client wants no answer any more.
    Cancelled(OwnedId),
}

impl Entry {
    pub(super) fn done(self) -> Option<Reply> {
        match self {
            Self::Done(reply) => Some(reply),
            Self::Cancelled(id) => Some(cancelled(id)),
            Self::Running { .. } => None,
        }
    }
}

pub(super) fn context<'a>(asking: &Asking<'a>) -> DispatchContext<'a> {
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
pub(super) fn heed(asking: &Asking<'_>, message: &Message<'_>) {
    let core = asking.origin.core;
    match (mcp::dispatch(&context(asking), message), asking.session) {
        (Step::Cancel(id), Some(session)) => {
            if let Some(call) = session.call(id.text().as_bytes()) {
                core.cancel_call(call.core, call.number);
            }
        }
        (Step::Answer(id, outcome), Some(session)) => {
            conversation::answered(core, session, id, mcp::answer(outcome));
        }
        (Step::RootsChanged, Some(session)) => watch::roots_changed(core, session),
        _ => {}
    }
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    core.metrics.request(
        MethodLabel::of(method.name()),
        OutcomeLabel::Ok,
        asking.origin.arrived.elapsed(),
    );
}

pub(super) fn request(
    asking: &Asking<'_>,
    id: Id<'_>,
    message: &Message<'_>,
    open_session: OpenSession<'_>,
) -> Result<Next, Refusal> {
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    // Before it is judged and recorded: it was, when it came for the first time.
    let resumed = conversation::resumed(asking, message, id);
    if let Ok(Some(call)) = resumed {
        let progress_token = mcp::progress_token(message.params()).map(|token| token.text().into());
        return Ok(Next::Entry(Entry::Running { call, progress_token }));
    }
    let begin = |call_type| Trail::begin(&asking.origin, call_type, method.name());
    let mut trail = call_type_of(method).map(begin).transpose()?;
    if let Some(trail) = &mut trail {
        trail.request_bytes = message.params().map_or(0, |params| params.text().len());
    }
    if let Err(error) = resumed {
        return Ok(Next::Entry(replied(asking, id, message, trail, Err(error), Caching::Unsaid)));
    }
    let body = match mcp::dispatch(&context(asking), message) {
        Step::Reply(body) => Ok(body),
        Step::Error(error) => Err(error),
        Step::SetLevel(level) => Ok(set_level(asking, level)),
        Step::Initialize(initialization) => {
            Ok(initialize(initialization, open_session, &mut trail)?)
        }
        // All else is of methods that leave a record.
        step => match trail {
            Some(trail) => return go_on(asking, id, message, step, trail),
            None => Err(RpcError::internal()),
        },
    };
    let body = body.map(|body| (body, None));
    let caching = if method.is_cacheable() { shared_by(asking) } else { Caching::Unsaid };
    Ok(Next::Entry(replied(asking, id, message, trail, body, caching)))
}

/// Opens a session; where it is refused the request is.
fn initialize(
    initialization: Initialization<'_>,
    open_session: OpenSession<'_>,
    trail: &mut Option<Trail>,
) -> Result<ResultBody, Refusal> {
    match open_session(&initialization) {
        Ok(session) => {
            if let Some(trail) = trail {
                trail.opened(&session);
            }
            Ok(initialization.result)
        }
        Err(refusal) => {
            if let Some(trail) = trail.take() {
                trail.refuse(refusal.reason());
            }
            Err(refusal)
        }
    }
}

/// What becomes of a request that its first step does not answer.
fn go_on(
    asking: &Asking<'_>,
    id: Id<'_>,
    message: &Message<'_>,
    step: Step<'_>,
    trail: Trail,
) -> Result<Next, Refusal> {
    let error = match step {
        Step::Invoke(invocation) => {
            return invoke(asking, id.to_owned_id(), message, &invocation, trail);
        }
        Step::MakeToolsList(shape) => {
            return Ok(Next::Waiting(Waiting::List(Box::new(trail), shape)));
        }
        Step::ReadKept(uri) => {
            return Ok(Next::Waiting(Waiting::Kept(Box::new(trail), (&*uri).into())));
        }
        Step::PassOn(request) => {
            return Ok(Next::Entry(pass_on(asking, id.to_owned_id(), message, request, trail)));
        }
        Step::Subscribe(uri, is_wanted) => match subscribe(asking, &uri, is_wanted) {
            Ok(request) => {
                return Ok(Next::Entry(pass_on(asking, id.to_owned_id(), message, request, trail)));
            }
            Err(error) => error,
        },
        // None of these comes of a request, or is answered by now.
        Step::Reply(_)
        | Step::Error(_)
        | Step::SetLevel(_)
        | Step::Initialize(_)
        | Step::Accepted
        | Step::Cancel(_)
        | Step::Answer(..)
        | Step::RootsChanged => RpcError::internal(),
    };
    Ok(Next::Entry(replied(asking, id, message, Some(trail), Err(error), Caching::Unsaid)))
}

/// Keeps how grave what a session hears of must be. Outside sessions there is nothing to keep it in,
/// and nobody to whom it would make a difference.
fn set_level(asking: &Asking<'_>, level: LogLevel) -> ResultBody {
    let core = asking.origin.core;
    if let Some(session) = asking.session
        && core.shared.sessions.set_log_level(session, level.code())
    {
        core.write_behind.put_session(session.key(), &session.row());
    }
    ResultBody::EMPTY
}

/// Begins or ends to tell a session of changes of a resource, as far as that is ours to do; what
/// the server is asked comes back.
fn subscribe(asking: &Asking<'_>, uri: &str, is_wanted: bool) -> Result<PassOn, RpcError> {
    let view = asking.origin.view;
    let Some(session) = asking.session else {
        let text = "resources/subscribe needs a session, on whose streams changes are told";
        return Err(RpcError::invalid_request(text));
    };
    let Some(server) = view.upstream_of_resource(uri) else {
        return Err(mcp::unknown_resource(uri));
    };
    if !server.definitions.subscribes {
        let text = "the server of this resource tells of no changes";
        return Err(RpcError::new(code::METHOD_NOT_FOUND, text));
    }
    let subscriber = Subscriber::Session(session.key());
    let resource = Resource::of(server, uri);
    let subscriptions = &asking.origin.core.shared.subscriptions;
    if is_wanted {
        subscriptions.subscribe(subscriber, resource)?;
    } else {
        subscriptions.unsubscribe(&subscriber, &resource);
    }
    Ok(PassOn::subscription(server, uri, is_wanted))
}

fn invoke(
    asking: &Asking<'_>,
    id: OwnedId,
    message: &Message<'_>,
    invocation: &Invocation<'_>,
    trail: Trail,
) -> Result<Next, Refusal> {
    let asked = ToolRequest {
        name: &invocation.name,
        arguments: invocation.arguments,
        http: asking.http,
        partner: Some(Partner { asking, message }),
    };
    let begun = invoke::begin(trail, &asked);
    let progress_token = invocation.progress_token.map(|token| token.text().into());
    let revision = asking.revision;
    let call = match begun {
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
pub(super) fn over(ended: Ended, revision: Revision, id: OwnedId) -> Result<Entry, Refusal> {
    match ended {
        // Over HTTP a request that is over a limit has a status of its own; only the tool's own
        // limit is for the model to read.
        Ended { ending: Ending::Limited(limited), trail, .. } if limited.level != Level::Tool => {
            trail.close(audit::Outcome::Error, 0);
            Err(Refusal::Limited(limited))
        }
        ended => Ok(Entry::Done(answered(ended, None, revision, id).reply())),
    }
}

/// The entry of a call that is under way.
pub(super) fn running(
    call: ToolCall,
    revision: Revision,
    id: OwnedId,
    registration: Option<Registration>,
    progress_token: Option<Box<str>>,
) -> Entry {
    let conversation = call.conversation();
    let answering = id.clone();
    let running = async move {
        let ended = call.run(registration).await;
        let shaped = shape_large(&ended, revision).await;
        answered(ended, shaped, revision, answering)
    };
    Entry::Running { call: suspendable(conversation, Box::pin(running), id), progress_token }
}

/// The call, which may ask its client meanwhile where it has a way to do so.
fn suspendable(conversation: Option<Rc<Conversation>>, call: Single, id: OwnedId) -> Single {
    match conversation {
        Some(conversation) => conversation::suspendable(&conversation, call, id),
        None => call,
    }
}

/// The entry of a request that an upstream answers.
fn pass_on(
    asking: &Asking<'_>,
    id: OwnedId,
    message: &Message<'_>,
    request: PassOn,
    mut trail: Trail,
) -> Entry {
    trail.asked = subject(request.method, message);
    let progress_token = mcp::progress_token(message.params()).map(|token| token.text().into());
    let passed = PassedOn::new(trail, request, asking, message);
    match Registration::new(asking.origin.core, asking.session, &id) {
        Ok(registration) => {
            let conversation = passed.conversation();
            let call = Box::pin(passed.run(registration, asking.revision, id.clone()));
            Entry::Running { call: suspendable(conversation, call, id), progress_token }
        }
        Err(error) => {
            passed.refuse(reason_of(&error));
            Entry::Done(Reply::new(id, Err(error)))
        }
    }
}

/// Counts a call that its client cancelled before it was begun; its trail tells of it by itself.
pub(super) fn note_cancelled(origin: &Origin<'_>) {
    let elapsed = origin.arrived.elapsed();
    origin.core.metrics.request(MethodLabel::ToolsCall, OutcomeLabel::Cancelled, elapsed);
}
