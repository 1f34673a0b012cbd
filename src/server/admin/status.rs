//! How the server is.

use std::sync::Arc;

use serde_json::{Value, json};

use super::changes;
use crate::{
    rt,
    server::{core::Core, health, shared::Shared, time},
    store::StoreState,
};

/// Everything an operator looks at first.
pub(super) fn status(core: &Core) -> Value {
    let shared = &core.shared;
    let published = core.published();
    let mut clients: Vec<String> = published
        .snapshot
        .views()
        .map(|view| format!("{}/{}", view.tenant, view.client_application))
        .collect();
    clients.sort();
    let tools: std::collections::HashSet<_> = published
        .snapshot
        .views()
        .flat_map(|view| view.tools())
        .map(|tool| Arc::as_ptr(&tool.tool))
        .collect();
    let store = match shared.store.state() {
        StoreState::Healthy => "healthy".to_owned(),
        StoreState::ReadOnly { reason } => format!("read-only: {reason}"),
    };
    let (upstreams_down, upstreams_pending) = shared.keeper.troubles();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ready": health::unready(core).unwrap_or("yes"),
        "runtime_address": shared.runtime_address.to_string(),
        "started": time::text_of_ms(shared.started_ms),
        "uptime_seconds": shared.started.elapsed().as_secs(),
        "cores": shared.cores(),
        "connections_max_per_core": shared.connections_max,
        "driver": shared.driver(),
        "store": store,
        "catalog_version": published.snapshot.version(),
        "catalog_files": catalog_files(shared),
        "catalog_remarks": changes::remarks(published.snapshot.remarks()),
        "upstreams_down": upstreams_down,
        "upstreams_pending": upstreams_pending,
        "client_applications": clients,
        "tools": tools.len(),
        "keys": published.keys.len(),
        "sessions": shared.sessions.total(),
        "streams": shared.open_streams(),
        "panics_contained": rt::panics_contained(),
    })
}

/// Whether the catalog files of the settings are what is served: `good`, or what is wrong with them.
fn catalog_files(shared: &Shared) -> Value {
    match shared.reload.bad() {
        None => json!("good"),
        Some(bad) => json!({
            "since": time::text_of_ms(bad.since_ms),
            "problems": bad.problems,
            "problem_count": bad.count,
        }),
    }
}
