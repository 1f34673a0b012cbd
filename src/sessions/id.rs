//! Session ids: made, checked and hashed.
//!
//! Text: `<node>-<random>-<tag>`: the node that opened it in decimal, 128 random bits and a 64-bit
//! tag, both in unpadded base64url. The tag is HMAC-SHA256 over node, random bits and owner, cut to
//! eight bytes: enough to make guessing pointless (the 128 bits are the secret; the tag only keeps
//! strangers' ids from costing a look-up), and short.

use std::fmt;

use aws_lc_rs::{constant_time, digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::SessionKey;
use super::owner::Owner;

const NODE_DIGITS_MAX: usize = 5;
const RANDOM_CHARS: usize = 22;
const TAG_CHARS: usize = 11;
const TAIL_CHARS: usize = 1 + RANDOM_CHARS + 1 + TAG_CHARS;
const TEXT_BYTES_MAX: usize = NODE_DIGITS_MAX + TAIL_CHARS;
const TAG_BYTES: usize = 8;
/// Keeps these tags apart from others made with the same secret.
const PURPOSE: &[u8] = b"ringway session id 1";

/// A well-formed session id: a bearer capability, so `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionId {
    text: [u8; TEXT_BYTES_MAX],
    length: u8,
    node: u16,
    random: [u8; 16],
    tag: [u8; TAG_BYTES],
}

impl SessionId {
    /// Reads a header's value; `None` for anything this runtime cannot have written. Allocates
    /// nothing.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let digits = value.len().checked_sub(TAIL_CHARS)?;
        let (node, tail) = value.split_at_checked(digits)?;
        let node = parse_node(node)?;
        let (random, tag) = tail.strip_prefix(b"-")?.split_at_checked(RANDOM_CHARS)?;
        let random = decode(random)?;
        let tag = decode(tag.strip_prefix(b"-")?)?;
        let mut text = [0; TEXT_BYTES_MAX];
        text.get_mut(..value.len())?.copy_from_slice(value);
        // At most TEXT_BYTES_MAX.
        Some(Self { text, length: value.len() as u8, node, random, tag })
    }

    /// The text, for the response's header.
    pub fn as_str(&self) -> &str {
        let text = self.text.get(..usize::from(self.length)).unwrap_or_default();
        // Digits, dashes and base64url only.
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// The session's key: SHA-256 of the text, cut to sixteen bytes.
    pub fn key(&self) -> SessionKey {
        let hash = digest::digest(&digest::SHA256, self.as_str().as_bytes());
        let mut key = [0; 16];
        for (place, byte) in key.iter_mut().zip(hash.as_ref()) {
            *place = *byte;
        }
        SessionKey::from_bytes(key)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SessionId({}-…)", self.node)
    }
}

/// Makes and checks the ids of an installation.
pub struct SessionIds {
    key: hmac::Key,
    node: u16,
}

impl SessionIds {
    /// Ids under `secret`, which must stay the same over restarts and be the same on all nodes.
    pub fn new(secret: &[u8; 32], node: u16) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret), node }
    }

    /// A new id for `owner`. `random` must come from the system's generator.
    pub fn mint(&self, random: [u8; 16], owner: &Owner<'_>) -> SessionId {
        let tag = self.tag(self.node, &random, owner);
        let mut id =
            SessionId { text: [0; TEXT_BYTES_MAX], length: 0, node: self.node, random, tag };
        let mut digits = itoa::Buffer::new();
        let node = digits.format(self.node).as_bytes();
        let mut chars = [0; TAIL_CHARS];
        chars[0] = b'-';
        chars[1 + RANDOM_CHARS] = b'-';
        // The places have exactly the length of the encoded bytes: encoding cannot fail.
        let encoded = URL_SAFE_NO_PAD
            .encode_slice(random, &mut chars[1..=RANDOM_CHARS])
            .and(URL_SAFE_NO_PAD.encode_slice(tag, &mut chars[2 + RANDOM_CHARS..]));
        debug_assert!(encoded.is_ok());
        for (place, byte) in id.text.iter_mut().zip(node.iter().chain(&chars)) {
            *place = *byte;
        }
        id.length = (node.len() + chars.len()) as u8;
        id
    }

    /// Whether this installation gave the id to this owner. `true` does not say that the session
    /// still exists; `false` says that there is nothing to ask the store for.
    pub fn belongs(&self, id: &SessionId, owner: &Owner<'_>) -> bool {
        let expected = self.tag(id.node, &id.random, owner);
        constant_time::verify_slices_are_equal(&expected, &id.tag).is_ok()
    }

    fn tag(&self, node: u16, random: &[u8; 16], owner: &Owner<'_>) -> [u8; TAG_BYTES] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(PURPOSE);
        context.update(&node.to_be_bytes());
        context.update(random);
        for part in owner.parts() {
            // Each part after its length (bounded by the owner): no two owners give the same bytes.
            context.update(&(part.len() as u16).to_be_bytes());
            context.update(part.as_bytes());
        }
        let mut tag = [0; TAG_BYTES];
        for (place, byte) in tag.iter_mut().zip(context.sign().as_ref()) {
            *place = *byte;
        }
        tag
    }
}

impl fmt::Debug for SessionIds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SessionIds").field("node", &self.node).finish_non_exhaustive()
    }
}

fn parse_node(digits: &[u8]) -> Option<u16> {
    let leading_zero = digits.len() > 1 && digits[0] == b'0';
    if digits.is_empty() || digits.len() > NODE_DIGITS_MAX || leading_zero {
        return None;
    }
    digits.iter().try_fold(0_u16, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        value.checked_mul(10)?.checked_add(u16::from(digit))
    })
}

/// Exactly `N` bytes of canonical base64url (unused bits are zero).
fn decode<const N: usize>(chars: &[u8]) -> Option<[u8; N]> {
    // The decoder asks for whole groups of three bytes.
    let mut bytes = [0; 18];
    let length = URL_SAFE_NO_PAD.decode_slice(chars, &mut bytes).ok()?;
    bytes.get(..length)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn owner(parts: [&str; 3]) -> Owner<'_> {
        Owner::new(parts[0], parts[1], parts[2]).unwrap()
    }

    #[test]
    fn an_id_belongs_to_its_owner_alone() {
        let ids = SessionIds::new(&[7; 32], 12);
        let alice = owner(["acme", "desk", "key-1"]);
        let id = ids.mint([9; 16], &alice);
        assert_eq!(id.as_str().len(), 2 + TAIL_CHARS);
        assert!(id.as_str().starts_with("12-CQkJCQkJCQkJCQkJCQkJCQ-"));
        let parsed = SessionId::parse(id.as_str().as_bytes()).unwrap();
        assert_eq!(parsed, id);
        assert_eq!(parsed.key(), id.key());
        assert!(ids.belongs(&parsed, &alice));
        for parts in [
            ["acm", "edesk", "key-1"],
            ["acme", "desk", "key-2"],
            ["acme", "des", "kkey-1"],
            ["acme", "desk2", "key-1"],
            ["other", "desk", "key-1"],
            ["", "", ""],
        ] {
            assert!(!ids.belongs(&id, &owner(parts)), "{parts:?}");
        }
        assert!(!SessionIds::new(&[8; 32], 12).belongs(&id, &alice));
        assert!(SessionIds::new(&[7; 32], 13).belongs(&id, &alice), "any node can check");
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let ids = SessionIds::new(&[7; 32], 0);
        let alice = owner(["acme", "desk", "key-1"]);
        let text = ids.mint([0xa5; 16], &alice).as_str().as_bytes().to_vec();
        for at in 0..text.len() {
            for byte in 0..=255 {
                let mut changed = text.clone();
                changed[at] = byte;
                let belongs = SessionId::parse(&changed).is_some_and(|id| ids.belongs(&id, &alice));
                assert_eq!(belongs, changed == text, "byte {byte} at {at}");
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let random = "AAAAAAAAAAAAAAAAAAAAAA";
        let tag = "AAAAAAAAAAA";
        assert!(SessionId::parse(format!("65535-{random}-{tag}").as_bytes()).is_some());
        for text in [
            String::new(),
            "00000000".into(),
            format!("-{random}-{tag}"),
            format!("00-{random}-{tag}"),
            format!("01-{random}-{tag}"),
            format!("65536-{random}-{tag}"),
            format!("100000-{random}-{tag}"),
            format!("+1-{random}-{tag}"),
            format!(" 1-{random}-{tag}"),
            format!("1-{random}-{tag} "),
            format!("1_{random}-{tag}"),
            format!("1-{random}_{tag}"),
            format!("1-{random}--{tag}"),
            format!("1-{random}A-{tag}"),
            format!("1-AAAAAAAAAAAAAAAAAAAAAB-{tag}"),
            format!("1-{random}-AAAAAAAAAAB"),
            format!("1-{random}-AAAAAAAAAA="),
            format!("1-AAAAAAAAAAAAAAAAAAAA+A-{tag}"),
            format!("1-{random}-{tag}").repeat(40),
        ] {
            assert_eq!(SessionId::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn nothing_shows_the_secret() {
        let ids = SessionIds::new(&[7; 32], 3);
        let id = ids.mint([1; 16], &owner(["t", "c", "k"]));
        assert_eq!(format!("{id:?}"), "SessionId(3-…)");
        assert_eq!(format!("{ids:?}"), "SessionIds { node: 3, .. }");
    }

    proptest! {
        #[test]
        fn minted_ids_parse(random: [u8; 16], node: u16, secret: [u8; 32]) {
            let ids = SessionIds::new(&secret, node);
            let owner = owner(["tenant", "client", "open"]);
            let id = ids.mint(random, &owner);
            prop_assert!(id.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
            let parsed = SessionId::parse(id.as_str().as_bytes());
            prop_assert_eq!(parsed, Some(id));
            prop_assert!(ids.belongs(&id, &owner));
        }

        #[test]
        fn any_bytes_parse_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(id) = SessionId::parse(&bytes) {
                prop_assert_eq!(id.as_str().as_bytes(), &bytes[..]);
            }
        }
    }
}
