//! The tools of a toolset made ready, once for all views that are given it.

use std::sync::Arc;

use super::{
    BuiltinTool, CompiledConnection, CompiledTool, Entry, OperationName, Tool, Toolset, ToolsetKind,
};

/// A toolset as the runtime uses it.
#[derive(Debug)]
pub(super) struct CompiledToolset {
    pub(super) entity: Arc<Toolset>,
    pub(super) connection: Option<Arc<CompiledConnection>>,
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
        connection: Option<&Arc<CompiledConnection>>,
        tools: &[&'a Entry<Tool>],
        previous: Option<&Arc<Self>>,
        mut report: impl FnMut(&'a Entry<Tool>, Vec<String>),
    ) -> Arc<Self> {
        let mut compiled: Vec<Arc<CompiledTool>> = match entity.kind {
            ToolsetKind::Rest | ToolsetKind::Soap => Vec::with_capacity(tools.len()),
            ToolsetKind::Builtin => builtins(entity, previous),
        };
        let mut unpublished = Vec::new();
        let known_behind =
            previous.filter(|previous| is_same(previous.connection.as_ref(), connection));
        for entry in tools {
            let tool = &entry.value;
            if let (Some(previous), Some(connection)) = (previous, connection) {
                let known = previous.tool(&tool.name).filter(|known| known.is_of(tool, connection));
                if let Some(known) = known {
                    compiled.push(Arc::clone(known));
                    continue;
                }
            }
            if known_behind.is_some_and(|previous| previous.has_unpublished(tool)) {
                unpublished.push(Arc::clone(tool));
                continue;
            }
            match CompiledTool::rest(tool, connection) {
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
            connection: connection.cloned(),
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
