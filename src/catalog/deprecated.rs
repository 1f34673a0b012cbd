//! Names of tools that went: for a grace time they stay callable, then they are known to be gone.
//!
//! A client works with a list it read earlier, and a model with one it read in the same
//! conversation. A tool that was removed, unpublished or is called something else therefore goes on
//! under its old name for a while. What a policy hides or an assignment no longer gives is none of
//! that: access that is taken away is away at once.
//!
//! What is kept is the names, by view, and the tools as they were written, so that they survive a
//! restart as rows; tools are compiled anew behind the connection their toolset has now.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::list::ToolList;
use super::shown::ViewTool;
use super::toolset::{Behind, CompiledToolset};
use super::{
    ClientApplicationId, CompiledTool, OperationName, Row, RowError, TenantId, Tool, ToolName,
    ToolsetId,
};

/// How long a name that went is known to be gone after its grace time: 30 days.
const GONE_MS: u64 = 30 * 86_400_000;
/// Most names that went of one view.
const NAMES_MAX: usize = 10_000;
/// Most tools that went, of all toolsets.
pub(super) const TOOLS_MAX: usize = 10_000;

const ROW_VERSION: u8 = 1;
const NAME_PREFIX: &str = "deprecated_name/";
const TOOL_PREFIX: &str = "deprecated_tool/";

/// When a catalog changes, and what holds for names that go with the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// Now, Unix milliseconds.
    pub now_ms: u64,
    /// How long a name stays callable.
    pub callable_ms: u64,
}

/// What is left of a name that went.
#[derive(Debug, Clone)]
pub enum Deprecated {
    /// It can still be called.
    Callable {
        /// What is called.
        tool: Arc<ViewTool>,
        /// What it is called now, where it is still there.
        now_called: Option<ToolName>,
        /// Until when, Unix milliseconds.
        until_ms: u64,
    },
    /// It cannot be called any more: the client should list again.
    Gone,
}

/// The names and tools that went, to be kept over restarts.
#[derive(Debug, Clone, Default)]
pub struct FormerTools {
    names: HashMap<(TenantId, ClientApplicationId), Arc<Names>>,
    tools: HashMap<(TenantId, ToolsetId), Arc<Tools>>,
}

type Names = HashMap<ToolName, FormerName>;
type Tools = HashMap<OperationName, FormerTool>;

/// A name that a tool had in a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormerName {
    toolset: ToolsetId,
    operation: OperationName,
    until_ms: u64,
}

#[derive(Debug, Clone)]
pub(super) struct FormerTool {
    entity: Arc<Tool>,
    until_ms: u64,
    /// Not there before it is compiled after a restart.
    compiled: Option<Arc<CompiledTool>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NameRow {
    toolset: ToolsetId,
    operation: OperationName,
    until_ms: u64,
}

#[derive(Serialize)]
struct WrittenTool<'a> {
    until_ms: u64,
    tool: &'a Tool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadTool {
    until_ms: u64,
    tool: Tool,
}

impl FormerTools {
    /// Whether a row with this key is one of [`Self::rows`].
    pub fn is_row(key: &[u8]) -> bool {
        key.starts_with(NAME_PREFIX.as_bytes()) || key.starts_with(TOOL_PREFIX.as_bytes())
    }

    /// All of it for the store.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for ((tenant, client), names) in &self.names {
            for (name, former) in &**names {
                let FormerName { toolset, operation, until_ms } = former;
                let key = format!("{NAME_PREFIX}{tenant}/{client}/{name}");
                let (toolset, operation) = (toolset.clone(), operation.clone());
                rows.push(row(key, &NameRow { toolset, operation, until_ms: *until_ms }));
            }
        }
        for former in self.tools.values().flat_map(|tools| tools.values()) {
            let tool = &*former.entity;
            let key = format!("{TOOL_PREFIX}{}/{}/{}", tool.tenant, tool.toolset, tool.name);
            rows.push(row(key, &WrittenTool { until_ms: former.until_ms, tool }));
        }
        rows
    }

    /// Reads rows back.
    ///
    /// # Errors
    /// Every row that cannot be used.
    pub fn from_rows<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, Vec<RowError>> {
        let mut former = Self::default();
        let mut errors = Vec::new();
        for (key, value) in rows {
            if let Err(error) = former.add_row(key.as_ref(), value.as_ref()) {
                errors.push(error);
            }
        }
        if errors.is_empty() { Ok(former) } else { Err(errors) }
    }

    fn add_row(&mut self, key: &[u8], value: &[u8]) -> Result<(), RowError> {
        let name = String::from_utf8_lossy(key).into_owned();
        let damaged =
            |reason: &str| RowError::Damaged { name: name.clone(), reason: reason.into() };
        let (&found, json) = value.split_first().ok_or_else(|| damaged("it is empty"))?;
        if found != ROW_VERSION {
            return Err(RowError::Version { name, found });
        }
        if let Some(ids) = name.strip_prefix(NAME_PREFIX) {
            let mut ids = ids.splitn(3, '/');
            let mut next = || ids.next().unwrap_or_default();
            let tenant = TenantId::new(next()).map_err(|error| damaged(&error.to_string()))?;
            let client =
                ClientApplicationId::new(next()).map_err(|error| damaged(&error.to_string()))?;
            let called = ToolName::new(next()).map_err(|error| damaged(&error.to_string()))?;
            let NameRow { toolset, operation, until_ms } =
                serde_json::from_slice(json).map_err(|error| damaged(&error.to_string()))?;
            let former = FormerName { toolset, operation, until_ms };
            let names = self.names.entry((tenant, client)).or_default();
            Arc::make_mut(names).insert(called, former);
        } else if name.starts_with(TOOL_PREFIX) {
            let ReadTool { until_ms, tool } =
                serde_json::from_slice(json).map_err(|error| damaged(&error.to_string()))?;
            let entity = Arc::new(tool);
            let key = (entity.tenant.clone(), entity.toolset.clone());
            let operation = entity.name.clone();
            let former = FormerTool { entity, until_ms, compiled: None };
            Arc::make_mut(self.tools.entry(key).or_default()).insert(operation, former);
        } else {
            return Err(damaged("no such kind of row"));
        }
        Ok(())
    }

    pub(super) fn names(
        &self,
        tenant: &TenantId,
        client: &ClientApplicationId,
    ) -> Option<&Arc<Names>> {
        if self.names.is_empty() {
            return None;
        }
        self.names.get(&(tenant.clone(), client.clone()))
    }

    pub(super) fn keep_names(
        &mut self,
        tenant: &TenantId,
        client: &ClientApplicationId,
        names: Arc<Names>,
    ) {
        self.names.insert((tenant.clone(), client.clone()), names);
    }

    /// Takes over from `older` the tools that went from a toolset and are still within their grace
    /// time, and those that go with the change from `before` to `after`.
    pub(super) fn keep_tools(
        &mut self,
        older: &Self,
        before: Option<&Arc<CompiledToolset>>,
        after: &Arc<CompiledToolset>,
        behind: Behind<'_>,
        grace: Grace,
    ) {
        let before = before.filter(|before| !Arc::ptr_eq(before, after));
        if older.tools.is_empty() && before.is_none() {
            return;
        }
        if after.connection.is_none() {
            return;
        }
        let key = (after.entity.tenant.clone(), after.entity.id.clone());
        let mut kept: Tools = HashMap::new();
        for (operation, former) in older.tools.get(&key).into_iter().flat_map(|tools| &**tools) {
            if former.until_ms > grace.now_ms {
                kept.insert(operation.clone(), former.clone());
            }
        }
        for tool in before.into_iter().flat_map(|before| &before.tools) {
            // What a server takes back is gone at once: it may be what is not accepted any more.
            let Some(entity) = tool.entity.as_ref().filter(|_| !tool.is_upstream()) else {
                continue;
            };
            if after.tool(&tool.source_name).is_none() {
                let former = FormerTool {
                    entity: Arc::clone(entity),
                    until_ms: grace.now_ms.saturating_add(grace.callable_ms),
                    compiled: Some(Arc::clone(tool)),
                };
                kept.insert(tool.source_name.clone(), former);
            }
        }
        kept.retain(|operation, former| {
            if after.tool(operation).is_some() {
                return false;
            }
            let compiled = former.compiled.take();
            let backing = behind.of(&former.entity);
            former.compiled = compiled
                .filter(|compiled| compiled.is_of(&former.entity, backing))
                // One that does not fit its connection any more is not callable any more.
                .or_else(|| {
                    let made = CompiledTool::rest(&former.entity, backing);
                    made.ok().flatten().map(Arc::new)
                });
            former.compiled.is_some()
        });
        if !kept.is_empty() {
            self.tools.insert(key, Arc::new(kept));
        }
    }

    /// Lets the oldest tools go where there are too many.
    pub(super) fn bound(&mut self, tools_max: usize) {
        let all = || self.tools.values().flat_map(|tools| tools.values());
        let count = all().count();
        if count <= tools_max {
            return;
        }
        let mut times: Vec<u64> = all().map(|former| former.until_ms).collect();
        times.sort_unstable();
        let oldest_kept = times.get(count - tools_max).copied().unwrap_or(u64::MAX);
        // Those of one change have one time: only some of them stay.
        let mut room = tools_max - times.iter().filter(|time| **time > oldest_kept).count();
        self.tools.retain(|_, tools| {
            Arc::make_mut(tools).retain(|_, former| {
                let has_room = former.until_ms == oldest_kept && room > 0;
                room -= usize::from(has_room);
                former.until_ms > oldest_kept || has_room
            });
            !tools.is_empty()
        });
    }
}

fn row(key: String, written: &impl Serialize) -> Row {
    let mut value = vec![ROW_VERSION];
    // Writing to memory cannot fail, and there is nothing that JSON cannot hold.
    let _ = serde_json::to_writer(&mut value, written);
    (key.into_bytes(), value)
}

/// The names of a view that went, now that it has the tools of `after`. The tools of toolsets that
/// the view does not have any more are not among them.
pub(super) fn names_that_went(
    known: Option<&Arc<Names>>,
    before: Option<&Arc<ToolList>>,
    after: &Arc<ToolList>,
    grace: Grace,
) -> Option<Arc<Names>> {
    let before = before.filter(|before| !Arc::ptr_eq(before, after));
    if known.is_none() && before.is_none() {
        return None;
    }
    let is_there = |name: &str| after.tool(name).is_some() || after.hidden_tool(name).is_some();
    let mut names = Names::new();
    for (name, former) in known.into_iter().flat_map(|names| &**names) {
        if former.until_ms.saturating_add(GONE_MS) > grace.now_ms
            && !is_there(name.as_str())
            && after.toolset(&former.toolset).is_some()
        {
            names.insert(name.clone(), former.clone());
        }
    }
    for tool in before.into_iter().flat_map(|before| before.may_be_gone_in(after)) {
        if !is_there(tool.name.as_str()) && after.toolset(&tool.toolset).is_some() {
            let former = FormerName {
                toolset: tool.toolset.clone(),
                operation: tool.source_name.clone(),
                until_ms: grace.now_ms.saturating_add(grace.callable_ms),
            };
            names.insert(tool.name.clone(), former);
        }
    }
    let names = newest(names, NAMES_MAX);
    match known {
        _ if names.is_empty() => None,
        Some(known) if **known == names => Some(Arc::clone(known)),
        _ => Some(Arc::new(names)),
    }
}

/// At most `count_max` of them; the oldest ones go first.
fn newest(names: Names, count_max: usize) -> Names {
    if names.len() <= count_max {
        return names;
    }
    let mut by_time: Vec<(ToolName, FormerName)> = names.into_iter().collect();
    by_time.sort_by_key(|(_, former)| Reverse(former.until_ms));
    by_time.truncate(count_max);
    by_time.into_iter().collect()
}

/// The names of a view that went. What is behind one is looked for when it is asked for, which is
/// seldom: a change of a large catalog would take long if it were looked for with every change.
#[derive(Debug)]
pub(super) struct DeprecatedNames {
    names: Arc<Names>,
    list: Arc<ToolList>,
    /// What went from the toolsets of the view.
    tools: HashMap<ToolsetId, Arc<Tools>>,
}

impl DeprecatedNames {
    pub(super) fn new(
        names: Arc<Names>,
        list: &Arc<ToolList>,
        former: &FormerTools,
        tenant: &TenantId,
    ) -> Self {
        let ids = list.toolsets.iter().map(|shown| shown.key.toolset.clone());
        let tools = ids.filter_map(|id| {
            let tools = former.tools.get(&(tenant.clone(), id.clone()))?;
            Some((id, Arc::clone(tools)))
        });
        Self { names, list: Arc::clone(list), tools: tools.collect() }
    }

    pub(super) fn find(&self, name: &str, now_ms: u64) -> Option<Deprecated> {
        let (name, former) = self.names.get_key_value(name)?;
        let FormerName { toolset, operation, until_ms } = former;
        let shown = self.list.toolset(toolset)?;
        let until_ms = *until_ms;
        let callable = if let Some(current) = shown.toolset.tool(operation) {
            // It is there under another name, or hidden: then this name is hidden too.
            let is_it = |tool: &&Arc<ViewTool>| Arc::ptr_eq(&tool.tool, current);
            let tool = self.list.tools.iter().find(is_it)?;
            Some((Arc::clone(tool), Some(tool.name.clone())))
        } else {
            let former = self.tools.get(toolset).and_then(|tools| tools.get(operation));
            let compiled = former.and_then(|former| former.compiled.as_ref());
            compiled.map(|compiled| (shown.show_former(name.clone(), compiled), None))
        };
        if callable.as_ref().is_some_and(|(tool, _)| tool.permission.is_denied()) {
            return None;
        }
        match callable {
            Some((tool, now_called)) if now_ms < until_ms => {
                Some(Deprecated::Callable { tool, now_called, until_ms })
            }
            _ => (now_ms < until_ms.saturating_add(GONE_MS)).then_some(Deprecated::Gone),
        }
    }
}

#[cfg(test)]
#[path = "deprecated_tests.rs"]
mod tests;
