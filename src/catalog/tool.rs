//! A tool made ready: its plans compiled, its schemas written, what its calls do worked out.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use super::connection::{is_reserved, timeout};
use super::effects::{EffectByArgument, Effects};
use super::fragment::{EntryText, Fragment, Hints, Safety, Written};
use super::messages::Backing;
use super::next_argument::with_next;
use super::schema_hash::{hexadecimal, schema_hash, schema_version};
use super::{
    Annotations, BuiltinTool, CompiledConnection, CompiledPolling, Confirm, ConnectionId,
    DiscoveryMode, OperationName, Rate, Secret, SideEffect, Tool, ToolMethod, ToolName, ToolsetId,
    ToolsetKind, UpstreamTool, constants, faults, remarks,
};
use crate::http::is_field_name;
use crate::mapping::{
    self, Arguments, Dialect, FieldPath, FieldRule, Location, Messages, OutputSchema, RequestBody,
    RequestPlan, ResponsePlan, ResultBudget, Unmapped,
};

/// What a call of a tool does.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are `Rest`, and each is in an `Arc`")]
pub enum ToolKind {
    /// A request to an HTTP API.
    Rest {
        /// Where to.
        connection: Arc<CompiledConnection>,
        /// From arguments to the request.
        request: RequestPlan,
        /// From the response to the result.
        response: ResponsePlan,
        /// Where the API speaks XML: from the request's JSON to it, and from that of the response to
        /// JSON.
        messages: Option<Messages>,
    },
    /// A tool of an upstream MCP server.
    Upstream(UpstreamTool),
    /// A tool of the appliance itself.
    Builtin(BuiltinTool),
}

/// A tool as the runtime uses it. One for all views that show it, whatever they call it.
#[derive(Debug)]
pub struct CompiledTool {
    /// What it is called where it comes from.
    pub source_name: OperationName,
    /// The toolset it belongs to.
    pub toolset: ToolsetId,
    /// What it wants to be called by clients, where that is not made from `source_name`.
    pub exposed_name: Option<ToolName>,
    /// For people.
    pub title: Option<Box<str>>,
    /// What the model reads.
    pub description: Box<str>,
    /// What a call does.
    pub kind: ToolKind,
    /// Longest time for a whole call: the tool's, else the connection's; the setting where `None`.
    pub total_timeout: Option<Duration>,
    /// Whether an output schema is published, so that a result must have `structuredContent`.
    pub has_output_schema: bool,
    /// What a call does to the world where no argument says something else.
    pub side_effect: SideEffect,
    /// The argument that decides what a call does; see [`Self::side_effect_of`].
    pub side_effect_by: Option<EffectByArgument>,
    /// Whether a person should confirm a call.
    pub confirmation_recommended: bool,
    /// Which calls its user is asked about before they are made.
    pub confirm: Option<Confirm>,
    /// SHA-256 of the full input and output schemas in canonical form.
    pub schema_hash: [u8; 32],
    /// Tells schemas apart as the hash does, shorter.
    pub schema_version: Box<str>,
    /// The most a result may hold.
    pub budget: ResultBudget,
    /// Whether arguments and results are kept in the audit.
    pub log_payloads: bool,
    /// Exposed fields, as paths, that are never kept in the audit.
    pub redact: Box<[FieldPath]>,
    /// Those of them at which nothing is, as they were written.
    pub(super) lost_paths: Box<[Box<str>]>,
    /// What it always sends and nobody may see, by its names.
    pub secrets: Box<[(Box<str>, Secret)]>,
    /// How often it may be called, by all callers of a client application together.
    pub limit: Option<Rate>,
    /// Units a call counts in limits.
    pub weight: u32,
    /// How the result of work is come by that the API only accepts.
    pub polling: Option<CompiledPolling>,
    /// The header that carries a key of the call's own.
    pub idempotency_key_header: Option<Box<str>>,
    /// Whether a call that is made twice does what it does once; its method says it where `None`.
    pub is_repeatable: Option<bool>,
    pub(super) hints: Hints,
    /// The input schema where it is not that of the plan of its calls.
    pub(super) own_input: Option<Value>,
    /// The argument that asks for the next part of a result that was cut, where results are and a
    /// name for it is free.
    pub next_argument: Option<&'static str>,
    pub(super) output: Option<OutputSchema>,
    /// What lists show of it as others wrote it.
    pub(super) written: Option<Box<Written>>,
    /// What an operator should know of it, of which nothing is wrong.
    pub(super) notes: Box<[Box<str>]>,
    /// What it was compiled from; the appliance's own tools come from nothing.
    pub(super) entity: Option<Arc<Tool>>,
    /// What lists show of it, each kind once for all views.
    pub(super) shown: Mutex<Vec<Shown>>,
}

#[derive(Debug)]
pub(super) struct Shown {
    name: ToolName,
    dialect: Dialect,
    discovery: DiscoveryMode,
    fragment: Weak<Fragment>,
}

/// What the parts of a tool that calls an API are compiled to, each by itself.
struct RestPlans {
    messages: Option<Messages>,
    polling: Option<CompiledPolling>,
    total_timeout: Option<Duration>,
    request: RequestPlan,
    effects: Effects,
    response: ResponsePlan,
    output: Option<OutputSchema>,
}

impl RestPlans {
    /// All that is wrong comes back, not only the first.
    fn compile(tool: &Tool, backing: Backing<'_>) -> Result<Self, Vec<String>> {
        let mut faults = faults::of_tool(tool);
        faults::of_mapping(tool, &mut faults);
        let messages = backing.messages(tool, &mut faults);
        let polling = tool.polling.as_ref().map(|rule| CompiledPolling::compile(rule, &mut faults));
        check_key_header(tool, &mut faults);
        let total_timeout = timeout("total_timeout_ms", tool.total_timeout_ms);
        let total_timeout = noted(total_timeout, &mut faults);
        let body = RequestBody {
            format: tool.body_format,
            content_type: tool.body_content_type.as_deref(),
            requires: &tool.requires,
        };
        // One that is missing is a fault already.
        let method = tool.method.unwrap_or(ToolMethod::Post);
        let request = RequestPlan::compile(method.as_str(), &tool.path, &tool.fields, body);
        let request = request
            .map_err(|errors| faults.extend(errors.into_iter().map(|error| error.to_string())))
            .ok();
        let effects = request.as_ref().map(|request| Effects::compile(tool, request, &mut faults));
        let unmapped = if tool.pass_unmapped { Unmapped::Keep } else { Unmapped::Drop };
        let response = ResponsePlan::compile(&tool.response_fields, unmapped)
            .and_then(|plan| Ok((plan, mapping::output(&tool.response_fields)?)))
            .map_err(|errors| {
                let told = errors.into_iter().map(|error| format!("response_fields: {error}"));
                faults.extend(told);
            })
            .ok();
        if let Some(connection) = backing.connection {
            check_set(tool, connection, &mut faults);
            if tool.connection.is_some() && connection.has_query() {
                faults.push(format!("connection: {}", query_fault(&connection.id)));
            }
        }
        match (request, effects, response, total_timeout) {
            (Some(request), Some(effects), Some((response, output)), Some(total_timeout))
                if faults.is_empty() =>
            {
                let polling = polling.flatten();
                Ok(Self { messages, polling, total_timeout, request, effects, response, output })
            }
            _ => Err(faults),
        }
    }
}

impl CompiledTool {
    /// The full schema of the arguments.
    pub fn input_schema(&self) -> &Value {
        match (&self.own_input, &self.kind) {
            (Some(own), _) => own,
            (None, ToolKind::Rest { request, .. }) => request.input_schema(),
            (None, ToolKind::Upstream(upstream)) => upstream.plan.input_schema(),
            (None, ToolKind::Builtin(_)) => &Value::Null,
        }
    }

    /// Whether it is one of an upstream MCP server.
    pub const fn is_upstream(&self) -> bool {
        matches!(self.kind, ToolKind::Upstream(_))
    }

    /// The full schema of the result's `structuredContent`, where there is one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output.as_ref().map(|output| &output.schema)
    }

    /// Whether its structured content must be an object, in whatever revision.
    pub fn owes_object(&self) -> bool {
        self.output.as_ref().is_some_and(|output| !output.is_wrapped)
    }

    /// The schema hash in hexadecimal digits.
    pub fn schema_hash_text(&self) -> String {
        hexadecimal(&self.schema_hash)
    }

    /// What a call with these arguments does to the world.
    pub fn side_effect_of(&self, arguments: &Arguments<'_>) -> SideEffect {
        let Some(by) = &self.side_effect_by else { return self.side_effect };
        let sent = match &self.kind {
            ToolKind::Rest { request, .. } => request.argument_text(arguments, &by.argument),
            ToolKind::Upstream(upstream) => upstream.plan.argument_text(arguments, &by.argument),
            ToolKind::Builtin(_) => return self.side_effect,
        };
        by.of_text(self.side_effect, sent.as_deref())
    }

    /// All that a call may do.
    pub fn side_effects(&self) -> impl Iterator<Item = SideEffect> + '_ {
        let by_argument = self.side_effect_by.iter().flat_map(EffectByArgument::possible);
        std::iter::once(self.side_effect).chain(by_argument)
    }

    /// The name that its name for clients is made from.
    pub fn wanted_name(&self) -> &str {
        self.exposed_name.as_ref().map_or(self.source_name.as_str(), ToolName::as_str)
    }

    /// What lists show of it under this name: made once for all views that show the same.
    pub(super) fn fragment(
        &self,
        name: &ToolName,
        dialect: Dialect,
        discovery: DiscoveryMode,
    ) -> Arc<Fragment> {
        let mut shown = self.shown.lock();
        let is_wanted = |one: &&Shown| {
            one.name == *name && one.dialect == dialect && one.discovery == discovery
        };
        if let Some(known) = shown.iter().find(is_wanted).and_then(|one| one.fragment.upgrade()) {
            return known;
        }
        let is_renamed = name.as_str() != self.wanted_name();
        let entry = EntryText {
            name: name.as_str(),
            title: self.title.as_deref().or(is_renamed.then_some(self.wanted_name())),
            description: &self.description,
            input_schema: self.input_schema(),
            output_schema: self.output_schema(),
            written: self.written.as_deref(),
            is_wrapped: self.output.as_ref().is_some_and(|output| output.is_wrapped),
            mirrored: match &self.kind {
                ToolKind::Rest { request, .. } => request.mirrored(),
                ToolKind::Upstream(_) | ToolKind::Builtin(_) => &[],
            },
            hints: self.hints,
            safety: Safety {
                side_effect: self.side_effect,
                has_intent: self.side_effects().any(|effect| effect != SideEffect::Read),
                confirmation_recommended: self.confirmation_recommended,
                by_argument: self.side_effect_by.as_ref(),
            },
        };
        let fragment = Arc::new(Fragment::new(&entry, dialect, discovery));
        shown.retain(|one| one.fragment.strong_count() > 0);
        let (name, made) = (name.clone(), Arc::downgrade(&fragment));
        shown.push(Shown { name, dialect, discovery, fragment: made });
        fragment
    }

    /// Compiles a tool of a toolset that calls an API. All that is wrong comes back, not only the
    /// first; without what is behind it, whose own problem is known, there is only that.
    pub(super) fn rest(
        tool: &Arc<Tool>,
        backing: Backing<'_>,
    ) -> Result<Option<Self>, Vec<String>> {
        let plans = RestPlans::compile(tool, backing)?;
        let RestPlans { messages, polling, total_timeout, request, effects, response, output } =
            plans;
        let connection = backing.connection.filter(|_| backing.kind != ToolsetKind::Mcp);
        let Some(connection) = connection.filter(|_| backing.is_of(messages.as_ref())) else {
            return Ok(None);
        };
        let (own_input, next_argument) = with_next(request.input_schema(), &tool.budget).unzip();
        let input = own_input.as_ref().unwrap_or_else(|| request.input_schema());
        let told = output.as_ref().map(|output| &output.schema);
        let schema_hash = schema_hash(input, told);
        let is_destructive = effects.worst() == SideEffect::Destructive;
        Ok(Some(Self {
            source_name: tool.name.clone(),
            exposed_name: tool.exposed_name.clone(),
            toolset: tool.toolset.clone(),
            title: tool.title.as_deref().map(Into::into),
            description: tool.description.as_str().into(),
            total_timeout: total_timeout.or(connection.total_timeout),
            has_output_schema: output.is_some(),
            hints: hints(tool, &effects),
            side_effect: effects.base,
            side_effect_by: effects.by_argument,
            confirmation_recommended: tool
                .confirmation_recommended
                .unwrap_or(is_destructive || tool.confirm.is_some()),
            confirm: tool.confirm,
            schema_hash,
            schema_version: schema_version(&schema_hash),
            budget: tool.budget,
            log_payloads: tool.log_payloads,
            redact: tool.redact.iter().map(|path| redacted(path)).collect(),
            lost_paths: remarks::lost_paths(tool, request.input_schema(), told),
            secrets: constants::of_tool(tool),
            limit: tool.limit,
            weight: tool.weight.unwrap_or(1),
            polling,
            idempotency_key_header: tool.idempotency_key_header.as_deref().map(Into::into),
            is_repeatable: match tool.idempotency_key_header {
                Some(_) => Some(true),
                None => tool.annotations.idempotent_hint,
            },
            own_input,
            next_argument,
            output,
            written: None,
            notes: Box::default(),
            entity: Some(Arc::clone(tool)),
            shown: Mutex::default(),
            kind: ToolKind::Rest {
                connection: Arc::clone(connection),
                request,
                response,
                messages,
            },
        }))
    }

    /// Compiles one of the appliance's own tools.
    pub(super) fn builtin(tool: BuiltinTool, toolset: &ToolsetId) -> Option<Self> {
        let (input, output) = (BuiltinTool::input_schema(), tool.output_schema());
        let schema_hash = schema_hash(&input, Some(&output));
        Some(Self {
            source_name: OperationName::new(tool.name()).ok()?,
            exposed_name: None,
            toolset: toolset.clone(),
            title: Some(tool.title().into()),
            description: tool.description().into(),
            total_timeout: None,
            has_output_schema: true,
            hints: Hints {
                read_only: Some(true),
                destructive: None,
                idempotent: None,
                open_world: Some(false),
            },
            side_effect: SideEffect::Read,
            side_effect_by: None,
            confirmation_recommended: false,
            confirm: None,
            schema_hash,
            schema_version: schema_version(&schema_hash),
            budget: ResultBudget::default(),
            log_payloads: false,
            redact: Box::default(),
            lost_paths: Box::default(),
            secrets: Box::default(),
            limit: None,
            weight: 1,
            polling: None,
            idempotency_key_header: None,
            is_repeatable: None,
            own_input: Some(input),
            next_argument: None,
            output: Some(OutputSchema { schema: output, is_wrapped: false }),
            written: None,
            notes: Box::default(),
            entity: None,
            shown: Mutex::default(),
            kind: ToolKind::Builtin(tool),
        })
    }

    /// Whether compiling `tool` with this behind it would make this one again.
    pub(super) fn is_of(&self, tool: &Arc<Tool>, backing: Backing<'_>) -> bool {
        let is_same = self.entity.as_ref().is_some_and(|entity| Arc::ptr_eq(entity, tool));
        match &self.kind {
            ToolKind::Rest { connection: own, messages, .. } => {
                is_same
                    && backing.connection.is_some_and(|connection| Arc::ptr_eq(own, connection))
                    && backing.is_of(messages.as_ref())
            }
            ToolKind::Upstream(_) | ToolKind::Builtin(_) => false,
        }
    }
}

/// Why tools that are mapped cannot use a connection.
pub(super) fn query_fault(connection: &ConnectionId) -> String {
    format!(
        "the `base_url` of the connection `{connection}` has a query, which only toolsets of kind \
         `mcp` can use; remove it"
    )
}

/// A caller's argument must not get in the way of what the connection sets: credentials.
fn check_set(tool: &Tool, connection: &CompiledConnection, faults: &mut Vec<String>) {
    for rule in &tool.fields {
        let name = rule.source_field_name.trim_end_matches("[*]");
        let (is_set, what) = match rule.location {
            Location::Header => (connection.sets_header(name), "header"),
            Location::Query => (connection.credentials.sets_query(name), "parameter"),
            Location::Cookie => (connection.credentials.sets_cookie(name), "cookie"),
            Location::Path | Location::Body => (false, ""),
        };
        if is_set {
            faults.push(format!(
                "field {name} ({}): the connection `{}` sets this {what}; remove one of them",
                rule.location, connection.id
            ));
        }
    }
}

/// The key is the runtime's to set: nothing else may.
fn check_key_header(tool: &Tool, faults: &mut Vec<String>) {
    let Some(name) = tool.idempotency_key_header.as_deref() else { return };
    if !is_field_name(name) || is_reserved(name) {
        faults.push("idempotency_key_header: it is no header that may be set".to_owned());
    }
    let is_set = |rule: &&FieldRule| {
        rule.location == Location::Header && rule.source_field_name.eq_ignore_ascii_case(name)
    };
    if let Some(rule) = tool.fields.iter().find(is_set) {
        faults
            .push(format!("idempotency_key_header: field {} sets it too", rule.source_field_name));
    }
}

/// The value, or `None` with its fault noted.
pub(super) fn noted<T>(result: Result<T, String>, faults: &mut Vec<String>) -> Option<T> {
    result.map_err(|fault| faults.push(fault)).ok()
}

/// A path that is none was refused before; were it not, nothing at all would be kept.
pub(super) fn redacted(path: &str) -> FieldPath {
    FieldPath::parse(path).unwrap_or(FieldPath::ROOT)
}

/// What is said, else what the worst of its calls does, else what HTTP says about the method:
/// RFC 9110 section 9.2.
fn hints(tool: &Tool, effects: &Effects) -> Hints {
    let Annotations { read_only_hint, destructive_hint, idempotent_hint, open_world_hint } =
        tool.annotations;
    let worst = effects.worst();
    let is_said = tool.side_effect.is_some() || tool.side_effect_by.is_some();
    let is_idempotent = matches!(tool.method, Some(ToolMethod::Put | ToolMethod::Delete));
    let destructive = match worst {
        SideEffect::Destructive => Some(true),
        SideEffect::Write if is_said => Some(false),
        SideEffect::Write | SideEffect::Read => None,
    };
    Hints {
        read_only: read_only_hint.or((worst == SideEffect::Read).then_some(true)),
        destructive: destructive_hint.or(destructive),
        idempotent: idempotent_hint.or(is_idempotent.then_some(true)),
        open_world: open_world_hint,
    }
}
