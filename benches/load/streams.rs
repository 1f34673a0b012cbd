//! Long-lived event streams: what each costs the server while idle, and how long one message
//! takes to reach all of them.

use crate::histogram::Histogram;
use crate::process::{Server, pause};
use crate::request::{Exchange, Request, Target};
use crate::response::{Progress, Response};
use crate::ring::{Event, Ring};
use memchr::memmem;
use std::io::{self, Write};
use std::time::{Duration, Instant};

const RECEIVE_BYTES: usize = 1024;
const OPEN_SECONDS_MAX: u64 = 30;
const DELIVERY_SECONDS_MAX: u64 = 20;
/// Opened between two looks at what has come back, so that no accept queue overflows.
const BURST: usize = 64;
const MESSAGE: &[u8] = b"notifications/tools/list_changed";

pub(crate) struct Streams {
    ring: Ring,
    open: Vec<Stream>,
    /// Resident bytes of the server before anything, with all sessions, with all streams.
    pub(crate) resident: [u64; 3],
}

struct Stream {
    response: Response,
    reached: bool,
}

pub(crate) struct Delivery {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Until the last stream had the message.
    pub(crate) all: Duration,
    pub(crate) cpu: Duration,
}

impl Streams {
    /// Opens `count` sessions (where the server has them) and a standing stream in each.
    pub(crate) fn open(
        target: &Target,
        server: &Server,
        count: usize,
        sessions: bool,
    ) -> io::Result<Self> {
        let mut exchange = Exchange::new(target)?;
        exchange.handshake()?;
        let before = server.resident_bytes();
        let mut ids = vec![None; count];
        if sessions {
            for id in &mut ids {
                *id = exchange.handshake()?;
            }
        }
        let with_sessions = server.resident_bytes();
        let ring = Ring::new(count, RECEIVE_BYTES)?;
        let mut opened =
            Self { ring, open: Vec::with_capacity(count), resident: [before, with_sessions, 0] };
        let mut events = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            let mut socket = target.connect()?;
            socket.write_all(Request::get(target, id.as_deref()).bytes())?;
            let slot = opened.ring.add(socket);
            opened.ring.receive(slot);
            opened.open.push(Stream { response: Response::new(), reached: false });
            if index % BURST == BURST - 1 {
                opened.turn(Duration::from_millis(1), &mut events, |_| {})?;
            }
        }
        let deadline = Instant::now() + Duration::from_secs(OPEN_SECONDS_MAX);
        while opened.open.iter().any(|stream| !stream.response.has_head()) {
            if Instant::now() > deadline {
                return Err(io::Error::other("not every stream opened within 30 s"));
            }
            opened.turn(Duration::from_millis(20), &mut events, |_| {})?;
        }
        opened.resident[2] = server.resident_bytes();
        Ok(opened)
    }

    /// One message to all streams: the time from `trigger` to each stream's event.
    pub(crate) fn deliver(
        &mut self,
        server: &Server,
        trigger: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Delivery> {
        let mut events = Vec::new();
        // What is still under way from before must not count.
        self.turn(Duration::from_millis(200), &mut events, |_| {})?;
        self.open.iter_mut().for_each(|stream| stream.reached = false);
        let mut latency = Histogram::new();
        let usage = server.usage();
        let begin = Instant::now();
        trigger()?;
        let wanted = self.open.len() as u64;
        let mut all = Duration::ZERO;
        while latency.total() < wanted {
            if begin.elapsed() > Duration::from_secs(DELIVERY_SECONDS_MAX) {
                let reached = latency.total();
                let why = format!("the message reached {reached} of {wanted} streams in 20 s");
                return Err(io::Error::other(why));
            }
            self.turn(Duration::from_millis(50), &mut events, |now| {
                all = now - begin;
                latency.record(all);
            })?;
        }
        Ok(Delivery {
            p50_us: latency.quantile_us(500),
            p99_us: latency.quantile_us(990),
            all,
            cpu: server.usage().since(usage),
        })
    }

    /// Takes what has arrived; tells `reached` of each stream that has its message now.
    fn turn(
        &mut self,
        patience: Duration,
        events: &mut Vec<Event>,
        mut reached: impl FnMut(Instant),
    ) -> io::Result<()> {
        self.ring.wait(patience, events)?;
        let now = Instant::now();
        for event in events.drain(..) {
            let Event::Received { slot, bytes } = event else {
                return Err(io::Error::other("a stream failed"));
            };
            let stream = &mut self.open[slot];
            let progress = stream.response.push(self.ring.received(slot, bytes));
            if stream.response.has_head() && stream.response.status != 200 {
                let status = stream.response.status;
                let body = String::from_utf8_lossy(stream.response.body());
                return Err(io::Error::other(format!("a stream was refused: {status} {body}")));
            }
            if progress != Progress::NeedMore {
                return Err(io::Error::other("the server ended a stream"));
            }
            if !stream.reached && memmem::find(stream.response.body(), MESSAGE).is_some() {
                stream.reached = true;
                reached(now);
            }
            if stream.response.body().ends_with(b"\n\n") {
                stream.response.forget_body();
            }
            self.ring.receive(slot);
        }
        Ok(())
    }

    /// Leaves the streams alone for a while and says what the server used meanwhile.
    pub(crate) fn idle(&mut self, server: &Server, seconds: u64) -> io::Result<Duration> {
        let usage = server.usage();
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut events = Vec::new();
        while Instant::now() < until {
            self.turn(Duration::from_millis(100), &mut events, |_| {})?;
        }
        pause(1);
        self.resident[2] = self.resident[2].max(server.resident_bytes());
        Ok(server.usage().since(usage))
    }
}
