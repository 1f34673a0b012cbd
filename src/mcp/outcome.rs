//! The outcome of a tool in the form of each revision.

use super::Revision;
use crate::json;
use crate::rpc::{ResultBody, RpcError};

/// What a tool's run came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ToolOutcome {
    /// It worked.
    Success {
        /// The result as JSON text, where it has one.
        structured_json: Option<Vec<u8>>,
        /// The result as text; the JSON itself where there is none.
        text: Option<String>,
    },
    /// It did not; the text says why, for the model to read.
    Failure {
        /// What happened and what to do.
        text: String,
    },
    /// It was not run: the arguments do not fit its schema.
    InvalidArguments {
        /// Which, and why.
        text: String,
    },
}

/// What a result says of itself, besides what it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Supplement {
    /// For the model: texts of their own behind the result.
    pub notes: Vec<Box<str>>,
    /// For programs: the object of `_meta`, as JSON.
    pub meta: Option<Vec<u8>>,
}

impl Supplement {
    /// Nothing.
    pub const NONE: Self = Self { notes: Vec::new(), meta: None };
}

impl ToolOutcome {
    /// The same outcome with structured content, which a tool with an output schema owes its
    /// clients even where the API answered in plain text or with nothing.
    pub fn structured(self) -> Self {
        match self {
            Self::Success { structured_json: None, text } => {
                let mut json = b"{\"result\":".to_vec();
                json::write_string(&mut json, text.as_deref().unwrap_or_default());
                json.push(b'}');
                Self::Success { structured_json: Some(json), text }
            }
            other => other,
        }
    }
}

/// The answer to `tools/call`.
///
/// Arguments that do not fit are a result for the model from 2025-11-25 on, and a protocol error
/// before. Structured content exists from 2025-06-18 on and is an object: anything else is wrapped
/// as `{"result": …}`. It never goes with an error.
pub fn tool_result(
    outcome: &ToolOutcome,
    supplement: &Supplement,
    revision: Revision,
) -> Result<ResultBody, RpcError> {
    match outcome {
        ToolOutcome::Success { structured_json, text } => {
            Ok(success(structured_json.as_deref(), text.as_deref(), supplement, revision))
        }
        ToolOutcome::Failure { text } => Ok(failure(text, supplement)),
        ToolOutcome::InvalidArguments { text } if revision >= Revision::V20251125 => {
            Ok(failure(text, supplement))
        }
        ToolOutcome::InvalidArguments { text } => Err(RpcError::invalid_params(text.clone())),
    }
}

fn success(
    structured: Option<&[u8]>,
    text: Option<&str>,
    supplement: &Supplement,
    revision: Revision,
) -> ResultBody {
    let structured = structured.map(String::from_utf8_lossy);
    let structured = structured.as_deref().map(str::trim_ascii).filter(|json| !json.is_empty());
    let text = text.or(structured);
    let structured = structured.filter(|_| revision >= Revision::V20250618);
    let bytes = structured.map_or(0, str::len) + text.map_or(0, |text| text.len() * 5 / 4);
    let mut out = Vec::with_capacity(bytes + 96);
    content(&mut out, text, supplement);
    if let Some(structured) = structured {
        out.extend_from_slice(b",\"structuredContent\":");
        let is_object = structured.starts_with('{');
        if !is_object {
            out.extend_from_slice(b"{\"result\":");
        }
        out.extend_from_slice(structured.as_bytes());
        if !is_object {
            out.push(b'}');
        }
    }
    // Said either way: some clients of 2024-11-05 miss it otherwise.
    out.extend_from_slice(b",\"isError\":false");
    meta(&mut out, supplement);
    out.push(b'}');
    ResultBody::Owned(out)
}

fn failure(text: &str, supplement: &Supplement) -> ResultBody {
    let mut out = Vec::with_capacity(text.len() * 5 / 4 + 80);
    content(&mut out, Some(text), supplement);
    out.extend_from_slice(b",\"isError\":true");
    meta(&mut out, supplement);
    out.push(b'}');
    ResultBody::Owned(out)
}

/// `{"content":[…]`, left open.
fn content(out: &mut Vec<u8>, text: Option<&str>, supplement: &Supplement) {
    out.extend_from_slice(b"{\"content\":[");
    let notes = supplement.notes.iter().map(|note| &**note);
    for (index, text) in text.into_iter().chain(notes).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
        json::write_string(out, text);
        out.push(b'}');
    }
    out.push(b']');
}

/// The member `_meta`, where there is one.
pub(super) fn meta(out: &mut Vec<u8>, supplement: &Supplement) {
    if let Some(meta) = &supplement.meta {
        out.extend_from_slice(b",\"_meta\":");
        out.extend_from_slice(meta);
    }
}
