//! What clients are told of a message: JSON Schema, and the rules of fields.
//!
//! The schema of a member is written out in full, types that hold themselves are cut where they
//! begin again. An operation has a budget of values and text, shared by its members; what is beyond
//! it is `{}`, so that every call that the service takes is one that the schema takes.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::super::clean;
use super::members::{Member, MemberKind, MemberList, members};
use super::model::{ComplexType, ElementUse, Held, Holds, Model, SimpleType};
use super::notes::{Notes, sentences};
use super::words::{array_of, first, fix, insert_default, is_plain, or_null, xml_text};
use crate::mapping::{FieldRule, Location, TYPE_MEMBER, XmlName};

/// Most values of the schemas of one message. Models have to read them, and a service may have
/// thousands of messages.
const VALUES_MAX: usize = 1_200;
/// Longest texts of the schemas of one message.
const TEXT_BYTES_MAX: usize = 48 * 1024;
/// What an answer may have of both: a half.
const OUTPUT_SHARE: usize = 2;
/// How deep objects are told. The schema of a field has a bound on its own depth, of which an
/// object takes up to five levels.
const LEVELS_MAX: usize = 10;
/// Most derived types whose members are told.
const DERIVED_TOLD_MAX: usize = 24;
/// Most derived types that are named.
const DERIVED_MAX: usize = 200;
/// Longest description of a member inside of another.
const INNER_CHARS_MAX: usize = 300;

/// Whether values are checked against the schema, or it only tells what comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Input,
    Output,
}

/// Writes the rules of one message.
#[derive(Debug)]
pub(super) struct RuleBuilder<'m> {
    model: &'m Model,
    purpose: Purpose,
    values_left: usize,
    text_left: usize,
    /// The types that are being written.
    open: Vec<&'m XmlName>,
    pub(super) notes: Notes,
}

impl<'m> RuleBuilder<'m> {
    pub(super) fn new(model: &'m Model, purpose: Purpose) -> Self {
        let (open, notes) = (Vec::new(), Notes::default());
        Self { model, purpose, values_left: 0, text_left: 0, open, notes }
    }

    /// The rules of all members of a message, in their order.
    pub(super) fn rules(&mut self, members: &[Member<'m>]) -> Vec<FieldRule> {
        let share = if self.purpose == Purpose::Output { OUTPUT_SHARE } else { 1 };
        (self.values_left, self.text_left) = (VALUES_MAX / share, TEXT_BYTES_MAX / share);
        let mut rules = vec![FieldRule::default(); members.len()];
        let (nested, plain): (Vec<usize>, Vec<usize>) = (0..members.len())
            .partition(|index| members.get(*index).is_some_and(|member| self.is_nested(member)));
        let mut rest = nested.len();
        for index in plain.into_iter().chain(nested) {
            let (Some(member), Some(rule)) = (members.get(index), rules.get_mut(index)) else {
                continue;
            };
            let is_nested = self.is_nested(member);
            let aside = if is_nested { self.set_aside(rest) } else { (0, 0) };
            *rule = self.rule(member);
            self.give_back(aside);
            rest -= usize::from(is_nested);
        }
        rules
    }

    fn is_nested(&self, member: &Member<'m>) -> bool {
        let MemberKind::Element(element) = member.kind else { return false };
        matches!(self.model.held(&element.holds), Held::Object(..))
    }

    /// Leaves one of `shares` parts of the budget. What is single is told before, so that objects
    /// share what is left, each with what those before it did not need.
    fn set_aside(&mut self, shares: usize) -> (usize, usize) {
        let shares = shares.max(1);
        let (values, text) = (self.values_left / shares, self.text_left / shares);
        let aside = (self.values_left - values, self.text_left - text);
        (self.values_left, self.text_left) = (values, text);
        aside
    }

    fn give_back(&mut self, aside: (usize, usize)) {
        self.values_left += aside.0;
        self.text_left += aside.1;
    }

    fn rule(&mut self, member: &Member<'m>) -> FieldRule {
        let mut rule = FieldRule::new(member.name, Location::Body);
        let (mut schema, description) = self.member(member, 0);
        rule.required = member.is_required && self.purpose == Purpose::Input;
        rule.description = Some(description).filter(|text| !text.is_empty());
        let is_nillable =
            matches!(member.kind, MemberKind::Element(element) if element.is_nillable);
        rule.nullable = is_nillable && self.purpose == Purpose::Input;
        if let Some(default) = schema.remove("default") {
            rule.default = Some(default).filter(|_| self.purpose == Purpose::Input);
        }
        if !is_plain(&schema, &mut rule) {
            rule.schema = Some(Value::Object(schema));
        }
        rule
    }

    /// The schema of a member and what is said of it.
    fn member(&mut self, member: &Member<'m>, level: usize) -> (Map<String, Value>, String) {
        let (schema, told) = match member.kind {
            MemberKind::Element(element) => self.element(element, member.is_array, level),
            MemberKind::Attribute(attribute) => {
                let mut schema = self.simple(&attribute.simple);
                let default = attribute.default.as_deref();
                insert_default(&mut schema, &attribute.simple, default);
                fix(&mut schema, &attribute.simple, attribute.fixed.as_deref());
                let simple = &attribute.simple;
                let texts = [&attribute.documentation, &simple.documentation];
                (schema, sentences([first(texts), &simple.hint]))
            }
            MemberKind::Text(simple) => (self.simple(simple), simple.hint.clone()),
            MemberKind::Any => {
                let schema = xml_text();
                let schema = if member.is_array { array_of(schema, 0, u32::MAX) } else { schema };
                (schema, "XML text: one element of any kind".to_owned())
            }
        };
        let chars = if level == 0 { usize::MAX } else { INNER_CHARS_MAX };
        let told = clean::line(&sentences([told.as_str(), &member.group]), chars.min(2_000));
        (schema, told)
    }

    fn element(
        &mut self,
        element: &'m ElementUse,
        is_array: bool,
        level: usize,
    ) -> (Map<String, Value>, String) {
        let (mut schema, inner, hint) = self.held(&element.holds, level);
        if let Held::Value(simple) = self.model.held(&element.holds) {
            if !is_array {
                insert_default(&mut schema, simple, element.default.as_deref());
            }
            fix(&mut schema, simple, element.fixed.as_deref());
        }
        if element.is_nillable {
            schema = or_null(schema);
        }
        let (least, most) =
            if element.most > 1 { (element.least, element.most) } else { (0, u32::MAX) };
        let schema = if is_array { array_of(schema, least, most) } else { schema };
        let texts = sentences([first([&element.documentation, &inner]), &hint]);
        (schema, texts)
    }

    /// The schema of what an element holds, what its type says of itself, and what has to be known
    /// to write it.
    fn held(&mut self, holds: &'m Holds, level: usize) -> (Map<String, Value>, String, String) {
        match self.model.held(holds) {
            Held::Value(simple) => {
                (self.simple(simple), simple.documentation.clone(), simple.hint.clone())
            }
            Held::Any => {
                self.take(2, 0);
                (xml_text(), String::new(), "XML text: the content of the element".to_owned())
            }
            Held::Object(name, held) => {
                let doc = held.documentation.clone();
                if self.open.contains(&name) {
                    self.notes.add(format!(
                        "the type {name} holds itself; it is told once and left open further down"
                    ));
                    let hint = format!("The same type again: {}", name.local);
                    return (Map::new(), doc, hint);
                }
                if level >= LEVELS_MAX || !self.take(4, 0) {
                    self.notes.add(format!(
                        "the type {name} is too large or too deep to be told everywhere in full"
                    ));
                    return (Map::new(), doc, format!("An object of the type {}", name.local));
                }
                self.open.push(name);
                let schema = self.object(name, held, level + 1);
                self.open.pop();
                (schema, doc, String::new())
            }
        }
    }

    fn object(
        &mut self,
        name: &'m XmlName,
        held: &'m ComplexType,
        level: usize,
    ) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut is_complete = true;
        let most = self.values_left / 4 + 1;
        let own = members(held, most);
        is_complete &= !own.is_full();
        let required_names = own.list.iter().filter(|member| member.is_required);
        required.extend(required_names.map(|member| member.name.to_owned()));
        let (nested, plain): (Vec<_>, Vec<_>) =
            own.list.iter().partition(|member| self.is_nested(member));
        for member in plain {
            is_complete &= self.property(member, level, &mut properties);
        }
        for (index, member) in nested.iter().enumerate() {
            let aside = self.set_aside(nested.len() - index);
            is_complete &= self.property(member, level, &mut properties);
            self.give_back(aside);
        }
        is_complete &= self.derived(name, held, &own, level, &mut properties, &mut required);
        let mut schema = Map::from_iter([("type".to_owned(), json!("object"))]);
        schema.insert("properties".to_owned(), Value::Object(properties));
        if self.purpose == Purpose::Input {
            if !required.is_empty() {
                schema.insert("required".to_owned(), json!(required));
            }
            // What no element is made of would be lost without a word.
            if is_complete {
                schema.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        schema
    }

    /// Adds a property; says whether there was room for it.
    fn property(
        &mut self,
        member: &Member<'m>,
        level: usize,
        properties: &mut Map<String, Value>,
    ) -> bool {
        if !self.take(5, member.name.len() + 20) {
            return false;
        }
        let (mut schema, told) = self.member(member, level);
        if !told.is_empty() && self.take(2, told.len()) {
            schema.insert("description".to_owned(), json!(told));
        }
        properties.insert(member.name.to_owned(), Value::Object(schema));
        true
    }

    /// Adds what the types have besides that may stand in the place of this one.
    fn derived(
        &mut self,
        name: &'m XmlName,
        held: &'m ComplexType,
        own: &MemberList<'m>,
        level: usize,
        properties: &mut Map<String, Value>,
        required: &mut Vec<String>,
    ) -> bool {
        let model = self.model;
        let all = model.derived(name, DERIVED_MAX);
        if all.is_empty() {
            return true;
        }
        let mut names = Vec::new();
        let mut told = Vec::new();
        let mut added: HashMap<&str, MemberKind<'m>> = HashMap::new();
        let mut is_complete = all.len() <= DERIVED_TOLD_MAX;
        for derived in &all {
            let Some(other) = model.types.get(*derived) else { continue };
            if other.is_any {
                continue;
            }
            if !other.is_abstract {
                names.push(json!(derived.to_string()));
            }
            if told.len() >= DERIVED_TOLD_MAX {
                continue;
            }
            let mut more = Vec::new();
            let most = own.list.len() + self.values_left / 4 + 1;
            for mut member in members(other, most).list {
                if own.has(member.name) {
                    continue;
                }
                more.push(member.name);
                member.is_required = false;
                let told_before = added.insert(member.name, member.kind);
                if told_before.is_none() {
                    is_complete &= self.property(&member, level, properties);
                } else if told_before.is_some_and(|kind| kind.is_same(member.kind)) {
                    // Both have it from one type.
                } else if let Some(Value::Object(known)) = properties.get_mut(member.name) {
                    // Two types may mean different things by it.
                    let description = known.remove("description");
                    known.clear();
                    known.extend(description.map(|text| ("description".to_owned(), text)));
                }
            }
            if !more.is_empty() {
                told.push(format!("{} has {}", derived.local, more.join(", ")));
            }
        }
        if !held.is_abstract {
            names.insert(0, json!(name.to_string()));
        } else if !names.is_empty() {
            required.push(TYPE_MEMBER.to_owned());
        }
        let description = clean::line(
            &sentences(
                std::iter::once("The type, where it is another than declared")
                    .chain(told.iter().map(String::as_str)),
            ),
            DERIVED_TOLD_MAX * 40,
        );
        let bytes: usize = names.iter().map(|name| name.to_string().len()).sum();
        let mut schema = json!({"type": "string", "description": description});
        if self.take(names.len() + 6, bytes + description.len())
            && let Value::Object(words) = &mut schema
        {
            words.insert("enum".to_owned(), Value::Array(names));
        }
        properties.insert(TYPE_MEMBER.to_owned(), schema);
        is_complete
    }

    fn simple(&mut self, simple: &SimpleType) -> Map<String, Value> {
        let mut schema = simple.schema.clone();
        let bytes: usize = match schema.get("enum") {
            Some(Value::Array(values)) => values.iter().map(|value| value.to_string().len()).sum(),
            _ => 0,
        };
        if !self.take(simple.size, bytes) {
            schema.remove("enum");
        }
        schema
    }

    /// Takes from the budget, where there is as much left.
    fn take(&mut self, values: usize, bytes: usize) -> bool {
        if self.values_left < values || self.text_left < bytes {
            return false;
        }
        self.values_left -= values;
        self.text_left -= bytes;
        true
    }
}
