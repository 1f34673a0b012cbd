//! Names that went: how long they stay callable, and what ends it at once.

use super::{FormerName, Names, newest};

use crate::catalog::{
    Deprecated, FormerTools, Grace, RowError, Snapshot, ToolKind, View, fixture::entities,
};

const BASE: &str = "
[[tenant]]
id = 'acme'
[[client_application]]
tenant = 'acme'
id = 'desk'
#client
[[connection]]
tenant = 'acme'
id = 'api'
base_url = 'http://one'
[[toolset]]
tenant = 'acme'
id = 'pets'
kind = 'rest'
connection = 'api'
[[tool]]
tenant = 'acme'
toolset = 'pets'
name = 'list'
description = 'Lists pets.'
method = 'GET'
path = '/pets'
#tool
[[tool]]
tenant = 'acme'
toolset = 'pets'
name = 'show'
description = 'Shows a pet.'
method = 'GET'
path = '/pet'
[[assignment]]
tenant = 'acme'
client_application = 'desk'
toolset = 'pets'
#assignment
";

const DAY_MS: u64 = 86_400_000;
const GRACE_MS: u64 = DAY_MS;

fn first() -> Snapshot {
    Snapshot::compile(&entities(BASE), 1).unwrap()
}

fn change(before: &Snapshot, text: &str, now_ms: u64) -> Snapshot {
    let grace = Grace { now_ms, callable_ms: GRACE_MS };
    Snapshot::recompile(before, &entities(text), before.version() + 1, grace).unwrap()
}

fn desk(snapshot: &Snapshot) -> &View {
    snapshot.view("acme", "desk").unwrap()
}

/// `callable`, `callable as X`, `gone` or `unknown`.
fn state(snapshot: &Snapshot, name: &str, now_ms: u64) -> String {
    let view = desk(snapshot);
    assert!(view.tool(name).is_none(), "{name} is there");
    match view.deprecated(name, now_ms) {
        None => "unknown".to_owned(),
        Some(Deprecated::Gone) => "gone".to_owned(),
        Some(Deprecated::Callable { now_called: None, .. }) => "callable".to_owned(),
        Some(Deprecated::Callable { now_called: Some(name), tool, .. }) => {
            assert_eq!(tool.name, name);
            format!("callable as {name}")
        }
    }
}

fn without_list() -> String {
    let (from, to) = (BASE.find("[[tool]]").unwrap(), BASE.find("#tool").unwrap());
    format!("{}{}", &BASE[..from], &BASE[to..])
}

#[test]
fn removed_and_unpublished_tools_stay_callable_for_a_while() {
    for text in [without_list(), BASE.replacen("#tool\n", "enabled = false\n", 1)] {
        let after = change(&first(), &text, DAY_MS);
        assert_eq!(state(&after, "list", DAY_MS), "callable");
        assert_eq!(state(&after, "list", 2 * DAY_MS - 1), "callable");
        assert_eq!(state(&after, "list", 2 * DAY_MS), "gone");
        assert_eq!(state(&after, "list", 40 * DAY_MS), "unknown");
        assert_eq!(state(&after, "never", DAY_MS), "unknown");
        // Another change does not begin it again.
        let text = text.replacen("Shows a pet.", "Shows one.", 1);
        let later = change(&after, &text, DAY_MS + 5);
        assert_eq!(state(&later, "list", 2 * DAY_MS - 1), "callable");
        assert_eq!(state(&later, "list", 2 * DAY_MS), "gone");
        let much_later = change(&later, &text.replacen("Shows one.", "Shows.", 1), 3 * DAY_MS);
        assert_eq!(state(&much_later, "list", 3 * DAY_MS), "gone");
        // It comes back.
        let back = change(&much_later, BASE, 4 * DAY_MS);
        assert!(desk(&back).tool("list").is_some());
        assert!(desk(&back).deprecated("list", 4 * DAY_MS).is_none());
        assert!(back.deprecated_rows().is_empty());
    }
}

#[test]
fn renamed_tools_are_called_by_both_names() {
    // The name of a meta tool is never a tool's: here the other name comes of a shorter budget.
    let long = "a_rather_long_name_of_a_tool";
    let before = Snapshot::compile(&entities(&BASE.replacen("'list'", &format!("'{long}'"), 1)), 1);
    let text = BASE.replacen("'list'", &format!("'{long}'"), 1).replacen(
        "#client\n",
        "name_budget = 16\n",
        1,
    );
    let after = change(&before.unwrap(), &text, 0);
    let now = desk(&after).tools()[0].name.as_str();
    assert_eq!(state(&after, long, 1), format!("callable as {now}"));
    assert_eq!(state(&after, long, GRACE_MS), "gone");
}

#[test]
fn access_that_is_taken_away_is_away_at_once() {
    let denied = "policy = { rules = [{ effect = 'deny', tools = ['list'] }] }\n";
    let after = change(&first(), &BASE.replacen("#assignment\n", denied, 1), 0);
    assert_eq!(state(&after, "list", 1), "unknown");
    let unassigned = change(&first(), &BASE.replacen("#assignment\n", "enabled = false\n", 1), 0);
    assert_eq!(state(&unassigned, "list", 1), "unknown");
    // Also where the tool went before.
    let gone = change(&first(), &without_list(), 0);
    assert_eq!(state(&gone, "list", 1), "callable");
    let denied = change(&gone, &without_list().replacen("#assignment\n", denied, 1), 0);
    assert_eq!(state(&denied, "list", 1), "unknown");
    let unassigned =
        change(&gone, &without_list().replacen("#assignment\n", "enabled = false\n", 1), 0);
    assert_eq!(state(&unassigned, "list", 1), "unknown");
}

#[test]
fn a_tool_that_went_is_called_where_its_connection_is_now() {
    let gone = change(&first(), &without_list(), 0);
    let moved = change(&gone, &without_list().replacen("http://one", "http://two", 1), 1);
    let Some(Deprecated::Callable { tool, .. }) = desk(&moved).deprecated("list", 2) else {
        panic!()
    };
    let ToolKind::Rest { connection, .. } = &tool.kind else { panic!() };
    assert_eq!(&*connection.host, "two");
    assert_eq!(tool.name.as_str(), "list");
}

#[test]
fn what_went_survives_a_restart() {
    let gone = change(&first(), &without_list(), DAY_MS);
    let rows = gone.deprecated_rows();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|(key, _)| FormerTools::is_row(key)));
    assert!(!FormerTools::is_row(b"tool/acme/pets/list"));
    let former = FormerTools::from_rows(rows.clone()).unwrap();
    let again = Snapshot::restore(&entities(&without_list()), 7, &former, DAY_MS + 1).unwrap();
    assert_eq!(state(&again, "list", 2 * DAY_MS - 1), "callable");
    assert_eq!(state(&again, "list", 2 * DAY_MS), "gone");
    assert_eq!(again.deprecated_rows().len(), 2);
    // Later only the name is left, to say that it is gone.
    let later = Snapshot::restore(&entities(&without_list()), 7, &former, 3 * DAY_MS).unwrap();
    assert_eq!(state(&later, "list", 3 * DAY_MS), "gone");
    assert_eq!(later.deprecated_rows().len(), 1);
    let much_later =
        Snapshot::restore(&entities(&without_list()), 7, &former, 90 * DAY_MS).unwrap();
    assert!(much_later.deprecated_rows().is_empty());
}

#[test]
fn rows_that_cannot_be_used_are_named() {
    let mut rows = change(&first(), &without_list(), 0).deprecated_rows();
    rows.sort();
    rows[0].1[0] = 9;
    rows[1].1.truncate(10);
    rows.push((b"deprecated_name/acme".to_vec(), vec![1, b'{', b'}']));
    rows.push((b"nonsense".to_vec(), vec![1]));
    rows.push((b"deprecated_tool/x".to_vec(), Vec::new()));
    let errors = FormerTools::from_rows(rows).unwrap_err();
    assert_eq!(errors.len(), 5, "{errors:?}");
    assert!(matches!(errors[0], RowError::Version { found: 9, .. }));
    assert!(errors[1..].iter().all(|error| matches!(error, RowError::Damaged { .. })));
}

#[test]
fn what_went_is_bounded_and_the_oldest_goes_first() {
    let gone = change(&first(), &without_list(), 0);
    let from = gone_tools(&gone);
    let both = change(&gone, &without_list().replacen("name = 'show'", "name = 'view'", 1), 5);
    for (tools_max, expected) in [(5, 2), (2, 2), (1, 1), (0, 0)] {
        let mut former = gone_tools(&both);
        former.bound(tools_max);
        assert_eq!(former.rows().iter().filter(|(key, _)| is_tool(key)).count(), expected);
        let newest = former.rows().iter().any(|(key, _)| key.ends_with(b"/show"));
        assert!(newest || expected == 0);
    }
    assert_eq!(from.rows().len(), 2);

    let name = |until_ms| FormerName {
        toolset: crate::catalog::ToolsetId::new("pets").unwrap(),
        operation: crate::catalog::OperationName::new("list").unwrap(),
        until_ms,
    };
    let names: Names = (0..10)
        .map(|place| (crate::catalog::ToolName::new(&format!("t{place}")).unwrap(), name(place)))
        .collect();
    let kept = newest(names, 3);
    assert!(kept.len() == 3 && kept.values().all(|former| former.until_ms >= 7));
}

fn is_tool(key: &[u8]) -> bool {
    key.starts_with(b"deprecated_tool/")
}

fn gone_tools(snapshot: &Snapshot) -> FormerTools {
    FormerTools::from_rows(snapshot.deprecated_rows()).unwrap()
}
