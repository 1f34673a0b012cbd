//! A declarative file as a tree in which every value knows its line.
//!
//! TOML, YAML and JSON all become this tree, and serde reads the model out of it: one place that
//! knows lines, one kind of message, whatever the format. The depth of a tree is bounded by the
//! parser that made it, so the recursion here is bounded, too.

use std::fmt;

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Number;

/// Most faults reported of one entity.
const FAULTS_MAX: usize = 100;

/// A value and the line it begins at.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
    /// Was wrong and is reported: as if it were not there.
    Dropped,
}

/// A key of a table and the line it is on.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) line: u32,
    pub(super) text: String,
}

impl Node {
    /// The text under `key`, if this is a table that has one there.
    pub(super) fn text_at(&self, key: &str) -> Option<&str> {
        let Value::Table(entries) = &self.value else { return None };
        match entries.iter().find(|(found, _)| found.text == key) {
            Some((_, Node { value: Value::Text(text), .. })) => Some(text),
            _ => None,
        }
    }
}

/// What is wrong with a value, and where: the line of the innermost value concerned, and the way to
/// it from the entity.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: u32,
    message: String,
    /// The innermost first.
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Into the value of a key.
    Field(String),
    /// Into an item of a list.
    Item(usize),
    /// To a key itself, which nobody knows.
    Unknown(String),
}

impl Fault {
    pub(super) fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into(), steps: Vec::new() }
    }

    /// Sets the line, unless something further inside did.
    fn at(mut self, line: u32) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }

    fn below(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_inside = false;
        for step in self.steps.iter().rev() {
            match step {
                Step::Field(key) if is_inside => write!(formatter, ".{key}")?,
                Step::Field(key) => formatter.write_str(key)?,
                Step::Item(index) => write!(formatter, "[{index}]")?,
                Step::Unknown(_) => continue,
            }
            is_inside = true;
        }
        formatter.write_str(if is_inside { ": " } else { "" })?;
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(0, message.to_string())
    }

    /// Without the names that types have in the program.
    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expected.to_string();
        let is_table = ["struct ", "internally tagged enum ", "adjacently tagged enum "]
            .iter()
            .any(|kind| expected.starts_with(kind));
        let expected = if is_table { "a table" } else { &expected };
        Self::custom(format_args!("invalid type: {found}, expected {expected}"))
    }
}

/// Reads a `T` out of a node, or tells everything that is wrong with it.
///
/// Serde stops at the first fault. So what is faulty is dropped and the rest is read again, until
/// nothing else is wrong.
pub(super) fn read<T: de::DeserializeOwned>(node: &mut Node) -> Result<T, Vec<Fault>> {
    let mut faults = Vec::new();
    loop {
        match T::deserialize(&*node) {
            Ok(value) if faults.is_empty() => return Ok(value),
            Ok(_) => return Err(faults),
            Err(fault) => {
                let fault = fault.at(node.line);
                let is_dropped = drop_faulty(node, &fault.steps);
                if !misses_dropped(node, &fault) {
                    faults.push(fault);
                }
                if !is_dropped || faults.len() >= FAULTS_MAX {
                    return Err(faults);
                }
            }
        }
    }
}

/// Drops the innermost item of a list on the way to a fault, else the entity's field; tells whether
/// there was one.
fn drop_faulty(node: &mut Node, steps: &[Step]) -> bool {
    let is_item = |step: &Step| matches!(step, Step::Item(_));
    let last = steps.iter().position(is_item).or(steps.len().checked_sub(1));
    let Some(last) = last else { return false };
    let mut place = node;
    for step in steps[last..].iter().rev() {
        let next = match (step, &mut place.value) {
            (Step::Item(index), Value::List(items)) => items.get_mut(*index),
            (Step::Field(wanted) | Step::Unknown(wanted), Value::Table(entries)) => {
                let found = entries.iter_mut().find(|(key, _)| key.text == *wanted);
                found.map(|(_, node)| node)
            }
            _ => None,
        };
        let Some(next) = next else { return false };
        place = next;
    }
    place.value = Value::Dropped;
    true
}

/// Whether a fault says that something is missing because it was dropped.
fn misses_dropped(node: &Node, fault: &Fault) -> bool {
    let Value::Table(entries) = &node.value else { return false };
    let is_dropped = |(key, node): &(Key, Node)| {
        matches!(node.value, Value::Dropped)
            && fault.message == format!("missing field `{}`", key.text)
    };
    fault.steps.is_empty() && entries.iter().any(is_dropped)
}

impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Null | Value::Dropped => visitor.visit_unit(),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Number(number) => {
                if let Some(value) = number.as_u64() {
                    visitor.visit_u64(value)
                } else if let Some(value) = number.as_i64() {
                    visitor.visit_i64(value)
                } else {
                    visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
                }
            }
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(items) => visitor.visit_seq(ListAccess { items: items.iter().enumerate() }),
            Value::Table(entries) => {
                visitor.visit_map(TableAccess { entries: entries.iter(), current: None })
            }
        }
        .map_err(|fault: Fault| fault.at(self.line))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Text(text) => {
                let variant: de::value::StrDeserializer<'_, Fault> =
                    text.as_str().into_deserializer();
                visitor.visit_enum(variant).map_err(|fault: Fault| fault.at(self.line))
            }
            Value::Table(entries) => match entries.as_slice() {
                [(key, node)] => {
                    let read = visitor.visit_enum(VariantAccess { key, node });
                    read.map_err(|fault: Fault| fault.at(self.line))
                }
                _ => Err(Fault::new(
                    self.line,
                    format!("expected one key alone: one of {}", variants.join(", ")),
                )),
            },
            _ => Err(Fault::new(self.line, format!("expected one of {}", variants.join(", ")))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct ListAccess<'de> {
    items: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
}

impl<'de> de::SeqAccess<'de> for ListAccess<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let is_there = |(_, node): &(usize, &Node)| !matches!(node.value, Value::Dropped);
        let Some((index, node)) = self.items.by_ref().find(is_there) else { return Ok(None) };
        let read = seed.deserialize(node);
        read.map(Some).map_err(|fault| fault.at(node.line).below(Step::Item(index)))
    }
}

struct TableAccess<'de> {
    entries: std::slice::Iter<'de, (Key, Node)>,
    current: Option<&'de (Key, Node)>,
}

impl<'de> de::MapAccess<'de> for TableAccess<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.current = self.entries.find(|(_, node)| !matches!(node.value, Value::Dropped));
        let Some((key, _)) = self.current else { return Ok(None) };
        let text = de::value::BorrowedStrDeserializer::<Fault>::new(&key.text);
        let unknown = || Step::Unknown(key.text.clone());
        seed.deserialize(text).map(Some).map_err(|fault| fault.at(key.line).below(unknown()))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, node)) = self.current else {
            return Err(de::Error::custom("a value without a key"));
        };
        seed.deserialize(node)
            .map_err(|fault| fault.at(node.line).below(Step::Field(key.text.clone())))
    }
}

/// The one key of a table that is a variant with what it holds.
struct VariantAccess<'de> {
    key: &'de Key,
    node: &'de Node,
}

impl VariantAccess<'_> {
    fn within(&self) -> impl FnOnce(Fault) -> Fault {
        let (line, key) = (self.node.line, self.key.text.clone());
        move |fault| fault.at(line).below(Step::Field(key))
    }
}

impl<'de> de::EnumAccess<'de> for VariantAccess<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Fault> {
        let text = de::value::BorrowedStrDeserializer::<Fault>::new(&self.key.text);
        let unknown = || Step::Unknown(self.key.text.clone());
        let read = seed.deserialize(text);
        let variant = read.map_err(|fault| fault.at(self.key.line).below(unknown()))?;
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for VariantAccess<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        let text = format!("`{}` holds nothing: write it as a text", self.key.text);
        Err(Fault::new(self.key.line, text))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.node).map_err(self.within())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        de::Deserializer::deserialize_any(self.node, visitor).map_err(self.within())
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        de::Deserializer::deserialize_any(self.node, visitor).map_err(self.within())
    }
}
