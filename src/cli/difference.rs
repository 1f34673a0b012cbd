//! Differences of catalogs, as the admin plane tells them and people read them.

use serde::Deserialize;
use serde_json::Value;

use super::{CommandError, output};
use crate::catalog::{EntityName, FieldChange, Kind, MASK};

/// Longest value shown of a field, in characters.
const VALUE_CHARACTERS_MAX: usize = 200;

/// What was changed, or would be.
#[derive(Debug, Deserialize)]
pub(super) struct Told {
    pub(super) version: u64,
    pub(super) changes: Vec<Change>,
    /// What of the catalog has no effect.
    #[serde(default)]
    pub(super) remarks: Vec<String>,
    /// What will make calls fail.
    #[serde(default)]
    pub(super) warnings: Vec<String>,
}

impl Told {
    /// Prints what the operator should know besides the changes.
    pub(super) fn print_remarks(&self) {
        output::remarks(&self.remarks);
        output::remarks(&self.warnings);
    }
}

/// One entity of it.
#[derive(Debug, Deserialize)]
pub(super) struct Change {
    kind: Kind,
    key: String,
    #[serde(rename = "change")]
    what: What,
    fields: Vec<FieldChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Added,
    Changed,
    Removed,
}

impl What {
    fn sign(self) -> char {
        match self {
            Self::Added => '+',
            Self::Changed => '~',
            Self::Removed => '-',
        }
    }
}

/// Prints what would be changed, as `would` tells it, and unless that is all that is wanted, lets
/// `change` do it to the catalog of that version: what is printed is what is done, and were the
/// catalog changed meanwhile, nothing would be.
pub(super) fn settle(
    would: Told,
    dry_run: bool,
    change: impl FnOnce(u64) -> Result<Told, CommandError>,
) -> Result<(), CommandError> {
    print(&would.changes);
    would.print_remarks();
    let counts = counts(&would.changes);
    if dry_run {
        output::line(format_args!("{counts}. Nothing was changed (--dry-run)."));
        return Ok(());
    }
    let done = if would.changes.is_empty() { would } else { change(would.version)? };
    output::line(format_args!("{counts}. The catalog is at version {}.", done.version));
    Ok(())
}

/// Prints each entity with its sign, and below it each field that differs.
pub(super) fn print(changes: &[Change]) {
    for change in changes {
        let name = EntityName { kind: change.kind, key: change.key.clone() };
        output::line(format_args!("{} {name}", change.what.sign()));
        for FieldChange { field, before, after } in &change.fields {
            let (before, after) = (shown(before.as_ref()), shown(after.as_ref()));
            output::line(format_args!("    {field}: {before} -> {after}"));
        }
    }
}

/// `1 added, 0 changed, 0 removed`.
pub(super) fn counts(changes: &[Change]) -> String {
    let count = |what| changes.iter().filter(|change| change.what == what).count();
    format!(
        "{} added, {} changed, {} removed",
        count(What::Added),
        count(What::Changed),
        count(What::Removed)
    )
}

/// A value of a field on one line.
pub(super) fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "(none)".to_owned() };
    if value == MASK {
        return MASK.to_owned();
    }
    output::shortened(&value.to_string(), VALUE_CHARACTERS_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_short_and_secrets_bare() {
        assert_eq!(shown(None), "(none)");
        assert_eq!(shown(Some(&json!("a\n\u{1b}"))), r#""a\n\u001b""#);
        assert_eq!(shown(Some(&json!("***"))), "***");
        assert_eq!(shown(Some(&json!({ "a": 1 }))), r#"{"a":1}"#);
        let long = shown(Some(&json!("ä".repeat(500))));
        assert_eq!(long.chars().count(), VALUE_CHARACTERS_MAX + 3);
    }
}
