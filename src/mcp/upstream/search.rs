//! Which transport and which revision a server speaks, where nobody said so: what is tried, and
//! what its answers mean (MCP 2026-07-28, versioning; MCP 2025-11-25, transports, backwards
//! compatibility).
//!
//! A modern request goes first. A server of the era before refuses it in one of many ways (a bad
//! request, an unknown method, no answer at all), and then gets `initialize`. Where even that is
//! no method of its URL, it may be of the first transport, whose GET says where to post.
//!
//! That a server wants other credentials is no sign of its era: what it says to `initialize` is
//! what its operator is told.

use super::{ServerFacts, supported_revisions};
use crate::catalog::UpstreamTransport;
use crate::json::OwnedRaw;
use crate::rpc::RpcError;
use crate::sessions::Revision;

/// Errors that only a server of the era without sessions gives: a header, a capability, a version.
const MODERN_ERRORS: std::ops::RangeInclusive<i32> = -32022..=-32020;
const UNSUPPORTED_VERSION: i32 = -32022;

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamKind {
    /// Each request for itself (2026-07-28).
    Modern,
    /// Streamable HTTP with `initialize`.
    Streamable,
    /// HTTP+SSE.
    Events,
}

/// What is to be tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try {
    /// Post `server/discover`.
    Discover,
    /// Post `initialize` with this revision.
    Initialize(Revision),
    /// GET, wait for the `endpoint` event, post `initialize` with this revision there.
    Events(Revision),
}

/// What came of a try.
#[derive(Debug, Clone)]
pub enum Reaction {
    /// A result.
    Result(OwnedRaw),
    /// An error of the protocol, and the status it came with.
    Error(u16, RpcError),
    /// A response that is no message.
    Status(u16),
    /// No response, or none that could be read.
    Nothing,
}

/// What that means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Not clear yet.
    Try(Try),
    /// The server is of the era without sessions. What it says of itself, where it was asked.
    Modern(Option<Box<ServerFacts>>),
    /// A session is open, with this revision.
    Open(Box<ServerFacts>, Revision),
    /// There is no speaking with it: what it answered was no help.
    Failed(Failure),
}

/// Why there is no speaking with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It answered with this status and no message.
    Status(u16),
    /// It answered with this error.
    Error(RpcError),
    /// It speaks none of the revisions that may be spoken.
    Revision,
    /// It gave no usable answer.
    Nothing,
}

/// The search, from one try to the next.
#[derive(Debug, Clone)]
pub struct Search {
    transport: UpstreamTransport,
    pinned: Option<Revision>,
    now: Try,
    /// A revision that the server named was tried.
    has_retried: bool,
    /// What `initialize` was answered, for when the first transport is not it either.
    refused: Option<Failure>,
}

impl Search {
    /// Begins with what was found the last time, where something was.
    pub fn new(
        transport: UpstreamTransport,
        pinned: Option<Revision>,
        found: Option<UpstreamKind>,
    ) -> Self {
        let newest = Revision::NEWEST_WITH_SESSIONS;
        let legacy = pinned.filter(|revision| !revision.is_modern());
        let revision = legacy.unwrap_or(newest);
        let now = match (transport, pinned, found) {
            (UpstreamTransport::HttpSse, _, _) => Try::Events(revision),
            (_, Some(pinned), _) if pinned.is_modern() => Try::Discover,
            (UpstreamTransport::Auto, _, Some(UpstreamKind::Events)) => Try::Events(revision),
            (_, Some(_), _) | (_, None, Some(UpstreamKind::Streamable)) => {
                Try::Initialize(revision)
            }
            (_, None, _) => Try::Discover,
        };
        Self { transport, pinned, now, has_retried: false, refused: None }
    }

    /// What is tried now.
    pub fn now(&self) -> Try {
        self.now
    }

    /// Takes in what came of it.
    pub fn heard(&mut self, reaction: &Reaction) -> Verdict {
        let verdict = match self.now {
            Try::Discover => self.discovered(reaction),
            Try::Initialize(_) => self.initialized(reaction),
            Try::Events(revision) => match reaction {
                Reaction::Result(result) => self.opened(result, revision),
                other => Verdict::Failed(self.refused.take().unwrap_or_else(|| failure(other))),
            },
        };
        if let Verdict::Try(next) = &verdict {
            self.now = *next;
        }
        verdict
    }

    fn discovered(&self, reaction: &Reaction) -> Verdict {
        if let Reaction::Result(result) = reaction {
            let (facts, named) = ServerFacts::of_discover(result.as_raw());
            if named.contains(&Revision::V20260728) {
                return Verdict::Modern(Some(Box::new(facts)));
            }
        }
        if let Reaction::Error(_, error) = reaction
            && MODERN_ERRORS.contains(&error.code)
            && error.code != UNSUPPORTED_VERSION
        {
            return Verdict::Modern(None);
        }
        if self.pinned.is_some() {
            return Verdict::Failed(match reaction {
                Reaction::Result(_) => Failure::Revision,
                other => failure(other),
            });
        }
        let named = match reaction {
            Reaction::Error(_, error) => supported_revisions(error),
            _ => Vec::new(),
        };
        let newest = named.into_iter().filter(|revision| !revision.is_modern()).max();
        Verdict::Try(Try::Initialize(newest.unwrap_or(Revision::NEWEST_WITH_SESSIONS)))
    }

    fn initialized(&mut self, reaction: &Reaction) -> Verdict {
        let Try::Initialize(asked) = self.now else { return Verdict::Failed(Failure::Nothing) };
        let status = match reaction {
            Reaction::Result(result) => return self.opened(result, asked),
            Reaction::Error(status, error) => {
                let named = supported_revisions(error);
                if self.pinned.is_none() && !std::mem::replace(&mut self.has_retried, true) {
                    let legacy = named.iter().filter(|revision| !revision.is_modern()).max();
                    match legacy {
                        Some(other) if *other != asked => {
                            return Verdict::Try(Try::Initialize(*other));
                        }
                        _ if named.contains(&Revision::V20260728) => return Verdict::Modern(None),
                        _ => {}
                    }
                }
                *status
            }
            Reaction::Status(status) => *status,
            Reaction::Nothing => return Verdict::Failed(Failure::Nothing),
        };
        if matches!(status, 400 | 404 | 405) && self.transport == UpstreamTransport::Auto {
            self.refused = Some(failure(reaction));
            return Verdict::Try(Try::Events(asked));
        }
        Verdict::Failed(failure(reaction))
    }

    fn opened(&self, result: &OwnedRaw, asked: Revision) -> Verdict {
        let (facts, revision) = ServerFacts::of_initialize(result.as_raw());
        match revision {
            // Whoever pins a revision wants that one and no other.
            Some(revision) if self.pinned.is_none() || revision == asked => {
                Verdict::Open(Box::new(facts), revision)
            }
            _ => Verdict::Failed(Failure::Revision),
        }
    }
}

fn failure(reaction: &Reaction) -> Failure {
    match reaction {
        Reaction::Result(_) => Failure::Revision,
        Reaction::Error(_, error) => Failure::Error(error.clone()),
        Reaction::Status(status) => Failure::Status(*status),
        Reaction::Nothing => Failure::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: UpstreamTransport = UpstreamTransport::Auto;
    const INITIALIZE: Verdict = Verdict::Try(Try::Initialize(Revision::NEWEST_WITH_SESSIONS));

    fn raw(text: &str) -> Reaction {
        Reaction::Result(OwnedRaw::parse(text.as_bytes()).unwrap())
    }

    fn error(status: u16, code: i32, supported: &str) -> Reaction {
        let data = format!(r#"{{"supported":[{supported}],"requested":"x"}}"#);
        Reaction::Error(status, RpcError::new(code, "no").with_data(data))
    }

    fn initialized(revision: &str) -> Reaction {
        raw(&format!(r#"{{"protocolVersion":"{revision}","capabilities":{{}}}}"#))
    }

    /// What servers of the era before answer to a modern request: measured.
    #[test]
    fn whatever_a_legacy_server_says_to_the_probe_it_is_initialized() {
        for reaction in [
            error(400, -32000, ""),
            error(400, -32600, ""),
            error(400, -32022, "\"2025-11-25\",\"2025-06-18\""),
            error(404, -32601, ""),
            error(200, -32601, ""),
            error(200, -32602, ""),
            Reaction::Status(400),
            Reaction::Status(404),
            Reaction::Status(405),
            Reaction::Status(406),
            Reaction::Status(500),
            Reaction::Status(401),
            Reaction::Status(403),
            Reaction::Status(202),
            Reaction::Nothing,
            raw("{}"),
            raw(r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#),
        ] {
            let mut search = Search::new(AUTO, None, None);
            assert_eq!(search.now(), Try::Discover);
            assert_eq!(search.heard(&reaction), INITIALIZE, "{reaction:?}");
            let opened = search.heard(&initialized("2025-06-18"));
            assert!(matches!(opened, Verdict::Open(_, Revision::V20250618)));
        }
        // An older one is asked for what it knows.
        let mut search = Search::new(AUTO, None, None);
        let older = search.heard(&error(400, -32022, "\"2025-03-26\""));
        assert_eq!(older, Verdict::Try(Try::Initialize(Revision::V20250326)));
    }

    #[test]
    fn a_modern_server_is_known_by_its_answer_and_by_its_errors() {
        let said =
            r#"{"supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{}}}"#;
        let Verdict::Modern(Some(facts)) = Search::new(AUTO, None, None).heard(&raw(said)) else {
            panic!()
        };
        assert!(facts.tools);
        for code in [-32020, -32021] {
            let verdict = Search::new(AUTO, None, None).heard(&error(400, code, ""));
            assert_eq!(verdict, Verdict::Modern(None));
        }
        // Remembered as of the era before, and no more.
        let mut search = Search::new(AUTO, None, Some(UpstreamKind::Streamable));
        let verdict = search.heard(&error(400, -32022, "\"2026-07-28\""));
        assert_eq!(verdict, Verdict::Modern(None));
    }

    #[test]
    fn the_first_transport_is_the_last_that_is_tried() {
        for status in [400, 404, 405] {
            let mut search = Search::new(AUTO, None, None);
            search.heard(&Reaction::Status(404));
            let events = Verdict::Try(Try::Events(Revision::NEWEST_WITH_SESSIONS));
            assert_eq!(search.heard(&Reaction::Status(status)), events);
            let opened = search.clone().heard(&initialized("2024-11-05"));
            assert!(matches!(opened, Verdict::Open(_, Revision::V20241105)));
            // What was said to `initialize` says more.
            let failed = search.heard(&Reaction::Status(406));
            assert_eq!(failed, Verdict::Failed(Failure::Status(status)));
        }
        for status in [401, 403, 500, 503] {
            let mut search = Search::new(AUTO, None, None);
            search.heard(&Reaction::Status(status));
            let failed = search.heard(&Reaction::Status(status));
            assert_eq!(failed, Verdict::Failed(Failure::Status(status)));
        }
        let streamable = UpstreamTransport::StreamableHttp;
        let mut search = Search::new(streamable, None, Some(UpstreamKind::Streamable));
        let failed = search.heard(&Reaction::Status(404));
        assert_eq!(failed, Verdict::Failed(Failure::Status(404)));
    }

    #[test]
    fn what_is_pinned_is_spoken_and_nothing_else() {
        let newest = Revision::NEWEST_WITH_SESSIONS;
        let old = Some(Revision::V20250326);
        for (transport, pinned, found, first) in [
            (AUTO, None, None, Try::Discover),
            (AUTO, None, Some(UpstreamKind::Modern), Try::Discover),
            (AUTO, None, Some(UpstreamKind::Streamable), Try::Initialize(newest)),
            (AUTO, None, Some(UpstreamKind::Events), Try::Events(newest)),
            (AUTO, old, None, Try::Initialize(Revision::V20250326)),
            (AUTO, old, Some(UpstreamKind::Events), Try::Events(Revision::V20250326)),
            (AUTO, Some(Revision::V20260728), Some(UpstreamKind::Streamable), Try::Discover),
            (UpstreamTransport::HttpSse, None, None, Try::Events(newest)),
            (UpstreamTransport::HttpSse, old, None, Try::Events(Revision::V20250326)),
        ] {
            assert_eq!(Search::new(transport, pinned, found).now(), first);
        }
        let mut search = Search::new(AUTO, old, None);
        let other = search.heard(&initialized("2025-06-18"));
        assert_eq!(other, Verdict::Failed(Failure::Revision));
        let mut search = Search::new(AUTO, Some(Revision::V20260728), None);
        let failed = search.heard(&Reaction::Status(404));
        assert_eq!(failed, Verdict::Failed(Failure::Status(404)));
        let mut search = Search::new(AUTO, None, Some(UpstreamKind::Streamable));
        let unknown = search.heard(&initialized("1999-01-01"));
        assert_eq!(unknown, Verdict::Failed(Failure::Revision));
    }

    #[test]
    fn a_revision_that_is_named_is_tried_once() {
        let mut search = Search::new(AUTO, None, Some(UpstreamKind::Streamable));
        let named = error(200, -32602, "\"2024-11-05\"");
        let older = search.heard(&named);
        assert_eq!(older, Verdict::Try(Try::Initialize(Revision::V20241105)));
        assert!(matches!(search.heard(&named), Verdict::Failed(Failure::Error(_))));
    }
}
