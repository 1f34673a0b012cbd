//! REST tools: what reaches the API, and what its answers become.

use std::io::Write;

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Plan, Request, Service, Setup, answer, call, json_answer};

const HOLD: (&str, &str, &str, &str) = ("hold", "GET", "/hold", "");
const EVERYWHERE: (&str, &str, &str, &str) = (
    "everywhere",
    "PUT",
    "/shops/{shop}/items",
    r#"fields = [
    { source_field_name = "shop", location = "path", type = "string" },
    { source_field_name = "filter[state]", location = "query", type = "string" },
    { source_field_name = "tag", exposed_field_name = "tags", location = "query", type = "array" },
    { source_field_name = "X-Label", exposed_field_name = "label", location = "header" },
    { source_field_name = "visitor", location = "cookie", type = "string" },
    { source_field_name = "item.price", location = "body", type = "number", required = true },
    { source_field_name = "item.parts[*].sku", exposed_field_name = "number", location = "body" },
]"#,
);

fn open(server: &crate::harness::Ringway) -> Client {
    Client::keyless(server, "demo/public")
}

/// The one text of a tool's result that is an error.
fn error_text(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn arguments_are_placed_where_the_rules_say() {
    let service = Service::echo();
    let server = Setup::new().api(&format!("{}/v1", service.base()), &[EVERYWHERE]).start();
    let given = json!({
        "shop": "a/b ü?", "filter_state": "new & old", "tags": ["x", "y z"], "label": "top",
        "visitor": "v1", "item": { "price": 12.50, "parts": [{ "number": "1" }, { "number": "2" }] },
    });
    let result = open(&server).called("everywhere", given);
    assert_ne!(result["isError"], true, "{result}");
    let asked = service.asked();
    assert_eq!(asked.method, "PUT");
    assert_eq!(
        asked.target,
        "/v1/shops/a%2Fb%20%C3%BC%3F/items?filter%5Bstate%5D=new%20%26%20old&tag=x&tag=y%20z"
    );
    assert_eq!(asked.header("X-Label"), Some("top"));
    assert_eq!(asked.header("Cookie"), Some("visitor=v1"));
    assert_eq!(asked.header("Content-Type"), Some("application/json"));
    assert_eq!(asked.header("Host"), Some(&*format!("127.0.0.1:{}", service.port())));
    let parts = json!([{ "sku": "1" }, { "sku": "2" }]);
    assert_eq!(asked.json(), json!({ "item": { "price": 12.5, "parts": parts } }));
    assert!(asked.header("Authorization").is_none() && asked.header("Mcp-Session-Id").is_none());
}

#[test]
fn no_argument_breaks_out_of_its_place() {
    let service = Service::echo();
    let server = Setup::new().api(&service.base(), &[EVERYWHERE]).start();
    let client = open(&server).in_session(NEWEST);
    for (field, value) in [
        ("label", "x\r\nX-Evil: 1"),
        ("visitor", "v; admin=1"),
        ("shop", ".."),
        ("shop", "."),
        ("shop", ""),
    ] {
        let mut given = json!({ "shop": "s", "item": { "price": 1 } });
        given[field] = json!(value);
        let result = client.called("everywhere", given);
        if result["isError"] == true {
            assert!(error_text(&result).contains(field), "{value:?}: {result}");
            assert!(service.is_quiet(), "{value:?} was sent");
        } else {
            let asked = service.asked();
            assert!(asked.header("X-Evil").is_none(), "{value:?}: {asked:?}");
            assert!(!asked.header("Cookie").unwrap_or("").contains("; admin"), "{asked:?}");
            assert!(asked.target.starts_with("/shops/"), "{value:?}: {asked:?}");
        }
    }
}

#[test]
fn invalid_arguments_are_named_and_nothing_is_sent() {
    let service = Service::echo();
    let server = Setup::new().api(&service.base(), &[EVERYWHERE]).start();
    let client = open(&server);
    let table = [
        (json!({ "shop": "s" }), "item"),
        (json!({ "shop": "s", "item": {} }), "price"),
        (json!({ "item": { "price": 1 } }), "shop"),
        (json!({ "shop": "s", "item": { "price": "much" } }), "price"),
        (json!({ "shop": "s", "item": { "price": 1 }, "tags": [1] }), "tags"),
        (json!({ "shop": "s", "item": { "price": 1, "parts": [{ "number": 1 }] } }), "number"),
    ];
    for (given, field) in &table {
        for revision in ["2025-03-26", "2025-06-18"] {
            let answer = client.in_session(revision).post(&call(1, "everywhere", given.clone()));
            let error = answer.expect(200).json()["error"].clone();
            assert_eq!(error["code"], -32602, "{revision}: {error}");
            assert!(error["message"].as_str().unwrap().contains(field), "{revision}: {error}");
        }
        let answer = client.in_session(NEWEST).post(&call(1, "everywhere", given.clone()));
        assert!(error_text(&answer.result()).contains(field), "{field}");
    }
    assert!(service.is_quiet(), "a call with invalid arguments was sent");
}

#[test]
fn a_client_without_a_session_takes_its_call_with_it() {
    let service = Service::holding();
    let server = Setup::new().api(&service.base(), &[HOLD]).start();
    let client = open(&server);
    // As an event stream, and as JSON that is not there yet.
    let stream = client.post_stream(&call(1, "hold", json!({})));
    assert_eq!(service.asked().target, "/hold");
    drop(stream.into_wire());
    service.closed();
    let mut wire = client.connect();
    let json_only = Request::new("POST", &client.path).header("Accept", "application/json");
    wire.send(&json_only.json(&call(2, "hold", json!({}))));
    service.asked();
    drop(wire);
    service.closed();
    // And the server goes on.
    service.release();
    assert_ne!(client.called("hold", json!({}))["isError"], true);
}

#[test]
fn a_call_in_a_session_goes_on_without_its_client() {
    let service = Service::holding();
    let server = Setup::new().api(&service.base(), &[HOLD]).start();
    let client = open(&server).in_session(NEWEST);
    let mut posted = client.post_stream(&call(1, "hold", json!({})));
    let event = posted.primed();
    service.asked();
    drop(posted);
    let mut again = client.stream(Some(&event)).unwrap();
    assert!(service.is_quiet(), "the API's connection was closed");
    service.release();
    let rest = again.rest();
    assert_eq!(rest[0]["result"]["structuredContent"]["target"], "/hold");
}

#[test]
fn an_open_call_without_a_token_hears_no_progress_and_others_are_served() {
    let service = Service::holding();
    let quick = ("quick", "GET", "/quick", "");
    let server = Setup::new().api(&service.base(), &[HOLD, quick]).start();
    let client = open(&server).in_session(NEWEST);
    let mut posted = client.post_stream(&call(1, "hold", json!({})));
    posted.primed();
    // The id is taken until it is answered.
    let duplicate = client.post(&call(1, "hold", json!({})));
    assert!(duplicate.text().contains("still running"), "{}", duplicate.text());
    for number in 2..20 {
        let result = client.reply(&call(number, "quick", json!({})))["result"].clone();
        assert_eq!(result["structuredContent"]["target"], "/quick");
    }
    service.release();
    assert_eq!(posted.rest().len(), 1);
}

#[test]
fn time_limits_are_told_by_what_was_waited_for() {
    let service = Service::start(|asked| match &*asked.target {
        "/stalls" => {
            let mut half = json_answer("{\"a\":1}");
            half.truncate(half.len() - 2);
            Plan::Answer(half)
        }
        _ => Plan::Silence,
    });
    let tools = [
        ("silent", "GET", "/silent", ""),
        ("stalls", "GET", "/stalls", ""),
        ("limited", "GET", "/limited", "total_timeout_ms = 200"),
    ];
    let connection = format!(
        "base_url = \"{}\"\nheaders_timeout_ms = 300\ntotal_timeout_ms = 600",
        service.base()
    );
    let server = Setup::new().api_with(&connection, &tools).start();
    let client = open(&server);
    for (tool, part) in [
        ("silent", "begin to answer within 300 ms"),
        ("stalls", "finish its answer within 600 ms"),
        ("limited", "within 200 ms"),
    ] {
        let answer =
            client.send(
                &Request::new("POST", &client.path)
                    .header("Accept", "application/json")
                    .json(&call(1, tool, json!({}))),
            );
        let result = answer.result();
        assert!(error_text(&result).contains(part), "{tool}: {result}");
        service.closed();
    }
}

#[test]
fn redirects_are_told_and_not_followed() {
    let other = Service::echo();
    let target = format!("{}/elsewhere?token=s3cr3t", other.base());
    let service = Service::start(move |asked| {
        let location = if asked.target == "/moved" { &*target } else { "/found?token=s3cr3t" };
        Plan::Answer(answer("302 Found", &[("Location", location)], b""))
    });
    let tools = [("moved", "GET", "/moved", ""), ("within", "GET", "/within", "")];
    let server = Setup::new().api(&service.base(), &tools).start();
    let client = open(&server);
    let result = client.called("moved", json!({}));
    let text = error_text(&result);
    assert!(text.contains("302") && text.contains("not followed"), "{text}");
    // Where things are inside is nobody's business.
    assert!(!text.contains("s3cr3t") && !text.contains("127.0.0.1"), "{text}");
    let result = client.called("within", json!({}));
    assert!(error_text(&result).contains("not followed"), "{result}");
    assert!(other.is_quiet(), "the redirect was followed");
}

#[test]
fn blocked_networks_are_never_reached() {
    let service = Service::echo();
    let tools = [("find", "GET", "/find", "")];
    for host in ["127.0.0.1", "localhost"] {
        let server = Setup::new()
            .set("downstream.blocked_networks", "127.0.0.0/8,::1/128")
            .api(&format!("http://{host}:{}", service.port()), &tools)
            .start();
        let result = open(&server).called("find", json!({}));
        let text = error_text(&result);
        assert!(text.contains("not allowed by the operator's egress policy"), "{text}");
        assert!(!text.contains("127.0.0.1"), "an address is told: {text}");
    }
    assert!(service.is_quiet(), "a blocked address was asked");
}

#[test]
fn bombs_and_floods_end_as_errors() {
    let service = Service::start(|asked| {
        Plan::Answer(match &*asked.target {
            "/bomb" => {
                let mut gzip =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
                for _ in 0..64 {
                    gzip.write_all(&vec![b' '; 1 << 20]).unwrap();
                }
                let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
                answer("200 OK", &headers, &gzip.finish().unwrap())
            }
            "/declared" => b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_vec(),
            "/huge" => answer("200 OK", &[], &vec![b'x'; 5 << 20]),
            "/head" => {
                let big = "x".repeat(100_000);
                answer("200 OK", &[("X-Big", &big)], b"")
            }
            _ => b"nonsense\r\n\r\n".to_vec(),
        })
    });
    let tools = ["bomb", "declared", "huge", "head", "nonsense"];
    let paths: Vec<String> = tools.iter().map(|tool| format!("/{tool}")).collect();
    let declared: Vec<_> =
        tools.iter().zip(&paths).map(|(tool, path)| (*tool, "GET", &**path, "")).collect();
    let server = Setup::new().api(&service.base(), &declared).start();
    let client = open(&server);
    for tool in tools {
        let result = client.called(tool, json!({}));
        assert!(error_text(&result).contains("\"api\""), "{tool}: {result}");
    }
    let status = server.admin("GET", "/status", None).expect(200).json();
    assert_eq!(status["panics_contained"], 0);
}

#[test]
fn what_declares_an_output_schema_always_has_structured_content() {
    let service = Service::start(|asked| {
        Plan::Answer(match &*asked.target {
            "/object" => json_answer("{\"pet_name\":\"Rex\",\"age\":3}"),
            "/list" => json_answer("[{\"pet_name\":\"Rex\"}]"),
            "/null" => json_answer("null"),
            "/text" => answer("200 OK", &[("Content-Type", "text/plain")], b"just text"),
            "/html" => answer("200 OK", &[("Content-Type", "text/html")], b"<p>page</p>"),
            "/binary" => answer("200 OK", &[("Content-Type", "image/png")], b"\x89PNG"),
            _ => answer("204 No Content", &[], b""),
        })
    });
    let rules = "response_fields = [\
        { source_field_name = \"pet_name\", exposed_field_name = \"name\" }]";
    let names = ["object", "list", "null", "text", "html", "binary", "nothing"];
    let paths: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
    let tools: Vec<_> =
        names.iter().zip(&paths).map(|(name, path)| (*name, "GET", &**path, rules)).collect();
    let server = Setup::new().api(&service.base(), &tools).start();
    let client = open(&server).in_session(NEWEST);
    for name in names {
        let result = client.called(name, json!({}));
        assert_ne!(result["isError"], true, "{name}: {result}");
        assert!(result["structuredContent"].is_object(), "{name}: {result}");
        assert!(!result["content"].as_array().unwrap().is_empty(), "{name}: {result}");
    }
    let result = client.called("object", json!({}));
    assert_eq!(result["structuredContent"], json!({"name": "Rex"}));
    let text = client.called("text", json!({}));
    assert!(!text.to_string().contains("just text"), "{text}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
    // Revisions without structured content get none.
    let older = client.in_session("2025-03-26").called("object", json!({}));
    assert!(older.get("structuredContent").is_none(), "{older}");
}

#[test]
fn failures_of_the_api_are_for_the_model_to_read() {
    let service = Service::start(|asked| {
        Plan::Answer(match &*asked.target {
            "/problem" => answer(
                "422 Unprocessable Content",
                &[("Content-Type", "application/problem+json")],
                br#"{"title":"Too late","detail":"The shop closed at 18:00."}"#,
            ),
            "/busy" => answer("503 Service Unavailable", &[("Retry-After", "7")], b""),
            "/denied" => answer("401 Unauthorized", &[], b"token t0ps3cr3t is not known"),
            _ => answer("500 Internal Server Error", &[], b"oops"),
        })
    });
    let names = ["problem", "busy", "denied", "broken"];
    let paths: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
    let tools: Vec<_> =
        names.iter().zip(&paths).map(|(name, path)| (*name, "GET", &**path, "")).collect();
    let connection = format!(
        "base_url = \"{}\"\nheaders = {{ Authorization = \"Bearer t0ps3cr3t\" }}",
        service.base()
    );
    let server = Setup::new().api_with(&connection, &tools).start();
    for (name, parts) in [
        ("problem", &["422", "Too late", "18:00"][..]),
        ("busy", &["503", "7 seconds"]),
        ("denied", &["401", "\"api\"", "refused"]),
        ("broken", &["500", "oops"]),
    ] {
        let result = open(&server).called(name, json!({}));
        let text = error_text(&result);
        for part in parts {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(!text.contains("t0ps3cr3t"), "a credential is told: {text}");
        assert_eq!(service.asked().header("Authorization"), Some("Bearer t0ps3cr3t"));
    }
}

#[test]
fn a_connection_the_api_closed_while_idle_is_not_a_failure() {
    // Closes after each answer without saying so.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut bytes = [0; 4096];
            let _ = std::io::Read::read(&mut socket, &mut bytes);
            let _ = socket.write_all(&json_answer("{\"ok\":true}"));
        }
    });
    let server =
        Setup::new().set("runtime.cores", 1).api(&base, &[("find", "GET", "/", "")]).start();
    let client = open(&server).in_session(NEWEST);
    for _ in 0..50 {
        let result = client.called("find", json!({}));
        assert_eq!(result["structuredContent"]["ok"], true, "{result}");
    }
}

#[test]
fn an_api_that_is_not_there_is_a_clear_error() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Setup::new().api(&format!("http://{gone}"), &[("find", "GET", "/", "")]).start();
    let result = open(&server).called("find", json!({}));
    assert!(error_text(&result).contains("is it running?"), "{result}");
    let server = Setup::new().api("http://nowhere.invalid", &[("find", "GET", "/", "")]).start();
    let result = open(&server).called("find", json!({}));
    assert!(error_text(&result).contains("does not resolve"), "{result}");
}

#[test]
fn a_good_answer_in_odd_json_is_text_and_a_bad_one_tells_no_address() {
    let service = Service::start(|asked| match &*asked.target {
        "/odd" => Plan::Answer(json_answer(r#"{"id":7,"id":8}"#)),
        "/deep" => Plan::Answer(json_answer(&"[".repeat(100_000))),
        "/away" => Plan::Answer(answer(
            "302 Found",
            &[("Location", "http://db.corp.internal:8080/login")],
            b"",
        )),
        _ => {
            let detail = format!("http://{}/secret failed", asked.header("Host").unwrap());
            let body = json!({ "title": "Oops", "detail": detail }).to_string();
            let kind = [("Content-Type", "application/problem+json")];
            Plan::Answer(answer("500 Internal Server Error", &kind, body.as_bytes()))
        }
    });
    let tools = [
        ("odd", "POST", "/odd", ""),
        ("deep", "GET", "/deep", ""),
        ("away", "GET", "/away", ""),
        ("failing", "GET", "/failing", ""),
    ];
    let server = Setup::new().api(&service.base(), &tools).start();
    let client = open(&server).in_session(NEWEST);
    let odd = client.called("odd", json!({}));
    assert_eq!(odd["isError"], false, "{odd}");
    let text = odd["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("HTTP 200: the call was made."), "{text}");
    assert!(text.ends_with("\n\n{\"id\":7,\"id\":8}"), "{text}");
    let deep = client.called("deep", json!({}));
    assert_eq!(deep["isError"], false);
    assert!(deep["content"][0]["text"].as_str().unwrap().contains("deeper than"));
    let away = client.called("away", json!({}));
    assert!(error_text(&away).contains("redirects to another host,"), "{away}");
    assert!(!error_text(&away).contains("corp"), "{away}");
    let failing = client.called("failing", json!({}));
    assert!(error_text(&failing).ends_with("Oops: http://[removed]/secret failed"), "{failing}");
}
