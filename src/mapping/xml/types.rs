//! The types of a service, resolved: names bound, tags written out, derived types found.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::super::{XmlName, XmlTypes, XmlValue};
use super::DERIVATIONS_MAX;
use super::builder::Builder;
use super::error::PlanError;
use crate::xml::{XML_NAMESPACE, escape_attribute};

/// The types of a toolset, compiled once for all its operations.
#[derive(Debug, Default)]
pub struct TypePlans {
    /// In the order of their names.
    pub(in crate::mapping) types: Vec<TypePlan>,
    pub(in crate::mapping) namespaces: Namespaces,
}

/// A type, or the parts of a message as if they were one.
#[derive(Debug, Default)]
pub(in crate::mapping) struct TypePlan {
    pub(in crate::mapping) name: Option<XmlName>,
    /// The name with its prefix, as `xsi:type` has it.
    pub(in crate::mapping) qualified: Box<str>,
    pub(in crate::mapping) is_abstract: bool,
    pub(in crate::mapping) base: Option<usize>,
    /// Of its own name.
    pub(in crate::mapping) namespace: Option<usize>,
    /// Every type that may stand in its place and is not abstract, itself left out.
    pub(in crate::mapping) derived: Vec<usize>,
    /// Every part of its object: attributes, text, elements.
    pub(in crate::mapping) members: Vec<Member>,
    /// Members by their names.
    pub(in crate::mapping) by_name: Vec<usize>,
    /// Element members by their local names.
    pub(in crate::mapping) by_local: Vec<usize>,
    /// The member that takes elements of other names.
    pub(in crate::mapping) any: Option<usize>,
    /// The member of the text.
    pub(in crate::mapping) text: Option<usize>,
    pub(in crate::mapping) content: Vec<Particle>,
    /// Its elements belong together in rounds.
    pub(in crate::mapping) has_rounds: bool,
    /// Of its tags.
    pub(in crate::mapping) namespaces: BTreeSet<usize>,
    /// Types of its elements.
    pub(in crate::mapping) refers: BTreeSet<usize>,
}

/// A part of an object.
#[derive(Debug)]
pub(in crate::mapping) struct Member {
    pub(in crate::mapping) name: Box<str>,
    /// As it is written in JSON: quoted and with its colon.
    pub(in crate::mapping) key: Box<[u8]>,
    pub(in crate::mapping) part: Part,
    /// In JSON it is an array.
    pub(in crate::mapping) is_array: bool,
    /// Of a group that repeats, it stands no more than once in each round.
    pub(in crate::mapping) is_single: bool,
    /// Of an element of a group that repeats as a whole: which group, and where in a round.
    pub(in crate::mapping) round: Option<(usize, usize)>,
}

#[derive(Debug)]
pub(in crate::mapping) enum Part {
    Attribute(AttributePlan),
    Text(XmlValue),
    Element(ElementPlan),
    Any,
}

#[derive(Debug)]
pub(in crate::mapping) struct AttributePlan {
    pub(in crate::mapping) name: XmlName,
    /// ` n1:name="`
    pub(in crate::mapping) open: Box<str>,
    pub(in crate::mapping) value: XmlValue,
    /// Escaped.
    pub(in crate::mapping) fixed: Option<Box<str>>,
}

#[derive(Debug)]
pub(in crate::mapping) struct ElementPlan {
    pub(in crate::mapping) name: XmlName,
    /// `<n1:name`
    pub(in crate::mapping) open: Box<str>,
    /// `</n1:name>`
    pub(in crate::mapping) close: Box<str>,
    pub(in crate::mapping) holds: Holds,
    pub(in crate::mapping) repeats: bool,
    pub(in crate::mapping) required: bool,
    pub(in crate::mapping) nillable: bool,
    /// Escaped.
    pub(in crate::mapping) fixed: Option<Box<str>>,
}

#[derive(Debug)]
pub(in crate::mapping) enum Holds {
    Value(XmlValue),
    /// Of [`TypePlans::types`].
    Type(usize),
    List(Box<ElementPlan>),
    /// Its tags are those of any element without the name.
    Map(Box<ElementPlan>),
    Any,
}

/// The order that the members of a type are written in.
#[derive(Debug)]
pub(in crate::mapping) enum Particle {
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

/// Namespaces by their numbers, which are those of their prefixes where nobody wishes another one.
#[derive(Debug, Default, Clone)]
pub(in crate::mapping) struct Namespaces {
    all: Vec<Namespace>,
    numbers: HashMap<Box<str>, usize>,
    /// Prefixes that were wished for and given.
    wished: HashSet<Box<str>>,
}

#[derive(Debug, Clone)]
struct Namespace {
    uri: Box<str>,
    prefix: Box<str>,
}

impl Namespaces {
    fn number(&mut self, uri: &str, wished: Option<&str>) -> Option<usize> {
        if uri.is_empty() || uri == XML_NAMESPACE {
            return None;
        }
        if let Some(known) = self.numbers.get(uri) {
            return Some(*known);
        }
        let number = self.all.len();
        let wished =
            wished.filter(|wished| !is_own_prefix(wished) && !self.wished.contains(*wished));
        let prefix: Box<str> = match wished {
            Some(wished) => wished.into(),
            None => format!("n{}", number + 1).into(),
        };
        self.wished.extend(wished.map(Into::into));
        self.all.push(Namespace { uri: uri.into(), prefix });
        self.numbers.insert(uri.into(), number);
        Some(number)
    }

    /// The number of a namespace that has one.
    pub(in crate::mapping) fn known(&self, uri: &str) -> Option<usize> {
        self.numbers.get(uri).copied()
    }

    /// The name with its prefix: the wished one, where its namespace has none and it is free.
    pub(in crate::mapping) fn qualified(
        &mut self,
        name: &XmlName,
        wished: Option<&str>,
        used: &mut BTreeSet<usize>,
    ) -> String {
        match self.number(&name.namespace, wished) {
            Some(number) => {
                used.insert(number);
                format!("{}:{}", self.prefix(number), name.local)
            }
            None if name.namespace.is_empty() => name.local.to_string(),
            None => format!("xml:{}", name.local),
        }
    }

    fn prefix(&self, number: usize) -> &str {
        self.all.get(number).map(|namespace| &*namespace.prefix).unwrap_or_default()
    }

    /// ` xmlns:n1="urn:shop"`
    pub(in crate::mapping) fn declare(&self, number: usize, out: &mut String) {
        let uri = self.all.get(number).map(|namespace| &*namespace.uri).unwrap_or_default();
        out.push_str(" xmlns:");
        out.push_str(self.prefix(number));
        out.push_str("=\"");
        // One that XML cannot hold was refused where it was read.
        escape_attribute(uri, out).unwrap_or_default();
        out.push('"');
    }
}

/// Prefixes that messages have anyway: those of the envelope and the instance, of namespaces by their
/// number, and of names in values.
fn is_own_prefix(prefix: &str) -> bool {
    let is_numbered = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    matches!(prefix, "soap" | "xsi") || prefix.strip_prefix(['n', 'q']).is_some_and(is_numbered)
}

impl TypePlans {
    /// Resolves the types of a service.
    ///
    /// # Errors
    ///
    /// Names every type that is wrong and what to change.
    pub fn compile(types: &XmlTypes) -> Result<Self, Vec<PlanError>> {
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

    fn index_derived(&mut self, types: &XmlTypes, errors: &mut Vec<PlanError>) {
        let bases: Vec<Option<usize>> = self.types.iter().map(|plan| plan.base).collect();
        for (index, name) in types.0.keys().enumerate() {
            let is_abstract = self.types.get(index).is_some_and(|plan| plan.is_abstract);
            let mut ancestor = bases.get(index).copied().flatten();
            let mut steps = 0;
            while let Some(at) = ancestor {
                steps += 1;
                if steps > DERIVATIONS_MAX {
                    errors.push(PlanError::Derivation { name: name.clone() });
                    return;
                }
                if !is_abstract && let Some(plan) = self.types.get_mut(at) {
                    plan.derived.push(index);
                }
                ancestor = bases.get(at).copied().flatten();
            }
        }
    }

    pub(in crate::mapping) fn get(&self, index: usize) -> Option<&TypePlan> {
        self.types.get(index)
    }

    /// The type of this name.
    pub(in crate::mapping) fn find(&self, namespace: &str, local: &str) -> Option<usize> {
        let key = |plan: &TypePlan| {
            let name = plan.name.as_ref();
            let name = name.map(|name| (&*name.namespace, &*name.local));
            name.unwrap_or_default().cmp(&(namespace, local))
        };
        self.types.binary_search_by(key).ok()
    }

    /// Namespaces of everything that may stand within these parts and this type.
    pub(in crate::mapping) fn reachable<'a>(
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
    pub(in crate::mapping) fn may_be(&self, other: usize) -> bool {
        self.derived.binary_search(&other).is_ok()
    }

    /// Whether its JSON is a single value instead of an object. Where another type may stand in its
    /// place it is an object always, so that it is the same thing whatever comes.
    pub(in crate::mapping) fn is_value(&self) -> bool {
        self.text.is_some() && self.members.len() == 1 && self.derived.is_empty()
    }

    pub(in crate::mapping) fn elements(&self) -> impl Iterator<Item = &ElementPlan> {
        self.members.iter().filter_map(|member| match &member.part {
            Part::Element(element) => Some(element),
            _ => None,
        })
    }

    pub(in crate::mapping) fn member(&self, name: &str) -> Option<usize> {
        let found = self.by_name.binary_search_by(|index| {
            self.members.get(*index).map_or("", |member| &member.name).cmp(name)
        });
        found.ok().and_then(|found| self.by_name.get(found).copied())
    }

    /// Members whose elements have this local name.
    pub(in crate::mapping) fn named<'a>(
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

    pub(in crate::mapping) fn local(&self, index: usize) -> &str {
        match self.members.get(index).map(|member| &member.part) {
            Some(Part::Element(element)) => &element.name.local,
            _ => "",
        }
    }
}

/// How an element begins and ends.
#[derive(Debug, Clone, Copy)]
pub(in crate::mapping) struct Tags<'a> {
    pub(in crate::mapping) open: &'a str,
    pub(in crate::mapping) close: &'a str,
}

impl ElementPlan {
    pub(in crate::mapping) const fn tags(&self) -> Tags<'_> {
        Tags { open: &self.open, close: &self.close }
    }

    pub(in crate::mapping) const fn type_index(&self) -> Option<usize> {
        match self.holds {
            Holds::Type(index) => Some(index),
            Holds::Value(_) | Holds::List(_) | Holds::Map(_) | Holds::Any => None,
        }
    }
}
