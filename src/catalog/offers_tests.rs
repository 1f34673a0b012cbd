//! Prompts and resources of upstream servers in views.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::catalog::deprecated::Grace;
use crate::catalog::fixture::{definitions, entities};
use crate::catalog::{
    DefinitionKind, Definitions, Entities, OfferedResource, Snapshot, TenantId, ToolShape,
    ToolsetId, View,
};

use DefinitionKind::{Prompt, Resource, ResourceTemplate, Tool};

const GRACE: Grace = Grace { now_ms: 1_000, callable_ms: 500 };

type Offered = Vec<(DefinitionKind, Value)>;

fn key(toolset: &str) -> (TenantId, ToolsetId) {
    (TenantId::new("acme").unwrap(), ToolsetId::new(toolset).unwrap())
}

/// `acme/desk` with a toolset for each server, in the order they are written.
fn with(servers: &[(&str, Offered)], more: &str) -> Entities {
    let mut text =
        "[[tenant]]\nid = 'acme'\n[[client_application]]\ntenant = 'acme'\nid = 'desk'\n\
                    [[connection]]\ntenant = 'acme'\nid = 'c'\nbase_url = 'http://h'\n"
            .to_owned();
    for (id, _) in servers {
        let _ = write!(
            text,
            "[[toolset]]\ntenant = 'acme'\nid = '{id}'\nkind = 'mcp'\nconnection = 'c'\n\
             [[assignment]]\ntenant = 'acme'\nclient_application = 'desk'\ntoolset = '{id}'\n"
        );
    }
    let mut entities = entities(&format!("{text}{more}"));
    for (id, offered) in servers {
        entities.definitions.insert(key(id), definitions(offered));
    }
    entities
}

fn compiled(servers: &[(&str, Offered)], more: &str) -> Snapshot {
    Snapshot::compile(&with(servers, more), 1).unwrap()
}

fn desk(snapshot: &Snapshot) -> &Arc<View> {
    snapshot.view("acme", "desk").unwrap()
}

fn prompt(name: &str) -> (DefinitionKind, Value) {
    (Prompt, json!({ "name": name, "description": name }))
}

fn resource(uri: &str) -> (DefinitionKind, Value) {
    (Resource, json!({ "uri": uri, "name": uri }))
}

fn template(uri: &str) -> (DefinitionKind, Value) {
    (ResourceTemplate, json!({ "uriTemplate": uri, "name": uri }))
}

fn tool(name: &str) -> (DefinitionKind, Value) {
    (Tool, json!({ "name": name, "description": name, "inputSchema": {"type": "object"} }))
}

/// Prompts by the names that clients know, with where each comes from.
fn prompts(view: &View) -> BTreeMap<String, String> {
    let all = view.upstream_prompts().iter().map(|one| &one.prompt);
    let told = all.map(|one| {
        assert!(std::ptr::eq(view.upstream_prompt(&one.name).unwrap(), one));
        (one.name.to_string(), format!("{}/{}", one.server.toolset, one.source_name))
    });
    told.collect()
}

fn names(view: &View) -> Vec<String> {
    prompts(view).into_keys().collect()
}

fn server_of<'a>(view: &'a View, uri: &str) -> Option<&'a str> {
    view.upstream_of_resource(uri).map(|server| server.toolset.as_str())
}

#[test]
fn prompts_keep_their_names_where_nobody_else_wants_them() {
    let servers = [
        ("b", vec![prompt("ask"), prompt("Größe / x"), prompt("a_ask")]),
        ("a", vec![prompt("ask"), prompt("other")]),
    ];
    let snapshot = compiled(&servers, "");
    let found = names(desk(&snapshot));
    // The name with the toolset in front is another's: that one moves on too.
    assert!(found.contains(&"Größe / x".to_owned()), "{found:?}");
    assert!(found.contains(&"b_ask".to_owned()) && found.contains(&"other".to_owned()));
    assert!(found.contains(&"b_a_ask".to_owned()), "{found:?}");
    assert!(found.iter().any(|name| name.starts_with("a_ask_")), "{found:?}");
    // Nothing depends on the order of what was written.
    let [b, a] = servers;
    assert_eq!(prompts(desk(&compiled(&[a, b], ""))), prompts(desk(&snapshot)));
}

#[test]
fn own_prompts_keep_their_names() {
    let more = "[[toolset]]\ntenant = 'acme'\nid = 'docs'\nkind = 'builtin'\nsystem_prompt = 'x'\n\
                [[assignment]]\ntenant = 'acme'\nclient_application = 'desk'\ntoolset = 'docs'\n";
    let snapshot = compiled(&[("up", vec![prompt("docs"), resource("a:b")])], more);
    let view = desk(&snapshot);
    assert_eq!(names(view), ["up_docs"]);
    let listed: Value = serde_json::from_slice(view.prompts_list(ToolShape::V20251125)).unwrap();
    assert_eq!(listed["prompts"][0]["name"], "docs");
    assert_eq!(listed["prompts"][1], json!({ "name": "up_docs", "description": "docs" }));
    let listed: Value = serde_json::from_slice(view.resources_list(ToolShape::V20241105)).unwrap();
    assert_eq!(listed["resources"][0]["name"], "docs");
    assert_eq!(listed["resources"][1], json!({ "uri": "a:b", "name": "a:b" }));
}

#[test]
fn resources_keep_their_uris_and_the_first_toolset_has_them() {
    let servers = [
        ("b", vec![resource("x:1"), resource("x:2"), template("x:{+all}"), template("y:{a}")]),
        ("a", vec![resource("x:1"), template("y:{a}"), template("x:in/{b}")]),
    ];
    let snapshot = compiled(&servers, "");
    let view = desk(&snapshot);
    let uris: Vec<&str> = view.upstream_resources().iter().map(OfferedResource::uri).collect();
    assert_eq!(uris, ["x:1", "x:2"]);
    let templates: Vec<&str> = view.upstream_templates().iter().map(OfferedResource::uri).collect();
    assert_eq!(templates, ["x:in/{b}", "x:{+all}", "y:{a}"]);
    for (uri, expected) in [
        ("x:1", Some("a")),
        ("x:2", Some("b")),
        // The template that says the most.
        ("x:in/5", Some("a")),
        ("x:in/5/6", Some("b")),
        ("y:q", Some("a")),
        ("z:1", None),
    ] {
        assert_eq!(server_of(view, uri), expected, "{uri}");
    }
    let of = |text| view.upstream_of_template(text).map(|server| server.toolset.as_str());
    assert_eq!((of("y:{a}"), of("x:{+all}"), of("y:{b}")), (Some("a"), Some("b"), None));
    let servers: Vec<&str> = view.upstreams().iter().map(|one| one.toolset.as_str()).collect();
    assert_eq!(servers, ["a", "b"]);
    let remarks: Vec<String> = snapshot.remarks().iter().map(ToString::to_string).collect();
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    assert!(remarks[0].contains("the toolset `a` has it"), "{remarks:?}");
}

#[test]
fn what_a_policy_hides_wholly_hides_its_prompts_too() {
    let deny = "[[toolset]]\ntenant = 'acme'\nid = 'x'\nkind = 'mcp'\nconnection = 'c'\n\
                [[assignment]]\ntenant = 'acme'\nclient_application = 'desk'\ntoolset = 'x'\n\
                policy = { rules = [{ effect = 'deny' }] }\n";
    for (offered, is_shown) in [
        (vec![tool("t"), prompt("p"), resource("a:b"), template("c:{d}")], false),
        (vec![prompt("p"), resource("a:b"), template("c:{d}")], true),
    ] {
        let mut all = with(&[], deny);
        all.definitions.insert(key("x"), definitions(&offered));
        let snapshot = Snapshot::compile(&all, 1).unwrap();
        let view = desk(&snapshot);
        assert_eq!(view.upstream_prompt("p").is_some(), is_shown);
        assert_eq!(server_of(view, "a:b").is_some(), is_shown);
        assert_eq!(server_of(view, "c:x").is_some(), is_shown);
        assert_eq!(view.upstreams().len(), usize::from(is_shown));
        // Whoever keeps it fresh finds it all the same.
        assert_eq!(snapshot.upstreams().count(), 1);
        assert!(snapshot.upstream(&key("x").0, &key("x").1).is_some());
    }
}

#[test]
fn changes_are_told_apart_and_the_rest_is_taken_over() {
    let all = || vec![tool("t"), prompt("p"), resource("a:b")];
    let more = "[[toolset]]\ntenant = 'acme'\nid = 'docs'\nkind = 'builtin'\n";
    let before = with(&[("a", all()), ("b", vec![tool("u"), prompt("q")])], more);
    let old = Snapshot::compile(&before, 1).unwrap();
    let again = Snapshot::recompile(&old, &before.clone(), 2, GRACE).unwrap();
    assert!(Arc::ptr_eq(desk(&old), desk(&again)));
    for (added, expected) in [
        (tool("n"), (true, false, false)),
        (prompt("n"), (false, true, false)),
        (resource("n:n"), (false, false, true)),
        (template("n:{n}"), (false, false, true)),
    ] {
        let mut offered = all();
        offered.push(added.clone());
        let mut after = before.clone();
        after.definitions.insert(key("a"), definitions(&offered));
        let new = Snapshot::recompile(&old, &after, 2, GRACE).unwrap();
        let changes = new.changes(&old);
        assert_eq!(changes.len(), 1, "{added:?}");
        let change = &changes[0];
        assert_eq!((change.tools, change.prompts, change.resources), expected, "{added:?}");
        // The other server's are the very same.
        assert!(Arc::ptr_eq(desk(&old).tool("u").unwrap(), desk(&new).tool("u").unwrap()));
        assert!(Arc::ptr_eq(&desk(&old).upstreams()[1], &desk(&new).upstreams()[1]));
        // Other definitions that say the same change nothing that clients see.
        let mut same = before.clone();
        same.definitions.insert(key("a"), definitions(&all()));
        assert!(Snapshot::recompile(&old, &same, 2, GRACE).unwrap().changes(&old).is_empty());
    }
    let mut gone = before.clone();
    gone.definitions.remove(&key("a"));
    let new = Snapshot::recompile(&old, &gone, 2, GRACE).unwrap();
    assert!(desk(&new).tool("t").is_none() && desk(&new).deprecated("t", 1_001).is_some());
    assert_eq!(names(desk(&new)), ["q"]);
}

#[test]
fn what_servers_say_of_themselves_is_part_of_the_instructions() {
    let mut entities = with(&[("a", Vec::new()), ("b", Vec::new())], "");
    for (id, text) in [("a", "Be kind.".to_owned()), ("b", "ä".repeat(40_000))] {
        let said = Definitions { instructions: Some(text.into()), ..Definitions::default() };
        entities.definitions.insert(key(id), Arc::new(said));
    }
    let snapshot = Snapshot::compile(&entities, 1).unwrap();
    let said = desk(&snapshot).instructions.as_deref().unwrap();
    assert!(said.starts_with("About the toolset a: Be kind.\n\nAbout the toolset b: ää"), "{said}");
    assert!(said.ends_with("ä...") && said.len() < 5_000);
}

proptest! {
    #[test]
    fn names_are_unique_and_independent_of_order(
        (servers, shuffled) in prop::collection::btree_map(
            "[ab]{1,2}",
            prop::collection::btree_set("(a_|b_|aa_){0,2}[pq]", 0..6),
            1..4,
        ).prop_flat_map(|servers| {
            let servers: Vec<_> = servers.into_iter().collect();
            (Just(servers.clone()), Just(servers).prop_shuffle())
        }),
    ) {
        let all = |servers: &[(String, std::collections::BTreeSet<String>)]| {
            let offered: Vec<(&str, Offered)> = servers
                .iter()
                .map(|(id, names)| {
                    let tools = names.iter().map(|name| tool(name));
                    (id.as_str(), names.iter().map(|name| prompt(name)).chain(tools).collect())
                })
                .collect();
            let snapshot = compiled(&offered, "");
            let view = desk(&snapshot);
            let tools: Vec<(String, String)> = view
                .tools()
                .iter()
                .map(|tool| (tool.name.to_string(), format!("{}/{}", tool.toolset, tool.source_name)))
                .collect();
            (prompts(view), tools)
        };
        let found = all(&servers);
        prop_assert_eq!(&found, &all(&shuffled));
        let count: usize = servers.iter().map(|(_, names)| names.len()).sum();
        prop_assert_eq!((found.0.len(), found.1.len()), (count, count));
    }
}
