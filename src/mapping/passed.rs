//! Arguments that are passed on to a server which describes them itself: the tools of MCP servers.
//!
//! The server's schema is shown as it is, to the byte but for blanks, whatever words it has.
//! [`FieldRule`]s say what is otherwise with the arguments at its top: other names, other texts,
//! values that are always sent, arguments that clients do not have.
//!
//! Invariants:
//! - arguments are held to the schema that clients are shown, and what is sent to the server's own;
//! - a client cannot set what a rule hides or fixes, under whatever name it tries;
//! - values go on as exact text;
//! - a schema that cannot be checked in bounded time or at all (with a `$ref` that goes round or leads
//!   out of it, of a dialect nobody knows, with a pattern of another engine) is passed on like any other, and the server judges alone:
//!   nothing outside of it is ever fetched. Where rules hide or fix something in such a schema, what
//!   they say holds all the same.

mod bounds;
mod shown;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::arguments::{self, Arguments, SentDefault};
use super::check::{Check, object, read};
use super::error::{FieldProblem, InvalidArguments};
use super::keys::is_key;
use super::validator::Validator;
use super::{Dialect, FieldRule, Location};
use crate::json::{self, OwnedRaw, Raw, write_string};

/// Rules of one tool.
const RULES_MAX: usize = 500;

/// From a client's arguments to those of a tool of another server.
#[derive(Debug)]
pub struct PassedPlan {
    /// The schema that clients are shown.
    text: Box<str>,
    /// The same, to look into.
    schema: Value,
    /// `None` where it cannot be checked.
    check: Option<Check>,
    /// `None` where everything goes on as it comes.
    changes: Option<Box<Changes>>,
}

#[derive(Debug)]
struct Changes {
    /// In the order of the names at the server.
    arguments: Vec<Change>,
    /// The server's own schema, where it can be checked and is another one.
    source: Option<Check>,
    sent_defaults: Vec<SentDefault>,
}

/// An argument with which something is otherwise.
#[derive(Debug)]
struct Change {
    source: Box<str>,
    /// What clients call it; `None` where they do not have it.
    exposed: Option<Box<str>>,
    /// Sent always.
    constant: Option<OwnedRaw>,
    /// Sent where a call does not have it.
    default: Option<OwnedRaw>,
}

/// A plan, and what in it an operator should know of.
#[derive(Debug)]
pub struct Passed {
    /// The plan.
    pub plan: PassedPlan,
    /// Each names what has no effect or cannot be done.
    pub notes: Vec<String>,
}

impl PassedPlan {
    /// What is wrong with rules whatever the server offers.
    pub fn faults(rules: &[FieldRule]) -> Vec<String> {
        let mut faults = Vec::new();
        if rules.len() > RULES_MAX {
            faults.push(format!("fields: more than {RULES_MAX}"));
            return faults;
        }
        let (mut sources, mut names) = (BTreeSet::new(), BTreeSet::new());
        for rule in rules {
            let name = &rule.source_field_name;
            let mut fault = |text: &str| faults.push(format!("field {name}: {text}"));
            if name.is_empty() {
                fault("source_field_name is the argument's name at the server, and not empty");
            }
            if !sources.insert(name.as_str()) {
                fault("another rule has the same source field; remove one of them");
            }
            if let Some(key) = other_key(rule) {
                fault(&format!("the server says what an argument is: remove `{key}`"));
            }
            if let Some(exposed) = &rule.exposed_field_name {
                if !is_key(exposed) {
                    fault("exposed_field_name: expected letters, digits, `_` and `-`, at most 64");
                }
                if !names.insert(exposed.as_str()) {
                    fault("another field is exposed by the same name; change one of them");
                }
            }
            if rule.send_default && rule.default.is_none() {
                fault("send_default is set without a default; add default or remove send_default");
            }
            let is_shown = rule.exposed_field_name.is_some()
                || rule.description.is_some()
                || rule.default.is_some();
            if rule.hidden && rule.constant.is_some() {
                fault("hidden and constant exclude each other; a constant is hidden and sent");
            } else if is_shown && (rule.hidden || rule.constant.is_some()) {
                fault("clients do not see it: remove exposed_field_name, description and default");
            }
        }
        faults
    }

    /// Compiles the server's `schema` with rules that have no [`faults`](Self::faults).
    ///
    /// # Errors
    /// Why what the rules say cannot be done with this schema: the tool must not be offered, because
    /// an argument may be shown that is to be hidden.
    pub fn compile(schema: Raw<'_>, rules: &[FieldRule]) -> Result<Passed, String> {
        let mut notes = Vec::new();
        let source = compact(schema);
        let changed = shown::changed(source.as_raw(), rules, &mut notes)?;
        let source_check = check(&json::to_value(source.as_raw()));
        if let Err(problem) = &source_check {
            notes.push(format!(
                "its arguments are checked by the server alone, because its input schema cannot be \
                 checked here: {}",
                problem.get(..problem.floor_char_boundary(200)).unwrap_or_default()
            ));
        }
        let Some(changed) = changed else {
            let plan = Self {
                text: source.as_raw().text().into(),
                schema: json::to_value(source.as_raw()),
                check: source_check.ok(),
                changes: None,
            };
            return Ok(Passed { plan, notes });
        };
        notes.extend(unfit_constants(&json::to_value(source.as_raw()), rules));
        let schema = json::to_value(changed.as_raw());
        let check = match (check(&schema), &source_check) {
            (Ok(check), _) => Some(check),
            (Err(_), Err(_)) => None,
            // What was good before: something in it points to what is not there any more.
            (Err(_), Ok(_)) => {
                return Err(
                    "its input schema refers to arguments that the rules rename or hide".to_owned()
                );
            }
        };
        let is_changing = |rule: &FieldRule| {
            rule.send_default || shown::exposed_name(rule) != Some(rule.source_field_name.as_str())
        };
        // Other texts alone change nothing of what goes on.
        let changes = rules
            .iter()
            .any(is_changing)
            .then(|| Box::new(Changes::compile(rules, source_check.ok())));
        let text = changed.as_raw().text().into();
        Ok(Passed { plan: Self { text, schema, check, changes }, notes })
    }

    /// The schema that clients are shown.
    pub const fn input_schema(&self) -> &Value {
        &self.schema
    }

    /// The same as it is written, without blanks.
    pub const fn input_text(&self) -> &str {
        &self.text
    }

    /// Whether arguments are checked here.
    pub const fn is_checked(&self) -> bool {
        self.check.is_some()
    }

    /// Whether calls can have a single value at a path of exposed names, so that
    /// [`argument_text`](Self::argument_text) reads it.
    pub fn has_single_argument(&self, path: &str) -> bool {
        arguments::is_single(&self.schema, path)
    }

    /// The single value at a path of exposed names as it will be sent. `None` where nothing is.
    pub fn argument_text<'a>(
        &'a self,
        arguments: &'a Arguments<'_>,
        path: &str,
    ) -> Option<Cow<'a, str>> {
        let changes = self.changes.as_deref();
        let defaults = changes.map(|changes| changes.sent_defaults.as_slice());
        arguments.sent_text(path, defaults.unwrap_or_default())
    }

    /// Checks the arguments of a call. Absent and `null` mean `{}`.
    ///
    /// # Errors
    /// Names every bad field by the name clients know and says what is expected there.
    pub fn validate<'a>(&self, given: Option<Raw<'a>>) -> Result<Arguments<'a>, InvalidArguments> {
        self.validate_in(given, Dialect::Full)
    }

    /// The same, of a client that was shown the schema in a dialect.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn validate_in<'a>(
        &self,
        given: Option<Raw<'a>>,
        dialect: Dialect,
    ) -> Result<Arguments<'a>, InvalidArguments> {
        let arguments = match &self.check {
            Some(check) => check.judge(given, dialect)?,
            None => read(given)?,
        };
        if let Some(changes) = &self.changes {
            changes.check(object(&arguments))?;
        }
        Ok(arguments)
    }

    /// What the server is to get. The arguments must be from [`validate`](Self::validate) of this
    /// plan.
    pub fn build<'a>(&self, arguments: &'a Arguments<'_>) -> Cow<'a, str> {
        match &self.changes {
            None => Cow::Borrowed(object(arguments).text()),
            Some(changes) => Cow::Owned(changes.sent(object(arguments))),
        }
    }
}

impl Changes {
    fn compile(rules: &[FieldRule], source: Option<Check>) -> Self {
        let kept = |value: &Option<Value>| {
            value.as_ref().and_then(|value| OwnedRaw::parse(value.to_string().as_bytes()).ok())
        };
        let mut arguments: Vec<Change> = rules
            .iter()
            .map(|rule| Change {
                source: rule.source_field_name.as_str().into(),
                exposed: shown::exposed_name(rule).map(Into::into),
                constant: kept(&rule.constant),
                default: if rule.send_default { kept(&rule.default) } else { None },
            })
            .collect();
        arguments.sort_unstable_by(|one, other| one.source.cmp(&other.source));
        let sent_defaults = rules.iter().filter_map(|rule| {
            let value = rule.default.as_ref().filter(|_| rule.send_default)?;
            SentDefault::of_argument(shown::exposed_name(rule)?, value)
        });
        Self { sent_defaults: sent_defaults.collect(), arguments, source }
    }

    fn by_exposed(&self, name: &str) -> Option<&Change> {
        self.arguments.iter().find(|change| change.exposed.as_deref() == Some(name))
    }

    fn by_source(&self, name: &str) -> Option<&Change> {
        let place = self.arguments.binary_search_by(|change| (*change.source).cmp(name)).ok()?;
        self.arguments.get(place)
    }

    /// Refuses what clients do not have, and what the server would refuse.
    fn check(&self, arguments: Raw<'_>) -> Result<(), InvalidArguments> {
        let is_foreign =
            |name: &str| self.by_exposed(name).is_none() && self.by_source(name).is_some();
        let foreign = arguments.entries().filter(|(name, _)| is_foreign(name));
        let problems: Vec<FieldProblem> = foreign
            .map(|(name, _)| FieldProblem {
                field: name.into_owned(),
                problem: "there is no such field".to_owned(),
            })
            .collect();
        if !problems.is_empty() {
            return Err(InvalidArguments::new(problems));
        }
        let Some(source) = &self.source else { return Ok(()) };
        // Names and values of checked texts make a checked text.
        let Ok(sent) = OwnedRaw::parse(self.sent(arguments).as_bytes()) else { return Ok(()) };
        if source.accepts(sent.as_raw()) {
            return Ok(());
        }
        let mut problems = source.problems(sent.as_raw());
        for problem in &mut problems {
            self.name_as_clients_do(&mut problem.field);
        }
        Err(InvalidArguments::new(problems))
    }

    /// Puts a name that clients know in front of a path.
    fn name_as_clients_do(&self, path: &mut String) {
        let change = self.arguments.iter().find(|change| {
            let rest = path.strip_prefix(&*change.source);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        });
        let Some(change) = change else { return };
        match &change.exposed {
            Some(exposed) => path.replace_range(..change.source.len(), exposed),
            // Clients do not know of it.
            None => path.clear(),
        }
    }

    fn sent(&self, arguments: Raw<'_>) -> String {
        let mut out = Vec::with_capacity(arguments.text().len() + 64);
        out.push(b'{');
        let name_next = |out: &mut Vec<u8>, name: &str| {
            if out.len() > 1 {
                out.push(b',');
            }
            write_string(out, name);
            out.push(b':');
        };
        for (name, value) in arguments.entries() {
            let source = self.by_exposed(&name).map_or(&*name, |change| &*change.source);
            name_next(&mut out, source);
            out.extend_from_slice(value.text().as_bytes());
        }
        for change in &self.arguments {
            let is_absent = |exposed: &str| arguments.get(exposed).is_none();
            let default = change
                .default
                .as_ref()
                .filter(|_| change.exposed.as_deref().is_some_and(is_absent));
            if let Some(value) = change.constant.as_ref().or(default) {
                name_next(&mut out, &change.source);
                out.extend_from_slice(value.as_raw().text().as_bytes());
            }
        }
        out.push(b'}');
        // Written from texts.
        String::from_utf8(out).unwrap_or_default()
    }
}

/// The first key of a rule that means nothing here.
fn other_key(rule: &FieldRule) -> Option<&'static str> {
    let said = [
        ("location", rule.location != Location::Body),
        ("type", rule.field_type.is_some()),
        ("format", rule.format.is_some()),
        ("style", rule.style.is_some()),
        ("explode", rule.explode.is_some()),
        ("allow_reserved", rule.allow_reserved),
        ("content_type", rule.content_type.is_some()),
        ("part_headers", !rule.part_headers.is_empty()),
        ("nullable", rule.nullable),
        ("array_item_type", rule.array_item_type.is_some()),
        ("required", rule.required),
        ("as_string", rule.as_string),
        ("schema", rule.schema.is_some()),
        ("enum", rule.allowed.is_some()),
        ("additional_properties", rule.additional_properties.is_some()),
        ("mcp_header", rule.mcp_header.is_some()),
    ];
    said.into_iter().find_map(|(key, is_said)| is_said.then_some(key))
}

/// What there is to say of constants that the server's own words for the argument do not allow. Where
/// these lead elsewhere in the schema, nothing is known here.
fn unfit_constants<'a>(
    schema: &'a Value,
    rules: &'a [FieldRule],
) -> impl Iterator<Item = String> + 'a {
    rules.iter().filter_map(|rule| {
        let name = &rule.source_field_name;
        let constant = rule.constant.as_ref()?;
        let of_argument = schema.get("properties")?.get(name)?;
        let is_bounded = bounds::problem(of_argument).is_none();
        let validator = is_bounded.then(|| Validator::compile(of_argument).ok())??;
        (!validator.accepts_value(constant)).then(|| {
            format!(
                "the constant of `{name}` is not what the server takes there: its calls will be \
                 refused"
            )
        })
    })
}

/// What arguments are held to; the reason where they are not.
fn check(schema: &Value) -> Result<Check, String> {
    if let Some(problem) = bounds::problem(schema) {
        return Err(problem.to_owned());
    }
    Check::compile(schema).map_err(|error| error.to_string())
}

fn compact(raw: Raw<'_>) -> OwnedRaw {
    let mut out = Vec::with_capacity(raw.text().len());
    json::write_raw(&mut out, raw);
    // A checked text without its blanks is one.
    OwnedRaw::parse(&out).unwrap_or_else(|_| raw.to_owned())
}

#[cfg(test)]
#[path = "passed/passed_tests.rs"]
mod tests;
