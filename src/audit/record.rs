//! What one record of the audit log says.

use super::members::{Asker, Subject};
use crate::telemetry::ExecutionId;

/// One call, as it is written down. Everything is borrowed: a record lives while it is written.
///
/// Texts that are longer than their place in the log are cut there and end in `…`. What must not
/// be in the log must not be in here: payloads are redacted by the caller, and sessions are named
/// by a key that opens nothing.
///
/// What a `&'static str` says is a word of this product, and written as it is.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// When the call began, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The call's own id.
    pub execution: ExecutionId,
    /// What the client calls it.
    pub correlation: Option<&'a str>,
    /// Who called, and over whose view.
    pub asker: &'a Asker,
    /// How the call came in.
    pub transport: Transport,
    /// Revision of the protocol; none where there is no protocol.
    pub revision: Option<&'static str>,
    /// Names the session without opening it; never the session's id.
    pub session: Option<&'a [u8; 16]>,
    /// What kind of call it was.
    pub call_type: CallType,
    /// The method, as in `tools/call`.
    pub method: &'static str,
    /// The tool, where the call found one.
    pub subject: Option<&'a Subject>,
    /// The tool, prompt or resource that was asked for, by the name the client said; not written
    /// where there is a `subject`.
    pub asked: Option<&'a str>,
    /// What the call does to the world, as the catalog says: `read`, `write`, `destructive`.
    pub side_effect: Option<&'static str>,
    /// Whether it was let through.
    pub decision: Decision,
    /// Why.
    pub reason: &'static str,
    /// What a policy that only observes would have said.
    pub observed: Option<&'static str>,
    /// What came of it.
    pub outcome: Outcome,
    /// Status of the service behind the tool.
    pub downstream_status: Option<u16>,
    /// Time from dispatch to answer, in microseconds.
    pub total_us: u64,
    /// The part of it spent waiting for the service behind the tool.
    pub downstream_us: Option<u64>,
    /// Size of the request.
    pub request_bytes: u64,
    /// Size of the answer.
    pub response_bytes: u64,
    /// How many arguments were repaired.
    pub repairs: u32,
    /// Whether the result was cut to the tool's budget.
    pub cut: bool,
    /// Arguments, redacted; none where the tool does not ask for them.
    pub arguments: Option<Payload<'a>>,
    /// Result, redacted; none where the tool does not ask for it.
    pub result: Option<Payload<'a>>,
    /// The list that was answered; none where no tool in it asks for it.
    pub listed: Option<Payload<'a>>,
}

/// The reason of what nothing spoke against: records leave it out.
pub const ALLOWED: &str = "allowed";

impl<'a> Record<'a> {
    /// A record of a call that was allowed and went well, to be filled in.
    pub fn new(
        time_ms: u64,
        execution: ExecutionId,
        asker: &'a Asker,
        transport: Transport,
        call_type: CallType,
        method: &'static str,
    ) -> Self {
        Self {
            time_ms,
            execution,
            correlation: None,
            asker,
            transport,
            revision: None,
            session: None,
            call_type,
            method,
            subject: None,
            asked: None,
            side_effect: None,
            decision: Decision::Allowed,
            reason: ALLOWED,
            observed: None,
            outcome: Outcome::Ok,
            downstream_status: None,
            total_us: 0,
            downstream_us: None,
            request_bytes: 0,
            response_bytes: 0,
            repairs: 0,
            cut: false,
            arguments: None,
            result: None,
            listed: None,
        }
    }

    pub(super) fn has_payloads(&self) -> bool {
        self.arguments.is_some() || self.result.is_some() || self.listed.is_some()
    }

    /// When the call ended, in milliseconds since the Unix epoch.
    pub(super) fn end_ms(&self) -> u64 {
        self.time_ms.saturating_add(self.total_us / 1000)
    }

    pub(super) fn without_payloads(&self) -> Self {
        Self { arguments: None, result: None, listed: None, ..*self }
    }
}

/// Bytes to be kept with a record, redacted already. Well-formed JSON that fits stands in the
/// record as it is; anything else as text, cut to the bound of `[audit]`.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a>(pub &'a [u8]);

macro_rules! words {
    (
        $(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// As it stands in the log.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Reads what stands in the log.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }
    };
}

words! {
    /// How a call came in.
    Transport {
        /// Streamable HTTP.
        StreamableHttp = "streamable_http",
        /// HTTP+SSE of revision 2024-11-05.
        HttpSse = "http_sse",
        /// The REST facade.
        Rest = "rest",
        /// The admin plane, and so the command line.
        Admin = "admin",
        /// Nobody called: an upstream server said something by itself.
        Upstream = "upstream",
    }
}

words! {
    /// What kind of call a record is about.
    CallType {
        /// `tools/call`
        ToolExecution = "tool_execution",
        /// `tools/list` and searches.
        ToolDiscovery = "tool_discovery",
        /// `discover_tool_schema` and schema resources.
        SchemaDiscovery = "schema_discovery",
        /// `resources/list` and `resources/templates/list`
        ResourceList = "resource_list",
        /// `resources/read`
        ResourceRead = "resource_read",
        /// `prompts/list`
        PromptList = "prompt_list",
        /// `prompts/get`
        PromptGet = "prompt_get",
        /// `completion/complete`
        Completion = "completion",
        /// A session's begin or end; of the era without sessions, what their beginning was:
        /// `server/discover`, and `subscriptions/listen` when it is answered.
        Session = "session",
        /// A tool called over the REST facade.
        RestInvocation = "rest_invocation",
        /// A definition of an upstream server is withheld, accepted, refused, or gone.
        DefinitionChange = "definition_change",
    }
}

impl CallType {
    /// The method of every call of this kind, where there is but one: records leave it out.
    pub const fn only_method(self) -> Option<&'static str> {
        Some(match self {
            Self::ToolExecution => "tools/call",
            Self::ResourceRead => "resources/read",
            Self::PromptList => "prompts/list",
            Self::PromptGet => "prompts/get",
            Self::Completion => "completion/complete",
            Self::RestInvocation => "POST /tools/{tool}",
            Self::ToolDiscovery
            | Self::SchemaDiscovery
            | Self::ResourceList
            | Self::Session
            | Self::DefinitionChange => {
                return None;
            }
        })
    }
}

words! {
    /// Whether a call was let through.
    Decision {
        /// It was.
        Allowed = "allowed",
        /// It was not.
        Denied = "denied",
    }
}

words! {
    /// What came of a call.
    Outcome {
        /// It was answered.
        Ok = "ok",
        /// The tool answered with an error.
        ToolError = "tool_error",
        /// It was answered with an error of the protocol.
        Error = "error",
        /// The client was asked for something first.
        InputRequired = "input_required",
        /// The client gave up.
        Cancelled = "cancelled",
    }
}
