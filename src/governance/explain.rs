//! Why a tool is hidden, refused, limited or allowed: all that is asked, in the order in which it
//! is, with the file and line it was written at.
//!
//! What is decided comes from [`decide`], as for a call; the steps beside it are read from the
//! policies again, so that an operator sees which rule it was and which ones were passed over.

use std::sync::Arc;

use serde::Serialize;

use super::{Class, Decision, Handles, Level, Limiter, Reason, Usage, decide, moment};
use crate::catalog::{CompiledTool, Entities, SideEffect, Trust, View};
use crate::identity::Caller;

mod steps;
mod subject;

use steps::Written;
use subject::Subject;

const EFFECTS: [SideEffect; 3] = [SideEffect::Read, SideEffect::Write, SideEffect::Destructive];

/// What is to be explained.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The name clients call it by, or the operation's own, or `toolset/operation`.
    pub tool: &'a str,
    /// How far the caller is trusted.
    pub trust: Trust,
    /// Who calls, for what is left of its limits.
    pub caller: Option<Caller>,
    /// Unix milliseconds.
    pub now_ms: u64,
    /// The clock of the limits.
    pub now_ns: u64,
    /// How the upstream MCP servers of the view stand.
    pub upstreams: &'a [UpstreamStanding],
}

/// How the server behind a toolset stands.
#[derive(Debug, Clone, Default)]
pub struct UpstreamStanding {
    /// The toolset.
    pub toolset: String,
    /// Tools it offers that wait for approval.
    pub waiting: Vec<String>,
    /// Tools it offers that were refused.
    pub refused: Vec<String>,
    /// Why it does not answer, where it does not.
    pub error: Option<String>,
}

/// What a question comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The client application does not see it.
    Hidden,
    /// It sees it, and a call is refused.
    Refused,
    /// A call is allowed, and too many were made.
    Limited,
    /// Some calls are allowed, by their arguments.
    Depends,
    /// A call is allowed.
    Allowed,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// What was asked about.
    pub asked: String,
    /// Whose view.
    pub tenant: String,
    /// Whose view.
    pub client_application: String,
    /// How far the caller is trusted.
    pub trust: Trust,
    /// For when.
    pub time: String,
    /// What it comes to.
    pub conclusion: Conclusion,
    /// That in a sentence.
    pub because: String,
    /// The tool, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ExplainedTool>,
    /// What is decided about its calls, for each side effect they may have.
    pub calls: Vec<ExplainedCall>,
    /// The limits it is under.
    pub limits: Vec<ExplainedLimit>,
}

/// The tool of an explanation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedTool {
    /// What clients call it by, where they see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it belongs.
    pub toolset: String,
    /// What it is called there.
    pub operation: String,
    /// Where it was written; the appliance's own tools were nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Units a call counts.
    pub weight: u32,
}

/// What is decided about calls with one side effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedCall {
    /// What such a call does.
    pub side_effect: SideEffect,
    /// Whether it may be made.
    pub allowed: bool,
    /// The code of the decision.
    pub reason: &'static str,
    /// That in a sentence.
    pub text: String,
    /// What was asked, in order.
    pub steps: Vec<Step>,
}

/// One rule that was asked, or what holds where none matches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Whose policy: `client_application`, `assignment`, or `tenant` for what holds otherwise.
    pub policy: &'static str,
    /// Where it was written.
    pub origin: String,
    /// The rule's number in the policy, from 1 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    /// Whether the policy only observes.
    pub observes: bool,
    /// Whether it is about this call; the first rule that is decides.
    pub matches: bool,
    /// Whether it allows the call; `None` where it says nothing.
    pub allows: Option<bool>,
    /// That in words.
    pub text: String,
    /// When one of its windows opens next, where that is what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_opening: Option<String>,
}

/// A limit and what is left of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedLimit {
    /// Whose.
    pub level: &'static str,
    /// What it counts.
    pub class: &'static str,
    /// Units, or streams.
    pub count: u32,
    /// The time `count` is for; none for streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
    /// Most at once.
    pub burst: u32,
    /// What is left now; unknown for each caller where none was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u32>,
}

/// Answers a question about a view and the entities it was compiled from.
pub fn explain(
    question: &Question<'_>,
    entities: &Entities,
    view: &Arc<View>,
    limiter: &Limiter,
) -> Explanation {
    let subject = Subject::find(question.tool, entities, view, question.now_ms);
    let written = Written::find(entities, view, &subject);
    let mut explanation = Explanation {
        asked: question.tool.to_owned(),
        tenant: view.tenant.to_string(),
        client_application: view.client_application.to_string(),
        trust: question.trust,
        time: moment::text(question.now_ms),
        conclusion: Conclusion::Hidden,
        because: String::new(),
        tool: subject.described(),
        calls: Vec::new(),
        limits: Vec::new(),
    };
    let Some((tool, permission)) = subject.compiled() else {
        let withheld = subject.why_withheld(question, view);
        explanation.because = withheld.unwrap_or_else(|| subject.why_not_there(&written));
        if subject.is_meta_tool() {
            explanation.conclusion = Conclusion::Allowed;
        }
        return explanation;
    };
    explanation.calls = EFFECTS
        .into_iter()
        .filter(|effect| tool.side_effects().any(|possible| possible == *effect))
        .map(|effect| {
            let decision = decide(permission, question.trust, effect, question.now_ms);
            let steps = written.steps(tool, effect, question);
            call(effect, decision, steps)
        })
        .collect();
    explanation.limits = limits(question, view, limiter, tool);
    let (conclusion, because) = conclude(&subject, &explanation, tool);
    explanation.conclusion = conclusion;
    let server = question.upstreams.iter().find(|server| server.toolset == tool.toolset.as_str());
    let remarks = [
        Some(because),
        subject.remark(),
        confirmation(tool),
        server.and_then(|server| server.error.as_deref()).map(unreachable),
    ];
    explanation.because = remarks.into_iter().flatten().collect::<Vec<_>>().join(" ");
    explanation
}

/// Which calls of a tool its user is asked about.
fn confirmation(tool: &CompiledTool) -> Option<String> {
    let rule = tool.confirm?;
    let concerned = tool.side_effects().filter(|effect| rule.concerns(*effect));
    let effects: Vec<&str> = concerned.map(SideEffect::as_str).collect();
    (!effects.is_empty()).then(|| {
        let effects = effects.join(" or ");
        format!("The user of the client is asked before a {effects} call.")
    })
}

fn unreachable(error: &str) -> String {
    format!("Its server does not answer now: {error}.")
}

fn call(side_effect: SideEffect, decision: Decision, steps: Vec<Step>) -> ExplainedCall {
    let text = decision.summary();
    let (allowed, reason) = (decision.is_allowed, decision.code());
    ExplainedCall { side_effect, allowed, reason, text, steps }
}

fn limits(
    question: &Question<'_>,
    view: &Arc<View>,
    limiter: &Limiter,
    tool: &CompiledTool,
) -> Vec<ExplainedLimit> {
    if let Some(caller) = question.caller {
        let usage = limiter.handles(view, caller).usage(Some(tool), question.now_ns);
        return usage.iter().map(|usage| limit(usage, true)).collect();
    }
    let shared = limiter.shared_handles(view).usage(Some(tool), question.now_ns);
    // What each caller may use, on a limiter of its own: nothing of it is used.
    let each = Limiter::default();
    let each: &Handles = &each.handles(view, Caller::Open);
    let each = each.usage(None, question.now_ns);
    let each = each.iter().filter(|usage| usage.level == Level::Caller);
    shared
        .iter()
        .map(|usage| limit(usage, true))
        .chain(each.map(|usage| limit(usage, false)))
        .collect()
}

fn limit(usage: &Usage, is_known: bool) -> ExplainedLimit {
    ExplainedLimit {
        level: usage.level.as_str(),
        class: usage.class.as_str(),
        count: usage.rate.map_or(usage.most, |rate| rate.count),
        seconds: usage.rate.map(|rate| rate.seconds),
        burst: usage.most,
        remaining: is_known.then_some(usage.remaining),
    }
}

fn conclude(
    subject: &Subject<'_>,
    explanation: &Explanation,
    tool: &CompiledTool,
) -> (Conclusion, String) {
    let calls = &explanation.calls;
    let first_refused = calls.iter().find(|call| !call.allowed);
    if !subject.is_callable() {
        let why = first_refused.map_or(Reason::DeniedByRule.summary(), |call| call.text.as_str());
        return (
            Conclusion::Hidden,
            format!("It is not shown, because every call is denied. {why}"),
        );
    }
    if let Some(refused) = first_refused {
        if !calls.iter().any(|call| call.allowed) {
            return (Conclusion::Refused, refused.text.clone());
        }
        let effect = refused.side_effect.as_str();
        let text = format!("It depends on the arguments; a {effect} call: {}", refused.text);
        return (Conclusion::Depends, text);
    }
    let only_reads = calls.iter().all(|call| call.side_effect == SideEffect::Read);
    let is_short = |limit: &&ExplainedLimit| {
        let needed = match limit.class {
            class if class == Class::Requests.as_str() => 1,
            class if class == Class::ToolCalls.as_str() => tool.weight,
            class if class == Class::Mutations.as_str() && !only_reads => tool.weight,
            _ => 0,
        };
        limit.remaining.is_some_and(|remaining| remaining < needed.min(limit.burst.max(1)))
    };
    match explanation.limits.iter().find(is_short) {
        Some(limit) => {
            let (level, class) = (limit.level, limit.class);
            let text = format!("The limit `{class}` of the {level} is used up for now.");
            (Conclusion::Limited, text.replace('_', " "))
        }
        None => {
            (Conclusion::Allowed, calls.first().map_or_else(String::new, |call| call.text.clone()))
        }
    }
}

#[cfg(test)]
mod tests;
