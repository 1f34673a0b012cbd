//! How a value that is no JSON body is written: by `style` and `explode` of OpenAPI 3.1, section
//! 4.8.12.
//!
//! Where the standard says nothing, this does:
//!
//! - `null` items and members are left out, and an array or object of nothing else is no value.
//! - Arrays and objects inside of others are written as JSON text; under `deep_object` their names
//!   follow in brackets, [`DEEP_LEVELS_MAX`] levels deep: `a[b][c]=1`, `a[b][]=x` for single items
//!   of an array, `a[b][0][c]=1` for others.
//! - `space_delimited` and `pipe_delimited` with `explode` are `form`, and of a single value as well.
//! - A cookie is not exploded unless the rule says so; then there is one for each item or member.
//! - An integer is written as its digits, `1e6` and `1000000.0` as `1000000`: a URL has no types, and
//!   most readers know an integer by its digits only. A number stays as it was written.
//!
//! What a client writes stays inside its value. Where encoding is no help, because what separates
//! values looks the same encoded, a value that has it is refused.

mod check;

use std::borrow::Cow;
use std::fmt::Write as _;

use percent_encoding::{AsciiSet, utf8_percent_encode};

use super::kinds::Kinds;
use super::placement::{self, ENCODED};
use super::shape::{Content, Node};
use super::{FieldRule, FieldType, Location, MappingError, ParameterStyle, digits};
use crate::json::{Kind, Raw};

/// How deep names follow each other in brackets. What nests deeper is JSON text.
pub(super) const DEEP_LEVELS_MAX: usize = 8;

/// What may stand in a query value besides unreserved characters and ends nothing there: `&`, `#`
/// and `;` do, `+` is a space to many, and `[` and `]` belong to hosts.
const RESERVED: &AsciiSet = &ENCODED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b'=');
const RESERVED_ITEM: &AsciiSet = &RESERVED.add(b',');

/// What becomes of characters that mean something in the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// Everything but unreserved characters is percent-encoded.
    Component,
    /// Reserved ones stay as far as the value stays one.
    Reserved,
    /// `application/x-www-form-urlencoded` of the URL standard: a space is `+`.
    Form,
    /// Nothing: what may not stand there was refused.
    Plain,
}

impl Encoding {
    fn write(self, out: &mut String, text: &str, is_item: bool) {
        match self {
            Self::Component => placement::encode(out, text),
            Self::Reserved if is_item => out.extend(utf8_percent_encode(text, RESERVED_ITEM)),
            Self::Reserved => out.extend(utf8_percent_encode(text, RESERVED)),
            Self::Form => out.extend(url::form_urlencoded::byte_serialize(text.as_bytes())),
            Self::Plain => out.push_str(text),
        }
    }

    /// A name, whose end is not where that of a value is.
    fn write_name(self, out: &mut String, name: &str) {
        let encoding = if self == Self::Reserved { Self::Component } else { self };
        encoding.write(out, name, true);
    }
}

/// How the values of one field are written.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub(super) struct Style {
    kind: ParameterStyle,
    explode: bool,
    encoding: Encoding,
    /// The field, or each of its items, is a whole number.
    is_integer: bool,
    /// Nothing is said of objects in a form: they are JSON.
    objects_are_json: bool,
    /// Dots stand beside the value in the path.
    keeps_edges: bool,
    /// Of a field whose members become names: its own at the API, and those beside it that no member
    /// may have, in small letters and in order.
    own_name: Box<str>,
    taken: Box<[Box<str>]>,
}

/// Name-value pairs that follow each other.
#[derive(Debug)]
pub(super) struct Pairs<'a> {
    out: &'a mut String,
    next: &'static str,
    between: &'static str,
}

impl<'a> Pairs<'a> {
    /// Those of a query, behind a target.
    pub(super) const fn of_query(out: &'a mut String, has_query: bool) -> Self {
        Self { out, next: if has_query { "&" } else { "?" }, between: "&" }
    }

    pub(super) const fn of_cookies(out: &'a mut String) -> Self {
        Self { out, next: "", between: "; " }
    }

    pub(super) const fn of_form(out: &'a mut String) -> Self {
        Self { out, next: "", between: "&" }
    }

    #[inline]
    fn open(&mut self) -> &mut String {
        self.out.push_str(self.next);
        self.next = self.between;
        self.out
    }

    #[inline]
    fn name(&mut self, name: &str) -> &mut String {
        let out = self.open();
        out.push_str(name);
        out.push('=');
        out
    }
}

impl Style {
    /// Of a rule, in the location that it has; in the body that is a form.
    pub(super) fn compile(rule: &FieldRule, node: &Node) -> Result<Self, MappingError> {
        use ParameterStyle::{
            DeepObject, Form, Json, Label, Matrix, PipeDelimited, Simple, SpaceDelimited,
        };
        let refuse = |problem| Err(MappingError::Rule { field: rule.name(), problem });
        let location = rule.location;
        let (known, problem): (&[ParameterStyle], _) = match location {
            Location::Path => (
                &[Simple, Label, Matrix, Json],
                "a path field has the style simple, label, matrix or json; change style",
            ),
            Location::Query | Location::Body => (
                &[Form, SpaceDelimited, PipeDelimited, DeepObject, Json],
                "a query field or one of a form has the style form, space_delimited, \
                 pipe_delimited, deep_object or json; change style",
            ),
            Location::Header => {
                (&[Simple, Json], "a header field has the style simple or json; change style")
            }
            Location::Cookie => {
                (&[Form, Json], "a cookie field has the style form or json; change style")
            }
        };
        let kind = rule.style.or(known.first().copied()).unwrap_or(Form);
        if !known.contains(&kind) {
            return refuse(problem);
        }
        let kinds = kinds_of(node);
        if kind == DeepObject && kinds.has_none_of(Kinds::OBJECT) && kinds.has_none_of(Kinds::ARRAY)
        {
            return refuse("style deep_object is for objects; set type, or change style");
        }
        let has_reserved = matches!(location, Location::Query | Location::Body);
        if rule.allow_reserved && !has_reserved {
            return refuse("allow_reserved is for query fields and forms; remove it");
        }
        let is_of_part = rule.content_type.is_some() || !rule.part_headers.is_empty();
        if is_of_part && location != Location::Body {
            return refuse(
                "content_type and part_headers are for fields of a multipart body; remove them",
            );
        }
        if location == Location::Path && rule.nullable {
            return refuse("a part of the path cannot be null; remove nullable");
        }
        let is_said = rule.style.is_some() || rule.explode.is_some();
        Ok(Self {
            kind,
            explode: rule.explode.unwrap_or(kind == Form && location != Location::Cookie),
            encoding: match location {
                Location::Header => Encoding::Plain,
                _ if rule.allow_reserved => Encoding::Reserved,
                Location::Body => Encoding::Form,
                Location::Path | Location::Query | Location::Cookie => Encoding::Component,
            },
            is_integer: holds_integers(node),
            objects_are_json: location == Location::Body && !is_said,
            keeps_edges: kind == Label,
            own_name: Box::default(),
            taken: Box::default(),
        })
    }

    /// Of a field of parts whose items or members are to be one part.
    pub(super) fn compile_part(rule: &FieldRule, node: &Node) -> Result<Self, MappingError> {
        let style = Self::compile(rule, node)?;
        if rule.allow_reserved || !style.is_list() {
            let problem = "a field of a multipart body has the style form, space_delimited or \
                           pipe_delimited; for JSON set content_type to \"application/json\"";
            return Err(MappingError::Rule { field: rule.name(), problem });
        }
        Ok(Self { encoding: Encoding::Plain, ..style })
    }

    /// Of members that only the client knows, and of texts.
    pub(super) fn of_text(node: Option<&Node>) -> Self {
        Self {
            kind: ParameterStyle::Form,
            explode: true,
            encoding: Encoding::Form,
            is_integer: node.is_some_and(holds_integers),
            objects_are_json: true,
            keeps_edges: false,
            own_name: Box::default(),
            taken: Box::default(),
        }
    }

    /// Whether members of its values can become names beside those of other fields.
    pub(super) fn gives_names(&self, node: &Node) -> bool {
        let flattens = self.explode && self.is_list() && !self.objects_are_json;
        (flattens || self.kind == ParameterStyle::DeepObject)
            && !kinds_of(node).has_none_of(Kinds::OBJECT)
    }

    /// The names that these must not be: those beside the field's own.
    pub(super) fn keep_from<'n>(&mut self, own_name: &str, names: impl Iterator<Item = &'n str>) {
        self.own_name = own_name.into();
        let mut taken: Vec<Box<str>> =
            names.map(|name| name.to_ascii_lowercase().into_boxed_str()).collect();
        taken.sort_unstable();
        self.taken = taken.into_boxed_slice();
    }

    /// One more name that they must not be.
    pub(super) fn reserve(&mut self, name: &str) {
        if self.own_name.is_empty() {
            return;
        }
        let mut taken = std::mem::take(&mut self.taken).into_vec();
        taken.push(name.to_ascii_lowercase().into_boxed_str());
        taken.sort_unstable();
        self.taken = taken.into_boxed_slice();
    }

    /// Whether values have to be looked at before they are placed.
    pub(super) fn is_checked(&self, location: Location, node: &Node) -> bool {
        match location {
            Location::Path | Location::Header => true,
            _ => self.delimiter().is_some() || self.gives_names(node) || self.is_deep(),
        }
    }

    /// Whether it is written as JSON text.
    pub(super) fn is_json(&self) -> bool {
        self.kind == ParameterStyle::Json
    }

    fn is_deep(&self) -> bool {
        self.kind == ParameterStyle::DeepObject
    }

    fn is_list(&self) -> bool {
        use ParameterStyle::{Form, PipeDelimited, SpaceDelimited};
        matches!(self.kind, Form | SpaceDelimited | PipeDelimited)
    }

    /// Whether there is nothing to write: an empty array or object.
    pub(super) fn is_nothing(&self, raw: Raw<'_>) -> bool {
        let is_null = |raw: Raw<'_>| raw.is_null();
        match raw.kind() {
            Kind::Null => true,
            Kind::Array => !self.is_json() && raw.items().all(is_null),
            Kind::Object => {
                !self.is_json()
                    && !self.objects_are_json
                    && raw.entries().all(|(_, value)| is_null(value))
            }
            Kind::Bool | Kind::Number | Kind::String => false,
        }
    }

    /// A single value to the digit, a text decoded; arrays and objects as JSON.
    #[inline]
    pub(super) fn text<'r>(&self, raw: Raw<'r>) -> Cow<'r, str> {
        match raw.kind() {
            Kind::String => raw.as_str().unwrap_or_default(),
            Kind::Number if self.is_integer => digits::plain_integer(raw.text()),
            Kind::Array | Kind::Object => compact(raw.text()),
            Kind::Null | Kind::Bool | Kind::Number => Cow::Borrowed(raw.text()),
        }
    }

    /// Calls `each` with every value that stands by itself, and its name where it has one.
    #[inline]
    fn for_each(&self, raw: Raw<'_>, mut each: impl FnMut(Option<&str>, &str)) {
        match raw.kind() {
            Kind::Array => {
                for item in raw.items().filter(|item| !item.is_null()) {
                    each(None, &self.text(item));
                }
            }
            Kind::Object => {
                for (name, value) in raw.entries().filter(|(_, value)| !value.is_null()) {
                    each(Some(&name), &self.text(value));
                }
            }
            _ => each(None, &self.text(raw)),
        }
    }

    /// Items, or names and values, with `separator` between them.
    fn join(&self, out: &mut String, raw: Raw<'_>, separator: &str) {
        let is_item = matches!(raw.kind(), Kind::Array | Kind::Object);
        let behind_name = if self.explode { "=" } else { separator };
        let mut is_first = true;
        self.for_each(raw, |name, text| {
            if !is_first {
                out.push_str(separator);
            }
            is_first = false;
            if let Some(name) = name {
                self.encoding.write_name(out, name);
                out.push_str(behind_name);
            }
            self.encoding.write(out, text, is_item);
        });
    }

    /// Into its place in a path; `name` is encoded.
    pub(super) fn write_path(&self, out: &mut String, name: &str, raw: Raw<'_>) {
        match self.kind {
            ParameterStyle::Json => self.encoding.write(out, &compact(raw.text()), false),
            ParameterStyle::Label => {
                out.push('.');
                self.join(out, raw, if self.explode { "." } else { "," });
            }
            ParameterStyle::Matrix if self.explode => self.for_each(raw, |member, text| {
                out.push(';');
                match member {
                    Some(member) => self.encoding.write_name(out, member),
                    None => out.push_str(name),
                }
                out.push('=');
                self.encoding.write(out, text, false);
            }),
            ParameterStyle::Matrix => {
                out.push(';');
                out.push_str(name);
                out.push('=');
                self.join(out, raw, ",");
            }
            _ => self.join(out, raw, ","),
        }
    }

    /// As the value of a header.
    pub(super) fn write_header(&self, out: &mut String, raw: Raw<'_>) {
        if self.is_json() {
            out.push_str(&compact(raw.text()));
        } else {
            self.join(out, raw, ",");
        }
    }

    /// As pairs of a query, a form or cookies; `name` is encoded.
    pub(super) fn write_pairs(&self, pairs: &mut Pairs<'_>, name: &str, raw: Raw<'_>) {
        let is_object = raw.kind() == Kind::Object;
        match self.kind {
            _ if self.is_json() || (self.objects_are_json && is_object) => {
                self.encoding.write(pairs.name(name), &compact(raw.text()), false);
            }
            ParameterStyle::DeepObject => {
                let mut path = name.to_owned();
                self.write_deep(pairs, &mut path, raw, DEEP_LEVELS_MAX);
            }
            _ if self.explode => self.for_each(raw, |member, text| {
                let out = match member {
                    Some(member) => {
                        let out = pairs.open();
                        self.encoding.write_name(out, member);
                        out.push('=');
                        out
                    }
                    None => pairs.name(name),
                };
                self.encoding.write(out, text, false);
            }),
            _ => self.join(pairs.name(name), raw, self.separator()),
        }
    }

    /// As the text of one part, where the rule says so.
    pub(super) fn joined(&self, raw: Raw<'_>) -> Option<String> {
        let is_many = matches!(raw.kind(), Kind::Array | Kind::Object);
        if self.encoding != Encoding::Plain || self.explode || !is_many {
            return None;
        }
        let mut out = String::new();
        self.join(&mut out, raw, self.separator());
        Some(out)
    }

    const fn separator(&self) -> &'static str {
        match (self.kind, self.encoding) {
            (ParameterStyle::SpaceDelimited, Encoding::Plain) => " ",
            (ParameterStyle::SpaceDelimited, Encoding::Form) => "+",
            (ParameterStyle::SpaceDelimited, _) => "%20",
            (ParameterStyle::PipeDelimited, Encoding::Plain) => "|",
            (ParameterStyle::PipeDelimited, _) => "%7C",
            _ => ",",
        }
    }

    fn write_deep(&self, pairs: &mut Pairs<'_>, path: &mut String, raw: Raw<'_>, levels: usize) {
        let length = path.len();
        match (raw.kind(), levels.checked_sub(1)) {
            (Kind::Null, _) => {}
            (Kind::Object, Some(levels)) => {
                for (name, value) in raw.entries() {
                    path.push_str("%5B");
                    self.encoding.write_name(path, &name);
                    path.push_str("%5D");
                    self.write_deep(pairs, path, value, levels);
                    path.truncate(length);
                }
            }
            (Kind::Array, Some(levels)) => {
                for (index, item) in raw.items().enumerate() {
                    if matches!(item.kind(), Kind::Array | Kind::Object) {
                        // Writing to a string cannot fail.
                        let _ = write!(path, "%5B{index}%5D");
                    } else {
                        path.push_str("%5B%5D");
                    }
                    self.write_deep(pairs, path, item, levels);
                    path.truncate(length);
                }
            }
            _ => self.encoding.write(pairs.name(path), &self.text(raw), false),
        }
    }
}

/// What a node can take.
pub(super) fn kinds_of(node: &Node) -> Kinds {
    match (&node.schema, &node.content) {
        (Some(schema), _) => Kinds::of_schema(schema),
        (None, Content::Array(_)) => Kinds::ARRAY,
        (None, Content::Object(_)) => Kinds::OBJECT,
        (None, Content::Leaf) => match node.field_type {
            FieldType::Object => Kinds::OBJECT,
            FieldType::Array => Kinds::ARRAY,
            _ => Kinds::STRING,
        },
    }
}

/// Whether the node, or each of its items, is a whole number.
fn holds_integers(node: &Node) -> bool {
    let is_integer = |schema: &serde_json::Value| {
        Kinds::of_schema(schema).field_type() == Some(FieldType::Integer)
    };
    match (&node.schema, &node.content) {
        (Some(schema), _) => is_integer(schema) || schema.get("items").is_some_and(is_integer),
        (None, Content::Array(item)) => holds_integers(item),
        (None, _) => node.field_type == FieldType::Integer,
    }
}

/// JSON without what is between its words.
pub(super) fn compact(text: &str) -> Cow<'_, str> {
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    if !text.bytes().any(is_blank) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let (mut is_string, mut is_escaped) = (false, false);
    for character in text.chars() {
        let blank = !is_string && matches!(character, ' ' | '\t' | '\r' | '\n');
        if !blank {
            out.push(character);
        }
        is_string ^= character == '"' && !is_escaped;
        is_escaped = is_string && character == '\\' && !is_escaped;
    }
    Cow::Owned(out)
}

#[cfg(test)]
#[path = "style/style_tests.rs"]
mod tests;
