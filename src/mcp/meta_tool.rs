//! The runtime's own meta tools in a view: what they were asked, and what they answer.
//!
//! `discover_tool_schema` and `describe_tool` tell of a visible tool, `search_tools` finds some,
//! `call_tool` is a call of another tool and goes the way of every call. A tool that is not there
//! and one that is not shown get the same answer.

use std::borrow::Cow;

use super::ToolOutcome;
use crate::catalog::search::FOUND_MAX;
use crate::catalog::{MetaTool, View, ViewTool};
use crate::json::{self, Kind, OwnedRaw, Raw};

/// Tools that are found where nothing is said about how many.
const FOUND_DEFAULT: usize = 10;
/// How much of a description a search shows.
const SHOWN_BYTES_MAX: usize = 300;

/// What a meta tool was asked.
#[derive(Clone, Debug)]
pub enum MetaToolCall<'a> {
    /// The full schemas of this tool.
    Schema(Cow<'a, str>),
    /// All of this tool.
    Description(Cow<'a, str>),
    /// Tools that fit words.
    Search {
        /// The words.
        query: Cow<'a, str>,
        /// Most tools.
        limit: usize,
    },
    /// A call of another tool.
    Call {
        /// What it is called.
        name: Cow<'a, str>,
        /// An object; `None` stands for an empty one.
        arguments: Option<OwnedRaw>,
    },
}

impl<'a> MetaToolCall<'a> {
    /// Reads what `meta tool` is asked.
    ///
    /// # Errors
    /// The outcome for arguments that do not fit: which, and why.
    pub fn read(meta_tool: MetaTool, arguments: Option<Raw<'a>>) -> Result<Self, ToolOutcome> {
        let member = |name: &str| arguments.and_then(|all| all.get(name));
        let text = |name: &str| {
            member(name).and_then(Raw::as_str).filter(|text| !text.is_empty()).ok_or_else(|| {
                let meta_tool = meta_tool.name();
                invalid(format!("{meta_tool} needs `{name}`, a string that is not empty"))
            })
        };
        Ok(match meta_tool {
            MetaTool::DiscoverToolSchema => Self::Schema(text("tool_id")?),
            MetaTool::DescribeTool => Self::Description(text("name")?),
            MetaTool::SearchTools => {
                Self::Search { query: text("query")?, limit: limit(member("limit"))? }
            }
            MetaTool::CallTool => {
                Self::Call { name: text("name")?, arguments: called_with(member("arguments"))? }
            }
        })
    }
}

fn invalid(text: String) -> ToolOutcome {
    ToolOutcome::InvalidArguments { text }
}

fn limit(given: Option<Raw<'_>>) -> Result<usize, ToolOutcome> {
    let Some(given) = given.filter(|given| given.kind() != Kind::Null) else {
        return Ok(FOUND_DEFAULT);
    };
    let number = given.text().trim_matches('"').parse::<usize>().ok();
    number.filter(|limit| (1..=FOUND_MAX).contains(limit)).ok_or_else(|| {
        invalid(format!("search_tools: `limit` must be a whole number from 1 to {FOUND_MAX}"))
    })
}

/// An object, or the text of one, as clients send it whose schemas know no free objects.
fn called_with(given: Option<Raw<'_>>) -> Result<Option<OwnedRaw>, ToolOutcome> {
    let Some(given) = given.filter(|given| given.kind() != Kind::Null) else { return Ok(None) };
    let parsed = match given.kind() {
        Kind::Object => OwnedRaw::parse(given.text().as_bytes()).ok(),
        Kind::String => {
            let text = given.as_str().unwrap_or_default();
            let parsed = OwnedRaw::parse(text.as_bytes()).ok();
            parsed.filter(|parsed| parsed.as_raw().kind() == Kind::Object)
        }
        _ => None,
    };
    parsed.map(Some).ok_or_else(|| {
        let kind = given.kind().described();
        invalid(format!("call_tool: `arguments` must be an object, not {kind}"))
    })
}

/// The full schemas of a tool, as `discover_tool_schema` and the tool's resource tell them.
pub fn schemas(tool: &ViewTool) -> Vec<u8> {
    let mut out = b"{\"tool_id\":".to_vec();
    json::write_string(&mut out, tool.name.as_str());
    write_schemas(&mut out, tool);
    out.push(b'}');
    out
}

/// All that is told of one tool, with its schemas in full.
pub fn described(tool: &ViewTool) -> Vec<u8> {
    let mut out = Vec::new();
    write_names(&mut out, tool, &tool.description);
    write_schemas(&mut out, tool);
    write_effect(&mut out, tool);
    out.push(b'}');
    out
}

/// The beginning of an object about a tool.
fn write_names(out: &mut Vec<u8>, tool: &ViewTool, description: &str) {
    out.extend_from_slice(b"{\"name\":");
    json::write_string(out, tool.name.as_str());
    if let Some(title) = &tool.title {
        out.extend_from_slice(b",\"title\":");
        json::write_string(out, title);
    }
    out.extend_from_slice(b",\"description\":");
    json::write_string(out, description);
    out.extend_from_slice(b",\"toolset\":");
    json::write_string(out, tool.toolset.as_str());
}

fn write_schemas(out: &mut Vec<u8>, tool: &ViewTool) {
    out.extend_from_slice(b",\"inputSchema\":");
    json::write_value(out, tool.input_schema());
    if let Some(schema) = tool.output_schema() {
        out.extend_from_slice(b",\"outputSchema\":");
        json::write_value(out, schema);
    }
    out.extend_from_slice(b",\"schemaVersion\":");
    json::write_string(out, &tool.schema_version);
    out.extend_from_slice(b",\"schemaHash\":");
    json::write_string(out, &tool.schema_hash_text());
}

fn write_effect(out: &mut Vec<u8>, tool: &ViewTool) {
    out.extend_from_slice(b",\"sideEffect\":");
    json::write_string(out, tool.side_effect.as_str());
    out.extend_from_slice(b",\"confirmationRecommended\":");
    let recommended: &[u8] = if tool.confirmation_recommended { b"true" } else { b"false" };
    out.extend_from_slice(recommended);
}

/// Finds tools and tells what each does. Takes up to some milliseconds the first time: not for a
/// core.
pub fn search(view: &View, query: &str, limit: usize) -> ToolOutcome {
    let found = view.search().search(query, limit.min(FOUND_MAX));
    let found: Vec<_> = found.iter().filter_map(|found| view.tools().get(found.place)).collect();
    let mut out = b"{\"tools\":[".to_vec();
    for (index, tool) in found.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_found(&mut out, tool);
    }
    out.extend_from_slice(b"]}");
    let text = found.is_empty().then(|| {
        let count = view.tools().len();
        format!(
            "No tool fits these words. Try others, fewer, or more general ones; {count} tools are \
             searched."
        )
    });
    ToolOutcome::Success { structured_json: Some(out), text }
}

fn write_found(out: &mut Vec<u8>, tool: &ViewTool) {
    let end = tool.description.floor_char_boundary(SHOWN_BYTES_MAX);
    if end == tool.description.len() {
        write_names(out, tool, &tool.description);
    } else {
        write_names(out, tool, &format!("{}…", &tool.description[..end]));
    }
    write_effect(out, tool);
    out.push(b'}');
}
