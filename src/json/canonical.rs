//! One text for one value, for hashes that tell whether something was said otherwise.

use std::borrow::Cow;
use std::io::Write as _;

use super::{Kind, Raw, write_string};

/// Writes a value in canonical form: members in the order of their names, no blanks, strings with
/// the fewest escapes, and of each number its digits and its exponent, so that `1`, `1.0` and
/// `10e-1` are one number, and no two numbers that differ are, however many digits they have.
///
/// Recursion is bounded: a [`Raw`] is at most [`DEPTH_MAX`](super::DEPTH_MAX) levels deep.
pub fn write_canonical(out: &mut Vec<u8>, value: Raw<'_>) {
    match value.kind() {
        Kind::Null | Kind::Bool => out.extend_from_slice(value.text().as_bytes()),
        Kind::Number => write_number(out, value.text()),
        Kind::String => write_string(out, &value.as_str().unwrap_or_default()),
        Kind::Array => {
            out.push(b'[');
            for (place, item) in value.items().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_canonical(out, item);
            }
            out.push(b']');
        }
        Kind::Object => write_canonical_object(out, value.entries()),
    }
}

/// Writes an object of these members, none of them twice, in canonical form.
pub fn write_canonical_object<'a>(
    out: &mut Vec<u8>,
    members: impl Iterator<Item = (Cow<'a, str>, Raw<'a>)>,
) {
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    out.push(b'{');
    for (place, (name, value)) in members.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_string(out, &name);
        out.push(b':');
        write_canonical(out, value);
    }
    out.push(b'}');
}

/// Digits without zeros around them, then the exponent that makes them whole.
fn write_number(out: &mut Vec<u8>, text: &str) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let kept = if fraction.is_empty() { whole.trim_end_matches('0') } else { whole };
    let shift = i64::try_from(whole.len() - kept.len()).ok();
    let shift = shift.zip(i64::try_from(fraction.len()).ok()).map(|(zeros, places)| zeros - places);
    let whole = kept.trim_start_matches('0');
    let fraction = if whole.is_empty() { fraction.trim_start_matches('0') } else { fraction };
    if whole.is_empty() && fraction.is_empty() {
        return out.push(b'0');
    }
    let exponent = exponent.parse::<i64>().ok().zip(shift);
    let Some(exponent) = exponent.and_then(|(exponent, shift)| exponent.checked_add(shift)) else {
        // An exponent beyond all reason has one spelling only.
        return out.extend_from_slice(text.as_bytes());
    };
    for part in [sign, whole, fraction] {
        out.extend_from_slice(part.as_bytes());
    }
    if exponent != 0 {
        // Writing to memory cannot fail.
        let _ = write!(out, "e{exponent}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> String {
        let mut out = Vec::new();
        write_number(&mut out, text);
        String::from_utf8(out).unwrap()
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
            ("0.10", "1e-1"),
            ("10.0", "1e1"),
            ("10.010", "1001e-2"),
            ("1000E+2", "1e5"),
            ("2.50", "25e-1"),
            ("123456789012345678901234567890", "12345678901234567890123456789e1"),
            ("1e99999999999999999999", "1e99999999999999999999"),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}
