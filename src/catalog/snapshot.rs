//! The catalog made ready: immutable, shared by all cores, swapped whole.

use std::collections::HashMap;
use std::sync::Arc;

use super::compile::{Compiled, compile};
use super::deprecated::{FormerTools, Grace};
use super::remarks::{Compiled as _, remarks};
use super::toolset::CompiledToolset;
use super::view::{View, ViewChange};
use super::{Entities, Origin, Problem, Row, TenantId, ToolsetId, UpstreamServer};

/// Every view of the catalog. Compiled off the cores; a change makes a new one.
#[derive(Debug, Default)]
pub struct Snapshot {
    version: u64,
    compiled: Compiled,
    remarks: Vec<Problem>,
}

impl Snapshot {
    /// Compiles all entities, or tells everything that is wrong with them.
    ///
    /// What views share is made once: a toolset for all that show it in the same way, a list of
    /// tools for all that show the same toolsets.
    ///
    /// # Errors
    /// Every problem, in the order of files and lines.
    pub fn compile(entities: &Entities, version: u64) -> Result<Self, Vec<Problem>> {
        Self::restore(entities, version, &FormerTools::default(), 0)
    }

    /// Compiles all entities after a restart: tools that went before it stay callable as long as
    /// they would have been.
    ///
    /// # Errors
    /// Every problem, in the order of files and lines.
    pub fn restore(
        entities: &Entities,
        version: u64,
        former: &FormerTools,
        now_ms: u64,
    ) -> Result<Self, Vec<Problem>> {
        Self::build(entities, version, None, former, Grace { now_ms, callable_ms: 0 })
    }

    /// Compiles a change: everything whose entities are the same ones as in `previous` is taken
    /// over from it. Names of tools that go with the change stay callable for the grace time.
    ///
    /// # Errors
    /// Every problem, in the order of files and lines.
    pub fn recompile(
        previous: &Self,
        entities: &Entities,
        version: u64,
        grace: Grace,
    ) -> Result<Self, Vec<Problem>> {
        let compiled = &previous.compiled;
        Self::build(entities, version, Some(compiled), &compiled.former, grace)
    }

    fn build(
        entities: &Entities,
        version: u64,
        previous: Option<&Compiled>,
        former: &FormerTools,
        grace: Grace,
    ) -> Result<Self, Vec<Problem>> {
        let (compiled, mut problems) = compile(entities, previous, former, grace);
        if problems.is_empty() && !entities.is_complete() {
            // Without this a tool would be missing and nobody told.
            let message = "some of its files could not be read";
            problems.push(Problem::new(&Origin::new("catalog", 0), message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let remarks = remarks(entities, &compiled);
        Ok(Self { version, compiled, remarks })
    }

    pub(super) fn check(entities: &Entities) -> Vec<Problem> {
        compile(entities, None, &FormerTools::default(), Grace { now_ms: 0, callable_ms: 0 }).1
    }

    /// The number given to it when it was compiled; it grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What was written and has no effect: patterns that no tool fits, paths that no field is at.
    /// Each is about the place it names; nothing of it is wrong.
    pub fn remarks(&self) -> &[Problem] {
        &self.remarks
    }

    /// What a client application of a tenant sees.
    pub fn view(&self, tenant: &str, client_application: &str) -> Option<&Arc<View>> {
        self.compiled.views.get(tenant)?.get(client_application)
    }

    /// All views, in no order.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.compiled.views.values().flat_map(HashMap::values)
    }

    /// The views that clients would see differently than in `older`, each with what of it. Views
    /// that only one of the two has are not among them: nobody has seen them before, or will.
    pub fn changes(&self, older: &Self) -> Vec<ViewChange> {
        let change = |view: &Arc<View>| {
            let before = older.view(view.tenant.as_str(), view.client_application.as_str())?;
            if Arc::ptr_eq(before, view) {
                return None;
            }
            let change = ViewChange {
                view: Arc::clone(view),
                tools: !before.lists_the_same(view),
                prompts: !before.prompts_the_same(view),
                resources: !before.resources_the_same(view),
            };
            (change.tools || change.prompts || change.resources).then_some(change)
        };
        self.views().filter_map(change).collect()
    }

    /// The upstream MCP servers of all tenants, whether a view has them or not, in no order.
    pub fn upstreams(&self) -> impl Iterator<Item = &Arc<UpstreamServer>> {
        self.compiled.toolsets().filter_map(CompiledToolset::server)
    }

    /// The upstream MCP server behind a toolset.
    pub fn upstream(&self, tenant: &TenantId, toolset: &ToolsetId) -> Option<&Arc<UpstreamServer>> {
        self.compiled.toolset(tenant, toolset)?.server()
    }

    /// The names and tools that went, for the store; [`FormerTools::from_rows`] reads them back.
    pub fn deprecated_rows(&self) -> Vec<Row> {
        self.compiled.former.rows()
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "recompile_tests.rs"]
mod recompile_tests;
