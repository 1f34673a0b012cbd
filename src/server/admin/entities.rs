//! Entities one by one: list, read, create, replace, patch, delete; publish and unpublish.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Done, Trouble,
    ask::{Ask, bad},
    changes::told,
    condition::etag,
    merge_patch::merge,
};
use crate::{
    catalog::{Action, Document, Entities, EntityName, Kind, Origin},
    server::{change_error::ChangeError, publication::Applied, shared::Shared},
};

/// Entities of a list where nothing else is asked for, and most of them.
const LISTED: u64 = 100;
const LISTED_MAX: u64 = 1000;

/// Where entities come from that no file declares.
const ORIGIN: &str = "admin API";

pub(super) fn list(shared: &Shared, kind: Kind, ask: &Ask) -> Result<Done, Trouble> {
    let limit = match ask.number("limit")?.unwrap_or(LISTED) {
        limit @ 1..=LISTED_MAX => usize::try_from(limit).unwrap_or(usize::MAX),
        _ => return Err(bad(format!("limit: expected 1 to {LISTED_MAX}"))),
    };
    let entities = shared.publication.entities();
    let (page, has_more) = entities.documents(kind, ask.text("tenant"), ask.text("after"), limit);
    let next = page.last().filter(|_| has_more).map(|(name, _)| name.key.clone());
    let items: Vec<Value> = page.iter().map(|(_, document)| shown(kind, document)).collect();
    Ok(Done::ok(&json!({ "items": items, "next": next })))
}

fn shown(kind: Kind, document: &Document) -> Value {
    json!({
        "entity": document.masked(kind),
        "etag": etag(document),
        "origin": document.origin().to_string(),
    })
}

pub(super) fn read(shared: &Shared, kind: Kind, ask: &Ask) -> Result<Done, Trouble> {
    let name = ask.entity(kind);
    let document = shared.publication.entities().document(&name);
    let document = document.ok_or(ChangeError::NoSuchEntity(name))?;
    let tag = etag(&document);
    if ask.condition.has(&document) {
        return Ok(Done { status: 304, headers: vec![("ETag", tag)], body: Vec::new() });
    }
    Ok(Done::ok(&document.masked(kind)).with("ETag", tag))
}

pub(super) fn create(shared: &Shared, kind: Kind, ask: &Ask) -> Result<Done, Trouble> {
    let entity = ask.object()?;
    let mut name = None;
    let applied = shared.publication.change(ask.intent(Action::Create)?, |current| {
        let mut newer = current.clone();
        let put = newer.put(kind, entity, &Origin::new(ORIGIN, 0))?;
        if current.document(&put).is_some() {
            return Err(ChangeError::Exists(put));
        }
        name = Some(put);
        Ok(newer)
    })?;
    let Some(name) = name else { return Err(Trouble::new(500, "nothing was created")) };
    done(shared, ask, applied, &name, 201)
}

pub(super) fn replace(shared: &Shared, kind: Kind, ask: &Ask) -> Result<Done, Trouble> {
    let name = ask.entity(kind);
    let entity = named(ask.object()?, &name)?;
    let mut is_new = false;
    let applied = shared.publication.change(ask.intent(Action::Replace)?, |current| {
        let before = current.document(&name);
        ask.condition.check(&name, before.as_ref(), true)?;
        is_new = before.is_none();
        put(current, &name, entity)
    })?;
    done(shared, ask, applied, &name, if is_new { 201 } else { 200 })
}

pub(super) fn patch(shared: &Shared, kind: Kind, ask: &Ask) -> Result<Done, Trouble> {
    let patch = ask.object()?;
    edit(shared, ask, &ask.entity(kind), Action::Patch, true, |entity| merge(entity, patch))
}

pub(super) fn set_enabled(shared: &Shared, ask: &Ask, enabled: bool) -> Result<Done, Trouble> {
    let action = if enabled { Action::Publish } else { Action::Unpublish };
    edit(shared, ask, &ask.entity(Kind::Tool), action, false, |entity| {
        merge(entity, json!({ "enabled": enabled }));
    })
}

/// Changes an entity that is there.
fn edit(
    shared: &Shared,
    ask: &Ask,
    name: &EntityName,
    action: Action,
    needs_condition: bool,
    edit: impl FnOnce(&mut Value),
) -> Result<Done, Trouble> {
    let applied = shared.publication.change(ask.intent(action)?, |current| {
        let before = present(current, name)?;
        ask.condition.check(name, Some(&before), needs_condition)?;
        let mut entity = before.entity().clone();
        edit(&mut entity);
        let entity = named(entity, name)?;
        put(current, name, entity)
    })?;
    done(shared, ask, applied, name, 200)
}

pub(super) fn delete(shared: &Shared, kind: Kind, ask: &Ask) -> Result<Done, Trouble> {
    let name = ask.entity(kind);
    let applied = shared.publication.change(ask.intent(Action::Delete)?, |current| {
        let before = present(current, &name)?;
        ask.condition.check(&name, Some(&before), true)?;
        let mut newer = current.clone();
        newer.remove(&name);
        Ok(newer)
    });
    let applied = applied.map_err(|error| match error {
        // What is served has no problems: these are what the deletion would make.
        ChangeError::Problems(needs) => ChangeError::Needed { name: name.clone(), needs },
        other => other,
    })?;
    done(shared, ask, applied, &name, 200)
}

fn present(current: &Entities, name: &EntityName) -> Result<Document, ChangeError> {
    current.document(name).ok_or_else(|| ChangeError::NoSuchEntity(name.clone()))
}

fn put(current: &Entities, name: &EntityName, entity: Value) -> Result<Entities, ChangeError> {
    let mut newer = current.clone();
    newer.put(name.kind, entity, &Origin::new(ORIGIN, 0))?;
    Ok(newer)
}

/// An entity that says what the path says; what it leaves out of its name is taken from there.
fn named(mut entity: Value, name: &EntityName) -> Result<Value, ChangeError> {
    // Of a tool the last one may have a slash itself.
    let fields = name.kind.key_fields();
    let fields = fields.iter().zip(name.key.splitn(fields.len(), '/'));
    for (field, part) in fields {
        match entity.get(field) {
            None => {
                if let Some(entity) = entity.as_object_mut() {
                    entity.insert((*field).to_owned(), Value::from(part));
                }
            }
            Some(given) if given == part => {}
            Some(_) => {
                return Err(ChangeError::Refused(format!(
                    "{name}: its {field} is in the path and cannot be changed: create another one \
                     and delete this"
                )));
            }
        }
    }
    Ok(entity)
}

/// The answer to a change of one entity; clients are told of what they see differently.
fn done(
    shared: &Shared,
    ask: &Ask,
    applied: Applied,
    name: &EntityName,
    status: u16,
) -> Result<Done, Trouble> {
    if applied.is_made {
        shared.tell_clients();
    }
    let is_dry = ask.flag("dry_run")?;
    let mut body = told(&applied, is_dry);
    let entities = Arc::clone(&applied.entities);
    let document = entities.document(name);
    if let (Some(body), Some(document)) = (body.as_object_mut(), &document) {
        body.insert("entity".to_owned(), document.masked(name.kind));
        body.insert("etag".to_owned(), Value::from(etag(document)));
    }
    // Nothing was created by a dry run.
    let status = if is_dry { 200 } else { status };
    let done = Done::json(status, &body);
    Ok(match document {
        Some(document) if !is_dry => done.with("ETag", etag(&document)),
        _ => done,
    })
}
