//! `requestState`: what a client gives back with its answers (MCP 2026-07-28, multi-round-trip
//! requests).
//!
//! It is sealed with AES-256-GCM, under a key that follows from the secret of the data directory and
//! so outlives a restart. What is sealed says for whom and for which request it holds, and until
//! when; a client can neither read nor change it, and it is good for nobody and nothing else:
//! tenant, client application, caller, method and all parameters must be those it was given for.
//!
//! ```text
//! sealed: nonce 12 | version u8 | kind u8 | expires_ms u64 | owner 32 | request 32 | ... | tag 16
//! ```

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    digest::{self, SHA256, SHA256_OUTPUT_LEN},
    hmac,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::trail::Origin;
use crate::{
    json::{self, Kind, Raw},
    rpc::RpcError,
};

/// Longest text of a state that is given out or taken back.
pub(crate) const STATE_BYTES_MAX: usize = 64 * 1024;

const VERSION: u8 = 1;
const SUSPENDED: u8 = 1;
const UPSTREAM: u8 = 2;
const CONFIRMATION: u8 = 3;
/// Keeps what is sealed here apart from whatever else the secret is used for.
const LABEL: &[u8] = b"ringway request state";

/// What a client holds for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// The request waits on one of our cores.
    Suspended(SuspendedCall),
    /// An upstream server asked, and keeps nothing either.
    Upstream {
        /// Its own state, to be given back to it as it is.
        state: Option<Box<str>>,
        /// The keys of its questions.
        keys: Vec<Box<str>>,
    },
    /// The user was asked whether the call is meant.
    Confirmation,
}

/// Where a suspended request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SuspendedCall {
    /// The start of the process it waits in.
    pub(crate) boot: u32,
    pub(crate) core: u16,
    pub(crate) number: u64,
    /// Tells it from any other that ever had this number.
    pub(crate) random: [u8; 16],
}

/// For whom and for which request a state holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Binding {
    owner: [u8; SHA256_OUTPUT_LEN],
    request: [u8; SHA256_OUTPUT_LEN],
}

impl Binding {
    /// The binding of a request. What differs when it is sent again does not count: `_meta`, the
    /// answers and the state itself, the order of members, the spelling of numbers.
    pub(crate) fn of(origin: &Origin<'_>, method: &str, params: Option<Raw<'_>>) -> Self {
        let caller = origin.caller.to_string();
        let view = origin.view;
        Self::new([view.tenant.as_str(), view.client_application.as_str(), &caller], method, params)
    }

    fn new(owner: [&str; 3], method: &str, params: Option<Raw<'_>>) -> Self {
        let mut all = Vec::new();
        for part in owner {
            all.extend_from_slice(&(part.len() as u64).to_le_bytes());
            all.extend_from_slice(part.as_bytes());
        }
        let owner = sha256(&all);
        all.clear();
        json::write_string(&mut all, method);
        match params.unwrap_or(Raw::EMPTY_OBJECT) {
            object if object.kind() == Kind::Object => {
                let members = object.entries().filter(|(key, _)| !PASSING.contains(&&**key));
                json::write_canonical_object(&mut all, members);
            }
            other => json::write_canonical(&mut all, other),
        }
        Self { owner, request: sha256(&all) }
    }
}

fn sha256(bytes: &[u8]) -> [u8; SHA256_OUTPUT_LEN] {
    let mut out = [0; SHA256_OUTPUT_LEN];
    out.copy_from_slice(digest::digest(&SHA256, bytes).as_ref());
    out
}

/// Members that are others when a request is sent again.
const PASSING: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// A state would be too long for a client to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the state of this request is longer than 64 KiB, the most a client is given to keep")]
pub(crate) struct TooLong;

/// Seals and opens states; the same on all cores.
#[derive(Debug)]
pub(crate) struct RequestStates {
    key: RandomizedNonceKey,
}

impl RequestStates {
    /// With a key that follows from this secret. `None` where the cipher does not take it, which no
    /// key of its length is.
    pub(crate) fn new(secret: &[u8; 32]) -> Option<Self> {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let key = hmac::sign(&secret, LABEL);
        RandomizedNonceKey::new(&AES_256_GCM, key.as_ref()).ok().map(|key| Self { key })
    }

    /// The text to give to the client.
    ///
    /// # Errors
    /// It would be too long: what an upstream server keeps at its client has no other bound.
    pub(crate) fn seal(
        &self,
        state: &RequestState,
        binding: &Binding,
        expires_ms: u64,
    ) -> Result<String, TooLong> {
        let mut body = vec![VERSION, kind_of(state)];
        body.extend_from_slice(&expires_ms.to_le_bytes());
        body.extend_from_slice(&binding.owner);
        body.extend_from_slice(&binding.request);
        write(&mut body, state)?;
        if body.len() > STATE_BYTES_MAX / 4 * 3 - 64 {
            return Err(TooLong);
        }
        // Memory takes every byte, so this can only fail for want of randomness.
        let nonce = self.key.seal_in_place_append_tag(Aad::from(LABEL), &mut body);
        let nonce = nonce.map_err(|_| TooLong)?;
        Ok(URL_SAFE_NO_PAD.encode([&nonce.as_ref()[..], &body].concat()))
    }

    /// What a state that came back says.
    ///
    /// # Errors
    /// -32602: it was changed, is another's or another request's, or its time is over.
    pub(crate) fn open(
        &self,
        text: &str,
        binding: &Binding,
        now_ms: u64,
    ) -> Result<RequestState, RpcError> {
        // Who it was made for is nobody else's to know.
        let foreign = || {
            refused(
                "`requestState` is not one that was given to this caller, or it was changed: send \
                 it back exactly as it came",
            )
        };
        if text.len() > STATE_BYTES_MAX {
            return Err(foreign());
        }
        let mut sealed = URL_SAFE_NO_PAD.decode(text).map_err(|_| foreign())?;
        let (nonce, body) = sealed.split_first_chunk_mut::<NONCE_LEN>().ok_or_else(foreign)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.open_in_place(nonce, Aad::from(LABEL), body);
        let mut reader = Reader(opened.map_err(|_| foreign())?);
        let [version, kind] = reader.array().ok_or_else(foreign)?;
        let expires_ms = reader.array().map(u64::from_le_bytes).ok_or_else(foreign)?;
        let owner: [u8; SHA256_OUTPUT_LEN] = reader.array().ok_or_else(foreign)?;
        let request: [u8; SHA256_OUTPUT_LEN] = reader.array().ok_or_else(foreign)?;
        if version != VERSION || owner != binding.owner {
            return Err(foreign());
        }
        if now_ms >= expires_ms {
            return Err(refused(
                "the time to answer is over: send the request again without `requestState`",
            ));
        }
        if request != binding.request {
            return Err(refused(
                "`requestState` belongs to another request: send again the request it came with, \
                 with the same parameters",
            ));
        }
        read(kind, reader).ok_or_else(foreign)
    }
}

fn refused(text: &'static str) -> RpcError {
    RpcError::invalid_params(text)
}

fn kind_of(state: &RequestState) -> u8 {
    match state {
        RequestState::Suspended(_) => SUSPENDED,
        RequestState::Upstream { .. } => UPSTREAM,
        RequestState::Confirmation => CONFIRMATION,
    }
}

fn write(out: &mut Vec<u8>, state: &RequestState) -> Result<(), TooLong> {
    match state {
        RequestState::Suspended(call) => {
            out.extend_from_slice(&call.boot.to_le_bytes());
            out.extend_from_slice(&call.core.to_le_bytes());
            out.extend_from_slice(&call.number.to_le_bytes());
            out.extend_from_slice(&call.random);
        }
        RequestState::Upstream { state, keys } => {
            let length = |text: &str| u32::try_from(text.len()).map_err(|_| TooLong);
            out.push(u8::from(state.is_some()));
            let state = state.as_deref().unwrap_or_default();
            out.extend_from_slice(&length(state)?.to_le_bytes());
            out.extend_from_slice(state.as_bytes());
            for key in keys {
                out.push(u8::try_from(key.len()).map_err(|_| TooLong)?);
                out.extend_from_slice(key.as_bytes());
            }
        }
        RequestState::Confirmation => {}
    }
    Ok(())
}

fn read(kind: u8, mut reader: Reader<'_>) -> Option<RequestState> {
    let state = match kind {
        SUSPENDED => RequestState::Suspended(SuspendedCall {
            boot: u32::from_le_bytes(reader.array()?),
            core: u16::from_le_bytes(reader.array()?),
            number: u64::from_le_bytes(reader.array()?),
            random: reader.array()?,
        }),
        UPSTREAM => {
            let [has_state] = reader.array()?;
            let bytes = u32::from_le_bytes(reader.array()?);
            let state = reader.text(usize::try_from(bytes).ok()?)?;
            let state = (has_state == 1).then(|| state.into());
            let mut keys = Vec::new();
            while !reader.0.is_empty() {
                let [bytes] = reader.array()?;
                keys.push(reader.text(bytes.into())?.into());
            }
            RequestState::Upstream { state, keys }
        }
        CONFIRMATION => RequestState::Confirmation,
        _ => return None,
    };
    reader.0.is_empty().then_some(state)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn text(&mut self, bytes: usize) -> Option<&'a str> {
        let (text, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::OwnedRaw;

    const OWNER: [&str; 3] = ["acme", "desk", "key:1"];
    const PARAMS: &str = r#"{"name":"pay","arguments":{"to":"a","sum":1.50}}"#;

    fn states() -> RequestStates {
        RequestStates::new(&[7; 32]).unwrap()
    }

    fn binding(owner: [&str; 3], method: &str, params: &str) -> Binding {
        let params = OwnedRaw::parse(params.as_bytes()).unwrap();
        Binding::new(owner, method, Some(params.as_raw()))
    }

    fn bound() -> Binding {
        binding(OWNER, "tools/call", PARAMS)
    }

    fn suspended() -> RequestState {
        RequestState::Suspended(SuspendedCall { boot: 3, core: 1, number: 9, random: [5; 16] })
    }

    fn code(states: &RequestStates, text: &str, binding: &Binding, now_ms: u64) -> (i32, String) {
        let error = states.open(text, binding, now_ms).unwrap_err();
        (error.code, error.message.into_owned())
    }

    #[test]
    fn states_come_back_and_look_different_each_time() {
        let states = states();
        let upstream = |state: Option<&str>, keys: &[&str]| RequestState::Upstream {
            state: state.map(Box::from),
            keys: keys.iter().map(|key| Box::from(*key)).collect(),
        };
        for state in [
            suspended(),
            RequestState::Confirmation,
            upstream(None, &[]),
            upstream(Some(""), &["a", "ü"]),
            upstream(Some("opaque"), &[""]),
        ] {
            let one = states.seal(&state, &bound(), 100).unwrap();
            assert_ne!(one, states.seal(&state, &bound(), 100).unwrap());
            assert_eq!(states.open(&one, &bound(), 99), Ok(state.clone()));
            // After a restart too.
            assert_eq!(self::states().open(&one, &bound(), 99), Ok(state));
        }
    }

    #[test]
    fn a_state_holds_for_its_caller_its_request_and_its_time() {
        let states = states();
        let text = states.seal(&suspended(), &bound(), 100).unwrap();
        for owner in [
            ["other", "desk", "key:1"],
            ["acme", "shop", "key:1"],
            ["acme", "desk", "key:2"],
            ["acmed", "esk", "key:1"],
        ] {
            let (code, message) = code(&states, &text, &binding(owner, "tools/call", PARAMS), 0);
            assert_eq!(code, -32602);
            assert!(message.contains("not one that was given"), "{message}");
        }
        for (method, params) in [
            ("prompts/get", PARAMS),
            ("tools/call", r#"{"name":"pay","arguments":{"to":"b","sum":1.50}}"#),
            ("tools/call", r#"{"name":"take","arguments":{"to":"a","sum":1.50}}"#),
            ("tools/call", r#"{"name":"pay"}"#),
            ("tools/call", r#"{"name":"pay","arguments":{"to":"a","sum":1.50,"_meta":1}}"#),
        ] {
            let (code, message) = code(&states, &text, &binding(OWNER, method, params), 0);
            assert_eq!(code, -32602, "{params}");
            assert!(message.contains("another request"), "{message}");
        }
        let (code, message) = code(&states, &text, &bound(), 100);
        assert!(code == -32602 && message.contains("time to answer is over"), "{message}");
        let elsewhere = RequestStates::new(&[8; 32]).unwrap();
        assert!(elsewhere.open(&text, &bound(), 0).is_err());
    }

    #[test]
    fn what_changes_when_a_request_is_sent_again_does_not_count() {
        let again = r#" {"requestState":"x","inputResponses":{"a":{}},"_meta":{"progressToken":4},
            "arguments":{"sum":1.5, "to":"\u0061"},"name":"pay"} "#;
        assert_eq!(binding(OWNER, "tools/call", again), bound());
        let nothing = Binding::new(OWNER, "ping", None);
        assert_eq!(nothing, binding(OWNER, "ping", "{}"));
        assert_ne!(nothing, binding(OWNER, "ping", "[]"));
    }

    #[test]
    fn long_states_are_neither_given_nor_taken() {
        let states = states();
        let state = |bytes: usize| RequestState::Upstream {
            state: Some("x".repeat(bytes).into()),
            keys: vec!["k".into()],
        };
        assert_eq!(states.seal(&state(STATE_BYTES_MAX), &bound(), 1), Err(TooLong));
        let long = state(STATE_BYTES_MAX / 4 * 3 - 256);
        let text = states.seal(&long, &bound(), 1).unwrap();
        assert!(text.len() <= STATE_BYTES_MAX);
        assert_eq!(states.open(&text, &bound(), 0), Ok(long));
        assert!(states.open(&"A".repeat(STATE_BYTES_MAX + 1), &bound(), 0).is_err());
        let key = "k".repeat(256).into();
        let long = RequestState::Upstream { state: None, keys: vec![key] };
        assert_eq!(states.seal(&long, &bound(), 1), Err(TooLong));
        for text in ["", "a", "?", "AAAA", &"A".repeat(60)] {
            assert_eq!(code(&states, text, &bound(), 0).0, -32602);
        }
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_refused(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let states = states();
            let text = states.seal(&suspended(), &bound(), 100).unwrap();
            let mut bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let flipped = URL_SAFE_NO_PAD.encode(&bytes);
            prop_assert_eq!(code(&states, &flipped, &bound(), 0).0, -32602);
        }

        #[test]
        fn any_other_character_and_any_cut_is_refused(
            at in any::<prop::sample::Index>(),
            other in proptest::char::range(' ', '~'),
        ) {
            let states = states();
            let text = states.seal(&suspended(), &bound(), 100).unwrap();
            let at = at.index(text.len());
            prop_assert!(states.open(&text[..at], &bound(), 0).is_err());
            let mut changed = text.clone().into_bytes();
            changed[at] = other as u8;
            let changed = String::from_utf8(changed).unwrap();
            prop_assert!(changed == text || states.open(&changed, &bound(), 0).is_err());
        }

        #[test]
        fn any_text_is_opened_or_refused(text in "\\PC{0,200}") {
            prop_assert!(states().open(&text, &bound(), 0).is_err());
        }
    }
}
