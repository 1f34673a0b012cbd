//! The admin plane: what operators ask and change, as JSON over the admin socket, and `/metrics`.
//!
//! The socket's file mode is the authority: who may open it is an operator. Changes run on a
//! worker, because they compile and write to disk.

use std::{collections::HashMap, rc::Rc, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    appliance::newest,
    connection::Answer,
    core::Core,
    explain, health,
    message::CoreMessage,
    publication::ChangeError,
    respond::{self, Echo},
    session, time,
};
use crate::{
    catalog::{ClientApplicationId, Entities, EntityName, TenantId, Trust},
    http::{self, Method, RequestView},
    identity::{ApiKey, KEY_RANDOM_BYTES, KeyLabel, KeyRecord},
    rt::{self, WorkError},
    sessions::Session,
    store::StoreState,
    telemetry::METRICS_CONTENT_TYPE,
};

/// Most sessions listed at once.
const LISTED_MAX: usize = 10_000;

/// What an operator is told instead of an answer.
struct Trouble {
    status: u16,
    message: String,
}

impl Trouble {
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl From<ChangeError> for Trouble {
    fn from(error: ChangeError) -> Self {
        let status = match &error {
            ChangeError::NoSuchKey(_) | ChangeError::NoSuchClientApplication { .. } => 404,
            ChangeError::Problems(_) | ChangeError::Rows(_) => 422,
            ChangeError::Key(_) => 500,
            ChangeError::Store(_) => 503,
        };
        Self::new(status, error.to_string())
    }
}

impl From<WorkError> for Trouble {
    fn from(error: WorkError) -> Self {
        Self::new(503, format!("nothing was done: {error}; try again"))
    }
}

/// Answers a request of the admin plane.
pub(crate) async fn answer(
    core: &Rc<Core>,
    request: &RequestView<'_>,
    out: &mut Vec<u8>,
) -> Answer {
    let echo = Echo::of(request);
    if request.path() == "/metrics" {
        let text = core.shared.metrics.render();
        respond::body(core, out, &echo, 200, METRICS_CONTENT_TYPE, text.as_bytes());
        return Answer::Written { keep_alive: echo.keep_alive };
    }
    let (status, body) = match Box::pin(json_answer(core, request)).await {
        Ok(body) => (200, body),
        Err(trouble) => (trouble.status, json!({ "error": trouble.message })),
    };
    let body = format!("{body}\n");
    respond::body(core, out, &echo, status, "application/json", body.as_bytes());
    Answer::Written { keep_alive: echo.keep_alive }
}

async fn json_answer(core: &Rc<Core>, request: &RequestView<'_>) -> Result<Value, Trouble> {
    let segments: Vec<&str> = request.path().trim_matches('/').split('/').collect();
    match (request.method(), segments.as_slice()) {
        (Method::Get, ["status"]) => Ok(status(core)),
        (Method::Get, ["sessions"]) => sessions(core, request.query()).await,
        (Method::Get, ["keys"]) => Ok(keys(core)),
        (Method::Get, ["explain"]) => {
            let told = explain::answer(core, request.query()).await;
            told.map_err(|(status, message)| Trouble::new(status, message))
        }
        (Method::Post, ["keys"]) => create_key(core, request.body()).await,
        (Method::Post, ["keys", id, "revoke"]) => revoke_key(core, id).await,
        (Method::Post, ["apply"]) => apply(core, request.body()).await,
        (Method::Post, ["notify"]) => Ok(notify(core)),
        _ => Err(Trouble::new(
            404,
            "no such resource; there are GET /status, /sessions, /keys, /explain, /metrics and POST /keys, \
             /keys/{id}/revoke, /apply, /notify",
        )),
    }
}

fn body<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Trouble> {
    serde_json::from_slice(bytes).map_err(|error| Trouble::new(400, error.to_string()))
}

fn status(core: &Core) -> Value {
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
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ready": health::unready(core).unwrap_or("yes"),
        "runtime_address": shared.runtime_address.to_string(),
        "started": time::text_of_ms(shared.started_ms),
        "uptime_seconds": shared.started.elapsed().as_secs(),
        "cores": shared.cores(),
        "driver": shared.driver(),
        "store": store,
        "catalog_version": published.snapshot.version(),
        "client_applications": clients,
        "tools": tools.len(),
        "keys": published.keys.len(),
        "sessions": shared.sessions.total(),
        "streams": shared.open_streams(),
        "panics_contained": rt::panics_contained(),
    })
}

async fn sessions(core: &Core, query: Option<&str>) -> Result<Value, Trouble> {
    let asked = http::query_pairs(query.unwrap_or_default())
        .find(|(name, _)| name == "limit")
        .and_then(|(_, value)| value.parse().ok());
    let limit = asked.unwrap_or(100).min(LISTED_MAX);
    let (shared, now_ms) = (core.shared.clone(), core.clock.now_ms());
    let listed = core
        .shared
        .workers
        .run(move || {
            let (newest, _) = newest(&shared.sessions, limit, |_| true);
            newest.iter().map(|session| listed_session(session, now_ms)).collect::<Vec<_>>()
        })
        .await?;
    Ok(json!({ "sessions": listed, "total": core.shared.sessions.total() }))
}

fn listed_session(session: &Session, now_ms: u64) -> Value {
    let client = session.client();
    json!({
        "session": session.key().to_string(),
        "tenant": session.tenant(),
        "client_application": session.client_application(),
        "caller": session.caller(),
        "revision": session.revision().text(),
        "client": format!("{} {}", client.name, client.version),
        "created": time::text_of_ms(session.created_ms()),
        "idle_seconds": now_ms.saturating_sub(session.seen_ms()) / 1000,
        "streams": session.streams().len(),
    })
}

fn keys(core: &Core) -> Value {
    let now_ms = core.clock.now_ms();
    let published = core.published();
    let mut records: Vec<&KeyRecord> = published.keys.iter().collect();
    records.sort_by_key(|record| (record.created_ms, record.id));
    let listed: Vec<Value> = records
        .iter()
        .map(|record| {
            let state = if record.revoked_ms.is_some() {
                "revoked"
            } else if record.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
                "expired"
            } else {
                "valid"
            };
            json!({
                "id": record.id.as_str(),
                "tenant": record.tenant.as_str(),
                "client_application": record.client_application.as_str(),
                "label": record.label.as_str(),
                "trust": record.trust,
                "created": time::text_of_ms(record.created_ms),
                "expires": record.expires_ms.map(time::text_of_ms),
                "state": state,
            })
        })
        .collect();
    json!({ "keys": listed })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewKey {
    tenant: String,
    client_application: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    expires_seconds: Option<u64>,
    #[serde(default)]
    trust: Trust,
}

async fn create_key(core: &Rc<Core>, bytes: &[u8]) -> Result<Value, Trouble> {
    let new: NewKey = body(bytes)?;
    let mut random = [0; KEY_RANDOM_BYTES];
    super::random_bytes(&mut random);
    let key = ApiKey::generate(random);
    let mut record =
        key_record(&key, &new.tenant, &new.client_application, &new.label, new.expires_seconds)
            .map_err(|message| Trouble::new(422, message))?;
    record.trust = new.trust;
    let shared = core.shared.clone();
    core.shared.workers.run(move || shared.publication.add_key(record)).await??;
    let (tenant, client_application) = (new.tenant, new.client_application);
    tracing::info!(key = %key.id(), tenant, client_application, "key created");
    Ok(json!({ "key": key.text(), "id": key.id().as_str() }))
}

/// The record of a new key.
///
/// # Errors
/// A tenant, client application or label that cannot be one; the text says why.
pub fn key_record(
    key: &ApiKey,
    tenant: &str,
    client_application: &str,
    label: &str,
    expires_seconds: Option<u64>,
) -> Result<KeyRecord, String> {
    let now_ms = time::now_ms();
    let expires_ms =
        expires_seconds.map(|seconds| now_ms.saturating_add(seconds.saturating_mul(1000)));
    Ok(key.record(
        TenantId::new(tenant).map_err(|error| error.to_string())?,
        ClientApplicationId::new(client_application).map_err(|error| error.to_string())?,
        KeyLabel::new(label).map_err(|error| error.to_string())?,
        now_ms,
        expires_ms,
    ))
}

async fn revoke_key(core: &Rc<Core>, id: &str) -> Result<Value, Trouble> {
    let (shared, id) = (core.shared.clone(), id.to_owned());
    let now_ms = core.clock.now_ms();
    let caller = format!("key:{id}");
    let key = id.clone();
    let sessions = core
        .shared
        .workers
        .run(move || {
            shared.publication.revoke_key(&id, now_ms)?;
            let mut own = Vec::new();
            shared.sessions.for_each(|session| {
                if session.caller() == caller {
                    own.push(session.key());
                }
            });
            Ok::<_, ChangeError>(own)
        })
        .await??;
    // What the key had open ends with it.
    for index in 0..core.shared.cores() {
        core.send(index, CoreMessage::CheckListeners);
    }
    let ended = sessions.into_iter().filter(|key| session::end(core, *key)).count();
    tracing::info!(key, sessions_ended = ended, "key revoked");
    Ok(json!({ "revoked": true, "sessions_ended": ended }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    /// Rows as `Entities::rows` makes them: their keys and their values, both text.
    rows: HashMap<String, String>,
    #[serde(default)]
    dry_run: bool,
}

async fn apply(core: &Rc<Core>, bytes: &[u8]) -> Result<Value, Trouble> {
    let (shared, bytes) = (core.shared.clone(), bytes.to_vec());
    let applied = core
        .shared
        .workers
        .run(move || {
            let declared: Declared = body(&bytes)?;
            let entities = Entities::from_rows(declared.rows).map_err(ChangeError::Rows)?;
            shared.publication.apply(entities, declared.dry_run).map_err(Trouble::from)
        })
        .await??;
    if applied.before.is_some() {
        tracing::info!(version = applied.version, "catalog changed");
        core.shared.tell_clients();
    }
    let names = |names: &[EntityName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    Ok(json!({
        "added": names(&applied.difference.added),
        "changed": names(&applied.difference.changed),
        "removed": names(&applied.difference.removed),
        "version": applied.version,
    }))
}

/// Sends `notifications/tools/list_changed` to every standalone stream.
fn notify(core: &Core) -> Value {
    core.shared.tell_everyone();
    json!({ "notified": true })
}
