//! What a model should know that uses the tools of a toolset, put together for one client
//! application and offered twice: as a prompt named after the toolset, and as a resource.

use std::sync::{Arc, OnceLock};

use super::list::result;
use super::shown::ShownToolset;
use super::toolset::CompiledToolset;
use super::{Assignment, ClientApplication, PromptMode, ToolShape, ToolsetId};
use crate::json::write_string;

/// What a resource's text is.
const MIME_TYPE: &str = "text/plain";

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
}

/// All prompts of a view, by name, and the lists they are in.
#[derive(Debug, Default)]
pub(super) struct PromptList {
    pub(super) prompts: Vec<EffectivePrompt>,
    prompts_lists: [OnceLock<Arc<[u8]>>; 2],
    resources_lists: [OnceLock<Arc<[u8]>>; 2],
}

impl PromptList {
    /// The prompts of toolsets at least one tool of which is visible.
    pub(super) fn compile<'a>(
        client: &ClientApplication,
        assigned: impl Iterator<Item = (&'a Assignment, &'a ShownToolset)>,
    ) -> Self {
        let prompts = assigned
            .filter(|(_, shown)| shown.tools.iter().any(|tool| !tool.permission.is_denied()))
            .filter_map(|(assignment, shown)| {
                EffectivePrompt::compile(&shown.toolset, client, assignment)
            });
        Self { prompts: prompts.collect(), ..Self::default() }
    }

    pub(super) fn prompts_list(&self, shape: ToolShape) -> &Arc<[u8]> {
        self.prompts_lists[usize::from(shape.has_titles())].get_or_init(|| {
            let entries = self.prompts.iter().map(|prompt| prompt_entry(prompt, shape));
            let entries: Vec<Vec<u8>> = entries.collect();
            result("prompts", entries.iter().map(Vec::as_slice))
        })
    }

    pub(super) fn resources_list(&self, shape: ToolShape) -> &Arc<[u8]> {
        self.resources_lists[usize::from(shape.has_titles())].get_or_init(|| {
            let entries = self.prompts.iter().map(|prompt| resource_entry(prompt, shape));
            let entries: Vec<Vec<u8>> = entries.collect();
            result("resources", entries.iter().map(Vec::as_slice))
        })
    }
}

fn prompt_entry(prompt: &EffectivePrompt, shape: ToolShape) -> Vec<u8> {
    let mut out = b"{\"name\":".to_vec();
    write_string(&mut out, prompt.name.as_str());
    write_texts(&mut out, prompt, shape);
    out.push(b'}');
    out
}

fn resource_entry(prompt: &EffectivePrompt, shape: ToolShape) -> Vec<u8> {
    let mut out = b"{\"uri\":".to_vec();
    write_string(&mut out, &prompt.uri);
    out.extend_from_slice(b",\"name\":");
    write_string(&mut out, prompt.name.as_str());
    write_texts(&mut out, prompt, shape);
    out.extend_from_slice(b",\"mimeType\":");
    write_string(&mut out, MIME_TYPE);
    if shape.has_titles() {
        out.extend_from_slice(b",\"size\":");
        out.extend_from_slice(prompt.text.len().to_string().as_bytes());
    }
    out.push(b'}');
    out
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

/// What `initialize` tells the model: what the client application says, then what there is to know
/// about prompts and about tools that are not wholly in the list.
pub(super) fn instructions(
    client: &ClientApplication,
    prompts: &[EffectivePrompt],
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
    if parts.is_empty() { None } else { Some(parts.join("\n\n").into()) }
}
