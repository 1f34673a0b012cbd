//! Tasks of one core: panics contained, ended together, none able to starve the core.
//!
//! The runtime underneath puts a task that wakes itself at the front of its queue and looks at
//! timers only when no task is ready, so one bad loop would stop everything else. Each poll is
//! counted here; when too many pass without a timer having had its turn, the tasks that took many
//! of them are set aside until one had.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::notify::Notify;
use super::{panics, race, sleep};

/// Polls after which the core checks that timers still fire.
const POLLS_BEFORE_PROBE: u32 = 4096;
/// Polls after which busy tasks are set aside until the probe has fired.
const POLLS_BEFORE_PAUSE: u32 = 2 * POLLS_BEFORE_PROBE;
/// A task is busy when it was polled this often since the last probe. Others go on: a busy one
/// must not use up their turn.
const POLLS_OF_BUSY_TASK: u32 = 16;
/// Polls that a task is charged for stepping back: it has done as much as many short ones.
const POLLS_OF_STEPPING_BACK: u32 = 64;
/// A task that was not polled yet has no place in the list of wakers.
const UNREGISTERED: usize = usize::MAX;

struct Tasks {
    running: Cell<usize>,
    ending: Cell<bool>,
    all_ended: Notify,
    wakers: RefCell<Vec<Option<Waker>>>,
    free: RefCell<Vec<usize>>,
    polls: Cell<u32>,
    /// How often a probe has fired.
    round: Cell<u32>,
    probing: Cell<bool>,
    paused: RefCell<Vec<Waker>>,
    stepped_back: RefCell<Vec<Waker>>,
}

thread_local! {
    static TASKS: Tasks = const {
        Tasks {
            running: Cell::new(0),
            ending: Cell::new(false),
            all_ended: Notify::new(),
            wakers: RefCell::new(Vec::new()),
            free: RefCell::new(Vec::new()),
            polls: Cell::new(0),
            round: Cell::new(0),
            probing: Cell::new(false),
            paused: RefCell::new(Vec::new()),
            stepped_back: RefCell::new(Vec::new()),
        }
    };
}

/// Starts a detached task on this core. A panic in it ends the task alone: it is counted, logged,
/// and what the task held is dropped.
///
/// # Panics
///
/// Outside a core.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    TASKS.with(|tasks| tasks.running.set(tasks.running.get() + 1));
    spawn_unwatched(Task {
        future: Some(Box::pin(future)),
        place: UNREGISTERED,
        share: Share::default(),
    });
}

/// For this room's own housekeeping: not counted, not ended with the others.
#[expect(clippy::disallowed_methods, reason = "the one place that may: the wrapper itself")]
pub(super) fn spawn_unwatched(future: impl Future<Output = ()> + 'static) {
    drop(monoio::spawn(future));
}

/// Tasks of this core that have not ended.
pub fn tasks_running() -> usize {
    TASKS.with(|tasks| tasks.running.get())
}

/// Panics contained in tasks and workers since the process started.
pub fn panics_contained() -> u64 {
    panics::count()
}

/// Ends all tasks of this core and waits for that, at most `within`: each task's future is dropped
/// at its next poll, which comes at once. To be called from the core's body, not from a task.
pub async fn end_tasks(within: Duration) {
    struct Ending;
    impl Drop for Ending {
        fn drop(&mut self) {
            TASKS.with(|tasks| tasks.ending.set(false));
        }
    }

    let until = Instant::now() + within;
    TASKS.with(|tasks| tasks.ending.set(true));
    let _ending = Ending;
    let wakers: Vec<Waker> = TASKS.with(|tasks| {
        let waiting = tasks.wakers.borrow();
        waiting.iter().flatten().cloned().collect()
    });
    wakers.into_iter().for_each(Waker::wake);
    while tasks_running() > 0 {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            tracing::warn!(tasks = tasks_running(), "tasks did not end in time");
            return;
        }
        race(all_ended(), sleep(left)).await;
    }
}

/// Ends once the last task has.
async fn all_ended() {
    std::future::poll_fn(|context| TASKS.with(|tasks| tasks.all_ended.poll_notified(context)))
        .await;
}

/// Forgets what a runtime on this thread left behind; the next one starts afresh.
pub(super) fn reset() {
    TASKS.with(|tasks| {
        let wakers = tasks.wakers.take();
        let paused = (tasks.paused.take(), tasks.stepped_back.take());
        tasks.free.take();
        tasks.polls.set(0);
        tasks.probing.set(false);
        drop((wakers, paused));
    });
}

/// Polls of one task since a probe fired.
#[derive(Default)]
pub(super) struct Share {
    round: u32,
    polls: u32,
}

impl Share {
    /// True when the task may poll its future now; otherwise it will be woken once timers had their
    /// turn.
    pub(super) fn may_poll(&mut self, context: &Context<'_>) -> bool {
        TASKS.with(|tasks| {
            let polls = tasks.polls.get().saturating_add(1);
            tasks.polls.set(polls);
            if self.round != tasks.round.get() {
                *self = Self { round: tasks.round.get(), polls: 0 };
            }
            self.polls = self.polls.saturating_add(1);
            if polls < POLLS_BEFORE_PROBE {
                return true;
            }
            if !tasks.probing.replace(true) {
                spawn_unwatched(probe());
            }
            if polls < POLLS_BEFORE_PAUSE || self.polls < POLLS_OF_BUSY_TASK {
                return true;
            }
            tasks.paused.borrow_mut().push(context.waker().clone());
            false
        })
    }
}

/// Wakes the caller once all tasks that are ready now had their turn. A task that woke itself
/// would go before them.
pub(super) fn after_the_others(context: &Context<'_>) {
    let first = TASKS.with(|tasks| {
        tasks.polls.set(tasks.polls.get().saturating_add(POLLS_OF_STEPPING_BACK));
        let mut stepped_back = tasks.stepped_back.borrow_mut();
        stepped_back.push(context.waker().clone());
        stepped_back.len() == 1
    });
    if first {
        // A new task stands at the end of the queue.
        spawn_unwatched(async {
            let stepped_back = TASKS.with(|tasks| tasks.stepped_back.take());
            stepped_back.into_iter().for_each(Waker::wake);
        });
    }
}

/// A timer that is due at once: when it fires, the core has looked at its sockets and timers.
async fn probe() {
    sleep(Duration::ZERO).await;
    let paused = TASKS.with(|tasks| {
        tasks.polls.set(0);
        tasks.round.set(tasks.round.get().wrapping_add(1));
        tasks.probing.set(false);
        tasks.paused.take()
    });
    paused.into_iter().for_each(Waker::wake);
}

struct Task {
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    place: usize,
    share: Share,
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.place == UNREGISTERED {
            self.place = register(context.waker());
        }
        if TASKS.with(|tasks| tasks.ending.get()) {
            self.drop_future();
            return Poll::Ready(());
        }
        if !self.share.may_poll(context) {
            return Poll::Pending;
        }
        let Some(future) = self.future.as_mut() else { return Poll::Ready(()) };
        match panics::contain(|| future.as_mut().poll(context)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => {}
            Err(panic) => panics::report(&panic, "a task"),
        }
        self.drop_future();
        Poll::Ready(())
    }
}

impl Task {
    fn drop_future(&mut self) {
        let future = self.future.take();
        if let Err(panic) = panics::contain(|| drop(future)) {
            panics::report(&panic, "dropping a task");
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.drop_future();
        // The thread may be on its way out, with its locals gone.
        let _ = TASKS.try_with(|tasks| {
            if self.place != UNREGISTERED {
                let waker = tasks.wakers.borrow_mut().get_mut(self.place).and_then(Option::take);
                if waker.is_some() {
                    tasks.free.borrow_mut().push(self.place);
                }
            }
            tasks.running.set(tasks.running.get().saturating_sub(1));
            if tasks.running.get() == 0 {
                tasks.all_ended.notify();
            }
        });
    }
}

fn register(waker: &Waker) -> usize {
    TASKS.with(|tasks| {
        let mut wakers = tasks.wakers.borrow_mut();
        if let Some(place) = tasks.free.borrow_mut().pop()
            && let Some(slot) = wakers.get_mut(place)
        {
            *slot = Some(waker.clone());
            return place;
        }
        wakers.push(Some(waker.clone()));
        wakers.len() - 1
    })
}
