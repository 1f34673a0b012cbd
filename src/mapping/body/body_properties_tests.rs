//! What is so of bodies whatever they hold: an independent reader gets back what was written.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{BodyFormat, RequestPlan, ResponsePlan, Unmapped};
use super::tests::{plan, sent};
use crate::json::guard;

fn tricky() -> impl Strategy<Value = String> {
    "[ab&=;+% \"\\r\\n\u{0}é:-]{0,8}|--ringway-0000000000000000|\r\n--ringway-000000000000000[01]--"
}

fn list() -> Value {
    json!([
        {"source_field_name": "s&=", "exposed_field_name": "s"},
        {"source_field_name": "l\"", "exposed_field_name": "l", "type": "array"},
        {"source_field_name": "o", "type": "object"},
    ])
}

/// A form by the URL standard, section 5.1.
fn form_pairs(body: &str) -> Vec<(String, String)> {
    let text = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, behind @ ..] = rest {
            rest = behind;
            match (first, behind) {
                (b'+', _) => bytes.push(b' '),
                (b'%', [high, low, after @ ..]) => {
                    let digits = [*high, *low];
                    let digits = std::str::from_utf8(&digits).unwrap();
                    bytes.push(u8::from_str_radix(digits, 16).unwrap());
                    rest = after;
                }
                _ => bytes.push(*first),
            }
        }
        String::from_utf8(bytes).unwrap()
    };
    let pairs = body.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap()).map(|(n, v)| (text(n), text(v))).collect()
}

/// Name, file name and content of each part, by nothing but searching for the boundary.
fn read_parts(content_type: &str, body: &[u8]) -> Vec<(String, Option<String>, Vec<u8>)> {
    let boundary = content_type.split_once("boundary=").unwrap().1;
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = [b"\r\n", body].concat();
    let mut parts = Vec::new();
    loop {
        let found = rest.windows(delimiter.len()).position(|part| part == delimiter.as_bytes());
        let Some(found) = found else { panic!("no last delimiter") };
        let before: Vec<u8> = rest.drain(..found + delimiter.len()).collect();
        if found > 0 {
            let before = &before[2..found];
            let end = before.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
            let head = String::from_utf8(before[..end].to_vec()).unwrap();
            let name = |key: &str| {
                let (_, behind) = head.split_once(&format!("; {key}=\""))?;
                let shown = behind.split('"').next()?;
                let shown = shown.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n");
                Some(shown.replace("%00", "\0"))
            };
            parts.push((name("name").unwrap(), name("filename"), before[end + 4..].to_vec()));
        }
        if rest.starts_with(b"--\r\n") {
            assert_eq!(rest.len(), 4);
            return parts;
        }
        assert!(rest.starts_with(b"\r\n"));
    }
}

static FORM: LazyLock<RequestPlan> = LazyLock::new(|| plan(BodyFormat::Form, &list()));
static PARTS: LazyLock<RequestPlan> = LazyLock::new(|| plan(BodyFormat::Multipart, &list()));

fn one_file(format: BodyFormat, source: &str) -> RequestPlan {
    plan(format, &json!([{"source_field_name": source, "type": "file"}]))
}

static FILES: LazyLock<RequestPlan> = LazyLock::new(|| one_file(BodyFormat::Multipart, "f[*]"));
static FILE: LazyLock<RequestPlan> = LazyLock::new(|| one_file(BodyFormat::Binary, "f"));

/// A text, and any JSON.
static WHOLE: LazyLock<[RequestPlan; 2]> = LazyLock::new(|| {
    let text = json!([{"source_field_name": "t", "required": true}]);
    let any = json!([{"source_field_name": "$", "schema": {}, "nullable": true}]);
    [plan(BodyFormat::Text, &text), plan(BodyFormat::Json, &any)]
});

/// Anything in every place that takes it, by body format.
static OPEN: LazyLock<[RequestPlan; 3]> = LazyLock::new(|| {
    let list = json!([
        {"source_field_name": "v", "schema": {}},
        {"source_field_name": "w", "schema": {}, "explode": true, "location": "query"},
        {"source_field_name": "x", "schema": {}, "style": "deep_object", "location": "query"},
    ]);
    [BodyFormat::Json, BodyFormat::Form, BodyFormat::Multipart].map(|format| plan(format, &list))
});

proptest! {
    #[test]
    fn what_is_written_comes_back(
        single in prop::option::of(tricky()),
        items in prop::collection::vec(tricky(), 0..4),
        object in prop::option::of(prop::collection::btree_map(tricky(), tricky(), 0..3)),
    ) {
        let mut arguments = Map::new();
        let mut expected = Vec::new();
        if let Some(single) = &single {
            arguments.insert("s".to_owned(), json!(single));
            expected.push(("s&=".to_owned(), single.clone()));
        }
        arguments.insert("l".to_owned(), json!(items));
        expected.extend(items.iter().map(|item| ("l\"".to_owned(), item.clone())));
        if let Some(object) = &object {
            arguments.insert("o".to_owned(), json!(object));
            expected.push(("o".to_owned(), json!(object).to_string()));
        }
        let arguments = Value::Object(arguments).to_string();
        let form = sent(&FORM, &arguments).unwrap();
        let body = String::from_utf8(form.body.unwrap()).unwrap();
        prop_assert!(body.bytes().all(|byte| byte.is_ascii_graphic()));
        prop_assert_eq!(form_pairs(&body), expected.clone());
        let request = sent(&PARTS, &arguments).unwrap();
        let read = read_parts(&request.content_type.unwrap(), &request.body.unwrap());
        let read: Vec<(String, String)> = read
            .into_iter()
            .map(|(name, _, content)| (name, String::from_utf8(content).unwrap()))
            .collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn files_come_back(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        filename in prop::option::of("[a\"\\r\\né;.]{0,8}"),
        is_twice in any::<bool>(),
    ) {
        let mut file = json!({"base64": STANDARD.encode(&bytes)});
        if let Some(filename) = &filename {
            file["filename"] = json!(filename);
        }
        let files = if is_twice { json!([file, file]) } else { json!([file]) };
        let arguments = json!({"f": files}).to_string();
        let request = sent(&FILES, &arguments).unwrap();
        let read = read_parts(&request.content_type.unwrap(), &request.body.unwrap());
        let one = ("f".to_owned(), Some(filename.unwrap_or_else(|| "f".to_owned())), bytes.clone());
        prop_assert_eq!(read, vec![one; if is_twice { 2 } else { 1 }]);
        let arguments = json!({"f": file}).to_string();
        let request = sent(&FILE, &arguments).unwrap();
        prop_assert_eq!(request.body.unwrap(), bytes);
    }

    #[test]
    fn whole_bodies_come_back(text in tricky(), value in crate::json::any_json()) {
        let request = sent(&WHOLE[0], &json!({"t": text}).to_string()).unwrap();
        prop_assert_eq!(String::from_utf8(request.body.unwrap()).unwrap(), text);
        let request = sent(&WHOLE[1], &json!({"body": value}).to_string()).unwrap();
        let read: Value = serde_json::from_slice(&request.body.unwrap()).unwrap();
        prop_assert_eq!(&read, &value);
        // And what an echo of it answers is what was given.
        let answer = ResponsePlan::compile(&[], Unmapped::Drop).unwrap();
        let body = read.to_string();
        let shown = answer.translate(guard(body.as_bytes()).unwrap().root());
        prop_assert_eq!(serde_json::from_slice::<Value>(&shown.json).unwrap(), value);
    }

    #[test]
    fn any_arguments_are_judged_without_a_panic(value in crate::json::any_json()) {
        let arguments = json!({"v": value, "w": value, "x": value}).to_string();
        for plan in &*OPEN {
            if let Ok(request) = sent(plan, &arguments) {
                prop_assert!(request.body.is_some());
                prop_assert!(request.target.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
        let _ = sent(&FILES, &json!({"f": [value]}).to_string());
    }
}
