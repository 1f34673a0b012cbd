//! What a model should know about a toolset: put together for each client application, told as a
//! prompt and as a resource, seen only with the tools it is about.

use serde_json::{Value, json};

use crate::harness::{
    Client, NEWEST, Request, Ringway, Service, Setup, Wire, eventually, initialize, rpc,
};

const LOOK: (&str, &str, &str, &str) = ("look", "GET", "/look", "");
const DROP: (&str, &str, &str, &str) = ("drop", "DELETE", "/drop", "");
const URI: &str = "runtime://toolsets/api/system-prompt";

/// A server with a toolset that has a prompt, and client applications `demo/a` and `demo/b` with
/// one each that differ in the lines of their assignment.
fn server(toolset: &str, assignments: [&str; 2]) -> (Service, Ringway) {
    let service = Service::echo();
    let mut text = String::new();
    for (client, more) in ["a", "b"].into_iter().zip(assignments) {
        text += &format!(
            "[[client_application]]\ntenant = \"demo\"\nid = \"{client}\"\nopen = true\n\
             instructions = \"I am {client}.\"\nsystem_prompt = \"Client {client}.\"\n{}",
            assignment(client, more)
        );
    }
    let setup = Setup::new().set("runtime.cores", 1).api(&service.base(), &[LOOK, DROP]);
    let server = setup.catalog(&text).start();
    set_prompt(&server, toolset);
    (service, server)
}

fn assignment(client: &str, more: &str) -> String {
    format!(
        "[[assignment]]\ntenant = \"demo\"\nclient_application = \"{client}\"\ntoolset = \"api\"\n\
         {more}\n"
    )
}

/// Says more of the toolset.
fn set_prompt(server: &Ringway, more: &str) {
    server.apply(&format!(
        "[[toolset]]\ntenant = \"demo\"\nid = \"api\"\nkind = \"rest\"\nconnection = \"api\"\n{more}\n"
    ));
}

fn client(server: &Ringway, id: &str) -> Client {
    Client::keyless(server, &format!("demo/{id}")).in_session(NEWEST)
}

fn ask(client: &Client, method: &str, params: Value) -> Value {
    client.post(&rpc(1, method, params)).expect(200).json()
}

/// The text of the prompt, which prompts and resources must agree on; `None` where there is none.
fn prompt(client: &Client) -> Option<String> {
    let got = ask(client, "prompts/get", json!({ "name": "api" }));
    let read = ask(client, "resources/read", json!({ "uri": URI }));
    let listed = |method: &str, key: &str| {
        ask(client, method, json!({}))["result"][key].as_array().unwrap().clone()
    };
    let (prompts, resources) =
        (listed("prompts/list", "prompts"), listed("resources/list", "resources"));
    let Some(text) = got["result"]["messages"][0]["content"]["text"].as_str() else {
        assert_eq!(
            (&got["error"]["code"], &read["error"]["code"]),
            (&json!(-32602), &json!(-32002))
        );
        assert!(prompts.is_empty() && resources.is_empty(), "{prompts:?} {resources:?}");
        return None;
    };
    assert_eq!(got["result"]["messages"].as_array().unwrap().len(), 1);
    assert_eq!(got["result"]["messages"][0]["role"], "user");
    assert_eq!(read["result"]["contents"][0]["text"], text);
    assert_eq!(read["result"]["contents"][0]["uri"], URI);
    assert_eq!(prompts[0]["name"], "api");
    assert_eq!((&resources[0]["uri"], resources.len()), (&URI.into(), 1));
    assert_eq!(resources[0]["size"], text.len());
    Some(text.to_owned())
}

#[test]
fn a_prompt_is_the_toolsets_then_the_clients_then_the_assignments() {
    let said = "system_prompt = \"Toolset.\"";
    let (_service, server) = server(said, ["", ""]);
    let (a, b) = (client(&server, "a"), client(&server, "b"));
    assert_eq!(prompt(&b).as_deref(), Some("Toolset."));
    let own = "prompt = \"Own.\"";
    let replaced = "prompt = \"Own.\"\nprompt_mode = \"override\"";
    let including = |more: &str| format!("include_client_prompt = true\n{more}");
    for (toolset, more, expected) in [
        (said, String::new(), Some("Toolset.")),
        (said, including(""), Some("Toolset.\n\nClient a.")),
        (said, own.to_owned(), Some("Toolset.\n\nOwn.")),
        (said, including(own), Some("Toolset.\n\nClient a.\n\nOwn.")),
        (said, replaced.to_owned(), Some("Own.")),
        (said, including(replaced), Some("Own.")),
        ("", including(own), Some("Client a.\n\nOwn.")),
        ("", including(""), Some("Client a.")),
        ("", own.to_owned(), Some("Own.")),
        ("", String::new(), None),
        ("system_prompt = \" \\n \"", String::new(), None),
    ] {
        set_prompt(&server, toolset);
        server.apply(&assignment("a", &more));
        assert_eq!(prompt(&a).as_deref(), expected, "{toolset:?} {more:?}");
    }
    // The other client application's is its own.
    set_prompt(&server, said);
    assert_eq!(prompt(&b).as_deref(), Some("Toolset."));
}

#[test]
fn a_prompt_is_there_while_a_tool_of_its_toolset_is() {
    let denying = "policy = { rules = [{ effect = \"deny\", side_effects = [\"destructive\"] }] }";
    let (_service, server) = server("system_prompt = \"Toolset.\"", [denying, ""]);
    let (a, b) = (client(&server, "a"), client(&server, "b"));
    assert!(prompt(&a).is_some() && prompt(&b).is_some());
    // What is left is denied to one of them.
    server.admin("POST", "/catalog/tools/demo/api/look/unpublish", None).expect(200);
    assert_eq!(prompt(&a), None);
    assert!(prompt(&b).is_some());
    server.admin("POST", "/catalog/tools/demo/api/drop/unpublish", None).expect(200);
    assert_eq!(prompt(&b), None);
    server.admin("POST", "/catalog/tools/demo/api/look/publish", None).expect(200);
    assert!(prompt(&a).is_some() && prompt(&b).is_some());
    server.apply(&assignment("a", "enabled = false"));
    assert_eq!(prompt(&a), None);
}

#[test]
fn instructions_are_put_together_for_each_client_application() {
    let (_service, server) =
        server("system_prompt = \"Toolset.\"", ["", "discovery_mode = \"lazy\""]);
    let instructions = |id: &str| {
        let client = Client::keyless(&server, &format!("demo/{id}"));
        let result = client.post(&initialize(NEWEST)).expect(200).result();
        result["instructions"].as_str().unwrap_or_default().to_owned()
    };
    let (a, b) = (instructions("a"), instructions("b"));
    assert!(a.starts_with("I am a.") && b.starts_with("I am b."), "{a} {b}");
    assert!(a.contains("api") && a.contains("system-prompt"), "{a}");
    assert!(b.contains("discover_tool_schema") && !a.contains("discover_tool_schema"), "{a} {b}");
    // It knows the toolset's prompt too, and nothing of its own.
    let plain = instructions("public");
    assert!(plain.contains("system-prompt") && !plain.contains("I am"), "{plain}");
}

#[test]
fn what_is_unknown_has_the_code_of_the_revision_and_templates_tell_what_there_is() {
    let (_service, server) = server("system_prompt = \"Toolset.\"", ["", ""]);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = Client::keyless(&server, "demo/a").in_session(revision);
        let listed = ask(&client, "resources/templates/list", json!({}))["result"].clone();
        let templates = listed["resourceTemplates"].as_array().unwrap();
        let uris: Vec<_> = templates.iter().map(|one| &one["uriTemplate"]).collect();
        assert_eq!(uris, ["runtime://tools/{name}/schema", "runtime://results/{id}"]);
        assert_eq!(templates[0].get("title").is_some(), revision >= "2025-06-18");
        for uri in [
            "runtime://tools/nothing/schema",
            "runtime://results/nothing",
            "runtime://toolsets/nothing/system-prompt",
            "runtime://toolsets/appliance/system-prompt",
            "file:///etc/passwd",
            "",
        ] {
            let error = ask(&client, "resources/read", json!({ "uri": uri }))["error"].clone();
            assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32002), &uri.into()));
        }
        let schema = "runtime://tools/look/schema";
        let read = ask(&client, "resources/read", json!({ "uri": schema }))["result"].clone();
        let text = read["contents"][0]["text"].as_str().unwrap();
        let told: Value = serde_json::from_str(text).unwrap();
        assert_eq!(told["inputSchema"]["type"], "object");
    }
}

#[test]
fn a_prompt_is_recorded_as_the_resource_is() {
    let (_service, server) = server("system_prompt = \"Toolset.\"", ["", ""]);
    let client = client(&server, "a");
    ask(&client, "prompts/get", json!({ "name": "api" }));
    ask(&client, "resources/read", json!({ "uri": URI }));
    ask(&client, "prompts/get", json!({ "name": "none" }));
    ask(&client, "resources/read", json!({ "uri": "runtime://none" }));
    let mut records = Vec::new();
    eventually("all is recorded", || {
        records = server.records();
        records.retain(|record| record["call_type"] != "session");
        records.len() == 4
    });
    let [got, read, no_prompt, no_resource] = records.as_slice() else { panic!("{records:#?}") };
    assert_eq!(
        (&got["call_type"], &read["call_type"]),
        (&"prompt_get".into(), &"resource_read".into())
    );
    // What was asked for, who asked, and how it ended.
    assert_eq!((&got["tool"], &read["tool"]), (&"api".into(), &URI.into()));
    for (one, other) in [(got, read), (no_prompt, no_resource)] {
        let own = ["time", "execution_id", "call_type", "method", "tool", "reason"];
        let sizes = ["total_us", "request_bytes", "response_bytes"];
        let (one, other) = (one.as_object().unwrap(), other.as_object().unwrap());
        assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
        for (key, value) in one {
            if !own.contains(&key.as_str()) && !sizes.contains(&key.as_str()) {
                assert_eq!(*value, other[key], "{key}");
            }
        }
    }
    assert_eq!(no_prompt["tool"], "none");
    assert_eq!(no_resource["reason"], "unknown_resource");
    assert_eq!(no_prompt["decision"], "denied");
}

#[test]
fn prompts_and_resources_come_in_pages_whose_cursors_end_with_the_list() {
    const TOOLSETS: usize = 5;
    let service = Service::echo();
    let toolset = |number: usize| {
        format!(
            "[[toolset]]\ntenant = \"demo\"\nid = \"set{number}\"\nkind = \"rest\"\n\
             connection = \"api\"\nsystem_prompt = \"Prompt {number}.\"\n\
             [[assignment]]\ntenant = \"demo\"\nclient_application = \"public\"\n\
             toolset = \"set{number}\"\n\
             [[tool]]\ntenant = \"demo\"\ntoolset = \"set{number}\"\nname = \"look{number}\"\n\
             description = \"A tool.\"\nmethod = \"GET\"\npath = \"/look\"\n"
        )
    };
    let text: String = (0..TOOLSETS).map(toolset).collect();
    let setup = Setup::new().set("runtime.mcp.page_size", 2).api(&service.base(), &[LOOK]);
    let server = setup.catalog(&text).start();
    let client = client(&server, "public");
    let page = |method: &str, cursor: &Value| {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        ask(&client, method, params)
    };
    let uri = |number: usize| format!("runtime://toolsets/set{number}/system-prompt");
    for (method, member, key) in
        [("prompts/list", "prompts", "name"), ("resources/list", "resources", "uri")]
    {
        let (mut cursor, mut found, mut sizes) = (Value::Null, Vec::new(), Vec::new());
        loop {
            let told = page(method, &cursor);
            let entries = told["result"][member].as_array().unwrap();
            sizes.push(entries.len());
            found.extend(entries.iter().map(|entry| entry[key].as_str().unwrap().to_owned()));
            let Some(next) = told["result"].get("nextCursor") else { break };
            cursor = next.clone();
        }
        let expected: Vec<String> = (0..TOOLSETS)
            .map(|number| if key == "uri" { uri(number) } else { format!("set{number}") })
            .collect();
        assert_eq!((found, sizes), (expected, vec![2, 2, 1]), "{method}");
        // A cursor is of one list, and of what that was when it was given.
        let of_other = if member == "prompts" { "resources/list" } else { "prompts/list" };
        assert_eq!(page(of_other, &cursor)["error"]["code"], -32602);
        assert_eq!(page(method, &json!("made up"))["error"]["code"], -32602);
        server.apply(&toolset(TOOLSETS));
        assert_eq!(page(method, &cursor)["error"]["code"], -32602);
        let gone = format!("/catalog/assignments/demo/public/set{TOOLSETS}");
        let request = Request::new("DELETE", &gone).header("If-Match", "*");
        Wire::unix(&server.admin_socket()).ask(&request).expect(200);
        assert!(page(method, &cursor)["result"].is_object());
    }
}
