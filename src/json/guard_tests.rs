//! Tests of the guard: tables, properties against `serde_json` and `sonic_rs`, bombs, timing.

use std::hint::black_box;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::*;

/// Random documents, with strings that need escapes and numbers of all sorts.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1.0e9..1.0e9).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z\"\\\\\n]{0,30}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map("[a-d\"\\\\\u{1}é]{0,4}", inner, 0..8)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// What `serde_json` says of the grammar. Building a tree also checks the strings, but stops at
/// numbers that no double holds.
fn serde_json_accepts(bytes: &[u8]) -> Option<bool> {
    if std::str::from_utf8(bytes).is_err() || serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
        return Some(false);
    }
    match serde_json::from_slice::<Value>(bytes) {
        Ok(_) => Some(true),
        Err(error) if error.to_string().contains("out of range") => None,
        Err(error) if error.to_string().contains("recursion limit") => None,
        Err(_) => Some(false),
    }
}

fn agrees_with_serde_json(bytes: &[u8]) {
    let accepted = match guard(bytes) {
        Ok(_) => true,
        Err(JsonError::DuplicateKey { .. } | JsonError::TooDeep) => return,
        Err(_) => false,
    };
    if let Some(expected) = serde_json_accepts(bytes) {
        assert_eq!(accepted, expected, "{:?}", String::from_utf8_lossy(bytes));
        if accepted {
            assert!(sonic_rs::from_slice::<sonic_rs::Value>(bytes).is_ok());
        }
    }
}

const GOOD: &[&str] = &[
    "0",
    "-0",
    "10",
    "-1.5e+10",
    "1E5",
    "0.0",
    "1e400",
    "[]",
    "{}",
    " [ 1 , 2 ] ",
    "\t\r\n1\n",
    "\"\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "\"\u{7f}\"",
    "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}]}",
    "[true,false,null]",
    "\"\\uD800\\uDC00\"",
    "123456789012345678901234567890",
];

const BAD: &[&str] = &[
    "",
    " ",
    "01",
    "-",
    "+1",
    ".5",
    "1.",
    "1e",
    "1e+",
    "1.e1",
    "0x1",
    "--1",
    "NaN",
    "Infinity",
    "tru",
    "truex",
    "nul",
    "True",
    "[",
    "]",
    "{",
    "}",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{\"a\" 1}",
    "{a:1}",
    "{1:1}",
    "{\"a\":1]",
    "[1}",
    "1 2",
    "[1]]",
    "\"",
    "\"\\\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\n\"",
    "\"\0\"",
    "\"\\ud800\"",
    "\"\\ud800x\"",
    "\"\\ud800\\n\"",
    "\"\\ud800\\u0041\"",
    "\"\\udc00\"",
    "'a'",
    "[1]//",
    "/**/1",
    "\u{feff}1",
    "\u{a0}1",
    "1\u{b}",
    "[\"a\":1]",
    "\0",
    "1\0",
    "\"\\u+123\"",
];

#[test]
fn the_grammar_is_that_of_the_standard() {
    for text in GOOD {
        assert_eq!(guard(text.as_bytes()).map(Checked::text), Ok(*text));
        agrees_with_serde_json(text.as_bytes());
    }
    for text in BAD {
        let answer = guard(text.as_bytes());
        assert!(matches!(answer, Err(JsonError::Malformed { .. })), "{text:?}: {answer:?}");
        agrees_with_serde_json(text.as_bytes());
    }
    for bytes in [
        &b"\"\xff\""[..],
        b"\xff",
        b"\"\xed\xa0\x80\"",
        b"\"\xc0\xaf\"",
        b"\"\xf0\x9f\"",
        b"{\"\x80\":1}",
    ] {
        assert_eq!(guard(bytes), Err(JsonError::NotUtf8));
    }
}

#[test]
fn errors_say_where_and_what() {
    let error = guard(b"{\"a\":1,}").unwrap_err();
    assert_eq!(error.to_string(), "malformed JSON at byte 7: expected a key");
    let error = guard(b"{\"a\":1,\"a\":2}").unwrap_err();
    assert_eq!(error, JsonError::DuplicateKey { key: "a".into(), offset: 7 });
}

#[test]
fn depth_is_counted_in_arrays_and_objects() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(guard(nested(DEPTH_MAX).as_bytes()).is_ok());
    assert_eq!(guard(nested(DEPTH_MAX + 1).as_bytes()), Err(JsonError::TooDeep));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert!(guard(objects(DEPTH_MAX).as_bytes()).is_ok());
    assert_eq!(guard(objects(DEPTH_MAX + 1).as_bytes()), Err(JsonError::TooDeep));
    let wide = format!("[{}[]]", "[],".repeat(10_000));
    assert!(guard(wide.as_bytes()).is_ok());
}

#[test]
fn depth_bombs_are_refused_at_once() {
    let began = Instant::now();
    for piece in ["[", "{\"a\":", "[{\"a\":", " [ ", "[1,"] {
        let bomb = piece.repeat(8 << 20 >> 2);
        assert_eq!(guard(bomb.as_bytes()), Err(JsonError::TooDeep));
    }
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn keys_repeat_at_no_level_and_in_no_spelling() {
    let bad = [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":1}"#,
        r#"{"\u0061":1,"a":1}"#,
        r#"[[{"x":{"":1,"b":2,"":3}}]]"#,
        r#"{"a":{"b":1},"c":[{}],"a":2}"#,
        r#"{"\ud83d\ude00":1,"😀":1}"#,
        r#"{"a\/b":1,"a/b":2}"#,
    ];
    for text in bad {
        let answer = guard(text.as_bytes());
        assert!(matches!(answer, Err(JsonError::DuplicateKey { .. })), "{text}: {answer:?}");
    }
    for text in [r#"{"a":{"a":{"a":[{"a":1},{"a":1}]}}}"#, r#"{"a":1,"A":2,"á":3,"a ":4}"#] {
        assert!(guard(text.as_bytes()).is_ok(), "{text}");
    }
}

#[test]
fn large_objects_are_checked_in_linear_time() {
    let members: Vec<String> = (0..100_000).map(|number| format!("\"key{number}\":0")).collect();
    let text = format!("{{\"outer\":{{{}}},\"inner\":1}}", members.join(","));
    let began = Instant::now();
    assert!(guard(text.as_bytes()).is_ok());
    assert!(began.elapsed() < Duration::from_secs(2));
    for duplicate in [0, 31, 32, 33, 500, 99_999] {
        let text = format!("{{{},\"k\\u0065y{duplicate}\":1}}", members.join(","));
        assert!(matches!(guard(text.as_bytes()), Err(JsonError::DuplicateKey { .. })));
    }
    // The set of one object must not leak into the next, nor into the one around it.
    let large = format!("{{{}}}", members[..100].join(","));
    let text = format!("{{\"key0\":[{large},{large},{{\"x\":{large}}}],\"key1\":{large}}}");
    assert!(guard(text.as_bytes()).is_ok());
}

#[test]
fn shown_keys_are_short() {
    let key = "k".repeat(10_000);
    let error = guard(format!("{{\"{key}\":1,\"{key}\":1}}").as_bytes()).unwrap_err();
    assert!(error.to_string().len() < 200);
}

/// `cargo test --release --lib json::guard -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn timing() {
    let ping = r#"{"jsonrpc":"2.0","id":17,"method":"ping"}"#;
    let call = concat!(
        r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"orders_search","#,
        r#""arguments":{"customer":"C-1042","limit":25,"open":true}}}"#
    );
    let rows = format!("[{}]", [call; 1000].join(","));
    for text in [ping, call, &rows] {
        let rounds = 20_000_000 / text.len();
        let time = |name: &str, work: &dyn Fn()| {
            let began = Instant::now();
            (0..rounds).for_each(|_| work());
            println!("{name} {} bytes: {:?}", text.len(), began.elapsed() / rounds as u32);
        };
        let bytes = black_box(text.as_bytes());
        let root = guard(bytes).unwrap().root();
        time("guard", &|| assert!(guard(bytes).is_ok()));
        time("sonic_rs skip", &|| {
            let skipped = sonic_rs::from_slice::<sonic_rs::LazyValue<'_>>(bytes);
            assert!(skipped.is_ok());
        });
        time("walk", &|| assert!(root.entries().count() + root.items().count() > 0));
        time("sonic_rs walk", &|| {
            let members = sonic_rs::to_object_iter(root.text()).count();
            assert!(members + sonic_rs::to_array_iter(root.text()).count() > 0);
        });
    }
}

proptest! {
    #[test]
    fn every_document_of_serde_json_passes(value in any_json(), pretty: bool) {
        let text = if pretty { format!("{value:#}") } else { format!("{value}") };
        prop_assert_eq!(guard(text.as_bytes()).map(Checked::text), Ok(text.as_str()));
        let seen: Value = sonic_rs::from_str(&text).unwrap();
        prop_assert_eq!(seen, serde_json::from_str::<Value>(&text).unwrap());
    }

    #[test]
    fn mutated_documents_are_judged_alike(
        value in any_json(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>(), 0..4_u8), 1..4),
    ) {
        let mut bytes = value.to_string().into_bytes();
        let punctuation = b"{}[]\",:\\u0e-+.tfn \n";
        for (index, byte, change) in changes {
            let at = index.index(bytes.len().max(1));
            match change {
                3 => bytes.insert(at, punctuation[usize::from(byte) % punctuation.len()]),
                0 if at < bytes.len() => { bytes.remove(at); }
                1 if at < bytes.len() => bytes[at] = byte,
                _ => bytes.insert(at.min(bytes.len()), byte),
            }
        }
        agrees_with_serde_json(&bytes);
    }

    #[test]
    fn soup_is_judged_alike(text in "[\\[\\]{}\",:0-9eE+.\\\\utrfalsn \\-d8c]{0,24}") {
        agrees_with_serde_json(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_judged_alike(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        agrees_with_serde_json(&bytes);
    }

    #[test]
    fn every_cut_of_a_document_is_refused(value in any_json(), cut in any::<Index>()) {
        let text = format!("[{value}]");
        let cut = cut.index(text.len());
        prop_assert!(guard(&text.as_bytes()[..cut]).is_err());
    }
}
