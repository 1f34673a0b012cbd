//! Definitions of upstream servers that change: what waits, who decides, what stays.

use serde_json::{Value, json};

use crate::harness::{Client, Events, Ringway, Service, Setup, Upstream, call, eventually};
use crate::upstream_faults::{TRUST, echoes, text};

const PIN: &str = r#"upstream = { definitions = "pin" }"#;

fn before(upstream: &Upstream, settings: &str) -> Ringway {
    Setup::new().mcp("up", &upstream.url(), settings, "").start()
}

/// Waits for a message of this method.
fn told(stream: &mut Events, method: &str) {
    loop {
        let message = stream.message().expect("the stream ended");
        if message["method"] == method {
            return;
        }
    }
}

fn shown(server: &Ringway) -> Value {
    let json = server.command(&["upstream", "show", "demo/up", "--json"]).succeeded().stdout;
    serde_json::from_str(&json).unwrap()
}

fn has(client: &Client, tool: &str) -> bool {
    client.tools().iter().any(|name| name == tool)
}

/// A call of a tool that nobody has.
#[track_caller]
fn is_unknown(client: &Client, tool: &str) {
    let answer = client.reply(&call(1, tool, json!({ "text": "hello" })));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn a_definition_that_changes_waits_for_approval() {
    let upstream = Upstream::start("2025-11-25", &[]);
    let server = before(&upstream, PIN);
    let client = Client::open(&server).shown("echo");
    echoes(&client);
    let mut standing = client.standing();
    standing.primed();
    eventually("the upstream is listened to", || {
        let shown = shown(&server);
        shown["waiting"] == json!([]) && shown["accepted"].as_u64() > Some(0)
    });

    upstream.control("describe?tool=echo&description=Sends%20it%20elsewhere.&hidden=1");
    upstream.control("list_changed?kind=tools");
    told(&mut standing, "notifications/tools/list_changed");
    eventually("echo is withheld", || !has(&client, "echo"));
    let calls = upstream.requests("tools/call");
    let refused = client.called("echo", json!({ "text": "hello" }));
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(upstream.requests("tools/call"), calls);
    assert_eq!(text(&client.called("slow", json!({ "steps": 0 }))), "0 steps done");

    let said = server.command(&["upstream", "show", "demo/up"]).succeeded().stdout;
    for part in ["1 waiting", "echo", "description", "Gives back", "Sends it elsewhere", "zero"] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
    assert!(!said.contains('\u{200b}') && !said.contains('\u{202e}'), "hidden in:\n{said}");
    let words = ["explain", "--client", "demo/public", "--tool", "echo"];
    let said = server.command(&words).succeeded().stdout;
    for part in ["waits for approval", "ringway upstream show demo/up"] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
    let status = server.admin("GET", "/status", None).json();
    assert_ne!(status["upstreams_pending"], json!([]));
    let hash = shown(&server)["waiting"][0]["hash"].as_str().unwrap()[..16].to_owned();
    server.command(&["upstream", "approve", "demo/up", &hash]).succeeded();
    told(&mut standing, "notifications/tools/list_changed");
    eventually("echo is back", || has(&client, "echo"));
    echoes(&client);

    let words = ["audit", "query", "--type", "definition_change", "--json"];
    let found = server.command(&words).succeeded().stdout;
    let methods: Vec<String> = found
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|record| record["method"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(methods, ["definition/quarantine", "definition/approve"], "{found}");
    assert!(found.contains("tool echo"), "{found}");
}

#[test]
fn new_tools_wait_and_gone_ones_leave() {
    let upstream = Upstream::start("2026-07-28", &[]);
    let server = before(&upstream, PIN);
    let client = Client::open(&server).shown("echo");
    eventually("it is heard", || upstream.state()["listening"].as_u64() > Some(0));
    upstream.control("add_tool?name=later");
    upstream.control("remove_tool?name=add");
    upstream.control("list_changed?kind=tools");
    eventually("the new one waits", || shown(&server)["waiting"][0]["name"] == "later");
    assert!(!has(&client, "later"));
    is_unknown(&client, "later");
    eventually("the old one is gone", || !has(&client, "add"));
    let tag = shown(&server)["tag"].as_str().unwrap().to_owned();
    server.command(&["upstream", "approve", "demo/up", "--all", &tag]).succeeded();
    let client = client.shown("later");
    assert_eq!(text(&client.called("later", json!({}))), "later");
}

#[test]
fn where_all_is_new_all_waits() {
    let upstream = Upstream::start("2025-06-18", &[]);
    let server = before(&upstream, r#"upstream = { definitions = "approve_new" }"#);
    let client = Client::open(&server);
    eventually("all waits", || shown(&server)["waiting"].as_array().unwrap().len() > 20);
    assert!(!has(&client, "echo"));
    is_unknown(&client, "echo");
    let tag = shown(&server)["tag"].as_str().unwrap().to_owned();
    server.command(&["upstream", "approve", "demo/up", "--all", &tag]).succeeded();
    echoes(&client.shown("echo"));
    assert_eq!(shown(&server)["waiting"], json!([]));
}

#[test]
fn what_a_trusted_server_changes_is_there_at_once() {
    let upstream = Upstream::start("2025-11-25", &[]);
    let server = before(&upstream, TRUST);
    let client = Client::open(&server).shown("echo");
    upstream.control("describe?tool=echo&description=Otherwise.");
    upstream.control("add_tool?name=later");
    server.command(&["upstream", "refresh", "demo/up"]).succeeded();
    let client = client.shown("later");
    let listed = client.reply(&crate::harness::rpc(1, "tools/list", json!({})));
    let mut tools = listed["result"]["tools"].as_array().unwrap().iter();
    let echo = tools.find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!(echo["description"], "Otherwise.");
    assert_eq!(shown(&server)["waiting"], json!([]));
}

#[test]
fn a_new_tool_takes_no_name_of_another_toolset_away_at_once() {
    let (service, upstream) = (Service::echo(), Upstream::start("2025-11-25", &[]));
    let server = Setup::new()
        .api(&service.base(), &[("later", "GET", "/of-the-api", "")])
        .mcp("up", &upstream.url(), TRUST, "")
        .start();
    let client = Client::open(&server).shown("echo");
    let refreshed = || server.command(&["upstream", "refresh", "demo/up"]).succeeded();
    let reaches_the_api = |name: &str| {
        let result = client.called(name, json!({}));
        assert_eq!(result["structuredContent"]["target"], "/of-the-api", "{name}: {result}");
        result["content"].to_string().contains("List the tools again")
    };
    assert!(!reaches_the_api("later"));

    upstream.control("add_tool?name=later");
    refreshed();
    assert!(has(&client, "up_later") && has(&client, "api_later") && !has(&client, "later"));
    assert!(!reaches_the_api("api_later"));
    assert!(reaches_the_api("later"), "the old name goes on, with a note");
    upstream.control("remove_tool?name=later");
    refreshed();
    assert!(has(&client, "later") && !has(&client, "api_later"));
    assert!(!reaches_the_api("later"));
    assert!(reaches_the_api("api_later"));
    // What the server took back is gone at once.
    assert_eq!(client.called("up_later", json!({}))["isError"], true);
}

#[test]
fn the_last_good_list_outlives_everything_but_its_time() {
    let mut upstream = Upstream::start("2025-11-25", &[]);
    let mut server = Setup::new()
        .set("downstream.discovery.retry_min_ms", 100)
        .set("downstream.discovery.retry_max_ms", 500)
        .mcp("up", &upstream.url(), r#"upstream = { definitions = "pin" }"#, "")
        .start();
    let client = Client::open(&server).shown("echo");
    server.flushed();
    server.stop();
    upstream.kill();
    server.start();
    let client = client.at(&server);
    assert!(has(&client, "echo"), "served at once: {:?}", client.tools());
    eventually("it is down", || shown(&server)["status"] == "stale");
    assert!(has(&client, "echo"), "within its grace");
    let words = ["explain", "--client", "demo/public", "--tool", "echo"];
    let said = server.command(&words).succeeded().stdout;
    assert!(said.contains("Its server does not answer now"), "{said}");
    let status = server.admin("GET", "/status", None).json();
    assert_ne!(status["upstreams_down"], json!([]));
    upstream.restart();
    eventually("it is up", || shown(&server)["status"] == "connected");
    echoes(&client);

    server.apply(
        "[[toolset]]\ntenant = \"demo\"\nid = \"up\"\nkind = \"mcp\"\nconnection = \"up\"\n\
         upstream = { definitions = \"pin\", grace_ms = 1000 }\n",
    );
    upstream.kill();
    server.command(&["upstream", "refresh", "demo/up"]).succeeded();
    eventually("it leaves after its grace", || !has(&client, "echo"));
    upstream.restart();
    echoes(&client.shown("echo"));
}
