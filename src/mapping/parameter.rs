//! One parameter: a field in path, query, headers or cookies.

use serde_json::Value;

use super::placement;
use super::shape::{Content, Field};
use super::style::Style;
use super::translate::{Direction, Step};
use super::{FieldRule, Location, MappingError, digits};
use crate::http::query_pairs;
use crate::json::{OwnedRaw, Raw};

#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) location: Location,
    /// On the wire: percent-encoded in path and query, as it is elsewhere.
    pub(super) name: Box<str>,
    pub(super) style: Style,
    pub(super) is_checked: bool,
    /// To what the API takes, where that is not what clients write.
    pub(super) step: Option<Box<Step>>,
    pub(super) constant: Option<OwnedRaw>,
    default: Option<OwnedRaw>,
}

impl Parameter {
    pub(super) fn compile(
        field: &Field,
        rule: &FieldRule,
        rules: &[FieldRule],
        names: &Names<'_>,
    ) -> Result<Self, MappingError> {
        let location = field.location;
        let mut name = field.node.source.to_string();
        match location {
            Location::Header | Location::Cookie => placement::check_name(rule, &name)?,
            Location::Path | Location::Query => {
                name.clear();
                placement::encode(&mut name, &field.node.source);
            }
            Location::Body => {}
        }
        let mut style = Style::compile(rule, &field.node)?;
        if location == Location::Path && names.beside_dots.contains(&field.node.source) {
            style.keep_edges();
        }
        if style.gives_names(&field.node) {
            style.keep_from(&field.node.source, names.beside(field));
        }
        // What is said of a single value is of no matter to its text.
        let has_names = !matches!(field.node.content, Content::Leaf);
        let step = (has_names || style.is_json())
            .then(|| Step::compile(&field.node, rules, Direction::Request))
            .transpose()?;
        let default = rule.default.as_ref().filter(|_| rule.send_default);
        let fixed = |value: Option<&Value>| {
            let value = value.filter(|value| !value.is_null() || !rule.nullable);
            value.map(|value| fixed(rule, &style, value)).transpose()
        };
        Ok(Self {
            location,
            constant: fixed(rule.constant.as_ref())?,
            default: fixed(default)?,
            name: name.into_boxed_str(),
            is_checked: style.is_checked(location, &field.node),
            style,
            step: step.filter(|step| !step.is_plain()).map(Box::new),
        })
    }

    /// What is sent without a value of the call.
    pub(super) fn absent(&self) -> Option<Raw<'_>> {
        self.constant.as_ref().or(self.default.as_ref()).map(OwnedRaw::as_raw)
    }

    /// What keeps a value from its place.
    pub(super) fn problem(&self, value: Raw<'_>) -> Option<&'static str> {
        self.style.problem(self.location, value)
    }

    pub(super) fn sets_content_type(&self) -> bool {
        self.location == Location::Header && self.name.eq_ignore_ascii_case("content-type")
    }
}

fn fixed(rule: &FieldRule, style: &Style, value: &Value) -> Result<OwnedRaw, MappingError> {
    let refuse = |problem| MappingError::Fixed { field: rule.name(), problem };
    if value.is_null() {
        return Err(refuse("is no value that can be sent here"));
    }
    let sent = if rule.as_string { digits::sent(value) } else { value.to_string() };
    let owned = OwnedRaw::parse(sent.as_bytes());
    let owned = owned.map_err(|_| refuse("cannot be written as JSON"))?;
    match style.problem(rule.location, owned.as_raw()) {
        Some(problem) => Err(refuse(problem)),
        None => Ok(owned),
    }
}

/// The names of a request that members of a value must not take, and those with dots beside them.
pub(super) struct Names<'a> {
    fields: &'a [Field],
    /// Those of the query of the template.
    query: Vec<String>,
    /// Placeholders with dots beside them.
    beside_dots: Vec<Box<str>>,
}

impl<'a> Names<'a> {
    pub(super) fn of(fields: &'a [Field], path_template: &str) -> Self {
        let query = path_template.split_once('?').map_or("", |(_, query)| query);
        Self {
            fields,
            query: query_pairs(query).map(|(name, _)| name.into_owned()).collect(),
            beside_dots: placement::beside_dots(path_template),
        }
    }

    /// Those beside a field.
    fn beside(&self, field: &Field) -> impl Iterator<Item = &str> {
        let (location, source) = (field.location, field.node.source.clone());
        let fields = self
            .fields
            .iter()
            .filter(move |other| other.location == location && other.node.source != source);
        let query = self.query.iter().filter(move |_| location == Location::Query);
        fields.map(|field| &*field.node.source).chain(query.map(String::as_str))
    }
}
