//! All keys of the appliance, in memory, and the check of a presented one.

use std::collections::HashMap;

use thiserror::Error;

use super::key::{KeyHash, id_and_hash};
use super::{Caller, KeyId, KeyRecord, Presented, Refusal};
use crate::catalog::Trust;

/// All keys, by id. Immutable between changes: it is built off the cores and swapped whole.
#[derive(Debug, Clone, Default)]
pub struct KeyTable {
    keys: HashMap<KeyId, KeyRecord>,
}

/// Why a presented key is not accepted. For the log: a client learns none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyRefusal {
    /// The text has not the shape of a key.
    #[error("not an API key")]
    Malformed,
    /// No key has this id.
    #[error("no key {id}")]
    Unknown {
        /// The id presented.
        id: KeyId,
    },
    /// The id exists and the secret is not its own.
    #[error("wrong secret for key {id}")]
    WrongSecret {
        /// The id presented.
        id: KeyId,
    },
    /// Past its time.
    #[error("key {id} has expired")]
    Expired {
        /// The key.
        id: KeyId,
    },
    /// Withdrawn.
    #[error("key {id} was revoked")]
    Revoked {
        /// The key.
        id: KeyId,
    },
    /// A good key of another tenant or client application.
    #[error("key {id} belongs to another client application")]
    Foreign {
        /// The key.
        id: KeyId,
    },
}

impl KeyRefusal {
    /// The reason in one of a few words that never change.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "malformed_key",
            Self::Unknown { .. } => "unknown_key",
            Self::WrongSecret { .. } => "wrong_secret",
            Self::Expired { .. } => "expired_key",
            Self::Revoked { .. } => "revoked_key",
            Self::Foreign { .. } => "foreign_key",
        }
    }

    /// The id that was presented. Of an unknown key it is what the client wrote, in the form of an
    /// id.
    pub fn key_id(self) -> Option<KeyId> {
        match self {
            Self::Malformed => None,
            Self::Unknown { id }
            | Self::WrongSecret { id }
            | Self::Expired { id }
            | Self::Revoked { id }
            | Self::Foreign { id } => Some(id),
        }
    }
}

impl KeyTable {
    /// Adds or replaces a key.
    pub fn insert(&mut self, record: KeyRecord) {
        self.keys.insert(record.id, record);
    }

    /// Withdraws a key and gives the record to be stored; a key revoked before keeps its first
    /// date. `None` when there is no such key.
    pub fn revoke(&mut self, id: KeyId, now_ms: u64) -> Option<&KeyRecord> {
        let record = self.keys.get_mut(&id)?;
        record.revoked_ms.get_or_insert(now_ms);
        Some(record)
    }

    /// One key's record.
    pub fn find(&self, id: KeyId) -> Option<&KeyRecord> {
        self.keys.get(&id)
    }

    /// Whether a key that was verified before is still good at `now_ms`.
    pub fn is_good(&self, id: KeyId, now_ms: u64) -> bool {
        self.find(id).is_some_and(|record| {
            record.revoked_ms.is_none()
                && record.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
        })
    }

    /// How far a caller is trusted: a key as far as it says, anybody least, operators most.
    pub fn trust(&self, caller: Caller) -> Trust {
        match caller {
            // A key that is gone has nobody's trust.
            Caller::Key(id) => self.find(id).map_or(Trust::Low, |record| record.trust),
            Caller::Open => Trust::Low,
            Caller::Operator => Trust::High,
        }
    }

    /// All records, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &KeyRecord> {
        self.keys.values()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The record of a presented key, if it is good at `now_ms`.
    ///
    /// The secret is judged before anything else about the key, and the work for an id nobody has
    /// is the work for one that exists.
    ///
    /// # Errors
    /// Why it is not accepted; for the log only.
    pub fn verify(&self, presented: &str, now_ms: u64) -> Result<&KeyRecord, KeyRefusal> {
        let (id, hash) = id_and_hash(presented).ok_or(KeyRefusal::Malformed)?;
        let record = self.keys.get(&id);
        let expected = record.map_or(&KeyHash::NONE, |record| &record.secret_hash);
        let is_same = hash.is_same(expected);
        let record = record.ok_or(KeyRefusal::Unknown { id })?;
        if !is_same {
            Err(KeyRefusal::WrongSecret { id })
        } else if record.revoked_ms.is_some() {
            Err(KeyRefusal::Revoked { id })
        } else if record.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
            Err(KeyRefusal::Expired { id })
        } else {
            Ok(record)
        }
    }

    /// The caller of a request to the client application of this tenant.
    ///
    /// A credential that is presented must be good even where none is asked for: falling back to
    /// [`Caller::Open`] would hide the mistake and lose the caller's sessions.
    ///
    /// # Errors
    /// The refusal to answer with.
    pub fn caller(
        &self,
        presented: Option<Presented<'_>>,
        tenant: &str,
        client_application: &str,
        is_open: bool,
        now_ms: u64,
    ) -> Result<Caller, Refusal> {
        let Some(presented) = presented else {
            return if is_open { Ok(Caller::Open) } else { Err(Refusal::NoCredential) };
        };
        let record = self.verify(presented.secret(), now_ms).map_err(Refusal::Key)?;
        if record.tenant.as_str() == tenant
            && record.client_application.as_str() == client_application
        {
            Ok(Caller::Key(record.id))
        } else {
            Err(Refusal::Key(KeyRefusal::Foreign { id: record.id }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{ClientApplicationId, TenantId};
    use crate::identity::{ApiKey, KEY_RANDOM_BYTES, KeyLabel};

    fn table(records: impl IntoIterator<Item = KeyRecord>) -> KeyTable {
        let mut table = KeyTable::default();
        records.into_iter().for_each(|record| table.insert(record));
        table
    }

    fn key(seed: u8, expires_ms: Option<u64>) -> (ApiKey, KeyRecord) {
        let key = ApiKey::generate([seed; KEY_RANDOM_BYTES]);
        let record = key.record(
            TenantId::new("acme").unwrap(),
            ClientApplicationId::new("desk").unwrap(),
            KeyLabel::default(),
            0,
            expires_ms,
        );
        (key, record)
    }

    #[test]
    fn each_refusal_has_its_reason() {
        let (good, good_record) = key(1, None);
        let (expiring, expiring_record) = key(2, Some(100));
        let (unknown, _) = key(3, None);
        let id = good.id();
        let mut table = table([good_record, expiring_record]);
        assert_eq!(table.len(), 2);

        assert_eq!(table.verify(good.text(), u64::MAX).unwrap().id, id);
        assert!(table.verify(expiring.text(), 99).is_ok());
        let expired = KeyRefusal::Expired { id: expiring.id() };
        assert_eq!(table.verify(expiring.text(), 100).unwrap_err(), expired);
        let refusal = table.verify(unknown.text(), 0).unwrap_err();
        assert_eq!(refusal, KeyRefusal::Unknown { id: unknown.id() });
        assert_eq!(table.verify("hunter2", 0).unwrap_err(), KeyRefusal::Malformed);

        let mixed = format!("{}{}", &good.text()[..15], &unknown.text()[15..]);
        assert_eq!(table.verify(&mixed, 0).unwrap_err(), KeyRefusal::WrongSecret { id });

        assert_eq!(table.revoke(id, 50).unwrap().revoked_ms, Some(50));
        assert_eq!(table.revoke(id, 60).unwrap().revoked_ms, Some(50));
        assert_eq!(table.verify(good.text(), 40).unwrap_err(), KeyRefusal::Revoked { id });
        assert!(table.revoke(unknown.id(), 1).is_none());
    }

    #[test]
    fn trust_is_the_keys_and_least_for_anybody() {
        let (key, mut record) = key(1, None);
        let id = Caller::Key(key.id());
        assert_eq!(table([record.clone()]).trust(id), Trust::Medium);
        record.trust = Trust::High;
        let table = table([record]);
        let unknown = Caller::Key(KeyId::parse("000000000000").unwrap());
        let callers = [id, unknown, Caller::Open, Caller::Operator];
        let trusts = callers.map(|caller| table.trust(caller));
        assert_eq!(trusts, [Trust::High, Trust::Low, Trust::Low, Trust::High]);
    }

    #[test]
    fn last_character_of_a_secret_counts_whole() {
        // 43 base64 characters hold two bits more than 32 bytes: they must not be ignored.
        let (key, record) = key(1, None);
        let table = table([record]);
        for last in ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']) {
            let text = format!("{}{last}", &key.text()[..key.text().len() - 1]);
            assert_eq!(table.verify(&text, 0).is_ok(), text == key.text(), "{last}");
        }
    }

    #[test]
    fn callers_belong_to_one_client_application() {
        let (key, record) = key(1, None);
        let table = table([record]);
        let presented = Some(Presented::new(key.text()));
        let caller = |presented, tenant, client, is_open| {
            table.caller(presented, tenant, client, is_open, 0)
        };
        assert_eq!(caller(presented, "acme", "desk", false), Ok(Caller::Key(key.id())));
        assert_eq!(caller(presented, "acme", "desk", true), Ok(Caller::Key(key.id())));
        let foreign = Err(Refusal::Key(KeyRefusal::Foreign { id: key.id() }));
        assert_eq!(caller(presented, "acme", "till", true), foreign);
        assert_eq!(caller(presented, "other", "desk", false), foreign);
        assert_eq!(caller(None, "acme", "desk", false), Err(Refusal::NoCredential));
        assert_eq!(caller(None, "acme", "desk", true), Ok(Caller::Open));
        let bad = Some(Presented::new("nonsense"));
        let malformed = Err(Refusal::Key(KeyRefusal::Malformed));
        assert_eq!(caller(bad, "acme", "desk", true), malformed);
    }
}
