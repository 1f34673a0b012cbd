//! The tools of a toolset made ready, once for all views that are given it.

use std::sync::Arc;

use super::soap::Backing;
use super::{
    BuiltinTool, CompiledConnection, CompiledTool, Entry, OperationName, Tool, Toolset, ToolsetKind,
};
use crate::mapping::soap::SoapTypes;

/// A toolset as the runtime uses it.
#[derive(Debug)]
pub(super) struct CompiledToolset {
    pub(super) entity: Arc<Toolset>,
    pub(super) connection: Option<Arc<CompiledConnection>>,
    /// Of a SOAP service's messages, for all its tools.
    pub(super) types: Option<Arc<SoapTypes>>,
    /// Published ones, by the names of their operations.
    pub(super) tools: Vec<Arc<CompiledTool>>,
    /// Those that are not published and have no faults, likewise in order.
    unpublished: Vec<Arc<Tool>>,
    pub(super) title: Option<Arc<str>>,
    pub(super) description: Option<Arc<str>>,
    pub(super) prompt: Option<Arc<str>>,
}

impl CompiledToolset {
    /// Compiles what is not in `previous` already, and is `previous` where nothing is new. What is
    /// wrong with a tool goes to `report`.
    pub(super) fn compile<'a>(
        entity: &Arc<Toolset>,
        backing: Backing<'_>,
        tools: &[&'a Entry<Tool>],
        previous: Option<&Arc<Self>>,
        mut report: impl FnMut(&'a Entry<Tool>, Vec<String>),
    ) -> Arc<Self> {
        let mut compiled: Vec<Arc<CompiledTool>> = match entity.kind {
            ToolsetKind::Rest | ToolsetKind::Soap => Vec::with_capacity(tools.len()),
            ToolsetKind::Builtin => builtins(entity, previous),
        };
        let mut unpublished = Vec::new();
        let known_behind = previous.filter(|previous| previous.is_backed_by(backing));
        for entry in tools {
            let tool = &entry.value;
            let known = previous.and_then(|previous| previous.tool(&tool.name));
            if let Some(known) = known.filter(|known| known.is_of(tool, backing)) {
                compiled.push(Arc::clone(known));
                continue;
            }
            if known_behind.is_some_and(|previous| previous.has_unpublished(tool)) {
                unpublished.push(Arc::clone(tool));
                continue;
            }
            match CompiledTool::rest(tool, backing) {
                Ok(Some(made)) if tool.enabled => compiled.push(Arc::new(made)),
                Ok(_) => unpublished.push(Arc::clone(tool)),
                Err(faults) => report(entry, faults),
            }
        }
        compiled.sort_by(|one, other| one.source_name.cmp(&other.source_name));
        // One tool twice is a problem that is reported where tools are counted.
        compiled.dedup_by(|one, other| one.source_name == other.source_name);
        unpublished.sort_by(|one, other| one.name.cmp(&other.name));
        if let Some(previous) = known_behind {
            let is_unchanged = Arc::ptr_eq(&previous.entity, entity)
                && are_same(&previous.tools, &compiled)
                && are_same(&previous.unpublished, &unpublished);
            if is_unchanged {
                return Arc::clone(previous);
            }
        }
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        Arc::new(Self {
            connection: backing.connection.cloned(),
            types: backing.types.cloned(),
            tools: compiled,
            unpublished,
            title: text(&entity.title),
            description: text(&entity.description),
            prompt: text(&entity.system_prompt),
            entity: Arc::clone(entity),
        })
    }

    /// The published tool of that operation.
    pub(super) fn tool(&self, operation: &OperationName) -> Option<&Arc<CompiledTool>> {
        let place = self.tools.binary_search_by(|tool| tool.source_name.cmp(operation)).ok()?;
        self.tools.get(place)
    }

    /// What its tools have behind them.
    pub(super) fn backing(&self) -> Backing<'_> {
        Backing {
            kind: self.entity.kind,
            connection: self.connection.as_ref(),
            types: self.types.as_ref(),
        }
    }

    fn is_backed_by(&self, backing: Backing<'_>) -> bool {
        self.entity.kind == backing.kind
            && is_same(self.connection.as_ref(), backing.connection)
            && is_same(self.types.as_ref(), backing.types)
    }

    fn has_unpublished(&self, tool: &Arc<Tool>) -> bool {
        let place = self.unpublished.binary_search_by(|known| known.name.cmp(&tool.name));
        let known = place.ok().and_then(|place| self.unpublished.get(place));
        known.is_some_and(|known| Arc::ptr_eq(known, tool))
    }
}

fn builtins(
    entity: &Arc<Toolset>,
    previous: Option<&Arc<CompiledToolset>>,
) -> Vec<Arc<CompiledTool>> {
    match previous {
        Some(previous) if previous.entity.kind == ToolsetKind::Builtin => previous.tools.clone(),
        _ => {
            let made = BuiltinTool::ALL.iter();
            let made = made.filter_map(|tool| CompiledTool::builtin(*tool, &entity.id));
            made.map(Arc::new).collect()
        }
    }
}

fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

/// Whether both hold the very same things.
pub(super) fn are_same<T>(one: &[Arc<T>], other: &[Arc<T>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}
