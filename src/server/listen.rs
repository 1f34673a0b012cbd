//! `subscriptions/listen` (MCP 2026-07-28): a response that stays open and carries what its client
//! wants to hear of.
//!
//! It is an outlet with an audience and a subscription, and nothing more is kept: who loses the
//! connection asks again. Who tells (`announce` of lists, upstream servers of resources) visits the
//! outlets of its core with [`Outlet::hear`](super::outlet::Outlet::hear), which knows what is wanted.

use std::sync::Arc;

use super::{
    connection::Answer,
    event_stream::{Ends, EventStream},
    guard,
    outlet::Purpose,
    pipeline::Admission,
    refusal::Refusal,
    respond,
    watch::Watch,
};
use crate::{
    catalog::View,
    mcp::{Method, Subscription},
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
    if !admission.request.accepts().event_stream {
        return Err(Refusal::NotAcceptable { needed: "text/event-stream" });
    }
    guard::check_streams(admission.request)?;
    let Admission { core, view, caller, limits, echo, out, arrived, .. } = admission;
    let count = |outcome| core.metrics.request(MethodLabel::Listen, outcome, arrived.elapsed());
    let offers = |uri: &str| offers_updates(&view, uri);
    let subscription = match Subscription::read(id, message.params(), offers) {
        Ok(subscription) => subscription,
        Err(error) => {
            count(OutcomeLabel::Error);
            let reply = Reply::new(id.to_owned_id(), Err(error));
            respond::reply(core, out, echo, None, &reply);
            return Ok(Answer::Written { keep_alive: echo.keep_alive });
        }
    };
    let place = limits.listen().map_err(Refusal::Limited)?;
    count(OutcomeLabel::Ok);
    let outlet = core.outlets.open(Purpose::Standing);
    outlet.set_listener(caller);
    outlet.set_audience(view.tenant.clone(), view.client_application.clone());
    let message = |payload: &[u8]| Arc::new(frame::control(None, None, Some(payload)));
    outlet.push(message(&subscription.acknowledged()));
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

/// Whether updates of a resource can be told of: the server that has it tells of them.
fn offers_updates(view: &View, uri: &str) -> bool {
    view.upstream_of_resource(uri).is_some_and(|server| server.definitions.subscribes)
}
