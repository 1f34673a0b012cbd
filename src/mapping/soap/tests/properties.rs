//! Whatever the types and the values: what is written is read again, and no bytes do harm.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

const TYPES: usize = 4;

/// Text that XML holds and that has no meaning of its own.
fn any_text() -> impl Strategy<Value = String> {
    "[ -~\u{e9}\u{1f600}\t\n\r]{0,8}"
}

fn any_value() -> impl Strategy<Value = XmlValue> {
    let single = prop_oneof![
        Just(XmlValue::String),
        Just(XmlValue::Token),
        Just(XmlValue::Boolean),
        Just(XmlValue::Integer),
        Just(XmlValue::Decimal),
        Just(XmlValue::Base64),
        Just(XmlValue::Name),
    ];
    (single, prop::bool::weighted(0.2))
        .prop_map(|(value, is_list)| if is_list { XmlValue::List(Box::new(value)) } else { value })
}

/// How an element is, but for its name.
fn any_element() -> impl Strategy<Value = XmlElement> {
    let holds = prop_oneof![
        3 => any_value().prop_map(XmlContent::Value),
        2 => (0..TYPES).prop_map(|index| XmlContent::Type(type_name(index))),
        1 => Just(XmlContent::Any),
        1 => any_value().prop_map(|value| XmlContent::List(Box::new(holding("item", value)))),
        1 => any_value().prop_map(|value| XmlContent::Map(Box::new(holding("entry", value)))),
    ];
    (holds, any::<[bool; 3]>(), prop::option::of(Just("urn:other"))).prop_map(
        |(holds, [repeats, required, nillable], namespace)| XmlElement {
            name: XmlName::new(namespace.unwrap_or(SHOP), "e"),
            holds,
            repeats,
            required,
            nillable,
            ..element("e")
        },
    )
}

#[derive(Debug, Clone)]
enum Shape {
    Element(XmlElement),
    Sequence(Vec<Shape>),
    Choice(bool, Vec<Shape>),
    Any(bool),
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![9 => any_element().prop_map(Shape::Element), 1 => any::<bool>().prop_map(Shape::Any)];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let inner = prop::collection::vec(inner, 1..4);
        prop_oneof![
            inner.clone().prop_map(Shape::Sequence),
            (any::<bool>(), inner).prop_map(|(repeats, parts)| Shape::Choice(repeats, parts)),
        ]
    })
}

fn type_name(index: usize) -> XmlName {
    shop(&format!("T{index}"))
}

/// Names by their place, so that no two are the same.
#[derive(Default)]
struct Naming {
    count: usize,
    has_any: bool,
}

impl Naming {
    fn particle(&mut self, shape: &Shape, in_group: bool) -> Option<XmlParticle> {
        Some(match shape {
            Shape::Element(element) => {
                self.count += 1;
                let local = format!("e{}", self.count);
                let name = XmlName::new(&element.name.namespace, &local);
                one(XmlElement { name, member: local.into(), ..element.clone() })
            }
            Shape::Sequence(parts) if !in_group => {
                XmlParticle::Sequence(group(true, self.particles(parts, true)))
            }
            Shape::Choice(repeats, parts) if !in_group => {
                XmlParticle::Choice(group(*repeats, self.particles(parts, true)))
            }
            Shape::Any(repeats) if !in_group && !self.has_any => {
                self.has_any = true;
                XmlParticle::Any { member: "any".into(), repeats: *repeats }
            }
            _ => return None,
        })
    }

    fn particles(&mut self, shapes: &[Shape], in_group: bool) -> Vec<XmlParticle> {
        shapes.iter().filter_map(|shape| self.particle(shape, in_group)).collect()
    }
}

fn any_type() -> impl Strategy<Value = XmlType> {
    let attributes = prop::collection::vec(any_value(), 0..3);
    let inside = prop_oneof![
        1 => any_value().prop_map(|value| (Some(value), Vec::new())),
        4 => prop::collection::vec(any_shape(), 0..5).prop_map(|shapes| (None, shapes)),
    ];
    (attributes, inside).prop_map(|(attributes, (text, shapes))| XmlType {
        attributes: attributes
            .into_iter()
            .enumerate()
            .map(|(index, value)| attribute(&format!("a{index}"), &format!("a{index}"), value))
            .collect(),
        text,
        content: Naming::default().particles(&shapes, false),
        ..XmlType::default()
    })
}

/// The types `T0` to `T3`; the last two are derived from the one before them and may stand there.
fn any_types() -> impl Strategy<Value = XmlTypes> {
    prop::collection::vec(any_type(), TYPES).prop_map(|all| {
        let mut all: Vec<XmlType> = all;
        if let Some(first) = all.first_mut() {
            first.text = None;
        }
        for (index, declared) in all.iter_mut().enumerate().skip(2) {
            declared.base = Some(type_name(index - 1));
        }
        XmlTypes((0..TYPES).map(type_name).zip(all).collect())
    })
}

/// Draws values that fit the types, as far down as there is something to draw.
struct Drawing<'a> {
    types: &'a XmlTypes,
    choices: std::slice::Iter<'a, u8>,
    text: &'a str,
}

impl Drawing<'_> {
    fn next(&mut self) -> u8 {
        self.choices.next().copied().unwrap_or_default()
    }

    fn is_ended(&self) -> bool {
        self.choices.len() == 0
    }

    fn value(&mut self, value: &XmlValue) -> Value {
        let chosen = self.next();
        match value {
            XmlValue::String => json!(self.text),
            XmlValue::Token => json!(["", "2026-01-31", "a b"][usize::from(chosen) % 3]),
            XmlValue::Boolean => json!(chosen.is_multiple_of(2)),
            XmlValue::Integer => json!(i64::from(chosen) - 100),
            XmlValue::Decimal if chosen == 7 => json!("INF"),
            XmlValue::Decimal => serde_json::from_str(&format!("{chosen}.50")).unwrap(),
            XmlValue::Base64 => json!(["", "YQ==", "YWJj"][usize::from(chosen) % 3]),
            XmlValue::Name => json!(["x", "{urn:x}y", "{urn:a&b}z"][usize::from(chosen) % 3]),
            XmlValue::List(item) if matches!(**item, XmlValue::String | XmlValue::Token) => {
                json!(["a", "b&"])
            }
            XmlValue::List(item) => {
                let items = (0..chosen % 3).map(|_| self.value(item));
                items.filter(|item| item != "").collect()
            }
        }
    }

    fn held(&mut self, element: &XmlElement) -> Value {
        if element.nillable && self.next().is_multiple_of(4) {
            return Value::Null;
        }
        match &element.holds {
            XmlContent::Value(value) => self.value(value),
            XmlContent::Any => json!("x &amp; <i a=\"1\">y</i>"),
            XmlContent::List(item) => (0..self.next() % 3).map(|_| self.held(item)).collect(),
            XmlContent::Map(item) => {
                let names = (0..self.next() % 3).map(|index| format!("k{index}"));
                Value::Object(names.map(|name| (name, self.held(item))).collect())
            }
            XmlContent::Type(declared) => {
                let derived: Vec<&XmlName> = self.derived(declared);
                let chosen = usize::from(self.next()) % (derived.len() + 1);
                match derived.get(chosen) {
                    None => self.object(declared, false),
                    Some(name) => {
                        let name: XmlName = (*name).clone();
                        self.object(&name, true)
                    }
                }
            }
        }
    }

    fn derived(&self, declared: &XmlName) -> Vec<&'static XmlName> {
        let mut found = Vec::new();
        for name in self.types.0.keys() {
            let mut base = self.types.0.get(name).and_then(|plan| plan.base.as_ref());
            while let Some(at) = base {
                if at == declared {
                    found.push(&*Box::leak(Box::new(name.clone())));
                }
                base = self.types.0.get(at).and_then(|plan| plan.base.as_ref());
            }
        }
        found
    }

    fn object(&mut self, name: &XmlName, is_named: bool) -> Value {
        let declared = self.types.0[name].clone();
        let is_alone = declared.attributes.is_empty() && self.derived(name).is_empty();
        if let (Some(text), true, false) = (&declared.text, is_alone, is_named) {
            return self.value(text);
        }
        let mut object = Map::new();
        if is_named {
            object.insert("xsi_type".to_owned(), json!(name.to_string()));
        }
        for attribute in &declared.attributes {
            if self.next().is_multiple_of(2) {
                object.insert(attribute.member.to_string(), self.value(&attribute.value));
            }
        }
        if let Some(text) = &declared.text {
            object.insert("text".to_owned(), self.value(text));
        }
        for particle in &declared.content {
            self.particle(particle, &mut object);
        }
        Value::Object(object)
    }

    fn particle(&mut self, particle: &XmlParticle, object: &mut Map<String, Value>) {
        match particle {
            XmlParticle::Element(element) => self.element(element, object, true),
            XmlParticle::Any { repeats, .. } => {
                let text = json!("<x xmlns=\"urn:free\">1</x>");
                if self.next().is_multiple_of(2) {
                    let value = if *repeats { json!([text, text]) } else { text };
                    object.insert("any".to_owned(), value);
                }
            }
            XmlParticle::Choice(group) if !group.repeats => {
                let chosen = usize::from(self.next()) % group.content.len().max(1);
                for (index, part) in group.content.iter().enumerate() {
                    let XmlParticle::Element(element) = part else { continue };
                    self.element(element, object, index == chosen);
                }
            }
            XmlParticle::Choice(group) => {
                for part in &group.content {
                    let XmlParticle::Element(element) = part else { continue };
                    self.element(&many(element.clone()), object, true);
                }
            }
            XmlParticle::Sequence(group) => {
                let rounds = self.next() % 3;
                for part in &group.content {
                    let XmlParticle::Element(element) = part else { continue };
                    let count = if element.repeats { rounds + rounds / 2 } else { rounds };
                    let items: Value = (0..count).map(|_| self.held(element)).collect();
                    object.insert(element.member.to_string(), items);
                }
            }
        }
    }

    fn element(&mut self, element: &XmlElement, object: &mut Map<String, Value>, is_wanted: bool) {
        let is_wanted = is_wanted && !self.is_ended();
        let value = if element.repeats {
            let count = if is_wanted { self.next() % 3 } else { 0 };
            (0..count).map(|_| self.held(element)).collect()
        } else if is_wanted && (element.required || self.next().is_multiple_of(2)) {
            self.held(element)
        } else {
            return;
        };
        object.insert(element.member.to_string(), value);
    }
}

/// As what is written and read again: what must stand there and may be nil, is nil where the call
/// has nothing.
fn filled(types: &XmlTypes) -> XmlTypes {
    fn relaxed(particles: &mut [XmlParticle]) {
        for particle in particles {
            match particle {
                XmlParticle::Element(element) => element.required &= !element.nillable,
                XmlParticle::Sequence(group) | XmlParticle::Choice(group) => {
                    relaxed(&mut group.content);
                }
                XmlParticle::Any { .. } => {}
            }
        }
    }
    let mut types = types.clone();
    types.0.values_mut().for_each(|declared| relaxed(&mut declared.content));
    types
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_again(
        types in any_types(),
        choices in prop::collection::vec(any::<u8>(), 0..200),
        text in any_text(),
    ) {
        let types = filled(&types);
        let plan = compiled(&types, &operation(SoapBody::Wrapped(typed("order", "T0"))));
        let mut drawing = Drawing { types: &types, choices: choices.iter(), text: &text };
        let value = drawing.object(&type_name(0), false);
        let envelope = written(&plan, &value.to_string());
        let (json, dropped) = read_with(&plan, &envelope, &Attachments::default());
        let read: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &value, "{}", envelope);
        prop_assert_eq!(dropped, 0);
    }

    #[test]
    fn no_bytes_do_harm(
        types in any_types(),
        cut in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..6),
        choices in prop::collection::vec(any::<u8>(), 0..60),
        json in crate::json::any_json(),
    ) {
        let plan = compiled(&types, &operation(SoapBody::Wrapped(typed("order", "T0"))));
        let mut drawing = Drawing { types: &types, choices: choices.iter(), text: "x" };
        let value = drawing.object(&type_name(0), false);
        if let Ok(checked) = guard(value.to_string().as_bytes())
            && let Ok(mut envelope) = plan.write(checked.root())
        {
            let at = cut.index(envelope.len());
            envelope.splice(at..at, bytes);
            let text = String::from_utf8_lossy(&envelope);
            if let Ok(Answer::Message(message)) = plan.read(&text, &Attachments::default()) {
                prop_assert!(guard(&message.json).is_ok());
            }
        }
        // And no arguments either.
        let text = json.to_string();
        if let Ok(checked) = guard(text.as_bytes()) {
            let _ = plan.write(checked.root());
        }
    }
}
