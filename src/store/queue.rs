//! The bounded queue in front of the store's thread.
//!
//! What has been accepted counts against the bounds until it is on disk or answered, not only
//! while it lies here. A write that nobody waits for does not wake the thread: the first of a
//! group does, the rest ride along until the group is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};

use super::command::{COMMAND_BYTES, Command, Load};
use super::uncommitted::{Entry, Uncommitted};
use super::{Batch, StoreError, StoreState};

/// What the store's thread has finished since it last said so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) load: Load,
    /// Number of the last write that is on disk.
    pub(super) through: u64,
}

/// Writes that the engine is late with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late {
    /// Number of the first of them.
    pub(super) first: u64,
    /// Number of the last write that is on disk.
    pub(super) settled: u64,
}

/// What the store's thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    Awake,
    ForAnything,
    /// A group is collecting: only somebody who waits, or pressure, ends the sleep early.
    ForUrgent,
}

struct Queue {
    commands: Vec<Command>,
    /// The writes among the commands, and those that were taken and are not on disk.
    uncommitted: Uncommitted,
    urgent: usize,
    load: Load,
    /// When the first of the waiting writes came that nobody waits for.
    oldest: Option<Instant>,
    sleep: Sleep,
    /// The thread that writes the tail has nothing to look after.
    is_tail_idle: bool,
    closed: bool,
    /// The store's thread is done with everything.
    finished: bool,
}

/// What callers and the store's thread share.
pub(super) struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    wake_tail: Condvar,
    bound: Load,
    /// What writes that nobody waits for may use of it: a flood of them must not shut out those
    /// who wait.
    bound_behind: Load,
    /// How long writes that nobody waits for may take until they are with the kernel.
    promise: Duration,
    read_only: AtomicBool,
    state: RwLock<StoreState>,
}

impl Shared {
    /// An empty queue that takes `bound`, and whose writes are with the kernel within `promise`.
    pub(super) fn new(bound: Load, promise: Duration) -> Self {
        Self {
            queue: Mutex::new(Queue {
                commands: Vec::new(),
                uncommitted: Uncommitted::new(0),
                urgent: 0,
                load: Load::default(),
                oldest: None,
                sleep: Sleep::Awake,
                is_tail_idle: false,
                closed: false,
                finished: false,
            }),
            wake: Condvar::new(),
            wake_tail: Condvar::new(),
            bound,
            bound_behind: Load {
                count: bound.count - bound.count / 8,
                bytes: bound.bytes - bound.bytes / 8,
            },
            promise,
            read_only: AtomicBool::new(false),
            state: RwLock::new(StoreState::Healthy),
        }
    }

    /// Whether writes are taken, and if not, why.
    pub(super) fn state(&self) -> StoreState {
        self.state.read().clone()
    }

    /// Changes what [`Shared::state`] says and whether writes are taken.
    pub(super) fn set_state(&self, state: StoreState) {
        let read_only = matches!(state, StoreState::ReadOnly { .. });
        *self.state.write() = state;
        self.read_only.store(read_only, Ordering::Release);
    }

    /// Refuses writes in a read-only store.
    pub(super) fn writable(&self) -> Result<(), StoreError> {
        if !self.read_only.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.state() {
            StoreState::ReadOnly { reason } => Err(StoreError::ReadOnly { reason }),
            StoreState::Healthy => Ok(()),
        }
    }

    /// Accepts a batch that nobody waits for, or gives it back.
    pub(super) fn push_behind(&self, batch: Batch) -> Result<(), (StoreError, Batch)> {
        let mut command = Some(Command::Behind(Arc::new(batch)));
        self.offer(&mut command).map_err(|error| match command {
            Some(Command::Behind(batch)) => (error, Arc::unwrap_or_clone(batch)),
            _ => (error, Batch::new()),
        })
    }

    /// Accepts a command, or says why not. Never blocks for longer than the queue's lock.
    pub(super) fn push(&self, command: Command) -> Result<(), StoreError> {
        self.offer(&mut Some(command))
    }

    /// Takes the command unless it is refused.
    fn offer(&self, offered: &mut Option<Command>) -> Result<(), StoreError> {
        let Some(command) = offered.as_ref() else { return Ok(()) };
        let added = command.load();
        let urgent = command.is_urgent();
        let bound = if urgent { self.bound } else { self.bound_behind };
        if added.bytes > bound.bytes {
            let (bytes, bytes_max) = (added.bytes, bound.bytes);
            return Err(StoreError::TooLarge { bytes, bytes_max });
        }
        let mut queue = self.queue.lock();
        if queue.closed {
            return Err(StoreError::Stopped);
        }
        let mut load = queue.load;
        load.add(added);
        if !load.fits(bound) {
            return Err(StoreError::Full);
        }
        queue.load = load;
        queue.urgent += usize::from(urgent);
        if !urgent && queue.oldest.is_none() {
            queue.oldest = Some(Instant::now());
        }
        if let Some(batch) = command.batch() {
            queue.uncommitted.push(Arc::clone(batch), Instant::now);
        }
        queue.commands.extend(offered.take());
        let wake = match queue.sleep {
            Sleep::Awake => false,
            Sleep::ForAnything => true,
            Sleep::ForUrgent => urgent || self.is_pressed(load),
        };
        if wake {
            queue.sleep = Sleep::Awake;
        }
        drop(queue);
        if wake {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Takes nothing more; what was accepted is still done.
    pub(super) fn close(&self) {
        self.queue.lock().closed = true;
        self.wake.notify_all();
    }

    /// Waits until there is something to do and moves it into `commands`: at once for somebody
    /// who waits, else when the group is due. Returns true when nothing will come after it.
    ///
    /// `done` is what has been finished since the last call. `flush_at` is when the writes that
    /// are not on disk yet are due; it is set here when a new group begins. `retry_at` ends the
    /// wait as well.
    pub(super) fn take(
        &self,
        commands: &mut Vec<Command>,
        done: Done,
        flush_at: &mut Option<Instant>,
        retry_at: Option<Instant>,
    ) -> bool {
        self.settle(done);
        let mut queue = self.queue.lock();
        loop {
            let waiting = !queue.commands.is_empty();
            // Counted from when it was accepted: the thread may have been busy since.
            if flush_at.is_none() {
                *flush_at = queue.oldest.map(|oldest| oldest + self.interval());
            }
            if queue.urgent > 0 || queue.closed || (waiting && self.is_pressed(queue.load)) {
                break;
            }
            let now = Instant::now();
            let alarm = match (*flush_at, retry_at) {
                (Some(flush), Some(retry)) => Some(flush.min(retry)),
                (flush, retry) => flush.or(retry),
            };
            queue.sleep = if flush_at.is_some() { Sleep::ForUrgent } else { Sleep::ForAnything };
            if flush_at.is_some() {
                self.rouse_tail(&mut queue);
            }
            match alarm {
                Some(at) if at <= now => break,
                Some(at) => {
                    self.wake.wait_until(&mut queue, at);
                }
                None => self.wake.wait(&mut queue),
            }
        }
        queue.sleep = Sleep::Awake;
        self.rouse_tail(&mut queue);
        queue.uncommitted.end_group();
        queue.urgent = 0;
        queue.oldest = None;
        std::mem::swap(&mut queue.commands, commands);
        queue.closed
    }

    /// Notes what is finished.
    pub(super) fn settle(&self, done: Done) {
        let mut queue = self.queue.lock();
        queue.load.subtract(done.load);
        let settled: Vec<_> = queue.uncommitted.settle(done.through).collect();
        drop(queue);
        // Freed where nobody waits for the lock.
        drop(settled);
    }

    /// The numbers of the writes go on behind `through`. Before the first of them.
    pub(super) fn begin_behind(&self, through: u64) {
        self.queue.lock().uncommitted = Uncommitted::new(through);
    }

    /// A write that was refused after all.
    pub(super) fn withdraw(&self, number: u64) {
        self.queue.lock().uncommitted.withdraw(number);
    }

    /// The writes behind `after` that are not on disk, up to number `through`.
    pub(super) fn uncommitted(&self, after: u64, through: u64) -> Vec<(u64, Entry)> {
        let queue = self.queue.lock();
        let after = after.max(queue.uncommitted.settled());
        (after + 1..=through).zip(queue.uncommitted.behind(after).cloned()).collect()
    }

    /// Waits until the engine is late with writes behind number `written`, and moves them into
    /// `late`, up to about `bytes_max`. None: the store's thread has finished, and nothing more
    /// will come. `retry`: the last ones could not be written; not before that time.
    pub(super) fn wait_for_late(
        &self,
        written: u64,
        bytes_max: usize,
        retry: Option<Duration>,
        late: &mut Vec<Entry>,
    ) -> Option<Late> {
        let retry_at = retry.map(|retry| Instant::now() + retry);
        let patience = self.promise * 3 / 4;
        let mut queue = self.queue.lock();
        loop {
            let now = Instant::now();
            let due = queue.uncommitted.oldest_behind(written).map(|at| at + patience);
            if queue.finished && (due.is_none() || retry.is_some()) {
                return None;
            }
            let alarm = match due {
                Some(_) if queue.finished => break,
                Some(due) => due.max(retry_at.unwrap_or(due)),
                // It takes what comes, and says when it goes on.
                None if queue.sleep == Sleep::ForAnything => {
                    queue.is_tail_idle = true;
                    self.wake_tail.wait(&mut queue);
                    queue.is_tail_idle = false;
                    continue;
                }
                None => now + patience,
            };
            if due.is_some() && alarm <= now {
                break;
            }
            self.wake_tail.wait_until(&mut queue, alarm);
        }
        let settled = queue.uncommitted.settled();
        let mut left = bytes_max;
        for entry in queue.uncommitted.behind(written) {
            if left == 0 {
                return Some(Late { first: settled.max(written) + 1, settled });
            }
            let bytes = entry.as_ref().map_or(0, |batch| batch.bytes()) + COMMAND_BYTES;
            left = left.saturating_sub(bytes);
            late.push(entry.clone());
        }
        queue.uncommitted.end_group();
        Some(Late { first: settled.max(written) + 1, settled })
    }

    fn rouse_tail(&self, queue: &mut Queue) {
        if std::mem::take(&mut queue.is_tail_idle) {
            self.wake_tail.notify_one();
        }
    }

    /// The store's thread is done with everything; what is uncommitted now stays so.
    pub(super) fn finish(&self) {
        self.queue.lock().finished = true;
        self.wake_tail.notify_one();
    }

    /// How long writes that nobody waits for are collected: half of the promise. A quarter is for
    /// the engine, the last one for the tail where the engine is late.
    pub(super) fn interval(&self) -> Duration {
        self.promise / 2
    }

    /// Half full: the thread should not wait any longer.
    pub(super) fn is_pressed(&self, load: Load) -> bool {
        load.count >= self.bound.count / 2 || load.bytes >= self.bound.bytes / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::oneshot;
    use crate::store::Tree;

    fn shared(count: usize, bytes: usize) -> Shared {
        Shared::new(Load { count, bytes }, Duration::from_millis(40))
    }

    fn behind(bytes: usize) -> Command {
        let mut batch = Batch::new();
        batch.put(Tree::Sessions, b"k", &vec![0; bytes]);
        Command::Behind(Arc::new(batch))
    }

    fn get() -> Command {
        // Nobody listens; the queue does not care.
        Command::Get { tree: Tree::Meta, key: Vec::new(), reply: oneshot().0 }
    }

    #[test]
    fn is_bounded_in_count() {
        let shared = shared(8, 1 << 20);
        for _ in 0..7 {
            shared.push(behind(1)).unwrap();
        }
        assert!(matches!(shared.push(behind(1)), Err(StoreError::Full)));
        // Room that only those get who wait.
        shared.push(get()).unwrap();
        assert!(matches!(shared.push(get()), Err(StoreError::Full)));
        let (mut taken, mut flush_at) = (Vec::new(), None);
        shared.take(&mut taken, Done::default(), &mut flush_at, None);
        assert_eq!(taken.len(), 8);
        // Taken is not done: the bound holds until it is.
        assert!(matches!(shared.push(get()), Err(StoreError::Full)));
        let mut done = Done { through: 7, ..Done::default() };
        for command in &taken {
            done.load.add(command.load());
        }
        taken.clear();
        shared.take(&mut taken, done, &mut Some(Instant::now()), None);
        shared.push(behind(1)).unwrap();
    }

    #[test]
    fn is_bounded_in_bytes() {
        let shared = shared(100, 4096);
        shared.push(behind(2000)).unwrap();
        assert!(matches!(shared.push(behind(2000)), Err(StoreError::Full)));
        let too_large = shared.push(behind(5000));
        assert!(matches!(too_large, Err(StoreError::TooLarge { bytes_max: 3584, .. })));
    }

    #[test]
    fn a_closed_queue_takes_nothing_and_gives_what_it_has() {
        let shared = shared(100, 4096);
        shared.push(behind(1)).unwrap();
        shared.close();
        assert!(matches!(shared.push(behind(1)), Err(StoreError::Stopped)));
        let mut taken = Vec::new();
        assert!(shared.take(&mut taken, Done::default(), &mut None, None));
        assert_eq!(taken.len(), 1);
    }

    #[test]
    fn a_group_waits_until_it_is_due_unless_somebody_waits() {
        let shared = shared(100, 1 << 20);
        shared.push(behind(1)).unwrap();
        let (mut taken, mut flush_at) = (Vec::new(), None);
        let start = Instant::now();
        shared.take(&mut taken, Done::default(), &mut flush_at, None);
        assert!(start.elapsed() >= Duration::from_millis(20), "{:?}", start.elapsed());
        assert!(flush_at.is_some());
        taken.clear();
        shared.push(behind(1)).unwrap();
        shared.push(get()).unwrap();
        let mut flush_at = Some(Instant::now() + Duration::from_mins(1));
        shared.take(&mut taken, Done::default(), &mut flush_at, None);
        assert_eq!(taken.len(), 2);
    }

    #[test]
    fn a_group_is_due_from_its_first_write_on() {
        let shared = shared(100, 1 << 20);
        shared.push(behind(1)).unwrap();
        std::thread::park_timeout(Duration::from_millis(30));
        let (mut taken, mut flush_at) = (Vec::new(), None);
        // The thread was busy meanwhile; the group is late already.
        let start = Instant::now();
        shared.take(&mut taken, Done::default(), &mut flush_at, None);
        assert!(start.elapsed() < Duration::from_millis(15), "{:?}", start.elapsed());
        // Somebody who waits takes it along, and does not put it off.
        let mut flush_at = None;
        shared.push(behind(1)).unwrap();
        shared.push(get()).unwrap();
        shared.take(&mut taken, Done::default(), &mut flush_at, None);
        assert!(flush_at.is_some());
    }

    #[test]
    fn pressure_ends_the_collecting() {
        let shared = shared(4, 1 << 20);
        shared.push(behind(1)).unwrap();
        shared.push(behind(1)).unwrap();
        let mut flush_at = Some(Instant::now() + Duration::from_mins(1));
        let mut taken = Vec::new();
        shared.take(&mut taken, Done::default(), &mut flush_at, None);
        assert_eq!(taken.len(), 2);
    }

    #[test]
    fn what_is_not_settled_in_time_is_late() {
        let shared = shared(100, 1 << 20);
        let start = Instant::now();
        for bytes in [10, 1 << 10, 10] {
            shared.push(behind(bytes)).unwrap();
        }
        let (mut taken, mut late) = (Vec::new(), Vec::new());
        shared.take(&mut taken, Done::default(), &mut Some(start), None);
        // Part by part, but all of it once the first is late.
        let first = shared.wait_for_late(0, 1 << 10, None, &mut late);
        assert!(start.elapsed() >= Duration::from_millis(30), "{:?}", start.elapsed());
        assert_eq!((first, late.len()), (Some(Late { first: 1, settled: 0 }), 2));
        late.clear();
        let rest = shared.wait_for_late(2, 1 << 10, None, &mut late);
        assert_eq!((rest, late.len()), (Some(Late { first: 3, settled: 0 }), 1));
        // What comes now is not late yet, and what is settled never is.
        late.clear();
        shared.push(behind(10)).unwrap();
        shared.push(behind(10)).unwrap();
        shared.withdraw(5);
        shared.settle(Done { through: 4, ..Done::default() });
        let next = shared.wait_for_late(3, 1 << 10, None, &mut late);
        assert!(start.elapsed() >= Duration::from_millis(60), "{:?}", start.elapsed());
        assert_eq!((next, late.len()), (Some(Late { first: 5, settled: 4 }), 1));
        assert!(late[0].is_none());
        // At the end the rest is late at once; where it cannot be written that is the end.
        shared.push(behind(10)).unwrap();
        shared.finish();
        late.clear();
        let last = shared.wait_for_late(5, 1 << 10, None, &mut late);
        assert_eq!((last, late.len()), (Some(Late { first: 6, settled: 4 }), 1));
        let retry = Some(Duration::from_mins(1));
        assert_eq!(shared.wait_for_late(5, 1 << 10, retry, &mut late), None);
        assert_eq!(shared.wait_for_late(6, 1 << 10, None, &mut late), None);
    }

    #[test]
    fn a_read_only_store_says_why() {
        let shared = shared(4, 4096);
        assert!(shared.writable().is_ok());
        shared.set_state(StoreState::ReadOnly { reason: "no room".into() });
        assert_eq!(shared.writable().unwrap_err().to_string(), "the store is read-only: no room");
        shared.set_state(StoreState::Healthy);
        assert!(shared.writable().is_ok());
    }
}
