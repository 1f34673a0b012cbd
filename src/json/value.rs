//! From exact text to a `serde_json` tree and back, for those who need one.

use serde_json::{Map, Number, Value};

use super::text::checked_string_end;
use super::{Kind, Raw};

/// The value as a tree, with numbers as close as a tree can hold them: integers of 64 bits are
/// exact, others become the nearest double, and what no double can hold (`1e400`) the largest.
/// Where exactness matters keep the [`Raw`].
pub fn to_value(raw: Raw<'_>) -> Value {
    // As fast as `serde_json` at building its trees, and it goes the whole depth that the guard
    // lets through, where `serde_json` stops one level above. Numbers beyond a double fail in both.
    sonic_rs::from_str(raw.text()).unwrap_or_else(|_| built(raw))
}

/// Writes a tree as JSON text.
pub fn write_value(out: &mut Vec<u8>, value: &Value) {
    // Keys are strings and memory takes every byte, so this cannot fail.
    let _ = serde_json::to_writer(out, value);
}

/// Writes a value as it was written, without the blanks between its parts.
pub fn write_raw(out: &mut Vec<u8>, raw: Raw<'_>) {
    let bytes = raw.text().as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let end = if byte == b'"' { checked_string_end(bytes, at + 1) + 1 } else { at + 1 };
        if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            out.extend_from_slice(bytes.get(at..end).unwrap_or_default());
        }
        at = end;
    }
}

/// Recursion is bounded: a [`Raw`] is at most `DEPTH_MAX` levels deep.
fn built(raw: Raw<'_>) -> Value {
    match raw.kind() {
        Kind::Null => Value::Null,
        Kind::Bool => Value::Bool(raw.as_bool() == Some(true)),
        Kind::Number => Value::Number(number(raw)),
        Kind::String => Value::String(raw.as_str().unwrap_or_default().into_owned()),
        Kind::Array => Value::Array(raw.items().map(built).collect()),
        Kind::Object => {
            let members = raw.entries().map(|(key, value)| (key.into_owned(), built(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

fn number(raw: Raw<'_>) -> Number {
    serde_json::from_str(raw.text()).unwrap_or_else(|_| {
        let nearest = if raw.text().starts_with('-') { f64::MIN } else { f64::MAX };
        Number::from_f64(nearest).unwrap_or_else(|| Number::from(0))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{DEPTH_MAX, guard};
    use super::*;

    fn value(text: &str) -> Value {
        to_value(guard(text.as_bytes()).unwrap().root())
    }

    #[test]
    fn trees_are_those_of_serde_json() {
        let text = r#"{"a":[1,-2,2.5,18446744073709551615,"x\n",true,null,{}]}"#;
        assert_eq!(value(text), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn what_no_tree_can_hold_comes_as_near_as_it_can() {
        assert_eq!(value(r#"{"a":[1e400,"b"]}"#)["a"][0], f64::MAX);
        assert_eq!(value("[-1e400]")[0], f64::MIN);
        assert_eq!(
            value("123456789012345678901234567890"),
            123_456_789_012_345_678_901_234_567_890.0
        );
    }

    #[test]
    fn blanks_go_and_nothing_else() {
        let text = " {\"a b\" : [ 1.50 ,\n\t\" \\\" \" , null ] , \"c\":{ } } ";
        let mut out = Vec::new();
        write_raw(&mut out, guard(text.as_bytes()).unwrap().root());
        assert_eq!(out, br#"{"a b":[1.50," \" ",null],"c":{}}"#);
    }

    #[test]
    fn the_deepest_text_that_passes_becomes_a_tree() {
        let text = format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        assert_eq!(value(&text).to_string(), text);
    }
}
