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
}
