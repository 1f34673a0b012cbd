//! What came of a call in the form of each revision.

use serde_json::{Value, json};

use super::*;

fn shaped(outcome: &ToolOutcome, revision: Revision) -> Value {
    let body = tool_result(outcome, &Supplement::NONE, revision, true).unwrap();
    serde_json::from_slice(&body.as_bytes()).unwrap()
}

fn text_block(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

#[test]
fn outcomes_have_the_form_of_the_revision() {
    for (json, text, structured) in [
        (r#"{"a":1.50}"#, r#"{"a":1.50}"#, r#"{"a":1.50}"#),
        (" [1,2]\n", "[1,2]", r#"{"result":[1,2]}"#),
        ("\"x\"", "\"x\"", r#"{"result":"x"}"#),
        ("null", "null", r#"{"result":null}"#),
        (
            "12345678901234567890123",
            "12345678901234567890123",
            r#"{"result":12345678901234567890123}"#,
        ),
    ] {
        let structured_json = Some(json.as_bytes().to_vec());
        let outcome = ToolOutcome::Success { structured_json, text: None };
        for revision in Revision::ALL {
            let body = tool_result(&outcome, &Supplement::NONE, revision, true).unwrap();
            let has = revision >= Revision::V20250618;
            let tail =
                if has { format!(",\"structuredContent\":{structured}") } else { String::new() };
            let text = serde_json::to_string(text).unwrap();
            let expected = format!(
                "{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]{tail},\"isError\":false}}"
            );
            assert_eq!(std::str::from_utf8(&body.as_bytes()).unwrap(), expected);
        }
    }
    let both =
        ToolOutcome::Success { structured_json: Some(b"{}".to_vec()), text: Some("t".into()) };
    let result = shaped(&both, Revision::NEWEST_WITH_SESSIONS);
    let expected = json!({"content": text_block("t"), "structuredContent": {}, "isError": false});
    assert_eq!(result, expected);
    let text = ToolOutcome::Success { structured_json: None, text: Some("a\n\"b\"".into()) };
    let expected = json!({"content": text_block("a\n\"b\""), "isError": false});
    assert_eq!(shaped(&text, Revision::NEWEST_WITH_SESSIONS), expected);
    let nothing = ToolOutcome::Success { structured_json: None, text: None };
    assert_eq!(
        shaped(&nothing, Revision::NEWEST_WITH_SESSIONS),
        json!({"content": [], "isError": false})
    );
}

#[test]
fn files_have_the_block_of_their_kind_and_revision() {
    let file = |media_type: &str, kept_at: Option<KeptAt>| {
        let (media_type, bytes) = (media_type.to_owned(), [0xff, 0, 1].into());
        ToolOutcome::File(Box::new(File { media_type, bytes, kept_at, is_described: false }))
    };
    let kept = |is_link| Some(KeptAt { uri: "runtime://results/a.0".to_owned(), is_link });
    let embedded = |mime_type: &str, uri: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "blob": "/wAB"}});
    for revision in Revision::ALL {
        let block = |outcome: &ToolOutcome| {
            let shown = shaped(outcome, revision);
            assert_eq!((&shown["isError"], shown.get("structuredContent")), (&json!(false), None));
            shown["content"][0].clone()
        };
        let data = |kind: &str, mime_type: &str| json!({"type": kind, "mimeType": mime_type, "data": "/wAB"});
        assert_eq!(block(&file("image/png", None)), data("image", "image/png"));
        let audio = block(&file("audio/wav", None));
        if revision >= Revision::V20250326 {
            assert_eq!(audio, data("audio", "audio/wav"));
        } else {
            assert_eq!(audio, embedded("audio/wav", "runtime://results/not-kept"));
        }
        let uri = "runtime://results/a.0";
        assert_eq!(block(&file("application/pdf", kept(false))), embedded("application/pdf", uri));
        let link = block(&file("image/png", kept(true)));
        if revision >= Revision::V20250618 {
            let expected = json!({"type": "resource_link", "uri": uri, "name": "result",
                "mimeType": "image/png", "size": 3});
            assert_eq!(link, expected);
        } else {
            assert_eq!(link["text"], format!("3 bytes of image/png: read the resource {uri}"));
        }
        let described = shaped(&file("image/png", None).structured(), revision);
        let has = revision >= Revision::V20250618;
        let expected = has.then(|| json!({"result": "3 bytes of image/png"}));
        assert_eq!(described.get("structuredContent"), expected.as_ref());
    }
}

#[test]
fn failures_are_for_the_model() {
    let failure = ToolOutcome::Failure { text: "HTTP 404".into() };
    let invalid = ToolOutcome::InvalidArguments { text: "`id` is missing".into() };
    for revision in Revision::ALL {
        let expected = json!({"content": text_block("HTTP 404"), "isError": true});
        assert_eq!(shaped(&failure, revision), expected);
        if revision >= Revision::V20251125 {
            let expected = json!({"content": text_block("`id` is missing"), "isError": true});
            assert_eq!(shaped(&invalid, revision), expected);
        } else {
            let error = tool_result(&invalid, &Supplement::NONE, revision, true).unwrap_err();
            assert_eq!((error.code, &*error.message), (-32602, "`id` is missing"));
        }
    }
}
