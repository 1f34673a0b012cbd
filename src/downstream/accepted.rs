//! Following work that an API has only accepted, until it is done.
//!
//! Looks go with the credentials of the call, to the same origin only, as long as the call has time.
//! A look that fails on the way is made again: it changes nothing.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::catalog::CompiledPolling;
use crate::http::{Known, Method};
use crate::mapping::OutgoingRequest;
use crate::mcp::ToolOutcome;

use super::answer::Head;
use super::call::{Call, same_origin};
use super::content::Codings;
use super::error::{Awaited, CallError};
use super::exchange::Broken;
use super::failure::{EXCERPT_BYTES_MAX, cut};
use super::polling::{self, Look, Next};
use super::pool::Line;
use super::resilience::pause;
use super::rest::{INLINE_BYTES_MAX, RestCaller, Told};

/// How much of a look's answer is read for its state, where it has to be decoded.
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
        let mut seen = self.first(&look, rule, line, is_reusable);
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
            pause(wait).await;
            seen = match self.answered(&look, &at).await {
                Ok((line, is_reusable)) if is_result => Seen::Done(line, is_reusable),
                Ok((line, is_reusable)) => self.seen(&look, rule, line, is_reusable).await?,
                Err(error) if error.may_retry() && !is_result => {
                    Seen::Next(Next::Wait(None, rule.interval))
                }
                Err(error) => return Err(error),
            };
        }
    }

    /// What the answer that accepted the work says of it. Its body says nothing.
    fn first(
        &self,
        call: &Call<'_>,
        rule: &CompiledPolling,
        line: Box<Line>,
        is_reusable: bool,
    ) -> Seen {
        match Answered::of(&line).next(rule, &[], true) {
            (Next::Done, _) => Seen::Done(line, is_reusable),
            (next, _) => {
                self.give_back(call, line, is_reusable);
                Seen::Next(next)
            }
        }
    }

    /// What the answer in `line` says of the work. A large one is read off the core.
    async fn seen(
        &self,
        call: &Call<'_>,
        rule: &CompiledPolling,
        line: Box<Line>,
        is_reusable: bool,
    ) -> Result<Seen, CallError> {
        let answered = Answered::of(&line);
        let body = line.answers.body();
        let (next, said) = if answered.codings.is_identity() && body.len() <= INLINE_BYTES_MAX {
            answered.next(rule, body, false)
        } else {
            let (rule, body) = (rule.clone(), body.to_vec());
            let work = move || answered.next(&rule, &body, false);
            self.off_core(call, work).await?
        };
        match next {
            Next::Done => Ok(Seen::Done(line, is_reusable)),
            Next::Failed(state) => {
                let text = format!(
                    "The API behind connection \"{}\" accepted the work, and it failed ({state}).\n{said}",
                    call.connection.id,
                );
                self.give_back(call, line, is_reusable);
                Ok(Seen::Next(Next::Failed(call.asked().credentials().strike_text(text))))
            }
            next => {
                self.give_back(call, line, is_reusable);
                Ok(Seen::Next(next))
            }
        }
    }
}

/// An answer to a look, but for its body.
struct Answered {
    told: Told,
    location: Option<String>,
    codings: Codings,
}

impl Answered {
    fn of(line: &Line) -> Self {
        let location = line.answers.header(Known::Location);
        let location = location.and_then(|text| std::str::from_utf8(text).ok());
        Self {
            told: Told::of(line),
            location: location.map(str::to_owned),
            // What cannot be decoded says nothing, and is an error where it is the result.
            codings: Head::of(&line.answers).map(|head| head.codings).unwrap_or_default(),
        }
    }

    /// What comes next; where the work failed, with the beginning of what is said about it.
    fn next(&self, rule: &CompiledPolling, body: &[u8], is_first: bool) -> (Next, String) {
        let plain = if self.codings.is_identity() {
            Cow::Borrowed(body)
        } else {
            Cow::Owned(self.codings.decode(body, LOOK_BYTES_MAX).unwrap_or_default())
        };
        let look = Look {
            status: self.told.status.unwrap_or_default(),
            location: self.location.as_deref(),
            retry_after: self.told.retry_after,
            body: &plain,
        };
        let next = polling::next(rule, &look, is_first);
        let said = match &next {
            Next::Failed(_) => {
                let said = String::from_utf8_lossy(&plain);
                cut(said.trim(), EXCERPT_BYTES_MAX).to_owned()
            }
            _ => String::new(),
        };
        (next, said)
    }
}

/// The target a URL of the API leads to.
fn elsewhere(call: &Call<'_>, url: &str, from: &str) -> Result<String, CallError> {
    same_origin(url, call.connection, &call.proof, from)
        .ok_or_else(|| CallError::Elsewhere { connection: call.connection.id.as_str().to_owned() })
}
