//! What client applications see: names, modes, policies, prompts.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::catalog::{
    DenialReason, DiscoveryMode, ListEntry, MetaTool, SAFETY_META, SideEffect, Snapshot, ToolShape,
    Trust, View,
    fixture::{self, entities, snapshot},
};
use crate::mapping::{Dialect, SCHEMA_DISCOVERY};

const BASE: &str = "
[[tenant]]
id = 'acme'
#tenant
[[client_application]]
tenant = 'acme'
id = 'desk'
#client
[[connection]]
tenant = 'acme'
id = 'api'
base_url = 'http://h'
[[toolset]]
tenant = 'acme'
id = 'pets'
kind = 'rest'
connection = 'api'
title = 'Pets'
#toolset
[[toolset]]
tenant = 'acme'
id = 'zoo'
kind = 'rest'
connection = 'api'
[[tool]]
tenant = 'acme'
toolset = 'pets'
name = 'list pets'
description = 'Lists pets.'
method = 'GET'
path = '/pets'
fields = [{ source_field_name = 'kind', location = 'query', description = 'Which' }]
[[tool]]
tenant = 'acme'
toolset = 'pets'
name = 'drop_pet'
description = 'Drops a pet.'
method = 'DELETE'
path = '/pets'
#tool
[[tool]]
tenant = 'acme'
toolset = 'zoo'
name = 'list_pets'
description = 'Lists pets of the zoo.'
method = 'GET'
path = '/zoo'
[[assignment]]
tenant = 'acme'
client_application = 'desk'
toolset = 'pets'
#assignment
";

const ZOO: &str = "
[[assignment]]
tenant = 'acme'
client_application = 'desk'
toolset = 'zoo'
";

/// The catalog with lines put in at places.
fn with(lines: &[(&str, &str)]) -> Snapshot {
    let text = lines.iter().fold(BASE.to_owned(), |text, (place, line)| {
        let place = format!("#{place}\n");
        assert!(text.contains(&place), "{place}");
        text.replacen(&place, &format!("{line}\n{place}"), 1)
    });
    snapshot(&text)
}

fn desk(lines: &[(&str, &str)]) -> Arc<View> {
    Arc::clone(with(lines).view("acme", "desk").unwrap())
}

fn names(view: &View) -> Vec<&str> {
    view.tools().iter().map(|tool| tool.name.as_str()).collect()
}

fn listed(view: &View) -> Vec<Value> {
    let list: Value = serde_json::from_slice(view.tools_list(ToolShape::V20251125)).unwrap();
    list["tools"].as_array().unwrap().clone()
}

fn list_names(view: &View) -> Vec<String> {
    listed(view).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn tools_are_called_by_names_models_can_write() {
    let view = desk(&[]);
    assert_eq!(names(&view), ["drop_pet", "list_pets"]);
    let tool = view.tool("list_pets").unwrap();
    assert_eq!(tool.source_name.as_str(), "list pets");
    // The name it has where it comes from is its title, where it has none.
    assert_eq!(listed(&view)[1]["title"], "list pets");
    assert_eq!(listed(&view)[0].get("title"), None);
    let titled = desk(&[("tool", "title = 'Drop'")]);
    assert_eq!(listed(&titled)[0]["title"], "Drop");
}

#[test]
fn names_that_two_toolsets_want_are_told_apart() {
    let text = format!("{BASE}{ZOO}");
    let view = fixture::view(&text);
    assert_eq!(names(&view), ["drop_pet", "pets_list_pets", "zoo_list_pets"]);
    for tool in view.tools() {
        assert!(Arc::ptr_eq(view.tool(tool.name.as_str()).unwrap(), tool));
    }
    assert_eq!(listed(&view)[2]["title"], "list_pets");
    // A budget too short for both.
    let text = text.replacen("#client\n", "name_budget = 16\n", 1);
    let view = fixture::view(&text);
    assert!(names(&view).iter().all(|name| name.len() <= 16), "{:?}", names(&view));
}

#[test]
fn names_of_meta_tools_are_kept_free() {
    let text = BASE.replacen("name = 'drop_pet'", "name = 'call_tool'", 1);
    let view = fixture::view(&text);
    assert_eq!(names(&view), ["list_pets", "pets_call_tool"]);
    assert_eq!(view.meta_tool("call_tool"), None);
}

#[test]
fn denied_tools_are_hidden_and_keep_their_names() {
    let rule = "[[client_application.policy.rules]]\neffect = 'deny'\ntools = ['pets/list*']";
    let view = desk(&[("client", rule)]);
    assert_eq!(names(&view), ["drop_pet"]);
    assert_eq!(list_names(&view), ["drop_pet"]);
    assert!(view.tool("list_pets").is_none());
    let hidden = view.hidden("list_pets").unwrap();
    let denied = hidden.permission.always().denied.unwrap();
    assert_eq!(denied.code(), "denied_by_rule");
    assert_eq!(view.assigned().count(), 2);
    // A hidden tool still wants its name: showing it must not rename others.
    let text = format!("{BASE}{ZOO}").replacen("#client\n", &format!("{rule}\n"), 1);
    assert_eq!(names(&fixture::view(&text)), ["drop_pet", "zoo_list_pets"]);
}

#[test]
fn what_is_observed_or_conditional_stays_visible() {
    let observed = "policy = { mode = 'observe', rules = [{ effect = 'deny' }] }";
    let view = desk(&[("assignment", observed)]);
    assert_eq!(names(&view), ["drop_pet", "list_pets"]);
    assert!(view.tools()[0].permission.always().observed.is_some());
    let trusted = "policy = { rules = [{ effect = 'allow', required_trust = 'high' }] }";
    let view = desk(&[("assignment", trusted)]);
    let drop = view.tool("drop_pet").unwrap();
    let judged = |trust| drop.permission.judge(trust, 0, SideEffect::Destructive).denied;
    assert_eq!(judged(Trust::High), None);
    assert_eq!(judged(Trust::Low), Some(DenialReason::TrustTooLow { required: Trust::High }));
}

#[test]
fn tenants_may_deny_what_nobody_allows() {
    let view = desk(&[("tenant", "default_deny = true")]);
    assert!(view.tools().is_empty());
    let denied = view.hidden("drop_pet").unwrap().permission.always().denied;
    assert_eq!(denied, Some(DenialReason::DefaultDeny));
    let allow = "policy = { rules = [{ effect = 'allow', side_effects = ['read'] }] }";
    let view = desk(&[("tenant", "default_deny = true"), ("assignment", allow)]);
    assert_eq!(names(&view), ["list_pets"]);
}

#[test]
fn lazy_tools_come_with_the_meta_tool_that_tells_their_schemas() {
    assert_eq!(desk(&[]).meta_tools().count(), 0);
    let view = desk(&[("toolset", "discovery_mode = 'lazy'")]);
    assert_eq!(list_names(&view), ["discover_tool_schema", "drop_pet", "list_pets"]);
    assert_eq!(view.meta_tool("discover_tool_schema"), Some(MetaTool::DiscoverToolSchema));
    let shown = &listed(&view)[2]["inputSchema"]["properties"];
    assert_eq!(shown.as_object().unwrap().keys().collect::<Vec<_>>(), [SCHEMA_DISCOVERY]);
    let full = view.tool("list_pets").unwrap().input_schema();
    assert!(full["properties"]["kind"].is_object());
    assert!(view.instructions.as_deref().unwrap().contains("discover_tool_schema"));
    // The assignment has the last word.
    let lines = [("toolset", "discovery_mode = 'lazy'"), ("assignment", "discovery_mode = 'full'")];
    let view = desk(&lines);
    assert_eq!(list_names(&view), ["drop_pet", "list_pets"]);
    assert_eq!(view.tools()[0].discovery, DiscoveryMode::Full);
    assert_eq!(view.instructions, None);
}

#[test]
fn schemas_are_shown_in_the_dialect_of_the_client_application() {
    let view = desk(&[("client", "schema_dialect = 'openai_strict'")]);
    assert_eq!(view.dialect, Dialect::OpenaiStrict);
    assert_eq!(listed(&view)[1]["inputSchema"]["required"], json!(["kind"]));
    assert!(view.tool("list_pets").unwrap().input_schema().get("required").is_none());
    let lines = [("toolset", "discovery_mode = 'data_structure_only'")];
    let kind = listed(&desk(&lines))[2]["inputSchema"]["properties"]["kind"].clone();
    assert_eq!(kind, json!({"type": "string"}));
}

#[test]
fn what_a_call_does_is_known_from_its_arguments() {
    let view = desk(&[(
        "tool",
        "fields = [{ source_field_name = 'how', location = 'query' }]\nside_effect = 'write'\n\
         side_effect_by = { argument = 'how', values = { kill = 'destructive', look = 'read' } }",
    )]);
    let tool = view.tool("drop_pet").unwrap();
    let crate::catalog::ToolKind::Rest { request, .. } = &tool.kind else { panic!() };
    for (arguments, expected) in [
        (r#"{"how":"kill"}"#, SideEffect::Destructive),
        (r#"{"how":"\u006book"}"#, SideEffect::Write),
        (r#"{"how":"l\u006fok"}"#, SideEffect::Read),
        (r#"{"how":"other"}"#, SideEffect::Write),
        ("{}", SideEffect::Write),
    ] {
        let raw = crate::json::OwnedRaw::parse(arguments.as_bytes()).unwrap();
        let arguments = request.validate(Some(raw.as_raw())).unwrap();
        assert_eq!(tool.side_effect_of(&arguments), expected);
    }
}

#[test]
fn a_view_that_is_searched_lists_meta_tools_and_favourites() {
    let view = desk(&[("client", "tool_listing = 'search'\nfavourites = ['drop_*']")]);
    let expected = ["search_tools", "describe_tool", "call_tool", "drop_pet"];
    assert_eq!(list_names(&view), expected);
    assert_eq!(view.list_len(), 4);
    let entries: Vec<&str> =
        (0..view.list_len()).filter_map(|at| view.list_entry(at)).map(ListEntry::name).collect();
    assert_eq!(entries, expected);
    assert_eq!(names(&view), ["drop_pet", "list_pets"]);
    assert_eq!(view.meta_tool("search_tools"), Some(MetaTool::SearchTools));
    assert_eq!(view.meta_tool("discover_tool_schema"), None);
    assert!(view.instructions.as_deref().unwrap().contains("search_tools"));
    assert!(view.list_entry(4).is_none());
}

#[test]
fn safety_is_told_with_the_argument_it_depends_on() {
    let view = desk(&[(
        "tool",
        "fields = [{ source_field_name = 'how', location = 'query' }]\n\
         side_effect = 'write'\nconfirmation_recommended = true\n\
         side_effect_by = { argument = 'how', values = { kill = 'destructive', look = 'read' } }",
    )]);
    let safety = &listed(&view)[0]["_meta"][SAFETY_META];
    let expected = json!({
        "sideEffect": "write",
        "mutationIntent": true,
        "confirmationRecommended": true,
        "dependsOn": {"argument": "how", "values": {"kill": "destructive", "look": "read"}},
    });
    assert_eq!(*safety, expected);
    assert_eq!(listed(&view)[0]["annotations"]["destructiveHint"], true);
    let deny = "policy = { rules = [{ effect = 'deny', side_effects = ['write'] }] }";
    let plain = desk(&[("tool", "side_effect = 'write'"), ("assignment", deny)]);
    assert_eq!(names(&plain), ["list_pets"]);
}

#[test]
fn schemas_have_hashes_and_versions_of_their_own() {
    let view = desk(&[]);
    let (one, other) = (view.tool("list_pets").unwrap(), view.tool("drop_pet").unwrap());
    assert_ne!(one.schema_hash, other.schema_hash);
    assert!(one.schema_hash_text().starts_with(&*one.schema_version));
    let lazy = desk(&[("toolset", "discovery_mode = 'lazy'")]);
    assert_eq!(lazy.tool("list_pets").unwrap().schema_hash, one.schema_hash);
}

fn prompt(lines: &[(&str, &str)]) -> Option<String> {
    desk(lines).prompt("pets").map(|prompt| prompt.text.to_string())
}

#[test]
fn prompts_are_put_together_for_each_client_application() {
    type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
    let toolset = ("toolset", "system_prompt = 'Toolset.'");
    let client = ("client", "system_prompt = 'Client.'");
    let include = ("assignment", "include_client_prompt = true");
    let own = ("assignment", "prompt = 'Own.'");
    let instead = ("assignment", "prompt_mode = 'override'");
    let table: &[Case<'_>] = &[
        (&[], None),
        (&[client], None),
        (&[toolset], Some("Toolset.")),
        (&[toolset, client], Some("Toolset.")),
        (&[toolset, client, include], Some("Toolset.\n\nClient.")),
        (&[client, include], Some("Client.")),
        (&[toolset, client, include, own], Some("Toolset.\n\nClient.\n\nOwn.")),
        (&[toolset, client, include, own, instead], Some("Own.")),
        (&[own], Some("Own.")),
        (&[("toolset", "system_prompt = ' '")], None),
        (&[toolset, ("assignment", "prompt = ''"), instead], None),
        (&[toolset, ("assignment", "policy = { rules = [{ effect = 'deny' }] }")], None),
        (&[toolset, ("assignment", "enabled = false")], None),
    ];
    for (lines, expected) in table {
        assert_eq!(prompt(lines).as_deref(), *expected, "{lines:?}");
    }
}

#[test]
fn prompts_are_listed_as_prompts_and_as_resources() {
    let view =
        desk(&[("toolset", "system_prompt = 'Be \"kind\".'"), ("client", "instructions = 'Hi.'")]);
    let parsed = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let old = json!({"prompts": [{"name": "pets", "description": "How to use the tools of Pets"}]});
    assert_eq!(parsed(view.prompts_list(ToolShape::V20250326)), old);
    let new = parsed(view.prompts_list(ToolShape::V20251125));
    assert_eq!(new["prompts"][0]["title"], "Pets");
    let resource = json!({"resources": [{
        "uri": "runtime://toolsets/pets/system-prompt", "name": "pets", "title": "Pets",
        "description": "How to use the tools of Pets", "mimeType": "text/plain", "size": 10,
    }]});
    assert_eq!(parsed(view.resources_list(ToolShape::V20250618)), resource);
    let old = &parsed(view.resources_list(ToolShape::V20241105))["resources"][0];
    assert!(old.get("title").is_none() && old.get("size").is_none());
    let instructions = view.instructions.as_deref().unwrap();
    assert!(instructions.starts_with("Hi.\n\n") && instructions.contains("There are: pets."));
    let none = desk(&[]);
    assert_eq!(**none.prompts_list(ToolShape::V20251125), *b"{\"prompts\":[]}");
    assert_eq!(**none.resources_list(ToolShape::V20251125), *b"{\"resources\":[]}");
}

#[test]
fn changes_of_prompts_are_told_apart_from_those_of_tools() {
    let before = with(&[("toolset", "system_prompt = 'One.'")]);
    let after = with(&[("toolset", "system_prompt = 'Two.'")]);
    let changes = after.changes(&before);
    assert_eq!(changes.len(), 1);
    assert!(!changes[0].tools && changes[0].prompts && changes[0].resources);
    let hidden = with(&[
        ("toolset", "system_prompt = 'One.'"),
        ("assignment", "policy = { rules = [{ effect = 'deny' }] }"),
    ]);
    let changes = hidden.changes(&before);
    assert!(changes[0].tools && changes[0].prompts);
}

#[test]
fn payloads_are_logged_where_a_tool_says_so() {
    assert!(!desk(&[]).logs_payloads());
    assert!(desk(&[("tool", "log_payloads = true")]).logs_payloads());
}

#[test]
fn wrong_policies_and_arguments_are_problems_at_their_entities() {
    for (place, line, expected) in [
        ("client", "name_budget = 5", "client application acme/desk: name_budget"),
        ("tenant", "limits = { light = { count = 0 } }", "tenant acme: limits.light.count"),
        (
            "assignment",
            "policy = { rules = [{ effect = 'deny', required_trust = 'low' }] }",
            "assignment acme/desk/pets: policy.rules: rule 1",
        ),
        ("assignment", "prompt_mode = 'override'", "assignment acme/desk/pets: prompt_mode"),
        (
            "tool",
            "side_effect_by = { argument = 'x', values = { a = 'read' } }",
            "tool acme/pets/drop_pet: side_effect_by.argument: no single field",
        ),
    ] {
        let place = format!("#{place}\n");
        let problems = entities(&BASE.replacen(&place, &format!("{line}\n"), 1)).check();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].message.starts_with(expected), "{problems:?}");
    }
}

#[test]
fn views_share_what_they_show_alike() {
    let other = "[[client_application]]\ntenant = 'acme'\nid = 'till'\n\
                 policy = { rules = [{ effect = 'deny', tools = ['drop_*'] }] }\n\
                 [[assignment]]\ntenant = 'acme'\nclient_application = 'till'\ntoolset = 'pets'\n";
    let snapshot = snapshot(&format!("{BASE}{other}"));
    let (desk, till) =
        (snapshot.view("acme", "desk").unwrap(), snapshot.view("acme", "till").unwrap());
    assert_eq!(names(till), ["list_pets"]);
    let tool = |view: &View| Arc::clone(view.tool("list_pets").unwrap());
    let (one, other) = (tool(desk), tool(till));
    assert!(Arc::ptr_eq(&one.tool, &other.tool));
    // The bytes are the same ones, although permissions differ.
    let bytes = |tool: &crate::catalog::ViewTool| tool.fragment(ToolShape::V20251125).as_ptr();
    assert_eq!(bytes(&one), bytes(&other));
}
