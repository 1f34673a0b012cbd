//! Catalogs for the tests of all rooms, from what an operator would write.

use std::path::Path;
use std::sync::Arc;

use super::{Entities, Snapshot, View, files};

/// `acme/desk` with the tools about the appliance itself.
pub(crate) const APPLIANCE: &str = r#"
[[tenant]]
id = "acme"
[[client_application]]
tenant = "acme"
id = "desk"
title = "The \"desk\""
[[toolset]]
tenant = "acme"
id = "appliance"
kind = "builtin"
[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "appliance"
"#;

/// What a good TOML file declares.
pub(crate) fn entities(toml: &str) -> Entities {
    let (entities, problems) = files::read_text(Path::new("a.toml"), toml);
    assert!(problems.is_empty(), "{problems:?}\n{toml}");
    entities
}

/// A compiled snapshot.
pub(crate) fn snapshot(toml: &str) -> Snapshot {
    Snapshot::compile(&entities(toml), 1).unwrap()
}

/// The view of `acme/desk`.
pub(crate) fn view(toml: &str) -> Arc<View> {
    Arc::clone(snapshot(toml).view("acme", "desk").unwrap())
}
