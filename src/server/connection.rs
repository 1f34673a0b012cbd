//! One HTTP connection, from accept to close: read, answer, repeat.
//!
//! The loop owns the socket's halves, the request buffer and the response buffer. It knows HTTP
//! and nothing of what is asked; `pipeline` answers. Pipelined requests are answered in order
//! and written together. Every wait has a deadline: the head and the body of a request, the
//! pause between requests, each write.

use std::{rc::Rc, time::Duration};

use super::{
    calls,
    core::Core,
    event_stream::{self, EventStream, Wire},
    memory::Memory,
    pipeline, respond,
};
use crate::{
    http::{self, HttpError, Progress, RequestReader},
    rt::{self, Connection, Deadline},
};

/// Which plane a connection came in on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    /// Clients: MCP and health.
    Runtime,
    /// Operators, over the admin socket, which only they can open.
    Admin,
    /// Operators, over the loopback admin address, which every program and every web page on this
    /// machine can reach.
    AdminAddress,
}

impl Plane {
    pub(crate) fn is_admin(self) -> bool {
        matches!(self, Self::Admin | Self::AdminAddress)
    }
}

/// What a request led to.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The response is in the buffer; the connection goes on, or closes after it.
    Written { keep_alive: bool },
    /// A call is under way; its answer is still open.
    Waiting(Box<calls::Waiting>),
    /// The head of an event stream is in the buffer; the connection carries that stream now.
    Stream(Box<EventStream>),
}

/// How much is read at a time from a client that sends requests.
const READ_BYTES: usize = 4096;
/// Responses of pipelined requests are gathered up to this size before they are written.
const GATHERED_BYTES_MAX: usize = 64 * 1024;
/// A response buffer that grew beyond this is not kept for the next response.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// After a refusal the rest of what the client sends is read for so long and so far, because
/// closing a socket with unread bytes resets it and the client would lose the refusal.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// Serves a new connection to its end.
pub(crate) async fn serve(core: Rc<Core>, plane: Plane, connection: Connection) {
    // Operators get in even when clients have taken every place.
    let place = core.connections.admit();
    if place.is_none() && plane == Plane::Runtime {
        core.metrics.connections_refused.increment();
        return;
    }
    let Connection { reader, writer, .. } = connection;
    let wire =
        Wire { reader, writer, deadline: Deadline::new(), pipelined: Vec::new(), _place: place };
    core.metrics.connections_accepted.increment();
    requests(core, plane, wire).await;
}

/// Goes on with the connection's next request after an event stream on it ended.
pub(crate) fn resume(core: Rc<Core>, plane: Plane, wire: Wire) {
    rt::spawn(requests(core, plane, wire));
}

async fn requests(core: Rc<Core>, plane: Plane, mut wire: Wire) {
    let mut requests = RequestReader::new(core.shared.http_limits);
    requests.buffer().append(&mut wire.pipelined);
    wire.reader.set_read_size(READ_BYTES);
    let mut memory = Memory::default();
    let mut out = Vec::new();
    let mut phase = Phase::Idle;
    loop {
        match requests.poll() {
            Ok(Progress::Ready) => {
                phase = Phase::Idle;
                core.metrics.http_requests.increment();
                let answer =
                    pipeline::answer(&core, plane, &mut memory, &requests.request(), &mut out)
                        .await;
                requests.consume();
                match go_on(&core, answer, &mut wire, &mut out).await {
                    // A call that was watched for its client's disconnect read on meanwhile.
                    Next::Request => requests.buffer().append(&mut wire.pipelined),
                    Next::Close => return close(wire, out, &core).await,
                    Next::Stream(stream) => {
                        // What hangs on the stream is undone where it ends, so it must run even
                        // if its head did not get through.
                        if !write(&core, &mut wire, &mut out).await {
                            stream.outlet.drop_connection();
                        }
                        // Not the buffer itself: a stream holds what it was sent, no more.
                        wire.pipelined = requests.buffer().as_slice().to_vec();
                        rt::spawn(event_stream::run(core, plane, *stream, wire));
                        return;
                    }
                }
            }
            Ok(Progress::NeedMore { send_continue }) => {
                if send_continue {
                    out.extend_from_slice(http::CONTINUE);
                }
                if !out.is_empty() && !write(&core, &mut wire, &mut out).await {
                    return;
                }
                match read(&core, &mut requests, &mut wire, &mut phase).await {
                    Read::More => {}
                    Read::End => return close(wire, out, &core).await,
                    Read::TooSlow => return refuse(&core, &HttpError::TimedOut, wire).await,
                }
            }
            Err(error) => {
                if !out.is_empty() && !write(&core, &mut wire, &mut out).await {
                    return;
                }
                return refuse(&core, &error, wire).await;
            }
        }
        if out.len() > GATHERED_BYTES_MAX && !write(&core, &mut wire, &mut out).await {
            return;
        }
    }
}

/// What part of a request the connection waits for; each has its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Head,
    Body,
}

enum Read {
    More,
    End,
    TooSlow,
}

/// Reads once. A head has one deadline from its first byte on; a body has one for each read, so
/// that a large body on a slow line passes while a stalled one does not.
async fn read(
    core: &Core,
    requests: &mut RequestReader,
    wire: &mut Wire,
    phase: &mut Phase,
) -> Read {
    let now = if requests.is_idle() {
        Phase::Idle
    } else if requests.is_in_body() {
        Phase::Body
    } else {
        Phase::Head
    };
    if now != Phase::Head || *phase != Phase::Head {
        wire.deadline.set(match now {
            Phase::Idle => core.shared.timing.idle,
            Phase::Head => core.shared.timing.head,
            Phase::Body => core.shared.timing.body,
        });
    }
    *phase = now;
    let stopping = now == Phase::Idle && core.stop.is_stopped();
    if stopping {
        return Read::End;
    }
    let read = wire.reader.read(requests.buffer(), &wire.deadline);
    let read = if now == Phase::Idle {
        match rt::race(read, core.stop.stopped()).await {
            rt::Either::Left(read) => read,
            rt::Either::Right(()) => return Read::End,
        }
    } else {
        read.await
    };
    match read {
        Ok(0) => Read::End,
        Ok(read) => {
            core.metrics.received_bytes.add(read as u64);
            Read::More
        }
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut && now != Phase::Idle => {
            Read::TooSlow
        }
        Err(_) => Read::End,
    }
}

enum Next {
    Request,
    Close,
    Stream(Box<EventStream>),
}

async fn go_on(core: &Rc<Core>, answer: Answer, wire: &mut Wire, out: &mut Vec<u8>) -> Next {
    match answer {
        Answer::Written { keep_alive: true } => Next::Request,
        Answer::Written { keep_alive: false } => Next::Close,
        Answer::Stream(stream) => Next::Stream(stream),
        Answer::Waiting(waiting) => {
            // What earlier requests of the pipeline were answered does not wait for this call.
            if !out.is_empty() && !write(core, wire, out).await {
                waiting.client_gone();
                return Next::Close;
            }
            match Box::pin(calls::settle(core, waiting, wire, out)).await {
                calls::Settled::Written { keep_alive: true } => Next::Request,
                calls::Settled::Written { keep_alive: false } | calls::Settled::ClientGone => {
                    Next::Close
                }
                calls::Settled::Stream(stream) => Next::Stream(stream),
            }
        }
    }
}

/// Writes and empties the response buffer; false when the client is gone or does not read.
async fn write(core: &Core, wire: &mut Wire, out: &mut Vec<u8>) -> bool {
    let within = core.shared.timing.write;
    core.metrics.sent_bytes.add(out.len() as u64);
    let (sent, back) = wire.writer.write_all(std::mem::take(out), &wire.deadline, within).await;
    if back.capacity() <= KEPT_BYTES_MAX {
        *out = back;
    }
    sent.is_ok()
}

async fn close(mut wire: Wire, mut out: Vec<u8>, core: &Core) {
    if out.is_empty() || write(core, &mut wire, &mut out).await {
        let _ = wire.writer.shutdown().await;
    }
}

/// Answers a request that could not be read, then closes gently.
async fn refuse(core: &Core, error: &HttpError, mut wire: Wire) {
    core.metrics.requests_malformed.increment();
    let mut out = Vec::new();
    respond::unreadable(core, error, &mut out);
    if !write(core, &mut wire, &mut out).await || wire.writer.shutdown().await.is_err() {
        return;
    }
    wire.deadline.set(LINGER);
    let mut discarded = 0;
    let mut scrap = Vec::new();
    while discarded < LINGER_BYTES_MAX {
        scrap.clear();
        match wire.reader.read(&mut scrap, &wire.deadline).await {
            Ok(0) | Err(_) => return,
            Ok(read) => discarded += read,
        }
    }
}
