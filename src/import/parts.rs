//! A tool taken apart into what an import makes of it, each part with a path of its own, so that
//! the next import can tell who changed it.
//!
//! The path of a rule is made of where it goes and its source, so a rule that moves within the list
//! stays the same one: `fields/query/limit`, and `fields/query/limit/required` for what it says.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::names::hexadecimal;
use crate::catalog::{Imported, Tool};

/// What an import says of a tool, besides its rules. Whatever else a tool has is the operator's.
const PLAIN: [&str; 15] = [
    "body_content_type",
    "body_format",
    "connection",
    "description",
    "enabled",
    "idempotency_key_header",
    "method",
    "pass_unmapped",
    "path",
    "requires",
    "side_effect",
    "soap",
    "title",
    "xml",
    "annotations",
];
/// Whose members are parts of their own.
const NESTED: &str = "annotations";
/// The lists of rules.
pub(super) const LISTS: [&str; 2] = ["fields", "response_fields"];
/// The part that says whether a tool is published: the operator's consent, not the description's.
pub(super) const ENABLED: &str = "enabled";

/// Hexadecimal digits of a digest: enough to tell two versions of one part apart.
const DIGEST_DIGITS: usize = 16;

/// A field rule with the path of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    pub(super) path: String,
    pub(super) said: Map<String, Value>,
}

/// A tool, taken apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Parts {
    pub(super) plain: BTreeMap<String, Value>,
    pub(super) lists: [Vec<Rule>; 2],
}

impl Parts {
    /// Takes a tool apart.
    pub(super) fn of(tool: &Tool) -> Self {
        let mut parts = Self::default();
        let Ok(Value::Object(mut whole)) = serde_json::to_value(tool) else { return parts };
        for name in PLAIN {
            match whole.remove(name) {
                Some(Value::Object(members)) if name == NESTED => {
                    let paths = members.into_iter();
                    parts.plain.extend(paths.map(|(key, said)| (format!("{name}/{key}"), said)));
                }
                Some(said) => {
                    parts.plain.insert(name.to_owned(), said);
                }
                None => {}
            }
        }
        for (list, name) in parts.lists.iter_mut().zip(LISTS) {
            let Some(Value::Array(rules)) = whole.remove(name) else { continue };
            let mut seen = HashSet::new();
            for rule in rules {
                let Value::Object(said) = rule else { continue };
                let text = |key| said.get(key).and_then(Value::as_str).unwrap_or_default();
                let source = text("source_field_name").replace('~', "~0").replace('/', "~1");
                let mut path = format!("{name}/{}/{source}", text("location"));
                while !seen.insert(path.clone()) {
                    path.push_str("~2");
                }
                list.push(Rule { path, said });
            }
        }
        parts
    }

    /// Puts these parts into a tool, in place of its own.
    ///
    /// # Errors
    /// What is no tool any more.
    pub(super) fn into_tool(self, tool: &Tool) -> Result<Tool, String> {
        let failed = |error: serde_json::Error| error.to_string();
        let Value::Object(mut whole) = serde_json::to_value(tool).map_err(failed)? else {
            return Err("no object".to_owned());
        };
        whole.retain(|key, _| !PLAIN.contains(&key.as_str()) && !LISTS.contains(&key.as_str()));
        for (path, said) in self.plain {
            match path.split_once('/') {
                Some((outer, inner)) => {
                    let outer = whole.entry(outer).or_insert_with(|| Value::Object(Map::new()));
                    if let Value::Object(members) = outer {
                        members.insert(inner.to_owned(), said);
                    }
                }
                None => {
                    whole.insert(path, said);
                }
            }
        }
        for (list, name) in self.lists.into_iter().zip(LISTS) {
            let rules = list.into_iter().map(|rule| Value::Object(rule.said)).collect();
            whole.insert(name.to_owned(), Value::Array(rules));
        }
        serde_json::from_value(Value::Object(whole)).map_err(failed)
    }

    /// Every part with its path.
    pub(super) fn all(&self) -> impl Iterator<Item = (String, &Value)> {
        let plain = self.plain.iter().map(|(path, said)| (path.clone(), said));
        let rules = self.lists.iter().flatten().flat_map(|rule| {
            rule.said.iter().map(|(key, said)| (format!("{}/{key}", rule.path), said))
        });
        plain.chain(rules)
    }

    /// What the import remembers of these parts. What a rule is about is its path already.
    pub(super) fn remember(&self, operation: &str) -> Imported {
        let digests = self.all().filter(|(path, _)| !path.ends_with("/source_field_name"));
        let digests = digests.map(|(path, said)| (path, digest(said))).collect();
        Imported { operation: operation.to_owned(), digests }
    }
}

/// The digest of a part. Members of objects are in order, so alike is alike.
pub(super) fn digest(said: &Value) -> String {
    let mut hash = hexadecimal(&said.to_string());
    hash.truncate(DIGEST_DIGITS);
    hash
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> Tool {
        serde_json::from_value(json!({
            "tenant": "t", "toolset": "s", "name": "n", "description": "d", "method": "GET",
            "path": "/a", "weight": 3, "annotations": { "read_only_hint": true },
            "fields": [
                { "source_field_name": "a/b~", "location": "query", "required": true },
                { "source_field_name": "x", "location": "body", "default": null },
            ],
            "response_fields": [{ "source_field_name": "r" }],
        }))
        .unwrap()
    }

    #[test]
    fn parts_have_paths_and_make_the_tool_again() {
        let parts = Parts::of(&tool());
        let paths: Vec<String> = parts.all().map(|(path, _)| path).collect();
        for path in [
            "annotations/read_only_hint",
            "description",
            "enabled",
            "fields/query/a~1b~0/required",
            "fields/body/x/default",
            "response_fields/body/r/location",
        ] {
            assert!(paths.iter().any(|other| other == path), "{path} in {paths:?}");
        }
        assert!(!paths.iter().any(|path| path.starts_with("weight") || path == "name"));
        assert_eq!(parts.clone().into_tool(&tool()).unwrap(), tool());
        let digests = parts.remember("GET /a").digests;
        assert!(!digests.keys().any(|path| path.contains("source_field_name")));
        assert_eq!(digests["description"], digest(&json!("d")));
    }
}
