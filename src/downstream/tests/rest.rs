use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::sleep as pause;
use std::time::{Duration, Instant};

use super::api::{Api, Talk, answer, json_answer, raw_answer};
use crate::catalog::{CompiledTool, Snapshot, files};
use crate::downstream::error::{Awaited, Blame, CallError, Unreachable};
use crate::downstream::{CallEnvironment, RestCaller, Shaped};
use crate::mapping::OutgoingRequest;
use crate::rt::{self, CoreOptions, Either, Resolver, WorkerPool};
use crate::settings;

const SECOND: Duration = Duration::from_secs(1);
const ENVIRONMENT: CallEnvironment<'_> =
    CallEnvironment { execution_id: "test", correlation_id: None, time_left: None };

/// A tool of kind `rest` behind a connection with these extra lines in its declaration.
fn tool_at(base_url: &str, connection: &str) -> Arc<CompiledTool> {
    let text = format!(
        r#"
        [[tenant]]
        id = "acme"
        [[client_application]]
        tenant = "acme"
        id = "desk"
        [[connection]]
        tenant = "acme"
        id = "orders"
        base_url = "{base_url}"
        {connection}
        [[toolset]]
        tenant = "acme"
        id = "shop"
        kind = "rest"
        connection = "orders"
        [[tool]]
        tenant = "acme"
        toolset = "shop"
        name = "anything"
        description = "Asks anything"
        method = "GET"
        path = "/anything"
        [[assignment]]
        tenant = "acme"
        client_application = "desk"
        toolset = "shop"
        "#
    );
    let (entities, problems) = files::read_text(Path::new("test.toml"), &text);
    assert!(problems.is_empty(), "{problems:?}");
    let snapshot = Snapshot::compile(&entities, 1).unwrap();
    Arc::clone(snapshot.view("acme", "desk").unwrap().tool("anything").unwrap())
}

fn tool(api: &Api, connection: &str) -> Arc<CompiledTool> {
    tool_at(&format!("http://{}/v1/", api.address), connection)
}

fn request(method: &str, target: &str) -> OutgoingRequest {
    OutgoingRequest {
        method: method.into(),
        target: target.into(),
        headers: Vec::new(),
        body: None,
        content_type: None,
    }
}

fn posting(body: &[u8]) -> OutgoingRequest {
    OutgoingRequest {
        body: Some(body.to_vec()),
        content_type: Some("application/json"),
        ..request("POST", "/orders")
    }
}

fn caller_with(change: impl FnOnce(&mut settings::Downstream)) -> RestCaller {
    let mut settings = settings::Downstream { ..settings::Downstream::default() };
    change(&mut settings);
    let workers = WorkerPool::start(1, 64).unwrap();
    let resolver = Resolver::new(workers.clone());
    RestCaller::new(&settings, &settings::Http::default(), resolver, workers, None)
}

fn caller() -> RestCaller {
    caller_with(|_| {})
}

fn on_a_core<T>(future: impl Future<Output = T>) -> T {
    rt::run_once(CoreOptions::default(), future).unwrap()
}

/// One call with an own caller.
fn call(tool: &Arc<CompiledTool>, request: &OutgoingRequest) -> Result<Shaped, CallError> {
    on_a_core(async { caller().run(tool, request, &ENVIRONMENT).await })
}

fn get(api: &Api) -> Result<Shaped, CallError> {
    call(&tool(api, ""), &request("GET", "/x"))
}

fn json(text: &str) -> Result<Shaped, CallError> {
    Ok(Shaped::Json(text.as_bytes().to_vec()))
}

fn failure(outcome: Result<Shaped, CallError>) -> String {
    match outcome {
        Ok(Shaped::Failure(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn text(outcome: Result<Shaped, CallError>) -> String {
    match outcome {
        Ok(Shaped::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn gzipped(plain: &[u8]) -> Vec<u8> {
    let mut encoder =
        flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

// What goes out.

#[test]
fn the_request_holds_what_connection_and_mapping_say_and_no_more() {
    let (seen, requests) = channel();
    let api = Api::start(move |_, talk| {
        while let Some(request) = talk.request() {
            seen.send(request).unwrap();
            talk.say(json_answer("200 OK", "{}"));
        }
    });
    let tool = tool(&api, "headers = { Authorization = \"Bearer s3cr3t\" }");
    let mut asked = posting(b"{\"n\":1.50}");
    asked.headers.push(("X-Trace".to_owned(), "7".to_owned()));
    let environment = CallEnvironment { correlation_id: Some("c-1"), ..ENVIRONMENT };
    let outcome = on_a_core(async { caller().run(&tool, &asked, &environment).await });
    assert_eq!(outcome, json("{}"));
    let request = requests.recv().unwrap().to_ascii_lowercase();
    let mut lines: Vec<&str> = request.split("\r\n").collect();
    assert_eq!(lines[0], "post /v1/orders http/1.1");
    assert_eq!(lines.pop(), Some("{\"n\":1.50}"));
    let mut headers = lines[1..lines.len() - 1].to_vec();
    headers.sort_unstable();
    let user_agent = format!("user-agent: ringway/{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        headers,
        [
            "accept-encoding: gzip, br, zstd, deflate",
            "accept: application/json",
            "authorization: bearer s3cr3t",
            "content-length: 10",
            "content-type: application/json",
            &format!("host: {}", api.address),
            &user_agent,
            "x-correlation-id: c-1",
            "x-trace: 7",
        ]
    );
}

#[test]
fn a_header_that_would_break_its_line_is_not_sent() {
    let api = Api::answering(json_answer("200 OK", "{}"));
    let mut asked = request("GET", "/x");
    asked.headers.push(("X-A".to_owned(), "1\r\nX-B: 2".to_owned()));
    let error = call(&tool(&api, ""), &asked).unwrap_err();
    assert!(matches!(error, CallError::Unsendable { .. }), "{error}");
    assert_eq!(error.blame(), Blame::Client);
}

// What comes back.

#[test]
fn json_text_and_emptiness_are_successes() {
    let table = [
        (json_answer("200 OK", "{\"a\":[1.50]}"), json("{\"a\":[1.50]}")),
        (json_answer("200 OK", "\u{feff}{}"), json("{}")),
        (answer("201 Created", "", b"[1]"), json("[1]")),
        (
            answer("200 OK", "Content-Type: text/plain\r\n", b"plain"),
            Ok(Shaped::Text("plain".to_owned())),
        ),
    ];
    for (sent, expected) in table {
        assert_eq!(get(&Api::answering(sent.clone())), expected, "{sent}");
    }
    let no_content = "HTTP/1.1 204 No Content\r\n\r\n";
    assert!(text(get(&Api::answering(no_content))).contains("204 No Content"));
    assert!(text(get(&Api::answering(answer("200 OK", "", b"")))).contains("without content"));
    let picture = raw_answer("200 OK", "Content-Type: image/png\r\n", &[0x89; 70]);
    let told = text(get(&Api::answering(picture)));
    assert!(told.contains("70 bytes of image/png"), "{told}");
}

#[test]
fn a_head_request_has_no_body_to_wait_for() {
    let api = Api::answering("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
    let outcome = call(&tool(&api, ""), &request("HEAD", "/x"));
    assert!(text(outcome).contains("200 OK"));
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
        caller.run(&tool(&Api::answering(bomb), ""), &request("GET", "/"), &ENVIRONMENT).await
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
            caller.run(&tool(&api, ""), &request("GET", "/"), &ENVIRONMENT).await
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
fn what_claims_to_be_json_and_is_not_is_refused() {
    let deep = "[".repeat(20_000) + &"]".repeat(20_000);
    for (body, expected) in [
        ("{\"a\":", "malformed JSON"),
        (&deep, "deeper than"),
        ("{\"a\":1,\"a\":2}", "duplicate key"),
    ] {
        let error = get(&Api::answering(json_answer("200 OK", body))).unwrap_err();
        assert!(matches!(error, CallError::Json { status: 200, .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
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
fn interim_answers_are_skipped() {
    let answer = format!(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n{}",
        json_answer("200 OK", "{}")
    );
    assert_eq!(get(&Api::answering(answer)), json("{}"));
}

// Redirects.

fn redirecting() -> Api {
    Api::start(|_, talk| {
        while let Some(request) = talk.request() {
            let target = request.split(' ').nth(1).unwrap().to_owned();
            let location = match &*target {
                "/v1/one" => "two?a=b",
                "/v1/two?a=b" => "/v1/three",
                "/v1/loop" => "/v1/loop",
                "/v1/away" => "https://login.example.com/?state=s3cr3t",
                _ => {
                    talk.say(json_answer("200 OK", &format!("\"{target}\"")));
                    continue;
                }
            };
            talk.say(answer("302 Found", &format!("Location: {location}\r\n"), b"moved"));
        }
    })
}

#[test]
fn redirects_are_failures_that_name_the_origin_alone() {
    let api = redirecting();
    let told = failure(call(&tool(&api, ""), &request("GET", "/away")));
    assert!(told.contains("redirects to https://login.example.com,"), "{told}");
    assert!(!told.contains("state"), "{told}");
    let told = failure(call(&tool(&api, ""), &request("GET", "/one")));
    assert!(told.contains("within the same host"), "{told}");
}

#[test]
fn a_connection_may_follow_redirects_of_its_own_origin() {
    let api = redirecting();
    let tool = tool(&api, "follow_redirects = true");
    assert_eq!(call(&tool, &request("GET", "/one")), json("\"/v1/three\""));
    assert_eq!(api.connections(), 1, "over one connection");
    assert!(failure(call(&tool, &request("GET", "/loop"))).starts_with("HTTP 302"));
    assert!(failure(call(&tool, &request("GET", "/away"))).contains("login.example.com"));
    assert!(failure(call(&tool, &request("POST", "/one"))).starts_with("HTTP 302"));
}

// Connections.

#[test]
fn one_connection_serves_call_after_call() {
    let api = Api::answering(json_answer("200 OK", "{}"));
    let tool = tool(&api, "");
    on_a_core(async {
        let caller = caller();
        for _ in 0..50 {
            assert_eq!(caller.run(&tool, &posting(b"{}"), &ENVIRONMENT).await, json("{}"));
        }
        assert_eq!(caller.idle_connections(), 1);
    });
    assert_eq!(api.connections(), 1);
}

#[test]
fn a_connection_is_not_kept_where_the_api_or_the_bytes_say_so() {
    let surplus = json_answer("200 OK", "{}") + "HTTP/1.1 200 OK\r\n";
    let closing = answer("200 OK", "Connection: close\r\n", b"{}");
    let old = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_owned();
    for sent in [surplus, closing, old] {
        let api = Api::answering(sent.clone());
        let tool = tool(&api, "");
        on_a_core(async {
            let caller = caller();
            for _ in 0..3 {
                let outcome = caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await;
                assert_eq!(outcome, json("{}"), "{sent}");
                assert_eq!(caller.idle_connections(), 0, "{sent}");
            }
        });
        assert_eq!(api.connections(), 3, "{sent}");
    }
}

#[test]
fn idle_connections_are_bounded_in_number_and_time() {
    let api = Api::start(|_, talk| {
        while talk.request().is_some() {
            pause(Duration::from_millis(100));
            talk.say(json_answer("200 OK", "{}"));
        }
    });
    let tool = tool(&api, "");
    on_a_core(async {
        let caller = std::rc::Rc::new(caller_with(|settings| {
            settings.idle_connections_max = 2;
            settings.idle_connection_seconds = 1;
        }));
        for _ in 0..5 {
            let (caller, tool) = (std::rc::Rc::clone(&caller), Arc::clone(&tool));
            rt::spawn(async move {
                let outcome = caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await;
                assert_eq!(outcome, json("{}"));
            });
        }
        rt::sleep(Duration::from_millis(600)).await;
        assert_eq!(caller.idle_connections(), 2);
        rt::sleep(Duration::from_millis(3000)).await;
        assert_eq!(caller.idle_connections(), 0);
    });
}

/// Answers once, says goodbye, and tells so; later connections answer for ever.
fn leaving(leave: impl Fn(&mut Talk) + Send + Sync + 'static) -> Api {
    Api::start(move |number, talk| {
        if number == 0 {
            talk.request();
            talk.say(json_answer("200 OK", "1"));
            leave(talk);
            return;
        }
        while talk.request().is_some() {
            talk.say(json_answer("200 OK", "2"));
        }
    })
}

#[test]
fn a_connection_that_ended_while_idle_is_not_used_again() {
    let goodbyes: [fn(&mut Talk); 3] = [
        |_| (),
        Talk::reset,
        |talk| {
            talk.say("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
            talk.gone_within(SECOND);
        },
    ];
    for goodbye in goodbyes {
        let api = leaving(goodbye);
        let tool = tool(&api, "");
        on_a_core(async {
            let caller = caller();
            // Not repeatable: only the look before the use can save it.
            assert_eq!(caller.run(&tool, &posting(b"{}"), &ENVIRONMENT).await, json("1"));
            rt::sleep(Duration::from_millis(100)).await;
            assert_eq!(caller.run(&tool, &posting(b"{}"), &ENVIRONMENT).await, json("2"));
        });
    }
}

#[test]
fn a_connection_lost_in_the_race_is_replaced_once_where_that_does_no_harm() {
    // Reads the second request and closes: what a client sees whose request crossed a goodbye.
    let racing = || {
        leaving(|talk| {
            talk.request();
        })
    };
    for (method, repeated) in [("GET", true), ("PUT", true), ("DELETE", true), ("POST", false)] {
        let api = racing();
        let tool = tool(&api, "");
        let outcome = on_a_core(async {
            let caller = caller();
            assert_eq!(caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await, json("1"));
            caller.run(&tool, &request(method, "/"), &ENVIRONMENT).await
        });
        if repeated {
            assert_eq!(outcome, json("2"), "{method}");
            assert_eq!(api.connections(), 2, "{method}");
        } else {
            let error = outcome.unwrap_err();
            assert!(matches!(error, CallError::Closed { answering: false, .. }), "{error}");
            assert!(!error.may_retry() && api.connections() == 1, "{error}");
        }
    }
}

#[test]
fn a_fresh_connection_that_fails_is_not_tried_again() {
    let api = Api::start(|_, talk| {
        talk.request();
    });
    let error = get(&api).unwrap_err();
    assert!(matches!(error, CallError::Closed { answering: false, repeatable: true, .. }));
    assert!(error.may_retry() && error.blame() == Blame::Downstream);
    assert_eq!(api.connections(), 1);
}

#[test]
fn half_an_answer_is_an_error_and_never_a_short_body() {
    let halves = [
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\"",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n",
    ];
    for half in halves {
        let api = Api::start(move |_, talk| {
            talk.request();
            talk.say(half);
        });
        let error = get(&api).unwrap_err();
        assert!(matches!(error, CallError::Closed { answering: true, .. }), "{half}: {error}");
        assert_eq!(api.connections(), 1, "{half}");
    }
}

#[test]
fn what_is_no_http_is_refused_with_its_reason() {
    for sent in [
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ] {
        let error = get(&Api::answering(sent)).unwrap_err();
        assert!(matches!(error, CallError::Refused { .. }), "{sent}: {error}");
    }
}

#[test]
fn an_api_may_answer_before_it_has_read_a_long_request() {
    let api = Api::start(|_, talk| {
        talk.sip();
        talk.say(answer("413 Content Too Large", "Connection: close\r\n", b"too long"));
        talk.gone_within(2 * SECOND);
    });
    let started = Instant::now();
    let body = vec![b' '; 8 << 20];
    let told = failure(call(&tool(&api, ""), &posting(&body)));
    assert!(told.starts_with("HTTP 413") && told.ends_with("too long"), "{told}");
    assert!(started.elapsed() < SECOND);
}

#[test]
fn a_long_request_arrives_whole_and_its_connection_is_kept() {
    let (seen, lengths) = channel();
    let api = Api::start(move |_, talk| {
        while let Some(request) = talk.request() {
            seen.send(request.len()).unwrap();
            talk.say(json_answer("200 OK", "{}"));
        }
    });
    let tool = tool(&api, "");
    on_a_core(async {
        let caller = caller();
        for _ in 0..3 {
            let body = vec![b' '; 3 << 20];
            assert_eq!(caller.run(&tool, &posting(&body), &ENVIRONMENT).await, json("{}"));
        }
    });
    assert_eq!(api.connections(), 1);
    assert!(lengths.recv().unwrap() > 3 << 20);
}

// Time.

#[test]
fn slow_answers_run_into_their_limits() {
    let silent = Api::start(|_, talk| {
        talk.request();
        talk.gone_within(5 * SECOND);
    });
    let dripping = Api::start(|_, talk| {
        talk.request();
        talk.say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while talk.say("x") {
            pause(Duration::from_millis(30));
        }
    });
    let limits = "headers_timeout_ms = 200\ntotal_timeout_ms = 600";
    for (api, awaited, limit_ms) in [(silent, Awaited::Head, 200), (dripping, Awaited::Body, 600)] {
        let started = Instant::now();
        let error = call(&tool(&api, limits), &request("GET", "/")).unwrap_err();
        let CallError::TimedOut { awaited: for_what, limit_ms: limit, repeatable, .. } = error
        else {
            panic!("{error}")
        };
        assert_eq!((for_what, limit, repeatable), (awaited, limit_ms, true));
        let taken = started.elapsed();
        assert!(taken >= Duration::from_millis(limit_ms) && taken < SECOND, "{taken:?}");
    }
}

#[test]
fn the_callers_own_time_counts_too() {
    let api = Api::start(|_, talk| {
        talk.request();
        talk.gone_within(5 * SECOND);
    });
    let environment =
        CallEnvironment { time_left: Some(Duration::from_millis(150)), ..ENVIRONMENT };
    let tool = tool(&api, "");
    let error = on_a_core(async { caller().run(&tool, &posting(b""), &environment).await });
    assert!(matches!(error, Err(CallError::TimedOut { limit_ms: 150, repeatable: false, .. })));
}

#[test]
fn an_api_that_takes_no_request_is_given_up() {
    let api = Api::start(|_, talk| {
        talk.sip();
        pause(3 * SECOND);
    });
    let body = vec![b' '; 16 << 20];
    let error = call(&tool(&api, "headers_timeout_ms = 300"), &posting(&body)).unwrap_err();
    assert!(
        matches!(error, CallError::TimedOut { awaited: Awaited::Request | Awaited::Head, .. }),
        "{error}"
    );
}

#[test]
fn dropping_a_call_closes_its_connection_at_once() {
    let (seen, gone) = channel();
    let api = Api::start(move |_, talk| {
        talk.request();
        talk.say("HTTP/1.1 200 OK\r\n");
        seen.send(None).unwrap();
        seen.send(talk.gone_within(5 * SECOND)).unwrap();
    });
    let tool = tool(&api, "");
    on_a_core(async {
        let caller = caller();
        let asked = request("GET", "/");
        let call = caller.run(&tool, &asked, &ENVIRONMENT);
        let cancelled = rt::sleep(Duration::from_millis(300));
        assert!(matches!(rt::race(call, cancelled).await, Either::Right(())));
        rt::sleep(Duration::from_millis(300)).await;
        assert_eq!(caller.idle_connections(), 0);
    });
    assert_eq!(gone.recv().unwrap(), None);
    let after = gone.recv().unwrap().expect("the API sees the end");
    assert!(after < Duration::from_millis(450), "{after:?}");
}

// The way out.

#[test]
fn blocked_networks_are_not_reached_under_any_name() {
    let api = Api::answering(json_answer("200 OK", "{}"));
    let port = api.address.port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let tool = tool_at(&format!("http://{host}:{port}"), "");
        let error = on_a_core(async {
            let caller = caller_with(|settings| {
                settings.blocked_networks =
                    vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()];
            });
            caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await.unwrap_err()
        });
        let problem = Unreachable::Blocked;
        assert!(matches!(&error, CallError::Unreachable { problem: p, .. } if *p == problem));
        assert_eq!((error.blame(), error.may_retry()), (Blame::Us, false), "{host}");
    }
    assert_eq!(api.connections(), 0);
}

#[test]
fn a_closed_door_says_what_to_check() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed = tool_at(&format!("http://127.0.0.1:{port}"), "");
    let nowhere = tool_at("http://no-such-host.invalid", "");
    let sealed = tool_at("https://127.0.0.1:1", "");
    for (tool, problem) in [
        (closed, Unreachable::Unconnected),
        (nowhere, Unreachable::Unresolved),
        (sealed, Unreachable::NoTls),
    ] {
        let error = call(&tool, &request("GET", "/")).unwrap_err();
        assert!(
            matches!(&error, CallError::Unreachable { problem: p, .. } if *p == problem),
            "{error}: {}",
            error.detail()
        );
        assert!(!error.to_string().contains("127.0.0.1"), "{error}");
    }
}
