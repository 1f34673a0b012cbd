//! Reading what a peer sent.

use std::borrow::Cow;

use super::{BATCH_ENTRIES_MAX, Id, RpcError};
use crate::json::{Kind, Raw, guard};

/// One message. Members the standard does not name are passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// Wants an answer.
    Request {
        /// To be echoed.
        id: Id<'a>,
        /// What is asked.
        method: Cow<'a, str>,
        /// An object or an array.
        params: Option<Raw<'a>>,
    },
    /// Wants none.
    Notification {
        /// What happened.
        method: Cow<'a, str>,
        /// An object or an array.
        params: Option<Raw<'a>>,
    },
    /// Answers a request of ours.
    Response {
        /// Whose answer; absent only in an error about a request whose id could not be read.
        id: Option<Id<'a>>,
        /// The result, or the error object.
        outcome: Result<Raw<'a>, Raw<'a>>,
    },
}

impl<'a> Message<'a> {
    /// The id of a request; no other message is owed an answer.
    pub fn request_id(&self) -> Option<Id<'a>> {
        match self {
            Self::Request { id, .. } => Some(*id),
            Self::Notification { .. } | Self::Response { .. } => None,
        }
    }

    /// The parameters of a request or notification.
    pub fn params(&self) -> Option<Raw<'a>> {
        match self {
            Self::Request { params, .. } | Self::Notification { params, .. } => *params,
            Self::Response { .. } => None,
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method, .. } => Some(method),
            Self::Response { .. } => None,
        }
    }
}

/// A whole body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// One message.
    Single(Message<'a>),
    /// An array of at least one; entries that are no messages have an error each.
    Batch(Vec<Result<Message<'a>, RpcError>>),
}

/// Reads a body.
///
/// # Errors
///
/// -32700 for what does not pass the JSON guard; -32600 for what is no message, for an empty batch
/// and for one of more than [`BATCH_ENTRIES_MAX`] entries.
pub fn parse(bytes: &[u8]) -> Result<Incoming<'_>, RpcError> {
    read(guard(bytes)?.root())
}

/// Reads a body that passed the guard.
///
/// # Errors
///
/// As of [`parse`], but for those of the guard.
pub fn read(root: Raw<'_>) -> Result<Incoming<'_>, RpcError> {
    if root.kind() != Kind::Array {
        return message(root).map(Incoming::Single);
    }
    let mut entries = Vec::new();
    for item in root.items() {
        if entries.len() == BATCH_ENTRIES_MAX {
            return Err(RpcError::invalid_request(format!(
                "Invalid request: a batch holds at most {BATCH_ENTRIES_MAX} messages"
            )));
        }
        entries.push(message(item));
    }
    if entries.is_empty() {
        return Err(RpcError::invalid_request("Invalid request: the batch is empty"));
    }
    Ok(Incoming::Batch(entries))
}

/// The members of a message, as far as the standard names them.
#[derive(Default)]
struct Members<'a> {
    version: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    method: Option<Raw<'a>>,
    params: Option<Raw<'a>>,
    result: Option<Raw<'a>>,
    error: Option<Raw<'a>>,
}

/// Reads one message in one pass over its members.
fn message(raw: Raw<'_>) -> Result<Message<'_>, RpcError> {
    if raw.kind() != Kind::Object {
        return Err(RpcError::invalid_request("Invalid request: a message is a JSON object"));
    }
    let mut members = Members::default();
    for (key, value) in raw.entries() {
        match &*key {
            "jsonrpc" => members.version = Some(value),
            "id" => members.id = Some(value),
            "method" => members.method = Some(value),
            "params" => members.params = Some(value),
            "result" => members.result = Some(value),
            "error" => members.error = Some(value),
            _ => {}
        }
    }
    if !members.version.is_some_and(is_version_2) {
        return Err(RpcError::invalid_request("Invalid request: `jsonrpc` must be \"2.0\""));
    }
    match members.method {
        Some(method) => call(method, &members),
        None => response(&members),
    }
}

/// `"2.0"`, also where somebody escaped it.
fn is_version_2(version: Raw<'_>) -> bool {
    version.text() == "\"2.0\"" || version.as_str().is_some_and(|text| text == "2.0")
}

/// A request or notification.
fn call<'a>(method: Raw<'a>, members: &Members<'a>) -> Result<Message<'a>, RpcError> {
    if members.result.is_some() || members.error.is_some() {
        return Err(RpcError::invalid_request(
            "Invalid request: `method` excludes `result` and `error`",
        ));
    }
    let Some(method) = method.as_str() else {
        return Err(RpcError::invalid_request("Invalid request: `method` must be a string"));
    };
    // Several JSON writers send null for what is not there; it can mean nothing else.
    let params = members.params.filter(|params| !params.is_null());
    if params.is_some_and(|params| !matches!(params.kind(), Kind::Object | Kind::Array)) {
        return Err(RpcError::invalid_request(
            "Invalid request: `params` must be an object or an array",
        ));
    }
    match members.id {
        Some(id) => Ok(Message::Request { id: request_id(id)?, method, params }),
        None => Ok(Message::Notification { method, params }),
    }
}

/// The answer to a request of ours.
fn response<'a>(members: &Members<'a>) -> Result<Message<'a>, RpcError> {
    match (members.result, members.error) {
        (Some(result), None) => {
            let Some(id) = members.id else {
                return Err(RpcError::invalid_request("Invalid request: a result needs an `id`"));
            };
            Ok(Message::Response { id: Some(request_id(id)?), outcome: Ok(result) })
        }
        (None, Some(error)) if error.kind() == Kind::Object => {
            let id = members.id.filter(|id| !id.is_null()).map(request_id).transpose()?;
            Ok(Message::Response { id, outcome: Err(error) })
        }
        (None, Some(_)) => {
            Err(RpcError::invalid_request("Invalid request: `error` must be an object"))
        }
        (Some(_), Some(_)) => Err(RpcError::invalid_request(
            "Invalid request: `result` and `error` exclude each other",
        )),
        (None, None) => Err(RpcError::invalid_request(
            "Invalid request: a message has a `method`, a `result` or an `error`",
        )),
    }
}

fn request_id(id: Raw<'_>) -> Result<Id<'_>, RpcError> {
    Id::of(id).ok_or_else(|| {
        RpcError::invalid_request("Invalid request: `id` must be a string or an integer")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rpc::{ID_BYTES_MAX, code};

    fn single(text: &str) -> Message<'_> {
        match parse(text.as_bytes()) {
            Ok(Incoming::Single(message)) => message,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn refused(text: &str) -> RpcError {
        parse(text.as_bytes()).expect_err(text)
    }

    #[test]
    fn reads_requests_and_echoes_ids_to_the_byte() {
        for id in [
            "1",
            "0",
            "-7",
            "-0",
            "9223372036854775808",
            "123456789012345678901234567890",
            "\"\"",
            "\"a b\"",
            "\"\\u0061\\n\"",
            "\"ü\"",
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            let Message::Request { id: found, method, params } = single(&text) else {
                panic!("{text}")
            };
            assert_eq!(found.text(), id);
            assert_eq!(found.to_owned_id().as_bytes(), id.as_bytes());
            assert!(matches!(method, Cow::Borrowed("ping")));
            assert_eq!(params, None);
        }
    }

    #[test]
    fn reads_members_in_any_order_and_passes_over_others() {
        let text = " {\"params\" : {\"a\":1.50} , \"x\":[1,{\"id\":2}],\n\"method\":\"a\\/b\",\
            \"\\u0069d\":\"7\",\"jsonrpc\":\"2\\u002e0\"}\r\n";
        let message = single(text);
        assert_eq!(
            (message.method(), message.request_id().unwrap().text()),
            (Some("a/b"), "\"7\"")
        );
        let Message::Request { params: Some(params), .. } = message else { panic!() };
        assert_eq!(params.text(), "{\"a\":1.50}");
    }

    #[test]
    fn reads_notifications_and_responses() {
        let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":[1]}"#;
        let message = single(text);
        assert!(matches!(message, Message::Notification { params: Some(_), .. }));
        assert_eq!(message.request_id(), None);
        let null_params = single(r#"{"jsonrpc":"2.0","method":"x","params":null}"#);
        assert!(matches!(null_params, Message::Notification { params: None, .. }));

        let responses = [
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, Some("1"), Ok("null")),
            (r#"{"jsonrpc":"2.0","id":"a","result":{}}"#, Some("\"a\""), Ok("{}")),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, Some("1"), Err(r#"{"code":1}"#)),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, None, Err("{}")),
            (r#"{"jsonrpc":"2.0","error":{}}"#, None, Err("{}")),
        ];
        for (text, expected_id, expected) in responses {
            let Message::Response { id, outcome } = single(text) else { panic!("{text}") };
            assert_eq!(id.map(Id::text), expected_id, "{text}");
            assert_eq!(outcome.map(Raw::text).map_err(Raw::text), expected, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_message() {
        for (members, part) in [
            (r#""method":"x","id":null"#, "`id`"),
            (r#""method":"x","id":1.0"#, "`id`"),
            (r#""method":"x","id":1.5"#, "`id`"),
            (r#""method":"x","id":1e3"#, "`id`"),
            (r#""method":"x","id":true"#, "`id`"),
            (r#""method":"x","id":{}"#, "`id`"),
            (r#""method":"x","id":[]"#, "`id`"),
            (r#""method":1,"id":1"#, "`method`"),
            (r#""method":null,"id":1"#, "`method`"),
            (r#""method":"x","params":1"#, "`params`"),
            (r#""method":"x","params":"a","id":1"#, "`params`"),
            (r#""method":"x","params":false,"id":1"#, "`params`"),
            (r#""method":"x","result":1,"id":1"#, "exclude"),
            (r#""method":"x","error":{},"id":1"#, "exclude"),
            (r#""result":1,"error":{},"id":1"#, "exclude"),
            (r#""result":1"#, "`id`"),
            (r#""result":1,"id":null"#, "`id`"),
            (r#""error":1,"id":1"#, "`error`"),
            (r#""error":null,"id":1"#, "`error`"),
            (r#""id":1"#, "`method`"),
        ] {
            let error = refused(&format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            assert_eq!(error.code, code::INVALID_REQUEST, "{members}");
            assert!(error.message.contains(part), "{members}: {error}");
        }
        for text in [
            "{}",
            "1",
            "null",
            "\"ping\"",
            r#"{"id":1,"method":"x"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
            r#"{"jsonrpc":2.0,"id":1,"method":"x"}"#,
            r#"{"jsonrpc":"2.0 ","id":1,"method":"x"}"#,
        ] {
            assert_eq!(refused(text).code, code::INVALID_REQUEST, "{text}");
        }
        let id = |length: usize| {
            let id = "x".repeat(length - 2);
            format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"x"}}"#)
        };
        single(&id(ID_BYTES_MAX));
        assert_eq!(refused(&id(ID_BYTES_MAX + 1)).code, code::INVALID_REQUEST);
    }

    #[test]
    fn refuses_what_is_no_json() {
        let deep =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}"#, "[".repeat(20_000));
        for text in [
            "",
            "{",
            "{\"jsonrpc\":\"2.0\",}",
            "{} {}",
            "\u{feff}{}",
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}"#,
            r#"{"jsonrpc":"2.0","id":01,"method":"x"}"#,
            &deep,
        ] {
            assert_eq!(refused(text).code, code::PARSE_ERROR, "{text:.60}");
        }
        assert_eq!(parse(b"{\"a\":\"\xff\"}").unwrap_err().code, code::PARSE_ERROR);
    }

    #[test]
    fn reads_batches_entry_by_entry() {
        let text = r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, 7 ,{"jsonrpc":"2.0","method":"b"}]"#;
        let Ok(Incoming::Batch(entries)) = parse(text.as_bytes()) else { panic!() };
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[0].as_ref().unwrap().request_id().unwrap().text(), "1");
        assert_eq!(entries[1].as_ref().unwrap_err().code, code::INVALID_REQUEST);
        assert_eq!(entries[2].as_ref().unwrap().method(), Some("b"));

        let nested = r#"[[{"jsonrpc":"2.0","id":1,"method":"a"}]]"#;
        let Ok(Incoming::Batch(entries)) = parse(nested.as_bytes()) else { panic!() };
        assert!(entries[0].is_err());

        assert_eq!(refused(" [ ] ").code, code::INVALID_REQUEST);
        let batch = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert!(parse(batch(BATCH_ENTRIES_MAX).as_bytes()).is_ok());
        assert_eq!(refused(&batch(BATCH_ENTRIES_MAX + 1)).code, code::INVALID_REQUEST);
    }

    /// Texts that are nearly messages.
    const PIECES: &str = concat!(
        r#"(\{|\}|\[|\]|,|:|"jsonrpc":"2.0"|"id":1|"method":"x"|"params":|"#,
        r#""result":|"error":|null|\{\}){0,14}"#
    );

    proptest! {
        #[test]
        fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse(&noise).ok();
        }

        #[test]
        fn a_cut_message_is_a_parse_error(cut in any::<prop::sample::Index>()) {
            let text = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[1,"\u00e9"]}}"#;
            let cut = cut.index(text.len());
            prop_assert_eq!(parse(&text.as_bytes()[..cut]).unwrap_err().code, code::PARSE_ERROR);
        }

        #[test]
        fn pieces_of_messages_are_read_or_refused(
            text in PIECES,
        ) {
            if let Err(error) = parse(text.as_bytes()) {
                prop_assert!(matches!(error.code, code::PARSE_ERROR | code::INVALID_REQUEST));
            }
        }
    }
}
