//! What upstream servers and the runtime itself ask and tell while a request runs, in both eras.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    Client, Events, NEWEST, Request, Ringway, Service, Setup, Upstream, call, eventually,
    initialize, pause, rpc,
};
use crate::modern::{headers, modern, with};
use crate::upstream_faults::{TRUST, before, client, text, with_token};

const META: &str = "io.modelcontextprotocol/";

/// A session of a client that can be asked by a form.
fn asked(client: &Client) -> Client {
    let mut body = initialize(NEWEST);
    body["params"]["capabilities"] = json!({ "elicitation": {} });
    let answer = client.without_session().post(&body).expect(200);
    let session = answer.header("Mcp-Session-Id").unwrap().to_owned();
    Client { session: Some(session), ..client.clone() }
}

/// The next question on a stream.
fn question(stream: &mut Events) -> Value {
    let message = stream.answer();
    assert_eq!(message["method"], "elicitation/create", "{message}");
    message
}

fn answer(client: &Client, question: &Value, result: &Value) {
    let body = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    client.post(&body).expect(202);
}

/// A call of a tool by a client of the era without sessions that can be asked.
fn modern_call(tool: &str, arguments: &Value) -> Value {
    let mut body = modern(1, "tools/call", json!({ "name": tool, "arguments": arguments }));
    body["params"]["_meta"][format!("{META}clientCapabilities")] =
        json!({ "elicitation": { "form": {} } });
    body
}

/// The answer to a modern request, whichever kind it comes in.
fn ask(client: &Client, body: &Value) -> Value {
    match Events::open(client.connect(), &with(client, body, &headers(body))) {
        Ok(mut stream) => stream.answer(),
        Err(answer) => answer.json(),
    }
}

/// The same request with the answers to what it was asked.
fn again(body: &Value, asked: &Value, action: &Value) -> Value {
    let mut body = body.clone();
    let requests = asked["inputRequests"].as_object().unwrap();
    let responses = requests.keys().map(|key| (key.clone(), action.clone()));
    body["params"]["inputResponses"] = Value::Object(responses.collect());
    body["params"]["requestState"] = asked["requestState"].clone();
    body
}

fn input_required(client: &Client, body: &Value) -> Value {
    let answer = ask(client, body);
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"].clone()
}

fn ada() -> Value {
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

#[test]
fn a_session_is_asked_on_its_stream_and_answers_on_any_connection() {
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "");
        let client = asked(&client(&server));
        // Connections fall to the cores in turn.
        for round in 0..4 {
            let mut stream = client.post_stream(&call(round + 1, "ask", json!({})));
            let question = question(&mut stream);
            assert_eq!(question["params"]["message"], "What is your name?");
            answer(&client, &question, &ada());
            let last = stream.answer();
            assert_eq!(text(&last["result"]), r#"accept {"name":"Ada"}"#, "{revision}");
            // Answering once more changes nothing.
            answer(&client, &question, &json!({ "action": "decline" }));
        }
        let mut stream = client.post_stream(&call(9, "ask", json!({})));
        let question = question(&mut stream);
        answer(&client, &question, &json!({ "action": "decline" }));
        assert_eq!(text(&stream.answer()["result"]), "decline {}");
        // Another session is not asked, and cannot answer.
        let plain = client.in_session(NEWEST).called("ask", json!({}));
        assert_eq!(plain["isError"], true, "{plain}");
    }
}

#[test]
fn a_modern_client_is_asked_by_the_result() {
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "");
        let client = Client::new(&server, "demo/assistant").shown("echo");
        for _ in 0..3 {
            let body = modern_call("ask", &json!({}));
            let asked = input_required(&client, &body);
            let answer = ask(&client, &again(&body, &asked, &ada()));
            assert_eq!(text(&answer["result"]), r#"accept {"name":"Ada"}"#, "{revision}: {answer}");
            assert_eq!(answer["result"]["resultType"], "complete");
        }
        let body = modern_call("ask_twice", &json!({}));
        let first = input_required(&client, &body);
        let second = again(&body, &first, &ada());
        let asked = input_required(&client, &second);
        let said = asked.to_string();
        assert!(said.contains("Which colour, Ada?"), "{asked}");
        let blue = json!({ "action": "accept", "content": { "colour": "blue" } });
        let answer = ask(&client, &again(&body, &asked, &blue));
        assert_eq!(
            text(&answer["result"]),
            r#"accept {"name":"Ada"} accept {"colour":"blue"}"#,
            "{revision}"
        );
    }
}

#[test]
fn a_server_that_asks_without_end_is_refused_and_its_call_goes_on() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let upstream = Upstream::start(revision, &[]);
        let server = Setup::new()
            .set("runtime.mcp.asking.questions_per_call_max", 3)
            .mcp("up", &upstream.url(), TRUST, "")
            .start();
        let endless = json!({ "times": 1000 });
        let is_refused = |result: &Value| {
            let said = text(result);
            assert!(said.starts_with("after 3: too many questions"), "{revision}: {result}");
            assert!(said.contains("questions_per_call_max"), "{said}");
        };
        let session = asked(&client(&server));
        // Each call has its own.
        for id in 1..=2 {
            let mut stream = session.post_stream(&call(id, "ask_often", endless.clone()));
            for _ in 0..3 {
                answer(&session, &question(&mut stream), &ada());
            }
            is_refused(&stream.answer()["result"]);
        }
        let mut stream = session.post_stream(&call(3, "ask_often", json!({ "times": 3 })));
        for _ in 0..3 {
            answer(&session, &question(&mut stream), &ada());
        }
        assert_eq!(text(&stream.answer()["result"]), "asked 3 times");
        let client = Client::new(&server, "demo/assistant");
        let body = modern_call("ask_often", &endless);
        let mut next = body.clone();
        for _ in 0..3 {
            next = again(&body, &input_required(&client, &next), &ada());
        }
        is_refused(&ask(&client, &next)["result"]);
    }
}

#[test]
fn a_state_is_good_for_one_caller_one_request_and_some_time() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = Setup::new()
            .set("runtime.mcp.asking.answer_seconds", 2)
            .mcp("up", &upstream.url(), TRUST, "")
            .start();
        let client = Client::new(&server, "demo/assistant").shown("echo");
        let body = modern_call("ask", &json!({}));
        let asked = input_required(&client, &body);
        let good = again(&body, &asked, &ada());
        let refused = |client: &Client, body: &Value, what: &str| {
            let answer = ask(client, body);
            assert_eq!(answer["error"]["code"], -32602, "{revision}, {what}: {answer}");
        };
        let mut tampered = good.clone();
        let state = asked["requestState"].as_str().unwrap();
        let middle = state.len() / 2;
        let other = if &state[middle..=middle] == "A" { "B" } else { "A" };
        let changed = format!("{}{other}{}", &state[..middle], &state[middle + 1..]);
        tampered["params"]["requestState"] = json!(changed);
        refused(&client, &tampered, "tampered");
        let foreign = Client::new(&server, "demo/assistant");
        refused(&foreign, &good, "another caller's");
        let mut another = good.clone();
        another["params"]["arguments"] = json!({ "question": "Who?" });
        refused(&client, &another, "another request's");
        let answer = ask(&client, &good);
        assert_eq!(text(&answer["result"]), r#"accept {"name":"Ada"}"#, "{answer}");

        let asked = input_required(&client, &body);
        pause(Duration::from_millis(2500));
        refused(&client, &again(&body, &asked, &ada()), "expired");
    }
}

#[test]
fn the_time_a_user_takes_is_not_the_tools() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "total_timeout_ms = 1000\nheaders_timeout_ms = 700");
        let client = asked(&client(&server));
        let mut stream = client.post_stream(&call(1, "ask", json!({})));
        let question = question(&mut stream);
        let body = modern_call("ask", &json!({}));
        let asked = input_required(&client, &body);
        pause(Duration::from_millis(1800));
        answer(&client, &question, &ada());
        assert_eq!(text(&stream.answer()["result"]), r#"accept {"name":"Ada"}"#, "{revision}");
        let answer = ask(&client, &again(&body, &asked, &ada()));
        assert_eq!(text(&answer["result"]), r#"accept {"name":"Ada"}"#, "{revision}: {answer}");
        let late = client.called("wait", json!({ "seconds": 5 }));
        assert_eq!(late["isError"], true, "{late}");
    }
}

const WIPE: (&str, &str, &str, &str) =
    ("wipe", "DELETE", "/wipe", "side_effect = \"destructive\"\nconfirm = \"destructive\"");
const CONFIRMED: &str = r#"
[[tool]]
tenant = "demo"
toolset = "up"
name = "echo"
side_effect = "destructive"
confirm = "destructive"
"#;

/// A mapped tool and one of an upstream, both to be confirmed, and how often they ran.
fn confirming() -> (Service, Upstream, Ringway) {
    let (service, upstream) = (Service::echo(), Upstream::start("2025-11-25", &[]));
    let server = Setup::new()
        .api(&service.base(), &[WIPE])
        .mcp("up", &upstream.url(), TRUST, "")
        .catalog(CONFIRMED)
        .start();
    (service, upstream, server)
}

#[test]
fn what_destroys_is_confirmed_by_the_user() {
    let (service, upstream, server) = confirming();
    let client = asked(&client(&server));
    let calls = [("wipe", json!({})), ("echo", json!({ "text": "hello" }))];
    let accept = json!({ "action": "accept", "content": {} });
    let decline = json!({ "action": "decline" });
    let cancelled = json!({ "action": "cancel" });
    for (tool, arguments) in &calls {
        for no in [&decline, &cancelled] {
            let mut stream = client.post_stream(&call(1, tool, arguments.clone()));
            let asked = question(&mut stream);
            let message = asked["params"]["message"].as_str().unwrap();
            assert!(message.contains(tool) && message.contains("destructive"), "{message}");
            assert!(message.ends_with(&format!("arguments: {arguments}")), "{message}");
            answer(&client, &asked, no);
            let result = &stream.answer()["result"];
            assert!(text(result).contains("Nothing was done"), "{result}");

            let body = modern_call(tool, arguments);
            let asked = input_required(&client, &body);
            let result = &ask(&client, &again(&body, &asked, no))["result"];
            assert!(text(result).contains("Nothing was done"), "{result}");
        }
        // Who cannot be asked is refused, whichever way it comes.
        let result = client.in_session(NEWEST).called(tool, arguments.clone());
        assert!(text(&result).contains("has not declared elicitation"), "{result}");
        let body = modern(1, "tools/call", json!({ "name": tool, "arguments": arguments }));
        let refused = client.send(&with(&client, &body, &headers(&body))).expect(400).json();
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
        let needed = &refused["error"]["data"]["requiredCapabilities"];
        assert_eq!(needed, &json!({ "elicitation": { "form": {} } }), "{refused}");
        let path = format!("/runtime/demo/public/tools/{tool}");
        let facade = client.send(&Request::new("POST", &path).json(arguments));
        assert!(facade.text().contains("must be confirmed"), "{}", facade.text());
        assert_eq!(facade.status, 403);
    }
    assert!(service.is_quiet(), "nothing was called");
    assert_eq!(upstream.requests("tools/call"), 0);

    let mut stream = client.post_stream(&call(1, "wipe", json!({})));
    answer(&client, &question(&mut stream), &accept);
    assert_eq!(stream.answer()["result"]["isError"], false);
    assert_eq!(service.asked().method, "DELETE");
    let body = modern_call("wipe", &json!({}));
    let asked = input_required(&client, &body);
    assert_eq!(ask(&client, &again(&body, &asked, &accept))["result"]["isError"], false);
    assert_eq!(service.asked().method, "DELETE");

    let (tool, arguments) = &calls[1];
    let mut stream = client.post_stream(&call(1, tool, arguments.clone()));
    answer(&client, &question(&mut stream), &accept);
    assert_eq!(text(&stream.answer()["result"]), "hello");
    let body = modern_call(tool, arguments);
    let asked = input_required(&client, &body);
    assert_eq!(text(&ask(&client, &again(&body, &asked, &accept))["result"]), "hello");
    assert_eq!(upstream.requests("tools/call"), 2);

    let words = ["explain", "--client", "demo/public", "--tool", "wipe"];
    let said = server.command(&words).succeeded().stdout;
    assert!(said.contains("is asked before a destructive call"), "{said}");

    // For each tool and era: a no, no answer, one that cannot be asked (over plain HTTP too), a yes.
    for (reason, count) in [("declined", 4), ("not_confirmed", 4 + 6), ("confirmed", 4)] {
        eventually(&format!("{count} calls are recorded as {reason}"), || {
            let words = ["audit", "query", "--reason", reason, "--json"];
            let records = server.command(&words).succeeded().stdout;
            let decision = if reason == "confirmed" { "allowed" } else { "denied" };
            assert!(records.lines().all(|line| line.contains(decision)), "{records}");
            records.lines().count() == count
        });
    }
}

fn levels(stream: &mut Events) -> Vec<String> {
    let mut levels = Vec::new();
    loop {
        let message = stream.answer();
        if message["method"] != "notifications/message" {
            assert_eq!(text(&message["result"]), "logged");
            return levels;
        }
        levels.push(message["params"]["level"].as_str().unwrap().to_owned());
    }
}

#[test]
fn what_is_logged_reaches_who_wants_it() {
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "");
        let client = client(&server);
        let set = |level: &str| {
            let answer = client.reply(&rpc(1, "logging/setLevel", json!({ "level": level })));
            assert_eq!(answer["result"], json!({}), "{answer}");
        };
        let grave = ["error", "critical", "alert", "emergency"];
        set("error");
        let logged = levels(&mut client.post_stream(&call(1, "log", json!({}))));
        assert_eq!(logged, grave, "{revision}");
        set("debug");
        let logged = levels(&mut client.post_stream(&call(1, "log", json!({}))));
        assert_eq!(logged.len(), 8, "{revision}: {logged:?}");

        let mut body = modern(1, "tools/call", json!({ "name": "log", "arguments": {} }));
        assert_eq!(text(&ask(&client, &body)["result"]), "logged", "nothing is told unasked");
        body["params"]["_meta"][format!("{META}logLevel")] = json!("error");
        let request = with(&client, &body, &headers(&body));
        let mut stream = Events::open(client.connect(), &request).unwrap();
        assert_eq!(levels(&mut stream), grave, "{revision}");
    }
}

#[test]
fn progress_comes_under_the_clients_own_token() {
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "");
        let client = client(&server);
        let arguments = json!({ "steps": 3, "milliseconds": 1 });
        let mut modern = modern(1, "tools/call", json!({ "name": "slow", "arguments": arguments }));
        modern["params"]["_meta"]["progressToken"] = json!("token");
        let requests = [
            client.message(&with_token(call(1, "slow", arguments))),
            with(&client, &modern, &headers(&modern)),
        ];
        for request in requests {
            let mut stream = Events::open(client.connect(), &request).unwrap();
            for step in 1..=3 {
                let message = stream.answer();
                assert_eq!(message["params"]["progressToken"], "token", "{revision}: {message}");
                assert_eq!(message["params"]["progress"], step);
            }
            assert_eq!(text(&stream.answer()["result"]), "3 steps done");
            let sent = &upstream.state()["last"]["tools/call"]["params"]["_meta"]["progressToken"];
            assert_ne!(sent, "token", "it has one of its own there");
        }
    }
}

/// The next message of this method.
fn told(stream: &mut Events, method: &str) -> Value {
    loop {
        let message = stream.message().expect("the stream ended");
        if message["method"] == method {
            return message;
        }
    }
}

#[test]
fn each_that_subscribed_is_told_once() {
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(revision, &[]);
        let server = before(&upstream, "");
        let one = client(&server);
        let two = client(&server);
        let other = client(&server);
        let mut streams: Vec<Events> = [&one, &two, &other].map(Client::standing).into();
        for stream in &mut streams {
            stream.primed();
        }
        let uri = json!({ "uri": "test://watched" });
        for client in [&one, &two] {
            let answer = client.reply(&rpc(1, "resources/subscribe", uri.clone()));
            assert_eq!(answer["result"], json!({}), "{revision}: {answer}");
        }
        let wanted = json!({ "notifications": { "resourceSubscriptions": ["test://watched"] } });
        let body = modern(7, "subscriptions/listen", wanted);
        let request = with(&one, &body, &headers(&body));
        let mut listening = Events::open(one.connect(), &request).unwrap();
        told(&mut listening, "notifications/subscriptions/acknowledged");
        // The last subscription is on its way to the upstream when the client is answered.
        eventually("the upstream knows of all", || {
            let state = upstream.state();
            let subscribed = state["subscriptions"].as_array().unwrap().len();
            subscribed >= 3 || (revision == "2026-07-28" && state["listening"].as_u64() >= Some(4))
        });
        for text in ["touched 1 times", "touched 2 times"] {
            other.called("touch", json!({}));
            for stream in streams.iter_mut().take(2).chain([&mut listening]) {
                let message = told(stream, "notifications/resources/updated");
                assert_eq!(message["params"]["uri"], "test://watched", "{revision}");
            }
            let read = one.reply(&rpc(1, "resources/read", uri.clone()));
            assert_eq!(read["result"]["contents"][0]["text"], text, "{read}");
        }
        // Nothing more came, to anybody, before what comes now.
        server.notify();
        for stream in &mut streams {
            loop {
                let message = stream.message().unwrap();
                assert_ne!(message["method"], "notifications/resources/updated", "{revision}");
                if message["method"] == "notifications/resources/list_changed"
                    || message["method"] == "notifications/tools/list_changed"
                {
                    break;
                }
            }
        }
    }
}
