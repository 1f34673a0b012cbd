//! `oneOf` and `anyOf`: their branches, told apart by a discriminator where there is one, and folded
//! into one object where a combinator cannot stand.

use serde_json::{Map, Value, json};

use super::clean;
use super::library::Spot;
use super::merge;
use super::rules;
use super::schema::{Converter, Direction, Overflow};
use super::words;
use crate::mapping::Requirement;

/// Most names that a rule in words lists.
const NAMES_TOLD_MAX: usize = 12;
/// Most entries of a discriminator's mapping that are looked at.
const MAPPINGS_MAX: usize = 500;
/// Most values of one of them.
const VALUES_TOLD_MAX: usize = 3;

const EXACTLY_ONE: &str = "Give exactly one of these";
const AT_LEAST_ONE: &str = "Give at least one of these";

impl<'a> Converter<'_, 'a> {
    /// Reads the branches of `oneOf` or `anyOf` into `out`.
    pub(super) fn union(
        &mut self,
        spot: Spot<'a>,
        words: &'a Map<String, Value>,
        word: &str,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Overflow> {
        let Some(Value::Array(listed)) = words.get(word) else { return Ok(()) };
        let losses = self.losses;
        let mut branches: Vec<Value> = Vec::new();
        for branch in listed {
            let branch = self.below(spot, branch);
            // The branch of an answer is folded, so its names can be replaced.
            let is_fixed = self.direction == Direction::Input && listed.len() > 1;
            let mut schema = self.schema(branch, depth + 1, is_fixed)?;
            self.discriminate(words, branch, &mut schema);
            if !branches.contains(&schema) {
                branches.push(schema);
            }
        }
        let is_null = |schema: &Value| *schema == json!({ "type": "null" });
        let takes_null = branches.len() > 1 && branches.iter().any(is_null);
        if takes_null {
            branches.retain(|schema| !is_null(schema));
        }
        let takes_all = |schema: &Value| match schema {
            Value::Object(words) => words.keys().all(|word| word == "description"),
            other => *other == Value::Bool(true),
        };
        if branches.iter().any(takes_all) {
            self.losses += 1;
            return Ok(());
        }
        match branches.len() {
            0 => return Ok(()),
            1 => {
                if let Some(Value::Object(only)) = branches.pop()
                    && let Some(conflict) = merge::into(out, only)
                {
                    self.lose(conflict);
                }
            }
            _ if self.direction == Direction::Output => fold_shown(out, branches),
            _ => {
                // A branch that takes more than it should may match beside another one.
                let is_exact = self.losses == losses;
                let word = if is_exact { word } else { "anyOf" };
                let union = Map::from_iter([(word.to_owned(), Value::Array(branches))]);
                if let Some(conflict) = merge::into(out, union) {
                    self.lose(conflict);
                }
            }
        }
        if takes_null {
            words::imply_type(out);
            words::add_null(out);
        }
        Ok(())
    }

    /// Says in a branch which values of the discriminating property are its own.
    fn discriminate(
        &mut self,
        words: &'a Map<String, Value>,
        branch: Spot<'a>,
        schema: &mut Value,
    ) {
        let discriminator = words.get("discriminator");
        let property = discriminator.and_then(|words| words.get("propertyName")?.as_str());
        let (Some(property), Some(reference)) = (property, branch.reference()) else { return };
        if self.direction == Direction::Output || !words::is_key(property) {
            return;
        }
        let schema_name = reference.rsplit('/').next().unwrap_or(reference);
        let mapping = discriminator.and_then(|words| words.get("mapping")?.as_object());
        let is_own =
            |target: &Value| target.as_str().is_some_and(|to| to == reference || to == schema_name);
        let mut names: Vec<Value> = mapping
            .into_iter()
            .flatten()
            .take(MAPPINGS_MAX)
            .filter(|(_, target)| is_own(target))
            .map(|(name, _)| json!(name))
            .collect();
        if names.is_empty() {
            names.push(json!(schema_name));
        }
        let Some(Value::Object(members)) = schema.get_mut("properties") else { return };
        let Some(Value::Object(member)) = members.get_mut(property) else { return };
        let is_text = member.get("type").is_none_or(|word| word == "string");
        if !is_text || member.contains_key("const") {
            return;
        }
        if let Some(Value::Array(allowed)) = member.get("enum") {
            names.retain(|name| allowed.contains(name));
        }
        match names.as_slice() {
            [] => {}
            [only] => {
                member.remove("enum");
                member.insert("const".to_owned(), only.clone());
            }
            _ => drop(member.insert("enum".to_owned(), Value::Array(names))),
        }
    }
}

/// The branches of an answer as one description of what may be there.
fn fold_shown(out: &mut Map<String, Value>, branches: Vec<Value>) {
    let mut types: Vec<&'static str> = Vec::new();
    let mut is_typed = true;
    for branch in branches {
        let Value::Object(mut branch) = branch else { continue };
        let (own, _) = words::types(&branch);
        is_typed &= !own.is_empty();
        for word in own {
            if !types.contains(&word) {
                types.push(word);
            }
        }
        branch.remove("type");
        for word in ["properties", "items"] {
            let Some(value) = branch.remove(word) else { continue };
            match (out.get_mut(word), value) {
                (Some(Value::Object(known)), Value::Object(more)) if word == "properties" => {
                    for (name, schema) in more {
                        known.entry(name).or_insert(schema);
                    }
                }
                (Some(_), _) => {}
                (None, value) => drop(out.insert(word.to_owned(), value)),
            }
        }
    }
    if !out.contains_key("type") && is_typed {
        words::set_types(out, types);
    }
}

/// One object in place of a union of objects, and the rule that it cannot say itself.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) schema: Map<String, Value>,
    pub(super) rule: String,
    /// As far as it is about what has to be there.
    pub(super) requires: Vec<Requirement>,
}

/// Folds the unions at the root of a schema. `None` where a branch is no object: then there is no
/// object that stands for all.
pub(super) fn fold(mut schema: Map<String, Value>) -> Option<Folded> {
    let (mut rules, mut requires) = (Vec::new(), Vec::new());
    let mut alternatives = Vec::new();
    for (word, opening) in [("oneOf", EXACTLY_ONE), ("anyOf", AT_LEAST_ONE)] {
        if let Some(Value::Array(branches)) = schema.remove(word) {
            alternatives.push((branches, opening));
        }
    }
    for part in
        schema.remove("allOf").and_then(|parts| parts.as_array().cloned()).unwrap_or_default()
    {
        let Value::Object(mut part) = part else { return None };
        let (word, opening) = match part.keys().next().map(String::as_str) {
            Some("oneOf") => ("oneOf", EXACTLY_ONE),
            Some("anyOf") => ("anyOf", AT_LEAST_ONE),
            _ => return None,
        };
        let Some(Value::Array(branches)) = part.remove(word) else { return None };
        if !part.is_empty() {
            return None;
        }
        alternatives.push((branches, opening));
    }
    let base_required = names(&schema);
    for (branches, opening) in alternatives {
        let is_exclusive = opening == EXACTLY_ONE;
        let branches: Vec<Map<String, Value>> = branches
            .into_iter()
            .filter(|branch| *branch != json!({ "type": "null" }))
            .map(as_object)
            .collect::<Option<_>>()?;
        let told: Vec<String> =
            branches.iter().map(|branch| told(branch, &base_required)).collect();
        rules.push(format!("{opening}: {}.", told.join("; or ")));
        requires.extend(requirement(&branches, &base_required, is_exclusive));
        take_in(&mut schema, branches);
    }
    schema.insert("type".to_owned(), json!("object"));
    Some(Folded { schema, rule: rules.join(" "), requires })
}

/// A branch that is one object, its own unions folded.
fn as_object(branch: Value) -> Option<Map<String, Value>> {
    let Value::Object(branch) = branch else { return None };
    let (types, _) = words::types(&branch);
    let is_object = types.iter().all(|word| matches!(*word, "object" | "null"));
    let is_plain = !["not", "if", "enum", "const"].iter().any(|word| branch.contains_key(*word));
    if !is_object || !is_plain {
        return None;
    }
    let has_union = ["oneOf", "anyOf", "allOf"].iter().any(|word| branch.contains_key(*word));
    // Branches stand in lists inside of lists: their depth is that of the schema, which is bounded.
    if has_union { fold(branch).map(|folded| folded.schema) } else { Some(branch) }
}

fn names(schema: &Map<String, Value>) -> Vec<String> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Which members have to be there so that one of the branches can fit. A branch fits no value that
/// lacks what it demands, whatever else it says; only one that says nothing else fits every value that
/// has it, so only of such ones can there be too many.
fn requirement(
    branches: &[Map<String, Value>],
    base_required: &[String],
    is_exclusive: bool,
) -> Option<Requirement> {
    // What all demand is required as it is.
    let in_all = |name: &String| branches.iter().all(|branch| names(branch).contains(name));
    let mut choices: Vec<Vec<String>> = Vec::new();
    let mut is_plain = true;
    for branch in branches {
        let is_silent =
            |word: &String| matches!(word.as_str(), "type" | "required" | "title" | "description");
        is_plain &= branch.keys().all(is_silent);
        let is_own = |name: &String| !base_required.contains(name) && !in_all(name);
        let own = names(branch).into_iter().filter(is_own);
        let choice: Vec<String> = own.map(|name| rules::source_of(&name)).collect();
        if !choices.contains(&choice) {
            choices.push(choice);
        }
    }
    let has_choice = choices.len() > 1 && choices.iter().all(|choice| !choice.is_empty());
    let is_one_of = is_exclusive && is_plain && choices.len() == branches.len();
    has_choice.then_some(if is_one_of {
        Requirement::OneOf(choices)
    } else {
        Requirement::AnyOf(choices)
    })
}

/// A branch in words: what it demands, and what else it has.
fn told(branch: &Map<String, Value>, base_required: &[String]) -> String {
    let members = branch.get("properties").and_then(Value::as_object);
    let constant = |name: &str| {
        let values = listed(members?.get(name)?)?;
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        (values.len() <= VALUES_TOLD_MAX).then(|| clean::line(&values.join(" or "), 80))
    };
    let shown = |name: &str| match constant(name) {
        Some(values) => format!("{} = {values}", clean::quoted(name)),
        None => clean::quoted(name),
    };
    let required = names(branch);
    let mut first: Vec<String> = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for name in required.iter().filter(|name| !base_required.contains(name)) {
        first.push(shown(name));
    }
    for name in members.into_iter().flat_map(Map::keys).filter(|name| !required.contains(name)) {
        if constant(name).is_some() { first.push(shown(name)) } else { others.push(shown(name)) }
    }
    first.truncate(NAMES_TOLD_MAX);
    others.truncate(NAMES_TOLD_MAX);
    match (first.is_empty(), others.is_empty()) {
        (true, true) => "nothing more".to_owned(),
        (false, true) => first.join(", "),
        (true, false) => format!("any of {}", others.join(", ")),
        (false, false) => format!("{} (and any of {})", first.join(", "), others.join(", ")),
    }
}

/// Adds what the branches have to the object: members of any, demands of all.
fn take_in(schema: &mut Map<String, Value>, branches: Vec<Map<String, Value>>) {
    let mut required: Option<Vec<String>> = None;
    let mut members = Map::new();
    let mut is_closed = !branches.is_empty();
    for mut branch in branches {
        let own = names(&branch);
        required = Some(match required {
            None => own,
            Some(all) => all.into_iter().filter(|name| own.contains(name)).collect(),
        });
        is_closed &= branch.get("additionalProperties") == Some(&Value::Bool(false));
        let Some(Value::Object(own)) = branch.remove("properties") else { continue };
        for (name, member) in own {
            match members.remove(&name) {
                None => drop(members.insert(name, member)),
                Some(known) => drop(members.insert(name, either(known, member))),
            }
        }
    }
    if let Value::Object(known) = schema.entry("properties").or_insert_with(|| json!({})) {
        for (name, member) in members {
            known.entry(name).or_insert(member);
        }
    }
    if let Value::Array(known) = schema.entry("required").or_insert_with(|| json!([])) {
        for name in required.unwrap_or_default() {
            let name = Value::String(name);
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }
    if is_closed {
        schema.entry("additionalProperties").or_insert(Value::Bool(false));
    }
}

/// A schema that takes what either takes.
fn either(left: Value, right: Value) -> Value {
    if left == right {
        return left;
    }
    if let (Some(mut values), Some(more)) = (listed(&left), listed(&right)) {
        for value in more {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let mut out = Map::new();
        if let (Some(own), Some(other)) = (left.get("type"), right.get("type"))
            && own == other
        {
            out.insert("type".to_owned(), own.clone());
        }
        if let Some(description) = left.get("description").or_else(|| right.get("description")) {
            out.insert("description".to_owned(), description.clone());
        }
        out.insert("enum".to_owned(), Value::Array(values));
        return Value::Object(out);
    }
    let mut branches = match left {
        Value::Object(mut words) if words.len() == 1 && words.contains_key("anyOf") => {
            match words.remove("anyOf") {
                Some(Value::Array(branches)) => branches,
                _ => Vec::new(),
            }
        }
        other => vec![other],
    };
    if !branches.contains(&right) {
        branches.push(right);
    }
    json!({ "anyOf": branches })
}

/// The values of a schema that only lists them.
fn listed(schema: &Value) -> Option<Vec<Value>> {
    let words = schema.as_object()?;
    let known = ["type", "description", "enum", "const"];
    if !words.keys().all(|word| known.contains(&word.as_str())) {
        return None;
    }
    match (words.get("const"), words.get("enum")) {
        (Some(value), None) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}
