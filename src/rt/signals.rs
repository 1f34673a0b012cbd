//! Signals, as the main thread waits for them.

use std::fmt;
use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator;

/// What the operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// End in good order (SIGTERM, SIGINT).
    Terminate,
    /// Read the configuration again (SIGHUP).
    Reload,
}

/// Catches the signals. Made once, before the first thread, kept by the main thread.
pub struct Signals {
    waiting: iterator::Signals,
}

impl Signals {
    /// From here on the signals no longer end the process.
    ///
    /// # Errors
    ///
    /// When the system refuses the handlers.
    pub fn install() -> io::Result<Self> {
        Ok(Self { waiting: iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])? })
    }

    /// Blocks the calling thread until a signal comes.
    pub fn wait(&mut self) -> Signal {
        match self.waiting.forever().next() {
            Some(SIGHUP) => Signal::Reload,
            // The iterator ends only when its handle closes it, and none was made.
            Some(_) | None => Signal::Terminate,
        }
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Signals").finish_non_exhaustive()
    }
}
