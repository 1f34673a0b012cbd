//! From XML to JSON.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use smallvec::SmallVec;

use super::super::{TYPE_MEMBER, XmlValue};
use super::attachments::Attachments;
use super::types::{ElementPlan, Holds, Member, Part, TypePlan, TypePlans};
use super::{DEPTH_MAX, INCLUDE_NAMESPACE, INSTANCE_NAMESPACE, Unreadable, values};
use crate::json::write_string;
use crate::xml::Element;

/// What a message may come to beyond its own text: what it says once of a namespace stands in JSON
/// at every name of it. At least, for each byte of the text, and at most.
const REPEATED_BYTES_MIN: usize = 1 << 20;
const REPEATED_PER_BYTE: usize = 16;
const REPEATED_BYTES_MAX: usize = 64 << 20;

/// The message of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its JSON: an object where it is the message of a SOAP service.
    pub json: Vec<u8>,
    /// How many elements are left out of it, because the schema does not know them or not so many.
    pub dropped: u64,
}

pub(in crate::mapping) struct Reader<'a> {
    pub(in crate::mapping) types: &'a TypePlans,
    attachments: &'a Attachments<'a>,
    /// How many bytes of attachments may still be put into the message: each once.
    includable: usize,
    /// How many bytes of namespaces, and of what stands in for what is not there, may still be
    /// written.
    repeatable: usize,
    pub(in crate::mapping) dropped: u64,
}

/// An element that was found for a member.
struct Found<'a> {
    member: usize,
    /// Of the group it belongs to.
    round: usize,
    element: Element<'a>,
}

impl<'a> Reader<'a> {
    /// Of a message whose text has so many bytes.
    pub(in crate::mapping) fn new(
        types: &'a TypePlans,
        attachments: &'a Attachments<'a>,
        text_bytes: usize,
    ) -> Self {
        let repeatable = text_bytes.saturating_mul(REPEATED_PER_BYTE);
        Self {
            types,
            attachments,
            includable: attachments.bytes(),
            repeatable: repeatable.clamp(REPEATED_BYTES_MIN, REPEATED_BYTES_MAX),
            dropped: 0,
        }
    }
}

impl Reader<'_> {
    /// Takes what is written from what may be.
    fn repeat(&mut self, bytes: usize) -> Result<(), Unreadable> {
        self.repeatable = self.repeatable.checked_sub(bytes).ok_or(Unreadable::TooLarge)?;
        Ok(())
    }

    /// An element as XML of its own.
    pub(in crate::mapping) fn xml<'e>(
        &mut self,
        element: Element<'e>,
    ) -> Result<Cow<'e, str>, Unreadable> {
        let xml = element.to_xml_within(self.repeatable).ok_or(Unreadable::TooLarge)?;
        self.repeat(xml.len())?;
        Ok(xml)
    }

    /// The members that an element has, without braces around them.
    pub(in crate::mapping) fn members(
        &mut self,
        plan: &TypePlan,
        element: Element<'_>,
        out: &mut Vec<u8>,
        is_first: &mut bool,
        depth: usize,
    ) -> Result<(), Unreadable> {
        let found = self.sorted(plan, element);
        let mut rest = found.as_slice();
        for (index, member) in plan.members.iter().enumerate() {
            let count = rest.iter().take_while(|found| found.member == index).count();
            let (own, behind) = rest.split_at(count);
            rest = behind;
            match &member.part {
                Part::Attribute(attribute) => {
                    let name = &attribute.name;
                    if let Some(text) = element.attribute_in(&name.namespace, &name.local) {
                        write_key(member, out, is_first);
                        let left = &mut self.repeatable;
                        values::read(&attribute.value, text, element, left, out)?;
                    }
                }
                Part::Text(value) => {
                    write_key(member, out, is_first);
                    self.text(value, element, out)?;
                }
                Part::Element(_) | Part::Any if member.is_array => {
                    if matches!(member.part, Part::Any) && own.is_empty() {
                        continue;
                    }
                    write_key(member, out, is_first);
                    self.array(member, own, out, depth)?;
                }
                Part::Element(_) | Part::Any => {
                    let Some((one, more)) = own.split_first() else { continue };
                    self.dropped += more.len() as u64;
                    write_key(member, out, is_first);
                    self.one(member, one.element, out, depth)?;
                }
            }
        }
        Ok(())
    }

    fn array(
        &mut self,
        member: &Member,
        found: &[Found<'_>],
        out: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), Unreadable> {
        out.push(b'[');
        let mut round = 0;
        for (index, one) in found.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            // What belongs together stands at the same place of each array.
            while member.round.is_some() && round < one.round {
                self.repeat(b"null,".len())?;
                out.extend_from_slice(b"null,");
                round += 1;
            }
            round += 1;
            self.one(member, one.element, out, depth)?;
        }
        out.push(b']');
        Ok(())
    }

    fn one(
        &mut self,
        member: &Member,
        element: Element<'_>,
        out: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), Unreadable> {
        if let Part::Element(plan) = &member.part {
            return self.value(plan, element, out, depth);
        }
        write_string(out, &self.xml(element)?);
        Ok(())
    }

    /// The elements within one, in the order of the members they belong to.
    fn sorted<'e>(&mut self, plan: &TypePlan, element: Element<'e>) -> SmallVec<[Found<'e>; 8]> {
        let mut all: SmallVec<[Found<'e>; 8]> = SmallVec::new();
        let mut rounds = Rounds::default();
        let mut is_sorted = true;
        let mut taken: SmallVec<[bool; 32]> = SmallVec::from_elem(false, plan.members.len());
        for child in element.children() {
            let is_taken = |index: usize| taken.get(index).copied().unwrap_or_default();
            let Some(index) = place_of(plan, child, is_taken) else {
                self.dropped += 1;
                continue;
            };
            let group = plan.members.get(index).and_then(|member| member.round);
            let round = group.map_or(0, |group| rounds.enter(group, index));
            is_sorted &= all.last().is_none_or(|last| last.member <= index);
            if let Some(taken) = taken.get_mut(index) {
                *taken = true;
            }
            all.push(Found { member: index, round, element: child });
        }
        if !is_sorted {
            all.sort_by_key(|found| found.member);
        }
        all
    }

    pub(in crate::mapping) fn value(
        &mut self,
        plan: &ElementPlan,
        element: Element<'_>,
        out: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), Unreadable> {
        if matches!(element.attribute_in(INSTANCE_NAMESPACE, "nil"), Some("true" | "1")) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &plan.holds {
            Holds::Value(value) => self.text(value, element, out)?,
            Holds::List(item) => self.list(item, element, out, below(depth)?)?,
            Holds::Map(item) => self.map(item, element, out, below(depth)?)?,
            Holds::Any => {
                let content = element.content_xml(self.repeatable).ok_or(Unreadable::TooLarge)?;
                self.repeat(content.len())?;
                write_string(out, &content);
            }
            Holds::Type(index) => {
                let Some(declared) = self.types.get(*index) else {
                    out.extend_from_slice(b"null");
                    return Ok(());
                };
                let actual = self.actual(declared, *index, element);
                let is_declared = std::ptr::eq(actual, declared);
                if is_declared
                    && declared.is_value()
                    && let Some(Part::Text(value)) =
                        declared.members.first().map(|member| &member.part)
                {
                    return self.text(value, element, out);
                }
                let mut is_first = true;
                out.push(b'{');
                if !is_declared {
                    write_type(actual, out, &mut is_first);
                }
                self.members(actual, element, out, &mut is_first, below(depth)?)?;
                out.push(b'}');
            }
        }
        Ok(())
    }

    /// The elements within one as an array.
    fn list(
        &mut self,
        item: &ElementPlan,
        element: Element<'_>,
        out: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), Unreadable> {
        let is_meant = |child: &Element<'_>| child.local() == &*item.name.local;
        // Under another name they are still the only ones that can be meant.
        let is_named = element.children().any(|child| is_meant(&child));
        out.push(b'[');
        let mut is_first = true;
        for child in element.children() {
            if is_named && !is_meant(&child) {
                self.dropped += 1;
                continue;
            }
            if !std::mem::replace(&mut is_first, false) {
                out.push(b',');
            }
            self.value(item, child, out, depth)?;
        }
        out.push(b']');
        Ok(())
    }

    /// The elements within one as an object, by their names. Of those with one name the first counts.
    fn map(
        &mut self,
        item: &ElementPlan,
        element: Element<'_>,
        out: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), Unreadable> {
        let mut seen = HashSet::new();
        out.push(b'{');
        for child in element.children() {
            if !seen.insert(child.local()) {
                self.dropped += 1;
                continue;
            }
            if seen.len() > 1 {
                out.push(b',');
            }
            write_string(out, child.local());
            out.push(b':');
            self.value(item, child, out, depth)?;
        }
        out.push(b'}');
        Ok(())
    }

    /// The type that an element says it is of, where that one may stand there.
    pub(in crate::mapping) fn actual<'t>(
        &self,
        declared: &'t TypePlan,
        index: usize,
        element: Element<'_>,
    ) -> &'t TypePlan
    where
        Self: 't,
    {
        let types: &'t TypePlans = self.types;
        if declared.derived.is_empty() {
            return declared;
        }
        let said = element
            .attribute_in(INSTANCE_NAMESPACE, "type")
            .and_then(|said| element.qualified(said))
            .and_then(|(namespace, local)| types.find(namespace, local));
        said.filter(|said| *said != index && declared.may_be(*said))
            .and_then(|said| types.get(said))
            .unwrap_or(declared)
    }

    fn text(
        &mut self,
        value: &XmlValue,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unreadable> {
        if let Some(child) = element.children().next() {
            if child.is(INCLUDE_NAMESPACE, "Include") {
                self.include(child, out);
                return Ok(());
            }
            self.dropped += element.children().count() as u64;
        }
        values::read(value, &element.text(), element, &mut self.repeatable, out)
    }

    /// XOP 1.0, section 3.2: the bytes of another part stand here.
    fn include(&mut self, include: Element<'_>, out: &mut Vec<u8>) {
        let href = include.attribute("href").unwrap_or_default();
        let id = href.strip_prefix("cid:").map(percent_encoding::percent_decode_str);
        let id = id.and_then(|id| id.decode_utf8().ok());
        let found = id.as_deref().and_then(|id| self.attachments.find(id));
        // One part that is put into many places would make much of little.
        match found.filter(|bytes| bytes.len() <= self.includable) {
            Some(bytes) => {
                self.includable -= bytes.len();
                let encoded: Cow<'_, str> = STANDARD.encode(bytes).into();
                write_string(out, &encoded);
            }
            // What did not come is told by where it was to be.
            None => write_string(out, href),
        }
    }
}

/// The next level, where a message may still have one.
fn below(depth: usize) -> Result<usize, Unreadable> {
    if depth < DEPTH_MAX { Ok(depth + 1) } else { Err(Unreadable::TooDeep) }
}

/// The member that an element belongs to.
fn place_of(
    plan: &TypePlan,
    element: Element<'_>,
    is_taken: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut alike = None;
    let mut own = None;
    for (index, candidate) in plan.named(element.local()) {
        if *candidate.name.namespace != *element.namespace() {
            alike = alike.or(Some(index));
            continue;
        }
        let is_array = plan.members.get(index).is_some_and(|member| member.is_array);
        // Where one element has several members it goes to the first that is still free.
        if own.is_none() || is_array || own.is_some_and(&is_taken) {
            own = Some(index);
        }
        if is_array {
            break;
        }
    }
    // Many servers qualify what the schema has unqualified, or the other way round.
    own.or(plan.any).or(alike)
}

/// Which round of its group each element belongs to.
#[derive(Default)]
struct Rounds(SmallVec<[Progress; 2]>);

struct Progress {
    group: usize,
    /// Where in the round the last element stood, and which it was.
    place: usize,
    member: usize,
    round: usize,
}

impl Rounds {
    fn enter(&mut self, (group, place): (usize, usize), member: usize) -> usize {
        let Some(known) = self.0.iter_mut().find(|known| known.group == group) else {
            self.0.push(Progress { group, place, member, round: 0 });
            return 0;
        };
        // A round goes on as long as its elements come in their order.
        if place <= known.place || member <= known.member {
            known.round += 1;
        }
        (known.place, known.member) = (place, member);
        known.round
    }
}

pub(in crate::mapping) fn write_key(member: &Member, out: &mut Vec<u8>, is_first: &mut bool) {
    if !std::mem::replace(is_first, false) {
        out.push(b',');
    }
    out.extend_from_slice(&member.key);
}

pub(in crate::mapping) fn write_type(plan: &TypePlan, out: &mut Vec<u8>, is_first: &mut bool) {
    if !std::mem::replace(is_first, false) {
        out.push(b',');
    }
    write_string(out, TYPE_MEMBER);
    out.push(b':');
    let name = plan.name.as_ref().map(ToString::to_string).unwrap_or_default();
    write_string(out, &name);
}
