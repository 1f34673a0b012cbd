//! The values labels can have: few, known in advance, never what a client sent.

/// An enum that is a label: its values in order, and their texts.
pub(super) trait Label: Copy + 'static {
    /// Every value, in the order of their numbers.
    const ALL: &'static [Self];

    /// As it stands in the metrics.
    fn text(self) -> &'static str;
}

macro_rules! label {
    (
        $(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// How many values there are.
            pub const COUNT: usize = Self::ALL_VALUES.len();
            const ALL_VALUES: &'static [Self] = &[$(Self::$variant,)+];

            /// As it stands in the metrics.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl Label for $name {
            const ALL: &'static [Self] = Self::ALL_VALUES;

            fn text(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

label! {
    /// The method of a request.
    MethodLabel {
        /// `initialize`
        Initialize = "initialize",
        /// `ping`
        Ping = "ping",
        /// `tools/list`
        ToolsList = "tools/list",
        /// `tools/call`
        ToolsCall = "tools/call",
        /// `resources/list`
        ResourcesList = "resources/list",
        /// `resources/templates/list`
        ResourceTemplatesList = "resources/templates/list",
        /// `resources/read`
        ResourcesRead = "resources/read",
        /// `prompts/list`
        PromptsList = "prompts/list",
        /// `prompts/get`
        PromptsGet = "prompts/get",
        /// `completion/complete`
        Complete = "completion/complete",
        /// `server/discover`
        Discover = "server/discover",
        /// `subscriptions/listen`
        Listen = "subscriptions/listen",
        /// Any notification.
        Notification = "notification",
        /// Any other method, and requests that were refused before their method was read.
        Other = "other",
    }
}

impl MethodLabel {
    /// The label of a JSON-RPC method.
    pub fn of(method: &str) -> Self {
        match method {
            "initialize" => Self::Initialize,
            "ping" => Self::Ping,
            "tools/list" => Self::ToolsList,
            "tools/call" => Self::ToolsCall,
            "resources/list" => Self::ResourcesList,
            "resources/templates/list" => Self::ResourceTemplatesList,
            "resources/read" => Self::ResourcesRead,
            "prompts/list" => Self::PromptsList,
            "prompts/get" => Self::PromptsGet,
            "completion/complete" => Self::Complete,
            "server/discover" => Self::Discover,
            "subscriptions/listen" => Self::Listen,
            other if other.starts_with("notifications/") => Self::Notification,
            _ => Self::Other,
        }
    }
}

label! {
    /// How a request ended. What was refused before its method was run, and what ended by a panic,
    /// has counters of its own.
    OutcomeLabel {
        /// With a result.
        Ok = "ok",
        /// With a JSON-RPC error.
        Error = "error",
        /// With a tool result that is marked as an error.
        ToolError = "tool_error",
        /// By the client's wish.
        Cancelled = "cancelled",
    }
}

label! {
    /// How a call to a service behind a tool ended.
    DownstreamLabel {
        /// With a success status.
        Ok = "ok",
        /// With a status of 400 to 499.
        ClientError = "client_error",
        /// With any other status.
        ServerError = "server_error",
        /// No connection: name, route, refusal, TLS.
        ConnectFailed = "connect_failed",
        /// An address no call may reach.
        Blocked = "blocked",
        /// Some time limit passed.
        TimedOut = "timed_out",
        /// The response was larger than allowed.
        TooLarge = "too_large",
        /// The response could not be understood, or broke off.
        Broken = "broken",
        /// The caller did not want it any more.
        Cancelled = "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_find_their_label() {
        for &label in MethodLabel::ALL {
            match label {
                MethodLabel::Other | MethodLabel::Notification => {}
                _ => assert_eq!(MethodLabel::of(label.as_str()), label),
            }
        }
        assert_eq!(MethodLabel::of("notifications/cancelled"), MethodLabel::Notification);
        for other in ["", "tools/calls", "notification", "other\"} 1\n"] {
            assert_eq!(MethodLabel::of(other), MethodLabel::Other);
        }
    }

    #[test]
    fn numbers_are_places_in_the_list() {
        for (index, &label) in OutcomeLabel::ALL.iter().enumerate() {
            assert_eq!(label as usize, index);
        }
        for (index, &label) in DownstreamLabel::ALL.iter().enumerate() {
            assert_eq!(label as usize, index);
        }
    }
}
