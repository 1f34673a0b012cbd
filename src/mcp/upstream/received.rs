//! Messages of a server, kept beyond the bytes they came in.

use crate::json::{Kind, OwnedRaw, Raw};
use crate::rpc::{self, Incoming, Message, OwnedId, RpcError, code};

/// One message of a server.
#[derive(Debug, Clone)]
pub enum Received {
    /// Answers a request of ours.
    Response {
        /// Whose answer; absent in an error about a request whose id could not be read.
        id: Option<OwnedId>,
        /// Its result or its error.
        outcome: Result<OwnedRaw, RpcError>,
    },
    /// The server wants to know something.
    Request {
        /// To be echoed.
        id: OwnedId,
        /// What.
        method: Box<str>,
        /// An object; empty where the server sent none.
        params: OwnedRaw,
    },
    /// The server tells something.
    Notification {
        /// What.
        method: Box<str>,
        /// An object; empty where the server sent none.
        params: OwnedRaw,
    },
}

impl Received {
    /// How many bytes it keeps.
    pub fn bytes(&self) -> usize {
        let of = |raw: &OwnedRaw| raw.as_raw().text().len();
        size_of::<Self>()
            + match self {
                Self::Response { outcome: Ok(result), .. } => of(result),
                Self::Response { outcome: Err(error), .. } => {
                    error.message.len() + error.data.as_ref().map_or(0, |data| data.len())
                }
                Self::Request { method, params, .. } | Self::Notification { method, params } => {
                    method.len() + of(params)
                }
            }
    }
}

/// Reads a body or the data of an event: one message, or what MCP 2025-03-26 allows besides, an
/// array of them. Entries that are no messages are passed over; what is no message at all is an
/// error.
///
/// # Errors
/// What is wrong with it, without its text.
pub fn receive(bytes: &[u8]) -> Result<Vec<Received>, RpcError> {
    Ok(match rpc::parse(bytes)? {
        Incoming::Single(message) => vec![received(message)],
        Incoming::Batch(entries) => entries.into_iter().flatten().map(received).collect(),
    })
}

fn received(message: Message<'_>) -> Received {
    let object = |params: Option<Raw<'_>>| {
        let params = params.filter(|params| params.kind() == Kind::Object);
        params.unwrap_or(Raw::EMPTY_OBJECT).to_owned()
    };
    match message {
        Message::Request { id, method, params } => {
            Received::Request { id: id.into(), method: method.into(), params: object(params) }
        }
        Message::Notification { method, params } => {
            Received::Notification { method: method.into(), params: object(params) }
        }
        Message::Response { id, outcome } => Received::Response {
            id: id.map(OwnedId::from),
            outcome: outcome.map(Raw::to_owned).map_err(error_of),
        },
    }
}

/// The error object of a server. A code that is no code of JSON-RPC counts as the server's fault.
fn error_of(error: Raw<'_>) -> RpcError {
    let number = error.get("code").and_then(Raw::as_i64);
    let number = number.and_then(|number| i32::try_from(number).ok());
    let message = error.get("message").and_then(Raw::as_str);
    let message = message.map_or_else(|| "The server gave no reason".to_owned(), Into::into);
    let told = RpcError::new(number.unwrap_or(code::INTERNAL_ERROR), message);
    match error.get("data").filter(|data| !data.is_null()) {
        Some(data) => told.with_data(data.text()),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let text = br#"[{"jsonrpc":"2.0","id":7,"result":{"a":1.50}},
            {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"gone","data":{"b":2}}},
            {"jsonrpc":"2.0","id":"x","method":"ping"}, 5,
            {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}]"#;
        let all = receive(text).unwrap();
        assert_eq!(all.len(), 4);
        let Received::Response { id: Some(id), outcome: Ok(result) } = &all[0] else { panic!() };
        assert_eq!((id.as_bytes(), result.as_raw().text()), (&b"7"[..], r#"{"a":1.50}"#));
        let Received::Response { id: None, outcome: Err(error) } = &all[1] else { panic!() };
        assert_eq!((error.code, &*error.message), (-32001, "gone"));
        assert_eq!(error.data.as_deref(), Some(r#"{"b":2}"#));
        let Received::Request { params, .. } = &all[2] else { panic!() };
        assert_eq!(params.as_raw().text(), "{}");
        assert!(matches!(&all[3], Received::Notification { .. }));
        assert!(all.iter().all(|message| message.bytes() > 0));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for text in ["", "5", "{}", r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "[]", "{\"a\":"] {
            assert!(receive(text.as_bytes()).is_err(), "{text}");
        }
        let odd = receive(br#"{"jsonrpc":"2.0","id":1,"error":{"code":1e9}}"#).unwrap();
        let [Received::Response { outcome: Err(error), .. }] = &*odd else { panic!() };
        assert_eq!(error.code, code::INTERNAL_ERROR);
    }
}
