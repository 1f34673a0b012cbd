//! What an import does to the catalog.
//!
//! Invariants:
//! - nothing reaches a client without consent: new tools are not published, and a published tool
//!   changes only with `publish`; what breaks who calls it needs `accept_breaking` besides;
//! - what the operator wrote himself stays: names, texts, rules, hints, whether a tool is published;
//! - everything that is planned was checked as the catalog checks it: one operation that cannot be
//!   a tool is told and left out, and costs no other.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::breaking;
use super::connections::{self, Present, Resolved};
use super::merge::{Merged, merge};
use super::message_types;
use super::names::{Wish, names};
use super::parts::{ENABLED, digest};
use super::report::{Change, Outcome, Report, ReportedOperation};
use super::tools::{cut, repeated, tool_of};
use super::{
    Consent, Description, Operation, OperationTool, PlanError, Selection, Target, Verdict,
};
use crate::catalog::{
    ConnectionId, DESCRIPTION_BYTES_MAX, DiscoveryMode, Entities, Entry, OperationName, Origin,
    TITLE_BYTES_MAX, TenantId, Tool, Toolset, ToolsetKind, Upstream,
};

/// A change of a published tool.
const NEEDS_PUBLISH: &str = "--publish";
/// One that breaks who calls it.
const NEEDS_BOTH: &str = "--publish --accept-breaking";

/// What is to be written, and what that means.
#[derive(Debug)]
pub struct Plan {
    /// To be laid over the catalog. Nothing where nothing changes.
    pub entities: Entities,
    /// For people.
    pub report: Report,
}

/// Plans what `description` does to the catalog `published`.
///
/// # Errors
/// When it cannot become part of it at all.
pub fn plan(
    published: &Entities,
    description: &Description,
    target: &Target,
    selection: &Selection,
    consent: Consent,
) -> Result<Plan, PlanError> {
    if !published.tenants.iter().any(|entry| entry.value.id == target.tenant) {
        return Err(PlanError::NoTenant { tenant: target.tenant.to_string() });
    }
    let mut planning = Planning::new(published, description, target, selection, consent)?;
    planning.operations();
    planning.gone();
    planning.keep_what_is_good()?;
    Ok(planning.finish())
}

/// A tool that is to be written, and where it stands in the report.
struct Draft {
    tool: Tool,
    place: usize,
    is_new: bool,
}

struct Planning<'a> {
    published: &'a Entities,
    description: &'a Description,
    target: &'a Target,
    selection: &'a Selection,
    consent: Consent,
    toolset: Option<&'a Toolset>,
    /// Tools of the toolset by the operations they were imported from.
    present: BTreeMap<&'a str, Vec<&'a Arc<Tool>>>,
    names: BTreeMap<String, OperationName>,
    connections: Vec<Option<Resolved>>,
    types: message_types::Outcome,
    report: Report,
    drafts: Vec<Draft>,
    /// What every change waits for.
    all_wait_for: Option<&'static str>,
}

impl<'a> Planning<'a> {
    fn new(
        published: &'a Entities,
        description: &'a Description,
        target: &'a Target,
        selection: &'a Selection,
        consent: Consent,
    ) -> Result<Self, PlanError> {
        let toolset = published.toolsets.iter().map(|entry| &*entry.value);
        let toolset =
            toolset.into_iter().find(|one| one.tenant == target.tenant && one.id == target.toolset);
        if let Some(other) = toolset.filter(|one| one.kind != description.kind) {
            return Err(PlanError::OtherKind {
                toolset: target.toolset.to_string(),
                kind: word_of(other.kind),
                described: word_of(description.kind),
            });
        }
        let own: Vec<&Arc<Tool>> = published
            .tools
            .iter()
            .map(|entry| &entry.value)
            .filter(|tool| tool.tenant == target.tenant && tool.toolset == target.toolset)
            .collect();
        let mut present: BTreeMap<&str, Vec<&Arc<Tool>>> = BTreeMap::new();
        for tool in own.iter().copied() {
            if let Some(imported) = &tool.imported {
                present.entry(imported.operation.as_str()).or_default().push(tool);
            }
        }
        let kept: BTreeMap<String, OperationName> = present
            .iter()
            .filter_map(|(key, tools)| Some(((*key).to_owned(), tools.first()?.name.clone())))
            .collect();
        let taken: HashSet<String> = own.iter().map(|tool| tool.name.to_string()).collect();
        let wishes: Vec<Wish<'_>> = description
            .operations
            .iter()
            .map(|operation| Wish { key: &operation.key, name: &operation.wished_name })
            .collect();
        let names = names(&wishes, &kept, &taken);
        let used = connections::used(description, selection, &names);
        let there =
            Present { published, toolset, tools: own.iter().map(|tool| &***tool).collect() };
        let connections = connections::resolve(description, &used, target, &there)?;
        let is_published = own.iter().any(|tool| tool.enabled);
        let before = toolset.map(|toolset| &toolset.xml_types);
        let types = message_types::merge(before, &description.xml_types, is_published, consent);
        let mut report = Report {
            title: description.title.clone(),
            tenant: target.tenant.to_string(),
            toolset: target.toolset.to_string(),
            notes: description.notes.clone(),
            ..Report::default()
        };
        report.counts.operations = description.operations.len();
        let moves = is_published && connections.iter().flatten().any(|one| one.moves);
        let all_wait_for = all_wait_for(&types, moves, consent, &mut report.notes);
        Ok(Self {
            published,
            description,
            target,
            selection,
            consent,
            toolset,
            present,
            names,
            connections,
            types,
            report,
            drafts: Vec::new(),
            all_wait_for,
        })
    }

    fn operations(&mut self) {
        let repeated = repeated(&self.description.operations);
        for (place, operation) in self.description.operations.iter().enumerate() {
            let name = self.names.get(&operation.key);
            if !self.selection.wants(operation, name.map(OperationName::as_str)) {
                self.report.counts.not_selected += 1;
                continue;
            }
            let reported = if repeated.contains(&place) {
                vec![ReportedOperation::skipped(&operation.key, "it is described twice")]
            } else {
                self.operation(operation, self.report.operations.len())
            };
            self.report.operations.extend(reported);
        }
    }

    /// What becomes of an operation; `place` is where it will stand in the report.
    fn operation(&mut self, operation: &'a Operation, place: usize) -> Vec<ReportedOperation> {
        let (described, notes) = match &operation.verdict {
            Verdict::Imported(tool) => (tool, [].as_slice()),
            Verdict::Noted(tool, notes) => (tool, notes.as_slice()),
            Verdict::Skipped(reason) => {
                let mut reported = ReportedOperation::skipped(&operation.key, reason.as_str());
                self.note_what_stays(&mut reported);
                return vec![reported];
            }
        };
        let Some(name) = self.names.get(&operation.key).cloned() else {
            return vec![ReportedOperation::skipped(&operation.key, "no name is left for it")];
        };
        let mut notes = notes.to_vec();
        let connection = match self.connection_of(described) {
            Ok(connection) => connection,
            Err(reason) => {
                let mut reported = ReportedOperation::skipped(&operation.key, reason);
                self.note_what_stays(&mut reported);
                return vec![reported];
            }
        };
        let publish = self.consent.publish && self.all_wait_for.is_none();
        let (target, consent) = (self.target, self.consent);
        let tool = tool_of(operation, described, name, connection, target, publish, &mut notes);
        let verdict = if notes.is_empty() { Outcome::Imported } else { Outcome::ImportedWithNotes };
        let blank = ReportedOperation { notes, ..ReportedOperation::new(&operation.key, verdict) };
        let Some(present) = self.present.get(operation.key.as_str()).cloned() else {
            let mut reported = ReportedOperation { change: Some(Change::Added), ..blank };
            reported.tool = Some(tool.name.to_string());
            reported.published = publish;
            reported.waits_for = self.all_wait_for;
            if self.all_wait_for.is_none() {
                self.drafts.push(Draft { tool, place, is_new: true });
            }
            return vec![reported];
        };
        let mut all = Vec::with_capacity(present.len());
        for (further, there) in present.into_iter().enumerate() {
            let mut reported = blank.clone();
            reported.tool = Some(there.name.to_string());
            reported.published = there.enabled;
            match merge(there, &tool, consent.publish) {
                Ok(merged) => self.merged(there, merged, place + further, &mut reported),
                Err(reason) => {
                    reported.verdict = Outcome::Skipped;
                    reported.reason = Some(format!("it cannot be merged: {reason}"));
                }
            }
            all.push(reported);
        }
        all
    }

    fn merged(
        &mut self,
        there: &Tool,
        merged: Merged,
        place: usize,
        reported: &mut ReportedOperation,
    ) {
        reported.parts = breaking::changes(there, &merged.tool);
        reported.conflicts = merged.conflicts;
        reported.breaking = reported.parts.iter().any(|part| !part.breaking.is_empty());
        let is_changed = !reported.parts.is_empty();
        reported.change = Some(if is_changed { Change::Changed } else { Change::Unchanged });
        let own = match (there.enabled && is_changed, reported.breaking) {
            (true, true) if !(self.consent.publish && self.consent.accept_breaking) => {
                Some(NEEDS_BOTH)
            }
            (true, false) if !self.consent.publish => Some(NEEDS_PUBLISH),
            _ => None,
        };
        let waits_for = own.or(self.all_wait_for.filter(|_| is_changed));
        reported.waits_for = waits_for;
        if waits_for.is_none() && merged.tool != *there {
            reported.published = merged.tool.enabled;
            self.drafts.push(Draft { tool: merged.tool, place, is_new: false });
        }
    }

    /// The connection of a tool; `None` where it is the toolset's.
    fn connection_of(&self, described: &OperationTool) -> Result<Option<ConnectionId>, String> {
        let resolved = self.connections.get(described.connection).and_then(Option::as_ref);
        let place = self.description.connections.get(described.connection);
        let resolved = resolved.ok_or_else(|| connections::why_nowhere(place))?;
        let own = self.toolset_connection();
        Ok(Some(resolved.id.clone()).filter(|id| Some(id) != own.as_ref()))
    }

    fn toolset_connection(&self) -> Option<ConnectionId> {
        let own = self.toolset.and_then(|toolset| toolset.connection.clone());
        own.or_else(|| self.connections.iter().flatten().next().map(|first| first.id.clone()))
    }

    /// A tool of an operation that cannot be imported any more is left alone.
    fn note_what_stays(&self, reported: &mut ReportedOperation) {
        if let Some(there) = self.present.get(reported.operation.as_str()).and_then(|t| t.first()) {
            reported.tool = Some(there.name.to_string());
            reported.published = there.enabled;
            reported.notes.push("the tool of an earlier import stays as it is".to_owned());
        }
    }

    /// Tools whose operation the description no longer has.
    fn gone(&mut self) {
        let described: HashSet<&str> =
            self.description.operations.iter().map(|one| one.key.as_str()).collect();
        let gone = self.present.iter().filter(|(key, _)| !described.contains(*key));
        for (key, there) in gone.flat_map(|(key, tools)| tools.iter().map(move |tool| (*key, tool)))
        {
            if !self.selection.wanted(key, there.name.as_str()) {
                continue;
            }
            let mut reported = ReportedOperation::new(key, Outcome::Gone);
            reported.tool = Some(there.name.to_string());
            reported.change = Some(Change::Removed);
            reported.breaking = there.enabled;
            reported.published = there.enabled;
            if there.enabled && self.consent.publish && self.consent.accept_breaking {
                let mut tool = Tool::clone(there);
                tool.enabled = false;
                if let Some(imported) = &mut tool.imported {
                    // Not the operator's doing: were the operation back, he might publish it again.
                    imported.digests.insert(ENABLED.to_owned(), digest(&false.into()));
                }
                reported.published = false;
                let place = self.report.operations.len();
                self.drafts.push(Draft { tool, place, is_new: false });
            } else if there.enabled {
                reported.waits_for = Some(NEEDS_BOTH);
            }
            self.report.operations.push(reported);
        }
    }

    /// Takes out what the catalog would refuse. What remains is good together.
    fn keep_what_is_good(&mut self) -> Result<(), PlanError> {
        loop {
            let problems = self.entities(true).check();
            let mut bad: BTreeMap<usize, String> = BTreeMap::new();
            let mut others = Vec::new();
            for problem in problems {
                match (problem.line() as usize).checked_sub(1) {
                    Some(place) => {
                        bad.entry(place).or_insert(problem.message);
                    }
                    None => others.push(problem.message),
                }
            }
            if bad.is_empty() {
                return if others.is_empty() { Ok(()) } else { Err(PlanError::Problems(others)) };
            }
            let drafts = std::mem::take(&mut self.drafts);
            for (at, draft) in drafts.into_iter().enumerate() {
                let Some(message) = bad.remove(&at) else {
                    self.drafts.push(draft);
                    continue;
                };
                let Some(reported) = self.report.operations.get_mut(draft.place) else { continue };
                let about = format!("tool {}/{}/", draft.tool.tenant, draft.tool.toolset);
                let reason = message.strip_prefix(&about).unwrap_or(&message);
                let skipped = ReportedOperation::skipped(&reported.operation, reason);
                *reported = skipped;
                if draft.is_new {
                    continue;
                }
                let mut reported = reported.clone();
                self.note_what_stays(&mut reported);
                if let Some(place) = self.report.operations.get_mut(draft.place) {
                    *place = reported;
                }
            }
        }
    }

    /// What is to be written; to check it, with what it refers to and the place of each draft for
    /// a line.
    fn entities(&self, to_check: bool) -> Entities {
        let origin = |line: u32| Origin::new(&self.target.origin, line);
        let mut entities = Entities::default();
        let mut connections = BTreeMap::new();
        if to_check {
            let own = |tenant: &TenantId| *tenant == self.target.tenant;
            let tenants = self.published.tenants.iter().filter(|entry| own(&entry.value.id));
            entities.tenants = tenants
                .map(|entry| Entry { value: Arc::clone(&entry.value), origin: origin(0) })
                .collect();
            let named = self.drafts.iter().filter_map(|draft| draft.tool.connection.as_ref());
            let named: HashSet<ConnectionId> =
                named.cloned().chain(self.toolset_connection()).collect();
            for entry in self.published.connections.iter().filter(|e| own(&e.value.tenant)) {
                if named.contains(&entry.value.id) {
                    let entry = Entry { value: Arc::clone(&entry.value), origin: origin(0) };
                    connections.insert(entry.value.id.clone(), entry);
                }
            }
        }
        if self.all_wait_for.is_none() {
            for resolved in self.connections.iter().flatten() {
                if let Some(written) = &resolved.written {
                    connections.insert(resolved.id.clone(), Entry::new(written.clone(), origin(0)));
                }
            }
        }
        entities.connections = connections.into_values().collect();
        if let Some(toolset) = self.written_toolset() {
            entities.toolsets.push(Entry::new(toolset, origin(0)));
        } else if let Some(toolset) = self.toolset.filter(|_| to_check) {
            entities.toolsets.push(Entry::new(toolset.clone(), origin(0)));
        }
        for (place, draft) in self.drafts.iter().enumerate() {
            let line = if to_check { u32::try_from(place + 1).unwrap_or(u32::MAX) } else { 0 };
            entities.tools.push(Entry::new(draft.tool.clone(), origin(line)));
        }
        entities
    }

    /// The toolset, where it is new or its types change.
    fn written_toolset(&self) -> Option<Toolset> {
        if let Some(toolset) = self.toolset {
            let is_other = self.all_wait_for.is_none() && toolset.xml_types != self.types.merged;
            return is_other
                .then(|| Toolset { xml_types: self.types.merged.clone(), ..toolset.clone() });
        }
        // Without an operation that is called there is nothing to make a toolset for.
        let connection = self.toolset_connection()?;
        let text = |text: &Option<String>, bytes_max| {
            let mut text = text.clone().filter(|text| !text.trim().is_empty())?;
            cut(&mut text, bytes_max);
            Some(text)
        };
        Some(Toolset {
            tenant: self.target.tenant.clone(),
            id: self.target.toolset.clone(),
            kind: self.description.kind,
            connection: Some(connection),
            title: text(&self.description.title, TITLE_BYTES_MAX),
            description: text(&self.description.description, DESCRIPTION_BYTES_MAX),
            system_prompt: None,
            discovery_mode: DiscoveryMode::default(),
            xml_types: self.types.merged.clone(),
            upstream: Upstream::default(),
        })
    }

    fn finish(mut self) -> Plan {
        // A toolset without tools helps nobody.
        let has_nothing = self.toolset.is_none() && self.drafts.is_empty();
        let entities = if has_nothing { Entities::default() } else { self.entities(false) };
        let connections = self.connections.into_iter().flatten();
        self.report.connections = connections.map(|one| one.report).collect();
        self.report.count();
        Plan { entities, report: self.report }
    }
}

/// What every change waits for, whichever operation it is of; `moves` tells that published tools
/// would go elsewhere.
fn all_wait_for(
    types: &message_types::Outcome,
    moves: bool,
    consent: Consent,
    notes: &mut Vec<String>,
) -> Option<&'static str> {
    if let Some(waits_for) = types.waits_for {
        notes.push(format!(
            "types of messages that published tools use change ({}): nothing is changed without \
             {waits_for}",
            types.changed.join(", ")
        ));
    }
    let waits_to_move = (moves && !consent.publish).then_some(NEEDS_PUBLISH);
    if waits_to_move.is_some() {
        notes.push(format!(
            "published tools would go to another base URL: nothing is changed without \
             {NEEDS_PUBLISH}"
        ));
    }
    types.waits_for.or(waits_to_move)
}

fn word_of(kind: ToolsetKind) -> &'static str {
    match kind {
        ToolsetKind::Rest => "rest",
        ToolsetKind::Soap => "soap",
        ToolsetKind::Mcp => "mcp",
        ToolsetKind::Builtin => "builtin",
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
