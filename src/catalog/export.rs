//! Entities as text that [`files`](super::files) reads back unchanged.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Number;
use thiserror::Error;

use super::entities::for_each_list;
use super::formats::Format;
use super::tree::{Fault, Node, Value};
use super::{Entities, Entity, EntityName, Entry};

/// The formats of exported text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// TOML. It has no `null`, and no integer beyond 64 bits with a sign.
    Toml,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

impl ExportFormat {
    /// Its name, and the usual ending of its files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Toml => "toml",
            Self::Yaml => "yaml",
            Self::Json => "json",
        }
    }

    /// The format of that name or ending.
    pub fn parse(text: &str) -> Option<Self> {
        match Format::of_extension(text)? {
            Format::Toml => Some(Self::Toml),
            Format::Yaml => Some(Self::Yaml),
            Format::Json => Some(Self::Json),
        }
    }
}

/// An entity that the format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name} cannot be written as {}: {reason}; use yaml or json", .format.as_str())]
pub struct ExportError {
    /// Which one.
    pub name: EntityName,
    /// The format.
    pub format: ExportFormat,
    /// What the format has no way to write.
    pub reason: String,
}

/// Writes all entities, kinds in order and the entities of a kind by their keys. Secrets are
/// written as they are: see [`Entities::mask_secrets`].
///
/// # Errors
/// The first entity that the format cannot hold.
pub fn export(entities: &Entities, format: ExportFormat) -> Result<String, ExportError> {
    let mut text = String::new();
    for_each_list!(ref entities, list => write_list(list, format, &mut text)?);
    if format == ExportFormat::Json {
        text = if text.is_empty() { "{}\n".to_owned() } else { format!("{{\n{text}\n}}\n") };
    }
    Ok(text)
}

impl Entities {
    /// The entities of each tenant, by its id.
    pub fn by_tenant(&self) -> BTreeMap<String, Self> {
        let mut apart: BTreeMap<String, Self> = BTreeMap::new();
        macro_rules! split {
            ($($list:ident),+) => {$(
                for entry in &self.$list {
                    let key = entry.value.key();
                    let tenant = key.split('/').next().unwrap_or_default();
                    apart.entry(tenant.to_owned()).or_default().$list.push(entry.clone());
                }
            )+};
        }
        split!(tenants, client_applications, connections, toolsets, tools, assignments);
        apart
    }
}

fn write_list<T: Entity>(
    list: &[Entry<T>],
    format: ExportFormat,
    text: &mut String,
) -> Result<(), ExportError> {
    let mut sorted: Vec<(String, &T)> =
        list.iter().map(|entry| (entry.value.key(), &*entry.value)).collect();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    let Some((first_key, _)) = sorted.first() else { return Ok(()) };
    let kind = T::KIND.as_str();
    let failed = |key: &str, reason: String| ExportError {
        name: EntityName { kind: T::KIND, key: key.to_owned() },
        format,
        reason,
    };
    match format {
        ExportFormat::Toml => {
            for (key, entity) in &sorted {
                if !text.is_empty() {
                    text.push('\n');
                }
                *text += &toml_of(kind, *entity).map_err(|reason| failed(key, reason))?;
            }
        }
        ExportFormat::Yaml => {
            let _ = writeln!(text, "{kind}:");
            for (key, entity) in &sorted {
                let node = tree_of(*entity).map_err(|reason| failed(key, reason))?;
                text.push_str("  - ");
                yaml(&node, 2, text);
            }
        }
        ExportFormat::Json => {
            let entities: Vec<&T> = sorted.iter().map(|(_, entity)| *entity).collect();
            let list = serde_json::to_string_pretty(&entities)
                .map_err(|error| failed(first_key, error.to_string()))?;
            if !text.is_empty() {
                text.push_str(",\n");
            }
            let _ = write!(text, "\"{kind}\": {list}");
        }
    }
    Ok(())
}

fn toml_of<T: Serialize>(kind: &str, entity: &T) -> Result<String, String> {
    let table = BTreeMap::from([(kind, [entity])]);
    let text = toml::to_string(&table).map_err(|error| error.to_string())?;
    // The writer is more generous than the reader: integers beyond 64 bits with a sign.
    match Format::Toml.parse(&text) {
        Ok(_) => Ok(text),
        Err(faults) => Err(first_of(&faults)),
    }
}

/// As a tree whose fields are in the order in which the model declares them.
fn tree_of<T: Serialize>(entity: &T) -> Result<Node, String> {
    let json = serde_json::to_string(entity).map_err(|error| error.to_string())?;
    Format::Json.parse(&json).map_err(|faults| first_of(&faults))
}

fn first_of(faults: &[Fault]) -> String {
    faults.first().map(ToString::to_string).unwrap_or_default()
}

/// Block style for what has parts, JSON's way of writing for what has none: YAML reads both, and
/// text in quotes is never taken for something else. As deep as the tree, which its parser bounds.
fn yaml(node: &Node, indent: usize, text: &mut String) {
    let pad = |text: &mut String| text.extend(std::iter::repeat_n(' ', 2 * indent));
    match &node.value {
        Value::Table(entries) if !entries.is_empty() => {
            for (place, (key, node)) in entries.iter().enumerate() {
                if place > 0 {
                    pad(text);
                }
                yaml_key(&key.text, text);
                text.push(':');
                if is_block(node) {
                    text.push('\n');
                    text.extend(std::iter::repeat_n(' ', 2 * (indent + 1)));
                    yaml(node, indent + 1, text);
                } else {
                    text.push(' ');
                    yaml(node, indent + 1, text);
                }
            }
        }
        Value::List(items) if !items.is_empty() => {
            for (place, node) in items.iter().enumerate() {
                if place > 0 {
                    pad(text);
                }
                text.push_str("- ");
                yaml(node, indent + 1, text);
            }
        }
        Value::Null | Value::Dropped => text.push_str("null\n"),
        Value::Boolean(value) => {
            let _ = writeln!(text, "{value}");
        }
        Value::Number(number) => yaml_number(number, text),
        Value::Text(value) => {
            yaml_text(value, text);
            text.push('\n');
        }
        Value::List(_) => text.push_str("[]\n"),
        Value::Table(_) => text.push_str("{}\n"),
    }
}

fn is_block(node: &Node) -> bool {
    match &node.value {
        Value::Table(entries) => !entries.is_empty(),
        Value::List(items) => !items.is_empty(),
        _ => false,
    }
}

fn yaml_number(number: &Number, text: &mut String) {
    let written = number.to_string();
    // `1e300` would be text to some readers.
    let needs_point = written.contains(['e', 'E']) && !written.contains('.');
    let written = if needs_point { written.replacen(['e', 'E'], ".0e", 1) } else { written };
    let _ = writeln!(text, "{written}");
}

fn yaml_key(key: &str, text: &mut String) {
    // The fields of the model; a name that a person chose is quoted.
    let is_plain = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && key.len() > 3
        && !matches!(key, "true" | "false" | "null");
    if is_plain { text.push_str(key) } else { yaml_text(key, text) }
}

fn yaml_text(value: &str, text: &mut String) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            // What YAML takes for a line break, a byte order mark, or not at all.
            '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                let _ = write!(text, "\\u{:04X}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
