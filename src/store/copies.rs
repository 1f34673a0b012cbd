//! A copy of the engine's files, made before it opens a store that was not closed in good order.
//!
//! Opening cuts the log at the first bad record. Where the ledger then says that something is
//! lost, the files come back as they were: a store that is refused is not changed, however often
//! it is tried. Where all is well the copy stays, in place of the one before it.
//!
//! In this order: `opened.new` while it is made, `opened.pending` until the engine has opened and
//! passed, `opened` from then on. A pending one at a start is of an opening that was interrupted:
//! nothing was written by then, so its files come back first.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::files::{
    BLOBS_NAME, CONFIGURATION_NAME, LOG_NAME, SNAPSHOT_PREFIX, UNFINISHED_SUFFIX,
    wait_until_released,
};
use super::space::free_bytes;
use crate::rt::files::{make_private_directory, sync_names};

pub(super) const LAST_NAME: &str = "opened";
const PENDING_NAME: &str = "opened.pending";
const UNFINISHED_NAME: &str = "opened.new";

/// A larger log is opened without a copy.
const COPY_BYTES_MAX: u64 = 1 << 30;

/// Brings back what an opening that was interrupted has left. `is_closed`: the store was closed
/// since, or replaced by one that was.
pub(super) fn settle(directory: &Path, is_closed: bool) -> io::Result<()> {
    if !directory.join(PENDING_NAME).exists() {
        return Ok(());
    }
    if is_closed {
        return remove_directory(&directory.join(PENDING_NAME));
    }
    tracing::warn!("the last start was interrupted while it opened the store; going back first");
    restore(directory)
}

/// Copies the files as they are; `free_bytes_min` of room is left. False: there is no copy.
pub(super) fn take(directory: &Path, free_bytes_min: u64) -> bool {
    let taken = room_for_copy(directory, free_bytes_min).and_then(|refused| match refused {
        None => copy(directory).map(|()| None),
        refused => Ok(refused),
    });
    let reason = match taken {
        Ok(None) => return true,
        Ok(Some(reason)) => reason,
        Err(error) => error.to_string(),
    };
    tracing::warn!(
        directory = %directory.display(),
        reason,
        "the store was not closed in good order, and is opened without a copy of its files"
    );
    let _ = remove_directory(&directory.join(UNFINISHED_NAME));
    false
}

/// The engine has opened and nothing is missing: the copy takes the place of the last one.
pub(super) fn keep(directory: &Path) -> io::Result<()> {
    let pending = directory.join(PENDING_NAME);
    if !pending.exists() {
        return Ok(());
    }
    let last = directory.join(LAST_NAME);
    remove_directory(&last)?;
    fs::rename(pending, last)?;
    sync_names(directory)
}

/// Puts the files back as they were. Safe to repeat after it was interrupted.
pub(super) fn restore(directory: &Path) -> io::Result<()> {
    let pending = directory.join(PENDING_NAME);
    if !pending.exists() {
        return Ok(());
    }
    if let Ok(log) = File::open(directory.join(LOG_NAME)) {
        wait_until_released(&log)?;
    }
    for newer in engine_files(directory)? {
        if newer != LOG_NAME && newer != CONFIGURATION_NAME && !pending.join(&newer).exists() {
            fs::remove_file(directory.join(newer))?;
        }
    }
    for name in engine_files(&pending)? {
        // Linked, not renamed: an interrupted one finds everything it needs again.
        let unfinished = directory.join(format!("{name}.new"));
        let _ = fs::remove_file(&unfinished);
        fs::hard_link(pending.join(&name), &unfinished)?;
        fs::rename(unfinished, directory.join(name))?;
    }
    link_all(&pending.join(BLOBS_NAME), &directory.join(BLOBS_NAME))?;
    sync_names(directory)?;
    remove_directory(&pending)
}

/// Why no copy is made; none: there is room.
fn room_for_copy(directory: &Path, free_bytes_min: u64) -> io::Result<Option<String>> {
    let length = fs::metadata(directory.join(LOG_NAME))?.len();
    if length > COPY_BYTES_MAX {
        return Ok(Some(format!("it is large: {} MiB", length >> 20)));
    }
    // The one before makes room for it.
    let last = fs::metadata(directory.join(LAST_NAME).join(LOG_NAME)).map_or(0, |log| log.len());
    let needed = length.saturating_add(free_bytes_min);
    let free = free_bytes(directory)?.saturating_add(last);
    Ok((free < needed)
        .then(|| format!("{} KiB of room are free, {} KiB needed", free / 1024, needed / 1024)))
}

fn copy(directory: &Path) -> io::Result<()> {
    let unfinished = directory.join(UNFINISHED_NAME);
    remove_directory(&unfinished)?;
    remove_directory(&directory.join(LAST_NAME))?;
    make_private_directory(&unfinished)?;
    for name in engine_files(directory)? {
        let (from, to) = (directory.join(&name), unfinished.join(&name));
        // Snapshots are never written again once they have their name.
        if name.starts_with(SNAPSHOT_PREFIX) && fs::hard_link(&from, &to).is_ok() {
            continue;
        }
        fs::copy(from, &to)?;
        File::open(to)?.sync_all()?;
    }
    link_all(&directory.join(BLOBS_NAME), &unfinished.join(BLOBS_NAME))?;
    sync_names(&unfinished)?;
    fs::rename(&unfinished, directory.join(PENDING_NAME))?;
    sync_names(directory)
}

/// Names of the engine's files, unfinished snapshots and large records left out.
fn engine_files(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let is_snapshot = name.starts_with(SNAPSHOT_PREFIX) && !name.ends_with(UNFINISHED_SUFFIX);
        if name == LOG_NAME || name == CONFIGURATION_NAME || is_snapshot {
            names.push(name);
        }
    }
    Ok(names)
}

/// Gives the files of `from` a second name in `to`, those that have none there. Large records
/// are written once and removed, never changed.
fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    make_private_directory(to)?;
    for entry in entries {
        let entry = entry?;
        match fs::hard_link(entry.path(), to.join(entry.file_name())) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    sync_names(to)
}

fn remove_directory(path: &PathBuf) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, name: &str, text: &str) {
        fs::write(directory.join(name), text).unwrap();
    }

    fn text(directory: &Path, name: &str) -> Option<String> {
        fs::read_to_string(directory.join(name)).ok()
    }

    /// A store before it is opened, and what opening a damaged one does to it.
    fn cut_by_opening(directory: &Path) {
        for (name, text) in [("db", "whole"), ("conf", "c"), ("snap.1", "s"), ("ledger", "l")] {
            write(directory, name, text);
        }
        fs::create_dir(directory.join("blobs")).unwrap();
        write(directory, "blobs/7", "large");
        assert!(take(directory, 0));
        write(directory, "db", "cut");
        write(directory, "snap.2", "newer");
        fs::remove_file(directory.join("snap.1")).unwrap();
        fs::remove_file(directory.join("blobs/7")).unwrap();
    }

    fn is_whole(directory: &Path) -> bool {
        text(directory, "db").as_deref() == Some("whole")
            && text(directory, "snap.1").as_deref() == Some("s")
            && text(directory, "blobs/7").as_deref() == Some("large")
            && text(directory, "snap.2").is_none()
            && !directory.join(PENDING_NAME).exists()
    }

    #[test]
    fn files_come_back_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        cut_by_opening(directory.path());
        restore(directory.path()).unwrap();
        assert!(is_whole(directory.path()));
    }

    #[test]
    fn an_interrupted_opening_is_undone_unless_the_store_was_closed_since() {
        let directory = tempfile::tempdir().unwrap();
        cut_by_opening(directory.path());
        settle(directory.path(), false).unwrap();
        assert!(is_whole(directory.path()));
        assert!(take(directory.path(), 0));
        write(directory.path(), "db", "restored from a backup");
        settle(directory.path(), true).unwrap();
        assert_eq!(text(directory.path(), "db").unwrap(), "restored from a backup");
        settle(directory.path(), false).unwrap();
        assert_eq!(text(directory.path(), "db").unwrap(), "restored from a backup");
    }

    #[test]
    fn only_the_last_copy_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        for round in ["one", "two"] {
            write(directory.path(), "db", round);
            assert!(take(directory.path(), 0));
            keep(directory.path()).unwrap();
        }
        assert_eq!(text(directory.path(), "opened/db").unwrap(), "two");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_large_store_or_one_without_room_is_not_copied() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "db", "x");
        assert!(!take(directory.path(), u64::MAX));
        let log = fs::OpenOptions::new().write(true).open(directory.path().join("db")).unwrap();
        log.set_len(COPY_BYTES_MAX + 1).unwrap();
        assert!(!take(directory.path(), 0));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
