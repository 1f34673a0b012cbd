//! Requests that go on once the workers have done something for them: what is too large for a core.

use super::{
    answer::{reason_of, replied, shared_by},
    execute::{Asking, Entry, context, note_cancelled, over, running},
    invoke::{Begun, Judging},
    offload, parts,
    refusal::Refusal,
    running::Registration,
    trail::Trail,
};
use crate::{
    catalog::ToolShape,
    mcp::{self, Caching, Step},
    rpc::{Id, Message, Reply, RpcError},
    rt::{self, Either},
};

/// A request that goes on once the workers have done something for it.
pub(super) enum Waiting {
    /// The list of tools is put together.
    List(Box<Trail>, ToolShape),
    /// The part of a result with this URI is made.
    Kept(Box<Trail>, Box<str>),
    /// The arguments of a call are judged.
    Call(Box<Judging>, Option<Box<str>>),
}

impl Waiting {
    /// Waits, and goes on.
    pub(super) async fn over(
        self,
        asking: &Asking<'_>,
        id: Id<'_>,
        message: &Message<'_>,
    ) -> Result<Entry, Refusal> {
        match self {
            Self::Call(judging, progress_token) => {
                let id = id.to_owned_id();
                // Registered now, so that the client can cancel it already.
                let registration = match Registration::new(asking.origin.core, asking.session, &id)
                {
                    Ok(registration) => registration,
                    Err(error) => {
                        judging.refuse(reason_of(&error));
                        return Ok(Entry::Done(Reply::new(id, Err(error))));
                    }
                };
                let judged = judging.judged();
                let begun = match &registration {
                    None => judged.await?,
                    Some(registration) => match rt::race(judged, registration.cancelled()).await {
                        Either::Left(begun) => begun?,
                        Either::Right(()) => {
                            note_cancelled(&asking.origin);
                            return Ok(Entry::Cancelled(id));
                        }
                    },
                };
                match begun {
                    Begun::Ended(ended) => over(ended, asking.revision, id),
                    Begun::Running(call) => {
                        Ok(running(call, asking.revision, id, registration, progress_token))
                    }
                }
            }
            Self::List(trail, shape) => {
                let origin = &asking.origin;
                if let Err(refusal) = offload::make_list(origin.core, origin.view, shape).await {
                    return Err(refused(*trail, refusal));
                }
                let body = match mcp::dispatch(&context(asking), message) {
                    Step::Reply(body) => Ok(body),
                    Step::Error(error) => Err(error),
                    _ => Err(RpcError::internal()),
                };
                let body = body.map(|body| (body, None));
                Ok(replied(asking, id, message, Some(*trail), body, shared_by(asking)))
            }
            Self::Kept(trail, uri) => match parts::read(&asking.origin, &uri).await {
                Ok(body) => Ok(replied(asking, id, message, Some(*trail), body, Caching::Never)),
                Err(error) => Err(refused(*trail, error.into())),
            },
        }
    }
}

/// A request that was begun and is refused after all.
fn refused(trail: Trail, refusal: Refusal) -> Refusal {
    trail.refuse(refusal.reason());
    refusal
}
