//! Which ids of a call its API is told, and under which names: the connection says.

use crate::catalog::{CompiledConnection, CompiledTool};
use crate::telemetry::{ExecutionId, TraceParent, TraceText};

use super::rest::CallEnvironment;

/// The headers that tie a call to what caused it, and those of the client that go on. Their values
/// live here while the request is written, so nothing is allocated for them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Forwarded<'a> {
    id: Option<(&'a str, Id<'a>)>,
    /// A key of the call's own, the same for all its attempts.
    key: Option<(&'a str, Id<'a>)>,
    trace: Option<TraceText>,
    carried: &'a [(Box<str>, Box<str>)],
}

#[derive(Debug, Clone, Copy)]
enum Id<'a> {
    External(&'a str),
    Execution([u8; ExecutionId::TEXT_BYTES]),
}

impl<'a> Forwarded<'a> {
    /// What the connection wants of this call's ids, and the key that its tool sends.
    pub(crate) fn of(
        connection: &'a CompiledConnection,
        tool: &'a CompiledTool,
        environment: &CallEnvironment<'a>,
    ) -> Self {
        let key = tool.idempotency_key_header.as_deref();
        let key = key.map(|name| (name, Id::Execution(environment.execution_id.to_text())));
        Self { key, ..Self::of_connection(connection, environment) }
    }

    /// What the connection wants of this call's ids.
    pub(crate) fn of_connection(
        connection: &'a CompiledConnection,
        environment: &CallEnvironment<'a>,
    ) -> Self {
        let id = connection.correlation.as_ref().and_then(|header| {
            let id = if header.is_execution_id {
                Id::Execution(environment.execution_id.to_text())
            } else {
                Id::External(environment.external_id?)
            };
            Some((&*header.name, id))
        });
        let trace = connection
            .traceparent
            .then(|| TraceParent::of(environment.execution_id, environment.trace).text());
        Self { id, key: None, trace, carried: environment.carried.headers() }
    }

    /// Names and values.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let ids = [&self.id, &self.key].into_iter().flatten();
        let ids = ids.map(|(name, id)| (*name, id.as_str()));
        let trace = self.trace.as_ref().map(|trace| ("traceparent", trace.as_str()));
        let carried = self.carried.iter().map(|(name, value)| (&**name, &**value));
        ids.chain(trace).chain(carried)
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
