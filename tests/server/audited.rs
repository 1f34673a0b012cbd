//! The audit log as an operator reads it, on the records of a real run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{
    Client, NEWEST, Request, Ringway, Service, Setup, call, eventually, initialize, rpc,
};

const LOOK: (&str, &str, &str, &str) = ("look", "GET", "/look", "");
const PAY: (&str, &str, &str, &str) = (
    "pay",
    "POST",
    "/pay",
    r#"log_payloads = true
redact = ["card"]
fields = [
    { source_field_name = "sum", location = "body", type = "integer", required = true },
    { source_field_name = "card", location = "body" },
]"#,
);
const CARD: &str = "4111-1111-1111-1111";
/// How many records `run` makes.
const RECORDS: usize = 15;

/// A server, and one request of each kind there is, over each way.
fn run(service: &Service) -> Ringway {
    let server = Setup::new().set("runtime.cores", 1).api(&service.base(), &[LOOK, PAY]).start();
    server.apply(
        "[[toolset]]\ntenant = \"demo\"\nid = \"api\"\nkind = \"rest\"\nconnection = \"api\"\n\
         system_prompt = \"Look first.\"\ndiscovery_mode = \"data_structure_only\"\n",
    );
    let client = Client::new(&server, "demo/assistant").in_session(NEWEST);
    client.post(&rpc(1, "tools/list", json!({}))).expect(200);
    client.called("discover_tool_schema", json!({ "tool_id": "look" }));
    let asked = client.message(&call(2, "look", json!({}))).header("X-Correlation-Id", "order-7");
    client.send(&asked).expect(200);
    client.called("pay", json!({ "sum": "7", "card": CARD }));
    client.post(&rpc(1, "resources/list", json!({}))).expect(200);
    let uri = "runtime://toolsets/api/system-prompt";
    client.post(&rpc(1, "resources/read", json!({ "uri": uri }))).expect(200);
    client.post(&rpc(1, "prompts/list", json!({}))).expect(200);
    client.post(&rpc(1, "prompts/get", json!({ "name": "api" }))).expect(200);
    client.delete().expect(204);
    let public = Client::keyless(&server, "demo/public");
    let plain = |method: &str, path: &str| {
        let request = Request::new(method, &format!("/runtime/demo/public/{path}"));
        let request = if method == "POST" { request.json(&json!({})) } else { request };
        public.send(&request).expect(200)
    };
    plain("POST", "tools/look");
    plain("GET", "tools");
    plain("GET", "tools/look");
    public.post(&call(1, "none", json!({})));
    // A batch has a record of each of its requests; what nobody asks for has none.
    let older = public.in_session("2025-03-26");
    let ping = rpc(2, "ping", json!({}));
    older.post(&json!([call(1, "look", json!({})), ping])).expect(200);
    eventually("all is recorded", || server.records().len() > RECORDS);
    server
}

fn field<'a>(records: &'a [Value], key: &str) -> Vec<&'a str> {
    records.iter().map(|record| record[key].as_str().unwrap_or("-")).collect()
}

#[test]
fn each_request_of_each_kind_has_one_record_with_what_it_was() {
    let service = Service::echo();
    let server = run(&service);
    let records = server.records();
    assert_eq!(
        field(&records, "call_type"),
        [
            "session",
            "tool_discovery",
            "schema_discovery",
            "tool_execution",
            "tool_execution",
            "resource_list",
            "resource_read",
            "prompt_list",
            "prompt_get",
            "session",
            "rest_invocation",
            "tool_discovery",
            "schema_discovery",
            "tool_execution",
            "session",
            "tool_execution",
        ]
    );
    let uri = "runtime://toolsets/api/system-prompt";
    assert_eq!(
        field(&records, "tool"),
        [
            "-", "-", "look", "look", "pay", "-", uri, "-", "api", "-", "look", "-", "look",
            "none", "-", "look"
        ]
    );
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record["tenant"], "demo");
        let is_first = at < 10;
        assert_eq!(record["client_application"], if is_first { "assistant" } else { "public" });
        let caller = record["caller"].as_str().unwrap();
        assert!(if is_first { caller.starts_with("key:") } else { caller == "open" }, "{caller}");
        let transport = if (10..13).contains(&at) { "rest" } else { "streamable_http" };
        assert_eq!(record["transport"], transport, "{at}");
        let is_denied = at == 13;
        assert_eq!(record["decision"], if is_denied { "denied" } else { "allowed" });
        assert_eq!(record["outcome"], if is_denied { "error" } else { "ok" });
        // An execution id has the time in it.
        let id = record["execution_id"].as_str().unwrap().replace('-', "");
        let time = u64::from_str_radix(&id[..12], 16).unwrap();
        assert!(time.abs_diff(record["time"].as_u64().unwrap()) <= 1000, "{record}");
        let has_tool = [2, 3, 4, 10, 12, 15].contains(&at);
        assert_eq!(record["schema_hash"].is_string(), has_tool, "{record}");
        // Payloads are there only where the tool asks, and the list where one of its tools does.
        assert_eq!(record.get("arguments").is_some(), at == 4, "{record}");
        assert_eq!(record.get("result").is_some(), at == 4, "{record}");
        assert_eq!(record.get("listed").is_some(), at == 1 || at == 11, "{record}");
    }
    assert_eq!(records[3]["correlation_id"], "order-7");
    assert_eq!(records[4]["repairs"], 1);
    assert_eq!(records[4]["arguments"], json!({ "sum": 7, "card": "[redacted]" }));
    let names: Vec<_> = records[1]["listed"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert!(names.contains(&&json!("look")), "{names:?}");
    // What was redacted is nowhere in the data directory.
    assert!(!holds(server.data(), CARD.as_bytes()));
}

/// Whether a file under `folder` holds these bytes.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        let is_there = |content: &[u8]| content.windows(bytes.len()).any(|part| part == bytes);
        if path.is_dir() {
            holds(&path, bytes)
        } else {
            fs::read(&path).is_ok_and(|content| is_there(&content))
        }
    })
}

#[test]
fn entries_are_found_by_every_field_an_operator_knows() {
    let service = Service::echo();
    let server = run(&service);
    let records = server.records();
    let query = |words: &[&str]| -> Vec<Value> {
        let words: Vec<&str> = ["audit", "query", "--json"].iter().chain(words).copied().collect();
        let text = server.command(&words).succeeded().stdout;
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let execution = records[3]["execution_id"].as_str().unwrap();
    let caller = records[0]["caller"].as_str().unwrap();
    for (words, count) in [
        (&["--tool", "look"][..], 5),
        (&["--type", "session"], 3),
        (&["--type", "prompt_get"], 1),
        (&["--decision", "denied"], 1),
        (&["--reason", "unknown_tool"], 1),
        (&["--client", "demo/public"], 6),
        (&["--client", "public", "--tool", "look"], 3),
        (&["--tenant", "other"], 0),
        (&["--caller", caller, "--tool", "look"], 2),
        // A key by its id alone.
        (&["--caller", caller.strip_prefix("key:").unwrap(), "--tool", "look"], 2),
        (&["--correlation", "order-7"], 1),
        (&["--execution", execution], 1),
        (&["--since", "1h", "--type", "tool_discovery"], 2),
        (&["--until", "1h", "--type", "tool_discovery"], 0),
        (&["--limit", "2", "--tool", "look"], 2),
    ] {
        assert_eq!(query(words).len(), count, "{words:?}");
    }
    assert_eq!(query(&["--execution", execution])[0], records[3]);
    let table = server.command(&["audit", "query", "--tool", "pay"]).succeeded().stdout;
    for part in ["TIME", "demo/assistant", "tool_execution", "pay", "allowed", "ok 200"] {
        assert!(table.contains(part), "no {part} in {table}");
    }
    server.command(&["audit", "query", "--type", "nothing"]).failed_with(&["tool_execution"]);
    // The newest ones, in their order.
    let tail = server.command(&["audit", "tail", "-n", "3", "--json"]).succeeded().stdout;
    let tail: Vec<Value> = tail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(tail, records[records.len() - 3..]);
    let told = server.command(&["audit", "tail", "-n", "1"]).succeeded().stdout;
    assert!(told.starts_with("TIME ") && told.contains("look"), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
    // As a table for spreadsheets, to a file that must not exist.
    let file = server.folder().join("log.csv").display().to_string();
    let export = ["audit", "export", "--format", "csv", "--output", &file, "--tool", "look"];
    server.command(&export).succeeded();
    let csv = fs::read_to_string(&file).unwrap();
    assert_eq!(csv.lines().count(), 1 + 5, "{csv}");
    assert!(csv.starts_with("time,event,") && csv.contains(execution), "{csv}");
    server.command(&export).failed_with(&["log.csv"]);
}

/// The segments of the log, of which one has records.
fn segments(server: &Ringway) -> Vec<PathBuf> {
    let entries = fs::read_dir(server.data().join("audit")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| {
            fs::read(path).is_ok_and(|text| text.windows(11).any(|part| part == b"\"call_type\""))
        })
        .collect()
}

#[test]
fn a_log_that_is_whole_is_told_from_one_with_a_single_changed_byte() {
    let service = Service::echo();
    let mut server = run(&service);
    let verify = |server: &Ringway| server.command(&["audit", "verify"]);
    // Also while it is written.
    verify(&server).succeeded();
    server.stop();
    let told = verify(&server).succeeded().stdout;
    assert!(told.contains("The log is whole") && told.contains("signed through"), "{told}");
    let key = server.data().join("audit").join("signing.pub").display().to_string();
    let kept = server.write("signing.pub", &fs::read_to_string(&key).unwrap());
    server.command(&["audit", "verify", "--key", &kept]).succeeded();
    let all = segments(&server);
    let [segment] = all.as_slice() else { panic!("{all:?}") };
    let whole = fs::read(segment).unwrap();
    let place = whole.windows(9).position(|part| part == b"\"order-7\"").unwrap() + 7;
    for (what, changed) in [
        ("a byte", {
            let mut bytes = whole.clone();
            bytes[place] = b'8';
            bytes
        }),
        ("a line less", {
            let from = whole[..place].iter().rposition(|byte| *byte == b'\n').unwrap();
            let to = place + whole[place..].iter().position(|byte| *byte == b'\n').unwrap();
            [&whole[..from], &whole[to..]].concat()
        }),
        ("the end cut off", whole[..place].to_vec()),
    ] {
        fs::write(segment, changed).unwrap();
        let name = segment.file_name().unwrap().to_str().unwrap();
        let failed = verify(&server).failed_with(&[]);
        assert!(
            failed.stderr.contains(name) || failed.stderr.contains("block"),
            "{what}: {failed:?}"
        );
    }
    fs::write(segment, &whole).unwrap();
    verify(&server).succeeded();
    // It goes on after a restart, in the same chain.
    server.start();
    let client = Client::keyless(&server, "demo/public");
    client.post(&initialize(NEWEST)).expect(200);
    client.post(&call(1, "look", json!({}))).expect(200);
    eventually("the log goes on", || server.records().len() == RECORDS + 1 + 2);
    server.stop();
    verify(&server).succeeded();
}

#[test]
fn each_of_many_calls_at_once_is_recorded_once_whatever_became_of_it() {
    const THREADS: usize = 12;
    const CALLS: usize = 30;
    const ALLOWED: usize = 150;
    let service = Service::echo();
    let text = format!(
        "[[client_application]]\ntenant = \"demo\"\nid = \"busy\"\nopen = true\n\
         limits = {{ tool_calls = {{ count = {ALLOWED}, seconds = 86400 }} }}\n\
         [[assignment]]\ntenant = \"demo\"\nclient_application = \"busy\"\n\
         toolset = \"api\"\n"
    );
    let setup = Setup::new().set("runtime.cores", 4).api(&service.base(), &[LOOK]).catalog(&text);
    let mut server = setup.start();
    let client = Client::keyless(&server, "demo/busy");
    // One in three is of a tool that is not there, one over plain HTTP.
    let ask = |client: &Client, thread: usize, number: usize| {
        let tool = if number.is_multiple_of(3) { "nothing" } else { "look" };
        let request = if number % 3 == 2 {
            Request::new("POST", "/runtime/demo/busy/tools/look").json(&json!({}))
        } else {
            client.message(&call(1, tool, json!({})))
        };
        let id = format!("{thread}.{number}");
        (tool, request.header("X-Correlation-Id", &id), id)
    };
    let callers: Vec<_> = (0..THREADS)
        .map(|thread| {
            let client = client.clone();
            std::thread::spawn(move || -> Vec<(String, String)> {
                let mut wire = client.connect();
                let mut one = |number| {
                    let (tool, request, id) = ask(&client, thread, number);
                    let answer = wire.ask(&request);
                    let reason = match (tool, answer.status) {
                        ("nothing", 200) => "unknown_tool",
                        (_, 200) => "allowed",
                        (_, 429) => "quota_exceeded",
                        (_, status) => panic!("HTTP {status}: {}", answer.text()),
                    };
                    (id, reason.to_owned())
                };
                (0..CALLS).map(&mut one).collect()
            })
        })
        .collect();
    let mut told: Vec<(String, String)> =
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();
    server.stop();
    let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    let records = server.records();
    let mut recorded: Vec<(String, String)> = records
        .iter()
        .map(|record| (text(record, "correlation_id"), text(record, "reason")))
        .collect();
    told.sort();
    recorded.sort();
    assert_eq!(recorded, told);
    assert_eq!(told.iter().filter(|(_, reason)| reason == "allowed").count(), ALLOWED);
    let verified = server.command(&["audit", "verify"]).succeeded().stdout;
    // And the log's own two, of its beginning and its end.
    let count = format!("The log is whole: {} records", THREADS * CALLS + 2);
    assert!(verified.contains(&count), "{verified}");
}

#[test]
fn who_follows_the_log_sees_calls_as_they_are_made() {
    let service = Service::echo();
    let server = Setup::new().set("runtime.cores", 1).api(&service.base(), &[LOOK]).start();
    let client = Client::keyless(&server, "demo/public");
    client.post(&call(1, "look", json!({}))).expect(200);
    eventually("the first call is recorded", || server.records().len() == 1);
    // Should nothing come, the end of its time ends the wait.
    let mut follower = Command::new("timeout")
        .args(["-k1", "20", env!("CARGO_BIN_EXE_ringway")])
        .envs(server.settings().iter().cloned())
        .args(["audit", "tail", "--follow", "--json", "-n", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["tool"], "look");
    for tool in ["none", "look"] {
        client.post(&call(1, tool, json!({}))).expect(200);
        assert_eq!(next()["tool"], tool);
    }
    let kill = format!("kill -TERM {}", follower.id());
    Command::new("sh").args(["-c", &kill]).status().unwrap();
    follower.wait().unwrap();
}
