//! Bodies of requests: JSON, forms, parts, a text, the bytes of a file.
//!
//! JSON leaves as exact text. What is to be XML is JSON here too: [`Messages`](super::Messages) write
//! it. What is no JSON has no `null`: such a field is left out, as an absent
//! one is. In forms and parts, names are those of the API and in the order of the rules; a constant
//! body may be a field's whole value only.
//!
//! Of a form, arrays are `a=1&a=2` and objects JSON text where their rule has no `style` or
//! `explode`. Of parts, arrays are a part for each item and objects are JSON; with `explode` false
//! either is one part, `a,b`, and with a `content_type` that is one of JSON an array is one part of
//! JSON. A text is sent as it is, whatever its part is called. Parts that are no form have no names:
//! see [`parts`].

mod fields;
mod parts;

use std::sync::Arc;

use fields::{BodyField, Fields, is_file};
use parts::PartsKind;
pub(crate) use parts::problem as part_header_problem;

use super::error::FieldProblem;
use super::file::{self, FileValue, OCTETS, RESOURCES_MAX, ResourceUse, Resources};
use super::kinds::Kinds;
use super::media;
use super::shape::{Content, Field, Node};
use super::style::kinds_of;
use super::translate::{Direction, Members, Step, Tally, Unmapped};
use super::{BodyFormat, FieldRule, FieldType, Location, MappingError, MappingErrors, RequestBody};
use crate::json::{Kind, Raw};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";
const TEXT: &str = "text/plain";
const XML: &str = "application/xml";
/// The boundary that nearly every body has.
const USUAL_BOUNDARY: &str = "ringway-0000000000000000";

/// What a body is and what it is called.
#[derive(Debug)]
pub(super) struct Body {
    content_type: Arc<str>,
    form: Form,
}

impl Default for Body {
    fn default() -> Self {
        Self { content_type: JSON.into(), form: Form::None }
    }
}

#[derive(Debug)]
enum Form {
    None,
    /// An object of the arguments that belong there.
    Members(Members),
    /// One argument is the whole body.
    Whole(Box<str>, Box<Step>),
    Urlencoded(Fields),
    Parts(Fields, PartsKind),
    Text(Box<BodyField>),
    Binary(Box<BodyField>),
}

impl Body {
    pub(super) fn compile(
        fields: &[Field],
        rules: &[FieldRule],
        body: RequestBody<'_>,
        errors: &mut MappingErrors,
    ) -> Option<Self> {
        let fields: Vec<&Field> =
            fields.iter().filter(|field| field.location == Location::Body).collect();
        for field in &fields {
            check_field(&field.node, rules, body.format, true, errors);
        }
        let content_type = errors.note(content_type(body));
        let form = errors.note(Form::compile(&fields, rules, body));
        Some(Self { content_type: content_type?, form: form? })
    }

    /// Another type than that of the format.
    pub(super) fn set_content_type(&mut self, content_type: Arc<str>) {
        self.content_type = content_type;
    }

    /// Whether some of its fields are files.
    pub(super) fn has_files(&self) -> bool {
        match &self.form {
            Form::Parts(fields, _) => fields.list.iter().any(|field| field.is_file),
            Form::Binary(_) => true,
            _ => false,
        }
    }

    /// Whether values have to be looked at before they are written.
    pub(super) fn is_checked(&self) -> bool {
        let is_checked = match &self.form {
            Form::Urlencoded(fields) | Form::Parts(fields, _) => {
                fields.list.iter().any(|field| field.is_checked)
            }
            _ => false,
        };
        is_checked || self.has_files()
    }

    /// Notes what keeps values from being written.
    pub(super) fn check(&self, arguments: Raw<'_>, problems: &mut Vec<FieldProblem>) {
        if let Form::Urlencoded(fields) | Form::Parts(fields, _) = &self.form {
            fields.each_given(arguments, |field, value| {
                if field.is_checked {
                    let problem = field.style.problem(Location::Body, value);
                    note(problems, field.exposed.to_string(), problem);
                }
            });
        }
        let mut resources = 0_usize;
        self.each_file(arguments, |name, value| {
            let is_resource = |file: FileValue<'_>| file.resource().is_some();
            resources += usize::from(FileValue::read(value).is_some_and(is_resource));
            let too_many = (resources > RESOURCES_MAX)
                .then_some("is one resource more than the 32 that one call can send");
            note(problems, name, file::problem(value).or(too_many));
        });
    }

    /// The resources that files of the arguments stand for.
    pub(super) fn resources(&self, arguments: Raw<'_>) -> Vec<ResourceUse> {
        let mut uses = Vec::new();
        self.each_file(arguments, |field, value| {
            if let Some(file) = FileValue::read(value)
                && let Some(uri) = file.resource()
            {
                uses.push(ResourceUse { field, uri: uri.to_owned() });
            }
        });
        uses
    }

    /// Calls `each` with the name and value of every file.
    fn each_file(&self, arguments: Raw<'_>, mut each: impl FnMut(String, Raw<'_>)) {
        let mut of_field = |field: &BodyField, value: Raw<'_>| {
            let name = &field.exposed;
            match value.kind() {
                _ if !field.is_file => {}
                Kind::Null => {}
                Kind::Array => value
                    .items()
                    .enumerate()
                    .filter(|(_, item)| !item.is_null())
                    .for_each(|(index, item)| each(format!("{name}[{index}]"), item)),
                _ => each(name.to_string(), value),
            }
        };
        match &self.form {
            Form::Parts(fields, _) => fields.each_given(arguments, of_field),
            Form::Binary(field) => {
                if let Some(value) = arguments.get(&field.exposed) {
                    of_field(field, value);
                }
            }
            _ => {}
        }
    }

    /// The body and its content type, where there is one.
    pub(super) fn build(
        &self,
        arguments: Option<Raw<'_>>,
        resources: &Resources,
    ) -> Option<(Vec<u8>, Arc<str>)> {
        let json = |out| Some((out, Arc::clone(&self.content_type)));
        let room = || Vec::with_capacity(arguments.map_or(0, |raw| raw.text().len()) + 64);
        match &self.form {
            Form::None => None,
            Form::Members(members) => {
                let mut out = room();
                members.write(arguments, &mut out, &mut Tally::default());
                json(out)
            }
            Form::Whole(name, step) => {
                let mut out = room();
                match arguments.and_then(|raw| raw.get(name)) {
                    Some(value) => step.write(value, &mut out, &mut Tally::default()),
                    None if step.write_absent(&mut out) => {}
                    None => return None,
                }
                json(out)
            }
            Form::Urlencoded(fields) => {
                Some((fields.urlencoded(arguments), Arc::clone(&self.content_type)))
            }
            Form::Parts(fields, kind) => {
                Some(fields.parts(kind, &self.content_type, arguments, resources))
            }
            Form::Text(field) => {
                let value = field.value(arguments)?;
                let text = field.style.text(value.raw()).into_owned();
                Some((text.into_bytes(), Arc::clone(&self.content_type)))
            }
            Form::Binary(field) => {
                let value = field.value(arguments)?;
                let mut file = FileValue::read(value.raw())?;
                let bytes = file.bytes(resources).into_owned();
                let content_type = match &file.content_type {
                    Some(given) => given.as_ref().into(),
                    None => Arc::clone(&self.content_type),
                };
                Some((bytes, content_type))
            }
        }
    }
}

fn note(problems: &mut Vec<FieldProblem>, field: String, problem: Option<&'static str>) {
    problems.extend(problem.map(|problem| FieldProblem { field, problem: problem.to_owned() }));
}

/// What a rule says that its body cannot do, and so of all that are below it.
fn check_field(
    node: &Node,
    rules: &[FieldRule],
    format: BodyFormat,
    is_field: bool,
    errors: &mut MappingErrors,
) {
    let rule = node.rule.and_then(|index| rules.get(index));
    let mut refuse = |rule: &FieldRule, problem| {
        errors.note::<()>(Err(MappingError::Rule { field: rule.name(), problem }));
    };
    if let Some(rule) = rule {
        let is_styled = rule.style.is_some() || rule.explode.is_some() || rule.allow_reserved;
        let is_form = matches!(format, BodyFormat::Form | BodyFormat::Multipart);
        if is_styled && !(is_form && is_field) {
            refuse(
                rule,
                "style, explode and allow_reserved are for parameters and the fields of a form; \
                 remove them, or set body_format of the tool to \"form\" or \"multipart\"",
            );
        }
        if rule.content_type.is_some() && (format != BodyFormat::Multipart || !is_field) {
            refuse(
                rule,
                "content_type is for the fields of a multipart body; remove it, or set body_format \
                 of the tool to \"multipart\"",
            );
        }
        if !rule.part_headers.is_empty() && (format != BodyFormat::Multipart || !is_field) {
            refuse(
                rule,
                "part_headers are for the fields of a multipart body; remove them, or set \
                 body_format of the tool to \"multipart\"",
            );
        }
        let takes_files = is_field && matches!(format, BodyFormat::Multipart | BodyFormat::Binary);
        if is_file(node) && !takes_files {
            refuse(
                rule,
                "a file is a field of a multipart body or a whole binary one; set body_format of \
                 the tool to \"multipart\" or \"binary\", or type to \"string\" where the API takes \
                 the bytes as base64 text",
            );
        }
    }
    let mut below = node;
    while let Content::Array(item) = &below.content {
        below = item;
    }
    if let Content::Object(members) = &below.content {
        for member in members {
            check_field(member, rules, format, false, errors);
        }
    }
}

/// What a body is called, by what the tool says and by its format.
fn content_type(body: RequestBody<'_>) -> Result<Arc<str>, MappingError> {
    let refuse = |problem: &str| {
        let given = body.content_type.unwrap_or_default();
        let problem = format!("body_content_type {given:?}: {problem}");
        Err(MappingError::Body { problem })
    };
    let Some(given) = body.content_type else {
        return Ok(match body.format {
            BodyFormat::Json => JSON.into(),
            BodyFormat::Form => FORM.into(),
            BodyFormat::Multipart => PartsKind::Form.usual(),
            BodyFormat::Xml => XML.into(),
            BodyFormat::Text => media::with_charset(TEXT).into(),
            BodyFormat::Binary => OCTETS.into(),
        });
    };
    // The file says what it is.
    if body.format == BodyFormat::Binary {
        return Ok(media::first_of(given).unwrap_or(OCTETS).into());
    }
    if !media::is_media_type(given) {
        return refuse("is no media type; write one such as \"application/json\"");
    }
    let is = |known: &str| media::essence(given).eq_ignore_ascii_case(known);
    match body.format {
        BodyFormat::Json if !media::is_json(given) => refuse(
            "is not one of JSON; set body_format to what the body is, or write a type that ends with \
             \"json\"",
        ),
        BodyFormat::Form if !is(FORM) => refuse(
            "a form is \"application/x-www-form-urlencoded\"; remove it or change body_format",
        ),
        BodyFormat::Multipart => match PartsKind::of(Some(given)) {
            Some(kind) => Ok(kind.usual()),
            None => refuse(
                "parts are sent as \"multipart/form-data\", \"multipart/mixed\" or \
                 \"multipart/related\"; write one of them or change body_format",
            ),
        },
        BodyFormat::Xml if !media::is_xml(given) => refuse(
            "is not one of XML; set body_format to what the body is, or write a type that ends with \
             \"xml\"",
        ),
        BodyFormat::Text | BodyFormat::Xml => Ok(media::with_charset(given).into()),
        BodyFormat::Json | BodyFormat::Form | BodyFormat::Binary => Ok(given.into()),
    }
}

impl Form {
    fn compile(
        fields: &[&Field],
        rules: &[FieldRule],
        body: RequestBody<'_>,
    ) -> Result<Self, MappingError> {
        if !matches!(body.format, BodyFormat::Json | BodyFormat::Xml) {
            return Self::compile_other(fields, rules, body);
        }
        if body.format == BodyFormat::Xml && fields.is_empty() {
            return Self::compile_other(fields, rules, body);
        }
        let direction = Direction::Request;
        if let Some(field) = fields.iter().find(|field| field.whole) {
            let step = Step::compile(&field.node, rules, direction)?;
            return Ok(Self::Whole(field.node.exposed.clone(), Box::new(step)));
        }
        if fields.is_empty() {
            return Ok(Self::None);
        }
        // The other arguments went elsewhere.
        let nodes = fields.iter().map(|field| &field.node);
        Ok(Self::Members(Members::compile(nodes, rules, direction, Unmapped::Drop)?))
    }

    fn compile_other(
        fields: &[&Field],
        rules: &[FieldRule],
        body: RequestBody<'_>,
    ) -> Result<Self, MappingError> {
        let format = body.format;
        let refuse = |problem: &str| Err(MappingError::Body { problem: problem.to_owned() });
        if fields.is_empty() {
            return refuse(
                "body_format: no field is in the body; add a field with location \"body\", or \
                 remove body_format",
            );
        }
        match (format, fields) {
            (BodyFormat::Text, [field]) => {
                let kinds = kinds_of(&field.node);
                if !kinds.has_none_of(Kinds::OBJECT) || !kinds.has_none_of(Kinds::ARRAY) {
                    return refuse(
                        "body_format \"text\": the field is an object or array; a text is a single \
                         value",
                    );
                }
                Ok(Self::Text(Box::new(BodyField::compile(field, rules, format)?)))
            }
            (BodyFormat::Binary, [field]) => {
                let is_file =
                    field.node.schema.is_none() && field.node.field_type == FieldType::File;
                if !is_file {
                    return refuse(
                        "body_format \"binary\": the field is no file; set its type to \"file\"",
                    );
                }
                Ok(Self::Binary(Box::new(BodyField::compile(field, rules, format)?)))
            }
            (BodyFormat::Text | BodyFormat::Binary, _) => refuse(
                "body_format: a text or binary body is one field; keep one with location \"body\"",
            ),
            (BodyFormat::Form, _) => Ok(Self::Urlencoded(Fields::compile(fields, rules, format)?)),
            (BodyFormat::Multipart | BodyFormat::Json | BodyFormat::Xml, _) => {
                // Another kind is an error of the content type.
                let kind = PartsKind::of(body.content_type).unwrap_or_default();
                Ok(Self::Parts(Fields::compile(fields, rules, format)?, kind))
            }
        }
    }
}

#[cfg(test)]
#[path = "body/body_properties_tests.rs"]
mod properties;
#[cfg(test)]
#[path = "body/body_tests.rs"]
mod tests;
