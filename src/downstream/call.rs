//! One call in progress: what it asks of whom, and how what happens to it is told.

use std::fmt::Display;
use std::sync::Arc;

use crate::catalog::{CompiledConnection, CompiledTool, ToolKind};
use crate::http::{Known, Method};
use crate::mapping::OutgoingRequest;
use crate::rt::ConnectError;

use super::content::ContentError;
use super::correlation::Forwarded;
use super::error::{CallError, Unreachable};
use super::exchange::{Broken, Budget};
use super::failure::Asked;
use super::pool::{HostKey, Line};
use super::request::Outgoing;
use super::soap::Parts;

pub(crate) struct Call<'a> {
    pub(crate) tool: &'a Arc<CompiledTool>,
    pub(crate) connection: &'a CompiledConnection,
    /// What its answer goes through.
    pub(crate) parts: Parts<'a>,
    pub(crate) request: &'a OutgoingRequest,
    pub(crate) method: Method,
    pub(crate) forwarded: Forwarded<'a>,
    pub(crate) budget: Budget,
    /// Names the connection's host in the pool.
    pub(crate) host_name: &'a str,
}

/// What a tool that calls an API consists of.
pub(crate) fn rest_parts(tool: &CompiledTool) -> Option<Parts<'_>> {
    match &tool.kind {
        ToolKind::Rest { connection, response, soap, .. } => {
            Some(Parts { connection, response, soap: soap.as_deref() })
        }
        ToolKind::Builtin(_) => None,
    }
}

pub(crate) fn asked<'a>(tool: &'a CompiledTool, connection: &'a CompiledConnection) -> Asked<'a> {
    let (tool, connection, headers) =
        (tool.source_name.as_str(), connection.id.as_str(), &*connection.headers);
    Asked { tool, connection, headers }
}

/// Connections that trust different roots do not share sockets.
pub(crate) fn host_name(connection: &CompiledConnection) -> std::borrow::Cow<'_, str> {
    if connection.tls_roots.is_empty() {
        return (&*connection.authority).into();
    }
    let roots = connection.tls_roots.iter().map(|path| path.to_string_lossy());
    let parts: Vec<_> = std::iter::once((&*connection.authority).into()).chain(roots).collect();
    parts.join("\n").into()
}

impl<'a> Call<'a> {
    pub(crate) fn host(&self) -> HostKey<'a> {
        HostKey { is_tls: self.connection.is_https, name: self.host_name }
    }

    pub(crate) fn asked(&self) -> Asked<'a> {
        asked(self.tool, self.connection)
    }

    pub(crate) fn outgoing<'b>(&'b self, target: &'b str) -> Outgoing<'b> {
        Outgoing {
            method: self.method.as_str(),
            host: &self.connection.authority,
            target,
            connection_headers: &self.connection.headers,
            mapped_headers: &self.request.headers,
            forwarded: &self.forwarded,
            content_type: self.request.content_type.as_deref(),
            body: self.request.body.as_deref(),
        }
    }

    /// Whether sending the request twice does what sending it once does (RFC 9110 9.2.2).
    pub(crate) fn is_repeatable(&self) -> bool {
        matches!(
            self.method,
            Method::Get | Method::Head | Method::Put | Method::Delete | Method::Options
        )
    }

    fn connection_id(&self) -> String {
        self.connection.id.as_str().to_owned()
    }

    pub(crate) fn broken(&self, broken: Broken) -> CallError {
        let (connection, repeatable) = (self.connection_id(), self.is_repeatable());
        match broken {
            Broken::TimedOut(awaited) => {
                let limit_ms = self.budget.limit_of(awaited).as_millis();
                let limit_ms = u64::try_from(limit_ms).unwrap_or(u64::MAX);
                CallError::TimedOut { connection, awaited, limit_ms, repeatable }
            }
            Broken::Closed { answering, is_unsent } => {
                CallError::Closed { connection, answering, repeatable: repeatable || is_unsent }
            }
            Broken::Http(error) => CallError::Refused { connection, reason: error },
        }
    }

    pub(crate) fn unreachable(&self, problem: Unreachable, detail: &dyn Display) -> CallError {
        let detail = detail.to_string();
        CallError::Unreachable { connection: self.connection_id(), problem, detail }
    }

    pub(crate) fn undecodable(&self, source: ContentError) -> CallError {
        CallError::Content { connection: self.connection_id(), source }
    }
}

pub(crate) fn problem_of(error: &ConnectError) -> Unreachable {
    match error {
        ConnectError::Resolve { .. } => Unreachable::Unresolved,
        ConnectError::Refused { .. } => Unreachable::Blocked,
        ConnectError::Connect { .. } => Unreachable::Unconnected,
        ConnectError::Tls { .. } => Unreachable::Untrusted,
        ConnectError::TimedOut { .. } => Unreachable::TimedOut,
    }
}

/// Where a redirect of `line`'s answer leads, if that is another path of the same origin.
pub(crate) fn redirect(
    line: &Line,
    connection: &CompiledConnection,
    target: &str,
) -> Option<String> {
    if !matches!(line.answers.status(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = std::str::from_utf8(line.answers.header(Known::Location)?).ok()?;
    let scheme = if connection.is_https { "https" } else { "http" };
    let asked = url::Url::parse(&[scheme, "://", &connection.authority, target].concat()).ok()?;
    let next = asked.join(location).ok()?;
    let stays = next.origin() == asked.origin() && next.username().is_empty();
    stays.then(|| next[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
}
