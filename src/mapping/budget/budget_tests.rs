//! Tests of cut answers: the parts are the whole, each has something, none is too large.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::{Kind, Raw, any_json, write_string};

fn budget(rows: u64, string_bytes: u64, bytes: u64) -> ResultBudget {
    let given = |limit: u64| Some(limit).filter(|limit| *limit > 0);
    ResultBudget { rows: given(rows), string_bytes: given(string_bytes), bytes: given(bytes) }
}

/// The values of a document as text, so that digits count, in a tree that parts are added to.
#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Other(String),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

fn tree(raw: Raw<'_>) -> Tree {
    match raw.kind() {
        Kind::Array => Tree::Array(raw.items().map(tree).collect()),
        Kind::Object => Tree::Object(
            raw.entries().map(|(key, value)| (key.into_owned(), tree(value))).collect(),
        ),
        Kind::String => Tree::Text(raw.as_str().unwrap().into_owned()),
        _ => Tree::Other(raw.text().to_owned()),
    }
}

fn parsed(json: &[u8]) -> Tree {
    tree(guard(json).unwrap().root())
}

impl Tree {
    fn at(&mut self, pointer: &str) -> &mut Self {
        let mut at = self;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            at = match at {
                Self::Array(items) => &mut items[step.parse::<usize>().unwrap()],
                Self::Object(members) => {
                    &mut members.iter_mut().find(|(name, _)| *name == step).unwrap().1
                }
                other => unreachable!("{step} in {other:?}"),
            };
        }
        at
    }

    /// As a client puts a part to what it has.
    fn add(&mut self, part: &[u8]) {
        let root = guard(part).unwrap().root();
        for entry in root.get("continues").unwrap().items() {
            let at = entry.get("at").unwrap().as_str().unwrap();
            let from = entry.get("from").map(|from| from.as_u64().unwrap() as usize);
            match self.at(&at) {
                Self::Array(items) => {
                    assert_eq!(from, Some(items.len()), "{at}");
                    items.extend(entry.get("rows").unwrap().items().map(tree));
                }
                Self::Object(members) => {
                    let Tree::Object(more) = tree(entry.get("members").unwrap()) else {
                        unreachable!()
                    };
                    assert!(!more.is_empty());
                    members.extend(more);
                }
                Self::Text(text) => {
                    let more = entry.get("text").unwrap().as_str().unwrap().into_owned();
                    assert!(!more.is_empty());
                    text.push_str(&more);
                }
                Self::Other(_) => unreachable!("{at}"),
            }
        }
    }
}

/// The parts put together, and how many bytes the largest has.
fn all_parts(json: &[u8], limits: &ResultBudget) -> Option<(Tree, usize, usize)> {
    let Cut { json: first, mut rest, .. } = cut(json, limits)?;
    let mut whole = parsed(&first);
    let (mut largest, mut count) = (first.len(), 1);
    while let Some(part) = rest.next(limits) {
        whole.add(&part.json);
        largest = largest.max(part.json.len());
        count += 1;
        assert!(count < 100_000);
    }
    assert!(rest.is_empty());
    Some((whole, largest, count))
}

fn rows(count: usize) -> Value {
    let row =
        |index: usize| json!({"id": index, "name": format!("row {index}"), "tags": ["a", "b"]});
    (0..count).map(row).collect()
}

#[test]
fn what_fits_is_not_touched() {
    let text = rows(50).to_string();
    for limits in [
        ResultBudget::default(),
        budget(50, 0, 0),
        budget(0, 100, 0),
        budget(0, 0, 100_000),
        budget(60, 100, 10_000),
    ] {
        assert!(cut(text.as_bytes(), &limits).is_none(), "{limits:?}");
    }
    assert!(cut(b"no JSON, but far too long", &budget(1, 16, 1024)).is_none());
}

#[test]
fn what_stands_alone_needs_no_room_for_a_comma() {
    for text in [r#"{"a":{"b":1}}"#, r#"{"a":{"b":{"c":"d"}}}"#, r#"{"a":[{"b":[1]}]}"#] {
        assert!(cut(text.as_bytes(), &budget(10, 0, 0)).is_none(), "{text}");
        assert!(cut(text.as_bytes(), &budget(10, 16, 4096)).is_none(), "{text}");
    }
}

#[test]
fn rows_are_cut_in_arrays_that_stand_in_no_other() {
    let lines: Vec<u8> = (0..30).collect();
    let row = json!({"lines": lines});
    let body = json!({"a": {"orders": vec![row.clone(); 25]}, "few": [1, 2], "total": 25});
    let text = body.to_string();
    let limits = budget(10, 0, 0);
    let Cut { json, missing, mut rest } = cut(text.as_bytes(), &limits).unwrap();
    let expected = json!({"a": {"orders": vec![row.clone(); 10]}, "few": [1, 2], "total": 25});
    assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), expected);
    assert_eq!(missing.to_string(), "15 more rows at /a/orders");
    assert_eq!((missing.rows, missing.members, missing.string_bytes), (15, 0, 0));
    assert!(rest.memory_bytes() > text.len());
    let kept = rest.clone();
    let second = rest.next(&limits).unwrap();
    let expected =
        json!({"continues": [{"at": "/a/orders", "from": 10, "rows": vec![row.clone(); 10]}]});
    assert_eq!(serde_json::from_slice::<Value>(&second.json).unwrap(), expected);
    assert_eq!(second.missing.to_string(), "5 more rows at /a/orders");
    // A part can be asked for again from the state before it.
    assert_eq!(kept.clone().next(&limits).unwrap(), second);
    let third = rest.next(&limits).unwrap();
    assert_eq!(third.missing, Missing::default());
    assert!(rest.is_empty() && rest.next(&limits).is_none());
}

#[test]
fn the_largest_gives_way_and_small_members_stay() {
    let body = json!({
        "big": rows(500), "middle": rows(3), "note": "x".repeat(300), "total": 500, "next": "n",
    });
    let text = body.to_string();
    let Cut { json, missing, .. } = cut(text.as_bytes(), &budget(0, 0, 4096)).unwrap();
    assert!(json.len() <= 4096 && json.len() > 3900, "{}", json.len());
    let kept: Value = serde_json::from_slice(&json).unwrap();
    for key in ["middle", "note", "total", "next"] {
        assert_eq!(kept[key], body[key], "{key}");
    }
    assert_eq!((missing.places.len(), &*missing.places[0].at), (1, "/big"));
    assert_eq!(kept["big"].as_array().unwrap().len() as u64 + missing.rows, 500);
}

#[test]
fn strings_are_cut_at_characters_and_told() {
    let text = format!(
        r#"{{"rows":[{{"t":"{}"}},{{"t":"short"}}],"{}":1}}"#,
        r"é\u00e9\ud83d\ude00\n".repeat(10),
        "k".repeat(50),
    );
    let limits = budget(0, 20, 0);
    let Cut { json, missing, mut rest } = cut(text.as_bytes(), &limits).unwrap();
    let shown = String::from_utf8(json).unwrap();
    // Two bytes, six, and no half of the pair.
    assert!(shown.starts_with(r#"{"rows":[{"t":"é\u00e9\ud83d\ude00"},{"t":"short"}]"#), "{shown}");
    assert_eq!(missing.string_bytes, 22 * 10 - 20);
    assert_eq!(missing.to_string(), "200 more bytes of text at /rows/0/t");
    let next = String::from_utf8(rest.next(&limits).unwrap().json).unwrap();
    assert!(next.starts_with(r#"{"continues":[{"at":"/rows/0/t","from":20,"text":"\né"#), "{next}");
    let (whole, ..) = all_parts(text.as_bytes(), &limits).unwrap();
    assert_eq!(whole, parsed(text.as_bytes()));
}

#[test]
fn rows_come_before_the_ends_of_strings() {
    let row = json!({"t": "x".repeat(100)});
    let text = json!([row, row, row]).to_string();
    let limits = budget(1, 16, 0);
    let mut rest = cut(text.as_bytes(), &limits).unwrap().rest;
    let mut order = Vec::new();
    while let Some(part) = rest.next(&limits) {
        let value: Value = serde_json::from_slice(&part.json).unwrap();
        let entries = value["continues"].as_array().unwrap();
        order.extend(entries.iter().map(|entry| entry["at"].as_str().unwrap().to_owned()));
    }
    assert_eq!(order[..2], ["", ""]);
    assert!(order[2..].iter().all(|at| at.ends_with("/t")));
}

#[test]
fn one_huge_row_and_too_many_members_end_too() {
    let members: serde_json::Map<String, Value> =
        (0..2000).map(|index| (format!("m{index}"), json!(index))).collect();
    let huge = json!([{"deep": {"members": members, "text": "y".repeat(9000)}}, 1, 2]);
    let limits = budget(0, 0, 1024);
    for value in [huge, json!("z".repeat(5000)), json!({"": {"~/": rows(99)}})] {
        let text = value.to_string();
        let (whole, largest, count) = all_parts(text.as_bytes(), &limits).unwrap();
        assert_eq!(whole, parsed(text.as_bytes()));
        assert!(largest <= 1024 + 64, "{largest}");
        assert!(count < 60, "{count}");
    }
    let number = format!("[{},2]", "1".repeat(5000));
    let (whole, ..) = all_parts(number.as_bytes(), &limits).unwrap();
    assert_eq!(whole, parsed(number.as_bytes()));
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    assert!(cut(deep.as_bytes(), &budget(1, 16, 0)).is_none());
}

#[test]
fn what_is_named_is_bounded() {
    let row = json!({"k".repeat(500): "x".repeat(40)});
    let text = json!(vec![row; 100]).to_string();
    let Cut { missing, .. } = cut(text.as_bytes(), &budget(0, 16, 0)).unwrap();
    assert_eq!((missing.places.len(), missing.string_bytes), (MISSING_NAMED_MAX, 2400));
    assert!(missing.places[0].at.len() < 220);
    assert!(missing.to_string().ends_with(", and more elsewhere"));
}

/// A quadratic walk over this would take minutes.
#[test]
fn work_is_linear() {
    let nested = format!("{}{}", r#"{"a":"#.repeat(100), "1".to_owned() + &"}".repeat(100));
    let text = format!("[{}]", vec![nested; 2000].join(","));
    let limits = budget(0, 0, 2048);
    let mut rest = cut(text.as_bytes(), &limits).unwrap().rest;
    for _ in 0..20 {
        rest.next(&limits).unwrap();
    }
    let strings = format!("[{}]", vec![format!("\"{}\"", "é".repeat(40)); 20_000].join(","));
    let limits = budget(0, 16, 100_000);
    let mut rest = cut(strings.as_bytes(), &limits).unwrap().rest;
    for _ in 0..20 {
        rest.next(&limits).unwrap();
    }
}

#[test]
fn what_fits_without_blanks_is_given_without_them() {
    let pretty = serde_json::to_vec_pretty(&rows(40)).unwrap();
    let limits = budget(0, 0, pretty.len() as u64 - 1);
    let Cut { json, missing, rest } = cut(&pretty, &limits).unwrap();
    assert!(json.len() < pretty.len());
    assert_eq!(parsed(&json), parsed(&pretty));
    assert!(rest.is_empty() && missing == Missing::default());
    assert!(cut(&json, &limits).is_none());
}

#[test]
fn budgets_are_checked() {
    assert_eq!(budget(1, 16, 1024).problem(), None);
    assert_eq!(ResultBudget::default().problem(), None);
    let zero = ResultBudget { rows: Some(0), ..ResultBudget::default() };
    assert_eq!(zero.problem().unwrap(), "rows: expected 1 or more");
    assert!(budget(1, 15, 1024).problem().unwrap().starts_with("string_bytes"));
    assert!(budget(1, 16, 1023).problem().unwrap().starts_with("bytes"));
}

fn any_document() -> impl Strategy<Value = String> {
    let numbers = prop_oneof![Just("1.50"), Just("1e400"), Just("123456789012345678901234567890")];
    let some = (any_json(), numbers, "[a-zé\\u{1F600}\\n\"~/]{0,80}", 0..40_usize, any::<bool>());
    some.prop_map(|(value, number, text, count, pretty)| {
        let row = json!({"v": value, "t": text, "~k/": [text, value]});
        let rows = vec![row; count];
        let body = json!({"rows": rows, text.clone(): value, "p": {"q": [text, 1], "r": "n"}});
        let body =
            if pretty { serde_json::to_string_pretty(&body) } else { serde_json::to_string(&body) };
        body.unwrap().replace("\"n\"", number)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn the_parts_are_the_whole(
        document in any_document(),
        rows in 0_u64..12,
        string_bytes in prop_oneof![Just(0_u64), 16_u64..60],
        bytes in prop_oneof![Just(0_u64), 1024_u64..3000],
    ) {
        prop_assume!(guard(document.as_bytes()).is_ok());
        let limits = budget(rows, string_bytes, bytes);
        if let Some((whole, largest, count)) = all_parts(document.as_bytes(), &limits) {
            prop_assert_eq!(whole, parsed(document.as_bytes()));
            prop_assert!(count > 1 || document.len() > bytes as usize);
            prop_assert!(bytes == 0 || largest <= bytes as usize + 600, "{} of {}", largest, bytes);
        } else {
            prop_assert!(bytes == 0 || document.len() <= bytes as usize);
        }
    }

    #[test]
    fn what_is_within_every_budget_is_not_touched(
        document in any_document(),
        value in any_json(),
        string_bytes in prop_oneof![Just(0_u64), Just(1_000_000_u64)],
    ) {
        for text in [document, value.to_string(), json!({"a": {"b": [[value]]}}).to_string()] {
            let bytes = (text.len() as u64).max(BUDGET_BYTES_MIN);
            prop_assert!(cut(text.as_bytes(), &budget(1_000_000, string_bytes, bytes)).is_none());
            prop_assert!(cut(text.as_bytes(), &budget(1_000_000, string_bytes, 0)).is_none());
        }
    }

    #[test]
    fn any_json_is_cut_without_a_panic(value in any_json(), rows in 0_u64..3) {
        let text = value.to_string();
        if let Some((whole, ..)) = all_parts(text.as_bytes(), &budget(rows, 16, 1024)) {
            prop_assert_eq!(whole, parsed(text.as_bytes()));
        }
    }
}

/// A text as JSON.
fn text_json(text: &str) -> Vec<u8> {
    let mut json = Vec::new();
    write_string(&mut json, text);
    json
}

/// The text of JSON.
fn json_text(json: &[u8]) -> String {
    guard(json).unwrap().root().as_str().unwrap().into_owned()
}

/// A text with the pieces that follow is the text.
fn assert_text(text: &str, budget: &ResultBudget) {
    let json = text_json(text);
    let Some(Cut { json: first, mut rest, missing }) = cut(&json, budget) else {
        let limit = budget.string_bytes.unwrap_or(u64::MAX).min(budget.bytes.unwrap_or(u64::MAX));
        assert!(json.len() as u64 <= limit.saturating_add(2), "{} bytes fit", json.len());
        return;
    };
    let mut joined = json_text(&first);
    assert!(!joined.is_empty() && joined.len() < text.len() && missing.string_bytes > 0);
    while let Some(part) = rest.next(budget) {
        let part = guard(&part.json).unwrap().root();
        for entry in part.get("continues").unwrap().items() {
            assert_eq!(entry.get("at").unwrap().text(), "\"\"");
            joined.push_str(&entry.get("text").unwrap().as_str().unwrap());
        }
    }
    assert_eq!(joined, text);
}

#[test]
fn texts_are_cut() {
    assert!(cut(&text_json("plain"), &ResultBudget::default()).is_none());
    assert!(cut(&text_json(&"x".repeat(5_000)), &budget(1, 0, 0)).is_none());
    let text = "line \u{1} of \"text\"\n\u{e9}".repeat(500);
    for budget in [budget(0, 100, 0), budget(0, 0, 1_024), budget(3, 5_000, 1_024)] {
        let cut = cut(&text_json(&text), &budget).unwrap();
        let kept = json_text(&cut.json);
        assert!(text.starts_with(&kept) && kept.len() <= 1_024);
        assert!(cut.missing.to_string().ends_with(" more bytes of text at the root"));
        assert_text(&text, &budget);
    }
}

proptest! {
    #[test]
    fn every_text_comes_whole(text in ".{0,400}", string_bytes in 16..600_u64, times in 1..5_usize) {
        let text = text.repeat(times);
        assert_text(&text, &budget(0, string_bytes, 0));
        assert_text(&text, &budget(0, 0, 1_024));
    }
}
