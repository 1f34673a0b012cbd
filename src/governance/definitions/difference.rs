//! How two definitions differ, field by field.

use serde_json::Value;

use super::hidden::visible;
use crate::catalog::{FieldChange, differing};
use crate::json::{self, Raw};

/// Most differences that are told; more are counted in the last one.
const DIFFERENCES_MAX: usize = 200;
/// Longest text of a value that is told, in characters.
const SHOWN_CHARACTERS_MAX: usize = 400;

/// The fields that differ, in order. Values are cut to what can be read, and show what they hide.
pub fn differences(before: Raw<'_>, after: Raw<'_>) -> Vec<FieldChange> {
    let mut found = Vec::new();
    let mut left_out = 0_usize;
    differing(&json::to_value(before), &json::to_value(after), visible, &mut |path, one, other| {
        if found.len() >= DIFFERENCES_MAX {
            left_out += 1;
            return;
        }
        let (before, after) = (one.map(shown), other.map(shown));
        found.push(FieldChange { field: path.concat(), before, after });
    });
    if left_out > 0 {
        let field = format!("and {left_out} more");
        found.push(FieldChange { field, before: None, after: None });
    }
    found
}

/// A value as it is told: long ones as text.
fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&visible(text))),
        Value::Object(_) | Value::Array(_) => {
            let text = value.to_string();
            let seen = visible(&text);
            if seen == text && text.chars().count() <= SHOWN_CHARACTERS_MAX {
                value.clone()
            } else {
                Value::String(cut(&seen))
            }
        }
        other => other.clone(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::OwnedRaw;

    fn told(before: &Value, after: &Value) -> Vec<String> {
        let raw = |value: &Value| OwnedRaw::parse(value.to_string().as_bytes()).unwrap();
        let shown = |value: Option<Value>| value.map_or_else(|| "-".into(), |v| v.to_string());
        let fields = differences(raw(before).as_raw(), raw(after).as_raw()).into_iter();
        fields.map(|f| format!("{} {} {}", f.field, shown(f.before), shown(f.after))).collect()
    }

    #[test]
    fn fields_are_named_by_the_way_to_them() {
        let before = json!({
            "name": "t", "description": "Adds", "inputSchema": {"properties": {"a": {"type": "string"}}},
        });
        let after = json!({
            "name": "t", "description": "Adds\u{200b}",
            "inputSchema": {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"]},
        });
        assert_eq!(
            told(&before, &after),
            [
                r#"description "Adds" "Adds\\u{200b}""#,
                "inputSchema.properties.b - {}",
                r#"inputSchema.required - ["b"]"#,
            ]
        );
        assert!(told(&before, &before).is_empty());
    }

    #[test]
    fn what_is_told_is_bounded() {
        let many: Value = (0..1000)
            .map(|n| (format!("k{n}"), json!(n)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let lines = told(&json!({}), &many);
        assert_eq!(lines.len(), DIFFERENCES_MAX + 1);
        assert_eq!(lines.last().unwrap(), "and 800 more - -");
        let long = told(&json!({"d": "x".repeat(10_000)}), &json!({"d": ["y".repeat(10_000)]}));
        assert!(long[0].len() < 3 * SHOWN_CHARACTERS_MAX);
    }
}
