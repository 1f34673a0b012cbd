//! HTTP+SSE (MCP 2024-11-05): a stream that carries every answer, and an address to post to.
//!
//! The session lives as long as the stream. Messages may come on any core; their answers find the
//! stream by its id.

use std::{cell::OnceCell, rc::Rc, sync::Arc};

use super::{
    connection::Answer,
    conversation::Sink,
    core::Core,
    event_stream::{Ends, EventStream},
    execute::{self, Asking, Work},
    guard, offload,
    outlet::Purpose,
    pipeline::Admission,
    refusal::Refusal,
    respond,
    running::Outcome,
    session::{self, Introduction},
};
use crate::{
    audit::Transport,
    http::{self, accept::Accepts},
    mcp::{Initialization, Revision},
    rpc::{self, Incoming, RpcError},
    rt,
    sessions::{ClientCapabilities, ClientInfo, Session},
    streams::{StreamId, StreamKind, frame},
};

/// Answers the GET that opens a stream and its session. The first event says where to post, as a
/// relative reference, so that it holds behind a proxy that rewrites paths.
pub(crate) fn stream(admission: Admission<'_>) -> Result<Answer, Refusal> {
    let Admission { core, view, caller, limits, request, echo, out, .. } = admission;
    let sse = &core.shared.settings.runtime.mcp.sse;
    if !(sse.enabled && sse.legacy_transport) {
        return Err(Refusal::NoSuchPath);
    }
    let Accepts { event_stream, .. } = request.accepts();
    if !event_stream {
        return Err(Refusal::NotAcceptable { needed: "text/event-stream" });
    }
    guard::check_streams(request)?;
    let introduction = Introduction {
        // Until `initialize` says otherwise.
        revision: Revision::V20241105,
        client: ClientInfo { name: "", version: "" },
        capabilities: ClientCapabilities::default(),
    };
    let place = limits.listen().map_err(Refusal::Limited)?;
    let (id, session) = session::open_unkept(core, &view, caller, &introduction)?;
    session.bind_to_connection();
    let now_ms = core.clock.now_ms();
    let outlet = core.outlets.open(Purpose::Everything);
    outlet.set_listener(caller);
    let mut streams = core.streams.borrow_mut();
    let Ok(stream) = streams.open(StreamKind::Legacy, session.key(), &[], now_ms) else {
        drop(streams);
        session::end(core, session.key());
        return Err(Refusal::Busy);
    };
    streams.attach(stream, session.key(), None, outlet.id, now_ms);
    drop(streams);
    // A session this new has no other stream.
    let _ = session.replace_standing(None, stream);
    let up = if request.path().ends_with('/') { "../" } else { "" };
    let endpoint = format!("{up}messages?sessionId={}", id.as_str());
    outlet.push(Arc::new(frame::control(Some("endpoint"), None, Some(endpoint.as_bytes()))));
    respond::stream_head(core, out, echo, Some(id.as_str()));
    Ok(Answer::Stream(Box::new(EventStream {
        outlet,
        stream: Some(stream),
        keep_alive: echo.keep_alive,
        hold: Some(session.hold()),
        ends: Some(Box::new(Ends::Session(session.key()))),
        place: Some(place),
    })))
}

/// Answers a POST of a message: accepted, the answer comes on the stream.
pub(crate) async fn messages(mut admission: Admission<'_>) -> Result<Answer, Refusal> {
    let request = admission.request;
    guard::check_content_type(request)?;
    let body = offload::check(admission.core, &admission.view, request.body()).await?;
    let body = body.map_err(RpcError::from)?;
    let incoming = rpc::read(body.root())?;
    let (session, stream) = match prepare(&mut admission, &incoming).await {
        Ok(prepared) => prepared,
        Err(refusal) => {
            let origin = admission.origin(Transport::HttpSse, None);
            execute::note_refused(&origin, &incoming, &refusal);
            return Err(refusal);
        }
    };
    let asking = Asking {
        origin: admission.origin(Transport::HttpSse, Some(&session)),
        revision: session.revision(),
        session: Some(&session),
        // The transport opens sessions before `initialize`.
        initialized: session.is_negotiated(),
        envelope: None,
        http: *request,
        way: OnceCell::new(),
    };
    let mut negotiated = |initialization: &Initialization<'_>| {
        session.negotiate(initialization.revision, initialization.capabilities);
        Ok(session.clone())
    };
    let work = execute::begin(&asking, &incoming, &mut negotiated).await?;
    let Admission { core, echo, out, .. } = admission;
    match work {
        Work::Nothing => {}
        Work::Done(outcome) => send(core, stream, &outcome),
        Work::Running(job) => {
            let (core, hold) = (core.clone(), session.hold());
            if let Some(way) = &job.way {
                way.open(Sink::Stream(stream));
            }
            rt::spawn(async move {
                let outcome = job.running.await;
                if let Some(way) = &job.way {
                    way.close();
                }
                send(&core, stream, &outcome);
                drop(hold);
            });
        }
    }
    respond::body(core, out, echo, 202, "text/plain; charset=utf-8", b"Accepted");
    Ok(Answer::Written { keep_alive: echo.keep_alive })
}

/// The session the message belongs to, and the stream its answer goes to.
async fn prepare(
    admission: &mut Admission<'_>,
    incoming: &Incoming<'_>,
) -> Result<(Arc<Session>, StreamId), Refusal> {
    execute::charge_single(&admission.origin(Transport::HttpSse, None), incoming)?;
    let id = http::query_pairs(admission.request.query().unwrap_or_default())
        .find(|(name, _)| name == "sessionId")
        .map(|(_, value)| value);
    let id = id.ok_or(Refusal::SessionRequired)?;
    let Admission { core, memory, view, caller, arrived_ms, .. } = admission;
    let session = session::find(core, memory, view, *caller, id.as_bytes(), *arrived_ms).await?;
    // Answers on the standing stream of another transport's session would break its protocol.
    let stream = session.standing().filter(|_| session.is_connection_bound());
    let stream = stream.ok_or(Refusal::UnknownSession)?;
    if matches!(incoming, Incoming::Batch(_)) {
        let error = RpcError::invalid_request("HTTP+SSE has no batches; send one message a POST");
        return Err(error.into());
    }
    Ok((session, stream))
}

fn send(core: &Rc<Core>, stream: StreamId, outcome: &Outcome) {
    if let Some(payload) = outcome.payload() {
        core.publish(stream, payload);
    }
}
