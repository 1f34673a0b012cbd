//! The example catalogs are what a newcomer starts from: they must be good, and say the same in
//! every format.

use std::path::{Path, PathBuf};

use ringway::catalog::{Entities, files};

fn read(name: &str) -> Entities {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/examples").join(name);
    let (entities, problems) = files::read(&[path]);
    assert!(problems.is_empty(), "{problems:?}");
    let problems = entities.check();
    assert!(problems.is_empty(), "{problems:?}");
    entities
}

#[test]
fn examples_are_good() {
    assert_eq!(read("httpbin.toml").tools.len(), 4);
    assert_eq!(read("shop.toml").tools.len(), 2);
}

#[test]
fn toml_and_yaml_say_the_same() {
    assert!(read("shop.toml").difference(&read("shop.yaml")).is_empty());
}
