//! The decision about one call.

use super::{Reason, moment, window};
use crate::catalog::{DenialReason, Grant, Judgement, Permission, SideEffect, Trust};

/// Whether a call may be made, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may.
    pub is_allowed: bool,
    /// Why it may not; [`Reason::Allowed`] where it may.
    pub reason: Reason,
    /// Why it would not, were the policies that only observe enforced.
    pub observed: Option<Reason>,
    /// The trust it takes, where it takes more than there is.
    pub required_trust: Option<Trust>,
    /// When it is allowed again (Unix milliseconds), where it is a question of time.
    pub next_opening_ms: Option<u64>,
}

/// Decides about a call whose side effect is known.
///
/// What rules say was worked out when the catalog was compiled: this compares a trust and looks at
/// the clock. It takes no lock and allocates nothing.
pub fn decide(
    permission: &Permission,
    trust: Trust,
    side_effect: SideEffect,
    now_ms: u64,
) -> Decision {
    let Judgement { denied, observed } = permission.judge(trust, now_ms, side_effect);
    let observed = observed.map(reason_of);
    let Some(denied) = denied else {
        return Decision {
            is_allowed: true,
            reason: Reason::Allowed,
            observed,
            required_trust: None,
            next_opening_ms: None,
        };
    };
    let required_trust = match denied {
        DenialReason::TrustTooLow { required } => Some(required),
        _ => None,
    };
    let next_opening_ms = match (denied, &permission.verdict(side_effect).enforced) {
        (DenialReason::OutsideWindow, Grant::When(conditions)) => {
            let windows = conditions.iter().map(|condition| &*condition.windows);
            window::next_all_open_ms(windows, now_ms)
        }
        _ => None,
    };
    Decision {
        is_allowed: false,
        reason: reason_of(denied),
        observed,
        required_trust,
        next_opening_ms,
    }
}

/// The reason of a denial.
pub(super) fn reason_of(denied: DenialReason) -> Reason {
    match denied {
        DenialReason::DeniedByRule { .. } => Reason::DeniedByRule,
        DenialReason::DefaultDeny => Reason::DefaultDeny,
        DenialReason::TrustTooLow { .. } => Reason::TrustTooLow,
        DenialReason::OutsideWindow => Reason::OutsideWindow,
    }
}

impl Decision {
    /// The code for audit, log and metrics; what was only observed has one of its own.
    pub fn code(&self) -> &'static str {
        match self.observed {
            Some(observed) if self.is_allowed => observed.observed_str(),
            _ => self.reason.as_str(),
        }
    }

    /// What happened and what to do, for the model.
    pub fn text(&self) -> String {
        match (self.required_trust, self.next_opening_ms) {
            (Some(required), _) => format!(
                "This call takes a caller of trust `{}`, and this one has less. Do not repeat it; \
                 a key with more trust may make it.",
                required.as_str()
            ),
            (_, Some(opening_ms)) => format!(
                "This call is allowed at other times only. Try again after {}.",
                moment::text(opening_ms)
            ),
            (None, None) => self.reason.text().to_owned(),
        }
    }

    /// What happened, for the operator.
    pub fn summary(&self) -> String {
        match (self.required_trust, self.next_opening_ms, self.observed) {
            (Some(required), ..) => {
                format!("The call takes trust `{}`, and the caller has less.", required.as_str())
            }
            (_, Some(opening_ms), _) => {
                let opening = moment::text(opening_ms);
                format!("The call is allowed at other times only, the next time from {opening} on.")
            }
            (None, None, Some(observed)) if self.is_allowed => format!(
                "The call is allowed, because the policy only observes; enforced, it would be \
                 refused: {}",
                observed.summary()
            ),
            (None, None, _) => self.reason.summary().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::fixture;

    const HOUR_MS: u64 = 3_600_000;

    /// A tool's permission under the rules of a client application's policy.
    fn permission(policy: &str) -> Permission {
        let view = fixture::view(&format!(
            "
[[tenant]]
id = 'acme'
[[client_application]]
tenant = 'acme'
id = 'desk'
policy = {{ {policy} }}
[[toolset]]
tenant = 'acme'
id = 'own'
kind = 'builtin'
[[assignment]]
tenant = 'acme'
client_application = 'desk'
toolset = 'own'
"
        ));
        let tool = view.assigned().find(|tool| tool.name.as_str() == "list_tools").unwrap();
        tool.permission.clone()
    }

    #[test]
    fn each_reason_has_its_decision() {
        let read = SideEffect::Read;
        // 1970-01-01T00:00:00Z; the window opens at 08:00.
        let window = "rules = [{ effect = 'allow', windows = [{ from = '08:00', to = '09:00' }] }]";
        let trust = "rules = [{ effect = 'allow', required_trust = 'high' }]";
        let deny = "rules = [{ effect = 'deny' }]";
        let table = [
            ("", 0, "allowed", "allowed."),
            (deny, 0, "denied_by_rule", "denies this call"),
            (trust, 0, "trust_too_low", "trust `high`"),
            (window, 0, "outside_window", "after 1970-01-01T08:00:00Z"),
            (window, 8 * HOUR_MS, "allowed", "allowed."),
            (window, 9 * HOUR_MS, "outside_window", "after 1970-01-02T08:00:00Z"),
        ];
        for (policy, now_ms, code, text) in table {
            let permission = permission(policy);
            let decision = decide(&permission, Trust::Medium, read, now_ms);
            assert_eq!(decision.code(), code, "{policy} at {now_ms}");
            assert_eq!(decision.is_allowed, code == "allowed");
            assert!(decision.text().contains(text), "{}", decision.text());
        }
        let trusted = decide(&permission(trust), Trust::High, read, 0);
        assert!(trusted.is_allowed && trusted.observed.is_none());
        for (policy, code) in [
            (deny, "observed_denied_by_rule"),
            (trust, "observed_trust_too_low"),
            (window, "observed_outside_window"),
        ] {
            let permission = permission(&format!("mode = 'observe', {policy}"));
            let decision = decide(&permission, Trust::Medium, read, 0);
            assert!(decision.is_allowed && decision.reason == Reason::Allowed);
            assert_eq!(decision.code(), code);
        }
    }
}
