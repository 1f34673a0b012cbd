//! Which schemas a tool has, as a hash: the same on every node and after every restart.

use aws_lc_rs::digest;
use serde_json::Value;

const VERSION_BYTES: usize = 6;

/// SHA-256 of a tool's full schemas in canonical form: object members in the order of their names,
/// no white space.
pub(super) fn schema_hash(input: &Value, output: Option<&Value>) -> [u8; 32] {
    let mut text = b"{\"inputSchema\":".to_vec();
    canonical(input, &mut text);
    if let Some(output) = output {
        text.extend_from_slice(b",\"outputSchema\":");
        canonical(output, &mut text);
    }
    text.push(b'}');
    sha256(&text)
}

/// SHA-256 of a text.
pub(super) fn text_hash(text: &str) -> [u8; 32] {
    sha256(text.as_bytes())
}

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

/// The version of schemas: short, the same for the same schemas, another one for others.
pub(super) fn schema_version(hash: &[u8; 32]) -> Box<str> {
    hexadecimal(hash.get(..VERSION_BYTES).unwrap_or(hash)).into()
}

/// Two digits a byte.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Recurses as deep as the value is, which readers of files bound.
fn canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                canonical(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            // A map of another kind may keep the order of writing.
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push(b'{');
            for (place, (name, member)) in members.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                crate::json::write_string(out, name);
                out.push(b':');
                canonical(member, out);
            }
            out.push(b'}');
        }
        // Writing to memory cannot fail.
        scalar => {
            let _ = serde_json::to_writer(out, scalar);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_is_of_what_is_said_and_not_of_how() {
        let one: Value =
            serde_json::from_str(r#"{"a": 1, "b": [true, {"d": "ä", "c": 2.50}]}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"b":[true,{"c":2.5,"d":"ä"}],"a":1}"#).unwrap();
        let hash = schema_hash(&one, None);
        assert_eq!(hash, schema_hash(&other, None));
        assert_ne!(hash, schema_hash(&one, Some(&one)));
        assert_ne!(hash, schema_hash(&json!({"a": 2}), None));
        assert!(hexadecimal(&hash).starts_with(&*schema_version(&hash)));
    }

    #[test]
    fn the_hash_stays_what_it_is() {
        let hash = schema_hash(&json!({"type": "object"}), None);
        let expected = digest::digest(&digest::SHA256, br#"{"inputSchema":{"type":"object"}}"#);
        assert_eq!(hash, expected.as_ref());
        assert_eq!(hexadecimal(&[0, 0x5a, 0xff]), "005aff");
    }
}
