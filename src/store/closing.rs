//! Closing an engine without waiting for it for ever.
//!
//! An engine that failed can wait without end, when it is closed, for a write that will never be
//! finished. That must hold neither the store's thread nor the end of the process.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::StoreError;
use super::opened::Opened;
use super::opening::contained;

/// How long an engine may take to close before others go on without it.
pub(super) const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// A thread that closes engines, one after the other. There before it is needed: when an engine
/// has failed, the system may have no thread to give.
pub(super) struct Closer {
    engines: Sender<Opened>,
    closed: Receiver<bool>,
    is_busy: bool,
}

impl Closer {
    pub(super) fn start(directory: &Path) -> Result<Self, StoreError> {
        let (engines, given) = mpsc::channel::<Opened>();
        let (tell, closed) = mpsc::channel();
        #[cfg(test)]
        let directory = directory.to_owned();
        #[cfg(not(test))]
        let _ = directory;
        thread::Builder::new()
            .name("ringway-close".to_owned())
            .spawn(move || {
                for engine in given {
                    #[cfg(test)]
                    super::tests::stall_closing(&directory);
                    // A panic while an engine that failed is closed changes nothing for the next.
                    let is_good = contained(|| drop(engine)).is_ok();
                    if tell.send(is_good).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| StoreError::Thread(error.into()))?;
        Ok(Self { engines, closed, is_busy: false })
    }

    /// Begins to close an engine.
    pub(super) fn begin(&mut self, engine: Opened) {
        match self.engines.send(engine) {
            Ok(()) => self.is_busy = true,
            // The thread contains panics, and ends after this. Were it gone all the same, the
            // engine must not be closed here.
            Err(unsent) => std::mem::forget(unsent),
        }
    }

    /// Waits for the engine that is being closed, if there is one: whether it closed without a
    /// panic. None: it is still being closed.
    pub(super) fn wait(&mut self, at_most: Duration) -> Option<bool> {
        if !self.is_busy {
            return Some(true);
        }
        match self.closed.recv_timeout(at_most) {
            Ok(is_good) => {
                self.is_busy = false;
                Some(is_good)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}
