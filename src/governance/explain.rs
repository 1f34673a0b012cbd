//! Why a tool is hidden, refused, limited or allowed: all that is asked, in the order in which it
//! is, with the file and line it was written at.
//!
//! What is decided comes from [`decide`], as for a call; the steps beside it are read from the
//! policies again, so that an operator sees which rule it was and which ones were passed over.

use std::sync::Arc;

use serde::Serialize;

use super::{Class, Decision, Handles, Level, Limiter, Reason, Usage, decide, moment, window};
use crate::catalog::{
    Assignment, ClientApplication, CompiledTool, Entities, Entry, Permission, Policy, PolicyEffect,
    PolicyMode, PolicyRule, SideEffect, TimeWindow, Tool, Trust, View, ViewTool,
};
use crate::identity::Caller;

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
    /// What the model is told.
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
    let subject = Subject::find(question.tool, entities, view);
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
        explanation.because = subject.why_not_there(&written);
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
    explanation.because = because;
    explanation
}

fn call(side_effect: SideEffect, decision: Decision, steps: Vec<Step>) -> ExplainedCall {
    let text = match decision.observed {
        Some(observed) if decision.is_allowed => format!(
            "The call is allowed, because the policy only observes; enforced, it would be refused: \
             {}",
            observed.text()
        ),
        _ => decision.text(),
    };
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
    if !subject.is_visible {
        let why = first_refused.map_or(Reason::DeniedByRule.text(), |call| call.text.as_str());
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

/// What was asked about, as far as it is there.
struct Subject<'a> {
    /// In the view, shown or not.
    in_view: Option<&'a Arc<ViewTool>>,
    is_visible: bool,
    /// As it was written.
    entity: Option<&'a Entry<Tool>>,
}

impl<'a> Subject<'a> {
    fn find(asked: &str, entities: &'a Entities, view: &'a View) -> Self {
        let is_meant = |toolset: &str, operation: &str| match asked.split_once('/') {
            None => operation == asked,
            Some((in_toolset, of_name)) => toolset == in_toolset && operation == of_name,
        };
        let is_tool = |tool: &&Arc<ViewTool>| {
            is_meant(tool.tool.toolset.as_str(), tool.tool.source_name.as_str())
        };
        // What clients call it by comes first; an operation of that name may be another tool.
        let visible = view.tool(asked).or_else(|| view.tools().iter().find(is_tool));
        let in_view =
            visible.or_else(|| view.hidden(asked)).or_else(|| view.assigned().find(is_tool));
        let is_entity = |entry: &&Entry<Tool>| {
            let tool = &entry.value;
            let (toolset, operation) = (tool.toolset.as_str(), tool.name.as_str());
            tool.tenant == view.tenant
                && in_view.map_or_else(
                    || is_meant(toolset, operation),
                    |found| {
                        found.tool.toolset.as_str() == toolset
                            && found.tool.source_name.as_str() == operation
                    },
                )
        };
        let entity = entities.tools.iter().find(is_entity);
        Self { in_view, is_visible: visible.is_some(), entity }
    }

    fn compiled(&self) -> Option<(&'a CompiledTool, &'a Permission)> {
        self.in_view.map(|found| (&*found.tool, &found.permission))
    }

    fn toolset(&self) -> Option<&'a str> {
        let of_entity = self.entity.map(|entry| entry.value.toolset.as_str());
        self.in_view.map(|found| found.tool.toolset.as_str()).or(of_entity)
    }

    fn described(&self) -> Option<ExplainedTool> {
        let origin = self.entity.map(|entry| entry.origin.to_string());
        let (name, operation, weight) = match (self.in_view, self.entity) {
            (Some(found), _) => {
                let name = self.is_visible.then(|| found.name.to_string());
                (name, found.tool.source_name.to_string(), found.tool.weight)
            }
            (None, Some(entry)) => {
                (None, entry.value.name.to_string(), entry.value.weight.unwrap_or(1))
            }
            (None, None) => return None,
        };
        let toolset = self.toolset().unwrap_or_default().to_owned();
        Some(ExplainedTool { name, toolset, operation, origin, weight })
    }

    /// Why it is not in the view at all.
    fn why_not_there(&self, written: &Written<'_>) -> String {
        let Some(entity) = self.entity else {
            return "There is no such tool. `ringway tools` lists those the client application \
                    sees."
                .to_owned();
        };
        let toolset = &entity.value.toolset;
        match written.assignment {
            _ if !entity.value.enabled => "It is not published (`enabled = false`).".to_owned(),
            None => {
                format!("Its toolset `{toolset}` is not assigned to this client application.")
            }
            Some(assignment) if !assignment.value.enabled => format!(
                "The assignment of its toolset `{toolset}` is switched off ({}).",
                assignment.origin
            ),
            Some(_) => "The running catalog does not have it yet.".to_owned(),
        }
    }
}

/// The policies of a view as they were written.
struct Written<'a> {
    client: Option<&'a Entry<ClientApplication>>,
    assignment: Option<&'a Entry<Assignment>>,
    tenant: (bool, String),
}

impl<'a> Written<'a> {
    fn find(entities: &'a Entities, view: &View, subject: &Subject<'_>) -> Self {
        let of_view = |client: &ClientApplication| {
            client.tenant == view.tenant && client.id == view.client_application
        };
        let of_toolset = |assignment: &Assignment| {
            assignment.tenant == view.tenant
                && assignment.client_application == view.client_application
                && Some(assignment.toolset.as_str()) == subject.toolset()
        };
        let tenant = entities.tenants.iter().find(|entry| entry.value.id == view.tenant);
        Self {
            client: entities.client_applications.iter().find(|entry| of_view(&entry.value)),
            assignment: entities.assignments.iter().find(|entry| of_toolset(&entry.value)),
            tenant: tenant.map_or_else(Default::default, |entry| {
                (entry.value.default_deny, entry.origin.to_string())
            }),
        }
    }

    /// What is asked about a call, in order.
    fn steps(&self, tool: &CompiledTool, effect: SideEffect, question: &Question<'_>) -> Vec<Step> {
        let own = self
            .client
            .map(|entry| ("client_application", &entry.value.policy, entry.origin.to_string()));
        let assigned = self
            .assignment
            .map(|entry| ("assignment", &entry.value.policy, entry.origin.to_string()));
        let mut steps = Vec::new();
        let mut has_say = false;
        for (owner, policy, origin) in own.into_iter().chain(assigned) {
            let mut is_decided = policy.rules.is_empty();
            has_say |= !is_decided;
            for (rule, number) in policy.rules.iter().zip(1_u32..) {
                let mut step = step(owner, policy, &origin, rule, effect, question);
                step.rule = Some(number);
                if let Some(other) = passed_over(rule, tool, effect) {
                    (step.matches, step.allows, step.next_opening) = (false, None, None);
                    other.clone_into(&mut step.text);
                }
                is_decided = step.matches;
                steps.push(step);
                if is_decided {
                    break;
                }
            }
            if !is_decided {
                steps.push(self.default(policy.mode == PolicyMode::Observe));
            }
        }
        if !has_say {
            steps.push(self.default(false));
        }
        steps
    }

    fn default(&self, observes: bool) -> Step {
        let (denies, origin) = &self.tenant;
        let text = if *denies {
            "no rule matches; the tenant denies what no rule allows (default_deny)"
        } else {
            "no rule matches; the tenant allows what no rule denies"
        };
        Step {
            policy: "tenant",
            origin: origin.clone(),
            rule: None,
            observes,
            matches: true,
            allows: Some(!denies),
            text: text.to_owned(),
            next_opening: None,
        }
    }
}

/// Why a rule is not about a call.
fn passed_over(rule: &PolicyRule, tool: &CompiledTool, effect: SideEffect) -> Option<&'static str> {
    let (toolset, operation) = (tool.toolset.as_str(), tool.source_name.as_str());
    if !rule.tools.is_empty() && !rule.tools.iter().any(|one| one.matches(toolset, operation)) {
        return Some("passed over: it is about other tools");
    }
    if !rule.side_effects.is_empty() && !rule.side_effects.contains(&effect) {
        return Some("passed over: it is about other side effects");
    }
    None
}

/// A rule that is about the call.
fn step(
    policy: &'static str,
    of: &Policy,
    origin: &str,
    rule: &PolicyRule,
    effect: SideEffect,
    question: &Question<'_>,
) -> Step {
    let missing = rule.required_trust.filter(|required| question.trust < *required);
    let is_open = window::is_open(&rule.windows, question.now_ms);
    let opening_ms = window::next_opening_ms(&rule.windows, question.now_ms);
    let windows = || rule.windows.iter().map(window_text).collect::<Vec<_>>().join(", ");
    let (allows, text) = match (rule.effect, missing) {
        (PolicyEffect::Deny, _) => (false, format!("denies {} calls of it", effect.as_str())),
        (PolicyEffect::Allow, Some(required)) => {
            let (required, has) = (required.as_str(), question.trust.as_str());
            (false, format!("allows it from trust `{required}` on; this caller has `{has}`"))
        }
        (PolicyEffect::Allow, None) if !is_open => {
            (false, format!("allows it at other times only: {}", windows()))
        }
        (PolicyEffect::Allow, None) if rule.windows.is_empty() => (true, "allows it".to_owned()),
        (PolicyEffect::Allow, None) => (true, format!("allows it at this time: {}", windows())),
    };
    Step {
        policy,
        origin: origin.to_owned(),
        rule: None,
        observes: of.mode == PolicyMode::Observe,
        matches: true,
        allows: Some(allows),
        text,
        next_opening: opening_ms.filter(|_| !is_open).map(moment::text),
    }
}

fn window_text(window: &TimeWindow) -> String {
    let days: Vec<String> =
        window.days.iter().map(|day| format!("{day:?}").to_lowercase()).collect();
    let days = if days.is_empty() { "every day".to_owned() } else { days.join(" ") };
    format!("{days} {}-{} {}", window.from, window.to, window.utc_offset)
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
