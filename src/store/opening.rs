//! Opening: everything that must be so before the first record is read.
//!
//! In this order: the format file (an unknown version is refused before a byte is written), our
//! own lock (before another process's files are touched), the mark of an orderly stop or else a
//! copy of the files, leftovers of an interrupted snapshot, sled itself with its panics contained,
//! the format record, the trees, what the ledger promises, and what the tail has for the engine.
//!
//! A store that is refused as damaged is left as it was found.

use std::fs::{self, File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::files::{
    BLOBS_NAME, LOCK_WAIT, LOG_NAME, SNAPSHOT_PREFIX, UNFINISHED_SUFFIX, close_directory,
    close_files,
};
use super::format::{
    FORMAT_KEY, check_format_file, format_record, read_format_record, write_format_file,
};
use super::group::{Group, attempt};
use super::ledger::{self, Holding, Ledger};
use super::mark::{self, Mark};
use super::opened::{Opened, SEQUENCE_NAME, Through, held};
use super::space::{Disk, Space, free_bytes, is_no_room};
use super::{FORMAT, StoreError, Tree, copies, tail};
use crate::rt::files::{make_private_directory, private};

/// sled's parameters: written once, at the first opening, in two steps and without a sync.
const PARAMETERS_NAME: &str = "conf";
/// Held while the store is open. sled locks as well, but only after it has touched files.
pub(super) const LOCK_NAME: &str = "lock";
/// Stands in front of a snapshot that was moved aside; keeps sled from reading it.
pub(super) const ASIDE_PREFIX: &str = "aside.";
/// The kernel closes the files of a killed process some milliseconds after it has gone.
const OWNER_WAIT: Duration = Duration::from_millis(500);

/// The directory, locked for this process.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) directory: PathBuf,
    cache_bytes: u64,
    /// Whether a start before this one got as far as writing the format record.
    is_known: bool,
    _lock: File,
}

impl Place {
    /// Makes the directory if needed, checks its format and locks it.
    pub(super) fn claim(directory: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        let fail = |error| directory_error(directory, error);
        make_private_directory(directory).map_err(fail)?;
        // Absolute: sled compares path texts, and the working directory may change.
        let directory = directory.canonicalize().map_err(fail)?;
        let fail = |error| directory_error(&directory, error);
        let is_known = check_format_file(&directory)?;
        let lock = private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join(LOCK_NAME))
            .map_err(fail)?;
        let give_up_at = Instant::now() + OWNER_WAIT;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(fail(error)),
                Err(TryLockError::WouldBlock) if Instant::now() < give_up_at => {
                    std::thread::park_timeout(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { directory }),
            }
        }
        Ok(Self { directory, cache_bytes, is_known, _lock: lock })
    }

    /// Opens what lies there for the first time in this process, or makes an empty store. Where
    /// there is no room to open it, the reserve is given up.
    pub(super) fn open_first(&self, space: &mut Space) -> Result<Opened, StoreError> {
        let fail = |error| directory_error(&self.directory, error);
        let is_closed = match mark::verify(&self.directory).map_err(fail)? {
            Mark::Broken(detail) => return Err(self.damaged(detail)),
            Mark::Holds => true,
            Mark::Missing => false,
        };
        copies::settle(&self.directory, is_closed).map_err(fail)?;
        close_directory(&self.directory).map_err(fail)?;
        close_files(&self.directory).map_err(fail)?;
        // A store that no start has finished making has nothing to lose, and is finished by this
        // one: going back behind its format file would look like a loss.
        if !is_closed && self.is_known && self.directory.join(LOG_NAME).exists() {
            copies::take(&self.directory, space.needed_bytes());
        }
        // From here on the log changes.
        mark::clear(&self.directory).map_err(fail)?;
        let mut result = self.open_whole();
        if matches!(result, Err(StoreError::NoRoom { .. })) && space.release_reserve() {
            tracing::warn!("no room to open the store; the reserve is given up for it");
            result = self.open_whole();
        }
        let settled = match result {
            Ok(_) => copies::keep(&self.directory),
            Err(_) => copies::restore(&self.directory),
        };
        if let Err(error) = settled {
            tracing::error!(%error, "the copy of the store's files cannot be put in its place");
        }
        result.map_err(|error| match error {
            StoreError::NoRoom { directory, free_bytes, .. } => {
                let needed_bytes = space.needed_bytes();
                StoreError::NoRoom { directory, free_bytes, needed_bytes }
            }
            other => other,
        })
    }

    /// Opens what lies there, and takes from the tail what the engine lacks.
    fn open_whole(&self) -> Result<Opened, StoreError> {
        let mut opened = self.open()?;
        match self.take_tail(&mut opened) {
            Ok(0) => {}
            Ok(taken) => tracing::info!(
                writes = taken,
                "the disk was late when the process died; its last writes were found beside the log"
            ),
            Err(detail) => {
                let _ = contained(|| drop(opened));
                return Err(self.words_error(detail));
            }
        }
        Ok(opened)
    }

    /// Returns when what the tail holds behind the engine is on the disk, and how much that was.
    /// The tail stays as it is.
    fn take_tail(&self, opened: &mut Opened) -> Result<u64, String> {
        let Through { identity, number: before } = opened.through;
        let mut group = Group::default();
        for (number, batch) in tail::read(&self.directory, identity, before) {
            group.add(number, Some(&batch));
            if group.is_large() {
                std::mem::take(&mut group).apply(opened)?;
            }
        }
        group.apply(opened)?;
        let taken = opened.through.number - before;
        if taken > 0 {
            attempt(|| opened.flush())?;
            opened.disk.sync().map_err(|error| error.to_string())?;
            opened.ledger.promise(opened.holding, true).map_err(|error| error.to_string())?;
        }
        Ok(taken)
    }

    /// Opens what lies there.
    pub(super) fn open(&self) -> Result<Opened, StoreError> {
        let fail = |error| directory_error(&self.directory, error);
        for leftover in self.snapshots(|name| name.ends_with(UNFINISHED_SUFFIX)).map_err(fail)? {
            tracing::warn!(path = %leftover.display(), "removing an unfinished snapshot");
            fs::remove_file(&leftover).map_err(fail)?;
        }
        if !self.is_known {
            remove_torn_parameters(&self.directory).map_err(fail)?;
        }
        // Made before sled does: it makes them as the umask says.
        make_private_directory(&self.directory.join(BLOBS_NAME)).map_err(fail)?;
        let log = self.directory.join(LOG_NAME);
        private().append(true).create(true).open(log).map_err(fail)?;
        let db = match self.open_engine() {
            Err(EngineError::Failed(sled::Error::Corruption { .. })) => self.rebuild()?,
            other => other.map_err(|error| self.engine_error(error))?,
        };
        let result = match contained(|| self.open_trees(&db)) {
            Ok(opened) => opened,
            Err(detail) => Err(self.engine_error(EngineError::Panicked(detail))),
        };
        let _ = contained(|| drop(db));
        close_files(&self.directory).map_err(fail)?;
        result
    }

    fn open_trees(&self, db: &sled::Db) -> Result<Opened, StoreError> {
        let fail = |error| directory_error(&self.directory, error);
        let engine = |error| self.engine_error(EngineError::Failed(error));
        self.check_format_record(db)?;
        let meta = db.open_tree(Tree::Meta.name()).map_err(engine)?;
        if meta.get(FORMAT_KEY).map_err(engine)?.is_none() {
            meta.insert(FORMAT_KEY, format_record().as_slice()).map_err(engine)?;
            db.flush().map_err(engine)?;
        }
        // The file must never be there without the record: see `check_format_record`.
        let mut disk = Disk::open(&self.directory).map_err(fail)?;
        disk.sync().map_err(fail)?;
        write_format_file(&self.directory).map_err(fail)?;
        let mut trees = Vec::with_capacity(Tree::ALL.len());
        for tree in Tree::ALL {
            trees.push(db.open_tree(tree.name()).map_err(engine)?);
        }
        let sequence = db.open_tree(SEQUENCE_NAME).map_err(engine)?;
        let holding = held(&trees, &sequence).map_err(engine)?;
        self.check_ledger(&holding)?;
        let through = if let Some(through) = Through::read(&sequence).map_err(engine)? {
            through
        } else {
            let through = Through { identity: new_identity().map_err(fail)?, number: 0 };
            through.write(&sequence).map_err(engine)?;
            through
        };
        db.flush().map_err(engine)?;
        disk.sync().map_err(fail)?;
        let ledger = Ledger::begin(&self.directory, holding).map_err(fail)?;
        let trees = trees.try_into().map_err(|_| self.damaged("trees are missing".to_owned()))?;
        Ok(Opened { db: db.clone(), trees, sequence, disk, ledger, holding, through })
    }

    /// Refuses a store that holds less than it did.
    fn check_ledger(&self, holding: &Holding) -> Result<(), StoreError> {
        let found = ledger::read(&self.directory);
        match found.map_err(|error| directory_error(&self.directory, error))? {
            ledger::Found::Promises(promises) => match promises.broken_by(holding) {
                Some(detail) => Err(self.damaged(detail)),
                None => Ok(()),
            },
            ledger::Found::Unreadable => {
                let name = ledger::LEDGER_NAME;
                Err(self.damaged(format!(
                    "the file `{name}`, which tells whether something is lost, cannot be read \
                     (without that file the store opens unchecked)"
                )))
            }
            ledger::Found::Missing => {
                if holding.sequence > 0 {
                    tracing::warn!("the store has no ledger; it is opened unchecked");
                }
                Ok(())
            }
        }
    }

    /// Refuses a store whose record says another format, or which has records but none of ours.
    fn check_format_record(&self, db: &sled::Db) -> Result<(), StoreError> {
        let engine = |error| self.engine_error(EngineError::Failed(error));
        let unknown = |found: String| {
            let directory = self.directory.clone();
            StoreError::UnknownFormat { directory, found, known: FORMAT }
        };
        let names = db.tree_names();
        let has = |name: &str| names.iter().any(|found| found == name.as_bytes());
        let record = if has(Tree::Meta.name()) {
            let meta = db.open_tree(Tree::Meta.name()).map_err(engine)?;
            meta.get(FORMAT_KEY).map_err(engine)?
        } else {
            None
        };
        match record {
            Some(record) => match read_format_record(&record) {
                Some(FORMAT) => Ok(()),
                Some(found) => Err(unknown(found.to_string())),
                None => Err(unknown("in a record of unknown layout".to_owned())),
            },
            // sled opens a log that was cut short as an empty one, without a word.
            None if self.is_known => {
                Err(self.damaged("its records are gone; was a file cut short?".to_owned()))
            }
            // A start that died between making the tree and writing the record leaves just that.
            None if names.len() <= 1 + usize::from(has(Tree::Meta.name())) && db.is_empty() => {
                Ok(())
            }
            None => Err(unknown("of something that is not Ringway".to_owned())),
        }
    }

    fn open_engine(&self) -> Result<sled::Db, EngineError> {
        let give_up_at = Instant::now() + LOCK_WAIT;
        loop {
            let config = self.configuration();
            // sled can index past the end of a log that was cut short.
            match contained(|| config.open()) {
                Ok(Ok(db)) => return Ok(db),
                Ok(Err(error)) if is_lock_error(&error) && Instant::now() < give_up_at => {
                    std::thread::park_timeout(Duration::from_millis(20));
                }
                Ok(Err(error)) => return Err(EngineError::Failed(error)),
                Err(detail) => return Err(EngineError::Panicked(detail)),
            }
        }
    }

    /// Marks the store as closed in good order.
    pub(super) fn mark_closed(&self) -> io::Result<()> {
        mark::write(&self.directory)
    }

    /// Opens from the log alone, which is the truth; a snapshot only saves reading it. The old
    /// files come back where the log turns out to hold less than the snapshot did: it was cut
    /// short then, and opening has cut off the rest.
    fn rebuild(&self) -> Result<sled::Db, StoreError> {
        let fail = |error| directory_error(&self.directory, error);
        let log = self.directory.join(LOG_NAME);
        let log_aside = self.directory.join(format!("{ASIDE_PREFIX}{LOG_NAME}"));
        let snapshots = self.snapshots(|_| true).map_err(fail)?;
        let held = newest(&snapshots);
        fs::copy(&log, &log_aside).map_err(fail)?;
        let mut moved = Vec::new();
        for snapshot in snapshots {
            let aside = self.aside(&snapshot);
            tracing::warn!(
                from = %snapshot.display(),
                to = %aside.display(),
                "moving a damaged snapshot aside; the store is rebuilt from its log"
            );
            fs::rename(&snapshot, &aside).map_err(fail)?;
            moved.push((aside, snapshot));
        }
        let result = self.open_engine().map_err(|error| self.engine_error(error));
        let result = match result {
            Ok(db) if newest(&self.snapshots(|_| true).map_err(fail)?) < held => {
                let _ = contained(|| drop(db));
                Err(self.damaged("its log was cut short".to_owned()))
            }
            other => other,
        };
        if result.is_ok() {
            fs::remove_file(&log_aside).map_err(fail)?;
        } else {
            for snapshot in self.snapshots(|_| true).map_err(fail)? {
                fs::remove_file(snapshot).map_err(fail)?;
            }
            for (aside, snapshot) in moved {
                fs::rename(aside, snapshot).map_err(fail)?;
            }
            fs::rename(log_aside, log).map_err(fail)?;
        }
        result
    }

    fn configuration(&self) -> sled::Config {
        sled::Config::new()
            .path(&self.directory)
            .mode(sled::Mode::HighThroughput)
            .cache_capacity(self.cache_bytes)
            // The store's thread flushes; a timer of sled's would do it behind its back.
            .flush_every_ms(None)
    }

    fn snapshots(&self, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(SNAPSHOT_PREFIX) && wanted(&name) {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    fn aside(&self, snapshot: &Path) -> PathBuf {
        let name = snapshot.file_name().unwrap_or_default().to_string_lossy();
        self.directory.join(format!("{ASIDE_PREFIX}{name}"))
    }

    fn engine_error(&self, error: EngineError) -> StoreError {
        match error {
            EngineError::Failed(error) if is_lock_error(&error) => {
                StoreError::InUse { directory: self.directory.clone() }
            }
            EngineError::Failed(sled::Error::Io(error)) => directory_error(&self.directory, error),
            // Some of sled's errors, and its panics, only say it in words.
            EngineError::Failed(error) => self.words_error(error.to_string()),
            EngineError::Panicked(detail) => self.words_error(detail),
        }
    }

    fn words_error(&self, detail: String) -> StoreError {
        if detail.contains("No space left") || detail.contains("StorageFull") {
            return directory_error(&self.directory, io::ErrorKind::StorageFull.into());
        }
        self.damaged(detail)
    }

    fn damaged(&self, detail: String) -> StoreError {
        StoreError::Damaged { directory: self.directory.clone(), detail }
    }
}

/// A first start that was killed between sled's two writes leaves parameters without their checksum,
/// which sled takes for damage for ever. They hold no data, and sled writes them again. Only for a
/// store that no start has finished making.
fn remove_torn_parameters(directory: &Path) -> io::Result<()> {
    let path = directory.join(PARAMETERS_NAME);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read?,
    };
    let is_whole = bytes
        .split_last_chunk::<4>()
        .is_some_and(|(text, checksum)| crc32fast::hash(text) == u32::from_le_bytes(*checksum));
    if is_whole { Ok(()) } else { fs::remove_file(path) }
}

/// How far into the log the newest of these snapshots reaches; it stands in the name.
fn newest(snapshots: &[PathBuf]) -> Option<u64> {
    snapshots
        .iter()
        .filter_map(|path| path.file_name()?.to_str()?.strip_prefix(SNAPSHOT_PREFIX))
        .filter_map(|position| u64::from_str_radix(position, 16).ok())
        .max()
}

/// Tells this store from any other.
fn new_identity() -> io::Result<tail::Identity> {
    let mut identity = tail::Identity::default();
    aws_lc_rs::rand::fill(&mut identity)
        .map_err(|_| io::Error::other("the system gives no random numbers"))?;
    Ok(identity)
}

enum EngineError {
    Failed(sled::Error),
    Panicked(String),
}

/// Runs `work` and turns a panic into its message.
pub(super) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        format!("the storage engine panicked: {message}")
    })
}

fn is_lock_error(error: &sled::Error) -> bool {
    // sled has no kind for it.
    matches!(error, sled::Error::Io(error) if error.to_string().contains("could not acquire lock"))
}

pub(super) fn directory_error(directory: &Path, error: io::Error) -> StoreError {
    if is_no_room(&error) {
        let free_bytes = free_bytes(directory).unwrap_or(0);
        let needed_bytes = super::space::RESERVE_BYTES;
        return StoreError::NoRoom { directory: directory.to_owned(), free_bytes, needed_bytes };
    }
    StoreError::Directory { directory: directory.to_owned(), cause: Arc::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sled_never_flushes_by_itself_and_keeps_its_cache_small() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::claim(directory.path(), 17 << 20).unwrap();
        let configuration = format!("{:?}", place.configuration());
        assert!(configuration.contains("flush_every_ms: None"), "{configuration}");
        assert!(configuration.contains("HighThroughput"), "{configuration}");
        assert!(configuration.contains(&format!("cache_capacity: {}", 17 << 20)));
    }

    #[test]
    fn panics_become_messages() {
        let index = std::hint::black_box(3);
        let message = contained(|| [1, 2][index]).unwrap_err();
        assert!(message.contains("index out of bounds"), "{message}");
        assert_eq!(contained(|| 3), Ok(3));
    }
}
