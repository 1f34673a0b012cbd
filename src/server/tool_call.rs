//! A call under way: what it waits for outside this core, and what is made of the result.

use std::{rc::Rc, sync::Arc};

use super::{
    along::{Along, scope},
    confirm::{self, Unconfirmed},
    conversation::Conversation,
    ending::{Ended, Ending, Refused},
    file,
    input_required::Continued,
    offload::{self, INLINE_BYTES_MAX},
    parts,
    running::Registration,
    trail::{self, Trail},
    watch,
};
use crate::{
    catalog::{BuiltinTool, SideEffect, ToolKind, View, ViewTool},
    downstream::{
        self, CallError, Called, UpstreamAnswer, UpstreamCalled, UpstreamMethod, UpstreamRequest,
    },
    governance::Reason,
    json::{self, OwnedRaw},
    mapping::OutgoingRequest,
    mcp::{self, Relayed, Supplement, ToolOutcome},
    rt::{self, Either, WorkError},
};

/// A call with all it needs.
pub(crate) struct ToolCall {
    pub(super) trail: Trail,
    pub(super) supplement: Supplement,
    pub(super) work: Work,
    pub(super) along: Along,
}

pub(super) enum Work {
    /// A call of an HTTP API.
    Rest { tool: Arc<ViewTool>, request: OutgoingRequest },
    /// A call of an upstream server's tool, with the arguments as the server takes them.
    Upstream { tool: Arc<ViewTool>, arguments: OwnedRaw },
    /// One of the appliance's own tools that takes a worker.
    Worker(BuiltinTool),
    /// A search for tools, which may make an index first.
    Search { query: Box<str>, limit: usize },
    /// The next part of an earlier result, of which there may be very many.
    Part { tool: Arc<ViewTool>, handle: Box<str> },
}

impl ToolCall {
    /// A call that asks nobody outside.
    pub(super) fn here(trail: Trail, supplement: Supplement, work: Work) -> Self {
        Self { trail, supplement, work, along: Along::default() }
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
        let Self { supplement, trail, work, along } = self;
        let (is_part, conversation) = (matches!(work, Work::Part { .. }), along.conversation);
        Ended { ending, supplement, is_part, trail, conversation }
    }

    /// The call is not run after all.
    pub(crate) fn refuse(self, reason: &'static str) {
        self.trail.refuse(reason);
    }

    /// What it says to its client and asks of it before it ends.
    pub(crate) fn conversation(&self) -> Option<Rc<Conversation>> {
        self.along.conversation.clone()
    }

    async fn perform(&mut self) -> Ending {
        if let Err(unconfirmed) = self.confirm().await {
            let refused = Refused::Unconfirmed(unconfirmed);
            self.trail.denied(refused.reason().as_str());
            return Ending::Refused(refused);
        }
        match &self.work {
            Work::Rest { tool, request } => {
                let environment = self.along.environment(&self.trail);
                let call = self.trail.core.rest.run(&tool.tool, request, &environment);
                let Called { result, status, retry_after, elapsed } = call.await;
                self.trail.downstream = Some((status, elapsed));
                self.trail.retry_after = retry_after;
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
            Work::Upstream { tool, arguments } => {
                let (tool, params) = (Arc::clone(tool), call_params(tool, arguments));
                self.pass_on(&tool, &params).await
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

    /// Asks the client's user, where the tool wants that of this call.
    async fn confirm(&mut self) -> Result<(), Unconfirmed> {
        let (Work::Rest { tool, .. } | Work::Upstream { tool, .. }) = &self.work else {
            return Ok(());
        };
        let side_effect = self.trail.side_effect.unwrap_or(tool.side_effect);
        if !tool.confirm.is_some_and(|rule| rule.concerns(side_effect)) {
            return Ok(());
        }
        let question = confirm::question(tool, side_effect, self.trail.shown_arguments.as_deref());
        confirm::ask(question, self.along.client()).await?;
        self.trail.allowed(Reason::Confirmed.as_str());
        Ok(())
    }

    /// Has the tool's server run the call.
    async fn pass_on(&mut self, tool: &Arc<ViewTool>, params: &OwnedRaw) -> Ending {
        let ToolKind::Upstream(of) = &tool.kind else { return Ending::Failed(CallError::NotRest) };
        let (trail, along) = (&self.trail, &self.along);
        let request = UpstreamRequest {
            server: &of.server,
            scope: scope(&of.server, trail),
            method: UpstreamMethod::ToolsCall,
            params,
            is_repeatable: tool.is_repeatable.unwrap_or(tool.side_effect == SideEffect::Read),
            continues: along.continues.as_ref().map(Continued::parts),
            client: along.client(),
        };
        let asked = trail.core.upstreams.ask(&request, &along.environment(trail)).await;
        watch::listen(&trail.core, &of.server, request.scope, &along.carried);
        let UpstreamCalled { result, status, elapsed } = asked;
        self.trail.downstream = Some((status, elapsed));
        match result {
            Ok(UpstreamAnswer::Result(result)) => {
                let relayed = Relayed::read(result);
                let (trail, supplement) = (&mut self.trail, &mut self.supplement);
                let outcome = parts::relayed_within_budget(trail, tool, relayed, supplement).await;
                keep_large(&mut self.trail, tool, &outcome).await;
                Ending::Ran(outcome)
            }
            Ok(UpstreamAnswer::Error(error)) => Ending::Told(error),
            Ok(UpstreamAnswer::InputRequired { asks, state }) => {
                Ending::InputRequired { asks, state }
            }
            Err(error) => Ending::Failed(error),
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

/// `params` of `tools/call` at the tool's server.
fn call_params(tool: &ViewTool, arguments: &OwnedRaw) -> OwnedRaw {
    let mut params = b"{\"name\":".to_vec();
    json::write_string(&mut params, tool.source_name.as_str());
    params.extend_from_slice(b",\"arguments\":");
    params.extend_from_slice(arguments.as_raw().text().as_bytes());
    params.push(b'}');
    // Arguments were checked, and are never too deep by one level more.
    OwnedRaw::parse(&params).unwrap_or_else(|_| OwnedRaw::empty_object())
}

/// Keeps what is to be kept of a large result. Where the workers are busy it is kept with all
/// others, when the call is settled.
async fn keep_large(trail: &mut Trail, tool: &Arc<ViewTool>, outcome: &ToolOutcome) {
    let json = match outcome {
        ToolOutcome::Success { structured_json: Some(json), .. } => json.as_slice(),
        ToolOutcome::Relayed(relayed) => match relayed.structured() {
            Some(json) => json.text().as_bytes(),
            None => return,
        },
        _ => return,
    };
    if !tool.log_payloads || json.len() <= INLINE_BYTES_MAX {
        return;
    }
    let (tool, json) = (Arc::clone(tool), json.to_vec());
    let keep = move || trail::kept_json(&tool, &json);
    if let Ok(kept) = offload::run(&trail.core, &trail.view, keep).await {
        trail.keep_result_as(kept);
    }
}

fn busy(error: WorkError) -> ToolOutcome {
    ToolOutcome::Failure { text: format!("The server is busy ({error}). Try again shortly.") }
}
