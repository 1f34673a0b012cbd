//! What an operator wrote that has no effect: patterns no tool fits, paths no field is at, toolsets
//! nobody has.
//!
//! None of it is wrong, so a catalog with remarks is a good one. But who hides a field or denies a
//! tool and misspells it must hear of it. A remark is only made of what is certain: where an answer
//! may hold anything, a path may lead somewhere.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::toolset::CompiledToolset;
use super::{
    Assignment, ClientApplication, Definition, DefinitionKind, Entities, Entity, Entry,
    PROBLEMS_MAX, Policy, Problem, TenantId, Tool, ToolListing, ToolPattern, Toolset, ToolsetId,
    ToolsetKind, View, ViewTool, names,
};
use crate::mapping::{self, FieldPath, FieldRule, Segment};

/// Finds the tools that are compiled from an entity's.
pub(super) trait Compiled {
    /// What a client application sees.
    fn view(&self, tenant: &str, client_application: &str) -> Option<&View>;

    /// A toolset of a tenant.
    fn toolset(&self, tenant: &TenantId, id: &ToolsetId) -> Option<&CompiledToolset>;
}

/// Everything that has no effect, in the order of files and lines.
pub(super) fn remarks(entities: &Entities, compiled: &impl Compiled) -> Vec<Problem> {
    let mut remarks = Remarks(Vec::new());
    for entry in &entities.client_applications {
        let client = &entry.value;
        if let Some(view) = compiled.view(client.tenant.as_str(), client.id.as_str()) {
            remarks.client_application(entry, view);
        }
    }
    for entry in entities.assignments.iter().filter(|entry| entry.value.enabled) {
        let (tenant, client) = (&entry.value.tenant, &entry.value.client_application);
        if let Some(view) = compiled.view(tenant.as_str(), client.as_str()) {
            remarks.assignment(entry, view);
        }
    }
    unassigned(entities, &mut remarks);
    for entry in entities.tools.iter().filter(|entry| !entry.value.redact.is_empty()) {
        let toolset = compiled.toolset(&entry.value.tenant, &entry.value.toolset);
        let tool = toolset.and_then(|toolset| toolset.tool(&entry.value.name));
        for path in tool.map(|tool| &tool.lost_paths).into_iter().flatten() {
            let shown = names::shortened(path);
            let text = format!(
                "redact: nothing is at {shown:?}, by the names that clients are shown: nothing is \
                 kept out of the audit by it"
            );
            remarks.add(entry, text);
        }
    }
    upstreams(entities, compiled, &mut remarks);
    let Remarks(mut remarks) = remarks;
    remarks.sort();
    remarks.dedup();
    remarks.truncate(PROBLEMS_MAX);
    remarks
}

/// Toolsets that nobody has.
fn unassigned(entities: &Entities, remarks: &mut Remarks) {
    let assignments = entities.assignments.iter().map(|entry| &*entry.value);
    let assigned: HashSet<(&TenantId, &ToolsetId)> = assignments
        .filter(|assignment| assignment.enabled)
        .map(|assignment| (&assignment.tenant, &assignment.toolset))
        .collect();
    for entry in &entities.toolsets {
        if !assigned.contains(&(&entry.value.tenant, &entry.value.id)) {
            let text = "no client application has it: its tools reach clients once an \
                        [[assignment]] gives it to one";
            remarks.add(entry, text);
        }
    }
}

/// What of upstream servers is not offered as it might be expected, and overrides of what they do
/// not offer: they may again.
fn upstreams(entities: &Entities, compiled: &impl Compiled, remarks: &mut Remarks) {
    let mut toolsets: HashMap<(&TenantId, &ToolsetId), &CompiledToolset> = HashMap::new();
    for entry in entities.toolsets.iter().filter(|one| one.value.kind == ToolsetKind::Mcp) {
        let Toolset { tenant, id, .. } = &*entry.value;
        let Some(toolset) = compiled.toolset(tenant, id) else { continue };
        toolsets.insert((tenant, id), toolset);
        for note in toolset.upstream.iter().flat_map(|upstream| &upstream.notes) {
            remarks.add(entry, note.to_string());
        }
        for tool in &toolset.tools {
            for note in &tool.notes {
                remarks.add(entry, format!("the tool {:?}: {note}", tool.source_name));
            }
        }
    }
    if toolsets.is_empty() {
        return;
    }
    for entry in &entities.tools {
        let Tool { tenant, toolset, name, .. } = &*entry.value;
        let Some(toolset) = toolsets.get(&(tenant, toolset)) else { continue };
        let mut offered =
            toolset.upstream.iter().flat_map(|upstream| &upstream.offered.server.definitions.all);
        let is_it =
            |one: &Arc<Definition>| one.kind == DefinitionKind::Tool && *one.name == *name.as_str();
        if !offered.any(is_it) {
            remarks.add(entry, "the server offers no such tool, or it is not accepted".to_owned());
        }
    }
}

struct Remarks(Vec<Problem>);

impl Remarks {
    fn client_application(&mut self, entry: &Entry<ClientApplication>, view: &View) {
        let client = &entry.value;
        for note in &view.prompts.offers.notes {
            self.add(entry, note.clone());
        }
        self.policy(entry, &client.policy, || view.assigned(), "that is assigned to it");
        for pattern in &client.favourites {
            let shown = names::shortened(pattern.as_str());
            if client.tool_listing == ToolListing::List {
                let text = format!("favourites: `{shown}`: only `tool_listing = \"search\"` asks");
                self.add(entry, text);
            } else if !fits(pattern, view.tools().iter().map(AsRef::as_ref)) {
                self.add(entry, format!("favourites: `{shown}` fits no tool that it is shown"));
            }
        }
    }

    fn assignment(&mut self, entry: &Entry<Assignment>, view: &View) {
        let assignment = &entry.value;
        let tools = || view.assigned().filter(|tool| tool.toolset == assignment.toolset);
        self.policy(entry, &assignment.policy, tools, "of the toolset");
    }

    fn policy<'a, T: Entity, I: Iterator<Item = &'a Arc<ViewTool>>>(
        &mut self,
        entry: &Entry<T>,
        policy: &Policy,
        tools: impl Fn() -> I,
        whose: &str,
    ) {
        for (place, rule) in policy.rules.iter().enumerate() {
            for pattern in &rule.tools {
                if !fits(pattern, tools().map(AsRef::as_ref)) {
                    let shown = names::shortened(pattern.as_str());
                    let text =
                        format!("policy.rules[{place}].tools: `{shown}` fits no tool {whose}");
                    self.add(entry, text);
                }
            }
        }
    }

    fn add<T: Entity>(&mut self, entry: &Entry<T>, text: impl std::fmt::Display) {
        let name = entry.value.name();
        self.0.push(Problem::new(&entry.origin, format!("{name}: {text}")));
    }
}

/// The paths of a tool's `redact` at which nothing can be, given the schemas of its arguments and of
/// what its rules say of answers.
pub(super) fn lost_paths(tool: &Tool, input: &Value, output: Option<&Value>) -> Box<[Box<str>]> {
    // What is known of answers; nothing where they may hold what no rule names.
    let may_be_anything = tool.pass_unmapped || tool.response_fields.iter().any(is_open);
    let output = output.filter(|_| !may_be_anything);
    let is_lost = |text: &&String| {
        let Ok(path) = FieldPath::parse(text) else { return false };
        let is_in = |schema: &Value, absent| may_hold(schema, path.segments(), absent);
        // An answer that is no object is kept as it is, not as clients are shown it.
        let is_in_answers = |output: &Value| {
            let inner = output.pointer("/properties/result");
            is_in(output, Absent::Closed) || inner.is_some_and(|inner| is_in(inner, Absent::Closed))
        };
        !is_in(input, Absent::Open) && output.is_some_and(|output| !is_in_answers(output))
    };
    tool.redact.iter().filter(is_lost).map(|text| text.as_str().into()).collect()
}

fn fits<'a>(pattern: &ToolPattern, mut tools: impl Iterator<Item = &'a ViewTool>) -> bool {
    tools.any(|tool| pattern.matches(tool.toolset.as_str(), tool.source_name.as_str()))
}

/// Whether an answer may hold more below a rule than rules name.
fn is_open(rule: &FieldRule) -> bool {
    rule.schema.is_some()
        || rule.additional_properties.as_ref().is_some_and(|other| *other != Value::Bool(false))
}

/// What a schema says of members by saying nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// There may be any, as JSON Schema has it.
    Open,
    /// There are none beside those that are named.
    Closed,
}

/// Keywords that say more than is looked at here.
const DEEPER: [&str; 9] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "patternProperties",
    "prefixItems",
    "dependentSchemas",
];

/// Whether what is at a path may be in a document of this schema. As deep as the path, which is
/// bounded, and the arrays of the schema, which are too.
fn may_hold(schema: &Value, path: &[Segment], absent: Absent) -> bool {
    let path = mapping::below_arrays(path);
    let Some(words) = schema.as_object() else { return *schema != Value::Bool(false) };
    if path.is_empty() || DEEPER.iter().any(|word| words.contains_key(*word)) {
        return true;
    }
    let is_said = |kind: &str| match words.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => true,
    };
    // A text may be an object's, and goes as a whole.
    if is_said("string") && words.contains_key("type") {
        return true;
    }
    let named = words.get("properties").and_then(Value::as_object);
    let items = words.get("items");
    let in_items =
        is_said("array") && items.map_or(named.is_none(), |items| may_hold(items, path, absent));
    in_items || (is_said("object") && may_have_member(words, named, path, absent))
}

fn may_have_member(
    words: &serde_json::Map<String, Value>,
    named: Option<&serde_json::Map<String, Value>>,
    path: &[Segment],
    absent: Absent,
) -> bool {
    let is_named = named.into_iter().flatten().any(|(name, schema)| {
        mapping::in_member(path, name).is_some_and(|rest| may_hold(schema, rest, absent))
    });
    let is_open = match (words.get("additionalProperties"), absent) {
        (Some(more), _) => *more != Value::Bool(false),
        (None, Absent::Open) => true,
        (None, Absent::Closed) => named.is_none() && !words.contains_key("items"),
    };
    is_named || is_open
}

#[cfg(test)]
#[path = "remarks_tests.rs"]
mod tests;
