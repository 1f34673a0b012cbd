//! The appliance's own tools: what they are called, what they take and what they give.
//!
//! The results are types of their own here, beside their published schemas, so that the two cannot
//! part; who fills them in is another room's business.

use serde::Serialize;
use serde_json::{Value, json};

/// A tool of the appliance itself. None of them takes an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BuiltinTool {
    /// The sessions of the caller's client application: a [`SessionList`].
    ListSessions,
    /// The tools of the caller's client application: a [`ToolSummaryList`].
    ListTools,
    /// The state of the process, as far as it is the caller's business: a [`RuntimeStatus`].
    RuntimeStatus,
}

impl BuiltinTool {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 3] = [Self::ListSessions, Self::ListTools, Self::RuntimeStatus];

    /// What clients call it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::ListSessions => "list_sessions",
            Self::ListTools => "list_tools",
            Self::RuntimeStatus => "runtime_status",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ListSessions => "List sessions",
            Self::ListTools => "List tools",
            Self::RuntimeStatus => "Runtime status",
        }
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::ListSessions => {
                "Lists the open sessions of this client application: which client opened each, \
                 with which protocol revision, and when it was last used."
            }
            Self::ListTools => {
                "Lists the tools this client application may call, with the toolset each belongs \
                 to and its description."
            }
            Self::RuntimeStatus => {
                "Reports the state of the Ringway process that serves this endpoint: version, \
                 uptime, cores, I/O driver, catalog version, and how many sessions this tenant has open."
            }
        }
    }

    pub(super) fn input_schema() -> Value {
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    }

    /// The schema of the result's `structuredContent`.
    pub fn output_schema(self) -> Value {
        match self {
            Self::ListSessions => object(&[
                (
                    "sessions",
                    list(object(&[
                        ("session", text("The beginning of its id")),
                        ("client", text("Name and version of the client")),
                        ("revision", text("Protocol revision")),
                        ("created_ms", number("When it was opened, Unix milliseconds")),
                        ("last_seen_ms", number("When it was last used, Unix milliseconds")),
                    ])),
                ),
                ("total", number("How many there are; the list may show fewer")),
            ]),
            Self::ListTools => object(&[
                (
                    "tools",
                    list(object(&[
                        ("name", text("What to call it by")),
                        ("toolset", text("The toolset it belongs to")),
                        ("title", text("For people")),
                        ("description", text("What it does")),
                    ])),
                ),
                ("total", number("How many there are; the list may show fewer")),
            ]),
            Self::RuntimeStatus => object(&[
                ("version", text("Version of Ringway")),
                ("uptime_seconds", number("Since the process started")),
                ("cores", number("Cores that serve requests")),
                ("driver", text("io_uring or epoll")),
                ("catalog_version", number("Grows with every change of the catalog")),
                ("sessions", number("Open sessions of this tenant")),
            ]),
        }
    }
}

/// The result of `runtime_status`.
#[derive(Debug, Clone, Serialize)]
pub struct RuntimeStatus {
    /// Version of Ringway.
    pub version: String,
    /// Since the process started.
    pub uptime_seconds: u64,
    /// Cores that serve requests.
    pub cores: u64,
    /// `io_uring` or `epoll`.
    pub driver: String,
    /// The snapshot's version.
    pub catalog_version: u64,
    /// Open sessions of the caller's tenant, those out of memory included. Counting those of one
    /// client application would mean to look at every session.
    pub sessions: u64,
}

/// The result of `list_sessions`.
#[derive(Debug, Clone, Serialize)]
pub struct SessionList {
    /// The newest of them.
    pub sessions: Vec<SessionSummary>,
    /// How many there are.
    pub total: u64,
}

/// One session in a [`SessionList`].
#[derive(Debug, Clone, Serialize)]
pub struct SessionSummary {
    /// The beginning of its id: enough to tell it apart, not enough to use it.
    pub session: String,
    /// Name and version of the client.
    pub client: String,
    /// Protocol revision.
    pub revision: String,
    /// When it was opened.
    pub created_ms: u64,
    /// When it was last used.
    pub last_seen_ms: u64,
}

/// The result of `list_tools`.
#[derive(Debug, Clone, Serialize)]
pub struct ToolSummaryList {
    /// The first of them by name.
    pub tools: Vec<ToolSummary>,
    /// How many there are.
    pub total: u64,
}

/// One tool in a [`ToolSummaryList`].
#[derive(Debug, Clone, Serialize)]
pub struct ToolSummary {
    /// What to call it by.
    pub name: String,
    /// The toolset it belongs to.
    pub toolset: String,
    /// For people; the name where there is no title.
    pub title: String,
    /// What it does.
    pub description: String,
}

fn object(properties: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example of each result with every list filled.
    fn example(tool: BuiltinTool) -> Value {
        let some = || "x".to_owned();
        let result = match tool {
            BuiltinTool::ListSessions => serde_json::to_value(SessionList {
                sessions: vec![SessionSummary {
                    session: some(),
                    client: some(),
                    revision: some(),
                    created_ms: 1,
                    last_seen_ms: 2,
                }],
                total: 1,
            }),
            BuiltinTool::ListTools => serde_json::to_value(ToolSummaryList {
                tools: vec![ToolSummary {
                    name: some(),
                    toolset: some(),
                    title: some(),
                    description: some(),
                }],
                total: 1,
            }),
            BuiltinTool::RuntimeStatus => serde_json::to_value(RuntimeStatus {
                version: some(),
                uptime_seconds: 1,
                cores: 2,
                driver: some(),
                catalog_version: 1,
                sessions: 1,
            }),
        };
        result.unwrap()
    }

    #[test]
    fn results_keep_to_their_schemas_and_schemas_name_no_more() {
        for tool in BuiltinTool::ALL {
            let schema = tool.output_schema();
            let example = example(tool);
            let validator = jsonschema::validator_for(&schema).unwrap();
            assert!(validator.is_valid(&example), "{tool:?}");
            let keys =
                |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(&schema["properties"]), keys(&example), "{tool:?}");
        }
    }

    #[test]
    fn all_is_in_the_order_of_names() {
        assert!(BuiltinTool::ALL.is_sorted_by_key(|tool| tool.name()));
    }
}
