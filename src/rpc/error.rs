//! Errors as JSON-RPC tells them.

use std::{borrow::Cow, fmt};

use crate::json::{JsonError, write_string};

/// Error codes, the standard's and MCP's.
pub mod code {
    /// The body is not JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// The JSON is not a JSON-RPC message.
    pub const INVALID_REQUEST: i32 = -32600;
    /// No such method, or none for this client.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The params do not fit the method.
    pub const INVALID_PARAMS: i32 = -32602;
    /// Our fault.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// Refusals of the transport, as the official SDKs use it.
    pub const SERVER: i32 = -32000;
    /// The session is unknown, expired or somebody else's.
    pub const SESSION_NOT_FOUND: i32 = -32001;
    /// The client cancelled the request; MCP wants no answer then, HTTP does.
    pub const REQUEST_CANCELLED: i32 = -32800;
    /// No such resource (revisions before 2026-07-28).
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// A header of the HTTP request is missing, or says something else than the body (from
    /// 2026-07-28 on, as the two below).
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The request needs something of its client that the client has not declared.
    pub const MISSING_CAPABILITY: i32 = -32021;
    /// The request speaks a revision that this server does not.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
}

/// An error for the peer. Its texts go out as they are: no internals, no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// One of [`code`], or an own one.
    pub code: i32,
    /// One sentence.
    pub message: Cow<'static, str>,
    /// More, as finished JSON.
    pub data: Option<Box<str>>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same error with `data`, which must be one JSON value.
    pub fn with_data(mut self, data: impl Into<Box<str>>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// The JSON is no JSON-RPC message.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// The params do not fit the method.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// Our fault; the log knows more.
    pub fn internal() -> Self {
        Self::new(code::INTERNAL_ERROR, "Internal error")
    }

    /// Appends the error object.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"code\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.code).as_bytes());
        out.extend_from_slice(b",\"message\":");
        write_string(out, &self.message);
        if let Some(data) = &self.data {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.as_bytes());
        }
        out.push(b'}');
    }
}

impl From<JsonError> for RpcError {
    fn from(error: JsonError) -> Self {
        Self::new(code::PARSE_ERROR, format!("Parse error: {error}"))
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}
