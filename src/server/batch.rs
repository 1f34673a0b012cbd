//! Batches (MCP 2025-03-26): requests that came together and are answered together.

use std::{future::poll_fn, task::Poll};

use super::{
    execute::{Asking, Entry, Next, OpenSession, Work, charge, heed, note_refused_one, request},
    note,
    refusal::Refusal,
    running::{Job, Outcome, Running},
};
use crate::rpc::{Id, Message, Reply, RpcError, code};

/// Begins the work for a batch.
pub(super) async fn begin(
    asking: &Asking<'_>,
    entries: &[Result<Message<'_>, RpcError>],
    open_session: OpenSession<'_>,
) -> Result<Work, Refusal> {
    let mut parts = Vec::with_capacity(entries.len());
    let mut ids = Vec::new();
    for entry in entries {
        match entry {
            Ok(message) => match message.request_id() {
                Some(id) => {
                    ids.push(id);
                    parts.push(entry_of(asking, id, message, &mut *open_session).await?);
                }
                // What is over a limit is passed over: nobody can be told.
                None if charge(&asking.origin, message).is_err() => {}
                None => heed(asking, message),
            },
            Err(error) => parts.push(Entry::Done(Reply::without_id(error.clone()))),
        }
    }
    if parts.is_empty() {
        return Ok(Work::Nothing);
    }
    if !parts.iter().any(|part| matches!(part, Entry::Running { .. })) {
        let replies = bounded(parts.into_iter().filter_map(Entry::done));
        return Ok(Work::Done(Outcome::Batch(replies)));
    }
    let note = note::batch(ids.into_iter());
    let running = Running::Batch(Box::pin(all(parts)));
    let way = asking.way.get().cloned();
    Ok(Work::Running(Job { running, progress_token: None, note, way }))
}

/// A request of a batch. One that there is no room for has its own error; the others go on.
async fn entry_of(
    asking: &Asking<'_>,
    id: Id<'_>,
    message: &Message<'_>,
    open_session: OpenSession<'_>,
) -> Result<Entry, Refusal> {
    let charged = charge(&asking.origin, message).map_err(|limited| {
        let refusal = Refusal::Limited(limited);
        note_refused_one(&asking.origin, message, &refusal);
        refusal
    });
    let next = charged.and_then(|()| request(asking, id, message, open_session));
    let entry = match next {
        Ok(Next::Waiting(waiting)) => Box::pin(waiting.over(asking, id, message)).await,
        Ok(Next::Entry(entry)) => Ok(entry),
        Err(refusal) => Err(refusal),
    };
    match entry {
        Err(
            refusal @ (Refusal::Limited(_)
            | Refusal::AuditUnavailable
            | Refusal::Busy
            | Refusal::TenantBusy),
        ) => Ok(Entry::Done(Reply::new(id.to_owned_id(), Err(refusal.error())))),
        other => other,
    }
}

/// Answers of a batch beyond this size are errors instead: a hundred small requests must not make
/// an answer a hundred times the largest one.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The answers of a batch, within its size.
fn bounded(parts: impl Iterator<Item = Reply>) -> Vec<Reply> {
    let mut bytes = 0;
    parts
        .map(|reply| {
            bytes += reply.len();
            match (bytes > BATCH_BYTES_MAX, reply.id) {
                (true, Some(id)) => {
                    let text = "the answers of this batch are too large together; ask one by one";
                    Reply::new(id, Err(RpcError::new(code::SERVER, text)))
                }
                (_, id) => Reply { id, body: reply.body },
            }
        })
        .collect()
}

/// Runs the calls of a batch side by side; its size is bounded where it is parsed.
async fn all(mut parts: Vec<Entry>) -> Vec<Reply> {
    poll_fn(|context| {
        let mut open = false;
        for part in &mut parts {
            let Entry::Running { call, .. } = part else { continue };
            match call.as_mut().poll(context) {
                Poll::Pending => open = true,
                Poll::Ready(answered) => *part = Entry::Done(answered.reply()),
            }
        }
        if open { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    bounded(parts.into_iter().filter_map(Entry::done))
}
