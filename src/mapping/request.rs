//! Requests: arguments checked against the schema and placed where the API wants them.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use smallvec::SmallVec;

use super::arguments::{self, Arguments, SentDefault};
use super::body::Body;
use super::check::{Check, object};
use super::error::{FieldProblem, InvalidArguments};
use super::file::{ResourceUse, Resources};
use super::mirror::MirroredArgument;
use super::parameter::{Names, Parameter};
use super::placement::{self, Piece};
use super::requirement::Demand;
use super::shape;
use super::style::Pairs;
use super::translate::Tally;
use super::{
    BodyFormat, Dialect, FieldRule, Location, MappingError, MappingErrors, RequestBody,
    check_count, schema,
};
use crate::json::{OwnedRaw, Raw};

/// The compiled request of one tool.
#[derive(Debug)]
pub struct RequestPlan {
    method: Arc<str>,
    schema: Value,
    check: Check,
    /// Single values that are sent when a call does not have them, by the path of their field.
    sent_defaults: Vec<SentDefault>,
    /// The path, and the query that the template has.
    target: Vec<TargetPiece>,
    has_query: bool,
    parameters: Vec<Parameter>,
    /// Parameters by exposed name, in its order.
    by_name: Vec<(Box<str>, usize)>,
    /// Arguments that headers of a call repeat.
    mirrored: Box<[MirroredArgument]>,
    /// Values of some parameters have to be looked at before they are placed.
    checks_values: bool,
    /// Values of some parameters have other names at the API.
    translates: bool,
    body: Body,
    demands: Box<[Demand]>,
}

#[derive(Debug)]
enum TargetPiece {
    Text(Box<str>),
    /// Of `RequestPlan::parameters`.
    Parameter(usize),
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
    /// As the tool's body format says.
    pub body: Option<Vec<u8>>,
    /// Of the body; `None` without one.
    pub content_type: Option<Arc<str>>,
}

impl RequestPlan {
    /// Compiles the request of a tool from its method, its path (`/orders/{id}`), its rules and what
    /// it says of its body.
    ///
    /// # Errors
    ///
    /// Names every rule, and the path or the method, that does not fit and what to change.
    pub fn compile(
        method: &str,
        path_template: &str,
        rules: &[FieldRule],
        body: RequestBody<'_>,
    ) -> Result<Self, MappingErrors> {
        check_count(rules)?;
        let mut errors = MappingErrors::default();
        let fields = shape::request_fields(rules, &mut errors);
        let has_body = fields.iter().any(|field| field.location == Location::Body);
        let method = errors.note(checked_method(method, has_body)).unwrap_or_default();
        let names = Names::of(&fields, path_template);
        let mut content_type = None;
        let mut parameters = Vec::new();
        let mut by_name = Vec::new();
        let mut placeholders = Vec::new();
        for field in fields.iter().filter(|field| field.location != Location::Body) {
            let Some(rule) = field.node.rule.and_then(|index| rules.get(index)) else { continue };
            let parameter = Parameter::compile(field, rule, rules, &names);
            let Some(parameter) = errors.note(parameter) else { continue };
            let constant = parameter.constant.as_ref();
            if let Some(constant) = constant.filter(|_| parameter.sets_content_type()) {
                content_type =
                    Some((rule, Arc::from(constant.as_raw().as_str().unwrap_or_default())));
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
        let compiled = Body::compile(&fields, rules, body, &mut errors);
        let demands = errors.note(Demand::all(body.requires, &fields, rules)).unwrap_or_default();
        let mirrored = MirroredArgument::all(&fields, rules, &mut errors);
        if let Some((rule, _)) = &content_type {
            errors.note(check_content_type(rule, body));
        }
        errors.check()?;
        let mut body = compiled.unwrap_or_default();
        if let Some((_, content_type)) = content_type {
            body.set_content_type(content_type);
        }
        let schema = schema::schema_of_fields(&fields, rules);
        by_name.sort_unstable();
        Ok(Self {
            method,
            check: Check::compile(&schema)?,
            sent_defaults: SentDefault::all(&fields, rules),
            schema,
            target: target(path_template, &placeholders)?,
            has_query: path_template.contains('?'),
            checks_values: body.is_checked() || parameters.iter().any(|one| one.is_checked),
            translates: parameters.iter().any(|parameter| parameter.step.is_some()),
            parameters,
            by_name,
            body,
            demands,
            mirrored,
        })
    }

    /// Keeps a name of the query or of cookies, such as that of a credential, from what clients can
    /// write: no member of an object that is written apart may have it.
    pub fn reserve(&mut self, location: Location, name: &str) {
        for parameter in self.parameters.iter_mut().filter(|one| one.location == location) {
            parameter.style.reserve(name);
        }
    }

    /// The schema that arguments are checked against; the same as
    /// [`input_schema`](super::input_schema) gives.
    pub const fn input_schema(&self) -> &Value {
        &self.schema
    }

    /// The arguments that headers of a call repeat. The schema does not name them.
    pub fn mirrored(&self) -> &[MirroredArgument] {
        &self.mirrored
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
        arguments.sent_text(path, &self.sent_defaults)
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
        self.validate_in(arguments, Dialect::Full)
    }

    /// The same, of a client that was shown the schema in a dialect.
    ///
    /// # Errors
    ///
    /// As [`validate`](Self::validate).
    pub fn validate_in<'a>(
        &self,
        arguments: Option<Raw<'a>>,
        dialect: Dialect,
    ) -> Result<Arguments<'a>, InvalidArguments> {
        let arguments = self.check.judge(arguments, dialect)?;
        if self.checks_values {
            self.check_values(object(&arguments))?;
        }
        if !self.demands.is_empty() {
            self.check_demands(object(&arguments))?;
        }
        Ok(arguments)
    }

    fn check_values(&self, arguments: Raw<'_>) -> Result<(), InvalidArguments> {
        let mut problems = Vec::new();
        for (name, value) in arguments.entries() {
            let Some((_, parameter)) = self.parameter(&name) else { continue };
            if !parameter.is_checked {
                continue;
            }
            if let Some(problem) = parameter.problem(value) {
                let (field, problem) = (name.into_owned(), problem.to_owned());
                problems.push(FieldProblem { field, problem });
            }
        }
        if self.body.is_checked() {
            self.body.check(arguments, &mut problems);
        }
        if problems.is_empty() { Ok(()) } else { Err(InvalidArguments::new(problems)) }
    }

    fn check_demands(&self, arguments: Raw<'_>) -> Result<(), InvalidArguments> {
        let problems = self.demands.iter().filter_map(|demand| demand.problem(arguments));
        let problems = problems.map(|problem| FieldProblem { field: String::new(), problem });
        let problems: Vec<FieldProblem> = problems.collect();
        if problems.is_empty() { Ok(()) } else { Err(InvalidArguments::new(problems)) }
    }

    /// Whether calls can have files, so that arguments and bodies may be large.
    pub fn has_files(&self) -> bool {
        self.body.has_files()
    }

    /// The resources that files of checked arguments stand for: what they hold is to be given to
    /// [`build_with`](Self::build_with). Nothing is allocated where there is none.
    pub fn resources(&self, arguments: &Arguments<'_>) -> Vec<ResourceUse> {
        if !self.has_files() {
            return Vec::new();
        }
        self.body.resources(object(arguments))
    }

    #[inline]
    fn parameter(&self, name: &str) -> Option<(usize, &Parameter)> {
        let found = self.by_name.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        let index = self.by_name.get(found)?.1;
        Some((index, self.parameters.get(index)?))
    }

    /// Places checked arguments of which none stands for a resource. They must be from
    /// [`validate`](Self::validate) of this plan.
    pub fn build(&self, arguments: &Arguments<'_>) -> OutgoingRequest {
        self.build_with(arguments, &Resources::NONE)
    }

    /// The same, with everything that [`resources`](Self::resources) named; the file of a resource
    /// that is not there would be empty.
    pub fn build_with(&self, arguments: &Arguments<'_>, resources: &Resources) -> OutgoingRequest {
        let raw = arguments.raw();
        let made = if self.translates { self.translated(raw) } else { Vec::new() };
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
        for (index, value) in &made {
            if let Some(slot) = values.get_mut(*index) {
                *slot = Some(value.as_raw());
            }
        }
        let (body, content_type) = self.body.build(raw, resources).unzip();
        OutgoingRequest {
            method: Arc::clone(&self.method),
            target: self.build_target(&values),
            headers: self.build_headers(&values),
            content_type,
            body,
        }
    }

    /// Values of parameters as the API takes them, where that is not how clients write them.
    #[cold]
    fn translated(&self, arguments: Option<Raw<'_>>) -> Vec<(usize, OwnedRaw)> {
        let mut made = Vec::new();
        for (name, value) in arguments.iter().flat_map(|raw| raw.entries()) {
            let Some((index, Parameter { step: Some(step), .. })) = self.parameter(&name) else {
                continue;
            };
            let mut out = Vec::new();
            step.write(value, &mut out, &mut Tally::default());
            made.extend(OwnedRaw::parse(&out).ok().map(|value| (index, value)));
        }
        made.retain(|(_, value)| !value.as_raw().is_null());
        made
    }

    fn build_target(&self, values: &[Option<Raw<'_>>]) -> String {
        let mut target = String::with_capacity(128);
        for piece in &self.target {
            match piece {
                TargetPiece::Text(text) => target.push_str(text),
                TargetPiece::Parameter(index) => {
                    if let (Some(parameter), Some(value)) =
                        (self.parameters.get(*index), values.get(*index).copied().flatten())
                    {
                        parameter.style.write_path(&mut target, &parameter.name, value);
                    }
                }
            }
        }
        let mut pairs = Pairs::of_query(&mut target, self.has_query);
        for (parameter, value) in self.given(Location::Query, values) {
            parameter.style.write_pairs(&mut pairs, &parameter.name, value);
        }
        target
    }

    fn build_headers(&self, values: &[Option<Raw<'_>>]) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for (parameter, value) in self.given(Location::Header, values) {
            let mut text = String::new();
            parameter.style.write_header(&mut text, value);
            headers.push((parameter.name.to_string(), text));
        }
        let mut cookies = String::new();
        let mut pairs = Pairs::of_cookies(&mut cookies);
        for (parameter, value) in self.given(Location::Cookie, values) {
            parameter.style.write_pairs(&mut pairs, &parameter.name, value);
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
            .filter(|(parameter, value)| !parameter.style.is_nothing(*value))
    }
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

/// A rule that sets the header may stand in for what the tool says of its body, where that has one
/// type only.
fn check_content_type(rule: &FieldRule, body: RequestBody<'_>) -> Result<(), MappingError> {
    let refuse = |problem| Err(MappingError::Rule { field: rule.name(), problem });
    match body.format {
        BodyFormat::Form | BodyFormat::Multipart => {
            refuse("the body format says what the body is called; remove the rule")
        }
        _ if body.content_type.is_some() => {
            refuse("body_content_type of the tool says the same; remove one of them")
        }
        _ => Ok(()),
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
