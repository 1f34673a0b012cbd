//! Tools that were removed or are called otherwise: callable for a while, then known to be gone.

use serde_json::{Value, json};

use crate::harness::{
    Client, NEWEST, Request, Ringway, Service, Setup, Wire, call, eventually, initialize, rpc,
};

const STAY: (&str, &str, &str, &str) = ("stay", "GET", "/stay", "");
const OLD: (&str, &str, &str, &str) = ("old", "GET", "/old", "");
const LONG: (&str, &str, &str, &str) = ("a_name_of_more_than_sixteen_bytes", "GET", "/long", "");

fn start(service: &Service, grace_seconds: u64) -> Ringway {
    Setup::new()
        .set("runtime.tool_grace_seconds", grace_seconds)
        .api(&service.base(), &[STAY, OLD, LONG])
        .start()
}

/// Takes the tool `old` from the catalog, and from the files that are read at the next start.
fn remove(server: &Ringway) {
    let path = server.folder().join("catalog.toml");
    let catalog = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = catalog.split_once(&tool_lines("old")).unwrap();
    let (_, after) = rest.split_once("path = \"/old\"\n").unwrap();
    std::fs::write(&path, format!("{before}{after}")).unwrap();
    let target = "/catalog/tools/demo/api/old";
    let request =
        Request::new("DELETE", target).header("If-Match", "*").header("Connection", "close");
    let answer = Wire::unix(&server.admin_socket()).ask(&request);
    // Whoever looks at the files may have been faster.
    assert!(matches!(answer.status, 200 | 404), "{answer:?}");
}

fn tool_lines(name: &str) -> String {
    format!("[[tool]]\ntenant = \"demo\"\ntoolset = \"api\"\nname = \"{name}\"\n")
}

fn public(server: &Ringway) -> Client {
    Client::keyless(server, "demo/public").in_session(NEWEST)
}

fn names(client: &Client) -> Vec<String> {
    let result = client.post(&rpc(1, "tools/list", json!({}))).expect(200).result();
    let tools = result["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn texts(result: &Value) -> String {
    let content = result["content"].as_array().unwrap().iter();
    content.map(|block| block["text"].as_str().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn over_http(client: &Client, tool: &str) -> crate::harness::Answer {
    let target = client.path.replace("/mcp", &format!("/tools/{tool}"));
    client.send(&Request::new("POST", &target).json(&json!({})))
}

#[test]
fn a_removed_tool_is_callable_with_a_note_for_its_grace_time_also_after_a_restart() {
    let service = Service::echo();
    let mut server = start(&service, 3600);
    let plain = texts(&public(&server).called("old", json!({})));
    assert!(!plain.contains("Note"), "{plain}");
    remove(&server);
    for round in 0..2 {
        let client = public(&server);
        assert!(!names(&client).contains(&"old".to_owned()));
        let result = client.called("old", json!({}));
        assert_eq!(result["isError"], false);
        assert_eq!(result["structuredContent"]["target"], "/old");
        let text = texts(&result);
        assert!(text.contains("Note") && text.contains("List the tools again"), "{text}");
        let answer = over_http(&client, "old").expect(200).json();
        assert!(texts(&answer).contains("List the tools again"), "{answer}");
        // Its schemas are not told any more: it is not shown.
        assert_eq!(client.send(&Request::new("GET", "/runtime/demo/public/tools/old")).status, 404);
        assert!(!texts(&client.called("stay", json!({}))).contains("Note"));
        if round == 0 {
            server.flushed();
            server.kill_and_restart();
        }
    }
    // Who never had it does not learn of it.
    let desk = Client::new(&server, "demo/desk");
    assert_eq!(desk.reply(&call(1, "old", json!({})))["error"]["code"], -32602);
    // Back again, it is a tool like any other.
    server.apply(
        &(tool_lines("old") + "description = \"A tool.\"\nmethod = \"GET\"\npath = \"/old\"\n"),
    );
    assert!(!texts(&public(&server).called("old", json!({}))).contains("Note"));
}

#[test]
fn after_its_grace_time_it_answers_a_stable_error_also_after_a_restart() {
    let service = Service::echo();
    let mut server = start(&service, 1);
    let client = public(&server);
    remove(&server);
    eventually("the tool is gone", || client.called("old", json!({}))["isError"] == true);
    let gone = client.called("old", json!({}));
    let text = texts(&gone);
    assert!(text.contains("removed or renamed") && text.contains("List the tools again"), "{text}");
    server.flushed();
    server.kill_and_restart();
    let client = public(&server);
    assert_eq!(client.called("old", json!({})), gone, "the same words");
    let answer = over_http(&client, "old").expect(410).json();
    assert_eq!((&answer["status"], &answer["isError"]), (&"tool_gone".into(), &true.into()));
    eventually("it is recorded", || {
        let records = server.records();
        let gone = records.iter().filter(|record| record["reason"] == "tool_gone");
        gone.filter(|record| record["tool"] == "old" && record["decision"] == "denied").count() >= 3
    });
}

#[test]
fn a_tool_that_is_unpublished_goes_like_one_that_is_removed() {
    let service = Service::echo();
    let server = start(&service, 3600);
    server.admin("POST", "/catalog/tools/demo/api/old/unpublish", None).expect(200);
    let client = public(&server);
    assert!(!names(&client).contains(&"old".to_owned()));
    assert!(texts(&client.called("old", json!({}))).contains("List the tools again"));
    server.admin("POST", "/catalog/tools/demo/api/old/publish", None).expect(200);
    assert!(!texts(&client.called("old", json!({}))).contains("Note"));
}

#[test]
fn a_tool_whose_name_changes_is_reached_by_both_and_tells_the_new_one() {
    let service = Service::echo();
    let server = start(&service, 3600);
    server.apply(
        "[[client_application]]\ntenant = \"demo\"\nid = \"public\"\nopen = true\nname_budget = 16\n",
    );
    let client = public(&server);
    let names = names(&client);
    let new = names.iter().find(|name| name.starts_with("a_name")).unwrap();
    assert!(new.len() <= 16 && *new != LONG.0, "{names:?}");
    let result = client.called(LONG.0, json!({}));
    assert_eq!(result["structuredContent"]["target"], "/long");
    assert!(texts(&result).contains(&format!("`{new}`")), "{result}");
    let result = client.called(new, json!({}));
    assert_eq!(result["structuredContent"]["target"], "/long");
    assert!(!texts(&result).contains("Note"), "{result}");
}

#[test]
fn access_that_is_taken_away_is_away_at_once() {
    let service = Service::echo();
    let server = start(&service, 3600);
    let client = public(&server);
    let assignment = |more: &str| {
        server.apply(&format!(
            "[[assignment]]\ntenant = \"demo\"\nclient_application = \"public\"\n\
             toolset = \"api\"\n{more}\n"
        ));
    };
    assignment("policy = { rules = [{ effect = \"deny\", tools = [\"old\"] }] }");
    assert_eq!(client.reply(&call(1, "old", json!({})))["error"]["code"], -32602);
    // Not even by removing it as well.
    remove(&server);
    assert_eq!(client.reply(&call(1, "old", json!({})))["error"]["code"], -32602);
    assignment("enabled = false");
    assert_eq!(client.reply(&call(1, "stay", json!({})))["error"]["code"], -32602);
    assert!(service.is_quiet());
}

#[test]
fn an_operator_is_told_what_became_of_it() {
    let service = Service::echo();
    let server = start(&service, 3600);
    let explained = |tool: &str| {
        let words = ["explain", "--client", "demo/public", "--tool", tool];
        server.command(&words).succeeded().stdout
    };
    remove(&server);
    let told = explained("old");
    assert!(
        told.contains("ALLOWED") && told.contains("It was removed; it goes on until"),
        "{told}"
    );
    server.apply(
        "[[client_application]]\ntenant = \"demo\"\nid = \"public\"\nopen = true\nname_budget = 16\n",
    );
    let told = explained(LONG.0);
    assert!(told.contains("ALLOWED") && told.contains("a_name_of"), "{told}");
    let told = explained("never_was");
    assert!(told.contains("HIDDEN") && told.contains("no such tool"), "{told}");
}

#[test]
fn the_old_transport_tells_of_a_tool_that_goes_as_the_new_one_does() {
    let service = Service::echo();
    let server = start(&service, 2);
    let client = Client::keyless(&server, "demo/public");
    let legacy = Client { path: client.path.replace("/mcp", "/sse"), ..client.clone() };
    let mut stream = legacy.stream(None).ok().unwrap();
    let endpoint = stream.next().unwrap().data.unwrap();
    let posts = Client { path: client.path.replace("mcp", &endpoint), ..client.clone() };
    posts.post(&initialize("2024-11-05")).expect(202);
    assert!(stream.message().unwrap()["result"].is_object());
    let mut result = |message: Value| {
        posts.post(&message).expect(202);
        loop {
            // Between answers it is told of changes.
            let told = stream.message().unwrap();
            if told.get("id").is_some() {
                break told["result"].clone();
            }
        }
    };
    let listed = |list: &Value| list["tools"].to_string().contains("\"old\"");
    assert!(listed(&result(rpc(1, "tools/list", json!({})))));
    remove(&server);
    assert!(!listed(&result(rpc(2, "tools/list", json!({})))));
    let during = result(call(3, "old", json!({})));
    assert_eq!(during["isError"], false);
    assert!(texts(&during).contains("List the tools again"), "{during}");
    eventually("the tool is gone", || result(call(4, "old", json!({})))["isError"] == true);
    let gone = result(call(5, "old", json!({})));
    assert!(texts(&gone).contains("removed or renamed"), "{gone}");
    eventually("it is recorded", || {
        let of_old = |record: &&Value| {
            record["reason"] == "tool_gone" && record["transport"].to_string().contains("sse")
        };
        server.records().iter().filter(of_old).count() >= 2
    });
}
