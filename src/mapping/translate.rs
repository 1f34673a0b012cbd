//! Picking and renaming the members of a JSON document, with values passed on as exact text.
//!
//! The same steps serve both directions: exposed to source for bodies of requests, source to
//! exposed for answers. Each call goes one level down the compiled steps or the document, whose
//! depth is bounded by `SEGMENTS_MAX` and [`DEPTH_MAX`](crate::json::DEPTH_MAX).

use smallvec::SmallVec;

use super::shape::{Content, Node};
use super::{FieldRule, FieldType, MappingError, digits};
use crate::json::{Kind, OwnedRaw, Raw, write_string};

/// What to do with one value.
#[derive(Debug)]
pub(super) struct Step {
    from: Box<str>,
    to: Box<str>,
    /// `to` as it is written: quoted and with its colon.
    key: Box<[u8]>,
    content: StepContent,
    /// The value is written as it came.
    plain: bool,
    /// Whatever shape the value has, only what rules name is written of it.
    picks: bool,
    /// Written when the value is absent.
    default: Option<OwnedRaw>,
    /// Written always; the field has no name to come from.
    constant: Option<OwnedRaw>,
    /// There is a constant in the value, so it is made when it is absent.
    forced: bool,
}

#[derive(Debug)]
enum StepContent {
    Leaf,
    /// A leaf that is said to be a single value, so that nothing can hide in it.
    Single,
    /// A number that clients see as a text, on its way to the API.
    ToNumber,
    /// And back.
    ToText,
    Object(Members),
    Array(Box<Step>),
}

/// The members of an object that rules know.
#[derive(Debug)]
pub(super) struct Members {
    /// In the order of `from`.
    steps: Vec<Step>,
    /// What no value comes for: constants, and objects of nothing else.
    hidden: Vec<Step>,
    /// New names that stand for another member, in order, with that member in `steps`; `None` for
    /// a hidden one.
    new_names: Vec<(Box<str>, Option<usize>)>,
    /// Absent members may have to be written.
    fills: bool,
    /// What happens to the others.
    unmapped: Unmapped,
}

/// Which way names are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Exposed to source.
    Request,
    /// Source to exposed.
    Response(Unmapped),
}

/// What happens to members that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmapped {
    /// They pass under their own names.
    Keep,
    /// They are left out, but for those of an object whose rule has `additional_properties`.
    Drop,
}

/// What writing a document came to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Something that rules name was there.
    pub(super) given: bool,
    /// Something that no rule names was left out.
    pub(super) left_out: bool,
    /// How many values were written as `null`, because rules look into them and they are of a kind
    /// that has no such members.
    pub(super) withheld: u64,
}

impl Step {
    pub(super) fn compile(
        node: &Node,
        rules: &[FieldRule],
        direction: Direction,
    ) -> Result<Self, MappingError> {
        let (from, to) = match direction {
            Direction::Request => (&node.exposed, &node.source),
            Direction::Response(_) => (&node.source, &node.exposed),
        };
        // A raw schema describes a field without picking from it.
        let direction = match direction {
            Direction::Response(_) if node.schema.is_some() => Direction::Response(Unmapped::Keep),
            other => other,
        };
        let picks = direction == Direction::Response(Unmapped::Drop);
        let rule = node.rule.and_then(|index| rules.get(index));
        let as_text = rule.is_some_and(|rule| rule.as_string);
        let content = match &node.content {
            Content::Leaf if as_text && direction == Direction::Request => StepContent::ToNumber,
            Content::Leaf if as_text => StepContent::ToText,
            Content::Leaf if picks && rule.is_some_and(is_single) => StepContent::Single,
            Content::Leaf => StepContent::Leaf,
            Content::Array(item) => {
                StepContent::Array(Box::new(Self::compile_item(item, rules, direction)?))
            }
            Content::Object(nodes) => {
                let is_open = || rule.is_some_and(keeps_others);
                let unmapped = if picks && !is_open() { Unmapped::Drop } else { Unmapped::Keep };
                StepContent::Object(Members::compile(nodes.iter(), rules, direction, unmapped)?)
            }
        };
        let rule = rule.filter(|_| direction == Direction::Request);
        let constant = rule.and_then(|rule| Some(fixed(rule, rule.constant.as_ref()?)));
        let constant = constant.transpose()?;
        let default = rule.filter(|rule| rule.send_default);
        let default = default.and_then(|rule| Some(fixed(rule, rule.default.as_ref()?)));
        let (plain, forced) = match &content {
            StepContent::Leaf => (true, false),
            StepContent::Single | StepContent::ToNumber | StepContent::ToText => (false, false),
            StepContent::Array(item) => (item.plain, false),
            StepContent::Object(members) => (members.are_plain(), members.force()),
        };
        let mut key = Vec::new();
        write_string(&mut key, to);
        key.push(b':');
        Ok(Self {
            from: from.clone(),
            to: to.clone(),
            key: key.into_boxed_slice(),
            content,
            plain,
            picks,
            default: default.transpose()?,
            forced: forced || constant.is_some(),
            constant,
        })
    }

    /// Items carry the rule of their array, whose fixed values are those of the array.
    fn compile_item(
        item: &Node,
        rules: &[FieldRule],
        direction: Direction,
    ) -> Result<Self, MappingError> {
        let step = Self::compile(item, rules, direction)?;
        Ok(Self { constant: None, default: None, ..step })
    }

    /// Whether a document leaves as it came, to the byte.
    pub(super) const fn is_plain(&self) -> bool {
        self.plain
    }

    /// What to write where the value is absent.
    pub(super) fn write_absent(&self, out: &mut Vec<u8>) -> bool {
        if let Some(fixed) = self.constant.as_ref().or(self.default.as_ref()) {
            out.extend_from_slice(fixed.as_raw().text().as_bytes());
            return true;
        }
        match &self.content {
            StepContent::Object(members) if self.forced => {
                members.write(None, out, &mut Tally::default());
                true
            }
            _ => false,
        }
    }

    pub(super) fn write(&self, raw: Raw<'_>, out: &mut Vec<u8>, tally: &mut Tally) {
        match (&self.content, raw.kind()) {
            _ if self.plain => whole(raw, out, tally),
            (StepContent::Object(members), Kind::Object) => members.write(Some(raw), out, tally),
            (StepContent::Array(item), Kind::Array) => item.write_each(raw, out, tally),
            // Of another kind than the rules say. It is not ours to judge, only to see that nothing
            // gets around the rules: many where one is meant are picked from one by one,
            (_, Kind::Array) if self.picks => self.write_each(raw, out, tally),
            // one where many are meant is picked from as one of them,
            (StepContent::Array(item), _) if self.picks => item.write(raw, out, tally),
            // and what cannot be picked from stays out.
            (_, kind) if self.picks && self.hides(kind) => {
                tally.withheld += 1;
                out.extend_from_slice(b"null");
            }
            (StepContent::ToNumber, Kind::String) => digits::write_number(raw, out),
            (StepContent::ToText, Kind::Number) => {
                tally.given = true;
                digits::write_text(raw, out);
            }
            _ => whole(raw, out, tally),
        }
    }

    fn write_each(&self, array: Raw<'_>, out: &mut Vec<u8>, tally: &mut Tally) {
        let before = out.len();
        out.push(b'[');
        for (index, value) in array.items().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.write(value, out, tally);
        }
        // That there is nothing is an answer.
        tally.given |= out.len() == before + 1;
        out.push(b']');
    }

    /// Whether a value of this kind could hold what no rule names.
    fn hides(&self, kind: Kind) -> bool {
        match &self.content {
            StepContent::Object(members) => {
                members.unmapped == Unmapped::Drop && kind != Kind::Null
            }
            StepContent::Leaf | StepContent::Array(_) => false,
            StepContent::Single | StepContent::ToNumber | StepContent::ToText => {
                kind == Kind::Object
            }
        }
    }
}

fn whole(raw: Raw<'_>, out: &mut Vec<u8>, tally: &mut Tally) {
    tally.given = true;
    out.extend_from_slice(raw.text().as_bytes());
}

/// Whether the rule says that the field, or each item of it, is a single value. A rule without a
/// type names a field whatever it holds.
fn is_single(rule: &FieldRule) -> bool {
    rule.array_item_type.or(rule.field_type).is_some_and(FieldType::is_scalar)
}

fn keeps_others(rule: &FieldRule) -> bool {
    rule.additional_properties.as_ref().is_some_and(|value| *value != false)
}

fn fixed(rule: &FieldRule, value: &serde_json::Value) -> Result<OwnedRaw, MappingError> {
    let sent = if rule.as_string { digits::sent(value) } else { value.to_string() };
    OwnedRaw::parse(sent.as_bytes())
        .map_err(|error| MappingError::Schema { problem: error.to_string() })
}

impl Members {
    pub(super) fn compile<'a>(
        nodes: impl Iterator<Item = &'a Node>,
        rules: &[FieldRule],
        direction: Direction,
        unmapped: Unmapped,
    ) -> Result<Self, MappingError> {
        let (steps, hidden, new_names) = (Vec::new(), Vec::new(), Vec::new());
        let mut members = Self { steps, hidden, new_names, fills: false, unmapped };
        for node in nodes {
            let step = Step::compile(node, rules, direction)?;
            members.fills |= step.default.is_some() || step.forced;
            if direction == Direction::Request && node.is_hidden(rules) {
                members.hidden.push(step);
            } else {
                members.steps.push(step);
            }
        }
        members.steps.sort_unstable_by(|left, right| left.from.cmp(&right.from));
        let renamed = members.steps.iter().enumerate().filter(|(_, step)| step.from != step.to);
        let renamed = renamed.map(|(index, step)| (step.to.clone(), Some(index)));
        let hidden = members.hidden.iter().map(|step| (step.to.clone(), None));
        members.new_names = renamed.chain(hidden).collect();
        members.new_names.sort_unstable();
        Ok(members)
    }

    fn are_plain(&self) -> bool {
        let is_plain = |step: &Step| step.plain && step.from == step.to;
        !self.fills && self.unmapped == Unmapped::Keep && self.steps.iter().all(is_plain)
    }

    fn force(&self) -> bool {
        self.steps.iter().chain(&self.hidden).any(|step| step.forced)
    }

    #[inline]
    fn find(&self, name: &str) -> Option<usize> {
        self.steps.binary_search_by(|step| (*step.from).cmp(name)).ok()
    }

    /// Writes an object. Each known member goes under its new name, in the order it came; then
    /// follows what is absent and has to be there.
    pub(super) fn write(&self, raw: Option<Raw<'_>>, out: &mut Vec<u8>, tally: &mut Tally) {
        let mut seen: SmallVec<[bool; 32]> = SmallVec::new();
        if self.fills {
            seen.resize(self.steps.len(), false);
        }
        let mut object = ObjectWriter::open(out);
        let mut is_empty = true;
        for (key, value) in raw.unwrap_or(Raw::EMPTY_OBJECT).raw_entries() {
            is_empty = false;
            let name = key.as_str().unwrap_or_default();
            if let Some((index, step)) =
                self.find(&name).and_then(|index| Some((index, self.steps.get(index)?)))
            {
                if let Some(seen) = seen.get_mut(index) {
                    *seen = true;
                }
                step.write(value, object.member(&step.key), tally);
            } else if self.unmapped == Unmapped::Keep && !self.takes_name(&name, raw) {
                let out = object.member(key.text().as_bytes());
                out.push(b':');
                whole(value, out, tally);
            } else {
                tally.left_out = true;
            }
        }
        // That there is nothing is an answer.
        tally.given |= is_empty;
        if self.fills {
            let absent = self.steps.iter().zip(&seen).filter(|(_, seen)| !**seen);
            for step in absent.map(|(step, _)| step).chain(&self.hidden) {
                object.fill(step);
            }
        }
        object.close();
    }

    /// Whether an unmapped member of this name would stand beside a mapped one under the same
    /// name. The mapped one is what the operator asked for; two equal keys are read differently by
    /// different readers, and a client must not be able to override a constant.
    fn takes_name(&self, name: &str, raw: Option<Raw<'_>>) -> bool {
        let found = self.new_names.binary_search_by(|(known, _)| (**known).cmp(name));
        let Some((_, index)) = found.ok().and_then(|found| self.new_names.get(found)) else {
            return false;
        };
        let Some(step) = index.and_then(|index| self.steps.get(index)) else { return true };
        let given = raw.is_some_and(|raw| raw.get(&step.from).is_some());
        given || step.forced || step.default.is_some()
    }
}

struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    fn member(&mut self, key: &[u8]) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.extend_from_slice(key);
        self.out
    }

    fn fill(&mut self, step: &Step) {
        let (before, empty) = (self.out.len(), self.empty);
        if !step.write_absent(self.member(&step.key)) {
            self.out.truncate(before);
            self.empty = empty;
        }
    }

    fn close(self) {
        self.out.push(b'}');
    }
}
