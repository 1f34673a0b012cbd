//! The sessions of clients.

use serde_json::{Value, json};

use super::{Done, Trouble, ask::Ask};
use crate::{
    server::{appliance::newest, core::Core, time},
    sessions::Session,
};

/// Sessions listed where nothing else is asked for, and most of them.
const LISTED: u64 = 100;
const LISTED_MAX: usize = 10_000;

/// The newest sessions in memory.
pub(super) async fn list(core: &Core, ask: &Ask) -> Result<Done, Trouble> {
    let asked = ask.number("limit")?.unwrap_or(LISTED);
    let limit = usize::try_from(asked).unwrap_or(LISTED_MAX).min(LISTED_MAX);
    let (shared, now_ms) = (core.shared.clone(), core.clock.now_ms());
    let listed = core
        .shared
        .workers
        .run(move || {
            let (newest, _) = newest(&shared.sessions, limit, |_| true);
            newest.iter().map(|session| listed_session(session, now_ms)).collect::<Vec<_>>()
        })
        .await?;
    Ok(Done::ok(&json!({ "sessions": listed, "total": core.shared.sessions.total() })))
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
