//! What each request of the era without sessions says of itself (MCP 2026-07-28, `_meta`).

use std::borrow::Cow;

use memchr::memmem;

use super::initialize::read_capabilities;
use super::{LogLevel, Revision};
use crate::json::{Kind, Raw};
use crate::rpc::{Message, RpcError};
use crate::sessions::ClientCapabilities;

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What a request says of its sender, and of what went before it.
#[derive(Clone, Debug, Default)]
pub struct Envelope<'a> {
    /// The revision it speaks, as it was written.
    pub revision: Cow<'a, str>,
    /// `clientInfo.name`; empty where it is not said.
    pub client_name: Cow<'a, str>,
    /// `clientInfo.version`; empty where it is not said.
    pub client_version: Cow<'a, str>,
    /// What the client can be asked.
    pub capabilities: ClientCapabilities,
    /// What it wants to hear of what the request logs; nothing where it does not say.
    pub log_level: Option<LogLevel>,
    /// Its answers to what was asked before, an object by the keys of the questions.
    pub input_responses: Option<Raw<'a>>,
    /// The state that came with those questions, as it was given.
    pub request_state: Option<Cow<'a, str>>,
    /// What the request asks for, by `name` or by `uri`: noted on the way, for who holds its headers
    /// against it.
    pub name: Option<Raw<'a>>,
    /// See [`name`](Self::name).
    pub uri: Option<Raw<'a>>,
    /// The `arguments` of a call, noted in the same way.
    pub arguments: Option<Raw<'a>>,
}

impl<'a> Envelope<'a> {
    /// Whether a message says which revision it speaks, as all requests of that era do and no
    /// others.
    pub fn is_in(message: &Message<'_>) -> bool {
        // Nearly all requests of the other era are passed over at once.
        let params = message
            .params()
            .filter(|params| memmem::find(params.text().as_bytes(), b"protocolVersion").is_some());
        let meta = params.and_then(|params| params.get("_meta"));
        meta.is_some_and(|meta| meta.get(PROTOCOL_VERSION).is_some())
    }

    /// Reads that of a request.
    ///
    /// # Errors
    /// A part that every request has is missing, or one is not what it must be.
    pub fn read(params: Option<Raw<'a>>) -> Result<Self, RpcError> {
        let mut envelope = Self::default();
        let mut meta = None;
        for (key, value) in params.iter().flat_map(|params| params.entries()) {
            match &*key {
                "_meta" => meta = Some(value),
                "name" => envelope.name = Some(value),
                "uri" => envelope.uri = Some(value),
                "arguments" => envelope.arguments = Some(value),
                "inputResponses" if value.kind() == Kind::Object => {
                    envelope.input_responses = Some(value);
                }
                "inputResponses" => return Err(wrong("inputResponses", "an object")),
                "requestState" => {
                    let state = value.as_str().ok_or_else(|| wrong("requestState", "a string"))?;
                    envelope.request_state = Some(state);
                }
                _ => {}
            }
        }
        envelope.read_meta(meta)?;
        Ok(envelope)
    }

    fn read_meta(&mut self, meta: Option<Raw<'a>>) -> Result<(), RpcError> {
        let (mut revision, mut capabilities) = (None, None);
        for (key, value) in meta.iter().flat_map(|meta| meta.entries()) {
            match &*key {
                PROTOCOL_VERSION => revision = Some(value),
                CLIENT_CAPABILITIES => capabilities = Some(value),
                CLIENT_INFO => {
                    let text = |key| value.get(key).and_then(Raw::as_str).unwrap_or_default();
                    self.client_name = text("name");
                    self.client_version = text("version");
                }
                LOG_LEVEL => {
                    let level = value.as_str().and_then(|name| LogLevel::of(&name));
                    self.log_level = Some(level.ok_or_else(|| wrong(LOG_LEVEL, "a log level"))?);
                }
                _ => {}
            }
        }
        let revision = revision.and_then(Raw::as_str);
        self.revision = revision.ok_or_else(|| wrong(PROTOCOL_VERSION, "a string"))?;
        let capabilities = capabilities.filter(|value| value.kind() == Kind::Object);
        let capabilities = capabilities.ok_or_else(|| wrong(CLIENT_CAPABILITIES, "an object"))?;
        self.capabilities = read_capabilities(capabilities, Revision::V20260728);
        Ok(())
    }
}

fn wrong(member: &'static str, what: &'static str) -> RpcError {
    let place = if member.contains('/') { "_meta of the request" } else { "the request" };
    RpcError::invalid_params(format!("{place} must have `{member}`, {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{self, Incoming, code};

    fn message(text: &str) -> Message<'_> {
        match rpc::parse(text.as_bytes()) {
            Ok(Incoming::Single(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    fn request(params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#)
    }

    #[test]
    fn a_request_says_all_of_itself() {
        let text = request(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
                "io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},
                "io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{"tools":{}}},
                "io.modelcontextprotocol/logLevel":"warning","progressToken":1},
               "name":"a","uri":"b:c","arguments":[],
               "inputResponses":{"a":{"action":"accept"}},"requestState":"s\u00e9"}"#,
        );
        let message = message(&text);
        assert!(Envelope::is_in(&message));
        let envelope = Envelope::read(message.params()).unwrap();
        assert_eq!(&*envelope.revision, "2026-07-28");
        assert_eq!((&*envelope.client_name, &*envelope.client_version), ("n", "1"));
        let has = |capability| envelope.capabilities.contains(capability);
        assert!(
            has(ClientCapabilities::ELICITATION_FORM) && has(ClientCapabilities::SAMPLING_TOOLS)
        );
        assert!(!has(ClientCapabilities::ROOTS));
        assert_eq!(envelope.log_level, Some(LogLevel::Warning));
        assert_eq!(envelope.input_responses.unwrap().text(), r#"{"a":{"action":"accept"}}"#);
        assert_eq!(envelope.request_state.as_deref(), Some("sé"));
        let noted = [envelope.name, envelope.uri, envelope.arguments];
        assert_eq!(noted.map(|one| one.unwrap().text()), ["\"a\"", "\"b:c\"", "[]"]);
    }

    #[test]
    fn a_broken_one_is_told_where() {
        const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        const ABLE: &str = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
        for (params, part) in [
            ("{}".to_owned(), "protocolVersion"),
            ("[]".to_owned(), "protocolVersion"),
            (r#"{"_meta":7}"#.to_owned(), "protocolVersion"),
            (format!(r#"{{"_meta":{{{ABLE}}}}}"#), "protocolVersion"),
            (format!(r#"{{"_meta":{{{VERSION}}}}}"#), "clientCapabilities"),
            (
                format!(r#"{{"_meta":{{{VERSION},{}}}}}"#, ABLE.replace("{}", "[]")),
                "clientCapabilities",
            ),
            (
                format!(
                    r#"{{"_meta":{{{VERSION},{ABLE},"io.modelcontextprotocol/logLevel":"x"}}}}"#
                ),
                "logLevel",
            ),
            (format!(r#"{{"_meta":{{{VERSION},{ABLE}}},"inputResponses":[]}}"#), "inputResponses"),
            (format!(r#"{{"_meta":{{{VERSION},{ABLE}}},"requestState":1}}"#), "requestState"),
        ] {
            let text = request(&params);
            let error = Envelope::read(message(&text).params()).unwrap_err();
            assert_eq!(error.code, code::INVALID_PARAMS, "{params}");
            assert!(error.message.contains(part), "{params}: {error}");
        }
        for params in ["{}", r#"{"_meta":{"progressToken":1}}"#, r#"["_meta"]"#] {
            assert!(!Envelope::is_in(&message(&request(params))), "{params}");
        }
    }
}
