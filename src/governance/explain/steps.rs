//! The rules that are asked about a call, in order, as they were written.

use super::subject::Subject;
use super::{Question, Step};
use crate::catalog::{
    Assignment, ClientApplication, CompiledTool, Entities, Entry, Policy, PolicyEffect, PolicyMode,
    PolicyRule, SideEffect, TimeWindow, View,
};
use crate::governance::{moment, window};

/// The policies of a view as they were written.
pub(super) struct Written<'a> {
    client: Option<&'a Entry<ClientApplication>>,
    assignment: Option<&'a Entry<Assignment>>,
    tenant: (bool, String),
}

impl<'a> Written<'a> {
    pub(super) fn find(entities: &'a Entities, view: &View, subject: &Subject<'_>) -> Self {
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

    /// What gives the client application the toolset.
    pub(super) fn assignment(&self) -> Option<&'a Entry<Assignment>> {
        self.assignment
    }

    /// What is asked about a call, in order.
    pub(super) fn steps(
        &self,
        tool: &CompiledTool,
        effect: SideEffect,
        question: &Question<'_>,
    ) -> Vec<Step> {
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
