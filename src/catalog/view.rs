//! What one client application sees.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::tool::SHAPES;
use super::{ClientApplicationId, CompiledTool, Limits, TenantId, ToolName, ToolShape};

/// What one client application of a tenant sees.
#[derive(Debug)]
pub struct View {
    /// Whose it is.
    pub tenant: TenantId,
    /// Who sees it.
    pub client_application: ClientApplicationId,
    /// For people.
    pub title: Option<Box<str>>,
    /// Whether it may be used without a key.
    pub open: bool,
    /// Whether requests need a session; the setting where `None`.
    pub require_session: Option<bool>,
    /// What `initialize` tells the model.
    pub instructions: Option<Box<str>>,
    /// Origins whose pages may call besides those in settings.
    pub allowed_origins: Arc<[Box<str>]>,
    /// Most sessions of the tenant; the setting where `None`.
    pub sessions_max: Option<u32>,
    /// What all client applications of the tenant together may use.
    pub tenant_limits: Limits,
    /// What all its callers together may use.
    pub limits: Limits,
    /// What each of its callers may use.
    pub caller_limits: Limits,
    pub(super) list: Arc<ToolList>,
}

impl View {
    /// The tools, in the order of their names.
    pub fn tools(&self) -> &[Arc<CompiledTool>] {
        &self.list.tools
    }

    /// The tool clients call by that name.
    pub fn tool(&self, name: &str) -> Option<&Arc<CompiledTool>> {
        self.list.places.get(name).map(|place| &self.list.tools[*place as usize])
    }

    /// The finished result of `tools/list` in one page: `{"tools":[…]}`.
    pub fn tools_list(&self, shape: ToolShape) -> &Arc<[u8]> {
        &self.list.results[shape.place()]
    }

    pub(super) fn lists_the_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.list, &other.list) || self.list.results == other.list.results
    }
}

/// The tools of some toolsets together: one for all client applications that have these toolsets.
#[derive(Debug)]
pub(super) struct ToolList {
    tools: Vec<Arc<CompiledTool>>,
    places: HashMap<ToolName, u32>,
    results: [Arc<[u8]>; SHAPES],
}

/// Two toolsets that have tools of the same name.
#[derive(Debug)]
pub(super) struct Collision {
    /// The places of both.
    pub(super) toolsets: (usize, usize),
    name: ToolName,
    count: usize,
}

impl Collision {
    pub(super) fn describe<'a>(&self, id: impl Fn(usize) -> &'a str) -> String {
        let (one, other) = (id(self.toolsets.0), id(self.toolsets.1));
        let more = match self.count {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        format!(
            "its toolsets `{one}` and `{other}` both have a tool `{}`{more}: rename one, or \
             assign one of the toolsets only",
            self.name
        )
    }
}

impl ToolList {
    /// Merges the tools of the toolsets at `places`.
    pub(super) fn compile(
        places: &[usize],
        toolsets: &[Vec<Arc<CompiledTool>>],
    ) -> Result<Self, Vec<Collision>> {
        let mut all: Vec<(usize, &Arc<CompiledTool>)> = places
            .iter()
            .flat_map(|place| toolsets[*place].iter().map(move |tool| (*place, tool)))
            .collect();
        // Stable, and a merge of runs that are sorted already.
        all.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        let collisions = collisions(&all);
        if !collisions.is_empty() {
            return Err(collisions);
        }
        let tools: Vec<Arc<CompiledTool>> =
            all.into_iter().map(|(_, tool)| Arc::clone(tool)).collect();
        let places = tools.iter().zip(0..).map(|(tool, place)| (tool.name.clone(), place));
        let oldest = result(&tools, 0);
        let middle = later_result(&tools, 1, &oldest);
        let newest = later_result(&tools, 2, &middle);
        Ok(Self { places: places.collect(), tools, results: [oldest, middle, newest] })
    }
}

/// One collision for each pair of toolsets. Tools of one name within a toolset are duplicates,
/// which are reported as such.
fn collisions(sorted: &[(usize, &Arc<CompiledTool>)]) -> Vec<Collision> {
    let mut found: BTreeMap<(usize, usize), Collision> = BTreeMap::new();
    for pair in sorted.windows(2) {
        let [(one, tool), (other, next)] = pair else { continue };
        if tool.name == next.name && one != other {
            let toolsets = (*one, *other);
            let fresh = || Collision { toolsets, name: tool.name.clone(), count: 0 };
            found.entry(toolsets).or_insert_with(fresh).count += 1;
        }
    }
    found.into_values().collect()
}

/// The bytes of one shape, or the ones of the shape before where no tool differs.
fn later_result(tools: &[Arc<CompiledTool>], place: usize, before: &Arc<[u8]>) -> Arc<[u8]> {
    if tools.iter().all(|tool| tool.is_alike(place, place - 1)) {
        Arc::clone(before)
    } else {
        result(tools, place)
    }
}

fn result(tools: &[Arc<CompiledTool>], place: usize) -> Arc<[u8]> {
    const HEAD: &[u8] = b"{\"tools\":[";
    const TAIL: &[u8] = b"]}";
    let entries: usize = tools.iter().map(|tool| tool.fragment_at(place).len() + 1).sum();
    let mut out = Vec::with_capacity(HEAD.len() + entries + TAIL.len());
    out.extend_from_slice(HEAD);
    for (index, tool) in tools.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(tool.fragment_at(place));
    }
    out.extend_from_slice(TAIL);
    Arc::from(out)
}
