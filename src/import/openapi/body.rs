//! Bodies of requests: which of the described ones is sent, and as which fields.
//!
//! The order, first to last: JSON, JSON-like (`+json`), `application/x-www-form-urlencoded`,
//! `multipart/form-data`, `multipart/mixed`, `multipart/related`, XML of an object or an array,
//! `text/plain`, other texts, `application/octet-stream`, other binary types, and last a type with
//! `*`. A body of JSON or of a form in which a file would have to stand comes after one of parts. The
//! first that can be written is taken and the others are noted; where none can, there is no tool: a
//! request without its body would be another one.

use serde_json::{Value, json};

use super::clean::{self, FIELD_TEXT_MAX};
use super::encoding::{as_single, without_null};
use super::library::Spot;
use super::media::{essence, is_data, is_nameless, is_opaque, is_text, is_xml};
use super::members::{has_parts, is_structured, json_rules, member_rules, words_of};
use super::notes::Notes;
use super::parameters::{self, Declared, is_json};
use super::rules::{self, WHOLE_BODY};
use super::schema::{Allowance, Direction};
use super::words;
use super::{Reader, Version, members, texts};
use crate::mapping::{BodyFormat, FieldRule, FieldType, Location, Requirement, XmlElement};

/// Most content types of one body that are looked at.
const CANDIDATES_MAX: usize = 30;

/// Why bodies are not written.
const UNKNOWN: &str = "it is not known how its schema is written in this type";
const OTHER_PARTS: &str = "of several parts only `multipart/form-data`, `multipart/mixed` and \
                           `multipart/related` are written; describe it as one of them, or as \
                           `application/octet-stream` of format binary";

/// The body that is sent.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) format: BodyFormat,
    /// Where it is not the usual one of the format.
    pub(super) content_type: Option<String>,
    /// The root element where it is XML.
    pub(super) xml: Option<XmlElement>,
    pub(super) rules: Vec<FieldRule>,
    /// What the fields have to keep to together, in words; and as far as it can be checked.
    pub(super) rule: String,
    pub(super) requires: Vec<Requirement>,
    /// Whether a request without it is an error.
    pub(super) is_required: bool,
}

/// A described body.
#[derive(Debug, Clone)]
struct Candidate<'a> {
    media: &'a str,
    format: BodyFormat,
    rank: u8,
    content: Content<'a>,
}

#[derive(Debug, Clone)]
enum Content<'a> {
    Schema {
        schema: Option<Spot<'a>>,
        encoding: Option<Spot<'a>>,
    },
    /// The fields of a Swagger 2.0 form.
    Form(&'a [(&'a str, Spot<'a>)]),
}

impl<'a> Reader<'a> {
    /// The body of an operation; `None` where it has none.
    ///
    /// # Errors
    /// When there is one and none of its forms can be written.
    pub(super) fn body(
        &self,
        operation: Spot<'a>,
        declared: &'a Declared<'a>,
        allowance: &mut Allowance,
        notes: &mut Notes,
    ) -> Result<Option<Body>, String> {
        let (mut candidates, is_required, description) = if self.version == Version::V20 {
            let Some(found) = self.swagger_body(operation, declared) else { return Ok(None) };
            found
        } else {
            let Some(body) = self.index.member(operation, "requestBody") else { return Ok(None) };
            let body = self.index.follow(body).map_err(|error| format!("its body: {error}"))?;
            let candidates = self.candidates(body);
            (candidates, body.flag("required"), body.text("description"))
        };
        if candidates.iter().any(|candidate| candidate.format == BodyFormat::Multipart) {
            for candidate in &mut candidates {
                if candidate.rank < 4 && candidate.format != BodyFormat::Multipart {
                    candidate.rank += if self.wants_file(&candidate.content) { 4 } else { 0 };
                }
            }
        }
        candidates.sort_by(|left, right| (left.rank, left.media).cmp(&(right.rank, right.media)));
        let mut reasons = Vec::new();
        for (index, candidate) in candidates.iter().enumerate() {
            notes.about("body");
            let outcome = self.written(candidate, is_required, allowance, notes);
            notes.about("");
            match outcome {
                Ok(mut body) => {
                    note_others(&candidates, index, notes);
                    body.is_required = is_required == Some(true);
                    if let ([only], Some(text)) = (body.rules.as_mut_slice(), description)
                        && only.source_field_name == WHOLE_BODY
                        && only.description.is_none()
                    {
                        only.description = Some(clean::lines(text, FIELD_TEXT_MAX));
                    }
                    return Ok(Some(body));
                }
                Err(reason) => {
                    reasons.push(format!("{}: {reason}", clean::quoted(candidate.media)));
                }
            }
        }
        if reasons.is_empty() && is_required != Some(true) {
            notes.add("a body without content types is described; none is sent");
            return Ok(None);
        }
        reasons.truncate(6);
        let reasons = if reasons.is_empty() {
            "no content type is said".to_owned()
        } else {
            reasons.join("; ")
        };
        Err(format!("its body cannot be written: {reasons}"))
    }

    fn candidates(&self, body: Spot<'a>) -> Vec<Candidate<'a>> {
        let content = self.index.member(body, "content");
        let mut candidates = Vec::new();
        for (media, value) in members(body.get("content")).take(CANDIDATES_MAX) {
            let Some(content) = content else { continue };
            let Ok(spot) = self.index.follow(self.index.below(content, value)) else { continue };
            let schema = self.index.member(spot, "schema");
            let encoding = self.index.member(spot, "encoding");
            let content = Content::Schema { schema, encoding };
            candidates.push(self.candidate(media, content));
        }
        candidates
    }

    fn swagger_body(
        &self,
        operation: Spot<'a>,
        declared: &'a Declared<'a>,
    ) -> Option<(Vec<Candidate<'a>>, Option<bool>, Option<&'a str>)> {
        let consumes = operation.get("consumes").or_else(|| self.root.get("consumes"));
        let mut medias: Vec<&'a str> = texts(consumes).take(CANDIDATES_MAX).collect();
        if let Some(body) = declared.body {
            if medias.is_empty() {
                medias.push("application/json");
            }
            let schema = self.index.member(body, "schema");
            let content = Content::Schema { schema, encoding: None };
            let candidates = medias.iter().map(|media| self.candidate(media, content.clone()));
            let is_required = body.flag("required").unwrap_or(false);
            return Some((candidates.collect(), Some(is_required), body.text("description")));
        }
        if declared.form.is_empty() {
            return None;
        }
        let has_file = declared.form.iter().any(|(_, spot)| spot.text("type") == Some("file"));
        let multipart = medias.iter().find(|media| media.starts_with("multipart/form-data"));
        let multipart =
            multipart.or_else(|| medias.iter().find(|media| is_nameless(&essence(media))));
        let is_form = medias.iter().any(|media| media.contains("form-urlencoded"));
        let media = match multipart {
            Some(media) if has_file || !is_form => media,
            _ if has_file => "multipart/form-data",
            _ => "application/x-www-form-urlencoded",
        };
        let candidate = self.candidate(media, Content::Form(&declared.form));
        Some((vec![candidate], None, None))
    }

    fn candidate(&self, media: &'a str, content: Content<'a>) -> Candidate<'a> {
        let essence = essence(media);
        let (rank, format) = match essence.as_str() {
            "application/json" => (0, BodyFormat::Json),
            _ if is_json(&essence) => (1, BodyFormat::Json),
            "application/x-www-form-urlencoded" => (2, BodyFormat::Form),
            "multipart/form-data" => (3, BodyFormat::Multipart),
            _ if is_nameless(&essence) && self.has_parts(&content) => (3, BodyFormat::Multipart),
            "text/plain" => (8, BodyFormat::Text),
            _ if is_data(&essence) && self.is_structured(&content) => (7, BodyFormat::Xml),
            _ if is_xml(&essence) => (12, BodyFormat::Text),
            _ if is_text(&essence) => (9, BodyFormat::Text),
            "application/octet-stream" => (10, BodyFormat::Binary),
            _ if essence.contains('*') => (13, self.format_of_any(&essence, &content)),
            _ => (11, BodyFormat::Binary),
        };
        Candidate { media, format, rank, content }
    }

    /// What a type with `*` is sent as.
    fn format_of_any(&self, essence: &str, content: &Content<'a>) -> BodyFormat {
        let is_file = self.wants_file(content);
        let is_described = matches!(content, Content::Schema { schema: Some(_), .. });
        match essence {
            "*/*" | "application/*" if is_described && !is_file => BodyFormat::Json,
            "text/*" => BodyFormat::Text,
            "multipart/*" => BodyFormat::Multipart,
            _ => BodyFormat::Binary,
        }
    }

    /// Whether a body is an object or an array.
    fn is_structured(&self, content: &Content<'a>) -> bool {
        match content {
            Content::Schema { schema, .. } => schema.is_some_and(|schema| self.is_compound(schema)),
            Content::Form(_) => false,
        }
    }

    /// Whether a body can be one of parts.
    fn has_parts(&self, content: &Content<'a>) -> bool {
        matches!(content, Content::Form(_)) || self.is_structured(content)
    }

    /// Whether a body is a file or has one as a member.
    fn wants_file(&self, content: &Content<'a>) -> bool {
        let Content::Schema { schema: Some(schema), .. } = content else { return false };
        let Ok(schema) = self.index.follow(*schema) else { return false };
        let is_file = |spot: Spot<'a>| {
            let spot = self.index.follow(spot).ok();
            spot.and_then(|spot| spot.value.as_object()).is_some_and(rules::is_file)
        };
        is_file(schema)
            || members(schema.get("properties")).any(|(_, member)| {
                let member = self.index.below(schema, member);
                is_file(member) || self.index.member(member, "items").is_some_and(is_file)
            })
    }

    fn written(
        &self,
        candidate: &Candidate<'a>,
        is_required: Option<bool>,
        allowance: &mut Allowance,
        notes: &mut Notes,
    ) -> Result<Body, String> {
        let usual = match candidate.format {
            BodyFormat::Xml => "application/xml",
            BodyFormat::Json => "application/json",
            BodyFormat::Form => "application/x-www-form-urlencoded",
            BodyFormat::Multipart => "multipart/form-data",
            BodyFormat::Text => "text/plain",
            BodyFormat::Binary => "application/octet-stream",
        };
        let is_said = essence(candidate.media) != usual && !candidate.media.contains('*');
        let mut body = Body {
            format: candidate.format,
            content_type: is_said.then(|| clean::line(candidate.media, 200)),
            ..Body::default()
        };
        let (schema, encoding) = match &candidate.content {
            Content::Form(fields) => {
                body.rules = self.form_fields(fields, candidate.format, allowance, notes);
                return Ok(body);
            }
            Content::Schema { schema, encoding } => (*schema, *encoding),
        };
        let root = schema.filter(|_| candidate.format == BodyFormat::Xml);
        let root = root.map(|schema| self.xml_root_of(schema));
        let schema = root.as_ref().map(|root| root.schema).or(schema);
        let converted = schema.map_or_else(
            || json!({}),
            |schema| self.schema(schema, Direction::Input, allowance, notes),
        );
        match candidate.format {
            BodyFormat::Json => {
                if schema.is_none() {
                    notes.add("its schema is not described; any JSON is taken");
                }
                body.rules = json_rules(converted, is_required, &mut body, notes);
            }
            BodyFormat::Xml => {
                let root = root.ok_or("XML without a schema is not written")?;
                let element = self.xml_root(&root, None)?;
                if root.member.is_some() {
                    let name = clean::quoted(&element.name.local);
                    notes.add(format!(
                        "the root element is {name}, the one member of a schema without a name"
                    ));
                }
                body.xml = Some(element);
                body.rules = json_rules(converted, is_required, &mut body, notes);
            }
            BodyFormat::Form | BodyFormat::Multipart => {
                let required = is_required != Some(false);
                let Some(mut rules) = member_rules(converted, required, &mut body, notes) else {
                    let is_form = !is_nameless(&essence(candidate.media));
                    let whole = if is_form { "a form is" } else { "parts are the members of" };
                    return Err(format!("{whole} an object with described members"));
                };
                for rule in &mut rules {
                    without_null(rule);
                    self.encode(rule, encoding, candidate.format, notes)?;
                }
                if let Some(schema) = schema.filter(|_| is_nameless(&essence(candidate.media))) {
                    self.in_order_of(schema, &mut rules);
                    note_root(candidate.media, &rules, notes);
                }
                body.rules = rules;
            }
            BodyFormat::Text => {
                let is_text = words_of(&converted).is_none_or(|words| {
                    let (types, _) = words::types(words);
                    types.contains(&"string") || (types.is_empty() && !is_structured(words))
                });
                let is_xml = is_xml(&essence(candidate.media));
                if !is_text || (is_xml && schema.is_none()) {
                    let reason = if is_xml { "XML of a schema" } else { "text with members" };
                    return Err(format!("{reason} is not written"));
                }
                let rule = whole(converted, is_required);
                body.rules =
                    vec![FieldRule { nullable: false, ..as_single(rule, FieldType::String) }];
            }
            BodyFormat::Binary => {
                // Nothing with members can be sent as octets or a picture, whatever its type says.
                let is_opaque = is_opaque(&essence(candidate.media));
                let is_file = words_of(&converted).is_none_or(|words| {
                    let has_form = if is_opaque { has_parts(words) } else { is_structured(words) };
                    rules::is_file(words) || !has_form
                });
                let has_boundary = essence(candidate.media).starts_with("multipart/");
                if !is_file {
                    return Err(if has_boundary { OTHER_PARTS } else { UNKNOWN }.to_owned());
                }
                let mut rule = as_single(whole(converted, is_required), FieldType::File);
                if has_boundary {
                    rules::tell(&mut rule, "Its contentType has to name the boundary.");
                }
                body.rules = vec![rule];
            }
        }
        Ok(body)
    }

    fn form_fields(
        &self,
        fields: &[(&'a str, Spot<'a>)],
        format: BodyFormat,
        allowance: &mut Allowance,
        notes: &mut Notes,
    ) -> Vec<FieldRule> {
        let mut out = Vec::new();
        for (name, spot) in fields {
            notes.about(format!("form {}", clean::quoted(name)));
            let schema = self.schema(*spot, Direction::Input, allowance, notes);
            let is_required = spot.flag("required") == Some(true);
            let is_file = words_of(&schema).is_some_and(rules::is_file);
            let mut rule = rules::rule(rules::source_of(name), Location::Body, schema, is_required);
            if is_file && format == BodyFormat::Multipart {
                rule = as_single(rule, FieldType::File);
            }
            without_null(&mut rule);
            parameters::set_form_style(&mut rule, *spot, notes);
            out.push(rule);
            notes.about("body");
        }
        out
    }
}

/// Tells of which part the rest is read where that need not be given.
fn note_root(media: &str, rules: &[FieldRule], notes: &mut Notes) {
    if let (true, Some(first)) = (essence(media) == "multipart/related", rules.first())
        && !first.required
    {
        let name = clean::quoted(&first.source_field_name);
        notes.add(format!("the first part that is given is the root; {name} is meant to be it"));
    }
}

/// Notes the bodies that could be sent too.
fn note_others(candidates: &[Candidate<'_>], taken: usize, notes: &mut Notes) {
    let others = candidates.iter().enumerate().filter(|(index, _)| *index != taken);
    let others: Vec<String> =
        others.map(|(_, candidate)| clean::quoted(candidate.media)).take(6).collect();
    if let (false, Some(taken)) = (others.is_empty(), candidates.get(taken)) {
        let taken = clean::quoted(taken.media);
        notes.add(format!("the body is sent as {taken}, not as {}", others.join(", ")));
    }
}

/// The body as one field.
pub(super) fn whole(schema: Value, is_required: Option<bool>) -> FieldRule {
    rules::rule(WHOLE_BODY.to_owned(), Location::Body, schema, is_required == Some(true))
}
