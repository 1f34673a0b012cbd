//! A call that takes longer than clients wait in silence (field report 46).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Client, NEWEST, Plan, Service, Setup, call, json_answer, pause};

/// How long the API takes; clients give up after 60 s in which they hear nothing.
const TAKES: Duration = Duration::from_secs(95);
/// Longest silence that a client with a token may meet, and what a busy machine adds to it.
const SILENCE_MAX: Duration = Duration::from_secs(15);
const LATE_MAX: Duration = Duration::from_secs(5);

#[test]
fn a_call_of_95_seconds_tells_its_progress_until_its_result() {
    let service = Service::start(|_| {
        pause(TAKES);
        Plan::Answer(json_answer("{\"done\":true}"))
    });
    let connection = format!(
        "base_url = \"{}\"\nheaders_timeout_ms = 120000\ntotal_timeout_ms = 120000",
        service.base()
    );
    let server = Setup::new().api_with(&connection, &[("slow", "GET", "/slow", "")]).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let begun = Instant::now();
    let mut asked = call(7, "slow", json!({}));
    asked["params"]["_meta"] = json!({ "progressToken": "p-1" });
    let mut stream = client.post_stream(&asked);
    stream.primed();
    let (mut last, mut heard) = (begun, Vec::new());
    let result = loop {
        let message = stream.message().expect("a result");
        let silence = last.elapsed();
        assert!(silence < SILENCE_MAX + LATE_MAX, "nothing for {silence:?} after {heard:?}");
        last = Instant::now();
        if message["id"] == 7 {
            break message["result"].clone();
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "p-1", "{message}");
        heard.push(message["params"]["progress"].as_u64().unwrap());
    };
    assert!(begun.elapsed() >= TAKES, "{:?}", begun.elapsed());
    assert_eq!(result["structuredContent"], json!({ "done": true }), "{result}");
    // 95 s are six times 15 s; each says more than the one before, and no more than has passed.
    assert!(heard.len() >= 6, "{heard:?}");
    assert!(heard.is_sorted_by(|one, next| one < next), "{heard:?}");
    assert!(heard.iter().all(|seconds| *seconds <= begun.elapsed().as_secs()), "{heard:?}");
    assert_eq!(stream.message(), None);
}
