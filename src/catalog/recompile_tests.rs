//! Changes: what is taken over, what is made anew, what is told.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::catalog::ToolShape;
use crate::catalog::fixture::{changed, entities};

const GRACE: Grace = Grace { now_ms: 1_000, callable_ms: 500 };

fn recompiled(older: &Snapshot, entities: &Entities) -> Snapshot {
    Snapshot::recompile(older, entities, older.version() + 1, GRACE).unwrap()
}

fn list(view: &View, shape: ToolShape) -> Value {
    serde_json::from_slice(view.tools_list(shape)).unwrap()
}

/// `toolsets` toolsets of `tools` tools, and `clients` client applications that have all but one of
/// them, each another one.
fn large(toolsets: usize, tools: usize, clients: usize) -> String {
    let mut text = "[[tenant]]\nid = 'acme'\n[[connection]]\ntenant = 'acme'\nid = 'api'\n\
                    base_url = 'http://127.0.0.1:9000'\n"
        .to_owned();
    for set in 0..toolsets {
        let _ = write!(
            text,
            "[[toolset]]\ntenant = 'acme'\nid = 's{set}'\nkind = 'rest'\nconnection = 'api'\n"
        );
        for tool in 0..tools {
            let _ = write!(
                text,
                "[[tool]]\ntenant = 'acme'\ntoolset = 's{set}'\nname = 'tool_{set}_{tool}'\n\
                 description = 'Does the thing number {tool}, which is useful now and then.'\n\
                 method = 'POST'\npath = '/things/{{id}}'\n\
                 fields = [{{ source_field_name = 'id', location = 'path' }},\n\
                 {{ source_field_name = 'order.name', description = 'What it is called' }},\n\
                 {{ source_field_name = 'order.lines[*].sku', required = true }}]\n"
            );
        }
    }
    for client in 0..clients {
        let _ = writeln!(text, "[[client_application]]\ntenant = 'acme'\nid = 'c{client}'");
        for set in (0..toolsets).filter(|set| *set != client % toolsets) {
            let _ = writeln!(
                text,
                "[[assignment]]\ntenant = 'acme'\nclient_application = 'c{client}'\n\
                 toolset = 's{set}'"
            );
        }
    }
    text
}

#[test]
fn a_thousand_tools_compile_and_are_shared() {
    let snapshot = Snapshot::compile(&entities(&large(10, 100, 20)), 1).unwrap();
    let (one, other) = (snapshot.view("acme", "c0").unwrap(), snapshot.view("acme", "c1").unwrap());
    assert_eq!(one.tools().len(), 900);
    assert!(one.tool("tool_0_1").is_none());
    let shared = "tool_5_99";
    assert!(Arc::ptr_eq(one.tool(shared).unwrap(), other.tool(shared).unwrap()));
    // c0 and c10 have the same toolsets, and so the very same list.
    let tenth = snapshot.view("acme", "c10").unwrap();
    assert!(Arc::ptr_eq(
        one.tools_list(ToolShape::V20251125),
        tenth.tools_list(ToolShape::V20251125)
    ));
    assert_eq!(list(one, ToolShape::V20251125)["tools"].as_array().unwrap().len(), 900);
    for tool in one.tools() {
        assert!(Arc::ptr_eq(one.tool(tool.name.as_str()).unwrap(), tool));
    }
}

#[test]
fn what_is_the_same_is_taken_over() {
    let text = large(4, 5, 4);
    let before = entities(&text);
    let old = Snapshot::compile(&before, 1).unwrap();
    let same = recompiled(&old, &before.clone());
    for view in old.views() {
        let id = view.client_application.as_str();
        assert!(Arc::ptr_eq(view, same.view("acme", id).unwrap()));
    }
    assert!(same.changes(&old).is_empty());
    assert_eq!(same.version(), 2);

    // A tool of s0 changes: c0, which does not have it, keeps its view.
    let text = text.replacen("the thing number 3,", "another thing,", 1);
    let new = recompiled(&same, &changed(&before, &text));
    assert!(Arc::ptr_eq(old.view("acme", "c0").unwrap(), new.view("acme", "c0").unwrap()));
    let (was, is) = (old.view("acme", "c1").unwrap(), new.view("acme", "c1").unwrap());
    for (was, is) in was.tools().iter().zip(is.tools()) {
        assert_eq!(Arc::ptr_eq(was, is), was.name.as_str() != "tool_0_3", "{:?}", was.name);
    }
    let mut told: Vec<String> = new
        .changes(&old)
        .iter()
        .inspect(|change| assert!(change.tools && !change.prompts && !change.resources))
        .map(|change| change.view.client_application.to_string())
        .collect();
    told.sort();
    assert_eq!(told, ["c1", "c2", "c3"]);
}

#[test]
fn a_change_that_nobody_sees_is_told_to_nobody() {
    let text = large(2, 3, 2);
    let before = entities(&text);
    let old = Snapshot::compile(&before, 1).unwrap();
    let seen = text.replace("http://127.0.0.1:9000", "http://127.0.0.1:9001");
    let new = recompiled(&old, &changed(&before, &seen));
    assert!(new.changes(&old).is_empty());
    let view = new.view("acme", "c0").unwrap();
    let crate::catalog::ToolKind::Rest { connection, .. } = &view.tools()[0].kind else { panic!() };
    assert_eq!(connection.port, 9001);
}

/// What a view shows, in every way there is.
fn shown(snapshot: &Snapshot) -> Vec<(String, Vec<Value>)> {
    let mut views: Vec<(String, Vec<Value>)> = snapshot
        .views()
        .map(|view| {
            let lists = [ToolShape::V20241105, ToolShape::V20250326, ToolShape::V20251125];
            let lists = lists.map(|shape| list(view, shape)).into_iter();
            let names = view.assigned().map(|tool| Value::from(tool.name.as_str()));
            (view.client_application.to_string(), lists.chain(names).collect())
        })
        .collect();
    views.sort_by(|one, other| one.0.cmp(&other.0));
    views
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// However a catalog came to be, it shows what it would had it been compiled at once.
    #[test]
    fn a_catalog_does_not_depend_on_how_it_came_to_be(
        steps in prop::collection::vec((0_usize..3, 0_usize..3, 0_usize..6), 1..8),
    ) {
        let declared = |step: &[(usize, usize, usize)]| {
            let mut text = large(3, 4, 3);
            for (set, tool, what) in step {
                let name = format!("name = 'tool_{set}_{tool}'");
                let head = format!("tenant = 'acme'\ntoolset = 's{set}'\n{name}\n");
                let to = match what {
                    0 => format!("{head}enabled = false\n"),
                    1 => format!("{head}title = 'Other'\n"),
                    // In conflict with a tool of the next toolset.
                    2 => head.replace(&name, &format!("name = 'tool {} {tool}'", (set + 1) % 3)),
                    3 => format!("{head}side_effect = 'destructive'\n"),
                    4 => format!("{head}weight = 5\n"),
                    _ => head.replace(&name, "name = 'call_tool'"),
                };
                if !text.contains("name = 'call_tool'") || *what != 5 {
                    text = text.replacen(&head, &to, 1);
                }
            }
            text
        };
        let mut current = entities(&declared(&[]));
        let mut snapshot = Snapshot::compile(&current, 1).unwrap();
        for end in 1..=steps.len() {
            // A step replaces the one before, so that things come and go.
            let text = declared(&steps[end - 1..end]);
            let next = changed(&current, &text);
            snapshot = recompiled(&snapshot, &next);
            let fresh = Snapshot::compile(&entities(&text), 1).unwrap();
            prop_assert_eq!(shown(&snapshot), shown(&fresh));
            current = next;
        }
    }
}

#[test]
#[ignore = "measures"]
fn five_thousand_tools_for_fifty_client_applications() {
    let text = large(50, 100, 50);
    let start = Instant::now();
    let before = entities(&text);
    println!("read {} bytes: {:?}", text.len(), start.elapsed());
    let start = Instant::now();
    let snapshot = Snapshot::compile(&before, 1).unwrap();
    println!("compiled: {:?}", start.elapsed());
    assert_eq!(snapshot.views().count(), 50);

    let mut after = before.clone();
    let mut tool = (*after.tools[2_500].value).clone();
    tool.description.push_str(" Really.");
    after.tools[2_500].value = Arc::new(tool);
    let start = Instant::now();
    let changed = Snapshot::recompile(&snapshot, &after, 2, GRACE).unwrap();
    println!("one tool changed: {:?}", start.elapsed());
    let start = Instant::now();
    assert_eq!(changed.changes(&snapshot).len(), 49);
    println!("views compared: {:?}", start.elapsed());
    let start = Instant::now();
    let bytes = changed.view("acme", "c0").unwrap().tools_list(ToolShape::V20251125).len();
    println!("first list of {bytes} bytes: {:?}", start.elapsed());
    let start = Instant::now();
    let read = Entities::from_rows(before.rows()).unwrap();
    println!("{} rows written and read: {:?}", read.len(), start.elapsed());
    let start = Instant::now();
    drop(changed);
    println!("dropped: {:?}", start.elapsed());
}

/// A toolset behind `one`, whose tool `far` is behind `two`.
const BEHIND: &str = "[[tenant]]\nid = 'acme'\n[[client_application]]\ntenant = 'acme'\nid = 'c0'\n\
    [[connection]]\ntenant = 'acme'\nid = 'one'\nbase_url = 'http://one'\n\
    [[connection]]\ntenant = 'acme'\nid = 'two'\nbase_url = 'http://two'\n\
    [[toolset]]\ntenant = 'acme'\nid = 's'\nkind = 'rest'\nconnection = 'one'\n\
    [[tool]]\ntenant = 'acme'\ntoolset = 's'\nname = 'near'\ndescription = 'd'\nmethod = 'GET'\n\
    path = '/'\n\
    [[tool]]\ntenant = 'acme'\ntoolset = 's'\nname = 'far'\ndescription = 'd'\nmethod = 'GET'\n\
    path = '/'\nconnection = 'two'\n\
    [[tool]]\ntenant = 'acme'\ntoolset = 's'\nname = 'hidden'\ndescription = 'd'\nmethod = 'GET'\n\
    path = '/'\nconnection = 'two'\nenabled = false\n\
    fields = [{ source_field_name = 'X-K', location = 'header' }]\n\
    [[assignment]]\ntenant = 'acme'\nclient_application = 'c0'\ntoolset = 's'\n";

fn host(snapshot: &Snapshot, tool: &str) -> (String, Arc<crate::catalog::CompiledTool>) {
    let tool = Arc::clone(&snapshot.view("acme", "c0").unwrap().tool(tool).unwrap().tool);
    let crate::catalog::ToolKind::Rest { connection, .. } = &tool.kind else { panic!() };
    (connection.host.to_string(), Arc::clone(&tool))
}

#[test]
fn a_tool_follows_its_own_connection() {
    let before = entities(BEHIND);
    let old = Snapshot::compile(&before, 1).unwrap();
    let ((one, near), (two, far)) = (host(&old, "near"), host(&old, "far"));
    assert_eq!((one.as_str(), two.as_str()), ("one", "two"));

    // Another host of `two` is nothing to the tool behind `one`.
    let moved = changed(&before, &BEHIND.replace("http://two", "http://three"));
    let new = recompiled(&old, &moved);
    assert_eq!(host(&new, "far").0, "three");
    assert!(Arc::ptr_eq(&host(&new, "near").1, &near));
    assert!(new.changes(&old).is_empty(), "nobody sees a difference");

    // And another host of `one` nothing to the tool behind `two`.
    let new = recompiled(&old, &changed(&before, &BEHIND.replace("http://one", "http://four")));
    assert_eq!(host(&new, "near").0, "four");
    assert!(Arc::ptr_eq(&host(&new, "far").1, &far));

    // Back to that of its toolset.
    let text = BEHIND.replacen("path = '/'\nconnection = 'two'\n", "path = '/'\n", 1);
    assert_eq!(host(&recompiled(&old, &changed(&before, &text)), "far").0, "one");

    let text = BEHIND.replacen("path = '/'\nconnection = 'two'", "path = '/'\nconnection = 'x'", 1);
    let problems = Snapshot::compile(&entities(&text), 1).unwrap_err();
    assert!(problems[0].to_string().contains("tool acme/s/far: there is no connection acme/x"));

    // A tool that is not published is judged with its connection too.
    let keyed = "base_url = 'http://two'\ncredentials = [{ kind = 'api_key', place = 'header', \
                 name = 'x-k', value = 'k' }]";
    let text = BEHIND.replace("base_url = 'http://two'", keyed);
    let problems = Snapshot::recompile(&old, &changed(&before, &text), 2, GRACE).unwrap_err();
    assert!(problems[0].to_string().contains("connection `two` sets this header"), "{problems:?}");
}

#[test]
fn allowances_reach_the_connections_of_their_tenant() {
    let before = entities(BEHIND);
    let old = Snapshot::compile(&before, 1).unwrap();
    let text = BEHIND.replace(
        "id = 'acme'\n[[client",
        "id = 'acme'\negress_allowances = ['10.0.0.0/8']\n[[client",
    );
    let new = recompiled(&old, &changed(&before, &text));
    let allowances = |snapshot: &Snapshot| {
        let (_, tool) = host(snapshot, "near");
        let crate::catalog::ToolKind::Rest { connection, .. } = &tool.kind else { panic!() };
        connection.egress_allowances.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(allowances(&old), [""; 0]);
    assert_eq!(allowances(&new), ["10.0.0.0/8"]);
    assert!(new.changes(&old).is_empty());
}
