//! `completion/complete`: what an argument could be, while it is written.
//!
//! The runtime's own prompts have no arguments. Of its templates, that of tools' schemas can be
//! completed: the names of tools are no secret to who lists them.

use std::borrow::Cow;

use super::Revision;
use super::refusal::{unknown_prompt, unknown_resource};
use super::resources::{KEPT_TEMPLATE, SCHEMA_TEMPLATE};
use crate::catalog::View;
use crate::json::{self, Kind, Raw};
use crate::rpc::{ResultBody, RpcError};

/// Most values of one answer (MCP, completion).
const VALUES_MAX: usize = 100;

const NOTHING: &[u8] = br#"{"completion":{"values":[],"total":0,"hasMore":false}}"#;

/// Whether clients of a revision can have arguments completed: up to 2025-11-25 a server that has
/// only its own prompts does not offer it.
pub(super) fn is_offered(view: &View, revision: Revision) -> bool {
    let completes = || view.upstreams().iter().any(|server| server.definitions.completes);
    revision.is_modern() || (revision >= Revision::V20250326 && completes())
}

/// The result for what is the runtime's own.
pub(super) fn complete(view: &View, params: Option<Raw<'_>>) -> Result<ResultBody, RpcError> {
    let member = |key: &str| {
        let value = params.and_then(|params| params.get(key));
        value.filter(|value| value.kind() == Kind::Object)
    };
    let (reference, argument) = (member("ref"), member("argument"));
    let (Some(kind), Some(name), Some(value)) =
        (text(reference, "type"), text(argument, "name"), text(argument, "value"))
    else {
        return Err(RpcError::invalid_params(
            "completion/complete needs `ref` with `type`, and `argument` with `name` and `value`",
        ));
    };
    match &*kind {
        "ref/prompt" => {
            let prompt = text(reference, "name").unwrap_or_default();
            let is_known =
                view.prompt(&prompt).is_some() || view.upstream_prompt(&prompt).is_some();
            is_known.then_some(ResultBody::Static(NOTHING)).ok_or_else(|| unknown_prompt(&prompt))
        }
        "ref/resource" => {
            let uri = text(reference, "uri").unwrap_or_default();
            let has_tools = !view.tools().is_empty();
            match &*uri {
                SCHEMA_TEMPLATE if has_tools && name == "name" => Ok(tool_names(view, &value)),
                SCHEMA_TEMPLATE | KEPT_TEMPLATE if has_tools => Ok(ResultBody::Static(NOTHING)),
                // A resource without a template is complete.
                uri if view.prompts().iter().any(|prompt| *prompt.uri == *uri) => {
                    Ok(ResultBody::Static(NOTHING))
                }
                uri if view.upstream_of_template(uri).is_some() => Ok(ResultBody::Static(NOTHING)),
                uri if view.upstream_of_resource(uri).is_some() => Ok(ResultBody::Static(NOTHING)),
                uri => Err(unknown_resource(uri)),
            }
        }
        _ => Err(RpcError::invalid_params("`ref.type` must be `ref/prompt` or `ref/resource`")),
    }
}

fn text<'a>(of: Option<Raw<'a>>, key: &str) -> Option<Cow<'a, str>> {
    of.and_then(|of| of.get(key)).and_then(Raw::as_str)
}

/// Names of tools that begin as `value` does. They are in order, so those stand together.
fn tool_names(view: &View, value: &str) -> ResultBody {
    let tools = view.tools();
    let from = tools.partition_point(|tool| tool.name.as_str() < value);
    let fitting = tools.get(from..).unwrap_or_default();
    let count = fitting.partition_point(|tool| tool.name.as_str().starts_with(value));
    let mut out = b"{\"completion\":{\"values\":[".to_vec();
    for (index, tool) in fitting.iter().take(count.min(VALUES_MAX)).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write_string(&mut out, tool.name.as_str());
    }
    let has_more = count > VALUES_MAX;
    out.extend_from_slice(format!("],\"total\":{count},\"hasMore\":{has_more}}}}}").as_bytes());
    ResultBody::Owned(out)
}
