//! What servers answer to the first request, and what is made of it.

use serde_json::json;

use super::super::api::{answer, json_answer};
use super::super::support::on_a_core;
use super::script::{Server, begin, desk};
use crate::catalog::Upstream;

/// Everything that was seen of servers of the era before.
#[test]
fn any_refusal_of_the_first_request_leads_to_initialize() {
    let error = |code: i32, id: &str| {
        format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{code},"message":"no"}}}}"#)
    };
    let refusals = [
        answer("400 Bad Request", "", b""),
        answer("400 Bad Request", "", b"No valid session"),
        json_answer("400 Bad Request", &error(-32000, "\"id\":null,")),
        json_answer("400 Bad Request", &error(-32000, "")),
        json_answer(
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}"#,
        ),
        answer("404 Not Found", "", b""),
        json_answer("404 Not Found", &error(-32601, "\"id\":0,")),
        json_answer("200 OK", &error(-32601, "\"id\":0,")),
        answer("500 Internal Server Error", "", b""),
        answer("401 Unauthorized", "", b""),
        answer("403 Forbidden", "", b""),
        answer("406 Not Acceptable", "", b""),
        answer("202 Accepted", "", b""),
        String::new(),
    ];
    for refusal in refusals {
        let shown = refusal.clone();
        let server = Server::start(move |call, talk| match call.method() {
            // It hangs up on what it does not know.
            "server/discover" if refusal.is_empty() => false,
            "server/discover" => talk.say(&refusal),
            _ => {
                begin(call, talk, "2025-06-18", "s") || talk.say(call.result(&json!({"ok": true})))
            }
        });
        let upstream = server.upstream();
        on_a_core(async {
            let desk = desk();
            assert_eq!(desk.call(&upstream).await, r#"{"ok":true}"#, "{shown}");
        });
    }
}

#[test]
fn what_was_found_is_remembered_and_forgotten_when_it_changes() {
    let is_new = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&is_new);
    let server = Server::start(move |call, talk| {
        if !flag.load(std::sync::atomic::Ordering::SeqCst) {
            if call.method() == "tools/call" && call.header("mcp-session-id").is_none() {
                return talk.say(call.error("400 Bad Request", -32000));
            }
            return begin(call, talk, "2025-11-25", "s") || talk.say(call.result(&json!({"e": 1})));
        }
        if call.header("mcp-protocol-version") != Some("2026-07-28") {
            let error = json!({"code": -32022, "message": "no",
                "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"}});
            let body = json!({"jsonrpc": "2.0", "id": call.id(), "error": error});
            return talk.say(json_answer("400 Bad Request", &body.to_string()));
        }
        talk.say(call.result(&json!({"resultType": "complete", "e": 2})))
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        assert_eq!(desk.call(&upstream).await, r#"{"e":1}"#);
        desk.upstreams.end_session(super::script::key(7)).await;
        server.calls();
        assert_eq!(desk.call(&upstream).await, r#"{"e":1}"#);
        assert_eq!(server.calls()[0].method(), "initialize", "not asked again what it is");
        desk.upstreams.end_session(super::script::key(7)).await;
        is_new.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(desk.call(&upstream).await.contains("\"e\":2"));
        // And back, without a word about versions.
        is_new.store(false, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(desk.call(&upstream).await, r#"{"e":1}"#);
    });
}

#[test]
fn where_there_is_no_server_that_is_said() {
    let nothing = Server::start(|_, talk| talk.say(answer("404 Not Found", "", b"<html>")));
    let upstream = nothing.upstream();
    on_a_core(async {
        let text = desk().call(&upstream).await;
        assert!(text.contains("answered with HTTP 404"), "{text}");
    });
    let other = Server::legacy("1999-01-01", |_, _| false);
    let upstream = other.upstream();
    on_a_core(async {
        let text = desk().call(&upstream).await;
        assert!(text.contains("none of the revisions"), "{text}");
    });
    let odd = Upstream { revision: Some("yesterday".to_owned()), ..Upstream::default() };
    let upstream = other.upstream_with("", odd);
    on_a_core(async {
        let text = desk().call(&upstream).await;
        assert!(text.contains("check `upstream.revision`"), "{text}");
    });
}

#[test]
fn all_that_is_offered_is_discovered() {
    let server = Server::legacy("2025-11-25", |call, talk| {
        let cursor = call.body["params"]["cursor"].as_str();
        let result = match (call.method(), cursor) {
            ("tools/list", None) => {
                json!({"tools": [{"name": "a", "inputSchema": {}}], "nextCursor": ""})
            }
            ("tools/list", Some("")) => {
                json!({"tools": [{"name": "b", "inputSchema": {}}, {"name": ""}]})
            }
            // For ever.
            ("prompts/list", None) => json!({"prompts": [{"name": "p"}], "nextCursor": "x"}),
            ("prompts/list", _) => json!({"prompts": [], "nextCursor": "x"}),
            ("resources/list", _) => json!({"resources": [{"uri": "u:1", "name": "n"}]}),
            _ => return talk.say(call.error("200 OK", -32601)),
        };
        talk.say(call.result(&result))
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let found = desk.upstreams.discover(&upstream).await.unwrap();
        let names: Vec<&str> = found.definitions.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["a", "b", "p", "u:1"]);
        assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
        assert_eq!((&*found.server_name, &*found.server_version), ("l", "2"));
        assert_eq!(found.instructions.as_deref(), Some("Read me"));
        assert!(found.completes && found.subscribes && !found.tools_list_changed);
        assert_eq!(desk.upstreams.count(), 1);
    });
}

#[test]
fn a_modern_server_is_discovered_anew_each_time() {
    let server = Server::modern(|call, talk| match call.method() {
        "tools/list" => talk.say(call.result(&json!({"resultType": "complete", "tools": [
            {"name": "a", "inputSchema": {}},
            {"name": "bad", "inputSchema": {"properties": {"x": {"x-mcp-header": "A"}}}}]}))),
        _ => talk.say(call.result(&json!({"resources": [], "resourceTemplates": []}))),
    });
    let upstream = server.upstream();
    on_a_core(async {
        let desk = desk();
        let found = desk.upstreams.discover(&upstream).await.unwrap();
        assert_eq!(found.definitions.len(), 1);
        assert_eq!(found.era, crate::catalog::UpstreamEra::Modern);
        assert!(found.tools_list_changed && found.notes[0].contains("x-mcp-header"));
        assert_eq!(&*found.server_name, "m");
    });
}
