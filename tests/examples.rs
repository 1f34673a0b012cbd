//! The example catalogs and the tables of the README are what a newcomer starts from: they must be
//! good, and say all there is.

use std::path::{Path, PathBuf};

use ringway::{
    catalog::{self, Entities, files},
    mapping::{FieldRule, ResultBudget},
};
use serde::de::DeserializeOwned;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> Entities {
    let path: PathBuf = root().join("config/examples").join(name);
    let (entities, problems) = files::read(&[path]);
    assert!(problems.is_empty(), "{problems:?}");
    let problems = entities.check();
    assert!(problems.is_empty(), "{problems:?}");
    entities
}

/// The keys a declaration may have, as its own error names them.
fn keys<T: DeserializeOwned>() -> Vec<String> {
    let error = serde_json::from_str::<T>(r#"{"no such key": 1}"#).err();
    let text = error.map_or_else(String::new, |error| error.to_string());
    let expected = text.split_once("expected").map_or("", |(_, expected)| expected);
    let keys: Vec<String> = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(keys.len() > 1, "{text}");
    keys
}

#[test]
fn examples_are_good() {
    assert_eq!(read("httpbin.toml").tools.len(), 4);
    assert_eq!(read("shop.toml").tools.len(), 2);
    assert_eq!(read("governed.toml").tools.len(), 4);
}

#[test]
fn toml_and_yaml_say_the_same() {
    assert!(read("shop.toml").difference(&read("shop.yaml")).is_empty());
}

#[test]
fn the_readme_names_every_key() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let row = |table: &str| {
        let head = format!("| `[[{table}]]` |");
        readme.lines().find(|line| line.starts_with(&head)).unwrap()
    };
    for (table, keys) in [
        ("tenant", keys::<catalog::Tenant>()),
        ("client_application", keys::<catalog::ClientApplication>()),
        ("connection", keys::<catalog::Connection>()),
        ("toolset", keys::<catalog::Toolset>()),
        ("tool", keys::<catalog::Tool>()),
        ("assignment", keys::<catalog::Assignment>()),
    ] {
        for key in keys {
            assert!(row(table).contains(&format!("`{key}`")), "{table}: {key}");
        }
    }
    let parts = [
        keys::<FieldRule>(),
        keys::<ResultBudget>(),
        keys::<catalog::Policy>(),
        keys::<catalog::PolicyRule>(),
        keys::<catalog::TimeWindow>(),
        keys::<catalog::Limits>(),
        keys::<catalog::Rate>(),
        keys::<catalog::Correlation>(),
        keys::<catalog::Annotations>(),
        keys::<catalog::SideEffectBy>(),
    ];
    for key in parts.concat() {
        assert!(readme.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn the_governed_example_uses_what_governs() {
    let text = std::fs::read_to_string(root().join("config/examples/governed.toml")).unwrap();
    let governing = [
        keys::<catalog::ClientApplication>(),
        keys::<catalog::PolicyRule>(),
        keys::<catalog::TimeWindow>(),
        keys::<catalog::Assignment>(),
        keys::<catalog::Correlation>(),
        keys::<ResultBudget>(),
    ];
    let left_out = ["require_session"];
    for key in governing.concat().iter().filter(|key| !left_out.contains(&key.as_str())) {
        let is_used = text.contains(&format!("{key} =")) || text.contains(&format!(".{key}]"));
        assert!(is_used, "{key}");
    }
}
