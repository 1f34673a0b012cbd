//! A disk that hangs, is full, or writes half.

use std::fs::File;
use std::io::{self, Write as _};

use parking_lot::{Condvar, Mutex};

/// What the disk does with the next writes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::audit) enum Mood {
    #[default]
    Writes,
    /// Until it is told otherwise.
    Hangs,
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
}

impl Disk {
    pub(in crate::audit) fn set(&self, mood: Mood) {
        *self.mood.lock() = mood;
        self.changed.notify_all();
    }

    pub(in crate::audit) fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let mut mood = self.mood.lock();
        while *mood == Mood::Hangs {
            self.changed.wait(&mut mood);
        }
        match *mood {
            Mood::Writes | Mood::Hangs => Ok(()),
            Mood::IsFull => Err(io::ErrorKind::StorageFull.into()),
            Mood::TakesHalf => {
                file.write_all(&bytes[..bytes.len() / 2])?;
                Err(io::ErrorKind::StorageFull.into())
            }
        }
    }
}
