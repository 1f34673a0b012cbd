//! Makes plans of types: binds names, writes tags out, finds what is wrong.

use std::collections::BTreeSet;

use super::super::{
    TEXT_MEMBER, TYPE_MEMBER, XmlContent, XmlElement, XmlGroup, XmlName, XmlParticle, XmlType,
    XmlValue,
};
use super::CONTENT_DEPTH_MAX;
use super::error::PlanError;
use super::types::{
    AttributePlan, ElementPlan, Holds, Member, Namespaces, Part, Particle, TypePlan,
};
use crate::json::write_string;
use crate::xml::{escape_attribute, is_name};

/// Makes the plan of one type or of the parts of a message.
pub(in crate::mapping) struct Builder<'a> {
    place: &'a str,
    /// Those of all types, in order.
    names: &'a [&'a XmlName],
    namespaces: &'a mut Namespaces,
    errors: &'a mut Vec<PlanError>,
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
    pub(in crate::mapping) fn new(
        place: &'a str,
        names: &'a [&'a XmlName],
        namespaces: &'a mut Namespaces,
        errors: &'a mut Vec<PlanError>,
    ) -> Self {
        Self { place, names, namespaces, errors, plan: TypePlan::default(), groups: 0 }
    }

    pub(in crate::mapping) fn typed(&mut self, name: &XmlName, declared: &XmlType) {
        // Types that the schema leaves unnamed have names that no message can have.
        if is_name(&name.local) {
            let mut own = BTreeSet::new();
            self.plan.qualified = self.namespaces.qualified(name, None, &mut own).into();
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
                open: format!(
                    " {}=\"",
                    self.qualified(&attribute.name, attribute.prefix.as_deref())
                )
                .into(),
                value: self.checked(&attribute.value, &attribute.member),
                fixed: attribute.fixed.as_ref().map(|text| self.fixed(text, &attribute.member)),
            };
            self.push(&attribute.member, Part::Attribute(plan), false, Place::default());
        }
        if let Some(value) = &declared.text {
            if !declared.content.is_empty() {
                self.errors.push(PlanError::TextAndElements { name: name.clone() });
            }
            let value = self.checked(value, TEXT_MEMBER);
            self.plan.text =
                Some(self.push(TEXT_MEMBER, Part::Text(value), false, Place::default()));
        }
        self.plan.content = self.particles(&declared.content, Place::default());
    }

    /// Elements that stand one behind the other.
    pub(in crate::mapping) fn elements<'e>(
        &mut self,
        elements: impl Iterator<Item = &'e XmlElement>,
    ) {
        for element in elements {
            let particle = self.element(element, Place::default());
            self.plan.content.push(particle);
        }
    }

    /// An element that is a part of no object.
    pub(in crate::mapping) fn lone(&mut self, element: &XmlElement) -> ElementPlan {
        if element.member.is_empty() {
            self.errors.push(PlanError::NoMember { place: self.place.to_owned() });
        }
        self.unnamed(element, 0)
    }

    /// An element that has no name in JSON.
    pub(in crate::mapping) fn unnamed(
        &mut self,
        element: &XmlElement,
        depth: usize,
    ) -> ElementPlan {
        let name = self.qualified(&element.name, element.prefix.as_deref());
        let place = || format!("element `{}`", element.name);
        let holds = match &element.holds {
            XmlContent::List(_) | XmlContent::Map(_) if depth > CONTENT_DEPTH_MAX => {
                self.errors.push(PlanError::TooDeep { place: self.place.to_owned() });
                Holds::Any
            }
            XmlContent::List(item) => Holds::List(Box::new(self.unnamed(item, depth + 1))),
            XmlContent::Map(item) => {
                let mut item = self.unnamed(item, depth + 1);
                let bare = |tag: &str| tag.strip_suffix(&*item.name.local).map(Into::into);
                let close = item.close.strip_suffix('>').and_then(bare);
                if let (Some(open), Some(close)) = (bare(&item.open), close) {
                    (item.open, item.close) = (open, close);
                }
                Holds::Map(Box::new(item))
            }
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
            self.errors.push(PlanError::Fixed { place: format!("{}, {}", self.place, place()) });
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
    pub(in crate::mapping) fn tags(&mut self, name: &XmlName) -> (Box<str>, Box<str>) {
        let name = self.qualified(name, None);
        (format!("<{name}").into(), format!("</{name}>").into())
    }

    fn particles(&mut self, parts: &[XmlParticle], place: Place) -> Vec<Particle> {
        if place.depth > CONTENT_DEPTH_MAX {
            self.errors.push(PlanError::TooDeep { place: self.place.to_owned() });
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
            self.errors.push(PlanError::NoMember { place: self.place.to_owned() });
        }
        if member == TYPE_MEMBER {
            self.errors.push(PlanError::Reserved { place: self.place.to_owned() });
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

    pub(in crate::mapping) fn finish(mut self) -> TypePlan {
        let members = &self.plan.members;
        let name_of = |index: &usize| members.get(*index).map(|member| &*member.name);
        let mut by_name: Vec<usize> = (0..members.len()).collect();
        by_name.sort_by_key(name_of);
        for two in by_name.windows(2) {
            if let [one, other] = two
                && name_of(one) == name_of(other)
            {
                let member = name_of(one).unwrap_or_default().to_owned();
                self.errors.push(PlanError::Duplicate { place: self.place.to_owned(), member });
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
            self.errors.push(PlanError::UnknownType { place, name: name.clone() });
        }
        found
    }

    fn qualified(&mut self, name: &XmlName, prefix: Option<&str>) -> String {
        if let Some(prefix) = prefix.filter(|prefix| !is_prefix(prefix)) {
            let (place, prefix) = (self.place.to_owned(), prefix.to_owned());
            self.errors.push(PlanError::Prefix { place, prefix });
        }
        let holds_characters = escape_attribute(&name.namespace, &mut String::new()).is_ok();
        if !is_name(&name.local) || !holds_characters {
            let place = self.place.to_owned();
            self.errors.push(PlanError::Name { place, name: name.clone() });
        }
        self.namespaces.qualified(name, prefix, &mut self.plan.namespaces)
    }

    fn checked(&mut self, value: &XmlValue, member: &str) -> XmlValue {
        if let XmlValue::List(item) = value
            && matches!(**item, XmlValue::List(_))
        {
            self.errors.push(PlanError::NestedList { place: format!("{}, {member}", self.place) });
        }
        value.clone()
    }

    fn fixed(&mut self, text: &str, member: &str) -> Box<str> {
        let mut out = String::new();
        // Escaped for attributes it is right between tags too.
        if let Err(error) = escape_attribute(text, &mut out) {
            let place = format!("{}, {member}", self.place);
            self.errors.push(PlanError::FixedText { place, error });
        }
        out.into()
    }
}

/// Namespaces in XML 1.0, section 3: names that begin with `xml` are reserved.
fn is_prefix(prefix: &str) -> bool {
    let is_reserved = prefix.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("xml"));
    is_name(prefix) && !is_reserved
}
