//! What goes on in a session right now: running calls and open streams.

use smallvec::SmallVec;

use crate::rpc::ID_BYTES_MAX;
use crate::streams::StreamId;

/// Most calls that run in one session at a time.
pub const CALLS_MAX: usize = 1024;
/// Most streams open in one session at a time, the standing stream not counted.
pub const STREAMS_MAX: usize = 1024;

/// Most questions a session's client is asked at a time.
pub const QUESTIONS_MAX: usize = 32;

/// Where a call runs, or a question waits: what a cancellation or an answer is sent to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallHandle {
    /// The core.
    pub core: u16,
    /// The call's number on that core.
    pub number: u64,
}

/// Why a call was not registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallRefused {
    /// The session runs as many calls as it may.
    #[error("this session already runs 1024 requests, the most it may")]
    Full,
    /// A request with this id is still being answered.
    #[error("a request with this id is still running in this session")]
    Duplicate,
    /// The id is longer than 1,024 bytes.
    #[error("the request's id is too long")]
    IdTooLong,
}

/// The session has as many open streams as it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this session already has 1024 open streams, the most it may")]
pub struct TooManyStreams;

/// The session's client has as many open questions as it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this session's client has 32 questions to answer, the most it may have")]
pub struct TooManyQuestions;

#[derive(Default, Debug)]
pub(super) struct Activity {
    calls: Vec<Call>,
    /// Questions that wait for the client's answer, by where it is waited for.
    questions: Vec<CallHandle>,
    streams: Vec<StreamId>,
    standing: Option<StreamId>,
}

/// The id's exact JSON text: `1` and `"1"` are different ids.
#[derive(Debug)]
struct Call {
    id: SmallVec<[u8; 24]>,
    handle: CallHandle,
}

impl Activity {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
            && self.questions.is_empty()
            && self.streams.is_empty()
            && self.standing.is_none()
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn begin_call(&mut self, id: &[u8], handle: CallHandle) -> Result<(), CallRefused> {
        if id.len() > ID_BYTES_MAX {
            return Err(CallRefused::IdTooLong);
        }
        if self.calls.len() >= CALLS_MAX {
            return Err(CallRefused::Full);
        }
        if self.call(id).is_some() {
            return Err(CallRefused::Duplicate);
        }
        self.calls.push(Call { id: SmallVec::from_slice(id), handle });
        Ok(())
    }

    pub(super) fn call(&self, id: &[u8]) -> Option<CallHandle> {
        self.calls.iter().find(|call| *call.id == *id).map(|call| call.handle)
    }

    pub(super) fn finish_call(&mut self, handle: CallHandle) -> bool {
        let at = self.calls.iter().position(|call| call.handle == handle);
        at.map(|at| self.calls.swap_remove(at)).is_some()
    }

    pub(super) fn calls(&self) -> Vec<CallHandle> {
        self.calls.iter().map(|call| call.handle).collect()
    }

    pub(super) fn add_question(&mut self, handle: CallHandle) -> Result<(), TooManyQuestions> {
        if self.questions.len() >= QUESTIONS_MAX {
            return Err(TooManyQuestions);
        }
        self.questions.push(handle);
        Ok(())
    }

    pub(super) fn take_question(&mut self, handle: CallHandle) -> bool {
        let at = self.questions.iter().position(|question| *question == handle);
        at.map(|at| self.questions.swap_remove(at)).is_some()
    }

    pub(super) fn take_questions(&mut self) -> Vec<CallHandle> {
        std::mem::take(&mut self.questions)
    }

    pub(super) fn add_stream(&mut self, id: StreamId) -> Result<(), TooManyStreams> {
        if self.streams.len() >= STREAMS_MAX {
            return Err(TooManyStreams);
        }
        self.streams.push(id);
        Ok(())
    }

    pub(super) fn remove_stream(&mut self, id: StreamId) -> bool {
        if self.standing == Some(id) {
            self.standing = None;
            return true;
        }
        let at = self.streams.iter().position(|stream| *stream == id);
        at.map(|at| self.streams.swap_remove(at)).is_some()
    }

    pub(super) fn standing(&self) -> Option<StreamId> {
        self.standing
    }

    pub(super) fn set_standing(&mut self, id: StreamId) -> Option<StreamId> {
        self.standing.replace(id)
    }

    /// The standing stream first.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        self.standing.iter().chain(&self.streams).copied().collect()
    }
}
