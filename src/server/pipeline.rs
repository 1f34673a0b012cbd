//! A request's way: route, guards, identity, then the transport that answers it.
//!
//! One way in for every plane and transport, and one way out: each step may refuse, and a
//! refusal is answered in one place.

use std::{rc::Rc, sync::Arc, time::Instant};

use super::{
    admin,
    connection::{Answer, Plane},
    core::Core,
    facade, guard, health, legacy,
    memory::{Admitted, Memory},
    operators::header,
    publication::Published,
    refusal::Refusal,
    respond::{self, Echo},
    route::{self, Endpoint, Route},
    session, streamable,
    trail::{self, Origin},
};
use crate::{
    audit::{Asker, Transport},
    catalog::{Trust, View},
    governance::Handles,
    http::{Known, Method, RequestView},
    identity::{Caller, CredentialHeaders, credential},
    sessions::Session,
};

/// Answers one request into `out`.
pub(crate) async fn answer(
    core: &Rc<Core>,
    plane: Plane,
    memory: &mut Memory,
    request: &RequestView<'_>,
    out: &mut Vec<u8>,
) -> Answer {
    match route::find(request.path()) {
        Route::Endpoint(endpoint) => {
            let mut echo = Echo::of(request);
            match endpoint_answer(core, plane, memory, request, &endpoint, &mut echo, out).await {
                Ok(answer) => answer,
                Err(refusal) => {
                    refuse(core, request, &echo, &refusal, out);
                    Answer::Written { keep_alive: echo.keep_alive }
                }
            }
        }
        Route::Health => health::health(core, request, out),
        Route::Readiness => health::readiness(core, request, out),
        _ if plane.is_admin() => admin_answer(core, plane, request, out).await,
        Route::Root => health::describe(core, request, out),
        Route::Unknown => {
            let echo = Echo::of(request);
            respond::refuse(core, out, &echo, &Refusal::NoSuchPath);
            Answer::Written { keep_alive: echo.keep_alive }
        }
    }
}

/// Judges a request whose body is still arriving, so that nobody's megabytes are taken in before it
/// is known whether they may send any.
pub(crate) fn judge_head(
    core: &Rc<Core>,
    plane: Plane,
    memory: &mut Memory,
    request: &RequestView<'_>,
) -> Result<(), (Refusal, Echo)> {
    let mut echo = Echo::of(request);
    // The rest of the body is not read.
    echo.keep_alive = false;
    let judged = match route::find(request.path()) {
        Route::Endpoint(endpoint) => guard(core, plane, request, &endpoint, &mut echo)
            .and_then(|()| admit(core, plane, memory, request, &endpoint, core.clock.now_ms()))
            .map(drop),
        Route::Health | Route::Readiness => Ok(()),
        _ if plane == Plane::AdminAddress => guard::check_operator(request),
        _ if plane.is_admin() => Ok(()),
        Route::Root => Ok(()),
        Route::Unknown => Err(Refusal::NoSuchPath),
    };
    judged.map_err(|refusal| (refusal, echo))
}

/// Writes a refusal in the form of the endpoint it is about.
pub(crate) fn refuse(
    core: &Core,
    request: &RequestView<'_>,
    echo: &Echo,
    refusal: &Refusal,
    out: &mut Vec<u8>,
) {
    match route::find(request.path()) {
        Route::Endpoint(Endpoint { transport: route::Transport::Rest(_), .. }) => {
            facade::refuse(core, out, echo, refusal);
        }
        _ => respond::refuse(core, out, echo, refusal),
    }
}

/// Operators' requests. Over the admin address, a web page must not pass for an operator: pages
/// send `Origin`, name another host, or cannot send JSON without asking first.
async fn admin_answer(
    core: &Rc<Core>,
    plane: Plane,
    request: &RequestView<'_>,
    out: &mut Vec<u8>,
) -> Answer {
    if plane == Plane::AdminAddress
        && let Err(refusal) = guard::check_operator(request)
    {
        let echo = Echo::of(request);
        respond::refuse(core, out, &echo, &refusal);
        return Answer::Written { keep_alive: echo.keep_alive };
    }
    admin::answer(core, plane, request, out).await
}

/// A request to an endpoint, admitted: who asks, for which client application.
pub(crate) struct Admission<'a> {
    pub(crate) core: &'a Rc<Core>,
    pub(crate) view: Arc<View>,
    pub(crate) caller: Caller,
    pub(crate) trust: Trust,
    pub(crate) limits: Arc<Handles>,
    /// Who asks, as records say it.
    pub(crate) asker: Rc<Asker>,
    pub(crate) request: &'a RequestView<'a>,
    pub(crate) memory: &'a mut Memory,
    pub(crate) echo: &'a Echo,
    pub(crate) out: &'a mut Vec<u8>,
    /// When the request was whole, and what the wall clock showed then.
    pub(crate) arrived: Instant,
    pub(crate) arrived_ms: u64,
}

impl Admission<'_> {
    /// Who asks over what, for what is recorded of it.
    pub(crate) fn origin(&self, transport: Transport, session: Option<&Session>) -> Origin<'_> {
        Origin {
            core: self.core,
            view: &self.view,
            caller: self.caller,
            trust: self.trust,
            limits: &self.limits,
            asker: &self.asker,
            transport,
            session: session.map(Session::key),
            // HTTP+SSE opens sessions before anything is agreed on.
            revision: session
                .filter(|session| !session.is_connection_bound() || session.is_negotiated())
                .map(Session::revision),
            external_id: self.echo.correlation.as_deref(),
            arrived: self.arrived,
            arrived_ms: self.arrived_ms,
        }
    }
}

async fn endpoint_answer(
    core: &Rc<Core>,
    plane: Plane,
    memory: &mut Memory,
    request: &RequestView<'_>,
    endpoint: &Endpoint<'_>,
    echo: &mut Echo,
    out: &mut Vec<u8>,
) -> Result<Answer, Refusal> {
    let arrived = Instant::now();
    guard(core, plane, request, endpoint, echo)?;
    let methods = methods_of(core, &endpoint.transport);
    if request.method() == Method::Options {
        respond::preflight(core, out, echo, methods, request);
        return Ok(Answer::Written { keep_alive: echo.keep_alive });
    }
    let arrived_ms = core.clock.ms_at(arrived);
    let Admitted { view, caller, trust, limits, asker, .. } =
        admit(core, plane, memory, request, endpoint, arrived_ms)?;
    if endpoint.named.is_none() && echo.origin.is_some() {
        let checked = core.shared.guard.check_origin(request, view.allowed_origins.iter());
        if let Err(refusal) = checked {
            echo.origin = None;
            return Err(refusal);
        }
    }
    let mut admission = Admission {
        core,
        view,
        caller,
        trust,
        limits,
        asker,
        request,
        memory,
        echo,
        out,
        arrived,
        arrived_ms,
    };
    let not_allowed = Refusal::MethodNotAllowed { allow: methods };
    match &endpoint.transport {
        route::Transport::Rest(resource) => Box::pin(facade::answer(admission, resource)).await,
        route::Transport::Streamable => match request.method() {
            Method::Post => streamable::post(admission).await,
            Method::Get if core.shared.settings.runtime.mcp.sse.enabled => {
                streamable::get(admission).await
            }
            Method::Delete => streamable::delete(admission).await,
            Method::Head => {
                session::named(&mut admission).await?;
                respond::empty(core, admission.out, echo, 204);
                Ok(Answer::Written { keep_alive: echo.keep_alive })
            }
            _ => Err(not_allowed),
        },
        route::Transport::LegacyStream if request.method() == Method::Get => {
            legacy::stream(admission)
        }
        route::Transport::LegacyMessages if request.method() == Method::Post => {
            legacy::messages(admission).await
        }
        route::Transport::LegacyStream | route::Transport::LegacyMessages => Err(not_allowed),
    }
}

/// The methods of an endpoint, as `Allow` lists them.
fn methods_of(core: &Core, transport: &route::Transport<'_>) -> &'static str {
    match transport {
        route::Transport::Streamable if core.shared.settings.runtime.mcp.sse.enabled => {
            "GET, POST, DELETE, HEAD, OPTIONS"
        }
        route::Transport::Streamable => "POST, DELETE, HEAD, OPTIONS",
        route::Transport::LegacyStream => "GET, OPTIONS",
        route::Transport::LegacyMessages => "POST, OPTIONS",
        route::Transport::Rest(resource) => facade::methods_of(resource),
    }
}

/// Host and Origin, before anything is looked up for the caller.
fn guard(
    core: &Core,
    plane: Plane,
    request: &RequestView<'_>,
    endpoint: &Endpoint<'_>,
    echo: &mut Echo,
) -> Result<(), Refusal> {
    match plane {
        Plane::Runtime => core.shared.guard.check_host(request)?,
        Plane::AdminAddress => return guard::check_operator(request),
        Plane::Admin { .. } => return Ok(()),
    }
    if request.header(Known::Origin).is_some() {
        let published = core.published();
        let views = match &endpoint.named {
            Some((tenant, client)) => {
                published.snapshot.view(tenant, client).into_iter().collect::<Vec<_>>()
            }
            // Whose endpoint it is only the key will tell; it is judged again then.
            None => published.snapshot.views().collect(),
        };
        let origins = views.iter().flat_map(|view| view.allowed_origins.iter());
        if core.shared.guard.check_origin(request, origins)? {
            echo.allow_origin(request);
        }
    }
    Ok(())
}

/// Who asks, and for which client application; from the connection's memory where it still holds.
fn admit(
    core: &Core,
    plane: Plane,
    memory: &mut Memory,
    request: &RequestView<'_>,
    endpoint: &Endpoint<'_>,
    now_ms: u64,
) -> Result<Admitted, Refusal> {
    let published = core.published();
    if plane.is_admin() {
        return operator(core, &published, endpoint, request);
    }
    let headers = CredentialHeaders {
        authorization: request.header(Known::Authorization),
        api_key: request.header(Known::ApiKey),
        repeated: request.repeated(Known::Authorization) || request.repeated(Known::ApiKey),
    };
    let presented = credential(headers).map_err(Refusal::Unauthenticated)?;
    let secret = presented.map_or("", |presented| presented.secret()).as_bytes();
    if let Some(admitted) = memory.admitted(published.version, endpoint.scope, secret, now_ms) {
        return Ok(admitted.clone());
    }
    let unauthenticated = Refusal::Unauthenticated;
    let view = if let Some((tenant, client)) = &endpoint.named {
        published.snapshot.view(tenant, client)
    } else {
        let missing = crate::identity::Refusal::NoCredential;
        let presented = presented.ok_or(unauthenticated(missing))?;
        let record = published
            .keys
            .verify(presented.secret(), now_ms)
            .map_err(|refusal| unauthenticated(crate::identity::Refusal::Key(refusal)))?;
        let (tenant, client) = (record.tenant.as_str(), record.client_application.as_str());
        published.snapshot.view(tenant, client)
    };
    // A client application nobody declared answers as one whose key is wrong.
    let (tenant, client, open) = match (view, &endpoint.named) {
        (Some(view), _) => (view.tenant.as_str(), view.client_application.as_str(), view.open),
        (None, Some((tenant, client))) => (&**tenant, &**client, false),
        (None, None) => return Err(Refusal::NoSuchPath),
    };
    let caller =
        published.keys.caller(presented, tenant, client, open, now_ms).map_err(unauthenticated)?;
    let view = view.ok_or(Refusal::NoSuchPath)?.clone();
    let expires_ms = match caller {
        Caller::Key(id) => published.keys.find(id).and_then(|key| key.expires_ms),
        Caller::Open | Caller::Operator => None,
    };
    let trust = published.keys.trust(caller);
    let admitted = Admitted {
        limits: core.shared.limiter.handles(&view, caller),
        trust,
        asker: trail::asker(&view, caller, trust),
        view,
        caller,
        expires_ms: expires_ms.unwrap_or(u64::MAX),
    };
    memory.admit(published.version, endpoint.scope, secret, admitted.clone());
    Ok(admitted)
}

/// Operators may act for every client application, and with less trust than they have: as the holder
/// of a key would.
fn operator(
    core: &Core,
    published: &Published,
    endpoint: &Endpoint<'_>,
    request: &RequestView<'_>,
) -> Result<Admitted, Refusal> {
    let (tenant, client) = endpoint.named.as_ref().ok_or(Refusal::NoSuchPath)?;
    let view = published.snapshot.view(tenant, client).ok_or(Refusal::NoSuchClientApplication)?;
    let caller = Caller::Operator;
    let trust = match header(request, "x-trust") {
        Some(value) => {
            let trust = std::str::from_utf8(value).ok().and_then(Trust::parse);
            trust.ok_or(Refusal::UnknownTrust)?
        }
        None => published.keys.trust(caller),
    };
    Ok(Admitted {
        view: view.clone(),
        caller,
        trust,
        asker: trail::asker(view, caller, trust),
        limits: core.shared.limiter.handles(view, caller),
        expires_ms: u64::MAX,
    })
}
