//! What becomes of a tool that is there when its operation is imported again.
//!
//! Three versions meet: what the last import made (known by its digests), what is there, and what
//! the description says now. A part that is as the import made it follows the description; a part
//! the operator touched stays his, and where the description changed it too, that is told.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::parts::{ENABLED, Parts, Rule, digest};
use crate::catalog::{Imported, Tool};

/// A part that both the operator and the description changed; it stays the operator's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conflict {
    /// Its path: `fields/query/limit/required`.
    pub part: String,
    /// What stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Value>,
    /// What the description says; `None` where it no longer has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub described: Option<Value>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) tool: Tool,
    pub(super) conflicts: Vec<Conflict>,
}

/// Merges `described` into `current`. `publish` is the operator's consent to publish it.
///
/// # Errors
/// What cannot be put together to a tool.
pub(super) fn merge(current: &Tool, described: &Tool, publish: bool) -> Result<Merged, String> {
    let none = BTreeMap::new();
    let remembered = current.imported.as_ref();
    let mut merging =
        Merging { base: remembered.map_or(&none, |imported| &imported.digests), conflicts: vec![] };
    let (ours, theirs) = (Parts::of(current), Parts::of(described));
    let operation = described.imported.as_ref().map_or("", |imported| &imported.operation);
    let mut imported: Imported = theirs.remember(operation);
    let (mut plain, old_plain) = (theirs.plain, ours.plain);
    let mut lists = theirs.lists;
    let enabled = old_plain.get(ENABLED).cloned();
    let is_untouched = merging.is_untouched(ENABLED, enabled.as_ref());
    plain.remove(ENABLED);
    let mut merged = Parts {
        plain: merging.members("", &without(old_plain, ENABLED), &plain).into_iter().collect(),
        lists: Default::default(),
    };
    for ((into, old), new) in merged.lists.iter_mut().zip(ours.lists).zip(&mut lists) {
        *into = merging.rules(old, std::mem::take(new));
    }
    let is_published = if publish && is_untouched { Some(Value::Bool(true)) } else { enabled };
    let remembered = if is_untouched {
        is_published.as_ref().map(digest)
    } else {
        merging.base.get(ENABLED).cloned()
    };
    match remembered {
        Some(digest) => imported.digests.insert(ENABLED.to_owned(), digest),
        None => imported.digests.remove(ENABLED),
    };
    if let Some(is_published) = is_published {
        merged.plain.insert(ENABLED.to_owned(), is_published);
    }
    let mut tool = merged.into_tool(current)?;
    tool.imported = Some(imported);
    Ok(Merged { tool, conflicts: merging.conflicts })
}

fn without(parts: BTreeMap<String, Value>, path: &str) -> BTreeMap<String, Value> {
    parts.into_iter().filter(|(key, _)| key != path).collect()
}

struct Merging<'a> {
    /// Digests of the parts as the last import made them.
    base: &'a BTreeMap<String, String>,
    conflicts: Vec<Conflict>,
}

impl Merging<'_> {
    /// Whether a part is as the last import made it, absence included.
    fn is_untouched(&self, path: &str, current: Option<&Value>) -> bool {
        self.base.get(path) == current.map(digest).as_ref()
    }

    fn conflict(&mut self, part: &str, kept: Option<&Value>, described: Option<&Value>) {
        let (part, kept, described) = (part.to_owned(), kept.cloned(), described.cloned());
        self.conflicts.push(Conflict { part, kept, described });
    }

    fn part<'a>(
        &mut self,
        path: &str,
        ours: Option<&'a Value>,
        theirs: Option<&'a Value>,
    ) -> Option<&'a Value> {
        if self.is_untouched(path, ours) {
            return theirs;
        }
        if ours != theirs && !self.is_untouched(path, theirs) {
            self.conflict(path, ours, theirs);
        }
        ours
    }

    fn members<'a>(
        &mut self,
        prefix: &str,
        ours: impl IntoIterator<Item = (&'a String, &'a Value)>,
        theirs: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Map<String, Value> {
        let ours: BTreeMap<&String, &Value> = ours.into_iter().collect();
        let theirs: BTreeMap<&String, &Value> = theirs.into_iter().collect();
        let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).copied().collect();
        let mut merged = Map::new();
        for key in keys {
            let path = format!("{prefix}{key}");
            let said = self.part(&path, ours.get(key).copied(), theirs.get(key).copied());
            if let Some(said) = said {
                merged.insert(key.clone(), said.clone());
            }
        }
        merged
    }

    /// The rules that are there keep their order, and new ones follow in that of the description.
    fn rules(&mut self, ours: Vec<Rule>, theirs: Vec<Rule>) -> Vec<Rule> {
        let mut described: BTreeMap<&str, &Rule> =
            theirs.iter().map(|rule| (rule.path.as_str(), rule)).collect();
        let mut merged = Vec::with_capacity(theirs.len());
        for rule in ours {
            match described.remove(rule.path.as_str()) {
                Some(theirs) => merged.push(self.rule(rule, theirs)),
                None if !self.knows(&rule.path) => merged.push(rule),
                None if self.is_rule_untouched(&rule) => {}
                None => {
                    self.conflict(&rule.path, Some(&Value::Object(rule.said.clone())), None);
                    merged.push(rule);
                }
            }
        }
        for rule in theirs.iter().filter(|rule| described.contains_key(rule.path.as_str())) {
            if !self.knows(&rule.path) {
                merged.push(rule.clone());
            } else if !self.is_rule_untouched(rule) {
                // The operator took it out.
                self.conflict(&rule.path, None, Some(&Value::Object(rule.said.clone())));
            }
        }
        merged
    }

    fn rule(&mut self, ours: Rule, theirs: &Rule) -> Rule {
        if !self.knows(&ours.path) {
            // The operator knew of it first.
            if ours.said != theirs.said {
                let (kept, described) =
                    (Value::Object(ours.said), Value::Object(theirs.said.clone()));
                self.conflict(&ours.path, Some(&kept), Some(&described));
                let Value::Object(said) = kept else { return theirs.clone() };
                return Rule { path: ours.path, said };
            }
            return ours;
        }
        let source = "source_field_name".to_owned();
        let named = |said: &Map<String, Value>| -> Map<String, Value> {
            said.iter()
                .filter(|(key, _)| **key != source)
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        };
        let prefix = format!("{}/", ours.path);
        let mut said = self.members(&prefix, &named(&ours.said), &named(&theirs.said));
        if let Some(name) = ours.said.get(&source) {
            said.insert(source, name.clone());
        }
        Rule { path: ours.path, said }
    }

    /// Whether the last import made this rule.
    fn knows(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        let next = self.base.range(prefix.clone()..).next();
        next.is_some_and(|(other, _)| other.starts_with(&prefix))
    }

    fn is_rule_untouched(&self, rule: &Rule) -> bool {
        let prefix = format!("{}/", rule.path);
        let made = self.base.range(prefix.clone()..);
        let made = made.take_while(|(path, _)| path.starts_with(&prefix)).count();
        let said = rule.said.iter().filter(|(key, _)| *key != "source_field_name");
        let alike = |(key, said): (&String, &Value)| {
            self.base.get(&format!("{prefix}{key}")) == Some(&digest(said))
        };
        said.clone().count() == made && said.clone().all(alike)
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
