//! Room on the store's file system: how much is left, and a reserve for when it has run out.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::files::{BLOBS_NAME, LOG_NAME};
use crate::rt::files::private;

/// Size of the reserve file. Reopening the store after the disk was full needs some room; the
/// reserve gives it without waiting for an operator.
pub(super) const RESERVE_BYTES: u64 = 4 << 20;

pub(super) const RESERVE_NAME: &str = "reserve";

/// The file system under the store.
#[derive(Debug)]
pub(super) struct Space {
    directory: PathBuf,
    free_bytes_min: u64,
    /// The reserve was given up and is wanted back.
    is_released: bool,
}

impl Space {
    pub(super) fn new(directory: &Path, free_bytes_min: u64) -> Self {
        Self { directory: directory.to_owned(), free_bytes_min, is_released: false }
    }

    /// Why writing should stop now; none: there is room. The reserve counts as used even while
    /// it is given up, so that taking it back does not use up the room again.
    pub(super) fn shortage(&self) -> Option<String> {
        let reserve = if self.is_released { RESERVE_BYTES } else { 0 };
        let needed = self.free_bytes_min.saturating_add(reserve);
        if needed == 0 {
            return None;
        }
        let free = match free_bytes(&self.directory) {
            Ok(free) => free,
            Err(error) => {
                tracing::warn!(directory = %self.directory.display(), %error, "free space unknown");
                return None;
            }
        };
        (free < needed).then(|| {
            format!(
                "{} KiB free on the file system of {}, {} KiB needed; make room there",
                free / 1024,
                self.directory.display(),
                needed / 1024
            )
        })
    }

    /// Whether `written` bytes since the last look could have used up a good part of the room
    /// that was left. The log grows by more than what is written.
    pub(super) fn is_used_up(&self, written: usize) -> bool {
        self.free_bytes_min > 0 && written as u64 > self.free_bytes_min / 16
    }

    /// Makes the reserve if it is not there. Without it the store works as well, until the disk
    /// is full.
    pub(super) fn take_reserve(&mut self) {
        self.is_released = false;
        let path = self.reserve_path();
        if path.exists() {
            return;
        }
        if let Err(error) = write_zeros(&path) {
            tracing::warn!(path = %path.display(), %error, "no reserve for a full disk");
            // A part of it would only use up room.
            let _ = fs::remove_file(&path);
        }
    }

    /// The room that is needed before writes are taken again after the disk was full.
    pub(super) fn needed_bytes(&self) -> u64 {
        self.free_bytes_min.saturating_add(RESERVE_BYTES)
    }

    /// Gives the reserve back to the file system. True: there was one.
    pub(super) fn release_reserve(&mut self) -> bool {
        self.is_released = true;
        match fs::remove_file(self.reserve_path()) {
            Ok(()) => true,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(directory = %self.directory.display(), %error, "reserve stays");
                }
                false
            }
        }
    }

    fn reserve_path(&self) -> PathBuf {
        self.directory.join(RESERVE_NAME)
    }
}

/// Bytes an ordinary user may still write to the file system of `directory`.
pub(super) fn free_bytes(directory: &Path) -> io::Result<u64> {
    let file_system = rustix::fs::statvfs(directory)?;
    Ok(file_system.f_bavail.saturating_mul(file_system.f_frsize))
}

/// Whether the operating system said that there is no room.
pub(super) fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Really written, not sparse: only then does it hold room.
fn write_zeros(path: &Path) -> io::Result<()> {
    let mut file = private().write(true).create_new(true).open(path)?;
    let zeros = vec![0; 64 << 10];
    let mut left = RESERVE_BYTES;
    while left > 0 {
        let part = left.min(zeros.len() as u64);
        file.write_all(&zeros[..part as usize])?;
        left -= part;
    }
    Ok(())
}

/// What has to reach the disk before a write may be called done.
///
/// sled's flush hands its log to the kernel and no further, and writes large records into files
/// of their own which it never syncs.
#[derive(Debug)]
pub(super) struct Disk {
    log: File,
    directory: File,
    blobs: PathBuf,
    blobs_synced: Option<SystemTime>,
}

/// Directory times move in ticks of the kernel's clock; two changes in one tick look like one.
const TICK: Duration = Duration::from_millis(50);

impl Disk {
    /// Opens the files of a store that sled has made, and syncs their making.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let disk = Self {
            log: OpenOptions::new().read(true).write(true).open(directory.join(LOG_NAME))?,
            directory: File::open(directory)?,
            blobs: directory.join(BLOBS_NAME),
            blobs_synced: None,
        };
        rustix::fs::syncfs(&disk.directory)?;
        Ok(disk)
    }

    /// Returns when everything flushed before is on the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        let changed = fs::metadata(&self.blobs)?.modified()?;
        if self.blobs_synced != Some(changed) {
            rustix::fs::syncfs(&self.directory)?;
            let settled = changed.elapsed().is_ok_and(|age| age > TICK);
            self.blobs_synced = settled.then_some(changed);
        }
        self.log.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_comes_and_goes() {
        let directory = tempfile::tempdir().unwrap();
        let mut space = Space::new(directory.path(), 0);
        space.release_reserve();
        space.take_reserve();
        space.take_reserve();
        let length = fs::metadata(directory.path().join("reserve")).unwrap().len();
        assert_eq!(length, RESERVE_BYTES);
        space.release_reserve();
        assert!(!directory.path().join("reserve").exists());
    }

    #[test]
    fn shortage_names_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Space::new(directory.path(), 0).shortage(), None);
        assert_eq!(Space::new(directory.path(), 1).shortage(), None);
        let reason = Space::new(directory.path(), u64::MAX).shortage().unwrap();
        assert!(reason.contains(&directory.path().display().to_string()), "{reason}");
    }
}
