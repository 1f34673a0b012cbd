//! A prompt, a resource or a resource template of an upstream server: its entry of lists, written
//! once for each form that revisions have.
//!
//! What a revision lacks is left out: titles and `_meta` came with 2025-06-18, icons with
//! 2025-11-25. Nothing is added, but that a resource without a name, which every revision demands,
//! is called by its URI.

use super::upstream_text::{self as read, DESCRIPTION, TITLE, Text};
use super::uri_template::UriTemplate;
use super::{Definition, DefinitionKind, ToolShape};
use crate::json::{self, Kind, Raw, write_string};

/// How many forms there are.
pub(super) const FORMS: usize = 3;

/// Longest name of a prompt, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// Longest URI and URI template, in bytes.
const URI_BYTES_MAX: usize = 4_096;
/// Longest definition, in bytes.
const DEFINITION_BYTES_MAX: usize = 64 * 1024;
/// Arguments of a prompt.
const ARGUMENTS_MAX: usize = 100;

/// What URIs of the appliance begin with.
const OWN_SCHEME: &str = "runtime:";

/// The place of the form that a shape has.
pub(super) fn form(shape: ToolShape) -> usize {
    usize::from(shape.has_titles()) + usize::from(shape.has_icons())
}

/// The oldest shape of each form.
const SHAPES: [ToolShape; FORMS] =
    [ToolShape::V20241105, ToolShape::V20250618, ToolShape::V20251125];

/// A prompt, a resource or a resource template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// Its name; the URI or the URI template of a resource.
    pub(super) key: Box<str>,
    member: &'static str,
    /// The entry behind its key, by form.
    rest: [Box<[u8]>; FORMS],
    /// Of a template.
    pub(super) template: Option<UriTemplate>,
}

impl Offer {
    /// # Errors
    /// Why it cannot be shown.
    pub(super) fn compile(definition: &Definition) -> Result<Self, String> {
        let entry = definition.json.as_raw();
        if entry.text().len() > DEFINITION_BYTES_MAX {
            return Err(format!("its definition is longer than {DEFINITION_BYTES_MAX} bytes"));
        }
        let key = &*definition.name;
        let is_prompt = definition.kind == DefinitionKind::Prompt;
        let bytes_max = if is_prompt { NAME_BYTES_MAX } else { URI_BYTES_MAX };
        if key.is_empty() || key.len() > bytes_max || key.chars().any(char::is_control) {
            return Err(format!(
                "it has to be called by 1 to {bytes_max} bytes without control characters"
            ));
        }
        if !is_prompt && is_own(key) {
            return Err(format!("URIs that begin with `{OWN_SCHEME}` are the appliance's own"));
        }
        let template = match definition.kind {
            DefinitionKind::ResourceTemplate => Some(UriTemplate::parse(key)?),
            _ => None,
        };
        let member = match definition.kind {
            DefinitionKind::Tool | DefinitionKind::Prompt => "name",
            DefinitionKind::Resource => "uri",
            DefinitionKind::ResourceTemplate => "uriTemplate",
        };
        let rest = SHAPES.map(|shape| rest(entry, definition, shape).into_boxed_slice());
        Ok(Self { key: key.into(), member, rest, template })
    }

    /// Writes the entry under a name that may be another than its own.
    pub(super) fn write(&self, out: &mut Vec<u8>, key: &str, shape: ToolShape) {
        out.push(b'{');
        write_string(out, self.member);
        out.push(b':');
        write_string(out, key);
        if let Some(rest) = self.rest.get(form(shape)) {
            out.extend_from_slice(rest);
        }
    }
}

/// Whether a URI is one of the appliance's own.
pub(super) fn is_own(uri: &str) -> bool {
    uri.get(..OWN_SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(OWN_SCHEME))
}

fn rest(entry: Raw<'_>, definition: &Definition, shape: ToolShape) -> Vec<u8> {
    let mut out = Vec::with_capacity(entry.text().len());
    if definition.kind == DefinitionKind::Prompt {
        texts(&mut out, entry, shape);
        arguments(&mut out, entry, shape);
    } else {
        let name = entry.get("name").and_then(Raw::as_str).filter(|name| !name.is_empty());
        member(&mut out, "name", |out| {
            write_string(out, name.as_deref().unwrap_or(&definition.name));
        });
        texts(&mut out, entry, shape);
        if let Some(kind) = read::member(entry, "mimeType", Kind::String) {
            member(&mut out, "mimeType", |out| json::write_raw(out, kind));
        }
        let size = entry.get("size").filter(|_| definition.kind == DefinitionKind::Resource);
        if let Some(size) = size.filter(|size| shape.has_titles() && size.as_u64().is_some()) {
            member(&mut out, "size", |out| json::write_raw(out, size));
        }
        if let Some(said) = read::member(entry, "annotations", Kind::Object) {
            annotations(&mut out, said, shape);
        }
    }
    if let Some(icons) = read::icons(entry).filter(|_| shape.has_icons()) {
        member(&mut out, "icons", |out| out.extend_from_slice(icons.as_bytes()));
    }
    if let Some(meta) = read::meta(entry, |_| false).filter(|_| shape.has_titles()) {
        member(&mut out, "_meta", |out| {
            out.push(b'{');
            out.extend_from_slice(meta.as_bytes());
            out.push(b'}');
        });
    }
    out.push(b'}');
    out
}

fn member(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    if !matches!(out.last(), Some(b'{')) {
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
    write(out);
}

fn texts(out: &mut Vec<u8>, entry: Raw<'_>, shape: ToolShape) {
    let mut said = |text: Text, name| {
        // What is cut is too long for anybody to read.
        if let Some(text) = read::text(entry, text, &mut Vec::new()) {
            member(out, name, |out| write_string(out, &text));
        }
    };
    if shape.has_titles() {
        said(TITLE, "title");
    }
    said(DESCRIPTION, "description");
}

fn arguments(out: &mut Vec<u8>, entry: Raw<'_>, shape: ToolShape) {
    let Some(all) = read::member(entry, "arguments", Kind::Array) else { return };
    member(out, "arguments", |out| {
        out.push(b'[');
        let mut is_first = true;
        for argument in all.items().take(ARGUMENTS_MAX) {
            let Some(name) = read::member(argument, "name", Kind::String) else { continue };
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            out.push(b'{');
            member(out, "name", |out| json::write_raw(out, name));
            texts(out, argument, shape);
            if let Some(required) = read::member(argument, "required", Kind::Bool) {
                member(out, "required", |out| json::write_raw(out, required));
            }
            out.push(b'}');
        }
        out.push(b']');
    });
}

fn annotations(out: &mut Vec<u8>, said: Raw<'_>, shape: ToolShape) {
    member(out, "annotations", |out| {
        out.push(b'{');
        for (name, value) in said.entries() {
            let is_known = match (&*name, value.kind()) {
                ("audience", Kind::Array) | ("priority", Kind::Number) => true,
                ("lastModified", kind) => kind == Kind::String && shape.has_titles(),
                ("audience" | "priority", _) => false,
                _ => shape.has_titles(),
            };
            if is_known {
                member(out, &name, |out| json::write_raw(out, value));
            }
        }
        out.push(b'}');
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::catalog::fixture::definition;

    fn parsed(offer: &Offer, shape: ToolShape) -> Value {
        let mut out = Vec::new();
        offer.write(&mut out, &offer.key, shape);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_resource_is_shown_as_far_as_a_revision_goes() {
        let said = json!({
            "uri": "file:///a", "name": "a", "title": "A", "description": "The \"a\".",
            "mimeType": "text/plain", "size": 5,
            "annotations": {"audience": ["user"], "priority": 0.50, "lastModified": "2025-01-01"},
            "icons": [{"src": "https://h/i.png"}, {"src": "javascript:x"}], "_meta": {"a/b": 1},
            "unknown": true,
        });
        let offer = Offer::compile(&definition(DefinitionKind::Resource, &said)).unwrap();
        let mut newest = said.clone();
        newest["icons"] = json!([{"src": "https://h/i.png"}]);
        newest.as_object_mut().unwrap().remove("unknown");
        assert_eq!(parsed(&offer, ToolShape::V20260728), newest);
        assert_eq!(parsed(&offer, ToolShape::V20251125), newest);
        newest.as_object_mut().unwrap().remove("icons");
        assert_eq!(parsed(&offer, ToolShape::V20250618), newest);
        let oldest = json!({
            "uri": "file:///a", "name": "a", "description": "The \"a\".", "mimeType": "text/plain",
            "annotations": {"audience": ["user"], "priority": 0.5},
        });
        assert_eq!(parsed(&offer, ToolShape::V20250326), oldest);
        assert_eq!(parsed(&offer, ToolShape::V20241105), oldest);
    }

    #[test]
    fn a_prompt_is_shown_as_far_as_a_revision_goes() {
        let said = json!({
            "name": "ask", "title": "Ask",
            "arguments": [
                {"name": "who", "title": "Who", "description": "Whom", "required": true},
                {"name": "why"}, {"title": "nameless"}, 5,
            ],
        });
        let offer = Offer::compile(&definition(DefinitionKind::Prompt, &said)).unwrap();
        let arguments = json!([
            {"name": "who", "title": "Who", "description": "Whom", "required": true},
            {"name": "why"},
        ]);
        let newest = json!({"name": "ask", "title": "Ask", "arguments": arguments});
        assert_eq!(parsed(&offer, ToolShape::V20250618), newest);
        let arguments = json!([
            {"name": "who", "description": "Whom", "required": true}, {"name": "why"},
        ]);
        let oldest = json!({"name": "ask", "arguments": arguments});
        assert_eq!(parsed(&offer, ToolShape::V20241105), oldest);
        let mut out = Vec::new();
        offer.write(&mut out, "set_ask", ToolShape::V20241105);
        assert!(out.starts_with(b"{\"name\":\"set_ask\","));
    }

    #[test]
    fn what_is_of_another_kind_is_left_out() {
        let said = json!({
            "uri": "a:b", "name": 5, "title": 5, "description": [], "mimeType": {}, "size": -1,
            "annotations": [], "icons": "x", "_meta": 5,
        });
        let offer = Offer::compile(&definition(DefinitionKind::Resource, &said)).unwrap();
        assert_eq!(parsed(&offer, ToolShape::V20260728), json!({"uri": "a:b", "name": "a:b"}));
    }

    #[test]
    fn what_cannot_be_shown_says_why() {
        let long = "x".repeat(5_000);
        for (kind, key, name, expected) in [
            (DefinitionKind::Prompt, "name", "", "has to be called by"),
            (DefinitionKind::Prompt, "name", "a\nb", "has to be called by"),
            (DefinitionKind::Resource, "uri", long.as_str(), "has to be called by"),
            (DefinitionKind::Resource, "uri", "Runtime://tools/x/schema", "the appliance's own"),
            (DefinitionKind::ResourceTemplate, "uriTemplate", "a:{b", "brace"),
        ] {
            let fault = Offer::compile(&definition(kind, &json!({key: name}))).unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
