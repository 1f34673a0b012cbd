//! What one client application sees.

use std::sync::Arc;

use super::deprecated::{Deprecated, DeprecatedNames};
use super::list::{ListEntry, ToolList};
use super::offers::{OfferedPrompt, OfferedResource};
use super::prompts::{EffectivePrompt, PromptList};
use super::search::SearchIndex;
use super::shown::ViewTool;
use super::toolset::are_same;
use super::{
    Assignment, ClientApplication, ClientApplicationId, Limits, MetaTool, Tenant, TenantId,
    ToolListing, ToolShape, UpstreamPrompt, UpstreamServer,
};
use crate::mapping::{Dialect, MirroredArgument};

/// What one client application of a tenant sees.
#[derive(Debug)]
pub struct View {
    /// Whose it is.
    pub tenant: TenantId,
    /// Who sees it.
    pub client_application: ClientApplicationId,
    /// For people.
    pub title: Option<Box<str>>,
    /// Whether it may be used without a key.
    pub open: bool,
    /// Whether requests need a session; the setting where `None`.
    pub require_session: Option<bool>,
    /// What `initialize` tells the model.
    pub instructions: Option<Box<str>>,
    /// Origins whose pages may call besides those in settings.
    pub allowed_origins: Arc<[Box<str>]>,
    /// Most sessions of the tenant; the setting where `None`.
    pub sessions_max: Option<u32>,
    /// The form schemas are shown in.
    pub dialect: Dialect,
    /// Whether the list has all tools or those to search with.
    pub tool_listing: ToolListing,
    /// What all client applications of the tenant together may use.
    pub tenant_limits: Limits,
    /// What all callers of the client application together may use.
    pub limits: Limits,
    /// What each caller may use.
    pub caller_limits: Limits,
    pub(super) list: Arc<ToolList>,
    pub(super) prompts: Arc<PromptList>,
    pub(super) deprecated: Option<DeprecatedNames>,
    pub(super) inputs: ViewInputs,
}

/// What a view was compiled from, besides its list.
#[derive(Debug)]
pub(super) struct ViewInputs {
    pub(super) tenant: Arc<Tenant>,
    pub(super) client: Arc<ClientApplication>,
    /// In the order of their toolsets' ids.
    pub(super) assignments: Vec<Arc<Assignment>>,
    /// Whether no name went.
    pub(super) is_plain: bool,
}

impl ViewInputs {
    /// Whether the same view would come of both.
    pub(super) fn are_same(&self, other: &Self) -> bool {
        self.is_plain
            && other.is_plain
            && Arc::ptr_eq(&self.tenant, &other.tenant)
            && Arc::ptr_eq(&self.client, &other.client)
            && are_same(&self.assignments, &other.assignments)
    }
}

impl View {
    /// Whether whoever asks is told the same: nobody has to say who it is.
    pub fn is_public(&self) -> bool {
        self.open
    }

    /// The visible tools, in the order of their names.
    pub fn tools(&self) -> &[Arc<ViewTool>] {
        &self.list.tools
    }

    /// The visible tool clients call by that name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ViewTool>> {
        self.list.tool(name)
    }

    /// The assigned tool of that name which nobody sees, because every call of it is denied.
    pub fn hidden(&self, name: &str) -> Option<&Arc<ViewTool>> {
        self.list.hidden_tool(name)
    }

    /// The arguments of a tool that clients of 2026-07-28 repeat in headers: those that the list tells
    /// them of.
    pub fn mirrored_arguments(&self, name: &str) -> &[MirroredArgument] {
        self.list.listed_tool(name).map_or(&[], |tool| tool.entry().mirrored())
    }

    /// Every assigned tool, visible or not.
    pub fn assigned(&self) -> impl Iterator<Item = &Arc<ViewTool>> {
        self.list.tools.iter().chain(&self.list.hidden)
    }

    /// What is left of a name that is no assigned tool's any more.
    pub fn deprecated(&self, name: &str, now_ms: u64) -> Option<Deprecated> {
        self.deprecated.as_ref()?.find(name, now_ms)
    }

    /// The runtime's own meta tools that are in the list.
    pub fn meta_tools(&self) -> impl Iterator<Item = MetaTool> + '_ {
        self.list.meta_tools()
    }

    /// The meta tool clients call by that name, where it is in the list.
    pub fn meta_tool(&self, name: &str) -> Option<MetaTool> {
        let meta_tool = MetaTool::by_name(name)?;
        self.meta_tools().find(|one| *one == meta_tool)
    }

    /// How many entries `tools/list` has.
    pub fn list_len(&self) -> usize {
        self.list.len()
    }

    /// An entry of `tools/list`, by its place: meta tools first, then tools by name.
    pub fn list_entry(&self, place: usize) -> Option<ListEntry<'_>> {
        self.list.entry(place)
    }

    /// Whether [`Self::tools_list`] is put together already, or small enough for that to take no time.
    /// Of a large catalog it is many megabytes: for workers.
    pub fn is_tools_list_at_hand(&self, shape: ToolShape) -> bool {
        self.list.is_result_at_hand(shape)
    }

    /// The finished result of `tools/list` in one page: `{"tools":[…]}`. Put together at first use.
    pub fn tools_list(&self, shape: ToolShape) -> &Arc<[u8]> {
        self.list.result(shape)
    }

    /// Where [`Self::tools`] are found by words, by their places. Made at first use, which takes
    /// longer than a core may be kept: for workers.
    pub fn search(&self) -> &SearchIndex {
        self.list.search()
    }

    /// Whether arguments and results of at least one visible tool are kept in the audit.
    pub fn logs_payloads(&self) -> bool {
        self.list.logs_payloads
    }

    /// The prompts, in the order of their names.
    pub fn prompts(&self) -> &[EffectivePrompt] {
        &self.prompts.prompts
    }

    /// The prompt of that name.
    pub fn prompt(&self, name: &str) -> Option<&EffectivePrompt> {
        self.prompts().iter().find(|prompt| prompt.name.as_str() == name)
    }

    /// The finished result of `prompts/list` in one page: `{"prompts":[…]}`.
    pub fn prompts_list(&self, shape: ToolShape) -> &Arc<[u8]> {
        self.prompts.prompts_list(shape)
    }

    /// The finished result of `resources/list` in one page: `{"resources":[…]}`.
    pub fn resources_list(&self, shape: ToolShape) -> &Arc<[u8]> {
        self.prompts.resources_list(shape)
    }

    /// The upstream MCP servers behind its toolsets, in the order of their toolsets.
    ///
    /// Only those of which something is visible.
    pub fn upstreams(&self) -> &[Arc<UpstreamServer>] {
        &self.prompts.offers.servers
    }

    /// The prompts of upstream servers, in the order of their names. In lists they follow
    /// [`Self::prompts`].
    pub fn upstream_prompts(&self) -> &[OfferedPrompt] {
        &self.prompts.offers.prompts
    }

    /// The upstream prompt of that name.
    pub fn upstream_prompt(&self, name: &str) -> Option<&UpstreamPrompt> {
        self.prompts.offers.prompt(name).map(|one| &one.prompt)
    }

    /// The resources of upstream servers, in the order of their URIs. In lists they follow the
    /// view's own.
    pub fn upstream_resources(&self) -> &[OfferedResource] {
        &self.prompts.offers.resources
    }

    /// The resource templates of upstream servers, in the order of their texts.
    pub fn upstream_templates(&self) -> &[OfferedResource] {
        &self.prompts.offers.templates
    }

    /// The upstream server that lists the resource with this URI, or a template that may fit it: of
    /// several templates the one with the most text of its own.
    pub fn upstream_of_resource(&self, uri: &str) -> Option<&Arc<UpstreamServer>> {
        self.prompts.offers.of_resource(uri)
    }

    /// The upstream server that lists this URI template, exactly as it is written.
    pub fn upstream_of_template(&self, uri_template: &str) -> Option<&Arc<UpstreamServer>> {
        self.prompts.offers.of_template(uri_template)
    }

    pub(super) fn lists_the_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.list, &other.list) || self.list.shows_the_same(&other.list)
    }

    pub(super) fn prompts_the_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.prompts, &other.prompts)
            || (self.prompts() == other.prompts()
                && self.prompts.offers.has_the_same_prompts(&other.prompts.offers))
    }

    /// Each of the view's own prompts is a resource too.
    pub(super) fn resources_the_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.prompts, &other.prompts)
            || (self.prompts() == other.prompts()
                && self.prompts.offers.has_the_same_resources(&other.prompts.offers))
    }
}

/// What clients of a view would see differently than before.
#[derive(Debug, Clone)]
pub struct ViewChange {
    /// The view as it is now.
    pub view: Arc<View>,
    /// Whether `tools/list` is another one.
    pub tools: bool,
    /// Whether a prompt is another one.
    pub prompts: bool,
    /// Whether a resource or a resource template is another one.
    pub resources: bool,
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
