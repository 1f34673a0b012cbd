//! Following work that an API has only accepted, until it is done.
//!
//! Looks go with the credentials of the call, to the same origin only, as long as the call has time.
//! A look that fails on the way is made again: it changes nothing.

use std::time::{Duration, Instant};

use crate::catalog::CompiledPolling;
use crate::http::{Known, Method};
use crate::mapping::OutgoingRequest;
use crate::mcp::ToolOutcome;
use crate::rt;

use super::answer::Head;
use super::call::{Call, same_origin};
use super::error::{Awaited, CallError};
use super::exchange::Broken;
use super::failure::{EXCERPT_BYTES_MAX, cut};
use super::polling::{self, Look, Next};
use super::pool::Line;
use super::rest::{RestCaller, Told};

/// How much of a look's answer is read for its state.
const LOOK_BYTES_MAX: usize = 1024 * 1024;

/// Work that was accepted.
pub(super) struct Accepted<'c, 'a> {
    pub(super) call: &'c Call<'a>,
    pub(super) rule: &'c CompiledPolling,
    /// What was asked for.
    pub(super) target: &'c str,
}

/// What one look came to.
enum Seen {
    /// The answer is the result.
    Done(Box<Line>, bool),
    Next(Next),
}

impl RestCaller {
    /// Follows the work whose acceptance is in `line`.
    pub(super) async fn follow(
        &self,
        work: Accepted<'_, '_>,
        line: Box<Line>,
        is_reusable: bool,
        told: &mut Told,
    ) -> Result<ToolOutcome, CallError> {
        let Accepted { call, rule, target } = work;
        let request = OutgoingRequest {
            method: Method::Get.as_str().into(),
            target: String::new(),
            headers: Vec::new(),
            body: None,
            content_type: None,
        };
        let look = call.looking(&request);
        let mut seen = self.seen(&look, rule, line, is_reusable, true);
        let mut at = target.to_owned();
        loop {
            let (wait, is_result) = match seen {
                Seen::Done(line, is_reusable) => {
                    *told = Told::of(&line);
                    return Ok(self.shape(&look, line, is_reusable).await?.outcome);
                }
                Seen::Next(Next::Failed(text)) => return Ok(ToolOutcome::Failure { text }),
                Seen::Next(Next::Wait(url, wait)) => {
                    at = url.map_or(Ok(at.clone()), |url| elsewhere(&look, &url, &at))?;
                    (wait, false)
                }
                Seen::Next(Next::Fetch(url)) => {
                    at = elsewhere(&look, &url, &at)?;
                    (Duration::ZERO, true)
                }
                Seen::Next(Next::Done) => (Duration::ZERO, true),
            };
            let out_of_time = || call.broken(Broken::TimedOut(Awaited::Work));
            if wait >= call.budget.left(Instant::now()) {
                return Err(out_of_time());
            }
            rt::sleep(wait).await;
            seen = match self.answered(&look, &at).await {
                Ok((line, is_reusable)) if is_result => Seen::Done(line, is_reusable),
                Ok((line, is_reusable)) => self.seen(&look, rule, line, is_reusable, false),
                Err(error) if error.may_retry() && !is_result => {
                    Seen::Next(Next::Wait(None, rule.interval))
                }
                Err(error) => return Err(error),
            };
        }
    }

    /// What the answer in `line` says of the work.
    fn seen(
        &self,
        call: &Call<'_>,
        rule: &CompiledPolling,
        line: Box<Line>,
        is_reusable: bool,
        is_first: bool,
    ) -> Seen {
        let Told { status, retry_after } = Told::of(&line);
        let location = line.answers.header(Known::Location);
        let location = location.and_then(|text| std::str::from_utf8(text).ok());
        let decoded = Head::of(&line.answers)
            .and_then(|head| head.codings.decode(line.answers.body(), LOOK_BYTES_MAX));
        let body = decoded.unwrap_or_default();
        let status = status.unwrap_or_default();
        let look = Look { status, location, retry_after, body: &body };
        match polling::next(rule, &look, is_first) {
            Next::Done => Seen::Done(line, is_reusable),
            Next::Failed(state) => {
                let said = String::from_utf8_lossy(&body);
                let text = format!(
                    "The API behind connection \"{}\" accepted the work, and it failed ({state}).\n{}",
                    call.connection.id,
                    cut(said.trim(), EXCERPT_BYTES_MAX)
                );
                self.give_back(call, line, is_reusable);
                Seen::Next(Next::Failed(call.asked().credentials().strike_text(text)))
            }
            next => {
                self.give_back(call, line, is_reusable);
                Seen::Next(next)
            }
        }
    }
}

/// The target a URL of the API leads to.
fn elsewhere(call: &Call<'_>, url: &str, from: &str) -> Result<String, CallError> {
    same_origin(url, call.connection, &call.proof, from)
        .ok_or_else(|| CallError::Elsewhere { connection: call.connection.id.as_str().to_owned() })
}
