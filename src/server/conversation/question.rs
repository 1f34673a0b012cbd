//! Questions to clients that have sessions: a request of ours on a stream of theirs, and the
//! response that is posted to whatever core.
//!
//! A question is known to its session and waits on the core that asked. Its id says where that is;
//! who has the id and not the session answers nothing, and of several answers the first counts.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use super::way::{Said, SaidKind, Way};
use crate::{
    mcp::{self, Ask, AskOutcome},
    rpc::Id,
    rt::{self, Deadline, Either, OneshotSender},
    server::{core::Core, message::CoreMessage, recovery},
    sessions::{CallHandle, Hold, Session},
    streams::StreamId,
};

/// The questions that wait on one core.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: RefCell<HashMap<u64, OneshotSender<AskOutcome>>>,
    next: Cell<u64>,
}

impl Questions {
    /// An answer has come.
    pub(crate) fn answer(&self, number: u64, outcome: AskOutcome) {
        let waiting = self.waiting.borrow_mut().remove(&number);
        if let Some(waiting) = waiting {
            // Nobody waiting for it any more is fine.
            let _ = waiting.send(outcome);
        }
    }
}

/// Where a question goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Route<'a> {
    /// On the stream of the request that leads to it; where there can be none, on the standing
    /// stream.
    Way(&'a Rc<Way>),
    /// On the session's standing stream: it belongs to no request.
    Standing,
}

/// Asks the client of a session and waits for its answer, as long as settings say.
pub(super) async fn ask(
    core: &Rc<Core>,
    session: &Arc<Session>,
    route: Route<'_>,
    ask: &Ask,
) -> AskOutcome {
    if !session.capabilities().contains(ask.method.needs(ask.params.as_raw())) {
        return AskOutcome::Unheard;
    }
    let (sender, answer) = rt::oneshot();
    let number = core.questions.next.get();
    core.questions.next.set(number + 1);
    let handle = CallHandle { core: core.index, number };
    if let Err(error) = session.add_question(handle) {
        tracing::debug!(session = %session.key(), %error, "a client is not asked");
        return AskOutcome::Unheard;
    }
    core.questions.waiting.borrow_mut().insert(number, sender);
    let mut open = Open {
        core: Rc::clone(core),
        hold: session.hold(),
        handle,
        id: id_of(core.shared.boot, handle),
        sent: Sent::Nowhere,
    };
    let payload = mcp::question(&open.id, ask, session.revision());
    open.sent = send(core, session, route, payload).await;
    if matches!(open.sent, Sent::Nowhere) {
        return AskOutcome::Unheard;
    }
    let deadline = Deadline::new();
    deadline.set(Duration::from_secs(core.shared.settings.runtime.mcp.asking.answer_seconds));
    match rt::race(answer, deadline.expired()).await {
        Either::Left(outcome) => {
            open.sent = Sent::Nowhere;
            outcome.unwrap_or(AskOutcome::Unheard)
        }
        Either::Right(()) => AskOutcome::Unheard,
    }
}

async fn send(core: &Rc<Core>, session: &Arc<Session>, route: Route<'_>, payload: Vec<u8>) -> Sent {
    if let Route::Way(way) = route {
        let said = Said { payload: payload.clone(), kind: SaidKind::Asked };
        if way.say(said) {
            return Sent::On(Rc::clone(way));
        }
    }
    match session.standing() {
        Some(standing) if is_alive(core, standing).await => {
            core.publish(standing, payload);
            Sent::Standing(standing)
        }
        _ => Sent::Nowhere,
    }
}

/// Whether a client listens: one that has gone would be waited for in vain. A task of its own asks,
/// because timers must not move between tasks, as what asks the question may.
async fn is_alive(core: &Rc<Core>, standing: StreamId) -> bool {
    let (sender, alive) = rt::oneshot();
    let core = Rc::clone(core);
    rt::spawn(async move {
        let _ = sender.send(core.is_stream_alive(standing).await);
    });
    alive.await.unwrap_or(false)
}

/// Where a question was sent, and so where it is taken back.
enum Sent {
    Nowhere,
    On(Rc<Way>),
    Standing(StreamId),
}

/// A question that waits. Dropped before its answer, it is taken back.
struct Open {
    core: Rc<Core>,
    hold: Hold,
    handle: CallHandle,
    id: String,
    sent: Sent,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.core.questions.waiting.borrow_mut().remove(&self.handle.number);
        let session = self.hold.session();
        session.take_question(self.handle);
        let payload = || mcp::cancel_question(&self.id, "the answer is not wanted any more");
        match &self.sent {
            Sent::Nowhere => {}
            Sent::On(way) => {
                way.say(Said { payload: payload(), kind: SaidKind::Asked });
            }
            Sent::Standing(_) if session.is_ended() => {}
            Sent::Standing(stream) => self.core.publish(*stream, payload()),
        }
    }
}

/// A client has answered a question, on whatever core.
pub(crate) fn answered(core: &Rc<Core>, session: &Session, id: Id<'_>, outcome: AskOutcome) {
    let Some(handle) = handle_of(core.shared.boot, id) else { return };
    if session.take_question(handle) {
        let CallHandle { core: owner, number } = handle;
        let message = CoreMessage::Answer { number, outcome: Box::new(outcome) };
        core.send(usize::from(owner), message);
    }
}

/// The session is over: nobody will answer.
pub(crate) fn unheard(core: &Rc<Core>, session: &Session) {
    for CallHandle { core: owner, number } in session.take_questions() {
        let outcome = Box::new(AskOutcome::Unheard);
        core.send(usize::from(owner), CoreMessage::Answer { number, outcome });
    }
}

/// The id of a question: unlike any other of this installation, also of earlier starts.
fn id_of(boot: u32, handle: CallHandle) -> String {
    format!("ringway-{}-{}-{boot}-{}", recovery::NODE, handle.core, handle.number)
}

fn handle_of(boot: u32, id: Id<'_>) -> Option<CallHandle> {
    let text = id.text().strip_prefix("\"ringway-")?.strip_suffix('"')?;
    let mut parts = text.split('-');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let [node, core, start, number] = [number()?, number()?, number()?, number()?];
    let is_ours = node == u64::from(recovery::NODE) && start == u64::from(boot);
    let handle = CallHandle { core: u16::try_from(core).ok()?, number };
    (is_ours && parts.next().is_none()).then_some(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::OwnedRaw;

    #[test]
    fn ids_say_where_their_questions_wait() {
        let handle = CallHandle { core: 3, number: 70_000 };
        let text = id_of(9, handle);
        let read = |text: &str, boot| {
            let raw = OwnedRaw::parse(text.as_bytes()).unwrap();
            handle_of(boot, Id::of(raw.as_raw()).unwrap())
        };
        assert_eq!(read(&format!("\"{text}\""), 9), Some(handle));
        // Of an earlier start.
        assert_eq!(read(&format!("\"{text}\""), 10), None);
        for other in ["1", "\"\"", "\"ringway-\"", "\"ringway-0-3-9\"", "\"ringway-0-3-9-1-1\""] {
            assert_eq!(read(other, 9), None, "{other}");
        }
    }
}
