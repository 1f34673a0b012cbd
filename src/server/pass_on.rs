//! Requests that an upstream server answers and that are no tool calls: reading its resources,
//! getting its prompts, completing its arguments.

use std::rc::Rc;

use super::{
    along::{Along, scope},
    answer::reason_of,
    conversation::Conversation,
    execute::Asking,
    input_required::{self, Continued},
    invoke::Partner,
    running::{Answered, Registration},
    subscriptions::{Resource, Subscriber},
    trail::Trail,
    watch,
};
use crate::{
    audit,
    downstream::{UpstreamAnswer, UpstreamCalled, UpstreamMethod, UpstreamRequest},
    json::Raw,
    mcp::{self, Caching, PassOn, Revision},
    rpc::{Message, OwnedId, Reply, RpcError, code},
    rt::{self, Either},
    sessions::SessionKey,
    telemetry::{MethodLabel, OutcomeLabel},
};

/// A request on its way to an upstream.
pub(super) struct PassedOn {
    trail: Trail,
    request: PassOn,
    along: Along,
}

impl PassedOn {
    pub(super) fn new(
        trail: Trail,
        request: PassOn,
        asking: &Asking<'_>,
        message: &Message<'_>,
    ) -> Self {
        let partner = Partner { asking, message };
        let along = Along::of_connection(&request.server.connection, &asking.http, partner);
        Self { trail, request, along }
    }

    pub(super) fn conversation(&self) -> Option<Rc<Conversation>> {
        self.along.conversation.clone()
    }

    /// The request is not passed on after all.
    pub(super) fn refuse(self, reason: &'static str) {
        self.trail.refuse(reason);
    }

    /// Runs to the answer, or until a cancellation finds the registration.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request at the upstream, and is recorded as that.
    pub(super) async fn run(
        mut self,
        registration: Option<Registration>,
        revision: Revision,
        id: OwnedId,
    ) -> Answered {
        let asked = match &registration {
            None => Some(self.ask().await),
            Some(registration) => match rt::race(self.ask(), registration.cancelled()).await {
                Either::Left(asked) => Some(asked),
                Either::Right(()) => None,
            },
        };
        let Self { mut trail, request, along } = self;
        let label = MethodLabel::of(request.method.name());
        let took = trail.started.elapsed();
        trail.took = Some(took);
        let Some(UpstreamCalled { result, status, elapsed }) = asked else {
            trail.core.metrics.request(label, OutcomeLabel::Cancelled, took);
            return Answered::Cancelled(id);
        };
        trail.downstream = Some((status, elapsed));
        let is_read = request.method == mcp::Method::ResourcesRead;
        let mut meta = None;
        let mut is_asked = false;
        let body = match result {
            Ok(UpstreamAnswer::Result(result)) => {
                let (body, own) = mcp::relayed_result(result.as_raw(), revision);
                meta = own;
                Ok(body)
            }
            Ok(UpstreamAnswer::Error(error)) => Err(mcp::relayed_error(error, is_read, revision)),
            Ok(UpstreamAnswer::InputRequired { asks, state }) => {
                is_asked = true;
                let conversation = along.conversation.as_deref();
                input_required::result(&trail, conversation, &asks, state.as_deref())
            }
            Err(error) => Err(RpcError::new(code::SERVER, error.to_string())),
        };
        let (outcome, counted) = match &body {
            Ok(_) if is_asked => (audit::Outcome::InputRequired, OutcomeLabel::Ok),
            Ok(_) => (audit::Outcome::Ok, OutcomeLabel::Ok),
            Err(error) => {
                if let (mcp::Method::Subscribe, Some(key)) = (request.method, trail.session()) {
                    unsubscribe(&trail, &request, key);
                }
                trail.denied(reason_of(error));
                (audit::Outcome::Error, OutcomeLabel::Error)
            }
        };
        trail.core.metrics.request(label, counted, took);
        let caching = if is_read { Caching::Never } else { Caching::Unsaid };
        let body = if is_asked {
            body
        } else {
            trail.core.shared.server_info.answer(body, meta.as_deref(), caching, revision)
        };
        let reply = Reply::new(id, body);
        trail.close(outcome, reply.len());
        Answered::Reply(reply)
    }

    async fn ask(&mut self) -> UpstreamCalled {
        let Self { trail, request, along } = self;
        let method = match request.method {
            mcp::Method::ResourcesRead => UpstreamMethod::ResourcesRead,
            mcp::Method::PromptsGet => UpstreamMethod::PromptsGet,
            mcp::Method::Subscribe => UpstreamMethod::Subscribe,
            mcp::Method::Unsubscribe => UpstreamMethod::Unsubscribe,
            _ => UpstreamMethod::Complete,
        };
        let asked = UpstreamRequest {
            server: &request.server,
            scope: scope(&request.server, trail),
            method,
            params: &request.params,
            is_repeatable: true,
            continues: along.continues.as_ref().map(Continued::parts),
            client: along.client(),
        };
        let called = trail.core.upstreams.ask(&asked, &along.environment(trail)).await;
        watch::listen(&trail.core, &request.server, asked.scope, &along.carried);
        called
    }
}

/// The server does not tell of the resource after all.
fn unsubscribe(trail: &Trail, request: &PassOn, session: SessionKey) {
    let uri = request.params.as_raw().get("uri").and_then(Raw::as_str).unwrap_or_default();
    let resource = Resource::of(&request.server, &uri);
    trail.core.shared.subscriptions.unsubscribe(&Subscriber::Session(session), &resource);
}
