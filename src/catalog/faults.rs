//! What is wrong with an entity by itself, whatever others there are.

use super::model::SideEffectBy;
use super::policy::PATTERNS_MAX;
use super::{
    Assignment, ClientApplication, PromptMode, RATE_COUNT_MAX, SideEffect, Tenant, Tool, Toolset,
    ToolsetKind, Upstream, UpstreamTransport,
};
use crate::mapping::{BodyFormat, FieldPath, PassedPlan};

/// Longest description of a tool, prompt or instructions of a client application, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 65_536;
/// Longest title, in bytes.
pub const TITLE_BYTES_MAX: usize = 512;

/// What an MCP server can be held to speak, the newest last.
const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// A second: a shorter grace time would not outlast a restart.
const GRACE_MS_MIN: u64 = 1_000;
/// Thirty days.
const GRACE_MS_MAX: u64 = 30 * 86_400_000;

const REDACTED_MAX: usize = 100;
const REDACTED_BYTES_MAX: usize = 1_024;
const SIDE_EFFECT_VALUES_MAX: usize = 100;
const NAME_BUDGET_MIN: u8 = 16;
const NAME_BUDGET_MAX: u8 = 64;

fn text(key: &str, text: Option<&str>, bytes_max: usize, faults: &mut Vec<String>) {
    if text.is_some_and(|text| text.len() > bytes_max) {
        faults.push(format!("{key}: longer than {bytes_max} bytes"));
    }
}

pub(super) fn of_tenant(tenant: &Tenant) -> Vec<String> {
    let mut faults = Vec::new();
    text("title", tenant.title.as_deref(), TITLE_BYTES_MAX, &mut faults);
    if tenant.sessions_max == Some(0) {
        faults.push("sessions_max: expected 1 or more".to_owned());
    }
    tenant.limits.check("limits", &mut faults);
    faults
}

pub(super) fn of_client_application(client: &ClientApplication) -> Vec<String> {
    let mut faults = Vec::new();
    text("title", client.title.as_deref(), TITLE_BYTES_MAX, &mut faults);
    for (key, value) in
        [("instructions", &client.instructions), ("system_prompt", &client.system_prompt)]
    {
        text(key, value.as_deref(), DESCRIPTION_BYTES_MAX, &mut faults);
    }
    let budgets = NAME_BUDGET_MIN..=NAME_BUDGET_MAX;
    if client.name_budget.is_some_and(|budget| !budgets.contains(&budget)) {
        faults.push(format!("name_budget: expected {NAME_BUDGET_MIN} to {NAME_BUDGET_MAX}"));
    }
    if client.favourites.len() > PATTERNS_MAX {
        faults.push(format!("favourites: more than {PATTERNS_MAX} patterns"));
    }
    client.policy.check(&mut faults);
    client.limits.check("limits", &mut faults);
    client.caller_limits.check("caller_limits", &mut faults);
    if client
        .caller_limits
        .listening_streams
        .is_some_and(|streams| client.limits.listening_streams.is_some_and(|all| all < streams))
    {
        let message = "caller_limits.listening_streams: more than all callers together may have";
        faults.push(message.to_owned());
    }
    faults
}

pub(super) fn of_toolset(toolset: &Toolset) -> Vec<String> {
    let mut faults = Vec::new();
    text("title", toolset.title.as_deref(), TITLE_BYTES_MAX, &mut faults);
    for (key, value) in
        [("description", &toolset.description), ("system_prompt", &toolset.system_prompt)]
    {
        text(key, value.as_deref(), DESCRIPTION_BYTES_MAX, &mut faults);
    }
    if toolset.kind == ToolsetKind::Mcp {
        upstream(&toolset.upstream, &mut faults);
    } else if toolset.upstream != Upstream::default() {
        faults.push("upstream: only a toolset of kind `mcp` has it".to_owned());
    }
    faults
}

fn upstream(upstream: &Upstream, faults: &mut Vec<String>) {
    let revision = upstream.revision.as_deref();
    if revision.is_some_and(|revision| !REVISIONS.contains(&revision)) {
        faults.push(format!("upstream.revision: expected one of {}", REVISIONS.join(", ")));
    }
    if upstream.transport == UpstreamTransport::HttpSse && revision == REVISIONS.last().copied() {
        faults.push("upstream.transport: this revision has no HTTP+SSE".to_owned());
    }
    let grace = GRACE_MS_MIN..=GRACE_MS_MAX;
    if upstream.grace_ms.is_some_and(|grace_ms| !grace.contains(&grace_ms)) {
        faults.push(format!("upstream.grace_ms: expected {GRACE_MS_MIN} to {GRACE_MS_MAX}"));
    }
}

pub(super) fn of_assignment(assignment: &Assignment) -> Vec<String> {
    let mut faults = Vec::new();
    text("prompt", assignment.prompt.as_deref(), DESCRIPTION_BYTES_MAX, &mut faults);
    if assignment.prompt_mode == PromptMode::Override && assignment.prompt.is_none() {
        faults
            .push("prompt_mode: `override` needs a `prompt`; an empty one says nothing".to_owned());
    }
    assignment.policy.check(&mut faults);
    faults
}

/// What a tool must have that is mapped, and what it must not.
pub(super) fn of_mapping(tool: &Tool, faults: &mut Vec<String>) {
    if tool.description.trim().is_empty() {
        faults.push("description: is empty; models choose tools by it".to_owned());
    }
    if tool.method.is_none() {
        faults.push("method: is missing".to_owned());
    }
    for rule in tool.fields.iter().chain(&tool.response_fields).filter(|rule| rule.hidden) {
        faults.push(format!(
            "field {}: hidden is for tools of MCP servers; leave the rule out",
            rule.source_field_name
        ));
    }
}

/// What makes no sense of a tool of an MCP server, and what is wrong with its rules.
pub(super) fn of_override(tool: &Tool, faults: &mut Vec<String>) {
    let said = [
        ("method", tool.method.is_some()),
        ("path", !tool.path.is_empty()),
        ("connection", tool.connection.is_some()),
        ("body_format", tool.body_format != BodyFormat::default()),
        ("body_content_type", tool.body_content_type.is_some()),
        ("requires", !tool.requires.is_empty()),
        ("soap", tool.soap.is_some()),
        ("polling", tool.polling.is_some()),
        ("idempotency_key_header", tool.idempotency_key_header.is_some()),
        ("response_fields", !tool.response_fields.is_empty()),
        ("pass_unmapped", tool.pass_unmapped),
    ];
    for (key, _) in said.into_iter().filter(|(_, is_said)| *is_said) {
        faults.push(format!("{key}: tools of a toolset of kind `mcp` have none; remove it"));
    }
    faults.extend(PassedPlan::faults(&tool.fields));
}

/// What is wrong with a tool besides its mapping, whose compiler finds that.
pub(super) fn of_tool(tool: &Tool) -> Vec<String> {
    let mut faults = Vec::new();
    text("description", Some(&tool.description), DESCRIPTION_BYTES_MAX, &mut faults);
    text("title", tool.title.as_deref(), TITLE_BYTES_MAX, &mut faults);
    side_effects(tool, &mut faults);
    faults.extend(tool.budget.problem().map(|problem| format!("budget.{problem}")));
    redacted(&tool.redact, &mut faults);
    if let Some(rate) = tool.limit {
        rate.check("limit", &mut faults);
    }
    let weight = tool.weight.unwrap_or(1);
    if weight == 0 || weight > RATE_COUNT_MAX {
        faults.push(format!("weight: expected 1 to {RATE_COUNT_MAX}"));
    } else if tool.limit.is_some_and(|rate| rate.burst() < weight) {
        faults.push("weight: more than `limit` ever has at once: no call could pass".to_owned());
    }
    faults
}

fn side_effects(tool: &Tool, faults: &mut Vec<String>) {
    let hints = tool.annotations;
    let says_read = hints.read_only_hint == Some(true);
    if says_read && hints.destructive_hint == Some(true) {
        faults.push("annotations: it cannot be read-only and destructive".to_owned());
    }
    let contradicted = match tool.side_effect {
        Some(SideEffect::Read) => {
            hints.read_only_hint == Some(false) || hints.destructive_hint == Some(true)
        }
        Some(SideEffect::Write) => says_read || hints.destructive_hint == Some(true),
        Some(SideEffect::Destructive) => says_read || hints.destructive_hint == Some(false),
        None => false,
    };
    if contradicted {
        faults.push("side_effect: the annotations say something else".to_owned());
    }
    let Some(SideEffectBy { argument, values }) = &tool.side_effect_by else { return };
    if values.is_empty() || values.len() > SIDE_EFFECT_VALUES_MAX {
        faults.push(format!("side_effect_by.values: expected 1 to {SIDE_EFFECT_VALUES_MAX}"));
    }
    if argument.is_empty() {
        faults.push("side_effect_by.argument: is empty".to_owned());
    }
}

fn redacted(paths: &[String], faults: &mut Vec<String>) {
    if paths.len() > REDACTED_MAX {
        faults.push(format!("redact: more than {REDACTED_MAX} paths"));
        return;
    }
    for path in paths {
        let shown = super::names::shortened(path);
        if path.len() > REDACTED_BYTES_MAX {
            faults.push(format!("redact: {shown:?} is longer than {REDACTED_BYTES_MAX} bytes"));
        } else if let Err(error) = FieldPath::parse(path) {
            faults.push(format!("redact: {shown:?}: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = "tenant = 'acme'\nid = 'desk'\n";
    const TOOL: &str = "tenant = 'acme'\ntoolset = 'pets'\nname = 'a.b c'\ndescription = 'x'\n\
                        method = 'POST'\npath = '/'\n";

    fn client(more: &str) -> Vec<String> {
        of_client_application(&toml::from_str(&format!("{CLIENT}{more}")).unwrap())
    }

    fn tool(more: &str) -> Vec<String> {
        of_tool(&toml::from_str(&format!("{TOOL}{more}")).unwrap())
    }

    #[test]
    fn everything_that_can_be_said_is_read_and_written_back() {
        let text = format!(
            "{CLIENT}system_prompt = 'Be brief.'\nschema_dialect = 'openai_strict'\n\
             name_budget = 40\ntool_listing = 'search'\nfavourites = ['pets/list_*']\n\
             limits = {{ requests = {{ count = 5 }}, listening_streams = 3 }}\n\
             [policy]\nmode = 'observe'\n"
        );
        let client: ClientApplication = toml::from_str(&text).unwrap();
        assert_eq!(of_client_application(&client), Vec::<String>::new());
        let written = serde_json::to_string(&client).unwrap();
        assert_eq!(serde_json::from_str::<ClientApplication>(&written).unwrap(), client);

        let text = format!(
            "{TOOL}side_effect = 'write'\nconfirmation_recommended = true\nlog_payloads = true\n\
             redact = ['card.number']\nweight = 5\nlimit = {{ count = 5, seconds = 1 }}\n\
             budget = {{ rows = 5 }}\npass_unmapped = true\n\
             side_effect_by = {{ argument = 'do', values = {{ drop = 'destructive' }} }}\n"
        );
        let tool: Tool = toml::from_str(&text).unwrap();
        assert_eq!(of_tool(&tool), Vec::<String>::new());
        let written = serde_json::to_string(&tool).unwrap();
        assert_eq!(serde_json::from_str::<Tool>(&written).unwrap(), tool);

        let text = "tenant = 'acme'\nclient_application = 'desk'\ntoolset = 'pets'\n\
                    include_client_prompt = true\nprompt = 'x'\nprompt_mode = 'override'\n\
                    discovery_mode = 'data_structure_only'\n";
        let assignment: Assignment = toml::from_str(text).unwrap();
        assert_eq!(of_assignment(&assignment), Vec::<String>::new());
        let written = serde_json::to_string(&assignment).unwrap();
        assert_eq!(serde_json::from_str::<Assignment>(&written).unwrap(), assignment);
    }

    #[test]
    fn what_is_not_said_is_not_written() {
        let client: ClientApplication = toml::from_str(CLIENT).unwrap();
        assert_eq!(
            serde_json::to_string(&client).unwrap(),
            r#"{"tenant":"acme","id":"desk","open":false}"#
        );
    }

    #[test]
    fn faults_of_client_applications_are_found() {
        for (more, expected) in [
            ("name_budget = 15", "name_budget: expected 16 to 64"),
            ("name_budget = 65", "name_budget: expected 16 to 64"),
            ("limits = { light = { count = 0 } }", "limits.light.count: expected 1"),
            ("caller_limits = { light = { count = 0 } }", "caller_limits.light.count: expected"),
            (
                "limits = { listening_streams = 1 }\ncaller_limits = { listening_streams = 2 }",
                "caller_limits.listening_streams: more than all",
            ),
            (&format!("system_prompt = '{}'", "x".repeat(65_537)), "system_prompt: longer than"),
            (&format!("favourites = [{}]", "'a',".repeat(201)), "favourites: more than 200"),
            ("[[policy.rules]]\neffect = 'deny'\nrequired_trust = 'low'", "policy.rules: rule 1"),
        ] {
            let faults = client(more);
            assert!(faults.len() == 1 && faults[0].starts_with(expected), "{more}: {faults:?}");
        }
    }

    #[test]
    fn faults_of_tools_are_found() {
        for (more, expected) in [
            ("weight = 0", "weight: expected 1"),
            ("weight = 6\nlimit = { count = 5 }", "weight: more than `limit`"),
            ("limit = { count = 5, seconds = 0 }", "limit.seconds: expected"),
            ("budget = { bytes = 0 }", "budget.bytes: expected"),
            ("redact = ['a..b']", "redact: \"a..b\": a name is missing"),
            ("side_effect_by = { argument = 'a', values = {} }", "side_effect_by.values"),
            (
                "side_effect = 'read'\nannotations = { destructive_hint = true }",
                "side_effect: the annotations",
            ),
            (
                "side_effect = 'destructive'\nannotations = { read_only_hint = true }",
                "side_effect: the annotations",
            ),
            (
                "annotations = { read_only_hint = true, destructive_hint = true }",
                "annotations: it cannot",
            ),
        ] {
            let faults = tool(more);
            assert!(faults.len() == 1 && faults[0].starts_with(expected), "{more}: {faults:?}");
        }
    }
}
