//! Where a message goes that came on no request's own stream.
//!
//! What names its request goes to that one. A question that names none belongs to the request under
//! way, or is asked outside any request; where several callers share the session and it is not
//! certain whose request leads to it, it is refused. The rest is heard by the listener.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::downstream::resilience::pause;
use crate::json::Raw;
use crate::mcp::upstream::{Received, UpstreamKind};
use crate::mcp::{Ask, AskMethod, AskOutcome};
use crate::rpc::{OwnedId, RpcError, code};
use crate::rt::{self, InboxSender, Undelivered, oneshot};

use super::Heard;
use super::ask::nothing;
use super::errand::Errand;
use super::sessions::{Passed, Session};
use super::talk::{NO_PAGE, said};
use super::under_way::Questioned;

/// How often it is tried to pass on what finds no room, and how long between.
const TRIES_MAX: usize = 300;
const BETWEEN: Duration = Duration::from_millis(100);

/// What a server is told whose question may be for any of several callers.
const UNCLEAR: &str = "It cannot be told whose request this question belongs to, as several callers \
                       share this session; each has its own where its toolset says sessions = \
                       \"separate\"";

/// Passes a message on. As long as whom it is for takes nothing, nothing more is read.
pub(super) async fn route(errand: &Errand, session: &Arc<Session>, message: Received) {
    match &message {
        Received::Response { id: Some(id), .. } => {
            let id = id.clone();
            if let Some(running) = session.running(id.as_bytes()) {
                pass(&running, message).await;
            }
            session.settle(id.as_bytes());
        }
        Received::Response { id: None, .. } => {}
        Received::Request { id, method, params } => {
            if AskMethod::of(method).is_none() {
                outside(errand, session, id, method, params.as_raw());
                return;
            }
            match session.questioned() {
                Questioned::Request(running) => {
                    let id = id.clone();
                    if !pass(&running, message).await {
                        refuse(errand, session, &id, code::SERVER, "The client is gone");
                    }
                }
                Questioned::Outside => outside(errand, session, id, method, params.as_raw()),
                Questioned::Unclear => {
                    let connection = errand.server.connection.id.as_str();
                    let toolset = errand.server.toolset.as_str();
                    tracing::info!(connection, toolset, "a question is refused: {UNCLEAR}");
                    refuse(errand, session, id, code::SERVER, UNCLEAR);
                }
            }
        }
        Received::Notification { method, params } => {
            let raw = params.as_raw();
            let running = match &**method {
                "notifications/progress" => {
                    let token = raw.get("progressToken").map(Raw::text).unwrap_or_default();
                    // What nobody waits for any more is told to nobody.
                    let Some(running) = session.running(token.as_bytes()) else { return };
                    Some(running)
                }
                "notifications/cancelled" => session.questioned().request(),
                "notifications/message" if session.kind == UpstreamKind::Events => {
                    session.questioned().request()
                }
                _ => None,
            };
            if let Some(running) = running {
                pass(&running, message).await;
            } else if let Some(heard) = said(method, raw) {
                errand.office.listener.heard(&errand.server, session.client(), heard);
            }
        }
    }
}

/// Whether it was taken.
async fn pass(to: &InboxSender<Passed>, message: Received) -> bool {
    let mut message = Passed(message);
    for _ in 0..TRIES_MAX {
        match to.push(message) {
            Ok(()) => return true,
            Err(Undelivered::Closed(_)) => return false,
            Err(Undelivered::Full(back)) => message = back,
        }
        pause(BETWEEN).await;
    }
    false
}

/// A question outside any request.
fn outside(errand: &Errand, session: &Arc<Session>, id: &OwnedId, method: &str, params: Raw<'_>) {
    if method == "ping" {
        errand.clone().answer(session, id, &AskOutcome::Answer(nothing()));
        return;
    }
    let Some(method) = AskMethod::of(method) else {
        refuse(errand, session, id, code::METHOD_NOT_FOUND, "Method not found");
        return;
    };
    let ask = Ask { method, params: params.without(&["_meta"]) };
    if !ask.is_fit() {
        refuse(errand, session, id, code::INVALID_PARAMS, NO_PAGE);
        return;
    }
    let (sender, receiver) = oneshot();
    let heard = Heard::Asked(ask, Arc::new(Mutex::new(Some(sender))));
    errand.office.listener.heard(&errand.server, session.client(), heard);
    let (errand, session, id) = (errand.clone(), Arc::clone(session), id.clone());
    rt::spawn(async move {
        let outcome = receiver.await.unwrap_or(AskOutcome::Unheard);
        errand.answer(&session, &id, &outcome);
    });
}

fn refuse(errand: &Errand, session: &Arc<Session>, id: &OwnedId, code: i32, text: &'static str) {
    errand.clone().answer(session, id, &AskOutcome::Refused(RpcError::new(code, text)));
}
