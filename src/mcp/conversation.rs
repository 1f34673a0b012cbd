//! What a request that runs and its client say to each other before it is answered.
//!
//! One form for both eras. Up to 2025-11-25 the server sends requests and notifications on the
//! stream of the client's request; from 2026-07-28 on what it wants to know is the result of the
//! client's request, which is sent again with the answers (MCP 2026-07-28, multi-round-trip requests).

use crate::json::{OwnedRaw, Raw};
use crate::rpc::RpcError;
use crate::sessions::ClientCapabilities;

/// What a client can be asked while its request runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AskMethod {
    /// `elicitation/create`: the user is asked.
    Elicitation,
    /// `sampling/createMessage`: the client's model is asked.
    Sampling,
    /// `roots/list`: where the client works.
    Roots,
}

impl AskMethod {
    /// The method of that name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "elicitation/create" => Some(Self::Elicitation),
            "sampling/createMessage" => Some(Self::Sampling),
            "roots/list" => Some(Self::Roots),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// What a client must have declared to be asked this.
    pub fn needs(self, params: Raw<'_>) -> ClientCapabilities {
        let has = |key: &str| params.get(key).is_some_and(|value| !value.is_null());
        match self {
            Self::Roots => ClientCapabilities::ROOTS,
            Self::Sampling if has("tools") || has("toolChoice") => {
                ClientCapabilities::SAMPLING.with(ClientCapabilities::SAMPLING_TOOLS)
            }
            Self::Sampling => ClientCapabilities::SAMPLING,
            Self::Elicitation => match params.get("mode").and_then(Raw::as_str).as_deref() {
                Some("url") => ClientCapabilities::ELICITATION_URL,
                _ => ClientCapabilities::ELICITATION_FORM,
            },
        }
    }
}

/// One question to a client.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What is asked.
    pub method: AskMethod,
    /// An object, as the server that asks sent it, without its `_meta`.
    pub params: OwnedRaw,
}

impl Ask {
    /// Whether a client can do what it is asked. The page that a user is to visit is one of the web:
    /// what else opens by a click may run in the client, or read from its machine.
    pub fn is_fit(&self) -> bool {
        let text = |key: &str| self.params.as_raw().get(key).and_then(Raw::as_str);
        if self.method != AskMethod::Elicitation || text("mode").as_deref() != Some("url") {
            return true;
        }
        let url = text("url").unwrap_or_default();
        let is_of = |scheme: &str| {
            url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        is_of("https://") || is_of("http://")
    }
}

/// Questions, each under the key its answer comes back by.
pub type Asks = Vec<(Box<str>, Ask)>;

/// What came of a question.
#[derive(Clone, Debug)]
pub enum AskOutcome {
    /// The client's result, an object.
    Answer(OwnedRaw),
    /// The client's error.
    Refused(RpcError),
    /// It could not be asked: it has not declared that it can be, it is gone, or it did not answer in
    /// time.
    Unheard,
}

/// What a request tells its client while it runs.
#[derive(Clone, Debug)]
pub enum Told {
    /// `notifications/progress`: its params but for the token, which is the client's own.
    Progress(OwnedRaw),
    /// `notifications/message`: its params.
    Message(LogLevel, OwnedRaw),
    /// `notifications/elicitation/complete`: its params.
    ElicitationComplete(OwnedRaw),
}

/// How grave a log message is (RFC 5424). The gravest is the greatest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the levels of RFC 5424")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// All of them, the least grave first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Its place among [`Self::ALL`], from 1 on, for what keeps levels as numbers.
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The level of that code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code.checked_sub(1)?)).copied()
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_back_and_rise() {
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::of(level.name()), Some(level));
            assert_eq!(LogLevel::from_code(level.code()), Some(level));
        }
        assert!(LogLevel::Debug < LogLevel::Info && LogLevel::Alert < LogLevel::Emergency);
        assert_eq!(LogLevel::of("Warning"), None);
        assert_eq!([LogLevel::from_code(0), LogLevel::from_code(9)], [None, None]);
    }

    #[test]
    fn a_question_needs_what_it_uses() {
        type Can = ClientCapabilities;
        let needs = |method: AskMethod, params: &str| {
            method.needs(OwnedRaw::parse(params.as_bytes()).unwrap().as_raw())
        };
        assert_eq!(needs(AskMethod::Elicitation, "{}"), Can::ELICITATION_FORM);
        assert_eq!(needs(AskMethod::Elicitation, r#"{"mode":"url"}"#), Can::ELICITATION_URL);
        assert_eq!(needs(AskMethod::Sampling, "{}"), Can::SAMPLING);
        let with_tools = Can::SAMPLING.with(Can::SAMPLING_TOOLS);
        assert_eq!(needs(AskMethod::Sampling, r#"{"tools":[]}"#), with_tools);
        assert_eq!(needs(AskMethod::Roots, "{}"), Can::ROOTS);
    }
}
