//! The fields of forms and of parts: what `encoding` says of them, and what is a file.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::clean;
use super::library::Spot;
use super::media::{essence, is_text, is_xml};
use super::members::is_structured;
use super::notes::Notes;
use super::parameters::is_json;
use super::rules;
use super::words;
use super::{Reader, members};
use crate::mapping::{BodyFormat, FieldRule, FieldType, ParameterStyle, part_header_problem};

/// Most headers of a part that are looked at, and the longest name or value that is sent.
const PART_HEADERS_MAX: usize = 16;
const PART_HEADER_BYTES_MAX: usize = 120;

impl<'a> Reader<'a> {
    /// What `encoding` says of one field of a form, and what its schema says without it.
    pub(super) fn encode(
        &self,
        rule: &mut FieldRule,
        encoding: Option<Spot<'a>>,
        format: BodyFormat,
        notes: &mut Notes,
    ) -> Result<(), String> {
        let name = rule.source_field_name.replace('\\', "");
        let encoding = encoding.and_then(|encoding| self.index.member(encoding, &name));
        let content_type = encoding.and_then(|encoding| encoding.text("contentType"));
        let is_one = |media: &&str| !media.contains([',', '*']);
        let is_multipart = format == BodyFormat::Multipart;
        let headers = encoding.filter(|_| is_multipart);
        let headers = headers.and_then(|encoding| self.index.member(encoding, "headers"));
        rule.part_headers =
            headers.map(|headers| self.part_headers(&name, headers, notes)).unwrap_or_default();
        let file = file_of(rule, content_type);
        if let Some((field_type, item_type)) = file {
            if !is_multipart {
                return Err(format!(
                    "{} is a file, which a form cannot carry",
                    clean::quoted(&name)
                ));
            }
            let media = rule.schema.as_ref().and_then(|schema| {
                let own = schema.get("items").unwrap_or(schema);
                own.get("contentMediaType")?.as_str().map(ToOwned::to_owned)
            });
            *rule = as_single(std::mem::take(rule), field_type);
            rule.array_item_type = item_type;
            // The runtime takes a list: of what the file says, else the first of them.
            rule.content_type = content_type.map(|media| clean::line(media, 200)).or(media);
            if let Some(listed) = content_type.filter(|media| !is_one(media)) {
                let listed = clean::line(listed, 200);
                rules::tell(rule, &format!("Content types: {listed}."));
            }
            return Ok(());
        }
        if is_multipart {
            if content_type.is_some_and(|media| is_xml(&essence(media))) && holds_members(rule) {
                let name = clean::quoted(&name);
                return Err(format!("{name} is XML of an object, which parts do not carry"));
            }
            rule.content_type = content_type.filter(is_one).map(|media| clean::line(media, 200));
        } else if content_type.is_some_and(is_json) {
            rule.style = Some(ParameterStyle::Json);
        }
        let Some(encoding) = encoding else { return Ok(()) };
        if !is_multipart && members(encoding.get("headers")).next().is_some() {
            notes.add(format!("headers of the part {} are not sent", clean::quoted(&name)));
        }
        let style = match encoding.text("style") {
            Some("spaceDelimited") => Some(ParameterStyle::SpaceDelimited),
            Some("pipeDelimited") => Some(ParameterStyle::PipeDelimited),
            Some("deepObject") => Some(ParameterStyle::DeepObject),
            _ => None,
        };
        if rule.style.is_none() && !is_multipart {
            rule.style = style;
            let explode = encoding.flag("explode");
            rule.explode = explode.filter(|explode| *explode != style.is_none());
        }
        rule.allow_reserved = encoding.flag("allowReserved") == Some(true) && !is_multipart;
        Ok(())
    }

    /// The headers of a part whose values the description gives.
    fn part_headers(
        &self,
        part: &str,
        headers: Spot<'a>,
        notes: &mut Notes,
    ) -> BTreeMap<String, String> {
        let mut sent = BTreeMap::new();
        let mut unsent = Vec::new();
        for (name, header) in members(Some(headers.value)).take(PART_HEADERS_MAX) {
            // The content type has a place of its own (OpenAPI 3.1.1, section 4.8.15.1).
            if name.eq_ignore_ascii_case("Content-Type") {
                continue;
            }
            let header = self.index.follow(self.index.below(headers, header)).ok();
            let schema = header.and_then(|header| self.index.member(header, "schema"));
            let schema = schema.and_then(|schema| self.index.follow(schema).ok());
            let value = schema.and_then(only_value).filter(|value| {
                name.len() <= PART_HEADER_BYTES_MAX
                    && value.len() <= PART_HEADER_BYTES_MAX
                    && part_header_problem(name, value).is_none()
            });
            match value {
                Some(value) => drop(sent.insert(name.to_owned(), value)),
                None => unsent.push(clean::quoted(name)),
            }
        }
        if !unsent.is_empty() {
            unsent.truncate(6);
            let part = clean::quoted(part);
            notes.add(format!("headers of the part {part} are not sent: {}", unsent.join(", ")));
        }
        sent
    }

    /// Puts the rules of parts that have no names in the order of the description.
    pub(super) fn in_order_of(&self, schema: Spot<'a>, rules: &mut [FieldRule]) {
        let Ok(described) = self.described(schema) else { return };
        let (members, looks) = self.xml_members(described.target);
        if self.xml.borrow_mut().spend(members.len() + looks).is_err() {
            return;
        }
        let names = members.iter().enumerate();
        let places: HashMap<String, usize> =
            names.map(|(place, (name, _))| (rules::source_of(name), place)).collect();
        // What is demanded and not described comes last.
        let place = |rule: &FieldRule| places.get(&rule.source_field_name).copied();
        rules.sort_by_key(|rule| place(rule).unwrap_or(usize::MAX));
    }
}

/// The one value that a schema gives.
fn only_value(schema: Spot<'_>) -> Option<String> {
    let listed = schema.get("enum").and_then(Value::as_array);
    let only = listed.filter(|values| values.len() == 1).and_then(|values| values.first());
    match schema.get("const").or(only).or_else(|| schema.get("default"))? {
        Value::String(text) => Some(text.clone()),
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        _ => None,
    }
}

/// Whether what a rule takes, or each of it, has members.
fn holds_members(rule: &FieldRule) -> bool {
    let words = rule.schema.as_ref().and_then(Value::as_object);
    words.is_some_and(|words| {
        let items = words.get("items").and_then(Value::as_object);
        is_structured(items.unwrap_or(words))
    })
}

/// Only JSON has a null: elsewhere it would be a text.
pub(super) fn without_null(rule: &mut FieldRule) {
    rule.nullable = false;
    if let Some(Value::Object(words)) = &mut rule.schema {
        words::remove_null(words);
    }
}

/// A rule whose type says all.
pub(super) fn as_single(rule: FieldRule, field_type: FieldType) -> FieldRule {
    let is_file = field_type != FieldType::String;
    FieldRule {
        field_type: Some(field_type),
        array_item_type: None,
        schema: None,
        format: rule.format.filter(|_| !is_file),
        allowed: rule.allowed.filter(|_| !is_file),
        default: rule.default.filter(|value| value.is_string() && !is_file),
        ..rule
    }
}

/// Whether the field of a form is a file, or a list of them.
fn file_of(rule: &FieldRule, content_type: Option<&str>) -> Option<(FieldType, Option<FieldType>)> {
    let is_binary = |format: Option<&str>| format == Some("binary");
    let is_opaque = content_type.is_some_and(|media| {
        let essence = essence(media);
        !is_json(&essence) && !is_text(&essence) && !is_xml(&essence)
    });
    match (rule.field_type, &rule.schema) {
        (Some(FieldType::String), _) if is_binary(rule.format.as_deref()) => {
            Some((FieldType::File, None))
        }
        (Some(FieldType::Array), _) if is_binary(rule.format.as_deref()) => {
            Some((FieldType::Array, Some(FieldType::File)))
        }
        (None, Some(Value::Object(words))) if words.is_empty() && is_opaque => {
            Some((FieldType::File, None))
        }
        (None, Some(Value::Object(words))) if rules::is_file(words) => {
            Some((FieldType::File, None))
        }
        (None, Some(Value::Object(words))) => {
            let items = words.get("items").and_then(Value::as_object)?;
            rules::is_file(items).then_some((FieldType::Array, Some(FieldType::File)))
        }
        _ => None,
    }
}
