//! What is limited, where, and what somebody is told who is over it.

use std::time::Duration;

use super::Reason;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// `initialize`, `ping` and notifications.
    Light,
    /// Every other message, and REST requests.
    Requests,
    /// Calls of tools, each by its weight.
    ToolCalls,
    /// Calls whose side effect is not `read`, each by its weight.
    Mutations,
    /// Event streams a client listens on.
    ListeningStreams,
}

/// Classes that are rates.
pub(super) const RATES: usize = 4;

impl Class {
    /// The word of files and lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Requests => "requests",
            Self::ToolCalls => "tool_calls",
            Self::Mutations => "mutations",
            Self::ListeningStreams => "listening_streams",
        }
    }

    /// Its place among the classes that are rates.
    pub(super) const fn place(self) -> Option<usize> {
        match self {
            Self::Light => Some(0),
            Self::Requests => Some(1),
            Self::ToolCalls => Some(2),
            Self::Mutations => Some(3),
            Self::ListeningStreams => None,
        }
    }
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// All client applications of a tenant together.
    Tenant,
    /// All callers of a client application together.
    ClientApplication,
    /// One caller of a client application.
    Caller,
    /// One tool in a client application.
    Tool,
}

impl Level {
    /// The word of lists and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::ClientApplication => "client_application",
            Self::Caller => "caller",
            Self::Tool => "tool",
        }
    }
}

/// A limit is reached: nothing was taken, at no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    /// Whose limit.
    pub level: Level,
    /// What it counts.
    pub class: Class,
    /// After this time, if nobody else takes any, there is enough. A stream's is a guess: its
    /// place is free when somebody leaves.
    pub retry_after: Duration,
}

impl Limited {
    /// How long to wait, for `Retry-After`: whole seconds, at least one.
    pub fn retry_after_seconds(&self) -> u32 {
        let seconds = self.retry_after.as_nanos().div_ceil(1_000_000_000).max(1);
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    /// The reason for the audit and the log.
    pub fn reason(&self) -> Reason {
        match self.class {
            Class::Light | Class::Requests => Reason::RateLimited,
            Class::ToolCalls | Class::Mutations => Reason::QuotaExceeded,
            Class::ListeningStreams => Reason::TooManyStreams,
        }
    }

    /// What happened and what to do, for the model or the client.
    pub fn text(&self) -> String {
        let what = match self.class {
            Class::Light | Class::Requests => "Too many requests",
            Class::ToolCalls => "Too many tool calls",
            Class::Mutations => "Too many calls that change something",
            Class::ListeningStreams => "Too many listening streams",
        };
        let whose = match self.level {
            Level::Tenant => "this tenant",
            Level::ClientApplication => "this client application",
            Level::Caller => "this caller",
            Level::Tool => "this tool",
        };
        let seconds = self.retry_after_seconds();
        match self.class {
            Class::ListeningStreams => {
                format!("{what} of {whose}. Close one, or try again in {seconds} s.")
            }
            _ => format!("{what} of {whose}; nothing was done. Try again in {seconds} s."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_whole_seconds_for_headers() {
        let limited = |ns| Limited {
            level: Level::Caller,
            class: Class::Requests,
            retry_after: Duration::from_nanos(ns),
        };
        // 584 years are more seconds than 32 bits hold.
        let table = [(0, 1), (1, 1), (1_000_000_000, 1), (1_000_000_001, 2), (u64::MAX, u32::MAX)];
        for (ns, seconds) in table {
            assert_eq!(limited(ns).retry_after_seconds(), seconds);
        }
        let text = limited(1_500_000_000).text();
        assert_eq!(text, "Too many requests of this caller; nothing was done. Try again in 2 s.");
    }
}
