//! What is said between a running request and its client, in both eras.

use std::{future::Future, pin::Pin, rc::Rc};

use super::execute::Asking;
use crate::{
    downstream,
    mcp::{Ask, AskOutcome, LogLevel, Told},
    sessions::ClientCapabilities,
};

/// One request's end of what is said to its client. It outlives the connection it came on.
#[derive(Debug)]
pub(crate) struct Conversation {
    capabilities: ClientCapabilities,
    log_level: Option<LogLevel>,
    has_progress_token: bool,
    is_modern: bool,
}

impl Conversation {
    /// With the client of a request that gave this progress token.
    pub(crate) fn of(asking: &Asking<'_>, has_progress_token: bool) -> Rc<Self> {
        let capabilities = asking.session.map(|session| session.capabilities());
        Rc::new(Self {
            capabilities: capabilities.unwrap_or_default(),
            log_level: None,
            has_progress_token,
            is_modern: asking.revision.is_modern(),
        })
    }
}

impl downstream::Client for Conversation {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    fn wants_progress(&self) -> bool {
        self.has_progress_token
    }

    fn is_modern(&self) -> bool {
        self.is_modern
    }

    fn tell(&self, _told: Told) {}

    fn ask(&self, _ask: Ask) -> Pin<Box<dyn Future<Output = AskOutcome> + '_>> {
        Box::pin(std::future::ready(AskOutcome::Unheard))
    }
}

/// The client of a request that nobody can be asked about: over the REST facade, in a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nobody;

impl downstream::Client for Nobody {
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
        false
    }

    fn tell(&self, _told: Told) {}

    fn ask(&self, _ask: Ask) -> Pin<Box<dyn Future<Output = AskOutcome> + '_>> {
        Box::pin(std::future::ready(AskOutcome::Unheard))
    }
}
