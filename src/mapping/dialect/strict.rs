//! Functions of `OpenAI` with `strict`.
//!
//! Limits of its documentation: 5,000 properties, 10 levels, 1,000 listed values, 120,000 characters
//! of names and listed values; of one list longer than 250 values, 15,000 characters. What is
//! beyond is shown as JSON text, or without its list.

use serde_json::{Map, Value, json};

use super::read::{Form, FormKind};
use super::{json_text, notes};

pub(super) const PROPERTIES_MAX: usize = 5_000;
pub(super) const LEVELS_MAX: usize = 10;
pub(super) const LISTED_MAX: usize = 1_000;
pub(super) const CHARS_MAX: usize = 120_000;
pub(super) const LONG_LIST: usize = 250;
pub(super) const LONG_LIST_CHARS_MAX: usize = 15_000;

/// Words besides the structure.
pub(super) const WORDS: [&str; 8] = [
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];
pub(super) const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

pub(super) fn write(form: &Form) -> Value {
    let mut writer = Writer { properties: 0, listed: 0, chars: 0 };
    let mut out = Map::from_iter([("type".to_owned(), json!("object"))]);
    if let Some(description) = notes::description(form, |_| false) {
        out.insert("description".to_owned(), json!(description));
    }
    writer.members(form, 1, &mut out);
    Value::Object(out)
}

struct Writer {
    properties: usize,
    listed: usize,
    chars: usize,
}

impl Writer {
    fn place(&mut self, form: &Form, level: usize, is_optional: bool) -> Map<String, Value> {
        let is_nullable = is_optional || form.is_nullable;
        if form.kind == FormKind::Union {
            return self.union(form, level, is_nullable);
        }
        if self.is_text(form, level) {
            let mut out = json_text(form);
            out.insert("type".to_owned(), kind(FormKind::String, is_nullable));
            return out;
        }
        let mut out = Map::new();
        out.insert("type".to_owned(), kind(form.kind, is_nullable));
        let says = |word: &str| match word {
            "format" => form
                .words
                .get(word)
                .is_some_and(|format| FORMATS.iter().any(|known| format == known)),
            _ => WORDS.contains(&word),
        };
        if let Some(description) = notes::description(form, says) {
            out.insert("description".to_owned(), json!(description));
        }
        for (word, value) in form.words.iter().filter(|(word, _)| says(word)) {
            out.insert(word.clone(), value.clone());
        }
        if let Some(list) = form.allowed.as_ref().filter(|_| is_listed(form.kind)) {
            self.list(list, is_nullable, &mut out);
        }
        if let Some(items) = &form.items {
            out.insert("items".to_owned(), Value::Object(self.place(items, level + 1, false)));
        }
        if form.kind == FormKind::Object {
            self.members(form, level + 1, &mut out);
        }
        out
    }

    /// Whether there are no words for the value: an object of any members, or too much of all.
    fn is_text(&self, form: &Form, level: usize) -> bool {
        let is_free = form.properties.is_empty() && form.others.is_some();
        let chars: usize = form.properties.keys().map(|name| name.chars().count()).sum();
        match form.kind {
            FormKind::Object => {
                is_free
                    || level >= LEVELS_MAX
                    || self.properties + form.properties.len() > PROPERTIES_MAX
                    || self.chars + chars > CHARS_MAX
            }
            FormKind::Array => level >= LEVELS_MAX,
            _ => false,
        }
    }

    fn members(&mut self, form: &Form, level: usize, out: &mut Map<String, Value>) {
        self.properties += form.properties.len();
        self.chars += form.properties.keys().map(|name| name.chars().count()).sum::<usize>();
        let mut properties = Map::new();
        for (name, property) in &form.properties {
            let shown = self.place(&property.form, level, !property.is_required);
            properties.insert(name.clone(), Value::Object(shown));
        }
        let required: Vec<&String> = form.properties.keys().collect();
        out.insert("required".to_owned(), json!(required));
        out.insert("properties".to_owned(), Value::Object(properties));
        out.insert("additionalProperties".to_owned(), json!(false));
    }

    fn union(&mut self, form: &Form, level: usize, is_nullable: bool) -> Map<String, Value> {
        let mut out = Map::new();
        if let Some(description) = notes::description(form, |_| false) {
            out.insert("description".to_owned(), json!(description));
        }
        let mut branches: Vec<Value> = Vec::new();
        for alternative in &form.alternatives {
            branches.push(Value::Object(self.place(alternative, level, false)));
        }
        if is_nullable {
            branches.push(json!({"type": "null"}));
        }
        out.insert("anyOf".to_owned(), json!(branches));
        out
    }

    fn list(&mut self, list: &[Value], is_nullable: bool, out: &mut Map<String, Value>) {
        let chars: usize = list
            .iter()
            .map(|value| {
                value.as_str().map_or_else(|| value.to_string().len(), |text| text.chars().count())
            })
            .sum();
        let is_long = list.len() > LONG_LIST && chars > LONG_LIST_CHARS_MAX;
        let count = list.len() + usize::from(is_nullable);
        if is_long || self.listed + count > LISTED_MAX || self.chars + chars > CHARS_MAX {
            return;
        }
        self.listed += count;
        self.chars += chars;
        let mut list = list.to_vec();
        if is_nullable {
            list.push(Value::Null);
        }
        out.insert("enum".to_owned(), Value::Array(list));
    }
}

fn kind(kind: FormKind, is_nullable: bool) -> Value {
    if is_nullable && kind != FormKind::Null {
        json!([kind.as_str(), "null"])
    } else {
        json!(kind.as_str())
    }
}

const fn is_listed(kind: FormKind) -> bool {
    matches!(kind, FormKind::String | FormKind::Integer | FormKind::Number | FormKind::Boolean)
}
