//! API keys: their text, their making, and the record that is kept of one.

use std::fmt;

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use crate::catalog::{ClientApplicationId, InvalidName, TenantId, Trust};

/// Random bytes that make one key.
pub const KEY_RANDOM_BYTES: usize = 40;
/// Longest label of a key, in characters.
pub const LABEL_CHARACTERS_MAX: usize = 100;

const PREFIX: &str = "rw_";
const ID_CHARACTERS: usize = 12;
const ID_RANDOM_BYTES: usize = 8;
const SECRET_CHARACTERS: usize = 43;
const KEY_CHARACTERS: usize = PREFIX.len() + ID_CHARACTERS + 1 + SECRET_CHARACTERS;
const HASH_BYTES: usize = 32;
/// Version 1 had no trust: its keys have the usual one.
const RECORD_VERSION: u8 = 2;
const RECORD_VERSION_WITHOUT_TRUST: u8 = 1;
/// Crockford's: no `i`, `l`, `o`, `u`, which are misread.
const ID_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The public half of a key: 12 characters that name it in lists and logs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; ID_CHARACTERS]);

impl KeyId {
    /// Reads an id; `None` if it is not 12 characters of the alphabet of ids.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; ID_CHARACTERS] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(|byte| ID_ALPHABET.contains(byte)).then_some(Self(bytes))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        // Every byte is one of ID_ALPHABET, so this is always text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The key of this id's record in the store. Random, hence unordered in time.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn from_random(random: [u8; ID_RANDOM_BYTES]) -> Self {
        let mut bits = u64::from_le_bytes(random);
        Self(std::array::from_fn(|_| {
            let character = ID_ALPHABET[(bits % 32) as usize];
            bits /= 32;
            character
        }))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

/// SHA-256 of a key's whole text, so that the id is bound to the secret.
#[derive(Clone, Copy)]
pub(super) struct KeyHash([u8; HASH_BYTES]);

impl KeyHash {
    /// A hash that no key has: what an unknown id is compared with.
    pub(super) const NONE: Self = Self([0; HASH_BYTES]);

    fn of(key_text: &str) -> Self {
        let mut bytes = [0; HASH_BYTES];
        let digest = digest::digest(&digest::SHA256, key_text.as_bytes());
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// Takes the same time wherever the two differ.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<hash>")
    }
}

/// A key as its holder knows it: `rw_<id>_<secret>`. Shown once, never stored.
pub struct ApiKey {
    text: String,
    id: KeyId,
}

impl ApiKey {
    /// Makes a key from bytes of a cryptographic random source.
    pub fn generate(random: [u8; KEY_RANDOM_BYTES]) -> Self {
        let mut id_random = [0; ID_RANDOM_BYTES];
        id_random.copy_from_slice(&random[..ID_RANDOM_BYTES]);
        let id = KeyId::from_random(id_random);
        let secret = URL_SAFE_NO_PAD.encode(&random[ID_RANDOM_BYTES..]);
        Self { text: format!("{PREFIX}{id}_{secret}"), id }
    }

    /// A key whose text is known. `None` where it has not the shape of one.
    pub fn from_text(text: &str) -> Option<Self> {
        let (id, _) = id_and_hash(text)?;
        Some(Self { text: text.to_owned(), id })
    }

    /// The whole key: the one time it is shown.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The public half.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// What is kept of this key; its trust is the usual one.
    pub fn record(
        &self,
        tenant: TenantId,
        client_application: ClientApplicationId,
        label: KeyLabel,
        created_ms: u64,
        expires_ms: Option<u64>,
    ) -> KeyRecord {
        KeyRecord {
            id: self.id,
            tenant,
            client_application,
            label,
            trust: Trust::default(),
            secret_hash: KeyHash::of(&self.text),
            created_ms,
            expires_ms,
            revoked_ms: None,
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ApiKey({PREFIX}{}_***)", self.id)
    }
}

/// The id and the hash of a text that has the shape of a key.
pub(super) fn id_and_hash(presented: &str) -> Option<(KeyId, KeyHash)> {
    if presented.len() != KEY_CHARACTERS || !presented.is_ascii() {
        return None;
    }
    let rest = presented.strip_prefix(PREFIX)?;
    let id = KeyId::parse(&rest[..ID_CHARACTERS])?;
    let secret = rest[ID_CHARACTERS..].strip_prefix('_')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    secret.bytes().all(is_plain).then(|| (id, KeyHash::of(presented)))
}

/// What its owner calls a key: up to 100 characters of one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyLabel(Box<str>);

impl KeyLabel {
    /// The only way in.
    ///
    /// # Errors
    /// When the text is longer than [`LABEL_CHARACTERS_MAX`] or has control characters.
    pub fn new(text: &str) -> Result<Self, KeyRecordError> {
        // Bytes first: counting characters of an endless text is work, too.
        let fits =
            text.len() <= LABEL_CHARACTERS_MAX * 4 && text.chars().count() <= LABEL_CHARACTERS_MAX;
        if fits && !text.chars().any(char::is_control) {
            Ok(Self(text.into()))
        } else {
            Err(KeyRecordError::Label)
        }
    }

    /// The label as text; may be empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the store keeps of a key.
#[derive(Debug, Clone)]
pub struct KeyRecord {
    /// Names the key.
    pub id: KeyId,
    /// The tenant it opens.
    pub tenant: TenantId,
    /// The one client application it opens.
    pub client_application: ClientApplicationId,
    /// What its owner calls it.
    pub label: KeyLabel,
    /// How far its holder is trusted.
    pub trust: Trust,
    pub(super) secret_hash: KeyHash,
    /// When it was made.
    pub created_ms: u64,
    /// From when on it is refused; `None`: never.
    pub expires_ms: Option<u64>,
    /// When it was withdrawn.
    pub revoked_ms: Option<u64>,
}

/// A record or a part of one that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyRecordError {
    /// Written by a newer release.
    #[error(
        "key record of format version {found}; this release reads versions up to {RECORD_VERSION}"
    )]
    Version {
        /// The version byte.
        found: u8,
    },
    /// Cut short, too long, or not what this release writes.
    #[error("key record is damaged")]
    Damaged,
    /// A name in it breaks its rule.
    #[error("key record is damaged: {0}")]
    Name(#[from] InvalidName),
    /// A label that is too long or has control characters.
    #[error("a key's label has at most {LABEL_CHARACTERS_MAX} characters and is one line")]
    Label,
}

impl KeyRecord {
    /// The record as the store keeps it: the version, the trust, then fixed fields, then the
    /// texts.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![RECORD_VERSION, trust_byte(self.trust)];
        out.extend_from_slice(&self.id.0);
        out.extend_from_slice(&self.secret_hash.0);
        out.extend_from_slice(&self.created_ms.to_le_bytes());
        for moment in [self.expires_ms, self.revoked_ms] {
            out.push(u8::from(moment.is_some()));
            out.extend_from_slice(&moment.unwrap_or(0).to_le_bytes());
        }
        for text in [self.tenant.as_str(), self.client_application.as_str(), self.label.as_str()] {
            // Lossless: names have at most 64 bytes, labels 400.
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        out
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// When the version is unknown or the bytes are not exactly one record.
    pub fn decode(bytes: &[u8]) -> Result<Self, KeyRecordError> {
        let mut fields = Fields(bytes);
        let [found] = fields.array()?;
        let trust = match found {
            RECORD_VERSION => {
                let [trust] = fields.array()?;
                trust_of(trust).ok_or(KeyRecordError::Damaged)?
            }
            RECORD_VERSION_WITHOUT_TRUST => Trust::default(),
            _ => return Err(KeyRecordError::Version { found }),
        };
        let id: [u8; ID_CHARACTERS] = fields.array()?;
        let id = std::str::from_utf8(&id).ok().and_then(KeyId::parse);
        let record = Self {
            id: id.ok_or(KeyRecordError::Damaged)?,
            secret_hash: KeyHash(fields.array()?),
            created_ms: u64::from_le_bytes(fields.array()?),
            expires_ms: fields.moment()?,
            revoked_ms: fields.moment()?,
            tenant: TenantId::new(fields.text()?)?,
            client_application: ClientApplicationId::new(fields.text()?)?,
            label: KeyLabel::new(fields.text()?)?,
            trust,
        };
        if fields.0.is_empty() { Ok(record) } else { Err(KeyRecordError::Damaged) }
    }
}

/// Written down: these numbers never change.
fn trust_byte(trust: Trust) -> u8 {
    match trust {
        Trust::Low => 0,
        Trust::Medium => 1,
        Trust::High => 2,
    }
}

fn trust_of(byte: u8) -> Option<Trust> {
    [Trust::Low, Trust::Medium, Trust::High].into_iter().find(|trust| trust_byte(*trust) == byte)
}

/// What is still to be read of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], KeyRecordError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(KeyRecordError::Damaged)?;
        self.0 = rest;
        Ok(*head)
    }

    fn moment(&mut self) -> Result<Option<u64>, KeyRecordError> {
        let [flag] = self.array()?;
        let moment = u64::from_le_bytes(self.array()?);
        match flag {
            0 => Ok(None),
            1 => Ok(Some(moment)),
            _ => Err(KeyRecordError::Damaged),
        }
    }

    fn text(&mut self) -> Result<&'a str, KeyRecordError> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(length).ok_or(KeyRecordError::Damaged)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| KeyRecordError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record_of(random: [u8; KEY_RANDOM_BYTES], label: &str) -> (ApiKey, KeyRecord) {
        let key = ApiKey::generate(random);
        let record = key.record(
            TenantId::new("acme").unwrap(),
            ClientApplicationId::new("desk").unwrap(),
            KeyLabel::new(label).unwrap(),
            1_000,
            Some(2_000),
        );
        (key, record)
    }

    #[test]
    fn key_text_has_its_fixed_shape() {
        let key = ApiKey::generate(std::array::from_fn(|index| index as u8));
        assert_eq!(key.text().len(), KEY_CHARACTERS);
        let (id, hash) = id_and_hash(key.text()).unwrap();
        assert_eq!(id, key.id());
        assert!(hash.is_same(&KeyHash::of(key.text())));
    }

    #[test]
    fn different_random_bytes_make_different_keys() {
        for index in 0..KEY_RANDOM_BYTES {
            let mut random = [0; KEY_RANDOM_BYTES];
            // Bits 60..64 of the id's eight bytes are unused.
            random[index] = 1;
            let other = ApiKey::generate(random);
            assert_ne!(ApiKey::generate([0; KEY_RANDOM_BYTES]).text(), other.text(), "{index}");
        }
    }

    #[test]
    fn texts_that_are_not_keys() {
        let good = ApiKey::generate([7; KEY_RANDOM_BYTES]).text().to_owned();
        let longer = format!("{good}A");
        let other_prefix = good.replacen("rw_", "rx_", 1);
        let space = good.replacen(&good[20..21], " ", 1);
        let wide = format!("{}é", &good[..KEY_CHARACTERS - 2]);
        for bad in ["", "rw_", &good[..KEY_CHARACTERS - 1], &longer, &other_prefix, &space, &wide] {
            assert!(id_and_hash(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let (key, record) = record_of([9; KEY_RANDOM_BYTES], "laptop");
        let secret = &key.text()[PREFIX.len() + ID_CHARACTERS + 1..];
        let shown = format!("{key:?} {record:?}");
        assert!(!shown.contains(secret) && shown.contains(key.id().as_str()), "{shown}");
        assert!(shown.contains("<hash>"), "{shown}");
    }

    #[test]
    fn labels_are_one_short_line() {
        assert!(KeyLabel::new("").is_ok());
        assert!(KeyLabel::new(&"ü".repeat(LABEL_CHARACTERS_MAX)).is_ok());
        for bad in ["a\nb", "\u{1b}[1m", &"x".repeat(LABEL_CHARACTERS_MAX + 1)] {
            assert_eq!(KeyLabel::new(bad), Err(KeyRecordError::Label), "{bad:?}");
        }
    }

    #[test]
    fn damaged_records_are_refused_at_every_length() {
        let (_, record) = record_of([1; KEY_RANDOM_BYTES], "laptop");
        let bytes = record.encode();
        for end in 0..bytes.len() {
            assert!(KeyRecord::decode(&bytes[..end]).is_err(), "{end}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(KeyRecord::decode(&longer).unwrap_err(), KeyRecordError::Damaged);
        let mut newer = bytes;
        newer[0] = 3;
        assert_eq!(KeyRecord::decode(&newer).unwrap_err(), KeyRecordError::Version { found: 3 });
        let mut unknown = record.encode();
        unknown[1] = 3;
        assert_eq!(KeyRecord::decode(&unknown).unwrap_err(), KeyRecordError::Damaged);
    }

    #[test]
    fn records_from_before_trust_are_read_as_usual_ones() {
        let (key, mut record) = record_of([1; KEY_RANDOM_BYTES], "laptop");
        record.trust = Trust::High;
        // Version 1 is version 2 without its second byte.
        let mut old = record.encode();
        old.remove(1);
        old[0] = RECORD_VERSION_WITHOUT_TRUST;
        let read = KeyRecord::decode(&old).unwrap();
        assert_eq!((read.trust, read.id, read.label.as_str()), (Trust::Medium, key.id(), "laptop"));
        assert_eq!(read.encode()[..2], [RECORD_VERSION, 1]);
    }

    proptest! {
        #[test]
        fn records_come_back_as_they_were(
            random in prop::array::uniform32(any::<u8>()),
            label in "[^\\p{Cc}]{0,100}",
            revoked_ms in any::<Option<u64>>(),
            trust in prop::sample::select(vec![Trust::Low, Trust::Medium, Trust::High]),
        ) {
            let mut bytes = [0; KEY_RANDOM_BYTES];
            bytes[..32].copy_from_slice(&random);
            let (_, mut record) = record_of(bytes, &label);
            record.revoked_ms = revoked_ms;
            record.trust = trust;
            let read = KeyRecord::decode(&record.encode()).unwrap();
            prop_assert_eq!(read.encode(), record.encode());
            prop_assert_eq!((read.revoked_ms, read.trust), (revoked_ms, trust));
            prop_assert_eq!(read.label.as_str(), label);
        }

        #[test]
        fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = KeyRecord::decode(&bytes);
        }
    }
}
