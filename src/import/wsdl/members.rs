//! The members of the JSON object that an element of a type is to clients.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::clean;
use super::model::{AttributeUse, ComplexType, ElementUse, Particle, SimpleType};
use crate::mapping::TEXT_MEMBER;

/// A member of an object, and what it is on the wire.
#[derive(Debug, Clone)]
pub(super) struct Member<'m> {
    pub(super) name: &'m str,
    pub(super) kind: MemberKind<'m>,
    pub(super) is_required: bool,
    pub(super) is_array: bool,
    /// What it has to do with the members beside it.
    pub(super) group: String,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum MemberKind<'m> {
    Element(&'m ElementUse),
    Attribute(&'m AttributeUse),
    Text(&'m SimpleType),
    Any,
}

impl MemberKind<'_> {
    /// Whether two members of different types are inherited from one.
    pub(super) fn is_same(self, other: MemberKind<'_>) -> bool {
        match (self, other) {
            (Self::Element(one), MemberKind::Element(other)) => std::ptr::eq(one, other),
            (Self::Attribute(one), MemberKind::Attribute(other)) => {
                one.name == other.name && Rc::ptr_eq(&one.simple, &other.simple)
            }
            (Self::Text(one), MemberKind::Text(other)) => std::ptr::eq(one, other),
            (Self::Any, MemberKind::Any) => true,
            _ => false,
        }
    }
}

/// The members of an object, in the order of its schema.
#[derive(Debug, Default)]
pub(super) struct MemberList<'m> {
    pub(super) list: Vec<Member<'m>>,
    places: HashMap<&'m str, usize>,
    /// Where it ends, however many there are.
    most: usize,
}

/// The members of an object of a type; of a very large one, the first.
pub(super) fn members(held: &ComplexType, most: usize) -> MemberList<'_> {
    let mut found = MemberList { most, ..MemberList::default() };
    for part in &held.content {
        collect(part, true, false, &mut found);
    }
    if let Some(text) = &held.text {
        found.add(Member::new(TEXT_MEMBER, MemberKind::Text(text), false));
    }
    for attribute in held.attributes.iter().filter(|attribute| attribute.constant().is_none()) {
        let kind = MemberKind::Attribute(attribute);
        found.add(Member::new(&attribute.member, kind, attribute.is_required));
    }
    found
}

impl<'m> MemberList<'m> {
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= self.most
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    fn add(&mut self, member: Member<'m>) {
        let place = self.places.get(member.name).copied();
        let is_full = self.is_full();
        match place.and_then(|place| self.list.get_mut(place)) {
            // Another way to say the same.
            Some(known) => {
                known.is_required = false;
                known.is_array |= member.is_array;
            }
            None if is_full => {}
            None => {
                self.places.insert(member.name, self.list.len());
                self.list.push(member);
            }
        }
    }
}

impl<'m> Member<'m> {
    fn new(name: &'m str, kind: MemberKind<'m>, is_required: bool) -> Self {
        Self { name, kind, is_required, is_array: false, group: String::new() }
    }

    /// An element that is a member of a message: a part, a header, a bare body.
    pub(super) fn of_element(element: &'m ElementUse) -> Self {
        let is_required = element.is_required && !element.is_nillable;
        let is_array = element.most > 1;
        let kind = MemberKind::Element(element);
        Self { name: &element.member, kind, is_required, is_array, group: String::new() }
    }
}

/// Adds the members of a particle. Its depth is bounded where it is read.
fn collect<'m>(part: &'m Particle, is_certain: bool, in_array: bool, out: &mut MemberList<'m>) {
    if out.is_full() {
        return;
    }
    let mut add = |mut member: Member<'m>| {
        member.is_array |= in_array;
        member.is_required &= is_certain && !in_array;
        out.add(member);
    };
    match part {
        Particle::Element(element) if element.constant().is_some() => {}
        Particle::Element(element) => add(Member::of_element(element)),
        Particle::Any { member, repeats, is_required } => {
            let mut any = Member::new(member, MemberKind::Any, *is_required);
            any.is_array = *repeats;
            add(any);
        }
        Particle::Sequence { repeats, content } => {
            let first = out.list.len();
            for part in content {
                collect(part, is_certain, in_array || *repeats, out);
            }
            if *repeats {
                set_group(out, first, &together(content));
            }
        }
        Particle::Choice { repeats, is_required, content } => {
            let first = out.list.len();
            for part in content {
                collect(part, false, in_array || *repeats, out);
            }
            set_group(out, first, &alternatives(content, *is_required, *repeats));
        }
    }
}

fn set_group(out: &mut MemberList<'_>, first: usize, rule: &str) {
    for member in out.list.iter_mut().skip(first).filter(|member| member.group.is_empty()) {
        rule.clone_into(&mut member.group);
    }
}

/// Longest text about a group.
const GROUP_CHARS_MAX: usize = 300;

fn names_in(part: &Particle, out: &mut Vec<String>, between: &str) {
    const NAMES_MAX: usize = 50;
    let mut found = MemberList { most: NAMES_MAX, ..MemberList::default() };
    collect(part, false, false, &mut found);
    let names: Vec<&str> = found.list.iter().map(|member| member.name).collect();
    if !names.is_empty() && out.len() < NAMES_MAX {
        out.push(names.join(between));
    }
}

/// `There is exactly one of: a; b and c`.
fn alternatives(content: &[Particle], is_required: bool, repeats: bool) -> String {
    let mut each = Vec::new();
    for part in content {
        names_in(part, &mut each, " and ");
    }
    if each.len() < 2 {
        return String::new();
    }
    let many = match (repeats, is_required) {
        (true, true) => "There is at least one of",
        (true, false) => "There may be any number of",
        (false, true) => "There is exactly one of",
        (false, false) => "There is at most one of",
    };
    clean::line(&format!("{many}: {}", each.join("; ")), GROUP_CHARS_MAX)
}

/// `Items at the same place belong together: a, b`.
fn together(content: &[Particle]) -> String {
    let mut each = Vec::new();
    for part in content {
        names_in(part, &mut each, ", ");
    }
    if each.len() < 2 {
        return String::new();
    }
    clean::line(
        &format!("Items at the same place belong together: {}", each.join(", ")),
        GROUP_CHARS_MAX,
    )
}
