//! What nearly every reader of JSON Schema takes.

use serde_json::{Map, Value, json};

use super::read::{Form, FormKind};
use super::{notes, properties};

pub(super) fn write(form: &Form) -> Value {
    // At the root nothing is nullable.
    Value::Object(place(&Form { is_nullable: false, ..form.clone() }))
}

fn place(form: &Form) -> Map<String, Value> {
    let mut out = Map::new();
    if let Some(description) = notes::description(form, |_| true) {
        out.insert("description".to_owned(), json!(description));
    }
    if let Some(default) = &form.default {
        out.insert("default".to_owned(), default.clone());
    }
    match form.kind {
        FormKind::Any => return out,
        FormKind::Union => {
            let branches = form.alternatives.iter().map(|form| Value::Object(place(form)));
            out.insert("anyOf".to_owned(), branches.collect());
            return out;
        }
        _ => {}
    }
    out.insert("type".to_owned(), json!(form.kind.as_str()));
    out.extend(form.words.clone());
    if let Some(allowed) = &form.allowed {
        out.insert("enum".to_owned(), json!(allowed));
    }
    if let Some(items) = &form.items {
        let items = match items.kind {
            // An item of any kind is shown as a text: readers want a type here.
            FormKind::Any => json!({"type": "string"}),
            _ => Value::Object(place(items)),
        };
        out.insert("items".to_owned(), items);
    }
    if form.kind == FormKind::Object {
        members(form, &mut out);
    }
    out
}

fn members(form: &Form, out: &mut Map<String, Value>) {
    properties(form, place, out);
    let others = match &form.others {
        None => json!(false),
        Some(others) if others.kind == FormKind::Any => json!(true),
        Some(others) => Value::Object(place(others)),
    };
    out.insert("additionalProperties".to_owned(), others);
}
