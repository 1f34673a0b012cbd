//! Requests that an upstream server has to answer: its resources, its prompts, its completions.

use std::sync::Arc;

use super::Method;
use crate::catalog::{UpstreamServer, View};
use crate::json::{self, Kind, OwnedRaw, Raw};

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
    /// `resources/subscribe` or `resources/unsubscribe`.
    pub fn subscription(server: &Arc<UpstreamServer>, uri: &str, is_wanted: bool) -> Self {
        let method = if is_wanted { Method::Subscribe } else { Method::Unsubscribe };
        Self { method, server: Arc::clone(server), params: Self::uri_params(uri) }
    }

    /// `params` that name a resource.
    pub fn uri_params(uri: &str) -> OwnedRaw {
        object(|out| member(out, "uri", |out| json::write_string(out, uri)))
    }

    /// `resources/read` of a resource that an upstream has.
    pub(super) fn read(view: &View, uri: &str) -> Option<Self> {
        let server = Arc::clone(view.upstream_of_resource(uri)?);
        Some(Self { method: Method::ResourcesRead, server, params: Self::uri_params(uri) })
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

    /// `completion/complete` for what an upstream has; `None` for what is the runtime's own, and for
    /// what is no such request.
    pub(super) fn complete(view: &View, params: Option<Raw<'_>>) -> Option<Self> {
        let (reference, argument) = (params?.get("ref")?, params?.get("argument")?);
        let is_text = |key| argument.get(key).and_then(Raw::as_str).is_some();
        let text = |key| reference.get(key).and_then(Raw::as_str);
        let (server, source) = if &*text("type")? == "ref/prompt" {
            let prompt = view.upstream_prompt(&text("name")?)?;
            (Arc::clone(&prompt.server), Some(prompt.source_name.clone()))
        } else {
            let uri = text("uri")?;
            let of_template = view.upstream_of_template(&uri);
            (Arc::clone(of_template.or_else(|| view.upstream_of_resource(&uri))?), None)
        };
        if !(server.definitions.completes && is_text("name") && is_text("value")) {
            return None;
        }
        let passed = object(|out| {
            member(out, "ref", |out| match &source {
                Some(name) => {
                    out.extend_from_slice(b"{\"type\":\"ref/prompt\",\"name\":");
                    json::write_string(out, name);
                    out.push(b'}');
                }
                None => raw(out, reference),
            });
            member(out, "argument", |out| raw(out, argument));
            let context = params.and_then(|params| params.get("context"));
            let context = context.filter(|context| context.kind() == Kind::Object);
            if let Some(context) = context {
                member(out, "context", |out| raw(out, context));
            }
        });
        Some(Self { method: Method::Complete, server, params: passed })
    }
}

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
