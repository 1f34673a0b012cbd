//! What an import did or would do, operation by operation.

use serde::Serialize;

use super::breaking::PartChange;
use super::merge::Conflict;

/// What an import comes to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// What the API is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whose the toolset is.
    pub tenant: String,
    /// Where the tools go.
    pub toolset: String,
    /// How many of what.
    pub counts: Counts,
    /// Where the API is reached.
    pub connections: Vec<ReportedConnection>,
    /// Every operation that was selected, and tools whose operation is gone; by the description's
    /// order.
    pub operations: Vec<ReportedOperation>,
    /// What belongs to no operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How many of what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "each is counted by the words of the report")]
pub struct Counts {
    /// Operations of the description.
    pub operations: usize,
    pub not_selected: usize,
    pub imported: usize,
    pub imported_with_notes: usize,
    pub skipped: usize,
    pub added: usize,
    pub changed: usize,
    /// Of those that changed.
    pub breaking: usize,
    pub unchanged: usize,
    /// Tools whose operation is gone.
    pub removed: usize,
    /// Changes that were not made because they need consent.
    pub held: usize,
    pub conflicts: usize,
    /// Tools of the selected operations that are published now.
    pub published: usize,
}

impl Counts {
    /// Operations that are tools.
    pub fn tools(&self) -> usize {
        self.imported + self.imported_with_notes
    }
}

/// A connection of the toolset.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ReportedConnection {
    /// Its id.
    pub id: String,
    /// Where it leads.
    pub base_url: String,
    /// Whether the import makes it.
    pub is_new: bool,
    /// What the operator should know or do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What was made of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A tool, as described.
    Imported,
    /// A tool, with notes.
    ImportedWithNotes,
    /// None.
    Skipped,
    /// The description no longer has the operation of this tool.
    Gone,
}

/// How a tool differs from what is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Added,
    /// It is another.
    Changed,
    /// It is as it was.
    Unchanged,
    /// It goes.
    Removed,
}

/// An operation in the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedOperation {
    /// Its key.
    pub operation: String,
    /// What its tool is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What was made of it.
    pub verdict: Outcome,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What about it is other than described.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How it differs from what is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Whether a change breaks who calls the tool.
    pub breaking: bool,
    /// The parts that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartChange>,
    /// Parts that stay the operator's although the description changed them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    /// What a change that is not made waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<&'static str>,
    /// Whether the tool is published once this is done.
    pub published: bool,
}

impl ReportedOperation {
    pub(super) fn new(operation: &str, verdict: Outcome) -> Self {
        Self {
            operation: operation.to_owned(),
            tool: None,
            verdict,
            reason: None,
            notes: Vec::new(),
            change: None,
            breaking: false,
            parts: Vec::new(),
            conflicts: Vec::new(),
            waits_for: None,
            published: false,
        }
    }

    pub(super) fn skipped(operation: &str, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::new(operation, Outcome::Skipped) }
    }
}

impl Report {
    /// Counts what the operations say; how many there are in the description is said already.
    pub(super) fn count(&mut self) {
        let counts = &mut self.counts;
        for operation in &self.operations {
            match operation.verdict {
                Outcome::Imported => counts.imported += 1,
                Outcome::ImportedWithNotes => counts.imported_with_notes += 1,
                Outcome::Skipped => counts.skipped += 1,
                Outcome::Gone => {}
            }
            match operation.change {
                Some(Change::Added) => counts.added += 1,
                Some(Change::Changed) => counts.changed += 1,
                Some(Change::Unchanged) => counts.unchanged += 1,
                Some(Change::Removed) => counts.removed += 1,
                None => {}
            }
            counts.breaking += usize::from(operation.breaking);
            counts.held += usize::from(operation.waits_for.is_some());
            counts.conflicts += operation.conflicts.len();
            counts.published += usize::from(operation.published);
        }
    }
}
