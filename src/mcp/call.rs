//! Reading `tools/call` and `notifications/cancelled`.

use std::sync::Arc;

use super::refusal::unknown_tool;
use crate::catalog::{View, ViewTool};
use crate::json::{Kind, Raw};
use crate::rpc::{Id, RpcError};

/// A tool to be run.
#[derive(Clone, Debug)]
pub struct Invocation<'a> {
    /// The tool.
    pub tool: Arc<ViewTool>,
    /// Its arguments: an object. `None` stands for an empty one (they were absent or `null`).
    pub arguments: Option<Raw<'a>>,
    /// Under what the client wants to hear of progress.
    pub progress_token: Option<Raw<'a>>,
}

impl<'a> Invocation<'a> {
    pub(super) fn read(view: &View, params: Option<Raw<'a>>) -> Result<Self, RpcError> {
        let (mut name, mut arguments, mut meta) = (None, None, None);
        for (key, value) in params.iter().flat_map(|params| params.entries()) {
            match &*key {
                "name" => name = value.as_str(),
                "arguments" => arguments = Some(value),
                "_meta" => meta = Some(value),
                _ => {}
            }
        }
        let Some(name) = name else {
            return Err(RpcError::invalid_params("tools/call needs `name`, a string"));
        };
        let tool = view.tool(&name).ok_or_else(|| unknown_tool(&name))?;
        let arguments = match arguments.map(|arguments| (arguments, arguments.kind())) {
            None | Some((_, Kind::Null)) => None,
            Some((arguments, Kind::Object)) => Some(arguments),
            Some((_, kind)) => {
                let kind = kind.described();
                let message = format!("`arguments` must be an object, not {kind}");
                return Err(RpcError::invalid_params(message));
            }
        };
        let progress_token = meta.and_then(token);
        Ok(Self { tool: Arc::clone(tool), arguments, progress_token })
    }
}

/// The progress token of a request's parameters, as it was written: a string or an integer.
pub fn progress_token(params: Option<Raw<'_>>) -> Option<Raw<'_>> {
    params?.get("_meta").and_then(token)
}

/// The id of the request to be cancelled.
pub(super) fn cancelled(params: Option<Raw<'_>>) -> Option<Id<'_>> {
    params?.get("requestId").and_then(Id::of)
}

/// A token is a string or an integer, as an id is.
fn token(meta: Raw<'_>) -> Option<Raw<'_>> {
    meta.get("progressToken").filter(|token| Id::of(*token).is_some())
}
