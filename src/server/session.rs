//! Opening, finding and ending sessions: the table in memory, the store behind it.

use std::{rc::Rc, sync::Arc};

use super::{
    conversation,
    core::Core,
    memory::Memory,
    pipeline::Admission,
    random_bytes,
    refusal::Refusal,
    subscriptions::Subscriber,
    trail::{self, SessionEnd},
    watch,
};
use crate::{
    audit::Transport,
    catalog::View,
    http::Known,
    identity::Caller,
    sessions::{
        Adopted, ClientCapabilities, ClientInfo, Find, Owner, Revision, Session, SessionId,
        SessionKey, SessionRecord,
    },
    store::{StoreState, Tree},
};

/// Finds the session a request names, and notes that its client was seen.
///
/// Unknown, ended, expired and foreign sessions are one refusal. Which it is cannot be told from
/// the time either: an id that was never given to this owner is recognised by its tag, without a
/// look at the store.
pub(crate) async fn find(
    core: &Rc<Core>,
    memory: &mut Memory,
    view: &View,
    caller: Caller,
    text: &[u8],
    now_ms: u64,
) -> Result<Arc<Session>, Refusal> {
    if let Some(session) = memory.session(text)
        && !session.is_ended()
        && now_ms < session.expires_ms()
    {
        let session = session.clone();
        seen(core, &session, now_ms);
        return Ok(session);
    }
    memory.forget_session();
    let id = SessionId::parse(text).ok_or(Refusal::UnknownSession)?;
    let caller = caller.to_string();
    let owner = owner(view, &caller)?;
    let session = match core.shared.sessions.find(id.key(), &owner, now_ms) {
        Find::Found(session) => session,
        Find::NotInMemory if core.shared.session_ids.belongs(&id, &owner) => {
            Box::pin(from_store(core, id.key(), &owner)).await?
        }
        Find::NotInMemory | Find::Ended | Find::Expired | Find::Foreign => {
            return Err(Refusal::UnknownSession);
        }
    };
    seen(core, &session, now_ms);
    memory.remember_session(text, session.clone());
    Ok(session)
}

/// The session a request names in its header, if it names one.
pub(crate) async fn named(admission: &mut Admission<'_>) -> Result<Option<Arc<Session>>, Refusal> {
    let Some(text) = admission.request.header(Known::McpSessionId) else { return Ok(None) };
    if admission.request.repeated(Known::McpSessionId) {
        return Err(Refusal::UnknownSession);
    }
    let Admission { core, memory, view, caller, arrived_ms, .. } = admission;
    find(core, memory, view, *caller, text, *arrived_ms).await.map(Some)
}

/// The owner of a session the caller opens through this view.
pub(crate) fn owner<'a>(view: &'a View, caller: &'a str) -> Result<Owner<'a>, Refusal> {
    // The three are bounded by their types; the error is for records from elsewhere.
    Owner::new(view.tenant.as_str(), view.client_application.as_str(), caller)
        .map_err(|_| Refusal::UnknownSession)
}

async fn from_store(
    core: &Rc<Core>,
    key: SessionKey,
    owner: &Owner<'_>,
) -> Result<Arc<Session>, Refusal> {
    // A store that cannot be asked is not an unknown session: the client must keep its id.
    let row = core.shared.store.get(Tree::Sessions, key.as_bytes()).await.map_err(|error| {
        tracing::error!(%error, "a session cannot be read from the store");
        Refusal::StoreUnavailable
    })?;
    let Some(row) = row else {
        // While the store mends itself, rows it has accepted cannot be read yet.
        let healthy = core.shared.store.state() == StoreState::Healthy;
        return Err(if healthy { Refusal::UnknownSession } else { Refusal::StoreUnavailable });
    };
    let record = SessionRecord::decode(&row).map_err(|error| {
        tracing::error!(%error, session = %key, "a session's row cannot be read");
        Refusal::StoreUnavailable
    })?;
    match core.shared.sessions.adopt(key, record, owner, core.clock.now_ms()) {
        Adopted::Found(session) => Ok(session),
        Adopted::Ended | Adopted::Expired | Adopted::Foreign => Err(Refusal::UnknownSession),
    }
}

fn seen(core: &Core, session: &Session, now_ms: u64) {
    if core.shared.sessions.touch(session, now_ms) {
        core.write_behind.put_session(session.key(), &session.row());
    }
}

/// What a client says of itself when it opens a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Introduction<'a> {
    pub(crate) revision: Revision,
    pub(crate) client: ClientInfo<'a>,
    pub(crate) capabilities: ClientCapabilities,
}

/// Opens a session for the caller.
pub(crate) fn open(
    core: &Core,
    view: &View,
    caller: Caller,
    introduction: &Introduction<'_>,
) -> Result<(SessionId, Arc<Session>), Refusal> {
    let (id, session) = open_unkept(core, view, caller, introduction)?;
    core.write_behind.session_opened(&session);
    Ok((id, session))
}

/// Opens a session that a restart need not find.
pub(crate) fn open_unkept(
    core: &Core,
    view: &View,
    caller: Caller,
    introduction: &Introduction<'_>,
) -> Result<(SessionId, Arc<Session>), Refusal> {
    let sessions = &core.shared.sessions;
    let settings = &core.shared.settings.runtime.mcp.session;
    let max = view
        .sessions_max
        .unwrap_or_else(|| u32::try_from(settings.per_tenant_max).unwrap_or(u32::MAX));
    let reservation = sessions.reserve(view.tenant.as_str(), max).map_err(|full| {
        Refusal::TooManySessions { retry_after_seconds: full.retry_after_seconds }
    })?;
    let caller = caller.to_string();
    let owner = owner(view, &caller)?;
    let mut random = [0; 16];
    random_bytes(&mut random);
    let id = core.shared.session_ids.mint(random, &owner);
    let now_ms = core.clock.now_ms();
    let record = SessionRecord::new(
        &owner,
        introduction.revision,
        introduction.client,
        introduction.capabilities,
        now_ms,
        sessions.expires_ms(now_ms),
    );
    let session = sessions.insert(reservation, id.key(), record);
    core.metrics.sessions_opened.increment();
    Ok((id, session))
}

/// Ends a session and everything it holds. False when somebody else had ended it already.
pub(crate) fn end(core: &Rc<Core>, key: SessionKey) -> bool {
    end_by_client(core, key, None)
}

/// The same at the client's wish, in a request with this correlation id.
pub(crate) fn end_by_client(core: &Rc<Core>, key: SessionKey, external_id: Option<&str>) -> bool {
    let Some(session) = core.shared.sessions.end(key, core.clock.now_ms()) else { return false };
    release(core, &session, "session/end", external_id);
    true
}

/// Ends a session whose time is over.
pub(crate) fn expired(core: &Rc<Core>, session: &Session) {
    release(core, session, "session/expire", None);
}

/// Ends the streams and calls of a session that is out of the table, removes its row, and records
/// its end.
fn release(core: &Rc<Core>, session: &Session, method: &'static str, external_id: Option<&str>) {
    core.metrics.sessions_ended.increment();
    watch::session_over(core, session);
    let is_bound = session.is_connection_bound();
    if !is_bound {
        core.write_behind.session_ended(session);
    }
    let end = SessionEnd {
        method,
        transport: if is_bound { Transport::HttpSse } else { Transport::StreamableHttp },
        revision: session.revision(),
        external_id,
    };
    trail::session_ended(core, session.key(), session, &end);
    for stream in session.streams() {
        core.end_stream(stream);
    }
    conversation::unheard(core, session);
    core.shared.subscriptions.forget(&Subscriber::Session(session.key()));
    for call in session.calls() {
        core.cancel_call(call.core, call.number);
    }
}
