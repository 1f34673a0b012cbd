//! MCP servers that mean no good, or are simply broken: what they do costs nobody but themselves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Ringway, Setup, eventually, initialize, json_answer, pause};
use crate::modern::{modern, with};

const MODERN: &str = "2026-07-28";
pub(crate) const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// What a server does with a message that it was posted.
pub(crate) type Script = dyn Fn(&Message, &mut TcpStream) + Send + Sync;

pub(crate) struct Message {
    pub(crate) headers: Vec<String>,
    pub(crate) body: Value,
}

impl Message {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    fn has_header(&self, line: &str) -> bool {
        self.headers.iter().any(|header| header.eq_ignore_ascii_case(line))
    }

    pub(crate) fn result(&self, result: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result })
    }

    pub(crate) fn error(&self, code: i64) -> Value {
        let error = json!({ "code": code, "message": "no" });
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": error })
    }

    /// What any server of the era with sessions answers. Whether this was it.
    pub(crate) fn legacy(&self, socket: &mut TcpStream, capabilities: &Value) -> bool {
        match self.method() {
            "server/discover" => refuse(socket, &self.error(-32601)),
            "initialize" => {
                let said = json!({ "protocolVersion": NEWEST, "capabilities": capabilities,
                    "serverInfo": { "name": "hostile", "version": "1" } });
                let body = self.result(&said).to_string();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                    Mcp-Session-Id: one\r\nContent-Length: ";
                say(socket, format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes());
            }
            "tools/list" => say_json(socket, &self.result(&json!({ "tools": [tool()] }))),
            "notifications/initialized" | "notifications/cancelled" => accept(socket),
            _ => return false,
        }
        true
    }
}

fn tool() -> Value {
    json!({ "name": "t", "description": "d", "inputSchema": { "type": "object" } })
}

pub(crate) fn say(socket: &mut TcpStream, bytes: &[u8]) {
    // Whoever does not listen any more misses nothing.
    let _ = socket.write_all(bytes);
}

pub(crate) fn say_json(socket: &mut TcpStream, body: &Value) {
    say(socket, &json_answer(&body.to_string()));
}

fn refuse(socket: &mut TcpStream, body: &Value) {
    let body = body.to_string();
    let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ";
    say(socket, format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes());
}

pub(crate) fn accept(socket: &mut TcpStream) {
    say(socket, b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
}

pub(crate) fn event(message: &Value) -> Vec<u8> {
    format!("data: {message}\n\n").into_bytes()
}

/// The URL of a server that answers so. It has no streams but those of answers.
pub(crate) fn upstream(
    script: impl Fn(&Message, &mut TcpStream) + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let script: Arc<Script> = Arc::new(script);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let script = Arc::clone(&script);
            thread::spawn(move || serve(socket, &*script));
        }
    });
    url
}

fn serve(mut socket: TcpStream, script: &Script) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if !matches!(reader.read_line(&mut line), Ok(1..)) {
                return;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        if !lines.first().is_some_and(|line| line.starts_with("POST ")) {
            say(&mut socket, b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
            continue;
        }
        let length = lines.iter().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("Content-Length").then(|| value.parse::<usize>().unwrap())
        });
        let mut body = vec![0; length.unwrap_or_default()];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = serde_json::from_slice(&body).unwrap();
        script(&Message { headers: lines, body }, &mut socket);
    }
}

/// A server with these toolsets of kind `mcp`, once it knows what they offer.
pub(crate) fn server(url: &str) -> Ringway {
    let catalog = format!(
        "[[connection]]\ntenant = \"demo\"\nid = \"up\"\nbase_url = \"{url}\"\n\
         credentials = [{{ kind = \"bearer\", token = \"s3cr3t-token\" }}]\n\
         [[toolset]]\ntenant = \"demo\"\nid = \"up\"\nkind = \"mcp\"\nconnection = \"up\"\n\
         upstream = {{ definitions = \"trust\" }}\n\
         [[assignment]]\ntenant = \"demo\"\nclient_application = \"public\"\ntoolset = \"up\"\n"
    );
    let server = Setup::new().catalog(&catalog).start();
    let client = Client::keyless(&server, "demo/public");
    let body = modern(1, "tools/list", json!({}));
    let request = with(&client, &body, &crate::modern::headers(&body));
    eventually("the server is known", || {
        client.send(&request).expect(200).result()["tools"] != json!([])
    });
    server
}

fn in_session(server: &Ringway) -> Client {
    Client::keyless(server, "demo/public").in_session(NEWEST)
}

/// Each answer would hold a connection of ours for as long as the server likes.
#[test]
fn a_server_that_asks_without_end_and_takes_no_answer_gets_few() {
    const PINGS: usize = 5_000;
    let held = Arc::new(Mutex::new(Vec::new()));
    let holding = Arc::clone(&held);
    let url = upstream(move |message, socket| {
        if message.legacy(socket, &json!({ "tools": {} })) {
            return;
        }
        if message.method().is_empty() {
            // An answer: it is never taken.
            return holding.lock().unwrap().push(socket.try_clone().unwrap());
        }
        say(socket, EVENTS);
        for id in 0..PINGS {
            say(socket, &event(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })));
        }
        say(socket, &event(&message.result(&json!({ "content": [] }))));
    });
    let server = server(&url);
    let client = in_session(&server);
    assert_eq!(client.called("t", json!({}))["isError"], false);
    pause(std::time::Duration::from_millis(200));
    let held = held.lock().unwrap().len();
    assert!((1..=64).contains(&held), "{held} answers are under way");
    assert_eq!(client.post(&crate::harness::ping()).expect(200).result(), json!({}));
}

/// MCP 2026-07-28, versioning: it says so, and was not done.
#[test]
fn a_server_that_becomes_modern_loses_no_call() {
    let is_modern = Arc::new(AtomicBool::new(false));
    let is_now = Arc::clone(&is_modern);
    let calls = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&calls);
    let url = upstream(move |message, socket| {
        let is_modern = is_now.load(Ordering::SeqCst);
        if !is_modern && message.legacy(socket, &json!({ "tools": {} })) {
            return;
        }
        if is_modern && !message.has_header(&format!("MCP-Protocol-Version: {MODERN}")) {
            return refuse(socket, &message.error(-32022));
        }
        match message.method() {
            "server/discover" => {
                let said = json!({ "resultType": "complete", "supportedVersions": [MODERN],
                    "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private" });
                say_json(socket, &message.result(&said));
            }
            "tools/call" => {
                counting.fetch_add(1, Ordering::SeqCst);
                let said = json!({ "resultType": "complete", "content": [] });
                say_json(socket, &message.result(&said));
            }
            _ => say_json(socket, &message.error(-32601)),
        }
    });
    let server = server(&url);
    let client = in_session(&server);
    assert_eq!(client.called("t", json!({}))["isError"], false);
    is_modern.store(true, Ordering::SeqCst);
    assert_eq!(client.called("t", json!({}))["isError"], false);
    is_modern.store(false, Ordering::SeqCst);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

/// A template may fit any URI, and what the appliance keeps for a client is no server's business.
#[test]
fn no_server_is_asked_for_what_is_the_appliances_own() {
    let url = upstream(|message, socket| {
        if message.legacy(socket, &json!({ "tools": {}, "resources": {} })) {
            return;
        }
        let said = match message.method() {
            "resources/list" => json!({ "resources": [] }),
            "resources/templates/list" => {
                json!({ "resourceTemplates": [{ "uriTemplate": "{+all}", "name": "all" }] })
            }
            _ => json!({ "contents": [{ "uri": message.body["params"]["uri"], "text": "mine" }] }),
        };
        say_json(socket, &message.result(&said));
    });
    let server = server(&url);
    let client = in_session(&server);
    let read = |uri: &str| {
        let params = json!({ "uri": uri });
        client.reply(&crate::harness::rpc(2, "resources/read", params))
    };
    eventually("the template is known", || {
        read("any://thing")["result"]["contents"][0]["text"] == "mine"
    });
    for uri in ["runtime://results/of-another", "RUNTIME://status", "runtime:x"] {
        let answer = read(uri);
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
    }
}

#[test]
fn no_credential_comes_back_in_whatever_a_server_says() {
    let url = upstream(|message, socket| {
        if message.legacy(socket, &json!({ "tools": {}, "logging": {} })) {
            return;
        }
        let told = message.headers.iter().find(|line| line.contains("s3cr3t")).unwrap().clone();
        match message.body["params"]["arguments"]["as"].as_str() {
            Some("error") => {
                let error = json!({ "code": -1, "message": told, "data": { &told: told } });
                let answer = json!({ "jsonrpc": "2.0", "id": message.body["id"], "error": error });
                refuse(socket, &answer);
            }
            Some("text") => {
                let head = "HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\nContent-Length: ";
                say(socket, format!("{head}{}\r\n\r\n{told}", told.len()).as_bytes());
            }
            Some("result") => {
                let content = json!([{ "type": "text", "text": told }]);
                say_json(socket, &message.result(&json!({ "content": content })));
            }
            Some(_) => {
                let params = json!({ "level": "error", "data": told });
                let log = json!({ "jsonrpc": "2.0", "method": "notifications/message",
                    "params": params });
                say(socket, EVENTS);
                say(socket, &event(&log));
                say(socket, &event(&message.result(&json!({ "content": [] }))));
            }
            None => say_json(socket, &message.result(&json!({}))),
        }
    });
    let server = server(&url);
    let client = in_session(&server);
    for kind in ["error", "text", "result", "log"] {
        let mut wire = client.connect();
        let call = crate::harness::call(7, "t", json!({ "as": kind }));
        let answer = wire.ask(&client.message(&call).header("Connection", "close"));
        assert!(answer.status == 200 && !answer.text().contains("s3cr3t"), "{}", answer.text());
    }
    assert!(!server.log_text().contains("s3cr3t"), "{}", server.log_text());
    // Sessions are opened as ever.
    client.without_session().post(&initialize(NEWEST)).expect(200);
}
