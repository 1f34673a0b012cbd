//! Parameters of an operation: those of its path and its own, each as a field rule with the style
//! it is written in.

use serde_json::Value;

use super::clean::{self, FIELD_TEXT_MAX};
use super::library::Spot;
use super::notes::Notes;
use super::rules;
use super::schema::{Allowance, Direction};
use super::templates::Template;
use super::words;
use super::{Reader, Version, items};
use crate::mapping::{FieldRule, FieldType, Location, ParameterStyle, RULES_MAX};

/// Headers that are not described as parameters: they say something about the body or the caller
/// (OpenAPI 3.1, section 4.8.12.1).
const IGNORED_HEADERS: [&str; 3] = ["accept", "content-type", "authorization"];
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The parameters that an operation declares.
#[derive(Debug, Default)]
pub(super) struct Declared<'a> {
    /// By place and name; those of the operation in place of those of the path.
    placed: Vec<(Location, &'a str, Spot<'a>)>,
    /// `in: body` of Swagger 2.0.
    pub(super) body: Option<Spot<'a>>,
    /// `in: formData` of Swagger 2.0.
    pub(super) form: Vec<(&'a str, Spot<'a>)>,
}

/// What became of them.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    pub(super) rules: Vec<FieldRule>,
    /// The header that takes a key of the call's own.
    pub(super) idempotency_key_header: Option<String>,
}

impl<'a> Declared<'a> {
    fn add(&mut self, name: &'a str, place: &str, spot: Spot<'a>) -> Result<(), String> {
        let location = match place {
            "path" => Location::Path,
            "query" => Location::Query,
            "header" => Location::Header,
            "cookie" => Location::Cookie,
            "body" => {
                self.body = Some(spot);
                return Ok(());
            }
            "formData" => {
                self.form.retain(|(known, _)| *known != name);
                self.form.push((name, spot));
                return Ok(());
            }
            other => return Err(format!("it is in {}, which is no place", clean::quoted(other))),
        };
        let is_same = |known: &str| match location {
            Location::Header => known.eq_ignore_ascii_case(name),
            _ => known == name,
        };
        let found = self.placed.iter_mut().find(|(at, known, _)| *at == location && is_same(known));
        match found {
            Some(known) => *known = (location, name, spot),
            None => self.placed.push((location, name, spot)),
        }
        Ok(())
    }

    /// The names of those in the path.
    pub(super) fn path_names(&self) -> Vec<&'a str> {
        let in_path = self.placed.iter().filter(|(location, ..)| *location == Location::Path);
        in_path.map(|(_, name, _)| *name).collect()
    }
}

impl<'a> Reader<'a> {
    /// Reads the `parameters` of all holders; later ones go before earlier ones.
    ///
    /// # Errors
    /// When there are more than a mapping may have, or one cannot be read without which a request
    /// may be less than the description demands.
    pub(super) fn declared(
        &self,
        holders: &[Spot<'a>],
        notes: &mut Notes,
    ) -> Result<Declared<'a>, String> {
        let mut declared = Declared::default();
        for holder in holders {
            if items(holder.get("parameters")).count() > RULES_MAX {
                return Err(format!("it has more than {RULES_MAX} parameters"));
            }
            for parameter in items(holder.get("parameters")) {
                let parameter = self.index.below(*holder, parameter);
                let followed = self.index.follow(parameter);
                // Nobody knows whether one is required that is not there.
                let may_be_required = match &followed {
                    Ok(spot) => {
                        spot.flag("required") == Some(true) || spot.text("in") == Some("path")
                    }
                    Err(_) => parameter.flag("required") != Some(false),
                };
                let outcome = followed.and_then(|spot| {
                    let name = spot.text("name");
                    let place = spot.text("in").ok_or("it has no `in`")?;
                    let name = name.or((place == "body").then_some(""));
                    declared.add(name.ok_or("it has no `name`")?, place, spot)
                });
                if let Err(error) = outcome {
                    let name = parameter.text("name").map(clean::quoted);
                    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
                    let reason = format!("a parameter{name} cannot be read: {error}");
                    if may_be_required {
                        return Err(reason);
                    }
                    notes.add(reason);
                }
            }
        }
        Ok(declared)
    }

    /// The rules of all parameters that are no part of the body.
    pub(super) fn parameters(
        &self,
        declared: &Declared<'a>,
        template: &Template,
        allowance: &mut Allowance,
        notes: &mut Notes,
    ) -> Parameters {
        let mut parameters = Parameters::default();
        let placeholders = template.placeholders.as_slice();
        for (location, name, spot) in &declared.placed {
            let is_required = spot.flag("required") == Some(true);
            notes.about(format!("{location} {}", clean::quoted(name)));
            let lower = name.to_ascii_lowercase();
            let is_placeholder = placeholders.iter().any(|known| known == name);
            if *location == Location::Path && !is_placeholder {
                match template.asked_by(name) {
                    Some(asked) => parameters.rules.push(FieldRule {
                        required: true,
                        exposed_field_name: asked.exposed(),
                        ..self.parameter(*spot, Location::Query, &asked.name, allowance, notes)
                    }),
                    None => notes.add("the path has no such placeholder; left out"),
                }
            } else if *location == Location::Header && IGNORED_HEADERS.contains(&lower.as_str()) {
                notes.add("this header is set by the runtime or the credential; left out");
            } else if *location == Location::Header && lower == IDEMPOTENCY_KEY {
                notes.add("it gets a key of the call's own and is no argument");
                parameters.idempotency_key_header = Some((*name).to_owned());
            } else {
                let rule = self.parameter(*spot, *location, name, allowance, notes);
                parameters.rules.push(FieldRule {
                    required: is_required || *location == Location::Path,
                    ..rule
                });
            }
            notes.about("");
        }
        let path_names = declared.path_names();
        let mut added: Vec<&str> = Vec::new();
        for name in placeholders.iter().map(String::as_str) {
            if path_names.contains(&name) || added.contains(&name) {
                continue;
            }
            added.push(name);
            notes.add(format!("path {}: not described; it is taken as text", clean::quoted(name)));
            parameters.rules.push(FieldRule {
                required: true,
                field_type: Some(FieldType::String),
                ..FieldRule::new(name, Location::Path)
            });
        }
        for asked in &template.asked {
            let has_it = |(location, name, _): &(Location, &str, Spot<'_>)| match location {
                Location::Query => *name == asked.name,
                Location::Path => *name == asked.argument,
                _ => false,
            };
            if declared.placed.iter().any(has_it) {
                continue;
            }
            let name = clean::quoted(&asked.name);
            notes.add(format!("query {name}: described in the path only; it is taken as text"));
            parameters.rules.push(FieldRule {
                required: asked.is_required,
                exposed_field_name: asked.exposed(),
                field_type: Some(FieldType::String),
                ..FieldRule::new(asked.name.as_str(), Location::Query)
            });
        }
        parameters
    }

    fn parameter(
        &self,
        spot: Spot<'a>,
        location: Location,
        name: &str,
        allowance: &mut Allowance,
        notes: &mut Notes,
    ) -> FieldRule {
        let mut style = self.style(spot, location, notes);
        let schema = if self.version == Version::V20 {
            Some(spot)
        } else if let Some((media, content)) = self.content_of(spot, notes) {
            if is_json(media) {
                style = Writing { style: Some(ParameterStyle::Json), ..Writing::default() };
            }
            self.index.member(content, "schema")
        } else {
            self.index.member(spot, "schema")
        };
        let schema = if let Some(schema) = schema {
            self.schema(schema, Direction::Input, allowance, notes)
        } else {
            notes.add("it has no schema; it is taken as text");
            serde_json::json!({ "type": "string" })
        };
        let is_single = is_single(&schema);
        let mut rule = rules::rule(name.to_owned(), location, schema, false);
        if let Some(text) = spot.text("description").filter(|text| !text.is_empty()) {
            rule.description = Some(clean::lines(text, FIELD_TEXT_MAX));
        }
        if spot.flag("deprecated") == Some(true) {
            rules::deprecate(&mut rule);
        }
        let always = matches!(
            style.style,
            Some(ParameterStyle::Label | ParameterStyle::Matrix | ParameterStyle::Json)
        );
        if !is_single || always {
            (rule.style, rule.explode) = (style.style, style.explode);
        }
        rule.allow_reserved = style.allow_reserved;
        rule
    }

    /// The one media type of a `content` parameter.
    fn content_of(&self, spot: Spot<'a>, notes: &mut Notes) -> Option<(&'a str, Spot<'a>)> {
        let content = self.index.member(spot, "content")?;
        let types = content.value.as_object()?;
        let (media, value) =
            types.iter().find(|(media, _)| is_json(media)).or_else(|| types.iter().next())?;
        if types.len() > 1 {
            notes.add(format!("of its content types {} is taken", clean::quoted(media)));
        }
        Some((media, self.index.below(content, value)))
    }

    fn style(&self, spot: Spot<'a>, location: Location, notes: &mut Notes) -> Writing {
        if self.version == Version::V20 {
            return collection_format(spot, location, notes);
        }
        let default = default_style(location);
        let word = spot.text("style");
        let style = word.and_then(|word| match (word, location) {
            ("simple", Location::Path | Location::Header) => Some(ParameterStyle::Simple),
            ("label", Location::Path) => Some(ParameterStyle::Label),
            ("matrix", Location::Path) => Some(ParameterStyle::Matrix),
            ("form", Location::Query | Location::Cookie) => Some(ParameterStyle::Form),
            ("spaceDelimited", Location::Query) => Some(ParameterStyle::SpaceDelimited),
            ("pipeDelimited", Location::Query) => Some(ParameterStyle::PipeDelimited),
            ("deepObject", Location::Query) => Some(ParameterStyle::DeepObject),
            _ => None,
        });
        if let (Some(word), None) = (word, style) {
            let word = clean::quoted(word);
            notes.add(format!("the style {word} does not exist there; the usual one is taken"));
        }
        let explode = spot.flag("explode");
        let of_form = matches!(style.unwrap_or(default), ParameterStyle::Form);
        let is_usual = |explode: &bool| *explode == of_form;
        let is_deep = style == Some(ParameterStyle::DeepObject);
        Writing {
            style: style.filter(|style| *style != default),
            explode: explode.filter(|explode| !is_usual(explode) && !is_deep),
            allow_reserved: location == Location::Query && spot.flag("allowReserved") == Some(true),
        }
    }
}

/// How a parameter is written, where it is not the usual way of its place.
#[derive(Debug, Default)]
struct Writing {
    style: Option<ParameterStyle>,
    explode: Option<bool>,
    allow_reserved: bool,
}

const fn default_style(location: Location) -> ParameterStyle {
    match location {
        Location::Path | Location::Header => ParameterStyle::Simple,
        Location::Query | Location::Cookie | Location::Body => ParameterStyle::Form,
    }
}

/// Swagger 2.0's word for the same: arrays are `a,b` unless it says otherwise, also in the query.
fn collection_format(spot: Spot<'_>, location: Location, notes: &mut Notes) -> Writing {
    if spot.text("type") != Some("array") {
        return Writing::default();
    }
    style_of_collection(spot.text("collectionFormat"), location, notes)
}

fn style_of_collection(word: Option<&str>, location: Location, notes: &mut Notes) -> Writing {
    let in_query = matches!(location, Location::Query | Location::Body);
    let delimited = |style| Writing { style: Some(style), ..Writing::default() };
    match word {
        Some("multi") if in_query => Writing::default(),
        Some("ssv") if in_query => delimited(ParameterStyle::SpaceDelimited),
        Some("pipes") if in_query => delimited(ParameterStyle::PipeDelimited),
        None | Some("csv") => Writing { explode: in_query.then_some(false), ..Writing::default() },
        Some(other) => {
            let other = clean::quoted(other);
            notes.add(format!("the collection format {other} cannot be written; `csv` is taken"));
            Writing { explode: in_query.then_some(false), ..Writing::default() }
        }
    }
}

/// Sets the style of a field of a Swagger 2.0 form.
pub(super) fn set_form_style(rule: &mut FieldRule, spot: Spot<'_>, notes: &mut Notes) {
    if spot.text("type") == Some("array") {
        let style = style_of_collection(spot.text("collectionFormat"), Location::Body, notes);
        (rule.style, rule.explode) = (style.style, style.explode);
    }
}

/// Whether values are plainly neither arrays nor objects.
fn is_single(schema: &Value) -> bool {
    let Value::Object(words) = schema else { return false };
    let (types, _) = words::types(words);
    !types.is_empty() && !types.iter().any(|word| matches!(*word, "array" | "object"))
}

/// Whether a content type is one of JSON.
pub(super) fn is_json(media: &str) -> bool {
    let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "text/json"
        || essence
            .strip_prefix("application/")
            .is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_by_its_content_type() {
        for media in ["application/json", "application/hal+json; charset=utf-8", "Text/JSON"] {
            assert!(is_json(media), "{media}");
        }
        for media in ["application/x-ndjson", "application/json-seq", "*/*", "text/plain"] {
            assert!(!is_json(media), "{media}");
        }
    }
}
