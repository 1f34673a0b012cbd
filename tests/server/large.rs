//! Requests that are too large for a core: they are answered as small ones are, and those of one
//! tenant keep nobody else waiting.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    Client, Events, NEWEST, Request, Ringway, Service, Setup, call, cancel, eventually, initialize,
    pause, ping, rpc,
};

/// Larger than what is checked and parsed on a core.
const LARGE: usize = 300 * 1024;

const SAVE: (&str, &str, &str, &str) =
    ("save", "POST", "/save", r#"fields = [{ source_field_name = "note" }]"#);

fn server(service: &Service, client: &str) -> Ringway {
    let text = format!(
        "[[client_application]]\ntenant = \"demo\"\nid = \"limited\"\nopen = true\n{client}\n\
         [[assignment]]\ntenant = \"demo\"\nclient_application = \"limited\"\ntoolset = \"api\"\n"
    );
    Setup::new().api(&service.base(), &[SAVE]).catalog(&text).start()
}

fn note(bytes: usize) -> Value {
    json!({ "note": "x".repeat(bytes) })
}

fn legacy(client: &Client) -> (Events, Client) {
    let legacy = Client { path: client.path.replace("/mcp", "/sse"), ..client.clone() };
    let mut stream = legacy.stream(None).ok().unwrap();
    let endpoint = stream.next().unwrap().data.unwrap();
    let posts = Client { path: client.path.replace("mcp", &endpoint), ..client.clone() };
    posts.post(&initialize("2024-11-05")).expect(202);
    assert!(stream.message().unwrap()["result"].is_object());
    (stream, posts)
}

#[test]
fn a_large_call_is_made_over_every_transport() {
    let service = Service::echo();
    let server = server(&service, "");
    let client = Client::keyless(&server, "demo/limited");
    for client in [client.clone(), client.in_session(NEWEST)] {
        assert_eq!(client.called("save", note(LARGE))["isError"], false);
        assert_eq!(service.asked().json()["note"].as_str().unwrap().len(), LARGE);
    }
    let request = Request::new("POST", "/runtime/demo/limited/tools/save").json(&note(LARGE));
    client.send(&request).expect(200);
    let (mut stream, posts) = legacy(&client);
    posts.post(&call(1, "save", note(LARGE))).expect(202);
    assert_eq!(stream.message().unwrap()["result"]["isError"], false);
    let batch = json!([call(1, "save", note(LARGE)), ping(), call(3, "save", note(10))]);
    let replies = client.in_session("2025-03-26").post(&batch).expect(200).json();
    assert_eq!(replies.as_array().unwrap().len(), 3, "{replies}");
}

#[test]
fn what_is_wrong_with_a_large_body_is_told_as_of_a_small_one() {
    let service = Service::echo();
    let server = server(&service, "");
    let client = Client::keyless(&server, "demo/limited");
    let filler = "x".repeat(LARGE);
    let (_stream, posts) = legacy(&client);
    for filler in ["", &*filler] {
        for (body, code) in [
            (format!("{{\"a\":\"{filler}\",\"a\":1}}"), -32700),
            (format!("{{\"a\":\"{filler}\""), -32700),
            (format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"a\":\"{filler}\"}}"), -32600),
        ] {
            for client in [&client, &posts] {
                let request = client.message(&Value::Null).body(body.clone().into_bytes());
                let told = client.send(&request).expect(400).json();
                assert_eq!(told["error"]["code"], code, "{told}");
            }
        }
        let request = Request::new("POST", "/runtime/demo/limited/tools/save");
        let body = format!("{{\"note\":\"{filler}\",\"note\":1}}").into_bytes();
        let told = client.send(&request.json(&Value::Null).body(body)).expect(400).json();
        assert_eq!(told["status"], "invalid_arguments", "{told}");
    }
    // The JSON is good, the arguments are not.
    let told =
        client.in_session(NEWEST).called("save", json!({ "note": "x".repeat(LARGE), "other": 1 }));
    assert_eq!(told["isError"], true);
    assert!(told["content"][0]["text"].as_str().unwrap().contains("other"), "{told}");
    assert!(service.is_quiet());
}

#[test]
fn a_limit_answers_the_same_whatever_the_size() {
    for bytes in [10, 40 * 1024, LARGE] {
        let service = Service::echo();
        let server = server(&service, "limits = { tool_calls = { count = 1, seconds = 3600 } }");
        let client = Client::keyless(&server, "demo/limited");
        client.called("save", note(bytes));
        service.asked();
        for client in [client.clone(), client.in_session(NEWEST), legacy(&client).1] {
            let told = client.post(&call(1, "save", note(bytes))).expect(429);
            assert!(told.header("Retry-After").is_some(), "{bytes}");
            assert_eq!(told.json()["error"]["data"]["reason"], "quota_exceeded");
        }
        let request = Request::new("POST", "/runtime/demo/limited/tools/save").json(&note(bytes));
        let told = client.send(&request).expect(429);
        assert!(told.header("Retry-After").is_some(), "{bytes}");
        let batch = json!([call(1, "save", note(bytes)), ping()]);
        let replies = client.in_session("2025-03-26").post(&batch).expect(200).json();
        assert_eq!(replies[0]["error"]["data"]["reason"], "quota_exceeded", "{replies}");
        assert!(replies[1]["result"].is_object());
        assert!(service.is_quiet());
    }
}

/// A schema whose items are held against every alternative, and large arguments for it.
fn slow() -> (Value, Value) {
    let alternatives: Vec<Value> = (0..80)
        .map(|number| json!({ "type": "object", "required": [format!("k{number}"), "other"] }))
        .collect();
    let item = json!({ "k79": 1, "other": "x".repeat(10) });
    (json!({ "type": "object", "anyOf": alternatives }), json!({ "rows": vec![item; 1200] }))
}

/// A server with `demo/busy` and `other/busy`, whose tool takes slow arguments; and those.
fn busy(service: &Service) -> (Ringway, Value) {
    let (schema, arguments) = slow();
    let mut text = String::new();
    for tenant in ["demo", "other"] {
        write!(
            text,
            "[[client_application]]\ntenant = \"{tenant}\"\nid = \"busy\"\nopen = true\n\
             [[connection]]\ntenant = \"{tenant}\"\nid = \"busy\"\nbase_url = \"{}\"\n\
             [[toolset]]\ntenant = \"{tenant}\"\nid = \"busy\"\nkind = \"rest\"\n\
             connection = \"busy\"\n\
             [[assignment]]\ntenant = \"{tenant}\"\nclient_application = \"busy\"\n\
             toolset = \"busy\"\n\
             [[tool]]\ntenant = \"{tenant}\"\ntoolset = \"busy\"\nname = \"save\"\n\
             description = \"A tool.\"\nmethod = \"POST\"\npath = \"/save\"\n\
             fields = [{{ source_field_name = \"rows[*]\", schema = {} }}]\n",
            service.base(),
            inline(&schema),
        )
        .unwrap();
    }
    (Setup::new().catalog(&text).start(), arguments)
}

#[test]
fn one_tenants_large_calls_keep_no_other_tenant_waiting() {
    const FLOOD: usize = 60;
    let service = Service::echo();
    let (server, arguments) = busy(&service);
    let client = Client::keyless(&server, "demo/busy");
    let request = client.message(&call(1, "save", arguments.clone()));
    let (done, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..FLOOD {
            scope.spawn(|| {
                let answer = client.send(&request);
                if answer.status == 429 {
                    assert_eq!(answer.header("Retry-After"), Some("1"));
                    refused.fetch_add(1, Ordering::AcqRel);
                } else {
                    assert_eq!(answer.expect(200).json()["result"]["isError"], false);
                }
                done.fetch_add(1, Ordering::AcqRel);
            });
        }
        eventually("the tenant has more waiting than it may", || {
            refused.load(Ordering::Acquire) > 0
        });
        let other = Client::keyless(&server, "other/busy");
        assert_eq!(other.called("save", arguments.clone())["isError"], false);
        // Whoever answered the other tenant in turn was not done with the first one yet.
        let left = FLOOD - done.load(Ordering::Acquire);
        assert!(left > 5, "only {left} were still waiting");
        other.post(&ping()).expect(200);
    });
    assert!(refused.load(Ordering::Acquire) < FLOOD - 10);
    let refusals = |record: &&Value| record["reason"] == "tenant_busy";
    let recorded = server.records().iter().filter(refusals).count();
    assert_eq!(recorded, refused.load(Ordering::Acquire));
}

#[test]
fn a_large_call_is_cancelled_while_its_arguments_are_judged() {
    const BEFORE: u64 = 6;
    let service = Service::echo();
    let (server, arguments) = busy(&service);
    let client = Client::keyless(&server, "demo/busy").in_session(NEWEST);
    let save = |id: u64| client.post(&call(id, "save", arguments.clone()));
    thread::scope(|scope| {
        for id in 1..=BEFORE {
            let save = &save;
            scope.spawn(move || save(id).expect(200));
        }
        // It waits behind them.
        pause(Duration::from_millis(100));
        let last = scope.spawn(|| save(100));
        while !last.is_finished() {
            client.post(&cancel(100)).expect(202);
            pause(Duration::from_millis(10));
        }
        let told = last.join().unwrap().expect(200).json();
        assert_eq!(told["error"]["code"], -32800, "{told}");
    });
    for _ in 0..BEFORE {
        service.asked();
    }
    assert!(service.is_quiet());
    let was_cancelled = |record: &Value| record["outcome"] == "cancelled";
    eventually("it is recorded", || server.records().iter().any(was_cancelled));
}

/// JSON as a value of TOML in one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[test]
fn a_large_list_is_the_same_to_all_who_ask_at_once() {
    let mut text = String::new();
    for number in 0..300 {
        write!(
            text,
            "[[tool]]\ntenant = \"demo\"\ntoolset = \"api\"\nname = \"tool_{number:03}\"\n\
             description = \"{}\"\nmethod = \"GET\"\npath = \"/look\"\n",
            "words ".repeat(200)
        )
        .unwrap();
    }
    let service = Service::echo();
    let server = Setup::new().api(&service.base(), &[SAVE]).catalog(&text).start();
    let client = Client::keyless(&server, "demo/public");
    let list = rpc(1, "tools/list", json!({}));
    let lists: Vec<Value> = thread::scope(|scope| {
        let asking: Vec<_> =
            (0..8).map(|_| scope.spawn(|| client.post(&list).expect(200).json())).collect();
        asking.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for told in &lists {
        assert_eq!(told["result"]["tools"].as_array().unwrap().len(), 301);
        assert_eq!(told, &lists[0]);
    }
    let plain = client.send(&Request::new("GET", "/runtime/demo/public/tools")).expect(200);
    assert_eq!(plain.json()["tools"].as_array().unwrap().len(), 301);
    let batch = json!([list, ping(), rpc(2, "tools/list", json!({}))]);
    let replies = client.in_session("2025-03-26").post(&batch).expect(200).json();
    assert_eq!(replies[2]["result"]["tools"].as_array().unwrap().len(), 301);
}
