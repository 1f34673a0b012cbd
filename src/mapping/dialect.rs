//! The same schema in the words that the API of a model provider takes.
//!
//! Providers refuse a whole list of tools for one word they do not know. A dialect leaves out what
//! its readers do not take and says in the description what is lost. Arguments are always checked
//! against the full schema; what a dialect shows differently on purpose is put right by the repairs
//! of [`RequestPlan::validate`](super::RequestPlan::validate): `null` for an absent optional, a
//! number from a list of strings, an object as JSON text where a dialect has no words for it.
//!
//! A schema is read once into a [`Form`](read::Form) of few words (no `$ref`s, one type each) and
//! written from there. Sizes and depths are bounded whatever the schema is, and `$ref`s that go
//! round end.

mod gemini;
mod notes;
mod portable;
mod read;
mod strict;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What the models behind a client application can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// JSON Schema 2020-12, as it is.
    #[default]
    Full,
    /// What nearly everything reads: no `$ref`, no combinators at the root, `items` everywhere, one
    /// type each.
    Portable,
    /// Function declarations of Gemini in the words that all of its APIs and versions take: `type`,
    /// `format`, `description`, `nullable`, `enum`, `items`, `properties`, `required`.
    Gemini,
    /// Functions of `OpenAI` with `strict`: all properties are required, those that may be absent
    /// can be `null`, no others are allowed.
    OpenaiStrict,
}

impl Dialect {
    /// The word used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Portable => "portable",
            Self::Gemini => "gemini",
            Self::OpenaiStrict => "openai_strict",
        }
    }
}

/// The input schema of a tool in a dialect. Where descriptions are to go,
/// [`structure_only`](super::structure_only) comes first: a dialect adds what it cannot say
/// otherwise.
pub fn in_dialect(schema: &Value, dialect: Dialect) -> Value {
    match dialect {
        Dialect::Full => schema.clone(),
        Dialect::Portable => portable::write(&read::read(schema)),
        Dialect::Gemini => gemini::write(&read::read(schema)),
        Dialect::OpenaiStrict => strict::write(&read::read(schema)),
    }
}

/// The `properties` of an object, each as `place` writes its form, and which are `required`.
fn properties(
    form: &read::Form,
    place: impl Fn(&read::Form) -> Map<String, Value>,
    out: &mut Map<String, Value>,
) {
    let properties = form.properties.iter();
    let properties: Map<String, Value> = properties
        .map(|(name, property)| (name.clone(), Value::Object(place(&property.form))))
        .collect();
    let required = form.properties.iter().filter(|(_, property)| property.is_required);
    let required: Vec<&String> = required.map(|(name, _)| name).collect();
    if !properties.is_empty() {
        out.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        out.insert("required".to_owned(), json!(required));
    }
}

/// A string that holds JSON, for what a dialect has no words for.
fn json_text(form: &read::Form) -> Map<String, Value> {
    let what = match form.kind {
        read::FormKind::Array => "A JSON array, written as text.",
        _ => "A JSON object, written as text.",
    };
    let blank = if form.description.is_empty() { "" } else { " " };
    let description = format!("{}{blank}{what}", form.description);
    Map::from_iter([
        ("type".to_owned(), json!("string")),
        ("description".to_owned(), json!(description)),
    ])
}

#[cfg(test)]
#[path = "dialect/dialect_tests.rs"]
mod tests;
