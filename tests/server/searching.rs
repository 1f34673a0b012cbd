//! Client applications that search for tools instead of being shown all of them.

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Request, Ringway, Service, Setup, call, eventually, rpc};

/// A catalog of tools of which a few fit certain words.
fn server(service: &Service, client: &str) -> Ringway {
    let invoice = r#"title = "Bills"
fields = [{ source_field_name = "debtor", location = "query", required = true, description = "Who owes the money" }]"#;
    let mut tools = vec![
        ("create_invoice", "POST", "/invoices", invoice),
        ("list_invoices", "GET", "/invoices", "limit = { count = 1, seconds = 3600 }"),
        ("delete_invoice", "DELETE", "/invoices", ""),
        ("pinned", "GET", "/pinned", ""),
    ];
    let fillers: Vec<String> = (0..60).map(|number| format!("filler_{number}")).collect();
    tools.extend(fillers.iter().map(|name| (&**name, "GET", "/filler", "")));
    let text = format!(
        "[[client_application]]\ntenant = \"demo\"\nid = \"finder\"\nopen = true\n\
         tool_listing = \"search\"\nfavourites = [\"pinned\"]\n{client}\n\
         [[assignment]]\ntenant = \"demo\"\nclient_application = \"finder\"\ntoolset = \"api\"\n\
         policy = {{ rules = [{{ effect = \"deny\", side_effects = [\"destructive\"] }}] }}\n"
    );
    Setup::new().set("runtime.cores", 1).api(&service.base(), &tools).catalog(&text).start()
}

fn finder(server: &Ringway) -> Client {
    Client::keyless(server, "demo/finder").in_session(NEWEST)
}

fn found(client: &Client, words: &str) -> Vec<String> {
    let result = client.called("search_tools", json!({ "query": words }));
    let tools = result["structuredContent"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_list_has_the_search_and_the_favourites_and_the_rest_is_found_by_words() {
    let service = Service::echo();
    let server = server(&service, "");
    let client = finder(&server);
    let result = client.post(&rpc(1, "tools/list", json!({}))).expect(200).result();
    let names: Vec<_> =
        result["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["search_tools", "describe_tool", "call_tool", "pinned"]);
    // By its name, its title, its description, its field; the best first.
    assert_eq!(found(&client, "create an invoice")[0], "create_invoice");
    assert_eq!(found(&client, "bills")[0], "create_invoice");
    assert_eq!(found(&client, "who owes money")[0], "create_invoice");
    assert!(found(&client, "invoice").contains(&"list_invoices".to_owned()));
    assert!(!found(&client, "delete invoice").contains(&"delete_invoice".to_owned()));
    assert_eq!(found(&client, "xylophone"), [""; 0]);
    let few = client.called("search_tools", json!({ "query": "filler", "limit": 3 }));
    assert_eq!(few["structuredContent"]["tools"].as_array().unwrap().len(), 3);
    // A tool that is published now is found now.
    server.apply(
        "[[tool]]\ntenant = \"demo\"\ntoolset = \"api\"\nname = \"tune\"\n\
         description = \"Tunes a xylophone.\"\nmethod = \"GET\"\npath = \"/tune\"\n",
    );
    assert_eq!(found(&client, "xylophone"), ["tune"]);
}

#[test]
fn a_tool_that_was_found_is_described_and_called_as_if_it_were_listed() {
    let service = Service::echo();
    let server = server(&service, "");
    let client = finder(&server);
    let told = client.called("describe_tool", json!({ "name": "create_invoice" }));
    let told = &told["structuredContent"];
    assert_eq!(told["inputSchema"]["required"], json!(["debtor"]));
    assert_eq!((&told["title"], &told["sideEffect"]), (&"Bills".into(), &"write".into()));
    let with = |name: &str, arguments: Value| {
        call(1, "call_tool", json!({ "name": name, "arguments": arguments }))
    };
    let through = client.reply(&with("create_invoice", json!({ "debtor": "A" })));
    let directly = client.called("create_invoice", json!({ "debtor": "A" }));
    assert_eq!(through["result"], directly);
    assert_eq!(service.asked().target, "/invoices?debtor=A");
    // As text too, and checked in the same words.
    let text = client.reply(&with("create_invoice", json!("{\"debtor\":\"A\"}")));
    assert_eq!(text["result"], directly);
    let wrong = client.reply(&with("create_invoice", json!({})));
    assert_eq!(wrong["result"], client.called("create_invoice", json!({})));
    // What is not shown is unknown on every way, in the same words.
    for name in ["delete_invoice", "never_was"] {
        let directly = client.reply(&call(1, name, json!({})));
        assert_eq!(directly["error"]["code"], -32602);
        assert_eq!(client.reply(&with(name, json!({}))), directly);
        let described = client.reply(&call(1, "describe_tool", json!({ "name": name })));
        assert_eq!(described, directly);
    }
    // A tool that calls tools calls no meta tool.
    let nested = client.reply(&with("call_tool", json!({ "name": "pinned" })));
    assert_eq!(nested["error"]["code"], -32602, "{nested}");
}

#[test]
fn calls_through_the_search_are_limited_and_recorded_like_direct_ones() {
    let service = Service::echo();
    let server = server(&service, "limits = { tool_calls = { count = 3, seconds = 3600 } }");
    let client = finder(&server);
    let through = |name: &str| call(1, "call_tool", json!({ "name": name }));
    client.post(&through("pinned")).expect(200);
    client.post(&call(1, "pinned", json!({}))).expect(200);
    let result = client.post(&through("list_invoices")).expect(200).result();
    assert_eq!(result["isError"], false);
    client.post(&through("pinned")).expect(429);
    client.post(&call(1, "pinned", json!({}))).expect(429);
    client.post(&call(1, "search_tools", json!({ "query": "pinned" }))).expect(200);
    client.post(&call(1, "describe_tool", json!({ "name": "pinned" }))).expect(200);
    client.post(&through("delete_invoice")).expect(200);
    let mut records = Vec::new();
    eventually("all is recorded", || {
        records = server.records();
        records.retain(|record| record["call_type"] != "session");
        records.len() >= 8
    });
    let told: Vec<_> = records
        .iter()
        .map(|record| {
            let text = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
            (text("call_type"), text("tool"), text("decision"), text("reason"))
        })
        .collect();
    let line = |kind: &str, tool: &str, decision: &str, reason: &str| {
        (kind.to_owned(), tool.to_owned(), decision.to_owned(), reason.to_owned())
    };
    let expected = [
        line("tool_execution", "pinned", "allowed", "allowed"),
        line("tool_execution", "pinned", "allowed", "allowed"),
        line("tool_execution", "list_invoices", "allowed", "allowed"),
        line("tool_execution", "pinned", "denied", "quota_exceeded"),
        line("tool_execution", "pinned", "denied", "quota_exceeded"),
        line("tool_discovery", "-", "allowed", "allowed"),
        line("schema_discovery", "pinned", "allowed", "allowed"),
        line("tool_execution", "delete_invoice", "denied", "unknown_tool"),
    ];
    assert_eq!(told, expected);
    for key in ["schema_hash", "toolset", "side_effect", "downstream_status"] {
        assert_eq!(records[0][key], records[1][key], "{key}");
    }
}

#[test]
fn a_tools_own_quota_holds_through_the_search_too() {
    let service = Service::echo();
    let server = server(&service, "");
    let client = finder(&server);
    assert_eq!(client.called("call_tool", json!({ "name": "list_invoices" }))["isError"], false);
    let told = client.called("call_tool", json!({ "name": "list_invoices" }));
    assert_eq!(told["isError"], true);
    assert_eq!(client.called("list_invoices", json!({}))["isError"], true);
}

#[test]
fn a_tool_that_went_is_not_found_and_is_called_with_a_note_for_a_while() {
    let service = Service::echo();
    let server = server(&service, "");
    let client = finder(&server);
    server.admin("POST", "/catalog/tools/demo/api/create_invoice/unpublish", None).expect(200);
    assert!(!found(&client, "create an invoice").contains(&"create_invoice".to_owned()));
    let told = client.reply(&call(1, "describe_tool", json!({ "name": "create_invoice" })));
    assert_eq!(told["error"]["code"], -32602);
    let arguments = json!({ "name": "create_invoice", "arguments": { "debtor": "A" } });
    let result = client.called("call_tool", arguments);
    assert_eq!(result["isError"], false);
    assert!(result.to_string().contains("List the tools again"), "{result}");
}

#[test]
fn plain_http_searches_too_and_describes_what_can_be_found() {
    let service = Service::echo();
    let server = server(&service, "");
    let client = finder(&server);
    let send = |method: &str, path: &str, body: Option<Value>| {
        let request = Request::new(method, &format!("/runtime/demo/finder/{path}"));
        let request = body.iter().fold(request, Request::json);
        client.send(&request)
    };
    let listed = send("GET", "tools", None).expect(200).json();
    let names: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["search_tools", "describe_tool", "call_tool", "pinned"]);
    let words = json!({ "query": "create an invoice" });
    let found = send("POST", "tools/search_tools", Some(words)).expect(200).json();
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "create_invoice");
    let arguments = json!({ "name": "create_invoice", "arguments": { "debtor": "A" } });
    let called = send("POST", "tools/call_tool", Some(arguments)).expect(200).json();
    assert_eq!(called["structuredContent"]["target"], "/invoices?debtor=A");
    send("POST", "tools/call_tool", Some(json!({ "name": "delete_invoice" }))).expect(404);
    let document = send("GET", "openapi.json", None).expect(200).json();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.contains_key("/tools/create_invoice"), "what can be called is described");
    assert!(!paths.contains_key("/tools/delete_invoice"));
}
