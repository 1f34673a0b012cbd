//! The REST facade: the tools of a client application as plain HTTP resources.
//!
//! ```text
//! GET  /runtime/{tenant}/{client}/tools          the list, as `tools/list` has it
//! GET  /runtime/{tenant}/{client}/tools/{tool}   all of one tool: its full schemas, their hash
//! POST /runtime/{tenant}/{client}/tools/{tool}   a call; the body is the object of its arguments
//! GET  /runtime/{tenant}/{client}/openapi.json   all of it, described for code generators
//! ```
//!
//! A call goes the way of every call (`invoke`). Its answer is the result of `tools/call` with the
//! execution's id and a word for how it ended; the HTTP status says who is to blame.

use std::pin::Pin;

use super::{
    calls::{AnswerKind, Answering, Waiting},
    connection::Answer,
    core::Core,
    ending::{self, Ended, Ending, Refused},
    guard,
    invoke::{self, Beginning, Begun, ToolRequest},
    offload::{self, Body},
    openapi,
    pipeline::Admission,
    refusal::Refusal,
    respond::{self, Echo},
    route::Resource,
    running::{Job, Plain, Running},
    trail::Trail,
};
use crate::{
    audit::{CallType, Outcome, Transport},
    catalog::ToolShape,
    governance::{Class, Reason},
    http::Method,
    json::{JsonError, Kind, Raw},
    mcp::{self, Revision, Supplement, ToolOutcome},
    rpc::ResultBody,
    telemetry::ExecutionId,
};

/// What entries of lists look like.
const SHAPE: ToolShape = ToolShape::V20251125;

/// Answers a request to a resource of the facade.
pub(crate) async fn answer(
    admission: Admission<'_>,
    resource: &Resource<'_>,
) -> Result<Answer, Refusal> {
    let is_read = matches!(admission.request.method(), Method::Get | Method::Head);
    match resource {
        Resource::Tools if is_read => tools(admission).await,
        Resource::Tool(name) if is_read => tool(admission, name),
        Resource::Tool(name) if admission.request.method() == Method::Post => {
            call(admission, name).await
        }
        Resource::Description if is_read => description(admission).await,
        _ => Err(Refusal::MethodNotAllowed { allow: methods_of(resource) }),
    }
}

/// The methods of a resource, as `Allow` lists them.
pub(crate) fn methods_of(resource: &Resource<'_>) -> &'static str {
    match resource {
        Resource::Tools | Resource::Description => "GET, HEAD, OPTIONS",
        Resource::Tool(_) => "GET, HEAD, POST, OPTIONS",
    }
}

/// A request's trail, once the limits let it in.
fn begin(
    admission: &Admission<'_>,
    call_type: CallType,
    method: &'static str,
) -> Result<Trail, Refusal> {
    let origin = admission.origin(Transport::Rest, None);
    let mut trail = Trail::begin(&origin, call_type, method)?;
    trail.request_bytes = admission.request.body().len();
    match origin.take(Class::Requests) {
        Ok(()) => Ok(trail),
        Err(limited) => {
            trail.refuse(limited.reason().as_str());
            Err(Refusal::Limited(limited))
        }
    }
}

async fn tools(admission: Admission<'_>) -> Result<Answer, Refusal> {
    let mut trail = begin(&admission, CallType::ToolDiscovery, "GET /tools")?;
    let Admission { core, view, echo, out, .. } = admission;
    if let Err(refusal) = offload::make_list(core, &view, SHAPE).await {
        trail.refuse(refusal.reason());
        return Err(refusal);
    }
    let list = view.tools_list(SHAPE);
    respond::body(core, out, echo, 200, "application/json", list);
    trail.keep_listed(&ResultBody::Shared(list.clone()));
    trail.close(Outcome::Ok, list.len());
    Ok(written(echo))
}

fn tool(admission: Admission<'_>, name: &str) -> Result<Answer, Refusal> {
    let mut trail = begin(&admission, CallType::SchemaDiscovery, "GET /tools/{tool}")?;
    let Admission { core, view, echo, out, .. } = admission;
    let Some(tool) = view.tool(name) else {
        trail.denied(Reason::UnknownTool.as_str());
        trail.asked = Some(invoke::shortened(name));
        let ended = Ended::plainly(Ending::Refused(Refused::Unknown), trail);
        respond::plain(core, out, echo, &shaped(ended));
        return Ok(written(echo));
    };
    trail.tool = Some(tool.clone());
    let entry = mcp::described(tool);
    respond::body(core, out, echo, 200, "application/json", &entry);
    trail.close(Outcome::Ok, entry.len());
    Ok(written(echo))
}

async fn description(admission: Admission<'_>) -> Result<Answer, Refusal> {
    let trail = begin(&admission, CallType::ToolDiscovery, "GET /openapi.json")?;
    let Admission { core, view, echo, out, .. } = admission;
    let text = if let Some(text) = core.shared.descriptions.find(&view) {
        text
    } else {
        let shared = core.shared.clone();
        let of = view.clone();
        let made = offload::run(core, &view, move || {
            let base = shared.settings.listen.public_url.as_deref().unwrap_or_default();
            let text = openapi::describe(&of, base.trim_end_matches('/'));
            shared.descriptions.keep(&of, text)
        });
        match made.await {
            Ok(text) => text,
            Err(error) => {
                let refusal = Refusal::from(error);
                trail.refuse(refusal.reason());
                return Err(refusal);
            }
        }
    };
    respond::body(core, out, echo, 200, "application/json", &text);
    trail.close(Outcome::Ok, text.len());
    Ok(written(echo))
}

async fn call(admission: Admission<'_>, name: &str) -> Result<Answer, Refusal> {
    let trail = begin(&admission, CallType::RestInvocation, "POST /tools/{tool}")?;
    if let Err(refusal) = guard::check_content_type(admission.request) {
        trail.refuse(refusal.reason());
        return Err(refusal);
    }
    let Admission { core, view, request, echo, out, .. } = admission;
    // No body stands for no arguments.
    let body = match request.body().trim_ascii() {
        [] => Ok(None),
        body => match offload::check(core, &view, body).await {
            Ok(checked) => checked.map(Some),
            Err(refusal) => {
                trail.refuse(refusal.reason());
                return Err(refusal);
            }
        },
    };
    let begun = match arguments(body.as_ref().map(|body| body.as_ref().map(Body::root))) {
        Ok(arguments) => {
            match invoke::begin(
                trail,
                &ToolRequest { name, arguments, http: *request, partner: None },
            ) {
                Beginning::Begun(begun) => begun,
                Beginning::Judging(judging) => Box::pin(judging.judged()).await?,
            }
        }
        Err(text) => {
            let ending = Ending::Ran(ToolOutcome::InvalidArguments { text });
            Begun::Ended(Ended::plainly(ending, trail))
        }
    };
    match begun {
        Begun::Ended(ended) => {
            respond::plain(core, out, echo, &shaped(ended));
            Ok(written(echo))
        }
        Begun::Running(call) => {
            let running: Pin<Box<dyn Future<Output = Plain>>> =
                Box::pin(async move { shaped(call.run(None).await) });
            let running = Running::Plain(running);
            let job = Job { running, progress_token: None, note: Vec::new(), way: None };
            let answering = Answering {
                kind: AnswerKind::Json,
                session: None,
                revision: Revision::NEWEST_WITH_SESSIONS,
                header: None,
                echo: echo.clone(),
            };
            Ok(Answer::Waiting(Box::new(Waiting { job, answering })))
        }
    }
}

fn written(echo: &Echo) -> Answer {
    Answer::Written { keep_alive: echo.keep_alive }
}

/// The arguments of a body.
fn arguments<'a>(body: Result<Option<Raw<'a>>, &JsonError>) -> Result<Option<Raw<'a>>, String> {
    let body = body.map_err(|error| format!("the body is not usable: {error}"))?;
    match body.map(|root| (root, root.kind())) {
        None => Ok(None),
        Some((root, Kind::Object)) => Ok(Some(root)),
        Some((_, kind)) => {
            Err(format!("the body must be the object of the arguments, not {}", kind.described()))
        }
    }
}

/// A call's ending as plain HTTP has it.
fn shaped(mut ended: Ended) -> Plain {
    let settled = ended.settle();
    let Ended { ending, supplement, trail, .. } = ended;
    let downstream = trail.downstream.and_then(|(status, _)| status);
    let (status, word) = ending::status_of(&ending, downstream);
    let mut retry_after_seconds = match downstream {
        // When the API will be there is only for the API to say.
        Some(429 | 503) if status == 503 => {
            trail.retry_after.map(|wait| u32::try_from(wait.as_secs()).unwrap_or(u32::MAX))
        }
        _ => (status == 503).then_some(1),
    };
    let outcome = match ending {
        Ending::Ran(outcome) => outcome,
        Ending::Limited(limited) => {
            retry_after_seconds = Some(limited.retry_after_seconds());
            ToolOutcome::Failure { text: limited.text() }
        }
        Ending::Failed(error) => ToolOutcome::Failure { text: error.to_string() },
        Ending::Told(error) => ToolOutcome::Failure { text: error.message.into_owned() },
        Ending::InputRequired { .. } => ToolOutcome::Failure {
            text: "The tool asks for something that only an MCP client can be asked.".to_owned(),
        },
        Ending::Refused(refused) => ToolOutcome::Failure { text: refused.text(&trail) },
        Ending::Cancelled => ToolOutcome::Failure { text: "The call was cancelled.".to_owned() },
    };
    let body = body(Some(trail.execution_id), word, downstream, &outcome, &supplement);
    trail.close(settled, body.len());
    Plain { status, retry_after_seconds, body }
}

/// The body of every answer about a call: the result of `tools/call` in its newest form, with what
/// plain HTTP would not know otherwise in front of it.
fn body(
    execution_id: Option<ExecutionId>,
    word: &str,
    downstream: Option<u16>,
    outcome: &ToolOutcome,
    supplement: &Supplement,
) -> Vec<u8> {
    // Of this revision every outcome is a result.
    let result = mcp::tool_result(outcome, supplement, Revision::NEWEST_WITH_SESSIONS, true)
        .unwrap_or(ResultBody::EMPTY);
    let result = result.as_bytes();
    let mut body = Vec::with_capacity(result.len() + 128);
    body.push(b'{');
    if let Some(id) = execution_id {
        body.extend_from_slice(b"\"executionId\":\"");
        id.write(&mut body);
        body.extend_from_slice(b"\",");
    }
    body.extend_from_slice(b"\"status\":\"");
    body.extend_from_slice(word.as_bytes());
    body.extend_from_slice(b"\",");
    if let Some(downstream) = downstream {
        body.extend_from_slice(b"\"downstreamStatus\":");
        body.extend_from_slice(downstream.to_string().as_bytes());
        body.push(b',');
    }
    body.extend_from_slice(result.get(1..).unwrap_or(b"}"));
    body
}

/// The body of a refusal, in the form of every answer of the facade.
pub(crate) fn refusal(refusal: &Refusal) -> Vec<u8> {
    let text = refusal.error().message.into_owned();
    body(None, refusal.reason(), None, &ToolOutcome::Failure { text }, &Supplement::NONE)
}

/// Writes a refusal of a request to the facade.
pub(crate) fn refuse(core: &Core, out: &mut Vec<u8>, echo: &Echo, refused: &Refusal) {
    respond::refuse_with(core, out, echo, refused, &refusal(refused));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_body_is_an_object_or_nothing() {
        let read = |text: &str| {
            let checked = json::guard(text.as_bytes());
            let body = checked.as_ref().map(|checked| Some(checked.root()));
            arguments(body).map(|raw| raw.map(|raw| raw.text().to_owned()))
        };
        assert_eq!(arguments(Ok(None)), Ok(None));
        assert_eq!(read("{\"a\":1.50}"), Ok(Some("{\"a\":1.50}".to_owned())));
        for wrong in ["[]", "7", "{", "{\"a\":1,\"a\":2}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn answers_are_results_with_a_word_in_front() {
        let outcome =
            ToolOutcome::Success { structured_json: Some(b"{\"n\":1.50}".to_vec()), text: None };
        let text = String::from_utf8(body(
            Some(ExecutionId::NIL),
            "ok",
            Some(200),
            &outcome,
            &Supplement::NONE,
        ))
        .unwrap();
        assert_eq!(
            text,
            "{\"executionId\":\"00000000-0000-0000-0000-000000000000\",\"status\":\"ok\",\
             \"downstreamStatus\":200,\"content\":[{\"type\":\"text\",\"text\":\"{\\\"n\\\":1.50}\"}],\
             \"structuredContent\":{\"n\":1.50},\"isError\":false}"
        );
        let told: serde_json::Value = serde_json::from_slice(&refusal(&Refusal::Busy)).unwrap();
        assert_eq!((&told["status"], &told["isError"]), (&"busy".into(), &true.into()));
        assert!(told.get("executionId").is_none());
    }
}
