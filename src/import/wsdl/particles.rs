//! Content models: sequences, choices and groups of elements.

use std::rc::Rc;

use super::model::{ElementUse, Holds, Particle};
use super::names::{Members, QName, XSD};
use super::schemas::{Kind, Place};
use super::types::{Builder, DOCUMENTATION_CHARS_MAX, documentation};
use crate::mapping::XmlName;
use crate::xml::is_name;

/// How deep sequences, choices and groups may nest.
const NESTING_MAX: usize = 64;
/// Most elements that may stand in the place of one.
const SUBSTITUTES_MAX: usize = 256;
/// How far the type of an element may be that of what it stands in for.
const HEADS_MAX: usize = 16;

/// Where a particle stands.
#[derive(Debug, Clone, Copy)]
struct Standing<'n> {
    /// The type it is part of.
    owner: &'n XmlName,
    /// What it stands in may be absent.
    is_optional: bool,
    /// It is one of several alternatives.
    in_choice: bool,
    left: usize,
}

impl Standing<'_> {
    fn below(self, is_optional: bool, in_choice: bool) -> Result<Self, String> {
        let left = self.left.checked_sub(1);
        let left = left.ok_or_else(|| format!("it nests deeper than {NESTING_MAX} groups"))?;
        Ok(Self { is_optional: self.is_optional || is_optional, in_choice, left, ..self })
    }
}

/// The parts of a sequence or a choice, and of how many of them nothing has to be there.
#[derive(Debug, Default)]
struct Group {
    content: Vec<Particle>,
    all_can_be_empty: bool,
    one_can_be_empty: bool,
}

#[derive(Debug, Clone, Copy)]
struct Occurs {
    least: u32,
    most: u32,
}

impl Occurs {
    fn of(place: Place<'_>) -> Self {
        let number = |key: &str| match place.element.attribute(key).map(str::trim) {
            None => 1,
            Some("unbounded") => u32::MAX,
            Some(text) if text.len() > 9 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                u32::MAX
            }
            Some(text) => text.parse().unwrap_or(1),
        };
        Self { least: number("minOccurs"), most: number("maxOccurs") }
    }
}

/// An item of an array that says nothing of its own.
pub(super) fn item(holds: Holds, members: &mut Members) -> Particle {
    let name = XmlName::new("", "item");
    let member = members.of_element(&name, true);
    Particle::Element(Rc::new(ElementUse {
        name,
        member,
        holds,
        least: 0,
        most: u32::MAX,
        is_required: false,
        is_nillable: true,
        fixed: None,
        default: None,
        documentation: String::new(),
    }))
}

/// Adds parts of which one is there.
fn alternatives(
    mut content: Vec<Particle>,
    occurs: Occurs,
    standing: Standing<'_>,
    can_be_empty: bool,
    out: &mut Vec<Particle>,
) {
    let repeats = occurs.most > 1;
    // A choice within a choice is more alternatives of it.
    if standing.in_choice && !repeats {
        out.append(&mut content);
    } else {
        let is_required = !standing.is_optional && !can_be_empty;
        out.push(Particle::Choice { repeats, is_required, content });
    }
}

fn is_global(place: Place<'_>) -> bool {
    place.element.parent().is_some_and(|parent| parent.is(XSD, "schema"))
}

impl<'t> Builder<'_, 't> {
    /// The content of a type, or of what it is derived with.
    pub(super) fn content(
        &mut self,
        owner: &XmlName,
        place: Place<'t>,
        members: &mut Members,
    ) -> Result<Vec<Particle>, String> {
        let mut content = Vec::new();
        let standing = Standing { owner, is_optional: false, in_choice: false, left: NESTING_MAX };
        for child in place.children() {
            if matches!(child.element.local(), "sequence" | "all" | "choice" | "group") {
                self.particle(child, standing, members, &mut content)?;
            }
        }
        Ok(content)
    }

    /// Adds what a particle is; tells whether nothing of it has to be there.
    fn particle(
        &mut self,
        place: Place<'t>,
        standing: Standing<'_>,
        members: &mut Members,
        out: &mut Vec<Particle>,
    ) -> Result<bool, String> {
        self.step()?;
        let occurs = Occurs::of(place);
        if occurs.most == 0 {
            return Ok(true);
        }
        match place.element.local() {
            "element" => {
                self.element(place, occurs, standing, members, out)?;
                Ok(occurs.least == 0)
            }
            "sequence" | "all" => self.sequence(place, occurs, standing, members, out),
            "choice" => self.choice(place, occurs, standing, members, out),
            "group" => {
                let name = place.element.attribute("ref").unwrap_or_default();
                let name = self.schemas.resolve(place, name);
                let group = name.and_then(|name| self.schemas.find_from(Kind::Group, name, place));
                let Some(group) = group else {
                    self.notes.add("a group of elements is not described; it is left out");
                    return Ok(true);
                };
                let standing = standing.below(false, standing.in_choice)?;
                let models = ["sequence", "all", "choice"];
                let inside = models.iter().find_map(|local| group.child(local));
                match inside.map(|inside| (inside, inside.element.local())) {
                    Some((inside, "choice")) => self.choice(inside, occurs, standing, members, out),
                    Some((inside, _)) => self.sequence(inside, occurs, standing, members, out),
                    None => Ok(true),
                }
            }
            "any" => {
                let member = members.of_other("any", "xml");
                out.push(Particle::Any { member, repeats: occurs.most > 1, is_required: false });
                Ok(occurs.least == 0)
            }
            _ => Ok(true),
        }
    }

    /// What stands in a sequence or a choice.
    fn inside(
        &mut self,
        place: Place<'t>,
        standing: Standing<'_>,
        members: &mut Members,
    ) -> Result<Group, String> {
        let mut group = Group { all_can_be_empty: true, ..Group::default() };
        for child in place.children().filter(|child| child.element.local() != "annotation") {
            let can_be_empty = self.particle(child, standing, members, &mut group.content)?;
            group.all_can_be_empty &= can_be_empty;
            group.one_can_be_empty |= can_be_empty;
        }
        Ok(group)
    }

    fn sequence(
        &mut self,
        place: Place<'t>,
        occurs: Occurs,
        standing: Standing<'_>,
        members: &mut Members,
        out: &mut Vec<Particle>,
    ) -> Result<bool, String> {
        let repeats = occurs.most > 1;
        let is_apart = repeats || standing.in_choice;
        let inside = standing.below(occurs.least == 0 || is_apart, false)?;
        let Group { mut content, all_can_be_empty, .. } = self.inside(place, inside, members)?;
        match content.len() {
            0 => {}
            1 if !repeats => out.append(&mut content),
            _ if is_apart => out.push(Particle::Sequence { repeats, content }),
            _ => out.append(&mut content),
        }
        Ok(all_can_be_empty || occurs.least == 0)
    }

    fn choice(
        &mut self,
        place: Place<'t>,
        occurs: Occurs,
        standing: Standing<'_>,
        members: &mut Members,
        out: &mut Vec<Particle>,
    ) -> Result<bool, String> {
        let inside = standing.below(true, true)?;
        let Group { content, one_can_be_empty, .. } = self.inside(place, inside, members)?;
        let can_be_empty = occurs.least == 0 || one_can_be_empty || content.is_empty();
        if !content.is_empty() {
            alternatives(content, occurs, standing, can_be_empty, out);
        }
        Ok(can_be_empty)
    }

    fn element(
        &mut self,
        place: Place<'t>,
        occurs: Occurs,
        standing: Standing<'_>,
        members: &mut Members,
        out: &mut Vec<Particle>,
    ) -> Result<(), String> {
        let Some(value) = place.element.attribute("ref") else {
            let local = place.element.attribute("name").map(str::trim);
            let Some(local) = local.filter(|name| is_name(name)) else {
                return Err("an element has no name".to_owned());
            };
            let schema = self.schemas.schema(place);
            let is_qualified = match place.element.attribute("form") {
                Some(form) => form == "qualified",
                None => schema.is_some_and(|schema| schema.elements_qualified),
            };
            let namespace = schema.filter(|_| is_qualified).map_or("", |own| own.namespace);
            let name = QName::new(namespace, local);
            let element = self.declared(name, place, occurs, standing, members);
            out.push(Particle::Element(Rc::new(element)));
            return Ok(());
        };
        let name = self.schemas.resolve(place, value);
        let name = name.filter(|name| name.is_sound()).ok_or("an element has no usable name")?;
        let Some(head) = self.schemas.find_from(Kind::Element, name, place) else {
            if name.namespace != XSD {
                self.notes.add(format!("the element {name} is not described; it is XML text"));
            }
            let mut element = self.declared(name, place, occurs, standing, members);
            element.holds = Holds::Any;
            out.push(Particle::Element(Rc::new(element)));
            return Ok(());
        };
        let heirs = self.substitutes(name);
        for _ in &heirs {
            self.step()?;
        }
        let is_abstract = |place: Place<'_>| place.element.attribute("abstract") == Some("true");
        let mut usable: Vec<(QName<'t>, Place<'t>)> = vec![(name, head)];
        usable.extend(heirs);
        if usable.len() > 1 {
            usable.retain(|(_, place)| !is_abstract(*place));
        }
        if let [(name, place)] = usable.as_slice() {
            let element = self.declared(*name, *place, occurs, standing, members);
            out.push(Particle::Element(Rc::new(element)));
            return Ok(());
        }
        let inside = standing.below(true, true)?;
        let one = Occurs { least: 1, most: 1 };
        let content = usable.into_iter().map(|(name, place)| {
            Particle::Element(Rc::new(self.declared(name, place, one, inside, members)))
        });
        alternatives(content.collect(), occurs, standing, occurs.least == 0, out);
        Ok(())
    }

    /// The elements that may stand in the place of one, over any number of steps.
    fn substitutes(&mut self, head: QName<'t>) -> Vec<(QName<'t>, Place<'t>)> {
        let schemas = self.schemas;
        let mut found: Vec<QName<'t>> = vec![head];
        let mut next = 0;
        while let Some(name) = found.get(next).copied() {
            for substitute in schemas.substitutes_of(name) {
                if found.contains(substitute) {
                    continue;
                }
                if found.len() > SUBSTITUTES_MAX {
                    self.notes
                        .add(format!("more than {SUBSTITUTES_MAX} elements stand for {head}"));
                    break;
                }
                found.push(*substitute);
            }
            next += 1;
        }
        let places = found.into_iter().skip(1);
        places.filter_map(|name| Some((name, schemas.find(Kind::Element, name)?))).collect()
    }

    /// An element of a message or a fault.
    pub(super) fn global(&mut self, name: QName<'t>, members: &mut Members) -> Option<ElementUse> {
        let place = self.schemas.find(Kind::Element, name)?;
        let owner = XmlName::new(name.namespace, "");
        let standing =
            Standing { owner: &owner, is_optional: false, in_choice: false, left: NESTING_MAX };
        Some(self.declared(name, place, Occurs { least: 1, most: 1 }, standing, members))
    }

    fn declared(
        &mut self,
        name: QName<'t>,
        place: Place<'t>,
        occurs: Occurs,
        standing: Standing<'_>,
        members: &mut Members,
    ) -> ElementUse {
        let of = |key: &str| place.element.attribute(key);
        let is_ref = of("ref").is_some();
        let is_global = !is_ref && of("minOccurs").is_none() && is_global(place);
        let global = XmlName::new(self.schemas.namespace(place), "");
        let owner = if is_global { &global } else { standing.owner };
        let holds = if is_ref { Holds::Any } else { self.element_type(owner, name, place) };
        let owned = name.owned();
        let member = members.of_element(&owned, standing.in_choice);
        ElementUse {
            name: owned,
            member,
            holds,
            least: occurs.least,
            most: occurs.most,
            is_required: occurs.least > 0 && !standing.is_optional && !standing.in_choice,
            is_nillable: of("nillable").is_some_and(|value| matches!(value.trim(), "true" | "1")),
            fixed: of("fixed").map(str::to_owned),
            default: of("default").map(str::to_owned),
            documentation: documentation(place.element, DOCUMENTATION_CHARS_MAX),
        }
    }

    fn element_type(&mut self, owner: &XmlName, name: QName<'t>, place: Place<'t>) -> Holds {
        let mut at = place;
        for _ in 0..HEADS_MAX {
            if let Some(inside) = at.child("complexType") {
                return self.unnamed(owner, name.local, inside);
            }
            if let Some(inside) = at.child("simpleType") {
                return Holds::Value(self.simple_inline(inside));
            }
            if let Some(value) = at.element.attribute("type") {
                if let Some(name) = self.schemas.resolve(at, value) {
                    return self.holds(name, at);
                }
                self.notes.add(format!("the type of {name} has no namespace"));
                return Holds::Any;
            }
            // Without a type it has that of what it may stand in for.
            let head = at.element.attribute("substitutionGroup");
            let head = head.and_then(|value| self.schemas.resolve(at, value));
            match head.and_then(|head| self.schemas.find(Kind::Element, head)) {
                Some(head) => at = head,
                None => return Holds::Any,
            }
        }
        Holds::Any
    }
}
