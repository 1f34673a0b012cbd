//! Names of WSDL, XML Schema and SOAP, and the names that members get.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::mapping::{KEY_BYTES_MAX, TEXT_MEMBER, TYPE_MEMBER, XmlName};

pub(super) const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";
pub(super) const WSDL_2: &str = "http://www.w3.org/ns/wsdl";
pub(super) const XSD: &str = "http://www.w3.org/2001/XMLSchema";
pub(super) const SOAP_1_1: &str = "http://schemas.xmlsoap.org/wsdl/soap/";
pub(super) const SOAP_1_2: &str = "http://schemas.xmlsoap.org/wsdl/soap12/";
pub(super) const HTTP: &str = "http://schemas.xmlsoap.org/wsdl/http/";
pub(super) const SOAP_ENCODING: &str = "http://schemas.xmlsoap.org/soap/encoding/";
pub(super) const SOAP_ENCODING_1_2: &str = "http://www.w3.org/2003/05/soap-encoding";
/// Basic types of the services of one vendor, which not every description brings along.
pub(super) const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";

/// A qualified name in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QName<'t> {
    pub(super) namespace: &'t str,
    pub(super) local: &'t str,
}

impl<'t> QName<'t> {
    pub(super) const fn new(namespace: &'t str, local: &'t str) -> Self {
        Self { namespace, local }
    }

    pub(super) fn owned(self) -> XmlName {
        XmlName::new(self.namespace, self.local)
    }
}

impl fmt::Display for QName<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return formatter.write_str(self.local);
        }
        write!(formatter, "{{{}}}{}", self.namespace, self.local)
    }
}

/// How much of a key a local name takes up, so that there is room for what tells it from others.
const LOCAL_BYTES_MAX: usize = KEY_BYTES_MAX - 16;

/// The members of one JSON object. Which names are given depends on the order of asking alone,
/// which is that of the schema: elements before attributes, what is inherited before what is new,
/// the body before headers.
#[derive(Debug, Default, Clone)]
pub(super) struct Members {
    taken: HashSet<String>,
    /// What the elements are called that had their name first.
    of_elements: HashMap<XmlName, Box<str>>,
    /// The number that the next one is told apart by.
    numbers: HashMap<String, u32>,
    /// What the elements of a restricted type are called, the last ones first.
    restricted: HashMap<XmlName, Vec<Box<str>>>,
}

impl Members {
    /// Those of an object; one with text keeps a name for it.
    pub(super) fn new(has_text: bool) -> Self {
        let reserved = [Some(TYPE_MEMBER), has_text.then_some(TEXT_MEMBER)];
        let taken = reserved.into_iter().flatten().map(str::to_owned).collect();
        Self { taken, ..Self::default() }
    }

    /// Takes over what an inherited element is called.
    pub(super) fn keep(&mut self, name: &XmlName, member: &str) {
        self.taken.insert(member.to_owned());
        self.of_elements.entry(name.clone()).or_insert_with(|| member.into());
    }

    /// Lets an element of a restriction be called what it is in the restricted type.
    pub(super) fn restrict(&mut self, name: &XmlName, member: &str) {
        let known = self.restricted.entry(name.clone()).or_default();
        if !known.iter().any(|held| **held == *member) {
            known.insert(0, member.into());
        }
    }

    /// The same of an attribute.
    pub(super) fn keep_other(&mut self, member: &str) {
        self.taken.insert(member.to_owned());
    }

    /// What an element is called. One that is only another way to say the same, in another branch
    /// of a choice or in a restricted type, is called the same.
    pub(super) fn of_element(&mut self, name: &XmlName, may_share: bool) -> Box<str> {
        if let Some(member) = self.restricted.get_mut(name).and_then(Vec::pop) {
            return member;
        }
        if may_share && let Some(member) = self.of_elements.get(name) {
            return member.clone();
        }
        let member = self.free(&cleaned(&name.local));
        self.of_elements.entry(name.clone()).or_insert_with(|| member.clone());
        member
    }

    /// What something else is called: with `tail` behind its name where an element has it.
    pub(super) fn of_other(&mut self, local: &str, tail: &str) -> Box<str> {
        let name = cleaned(local);
        if self.taken.contains(&name) {
            return self.free(&format!("{name}_{tail}"));
        }
        self.free(&name)
    }

    fn free(&mut self, name: &str) -> Box<str> {
        if self.taken.insert(name.to_owned()) {
            return name.into();
        }
        let number = self.numbers.entry(name.to_owned()).or_insert(2);
        loop {
            let member = format!("{name}_{number}");
            *number += 1;
            if self.taken.insert(member.clone()) {
                return member.into();
            }
        }
    }
}

/// A local name as a key that every model can write.
fn cleaned(local: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let mut key: String =
        local.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    if !key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        key.insert(0, '_');
    }
    key.truncate(LOCAL_BYTES_MAX);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_apart_by_the_order_of_the_schema() {
        let mut members = Members::new(true);
        let name = |namespace: &str, local: &str| XmlName::new(namespace, local);
        assert_eq!(&*members.of_element(&name("", "id"), false), "id");
        assert_eq!(&*members.of_element(&name("", "id"), true), "id");
        assert_eq!(&*members.of_element(&name("", "id"), false), "id_2");
        assert_eq!(&*members.of_element(&name("u", "id"), true), "id_3");
        assert_eq!(&*members.of_other("id", "attribute"), "id_attribute");
        assert_eq!(&*members.of_other("text", "attribute"), "text_attribute");
        assert_eq!(&*members.of_other("lang", "attribute"), "lang");
        assert_eq!(&*members.of_element(&name("", "xsi_type"), false), "xsi_type_2");
        assert_eq!(&*members.of_element(&name("", "Größe.1"), false), "Gr__e_1");
        assert_eq!(members.of_element(&name("", &"x".repeat(99)), false).len(), LOCAL_BYTES_MAX);
    }
}
