//! The tools of a view together: names made unique, the list put in order.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::exposed::{self, Wanting};
use super::fragment::{Fragment, SHAPES};
use super::search::{self, SearchIndex, SearchText};
use super::shown::{ShownToolset, ViewTool, name_hash};
use super::{
    CompiledTool, DiscoveryMode, MetaTool, ToolListing, ToolName, ToolPattern, ToolShape, ToolsetId,
};
use crate::mapping::Dialect;

/// How a client application is shown its tools.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    pub(super) dialect: Dialect,
    pub(super) budget: u8,
    pub(super) listing: ToolListing,
    pub(super) favourites: Vec<ToolPattern>,
}

/// The tools of some toolsets together: one for all client applications that are shown the same.
#[derive(Debug)]
pub(super) struct ToolList {
    /// By their ids.
    pub(super) toolsets: Vec<Arc<ShownToolset>>,
    /// Visible ones, by name.
    pub(super) tools: Vec<Arc<ViewTool>>,
    /// Those every call of which is denied, by name.
    pub(super) hidden: Vec<Arc<ViewTool>>,
    table: NameTable,
    meta_tools: Vec<(MetaTool, Fragment)>,
    /// Favourites, where the list is not that of all tools.
    favourites: Option<Vec<Arc<ViewTool>>>,
    /// Tools whose names others wanted too.
    renamed: Vec<Arc<ViewTool>>,
    pub(super) logs_payloads: bool,
    /// Whether shapes with titles differ.
    has_shapes: bool,
    results: [OnceLock<Arc<[u8]>>; SHAPES],
    search: OnceLock<SearchIndex>,
}

/// A list up to this size is put together wherever it is asked for.
const AT_HAND_BYTES_MAX: usize = 128 * 1024;

/// An entry of `tools/list`.
#[derive(Debug, Clone, Copy)]
pub struct ListEntry<'a> {
    name: &'a str,
    fragment: &'a Fragment,
}

impl<'a> ListEntry<'a> {
    /// What clients call the tool by.
    pub fn name(self) -> &'a str {
        self.name
    }

    /// A JSON object.
    pub fn fragment(self, shape: ToolShape) -> &'a [u8] {
        self.fragment.bytes(shape)
    }
}

impl ToolList {
    /// Merges the tools of `toolsets`, which are in the order of their ids.
    ///
    /// # Errors
    /// Tools that cannot be told apart.
    pub(super) fn compile(
        frame: &Frame,
        toolsets: Vec<Arc<ShownToolset>>,
        previous: Option<&Self>,
    ) -> Result<Self, Vec<Arc<ViewTool>>> {
        let amended = previous.and_then(|previous| previous.amended(&toolsets));
        let Ordered { tools, hidden, renamed } = match amended {
            Some(ordered) => ordered,
            None => ordered(&toolsets, frame.budget, previous)?,
        };
        let favourites = match frame.listing {
            ToolListing::List => None,
            ToolListing::Search => Some(favourites(&tools, &frame.favourites)),
        };
        let listed = favourites.as_ref().unwrap_or(&tools);
        for tool in listed {
            // Written now, off the cores.
            tool.entry();
        }
        let has_shapes = listed.iter().any(|tool| tool.entry().has_shapes());
        let mut meta_tools: Vec<MetaTool> = Vec::new();
        if favourites.is_some() {
            meta_tools.extend(MetaTool::SEARCH);
        }
        if listed.iter().any(|tool| tool.discovery != DiscoveryMode::Full) {
            meta_tools.push(MetaTool::DiscoverToolSchema);
        }
        let meta_tools = meta_tools
            .into_iter()
            .map(|meta_tool| (meta_tool, Fragment::of_meta_tool(meta_tool, frame.dialect)))
            .collect();
        Ok(Self {
            table: NameTable::new(&tools),
            logs_payloads: tools.iter().any(|tool| tool.log_payloads),
            toolsets,
            tools,
            hidden,
            meta_tools,
            favourites,
            renamed,
            has_shapes,
            results: Default::default(),
            search: OnceLock::new(),
        })
    }

    /// The tools of `toolsets` in order, made from this list, which has the most of them; `None`
    /// where it has not, or where names may collide. A change of one tool takes no sorting.
    fn amended(&self, toolsets: &[Arc<ShownToolset>]) -> Option<Ordered> {
        if !self.renamed.is_empty() {
            return None;
        }
        let (before, now) = (only_in(&self.toolsets, toolsets), only_in(toolsets, &self.toolsets));
        let gone = addresses(before.difference(&now));
        let come = addresses(now.difference(&before));
        if gone.len() + come.len() > AMENDED_MAX {
            return None;
        }
        let stays = |tool: &&Arc<ViewTool>| gone.binary_search(&Arc::as_ptr(tool).addr()).is_err();
        let mut tools: Vec<Arc<ViewTool>> = Vec::with_capacity(self.tools.len() + come.len());
        tools.extend(self.tools.iter().filter(stays).cloned());
        let mut hidden: Vec<Arc<ViewTool>> = self.hidden.iter().filter(stays).cloned().collect();
        let all = toolsets.iter().flat_map(|toolset| &toolset.tools);
        for tool in all.filter(|tool| come.binary_search(&Arc::as_ptr(tool).addr()).is_ok()) {
            let place = |list: &[Arc<ViewTool>]| {
                list.binary_search_by(|other| other.name.cmp(&tool.name)).err()
            };
            let (visible_at, hidden_at) = (place(&tools)?, place(&hidden)?);
            if is_reserved(tool.name.as_str()) {
                return None;
            }
            if tool.permission.is_denied() {
                hidden.insert(hidden_at, Arc::clone(tool));
            } else {
                tools.insert(visible_at, Arc::clone(tool));
            }
        }
        Some(Ordered { tools, hidden, renamed: Vec::new() })
    }

    /// The visible tool of that name.
    pub(super) fn tool(&self, name: &str) -> Option<&Arc<ViewTool>> {
        self.table.find(name, &self.tools)
    }

    /// The hidden tool of that name.
    pub(super) fn hidden_tool(&self, name: &str) -> Option<&Arc<ViewTool>> {
        let place = self.hidden.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok()?;
        self.hidden.get(place)
    }

    /// The toolset with that id, as it is shown.
    pub(super) fn toolset(&self, id: &ToolsetId) -> Option<&Arc<ShownToolset>> {
        let place = self.toolsets.binary_search_by(|shown| shown.key.toolset.cmp(id)).ok()?;
        self.toolsets.get(place)
    }

    /// Visible tools whose names `newer` may not have. A toolset that is shown in the very same way
    /// has the same names, unless others want them.
    pub(super) fn may_be_gone_in<'a>(
        &'a self,
        newer: &'a Self,
    ) -> impl Iterator<Item = &'a Arc<ViewTool>> {
        let all = !self.renamed.is_empty() || !newer.renamed.is_empty();
        let is_another = |shown: &&Arc<ShownToolset>| {
            let now = newer.toolset(&shown.key.toolset);
            now.is_none_or(|now| !Arc::ptr_eq(now, shown))
        };
        let changed = self.toolsets.iter().filter(move |shown| !all && is_another(shown));
        let of_changed =
            changed.flat_map(|shown| &shown.tools).filter(|tool| !tool.permission.is_denied());
        self.tools.iter().filter(move |_| all).chain(of_changed)
    }

    pub(super) fn meta_tools(&self) -> impl Iterator<Item = MetaTool> + '_ {
        self.meta_tools.iter().map(|(meta_tool, _)| *meta_tool)
    }

    /// The listed tool of that name.
    pub(super) fn listed_tool(&self, name: &str) -> Option<&Arc<ViewTool>> {
        let tool = self.tool(name)?;
        let is_listed = match &self.favourites {
            None => true,
            Some(favourites) => favourites.iter().any(|one| Arc::ptr_eq(one, tool)),
        };
        is_listed.then_some(tool)
    }

    fn listed(&self) -> &[Arc<ViewTool>] {
        self.favourites.as_ref().unwrap_or(&self.tools)
    }

    /// How many entries the list has.
    pub(super) fn len(&self) -> usize {
        self.meta_tools.len() + self.listed().len()
    }

    /// Meta tools come first, then tools by name.
    pub(super) fn entry(&self, place: usize) -> Option<ListEntry<'_>> {
        if let Some((meta_tool, fragment)) = self.meta_tools.get(place) {
            return Some(ListEntry { name: meta_tool.name(), fragment });
        }
        let tool = self.listed().get(place - self.meta_tools.len())?;
        Some(ListEntry { name: tool.name.as_str(), fragment: tool.entry() })
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = ListEntry<'_>> + Clone {
        (0..self.len()).filter_map(|place| self.entry(place))
    }

    /// Whether that result is there, or is put together in no time.
    pub(super) fn is_result_at_hand(&self, shape: ToolShape) -> bool {
        let mut left = AT_HAND_BYTES_MAX;
        let mut is_small = || {
            self.entries().all(|entry| match left.checked_sub(entry.fragment(shape).len()) {
                Some(rest) => {
                    left = rest;
                    true
                }
                None => false,
            })
        };
        self.results[self.place(shape)].get().is_some() || is_small()
    }

    /// Shapes that do not differ have one result.
    fn place(&self, shape: ToolShape) -> usize {
        if self.has_shapes { shape.place() } else { shape.plain().place() }
    }

    /// The finished result of `tools/list` in one page.
    pub(super) fn result(&self, shape: ToolShape) -> &Arc<[u8]> {
        self.results[self.place(shape)].get_or_init(|| {
            let fragments = self.entries().map(|entry| entry.fragment(shape));
            result("tools", fragments)
        })
    }

    /// Where the visible tools are found by words: made at first use.
    pub(super) fn search(&self) -> &SearchIndex {
        self.search.get_or_init(|| {
            SearchIndex::build(self.tools.iter().map(|tool| SearchText {
                name: tool.name.as_str(),
                title: tool.title.as_deref(),
                description: &tool.description,
                toolset: tool.toolset.as_str(),
                fields: search::schema_fields(tool.input_schema()),
            }))
        })
    }

    /// Whether clients of every revision see the same list.
    pub(super) fn shows_the_same(&self, other: &Self) -> bool {
        if self.len() != other.len() || self.meta_tools.len() != other.meta_tools.len() {
            return false;
        }
        let meta_tools = self.meta_tools.iter().zip(&other.meta_tools);
        let tools = self.listed().iter().zip(other.listed());
        meta_tools.into_iter().all(|((_, one), (_, other))| one.shows_the_same(other))
            && tools.into_iter().all(|(one, other)| {
                Arc::ptr_eq(one, other)
                    || Arc::ptr_eq(one.entry(), other.entry())
                    || one.entry().shows_the_same(other.entry())
            })
    }
}

/// `{"<member>":[…]}`.
pub(super) fn result<'a>(
    member: &str,
    fragments: impl Iterator<Item = &'a [u8]> + Clone,
) -> Arc<[u8]> {
    let entries: usize = fragments.clone().map(|fragment| fragment.len() + 1).sum();
    let mut out = Vec::with_capacity(member.len() + entries + 8);
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(member.as_bytes());
    out.extend_from_slice(b"\":[");
    for (index, fragment) in fragments.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(fragment);
    }
    out.extend_from_slice(b"]}");
    Arc::from(out)
}

/// Tools by their names.
struct Ordered {
    tools: Vec<Arc<ViewTool>>,
    hidden: Vec<Arc<ViewTool>>,
    /// Those that got another name because others want theirs.
    renamed: Vec<Arc<ViewTool>>,
}

/// Tools that may come and go for a list to be made from the one before; above it, sorting is as
/// quick.
const AMENDED_MAX: usize = 64;

/// The tools of toolsets that `others` does not have, by their addresses.
fn only_in(toolsets: &[Arc<ShownToolset>], others: &[Arc<ShownToolset>]) -> HashSet<usize> {
    let others: HashSet<_> = others.iter().map(Arc::as_ptr).collect();
    let own = toolsets.iter().filter(|toolset| !others.contains(&Arc::as_ptr(toolset)));
    own.flat_map(|toolset| &toolset.tools).map(|tool| Arc::as_ptr(tool).addr()).collect()
}

/// In order, to be searched.
fn addresses<'a>(of: impl Iterator<Item = &'a usize>) -> Vec<usize> {
    let mut addresses: Vec<usize> = of.copied().collect();
    addresses.sort_unstable();
    addresses
}

/// The tools of all toolsets in order.
///
/// # Errors
/// Tools that cannot be told apart.
fn ordered(
    toolsets: &[Arc<ShownToolset>],
    budget: u8,
    previous: Option<&ToolList>,
) -> Result<Ordered, Vec<Arc<ViewTool>>> {
    let count = toolsets.iter().map(|toolset| toolset.tools.len()).sum();
    let mut all: Vec<Arc<ViewTool>> = Vec::with_capacity(count);
    all.extend(toolsets.iter().flat_map(|toolset| toolset.tools.iter().cloned()));
    // Stable, and a merge of runs that are sorted already.
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let mut renamed = Vec::new();
    if has_collisions(&all) {
        let known = previous.map_or(&[][..], |previous| &previous.renamed);
        renamed = tell_apart(&mut all, budget, known)?;
        all.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let (hidden, tools) = all.into_iter().partition(|tool| tool.permission.is_denied());
    Ok(Ordered { tools, hidden, renamed })
}

fn is_reserved(name: &str) -> bool {
    MetaTool::by_name(name).is_some()
}

fn has_collisions(sorted: &[Arc<ViewTool>]) -> bool {
    let is_twice = sorted.windows(2).any(|pair| match pair {
        [one, other] => one.name == other.name,
        _ => false,
    });
    is_twice
        || MetaTool::ALL.iter().any(|meta_tool| {
            sorted.binary_search_by(|tool| tool.name.as_str().cmp(meta_tool.name())).is_ok()
        })
}

/// Gives other names to tools that want one name. Gives back those that got another one.
fn tell_apart(
    all: &mut [Arc<ViewTool>],
    budget: u8,
    known: &[Arc<ViewTool>],
) -> Result<Vec<Arc<ViewTool>>, Vec<Arc<ViewTool>>> {
    let wanting: Vec<Wanting<'_>> = all
        .iter()
        .map(|tool| Wanting {
            toolset: tool.toolset.as_str(),
            operation: tool.source_name.as_str(),
            name: tool.wanted_name(),
        })
        .collect();
    let names = match exposed::resolve(&wanting, budget, is_reserved) {
        Ok(names) => names,
        Err(places) => {
            let stuck = places.into_iter().filter_map(|place| all.get(place).cloned());
            return Err(stuck.collect());
        }
    };
    let known: HashMap<(&ToolName, *const CompiledTool), &Arc<ViewTool>> =
        known.iter().map(|tool| ((&tool.name, Arc::as_ptr(&tool.tool)), tool)).collect();
    let mut renamed = Vec::new();
    for (tool, name) in all.iter_mut().zip(names) {
        if tool.name == name {
            continue;
        }
        let before = known.get(&(&name, Arc::as_ptr(&tool.tool))).filter(|known| {
            known.discovery == tool.discovery && known.permission == tool.permission
        });
        *tool = match before {
            Some(known) => Arc::clone(known),
            None => Arc::new(tool.renamed(name)),
        };
        renamed.push(Arc::clone(tool));
    }
    Ok(renamed)
}

fn favourites(tools: &[Arc<ViewTool>], patterns: &[ToolPattern]) -> Vec<Arc<ViewTool>> {
    let is_one = |tool: &&Arc<ViewTool>| {
        let (toolset, operation) = (tool.toolset.as_str(), tool.source_name.as_str());
        patterns.iter().any(|pattern| pattern.matches(toolset, operation))
    };
    tools.iter().filter(is_one).cloned().collect()
}

/// Finds tools by name: open addressing over their places, at most half full. A list of thousands
/// has it in a few pages of memory.
#[derive(Debug)]
struct NameTable {
    /// A place plus one; nothing where 0.
    slots: Box<[u32]>,
}

impl NameTable {
    fn new(tools: &[Arc<ViewTool>]) -> Self {
        let mut slots = vec![0_u32; (tools.len() * 2).next_power_of_two()].into_boxed_slice();
        let mask = slots.len() - 1;
        for (tool, place) in tools.iter().zip(1_u32..) {
            let mut slot = tool.name_hash() as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = place;
        }
        Self { slots }
    }

    fn find<'a>(&self, name: &str, tools: &'a [Arc<ViewTool>]) -> Option<&'a Arc<ViewTool>> {
        let hash = name_hash(name);
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let tool = tools.get(self.slots[slot].checked_sub(1)? as usize)?;
            if tool.name_hash() == hash && tool.name.as_str() == name {
                return Some(tool);
            }
            slot = (slot + 1) & mask;
        }
    }
}
