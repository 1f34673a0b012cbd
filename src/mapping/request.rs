//! Requests: arguments checked against the schema and placed where the API wants them.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use smallvec::SmallVec;

use super::arguments::{self, Arguments, ArgumentsText, SentDefault};
use super::error::{FieldProblem, InvalidArguments};
use super::placement::{self, Piece};
use super::repair::{Expected, Repairs};
use super::shape::{self, Field};
use super::translate::{Direction, Members, Step, Tally, Unmapped};
use super::validator::Validator;
use super::{FieldRule, Location, MappingError, MappingErrors, check_count, digits, schema};
use crate::json::{Kind, OwnedRaw, Raw};

const JSON: &str = "application/json";

/// The compiled request of one tool.
#[derive(Debug)]
pub struct RequestPlan {
    method: Arc<str>,
    content_type: Arc<str>,
    schema: Value,
    validator: Validator,
    expected: Expected,
    /// Single values that are sent when a call does not have them, by the path of their field.
    sent_defaults: Vec<SentDefault>,
    /// The path, and the query that the template has.
    target: Vec<TargetPiece>,
    has_query: bool,
    parameters: Vec<Parameter>,
    /// Parameters by exposed name, in its order.
    by_name: Vec<(Box<str>, usize)>,
    /// Values of some parameters have to be looked at before they are placed.
    checks_values: bool,
    body: Body,
}

#[derive(Debug)]
enum TargetPiece {
    Text(Box<str>),
    /// Of `RequestPlan::parameters`.
    Parameter(usize),
}

#[derive(Debug)]
struct Parameter {
    location: Location,
    /// On the wire: percent-encoded in the query, as it is elsewhere.
    name: Box<str>,
    constant: Option<OwnedRaw>,
    default: Option<OwnedRaw>,
}

#[derive(Debug)]
enum Body {
    None,
    /// An object of the arguments that belong there.
    Members(Members),
    /// One argument is the whole body.
    Whole(Box<str>, Box<Step>),
}

/// What to send, without where to send it: the target is to be joined to the base path of a
/// connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingRequest {
    /// In capitals.
    pub method: Arc<str>,
    /// Path and query, percent-encoded, starting with `/`.
    pub target: String,
    /// In the order of their rules; cookies are one `Cookie` header at the end. Free of CR, LF and
    /// NUL; never one that frames the message.
    pub headers: Vec<(String, String)>,
    /// JSON.
    pub body: Option<Vec<u8>>,
    /// Of the body; `None` without one.
    pub content_type: Option<Arc<str>>,
}

impl RequestPlan {
    /// Compiles the request of a tool from its method, its path (`/orders/{id}`) and its rules.
    ///
    /// # Errors
    ///
    /// Names every rule, and the path or the method, that does not fit and what to change.
    pub fn compile(
        method: &str,
        path_template: &str,
        rules: &[FieldRule],
    ) -> Result<Self, MappingErrors> {
        check_count(rules)?;
        let mut errors = MappingErrors::default();
        let fields = shape::request_fields(rules, &mut errors);
        let has_body = fields.iter().any(|field| field.location == Location::Body);
        let method = errors.note(checked_method(method, has_body)).unwrap_or_default();
        let mut content_type = Arc::from(JSON);
        let mut parameters = Vec::new();
        let mut by_name = Vec::new();
        let mut placeholders = Vec::new();
        for field in fields.iter().filter(|field| field.location != Location::Body) {
            let Some(rule) = field.node.rule.and_then(|index| rules.get(index)) else { continue };
            let Some(parameter) = errors.note(Parameter::compile(field, rule)) else { continue };
            let constant = parameter.constant.as_ref();
            if let Some(constant) = constant.filter(|_| parameter.sets_content_type()) {
                content_type = constant.as_raw().as_str().unwrap_or_default().into();
                continue;
            }
            if !field.node.is_hidden(rules) {
                by_name.push((field.node.exposed.clone(), parameters.len()));
            }
            if field.location == Location::Path {
                placeholders.push((field.node.source.clone(), parameters.len(), rule.name()));
            }
            parameters.push(parameter);
        }
        // The rest has to see every field.
        errors.check()?;
        let schema = schema::schema_of_fields(&fields, rules);
        by_name.sort_unstable();
        let checked =
            |parameter: &Parameter| matches!(parameter.location, Location::Path | Location::Header);
        Ok(Self {
            method,
            content_type,
            validator: Validator::compile(&schema)?,
            expected: Expected::of(&schema),
            sent_defaults: SentDefault::all(&fields, rules),
            schema,
            target: target(path_template, &placeholders)?,
            has_query: path_template.contains('?'),
            checks_values: parameters.iter().any(checked),
            parameters,
            by_name,
            body: Body::compile(&fields, rules)?,
        })
    }

    /// The schema that arguments are checked against; the same as
    /// [`input_schema`](super::input_schema) gives.
    pub const fn input_schema(&self) -> &Value {
        &self.schema
    }

    /// Whether calls can have a single value at a path of exposed names, so that
    /// [`argument_text`](Self::argument_text) reads it.
    pub fn has_single_argument(&self, path: &str) -> bool {
        arguments::is_single(&self.schema, path)
    }

    /// The single value at a path of exposed names as it will be sent: that of the arguments, see
    /// [`Arguments::text_of`], else the default where that is sent. `None` where nothing is sent.
    pub fn argument_text<'a>(
        &'a self,
        arguments: &'a Arguments<'_>,
        path: &str,
    ) -> Option<Cow<'a, str>> {
        arguments.text_of(path).or_else(|| {
            let default =
                self.sent_defaults.iter().find(|default| default.is_sent(path, arguments));
            default.map(SentDefault::text)
        })
    }

    /// Checks the arguments of a call. Absent and `null` mean `{}`.
    ///
    /// # Errors
    ///
    /// Names every bad field by its exposed path and says what is expected there.
    pub fn validate<'a>(
        &self,
        arguments: Option<Raw<'a>>,
    ) -> Result<Arguments<'a>, InvalidArguments> {
        let text = match arguments {
            None => ArgumentsText::Absent,
            Some(raw) => match raw.kind() {
                Kind::Null => ArgumentsText::Absent,
                Kind::Object => ArgumentsText::Given(raw),
                other => return Err(not_an_object(other)),
            },
        };
        let mut arguments = Arguments { text, repairs: Repairs::default() };
        if !self.validator.accepts(object(&arguments)) {
            if let Some((repaired, repairs)) = self.expected.repair(object(&arguments)) {
                arguments = Arguments { text: ArgumentsText::Repaired(repaired), repairs };
            }
            if arguments.repairs.count == 0 || !self.validator.accepts(object(&arguments)) {
                return Err(self.problems(object(&arguments)));
            }
        }
        if self.checks_values {
            self.check_values(object(&arguments))?;
        }
        Ok(arguments)
    }

    #[cold]
    fn problems(&self, arguments: Raw<'_>) -> InvalidArguments {
        let mut problems = self.validator.problems(arguments);
        if problems.is_empty() {
            let problem = "the arguments do not fit the schema of the tool".to_owned();
            problems.push(FieldProblem { field: String::new(), problem });
        }
        InvalidArguments::new(problems)
    }

    fn check_values(&self, arguments: Raw<'_>) -> Result<(), InvalidArguments> {
        let mut problems = Vec::new();
        for (name, value) in arguments.entries() {
            let Some((_, parameter)) = self.parameter(&name) else { continue };
            if let Some(problem) = placement::problem(parameter.location, value) {
                let (field, problem) = (name.into_owned(), problem.to_owned());
                problems.push(FieldProblem { field, problem });
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(InvalidArguments::new(problems)) }
    }

    #[inline]
    fn parameter(&self, name: &str) -> Option<(usize, &Parameter)> {
        let found = self.by_name.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        let index = self.by_name.get(found)?.1;
        Some((index, self.parameters.get(index)?))
    }

    /// Places checked arguments. They must be from [`validate`](Self::validate) of this plan.
    pub fn build(&self, arguments: &Arguments<'_>) -> OutgoingRequest {
        let raw = arguments.raw();
        let mut values: SmallVec<[Option<Raw<'_>>; 16]> = SmallVec::new();
        values.extend(self.parameters.iter().map(Parameter::absent));
        if !self.by_name.is_empty() {
            for (name, value) in raw.iter().flat_map(|raw| raw.entries()) {
                // Where `null` is allowed, it is nothing to place.
                if let Some((index, _)) = self.parameter(&name)
                    && !value.is_null()
                    && let Some(slot) = values.get_mut(index)
                {
                    *slot = Some(value);
                }
            }
        }
        let body = self.body.build(raw);
        OutgoingRequest {
            method: Arc::clone(&self.method),
            target: self.build_target(&values),
            headers: self.build_headers(&values),
            content_type: body.as_ref().map(|_| Arc::clone(&self.content_type)),
            body,
        }
    }

    fn build_target(&self, values: &[Option<Raw<'_>>]) -> String {
        let mut target = String::with_capacity(128);
        for piece in &self.target {
            match piece {
                TargetPiece::Text(text) => target.push_str(text),
                TargetPiece::Parameter(index) => {
                    if let Some(value) = values.get(*index).copied().flatten() {
                        placement::write_joined(&mut target, value, true);
                    }
                }
            }
        }
        let mut separator = if self.has_query { '&' } else { '?' };
        for (parameter, value) in self.given(Location::Query, values) {
            placement::for_each_text(value, |text| {
                target.push(separator);
                separator = '&';
                target.push_str(&parameter.name);
                target.push('=');
                placement::encode(&mut target, text);
            });
        }
        target
    }

    fn build_headers(&self, values: &[Option<Raw<'_>>]) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for (parameter, value) in self.given(Location::Header, values) {
            let mut text = String::new();
            placement::write_joined(&mut text, value, false);
            headers.push((parameter.name.to_string(), text));
        }
        let mut cookies = String::new();
        for (parameter, value) in self.given(Location::Cookie, values) {
            if !cookies.is_empty() {
                cookies.push_str("; ");
            }
            cookies.push_str(&parameter.name);
            cookies.push('=');
            placement::write_joined(&mut cookies, value, true);
        }
        if !cookies.is_empty() {
            headers.push(("Cookie".to_owned(), cookies));
        }
        headers
    }

    fn given<'a, 'v>(
        &'a self,
        location: Location,
        values: &'v [Option<Raw<'v>>],
    ) -> impl Iterator<Item = (&'a Parameter, Raw<'v>)> {
        let parameters = self.parameters.iter().zip(values);
        parameters
            .filter(move |(parameter, _)| parameter.location == location)
            .filter_map(|(parameter, value)| Some((parameter, (*value)?)))
            // An empty array is as good as none.
            .filter(|(_, value)| value.kind() != Kind::Array || value.items().next().is_some())
    }
}

/// The arguments to look at; absent ones are an empty object.
fn object<'a>(arguments: &'a Arguments<'_>) -> Raw<'a> {
    arguments.raw().unwrap_or(Raw::EMPTY_OBJECT)
}

fn not_an_object(kind: Kind) -> InvalidArguments {
    let problem = format!("expected an object, got {}", kind.described());
    InvalidArguments::new(vec![FieldProblem { field: "arguments".to_owned(), problem }])
}

fn checked_method(method: &str, has_body: bool) -> Result<Arc<str>, MappingError> {
    let upper = method.to_ascii_uppercase();
    let refuse = |problem| Err(MappingError::Method { method: method.to_owned(), problem });
    match upper.as_str() {
        "GET" | "HEAD" if has_body => {
            refuse("requests of this method have no body; move the body fields to the query")
        }
        "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" => Ok(upper.into()),
        _ => refuse("use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS"),
    }
}

/// The template with its placeholders bound to parameters `(name, index, rule)`.
fn target(
    path: &str,
    placeholders: &[(Box<str>, usize, String)],
) -> Result<Vec<TargetPiece>, MappingError> {
    let mut target = Vec::new();
    let mut bound = Vec::new();
    for piece in placement::parse_template(path)? {
        target.push(match piece {
            Piece::Text(text) => TargetPiece::Text(text),
            Piece::Placeholder(name) => {
                let Some((_, index, _)) = placeholders.iter().find(|(known, ..)| *known == name)
                else {
                    let (placeholder, path) = (name.into_string(), path.to_owned());
                    return Err(MappingError::NoRule { placeholder, path });
                };
                bound.push(*index);
                TargetPiece::Parameter(*index)
            }
        });
    }
    match placeholders.iter().find(|(_, index, _)| !bound.contains(index)) {
        Some((.., field)) => {
            Err(MappingError::NotInPath { field: field.clone(), path: path.to_owned() })
        }
        None => Ok(target),
    }
}

impl Parameter {
    fn compile(field: &Field, rule: &FieldRule) -> Result<Self, MappingError> {
        let location = field.location;
        let mut name = field.node.source.to_string();
        match location {
            Location::Header | Location::Cookie => placement::check_name(rule, &name)?,
            Location::Query => {
                name.clear();
                placement::encode(&mut name, &field.node.source);
            }
            Location::Path | Location::Body => {}
        }
        let default = rule.default.as_ref().filter(|_| rule.send_default);
        Ok(Self {
            location,
            name: name.into_boxed_str(),
            constant: rule.constant.as_ref().map(|value| fixed(rule, value)).transpose()?,
            default: default.map(|value| fixed(rule, value)).transpose()?,
        })
    }

    fn absent(&self) -> Option<Raw<'_>> {
        self.constant.as_ref().or(self.default.as_ref()).map(OwnedRaw::as_raw)
    }

    fn sets_content_type(&self) -> bool {
        self.location == Location::Header && self.name.eq_ignore_ascii_case("content-type")
    }
}

fn fixed(rule: &FieldRule, value: &Value) -> Result<OwnedRaw, MappingError> {
    let refuse = |problem| MappingError::Fixed { field: rule.name(), problem };
    let single = |value: &Value| !value.is_null() && !value.is_array() && !value.is_object();
    let placeable = match value {
        Value::Array(items) => items.iter().all(single),
        value => single(value),
    };
    if !placeable {
        return Err(refuse("is not a single value or an array of them"));
    }
    let sent = if rule.as_string { digits::sent(value) } else { value.to_string() };
    let owned = OwnedRaw::parse(sent.as_bytes());
    let owned = owned.map_err(|_| refuse("cannot be written as JSON"))?;
    match placement::problem(rule.location, owned.as_raw()) {
        Some(problem) => Err(refuse(problem)),
        None => Ok(owned),
    }
}

impl Body {
    fn compile(fields: &[Field], rules: &[FieldRule]) -> Result<Self, MappingError> {
        let direction = Direction::Request;
        if let Some(field) = fields.iter().find(|field| field.whole) {
            let step = Step::compile(&field.node, rules, direction)?;
            return Ok(Self::Whole(field.node.exposed.clone(), Box::new(step)));
        }
        let members = || fields.iter().filter(|field| field.location == Location::Body);
        if members().next().is_none() {
            return Ok(Self::None);
        }
        // The other arguments went elsewhere.
        let nodes = members().map(|field| &field.node);
        Ok(Self::Members(Members::compile(nodes, rules, direction, Unmapped::Drop)?))
    }

    fn build(&self, arguments: Option<Raw<'_>>) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(arguments.map_or(0, |raw| raw.text().len()) + 64);
        match self {
            Self::None => return None,
            Self::Members(members) => members.write(arguments, &mut out, &mut Tally::default()),
            Self::Whole(name, step) => match arguments.and_then(|raw| raw.get(name)) {
                Some(value) => step.write(value, &mut out, &mut Tally::default()),
                None if step.write_absent(&mut out) => {}
                None => return None,
            },
        }
        Some(out)
    }
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod compile_tests;
#[cfg(test)]
#[path = "request_properties.rs"]
mod properties;
#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
