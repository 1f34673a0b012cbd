//! A tool call, whatever it came over: JSON-RPC on either transport, or the REST facade.
//!
//! ```text
//! find the tool -> decide -> limits -> arguments: strip, repair, validate
//!               -> run -> cut to the budget -> ending
//! ```
//!
//! The transports differ in how an [`Ending`] is written, and in nothing else. Arguments are judged
//! and the outgoing request is built before anything runs, so a running call owns all it needs and
//! outlives the connection it came on.

use std::sync::Arc;

use super::{running::Registration, trail::Trail};
use crate::{
    catalog::{
        BuiltinTool, DenialReason, Deprecated, DiscoveryMode, HelperTool, Judgement,
        SCHEMA_DISCOVERY, SideEffect, ToolKind, ViewTool,
    },
    downstream::{self, Blame, CallEnvironment, CallError, Called},
    governance::{Level, Limited, Reason},
    json::{self, OwnedRaw, Raw},
    mapping::OutgoingRequest,
    mcp::{self, ToolOutcome},
    rt::{self, Either},
    telemetry::{MethodLabel, OutcomeLabel, TraceParent},
};

/// What a client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolRequest<'a> {
    pub(crate) name: &'a str,
    /// An object; `None` stands for an empty one.
    pub(crate) arguments: Option<Raw<'a>>,
    /// The `traceparent` it came with.
    pub(crate) trace: Option<&'a [u8]>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The tool was run, or what it was given did not fit.
    Ran(ToolOutcome),
    /// The API was called and there was no usable answer.
    Failed(CallError),
    /// The call was not run: no such tool, or none that this caller may call now.
    Refused(Refused),
    /// The call is over a limit, and was not run.
    Limited(Limited),
    /// The client wants no answer any more.
    Cancelled,
}

/// Why a call was not run.
#[derive(Debug)]
pub(crate) enum Refused {
    /// This client application has no such tool, or none that it is shown.
    Unknown,
    /// The tool went longer ago than it stays callable.
    Gone,
    /// A policy does not allow the call.
    Denied(DenialReason),
}

impl Refused {
    /// The reason, for records and metrics.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Unknown => Reason::UnknownTool,
            Self::Gone => Reason::ToolGone,
            Self::Denied(denied) => reason_of(*denied),
        }
    }

    /// What the model reads.
    pub(crate) fn text(&self, name: &str) -> String {
        match self {
            Self::Unknown => mcp::unknown_tool(name).message.into_owned(),
            Self::Gone | Self::Denied(_) => self.reason().text().to_owned(),
        }
    }
}

/// A call that is over. Its trail is closed by whoever writes the answer.
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    /// For the model, besides the result: its tool goes, and what takes its place.
    pub(crate) note: Option<Box<str>>,
    pub(crate) trail: Trail,
}

/// What a request leads to.
pub(crate) enum Begun {
    Ended(Ended),
    /// Something outside this core has to be waited for.
    Running(ToolCall),
}

/// A call with all it needs.
pub(crate) struct ToolCall {
    trail: Trail,
    tool: Arc<ViewTool>,
    note: Option<Box<str>>,
    work: Work,
    trace: Option<TraceParent>,
}

enum Work {
    /// A call of an HTTP API.
    Rest(OutgoingRequest),
    /// One of the appliance's own tools that takes a worker.
    Worker(BuiltinTool),
}

/// Takes a call as far as it goes at once.
pub(crate) fn begin(mut trail: Trail, request: &ToolRequest<'_>) -> Begun {
    let ended = |ending, note, trail| Begun::Ended(Ended { ending, note, trail });
    let Found { tool, note } = match find(&mut trail, request.name) {
        Ok(found) => found,
        Err(refused) => {
            trail.decided(false, refused.reason().as_str());
            return ended(Ending::Refused(refused), None, trail);
        }
    };
    trail.tool = Some(tool.clone());
    let side_effect = tool.side_effect_of(request.arguments);
    trail.side_effect = Some(side_effect);
    if let Err(refused) = decide(&mut trail, &tool, side_effect) {
        trail.decided(false, refused.reason().as_str());
        return ended(Ending::Refused(refused), None, trail);
    }
    let now_ns = trail.core.shared.limit_clock(trail.started);
    if let Err(limited) = trail.limits.take_call(&tool, side_effect, now_ns) {
        trail.decided(false, limited.reason().as_str());
        return ended(Ending::Limited(limited), None, trail);
    }
    let work = match prepare(&mut trail, &tool, request.arguments) {
        Ok(work) => work,
        Err(outcome) => return ended(Ending::Ran(outcome), note, trail),
    };
    let trace = request.trace.and_then(TraceParent::parse);
    Begun::Running(ToolCall { trail, tool, note, work, trace })
}

struct Found {
    tool: Arc<ViewTool>,
    note: Option<Box<str>>,
}

/// The tool a client means by a name: one that is listed, or one that was not long ago.
fn find(trail: &mut Trail, name: &str) -> Result<Found, Refused> {
    if let Some(tool) = trail.view.tool(name) {
        return Ok(Found { tool: tool.clone(), note: None });
    }
    match trail.view.deprecated(name, trail.at_ms) {
        Some(Deprecated::Callable { tool, now_called, .. }) => {
            let note = match now_called {
                Some(now) => {
                    format!("Note: this tool is called `{now}` now. List the tools again.")
                }
                None => "Note: this tool is being removed. List the tools again.".to_owned(),
            };
            Ok(Found { tool, note: Some(note.into()) })
        }
        Some(Deprecated::Gone) => Err(Refused::Gone),
        None => {
            // Whether it is hidden is for the record only.
            trail.tool = trail.view.hidden(name).cloned();
            Err(Refused::Unknown)
        }
    }
}

/// What policies say about this call, by this caller, now.
fn decide(trail: &mut Trail, tool: &ViewTool, side_effect: SideEffect) -> Result<(), Refused> {
    let Judgement { denied, observed } =
        tool.permission.judge(trail.trust, trail.at_ms, side_effect);
    trail.observed = observed.map(|observed| reason_of(observed).as_str());
    denied.map_or(Ok(()), |denied| Err(Refused::Denied(denied)))
}

fn reason_of(denied: DenialReason) -> Reason {
    match denied {
        DenialReason::DeniedByRule { .. } => Reason::DeniedByRule,
        DenialReason::DefaultDeny => Reason::DefaultDeny,
        DenialReason::TrustTooLow { .. } => Reason::TrustTooLow,
        DenialReason::OutsideWindow => Reason::OutsideWindow,
    }
}

/// Judges the arguments and builds what is to be run; the outcome of what is done already, or
/// cannot be.
fn prepare(
    trail: &mut Trail,
    tool: &ViewTool,
    arguments: Option<Raw<'_>>,
) -> Result<Work, ToolOutcome> {
    let stripped = stripped(tool, arguments)?;
    let arguments = stripped.as_ref().map_or(arguments, |stripped| Some(stripped.as_raw()));
    match &tool.kind {
        // Whoever has many sessions: they are not looked through on a core.
        ToolKind::Builtin(builtin @ BuiltinTool::ListSessions) => Ok(Work::Worker(*builtin)),
        ToolKind::Builtin(builtin) => {
            Err(downstream::run_builtin(*builtin, &*trail.core.shared, &trail.view))
        }
        ToolKind::Rest { request, .. } => match request.validate(arguments) {
            Ok(arguments) => {
                trail.repairs = arguments.repairs();
                Ok(Work::Rest(request.build(&arguments)))
            }
            Err(invalid) => Err(ToolOutcome::InvalidArguments { text: invalid.to_string() }),
        },
    }
}

/// The arguments without the one that stands for a schema the list does not show. Alone it is a
/// model that has yet to look at the schema.
fn stripped(tool: &ViewTool, arguments: Option<Raw<'_>>) -> Result<Option<OwnedRaw>, ToolOutcome> {
    if tool.discovery == DiscoveryMode::Full {
        return Ok(None);
    }
    let Some(arguments) = arguments.filter(|all| all.get(SCHEMA_DISCOVERY).is_some()) else {
        return Ok(None);
    };
    let mut out = vec![b'{'];
    for (key, value) in arguments.entries().filter(|(key, _)| **key != *SCHEMA_DISCOVERY) {
        if out.len() > 1 {
            out.push(b',');
        }
        json::write_string(&mut out, &key);
        out.push(b':');
        out.extend_from_slice(value.text().as_bytes());
    }
    if out.len() == 1 {
        let (helper, name) = (HelperTool::DiscoverToolSchema.name(), &tool.name);
        let text = format!(
            "`{SCHEMA_DISCOVERY}` is no argument of this tool: it stands for a schema the list does \
             not show. Call `{helper}` with {{\"tool_id\":\"{name}\"}} first, then call this tool \
             with the arguments its schema has."
        );
        return Err(ToolOutcome::InvalidArguments { text });
    }
    out.push(b'}');
    // Made of parts that were checked already.
    Ok(OwnedRaw::parse(&out).ok())
}

impl ToolCall {
    /// Runs the call to its end, or until a cancellation finds its registration.
    ///
    /// # Cancel safety
    /// Dropping the future ends the call, and is recorded as its cancellation.
    pub(crate) async fn run(mut self, registration: Option<Registration>) -> Ended {
        let ending = match &registration {
            None => self.perform().await,
            Some(registration) => match rt::race(self.perform(), registration.cancelled()).await {
                Either::Left(ending) => ending,
                Either::Right(()) => Ending::Cancelled,
            },
        };
        Ended { ending, note: self.note, trail: self.trail }
    }

    /// The call is not run after all.
    pub(crate) fn refuse(self, reason: &'static str) {
        self.trail.refuse(reason);
    }

    async fn perform(&mut self) -> Ending {
        match &self.work {
            Work::Rest(request) => {
                let environment = CallEnvironment {
                    execution_id: self.trail.execution_id,
                    external_id: self.trail.external_id.as_deref(),
                    trace: self.trace,
                };
                let call = self.trail.core.rest.run(&self.tool.tool, request, &environment);
                let Called { result, status, elapsed } = call.await;
                self.trail.downstream = Some((status, elapsed));
                match result {
                    Ok(outcome) if self.tool.has_output_schema => Ending::Ran(outcome.structured()),
                    Ok(outcome) => Ending::Ran(outcome),
                    Err(error) => Ending::Failed(error),
                }
            }
            Work::Worker(tool) => Ending::Ran(self.on_a_worker(*tool).await),
        }
    }

    async fn on_a_worker(&self, tool: BuiltinTool) -> ToolOutcome {
        let (shared, view) = (self.trail.core.shared.clone(), self.trail.view.clone());
        let work = move || downstream::run_builtin(tool, &*shared, &view);
        let ran = self.trail.core.shared.workers.run(work).await;
        ran.unwrap_or_else(|error| ToolOutcome::Failure {
            text: format!("The server is busy ({error}). Try again shortly."),
        })
    }
}

impl Ended {
    /// Counts the call.
    pub(crate) fn count(&self) {
        let label = match &self.ending {
            Ending::Ran(ToolOutcome::Success { .. }) => OutcomeLabel::Ok,
            Ending::Ran(_) | Ending::Failed(_) => OutcomeLabel::ToolError,
            Ending::Limited(limited) if limited.level == Level::Tool => OutcomeLabel::ToolError,
            Ending::Refused(Refused::Gone | Refused::Denied(_)) => OutcomeLabel::ToolError,
            Ending::Refused(Refused::Unknown) | Ending::Limited(_) => OutcomeLabel::Error,
            Ending::Cancelled => OutcomeLabel::Cancelled,
        };
        let (metrics, elapsed) = (&self.trail.core.metrics, self.trail.started.elapsed());
        metrics.request(MethodLabel::ToolsCall, label, elapsed);
    }
}

/// Where plain HTTP carries the answer: the status that says who is to blame, and a word for how
/// the call ended.
pub(crate) fn status_of(ending: &Ending, downstream: Option<u16>) -> (u16, &'static str) {
    match ending {
        Ending::Ran(ToolOutcome::Success { .. }) => (200, "ok"),
        Ending::Ran(ToolOutcome::InvalidArguments { .. }) => (400, "invalid_arguments"),
        Ending::Ran(ToolOutcome::Failure { .. }) => match downstream {
            // The API knows what it was asked and does not accept it: the arguments are the
            // caller's. What it says of credentials and pace is between the API and this server.
            Some(status) if is_the_callers(status) => (422, "refused_by_api"),
            Some(_) => (502, "api_failed"),
            None => (503, "busy"),
        },
        Ending::Failed(CallError::TimedOut { .. }) => (504, "api_timed_out"),
        Ending::Failed(CallError::Overloaded) => (503, "busy"),
        Ending::Failed(error) if error.blame() == Blame::Client => (400, "invalid_arguments"),
        Ending::Failed(_) => (502, "api_failed"),
        Ending::Limited(limited) => (429, limited.reason().as_str()),
        Ending::Refused(refused) => (refused.reason().status(), refused.reason().as_str()),
        Ending::Cancelled => (499, "cancelled"),
    }
}

fn is_the_callers(status: u16) -> bool {
    (400..=499).contains(&status) && !matches!(status, 401 | 403 | 407 | 408 | 429)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_who_is_to_blame() {
        let failure = || Ending::Ran(ToolOutcome::Failure { text: String::new() });
        for (downstream, status) in
            [(Some(404), 422), (Some(401), 502), (Some(429), 502), (Some(500), 502), (None, 503)]
        {
            assert_eq!(status_of(&failure(), downstream).0, status, "{downstream:?}");
        }
        let invalid = Ending::Ran(ToolOutcome::InvalidArguments { text: String::new() });
        assert_eq!(status_of(&invalid, None).0, 400);
        assert_eq!(status_of(&Ending::Refused(Refused::Unknown), None), (404, "unknown_tool"));
        let denied = Refused::Denied(DenialReason::DefaultDeny);
        assert_eq!(status_of(&Ending::Refused(denied), None), (403, "default_deny"));
        assert_eq!(status_of(&Ending::Failed(CallError::Overloaded), None).0, 503);
        assert_eq!(status_of(&Ending::Failed(CallError::NotRest), None).0, 502);
    }
}
