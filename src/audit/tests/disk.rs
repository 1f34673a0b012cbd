//! A disk that hangs, is full, or writes half.

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// What the disk does with the next writes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::audit) enum Mood {
    #[default]
    Writes,
    /// Until it is told otherwise.
    Hangs,
    /// Each write takes so long.
    IsSlow(Duration),
    /// Nothing more fits.
    IsFull,
    /// Half of a write fits.
    TakesHalf,
}

/// Stands before the file of the current segment.
#[derive(Debug, Default)]
pub(in crate::audit) struct Disk {
    mood: Mutex<Mood>,
    changed: Condvar,
    /// How far its time is ahead of that of the machine.
    later_ms: AtomicU64,
}

impl Disk {
    pub(in crate::audit) fn set(&self, mood: Mood) {
        *self.mood.lock() = mood;
        self.changed.notify_all();
    }

    pub(in crate::audit) fn set_later_ms(&self, later_ms: u64) {
        self.later_ms.store(later_ms, Ordering::Relaxed);
    }

    pub(in crate::audit) fn later_ms(&self) -> u64 {
        self.later_ms.load(Ordering::Relaxed)
    }

    pub(in crate::audit) fn write(
        &self,
        file: &mut File,
        pieces: &[IoSlice<'_>],
    ) -> io::Result<()> {
        let mut mood = self.mood.lock();
        while *mood == Mood::Hangs {
            self.changed.wait(&mut mood);
        }
        match *mood {
            Mood::Writes | Mood::Hangs => Ok(()),
            Mood::IsSlow(takes) => {
                self.changed.wait_for(&mut mood, takes);
                Ok(())
            }
            Mood::IsFull => Err(io::ErrorKind::StorageFull.into()),
            Mood::TakesHalf => {
                let bytes: Vec<u8> =
                    pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
                file.write_all(&bytes[..bytes.len() / 2])?;
                Err(io::ErrorKind::StorageFull.into())
            }
        }
    }
}
