//! `initialize`: which revision is spoken, what the server offers, what the client says of itself.

use std::borrow::Cow;

use super::ending::{Caching, Endings};
use super::{Revision, completion, refusal};
use crate::catalog::View;
use crate::json::{self, Kind, Raw};
use crate::rpc::{ResultBody, RpcError};
use crate::sessions::{ClientCapabilities, ClientInfo};

/// What servers may offer besides lists: of a view, what upstream servers behind it do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Offers {
    /// Log messages are passed on.
    pub logging: bool,
    /// Arguments are completed.
    pub completions: bool,
    /// Resources can be subscribed to.
    pub subscriptions: bool,
}

impl Offers {
    /// What is offered to the client of a view. What none of its servers does is not promised.
    pub fn of(view: &View, revision: Revision) -> Self {
        let servers = view.upstreams();
        Self {
            logging: !servers.is_empty(),
            completions: completion::is_offered(view, revision),
            subscriptions: servers.iter().any(|server| server.definitions.subscribes),
        }
    }

    /// Writes the server's capabilities. `listChanged`, and to be told of changes at all, are
    /// promises: they stand where there are streams to tell on.
    pub(super) fn write_capabilities(self, out: &mut Vec<u8>, tells_changes: bool) {
        let changes = if tells_changes { "\"listChanged\":true" } else { "" };
        let has_subscriptions = self.subscriptions && tells_changes;
        let subscribes = if has_subscriptions { ",\"subscribe\":true" } else { "" };
        for part in [
            "{\"tools\":{",
            changes,
            "},\"resources\":{",
            changes,
            subscribes,
            "},\"prompts\":{",
            changes,
        ] {
            out.extend_from_slice(part.as_bytes());
        }
        out.push(b'}');
        if self.logging {
            out.extend_from_slice(b",\"logging\":{}");
        }
        if self.completions {
            out.extend_from_slice(b",\"completions\":{}");
        }
        out.push(b'}');
    }
}

/// What a client agreed on; the server makes a session of it where sessions are on.
#[derive(Clone, Debug)]
pub struct Initialization<'a> {
    /// The revision of the session.
    pub revision: Revision,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
    /// The result to answer with.
    pub result: ResultBody,
    name: Cow<'a, str>,
    version: Cow<'a, str>,
}

impl Initialization<'_> {
    /// Name and version of the client; empty where it gave none.
    pub fn client(&self) -> ClientInfo<'_> {
        ClientInfo { name: &self.name, version: &self.version }
    }
}

/// What this server says of itself, written once.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// `serverInfo` in old revisions.
    plain: Box<[u8]>,
    /// The same from 2025-06-18 on, when names got titles.
    titled: Box<[u8]>,
    endings: Endings,
    /// Whether it tells clients that their lists changed.
    pub(super) tells_changes: bool,
}

impl ServerInfo {
    /// What the server calls itself, whether it tells clients that their lists changed, and how long
    /// clients may keep what they were told.
    pub fn new(
        name: &str,
        title: &str,
        version: &str,
        tells_changes: bool,
        cache_ttl_ms: u64,
    ) -> Self {
        let info = |title: Option<&str>| {
            let mut out = b"{\"name\":".to_vec();
            json::write_string(&mut out, name);
            if let Some(title) = title {
                out.extend_from_slice(b",\"title\":");
                json::write_string(&mut out, title);
            }
            out.extend_from_slice(b",\"version\":");
            json::write_string(&mut out, version);
            out.push(b'}');
            out
        };
        let part = |title| [b",\"serverInfo\":", &info(title)[..]].concat().into();
        Self {
            plain: part(None),
            titled: part(Some(title)),
            endings: Endings::new(&info(Some(title)), cache_ttl_ms),
            tells_changes,
        }
    }

    /// An answer in the form of a revision: from 2026-07-28 on a result says what it is, who made it
    /// and whether it may be kept, and errors have other codes. `meta` is the result's own, an
    /// object, which up to then stands in the result already.
    pub fn answer(
        &self,
        answer: Result<ResultBody, RpcError>,
        meta: Option<&[u8]>,
        caching: Caching,
        revision: Revision,
    ) -> Result<ResultBody, RpcError> {
        if !revision.is_modern() {
            return answer;
        }
        match (answer, meta) {
            (Ok(ResultBody::Owned(body)), Some(meta)) => {
                Ok(self.endings.end_with_meta(body, meta, caching))
            }
            (Ok(body), _) => Ok(self.endings.end(body, caching)),
            (Err(error), _) => Err(refusal::in_newest(error)),
        }
    }

    fn result(&self, revision: Revision, offers: Offers, instructions: Option<&str>) -> Vec<u8> {
        let part = if revision >= Revision::V20250618 { &self.titled } else { &self.plain };
        let room = 256 + part.len() + instructions.map_or(0, |text| text.len() + text.len() / 8);
        let mut out = Vec::with_capacity(room);
        out.extend_from_slice(b"{\"protocolVersion\":\"");
        out.extend_from_slice(revision.text().as_bytes());
        out.extend_from_slice(b"\",\"capabilities\":");
        offers.write_capabilities(&mut out, self.tells_changes);
        out.extend_from_slice(part);
        if let Some(instructions) = instructions {
            out.extend_from_slice(b",\"instructions\":");
            json::write_string(&mut out, instructions);
        }
        out.push(b'}');
        out
    }
}

/// The revision to answer with: the one asked for where it is known and has sessions, else the
/// newest of ours that has.
pub fn negotiate(asked: &str) -> Revision {
    Revision::parse(asked.as_bytes())
        .filter(|revision| !revision.is_modern())
        .unwrap_or(Revision::NEWEST_WITH_SESSIONS)
}

pub(super) fn initialize<'a>(
    view: &View,
    server: &ServerInfo,
    params: Option<Raw<'a>>,
) -> Result<Initialization<'a>, RpcError> {
    let (mut asked, mut client, mut capabilities) = (None, None, None);
    for (key, value) in params.iter().flat_map(|params| params.entries()) {
        match &*key {
            "protocolVersion" => asked = value.as_str(),
            "clientInfo" => client = Some(value),
            "capabilities" => capabilities = Some(value),
            _ => {}
        }
    }
    let Some(asked) = asked else {
        return Err(RpcError::invalid_params("initialize needs `protocolVersion`, a string"));
    };
    let revision = negotiate(&asked);
    let text = |key: &str| {
        let value = client.and_then(|client| client.get(key));
        value.and_then(Raw::as_str).unwrap_or_default()
    };
    Ok(Initialization {
        revision,
        capabilities: capabilities.map_or(ClientCapabilities::NONE, |capabilities| {
            read_capabilities(capabilities, revision)
        }),
        result: ResultBody::Owned(server.result(
            revision,
            Offers::of(view, revision),
            view.instructions.as_deref(),
        )),
        name: text("name"),
        version: text("version"),
    })
}

/// What is not known is passed over: revisions to come add capabilities. Nor does what a revision has
/// no words for count: such a client could not be asked in a form that it knows.
pub(super) fn read_capabilities(capabilities: Raw<'_>, revision: Revision) -> ClientCapabilities {
    type Known = ClientCapabilities;
    let mut all = Known::NONE;
    let mut add = |known: Known, is_there: bool| {
        if is_there {
            all = all.with(known);
        }
    };
    let objects = capabilities.entries().filter(|(_, value)| value.kind() == Kind::Object);
    for (name, value) in objects {
        let has = |key: &str| value.get(key).is_some_and(|part| part.kind() == Kind::Object);
        match &*name {
            "roots" => {
                add(Known::ROOTS, true);
                let changes = value.get("listChanged").and_then(Raw::as_bool);
                add(Known::ROOTS_LIST_CHANGED, changes == Some(true));
            }
            "sampling" => {
                add(Known::SAMPLING, true);
                add(Known::SAMPLING_TOOLS, has("tools"));
                add(Known::SAMPLING_CONTEXT, has("context"));
            }
            "elicitation" => {
                // An empty object means forms: they came first, and pages with 2025-11-25.
                let has_url = has("url") && revision >= Revision::V20251125;
                let has_form = has("form") || !has_url;
                add(Known::ELICITATION_FORM, has_form && revision >= Revision::V20250618);
                add(Known::ELICITATION_URL, has_url);
            }
            "tasks" => add(Known::TASKS, true),
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_promised() {
        let written = |offers: Offers, tells| {
            let mut out = Vec::new();
            offers.write_capabilities(&mut out, tells);
            String::from_utf8(out).unwrap()
        };
        let all = Offers { logging: true, completions: true, subscriptions: true };
        assert_eq!(
            written(Offers::default(), true),
            concat!(
                r#"{"tools":{"listChanged":true},"resources":{"listChanged":true},"#,
                r#""prompts":{"listChanged":true}}"#
            )
        );
        assert_eq!(
            written(all, true),
            concat!(
                r#"{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"#,
                r#""prompts":{"listChanged":true},"logging":{},"completions":{}}"#
            )
        );
        // Without streams nobody is told anything.
        assert_eq!(
            written(all, false),
            r#"{"tools":{},"resources":{},"prompts":{},"logging":{},"completions":{}}"#
        );
    }
}
