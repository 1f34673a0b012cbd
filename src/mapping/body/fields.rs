//! The fields of a body that is not JSON.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::JSON;
use super::parts::{PartHeader, Parts, PartsKind, headers_of};
use crate::json::{Kind, OwnedRaw, Raw};
use crate::mapping::file::{FileValue, OCTETS, Resources};
use crate::mapping::kinds::Kinds;
use crate::mapping::shape::{Content, Field, Node};
use crate::mapping::style::{Pairs, Style, compact, kinds_of};
use crate::mapping::translate::{Direction, Step, Tally};
use crate::mapping::{BodyFormat, FieldRule, FieldType, Location, MappingError, media};

/// The fields of a body that is not JSON.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) list: Vec<BodyField>,
    /// The visible ones by exposed name, in its order.
    pub(super) by_name: Vec<(Box<str>, usize)>,
    /// The one field is the whole body, whose members are the fields.
    pub(super) is_whole: bool,
}

#[derive(Debug)]
pub(super) struct BodyField {
    pub(super) exposed: Box<str>,
    /// What the API calls it: encoded in a form, as it is elsewhere.
    pub(super) name: Box<str>,
    pub(super) step: Step,
    pub(super) style: Style,
    pub(super) content_type: Option<Box<str>>,
    /// Of its parts.
    pub(super) headers: Box<[PartHeader]>,
    pub(super) is_file: bool,
    pub(super) is_checked: bool,
}

impl Fields {
    pub(super) fn compile(
        fields: &[&Field],
        rules: &[FieldRule],
        format: BodyFormat,
    ) -> Result<Self, MappingError> {
        let is_whole = fields.iter().any(|field| field.whole);
        let is_object =
            |field: &&Field| kinds_of(&field.node).without(Kinds::NULL) == Kinds::OBJECT;
        if is_whole && !fields.iter().all(is_object) {
            let problem = "body_format: a form and its parts have names; make the body an object, \
                           or give it fields";
            return Err(MappingError::Body { problem: problem.to_owned() });
        }
        let mut list = Vec::with_capacity(fields.len());
        for field in fields {
            list.push(BodyField::compile(field, rules, format)?);
        }
        keep_apart(&mut list, fields);
        let visible = fields.iter().enumerate().filter(|(_, field)| !field.node.is_hidden(rules));
        let mut by_name: Vec<(Box<str>, usize)> =
            visible.map(|(index, field)| (field.node.exposed.clone(), index)).collect();
        by_name.sort_unstable();
        Ok(Self { list, by_name, is_whole })
    }

    /// Calls `each` with every field that the arguments have, as the client wrote it.
    pub(super) fn each_given(&self, arguments: Raw<'_>, mut each: impl FnMut(&BodyField, Raw<'_>)) {
        for (name, value) in arguments.entries() {
            if let Some(field) = self.index_of(&name).and_then(|index| self.list.get(index)) {
                each(field, value);
            }
        }
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        let found = self.by_name.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(self.by_name.get(found)?.1)
    }

    /// Calls `each` with every field that is sent, in the order of the rules, as the API takes it:
    /// with its name, and how it is written.
    fn each_sent(
        &self,
        arguments: Option<Raw<'_>>,
        mut each: impl FnMut(&str, &BodyField, Raw<'_>),
    ) {
        let mut values: SmallVec<[Option<Raw<'_>>; 16]> = SmallVec::new();
        values.resize(self.list.len(), None);
        for (name, value) in arguments.iter().flat_map(|raw| raw.entries()) {
            if let Some(slot) = self.index_of(&name).and_then(|index| values.get_mut(index)) {
                *slot = Some(value);
            }
        }
        for (field, value) in self.list.iter().zip(values) {
            let Some(value) = field.sent(value) else { continue };
            if !self.is_whole {
                each(&field.name, field, value.raw());
                continue;
            }
            for (name, member) in value.raw().entries().filter(|(_, member)| !member.is_null()) {
                each(&name, field, member);
            }
        }
    }

    pub(super) fn urlencoded(&self, arguments: Option<Raw<'_>>) -> Vec<u8> {
        let mut out = String::new();
        let mut pairs = Pairs::of_form(&mut out);
        let mut name = String::new();
        self.each_sent(arguments, |known, field, value| {
            if field.style.is_nothing(value) {
                return;
            }
            if self.is_whole {
                name.clear();
                name.extend(url::form_urlencoded::byte_serialize(known.as_bytes()));
                field.style.write_pairs(&mut pairs, &name, value);
            } else {
                field.style.write_pairs(&mut pairs, known, value);
            }
        });
        out.into_bytes()
    }

    /// The parts and what they are called; `usual` is what most of their kind are.
    pub(super) fn parts(
        &self,
        kind: &PartsKind,
        usual: &Arc<str>,
        arguments: Option<Raw<'_>>,
        resources: &Resources,
    ) -> (Vec<u8>, Arc<str>) {
        let mut parts = Parts::new(kind, arguments.map_or(0, |raw| raw.text().len()) + 256);
        self.each_sent(arguments, |name, field, value| {
            let is_json = field.content_type.as_deref().is_some_and(media::is_json);
            if let Some(text) = field.style.joined(value) {
                if !field.style.is_nothing(value) {
                    let content_type = field.content_type.as_deref();
                    let out = parts.part(field, name, None, content_type);
                    out.extend_from_slice(text.as_bytes());
                }
            } else if value.kind() == Kind::Array && !is_json {
                for item in value.items().filter(|item| !item.is_null()) {
                    field.write_part(&mut parts, name, item, resources);
                }
            } else {
                field.write_part(&mut parts, name, value, resources);
            }
        });
        parts.finish(usual)
    }
}

/// No member that only the client knows takes the name of another field, or of a member that stands
/// beside the fields as well.
fn keep_apart(list: &mut [BodyField], fields: &[&Field]) {
    let gives_names: Vec<bool> = list
        .iter()
        .zip(fields)
        .map(|(compiled, field)| compiled.style.gives_names(&field.node))
        .collect();
    for (index, compiled) in list.iter_mut().enumerate() {
        if gives_names.get(index) != Some(&true) {
            continue;
        }
        let own = fields.get(index).map_or("", |field| &*field.node.source);
        let mut names = Vec::new();
        let others = fields.iter().zip(&gives_names).enumerate();
        for (_, (other, gives_names)) in others.filter(|(at, _)| *at != index) {
            names.push(&*other.node.source);
            if let Content::Object(members) = &other.node.content
                && *gives_names
            {
                names.extend(members.iter().map(|member| &*member.source));
            }
        }
        compiled.style.keep_from(own, names.into_iter());
    }
}

/// A value, as it came or made for the API.
pub(super) enum Sent<'a> {
    Given(Raw<'a>),
    Made(OwnedRaw),
}

impl Sent<'_> {
    pub(super) fn raw(&self) -> Raw<'_> {
        match self {
            Self::Given(raw) => *raw,
            Self::Made(made) => made.as_raw(),
        }
    }
}

impl BodyField {
    pub(super) fn compile(
        field: &Field,
        rules: &[FieldRule],
        format: BodyFormat,
    ) -> Result<Self, MappingError> {
        let node = &field.node;
        let rule = node.rule.and_then(|index| rules.get(index));
        let is_said = |rule: &&FieldRule| {
            rule.style.is_some() || rule.explode.is_some() || rule.allow_reserved
        };
        // Of the members of a whole body nothing is said.
        let style = match (format, rule.filter(|_| !field.whole)) {
            (BodyFormat::Form, Some(rule)) => Style::compile(rule, node)?,
            (BodyFormat::Multipart, Some(rule)) if is_said(&rule) => {
                Style::compile_part(rule, node)?
            }
            _ => Style::of_text(Some(node)),
        };
        let mut name = node.source.to_string();
        if format == BodyFormat::Form {
            name = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
        }
        let is_file = is_file(node);
        let content_type = match rule.and_then(|rule| Some((rule, rule.content_type.as_deref()?))) {
            None => None,
            // A file may say itself which of several it is.
            Some((_, given)) if is_file => media::first_of(given).map(Into::into),
            Some((_, given)) if media::is_media_type(given) => Some(given.into()),
            Some((rule, _)) => {
                let problem = "content_type is no media type; write one such as \"text/csv\"";
                return Err(MappingError::Rule { field: rule.name(), problem });
            }
        };
        let headers = rule.map(headers_of).transpose()?.unwrap_or_default();
        Ok(Self {
            headers,
            exposed: node.exposed.clone(),
            name: name.into_boxed_str(),
            step: Step::compile(node, rules, Direction::Request)?,
            is_checked: style.is_checked(Location::Body, node),
            style,
            content_type,
            is_file,
        })
    }

    /// The value of the arguments, or what is sent without one.
    pub(super) fn value<'a>(&self, arguments: Option<Raw<'a>>) -> Option<Sent<'a>> {
        self.sent(arguments.and_then(|raw| raw.get(&self.exposed)))
    }

    fn sent<'a>(&self, given: Option<Raw<'a>>) -> Option<Sent<'a>> {
        let mut made = Vec::new();
        match given.filter(|value| !value.is_null()) {
            Some(value) if self.step.is_plain() => return Some(Sent::Given(value)),
            Some(value) => self.step.write(value, &mut made, &mut Tally::default()),
            None if self.step.write_absent(&mut made) => {}
            None => return None,
        }
        let made = OwnedRaw::parse(&made).ok()?;
        (!made.as_raw().is_null()).then_some(Sent::Made(made))
    }

    fn write_part(&self, parts: &mut Parts<'_>, name: &str, value: Raw<'_>, resources: &Resources) {
        let own = self.content_type.as_deref();
        if self.is_file {
            let Some(mut file) = FileValue::read(value) else { return };
            let bytes = file.bytes(resources);
            // Without a file name most servers take a part for a text.
            let filename = Some(file.filename.as_deref().unwrap_or(name));
            let content_type = Some(file.content_type.as_deref().or(own).unwrap_or(OCTETS));
            parts.part(self, name, filename, content_type).extend_from_slice(&bytes);
            return;
        }
        let (content_type, text) = if matches!(value.kind(), Kind::Array | Kind::Object) {
            (own.or(Some(JSON)), compact(value.text()))
        } else {
            (own, self.style.text(value))
        };
        let text: Cow<'_, str> = text;
        let out = parts.part(self, name, None, content_type);
        out.extend_from_slice(text.as_bytes());
    }
}

/// Whether the node, or each of its items, is a file.
pub(super) fn is_file(node: &Node) -> bool {
    let mut innermost = node;
    while let Content::Array(item) = &innermost.content {
        innermost = item;
    }
    innermost.schema.is_none() && innermost.field_type == FieldType::File
}
