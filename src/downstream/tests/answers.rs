//! What comes back, and what becomes of it.

use std::time::Duration;

use super::api::{Api, answer, json_answer, pause, raw_answer};
use super::support::{
    ENVIRONMENT, call, caller_with, declared, failure, get, gzipped, json, on_a_core, request,
    text, tool,
};
use crate::downstream::error::CallError;
use crate::mcp::ToolOutcome;

#[test]
pub(super) fn json_text_and_emptiness_are_successes() {
    let table = [
        (json_answer("200 OK", "{\"a\":[1.50]}"), json("{\"a\":[1.50]}")),
        (json_answer("200 OK", "\u{feff}{}"), json("{}")),
        (answer("201 Created", "", b"[1]"), json("[1]")),
        (
            answer("200 OK", "Content-Type: text/plain\r\n", b"plain"),
            Ok(ToolOutcome::Success { structured_json: None, text: Some("plain".to_owned()) }),
        ),
    ];
    for (sent, expected) in table {
        assert_eq!(get(&Api::answering(sent.clone())), expected, "{sent}");
    }
    let no_content = "HTTP/1.1 204 No Content\r\n\r\n";
    assert!(text(get(&Api::answering(no_content))).contains("204 No Content"));
    assert!(text(get(&Api::answering(answer("200 OK", "", b"")))).contains("without content"));
    let picture = raw_answer("200 OK", "Content-Type: image/png\r\n", &[0x89; 70]);
    let Ok(ToolOutcome::File(file)) = get(&Api::answering(picture)) else { panic!("no file") };
    assert_eq!((&*file.media_type, &*file.bytes), ("image/png", &[0x89; 70][..]));
}

#[test]
fn no_answer_shows_what_response_fields_hide() {
    let html = answer("200 OK", "Content-Type: text/html\r\n", b"<p>s3cr3t</p>");
    let plain = answer("200 OK", "Content-Type: text/plain\r\n", b"{\"pin\":\"s3cr3t\"}");
    let lines = json_answer("200 OK", "{\"pin\":\"s3cr3t\"}\n{\"pin\":\"s3cr3t\"}");
    let error = json_answer("200 OK", "{\"error\":\"s3cr3t\"}");
    let rules = "response_fields = [{ source_field_name = \"id\", type = \"integer\" }]";
    for (sent, structured, told) in [
        (html, None, Some("HTTP 200: the API answered with 13 bytes of text and none of")),
        (plain, None, Some("HTTP 200: the API answered with 16 bytes of text and none of")),
        (lines, None, Some("HTTP 200: the API answered with 33 bytes of text and none of")),
        (error, Some("{}"), Some("HTTP 200: the API answered, but with none of the fields")),
        (json_answer("200 OK", "\"s3cr3t\""), Some("{}"), Some("HTTP 200: the API answered, but")),
        (json_answer("200 OK", "[{\"id\":1,\"pin\":\"s3cr3t\"}]"), Some("[{\"id\":1}]"), None),
        (
            json_answer("200 OK", "{\"id\":{\"pin\":\"s3cr3t\"},\"a\":1}"),
            Some("{\"id\":null}"),
            Some(""),
        ),
        (json_answer("200 OK", "{}"), Some("{}"), None),
    ] {
        let api = Api::answering(sent.clone());
        let base = format!("http://{}/v1", api.address);
        let asked = format!("method = \"GET\"\npath = \"/x\"\n{rules}");
        let outcome = call(&declared(&base, "", &asked), &request("GET", "/x")).unwrap();
        let ToolOutcome::Success { structured_json, text } = outcome else { panic!("{sent}") };
        let structured_json = structured_json.map(|json| String::from_utf8(json).unwrap());
        assert_eq!(structured_json.as_deref(), structured, "{sent}");
        assert_eq!(text.is_some(), told.is_some(), "{sent}");
        assert!(text.unwrap_or_default().starts_with(told.unwrap_or_default()), "{sent}");
        let api = Api::answering(sent.clone());
        let base = format!("http://{}/v1", api.address);
        let asked = format!("{asked}\npass_unmapped = true");
        let outcome = call(&declared(&base, "", &asked), &request("GET", "/x")).unwrap();
        let ToolOutcome::Success { structured_json, text } = outcome else { panic!("{sent}") };
        let shown = structured_json.or(text.map(String::into_bytes)).unwrap();
        assert!(sent.ends_with(&*String::from_utf8(shown).unwrap()), "{sent}");
    }
}

#[test]
fn a_head_request_has_no_body_to_wait_for() {
    let api = Api::answering("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
    let outcome = call(&tool(&api, ""), &request("HEAD", "/x"));
    assert!(text(outcome).contains("200 OK"));
}

/// The body that some servers send after the head would be the answer to the next call.
#[test]
fn a_connection_is_not_used_again_where_a_body_may_come_unasked() {
    for (method, head) in [
        ("HEAD", "200 OK\r\nContent-Length: 4"),
        ("GET", "204 No Content\r\nContent-Length: 4"),
        ("GET", "204 No Content\r\nTransfer-Encoding: chunked"),
    ] {
        let api = Api::answering(format!("HTTP/1.1 {head}\r\n\r\n"));
        let (idle, outcome) = on_a_core(async {
            let caller = caller_with(|_| {});
            let called = caller.run(&tool(&api, ""), &request(method, "/x"), &ENVIRONMENT).await;
            (caller.idle_connections(), called.result)
        });
        assert!(outcome.is_ok(), "{head}: {outcome:?}");
        assert_eq!(idle, 0, "{method}: {head}");
    }
}

#[test]
fn chunked_bodies_arrive_whole_however_they_are_cut() {
    let api = Api::start(|_, talk| {
        while talk.request().is_some() {
            let parts = [
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Enc",
                "oding: chunked\r\n\r\n4\r",
                "\n{\"a\"\r\n2;x=y\r\n:1\r\n1\r\n}",
                "\r\n0\r\nX-Trailer: 1\r\n\r\n",
            ];
            for part in parts {
                talk.say(part);
                pause(Duration::from_millis(15));
            }
        }
    });
    assert_eq!(get(&api), json("{\"a\":1}"));
}

#[test]
fn a_body_without_length_lasts_until_the_connection_closes() {
    let api = Api::start(|_, talk| {
        talk.request();
        talk.say("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nto the ");
        talk.say("end");
    });
    assert_eq!(text(get(&api)), "to the end");
}

#[test]
fn every_coding_is_undone() {
    let gzip = raw_answer(
        "200 OK",
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
        &gzipped(b"{\"a\":1}"),
    );
    assert_eq!(get(&Api::answering(gzip)), json("{\"a\":1}"));
    let twice = raw_answer(
        "200 OK",
        "Content-Encoding: gzip\r\nX: y\r\nContent-Encoding: gzip\r\n",
        &gzipped(&gzipped(b"[2]")),
    );
    assert_eq!(get(&Api::answering(twice)), json("[2]"));
    let unknown = answer("200 OK", "Content-Encoding: compress\r\n", b"x");
    let error = get(&Api::answering(unknown)).unwrap_err();
    assert!(error.to_string().contains("unknown content encoding \"compress\""), "{error}");
}

#[test]
fn bombs_and_floods_stop_at_their_limits() {
    let bomb = raw_answer("200 OK", "Content-Encoding: gzip\r\n", &gzipped(&vec![b' '; 8 << 20]));
    let error = on_a_core(async {
        let caller = caller_with(|settings| settings.decoded_bytes_max = 1 << 20);
        caller
            .run(&tool(&Api::answering(bomb), ""), &request("GET", "/"), &ENVIRONMENT)
            .await
            .result
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("1048576 bytes (downstream.decoded_bytes_max)"), "{error}");

    for head in ["Content-Length: 99999\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"] {
        let api = Api::start(move |_, talk| {
            talk.request();
            talk.say(format!("HTTP/1.1 200 OK\r\n{head}"));
            while talk.say(format!("400\r\n{}\r\n", "x".repeat(1024))) {}
        });
        let error = on_a_core(async {
            let caller = caller_with(|settings| settings.response_bytes_max = 20_000);
            caller.run(&tool(&api, ""), &request("GET", "/"), &ENVIRONMENT).await.result
        });
        let error = error.unwrap_err();
        assert!(matches!(error, CallError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("20000"), "{error}");
    }
}

#[test]
fn large_answers_are_shaped_off_the_core() {
    let large = format!("[{}1]", "1,".repeat(300_000));
    let plain = json_answer("200 OK", &large);
    assert_eq!(get(&Api::answering(plain)), json(&large));
    let packed = raw_answer("200 OK", "Content-Encoding: gzip\r\n", &gzipped(large.as_bytes()));
    assert!(packed.len() < 100_000);
    assert_eq!(get(&Api::answering(packed)), json(&large));
    let failing = answer("500 Oh", "Content-Type: text/plain\r\n", "no ".repeat(99_999).as_bytes());
    assert!(failure(get(&Api::answering(failing))).contains("299997 bytes in all"));
}

#[test]
fn what_claims_to_be_json_and_is_not_is_text() {
    for body in ["{\"a\":", "{\"a\":1}\n{\"a\":2}\n", "OK"] {
        assert_eq!(text(get(&Api::answering(json_answer("200 OK", body)))), body);
    }
    let latin = raw_answer("200 OK", "Content-Type: application/json\r\n", b"\"caf\xe9\"");
    assert_eq!(text(get(&Api::answering(latin))), "\"café\"");
}

#[test]
fn json_that_is_deep_or_ambiguous_is_given_as_text() {
    let deep = "[".repeat(20_000) + &"]".repeat(20_000);
    for (body, expected) in [(&*deep, "deeper than"), ("{\"a\":1,\"a\":2}", "duplicate key")] {
        let api = Api::answering(json_answer("200 OK", body));
        let told = text(get(&api));
        let (remark, given) = told.split_once("\n\n").unwrap();
        assert!(remark.starts_with("HTTP 200: the call was made.") && remark.contains(expected));
        assert_eq!(given, body);
        // With rules of what is shown, nobody knows where it stands in there.
        let api = Api::answering(json_answer("200 OK", body));
        let rules = "response_fields = [{ source_field_name = \"id\" }]";
        let asked = format!("method = \"GET\"\npath = \"/x\"\n{rules}");
        let tool = declared(&format!("http://{}", api.address), "", &asked);
        let told = text(call(&tool, &request("GET", "/x")));
        assert!(told.contains("none of the fields") && !told.contains('"'), "{told}");
    }
}

#[test]
fn refusals_of_the_api_are_failures_with_its_words() {
    let problem = answer(
        "422 Unprocessable Content",
        "Content-Type: application/problem+json\r\nX-Request-Id: r-7\r\n",
        b"{\"title\":\"Out of stock\",\"detail\":\"Item 7\"}",
    );
    let told = failure(get(&Api::answering(problem)));
    assert!(told.starts_with("HTTP 422 ") && told.contains("Out of stock: Item 7"), "{told}");
    assert!(told.ends_with("Correlation id: r-7"), "{told}");

    let busy = answer("429 Too Many Requests", "Retry-After: 30\r\n", b"slow down");
    assert!(failure(get(&Api::answering(busy))).ends_with("slow down\nRetry after: 30 seconds"));

    let page = answer("500 Oops", "Content-Type: text/html\r\n", b"<html><title>Oops</title><b>x");
    let told = failure(get(&Api::answering(page)));
    assert!(told.contains("HTML page titled \"Oops\"") && !told.contains("<b>"), "{told}");

    let api = Api::answering(answer("401 Unauthorized", "", b"bad token s3cr3t-1 given"));
    let tool = tool(&api, "headers = { Authorization = \"Bearer s3cr3t-1\" }");
    let told = failure(call(&tool, &request("GET", "/x")));
    assert!(told.contains("credential of connection \"orders\"") && !told.contains("s3cr3t"));

    let broken = raw_answer("503 Busy", "Content-Encoding: gzip\r\n", b"no gzip");
    let told = failure(get(&Api::answering(broken)));
    assert!(told.starts_with("HTTP 503") && told.contains("cannot be read"), "{told}");
}

#[test]
fn an_api_that_echoes_its_headers_tells_no_credential() {
    let connection = "headers = { Authorization = \"Bearer s3cr3t-12\" }";
    let echo = "{\"headers\":{\"authorization\":\"Bearer s3cr3t-12\",\"id\":\"\\u00733cr3t-12\"}}";
    let clean = json("{\"headers\":{\"authorization\":\"[removed]\",\"id\":\"[removed]\"}}");
    let api = Api::answering(json_answer("200 OK", echo));
    assert_eq!(call(&tool(&api, connection), &request("GET", "/x")), clean);

    let api = Api::answering(answer("200 OK", "Content-Type: text/plain\r\n", b"got s3cr3t-12"));
    assert_eq!(text(call(&tool(&api, connection), &request("GET", "/x"))), "got [removed]");

    let long = format!("[{}\"s3cr3t-12\"]", "1,".repeat(100_000));
    let api = Api::answering(json_answer("200 OK", &long));
    let outcome = call(&tool(&api, connection), &request("GET", "/x"));
    assert_eq!(outcome, json(&long.replace("s3cr3t-12", "[removed]")));
}

#[test]
fn interim_answers_are_skipped() {
    let answer = format!(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n{}",
        json_answer("200 OK", "{}")
    );
    assert_eq!(get(&Api::answering(answer)), json("{}"));
}
