//! Complex types: what they inherit, their attributes, and which of them are read.
//!
//! A type is read when an element has it, together with all types derived from it, and with those
//! it is derived from. Types wait in a list, so types that hold each other do not recurse; only the
//! way to the base of a type does, within a bound. What cannot be read is XML text to clients, and
//! noted: it never costs an operation.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::clean;
use super::model::{AttributeUse, ComplexType, Holds, Model, Particle, SimpleType};
use super::names::{Members, QName, SOAP_ENCODING, SOAP_ENCODING_1_2, WSDL, XSD};
use super::notes::Notes;
use super::schemas::{Kind, Place, Schemas};
use super::{particles, simple};
use crate::mapping::XmlName;
use crate::xml::{Element, XML_NAMESPACE, is_name};

/// Longest documentation of a type, an element or an attribute that is told.
pub(super) const DOCUMENTATION_CHARS_MAX: usize = 1_000;
/// How many types a complex one may be derived over.
const DERIVATIONS_MAX: usize = 64;
/// How deep groups of attributes may lead to each other.
const GROUPS_MAX: usize = 16;
/// Most elements, attributes and groups of one type, inherited ones counted.
const STEPS_MAX: usize = 5_000;
/// The same of all types together.
const STEPS_TOGETHER_MAX: usize = 300_000;
/// Most types.
const TYPES_MAX: usize = 50_000;
/// Most attributes of a type.
const ATTRIBUTES_MAX: usize = 200;

/// Reads types as they are asked for.
#[derive(Debug)]
pub(super) struct Builder<'s, 't> {
    pub(super) schemas: &'s Schemas<'t>,
    pub(super) model: Model,
    pub(super) simple: HashMap<Place<'t>, Rc<SimpleType>>,
    /// What came up in what is being read.
    pub(super) notes: Notes,
    /// Those that were asked for and not read yet, and whose they are.
    waiting: Vec<(XmlName, Place<'t>)>,
    places: HashMap<XmlName, Place<'t>>,
    /// Those whose bases are being read.
    open: Vec<XmlName>,
    /// Those that stand as the type of an element, so that derived ones may come in their place.
    used: HashSet<XmlName>,
    /// What the types are called that stand inside of elements.
    unnamed: HashMap<Place<'t>, XmlName>,
    /// Elements, attributes and groups of the type that is being read.
    steps: usize,
    /// The same of all types.
    steps_together: usize,
    /// The simple types that are being read.
    pub(super) simple_open: HashSet<Place<'t>>,
    /// How many JSON values the schemas of all simple types have.
    pub(super) simple_values: usize,
}

impl<'s, 't> Builder<'s, 't> {
    pub(super) fn new(schemas: &'s Schemas<'t>) -> Self {
        Self {
            schemas,
            model: Model::default(),
            simple: HashMap::new(),
            notes: Notes::default(),
            waiting: Vec::new(),
            places: HashMap::new(),
            open: Vec::new(),
            used: HashSet::new(),
            unnamed: HashMap::new(),
            steps: 0,
            steps_together: 0,
            simple_open: HashSet::new(),
            simple_values: 0,
        }
    }

    /// What an element or a part of this type holds.
    pub(super) fn holds(&mut self, name: QName<'t>, from: Place<'t>) -> Holds {
        if name.namespace == XSD && name.local == "anyType" {
            return Holds::Any;
        }
        match self.schemas.find_from(Kind::Type, name, from) {
            Some(place) if place.element.local() == "complexType" => self.asked_for(name, place),
            Some(_) => Holds::Value(self.simple_named(name, from)),
            None if simple::builtin(name).is_some() => Holds::Value(self.simple_named(name, from)),
            None => {
                self.notes
                    .add(format!("the type {name} is not described; it is taken as XML text"));
                Holds::Any
            }
        }
    }

    /// The same for a part of a message, which stands in no schema.
    pub(super) fn holds_of_part(&mut self, name: QName<'t>, part: Element<'t>) -> Holds {
        self.holds(name, Place { element: part, schema: usize::MAX })
    }

    fn asked_for(&mut self, name: QName<'t>, place: Place<'t>) -> Holds {
        let owned = name.owned();
        self.ask(&owned, place);
        Holds::Type(owned)
    }

    /// A complex type that stands inside of an element has a name that no type of a schema can
    /// have: that of what it stands in, a slash, and the element's.
    pub(super) fn unnamed(&mut self, outer: &XmlName, local: &str, place: Place<'t>) -> Holds {
        if let Some(known) = self.unnamed.get(&place) {
            return Holds::Type(known.clone());
        }
        let mut name = XmlName::new(&outer.namespace, &format!("{}/{local}", outer.local));
        let mut number = 2_u32;
        while self.places.contains_key(&name) {
            name = XmlName::new(&outer.namespace, &format!("{}/{local}~{number}", outer.local));
            number += 1;
        }
        self.unnamed.insert(place, name.clone());
        self.ask(&name, place);
        Holds::Type(name)
    }

    fn ask(&mut self, name: &XmlName, place: Place<'t>) {
        if self.used.insert(name.clone()) {
            self.places.entry(name.clone()).or_insert(place);
            self.waiting.push((name.clone(), place));
        }
    }

    /// Counts what is read of a type.
    pub(super) fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        self.steps_together += 1;
        if self.steps > STEPS_MAX || self.steps_together > STEPS_TOGETHER_MAX {
            return Err("it, or all types together, have too many elements".to_owned());
        }
        Ok(())
    }

    /// Reads what was asked for, and all it leads to.
    pub(super) fn run(&mut self) {
        while let Some((name, place)) = self.waiting.pop() {
            self.ensure(&name, place);
            self.derive(&name, place);
        }
    }

    /// Asks for the types that may stand in the place of one.
    fn derive(&mut self, name: &XmlName, place: Place<'t>) {
        let Some(local) = place.element.attribute("name") else { return };
        let schemas = self.schemas;
        let own = QName::new(schemas.namespace(place), local.trim());
        if own.owned() != *name {
            return;
        }
        let mut derived = Vec::new();
        for from in schemas.derived_from(own) {
            if let Some(place) = schemas.find(Kind::Type, *from) {
                let owned = from.owned();
                self.ask(&owned, place);
                derived.push(owned);
            }
        }
        if let Some(held) = self.model.types.get_mut(name) {
            held.derived = derived;
        }
    }

    /// Reads one type, and before it those it is derived from.
    fn ensure(&mut self, name: &XmlName, place: Place<'t>) {
        if self.model.types.contains_key(name) {
            return;
        }
        self.places.entry(name.clone()).or_insert(place);
        let around = (std::mem::take(&mut self.notes), std::mem::take(&mut self.steps));
        self.open.push(name.clone());
        let built = self.build(name, place);
        self.open.pop();
        let mut built = built.unwrap_or_else(|reason| {
            self.notes.add(format!("the type {name} is taken as XML text: {reason}"));
            ComplexType { is_any: true, ..ComplexType::default() }
        });
        built.notes = std::mem::replace(&mut self.notes, around.0);
        self.steps = around.1;
        self.model.types.insert(name.clone(), built);
    }

    fn build(&mut self, name: &XmlName, place: Place<'t>) -> Result<ComplexType, String> {
        if self.model.types.len() >= TYPES_MAX {
            return Err(format!("there are more than {TYPES_MAX} types"));
        }
        let is = |at: Place<'_>, key: &str| {
            at.element.attribute(key).is_some_and(|value| matches!(value.trim(), "true" | "1"))
        };
        let mut held = if let Some(content) = place.child("complexContent") {
            let mut held = self.complex(name, content)?;
            held.is_any |= is(content, "mixed");
            held
        } else if let Some(content) = place.child("simpleContent") {
            self.with_text(content)?
        } else {
            let mut members = Members::new(false);
            let content = self.content(name, place, &mut members)?;
            let mut held = ComplexType { content, ..ComplexType::default() };
            self.attributes(place, &mut held, &mut members, GROUPS_MAX)?;
            held
        };
        held.is_any |= is(place, "mixed");
        held.is_abstract = is(place, "abstract");
        held.documentation = documentation(place.element, DOCUMENTATION_CHARS_MAX);
        Ok(held)
    }

    /// What a type is derived from, read.
    fn base(&mut self, name: QName<'t>, place: Place<'t>) -> Result<&ComplexType, String> {
        let owned = name.owned();
        // A type that redefines itself has what it was before as its base.
        let is_own = self.places.get(&owned).is_some_and(|held| *held != place);
        let key = if is_own {
            XmlName::new(&owned.namespace, &format!("{}/redefined", owned.local))
        } else {
            owned
        };
        if self.open.contains(&key) {
            return Err("it is derived from itself".to_owned());
        }
        if self.open.len() >= DERIVATIONS_MAX {
            return Err(format!("it is derived over more than {DERIVATIONS_MAX} types"));
        }
        self.ensure(&key, place);
        self.model.types.get(&key).ok_or_else(|| "its base cannot be read".to_owned())
    }

    /// The extension or restriction that a content is, and what of.
    fn derivation(&self, content: Place<'t>) -> Result<(Place<'t>, QName<'t>), String> {
        let derivation = content
            .child("extension")
            .or_else(|| content.child("restriction"))
            .ok_or("its content is neither an extension nor a restriction")?;
        let base = derivation.element.attribute("base").unwrap_or_default();
        let base = self.schemas.resolve(derivation, base).ok_or("its base has no namespace")?;
        Ok((derivation, base))
    }

    fn complex(&mut self, name: &XmlName, content: Place<'t>) -> Result<ComplexType, String> {
        let (derivation, base) = self.derivation(content)?;
        let is_extension = derivation.element.local() == "extension";
        if [SOAP_ENCODING, SOAP_ENCODING_1_2].contains(&base.namespace) && base.local == "Array" {
            return self.soap_array(name, derivation);
        }
        let mut held = ComplexType::default();
        if base.namespace != XSD || base.local != "anyType" {
            let place = self
                .schemas
                .find_from(Kind::Type, base, derivation)
                .filter(|place| place.element.local() == "complexType")
                .ok_or_else(|| format!("its base {base} is not described"))?;
            let from = self.base(base, place)?;
            held.attributes.clone_from(&from.attributes);
            held.content.clone_from(&from.content);
            let inherited: usize = held.content.iter().map(Particle::count).sum();
            let is_mixed = from.is_any;
            for _ in 0..inherited + held.attributes.len() {
                self.step()?;
            }
            // A restriction may leave out mixed content, an extension keeps it.
            held.is_any = is_mixed && is_extension;
            held.base = Some(base.owned()).filter(|base| base != name);
        }
        let mut members = members_of(&held);
        if !is_extension {
            let mut elements = Vec::new();
            for part in &held.content {
                part.elements(&mut elements);
            }
            for element in elements {
                members.restrict(&element.name, &element.member);
            }
        }
        let own = self.content(name, derivation, &mut members)?;
        if is_extension {
            held.content.extend(own);
        } else {
            held.content = own;
        }
        self.attributes(derivation, &mut held, &mut members, GROUPS_MAX)?;
        Ok(held)
    }

    /// `soap-enc:Array` in a description that is else literal: its items, whatever they are called.
    fn soap_array(&mut self, name: &XmlName, place: Place<'t>) -> Result<ComplexType, String> {
        self.notes.add(format!("{name} is an array of SOAP encoding; it is read as a sequence"));
        let mut members = Members::new(false);
        let content = self.content(name, place, &mut members)?;
        if !content.is_empty() {
            return Ok(ComplexType { content, ..ComplexType::default() });
        }
        let arrays =
            place.children().filter_map(|child| child.element.attribute_in(WSDL, "arrayType"));
        let of = arrays.last().and_then(|value| value.trim().strip_suffix("[]"));
        let of = of.filter(|value| !value.contains('['));
        let of = of.and_then(|value| self.schemas.resolve(place, value));
        let holds = of.map_or(Holds::Any, |of| self.holds(of, place));
        let item = particles::item(holds, &mut members);
        Ok(ComplexType { content: vec![item], ..ComplexType::default() })
    }

    fn with_text(&mut self, content: Place<'t>) -> Result<ComplexType, String> {
        let (derivation, base) = self.derivation(content)?;
        let is_extension = derivation.element.local() == "extension";
        let found = self.schemas.find_from(Kind::Type, base, derivation);
        let mut held = ComplexType::default();
        match found.filter(|place| place.element.local() == "complexType") {
            Some(place) => {
                let from = self.base(base, place)?;
                held.attributes.clone_from(&from.attributes);
                held.text.clone_from(&from.text);
                held.base = Some(base.owned());
            }
            None => held.text = Some(self.simple_named(base, derivation)),
        }
        if !is_extension {
            let inside = derivation.child("simpleType").map(|place| self.simple_inline(place));
            let from = inside.or(held.text.take());
            held.text = from.map(|from| Rc::new(simple::restricted(&from, derivation)));
        }
        let text = held.text.get_or_insert_with(|| Rc::new(SimpleType::text()));
        debug_assert!(text.size > 0);
        let mut members = members_of(&held);
        self.attributes(derivation, &mut held, &mut members, GROUPS_MAX)?;
        Ok(held)
    }

    fn attributes(
        &mut self,
        place: Place<'t>,
        held: &mut ComplexType,
        members: &mut Members,
        left: usize,
    ) -> Result<(), String> {
        for child in place.children() {
            self.step()?;
            match child.element.local() {
                "attribute" => self.attribute(child, held, members),
                "attributeGroup" => {
                    let name = child.element.attribute("ref").unwrap_or_default();
                    let name = self.schemas.resolve(child, name);
                    let group = name
                        .and_then(|name| self.schemas.find_from(Kind::AttributeGroup, name, child));
                    let Some(group) = group else {
                        self.notes.add("a group of attributes is not described; it is left out");
                        continue;
                    };
                    let left = left
                        .checked_sub(1)
                        .ok_or("groups of attributes lead to each other without end")?;
                    self.attributes(group, held, members, left)?;
                }
                "anyAttribute" => self.notes.add(
                    "an element takes attributes of any name besides those described \
                     (`anyAttribute`); they are neither written nor read",
                ),
                _ => {}
            }
            if held.attributes.len() > ATTRIBUTES_MAX {
                return Err(format!("it has more than {ATTRIBUTES_MAX} attributes"));
            }
        }
        Ok(())
    }

    fn attribute(&mut self, place: Place<'t>, held: &mut ComplexType, members: &mut Members) {
        let of = |key: &str| place.element.attribute(key);
        let (name, declared) = if let Some(value) = of("ref") {
            let name = self.schemas.resolve(place, value).filter(|name| name.is_sound());
            let Some(name) = name else { return };
            // `soap-enc:arrayType` says nothing in a literal message.
            if name.namespace == SOAP_ENCODING || name.namespace == SOAP_ENCODING_1_2 {
                return;
            }
            (name, self.schemas.find_from(Kind::Attribute, name, place))
        } else {
            let local = of("name").map(str::trim).filter(|name| is_name(name));
            let Some(local) = local else { return };
            let schema = self.schemas.schema(place);
            let is_qualified = match of("form") {
                Some(form) => form == "qualified",
                None => schema.is_some_and(|schema| schema.attributes_qualified),
            };
            let namespace = schema.filter(|_| is_qualified).map_or("", |own| own.namespace);
            (QName::new(namespace, local), Some(place))
        };
        let owned = name.owned();
        let inherited = held.attributes.iter().position(|known| known.name == owned);
        let inherited = inherited.map(|index| held.attributes.remove(index));
        if of("use") == Some("prohibited") {
            return;
        }
        let simple = if let Some(declared) = declared {
            self.attribute_type(declared)
        } else {
            if name.namespace != XML_NAMESPACE {
                self.notes.add(format!("the attribute {name} is not described; it is text"));
            }
            Rc::new(SimpleType::text())
        };
        let said = |key: &str| {
            let there = of(key).or_else(|| declared?.element.attribute(key));
            there.map(str::to_owned)
        };
        let member = match inherited {
            Some(inherited) => inherited.member,
            None => members.of_other(name.local, "attribute"),
        };
        held.attributes.push(AttributeUse {
            name: owned,
            member,
            simple,
            is_required: of("use") == Some("required"),
            fixed: said("fixed"),
            default: said("default"),
            documentation: documentation(place.element, DOCUMENTATION_CHARS_MAX),
        });
    }

    fn attribute_type(&mut self, place: Place<'t>) -> Rc<SimpleType> {
        if let Some(inside) = place.child("simpleType") {
            return self.simple_inline(inside);
        }
        let name = place.element.attribute("type");
        match name.and_then(|value| self.schemas.resolve(place, value)) {
            Some(name) => self.simple_named(name, place),
            None => Rc::new(SimpleType::text()),
        }
    }
}

/// The names that are given in a type.
fn members_of(held: &ComplexType) -> Members {
    let mut members = Members::new(held.text.is_some());
    let mut elements = Vec::new();
    let mut others = Vec::new();
    for part in &held.content {
        part.elements(&mut elements);
        part.others(&mut others);
    }
    for element in elements {
        members.keep(&element.name, &element.member);
    }
    for member in others {
        members.keep_other(member);
    }
    for attribute in &held.attributes {
        members.keep_other(&attribute.member);
    }
    members
}

/// What the annotation of a component says, for people.
pub(super) fn documentation(element: Element<'_>, chars_max: usize) -> String {
    let Some(annotation) = element.child(XSD, "annotation") else { return String::new() };
    let texts = annotation.children().filter(|child| child.is(XSD, "documentation"));
    let texts: Vec<String> = texts.take(4).map(|text| text.text_within(chars_max * 8)).collect();
    clean::line(&texts.join(" "), chars_max)
}
