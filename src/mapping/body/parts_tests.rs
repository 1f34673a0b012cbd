//! Tests of parts that are no form: their heads, their root, and what cannot be said of them.

use serde_json::{Value, json};

use super::super::tests::compiled;
use super::*;
use crate::json::guard;
use crate::mapping::{BodyFormat, Resources};

fn sent(content_type: &str, list: &Value, arguments: &str) -> (String, String) {
    let plan = compiled(BodyFormat::Multipart, Some(content_type), list).unwrap();
    let raw = guard(arguments.as_bytes()).unwrap().root();
    let valid = plan.validate(Some(raw)).unwrap();
    let request = plan.build_with(&valid, &Resources::NONE);
    let body = String::from_utf8(request.body.unwrap()).unwrap();
    (request.content_type.unwrap().to_string(), body)
}

fn fields() -> Value {
    json!([
        {"source_field_name": "meta", "type": "object"},
        {"source_field_name": "note"},
        {"source_field_name": "rows[*]", "content_type": "text/csv"},
        {"source_field_name": "media", "type": "file", "content_type": "image/png",
         "part_headers": {"Content-ID": "<media>", "Content-Disposition": "inline"}},
    ])
}

const ARGUMENTS: &str = r#"{"media":{"base64":"aGk=","filename":"a.png"},"note":"x",
    "rows":["1,2","3,4"],"meta":{"a": 1}}"#;

#[test]
fn parts_that_are_no_form_are_written_to_the_byte() {
    let (content_type, body) = sent("multipart/mixed", &fields(), ARGUMENTS);
    assert_eq!(content_type, format!("multipart/mixed; boundary={USUAL_BOUNDARY}"));
    let parts = [
        "Content-Type: application/json\r\n\r\n{\"a\":1}",
        "Content-Type: text/plain; charset=utf-8\r\n\r\nx",
        "Content-Type: text/csv\r\n\r\n1,2",
        "Content-Type: text/csv\r\n\r\n3,4",
        "Content-Type: image/png\r\nContent-Disposition: inline\r\nContent-ID: <media>\r\n\r\nhi",
    ];
    let parts = parts.map(|part| format!("--{USUAL_BOUNDARY}\r\n{part}\r\n"));
    assert_eq!(body, format!("{}--{USUAL_BOUNDARY}--\r\n", parts.concat()));
}

#[test]
fn the_first_part_is_the_root_of_related_ones() {
    let of = |content_type: &str, arguments: &str| {
        let (content_type, body) = sent(content_type, &fields(), arguments);
        let said = content_type.strip_prefix("multipart/related; boundary=").unwrap().to_owned();
        let (_, said) = said.split_once("; ").unwrap_or_default();
        (said.to_owned(), body)
    };
    let (said, body) = of("multipart/related", ARGUMENTS);
    assert_eq!(said, r#"type="application/json""#);
    assert!(!body.contains("Content-ID: <meta"), "{body}");
    // Without it the next is.
    assert_eq!(of("Multipart/Related", r#"{"note":"x"}"#).0, r#"type="text/plain""#);
    let (said, body) = of(
        r#"multipart/related; boundary="theirs"; start="<root@x>"; type="a/b"; start-info="q\"\\""#,
        ARGUMENTS,
    );
    assert_eq!(said, r#"type="a/b"; start="<root@x>"; start-info="q\"\\""#);
    assert_eq!(body.matches("Content-ID: <root@x>\r\n\r\n{\"a\":1}").count(), 1, "{body}");
    assert!(!body.contains("theirs"), "{body}");
    assert!(of("multipart/related; start=root", ARGUMENTS).1.contains("Content-ID: <root>\r\n"));
    // A part keeps the name that its rule gives it.
    let media = r#"{"media":"data:;base64,aGk="}"#;
    let (_, body) = of("multipart/related; start=root", media);
    assert!(body.contains("Content-ID: <media>") && !body.contains("<root>"), "{body}");
}

#[test]
fn a_boundary_in_the_content_changes_that_of_the_content_type() {
    let arguments = json!({"note": format!("--{USUAL_BOUNDARY}")}).to_string();
    for kind in ["multipart/mixed", "multipart/related"] {
        let (content_type, body) = sent(kind, &fields(), &arguments);
        let boundary = Boundary::of_content_type(&content_type).unwrap();
        assert_ne!(boundary.as_str(), USUAL_BOUNDARY);
        assert!(body.starts_with(&format!("--{}\r\n", boundary.as_str())), "{body}");
    }
}

#[test]
fn what_parts_cannot_have_is_refused() {
    let refused = |format: BodyFormat, content_type: &str, headers: Value| {
        let list = json!([{"source_field_name": "a", "part_headers": headers}]);
        compiled(format, Some(content_type), &list).unwrap_err()
    };
    let parts = BodyFormat::Multipart;
    let long = "x".repeat(HEADERS_BYTES_MAX);
    for (headers, expected) in [
        (json!({"Content-Type": "a/b"}), "is said by content_type"),
        (json!({"Content-Length": "1"}), "how the bytes are written"),
        (json!({"Content-Transfer-Encoding": "base64"}), "how the bytes are written"),
        (json!({"a b": "1"}), "none of a header"),
        (json!({"": "1"}), "none of a header"),
        (json!({"A": "1\r\nB: 2"}), "control characters"),
        (json!({ "A": long }), "longer than 4 KiB"),
    ] {
        let message = refused(parts, "multipart/mixed", headers.clone());
        assert!(message.contains(expected), "{headers}: {message}");
    }
    let one = json!({"A": "1"});
    let message = refused(BodyFormat::Json, "application/json", one.clone());
    assert!(message.contains("set body_format of the tool to \"multipart\""), "{message}");
    let message = refused(parts, "multipart/alternative", one);
    assert!(message.contains("\"multipart/mixed\""), "{message}");
    let binary = json!([{"source_field_name": "a",
                         "part_headers": {"content-transfer-encoding": "Binary"}}]);
    assert!(compiled(parts, Some("multipart/form-data"), &binary).is_ok());
}
