use std::fmt::Write;
use std::fs::{self, File};

use proptest::prelude::*;

use super::*;

/// The same catalog, with the same mistakes, in each format: what is wrong, where, and how it is
/// said must not depend on the format.
const TOML: &str = r#"
[[tenant]]
id = "acme"

[[client_application]]
tenant = "acme"
id = "desk"
opne = true

[[connection]]
tenant = "acme"
id = "api"
base_url = "http://127.0.0.1:9000"
headers = { Authorization = 5 }

[[toolset]]
tenant = "acme"
id = "pets"
kind = "rset"

[[tool]]
tenant = "acme"
toolset = "pets"
name = ""
description = "Lists"
method = "GET"
path = "/pets"

[[tool]]
tenant = "acme"
toolset = "pets"
title = "no name"
description = "Lists"
method = "GET"

[[tool]]
tenant = "acme"
toolset = "pets"
name = "hint"
description = "Lists"
method = "get"
path = "/pets"
[tool.annotations]
read_only_hint = "yes"

[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "pets"
enabled = 1
"#;

const YAML: &str = r"
tenant:
  - id: acme
client_application:
  - tenant: acme
    id: desk
    opne: true
connection:
  - tenant: acme
    id: api
    base_url: http://127.0.0.1:9000
    headers:
      Authorization: 5
toolset:
  - tenant: acme
    id: pets
    kind: rset
tool:
  - tenant: acme
    toolset: pets
    name: ''
    description: Lists
    method: GET
    path: /pets
  - tenant: acme
    toolset: pets
    title: no name
    description: Lists
    method: GET
  - tenant: acme
    toolset: pets
    name: hint
    description: Lists
    path: /pets
    annotations:
      read_only_hint: yes
    method: get
assignment:
  - tenant: acme
    client_application: desk
    toolset: pets
    enabled: 1
";

const JSON: &str = r#"{
"tenant": [{"id": "acme"}],
"client_application": [
  {"tenant": "acme", "id": "desk",
   "opne": true}],
"connection": [
  {"tenant": "acme",
   "id": "api", "base_url": "http://127.0.0.1:9000", "headers": {
     "Authorization": 5}}],
"toolset": [
  {"tenant": "acme", "id": "pets",
   "kind": "rset"}],
"tool": [
  {"tenant": "acme", "toolset": "pets",
   "name": "",
   "description": "Lists", "method": "GET", "path": "/pets"},
  {"tenant": "acme", "toolset": "pets", "title": "no name",
   "description": "Lists", "method": "GET"},
  {"tenant": "acme", "toolset": "pets", "name": "hint",
   "description": "Lists", "path": "/pets", "annotations": {
     "read_only_hint": "yes"},
   "method": "get"}],
"assignment": [
  {"tenant": "acme", "client_application": "desk", "toolset": "pets",
   "enabled": 1}]
}"#;

fn problems(file: &str, text: &str) -> Vec<(u32, String)> {
    let (_, problems) = read_text(Path::new(file), text);
    assert!(problems.iter().all(|problem| problem.file() == Path::new(file)));
    problems.into_iter().map(|problem| (problem.line(), problem.message)).collect()
}

fn assert_problems(file: &str, text: &str, expected: &[(u32, &str)]) {
    let found = problems(file, text);
    let shown = format!("{file}: {found:#?}");
    assert_eq!(found.len(), expected.len(), "{shown}");
    for ((line, message), (expected_line, beginning)) in found.iter().zip(expected) {
        assert_eq!(line, expected_line, "{message}");
        assert!(message.starts_with(beginning), "{message}\nexpected {beginning}");
    }
}

#[test]
fn what_should_be_a_table_is_called_one() {
    let connection = "[[connection]]\ntenant = \"a\"\nid = \"b\"\nbase_url = \"http://c\"\n";
    for (line, message) in [
        ("retries = 3", "connection: retries: invalid type: integer `3`, expected a table"),
        (
            "correlation = true",
            "connection: correlation: invalid type: boolean `true`, expected a table",
        ),
    ] {
        let found = problems("a.toml", &format!("{connection}{line}\n"));
        assert_eq!(found, [(5, message.to_owned())]);
    }
}

#[test]
fn every_bad_entity_is_reported_with_its_line_in_each_format() {
    const MESSAGES: [&str; 8] = [
        "client_application: unknown field `opne`, expected one of `tenant`, `id`",
        "connection: headers.Authorization: expected text",
        "toolset: kind: unknown variant `rset`, expected one of `rest`, `soap`, `mcp`, `builtin`",
        "tool: name: \"\" is not a tool name",
        "tool: missing field `name`",
        "tool: method: unknown variant `get`, expected one of `GET`",
        "tool: annotations.read_only_hint: invalid type: string \"yes\", expected a boolean",
        "assignment: enabled: invalid type: integer `1`, expected a boolean",
    ];
    let lines: [(&str, &str, [u32; 8]); 3] = [
        ("a.toml", TOML, [8, 14, 19, 24, 29, 41, 44, 50]),
        ("a.yaml", YAML, [7, 13, 17, 21, 25, 37, 36, 42]),
        ("a.json", JSON, [5, 9, 12, 15, 17, 22, 21, 25]),
    ];
    for (file, text, lines) in lines {
        let mut expected: Vec<(u32, &str)> = lines.into_iter().zip(MESSAGES).collect();
        // Faults of one entity come in the order they are written in.
        if expected[5].0 > expected[6].0 {
            expected.swap(5, 6);
        }
        assert_problems(file, text, &expected);
    }
}

#[test]
fn what_refers_to_an_entity_that_could_not_be_read_is_not_reported_again() {
    for (file, text) in [("a.toml", TOML), ("a.yaml", YAML), ("a.json", JSON)] {
        let (entities, problems) = read_text(Path::new(file), text);
        assert_eq!(problems.len(), 8);
        assert!(entities.check().is_empty(), "{file}: {:?}", entities.check());
    }
    let (mut entities, _) = read_text(Path::new("a.toml"), "tenant = [\n");
    let text = "[[client_application]]\ntenant = 'acme'\nid = 'desk'\n";
    entities.overlay(read_text(Path::new("b.toml"), text).0);
    assert!(entities.check().is_empty());
}

#[test]
fn files_of_a_wrong_form() {
    type Row = (&'static str, &'static str, &'static [(u32, &'static str)]);
    let table: &[Row] = &[
        ("a.toml", "", &[]),
        ("a.yaml", "", &[]),
        ("a.yaml", "# nothing\n", &[]),
        ("a.yaml", "tool:\n", &[]),
        ("a.json", "{}", &[]),
        ("a.json", "\n[]", &[(2, "expected lists named tenant")]),
        ("a.yaml", "text\n", &[(1, "expected lists named tenant")]),
        (
            "a.toml",
            "x = 1\n[tool]\n",
            &[
                (1, "unknown table `x`: expected one of tenant, client_application"),
                (2, "`tool` must be a list: [[tool]] in TOML"),
            ],
        ),
        ("a.toml", "[[tool]]\nname = \n[[tool]\n", &[(2, "string values must be"), (3, "")]),
        ("a.json", "{\"tenant\": [\n{\"id\": \"a\"},\n3\n]}", &[(3, "tenant: invalid type")]),
        ("a.txt", "", &[(0, "expected a .toml, .yaml, .yml or .json file")]),
    ];
    for (file, text, expected) in table {
        assert_problems(file, text, expected);
    }
}

#[test]
fn origins_are_where_entities_begin() {
    let good = "\n[[tenant]]\nid = 'acme'\n\n[[tenant]]\nid = 'other'\n";
    let (entities, problems) = read_text(Path::new("a.toml"), good);
    assert!(problems.is_empty());
    let lines: Vec<u32> = entities.tenants.iter().map(|entry| entry.origin.line).collect();
    assert_eq!(lines, [2, 5]);
    assert_eq!(entities.tenants[0].origin.to_string(), "a.toml:2");
    let (entities, _) = read_text(Path::new("a.yaml"), "tenant:\n- id: acme\n-\n  id: other\n");
    let lines: Vec<u32> = entities.tenants.iter().map(|entry| entry.origin.line).collect();
    assert_eq!(lines, [2, 4]);
}

#[test]
fn yaml_anchors_may_be_used() {
    let text = "tenant: [{id: acme}]\nclient_application:\n- &one {tenant: acme, id: a}\n\
                - {<<: *one, id: b}\n";
    let (entities, problems) = read_text(Path::new("a.yaml"), text);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(entities.client_applications[1].value.id.as_str(), "b");
}

#[test]
fn directories_are_read_in_order_and_bad_files_do_not_stop_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("b.toml"), "[[tenant]]\nid = 'second'\n").unwrap();
    fs::write(at("a.yaml"), "tenant:\n- id: first\n").unwrap();
    fs::write(at("c.json"), b"{\n\"tenant\": [{\"id\": \"\xff\"}]}").unwrap();
    fs::write(at("d.yml"), "tenant:\n- id: last\n").unwrap();
    fs::write(at(".hidden.toml"), "nonsense").unwrap();
    fs::write(at("notes.txt"), "nonsense").unwrap();
    fs::create_dir(at("sub.toml")).unwrap();
    let (entities, problems) = read(&[directory.path().to_owned(), at("missing.toml")]);
    let ids: Vec<&str> = entities.tenants.iter().map(|entry| entry.value.id.as_str()).collect();
    assert_eq!(ids, ["first", "second", "last"]);
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(shown[0], format!("{}:2: not UTF-8 text", at("c.json").display()));
    assert!(shown[1].starts_with(&format!("{}: No such file", at("missing.toml").display())));
    assert_eq!(shown.len(), 2);
}

#[test]
fn large_files_and_things_that_are_no_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let large = directory.path().join("a.json");
    File::create(&large).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
    let (_, problems) = read(&[large, PathBuf::from("/dev/zero")]);
    assert!(problems[0].message.contains("larger than"), "{problems:?}");
    assert!(problems[1].message.contains("not a file"), "{problems:?}");
}

#[test]
fn what_is_there_twice_is_told_with_both_places() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (directory.path().join("a.toml"), directory.path().join("b.json"));
    fs::write(&one, "[[tenant]]\nid = 'acme'\n[[tenant]]\nid = 'acme'\ntitle = 'x'\n").unwrap();
    fs::write(&other, r#"{"tenant": [{"id": "acme"}]}"#).unwrap();
    let (_, problems) = read(&[directory.path().to_owned()]);
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let first = format!("duplicate tenant acme: it is at {}:1 already", one.display());
    let expected =
        [format!("{}:3: {first}", one.display()), format!("{}:1: {first}", other.display())];
    assert_eq!(told, expected);
}

#[test]
fn a_pipe_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let (_, problems) = read(&[pipe]);
    assert!(problems[0].message.contains("not a file"), "{problems:?}");
}

#[test]
fn secrets_of_connections_are_not_in_messages() {
    let text = "[[connection]]\ntenant = 'acme'\nid = 'api'\nbase_url = 'http://h'\n\
                headers = { Authorization = ['s3cr3t'] }\n";
    let found = problems("a.toml", text);
    assert!(!format!("{found:?}").contains("s3cr3t"), "{found:?}");
}

#[test]
fn a_large_file_is_read_whole() {
    let mut text = String::new();
    for number in 0..3_000 {
        let _ = writeln!(text, "[[tenant]]\nid = 't{number}'\n");
    }
    let (entities, problems) = read_text(Path::new("a.toml"), &text);
    assert!(problems.is_empty());
    assert_eq!(entities.tenants.last().unwrap().origin.line, 2_999 * 3 + 1);
}

#[test]
fn entities_and_problems_are_bounded() {
    let mut reading = Reading::new(2);
    let text = "[[tenant]]\nid = 'a'\n[[tenant]]\nid = 'b'\n[[tenant]]\nid = 'c'\n";
    reading.text(&Origin::new("a.toml", 0), &text.repeat(2));
    assert_eq!(reading.entities.len(), 2);
    let shown: Vec<String> = reading.problems.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["a.toml:5: more than 2 entities"]);

    let text = format!("{{\"tenant\": [{}3]}}", "3,".repeat(5_000));
    let (_, problems) = read_text(Path::new("a.json"), &text);
    assert_eq!(problems.len(), PROBLEMS_MAX);
    assert!(problems[PROBLEMS_MAX - 1].message.contains("not shown"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[\\PC\n]{0,200}", file in "a\\.(toml|yaml|json)") {
        let lines = u32::try_from(text.lines().count()).unwrap() + 1;
        let (_, problems) = read_text(Path::new(&file), &text);
        prop_assert!(problems.iter().all(|problem| problem.line() <= lines), "{problems:?}");
    }

    #[test]
    fn any_cut_of_a_file_is_read_or_refused(end in 0..TOML.len(), start in 0..TOML.len()) {
        for (file, text) in [("a.toml", TOML), ("a.yaml", YAML), ("a.json", JSON)] {
            let cut = |at: usize| at.min(text.len());
            let spliced = format!("{}{}", &text[..cut(end)], &text[cut(start)..]);
            let (entities, problems) = read_text(Path::new(file), &spliced);
            let lines = u32::try_from(spliced.lines().count()).unwrap() + 1;
            prop_assert!(problems.iter().all(|problem| problem.line() <= lines), "{problems:?}");
            entities.check();
        }
    }
}
