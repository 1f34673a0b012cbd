//! The components of all schemas of a description, found by name.

use std::collections::{HashMap, HashSet};

use super::super::{ImportError, Location};
use super::names::{QName, XSD};
use super::notes::Notes;
use super::sources::{self, Sources};
use crate::xml::{Document, Element};

/// Most schemas, one for each namespace that it is included into.
const SCHEMAS_MAX: usize = 10_000;
/// Most components of all schemas together.
const COMPONENTS_MAX: usize = 500_000;

/// What a name may stand for. Simple and complex types share their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Type,
    Element,
    Attribute,
    Group,
    AttributeGroup,
}

impl Kind {
    fn of(element: Element<'_>) -> Option<Self> {
        if element.namespace() != XSD {
            return None;
        }
        Some(match element.local() {
            "simpleType" | "complexType" => Self::Type,
            "element" => Self::Element,
            "attribute" => Self::Attribute,
            "group" => Self::Group,
            "attributeGroup" => Self::AttributeGroup,
            _ => return None,
        })
    }
}

/// A schema, as it counts where it was included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema<'t> {
    /// Its own, or that of the schema it is included into.
    pub(super) namespace: &'t str,
    /// It has none of its own: names without prefix are of that namespace too.
    is_chameleon: bool,
    pub(super) elements_qualified: bool,
    pub(super) attributes_qualified: bool,
}

/// An element of a schema document, and the schema it counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place<'t> {
    pub(super) element: Element<'t>,
    pub(super) schema: usize,
}

impl<'t> Place<'t> {
    /// Another element of the same schema.
    pub(super) fn at(self, element: Element<'t>) -> Self {
        Self { element, ..self }
    }

    /// The components directly in it, without annotations.
    pub(super) fn children(self) -> impl Iterator<Item = Self> {
        let is_component =
            |child: &Element<'_>| child.namespace() == XSD && child.local() != "annotation";
        self.element.children().filter(is_component).map(move |child| self.at(child))
    }

    /// The first of this name directly in it.
    pub(super) fn child(self, local: &str) -> Option<Self> {
        self.element.child(XSD, local).map(|child| self.at(child))
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Schemas<'t> {
    list: Vec<Schema<'t>>,
    components: HashMap<(Kind, QName<'t>), Place<'t>>,
    /// What a component of `redefine` was before: it may lead to itself by its own name.
    originals: HashMap<(Kind, QName<'t>), Place<'t>>,
    redefined: HashSet<Element<'t>>,
    /// The types directly derived from a complex one, in the order of the documents.
    derived: HashMap<QName<'t>, Vec<QName<'t>>>,
    /// The elements that may stand in the place of one.
    substitutes: HashMap<QName<'t>, Vec<QName<'t>>>,
}

#[derive(Clone, Copy)]
struct Waiting<'t> {
    element: Element<'t>,
    source: usize,
    /// That of the schema which includes it.
    namespace: Option<&'t str>,
}

impl<'t> Schemas<'t> {
    /// `documents` are the trees of the sources, in their order.
    pub(super) fn read(
        sources: &Sources<'_>,
        documents: &'t [Document<'_>],
        notes: &mut Notes,
    ) -> Result<Self, ImportError> {
        let mut all = Self::default();
        let mut seen = HashSet::new();
        let included = included(sources, documents);
        let everywhere: Vec<Waiting<'t>> = documents
            .iter()
            .enumerate()
            .flat_map(|(source, document)| {
                let inside = sources::schemas(document.root());
                inside.map(move |element| Waiting { element, source, namespace: None })
            })
            .collect();
        // What is included has its namespace from others, where somebody leads to it who has one.
        let is_first = |schema: &&Waiting<'t>| {
            let has_namespace = schema.element.attribute("targetNamespace").is_some();
            has_namespace || !included.contains(&schema.source)
        };
        for start in everywhere.iter().filter(is_first) {
            all.follow(*start, sources, documents, &mut seen, notes)?;
        }
        let reached: HashSet<Element<'t>> = seen.iter().map(|(element, _)| *element).collect();
        for start in &everywhere {
            if !reached.contains(&start.element) {
                all.follow(*start, sources, documents, &mut seen, notes)?;
            }
        }
        all.relate();
        Ok(all)
    }

    /// Adds a schema and all that it includes.
    fn follow(
        &mut self,
        start: Waiting<'t>,
        sources: &Sources<'_>,
        documents: &'t [Document<'_>],
        seen: &mut HashSet<(Element<'t>, &'t str)>,
        notes: &mut Notes,
    ) -> Result<(), ImportError> {
        let mut waiting = vec![start];
        while let Some(next) = waiting.pop() {
            let own = next.element.attribute("targetNamespace");
            let namespace = own.or(next.namespace).unwrap_or_default();
            if !seen.insert((next.element, namespace)) {
                continue;
            }
            let Some(source) = sources.sources.get(next.source) else { continue };
            if self.list.len() == SCHEMAS_MAX {
                let limit = format!("there are more than {SCHEMAS_MAX} schemas");
                return Err(ImportError::limit(&source.location, limit));
            }
            self.add(&next, own.is_none(), namespace, &source.location, notes)?;
            for child in next.element.children().filter(|child| child.namespace() == XSD) {
                if !matches!(child.local(), "include" | "redefine") {
                    continue;
                }
                let Some(place) = target(child, &source.location, sources) else { continue };
                let Some(document) = documents.get(place) else { continue };
                let found = sources::schemas(document.root());
                waiting.extend(found.map(|element| Waiting {
                    element,
                    source: place,
                    namespace: Some(namespace),
                }));
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        next: &Waiting<'t>,
        has_no_namespace: bool,
        namespace: &'t str,
        location: &Location,
        notes: &mut Notes,
    ) -> Result<(), ImportError> {
        let qualified = |key: &str| next.element.attribute(key) == Some("qualified");
        let schema = self.list.len();
        self.list.push(Schema {
            namespace,
            is_chameleon: has_no_namespace && !namespace.is_empty(),
            elements_qualified: qualified("elementFormDefault"),
            attributes_qualified: qualified("attributeFormDefault"),
        });
        for child in next.element.children() {
            self.insert(Place { element: child, schema }, false);
            if child.is(XSD, "redefine") {
                let what = child.attribute("schemaLocation").unwrap_or_default();
                notes.add(format!("{location} redefines parts of {what}: its own are taken"));
                for inner in child.children() {
                    self.insert(Place { element: inner, schema }, true);
                }
            }
        }
        if self.components.len() > COMPONENTS_MAX {
            let limit = format!("the schemas have more than {COMPONENTS_MAX} components");
            return Err(ImportError::limit(location, limit));
        }
        Ok(())
    }

    /// Of two with one name the first counts, or the one that redefines the other.
    fn insert(&mut self, place: Place<'t>, redefines: bool) {
        let (Some(kind), Some(local)) = (Kind::of(place.element), place.element.attribute("name"))
        else {
            return;
        };
        let key = (kind, QName::new(self.namespace(place), local.trim()));
        if redefines {
            self.redefined.insert(place.element);
        }
        match self.components.get(&key).copied() {
            None => {
                self.components.insert(key, place);
            }
            Some(held) if self.redefined.contains(&held.element) => {
                self.originals.entry(key).or_insert(place);
            }
            Some(held) if redefines => {
                self.components.insert(key, place);
                self.originals.insert(key, held);
            }
            Some(_) => {}
        }
    }

    /// Who is derived from whom, and who stands in for whom.
    fn relate(&mut self) {
        let mut found: Vec<(Kind, QName<'t>, Place<'t>)> =
            self.components.iter().map(|((kind, name), place)| (*kind, *name, *place)).collect();
        // The order of a map changes from one run to the next.
        found.sort_unstable_by_key(|(_, name, place)| (place.schema, *name));
        for (kind, name, place) in found {
            let from = match kind {
                Kind::Element => place.element.attribute("substitutionGroup"),
                Kind::Type => derivation(place).and_then(|from| from.element.attribute("base")),
                _ => None,
            };
            let Some(from) = from.and_then(|value| self.resolve(place, value)) else { continue };
            let related =
                if kind == Kind::Element { &mut self.substitutes } else { &mut self.derived };
            if from != name {
                related.entry(from).or_default().push(name);
            }
        }
    }

    pub(super) fn schema(&self, place: Place<'t>) -> Option<&Schema<'t>> {
        self.list.get(place.schema)
    }

    pub(super) fn namespace(&self, place: Place<'t>) -> &'t str {
        self.schema(place).map_or("", |schema| schema.namespace)
    }

    /// What a value of a schema document names.
    pub(super) fn resolve(&self, place: Place<'t>, value: &'t str) -> Option<QName<'t>> {
        let (namespace, local) = place.element.qualified(value)?;
        let is_plain = namespace.is_empty() && !value.contains(':');
        let own = self.schema(place).filter(|schema| is_plain && schema.is_chameleon);
        Some(QName::new(own.map_or(namespace, |schema| schema.namespace), local))
    }

    pub(super) fn find(&self, kind: Kind, name: QName<'t>) -> Option<Place<'t>> {
        self.components.get(&(kind, name)).copied()
    }

    /// What a name means that stands inside of `from`: inside of what redefines it, what it was.
    pub(super) fn find_from(
        &self,
        kind: Kind,
        name: QName<'t>,
        from: Place<'t>,
    ) -> Option<Place<'t>> {
        let found = self.find(kind, name)?;
        if !self.redefined.contains(&found.element) {
            return Some(found);
        }
        let mut around = Some(from.element);
        while let Some(element) = around {
            if element == found.element {
                return self.originals.get(&(kind, name)).copied();
            }
            around = element.parent();
        }
        Some(found)
    }

    pub(super) fn derived_from(&self, name: QName<'t>) -> &[QName<'t>] {
        self.derived.get(&name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn substitutes_of(&self, name: QName<'t>) -> &[QName<'t>] {
        self.substitutes.get(&name).map_or(&[], Vec::as_slice)
    }
}

/// The `extension` or `restriction` of a complex type.
pub(super) fn derivation(place: Place<'_>) -> Option<Place<'_>> {
    let content = place.child("complexContent").or_else(|| place.child("simpleContent"))?;
    content.child("extension").or_else(|| content.child("restriction"))
}

fn target(child: Element<'_>, base: &Location, sources: &Sources<'_>) -> Option<usize> {
    let location = base.join(sources::leads_to(child)?.trim()).ok()?;
    sources.places.get(&location).copied()
}

/// The documents that others include.
fn included(sources: &Sources<'_>, documents: &[Document<'_>]) -> HashSet<usize> {
    let mut included = HashSet::new();
    for (source, document) in sources.sources.iter().zip(documents) {
        for child in sources::schemas(document.root()).flat_map(Element::children) {
            if child.namespace() == XSD && matches!(child.local(), "include" | "redefine") {
                included.extend(target(child, &source.location, sources));
            }
        }
    }
    included
}
