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
    catalog::{BuiltinTool, CompiledTool, SideEffect, ToolKind},
    downstream::{self, Blame, CallEnvironment, CallError, Called},
    governance::{Level, Limited},
    json::Raw,
    mapping::OutgoingRequest,
    mcp::ToolOutcome,
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
    /// The call is over a limit, and was not run.
    Limited(Limited),
    /// This client application has no such tool.
    Unknown,
    /// The client wants no answer any more.
    Cancelled,
}

/// A call that is over. Its trail is closed by whoever writes the answer.
pub(crate) struct Ended {
    pub(crate) ending: Ending,
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
    tool: Arc<CompiledTool>,
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
    let Some(tool) = trail.view.tool(request.name).cloned() else {
        trail.decided(false, "unknown_tool");
        return Begun::Ended(Ended { ending: Ending::Unknown, trail });
    };
    trail.tool = Some(tool.clone());
    let now_ns = trail.core.shared.limit_clock(trail.started);
    if let Err(limited) = trail.limits.take_call(&tool, SideEffect::Read, now_ns) {
        trail.decided(false, limited.reason().as_str());
        return Begun::Ended(Ended { ending: Ending::Limited(limited), trail });
    }
    let ended = |outcome, trail| Begun::Ended(Ended { ending: Ending::Ran(outcome), trail });
    let work = match &tool.kind {
        // Whoever has many sessions: they are not looked through on a core.
        ToolKind::Builtin(builtin @ BuiltinTool::ListSessions) => Work::Worker(*builtin),
        ToolKind::Builtin(builtin) => {
            let outcome = downstream::run_builtin(*builtin, &*trail.core.shared, &trail.view);
            return ended(outcome, trail);
        }
        ToolKind::Rest { request: plan, .. } => match plan.validate(request.arguments) {
            Ok(arguments) => {
                trail.repairs = arguments.repairs();
                Work::Rest(plan.build(&arguments))
            }
            Err(invalid) => {
                let text = invalid.to_string();
                return ended(ToolOutcome::InvalidArguments { text }, trail);
            }
        },
    };
    let trace = request.trace.and_then(TraceParent::parse);
    Begun::Running(ToolCall { trail, tool, work, trace })
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
        Ended { ending, trail: self.trail }
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
                let call = self.trail.core.rest.run(&self.tool, request, &environment);
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
            Ending::Unknown | Ending::Limited(_) => OutcomeLabel::Error,
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
        Ending::Unknown => (404, "unknown_tool"),
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
        assert_eq!(status_of(&Ending::Unknown, None).0, 404);
        assert_eq!(status_of(&Ending::Failed(CallError::Overloaded), None).0, 503);
        assert_eq!(status_of(&Ending::Failed(CallError::NotRest), None).0, 502);
    }
}
