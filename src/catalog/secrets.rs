//! Secrets of connections: what stands in their place, and how it is taken back.
//!
//! The one place that knows where secrets are in an entity's JSON.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::Deserializer;
use serde::de::{self, MapAccess, Visitor};
use serde_json::Value;

use super::{Connection, Entities, Entity, Entry, Kind, Problem, Secret};

/// Stands for a secret in whatever is shown. Written back, it means the secret that is there.
pub const MASK: &str = "***";

/// The field of a connection whose values are secrets.
const SECRET_FIELD: &str = "headers";

/// Reads the headers of a connection. The usual message of a wrong type quotes the value, which may
/// be the secret itself, written one level too high.
pub(super) fn headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Secret>, D::Error> {
    struct Headers;

    impl<'de> Visitor<'de> for Headers {
        type Value = BTreeMap<String, Secret>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("names of headers with their values")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut headers = BTreeMap::new();
            while let Some((name, value)) = map.next_entry()? {
                headers.insert(name, value);
            }
            Ok(headers)
        }

        fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
            Err(E::custom("expected names of headers with their values"))
        }

        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
            self.visit_str("")
        }

        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
            self.visit_str("")
        }

        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            self.visit_str("")
        }
    }

    // Asked for a map, JSON's own deserializer would quote what it finds instead.
    deserializer.deserialize_any(Headers)
}

/// Puts the mask in place of every secret of an entity's JSON.
pub(super) fn mask(kind: Kind, entity: &mut Value) {
    if kind == Kind::Connection
        && let Some(field) = entity.get_mut(SECRET_FIELD)
    {
        mask_all(field);
    }
}

/// As [`mask`], for the value at a path within an entity.
pub(super) fn mask_at(kind: Kind, path: &[String], value: &mut Value) {
    let is_within = path.first().is_some_and(|field| field == SECRET_FIELD);
    if kind == Kind::Connection && is_within {
        mask_all(value);
    }
}

fn mask_all(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(mask_one),
        other => mask_one(other),
    }
}

fn mask_one(value: &mut Value) {
    *value = Value::from(MASK);
}

impl Entities {
    /// Puts the mask in place of every secret.
    pub fn mask_secrets(&mut self) {
        for entry in &mut self.connections {
            for secret in Arc::make_mut(&mut entry.value).headers.values_mut() {
                *secret = Secret::new(MASK);
            }
        }
    }

    /// Puts the secrets of `stored` where a mask was written.
    ///
    /// # Errors
    /// Every mask that stands for nothing.
    pub fn unmask_secrets(&mut self, stored: &Self) -> Result<(), Vec<Problem>> {
        let is_mask = |secret: &Secret| secret.expose() == MASK;
        let is_masked = |entry: &&mut Entry<Connection>| entry.value.headers.values().any(is_mask);
        let mut known: Option<HashMap<String, &Connection>> = None;
        let mut problems = Vec::new();
        for entry in self.connections.iter_mut().filter(is_masked) {
            let known = known.get_or_insert_with(|| {
                stored.connections.iter().map(|c| (c.value.key(), &*c.value)).collect()
            });
            let before = known.get(&entry.value.key());
            let name = entry.value.name();
            for (header, secret) in &mut Arc::make_mut(&mut entry.value).headers {
                if !is_mask(secret) {
                    continue;
                }
                match before.and_then(|before| before.headers.get(header)) {
                    Some(before) => *secret = before.clone(),
                    None => problems.push(Problem::new(
                        &entry.origin,
                        format!(
                            "{name}: headers.{header} is `{MASK}`, which stands for the value that \
                             is kept, but none is: write the value"
                        ),
                    )),
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::Origin;

    fn connection(headers: &Value) -> Entities {
        let mut entities = Entities::default();
        let content =
            json!({ "tenant": "a", "id": "api", "base_url": "http://h", "headers": headers });
        entities.put(Kind::Connection, content, &Origin::new("api.toml", 7)).unwrap();
        entities
    }

    #[test]
    fn a_mask_that_comes_back_keeps_the_secret() {
        let stored = connection(&json!({ "X-Key": "one", "X-Other": "two" }));
        let mut masked = stored.clone();
        masked.mask_secrets();
        assert_eq!(stored.connections[0].value.headers["X-Key"].expose(), "one");
        assert_eq!(masked.connections[0].value.headers["X-Key"].expose(), MASK);
        masked.unmask_secrets(&stored).unwrap();
        assert!(stored.difference(&masked).is_empty());
    }

    #[test]
    fn secrets_in_the_wrong_place_are_not_quoted() {
        for headers in [
            json!("Bearer hidden"),
            json!(4711),
            json!(["hidden"]),
            json!({ "X-Key": ["hidden"] }),
            json!({ "X-Key": 4711 }),
            json!({ "X-Key": { "hidden": 1 } }),
        ] {
            let mut entities = Entities::default();
            let content = json!({ "tenant": "a", "id": "api", "base_url": "http://h",
                "headers": headers });
            let error = entities.put(Kind::Connection, content, &Origin::new("t", 0)).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(!text.contains("hidden") && !text.contains("4711"), "{text}");
        }
    }

    #[test]
    fn a_mask_for_nothing_is_a_problem_with_its_place() {
        let stored = connection(&json!({ "X-Key": "one" }));
        let mut newer = connection(&json!({ "X-Key": "two", "X-New": MASK }));
        let problems = newer.unmask_secrets(&stored).unwrap_err();
        assert_eq!(problems.len(), 1);
        let text = problems[0].to_string();
        assert!(text.starts_with("api.toml:7: connection a/api: headers.X-New is `***`"), "{text}");
        let problems = newer.unmask_secrets(&Entities::default()).unwrap_err();
        assert_eq!(problems.len(), 1);
    }
}
