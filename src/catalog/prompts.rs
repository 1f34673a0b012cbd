//! What a model should know that uses the tools of a toolset, put together for one client
//! application and offered twice: as a prompt named after the toolset, and as a resource.

use std::sync::{Arc, OnceLock};

use super::list::result;
use super::offer::{FORMS, form};
use super::offers::Offers;
use super::shown::ShownToolset;
use super::toolset::CompiledToolset;
use super::{Assignment, ClientApplication, PromptMode, ToolShape, ToolsetId, UpstreamServer};
use crate::json::write_string;

/// What the text of a prompt's resource is.
pub const PROMPT_MIME_TYPE: &str = "text/plain";

/// The prompt of a toolset as a client application gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectivePrompt {
    /// What it is asked for by: the toolset's id.
    pub name: ToolsetId,
    /// For people.
    pub title: Option<Arc<str>>,
    /// For people.
    pub description: Option<Arc<str>>,
    /// What the model reads.
    pub text: Arc<str>,
    /// The resource it is too.
    pub uri: Box<str>,
}

impl EffectivePrompt {
    /// Puts the prompt of a toolset together; `None` where nothing is said.
    fn compile(
        toolset: &CompiledToolset,
        client: &ClientApplication,
        assignment: &Assignment,
    ) -> Option<Self> {
        let own = assignment.prompt.as_deref();
        let client_prompt =
            client.system_prompt.as_deref().filter(|_| assignment.include_client_prompt);
        let parts = match assignment.prompt_mode {
            PromptMode::Override => [None, None, own],
            PromptMode::Append => [toolset.prompt.as_deref(), client_prompt, own],
        };
        let said = || parts.iter().flatten().filter(|part| !part.trim().is_empty());
        let text = match (said().count(), &toolset.prompt) {
            (0, _) => return None,
            // The toolset's alone is shared.
            (1, Some(prompt)) if said().any(|part| **part == **prompt) => Arc::clone(prompt),
            _ => Arc::from(said().copied().collect::<Vec<_>>().join("\n\n")),
        };
        Some(Self {
            name: toolset.entity.id.clone(),
            title: toolset.title.clone(),
            description: toolset.description.clone(),
            text,
            uri: format!("runtime://toolsets/{}/system-prompt", toolset.entity.id).into(),
        })
    }

    /// Writes its entry of `prompts/list`.
    pub fn write_prompt(&self, out: &mut Vec<u8>, shape: ToolShape) {
        out.extend_from_slice(b"{\"name\":");
        write_string(out, self.name.as_str());
        write_texts(out, self, shape);
        out.push(b'}');
    }

    /// Writes its entry of `resources/list`.
    pub fn write_resource(&self, out: &mut Vec<u8>, shape: ToolShape) {
        out.extend_from_slice(b"{\"uri\":");
        write_string(out, &self.uri);
        out.extend_from_slice(b",\"name\":");
        write_string(out, self.name.as_str());
        write_texts(out, self, shape);
        out.extend_from_slice(b",\"mimeType\":");
        write_string(out, PROMPT_MIME_TYPE);
        if shape.has_titles() {
            out.extend_from_slice(b",\"size\":");
            out.extend_from_slice(self.text.len().to_string().as_bytes());
        }
        out.push(b'}');
    }
}

/// All prompts of a view, by name, and the lists they are in.
#[derive(Debug, Default)]
pub(super) struct PromptList {
    pub(super) prompts: Vec<EffectivePrompt>,
    /// Those of upstream servers, and resources.
    pub(super) offers: Arc<Offers>,
    prompts_lists: [OnceLock<Arc<[u8]>>; FORMS],
    resources_lists: [OnceLock<Arc<[u8]>>; FORMS],
}

impl PromptList {
    /// The prompts and resources of toolsets that are visible.
    pub(super) fn compile<'a>(
        client: &ClientApplication,
        assigned: impl Iterator<Item = (&'a Assignment, &'a ShownToolset)>,
        before: Option<&Self>,
    ) -> Self {
        let (mut prompts, mut sources) = (Vec::new(), Vec::new());
        for (assignment, shown) in assigned.filter(|(_, shown)| is_visible(shown)) {
            prompts.extend(EffectivePrompt::compile(&shown.toolset, client, assignment));
            let upstream = shown.toolset.upstream.iter();
            sources.extend(upstream.map(|upstream| Arc::clone(&upstream.offered)));
        }
        let offers = Offers::compile(sources, &prompts, before.map(|before| &before.offers));
        Self { prompts, offers, ..Self::default() }
    }

    /// Whether the same views come of both.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.offers, &other.offers) && self.prompts == other.prompts
    }

    pub(super) fn prompts_list(&self, shape: ToolShape) -> &Arc<[u8]> {
        self.prompts_lists[form(shape)].get_or_init(|| {
            let own = self.prompts.iter().map(|one| written(|out| one.write_prompt(out, shape)));
            let offered = self.offers.prompts.iter();
            let offered = offered.map(|one| written(|out| one.write(out, shape)));
            let entries: Vec<Vec<u8>> = own.chain(offered).collect();
            result("prompts", entries.iter().map(Vec::as_slice))
        })
    }

    pub(super) fn resources_list(&self, shape: ToolShape) -> &Arc<[u8]> {
        self.resources_lists[form(shape)].get_or_init(|| {
            let own = self.prompts.iter().map(|one| written(|out| one.write_resource(out, shape)));
            let offered = self.offers.resources.iter();
            let offered = offered.map(|one| written(|out| one.write(out, shape)));
            let entries: Vec<Vec<u8>> = own.chain(offered).collect();
            result("resources", entries.iter().map(Vec::as_slice))
        })
    }
}

/// Whether what a toolset has besides tools is shown: where a tool of it is, and where a server
/// offers no tools at all.
fn is_visible(shown: &ShownToolset) -> bool {
    let is_without_tools = shown.toolset.upstream.is_some() && shown.tools.is_empty();
    is_without_tools || shown.tools.iter().any(|tool| !tool.permission.is_denied())
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut entry = Vec::new();
    write(&mut entry);
    entry
}

fn write_texts(out: &mut Vec<u8>, prompt: &EffectivePrompt, shape: ToolShape) {
    if let Some(title) = prompt.title.as_deref().filter(|_| shape.has_titles()) {
        out.extend_from_slice(b",\"title\":");
        write_string(out, title);
    }
    out.extend_from_slice(b",\"description\":");
    if let Some(description) = &prompt.description {
        write_string(out, description);
    } else {
        let name = prompt.title.as_deref().unwrap_or(prompt.name.as_str());
        write_string(out, &format!("How to use the tools of {name}"));
    }
}

/// What upstream servers say of themselves, as far as there is room: models read all of it before
/// anything else.
fn said_by_servers(servers: &[Arc<UpstreamServer>]) -> Vec<String> {
    const OF_ONE_BYTES_MAX: usize = 4_096;
    const OF_ALL_BYTES_MAX: usize = 16_384;
    let mut left = OF_ALL_BYTES_MAX;
    let mut said = Vec::new();
    for server in servers {
        let text = server.definitions.instructions.as_deref().unwrap_or_default().trim();
        let end = text.floor_char_boundary(OF_ONE_BYTES_MAX.min(left));
        let (text, is_cut) = (text.get(..end).unwrap_or_default(), end < text.len());
        left -= end;
        if !text.is_empty() {
            let more = if is_cut { "..." } else { "" };
            said.push(format!("About the toolset {}: {text}{more}", server.toolset));
        }
    }
    said
}

/// What `initialize` tells the model: what the client application says, then what there is to know
/// about prompts and about tools that are not wholly in the list.
pub(super) fn instructions(
    client: &ClientApplication,
    prompts: &PromptList,
    needs_discovery: bool,
    is_searched: bool,
) -> Option<Box<str>> {
    const PROMPTS_NAMED: usize = 20;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(client.instructions.clone().filter(|text| !text.trim().is_empty()));
    if is_searched {
        parts.push(
            "Most tools of this server are not in the list: find them with search_tools, read how \
             to call one with describe_tool, then call it with call_tool."
                .to_owned(),
        );
    }
    if needs_discovery {
        parts.push(
            "Some tools show only a part of their schema in the list: call discover_tool_schema \
             with the tool's name as tool_id before the first call of such a tool."
                .to_owned(),
        );
    }
    let PromptList { prompts, offers, .. } = prompts;
    if !prompts.is_empty() {
        let named = prompts.iter().take(PROMPTS_NAMED).map(|prompt| prompt.name.as_str());
        let named = named.collect::<Vec<_>>().join(", ");
        let more = match prompts.len().saturating_sub(PROMPTS_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        parts.push(format!(
            "How to use the tools of a toolset is said in the prompt of its name, and in the \
             resource runtime://toolsets/{{name}}/system-prompt. There are: {named}{more}."
        ));
    }
    parts.extend(said_by_servers(&offers.servers));
    if parts.is_empty() { None } else { Some(parts.join("\n\n").into()) }
}
