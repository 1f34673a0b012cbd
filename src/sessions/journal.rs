//! The journal of new sessions: what a core opened and ended since the last flush, as one value.
//!
//! Most sessions are young. Writing each as a row of its own costs the store more than answering
//! the client does, so new sessions go into the journal together, and only those that grow old get
//! a row ([`super::SessionTable::sweep_shard`]). A start turns what the journal has into rows.
//!
//! Layout, little endian: `version u8`, then entries: `1`, key, length u16 and record of an opened
//! session; `2`, key of an ended one. A session's two entries may be in chunks of different cores,
//! in no order: an end always counts.

use std::collections::{HashMap, HashSet};

use super::record::{RecordError, SessionRecord};
use super::{Session, SessionKey};

const VERSION: u8 = 1;
const OPENED: u8 = 1;
const ENDED: u8 = 2;
const KEY_BYTES: usize = 16;

/// Why a chunk cannot be read. Nothing may be changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SessionJournalError {
    /// Written by another version of the program.
    #[error("session journal has format version {version}; this program reads version 1")]
    UnknownVersion {
        /// What its first byte says.
        version: u8,
    },
    /// Its entries make no sense.
    #[error("session journal has a malformed entry at byte {offset}")]
    Malformed {
        /// Where the entry starts.
        offset: usize,
    },
    /// A record in it cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A chunk that grows until it is taken.
#[derive(Default, Debug)]
pub struct SessionJournal {
    bytes: Vec<u8>,
}

impl SessionJournal {
    /// Notes a new session.
    pub fn opened(&mut self, session: &Session) {
        let row = session.row();
        // Records are far shorter; one that were not gets no entry, and a row at the first sweep.
        if let Ok(length) = u16::try_from(row.len()) {
            self.begin(OPENED, session.key());
            self.bytes.extend_from_slice(&length.to_le_bytes());
            self.bytes.extend_from_slice(&row);
        }
    }

    /// Notes that a session ended.
    pub fn ended(&mut self, key: SessionKey) {
        self.begin(ENDED, key);
    }

    /// The chunk so far; `None` where there is nothing in it.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let room = self.bytes.len();
        (room > 0).then(|| std::mem::replace(&mut self.bytes, Vec::with_capacity(room.min(65_536))))
    }

    fn begin(&mut self, kind: u8, key: SessionKey) {
        if self.bytes.is_empty() {
            self.bytes.push(VERSION);
        }
        self.bytes.push(kind);
        self.bytes.extend_from_slice(key.as_bytes());
    }
}

/// What all chunks together say.
#[derive(Default, Debug)]
pub struct RecentSessions {
    opened: HashMap<SessionKey, Vec<u8>>,
    ended: HashSet<SessionKey>,
}

impl RecentSessions {
    /// Takes in a chunk.
    ///
    /// # Errors
    /// The chunk cannot be read.
    pub fn read(&mut self, chunk: &[u8]) -> Result<(), SessionJournalError> {
        match chunk.first() {
            Some(&VERSION) => {}
            Some(&version) => return Err(SessionJournalError::UnknownVersion { version }),
            None => return Ok(()),
        }
        let mut offset = 1;
        while offset < chunk.len() {
            let malformed = SessionJournalError::Malformed { offset };
            let rest = chunk.get(offset..).unwrap_or_default();
            offset += self.entry(rest).ok_or(malformed)?;
        }
        Ok(())
    }

    /// Reads one entry; its length.
    fn entry(&mut self, bytes: &[u8]) -> Option<usize> {
        let (kind, rest) = bytes.split_first()?;
        let (key, rest) = rest.split_at_checked(KEY_BYTES)?;
        let key = SessionKey::from_slice(key)?;
        match *kind {
            OPENED => {
                let (length, rest) = rest.split_first_chunk::<2>()?;
                let length = usize::from(u16::from_le_bytes(*length));
                self.opened.insert(key, rest.get(..length)?.to_vec());
                Some(1 + KEY_BYTES + 2 + length)
            }
            ENDED => {
                self.ended.insert(key);
                Some(1 + KEY_BYTES)
            }
            _ => None,
        }
    }

    /// The sessions that live, with their rows.
    pub fn living(&self) -> impl Iterator<Item = (SessionKey, &[u8])> {
        let living = self.opened.iter().filter(|(key, _)| !self.ended.contains(key));
        living.map(|(key, row)| (*key, row.as_slice()))
    }

    /// The sessions that ended; they have no row, or one that is to be removed.
    pub fn ended(&self) -> impl Iterator<Item = SessionKey> {
        self.ended.iter().copied()
    }

    /// Checks that every record can be read, before anything is made of them.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn check(&self) -> Result<(), SessionJournalError> {
        for row in self.opened.values() {
            SessionRecord::decode(row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sessions::{
        ClientCapabilities, ClientInfo, Owner, Revision, SessionLimits, SessionTable,
    };

    fn table() -> SessionTable {
        SessionTable::new(SessionLimits { idle_ms: 1000, lifetime_ms: 9000, heap_idle_ms: 100 })
    }

    fn session(table: &SessionTable, number: u8) -> std::sync::Arc<Session> {
        let owner = Owner::new("acme", "desk", "open").unwrap();
        let client = ClientInfo { name: "client", version: "1" };
        let capabilities = ClientCapabilities::default();
        let record = SessionRecord::new(
            &owner,
            Revision::NEWEST_WITH_SESSIONS,
            client,
            capabilities,
            5,
            9000,
        );
        let key = SessionKey::from_slice(&[number; 16]).unwrap();
        table.insert(table.reserve("acme", 300).unwrap(), key, record)
    }

    #[test]
    fn what_was_opened_and_not_ended_lives() {
        let table = table();
        let (mut one, mut other) = (SessionJournal::default(), SessionJournal::default());
        assert_eq!(one.take(), None);
        one.opened(&session(&table, 1));
        one.opened(&session(&table, 2));
        // The end of a session may be read before its beginning.
        other.ended(SessionKey::from_slice(&[1; 16]).unwrap());
        let mut recent = RecentSessions::default();
        recent.read(&other.take().unwrap()).unwrap();
        recent.read(&one.take().unwrap()).unwrap();
        recent.check().unwrap();
        let living: Vec<_> = recent.living().collect();
        assert_eq!(living.len(), 1);
        assert_eq!(living[0].0.as_bytes(), &[2; 16]);
        assert_eq!(SessionRecord::decode(living[0].1).unwrap().tenant(), "acme");
        assert_eq!(recent.ended().count(), 1);
        assert_eq!(one.take(), None);
    }

    #[test]
    fn other_versions_are_named() {
        let mut recent = RecentSessions::default();
        let error = recent.read(&[9, 1]).unwrap_err();
        assert_eq!(error, SessionJournalError::UnknownVersion { version: 9 });
        assert_eq!(recent.read(&[]), Ok(()));
    }

    proptest! {
        #[test]
        fn cut_or_damaged_chunks_never_panic(
            cut in 0usize..400,
            flips in prop::collection::vec((0usize..400, any::<u8>()), 0..4),
        ) {
            let table = table();
            let mut journal = SessionJournal::default();
            for number in 0..3 {
                journal.opened(&session(&table, number));
            }
            journal.ended(SessionKey::from_slice(&[1; 16]).unwrap());
            let mut chunk = journal.take().unwrap();
            for (at, byte) in flips {
                if let Some(place) = chunk.get_mut(at) {
                    *place = byte;
                }
            }
            chunk.truncate(cut);
            let mut recent = RecentSessions::default();
            let _ = recent.read(&chunk);
            let _ = recent.check();
        }
    }
}
