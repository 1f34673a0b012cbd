//! A tool call, whatever it came over: JSON-RPC on either transport, or the REST facade.
//!
//! ```text
//! find the tool -> decide -> limits -> arguments: strip, repair, validate
//!               -> run -> cut to the budget -> ending
//! ```
//!
//! The transports differ in how an [`Ending`] is written, and in nothing else. Arguments are judged
//! and the outgoing request is built before anything runs, so a running call owns all it needs and
//! outlives the connection it came on. Large arguments are judged by a worker, and their call is not
//! begun before that: what a limit or a policy answers does not depend on how large they are.

use std::sync::Arc;

use super::{
    file,
    judge::{self, Intent, Judged},
    offload::{self, INLINE_BYTES_MAX},
    parts::{self, Asked, Readable},
    refusal::Refusal,
    running::Registration,
    trail::{self, Trail},
};
use crate::{
    audit::{CallType, Outcome},
    catalog::{BuiltinTool, Deprecated, DiscoveryMode, MetaTool, SideEffect, View, ViewTool},
    downstream::{self, Blame, CallEnvironment, CallError, Called, Carried},
    governance::{Decision, Level, Limited, Reason},
    http::{Known, RequestView},
    json::{OwnedRaw, Raw},
    mapping::{self, Discovery, OutgoingRequest, SCHEMA_DISCOVERY},
    mcp::{self, MetaToolCall, Supplement, ToolOutcome},
    rt::{self, Either, WorkError},
    telemetry::{MethodLabel, OutcomeLabel, TraceParent},
};

/// What a client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolRequest<'a> {
    pub(crate) name: &'a str,
    /// An object; `None` stands for an empty one.
    pub(crate) arguments: Option<Raw<'a>>,
    /// The HTTP request it came in: its trace, and what a connection forwards of it.
    pub(crate) http: RequestView<'a>,
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
    Denied(Box<Decision>),
}

impl Refused {
    /// The reason, for records and metrics.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Unknown => Reason::UnknownTool,
            Self::Gone => Reason::ToolGone,
            Self::Denied(decision) => decision.reason,
        }
    }

    /// What the model reads.
    pub(crate) fn text(&self, trail: &Trail) -> String {
        match self {
            Self::Unknown => mcp::unknown_tool(trail.asked()).message.into_owned(),
            Self::Gone => self.reason().text().to_owned(),
            Self::Denied(decision) => decision.text(),
        }
    }
}

/// A call that is over. Its trail is closed by whoever writes the answer.
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    /// What the result says of itself: its tool goes, it was cut.
    pub(crate) supplement: Supplement,
    /// The result is a part of an earlier one, in a form of its own.
    pub(crate) is_part: bool,
    pub(crate) trail: Trail,
}

/// How far a call gets at once.
#[expect(clippy::large_enum_variant, reason = "nearly all are begun, and none is kept")]
pub(crate) enum Beginning {
    Begun(Begun),
    /// Its arguments are too large to be judged on a core.
    Judging(Box<Judging>),
}

/// What a call whose arguments are judged leads to.
pub(crate) enum Begun {
    Ended(Ended),
    /// Something outside this core has to be waited for.
    Running(ToolCall),
}

impl From<Ended> for Beginning {
    fn from(ended: Ended) -> Self {
        Self::Begun(Begun::Ended(ended))
    }
}

/// A call whose arguments are still to be judged, by a worker.
pub(crate) struct Judging {
    trail: Trail,
    supplement: Supplement,
    tool: Arc<ViewTool>,
    arguments: OwnedRaw,
    taken: Taken,
}

/// A call with all it needs.
pub(crate) struct ToolCall {
    trail: Trail,
    supplement: Supplement,
    work: Work,
    taken: Taken,
}

/// What a call takes of the request that it outlives.
#[derive(Default)]
struct Taken {
    trace: Option<TraceParent>,
    carried: Carried,
}

impl Taken {
    fn of(tool: &ViewTool, request: &RequestView<'_>) -> Self {
        let trace = request.header(Known::TraceParent).and_then(TraceParent::parse);
        Self { trace, carried: Carried::of(tool, request) }
    }
}

enum Work {
    /// A call of an HTTP API.
    Rest { tool: Arc<ViewTool>, request: OutgoingRequest },
    /// One of the appliance's own tools that takes a worker.
    Worker(BuiltinTool),
    /// A search for tools, which may make an index first.
    Search { query: Box<str>, limit: usize },
    /// The next part of an earlier result, of which there may be very many.
    Part { tool: Arc<ViewTool>, handle: Box<str> },
}

/// Takes a call as far as it goes at once.
pub(crate) fn begin(trail: Trail, request: &ToolRequest<'_>) -> Beginning {
    match trail.view.meta_tool(request.name) {
        None => begin_tool(trail, request),
        Some(meta_tool) => begin_meta_tool(trail, meta_tool, request),
    }
}

/// A call of one of the runtime's own tools about tools. To be told of tools is allowed to whoever
/// sees them; a call of one goes the way of every call.
fn begin_meta_tool(mut trail: Trail, meta_tool: MetaTool, request: &ToolRequest<'_>) -> Beginning {
    let ended = |ending, trail| Beginning::from(Ended::plainly(ending, trail));
    let asked = match MetaToolCall::read(meta_tool, request.arguments) {
        Ok(asked) => asked,
        Err(outcome) => return ended(Ending::Ran(outcome), trail),
    };
    let (name, tell): (_, fn(&ViewTool) -> Vec<u8>) = match &asked {
        MetaToolCall::Call { name, arguments } => {
            let arguments = arguments.as_ref().map(OwnedRaw::as_raw);
            return begin_tool(trail, &ToolRequest { name, arguments, ..*request });
        }
        MetaToolCall::Search { query, limit } => {
            trail.call_type = CallType::ToolDiscovery;
            let work = Work::Search { query: (&**query).into(), limit: *limit };
            let supplement = Supplement::NONE;
            let call = ToolCall::here(trail, supplement, work);
            return Beginning::Begun(Begun::Running(call));
        }
        MetaToolCall::Schema(name) => (name, mcp::schemas),
        MetaToolCall::Description(name) => (name, mcp::described),
    };
    trail.call_type = CallType::SchemaDiscovery;
    let Some(tool) = trail.view.tool(name).cloned() else {
        trail.asked = Some(shortened(name));
        trail.denied(Refused::Unknown.reason().as_str());
        return ended(Ending::Refused(Refused::Unknown), trail);
    };
    let structured_json = Some(tell(&tool));
    trail.tool = Some(tool);
    ended(Ending::Ran(ToolOutcome::Success { structured_json, text: None }), trail)
}

fn begin_tool(mut trail: Trail, request: &ToolRequest<'_>) -> Beginning {
    let Found { tool, supplement } = match find(&mut trail, request.name) {
        Ok(found) => found,
        Err(refused) => {
            trail.denied(refused.reason().as_str());
            return Ended::plainly(Ending::Refused(refused), trail).into();
        }
    };
    trail.tool = Some(tool.clone());
    let placeholder = match tool.discovery {
        DiscoveryMode::Lazy => mapping::discovery(request.arguments),
        DiscoveryMode::Full | DiscoveryMode::DataStructureOnly => Discovery::Absent,
    };
    let stripped = match placeholder {
        Discovery::Absent => None,
        Discovery::Removed(arguments) => Some(arguments),
        Discovery::Alone => {
            let outcome = ToolOutcome::InvalidArguments { text: discover_first(&tool) };
            return Ended::plainly(Ending::Ran(outcome), trail).into();
        }
    };
    let arguments = stripped.as_ref().map_or(request.arguments, |stripped| Some(stripped.as_raw()));
    let asked = parts::asked_for(&tool, arguments);
    let arguments = match &asked {
        Asked::NothingSaid(arguments) => Some(arguments.as_raw()),
        Asked::Part(_) | Asked::Nothing => arguments,
    };
    let taken = Taken::of(&tool, &request.http);
    if let Some(arguments) = arguments.filter(|all| judge::is_for_a_worker(&tool, *all)) {
        let arguments = arguments.to_owned();
        let judging = Judging { trail, supplement, tool, arguments, taken };
        return Beginning::Judging(Box::new(judging));
    }
    let call = Found { tool, supplement };
    Beginning::Begun(begin_judged(trail, call, arguments, &asked, taken))
}

/// Begins a call whose arguments are small enough to be judged here.
fn begin_judged(
    mut trail: Trail,
    call: Found,
    arguments: Option<Raw<'_>>,
    asked: &Asked,
    taken: Taken,
) -> Begun {
    let Found { tool, supplement } = call;
    let (intent, side_effect) = match asked {
        // It is there already.
        Asked::Part(handle) => (Intent::Part(handle), SideEffect::Read),
        Asked::NothingSaid(_) | Asked::Nothing => judge::intend(&mut trail, &tool, arguments),
    };
    let is_valid = !matches!(intent, Intent::Invalid(_));
    if let Err(ending) = judge::allow(&mut trail, &tool, is_valid, side_effect) {
        return Begun::Ended(Ended::plainly(ending, trail));
    }
    let outcome = match intent {
        Intent::Request(request) => {
            let work = Work::Rest { tool: Arc::clone(&tool), request };
            return Begun::Running(ToolCall { trail, supplement, work, taken });
        }
        // Whoever has many sessions: they are not looked through on a core.
        Intent::Builtin(builtin @ BuiltinTool::ListSessions) => {
            let work = Work::Worker(builtin);
            return Begun::Running(ToolCall::here(trail, supplement, work));
        }
        Intent::Builtin(builtin) => {
            downstream::run_builtin(builtin, &*trail.core.shared, &trail.view)
        }
        Intent::Part(handle) => {
            let work = Work::Part { tool: Arc::clone(&tool), handle: handle.into() };
            return Begun::Running(ToolCall::here(trail, supplement, work));
        }
        Intent::Invalid(invalid) => ToolOutcome::InvalidArguments { text: invalid.to_string() },
    };
    Begun::Ended(Ended { ending: Ending::Ran(outcome), supplement, is_part: false, trail })
}

/// Most of a name nobody has that is worth keeping.
const ASKED_BYTES_MAX: usize = 256;

struct Found {
    tool: Arc<ViewTool>,
    supplement: Supplement,
}

/// The tool a client means by a name: one that is listed, or one that was not long ago.
fn find(trail: &mut Trail, name: &str) -> Result<Found, Refused> {
    if let Some(tool) = trail.view.tool(name) {
        return Ok(Found { tool: tool.clone(), supplement: Supplement::NONE });
    }
    match trail.view.deprecated(name, trail.at_ms) {
        Some(Deprecated::Callable { tool, now_called, .. }) => {
            let note = match now_called {
                Some(now) => {
                    format!("Note: this tool is called `{now}` now. List the tools again.")
                }
                None => "Note: this tool is being removed. List the tools again.".to_owned(),
            };
            let supplement = Supplement { notes: vec![note.into()], meta: None };
            Ok(Found { tool, supplement })
        }
        Some(Deprecated::Gone) => {
            trail.asked = Some(shortened(name));
            Err(Refused::Gone)
        }
        None => {
            // Whether it is hidden is for the record only.
            trail.tool = trail.view.hidden(name).cloned();
            trail.asked = Some(shortened(name));
            Err(Refused::Unknown)
        }
    }
}

/// A client's own text, as much of it as is worth keeping.
pub(crate) fn shortened(name: &str) -> Box<str> {
    name[..name.floor_char_boundary(ASKED_BYTES_MAX)].into()
}

/// For a model that has yet to look at the schema.
#[cold]
fn discover_first(tool: &ViewTool) -> String {
    let (meta_tool, name) = (MetaTool::DiscoverToolSchema.name(), &tool.name);
    format!(
        "`{SCHEMA_DISCOVERY}` is no argument of this tool: it stands for a schema the list does \
         not show. Call `{meta_tool}` with {{\"tool_id\":\"{name}\"}} first, then call this tool \
         with the arguments its schema has."
    )
}

impl Judging {
    /// The call is not begun after all.
    pub(crate) fn refuse(self, reason: &'static str) {
        self.trail.refuse(reason);
    }

    /// Has the arguments judged; from then on the call is one like any other.
    ///
    /// # Errors
    /// The workers have no room for it: nothing was done.
    pub(crate) async fn judged(self) -> Result<Begun, Refusal> {
        let Self { mut trail, supplement, tool, arguments, taken } = self;
        let work = {
            let (tool, readable) = (Arc::clone(&tool), Readable::of(&trail));
            move || judge::judge(&tool, &arguments, &readable)
        };
        let judged = offload::run(&trail.core, &trail.view, work).await;
        let Judged { kept, repairs, side_effect, request } = match judged {
            Ok(Some(judged)) => judged,
            Ok(None) => {
                let ending = Ending::Refused(Refused::Unknown);
                return Ok(Begun::Ended(Ended::plainly(ending, trail)));
            }
            Err(error) => {
                let refusal = Refusal::from(error);
                trail.refuse(refusal.reason());
                return Err(refusal);
            }
        };
        trail.keep_arguments(|| kept);
        trail.repairs = repairs;
        if let Err(ending) = judge::allow(&mut trail, &tool, request.is_ok(), side_effect) {
            return Ok(Begun::Ended(Ended::plainly(ending, trail)));
        }
        Ok(match request {
            Ok(request) => {
                let work = Work::Rest { tool, request };
                Begun::Running(ToolCall { trail, supplement, work, taken })
            }
            Err(text) => {
                let ending = Ending::Ran(ToolOutcome::InvalidArguments { text });
                let ended = Ended { ending, supplement, is_part: false, trail };
                Begun::Ended(ended)
            }
        })
    }
}

impl ToolCall {
    /// A call that asks nobody outside.
    fn here(trail: Trail, supplement: Supplement, work: Work) -> Self {
        Self { trail, supplement, work, taken: Taken::default() }
    }

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
        let Self { supplement, trail, work, .. } = self;
        Ended { ending, supplement, is_part: matches!(work, Work::Part { .. }), trail }
    }

    /// The call is not run after all.
    pub(crate) fn refuse(self, reason: &'static str) {
        self.trail.refuse(reason);
    }

    async fn perform(&mut self) -> Ending {
        match &self.work {
            Work::Rest { tool, request } => {
                let environment = CallEnvironment {
                    execution_id: self.trail.execution_id,
                    external_id: self.trail.external_id.as_deref(),
                    trace: self.taken.trace,
                    carried: &self.taken.carried,
                };
                let call = self.trail.core.rest.run(&tool.tool, request, &environment);
                let Called { result, status, elapsed } = call.await;
                self.trail.downstream = Some((status, elapsed));
                let outcome = match result {
                    Ok(outcome) if tool.has_output_schema => outcome.structured(),
                    Ok(outcome) => outcome,
                    Err(error) => return Ending::Failed(error),
                };
                let (trail, supplement) = (&mut self.trail, &mut self.supplement);
                let outcome = match outcome {
                    ToolOutcome::File(file) => file::within_budget(trail, tool, *file),
                    outcome if tool.budget.is_unlimited() => outcome,
                    outcome => parts::within_budget(trail, tool, outcome, supplement).await,
                };
                keep_large(&mut self.trail, tool, &outcome).await;
                Ending::Ran(outcome)
            }
            Work::Worker(tool) => {
                let (shared, tool) = (self.trail.core.shared.clone(), *tool);
                let run = move |view: &View| downstream::run_builtin(tool, &*shared, view);
                Ending::Ran(self.on_a_worker(run).await)
            }
            Work::Part { tool, handle } => {
                let next = parts::next(&self.trail, tool, handle, &mut self.supplement);
                Ending::Ran(next.await.unwrap_or_else(busy))
            }
            Work::Search { query, limit } => {
                let (query, limit) = (query.clone(), *limit);
                let search = move |view: &View| mcp::search(view, &query, limit);
                Ending::Ran(self.on_a_worker(search).await)
            }
        }
    }

    async fn on_a_worker(
        &self,
        work: impl FnOnce(&View) -> ToolOutcome + Send + 'static,
    ) -> ToolOutcome {
        let view = self.trail.view.clone();
        let ran = offload::run(&self.trail.core, &self.trail.view, move || work(&view)).await;
        ran.unwrap_or_else(busy)
    }
}

/// Keeps what is to be kept of a large result. Where the workers are busy it is kept with all
/// others, when the call is settled.
async fn keep_large(trail: &mut Trail, tool: &Arc<ViewTool>, outcome: &ToolOutcome) {
    let ToolOutcome::Success { structured_json: Some(json), .. } = outcome else { return };
    if !tool.log_payloads || json.len() <= INLINE_BYTES_MAX {
        return;
    }
    let (tool, json) = (Arc::clone(tool), json.clone());
    let keep = move || trail::kept_json(&tool, &json);
    if let Ok(kept) = offload::run(&trail.core, &trail.view, keep).await {
        trail.keep_result_as(kept);
    }
}

fn busy(error: WorkError) -> ToolOutcome {
    ToolOutcome::Failure { text: format!("The server is busy ({error}). Try again shortly.") }
}

impl Ended {
    /// With nothing to say but how it ended.
    pub(crate) fn plainly(ending: Ending, trail: Trail) -> Self {
        Self { ending, supplement: Supplement::NONE, is_part: false, trail }
    }

    /// Counts the call and keeps what its tool wants kept of it; what came of it, for the record.
    pub(crate) fn settle(&mut self) -> Outcome {
        // In a part, fields that must not be kept cannot be found.
        if let Ending::Ran(outcome) = &self.ending
            && !self.is_part
        {
            self.trail.keep_result(outcome);
        }
        let (label, outcome) = match &self.ending {
            Ending::Ran(ToolOutcome::Success { .. } | ToolOutcome::File(_)) => {
                (OutcomeLabel::Ok, Outcome::Ok)
            }
            Ending::Limited(limited) if limited.level != Level::Tool => {
                (OutcomeLabel::Error, Outcome::Error)
            }
            Ending::Refused(Refused::Unknown) => (OutcomeLabel::Error, Outcome::Error),
            Ending::Ran(_) | Ending::Failed(_) | Ending::Limited(_) | Ending::Refused(_) => {
                (OutcomeLabel::ToolError, Outcome::ToolError)
            }
            Ending::Cancelled => (OutcomeLabel::Cancelled, Outcome::Cancelled),
        };
        let elapsed = self.trail.started.elapsed();
        self.trail.took = Some(elapsed);
        self.trail.core.metrics.request(MethodLabel::ToolsCall, label, elapsed);
        outcome
    }
}

/// Where plain HTTP carries the answer: the status that says who is to blame, and a word for how
/// the call ended.
pub(crate) fn status_of(ending: &Ending, downstream: Option<u16>) -> (u16, &'static str) {
    match ending {
        Ending::Ran(ToolOutcome::Success { .. } | ToolOutcome::File(_)) => (200, "ok"),
        Ending::Ran(ToolOutcome::InvalidArguments { .. }) => (400, "invalid_arguments"),
        Ending::Ran(ToolOutcome::Failure { .. }) => match downstream {
            // The API knows what it was asked and does not accept it: the arguments are the
            // caller's. What it says of credentials and pace is between the API and this server.
            Some(status) if is_the_callers(status) => (422, "refused_by_api"),
            // The API did its part, or was not asked.
            Some(200..=299) | None => (503, "busy"),
            Some(_) => (502, "api_failed"),
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
        assert_eq!(status_of(&Ending::Refused(Refused::Gone), None), (410, "tool_gone"));
        assert_eq!(status_of(&Ending::Failed(CallError::Overloaded), None).0, 503);
        assert_eq!(status_of(&Ending::Failed(CallError::NotRest), None).0, 502);
    }
}
