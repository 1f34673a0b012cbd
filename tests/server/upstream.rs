//! What upstream servers offer, as clients see it: names, overrides, prompts, resources.

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Setup, Upstream, call, initialize, rpc};
use crate::upstream_faults::{TRUST, before, client, echoes, text};

fn result(client: &Client, method: &str, params: Value) -> Value {
    let answer = client.reply(&rpc(1, method, params));
    answer.get("result").cloned().unwrap_or_else(|| panic!("no result: {answer}"))
}

fn tool(client: &Client, name: &str) -> Value {
    let listed = result(client, "tools/list", json!({}));
    let mut tools = listed["tools"].as_array().unwrap().iter();
    tools.find(|tool| tool["name"] == name).cloned().unwrap_or_else(|| panic!("no {name}"))
}

const OVERRIDES: &str = r#"
[[tool]]
tenant = "demo"
toolset = "up"
name = "add"
exposed_name = "plus_two"
description = "Adds two."
fields = [
    { source_field_name = "a", exposed_field_name = "number" },
    { source_field_name = "b", constant = 2 },
]
[[tool]]
tenant = "demo"
toolset = "up"
name = "slow"
fields = [
    { source_field_name = "label", hidden = true },
    { source_field_name = "steps", default = 2, send_default = true },
]
[[tool]]
tenant = "demo"
toolset = "up"
name = "echo"
enabled = false
"#;

#[test]
fn tools_are_renamed_described_and_fixed() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = Setup::new().mcp("up", &upstream.url(), TRUST, "").catalog(OVERRIDES).start();
        let client = Client::open(&server).shown("plus_two");
        let plus = tool(&client, "plus_two");
        assert_eq!(plus["description"], "Adds two.");
        let properties = plus["inputSchema"]["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["number"], "{plus}");
        let called = client.called("plus_two", json!({ "number": 40 }));
        assert_eq!(called["structuredContent"], json!({ "sum": 42 }), "{called}");
        let refused = client.called("plus_two", json!({ "number": 40, "b": 3 }));
        assert_eq!(refused["isError"], true, "{refused}");

        let slow = tool(&client, "slow");
        assert!(slow["inputSchema"]["properties"].get("label").is_none(), "{slow}");
        let called = client.called("slow", json!({ "milliseconds": 1 }));
        assert_eq!(text(&called), "2 steps done", "{called}");
        for gone in ["echo", "add"] {
            assert!(!client.tools().contains(&gone.to_owned()));
        }
        assert_eq!(client.reply(&call(1, "echo", json!({})))["error"]["code"], -32602);
    }
}

#[test]
fn prompts_resources_and_completions_are_passed_on() {
    for revision in ["2024-11-05", "2025-06-18", "2026-07-28"] {
        let upstream = Upstream::start(revision, &["--page", "2"]);
        let server = before(&upstream, "");
        let client = client(&server);
        let capabilities = client.without_session().post(&initialize(NEWEST)).result();
        let capabilities = &capabilities["capabilities"];
        assert!(capabilities["completions"].is_object(), "{revision}: {capabilities}");
        assert!(capabilities["logging"].is_object(), "{capabilities}");
        assert_eq!(capabilities["resources"]["subscribe"], true, "{capabilities}");

        let names = |list: &str, key: &str, of: &str| -> Vec<String> {
            let listed = result(&client, list, json!({}));
            let mut names: Vec<String> = listed[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one[of].as_str().unwrap().to_owned())
                .filter(|name| !name.starts_with("runtime:"))
                .collect();
            names.sort_unstable();
            names
        };
        assert_eq!(
            names("prompts/list", "prompts", "name"),
            ["asked", "greeting", "pictured", "plain"]
        );
        assert_eq!(
            names("resources/list", "resources", "uri"),
            ["test://static/binary", "test://static/text", "test://watched"]
        );
        let templates = names("resources/templates/list", "resourceTemplates", "uriTemplate");
        assert_eq!(templates, ["test://numbered/{number}"]);

        let params = json!({ "name": "greeting", "arguments": { "name": "Ada" } });
        let prompt = result(&client, "prompts/get", params);
        let said = &prompt["messages"][0]["content"]["text"];
        assert_eq!(said, "Greet Ada in a friendly tone.", "{prompt}");
        for (uri, expected) in
            [("test://static/text", "static text"), ("test://numbered/7", r#"{"number":7}"#)]
        {
            let read = result(&client, "resources/read", json!({ "uri": uri }));
            assert_eq!(read["contents"][0]["text"], expected, "{read}");
        }
        let missing = rpc(1, "resources/read", json!({ "uri": "test://numbered/none" }));
        assert_eq!(client.reply(&missing)["error"]["code"], -32002);
        for (reference, argument, expected) in [
            (json!({ "type": "ref/prompt", "name": "greeting" }), "tone", json!(["formal"])),
            (
                json!({ "type": "ref/resource", "uri": "test://numbered/{number}" }),
                "number",
                json!([]),
            ),
        ] {
            let params = json!({
                "ref": reference,
                "argument": { "name": argument, "value": "fo" },
            });
            let completed = result(&client, "completion/complete", params);
            assert_eq!(completed["completion"]["values"], expected, "{revision}: {completed}");
        }
    }
}

#[test]
fn two_servers_that_offer_the_same_are_told_apart() {
    let old = Upstream::start("2025-03-26", &[]);
    let new = Upstream::start("2026-07-28", &[]);
    let server =
        Setup::new().mcp("old", &old.url(), TRUST, "").mcp("new", &new.url(), TRUST, "").start();
    let client = Client::open(&server).shown("old_echo").shown("new_echo");
    for (name, asked, other) in [("old_echo", &old, &new), ("new_echo", &new, &old)] {
        let before = (asked.requests("tools/call"), other.requests("tools/call"));
        assert_eq!(text(&client.called(name, json!({ "text": "hello" }))), "hello");
        let after = (asked.requests("tools/call"), other.requests("tools/call"));
        assert_eq!(after, (before.0 + 1, before.1), "{name}");
    }
    let prompts = result(&client, "prompts/list", json!({}));
    let names: Vec<&str> = prompts["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|prompt| prompt["name"].as_str().unwrap())
        .collect();
    for name in ["old_plain", "new_plain"] {
        assert!(names.contains(&name), "{names:?}");
        let got = result(&client, "prompts/get", json!({ "name": name }));
        assert_eq!(got["messages"][0]["content"]["text"], "This is a prompt.");
    }
}

#[test]
fn a_token_is_sent_and_its_lack_is_told() {
    let upstream = Upstream::start("2025-11-25", &["--token", "secret"]);
    let with = r#"credentials = [{ kind = "bearer", token = "secret" }]"#;
    let server = Setup::new()
        .mcp("up", &upstream.url(), TRUST, with)
        .mcp("bare", &upstream.url(), TRUST, "")
        .start();
    let client = Client::open(&server).shown("echo");
    echoes(&client);
    crate::harness::eventually("the other is refused", || {
        let shown = server.admin("GET", "/upstreams/demo/bare", None).expect(200).json();
        shown["error"].as_str().is_some_and(|error| error.contains("401"))
    });
}

#[test]
fn the_end_of_a_session_ends_those_at_its_servers() {
    let upstream = Upstream::start("2025-11-25", &[]);
    let server = before(&upstream, "");
    let one = client(&server);
    let two = client(&server);
    echoes(&one);
    echoes(&two);
    let before = upstream.state()["deleted"].as_u64().unwrap();
    one.delete().expect(204);
    crate::harness::eventually("its session there is ended", || {
        upstream.state()["deleted"].as_u64() == Some(before + 1)
    });
    echoes(&two);
    assert_eq!(upstream.state()["deleted"].as_u64(), Some(before + 1));
}

#[test]
fn the_end_of_the_process_ends_the_sessions_at_servers() {
    let upstream = Upstream::start("2025-11-25", &[]);
    let mut server = before(&upstream, "");
    let clients = [client(&server), client(&server)];
    clients.iter().for_each(echoes);
    assert!(upstream.state()["sessions"].as_u64() >= Some(2));
    server.stop();
    assert_eq!(upstream.state()["sessions"], 0, "{}", upstream.state());
    // They are opened again when they are needed.
    server.start();
    for client in clients {
        echoes(&client.at(&server));
    }
}

/// What an operator says of a tool whose name holds a slash.
const SLASH: &str = r#"
[[tool]]
tenant = "demo"
toolset = "up"
name = "docs/open"
exposed_name = "open_docs"
side_effect = "read"
"#;

#[test]
fn a_name_that_no_model_can_write_is_fitted_and_kept_towards_its_server() {
    const NEW: &str = r#"upstream = { definitions = "approve_new" }"#;
    for revision in ["2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        upstream.control("add_tool?name=docs%2Fsearch");
        upstream.control("add_tool?name=docs%2Fopen");
        let setup = Setup::new().mcp("up", &upstream.url(), NEW, "").catalog(SLASH);
        let mut server = setup.start();
        crate::harness::eventually("it waits", || {
            let shown = server.command(&["upstream", "show", "demo/up"]).succeeded().stdout;
            shown.contains("docs/search") && shown.contains("docs/open")
        });
        let shown = server.admin("GET", "/upstreams/demo/up", None).expect(200).json();
        let waiting = shown["waiting"].as_array().unwrap().iter();
        let ours = waiting.filter(|one| one["name"].as_str().unwrap().starts_with("docs/"));
        for one in ours {
            let hash = one["hash"].as_str().unwrap();
            server.command(&["upstream", "approve", "demo/up", hash]).succeeded();
        }
        // What is accepted is kept under the server's own name.
        for is_restarted in [false, true] {
            if is_restarted {
                server.flushed();
                server.kill_and_restart();
            }
            let client = Client::open(&server).shown("docs_search").shown("open_docs");
            assert_eq!(tool(&client, "docs_search")["title"], "docs/search");
            for (name, own) in [("docs_search", "docs/search"), ("open_docs", "docs/open")] {
                assert_eq!(text(&client.called(name, json!({}))), own, "{revision}");
                let called = upstream.state()["last"]["tools/call"]["params"]["name"].clone();
                assert_eq!(called, own, "{revision}");
            }
        }
        server.flushed();
        let words = ["audit", "query", "--tool", "docs/search", "--json"];
        let found = server.command(&words).succeeded().stdout;
        let record: Value = serde_json::from_str(found.lines().next().unwrap()).unwrap();
        assert_eq!(
            (&record["tool"], &record["source_name"]),
            (&json!("docs_search"), &json!("docs/search"))
        );
        let written = server.admin("GET", "/catalog/tools/demo/up/docs%2Fopen", None).expect(200);
        assert_eq!(written.json()["exposed_name"], "open_docs");
        for asked in ["docs/search", "up/docs/search"] {
            let words = ["explain", "--client", "demo/assistant", "--tool", asked];
            let said = server.command(&words).succeeded().stdout;
            assert!(said.contains("docs_search"), "{said}");
        }
    }
}
