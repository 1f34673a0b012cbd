//! Views for tests of this room, compiled from what an operator would write.

use std::sync::Arc;

use crate::catalog::{Entities, Entry, Origin, Snapshot, View};

/// The lists of entities in a text, each under its name in the plural.
pub(super) fn entities(toml: &str) -> Entities {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        #[serde(default)]
        tenants: Vec<crate::catalog::Tenant>,
        #[serde(default)]
        client_applications: Vec<crate::catalog::ClientApplication>,
        #[serde(default)]
        connections: Vec<crate::catalog::Connection>,
        #[serde(default)]
        toolsets: Vec<crate::catalog::Toolset>,
        #[serde(default)]
        tools: Vec<crate::catalog::Tool>,
        #[serde(default)]
        assignments: Vec<crate::catalog::Assignment>,
    }
    fn entries<T>(values: Vec<T>) -> Vec<Entry<T>> {
        let entry = |value| Entry { value: Arc::new(value), origin: Origin::new("test", 1) };
        values.into_iter().map(entry).collect()
    }
    let written: Written = toml::from_str(toml).unwrap();
    let mut entities = Entities::default();
    entities.tenants = entries(written.tenants);
    entities.client_applications = entries(written.client_applications);
    entities.connections = entries(written.connections);
    entities.toolsets = entries(written.toolsets);
    entities.tools = entries(written.tools);
    entities.assignments = entries(written.assignments);
    entities
}

/// A compiled snapshot.
pub(super) fn snapshot(toml: &str) -> Snapshot {
    Snapshot::compile(&entities(toml), 1).unwrap()
}

/// The view of `acme/desk`.
pub(super) fn view(toml: &str) -> Arc<View> {
    Arc::clone(snapshot(toml).view("acme", "desk").unwrap())
}
