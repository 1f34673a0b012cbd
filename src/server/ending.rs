//! How a call ends, and what is recorded and counted of it.

use std::rc::Rc;

use super::{confirm::Unconfirmed, conversation::Conversation, trail::Trail};
use crate::{
    audit::Outcome,
    downstream::{Blame, CallError},
    governance::{Decision, Level, Limited, Reason},
    mcp::{self, Asks, Supplement, ToolOutcome},
    rpc::{RpcError, code},
    telemetry::{MethodLabel, OutcomeLabel},
};

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The tool was run, or what it was given did not fit.
    Ran(ToolOutcome),
    /// The API was called and there was no usable answer.
    Failed(CallError),
    /// The tool's server answered with an error of the protocol.
    Told(RpcError),
    /// The tool's server wants to know something from the client first; the state is to come back
    /// with the answers.
    InputRequired { asks: Asks, state: Option<Box<str>> },
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
    /// Its tool wants the client's user asked, who did not say yes.
    Unconfirmed(Unconfirmed),
}

impl Refused {
    /// The reason, for records and metrics.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Unknown => Reason::UnknownTool,
            Self::Gone => Reason::ToolGone,
            Self::Denied(decision) => decision.reason,
            Self::Unconfirmed(unconfirmed) => unconfirmed.reason(),
        }
    }

    /// What the model reads.
    pub(crate) fn text(&self, trail: &Trail) -> String {
        match self {
            Self::Unknown => mcp::unknown_tool(trail.asked()).message.into_owned(),
            Self::Gone => self.reason().text().to_owned(),
            Self::Denied(decision) => decision.text(),
            Self::Unconfirmed(unconfirmed) => unconfirmed.text().to_owned(),
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
    /// What was said to its client, and can be asked.
    pub(crate) conversation: Option<Rc<Conversation>>,
}

impl Ended {
    /// With nothing to say but how it ended.
    pub(crate) fn plainly(ending: Ending, trail: Trail) -> Self {
        Self { ending, supplement: Supplement::NONE, is_part: false, trail, conversation: None }
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
            Ending::Ran(ToolOutcome::Relayed(relayed)) if !relayed.is_error => {
                (OutcomeLabel::Ok, Outcome::Ok)
            }
            Ending::InputRequired { .. } => (OutcomeLabel::Ok, Outcome::InputRequired),
            Ending::Limited(limited) if limited.level != Level::Tool => {
                (OutcomeLabel::Error, Outcome::Error)
            }
            Ending::Refused(Refused::Unknown) | Ending::Told(_) => {
                (OutcomeLabel::Error, Outcome::Error)
            }
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
        Ending::Ran(ToolOutcome::Relayed(relayed)) if !relayed.is_error => (200, "ok"),
        Ending::Ran(ToolOutcome::Relayed(_)) => (422, "refused_by_api"),
        Ending::Told(error) if error.code == code::INVALID_PARAMS => (422, "refused_by_api"),
        // Nobody can be asked over plain HTTP.
        Ending::InputRequired { .. } => (502, "input_required"),
        Ending::Ran(ToolOutcome::InvalidArguments { .. }) => (400, "invalid_arguments"),
        Ending::Ran(ToolOutcome::Failure { .. }) => match downstream {
            // The API knows what it was asked and does not accept it: the arguments are the
            // caller's. What it says of credentials and pace is between the API and this server.
            Some(status) if is_the_callers(status) => (422, "refused_by_api"),
            // It is the API that is busy.
            Some(429 | 503) => (503, "api_busy"),
            // The API did its part, or was not asked.
            Some(200..=299) | None => (503, "busy"),
            Some(_) => (502, "api_failed"),
        },
        Ending::Failed(CallError::TimedOut { .. }) => (504, "api_timed_out"),
        Ending::Failed(CallError::Overloaded) => (503, "busy"),
        Ending::Failed(error) if error.blame() == Blame::Client => (400, "invalid_arguments"),
        Ending::Failed(_) | Ending::Told(_) => (502, "api_failed"),
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
        for (downstream, status) in [
            (Some(404), 422),
            (Some(401), 502),
            (Some(429), 503),
            (Some(503), 503),
            (Some(500), 502),
            (None, 503),
        ] {
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
