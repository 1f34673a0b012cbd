//! Tools of upstream MCP servers made ready: what a server says of a tool, and what an operator says
//! otherwise.
//!
//! What clients are shown is what the server says: schemas to the byte but for blanks, hints as they
//! are. What policies go by is another matter. A server's hints are its own word, so MCP has clients
//! distrust them; they decide the side effect only where the toolset trusts the server
//! ([`DefinitionTrust::Trust`]) or a person has approved what it says
//! ([`DefinitionTrust::ApproveNew`]). Else a tool is taken for the worst that MCP takes a tool
//! without hints for: destructive. What an operator says counts before everything.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::Mutex;

use super::effects::Effects;
use super::fragment::{Hints, SAFETY_META, Written};
use super::next_argument::{next_schema, with_next};
use super::schema_hash::{schema_hash, schema_version};
use super::tool::{noted, redacted};
use super::upstream_text::{self as read, DESCRIPTION, TITLE};
use super::{
    CompiledTool, Definition, DefinitionTrust, OperationName, SideEffect, Tool, ToolKind,
    UpstreamServer, UpstreamTool, connection, constants, faults, remarks,
};
use crate::json::{self, Kind, OwnedRaw, Raw};
use crate::mapping::{
    Arguments, Dialect, FieldRule, InvalidArguments, OutputSchema, Passed, PassedPlan, ResultBudget,
};

/// Longest definition of a tool, in bytes.
const DEFINITION_BYTES_MAX: usize = 256 * 1024;
/// How deep a definition may nest: deeper than any schema that people write.
const DEFINITION_DEPTH_MAX: usize = 64;

impl UpstreamTool {
    /// What it is called at its server.
    pub fn source_name(&self) -> &str {
        &self.definition.name
    }

    /// Checks the arguments of a call, by the names that clients know. Absent and `null` mean `{}`.
    ///
    /// # Errors
    /// Names every bad field and says what is expected there.
    pub fn arguments<'a>(
        &self,
        given: Option<Raw<'a>>,
        dialect: Dialect,
    ) -> Result<Arguments<'a>, InvalidArguments> {
        self.plan.validate_in(given, dialect)
    }

    /// The object that the server gets for checked arguments, which must be from
    /// [`arguments`](Self::arguments) of this tool: under its own names, with what is always sent.
    /// Every value is as it was written.
    pub fn sent<'a>(&self, arguments: &'a Arguments<'_>) -> Cow<'a, str> {
        self.plan.build(arguments)
    }

    /// Whether arguments are checked here, and not by the server alone.
    pub fn is_checked(&self) -> bool {
        self.plan.is_checked()
    }
}

/// What is wrong with an override whatever the server offers.
pub(super) fn faults_of(tool: &Tool) -> Vec<String> {
    let mut faults = faults::of_tool(tool);
    faults::of_override(tool, &mut faults);
    noted(connection::timeout("total_timeout_ms", tool.total_timeout_ms), &mut faults);
    faults
}

impl CompiledTool {
    /// Compiles a tool of an upstream server with an override that has no faults.
    ///
    /// # Errors
    /// Why it cannot be offered.
    pub(super) fn upstream(
        server: &Arc<UpstreamServer>,
        definition: &Arc<Definition>,
        said: Option<&Arc<Tool>>,
    ) -> Result<Self, String> {
        let source_name =
            OperationName::new(&definition.name).map_err(|error| error.to_string())?;
        let entry = definition.json.as_raw();
        check_size(entry)?;
        let rules = said.map_or(&[][..], |tool| &tool.fields);
        let mut notes = Vec::new();
        let plan = plan(entry, rules, &mut notes)?;
        let output = output(entry, &mut notes);
        let budget = said.map_or_else(ResultBudget::default, |tool| tool.budget);
        let (own_input, next_argument) = with_next(plan.input_schema(), &budget).unzip();
        let written = written(entry, &plan, next_argument, output.as_ref());
        let output = output.map(|output| json::to_value(output.as_raw()));
        let input = own_input.as_ref().unwrap_or_else(|| plan.input_schema());
        let schema_hash = schema_hash(input, output.as_ref());
        let told = Hints::told(entry.get("annotations"));
        let hints = told.but_for(said);
        let trusted = told.trusted(server.settings.definitions).but_for(said);
        let effects = effects(said, trusted, &plan, &mut notes)?;
        let is_destructive = effects.worst() == SideEffect::Destructive;
        let confirmation = said.and_then(|tool| tool.confirmation_recommended);
        let confirm = said.and_then(|tool| tool.confirm);
        let total_timeout = said.and_then(|tool| tool.total_timeout_ms);
        let total_timeout = total_timeout.map(std::time::Duration::from_millis);
        Ok(Self {
            source_name,
            exposed_name: said.and_then(|tool| tool.exposed_name.clone()),
            toolset: server.toolset.clone(),
            title: said
                .and_then(|tool| tool.title.as_deref().map(Into::into))
                .or_else(|| title(entry, &mut notes)),
            description: match said.map(|tool| tool.description.as_str()) {
                Some(own) if !own.trim().is_empty() => own.into(),
                _ => read::text(entry, DESCRIPTION, &mut notes).unwrap_or_default(),
            },
            total_timeout: total_timeout.or(server.connection.total_timeout),
            has_output_schema: output.is_some(),
            hints,
            side_effect: effects.base,
            side_effect_by: effects.by_argument,
            confirmation_recommended: confirmation.unwrap_or(is_destructive || confirm.is_some()),
            confirm,
            schema_hash,
            schema_version: schema_version(&schema_hash),
            budget,
            log_payloads: said.is_some_and(|tool| tool.log_payloads),
            redact: said
                .map(|tool| tool.redact.iter().map(|path| redacted(path)).collect())
                .unwrap_or_default(),
            lost_paths: said
                .map(|tool| remarks::lost_paths(tool, input, output.as_ref()))
                .unwrap_or_default(),
            secrets: said.map(|tool| constants::of_override(tool)).unwrap_or_default(),
            limit: said.and_then(|tool| tool.limit),
            weight: said.and_then(|tool| tool.weight).unwrap_or(1),
            polling: None,
            idempotency_key_header: None,
            is_repeatable: Some(
                trusted.read_only == Some(true) || trusted.idempotent == Some(true),
            ),
            own_input,
            next_argument,
            output: output.map(|schema| OutputSchema { schema, is_wrapped: false }),
            written: Some(Box::new(written)),
            notes: notes.into_iter().map(String::into_boxed_str).collect(),
            entity: said.cloned(),
            shown: Mutex::default(),
            kind: ToolKind::Upstream(UpstreamTool {
                server: Arc::clone(server),
                definition: Arc::clone(definition),
                plan,
            }),
        })
    }

    /// Whether compiling these would make this one again.
    pub(super) fn is_of_upstream(
        &self,
        server: &Arc<UpstreamServer>,
        definition: &Arc<Definition>,
        said: Option<&Arc<Tool>>,
    ) -> bool {
        let ToolKind::Upstream(own) = &self.kind else { return false };
        let is_same_entity = match (&self.entity, said) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        is_same_entity
            && Arc::ptr_eq(&own.server, server)
            && Arc::ptr_eq(&own.definition, definition)
    }
}

/// What calls do: what an operator says, else what the hints do that are trusted.
///
/// # Errors
/// What the operator says of an argument cannot be kept to: without it a call might pass for less
/// than it does.
fn effects(
    said: Option<&Arc<Tool>>,
    trusted: Hints,
    plan: &PassedPlan,
    notes: &mut Vec<String>,
) -> Result<Effects, String> {
    let base = said.and_then(|tool| tool.side_effect).unwrap_or_else(|| trusted.side_effect());
    let has_argument = |path: &str| plan.has_single_argument(path);
    let by = said.and_then(|tool| tool.side_effect_by.as_ref());
    let effects = Effects::of(base, by, plan.input_schema(), has_argument, notes);
    if by.is_some() && effects.by_argument.is_none() {
        return Err(notes.pop().unwrap_or_default());
    }
    Ok(effects)
}

impl Hints {
    /// What a server says; what is no boolean says nothing.
    fn told(annotations: Option<Raw<'_>>) -> Self {
        let said = |key: &str| annotations?.get(key)?.as_bool();
        Self {
            read_only: said("readOnlyHint"),
            destructive: said("destructiveHint"),
            idempotent: said("idempotentHint"),
            open_world: said("openWorldHint"),
        }
    }

    /// What counts of a server's word.
    fn trusted(self, trust: DefinitionTrust) -> Self {
        match trust {
            DefinitionTrust::Trust | DefinitionTrust::ApproveNew => self,
            DefinitionTrust::Pin => Self::default(),
        }
    }

    /// With what an operator says otherwise. What was said of another kind of tool does not hold.
    fn but_for(self, tool: Option<&Arc<Tool>>) -> Self {
        let Some(own) = tool.map(|tool| tool.annotations) else { return self };
        let effect = tool.and_then(|tool| tool.side_effect);
        let said = match effect {
            None => self,
            Some(SideEffect::Read) => Self { read_only: Some(true), destructive: None, ..self },
            Some(effect) => Self {
                read_only: Some(false),
                destructive: Some(effect == SideEffect::Destructive),
                ..self
            },
        };
        Self {
            read_only: own.read_only_hint.or(said.read_only),
            destructive: own.destructive_hint.or(said.destructive),
            idempotent: own.idempotent_hint.or(said.idempotent),
            open_world: own.open_world_hint.or(said.open_world),
        }
    }

    /// As MCP reads them (2025-11-25, `ToolAnnotations`): what is not said is the worst.
    fn side_effect(self) -> SideEffect {
        match (self.read_only, self.destructive) {
            (Some(true), _) => SideEffect::Read,
            (_, Some(false)) => SideEffect::Write,
            _ => SideEffect::Destructive,
        }
    }
}

fn check_size(entry: Raw<'_>) -> Result<(), String> {
    if entry.text().len() > DEFINITION_BYTES_MAX {
        return Err(format!("its definition is longer than {DEFINITION_BYTES_MAX} bytes"));
    }
    if read::depth(entry) > DEFINITION_DEPTH_MAX {
        return Err(format!("its definition is nested deeper than {DEFINITION_DEPTH_MAX} levels"));
    }
    Ok(())
}

/// The plan for the input schema. Its root says that it is an object in any case: readers refuse a
/// whole list for one that does not (MCP 2025-11-25, tools: `inputSchema`).
fn plan(
    entry: Raw<'_>,
    rules: &[FieldRule],
    notes: &mut Vec<String>,
) -> Result<PassedPlan, String> {
    const OBJECT: &str = r#"{"type":"object"}"#;
    let given = entry.get("inputSchema").filter(|schema| !schema.is_null());
    let typed;
    let schema = match given {
        None => {
            notes.push("it has no input schema: it is taken to have any arguments".to_owned());
            typed = OwnedRaw::parse(OBJECT.as_bytes()).map_err(|error| error.to_string())?;
            typed.as_raw()
        }
        Some(schema) if schema.kind() != Kind::Object => {
            return Err(format!("its input schema is {}", schema.kind().described()));
        }
        Some(schema) => match schema.get("type") {
            None => {
                typed = read::with_member(schema, "type", b"\"object\"");
                typed.as_raw()
            }
            Some(kind) if kind.as_str().is_some_and(|kind| kind == "object") => schema,
            Some(_) => return Err("its input schema is not one of objects".to_owned()),
        },
    };
    let Passed { plan, notes: more } = PassedPlan::compile(schema, rules)?;
    notes.extend(more);
    Ok(plan)
}

fn output(entry: Raw<'_>, notes: &mut Vec<String>) -> Option<OwnedRaw> {
    let schema = entry.get("outputSchema").filter(|schema| !schema.is_null())?;
    if schema.kind() != Kind::Object {
        notes.push(format!("its output schema is {}, and left out", schema.kind().described()));
        return None;
    }
    Some(read::compact(schema))
}

fn title(entry: Raw<'_>, notes: &mut Vec<String>) -> Option<Box<str>> {
    let of = |entry, notes: &mut Vec<String>| {
        read::text(entry, TITLE, notes).filter(|title| !title.trim().is_empty())
    };
    of(entry, notes).or_else(|| of(entry.get("annotations")?, notes))
}

fn written(
    entry: Raw<'_>,
    plan: &PassedPlan,
    next_argument: Option<&str>,
    output: Option<&OwnedRaw>,
) -> Written {
    let input = next_argument.and_then(|name| {
        let input = OwnedRaw::parse(plan.input_text().as_bytes()).ok()?;
        Some(with_next_written(input.as_raw(), name))
    });
    Written {
        input: input.unwrap_or_else(|| plan.input_text().into()),
        output: output.map(|output| output.as_raw().text().into()),
        icons: read::icons(entry),
        meta: read::meta(entry, |name| name == SAFETY_META),
    }
}

/// As [`with_next`] does it, in the text, under the name it chose.
fn with_next_written(input: Raw<'_>, name: &str) -> Box<str> {
    let next = next_schema().to_string();
    let properties = input.get("properties").unwrap_or(Raw::EMPTY_OBJECT);
    let properties = read::with_member(properties, name, next.as_bytes());
    let input = read::with_member(input, "properties", properties.as_raw().text().as_bytes());
    input.as_raw().text().into()
}

#[cfg(test)]
#[path = "upstream_tool_tests.rs"]
mod tests;
