//! Arguments that fit their tool, and what can be read from them without the plan.

use std::borrow::Cow;

use serde_json::Value;

use super::FieldRule;
use super::kinds::Kinds;
use super::repair::Repairs;
use super::shape::{Content, Field, Node};
use crate::json::{Kind, OwnedRaw, Raw};

/// Numbers up to here are whole where a double is.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Arguments that fit their tool.
#[derive(Debug)]
pub struct Arguments<'a> {
    pub(super) text: ArgumentsText<'a>,
    pub(super) repairs: Repairs,
}

#[derive(Debug)]
pub(super) enum ArgumentsText<'a> {
    Absent,
    Given(Raw<'a>),
    Repaired(OwnedRaw),
}

impl Arguments<'_> {
    /// The object of the arguments, repaired where it had to be; `None` when the call had none.
    pub fn raw(&self) -> Option<Raw<'_>> {
        match &self.text {
            ArgumentsText::Absent => None,
            ArgumentsText::Given(raw) => Some(*raw),
            ArgumentsText::Repaired(owned) => Some(owned.as_raw()),
        }
    }

    /// What was done to the arguments so that they fit. Nothing is allocated where that is nothing.
    pub const fn repairs(&self) -> &Repairs {
        &self.repairs
    }

    fn at(&self, path: &str) -> Option<Raw<'_>> {
        path.split('.').try_fold(self.raw()?, Raw::get)
    }

    /// The single value at a path of exposed names (`order.kind`) as a text: a string decoded, a
    /// whole number without fraction and exponent, everything else as it was written. `None` where
    /// it is absent, `null`, an object or an array.
    pub fn text_of(&self, path: &str) -> Option<Cow<'_, str>> {
        let value = self.at(path)?;
        match value.kind() {
            Kind::String => value.as_str(),
            Kind::Number => Some(whole(value.text())),
            Kind::Bool => Some(Cow::Borrowed(value.text())),
            Kind::Null | Kind::Array | Kind::Object => None,
        }
    }

    /// The same as it will be sent: else that of these defaults which is sent for this path.
    pub(super) fn sent_text<'a>(
        &'a self,
        path: &str,
        defaults: &'a [SentDefault],
    ) -> Option<Cow<'a, str>> {
        self.text_of(path).or_else(|| {
            let default = defaults.iter().find(|default| default.is_sent(path, self));
            default.map(SentDefault::text)
        })
    }
}

/// A single value that is sent when a call does not have it.
#[derive(Debug)]
pub(super) struct SentDefault {
    path: Box<str>,
    /// The object it stands in; `None` at the root.
    parent: Option<Box<str>>,
    /// That object is sent even if the call does not have it.
    is_forced: bool,
    text: Box<str>,
}

impl SentDefault {
    pub(super) fn all(fields: &[Field], rules: &[FieldRule]) -> Vec<Self> {
        let mut defaults = Vec::new();
        for field in fields {
            Self::collect(&field.node, None, true, rules, &mut defaults);
        }
        defaults
    }

    /// Follows the tree of the rules.
    fn collect(
        node: &Node,
        parent: Option<&str>,
        is_forced: bool,
        rules: &[FieldRule],
        defaults: &mut Vec<Self>,
    ) {
        if node.is_hidden(rules) {
            return;
        }
        let path = parent.map_or_else(
            || node.exposed.to_string(),
            |parent| format!("{parent}.{}", node.exposed),
        );
        if let Content::Object(members) = &node.content {
            for member in members {
                Self::collect(member, Some(&path), has_constant(node, rules), rules, defaults);
            }
        }
        let rule = node.rule.and_then(|index| rules.get(index)).filter(|rule| rule.send_default);
        let Some(text) = rule.and_then(|rule| single_text(rule.default.as_ref()?)) else { return };
        let parent = parent.map(Into::into);
        defaults.push(Self { path: path.into_boxed_str(), parent, is_forced, text });
    }

    /// Of an argument at the top; `None` where it is no single value.
    pub(super) fn of_argument(name: &str, value: &Value) -> Option<Self> {
        let text = single_text(value)?;
        Some(Self { path: name.into(), parent: None, is_forced: true, text })
    }

    /// Whether this is what goes out for a path that the arguments do not have.
    pub(super) fn is_sent(&self, path: &str, arguments: &Arguments<'_>) -> bool {
        let stands =
            |parent: &str| arguments.at(parent).is_some_and(|at| at.kind() == Kind::Object);
        *self.path == *path
            && arguments.at(path).is_none()
            && (self.is_forced || self.parent.as_deref().is_none_or(stands))
    }

    pub(super) fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.text)
    }
}

fn single_text(value: &Value) -> Option<Box<str>> {
    match value {
        Value::String(text) => Some(text.as_str().into()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string().into_boxed_str()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether an object is sent for a constant in it.
fn has_constant(node: &Node, rules: &[FieldRule]) -> bool {
    let rule = node.rule.and_then(|index| rules.get(index));
    rule.is_some_and(|rule| rule.constant.is_some())
        || match &node.content {
            Content::Object(members) => members.iter().any(|member| has_constant(member, rules)),
            Content::Leaf | Content::Array(_) => false,
        }
}

/// `1.0` and `1e0` are `1`: one value must not be told from itself by how it is written.
fn whole(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_plain && text != "-0" {
        return Cow::Borrowed(text);
    }
    match text.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() < EXACT_MAX => {
            Cow::Owned(format!("{:.0}", if number == 0.0 { 0.0 } else { number }))
        }
        _ => Cow::Borrowed(text),
    }
}

/// Whether a schema has a single value at a path of exposed names.
pub(super) fn is_single(schema: &Value, path: &str) -> bool {
    let mut schema = schema;
    for name in path.split('.') {
        let Some(member) = schema.get("properties").and_then(|members| members.get(name)) else {
            return false;
        };
        schema = member;
    }
    let kinds = Kinds::of_schema(schema);
    kinds.has_none_of(Kinds::ARRAY) && kinds.has_none_of(Kinds::OBJECT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_one_text() {
        for (text, expected) in [
            ("1", "1"),
            ("-12", "-12"),
            ("1.0", "1"),
            ("1e2", "100"),
            ("10e-1", "1"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1.5", "1.5"),
            ("12345678901234567890", "12345678901234567890"),
            ("1e400", "1e400"),
            ("9007199254740993.0", "9007199254740993.0"),
        ] {
            assert_eq!(whole(text), expected, "{text}");
        }
    }
}
