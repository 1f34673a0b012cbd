//! What a change did to an entity, field by field.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::differing::differing;
use super::{Document, EntityName, Kind, secrets};

/// An entity before and after a change; one of the two is missing where it was added or removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityChange {
    /// What it is.
    pub kind: Kind,
    /// Its ids from the tenant down, with `/` between them.
    pub key: String,
    /// As it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Document>,
    /// As it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Document>,
}

/// A field that differs. Secrets are masked, so both values of one that changed look alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// The way to it: `annotations.read_only_hint`, `fields[2].description`.
    pub field: String,
    /// Its value before; `None` where it was not there.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value after; `None` where it is not there.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// A `null` is a value too.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl EntityChange {
    /// Kind and key.
    pub fn name(&self) -> EntityName {
        EntityName { kind: self.kind, key: self.key.clone() }
    }

    /// The fields that differ, in order; none where the entity was added or removed.
    pub fn fields(&self) -> Vec<FieldChange> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return Vec::new() };
        let (old, new) = (&before.entity, &after.entity);
        let mut fields = Vec::new();
        differing(old, new, str::to_owned, &mut |path, before, after| {
            let shown = |value: Option<&Value>, entity| {
                let mut value = value.cloned()?;
                secrets::mask_at(self.kind, entity, path, &mut value);
                Some(value)
            };
            let (before, after) = (shown(before, old), shown(after, new));
            fields.push(FieldChange { field: path.concat(), before, after });
        });
        fields
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(kind: Kind, before: Value, after: Value) -> EntityChange {
        let document = |entity| Document { file: "f".to_owned(), line: 1, entity };
        EntityChange {
            kind,
            key: "k".to_owned(),
            before: Some(document(before)),
            after: Some(document(after)),
        }
    }

    fn text(change: &EntityChange) -> Vec<String> {
        let shown = |value: Option<Value>| value.map_or_else(|| "-".into(), |v| v.to_string());
        let fields = change.fields().into_iter();
        fields.map(|f| format!("{} {} {}", f.field, shown(f.before), shown(f.after))).collect()
    }

    #[test]
    fn fields_are_named_by_the_way_to_them() {
        let change = change(
            Kind::Tool,
            json!({ "a": 1, "b": { "c": true, "d": [1, { "e": "x" }] }, "same": [1] }),
            json!({ "a": 1, "b": { "c": false, "d": [1, { "e": "y" }, 3] }, "new": null, "same": [1] }),
        );
        assert_eq!(
            text(&change),
            ["b.c true false", "b.d[1].e \"x\" \"y\"", "b.d[2] - 3", "new - null"]
        );
    }

    #[test]
    fn secrets_are_told_to_differ_and_not_shown() {
        let one = json!({ "headers": { "A": "secret-1", "B": "secret-2" }, "title": "t" });
        let other = json!({ "headers": { "A": "secret-3", "C": "secret-4" } });
        let changed = change(Kind::Connection, one.clone(), other);
        assert_eq!(
            text(&changed),
            [
                "headers.A \"***\" \"***\"",
                "headers.B \"***\" -",
                "headers.C - \"***\"",
                "title \"t\" -"
            ]
        );
        let dropped = change(Kind::Connection, one, json!({ "title": "t" }));
        assert_eq!(text(&dropped), [r#"headers {"A":"***","B":"***"} -"#]);
        assert!(!format!("{dropped:?}").contains("secret"));
    }

    #[test]
    fn secrets_of_tools_are_not_shown_either() {
        let rule = |name: &str, constant: Value| json!({ "location": "header", "source_field_name": name, "constant": constant });
        let one =
            json!({ "fields": [rule("X-Key", "secret-1".into()), rule("X-Other", "a".into())] });
        let other = json!({ "fields": [rule("X-Key", "secret-2".into()), rule("X-Other", "b".into()),
            rule("X-Token", json!(["secret-3"]))] });
        assert_eq!(
            text(&change(Kind::Tool, one.clone(), other.clone())),
            [
                "fields[0].constant \"***\" \"***\"",
                "fields[1].constant \"a\" \"b\"",
                "fields[2] - {\"constant\":\"***\",\"location\":\"header\",\
                 \"source_field_name\":\"X-Token\"}",
            ]
        );
        // What was a secret before is none now, and the other way round.
        let plain = json!({ "fields": [rule("X-Plain", "shown".into())] });
        for (before, after) in [(one, plain.clone()), (plain, other.clone()), (other, json!({}))] {
            let told = text(&change(Kind::Tool, before, after)).join("\n");
            assert!(!told.contains("secret"), "{told}");
        }
        let items = |item: &str| json!({ "fields": [rule("X-Token", json!([item, "secret-4"]))] });
        let told = text(&change(Kind::Tool, items("secret-1"), items("secret-2")));
        assert_eq!(told, ["fields[0].constant[0] \"***\" \"***\""]);
    }

    #[test]
    fn deep_values_are_compared_whole() {
        let nest = |leaf: u32| (0..100).fold(json!(leaf), |inner, _| json!([inner]));
        let change = change(Kind::Tool, json!({ "v": nest(1) }), json!({ "v": nest(2) }));
        assert_eq!(change.fields().len(), 1);
    }
}
