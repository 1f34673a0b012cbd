//! Resources and prompts: texts of the view under a URI or a name.
//!
//! ```text
//! runtime://toolsets/{id}/system-prompt   what to know about a toolset; also the prompt of that name
//! runtime://tools/{name}/schema           the full schemas of a visible tool
//! runtime://results/{id}                  the rest of a result that was cut
//! ```

use crate::catalog::{EffectivePrompt, PROMPT_MIME_TYPE, View};
use crate::json;
use crate::rpc::ResultBody;

use super::{File, Supplement, meta_tool, outcome};

/// What URIs of the rest of results begin with.
pub const KEPT_RESULTS: &str = "runtime://results/";
/// The templates that everybody has who has tools.
pub(super) const SCHEMA_TEMPLATE: &str = "runtime://tools/{name}/schema";
pub(super) const KEPT_TEMPLATE: &str = "runtime://results/{id}";
const TOOLS: &str = "runtime://tools/";
const SCHEMA: &str = "/schema";

/// What a resource that holds JSON says it is.
pub(super) const JSON_MIME_TYPE: &str = "application/json";
/// And one that holds a note about another.
const NOTE_MIME_TYPE: &str = "text/plain";

/// What is under a URI.
pub(super) enum Found {
    /// A finished result.
    Text(ResultBody),
    /// Perhaps the rest of a result; whoever keeps those knows.
    Kept,
}

/// Looks a URI up, exactly as it is written: URIs of one's own list need no normal form.
pub(super) fn read(view: &View, uri: &str) -> Option<Found> {
    if uri.starts_with(KEPT_RESULTS) {
        return Some(Found::Kept);
    }
    if let Some(name) = uri.strip_prefix(TOOLS).and_then(|rest| rest.strip_suffix(SCHEMA)) {
        let tool = view.tool(name)?;
        let schemas = meta_tool::schemas(tool);
        let text = String::from_utf8_lossy(&schemas);
        return Some(Found::Text(text_resource(uri, JSON_MIME_TYPE, &text)));
    }
    let prompt = view.prompts().iter().find(|prompt| *prompt.uri == *uri)?;
    Some(Found::Text(text_resource(uri, PROMPT_MIME_TYPE, &prompt.text)))
}

/// The result of `resources/read` for a text.
fn text_resource(uri: &str, mime_type: &str, text: &str) -> ResultBody {
    resource(uri, mime_type, text, &Supplement::NONE)
}

/// The result of `resources/read` for a JSON document, with notes behind it.
pub fn json_resource(uri: &str, json: &[u8], supplement: &Supplement) -> ResultBody {
    resource(uri, JSON_MIME_TYPE, &String::from_utf8_lossy(json), supplement)
}

/// The result of `resources/read` for a file.
pub fn blob_resource(uri: &str, file: &File) -> ResultBody {
    let mut out = Vec::with_capacity(file.bytes.len() * 4 / 3 + uri.len() + 128);
    out.extend_from_slice(b"{\"contents\":[");
    outcome::write_blob(&mut out, uri, file);
    out.extend_from_slice(b"]}");
    ResultBody::Owned(out)
}

fn resource(uri: &str, mime_type: &str, text: &str, supplement: &Supplement) -> ResultBody {
    let mut out = Vec::with_capacity(text.len() * 5 / 4 + uri.len() + 160);
    out.extend_from_slice(b"{\"contents\":[");
    let notes = supplement.notes.iter().map(|note| (NOTE_MIME_TYPE, &**note));
    for (index, (mime_type, text)) in std::iter::once((mime_type, text)).chain(notes).enumerate() {
        out.extend_from_slice(if index > 0 { b",{\"uri\":" } else { b"{\"uri\":" });
        json::write_string(&mut out, uri);
        out.extend_from_slice(b",\"mimeType\":");
        json::write_string(&mut out, mime_type);
        out.extend_from_slice(b",\"text\":");
        json::write_string(&mut out, text);
        out.push(b'}');
    }
    out.push(b']');
    outcome::meta(&mut out, supplement);
    out.push(b'}');
    ResultBody::Owned(out)
}

/// The result of `prompts/get`.
pub(super) fn messages(prompt: &EffectivePrompt) -> ResultBody {
    let mut out = Vec::with_capacity(prompt.text.len() * 5 / 4 + 128);
    out.push(b'{');
    if let Some(description) = &prompt.description {
        out.extend_from_slice(b"\"description\":");
        json::write_string(&mut out, description);
        out.push(b',');
    }
    out.extend_from_slice(
        b"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":",
    );
    json::write_string(&mut out, &prompt.text);
    out.extend_from_slice(b"}}]}");
    ResultBody::Owned(out)
}
