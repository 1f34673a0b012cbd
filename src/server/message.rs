//! What one core asks of another. One hop, never a broadcast for a single stream.

use std::sync::Arc;

use super::{
    announce::Announcement,
    conversation::{Abandoned, HeardBody, Resume, Said},
    listener::AskedOutside,
};
use crate::{
    mcp::AskOutcome,
    rt::{OneshotSender, Weigh},
    sessions::SessionKey,
    streams::{OutletId, StreamId, StreamKind},
};

/// A message in a core's inbox.
#[derive(Debug)]
pub(crate) enum CoreMessage {
    /// A frame for a client whose connection is on this core.
    Deliver { outlet: OutletId, frame: Arc<Vec<u8>> },
    /// What a client that resumes has missed, for its connection on this core.
    Replay { outlet: OutletId, frames: Vec<Arc<Vec<u8>>> },
    /// The stream behind this outlet is over: end the response once all is sent.
    FinishOutlet { outlet: OutletId },
    /// Close the client's connection at once.
    DropOutlet { outlet: OutletId },
    /// Is the client behind this outlet alive?
    Probe { outlet: OutletId, answer: OneshotSender<bool> },
    /// A message for a stream this core holds.
    Publish { stream: StreamId, payload: Vec<u8> },
    /// A client on another core resumes a stream of this one.
    Attach(Attach),
    /// The client of a stream is gone.
    Detach { stream: StreamId, outlet: OutletId },
    /// Is a client attached to this stream, and where?
    FindOutlet { stream: StreamId, answer: OneshotSender<Option<OutletId>> },
    /// The session is over: end the stream and forget its window.
    EndStream { stream: StreamId },
    /// The client cancelled a call this core runs.
    CancelCall { number: u64 },
    /// What a client answered to a question that this core waits with.
    Answer { number: u64, outcome: Box<AskOutcome> },
    /// Ask the client of a session, on its standing stream, what belongs to no request.
    AskOutside(Box<AskedOutside>),
    /// A message of a request that runs on another core, for a response of this one.
    Said { way: u64, said: Box<Said> },
    /// A request that waits on this core was sent again.
    Resume(Box<Resume>),
    /// What became of a request of another core, for a response of this one.
    Heard(Box<HeardBody>),
    /// The response that heard a request of this core was closed by its client.
    Abandon(Abandoned),
    /// The catalog changed: wait for more of it, then tell clients.
    Gather,
    /// Lists are others now: tell the clients of this core.
    Announce(Arc<Announcement>),
    /// Keys were revoked: close the streams of those who may no longer listen.
    CheckListeners,
    /// Is this core turning?
    Beat { answer: OneshotSender<()> },
    /// The process ends: stop accepting, finish what runs.
    Stop,
}

/// A request to attach an outlet to a stream after a position.
#[derive(Debug)]
pub(crate) struct Attach {
    pub(crate) stream: StreamId,
    pub(crate) session: SessionKey,
    /// The last position the client has seen.
    pub(crate) after: u64,
    pub(crate) outlet: OutletId,
    /// The stream's kind, if the session has it; what is replayed comes as `Replay` before it.
    pub(crate) answer: OneshotSender<Option<StreamKind>>,
}

/// What a message weighs besides its payload, in bytes.
const OVERHEAD_BYTES: usize = 96;

impl Weigh for CoreMessage {
    fn bytes(&self) -> usize {
        OVERHEAD_BYTES
            + match self {
                Self::Deliver { frame, .. } => frame.len(),
                Self::Replay { frames, .. } => frames.iter().map(|frame| frame.len()).sum(),
                Self::Publish { payload, .. } => payload.len(),
                Self::Said { said, .. } => said.payload.len(),
                Self::Resume(resume) => resume.bytes(),
                Self::Answer { outcome, .. } => match &**outcome {
                    AskOutcome::Answer(answer) => answer.as_raw().text().len(),
                    AskOutcome::Refused(_) | AskOutcome::Unheard => 0,
                },
                Self::Heard(heard) => heard.bytes(),
                Self::AskOutside(asked) => asked.bytes(),
                _ => 0,
            }
    }
}
