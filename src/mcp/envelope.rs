//! What each request of the era without sessions says of itself (MCP 2026-07-28, `_meta`).

use std::borrow::Cow;

use super::LogLevel;
use crate::json::Raw;
use crate::sessions::ClientCapabilities;

/// What a request says of its sender, and of what went before it.
#[derive(Clone, Debug, Default)]
pub struct Envelope<'a> {
    /// `clientInfo.name`; empty where it is not said.
    pub client_name: Cow<'a, str>,
    /// `clientInfo.version`; empty where it is not said.
    pub client_version: Cow<'a, str>,
    /// What the client can be asked.
    pub capabilities: ClientCapabilities,
    /// What it wants to hear of what the request logs; nothing where it does not say.
    pub log_level: Option<LogLevel>,
    /// Its answers to what was asked before, an object by the keys of the questions.
    pub input_responses: Option<Raw<'a>>,
    /// The state that came with those questions, as it was given.
    pub request_state: Option<Cow<'a, str>>,
}
