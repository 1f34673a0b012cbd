//! Every way the runtime plane refuses a request, in one table: HTTP status, JSON-RPC code, the
//! text a client may see, the headers it needs, and the reason for the log.

use std::borrow::Cow;

use crate::{
    governance::Limited,
    identity,
    rpc::{OwnedId, Reply, RpcError, code},
    rt::WorkError,
};

/// A request that is not served, and why.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No such path.
    NoSuchPath,
    /// The operator names a client application the catalog does not have.
    NoSuchClientApplication,
    /// The operator asks with a trust that there is not.
    UnknownTrust,
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
    /// A request of the era without sessions that is not served, with the id its client knows it by.
    Request(Box<(OwnedId, RpcError)>),
}

impl Refusal {
    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::NoSuchPath | Self::NoSuchClientApplication | Self::UnknownSession => 404,
            Self::Request(refused) => status_of(&refused.1).unwrap_or(400),
            Self::MethodNotAllowed { .. } => 405,
            Self::ForeignOrigin | Self::ForeignHost => 403,
            Self::Unauthenticated(refusal) => refusal.status(),
            Self::NotAcceptable { .. } => 406,
            Self::UnsupportedMediaType => 415,
            Self::StreamsNeedHttp11 => 505,
            Self::UnknownTrust
            | Self::UnsupportedRevision { .. }
            | Self::SessionRequired
            | Self::Message(_) => 400,
            Self::StreamTaken => 409,
            Self::TooManySessions { .. } | Self::Limited(_) | Self::TenantBusy => 429,
            Self::AuditUnavailable | Self::Busy | Self::StoreUnavailable => 503,
        }
    }

    /// The JSON-RPC error of the body.
    pub(crate) fn error(&self) -> RpcError {
        match self {
            Self::Limited(limited) => over_limit(limited),
            Self::Message(error) => error.clone(),
            Self::Request(refused) => refused.1.clone(),
            other => RpcError { code: other.code(), message: other.text(), data: None },
        }
    }

    /// The answer: it names the request where its client must know which one is meant.
    pub(crate) fn reply(&self) -> Reply {
        match self {
            Self::Request(refused) => Reply::new(refused.0.clone(), Err(refused.1.clone())),
            other => Reply::without_id(other.error()),
        }
    }

    fn code(&self) -> i32 {
        match self {
            Self::UnknownSession => code::SESSION_NOT_FOUND,
            Self::Message(error) => error.code,
            Self::Request(refused) => refused.1.code,
            _ => code::SERVER,
        }
    }

    /// What the client reads: what is wrong, and what to do.
    fn text(&self) -> Cow<'static, str> {
        match self {
            Self::MethodNotAllowed { allow } => {
                format!("Method not allowed here. Allowed: {allow}.").into()
            }
            Self::Unauthenticated(refusal) => refusal.client_text().into(),
            Self::NotAcceptable { needed } => {
                format!("Not acceptable: the Accept header must allow {needed}.").into()
            }
            Self::UnsupportedRevision { asked } => format!(
                "Unsupported MCP-Protocol-Version {asked:?}. Supported: 2025-11-25, 2025-06-18, \
                 2025-03-26, 2024-11-05."
            )
            .into(),
            Self::Limited(limited) => limited.text().into(),
            Self::Message(error) => error.message.clone(),
            Self::Request(refused) => refused.1.message.clone(),
            other => other.fixed_text().into(),
        }
    }

    /// The text of a refusal that is always the same.
    fn fixed_text(&self) -> &'static str {
        match self {
            Self::NoSuchPath => {
                "No such path. An MCP endpoint is at /runtime/{tenant}/{client}/mcp."
            }
            Self::NoSuchClientApplication => {
                "The catalog has no such tenant and client application. `ringway status` lists \
                 those it has."
            }
            Self::UnknownTrust => "X-Trust must be low, medium or high.",
            Self::ForeignOrigin => {
                "This Origin may not call this server. The operator allows one with \
                 runtime.allowed_origins or the tenant's allowed_origins."
            }
            Self::ForeignHost => {
                "The Host header is not a name of this server. The operator names it with \
                 listen.public_url."
            }
            Self::StreamsNeedHttp11 => "Event streams need HTTP/1.1.",
            Self::UnsupportedMediaType => "The body must be JSON: Content-Type: application/json.",
            Self::SessionRequired => {
                "Mcp-Session-Id is required. Send initialize first and repeat the id it returns."
            }
            Self::UnknownSession => "Session not found. Send initialize again.",
            Self::StreamTaken => {
                "The session's event stream is open on another connection. Present its \
                 Last-Event-ID to take it over, or ask again."
            }
            Self::TooManySessions { .. } => {
                "The tenant has as many sessions as it may. End one with DELETE or wait."
            }
            Self::AuditUnavailable => {
                "The request was refused because it cannot be recorded right now. Nothing was \
                 done: try again."
            }
            Self::TenantBusy => {
                "Too many large requests of this tenant wait already; nothing was done. Try again \
                 shortly."
            }
            Self::StoreUnavailable => {
                "Sessions cannot be read or kept right now. The session is not lost: try again."
            }
            Self::Busy
            // Worded by `text`.
            | Self::MethodNotAllowed { .. }
            | Self::Unauthenticated(_)
            | Self::NotAcceptable { .. }
            | Self::UnsupportedRevision { .. }
            | Self::Limited(_)
            | Self::Message(_)
            | Self::Request(_) => "The server is at its limit. Try again shortly.",
        }
    }

    /// The reason as the log names it: stable, bounded, without anything of the client's.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NoSuchPath => "no_such_path",
            Self::NoSuchClientApplication => "no_such_client_application",
            Self::UnknownTrust => "unknown_trust",
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
            Self::Request(refused) => match refused.1.code {
                code::HEADER_MISMATCH => "header_mismatch",
                code::MISSING_CAPABILITY => "missing_capability",
                code::UNSUPPORTED_VERSION => "unsupported_revision",
                code::METHOD_NOT_FOUND => "method_not_found",
                _ => "bad_message",
            },
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

/// The status of a JSON-RPC error that has one of its own in the era without sessions (MCP
/// 2026-07-28, Streamable HTTP); all others are answers like any other.
pub(crate) fn status_of(error: &RpcError) -> Option<u16> {
    match error.code {
        code::METHOD_NOT_FOUND => Some(404),
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION => Some(400),
        _ => None,
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
