//! What is known of one request, from its first step to its audit record.
//!
//! A trail is begun before anything is decided and closed when the answer is known. One that is
//! dropped open was of a request whose client went away or cancelled: it is recorded as that. So
//! every request that is of a kind to be recorded leaves exactly one record, whatever happens to
//! it on the way. Where the audit is strict, room for the record is kept from the beginning, and a
//! request without room is refused.

use std::{
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{core::Core, invoke::shortened, redact, refusal::Refusal};
use crate::{
    audit::{ALLOWED, Asker, CallType, Decision, Outcome, Payload, Record, Reservation, Transport},
    catalog::{SideEffect, Trust, View, ViewTool},
    governance::{Class, Handles, Limited},
    identity::Caller,
    json::{Kind, Raw},
    mcp::{Method, Revision, ToolOutcome},
    rpc::{Message, ResultBody},
    sessions::{Session, SessionKey, SessionRecord},
    telemetry::ExecutionId,
};

/// The kind of record a JSON-RPC method leaves; `None` for those that leave none.
pub(crate) fn call_type_of(method: Method) -> Option<CallType> {
    Some(match method {
        Method::ToolsCall => CallType::ToolExecution,
        Method::ToolsList => CallType::ToolDiscovery,
        Method::ResourcesList | Method::ResourceTemplatesList => CallType::ResourceList,
        Method::ResourcesRead | Method::Subscribe | Method::Unsubscribe => CallType::ResourceRead,
        Method::PromptsList => CallType::PromptList,
        Method::PromptsGet => CallType::PromptGet,
        Method::Complete => CallType::Completion,
        Method::Initialize | Method::Discover | Method::Listen => CallType::Session,
        Method::Ping
        | Method::SetLevel
        | Method::Initialized
        | Method::Cancelled
        | Method::RootsChanged
        | Method::Other => return None,
    })
}

/// What a request asks for by name, where that is no tool.
pub(crate) fn subject(method: Method, message: &Message<'_>) -> Option<Box<str>> {
    let key = match method {
        Method::ResourcesRead | Method::Subscribe | Method::Unsubscribe => "uri",
        Method::PromptsGet | Method::ToolsCall => "name",
        _ => return None,
    };
    let params = message.params().filter(|params| params.kind() == Kind::Object)?;
    let name = params.get(key)?.as_str()?;
    Some(shortened(&name))
}

/// Who asks, and over what: what all records of one HTTP request have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) core: &'a Rc<Core>,
    pub(crate) view: &'a Arc<View>,
    pub(crate) caller: Caller,
    pub(crate) trust: Trust,
    pub(crate) limits: &'a Arc<Handles>,
    pub(crate) asker: &'a Rc<Asker>,
    pub(crate) transport: Transport,
    pub(crate) session: Option<SessionKey>,
    /// Unknown where a session has not agreed on one, and on the REST facade.
    pub(crate) revision: Option<Revision>,
    /// The accepted `X-Correlation-Id`.
    pub(crate) external_id: Option<&'a str>,
    /// When the HTTP request was whole, and what the wall clock showed then.
    pub(crate) arrived: Instant,
    pub(crate) arrived_ms: u64,
}

impl Origin<'_> {
    /// Takes one unit of a class of limits.
    pub(crate) fn take(&self, class: Class) -> Result<(), Limited> {
        self.limits.take(class, 1, self.core.shared.ns_at(self.arrived))
    }
}

/// One request on its way.
pub(crate) struct Trail {
    pub(crate) core: Rc<Core>,
    pub(crate) view: Arc<View>,
    pub(crate) caller: Caller,
    pub(crate) trust: Trust,
    pub(crate) limits: Arc<Handles>,
    asker: Rc<Asker>,
    transport: Transport,
    session: Option<SessionKey>,
    revision: Option<Revision>,
    pub(crate) external_id: Option<Box<str>>,
    pub(crate) execution_id: ExecutionId,
    pub(crate) at_ms: u64,
    pub(crate) started: Instant,
    /// The time from then to the answer, once that is known.
    pub(crate) took: Option<Duration>,
    pub(crate) call_type: CallType,
    method: &'static str,
    /// What was asked for by name, where it is no tool of the view.
    pub(crate) asked: Option<Box<str>>,
    /// The tool, once it is found.
    pub(crate) tool: Option<Arc<ViewTool>>,
    /// What the call does to the world, once it is known.
    pub(crate) side_effect: Option<SideEffect>,
    /// The arguments as the client's user is shown them, where the tool wants the user asked.
    pub(crate) shown_arguments: Option<Box<str>>,
    pub(crate) request_bytes: usize,
    pub(crate) repairs: u32,
    /// The status of the API's answer, and the time it took.
    pub(crate) downstream: Option<(Option<u16>, Duration)>,
    /// How long the API asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// Whether the result was cut to the tool's budget.
    pub(crate) cut: bool,
    decision: Decision,
    reason: &'static str,
    /// Why a policy that only observes would have refused the request.
    pub(crate) observed: Option<&'static str>,
    outcome: Outcome,
    payloads: Option<Box<Payloads>>,
    /// Room for the record; taken when it is written.
    reservation: Option<Reservation>,
}

/// What is kept of a request and its answer, redacted already.
#[derive(Debug, Default)]
struct Payloads {
    arguments: Option<Vec<u8>>,
    result: Option<Vec<u8>>,
    listed: Option<ResultBody>,
}

/// The reason of what ended because its client wanted no answer any more.
const CANCELLED: &str = "cancelled";

impl Trail {
    /// Begins the trail of a request.
    ///
    /// # Errors
    /// The audit is strict and has no room for the record.
    pub(crate) fn begin(
        origin: &Origin<'_>,
        call_type: CallType,
        method: &'static str,
    ) -> Result<Self, Refusal> {
        let reservation = origin.core.audit.reserve().map_err(|refused| {
            origin.core.log_unrecorded(refused);
            Refusal::AuditUnavailable
        })?;
        let at_ms = origin.arrived_ms;
        Ok(Self {
            core: origin.core.clone(),
            view: origin.view.clone(),
            caller: origin.caller,
            trust: origin.trust,
            limits: origin.limits.clone(),
            asker: origin.asker.clone(),
            transport: origin.transport,
            session: origin.session,
            revision: origin.revision,
            external_id: origin.external_id.map(Box::from),
            execution_id: origin.core.next_execution_id(at_ms),
            at_ms,
            started: origin.arrived,
            took: None,
            call_type,
            method,
            asked: None,
            tool: None,
            side_effect: None,
            shown_arguments: None,
            request_bytes: 0,
            repairs: 0,
            downstream: None,
            retry_after: None,
            cut: false,
            decision: Decision::Allowed,
            reason: ALLOWED,
            observed: None,
            // What it is until its answer is known.
            outcome: Outcome::Cancelled,
            payloads: None,
            reservation: Some(reservation),
        })
    }

    /// The request is refused for this reason.
    pub(crate) fn denied(&mut self, reason: &'static str) {
        self.decision = Decision::Denied;
        self.reason = reason;
    }

    /// The request is allowed for this reason.
    pub(crate) fn allowed(&mut self, reason: &'static str) {
        self.decision = Decision::Allowed;
        self.reason = reason;
    }

    /// The session the request came in.
    pub(crate) fn session(&self) -> Option<SessionKey> {
        self.session
    }

    /// What was asked for by name and is no tool of the view.
    pub(crate) fn asked(&self) -> &str {
        self.asked.as_deref().unwrap_or_default()
    }

    /// The request is refused, and that is all there is to say of it.
    pub(crate) fn refuse(mut self, reason: &'static str) {
        self.denied(reason);
        self.close(Outcome::Error, 0);
    }

    /// The session that the request opened, and what was agreed on.
    pub(crate) fn opened(&mut self, session: &Session) {
        self.session = Some(session.key());
        self.revision = Some(session.revision());
    }

    /// Keeps what is to be kept of the arguments of a call.
    pub(crate) fn keep_arguments(&mut self, kept: impl FnOnce() -> Option<Vec<u8>>) {
        if let Some(kept) = kept() {
            self.payloads.get_or_insert_default().arguments = Some(kept);
        }
    }

    /// Keeps what is to be kept of the result of a call.
    pub(crate) fn keep_result_as(&mut self, kept: Vec<u8>) {
        self.payloads.get_or_insert_default().result = Some(kept);
    }

    /// Keeps the result of a call whose tool asks for it, unless it is kept already.
    pub(crate) fn keep_result(&mut self, outcome: &ToolOutcome) {
        let Some(tool) = self.tool.as_ref().filter(|tool| tool.log_payloads) else { return };
        if self.payloads.as_ref().is_some_and(|kept| kept.result.is_some()) {
            return;
        }
        let kept = match outcome {
            ToolOutcome::Success { structured_json: Some(json), .. } => Some(kept_json(tool, json)),
            ToolOutcome::Success { structured_json: None, text } => {
                text.as_deref().map(|text| redact::text(text, &tool.redact))
            }
            ToolOutcome::Relayed(relayed) => match (relayed.structured(), relayed.text()) {
                (Some(json), _) => Some(redact::json(json, &tool.redact)),
                (None, Some(text)) => Some(redact::text(&text, &tool.redact)),
                (None, None) => Some(redact::json(relayed.result.as_raw(), &tool.redact)),
            },
            ToolOutcome::File(file) => {
                let told = format!("{} bytes of {}", file.bytes.len(), file.media_type);
                Some(redact::text(&told, &[]))
            }
            ToolOutcome::Failure { text } | ToolOutcome::InvalidArguments { text } => {
                Some(redact::text(text, &tool.redact))
            }
        };
        self.payloads.get_or_insert_default().result = kept;
    }

    /// Keeps the list that was answered, where a tool of the view asks for payloads.
    pub(crate) fn keep_listed(&mut self, listed: &ResultBody) {
        if self.view.logs_payloads() {
            self.payloads.get_or_insert_default().listed = Some(listed.clone());
        }
    }

    /// The answer is known and has so many bytes.
    pub(crate) fn close(mut self, outcome: Outcome, answer_bytes: usize) {
        self.outcome = outcome;
        self.record(answer_bytes);
    }

    fn record(&mut self, answer_bytes: usize) {
        let Some(reservation) = self.reservation.take() else { return };
        let elapsed = self.took.unwrap_or_else(|| self.started.elapsed());
        let kept = self.payloads.as_deref();
        let listed = kept.and_then(|kept| kept.listed.as_ref()).map(ResultBody::as_bytes);
        let arguments = kept.and_then(|kept| kept.arguments.as_deref()).map(Payload);
        let result = kept.and_then(|kept| kept.result.as_deref()).map(Payload);
        let record = Record {
            correlation: self.external_id.as_deref(),
            revision: self.revision.map(Revision::text),
            session: self.session.as_ref().map(SessionKey::as_bytes),
            subject: self.tool.as_deref().map(ViewTool::subject),
            asked: self.asked.as_deref(),
            side_effect: self.side_effect.map(SideEffect::as_str),
            decision: self.decision,
            reason: self.reason,
            observed: self.observed,
            outcome: self.outcome,
            downstream_status: self.downstream.and_then(|(status, _)| status),
            total_us: micros(elapsed),
            downstream_us: self.downstream.map(|(_, elapsed)| micros(elapsed)),
            request_bytes: self.request_bytes as u64,
            response_bytes: answer_bytes as u64,
            repairs: self.repairs,
            cut: self.cut,
            arguments,
            result,
            listed: listed.as_deref().map(Payload),
            ..Record::new(
                self.at_ms,
                self.execution_id,
                &self.asker,
                self.transport,
                self.call_type,
                self.method,
            )
        };
        // What does not fit is counted there.
        let _ = self.core.audit.append_reserved(reservation, &record);
        tracing::debug!(
            execution_id = %self.execution_id,
            tenant = self.view.tenant.as_str(),
            client_application = self.view.client_application.as_str(),
            method = record.method,
            tool = self.tool.as_ref().map(|tool| tool.name.as_str()).or(record.asked),
            decision = record.decision.as_str(),
            reason = record.reason,
            outcome = record.outcome.as_str(),
            microseconds = record.total_us,
            "request answered"
        );
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if self.reservation.is_some() && self.decision == Decision::Allowed {
            self.reason = CANCELLED;
        }
        self.record(0);
    }
}

/// Who asks, as records say it: worked out when a connection's first request is let in.
pub(crate) fn asker(view: &View, caller: Caller, trust: Trust) -> Rc<Asker> {
    let (tenant, client) = (view.tenant.as_str(), view.client_application.as_str());
    Rc::new(Asker::new(tenant, client, &caller.to_string(), Some(trust.as_str())))
}

/// Records the end of a session, whoever ended it.
pub(crate) fn session_ended(
    core: &Core,
    key: SessionKey,
    session: &SessionRecord,
    end: &SessionEnd<'_>,
) {
    let (tenant, client) = (session.tenant(), session.client_application());
    let asker = Asker::new(tenant, client, session.caller(), None);
    let at_ms = core.clock.now_ms();
    let record = Record {
        correlation: end.external_id,
        revision: Some(end.revision.text()),
        session: Some(key.as_bytes()),
        ..Record::new(
            at_ms,
            core.next_execution_id(at_ms),
            &asker,
            end.transport,
            CallType::Session,
            end.method,
        )
    };
    let _ = core.audit.append(&record);
}

/// What is kept of arguments, where their tool asks for it.
pub(crate) fn kept_arguments(tool: &ViewTool, arguments: Raw<'_>) -> Option<Vec<u8>> {
    tool.log_payloads.then(|| redact::json(arguments, &tool.redact))
}

/// What is kept of a result, whose tool asks for it.
pub(crate) fn kept_json(tool: &ViewTool, json: &[u8]) -> Vec<u8> {
    redact::bytes(json, &tool.redact)
}

/// What is kept of arguments that the tool does not take, where it asks for it.
pub(crate) fn kept_invalid_arguments(tool: &ViewTool, arguments: Raw<'_>) -> Option<Vec<u8>> {
    tool.log_payloads.then(|| redact::invalid(arguments, &tool.redact))
}

/// How a session ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionEnd<'a> {
    /// In the place of a method: `session/end`, `session/expire`.
    pub(crate) method: &'static str,
    pub(crate) transport: Transport,
    pub(crate) revision: Revision,
    pub(crate) external_id: Option<&'a str>,
}

fn micros(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}
