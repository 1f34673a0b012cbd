//! The methods of the protocol, as far as they are served.

use super::Revision;

/// A method or notification by its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// `initialize`
    Initialize,
    /// `ping`
    Ping,
    /// `tools/list`
    ToolsList,
    /// `tools/call`
    ToolsCall,
    /// `resources/list`
    ResourcesList,
    /// `resources/templates/list`
    ResourceTemplatesList,
    /// `resources/read`
    ResourcesRead,
    /// `prompts/list`
    PromptsList,
    /// `prompts/get`
    PromptsGet,
    /// `completion/complete`
    Complete,
    /// `logging/setLevel`
    SetLevel,
    /// `resources/subscribe`
    Subscribe,
    /// `resources/unsubscribe`
    Unsubscribe,
    /// `server/discover`
    Discover,
    /// `subscriptions/listen`
    Listen,
    /// `notifications/initialized`
    Initialized,
    /// `notifications/cancelled`
    Cancelled,
    /// `notifications/roots/list_changed`
    RootsChanged,
    /// Anything else.
    Other,
}

impl Method {
    /// All that are known.
    #[cfg(test)]
    const KNOWN: [Self; 18] = [
        Self::Initialize,
        Self::Ping,
        Self::ToolsList,
        Self::ToolsCall,
        Self::ResourcesList,
        Self::ResourceTemplatesList,
        Self::ResourcesRead,
        Self::PromptsList,
        Self::PromptsGet,
        Self::Complete,
        Self::SetLevel,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Discover,
        Self::Listen,
        Self::Initialized,
        Self::Cancelled,
        Self::RootsChanged,
    ];

    /// The method of that name. Names are case-sensitive.
    pub fn of(name: &str) -> Self {
        match name {
            "tools/call" => Self::ToolsCall,
            "tools/list" => Self::ToolsList,
            "ping" => Self::Ping,
            "initialize" => Self::Initialize,
            "notifications/initialized" => Self::Initialized,
            "notifications/cancelled" => Self::Cancelled,
            "resources/list" => Self::ResourcesList,
            "resources/templates/list" => Self::ResourceTemplatesList,
            "resources/read" => Self::ResourcesRead,
            "prompts/list" => Self::PromptsList,
            "prompts/get" => Self::PromptsGet,
            "completion/complete" => Self::Complete,
            "logging/setLevel" => Self::SetLevel,
            "resources/subscribe" => Self::Subscribe,
            "resources/unsubscribe" => Self::Unsubscribe,
            "notifications/roots/list_changed" => Self::RootsChanged,
            "server/discover" => Self::Discover,
            "subscriptions/listen" => Self::Listen,
            _ => Self::Other,
        }
    }

    /// Whether a revision has it. Nothing is lost on notifications: those not known are passed over.
    pub(super) const fn is_in(self, revision: Revision) -> bool {
        match self {
            Self::Initialize
            | Self::Ping
            | Self::SetLevel
            | Self::Subscribe
            | Self::Unsubscribe => !revision.is_modern(),
            Self::Discover | Self::Listen => revision.is_modern(),
            _ => true,
        }
    }

    /// Whether its results say how long they may be kept (MCP 2026-07-28, caching).
    pub const fn is_cacheable(self) -> bool {
        matches!(
            self,
            Self::Discover
                | Self::ToolsList
                | Self::ResourcesList
                | Self::ResourceTemplatesList
                | Self::ResourcesRead
                | Self::PromptsList
        )
    }

    /// Its name; `other` for what is not known, so that labels stay few.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::ToolsList => "tools/list",
            Self::ToolsCall => "tools/call",
            Self::ResourcesList => "resources/list",
            Self::ResourceTemplatesList => "resources/templates/list",
            Self::ResourcesRead => "resources/read",
            Self::PromptsList => "prompts/list",
            Self::PromptsGet => "prompts/get",
            Self::Complete => "completion/complete",
            Self::SetLevel => "logging/setLevel",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::RootsChanged => "notifications/roots/list_changed",
            Self::Discover => "server/discover",
            Self::Listen => "subscriptions/listen",
            Self::Initialized => "notifications/initialized",
            Self::Cancelled => "notifications/cancelled",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for method in Method::KNOWN {
            assert_eq!(Method::of(method.name()), method);
        }
        for name in ["", "Ping", "tools/list ", "logging/setlevel", "Server/discover", "other"] {
            assert_eq!(Method::of(name), Method::Other);
        }
    }
}
