//! From an API's answer to the outcome of a tool.
//!
//! Pure: the same code runs on the core for ordinary answers and on the worker pool for large ones.

use std::borrow::Cow;

use crate::http::{self, Known, ResponseReader};
use crate::json::{self, JsonError};
use crate::mapping::{ResponsePlan, Translated};
use crate::mcp::{File, ToolOutcome};

use super::content::{Codings, ContentError};
use super::error::CallError;
use super::failure::{Asked, FailureHead, describe};
use super::media::{Media, json_of, text_of};

/// The parts of an answer that outlive its connection's next use.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) status: u16,
    pub(crate) content_type: Option<Cow<'a, str>>,
    pub(crate) codings: Codings,
    /// Only of an answer that is no success.
    pub(crate) failure: Option<Box<FailureHead>>,
}

/// JSON, already in the words of the tool.
pub(crate) fn structured(json: Vec<u8>) -> ToolOutcome {
    ToolOutcome::Success { structured_json: Some(json), text: None }
}

fn plain(text: String) -> ToolOutcome {
    ToolOutcome::Success { structured_json: None, text: Some(text) }
}

impl<'a> Head<'a> {
    /// Reads what matters of the answer that is ready.
    pub(crate) fn of(answers: &'a ResponseReader) -> Result<Self, ContentError> {
        let status = answers.status();
        let mut codings = Codings::default();
        if answers.header(Known::ContentEncoding).is_some() {
            let name = Known::ContentEncoding.name();
            let named = answers.headers().filter(|(other, _)| other.eq_ignore_ascii_case(name));
            for (_, value) in named {
                codings.add(value)?;
            }
        }
        let content_type = answers.header(Known::ContentType).map(String::from_utf8_lossy);
        let failure = (!is_success(status)).then(|| Box::new(failure_head(answers)));
        Ok(Self { status, content_type, codings, failure })
    }

    pub(crate) fn into_owned(self) -> Head<'static> {
        Head {
            status: self.status,
            content_type: self.content_type.map(|text| Cow::Owned(text.into_owned())),
            codings: self.codings,
            failure: self.failure,
        }
    }

    /// The outcome, given the plain body or why there is none.
    pub(crate) fn shape(
        &self,
        body: Result<&[u8], ContentError>,
        plan: &ResponsePlan,
        asked: Asked<'_>,
    ) -> Result<ToolOutcome, CallError> {
        let content_type = self.content_type.as_deref();
        if let Some(failure) = &self.failure {
            return Ok(ToolOutcome::Failure { text: failed(failure, content_type, body, asked) });
        }
        let connection = || asked.connection.to_owned();
        let body =
            body.map_err(|source| CallError::Content { connection: connection(), source })?;
        if body.is_empty() {
            return Ok(plain(done(self.status)));
        }
        let credentials = asked.credentials();
        let media = Media::of(content_type, body);
        // What is not JSON has no fields, so nobody knows whether it holds what is to be hidden.
        let withheld = || {
            log_withheld(asked, 1);
            Ok(plain(without_fields(self.status, body.len())))
        };
        let text = |charset| {
            if plan.picks() {
                return withheld();
            }
            Ok(plain(credentials.strike_text(text_of(charset, body).into_owned())))
        };
        match &media {
            Media::Json(charset) => match json::guard(&json_of(*charset, body)) {
                Ok(checked) => {
                    let Translated { json, is_nothing, withheld } = plan.translate(checked.root());
                    if is_nothing || withheld > 0 {
                        log_withheld(asked, withheld);
                    }
                    let json = Some(credentials.strike_json(json));
                    let text = is_nothing.then(|| nothing(self.status));
                    Ok(ToolOutcome::Success { structured_json: json, text })
                }
                // Not one JSON value: lines of them, or something else with the wrong label.
                Err(JsonError::Malformed { .. } | JsonError::NotUtf8) => text(*charset),
                // Nobody said that it is JSON; it only began like it.
                Err(_) if content_type.is_none() => text(*charset),
                // No reader is to be given it as JSON. The call was a success all the same, and an
                // error would have it made again.
                Err(_) if plan.picks() => withheld(),
                Err(reason) => {
                    let body = text_of(*charset, body);
                    let told = format!("{}\n\n{body}", unread(self.status, &reason));
                    Ok(plain(credentials.strike_text(told)))
                }
            },
            Media::Html(charset) | Media::Text(charset) => text(*charset),
            Media::Binary { .. } if plan.picks() => withheld(),
            Media::Binary { name } => {
                let (media_type, bytes) = (name.clone().into_owned(), body.into());
                Ok(ToolOutcome::File(Box::new(File { media_type, bytes, ..File::default() })))
            }
        }
    }
}

pub(crate) fn is_success(status: u16) -> bool {
    (200..=299).contains(&status)
}

fn failed(
    head: &FailureHead,
    content_type: Option<&str>,
    body: Result<&[u8], ContentError>,
    asked: Asked<'_>,
) -> String {
    match body {
        Ok(body) => describe(head, &Media::of(content_type, body), body, asked),
        Err(error) => {
            let text = describe(head, &Media::Text(None), b"", asked);
            format!("{text}\nIts body cannot be read: {error}.")
        }
    }
}

fn done(status: u16) -> String {
    let reason = http::reason(status);
    let space = if reason.is_empty() { "" } else { " " };
    format!("Done: HTTP {status}{space}{reason}, without content.")
}

/// A result without a value must not look like an answer that says nothing.
fn nothing(status: u16) -> String {
    format!(
        "HTTP {status}: the API answered, but with none of the fields that this tool gives, so the \
         result is empty."
    )
}

fn unread(status: u16, reason: &JsonError) -> String {
    format!(
        "HTTP {status}: the call was made. The answer is JSON that readers understand differently \
         ({reason}), so it is given as the text it came as:"
    )
}

fn without_fields(status: u16, bytes: usize) -> String {
    format!(
        "HTTP {status}: the API answered with {bytes} bytes of text and none of the fields that \
         this tool gives, so nothing of it is shown."
    )
}

/// The operator's rules and the API disagree about the shape of answers.
#[cold]
fn log_withheld(asked: Asked<'_>, withheld: u64) {
    let Asked { tool, connection, .. } = asked;
    tracing::info!(
        tool,
        connection,
        withheld,
        "the answer has another shape than response_fields say: what they cannot pick from is not \
         given"
    );
}

fn failure_head(answers: &ResponseReader) -> FailureHead {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let named = |name: &str| {
        let mut headers = answers.headers();
        headers.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| text(value))
    };
    FailureHead {
        status: answers.status(),
        retry_after: answers.header(Known::RetryAfter).map(text),
        location: answers.header(Known::Location).map(text),
        correlation_id: named("x-correlation-id").or_else(|| named("x-request-id")),
    }
}
