//! The last word: what is given out is what the mapping compiles.
//!
//! A rule that it refuses is given again with less in it: without its default, with its type only,
//! with any value. What is still refused is left out where the API can do without it; else there is
//! no tool.

use serde_json::{Map, Value};

use super::clean;
use super::notes::Notes;
use super::rules::WHOLE_BODY;
use super::words;
use crate::http::is_framing;
use crate::import::OperationTool;
use crate::mapping::{
    self, BodyFormat, FieldRule, Location, MappingErrors, RULES_MAX, RequestBody, RequestPlan,
    ResponsePlan, Unmapped,
};

/// Longest reason of the mapping that a note repeats, in characters.
const REASON_MAX: usize = 240;
/// Headers that the runtime sends whatever anybody says.
const OWN_HEADERS: [&str; 5] =
    ["cookie", "accept-encoding", "content-encoding", "proxy-authenticate", "proxy-authorization"];

/// Makes the rules of a tool such that it compiles.
///
/// # Errors
/// Why there can be no tool.
pub(super) fn settle(tool: &mut OperationTool, notes: &mut Notes) -> Result<(), String> {
    if tool.fields.len() > RULES_MAX {
        return Err(format!("it has more than {RULES_MAX} arguments"));
    }
    if compile(tool).is_err() {
        let rules = std::mem::take(&mut tool.fields);
        for rule in rules {
            if let Some(rule) = repaired(rule, tool, notes)? {
                tool.fields.push(rule);
            }
        }
        if !tool.fields.iter().any(|rule| rule.location == Location::Body) {
            tool.body_format = BodyFormat::default();
            tool.body_content_type = None;
            if let Some(bodies) = &mut tool.xml {
                bodies.request = None;
            }
        }
        if !tool.requires.is_empty() && compile(tool).is_err() {
            notes.add("what its members have to keep to together is judged by the API only");
            tool.requires.clear();
        }
        compile(tool).map_err(|errors| reason(&errors))?;
    }
    let unmapped = if tool.pass_unmapped { Unmapped::Keep } else { Unmapped::Drop };
    let is_good = ResponsePlan::compile(&tool.response_fields, unmapped).is_ok()
        && mapping::output_schema(&tool.response_fields).is_ok();
    if !is_good {
        notes.add("answer: its description cannot be shown to clients; answers pass as they are");
        tool.response_fields.clear();
        tool.pass_unmapped = false;
    }
    Ok(())
}

fn compile(tool: &OperationTool) -> Result<(), MappingErrors> {
    let content_type = tool.body_content_type.as_deref();
    let body = RequestBody { format: tool.body_format, content_type, requires: &tool.requires };
    RequestPlan::compile(tool.method.as_str(), &tool.path, &tool.fields, body).map(drop)
}

/// One rule as far as it can be had; `None` where the API can do without it.
fn repaired(
    rule: FieldRule,
    tool: &OperationTool,
    notes: &mut Notes,
) -> Result<Option<FieldRule>, String> {
    let check = |rule: &FieldRule| check(rule, tool.body_format);
    let Err(errors) = check(&rule) else { return Ok(Some(rule)) };
    let name = clean::quoted(&rule.source_field_name);
    let is_own = is_framing(&rule.source_field_name)
        || OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(&rule.source_field_name));
    if rule.location == Location::Header && is_own {
        notes.add(format!("header {name}: the runtime sets it itself; left out"));
        return Ok(None);
    }
    let without_default = FieldRule { default: None, ..rule.clone() };
    if check(&without_default).is_ok() {
        notes.add(format!("{} {name}: its default is not what it takes; left out", rule.location));
        return Ok(Some(without_default));
    }
    if let Some(Value::Object(schema)) = &rule.schema {
        let mut typed = Map::new();
        words::set_types(&mut typed, words::types(schema).0);
        for schema in [typed, Map::new()] {
            let schema = Some(Value::Object(schema));
            let simpler = FieldRule { schema, ..without_default.clone() };
            if check(&simpler).is_ok() {
                let reason = reason(&errors);
                let location = rule.location;
                notes.add(format!("{location} {name}: only its type is checked, because {reason}"));
                return Ok(Some(simpler));
            }
        }
    }
    let reason = reason(&errors);
    if rule.source_field_name == WHOLE_BODY && rule.location == Location::Body {
        return Err(format!("its body cannot be sent: {reason}"));
    }
    if rule.required {
        return Err(format!("{} {name} is required and cannot be sent: {reason}", rule.location));
    }
    notes.add(format!("{} {name}: left out: {reason}", rule.location));
    Ok(None)
}

/// Whether a tool with this rule alone compiles.
fn check(rule: &FieldRule, format: BodyFormat) -> Result<(), MappingErrors> {
    let (path, format) = match rule.location {
        Location::Path => (format!("/{{{}}}", rule.source_field_name), BodyFormat::default()),
        Location::Body => ("/".to_owned(), format),
        _ => ("/".to_owned(), BodyFormat::default()),
    };
    let body = RequestBody { format, ..RequestBody::default() };
    RequestPlan::compile("POST", &path, std::slice::from_ref(rule), body).map(drop)
}

fn reason(errors: &MappingErrors) -> String {
    clean::line(&errors.to_string(), REASON_MAX)
}
