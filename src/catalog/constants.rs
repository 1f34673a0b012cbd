//! Credentials that a tool always sends: constants of rules whose place and name say so.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::proof::encoded_forms;
use super::secrets::{MASK, stands_for_nothing};
use super::{Entities, Entity, Entry, Problem, Secret, Tool};
use crate::mapping::{FieldRule, Location};

/// The field of a tool whose rules may have a secret, and where they have it.
pub(super) const RULES_FIELD: &str = "fields";
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

/// The secrets that a tool always sends, each with its name, and as URLs have them.
pub(super) fn of_tool(tool: &Tool) -> Box<[(Box<str>, Secret)]> {
    secrets(tool, secret_of)
}

/// The secrets among the arguments that a tool of an MCP server always gets.
pub(super) fn of_override(tool: &Tool) -> Box<[(Box<str>, Secret)]> {
    secrets(tool, |rule| rule.constant.as_ref().filter(|_| is_credential(&rule.source_field_name)))
}

fn secrets<'a>(
    tool: &'a Tool,
    secret_of: impl Fn(&'a FieldRule) -> Option<&'a Value>,
) -> Box<[(Box<str>, Secret)]> {
    let mut found = Vec::new();
    for rule in &tool.fields {
        let values = match secret_of(rule) {
            Some(Value::Array(items)) => items.as_slice(),
            Some(value) => std::slice::from_ref(value),
            None => continue,
        };
        for value in values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let forms = encoded_forms(&text);
            for secret in std::iter::once(Secret::new(&text)).chain(forms) {
                found.push((rule.source_field_name.as_str().into(), secret));
            }
        }
    }
    found.into()
}

/// Puts the mask in place of the secrets among a tool's rules, at a path below them.
pub(super) fn mask_at(entity: &Value, below: &[String], value: &mut Value) {
    match below {
        [] => mask_rules(value),
        [_] => mask_rule(value),
        [place, part, ..] if part.strip_prefix('.') == Some(CONSTANT) => {
            let place = place.trim_matches(['[', ']']).parse::<usize>().ok();
            let rule = place.and_then(|place| entity.get(RULES_FIELD)?.get(place));
            if rule.is_none_or(is_secret_rule) {
                *value = Value::from(MASK);
            }
        }
        _ => {}
    }
}

pub(super) fn mask_rules(rules: &mut Value) {
    rules.as_array_mut().into_iter().flatten().for_each(mask_rule);
}

fn mask_rule(rule: &mut Value) {
    if is_secret_rule(rule)
        && let Some(constant) = rule.get_mut(CONSTANT)
    {
        *constant = Value::from(MASK);
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

impl Entities {
    pub(super) fn mask_constants(&mut self) {
        let has_secret = |rule: &FieldRule| secret_of(rule).is_some();
        for entry in &mut self.tools {
            if !entry.value.fields.iter().any(has_secret) {
                continue;
            }
            let tool = Arc::make_mut(&mut entry.value);
            for rule in tool.fields.iter_mut().filter(|rule| has_secret(rule)) {
                rule.constant = Some(Value::from(MASK));
            }
        }
    }

    /// A rule is known again by where it sends what.
    pub(super) fn unmask_constants(&mut self, stored: &Self, problems: &mut Vec<Problem>) {
        let is_mask = |rule: &FieldRule| secret_of(rule).is_some_and(|secret| secret == MASK);
        let is_masked = |entry: &&mut Entry<Tool>| entry.value.fields.iter().any(is_mask);
        let mut known = None;
        for entry in self.tools.iter_mut().filter(is_masked) {
            let known: &mut HashMap<String, &Tool> = known.get_or_insert_with(|| {
                stored.tools.iter().map(|entry| (entry.value.key(), &*entry.value)).collect()
            });
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::secrets::mask;
    use crate::catalog::{Kind, Origin};

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
        let found = of_tool(&stored.tools[0].value);
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
