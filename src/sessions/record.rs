//! The record of a session: what its row in the store holds.
//!
//! Layout, little endian. The key of the row is the session's key.
//!
//! ```text
//! version u8 | revision u8 | capabilities u32 | created_ms u64 | last_seen_ms u64 | expires_ms u64
//! | five texts, each after its length as u16: tenant, client application, caller, client's name,
//! client's version
//! ```
//!
//! Where the client said how grave the log messages it hears of must be, the version is 2 and that
//! level follows as a u8.

use std::fmt;

use super::owner::Owner;
use super::revision::Revision;

const VERSION: u8 = 1;
/// The version of rows with a level.
const VERSION_WITH_LEVEL: u8 = 2;
const HEADER_BYTES: usize = 30;
const TEXTS: usize = 5;
/// Longest name and version of a client that are kept.
const CLIENT_TEXT_BYTES_MAX: usize = 128;

/// Why a row is no session record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// Written by another version of the program. Nothing may be changed then.
    #[error("session record has format version {version}; this program reads versions 1 and 2")]
    UnknownVersion {
        /// What its first byte says.
        version: u8,
    },
    /// Too short, too long, or with values that were never written.
    #[error("session record is malformed")]
    Malformed,
}

/// Name and version a client gave when it opened the session. Too long ones are cut.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ClientInfo<'a> {
    /// `clientInfo.name`.
    pub name: &'a str,
    /// `clientInfo.version`.
    pub version: &'a str,
}

/// What a client said it can do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ClientCapabilities(u32);

impl ClientCapabilities {
    /// None.
    pub const NONE: Self = Self(0);
    /// `roots`.
    pub const ROOTS: Self = Self(1);
    /// `roots.listChanged`.
    pub const ROOTS_LIST_CHANGED: Self = Self(1 << 1);
    /// `sampling`.
    pub const SAMPLING: Self = Self(1 << 2);
    /// `sampling.tools`.
    pub const SAMPLING_TOOLS: Self = Self(1 << 3);
    /// `sampling.context`.
    pub const SAMPLING_CONTEXT: Self = Self(1 << 4);
    /// `elicitation` by form (an empty object means this).
    pub const ELICITATION_FORM: Self = Self(1 << 5);
    /// `elicitation.url`.
    pub const ELICITATION_URL: Self = Self(1 << 6);
    /// `tasks`.
    pub const TASKS: Self = Self(1 << 7);

    /// These and `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    pub(super) const fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Whether all of `other` are among these.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Debug for ClientCapabilities {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClientCapabilities({:#b})", self.0)
    }
}

/// All that is kept of a session.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The five texts, one after the other: one allocation for all.
    texts: Box<str>,
    /// Where the first four end.
    ends: [u16; TEXTS - 1],
    revision: Revision,
    capabilities: ClientCapabilities,
    created_ms: u64,
    /// When the client was last seen, as of this record.
    pub(super) last_seen_ms: u64,
    expires_ms: u64,
    /// The code of a level, as of this record; 0 for none.
    pub(super) log_level: u8,
}

impl SessionRecord {
    /// The record of a session opened at `created_ms` that ends at `expires_ms` at the latest.
    pub fn new(
        owner: &Owner<'_>,
        revision: Revision,
        client: ClientInfo<'_>,
        capabilities: ClientCapabilities,
        created_ms: u64,
        expires_ms: u64,
    ) -> Self {
        let [tenant, client_application, caller] = owner.parts();
        let texts = [tenant, client_application, caller, shown(client.name), shown(client.version)];
        let (texts, ends) = join(texts);
        Self {
            texts,
            ends,
            revision,
            capabilities,
            created_ms,
            last_seen_ms: created_ms,
            expires_ms,
            log_level: 0,
        }
    }

    /// Reads a row.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        match bytes.first() {
            Some(&(VERSION | VERSION_WITH_LEVEL)) => {
                Self::read(bytes).ok_or(RecordError::Malformed)
            }
            Some(&version) => Err(RecordError::UnknownVersion { version }),
            None => Err(RecordError::Malformed),
        }
    }

    /// The row of this record.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_seen(self.last_seen_ms, self.log_level)
    }

    /// The row, with a later sight of the client and the level of now.
    pub(super) fn encode_seen(&self, last_seen_ms: u64, log_level: u8) -> Vec<u8> {
        let mut row = Vec::with_capacity(HEADER_BYTES + 2 * TEXTS + self.texts.len() + 1);
        row.push(if log_level == 0 { VERSION } else { VERSION_WITH_LEVEL });
        row.push(self.revision.code());
        row.extend_from_slice(&self.capabilities.0.to_le_bytes());
        row.extend_from_slice(&self.created_ms.to_le_bytes());
        row.extend_from_slice(&last_seen_ms.to_le_bytes());
        row.extend_from_slice(&self.expires_ms.to_le_bytes());
        for index in 0..TEXTS {
            let text = self.text(index);
            // Each is bounded when a record is made.
            row.extend_from_slice(&(text.len() as u16).to_le_bytes());
            row.extend_from_slice(text.as_bytes());
        }
        if log_level != 0 {
            row.push(log_level);
        }
        row
    }

    /// Whom the session belongs to.
    pub fn owner(&self) -> Owner<'_> {
        Owner::of_record([self.text(0), self.text(1), self.text(2)])
    }

    /// Whether it belongs to `owner`.
    pub fn belongs_to(&self, owner: &Owner<'_>) -> bool {
        self.owner() == *owner
    }

    /// The tenant.
    pub fn tenant(&self) -> &str {
        self.text(0)
    }

    /// The client application.
    pub fn client_application(&self) -> &str {
        self.text(1)
    }

    /// The caller's stable name.
    pub fn caller(&self) -> &str {
        self.text(2)
    }

    /// The client's name and version.
    pub fn client(&self) -> ClientInfo<'_> {
        ClientInfo { name: self.text(3), version: self.text(4) }
    }

    /// The negotiated revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// What the client can do.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    /// When it was opened.
    pub fn created_ms(&self) -> u64 {
        self.created_ms
    }

    /// When the client was last seen, as of this record.
    pub fn last_seen_ms(&self) -> u64 {
        self.last_seen_ms
    }

    /// When its lifetime ends, however active it is.
    pub fn expires_ms(&self) -> u64 {
        self.expires_ms
    }

    fn text(&self, index: usize) -> &str {
        let end = |index: usize| self.ends.get(index).map_or(self.texts.len(), |end| (*end).into());
        let start = index.checked_sub(1).map_or(0, end);
        self.texts.get(start..end(index)).unwrap_or_default()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (header, mut rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| {
            let word = header.get(at..at + 8)?;
            Some(u64::from_le_bytes(word.try_into().ok()?))
        };
        let revision = Revision::from_code(header[1])?;
        let capabilities = u32::from_le_bytes(header.get(2..6)?.try_into().ok()?);
        let mut texts = [""; TEXTS];
        for text in &mut texts {
            let (length, tail) = rest.split_first_chunk::<2>()?;
            let (value, tail) = tail.split_at_checked(u16::from_le_bytes(*length).into())?;
            *text = std::str::from_utf8(value).ok().filter(|text| text.len() <= 255)?;
            rest = tail;
        }
        let log_level = match (header[0], rest) {
            (VERSION, []) => 0,
            (VERSION_WITH_LEVEL, [level]) if *level > 0 => *level,
            _ => return None,
        };
        let (texts, ends) = join(texts);
        Some(Self {
            texts,
            ends,
            revision,
            capabilities: ClientCapabilities(capabilities),
            created_ms: word(6)?,
            last_seen_ms: word(14)?,
            expires_ms: word(22)?,
            log_level,
        })
    }
}

impl fmt::Debug for SessionRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SessionRecord")
            .field("tenant", &self.tenant())
            .field("client_application", &self.client_application())
            .field("revision", &self.revision)
            .field("created_ms", &self.created_ms)
            .field("last_seen_ms", &self.last_seen_ms)
            .field("expires_ms", &self.expires_ms)
            .finish_non_exhaustive()
    }
}

/// What a client says of itself, as far as it is kept.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(CLIENT_TEXT_BYTES_MAX)]
}

/// Each text has at most 255 bytes, so every end fits.
fn join(texts: [&str; TEXTS]) -> (Box<str>, [u16; TEXTS - 1]) {
    let mut ends = [0; TEXTS - 1];
    let mut end = 0;
    for (place, text) in ends.iter_mut().zip(texts) {
        end += text.len();
        *place = end as u16;
    }
    (texts.concat().into(), ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> SessionRecord {
        let owner = Owner::new("acme", "desk", "key-1").unwrap();
        let client = ClientInfo { name: "Clïent", version: "1.2" };
        let capabilities = ClientCapabilities::ROOTS.with(ClientCapabilities::SAMPLING);
        SessionRecord::new(&owner, Revision::V20250618, client, capabilities, 1000, 5000)
    }

    #[test]
    fn a_record_says_what_it_was_made_of() {
        let record = record();
        let owner = record.owner();
        assert_eq!(owner, Owner::new("acme", "desk", "key-1").unwrap());
        assert!(record.belongs_to(&owner));
        assert!(!record.belongs_to(&Owner::new("acm", "edesk", "key-1").unwrap()));
        assert_eq!(record.client(), ClientInfo { name: "Clïent", version: "1.2" });
        assert!(record.capabilities().contains(ClientCapabilities::SAMPLING));
        assert!(!record.capabilities().contains(ClientCapabilities::TASKS));
        assert!(!format!("{record:?}").contains("key-1"));
    }

    #[test]
    fn the_layout_is_fixed() {
        let mut expected = vec![1, 3, 5, 0, 0, 0];
        for number in [1000_u64, 1000, 5000] {
            expected.extend(number.to_le_bytes());
        }
        for text in ["acme", "desk", "key-1", "Clïent", "1.2"] {
            expected.extend((text.len() as u16).to_le_bytes());
            expected.extend(text.as_bytes());
        }
        assert_eq!(record().encode(), expected);
    }

    #[test]
    fn truncated_and_unknown_rows_are_refused() {
        let row = record().encode();
        for length in 0..row.len() {
            assert_eq!(SessionRecord::decode(&row[..length]), Err(RecordError::Malformed));
        }
        let mut leveled = record();
        leveled.log_level = 4;
        let leveled = leveled.encode();
        assert_eq!(SessionRecord::decode(&leveled).unwrap().log_level, 4);
        assert_eq!((leveled[0], leveled.last()), (2, Some(&4)));
        for length in 0..leveled.len() {
            assert_eq!(SessionRecord::decode(&leveled[..length]), Err(RecordError::Malformed));
        }
        let mut longer = row.clone();
        longer.push(0);
        assert_eq!(SessionRecord::decode(&longer), Err(RecordError::Malformed));
        let mut newer = row.clone();
        newer[0] = 3;
        let unknown = RecordError::UnknownVersion { version: 3 };
        assert_eq!(SessionRecord::decode(&newer), Err(unknown));
        let mut revision = row;
        revision[1] = 9;
        assert_eq!(SessionRecord::decode(&revision), Err(RecordError::Malformed));
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let owner = Owner::new("t", "c", "k").unwrap();
        let name = "é".repeat(100);
        let client = ClientInfo { name: &name[..], version: "" };
        let record = SessionRecord::new(
            &owner,
            Revision::NEWEST_WITH_SESSIONS,
            client,
            ClientCapabilities::NONE,
            0,
            0,
        );
        assert_eq!(record.client().name, "é".repeat(64));
    }

    proptest! {
        #[test]
        fn rows_come_back(
            tenant in "\\PC{0,60}",
            caller in "\\PC{0,60}",
            name in "\\PC{0,200}",
            seen: u64,
            expires: u64,
        ) {
            let owner = Owner::new(&tenant, "client", &caller).unwrap();
            let client = ClientInfo { name: &name, version: "1" };
            let mut record = SessionRecord::new(
                &owner, Revision::V20241105, client, ClientCapabilities::TASKS, 7, expires,
            );
            record.last_seen_ms = seen;
            prop_assert_eq!(SessionRecord::decode(&record.encode()), Ok(record));
        }

        #[test]
        fn any_bytes_decode_or_not(mut bytes in proptest::collection::vec(0_u8..6, 0..120)) {
            if let Some(first) = bytes.first_mut() {
                *first = VERSION;
            }
            if let Ok(record) = SessionRecord::decode(&bytes) {
                prop_assert_eq!(record.encode(), bytes);
            }
        }
    }
}
