//! The task that owns a connection while it carries an event stream: writes frames as they come,
//! a comment when nothing came for a while, and notices when the client is gone.
//!
//! An idle stream is this task and nothing else, so it holds as little as it can: no request
//! buffer, no response buffer, one deadline.

use std::{rc::Rc, sync::Arc, time::Duration};

use super::{
    connection::{self, Plane},
    connections::Place,
    core::Core,
    outlet::{OpenOutlet, OutletState, Purpose},
    session,
    watch::Watch,
};
use crate::{
    governance::Listening,
    http,
    rt::{self, Deadline, Either, Reader, Writer},
    sessions::Hold,
    streams::{SessionKey, StreamId},
};

/// What is read at a time from a client that has nothing to say.
const WATCH_READ_BYTES: usize = 64;
/// Pipelined bytes kept while a stream is open; a client that sends more is not read further.
const PIPELINED_BYTES_MAX: usize = 64 * 1024;
/// Frames that wait together are sent in one write up to this size.
const WRITE_BYTES_MAX: usize = 64 * 1024;
/// How long a probed client has to acknowledge what it was sent.
const PROBE_WAIT: Duration = Duration::from_millis(400);
const PROBE_STEP: Duration = Duration::from_millis(20);

/// A response that has become an event stream; its head is already on its way.
#[derive(Debug)]
pub(crate) struct EventStream {
    pub(crate) outlet: OpenOutlet,
    /// The stream it shows; `None` outside sessions, where nothing can be resumed.
    pub(crate) stream: Option<StreamId>,
    /// The connection may serve further requests afterwards.
    pub(crate) keep_alive: bool,
    /// Keeps the session from becoming idle while its client listens.
    pub(crate) hold: Option<Hold>,
    /// Kept, not read: its place among the streams its caller may listen on.
    pub(crate) place: Option<Listening>,
    /// What is over when the connection is. Boxed: most streams end nothing.
    pub(crate) ends: Option<Box<Ends>>,
}

/// What is over when its connection is.
#[derive(Debug)]
pub(crate) enum Ends {
    /// A session, as HTTP+SSE has it.
    Session(SessionKey),
    /// What a request that listens is told of upstream resources.
    Watch(Watch),
}

impl EventStream {
    /// A client that only closed its own direction still gets the answer it waits for: in a session
    /// the call goes on anyway, and whether the client is there shows when the answer is written.
    /// Everywhere else the end of its direction is the end of the client.
    fn awaits_an_answer(&self) -> bool {
        self.stream.is_some() && self.outlet.purpose() == Purpose::Answer
    }
}

/// The connection's halves and what it had already sent.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) deadline: Deadline,
    pub(crate) pipelined: Vec<u8>,
    /// Kept, not read: the connection's place is free again when it is dropped.
    pub(crate) _place: Option<Place>,
}

/// Serves the stream to its end; then the connection goes on with its next request, or closes.
pub(crate) async fn run(core: Rc<Core>, plane: Plane, stream: EventStream, mut wire: Wire) {
    core.metrics.streams_open.add(1);
    wire.reader.set_read_size(WATCH_READ_BYTES);
    let ended = pump(&core, &stream, &mut wire).await;
    core.metrics.streams_open.add(-1);
    let EventStream { outlet, stream, keep_alive, ends, hold, place } = stream;
    drop((hold, place));
    if let Some(stream) = stream {
        core.detach(stream, outlet.id);
    }
    drop(outlet);
    match ends.map(|ends| *ends) {
        Some(Ends::Session(key)) => {
            session::end(&core, key);
        }
        Some(Ends::Watch(watch)) => watch.end(&core),
        None => {}
    }
    if ended == Ended::Properly && keep_alive && !core.stop.is_stopped() {
        connection::resume(core, plane, wire);
    } else {
        let _ = Box::pin(wire.writer.shutdown()).await;
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// The last chunk was written.
    Properly,
    /// The client is gone, or stopped reading, or was displaced.
    Abruptly,
}

async fn pump(core: &Rc<Core>, stream: &EventStream, wire: &mut Wire) -> Ended {
    let keep_alive = core.shared.timing.keep_alive;
    let mut reading = true;
    loop {
        // What writes is boxed: an idle stream must not carry the room for it.
        if stream.outlet.has_work() {
            if let Err(ended) = Box::pin(write_waiting(core, stream, wire)).await {
                return ended;
            }
            Box::pin(answer_probes(core, stream, wire)).await;
        }
        if keep_alive.is_zero() {
            wire.deadline.clear();
        } else {
            wire.deadline.set(keep_alive);
        }
        if reading {
            let woken = stream.outlet.woken();
            let read = wire.reader.read(&mut wire.pipelined, &wire.deadline);
            match rt::race(woken, read).await {
                Either::Left(()) => {}
                Either::Right(Ok(0)) if stream.awaits_an_answer() => {
                    reading = false;
                    wire.deadline.clear();
                }
                Either::Right(Ok(0)) => return Ended::Abruptly,
                Either::Right(Ok(_)) => reading = wire.pipelined.len() < PIPELINED_BYTES_MAX,
                Either::Right(Err(error)) if error.kind() == std::io::ErrorKind::TimedOut => {
                    if !Box::pin(write_keep_alive(core, wire)).await {
                        return Ended::Abruptly;
                    }
                }
                Either::Right(Err(_)) => return Ended::Abruptly,
            }
        } else if let Either::Right(()) =
            rt::race(stream.outlet.woken(), wire.deadline.expired()).await
            && !Box::pin(write_keep_alive(core, wire)).await
        {
            return Ended::Abruptly;
        }
    }
}

/// Writes all that waits in the outlet; the end of the stream too, when it has come.
async fn write_waiting(core: &Core, stream: &EventStream, wire: &mut Wire) -> Result<(), Ended> {
    loop {
        if stream.outlet.state() == OutletState::Dropped {
            return Err(Ended::Abruptly);
        }
        let finishing = stream.outlet.state() == OutletState::Finishing;
        let Some(frame) = stream.outlet.pop() else {
            if !finishing {
                return Ok(());
            }
            let last = http::LAST_CHUNK.to_vec();
            let (sent, _) =
                wire.writer.write_all(last, &wire.deadline, core.shared.timing.write).await;
            return Err(if sent.is_ok() { Ended::Properly } else { Ended::Abruptly });
        };
        let within = core.shared.timing.write;
        core.metrics.sent_bytes.add(frame.len() as u64);
        let sent = if stream.outlet.waiting() == 0 && !finishing {
            wire.writer.write_shared(frame, &wire.deadline, within).await
        } else {
            let (bytes, complete) = gather(stream, &frame);
            let (sent, _) = wire.writer.write_all(bytes, &wire.deadline, within).await;
            if sent.is_ok() && complete {
                return Err(Ended::Properly);
            }
            sent
        };
        if sent.is_err() {
            return Err(Ended::Abruptly);
        }
    }
}

/// Frames that wait together, in one buffer, with the last chunk where the stream ends here.
fn gather(stream: &EventStream, first: &Arc<Vec<u8>>) -> (Vec<u8>, bool) {
    let mut bytes = Vec::with_capacity(first.len() + 512);
    bytes.extend_from_slice(first);
    while bytes.len() < WRITE_BYTES_MAX {
        let Some(frame) = stream.outlet.pop() else {
            let complete = stream.outlet.state() == OutletState::Finishing;
            if complete {
                bytes.extend_from_slice(http::LAST_CHUNK);
            }
            return (bytes, complete);
        };
        bytes.extend_from_slice(&frame);
    }
    (bytes, false)
}

/// A comment chunk: keeps proxies from closing an idle stream (field: one every 15 s).
async fn write_keep_alive(core: &Core, wire: &mut Wire) -> bool {
    let frame = core.shared.keep_alive_frame.clone();
    wire.writer.write_shared(frame, &wire.deadline, core.shared.timing.write).await.is_ok()
}

/// Says to whoever asks whether the client's side still acknowledges what it is sent.
async fn answer_probes(core: &Core, stream: &EventStream, wire: &mut Wire) {
    let probes = stream.outlet.take_probes();
    if probes.is_empty() {
        return;
    }
    let mut alive = write_keep_alive(core, wire).await;
    let mut waited = Duration::ZERO;
    while alive && wire.writer.unacknowledged_bytes().is_ok_and(|bytes| bytes > 0) {
        if waited >= PROBE_WAIT {
            alive = false;
        }
        rt::sleep(PROBE_STEP).await;
        waited += PROBE_STEP;
    }
    for probe in probes {
        let _ = probe.send(alive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of<A, B, C, D, F>(_: fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_idle_stream_is_a_small_task() {
        let bytes = bytes_of(run);
        assert!(bytes <= 800, "{bytes}");
    }
}
