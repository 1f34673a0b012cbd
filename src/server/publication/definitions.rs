//! What upstream MCP servers offer, as far as it is accepted, becomes part of what is published.
//!
//! It is found out and not decided by whoever changes the catalog: so it has no place in the change
//! log, makes no version of the catalog, and no rollback touches it.

use std::{collections::HashSet, sync::Arc};

use super::{Publication, Published, keep_former};
use crate::{
    catalog::{Definitions, Entities, Grace, Snapshot, TenantId, ToolsetId, ToolsetKind},
    server::{change_error::ChangeError, time},
    store::Batch,
};

impl Publication {
    /// What is accepted of the server behind a toolset is this now; `None`: nothing is shown of it.
    /// Tells whether anything was published. Nothing is where the toolset is no MCP server's any
    /// more, or has these definitions already.
    pub(crate) fn set_definitions(
        &self,
        tenant: &TenantId,
        toolset: &ToolsetId,
        definitions: Option<Arc<Definitions>>,
    ) -> Result<bool, ChangeError> {
        let mut past = self.past.lock();
        let (current, entities) = (self.current(), self.entities());
        let key = (tenant.clone(), toolset.clone());
        if entities.definitions.get(&key) == definitions.as_ref() {
            return Ok(false);
        }
        let mut newer = Entities::clone(&entities);
        match definitions {
            Some(definitions) => newer.definitions.insert(key.clone(), definitions),
            None => newer.definitions.remove(&key),
        };
        drop_orphans(&mut newer);
        if entities.definitions.get(&key) == newer.definitions.get(&key) {
            return Ok(false);
        }
        // A tool that the server offers may take the plain name of another toolset's tool, which
        // goes on under it for a while. What is not accepted any more is gone whatever the grace.
        let grace = Grace { now_ms: time::now_ms(), callable_ms: self.tool_grace_ms };
        let version = current.snapshot.version();
        let snapshot = Snapshot::recompile(&current.snapshot, &newer, version, grace)
            .map_err(ChangeError::Problems)?;
        let mut batch = Batch::new();
        let former_rows = keep_former(&snapshot, past.former_rows.clone(), &mut batch);
        if !batch.is_empty() {
            self.store.write_blocking(batch)?;
        }
        past.former_rows = former_rows;
        self.entities.store(Arc::new(newer));
        self.publish(Published {
            version: current.version + 1,
            snapshot: Arc::new(snapshot),
            keys: current.keys.clone(),
        });
        Ok(true)
    }
}

/// Forgets the definitions of toolsets that are not there, or have no MCP server any more.
pub(super) fn drop_orphans(entities: &mut Entities) {
    if entities.definitions.is_empty() {
        return;
    }
    let toolsets = entities.toolsets.iter().map(|entry| &entry.value);
    let upstreams: HashSet<(TenantId, ToolsetId)> = toolsets
        .filter(|toolset| toolset.kind == ToolsetKind::Mcp)
        .map(|toolset| (toolset.tenant.clone(), toolset.id.clone()))
        .collect();
    entities.definitions.retain(|key, _| upstreams.contains(key));
}
