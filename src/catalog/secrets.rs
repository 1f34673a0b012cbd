//! Secrets of connections and tools: what stands in their place, and how it is taken back.
//!
//! The one place that knows where secrets are in an entity's JSON. The headers of a connection are
//! secrets, and so is what a tool always sends in a header, a cookie or the query under a name that
//! is one of a credential.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Connection, Entities, Entity, EntityName, Entry, Kind, Origin, Problem, Secret, Tool};
use crate::mapping::{FieldRule, Location};

/// Stands for a secret in whatever is shown. Written back, it means the secret that is there.
pub const MASK: &str = "***";

/// The field of a connection whose values are secrets.
const SECRET_FIELD: &str = "headers";
/// The field of a tool whose rules may have a secret, and where they have it.
const RULES_FIELD: &str = "fields";
const CONSTANT: &str = "constant";

/// Whether something of this name is a credential, which must not be shown.
pub fn is_credential(name: &str) -> bool {
    const PARTS: [&[u8]; 7] =
        [b"auth", b"cookie", b"key", b"token", b"secret", b"pass", b"credential"];
    let name = name.as_bytes();
    let holds = |part: &[u8]| name.windows(part.len()).any(|w| w.eq_ignore_ascii_case(part));
    PARTS.iter().any(|part| holds(part))
}

/// Whether what is always sent to such a place under this name is a secret.
fn is_secret_place(location: Location, name: &str) -> bool {
    match location {
        Location::Header | Location::Cookie | Location::Query => is_credential(name),
        Location::Path | Location::Body => false,
    }
}

/// The secret that a rule always sends.
fn secret_of(rule: &FieldRule) -> Option<&Value> {
    let constant = rule.constant.as_ref()?;
    is_secret_place(rule.location, &rule.source_field_name).then_some(constant)
}

/// The secrets that a tool always sends, each with its name.
pub(super) fn constants(tool: &Tool) -> Box<[(Box<str>, Secret)]> {
    let mut found = Vec::new();
    for rule in &tool.fields {
        let values = match secret_of(rule) {
            Some(Value::Array(items)) => items.as_slice(),
            Some(value) => std::slice::from_ref(value),
            None => continue,
        };
        for value in values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            found.push((rule.source_field_name.as_str().into(), Secret::new(&text)));
        }
    }
    found.into()
}

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
    match kind {
        Kind::Connection => entity.get_mut(SECRET_FIELD).into_iter().for_each(mask_all),
        Kind::Tool => entity.get_mut(RULES_FIELD).into_iter().for_each(mask_rules),
        _ => {}
    }
}

/// As [`mask`], for the value at a path within an entity.
pub(super) fn mask_at(kind: Kind, entity: &Value, path: &[String], value: &mut Value) {
    let Some((field, below)) = path.split_first() else { return };
    match (kind, field.as_str()) {
        (Kind::Connection, SECRET_FIELD) => mask_all(value),
        (Kind::Tool, RULES_FIELD) => match below {
            [] => mask_rules(value),
            [_] => mask_rule(value),
            [place, part, ..] if part.strip_prefix('.') == Some(CONSTANT) => {
                let place = place.trim_matches(['[', ']']).parse::<usize>().ok();
                let rule = place.and_then(|place| entity.get(RULES_FIELD)?.get(place));
                if rule.is_none_or(is_secret_rule) {
                    mask_one(value);
                }
            }
            _ => {}
        },
        _ => {}
    }
}

fn mask_rules(rules: &mut Value) {
    rules.as_array_mut().into_iter().flatten().for_each(mask_rule);
}

fn mask_rule(rule: &mut Value) {
    if is_secret_rule(rule)
        && let Some(constant) = rule.get_mut(CONSTANT)
    {
        mask_one(constant);
    }
}

/// As [`secret_of`] of a rule's JSON, which may be one of another release: then it is one.
fn is_secret_rule(rule: &Value) -> bool {
    let location = match rule.get("location") {
        None => Ok(Location::default()),
        Some(location) => Location::deserialize(location),
    };
    let name = rule.get("source_field_name").and_then(Value::as_str);
    match (location, name) {
        (Ok(location), Some(name)) => is_secret_place(location, name),
        _ => true,
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
        for entry in &mut self.tools {
            if !entry.value.fields.iter().any(|rule| secret_of(rule).is_some()) {
                continue;
            }
            for rule in &mut Arc::make_mut(&mut entry.value).fields {
                if secret_of(rule).is_some() {
                    rule.constant = Some(MASK.into());
                }
            }
        }
    }

    /// Puts the secrets of `stored` where a mask was written.
    ///
    /// # Errors
    /// Every mask that stands for nothing.
    pub fn unmask_secrets(&mut self, stored: &Self) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        self.unmask_headers(stored, &mut problems);
        self.unmask_constants(stored, &mut problems);
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn unmask_headers(&mut self, stored: &Self, problems: &mut Vec<Problem>) {
        let is_mask = |secret: &Secret| secret.expose() == MASK;
        let is_masked = |entry: &&mut Entry<Connection>| entry.value.headers.values().any(is_mask);
        let mut known = None;
        for entry in self.connections.iter_mut().filter(is_masked) {
            let known = known.get_or_insert_with(|| by_key(&stored.connections));
            let before = known.get(&entry.value.key());
            let name = entry.value.name();
            for (header, secret) in &mut Arc::make_mut(&mut entry.value).headers {
                if !is_mask(secret) {
                    continue;
                }
                if let Some(before) = before.and_then(|before| before.headers.get(header)) {
                    *secret = before.clone();
                } else {
                    let place = format!("headers.{header}");
                    problems.push(stands_for_nothing(&entry.origin, &name, &place));
                }
            }
        }
    }

    /// A rule is known again by where it sends what.
    fn unmask_constants(&mut self, stored: &Self, problems: &mut Vec<Problem>) {
        let is_mask = |rule: &FieldRule| secret_of(rule).is_some_and(|secret| secret == MASK);
        let is_masked = |entry: &&mut Entry<Tool>| entry.value.fields.iter().any(is_mask);
        let mut known = None;
        for entry in self.tools.iter_mut().filter(is_masked) {
            let known = known.get_or_insert_with(|| by_key(&stored.tools));
            let before = known.get(&entry.value.key());
            let name = entry.value.name();
            for rule in &mut Arc::make_mut(&mut entry.value).fields {
                if !is_mask(rule) {
                    continue;
                }
                let is_same = |other: &&FieldRule| {
                    other.location == rule.location
                        && other.source_field_name == rule.source_field_name
                };
                let before = before.and_then(|before| before.fields.iter().find(is_same));
                if let Some(before) = before.and_then(secret_of) {
                    rule.constant = Some(before.clone());
                } else {
                    let place = format!("the constant of `{}`", rule.source_field_name);
                    problems.push(stands_for_nothing(&entry.origin, &name, &place));
                }
            }
        }
    }
}

fn by_key<T: Entity>(entries: &[Entry<T>]) -> HashMap<String, &T> {
    entries.iter().map(|entry| (entry.value.key(), &*entry.value)).collect()
}

fn stands_for_nothing(origin: &Origin, name: &EntityName, place: &str) -> Problem {
    let message = format!(
        "{name}: {place} is `{MASK}`, which stands for the value that is kept, but none is: write \
         the value"
    );
    Problem::new(origin, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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

    fn tool(fields: &Value) -> Entities {
        let mut entities = Entities::default();
        let content = json!({ "tenant": "a", "toolset": "t", "name": "find", "description": "d",
            "method": "GET", "path": "/", "fields": fields });
        entities.put(Kind::Tool, content, &Origin::new("api.toml", 7)).unwrap();
        entities
    }

    fn rule(location: &str, name: &str, constant: &str) -> Value {
        json!({ "location": location, "source_field_name": name, "constant": constant })
    }

    #[test]
    fn constants_that_are_credentials_are_masked_and_come_back() {
        let fields = json!([
            rule("header", "X-Api-Key", "secret-1"),
            rule("header", "X-Version", "7"),
            rule("query", "access_token", "secret-2"),
            rule("cookie", "auth", "secret-3"),
            rule("body", "key", "shown"),
        ]);
        let stored = tool(&fields);
        let mut masked = stored.clone();
        masked.mask_secrets();
        let shown: Vec<_> =
            masked.tools[0].value.fields.iter().map(|r| r.constant.clone()).collect();
        let expected = ["***", "7", "***", "***", "shown"].map(|text| Some(Value::from(text)));
        assert_eq!(shown, expected);
        let mut entity = serde_json::to_value(&*stored.tools[0].value).unwrap();
        mask(Kind::Tool, &mut entity);
        assert_eq!(entity, serde_json::to_value(&*masked.tools[0].value).unwrap());
        masked.unmask_secrets(&stored).unwrap();
        assert!(stored.difference(&masked).is_empty());
        let found = constants(&stored.tools[0].value);
        let names: Vec<_> = found.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["X-Api-Key", "access_token", "auth"]);
    }

    #[test]
    fn a_masked_constant_without_a_value_is_a_problem() {
        let stored = tool(&json!([rule("header", "X-Api-Key", "secret-1")]));
        // Elsewhere it is another one.
        let mut moved = tool(&json!([rule("query", "X-Api-Key", MASK)]));
        let problems = moved.unmask_secrets(&stored).unwrap_err();
        let text = problems[0].to_string();
        let expected = "api.toml:7: tool a/t/find: the constant of `X-Api-Key` is `***`, which";
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains("secret"));
    }
}
