//! Connections to APIs that are kept for the next call: one pool a core, nothing shared.
//!
//! Invariants: a connection is either in the pool or owned by exactly one call, so a dropped call
//! closes its socket; what lies in the pool has nothing unread and nothing half written; each idle
//! connection has one read pending, so its end is noticed without a system call when it is taken
//! out, and by the sweep otherwise. Bounded by host (`idle_per_host_max`), in all (`IDLE_MAX`) and
//! by time (`idle_max`). No borrow lives across an await.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use crate::http::{Limits, ResponseReader};
use crate::rt::{self, Deadline};

/// An idle connection keeps no larger buffers than this.
const KEPT_BUFFER_BYTES_MAX: usize = 64 * 1024;
/// A core keeps no more idle connections than this, of all hosts together.
const IDLE_MAX: usize = 4096;
const SWEEP_INTERVAL: Duration = Duration::from_secs(2);

/// One connection with everything a call over it needs, reused from call to call.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) connection: rt::Connection,
    pub(crate) answers: ResponseReader,
    /// Where requests are written; empty between calls.
    pub(crate) request: Vec<u8>,
    /// Ends a wait for the answer.
    pub(crate) deadline: Deadline,
    /// Ends a write.
    pub(crate) sending: Deadline,
    /// Whether an earlier call has used it: then its end may be the old keep-alive's, not this
    /// call's.
    pub(crate) is_reused: bool,
}

impl Line {
    pub(crate) fn new(connection: rt::Connection, limits: Limits) -> Box<Self> {
        Box::new(Self {
            connection,
            answers: ResponseReader::new(limits),
            request: Vec::new(),
            deadline: Deadline::new(),
            sending: Deadline::new(),
            is_reused: false,
        })
    }

    /// Whether the API has neither ended the connection nor said anything unasked. Leaves a read
    /// pending.
    fn is_quiet(&mut self) -> bool {
        if !self.answers.is_idle() {
            return false;
        }
        let buffer = self.answers.buffer();
        let read = pin!(self.connection.reader.read(buffer, &self.deadline));
        read.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }
}

type Hosts = HashMap<Box<str>, Vec<Idle>>;

struct Idle {
    line: Box<Line>,
    since: Instant,
}

/// Whose connections are interchangeable: the same scheme, host, port and trust.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostKey<'a> {
    pub(crate) is_tls: bool,
    pub(crate) name: &'a str,
}

/// The idle connections of one core.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Without TLS, and with it.
    hosts: RefCell<[Hosts; 2]>,
    idle_per_host_max: usize,
    idle_max: Duration,
    /// Idle connections of all hosts.
    count: Cell<usize>,
    is_swept: Cell<bool>,
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Idle").field("since", &self.since).finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(idle_per_host_max: usize, idle_max: Duration) -> Rc<Self> {
        Rc::new(Self {
            hosts: RefCell::default(),
            idle_per_host_max,
            idle_max,
            count: Cell::new(0),
            is_swept: Cell::new(false),
        })
    }

    /// The connection to `host` that was used last, if one is still good.
    pub(crate) fn take(&self, host: HostKey<'_>, now: Instant) -> Option<Box<Line>> {
        loop {
            let Idle { mut line, since } = {
                let mut hosts = self.hosts.borrow_mut();
                hosts[usize::from(host.is_tls)].get_mut(host.name)?.pop()?
            };
            self.count.set(self.count.get().saturating_sub(1));
            if now.saturating_duration_since(since) < self.idle_max && line.is_quiet() {
                return Some(line);
            }
        }
    }

    /// Keeps `line` for the next call to `host`, or closes it.
    pub(crate) fn put(self: &Rc<Self>, host: HostKey<'_>, mut line: Box<Line>, now: Instant) {
        line.deadline.clear();
        line.sending.clear();
        line.is_reused = true;
        if line.request.capacity() > KEPT_BUFFER_BYTES_MAX {
            line.request = Vec::new();
        }
        let has_room = self.idle_per_host_max > 0 && self.count.get() < IDLE_MAX;
        if !has_room || !line.is_quiet() {
            return;
        }
        let idle = Idle { line, since: now };
        let mut both = self.hosts.borrow_mut();
        let hosts = &mut both[usize::from(host.is_tls)];
        match hosts.get_mut(host.name) {
            Some(kept) if kept.len() >= self.idle_per_host_max => return,
            Some(kept) => kept.push(idle),
            None => {
                hosts.insert(host.name.into(), vec![idle]);
            }
        }
        drop(both);
        self.count.set(self.count.get() + 1);
        self.start_sweeping();
    }

    /// How many connections are idle.
    pub(crate) fn idle_count(&self) -> usize {
        self.count.get()
    }

    /// One task as long as there is something to sweep.
    fn start_sweeping(self: &Rc<Self>) {
        if self.is_swept.replace(true) {
            return;
        }
        let pool = Rc::downgrade(self);
        rt::spawn(async move {
            loop {
                rt::sleep(SWEEP_INTERVAL).await;
                let Some(pool) = pool.upgrade() else { return };
                if pool.sweep(Instant::now()) == 0 {
                    pool.is_swept.set(false);
                    return;
                }
            }
        });
    }

    /// Closes what is too old or was closed from the other side. How many are left.
    fn sweep(&self, now: Instant) -> usize {
        let mut both = self.hosts.borrow_mut();
        for hosts in both.iter_mut() {
            for kept in hosts.values_mut() {
                kept.retain_mut(|idle| {
                    let age = now.saturating_duration_since(idle.since);
                    age < self.idle_max && idle.line.is_quiet()
                });
            }
            hosts.retain(|_, kept| !kept.is_empty());
        }
        self.count.set(both.iter().flat_map(HashMap::values).map(Vec::len).sum());
        self.count.get()
    }
}
