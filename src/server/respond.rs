//! Writing responses: the heads every answer shares, JSON bodies, refusals.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::{core::Core, refusal::Refusal, running::Plain};
use crate::{
    http::{BodyLength, HttpError, Known, Method, RequestView, is_field_name},
    mapping::HEADER_PREFIX,
    rpc::{Reply, RpcError, code},
};

/// Response headers a browser's script may read.
const EXPOSED_HEADERS: &str =
    "Mcp-Session-Id, WWW-Authenticate, Retry-After, X-External-Correlation-Id";
/// Request headers a browser may send.
const ALLOWED_REQUEST_HEADERS: &str = "Authorization, Content-Type, Accept, Mcp-Session-Id, \
     MCP-Protocol-Version, Last-Event-ID, Mcp-Method, Mcp-Name, X-Api-Key, X-Correlation-Id";
/// The longest correlation id taken.
const CORRELATION_CHARACTERS_MAX: usize = 128;

/// What of a request its response repeats, owned because the response may outlive the request's
/// buffer. Empty for most requests, and then free.
#[derive(Debug, Clone, Default)]
pub(crate) struct Echo {
    /// The allowed origin of a browser's request.
    pub(crate) origin: Option<Box<str>>,
    /// The accepted `X-Correlation-Id`.
    pub(crate) correlation: Option<Box<str>>,
    pub(crate) keep_alive: bool,
    /// The request was HEAD: the response has no body.
    pub(crate) head: bool,
}

impl Echo {
    /// Of a request; its origin is repeated only once it is judged.
    pub(crate) fn of(request: &RequestView<'_>) -> Self {
        let correlation = request
            .header_text(Known::CorrelationId)
            .filter(|_| !request.repeated(Known::CorrelationId))
            .filter(|id| {
                (1..=CORRELATION_CHARACTERS_MAX).contains(&id.len())
                    && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
            })
            .map(Box::from);
        let head = request.method() == Method::Head;
        // A kept HTTP/1.0 connection would need more than these answers say.
        let keep_alive = request.keep_alive() && !request.is_http_10();
        Self { origin: None, correlation, keep_alive, head }
    }

    /// The request's origin may call.
    pub(crate) fn allow_origin(&mut self, request: &RequestView<'_>) {
        self.origin = request.header_text(Known::Origin).map(Box::from);
    }
}

type Headers<'a> = SmallVec<[(&'a str, &'a str); 10]>;

fn headers_of(echo: &Echo) -> Headers<'_> {
    let mut headers = Headers::new();
    if let Some(origin) = &echo.origin {
        headers.push(("Access-Control-Allow-Origin", origin));
        headers.push(("Vary", "Origin"));
        headers.push(("Access-Control-Expose-Headers", EXPOSED_HEADERS));
    }
    if let Some(correlation) = &echo.correlation {
        headers.push(("X-External-Correlation-Id", correlation));
    }
    headers
}

/// A JSON-RPC answer as the whole response.
pub(crate) fn reply(
    core: &Core,
    out: &mut Vec<u8>,
    echo: &Echo,
    session: Option<&str>,
    reply: &Reply,
) {
    reply_as(core, out, echo, 200, session, reply);
}

/// The same with a status of its own.
pub(crate) fn reply_as(
    core: &Core,
    out: &mut Vec<u8>,
    echo: &Echo,
    status: u16,
    session: Option<&str>,
    reply: &Reply,
) {
    let mut headers = headers_of(echo);
    headers.push(("Content-Type", "application/json"));
    if let Some(session) = session {
        headers.push(("Mcp-Session-Id", session));
    }
    let length = BodyLength::Known(reply.len());
    core.write_head(out, status, &headers, length, echo.keep_alive);
    reply.write(out);
}

/// Several JSON-RPC answers, already put together, as the whole response.
pub(crate) fn json(
    core: &Core,
    out: &mut Vec<u8>,
    echo: &Echo,
    session: Option<&str>,
    payload: &[u8],
) {
    let mut headers = headers_of(echo);
    headers.push(("Content-Type", "application/json"));
    if let Some(session) = session {
        headers.push(("Mcp-Session-Id", session));
    }
    core.write_head(out, 200, &headers, BodyLength::Known(payload.len()), echo.keep_alive);
    out.extend_from_slice(payload);
}

/// A body of some type as the whole response.
pub(crate) fn body(
    core: &Core,
    out: &mut Vec<u8>,
    echo: &Echo,
    status: u16,
    content_type: &str,
    body: &[u8],
) {
    let mut headers = headers_of(echo);
    headers.push(("Content-Type", content_type));
    core.write_head(out, status, &headers, BodyLength::Known(body.len()), echo.keep_alive);
    if !echo.head {
        out.extend_from_slice(body);
    }
}

/// An answer of the REST facade.
pub(crate) fn plain(core: &Core, out: &mut Vec<u8>, echo: &Echo, plain: &Plain) {
    let seconds = plain.retry_after_seconds.map(|seconds| seconds.to_string());
    let mut headers = headers_of(echo);
    headers.push(("Content-Type", "application/json"));
    if let Some(seconds) = &seconds {
        headers.push(("Retry-After", seconds));
    }
    let length = BodyLength::Known(plain.body.len());
    core.write_head(out, plain.status, &headers, length, echo.keep_alive);
    if !echo.head {
        out.extend_from_slice(&plain.body);
    }
}

/// As [`body`], with more headers.
pub(crate) fn body_with(
    core: &Core,
    out: &mut Vec<u8>,
    echo: &Echo,
    status: u16,
    more: &[(&str, String)],
    body: &[u8],
) {
    let mut headers = headers_of(echo);
    headers.extend(more.iter().map(|(name, value)| (*name, value.as_str())));
    let length = if status == 304 { BodyLength::None } else { BodyLength::Known(body.len()) };
    core.write_head(out, status, &headers, length, echo.keep_alive);
    if !echo.head && status != 304 {
        out.extend_from_slice(body);
    }
}

/// A response without a body.
pub(crate) fn empty(core: &Core, out: &mut Vec<u8>, echo: &Echo, status: u16) {
    let headers = headers_of(echo);
    let length = if status == 204 { BodyLength::None } else { BodyLength::Known(0) };
    core.write_head(out, status, &headers, length, echo.keep_alive);
}

/// The head of an event stream. Nothing on the way may hold its events back or change them.
pub(crate) fn stream_head(core: &Core, out: &mut Vec<u8>, echo: &Echo, session: Option<&str>) {
    let mut headers = headers_of(echo);
    headers.push(("Content-Type", "text/event-stream"));
    headers.push(("Cache-Control", "no-cache, no-transform"));
    headers.push(("X-Accel-Buffering", "no"));
    if let Some(session) = session {
        headers.push(("Mcp-Session-Id", session));
    }
    core.write_head(out, 200, &headers, BodyLength::Chunked, echo.keep_alive);
}

/// A refusal: its status, its headers, and a JSON-RPC error.
pub(crate) fn refuse(core: &Core, out: &mut Vec<u8>, echo: &Echo, refusal: &Refusal) {
    let reply = refusal.reply();
    let mut body = Vec::with_capacity(reply.len());
    reply.write(&mut body);
    refuse_with(core, out, echo, refusal, &body);
}

/// A refusal: its status, its headers, and this JSON.
pub(crate) fn refuse_with(
    core: &Core,
    out: &mut Vec<u8>,
    echo: &Echo,
    refusal: &Refusal,
    body: &[u8],
) {
    core.metrics.requests_refused.increment();
    note_refusal(refusal);
    let extra = refusal.headers();
    let mut headers = headers_of(echo);
    headers.push(("Content-Type", "application/json"));
    if let Some((name, value)) = &extra {
        headers.push((name, value));
    }
    let length = BodyLength::Known(body.len());
    core.write_head(out, refusal.status(), &headers, length, echo.keep_alive);
    if !echo.head {
        out.extend_from_slice(body);
    }
}

/// Tells the log. Who could not prove who they are is worth a line; the rest is for debugging.
fn note_refusal(refusal: &Refusal) {
    let (reason, status) = (refusal.reason(), refusal.status());
    if let Refusal::Unauthenticated(refusal) = refusal {
        let key = refusal.key_id().map(tracing::field::display);
        tracing::info!(reason, status, key, "request refused");
    } else {
        tracing::debug!(reason, status, "request refused");
    }
}

/// The answer to a request that could not be read; the connection closes after it.
pub(crate) fn unreadable(core: &Core, error: &HttpError, out: &mut Vec<u8>) {
    let body = Reply::without_id(RpcError::new(code::SERVER, error.to_string()));
    let headers = [("Content-Type", "application/json")];
    core.write_head(out, error.status(), &headers, BodyLength::Known(body.len()), false);
    body.write(out);
}

/// The answer to a CORS preflight from an allowed origin.
pub(crate) fn preflight(
    core: &Core,
    out: &mut Vec<u8>,
    echo: &Echo,
    methods: &str,
    request: &RequestView<'_>,
) {
    let allowed;
    let mut headers = headers_of(echo);
    headers.push(("Allow", methods));
    if echo.origin.is_some() {
        allowed = allowed_headers(request);
        headers.push(("Access-Control-Allow-Methods", methods));
        headers.push(("Access-Control-Allow-Headers", &allowed));
        headers.push(("Access-Control-Max-Age", "600"));
    }
    core.write_head(out, 204, &headers, BodyLength::None, echo.keep_alive);
}

/// Most headers of arguments that one preflight asks for.
const ARGUMENT_HEADERS_MAX: usize = 32;

/// The headers a browser may send. Those that repeat arguments are named as the request asks for
/// them: what they are called is for each tool to say.
fn allowed_headers(request: &RequestView<'_>) -> Cow<'static, str> {
    let asked = request
        .headers()
        .filter(|(name, _)| name.eq_ignore_ascii_case("access-control-request-headers"))
        .flat_map(|(_, value)| value.split(|byte| *byte == b','))
        .filter_map(|name| std::str::from_utf8(name.trim_ascii()).ok());
    let is_of_an_argument = |name: &&str| {
        let prefix = name.get(..HEADER_PREFIX.len());
        prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(HEADER_PREFIX))
            && is_field_name(name)
    };
    let mut all = Cow::Borrowed(ALLOWED_REQUEST_HEADERS);
    for name in asked.filter(is_of_an_argument).take(ARGUMENT_HEADERS_MAX) {
        all.to_mut().push_str(", ");
        all.to_mut().push_str(name);
    }
    all
}
