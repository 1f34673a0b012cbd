//! What the operator says of an import: where its tools go, and what he agrees to.

use crate::catalog::{ConnectionId, TenantId, ToolsetId};

/// Where the tools go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Whose they are.
    pub tenant: TenantId,
    /// The toolset; it is made where it is not there.
    pub toolset: ToolsetId,
    /// The toolset's connection, where it is not called like the toolset.
    pub connection: Option<ConnectionId>,
    /// Where the API is, whatever description and connection say.
    pub base_url: Option<String>,
    /// What the entities are said to come from.
    pub origin: String,
}

/// What the operator agrees to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Consent {
    /// New tools are published, and published ones changed.
    pub publish: bool,
    /// Even where that breaks who calls them.
    pub accept_breaking: bool,
}

impl Target {
    /// A connection's id that always is one.
    pub(super) fn fallback_connection(&self) -> ConnectionId {
        let made = ConnectionId::new(self.toolset.as_str());
        made.unwrap_or_else(|_| unreachable!("the ids of toolsets and connections have one rule"))
    }
}
