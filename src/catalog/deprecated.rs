//! Names of tools that went: for a grace time they stay callable, then they are known to be gone.
//!
//! A client works with a list it read earlier, and a model with one it read in the same
//! conversation. A tool that was removed, unpublished or is called something else therefore goes on
//! under its old name for a while. What a policy hides or an assignment no longer gives is none of
//! that: access that is taken away is away at once.
//!
//! What is kept is the names, by view, and the tools as they were written, so that they survive a
//! restart as rows; tools are compiled anew behind the connection their toolset has now.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::list::ToolList;
use super::shown::ViewTool;
use super::toolset::CompiledToolset;
use super::{
    ClientApplicationId, CompiledTool, OperationName, Row, RowError, TenantId, Tool, ToolName,
    ToolsetId,
};

/// How long a name that went is known to be gone after its grace time: 30 days.
const GONE_MS: u64 = 30 * 86_400_000;
/// Most names that went of one view.
const NAMES_MAX: usize = 10_000;
/// Most tools that went, of all toolsets.
const TOOLS_MAX: usize = 10_000;

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
    names: HashMap<(TenantId, ClientApplicationId), Vec<FormerName>>,
    tools: HashMap<(TenantId, ToolsetId), Vec<FormerTool>>,
}

/// A name that a tool had in a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormerName {
    name: ToolName,
    toolset: ToolsetId,
    operation: OperationName,
    until_ms: u64,
}

#[derive(Debug, Clone)]
struct FormerTool {
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
            for former in names {
                let FormerName { name, toolset, operation, until_ms } = former;
                let key = format!("{NAME_PREFIX}{tenant}/{client}/{name}");
                let (toolset, operation) = (toolset.clone(), operation.clone());
                rows.push(row(key, &NameRow { toolset, operation, until_ms: *until_ms }));
            }
        }
        for former in self.tools.values().flatten() {
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
            let former = FormerName { name: called, toolset, operation, until_ms };
            self.names.entry((tenant, client)).or_default().push(former);
        } else if name.starts_with(TOOL_PREFIX) {
            let ReadTool { until_ms, tool } =
                serde_json::from_slice(json).map_err(|error| damaged(&error.to_string()))?;
            let entity = Arc::new(tool);
            let key = (entity.tenant.clone(), entity.toolset.clone());
            let former = FormerTool { entity, until_ms, compiled: None };
            self.tools.entry(key).or_default().push(former);
        } else {
            return Err(damaged("no such kind of row"));
        }
        Ok(())
    }

    pub(super) fn names(&self, tenant: &TenantId, client: &ClientApplicationId) -> &[FormerName] {
        if self.names.is_empty() {
            return &[];
        }
        self.names.get(&(tenant.clone(), client.clone())).map_or(&[], Vec::as_slice)
    }

    pub(super) fn keep_names(
        &mut self,
        tenant: &TenantId,
        client: &ClientApplicationId,
        names: Vec<FormerName>,
    ) {
        if !names.is_empty() {
            self.names.insert((tenant.clone(), client.clone()), names);
        }
    }

    /// Takes over from `older` the tools that went from a toolset and are still within their grace
    /// time, and those that go with the change from `before` to `after`.
    pub(super) fn keep_tools(
        &mut self,
        older: &Self,
        before: Option<&Arc<CompiledToolset>>,
        after: &Arc<CompiledToolset>,
        grace: Grace,
    ) {
        let key = || (after.entity.tenant.clone(), after.entity.id.clone());
        let Some(connection) = &after.connection else { return };
        let mut kept: Vec<FormerTool> = Vec::new();
        if !older.tools.is_empty() {
            let carried = older.tools.get(&key()).into_iter().flatten();
            kept.extend(carried.filter(|former| former.until_ms > grace.now_ms).cloned());
        }
        if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, after)) {
            for tool in &before.tools {
                let Some(entity) = &tool.entity else { continue };
                if after.tool(&tool.source_name).is_none() {
                    kept.retain(|former| former.entity.name != entity.name);
                    kept.push(FormerTool {
                        entity: Arc::clone(entity),
                        until_ms: grace.now_ms.saturating_add(grace.callable_ms),
                        compiled: Some(Arc::clone(tool)),
                    });
                }
            }
        }
        kept.retain_mut(|former| {
            if after.tool(&former.entity.name).is_some() {
                return false;
            }
            let compiled = former.compiled.take();
            former.compiled = compiled
                .filter(|compiled| compiled.is_of(&former.entity, connection))
                // One that does not fit its connection any more is not callable any more.
                .or_else(|| {
                    let made = CompiledTool::rest(&former.entity, Some(connection));
                    made.ok().flatten().map(Arc::new)
                });
            former.compiled.is_some()
        });
        if !kept.is_empty() {
            self.tools.insert(key(), kept);
        }
    }

    /// Lets the oldest tools go where there are too many.
    pub(super) fn bound(&mut self) {
        let mut count: usize = self.tools.values().map(Vec::len).sum();
        if count <= TOOLS_MAX {
            return;
        }
        let mut times: Vec<u64> = self.tools.values().flatten().map(|one| one.until_ms).collect();
        times.sort_unstable();
        let oldest_kept = times.get(count - TOOLS_MAX).copied().unwrap_or(u64::MAX);
        self.tools.retain(|_, tools| {
            tools.retain(|former| {
                // Those of one change have one time: some of them stay.
                let stays = former.until_ms > oldest_kept
                    || (former.until_ms == oldest_kept && count <= TOOLS_MAX);
                count -= usize::from(!stays);
                stays
            });
            !tools.is_empty()
        });
    }

    fn tool(&self, tenant: &TenantId, former: &FormerName) -> Option<&Arc<CompiledTool>> {
        let tools = self.tools.get(&(tenant.clone(), former.toolset.clone()))?;
        let tool = tools.iter().find(|tool| tool.entity.name == former.operation)?;
        tool.compiled.as_ref()
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
    known: &[FormerName],
    before: Option<&Arc<ToolList>>,
    after: &Arc<ToolList>,
    grace: Grace,
) -> Vec<FormerName> {
    let has_toolset =
        |id: &ToolsetId| after.toolsets.iter().any(|shown| shown.toolset.entity.id == *id);
    let is_there = |name: &str| after.tool(name).is_some() || after.hidden_tool(name).is_some();
    let is_kept = |former: &&FormerName| {
        former.until_ms.saturating_add(GONE_MS) > grace.now_ms
            && !is_there(former.name.as_str())
            && has_toolset(&former.toolset)
    };
    let mut names: Vec<FormerName> = known.iter().filter(is_kept).cloned().collect();
    if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, after)) {
        let went = before
            .tools
            .iter()
            .filter(|tool| !is_there(tool.name.as_str()) && has_toolset(&tool.toolset));
        for tool in went {
            names.push(FormerName {
                name: tool.name.clone(),
                toolset: tool.toolset.clone(),
                operation: tool.source_name.clone(),
                until_ms: grace.now_ms.saturating_add(grace.callable_ms),
            });
        }
    }
    if names.len() > NAMES_MAX {
        names.sort_by(|one, other| other.until_ms.cmp(&one.until_ms));
        names.truncate(NAMES_MAX);
    }
    names
}

/// The names of a view that went, ready to be looked up.
#[derive(Debug, Default)]
pub(super) struct DeprecatedNames(HashMap<ToolName, Entry>);

#[derive(Debug)]
struct Entry {
    callable: Option<(Arc<ViewTool>, Option<ToolName>)>,
    until_ms: u64,
}

impl DeprecatedNames {
    pub(super) fn compile(
        names: &[FormerName],
        list: &ToolList,
        former: &FormerTools,
        tenant: &TenantId,
    ) -> Self {
        if names.is_empty() {
            return Self::default();
        }
        type Operation<'a> = (&'a ToolsetId, &'a OperationName);
        let operation = |tool: &'_ Arc<ViewTool>| -> (ToolsetId, OperationName) {
            (tool.toolset.clone(), tool.source_name.clone())
        };
        let hidden: std::collections::HashSet<_> = list.hidden.iter().map(operation).collect();
        let current: HashMap<Operation<'_>, &Arc<ViewTool>> =
            list.tools.iter().map(|tool| ((&tool.toolset, &tool.source_name), tool)).collect();
        let entries = names.iter().filter_map(|name| {
            let until_ms = name.until_ms;
            if hidden.contains(&(name.toolset.clone(), name.operation.clone())) {
                return None;
            }
            let callable = match current.get(&(&name.toolset, &name.operation)) {
                Some(tool) => Some((Arc::clone(tool), Some(tool.name.clone()))),
                None => {
                    let shown =
                        list.toolsets.iter().find(|one| one.toolset.entity.id == name.toolset)?;
                    match former.tool(tenant, name) {
                        None => None,
                        Some(tool) => {
                            let tool = shown.show_former(name.name.clone(), tool);
                            if tool.permission.is_denied() {
                                return None;
                            }
                            Some((tool, None))
                        }
                    }
                }
            };
            Some((name.name.clone(), Entry { callable, until_ms }))
        });
        Self(entries.collect())
    }

    pub(super) fn find(&self, name: &str, now_ms: u64) -> Option<Deprecated> {
        let Entry { callable, until_ms } = self.0.get(name)?;
        match callable {
            Some((tool, now_called)) if now_ms < *until_ms => Some(Deprecated::Callable {
                tool: Arc::clone(tool),
                now_called: now_called.clone(),
                until_ms: *until_ms,
            }),
            _ if now_ms < until_ms.saturating_add(GONE_MS) => Some(Deprecated::Gone),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "deprecated_tests.rs"]
mod tests;
