//! Request ids, as exact text.

use std::{borrow::Borrow, fmt};

use smallvec::SmallVec;

use super::ID_BYTES_MAX;
use crate::json::{Kind, Raw};

/// The id of a request: the JSON text of a string or of an integer of any size.
///
/// Ids are compared by their text, so `1` is not `"1"`. A client that writes the same string with
/// another escape means another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id<'a>(Raw<'a>);

impl<'a> Id<'a> {
    /// Takes a value as id. `None` for everything MCP rules out: null, fractions and exponents,
    /// booleans, arrays, objects, and texts longer than [`ID_BYTES_MAX`].
    pub fn of(raw: Raw<'a>) -> Option<Self> {
        let text = raw.text();
        let is_id = match raw.kind() {
            Kind::String => true,
            Kind::Number => text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'),
            _ => false,
        };
        (is_id && text.len() <= ID_BYTES_MAX).then_some(Self(raw))
    }

    /// The id as it was written.
    pub fn text(self) -> &'a str {
        self.0.text()
    }

    /// A copy that outlives the message.
    pub fn to_owned_id(self) -> OwnedId {
        OwnedId(SmallVec::from_slice(self.text().as_bytes()))
    }
}

/// An [`Id`] on its own. Numbers and UUIDs need no allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OwnedId(SmallVec<[u8; 40]>);

impl OwnedId {
    /// The id's JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Id<'_>> for OwnedId {
    fn from(id: Id<'_>) -> Self {
        id.to_owned_id()
    }
}

impl From<i64> for OwnedId {
    /// An id of our own, for requests we send.
    fn from(number: i64) -> Self {
        Self(SmallVec::from_slice(itoa::Buffer::new().format(number).as_bytes()))
    }
}

/// Tables keyed by [`OwnedId`] are searched by text, without a copy.
impl Borrow<[u8]> for OwnedId {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq<Id<'_>> for OwnedId {
    fn eq(&self, other: &Id<'_>) -> bool {
        self.as_bytes() == other.text().as_bytes()
    }
}

impl fmt::Debug for OwnedId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OwnedId({})", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::json::guard;

    #[test]
    fn running_calls_are_found_by_text() {
        let checked = guard(br#"[1, "1", "7d444840-9dc0-11d1-b245-5ffdce74fad2"]"#).unwrap();
        let ids: Vec<Id<'_>> = checked.root().items().filter_map(Id::of).collect();
        let calls: HashMap<OwnedId, usize> =
            ids.iter().enumerate().map(|(place, id)| (OwnedId::from(*id), place)).collect();
        assert_eq!(calls.len(), 3);
        for (place, id) in ids.iter().enumerate() {
            assert_eq!(calls.get(id.text().as_bytes()), Some(&place));
        }
        assert!(OwnedId::from(1) == ids[0] && OwnedId::from(1) != ids[1]);
    }
}
