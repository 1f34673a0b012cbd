//! What clients are told of a message: JSON Schema, and the rules of fields.
//!
//! The schema of a member is written out in full, types that hold themselves are cut where they
//! begin again. An operation has a budget of values and text, shared by its members; what is beyond
//! it is `{}`, so that every call that the service takes is one that the schema takes.

use serde_json::{Map, Value, json};

use super::model::{
    AttributeUse, ComplexType, ElementUse, Held, Holds, Model, Particle, SimpleType,
};
use super::notes::{Notes, cut, sentences};
use crate::mapping::{FieldRule, FieldType, Location, TEXT_MEMBER, TYPE_MEMBER, XmlName};

/// Most values of the schemas of one message.
const VALUES_MAX: usize = 4_000;
/// Longest texts of the schemas of one message.
const TEXT_BYTES_MAX: usize = 96 * 1024;
/// How deep objects are told. The schema of a field has a bound on its own depth, of which an
/// object takes up to five levels.
const LEVELS_MAX: usize = 10;
/// Most derived types whose members are told.
const DERIVED_TOLD_MAX: usize = 24;
/// Most derived types that are named.
const DERIVED_MAX: usize = 200;
/// Longest description of a member inside of another.
const INNER_CHARS_MAX: usize = 300;

/// A member of an object, and what it is on the wire.
#[derive(Debug, Clone)]
pub(super) struct Member<'m> {
    pub(super) name: &'m str,
    kind: MemberKind<'m>,
    is_required: bool,
    is_array: bool,
    /// Which members it is an alternative to.
    choice: String,
}

#[derive(Debug, Clone, Copy)]
enum MemberKind<'m> {
    Element(&'m ElementUse),
    Attribute(&'m AttributeUse),
    Text(&'m SimpleType),
    Any,
}

/// The members of an object of a type, in the order of its schema.
pub(super) fn members(held: &ComplexType) -> Vec<Member<'_>> {
    let mut found = Vec::new();
    for part in &held.content {
        collect(part, true, false, &mut found);
    }
    if let Some(text) = &held.text {
        found.push(Member::new(TEXT_MEMBER, MemberKind::Text(text), false));
    }
    let attributes = held.attributes.iter().filter(|attribute| attribute.constant().is_none());
    found.extend(attributes.map(|attribute| {
        Member::new(&attribute.member, MemberKind::Attribute(attribute), attribute.is_required)
    }));
    found
}

impl<'m> Member<'m> {
    fn new(name: &'m str, kind: MemberKind<'m>, is_required: bool) -> Self {
        Self { name, kind, is_required, is_array: false, choice: String::new() }
    }

    /// An element that is a member of a message: a part, a header, a bare body.
    pub(super) fn of_element(element: &'m ElementUse) -> Self {
        let is_required = element.is_required && !element.is_nillable;
        let is_array = element.most > 1;
        let kind = MemberKind::Element(element);
        Self { name: &element.member, kind, is_required, is_array, choice: String::new() }
    }
}

/// Adds the members of a particle. Its depth is bounded where it is read.
fn collect<'m>(part: &'m Particle, is_certain: bool, in_array: bool, out: &mut Vec<Member<'m>>) {
    let mut add = |mut member: Member<'m>| {
        member.is_array |= in_array;
        member.is_required &= is_certain && !in_array;
        match out.iter_mut().find(|known| known.name == member.name) {
            // Another way to say the same.
            Some(known) => {
                known.is_required = false;
                known.is_array |= member.is_array;
            }
            None => out.push(member),
        }
    };
    match part {
        Particle::Element(element) if element.constant().is_some() => {}
        Particle::Element(element) => add(Member::of_element(element)),
        Particle::Any { member, repeats, is_required } => {
            let mut any = Member::new(member, MemberKind::Any, *is_required);
            any.is_array = *repeats;
            add(any);
        }
        Particle::Sequence { repeats, content } => {
            content.iter().for_each(|part| collect(part, is_certain, in_array || *repeats, out));
        }
        Particle::Choice { repeats, is_required, content } => {
            let first = out.len();
            content.iter().for_each(|part| collect(part, false, in_array || *repeats, out));
            let rule = alternatives(content, *is_required, *repeats);
            for member in out.iter_mut().skip(first).filter(|member| member.choice.is_empty()) {
                member.choice.clone_from(&rule);
            }
        }
    }
}

/// `Give exactly one of: a; b and c`.
fn alternatives(content: &[Particle], is_required: bool, repeats: bool) -> String {
    const CHARS_MAX: usize = 300;
    let each = content.iter().map(|part| {
        let mut found = Vec::new();
        collect(part, false, false, &mut found);
        found.iter().map(|member| member.name).collect::<Vec<_>>().join(" and ")
    });
    let each: Vec<String> = each.filter(|names| !names.is_empty()).collect();
    if each.len() < 2 {
        return String::new();
    }
    let many = match (repeats, is_required) {
        (true, _) => "any number",
        (false, true) => "exactly one",
        (false, false) => "at most one",
    };
    cut(&format!("Give {many} of: {}", each.join("; ")), CHARS_MAX)
}

/// Whether values are checked against the schema, or it only tells what comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Input,
    Output,
}

/// Writes the rules of one message.
#[derive(Debug)]
pub(super) struct Teller<'m> {
    model: &'m Model,
    purpose: Purpose,
    values_left: usize,
    text_left: usize,
    /// The types that are being written.
    open: Vec<&'m XmlName>,
    pub(super) notes: Notes,
}

impl<'m> Teller<'m> {
    pub(super) fn new(model: &'m Model, purpose: Purpose) -> Self {
        let (open, notes) = (Vec::new(), Notes::default());
        Self { model, purpose, values_left: 0, text_left: 0, open, notes }
    }

    /// The rules of all members of a message. Each has its part of the budget, and what those
    /// before it left.
    pub(super) fn rules(&mut self, members: &[Member<'m>]) -> Vec<FieldRule> {
        let (mut values, mut text) = (VALUES_MAX, TEXT_BYTES_MAX);
        let mut rules = Vec::new();
        for (index, member) in members.iter().enumerate() {
            let left = members.len() - index;
            self.values_left = values / left;
            self.text_left = text / left;
            values -= self.values_left;
            text -= self.text_left;
            rules.push(self.rule(member));
            values += self.values_left;
            text += self.text_left;
        }
        rules
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
        let told = cut(&sentences([told.as_str(), &member.choice]), chars.min(2_000));
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
        let own = members(held);
        for member in &own {
            is_complete &= self.property(member, level, &mut properties);
            if member.is_required {
                required.push(member.name.to_owned());
            }
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
        own: &[Member<'m>],
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
            for mut member in members(other) {
                if own.iter().any(|known| known.name == member.name) {
                    continue;
                }
                more.push(member.name);
                member.is_required = false;
                if !properties.contains_key(member.name) {
                    is_complete &= self.property(&member, level, properties);
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
        let description = cut(
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

fn first(texts: [&String; 2]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).map_or("", String::as_str)
}

fn xml_text() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("string"))])
}

fn array_of(items: Map<String, Value>, least: u32, most: u32) -> Map<String, Value> {
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("array")),
        ("items".to_owned(), Value::Object(items)),
    ]);
    if least > 0 {
        schema.insert("minItems".to_owned(), json!(least));
    }
    if most != u32::MAX {
        schema.insert("maxItems".to_owned(), json!(most));
    }
    schema
}

fn or_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
    schema
}

fn insert_default(schema: &mut Map<String, Value>, simple: &SimpleType, default: Option<&str>) {
    let Some(value) = default.and_then(|text| simple.json_of(text)) else { return };
    let fits = match schema.get("enum") {
        Some(Value::Array(values)) => values.contains(&value),
        _ => true,
    };
    // Other words could refuse it; a default that does not fit is worse than none.
    let is_free = [
        "pattern",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]
    .iter()
    .all(|word| !schema.contains_key(*word));
    if fits && is_free {
        schema.insert("default".to_owned(), value);
    }
}

/// The one value that it may have, where it is there.
fn fix(schema: &mut Map<String, Value>, simple: &SimpleType, fixed: Option<&str>) {
    if let Some(value) = fixed.and_then(|text| simple.json_of(text)) {
        schema.insert("enum".to_owned(), json!([value]));
    }
}

/// Says in the rule itself what the schema says, where it has words for all of it.
fn is_plain(schema: &Map<String, Value>, rule: &mut FieldRule) -> bool {
    let field_type = match schema.get("type").and_then(Value::as_str) {
        Some("string") => FieldType::String,
        Some("integer") => FieldType::Integer,
        Some("number") => FieldType::Number,
        Some("boolean") => FieldType::Boolean,
        _ => return false,
    };
    let known = |word: &String| matches!(word.as_str(), "type" | "format" | "enum");
    if !schema.keys().all(known) {
        return false;
    }
    rule.field_type = Some(field_type);
    rule.format = schema.get("format").and_then(Value::as_str).map(str::to_owned);
    rule.allowed = schema.get("enum").and_then(Value::as_array).cloned();
    true
}
