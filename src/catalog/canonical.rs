//! The hash that tells whether something was said otherwise: of a JSON document in one form,
//! whatever the order of its members, its blanks, its escapes and the spelling of its numbers.

use super::schema_hash::sha256;
use crate::json::{Raw, write_canonical};

/// SHA-256 of a document in canonical form.
pub fn canonical_hash(document: Raw<'_>) -> [u8; 32] {
    let mut text = Vec::with_capacity(document.text().len());
    write_canonical(&mut text, document);
    sha256(&text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{OwnedRaw, any_json};

    fn hash(text: &str) -> [u8; 32] {
        canonical_hash(OwnedRaw::parse(text.as_bytes()).unwrap().as_raw())
    }

    #[test]
    fn the_hash_is_of_what_is_said_and_not_of_how() {
        let one = r#"{"a": 1, "b": [true, {"d": "\u00e4", "c": 2.50}], "e": null}"#;
        let other = r#"{"e":null,"b":[true,{"c":25e-1,"d":"ä"}],"a":1.0}"#;
        assert_eq!(hash(one), hash(other));
        for different in [
            r#"{"a":1,"b":[true,{"c":2.5,"d":"ä"}]}"#,
            r#"{"a":"1","b":[true,{"c":2.5,"d":"ä"}],"e":null}"#,
            r#"{"a":1,"b":[{"c":2.5,"d":"ä"},true],"e":null}"#,
            r#"{"a":1,"b":[true,{"c":2.5000000000000000001,"d":"ä"}],"e":null}"#,
        ] {
            assert_ne!(hash(one), hash(different), "{different}");
        }
        assert_eq!(hash(r#" { "a" : [ 1 , "b" ] } "#), sha256(br#"{"a":[1,"b"]}"#));
    }

    proptest! {
        #[test]
        fn blanks_and_order_do_not_matter(value in any_json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(hash(&value.to_string()), hash(&pretty));
        }
    }
}
