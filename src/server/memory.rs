//! What a connection remembers of its last request, so that the next one, which nearly always
//! names the same endpoint with the same credential and session, need not be judged from scratch.
//!
//! A remembered judgement is used only while everything it rests on is unchanged: the published
//! version of catalog and keys, the bytes of credential and of the path as far as it says whose
//! it is, the key's expiry, and that the
//! session has not ended. Nothing is remembered of a refusal.

use std::{rc::Rc, sync::Arc};

use crate::{
    audit::Asker,
    catalog::{Trust, View},
    governance::Handles,
    identity::Caller,
    sessions::Session,
};

/// The client application a request is for and who makes it.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    pub(crate) view: Arc<View>,
    pub(crate) caller: Caller,
    /// How far the caller is trusted.
    pub(crate) trust: Trust,
    /// The limits the caller is under.
    pub(crate) limits: Arc<Handles>,
    /// Who asks, as records say it.
    pub(crate) asker: Rc<Asker>,
    /// When the credential stops being good.
    pub(crate) expires_ms: u64,
}

/// The memory of one connection.
#[derive(Default)]
pub(crate) struct Memory {
    version: u64,
    path: Vec<u8>,
    credential: Vec<u8>,
    admitted: Option<Admitted>,
    session_text: Vec<u8>,
    session: Option<Arc<Session>>,
}

/// Longer texts are judged anew each time.
const REMEMBERED_BYTES_MAX: usize = 512;

impl Memory {
    /// The judgement of the same path and credential, if it still holds.
    pub(crate) fn admitted(
        &self,
        version: u64,
        path: &str,
        credential: &[u8],
        now_ms: u64,
    ) -> Option<&Admitted> {
        self.admitted.as_ref().filter(|admitted| {
            self.version == version
                && now_ms < admitted.expires_ms
                && self.path == path.as_bytes()
                && self.credential == credential
        })
    }

    /// Remembers a judgement, and forgets the session that belonged to the one before.
    pub(crate) fn admit(&mut self, version: u64, path: &str, credential: &[u8], to: Admitted) {
        self.session = None;
        if path.len() + credential.len() > REMEMBERED_BYTES_MAX {
            self.admitted = None;
            return;
        }
        self.version = version;
        self.path.clear();
        self.path.extend_from_slice(path.as_bytes());
        self.credential.clear();
        self.credential.extend_from_slice(credential);
        self.admitted = Some(to);
    }

    /// The session this connection used last, if it is the one named.
    pub(crate) fn session(&self, text: &[u8]) -> Option<&Arc<Session>> {
        self.session.as_ref().filter(|_| self.session_text == text)
    }

    pub(crate) fn remember_session(&mut self, text: &[u8], session: Arc<Session>) {
        self.session_text.clear();
        self.session_text.extend_from_slice(text);
        self.session = Some(session);
    }

    pub(crate) fn forget_session(&mut self) {
        self.session = None;
    }
}

// The credential's bytes must not reach a log.
impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("version", &self.version).finish_non_exhaustive()
    }
}
