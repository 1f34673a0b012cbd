//! Function declarations of Gemini: the words of its first APIs, which all later ones take.
//!
//! Formats that it does not know, lists of other things than strings, unions and objects without
//! properties make it refuse the whole request, so they are shown as something else.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::read::{Form, FormKind};
use super::{json_text, notes, properties};

pub(super) fn write(form: &Form) -> Value {
    let mut out = Map::from_iter([("type".to_owned(), json!("object"))]);
    if let Some(description) = notes::description(form, |_| false) {
        out.insert("description".to_owned(), json!(description));
    }
    properties(form, place, &mut out);
    Value::Object(out)
}

fn place(form: &Form) -> Map<String, Value> {
    let form = &*chosen(form);
    let is_free = form.kind == FormKind::Object && form.properties.is_empty();
    let mut out = if is_free { json_text(form) } else { Map::new() };
    if form.is_nullable {
        out.insert("nullable".to_owned(), json!(true));
    }
    if is_free {
        return out;
    }
    let strings = listed(form);
    let shown = if strings.is_some() { FormKind::String } else { form.kind };
    let shown = if shown == FormKind::Null { FormKind::String } else { shown };
    out.insert("type".to_owned(), json!(shown.as_str()));
    let format = form.words.get("format").filter(|format| knows(form.kind, format));
    if let Some(format) = format.filter(|_| strings.is_none()) {
        out.insert("format".to_owned(), format.clone());
    }
    let says = |word: &str| word == "format" && out.contains_key("format");
    if let Some(description) = notes::description(form, says) {
        out.insert("description".to_owned(), json!(description));
    }
    if let Some(strings) = strings {
        out.insert("enum".to_owned(), json!(strings));
    }
    if let Some(items) = &form.items {
        out.insert("items".to_owned(), Value::Object(place(items)));
    }
    if form.kind == FormKind::Object {
        properties(form, place, &mut out);
    }
    out
}

/// One form in place of a union: objects are folded; of others a plain string is taken, because
/// it holds most, else the first.
fn chosen(form: &Form) -> Cow<'_, Form> {
    if form.kind != FormKind::Union {
        return Cow::Borrowed(form);
    }
    if form.alternatives.iter().all(|form| form.kind == FormKind::Object) {
        return Cow::Owned(form.folded());
    }
    let is_plain = |form: &&Form| {
        form.kind == FormKind::String
            && form.allowed.is_none()
            && !form.words.contains_key("pattern")
    };
    let plain = form.alternatives.iter().find(is_plain);
    let taken = plain.or_else(|| form.alternatives.first()).cloned().unwrap_or_else(Form::any);
    let texts = [form.description.as_str(), taken.description.as_str()];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    let default = form.default.clone().or_else(|| taken.default.clone());
    let is_nullable = form.is_nullable;
    Cow::Owned(Form { description: texts.join(" "), is_nullable, default, ..taken })
}

/// Formats that Gemini takes; for any other it refuses the request.
fn knows(kind: FormKind, format: &Value) -> bool {
    let known: &[&str] = match kind {
        FormKind::String => &["date-time"],
        FormKind::Integer => &["int32", "int64"],
        FormKind::Number => &["float", "double"],
        _ => &[],
    };
    format.as_str().is_some_and(|format| known.contains(&format))
}

/// The allowed values as texts that are not empty, which is what Gemini takes. They are taken for
/// the numbers they hold when they come back.
fn listed(form: &Form) -> Option<Vec<String>> {
    let values = form.allowed.as_ref()?;
    if !matches!(form.kind, FormKind::String | FormKind::Integer | FormKind::Number) {
        return None;
    }
    let texts = values.iter().map(|value| match value {
        Value::String(text) => text.clone(),
        // `2.0` stands for the integer 2, and as a text only `2` does.
        Value::Number(number) if form.kind == FormKind::Integer => {
            number.as_i64().map_or_else(|| number.to_string(), |whole| whole.to_string())
        }
        other => other.to_string(),
    });
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    (texts.len() == values.len() && !texts.is_empty()).then_some(texts)
}
