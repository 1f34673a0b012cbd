//! What policies say about a tool, worked out before any call.
//!
//! What can be known when the catalog is compiled is known then: a tool every call of which would
//! be denied is not visible. Time windows, trust and an argument that decides the side effect are
//! left for the call, which [`Permission::judge`] decides without looking at rules again.
//!
//! The policies of client application and assignment must both allow. One without rules has
//! nothing to say where the other one has rules; where neither has, the tenant's default holds. A
//! policy that only observes never denies: what it would have denied comes out beside the decision.

use std::collections::HashMap;
use std::sync::Arc;

use super::policy::{Policy, PolicyEffect, PolicyMode, PolicyRule, TimeWindow};
use super::{CompiledTool, SideEffect, Trust};

const EFFECTS: [SideEffect; 3] = [SideEffect::Read, SideEffect::Write, SideEffect::Destructive];

/// Whose policy it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyOwner {
    /// The client application's.
    ClientApplication,
    /// The assignment's.
    Assignment,
}

/// Why a call is denied, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DenialReason {
    /// A rule says so.
    DeniedByRule {
        /// Whose rule.
        policy: PolicyOwner,
        /// Its number in the policy, from 1 on.
        rule: u16,
    },
    /// No rule matches, and the tenant denies what no rule allows.
    DefaultDeny,
    /// The caller is not trusted enough.
    TrustTooLow {
        /// What it takes.
        required: Trust,
    },
    /// It is not the time.
    OutsideWindow,
}

impl DenialReason {
    /// A stable name for records.
    pub const fn code(self) -> &'static str {
        match self {
            Self::DeniedByRule { .. } => "denied_by_rule",
            Self::DefaultDeny => "default_deny",
            Self::TrustTooLow { .. } => "trust_too_low",
            Self::OutsideWindow => "outside_window",
        }
    }
}

/// What is decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Judgement {
    /// Why it is denied; it is allowed where `None`.
    pub denied: Option<DenialReason>,
    /// Why a policy that only observes would have denied it.
    pub observed: Option<DenialReason>,
}

/// When calls are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Always.
    Always,
    /// When all of these hold.
    When(Box<[Condition]>),
    /// Never.
    Never(DenialReason),
}

/// What a rule that allows demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Least trust of the caller.
    pub required_trust: Option<Trust>,
    /// When; always where empty.
    pub windows: Box<[TimeWindow]>,
}

/// What policies say about calls with one side effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What is obeyed.
    pub enforced: Grant,
    /// What would be obeyed too, were policies that observe enforced.
    pub observed: Grant,
}

/// What policies say about a tool of a view. Cheap to clone: tools for which they say the same
/// share it.
#[derive(Debug, Clone)]
pub struct Permission(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// By side effect.
    verdicts: [Verdict; 3],
    judgement: Judgement,
}

impl Permission {
    /// What holds for every call of the tool, whoever calls and when: denied ones are not visible.
    pub fn always(&self) -> Judgement {
        self.0.judgement
    }

    /// Whether every call is denied.
    pub fn is_denied(&self) -> bool {
        self.0.judgement.denied.is_some()
    }

    /// What is said about calls with this side effect.
    pub fn verdict(&self, side_effect: SideEffect) -> &Verdict {
        &self.0.verdicts[side_effect as usize]
    }

    /// Decides about a call.
    pub fn judge(&self, trust: Trust, now_ms: u64, side_effect: SideEffect) -> Judgement {
        let Verdict { enforced, observed } = self.verdict(side_effect);
        Judgement { denied: enforced.judge(trust, now_ms), observed: observed.judge(trust, now_ms) }
    }
}

impl PartialEq for Permission {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.verdicts == other.0.verdicts
    }
}

impl Grant {
    fn judge(&self, trust: Trust, now_ms: u64) -> Option<DenialReason> {
        match self {
            Self::Always => None,
            Self::Never(reason) => Some(*reason),
            Self::When(conditions) => {
                conditions.iter().find_map(|condition| condition.judge(trust, now_ms))
            }
        }
    }

    fn never(&self) -> Option<DenialReason> {
        match self {
            Self::Never(reason) => Some(*reason),
            Self::Always | Self::When(_) => None,
        }
    }

    /// Both must allow; the first denial is the one that is told.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never(reason), _) | (_, Self::Never(reason)) => Self::Never(reason),
            (Self::Always, other) => other,
            (one, Self::Always) => one,
            (Self::When(one), Self::When(other)) => {
                Self::When(one.into_iter().chain(other).collect())
            }
        }
    }
}

impl Condition {
    fn judge(&self, trust: Trust, now_ms: u64) -> Option<DenialReason> {
        match self.required_trust {
            Some(required) if trust < required => {
                return Some(DenialReason::TrustTooLow { required });
            }
            _ => {}
        }
        let is_open = self.windows.is_empty() || self.windows.iter().any(|one| one.is_open(now_ms));
        (!is_open).then_some(DenialReason::OutsideWindow)
    }
}

impl TimeWindow {
    /// Whether it is open at this time (Unix milliseconds).
    pub fn is_open(&self, now_ms: u64) -> bool {
        const MINUTES_OF_DAY: i64 = 24 * 60;
        let utc = i64::try_from(now_ms / 60_000).unwrap_or(i64::MAX / 2);
        let local = utc + i64::from(self.utc_offset.minutes());
        let (day, minute) = (local.div_euclid(MINUTES_OF_DAY), local.rem_euclid(MINUTES_OF_DAY));
        let begins_on = |day: i64| {
            // 1970-01-01 was a Thursday.
            let weekday = (day + 3).rem_euclid(7);
            self.days.is_empty() || self.days.iter().any(|one| *one as i64 == weekday)
        };
        let (from, to) = (i64::from(self.from.minutes()), i64::from(self.to.minutes()));
        if from < to {
            (from..to).contains(&minute) && begins_on(day)
        } else {
            (minute >= from && begins_on(day)) || (minute < to && begins_on(day - 1))
        }
    }
}

/// All that decides about the tools of a toolset in a view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Policies {
    pub(super) client_application: Policy,
    pub(super) assignment: Policy,
    pub(super) default_deny: bool,
}

/// Which rule of each policy decides, for each side effect; and which side effects there are.
type Outcome = ([[Option<u16>; 3]; 2], u8);

/// Makes permissions, each that differs once.
#[derive(Debug)]
pub(super) struct Permissions<'a> {
    policies: &'a Policies,
    made: HashMap<Outcome, Permission>,
}

impl<'a> Permissions<'a> {
    pub(super) fn new(policies: &'a Policies) -> Self {
        Self { policies, made: HashMap::new() }
    }

    pub(super) fn of(&mut self, tool: &CompiledTool) -> Permission {
        self.of_operation(tool.toolset.as_str(), tool.source_name.as_str(), tool.side_effects())
    }

    fn of_operation(
        &mut self,
        toolset: &str,
        operation: &str,
        side_effects: impl Iterator<Item = SideEffect>,
    ) -> Permission {
        let possible = side_effects.fold(0_u8, |all, effect| all | 1 << effect as u8);
        let Policies { client_application, assignment, .. } = self.policies;
        let rules = [client_application, assignment]
            .map(|policy| deciding_rules(policy, toolset, operation));
        let policies = self.policies;
        self.made
            .entry((rules, possible))
            .or_insert_with(|| policies.permission(rules, possible))
            .clone()
    }
}

/// For each side effect the place of the first rule that matches. Patterns of a rule are looked at
/// only where it could still decide something.
fn deciding_rules(policy: &Policy, toolset: &str, operation: &str) -> [Option<u16>; 3] {
    let mut found = [None; 3];
    for (rule, place) in policy.rules.iter().zip(0_u16..) {
        let decides = EFFECTS.map(|effect| {
            let is_open: &Option<u16> = &found[effect as usize];
            is_open.is_none() && rule.is_about(effect)
        });
        if decides.contains(&true) && rule.matches(toolset, operation) {
            for (slot, decides) in found.iter_mut().zip(decides) {
                if decides {
                    *slot = Some(place);
                }
            }
        }
    }
    found
}

impl PolicyRule {
    fn is_about(&self, side_effect: SideEffect) -> bool {
        self.side_effects.is_empty() || self.side_effects.contains(&side_effect)
    }

    fn matches(&self, toolset: &str, operation: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|tool| tool.matches(toolset, operation))
    }
}

impl Policies {
    fn permission(&self, rules: [[Option<u16>; 3]; 2], possible: u8) -> Permission {
        let of_effect = |effect: SideEffect| {
            let place = effect as usize;
            self.verdict(rules[0][place], rules[1][place])
        };
        let verdicts = EFFECTS.map(of_effect);
        let reachable = || {
            let is_possible = |effect: &SideEffect| possible & 1 << *effect as u8 != 0;
            EFFECTS.into_iter().filter(is_possible).map(|effect| &verdicts[effect as usize])
        };
        let all = |grant: fn(&Verdict) -> &Grant| {
            let first = reachable().find_map(|verdict| grant(verdict).never());
            first.filter(|_| reachable().all(|verdict| grant(verdict).never().is_some()))
        };
        let judgement = Judgement {
            denied: all(|verdict| &verdict.enforced),
            observed: all(|verdict| &verdict.observed),
        };
        Permission(Arc::new(Parts { verdicts, judgement }))
    }

    fn verdict(&self, of_client: Option<u16>, of_assignment: Option<u16>) -> Verdict {
        let own = (&self.client_application, PolicyOwner::ClientApplication, of_client);
        let assigned = (&self.assignment, PolicyOwner::Assignment, of_assignment);
        let has_say = |policy: &Policy| !policy.rules.is_empty();
        let (own_counts, assigned_counts) = match (has_say(own.0), has_say(assigned.0)) {
            // Somebody has to state the default.
            (false, false) => (true, false),
            counts => counts,
        };
        let mut verdict = Verdict { enforced: Grant::Always, observed: Grant::Always };
        for (policy, owner, matched) in [(own, own_counts), (assigned, assigned_counts)]
            .into_iter()
            .filter_map(|(one, counts)| counts.then_some(one))
        {
            let into = match policy.mode {
                PolicyMode::Enforce => &mut verdict.enforced,
                PolicyMode::Observe => &mut verdict.observed,
            };
            let before = std::mem::replace(into, Grant::Always);
            *into = before.and(self.grant(policy, owner, matched));
        }
        verdict
    }

    fn grant(&self, policy: &Policy, owner: PolicyOwner, matched: Option<u16>) -> Grant {
        let rule = matched.and_then(|place| Some((policy.rules.get(usize::from(place))?, place)));
        let Some((rule, place)) = rule else {
            let default = if self.default_deny {
                Grant::Never(DenialReason::DefaultDeny)
            } else {
                Grant::Always
            };
            return default;
        };
        match rule.effect {
            PolicyEffect::Deny => {
                Grant::Never(DenialReason::DeniedByRule { policy: owner, rule: place + 1 })
            }
            PolicyEffect::Allow if rule.required_trust.is_none() && rule.windows.is_empty() => {
                Grant::Always
            }
            PolicyEffect::Allow => {
                let windows = rule.windows.as_slice().into();
                Grant::When(Box::new([Condition { required_trust: rule.required_trust, windows }]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-30, a Monday, at midnight UTC.
    const MONDAY_MS: u64 = 1_795_996_800_000;
    const MINUTE_MS: u64 = 60_000;

    fn policy(text: &str) -> Policy {
        toml::from_str(text).unwrap()
    }

    fn permission(
        own: &str,
        assigned: &str,
        default_deny: bool,
        effects: &[SideEffect],
    ) -> Permission {
        let policies = Policies {
            client_application: policy(own),
            assignment: policy(assigned),
            default_deny,
        };
        Permissions::new(&policies).of_operation("pets", "drop_pet", effects.iter().copied())
    }

    fn denied(own: &str, assigned: &str, default_deny: bool) -> Option<&'static str> {
        let permission = permission(own, assigned, default_deny, &[SideEffect::Destructive]);
        permission.always().denied.map(DenialReason::code)
    }

    const DENY: &str = "[[rules]]\neffect = 'deny'\nside_effects = ['destructive']";
    const ALLOW: &str = "[[rules]]\neffect = 'allow'\ntools = ['pets/*']";
    const OTHER: &str = "[[rules]]\neffect = 'deny'\ntools = ['list_*']";

    #[test]
    fn the_first_rule_that_matches_decides_and_both_policies_must_allow() {
        let table = [
            ("", "", false, None),
            (DENY, "", false, Some("denied_by_rule")),
            ("", DENY, false, Some("denied_by_rule")),
            (ALLOW, DENY, false, Some("denied_by_rule")),
            (DENY, ALLOW, true, Some("denied_by_rule")),
            (&format!("{ALLOW}\n{DENY}"), "", false, None),
            (&format!("{OTHER}\n{DENY}"), "", false, Some("denied_by_rule")),
            (OTHER, "", false, None),
            ("", "", true, Some("default_deny")),
            (OTHER, "", true, Some("default_deny")),
            ("", OTHER, true, Some("default_deny")),
            (ALLOW, "", true, None),
            ("", ALLOW, true, None),
            (ALLOW, ALLOW, true, None),
            (ALLOW, OTHER, true, Some("default_deny")),
        ];
        for (own, assigned, default_deny, expected) in table {
            assert_eq!(denied(own, assigned, default_deny), expected, "{own} / {assigned}");
        }
    }

    #[test]
    fn a_policy_that_observes_denies_nothing_and_tells_what_it_would_have() {
        let observing = format!("mode = 'observe'\n{DENY}");
        let permission = permission(&observing, ALLOW, false, &[SideEffect::Destructive]);
        assert!(!permission.is_denied());
        let reason = DenialReason::DeniedByRule { policy: PolicyOwner::ClientApplication, rule: 1 };
        let expected = Judgement { denied: None, observed: Some(reason) };
        assert_eq!(permission.always(), expected);
        assert_eq!(permission.judge(Trust::High, 0, SideEffect::Destructive), expected);
        let read = permission.judge(Trust::High, 0, SideEffect::Read);
        assert_eq!(read, Judgement::default());
        let default = denied("mode = 'observe'", "", true);
        assert_eq!(default, None);
    }

    #[test]
    fn what_depends_on_an_argument_is_left_for_the_call() {
        let both = permission(DENY, "", false, &[SideEffect::Read, SideEffect::Destructive]);
        assert!(!both.is_denied());
        let trust = Trust::Medium;
        assert!(both.judge(trust, 0, SideEffect::Read).denied.is_none());
        assert!(both.judge(trust, 0, SideEffect::Destructive).denied.is_some());
    }

    #[test]
    fn trust_and_time_are_left_for_the_call() {
        let own = "[[rules]]\neffect = 'allow'\nrequired_trust = 'high'";
        let assigned = "[[rules]]\neffect = 'allow'\n\
                        windows = [{ days = ['mon'], from = '08:00', to = '17:00' }]";
        let permission = permission(own, assigned, false, &[SideEffect::Write]);
        assert_eq!(permission.always(), Judgement::default());
        let at = |trust, minute: u64| {
            let judgement =
                permission.judge(trust, MONDAY_MS + minute * MINUTE_MS, SideEffect::Write);
            judgement.denied.map(DenialReason::code)
        };
        assert_eq!(at(Trust::High, 8 * 60), None);
        assert_eq!(at(Trust::Medium, 8 * 60), Some("trust_too_low"));
        assert_eq!(at(Trust::High, 8 * 60 - 1), Some("outside_window"));
        assert_eq!(at(Trust::High, 17 * 60), Some("outside_window"));
        assert_eq!(at(Trust::High, 32 * 60), Some("outside_window"), "Tuesday");
    }

    #[test]
    fn windows_may_go_over_midnight_in_their_own_time() {
        let window: TimeWindow =
            toml::from_str("days = ['fri']\nfrom = '22:00'\nto = '06:00'\nutc_offset = '+02:00'")
                .unwrap();
        let at = |day: u64, hour: u64, minute: u64| {
            window.is_open(MONDAY_MS + ((day * 24 + hour) * 60 + minute) * MINUTE_MS)
        };
        // Friday 22:00 there is 20:00 UTC.
        assert!(!at(4, 19, 59));
        assert!(at(4, 20, 0));
        assert!(at(5, 3, 59));
        assert!(!at(5, 4, 0));
        assert!(!at(5, 20, 0), "Saturday");
        assert!(!at(4, 3, 0), "Friday morning belongs to Thursday");
        let all_day: TimeWindow = toml::from_str("from = '00:00'\nto = '24:00'").unwrap();
        assert!(all_day.is_open(0) && all_day.is_open(u64::MAX));
        let west: TimeWindow =
            toml::from_str("from = '23:00'\nto = '24:00'\nutc_offset = '-01:00'").unwrap();
        assert!(west.is_open(0), "before 1970 there");
    }

    #[test]
    fn tools_of_which_the_same_is_said_share_it() {
        let policies = Policies {
            client_application: policy(DENY),
            assignment: Policy::default(),
            default_deny: false,
        };
        let mut permissions = Permissions::new(&policies);
        let mut of = |operation, effect| {
            permissions.of_operation("pets", operation, std::iter::once(effect))
        };
        let (one, other) = (of("a", SideEffect::Read), of("b", SideEffect::Read));
        assert!(Arc::ptr_eq(&one.0, &other.0));
        assert!(!one.is_denied() && of("a", SideEffect::Destructive).is_denied());
    }
}
