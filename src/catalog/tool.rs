//! A tool made ready: its plans compiled and its entry of every list written.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::connection::timeout;
use super::faults;
use super::{Annotations, BuiltinTool, CompiledConnection, Tool, ToolMethod, ToolName, ToolsetId};
use crate::mapping::{self, Location, RequestPlan, ResponsePlan};

/// What a protocol revision has in an entry of `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolShape {
    /// Name, description and input schema.
    V20241105,
    /// And annotations, the title among them.
    V20250326,
    /// And a title and an output schema.
    V20250618,
    /// As 2025-06-18.
    V20251125,
}

/// How many shapes differ.
pub(super) const SHAPES: usize = 3;

impl ToolShape {
    /// The place of its bytes among those of all shapes.
    pub(super) fn place(self) -> usize {
        match self {
            Self::V20241105 => 0,
            Self::V20250326 => 1,
            Self::V20250618 | Self::V20251125 => 2,
        }
    }
}

/// What a call of a tool does.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are `Rest`, and each is in an `Arc`")]
pub enum ToolKind {
    /// A request to an HTTP API.
    Rest {
        /// Where to.
        connection: Arc<CompiledConnection>,
        /// From arguments to the request.
        request: RequestPlan,
        /// From the response to the result.
        response: ResponsePlan,
    },
    /// A tool of the appliance itself.
    Builtin(BuiltinTool),
}

/// A tool as the runtime uses it. One for all views that show it.
#[derive(Debug)]
pub struct CompiledTool {
    /// What clients call it by.
    pub name: ToolName,
    /// The toolset it belongs to.
    pub toolset: ToolsetId,
    /// For people.
    pub title: Option<Box<str>>,
    /// What the model reads.
    pub description: Box<str>,
    /// What a call does.
    pub kind: ToolKind,
    /// Longest time for a whole call: the tool's, else the connection's; the setting where `None`.
    pub total_timeout: Option<Duration>,
    /// Whether an output schema is published, so that a result must have `structuredContent`.
    pub has_output_schema: bool,
    fragments: [Arc<[u8]>; SHAPES],
}

impl CompiledTool {
    /// This tool's entry of `tools/list`: a JSON object.
    pub fn fragment(&self, shape: ToolShape) -> &[u8] {
        &self.fragments[shape.place()]
    }

    /// Whether two shapes, by their places, have the same bytes.
    pub(super) fn is_alike(&self, place: usize, other: usize) -> bool {
        Arc::ptr_eq(&self.fragments[place], &self.fragments[other])
    }

    pub(super) fn fragment_at(&self, place: usize) -> &[u8] {
        &self.fragments[place]
    }

    /// Compiles a tool of a REST toolset. All that is wrong comes back, not only the first;
    /// without a connection, whose own problem is known, there is only that.
    pub(super) fn rest(
        tool: &Tool,
        connection: Option<&Arc<CompiledConnection>>,
    ) -> Result<Option<Self>, Vec<String>> {
        let mut faults = faults::of_tool(tool);
        let name = ToolName::new(tool.name.as_str()).map_err(|error| error.to_string());
        let name = noted(name, &mut faults);
        let total_timeout = timeout("total_timeout_ms", tool.total_timeout_ms);
        let total_timeout = noted(total_timeout, &mut faults);
        let request = RequestPlan::compile(tool.method.as_str(), &tool.path, &tool.fields);
        let request = request
            .map_err(|errors| faults.extend(errors.into_iter().map(|error| error.to_string())))
            .ok();
        let response = ResponsePlan::compile(&tool.response_fields)
            .and_then(|plan| Ok((plan, mapping::output_schema(&tool.response_fields)?)))
            .map_err(|errors| {
                let told = errors.into_iter().map(|error| format!("response_fields: {error}"));
                faults.extend(told);
            })
            .ok();
        if let Some(connection) = connection {
            check_headers(tool, connection, &mut faults);
        }
        let plans = (name, request, response, total_timeout);
        let (Some(name), Some(request), Some((response, output)), Some(total_timeout)) = plans
        else {
            return Err(faults);
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let Some(connection) = connection else { return Ok(None) };
        let text = ToolText {
            name: tool.name.as_str(),
            title: tool.title.as_deref(),
            description: &tool.description,
            input_schema: request.input_schema(),
            output_schema: output.as_ref(),
            hints: hints(tool.annotations, tool.method),
        };
        Ok(Some(Self {
            name,
            toolset: tool.toolset.clone(),
            title: tool.title.as_deref().map(Into::into),
            description: tool.description.as_str().into(),
            total_timeout: total_timeout.or(connection.total_timeout),
            has_output_schema: output.is_some(),
            fragments: text.fragments(),
            kind: ToolKind::Rest { connection: Arc::clone(connection), request, response },
        }))
    }

    /// Compiles one of the appliance's own tools.
    pub(super) fn builtin(tool: BuiltinTool, toolset: &ToolsetId) -> Option<Self> {
        let text = ToolText {
            name: tool.name(),
            title: Some(tool.title()),
            description: tool.description(),
            input_schema: &BuiltinTool::input_schema(),
            output_schema: Some(&tool.output_schema()),
            hints: Hints {
                title: None,
                read_only_hint: Some(true),
                destructive_hint: None,
                idempotent_hint: None,
                open_world_hint: Some(false),
            },
        };
        Some(Self {
            name: ToolName::new(tool.name()).ok()?,
            toolset: toolset.clone(),
            title: Some(tool.title().into()),
            description: tool.description().into(),
            total_timeout: None,
            has_output_schema: true,
            fragments: text.fragments(),
            kind: ToolKind::Builtin(tool),
        })
    }
}

/// A caller's argument must not get in the way of the connection's own headers: credentials.
fn check_headers(tool: &Tool, connection: &CompiledConnection, faults: &mut Vec<String>) {
    for rule in tool.fields.iter().filter(|rule| rule.location == Location::Header) {
        let name = rule.source_field_name.trim_end_matches("[*]");
        if connection.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name)) {
            faults.push(format!(
                "field {name} (header): the connection `{}` sets this header; remove one of them",
                connection.id
            ));
        }
    }
}

/// The value, or `None` with its fault noted.
fn noted<T>(result: Result<T, String>, faults: &mut Vec<String>) -> Option<T> {
    result.map_err(|fault| faults.push(fault)).ok()
}

/// What is said, else what HTTP says about the method: RFC 9110 section 9.2.
fn hints(said: Annotations, method: ToolMethod) -> Hints<'static> {
    let is_safe = matches!(method, ToolMethod::Get | ToolMethod::Head);
    let is_idempotent = matches!(method, ToolMethod::Put | ToolMethod::Delete);
    Hints {
        title: None,
        read_only_hint: said.read_only_hint.or(is_safe.then_some(true)),
        destructive_hint: said.destructive_hint,
        idempotent_hint: said.idempotent_hint.or(is_idempotent.then_some(true)),
        open_world_hint: said.open_world_hint,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Hints<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world_hint: Option<bool>,
}

/// Everything an entry of a list can say.
struct ToolText<'a> {
    name: &'a str,
    title: Option<&'a str>,
    description: &'a str,
    input_schema: &'a Value,
    output_schema: Option<&'a Value>,
    hints: Hints<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListEntry<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Hints<'a>>,
}

impl ToolText<'_> {
    fn fragments(&self) -> [Arc<[u8]>; SHAPES] {
        let oldest = self.entry(None, None, None);
        // Before tools had titles, annotations had.
        let titled = Hints { title: self.title, ..self.hints };
        let middle = shared(self.entry(None, None, Some(titled)), &oldest);
        let newest = self.entry(self.title, self.output_schema, Some(self.hints));
        let newest = shared(newest, &middle);
        [oldest, middle, newest]
    }

    fn entry(
        &self,
        title: Option<&str>,
        output_schema: Option<&Value>,
        annotations: Option<Hints<'_>>,
    ) -> Arc<[u8]> {
        let entry = ListEntry {
            name: self.name,
            title,
            description: self.description,
            input_schema: self.input_schema,
            output_schema,
            annotations: annotations.filter(|hints| *hints != Hints::default()),
        };
        // Text and JSON values only: there is nothing that could fail.
        Arc::from(serde_json::to_vec(&entry).unwrap_or_default())
    }
}

/// `bytes`, or the older ones where they are the same.
fn shared(bytes: Arc<[u8]>, older: &Arc<[u8]>) -> Arc<[u8]> {
    if bytes == *older { Arc::clone(older) } else { bytes }
}
