//! From the answer of a SOAP service to the outcome of a tool.
//!
//! An envelope becomes the JSON that any other API would have answered with, and goes on from there
//! as every answer does. A fault is a failure in words of its own, whatever status it came with.
//! What is no envelope, such as the page of a proxy, is treated as the answer of any other API; with
//! a success it is a failure of the service, where it owes a message.

use std::borrow::Cow;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::http::multipart::{self, Boundary, PartLimits};
use crate::mapping::ResponsePlan;
use crate::mapping::soap::{Answer, Fault, SoapPlan};
use crate::mapping::xml::{Attachments, Message};
use crate::mcp::ToolOutcome;
use crate::xml;

use super::answer::Head;
use super::content::ContentError;
use super::error::CallError;
use super::failure::Asked;
use super::messages::{Shaped, as_json, is_success, xml_of};

/// How much of a fault's detail is told.
const DETAIL_BYTES_MAX: usize = 8 * 1024;

/// The outcome of an answer, given the plain body or why there is none.
pub(super) fn shape(
    head: &Head<'_>,
    body: Result<&[u8], ContentError>,
    plan: &SoapPlan,
    response: &ResponsePlan,
    asked: Asked<'_>,
) -> Result<Shaped, CallError> {
    let is_ok = is_success(head.status);
    let answer = match &body {
        Ok(body) => read(plan, head.content_type.as_deref(), body),
        Err(_) => None,
    };
    let outcome = match answer {
        Some(Answer::Fault(fault)) => {
            let status = is_ok.then(|| status_of(&fault));
            return Ok(Shaped { outcome: failure(&fault, asked), status });
        }
        Some(Answer::Message(Message { json, dropped })) if is_ok => {
            let json = if plan.answers() { json } else { Vec::new() };
            as_json(head.status, &Message { json, dropped }, response, asked)?
        }
        // What should be a message and cannot be read must not pass for a result.
        None if is_ok && owes_message(plan, &body) => unreadable(head.status, asked),
        Some(Answer::Message(_)) | None => head.shape(body, response, asked)?,
    };
    Ok(Shaped { outcome, status: None })
}

/// Whether a success of the tool has a message, and this one has something.
fn owes_message(plan: &SoapPlan, body: &Result<&[u8], ContentError>) -> bool {
    plan.answers() && body.as_ref().is_ok_and(|body| !body.is_empty())
}

fn unreadable(status: u16, asked: Asked<'_>) -> ToolOutcome {
    let text = format!(
        "HTTP {status} from the service behind connection \"{}\", but its answer is no SOAP message \
         that can be read.",
        asked.connection
    );
    ToolOutcome::Failure { text }
}

/// SOAP 1.2 part 2, section 7.5.2.2: what a fault has for a status.
fn status_of(fault: &Fault) -> u16 {
    if fault.is_the_callers() { 400 } else { 500 }
}

fn failure(fault: &Fault, asked: Asked<'_>) -> ToolOutcome {
    let mut text = String::with_capacity(256);
    let _ = write!(
        text,
        "The service behind connection \"{}\" answered with a fault",
        asked.connection
    );
    let innermost = fault.subcodes.last().unwrap_or(&fault.code);
    if !innermost.is_empty() {
        let _ = write!(text, " ({innermost})");
    }
    let reason = fault.reason.chars().filter(|next| !next.is_control() || *next == '\n');
    let reason: String = reason.collect();
    let _ = if reason.is_empty() { write!(text, ".") } else { write!(text, ": {reason}") };
    text.push('\n');
    text.push_str(&String::from_utf8_lossy(&fault.to_json(DETAIL_BYTES_MAX)));
    ToolOutcome::Failure { text: asked.struck(text) }
}

/// Reads a body as an envelope; nothing where it is none.
fn read(plan: &SoapPlan, content_type: Option<&str>, body: &[u8]) -> Option<Answer> {
    let content_type = content_type.unwrap_or_default();
    if let Some(boundary) = Boundary::of_content_type(content_type) {
        return read_parts(plan, content_type, &boundary, body);
    }
    read_envelope(plan, content_type, body, &Attachments::default())
}

fn read_envelope(
    plan: &SoapPlan,
    content_type: &str,
    body: &[u8],
    attachments: &Attachments<'_>,
) -> Option<Answer> {
    // Whatever it is called: but a text that says what it is must look like it.
    let is_xml = content_type.to_ascii_lowercase().contains("xml");
    let body = xml_of(body);
    if !is_xml && !body.starts_with(b"<") {
        return None;
    }
    let charset = multipart::parameter(content_type, "charset");
    let text = xml::decode(body, charset.as_deref()).ok()?;
    match plan.read(&text, attachments) {
        Ok(answer) => Some(answer),
        Err(reason) => {
            tracing::debug!(%reason, "the answer of a SOAP service is no envelope");
            None
        }
    }
}

/// An envelope with attachments: MTOM (XOP 1.0), or SOAP Messages with Attachments.
fn read_parts(
    plan: &SoapPlan,
    content_type: &str,
    boundary: &Boundary,
    body: &[u8],
) -> Option<Answer> {
    let parts = multipart::parts(body, boundary, PartLimits::default()).ok()?;
    let bare = |id: &str| id.trim().trim_start_matches('<').trim_end_matches('>').to_owned();
    let start = multipart::parameter(content_type, "start").map(|start| bare(&start));
    // RFC 2387 section 3.2: the root is the first part unless `start` names another one.
    let is_start = |part: &multipart::Part<'_>| {
        start.is_some() && part.header("Content-ID").map(|id| bare(&id)) == start
    };
    let root = parts.iter().position(is_start).unwrap_or(0);
    let mut attachments = Attachments::default();
    for (index, part) in parts.iter().enumerate() {
        if index != root
            && let Some(id) = part.header("Content-ID")
        {
            attachments.add(&id, plain(part));
        }
    }
    let root = parts.get(root)?;
    let content_type = root.header("Content-Type").unwrap_or_default();
    read_envelope(plan, &content_type, &plain(root), &attachments)
}

/// The bytes of a part.
fn plain<'a>(part: &multipart::Part<'a>) -> Cow<'a, [u8]> {
    let encoding = part.header("Content-Transfer-Encoding").unwrap_or_default();
    if encoding.trim().eq_ignore_ascii_case("base64") {
        let mut packed = part.body.to_vec();
        packed.retain(|byte| !byte.is_ascii_whitespace());
        if let Ok(bytes) = STANDARD.decode(packed) {
            return Cow::Owned(bytes);
        }
    }
    Cow::Borrowed(part.body)
}
