//! Upstream MCP servers: how they are spoken to, what they offer, and what of it is accepted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::model::is_default;
use super::{CompiledConnection, TenantId, ToolsetId};
use crate::json::OwnedRaw;
use crate::mapping::PassedPlan;

/// How the MCP server behind a toolset is spoken to, and how far what it offers is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// The transport; found out where it is not said.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: UpstreamTransport,
    /// The revision that is spoken, such as `2025-06-18`; agreed on with the server where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether each session of a client has one of its own at the server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sessions: UpstreamSessions,
    /// What becomes of definitions that are new or others than before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub definitions: DefinitionTrust,
    /// How long what the server offered stays in lists while it cannot be reached; a day where
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// The transport of an upstream server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamTransport {
    /// Found out: MCP 2025-11-25, transports, backwards compatibility.
    #[default]
    Auto,
    /// Streamable HTTP, whatever revision.
    StreamableHttp,
    /// HTTP+SSE, MCP 2024-11-05.
    HttpSse,
}

/// Whose a session at an upstream server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamSessions {
    /// Each session of a client has its own; requests without a session have one for themselves.
    #[default]
    Separate,
    /// All callers of a client application share one: for servers that keep nothing of their callers.
    Shared,
}

/// What becomes of definitions that are new or others than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionTrust {
    /// What is there at first is accepted; what is new or changed later waits for approval.
    #[default]
    Pin,
    /// Everything waits for approval, also what is there at first.
    ApproveNew,
    /// Everything is accepted.
    Trust,
}

/// What a definition is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the things MCP servers list")]
pub enum DefinitionKind {
    Tool,
    Prompt,
    Resource,
    ResourceTemplate,
}

/// One thing an upstream server offers, as it sent it.
#[derive(Clone, PartialEq, Eq)]
pub struct Definition {
    /// What it is.
    pub kind: DefinitionKind,
    /// Its name there; the URI or the URI template of a resource.
    pub name: Box<str>,
    /// The entry of the server's list: an object.
    pub json: OwnedRaw,
    /// SHA-256 of the entry in canonical form.
    pub hash: [u8; 32],
}

impl fmt::Debug for Definition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Definition")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Which of the two eras of the protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamEra {
    /// With `initialize` and sessions: up to 2025-11-25.
    #[default]
    Legacy,
    /// Without: 2026-07-28.
    Modern,
}

/// Everything of one server that is accepted. By kind, then by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Definitions {
    /// What is accepted.
    pub all: Vec<Arc<Definition>>,
    /// The era the server was last seen to speak.
    pub era: UpstreamEra,
    /// It told that it completes arguments.
    pub completes: bool,
    /// It told that resources can be subscribed to.
    pub subscribes: bool,
    /// What it said at `initialize` or `server/discover` for models to read.
    pub instructions: Option<Box<str>>,
}

/// The definitions of all upstream servers, by tenant and toolset.
pub type UpstreamDefinitions = BTreeMap<(TenantId, ToolsetId), Arc<Definitions>>;

/// An upstream server as calls need it.
#[derive(Debug)]
pub struct UpstreamServer {
    /// Whose it is.
    pub tenant: TenantId,
    /// The toolset it is behind.
    pub toolset: ToolsetId,
    /// Where it is.
    pub connection: Arc<CompiledConnection>,
    /// How it is spoken to.
    pub settings: Upstream,
    /// What of it is accepted.
    pub definitions: Arc<Definitions>,
}

impl UpstreamServer {
    /// Whether all callers of a client application have one session there. Not where requests carry
    /// what their callers say of themselves: the session would be that of whoever came first.
    pub fn shares_sessions(&self) -> bool {
        self.settings.sessions == UpstreamSessions::Shared
            && self.connection.forward_headers.is_empty()
    }
}

/// A tool of an upstream server.
#[derive(Debug)]
pub struct UpstreamTool {
    /// Whose it is.
    pub server: Arc<UpstreamServer>,
    /// What the server says of it.
    pub definition: Arc<Definition>,
    /// From a client's arguments to those the server takes.
    pub(super) plan: PassedPlan,
}

/// A prompt of an upstream server in a view.
#[derive(Debug)]
pub struct UpstreamPrompt {
    /// What clients call it by.
    pub name: Box<str>,
    /// What it is called at its server.
    pub source_name: Box<str>,
    /// Whose it is.
    pub server: Arc<UpstreamServer>,
}
