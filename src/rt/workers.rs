//! Blocking and long work, off the cores.
//!
//! Work that somebody else's requests cause has a name: whose it is. All work of one name together
//! gets a share of the threads, never all of them where there are two, and a share of the queue;
//! names take turns with each other and with the server's own work. So nobody's slow work can keep
//! that of others waiting for longer than one piece of it takes.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

use super::oneshot::{OneshotReceiver, oneshot};
use super::panics;

/// Work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// As much as allowed waits already; may be tried again.
    #[error("too much work waits for the worker threads")]
    Full,
    /// As much of the same name as allowed waits already; may be tried again.
    #[error("too much of one tenant's work waits for the worker threads")]
    ShareFull,
    /// The work panicked. The panic itself was logged.
    #[error("the work panicked")]
    Panicked,
    /// The pool was stopped before the work began.
    #[error("the worker threads have stopped")]
    Stopped,
}

type Job = Box<dyn FnOnce() + Send>;

/// The part of the queue that one name may take is one in so many, and at least this much.
const SHARES: usize = 128;
const SHARE_WAITING_MIN: usize = 8;

/// A fixed number of threads with a bounded queue. They end when the last handle goes.
#[derive(Clone)]
pub struct WorkerPool {
    owner: Arc<Owner>,
}

struct Owner {
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    limits: Limits,
}

#[derive(Clone, Copy)]
struct Limits {
    /// Most pieces of the server's own work that wait, and most of all names together.
    waiting: usize,
    /// Most of one name that wait.
    share_waiting: usize,
    /// Most of one name that run at once.
    share_running: usize,
}

#[derive(Default)]
struct State {
    /// The server's own.
    own: VecDeque<Job>,
    shares: HashMap<Arc<str>, Share>,
    /// Names that have work waiting and may run one more, each once, in the order of their turns.
    turns: VecDeque<Arc<str>>,
    /// How much waits in all shares.
    waiting_in_shares: usize,
    /// Whose turn it is where both wait.
    own_is_next: bool,
    stopped: bool,
}

/// The work of one name. Without any it is forgotten.
#[derive(Default)]
struct Share {
    waiting: VecDeque<Job>,
    running: usize,
}

impl WorkerPool {
    /// Starts threads named `worker-0` and on, with at most `queue_max` jobs waiting, and a small
    /// part of that of one name.
    ///
    /// # Errors
    ///
    /// When a thread cannot be made.
    pub fn start(threads: usize, queue_max: usize) -> io::Result<Self> {
        let limits = Limits {
            waiting: queue_max,
            share_waiting: (queue_max / SHARES).max(SHARE_WAITING_MIN),
            share_running: threads.saturating_sub(1).max(1),
        };
        let (state, changed) = (Mutex::default(), Condvar::new());
        let queue = Arc::new(Queue { state, changed, limits });
        let pool = Self { owner: Arc::new(Owner { queue: Arc::clone(&queue) }) };
        for index in 0..threads.max(1) {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name(format!("worker-{index}")).spawn(move || queue.work())?;
        }
        Ok(pool)
    }

    /// Runs `work` of the server's own on a worker thread.
    ///
    /// # Errors
    ///
    /// When the queue is full, the work panicked, or the pool has stopped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the work back: it is done, its outcome is dropped.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        let (job, outcome) = job(work);
        self.owner.queue.push(job)?;
        // A job that was dropped unrun is one that `stop` took out of the queue.
        outcome.await.unwrap_or(Err(WorkError::Stopped))
    }

    /// Runs `work` that `whose` requests cause, within their share of the threads.
    ///
    /// # Errors
    ///
    /// As of [`Self::run`], and when the share of the queue is full.
    ///
    /// # Cancel safety
    ///
    /// As of [`Self::run`].
    pub async fn run_for<T: Send + 'static>(
        &self,
        whose: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        let (job, outcome) = job(work);
        self.owner.queue.push_for(whose, job)?;
        outcome.await.unwrap_or(Err(WorkError::Stopped))
    }

    /// Lets running work end, drops what waits, and takes nothing more. Does not wait.
    pub fn stop(&self) {
        self.owner.queue.stop();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.queue.stop();
    }
}

/// A job, and where its outcome comes.
fn job<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> (Job, OneshotReceiver<Result<T, WorkError>>) {
    let (sender, receiver) = oneshot();
    let job = Box::new(move || {
        let outcome = panics::contain(work).map_err(|panic| {
            panics::report(&panic, "a worker");
            WorkError::Panicked
        });
        // Nobody may be waiting any more.
        drop(sender.send(outcome));
    });
    (job, receiver)
}

impl Queue {
    fn push(&self, job: Job) -> Result<(), WorkError> {
        let mut state = self.state.lock();
        if state.stopped {
            return Err(WorkError::Stopped);
        }
        if state.own.len() >= self.limits.waiting {
            return Err(WorkError::Full);
        }
        state.own.push_back(job);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    fn push_for(&self, whose: &str, job: Job) -> Result<(), WorkError> {
        let mut state = self.state.lock();
        if state.stopped {
            return Err(WorkError::Stopped);
        }
        if state.waiting_in_shares >= self.limits.waiting {
            return Err(WorkError::Full);
        }
        let (name, gets_a_turn) = match state.shares.get_key_value(whose) {
            Some((name, share)) if share.waiting.len() >= self.limits.share_waiting => {
                tracing::debug!(whose = &**name, "too much work waits for the worker threads");
                return Err(WorkError::ShareFull);
            }
            Some((name, share)) => {
                let may_run = share.running < self.limits.share_running;
                (name.clone(), may_run && share.waiting.is_empty())
            }
            None => (Arc::from(whose), true),
        };
        state.shares.entry(name.clone()).or_default().waiting.push_back(job);
        state.waiting_in_shares += 1;
        if gets_a_turn {
            state.turns.push_back(name);
        }
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    fn stop(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.stopped = true;
            state.turns.clear();
            state.waiting_in_shares = 0;
            (std::mem::take(&mut state.own), std::mem::take(&mut state.shares))
        };
        self.changed.notify_all();
        drop(waiting);
    }

    fn work(&self) {
        panics::quiet_thread();
        while let Some((job, whose)) = self.next() {
            job();
            if let Some(whose) = whose {
                self.done(&whose);
            }
        }
    }

    fn next(&self) -> Option<(Job, Option<Arc<str>>)> {
        let mut state = self.state.lock();
        loop {
            if let Some(next) = state.next(self.limits.share_running) {
                return Some(next);
            }
            if state.stopped {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// A piece of work of that name is over.
    fn done(&self, whose: &Arc<str>) {
        let mut state = self.state.lock();
        // It is gone where the pool was stopped meanwhile.
        let Some(share) = state.shares.get_mut(whose) else { return };
        let was_full = share.running == self.limits.share_running;
        share.running -= 1;
        if share.waiting.is_empty() {
            if share.running == 0 {
                state.shares.remove(whose);
            }
        } else if was_full {
            state.turns.push_back(whose.clone());
            drop(state);
            self.changed.notify_one();
        }
    }
}

impl State {
    /// The next piece of work, the server's own and that of others by turns.
    fn next(&mut self, share_running: usize) -> Option<(Job, Option<Arc<str>>)> {
        if (self.own_is_next || self.turns.is_empty())
            && let Some(job) = self.own.pop_front()
        {
            self.own_is_next = false;
            return Some((job, None));
        }
        let whose = self.turns.pop_front()?;
        self.own_is_next = true;
        let share = self.shares.get_mut(&whose)?;
        let job = share.waiting.pop_front()?;
        share.running += 1;
        self.waiting_in_shares -= 1;
        if !share.waiting.is_empty() && share.running < share_running {
            self.turns.push_back(whose.clone());
        }
        Some((job, Some(whose)))
    }
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.owner.queue.state.lock();
        let waiting = state.own.len() + state.waiting_in_shares;
        formatter.debug_struct("WorkerPool").field("waiting", &waiting).finish_non_exhaustive()
    }
}
