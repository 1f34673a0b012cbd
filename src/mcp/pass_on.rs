//! Requests that an upstream server has to answer: its resources, its prompts, its completions.

use std::sync::Arc;

use super::Method;
use super::refusal::{unknown_prompt, unknown_resource};
use crate::catalog::{UpstreamServer, View};
use crate::json::{self, Kind, OwnedRaw, Raw};
use crate::rpc::RpcError;

/// A request to be passed on.
#[derive(Clone, Debug)]
pub struct PassOn {
    /// What is asked.
    pub method: Method,
    /// Who is asked.
    pub server: Arc<UpstreamServer>,
    /// `params` without `_meta`, an object, with the names the server has.
    pub params: OwnedRaw,
}

impl PassOn {
    /// `resources/read` of a resource that an upstream has.
    pub(super) fn read(view: &View, uri: &str) -> Option<Self> {
        let server = Arc::clone(view.upstream_of_resource(uri)?);
        let params = object(|out| member(out, "uri", |out| json::write_string(out, uri)));
        Some(Self { method: Method::ResourcesRead, server, params })
    }

    /// `prompts/get` of a prompt that an upstream has.
    pub(super) fn prompt(view: &View, name: &str, params: Option<Raw<'_>>) -> Option<Self> {
        let prompt = view.upstream_prompt(name)?;
        let arguments = params.and_then(|params| params.get("arguments"));
        let params = object(|out| {
            member(out, "name", |out| json::write_string(out, &prompt.source_name));
            if let Some(arguments) = arguments.filter(|arguments| !arguments.is_null()) {
                member(out, "arguments", |out| raw(out, arguments));
            }
        });
        Some(Self { method: Method::PromptsGet, server: Arc::clone(&prompt.server), params })
    }

    /// `completion/complete` for what an upstream has; `None` for what is the runtime's own.
    ///
    /// # Errors
    /// It names nothing that is in the view, or is no such request.
    pub(super) fn complete(view: &View, params: Option<Raw<'_>>) -> Result<Option<Self>, RpcError> {
        const NEEDS: &str =
            "completion/complete needs `ref` and `argument` with `name` and `value`";
        let needs = || RpcError::invalid_params(NEEDS);
        let params = params.ok_or_else(needs)?;
        let (reference, argument) = (params.get("ref"), params.get("argument"));
        let (reference, argument) = reference.zip(argument).ok_or_else(needs)?;
        let is_text = |key| argument.get(key).and_then(Raw::as_str).is_some();
        if !(is_text("name") && is_text("value")) {
            return Err(needs());
        }
        let text = |key| reference.get(key).and_then(Raw::as_str);
        let (server, source) = match (text("type").as_deref(), text("name"), text("uri")) {
            (Some("ref/prompt"), Some(name), _) => match view.upstream_prompt(&name) {
                Some(prompt) => (Arc::clone(&prompt.server), Some(prompt.source_name.clone())),
                None if view.prompt(&name).is_some() => return Ok(None),
                None => return Err(unknown_prompt(&name)),
            },
            (Some("ref/resource"), _, Some(uri)) => {
                let server =
                    view.upstream_of_template(&uri).or_else(|| view.upstream_of_resource(&uri));
                match server {
                    Some(server) => (Arc::clone(server), None),
                    None if uri.starts_with("runtime://") => return Ok(None),
                    None => return Err(unknown_resource(&uri)),
                }
            }
            _ => return Err(needs()),
        };
        if !server.definitions.completes {
            return Ok(None);
        }
        let params = object(|out| {
            member(out, "ref", |out| match &source {
                Some(name) => {
                    out.extend_from_slice(b"{\"type\":\"ref/prompt\",\"name\":");
                    json::write_string(out, name);
                    out.push(b'}');
                }
                None => raw(out, reference),
            });
            member(out, "argument", |out| raw(out, argument));
            let context = params.get("context").filter(|context| context.kind() == Kind::Object);
            if let Some(context) = context {
                member(out, "context", |out| raw(out, context));
            }
        });
        Ok(Some(Self { method: Method::Complete, server, params }))
    }
}

/// The answer of what has nothing to complete with.
pub(super) const NOTHING_TO_COMPLETE: &[u8] =
    br#"{"completion":{"values":[],"total":0,"hasMore":false}}"#;

fn object(write: impl FnOnce(&mut Vec<u8>)) -> OwnedRaw {
    let mut out = vec![b'{'];
    write(&mut out);
    out.push(b'}');
    // Of values that were checked, and never too deep by one level more.
    OwnedRaw::parse(&out).unwrap_or_else(|_| OwnedRaw::empty_object())
}

fn member(out: &mut Vec<u8>, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
    if out.len() > 1 {
        out.push(b',');
    }
    json::write_string(out, key);
    out.push(b':');
    write(out);
}

fn raw(out: &mut Vec<u8>, value: Raw<'_>) {
    out.extend_from_slice(value.text().as_bytes());
}
