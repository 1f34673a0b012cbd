//! What a call takes of the request that caused it, which it outlives.

use std::rc::Rc;

use super::{conversation::Conversation, input_required::Continued, invoke::Partner, trail::Trail};
use crate::{
    catalog::{CompiledConnection, ToolKind, UpstreamServer, ViewTool},
    downstream::{CallEnvironment, Carried, Client, Nobody, SessionScope},
    http::{Known, RequestView},
    telemetry::TraceParent,
};

/// What a call takes with it.
#[derive(Debug, Default)]
pub(super) struct Along {
    pub(super) trace: Option<TraceParent>,
    pub(super) carried: Carried,
    /// The way to the client while the request runs.
    pub(super) conversation: Option<Rc<Conversation>>,
    /// What the client answers to what its upstream asked before.
    pub(super) continues: Option<Continued>,
}

impl Along {
    /// For a call of a tool. Most calls say nothing to their client before they end.
    pub(super) fn of_tool(
        tool: &ViewTool,
        http: &RequestView<'_>,
        partner: Option<Partner<'_>>,
    ) -> Self {
        let converses = matches!(tool.kind, ToolKind::Upstream(_)) || tool.confirm.is_some();
        Self {
            trace: trace(http),
            carried: Carried::of(tool, http),
            conversation: partner.filter(|_| converses).map(Partner::converse),
            continues: partner.and_then(Partner::continued),
        }
    }

    /// For another request that is passed on.
    pub(super) fn of_connection(
        connection: &CompiledConnection,
        http: &RequestView<'_>,
        partner: Partner<'_>,
    ) -> Self {
        Self {
            trace: trace(http),
            carried: Carried::of_connection(connection, http),
            conversation: Some(partner.converse()),
            continues: partner.continued(),
        }
    }

    /// The client, as an upstream may talk to it.
    pub(super) fn client(&self) -> &dyn Client {
        match &self.conversation {
            Some(conversation) => &**conversation,
            None => &Nobody { is_modern: false },
        }
    }

    pub(super) fn environment<'a>(&'a self, trail: &'a Trail) -> CallEnvironment<'a> {
        CallEnvironment {
            execution_id: trail.execution_id,
            external_id: trail.external_id.as_deref(),
            trace: self.trace,
            carried: &self.carried,
        }
    }
}

/// Whose session at the server a request belongs to.
pub(super) fn scope<'a>(server: &UpstreamServer, trail: &'a Trail) -> SessionScope<'a> {
    match trail.session() {
        _ if server.shares_sessions() => {
            SessionScope::Shared(trail.view.client_application.as_str())
        }
        Some(session) => SessionScope::Session(session),
        None => SessionScope::Request,
    }
}

fn trace(http: &RequestView<'_>) -> Option<TraceParent> {
    http.header(Known::TraceParent).and_then(TraceParent::parse)
}
