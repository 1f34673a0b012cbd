//! A tool's entry of `tools/list`, written once.
//!
//! What all revisions have stands in front, so that the older forms are cut out of the newest one
//! when somebody first asks for them: nothing is formatted on a core.

use std::borrow::Cow;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::effects::EffectByArgument;
use super::{DiscoveryMode, MetaTool, SideEffect};
use crate::json::{write_string, write_value};
use crate::mapping::{self, Dialect, MirroredArgument, structure_only};

/// What a protocol revision has in an entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolShape {
    /// Name, description and input schema.
    V20241105,
    /// And annotations, the title among them.
    V20250326,
    /// And a title, an output schema and `_meta`.
    V20250618,
    /// And icons.
    V20251125,
    /// And headers that repeat arguments, and output schemas of anything.
    V20260728,
}

/// How many shapes there are.
pub(super) const SHAPES: usize = 5;

impl ToolShape {
    /// The place of its bytes among those of all shapes.
    pub(super) fn place(self) -> usize {
        match self {
            Self::V20241105 => 0,
            Self::V20250326 => 1,
            Self::V20250618 => 2,
            Self::V20251125 => 3,
            Self::V20260728 => 4,
        }
    }

    /// The shape whose bytes are the same where nothing has an icon, and no output schema is of
    /// another kind than an object.
    pub(super) fn plain(self) -> Self {
        self.min(Self::V20250618)
    }

    /// Whether things have titles.
    pub(super) fn has_titles(self) -> bool {
        self >= Self::V20250618
    }

    /// Whether things have icons.
    pub(super) fn has_icons(self) -> bool {
        self >= Self::V20251125
    }
}

/// The `_meta` key of what a model should know before it calls a tool.
pub const SAFETY_META: &str = "io.ringway/safety";

/// An entry of a list, in all shapes.
#[derive(Debug)]
pub(super) struct Fragment {
    /// As 2025-11-25 has it, and all with titles that do not differ.
    titled: Box<[u8]>,
    /// Bytes of it that every shape begins with.
    common: usize,
    /// What 2025-03-26 adds to them.
    annotations: Box<[u8]>,
    /// As 2025-06-18 has it, where that is something else.
    without_icons: Option<Box<[u8]>>,
    /// As 2026-07-28 has it, where that is something else.
    modern: Option<Box<[u8]>>,
    /// Arguments that clients of 2026-07-28 repeat in headers.
    mirrored: Box<[MirroredArgument]>,
    oldest: OnceLock<Box<[u8]>>,
    middle: OnceLock<Box<[u8]>>,
}

/// What lists show of a tool as others wrote it: JSON without blanks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// The full input schema.
    pub(super) input: Box<str>,
    /// The full output schema.
    pub(super) output: Option<Box<str>>,
    /// An array.
    pub(super) icons: Option<Box<str>>,
    /// Members of `_meta`, one behind the other.
    pub(super) meta: Option<Box<str>>,
}

impl Fragment {
    pub(super) fn new(entry: &EntryText<'_>, dialect: Dialect, discovery: DiscoveryMode) -> Self {
        let input = shown_input(entry.input_schema, dialect, discovery);
        let output = entry.output_schema.and_then(|full| shown_output(full, discovery));
        let marked = (!entry.mirrored.is_empty()).then(|| {
            let mut marked = input.as_ref().clone();
            entry.mirrored.iter().for_each(|argument| argument.mark(&mut marked));
            marked
        });
        let unwrapped = output.as_deref().filter(|_| entry.is_wrapped).map(unwrapped);
        let written = entry.written.filter(|_| (dialect, discovery) == AS_WRITTEN);
        let mut out = Vec::with_capacity(256 + entry.description.len());
        entry.write_text(&mut out);
        let text = out.len();
        match written {
            Some(written) => out.extend_from_slice(written.input.as_bytes()),
            None => write_value(&mut out, &input),
        }
        let common = out.len();
        let shaped = |beginning: &[u8], shape, output: Option<&Value>| {
            let mut shaped = beginning.to_vec();
            entry.write_titled(&mut shaped, discovery, shape, output);
            shaped.into_boxed_slice()
        };
        let of_objects = output.as_deref().filter(|schema| is_of_objects(schema));
        let without_icons =
            entry.has_icons().then(|| shaped(&out, ToolShape::V20250618, of_objects));
        let is_of_anything = output.is_some() != of_objects.is_some();
        let modern = (marked.is_some() || unwrapped.is_some() || is_of_anything).then(|| {
            let output = unwrapped.or(output.as_deref());
            let Some(marked) = &marked else { return shaped(&out, ToolShape::V20260728, output) };
            let mut beginning = out.get(..text).unwrap_or_default().to_vec();
            write_value(&mut beginning, marked);
            shaped(&beginning, ToolShape::V20260728, output)
        });
        let mut annotations = Vec::new();
        // Before tools had titles, annotations had.
        write_annotations(&mut annotations, entry.hints, entry.title);
        Self {
            mirrored: MirroredArgument::in_schema(marked.as_ref().unwrap_or(&input)),
            titled: shaped(&out, ToolShape::V20251125, of_objects),
            common,
            annotations: annotations.into(),
            without_icons,
            modern,
            oldest: OnceLock::new(),
            middle: OnceLock::new(),
        }
    }

    /// The entry of one of the runtime's own meta tools.
    pub(super) fn of_meta_tool(meta_tool: MetaTool, dialect: Dialect) -> Self {
        let reads_only = meta_tool.reads_only();
        let entry = EntryText {
            name: meta_tool.name(),
            title: Some(meta_tool.title()),
            description: meta_tool.description(),
            input_schema: &meta_tool.input_schema(),
            output_schema: None,
            written: None,
            is_wrapped: false,
            mirrored: &[],
            hints: Hints {
                read_only: Some(reads_only),
                destructive: None,
                idempotent: None,
                open_world: reads_only.then_some(false),
            },
            safety: Safety {
                // What a call of another tool does is that tool's business.
                side_effect: if reads_only { SideEffect::Read } else { SideEffect::Destructive },
                has_intent: !reads_only,
                confirmation_recommended: false,
                by_argument: None,
            },
        };
        Self::new(&entry, dialect, DiscoveryMode::Full)
    }

    /// A JSON object.
    pub(super) fn bytes(&self, shape: ToolShape) -> &[u8] {
        match shape {
            ToolShape::V20241105 => self.oldest.get_or_init(|| self.cut(b"")),
            ToolShape::V20250326 => self.middle.get_or_init(|| self.cut(&self.annotations)),
            ToolShape::V20250618 => self.without_icons.as_ref().unwrap_or(&self.titled),
            ToolShape::V20251125 => &self.titled,
            ToolShape::V20260728 => self.modern.as_ref().unwrap_or(&self.titled),
        }
    }

    /// Whether shapes with titles differ.
    pub(super) fn has_shapes(&self) -> bool {
        self.without_icons.is_some() || self.modern.is_some()
    }

    /// Arguments that clients of 2026-07-28 repeat in headers.
    pub(super) fn mirrored(&self) -> &[MirroredArgument] {
        &self.mirrored
    }

    fn cut(&self, tail: &[u8]) -> Box<[u8]> {
        let common = self.titled.get(..self.common).unwrap_or_default();
        [common, tail, b"}"].concat().into()
    }

    /// Whether clients of every revision see the same.
    pub(super) fn shows_the_same(&self, other: &Self) -> bool {
        self.titled == other.titled
            && self.annotations == other.annotations
            && self.without_icons == other.without_icons
            && self.modern == other.modern
    }
}

/// Everything an entry of a list can say.
pub(super) struct EntryText<'a> {
    pub(super) name: &'a str,
    pub(super) title: Option<&'a str>,
    pub(super) description: &'a str,
    pub(super) input_schema: &'a Value,
    pub(super) output_schema: Option<&'a Value>,
    /// Shown in place of what it is about, where that is to be shown as it is.
    pub(super) written: Option<&'a Written>,
    /// The output schema is of a wrapper around what is no object.
    pub(super) is_wrapped: bool,
    /// Arguments that headers repeat.
    pub(super) mirrored: &'a [MirroredArgument],
    pub(super) hints: Hints,
    pub(super) safety: Safety<'a>,
}

/// Schemas are shown as they are.
const AS_WRITTEN: (Dialect, DiscoveryMode) = (Dialect::Full, DiscoveryMode::Full);

impl EntryText<'_> {
    fn has_icons(&self) -> bool {
        self.written.is_some_and(|written| written.icons.is_some())
    }

    /// What every shape begins with, up to the input schema.
    fn write_text(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"name\":");
        write_string(out, self.name);
        if !self.description.is_empty() {
            out.extend_from_slice(b",\"description\":");
            write_string(out, self.description);
        }
        out.extend_from_slice(b",\"inputSchema\":");
    }

    /// What revisions with titles have besides what all have. Before 2026-07-28 the root of an output
    /// schema had to be of objects: readers refuse the whole list otherwise.
    fn write_titled(
        &self,
        out: &mut Vec<u8>,
        discovery: DiscoveryMode,
        shape: ToolShape,
        output: Option<&Value>,
    ) {
        if let Some(title) = self.title {
            out.extend_from_slice(b",\"title\":");
            write_string(out, title);
        }
        if let Some(output) = output {
            out.extend_from_slice(b",\"outputSchema\":");
            let written = self.written.and_then(|written| written.output.as_deref());
            match written.filter(|_| discovery == DiscoveryMode::Full) {
                Some(written) => out.extend_from_slice(written.as_bytes()),
                None => write_value(out, output),
            }
        }
        write_annotations(out, self.hints, None);
        if let Some(icons) = self.written.and_then(|written| written.icons.as_deref())
            && shape.has_icons()
        {
            out.extend_from_slice(b",\"icons\":");
            out.extend_from_slice(icons.as_bytes());
        }
        out.extend_from_slice(b",\"_meta\":{");
        write_string(out, SAFETY_META);
        out.push(b':');
        write_value(out, &self.safety.value());
        if let Some(meta) = self.written.and_then(|written| written.meta.as_deref()) {
            out.push(b',');
            out.extend_from_slice(meta.as_bytes());
        }
        out.extend_from_slice(b"}}");
    }
}

/// Whether a schema says that it is of objects.
pub(super) fn is_of_objects(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Hints {
    pub(super) read_only: Option<bool>,
    pub(super) destructive: Option<bool>,
    pub(super) idempotent: Option<bool>,
    pub(super) open_world: Option<bool>,
}

/// What a model should know before it calls.
pub(super) struct Safety<'a> {
    pub(super) side_effect: SideEffect,
    /// Whether a call may change something.
    pub(super) has_intent: bool,
    pub(super) confirmation_recommended: bool,
    pub(super) by_argument: Option<&'a EffectByArgument>,
}

impl Safety<'_> {
    fn value(&self) -> Value {
        let mut value = json!({
            "sideEffect": self.side_effect.as_str(),
            "mutationIntent": self.has_intent,
            "confirmationRecommended": self.confirmation_recommended,
        });
        if let (Some(by), Value::Object(members)) = (self.by_argument, &mut value) {
            let values: Map<String, Value> = by
                .values
                .iter()
                .map(|(text, effect)| (text.clone(), json!(effect.as_str())))
                .collect();
            let told = json!({ "argument": &*by.argument, "values": values });
            members.insert("dependsOn".to_owned(), told);
        }
        value
    }
}

fn write_annotations(out: &mut Vec<u8>, hints: Hints, title: Option<&str>) {
    let mut said = Map::new();
    let mut say = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            said.insert(key.to_owned(), value);
        }
    };
    say("title", title.map(Value::from));
    say("readOnlyHint", hints.read_only.map(Value::from));
    say("destructiveHint", hints.destructive.map(Value::from));
    say("idempotentHint", hints.idempotent.map(Value::from));
    say("openWorldHint", hints.open_world.map(Value::from));
    if !said.is_empty() {
        out.extend_from_slice(b",\"annotations\":");
        write_value(out, &Value::Object(said));
    }
}

/// The mode a list really shows. A strict schema names every argument: one that stands for others
/// would keep them out.
pub(super) fn shown_mode(dialect: Dialect, discovery: DiscoveryMode) -> DiscoveryMode {
    match (dialect, discovery) {
        (Dialect::OpenaiStrict, DiscoveryMode::Lazy) => DiscoveryMode::DataStructureOnly,
        (_, discovery) => discovery,
    }
}

fn shown_input(full: &Value, dialect: Dialect, discovery: DiscoveryMode) -> Cow<'_, Value> {
    match discovery {
        DiscoveryMode::Full => in_dialect(full, dialect),
        DiscoveryMode::DataStructureOnly => {
            Cow::Owned(in_dialect(&structure_only(full), dialect).into_owned())
        }
        DiscoveryMode::Lazy => {
            Cow::Owned(in_dialect(&mapping::lazy_schema(), dialect).into_owned())
        }
    }
}

/// Dialects are for what models write. An output schema is what programs hold results to (MCP
/// 2025-11-25, tools: "Clients SHOULD validate structured results against this schema"), and
/// results are the same in every dialect.
fn shown_output(full: &Value, discovery: DiscoveryMode) -> Option<Cow<'_, Value>> {
    match discovery {
        DiscoveryMode::Full => Some(Cow::Borrowed(full)),
        DiscoveryMode::DataStructureOnly => Some(Cow::Owned(structure_only(full))),
        DiscoveryMode::Lazy => None,
    }
}

/// The schema of what is in a wrapper: from 2026-07-28 on structured content may be anything.
fn unwrapped(wrapper: &Value) -> &Value {
    wrapper.pointer("/properties/result").unwrap_or(wrapper)
}

/// The full dialect is the schema as it is.
fn in_dialect(schema: &Value, dialect: Dialect) -> Cow<'_, Value> {
    match dialect {
        Dialect::Full => Cow::Borrowed(schema),
        _ => Cow::Owned(mapping::in_dialect(schema, dialect)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::SCHEMA_DISCOVERY;

    fn entry<'a>(input: &'a Value, output: &'a Value) -> EntryText<'a> {
        EntryText {
            name: "list_pets",
            title: Some("List \"pets\""),
            description: "Lists pets.",
            input_schema: input,
            output_schema: Some(output),
            written: None,
            is_wrapped: false,
            mirrored: &[],
            hints: Hints {
                read_only: Some(true),
                destructive: None,
                idempotent: None,
                open_world: None,
            },
            safety: Safety {
                side_effect: SideEffect::Read,
                has_intent: false,
                confirmation_recommended: false,
                by_argument: None,
            },
        }
    }

    fn parsed(fragment: &Fragment, shape: ToolShape) -> Value {
        serde_json::from_slice(fragment.bytes(shape)).unwrap()
    }

    #[test]
    fn older_shapes_are_cut_out_of_the_newest() {
        let (input, output) = (json!({"type": "object"}), json!({"type": "object", "title": "o"}));
        let fragment = Fragment::new(&entry(&input, &output), Dialect::Full, DiscoveryMode::Full);
        let common = json!({
            "name": "list_pets", "description": "Lists pets.", "inputSchema": {"type": "object"},
        });
        assert_eq!(parsed(&fragment, ToolShape::V20241105), common);
        let mut middle = common.clone();
        middle["annotations"] = json!({"title": "List \"pets\"", "readOnlyHint": true});
        assert_eq!(parsed(&fragment, ToolShape::V20250326), middle);
        let mut newest = common;
        newest["title"] = json!("List \"pets\"");
        newest["outputSchema"] = output.clone();
        newest["annotations"] = json!({"readOnlyHint": true});
        newest["_meta"] = json!({SAFETY_META: {
            "sideEffect": "read", "mutationIntent": false, "confirmationRecommended": false,
        }});
        assert_eq!(parsed(&fragment, ToolShape::V20250618), newest);
        assert_eq!(parsed(&fragment, ToolShape::V20251125), newest);
    }

    #[test]
    fn the_newest_revision_has_headers_and_output_schemas_of_anything() {
        let input = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let output = json!({"type": "object", "properties": {"result": {"items": {}}}});
        let mirrored = [MirroredArgument { header: "A".into(), path: ["a".into()].into() }];
        let of = |mirrored, is_wrapped, dialect, discovery| {
            let entry = EntryText { is_wrapped, mirrored, ..entry(&input, &output) };
            Fragment::new(&entry, dialect, discovery)
        };
        let plain = of(&[], false, Dialect::Full, DiscoveryMode::Full);
        assert!(!plain.has_shapes());
        let newest = parsed(&plain, ToolShape::V20251125);
        assert_eq!(parsed(&plain, ToolShape::V20260728), newest);
        let fragment = of(&mirrored, true, Dialect::Full, DiscoveryMode::Full);
        assert_eq!(parsed(&fragment, ToolShape::V20251125), newest);
        let mut expected = newest;
        expected["inputSchema"]["properties"]["a"]["x-mcp-header"] = json!("A");
        expected["outputSchema"] = json!({"items": {}});
        assert_eq!(parsed(&fragment, ToolShape::V20260728), expected);
        assert_eq!(fragment.mirrored(), mirrored);
        assert!(!fragment.shows_the_same(&plain));
        // Whoever is not told of a header cannot send it.
        for (dialect, discovery) in
            [(Dialect::Full, DiscoveryMode::Lazy), (Dialect::OpenaiStrict, DiscoveryMode::Full)]
        {
            assert!(of(&mirrored, false, dialect, discovery).mirrored().is_empty());
        }
        let structure = of(&mirrored, false, Dialect::Full, DiscoveryMode::DataStructureOnly);
        assert_eq!(structure.mirrored(), mirrored);
    }

    #[test]
    fn a_lazy_entry_shows_a_placeholder_and_takes_anything() {
        let (input, output) = (json!({"type": "object", "properties": {"a": {}}}), json!({}));
        let fragment = Fragment::new(&entry(&input, &output), Dialect::Full, DiscoveryMode::Lazy);
        let shown = parsed(&fragment, ToolShape::V20251125);
        assert_eq!(shown["inputSchema"]["additionalProperties"], json!(true));
        let properties = shown["inputSchema"]["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), [SCHEMA_DISCOVERY]);
        assert!(shown.get("outputSchema").is_none());
        let full = Fragment::new(&entry(&input, &output), Dialect::Full, DiscoveryMode::Full);
        assert!(!full.shows_the_same(&fragment));
        assert!(fragment.shows_the_same(&fragment));
    }

    #[test]
    fn results_are_held_to_the_same_schema_in_every_dialect() {
        let input = json!({"type": "object", "properties": {"a": {"type": "object"}}});
        let output = json!({"type": "object", "properties": {"rest": {"type": "object"}}});
        for dialect in [Dialect::Portable, Dialect::Gemini, Dialect::OpenaiStrict] {
            let fragment = Fragment::new(&entry(&input, &output), dialect, DiscoveryMode::Full);
            let shown = parsed(&fragment, ToolShape::V20251125);
            assert_eq!(shown["outputSchema"], output, "{dialect:?}");
        }
    }

    #[test]
    fn a_strict_dialect_has_no_lazy_entries() {
        assert_eq!(
            shown_mode(Dialect::OpenaiStrict, DiscoveryMode::Lazy),
            DiscoveryMode::DataStructureOnly
        );
        assert_eq!(shown_mode(Dialect::Gemini, DiscoveryMode::Lazy), DiscoveryMode::Lazy);
    }
}
