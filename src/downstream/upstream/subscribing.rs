//! Subscribing to resources of servers: what each session is to be told of, kept beside what its
//! stream is held open for.

use std::rc::Rc;
use std::time::Duration;

use crate::downstream::rest::CallEnvironment;
use crate::json::{OwnedRaw, Raw};

use super::ask::nothing;
use super::office::{Office, within};
use super::sessions::Session;
use super::standing::key_of;
use super::{UpstreamMethod, UpstreamRequest};

/// How long a subscription waits for the stream that it is part of.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(5);
/// Resources that one session may subscribe to.
const SUBSCRIPTIONS_MAX: usize = 1000;

impl Office {
    /// The answer to a subscription at a server that has no method for it: what is wanted is said
    /// with `subscriptions/listen`. It waits for the server to say that it heard.
    pub(super) async fn subscribed(
        self: &Rc<Self>,
        request: &UpstreamRequest<'_>,
        session: &Session,
        environment: &CallEnvironment<'_>,
    ) -> Option<OwnedRaw> {
        if !session.revision.is_modern() || !is_subscription(request.method) {
            return None;
        }
        self.change_subscription(request, environment);
        let key = key_of(request.server, request.scope, request.client.capabilities());
        if let (UpstreamMethod::Subscribe, Some(key), Some(uri)) =
            (request.method, key, uri_of(request))
            && let Some(heard) = self.servers().acknowledged(&key, &uri)
        {
            // Where it is not heard yet, it is when the stream stands.
            let _ = within(ACKNOWLEDGED_WITHIN, heard).await;
        }
        Some(nothing())
    }

    /// A server took a subscription on, or let it go.
    pub(super) fn note_subscription(
        self: &Rc<Self>,
        request: &UpstreamRequest<'_>,
        session: &Session,
        environment: &CallEnvironment<'_>,
    ) {
        if !is_subscription(request.method) {
            return;
        }
        // First what is wanted: what is there and not wanted is let go.
        self.change_subscription(request, environment);
        let Some(uri) = uri_of(request) else { return };
        let mut subscribed = session.subscribed.lock();
        if request.method == UpstreamMethod::Subscribe {
            subscribed.insert(uri);
        } else {
            subscribed.remove(&uri);
        }
    }

    fn change_subscription(
        self: &Rc<Self>,
        request: &UpstreamRequest<'_>,
        environment: &CallEnvironment<'_>,
    ) {
        let capabilities = request.client.capabilities();
        let key = key_of(request.server, request.scope, capabilities);
        let (Some(key), Some(uri)) = (key, uri_of(request)) else { return };
        let is_new = request.method == UpstreamMethod::Subscribe;
        self.want(key, request.server, capabilities, environment, |_, subscribed| {
            if !is_new {
                subscribed.remove(&uri);
            } else if subscribed.len() < SUBSCRIPTIONS_MAX {
                subscribed.insert(uri);
            }
        });
    }
}

fn is_subscription(method: UpstreamMethod) -> bool {
    matches!(method, UpstreamMethod::Subscribe | UpstreamMethod::Unsubscribe)
}

fn uri_of(request: &UpstreamRequest<'_>) -> Option<Box<str>> {
    request.params.as_raw().get("uri").and_then(Raw::as_str).map(Into::into)
}
