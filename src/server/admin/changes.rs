//! The catalog as a whole: apply, export, reload; its history, and the way back.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Done, Trouble,
    ask::{self, Ask, bad},
};
use crate::{
    catalog::{Action, ChangeHeader, Entities, EntityChange},
    server::{
        change_error::ChangeError,
        change_log,
        publication::{Applied, Intent},
        reload,
        shared::Shared,
        time,
    },
};

/// Changes of a list where nothing else is asked for.
const LISTED: u64 = 20;

// No `Debug`: the rows hold secrets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    /// Rows as `Entities::rows` makes them: their keys and their values, both text.
    rows: HashMap<String, String>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    prune: bool,
    #[serde(default)]
    expected_version: Option<u64>,
    #[serde(default)]
    comment: String,
}

pub(super) fn apply(shared: &Shared, ask: &Ask) -> Result<Done, Trouble> {
    let declared: Declared = ask.json()?;
    let intent = Intent {
        action: Action::Apply,
        author: ask.operator.author(),
        comment: ask::comment(&declared.comment)?,
        dry_run: declared.dry_run,
        expected: declared.expected_version,
    };
    let entities = Entities::from_rows(declared.rows).map_err(ChangeError::Rows)?;
    let applied = shared.publication.apply(intent, entities, declared.prune)?;
    Ok(finished(shared, &applied, declared.dry_run))
}

pub(super) fn export(shared: &Shared, ask: &Ask) -> Result<Done, Trouble> {
    let mut entities = Entities::clone(&shared.publication.entities());
    if ask.flag("mask")? {
        entities.mask_secrets();
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let rows: HashMap<String, String> =
        entities.rows().into_iter().map(|(key, value)| (text(key), text(value))).collect();
    Ok(Done::ok(&json!({ "rows": rows })))
}

pub(super) fn reload(shared: &Shared) -> Result<Done, Trouble> {
    let applied = reload::reload(shared)?;
    Ok(Done::ok(&told(&applied, false)))
}

pub(super) fn list(shared: &Shared, ask: &Ask) -> Result<Done, Trouble> {
    let limit = match ask.number("limit")?.unwrap_or(LISTED) {
        0 => return Err(bad(format!("limit: expected 1 to {}", change_log::LISTED_MAX))),
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let (headers, oldest) = shared.publication.history(ask.number("before")?, limit)?;
    let next = headers.last().map(|header| header.version).filter(|last| *last > oldest);
    let changes: Vec<Value> = headers.iter().map(header).collect();
    Ok(Done::ok(&json!({ "changes": changes, "next": next, "oldest": oldest })))
}

pub(super) fn show(shared: &Shared, ask: &Ask) -> Result<Done, Trouble> {
    let record = shared.publication.change_of(version(ask)?)?;
    let mut body = header(&record.header);
    if let Some(body) = body.as_object_mut() {
        body.insert("changes".to_owned(), record.entities.iter().map(change).collect());
    }
    Ok(Done::ok(&body))
}

pub(super) fn rollback(shared: &Shared, ask: &Ask) -> Result<Done, Trouble> {
    let mut intent = ask.intent(Action::Rollback)?;
    intent.expected = ask.number("expected_version")?;
    let applied = shared.publication.rollback(intent, version(ask)?)?;
    Ok(finished(shared, &applied, ask.flag("dry_run")?))
}

fn version(ask: &Ask) -> Result<u64, Trouble> {
    let version = ask.names.first().and_then(|name| name.parse().ok());
    version.ok_or_else(|| bad("a version is a number".to_owned()))
}

fn header(header: &ChangeHeader) -> Value {
    json!({
        "version": header.version,
        "time": time::text_of_ms(header.time_ms),
        "author": header.author,
        "action": header.action,
        "restored": header.restored,
        "comment": header.comment,
        "added": header.added,
        "changed": header.changed,
        "removed": header.removed,
    })
}

/// The answer to a change of the catalog; clients are told of what they see differently.
fn finished(shared: &Shared, applied: &Applied, is_dry: bool) -> Done {
    if applied.is_made {
        shared.tell_clients();
    }
    Done::ok(&told(applied, is_dry))
}

/// What a change did, or would do.
pub(super) fn told(applied: &Applied, is_dry: bool) -> Value {
    json!({
        "version": applied.version,
        "dry_run": is_dry,
        "changes": applied.changes.iter().map(change).collect::<Vec<_>>(),
        "warnings": applied.warnings,
    })
}

fn change(change: &EntityChange) -> Value {
    let what = match (&change.before, &change.after) {
        (None, _) => "added",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    };
    json!({
        "kind": change.kind,
        "key": change.key,
        "change": what,
        "fields": change.fields(),
    })
}
