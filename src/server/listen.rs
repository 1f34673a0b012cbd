//! `subscriptions/listen` (MCP 2026-07-28): a response that stays open and carries what its client
//! wants to hear of.
//!
//! It is an outlet with an audience and a subscription, and nothing more is kept: who loses the
//! connection asks again. It is recorded when it begins: it may go on for days, and how it ends says
//! nothing of its client. Who tells (`announce` of lists, upstream servers of resources) visits the
//! outlets of its core with [`Outlet::hear`](super::outlet::Outlet::hear), which knows what is wanted.

use std::sync::Arc;

use super::{
    answer,
    connection::Answer,
    event_stream::{Ends, EventStream},
    guard,
    outlet::Purpose,
    pipeline::Admission,
    refusal::Refusal,
    respond,
    trail::{Origin, Trail},
    watch::Watch,
};
use crate::{
    audit::{CallType, Outcome, Transport},
    catalog::View,
    mcp::{Method, Revision, Subscription},
    rpc::{Id, Incoming, Message, Reply},
    streams::frame,
    telemetry::{MethodLabel, OutcomeLabel},
};

/// The request of a body that asks for a subscription, where there are streams for one.
pub(super) fn asked<'i, 'a>(
    admission: &Admission<'_>,
    incoming: &'i Incoming<'a>,
) -> Option<(Id<'a>, &'i Message<'a>)> {
    let Incoming::Single(message) = incoming else { return None };
    let is_listen = message.method().is_some_and(|name| Method::of(name) == Method::Listen);
    let has_streams = admission.core.shared.settings.runtime.mcp.sse.enabled;
    message.request_id().filter(|_| is_listen && has_streams).map(|id| (id, message))
}

/// Opens the stream of a subscription.
pub(super) fn open(
    admission: Admission<'_>,
    (id, message): (Id<'_>, &Message<'_>),
) -> Result<Answer, Refusal> {
    let mut trail = trail(&admission, message)?;
    let acceptable = if admission.request.accepts().event_stream {
        guard::check_streams(admission.request)
    } else {
        Err(Refusal::NotAcceptable { needed: "text/event-stream" })
    };
    if let Err(refusal) = acceptable {
        trail.refuse(refusal.reason());
        return Err(refusal);
    }
    let Admission { core, view, caller, limits, echo, out, arrived, .. } = admission;
    let count = |outcome| core.metrics.request(MethodLabel::Listen, outcome, arrived.elapsed());
    let offers = |uri: &str| offers_updates(&view, uri);
    let subscription = match Subscription::read(id, message.params(), offers) {
        Ok(subscription) => subscription,
        Err(error) => {
            count(OutcomeLabel::Error);
            trail.denied(answer::reason_of(&error));
            let reply = Reply::new(id.to_owned_id(), Err(error));
            trail.close(Outcome::Error, reply.len());
            respond::reply(core, out, echo, None, &reply);
            return Ok(Answer::Written { keep_alive: echo.keep_alive });
        }
    };
    let place = match limits.listen() {
        Ok(place) => place,
        Err(limited) => {
            let refusal = Refusal::Limited(limited);
            trail.refuse(refusal.reason());
            return Err(refusal);
        }
    };
    count(OutcomeLabel::Ok);
    let outlet = core.outlets.open(Purpose::Standing);
    outlet.set_listener(caller);
    outlet.set_audience(view.tenant.clone(), view.client_application.clone());
    let message = |payload: &[u8]| Arc::new(frame::control(None, None, Some(payload)));
    let acknowledged = subscription.acknowledged();
    trail.close(Outcome::Ok, acknowledged.len());
    outlet.push(message(&acknowledged));
    let over = message(&subscription.over(&core.shared.server_info));
    let watch = Watch::begin(core, &view, outlet.id, id.text(), subscription.updates());
    outlet.subscribe(subscription, over);
    respond::stream_head(core, out, echo, None);
    Ok(Answer::Stream(Box::new(EventStream {
        outlet,
        stream: None,
        keep_alive: echo.keep_alive,
        hold: None,
        ends: watch.map(|watch| Box::new(Ends::Watch(watch))),
        place: Some(place),
    })))
}

fn trail(admission: &Admission<'_>, message: &Message<'_>) -> Result<Trail, Refusal> {
    let origin = Origin {
        revision: Some(Revision::V20260728),
        ..admission.origin(Transport::StreamableHttp, None)
    };
    let mut trail = Trail::begin(&origin, CallType::Session, Method::Listen.name())?;
    trail.request_bytes = message.params().map_or(0, |params| params.text().len());
    Ok(trail)
}

/// Whether updates of a resource can be told of: the server that has it tells of them.
fn offers_updates(view: &View, uri: &str) -> bool {
    view.upstream_of_resource(uri).is_some_and(|server| server.definitions.subscribes)
}
