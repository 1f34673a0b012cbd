//! Simple types: what is written, and what JSON Schema can say of it.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::super::clean;
use super::model::SimpleType;
use super::names::{QName, SERIALIZATION, SOAP_ENCODING, SOAP_ENCODING_1_2, XSD};
use super::notes::sentences;
use super::pattern;
use super::schemas::{Kind, Place};
use super::types::{Builder, DOCUMENTATION_CHARS_MAX, documentation};
use crate::mapping::XmlValue;

/// How many types a simple one may be derived over.
const DERIVATIONS_MAX: usize = 32;
/// Most values of the enumerations of all types together.
const VALUES_TOGETHER_MAX: usize = 1_000_000;
/// Most values of an enumeration that are told; of more, none is.
const VALUES_MAX: usize = 1_000;

impl SimpleType {
    pub(super) fn new(value: XmlValue, schema: Value) -> Self {
        let schema = match schema {
            Value::Object(words) => words,
            _ => Map::new(),
        };
        let (hint, documentation) = (String::new(), String::new());
        Self { value, schema, is_hex: false, hint, documentation, size: 0 }.sized()
    }

    /// Text without anything more to say.
    pub(super) fn text() -> Self {
        Self::new(XmlValue::String, json!({"type": "string"}))
    }

    fn sized(mut self) -> Self {
        let values = |value: &Value| match value {
            Value::Array(items) => items.len() + 2,
            Value::Object(words) => words.len() * 2 + 1,
            _ => 2,
        };
        self.size = 1 + self.schema.values().map(values).sum::<usize>();
        self
    }

    /// Whether a value has the kind of its schema; enumerations and defaults are texts in XSD.
    pub(super) fn json_of(&self, text: &str) -> Option<Value> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        match &self.value {
            XmlValue::String | XmlValue::Token | XmlValue::Base64 => Some(json!(text)),
            XmlValue::Boolean => match text {
                "true" | "1" => Some(json!(true)),
                "false" | "0" => Some(json!(false)),
                _ => None,
            },
            XmlValue::Integer | XmlValue::Decimal => number(text),
            XmlValue::Name | XmlValue::List(_) => None,
        }
    }
}

/// A number of XSD as one of JSON; nothing where JSON has no such one.
fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let parsed = digits.parse::<i64>().map(|value| json!(value));
    let parsed = parsed.or_else(|_| digits.parse::<u64>().map(|value| json!(value)));
    let is_plain = |text: &str| text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte));
    parsed.ok().or_else(|| {
        let value = digits.parse::<f64>().ok().filter(|_| is_plain(digits))?;
        serde_json::Number::from_f64(value).map(Value::Number)
    })
}

/// A type of XML Schema itself, or of what is known without a schema. Nothing where there is none
/// of this name.
pub(super) fn builtin(name: QName<'_>) -> Option<SimpleType> {
    let is_known = [XSD, SOAP_ENCODING, SOAP_ENCODING_1_2, SERIALIZATION].contains(&name.namespace);
    if !is_known {
        return None;
    }
    if name.namespace == SERIALIZATION {
        match name.local {
            "guid" => {
                let schema = json!({"type": "string", "format": "uuid"});
                return Some(SimpleType::new(XmlValue::Token, schema));
            }
            "char" => return builtin(QName::new(XSD, "unsignedShort")),
            _ => {}
        }
    }
    let of = |value, schema| Some(SimpleType::new(value, schema));
    let token = |schema| of(XmlValue::Token, schema);
    let integer = |schema| of(XmlValue::Integer, schema);
    let between = |least: i64, most: i64| {
        let words = json!({"type": "integer", "minimum": least, "maximum": most});
        of(XmlValue::Integer, words)
    };
    match name.local {
        "string" | "normalizedString" | "anySimpleType" | "anyAtomicType" => {
            Some(SimpleType::text())
        }
        "token" | "language" | "Name" | "NCName" | "NMTOKEN" | "ID" | "IDREF" | "ENTITY"
        | "NOTATION" | "gYear" | "gYearMonth" | "gMonth" | "gMonthDay" | "gDay" => {
            token(json!({"type": "string"}))
        }
        "dateTime" | "dateTimeStamp" => token(json!({"type": "string", "format": "date-time"})),
        "date" => token(json!({"type": "string", "format": "date"})),
        "time" => token(json!({"type": "string", "format": "time"})),
        "duration" | "dayTimeDuration" | "yearMonthDuration" => {
            token(json!({"type": "string", "format": "duration"}))
        }
        "anyURI" => token(json!({"type": "string", "format": "uri"})),
        "hexBinary" => {
            let schema = json!({"type": "string", "pattern": "^([0-9a-fA-F]{2})*$"});
            Some(SimpleType { is_hex: true, ..SimpleType::new(XmlValue::Token, schema) })
        }
        "base64Binary" | "base64" => {
            of(XmlValue::Base64, json!({"type": "string", "contentEncoding": "base64"}))
        }
        "boolean" => of(XmlValue::Boolean, json!({"type": "boolean"})),
        "decimal" | "float" | "double" => of(XmlValue::Decimal, json!({"type": "number"})),
        "integer" => integer(json!({"type": "integer"})),
        "int" => integer(json!({"type": "integer", "format": "int32"})),
        "long" => integer(json!({"type": "integer", "format": "int64"})),
        "short" => between(-32_768, 32_767),
        "byte" => between(-128, 127),
        "unsignedByte" => between(0, 255),
        "unsignedShort" => between(0, 65_535),
        "unsignedInt" => between(0, 4_294_967_295),
        "unsignedLong" | "nonNegativeInteger" => integer(json!({"type": "integer", "minimum": 0})),
        "positiveInteger" => integer(json!({"type": "integer", "minimum": 1})),
        "nonPositiveInteger" => integer(json!({"type": "integer", "maximum": 0})),
        "negativeInteger" => integer(json!({"type": "integer", "maximum": -1})),
        "QName" => {
            let mut name = SimpleType::new(XmlValue::Name, json!({"type": "string"}));
            "A qualified name, written `{namespace}name`".clone_into(&mut name.hint);
            Some(name)
        }
        "NMTOKENS" | "IDREFS" | "ENTITIES" => Some(list_of(&SimpleType::text())),
        _ => None,
    }
}

fn list_of(item: &SimpleType) -> SimpleType {
    // A list has no lists in it, and no item has blanks.
    let of = match &item.value {
        XmlValue::List(_) | XmlValue::Token => &XmlValue::String,
        value => value,
    };
    let items = match &item.value {
        XmlValue::List(_) => json!({"type": "string"}),
        _ => Value::Object(item.schema.clone()),
    };
    let schema = json!({"type": "array", "items": items});
    let mut list = SimpleType::new(XmlValue::List(Box::new(of.clone())), schema);
    list.size += item.size;
    list.hint.clone_from(&item.hint);
    list
}

impl<'t> Builder<'_, 't> {
    /// A simple type by its name: one of the schemas, or one that is known.
    pub(super) fn simple_named(&mut self, name: QName<'t>, from: Place<'t>) -> Rc<SimpleType> {
        self.simple_within(name, from, DERIVATIONS_MAX)
    }

    /// One that stands where it is used.
    pub(super) fn simple_inline(&mut self, place: Place<'t>) -> Rc<SimpleType> {
        Rc::new(self.simple_type(place, DERIVATIONS_MAX))
    }

    fn simple_within(&mut self, name: QName<'t>, from: Place<'t>, left: usize) -> Rc<SimpleType> {
        let found = self.schemas.find_from(Kind::Type, name, from);
        let found = found.filter(|place| place.element.local() == "simpleType");
        let Some(place) = found else {
            return Rc::new(builtin(name).unwrap_or_else(|| {
                self.notes.add(format!("the type {name} is not described; it is taken as text"));
                SimpleType::text()
            }));
        };
        if let Some(known) = self.simple.get(&place) {
            return known.clone();
        }
        let left = left.checked_sub(1).filter(|_| self.simple_values < VALUES_TOGETHER_MAX);
        let Some(left) = left.filter(|_| self.simple_open.insert(place)) else {
            self.notes.add(format!("the type {name} leads to itself or too far; it is text"));
            return Rc::new(SimpleType::text());
        };
        let simple = Rc::new(self.simple_type(place, left));
        self.simple_open.remove(&place);
        self.simple_values += simple.size;
        self.simple.insert(place, simple.clone());
        simple
    }

    fn simple_type(&mut self, place: Place<'t>, left: usize) -> SimpleType {
        let mut simple = if let Some(restriction) = place.child("restriction") {
            let base = self.base_of(restriction, "base", left);
            restricted(&base, restriction)
        } else if let Some(list) = place.child("list") {
            list_of(&self.base_of(list, "itemType", left))
        } else if let Some(union) = place.child("union") {
            self.union(union, left)
        } else {
            SimpleType::text()
        };
        let told = documentation(place.element, DOCUMENTATION_CHARS_MAX);
        if !told.is_empty() {
            simple.documentation = told;
        }
        simple
    }

    /// The type that an attribute names or that stands inside.
    fn base_of(&mut self, place: Place<'t>, key: &str, left: usize) -> Rc<SimpleType> {
        if let Some(inside) = place.child("simpleType") {
            let Some(left) = left.checked_sub(1) else { return Rc::new(SimpleType::text()) };
            return Rc::new(self.simple_type(inside, left));
        }
        let name = place.element.attribute(key);
        match name.and_then(|value| self.schemas.resolve(place, value)) {
            Some(name) => self.simple_within(name, place, left),
            None => Rc::new(SimpleType::text()),
        }
    }

    fn union(&mut self, place: Place<'t>, left: usize) -> SimpleType {
        let mut members: Vec<Rc<SimpleType>> = Vec::new();
        let named = place.element.attribute("memberTypes").unwrap_or_default();
        for name in named.split_ascii_whitespace() {
            if let Some(name) = self.schemas.resolve(place, name) {
                members.push(self.simple_within(name, place, left));
            }
        }
        for inside in place.children().filter(|child| child.element.local() == "simpleType") {
            let Some(left) = left.checked_sub(1) else { break };
            members.push(Rc::new(self.simple_type(inside, left)));
        }
        let Some(first) = members.first() else { return SimpleType::text() };
        let is_same = members.iter().all(|member| member.value == first.value);
        let value = if is_same { first.value.clone() } else { XmlValue::String };
        if matches!(value, XmlValue::List(_) | XmlValue::Name) {
            return SimpleType { documentation: String::new(), ..(**first).clone() };
        }
        let kind = if is_same { first.schema.get("type").cloned() } else { None };
        let mut schema = json!({"type": kind.unwrap_or_else(|| json!("string"))});
        let listed = members.iter().map(|member| member.schema.get("enum")?.as_array());
        if let Some(lists) = listed.collect::<Option<Vec<_>>>()
            && let Value::Object(words) = &mut schema
        {
            let mut values: Vec<Value> = Vec::new();
            for value in lists.into_iter().flatten() {
                // Texts where the members differ: what is written is text.
                let value = match value {
                    Value::String(_) => value.clone(),
                    other if is_same => other.clone(),
                    other => json!(other.to_string()),
                };
                if values.len() <= VALUES_MAX && !values.contains(&value) {
                    values.push(value);
                }
            }
            words.insert("enum".to_owned(), Value::Array(values));
        }
        SimpleType::new(value, schema)
    }
}

/// A type with the facets of a restriction.
pub(super) fn restricted(base: &SimpleType, restriction: Place<'_>) -> SimpleType {
    let mut simple = base.clone();
    simple.documentation.clear();
    let mut values = Vec::new();
    let mut patterns = Vec::new();
    let mut hints = Vec::new();
    let is_list = matches!(simple.value, XmlValue::List(_));
    let is_text = matches!(simple.value, XmlValue::String | XmlValue::Token);
    let is_number = matches!(simple.value, XmlValue::Integer | XmlValue::Decimal);
    for facet in restriction.children() {
        let Some(given) = facet.element.attribute("value") else { continue };
        let word = match facet.element.local() {
            "enumeration" => {
                values.push(given);
                continue;
            }
            "pattern" => {
                patterns.push(given);
                continue;
            }
            "length" => {
                for word in
                    if is_list { ["minItems", "maxItems"] } else { ["minLength", "maxLength"] }
                {
                    if is_list || is_text {
                        set_number(&mut simple, word, given);
                    }
                }
                continue;
            }
            "minLength" if is_list => "minItems",
            "maxLength" if is_list => "maxItems",
            "minLength" if is_text => "minLength",
            "maxLength" if is_text => "maxLength",
            "minInclusive" if is_number => "minimum",
            "maxInclusive" if is_number => "maximum",
            "minExclusive" if is_number => "exclusiveMinimum",
            "maxExclusive" if is_number => "exclusiveMaximum",
            "minInclusive" => {
                hints.push(format!("At least {given}"));
                continue;
            }
            "maxInclusive" => {
                hints.push(format!("At most {given}"));
                continue;
            }
            "fractionDigits" => {
                if given.trim() != "0" {
                    hints.push(format!("At most {given} decimals"));
                } else if simple.value == XmlValue::Decimal {
                    hints.push("No decimals".to_owned());
                }
                continue;
            }
            "whiteSpace" => {
                if given.trim() == "collapse" && simple.value == XmlValue::String {
                    simple.value = XmlValue::Token;
                }
                continue;
            }
            "totalDigits" => {
                hints.push(format!("At most {given} digits"));
                continue;
            }
            _ => continue,
        };
        set_number(&mut simple, word, given);
    }
    set_values(&mut simple, &values, &mut hints);
    set_patterns(&mut simple, &patterns, &mut hints);
    let hints: Vec<String> = hints.iter().map(|hint| clean::line(hint, 200)).collect();
    let told = std::iter::once(base.hint.as_str()).chain(hints.iter().map(String::as_str));
    simple.hint = clean::line(&sentences(told), DOCUMENTATION_CHARS_MAX);
    simple.sized()
}

fn set_number(simple: &mut SimpleType, word: &str, given: &str) {
    let Some(mut value) = number(given.trim()) else { return };
    let counts = word.ends_with("Length") || word.ends_with("Items");
    if counts {
        let Some(count) = value.as_u64() else { return };
        // XML Schema Part 2, section 4.3.1: of octets, where it is written in two digits each.
        value = json!(if simple.is_hex { count.saturating_mul(2) } else { count });
    }
    simple.schema.insert(word.to_owned(), value);
}

fn set_values(simple: &mut SimpleType, values: &[&str], hints: &mut Vec<String>) {
    if values.is_empty() {
        return;
    }
    if values.len() > VALUES_MAX {
        hints.push(format!("One of {} values, such as {}", values.len(), values[..5].join(", ")));
        return;
    }
    let known: Option<Vec<Value>> = values.iter().map(|value| simple.json_of(value)).collect();
    let Some(mut known) = known else { return };
    let mut seen = std::collections::HashSet::new();
    known.retain(|value| seen.insert(value.to_string()));
    simple.schema.insert("enum".to_owned(), Value::Array(known));
}

/// Those of one restriction are alternatives (XML Schema Part 2, section 4.3.4.3). Of several
/// restrictions the last is told.
fn set_patterns(simple: &mut SimpleType, patterns: &[&str], hints: &mut Vec<String>) {
    if patterns.is_empty() || simple.schema.contains_key("enum") {
        return;
    }
    let is_text = matches!(simple.value, XmlValue::String | XmlValue::Token);
    if is_text && let Some(pattern) = pattern::converted(patterns) {
        simple.schema.insert("pattern".to_owned(), json!(pattern));
    } else if is_text {
        hints.push(format!("Has to match {}", patterns.join(" or ")));
    }
}
