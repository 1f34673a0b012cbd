//! What runs: one call, the calls of a batch, or a call of the REST facade, and the place where a cancellation finds it.

use std::{
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
};

use super::{conversation::Way, core::Core};
use crate::{
    rpc::{self, OwnedId, Reply, RpcError},
    rt::Notify,
    sessions::{CallHandle, CallRefused, Session},
};

/// How one call ended.
#[derive(Debug)]
pub(crate) enum Answered {
    Reply(Reply),
    /// The client cancelled: it wants no answer any more (MCP, cancellation).
    Cancelled(OwnedId),
}

impl Answered {
    /// The answer where one is owed whatever happened, as in a batch.
    pub(crate) fn reply(self) -> Reply {
        match self {
            Self::Reply(reply) => reply,
            Self::Cancelled(id) => cancelled(id),
        }
    }
}

/// What stands in for the answer of a cancelled request where something must.
pub(crate) fn cancelled(id: OwnedId) -> Reply {
    let error = RpcError::new(rpc::code::REQUEST_CANCELLED, "The request was cancelled");
    Reply::new(id, Err(error))
}

/// One running call. It owns all it needs and outlives the connection it came on.
pub(crate) type Single = Pin<Box<dyn Future<Output = Answered>>>;

/// What a POST set running.
pub(crate) enum Running {
    Single(Single),
    Batch(Pin<Box<dyn Future<Output = Vec<Reply>>>>),
    Plain(Pin<Box<dyn Future<Output = Plain>>>),
    /// It ran, and what came of it is still to be written. Taken once.
    Over(Option<Outcome>),
}

/// What a POST leads to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The answer to one request.
    Reply(Reply),
    /// The answers to the requests of a batch.
    Batch(Vec<Reply>),
    /// The answer to a request of the REST facade.
    Plain(Plain),
    /// No answer is wanted any more.
    Cancelled(OwnedId),
}

/// An answer of the REST facade: JSON, and the status that goes with it.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) status: u16,
    /// When to come back.
    pub(crate) retry_after_seconds: Option<u32>,
    pub(crate) body: Vec<u8>,
}

impl Future for Running {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        match &mut *self {
            Self::Single(call) => call.as_mut().poll(context).map(|answered| match answered {
                Answered::Reply(reply) => Outcome::Reply(reply),
                Answered::Cancelled(id) => Outcome::Cancelled(id),
            }),
            Self::Batch(calls) => calls.as_mut().poll(context).map(Outcome::Batch),
            Self::Plain(call) => call.as_mut().poll(context).map(Outcome::Plain),
            Self::Over(outcome) => outcome.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

impl Outcome {
    /// The JSON text of the answer; `None` where none is wanted.
    pub(crate) fn payload(&self) -> Option<Vec<u8>> {
        match self {
            Self::Reply(reply) => {
                let mut payload = Vec::with_capacity(reply.len());
                reply.write(&mut payload);
                Some(payload)
            }
            Self::Batch(replies) => {
                let mut payload = Vec::with_capacity(rpc::batch_len(replies));
                rpc::write_batch(&mut payload, replies);
                Some(payload)
            }
            // Never on a stream.
            Self::Plain(_) | Self::Cancelled(_) => None,
        }
    }
}

/// Calls under way and what their answer needs.
pub(crate) struct Job {
    pub(crate) running: Running,
    /// The client's progress token, as JSON text.
    pub(crate) progress_token: Option<Box<str>>,
    /// The ids it answers, for a restart; see `note`.
    pub(crate) note: Vec<u8>,
    /// The way to the client, where what runs may have something to say before its answer.
    pub(crate) way: Option<Rc<Way>>,
}

/// A call's place among those of its core and session; while it exists, a cancellation finds the
/// call.
pub(crate) struct Registration {
    core: Rc<Core>,
    session: Arc<Session>,
    handle: CallHandle,
    cancelled: Rc<Notify>,
}

impl Registration {
    /// Registers a call under its request's id. Outside sessions nothing can name it.
    pub(crate) fn new(
        core: &Rc<Core>,
        session: Option<&Arc<Session>>,
        id: &OwnedId,
    ) -> Result<Option<Self>, RpcError> {
        let Some(session) = session else { return Ok(None) };
        let (number, cancelled) = core.register_call();
        let handle = CallHandle { core: core.index, number };
        let registration = Self { core: core.clone(), session: session.clone(), handle, cancelled };
        session.begin_call(id.as_bytes(), handle).map_err(|refused| match refused {
            CallRefused::Full => RpcError::new(rpc::code::SERVER, refused.to_string()),
            CallRefused::Duplicate | CallRefused::IdTooLong => {
                RpcError::invalid_request(refused.to_string())
            }
        })?;
        Ok(Some(registration))
    }

    /// Waits until the client cancels.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.core.forget_call(self.handle.number);
        self.session.finish_call(self.handle);
    }
}
