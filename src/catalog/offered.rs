//! What an upstream MCP server offers, made ready for the toolset it is behind.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use super::offer::Offer;
use super::toolset::CompiledToolset;
use super::upstream_tool::faults_of;
use super::{
    CompiledConnection, CompiledTool, DefinitionKind, Definitions, Entry, Tool, Toolset,
    UpstreamServer, names,
};

/// Of a server that has not been asked yet.
static NOTHING: LazyLock<Arc<Definitions>> = LazyLock::new(Arc::default);

/// What a server is known to offer; nothing where that is not known.
pub(super) fn known(definitions: Option<&Arc<Definitions>>) -> &Arc<Definitions> {
    definitions.unwrap_or(&NOTHING)
}

/// The prompts and resources of a server.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) server: Arc<UpstreamServer>,
    pub(super) prompts: Vec<Arc<Offer>>,
    pub(super) resources: Vec<Arc<Offer>>,
    pub(super) templates: Vec<Arc<Offer>>,
    /// What of it is left out, and why.
    notes: Vec<Box<str>>,
}

impl Offered {
    /// Takes over what is in `previous` already, and is it where nothing is new.
    pub(super) fn compile(
        entity: &Toolset,
        connection: &Arc<CompiledConnection>,
        definitions: &Arc<Definitions>,
        previous: Option<&Arc<Self>>,
    ) -> Arc<Self> {
        let is_same = |known: &&Arc<Self>| {
            let server = &known.server;
            Arc::ptr_eq(&server.connection, connection)
                && Arc::ptr_eq(&server.definitions, definitions)
                && server.settings == entity.upstream
        };
        if let Some(known) = previous.filter(is_same) {
            return Arc::clone(known);
        }
        let server = Arc::new(UpstreamServer {
            tenant: entity.tenant.clone(),
            toolset: entity.id.clone(),
            connection: Arc::clone(connection),
            settings: entity.upstream.clone(),
            definitions: Arc::clone(definitions),
        });
        let mut notes = Vec::new();
        let mut of = |kind: DefinitionKind| {
            let all = definitions.all.iter().filter(|definition| definition.kind == kind);
            let mut offers: Vec<Arc<Offer>> = all
                .filter_map(|definition| match Offer::compile(definition) {
                    Ok(offer) => Some(Arc::new(offer)),
                    Err(fault) => {
                        let name = names::shortened(&definition.name);
                        let what = kind_word(kind);
                        notes.push(format!("the {what} {name:?} is left out: {fault}").into());
                        None
                    }
                })
                .collect();
            offers.sort_by(|one, other| one.key.cmp(&other.key));
            offers.dedup_by(|one, other| one.key == other.key);
            offers
        };
        Arc::new(Self {
            prompts: of(DefinitionKind::Prompt),
            resources: of(DefinitionKind::Resource),
            templates: of(DefinitionKind::ResourceTemplate),
            server,
            notes,
        })
    }
}

fn kind_word(kind: DefinitionKind) -> &'static str {
    match kind {
        DefinitionKind::Tool => "tool",
        DefinitionKind::Prompt => "prompt",
        DefinitionKind::Resource => "resource",
        DefinitionKind::ResourceTemplate => "resource template",
    }
}

/// A toolset of kind `mcp`.
#[derive(Debug)]
pub(super) struct OfUpstream {
    pub(super) offered: Arc<Offered>,
    /// What an operator says otherwise, in the order it was written.
    overrides: Vec<Arc<Tool>>,
    /// What of the server is left out, and why.
    pub(super) notes: Vec<Box<str>>,
}

impl OfUpstream {
    /// Whether it would come out the same.
    pub(super) fn is_of(&self, offered: &Arc<Offered>, overrides: &[Arc<Tool>]) -> bool {
        Arc::ptr_eq(&self.offered, offered) && super::toolset::are_same(&self.overrides, overrides)
    }

    /// The tools of a server, with what an operator says otherwise of them.
    pub(super) fn compile(
        offered: Arc<Offered>,
        overrides: Vec<Arc<Tool>>,
        previous: Option<&Arc<CompiledToolset>>,
    ) -> (Self, Vec<Arc<CompiledTool>>) {
        let said: HashMap<&str, &Arc<Tool>> =
            overrides.iter().map(|tool| (tool.name.as_str(), tool)).collect();
        let mut notes = offered.notes.clone();
        let mut tools = Vec::new();
        let server = &offered.server;
        let definitions = server.definitions.all.iter();
        for definition in definitions.filter(|one| one.kind == DefinitionKind::Tool) {
            let said = said.get(&*definition.name).copied();
            if said.is_some_and(|tool| !tool.enabled) {
                continue;
            }
            let known = previous.and_then(|previous| previous.tool_named(&definition.name));
            let known = known.filter(|known| known.is_of_upstream(server, definition, said));
            if let Some(known) = known {
                tools.push(Arc::clone(known));
                continue;
            }
            match CompiledTool::upstream(server, definition, said) {
                Ok(tool) => tools.push(Arc::new(tool)),
                Err(fault) => {
                    let name = names::shortened(&definition.name);
                    notes.push(format!("the tool {name:?} is left out: {fault}").into());
                }
            }
        }
        (Self { offered, overrides, notes }, tools)
    }
}

/// The overrides that are good; what is wrong with the others goes to `report`.
pub(super) fn overrides<'a>(
    tools: &[&'a Entry<Tool>],
    known: Option<&OfUpstream>,
    report: &mut impl FnMut(&'a Entry<Tool>, Vec<String>),
) -> Vec<Arc<Tool>> {
    let known: HashSet<*const Tool> =
        known.iter().flat_map(|known| &known.overrides).map(Arc::as_ptr).collect();
    let is_known = |tool: &Arc<Tool>| known.contains(&Arc::as_ptr(tool));
    let mut good = Vec::with_capacity(tools.len());
    for entry in tools {
        let faults = if is_known(&entry.value) { Vec::new() } else { faults_of(&entry.value) };
        if faults.is_empty() {
            good.push(Arc::clone(&entry.value));
        } else {
            report(entry, faults);
        }
    }
    good
}
