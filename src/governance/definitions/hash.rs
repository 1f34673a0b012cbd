//! Hashes as people read and name them.

use std::fmt::Write as _;

/// Bytes as hexadecimal digits.
pub fn hash_text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing into a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The hash that [`hash_text`] wrote.
pub fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hashes_are_read_as_they_are_written(hash: [u8; 32], text: String) {
            prop_assert_eq!(parse_hash(&hash_text(&hash)), Some(hash));
            prop_assert!(parse_hash(&text).is_none_or(|_| text.len() == 64));
        }
    }
}
