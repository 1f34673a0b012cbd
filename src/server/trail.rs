//! What is known of one request, from its first step to its audit record.
//!
//! A trail is begun before anything is decided and closed when the answer is known. One that is
//! dropped open was of a request whose client went away or cancelled: it is recorded as that. So
//! every request that is of a kind to be recorded leaves exactly one record, whatever happens to
//! it on the way.

use std::{
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use super::core::Core;
use crate::{
    catalog::{SideEffect, Trust, View, ViewTool},
    governance::{Class, Handles, Limited},
    identity::Caller,
    mcp::{Method, Revision},
    telemetry::ExecutionId,
};

/// What a request came over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE.
    Legacy,
    /// Plain HTTP: the REST facade.
    Rest,
}

impl Channel {
    /// As records name it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Streamable => "streamable_http",
            Self::Legacy => "http_sse",
            Self::Rest => "rest",
        }
    }
}

/// What kind of request a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallType {
    ToolExecution,
    ToolDiscovery,
    SchemaDiscovery,
    ResourceList,
    ResourceRead,
    PromptList,
    PromptGet,
    Session,
    RestInvocation,
}

impl CallType {
    /// The kind of a JSON-RPC method; `None` for what leaves no record.
    pub(crate) fn of(method: Method) -> Option<Self> {
        Some(match method {
            Method::ToolsCall => Self::ToolExecution,
            Method::ToolsList => Self::ToolDiscovery,
            Method::ResourcesList | Method::ResourceTemplatesList => Self::ResourceList,
            Method::ResourcesRead => Self::ResourceRead,
            Method::PromptsList => Self::PromptList,
            Method::PromptsGet => Self::PromptGet,
            Method::Initialize => Self::Session,
            Method::Ping | Method::Initialized | Method::Cancelled | Method::Other => return None,
        })
    }

    /// As records name it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::ToolExecution => "tool_execution",
            Self::ToolDiscovery => "tool_discovery",
            Self::SchemaDiscovery => "schema_discovery",
            Self::ResourceList => "resource_list",
            Self::ResourceRead => "resource_read",
            Self::PromptList => "prompt_list",
            Self::PromptGet => "prompt_get",
            Self::Session => "session",
            Self::RestInvocation => "rest_invocation",
        }
    }
}

/// Who asks, and over what: what all records of one HTTP request have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) core: &'a Rc<Core>,
    pub(crate) view: &'a Arc<View>,
    pub(crate) caller: Caller,
    pub(crate) trust: Trust,
    pub(crate) limits: &'a Arc<Handles>,
    pub(crate) channel: Channel,
    /// Unknown where a session has not agreed on one, and on the REST facade.
    pub(crate) revision: Option<Revision>,
    /// The accepted `X-Correlation-Id`.
    pub(crate) external_id: Option<&'a str>,
}

impl Origin<'_> {
    /// Takes one unit of a class of limits.
    pub(crate) fn take(&self, class: Class) -> Result<(), Limited> {
        self.limits.take(class, 1, self.core.shared.now_ns())
    }
}

/// One request on its way.
pub(crate) struct Trail {
    pub(crate) core: Rc<Core>,
    pub(crate) view: Arc<View>,
    pub(crate) caller: Caller,
    pub(crate) trust: Trust,
    pub(crate) limits: Arc<Handles>,
    channel: Channel,
    revision: Option<Revision>,
    pub(crate) external_id: Option<Box<str>>,
    pub(crate) execution_id: ExecutionId,
    pub(crate) at_ms: u64,
    pub(crate) started: Instant,
    pub(crate) call_type: CallType,
    /// The tool, once it is found.
    pub(crate) tool: Option<Arc<ViewTool>>,
    /// What the call does to the world, once it is known.
    pub(crate) side_effect: Option<SideEffect>,
    pub(crate) request_bytes: usize,
    pub(crate) repairs: u32,
    /// The status of the API's answer, and the time it took.
    pub(crate) downstream: Option<(Option<u16>, Duration)>,
    is_allowed: bool,
    reason: &'static str,
    /// Why a policy that only observes would have refused the request.
    pub(crate) observed: Option<&'static str>,
    is_open: bool,
}

/// The reason of what nothing spoke against.
const ALLOWED: &str = "allowed";
/// The reason of what ended because its client wanted no answer any more.
const CANCELLED: &str = "cancelled";

impl Trail {
    pub(crate) fn begin(origin: &Origin<'_>, call_type: CallType) -> Self {
        Self {
            core: origin.core.clone(),
            view: origin.view.clone(),
            caller: origin.caller,
            trust: origin.trust,
            limits: origin.limits.clone(),
            channel: origin.channel,
            revision: origin.revision,
            external_id: origin.external_id.map(Box::from),
            execution_id: origin.core.next_execution_id(),
            at_ms: origin.core.clock.now_ms(),
            started: Instant::now(),
            call_type,
            tool: None,
            side_effect: None,
            request_bytes: 0,
            repairs: 0,
            downstream: None,
            is_allowed: true,
            reason: ALLOWED,
            observed: None,
            is_open: true,
        }
    }

    /// What was decided about the request, and why.
    pub(crate) fn decided(&mut self, is_allowed: bool, reason: &'static str) {
        self.is_allowed = is_allowed;
        self.reason = reason;
    }

    /// The request is refused.
    pub(crate) fn refuse(mut self, reason: &'static str) {
        self.decided(false, reason);
        self.close(0);
    }

    /// The answer is known and has so many bytes.
    pub(crate) fn close(mut self, answer_bytes: usize) {
        self.record(answer_bytes);
    }

    fn record(&mut self, answer_bytes: usize) {
        self.is_open = false;
        tracing::debug!(
            execution_id = %self.execution_id,
            external_id = self.external_id.as_deref(),
            tenant = self.view.tenant.as_str(),
            client_application = self.view.client_application.as_str(),
            caller = %self.caller,
            channel = self.channel.text(),
            revision = self.revision.map(Revision::text),
            kind = self.call_type.text(),
            tool = self.tool.as_ref().map(|tool| tool.name.as_str()),
            allowed = self.is_allowed,
            reason = self.reason,
            status = self.downstream.and_then(|(status, _)| status),
            request_bytes = self.request_bytes,
            answer_bytes,
            repairs = self.repairs,
            microseconds = self.started.elapsed().as_micros() as u64,
            at_ms = self.at_ms,
            "request answered"
        );
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if self.is_open {
            self.reason = CANCELLED;
            self.record(0);
        }
    }
}
