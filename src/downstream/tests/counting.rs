//! Every call is counted once, by how it ended.

use std::time::Duration;

use super::api::{Api, answer, json_answer};
use super::support::{ENVIRONMENT, caller_counted_by, on_a_core, request, tool, tool_at};
use crate::rt::{self, Either};
use crate::telemetry::{Metrics, ProcessFigures};

#[test]
fn every_call_is_counted_once_by_its_end() {
    let metrics = Metrics::new(1, 0, ProcessFigures::default);
    let core = metrics.core(0).unwrap();
    let api = Api::start(|_, talk| {
        while let Some(request) = talk.request() {
            let status = match request.split(' ').nth(1).unwrap() {
                "/v1/ok" => "200 OK",
                "/v1/no" => "404 Not Found",
                "/v1/oops" => "500 Oops",
                "/v1/large" => {
                    talk.say("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n");
                    continue;
                }
                "/v1/odd" => {
                    talk.say(answer("200 OK", "Content-Encoding: odd\r\n", b"x"));
                    continue;
                }
                _ => {
                    talk.gone_within(Duration::from_secs(5));
                    return;
                }
            };
            talk.say(json_answer(status, "{}"));
        }
    });
    let tool = tool(&api, "headers_timeout_ms = 300");
    let blocked = tool_at("http://127.1.1.1:1", "");
    let closed = tool_at("http://127.0.0.1:1", "");
    on_a_core(async {
        let caller = caller_counted_by(core, |settings| {
            settings.blocked_networks = vec!["127.1.0.0/16".parse().unwrap()];
        });
        for path in ["/ok", "/ok", "/no", "/oops", "/large", "/odd", "/slow"] {
            let _ = caller.run(&tool, &request("GET", path), &ENVIRONMENT).await.result;
        }
        for tool in [blocked, closed] {
            caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await.result.unwrap_err();
        }
        let asked = request("GET", "/slow");
        let call = caller.run(&tool, &asked, &ENVIRONMENT);
        let dropped = rt::race(call, rt::sleep(Duration::from_millis(50))).await;
        assert!(matches!(dropped, Either::Right(())));
    });
    let text = metrics.render();
    for (outcome, count) in [
        ("ok", 2),
        ("client_error", 1),
        ("server_error", 1),
        ("too_large", 1),
        ("broken", 1),
        ("timed_out", 1),
        ("blocked", 1),
        ("connect_failed", 1),
        ("cancelled", 1),
    ] {
        let line = format!("ringway_downstream_calls_total{{outcome=\"{outcome}\"}} {count}\n");
        assert!(text.contains(&line), "{outcome}: {text}");
    }
    assert!(text.contains("ringway_downstream_duration_seconds_count 10\n"), "{text}");
}
