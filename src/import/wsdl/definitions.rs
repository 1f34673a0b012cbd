//! Messages, port types, bindings and services of all WSDL documents of a description.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::super::clean;
use super::names::{QName, WSDL, XSD};
use super::policy;
use crate::xml::{Document, Element};

/// Longest documentation that is told.
const DOCUMENTATION_CHARS_MAX: usize = 2_000;

/// All of them. Of two with one name the first counts.
#[derive(Debug, Default)]
pub(super) struct Definitions<'t> {
    pub(super) name: Option<&'t str>,
    pub(super) documentation: String,
    messages: HashMap<QName<'t>, Element<'t>>,
    port_types: HashMap<QName<'t>, Element<'t>>,
    bindings: HashMap<QName<'t>, Element<'t>>,
    /// In the order of the documents.
    pub(super) all_bindings: Vec<(QName<'t>, Element<'t>)>,
    pub(super) services: Vec<(QName<'t>, Element<'t>)>,
    known_services: HashSet<QName<'t>>,
    pub(super) policies: HashMap<&'t str, Element<'t>>,
}

impl<'t> Definitions<'t> {
    pub(super) fn read(documents: &'t [Document<'_>]) -> Self {
        let mut all = Self::default();
        for document in documents {
            let root = document.root();
            if root.is(WSDL, "definitions") {
                all.add(root);
            }
            policy::collect(root, &mut all.policies);
        }
        all
    }

    fn add(&mut self, root: Element<'t>) {
        let namespace = root.attribute("targetNamespace").unwrap_or_default();
        self.name = self.name.or(root.attribute("name"));
        if self.documentation.is_empty() {
            self.documentation = documentation(root);
        }
        for child in root.children().filter(|child| child.namespace() == WSDL) {
            let Some(local) = child.attribute("name") else { continue };
            let name = QName::new(namespace, local.trim());
            match child.local() {
                "message" => {
                    self.messages.entry(name).or_insert(child);
                }
                "portType" => {
                    self.port_types.entry(name).or_insert(child);
                }
                "binding" => {
                    if let Entry::Vacant(free) = self.bindings.entry(name) {
                        free.insert(child);
                        self.all_bindings.push((name, child));
                    }
                }
                "service" if self.known_services.insert(name) => {
                    self.services.push((name, child));
                }
                _ => {}
            }
        }
    }

    pub(super) fn message(&self, from: Element<'t>, value: &'t str) -> Option<Element<'t>> {
        self.messages.get(&named(from, value)?).copied()
    }

    pub(super) fn port_type(&self, name: QName<'t>) -> Option<Element<'t>> {
        self.port_types.get(&name).copied()
    }

    pub(super) fn binding(&self, name: QName<'t>) -> Option<Element<'t>> {
        self.bindings.get(&name).copied()
    }
}

/// What a value of a WSDL document names.
pub(super) fn named<'t>(from: Element<'t>, value: &'t str) -> Option<QName<'t>> {
    let (namespace, local) = from.qualified(value)?;
    Some(QName::new(namespace, local))
}

/// The elements of WSDL of this name directly in another.
pub(super) fn parts<'t>(of: Element<'t>, local: &'static str) -> impl Iterator<Item = Element<'t>> {
    of.children().filter(move |child| child.is(WSDL, local))
}

/// What a component says of itself, for people.
pub(super) fn documentation(element: Element<'_>) -> String {
    let own = element.child(WSDL, "documentation");
    // Some services write it as schemas do.
    let own = own.or_else(|| element.child(XSD, "annotation"));
    let text = own.map(|own| own.text_within(DOCUMENTATION_CHARS_MAX * 8));
    clean::line(&text.unwrap_or_default(), DOCUMENTATION_CHARS_MAX)
}
