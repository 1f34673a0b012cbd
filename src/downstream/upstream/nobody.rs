//! A client that is not there.

use std::future::{Future, ready};
use std::pin::Pin;

use crate::mcp::{Ask, AskOutcome, LogLevel, Told};
use crate::sessions::ClientCapabilities;

use super::Client;

/// Nobody, who cannot be asked and wants to hear nothing: behind what this appliance asks of its
/// own accord, and behind requests that have no way back to a client.
#[derive(Debug, Clone, Copy)]
pub struct Nobody {
    /// Whether questions of the server are handed back. Else they are put to it, in vain.
    pub is_modern: bool,
}

impl Client for Nobody {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::NONE
    }

    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    fn wants_progress(&self) -> bool {
        false
    }

    fn is_modern(&self) -> bool {
        self.is_modern
    }

    fn tell(&self, _told: Told) {}

    fn ask(&self, _ask: Ask) -> Pin<Box<dyn Future<Output = AskOutcome> + '_>> {
        Box::pin(ready(AskOutcome::Unheard))
    }
}
