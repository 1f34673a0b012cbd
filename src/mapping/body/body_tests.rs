//! Tests of bodies: each format to the byte, files, nulls, and what does not fit together.

use serde_json::{Value, json};

use super::super::{OutgoingRequest, RequestPlan, Resource, input_schema};
use super::*;
use crate::json::guard;

fn rules(list: &Value) -> Vec<FieldRule> {
    serde_json::from_value(list.clone()).unwrap()
}

pub(super) fn compiled(
    format: BodyFormat,
    content_type: Option<&str>,
    list: &Value,
) -> Result<RequestPlan, String> {
    let body = RequestBody { format, content_type, ..RequestBody::default() };
    RequestPlan::compile("POST", "/", &rules(list), body).map_err(|error| error.to_string())
}

pub(super) fn plan(format: BodyFormat, list: &Value) -> RequestPlan {
    compiled(format, None, list).unwrap()
}

pub(super) fn sent(plan: &RequestPlan, arguments: &str) -> Result<OutgoingRequest, String> {
    let raw = guard(arguments.as_bytes()).unwrap().root();
    let arguments = plan.validate(Some(raw)).map_err(|error| error.to_string())?;
    Ok(plan.build(&arguments))
}

fn text(request: &OutgoingRequest) -> &str {
    std::str::from_utf8(request.body.as_deref().unwrap()).unwrap()
}

fn fields() -> Value {
    json!([
        {"source_field_name": "name"},
        {"source_field_name": "empty"},
        {"source_field_name": "count", "type": "integer"},
        {"source_field_name": "ratio", "type": "number"},
        {"source_field_name": "open", "type": "boolean"},
        {"source_field_name": "tags[*]", "exposed_field_name": "labels"},
        {"source_field_name": "none", "type": "array"},
        {"source_field_name": "at.street", "exposed_field_name": "road"},
        {"source_field_name": "at.country", "constant": "DE"},
        {"source_field_name": "kind", "constant": "x&y"},
        {"source_field_name": "mode", "default": "fast", "send_default": true},
        {"source_field_name": "gone", "nullable": true},
    ])
}

const ARGUMENTS: &str = r#"{"name":"a b+ü&=","empty":"","count":1e3,"ratio":1.0,"open":true,
    "labels":["x","y z"],"none":[],"at":{"road": "Main St"},"gone":null}"#;

#[test]
fn forms_are_written_to_the_byte() {
    let request = sent(&plan(BodyFormat::Form, &fields()), ARGUMENTS).unwrap();
    assert_eq!(
        text(&request),
        "name=a+b%2B%C3%BC%26%3D&empty=&count=1000&ratio=1.0&open=true&tags=x&tags=y+z\
         &at=%7B%22street%22%3A%22Main+St%22%2C%22country%22%3A%22DE%22%7D&kind=x%26y&mode=fast"
    );
    assert_eq!(request.content_type.as_deref(), Some(FORM));
    let request = sent(&plan(BodyFormat::Form, &fields()), "{}").unwrap();
    assert_eq!(text(&request), "at=%7B%22country%22%3A%22DE%22%7D&kind=x%26y&mode=fast");
    let nothing = json!([{"source_field_name": "a"}]);
    assert_eq!(text(&sent(&plan(BodyFormat::Form, &nothing), "{}").unwrap()), "");
}

#[test]
fn fields_of_a_form_have_styles() {
    let object = |more: Value| {
        let mut rule = json!({"source_field_name": "o r", "exposed_field_name": "o", "schema": {}});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plan(BodyFormat::Form, &json!([{"source_field_name": "k", "constant": "1"}, rule]))
    };
    let value = r#"{"o":{"a":"x y","b":[1,2]}}"#;
    let array = r#"{"o":["x y",{"a":1}]}"#;
    for (more, of_object, of_array) in [
        (
            json!({}),
            "o+r=%7B%22a%22%3A%22x+y%22%2C%22b%22%3A%5B1%2C2%5D%7D",
            "o+r=x+y&o+r=%7B%22a%22%3A1%7D",
        ),
        (json!({"style": "form"}), "a=x+y&b=%5B1%2C2%5D", "o+r=x+y&o+r=%7B%22a%22%3A1%7D"),
        (json!({"explode": false}), "o+r=a,x+y,b,%5B1%2C2%5D", "o+r=x+y,%7B%22a%22%3A1%7D"),
        (
            json!({"style": "deep_object"}),
            "o+r%5Ba%5D=x+y&o+r%5Bb%5D%5B%5D=1&o+r%5Bb%5D%5B%5D=2",
            "o+r%5B%5D=x+y&o+r%5B1%5D%5Ba%5D=1",
        ),
        (
            json!({"style": "json"}),
            "o+r=%7B%22a%22%3A%22x+y%22%2C%22b%22%3A%5B1%2C2%5D%7D",
            "o+r=%5B%22x+y%22%2C%7B%22a%22%3A1%7D%5D",
        ),
        (
            json!({"style": "pipe_delimited"}),
            "o+r=a%7Cx+y%7Cb%7C%5B1%2C2%5D",
            "o+r=x+y%7C%7B%22a%22%3A1%7D",
        ),
    ] {
        let plan = object(more.clone());
        assert_eq!(text(&sent(&plan, value).unwrap()), format!("k=1&{of_object}"), "{more}");
        assert_eq!(text(&sent(&plan, array).unwrap()), format!("k=1&{of_array}"), "{more}");
    }
    let message = sent(&object(json!({"style": "form"})), r#"{"o":{"k":2}}"#).unwrap_err();
    assert!(
        message.contains("o: must not have a member with the name of another field"),
        "{message}"
    );
    assert!(sent(&object(json!({})), r#"{"o":{"k":2}}"#).is_ok());
    let list = json!([
        {"source_field_name": "at", "type": "object", "style": "form", "additional_properties": true},
        {"source_field_name": "at.country", "constant": "DE"},
        {"source_field_name": "free", "type": "object", "explode": true},
    ]);
    let both = plan(BodyFormat::Form, &list);
    let body = r#"{"at":{"country":"US","x":1},"free":{"y":2}}"#;
    assert_eq!(text(&sent(&both, body).unwrap()), "x=1&country=DE&y=2");
    assert!(sent(&both, r#"{"free":{"country":"US"}}"#).is_err());
    let spaces = object(json!({"style": "space_delimited", "explode": false}));
    assert_eq!(text(&sent(&spaces, r#"{"o":["x","y"]}"#).unwrap()), "k=1&o+r=x+y");
    assert!(sent(&spaces, array).unwrap_err().contains("separates values"));
}

#[test]
fn an_object_can_be_the_whole_of_a_form_or_of_parts() {
    let list = json!([{"source_field_name": "$", "exposed_field_name": "all", "type": "object"}]);
    let arguments = r#"{"all":{"a b":"1&","c":[1,2.0],"d":{"e":null},"f":null,"":"x"}}"#;
    let request = sent(&plan(BodyFormat::Form, &list), arguments).unwrap();
    assert_eq!(text(&request), "a+b=1%26&c=1&c=2.0&d=%7B%22e%22%3Anull%7D&=x");
    let request = sent(&plan(BodyFormat::Multipart, &list), arguments).unwrap();
    assert_eq!(text(&request).matches("form-data; name=").count(), 5);
    assert!(text(&request).contains("name=\"c\"\r\n\r\n2.0\r\n"), "{}", text(&request));
}

#[test]
fn parts_are_written_to_the_byte() {
    let request = sent(&plan(BodyFormat::Multipart, &fields()), ARGUMENTS).unwrap();
    let field = |name: &str, value: &str| {
        format!(
            "--{USUAL_BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )
    };
    let expected = [
        field("name", "a b+ü&="),
        field("empty", ""),
        field("count", "1000"),
        field("ratio", "1.0"),
        field("open", "true"),
        field("tags", "x"),
        field("tags", "y z"),
        field("at", r#"{"street":"Main St","country":"DE"}"#)
            .replace("\"at\"\r\n", "\"at\"\r\nContent-Type: application/json\r\n"),
        field("kind", "x&y"),
        field("mode", "fast"),
        format!("--{USUAL_BOUNDARY}--\r\n"),
    ];
    assert_eq!(text(&request), expected.concat());
    let content_type = format!("multipart/form-data; boundary={USUAL_BOUNDARY}");
    assert_eq!(request.content_type.as_deref(), Some(&*content_type));
}

#[test]
fn files_are_parts_with_names_and_types() {
    let list = json!([
        {"source_field_name": "meta", "type": "object", "content_type": "application/ld+json"},
        {"source_field_name": "rows[*]", "array_item_type": "object", "content_type": "application/json"},
        {"source_field_name": "note", "content_type": "text/markdown"},
        {"source_field_name": "photo", "type": "file", "required": true, "content_type": "image/*, image/png"},
        {"source_field_name": "more[*]", "type": "file"},
    ]);
    let plan = plan(BodyFormat::Multipart, &list);
    assert!(plan.has_files());
    let arguments = r#"{"meta":{"a": 1},"rows":[{"b":1},{}],"note":"*x*",
        "photo":{"base64":"AP8=","filename":"ä\".png"},
        "more":["data:text/plain;base64,aGk=","runtime://results/r.1"]}"#;
    let raw = guard(arguments.as_bytes()).unwrap().root();
    let valid = plan.validate(Some(raw)).unwrap();
    let uses = plan.resources(&valid);
    assert_eq!(
        uses,
        [ResourceUse { field: "more[1]".to_owned(), uri: "runtime://results/r.1".to_owned() }]
    );
    let mut resources = Resources::default();
    let resource = Resource {
        bytes: b"[1]".to_vec(),
        content_type: Some("application/json".into()),
        filename: Some("r.json".into()),
    };
    resources.add(uses[0].uri.clone(), resource);
    let request = plan.build_with(&valid, &resources);
    let body = request.body.unwrap();
    let parts = [
        ("name=\"meta\"\r\nContent-Type: application/ld+json", &b"{\"a\":1}"[..]),
        ("name=\"rows\"\r\nContent-Type: application/json", b"[{\"b\":1},{}]"),
        ("name=\"note\"\r\nContent-Type: text/markdown", b"*x*"),
        ("name=\"photo\"; filename=\"ä%22.png\"\r\nContent-Type: image/png", b"\0\xff"),
        ("name=\"more\"; filename=\"more\"\r\nContent-Type: text/plain", b"hi"),
        ("name=\"more\"; filename=\"r.json\"\r\nContent-Type: application/json", b"[1]"),
    ];
    let mut expected = Vec::new();
    for (head, content) in parts {
        expected.extend(
            format!("--{USUAL_BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n").bytes(),
        );
        expected.extend_from_slice(content);
        expected.extend_from_slice(b"\r\n");
    }
    expected.extend(format!("--{USUAL_BOUNDARY}--\r\n").bytes());
    assert_eq!(String::from_utf8_lossy(&body), String::from_utf8_lossy(&expected));
    // What the resource holds is not there: nothing of it is made up.
    let without = plan.build(&valid).body.unwrap();
    assert!(String::from_utf8_lossy(&without).contains("octet-stream\r\n\r\n\r\n--"));
    for (bad, expected) in [
        (r#"{"photo":{"base64":"x"}}"#, "photo: is not base64"),
        (r#"{"photo":{"filename":"x"}}"#, "photo"),
        (r#"{"photo":5}"#, "photo"),
        ("{}", "photo: this field is required"),
        (r#"{"photo":"","more":["a"]}"#, "photo: is neither a file nor the URI"),
        (r#"{"photo":"a:b","more":["x:y",{"base64":"*"}]}"#, "more[1]: is not base64"),
    ] {
        let message = sent(&plan, bad).unwrap_err();
        assert!(message.contains(expected), "{bad}: {message}");
    }
    let many =
        json!({"photo": "data:;base64,", "more": vec!["a:b"; RESOURCES_MAX + 1]}).to_string();
    assert!(sent(&plan, &many).unwrap_err().contains("more[32]: is one resource more"));
}

#[test]
fn items_are_one_part_where_the_rule_says_so() {
    let list = json!([
        {"source_field_name": "a[*]", "explode": false},
        {"source_field_name": "b[*]", "style": "pipe_delimited", "content_type": "text/x"},
        {"source_field_name": "c[*]", "style": "form", "explode": true},
        {"source_field_name": "d", "content_type": "application/json"},
    ]);
    let plan = plan(BodyFormat::Multipart, &list);
    let request = sent(&plan, r#"{"a":["x","y z"],"b":["1","2"],"c":["p","q"],"d":"{}"}"#).unwrap();
    let contents: Vec<&str> = text(&request)
        .split("\r\n--")
        .filter_map(|part| Some(part.split_once("name=")?.1))
        .collect();
    assert_eq!(
        contents,
        [
            "\"a\"\r\n\r\nx,y z",
            "\"b\"\r\nContent-Type: text/x\r\n\r\n1|2",
            "\"c\"\r\n\r\np",
            "\"c\"\r\n\r\nq",
            "\"d\"\r\nContent-Type: application/json\r\n\r\n{}",
        ]
    );
    assert!(!text(&sent(&plan, r#"{"a":[],"b":[]}"#).unwrap()).contains("name="));
    assert!(sent(&plan, r#"{"a":["x,y"]}"#).unwrap_err().contains("a: must not have a value with"));
    assert!(sent(&plan, r#"{"b":["x,y"]}"#).is_ok());
}

#[test]
fn texts_and_bytes_are_the_whole_body() {
    let list = json!([{"source_field_name": "$", "exposed_field_name": "t"}]);
    let plain = plan(BodyFormat::Text, &list);
    let request = sent(&plain, r#"{"t":"ü\n\"x\""}"#).unwrap();
    assert_eq!(text(&request), "ü\n\"x\"");
    assert_eq!(request.content_type.as_deref(), Some("text/plain; charset=utf-8"));
    assert_eq!(text(&sent(&plain, r#"{"t":""}"#).unwrap()), "");
    let request = sent(&plain, "{}").unwrap();
    assert_eq!((request.body, request.content_type), (None, None));
    let list = json!([{"source_field_name": "n", "type": "number", "nullable": true}]);
    let csv = compiled(BodyFormat::Text, Some("text/csv"), &list).unwrap();
    let request = sent(&csv, r#"{"n":1.50}"#).unwrap();
    assert_eq!(
        (text(&request), request.content_type.as_deref()),
        ("1.50", Some("text/csv; charset=utf-8"))
    );
    assert_eq!(sent(&csv, r#"{"n":null}"#).unwrap().body, None);
    let list = json!([{"source_field_name": "file", "type": "file"}]);
    for (tool, arguments, expected) in [
        (None, r#"{"file":{"base64":"/w=="}}"#, "application/octet-stream"),
        (Some("image/*"), r#"{"file":{"base64":"/w=="}}"#, "application/octet-stream"),
        (Some("image/png"), r#"{"file":{"base64":"/w=="}}"#, "image/png"),
        (Some("image/png"), r#"{"file":"data:image/gif;base64,/w=="}"#, "image/gif"),
    ] {
        let plan = compiled(BodyFormat::Binary, tool, &list).unwrap();
        let request = sent(&plan, arguments).unwrap();
        assert_eq!(request.body.as_deref(), Some(&[0xff][..]));
        assert_eq!(request.content_type.as_deref(), Some(expected));
    }
    assert_eq!(sent(&plan(BodyFormat::Binary, &list), "{}").unwrap().body, None);
}

#[test]
fn null_is_a_value_of_json_where_a_rule_says_so() {
    let list = json!([
        {"source_field_name": "a", "nullable": true, "enum": ["x"]},
        {"source_field_name": "o", "type": "object", "nullable": true},
        {"source_field_name": "o.b", "type": "integer", "nullable": true, "required": true},
        {"source_field_name": "l[*]", "nullable": true},
        {"source_field_name": "r", "nullable": true, "schema": {"type": "string", "minLength": 1}},
        {"source_field_name": "c", "nullable": true, "schema": {"const": 1}},
        {"source_field_name": "d", "nullable": true, "default": null, "send_default": true},
        {"source_field_name": "n", "type": "integer", "as_string": true, "nullable": true},
        {"source_field_name": "q", "location": "query", "nullable": true},
        {"source_field_name": "plain"},
    ]);
    let plan = plan(BodyFormat::Json, &list);
    let arguments =
        r#"{"a":null,"o":{"b":null},"l":null,"r":null,"c":null,"n":null,"q":null,"plain":null}"#;
    let request = sent(&plan, arguments).unwrap();
    assert_eq!(
        text(&request),
        r#"{"a":null,"o":{"b":null},"l":null,"r":null,"c":null,"n":null,"d":null}"#
    );
    assert_eq!(request.target, "/");
    assert_eq!(
        text(&sent(&plan, r#"{"o":null,"n":-5}"#).unwrap()),
        r#"{"o":null,"n":-5,"d":null}"#
    );
    let schema = input_schema(&rules(&list)).unwrap();
    let shown = &schema["properties"];
    assert_eq!(shown["a"], json!({"type": ["string", "null"], "enum": ["x", null]}));
    assert_eq!(shown["o"]["type"], json!(["object", "null"]));
    assert_eq!(shown["l"], json!({"type": ["array", "null"], "items": {"type": "string"}}));
    assert_eq!(shown["c"], json!({"anyOf": [{"const": 1}, {"type": "null"}]}));
    for bad in [r#"{"o":{}}"#, r#"{"l":[null]}"#, r#"{"a":"y"}"#, r#"{"r":""}"#] {
        assert!(sent(&plan, bad).is_err(), "{bad}");
    }
}

/// What the tool says of its body and its one field, and a part of the error.
#[test]
fn what_does_not_fit_together_is_told() {
    use BodyFormat::{Binary, Form, Json, Multipart, Text};
    let a = || json!([{"source_field_name": "a"}]);
    let of = |rule: Value| json!([rule]);
    for (format, content_type, list, expected) in [
        (Json, Some("text/xml"), a(), "body_content_type \"text/xml\": is not one of JSON"),
        (Json, Some("x"), a(), "is no media type"),
        (Form, Some("application/json"), a(), "a form is \"application/x-www-form-urlencoded\""),
        (
            Multipart,
            Some("multipart/alternative"),
            a(),
            "parts are sent as \"multipart/form-data\", \"multipart/mixed\" or",
        ),
        (Text, Some("text/*"), a(), "is no media type"),
        (Form, None, json!([]), "body_format: no field is in the body"),
        (
            Text,
            None,
            json!([{"source_field_name": "a"}, {"source_field_name": "b"}]),
            "is one field",
        ),
        (Text, None, of(json!({"source_field_name": "a[*]"})), "a text is a single value"),
        (Binary, None, a(), "the field is no file; set its type to \"file\""),
        (
            Binary,
            None,
            of(json!({"source_field_name": "a[*]", "type": "file"})),
            "the field is no file",
        ),
        (Form, None, of(json!({"source_field_name": "[*].a"})), "make the body an object"),
        (Multipart, None, of(json!({"source_field_name": "$"})), "make the body an object"),
        (
            Form,
            None,
            of(json!({"source_field_name": "a", "type": "file"})),
            "set body_format of the tool to \"multipart\"",
        ),
        (
            Text,
            None,
            of(json!({"source_field_name": "a", "type": "file"})),
            "set body_format of the tool to \"multipart\"",
        ),
        (
            Multipart,
            None,
            of(json!({"source_field_name": "a.b", "type": "file"})),
            "field a.b (body): a file is",
        ),
        (
            Multipart,
            None,
            of(json!({"source_field_name": "a", "style": "json"})),
            "for JSON set content_type",
        ),
        (
            Form,
            None,
            of(json!({"source_field_name": "a", "content_type": "a/b"})),
            "content_type is for the fields",
        ),
        (
            Form,
            None,
            of(json!({"source_field_name": "a", "style": "matrix"})),
            "has the style form",
        ),
        (
            Multipart,
            None,
            of(json!({"source_field_name": "a", "content_type": "a"})),
            "content_type is no media type",
        ),
        (
            Form,
            None,
            json!([{"source_field_name": "Content-Type", "location": "header", "constant": "a/b"},
                   {"source_field_name": "a"}]),
            "the body format says what the body is called; remove the rule",
        ),
        (
            Json,
            Some("application/json"),
            json!([{"source_field_name": "Content-Type", "location": "header", "constant": "a/b"},
                   {"source_field_name": "a"}]),
            "body_content_type of the tool says the same",
        ),
    ] {
        let message = compiled(format, content_type, &list).map(|_| "no error").unwrap_err();
        assert!(message.contains(expected), "{format:?} {content_type:?} {list}\n{message}");
    }
    let json = compiled(Json, Some("application/merge-patch+json"), &a()).unwrap();
    let request = sent(&json, r#"{"a":"x"}"#).unwrap();
    assert_eq!(request.content_type.as_deref(), Some("application/merge-patch+json"));
    assert_eq!(text(&request), r#"{"a":"x"}"#);
}
