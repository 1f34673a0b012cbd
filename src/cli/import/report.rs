//! The report of an import, for people.

use std::fmt::Write as _;

use super::super::{difference::shown, output};
use crate::import::{Change, Counts, Outcome, Report, ReportedOperation};

/// Longest key or name in the table, in characters.
const CELL_CHARACTERS_MAX: usize = 72;

/// Prints a table of all operations, then everything worth knowing about some of them, then how
/// many there are of what.
pub(in crate::cli) fn print(report: &Report) {
    let rows: Vec<Vec<String>> = report.operations.iter().map(row).collect();
    if !rows.is_empty() {
        output::table(&["OPERATION", "TOOL", "VERDICT", "CHANGE", "PUBLISHED"], &rows);
        output::line("");
    }
    for operation in &report.operations {
        details(operation);
    }
    for connection in &report.connections {
        let new = if connection.is_new { " (new)" } else { "" };
        output::line(format_args!("connection {}{new}: {}", connection.id, connection.base_url));
        remarks(&connection.notes);
    }
    for note in &report.notes {
        output::line(format_args!("note: {note}"));
    }
    output::line(counts(report.counts));
}

fn row(operation: &ReportedOperation) -> Vec<String> {
    let verdict = match operation.verdict {
        Outcome::Imported => "imported",
        Outcome::ImportedWithNotes => "imported, notes",
        Outcome::Skipped => "skipped",
        Outcome::Gone => "gone",
    };
    let change = match (operation.change, operation.breaking) {
        (Some(Change::Added), _) => "added",
        (Some(Change::Changed), true) => "changed, breaking",
        (Some(Change::Changed), false) => "changed",
        (Some(Change::Unchanged), _) => "-",
        (Some(Change::Removed), _) => "removed",
        (None, _) => "",
    };
    let held = if operation.waits_for.is_some() { ", held" } else { "" };
    vec![
        cell(&operation.operation),
        cell(operation.tool.as_deref().unwrap_or("")),
        verdict.to_owned(),
        format!("{change}{held}"),
        if operation.published { "yes" } else { "no" }.to_owned(),
    ]
}

fn cell(text: &str) -> String {
    output::shortened(&output::tame(text), CELL_CHARACTERS_MAX)
}

fn details(operation: &ReportedOperation) {
    let ReportedOperation { reason, notes, parts, conflicts, waits_for, .. } = operation;
    let is_new = operation.change == Some(Change::Added);
    let is_silent = reason.is_none()
        && notes.is_empty()
        && parts.is_empty()
        && conflicts.is_empty()
        && (waits_for.is_none() || is_new);
    if is_silent {
        return;
    }
    output::line(&operation.operation);
    if let Some(reason) = reason {
        output::line(format_args!("    skipped: {reason}"));
    }
    remarks(notes);
    for part in parts {
        let (before, after) = (shown(part.before.as_ref()), shown(part.after.as_ref()));
        output::line(format_args!("    {}: {before} -> {after}", part.part));
        for reason in &part.breaking {
            output::line(format_args!("        breaking: {reason}"));
        }
    }
    for conflict in conflicts {
        let (kept, described) = (shown(conflict.kept.as_ref()), shown(conflict.described.as_ref()));
        output::line(format_args!(
            "    {}: yours stays: {kept}; the description says {described}",
            conflict.part
        ));
    }
    if let Some(flags) = waits_for {
        output::line(format_args!("    not changed: this needs {flags}"));
    }
}

fn remarks(notes: &[String]) {
    for note in notes {
        output::line(format_args!("    note: {note}"));
    }
}

/// How many there are of what, in a sentence or two.
pub(in crate::cli) fn counts(counts: Counts) -> String {
    let mut text = format!(
        "{}: {} imported, {} imported with notes, {} skipped",
        operations(counts.operations),
        counts.imported,
        counts.imported_with_notes,
        counts.skipped
    );
    if counts.not_selected > 0 {
        let _ = write!(text, ", {} not selected", counts.not_selected);
    }
    let _ = write!(
        text,
        ".\n{} added, {} changed ({} breaking), {} unchanged, {} removed; {} held, {} conflicts.\n\
         {} published now.",
        counts.added,
        counts.changed,
        counts.breaking,
        counts.unchanged,
        counts.removed,
        counts.held,
        counts.conflicts,
        counts.published
    );
    text
}

fn operations(count: usize) -> String {
    if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") }
}
