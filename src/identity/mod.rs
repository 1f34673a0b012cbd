//! Who is calling: API keys, and the credential a request carries.
//!
//! Invariants:
//! - the text of a key exists once, when it is made; what is kept is its SHA-256;
//! - a presented secret is compared in constant time, and a key id nobody has costs the same work
//!   as one that exists;
//! - a client learns that its credential was refused, never why: unknown, wrong, expired, revoked
//!   and foreign keys read the same; the log tells them apart;
//! - nothing here prints a secret: every type that holds one masks its `Debug`.
//!
//! No clock and no randomness: `now_ms` (Unix milliseconds) and random bytes are arguments.

mod caller;
mod credential;
mod key;
mod refusal;
mod table;

pub use caller::Caller;
pub use credential::{CredentialHeaders, Presented, credential};
pub use key::{
    ApiKey, KEY_RANDOM_BYTES, KeyId, KeyLabel, KeyRecord, KeyRecordError, LABEL_CHARACTERS_MAX,
};
pub use refusal::Refusal;
pub use table::{KeyRefusal, KeyTable};
