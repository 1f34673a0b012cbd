//! From the JSON of a call to XML.

use std::ops::Range;

use smallvec::SmallVec;

use super::super::error::{FieldProblem, InvalidArguments};
use super::super::{TYPE_MEMBER, XmlName, XmlValue};
use super::DEPTH_MAX;
use super::choice::{chosen, is_given, none_given, rounds};
use super::types::{
    AttributePlan, ElementPlan, Holds, Member, Part, Particle, Tags, TypePlan, TypePlans,
};
use super::values::{self, Declarations, Place};
use crate::json::{Kind, Raw};
use crate::xml::{Document, Limits, is_name};

/// How many names a message lists.
pub(super) const NAMED_MAX: usize = 12;

/// What is wrong with a part of the arguments, and where.
#[derive(Debug)]
pub(in crate::mapping) struct Problem {
    /// From the inside out.
    path: Vec<String>,
    text: String,
}

impl Problem {
    #[cold]
    pub(in crate::mapping) fn new(text: impl Into<String>) -> Self {
        Self { path: Vec::new(), text: text.into() }
    }

    /// Within this member.
    #[cold]
    pub(in crate::mapping) fn within(mut self, name: &str) -> Self {
        self.path.push(name.to_owned());
        self
    }

    #[cold]
    fn at(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }
}

impl From<Problem> for InvalidArguments {
    fn from(problem: Problem) -> Self {
        let mut field = String::new();
        for part in problem.path.iter().rev() {
            if !field.is_empty() && !part.starts_with('[') {
                field.push('.');
            }
            field.push_str(part);
        }
        Self::new(vec![FieldProblem { field, problem: problem.text }])
    }
}

type Written = Result<(), Problem>;

/// What a call has for each member of a type.
pub(in crate::mapping) type Given<'a> = SmallVec<[Option<Raw<'a>>; 16]>;

/// The items of arrays that belong to one round of a group.
const ALL: Range<usize> = 0..usize::MAX;

/// What the members of `plan` are given in an object. Those that `other` has are passed over.
pub(in crate::mapping) fn given<'a>(
    plan: &TypePlan,
    other: Option<&TypePlan>,
    object: Raw<'a>,
) -> Result<Given<'a>, Problem> {
    let mut given = Given::new();
    given.resize(plan.members.len(), None);
    for (name, value) in object.entries() {
        if let Some(slot) = plan.member(&name).and_then(|index| given.get_mut(index)) {
            *slot = Some(value);
        } else if *name != *TYPE_MEMBER && other.is_none_or(|other| other.member(&name).is_none()) {
            let known: Vec<&str> =
                plan.members.iter().take(NAMED_MAX).map(|member| &*member.name).collect();
            let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
            return Err(
                Problem::new(format!("is unknown here; there may be: {known}")).within(&name)
            );
        }
    }
    Ok(given)
}

pub(in crate::mapping) struct Writer<'a> {
    pub(in crate::mapping) types: &'a TypePlans,
    pub(in crate::mapping) out: String,
    /// Something of the namespace `xsi` was written.
    pub(in crate::mapping) says_instance: bool,
}

impl<'a> Writer<'a> {
    /// One that goes on where `out` ends.
    pub(in crate::mapping) const fn new(types: &'a TypePlans, out: String) -> Self {
        Self { types, out, says_instance: false }
    }
}

impl Writer<'_> {
    /// The elements of a message's part, in their order.
    pub(in crate::mapping) fn content(&mut self, plan: &TypePlan, given: &Given<'_>) -> Written {
        self.particles(plan, &plan.content, given, &ALL, 0)
    }

    /// The one element of a bare body: it stands there although nothing is given for it.
    pub(in crate::mapping) fn bare(&mut self, plan: &TypePlan, given: &Given<'_>) -> Written {
        let before = self.out.len();
        self.content(plan, given)?;
        if self.out.len() == before
            && let Some(element) = plan.elements().find(|element| element.type_index().is_some())
        {
            self.element(element, Raw::EMPTY_OBJECT, 1)?;
        }
        Ok(())
    }

    /// One element with what it is given.
    pub(in crate::mapping) fn element(
        &mut self,
        element: &ElementPlan,
        value: Raw<'_>,
        depth: usize,
    ) -> Written {
        self.tagged(element.tags(), element, value, depth)
    }

    /// What an element holds, between these tags.
    fn tagged(
        &mut self,
        tags: Tags<'_>,
        element: &ElementPlan,
        value: Raw<'_>,
        depth: usize,
    ) -> Written {
        if depth > DEPTH_MAX {
            return Err(Problem::new("is nested too deep"));
        }
        if value.is_null() {
            return self.nil(tags, element);
        }
        match &element.holds {
            Holds::Value(held) => {
                self.out.push_str(tags.open);
                self.simple(held, value, Declarations::default())?;
                self.out.push_str(tags.close);
            }
            Holds::List(item) => self.list(tags, item, value, depth)?,
            Holds::Map(item) => self.map(tags, item, value, depth)?,
            Holds::Any => {
                self.out.push_str(tags.open);
                self.out.push('>');
                self.markup(value, false)?;
                self.out.push_str(tags.close);
            }
            Holds::Type(index) => {
                let Some(plan) = self.types.get(*index) else { return Ok(()) };
                self.complex(tags, plan, value, None, depth)?;
            }
        }
        Ok(())
    }

    /// An element for each item of an array.
    fn list(
        &mut self,
        tags: Tags<'_>,
        item: &ElementPlan,
        value: Raw<'_>,
        depth: usize,
    ) -> Written {
        if value.kind() != Kind::Array {
            let kind = value.kind().described();
            return Err(Problem::new(format!("expected an array, got {kind}")));
        }
        self.out.push_str(tags.open);
        self.out.push('>');
        let before = self.out.len();
        for (index, value) in value.items().enumerate() {
            self.element(item, value, depth + 1).map_err(|problem| problem.at(index))?;
        }
        self.close(tags, before);
        Ok(())
    }

    /// An element for each member of an object, by its name.
    fn map(&mut self, tags: Tags<'_>, item: &ElementPlan, value: Raw<'_>, depth: usize) -> Written {
        if value.kind() != Kind::Object {
            let kind = value.kind().described();
            return Err(Problem::new(format!("expected an object, got {kind}")));
        }
        self.out.push_str(tags.open);
        self.out.push('>');
        let before = self.out.len();
        for (name, value) in value.entries() {
            if !is_name(&name) {
                return Err(Problem::new("is no name of an XML element").within(&name));
            }
            let (open, close) =
                ([&*item.open, &name].concat(), [&*item.close, &name, ">"].concat());
            let tags = Tags { open: &open, close: &close };
            self.tagged(tags, item, value, depth + 1).map_err(|problem| problem.within(&name))?;
        }
        self.close(tags, before);
        Ok(())
    }

    /// The end of an element whose content began at `before`.
    fn close(&mut self, tags: Tags<'_>, before: usize) {
        if self.out.len() == before {
            self.out.pop();
            self.out.push_str("/>");
        } else {
            self.out.push_str(tags.close);
        }
    }

    fn nil(&mut self, tags: Tags<'_>, element: &ElementPlan) -> Written {
        if !element.nillable {
            return Err(Problem::new("cannot be null; leave it out"));
        }
        self.out.push_str(tags.open);
        self.out.push_str(" xsi:nil=\"true\"/>");
        self.says_instance = true;
        Ok(())
    }

    /// The text of an element whose tag is still open.
    fn simple(
        &mut self,
        held: &XmlValue,
        value: Raw<'_>,
        mut declarations: Declarations,
    ) -> Written {
        let tag_end = self.out.len();
        self.out.push('>');
        values::write(held, value, Place::Text, &mut self.out, &mut declarations)
            .map_err(Problem::new)?;
        if !declarations.text.is_empty() {
            self.out.insert_str(tag_end, &declarations.text);
        }
        Ok(())
    }

    /// An element of a type. Members that `other` has are somebody else's.
    pub(in crate::mapping) fn complex(
        &mut self,
        tags: Tags<'_>,
        declared: &TypePlan,
        value: Raw<'_>,
        other: Option<&TypePlan>,
        depth: usize,
    ) -> Written {
        let is_object = value.kind() == Kind::Object;
        let named = if is_object { value.get(TYPE_MEMBER) } else { None };
        let plan = self.actual(declared, named)?;
        self.out.push_str(tags.open);
        if !std::ptr::eq(plan, declared) {
            self.out.push_str(" xsi:type=\"");
            self.out.push_str(&plan.qualified);
            self.out.push('"');
            self.says_instance = true;
        }
        let given = match (is_object, plan.text) {
            (true, _) => given(plan, other, value)?,
            (false, Some(text)) => {
                let mut given = Given::new();
                given.resize(plan.members.len(), None);
                if let Some(slot) = given.get_mut(text) {
                    *slot = Some(value);
                }
                given
            }
            (false, None) => {
                let kind = value.kind().described();
                return Err(Problem::new(format!("expected an object, got {kind}")));
            }
        };
        let declared_names = self.attributes(plan, &given)?;
        if let Some(text) = plan.text {
            let value = given.get(text).copied().flatten().filter(|value| !value.is_null());
            match (plan.members.get(text).map(|member| &member.part), value) {
                (Some(Part::Text(held)), Some(value)) => {
                    let written = self.simple(held, value, declared_names.after());
                    let within = |problem: Problem| problem.within(super::super::TEXT_MEMBER);
                    written.map_err(|problem| if is_object { within(problem) } else { problem })?;
                }
                _ => self.out.push('>'),
            }
            self.out.push_str(tags.close);
            return Ok(());
        }
        self.out.push('>');
        let before = self.out.len();
        self.particles(plan, &plan.content, &given, &ALL, depth + 1)?;
        self.close(tags, before);
        Ok(())
    }

    /// The type that a call means.
    fn actual<'t>(
        &self,
        declared: &'t TypePlan,
        named: Option<Raw<'_>>,
    ) -> Result<&'t TypePlan, Problem>
    where
        Self: 't,
    {
        let types: &'t TypePlans = self.types;
        let Some(named) = named.filter(|named| !named.is_null()) else {
            return match declared.derived.as_slice() {
                _ if !declared.is_abstract => Ok(declared),
                [only] => types.get(*only).ok_or_else(|| Problem::new("has no type")),
                _ => Err(self.untyped(declared)),
            };
        };
        let text = named.as_str().unwrap_or_default();
        let is_meant = |plan: &TypePlan| {
            plan.name.as_ref().is_some_and(|name| match XmlName::parse(&text) {
                Some(wanted) if !wanted.namespace.is_empty() => *name == wanted,
                _ => *name.local == *text,
            })
        };
        let own = std::iter::once(declared).filter(|own| !own.is_abstract);
        let derived = declared.derived.iter().filter_map(|index| types.get(*index));
        let nameable = derived.filter(|plan| !plan.qualified.is_empty());
        let mut meant = own.chain(nameable).filter(|plan| is_meant(plan));
        match (meant.next(), meant.next()) {
            (Some(plan), None) => Ok(plan),
            _ => Err(self.untyped(declared).within(TYPE_MEMBER)),
        }
    }

    #[cold]
    fn untyped(&self, declared: &TypePlan) -> Problem {
        let derived = declared.derived.iter().take(NAMED_MAX);
        let derived = derived.filter_map(|index| self.types.get(*index));
        let own = std::iter::once(declared).filter(|own| !own.is_abstract);
        let names = own.chain(derived).filter_map(|plan| plan.name.as_ref());
        let names: Vec<String> = names.map(ToString::to_string).collect();
        if names.is_empty() {
            return Problem::new("cannot be given: its type is abstract, and there is no other");
        }
        Problem::new(format!("\"{TYPE_MEMBER}\" names one of: {}", names.join(", ")))
    }

    fn attributes(&mut self, plan: &TypePlan, given: &Given<'_>) -> Result<Declarations, Problem> {
        let mut declarations = Declarations::default();
        for (member, value) in plan.members.iter().zip(given) {
            let Part::Attribute(attribute) = &member.part else { break };
            self.attribute(attribute, *value, &mut declarations)
                .map_err(|problem| problem.within(&member.name))?;
        }
        self.out.push_str(&declarations.text);
        Ok(declarations)
    }

    fn attribute(
        &mut self,
        attribute: &AttributePlan,
        value: Option<Raw<'_>>,
        declarations: &mut Declarations,
    ) -> Written {
        let AttributePlan { open, value: held, fixed, .. } = attribute;
        match (fixed, value.filter(|value| !value.is_null())) {
            (Some(fixed), _) => {
                self.out.push_str(open);
                self.out.push_str(fixed);
            }
            (None, Some(value)) => {
                self.out.push_str(open);
                values::write(held, value, Place::Attribute, &mut self.out, declarations)
                    .map_err(Problem::new)?;
            }
            (None, None) => return Ok(()),
        }
        self.out.push('"');
        Ok(())
    }

    /// Particles in their order, with those items of arrays that are in `round`.
    fn particles(
        &mut self,
        plan: &TypePlan,
        particles: &[Particle],
        given: &Given<'_>,
        round: &Range<usize>,
        depth: usize,
    ) -> Written {
        for particle in particles {
            match particle {
                Particle::Member(index) => {
                    let Some(member) = plan.members.get(*index) else { continue };
                    let value = given.get(*index).copied().flatten();
                    self.member(member, value, round, depth)
                        .map_err(|problem| problem.within(&member.name))?;
                }
                Particle::Sequence { repeats: false, parts } => {
                    self.particles(plan, parts, given, round, depth)?;
                }
                Particle::Sequence { repeats: true, parts } => {
                    let end = rounds(plan, parts, given).min(round.end);
                    for at in round.start..end {
                        // Whatever repeats by itself has the rest in the last round.
                        let to = if at + 1 == end { round.end } else { at + 1 };
                        self.particles(plan, parts, given, &(at..to), depth)?;
                    }
                }
                Particle::Choice { repeats: true, required, parts } => {
                    let mut is_any = false;
                    let given_ones = parts.iter().filter(|part| is_given(plan, part, given, round));
                    for part in given_ones {
                        is_any = true;
                        self.particles(plan, std::slice::from_ref(part), given, round, depth)?;
                    }
                    if *required && !is_any && round.start == 0 {
                        return Err(none_given(plan, parts));
                    }
                }
                Particle::Choice { repeats: false, required, parts } => {
                    match chosen(plan, parts, given, round)? {
                        Some(chosen) => {
                            let chosen = std::slice::from_ref(chosen);
                            self.particles(plan, chosen, given, round, depth)?;
                        }
                        None if *required => return Err(none_given(plan, parts)),
                        None => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn member(
        &mut self,
        member: &Member,
        value: Option<Raw<'_>>,
        round: &Range<usize>,
        depth: usize,
    ) -> Written {
        match value {
            Some(array) if member.is_array && array.kind() == Kind::Array => {
                let count = if member.is_single { round.len().min(1) } else { round.len() };
                let items = array.items().enumerate().skip(round.start).take(count);
                let mut is_written = false;
                for (index, item) in items {
                    is_written = true;
                    self.one(member, Some(item), depth).map_err(|problem| problem.at(index))?;
                }
                if is_written { Ok(()) } else { self.one(member, None, depth) }
            }
            // One where there may be many is the first of them.
            Some(value) if !member.is_array || round.start == 0 => {
                self.one(member, Some(value), depth)
            }
            _ => self.one(member, None, depth),
        }
    }

    fn one(&mut self, member: &Member, value: Option<Raw<'_>>, depth: usize) -> Written {
        let Part::Element(element) = &member.part else {
            return value.map_or(Ok(()), |value| self.markup(value, true));
        };
        if let Some(fixed) = &element.fixed {
            for part in [&*element.open, ">", fixed, &element.close] {
                self.out.push_str(part);
            }
            return Ok(());
        }
        match value.filter(|value| element.nillable || !value.is_null()) {
            Some(value) => self.element(element, value, depth),
            // What must stand there and has nothing to say.
            None if element.required && element.nillable => self.nil(element.tags(), element),
            None => Ok(()),
        }
    }

    /// XML text as it is: one element, or what stands within one.
    fn markup(&mut self, value: Raw<'_>, is_element: bool) -> Written {
        if value.is_null() {
            return Ok(());
        }
        let Some(text) = value.as_str() else {
            let kind = value.kind().described();
            return Err(Problem::new(format!("expected XML as a text, got {kind}")));
        };
        // Within an element of its own it can close nothing that it has not opened.
        let wrapped = ["<r>", &text, "</r>"].concat();
        let document = Document::read(&wrapped, Limits::MESSAGE)
            .map_err(|error| Problem::new(format!("is no XML: {error}")))?;
        let root = document.root();
        let is_one = root.children().count() == 1 && root.text().trim_ascii().is_empty();
        if is_element && !is_one {
            return Err(Problem::new("expected the XML of one element"));
        }
        self.out.push_str(if is_element { text.trim_ascii() } else { &text });
        Ok(())
    }
}
