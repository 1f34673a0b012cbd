//! Results of upstream servers in the form of each revision.
//!
//! What a server answered goes on as it came, but for what the client's revision does not have: that
//! is left out, or said in words where something would be lost. Nothing is added that was not said.

use super::Revision;
use crate::json::{self, Kind, OwnedRaw, Raw};
use crate::rpc::{ResultBody, RpcError, code};

use super::outcome::Supplement;

/// A result of `tools/call` as its server gave it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relayed {
    /// The result, an object.
    pub result: OwnedRaw,
    /// It tells of a failure.
    pub is_error: bool,
}

impl Relayed {
    /// Reads a result.
    pub fn read(result: OwnedRaw) -> Self {
        let is_error = result.as_raw().get("isError").and_then(Raw::as_bool) == Some(true);
        Self { result, is_error }
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.result.as_raw().text().len()
    }

    /// Whether it has none, which no result has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its structured content, where that is JSON of any kind but `null`.
    pub fn structured(&self) -> Option<Raw<'_>> {
        self.result.as_raw().get("structuredContent").filter(|content| !content.is_null())
    }

    /// Its `_meta`, where it has one, with `ours` over it.
    pub fn meta(&self, ours: Option<&[u8]>) -> Option<Vec<u8>> {
        meta_of(self.result.as_raw(), ours)
    }

    /// All its content where that is text; `None` where anything is not.
    pub fn text(&self) -> Option<String> {
        let content = self.result.as_raw().get("content")?;
        let mut texts = Vec::new();
        for block in content.items() {
            let is_text = block.get("type").and_then(Raw::as_str).as_deref() == Some("text");
            texts.push(block.get("text").and_then(Raw::as_str).filter(|_| is_text)?);
        }
        Some(texts.join("\n"))
    }
}

/// The members of results that only newer revisions have, or that are between two neighbours.
const OF_ONE_HOP: [&str; 4] = ["resultType", "ttlMs", "cacheScope", "requestState"];
/// What a server says of itself in results: the client talks to this server, not to that one.
const SERVER_META: &str = "io.modelcontextprotocol/serverInfo";

/// The answer to `tools/call`.
pub(super) fn tool_result(
    relayed: &Relayed,
    supplement: &Supplement,
    revision: Revision,
) -> ResultBody {
    let result = relayed.result.as_raw();
    let mut out = Vec::with_capacity(result.text().len() + 64);
    let structured = relayed.structured();
    out.extend_from_slice(b"{\"content\":[");
    let mut separator: &[u8] = b"";
    let mut has_content = false;
    for block in result.get("content").into_iter().flat_map(Raw::items) {
        out.extend_from_slice(separator);
        write_block(&mut out, block, revision);
        (separator, has_content) = (b",", true);
    }
    // Clients of revisions without structured content would see nothing.
    if let Some(structured) = structured.filter(|_| !has_content) {
        out.extend_from_slice(separator);
        write_text(&mut out, structured.text());
        separator = b",";
    }
    for note in &supplement.notes {
        out.extend_from_slice(separator);
        write_text(&mut out, note);
        separator = b",";
    }
    out.push(b']');
    if let Some(structured) = structured.filter(|_| revision >= Revision::V20250618) {
        out.extend_from_slice(b",\"structuredContent\":");
        // Before 2026-07-28 it is an object.
        let is_plain = structured.kind() == Kind::Object || revision.is_modern();
        if !is_plain {
            out.extend_from_slice(b"{\"result\":");
        }
        out.extend_from_slice(structured.text().as_bytes());
        if !is_plain {
            out.push(b'}');
        }
    }
    out.extend_from_slice(if relayed.is_error {
        b",\"isError\":true"
    } else {
        b",\"isError\":false"
    });
    // In the newest revision it stands with what every result says; see `Relayed::meta`.
    if !revision.is_modern() {
        write_meta(&mut out, b",\"_meta\":{", result.get("_meta"), supplement.meta.as_deref());
    }
    for (key, value) in result.entries() {
        if !matches!(&*key, "content" | "structuredContent" | "isError" | "_meta") {
            write_other(&mut out, &key, value);
        }
    }
    out.push(b'}');
    ResultBody::Owned(out)
}

fn meta_of(result: Raw<'_>, ours: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    write_meta(&mut out, b"{", result.get("_meta"), ours);
    (!out.is_empty()).then_some(out)
}

/// The answer to any other request that an upstream answered, and its `_meta` where the revision has
/// that with what every result says.
pub fn relayed_result(result: Raw<'_>, revision: Revision) -> (ResultBody, Option<Vec<u8>>) {
    let mut out = Vec::with_capacity(result.text().len() + 16);
    out.push(b'{');
    for (key, value) in result.entries() {
        if OF_ONE_HOP.contains(&&*key) || (&*key == "_meta" && revision.is_modern()) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        match &*key {
            "_meta" => {
                json::write_string(&mut out, &key);
                out.push(b':');
                write_members(&mut out, value, |key| key != SERVER_META);
            }
            "messages" => {
                out.extend_from_slice(b"\"messages\":[");
                for (index, message) in value.items().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_message(&mut out, message, revision);
                }
                out.push(b']');
            }
            _ => {
                json::write_string(&mut out, &key);
                out.push(b':');
                out.extend_from_slice(value.text().as_bytes());
            }
        }
    }
    out.push(b'}');
    let meta = if revision.is_modern() { meta_of(result, None) } else { None };
    (ResultBody::Owned(out), meta)
}

/// An upstream's error as the client's revision has it. `is_read` tells that it is the answer to
/// `resources/read`.
pub fn relayed_error(mut error: RpcError, is_read: bool, revision: Revision) -> RpcError {
    error.code = match error.code {
        code::RESOURCE_NOT_FOUND if revision.is_modern() => code::INVALID_PARAMS,
        code::INVALID_PARAMS if is_read && !revision.is_modern() => code::RESOURCE_NOT_FOUND,
        // Told of the way to the upstream, and no business of the client's: it would take them for
        // told of its own request.
        code::PARSE_ERROR | code::INVALID_REQUEST => code::INTERNAL_ERROR,
        code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION => {
            error.data = None;
            code::INTERNAL_ERROR
        }
        code::MISSING_CAPABILITY if !revision.is_modern() => code::SERVER,
        URL_ELICITATION_REQUIRED if revision != Revision::V20251125 => code::SERVER,
        other => other,
    };
    error
}

/// The user must visit a page first; `data.elicitations` says which (MCP 2025-11-25, elicitation).
const URL_ELICITATION_REQUIRED: i32 = -32042;

/// A block of content. Recordings are known from 2025-03-26 on, links from 2025-06-18 on.
fn write_block(out: &mut Vec<u8>, block: Raw<'_>, revision: Revision) {
    let text = |key: &str| block.get(key).and_then(Raw::as_str).unwrap_or_default();
    match &*text("type") {
        "audio" if revision < Revision::V20250326 => {
            write_text(out, &format!("[a recording: {}]", text("mimeType")));
        }
        "resource_link" if revision < Revision::V20250618 => {
            write_text(out, &format!("{}: read the resource {}", text("name"), text("uri")));
        }
        _ => out.extend_from_slice(block.text().as_bytes()),
    }
}

fn write_message(out: &mut Vec<u8>, message: Raw<'_>, revision: Revision) {
    out.push(b'{');
    for (index, (key, value)) in message.entries().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write_string(out, &key);
        out.push(b':');
        if &*key == "content" && value.kind() == Kind::Object {
            write_block(out, value, revision);
        } else {
            out.extend_from_slice(value.text().as_bytes());
        }
    }
    out.push(b'}');
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    json::write_string(out, text);
    out.push(b'}');
}

/// `_meta` of the upstream's result and of ours together; what ours says holds.
fn write_meta(out: &mut Vec<u8>, opening: &[u8], theirs: Option<Raw<'_>>, ours: Option<&[u8]>) {
    let guarded = ours.and_then(|meta| json::guard(meta).ok());
    let ours = guarded.as_ref().map(|meta| meta.root());
    let theirs = theirs.into_iter().flat_map(Raw::entries).filter(|(key, _)| {
        **key != *SERVER_META && ours.is_none_or(|ours| ours.get(key).is_none())
    });
    let ours = ours.into_iter().flat_map(Raw::entries);
    let mut is_open = false;
    for (key, value) in theirs.chain(ours) {
        out.extend_from_slice(if is_open { b"," } else { opening });
        is_open = true;
        json::write_string(out, &key);
        out.push(b':');
        out.extend_from_slice(value.text().as_bytes());
    }
    if is_open {
        out.push(b'}');
    }
}

fn write_other(out: &mut Vec<u8>, key: &str, value: Raw<'_>) {
    if OF_ONE_HOP.contains(&key) {
        return;
    }
    out.push(b',');
    json::write_string(out, key);
    out.push(b':');
    out.extend_from_slice(value.text().as_bytes());
}

/// The members of an object that are wanted.
fn write_members(out: &mut Vec<u8>, object: Raw<'_>, is_wanted: impl Fn(&str) -> bool) {
    out.push(b'{');
    let before = out.len();
    for (key, value) in object.entries().filter(|(key, _)| is_wanted(key)) {
        if out.len() > before {
            out.push(b',');
        }
        json::write_string(out, &key);
        out.push(b':');
        out.extend_from_slice(value.text().as_bytes());
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn raw(value: &Value) -> OwnedRaw {
        OwnedRaw::parse(value.to_string().as_bytes()).unwrap()
    }

    fn shaped(result: &Value, revision: Revision) -> Value {
        let relayed = Relayed::read(raw(result));
        let body = tool_result(&relayed, &Supplement::NONE, revision);
        serde_json::from_slice(&body.as_bytes()).unwrap()
    }

    #[test]
    fn each_revision_gets_what_it_knows() {
        let link = json!({"type": "resource_link", "uri": "a:b", "name": "paper"});
        let audio = json!({"type": "audio", "data": "", "mimeType": "audio/ogg"});
        let result = json!({
            "resultType": "complete", "content": [link, audio], "structuredContent": {"a": 1.50},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "x"}, "own/key": 1},
            "own": true
        });
        let newest = shaped(&result, Revision::V20251125);
        assert_eq!(newest["content"], json!([link, audio]));
        assert_eq!(newest["structuredContent"].to_string(), "{\"a\":1.5}");
        assert_eq!((&newest["_meta"], &newest["own"]), (&json!({"own/key": 1}), &json!(true)));
        assert!(newest.get("resultType").is_none() && newest["isError"] == json!(false));
        let middle = shaped(&result, Revision::V20250326);
        assert_eq!(middle["content"][0]["text"], json!("paper: read the resource a:b"));
        assert_eq!(middle["content"][1], audio);
        assert!(middle.get("structuredContent").is_none());
        let oldest = shaped(&result, Revision::V20241105);
        assert_eq!(oldest["content"][1]["text"], json!("[a recording: audio/ogg]"));
    }

    #[test]
    fn structured_content_is_an_object_where_it_must_be() {
        let result = json!({"content": [], "structuredContent": [1, 2]});
        for revision in [Revision::V20250618, Revision::V20251125] {
            let shaped = shaped(&result, revision);
            assert_eq!(shaped["structuredContent"], json!({"result": [1, 2]}));
            assert_eq!(shaped["content"][0]["text"], json!("[1,2]"));
        }
        assert_eq!(shaped(&result, Revision::V20260728)["structuredContent"], json!([1, 2]));
    }

    #[test]
    fn our_meta_stands_beside_theirs() {
        let relayed = Relayed::read(raw(&json!({"content": [], "_meta": {"a": 1, "b": 2}})));
        let supplement =
            Supplement { notes: vec!["cut".into()], meta: Some(b"{\"b\":3}".to_vec()) };
        let body = tool_result(&relayed, &supplement, Revision::V20251125);
        let shaped: Value = serde_json::from_slice(&body.as_bytes()).unwrap();
        assert_eq!(shaped["_meta"], json!({"a": 1, "b": 3}));
        assert_eq!(shaped["content"][0]["text"], json!("cut"));
    }

    #[test]
    fn other_results_lose_what_is_between_neighbours() {
        let result = json!({
            "ttlMs": 5, "cacheScope": "public", "resultType": "complete",
            "messages": [{"role": "user", "content":
                {"type": "resource_link", "uri": "a:b", "name": "paper"}}]
        });
        let (body, _) = relayed_result(raw(&result).as_raw(), Revision::V20241105);
        let shaped: Value = serde_json::from_slice(&body.as_bytes()).unwrap();
        let text = json!({"type": "text", "text": "paper: read the resource a:b"});
        assert_eq!(shaped, json!({"messages": [{"role": "user", "content": text}]}));
        let result = raw(&json!({"ttlMs": 5, "_meta": {"a": 1}}));
        let (body, meta) = relayed_result(result.as_raw(), Revision::V20260728);
        assert_eq!((&*body.as_bytes(), meta.as_deref()), (&b"{}"[..], Some(&b"{\"a\":1}"[..])));
    }

    #[test]
    fn codes_are_those_of_the_revision() {
        let coded = |code, is_read, revision| {
            relayed_error(RpcError::new(code, "no"), is_read, revision).code
        };
        assert_eq!(coded(-32002, true, Revision::V20260728), -32602);
        assert_eq!(coded(-32602, true, Revision::V20251125), -32002);
        assert_eq!(coded(-32602, false, Revision::V20251125), -32602);
        assert_eq!(coded(-32042, false, Revision::V20251125), -32042);
        assert_eq!(coded(-32042, false, Revision::V20250618), -32000);
        assert_eq!(coded(-32042, false, Revision::V20260728), -32000);
        assert_eq!(coded(-32021, false, Revision::V20260728), -32021);
        assert_eq!(coded(-32021, false, Revision::V20251125), -32000);
        for of_the_way in [-32020, -32022] {
            let error = RpcError::new(of_the_way, "no").with_data("{}");
            let told = relayed_error(error, false, Revision::V20260728);
            assert_eq!((told.code, told.data), (-32603, None));
        }
    }
}
