//! Tools the runtime adds to a view by itself: to ask for schemas, and to search for tools.
//!
//! What they are called, take and give; who runs them is another room's business. Their names
//! belong to them in every view, so that no tool is renamed when a view begins to need them.

use serde_json::{Value, json};

use super::search::FOUND_MAX;

/// A tool the runtime adds to a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetaTool {
    /// Runs a tool that was found: for client applications that search.
    CallTool,
    /// Tells all of one tool that was found.
    DescribeTool,
    /// Tells the full schemas of a tool whose list entry has less.
    DiscoverToolSchema,
    /// Finds tools by words.
    SearchTools,
}

impl MetaTool {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 4] =
        [Self::CallTool, Self::DescribeTool, Self::DiscoverToolSchema, Self::SearchTools];

    /// Those of a view that is searched, in the order in which they are used.
    pub(super) const SEARCH: [Self; 3] = [Self::SearchTools, Self::DescribeTool, Self::CallTool];

    /// What clients call it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CallTool => "call_tool",
            Self::DescribeTool => "describe_tool",
            Self::DiscoverToolSchema => "discover_tool_schema",
            Self::SearchTools => "search_tools",
        }
    }

    /// The meta tool with that name, whether or not a view has it.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|meta_tool| meta_tool.name() == name)
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::CallTool => "Call a tool",
            Self::DescribeTool => "Describe a tool",
            Self::DiscoverToolSchema => "Discover a tool's schema",
            Self::SearchTools => "Search tools",
        }
    }

    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::CallTool => {
                "Calls a tool found with search_tools. Pass its name and the arguments that \
                 describe_tool says it takes."
            }
            Self::DescribeTool => {
                "Returns the description and the full input and output schemas of one tool. Call \
                 it before the first call_tool of a tool."
            }
            Self::DiscoverToolSchema => {
                "Returns the full input and output schemas of one tool. The list shows only a part \
                 of some tools' schemas: call this before the first call of such a tool."
            }
            Self::SearchTools => {
                "Finds tools by what they do. Most tools of this server are not in the list: search \
                 for them with a few words, describe the one that fits, then call it."
            }
        }
    }

    /// The schema of its arguments.
    pub fn input_schema(self) -> Value {
        let tool_id = json!({"type": "string", "description": "The tool's name"});
        match self {
            Self::DiscoverToolSchema => object(json!({ "tool_id": tool_id }), &["tool_id"]),
            Self::DescribeTool => object(json!({ "name": tool_id }), &["name"]),
            Self::CallTool => object(
                json!({
                    "name": tool_id,
                    "arguments": {
                        "type": "object",
                        "description": "The tool's arguments",
                        "additionalProperties": true,
                    },
                }),
                &["name"],
            ),
            Self::SearchTools => object(
                json!({
                    "query": {"type": "string", "description": "What the tool should do, in words"},
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": FOUND_MAX,
                        "description": "Most tools to return",
                    },
                }),
                &["query"],
            ),
        }
    }

    /// Whether it reads only; `call_tool` does what the tool does.
    pub(super) const fn reads_only(self) -> bool {
        !matches!(self, Self::CallTool)
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ToolName;

    #[test]
    fn meta_tools_are_found_by_their_names() {
        assert!(MetaTool::ALL.is_sorted_by_key(|meta_tool| meta_tool.name()));
        for meta_tool in MetaTool::ALL {
            assert_eq!(MetaTool::by_name(meta_tool.name()), Some(meta_tool));
            assert!(ToolName::new(meta_tool.name()).is_ok());
            assert!(jsonschema::validator_for(&meta_tool.input_schema()).is_ok());
        }
        assert_eq!(MetaTool::by_name("list_pets"), None);
    }
}
