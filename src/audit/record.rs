//! What one record of the audit log says.

use crate::telemetry::ExecutionId;

/// One call, as it is written down. Everything is borrowed: a record lives while it is written.
///
/// Texts that are longer than their place in the log are cut there and end in `…`. What must not
/// be in the log must not be in here: payloads are redacted by the caller, and sessions are named
/// by a key that opens nothing.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// When the call began, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The call's own id.
    pub execution: ExecutionId,
    /// What the client calls it.
    pub correlation: Option<&'a str>,
    /// Whose catalog.
    pub tenant: &'a str,
    /// Whose view.
    pub client_application: &'a str,
    /// Who called, as far as it is known.
    pub caller: &'a str,
    /// How far that caller is trusted.
    pub trust: Option<&'a str>,
    /// How the call came in.
    pub transport: Transport,
    /// Revision of the protocol; none where there is no protocol.
    pub revision: Option<&'a str>,
    /// Names the session without opening it; never the session's id.
    pub session: Option<&'a str>,
    /// What kind of call it was.
    pub call_type: CallType,
    /// The method, as in `tools/call`.
    pub method: &'a str,
    /// The tool, prompt or resource, by the name clients see.
    pub tool: Option<&'a str>,
    /// The toolset it belongs to.
    pub toolset: Option<&'a str>,
    /// The operation's own name, where it differs from the exposed one.
    pub source_name: Option<&'a str>,
    /// Hash of the tool's schemas.
    pub schema_hash: Option<&'a [u8; 32]>,
    /// What the call does to the world, as the catalog says: `read`, `write`, `destructive`.
    pub side_effect: Option<&'a str>,
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

impl<'a> Record<'a> {
    /// A record of a call that was allowed and went well, to be filled in.
    pub fn new(
        time_ms: u64,
        execution: ExecutionId,
        transport: Transport,
        call_type: CallType,
        method: &'a str,
    ) -> Self {
        Self {
            time_ms,
            execution,
            correlation: None,
            tenant: "",
            client_application: "",
            caller: "",
            trust: None,
            transport,
            revision: None,
            session: None,
            call_type,
            method,
            tool: None,
            toolset: None,
            source_name: None,
            schema_hash: None,
            side_effect: None,
            decision: Decision::Allowed,
            reason: "allowed",
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
        /// A session's begin or end.
        Session = "session",
        /// A tool called over the REST facade.
        RestInvocation = "rest_invocation",
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
        /// The client gave up.
        Cancelled = "cancelled",
    }
}
