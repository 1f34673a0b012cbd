//! What is sent to a server: requests, notifications and answers, as each revision has them.

use super::CLIENT_NAME;
use crate::json::{OwnedRaw, Raw, write_string};
use crate::mcp::{AskOutcome, LogLevel};
use crate::rpc::{OwnedId, RpcError};
use crate::sessions::{ClientCapabilities, Revision};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Answers to what a server asked before, by the keys of the questions, and its state then.
pub type Continued<'a> = (&'a [(Box<str>, OwnedRaw)], Option<&'a str>);

/// What a request says besides its params.
#[derive(Debug, Clone, Copy)]
pub struct Meta<'a> {
    /// The revision that is spoken.
    pub revision: Revision,
    /// Whether progress is wanted. The token is the id of the request.
    pub wants_progress: bool,
    /// What the client can be asked. Said with each request from 2026-07-28 on.
    pub capabilities: ClientCapabilities,
    /// What of the log is wanted. Said with each request from 2026-07-28 on.
    pub log_level: Option<LogLevel>,
    /// Answers to what the server asked before, and its state (MCP 2026-07-28).
    pub continues: Option<Continued<'a>>,
}

impl Meta<'_> {
    /// A request of nobody's.
    pub fn plain(revision: Revision) -> Self {
        let capabilities = ClientCapabilities::NONE;
        Self { revision, wants_progress: false, capabilities, log_level: None, continues: None }
    }
}

/// Appends a request. `params` are an object; a `_meta` of theirs is left out.
pub fn write_request(out: &mut Vec<u8>, id: i64, method: &str, params: Raw<'_>, meta: &Meta<'_>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(itoa::Buffer::new().format(id).as_bytes());
    out.extend_from_slice(b",\"method\":");
    write_string(out, method);
    out.extend_from_slice(b",\"params\":{");
    let mut members = Members::new(out);
    for (key, value) in params.raw_entries().filter(|(key, _)| !is_ours(*key, meta)) {
        members.raw(key, value);
    }
    if let Some((responses, state)) = meta.continues {
        if !responses.is_empty() {
            let out = members.key("inputResponses");
            out.push(b'{');
            let mut answers = Members::new(out);
            for (key, answer) in responses {
                answers.key(key).extend_from_slice(answer.as_raw().text().as_bytes());
            }
            out.push(b'}');
        }
        if let Some(state) = state {
            write_string(members.key("requestState"), state);
        }
    }
    if meta.wants_progress || meta.revision.is_modern() {
        let out = members.key("_meta");
        write_meta(out, id, meta);
    }
    out.extend_from_slice(b"}}");
}

fn is_ours(key: Raw<'_>, meta: &Meta<'_>) -> bool {
    match key.as_str().as_deref() {
        Some("_meta") => true,
        Some("inputResponses" | "requestState") => meta.continues.is_some(),
        _ => false,
    }
}

/// MCP 2026-07-28, `_meta`.
fn write_meta(out: &mut Vec<u8>, id: i64, meta: &Meta<'_>) {
    out.push(b'{');
    let mut members = Members::new(out);
    if meta.wants_progress {
        let token = members.key("progressToken");
        token.extend_from_slice(itoa::Buffer::new().format(id).as_bytes());
    }
    if meta.revision.is_modern() {
        let version = members.key("io.modelcontextprotocol/protocolVersion");
        write_string(version, meta.revision.text());
        write_client_info(members.key("io.modelcontextprotocol/clientInfo"));
        let capabilities = members.key("io.modelcontextprotocol/clientCapabilities");
        write_capabilities(capabilities, meta.capabilities, meta.revision);
        if let Some(level) = meta.log_level {
            write_string(members.key("io.modelcontextprotocol/logLevel"), level.name());
        }
    }
    out.push(b'}');
}

fn write_client_info(out: &mut Vec<u8>) {
    out.push(b'{');
    let mut members = Members::new(out);
    write_string(members.key("name"), CLIENT_NAME);
    write_string(members.key("version"), VERSION);
    out.push(b'}');
}

/// Appends what a client can be asked, as that revision declares it.
pub fn write_capabilities(out: &mut Vec<u8>, capabilities: ClientCapabilities, revision: Revision) {
    let has = |capability| capabilities.contains(capability);
    out.push(b'{');
    let mut members = Members::new(out);
    if has(ClientCapabilities::ROOTS) {
        // Told of changes only where there are sessions to tell it in.
        let tells = has(ClientCapabilities::ROOTS_LIST_CHANGED) && !revision.is_modern();
        let text: &[u8] = if tells { b"{\"listChanged\":true}" } else { b"{}" };
        members.key("roots").extend_from_slice(text);
    }
    let named = |out: &mut Vec<u8>, parts: &[(&str, ClientCapabilities)]| {
        out.push(b'{');
        let mut members = Members::new(out);
        for (name, _) in parts.iter().filter(|(_, capability)| has(*capability)) {
            members.key(name).extend_from_slice(b"{}");
        }
        out.push(b'}');
    };
    if has(ClientCapabilities::SAMPLING) {
        let parts = [
            ("tools", ClientCapabilities::SAMPLING_TOOLS),
            ("context", ClientCapabilities::SAMPLING_CONTEXT),
        ];
        named(members.key("sampling"), &parts);
    }
    let (form, url) = (ClientCapabilities::ELICITATION_FORM, ClientCapabilities::ELICITATION_URL);
    if has(url) {
        named(members.key("elicitation"), &[("form", form), ("url", url)]);
    } else if has(form) {
        // Empty means by form, in every revision.
        members.key("elicitation").extend_from_slice(b"{}");
    }
    out.push(b'}');
}

/// Appends `initialize`.
pub fn write_initialize(
    out: &mut Vec<u8>,
    id: i64,
    revision: Revision,
    capabilities: ClientCapabilities,
) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(itoa::Buffer::new().format(id).as_bytes());
    out.extend_from_slice(b",\"method\":\"initialize\",\"params\":{");
    let mut members = Members::new(out);
    write_string(members.key("protocolVersion"), revision.text());
    write_capabilities(members.key("capabilities"), capabilities, revision);
    write_client_info(members.key("clientInfo"));
    out.extend_from_slice(b"}}");
}

/// Appends a notification.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: Option<Raw<'_>>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    write_string(out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.text().as_bytes());
    }
    out.push(b'}');
}

/// Appends the answer to a question of the server. A question nobody hears is answered like one of
/// a client that cannot be asked.
pub fn write_answer(out: &mut Vec<u8>, id: &OwnedId, outcome: &AskOutcome) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    match outcome {
        AskOutcome::Answer(result) => {
            out.extend_from_slice(b",\"result\":");
            out.extend_from_slice(result.as_raw().text().as_bytes());
        }
        AskOutcome::Refused(error) => {
            out.extend_from_slice(b",\"error\":");
            error.write(out);
        }
        AskOutcome::Unheard => {
            out.extend_from_slice(b",\"error\":");
            let text = "The client cannot be asked this, or did not answer";
            RpcError::new(crate::rpc::code::METHOD_NOT_FOUND, text).write(out);
        }
    }
    out.push(b'}');
}

/// Members of an object, with commas between them.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Members<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, is_first: true }
    }

    /// Where the member's value goes.
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.comma();
        write_string(self.out, key);
        self.out.push(b':');
        self.out
    }

    fn raw(&mut self, key: Raw<'_>, value: Raw<'_>) {
        self.comma();
        self.out.extend_from_slice(key.text().as_bytes());
        self.out.push(b':');
        self.out.extend_from_slice(value.text().as_bytes());
    }

    fn comma(&mut self) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn raw(text: &str) -> OwnedRaw {
        OwnedRaw::parse(text.as_bytes()).unwrap()
    }

    fn request(params: &str, meta: &Meta<'_>) -> Value {
        let mut out = Vec::new();
        write_request(&mut out, 5, "tools/call", raw(params).as_raw(), meta);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_legacy_request_says_no_more_than_it_has_to() {
        let meta = Meta::plain(Revision::V20250618);
        let expected = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
            "params": {"name": "a", "arguments": {"b": 1}}});
        let sent = request(r#"{"name":"a","_meta":{"x":1},"arguments":{"b":1}}"#, &meta);
        assert_eq!(sent, expected);
        let wanting = Meta { wants_progress: true, ..meta };
        assert_eq!(request("{}", &wanting)["params"], json!({"_meta": {"progressToken": 5}}));
    }

    #[test]
    fn a_modern_request_says_who_asks_and_goes_on_where_it_was() {
        let responses = [("k\"1".into(), raw(r#"{"action":"accept"}"#))];
        let meta = Meta {
            revision: Revision::V20260728,
            wants_progress: true,
            capabilities: ClientCapabilities::ELICITATION_FORM.with(ClientCapabilities::ROOTS),
            log_level: Some(LogLevel::Warning),
            continues: Some((&responses, Some("st\\ate"))),
        };
        let sent = request(r#"{"name":"a","requestState":"forged"}"#, &meta);
        let params = &sent["params"];
        assert_eq!(params["inputResponses"], json!({"k\"1": {"action": "accept"}}));
        assert_eq!(params["requestState"], "st\\ate");
        let said = &params["_meta"];
        assert_eq!(said["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(said["io.modelcontextprotocol/logLevel"], "warning");
        assert_eq!(said["progressToken"], 5);
        let capabilities = &said["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(*capabilities, json!({"roots": {}, "elicitation": {}}));
        assert_eq!(said["io.modelcontextprotocol/clientInfo"]["name"], CLIENT_NAME);
        // State without answers, and answers without state.
        let bare = Meta { continues: Some((&[], None)), ..meta };
        assert!(request("{}", &bare)["params"].get("inputResponses").is_none());
    }

    #[test]
    fn initialize_declares_what_the_client_has() {
        let all = [
            ClientCapabilities::ROOTS,
            ClientCapabilities::ROOTS_LIST_CHANGED,
            ClientCapabilities::SAMPLING,
            ClientCapabilities::SAMPLING_TOOLS,
            ClientCapabilities::ELICITATION_FORM,
            ClientCapabilities::ELICITATION_URL,
        ];
        let all = all.into_iter().fold(ClientCapabilities::NONE, ClientCapabilities::with);
        let mut out = Vec::new();
        write_initialize(&mut out, 1, Revision::V20251125, all);
        let sent: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(sent["params"]["protocolVersion"], "2025-11-25");
        assert_eq!(
            sent["params"]["capabilities"],
            json!({"roots": {"listChanged": true}, "sampling": {"tools": {}},
                "elicitation": {"form": {}, "url": {}}})
        );
    }

    #[test]
    fn answers_go_back_under_the_id_of_the_server() {
        let id = receive_id(br#""q-1""#);
        let outcomes = [
            (AskOutcome::Answer(raw(r#"{"roots":[]}"#)), r#""result":{"roots":[]}"#),
            (AskOutcome::Refused(RpcError::new(-1, "no")), r#""error":{"code":-1,"#),
            (AskOutcome::Unheard, r#""error":{"code":-32601,"#),
        ];
        for (outcome, expected) in outcomes {
            let mut out = Vec::new();
            write_answer(&mut out, &id, &outcome);
            let text = String::from_utf8(out).unwrap();
            assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":"q-1","#), "{text}");
            assert!(text.contains(expected), "{text}");
        }
        let mut out = Vec::new();
        write_notification(&mut out, "notifications/initialized", None);
        assert_eq!(out, br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn receive_id(text: &[u8]) -> OwnedId {
        let text = crate::json::guard(text).unwrap();
        crate::rpc::Id::of(text.root()).unwrap().into()
    }
}
