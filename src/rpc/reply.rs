//! Answers and notifications, appended to an outgoing buffer.

use std::{borrow::Cow, fmt, sync::Arc};

use super::{OwnedId, RpcError};
use crate::json::write_string;

const OPENING: &[u8] = b"{\"jsonrpc\":\"2.0\",";
const ID: &[u8] = b"\"id\":";
const RESULT: &[u8] = b"\"result\":";
const ERROR: &[u8] = b"\"error\":";

/// The finished JSON of a result, wherever it is kept.
#[derive(Clone)]
pub enum ResultBody {
    /// The same for everybody: `{}`.
    Static(&'static [u8]),
    /// Finished once, shared by all who ask: a tool list.
    Shared(Arc<[u8]>),
    /// Made for this answer.
    Owned(Vec<u8>),
    /// An object finished once, with more members at its end that are the same for many objects:
    /// large lists are not copied to say a little more.
    Ended {
        /// The object, whole.
        object: Arc<[u8]>,
        /// What stands in place of its last brace.
        end: Arc<[u8]>,
    },
}

impl ResultBody {
    /// The result without members.
    pub const EMPTY: Self = Self::Static(b"{}");

    /// The JSON, in the pieces it is kept in.
    fn pieces(&self) -> [&[u8]; 2] {
        match self {
            Self::Static(bytes) => [bytes, &[]],
            Self::Shared(bytes) => [bytes, &[]],
            Self::Owned(bytes) => [bytes, &[]],
            Self::Ended { object, end } => [object.strip_suffix(b"}").unwrap_or(object), end],
        }
    }

    /// The JSON. Only that of a body in pieces is copied.
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        match self.pieces() {
            [whole, []] => Cow::Borrowed(whole),
            pieces => Cow::Owned(pieces.concat()),
        }
    }

    /// How many bytes the JSON has.
    #[expect(clippy::len_without_is_empty, reason = "JSON is never empty")]
    pub fn len(&self) -> usize {
        self.pieces().iter().map(|piece| piece.len()).sum()
    }

    /// Appends the JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        for piece in self.pieces() {
            out.extend_from_slice(piece);
        }
    }
}

impl PartialEq for ResultBody {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for ResultBody {}

impl fmt::Debug for ResultBody {
    /// Results are a client's data: only the size is shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ResultBody({} bytes)", self.len())
    }
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The request's id; `None` where it could not be read, and then the member is absent.
    pub id: Option<OwnedId>,
    /// Result or error.
    pub body: Result<ResultBody, RpcError>,
}

impl Reply {
    /// The answer to the request with this id.
    pub fn new(id: OwnedId, body: Result<ResultBody, RpcError>) -> Self {
        Self { id: Some(id), body }
    }

    /// An answer to what had no readable id.
    pub fn without_id(error: RpcError) -> Self {
        Self { id: None, body: Err(error) }
    }

    /// How many bytes [`write`](Self::write) appends. For a result this adds four numbers; an
    /// error, which is rare and small, is written out to be measured.
    #[expect(clippy::len_without_is_empty, reason = "an answer is never empty")]
    pub fn len(&self) -> usize {
        let id = self.id.as_ref().map_or(0, |id| ID.len() + id.as_bytes().len() + 1);
        let body = match &self.body {
            Ok(result) => RESULT.len() + result.len(),
            Err(error) => {
                let mut written = Vec::with_capacity(128);
                error.write(&mut written);
                ERROR.len() + written.len()
            }
        };
        OPENING.len() + id + body + 1
    }

    /// Appends `{"jsonrpc":"2.0","id":…,"result":…}`, or the same with `error`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(OPENING);
        if let Some(id) = &self.id {
            out.extend_from_slice(ID);
            out.extend_from_slice(id.as_bytes());
            out.push(b',');
        }
        match &self.body {
            Ok(result) => {
                out.extend_from_slice(RESULT);
                result.write(out);
            }
            Err(error) => {
                out.extend_from_slice(ERROR);
                error.write(out);
            }
        }
        out.push(b'}');
    }
}

/// How many bytes [`write_batch`] appends.
pub fn batch_len(replies: &[Reply]) -> usize {
    replies.iter().map(Reply::len).sum::<usize>() + replies.len().saturating_sub(1) + 2
}

/// Appends the answers to a batch as one array. Where nothing is owed an answer, nothing must be
/// sent: the standard knows no empty array of answers.
pub fn write_batch(out: &mut Vec<u8>, replies: &[Reply]) {
    out.push(b'[');
    for (position, reply) in replies.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        reply.write(out);
    }
    out.push(b']');
}

/// Appends a notification; `params_json` must be one JSON object or array.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params_json: Option<&[u8]>) {
    out.extend_from_slice(OPENING);
    out.extend_from_slice(b"\"method\":");
    write_string(out, method);
    if let Some(params) = params_json {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::Raw;
    use crate::rpc::{Incoming, Message, code, parse};

    fn written(reply: &Reply) -> String {
        let mut out = Vec::new();
        reply.write(&mut out);
        assert_eq!(out.len(), reply.len());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_answers_of_known_length() {
        let shared: Arc<[u8]> = Arc::from(&b"{\"tools\":[]}"[..]);
        let cases = [
            (
                Reply::new(OwnedId::from(7), Ok(ResultBody::EMPTY)),
                r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            ),
            (
                Reply::new(OwnedId::from(-1), Ok(ResultBody::Shared(shared))),
                r#"{"jsonrpc":"2.0","id":-1,"result":{"tools":[]}}"#,
            ),
            (
                Reply::new(
                    OwnedId::from(1),
                    Ok(ResultBody::Ended {
                        object: Arc::from(&b"{\"a\":[]}"[..]),
                        end: Arc::from(&b",\"b\":1}"[..]),
                    }),
                ),
                r#"{"jsonrpc":"2.0","id":1,"result":{"a":[],"b":1}}"#,
            ),
            (
                Reply::new(OwnedId::from(1), Ok(ResultBody::Owned(b"[1]".to_vec()))),
                r#"{"jsonrpc":"2.0","id":1,"result":[1]}"#,
            ),
            (
                Reply::new(
                    OwnedId::from(1),
                    Err(RpcError::new(code::METHOD_NOT_FOUND, "Method not found")),
                ),
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#,
            ),
            (
                Reply::without_id(
                    RpcError::new(code::RESOURCE_NOT_FOUND, "\"x\"\n").with_data("{\"uri\":1}"),
                ),
                r#"{"jsonrpc":"2.0","error":{"code":-32002,"message":"\"x\"\n","data":{"uri":1}}}"#,
            ),
        ];
        for (reply, expected) in &cases {
            assert_eq!(written(reply), *expected);
        }
        let replies = cases.map(|(reply, _)| reply);
        for count in 1..=replies.len() {
            let mut out = Vec::new();
            write_batch(&mut out, &replies[..count]);
            assert_eq!(out.len(), batch_len(&replies[..count]));
            assert!(matches!(parse(&out), Ok(Incoming::Batch(entries)) if entries.len() == count));
        }
    }

    #[test]
    fn writes_notifications() {
        let mut out = Vec::new();
        write_notification(&mut out, "notifications/tools/list_changed", None);
        write_notification(&mut out, "x\"", Some(b"{\"a\":1}"));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\
             {\"jsonrpc\":\"2.0\",\"method\":\"x\\\"\",\"params\":{\"a\":1}}"
        );
    }

    #[test]
    fn results_are_not_shown_in_debug_output() {
        let reply = Reply::new(OwnedId::from(1), Ok(ResultBody::Owned(b"\"secret\"".to_vec())));
        assert!(!format!("{reply:?}").contains("secret"));
    }

    proptest! {
        #[test]
        fn whatever_an_error_says_its_length_is_known_and_it_is_read_back(
            error_code in any::<i32>(), text in any::<String>(), id in any::<i64>(),
        ) {
            let reply = Reply::new(OwnedId::from(id), Err(RpcError::new(error_code, text.clone())));
            let out = written(&reply);
            let Ok(Incoming::Single(Message::Response { id: Some(found), outcome: Err(error) })) =
                parse(out.as_bytes())
            else {
                return Err(TestCaseError::fail(out));
            };
            prop_assert!(reply.id.unwrap() == found);
            let message = error.get("message").and_then(Raw::as_str);
            prop_assert_eq!(message.as_deref(), Some(text.as_str()));
            prop_assert_eq!(error.get("code").unwrap().as_i64(), Some(i64::from(error_code)));
        }
    }
}
