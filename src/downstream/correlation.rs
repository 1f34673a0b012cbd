//! Which ids of a call its API is told, and under which names: the connection says.

use crate::catalog::CompiledConnection;
use crate::telemetry::{TraceParent, TraceText};

use super::rest::CallEnvironment;

/// The text of an execution id.
type IdText = [u8; crate::telemetry::ExecutionId::TEXT_BYTES];

/// The headers that tie a call to what caused it; their values live here while the request is
/// written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Forwarded<'a> {
    id: Option<(&'a str, Id<'a>)>,
    trace: Option<TraceText>,
}

#[derive(Debug, Clone, Copy)]
enum Id<'a> {
    External(&'a str),
    Execution(IdText),
}

impl<'a> Forwarded<'a> {
    /// What the connection wants of this call's ids.
    pub(crate) fn of(
        _connection: &'a CompiledConnection,
        environment: &CallEnvironment<'a>,
    ) -> Self {
        let id = environment.external_id.map(|id| ("X-Correlation-Id", Id::External(id)));
        Self { id, trace: None }
    }

    /// Names and values.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let id = self.id.as_ref().map(|(name, id)| (*name, id.as_str()));
        let trace = self.trace.as_ref().map(|trace| ("traceparent", trace.as_str()));
        id.into_iter().chain(trace)
    }
}

impl Id<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::External(id) => id,
            // Digits and hyphens only.
            Self::Execution(text) => std::str::from_utf8(text).unwrap_or_default(),
        }
    }
}
