//! Secrets at rest and on show: nowhere in clear but where they are needed.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Output, Plan, Ringway, Service, Setup, answer, json_answer};

/// Begins every secret of these tests.
const MARK: &str = "s3cr3t-";

fn connection(base: &str) -> String {
    format!(
        "base_url = \"{base}\"\nheaders = {{ X-Old-Token = \"s3cr3t-header\" }}\n\
         credentials = [{{ kind = \"basic\", username = \"ada\", password = \"s3cr3t-password\" }}, \
         {{ kind = \"api_key\", place = \"query\", name = \"key\", value = \"s3cr3t-query\" }}, \
         {{ kind = \"ws_security\", username = \"ada\", password = \"s3cr3t-soap\" }}]"
    )
}

const TOOLS: [(&str, &str, &str, &str); 3] = [
    ("look", "GET", "/look", "log_payloads = true"),
    ("wrong", "GET", "/wrong", "log_payloads = true"),
    ("gone", "GET", "/gone", ""),
];

/// An API that repeats everything it was sent.
fn talkative() -> Service {
    Service::start(|asked| {
        let told = json!({
            "target": asked.target,
            "authorization": asked.header("Authorization"),
            "message": format!("{} {}", asked.target, asked.header("X-Old-Token").unwrap_or_default()),
        });
        Plan::Answer(match &asked.target[..5] {
            "/look" => json_answer(&told.to_string()),
            "/gone" => {
                let to = asked.target.replace("gone", "elsewhere");
                let to = format!("http://127.0.0.1:1{to}");
                answer("302 Found", &[("Location", &to)], b"")
            }
            _ => {
                let kind = [("Content-Type", "application/json")];
                answer("422 Unprocessable Content", &kind, told.to_string().as_bytes())
            }
        })
    })
}

/// Files below `folder` in which the mark stands.
fn found_in(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(found_in(&path));
        } else if fs::metadata(&path).is_ok_and(|file| file.is_file()) {
            let bytes = fs::read(&path).unwrap();
            if bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

fn shown(server: &Ringway) -> Vec<String> {
    let get = |path: &str| server.admin("GET", path, None).expect(200).text();
    let command = |words: &[&str]| {
        let Output { stdout, stderr, .. } = server.command(words).succeeded();
        stdout + &stderr
    };
    vec![
        get("/catalog/connections/demo/api"),
        get("/catalog/connections"),
        get("/metrics"),
        command(&["history"]),
        command(&["history", "1"]),
        command(&["history", "2"]),
        command(&["export", "--mask"]),
        command(&["audit", "export"]),
        server.log_text(),
    ]
}

#[test]
fn secrets_are_sealed_on_disk_and_masked_wherever_they_are_shown() {
    let service = talkative();
    let base = service.base();
    let mut server =
        Setup::new().set("telemetry.filter", "debug").api_with(&connection(&base), &TOOLS).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let asked = |server: &Ringway| {
        let client = client.at(server).without_session();
        for (tool, ..) in TOOLS {
            let result = client.in_session(NEWEST).called(tool, json!({})).to_string();
            assert!(!result.contains(MARK), "{tool}: {result}");
            let heard = service.asked();
            assert!(heard.target.ends_with("?key=s3cr3t-query"), "{}", heard.target);
            let basic = Some("Basic YWRhOnMzY3IzdC1wYXNzd29yZA==");
            assert_eq!(heard.header("Authorization"), basic);
            assert_eq!(heard.header("X-Old-Token"), Some("s3cr3t-header"));
        }
    };
    asked(&server);
    // A change, so that the log has both before and after.
    let changed = connection(&base).replace("s3cr3t-soap", "s3cr3t-other");
    let file = server.write(
        "changed.toml",
        &format!("[[connection]]\ntenant = \"demo\"\nid = \"api\"\n{changed}\n"),
    );
    let applied = server.command(&["apply", &file]).succeeded().stdout;
    assert!(applied.contains("credentials[2].password: *** -> ***"), "{applied}");
    for text in shown(&server) {
        assert!(!text.contains(MARK), "{text}");
    }
    // Masked and whole exports come back without a difference.
    for words in [&["export", "masked", "--mask"][..], &["export", "whole.yaml"]] {
        let path = server.folder().join(words[1]).display().to_string();
        let mut words = words.to_vec();
        words[1] = &path;
        server.command(&words).succeeded();
        let again = server.command(&["apply", &path, "--prune"]).succeeded().stdout;
        assert!(again.starts_with("0 added, 0 changed, 0 removed"), "{again}");
    }
    // The change can be undone, by what was sealed.
    server.command(&["rollback", "1"]).succeeded();
    server.flushed();
    assert_eq!(found_in(server.data()), [""; 0]);
    fs::remove_file(server.folder().join("catalog.toml")).unwrap();
    fs::write(server.folder().join("catalog.toml"), "").unwrap();
    server.kill();
    assert_eq!(found_in(server.data()), [""; 0]);
    server.start();
    asked(&server);
    server.stop();
    assert_eq!(found_in(server.data()), [""; 0]);
    assert!(!server.log_text().contains(MARK));
}

#[test]
fn a_lost_key_stops_the_start_and_destroys_nothing() {
    let service = talkative();
    let mut server = Setup::new().api_with(&connection(&service.base()), &TOOLS).start();
    let key = server.data().join("seal.key");
    let mode = Command::new("stat").args(["-c", "%a"]).arg(&key).output().unwrap().stdout;
    assert_eq!(String::from_utf8(mode).unwrap().trim(), "600");
    server.stop();
    let kept = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let refused = server.command(&["serve"]);
    let parts = ["sealed with key", "seal.key", "put that key back", "nothing was changed"];
    refused.failed_with(&parts);
    assert!(!key.exists(), "a new key would have taken its place");
    fs::write(&key, "nonsense").unwrap();
    server.command(&["serve"]).failed_with(&["holds no seal key"]);

    // As a credential of systemd it is as good.
    fs::remove_file(&key).unwrap();
    let credentials = server.folder().join("credentials");
    fs::create_dir(&credentials).unwrap();
    fs::write(credentials.join("seal.key"), kept).unwrap();
    server.start_by("exec \"$0\" serve", |command| {
        command.env("CREDENTIALS_DIRECTORY", &credentials);
    });
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let result: Value = client.called("look", json!({}));
    assert_eq!(result["isError"], false, "{result}");
    assert!(!key.exists());
}
