//! Bodies of XML: how the values of a schema are written and read, as [`XmlTypes`].
//!
//! Objects are types, named as the description names them; what refers to itself so comes to an end.
//! A namespace without prefix is that of everything within, as XML itself has it: an object that
//! stands in two namespaces is two types. Nothing is made of a schema that cannot be had whole.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Reader;
use super::clean;
use super::library::Spot;
use super::xml_words::{Described, Scope, Shape, XmlWords};
use crate::mapping::{
    TYPE_MEMBER, XmlAttribute, XmlContent, XmlElement, XmlName, XmlParticle, XmlType, XmlTypes,
    XmlValue,
};
use crate::xml::is_name;

/// How many members the types of a description have together, and schemas they are found in.
const MEMBERS_MAX: usize = 200_000;
/// How deep arrays and maps stand in one another.
const LISTS_MAX: usize = 12;
/// What the elements of a map are called where nobody sees it.
const ENTRY: &str = "entry";

/// The types that were made so far.
#[derive(Debug)]
pub(super) struct XmlModel {
    types: BTreeMap<XmlName, XmlType>,
    /// By the schema and where it stands.
    names: HashMap<(usize, Scope), XmlName>,
    taken: HashSet<XmlName>,
    members_left: usize,
}

impl Default for XmlModel {
    fn default() -> Self {
        Self {
            types: BTreeMap::new(),
            names: HashMap::new(),
            taken: HashSet::new(),
            members_left: MEMBERS_MAX,
        }
    }
}

impl XmlModel {
    pub(super) fn into_types(self) -> XmlTypes {
        XmlTypes(self.types)
    }

    /// Notes that so many members were looked at.
    ///
    /// # Errors
    /// When all that were looked at are too many.
    pub(super) fn spend(&mut self, members: usize) -> Result<(), String> {
        let left = self.members_left.checked_sub(members);
        self.members_left = left.ok_or("the XML of the description has too many members")?;
        Ok(())
    }

    fn name(&mut self, key: (usize, Scope), wished: &str) -> XmlName {
        if let Some(known) = self.names.get(&key) {
            return known.clone();
        }
        let mut name = XmlName::new("", wished);
        let mut count = 1;
        while !self.taken.insert(name.clone()) {
            count += 1;
            // No name that XML could hold, so nothing in a message can mean it.
            name = XmlName::new("", &format!("{wished}~{count}"));
        }
        self.names.insert(key, name.clone());
        name
    }
}

/// What the root element of a body is made of.
#[derive(Debug, Clone)]
pub(super) struct Root<'a> {
    /// Of what the element holds.
    pub(super) schema: Spot<'a>,
    /// The member that is the element, where the schema of the body only stands around it.
    pub(super) member: Option<&'a str>,
    scope: Scope,
}

impl<'a> Root<'a> {
    /// One that a schema itself describes.
    pub(super) fn of(schema: Spot<'a>) -> Self {
        Self { schema, member: None, scope: Scope::default() }
    }
}

impl<'a> Reader<'a> {
    /// What the root element of a body with this schema is made of. A document has one root: an
    /// object that has no name and one member, an object, is not an element itself but what holds
    /// the one that is.
    pub(super) fn xml_root_of(&self, schema: Spot<'a>) -> Root<'a> {
        self.around(schema).unwrap_or_else(|| Root::of(schema))
    }

    fn around(&self, schema: Spot<'a>) -> Option<Root<'a>> {
        let described = self.described(schema).ok()?;
        let is_named = described.xml.name.is_some() || described.known_as.is_some();
        if is_named || !matches!(self.shape(described.target), Shape::Object) {
            return None;
        }
        let (members, looks) = self.xml_members(described.target);
        self.xml.borrow_mut().spend(members.len() + looks).ok()?;
        let [(member, spot)] = *members.as_slice() else { return None };
        let inner = self.described(spot).ok()?;
        let is_object = matches!(self.shape(inner.target), Shape::Object);
        let scope = Scope::default().within(&described.xml);
        (is_object && !inner.xml.is_attribute).then_some(Root {
            schema: spot,
            member: Some(member),
            scope,
        })
    }

    /// The root element of a body. `fallback` is what it is called where the description says
    /// nothing.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub(super) fn xml_root(
        &self,
        root: &Root<'a>,
        fallback: Option<&str>,
    ) -> Result<XmlElement, String> {
        let mut model = self.xml.borrow_mut();
        let mut maker =
            Maker { reader: self, model: &mut model, made: BTreeMap::new(), waiting: Vec::new() };
        let root = maker.root(root, fallback)?;
        maker.types()?;
        let made = maker.made;
        model.types.extend(made);
        Ok(root)
    }

    /// All types that bodies have.
    pub(super) fn xml_types(&self) -> XmlTypes {
        std::mem::take(&mut *self.xml.borrow_mut()).into_types()
    }

    /// Whether a schema is that of an object or an array.
    pub(super) fn is_compound(&self, schema: Spot<'a>) -> bool {
        let described = self.described(schema);
        described.is_ok_and(|described| !matches!(self.shape(described.target), Shape::Value(_)))
    }
}

/// Makes a root and the types it needs. They are kept only where all of them can be made.
struct Maker<'m, 'a> {
    reader: &'m Reader<'a>,
    model: &'m mut XmlModel,
    made: BTreeMap<XmlName, XmlType>,
    /// Types that are named and not made.
    waiting: Vec<(XmlName, Spot<'a>, Scope)>,
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    scope: &'p Scope,
    /// What a type is called that has no name of its own.
    path: &'p str,
    lists: usize,
}

impl<'a> Maker<'_, 'a> {
    fn root(&mut self, root: &Root<'a>, fallback: Option<&str>) -> Result<XmlElement, String> {
        let described = self.reader.described(root.schema)?;
        let name = described.xml.name.or(root.member);
        let local = name.or(described.known_as.as_deref()).or(fallback);
        let local =
            local.ok_or("its root element has no name; the schema says it in `xml.name`")?;
        let local = local.to_owned();
        let scope = root.scope.within(&described.xml);
        let place = Place { scope: &scope, path: &local, lists: 0 };
        let xml = XmlWords { is_attribute: false, ..described.xml.clone() };
        let holds = match self.reader.shape(described.target) {
            Shape::Array(items) => {
                let item = self.root_item(items, &local, place)?;
                XmlContent::List(Box::new(item))
            }
            shape => self.content(&described, shape, place)?,
        };
        let element = element(&local, "", &xml, &scope, holds)?;
        Ok(XmlElement { nillable: described.takes_null, ..element })
    }

    /// An item of an array that is a document: it has no member to be called after.
    fn root_item(
        &mut self,
        items: Option<Spot<'a>>,
        root: &str,
        place: Place<'_>,
    ) -> Result<XmlElement, String> {
        let known_as = items.and_then(|items| self.reader.described(items).ok()?.known_as);
        self.item(items, known_as.as_deref().unwrap_or(root), place)
    }

    /// Makes what is waiting, and what that needs. Without recursion: schemas may refer to each
    /// other in long chains.
    fn types(&mut self) -> Result<(), String> {
        while let Some((name, target, scope)) = self.waiting.pop() {
            if self.model.types.contains_key(&name) || self.made.contains_key(&name) {
                continue;
            }
            // Named before it is finished, so that it may hold itself.
            self.made.insert(name.clone(), XmlType::default());
            let made = self.typed(&name, target, &scope)?;
            self.made.insert(name, made);
        }
        Ok(())
    }

    fn typed(
        &mut self,
        name: &XmlName,
        target: Spot<'a>,
        scope: &Scope,
    ) -> Result<XmlType, String> {
        let (members, looks) = self.reader.xml_members(target);
        self.model.spend(members.len() + looks)?;
        let mut made = XmlType::default();
        for (member, spot) in members {
            if member == TYPE_MEMBER {
                return Err(format!(
                    "the member {} has a meaning of its own",
                    clean::quoted(member)
                ));
            }
            let described = self.reader.described(spot)?;
            let path = format!("{}/{member}", name.local);
            let about = |error: String| format!("{}: {error}", clean::quoted(&path));
            let place = Place { scope, path: &path, lists: 0 };
            if described.xml.is_attribute {
                made.attributes.push(self.attribute(member, &described, scope).map_err(about)?);
            } else {
                let element = self.member(member, &described, place).map_err(about)?;
                made.content.push(XmlParticle::Element(element));
            }
        }
        Ok(made)
    }

    fn attribute(
        &self,
        member: &str,
        described: &Described<'a>,
        scope: &Scope,
    ) -> Result<XmlAttribute, String> {
        let xml = &described.xml;
        let value = match self.reader.shape(described.target) {
            Shape::Value(value) => value,
            Shape::Array(Some(items)) => {
                let items = self.reader.described(items)?;
                match self.reader.shape(items.target) {
                    Shape::Value(value) => XmlValue::List(Box::new(value)),
                    _ => return Err("an attribute holds single values".to_owned()),
                }
            }
            _ => return Err("an attribute holds a single value".to_owned()),
        };
        let scope = scope.within(&XmlWords {
            namespace: xml.namespace.filter(|_| xml.prefix.is_some()),
            ..xml.clone()
        });
        let name = name(xml.name.unwrap_or(member), scope.namespace(xml))?;
        Ok(XmlAttribute { name, prefix: prefix(xml), member: member.into(), value, fixed: None })
    }

    /// The element, or the elements, of an object's member.
    fn member(
        &mut self,
        member: &str,
        described: &Described<'a>,
        place: Place<'_>,
    ) -> Result<XmlElement, String> {
        let xml = &described.xml;
        let scope = place.scope.within(xml);
        let within = Place { scope: &scope, ..place };
        let local = xml.name.unwrap_or(member);
        let element = match self.reader.shape(described.target) {
            Shape::Array(items) if xml.is_wrapped => {
                let item = self.item(items, local, within)?;
                element(local, member, xml, &scope, XmlContent::List(Box::new(item)))?
            }
            Shape::Array(items) => {
                let mut own = self.items(items)?;
                // Of a list that is not wrapped the name means nothing.
                own.xml = XmlWords::of_items(&own.xml, xml);
                let scope = place.scope.within(&own.xml);
                let within = Place { scope: &scope, ..place };
                let shape = self.reader.shape(own.target);
                let holds = self.content(&own, shape, within)?;
                let local = own.xml.name.unwrap_or(member);
                let element = element(local, member, &own.xml, &scope, holds)?;
                return Ok(XmlElement { repeats: true, nillable: own.takes_null, ..element });
            }
            shape => {
                let holds = self.content(described, shape, within)?;
                element(local, member, xml, &scope, holds)?
            }
        };
        Ok(XmlElement { nillable: described.takes_null, ..element })
    }

    /// One of the elements within the one of a list.
    fn item(
        &mut self,
        items: Option<Spot<'a>>,
        list: &str,
        place: Place<'_>,
    ) -> Result<XmlElement, String> {
        let mut own = self.items(items)?;
        own.xml.is_attribute = false;
        let scope = place.scope.within(&own.xml);
        let within = Place { scope: &scope, ..place };
        let shape = self.reader.shape(own.target);
        let holds = self.content(&own, shape, within)?;
        let element = element(own.xml.name.unwrap_or(list), "", &own.xml, &scope, holds)?;
        Ok(XmlElement { nillable: own.takes_null, ..element })
    }

    fn items(&self, items: Option<Spot<'a>>) -> Result<Described<'a>, String> {
        let items = items.ok_or("what its items are is not described")?;
        self.reader.described(items)
    }

    /// What an element holds.
    fn content(
        &mut self,
        described: &Described<'a>,
        shape: Shape<'a>,
        place: Place<'_>,
    ) -> Result<XmlContent, String> {
        if place.lists > LISTS_MAX {
            return Err("its arrays stand in one another too often".to_owned());
        }
        let deeper = Place { lists: place.lists + 1, ..place };
        Ok(match shape {
            Shape::Value(value) => XmlContent::Value(value),
            Shape::Object => {
                let path = described.known_as.as_deref().unwrap_or(place.path);
                let key = (described.target.address(), place.scope.clone());
                let name = self.model.name(key, path);
                self.waiting.push((name.clone(), described.target, place.scope.clone()));
                XmlContent::Type(name)
            }
            Shape::Array(items) => {
                let list = described.xml.name.or(described.known_as.as_deref()).unwrap_or("item");
                XmlContent::List(Box::new(self.item(items, list, deeper)?))
            }
            Shape::Map(None) => {
                let (xml, holds) = (XmlWords::default(), XmlContent::Value(XmlValue::String));
                XmlContent::Map(Box::new(element(ENTRY, "", &xml, place.scope, holds)?))
            }
            Shape::Map(Some(values)) => {
                XmlContent::Map(Box::new(self.item(Some(values), ENTRY, deeper)?))
            }
        })
    }
}

fn element(
    local: &str,
    member: &str,
    xml: &XmlWords<'_>,
    scope: &Scope,
    holds: XmlContent,
) -> Result<XmlElement, String> {
    let own = XmlWords { is_attribute: false, ..xml.clone() };
    Ok(XmlElement {
        name: name(local, scope.namespace(&own))?,
        prefix: prefix(xml),
        member: member.into(),
        holds,
        repeats: false,
        required: false,
        nillable: false,
        fixed: None,
    })
}

fn name(local: &str, namespace: &str) -> Result<XmlName, String> {
    if !is_name(local) {
        return Err(format!("{} is no name of XML", clean::quoted(local)));
    }
    if namespace.chars().any(char::is_control) {
        return Err(format!("{} is no namespace", clean::quoted(namespace)));
    }
    Ok(XmlName::new(namespace, local))
}

/// One that cannot be had does not matter: the namespace counts.
fn prefix(xml: &XmlWords<'_>) -> Option<Box<str>> {
    let is_reserved =
        |prefix: &str| prefix.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("xml"));
    let prefix = xml.prefix.filter(|prefix| is_name(prefix) && !is_reserved(prefix));
    prefix.map(Into::into)
}
