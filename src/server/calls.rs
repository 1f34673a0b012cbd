//! Calls: what runs, and how its answer reaches the client.
//!
//! A quick call is answered as plain JSON, or as an event stream that is complete at once. A call
//! that takes longer turns its response into an event stream at that moment: the client gets
//! keep-alives, progress and, in a session, something to resume. What a client's disconnect means
//! depends on whether it could come back: with a session the call goes on, without one it ends.

use std::{
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    conversation::Sink,
    core::Core,
    event_stream::{EventStream, Wire},
    outlet::{Outlet, Purpose},
    refusal::{self, Refusal},
    respond::{self, Echo},
    running::{Job, Outcome, Running, cancelled},
};
use crate::{
    http::LAST_CHUNK,
    mcp::{self, Revision},
    rt::{self, Either},
    sessions::{Hold, Session, SessionId},
    streams::{StreamId, StreamKind, frame},
};

/// The kind of answer a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Json,
    EventStream,
    /// Both are accepted: JSON if the result is quick, a stream from the moment it is not.
    Either,
}

/// How and to whom an answer goes.
#[derive(Debug)]
pub(crate) struct Answering {
    pub(crate) kind: AnswerKind,
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) revision: Revision,
    /// The id of a session this answer opens.
    pub(crate) header: Option<SessionId>,
    pub(crate) echo: Echo,
}

impl Answering {
    fn header(&self) -> Option<&str> {
        self.header.as_ref().map(SessionId::as_str)
    }
}

/// A call whose answer is still open.
pub(crate) struct Waiting {
    pub(crate) job: Job,
    pub(crate) answering: Answering,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("answering", &self.answering).finish_non_exhaustive()
    }
}

impl Waiting {
    /// The client's connection is gone before anything was answered.
    pub(crate) fn client_gone(self) {
        if let Some(way) = &self.job.way {
            way.close();
        }
        if let Some(session) = self.answering.session {
            rt::spawn(finish_unheard(session.hold(), self.job.running));
        }
    }
}

/// How a call's answer came out.
#[derive(Debug)]
pub(crate) enum Settled {
    /// The whole response is in the buffer.
    Written { keep_alive: bool },
    /// The head of an event stream is in the buffer.
    Stream(Box<EventStream>),
    /// Nobody to answer any more.
    ClientGone,
}

/// With `sse_upgrade_after_ms = 0` every answer is a stream; its head waits this long for the
/// answer, so that a quick one is a single write.
const GATHER: Duration = Duration::from_millis(20);
/// A call answered as plain JSON runs this long before its client is watched for a disconnect.
const WATCH_AFTER: Duration = Duration::from_millis(250);
/// How often a client that gave a progress token hears that its call still runs.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// Clients refuse events above a mebibyte or so; larger results go out as JSON where they may.
const EVENT_BYTES_MAX: usize = 1024 * 1024 - 4096;

/// Waits for the call as long as its kind of answer allows, then writes what there is.
pub(crate) async fn settle(
    core: &Rc<Core>,
    mut waiting: Box<Waiting>,
    wire: &mut Wire,
    out: &mut Vec<u8>,
) -> Settled {
    let patience = match waiting.answering.kind {
        AnswerKind::Json => WATCH_AFTER,
        AnswerKind::EventStream => GATHER,
        AnswerKind::Either => core.shared.timing.upgrade_after.max(GATHER),
    };
    if waiting.answering.kind == AnswerKind::Json
        && let Some(way) = &waiting.job.way
    {
        way.only_json();
    }
    let Job { running, way, .. } = &mut waiting.job;
    let settled_by = match way {
        None => race_to(running, rt::sleep(patience)).await,
        // What is said before the answer does not wait for it.
        Some(way) => race_to(running, rt::race(rt::sleep(patience), way.wanted())).await,
    };
    match settled_by {
        // What was said in the same moment comes first.
        Some(outcome) if way.as_ref().is_some_and(|way| way.has_waiting()) => {
            waiting.job.running = Running::Over(Some(outcome));
            open_stream(core, *waiting, out)
        }
        Some(outcome) => settled(core, &waiting, &outcome, out),
        None if waiting.answering.kind == AnswerKind::Json => {
            watched(core, waiting, wire, out).await
        }
        None => open_stream(core, *waiting, out),
    }
}

/// The outcome, unless something else comes first.
async fn race_to(running: &mut Running, other: impl Future) -> Option<Outcome> {
    match rt::race(running, other).await {
        Either::Left(outcome) => Some(outcome),
        Either::Right(_) => None,
    }
}

fn settled(core: &Rc<Core>, waiting: &Waiting, outcome: &Outcome, out: &mut Vec<u8>) -> Settled {
    write(core, &waiting.answering, outcome, &waiting.job.note, out);
    Settled::Written { keep_alive: waiting.answering.echo.keep_alive }
}

/// Writes a whole answer: as JSON, or as an event stream that is complete at once.
pub(crate) fn write(
    core: &Rc<Core>,
    answering: &Answering,
    outcome: &Outcome,
    note: &[u8],
    out: &mut Vec<u8>,
) {
    let echo = &answering.echo;
    // An error that is the whole answer has a status of its own in the era without sessions.
    if answering.revision.is_modern()
        && let Outcome::Reply(reply) = outcome
        && let Some(status) = reply.body.as_ref().err().and_then(refusal::status_of)
    {
        return respond::reply_as(core, out, echo, status, None, reply);
    }
    let is_large = || matches!(outcome, Outcome::Reply(reply) if reply.len() > EVENT_BYTES_MAX);
    let as_stream = match answering.kind {
        AnswerKind::Json => false,
        AnswerKind::EventStream => true,
        AnswerKind::Either => core.shared.timing.upgrade_after.is_zero() && !is_large(),
    };
    if as_stream {
        return complete_stream(core, answering, outcome, note, out);
    }
    match outcome {
        Outcome::Reply(reply) => respond::reply(core, out, echo, answering.header(), reply),
        Outcome::Batch(_) => {
            let payload = outcome.payload().unwrap_or_default();
            respond::json(core, out, echo, answering.header(), &payload);
        }
        Outcome::Plain(plain) => respond::plain(core, out, echo, plain),
        // HTTP wants a response where MCP wants none.
        Outcome::Cancelled(id) => {
            respond::reply(core, out, echo, None, &cancelled(id.clone()));
        }
    }
}

/// A stream that is complete before its first byte is written: one write, and in a session the
/// window that a client resumes from if that write is lost.
fn complete_stream(
    core: &Rc<Core>,
    answering: &Answering,
    outcome: &Outcome,
    note: &[u8],
    out: &mut Vec<u8>,
) {
    respond::stream_head(core, out, &answering.echo, answering.header());
    let payload = outcome.payload();
    let mut streams = core.streams.borrow_mut();
    let now_ms = core.clock.now_ms();
    let stream = answering
        .session
        .as_ref()
        .and_then(|session| streams.open(StreamKind::Post, session.key(), note, now_ms).ok());
    match stream {
        Some(stream) => {
            if primes(answering.revision)
                && let Some(primed) = streams.prime(stream, None, now_ms)
            {
                out.extend_from_slice(&primed.frame);
            }
            if let Some(payload) = payload
                && let Some(published) = streams.publish(stream, &payload, now_ms)
            {
                out.extend_from_slice(&published.frame);
            }
            streams.finish(stream, now_ms);
            core.write_behind.wake();
        }
        // Outside sessions, or with no room for a window: the answer itself still goes out.
        None => {
            if let Some(payload) = payload {
                out.extend_from_slice(&frame::control(None, None, Some(&payload)));
            }
        }
    }
    out.extend_from_slice(LAST_CHUNK);
}

/// Waits for a slow call that must be answered as JSON, watching for the client meanwhile.
async fn watched(
    core: &Rc<Core>,
    mut waiting: Box<Waiting>,
    wire: &mut Wire,
    out: &mut Vec<u8>,
) -> Settled {
    wire.deadline.clear();
    while wire.pipelined.len() < WATCHED_BYTES_MAX {
        let read = wire.reader.read(&mut wire.pipelined, &wire.deadline);
        match rt::race(&mut waiting.job.running, read).await {
            Either::Left(outcome) => return settled(core, &waiting, &outcome, out),
            Either::Right(Ok(read)) if read > 0 => {}
            // A client that only closed its own direction still gets its answer: in a session the
            // call goes on anyway.
            Either::Right(Ok(_)) if waiting.answering.session.is_some() => {
                waiting.answering.echo.keep_alive = false;
                break;
            }
            Either::Right(_) => {
                waiting.client_gone();
                return Settled::ClientGone;
            }
        }
    }
    let outcome = (&mut waiting.job.running).await;
    settled(core, &waiting, &outcome, out)
}

/// Pipelined bytes read while a call is watched; more are left to the kernel.
const WATCHED_BYTES_MAX: usize = 64 * 1024;

/// Turns the response into an event stream; the call goes on in a task of its own.
fn open_stream(core: &Rc<Core>, waiting: Waiting, out: &mut Vec<u8>) -> Settled {
    let Waiting { job, answering } = waiting;
    let keep_alive = answering.echo.keep_alive;
    let outlet = core.outlets.open(Purpose::Answer);
    let (stream, sink, hold) = match &answering.session {
        None => (None, Sink::Outlet(Rc::clone(&outlet)), None),
        Some(session) => {
            let Some(stream) = session_stream(core, session, &answering, &job.note, &outlet) else {
                respond::refuse(core, out, &answering.echo, &Refusal::Busy);
                return Settled::Written { keep_alive };
            };
            (Some(stream), Sink::Stream(stream), Some(session.hold()))
        }
    };
    respond::stream_head(core, out, &answering.echo, answering.header());
    if let Some(way) = &job.way {
        way.open(sink.clone());
    }
    // One for the connection, one for the call: each may be over first.
    let call_hold = answering.session.as_ref().map(Session::hold);
    rt::spawn(finish(core.clone(), job, sink, call_hold));
    Settled::Stream(Box::new(EventStream {
        outlet,
        stream,
        keep_alive,
        hold,
        ends: None,
        place: None,
    }))
}

/// A stream of the session for the answer, attached to the client's connection. `None` where the
/// core or the session has no room for one more.
fn session_stream(
    core: &Core,
    session: &Arc<Session>,
    answering: &Answering,
    note: &[u8],
    outlet: &Outlet,
) -> Option<StreamId> {
    let now_ms = core.clock.now_ms();
    let mut streams = core.streams.borrow_mut();
    let stream = streams.open(StreamKind::Post, session.key(), note, now_ms).ok()?;
    if session.add_stream(stream).is_err() {
        streams.end(stream);
        return None;
    }
    streams.attach(stream, session.key(), None, outlet.id, now_ms);
    if primes(answering.revision)
        && let Some(primed) = streams.prime(stream, None, now_ms)
    {
        outlet.push(primed.frame);
    }
    core.write_behind.wake();
    Some(stream)
}

/// A stream that starts with an event of empty data, so that its client has an id to resume from
/// (MCP 2025-11-25, Streamable HTTP). Clients of older revisions fail on empty data.
fn primes(revision: Revision) -> bool {
    revision >= Revision::V20251125
}

/// Runs a call to its end and sends its answer. Outside sessions the client's disconnect ends it.
async fn finish(core: Rc<Core>, mut job: Job, sink: Sink, hold: Option<Hold>) {
    let outcome = match &sink {
        Sink::Stream(_) => run(&core, &mut job, &sink).await,
        Sink::Outlet(outlet) => match rt::race(run(&core, &mut job, &sink), outlet.gone()).await {
            Either::Left(outcome) => outcome,
            Either::Right(()) => return,
        },
    };
    if let Some(way) = &job.way {
        way.close();
    }
    if let Some(payload) = outcome.payload() {
        sink.send(&core, payload);
    }
    match sink {
        Sink::Stream(stream) => {
            core.finish_stream_here(stream);
            // Finished, it can be resumed for a while but needs no ending.
            if let Some(hold) = &hold {
                hold.session().remove_stream(stream);
            }
        }
        Sink::Outlet(outlet) => outlet.finish(),
    }
}

/// Runs the call, telling a client that gave a progress token now and then that it still runs:
/// until somebody who knows more reports how far it is.
async fn run(core: &Rc<Core>, job: &mut Job, sink: &Sink) -> Outcome {
    let Some(token) = &job.progress_token else { return (&mut job.running).await };
    let started = Instant::now();
    loop {
        if job.way.as_ref().is_some_and(|way| way.reports()) {
            return (&mut job.running).await;
        }
        match rt::race(&mut job.running, rt::sleep(PROGRESS_EVERY)).await {
            Either::Left(outcome) => return outcome,
            Either::Right(()) => {
                let seconds = started.elapsed().as_secs();
                match &job.way {
                    None => sink.send(core, mcp::progress(token, seconds)),
                    Some(way) if way.reports() => {}
                    Some(_) => sink.send(core, mcp::progress_until_reported(token, seconds)),
                }
            }
        }
    }
}

/// A call whose client can no longer hear its answer, but whose session lives: it is not stopped,
/// because the client did not ask for that.
async fn finish_unheard(hold: Hold, running: Running) {
    let _ = running.await;
    drop(hold);
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
