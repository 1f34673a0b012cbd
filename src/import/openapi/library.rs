//! The documents of a description, and what a reference in them points to.
//!
//! A reference is resolved against the resource it stands in (RFC 3986 section 5.2): a document, or
//! in JSON Schema 2020-12 a schema with an `$id`. What is followed is bounded by [`HOPS_MAX`], so
//! references that only point to each other end in an error.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::Url;

use super::text::{self, Room};
use crate::import::{Documents, ImportError, Location, Step};

/// How many references in a row are followed.
const HOPS_MAX: usize = 24;
/// How many steps of pointers one reference is worth, those of references on its way included.
const STEPS_MAX: usize = 256;
/// How many steps all references of an import are worth.
const ALL_STEPS_MAX: usize = 300_000_000;

/// Members whose own members have names of the description's choice.
const NAMED: &[&str] = &[
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "schemas",
    "responses",
    "parameters",
    "requestBodies",
    "headers",
    "securitySchemes",
    "callbacks",
    "pathItems",
    "paths",
];
/// Members that hold values of the API, in which a `$ref` means nothing.
const VALUES: &[&str] = &["example", "examples", "default", "enum", "const", "value"];

/// A value, and the resource it stands in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) value: &'a Value,
    resource: usize,
}

impl<'a> Spot<'a> {
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.value.get(name)
    }

    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    pub(super) fn flag(self, name: &str) -> Option<bool> {
        self.get(name)?.as_bool()
    }

    pub(super) fn reference(self) -> Option<&'a str> {
        self.text("$ref")
    }

    /// Tells a value from every other of all documents.
    pub(super) fn address(self) -> usize {
        std::ptr::from_ref(self.value).addr()
    }
}

/// All documents of a description.
#[derive(Debug)]
pub(super) struct Library {
    sources: Vec<Source>,
    /// Why a document cannot be had, by its URL.
    missing: HashMap<String, String>,
    has_ids: bool,
}

#[derive(Debug)]
struct Source {
    /// Where it was asked for.
    location: Location,
    /// What its references are relative to.
    base: Url,
    tree: Value,
}

impl Library {
    /// Reads the document at `root` and all that it leads to. `has_ids` says of the root document
    /// whether `$id` and `$anchor` mean something in it.
    ///
    /// # Errors
    /// When the root document cannot be read. Another one that cannot is missed only where it is
    /// needed.
    pub(super) fn load(
        documents: &Documents,
        root: &Location,
        has_ids: impl FnOnce(&Value) -> bool,
    ) -> Result<Step<Self>, ImportError> {
        let mut room = Room::new();
        let Some(bytes) = documents.get(root) else {
            return match documents.why_missing(root) {
                Some(reason) => Err(ImportError::missing(root, reason)),
                None => Ok(Step::Need(vec![root.clone()])),
            };
        };
        let tree = text::parse(root, bytes, &mut room)?;
        let mut library =
            Self { has_ids: has_ids(&tree), sources: Vec::new(), missing: HashMap::new() };
        library.add(documents, root, tree)?;
        let needed = library.load_others(documents, &mut room)?;
        if needed.is_empty() { Ok(Step::Done(library)) } else { Ok(Step::Need(needed)) }
    }

    fn add(
        &mut self,
        documents: &Documents,
        location: &Location,
        tree: Value,
    ) -> Result<(), ImportError> {
        let base = Url::parse(documents.base(location).as_str())
            .map_err(|error| ImportError::unusable(location, error.to_string()))?;
        self.sources.push(Source { location: location.clone(), base, tree });
        Ok(())
    }

    fn load_others(
        &mut self,
        documents: &Documents,
        room: &mut Room,
    ) -> Result<Vec<Location>, ImportError> {
        let mut needed = BTreeSet::new();
        let mut wanted = BTreeSet::new();
        let mut known = HashSet::new();
        let mut read = 0;
        while let Some(source) = self.sources.get(read) {
            read += 1;
            known.extend([source.location.as_str().to_owned(), source.base.to_string()]);
            walk(source, self.has_ids, |words, base, is_resource| {
                if is_resource {
                    known.insert(base.to_string());
                }
                let reference = words.get("$ref").and_then(Value::as_str);
                if let Some(url) = reference.and_then(|reference| leads_to(base, reference)) {
                    wanted.insert(url.to_string());
                }
            });
            if read < self.sources.len() {
                continue;
            }
            for url in std::mem::take(&mut wanted) {
                if known.contains(&url) || self.missing.contains_key(&url) {
                    continue;
                }
                // A document from the network leads to the network only.
                let remote = self.sources.iter().any(|source| source.location.is_remote());
                let location = match Location::parse(&url) {
                    Ok(location) if remote && !location.is_remote() => {
                        let reason = "a document from the network leads to the network only";
                        self.missing.insert(url, reason.to_owned());
                        continue;
                    }
                    Ok(location) => location,
                    Err(error) => {
                        self.missing.insert(url, error.to_string());
                        continue;
                    }
                };
                if let Some(bytes) = documents.get(&location) {
                    match text::parse(&location, bytes, room) {
                        Ok(tree) => self.add(documents, &location, tree)?,
                        Err(error) => drop(self.missing.insert(url, error.to_string())),
                    }
                } else if let Some(reason) = documents.why_missing(&location) {
                    self.missing.insert(url, format!("{location} cannot be read: {reason}"));
                } else {
                    needed.insert(location);
                }
            }
        }
        Ok(needed.into_iter().collect())
    }

    pub(super) fn root(&self) -> Option<&Value> {
        self.sources.first().map(|source| &source.tree)
    }
}

/// The document a reference leads to, where it is another one.
fn leads_to(base: &Url, reference: &str) -> Option<Url> {
    let (path, _) = reference.split_once('#').unwrap_or((reference, ""));
    if path.is_empty() {
        return None;
    }
    base.join(path).ok()
}

/// Calls `each` with every object that is not just a table of names, the URL of the resource it
/// stands in, and whether it is that resource's root by its `$id`. Without recursion.
fn walk<'v>(
    source: &'v Source,
    has_ids: bool,
    mut each: impl FnMut(&'v Map<String, Value>, &Rc<Url>, bool),
) {
    let mut waiting = vec![(&source.tree, Rc::new(source.base.clone()), false)];
    while let Some((value, mut base, names)) = waiting.pop() {
        match value {
            Value::Array(items) => {
                waiting.extend(items.iter().map(|item| (item, Rc::clone(&base), false)));
            }
            Value::Object(words) if names => {
                waiting.extend(words.values().map(|child| (child, Rc::clone(&base), false)));
            }
            Value::Object(words) => {
                let id = words.get("$id").and_then(Value::as_str).filter(|_| has_ids);
                let id = id.and_then(|id| base.join(id.trim_end_matches('#')).ok());
                let is_resource = id.is_some();
                if let Some(id) = id {
                    base = Rc::new(id);
                }
                each(words, &base, is_resource);
                for (name, child) in words {
                    let name = name.as_str();
                    if !VALUES.contains(&name) && !name.starts_with("x-") {
                        waiting.push((child, Rc::clone(&base), NAMED.contains(&name)));
                    }
                }
            }
            _ => {}
        }
    }
}

/// What references can name, over all documents.
#[derive(Debug)]
pub(super) struct Index<'a> {
    library: &'a Library,
    resources: Vec<Resource<'a>>,
    by_url: HashMap<String, usize>,
    /// Roots of resources inside of documents, by their address.
    roots: HashMap<usize, usize>,
    anchors: HashMap<(usize, &'a str), &'a Value>,
    steps_left: Cell<usize>,
}

#[derive(Debug)]
struct Resource<'a> {
    base: Url,
    root: &'a Value,
}

impl<'a> Index<'a> {
    pub(super) fn new(library: &'a Library) -> Self {
        let mut index = Self {
            library,
            resources: Vec::new(),
            by_url: HashMap::new(),
            roots: HashMap::new(),
            anchors: HashMap::new(),
            steps_left: Cell::new(ALL_STEPS_MAX),
        };
        for source in &library.sources {
            let number = index.resources.len();
            index.resources.push(Resource { base: source.base.clone(), root: &source.tree });
            for url in [source.location.as_str(), source.base.as_str()] {
                index.by_url.entry(url.to_owned()).or_insert(number);
            }
        }
        if library.has_ids {
            // Two rounds: an anchor's resource has to be known.
            library.sources.iter().for_each(|source| index.collect_ids(source));
            library.sources.iter().for_each(|source| index.collect_anchors(source));
        }
        index
    }

    fn collect_ids(&mut self, source: &'a Source) {
        let mut waiting = vec![&source.tree];
        let mut found: HashMap<usize, &'a Value> = HashMap::new();
        while let Some(value) = waiting.pop() {
            match value {
                Value::Array(items) => waiting.extend(items),
                Value::Object(words) => {
                    if words.contains_key("$id") {
                        found.insert(std::ptr::from_ref(words).addr(), value);
                    }
                    waiting.extend(words.values());
                }
                _ => {}
            }
        }
        walk(source, true, |words, base, is_resource| {
            let root = found.get(&std::ptr::from_ref(words).addr());
            if let Some(root) = root.filter(|_| is_resource) {
                let number = self.resources.len();
                self.resources.push(Resource { base: (**base).clone(), root });
                self.by_url.entry(base.to_string()).or_insert(number);
                self.roots.insert(std::ptr::from_ref(*root).addr(), number);
            }
        });
    }

    fn collect_anchors(&mut self, source: &'a Source) {
        let mut waiting = vec![self.enter(self.source_spot(source))];
        while let Some(spot) = waiting.pop() {
            match spot.value {
                Value::Array(items) => {
                    waiting.extend(items.iter().map(|item| self.below(spot, item)));
                }
                Value::Object(words) => {
                    for word in ["$anchor", "$dynamicAnchor"] {
                        if let Some(name) = words.get(word).and_then(Value::as_str) {
                            self.anchors.entry((spot.resource, name)).or_insert(spot.value);
                        }
                    }
                    waiting.extend(words.values().map(|child| self.below(spot, child)));
                }
                _ => {}
            }
        }
    }

    fn source_spot(&self, source: &'a Source) -> Spot<'a> {
        let resource = self.by_url.get(source.base.as_str()).copied().unwrap_or_default();
        Spot { value: &source.tree, resource }
    }

    /// The root document.
    pub(super) fn root(&self) -> Option<Spot<'a>> {
        self.library.root().map(|value| self.enter(Spot { value, resource: 0 }))
    }

    /// The URL of the resource that a value stands in.
    pub(super) fn base(&self, spot: Spot<'a>) -> Option<&Url> {
        self.resources.get(spot.resource).map(|resource| &resource.base)
    }

    fn enter(&self, spot: Spot<'a>) -> Spot<'a> {
        let resource = self.roots.get(&spot.address()).copied();
        Spot { resource: resource.unwrap_or(spot.resource), ..spot }
    }

    /// A value inside of another one.
    pub(super) fn below(&self, spot: Spot<'a>, value: &'a Value) -> Spot<'a> {
        let spot = Spot { value, ..spot };
        if self.roots.is_empty() { spot } else { self.enter(spot) }
    }

    /// The member of an object.
    pub(super) fn member(&self, spot: Spot<'a>, name: &str) -> Option<Spot<'a>> {
        spot.get(name).map(|value| self.below(spot, value))
    }

    /// What is there when all references are followed.
    ///
    /// # Errors
    /// When one of them points to nothing or they go round.
    pub(super) fn follow(&self, spot: Spot<'a>) -> Result<Spot<'a>, String> {
        let mut spot = spot;
        let mut seen = Vec::new();
        while let Some(reference) = spot.reference() {
            if seen.contains(&spot.address()) || seen.len() == HOPS_MAX {
                return Err(format!("the $ref {:?} goes round", shown(reference)));
            }
            seen.push(spot.address());
            spot = self.resolve(spot, reference)?;
        }
        Ok(spot)
    }

    /// What one reference points to.
    ///
    /// # Errors
    /// When it points to nothing.
    pub(super) fn resolve(&self, from: Spot<'a>, reference: &str) -> Result<Spot<'a>, String> {
        let steps = Cell::new(STEPS_MAX.min(self.steps_left.get()));
        let before = steps.get();
        let target = self.resolve_within(from, reference, HOPS_MAX, &steps);
        // One for the reference itself.
        let used = before - steps.get() + 1;
        self.steps_left.set(self.steps_left.get().saturating_sub(used));
        target
    }

    fn resolve_within(
        &self,
        from: Spot<'a>,
        reference: &str,
        hops: usize,
        steps: &Cell<usize>,
    ) -> Result<Spot<'a>, String> {
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if path.is_empty() { from.resource } else { self.document(from, path)? };
        let root = self.resources.get(resource).map(|resource| resource.root);
        let root = root.map(|value| Spot { value, resource });
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        let target = match root {
            Some(root) if fragment.is_empty() => Some(root),
            Some(root) if fragment.starts_with('/') => self.pointed(root, &fragment, hops, steps),
            Some(root) => {
                let anchor = self.anchors.get(&(resource, &*fragment)).copied();
                anchor
                    .map(|value| self.below(root, value))
                    // Some write `#definitions/Pet`.
                    .or_else(|| self.pointed(root, &format!("/{fragment}"), hops, steps))
            }
            None => None,
        };
        target.ok_or_else(|| format!("the $ref {:?} points to nothing", shown(reference)))
    }

    fn document(&self, from: Spot<'a>, path: &str) -> Result<usize, String> {
        let base = self.base(from);
        let url = base.and_then(|base| leads_to(base, path));
        let Some(url) = url else {
            return Err(format!("the $ref {:?} is no location", shown(path)));
        };
        self.by_url.get(url.as_str()).copied().ok_or_else(|| {
            let reason = self.library.missing.get(url.as_str()).map_or("nothing", String::as_str);
            format!("the $ref {:?} leads to a document that is not there: {reason}", shown(path))
        })
    }

    /// Follows a JSON pointer (RFC 6901). One that leads through a reference goes on at its target.
    fn pointed(
        &self,
        root: Spot<'a>,
        pointer: &str,
        hops: usize,
        steps: &Cell<usize>,
    ) -> Option<Spot<'a>> {
        let hops = hops.checked_sub(1)?;
        let mut spot = root;
        for token in pointer.split('/').skip(1) {
            steps.set(steps.get().checked_sub(1)?);
            let token = token.replace("~1", "/").replace("~0", "~");
            let step = |spot: Spot<'a>| match spot.value {
                Value::Object(words) => words.get(&token),
                Value::Array(items) => items.get(token.parse::<usize>().ok()?),
                _ => None,
            };
            let next = step(spot).map(|value| self.below(spot, value));
            spot = if let Some(next) = next {
                next
            } else {
                let target = self.resolve_within(spot, spot.reference()?, hops, steps).ok()?;
                step(target).map(|value| self.below(target, value))?
            };
        }
        Some(spot)
    }
}

/// As much of a reference as fits into a message.
fn shown(reference: &str) -> String {
    reference.chars().take(160).collect()
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
