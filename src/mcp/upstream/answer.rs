//! What the result of a server means (MCP 2026-07-28, `resultType` and multi-round-trip requests).

use crate::json::{Kind, Raw};
use crate::mcp::{Ask, AskMethod, Asks};
use crate::sessions::{ClientCapabilities, Revision};

/// Questions of one result.
const ASKS_MAX: usize = 32;
/// Longest state a server may have kept for it.
const STATE_BYTES_MAX: usize = 256 * 1024;

/// What a result means.
#[derive(Debug, Clone)]
pub enum Answered {
    /// Done.
    Complete,
    /// Something has to be answered first.
    InputRequired {
        /// What is asked; may be nothing, where only the state is to come back.
        asks: Asks,
        /// To be given back as it is.
        state: Option<Box<str>>,
    },
    /// It breaks the protocol, and how.
    Invalid(&'static str),
}

/// What a result of a server of this revision means to a client that can be asked this.
pub fn answered(result: Raw<'_>, revision: Revision, capabilities: ClientCapabilities) -> Answered {
    if result.kind() != Kind::Object {
        return Answered::Invalid("its result is no object");
    }
    if !revision.is_modern() {
        return Answered::Complete;
    }
    match result.get("resultType").map(Raw::as_str) {
        // Absent means complete.
        None => Answered::Complete,
        Some(Some(kind)) if kind == "complete" => Answered::Complete,
        Some(Some(kind)) if kind == "input_required" => input_required(result, capabilities),
        Some(_) => Answered::Invalid("its result is of a type that was not asked for"),
    }
}

fn input_required(result: Raw<'_>, capabilities: ClientCapabilities) -> Answered {
    let state = result.get("requestState").filter(|state| !state.is_null());
    let state = match state.map(Raw::as_str) {
        None => None,
        Some(Some(state)) if state.len() <= STATE_BYTES_MAX => Some(Box::from(&*state)),
        Some(_) => return Answered::Invalid("the state of its question is unusable"),
    };
    let mut asks = Asks::new();
    for (key, request) in result.get("inputRequests").into_iter().flat_map(Raw::entries) {
        if asks.len() == ASKS_MAX {
            return Answered::Invalid("it asks too much at once");
        }
        let method = request.get("method").and_then(Raw::as_str);
        let Some(method) = method.and_then(|name| AskMethod::of(&name)) else {
            return Answered::Invalid("it asks what no client can be asked");
        };
        let params = request.get("params").unwrap_or(Raw::EMPTY_OBJECT).without(&["_meta"]);
        if !capabilities.contains(method.needs(params.as_raw())) {
            return Answered::Invalid("it asks what the client has not declared");
        }
        let ask = Ask { method, params };
        if !ask.is_fit() {
            return Answered::Invalid("it sends the user to what is no page of the web");
        }
        asks.push((key.into(), ask));
    }
    if asks.is_empty() && state.is_none() {
        return Answered::Invalid("it wants to know something and does not say what");
    }
    Answered::InputRequired { asks, state }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::OwnedRaw;

    fn read(text: &str) -> Answered {
        let raw = OwnedRaw::parse(text.as_bytes()).unwrap();
        let capabilities = ClientCapabilities::ELICITATION_FORM.with(ClientCapabilities::ROOTS);
        answered(raw.as_raw(), Revision::V20260728, capabilities)
    }

    #[test]
    fn complete_and_absent_are_the_same_and_others_are_not() {
        assert!(matches!(read(r#"{"resultType":"complete"}"#), Answered::Complete));
        assert!(matches!(read("{}"), Answered::Complete));
        for text in [r#"{"resultType":"task"}"#, r#"{"resultType":7}"#, "[]"] {
            assert!(matches!(read(text), Answered::Invalid(_)), "{text}");
        }
        let raw = OwnedRaw::parse(br#"{"resultType":"input_required"}"#).unwrap();
        let legacy = answered(raw.as_raw(), Revision::V20251125, ClientCapabilities::NONE);
        assert!(matches!(legacy, Answered::Complete));
    }

    #[test]
    fn questions_come_with_their_keys_and_the_state() {
        let text = r#"{"resultType":"input_required","requestState":"s","inputRequests":{
            "a":{"method":"elicitation/create","params":{"message":"m","_meta":{"x":1},"b":1.50}},
            "b":{"method":"roots/list"}}}"#;
        let Answered::InputRequired { asks, state } = read(text) else { panic!() };
        assert_eq!(state.as_deref(), Some("s"));
        let [(a, first), (b, second)] = &*asks else { panic!() };
        assert_eq!((&**a, &**b, second.method), ("a", "b", AskMethod::Roots));
        assert_eq!(first.params.as_raw().text(), r#"{"message":"m","b":1.50}"#);
        let bare = read(r#"{"resultType":"input_required","requestState":"s"}"#);
        assert!(matches!(bare, Answered::InputRequired { asks, .. } if asks.is_empty()));
    }

    #[test]
    fn what_cannot_be_answered_breaks_the_protocol() {
        for questions in [
            r#"{"a":{"method":"sampling/createMessage","params":{}}}"#,
            r#"{"a":{"method":"tools/call"}}"#,
            r#"{"a":{"method":"elicitation/create","params":{"mode":"url"}}}"#,
            "{}",
        ] {
            let text = format!(r#"{{"resultType":"input_required","inputRequests":{questions}}}"#);
            assert!(matches!(read(&text), Answered::Invalid(_)), "{text}");
        }
        let many: Vec<String> =
            (0..=ASKS_MAX).map(|n| format!(r#""{n}":{{"method":"roots/list"}}"#)).collect();
        let text =
            format!(r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#, many.join(","));
        assert!(matches!(read(&text), Answered::Invalid(_)));
    }
}
