//! What an upstream of the era without sessions wants to know from a client of the same era: handed
//! on as the result of the client's request, with the upstream's state sealed in our own. Nothing is
//! kept here meanwhile.

use super::{
    conversation::{self, Conversation},
    execute::Asking,
    request_state::RequestState,
    trail::Trail,
};
use crate::{
    json::OwnedRaw,
    mcp::{self, Asks},
    rpc::{Message, ResultBody, RpcError, code},
};

/// The answers a client sends with its repeated request, and the state of the upstream they go to.
#[derive(Debug, Clone)]
pub(crate) struct Continued {
    answers: Vec<(Box<str>, OwnedRaw)>,
    state: Option<Box<str>>,
}

impl Continued {
    /// What a request continues, where it is one that was sent again. What its state says was
    /// checked before it came here.
    pub(super) fn of(asking: &Asking<'_>, message: &Message<'_>) -> Option<Self> {
        let state = conversation::request_state(asking, message).ok().flatten()?;
        let RequestState::Upstream { state, keys } = state else { return None };
        let responses = asking.envelope?.input_responses?;
        // Answers to what was not asked go nowhere.
        let answers = keys.into_iter().filter_map(|key| {
            let answer = responses.get(&key)?.to_owned();
            Some((key, answer))
        });
        Some(Self { answers: answers.collect(), state })
    }

    /// As an upstream request has them.
    pub(super) fn parts(&self) -> (&[(Box<str>, OwnedRaw)], Option<&str>) {
        (&self.answers, self.state.as_deref())
    }
}

/// The result that asks the client.
///
/// # Errors
/// What the upstream wants kept is more than a client is given to keep.
pub(super) fn result(
    trail: &Trail,
    conversation: Option<&Conversation>,
    asks: &Asks,
    state: Option<&str>,
) -> Result<ResultBody, RpcError> {
    let unasked = || RpcError::new(code::SERVER, "the server behind it asks what cannot be asked");
    let binding = conversation.and_then(Conversation::binding).ok_or_else(unasked)?;
    let shared = &trail.core.shared;
    let seconds = shared.settings.runtime.mcp.asking.answer_seconds;
    let expires_ms = trail.core.clock.now_ms().saturating_add(seconds.saturating_mul(1000));
    let keys = asks.iter().map(|(key, _)| key.clone()).collect();
    let state = RequestState::Upstream { state: state.map(Box::from), keys };
    let sealed = shared.request_states.seal(&state, binding, expires_ms);
    let sealed = sealed.map_err(|error| RpcError::new(code::SERVER, error.to_string()))?;
    let asked = asks.iter().map(|(key, ask)| (&**key, ask));
    Ok(mcp::input_required(asked, Some(&sealed)))
}
