//! What is sent with nobody waiting for it: answers to questions, cancellations, goodbyes. Each in a
//! task of its own, under a time limit.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::UpstreamServer;
use crate::downstream::carried::Carried;
use crate::downstream::error::CallError;
use crate::downstream::rest::CallEnvironment;
use crate::http::Method;
use crate::json::OwnedRaw;
use crate::mcp::AskOutcome;
use crate::mcp::upstream::{UpstreamKind, write_answer, write_notification};
use crate::rpc::OwnedId;
use crate::rt;
use crate::telemetry::{ExecutionId, TraceParent};

use super::link::Request;
use super::office::{Office, headers_of, within};
use super::sessions::{Session, Single};

/// How long one may take.
const WITHIN: Duration = Duration::from_secs(30);
/// How long a server may take to let a session go.
const GOODBYE_WITHIN: Duration = Duration::from_secs(5);

/// On whose behalf something is sent, beyond the request it came with.
#[derive(Clone)]
pub(super) struct Errand {
    pub(super) office: Rc<Office>,
    pub(super) server: Arc<UpstreamServer>,
    pub(super) carried: Carried,
    pub(super) execution_id: ExecutionId,
    pub(super) trace: Option<TraceParent>,
}

impl Errand {
    pub(super) fn new(
        office: &Rc<Office>,
        server: &Arc<UpstreamServer>,
        environment: &CallEnvironment<'_>,
    ) -> Self {
        Self {
            office: Rc::clone(office),
            server: Arc::clone(server),
            carried: environment.carried.clone(),
            execution_id: environment.execution_id,
            trace: environment.trace,
        }
    }

    /// On behalf of nobody.
    pub(super) fn own(office: &Rc<Office>, server: &Arc<UpstreamServer>) -> Self {
        Self {
            office: Rc::clone(office),
            server: Arc::clone(server),
            carried: Carried::NONE,
            execution_id: ExecutionId::NIL,
            trace: None,
        }
    }

    pub(super) fn environment(&self) -> CallEnvironment<'_> {
        CallEnvironment {
            execution_id: self.execution_id,
            external_id: None,
            trace: self.trace,
            carried: &self.carried,
        }
    }

    /// Posts a message that has no answer of its own.
    pub(super) async fn deliver(&self, session: &Session, body: &[u8]) -> Result<u16, CallError> {
        let environment = self.environment();
        let link = self.office.link(&self.server.connection, &environment, Some(WITHIN));
        let (headers, target) = (headers_of(session), &*session.target);
        let request = Request { method: Method::Post, target, headers, body: Some(body) };
        let answer = link.send(&request).await?;
        let status = answer.status();
        link.leave(answer).await;
        Ok(status)
    }

    /// The same, in a task of its own; not at all while too many are on their way in this session.
    pub(super) fn post(self, session: &Arc<Session>, body: Vec<u8>) {
        let Some(place) = session.on_the_way() else {
            let connection = self.server.connection.id.as_str();
            tracing::debug!(connection, "the MCP server takes too few messages to get more");
            return;
        };
        let session = Arc::clone(session);
        rt::spawn(async move {
            let _place = place;
            let sent = within(WITHIN, Box::pin(self.deliver(&session, &body))).await;
            let connection = self.server.connection.id.as_str();
            match sent {
                Some(Ok(200..=299)) => {}
                Some(Ok(status)) => {
                    tracing::info!(connection, status, "the MCP server did not take a message");
                }
                Some(Err(error)) => {
                    let detail = error.detail();
                    tracing::info!(connection, detail, "the MCP server got no message: {error}");
                }
                None => tracing::info!(connection, "the MCP server took no message in time"),
            }
        });
    }

    /// Answers a question of the server.
    pub(super) fn answer(self, session: &Arc<Session>, id: &OwnedId, outcome: &AskOutcome) {
        let mut body = Vec::new();
        write_answer(&mut body, id, outcome);
        self.post(session, body);
    }

    /// Takes a request back (MCP 2025-11-25, cancellation).
    pub(super) fn cancel(self, session: &Arc<Session>, id: i64) {
        let params = format!(r#"{{"requestId":{id},"reason":"The client does not wait for it"}}"#);
        let Ok(params) = OwnedRaw::parse(params.as_bytes()) else { return };
        let mut body = Vec::new();
        write_notification(&mut body, "notifications/cancelled", Some(params.as_raw()));
        self.post(session, body);
    }

    /// Says that a session is not used any more (MCP 2025-11-25, session management). A server may
    /// not want to know.
    pub(super) async fn goodbye(&self, session: &Session) {
        if session.kind != UpstreamKind::Streamable || session.id.is_none() {
            return;
        }
        let environment = self.environment();
        let left = Some(GOODBYE_WITHIN);
        let link = self.office.link(&self.server.connection, &environment, left);
        let (headers, target) = (headers_of(session), &*session.target);
        let request = Request { method: Method::Delete, target, headers, body: None };
        let sent = async {
            if let Ok(answer) = link.send(&request).await {
                link.leave(answer).await;
            }
        };
        let _ = within(GOODBYE_WITHIN, Box::pin(sent)).await;
    }
}

/// The session of a single request ends with it.
pub(super) struct Parting {
    errand: Option<Errand>,
    session: Arc<Session>,
    _single: Single,
}

impl Parting {
    pub(super) fn new(errand: Errand, session: &Arc<Session>, single: Single) -> Self {
        Self { errand: Some(errand), session: Arc::clone(session), _single: single }
    }
}

impl Drop for Parting {
    fn drop(&mut self) {
        if let Some(errand) = self.errand.take() {
            let session = Arc::clone(&self.session);
            session.end();
            rt::spawn(async move { errand.goodbye(&session).await });
        }
    }
}

/// Takes a request back that nobody waits for any more.
pub(super) struct Cancelling {
    errand: Option<Errand>,
    session: Arc<Session>,
    id: i64,
}

impl Cancelling {
    /// Of a server that is told so; of any other the end of the connection says it.
    pub(super) fn new(errand: Errand, session: &Arc<Session>, id: i64) -> Self {
        let is_told = !session.revision.is_modern();
        Self { errand: is_told.then_some(errand), session: Arc::clone(session), id }
    }

    /// It has ended by itself.
    pub(super) fn forget(&mut self) {
        self.errand = None;
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        if let Some(errand) = self.errand.take() {
            errand.cancel(&self.session, self.id);
        }
    }
}
