//! Blocking and long work, off the cores.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

use super::oneshot::oneshot;
use super::panics;

/// Work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// As much as allowed waits already; may be tried again.
    #[error("too much work waits for the worker threads")]
    Full,
    /// The work panicked. The panic itself was logged.
    #[error("the work panicked")]
    Panicked,
    /// The pool was stopped before the work began.
    #[error("the worker threads have stopped")]
    Stopped,
}

type Job = Box<dyn FnOnce() + Send>;

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
    waiting_max: usize,
}

struct State {
    waiting: VecDeque<Job>,
    stopped: bool,
}

impl WorkerPool {
    /// Starts threads named `worker-0` and on, with at most `queue_max` jobs waiting.
    ///
    /// # Errors
    ///
    /// When a thread cannot be made.
    pub fn start(threads: usize, queue_max: usize) -> io::Result<Self> {
        let state = State { waiting: VecDeque::new(), stopped: false };
        let queue = Arc::new(Queue {
            state: Mutex::new(state),
            changed: Condvar::new(),
            waiting_max: queue_max,
        });
        let pool = Self { owner: Arc::new(Owner { queue: Arc::clone(&queue) }) };
        for index in 0..threads.max(1) {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name(format!("worker-{index}")).spawn(move || queue.work())?;
        }
        Ok(pool)
    }

    /// Runs `work` on a worker thread.
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
        let (sender, receiver) = oneshot();
        self.owner.queue.push(Box::new(move || {
            let outcome = panics::contain(work).map_err(|panic| {
                panics::report(&panic, "a worker");
                WorkError::Panicked
            });
            // Nobody may be waiting any more.
            drop(sender.send(outcome));
        }))?;
        // A job that was dropped unrun is one that `stop` took out of the queue.
        receiver.await.unwrap_or(Err(WorkError::Stopped))
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

impl Queue {
    fn push(&self, job: Job) -> Result<(), WorkError> {
        let mut state = self.state.lock();
        if state.stopped {
            return Err(WorkError::Stopped);
        }
        if state.waiting.len() >= self.waiting_max {
            return Err(WorkError::Full);
        }
        state.waiting.push_back(job);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    fn stop(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.stopped = true;
            std::mem::take(&mut state.waiting)
        };
        self.changed.notify_all();
        drop(waiting);
    }

    fn work(&self) {
        panics::quiet_thread();
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.waiting.pop_front() {
                return Some(job);
            }
            if state.stopped {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.owner.queue.state.lock().waiting.len();
        formatter.debug_struct("WorkerPool").field("waiting", &waiting).finish_non_exhaustive()
    }
}
