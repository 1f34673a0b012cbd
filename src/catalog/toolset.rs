//! The tools of a toolset made ready, once for all views that are given it.

use std::sync::Arc;

use super::compile::Connections;
use super::messages::Backing;
use super::offered::{self, OfUpstream, Offered};
use super::{
    BuiltinTool, CompiledConnection, CompiledTool, ConnectionId, Definitions, Entry, OperationName,
    Tool, Toolset, ToolsetKind, UpstreamServer,
};
use crate::mapping::xml::TypePlans;

/// A toolset as the runtime uses it.
#[derive(Debug)]
pub(super) struct CompiledToolset {
    pub(super) entity: Arc<Toolset>,
    pub(super) connection: Option<Arc<CompiledConnection>>,
    /// Of messages in XML, for all its tools.
    pub(super) types: Option<Arc<TypePlans>>,
    /// Of an MCP server.
    pub(super) upstream: Option<OfUpstream>,
    /// Published ones, by the names of their operations.
    pub(super) tools: Vec<Arc<CompiledTool>>,
    /// Those that are not published and have no faults, likewise in order.
    unpublished: Vec<Unpublished>,
    pub(super) title: Option<Arc<str>>,
    pub(super) description: Option<Arc<str>>,
    pub(super) prompt: Option<Arc<str>>,
}

/// A tool that nobody is shown, and what is behind it with which it has no faults.
#[derive(Debug)]
struct Unpublished {
    tool: Arc<Tool>,
    connection: Option<Arc<CompiledConnection>>,
    types: Option<Arc<TypePlans>>,
}

/// What a toolset's tools have behind them: its connection or one of their own, and the types of
/// its messages.
#[derive(Clone, Copy)]
pub(super) struct Behind<'a> {
    toolset: &'a Toolset,
    connections: &'a Connections,
    types: Option<&'a Arc<TypePlans>>,
    /// What the MCP server behind it offers.
    definitions: Option<&'a Arc<Definitions>>,
}

impl<'a> Behind<'a> {
    pub(super) fn new(
        toolset: &'a Toolset,
        connections: &'a Connections,
        types: Option<&'a Arc<TypePlans>>,
        definitions: Option<&'a Arc<Definitions>>,
    ) -> Self {
        Self { toolset, connections, types, definitions }
    }

    pub(super) fn of_toolset(self) -> Option<&'a Arc<CompiledConnection>> {
        self.find(self.toolset.connection.as_ref()?)
    }

    /// What a tool has behind it.
    pub(super) fn of(self, tool: &Tool) -> Backing<'a> {
        let connection = tool.connection.as_ref().or(self.toolset.connection.as_ref());
        Backing {
            kind: self.toolset.kind,
            connection: connection.and_then(|connection| self.find(connection)),
            types: self.types,
        }
    }

    fn find(self, connection: &ConnectionId) -> Option<&'a Arc<CompiledConnection>> {
        let key = (self.toolset.tenant.clone(), connection.clone());
        self.connections.get(&key).map(|known| &known.compiled)
    }
}

impl CompiledToolset {
    /// Compiles what is not in `previous` already, and is `previous` where nothing is new. What is
    /// wrong with a tool goes to `report`.
    pub(super) fn compile<'a>(
        entity: &Arc<Toolset>,
        behind: Behind<'_>,
        tools: &[&'a Entry<Tool>],
        previous: Option<&Arc<Self>>,
        mut report: impl FnMut(&'a Entry<Tool>, Vec<String>),
    ) -> Arc<Self> {
        if entity.kind == ToolsetKind::Mcp {
            return Self::of_upstream(entity, behind, tools, previous, report);
        }
        let mut compiled: Vec<Arc<CompiledTool>> = match entity.kind {
            ToolsetKind::Rest | ToolsetKind::Soap | ToolsetKind::Mcp => {
                Vec::with_capacity(tools.len())
            }
            ToolsetKind::Builtin => builtins(entity, previous),
        };
        let mut unpublished = Vec::new();
        let of_toolset = behind.of_toolset();
        for entry in tools {
            let tool = &entry.value;
            let backing = behind.of(tool);
            let known = previous.and_then(|previous| previous.tool(&tool.name));
            if let Some(known) = known.filter(|known| known.is_of(tool, backing)) {
                compiled.push(Arc::clone(known));
                continue;
            }
            let hidden = || Unpublished {
                tool: tool.clone(),
                connection: backing.connection.cloned(),
                types: backing.types.cloned(),
            };
            if previous.is_some_and(|previous| previous.has_unpublished(tool, backing)) {
                unpublished.push(hidden());
                continue;
            }
            match CompiledTool::rest(tool, backing) {
                Ok(Some(made)) if tool.enabled => compiled.push(Arc::new(made)),
                Ok(_) => unpublished.push(hidden()),
                Err(faults) => report(entry, faults),
            }
        }
        compiled.sort_by(|one, other| one.source_name.cmp(&other.source_name));
        // One tool twice is a problem that is reported where tools are counted.
        compiled.dedup_by(|one, other| one.source_name == other.source_name);
        unpublished.sort_by(|one, other| one.tool.name.cmp(&other.tool.name));
        if let Some(previous) = previous {
            let is_unchanged = Arc::ptr_eq(&previous.entity, entity)
                && is_same(previous.connection.as_ref(), of_toolset)
                && are_same(&previous.tools, &compiled)
                && previous.unpublished.len() == unpublished.len()
                && previous.unpublished.iter().zip(&unpublished).all(|(one, other)| one.is(other));
            if is_unchanged {
                return Arc::clone(previous);
            }
        }
        Arc::new(Self { unpublished, ..Self::new(entity, behind, compiled) })
    }

    /// A toolset of kind `mcp`: its tools are those of the server, and what is written of one is
    /// what is otherwise with it.
    fn of_upstream<'a>(
        entity: &Arc<Toolset>,
        behind: Behind<'_>,
        tools: &[&'a Entry<Tool>],
        previous: Option<&Arc<Self>>,
        mut report: impl FnMut(&'a Entry<Tool>, Vec<String>),
    ) -> Arc<Self> {
        let known = previous.and_then(|previous| previous.upstream.as_ref());
        let overrides = offered::overrides(tools, known, &mut report);
        let Some(connection) = behind.of_toolset() else {
            // Its own problem is known.
            return Arc::new(Self::new(entity, behind, Vec::new()));
        };
        let definitions = offered::known(behind.definitions);
        let offered = known.map(|known| &known.offered);
        let offered = Offered::compile(entity, connection, definitions, offered);
        if let Some(previous) = previous
            && Arc::ptr_eq(&previous.entity, entity)
            && known.is_some_and(|known| known.is_of(&offered, &overrides))
        {
            return Arc::clone(previous);
        }
        let (upstream, mut tools) = OfUpstream::compile(offered, overrides, previous);
        tools.sort_by(|one, other| one.source_name.cmp(&other.source_name));
        tools.dedup_by(|one, other| one.source_name == other.source_name);
        Arc::new(Self { upstream: Some(upstream), ..Self::new(entity, behind, tools) })
    }

    fn new(entity: &Arc<Toolset>, behind: Behind<'_>, tools: Vec<Arc<CompiledTool>>) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        Self {
            connection: behind.of_toolset().cloned(),
            types: behind.types.cloned(),
            upstream: None,
            tools,
            unpublished: Vec::new(),
            title: text(&entity.title),
            description: text(&entity.description),
            prompt: text(&entity.system_prompt),
            entity: Arc::clone(entity),
        }
    }

    /// The published tool of that operation.
    pub(super) fn tool(&self, operation: &OperationName) -> Option<&Arc<CompiledTool>> {
        self.tool_named(operation.as_str())
    }

    /// The published tool that is called so where it comes from.
    pub(super) fn tool_named(&self, name: &str) -> Option<&Arc<CompiledTool>> {
        let place = self.tools.binary_search_by(|tool| tool.source_name.as_str().cmp(name)).ok()?;
        self.tools.get(place)
    }

    /// The MCP server behind it.
    pub(super) fn server(&self) -> Option<&Arc<UpstreamServer>> {
        self.upstream.as_ref().map(|upstream| &upstream.offered.server)
    }

    fn has_unpublished(&self, tool: &Arc<Tool>, backing: Backing<'_>) -> bool {
        let place = self.unpublished.binary_search_by(|known| known.tool.name.cmp(&tool.name));
        let known = place.ok().and_then(|place| self.unpublished.get(place));
        known.is_some_and(|known| {
            Arc::ptr_eq(&known.tool, tool)
                && is_same(known.connection.as_ref(), backing.connection)
                && is_same(known.types.as_ref(), backing.types)
        })
    }
}

impl Unpublished {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tool, &other.tool)
            && is_same(self.connection.as_ref(), other.connection.as_ref())
            && is_same(self.types.as_ref(), other.types.as_ref())
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
