//! What is so of requests whatever the arguments and the rules are.

use std::borrow::Cow;
use std::sync::LazyLock;

use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use serde_json::json;

use super::super::keys::is_key;
use super::super::{FieldType, ResponsePlan, Unmapped};
use super::tests::{body, order_rules, plan, raw};
use super::*;
use crate::json::guard;

/// Pairs of a query string, decoded.
fn decoded(query: &str) -> Vec<(String, String)> {
    let text = |text: &str| percent_decode_str(text).decode_utf8().map(Cow::into_owned).unwrap();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').map(|(name, value)| (text(name), text(value))).unwrap())
        .collect()
}

const NAME: &str = "[a_@.1é-]{1,3}|b{64,70}";

static PLACES: LazyLock<RequestPlan> = LazyLock::new(|| {
    let list = json!([
        {"source_field_name": "s", "location": "path"},
        {"source_field_name": "v&=", "location": "query", "exposed_field_name": "v"},
        {"source_field_name": "i", "location": "query", "type": "array"},
        {"source_field_name": "c", "location": "cookie"},
    ]);
    plan("GET", "/a/{s}/b", &list)
});

static ORDERS: LazyLock<RequestPlan> = LazyLock::new(|| plan("POST", "/orders", &order_rules()));

proptest! {
    #[test]
    fn what_is_placed_can_be_read_back(
        segment in any::<String>(),
        value in any::<String>(),
        items in prop::collection::vec(any::<String>(), 0..4),
    ) {
        let arguments = json!({"s": segment, "v": value, "i": items, "c": value}).to_string();
        let Ok(valid) = PLACES.validate(Some(raw(&arguments))) else {
            prop_assert!(segment.is_empty() || segment.contains('.'));
            return Ok(());
        };
        let request = PLACES.build(&valid);
        prop_assert!(request.target.bytes().all(|byte| byte.is_ascii_graphic()));
        let (path, query) = request.target.split_once('?').unwrap();
        let parts: Vec<&str> = path.split('/').collect();
        prop_assert_eq!(parts.len(), 4);
        prop_assert_eq!(percent_decode_str(parts[2]).decode_utf8().unwrap(), segment.as_str());
        let mut expected = vec![("v&=".to_owned(), value.clone())];
        expected.extend(items.iter().map(|item| ("i".to_owned(), item.clone())));
        prop_assert_eq!(decoded(query), expected);
        let cookie = request.headers[0].1.strip_prefix("c=").unwrap();
        prop_assert_eq!(percent_decode_str(cookie).decode_utf8().unwrap(), value.as_str());
    }

    /// Whatever the API calls its fields: clients see keys, and each value arrives where it belongs.
    #[test]
    fn every_name_has_a_key_and_a_way_back(
        outer in prop::collection::btree_set(NAME, 1..5),
        inner in prop::collection::btree_set(NAME, 1..5),
    ) {
        let mut list = Vec::new();
        let mut source = serde_json::Map::new();
        for (index, outer) in outer.iter().enumerate() {
            let mut row = serde_json::Map::new();
            for (number, inner) in inner.iter().enumerate() {
                let escaped = |name: &str| -> String {
                    name.chars().flat_map(|character| ['\\', character]).collect()
                };
                list.push(FieldRule {
                    field_type: Some(FieldType::Integer),
                    required: true,
                    ..FieldRule::new(format!("{}[*].{}", escaped(outer), escaped(inner)), Location::Body)
                });
                row.insert(inner.clone(), json!(index * 100 + number));
            }
            source.insert(outer.clone(), json!([row]));
        }
        let request = RequestPlan::compile("POST", "/", &list, RequestBody::default()).unwrap();
        let response = ResponsePlan::compile(&list, Unmapped::Drop).unwrap();
        let source = Value::Object(source);
        let exposed = response.translate(raw(&source.to_string()));
        let exposed = String::from_utf8(exposed.json).unwrap();
        let valid = request.validate(Some(raw(&exposed))).unwrap();
        let back: Value = serde_json::from_str(body(&request.build(&valid))).unwrap();
        prop_assert_eq!(back, source);
        for (name, member) in request.input_schema()["properties"].as_object().unwrap() {
            let inner = member["items"]["properties"].as_object().unwrap();
            prop_assert!(inner.keys().chain([name]).all(|key| is_key(key)));
        }
        list.reverse();
        let reversed = RequestPlan::compile("POST", "/", &list, RequestBody::default()).unwrap();
        prop_assert_eq!(reversed.input_schema(), request.input_schema());
    }

    #[test]
    fn any_arguments_are_judged_without_a_panic(value in crate::json::any_json()) {
        let lines = json!({"purchase": {"rows": [{"article": "a", "tags": value}]}});
        for value in [json!({"purchase": value}), lines, value] {
            let text = value.to_string();
            if let Ok(valid) = ORDERS.validate(Some(raw(&text))) {
                prop_assert!(guard(ORDERS.build(&valid).body.as_deref().unwrap()).is_ok());
            }
        }
    }
}
