//! What a schema says of its XML: names, namespaces, and what kind of content it has.

use std::collections::HashSet;

use serde_json::Value;

use super::library::Spot;
use super::text::ORDER;
use super::words;
use super::{Reader, items, members};
use crate::mapping::XmlValue;
use crate::xml::is_name;

/// How many schemas that only stand for another one are looked through.
const HOPS_MAX: usize = 8;
/// How many combinators stand in one another.
const NESTING_MAX: usize = 12;
/// How many schemas are looked at to tell what one is.
const LOOKS_MAX: usize = 200;

/// The `xml` object of a schema (OpenAPI 3.1.1, section 4.8.26); of one that refers to another,
/// what is said beside the reference comes first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct XmlWords<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) namespace: Option<&'a str>,
    pub(super) prefix: Option<&'a str>,
    pub(super) is_attribute: bool,
    pub(super) is_wrapped: bool,
}

impl<'a> XmlWords<'a> {
    fn of(spot: Spot<'a>) -> Self {
        let xml = spot.get("xml");
        let text = |word: &str| {
            let text = xml.and_then(|xml| xml.get(word)?.as_str()).map(str::trim);
            text.filter(|text| !text.is_empty())
        };
        let flag = |word: &str| xml.and_then(|xml| xml.get(word)) == Some(&Value::Bool(true));
        Self {
            name: text("name"),
            namespace: text("namespace"),
            prefix: text("prefix"),
            is_attribute: flag("attribute"),
            is_wrapped: flag("wrapped"),
        }
    }

    fn or(self, other: Self) -> Self {
        let has_place = self.namespace.is_some() || self.prefix.is_some();
        Self {
            name: self.name.or(other.name),
            namespace: if has_place { self.namespace } else { other.namespace },
            prefix: if has_place { self.prefix } else { other.prefix },
            is_attribute: self.is_attribute || other.is_attribute,
            is_wrapped: self.is_wrapped || other.is_wrapped,
        }
    }

    /// Where elements of a list stand that is not wrapped: their own words, else those of the list.
    pub(super) fn of_items(items: &Self, list: &Self) -> Self {
        Self { name: items.name, ..items.clone().or(list.clone()) }
    }
}

/// A schema with what it refers to.
#[derive(Debug, Clone)]
pub(super) struct Described<'a> {
    pub(super) target: Spot<'a>,
    pub(super) xml: XmlWords<'a>,
    /// The name under which it stands in the description.
    pub(super) known_as: Option<String>,
    pub(super) takes_null: bool,
}

/// What a value becomes in XML.
#[derive(Debug, Clone)]
pub(super) enum Shape<'a> {
    Value(XmlValue),
    Array(Option<Spot<'a>>),
    Object,
    /// An object of members with any names.
    Map(Option<Spot<'a>>),
}

/// Namespaces that elements within another one have without saying so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// Of elements without prefix.
    default: String,
    prefixes: Vec<(String, String)>,
}

impl Scope {
    /// That of an element and what is within it.
    pub(super) fn within(&self, xml: &XmlWords<'_>) -> Self {
        let mut scope = self.clone();
        match (xml.namespace, xml.prefix) {
            (Some(namespace), None) => namespace.clone_into(&mut scope.default),
            (Some(namespace), Some(prefix)) => {
                scope.prefixes.retain(|(known, _)| known != prefix);
                scope.prefixes.push((prefix.to_owned(), namespace.to_owned()));
                // Said in another order it is the same.
                scope.prefixes.sort();
            }
            (None, _) => {}
        }
        scope
    }

    /// The namespace of an element of this scope, or of an attribute: that one has none by itself.
    pub(super) fn namespace<'s>(&'s self, xml: &XmlWords<'s>) -> &'s str {
        let default = if xml.is_attribute { "" } else { &self.default };
        let of_prefix = |prefix| self.prefixes.iter().find(|(known, _)| known == prefix);
        let of_prefix = xml.prefix.and_then(of_prefix).map(|(_, namespace)| namespace.as_str());
        xml.namespace.or(of_prefix).unwrap_or(default)
    }
}

impl<'a> Reader<'a> {
    /// Follows what a schema refers to, as far as that stands for it alone.
    ///
    /// # Errors
    /// When a reference points to nothing.
    pub(super) fn described(&self, spot: Spot<'a>) -> Result<Described<'a>, String> {
        let mut known_as = None;
        let mut xml = XmlWords::default();
        let mut takes_null = false;
        let mut spot = spot;
        for _ in 0..HOPS_MAX {
            xml = xml.or(XmlWords::of(spot));
            takes_null |= says_null(spot);
            let target = self.index.follow(spot)?;
            known_as = known_as.or_else(|| spot.reference().and_then(name_of));
            if target.address() != spot.address() {
                xml = xml.or(XmlWords::of(target));
                takes_null |= says_null(target);
            }
            spot = target;
            let mut parts = items(target.get("allOf"));
            let (Some(only), None, None) = (parts.next(), parts.next(), target.get("properties"))
            else {
                break;
            };
            spot = self.index.below(target, only);
        }
        let target = self.index.follow(spot)?;
        Ok(Described { target, xml, known_as, takes_null })
    }

    /// What a followed schema becomes.
    pub(super) fn shape(&self, target: Spot<'a>) -> Shape<'a> {
        self.shape_within(target, 0, &mut LOOKS_MAX.clone())
            .unwrap_or(Shape::Value(XmlValue::String))
    }

    fn shape_within(&self, target: Spot<'a>, depth: usize, left: &mut usize) -> Option<Shape<'a>> {
        *left = left.checked_sub(1)?;
        let schema = target.value.as_object().filter(|_| depth <= NESTING_MAX)?;
        let (types, _) = words::types(schema);
        let has = |word: &str| types.contains(&word);
        let has_members = members(schema.get("properties")).next().is_some();
        if has_members {
            return Some(Shape::Object);
        }
        let branches = ["allOf", "oneOf", "anyOf"].into_iter().flat_map(|word| {
            let branches = items(target.get(word)).map(|part| self.index.below(target, part));
            branches.filter_map(|part| self.index.follow(part).ok())
        });
        let mut shape = None;
        for branch in branches {
            shape = match (shape, self.shape_within(branch, depth + 1, left)) {
                (Some(Shape::Object), _) | (_, Some(Shape::Object)) => Some(Shape::Object),
                (Some(Shape::Value(one)), Some(Shape::Value(other))) => {
                    Some(Shape::Value(if one == other { one } else { XmlValue::String }))
                }
                (Some(Shape::Value(_)) | None, Some(other)) => Some(other),
                (known, _) => known,
            };
        }
        if shape.is_some() && !has("array") {
            return shape;
        }
        if has("array") || (types.is_empty() && schema.contains_key("items")) {
            return Some(Shape::Array(self.index.member(target, "items")));
        }
        let any = self.index.member(target, "additionalProperties");
        let any = any.filter(|any| any.value.is_object());
        if has("object") || any.is_some() {
            return Some(Shape::Map(any));
        }
        value_of(schema.get("format").and_then(Value::as_str), &types).map(Shape::Value)
    }

    /// The members of an object, those of everything it is composed of included, in the order of the
    /// description, each name once; and how many schemas that took.
    pub(super) fn xml_members(&self, target: Spot<'a>) -> (Vec<(&'a str, Spot<'a>)>, usize) {
        let mut found: Vec<(&'a str, Spot<'a>)> = Vec::new();
        let mut names = HashSet::new();
        let mut seen = HashSet::new();
        // From the last to the first, each with its depth.
        let mut waiting = vec![(target, 0, false)];
        while let Some((spot, depth, is_own)) = waiting.pop() {
            if is_own {
                for (name, member) in in_order(spot) {
                    if names.insert(name) {
                        found.push((name, self.index.below(spot, member)));
                    }
                }
                continue;
            }
            if depth > NESTING_MAX || !seen.insert(spot.address()) {
                continue;
            }
            let parts = |word: &str| {
                let parts = items(spot.get(word)).map(|part| self.index.below(spot, part));
                let parts = parts.filter_map(|part| self.index.follow(part).ok());
                parts.map(|part| (part, depth + 1, false)).collect::<Vec<_>>()
            };
            // What it extends, what it adds, what it may be.
            waiting.extend(["oneOf", "anyOf"].into_iter().flat_map(parts).rev());
            waiting.push((spot, depth, true));
            waiting.extend(parts("allOf").into_iter().rev());
        }
        (found, seen.len())
    }
}

/// The described members of a schema in the order of its document.
fn in_order(schema: Spot<'_>) -> Vec<(&str, &Value)> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let listed = items(schema.get(ORDER)).filter_map(Value::as_str);
    let listed: Vec<(&str, &Value)> =
        listed.filter_map(|name| Some((name, properties.get(name)?))).collect();
    if listed.len() == properties.len() {
        return listed;
    }
    properties.iter().map(|(name, member)| (name.as_str(), member)).collect()
}

fn says_null(spot: Spot<'_>) -> bool {
    let is_flagged = |word: &str| spot.flag(word) == Some(true);
    let types = spot.value.as_object().map(|schema| words::types(schema).0);
    is_flagged("nullable")
        || is_flagged("x-nullable")
        || types.is_some_and(|all| all.contains(&"null"))
}

fn value_of(format: Option<&str>, types: &[&str]) -> Option<XmlValue> {
    let mut single = types.iter().filter(|word| **word != "null");
    let value = match (single.next(), single.next()) {
        (Some(&"boolean"), None) => XmlValue::Boolean,
        (Some(&"integer"), None) => XmlValue::Integer,
        (Some(&"number"), None) | (Some(&"integer" | &"number"), Some(&"integer" | &"number")) => {
            XmlValue::Decimal
        }
        (Some(&"string"), None) if format == Some("byte") => XmlValue::Base64,
        (Some(_), _) => XmlValue::String,
        (None, _) => return None,
    };
    Some(value)
}

/// `Pet` of `#/components/schemas/Pet`.
fn name_of(reference: &str) -> Option<String> {
    let last = reference.rsplit(['/', '#']).next()?;
    let last = percent_encoding::percent_decode_str(last).decode_utf8().ok()?;
    let last = last.split('.').next()?;
    is_name(last).then(|| last.to_owned())
}
