//! The hash that tells whether something was said otherwise: of a JSON document in one form,
//! whatever the order of its members, its blanks, its escapes and the spelling of its numbers.

use super::schema_hash::sha256;
use crate::json::{Kind, Raw, write_string};

/// SHA-256 of a document in canonical form: members in the order of their names, no blanks, strings
/// with the fewest escapes, and of each number its digits and its exponent, so that `1`, `1.0` and
/// `10e-1` are one number, and no two numbers that differ are, however many digits they have.
pub fn canonical_hash(document: Raw<'_>) -> [u8; 32] {
    let mut text = Vec::with_capacity(document.text().len());
    write(document, &mut text);
    sha256(&text)
}

/// Recursion is bounded: a [`Raw`] is at most [`DEPTH_MAX`](crate::json::DEPTH_MAX) levels deep.
fn write(raw: Raw<'_>, out: &mut Vec<u8>) {
    match raw.kind() {
        Kind::Null | Kind::Bool => out.extend_from_slice(raw.text().as_bytes()),
        Kind::Number => write_number(raw.text(), out),
        Kind::String => write_string(out, &raw.as_str().unwrap_or_default()),
        Kind::Array => {
            out.push(b'[');
            for (place, item) in raw.items().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Kind::Object => {
            let mut members: Vec<_> = raw.entries().collect();
            members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            out.push(b'{');
            for (place, (name, value)) in members.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_string(out, &name);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

/// Digits without zeros around them, then the exponent that makes them whole.
fn write_number(text: &str, out: &mut Vec<u8>) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let shown = digits.trim_start_matches('0').trim_end_matches('0');
    if shown.is_empty() {
        return out.push(b'0');
    }
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let places = i64::try_from(zeros).ok().zip(i64::try_from(fraction.len()).ok());
    let shift = places.map(|(zeros, fraction)| zeros - fraction);
    let exponent = exponent.parse::<i64>().ok().zip(shift);
    let Some(exponent) = exponent.and_then(|(exponent, shift)| exponent.checked_add(shift)) else {
        // An exponent beyond all reason has one spelling only.
        return out.extend_from_slice(text.as_bytes());
    };
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(shown.as_bytes());
    if exponent != 0 {
        out.extend_from_slice(format!("e{exponent}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{OwnedRaw, any_json};

    fn hash(text: &str) -> [u8; 32] {
        canonical_hash(OwnedRaw::parse(text.as_bytes()).unwrap().as_raw())
    }

    fn number(text: &str) -> String {
        let mut out = Vec::new();
        write_number(text, &mut out);
        String::from_utf8(out).unwrap()
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

    #[test]
    fn numbers_have_one_form() {
        for (text, expected) in [
            ("0", "0"),
            ("-0.00", "0"),
            ("0e5", "0"),
            ("1", "1"),
            ("1.0", "1"),
            ("10", "1e1"),
            ("1e1", "1e1"),
            ("100e-1", "1e1"),
            ("-0.05", "-5e-2"),
            ("2.50", "25e-1"),
            ("123456789012345678901234567890", "12345678901234567890123456789e1"),
            ("1e99999999999999999999", "1e99999999999999999999"),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn blanks_and_order_do_not_matter(value in any_json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(hash(&value.to_string()), hash(&pretty));
        }
    }
}
