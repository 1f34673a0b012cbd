//! From entities to views, with everything taken over from the snapshot before that is still right.
//!
//! ```text
//! connections ─▶ toolsets ─▶ toolsets as shown ─▶ lists ─▶ views
//! ```
//!
//! Each step makes a thing once for all that share it, and keeps the one of the snapshot before
//! where it would come out the same: where all it is made from are the very same values.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::deprecated::{DeprecatedNames, FormerTools, Grace, TOOLS_MAX, names_that_went};
use super::list::{Frame, ToolList};
use super::messages;
use super::permission::Policies;
use super::prompts::{PromptList, instructions};
use super::shown::{Setting, ShownKey, ShownToolset};
use super::tool::query_fault;
use super::toolset::{Behind, CompiledToolset};
use super::view::{View, ViewInputs};
use super::{
    Assignment, ClientApplication, ClientApplicationId, CompiledConnection, CompiledTool,
    Connection, ConnectionId, DiscoveryMode, Entities, Entity, Entry, MetaTool, Origin,
    PROBLEMS_MAX, Problem, Tenant, TenantId, Tool, ToolListing, ToolsetId, ToolsetKind, check,
    entities, exposed, faults, remarks, upstream_tool,
};
use crate::http;
use crate::settings::Network;

/// Everything a snapshot consists of.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pub(super) views: HashMap<TenantId, HashMap<ClientApplicationId, Arc<View>>>,
    pub(super) former: FormerTools,
    connections: Connections,
    tenants: HashMap<TenantId, Arc<CompiledTenant>>,
    toolsets: HashMap<(TenantId, ToolsetId), Arc<CompiledToolset>>,
    shown: HashMap<ShownKey, Arc<ShownToolset>>,
    lists: HashMap<ListKey, Arc<ToolList>>,
}

#[derive(Debug)]
pub(super) struct KnownConnection {
    entity: Arc<Connection>,
    pub(super) compiled: Arc<CompiledConnection>,
}

/// Connections by tenant and id.
pub(super) type Connections = HashMap<(TenantId, ConnectionId), KnownConnection>;

/// What all views of a tenant share.
#[derive(Debug)]
struct CompiledTenant {
    entity: Arc<Tenant>,
    allowed_origins: Arc<[Box<str>]>,
}

/// Toolsets by their addresses: a list keeps them, so no other can have one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ListKey {
    toolsets: Vec<usize>,
    frame: Frame,
}

impl ListKey {
    fn new(toolsets: &[Arc<ShownToolset>], frame: Frame) -> Self {
        let address = |toolset: &Arc<ShownToolset>| Arc::as_ptr(toolset).addr();
        Self { toolsets: toolsets.iter().map(address).collect(), frame }
    }
}

/// Compiles `entities`; what comes out is only of use where there is no problem.
///
/// `former` are the names and tools that went before this change, which is one from `previous`.
pub(super) fn compile(
    entities: &Entities,
    previous: Option<&Compiled>,
    former: &FormerTools,
    grace: Grace,
) -> (Compiled, Vec<Problem>) {
    let mut problems = check::references(entities);
    if entities.len() > entities::ENTITIES_MAX {
        let message = format!("more than {} entities", entities::ENTITIES_MAX);
        problems.push(Problem::new(&Origin::new("catalog", 0), message));
    }
    let mut compiler =
        Compiler { entities, previous, former, grace, problems, made: Compiled::default() };
    compiler.connections();
    compiler.toolsets();
    compiler.tenants();
    compiler.views();
    let Compiler { made, mut problems, .. } = compiler;
    problems.sort();
    problems.dedup();
    problems.truncate(PROBLEMS_MAX);
    (made, problems)
}

impl Compiled {
    /// All of them, in no order.
    pub(super) fn toolsets(&self) -> impl Iterator<Item = &CompiledToolset> {
        self.toolsets.values().map(|toolset| &**toolset)
    }
}

impl remarks::Compiled for Compiled {
    fn view(&self, tenant: &str, client_application: &str) -> Option<&View> {
        Some(self.views.get(tenant)?.get(client_application)?)
    }

    fn toolset(&self, tenant: &TenantId, id: &ToolsetId) -> Option<&CompiledToolset> {
        Some(self.toolsets.get(&(tenant.clone(), id.clone()))?)
    }
}

struct Compiler<'a> {
    entities: &'a Entities,
    previous: Option<&'a Compiled>,
    former: &'a FormerTools,
    grace: Grace,
    problems: Vec<Problem>,
    made: Compiled,
}

fn report<T: Entity>(entry: &Entry<T>, faults: Vec<String>, problems: &mut Vec<Problem>) {
    let name = entry.value.name();
    let faults = faults.into_iter();
    problems.extend(faults.map(|fault| Problem::new(&entry.origin, format!("{name}: {fault}"))));
}

impl Compiler<'_> {
    fn connections(&mut self) {
        let mut allowances: HashMap<&str, Arc<[Network]>> = HashMap::new();
        for tenant in &self.entities.tenants {
            let networks = tenant.value.egress_allowances.as_slice();
            allowances.insert(tenant.value.id.as_str(), networks.into());
        }
        for entry in &self.entities.connections {
            let entity = &entry.value;
            let key = (entity.tenant.clone(), entity.id.clone());
            let known = self.previous.and_then(|previous| previous.connections.get(&key));
            let allowed = allowances.get(entity.tenant.as_str()).cloned().unwrap_or_default();
            let is_same = |known: &&KnownConnection| {
                Arc::ptr_eq(&known.entity, entity) && known.compiled.egress_allowances == allowed
            };
            let compiled = match known.filter(is_same) {
                Some(known) => Arc::clone(&known.compiled),
                None => match CompiledConnection::compile(entity, allowed) {
                    Ok(compiled) => Arc::new(compiled),
                    Err(faults) => {
                        report(entry, faults, &mut self.problems);
                        continue;
                    }
                },
            };
            let known = KnownConnection { entity: Arc::clone(entity), compiled };
            self.made.connections.insert(key, known);
        }
    }

    fn toolsets(&mut self) {
        let mut tools: HashMap<(&str, &str), Vec<&Entry<Tool>>> = HashMap::new();
        for entry in &self.entities.tools {
            let key = (entry.value.tenant.as_str(), entry.value.toolset.as_str());
            tools.entry(key).or_default().push(entry);
        }
        for entry in &self.entities.toolsets {
            let entity = &entry.value;
            let key = (entity.tenant.clone(), entity.id.clone());
            let before = self.previous.and_then(|previous| previous.toolsets.get(&key));
            let mut faults = faults::of_toolset(entity);
            let known = before.map(|before| (&*before.entity, before.types.as_ref()));
            let types = messages::types(entity, known, &mut faults);
            let definitions = self.entities.definitions.get(&key);
            let behind = Behind::new(entity, &self.made.connections, types.as_ref(), definitions);
            if entity.kind != ToolsetKind::Mcp
                && let Some(connection) = behind.of_toolset().filter(|one| one.has_query())
            {
                faults.push(format!("connection: {}", query_fault(&connection.id)));
            }
            report(entry, faults, &mut self.problems);
            let own = tools.remove(&(entity.tenant.as_str(), entity.id.as_str()));
            let own = own.unwrap_or_default();
            let problems = &mut self.problems;
            let compiled =
                CompiledToolset::compile(entity, behind, &own, before, |entry, faults| {
                    report(entry, faults, problems);
                });
            let former = &mut self.made.former;
            former.keep_tools(self.former, before, &compiled, behind, self.grace);
            self.made.toolsets.insert(key, compiled);
        }
        self.made.former.bound(TOOLS_MAX);
        // Tools of toolsets that are not there: what else is wrong with them is told too.
        for entry in tools.into_values().flatten() {
            let tool = &entry.value;
            if tool.method.is_none() && tool.path.is_empty() {
                // It is meant for a server that says these itself.
                report(entry, upstream_tool::faults_of(tool), &mut self.problems);
                continue;
            }
            let nothing = messages::Backing::nothing(tool);
            if let Err(faults) = CompiledTool::rest(tool, nothing) {
                report(entry, faults, &mut self.problems);
            }
        }
    }

    fn tenants(&mut self) {
        for entry in &self.entities.tenants {
            let entity = &entry.value;
            let known = self.previous.and_then(|previous| previous.tenants.get(&entity.id));
            let compiled = match known.filter(|known| Arc::ptr_eq(&known.entity, entity)) {
                Some(known) => Arc::clone(known),
                None => CompiledTenant::compile(entry, &mut self.problems),
            };
            self.made.tenants.insert(entity.id.clone(), compiled);
        }
    }

    fn views(&mut self) {
        let mut assignments: HashMap<(&str, &str), Vec<&Arc<Assignment>>> = HashMap::new();
        for entry in &self.entities.assignments {
            let assignment = &entry.value;
            report(entry, faults::of_assignment(assignment), &mut self.problems);
            if assignment.enabled {
                let key = (assignment.tenant.as_str(), assignment.client_application.as_str());
                assignments.entry(key).or_default().push(assignment);
            }
        }
        for entry in &self.entities.client_applications {
            let client = &entry.value;
            report(entry, faults::of_client_application(client), &mut self.problems);
            let Some(tenant) = self.made.tenants.get(&client.tenant).cloned() else { continue };
            let assigned = assignments.remove(&(client.tenant.as_str(), client.id.as_str()));
            match self.view(client, &tenant, &assigned.unwrap_or_default()) {
                Ok(view) => {
                    let of_tenant = self.made.views.entry(client.tenant.clone()).or_default();
                    of_tenant.insert(client.id.clone(), view);
                }
                Err(fault) => report(entry, vec![fault], &mut self.problems),
            }
        }
    }

    fn view(
        &mut self,
        client: &Arc<ClientApplication>,
        tenant: &CompiledTenant,
        assigned: &[&Arc<Assignment>],
    ) -> Result<Arc<View>, String> {
        let before =
            self.previous.and_then(|previous| previous.views.get(&client.tenant)?.get(&client.id));
        let frame = Frame {
            dialect: client.schema_dialect,
            budget: client.name_budget.unwrap_or(exposed::NAME_BUDGET),
            listing: client.tool_listing,
            favourites: client.favourites.clone(),
        };
        let (assignments, toolsets) = self.all_shown(client, tenant, assigned, &frame);
        let list = self.list(frame, toolsets, before.map(|before| &*before.list))?;
        let known = self.former.names(&client.tenant, &client.id);
        let former = names_that_went(known, before.map(|before| &before.list), &list, self.grace);
        let inputs = ViewInputs {
            tenant: Arc::clone(&tenant.entity),
            client: Arc::clone(client),
            assignments,
            is_plain: former.is_none(),
        };
        if let Some(before) = before
            && Arc::ptr_eq(&before.list, &list)
            && before.inputs.are_same(&inputs)
        {
            return Ok(Arc::clone(before));
        }
        let deprecated = former.map(|names| {
            self.made.former.keep_names(&client.tenant, &client.id, Arc::clone(&names));
            DeprecatedNames::new(names, &list, &self.made.former, &client.tenant)
        });
        let prompts = prompts(client, &inputs, &list, before);
        let needs_discovery = list.meta_tools().any(|one| one == MetaTool::DiscoverToolSchema);
        let is_searched = client.tool_listing == ToolListing::Search;
        Ok(Arc::new(View {
            tenant: client.tenant.clone(),
            client_application: client.id.clone(),
            title: client.title.as_deref().map(Into::into),
            open: client.open,
            require_session: client.require_session,
            instructions: instructions(client, &prompts, needs_discovery, is_searched),
            allowed_origins: Arc::clone(&tenant.allowed_origins),
            sessions_max: tenant.entity.sessions_max,
            dialect: client.schema_dialect,
            tool_listing: client.tool_listing,
            tenant_limits: tenant.entity.limits,
            limits: client.limits,
            caller_limits: client.caller_limits,
            list,
            prompts,
            deprecated,
            inputs,
        }))
    }

    /// What is assigned and there, with each toolset as it is shown: by the toolsets' ids, so that the
    /// same ones are the same list, in whatever order they were assigned.
    fn all_shown(
        &mut self,
        client: &ClientApplication,
        tenant: &CompiledTenant,
        assigned: &[&Arc<Assignment>],
        frame: &Frame,
    ) -> (Vec<Arc<Assignment>>, Vec<Arc<ShownToolset>>) {
        let mut by_toolset: BTreeMap<&str, (&Arc<Assignment>, Arc<ShownToolset>)> = BTreeMap::new();
        for &assignment in assigned {
            if let Some(shown) = self.shown(client, tenant, assignment, frame) {
                by_toolset.insert(assignment.toolset.as_str(), (assignment, shown));
            }
        }
        by_toolset.into_values().map(|(assignment, shown)| (Arc::clone(assignment), shown)).unzip()
    }

    /// A toolset as the client application is shown it; `None` where there is no such toolset.
    fn shown(
        &mut self,
        client: &ClientApplication,
        tenant: &CompiledTenant,
        assignment: &Assignment,
        frame: &Frame,
    ) -> Option<Arc<ShownToolset>> {
        let toolset =
            self.made.toolsets.get(&(client.tenant.clone(), assignment.toolset.clone()))?;
        let discovery: DiscoveryMode =
            assignment.discovery_mode.unwrap_or(toolset.entity.discovery_mode);
        let key = ShownKey {
            tenant: client.tenant.clone(),
            toolset: assignment.toolset.clone(),
            setting: Setting { dialect: frame.dialect, discovery, budget: frame.budget },
            policies: Policies {
                client_application: client.policy.clone(),
                assignment: assignment.policy.clone(),
                default_deny: tenant.entity.default_deny,
            },
        };
        if let Some(shown) = self.made.shown.get(&key) {
            return Some(Arc::clone(shown));
        }
        let before = self.previous.and_then(|previous| previous.shown.get(&key));
        let shown = ShownToolset::compile(&key, toolset, before);
        self.made.shown.insert(key, Arc::clone(&shown));
        Some(shown)
    }

    fn list(
        &mut self,
        frame: Frame,
        toolsets: Vec<Arc<ShownToolset>>,
        before: Option<&ToolList>,
    ) -> Result<Arc<ToolList>, String> {
        let key = ListKey::new(&toolsets, frame);
        let known = self.made.lists.get(&key);
        let known = known.or_else(|| self.previous.and_then(|previous| previous.lists.get(&key)));
        if let Some(list) = known {
            let list = Arc::clone(list);
            self.made.lists.insert(key, Arc::clone(&list));
            return Ok(list);
        }
        let list = ToolList::compile(&key.frame, toolsets, before).map_err(|stuck| {
            let shown =
                |tool: &Arc<super::ViewTool>| format!("{}/{}", tool.toolset, tool.source_name);
            let tools: Vec<String> = stuck.iter().take(4).map(shown).collect();
            let tools = tools.join("`, `");
            format!("its tools `{tools}` cannot be given different names: rename one")
        })?;
        let list = Arc::new(list);
        self.made.lists.insert(key, Arc::clone(&list));
        Ok(list)
    }
}

/// The prompts of a view; those before where they are the same.
fn prompts(
    client: &ClientApplication,
    inputs: &ViewInputs,
    list: &ToolList,
    before: Option<&Arc<View>>,
) -> Arc<PromptList> {
    let parts = inputs.assignments.iter().map(|assignment| &**assignment);
    let assigned = parts.zip(list.toolsets.iter().map(|shown| &**shown));
    let before = before.map(|before| &before.prompts);
    let prompts = PromptList::compile(client, assigned, before.map(|before| &**before));
    match before.filter(|before| before.is_of(&prompts)) {
        Some(before) => Arc::clone(before),
        None => Arc::new(prompts),
    }
}

impl CompiledTenant {
    fn compile(entry: &Entry<Tenant>, problems: &mut Vec<Problem>) -> Arc<Self> {
        let entity = &entry.value;
        let mut faults = faults::of_tenant(entity);
        let mut origins = Vec::new();
        for text in &entity.allowed_origins {
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
        Arc::new(Self { entity: Arc::clone(entity), allowed_origins: origins.into() })
    }
}
