//! The catalog made ready: immutable, shared by all cores, swapped whole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::view::{Collision, ToolList, View};
use super::{
    BuiltinTool, ClientApplication, ClientApplicationId, CompiledConnection, CompiledTool,
    Entities, Entity, Entry, Origin, PROBLEMS_MAX, Problem, Tenant, TenantId, ToolsetKind, check,
    entities, faults,
};
use crate::http;

type Views = HashMap<TenantId, HashMap<ClientApplicationId, Arc<View>>>;

/// Every view of the catalog. Compiled off the cores; a change makes a new one.
#[derive(Debug, Default)]
pub struct Snapshot {
    version: u64,
    views: Views,
}

impl Snapshot {
    /// Compiles all entities, or tells everything that is wrong with them.
    ///
    /// What views share is made once: a toolset for all that show it, a list of tools for all that
    /// show the same toolsets. The time grows with the tools shown, not with the pairs of anything.
    ///
    /// # Errors
    /// Every problem, in the order of files and lines.
    pub fn compile(entities: &Entities, version: u64) -> Result<Self, Vec<Problem>> {
        let (views, mut problems) = Self::build(entities);
        if problems.is_empty() && !entities.is_complete() {
            // Without this a tool would be missing and nobody told.
            let message = "some of its files could not be read";
            problems.push(Problem::new(&Origin::new("catalog", 0), message));
        }
        if problems.is_empty() { Ok(Self { version, views }) } else { Err(problems) }
    }

    pub(super) fn check(entities: &Entities) -> Vec<Problem> {
        Self::build(entities).1
    }

    fn build(entities: &Entities) -> (Views, Vec<Problem>) {
        let mut problems = check::references(entities);
        if entities.len() > entities::ENTITIES_MAX {
            let message = format!("more than {} entities", entities::ENTITIES_MAX);
            problems.push(Problem::new(&Origin::new("catalog", 0), message));
        }
        let connections = connections(entities, &mut problems);
        let toolsets = Toolsets::compile(entities, &connections, &mut problems);
        let tenants = tenants(entities, &mut problems);
        let views = views(entities, &tenants, &toolsets, &mut problems);
        problems.sort();
        problems.dedup();
        problems.truncate(PROBLEMS_MAX);
        (views, problems)
    }

    /// The number given to it when it was compiled; it grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What a client application of a tenant sees.
    pub fn view(&self, tenant: &str, client_application: &str) -> Option<&Arc<View>> {
        self.views.get(tenant)?.get(client_application)
    }

    /// All views, in no order.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.views.values().flat_map(HashMap::values)
    }

    /// The views whose tools clients would see differently than in `older`, as those of
    /// `notifications/tools/list_changed`.
    pub fn changed_views(&self, older: &Self) -> Vec<&Arc<View>> {
        let is_changed = |view: &&Arc<View>| {
            older
                .view(view.tenant.as_str(), view.client_application.as_str())
                .is_some_and(|before| !before.lists_the_same(view))
        };
        self.views().filter(is_changed).collect()
    }
}

fn report<T: Entity>(entry: &Entry<T>, faults: Vec<String>, problems: &mut Vec<Problem>) {
    let name = entry.value.name();
    let faults = faults.into_iter();
    problems.extend(faults.map(|fault| Problem::new(&entry.origin, format!("{name}: {fault}"))));
}

type Connections = HashMap<String, Arc<CompiledConnection>>;

fn connections(entities: &Entities, problems: &mut Vec<Problem>) -> Connections {
    let mut connections = HashMap::new();
    for entry in &entities.connections {
        match CompiledConnection::compile(&entry.value) {
            Ok(connection) => {
                connections.insert(entry.value.key(), Arc::new(connection));
            }
            Err(faults) => report(entry, faults, problems),
        }
    }
    connections
}

/// The compiled tools of every toolset, each toolset's in the order of their names.
struct Toolsets<'a> {
    places: HashMap<String, usize>,
    tools: Vec<Vec<Arc<CompiledTool>>>,
    ids: Vec<&'a str>,
}

impl<'a> Toolsets<'a> {
    fn compile(
        entities: &'a Entities,
        connections: &Connections,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut toolsets = Self { places: HashMap::new(), tools: Vec::new(), ids: Vec::new() };
        let mut behind = Vec::new();
        for entry in &entities.toolsets {
            let toolset = &entry.value;
            report(entry, faults::of_toolset(toolset), problems);
            toolsets.places.insert(toolset.key(), toolsets.tools.len());
            toolsets.ids.push(toolset.id.as_str());
            let connection = toolset.connection.as_ref();
            let key = connection.map(|connection| format!("{}/{connection}", toolset.tenant));
            behind.push(key.and_then(|key| connections.get(&key)));
            let given: &[BuiltinTool] = match toolset.kind {
                ToolsetKind::Rest => &[],
                ToolsetKind::Builtin => &BuiltinTool::ALL,
            };
            let given = given.iter().filter_map(|tool| CompiledTool::builtin(*tool, &toolset.id));
            toolsets.tools.push(given.map(Arc::new).collect());
        }
        for entry in &entities.tools {
            let tool = &entry.value;
            let place = toolsets.places.get(&format!("{}/{}", tool.tenant, tool.toolset));
            let connection = place.and_then(|place| behind[*place]);
            match (CompiledTool::rest(tool, connection), place) {
                (Ok(Some(compiled)), Some(place)) if tool.enabled => {
                    toolsets.tools[*place].push(Arc::new(compiled));
                }
                (Ok(_), _) => {}
                (Err(faults), _) => report(entry, faults, problems),
            }
        }
        for tools in &mut toolsets.tools {
            tools.sort_by(|one, other| one.name.cmp(&other.name));
        }
        toolsets
    }
}

/// What all views of a tenant share.
struct CompiledTenant {
    allowed_origins: Arc<[Box<str>]>,
    sessions_max: Option<u32>,
}

fn tenants<'a>(
    entities: &'a Entities,
    problems: &mut Vec<Problem>,
) -> HashMap<&'a str, CompiledTenant> {
    let mut tenants = HashMap::new();
    for entry in &entities.tenants {
        let Tenant { id, allowed_origins, sessions_max, .. } = &*entry.value;
        let mut faults = faults::of_tenant(&entry.value);
        let mut origins = Vec::new();
        for text in allowed_origins {
            if http::origin::Origin::is_one(text) {
                origins.push(text.as_str().into());
            } else {
                faults.push(format!(
                    "allowed_origins: {:?} is not an origin such as https://app.example.com",
                    super::names::shortened(text)
                ));
            }
        }
        report(entry, faults, problems);
        let compiled =
            CompiledTenant { allowed_origins: origins.into(), sessions_max: *sessions_max };
        tenants.insert(id.as_str(), compiled);
    }
    tenants
}

/// The enabled assignments of every client application.
fn assignments(entities: &Entities) -> HashMap<String, Vec<(&Origin, String)>> {
    let mut assignments: HashMap<String, Vec<(&Origin, String)>> = HashMap::new();
    for entry in entities.assignments.iter().filter(|entry| entry.value.enabled) {
        let assignment = &entry.value;
        let client = format!("{}/{}", assignment.tenant, assignment.client_application);
        let toolset = format!("{}/{}", assignment.tenant, assignment.toolset);
        assignments.entry(client).or_default().push((&entry.origin, toolset));
    }
    assignments
}

fn views(
    entities: &Entities,
    tenants: &HashMap<&str, CompiledTenant>,
    toolsets: &Toolsets<'_>,
    problems: &mut Vec<Problem>,
) -> Views {
    for entry in &entities.assignments {
        report(entry, faults::of_assignment(&entry.value), problems);
    }
    let assignments = assignments(entities);
    let mut lists: HashMap<Vec<usize>, Result<Arc<ToolList>, Vec<Collision>>> = HashMap::new();
    let mut views = Views::new();
    for entry in &entities.client_applications {
        let client = &entry.value;
        report(entry, faults::of_client_application(client), problems);
        // By place, with where each was assigned; also what makes equal sets equal.
        let assigned: BTreeMap<usize, &Origin> = assignments
            .get(&client.key())
            .into_iter()
            .flatten()
            .filter_map(|(origin, key)| Some((*toolsets.places.get(key)?, *origin)))
            .collect();
        let places: Vec<usize> = assigned.keys().copied().collect();
        let list = lists
            .entry(places)
            .or_insert_with_key(|places| ToolList::compile(places, &toolsets.tools).map(Arc::new));
        match list {
            Ok(list) => {
                if let Some(tenant) = tenants.get(client.tenant.as_str()) {
                    let view = view(client, tenant, Arc::clone(list));
                    let of_tenant = views.entry(client.tenant.clone()).or_default();
                    of_tenant.insert(client.id.clone(), Arc::new(view));
                }
            }
            Err(collisions) => {
                // Each client application may have one of each pair of toolsets.
                let room = PROBLEMS_MAX.saturating_sub(problems.len());
                for collision in collisions.iter().take(room) {
                    let message = format!(
                        "{}: {}",
                        client.name(),
                        collision.describe(|place| toolsets.ids[place])
                    );
                    let origin = assigned.get(&collision.toolsets.1).copied();
                    problems.push(Problem::new(origin.unwrap_or(&entry.origin), message));
                }
            }
        }
    }
    views
}

fn view(client: &ClientApplication, tenant: &CompiledTenant, list: Arc<ToolList>) -> View {
    View {
        tenant: client.tenant.clone(),
        client_application: client.id.clone(),
        title: client.title.as_deref().map(Into::into),
        open: client.open,
        require_session: client.require_session,
        instructions: client.instructions.as_deref().map(Into::into),
        allowed_origins: Arc::clone(&tenant.allowed_origins),
        sessions_max: tenant.sessions_max,
        list,
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
