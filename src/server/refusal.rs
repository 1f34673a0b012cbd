//! Every way the runtime plane refuses a request, in one table: HTTP status, JSON-RPC code, the
//! text a client may see, the headers it needs, and the reason for the log.

use std::borrow::Cow;

use crate::{
    governance::Limited,
    identity,
    rpc::{RpcError, code},
    rt::WorkError,
};

/// A request that is not served, and why.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No such path.
    NoSuchPath,
    /// The operator names a client application the catalog does not have.
    NoSuchClientApplication,
    /// The resource exists, the method does not.
    MethodNotAllowed { allow: &'static str },
    /// The `Origin` header names a site that may not call this server (MCP 2025-11-25,
    /// Streamable HTTP, security warning).
    ForeignOrigin,
    /// No usable credential.
    Unauthenticated(identity::Refusal),
    /// The `Host` header is not a name of this server: a page that rebinds its own name to a
    /// loopback address looks like this.
    ForeignHost,
    /// The client accepts neither of the two kinds of answer, or not the one needed here.
    NotAcceptable { needed: &'static str },
    /// An event stream was asked for over HTTP/1.0.
    StreamsNeedHttp11,
    /// The body is declared to be something other than JSON.
    UnsupportedMediaType,
    /// `MCP-Protocol-Version` names a revision this server does not speak.
    UnsupportedRevision { asked: Cow<'static, str> },
    /// A session is required and the request names none.
    SessionRequired,
    /// The session is unknown, ended, expired or somebody else's: always the same answer.
    UnknownSession,
    /// The session already has a standalone stream with a living client.
    StreamTaken,
    /// The tenant holds as many sessions as it may.
    TooManySessions { retry_after_seconds: u32 },
    /// A limit of the tenant, the client application or the caller is reached.
    Limited(Limited),
    /// The audit is strict and cannot take a record of the request.
    AuditUnavailable,
    /// The core carries as many event streams or calls as it may, or the workers have no room.
    Busy,
    /// As much as may waits already for the tenant's share of the workers.
    TenantBusy,
    /// The store cannot be asked or cannot take what must be kept.
    StoreUnavailable,
    /// The body is not a message this server takes.
    Message(RpcError),
    /// A method only newer revisions have: told apart so that a probing client falls back.
    ModernMethod { method: &'static str },
}

impl Refusal {
    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::NoSuchPath
            | Self::NoSuchClientApplication
            | Self::UnknownSession
            | Self::ModernMethod { .. } => 404,
            Self::MethodNotAllowed { .. } => 405,
            Self::ForeignOrigin | Self::ForeignHost => 403,
            Self::Unauthenticated(refusal) => refusal.status(),
            Self::NotAcceptable { .. } => 406,
            Self::UnsupportedMediaType => 415,
            Self::StreamsNeedHttp11 => 505,
            Self::UnsupportedRevision { .. } | Self::SessionRequired | Self::Message(_) => 400,
            Self::StreamTaken => 409,
            Self::TooManySessions { .. } | Self::Limited(_) | Self::TenantBusy => 429,
            Self::AuditUnavailable | Self::Busy | Self::StoreUnavailable => 503,
        }
    }

    /// The JSON-RPC error of the body.
    pub(crate) fn error(&self) -> RpcError {
        let (code, message): (i32, Cow<'static, str>) = match self {
            Self::NoSuchPath => (
                code::SERVER,
                "No such path. An MCP endpoint is at /runtime/{tenant}/{client}/mcp.".into(),
            ),
            Self::NoSuchClientApplication => (
                code::SERVER,
                "The catalog has no such tenant and client application. `ringway status` lists \
                 those it has."
                    .into(),
            ),
            Self::MethodNotAllowed { allow } => {
                (code::SERVER, format!("Method not allowed here. Allowed: {allow}.").into())
            }
            Self::ForeignOrigin => (
                code::SERVER,
                "This Origin may not call this server. The operator allows one with \
                 runtime.allowed_origins or the tenant's allowed_origins."
                    .into(),
            ),
            Self::ForeignHost => (
                code::SERVER,
                "The Host header is not a name of this server. The operator names it with \
                 listen.public_url."
                    .into(),
            ),
            Self::Unauthenticated(refusal) => (code::SERVER, refusal.client_text().into()),
            Self::NotAcceptable { needed } => (
                code::SERVER,
                format!("Not acceptable: the Accept header must allow {needed}.").into(),
            ),
            Self::StreamsNeedHttp11 => (code::SERVER, "Event streams need HTTP/1.1.".into()),
            Self::UnsupportedMediaType => {
                (code::SERVER, "The body must be JSON: Content-Type: application/json.".into())
            }
            Self::UnsupportedRevision { asked } => (
                code::SERVER,
                format!(
                    "Unsupported MCP-Protocol-Version {asked:?}. Supported: 2025-11-25, \
                     2025-06-18, 2025-03-26, 2024-11-05."
                )
                .into(),
            ),
            Self::SessionRequired => (
                code::SERVER,
                "Mcp-Session-Id is required. Send initialize first and repeat the id it returns."
                    .into(),
            ),
            Self::UnknownSession => {
                (code::SESSION_NOT_FOUND, "Session not found. Send initialize again.".into())
            }
            Self::StreamTaken => (
                code::SERVER,
                "The session's event stream is open on another connection. Present its \
                 Last-Event-ID to take it over, or ask again."
                    .into(),
            ),
            Self::TooManySessions { .. } => (
                code::SERVER,
                "The tenant has as many sessions as it may. End one with DELETE or wait.".into(),
            ),
            Self::Limited(limited) => return over_limit(limited),
            Self::AuditUnavailable => (
                code::SERVER,
                "The request was refused because it cannot be recorded right now. Nothing was \
                 done: try again."
                    .into(),
            ),
            Self::Busy => (code::SERVER, "The server is at its limit. Try again shortly.".into()),
            Self::TenantBusy => (
                code::SERVER,
                "Too many large requests of this tenant wait already; nothing was done. Try again \
                 shortly."
                    .into(),
            ),
            Self::StoreUnavailable => (
                code::SERVER,
                "Sessions cannot be read or kept right now. The session is not lost: try again."
                    .into(),
            ),
            Self::Message(error) => return error.clone(),
            Self::ModernMethod { method } => {
                (code::METHOD_NOT_FOUND, format!("Method not found: {method}").into())
            }
        };
        RpcError { code, message, data: None }
    }

    /// The reason as the log names it: stable, bounded, without anything of the client's.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NoSuchPath => "no_such_path",
            Self::NoSuchClientApplication => "no_such_client_application",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::ForeignOrigin => "foreign_origin",
            Self::ForeignHost => "foreign_host",
            Self::Unauthenticated(refusal) => refusal.reason(),
            Self::NotAcceptable { .. } => "not_acceptable",
            Self::StreamsNeedHttp11 => "streams_need_http_11",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::UnsupportedRevision { .. } => "unsupported_revision",
            Self::SessionRequired => "session_required",
            Self::UnknownSession => "unknown_session",
            Self::StreamTaken => "stream_taken",
            Self::TooManySessions { .. } => "too_many_sessions",
            Self::Limited(limited) => limited.reason().as_str(),
            Self::AuditUnavailable => "audit_unavailable",
            Self::Busy => "busy",
            Self::TenantBusy => "tenant_busy",
            Self::StoreUnavailable => "store_unavailable",
            Self::Message(_) => "bad_message",
            Self::ModernMethod { .. } => "modern_method",
        }
    }

    /// Headers this refusal carries besides those of every answer.
    pub(crate) fn headers(&self) -> Option<(&'static str, Cow<'static, str>)> {
        match self {
            Self::MethodNotAllowed { allow } => Some(("Allow", (*allow).into())),
            Self::Unauthenticated(refusal) => {
                Some(("WWW-Authenticate", refusal.challenge().into()))
            }
            Self::TooManySessions { retry_after_seconds } => {
                Some(("Retry-After", retry_after_seconds.to_string().into()))
            }
            Self::Limited(limited) => {
                Some(("Retry-After", limited.retry_after_seconds().to_string().into()))
            }
            Self::AuditUnavailable | Self::Busy | Self::TenantBusy | Self::StoreUnavailable => {
                Some(("Retry-After", "1".into()))
            }
            _ => None,
        }
    }
}

/// What is answered in place of a result to a request that is over a limit.
pub(crate) fn over_limit(limited: &Limited) -> RpcError {
    let data = format!(
        "{{\"reason\":\"{}\",\"level\":\"{}\",\"limit\":\"{}\",\"retryAfterSeconds\":{}}}",
        limited.reason().as_str(),
        limited.level.as_str(),
        limited.class.as_str(),
        limited.retry_after_seconds()
    );
    RpcError::new(code::SERVER, limited.text()).with_data(data)
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self::Message(error)
    }
}

impl From<WorkError> for Refusal {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::ShareFull => Self::TenantBusy,
            WorkError::Full | WorkError::Panicked | WorkError::Stopped => Self::Busy,
        }
    }
}
