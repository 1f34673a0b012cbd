//! Going on with an answer whose stream broke (MCP 2025-11-25, resumability and redelivery; SEP-1699).

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::downstream::error::{CallError, UpstreamProblem};
use crate::downstream::resilience::pause;
use crate::http::Method;

use super::link::{Content, Link, Request};
use super::office::{Office, headers_of};
use super::sessions::Session;
use super::stream::Stream;

/// Failures in a row before it is given up.
const RESUMES_MAX: usize = 5;
const WAIT: Duration = Duration::from_secs(1);
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_mins(1);

pub(super) type Resuming<'a> = Pin<Box<dyn Future<Output = Result<Box<Stream>, CallError>> + 'a>>;

/// How long to wait before a stream is taken up again, as its server said or did not say.
pub(super) fn wait(retry_ms: Option<u32>) -> Duration {
    let said = retry_ms.map(|ms| Duration::from_millis(ms.into()));
    said.unwrap_or(WAIT).clamp(WAIT_MIN, WAIT_MAX)
}

/// The stream from behind the event `last` on, after `wait`.
pub(super) fn resume<'a>(
    office: &'a Rc<Office>,
    session: &'a Arc<Session>,
    mut link: Link<'a>,
    last: String,
    mut wait: Duration,
) -> Resuming<'a> {
    link.is_repeatable = true;
    Box::pin(async move {
        let lost = |what| Err(link.problem(UpstreamProblem::Lost(what)));
        for _ in 0..RESUMES_MAX {
            pause(wait).await;
            let mut headers = headers_of(session);
            headers.retain(|(name, _)| name != "Accept");
            headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
            headers.push(("Last-Event-ID".to_owned(), last.clone()));
            let (method, target) = (Method::Get, &*session.target);
            let request = Request { method, target, headers, body: None };
            match link.send(&request).await {
                Ok(answer) if answer.is_success() && answer.content() == Content::Events => {
                    let stream = Stream::resumed(answer, office.event_bytes_max, last);
                    return Ok(Box::new(stream));
                }
                Ok(answer) => match answer.status() {
                    429 | 500 | 502..=504 => {}
                    404 => {
                        office.servers().forget(session);
                        return lost("its session is gone");
                    }
                    _ => return lost("its stream broke and cannot be taken up again"),
                },
                Err(
                    CallError::Unreachable { .. }
                    | CallError::Closed { .. }
                    | CallError::TimedOut { .. },
                ) => {}
                Err(error) => return Err(error),
            }
            wait = (wait * 2).min(WAIT_MAX);
        }
        lost("its stream broke and could not be taken up again")
    })
}
