//! Tools as client applications are shown them: with a name, a permission and an entry of lists.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::fragment::{Fragment, shown_mode};
use super::permission::{Permissions, Policies};
use super::toolset::CompiledToolset;
use super::{
    CompiledTool, DiscoveryMode, Permission, TenantId, ToolName, ToolShape, ToolsetId, exposed,
};
use crate::audit::Subject;
use crate::mapping::Dialect;

/// A tool as it is in a view. One for all views that show the same of it.
#[derive(Debug)]
pub struct ViewTool {
    /// What clients call it by.
    pub name: ToolName,
    /// The tool itself.
    pub tool: Arc<CompiledTool>,
    /// How much of its schemas a list shows.
    pub discovery: DiscoveryMode,
    /// What policies say about calling it.
    pub permission: Permission,
    /// The form its client is shown schemas in.
    pub dialect: Dialect,
    name_hash: u32,
    fragment: OnceLock<Arc<Fragment>>,
    subject: OnceLock<Subject>,
}

impl Deref for ViewTool {
    type Target = CompiledTool;

    fn deref(&self) -> &CompiledTool {
        &self.tool
    }
}

impl ViewTool {
    pub(super) fn new(
        name: ToolName,
        tool: Arc<CompiledTool>,
        setting: Setting,
        permission: Permission,
    ) -> Self {
        Self {
            name_hash: name_hash(name.as_str()),
            name,
            tool,
            discovery: setting.discovery,
            permission,
            dialect: setting.dialect,
            fragment: OnceLock::new(),
            subject: OnceLock::new(),
        }
    }

    /// This tool under another name.
    pub(super) fn renamed(&self, name: ToolName) -> Self {
        let setting = Setting {
            dialect: self.dialect,
            discovery: self.discovery,
            budget: exposed::NAME_BUDGET,
        };
        Self::new(name, Arc::clone(&self.tool), setting, self.permission.clone())
    }

    /// This tool's entry of `tools/list`: a JSON object.
    pub fn fragment(&self, shape: ToolShape) -> &[u8] {
        self.entry().bytes(shape)
    }

    /// The entry in all shapes; made when the catalog is compiled where lists need it.
    pub(super) fn entry(&self) -> &Arc<Fragment> {
        self.fragment.get_or_init(|| self.tool.fragment(&self.name, self.dialect, self.discovery))
    }

    /// What records of calls say of the tool; made at the first one.
    pub fn subject(&self) -> &Subject {
        self.subject.get_or_init(|| {
            let (name, own) = (self.name.as_str(), self.tool.source_name.as_str());
            let source_name = (name != own).then_some(own);
            Subject::new(name, self.tool.toolset.as_str(), source_name, &self.tool.schema_hash)
        })
    }

    pub(super) fn name_hash(&self) -> u32 {
        self.name_hash
    }
}

/// Not keyed: the names in a table come from operators, not from attackers.
pub(super) fn name_hash(name: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish() as u32
}

/// How a toolset is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Setting {
    pub(super) dialect: Dialect,
    pub(super) discovery: DiscoveryMode,
    pub(super) budget: u8,
}

impl Setting {
    /// What is really shown.
    fn effective(self) -> Self {
        Self { discovery: shown_mode(self.dialect, self.discovery), ..self }
    }
}

/// All that decides how a toolset is shown, but for its tools.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ShownKey {
    pub(super) tenant: TenantId,
    pub(super) toolset: ToolsetId,
    pub(super) setting: Setting,
    pub(super) policies: Policies,
}

/// The tools of a toolset as some client applications are shown them, as if they had no others.
#[derive(Debug)]
pub(super) struct ShownToolset {
    pub(super) toolset: Arc<CompiledToolset>,
    pub(super) key: ShownKey,
    /// By their names, which need not be unique; denied ones too.
    pub(super) tools: Vec<Arc<ViewTool>>,
}

impl ShownToolset {
    /// Shows `toolset`; is `previous`, which has the same key, where it shows that already.
    pub(super) fn compile(
        key: &ShownKey,
        toolset: &Arc<CompiledToolset>,
        previous: Option<&Arc<Self>>,
    ) -> Arc<Self> {
        if let Some(previous) = previous.filter(|one| Arc::ptr_eq(&one.toolset, toolset)) {
            return Arc::clone(previous);
        }
        let known: HashMap<*const CompiledTool, &Arc<ViewTool>> = previous
            .into_iter()
            .flat_map(|previous| &previous.tools)
            .map(|shown| (Arc::as_ptr(&shown.tool), shown))
            .collect();
        let mut permissions = Permissions::new(&key.policies);
        let setting = key.setting.effective();
        let budget = setting.budget;
        let shown = toolset.tools.iter().map(|tool| {
            // The key says all else that a shown tool depends on.
            if let Some(known) = known.get(&Arc::as_ptr(tool)) {
                return Arc::clone(known);
            }
            let name = exposed::natural(tool.wanted_name(), budget);
            Arc::new(ViewTool::new(name, Arc::clone(tool), setting, permissions.of(tool)))
        });
        let mut tools: Vec<Arc<ViewTool>> = shown.collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Arc::new(Self { toolset: Arc::clone(toolset), key: key.clone(), tools })
    }

    /// Shows a tool that is not of the toolset any more, under the name it had.
    pub(super) fn show_former(&self, name: ToolName, tool: &Arc<CompiledTool>) -> Arc<ViewTool> {
        let permission = Permissions::new(&self.key.policies).of(tool);
        Arc::new(ViewTool::new(name, Arc::clone(tool), self.key.setting.effective(), permission))
    }
}
