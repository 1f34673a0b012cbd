//! The dispatcher as a client sees it.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::catalog::{ToolShape, View, fixture::snapshot};
use crate::rpc::{self, Incoming, Message, Reply, ResultBody, RpcError};
use crate::sessions::ClientCapabilities;

const CATALOG: &str = r#"
[[tenant]]
id = "acme"

[[client_application]]
tenant = "acme"
id = "desk"
instructions = "Say \"please\"."

[[client_application]]
tenant = "acme"
id = "bare"

[[toolset]]
tenant = "acme"
id = "own"
kind = "builtin"

[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "own"
"#;

fn view(client_application: &str) -> Arc<View> {
    Arc::clone(snapshot(CATALOG).view("acme", client_application).unwrap())
}

struct Client {
    view: Arc<View>,
    server: ServerInfo,
    revision: Revision,
    in_session: bool,
    page_size: usize,
}

impl Client {
    fn new() -> Self {
        Self {
            view: view("desk"),
            server: ServerInfo::new("ringway", "Ringway", "1.2.3", true, 60_000),
            revision: Revision::NEWEST_WITH_SESSIONS,
            in_session: false,
            page_size: 0,
        }
    }

    fn context(&self) -> DispatchContext<'_> {
        DispatchContext {
            view: &self.view,
            revision: self.revision,
            in_session: self.in_session,
            page_size: self.page_size,
            server: &self.server,
        }
    }

    fn send<'a>(&self, text: &'a str) -> Step<'a> {
        let Incoming::Single(message) = rpc::parse(text.as_bytes()).unwrap() else {
            panic!("a batch: {text}");
        };
        dispatch(&self.context(), &message)
    }

    fn ask(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        match self.send(&request.to_string()) {
            Step::Reply(body) => Ok(serde_json::from_slice(&body.as_bytes()).unwrap()),
            Step::Initialize(initialization) => {
                Ok(serde_json::from_slice(&initialization.result.as_bytes()).unwrap())
            }
            Step::Error(error) => Err(error),
            other => panic!("{other:?}"),
        }
    }

    fn code(&self, method: &str, params: &Value) -> i32 {
        self.ask(method, params).unwrap_err().code
    }
}

#[test]
fn revisions_are_negotiated() {
    let client = Client::new();
    for (asked, expected) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let info = json!({"name": "c", "version": "1"});
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": info});
        let result = client.ask("initialize", &params).unwrap();
        let mut server = json!({"name": "ringway", "title": "Ringway", "version": "1.2.3"});
        if expected < "2025-06-18" {
            server.as_object_mut().unwrap().remove("title");
        }
        let capabilities = json!({
            "tools": {"listChanged": true},
            "resources": {"listChanged": true},
            "prompts": {"listChanged": true},
        });
        let whole = json!({
            "protocolVersion": expected,
            "capabilities": capabilities,
            "serverInfo": server,
            "instructions": "Say \"please\".",
        });
        assert_eq!(result, whole);
    }
    let bare = Client { view: view("bare"), ..Client::new() };
    let result = bare.ask("initialize", &json!({"protocolVersion": "2025-11-25"})).unwrap();
    assert_eq!(result.get("instructions"), None);
    assert_eq!(client.code("initialize", &json!({})), -32602);
    assert_eq!(client.code("initialize", &json!({"protocolVersion": 1})), -32602);
    assert_eq!(client.code("initialize", &json!(["2025-11-25"])), -32602);
    let again = Client { in_session: true, ..Client::new() };
    assert_eq!(again.code("initialize", &json!({"protocolVersion": "2025-11-25"})), -32600);
}

#[test]
fn a_client_is_remembered_as_it_introduced_itself() {
    let client = Client::new();
    let step = client.send(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{
            "protocolVersion":"2025-06-18",
            "clientInfo":{"name":"a\u00e9","version":"1.0","title":"x"},
            "capabilities":{"roots":{"listChanged":true},"sampling":{"tools":{}},
                "elicitation":{},"tasks":7,"experimental":{"x":{}}}}}"#,
    );
    let Step::Initialize(initialization) = step else { panic!("{step:?}") };
    assert_eq!(initialization.revision, Revision::V20250618);
    let info = initialization.client();
    assert_eq!((info.name, info.version), ("aé", "1.0"));
    let expected = ClientCapabilities::ROOTS
        .with(ClientCapabilities::ROOTS_LIST_CHANGED)
        .with(ClientCapabilities::SAMPLING)
        .with(ClientCapabilities::SAMPLING_TOOLS)
        .with(ClientCapabilities::ELICITATION_FORM);
    assert_eq!(initialization.capabilities, expected);

    for (revision, elicitation, form, url) in [
        ("x", r#"{"url":{}}"#, false, true),
        ("x", r#"{"url":{},"form":{}}"#, true, true),
        ("x", r#"{"other":{}}"#, true, false),
        ("2025-06-18", r#"{"url":{}}"#, true, false),
        ("2025-03-26", r#"{"form":{},"url":{}}"#, false, false),
        ("2024-11-05", "{}", false, false),
    ] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{
                "protocolVersion":"{revision}","capabilities":{{"elicitation":{elicitation}}}}}}}"#
        );
        let Step::Initialize(initialization) = client.send(&text) else { panic!() };
        let capabilities = initialization.capabilities;
        assert_eq!(capabilities.contains(ClientCapabilities::ELICITATION_FORM), form);
        assert_eq!(capabilities.contains(ClientCapabilities::ELICITATION_URL), url);
        assert_eq!(initialization.client().name, "");
    }
}

#[test]
fn simple_requests_are_answered() {
    let client = Client::new();
    for (method, params, expected) in [
        ("ping", json!({}), json!({})),
        ("ping", json!({"_meta": {"progressToken": 1}}), json!({})),
        ("resources/list", json!({}), json!({"resources": []})),
        ("resources/list", json!({"cursor": null}), json!({"resources": []})),
        ("prompts/list", json!({}), json!({"prompts": []})),
    ] {
        assert_eq!(client.ask(method, &params), Ok(expected), "{method}");
    }
    let step = client.send(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
    assert!(matches!(step, Step::Reply(ResultBody::Static(b"{}"))));
}

#[test]
fn what_is_wrong_has_its_code() {
    let client = Client::new();
    for (method, params, code) in [
        ("logging/setLevel", json!({"level": "info"}), -32601),
        ("server/discover", json!({}), -32601),
        ("completion/complete", json!({}), -32601),
        ("resources/subscribe", json!({"uri": "a"}), -32601),
        ("tools/List", json!({}), -32601),
        ("notifications/initialized", json!({}), -32601),
        ("", json!({}), -32601),
        ("tools/list", json!([]), -32602),
        ("tools/list", json!({"cursor": ""}), -32602),
        ("tools/list", json!({"cursor": 3}), -32602),
        ("tools/list", json!({"cursor": "AAAAAAAAAAAAAAAA"}), -32602),
        ("prompts/list", json!({"cursor": "x"}), -32602),
        ("resources/list", json!({"cursor": ""}), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({"name": 3}), -32602),
        ("tools/call", json!({"name": "list_tools", "arguments": []}), -32602),
        ("tools/call", json!({"name": "list_tools", "arguments": "x"}), -32602),
        ("resources/read", json!({}), -32602),
        ("prompts/get", json!({}), -32602),
        ("prompts/get", json!({"name": "x"}), -32602),
    ] {
        assert_eq!(client.code(method, &params), code, "{method} {params}");
    }
    let error = unknown_tool("nothing");
    assert!(error.message.contains("list the tools again"), "{}", error.message);
    let error = unknown_resource("a:b");
    assert_eq!(error.code, -32002);
    assert_eq!(error.data.as_deref(), Some(r#"{"uri":"a:b"}"#));
    let error = client.ask("tools/call", &json!({"name": "list_tools", "arguments": "x"}));
    assert!(error.unwrap_err().message.contains("string"));
}

#[test]
fn calls_become_invocations() {
    let client = Client::new();
    let call = |params: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let text: &'static str = text.leak();
        match client.send(text) {
            Step::Invoke(invocation) => invocation,
            other => panic!("{other:?}"),
        }
    };
    for params in [r#"{"name":"list_tools"}"#, r#"{"name":"list_tools","arguments":null}"#] {
        let invocation = call(params);
        assert_eq!(&*invocation.name, "list_tools");
        assert!(invocation.arguments.is_none() && invocation.progress_token.is_none());
    }
    let invocation = call(
        r#"{"_meta":{"progressToken":"t\u00e9"},"arguments":{"a":1.50},"name":"list\u005ftools"}"#,
    );
    assert_eq!(invocation.arguments.unwrap().text(), r#"{"a":1.50}"#);
    assert_eq!(invocation.progress_token.unwrap().text(), r#""t\u00e9""#);
    for (token, is_token) in
        [("12", true), ("-3", true), ("1.5", false), ("1e3", false), ("null", false), ("[]", false)]
    {
        let params = format!(r#"{{"name":"list_tools","_meta":{{"progressToken":{token}}}}}"#);
        assert_eq!(call(&params).progress_token.is_some(), is_token, "{token}");
    }
}

#[test]
fn notifications_and_responses_are_never_answered() {
    let client = Client::new();
    for text in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.5}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"list_tools"}}"#,
        r#"{"jsonrpc":"2.0","method":"nobody/knows"}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}"#,
    ] {
        assert!(matches!(client.send(text), Step::Accepted), "{text}");
    }
    let roots = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    assert!(matches!(client.send(roots), Step::RootsChanged));
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
    ] {
        assert!(matches!(client.send(text), Step::Answer(id, _) if id.text() == "1"), "{text}");
    }
    for id in ["7", "\"7\"", "\"a\\u0062\""] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        let Step::Cancel(cancelled) = client.send(&text) else { panic!("{text}") };
        assert_eq!(cancelled.text(), id);
    }
}

fn names(page: &Value) -> Vec<&str> {
    page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn tools_come_in_pages() {
    let all = ["list_sessions", "list_tools", "runtime_status"];
    let mut client = Client::new();
    for page_size in [0, 3, 10] {
        client.page_size = page_size;
        let page = client.ask("tools/list", &json!({})).unwrap();
        assert_eq!((names(&page), page.get("nextCursor")), (all.to_vec(), None));
    }
    for (page_size, pages) in [(1, 3), (2, 2)] {
        client.page_size = page_size;
        let (mut seen, mut count, mut params) = (Vec::new(), 0, json!({}));
        loop {
            let page = client.ask("tools/list", &params).unwrap();
            seen.extend(names(&page).into_iter().map(str::to_owned));
            count += 1;
            let Some(cursor) = page.get("nextCursor") else { break };
            params = json!({"cursor": cursor});
        }
        assert_eq!((seen, count), (all.map(str::to_owned).to_vec(), pages));
        // The last cursor is good again, also where pages have another size by now.
        assert!(client.ask("tools/list", &params).is_ok());
        client.page_size = 0;
        assert!(client.ask("tools/list", &params).is_ok());
        let cursor = params["cursor"].as_str().unwrap();
        let other = Client { view: view("bare"), page_size: 1, ..Client::new() };
        assert_eq!(other.code("tools/list", &params), -32602, "another list");
        for wrong in [format!("{cursor}A"), cursor[1..].to_owned(), cursor.to_lowercase()] {
            assert_eq!(client.code("tools/list", &json!({"cursor": wrong})), -32602);
        }
    }
}

#[test]
fn lists_have_the_form_of_the_revision() {
    for revision in Revision::ALL {
        for page_size in [0, 2] {
            let client = Client { revision, page_size, ..Client::new() };
            let page = client.ask("tools/list", &json!({})).unwrap();
            let tool = &page["tools"][0];
            assert_eq!(tool.get("annotations").is_some(), revision >= Revision::V20250326);
            assert_eq!(tool.get("outputSchema").is_some(), revision >= Revision::V20250618);
        }
    }
    let client = Client::new();
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let Step::Reply(ResultBody::Shared(bytes)) = client.send(text) else { panic!() };
    assert!(Arc::ptr_eq(&bytes, client.view.tools_list(ToolShape::V20251125)), "not a copy");
}

#[test]
fn batches_have_their_rules() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let init = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#;
    let init_note = r#"{"jsonrpc":"2.0","method":"initialize"}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let wrong = "7";
    for (entries, is_good) in [
        (vec![ping], true),
        (vec![ping, note], true),
        (vec![note, note, answer], true),
        (vec![note, wrong], true),
        (vec![init], true),
        (vec![init, init], true),
        (vec![init, ping], false),
        (vec![note, init], false),
        (vec![init, wrong], false),
        (vec![init_note], true),
        (vec![init_note, init], false),
    ] {
        let text = format!("[{}]", entries.join(","));
        let incoming = rpc::parse(text.as_bytes()).unwrap();
        assert_eq!(check_batch(&incoming, Revision::V20250326).is_ok(), is_good, "{text}");
        for revision in [Revision::V20241105, Revision::V20250618, Revision::V20251125] {
            assert_eq!(check_batch(&incoming, revision).unwrap_err().code, -32600);
        }
    }
    for text in [ping, note, init] {
        let incoming = rpc::parse(text.as_bytes()).unwrap();
        for revision in Revision::ALL {
            assert_eq!(check_batch(&incoming, revision), Ok(()));
        }
    }
    let empty = Incoming::Batch(Vec::new());
    assert_eq!(check_batch(&empty, Revision::V20250326).unwrap_err().code, -32600);
    assert_eq!(rpc::parse(b"[]").unwrap_err().code, -32600);
}

#[test]
fn notifications_are_messages() {
    for (happening, has_params) in [(Happening::Tools, false), (Happening::Updated("a:b"), true)] {
        let payload = happening.untagged();
        let Incoming::Single(Message::Notification { method, params }) =
            rpc::parse(&payload).unwrap()
        else {
            panic!()
        };
        assert_eq!((&*method, params.is_some()), (happening.method(), has_params));
    }
}

/// `cargo test --release -- --ignored --nocapture dispatch_costs`
#[test]
#[ignore = "a measurement"]
fn dispatch_costs() {
    let client = Client::new();
    let context = client.context();
    for (name, text) in [
        ("ping", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        ("tools/list", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#),
        (
            "tools/call",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_tools","arguments":{}}}"#,
        ),
        (
            "initialize",
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
        ),
    ] {
        let Incoming::Single(message) = rpc::parse(text.as_bytes()).unwrap() else { panic!() };
        let rounds = 1_000_000_u32;
        let started = Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(dispatch(&context, std::hint::black_box(&message)));
        }
        let each = started.elapsed() / rounds;
        println!("{name}: {each:?}");
    }
    let reply = Reply::new(1.into(), Ok(ResultBody::EMPTY));
    assert!(reply.len() > 0);
}
