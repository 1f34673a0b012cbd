//! Answers: the fields of what a success brings, where the description guarantees that they are
//! fields of one object. Where it does not, nothing is said and answers pass as they are.

use serde_json::{Map, Value};

use super::clean;
use super::library::Spot;
use super::media::{essence, is_xml};
use super::notes::Notes;
use super::parameters::is_json;
use super::rules;
use super::schema::{Allowance, Direction};
use super::words;
use super::xml::Root;
use super::{Reader, Version, members, texts};
use crate::mapping::{FieldRule, Location, RULES_MAX, XmlElement};

/// Most successes of one operation that are looked at.
const SUCCESSES_MAX: usize = 12;

/// What the root element of an answer is called that the description gives no name.
const ROOT: &str = "root";
/// Most content types that are looked at.
const MEDIAS_MAX: usize = 100;
/// Most content types that are asked for, and what any other is worth beside them.
const ASKED_MAX: usize = 8;
const ANY_OTHER: &str = "*/*;q=0.1";

/// What of an answer is described.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) rules: Vec<FieldRule>,
    /// What no rule names passes.
    pub(super) pass_unmapped: bool,
    /// The root element where it is XML.
    pub(super) xml: Option<XmlElement>,
}

/// What one status is described to bring.
enum Content<'a> {
    Nothing,
    Json(Option<Spot<'a>>),
    Xml(Spot<'a>),
    Other,
}

impl<'a> Reader<'a> {
    /// The `Accept` that a request needs, as a rule that no client sees.
    pub(super) fn accept(&self, operation: Spot<'a>) -> Option<FieldRule> {
        let mut medias: Vec<&'a str> = Vec::new();
        if self.version == Version::V20 {
            let produces = operation.get("produces").or_else(|| self.root.get("produces"));
            medias.extend(texts(produces).take(MEDIAS_MAX));
        } else {
            let responses = self.index.member(operation, "responses")?;
            let all = members(Some(responses.value));
            let successes = all.filter(|(key, _)| key.starts_with('2')).take(SUCCESSES_MAX);
            for (_, response) in successes {
                let response = self.index.follow(self.index.below(responses, response));
                let content = response.ok().and_then(|spot| self.index.member(spot, "content"));
                let listed = content.and_then(|content| content.value.as_object());
                medias.extend(listed.into_iter().flatten().map(|(media, _)| media.as_str()));
            }
            medias.truncate(MEDIAS_MAX);
        }
        let accepted = accepted(&medias)?;
        let rule = FieldRule::new("Accept", Location::Header);
        Some(FieldRule { constant: Some(Value::String(accepted)), ..rule })
    }

    /// What the successes of an operation bring.
    pub(super) fn answer(
        &self,
        operation: Spot<'a>,
        allowance: &mut Allowance,
        notes: &mut Notes,
    ) -> Answer {
        let responses = self.index.member(operation, "responses");
        let mut answer: Option<Answer> = None;
        let mut is_guaranteed = true;
        let mut xml = None;
        notes.about("answer");
        let successes = members(operation.get("responses")).filter(|(key, _)| key.starts_with('2'));
        for (_, response) in successes.take(SUCCESSES_MAX) {
            let Some(responses) = responses else { continue };
            let response = self.index.follow(self.index.below(responses, response));
            let response = match response {
                Ok(response) => response,
                Err(error) => {
                    notes.add(error);
                    is_guaranteed = false;
                    continue;
                }
            };
            let content = self.content(operation, response, notes);
            if let Content::Xml(schema) = content {
                xml = match (xml, self.xml_root(&Root::of(schema), Some(ROOT))) {
                    (None, Ok(root)) => Some(Ok(root)),
                    (Some(Ok(known)), Ok(root)) if known == root => Some(Ok(known)),
                    (Some(Err(error)), _) | (None, Err(error)) => Some(Err(error)),
                    (Some(Ok(_)), _) => Some(Err("its successes differ".to_owned())),
                };
            }
            match content {
                Content::Nothing => {}
                Content::Json(Some(schema)) | Content::Xml(schema) => {
                    let found = self.fields(schema, allowance, answer.is_some());
                    is_guaranteed &= found.is_some();
                    answer = answer.or(found);
                }
                Content::Json(None) | Content::Other => is_guaranteed = false,
            }
        }
        let xml = match xml {
            None => None,
            Some(Ok(root)) => Some(root),
            Some(Err(error)) => {
                notes.add(format!("it is XML that is given as text: {error}"));
                is_guaranteed = false;
                None
            }
        };
        notes.about("");
        let answer = answer.filter(|_| is_guaranteed).unwrap_or_default();
        Answer { xml, ..answer }
    }

    fn content(&self, operation: Spot<'a>, response: Spot<'a>, notes: &mut Notes) -> Content<'a> {
        if self.version == Version::V20 {
            let Some(schema) = self.index.member(response, "schema") else {
                return Content::Nothing;
            };
            let produces = operation.get("produces").or_else(|| self.root.get("produces"));
            let medias: Vec<&str> = texts(produces).collect();
            let is_file = schema.text("type") == Some("file");
            let is_json = medias.is_empty() || medias.iter().any(|media| brings_json(media));
            let xml = medias.iter().find(|media| brings_xml(media));
            if let Some(media) = xml.filter(|_| !is_file && !is_json) {
                return self.xml_content(schema, media, notes);
            }
            if is_file || !is_json {
                note_other(medias.first().copied().filter(|_| !is_file).unwrap_or("a file"), notes);
                return Content::Other;
            }
            return Content::Json(Some(schema));
        }
        let Some(content) = self.index.member(response, "content") else { return Content::Nothing };
        let Some(medias) = content.value.as_object().filter(|medias| !medias.is_empty()) else {
            return Content::Nothing;
        };
        let found = medias.iter().find(|(media, _)| is_json(media));
        let found = found.or_else(|| medias.iter().find(|(media, _)| brings_json(media)));
        let found = found.or_else(|| medias.iter().find(|(media, _)| brings_xml(media)));
        let Some((media, value)) = found else {
            note_other(medias.keys().next().map_or("nothing", String::as_str), notes);
            return Content::Other;
        };
        let value = self.index.follow(self.index.below(content, value)).ok();
        let schema = value.and_then(|value| self.index.member(value, "schema"));
        match schema {
            Some(schema) if brings_xml(media) => self.xml_content(schema, media, notes),
            None if brings_xml(media) => {
                note_other(media, notes);
                Content::Other
            }
            schema => Content::Json(schema),
        }
    }

    /// XML of an object or an array; a single value is the text of the document.
    fn xml_content(&self, schema: Spot<'a>, media: &str, notes: &mut Notes) -> Content<'a> {
        if self.is_compound(schema) {
            return Content::Xml(schema);
        }
        note_other(media, notes);
        Content::Other
    }

    /// The members of an object; `None` where another value is allowed in its place.
    fn fields(&self, schema: Spot<'a>, allowance: &mut Allowance, again: bool) -> Option<Answer> {
        // What is left out of an answer's description still passes: nobody need be told.
        let mut unheard = Notes::default();
        let mut small = Allowance::small();
        let allowance = if again { &mut small } else { allowance };
        let converted = self.schema(schema, Direction::Output, allowance, &mut unheard);
        let Value::Object(mut words) = converted else { return None };
        let (types, _) = words::types(&words);
        let is_object = types.contains(&"object")
            && types.iter().all(|word| matches!(*word, "object" | "null"));
        let Some(Value::Object(members)) = words.remove("properties") else { return None };
        if !is_object || members.is_empty() || members.len() > RULES_MAX {
            return None;
        }
        // A field that answers should not have must not pass for one that is merely not described.
        let hides = self.hides(schema);
        Some(Answer { rules: rules_of(members), pass_unmapped: !hides, xml: None })
    }

    /// Whether members are written only.
    fn hides(&self, schema: Spot<'a>) -> bool {
        let Ok(schema) = self.index.follow(schema) else { return false };
        let own = members(schema.get("properties"));
        let is_hidden = |member: &'a Value| {
            let member = self.index.below(schema, member);
            let says = |spot: Spot<'a>| spot.flag("writeOnly") == Some(true);
            says(member) || self.index.follow(member).is_ok_and(says)
        };
        own.into_iter().any(|(_, member)| is_hidden(member))
    }
}

fn rules_of(members: Map<String, Value>) -> Vec<FieldRule> {
    let schema = Map::from_iter([("properties".to_owned(), Value::Object(members))]);
    let rules = rules::of_members(schema).into_iter();
    rules.map(|rule| FieldRule { nullable: false, default: None, ..rule }).collect()
}

fn brings_json(media: &str) -> bool {
    is_json(media) || matches!(media.trim(), "*/*" | "application/*")
}

fn brings_xml(media: &str) -> bool {
    is_xml(&essence(media))
}

fn note_other(media: &str, notes: &mut Notes) {
    notes.add(format!("it is {}, not JSON", clean::quoted(media)));
}

/// What to ask for where the described types are others than the runtime asks for by itself: those
/// of JSON where there are some, else all, in their order.
fn accepted(medias: &[&str]) -> Option<String> {
    let essence = |media: &str| media.split(';').next().unwrap_or_default().trim().to_owned();
    let is_usual = |media: &str| {
        matches!(essence(media).as_str(), "application/json" | "application/*" | "*/*")
    };
    if medias.iter().any(|media| is_usual(media)) {
        return None;
    }
    let is_sound = |media: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.+-*_!#$&^".contains(&byte);
        media.matches('/').count() == 1 && media.len() < 100 && media.bytes().all(is_plain)
    };
    let has_json = medias.iter().any(|media| is_json(media));
    let wanted = medias.iter().filter(|media| !has_json || is_json(media));
    let mut asked: Vec<String> = Vec::new();
    for media in wanted.map(|media| essence(media)).filter(|media| is_sound(media)) {
        if asked.len() < ASKED_MAX && !asked.contains(&media) {
            asked.push(media);
        }
    }
    if asked.is_empty() {
        return None;
    }
    asked.push(ANY_OTHER.to_owned());
    Some(asked.join(", "))
}
