//! Having upstream servers tell what clients are to hear outside requests: for sessions their own
//! sessions at servers do, for requests that listen (MCP 2026-07-28) one that all listeners of a client
//! application share.

use std::{rc::Rc, sync::Arc};

use super::{
    core::Core,
    subscriptions::{Ended, Resource, Subscriber},
};
use crate::{
    catalog::{UpstreamServer, View},
    downstream::{
        CallEnvironment, Carried, Nobody, SessionScope, UpstreamAnswer, UpstreamMethod,
        UpstreamRequest, Wanted,
    },
    mcp::PassOn,
    rt,
    sessions::{ClientCapabilities, Session, SessionKey},
    streams::OutletId,
};

/// What a request that listens is told of resources of upstream servers.
#[derive(Debug)]
pub(crate) struct Watch {
    view: Arc<View>,
    outlet: OutletId,
    /// The request's id, as JSON text.
    id: Box<str>,
}

impl Watch {
    /// From now on it is told of these resources; `None` where there are none. What there is no room
    /// for is not told: nobody is owed it.
    pub(super) fn begin(
        core: &Rc<Core>,
        view: &Arc<View>,
        outlet: OutletId,
        id: &str,
        uris: &[Box<str>],
    ) -> Option<Self> {
        if uris.is_empty() {
            return None;
        }
        for uri in uris {
            let Some(server) = view.upstream_of_resource(uri) else { continue };
            let resource = Resource::of(server, uri);
            let subscriber = Subscriber::Listening(outlet, id.into());
            if core.shared.subscriptions.subscribe(subscriber, resource).is_ok() {
                ask(core, view, server.clone(), uri.clone(), UpstreamMethod::Subscribe);
            }
        }
        Some(Self { view: Arc::clone(view), outlet, id: id.into() })
    }

    /// The request that listened is over.
    pub(super) fn end(self, core: &Rc<Core>) {
        let Self { view, outlet, id } = self;
        for (resource, ended) in
            core.shared.subscriptions.forget(&Subscriber::Listening(outlet, id))
        {
            let server = view.upstreams().iter().find(|server| server.toolset == resource.toolset);
            if let (Ended::Last, Some(server)) = (ended, server) {
                ask(core, &view, server.clone(), resource.uri, UpstreamMethod::Unsubscribe);
            }
        }
    }
}

/// Tells a server, in the session that all listeners of a client application share there.
fn ask(
    core: &Rc<Core>,
    view: &View,
    server: Arc<UpstreamServer>,
    uri: Box<str>,
    method: UpstreamMethod,
) {
    let (core, client) = (Rc::clone(core), view.client_application.clone());
    rt::spawn(async move {
        let execution_id = core.next_execution_id(core.clock.now_ms());
        let environment = CallEnvironment {
            execution_id,
            external_id: None,
            trace: None,
            carried: &Carried::NONE,
        };
        let params = PassOn::uri_params(&uri);
        let request = UpstreamRequest {
            server: &server,
            scope: SessionScope::Shared(client.as_str()),
            method,
            params: &params,
            is_repeatable: true,
            continues: None,
            client: &Nobody { is_modern: false },
        };
        let asked = core.upstreams.ask(&request, &environment).await;
        if let Ok(UpstreamAnswer::Error(_)) | Err(_) = asked.result {
            tracing::warn!(
                tenant = server.tenant.as_str(),
                toolset = server.toolset.as_str(),
                "an upstream server does not tell of changes of a resource"
            );
        }
    });
}

/// A session uses a server: while its client listens, it hears what the server says by itself.
pub(super) fn listen(
    core: &Rc<Core>,
    server: &Arc<UpstreamServer>,
    scope: SessionScope<'_>,
    carried: &Carried,
) {
    let SessionScope::Session(key) = scope else { return };
    let Some(session) = core.shared.sessions.peek(key) else { return };
    if session.standing().is_none() {
        return;
    }
    let wanted = Wanted { anything: true, ..Wanted::default() };
    core.upstreams.listen(server, scope, session.capabilities(), wanted, carried);
}

/// The session is over, and with it those that it has at servers.
pub(super) fn session_over(core: &Rc<Core>, session: &Session) {
    if core.upstreams.count() == 0 {
        return;
    }
    let (core, key): (_, SessionKey) = (Rc::clone(core), session.key());
    rt::spawn(async move { core.upstreams.end_session(key).await });
}

/// The client of a session works elsewhere now: the servers it has sessions at are told.
pub(super) fn roots_changed(core: &Rc<Core>, session: &Session) {
    if session.capabilities().contains(ClientCapabilities::ROOTS_LIST_CHANGED) {
        core.upstreams.roots_changed(session.key());
    }
}
