//! The writing of answers: what came of a request as a reply in the form of its client's revision,
//! counted and recorded as it is written.

use super::{
    confirm::Unconfirmed,
    ending::{Ended, Ending, Refused},
    execute::{Asking, Entry},
    input_required,
    offload::{self, INLINE_BYTES_MAX},
    parts::ReadResource,
    running::Answered,
    trail::{Trail, subject},
};
use crate::{
    audit,
    mcp::{self, Caching, Revision, Supplement, ToolOutcome},
    rpc::{Id, Message, OwnedId, Reply, ResultBody, RpcError, code},
    sessions::ClientCapabilities,
    telemetry::{MethodLabel, OutcomeLabel},
};

/// The entry of a request that is answered.
pub(super) fn replied(
    asking: &Asking<'_>,
    id: Id<'_>,
    message: &Message<'_>,
    trail: Option<Trail>,
    body: Result<ReadResource, RpcError>,
    caching: Caching,
) -> Entry {
    let method = message.method().map_or(mcp::Method::Other, mcp::Method::of);
    let label = if body.is_ok() { OutcomeLabel::Ok } else { OutcomeLabel::Error };
    let elapsed = asking.origin.arrived.elapsed();
    asking.origin.core.metrics.request(MethodLabel::of(method.name()), label, elapsed);
    let reason = body.as_ref().err().map(reason_of);
    let (body, meta) = match body {
        Ok((body, meta)) => (Ok(body), meta),
        Err(error) => (Err(error), None),
    };
    let server = &asking.origin.core.shared.server_info;
    let body = server.answer(body, meta.as_deref(), caching, asking.revision);
    let reply = Reply::new(id.to_owned_id(), body);
    if let Some(mut trail) = trail {
        trail.asked = subject(method, message);
        trail.took = Some(elapsed);
        let outcome = if let Ok(body) = &reply.body {
            if method == mcp::Method::ToolsList {
                trail.keep_listed(body);
            }
            audit::Outcome::Ok
        } else {
            trail.denied(reason.unwrap_or("failed"));
            audit::Outcome::Error
        };
        trail.close(outcome, reply.len());
    }
    Entry::Done(reply)
}

/// For whom what a client is told of its view may be kept.
pub(super) fn shared_by(asking: &Asking<'_>) -> Caching {
    if asking.origin.view.is_public() { Caching::Public } else { Caching::Private }
}

/// The reason of a request that was answered with this error, as records name it.
pub(super) fn reason_of(error: &RpcError) -> &'static str {
    match error.code {
        code::METHOD_NOT_FOUND => "method_not_found",
        code::RESOURCE_NOT_FOUND => "unknown_resource",
        code::INVALID_PARAMS => "invalid_params",
        code::INVALID_REQUEST => "invalid_request",
        _ => "failed",
    }
}

/// A large result of an upstream in the form of a revision, which is work for a worker. Where there
/// is none free it is done on the core: the call was made, and its answer is owed.
pub(super) async fn shape_large(ended: &Ended, revision: Revision) -> Option<Shaped> {
    let Ending::Ran(outcome @ ToolOutcome::Relayed(relayed)) = &ended.ending else { return None };
    if relayed.len() <= INLINE_BYTES_MAX {
        return None;
    }
    let (outcome, supplement) = (outcome.clone(), ended.supplement.clone());
    let shape = move || mcp::tool_result(&outcome, &supplement, revision, false);
    offload::run(&ended.trail.core, &ended.trail.view, shape).await.ok()
}

/// A result in the form of a revision.
pub(super) type Shaped = Result<ResultBody, RpcError>;

/// A call's ending as the client's revision has it. Of a large result that is there already.
pub(super) fn answered(
    mut ended: Ended,
    shaped: Option<Shaped>,
    revision: Revision,
    id: OwnedId,
) -> Answered {
    let outcome = ended.settle();
    let Ended { ending, mut supplement, trail, conversation, .. } = ended;
    let mut meta = if revision.is_modern() { supplement.meta.take() } else { None };
    if let (Ending::Ran(ToolOutcome::Relayed(relayed)), true) = (&ending, revision.is_modern()) {
        meta = relayed.meta(meta.as_deref());
    }
    let owes_object = trail.tool.as_ref().is_some_and(|tool| tool.owes_object());
    let body = match ending {
        Ending::Ran(outcome) => match shaped {
            Some(shaped) => shaped,
            None => mcp::tool_result(&outcome, &supplement, revision, owes_object),
        },
        // What went wrong on the way is for the model to read, as an API's refusal is.
        Ending::Failed(error) => failure(error.to_string(), revision),
        Ending::Limited(limited) => failure(limited.text(), revision),
        Ending::Told(error) => Err(mcp::relayed_error(error, false, revision)),
        Ending::InputRequired { asks, state } => {
            let conversation = conversation.as_deref();
            let body = input_required::result(&trail, conversation, &asks, state.as_deref());
            return closed(trail, outcome, id, body);
        }
        Ending::Refused(Refused::Unknown) => Err(mcp::unknown_tool(trail.asked())),
        Ending::Refused(Refused::Unconfirmed(Unconfirmed::CannotAsk)) if revision.is_modern() => {
            Err(mcp::missing_capabilities(ClientCapabilities::ELICITATION_FORM))
        }
        Ending::Refused(refused) => failure(refused.text(&trail), revision),
        Ending::Cancelled => {
            drop(trail);
            return Answered::Cancelled(id);
        }
    };
    let server = &trail.core.shared.server_info;
    let body = server.answer(body, meta.as_deref(), Caching::Unsaid, revision);
    closed(trail, outcome, id, body)
}

fn closed(
    trail: Trail,
    outcome: audit::Outcome,
    id: OwnedId,
    body: Result<ResultBody, RpcError>,
) -> Answered {
    let reply = Reply::new(id, body);
    trail.close(outcome, reply.len());
    Answered::Reply(reply)
}

fn failure(text: String, revision: Revision) -> Result<ResultBody, RpcError> {
    mcp::tool_result(&ToolOutcome::Failure { text }, &Supplement::NONE, revision, false)
}
