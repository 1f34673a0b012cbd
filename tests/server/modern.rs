//! Clients of 2026-07-28: requests that stand alone, beside sessions at the same URL.

use serde_json::{Value, json};

use crate::harness::{
    Answer, Client, Events, NEWEST, Plan, Request, Ringway, Service, Setup, eventually, initialize,
    json_answer,
};

const MODERN: &str = "2026-07-28";
const BOTH: &str = "application/json, text/event-stream";
const META: &str = "io.modelcontextprotocol/";
const PET: (&str, &str, &str, &str) = ("pet", "GET", "/pet", "");

/// A request with all that it must say of itself.
pub(crate) fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        format!("{META}protocolVersion"): MODERN,
        format!("{META}clientCapabilities"): {},
        format!("{META}clientInfo"): { "name": "integration", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// The headers of a body, as a client writes them.
pub(crate) fn headers(body: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut headers = vec![("MCP-Protocol-Version".to_owned(), MODERN.to_owned())];
    headers.push(("Mcp-Method".to_owned(), text(&body["method"])));
    for key in ["name", "uri"] {
        if let Some(name) = body["params"].get(key) {
            headers.push(("Mcp-Name".to_owned(), text(name)));
        }
    }
    headers
}

pub(crate) fn with(client: &Client, body: &Value, headers: &[(String, String)]) -> Request {
    let request = client.request("POST").header("Accept", BOTH).json(body);
    headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

fn post(client: &Client, body: &Value) -> Answer {
    client.send(&with(client, body, &headers(body)))
}

fn ask(client: &Client, method: &str, params: Value) -> Value {
    post(client, &modern(1, method, params)).expect(200).result()
}

/// The status, and the code of the error, which names the request.
#[track_caller]
pub(crate) fn refused(answer: &Answer, status: u16, code: i64) -> Value {
    assert_eq!(answer.status, status, "{}", answer.text());
    let json = answer.json();
    assert_eq!((&json["id"], &json["error"]["code"]), (&json!(1), &json!(code)), "{json}");
    json["error"].clone()
}

fn server(service: &Service) -> Ringway {
    Setup::new().api(&service.base(), &[PET]).start()
}

fn pets() -> Service {
    Service::start(|_| Plan::Answer(json_answer(r#"{"name":"Rex"}"#)))
}

#[test]
fn requests_stand_alone_beside_sessions() {
    let service = pets();
    let server = server(&service);
    let client = Client::new(&server, "demo/assistant");
    let legacy = client.in_session(NEWEST);

    let list = ask(&client, "tools/list", json!({}));
    let names: Vec<&str> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["list_sessions", "list_tools", "pet", "runtime_status"]);
    assert_eq!(list["resultType"], "complete");
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(60_000), &json!("private")));
    assert_eq!(list["_meta"][format!("{META}serverInfo")]["name"], "ringway");

    let called = ask(&client, "tools/call", json!({ "name": "pet", "arguments": {} }));
    assert_eq!(called["structuredContent"], json!({ "name": "Rex" }));
    assert_eq!((&called["isError"], &called["resultType"]), (&json!(false), &json!("complete")));
    assert!(called.get("ttlMs").is_none() && called.get("cacheScope").is_none(), "{called}");

    // A session that is named is not looked at, be there one or not.
    for session in [legacy.session.clone().unwrap(), "nonsense".to_owned()] {
        let body = modern(1, "tools/list", json!({}));
        let request = with(&client, &body, &headers(&body))
            .header("Mcp-Session-Id", &session)
            .header("Last-Event-ID", "nonsense");
        let answer = client.send(&request).expect(200);
        assert!(answer.header("Mcp-Session-Id").is_none());
        assert!(answer.result()["tools"].is_array());
    }
    let result = legacy.called("pet", json!({}));
    assert!(result.get("resultType").is_none() && result.get("_meta").is_none(), "{result}");

    // Who asks for this revision where there are sessions gets the newest that has some.
    let answer = client.post(&initialize(MODERN)).expect(200);
    assert_eq!(answer.result()["protocolVersion"], NEWEST);
    let request = client.message(&initialize(NEWEST)).header("MCP-Protocol-Version", MODERN);
    let answer = client.send(&request).expect(200);
    assert!(answer.header("Mcp-Session-Id").is_some());
}

#[test]
fn what_a_request_does_not_say_right_is_refused() {
    let service = pets();
    let server = server(&service);
    let client = Client::new(&server, "demo/assistant");
    let list = modern(1, "tools/list", json!({}));
    let call = modern(1, "tools/call", json!({ "name": "pet" }));

    // The envelope.
    for missing in ["protocolVersion", "clientCapabilities"] {
        let mut body = list.clone();
        body["params"]["_meta"].as_object_mut().unwrap().remove(&format!("{META}{missing}"));
        let error = refused(&client.send(&with(&client, &body, &headers(&body))), 400, -32602);
        assert!(error["message"].as_str().unwrap().contains(missing), "{error}");
    }
    let bare = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    refused(&client.send(&with(&client, &bare, &headers(&bare))), 400, -32602);

    // The headers.
    let change = |body: &Value, name: &str, value: Option<&str>| {
        let mut all = headers(body);
        all.retain(|(other, _)| other != name);
        all.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        client.send(&with(&client, body, &all))
    };
    for (body, name, value) in [
        (&list, "MCP-Protocol-Version", None),
        (&list, "MCP-Protocol-Version", Some("2025-11-25")),
        (&list, "MCP-Protocol-Version", Some("1900-01-01")),
        (&list, "Mcp-Method", None),
        (&list, "Mcp-Method", Some("tools/call")),
        (&list, "Mcp-Method", Some("Tools/List")),
        (&call, "Mcp-Name", None),
        (&call, "Mcp-Name", Some("pets")),
        (&call, "Mcp-Name", Some("=?base64?cGV0?")),
        (&call, "Mcp-Name", Some("=?base64?cGV0cw==?=")),
        (&call, "Mcp-Name", Some("=?base64?c?=")),
    ] {
        let error = refused(&change(body, name, value), 400, -32020);
        assert!(error["message"].as_str().unwrap().contains(name), "{error}");
    }
    for (name, value) in headers(&call) {
        let request = with(&client, &call, &headers(&call)).header(&name, &value);
        refused(&client.send(&request), 400, -32020);
    }
    change(&call, "Mcp-Name", Some("=?base64?cGV0?=")).expect(200);
    change(&call, "mcp-name", Some("pet")).expect(400);
    let mut lower = headers(&call);
    for (name, _) in &mut lower {
        *name = name.to_lowercase();
    }
    client.send(&with(&client, &call, &lower)).expect(200);

    // The revision.
    let mut body = list.clone();
    body["params"]["_meta"][format!("{META}protocolVersion")] = json!("1900-01-01");
    let mut all = headers(&body);
    all[0].1 = "1900-01-01".to_owned();
    let error = refused(&client.send(&with(&client, &body, &all)), 400, -32022);
    assert_eq!(error["data"]["requested"], "1900-01-01");
    assert!(error["data"]["supported"].as_array().unwrap().contains(&json!(MODERN)), "{error}");
    // Without a word of this era it is a request of the other one, as before.
    let request = client.message(&bare).header("MCP-Protocol-Version", "1900-01-01");
    assert_eq!(client.send(&request).expect(400).json()["error"]["code"], -32000);

    // The method.
    for method in ["tools/lists", "ping", "initialize", "logging/setLevel", "resources/subscribe"] {
        refused(&post(&client, &modern(1, method, json!({}))), 404, -32601);
    }

    // One message at a time, and no answers: nothing is asked that way.
    let batch = client.message(&json!([list])).header("MCP-Protocol-Version", MODERN);
    assert_eq!(client.send(&batch).expect(400).json()["error"]["code"], -32600);
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let response = client.message(&response).header("MCP-Protocol-Version", MODERN);
    assert_eq!(client.send(&response).expect(400).json()["error"]["code"], -32600);

    // Who it is comes first.
    let keyless = Client::keyless(&server, "demo/assistant");
    post(&keyless, &list).expect(401);
    let foreign = with(&client, &bare, &headers(&list)).header("Origin", "https://evil.example");
    client.send(&foreign).expect(403);
}

#[test]
fn notifications_are_accepted_and_streams_of_sessions_are_not_there() {
    let server = Setup::new().start();
    let client = Client::new(&server, "demo/assistant");
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/whatever", "params": {} });
    let answer = client.send(&with(&client, &told, &headers(&told))).expect(202);
    assert!(answer.body.is_empty());
    let wrong = client.message(&told).header("MCP-Protocol-Version", MODERN);
    client.send(&wrong).expect(400);
    for method in ["GET", "DELETE"] {
        let request = client.request(method).header("Accept", "text/event-stream");
        let answer = client.send(&request.header("MCP-Protocol-Version", MODERN)).expect(405);
        assert_eq!(answer.header("Allow"), Some("POST, OPTIONS"));
    }
}

#[test]
fn a_server_is_discovered() {
    // That clients with sessions need one is nothing to those that have none.
    let server = Setup::new()
        .set("runtime.mcp.sse.require_session", true)
        .catalog(
            "[[client_application]]\ntenant = \"demo\"\nid = \"told\"\nopen = true\n\
             instructions = \"Say \\\"please\\\".\"\n",
        )
        .set("runtime.mcp.cache_ttl_ms", 1500)
        .start();
    let told = Client::keyless(&server, "demo/told");
    let found = ask(&told, "server/discover", json!({}));
    assert_eq!(found["supportedVersions"][0], MODERN);
    assert_eq!(found["instructions"], "Say \"please\".");
    let changes = json!({ "listChanged": true });
    let expected = json!({
        "tools": changes, "resources": changes, "prompts": changes, "completions": {},
    });
    assert_eq!(found["capabilities"], expected);
    // Whoever asks hears the same of an application that is open to all.
    assert_eq!((&found["ttlMs"], &found["cacheScope"]), (&json!(1500), &json!("public")));
    let client = Client::new(&server, "demo/assistant");
    let found = ask(&client, "server/discover", json!({}));
    assert_eq!((&found["cacheScope"], found.get("instructions")), (&json!("private"), None));
}

#[test]
fn resources_prompts_and_completion_have_the_forms_of_this_revision() {
    let service = pets();
    let server = Setup::new()
        .api(&service.base(), &[PET])
        .catalog(
            "[[toolset]]\ntenant = \"demo\"\nid = \"said\"\nkind = \"builtin\"\n\
             system_prompt = \"Be kind.\"\n\
             [[assignment]]\ntenant = \"demo\"\nclient_application = \"assistant\"\n\
             toolset = \"said\"\n",
        )
        .start();
    let client = Client::new(&server, "demo/assistant");
    for method in ["resources/list", "resources/templates/list", "prompts/list"] {
        let list = ask(&client, method, json!({}));
        assert_eq!((&list["resultType"], &list["ttlMs"]), (&json!("complete"), &json!(60_000)));
    }
    let uri = "runtime://tools/pet/schema";
    let read = ask(&client, "resources/read", json!({ "uri": uri }));
    assert_eq!((&read["contents"][0]["uri"], &read["ttlMs"]), (&json!(uri), &json!(60_000)));
    let missing = modern(1, "resources/read", json!({ "uri": "runtime://tools/none/schema" }));
    let error = refused(&post(&client, &missing), 200, -32602);
    assert_eq!(error["data"]["uri"], "runtime://tools/none/schema");
    let kept = modern(1, "resources/read", json!({ "uri": "runtime://results/none" }));
    refused(&post(&client, &kept), 200, -32602);

    let prompt = ask(&client, "prompts/get", json!({ "name": "said" }));
    assert_eq!(prompt["messages"][0]["content"]["text"], "Be kind.");
    assert!(prompt.get("ttlMs").is_none() && prompt["resultType"] == "complete", "{prompt}");
    let complete = |reference: Value, name: &str, value: &str| {
        let argument = json!({ "name": name, "value": value });
        ask(&client, "completion/complete", json!({ "ref": reference, "argument": argument }))
    };
    let template = json!({ "type": "ref/resource", "uri": "runtime://tools/{name}/schema" });
    let names = complete(template.clone(), "name", "p");
    let expected = json!({ "values": ["pet"], "total": 1, "hasMore": false });
    assert_eq!((&names["completion"], &names["resultType"]), (&expected, &json!("complete")));
    let prompt = json!({ "type": "ref/prompt", "name": "said" });
    for nothing in [complete(template, "other", ""), complete(prompt, "any", "x")] {
        assert_eq!(nothing["completion"]["values"], json!([]));
    }
    let unknown = json!({
        "ref": { "type": "ref/prompt", "name": "none" }, "argument": { "name": "a", "value": "" },
    });
    refused(&post(&client, &modern(1, "completion/complete", unknown)), 200, -32602);
}

#[test]
fn structured_content_is_any_json() {
    let service = Service::start(|_| Plan::Answer(json_answer("[1,2.50,null]")));
    let listed =
        ("listed", "GET", "/listed", "response_fields = [{source_field_name = \"[*].id\"}]");
    let server = Setup::new().api(&service.base(), &[PET, listed]).start();
    let client = Client::new(&server, "demo/assistant");
    let called = ask(&client, "tools/call", json!({ "name": "pet" }));
    assert_eq!(called["structuredContent"], json!([1, 2.5, null]));
    let legacy = client.in_session(NEWEST).called("pet", json!({}));
    assert_eq!(legacy["structuredContent"], json!({ "result": [1, 2.5, null] }));
    let failed = ask(&client, "tools/call", json!({ "name": "pet", "arguments": { "no": 1 } }));
    assert_eq!((&failed["isError"], &failed["resultType"]), (&json!(true), &json!("complete")));
}

#[test]
fn answers_are_streams_for_who_wants_them_with_progress_and_without_ids() {
    let service = Service::holding();
    let hold = ("hold", "GET", "/hold", "");
    let server = Setup::new().api(&service.base(), &[hold]).start();
    let client = Client::new(&server, "demo/assistant");
    let list = modern(1, "tools/list", json!({}));
    let request = |body: &Value, accept: &str| {
        let request = client.request("POST").header("Accept", accept).json(body);
        headers(body).iter().fold(request, |request, (name, value)| request.header(name, value))
    };
    let mut stream = Events::open(client.connect(), &request(&list, "text/event-stream")).unwrap();
    assert_eq!(stream.message().unwrap()["result"]["resultType"], "complete");
    assert!(stream.rest().is_empty() && stream.last.is_none());
    let answer = client.send(&request(&list, "text/event-stream"));
    assert_eq!(answer.header("X-Accel-Buffering"), Some("no"));
    // An error that has a status of its own keeps it.
    let unknown = modern(1, "tools/lists", json!({}));
    refused(&client.send(&request(&unknown, "text/event-stream")), 404, -32601);

    let mut slow = modern(2, "tools/call", json!({ "name": "hold" }));
    slow["params"]["_meta"]["progressToken"] = json!("p");
    let mut stream = Events::open(client.connect(), &request(&slow, BOTH)).unwrap();
    service.asked();
    let message = stream.message().unwrap();
    assert_eq!(message["params"]["progressToken"], "p", "{message}");
    service.release();
    let rest = stream.rest();
    assert_eq!(rest.last().unwrap()["result"]["resultType"], "complete");
    assert!(stream.last.is_none(), "an event has an id");
}

#[test]
fn who_closes_the_answer_cancels_the_call() {
    let service = Service::holding();
    let hold = ("hold", "GET", "/hold", "");
    let server = Setup::new().api(&service.base(), &[hold]).start();
    let client = Client::new(&server, "demo/assistant");
    for accept in [BOTH, "application/json"] {
        let body = modern(1, "tools/call", json!({ "name": "hold" }));
        let request = client.request("POST").header("Accept", accept).json(&body);
        let request = headers(&body)
            .iter()
            .fold(request, |request, (name, value)| request.header(name, value));
        let mut wire = client.connect();
        wire.send(&request);
        service.asked();
        drop(wire);
        service.closed();
    }
    eventually("both are recorded as cancelled", || {
        let cancelled = |record: &&Value| record["outcome"] == "cancelled";
        server.records().iter().filter(cancelled).count() == 2
    });
}

#[test]
fn arguments_are_repeated_in_the_headers_a_tool_names() {
    let service = Service::echo();
    let fields = r#"fields = [
        {source_field_name = "region", location = "query", mcp_header = "Region"},
        {source_field_name = "count", location = "query", type = "integer", mcp_header = "Count"},
        {source_field_name = "dry", location = "query", type = "boolean", mcp_header = "Dry-Run"},
    ]"#;
    let server = Setup::new().api(&service.base(), &[("find", "GET", "/find", fields)]).start();
    let client = Client::new(&server, "demo/assistant");
    let listed = |list: Value| {
        let tools = list["tools"].as_array().unwrap().clone();
        tools.into_iter().find(|tool| tool["name"] == "find").unwrap()
    };
    let tool = listed(ask(&client, "tools/list", json!({})));
    let header = |name: &str| tool["inputSchema"]["properties"][name]["x-mcp-header"].clone();
    assert_eq!(["region", "count", "dry"].map(header), ["Region", "Count", "Dry-Run"]);
    let legacy = client.in_session(NEWEST).post(&crate::harness::rpc(1, "tools/list", json!({})));
    assert!(!listed(legacy.expect(200).result()).to_string().contains("x-mcp-header"));

    let call = |arguments: Value, more: &[(&str, &str)]| {
        let body = modern(1, "tools/call", json!({ "name": "find", "arguments": arguments }));
        let mut all = headers(&body);
        all.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        client.send(&with(&client, &body, &all))
    };
    let region = json!({ "region": "eu" });
    for (arguments, more) in [
        (json!({}), &[][..]),
        (json!({ "region": null }), &[]),
        (region.clone(), &[("Mcp-Param-Region", "eu")]),
        (region.clone(), &[("mcp-param-region", "=?base64?ZXU=?="), ("Mcp-Param-Other", "x")]),
        (
            json!({ "count": 42, "dry": true }),
            &[("Mcp-Param-Count", "42.0"), ("Mcp-Param-Dry-Run", "true")],
        ),
        (json!({ "region": "süd" }), &[("Mcp-Param-Region", "=?base64?c8O8ZA==?=")]),
    ] {
        let answer = call(arguments.clone(), more);
        assert_eq!(answer.status, 200, "{arguments} {more:?}: {}", answer.text());
    }
    for (arguments, more) in [
        (region.clone(), &[][..]),
        (region.clone(), &[("Mcp-Param-Region", "us")]),
        (region.clone(), &[("Mcp-Param-Region", "EU")]),
        (region.clone(), &[("Mcp-Param-Region", "eu"), ("MCP-PARAM-REGION", "eu")]),
        (region, &[("Mcp-Param-Region", "=?base64?!?=")]),
        (json!({}), &[("Mcp-Param-Region", "eu")]),
        (json!({ "count": 42 }), &[("Mcp-Param-Count", "43")]),
        (json!({ "dry": true }), &[("Mcp-Param-Dry-Run", "True")]),
    ] {
        refused(&call(arguments, more), 400, -32020);
    }
    // There are no such headers for who came before.
    client.in_session(NEWEST).called("find", json!({ "region": "eu" }));
}

#[test]
fn requests_are_recorded_counted_and_told_apart_as_others_are() {
    let service = pets();
    let server = Setup::new()
        .set("runtime.allowed_origins", "[\"https://app.example\"]")
        .api(&service.base(), &[PET])
        .start();
    let client = Client::new(&server, "demo/assistant");
    let call = modern(1, "tools/call", json!({ "name": "pet" }));
    let request = with(&client, &call, &headers(&call))
        .header("X-Correlation-Id", "mine")
        .header("Origin", "https://app.example");
    let answer = client.send(&request).expect(200);
    assert_eq!(answer.header("X-External-Correlation-Id"), Some("mine"));
    assert_eq!(answer.header("Access-Control-Allow-Origin"), Some("https://app.example"));
    client.send(&with(&client, &call, &headers(&call)[..1])).expect(400);
    ask(&client, "server/discover", json!({}));
    let mut calls = Vec::new();
    eventually("both calls are recorded", || {
        calls = server.records();
        calls.retain(|record| record["method"] == "tools/call");
        calls.len() == 2
    });
    for call in &calls {
        assert_eq!((&call["revision"], call.get("session")), (&json!(MODERN), None), "{call}");
    }
    // Connections are on different cores, which write their records in no order.
    let refused = calls.iter().filter(|call| call["reason"] == "header_mismatch").count();
    assert_eq!(refused, 1, "{calls:?}");
    let page = server.admin("GET", "/metrics", None).expect(200).text();
    assert!(page.contains("method=\"server/discover\""), "{page}");

    let preflight = client
        .request("OPTIONS")
        .header("Origin", "https://app.example")
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "mcp-param-region, x-evil, mcp-param-a b");
    let answer = client.send(&preflight).expect(204);
    let allowed = answer.header("Access-Control-Allow-Headers").unwrap();
    for name in ["Mcp-Method", "Mcp-Name", "mcp-param-region"] {
        assert!(allowed.contains(name), "{allowed}");
    }
    assert!(!allowed.contains("x-evil") && !allowed.contains("mcp-param-a"), "{allowed}");
}

#[test]
fn pages_and_cut_results_end_as_whole_ones_do() {
    let service = Service::start(|_| {
        let items: Vec<String> = (0..200).map(|index| format!("\"item {index}\"")).collect();
        Plan::Answer(json_answer(&format!("[{}]", items.join(","))))
    });
    let cut = ("cut", "GET", "/cut", "budget = { rows = 3 }");
    let server =
        Setup::new().set("runtime.mcp.page_size", 2).api(&service.base(), &[PET, cut]).start();
    let client = Client::new(&server, "demo/assistant");
    let page = ask(&client, "tools/list", json!({}));
    assert_eq!(page["tools"].as_array().unwrap().len(), 2);
    assert_eq!((&page["resultType"], &page["ttlMs"]), (&json!("complete"), &json!(60_000)));
    let rest = ask(&client, "tools/list", json!({ "cursor": page["nextCursor"] }));
    assert_eq!(rest["cacheScope"], page["cacheScope"]);

    let called = ask(&client, "tools/call", json!({ "name": "cut" }));
    let uri = called["_meta"]["io.ringway/rest"]["uri"].as_str().unwrap().to_owned();
    assert_eq!(called["_meta"][format!("{META}serverInfo")]["name"], "ringway");
    let read = ask(&client, "resources/read", json!({ "uri": uri }));
    // What is read once is not kept by anybody.
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(read["_meta"][format!("{META}serverInfo")]["name"], "ringway");
    assert!(read["_meta"]["io.ringway/rest"].is_object(), "{read}");
}

#[test]
fn the_server_names_the_revisions_of_each_transport() {
    let server = Setup::new().start();
    let client = Client::keyless(&server, "demo/public");
    let told = client.send(&Request::new("GET", "/")).expect(200).json();
    let versions = |place: &str| told.pointer(place).cloned();
    let streamable = json!([MODERN, "2025-11-25", "2025-06-18", "2025-03-26"]);
    assert_eq!(versions("/transports/0/protocolVersions"), Some(streamable), "{told}");
    assert_eq!(versions("/transports/1/protocolVersions"), Some(json!(["2024-11-05"])), "{told}");
}
