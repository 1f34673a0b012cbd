//! The prompts, resources and resource templates of all upstream servers of a view.
//!
//! Invariants:
//! - a prompt keeps its name where nobody else in the view wants it; where several want one, none
//!   gets it: each takes its toolset in front, and where that does not help a hash at its end. The
//!   appliance's own prompts keep theirs;
//! - resources keep their URIs, which clients hold on to and servers look up: of two servers with one
//!   URI the one of the first toolset has it;
//! - neither depends on the order of anything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use super::offer::{Offer, is_own};
use super::offered::Offered;
use super::prompts::EffectivePrompt;
use super::schema_hash::{hexadecimal, text_hash};
use super::{ToolShape, ToolsetId, UpstreamPrompt, UpstreamServer, names};

/// Hexadecimal digits of a hash at a name's end.
const TAIL_DIGITS: usize = 8;
/// How often a prompt is given another name before it is given up.
const TRIES_MAX: u8 = 2;

static NOTHING: LazyLock<Arc<Offers>> = LazyLock::new(Arc::default);

/// A prompt of an upstream server in a view.
#[derive(Debug)]
pub struct OfferedPrompt {
    /// The prompt itself.
    pub prompt: UpstreamPrompt,
    offer: Arc<Offer>,
}

impl OfferedPrompt {
    /// Writes its entry of `prompts/list`.
    pub fn write(&self, out: &mut Vec<u8>, shape: ToolShape) {
        self.offer.write(out, &self.prompt.name, shape);
    }
}

/// A resource, or a resource template, of an upstream server.
#[derive(Debug)]
pub struct OfferedResource {
    /// Whose it is.
    pub server: Arc<UpstreamServer>,
    offer: Arc<Offer>,
}

impl OfferedResource {
    /// Its URI, or its URI template.
    pub fn uri(&self) -> &str {
        &self.offer.key
    }

    /// Writes its entry of a list.
    pub fn write(&self, out: &mut Vec<u8>, shape: ToolShape) {
        self.offer.write(out, &self.offer.key, shape);
    }
}

/// Everything that upstream servers offer to a view besides tools.
#[derive(Debug, Default)]
pub(super) struct Offers {
    sources: Vec<Arc<Offered>>,
    /// Names of the appliance's own prompts.
    taken: Vec<ToolsetId>,
    /// In the order of their toolsets.
    pub(super) servers: Vec<Arc<UpstreamServer>>,
    /// By name.
    pub(super) prompts: Vec<OfferedPrompt>,
    /// By URI.
    pub(super) resources: Vec<OfferedResource>,
    /// By template.
    pub(super) templates: Vec<OfferedResource>,
    /// Places of templates, those that say the most first.
    matching: Vec<usize>,
    /// What is left out, and why.
    pub(super) notes: Vec<String>,
}

impl Offers {
    /// Puts together what servers offer, which are in the order of their toolsets; is `before` where
    /// that came of the same.
    pub(super) fn compile(
        sources: Vec<Arc<Offered>>,
        own: &[EffectivePrompt],
        before: Option<&Arc<Self>>,
    ) -> Arc<Self> {
        if sources.is_empty() {
            return Arc::clone(&NOTHING);
        }
        let is_same = |before: &&Arc<Self>| {
            super::toolset::are_same(&before.sources, &sources)
                && before.taken.iter().eq(own.iter().map(|prompt| &prompt.name))
        };
        if let Some(before) = before.filter(is_same) {
            return Arc::clone(before);
        }
        let mut notes = Vec::new();
        let taken: Vec<ToolsetId> = own.iter().map(|prompt| prompt.name.clone()).collect();
        let prompts = prompts(&sources, &taken, &mut notes);
        let resources = merged(&sources, |source| &source.resources, "resource", &mut notes);
        let templates =
            merged(&sources, |source| &source.templates, "resource template", &mut notes);
        // Ties go by toolset: what is sorted is sorted by template, so toolsets are compared too.
        let literal_bytes = |place: &usize| {
            let template = templates.get(*place);
            let said = template.and_then(|one| one.offer.template.as_ref());
            let toolset = template.map(|one| one.server.toolset.clone());
            (std::cmp::Reverse(said.map_or(0, |said| said.literal_bytes)), toolset)
        };
        let mut matching: Vec<usize> = (0..templates.len()).collect();
        matching.sort_by_cached_key(literal_bytes);
        Arc::new(Self {
            servers: sources.iter().map(|source| Arc::clone(&source.server)).collect(),
            sources,
            taken,
            prompts,
            resources,
            templates,
            matching,
            notes,
        })
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&OfferedPrompt> {
        let place = self.prompts.binary_search_by(|one| (*one.prompt.name).cmp(name)).ok()?;
        self.prompts.get(place)
    }

    /// The server that lists the resource, or the template that says the most of those that may be
    /// the URI's.
    pub(super) fn of_resource(&self, uri: &str) -> Option<&Arc<UpstreamServer>> {
        if let Ok(place) = self.resources.binary_search_by(|one| one.uri().cmp(uri)) {
            return self.resources.get(place).map(|one| &one.server);
        }
        // A template that begins with an expression may be any URI.
        if is_own(uri) {
            return None;
        }
        let mut templates = self.matching.iter().filter_map(|place| self.templates.get(*place));
        let may_be = |one: &&OfferedResource| {
            one.offer.template.as_ref().is_some_and(|template| template.may_be(uri))
        };
        templates.find(may_be).map(|one| &one.server)
    }

    pub(super) fn of_template(&self, template: &str) -> Option<&Arc<UpstreamServer>> {
        let place = self.templates.binary_search_by(|one| one.uri().cmp(template)).ok()?;
        self.templates.get(place).map(|one| &one.server)
    }

    /// Whether clients of every revision see the same prompts.
    pub(super) fn has_the_same_prompts(&self, other: &Self) -> bool {
        let is_same = |(one, other): (&OfferedPrompt, &OfferedPrompt)| {
            one.prompt.name == other.prompt.name && one.offer == other.offer
        };
        std::ptr::eq(self, other)
            || (self.prompts.len() == other.prompts.len()
                && self.prompts.iter().zip(&other.prompts).all(is_same))
    }

    /// Whether clients of every revision see the same resources and templates.
    pub(super) fn has_the_same_resources(&self, other: &Self) -> bool {
        let are_same = |one: &[OfferedResource], other: &[OfferedResource]| {
            let pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.into_iter().all(|(one, other)| one.offer == other.offer)
        };
        std::ptr::eq(self, other)
            || (are_same(&self.resources, &other.resources)
                && are_same(&self.templates, &other.templates))
    }
}

/// A prompt that wants a name.
struct Wanting<'a> {
    source: &'a Arc<Offered>,
    offer: &'a Arc<Offer>,
    tries: u8,
    name: String,
}

impl Wanting<'_> {
    /// Takes another name; no others are left where it is `false`.
    fn move_on(&mut self) -> bool {
        self.tries += 1;
        let (toolset, name) = (self.source.server.toolset.as_str(), &self.offer.key);
        self.name = format!("{toolset}_{name}");
        if self.tries == TRIES_MAX {
            let hash = hexadecimal(&text_hash(&format!("{toolset}/{name}")));
            self.name = format!("{}_{}", self.name, hash.get(..TAIL_DIGITS).unwrap_or(&hash));
        }
        self.tries <= TRIES_MAX
    }
}

fn prompts(
    sources: &[Arc<Offered>],
    taken: &[ToolsetId],
    notes: &mut Vec<String>,
) -> Vec<OfferedPrompt> {
    let taken: HashSet<&str> = taken.iter().map(ToolsetId::as_str).collect();
    let all = sources.iter().flat_map(|source| source.prompts.iter().map(move |one| (source, one)));
    let mut wanting: Vec<Wanting<'_>> = all
        .map(|(source, offer)| Wanting { source, offer, tries: 0, name: offer.key.to_string() })
        .collect();
    loop {
        // In rounds: who moves on is decided for all names before anybody takes another one.
        let mut holders: HashMap<&str, usize> = HashMap::new();
        for one in &wanting {
            *holders.entry(&one.name).or_default() += 1;
        }
        let is_crowded = |one: &Wanting<'_>| {
            taken.contains(&*one.name) || holders.get(&*one.name).is_some_and(|count| *count > 1)
        };
        let moving: Vec<bool> = wanting.iter().map(is_crowded).collect();
        if !moving.contains(&true) {
            break;
        }
        let mut moving = moving.into_iter();
        wanting.retain_mut(|one| {
            let stays = !moving.next().unwrap_or_default() || one.move_on();
            if !stays {
                let (name, toolset) =
                    (names::shortened(&one.offer.key), &one.source.server.toolset);
                notes.push(format!(
                    "the prompt {name:?} of the toolset `{toolset}` is left out: no name is free"
                ));
            }
            stays
        });
    }
    wanting.sort_by(|one, other| one.name.cmp(&other.name));
    let made = wanting.into_iter().map(|one| OfferedPrompt {
        prompt: UpstreamPrompt {
            name: one.name.into(),
            source_name: one.offer.key.clone(),
            server: Arc::clone(&one.source.server),
        },
        offer: Arc::clone(one.offer),
    });
    made.collect()
}

/// By their keys; of two with one key the first one counts.
fn merged<'a>(
    sources: &'a [Arc<Offered>],
    of: impl Fn(&'a Offered) -> &'a [Arc<Offer>],
    what: &str,
    notes: &mut Vec<String>,
) -> Vec<OfferedResource> {
    let mut by_key: BTreeMap<&str, OfferedResource> = BTreeMap::new();
    for source in sources {
        for offer in of(source) {
            let server = &source.server;
            if let Some(first) = by_key.get(&*offer.key) {
                notes.push(format!(
                    "the {what} {:?} of the toolset `{}` is left out: the toolset `{}` has it",
                    names::shortened(&offer.key),
                    server.toolset,
                    first.server.toolset
                ));
                continue;
            }
            let resource = OfferedResource { server: Arc::clone(server), offer: Arc::clone(offer) };
            by_key.insert(&offer.key, resource);
        }
    }
    by_key.into_values().collect()
}

#[cfg(test)]
#[path = "offers_tests.rs"]
mod tests;
