//! Streamable HTTP: POST, GET and DELETE of an endpoint.
//!
//! Requests of both eras come to one URL and are told apart one by one: those with sessions (MCP
//! 2025-03-26 to 2025-11-25), and those that stand alone (2026-07-28, see `modern`).

use std::{borrow::Cow, cell::OnceCell, rc::Rc, sync::Arc, time::Duration};

use super::{
    calls::{self, AnswerKind, Answering, Waiting},
    connection::Answer,
    core::Core,
    event_stream::EventStream,
    execute::{self, Asking, Work},
    guard, listen, modern, offload,
    outlet::{Outlet, Purpose},
    pipeline::Admission,
    refusal::Refusal,
    respond::{self, Echo},
    session::{self, Introduction},
};
use crate::{
    audit::Transport,
    catalog::View,
    governance::{Handles, Listening},
    http::{Known, RequestView, accept::Accepts},
    identity::Caller,
    mcp::{Envelope, Initialization, Revision},
    rpc::{self, Incoming, Message, RpcError},
    rt,
    sessions::{Session, SessionId},
    settings::Connected,
    streams::{EventId, StreamId, StreamKind, frame},
};

/// Answers a POST: one message, or a batch where the revision has them.
pub(crate) async fn post(mut admission: Admission<'_>) -> Result<Answer, Refusal> {
    let request = admission.request;
    guard::check_content_type(request)?;
    let body = offload::check(admission.core, &admission.view, request.body()).await?;
    let body = body.map_err(RpcError::from)?;
    let incoming = rpc::read(body.root())?;
    let is_modern = modern::is_modern(request, &incoming);
    let prepared = if is_modern {
        modern::prepare(&admission, &incoming)
    } else {
        prepare(&mut admission, &incoming).await
    };
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(refusal) => {
            let mut origin = admission.origin(Transport::StreamableHttp, None);
            origin.revision = is_modern.then_some(Revision::V20260728);
            execute::note_refused(&origin, &incoming, &refusal);
            return Err(refusal);
        }
    };
    let Prepared { declared, kind, session, envelope } = prepared;
    if envelope.is_some()
        && let Some(asked) = listen::asked(&admission, &incoming)
    {
        return listen::open(admission, asked);
    }
    let revision = session.as_ref().map(|session| session.revision()).or(declared);
    let mut origin = admission.origin(Transport::StreamableHttp, session.as_deref());
    origin.revision = revision;
    let asking = Asking {
        origin,
        revision: revision.unwrap_or(Revision::ASSUMED),
        session: session.as_ref(),
        initialized: session.is_some(),
        envelope: envelope.as_ref(),
        http: *request,
        way: OnceCell::new(),
    };
    let (core, view, caller) = (admission.core, &admission.view, admission.caller);
    let mut opened = None;
    let mut open_session = |initialization: &Initialization<'_>| {
        open_session(core, view, caller, initialization, &mut opened)
    };
    let work = execute::begin(&asking, &incoming, &mut open_session).await?;
    let revision = asking.revision;
    let (session, header) = match opened {
        Some((id, session)) => (Some(session), Some(id)),
        None => (session, None),
    };
    let revision = session.as_ref().map_or(revision, |session| session.revision());
    let Admission { core, echo, out, .. } = admission;
    let answering = Answering { kind, session, revision, header, echo: echo.clone() };
    Ok(match work {
        Work::Nothing => {
            respond::empty(core, out, echo, 202);
            Answer::Written { keep_alive: echo.keep_alive }
        }
        Work::Done(outcome) => {
            calls::write(core, &answering, &outcome, &[], out);
            Answer::Written { keep_alive: echo.keep_alive }
        }
        Work::Running(job) => Answer::Waiting(Box::new(Waiting { job, answering })),
    })
}

/// Opens the session of a POST. Of a batch of initializations the last one counts.
fn open_session(
    core: &Rc<Core>,
    view: &Arc<View>,
    caller: Caller,
    initialization: &Initialization<'_>,
    opened: &mut Option<(SessionId, Arc<Session>)>,
) -> Result<Arc<Session>, Refusal> {
    let introduction = Introduction {
        revision: initialization.revision,
        client: initialization.client(),
        capabilities: initialization.capabilities,
    };
    let fresh = session::open(core, view, caller, &introduction)?;
    let session = fresh.1.clone();
    if let Some((_, older)) = opened.replace(fresh) {
        session::end(core, older.key());
    }
    Ok(session)
}

/// What is settled about a POST before its messages are looked at one by one.
pub(super) struct Prepared<'a> {
    pub(super) declared: Option<Revision>,
    pub(super) kind: AnswerKind,
    pub(super) session: Option<Arc<Session>>,
    /// What a request of the era without sessions says of itself.
    pub(super) envelope: Option<Envelope<'a>>,
}

async fn prepare<'a>(
    admission: &mut Admission<'_>,
    incoming: &Incoming<'_>,
) -> Result<Prepared<'a>, Refusal> {
    execute::charge_single(&admission.origin(Transport::StreamableHttp, None), incoming)?;
    // Of an `initialize` it says no more than its parameters.
    let declared = match revision_header(admission.request)? {
        Some(declared) if declared.is_modern() => None,
        declared => declared,
    };
    let kind = answer_kind(admission.core, admission.request)?;
    let session = session::named(admission).await?;
    if session.is_none() && !initializes(incoming) {
        allow_without_session(admission.core, &admission.view)?;
    }
    Ok(Prepared { declared, kind, session, envelope: None })
}

pub(super) fn initializes(incoming: &Incoming<'_>) -> bool {
    let is_initialize = |message: &Message<'_>| matches!(message, Message::Request { method, .. } if method == "initialize");
    match incoming {
        Incoming::Single(message) => is_initialize(message),
        Incoming::Batch(entries) => {
            entries.iter().any(|entry| entry.as_ref().is_ok_and(&is_initialize))
        }
    }
}

fn allow_without_session(core: &Core, view: &View) -> Result<(), Refusal> {
    let by_default = core.shared.settings.runtime.mcp.sse.require_session;
    if view.require_session.unwrap_or(by_default) { Err(Refusal::SessionRequired) } else { Ok(()) }
}

/// The revision of `MCP-Protocol-Version`, if the header is there.
fn revision_header(request: &RequestView<'_>) -> Result<Option<Revision>, Refusal> {
    let Some(value) = request.header(Known::McpProtocolVersion) else { return Ok(None) };
    let revision = Revision::parse(value).filter(|_| !request.repeated(Known::McpProtocolVersion));
    revision.map(Some).ok_or_else(|| Refusal::UnsupportedRevision {
        asked: Cow::from(String::from_utf8_lossy(value.get(..40).unwrap_or(value)).into_owned()),
    })
}

/// The kind of answer: what the client accepts, leniently read; strictly where the operator says.
pub(super) fn answer_kind(core: &Core, request: &RequestView<'_>) -> Result<AnswerKind, Refusal> {
    let mcp = &core.shared.settings.runtime.mcp;
    let Accepts { json, event_stream, absent_or_any } = request.accepts();
    if mcp.strict_accept && !(json && event_stream && !absent_or_any) {
        return Err(Refusal::NotAcceptable { needed: "application/json and text/event-stream" });
    }
    // HTTP/1.0 has no chunks, so no stream that can be told from one that broke off.
    match (json, event_stream && mcp.sse.enabled && !request.is_http_10()) {
        (true, _) if absent_or_any => Ok(AnswerKind::Json),
        (true, true) => Ok(AnswerKind::Either),
        (true, false) => Ok(AnswerKind::Json),
        (false, true) => Ok(AnswerKind::EventStream),
        (false, false) => {
            Err(Refusal::NotAcceptable { needed: "application/json or text/event-stream" })
        }
    }
}

/// Answers a GET: the standalone stream of a session, or the rest of a stream that broke off.
pub(crate) async fn get(mut admission: Admission<'_>) -> Result<Answer, Refusal> {
    let request = admission.request;
    let Accepts { event_stream, absent_or_any, .. } = request.accepts();
    if !event_stream || absent_or_any {
        return Err(Refusal::NotAcceptable { needed: "text/event-stream" });
    }
    guard::check_streams(request)?;
    if revision_header(request)?.is_some_and(Revision::is_modern) {
        return Err(modern::METHOD_NOT_ALLOWED);
    }
    let session = session::named(&mut admission).await?;
    let Admission { core, view, caller, limits, echo, out, .. } = admission;
    // A client that comes back takes the place of its own stream, which is given up for it.
    let may_wait = session.as_ref().is_some_and(|session| session.standing().is_some());
    let place = match limits.listen() {
        Ok(place) => Some(place),
        Err(_) if may_wait => None,
        Err(limited) => return Err(Refusal::Limited(limited)),
    };
    let outlet = core.outlets.open(Purpose::Standing);
    outlet.set_listener(caller);
    let Some(session) = session else {
        allow_without_session(core, &view)?;
        outlet.set_audience(view.tenant.clone(), view.client_application.clone());
        greet(core, &outlet, None);
        respond::stream_head(core, out, echo, None);
        let keep_alive = echo.keep_alive;
        return Ok(stream(EventStream {
            outlet,
            stream: None,
            keep_alive,
            hold: None,
            ends: None,
            place,
        }));
    };
    let presented = request.header(Known::LastEventId).and_then(EventId::parse);
    let Some(event) = presented else {
        let standing = Box::pin(stand(core, &session, &outlet, true)).await?;
        let place = freed(core, &limits, place, standing, &outlet).await?;
        return Ok(opened(core, &session, standing, outlet, place, echo, out));
    };
    greet(core, &outlet, None);
    if Box::pin(resume(core, &session, event, &outlet)).await? {
        let place = freed(core, &limits, place, event.stream, &outlet).await?;
        return Ok(opened(core, &session, event.stream, outlet, place, echo, out));
    }
    // The stream has aged out: nothing is replayed. Its client goes on with a standalone stream,
    // unless it has one: then the lost stream is over, and the other one is left alone.
    match session.standing() {
        Some(standing) if Box::pin(core.is_stream_alive(standing)).await => {
            outlet.finish();
            respond::stream_head(core, out, echo, None);
            let keep_alive = echo.keep_alive;
            Ok(stream(EventStream {
                outlet,
                stream: None,
                keep_alive,
                hold: None,
                ends: None,
                place,
            }))
        }
        _ => {
            let standing = Box::pin(stand(core, &session, &outlet, false)).await?;
            let place = freed(core, &limits, place, standing, &outlet).await?;
            Ok(opened(core, &session, standing, outlet, place, echo, out))
        }
    }
}

fn opened(
    core: &Core,
    session: &Arc<Session>,
    of: StreamId,
    outlet: super::outlet::OpenOutlet,
    place: Listening,
    echo: &Echo,
    out: &mut Vec<u8>,
) -> Answer {
    respond::stream_head(core, out, echo, None);
    let hold = Some(session.hold());
    stream(EventStream {
        outlet,
        stream: Some(of),
        keep_alive: echo.keep_alive,
        hold,
        ends: None,
        place: Some(place),
    })
}

/// How long the connection that is given up for a new one may take to go.
const FREED_WITHIN: Duration = Duration::from_secs(1);
const FREED_STEP: Duration = Duration::from_millis(10);

/// The place of a stream that took over another connection's: it is free once that one is gone.
async fn freed(
    core: &Rc<Core>,
    limits: &Handles,
    place: Option<Listening>,
    of: StreamId,
    outlet: &Outlet,
) -> Result<Listening, Refusal> {
    if let Some(place) = place {
        return Ok(place);
    }
    let mut waited = Duration::ZERO;
    loop {
        match limits.listen() {
            Ok(place) => return Ok(place),
            Err(limited) if waited >= FREED_WITHIN => {
                core.detach(of, outlet.id);
                return Err(Refusal::Limited(limited));
            }
            Err(_) => {
                rt::sleep(FREED_STEP).await;
                waited += FREED_STEP;
            }
        }
    }
}

fn stream(stream: EventStream) -> Answer {
    Answer::Stream(Box::new(stream))
}

/// Goes on with the stream a client presents an event of, whichever core has it. What followed
/// that event is replayed; a stream of the session that is standing is taken over.
async fn resume(
    core: &Rc<Core>,
    session: &Session,
    event: EventId,
    outlet: &Outlet,
) -> Result<bool, Refusal> {
    let attached = core.attach(event, session.key(), outlet.id).await;
    let Some(kind) = attached.map_err(|_| Refusal::Busy)? else { return Ok(false) };
    if kind == StreamKind::Standing {
        // After a restart the session does not know its stream any more.
        let current = session.standing();
        if current != Some(event.stream)
            && session.replace_standing(current, event.stream).is_ok()
            && let Some(older) = current
        {
            core.end_stream(older);
        }
    }
    Ok(true)
}

/// Opens the session's standalone stream. One whose client lives is not displaced by a client
/// that cannot show it is the same one, unless that client asks a second time.
async fn stand(
    core: &Rc<Core>,
    session: &Arc<Session>,
    outlet: &Outlet,
    greets: bool,
) -> Result<StreamId, Refusal> {
    let current = session.standing();
    if let Some(current) = current
        && core.is_stream_alive(current).await
        && !session.is_refused_again(core.clock.now_ms())
    {
        return Err(Refusal::StreamTaken);
    }
    let now_ms = core.clock.now_ms();
    let mut streams = core.streams.borrow_mut();
    let fresh = streams
        .open(StreamKind::Standing, session.key(), &[], now_ms)
        .map_err(|_| Refusal::Busy)?;
    if session.replace_standing(current, fresh).is_err() {
        streams.end(fresh);
        return Err(Refusal::StreamTaken);
    }
    streams.attach(fresh, session.key(), None, outlet.id, now_ms);
    let retry_ms = core.shared.settings.runtime.mcp.sse.retry_ms;
    let primed = (session.revision() >= Revision::V20251125)
        .then(|| streams.prime(fresh, Some(retry_ms), now_ms))
        .flatten();
    drop(streams);
    core.write_behind.wake();
    if let Some(older) = current {
        core.end_stream(older);
    }
    match primed {
        Some(primed) if greets => greet(core, outlet, Some(primed.frame)),
        Some(primed) => outlet.push(primed.frame),
        None if greets => greet(core, outlet, None),
        None => {}
    }
    Ok(fresh)
}

/// The first bytes of a standalone stream: how soon to reconnect, and that it stands.
fn greet(core: &Core, outlet: &Outlet, primed: Option<Arc<Vec<u8>>>) {
    let sse = &core.shared.settings.runtime.mcp.sse;
    let first = primed.unwrap_or_else(|| Arc::new(frame::control(None, Some(sse.retry_ms), None)));
    outlet.push(first);
    match sse.connected {
        Connected::Comment => outlet.push(Arc::new(frame::comment("connected"))),
        Connected::Event => {
            outlet.push(Arc::new(frame::control(Some("connected"), None, Some(b"{}"))));
        }
        Connected::Off => {}
    }
}

/// Answers a DELETE: the session and all its streams are over.
pub(crate) async fn delete(mut admission: Admission<'_>) -> Result<Answer, Refusal> {
    if revision_header(admission.request)?.is_some_and(Revision::is_modern) {
        return Err(modern::METHOD_NOT_ALLOWED);
    }
    let session = session::named(&mut admission).await?.ok_or(Refusal::SessionRequired)?;
    admission.memory.forget_session();
    let Admission { core, echo, out, .. } = admission;
    if !session::end_by_client(core, session.key(), echo.correlation.as_deref()) {
        return Err(Refusal::UnknownSession);
    }
    respond::empty(core, out, echo, 204);
    Ok(Answer::Written { keep_alive: echo.keep_alive })
}
