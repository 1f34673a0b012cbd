//! Why a call brought no usable answer.
//!
//! The text is safe to show to a client: it names the connection and what to check, never an
//! address, a credential or a body. What the operating system said is in [`CallError::detail`], for
//! the log.

use thiserror::Error;

use crate::http::{HeadRefused, HttpError};
use crate::telemetry::DownstreamLabel;

use super::content::ContentError;

/// Whose fault a failed call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Blame {
    /// The caller asked for what cannot be done.
    #[error("client")]
    Client,
    /// The API, or the way to it.
    #[error("downstream")]
    Downstream,
    /// This appliance or its settings.
    #[error("us")]
    Us,
}

/// A call without a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// Nothing could be sent: the way to the API is closed.
    #[error("the API behind connection \"{connection}\" cannot be reached: {problem}")]
    Unreachable {
        /// The connection.
        connection: String,
        /// Which step failed.
        problem: Unreachable,
        /// What the step said, for the log.
        detail: String,
    },
    /// What the connection proves itself with is not to be had, so nothing was sent.
    #[error("connection \"{connection}\" cannot prove itself to its API: {problem}")]
    Credential {
        /// The connection.
        connection: String,
        /// What is missing.
        problem: CredentialProblem,
        /// Where, for the log.
        detail: String,
    },
    /// A time limit passed.
    #[error("the API behind connection \"{connection}\" did not {awaited} within {limit_ms} ms")]
    TimedOut {
        /// The connection.
        connection: String,
        /// What it was waited for.
        awaited: Awaited,
        /// The limit.
        limit_ms: u64,
        /// Whether asking again does no harm.
        repeatable: bool,
    },
    /// The connection ended before the answer did.
    #[error(
        "the API behind connection \"{connection}\" closed the connection {}",
        if *.answering { "in the middle of its answer" } else { "without an answer" }
    )]
    Closed {
        /// The connection.
        connection: String,
        /// Whether a part of the answer had come.
        answering: bool,
        /// Whether asking again does no harm.
        repeatable: bool,
    },
    /// The answer breaks HTTP or a limit.
    #[error("the answer of the API behind connection \"{connection}\" was refused: {reason}")]
    Refused {
        /// The connection.
        connection: String,
        /// What is wrong with it.
        reason: HttpError,
    },
    /// The body's content encoding cannot be undone.
    #[error("the answer of the API behind connection \"{connection}\" cannot be decoded: {source}")]
    Content {
        /// The connection.
        connection: String,
        /// What is wrong with it.
        source: ContentError,
    },
    /// The request is larger or stranger than can be sent.
    #[error("the request cannot be sent: {reason}")]
    Unsendable {
        /// Why.
        reason: HeadRefused,
    },
    /// The API accepted the work and named a place to look that is none of its own.
    #[error(
        "the API behind connection \"{connection}\" accepted the work and leads to another host \
         for its result, which is not followed"
    )]
    Elsewhere {
        /// The connection.
        connection: String,
    },
    /// The API failed too often of late.
    #[error(
        "the API behind connection \"{connection}\" has failed several times in a row and is not \
         called for now; try again in {seconds} s"
    )]
    Resting {
        /// The connection.
        connection: String,
        /// Until it is called again.
        seconds: u64,
    },
    /// An MCP server answered, and not so that it helps.
    #[error("the MCP server behind connection \"{connection}\" {problem}")]
    Upstream {
        /// The connection.
        connection: String,
        /// What is wrong.
        problem: UpstreamProblem,
    },
    /// The tool is no REST tool: a mistake of this program.
    #[error("this tool does not call an HTTP API")]
    NotRest,
    /// Too much is going on here.
    #[error("the runtime is too busy to read the answer; try again")]
    Overloaded,
}

/// Which step on the way to an API failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unreachable {
    /// The name means nothing.
    #[error("its host name does not resolve (check the connection's base_url)")]
    Unresolved,
    /// The name means only addresses that are closed to the tenant.
    #[error("its address is not allowed by the operator's egress policy")]
    Blocked,
    /// Nobody answers there.
    #[error("no connection could be made (is it running?)")]
    Unconnected,
    /// It answers, and not with a certificate that can be trusted.
    #[error("the TLS handshake failed (check its certificate and downstream.extra_roots)")]
    Untrusted,
    /// It did not answer in time.
    #[error("connecting took too long (downstream.connect_timeout_ms)")]
    TimedOut,
    /// It needs TLS, and there is none here.
    #[error(
        "it needs TLS, and no trusted root certificates are loaded \
         (install the system's, or name a file in downstream.extra_roots)"
    )]
    NoTls,
}

/// What is wrong with the answer of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UpstreamProblem {
    /// No message came, but a status.
    #[error("answered with HTTP {0} and no message")]
    Status(u16),
    /// It will not begin, and says so.
    #[error("refuses to begin: {0}")]
    Refused(Box<str>),
    /// Nothing came of any way to begin.
    #[error("gave no usable answer to any way to begin (is there an MCP server at its base_url?)")]
    NoBeginning,
    /// It speaks other revisions.
    #[error("speaks none of the revisions that it may be spoken to in (check `upstream.revision`)")]
    Revision,
    /// The request was taken and not answered.
    #[error("took the request and gave no answer to it")]
    NoAnswer,
    /// What it says is not MCP.
    #[error("breaks the protocol: {0}")]
    Invalid(Box<str>),
    /// It gave up the session, or the stream it answers in, in the middle of the request.
    #[error("lost the request: {0}")]
    Lost(&'static str),
    /// It wants to know more again and again.
    #[error("asks for more again and again and gives no answer")]
    EndlessQuestions,
}

/// Why a connection has nothing to prove itself with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CredentialProblem {
    /// A secret is not where the catalog says, or cannot be sent.
    #[error("a secret it needs is missing or unusable (the operator's log says which)")]
    Missing,
    /// Its client certificate cannot be used.
    #[error("its client certificate cannot be used (the operator's log says why)")]
    Certificate,
    /// The authorization server says no, with this error code.
    #[error("its token endpoint refused it: {0}")]
    TokenRefused(Box<str>),
    /// The authorization server says no, with this status.
    #[error("its token endpoint answered with HTTP {0}")]
    TokenStatus(u16),
    /// The authorization server gave nothing that can be used.
    #[error("its token endpoint gave no usable token")]
    TokenUnusable,
    /// The authorization server cannot be reached.
    #[error("its token endpoint cannot be reached: {0}")]
    TokenUnreachable(Unreachable),
    /// The authorization server did not answer in time.
    #[error("its token endpoint did not answer in time")]
    TokenLate,
    /// The client's token is not for the API, or none.
    #[error(
        "it passes on the client's own token, and the one you came with is not a token for its \
         audience"
    )]
    NotForAudience,
}

impl CredentialProblem {
    fn blame(&self) -> Blame {
        match self {
            Self::NotForAudience => Blame::Client,
            Self::Missing
            | Self::Certificate
            | Self::TokenRefused(_)
            | Self::TokenUnreachable(Unreachable::Blocked | Unreachable::NoTls) => Blame::Us,
            Self::TokenStatus(_)
            | Self::TokenUnusable
            | Self::TokenUnreachable(_)
            | Self::TokenLate => Blame::Downstream,
        }
    }
}

/// What an API was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Awaited {
    /// The request to be taken.
    #[error("take the request")]
    Request,
    /// The head of the answer.
    #[error("begin to answer")]
    Head,
    /// The rest of the answer.
    #[error("finish its answer")]
    Body,
    /// Work that it accepted.
    #[error("finish the work it accepted")]
    Work,
}

impl CallError {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Unreachable { problem, .. } => match problem {
                Unreachable::Blocked | Unreachable::NoTls => Blame::Us,
                _ => Blame::Downstream,
            },
            Self::Credential { problem, .. } => problem.blame(),
            Self::TimedOut { .. }
            | Self::Closed { .. }
            | Self::Refused { .. }
            | Self::Content { .. }
            | Self::Elsewhere { .. }
            | Self::Upstream { .. }
            | Self::Resting { .. } => Blame::Downstream,
            Self::Unsendable { .. } => Blame::Client,
            Self::NotRest | Self::Overloaded => Blame::Us,
        }
    }

    /// Whether the same call may be made again: it cannot have had an effect twice, and may go
    /// better.
    pub fn may_retry(&self) -> bool {
        match self {
            Self::Unreachable { problem, .. } => {
                !matches!(problem, Unreachable::Blocked | Unreachable::NoTls)
            }
            // Nothing was sent.
            Self::Credential { problem, .. } => problem.blame() == Blame::Downstream,
            Self::TimedOut { repeatable, .. } | Self::Closed { repeatable, .. } => *repeatable,
            // The API has done what was asked; only its answer was lost.
            Self::Refused { .. }
            | Self::Content { .. }
            | Self::Unsendable { .. }
            | Self::Elsewhere { .. }
            | Self::Upstream { .. }
            | Self::Resting { .. }
            | Self::NotRest
            | Self::Overloaded => false,
        }
    }

    /// How the call is counted.
    pub(crate) fn label(&self) -> DownstreamLabel {
        match self {
            Self::Unreachable { problem: Unreachable::Blocked, .. }
            | Self::Credential {
                problem: CredentialProblem::TokenUnreachable(Unreachable::Blocked),
                ..
            } => DownstreamLabel::Blocked,
            Self::Unreachable { problem: Unreachable::TimedOut, .. }
            | Self::TimedOut { .. }
            | Self::Credential { problem: CredentialProblem::TokenLate, .. } => {
                DownstreamLabel::TimedOut
            }
            Self::Unreachable { .. } | Self::Credential { .. } => DownstreamLabel::ConnectFailed,
            Self::Refused { reason: HttpError::BodyTooLarge { .. }, .. }
            | Self::Content { source: ContentError::TooLarge { .. }, .. } => {
                DownstreamLabel::TooLarge
            }
            _ => DownstreamLabel::Broken,
        }
    }

    /// What the log should say beside the text; empty where the text says it all.
    pub fn detail(&self) -> &str {
        match self {
            Self::Unreachable { detail, .. } | Self::Credential { detail, .. } => detail,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable(problem: Unreachable) -> CallError {
        let detail = "10.0.0.7:443: refused".to_owned();
        CallError::Unreachable { connection: "orders".to_owned(), problem, detail }
    }

    fn credential(problem: CredentialProblem) -> CallError {
        let (connection, detail) = ("orders".to_owned(), String::new());
        CallError::Credential { connection, problem, detail }
    }

    #[test]
    fn blame_and_retry_follow_from_what_happened() {
        let closed = |answering, repeatable| CallError::Closed {
            connection: "orders".to_owned(),
            answering,
            repeatable,
        };
        let table = [
            (unreachable(Unreachable::Unconnected), Blame::Downstream, true),
            (unreachable(Unreachable::Blocked), Blame::Us, false),
            (credential(CredentialProblem::Missing), Blame::Us, false),
            (credential(CredentialProblem::TokenLate), Blame::Downstream, true),
            (credential(CredentialProblem::NotForAudience), Blame::Client, false),
            (closed(false, true), Blame::Downstream, true),
            (closed(true, false), Blame::Downstream, false),
            (CallError::Unsendable { reason: HeadRefused::Host }, Blame::Client, false),
            (CallError::Overloaded, Blame::Us, false),
        ];
        for (error, blame, may_retry) in table {
            assert_eq!((error.blame(), error.may_retry()), (blame, may_retry), "{error}");
        }
    }

    #[test]
    fn texts_name_the_connection_and_keep_addresses_for_the_log() {
        let error = unreachable(Unreachable::Unconnected);
        assert!(error.to_string().contains("connection \"orders\" cannot be reached: no conn"));
        assert!(!error.to_string().contains("10.0.0.7") && error.detail().contains("10.0.0.7"));
        let slow = CallError::TimedOut {
            connection: "orders".to_owned(),
            awaited: Awaited::Head,
            limit_ms: 30,
            repeatable: true,
        };
        assert!(slow.to_string().ends_with("did not begin to answer within 30 ms"), "{slow}");
    }
}
