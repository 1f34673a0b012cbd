//! From the answer of an API that speaks XML to the outcome of a tool.
//!
//! XML that is described becomes the JSON that any other API would have answered with, and goes on
//! from there as every answer does. What SOAP has besides is in [`soap`]. Of other APIs, XML that is
//! not what is described stays a text, and so does everything that is no success.

use std::borrow::Cow;
use std::sync::Arc;

use crate::catalog::CompiledConnection;
use crate::http::multipart;
use crate::mapping::soap::SoapPlan;
use crate::mapping::xml::{BodiesPlan, Message};
use crate::mapping::{Messages, ResponsePlan};
use crate::mcp::ToolOutcome;
use crate::xml;

use super::answer::Head;
use super::content::{Codings, ContentError};
use super::error::CallError;
use super::failure::Asked;
use super::soap;

/// What the answer of a tool's API goes through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerPlan<'a> {
    pub(crate) connection: &'a Arc<CompiledConnection>,
    pub(crate) response: &'a ResponsePlan,
    pub(crate) messages: Option<&'a Messages>,
}

impl<'a> AnswerPlan<'a> {
    /// The operation, where it is one of a SOAP service.
    pub(crate) fn soap(&self) -> Option<&'a SoapPlan> {
        self.messages.and_then(Messages::soap)
    }
}

/// What an answer came to.
#[derive(Debug)]
pub(crate) struct Shaped {
    pub(crate) outcome: ToolOutcome,
    /// What the answer counts as, where its own status says something else: a fault that came as a
    /// success.
    pub(crate) status: Option<u16>,
}

/// The outcome of an answer, given the plain body or why there is none.
pub(crate) fn shape(
    head: &Head<'_>,
    body: Result<&[u8], ContentError>,
    plan: AnswerPlan<'_>,
    asked: Asked<'_>,
) -> Result<Shaped, CallError> {
    let message = match (plan.messages, &body) {
        (Some(Messages::Soap(soap)), _) => {
            return soap::shape(head, body, soap, plan.response, asked);
        }
        (Some(Messages::Xml(bodies)), Ok(body)) if is_success(head.status) && bodies.answers() => {
            read(bodies, head.content_type.as_deref(), body)
        }
        _ => None,
    };
    let outcome = match message {
        Some(message) => as_json(head.status, &message, plan.response, asked)?,
        None => head.shape(body, plan.response, asked)?,
    };
    Ok(Shaped { outcome, status: None })
}

pub(super) const fn is_success(status: u16) -> bool {
    200 <= status && status <= 299
}

/// The outcome of a message: that of an answer in JSON.
pub(super) fn as_json(
    status: u16,
    message: &Message,
    response: &ResponsePlan,
    asked: Asked<'_>,
) -> Result<ToolOutcome, CallError> {
    if message.dropped > 0 {
        log_dropped(asked, message.dropped);
    }
    let head = Head {
        status,
        content_type: Some(Cow::Borrowed("application/json")),
        codings: Codings::default(),
        failure: None,
    };
    head.shape(Ok(&message.json), response, asked)
}

/// Reads a body; nothing where it is no XML, or not what is described.
fn read(plan: &BodiesPlan, content_type: Option<&str>, body: &[u8]) -> Option<Message> {
    let content_type = content_type.unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_xml = match essence.as_str() {
        "" => body.trim_ascii_start().starts_with(b"<"),
        "application/xhtml+xml" | "image/svg+xml" => false,
        essence => essence.ends_with("/xml") || essence.ends_with("+xml"),
    };
    if !is_xml {
        return None;
    }
    let charset = multipart::parameter(content_type, "charset");
    let text = xml::decode(xml_of(body), charset.as_deref()).ok()?;
    let message = plan.read(&text);
    message
        .inspect_err(|reason| tracing::debug!(%reason, "the answer is not what is described"))
        .ok()
}

/// A body from where its XML begins. Blanks before a declaration are no XML (section 2.8), and come
/// of templates all the same.
pub(super) fn xml_of(body: &[u8]) -> &[u8] {
    let begun = body.trim_ascii_start();
    // In an encoding of wider units, a blank is not one byte.
    if begun.starts_with(b"<") && begun.get(1) != Some(&0) { begun } else { body }
}

#[cold]
fn log_dropped(asked: Asked<'_>, dropped: u64) {
    let Asked { tool, connection, .. } = asked;
    tracing::info!(
        tool,
        connection,
        dropped,
        "the answer has elements that its schema does not know: they are not given"
    );
}

#[cfg(test)]
mod tests {
    use super::xml_of;

    #[test]
    fn blanks_before_a_declaration_do_not_matter() {
        for (body, expected) in [
            (&b"\r\n <?xml?><a/>"[..], &b"<?xml?><a/>"[..]),
            (b"<a/>", b"<a/>"),
            (b"\n\0<\0a\0", b"\n\0<\0a\0"),
            (b"\0\n\0<", b"\0\n\0<"),
            (b" text", b" text"),
        ] {
            assert_eq!(xml_of(body), expected);
        }
    }
}
