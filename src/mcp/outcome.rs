//! The outcome of a tool in the form of each revision.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Revision;
use super::relayed::{self, Relayed};
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
    /// It worked, and what came is neither JSON nor text.
    File(Box<File>),
    /// An upstream server answered, well or not.
    Relayed(Arc<Relayed>),
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

/// A result that is a file: a picture, a recording, a document.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct File {
    /// Its media type, without parameters.
    pub media_type: String,
    /// Exactly as they came.
    pub bytes: Arc<[u8]>,
    /// The resource it is kept as, where it is.
    pub kept_at: Option<KeptAt>,
    /// It says what it is in structured content too, which a tool with an output schema owes its
    /// clients.
    pub is_described: bool,
}

/// Where a file is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptAt {
    /// The URI of the resource.
    pub uri: String,
    /// The file is too large to stand in the result itself.
    pub is_link: bool,
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
            Self::File(mut file) => {
                file.is_described = true;
                Self::File(file)
            }
            other => other,
        }
    }
}

/// The answer to `tools/call`.
///
/// Arguments that do not fit are a result for the model from 2025-11-25 on, and a protocol error
/// before. Structured content exists from 2025-06-18 on and is an object up to 2025-11-25, and where
/// the tool `owes_object`: anything else is wrapped as `{"result": …}` then. It never goes with an
/// error.
pub fn tool_result(
    outcome: &ToolOutcome,
    supplement: &Supplement,
    revision: Revision,
    owes_object: bool,
) -> Result<ResultBody, RpcError> {
    match outcome {
        ToolOutcome::Success { structured_json, text } => {
            let form = (revision, owes_object || !revision.is_modern());
            Ok(success(structured_json.as_deref(), text.as_deref(), supplement, form))
        }
        ToolOutcome::File(file) => Ok(file_result(file, supplement, revision)),
        ToolOutcome::Relayed(result) => Ok(relayed::tool_result(result, supplement, revision)),
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
    (revision, is_wrapped): (Revision, bool),
) -> ResultBody {
    let structured = structured.map(String::from_utf8_lossy);
    let structured = structured.as_deref().map(str::trim_ascii).filter(|json| !json.is_empty());
    let text = text.or(structured);
    let structured = structured.filter(|_| revision >= Revision::V20250618);
    let bytes = structured.map_or(0, str::len) + text.map_or(0, |text| text.len() * 5 / 4);
    // Its ending has room too.
    let mut out = Vec::with_capacity(bytes + if revision.is_modern() { 288 } else { 96 });
    content(&mut out, text, supplement);
    if let Some(structured) = structured {
        out.extend_from_slice(b",\"structuredContent\":");
        let is_object = !is_wrapped || structured.starts_with('{');
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

/// A file as the block its media type and the revision have for it: recordings are known from
/// 2025-03-26 on, links from 2025-06-18 on.
fn file_result(file: &File, supplement: &Supplement, revision: Revision) -> ResultBody {
    let File { media_type, bytes, kept_at, is_described } = file;
    let link = kept_at.as_ref().filter(|kept| kept.is_link);
    let size = if link.is_some() { 0 } else { bytes.len() };
    let mut out = Vec::with_capacity(size * 4 / 3 + 512);
    out.extend_from_slice(b"{\"content\":[");
    match (link, media_type.split_once('/').map(|(kind, _)| kind)) {
        (Some(kept), _) if revision >= Revision::V20250618 => {
            out.extend_from_slice(b"{\"type\":\"resource_link\",\"uri\":");
            json::write_string(&mut out, &kept.uri);
            out.extend_from_slice(b",\"name\":\"result\",\"mimeType\":");
            json::write_string(&mut out, media_type);
            out.extend_from_slice(format!(",\"size\":{}}}", bytes.len()).as_bytes());
        }
        (Some(kept), _) => {
            let size = bytes.len();
            let told = format!("{size} bytes of {media_type}: read the resource {}", kept.uri);
            text_block(&mut out, &told);
        }
        (None, Some("image")) => data_block(&mut out, "image", file),
        (None, Some("audio")) if revision >= Revision::V20250326 => {
            data_block(&mut out, "audio", file);
        }
        (None, _) => {
            let uri = kept_at.as_ref().map_or(NOT_KEPT, |kept| &*kept.uri);
            out.extend_from_slice(b"{\"type\":\"resource\",\"resource\":");
            write_blob(&mut out, uri, file);
            out.push(b'}');
        }
    }
    let notes = supplement.notes.iter().map(|note| &**note);
    for note in notes {
        out.push(b',');
        text_block(&mut out, note);
    }
    out.push(b']');
    if *is_described && revision >= Revision::V20250618 {
        out.extend_from_slice(b",\"structuredContent\":{\"result\":");
        json::write_string(&mut out, &format!("{} bytes of {media_type}", bytes.len()));
        out.push(b'}');
    }
    out.extend_from_slice(b",\"isError\":false");
    meta(&mut out, supplement);
    out.push(b'}');
    ResultBody::Owned(out)
}

/// The URI of a resource that stands in a result and nowhere else.
const NOT_KEPT: &str = "runtime://results/not-kept";

fn data_block(out: &mut Vec<u8>, kind: &str, file: &File) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"mimeType\":");
    json::write_string(out, &file.media_type);
    out.extend_from_slice(b",\"data\":");
    write_base64(out, &file.bytes);
    out.push(b'}');
}

/// The contents of a resource that is a file.
pub(super) fn write_blob(out: &mut Vec<u8>, uri: &str, file: &File) {
    out.extend_from_slice(b"{\"uri\":");
    json::write_string(out, uri);
    out.extend_from_slice(b",\"mimeType\":");
    json::write_string(out, &file.media_type);
    out.extend_from_slice(b",\"blob\":");
    write_base64(out, &file.bytes);
    out.push(b'}');
}

/// Base64 as a JSON string: none of its characters has to be escaped.
fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let from = out.len();
    out.resize(from + bytes.len().div_ceil(3) * 4, 0);
    // The room is exactly what it takes.
    let written = STANDARD.encode_slice(bytes, &mut out[from..]).unwrap_or(0);
    out.truncate(from + written);
    out.push(b'"');
}

fn text_block(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    json::write_string(out, text);
    out.push(b'}');
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
        text_block(out, text);
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
