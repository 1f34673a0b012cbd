//! The dispatcher as a client of 2026-07-28 sees it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::catalog::{View, fixture};
use crate::rpc::{self, Incoming, ResultBody, RpcError};

const CATALOG: &str = r#"
[[tenant]]
id = "acme"

[[client_application]]
tenant = "acme"
id = "desk"
instructions = "Say \"please\"."

[[client_application]]
tenant = "acme"
id = "shop"
open = true

[[toolset]]
tenant = "acme"
id = "own"
kind = "builtin"
system_prompt = "Be kind."

[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "own"
"#;

fn view(client_application: &str) -> Arc<View> {
    fixture::view_of(client_application, CATALOG)
}

fn server(tells_changes: bool) -> ServerInfo {
    ServerInfo::new("ringway", "Ringway", "1.2.3", tells_changes, 60_000)
}

fn step(server: &ServerInfo, revision: Revision, method: &str, params: &Value) -> Step<'static> {
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let Ok(Incoming::Single(message)) = rpc::parse(text.leak().as_bytes()) else { panic!() };
    let view = view("desk");
    let context =
        DispatchContext { view: &view, revision, in_session: false, page_size: 0, server };
    dispatch(&context, &message)
}

fn ask(method: &str, params: &Value) -> Result<Value, RpcError> {
    match step(&server(true), Revision::V20260728, method, params) {
        Step::Reply(body) => Ok(serde_json::from_slice(&body.as_bytes()).unwrap()),
        Step::Error(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_era_has_its_own_methods() {
    for (method, is_modern) in [
        ("initialize", false),
        ("ping", false),
        ("server/discover", true),
        ("subscriptions/listen", true),
        ("completion/complete", true),
    ] {
        for revision in Revision::ALL {
            let step = step(&server(true), revision, method, &json!({}));
            let is_unknown = matches!(&step, Step::Error(error) if error.code == -32601);
            // Streams are opened before anything is dispatched.
            let expected = is_modern != revision.is_modern() || method == "subscriptions/listen";
            assert_eq!(is_unknown, expected, "{method} {revision}: {step:?}");
        }
    }
    for method in ["logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/get"]
    {
        assert_eq!(ask(method, &json!({})).unwrap_err().code, -32601, "{method}");
    }
}

#[test]
fn a_server_says_what_it_offers() {
    let changes = json!({"listChanged": true});
    let expected = json!({
        "supportedVersions":
            ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
        "capabilities":
            {"tools": changes, "resources": changes, "prompts": changes, "completions": {}},
        "instructions": view("desk").instructions.as_deref().unwrap(),
    });
    assert_eq!(ask("server/discover", &json!({})), Ok(expected));
    let untold = step(&server(false), Revision::V20260728, "server/discover", &json!({}));
    let Step::Reply(body) = untold else { panic!("{untold:?}") };
    let untold: Value = serde_json::from_slice(&body.as_bytes()).unwrap();
    let expected = json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}});
    assert_eq!(untold["capabilities"], expected);
}

#[test]
fn names_of_tools_are_completed_and_nothing_else_has_anything_to_complete() {
    let complete = |reference: Value, name: &str, value: &str| {
        let argument = json!({"name": name, "value": value});
        ask("completion/complete", &json!({"ref": reference, "argument": argument}))
            .map(|result| result["completion"].clone())
    };
    let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    let schema = || template("runtime://tools/{name}/schema");
    let lists = json!({"values": ["list_sessions", "list_tools"], "total": 2, "hasMore": false});
    assert_eq!(complete(schema(), "name", "list_"), Ok(lists));
    let all = complete(schema(), "name", "").unwrap();
    assert_eq!((&all["total"], all["values"].as_array().unwrap().len()), (&json!(3), 3));
    let nothing = json!({"values": [], "total": 0, "hasMore": false});
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    for (reference, name, value) in [
        (schema(), "name", "x"),
        (schema(), "name", "runtime_statusx"),
        (schema(), "other", ""),
        (template("runtime://results/{id}"), "id", ""),
        (template("runtime://toolsets/own/system-prompt"), "any", ""),
        (prompt("own"), "any", ""),
    ] {
        assert_eq!(complete(reference.clone(), name, value), Ok(nothing.clone()), "{reference}");
    }
    for reference in [prompt("none"), json!({"type": "x"}), json!({}), json!(7)] {
        assert_eq!(complete(reference, "a", "").unwrap_err().code, -32602);
    }
    assert_eq!(complete(template("a:b"), "a", "").unwrap_err().code, -32002);
    let error = ask("completion/complete", &json!({"ref": prompt("own")})).unwrap_err();
    assert_eq!(error.code, -32602);
}

#[test]
fn results_and_errors_get_the_form_of_the_revision() {
    let server = server(true);
    let body = || ResultBody::Owned(b"{\"content\":[]}".to_vec());
    let parsed = |body: ResultBody| -> Value { serde_json::from_slice(&body.as_bytes()).unwrap() };
    for revision in Revision::ALL {
        let answer = server.answer(Ok(body()), None, Caching::Private, revision).unwrap();
        let error = server.answer(Err(unknown_resource("a")), None, Caching::Private, revision);
        if revision.is_modern() {
            let info = json!({"name": "ringway", "title": "Ringway", "version": "1.2.3"});
            let expected = json!({
                "content": [], "resultType": "complete", "ttlMs": 60_000, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": info},
            });
            assert_eq!(parsed(answer), expected);
            assert_eq!(error.unwrap_err().code, -32602);
        } else {
            assert_eq!(answer, body());
            assert_eq!(error.unwrap_err().code, -32002);
        }
    }
}

#[test]
fn structured_content_is_what_the_tool_promised() {
    let outcome = |json: &str| ToolOutcome::Success {
        structured_json: Some(json.as_bytes().to_vec()),
        text: None,
    };
    for (json, owes_object, expected) in [
        ("[1]", false, json!([1])),
        ("7", false, json!(7)),
        ("{\"a\":1}", false, json!({"a": 1})),
        ("[1]", true, json!({"result": [1]})),
        ("{\"a\":1}", true, json!({"a": 1})),
    ] {
        let newest = Revision::V20260728;
        let body = tool_result(&outcome(json), &Supplement::NONE, newest, owes_object).unwrap();
        let body: Value = serde_json::from_slice(&body.as_bytes()).unwrap();
        assert_eq!(body["structuredContent"], expected, "{json}");
        assert_eq!(body["content"][0]["text"], json);
    }
    let before = tool_result(&outcome("[1]"), &Supplement::NONE, Revision::V20251125, false);
    let before: Value = serde_json::from_slice(&before.unwrap().as_bytes()).unwrap();
    assert_eq!(before["structuredContent"], json!({"result": [1]}));
}
