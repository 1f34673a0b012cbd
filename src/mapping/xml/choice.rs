//! Which parts of a type's content a call means, and how often they stand.

use std::ops::Range;

use super::types::{ElementPlan, Part, Particle, TypePlan};
use super::write::{Given, NAMED_MAX, Problem};
use crate::json::{Kind, Raw};

/// Whether a call has something for a particle.
pub(in crate::mapping) fn is_given(
    plan: &TypePlan,
    particle: &Particle,
    given: &Given<'_>,
    round: &Range<usize>,
) -> bool {
    match particle {
        Particle::Member(index) => {
            let Some(member) = plan.members.get(*index) else { return false };
            let is_nillable =
                matches!(&member.part, Part::Element(ElementPlan { nillable: true, .. }));
            let says = |value: Raw<'_>| is_nillable || !value.is_null();
            match given.get(*index).copied().flatten() {
                None => false,
                Some(array) if member.is_array && array.kind() == Kind::Array => {
                    let count = round.len();
                    array.items().skip(round.start).take(count).any(says)
                }
                Some(value) => says(value) && (!member.is_array || round.start == 0),
            }
        }
        Particle::Sequence { parts, .. } | Particle::Choice { parts, .. } => {
            parts.iter().any(|part| is_given(plan, part, given, round))
        }
    }
}

/// Which alternative a call means: the first that has a place for everything that is given.
pub(in crate::mapping) fn chosen<'p>(
    plan: &TypePlan,
    parts: &'p [Particle],
    given: &Given<'_>,
    round: &Range<usize>,
) -> Result<Option<&'p Particle>, Problem> {
    let mut all = Vec::new();
    for part in parts {
        members(part, &mut all);
    }
    all.retain(|index| is_given(plan, &Particle::Member(*index), given, round));
    if all.is_empty() {
        // A fixed element, where it is the only alternative that says something by itself.
        return Ok(None);
    }
    let mut own = Vec::new();
    for part in parts {
        own.clear();
        members(part, &mut own);
        if all.iter().all(|index| own.contains(index)) {
            return Ok(Some(part));
        }
    }
    all.sort_unstable();
    all.dedup();
    let names = all.iter().filter_map(|index| plan.members.get(*index));
    let names: Vec<&str> = names.map(|member| &*member.name).collect();
    Err(Problem::new(format!("only one of these may be given at a time: {}", names.join(", "))))
}

/// That a call has to say which of the alternatives it means.
#[cold]
pub(in crate::mapping) fn none_given(plan: &TypePlan, parts: &[Particle]) -> Problem {
    let mut all = Vec::new();
    for part in parts {
        members(part, &mut all);
    }
    all.sort_unstable();
    all.dedup();
    let names = all.iter().take(NAMED_MAX).filter_map(|index| plan.members.get(*index));
    let names: Vec<&str> = names.map(|member| &*member.name).collect();
    Problem::new(format!("one of these must be given: {}", names.join(", ")))
}

fn members(particle: &Particle, out: &mut Vec<usize>) {
    match particle {
        Particle::Member(index) => out.push(*index),
        Particle::Sequence { parts, .. } | Particle::Choice { parts, .. } => {
            for part in parts {
                members(part, out);
            }
        }
    }
}

/// How often a group stands: as often as the longest array of what stands once in it.
pub(in crate::mapping) fn rounds(plan: &TypePlan, parts: &[Particle], given: &Given<'_>) -> usize {
    let mut count = 0;
    for part in parts {
        let own = match part {
            Particle::Member(index) => {
                let is_single = plan.members.get(*index).is_some_and(|member| member.is_single);
                match given.get(*index).copied().flatten() {
                    None => 0,
                    Some(array) if array.kind() == Kind::Array => {
                        array.items().take(if is_single { usize::MAX } else { 1 }).count()
                    }
                    Some(_) => 1,
                }
            }
            Particle::Sequence { repeats: false, parts }
            | Particle::Choice { repeats: false, parts, .. } => rounds(plan, parts, given),
            Particle::Sequence { repeats: true, parts }
            | Particle::Choice { repeats: true, parts, .. } => rounds(plan, parts, given).min(1),
        };
        count = count.max(own);
    }
    count
}
