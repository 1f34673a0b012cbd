//! The era without sessions (MCP 2026-07-28): which requests are of it, and what they must say.
//!
//! Such a request stands alone: it says in its body what it speaks and who sent it, and repeats in
//! its headers what is of use on the way. Whoever routed it by its headers and whoever acts by its
//! body must have read the same, so one that does not say the same twice is refused.

use super::{
    execute,
    pipeline::Admission,
    refusal::Refusal,
    streamable::{self, Prepared},
};
use crate::{
    audit::Transport,
    http::{Known, RequestView, mirrored},
    json::{Kind, Raw},
    mapping::{HEADER_PREFIX, MirroredArgument},
    mcp::{self, Envelope, Method, Revision},
    rpc::{Incoming, Message, RpcError, code},
};

/// There is nothing but POST.
pub(super) const METHOD_NOT_ALLOWED: Refusal = Refusal::MethodNotAllowed { allow: "POST, OPTIONS" };

/// Whether a POST is of this era: its body says which revision it speaks, or its header names this
/// one. An `initialize` that says no more than its clients always did begins a session, whatever its
/// header.
pub(super) fn is_modern(request: &RequestView<'_>, incoming: &Incoming<'_>) -> bool {
    if let Incoming::Single(message) = incoming
        && Envelope::is_in(message)
    {
        return true;
    }
    let mut named = request.header_values(Known::McpProtocolVersion);
    named.any(|value| value == Revision::V20260728.text().as_bytes())
        && !streamable::initializes(incoming)
}

/// Settles what is to be settled before the message is looked at.
///
/// # Errors
/// What the client would be told without any work done.
pub(super) fn prepare<'a>(
    admission: &Admission<'_>,
    incoming: &Incoming<'a>,
) -> Result<Prepared<'a>, Refusal> {
    let Admission { core, request, .. } = admission;
    let mut origin = admission.origin(Transport::StreamableHttp, None);
    origin.revision = Some(Revision::V20260728);
    execute::charge_single(&origin, incoming)?;
    let message = match incoming {
        Incoming::Single(message @ (Message::Request { .. } | Message::Notification { .. })) => {
            message
        }
        Incoming::Single(Message::Response { .. }) => {
            let text = "responses are not sent in this revision: send the request again";
            return Err(RpcError::invalid_request(text).into());
        }
        Incoming::Batch(_) => {
            let text = "there are no batches in this revision; send one message a request";
            return Err(RpcError::invalid_request(text).into());
        }
    };
    let envelope = envelope(admission, message).map_err(|error| match message.request_id() {
        Some(id) => Refusal::Request(Box::new((id.to_owned_id(), error))),
        None => error.into(),
    })?;
    let kind = streamable::answer_kind(core, request)?;
    Ok(Prepared { declared: Some(Revision::V20260728), kind, session: None, envelope })
}

/// What the request says of itself, held against its headers. A notification need not say anything.
fn envelope<'a>(
    admission: &Admission<'_>,
    message: &Message<'a>,
) -> Result<Option<Envelope<'a>>, RpcError> {
    let is_request = message.request_id().is_some();
    let envelope = match message.params() {
        params if is_request || Envelope::is_in(message) => Some(Envelope::read(params)?),
        _ => None,
    };
    let spoken = envelope.as_ref().map_or(Revision::V20260728.text(), |said| &*said.revision);
    check_headers(admission, message, spoken)?;
    if spoken != Revision::V20260728.text() {
        return Err(mcp::unsupported_version(spoken));
    }
    Ok(envelope)
}

/// Holds the headers against the body (MCP 2026-07-28, Streamable HTTP, server validation).
fn check_headers(
    admission: &Admission<'_>,
    message: &Message<'_>,
    spoken: &str,
) -> Result<(), RpcError> {
    let request = admission.request;
    repeats(request, Known::McpProtocolVersion, "MCP-Protocol-Version", spoken)?;
    let name = message.method().unwrap_or_default();
    repeats(request, Known::McpMethod, "Mcp-Method", name)?;
    let method = Method::of(name);
    let (Some(key), true) = (method.named_by(), message.request_id().is_some()) else {
        return Ok(());
    };
    // One without a name is told so by its method.
    let named = message.params().and_then(|params| params.get(key)).and_then(Raw::as_str);
    let Some(named) = named else { return Ok(()) };
    repeats(request, Known::McpName, "Mcp-Name", &named)?;
    if method != Method::ToolsCall {
        return Ok(());
    }
    let mirrored = admission.view.mirrored_arguments(&named);
    let arguments = message.params().and_then(|params| params.get("arguments"));
    mirrored.iter().try_for_each(|argument| check_argument(request, argument, arguments))
}

/// An argument that a header repeats is there in both or in neither.
fn check_argument(
    request: &RequestView<'_>,
    argument: &MirroredArgument,
    arguments: Option<Raw<'_>>,
) -> Result<(), RpcError> {
    let refuse = |what| Err(mismatch(&format!("{HEADER_PREFIX}{}", argument.header), what));
    let mut values = request.headers().filter(|(name, _)| is_of(argument, name));
    let header = values.next().map(|(_, value)| value);
    if values.next().is_some() {
        return refuse("is there more than once");
    }
    let value = argument.path.iter().try_fold(arguments, |value, name| Some(value?.get(name)));
    let value = value.flatten().filter(|value| !value.is_null());
    let (header, value) = match (header, value) {
        (None, None) => return Ok(()),
        // What is no single value is for the tool to refuse.
        (None, Some(value)) if matches!(value.kind(), Kind::Object | Kind::Array) => return Ok(()),
        (None, Some(_)) => return refuse("is missing"),
        (Some(_), None) => return refuse("is there without its argument"),
        (Some(header), Some(value)) => (header, value),
    };
    let is_said = match value.kind() {
        Kind::String => value.as_str().is_some_and(|text| mirrored::says(header, &text)),
        Kind::Number => mirrored::says_number(header, value.text()),
        Kind::Bool => mirrored::says(header, value.text()),
        Kind::Null | Kind::Array | Kind::Object => false,
    };
    if is_said { Ok(()) } else { refuse("says something else than its argument") }
}

fn is_of(argument: &MirroredArgument, name: &str) -> bool {
    let own = name.get(HEADER_PREFIX.len()..).unwrap_or_default();
    own.eq_ignore_ascii_case(&argument.header)
        && name
            .get(..HEADER_PREFIX.len())
            .is_some_and(|prefix| prefix.eq_ignore_ascii_case(HEADER_PREFIX))
}

/// A header must be there once and say what the body says.
fn repeats(
    request: &RequestView<'_>,
    known: Known,
    header: &'static str,
    text: &str,
) -> Result<(), RpcError> {
    match request.header(known) {
        None => Err(mismatch(header, "is missing")),
        Some(_) if request.repeated(known) => Err(mismatch(header, "is there more than once")),
        Some(value) if mirrored::says(value, text) => Ok(()),
        Some(_) => Err(mismatch(header, "says something else than the body")),
    }
}

fn mismatch(header: &str, what: &str) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, format!("header mismatch: {header} {what}"))
}
