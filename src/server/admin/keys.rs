//! API keys of client applications.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Done, Trouble, ask::Ask};
use crate::{
    catalog::{ClientApplicationId, TenantId, Trust},
    identity::{ApiKey, KEY_RANDOM_BYTES, KeyLabel, KeyRecord},
    server::{
        change_error::ChangeError, core::Core, message::CoreMessage, random_bytes, session, time,
    },
};

/// Every key, without its secret.
pub(super) fn list(core: &Core) -> Value {
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

/// Makes a key; its text is told this once.
pub(super) async fn create(core: &Rc<Core>, ask: &Ask) -> Result<Done, Trouble> {
    let new: NewKey = ask.json()?;
    let mut random = [0; KEY_RANDOM_BYTES];
    random_bytes(&mut random);
    let key = ApiKey::generate(random);
    let mut record =
        key_record(&key, &new.tenant, &new.client_application, &new.label, new.expires_seconds)
            .map_err(|message| Trouble::new(422, message))?;
    record.trust = new.trust;
    let shared = core.shared.clone();
    core.shared.workers.run(move || shared.publication.add_key(record)).await??;
    let (tenant, client_application) = (new.tenant, new.client_application);
    tracing::info!(key = %key.id(), tenant, client_application, "key created");
    Ok(Done::ok(&json!({ "key": key.text(), "id": key.id().as_str() })))
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

/// Withdraws a key, and ends what it had open.
pub(super) async fn revoke(core: &Rc<Core>, ask: &Ask) -> Result<Done, Trouble> {
    let id = ask.names.first().cloned().unwrap_or_default();
    let shared = core.shared.clone();
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
    Ok(Done::ok(&json!({ "revoked": true, "sessions_ended": ended })))
}
