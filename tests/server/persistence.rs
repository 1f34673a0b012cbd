//! Calls that are tried again, connections that are given a rest, work that is only accepted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::harness::{
    Asked, Client, NEWEST, Plan, Ringway, Service, Setup, answer, call, cancel, eventually,
    json_answer,
};

/// A service that gives each request, by its number from 0, what `plan` says.
fn counted(
    plan: impl Fn(usize, &Asked) -> Plan + Send + Sync + 'static,
) -> (Service, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let number = count.clone();
    let service = Service::start(move |asked| plan(number.fetch_add(1, Ordering::SeqCst), asked));
    (service, count)
}

fn start(base: &str, connection: &str, tools: &[(&str, &str, &str, &str)]) -> (Ringway, Client) {
    let connection = format!("base_url = \"{base}\"\n{connection}");
    let server = Setup::new().set("runtime.cores", 1).api_with(&connection, tools).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    (server, client)
}

fn is_ok(result: &Value) -> bool {
    result["isError"] == json!(false)
}

const RETRIES: &str = "retries = { attempts = 3, first_wait_ms = 10 }";

#[test]
fn only_what_may_be_repeated_is_tried_again() {
    let (service, count) = counted(|number, _| {
        Plan::Answer(match number % 3 {
            2 => json_answer("{\"ok\":true}"),
            1 => answer("503 Service Unavailable", &[("Retry-After", "0")], b""),
            _ => answer("502 Bad Gateway", &[], b""),
        })
    });
    let body = "fields = [{ source_field_name = \"a\" }]";
    let keyed = format!("{body}\nidempotency_key_header = \"Idempotency-Key\"");
    let said = format!("{body}\nannotations = {{ idempotent_hint = true }}");
    let tools = [
        ("find", "GET", "/", ""),
        ("put", "PUT", "/", body),
        ("post", "POST", "/", body),
        ("keyed", "POST", "/", &*keyed),
        ("said", "POST", "/", &*said),
    ];
    let (_server, client) = start(&service.base(), RETRIES, &tools);
    for (tool, asked) in [("find", 3), ("put", 3), ("keyed", 3), ("said", 3), ("post", 1)] {
        count.store(0, Ordering::SeqCst);
        let result = client.called(tool, json!({}));
        assert_eq!(is_ok(&result), asked == 3, "{tool}: {result}");
        assert_eq!(count.load(Ordering::SeqCst), asked, "{tool}");
        let keys: Vec<Option<String>> = (0..asked)
            .map(|_| service.asked().header("Idempotency-Key").map(str::to_owned))
            .collect();
        assert_eq!(keys[0].is_some(), tool == "keyed");
        assert!(keys.iter().all(|key| *key == keys[0]), "one key for all attempts: {keys:?}");
    }
    let text = client.called("post", json!({})).to_string();
    assert!(text.contains("502") || text.contains("503") || text.contains("ok"), "{text}");
}

#[test]
fn without_retries_there_is_one_attempt() {
    let (service, count) = counted(|_, _| Plan::Answer(answer("503 Busy", &[], b"")));
    let (_server, client) = start(&service.base(), "", &[("find", "GET", "/", "")]);
    assert!(!is_ok(&client.called("find", json!({}))));
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_connection_that_fails_is_given_a_rest() {
    let (service, count) = counted(|number, _| {
        Plan::Answer(if number < 3 { answer("503 Busy", &[], b"") } else { json_answer("{}") })
    });
    let breaker = "circuit_breaker = { failures = 3, rest_ms = 700 }";
    let (_server, client) = start(&service.base(), breaker, &[("find", "GET", "/", "")]);
    for _ in 0..3 {
        assert!(client.called("find", json!({})).to_string().contains("503"));
    }
    let rested = client.called("find", json!({})).to_string();
    assert!(rested.contains("try again in 1 s"), "{rested}");
    assert_eq!(count.load(Ordering::SeqCst), 3, "nobody was asked");
    eventually("the connection is used again", || is_ok(&client.called("find", json!({}))));
    assert_eq!(count.load(Ordering::SeqCst), 4);
}

#[test]
fn accepted_work_is_followed_to_its_result() {
    let (service, _) = counted(|number, asked| {
        let accepted = |place: &str| answer("202 Accepted", &[("Location", place)], b"{}");
        Plan::Answer(match &*asked.target {
            "/v1/reports" => accepted("/v1/jobs/1"),
            "/v1/elsewhere" => accepted("http://192.0.2.1/jobs"),
            "/v1/broken" => accepted("/v1/jobs/2"),
            "/v1/jobs/1" if number < 4 => json_answer("{\"state\":\"running\"}"),
            // So long that no core reads it.
            "/v1/jobs/1" => json_answer(&format!(
                "{{\"log\":\"{}\",\"state\":\"done\",\"url\":\"/v1/results/1\"}}",
                "x".repeat(200_000)
            )),
            "/v1/jobs/2" => json_answer("{\"state\":\"failed\",\"why\":\"no paper\"}"),
            _ => json_answer("{\"pages\":7}"),
        })
    });
    let rule = "polling = { interval_ms = 100, state_field = \"state\", done = [\"done\"], \
                failed = [\"failed\"], result_url_field = \"url\" }\n\
                fields = [{ source_field_name = \"a\" }]";
    let tools = [
        ("report", "POST", "/v1/reports", rule),
        ("elsewhere", "POST", "/v1/elsewhere", rule),
        ("broken", "POST", "/v1/broken", rule),
    ];
    let (_server, client) = start(
        &service.base(),
        "headers = { Authorization = \"Bearer t0ps3cr3t\" }\ntotal_timeout_ms = 20000",
        &tools,
    );
    let result = client.called("report", json!({"a": "x"}));
    assert_eq!(result["structuredContent"], json!({"pages": 7}), "{result}");
    let mut paths = Vec::new();
    while paths.last().is_none_or(|path| path != "/v1/results/1") {
        let asked = service.asked();
        assert_eq!(asked.header("Authorization"), Some("Bearer t0ps3cr3t"));
        assert_eq!(asked.method, if paths.is_empty() { "POST" } else { "GET" });
        paths.push(asked.target.clone());
    }
    assert_eq!(paths[1..4], ["/v1/jobs/1", "/v1/jobs/1", "/v1/jobs/1"], "{paths:?}");
    let text = client.called("elsewhere", json!({})).to_string();
    assert!(text.contains("not followed") && !text.contains("192.0.2.1"), "{text}");
    let text = client.called("broken", json!({})).to_string();
    assert!(text.contains("it failed (failed)") && text.contains("no paper"), "{text}");
}

#[test]
fn work_that_was_accepted_is_not_begun_again() {
    let (service, begun) = counted(|_, asked| match &*asked.target {
        "/jobs/1" => Plan::Answer(json_answer("{\"state\":\"done\",\"url\":\"/result\"}")),
        "/result" => Plan::Silence,
        _ => Plan::Answer(answer("202 Accepted", &[("Location", "/jobs/1")], b"")),
    });
    let rule = "polling = { interval_ms = 100, state_field = \"state\", done = [\"done\"], \
                result_url_field = \"url\" }\nfields = [{ source_field_name = \"a\" }]";
    let connection = format!("{RETRIES}\nheaders_timeout_ms = 300");
    let (_server, client) = start(&service.base(), &connection, &[("report", "POST", "/", rule)]);
    let text = client.called("report", json!({})).to_string();
    assert!(text.contains("did not begin to answer within 300 ms"), "{text}");
    assert_eq!(begun.load(Ordering::SeqCst), 3, "the work, a look, the result");
}

#[test]
fn accepted_work_ends_with_the_time_of_its_call() {
    let (service, _) =
        counted(|_, _| Plan::Answer(answer("202 Accepted", &[("Location", "/jobs/1")], b"")));
    let rule = "polling = { interval_ms = 100 }\ntotal_timeout_ms = 600";
    let (_server, client) = start(&service.base(), "", &[("slow", "GET", "/", rule)]);
    let begun = Instant::now();
    let text = client.called("slow", json!({})).to_string();
    assert!(text.contains("did not finish the work it accepted within 600 ms"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_cancelled_call_closes_its_socket_at_once() {
    let service = Service::start(|_| Plan::Silence);
    let (_server, client) = start(&service.base(), "", &[("slow", "GET", "/", "")]);
    let mut wire = client.connect();
    wire.send(&client.message(&call(9, "slow", json!({}))));
    service.asked();
    let begun = Instant::now();
    client.post(&cancel(9)).expect(202);
    service.closed();
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
}
