//! What is recorded: one record of each request of a kind to be recorded, whatever became of it.

use serde_json::{Value, json};

use crate::harness::{
    Client, Events, NEWEST, Plan, Request, Ringway, Service, Setup, call, cancel, eventually,
    initialize, json_answer, ping, rpc,
};
use crate::modern::{headers, modern, with};

const LOOK: (&str, &str, &str, &str) = ("look", "GET", "/look", "");
const HOLD: (&str, &str, &str, &str) = ("hold", "GET", "/hold", "");
const PAY: (&str, &str, &str, &str) = (
    "pay",
    "POST",
    "/pay",
    r#"log_payloads = true
redact = ["card.number", "target"]
fields = [
    { source_field_name = "sum", location = "body", type = "integer", required = true },
    { source_field_name = "card.number", location = "body" },
    { source_field_name = "card.holder", location = "body" },
]"#,
);

/// All records so far, in the order of one core, without those of the log about itself.
fn records(server: &Ringway) -> Vec<Value> {
    let log = server.data().join("audit").display().to_string();
    let text = server.command(&["audit", "export", "--log", &log]).succeeded().stdout;
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| line.get("record").cloned().unwrap_or(line))
        .filter(|line| line.get("call_type").is_some())
        .collect()
}

/// The records once there are so many, which must not become more.
#[track_caller]
fn so_many(server: &Ringway, count: usize) -> Vec<Value> {
    eventually("the records are there", || records(server).len() >= count);
    crate::harness::pause(std::time::Duration::from_millis(200));
    let all = records(server);
    assert_eq!(all.len(), count, "{all:#?}");
    all
}

fn kinds(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["call_type"].as_str().unwrap()).collect()
}

#[test]
fn every_request_leaves_one_record_and_pings_and_notifications_none() {
    let service = Service::echo();
    let server = Setup::new().set("runtime.cores", 1).api(&service.base(), &[LOOK]).start();
    let client = Client::new(&server, "demo/assistant").in_session(NEWEST);
    client.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).expect(202);
    client.post(&ping()).expect(200);
    client.post(&rpc(1, "nobody/knows", json!({})));
    client.post(&rpc(1, "tools/list", json!({}))).expect(200);
    let asked = client.message(&call(2, "look", json!({}))).header("X-Correlation-Id", "order-7");
    client.send(&asked).expect(200);
    client.post(&call(3, "nothing", json!({})));
    client.post(&rpc(4, "resources/list", json!({}))).expect(200);
    client.post(&rpc(5, "resources/templates/list", json!({}))).expect(200);
    client.post(&rpc(6, "resources/read", json!({ "uri": "runtime://nothing" })));
    client.post(&rpc(7, "prompts/list", json!({}))).expect(200);
    client.post(&rpc(8, "prompts/get", json!({ "name": "nothing" })));
    client.delete().expect(204);
    let records = so_many(&server, 10);
    assert_eq!(
        kinds(&records),
        [
            "session",
            "tool_discovery",
            "tool_execution",
            "tool_execution",
            "resource_list",
            "resource_list",
            "resource_read",
            "prompt_list",
            "prompt_get",
            "session",
        ]
    );
    let called = &records[2];
    assert_eq!(called["correlation_id"], "order-7");
    assert_eq!(called["tenant"], "demo");
    assert_eq!(called["client_application"], "assistant");
    assert!(called["caller"].as_str().unwrap().starts_with("key:"));
    assert_eq!(called["transport"], "streamable_http");
    assert_eq!(called["revision"], NEWEST);
    assert_eq!((&called["tool"], &called["toolset"]), (&"look".into(), &"api".into()));
    assert_eq!((&called["decision"], &called["reason"]), (&"allowed".into(), &"allowed".into()));
    assert_eq!((&called["outcome"], &called["downstream_status"]), (&"ok".into(), &200.into()));
    assert_eq!(called["schema_hash"].as_str().unwrap().len(), 64);
    assert!(called["downstream_us"].as_u64().unwrap() <= called["total_us"].as_u64().unwrap());
    assert!(called.get("arguments").is_none() && called.get("result").is_none());
    let unknown = &records[3];
    assert_eq!((&unknown["decision"], &unknown["tool"]), (&"denied".into(), &"nothing".into()));
    assert_eq!(unknown["reason"], "unknown_tool");
    assert_eq!(records[6]["reason"], "unknown_resource");
    assert_eq!(records[0]["method"], "initialize");
    assert_eq!(records[9]["method"], "session/end");
    assert_eq!(records[0]["session"], records[9]["session"]);
    assert_eq!(records[0]["session"], called["session"]);
    let ids: std::collections::HashSet<_> =
        records.iter().map(|record| record["execution_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), records.len());
}

#[test]
fn clients_without_sessions_are_recorded_where_they_begin() {
    let server = Setup::new().set("runtime.cores", 1).start();
    let client = Client::new(&server, "demo/assistant");
    let send = |body: &Value| Events::open(client.connect(), &with(&client, body, &headers(body)));
    let discover = modern(1, "server/discover", json!({}));
    client.send(&with(&client, &discover, &headers(&discover))).expect(200);
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut heard = send(&modern("two", "subscriptions/listen", wanted)).unwrap();
    heard.message().unwrap();
    // It is there while the stream is open, and does not become two when that ends.
    so_many(&server, 2);
    drop(heard);
    let refused = modern(3, "subscriptions/listen", json!({ "notifications": 5 }));
    assert!(send(&refused).is_err());
    let records = so_many(&server, 3);
    assert_eq!(kinds(&records), ["session"; 3]);
    for record in &records {
        assert_eq!(record["revision"], "2026-07-28");
        assert_eq!(record["transport"], "streamable_http");
        assert!(record["caller"].as_str().unwrap().starts_with("key:"));
        assert!(record["session"].is_null() && record["request_bytes"].as_u64() > Some(0));
    }
    let said = |record: &Value| {
        ["method", "decision", "reason", "outcome"]
            .map(|key| record[key].as_str().unwrap().to_owned())
    };
    assert_eq!(said(&records[0]), ["server/discover", "allowed", "allowed", "ok"]);
    assert_eq!(said(&records[1]), ["subscriptions/listen", "allowed", "allowed", "ok"]);
    assert_eq!(said(&records[2]), ["subscriptions/listen", "denied", "invalid_params", "error"]);
}

#[test]
fn transports_differ_in_the_record_by_their_name_only() {
    let service = Service::echo();
    let server = Setup::new().set("runtime.cores", 1).api(&service.base(), &[LOOK]).start();
    let client = Client::keyless(&server, "demo/public");
    client.post(&call(1, "look", json!({}))).expect(200);
    let base = "/runtime/demo/public/tools";
    let target = format!("{base}/look");
    let answer = client.send(&Request::new("POST", &target).json(&json!({}))).expect(200).json();
    client.send(&Request::new("GET", base)).expect(200);
    client.send(&Request::new("GET", &target)).expect(200);
    let records = so_many(&server, 4);
    assert_eq!(
        kinds(&records),
        ["tool_execution", "rest_invocation", "tool_discovery", "schema_discovery"]
    );
    assert_eq!(records[1]["execution_id"], answer["executionId"]);
    for key in
        ["tenant", "client_application", "caller", "tool", "schema_hash", "decision", "reason"]
    {
        assert_eq!(records[0][key], records[1][key], "{key}");
    }
    assert_eq!(records[1]["transport"], "rest");
    // And over HTTP+SSE.
    let legacy = Client { path: client.path.replace("/mcp", "/sse"), ..client.clone() };
    let mut stream = legacy.stream(None).unwrap();
    let endpoint = stream.next().unwrap().data.unwrap();
    let posts = Client { path: format!("/runtime/demo/public/{endpoint}"), ..client.clone() };
    posts.post(&initialize("2024-11-05")).expect(202);
    stream.message().unwrap();
    posts.post(&call(1, "look", json!({}))).expect(202);
    stream.message().unwrap();
    drop(stream);
    let records = so_many(&server, 7);
    assert_eq!(kinds(&records[4..]), ["session", "tool_execution", "session"]);
    assert!(records[4..].iter().all(|record| record["transport"] == "http_sse"));
}

#[test]
fn what_is_refused_is_recorded_with_its_reason() {
    let service = Service::echo();
    let text = "[[client_application]]\ntenant = \"demo\"\nid = \"limited\"\nopen = true\n\
                limits = { requests = { count = 2, seconds = 3600 } }\n";
    let server =
        Setup::new().set("runtime.cores", 1).api(&service.base(), &[LOOK]).catalog(text).start();
    let client = Client::keyless(&server, "demo/limited");
    client.post(&rpc(1, "tools/list", json!({}))).expect(200);
    client.post(&call(2, "look", json!({})));
    client.post(&rpc(3, "tools/list", json!({}))).expect(429);
    let lost =
        Client { session: Some("1-gone".to_owned()), ..Client::keyless(&server, "demo/public") };
    lost.post(&rpc(4, "tools/list", json!({}))).expect(404);
    let reasons: Vec<_> = so_many(&server, 4)
        .iter()
        .map(|record| (record["decision"].clone(), record["reason"].clone()))
        .collect();
    let expected = [
        ("allowed", "allowed"),
        ("denied", "unknown_tool"),
        ("denied", "rate_limited"),
        ("denied", "unknown_session"),
    ];
    assert_eq!(reasons, expected.map(|(decision, reason)| (decision.into(), reason.into())));
}

#[test]
fn a_call_that_nobody_waits_for_any_more_is_recorded_as_that() {
    let service = Service::holding();
    let server = Setup::new().set("runtime.cores", 1).api(&service.base(), &[HOLD]).start();
    let client = Client::new(&server, "demo/assistant").in_session(NEWEST);
    let mut stream = client.post_stream(&call(7, "hold", json!({})));
    stream.primed();
    client.post(&cancel(7)).expect(202);
    assert_eq!(stream.rest().len(), 0);
    // Outside sessions a disconnect ends the call.
    let open = Client::keyless(&server, "demo/public");
    let mut stream = open.post_stream(&call(8, "hold", json!({})));
    service.asked();
    service.asked();
    drop(stream.next());
    drop(stream);
    let records = so_many(&server, 3);
    for record in &records[1..] {
        assert_eq!((&record["tool"], &record["outcome"]), (&"hold".into(), &"cancelled".into()));
        assert_eq!(record["reason"], "cancelled");
    }
}

#[test]
fn payloads_are_kept_where_the_tool_asks_and_without_what_it_hides() {
    let service = Service::echo();
    let server = Setup::new().set("runtime.cores", 1).api(&service.base(), &[LOOK, PAY]).start();
    let client = Client::keyless(&server, "demo/public");
    let card = json!({ "number": "4111", "holder": "A" });
    client.called("pay", json!({ "sum": "12", "card": card }));
    client.called("look", json!({}));
    client.post(&rpc(1, "tools/list", json!({}))).expect(200);
    let records = so_many(&server, 3);
    assert_eq!(
        records[0]["arguments"],
        json!({ "sum": 12, "card": { "number": "[redacted]", "holder": "A" } })
    );
    assert_eq!(records[0]["result"], json!({ "method": "POST", "target": "[redacted]" }));
    assert_eq!(records[0]["repairs"], 1);
    assert!(records[1].get("arguments").is_none() && records[1].get("result").is_none());
    assert_eq!(records[2]["listed"]["tools"][0]["name"], "look");
    // Where no tool of the view asks, the list is not kept.
    Client::new(&server, "demo/desk").post(&rpc(1, "tools/list", json!({}))).expect(200);
    assert!(so_many(&server, 4)[3].get("listed").is_none());
}

#[test]
fn a_strict_log_that_cannot_be_written_lets_nothing_be_done_unrecorded() {
    let service = Service::echo();
    let mut server = Setup::new()
        .set("runtime.cores", 1)
        .set("audit.strict", true)
        .set("audit.sync_ms", 0)
        .api(&service.base(), &[LOOK])
        .prepare();
    // No file of this process grows beyond 64 KiB, as on a disk that is full. What the store has
    // to write stays below that.
    server.start_by("ulimit -f 64; trap '' XFSZ; exec \"$0\" serve", |_| {});
    let client = Client::keyless(&server, "demo/public");
    let refused = (0..2000).find_map(|_| {
        let answer = client.post(&call(1, "look", json!({})));
        (answer.status != 200).then_some(answer)
    });
    let refused = refused.expect("the log is full some day").expect(503);
    assert!(refused.header("Retry-After").is_some());
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("recorded"));
    // What leaves no record goes on.
    client.post(&ping()).expect(200);
    let plain = Request::new("POST", "/runtime/demo/public/tools/look").json(&json!({}));
    assert_eq!(client.send(&plain).expect(503).json()["status"], "audit_unavailable");
    // Who asks for readiness is told, and the log is not filled with it.
    let readiness = client.send(&Request::new("GET", "/readyz")).expect(503);
    assert!(readiness.text().contains("calls cannot be recorded"), "{readiness:?}");
    assert!(server.log_text().matches("requests are refused").count() <= 1);
}

#[test]
fn of_arguments_a_tool_does_not_take_nothing_is_kept_that_may_have_to_be_redacted() {
    let service = Service::echo();
    let server = Setup::new().set("runtime.cores", 1).api(&service.base(), &[PAY]).start();
    let client = Client::keyless(&server, "demo/public");
    for arguments in [
        json!({ "sum": 1, "card.number": "4111" }),
        json!({ "sum": 1, "Card": { "number": "4111" } }),
        json!({ "sum": 1, "card": { "number ": "4111" } }),
    ] {
        client.post(&call(1, "pay", arguments));
    }
    let records = so_many(&server, 3);
    assert!(!format!("{records:?}").contains("4111"), "{records:#?}");
    assert!(records[0]["arguments"].as_str().unwrap().contains("not kept"), "{records:#?}");
}

#[test]
fn large_arguments_are_judged_and_recorded_as_small_ones_are() {
    let service = Service::echo();
    let server = Setup::new().set("runtime.cores", 1).api(&service.base(), &[PAY]).start();
    let client = Client::keyless(&server, "demo/public");
    let holder = "A".repeat(100_000);
    let card = json!({ "number": "4111", "holder": holder });
    assert_eq!(client.called("pay", json!({ "sum": "12", "card": card }))["isError"], false);
    let wrong = json!({ "sum": "many", "card": card });
    let told = client.post(&call(1, "pay", wrong.clone())).json();
    assert!(told.to_string().contains("sum: expected integer"), "{told}");
    let plain = Request::new("POST", "/runtime/demo/public/tools/pay").json(&wrong);
    assert_eq!(client.send(&plain).expect(400).json()["status"], "invalid_arguments");
    let records = so_many(&server, 3);
    assert!(!format!("{records:?}").contains("4111"), "what was redacted is kept");
    let kept = records[0]["arguments_cut"]["text"].as_str().unwrap();
    assert!(kept.contains("AAAA"));
    assert_eq!((&records[0]["repairs"], &records[0]["outcome"]), (&1.into(), &"ok".into()));
    for record in &records[1..] {
        assert_eq!(record["outcome"], "tool_error");
        assert!(record["arguments"].as_str().unwrap().contains("not kept"), "{record}");
        assert!(record.get("downstream_status").is_none());
    }
}

#[test]
fn large_results_are_recorded_as_small_ones_are() {
    let card = json!({ "number": "4111", "holder": "A" });
    let body = json!({ "target": "x", "all": vec![card; 10_000] }).to_string();
    let service = Service::start(move |_| Plan::Answer(json_answer(&body)));
    let server = Setup::new()
        .set("runtime.cores", 1)
        .api(
            &service.base(),
            &[(
                "all",
                "GET",
                "/all",
                "log_payloads = true\nredact = ['all[*].number', 'target']\n",
            )],
        )
        .start();
    let client = Client::keyless(&server, "demo/public");
    assert!(client.called("all", json!({})).to_string().contains("4111"));
    let records = so_many(&server, 1);
    let kept = records[0]["result_cut"]["text"].as_str().unwrap();
    assert!(kept.contains("[redacted]") && !kept.contains("4111"), "{kept}");
}
