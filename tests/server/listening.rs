//! `subscriptions/listen`: what a client of 2026-07-28 hears of, and how it ends.

use serde_json::{Value, json};

use crate::harness::{Client, Events, Ringway, Setup, eventually};
use crate::modern::{headers, modern, refused, with};

const ID: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(client: &Client, id: impl Into<Value>, wanted: Value) -> Events {
    let body = modern(id, "subscriptions/listen", json!({ "notifications": wanted }));
    Events::open(client.connect(), &with(client, &body, &headers(&body))).unwrap()
}

fn tools(server: &Ringway) {
    server.apply(
        "[[toolset]]\ntenant = \"demo\"\nid = \"more\"\nkind = \"builtin\"\n\
         system_prompt = \"Be kind.\"\n\
         [[assignment]]\ntenant = \"demo\"\nclient_application = \"assistant\"\n\
         toolset = \"more\"\n",
    );
}

#[test]
fn a_subscription_is_told_what_it_wants_and_nothing_else() {
    let server = Setup::new().start();
    let client = Client::new(&server, "demo/assistant");
    let all = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["runtime://toolsets/more/system-prompt"],
    });
    let mut everything = listen(&client, "seven", all);
    let mut prompts = listen(&client, 7, json!({ "promptsListChanged": true }));
    // What nobody can tell of is not granted.
    let acknowledged = everything.message().unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let granted = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
    });
    assert_eq!(
        acknowledged["params"],
        json!({ "_meta": { ID: "seven" }, "notifications": granted })
    );
    let acknowledged = prompts.message().unwrap();
    assert_eq!(acknowledged["params"]["_meta"][ID], json!(7));

    // The standing stream of a session hears of it all, as before.
    let mut standing = client.in_session("2025-11-25").standing();
    standing.primed();
    tools(&server);
    let mut heard: Vec<String> = (0..3)
        .map(|_| {
            let message = everything.message().unwrap();
            assert_eq!(message["params"], json!({ "_meta": { ID: "seven" } }));
            message["method"].as_str().unwrap().to_owned()
        })
        .collect();
    heard.sort();
    let lists = ["prompts", "resources", "tools"];
    assert_eq!(heard, lists.map(|list| format!("notifications/{list}/list_changed")));
    let message = prompts.message().unwrap();
    assert_eq!(message["method"], "notifications/prompts/list_changed");
    assert_eq!(message["params"]["_meta"][ID], json!(7));
    let message = standing.message().unwrap();
    assert!(message.get("params").is_none(), "{message}");
    // Tools only: who wants prompts hears nothing.
    server.notify();
    assert_eq!(everything.message().unwrap()["method"], "notifications/tools/list_changed");
    assert!(everything.last.is_none() && prompts.last.is_none(), "events have ids");

    // It ends with its answer when the server does.
    server.terminate();
    for (stream, id) in [(&mut everything, json!("seven")), (&mut prompts, json!(7))] {
        let rest = stream.rest();
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!((&rest[0]["id"], &rest[0]["result"]["resultType"]), (&id, &json!("complete")));
        assert_eq!(rest[0]["result"]["_meta"][ID], id);
    }
}

#[test]
fn a_subscription_ends_with_the_key_and_frees_its_place_with_the_client() {
    let server = Setup::new()
        .catalog(
            "[[client_application]]\ntenant = \"demo\"\nid = \"one\"\nopen = true\n\
             limits = { listening_streams = 1 }\n",
        )
        .start();
    let one = Client::keyless(&server, "demo/one");
    let first = listen(&one, 1, json!({}));
    let body = modern(1, "subscriptions/listen", json!({ "notifications": {} }));
    let again = || one.send(&with(&one, &body, &headers(&body)).header("Connection", "close"));
    again().expect(429);
    drop(first);
    eventually("the place is free", || {
        Events::open(one.connect(), &with(&one, &body, &headers(&body))).is_ok()
    });

    let wanted = json!({ "tenant": "demo", "client_application": "assistant" });
    let created = server.admin("POST", "/keys", Some(&wanted)).expect(200).json();
    let (key, id) = (created["key"].as_str().unwrap(), created["id"].as_str().unwrap());
    let client = Client::keyless(&server, "demo/assistant").with_key(key);
    let mut stream = listen(&client, 3, json!({ "toolsListChanged": true }));
    assert!(stream.message().is_some());
    server.command(&["key", "revoke", id]).succeeded();
    let rest = stream.rest();
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(3)), "{rest:?}");
}

#[test]
fn a_subscription_needs_a_stream() {
    let server = Setup::new().start();
    let client = Client::new(&server, "demo/assistant");
    let body = modern(1, "subscriptions/listen", json!({ "notifications": {} }));
    let request = headers(&body).iter().fold(
        client.request("POST").header("Accept", "application/json").json(&body),
        |request, (name, value)| request.header(name, value),
    );
    client.send(&request).expect(406);
    let body = modern(1, "subscriptions/listen", json!({}));
    refused(&client.send(&with(&client, &body, &headers(&body))), 200, -32602);

    let silent = Setup::new().set("runtime.mcp.sse.enabled", false).start();
    let client = Client::new(&silent, "demo/assistant");
    let body = modern(1, "subscriptions/listen", json!({ "notifications": {} }));
    refused(&client.send(&with(&client, &body, &headers(&body))), 404, -32601);
}
