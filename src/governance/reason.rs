//! Why a request was allowed or not: one list of codes that never change.

/// Why a request was allowed or refused. The audit, metrics and `ringway explain` use the same
/// words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Nothing speaks against it.
    Allowed,
    /// A rule denies it.
    DeniedByRule,
    /// No rule allows it, and the tenant denies what no rule allows.
    DefaultDeny,
    /// It takes more trust than the caller has.
    TrustTooLow,
    /// It is allowed at other times.
    OutsideWindow,
    /// The client application has no such tool.
    UnknownTool,
    /// The tool was removed or renamed longer ago than it stays callable.
    ToolGone,
    /// More requests than a limit allows.
    RateLimited,
    /// More calls than a limit allows.
    QuotaExceeded,
    /// More listening streams than a limit allows.
    TooManyStreams,
    /// Its user was asked, and said yes.
    Confirmed,
    /// Its user was asked, and said no.
    Declined,
    /// Its user could not be asked, or did not answer.
    NotConfirmed,
}

/// Whose part it is to do something about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// Nobody's.
    None,
    /// The client's: it asked for what it may not have.
    Client,
    /// The client's, and time mends it.
    ClientForNow,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Allowed,
        Self::DeniedByRule,
        Self::DefaultDeny,
        Self::TrustTooLow,
        Self::OutsideWindow,
        Self::UnknownTool,
        Self::ToolGone,
        Self::RateLimited,
        Self::QuotaExceeded,
        Self::TooManyStreams,
        Self::Confirmed,
        Self::Declined,
        Self::NotConfirmed,
    ];

    /// The code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::DeniedByRule => "denied_by_rule",
            Self::DefaultDeny => "default_deny",
            Self::TrustTooLow => "trust_too_low",
            Self::OutsideWindow => "outside_window",
            Self::UnknownTool => "unknown_tool",
            Self::ToolGone => "tool_gone",
            Self::RateLimited => "rate_limited",
            Self::QuotaExceeded => "quota_exceeded",
            Self::TooManyStreams => "too_many_streams",
            Self::Confirmed => "confirmed",
            Self::Declined => "declined",
            Self::NotConfirmed => "not_confirmed",
        }
    }

    /// The code of a request that was allowed because the policy only observes, and would have
    /// been refused for this reason.
    pub const fn observed_str(self) -> &'static str {
        match self {
            Self::DeniedByRule => "observed_denied_by_rule",
            Self::DefaultDeny => "observed_default_deny",
            Self::TrustTooLow => "observed_trust_too_low",
            Self::OutsideWindow => "observed_outside_window",
            // Policies give no other.
            _ => self.as_str(),
        }
    }

    /// What happened and what to do about it: one sentence or two for the model.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Allowed => "The call is allowed.",
            Self::DeniedByRule => {
                "A policy denies this call. Do not repeat it; ask the operator if it is needed."
            }
            Self::DefaultDeny => {
                "No policy allows this call. Do not repeat it; ask the operator if it is needed."
            }
            Self::TrustTooLow => {
                "This caller is not trusted enough for this call. Do not repeat it; a key with \
                 more trust may make it."
            }
            Self::OutsideWindow => {
                "This call is allowed at other times only. Try again when its time has come."
            }
            Self::UnknownTool => "There is no such tool here. List the tools again.",
            Self::ToolGone => {
                "This tool was removed or renamed, or is withheld for now. List the tools again \
                 and use what is there."
            }
            Self::RateLimited => "Too many requests. Wait before the next one.",
            Self::QuotaExceeded => "Too many calls. Wait before the next one.",
            Self::TooManyStreams => "Too many listening streams. Close one first.",
            Self::Confirmed => "The user confirmed this call.",
            Self::Declined => "The user declined this call. Nothing was done.",
            Self::NotConfirmed => "The user did not confirm this call. Nothing was done.",
        }
    }

    /// What happened, for the operator, who can do something about it.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Allowed => "The call is allowed.",
            Self::DeniedByRule => "A rule denies the call.",
            Self::DefaultDeny => "No rule allows the call, and the tenant denies what none allows.",
            Self::TrustTooLow => "The call takes more trust than the caller has.",
            Self::OutsideWindow => "The call is allowed at other times only.",
            Self::UnknownTool => "The client application has no such tool.",
            Self::ToolGone => "The tool was removed or renamed longer ago than it stays callable.",
            Self::RateLimited => "There are more requests than a limit allows.",
            Self::QuotaExceeded => "There are more calls than a limit allows.",
            Self::TooManyStreams => "There are more listening streams than a limit allows.",
            Self::Confirmed => "The user of the client confirmed the call.",
            Self::Declined => "The user of the client declined the call.",
            Self::NotConfirmed => "The user of the client could not be asked, or did not answer.",
        }
    }

    /// The HTTP status where a request is answered with this and nothing else.
    pub const fn status(self) -> u16 {
        match self {
            Self::Allowed | Self::Confirmed => 200,
            Self::DeniedByRule
            | Self::DefaultDeny
            | Self::TrustTooLow
            | Self::OutsideWindow
            | Self::Declined
            | Self::NotConfirmed => 403,
            Self::UnknownTool => 404,
            Self::ToolGone => 410,
            Self::RateLimited | Self::QuotaExceeded | Self::TooManyStreams => 429,
        }
    }

    /// Whose part it is to do something, and whether waiting is enough.
    pub const fn blame(self) -> Blame {
        match self {
            Self::Allowed | Self::Confirmed => Blame::None,
            Self::OutsideWindow
            | Self::RateLimited
            | Self::QuotaExceeded
            | Self::TooManyStreams => Blame::ClientForNow,
            _ => Blame::Client,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_differ_and_never_change() {
        let codes: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(
            codes,
            [
                "allowed",
                "denied_by_rule",
                "default_deny",
                "trust_too_low",
                "outside_window",
                "unknown_tool",
                "tool_gone",
                "rate_limited",
                "quota_exceeded",
                "too_many_streams",
                "confirmed",
                "declined",
                "not_confirmed"
            ]
        );
        let texts: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.text()).collect();
        assert_eq!(texts.len(), Reason::ALL.len());
        let summaries: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.summary()).collect();
        assert_eq!(summaries.len(), Reason::ALL.len());
    }

    #[test]
    fn what_policies_give_has_an_observed_code() {
        let of_users = [Reason::Declined, Reason::NotConfirmed];
        for reason in Reason::ALL.into_iter().filter(|reason| !of_users.contains(reason)) {
            let observed = reason.observed_str();
            let expected = format!("observed_{}", reason.as_str());
            assert_eq!(observed == expected, reason.status() == 403, "{observed}");
        }
    }
}
