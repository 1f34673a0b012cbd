//! Closed-loop load: every connection has one request in flight, and sends the next when it has
//! checked the answer to the last.

use crate::api::Api;
use crate::histogram::Histogram;
use crate::process::{Server, Usage};
use crate::request::{Exchange, FIRST_ID, Request, Target};
use crate::response::{self, Progress, Response};
use crate::ring::{Event, Ring};
use std::io;
use std::time::{Duration, Instant};

const RECEIVE_BYTES: usize = 32 << 10;
const STUCK: Duration = Duration::from_secs(5);

pub(crate) struct Plan<'p> {
    pub(crate) target: &'p Target,
    pub(crate) body: &'p str,
    pub(crate) accept: &'p str,
    /// More lines of every request's head, each with its end.
    pub(crate) headers: &'p str,
    /// Whether every connection works in a session of its own.
    pub(crate) sessions: bool,
    /// The kind every answer must be of.
    pub(crate) event_stream: bool,
    pub(crate) connections: usize,
    pub(crate) warm_up: Duration,
    pub(crate) duration: Duration,
    /// Ends the measurement before its time.
    pub(crate) requests_max: u64,
}

pub(crate) struct Measured {
    pub(crate) answers: u64,
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) cpu_us: f64,
    /// The load's own share of its core, 0 to 1: near 1, the load is the limit.
    pub(crate) load_share: f64,
}

struct Connection {
    slot: usize,
    request: Request,
    response: Response,
    sent: Instant,
}

struct Run<'p> {
    plan: &'p Plan<'p>,
    api: &'p mut Api,
    ring: Ring,
    connections: Vec<Connection>,
    next_id: u32,
    latency: Histogram,
}

pub(crate) fn run(plan: &Plan<'_>, server: &Server, api: &mut Api) -> io::Result<Measured> {
    let mut ring = Ring::new(plan.connections * 2, RECEIVE_BYTES)?;
    // The load's connections come first, so that a slot's number is a connection's index.
    let slots = (0..plan.connections)
        .map(|_| plan.target.connect().map(|stream| ring.add(stream)))
        .collect::<io::Result<Vec<_>>>()?;
    api.attach(&mut ring)?;
    // A session may be opened upstream as well.
    let sessions = api.while_serving(&mut ring, || {
        let open =
            |_| if plan.sessions { Exchange::new(plan.target)?.handshake() } else { Ok(None) };
        (0..plan.connections).map(open).collect::<io::Result<Vec<_>>>()
    })?;
    let connections = slots
        .into_iter()
        .zip(sessions)
        .map(|(slot, session)| Connection {
            slot,
            request: Request::post(plan.target, plan.accept, session.as_deref(), plan.body)
                .with_headers(plan.headers),
            response: Response::new(),
            sent: Instant::now(),
        })
        .collect();
    let run = Run { plan, api, ring, connections, next_id: FIRST_ID, latency: Histogram::new() };
    run.drive(server)
}

impl Run<'_> {
    fn drive(mut self, server: &Server) -> io::Result<Measured> {
        let begin = Instant::now();
        let mut now = begin;
        let mut events = Vec::with_capacity(1024);
        for index in 0..self.connections.len() {
            self.fire(index, now);
        }
        while now < begin + self.plan.warm_up {
            self.turn(&mut events)?;
            now = Instant::now();
        }
        self.latency = Histogram::new();
        let (from, server_before, own_before) = (now, server.usage(), Usage::own());
        while now < from + self.plan.duration && self.latency.total() < self.plan.requests_max {
            self.turn(&mut events)?;
            now = Instant::now();
        }
        let (server_used, own_used) =
            (server.usage().since(server_before), Usage::own().since(own_before));
        if self.connections.iter().any(|connection| now - connection.sent > STUCK) {
            return Err(io::Error::other("a request had no answer for over 5 s"));
        }
        let seconds = (now - from).as_secs_f64();
        let counted = self.latency.total();
        let answers = f64::from(u32::try_from(counted).unwrap_or(u32::MAX));
        if answers < 1.0 {
            return Err(io::Error::other("no answers at all"));
        }
        Ok(Measured {
            answers: counted,
            per_second: answers / seconds,
            p50_us: self.latency.quantile_us(500),
            p99_us: self.latency.quantile_us(990),
            cpu_us: server_used.as_secs_f64() * 1e6 / answers,
            load_share: own_used.as_secs_f64() / seconds,
        })
    }

    fn turn(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        self.ring.wait(Duration::from_millis(100), events)?;
        let now = Instant::now();
        for event in events.drain(..) {
            match event {
                Event::Accepted(stream) => self.api.accepted(&mut self.ring, stream)?,
                Event::Received { slot, bytes } if self.api.owns(slot) => {
                    self.api.received(&mut self.ring, slot, bytes);
                }
                Event::Failed { slot, .. } if self.api.owns(slot) => self.api.closed(slot),
                Event::Received { slot, bytes } if slot < self.connections.len() => {
                    self.received(slot, bytes, now)?;
                }
                Event::Failed { slot, error } if slot < self.connections.len() => {
                    return Err(error);
                }
                // The rest of an API connection that is gone.
                Event::Received { .. } | Event::Failed { .. } => {}
            }
        }
        Ok(())
    }

    fn fire(&mut self, index: usize, now: Instant) {
        let connection = &mut self.connections[index];
        connection.request.set_id(self.next_id);
        self.next_id = self.next_id.checked_add(1).unwrap_or(FIRST_ID);
        connection.sent = now;
        self.ring.send(connection.slot, connection.request.bytes());
        self.ring.receive(connection.slot);
    }

    fn received(&mut self, index: usize, bytes: usize, now: Instant) -> io::Result<()> {
        let connection = &mut self.connections[index];
        let piece = self.ring.received(connection.slot, bytes);
        match connection.response.push(piece) {
            Progress::NeedMore => self.ring.receive(connection.slot),
            Progress::Malformed => {
                let what = if bytes == 0 { "closed before the answer" } else { "malformed answer" };
                return Err(io::Error::other(what));
            }
            Progress::Complete => {
                let response = &mut connection.response;
                let id = connection.request.id();
                if let Some(why) = response::fault(response, id, self.plan.event_stream) {
                    let body = String::from_utf8_lossy(response.body());
                    let shown: String = body.chars().take(300).collect();
                    let status = response.status;
                    return Err(io::Error::other(format!("{why}: HTTP {status}: {shown}")));
                }
                if !response.keep_alive {
                    return Err(io::Error::other("the server does not keep the connection"));
                }
                response.next();
                self.latency.record(now - connection.sent);
                self.fire(index, now);
            }
        }
        Ok(())
    }
}
