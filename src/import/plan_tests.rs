//! What an import makes of a catalog: new, again, with and without consent.

use serde_json::json;

use super::*;
use crate::catalog::{
    Connection, Credential, SecretReference, SecretSource, ToolMethod, ToolsetId,
};
use crate::import::DescribedConnection;
use crate::mapping::{FieldRule, Location};

fn target() -> Target {
    Target {
        tenant: TenantId::new("demo").unwrap(),
        toolset: ToolsetId::new("pets").unwrap(),
        connection: None,
        base_url: None,
        origin: "pets.yaml".to_owned(),
    }
}

fn empty() -> Entities {
    let mut entities = Entities::default();
    let tenant = serde_json::from_value(json!({ "id": "demo" })).unwrap();
    entities.tenants.push(Entry::new(tenant, Origin::new("base", 1)));
    entities
}

fn connection(name: &str, base_url: Option<&str>) -> DescribedConnection {
    DescribedConnection {
        name: name.to_owned(),
        base_url: base_url.map(str::to_owned),
        credentials: vec![],
        notes: vec![],
    }
}

fn operation(key: &str, name: &str, edit: impl FnOnce(&mut OperationTool)) -> Operation {
    let (method, path) = key.split_once(' ').unwrap();
    let method: ToolMethod = serde_json::from_value(json!(method)).unwrap();
    let mut tool = OperationTool::new(method, path, format!("Does {name}."));
    edit(&mut tool);
    Operation {
        key: key.to_owned(),
        wished_name: name.to_owned(),
        tags: vec!["all".to_owned()],
        verdict: Verdict::of(tool, vec![]),
    }
}

fn query(name: &str, required: bool) -> FieldRule {
    FieldRule { required, ..FieldRule::new(name, Location::Query) }
}

fn description(operations: Vec<Operation>) -> Description {
    Description {
        title: Some("Pets".to_owned()),
        description: None,
        kind: ToolsetKind::Rest,
        connections: vec![connection("", Some("https://pets.test/v1"))],
        xml_types: crate::mapping::XmlTypes::default(),
        operations,
        notes: vec![],
    }
}

const NOTHING: Consent = Consent { publish: false, accept_breaking: false };
const PUBLISH: Consent = Consent { publish: true, accept_breaking: false };
const EVERYTHING: Consent = Consent { publish: true, accept_breaking: true };

fn planned(published: &Entities, description: &Description, consent: Consent) -> Plan {
    plan(published, description, &target(), &Selection::default(), consent).unwrap()
}

/// The catalog after the plan was carried out.
fn done(published: &Entities, description: &Description, consent: Consent) -> (Entities, Report) {
    let Plan { entities, report } = planned(published, description, consent);
    let mut newer = published.clone();
    newer.overlay(entities);
    assert_eq!(newer.check(), []);
    (newer, report)
}

fn tool<'a>(entities: &'a Entities, name: &str) -> &'a Tool {
    &entities.tools.iter().find(|entry| entry.value.name.as_str() == name).unwrap().value
}

#[test]
fn a_new_toolset_comes_with_its_connection_and_unpublished() {
    let list = description(vec![operation("GET /pets", "listPets", |_| {})]);
    let (entities, report) = done(&empty(), &list, NOTHING);
    assert_eq!(entities.connections[0].value.base_url, "https://pets.test/v1");
    assert_eq!(entities.toolsets[0].value.title.as_deref(), Some("Pets"));
    assert!(!tool(&entities, "listPets").enabled);
    assert_eq!((report.counts.added, report.counts.published), (1, 0));
    let (entities, report) = done(&empty(), &list, PUBLISH);
    assert!(tool(&entities, "listPets").enabled);
    assert_eq!(report.counts.published, 1);
    // Again: nothing is to be written.
    let again = planned(&entities, &list, PUBLISH);
    assert!(again.entities.is_empty(), "{:?}", again.entities);
    assert_eq!((again.report.counts.unchanged, again.report.counts.tools()), (1, 1));
    // Published later: what an import left unpublished.
    let (entities, _) = done(&empty(), &list, NOTHING);
    assert!(tool(&done(&entities, &list, PUBLISH).0, "listPets").enabled);
}

#[test]
fn a_published_tool_changes_with_consent_only() {
    let with = |fields: Vec<FieldRule>| {
        description(vec![operation("GET /pets", "listPets", |tool| tool.fields = fields)])
    };
    let (published, _) = done(&empty(), &with(vec![query("a", false)]), PUBLISH);
    let more = with(vec![query("a", false), query("b", false)]);
    let fields = |entities: &Entities| tool(entities, "listPets").fields.len();
    let (entities, report) = done(&published, &more, NOTHING);
    assert_eq!((fields(&entities), report.operations[0].waits_for), (1, Some("--publish")));
    let (entities, report) = done(&published, &more, PUBLISH);
    assert_eq!((fields(&entities), report.operations[0].waits_for), (2, None));
    let must = with(vec![query("a", false), query("b", true)]);
    let (entities, report) = done(&published, &must, PUBLISH);
    assert_eq!(fields(&entities), 1);
    assert!(report.operations[0].breaking);
    assert_eq!(report.operations[0].waits_for, Some("--publish --accept-breaking"));
    assert_eq!((report.counts.breaking, report.counts.held, report.counts.changed), (1, 1, 1));
    assert_eq!(fields(&done(&published, &must, EVERYTHING).0), 2);
    // One that nobody sees yet changes at once.
    let (hidden, _) = done(&empty(), &with(vec![query("a", false)]), NOTHING);
    assert_eq!(fields(&done(&hidden, &must, NOTHING).0), 2);
}

#[test]
fn an_operation_that_goes_is_told_and_unpublished_with_consent() {
    let two = || {
        vec![operation("GET /pets", "listPets", |_| {}), operation("GET /owners", "owners", |_| {})]
    };
    let (published, _) = done(&empty(), &description(two()), PUBLISH);
    let one = description(vec![two().remove(0)]);
    for consent in [NOTHING, PUBLISH] {
        let (entities, report) = done(&published, &one, consent);
        assert!(tool(&entities, "owners").enabled);
        let gone = &report.operations[1];
        assert_eq!((gone.verdict, gone.waits_for), (Outcome::Gone, Some(NEEDS_BOTH)));
        assert_eq!(report.counts.removed, 1);
    }
    let (entities, _) = done(&published, &one, EVERYTHING);
    assert!(!tool(&entities, "owners").enabled);
    // It is back: consent publishes it again.
    assert!(tool(&done(&entities, &description(two()), PUBLISH).0, "owners").enabled);
    // Who selects something else hears nothing of it.
    let selection = Selection::parse(&["list*"]).unwrap();
    let plan = plan(&published, &one, &target(), &selection, EVERYTHING).unwrap();
    assert!(plan.entities.is_empty());
}

#[test]
fn what_the_operator_wrote_stays() {
    let of = |text: &str| {
        description(vec![operation("GET /pets", "listPets", |t| t.description = text.to_owned())])
    };
    let (mut published, _) = done(&empty(), &of("one"), PUBLISH);
    let mut mine = Tool::clone(tool(&published, "listPets"));
    mine.name = OperationName::new("pets").unwrap();
    mine.description = "mine".to_owned();
    mine.weight = Some(5);
    published.tools = vec![Entry::new(mine.clone(), Origin::new("mine", 1))];
    let (entities, report) = done(&published, &of("two"), EVERYTHING);
    assert_eq!(entities.tools.len(), 1);
    let there = tool(&entities, "pets");
    assert_eq!((there.description.as_str(), there.weight), ("mine", Some(5)));
    let told = &report.operations[0];
    assert_eq!((told.tool.as_deref(), told.change), (Some("pets"), Some(Change::Unchanged)));
    assert_eq!(told.conflicts[0].part, "description");
    assert_eq!(done(&entities, &of("two"), EVERYTHING).1.counts.conflicts, 0);
}

#[test]
fn one_bad_operation_costs_no_other() {
    let operations = vec![
        operation("GET /a", "a", |_| {}),
        operation("GET /b/{id}", "b", |_| {}),
        operation("GET /a", "again", |_| {}),
        Operation { verdict: Verdict::Skipped("why".into()), ..operation("GET /c", "c", |_| {}) },
        operation("GET /d", "d", |tool| tool.connection = 7),
        operation("GET /e", "e", |tool| tool.description = "x".repeat(DESCRIPTION_BYTES_MAX + 1)),
    ];
    let (entities, report) = done(&empty(), &description(operations), PUBLISH);
    let names: Vec<&str> = entities.tools.iter().map(|entry| entry.value.name.as_str()).collect();
    assert_eq!(names, ["a", "e"]);
    let reasons: Vec<Option<&str>> =
        report.operations.iter().map(|o| o.reason.as_deref()).collect();
    assert!(reasons[1].unwrap().contains("id"), "{reasons:?}");
    assert_eq!(reasons[2..4], [Some("it is described twice"), Some("why")]);
    assert!(reasons[4].unwrap().contains("connection"), "{reasons:?}");
    assert_eq!(report.operations[5].verdict, Outcome::ImportedWithNotes);
    let counts = report.counts;
    assert_eq!((counts.operations, counts.tools(), counts.skipped, counts.added), (6, 2, 4, 2));
}

#[test]
fn a_tool_that_would_become_bad_stays_as_it_is() {
    let of = |path: &str| description(vec![operation(&format!("GET {path}"), "a", |_| {})]);
    let (published, _) = done(&empty(), &of("/a"), PUBLISH);
    let mut bad = of("/a");
    if let Verdict::Imported(tool) = &mut bad.operations[0].verdict {
        tool.path = "/a/{id}".to_owned();
    }
    let (entities, report) = done(&published, &bad, EVERYTHING);
    assert_eq!(tool(&entities, "a").path, "/a");
    let told = &report.operations[0];
    assert_eq!((told.verdict, told.published), (Outcome::Skipped, true));
    assert!(told.notes[0].contains("stays as it is"), "{told:?}");
}

#[test]
fn connections_are_found_or_made() {
    let mut two = description(vec![
        operation("GET /a", "a", |_| {}),
        operation("GET /b", "b", |tool| tool.connection = 1),
    ]);
    two.connections.push(connection("Files", Some("https://files.test")));
    two.connections.push(connection("unused", None));
    two.connections[0].credentials = vec![Credential::Bearer {
        token: SecretSource::Elsewhere(SecretReference::Environment("PETS_TOKEN".to_owned())),
    }];
    let (entities, report) = done(&empty(), &two, PUBLISH);
    let ids: Vec<&str> = entities.connections.iter().map(|e| e.value.id.as_str()).collect();
    assert_eq!(ids, ["pets", "pets-files"]);
    assert_eq!(entities.connections[0].value.credentials.len(), 1);
    assert_eq!(tool(&entities, "a").connection, None);
    assert_eq!(tool(&entities, "b").connection.as_ref().unwrap().as_str(), "pets-files");
    assert!(report.connections.iter().all(|connection| connection.is_new));
    // The API moved: the operator's connection does not.
    two.connections[0].base_url = Some("https://elsewhere.test".to_owned());
    let again = planned(&entities, &two, EVERYTHING);
    assert!(again.entities.is_empty());
    assert!(again.report.connections[0].notes[0].contains("elsewhere"), "{:?}", again.report);
    // Unless he says so; published tools then need consent.
    let moved = Target { base_url: Some("https://moved.test".to_owned()), ..target() };
    let of = |consent| plan(&entities, &two, &moved, &Selection::default(), consent).unwrap();
    assert!(of(NOTHING).entities.is_empty());
    assert_eq!(of(PUBLISH).entities.connections[0].value.base_url, "https://moved.test");
    // Another's connection of the same name is left alone.
    let mut others = empty();
    let other = json!({ "tenant": "demo", "id": "pets", "base_url": "https://other.test" });
    let other = serde_json::from_value(other).unwrap();
    others.connections.push(Entry::new(other, Origin::new("other", 1)));
    let (entities, _) = done(&others, &two, PUBLISH);
    let own = entities.toolsets[0].value.connection.clone().unwrap();
    assert!(own.as_str().starts_with("pets-") && entities.connections.len() == 3, "{own}");
}

/// Bearer tokens out of a variable of the environment.
fn bearer(variable: &str) -> Credential {
    let variable = SecretReference::Environment(variable.to_owned());
    Credential::Bearer { token: SecretSource::Elsewhere(variable) }
}

fn place(url: &str, variable: &str) -> DescribedConnection {
    DescribedConnection { credentials: vec![bearer(variable)], ..connection("", Some(url)) }
}

/// The connection that a tool goes to.
fn connection_of<'a>(entities: &'a Entities, name: &str) -> &'a Connection {
    let own = entities.toolsets[0].value.connection.as_ref();
    let id = tool(entities, name).connection.as_ref().or(own).unwrap();
    &entities.connections.iter().find(|entry| entry.value.id == *id).unwrap().value
}

/// A published tool for `GET /old`, and a description with `GET /new` before it.
fn old_and_new(new_place: DescribedConnection) -> (Entities, Description) {
    let old = |place| operation("GET /old", "old", |tool| tool.connection = place);
    let mut first = description(vec![old(0)]);
    first.connections = vec![place("https://pets.test/v1", "ONE")];
    let (published, _) = done(&empty(), &first, PUBLISH);
    let mut both = description(vec![operation("GET /new", "new", |_| {}), old(1)]);
    both.connections = vec![new_place, place("https://pets.test/v1", "ONE")];
    (published, both)
}

#[test]
fn nothing_new_goes_to_another_server_or_with_other_credentials() {
    for (url, variable) in [("https://away.test", "ONE"), ("https://pets.test/v1", "TWO")] {
        let (published, both) = old_and_new(place(url, variable));
        let (entities, report) = done(&published, &both, PUBLISH);
        assert_eq!(tool(&entities, "old"), tool(&published, "old"));
        let made = connection_of(&entities, "new");
        assert_eq!((made.base_url.as_str(), &made.credentials[..]), (url, &[bearer(variable)][..]));
        assert_eq!(connection_of(&entities, "old"), connection_of(&published, "old"));
        assert_eq!(report.counts.published, 2);
        // Again: each finds its own, whatever the order.
        assert!(planned(&entities, &both, PUBLISH).entities.is_empty());
        // Even where the description no longer has what is there.
        let mut alone = both.clone();
        alone.operations.pop();
        let (entities, _) = done(&published, &alone, PUBLISH);
        assert_eq!(connection_of(&entities, "new").base_url, url);
        assert_eq!(connection_of(&entities, "new").credentials, [bearer(variable)]);
        // Nor where the operator names the connection, as he did before.
        let named = Target { connection: ConnectionId::new("pets").ok(), ..target() };
        let plan = plan(&published, &both, &named, &Selection::default(), PUBLISH).unwrap();
        let mut entities = published.clone();
        entities.overlay(plan.entities);
        assert_eq!(connection_of(&entities, "new").base_url, url);
        assert_eq!(tool(&entities, "old"), tool(&published, "old"));
    }
}

#[test]
fn an_operation_that_moves_is_held_and_draws_nothing_new_after_it() {
    let of = |places: [usize; 2]| {
        let [a, b] = places;
        let mut list = description(vec![
            operation("GET /a", "a", |tool| tool.connection = a),
            operation("GET /b", "b", |tool| tool.connection = b),
        ]);
        list.connections = vec![place("https://pets.test/v1", "ONE")];
        list
    };
    let (published, _) = done(&empty(), &of([0, 0]), PUBLISH);
    let mut moved = of([0, 1]);
    moved.connections.push(place("https://away.test", "ONE"));
    moved.operations.push(operation("GET /new", "new", |tool| tool.connection = 1));
    let (entities, report) = done(&published, &moved, PUBLISH);
    assert_eq!(tool(&entities, "b"), tool(&published, "b"));
    assert_eq!(report.operations[1].waits_for, Some(NEEDS_BOTH));
    assert_eq!(connection_of(&entities, "new").base_url, "https://away.test");
    let (entities, _) = done(&published, &moved, EVERYTHING);
    assert_eq!(connection_of(&entities, "a").base_url, "https://pets.test/v1");
    assert_eq!(connection_of(&entities, "b").base_url, "https://away.test");
}

#[test]
fn a_connection_stays_with_its_place_when_the_operator_changes_it() {
    let (mut published, mut both) = old_and_new(place("https://away.test", "TWO"));
    let mut edited = published.connections[0].value.as_ref().clone();
    edited.base_url = "https://staging.test".to_owned();
    edited.credentials = vec![bearer("MINE")];
    published.connections = vec![Entry::new(edited, Origin::new("mine", 1))];
    // What is there is no reason for a note.
    let again = Description { operations: vec![both.operations[1].clone()], ..both.clone() };
    let plan = planned(&published, &again, EVERYTHING);
    assert!(plan.entities.is_empty());
    assert!(plan.report.connections[0].notes.iter().all(|note| !note.contains("credentials")));
    // One more of the place goes where the operator sends the others, and he is told.
    both.operations.push(operation("GET /more", "more", |tool| tool.connection = 1));
    let (entities, report) = done(&published, &both, PUBLISH);
    assert_eq!(connection_of(&entities, "more").base_url, "https://staging.test");
    assert_eq!(connection_of(&entities, "new").base_url, "https://away.test");
    let told = report.connections.iter().find(|one| one.id == "pets").unwrap();
    assert!(told.notes.iter().any(|note| note.contains("credentials")), "{told:?}");
}

#[test]
fn a_place_that_nobody_knows_costs_its_own_operations_only() {
    let nowhere = DescribedConnection {
        notes: vec!["the server `/rel` is relative".to_owned()],
        ..connection("Nowhere", None)
    };
    let home = || connection("", Some("https://pets.test/v1"));
    for lost in [0, 1] {
        let mut list = description(vec![
            operation("GET /lost", "lost", |tool| tool.connection = lost),
            operation("GET /a", "a", |tool| tool.connection = 1 - lost),
        ]);
        list.connections = vec![home()];
        list.connections.insert(lost, nowhere.clone());
        let (entities, report) = done(&empty(), &list, PUBLISH);
        assert_eq!((report.counts.skipped, report.counts.published), (1, 1));
        let reason = report.operations[0].reason.as_deref().unwrap();
        assert!(reason.contains("`/rel`"), "{reason}");
        assert_eq!(connection_of(&entities, "a").base_url, "https://pets.test/v1");
        assert_eq!(entities.connections[0].value.id.as_str(), "pets");
        // Again, with a connection that is there: it is not the lost one's.
        assert!(planned(&entities, &list, PUBLISH).entities.is_empty());
        list.operations.pop();
        let (entities, report) = done(&entities, &list, PUBLISH);
        assert_eq!((report.counts.skipped, entities.tools.len()), (1, 1));
    }
    // Where none is known, the operator's own is all of them.
    let mut list = description(vec![operation("GET /a", "a", |_| {})]);
    let (published, _) = done(&empty(), &list, PUBLISH);
    list.connections = vec![nowhere];
    list.operations.push(operation("GET /b", "b", |_| {}));
    let (entities, _) = done(&published, &list, PUBLISH);
    assert_eq!(connection_of(&entities, "b").base_url, "https://pets.test/v1");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |published: &Entities, description: &Description, target: &Target| {
        plan(published, description, target, &Selection::default(), NOTHING).unwrap_err()
    };
    let list = description(vec![operation("GET /pets", "listPets", |_| {})]);
    let nobody = Target { tenant: TenantId::new("nobody").unwrap(), ..target() };
    assert!(matches!(refused(&empty(), &list, &nobody), PlanError::NoTenant { .. }));
    let (published, _) = done(&empty(), &list, NOTHING);
    let soap = Description { kind: ToolsetKind::Soap, ..list.clone() };
    assert!(matches!(refused(&published, &soap, &target()), PlanError::OtherKind { .. }));
    let mut nowhere = list.clone();
    nowhere.connections[0].base_url = None;
    assert!(matches!(refused(&empty(), &nowhere, &target()), PlanError::NoBaseUrl { .. }));
    nowhere.connections[0].base_url = Some("{not a url}".to_owned());
    assert!(matches!(refused(&empty(), &nowhere, &target()), PlanError::Problems(_)));
    nowhere.connections.clear();
    assert_eq!(refused(&empty(), &nowhere, &target()), PlanError::NoConnection);
}

#[test]
fn where_nothing_can_be_imported_the_report_says_why() {
    let mut list = description(vec![operation("GET /pets", "listPets", |_| {})]);
    list.connections.clear();
    list.operations[0].verdict = Verdict::Skipped("no tool can".to_owned());
    let (_, report) = done(&empty(), &list, PUBLISH);
    assert_eq!((report.counts.skipped, report.counts.tools()), (1, 0));
    assert_eq!(report.operations[0].reason.as_deref(), Some("no tool can"));
}

#[test]
fn a_selection_imports_what_it_names_and_touches_nothing_else() {
    let both = description(vec![
        operation("GET /pets", "listPets", |_| {}),
        operation("POST /pets", "addPet", |_| {}),
    ]);
    let only = |pattern: &str| Selection::parse(&[pattern]).unwrap();
    let first = plan(&empty(), &both, &target(), &only("GET *"), PUBLISH).unwrap();
    assert_eq!((first.entities.tools.len(), first.report.counts.not_selected), (1, 1));
    let mut published = empty();
    published.overlay(first.entities);
    let second = plan(&published, &both, &target(), &only("addPet"), PUBLISH).unwrap();
    assert_eq!(second.entities.tools.len(), 1);
    assert_eq!(second.report.counts.removed, 0);
    let nothing = plan(&empty(), &both, &target(), &only("nothing"), PUBLISH).unwrap();
    assert!(nothing.entities.is_empty());
}
