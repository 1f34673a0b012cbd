//! Types and elements as they are read from schemas: what the catalog keeps of them, and what
//! clients are told besides.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::notes::Notes;
use crate::mapping::{
    XmlAttribute, XmlContent, XmlElement, XmlGroup, XmlName, XmlParticle, XmlType, XmlTypes,
    XmlValue,
};

/// A type of text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SimpleType {
    /// What is written.
    pub(super) value: XmlValue,
    /// Words of JSON Schema, `type` among them.
    pub(super) schema: Map<String, Value>,
    /// Two digits are one octet, and lengths are those of octets.
    pub(super) is_hex: bool,
    /// What the words cannot say.
    pub(super) hint: String,
    pub(super) documentation: String,
    /// How many JSON values the schema has.
    pub(super) size: usize,
}

/// A complex type, with everything that it inherits.
#[derive(Debug, Clone, Default)]
pub(super) struct ComplexType {
    pub(super) base: Option<XmlName>,
    /// The types directly derived from it.
    pub(super) derived: Vec<XmlName>,
    pub(super) is_abstract: bool,
    /// Its content is XML text: it is mixed, or cannot be read.
    pub(super) is_any: bool,
    pub(super) attributes: Vec<AttributeUse>,
    pub(super) text: Option<Rc<SimpleType>>,
    pub(super) content: Vec<Particle>,
    pub(super) documentation: String,
    pub(super) notes: Notes,
}

#[derive(Debug, Clone)]
pub(super) struct AttributeUse {
    pub(super) name: XmlName,
    pub(super) member: Box<str>,
    pub(super) simple: Rc<SimpleType>,
    pub(super) is_required: bool,
    pub(super) fixed: Option<String>,
    pub(super) default: Option<String>,
    pub(super) documentation: String,
}

#[derive(Debug, Clone)]
pub(super) enum Particle {
    Element(Rc<ElementUse>),
    /// A sequence that may repeat, or one of several in a choice.
    Sequence {
        repeats: bool,
        content: Vec<Self>,
    },
    Choice {
        repeats: bool,
        is_required: bool,
        content: Vec<Self>,
    },
    Any {
        member: Box<str>,
        repeats: bool,
        is_required: bool,
    },
}

#[derive(Debug, Clone)]
pub(super) struct ElementUse {
    pub(super) name: XmlName,
    pub(super) member: Box<str>,
    pub(super) holds: Holds,
    /// How often it stands there at least, where what it stands in is there.
    pub(super) least: u32,
    /// `u32::MAX` where there is no bound.
    pub(super) most: u32,
    /// It has to be there, whatever else is.
    pub(super) is_required: bool,
    pub(super) is_nillable: bool,
    pub(super) fixed: Option<String>,
    pub(super) default: Option<String>,
    pub(super) documentation: String,
}

impl ElementUse {
    /// Always written, whatever a call has.
    pub(super) fn constant(&self) -> Option<&String> {
        self.fixed.as_ref().filter(|_| self.is_required && self.most == 1)
    }
}

impl AttributeUse {
    /// Always written, whatever a call has.
    pub(super) fn constant(&self) -> Option<&String> {
        self.fixed.as_ref().filter(|_| self.is_required)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Holds {
    Value(Rc<SimpleType>),
    /// A complex type of the model.
    Type(XmlName),
    Any,
}

/// What an element holds, once all types are known.
#[derive(Debug, Clone, Copy)]
pub(super) enum Held<'m> {
    Value(&'m SimpleType),
    Object(&'m XmlName, &'m ComplexType),
    Any,
}

/// The complex types that were asked for, and all they lead to.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) types: BTreeMap<XmlName, ComplexType>,
}

impl Model {
    pub(super) fn held<'m>(&'m self, holds: &'m Holds) -> Held<'m> {
        let name = match holds {
            Holds::Value(simple) => return Held::Value(simple),
            Holds::Any => return Held::Any,
            Holds::Type(name) => name,
        };
        match self.types.get(name) {
            Some(held) if !held.is_any => match &held.text {
                // Nothing tells it from a simple type.
                Some(text) if held.attributes.is_empty() => Held::Value(text),
                _ => Held::Object(name, held),
            },
            _ => Held::Any,
        }
    }

    /// The types that may stand in the place of one, at most `most`, nearest first.
    pub(super) fn derived(&self, name: &XmlName, most: usize) -> Vec<&XmlName> {
        let mut found: Vec<&XmlName> = Vec::new();
        let mut seen = HashSet::from([name]);
        let mut next = 0;
        let mut at = Some(name);
        while let Some(here) = at {
            let below = self.types.get(here).map_or(&[][..], |held| &held.derived);
            for derived in below {
                if found.len() < most && seen.insert(derived) {
                    found.push(derived);
                }
            }
            at = found.get(next).copied();
            next += 1;
        }
        found
    }

    pub(super) fn xml_element(&self, element: &ElementUse, can_be_required: bool) -> XmlElement {
        let holds = match self.held(&element.holds) {
            Held::Value(simple) => XmlContent::Value(simple.value.clone()),
            Held::Object(name, _) => XmlContent::Type(name.clone()),
            Held::Any => XmlContent::Any,
        };
        XmlElement {
            prefix: None,
            name: element.name.clone(),
            member: element.member.clone(),
            holds,
            repeats: element.most > 1,
            required: can_be_required && element.least > 0,
            nillable: element.is_nillable,
            fixed: element.constant().cloned(),
        }
    }

    fn particle(&self, particle: &Particle, in_choice: bool) -> XmlParticle {
        match particle {
            Particle::Element(element) => {
                let can_be_required = !in_choice && (element.is_required || element.least > 0);
                XmlParticle::Element(self.xml_element(element, can_be_required))
            }
            Particle::Sequence { repeats, content } => XmlParticle::Sequence(XmlGroup {
                repeats: *repeats,
                required: false,
                content: content.iter().map(|part| self.particle(part, false)).collect(),
            }),
            Particle::Choice { repeats, is_required, content } => XmlParticle::Choice(XmlGroup {
                repeats: *repeats,
                required: *is_required,
                content: content.iter().map(|part| self.particle(part, true)).collect(),
            }),
            Particle::Any { member, repeats, .. } => {
                XmlParticle::Any { member: member.clone(), repeats: *repeats }
            }
        }
    }

    /// What the catalog keeps.
    pub(super) fn xml_types(&self) -> XmlTypes {
        let kept = self.types.iter().filter(|(_, held)| !held.is_any);
        let types = kept.map(|(name, held)| {
            let xml = XmlType {
                base: held.base.clone().filter(|base| self.types.contains_key(base)),
                is_abstract: held.is_abstract,
                attributes: held.attributes.iter().map(xml_attribute).collect(),
                text: held.text.as_ref().map(|text| text.value.clone()),
                content: held.content.iter().map(|part| self.particle(part, false)).collect(),
            };
            (name.clone(), xml)
        });
        XmlTypes(types.collect())
    }

    /// What is to be told of a type and all it leads to; of a very large one not everything.
    pub(super) fn notes<'m>(&'m self, from: impl IntoIterator<Item = &'m Holds>) -> Notes {
        const TYPES_MAX: usize = 2_000;
        const ELEMENTS_MAX: usize = 40_000;
        let mut looked = 0;
        let mut notes = Notes::default();
        let name = |holds: &'m Holds| match holds {
            Holds::Type(name) => Some(name),
            _ => None,
        };
        let mut waiting: Vec<&XmlName> = from.into_iter().filter_map(name).collect();
        let mut seen: HashSet<&XmlName> = waiting.iter().copied().collect();
        while let Some(next) = waiting.pop() {
            let Some(held) = self.types.get(next) else { continue };
            notes.extend(&held.notes);
            if looked > ELEMENTS_MAX {
                break;
            }
            let mut elements = Vec::new();
            for part in &held.content {
                part.elements(&mut elements);
            }
            looked += elements.len();
            let inside = elements.into_iter().filter_map(|element| name(&element.holds));
            for found in inside.chain(&held.derived) {
                if seen.len() < TYPES_MAX && seen.insert(found) {
                    waiting.push(found);
                }
            }
        }
        notes
    }
}

fn xml_attribute(attribute: &AttributeUse) -> XmlAttribute {
    XmlAttribute {
        prefix: None,
        name: attribute.name.clone(),
        member: attribute.member.clone(),
        value: attribute.simple.value.clone(),
        fixed: attribute.constant().cloned(),
    }
}

impl Particle {
    /// The elements in it. Its depth is bounded where it is read.
    pub(super) fn elements<'p>(&'p self, out: &mut Vec<&'p ElementUse>) {
        match self {
            Self::Element(element) => out.push(element),
            Self::Sequence { content, .. } | Self::Choice { content, .. } => {
                for part in content {
                    part.elements(out);
                }
            }
            Self::Any { .. } => {}
        }
    }

    /// How many particles it consists of.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Element(_) | Self::Any { .. } => 1,
            Self::Sequence { content, .. } | Self::Choice { content, .. } => {
                1 + content.iter().map(Self::count).sum::<usize>()
            }
        }
    }

    /// The members of what is in it that are not elements.
    pub(super) fn others<'p>(&'p self, out: &mut Vec<&'p str>) {
        match self {
            Self::Element(_) => {}
            Self::Sequence { content, .. } | Self::Choice { content, .. } => {
                for part in content {
                    part.others(out);
                }
            }
            Self::Any { member, .. } => out.push(member),
        }
    }
}
