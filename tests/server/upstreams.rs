//! Upstream MCP servers as operators see them.

use serde_json::{Value, json};

use crate::harness::{Request, Ringway, Setup, Wire, eventually};

/// With a toolset of an upstream server that nobody is assigned.
fn server() -> Ringway {
    let server = Setup::new().unassigned_mcp("docs", "http://127.0.0.1:9/mcp", "", "").start();
    eventually("the server is known", || {
        server.admin("GET", "/upstreams/demo/docs", None).status == 200
    });
    server
}

#[test]
fn a_server_is_listed_before_anybody_is_assigned_it() {
    let server = server();
    let listed = server.command(&["upstream", "list"]).succeeded().stdout;
    let line = listed.lines().find(|line| line.contains("demo/docs"));
    assert!(line.is_some_and(|line| line.contains("unassigned")), "{listed}");
    let json = server.command(&["upstream", "list", "--json", "--tenant", "demo"]).succeeded();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let upstream = &json["upstreams"][0];
    assert_eq!(
        (&upstream["toolset"], &upstream["status"], &upstream["pending"]),
        (&json!("docs"), &json!("unassigned"), &json!(0))
    );
    let other = server.command(&["upstream", "list", "--json", "--tenant", "other"]).succeeded();
    assert_eq!(serde_json::from_str::<Value>(&other.stdout).unwrap(), json!({ "upstreams": [] }));
    let shown = server.command(&["upstream", "show", "demo/docs"]).succeeded().stdout;
    assert!(shown.contains("demo/docs: unassigned, 0 accepted, 0 waiting"), "{shown}");
    server.command(&["upstream", "refresh", "demo/docs"]).succeeded();
    let metrics = server.admin("GET", "/metrics", None).text();
    let pending = "ringway_upstream_definitions_pending{tenant=\"demo\",toolset=\"docs\"} 0";
    assert!(metrics.contains(pending), "{metrics}");
    assert!(!metrics.contains("ringway_upstream_up{"), "it is not asked");
}

#[test]
fn what_is_decided_is_what_was_seen() {
    let server = server();
    let command = |words: &[&str]| {
        let words: Vec<&str> = ["upstream"].iter().chain(words).copied().collect();
        server.command(&words)
    };
    command(&["show", "demo/none"]).failed_with(&["no upstream server", "demo/none"]);
    command(&["show", "demo"]).failed_with(&["TENANT/TOOLSET"]);
    command(&["approve", "demo/docs"]).failed_with(&["HASH"]);
    command(&["approve", "demo/docs", "0123"]).failed_with(&["at least 8"]);
    command(&["refuse", "demo/docs", "0123456789abcdef"]).failed_with(&["look again"]);
    command(&["approve", "demo/docs", "--all", "old"]).failed_with(&["look again"]);
    let shown = command(&["show", "demo/docs", "--json"]).succeeded().stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let tag = shown["tag"].as_str().unwrap();
    command(&["approve", "demo/docs", "--all", tag, "--author", "ada"]).succeeded();
}

#[test]
fn nobody_is_bothered_with_servers_that_are_well() {
    let server = server();
    let status = server.admin("GET", "/status", None).json();
    assert_eq!((&status["upstreams_down"], &status["upstreams_pending"]), (&json!([]), &json!([])));
    let ready = server.admin("GET", "/readyz", None).expect(200);
    assert_eq!(ready.text(), "ready\n");
}

#[test]
fn what_is_known_goes_with_the_toolset() {
    let server = server();
    let delete = Request::new("DELETE", "/catalog/toolsets/demo/docs")
        .header("If-Match", "*")
        .header("Connection", "close");
    Wire::unix(&server.admin_socket()).ask(&delete).expect(200);
    eventually("the server is forgotten", || {
        server.admin("GET", "/upstreams/demo/docs", None).status == 404
    });
}
