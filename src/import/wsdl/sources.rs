//! The documents that belong to a description: found by following what imports and includes say.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memchr_iter;

use super::super::{Documents, ImportError, Location, Step};
use super::names::{SOAP_ENCODING, SOAP_ENCODING_1_2, WSDL, WSDL_2, XSD};
use super::notes::Notes;
use crate::xml::{Document, Element, Limits, XML_NAMESPACE, XmlError, decode};

/// Longest texts of all documents of a description together.
const TEXT_BYTES_MAX: usize = 128 << 20;
/// Most tags of all documents together.
const TAGS_MAX: usize = 6_000_000;

/// A document as text.
#[derive(Debug)]
pub(super) struct Source<'d> {
    pub(super) location: Location,
    pub(super) text: Cow<'d, str>,
}

/// All documents of a description, the root first.
#[derive(Debug)]
pub(super) struct Sources<'d> {
    pub(super) sources: Vec<Source<'d>>,
    /// Under every location that somebody names it by; without those that cannot be read.
    pub(super) places: HashMap<Location, usize>,
}

/// Reads what is there and says what is missing. What cannot be had is noted, except the root.
pub(super) fn gather<'d>(
    documents: &'d Documents,
    root: &Location,
    notes: &mut Notes,
) -> Result<Step<Sources<'d>>, ImportError> {
    let mut gathered = Sources { sources: Vec::new(), places: HashMap::new() };
    let mut missing = Vec::new();
    let mut bounds = Bounds { bytes: 0, tags: 0 };
    let mut waiting = vec![root.clone()];
    let mut seen: std::collections::HashSet<Location> = waiting.iter().cloned().collect();
    while let Some(location) = waiting.pop() {
        let is_root = location == *root;
        let Some(bytes) = documents.get(&location) else {
            match documents.why_missing(&location) {
                None => missing.push(location),
                Some(reason) if is_root => return Err(ImportError::missing(root, reason)),
                Some(reason) => notes.add(format!("{location} cannot be read: {reason}")),
            }
            continue;
        };
        let base = documents.base(&location).clone();
        if let Some(place) = gathered.places.get(&base).copied() {
            gathered.places.insert(location, place);
            continue;
        }
        let text = match decode(bytes, None) {
            Ok(text) => text,
            Err(error) if is_root => return Err(refusal(root, &error)),
            Err(error) => {
                notes.add(format!("{location} cannot be read: {error}"));
                continue;
            }
        };
        bounds.take(&location, &text)?;
        match references(&text, &base, notes) {
            Ok(references) => {
                let unknown = references.into_iter().filter(|found| seen.insert(found.clone()));
                waiting.extend(unknown);
            }
            Err(error) if is_root => return Err(refusal(root, &error)),
            Err(error) => {
                notes.add(format!("{location} cannot be read: {error}"));
                continue;
            }
        }
        let place = gathered.sources.len();
        gathered.places.insert(base.clone(), place);
        gathered.places.insert(location, place);
        gathered.sources.push(Source { location: base, text });
    }
    missing.sort();
    Ok(if missing.is_empty() { Step::Done(gathered) } else { Step::Need(missing) })
}

struct Bounds {
    bytes: usize,
    tags: usize,
}

impl Bounds {
    fn take(&mut self, location: &Location, text: &str) -> Result<(), ImportError> {
        self.bytes += text.len();
        self.tags += memchr_iter(b'<', text.as_bytes()).count();
        if self.bytes > TEXT_BYTES_MAX {
            let limit = format!("with it the documents have more than {TEXT_BYTES_MAX} bytes");
            return Err(ImportError::limit(location, limit));
        }
        if self.tags > TAGS_MAX {
            let limit = format!("with it the documents have more than {TAGS_MAX} tags");
            return Err(ImportError::limit(location, limit));
        }
        Ok(())
    }
}

/// What is wrong with a document as XML.
pub(super) fn refusal(location: &Location, error: &XmlError) -> ImportError {
    match error {
        XmlError::TooLarge { .. }
        | XmlError::TooManyNodes { .. }
        | XmlError::TooDeep
        | XmlError::TooManyAttributes
        | XmlError::TooManyNamespaces => ImportError::limit(location, error.to_string()),
        error => ImportError::unusable(location, error.to_string()),
    }
}

/// Where a document leads to.
fn references(text: &str, base: &Location, notes: &mut Notes) -> Result<Vec<Location>, XmlError> {
    let document = Document::read(text, Limits::DESCRIPTION)?;
    let root = document.root();
    let mut found = Vec::new();
    let mut follow = |reference: &str| match base.join(reference.trim()) {
        Ok(location) => found.push(location),
        Err(error) => notes.add(format!("{base}: {error}")),
    };
    for import in root.children().filter(|child| child.is(WSDL, "import")) {
        import.attribute("location").into_iter().for_each(&mut follow);
    }
    for schema in schemas(root) {
        schema.children().filter_map(leads_to).for_each(&mut follow);
    }
    Ok(found)
}

/// The schemas of a document: it is one itself, or its `types` have some.
pub(super) fn schemas(root: Element<'_>) -> impl Iterator<Item = Element<'_>> {
    let itself = root.is(XSD, "schema").then_some(root);
    let types = root.children().filter(|child| child.is(WSDL, "types"));
    let inside = types.flat_map(Element::children).filter(|child| child.is(XSD, "schema"));
    itself.into_iter().chain(inside)
}

/// The reference of an `import`, `include` or `redefine`. What everybody knows is not fetched.
pub(super) fn leads_to(child: Element<'_>) -> Option<&str> {
    let is_known = |namespace: &str| {
        [XSD, XML_NAMESPACE, SOAP_ENCODING, SOAP_ENCODING_1_2].contains(&namespace)
    };
    let leads = child.namespace() == XSD
        && match child.local() {
            "include" | "redefine" => true,
            "import" => !child.attribute("namespace").is_some_and(is_known),
            _ => false,
        };
    child.attribute("schemaLocation").filter(|_| leads)
}

/// Whether a root is that of a description; says what is wrong where it is not.
pub(super) fn check_root(location: &Location, root: Element<'_>) -> Result<(), ImportError> {
    if root.is(WSDL, "definitions") {
        return Ok(());
    }
    let reason = if root.namespace() == WSDL_2 {
        "it is a WSDL 2.0 description; only WSDL 1.1 is read".to_owned()
    } else {
        let (namespace, local) = (root.namespace(), root.local());
        format!("it is no WSDL 1.1 description: its root is {local:?} of {namespace:?}")
    };
    Err(ImportError::unusable(location, reason))
}
