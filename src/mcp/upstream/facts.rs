//! What a server says of itself.

use crate::json::Raw;
use crate::rpc::RpcError;
use crate::sessions::Revision;

/// Longest name or version that is kept.
const TEXT_BYTES_MAX: usize = 256;
/// Longest instructions that are kept.
const INSTRUCTIONS_BYTES_MAX: usize = 64 * 1024;
/// Revisions read of a list.
const REVISIONS_MAX: usize = 64;

/// Which of its lists a server tells changes of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the list of that name")]
pub struct ListChanges {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
}

/// What a server says at `initialize` or `server/discover`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is said by itself")]
pub struct ServerFacts {
    /// What it calls itself.
    pub name: Box<str>,
    /// Its own version.
    pub version: Box<str>,
    /// What models are to read.
    pub instructions: Option<Box<str>>,
    /// It has tools.
    pub tools: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It has resources.
    pub resources: bool,
    /// It completes arguments.
    pub completes: bool,
    /// It logs.
    pub logs: bool,
    /// Its resources can be subscribed to.
    pub subscribes: bool,
    /// Which of its lists it tells changes of.
    pub changes: ListChanges,
}

impl ServerFacts {
    /// Of the result of `initialize`, and the revision the server chose; none where it is one that
    /// nobody here speaks.
    pub fn of_initialize(result: Raw<'_>) -> (Self, Option<Revision>) {
        let revision = result.get("protocolVersion").and_then(Raw::as_str);
        let revision = revision.and_then(|text| Revision::parse(text.as_bytes()));
        let mut facts = Self::of(result, result.get("serverInfo"));
        // That revision has the method and no word to promise it with.
        facts.completes |= revision == Some(Revision::V20241105);
        (facts, revision.filter(|found| !found.is_modern()))
    }

    /// Of the result of `server/discover`, and the revisions the server names.
    pub fn of_discover(result: Raw<'_>) -> (Self, Vec<Revision>) {
        let meta = result.get("_meta");
        let info = meta.and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
        let named = result.get("supportedVersions").map_or_else(Vec::new, revisions);
        (Self::of(result, info.or_else(|| result.get("serverInfo"))), named)
    }

    fn of(result: Raw<'_>, info: Option<Raw<'_>>) -> Self {
        let text = |key: &str| {
            let text = info.and_then(|info| info.get(key)).and_then(Raw::as_str);
            text.map_or_else(Box::default, |text| shortened(&text, TEXT_BYTES_MAX))
        };
        let capabilities = result.get("capabilities").unwrap_or(Raw::EMPTY_OBJECT);
        let has = |key: &str| capabilities.get(key).is_some_and(|value| !value.is_null());
        let says = |key: &str, flag: &str| {
            let flag = capabilities.get(key).and_then(|value| value.get(flag));
            flag.and_then(Raw::as_bool) == Some(true)
        };
        let instructions = result.get("instructions").and_then(Raw::as_str);
        Self {
            name: text("name"),
            version: text("version"),
            instructions: instructions.map(|text| shortened(&text, INSTRUCTIONS_BYTES_MAX)),
            tools: has("tools"),
            prompts: has("prompts"),
            resources: has("resources"),
            completes: has("completions"),
            logs: has("logging"),
            subscribes: says("resources", "subscribe"),
            changes: ListChanges {
                tools: says("tools", "listChanged"),
                prompts: says("prompts", "listChanged"),
                resources: says("resources", "listChanged"),
            },
        }
    }
}

/// The revisions that an error names (MCP 2026-07-28, -32022), as far as they are known here.
pub fn supported_revisions(error: &RpcError) -> Vec<Revision> {
    let Some(data) = &error.data else { return Vec::new() };
    let Ok(checked) = crate::json::guard(data.as_bytes()) else { return Vec::new() };
    checked.root().get("supported").map_or_else(Vec::new, revisions)
}

fn revisions(list: Raw<'_>) -> Vec<Revision> {
    let texts = list.items().take(REVISIONS_MAX).filter_map(Raw::as_str);
    texts.filter_map(|text| Revision::parse(text.as_bytes())).collect()
}

fn shortened(text: &str, bytes_max: usize) -> Box<str> {
    text[..text.floor_char_boundary(bytes_max)].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::OwnedRaw;

    fn raw(text: &str) -> OwnedRaw {
        OwnedRaw::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn initialize_tells_what_there_is() {
        let result =
            raw(r#"{"protocolVersion":"2025-06-18","serverInfo":{"name":"n","version":"1"},
            "capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},
            "prompts":null,"completions":{},"logging":{}},"instructions":"Read me"}"#);
        let (facts, revision) = ServerFacts::of_initialize(result.as_raw());
        assert_eq!(revision, Some(Revision::V20250618));
        assert_eq!((&*facts.name, &*facts.version), ("n", "1"));
        assert!(facts.tools && facts.resources && !facts.prompts);
        assert!(facts.completes && facts.logs && facts.subscribes);
        assert_eq!(facts.changes, ListChanges { tools: true, ..ListChanges::default() });
        assert_eq!(facts.instructions.as_deref(), Some("Read me"));
        // The era without sessions does not begin with `initialize`.
        for text in ["2026-07-28", "2024-10-07", ""] {
            let result = raw(&format!(r#"{{"protocolVersion":"{text}"}}"#));
            assert_eq!(ServerFacts::of_initialize(result.as_raw()).1, None, "{text}");
        }
    }

    #[test]
    fn discover_names_revisions() {
        let result =
            raw(r#"{"resultType":"complete","supportedVersions":["2026-07-28","2027-01-01",
            "2025-11-25",5],"capabilities":{"tools":{}},
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"2"}}}"#);
        let (facts, named) = ServerFacts::of_discover(result.as_raw());
        assert_eq!(named, [Revision::V20260728, Revision::V20251125]);
        assert_eq!((&*facts.name, facts.tools, facts.prompts), ("n", true, false));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let result = raw(&format!(r#"{{"serverInfo":{{"name":"{}"}}}}"#, "é".repeat(300)));
        let (facts, _) = ServerFacts::of_initialize(result.as_raw());
        assert_eq!(&*facts.name, "é".repeat(128));
    }

    #[test]
    fn errors_name_revisions_too() {
        let error = RpcError::new(-32022, "no").with_data(r#"{"supported":["2025-11-25"]}"#);
        assert_eq!(supported_revisions(&error), [Revision::V20251125]);
        assert!(supported_revisions(&RpcError::new(-32022, "no")).is_empty());
        assert!(supported_revisions(&RpcError::new(1, "no").with_data("{\"a\":")).is_empty());
    }
}
