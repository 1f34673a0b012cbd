//! Payloads for the audit, without the fields that must never be kept.
//!
//! A field is named by a path of exposed names, `customer.card.number`; arrays are passed through,
//! with or without `[*]`, and `$` is everything. Where a path leads into something that is no
//! object, such as an object that was sent as its text, what is there goes as a whole; so does a
//! member whose own name is the path, dots and all: nothing is kept because it was looked at less
//! closely than a service will.

use crate::{
    json::{self, Kind, Raw, write_string},
    mapping::{FieldPath, Segment, below_arrays, in_member},
};

/// What stands in the place of a value that is not kept.
const REDACTED: &[u8] = b"\"[redacted]\"";
/// What is kept of a text in which fields cannot be found.
const TEXT_NOT_KEPT: &[u8] = b"\"[text not kept: fields of it are to be redacted]\"";
/// What is kept of arguments that the tool does not take: a field may be there under any name.
const ARGUMENTS_NOT_KEPT: &[u8] =
    b"\"[invalid arguments not kept: fields of them are to be redacted]\"";

/// The JSON without the fields at `paths`.
pub(crate) fn json(raw: Raw<'_>, paths: &[FieldPath]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.text().len());
    let paths: Vec<&[Segment]> = paths.iter().map(|path| below_arrays(path.segments())).collect();
    write_field(raw, &paths, &mut out);
    out
}

/// The same of bytes that should be JSON. Of others nothing is kept where there are paths.
pub(crate) fn bytes(bytes: &[u8], paths: &[FieldPath]) -> Vec<u8> {
    match json::guard(bytes) {
        Ok(checked) => json(checked.root(), paths),
        Err(_) if paths.is_empty() => bytes.to_vec(),
        Err(_) => TEXT_NOT_KEPT.to_vec(),
    }
}

/// The text as JSON; nothing of it where there are paths.
pub(crate) fn text(text: &str, paths: &[FieldPath]) -> Vec<u8> {
    if !paths.is_empty() {
        return TEXT_NOT_KEPT.to_vec();
    }
    let mut out = Vec::with_capacity(text.len() + 8);
    write_string(&mut out, text);
    out
}

/// Arguments that do not fit their tool; nothing of them where there are paths.
pub(crate) fn invalid(arguments: Raw<'_>, paths: &[FieldPath]) -> Vec<u8> {
    if paths.is_empty() {
        return arguments.text().as_bytes().to_vec();
    }
    ARGUMENTS_NOT_KEPT.to_vec()
}

/// Writes what the paths lead to.
fn write_field(raw: Raw<'_>, paths: &[&[Segment]], out: &mut Vec<u8>) {
    if paths.iter().any(|path| path.is_empty()) {
        return out.extend_from_slice(REDACTED);
    }
    write(raw, paths, out);
}

/// Checked JSON is no deeper than `json::DEPTH_MAX`, and so is this.
fn write(raw: Raw<'_>, paths: &[&[Segment]], out: &mut Vec<u8>) {
    if paths.is_empty() {
        return out.extend_from_slice(raw.text().as_bytes());
    }
    match raw.kind() {
        Kind::Object => {
            out.push(b'{');
            for (index, (key, value)) in raw.entries().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(out, &key);
                out.push(b':');
                let below: Vec<_> = paths.iter().filter_map(|path| in_member(path, &key)).collect();
                write_field(value, &below, out);
            }
            out.push(b'}');
        }
        Kind::Array => {
            out.push(b'[');
            for (index, item) in raw.items().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, paths, out);
            }
            out.push(b']');
        }
        // A field lies in it that cannot be told from the rest.
        Kind::String => out.extend_from_slice(REDACTED),
        _ => out.extend_from_slice(raw.text().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<FieldPath> {
        paths.iter().map(|path| FieldPath::parse(path).unwrap()).collect()
    }

    fn redacted(json: &str, to: &[&str]) -> String {
        String::from_utf8(bytes(json.as_bytes(), &paths(to))).unwrap()
    }

    #[test]
    fn fields_go_wherever_their_path_leads() {
        for (json, paths, expected) in [
            (r#"{"a":1.50,"b":2}"#, &["b"][..], r#"{"a":1.50,"b":"[redacted]"}"#),
            (r#"{"a":{"b":1,"c":2}}"#, &["a.b"], r#"{"a":{"b":"[redacted]","c":2}}"#),
            (
                r#"{"a":[{"b":1},{"b":[2]}]}"#,
                &["a[*].b"],
                r#"{"a":[{"b":"[redacted]"},{"b":"[redacted]"}]}"#,
            ),
            (r#"[{"a":1},{"b":2}]"#, &["a"], r#"[{"a":"[redacted]"},{"b":2}]"#),
            (r#"[[{"a":1}]]"#, &["[*].a"], r#"[[{"a":"[redacted]"}]]"#),
            (r#"{"a":{"b":1}}"#, &["a.b", "a"], r#"{"a":"[redacted]"}"#),
            (r#"{"a":"{\"b\":1}"}"#, &["a.b"], r#"{"a":"[redacted]"}"#),
            (r#"{"a":null}"#, &["a.b"], r#"{"a":null}"#),
            (r#"{"a":1}"#, &[], r#"{"a":1}"#),
            (r#"{"\u0061":1}"#, &["a"], r#"{"a":"[redacted]"}"#),
        ] {
            assert_eq!(redacted(json, paths), expected, "{paths:?}");
        }
    }

    #[test]
    fn names_with_dots_and_everything_can_be_named() {
        for (json, paths, expected) in [
            (r#"{"a.b":1,"a":{"c":2}}"#, &[r"a\.b"][..], r#"{"a.b":"[redacted]","a":{"c":2}}"#),
            (
                r#"{"a.b":1,"a":{"b":2}}"#,
                &["a.b"],
                r#"{"a.b":"[redacted]","a":{"b":"[redacted]"}}"#,
            ),
            (r#"{"a.b":{"c":1},"ab":2}"#, &["a.b.c"], r#"{"a.b":{"c":"[redacted]"},"ab":2}"#),
            (r#"{"a[*]":1}"#, &[r"a\[*\]"], r#"{"a[*]":"[redacted]"}"#),
            (r#"{"a":1}"#, &["$"], r#""[redacted]""#),
            ("[1,2]", &["[*]"], r#""[redacted]""#),
        ] {
            assert_eq!(redacted(json, paths), expected, "{paths:?}");
        }
    }

    #[test]
    fn of_what_is_no_json_nothing_is_kept_that_may_hold_a_field() {
        assert_eq!(redacted("card 4111", &[]), "card 4111");
        assert!(!redacted("card 4111", &["card"]).contains("4111"));
        assert!(!String::from_utf8(text("card 4111", &paths(&["card"]))).unwrap().contains("4111"));
        assert_eq!(text("a\"b", &[]), b"\"a\\\"b\"");
    }

    #[test]
    fn of_arguments_under_wrong_names_nothing_is_kept() {
        let checked = json::guard(br#"{"crad":4111}"#).unwrap();
        assert_eq!(invalid(checked.root(), &[]), br#"{"crad":4111}"#);
        assert_eq!(invalid(checked.root(), &paths(&["card"])), ARGUMENTS_NOT_KEPT);
    }
}
