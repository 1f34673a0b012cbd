//! Secrets of connections: what stands in their place, and how it is taken back.
//!
//! The one place that knows where secrets are in an entity's JSON.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::names::shortened;
use super::{Connection, Credential, Entities, Entity, Kind, Problem, Secret, SecretSource};

/// Stands for a secret in whatever is shown. Written back, it means the secret that is there.
pub const MASK: &str = "***";

/// The field of a connection whose values are all secrets.
const HEADERS: &str = "headers";
/// The field with secrets among its values.
const CREDENTIALS: &str = "credentials";

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

/// Reads the credentials of a connection. As with the headers, no message quotes a value: it may be
/// a secret in the wrong place.
pub(super) fn credentials<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Credential>, D::Error> {
    struct Credentials;

    fn refuse<E: de::Error>() -> E {
        E::custom("expected a list of credentials: [{ kind = \"bearer\", token = ... }]")
    }

    impl<'de> Visitor<'de> for Credentials {
        type Value = Vec<Credential>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list of credentials")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut credentials = Vec::new();
            while let Some(Read(credential)) = list.next_element()? {
                credentials.push(credential);
            }
            Ok(credentials)
        }

        fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
            Err(refuse())
        }

        fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
            Err(refuse())
        }

        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Err(refuse())
        }

        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Err(refuse())
        }

        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Err(refuse())
        }
    }

    deserializer.deserialize_any(Credentials)
}

/// One credential, read in two steps: the first takes anything, the second tells what is wrong to
/// us alone.
struct Read(Credential);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let Value::Object(fields) = &value else {
            return Err(de::Error::custom("expected a table with the `kind` of a credential"));
        };
        // Which field has a wrong type is told by serde in no way that leaves out the value.
        let is_wrong = |name: &str, value: &Value| match name {
            "password" | "token" | "value" | "client_secret" => false,
            "scopes" => !value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            "parameters" => {
                !value.as_object().is_some_and(|all| all.values().all(Value::is_string))
            }
            "digest" => !value.is_boolean(),
            _ => !value.is_string(),
        };
        if let Some((name, _)) = fields.iter().find(|(name, value)| is_wrong(name, value)) {
            let message = format!("`{}` has a value of the wrong type", shortened(name));
            return Err(de::Error::custom(message));
        }
        match Credential::deserialize(value) {
            Ok(credential) => Ok(Self(credential)),
            Err(error) => Err(de::Error::custom(unquoted(&error.to_string()))),
        }
    }
}

/// What serde says, without what it found where that is a value.
fn unquoted(message: &str) -> String {
    let quotes_a_value = ["invalid type", "invalid value", "unknown variant"];
    if !quotes_a_value.iter().any(|beginning| message.starts_with(beginning)) {
        return message.to_owned();
    }
    // A value may hold these words too: what follows the last of them is serde's own.
    match message.rfind(", expected ") {
        Some(at) => message[at + 2..].to_owned(),
        None => "the value is not one that is expected here".to_owned(),
    }
}

/// Puts the mask in place of every secret of an entity's JSON.
pub(super) fn mask(kind: Kind, entity: &mut Value) {
    if kind != Kind::Connection {
        return;
    }
    if let Some(headers) = entity.get_mut(HEADERS) {
        mask_all(headers);
    }
    if let Some(credentials) = entity.get_mut(CREDENTIALS) {
        mask_credentials(credentials);
    }
}

/// As [`mask`], for the value at a path within an entity.
pub(super) fn mask_at(kind: Kind, path: &[String], value: &mut Value) {
    if kind != Kind::Connection {
        return;
    }
    match path {
        [first, ..] if first == HEADERS => mask_all(value),
        [first] if first == CREDENTIALS => mask_credentials(value),
        [first, _] if first == CREDENTIALS => mask_credential(value),
        [first, _, field] if first == CREDENTIALS && is_secret_field(&field[1..]) => {
            mask_source(value);
        }
        _ => {}
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

fn mask_credentials(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(mask_credential),
        other => mask_one(other),
    }
}

fn mask_credential(value: &mut Value) {
    let Value::Object(fields) = value else { return mask_one(value) };
    let secrets = fields.iter_mut().filter(|(name, _)| is_secret_field(name));
    secrets.for_each(|(_, value)| mask_source(value));
}

fn is_secret_field(name: &str) -> bool {
    matches!(name, "password" | "token" | "value" | "client_secret")
}

/// The place where a secret is kept is none.
fn mask_source(value: &mut Value) {
    if !value.is_object() {
        mask_one(value);
    }
}

/// The secrets that a connection holds itself.
fn texts(connection: &mut Connection) -> impl Iterator<Item = &mut Secret> {
    let headers = connection.headers.values_mut();
    headers.chain(connection.credentials.iter_mut().filter_map(text_of))
}

fn text_of(credential: &mut Credential) -> Option<&mut Secret> {
    match credential.secret_mut()? {
        (_, SecretSource::Text(secret)) => Some(secret),
        (_, SecretSource::Elsewhere(_)) => None,
    }
}

fn is_mask(secret: &Secret) -> bool {
    secret.expose() == MASK
}

impl Entities {
    /// Puts the mask in place of every secret.
    pub fn mask_secrets(&mut self) {
        for entry in &mut self.connections {
            for secret in texts(Arc::make_mut(&mut entry.value)) {
                *secret = Secret::new(MASK);
            }
        }
    }

    /// Puts the secrets of `stored` where a mask was written.
    ///
    /// # Errors
    /// Every mask that stands for nothing.
    pub fn unmask_secrets(&mut self, stored: &Self) -> Result<(), Vec<Problem>> {
        let mut known: Option<HashMap<String, &Connection>> = None;
        let mut problems = Vec::new();
        for entry in self.connections.iter_mut().filter(|entry| has_mask(&entry.value)) {
            let known = known.get_or_insert_with(|| {
                stored.connections.iter().map(|c| (c.value.key(), &*c.value)).collect()
            });
            let before = known.get(&entry.value.key()).copied();
            let name = entry.value.name();
            for place in unmask(Arc::make_mut(&mut entry.value), before) {
                problems.push(Problem::new(
                    &entry.origin,
                    format!(
                        "{name}: {place} is `{MASK}`, which stands for the value that is kept, but \
                         none is: write the value"
                    ),
                ));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

fn has_mask(connection: &Connection) -> bool {
    let text = |credential: &Credential| match credential.secret() {
        Some((_, SecretSource::Text(secret))) => is_mask(secret),
        _ => false,
    };
    connection.headers.values().any(is_mask) || connection.credentials.iter().any(text)
}

/// Takes the secrets of `before`; where there were none, the place of the mask.
fn unmask(connection: &mut Connection, before: Option<&Connection>) -> Vec<String> {
    let mut missing = Vec::new();
    for (header, secret) in connection.headers.iter_mut().filter(|(_, secret)| is_mask(secret)) {
        match before.and_then(|before| before.headers.get(header)) {
            Some(before) => *secret = before.clone(),
            None => missing.push(format!("headers.{header}")),
        }
    }
    for (place, credential) in connection.credentials.iter_mut().enumerate() {
        let masked = credential.clone();
        let Some((field, SecretSource::Text(secret))) = credential.secret_mut() else { continue };
        if !is_mask(secret) {
            continue;
        }
        match before.and_then(|before| meant(&before.credentials, &masked, place)) {
            Some(found) => *secret = found,
            None => missing.push(format!("credentials[{place}].{field}")),
        }
    }
    missing
}

/// The secret that a mask stands for: that of the credential that is the same but for it, else that
/// of the same kind at the same place.
fn meant(before: &[Credential], masked: &Credential, place: usize) -> Option<Secret> {
    let as_masked = |credential: &Credential| {
        let mut credential = credential.clone();
        let secret = text_of(&mut credential)?;
        let found = std::mem::replace(secret, Secret::new(MASK));
        Some((credential, found))
    };
    let same = before.iter().filter_map(as_masked).find(|(other, _)| other == masked);
    let here = || before.get(place).filter(|other| other.kind() == masked.kind());
    same.or_else(|| as_masked(here()?)).map(|(_, found)| found)
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

    fn with_credentials(credentials: &Value) -> Result<Entities, crate::catalog::InvalidEntity> {
        let mut entities = Entities::default();
        let content = json!({ "tenant": "a", "id": "api", "base_url": "http://h",
            "credentials": credentials });
        entities.put(Kind::Connection, content, &Origin::new("api.toml", 7))?;
        Ok(entities)
    }

    #[test]
    fn masked_credentials_come_back_whole_and_in_any_order() {
        let all = json!([
            { "kind": "basic", "username": "u", "password": "one" },
            { "kind": "api_key", "place": "query", "name": "k", "value": "two" },
            { "kind": "api_key", "place": "query", "name": "l", "value": { "environment": "E" } },
            { "kind": "ws_security", "username": "u", "password": "three" },
        ]);
        let stored = with_credentials(&all).unwrap();
        let mut masked = stored.clone();
        masked.mask_secrets();
        let mut json = serde_json::to_value(&*stored.connections[0].value).unwrap();
        mask(Kind::Connection, &mut json);
        assert_eq!(json, serde_json::to_value(&*masked.connections[0].value).unwrap());
        let text = json.to_string();
        assert!(!["one", "two", "three"].iter().any(|secret| text.contains(secret)), "{text}");
        assert_eq!(json["credentials"][2]["value"], json!({ "environment": "E" }));
        masked.unmask_secrets(&stored).unwrap();
        assert!(stored.difference(&masked).is_empty());

        // In another order, and with another user: still the same secrets.
        let mut moved = with_credentials(&json!([
            { "kind": "api_key", "place": "query", "name": "k", "value": MASK },
            { "kind": "basic", "username": "u", "password": MASK },
        ]))
        .unwrap();
        moved.unmask_secrets(&stored).unwrap();
        let found: Vec<String> = moved.connections[0]
            .value
            .credentials
            .iter()
            .map(|one| match one.secret() {
                Some((_, SecretSource::Text(secret))) => secret.expose().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(found, ["two", "one"]);
        let mut stray = with_credentials(&json!([{ "kind": "bearer", "token": MASK }])).unwrap();
        let problems = stray.unmask_secrets(&stored).unwrap_err();
        let text = problems[0].to_string();
        assert!(text.contains("api.toml:7: connection a/api: credentials[0].token is"), "{text}");
    }

    #[test]
    fn wrong_credentials_are_told_without_their_values() {
        for (credentials, expected) in [
            (json!("Bearer hidden"), "a list of credentials"),
            (json!(4711), "a list of credentials"),
            (json!({ "token": "hidden" }), "a list of credentials"),
            (json!(["hidden"]), "expected a table"),
            (json!([4711]), "expected a table"),
            (json!([{ "kind": "hidden" }]), "expected one of `basic`"),
            (json!([{ "kind": 4711 }]), "`kind` has a value of the wrong type"),
            (json!([{ "token": "hidden" }]), "kind"),
            (json!([{ "kind": "bearer" }]), "missing field `token`"),
            (json!([{ "kind": "bearer", "token": 4711 }]), "expected the secret as text"),
            (json!([{ "kind": "bearer", "token": ["hidden"] }]), "expected"),
            (json!([{ "kind": "bearer", "token": { "hidden": "x" } }]), "expected the secret"),
            (json!([{ "kind": "bearer", "token": { "file": 4711 } }]), "expected the secret"),
            (json!([{ "kind": "bearer", "token": "x", "tokn": "hidden" }]), "`tokn`"),
            (
                json!([{ "kind": "api_key", "place": "hidden", "name": "n", "value": "x" }]),
                "expected one of `header`",
            ),
            (json!([{ "kind": "basic", "username": 4711, "password": "x" }]), "`username` has"),
        ] {
            let error = with_credentials(&credentials).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.contains(expected), "{credentials}: {text}");
            assert!(!text.contains("hidden") && !text.contains("4711"), "{text}");
        }
    }

    #[test]
    fn changed_credentials_are_told_masked() {
        let path = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
        let masked = |parts: &[&str], mut value: Value| {
            mask_at(Kind::Connection, &path(parts), &mut value);
            value
        };
        let one = json!({ "kind": "bearer", "token": "s" });
        let shown = json!({ "kind": "bearer", "token": MASK });
        assert_eq!(masked(&["credentials"], json!([one])), json!([shown]));
        assert_eq!(masked(&["credentials", "[0]"], one), shown);
        assert_eq!(masked(&["credentials", "[0]", ".token"], json!("s")), json!(MASK));
        assert_eq!(masked(&["credentials", "[0]", ".kind"], json!("basic")), json!("basic"));
        let place = json!({ "file": "/x" });
        assert_eq!(masked(&["credentials", "[0]", ".token"], place.clone()), place);
    }
}
