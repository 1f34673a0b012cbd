//! The store's thread: takes all that waits, applies it as one group, flushes, answers.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::closing::{CLOSE_WAIT, Closer};
use super::command::{Command, Got, Load, Scanned, Written};
use super::group::{Group, attempt};
use super::opened::Opened;
use super::opening::Place;
use super::queue::{Done, Shared};
use super::space::Space;
use super::tail::{self, Tail};
use super::{StoreError, StoreOptions, StoreState, Tree};
use crate::rt::OneshotSender;

/// How often a read-only store looks whether its trouble is over, and a writing one whether
/// there is still room.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// How long the engine may take to close in good order: it may have much to write.
const CLOSE_AT_STOP: Duration = Duration::from_mins(1);

/// Opens the store and starts its thread. Returns when it is open.
pub(super) fn start(
    directory: &Path,
    options: StoreOptions,
    shared: Arc<Shared>,
) -> Result<JoinHandle<Result<(), StoreError>>, StoreError> {
    let directory = directory.to_owned();
    let (opened, is_open) = mpsc::sync_channel(1);
    let thread = thread::Builder::new()
        .name("ringway-store".to_owned())
        .spawn(move || {
            // Callers must not wait for a thread that is gone, however it went.
            let closing = CloseOnDrop(&shared);
            let (mut worker, tail) = match Worker::open(&directory, &options, closing.0) {
                Ok(opened) => opened,
                Err(error) => {
                    let _ = opened.send(Err(error.clone()));
                    return Err(error);
                }
            };
            thread::scope(|scope| {
                let finishing = FinishOnDrop(&shared);
                let spawned = thread::Builder::new()
                    .name("ringway-tail".to_owned())
                    .spawn_scoped(scope, || tail::run(&shared, tail));
                if let Err(error) = spawned {
                    let error = StoreError::Thread(Arc::new(error));
                    let _ = opened.send(Err(error.clone()));
                    return Err(error);
                }
                let _ = opened.send(Ok(()));
                let result = worker.run();
                drop(finishing);
                result
            })
        })
        .map_err(|error| StoreError::Thread(Arc::new(error)))?;
    is_open.recv().unwrap_or(Err(StoreError::Stopped))?;
    Ok(thread)
}

struct CloseOnDrop<'a>(&'a Shared);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
        // Dropping the commands tells those who wait for them.
        self.0.take(&mut Vec::new(), Done::default(), &mut None, None);
    }
}

/// Ends the thread of the tail, which holds nothing that the next opening of the store may touch.
struct FinishOnDrop<'a>(&'a Shared);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Why the store is read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// Too little room is left; what was accepted is written all the same.
    Shortage,
    /// A write failed. The engine has been opened again, as it refuses all further ones; what was
    /// accepted waits until it can be repeated.
    Broken,
}

struct Worker<'a> {
    shared: &'a Shared,
    place: Place,
    space: Space,
    /// None while the engine could not be reopened.
    opened: Option<Opened>,
    closer: Closer,
    group: Group,
    /// Who waits for the group to be on disk, and for which write.
    waiters: Vec<(u64, OneshotSender<Written>)>,
    /// Number of the last write that was taken from the queue.
    taken: u64,
    /// Accepted writes nobody waits for that are not on disk: the queue keeps them, and they are
    /// repeated if the engine breaks.
    kept_load: Load,
    /// What is finished and not yet told to the queue.
    done: Done,
    flush_at: Option<Instant>,
    check_at: Instant,
    /// Written since the last look at the room left.
    unchecked_bytes: usize,
    trouble: Option<Trouble>,
}

impl<'a> Worker<'a> {
    fn open(
        directory: &Path,
        options: &StoreOptions,
        shared: &'a Shared,
    ) -> Result<(Self, Tail), StoreError> {
        let place = Place::claim(directory, options.cache_bytes)?;
        let mut space = Space::new(&place.directory, options.free_bytes_min);
        let opened = place.open_first(&mut space)?;
        let closer = Closer::start(&place.directory)?;
        let through = opened.through;
        shared.begin_behind(through.number);
        let tail = Tail::begin(&place.directory, through.identity);
        let mut worker = Self {
            shared,
            place,
            space,
            opened: Some(opened),
            closer,
            group: Group::default(),
            waiters: Vec::new(),
            taken: through.number,
            kept_load: Load::default(),
            done: Done { through: through.number, ..Done::default() },
            flush_at: None,
            check_at: Instant::now(),
            unchecked_bytes: 0,
            trouble: None,
        };
        worker.check();
        Ok((worker, tail))
    }

    fn run(&mut self) -> Result<(), StoreError> {
        let mut commands = Vec::new();
        loop {
            let retry_at = self.trouble.map(|_| self.check_at);
            let done = self.done;
            self.done.load = Load::default();
            let closed = self.shared.take(&mut commands, done, &mut self.flush_at, retry_at);
            if Instant::now() >= self.check_at || self.space.is_used_up(self.unchecked_bytes) {
                self.check();
            }
            for command in commands.drain(..) {
                self.obey(command);
            }
            let now = Instant::now();
            if self.flush_at.is_none() && self.keeps_some() && !self.is_broken() {
                self.flush_at = Some(now + self.shared.interval());
            }
            let due =
                self.flush_at.is_some_and(|at| at <= now) || self.shared.is_pressed(self.kept_load);
            if !self.waiters.is_empty() || due || closed {
                self.commit();
            } else {
                self.apply();
            }
            if closed {
                return self.finish();
            }
        }
    }

    fn keeps_some(&self) -> bool {
        self.kept_load.count > 0
    }

    fn is_broken(&self) -> bool {
        self.trouble == Some(Trouble::Broken)
    }

    fn obey(&mut self, command: Command) {
        let load = command.load();
        match command {
            Command::Write { batch, reply } => {
                self.done.load.add(load);
                self.taken += 1;
                if self.is_broken() {
                    self.shared.withdraw(self.taken);
                    let _ = reply.send(self.shared.writable());
                    return;
                }
                self.group.add(self.taken, Some(&batch));
                self.waiters.push((self.taken, reply));
            }
            Command::Behind(batch) => {
                self.taken += 1;
                if !self.is_broken() {
                    self.group.add(self.taken, Some(&batch));
                }
                self.kept_load.add(load);
            }
            Command::Get { tree, key, reply } => {
                self.done.load.add(load);
                self.apply();
                let _ = reply.send(self.get(tree, &key));
            }
            Command::Scan { tree, after, limit, reply } => {
                self.done.load.add(load);
                self.apply();
                let _ = reply.send(self.scan(tree, after, limit));
            }
        }
        if self.group.is_large() {
            self.apply();
        }
    }

    /// Hands the group to the engine. Not on disk yet.
    fn apply(&mut self) {
        let group = std::mem::take(&mut self.group);
        self.unchecked_bytes = self.unchecked_bytes.saturating_add(group.bytes());
        let Some(opened) = &mut self.opened else { return };
        if let Err(reason) = group.apply(opened) {
            self.break_down(&reason);
        }
    }

    /// Applies, brings everything to disk, and answers.
    fn commit(&mut self) {
        self.apply();
        self.flush_at = None;
        if self.is_broken() {
            return;
        }
        if !self.keeps_some() && self.waiters.is_empty() {
            return;
        }
        let is_durable = !self.waiters.is_empty();
        let flushed = self.flush().and_then(|()| {
            self.settle();
            // Those who waited have their answer: the ledger may be late, never early.
            match &self.opened {
                Some(opened) if is_durable => {
                    opened.ledger.sync().map_err(|error| error.to_string())
                }
                _ => Ok(()),
            }
        });
        if let Err(reason) = flushed {
            self.break_down(&reason);
        }
    }

    fn flush(&mut self) -> Result<(), String> {
        #[cfg(test)]
        super::tests::stall(&self.place.directory)?;
        let Some(opened) = &mut self.opened else { return Err("it is not open".to_owned()) };
        attempt(|| opened.flush())?;
        let is_durable = !self.waiters.is_empty();
        if is_durable {
            opened.disk.sync().map_err(|error| error.to_string())?;
        }
        opened.ledger.promise(opened.holding, is_durable).map_err(|error| error.to_string())
    }

    /// Everything is where it was promised to be.
    fn settle(&mut self) {
        for (_, waiter) in self.waiters.drain(..) {
            let _ = waiter.send(Ok(()));
        }
        self.done.through = self.taken;
        self.done.load.add(std::mem::take(&mut self.kept_load));
    }

    /// Turns read-only after a failed write.
    fn break_down(&mut self, reason: &str) {
        let directory = self.place.directory.display();
        let reason: Arc<str> = format!(
            "writing to {directory} failed: {reason}; trying again every {} s",
            CHECK_EVERY.as_secs()
        )
        .into();
        tracing::error!(%reason, "the store is read-only");
        self.trouble = Some(Trouble::Broken);
        self.shared.set_state(StoreState::ReadOnly { reason: Arc::clone(&reason) });
        self.group = Group::default();
        self.flush_at = None;
        self.check_at = Instant::now() + CHECK_EVERY;
        for (number, waiter) in self.waiters.drain(..) {
            self.shared.withdraw(number);
            let _ = waiter.send(Err(StoreError::ReadOnly { reason: Arc::clone(&reason) }));
        }
        // At once, with the room of the reserve: reads of an engine that failed can fail too.
        self.space.release_reserve();
        self.reopen();
    }

    /// Looks for trouble that begins or ends.
    fn check(&mut self) {
        self.check_at = Instant::now() + CHECK_EVERY;
        self.unchecked_bytes = 0;
        if self.opened.is_none() && !self.reopen() {
            return;
        }
        let shortage = self.space.shortage();
        if self.is_broken() && shortage.is_none() {
            match self.repeat().and_then(|()| self.flush()) {
                Ok(()) => self.settle(),
                Err(reason) => return self.break_down(&reason),
            }
        }
        if let Some(reason) = shortage {
            if self.trouble.is_none() {
                tracing::error!(%reason, "the store is read-only");
                self.trouble = Some(Trouble::Shortage);
            }
            self.shared.set_state(StoreState::ReadOnly { reason: reason.into() });
        } else {
            self.space.take_reserve();
            if self.trouble.take().is_some() {
                tracing::info!("the store takes writes again");
                self.shared.set_state(StoreState::Healthy);
            }
        }
    }

    /// Opens the engine again after it failed. False: it cannot be opened.
    fn reopen(&mut self) -> bool {
        // Those who wait for an answer wait for this too, but only the first time.
        let patience = match self.opened.take() {
            Some(failed) => {
                self.closer.begin(failed);
                CLOSE_WAIT
            }
            None => Duration::ZERO,
        };
        if self.closer.wait(patience).is_none() {
            let reason = "the storage engine failed and does not let go of its files; if this \
                          lasts, restart the process";
            if !patience.is_zero() {
                tracing::error!(%reason, "the store cannot be reopened yet");
            }
            self.shared.set_state(StoreState::ReadOnly { reason: reason.into() });
            return false;
        }
        match self.place.open() {
            Ok(opened) => {
                self.opened = Some(opened);
                true
            }
            Err(error) => {
                tracing::error!(%error, "the store cannot be reopened");
                let reason = error.to_string().into();
                self.shared.set_state(StoreState::ReadOnly { reason });
                false
            }
        }
    }

    /// Gives the engine once more what was accepted before it failed, and it does not have.
    fn repeat(&mut self) -> Result<(), String> {
        let Some(opened) = &mut self.opened else { return Err("it is not open".to_owned()) };
        let mut group = Group::default();
        for (number, batch) in self.shared.uncommitted(opened.through.number, self.taken) {
            group.add(number, batch.as_deref());
            if group.is_large() {
                std::mem::take(&mut group).apply(opened)?;
            }
        }
        group.apply(opened)
    }

    fn get(&self, tree: Tree, key: &[u8]) -> Got {
        let value = attempt(|| self.tree(tree)?.get(key)).map_err(StoreError::Read)?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(&self, tree: Tree, after: Option<Vec<u8>>, limit: usize) -> Scanned {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        attempt(|| {
            self.tree(tree)?
                .range::<Vec<u8>, _>((start, Bound::Unbounded))
                .take(limit)
                .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())))
                .collect()
        })
        .map_err(StoreError::Read)
    }

    fn tree(&self, tree: Tree) -> sled::Result<&sled::Tree> {
        let closed = || sled::Error::Unsupported("it could not be reopened".to_owned());
        Ok(self.opened.as_ref().ok_or_else(closed)?.tree(tree))
    }

    /// Closes the files. Fails where accepted writes are lost by that.
    fn finish(&mut self) -> Result<(), StoreError> {
        if self.is_broken() {
            // The last chance of what is kept.
            self.check();
        }
        let lost = self.keeps_some();
        self.shared.settle(self.done);
        let opened = self.opened.take();
        let was_open = opened.is_some();
        if let Some(opened) = opened {
            self.closer.begin(opened);
        }
        let closed = self.closer.wait(if was_open { CLOSE_AT_STOP } else { Duration::ZERO });
        if closed.is_none() {
            tracing::error!("the storage engine does not close; the process ends without it");
        }
        if was_open
            && closed == Some(true)
            && !self.is_broken()
            && let Err(error) = self.place.mark_closed()
        {
            tracing::warn!(%error, "the store is closed without a note of its length");
        }
        if lost {
            tracing::error!(batches = self.kept_load.count, "accepted writes are not on disk");
            self.shared.writable()?;
        }
        Ok(())
    }
}
