//! The types of a service, resolved: names bound, tags written out, derived types found.

use std::collections::{BTreeSet, HashMap};

use super::super::{
    TEXT_MEMBER, TYPE_MEMBER, XmlContent, XmlElement, XmlGroup, XmlName, XmlParticle, XmlType,
    XmlTypes, XmlValue,
};
use super::error::SoapError;
use super::{CONTENT_DEPTH_MAX, DERIVATIONS_MAX};
use crate::json::write_string;
use crate::xml::{XML_NAMESPACE, escape_attribute, is_name};

/// The types of a toolset, compiled once for all its operations.
#[derive(Debug, Default)]
pub struct SoapTypes {
    /// In the order of their names.
    pub(super) types: Vec<TypePlan>,
    pub(super) namespaces: Namespaces,
}

/// A type, or the parts of a message as if they were one.
#[derive(Debug, Default)]
pub(super) struct TypePlan {
    pub(super) name: Option<XmlName>,
    /// The name with its prefix, as `xsi:type` has it.
    pub(super) qualified: Box<str>,
    pub(super) is_abstract: bool,
    base: Option<usize>,
    /// Of its own name.
    namespace: Option<usize>,
    /// Every type that may stand in its place and is not abstract, itself left out.
    pub(super) derived: Vec<usize>,
    /// Every part of its object: attributes, text, elements.
    pub(super) members: Vec<Member>,
    /// Members by their names.
    by_name: Vec<usize>,
    /// Element members by their local names.
    by_local: Vec<usize>,
    /// The member that takes elements of other names.
    pub(super) any: Option<usize>,
    /// The member of the text.
    pub(super) text: Option<usize>,
    pub(super) content: Vec<Particle>,
    /// Its elements belong together in rounds.
    pub(super) has_rounds: bool,
    /// Of its tags.
    namespaces: BTreeSet<usize>,
    /// Types of its elements.
    refers: BTreeSet<usize>,
}

/// A part of an object.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: Box<str>,
    /// As it is written in JSON: quoted and with its colon.
    pub(super) key: Box<[u8]>,
    pub(super) part: Part,
    /// In JSON it is an array.
    pub(super) is_array: bool,
    /// Of a group that repeats, it stands no more than once in each round.
    pub(super) is_single: bool,
    /// Of an element of a group that repeats as a whole: which group, and where in a round.
    pub(super) round: Option<(usize, usize)>,
}

#[derive(Debug)]
pub(super) enum Part {
    Attribute(AttributePlan),
    Text(XmlValue),
    Element(ElementPlan),
    Any,
}

#[derive(Debug)]
pub(super) struct AttributePlan {
    pub(super) name: XmlName,
    /// ` n1:name="`
    pub(super) open: Box<str>,
    pub(super) value: XmlValue,
    /// Escaped.
    pub(super) fixed: Option<Box<str>>,
}

#[derive(Debug)]
pub(super) struct ElementPlan {
    pub(super) name: XmlName,
    /// `<n1:name`
    pub(super) open: Box<str>,
    /// `</n1:name>`
    pub(super) close: Box<str>,
    pub(super) holds: Holds,
    pub(super) repeats: bool,
    pub(super) required: bool,
    pub(super) nillable: bool,
    /// Escaped.
    pub(super) fixed: Option<Box<str>>,
}

#[derive(Debug)]
pub(super) enum Holds {
    Value(XmlValue),
    /// Of [`SoapTypes::types`].
    Type(usize),
    Any,
}

/// The order that the members of a type are written in.
#[derive(Debug)]
pub(super) enum Particle {
    /// Of [`TypePlan::members`].
    Member(usize),
    Sequence {
        repeats: bool,
        parts: Vec<Self>,
    },
    Choice {
        repeats: bool,
        /// One of them must stand there.
        required: bool,
        parts: Vec<Self>,
    },
}

/// Namespaces by their numbers, which are those of their prefixes.
#[derive(Debug, Default, Clone)]
pub(super) struct Namespaces {
    uris: Vec<Box<str>>,
    numbers: HashMap<Box<str>, usize>,
}

impl Namespaces {
    fn number(&mut self, uri: &str) -> Option<usize> {
        if uri.is_empty() || uri == XML_NAMESPACE {
            return None;
        }
        if let Some(known) = self.numbers.get(uri) {
            return Some(*known);
        }
        let number = self.uris.len();
        self.uris.push(uri.into());
        self.numbers.insert(uri.into(), number);
        Some(number)
    }

    /// The number of a namespace that has one.
    pub(super) fn known(&self, uri: &str) -> Option<usize> {
        self.numbers.get(uri).copied()
    }

    /// The name with its prefix.
    fn qualified(&mut self, name: &XmlName, used: &mut BTreeSet<usize>) -> String {
        match self.number(&name.namespace) {
            Some(number) => {
                used.insert(number);
                format!("n{}:{}", number + 1, name.local)
            }
            None if name.namespace.is_empty() => name.local.to_string(),
            None => format!("xml:{}", name.local),
        }
    }

    /// ` xmlns:n1="urn:shop"`
    pub(super) fn declare(&self, number: usize, out: &mut String) {
        let uri = self.uris.get(number).map(AsRef::as_ref).unwrap_or_default();
        out.push_str(" xmlns:n");
        out.push_str(itoa::Buffer::new().format(number + 1));
        out.push_str("=\"");
        // One that XML cannot hold was refused where it was read.
        escape_attribute(uri, out).unwrap_or_default();
        out.push('"');
    }
}

impl SoapTypes {
    /// Resolves the types of a service.
    ///
    /// # Errors
    ///
    /// Names every type that is wrong and what to change.
    pub fn compile(types: &XmlTypes) -> Result<Self, Vec<SoapError>> {
        let mut errors = Vec::new();
        let names: Vec<&XmlName> = types.0.keys().collect();
        let mut made = Self::default();
        for (name, declared) in &types.0 {
            let place = format!("type `{name}`");
            let mut builder = Builder::new(&place, &names, &mut made.namespaces, &mut errors);
            builder.typed(name, declared);
            let plan = builder.finish();
            made.types.push(plan);
        }
        made.index_derived(types, &mut errors);
        if errors.is_empty() { Ok(made) } else { Err(errors) }
    }

    fn index_derived(&mut self, types: &XmlTypes, errors: &mut Vec<SoapError>) {
        let bases: Vec<Option<usize>> = self.types.iter().map(|plan| plan.base).collect();
        for (index, name) in types.0.keys().enumerate() {
            let is_abstract = self.types.get(index).is_some_and(|plan| plan.is_abstract);
            let mut ancestor = bases.get(index).copied().flatten();
            let mut steps = 0;
            while let Some(at) = ancestor {
                steps += 1;
                if steps > DERIVATIONS_MAX {
                    errors.push(SoapError::Derivation { name: name.clone() });
                    return;
                }
                if !is_abstract && let Some(plan) = self.types.get_mut(at) {
                    plan.derived.push(index);
                }
                ancestor = bases.get(at).copied().flatten();
            }
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&TypePlan> {
        self.types.get(index)
    }

    /// The type of this name.
    pub(super) fn find(&self, namespace: &str, local: &str) -> Option<usize> {
        let key = |plan: &TypePlan| {
            let name = plan.name.as_ref();
            let name = name.map(|name| (&*name.namespace, &*name.local));
            name.unwrap_or_default().cmp(&(namespace, local))
        };
        self.types.binary_search_by(key).ok()
    }

    /// Namespaces of everything that may stand within these parts and this type.
    pub(super) fn reachable<'a>(
        &self,
        roots: impl Iterator<Item = &'a TypePlan>,
        first: Option<usize>,
    ) -> BTreeSet<usize> {
        let mut namespaces = BTreeSet::new();
        let mut waiting = Vec::from_iter(first);
        for root in roots {
            namespaces.extend(&root.namespaces);
            waiting.extend(&root.refers);
        }
        let mut seen = vec![false; self.types.len()];
        while let Some(index) = waiting.pop() {
            let (Some(plan), Some(seen)) = (self.types.get(index), seen.get_mut(index)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            namespaces.extend(&plan.namespaces);
            let named = plan.derived.iter().filter_map(|derived| self.types.get(*derived));
            namespaces.extend(named.filter_map(|derived| derived.namespace));
            waiting.extend(&plan.refers);
            waiting.extend(&plan.derived);
        }
        namespaces
    }
}

impl TypePlan {
    /// Whether another type may stand in its place.
    pub(super) fn may_be(&self, other: usize) -> bool {
        self.derived.binary_search(&other).is_ok()
    }

    /// Whether its JSON is a single value instead of an object. Where another type may stand in its
    /// place it is an object always, so that it is the same thing whatever comes.
    pub(super) fn is_value(&self) -> bool {
        self.text.is_some() && self.members.len() == 1 && self.derived.is_empty()
    }

    pub(super) fn elements(&self) -> impl Iterator<Item = &ElementPlan> {
        self.members.iter().filter_map(|member| match &member.part {
            Part::Element(element) => Some(element),
            _ => None,
        })
    }

    pub(super) fn member(&self, name: &str) -> Option<usize> {
        let found = self.by_name.binary_search_by(|index| {
            self.members.get(*index).map_or("", |member| &member.name).cmp(name)
        });
        found.ok().and_then(|found| self.by_name.get(found).copied())
    }

    /// Members whose elements have this local name.
    pub(super) fn named<'a>(
        &'a self,
        local: &'a str,
    ) -> impl Iterator<Item = (usize, &'a ElementPlan)> {
        let start = self.by_local.partition_point(|index| self.local(*index) < local);
        let found = self.by_local.get(start..).unwrap_or_default().iter();
        found.map_while(move |index| match &self.members.get(*index)?.part {
            Part::Element(element) if &*element.name.local == local => Some((*index, element)),
            _ => None,
        })
    }

    fn local(&self, index: usize) -> &str {
        match self.members.get(index).map(|member| &member.part) {
            Some(Part::Element(element)) => &element.name.local,
            _ => "",
        }
    }
}

impl ElementPlan {
    pub(super) const fn type_index(&self) -> Option<usize> {
        match self.holds {
            Holds::Type(index) => Some(index),
            Holds::Value(_) | Holds::Any => None,
        }
    }
}

/// Makes the plan of one type or of the parts of a message.
pub(super) struct Builder<'a> {
    place: &'a str,
    /// Those of all types, in order.
    names: &'a [&'a XmlName],
    namespaces: &'a mut Namespaces,
    errors: &'a mut Vec<SoapError>,
    plan: TypePlan,
    groups: usize,
}

/// Where a particle stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Whatever stands here may stand more than once.
    is_repeated: bool,
    /// And not more than once in each round of a sequence.
    is_in_rounds: bool,
    /// The repeating sequence, and the place in it where that is the same for all of a choice.
    group: Option<usize>,
    within_choice: Option<usize>,
    /// Where the members of the outermost choice begin, and of this alternative.
    alternative: Option<(usize, usize)>,
    depth: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        place: &'a str,
        names: &'a [&'a XmlName],
        namespaces: &'a mut Namespaces,
        errors: &'a mut Vec<SoapError>,
    ) -> Self {
        Self { place, names, namespaces, errors, plan: TypePlan::default(), groups: 0 }
    }

    fn typed(&mut self, name: &XmlName, declared: &XmlType) {
        // Types that the schema leaves unnamed have names that no message can have.
        if is_name(&name.local) {
            let mut own = BTreeSet::new();
            self.plan.qualified = self.namespaces.qualified(name, &mut own).into();
            self.plan.namespace = own.first().copied();
        }
        self.plan.name = Some(name.clone());
        self.plan.is_abstract = declared.is_abstract;
        self.plan.base = declared.base.as_ref().and_then(|base| {
            // One that is not there stands in no message, so nothing can stand in its place.
            self.names.binary_search(&base).ok()
        });
        for attribute in &declared.attributes {
            let plan = AttributePlan {
                name: attribute.name.clone(),
                open: format!(" {}=\"", self.qualified(&attribute.name)).into(),
                value: self.checked(&attribute.value, &attribute.member),
                fixed: attribute.fixed.as_ref().map(|text| self.fixed(text, &attribute.member)),
            };
            self.push(&attribute.member, Part::Attribute(plan), false, Place::default());
        }
        if let Some(value) = &declared.text {
            if !declared.content.is_empty() {
                self.errors.push(SoapError::TextAndElements { name: name.clone() });
            }
            let value = self.checked(value, TEXT_MEMBER);
            self.plan.text =
                Some(self.push(TEXT_MEMBER, Part::Text(value), false, Place::default()));
        }
        self.plan.content = self.particles(&declared.content, Place::default());
    }

    /// Elements that stand one behind the other.
    pub(super) fn elements<'e>(&mut self, elements: impl Iterator<Item = &'e XmlElement>) {
        for element in elements {
            let particle = self.element(element, Place::default());
            self.plan.content.push(particle);
        }
    }

    /// An element that is a part of no object.
    pub(super) fn lone(&mut self, element: &XmlElement) -> ElementPlan {
        let name = self.qualified(&element.name);
        let place = || format!("element `{}`", element.name);
        if element.member.is_empty() {
            self.errors.push(SoapError::NoMember { place: self.place.to_owned() });
        }
        let holds = match &element.holds {
            XmlContent::Value(value) => Holds::Value(self.checked(value, &element.member)),
            XmlContent::Type(held) => match self.resolve(held, &place()) {
                Some(index) => {
                    self.plan.refers.insert(index);
                    Holds::Type(index)
                }
                None => Holds::Any,
            },
            XmlContent::Any => Holds::Any,
        };
        if element.fixed.is_some() && !matches!(element.holds, XmlContent::Value(_)) {
            self.errors.push(SoapError::Fixed { place: format!("{}, {}", self.place, place()) });
        }
        ElementPlan {
            open: format!("<{name}").into(),
            close: format!("</{name}>").into(),
            name: element.name.clone(),
            holds,
            repeats: element.repeats,
            required: element.required,
            nillable: element.nillable,
            fixed: element.fixed.as_ref().map(|text| self.fixed(text, &element.member)),
        }
    }

    /// The tags of a name.
    pub(super) fn tags(&mut self, name: &XmlName) -> (Box<str>, Box<str>) {
        let name = self.qualified(name);
        (format!("<{name}").into(), format!("</{name}>").into())
    }

    fn particles(&mut self, parts: &[XmlParticle], place: Place) -> Vec<Particle> {
        if place.depth > CONTENT_DEPTH_MAX {
            self.errors.push(SoapError::TooDeep { place: self.place.to_owned() });
            return Vec::new();
        }
        parts.iter().map(|part| self.particle(part, place)).collect()
    }

    fn particle(&mut self, part: &XmlParticle, place: Place) -> Particle {
        match part {
            XmlParticle::Element(element) => self.element(element, place),
            XmlParticle::Any { member, repeats } => {
                let is_array = *repeats || place.is_repeated;
                let place = Place { is_in_rounds: place.is_in_rounds && !repeats, ..place };
                let index = self.push(member, Part::Any, is_array, place);
                if self.plan.any.is_none() {
                    self.plan.any = Some(index);
                }
                Particle::Member(index)
            }
            XmlParticle::Sequence(XmlGroup { repeats, content, .. }) => {
                // One of a choice that repeats is one of its rounds.
                let repeats = *repeats || (place.is_repeated && !place.is_in_rounds);
                let mut within = Place { depth: place.depth + 1, ..place };
                if repeats {
                    within.is_in_rounds = true;
                    // Of groups within groups only the outer one has rounds that are told.
                    within.group = if place.is_repeated && place.group.is_some() {
                        None
                    } else {
                        self.groups += 1;
                        self.plan.has_rounds = true;
                        Some(self.groups)
                    };
                    within.is_repeated = true;
                    within.within_choice = None;
                }
                Particle::Sequence { repeats, parts: self.particles(content, within) }
            }
            XmlParticle::Choice(XmlGroup { repeats, required, content }) => {
                let repeats = *repeats || (place.is_repeated && !place.is_in_rounds);
                let mut within = Place { depth: place.depth + 1, ..place };
                if repeats {
                    within.is_in_rounds = false;
                    within.group = None;
                    within.is_repeated = true;
                }
                if within.group.is_some() && within.within_choice.is_none() {
                    within.within_choice = Some(self.plan.members.len());
                }
                if within.depth > CONTENT_DEPTH_MAX {
                    let parts = self.particles(content, within);
                    return Particle::Choice { repeats, required: false, parts };
                }
                let choice =
                    place.alternative.map_or(self.plan.members.len(), |(choice, _)| choice);
                let alternative = |part| {
                    within.alternative = Some((choice, self.plan.members.len()));
                    self.particle(part, within)
                };
                let parts: Vec<Particle> = content.iter().map(alternative).collect();
                // One that stands elsewhere may be the one that is given.
                let is_elsewhere = |part: &Particle| matches!(part, Particle::Sequence { parts, .. } if parts.is_empty());
                let required = *required && !parts.iter().any(is_elsewhere);
                Particle::Choice { repeats, required, parts }
            }
        }
    }

    fn element(&mut self, element: &XmlElement, place: Place) -> Particle {
        let plan = self.lone(element);
        let is_array = element.repeats || place.is_repeated;
        if let Some((choice, alternative)) = place.alternative
            && let Some(known) = self.known(&element.member, &plan)
        {
            // What stands elsewhere too is written there.
            if !(choice..alternative).contains(&known) {
                return Particle::Sequence { repeats: false, parts: Vec::new() };
            }
            // The same element in several alternatives of a choice is one member.
            if let Some(member) = self.plan.members.get_mut(known) {
                member.is_array |= is_array;
                if let Part::Element(other) = &mut member.part {
                    other.repeats |= plan.repeats;
                }
            }
            return Particle::Member(known);
        }
        Particle::Member(self.push(&element.member, Part::Element(plan), is_array, place))
    }

    fn known(&self, member: &str, element: &ElementPlan) -> Option<usize> {
        self.plan.members.iter().position(|known| {
            *known.name == *member
                && matches!(&known.part, Part::Element(other) if other.name == element.name)
        })
    }

    fn push(&mut self, member: &str, part: Part, is_array: bool, place: Place) -> usize {
        let index = self.plan.members.len();
        if member.is_empty() {
            self.errors.push(SoapError::NoMember { place: self.place.to_owned() });
        }
        if member == TYPE_MEMBER {
            self.errors.push(SoapError::Reserved { place: self.place.to_owned() });
        }
        let repeats = matches!(&part, Part::Element(element) if element.repeats);
        let is_single = place.is_in_rounds && !repeats;
        let round = place.group.filter(|_| is_single);
        let round = round.map(|group| (group, place.within_choice.unwrap_or(index)));
        let mut key = Vec::with_capacity(member.len() + 3);
        write_string(&mut key, member);
        key.push(b':');
        let (name, key) = (member.into(), key.into_boxed_slice());
        self.plan.members.push(Member { name, key, part, is_array, is_single, round });
        index
    }

    pub(super) fn finish(mut self) -> TypePlan {
        let members = &self.plan.members;
        let name_of = |index: &usize| members.get(*index).map(|member| &*member.name);
        let mut by_name: Vec<usize> = (0..members.len()).collect();
        by_name.sort_by_key(name_of);
        for two in by_name.windows(2) {
            if let [one, other] = two
                && name_of(one) == name_of(other)
            {
                let member = name_of(one).unwrap_or_default().to_owned();
                self.errors.push(SoapError::Duplicate { place: self.place.to_owned(), member });
            }
        }
        let is_element = |index: &usize| {
            members.get(*index).is_some_and(|member| matches!(member.part, Part::Element(_)))
        };
        let mut by_local: Vec<usize> = (0..members.len()).filter(is_element).collect();
        by_local.sort_by(|one, other| self.plan.local(*one).cmp(self.plan.local(*other)));
        self.plan.by_name = by_name;
        self.plan.by_local = by_local;
        self.plan
    }

    fn resolve(&mut self, name: &XmlName, what: &str) -> Option<usize> {
        let found = self.names.binary_search(&name).ok();
        if found.is_none() {
            let place = format!("{}, {what}", self.place);
            self.errors.push(SoapError::UnknownType { place, name: name.clone() });
        }
        found
    }

    fn qualified(&mut self, name: &XmlName) -> String {
        let holds_characters = escape_attribute(&name.namespace, &mut String::new()).is_ok();
        if !is_name(&name.local) || !holds_characters {
            let place = self.place.to_owned();
            self.errors.push(SoapError::Name { place, name: name.clone() });
        }
        self.namespaces.qualified(name, &mut self.plan.namespaces)
    }

    fn checked(&mut self, value: &XmlValue, member: &str) -> XmlValue {
        if let XmlValue::List(item) = value
            && matches!(**item, XmlValue::List(_))
        {
            self.errors.push(SoapError::NestedList { place: format!("{}, {member}", self.place) });
        }
        value.clone()
    }

    fn fixed(&mut self, text: &str, member: &str) -> Box<str> {
        let mut out = String::new();
        // Escaped for attributes it is right between tags too.
        if let Err(error) = escape_attribute(text, &mut out) {
            let place = format!("{}, {member}", self.place);
            self.errors.push(SoapError::FixedText { place, error });
        }
        out.into()
    }
}
