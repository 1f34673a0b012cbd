//! The schema that clients are shown of arguments with which something is otherwise.

use super::FieldRule;
use crate::json::{self, Kind, OwnedRaw, Raw, write_string};

/// Words at the root of a schema that speak of arguments by their names or their number. They would
/// say something wrong where names differ, and what is sent is held to them all the same.
const OF_NAMES: [&str; 19] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "propertyNames",
    "unevaluatedProperties",
    "minProperties",
    "maxProperties",
    "default",
    "examples",
    "example",
];

/// What clients call an argument; `None` where they do not have it.
pub(super) fn exposed_name(rule: &FieldRule) -> Option<&str> {
    if rule.hidden || rule.constant.is_some() {
        return None;
    }
    Some(rule.exposed_field_name.as_deref().unwrap_or(&rule.source_field_name))
}

/// The schema with what the rules say; `None` where they say nothing.
///
/// # Errors
/// Why that cannot be done.
pub(super) fn changed(
    schema: Raw<'_>,
    rules: &[FieldRule],
    notes: &mut Vec<String>,
) -> Result<Option<OwnedRaw>, String> {
    if rules.is_empty() {
        return Ok(None);
    }
    let properties = schema.get("properties").unwrap_or(Raw::EMPTY_OBJECT);
    let required = schema.get("required");
    check_names(properties, rules)?;
    for rule in rules {
        let name = &rule.source_field_name;
        if properties.get(name).is_none() && rule.constant.is_none() {
            notes.push(format!("fields: the server's tool has no argument `{name}`"));
        }
        if rule.hidden && is_in(required, name) {
            notes.push(format!(
                "fields: `{name}` is hidden, but the server requires it: no call can pass; give it \
                 a `constant`"
            ));
        }
    }
    let is_renamed =
        rules.iter().any(|rule| exposed_name(rule) != Some(rule.source_field_name.as_str()));
    let mut out = vec![b'{'];
    for (word, value) in schema.entries() {
        match &*word {
            "properties" => {
                name_next(&mut out, &word);
                write_properties(&mut out, value, rules);
            }
            "required" => {
                name_next(&mut out, &word);
                write_required(&mut out, value, rules);
            }
            word if is_renamed && OF_NAMES.contains(&word) => {}
            word => {
                name_next(&mut out, word);
                out.extend_from_slice(value.text().as_bytes());
            }
        }
    }
    out.push(b'}');
    OwnedRaw::parse(&out).map(Some).map_err(|error| error.to_string())
}

/// No two arguments may have one name.
fn check_names(properties: Raw<'_>, rules: &[FieldRule]) -> Result<(), String> {
    for rule in rules {
        let Some(name) = exposed_name(rule).filter(|name| *name != rule.source_field_name) else {
            continue;
        };
        let other = rules.iter().find(|other| other.source_field_name == name);
        let is_free = match other {
            Some(other) => exposed_name(other) != Some(name),
            None => properties.get(name).is_none(),
        };
        if !is_free {
            return Err(format!(
                "fields: `{}` cannot be exposed as `{name}`: another argument is called that",
                rule.source_field_name
            ));
        }
    }
    Ok(())
}

fn rule_of<'a>(rules: &'a [FieldRule], name: &str) -> Option<&'a FieldRule> {
    rules.iter().find(|rule| rule.source_field_name == name)
}

fn name_next(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), Some(b'{')) {
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
}

fn write_properties(out: &mut Vec<u8>, properties: Raw<'_>, rules: &[FieldRule]) {
    let mut own = vec![b'{'];
    for (name, schema) in properties.entries() {
        match rule_of(rules, &name) {
            None => {
                name_next(&mut own, &name);
                own.extend_from_slice(schema.text().as_bytes());
            }
            Some(rule) => {
                let Some(exposed) = exposed_name(rule) else { continue };
                name_next(&mut own, exposed);
                write_argument(&mut own, schema, rule);
            }
        }
    }
    own.push(b'}');
    out.extend_from_slice(&own);
}

/// The schema of an argument with the texts of its rule.
fn write_argument(out: &mut Vec<u8>, schema: Raw<'_>, rule: &FieldRule) {
    let says_nothing = rule.description.is_none() && rule.default.is_none();
    // `false` takes nothing, whatever is said of it.
    if says_nothing || (schema.kind() != Kind::Object && schema.text() != "true") {
        return out.extend_from_slice(schema.text().as_bytes());
    }
    let mut own = vec![b'{'];
    for (word, value) in schema.entries() {
        let is_replaced = match &*word {
            "description" => rule.description.is_some(),
            "default" => rule.default.is_some(),
            _ => false,
        };
        if !is_replaced {
            name_next(&mut own, &word);
            own.extend_from_slice(value.text().as_bytes());
        }
    }
    if let Some(description) = &rule.description {
        name_next(&mut own, "description");
        write_string(&mut own, description);
    }
    if let Some(default) = &rule.default {
        name_next(&mut own, "default");
        json::write_value(&mut own, default);
    }
    own.push(b'}');
    out.extend_from_slice(&own);
}

fn is_in(required: Option<Raw<'_>>, name: &str) -> bool {
    let mut names = required.into_iter().flat_map(Raw::items);
    names.any(|one| one.as_str().is_some_and(|one| one == name))
}

/// What a client has to give: not what is sent without it.
fn write_required(out: &mut Vec<u8>, required: Raw<'_>, rules: &[FieldRule]) {
    let mut names = Vec::new();
    for name in required.items().filter_map(Raw::as_str) {
        match rule_of(rules, &name) {
            None => names.push(name.into_owned()),
            Some(rule) if rule.send_default => {}
            Some(rule) => names.extend(exposed_name(rule).map(str::to_owned)),
        }
    }
    json::write_value(out, &names.into());
}
