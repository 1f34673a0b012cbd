//! Arguments that models write in another form: `"10"` for a number, `"{\"a\":1}"` for an object,
//! `null` for what they leave out.
//!
//! The schema decides: a string stands in for another kind only where the schema takes no strings
//! and the string is exactly one value of a kind that it does take. A declared string is never
//! looked into. Runs only when arguments did not pass, and what it makes is checked like everything
//! else. Each repair is counted, and the first are named, so that they can be audited.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::digits::{INTEGER_PATTERN, NUMBER_PATTERN};
use super::kinds::Kinds;
use crate::json::{Kind, OwnedRaw, Raw, write_string};

/// How many repairs of one call are named; all are counted.
pub const REPAIRS_NAMED_MAX: usize = 16;
/// How deep schemas are followed. What stands deeper is left alone.
const LEVELS_MAX: usize = 64;

/// What was done to arguments so that they fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repairs {
    /// All of them.
    pub count: u32,
    /// The first [`REPAIRS_NAMED_MAX`].
    pub named: Vec<Repair>,
}

impl Repairs {
    /// Adds those that were made before.
    pub(super) fn follow(&mut self, mut earlier: Self) {
        earlier.count = earlier.count.saturating_add(self.count);
        earlier.named.append(&mut self.named);
        earlier.named.truncate(REPAIRS_NAMED_MAX);
        *self = earlier;
    }
}

/// One value that was taken for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Where, by exposed names: `order.lines[2].quantity`.
    pub field: Box<str>,
    /// What was done.
    pub kind: RepairKind,
}

/// What is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RepairKind {
    /// A string was the text of a number, boolean, object or array.
    TextAsValue,
    /// A number stood where its digits are expected as a string.
    NumberAsText,
    /// `null` stood for an optional value that was meant to be absent.
    NullAsAbsent,
}

impl RepairKind {
    /// A stable code for logs and audits.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TextAsValue => "text_as_value",
            Self::NumberAsText => "number_as_text",
            Self::NullAsAbsent => "null_as_absent",
        }
    }
}

/// What a schema expects of one value, without anything that no repair needs.
#[derive(Debug)]
pub(super) struct Expected {
    kinds: Kinds,
    /// The digits of a number as a string.
    is_digits: bool,
    /// In the order of their names.
    members: Vec<Member>,
    /// Members that have no name in the schema.
    others: Option<Box<Self>>,
    item: Option<Box<Self>>,
}

#[derive(Debug)]
struct Member {
    name: Box<str>,
    is_required: bool,
    expected: Expected,
}

impl Expected {
    pub(super) fn of(schema: &Value) -> Self {
        Self::of_level(schema, LEVELS_MAX)
    }

    fn of_level(schema: &Value, levels: usize) -> Self {
        let kinds = Kinds::of_schema(schema);
        let mut expected =
            Self { kinds, is_digits: false, members: Vec::new(), others: None, item: None };
        let (Some(words), Some(levels)) = (schema.as_object(), levels.checked_sub(1)) else {
            return expected;
        };
        let pattern = words.get("pattern").and_then(Value::as_str);
        expected.is_digits = kinds.without(Kinds::NULL) == Kinds::STRING
            && pattern.is_some_and(|known| matches!(known, INTEGER_PATTERN | NUMBER_PATTERN));
        expected.add(words, levels);
        expected.members.sort_by(|left, right| left.name.cmp(&right.name));
        // The first is that of the schema itself, the others are of its combinators.
        expected.members.dedup_by(|later, first| {
            let is_same = later.name == first.name;
            first.is_required |= is_same && later.is_required;
            is_same
        });
        expected
    }

    /// Members and items, also those of combinators.
    fn add(&mut self, words: &Map<String, Value>, levels: usize) {
        let below = |schema: &Value| Box::new(Self::of_level(schema, levels));
        let required = words.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|required| required.iter().any(|known| known == name))
        };
        for (name, schema) in
            words.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let (name, is_required) = (name.as_str().into(), is_required(name));
            self.members.push(Member { name, is_required, expected: *below(schema) });
        }
        if self.others.is_none() {
            self.others =
                words.get("additionalProperties").filter(|other| other.is_object()).map(below);
        }
        if self.item.is_none() && !words.contains_key("prefixItems") {
            self.item = words.get("items").filter(|items| items.is_object()).map(below);
        }
        let Some(levels) = levels.checked_sub(1) else { return };
        for key in ["allOf", "anyOf", "oneOf"] {
            let branches = words.get(key).and_then(Value::as_array).into_iter().flatten();
            for branch in branches.filter_map(Value::as_object) {
                self.add(branch, levels);
            }
        }
    }

    /// The repaired value and what was done; `None` when nothing can be repaired.
    pub(super) fn repair(&self, raw: Raw<'_>) -> Option<(OwnedRaw, Repairs)> {
        self.repaired(raw, false)
    }

    /// The value without any `null` of what is optional, also where `null` would be taken: for
    /// clients that have no other way to leave something out. `None` where there is none.
    pub(super) fn without_nulls(&self, raw: Raw<'_>) -> Option<(OwnedRaw, Repairs)> {
        memchr::memmem::find(raw.text().as_bytes(), b"null")?;
        self.repaired(raw, true)
    }

    fn repaired(&self, raw: Raw<'_>, nulls_only: bool) -> Option<(OwnedRaw, Repairs)> {
        let mut repair = Repairing {
            nulls_only,
            out: Vec::with_capacity(raw.text().len()),
            path: String::new(),
            repairs: Repairs::default(),
        };
        repair.write(self, raw);
        if repair.repairs.count == 0 {
            return None;
        }
        Some((OwnedRaw::parse(&repair.out).ok()?, repair.repairs))
    }

    fn member(&self, name: &str) -> Option<&Member> {
        let found = self.members.binary_search_by(|member| (*member.name).cmp(name)).ok()?;
        self.members.get(found)
    }

    /// The one value that a string holds, where a string cannot be meant.
    fn held_by(&self, raw: Raw<'_>) -> Option<OwnedRaw> {
        if self.kinds.has(Kinds::STRING) {
            return None;
        }
        let text = raw.as_str()?;
        let inner = OwnedRaw::parse(text.as_bytes()).ok()?;
        let takes = |kind| self.kinds.has(kind);
        let digits = text.trim().strip_prefix('-').unwrap_or(text.trim());
        let fits = match inner.as_raw().kind() {
            Kind::Null | Kind::String => false,
            Kind::Bool => takes(Kinds::BOOLEAN),
            Kind::Object => takes(Kinds::OBJECT),
            Kind::Array => takes(Kinds::ARRAY),
            Kind::Number => {
                let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
                takes(Kinds::FRACTION) || (takes(Kinds::INTEGER) && is_plain)
            }
        };
        fits.then_some(inner)
    }
}

/// Follows the schema, so it recurses no deeper than that: the value in a string is no string.
struct Repairing {
    /// Only what is `null` and optional goes, and all of it.
    nulls_only: bool,
    out: Vec<u8>,
    /// Of exposed names, for what is named.
    path: String,
    repairs: Repairs,
}

impl Repairing {
    fn write(&mut self, expected: &Expected, raw: Raw<'_>) {
        match (raw.kind(), &expected.item) {
            (Kind::String | Kind::Number, _) if self.nulls_only => {}
            (Kind::String, _) => {
                if let Some(inner) = expected.held_by(raw) {
                    self.note(RepairKind::TextAsValue);
                    return self.write(expected, inner.as_raw());
                }
            }
            (Kind::Number, _) if expected.is_digits => {
                self.note(RepairKind::NumberAsText);
                return write_string(&mut self.out, raw.text());
            }
            (Kind::Object, _) if !expected.members.is_empty() || expected.others.is_some() => {
                return self.write_object(expected, raw);
            }
            (Kind::Array, Some(item)) => {
                self.out.push(b'[');
                let length = self.path.len();
                for (index, value) in raw.items().enumerate() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    // Writing to a string cannot fail.
                    let _ = write!(self.path, "[{index}]");
                    self.write(item, value);
                    self.path.truncate(length);
                }
                return self.out.push(b']');
            }
            _ => {}
        }
        self.out.extend_from_slice(raw.text().as_bytes());
    }

    fn write_object(&mut self, expected: &Expected, raw: Raw<'_>) {
        self.out.push(b'{');
        let mut is_empty = true;
        for (key, value) in raw.raw_entries() {
            let name = key.as_str().unwrap_or_default();
            let member = expected.member(&name);
            let length = self.path.len();
            if let Some(member) = member {
                let dot = if self.path.is_empty() { "" } else { "." };
                let _ = write!(self.path, "{dot}{}", member.name);
                let is_value = !self.nulls_only && member.expected.kinds.has(Kinds::NULL);
                if value.is_null() && !member.is_required && !is_value {
                    self.note(RepairKind::NullAsAbsent);
                    self.path.truncate(length);
                    continue;
                }
            }
            if !is_empty {
                self.out.push(b',');
            }
            is_empty = false;
            self.out.extend_from_slice(key.text().as_bytes());
            self.out.push(b':');
            match (member, &expected.others) {
                (Some(member), _) => self.write(&member.expected, value),
                // Its name is the client's, so it is not told.
                (None, Some(others)) => self.write(others, value),
                (None, None) => self.out.extend_from_slice(value.text().as_bytes()),
            }
            self.path.truncate(length);
        }
        self.out.push(b'}');
    }

    fn note(&mut self, kind: RepairKind) {
        self.repairs.count = self.repairs.count.saturating_add(1);
        if self.repairs.named.len() < REPAIRS_NAMED_MAX {
            self.repairs.named.push(Repair { field: self.path.as_str().into(), kind });
        }
    }
}
