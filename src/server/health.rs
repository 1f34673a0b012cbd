//! `/`, `/healthz` and `/readyz`: for people and load balancers, without a credential and without
//! the guards of endpoints.

use std::{fmt::Write as _, sync::atomic::Ordering};

use serde_json::json;

use super::{
    connection::Answer,
    core::Core,
    refusal::Refusal,
    respond::{self, Echo},
};
use crate::{
    audit,
    http::{Method, RequestView},
    mcp::Revision,
    store::StoreState,
};

/// The cores must have been heard of within this time for the process to be ready.
const BEAT_MS_MAX: u64 = 10_000;
/// The revision whose transport is HTTP+SSE; all others speak Streamable HTTP.
const LEGACY: Revision = Revision::V20241105;

/// The process is alive: it answered.
pub(crate) fn health(core: &Core, request: &RequestView<'_>, out: &mut Vec<u8>) -> Answer {
    plain(core, request, out, 200, "ok\n")
}

/// The process can do its work; if not, why not.
pub(crate) fn readiness(core: &Core, request: &RequestView<'_>, out: &mut Vec<u8>) -> Answer {
    if let Some(reason) = unready(core) {
        return plain(core, request, out, 503, &format!("not ready: {reason}\n"));
    }
    let mut text = "ready\n".to_owned();
    if core.shared.reload.bad().is_some() {
        text.push_str(
            "the catalog files are bad, an older catalog is served; `ringway status` says what is \
             wrong\n",
        );
    }
    let (down, pending) = core.shared.keeper.troubles();
    for (what, which) in [("that do not answer", down), ("with definitions to approve", pending)] {
        if !which.is_empty() {
            // Writing into a String does not fail.
            let _ = writeln!(text, "upstream servers {what}: {}", which.len());
        }
    }
    plain(core, request, out, 200, &text)
}

/// Why the process should get no requests now.
///
/// Everybody may ask, so it says no more than what is wrong; operators find the rest in `status`.
pub(crate) fn unready(core: &Core) -> Option<&'static str> {
    let shared = &core.shared;
    if core.stop.is_stopped() {
        return Some("stopping");
    }
    if shared.store.state() != StoreState::Healthy {
        return Some("the store is read-only");
    }
    if shared.deaf.load(Ordering::Relaxed) {
        return Some("a listener failed");
    }
    if cannot_record(core) {
        return Some("calls cannot be recorded");
    }
    let silent_ms = core.clock.now_ms().saturating_sub(shared.last_beat_ms.load(Ordering::Relaxed));
    (silent_ms > BEAT_MS_MAX).then_some("a core does not answer")
}

/// Whether calls are refused because the audit log does not take their records. That so many are
/// under way that there is no room for one more passes by itself.
fn cannot_record(core: &Core) -> bool {
    let bytes_max = core.shared.settings.audit.buffer_bytes_max as u64;
    match core.audit.reserve() {
        Ok(_) => false,
        Err(audit::Refused::NoRoom) => core.audit.waiting_bytes() >= bytes_max / 2,
        Err(_) => true,
    }
}

/// What this server is and where its endpoints are.
pub(crate) fn describe(core: &Core, request: &RequestView<'_>, out: &mut Vec<u8>) -> Answer {
    let sse = &core.shared.settings.runtime.mcp.sse;
    let mut transports = vec![json!({
        "type": "streamable-http",
        "path": "/runtime/{tenant}/{client}/mcp",
        "methods": if sse.enabled {
            json!(["POST", "GET", "DELETE", "HEAD", "OPTIONS"])
        } else {
            json!(["POST", "DELETE", "HEAD", "OPTIONS"])
        },
        "protocolVersions": versions(|revision| revision != LEGACY),
    })];
    if sse.enabled && sse.legacy_transport {
        transports.push(json!({
            "type": "http+sse",
            "path": "/runtime/{tenant}/{client}/sse",
            "methods": ["GET"],
            "protocolVersions": versions(|revision| revision == LEGACY),
        }));
    }
    let body = json!({
        "name": "Ringway",
        "version": env!("CARGO_PKG_VERSION"),
        "endpoint": "/runtime/{tenant}/{client}/mcp",
        "shortEndpoint": "/mcp",
        "rest": {
            "tools": "/runtime/{tenant}/{client}/tools",
            "description": "/runtime/{tenant}/{client}/openapi.json",
        },
        "authentication": "Authorization: Bearer <API key>, or X-Api-Key: <API key>",
        "transports": transports,
        "health": "/healthz",
        "readiness": "/readyz",
    });
    let body = format!("{body:#}\n");
    get_only(core, request, out, |core, echo, out| {
        respond::body(core, out, echo, 200, "application/json", body.as_bytes());
    })
}

/// The revisions of a transport, the newest first.
fn versions(is_spoken: impl Fn(Revision) -> bool) -> Vec<&'static str> {
    let newest_first = Revision::ALL.into_iter().rev();
    newest_first.filter(|revision| is_spoken(*revision)).map(Revision::text).collect()
}

fn plain(
    core: &Core,
    request: &RequestView<'_>,
    out: &mut Vec<u8>,
    status: u16,
    text: &str,
) -> Answer {
    get_only(core, request, out, |core, echo, out| {
        respond::body(core, out, echo, status, "text/plain; charset=utf-8", text.as_bytes());
    })
}

fn get_only(
    core: &Core,
    request: &RequestView<'_>,
    out: &mut Vec<u8>,
    answer: impl FnOnce(&Core, &Echo, &mut Vec<u8>),
) -> Answer {
    let echo = Echo::of(request);
    if matches!(request.method(), Method::Get | Method::Head) {
        answer(core, &echo, out);
    } else {
        respond::refuse(core, out, &echo, &Refusal::MethodNotAllowed { allow: "GET, HEAD" });
    }
    Answer::Written { keep_alive: echo.keep_alive }
}
