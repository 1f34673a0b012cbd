//! Cross references: every entity that is named must exist, once, and be of the right kind.

use std::collections::HashMap;

use super::entities::for_each_list;
use super::{Entities, Entity, EntityName, Entry, Kind, Origin, Problem, Toolset, ToolsetKind};

/// Finds entities by kind and key.
struct Index<'a> {
    places: HashMap<EntityName, &'a Origin>,
    toolsets: HashMap<String, &'a Toolset>,
    entities: &'a Entities,
}

impl Index<'_> {
    /// Whether an entity may be referred to: it exists, or its own problem is reported already.
    fn has(&self, kind: Kind, key: &str) -> bool {
        let name = EntityName { kind, key: key.to_owned() };
        self.places.contains_key(&name) || self.entities.gaps.may_have(kind, key)
    }
}

/// Everything that is wrong between entities.
pub(super) fn references(entities: &Entities) -> Vec<Problem> {
    checked(entities).problems
}

/// Whether an entity is named that is not there.
pub(super) fn misses(entities: &Entities) -> bool {
    checked(entities).misses
}

fn checked(entities: &Entities) -> Checking<'_> {
    let mut problems = Vec::new();
    let mut index = Index { places: HashMap::new(), toolsets: HashMap::new(), entities };
    for_each_list!(ref entities, list => enter(list, &mut index.places, &mut problems));
    for entry in &entities.toolsets {
        index.toolsets.insert(entry.value.key(), &*entry.value);
    }
    let mut checking = Checking { index, problems, misses: false };
    checking.client_applications();
    checking.connections();
    checking.toolsets();
    checking.tools();
    checking.assignments();
    checking
}

/// Every entity whose name another one has.
pub(super) fn duplicates(entities: &Entities) -> Vec<Problem> {
    let (mut places, mut problems) = (HashMap::new(), Vec::new());
    for_each_list!(ref entities, list => enter(list, &mut places, &mut problems));
    problems
}

fn enter<'a, T: Entity>(
    list: &'a [Entry<T>],
    places: &mut HashMap<EntityName, &'a Origin>,
    problems: &mut Vec<Problem>,
) {
    for entry in list {
        let name = entry.value.name();
        if let Some(first) = places.get(&name) {
            let message = format!("duplicate {name}: it is at {first} already");
            problems.push(Problem::new(&entry.origin, message));
        } else {
            places.insert(name, &entry.origin);
        }
    }
}

struct Checking<'a> {
    index: Index<'a>,
    problems: Vec<Problem>,
    /// Whether one of them is that something is not there.
    misses: bool,
}

impl<'a> Checking<'a> {
    /// Reports `wanted` where it is missing; tells whether it is there.
    fn need<T: Entity>(&mut self, entry: &Entry<T>, kind: Kind, key: &str) -> bool {
        let is_there = self.index.has(kind, key);
        if !is_there {
            self.misses = true;
            let wanted = EntityName { kind, key: key.to_owned() };
            let message = format!("{}: there is no {wanted}", entry.value.name());
            self.problems.push(Problem::new(&entry.origin, message));
        }
        is_there
    }

    fn report<T: Entity>(&mut self, entry: &Entry<T>, message: &str) {
        let message = format!("{}: {message}", entry.value.name());
        self.problems.push(Problem::new(&entry.origin, message));
    }

    fn entities(&self) -> &'a Entities {
        self.index.entities
    }

    fn client_applications(&mut self) {
        for entry in &self.entities().client_applications {
            self.need(entry, Kind::Tenant, entry.value.tenant.as_str());
        }
    }

    fn connections(&mut self) {
        for entry in &self.entities().connections {
            self.need(entry, Kind::Tenant, entry.value.tenant.as_str());
        }
    }

    fn toolsets(&mut self) {
        for entry in &self.entities().toolsets {
            let Toolset { tenant, kind, connection, .. } = &*entry.value;
            let has_tenant = self.need(entry, Kind::Tenant, tenant.as_str());
            match (kind, connection) {
                (ToolsetKind::Rest, None) => {
                    self.report(entry, "a toolset of kind `rest` needs a `connection`");
                }
                (ToolsetKind::Soap, None) => {
                    self.report(entry, "a toolset of kind `soap` needs a `connection`");
                }
                (ToolsetKind::Mcp, None) => {
                    self.report(entry, "a toolset of kind `mcp` needs a `connection`");
                }
                (ToolsetKind::Rest | ToolsetKind::Soap | ToolsetKind::Mcp, Some(connection))
                    if has_tenant =>
                {
                    self.need(entry, Kind::Connection, &format!("{tenant}/{connection}"));
                }
                (ToolsetKind::Builtin, Some(_)) => {
                    self.report(entry, "a toolset of kind `builtin` has no `connection`");
                }
                _ => {}
            }
        }
    }

    fn tools(&mut self) {
        for entry in &self.entities().tools {
            let (tenant, toolset) = (&entry.value.tenant, &entry.value.toolset);
            if !self.need(entry, Kind::Tenant, tenant.as_str()) {
                continue;
            }
            let key = format!("{tenant}/{toolset}");
            self.need(entry, Kind::Toolset, &key);
            let kind = self.index.toolsets.get(&key).map(|toolset| toolset.kind);
            if kind == Some(ToolsetKind::Builtin) {
                self.report(entry, "its toolset is of kind `builtin`, whose tools are given");
            } else if let Some(connection) = &entry.value.connection {
                self.need(entry, Kind::Connection, &format!("{tenant}/{connection}"));
            }
        }
    }

    fn assignments(&mut self) {
        for entry in &self.entities().assignments {
            let assignment = &entry.value;
            let tenant = &assignment.tenant;
            if self.need(entry, Kind::Tenant, tenant.as_str()) {
                let client = format!("{tenant}/{}", assignment.client_application);
                self.need(entry, Kind::ClientApplication, &client);
                self.need(entry, Kind::Toolset, &format!("{tenant}/{}", assignment.toolset));
            }
        }
    }
}
