//! Arguments that models write as text: `"10"` for a number, `"{\"a\":1}"` for an object.
//!
//! The shape decides: a string stands in for another type only where the rules declare that type
//! and the string is exactly one value of it. A declared string is never looked into. Runs only
//! when arguments did not pass, and what it makes is checked like everything else.

use super::FieldType;
use super::shape::{Content, Field, Node};
use crate::json::{Kind, OwnedRaw, Raw, write_string};

/// The expected types among the arguments, without anything else of the rules.
#[derive(Debug)]
pub(super) struct Expected {
    name: Box<str>,
    field_type: FieldType,
    members: Vec<Self>,
    item: Option<Box<Self>>,
}

impl Expected {
    pub(super) fn root(fields: &[Field]) -> Self {
        Self {
            name: "".into(),
            field_type: FieldType::Object,
            members: fields.iter().map(|field| Self::new(&field.node)).collect(),
            item: None,
        }
    }

    fn new(node: &Node) -> Self {
        let (members, item) = match &node.content {
            Content::Leaf => (Vec::new(), None),
            Content::Object(members) => (members.iter().map(Self::new).collect(), None),
            Content::Array(item) => (Vec::new(), Some(Box::new(Self::new(item)))),
        };
        Self { name: node.exposed.clone(), field_type: node.field_type, members, item }
    }

    /// The repaired value and how many strings were taken for what they hold; `None` when nothing
    /// can be repaired.
    pub(super) fn repair(&self, raw: Raw<'_>) -> Option<(OwnedRaw, usize)> {
        let mut out = Vec::with_capacity(raw.text().len());
        let repairs = self.write(raw, &mut out);
        let repaired = OwnedRaw::parse(&out).ok()?;
        (repairs > 0).then_some((repaired, repairs))
    }

    /// Follows the shape, so it recurses no deeper than `SEGMENTS_MAX` and a little.
    fn write(&self, raw: Raw<'_>, out: &mut Vec<u8>) -> usize {
        match (raw.kind(), &self.item) {
            (Kind::String, _) if self.field_type != FieldType::String => {
                if let Some(inner) = self.held_by(raw) {
                    return 1 + self.write(inner.as_raw(), out);
                }
            }
            (Kind::Object, None) if !self.members.is_empty() => {
                return self.write_object(raw, out);
            }
            (Kind::Array, Some(item)) => {
                out.push(b'[');
                let mut repairs = 0;
                for (index, value) in raw.items().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    repairs += item.write(value, out);
                }
                out.push(b']');
                return repairs;
            }
            _ => {}
        }
        out.extend_from_slice(raw.text().as_bytes());
        0
    }

    fn write_object(&self, raw: Raw<'_>, out: &mut Vec<u8>) -> usize {
        out.push(b'{');
        let mut repairs = 0;
        for (index, (name, value)) in raw.entries().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_string(out, &name);
            out.push(b':');
            match self.members.iter().find(|member| *member.name == *name) {
                Some(member) => repairs += member.write(value, out),
                None => out.extend_from_slice(value.text().as_bytes()),
            }
        }
        out.push(b'}');
        repairs
    }

    /// The one value of the declared type that a string holds.
    fn held_by(&self, raw: Raw<'_>) -> Option<OwnedRaw> {
        let text = raw.as_str()?;
        let inner = OwnedRaw::parse(text.as_bytes()).ok()?;
        let digits = text.trim().strip_prefix('-').unwrap_or(text.trim());
        let fits = self.field_type.fits(inner.as_raw().kind())
            && (self.field_type != FieldType::Integer
                || digits.bytes().all(|digit| digit.is_ascii_digit()));
        fits.then_some(inner)
    }
}
