//! All entities together, each with the place it was written at.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    Assignment, ClientApplication, Connection, Document, EntityChange, Origin, Problem, Snapshot,
    Tenant, Tool, Toolset, UpstreamDefinitions,
};

/// Most entities of all kinds together.
pub const ENTITIES_MAX: usize = 1_000_000;

/// The kinds of entities, in the order in which they refer to each other.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the type of that name")]
pub enum Kind {
    Tenant,
    ClientApplication,
    Connection,
    Toolset,
    Tool,
    Assignment,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Tenant,
        Self::ClientApplication,
        Self::Connection,
        Self::Toolset,
        Self::Tool,
        Self::Assignment,
    ];

    /// The name of its tables in files and of its rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::ClientApplication => "client_application",
            Self::Connection => "connection",
            Self::Toolset => "toolset",
            Self::Tool => "tool",
            Self::Assignment => "assignment",
        }
    }

    /// The kind with that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The fields that name an entity of this kind.
    pub fn key_fields(self) -> &'static [&'static str] {
        match self {
            Self::Tenant => &["id"],
            Self::ClientApplication | Self::Connection | Self::Toolset => &["tenant", "id"],
            Self::Tool => &["tenant", "toolset", "name"],
            Self::Assignment => &["tenant", "client_application", "toolset"],
        }
    }
}

/// The kind and the key of an entity: unique in the catalog. Shown as `tool acme/pets/list_pets`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityName {
    /// What it is.
    pub kind: Kind,
    /// Its ids from the tenant down, with `/` between them, which none but the last one of a tool
    /// contains.
    pub key: String,
}

impl fmt::Display for EntityName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind.as_str().replace('_', " "), self.key)
    }
}

/// What all kinds have in common.
pub trait Entity: Serialize + DeserializeOwned + PartialEq {
    /// Which kind it is.
    const KIND: Kind;

    /// Its ids from the tenant down, with `/` between them.
    fn key(&self) -> String;

    /// Kind and key.
    fn name(&self) -> EntityName {
        EntityName { kind: Self::KIND, key: self.key() }
    }
}

impl Entity for Tenant {
    const KIND: Kind = Kind::Tenant;

    fn key(&self) -> String {
        self.id.to_string()
    }
}

impl Entity for ClientApplication {
    const KIND: Kind = Kind::ClientApplication;

    fn key(&self) -> String {
        format!("{}/{}", self.tenant, self.id)
    }
}

impl Entity for Connection {
    const KIND: Kind = Kind::Connection;

    fn key(&self) -> String {
        format!("{}/{}", self.tenant, self.id)
    }
}

impl Entity for Toolset {
    const KIND: Kind = Kind::Toolset;

    fn key(&self) -> String {
        format!("{}/{}", self.tenant, self.id)
    }
}

impl Entity for Tool {
    const KIND: Kind = Kind::Tool;

    fn key(&self) -> String {
        format!("{}/{}/{}", self.tenant, self.toolset, self.name)
    }
}

impl Entity for Assignment {
    const KIND: Kind = Kind::Assignment;

    fn key(&self) -> String {
        format!("{}/{}/{}", self.tenant, self.client_application, self.toolset)
    }
}

/// An entity and the place it was written at. Cheap to clone: catalogs share what they have in
/// common, and what is the same `Arc` need not be compared.
#[derive(Debug)]
pub struct Entry<T> {
    /// The entity.
    pub value: Arc<T>,
    /// Where it was written.
    pub origin: Origin,
}

impl<T> Entry<T> {
    /// An entity and the place it was written at.
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value: Arc::new(value), origin }
    }
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), origin: self.origin.clone() }
    }
}

/// Everything the catalog consists of, as written and not yet judged.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "each is the list of the type of that name")]
pub struct Entities {
    pub tenants: Vec<Entry<Tenant>>,
    pub client_applications: Vec<Entry<ClientApplication>>,
    pub connections: Vec<Entry<Connection>>,
    pub toolsets: Vec<Entry<Toolset>>,
    pub tools: Vec<Entry<Tool>>,
    pub assignments: Vec<Entry<Assignment>>,
    /// What upstream MCP servers offer, as far as it is accepted: found out, not written down.
    pub definitions: UpstreamDefinitions,
    pub(super) gaps: Gaps,
}

/// What was written but could not be read: its own problem is known already, and what refers to it
/// must not be reported a second time.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps {
    names: HashSet<EntityName>,
    kinds: HashSet<Kind>,
}

impl Gaps {
    /// This entity was there.
    pub(super) fn add_name(&mut self, name: EntityName) {
        self.names.insert(name);
    }

    /// Some entity of this kind was there.
    pub(super) fn add_kind(&mut self, kind: Kind) {
        self.kinds.insert(kind);
    }

    /// Whether this entity may have been there.
    pub(super) fn may_have(&self, kind: Kind, key: &str) -> bool {
        self.kinds.contains(&kind)
            || (!self.names.is_empty()
                && self.names.contains(&EntityName { kind, key: key.to_owned() }))
    }
}

/// Calls `$body` with `$list` being each list in turn.
macro_rules! for_each_list {
    (ref $entities:expr, $list:ident => $body:expr) => {
        for_each_list!(@ $entities, $list => $body, &)
    };
    (mut $entities:expr, $list:ident => $body:expr) => {
        for_each_list!(@ $entities, $list => $body, &mut)
    };
    (@ $entities:expr, $list:ident => $body:expr, $($borrow:tt)+) => {{
        {
            let $list = $($borrow)+ $entities.tenants;
            $body
        }
        {
            let $list = $($borrow)+ $entities.client_applications;
            $body
        }
        {
            let $list = $($borrow)+ $entities.connections;
            $body
        }
        {
            let $list = $($borrow)+ $entities.toolsets;
            $body
        }
        {
            let $list = $($borrow)+ $entities.tools;
            $body
        }
        {
            let $list = $($borrow)+ $entities.assignments;
            $body
        }
    }};
}
pub(super) use for_each_list;

/// Gives `$body` with `$list` being the list of the entities of `$kind`.
macro_rules! with_list {
    ($kind:expr, ref $entities:expr, $list:ident => $body:expr) => {
        with_list!(@ $kind, $entities, $list => $body, &)
    };
    ($kind:expr, mut $entities:expr, $list:ident => $body:expr) => {
        with_list!(@ $kind, $entities, $list => $body, &mut)
    };
    (@ $kind:expr, $entities:expr, $list:ident => $body:expr, $($borrow:tt)+) => {
        match $kind {
            Kind::Tenant => {
                let $list = $($borrow)+ $entities.tenants;
                $body
            }
            Kind::ClientApplication => {
                let $list = $($borrow)+ $entities.client_applications;
                $body
            }
            Kind::Connection => {
                let $list = $($borrow)+ $entities.connections;
                $body
            }
            Kind::Toolset => {
                let $list = $($borrow)+ $entities.toolsets;
                $body
            }
            Kind::Tool => {
                let $list = $($borrow)+ $entities.tools;
                $body
            }
            Kind::Assignment => {
                let $list = $($borrow)+ $entities.assignments;
                $body
            }
        }
    };
}
pub(super) use with_list;

impl Entities {
    /// How many there are, of all kinds.
    pub fn len(&self) -> usize {
        let mut count = 0;
        for_each_list!(ref self, list => count += list.len());
        count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything that is wrong, in the order of files and lines. What refers to an entity that
    /// could not be read is not wrong: that one's own problem was reported when it was read.
    pub fn check(&self) -> Vec<Problem> {
        Snapshot::check(self)
    }

    /// Whether they name an entity that is not among them, as a part of a catalog may.
    pub fn misses(&self) -> bool {
        super::check::misses(self)
    }

    /// Whether everything that was written could be read.
    pub fn is_complete(&self) -> bool {
        self.gaps.names.is_empty() && self.gaps.kinds.is_empty()
    }

    /// Puts `newer` over these: what has the same name is replaced, the rest is added.
    pub fn overlay(&mut self, newer: Self) {
        overlay(&mut self.tenants, newer.tenants);
        overlay(&mut self.client_applications, newer.client_applications);
        overlay(&mut self.connections, newer.connections);
        overlay(&mut self.toolsets, newer.toolsets);
        overlay(&mut self.tools, newer.tools);
        overlay(&mut self.assignments, newer.assignments);
        self.definitions.extend(newer.definitions);
        self.gaps.names.extend(newer.gaps.names);
        self.gaps.kinds.extend(newer.gaps.kinds);
    }

    /// What must happen to `self` to become `newer`. Where an entity was written does not count.
    pub fn difference(&self, newer: &Self) -> Difference {
        let mut difference = Difference::default();
        macro_rules! compare {
            ($($list:ident),+) => {$(
                differ(&self.$list, &newer.$list, |name, before, after| match (before, after) {
                    (None, _) => difference.added.push(name),
                    (Some(_), Some(_)) => difference.changed.push(name),
                    (Some(_), None) => difference.removed.push(name),
                });
            )+};
        }
        compare!(tenants, client_applications, connections, toolsets, tools, assignments);
        difference
    }

    /// As [`Entities::difference`], with every entity as it was and as it becomes, in the order of
    /// kinds and keys.
    pub fn changes(&self, newer: &Self) -> Vec<EntityChange> {
        let mut changes = Vec::new();
        macro_rules! compare {
            ($($list:ident),+) => {$(
                differ(&self.$list, &newer.$list, |name, before, after| {
                    changes.push(EntityChange {
                        kind: name.kind,
                        key: name.key,
                        before: before.map(Document::of),
                        after: after.map(Document::of),
                    });
                });
            )+};
        }
        compare!(tenants, client_applications, connections, toolsets, tools, assignments);
        changes
    }
}

/// How two catalogs differ, each list in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Only in the newer one.
    pub added: Vec<EntityName>,
    /// In both, not alike.
    pub changed: Vec<EntityName>,
    /// Only in the older one.
    pub removed: Vec<EntityName>,
}

impl Difference {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

fn overlay<T: Entity>(older: &mut Vec<Entry<T>>, newer: Vec<Entry<T>>) {
    let mut places: HashMap<String, usize> =
        older.iter().enumerate().map(|(place, entry)| (entry.value.key(), place)).collect();
    for entry in newer {
        let place = *places.entry(entry.value.key()).or_insert(older.len());
        match older.get_mut(place) {
            // What stays the same stays shared, so that nothing is made of it twice.
            Some(slot) if slot.value == entry.value => slot.origin = entry.origin,
            Some(slot) => *slot = entry,
            None => older.push(entry),
        }
    }
}

type Pair<'a, T> = (Option<&'a Entry<T>>, Option<&'a Entry<T>>);

/// Tells of every entity that is not the same in both, in the order of their keys.
fn differ<T: Entity>(
    older: &[Entry<T>],
    newer: &[Entry<T>],
    mut tell: impl FnMut(EntityName, Option<&Entry<T>>, Option<&Entry<T>>),
) {
    // What both share at the same place, the most of two versions, takes no key and no comparison.
    let is_shared = |place: usize| match (older.get(place), newer.get(place)) {
        (Some(one), Some(other)) => Arc::ptr_eq(&one.value, &other.value),
        _ => false,
    };
    let mut pairs: BTreeMap<String, Pair<'_, T>> = BTreeMap::new();
    for (_, entry) in older.iter().enumerate().filter(|(place, _)| !is_shared(*place)) {
        pairs.entry(entry.value.key()).or_default().0 = Some(entry);
    }
    for (_, entry) in newer.iter().enumerate().filter(|(place, _)| !is_shared(*place)) {
        pairs.entry(entry.value.key()).or_default().1 = Some(entry);
    }
    for (key, (before, after)) in pairs {
        let is_same = match (before, after) {
            (Some(one), Some(other)) => {
                Arc::ptr_eq(&one.value, &other.value) || one.value == other.value
            }
            _ => false,
        };
        if !is_same {
            tell(EntityName { kind: T::KIND, key }, before, after);
        }
    }
}
