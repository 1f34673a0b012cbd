//! One HTTP connection, from accept to close: read, answer, repeat.
//!
//! The loop owns the socket's halves, the request buffer and the response buffer. It knows HTTP
//! and nothing of what is asked; `pipeline` answers. Pipelined requests are answered in order
//! and written together. Every wait has a deadline: the head and the body of a request, the
//! pause between requests, each write.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use super::{
    calls,
    connections::HeldBytes,
    core::Core,
    event_stream::{self, EventStream, Wire},
    memory::Memory,
    pipeline,
    refusal::Refusal,
    respond::{self, Echo},
};
use crate::{
    http::{self, HttpError, Limits, Progress, RequestReader},
    rt::{self, Connection, Deadline, Peer},
};

/// Which plane a connection came in on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    /// Clients: MCP and health.
    Runtime,
    /// Operators, over the admin socket, which only they can open.
    Admin {
        /// The user at the other end, where the system tells.
        user: Option<u32>,
    },
    /// Operators, over the loopback admin address, which every program and every web page on this
    /// machine can reach.
    AdminAddress,
}

impl Plane {
    pub(crate) fn is_admin(self) -> bool {
        matches!(self, Self::Admin { .. } | Self::AdminAddress)
    }

    /// The same, knowing who is at the other end.
    fn with(self, peer: Peer) -> Self {
        match (self, peer) {
            (Self::Admin { .. }, Peer::Unix { user }) => Self::Admin { user },
            (plane, _) => plane,
        }
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
/// The least rate of a request's body, beyond its first `http.body_timeout_ms`.
const BODY_BYTES_PER_SECOND_MIN: u64 = 16 * 1024;
/// The largest body operators may send.
const ADMIN_BODY_BYTES_MAX: usize = 256 * 1024 * 1024;
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
    let Connection { reader, writer, peer } = connection;
    let plane = plane.with(peer);
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
    let mut requests = RequestReader::new(limits(&core, plane));
    requests.buffer().append(&mut wire.pipelined);
    wire.reader.set_read_size(READ_BYTES);
    let mut memory = Memory::default();
    let mut out = Vec::new();
    let mut waiting = Waiting::new(&core);
    loop {
        match requests.poll() {
            Ok(Progress::Ready) => {
                waiting.request_is_whole();
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
                if let Some(head) = requests.partial().filter(|_| waiting.phase != Phase::Body)
                    && requests.is_in_body()
                    && let Err((refusal, echo)) =
                        pipeline::judge_head(&core, plane, &mut memory, &head)
                {
                    pipeline::refuse(&core, &head, &echo, &refusal, &mut out);
                    return linger(&core, wire, out).await;
                }
                if send_continue {
                    out.extend_from_slice(http::CONTINUE);
                }
                if !out.is_empty() && !write(&core, &mut wire, &mut out).await {
                    return;
                }
                match read(&core, &mut requests, &mut wire, &mut waiting).await {
                    Read::More => {}
                    Read::End => return close(wire, out, &core).await,
                    Read::TooSlow => return refuse(&core, &HttpError::TimedOut, wire).await,
                    Read::TooMuch => {
                        respond::refuse(&core, &mut out, &Echo::default(), &Refusal::Busy);
                        return linger(&core, wire, out).await;
                    }
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

/// What a connection waits for, since when, and what of it is held already.
struct Waiting {
    phase: Phase,
    since: Instant,
    held: HeldBytes,
}

impl Waiting {
    fn new(core: &Core) -> Self {
        let held = HeldBytes::none(core.connections.clone());
        Self { phase: Phase::Idle, since: Instant::now(), held }
    }

    fn request_is_whole(&mut self) {
        self.phase = Phase::Idle;
        self.held.set(0);
    }

    /// How long the next read may take. A head has one deadline from its first byte on. A body may
    /// pause for so long and no longer, and must come at a rate that ends it some day.
    fn within(&mut self, core: &Core, phase: Phase, received: usize) -> Duration {
        if phase != self.phase {
            self.phase = phase;
            self.since = Instant::now();
        }
        let timing = &core.shared.timing;
        match phase {
            Phase::Idle => timing.idle,
            Phase::Head => timing.head.saturating_sub(self.since.elapsed()),
            Phase::Body => {
                let earned = received as u64 / BODY_BYTES_PER_SECOND_MIN;
                let allowed = timing.body + Duration::from_secs(earned);
                timing.body.min(allowed.saturating_sub(self.since.elapsed()))
            }
        }
    }
}

enum Read {
    More,
    End,
    TooSlow,
    /// The core holds as many bytes of unfinished bodies as it may.
    TooMuch,
}

/// Reads once.
async fn read(
    core: &Core,
    requests: &mut RequestReader,
    wire: &mut Wire,
    waiting: &mut Waiting,
) -> Read {
    let phase = if requests.is_idle() {
        Phase::Idle
    } else if requests.is_in_body() {
        Phase::Body
    } else {
        Phase::Head
    };
    if phase == Phase::Idle && core.stop.is_stopped() {
        return Read::End;
    }
    let received = requests.buffer().len();
    if phase == Phase::Body && !waiting.held.set(received) {
        return Read::TooMuch;
    }
    wire.deadline.set(waiting.within(core, phase, received));
    let read = wire.reader.read(requests.buffer(), &wire.deadline);
    let read = if phase == Phase::Idle {
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
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut && phase != Phase::Idle => {
            Read::TooSlow
        }
        Err(_) => Read::End,
    }
}

/// The limits of a plane's requests. Operators' files may be large; only they can send them.
fn limits(core: &Core, plane: Plane) -> Limits {
    let limits = core.shared.http_limits;
    if plane.is_admin() {
        Limits { body_bytes_max: limits.body_bytes_max.max(ADMIN_BODY_BYTES_MAX), ..limits }
    } else {
        limits
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
async fn refuse(core: &Core, error: &HttpError, wire: Wire) {
    core.metrics.requests_malformed.increment();
    let mut out = Vec::new();
    respond::unreadable(core, error, &mut out);
    linger(core, wire, out).await;
}

/// Writes a refusal and reads a little of what the client still sends, so that it gets to see it.
async fn linger(core: &Core, mut wire: Wire, mut out: Vec<u8>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of<A, B, C, F>(_: fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_connection_between_requests_is_a_small_task() {
        let bytes = bytes_of(requests);
        assert!(bytes <= 4096, "{bytes}");
    }
}
