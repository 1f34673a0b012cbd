//! Tests of styles: the table of OpenAPI 3.1 (section 4.8.12.4) to the byte, what it leaves open, and
//! that nothing a client writes leaves its value.

use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::guard;
use crate::mapping::{OutgoingRequest, RequestBody, RequestPlan};

fn plan(path: &str, list: Value) -> RequestPlan {
    let rules: Vec<FieldRule> = serde_json::from_value(list).unwrap();
    RequestPlan::compile("GET", path, &rules, RequestBody::default()).unwrap()
}

fn sent(plan: &RequestPlan, arguments: &Value) -> Result<OutgoingRequest, String> {
    let text = arguments.to_string();
    let raw = guard(text.as_bytes()).unwrap().root();
    let arguments = plan.validate(Some(raw)).map_err(|error| error.to_string())?;
    Ok(plan.build(&arguments))
}

/// What stands where the field goes, or why nothing does.
fn placed(location: &str, style: &str, explode: &str, value: &str) -> String {
    let mut rule = json!({
        "source_field_name": "color", "location": location, "schema": {}, "style": style,
    });
    if !explode.is_empty() {
        rule["explode"] = json!(explode == "true");
    }
    let path = if location == "path" { "/{color}" } else { "/" };
    let value: Value = serde_json::from_str(value).unwrap();
    let request = match sent(&plan(path, json!([rule])), &json!({"color": value})) {
        Ok(request) => request,
        Err(error) => return format!("! {}", error.split("color: ").last().unwrap()),
    };
    match location {
        "path" => request.target[1..].to_owned(),
        "query" => request.target[1..].strip_prefix('?').unwrap_or_default().to_owned(),
        _ => request.headers.first().map(|(_, value)| value.clone()).unwrap_or_default(),
    }
}

const STRING: &str = "\"blue\"";
const EMPTY: &str = "\"\"";
const ARRAY: &str = r#"["blue","black","brown"]"#;
const OBJECT: &str = r#"{"R":100,"G":200,"B":150}"#;

/// `location style explode | empty string | string | array | object`; `!` where it is refused.
const TABLE: &str = "
path matrix false   | !                | ;color=blue | ;color=blue,black,brown                 | ;color=R,100,G,200,B,150
path matrix true    | !                | ;color=blue | ;color=blue;color=black;color=brown     | ;R=100;G=200;B=150
path label false    | !                | .blue       | .blue,black,brown                       | .R,100,G,200,B,150
path label true     | !                | .blue       | .blue.black.brown                       | .R=100.G=200.B=150
path simple false   | !                | blue        | blue,black,brown                        | R,100,G,200,B,150
path simple true    | !                | blue        | blue,black,brown                        | R=100,G=200,B=150
path json false     | %22%22           | %22blue%22  | %5B%22blue%22%2C%22black%22%2C%22brown%22%5D | %7B%22R%22%3A100%2C%22G%22%3A200%2C%22B%22%3A150%7D
query form false    | color=           | color=blue  | color=blue,black,brown                  | color=R,100,G,200,B,150
query form true     | color=           | color=blue  | color=blue&color=black&color=brown      | R=100&G=200&B=150
query space_delimited false | color=   | color=blue  | color=blue%20black%20brown              | color=R%20100%20G%20200%20B%20150
query space_delimited true  | color=   | color=blue  | color=blue&color=black&color=brown      | R=100&G=200&B=150
query pipe_delimited false  | color=   | color=blue  | color=blue%7Cblack%7Cbrown              | color=R%7C100%7CG%7C200%7CB%7C150
query pipe_delimited true   | color=   | color=blue  | color=blue&color=black&color=brown      | R=100&G=200&B=150
query deep_object false | color=       | color=blue  | color%5B%5D=blue&color%5B%5D=black&color%5B%5D=brown | color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150
query deep_object true  | color=       | color=blue  | color%5B%5D=blue&color%5B%5D=black&color%5B%5D=brown | color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150
query json false    | color=%22%22     | color=%22blue%22 | color=%5B%22blue%22%2C%22black%22%2C%22brown%22%5D | color=%7B%22R%22%3A100%2C%22G%22%3A200%2C%22B%22%3A150%7D
header simple false |                  | blue        | blue,black,brown                        | R,100,G,200,B,150
header simple true  |                  | blue        | blue,black,brown                        | R=100,G=200,B=150
header json false   | \"\"             | \"blue\"    | [\"blue\",\"black\",\"brown\"]          | {\"R\":100,\"G\":200,\"B\":150}
cookie form false   | color=           | color=blue  | color=blue,black,brown                  | color=R,100,G,200,B,150
cookie form true    | color=           | color=blue  | color=blue; color=black; color=brown    | R=100; G=200; B=150
cookie json false   | color=%22%22     | color=%22blue%22 | color=%5B%22blue%22%2C%22black%22%2C%22brown%22%5D | color=%7B%22R%22%3A100%2C%22G%22%3A200%2C%22B%22%3A150%7D
";

#[test]
fn every_style_is_that_of_the_table() {
    for line in TABLE.trim().lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let what: Vec<&str> = cells[0].split_whitespace().collect();
        // Members stay in the order that the client wrote them.
        for (value, expected) in [EMPTY, STRING, ARRAY, OBJECT].into_iter().zip(&cells[1..]) {
            let object = OBJECT == value;
            let written = if object {
                placed_raw(what[0], what[1], what[2], value)
            } else {
                placed(what[0], what[1], what[2], value)
            };
            if *expected == "!" {
                assert!(written.starts_with("! must not be empty"), "{line}\n{written}");
            } else {
                assert_eq!(written, *expected, "{line}");
            }
        }
        // An empty array or object is no value; a part of a path has to have one.
        for value in ["[]", "{}", "[null]", "{\"a\":null}"] {
            let written = placed(what[0], what[1], what[2], value);
            match (what[0], what[1]) {
                (_, "json") => assert!(!written.is_empty(), "{line}"),
                ("path", _) => assert!(written.starts_with("! must not be empty"), "{line}"),
                _ => assert_eq!(written, "", "{line}"),
            }
        }
        let null = placed(what[0], what[1], what[2], "null");
        assert_eq!(null.starts_with("! must not be null"), what[0] == "path", "{line} {null}");
    }
}

/// As [`placed`], with the members in the order in which they are written here.
fn placed_raw(location: &str, style: &str, explode: &str, value: &str) -> String {
    let rule = json!({
        "source_field_name": "color", "location": location, "schema": {}, "style": style,
        "explode": explode == "true",
    });
    let plan = plan(if location == "path" { "/{color}" } else { "/" }, json!([rule]));
    let text = format!("{{\"color\":{value}}}");
    let raw = guard(text.as_bytes()).unwrap().root();
    let request = plan.build(&plan.validate(Some(raw)).unwrap());
    match location {
        "path" => request.target[1..].to_owned(),
        "query" => request.target[2..].to_owned(),
        _ => request.headers[0].1.clone(),
    }
}

#[test]
fn defaults_are_those_of_the_location() {
    for (location, array, object) in [
        ("path", "blue,black,brown", "B,150,G,200,R,100"),
        ("query", "color=blue&color=black&color=brown", "B=150&G=200&R=100"),
        ("header", "blue,black,brown", "B,150,G,200,R,100"),
        ("cookie", "color=blue,black,brown", "color=B,150,G,200,R,100"),
    ] {
        let rule = json!({"source_field_name": "color", "location": location, "schema": {}});
        let path = if location == "path" { "/{color}" } else { "/" };
        let plan = plan(path, json!([rule]));
        for (value, expected) in [(ARRAY, array), (OBJECT, object)] {
            let value: Value = serde_json::from_str(value).unwrap();
            let request = sent(&plan, &json!({"color": value})).unwrap();
            let shown = [request.target.as_str()]
                .into_iter()
                .chain(request.headers.first().map(|(_, value)| value.as_str()));
            let shown = shown.last().unwrap().trim_start_matches(['/', '?']);
            assert_eq!(shown, expected, "{location}");
        }
    }
}

#[test]
fn what_the_table_leaves_open_is_written_by_rule() {
    let nested = r#"{"a":{"b":"x y","c":[1,"z"]},"d":[{"e":true}],"f":null,"g":[[]]}"#;
    assert_eq!(
        placed_raw("query", "deep_object", "true", nested),
        "color%5Ba%5D%5Bb%5D=x%20y&color%5Ba%5D%5Bc%5D%5B%5D=1&color%5Ba%5D%5Bc%5D%5B%5D=z\
         &color%5Bd%5D%5B0%5D%5Be%5D=true"
    );
    let mut deep = json!(1);
    (0..12_u8).for_each(|_| deep = json!({"a": deep}));
    let written = placed("query", "deep_object", "true", &deep.to_string());
    assert_eq!(written.matches("%5Ba%5D").count(), DEEP_LEVELS_MAX);
    assert!(
        written.ends_with("=%7B%22a%22%3A%7B%22a%22%3A%7B%22a%22%3A%7B%22a%22%3A1%7D%7D%7D%7D")
    );
    // Arrays and objects inside of others are JSON.
    let nested = r#"[{"a": [1, "x y"]},[2]]"#;
    assert_eq!(
        placed("query", "form", "true", nested),
        "color=%7B%22a%22%3A%5B1%2C%22x%20y%22%5D%7D&color=%5B2%5D"
    );
    assert_eq!(placed("query", "form", "false", "[[1],2]"), "color=%5B1%5D,2");
    // So is what is between the words of a value that is JSON.
    assert_eq!(
        placed_raw("header", "json", "", "{ \"a\" :\n[1, \" \\\" \\n\"] }"),
        r#"{"a":[1," \" \n"]}"#
    );
}

#[test]
fn integers_are_digits_and_numbers_as_written() {
    let list = json!([
        {"source_field_name": "i", "location": "query", "type": "integer"},
        {"source_field_name": "l[*]", "location": "query", "type": "integer"},
        {"source_field_name": "r", "location": "query", "schema": {"type": ["integer", "null"]}},
        {"source_field_name": "n", "location": "query", "type": "number"},
        {"source_field_name": "b", "location": "query", "type": "boolean"},
        {"source_field_name": "s", "location": "query"},
        {"source_field_name": "h", "location": "header", "type": "integer"},
    ]);
    let plan = plan("/", list);
    let text = r#"{"i":1e6,"l":[1000000,1.0,-0.0,12345678901234567890],"r":2E2,"n":1.0,"b":false,
        "s":"1e6","h":1e1}"#;
    let raw = guard(text.as_bytes()).unwrap().root();
    let request = plan.build(&plan.validate(Some(raw)).unwrap());
    assert_eq!(
        request.target,
        "/?i=1000000&l=1000000&l=1&l=0&l=12345678901234567890&r=200&n=1.0&b=false&s=1e6"
    );
    assert_eq!(request.headers, [("h".to_owned(), "10".to_owned())]);
    let text = r#"{"n":1e21}"#;
    let raw = guard(text.as_bytes()).unwrap().root();
    assert_eq!(plan.build(&plan.validate(Some(raw)).unwrap()).target, "/?n=1e21");
}

#[test]
fn reserved_characters_stay_as_far_as_the_value_stays_one() {
    let rule = |more: Value| {
        let mut rule = json!({
            "source_field_name": "q", "location": "query", "schema": {}, "allow_reserved": true,
        });
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plan("/", json!([rule]))
    };
    let all = json!({"q": ":/?#[]@!$&'()*+,;= %é-._~"});
    let apart = rule(json!({}));
    assert_eq!(
        sent(&apart, &all).unwrap().target,
        "/?q=:/?%23%5B%5D@!$%26'()*%2B,%3B=%20%25%C3%A9-._~"
    );
    assert_eq!(sent(&apart, &json!({"q": {"a=b": "c=d"}})).unwrap().target, "/?a%3Db=c=d");
    let joined = rule(json!({"explode": false}));
    assert_eq!(sent(&joined, &json!({"q": "a,b"})).unwrap().target, "/?q=a,b");
    assert_eq!(sent(&joined, &json!({"q": ["a,b", "/"]})).unwrap().target, "/?q=a%2Cb,/");
}

#[test]
fn members_have_the_names_of_the_api() {
    let schema = json!({
        "type": "object",
        "properties": {"@type": {"type": "string"}, "a.b": {"type": "array"}},
    });
    let list = json!([
        {"source_field_name": "x", "location": "query", "schema": schema},
        {"source_field_name": "y", "location": "query", "style": "json", "type": "integer",
         "as_string": true},
    ]);
    let plan = plan("/", list);
    let request = sent(&plan, &json!({"x": {"type": "t", "a_b": [1]}, "y": "5"})).unwrap();
    assert_eq!(request.target, "/?a.b=%5B1%5D&%40type=t&y=5");
    assert_eq!(sent(&plan, &json!({"x": null, "y": null})).unwrap().target, "/");
}

/// `location style explode value`: what would leave its value is refused.
#[test]
fn what_encoding_cannot_keep_apart_is_refused() {
    for (location, style, explode, value) in [
        ("path", "label", "true", r#"["a.b"]"#),
        ("path", "label", "true", r#"{"a.b":1}"#),
        ("path", "label", "false", r#""""#),
        ("path", "simple", "false", r#"["a",""]"#),
        ("path", "simple", "true", r#"{"..":1}"#),
        ("path", "matrix", "true", r#"["a","x/../y"]"#),
        ("path", "label", "true", r#"".""#),
        ("path", "json", "", r#""a/../b""#),
        ("query", "space_delimited", "false", r#"["a b"]"#),
        ("query", "pipe_delimited", "false", r#"["a","b|c"]"#),
        ("query", "pipe_delimited", "false", r#"{"b|c":1}"#),
        ("query", "deep_object", "true", r#"{"a][b":1}"#),
        ("query", "deep_object", "true", r#"{"":1}"#),
        ("query", "deep_object", "true", r#"{"a":{"b]":1}}"#),
        ("query", "form", "true", r#"{"":1}"#),
        ("header", "simple", "false", r#"["a,b"]"#),
        ("header", "simple", "false", r#"{"a,b":1}"#),
        ("header", "simple", "true", r#"{"a=b":1}"#),
        ("header", "simple", "true", r#"["a\r\nX: 1"]"#),
        ("header", "simple", "true", r#"{"a\r\nX":1}"#),
        ("cookie", "form", "true", r#"{"a; b":1}"#),
    ] {
        let written = placed(location, style, explode, value);
        let is_refused = written.starts_with("! must not") || written.starts_with("! has a member");
        assert!(is_refused, "{location} {style} {explode} {value}: {written}");
    }
    // Of one value there is nothing to tell apart.
    for (location, style, explode, value, expected) in [
        ("path", "label", "true", r#""a.b""#, ".a.b"),
        ("query", "space_delimited", "false", r#""a b""#, "color=a%20b"),
        ("header", "simple", "false", r#""a,b=c""#, "a,b=c"),
        ("header", "simple", "true", r#"{"a":"b=c"}"#, "a=b=c"),
        ("header", "json", "", r#"["a,b"]"#, r#"["a,b"]"#),
    ] {
        assert_eq!(placed(location, style, explode, value), expected);
    }
}

#[test]
fn members_take_no_names_of_other_fields() {
    let list = json!([
        {"source_field_name": "tenant", "location": "query", "constant": "acme"},
        {"source_field_name": "filter[owner]", "location": "query", "constant": "me"},
        {"source_field_name": "free", "location": "query", "type": "object"},
        {"source_field_name": "filter", "location": "query", "type": "object", "style": "deep_object"},
        {"source_field_name": "session", "location": "cookie", "constant": "s"},
        {"source_field_name": "jar", "location": "cookie", "type": "object", "explode": true},
    ]);
    let mut plan = plan("/?version=1", list);
    plan.reserve(Location::Query, "Api_Key");
    for bad in [
        json!({"free": {"tenant": "other"}}),
        json!({"free": {"TENANT": "other"}}),
        json!({"free": {"version": 2}}),
        json!({"free": {"api_key": "mine"}}),
        json!({"free": {"filter[x]": 2}}),
        json!({"free": {"filter": 2}}),
        json!({"filter": {"owner": "you"}}),
        json!({"jar": {"session": "forged"}}),
    ] {
        let message = sent(&plan, &bad).unwrap_err();
        assert!(message.contains("must not have a member with the name"), "{bad}: {message}");
    }
    let good = json!({"free": {"x&tenant=y": 1}, "filter": {"x": 1}, "jar": {"a": "b;c"}});
    let request = sent(&plan, &good).unwrap();
    assert_eq!(
        request.target,
        "/?version=1&tenant=acme&filter%5Bowner%5D=me&x%26tenant%3Dy=1&filter%5Bx%5D=1"
    );
    assert_eq!(request.headers[0].1, "session=s; a=b%3Bc");
}

#[test]
fn names_that_repeat_are_bounded() {
    let name = "x".repeat(50_000);
    let value = json!({name: vec![1; 100]}).to_string();
    assert!(placed("query", "deep_object", "true", &value).starts_with("! is too large"));
}

/// Text that means something somewhere.
fn tricky() -> impl Strategy<Value = String> {
    "[ab&=;,.|#?/\\[\\]%+ \"'{}\\r\\n\u{0}é-]{0,8}"
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

proptest! {
    // Each case compiles a plan of its own.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a client writes, a reader that knows the style gets back the same, and nothing else.
    #[test]
    fn values_come_back_from_queries_and_cookies(
        items in prop::collection::vec(tricky(), 1..5),
        style in prop::sample::select(vec!["form", "space_delimited", "pipe_delimited"]),
        explode in any::<bool>(),
        allow_reserved in any::<bool>(),
    ) {
        let list = json!([
            {"source_field_name": "v&", "exposed_field_name": "v", "location": "query", "type": "array",
             "style": style, "explode": explode, "allow_reserved": allow_reserved},
            {"source_field_name": "after", "location": "query", "constant": "1"},
            {"source_field_name": "c", "location": "cookie", "type": "array", "explode": explode},
        ]);
        let plan = plan("/", list);
        let request = match sent(&plan, &json!({"v": items, "c": items})) {
            Ok(request) => request,
            Err(message) => {
                prop_assert!(!explode && message.contains("separates values"), "{}", message);
                return Ok(());
            }
        };
        prop_assert!(request.target.bytes().all(|byte| byte.is_ascii_graphic()));
        let pairs: Vec<(&str, &str)> = request.target[2..]
            .split('&')
            .map(|pair| pair.split_once('=').unwrap())
            .collect();
        let (last, pairs) = pairs.split_last().unwrap();
        prop_assert_eq!(*last, ("after", "1"));
        prop_assert!(pairs.iter().all(|(name, _)| *name == "v%26"));
        let separator = match style {
            "space_delimited" => "%20",
            "pipe_delimited" => "%7C",
            _ => ",",
        };
        let read: Vec<String> = if explode {
            pairs.iter().map(|(_, value)| decoded(value)).collect()
        } else {
            prop_assert_eq!(pairs.len(), 1);
            pairs[0].1.split(separator).map(decoded).collect()
        };
        prop_assert_eq!(&read, &items);
        let cookies = request.headers[0].1.split("; ").map(|pair| pair.strip_prefix("c=").unwrap());
        let cookies: Vec<String> = cookies.flat_map(|value| value.split(',')).map(decoded).collect();
        prop_assert_eq!(&cookies, &items);
        prop_assert!(!request.headers[0].1.contains(['\r', '\n', '"']));
    }

    #[test]
    fn values_come_back_from_paths_and_headers(
        items in prop::collection::vec(tricky(), 1..4),
        style in prop::sample::select(vec!["simple", "label", "matrix"]),
        explode in any::<bool>(),
    ) {
        let list = json!([
            {"source_field_name": "p", "location": "path", "type": "array", "style": style,
             "explode": explode},
            {"source_field_name": "X-H", "location": "header", "type": "array"},
        ]);
        let plan = plan("/a/{p}/z", list);
        let Ok(request) = sent(&plan, &json!({"p": items, "X-H": items})) else { return Ok(()) };
        let parts: Vec<&str> = request.target.split('/').collect();
        prop_assert_eq!((parts.len(), parts[1], parts[3]), (4, "a", "z"));
        prop_assert!(!matches!(decoded(parts[2]).as_str(), "." | ".."));
        let read: Vec<String> = match (style, explode) {
            ("label", true) => parts[2][1..].split('.').map(decoded).collect(),
            ("label", false) => parts[2][1..].split(',').map(decoded).collect(),
            ("matrix", true) => {
                parts[2][1..].split(';').map(|one| decoded(one.strip_prefix("p=").unwrap())).collect()
            }
            ("matrix", false) => parts[2][3..].split(',').map(decoded).collect(),
            _ => parts[2].split(',').map(decoded).collect(),
        };
        prop_assert_eq!(&read, &items);
        let header: Vec<&str> = request.headers[0].1.split(',').collect();
        prop_assert_eq!(header, items.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert!(!request.headers[0].1.contains(['\r', '\n', '\0']));
    }

    #[test]
    fn objects_come_back(
        object in prop::collection::btree_map(tricky(), tricky(), 1..4),
        style in prop::sample::select(vec!["form", "pipe_delimited", "deep_object", "json"]),
        explode in any::<bool>(),
    ) {
        let list = json!([
            {"source_field_name": "o", "location": "query", "type": "object", "style": style,
             "explode": explode},
        ]);
        let plan = plan("/", list);
        let Ok(request) = sent(&plan, &json!({"o": object})) else { return Ok(()) };
        let pairs: Vec<(&str, &str)> =
            request.target[2..].split('&').map(|pair| pair.split_once('=').unwrap()).collect();
        let read: Vec<(String, String)> = match (style, explode) {
            ("json", _) => {
                let value: std::collections::BTreeMap<String, String> =
                    serde_json::from_str(&decoded(pairs[0].1)).unwrap();
                value.into_iter().collect()
            }
            ("deep_object", _) => pairs
                .iter()
                .map(|(name, value)| {
                    let name = decoded(name);
                    let name = name.strip_prefix("o[").unwrap().strip_suffix(']').unwrap();
                    (name.to_owned(), decoded(value))
                })
                .collect(),
            (_, true) => pairs.iter().map(|(name, value)| (decoded(name), decoded(value))).collect(),
            (style, false) => {
                let separator = if style == "form" { "," } else { "%7C" };
                let parts: Vec<String> = pairs[0].1.split(separator).map(decoded).collect();
                parts.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
            }
        };
        prop_assert_eq!(read, object.into_iter().collect::<Vec<_>>());
    }
}

/// A segment of a template: texts and the placeholders `{a}` and `{b}`.
fn any_segment() -> impl Strategy<Value = String> {
    "([.]{1,3}|x|%2e|%2F|%5c){0,2}\\{a\\}([.]{1,3}|x|%2E|%2f|-){0,2}(\\{b\\}([.]{1,2}|x|%2f){0,2})?"
}

proptest! {
    /// Whatever stands beside a placeholder, no value makes a dot segment of it.
    #[test]
    fn no_value_makes_a_dot_segment(
        segment in any_segment(),
        style in prop::sample::select(vec!["simple", "label", "matrix"]),
        explode in any::<bool>(),
        first in prop::collection::vec("[./\\\\x]{1,4}", 1..3),
        second in "[./\\\\x]{1,4}",
    ) {
        let is_dotted = |text: &str| text.split(['/', '\\']).any(|part| matches!(part, "." | ".."));
        let plain = segment.replace("{a}", "x").replace("{b}", "x");
        // What the operator wrote is the operator's.
        prop_assume!(!is_dotted(&decoded(&plain)));
        let mut list = vec![json!({"source_field_name": "a", "location": "path", "type": "array",
                                   "style": style, "explode": explode})];
        if segment.contains("{b}") {
            list.push(json!({"source_field_name": "b", "location": "path"}));
        }
        let plan = plan(&format!("/v/{segment}/z"), Value::Array(list));
        let mut arguments = json!({"a": first});
        if segment.contains("{b}") {
            arguments["b"] = json!(second);
        }
        if let Ok(request) = sent(&plan, &arguments) {
            prop_assert!(!is_dotted(&decoded(&request.target)), "{} of {}", request.target, arguments);
        }
    }
}

#[test]
fn dots_may_stand_beside_placeholders() {
    let path = |name: &str| json!({"source_field_name": name, "location": "path"});
    let two = |path_template: &str| plan(path_template, json!([path("a"), path("b")]));
    for (template, a, b, expected) in [
        ("/compare/{a}...{b}", "v1.0", "feature/x", Some("/compare/v1.0...feature%2Fx")),
        ("/compare/{a}...{b}", "x/", "/y", Some("/compare/x%2F...%2Fy")),
        ("/files/{a}.{b}", "report", "json", Some("/files/report.json")),
        ("/files/{a}.{b}", "a/b", "json", Some("/files/a%2Fb.json")),
        ("/files/{a}.{b}", "x/", "/y", None),
        ("/files/{a}.{b}", "x", "\\y", None),
        ("/{a}..{b}x", "x/", "/y", None),
        ("/{a}..{b}x", "..", "y", None),
        ("/.{a}/{b}..", "x", "y", Some("/.x/y..")),
        ("/.{a}/{b}..", ".", "y", None),
        ("/.{a}/{b}..", "x", "y/", None),
    ] {
        let sent = sent(&two(template), &json!({"a": a, "b": b})).ok();
        let sent = sent.map(|request| request.target);
        assert_eq!(sent.as_deref(), expected, "{template} {a} {b}");
    }
    // A constant is held to it as well.
    let constant = json!({"source_field_name": "a", "location": "path", "constant": "x/"});
    let rules: Vec<FieldRule> = serde_json::from_value(json!([constant, path("b")])).unwrap();
    assert!(RequestPlan::compile("GET", "/{a}.{b}", &rules, RequestBody::default()).is_err());
}

proptest! {
    #[test]
    fn compact_text_is_the_same_value(value in crate::json::any_json()) {
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(compact(&pretty), value.to_string());
    }
}
