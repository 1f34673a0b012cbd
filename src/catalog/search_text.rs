//! What of a tool is searched: its name, its texts, and its arguments at every depth.

use serde_json::Value;

use super::ViewTool;
use super::search::{SearchIndex, SearchText};

/// Arguments of one tool that are searched; more say nothing new.
const FIELDS_MAX: usize = 200;

/// An index of tools, in their order.
pub(super) fn index<'a>(tools: impl Iterator<Item = &'a ViewTool>) -> SearchIndex {
    SearchIndex::build(tools.map(|tool| {
        let mut fields = Vec::new();
        add_fields(tool.input_schema(), &mut fields);
        SearchText {
            name: tool.name.as_str(),
            title: tool.title.as_deref(),
            description: &tool.description,
            toolset: tool.toolset.as_str(),
            fields,
        }
    }))
}

/// Schemas are as deep as field rules allow.
fn add_fields<'a>(schema: &'a Value, fields: &mut Vec<(&'a str, &'a str)>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if fields.len() >= FIELDS_MAX {
            return;
        }
        let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
        fields.push((name, description));
        add_fields(property, fields);
    }
    if let Some(items) = schema.get("items") {
        add_fields(items, fields);
    }
}
