//! API keys of client applications, from the command line to the refusal.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Client, NEWEST, Request, Ringway, Setup, initialize, pause, ping};

fn created(server: &Ringway, words: &[&str]) -> (String, String) {
    let words: Vec<&str> = ["key", "create"].iter().chain(words).copied().collect();
    let output = server.command(&words).succeeded();
    let key = output.stdout.trim().to_owned();
    assert!(!key.contains(char::is_whitespace), "only the key is printed: {key:?}");
    let id = output.stderr.split_whitespace().nth(1).unwrap().to_owned();
    assert!(output.stderr.contains("not shown again"), "{}", output.stderr);
    (key, id)
}

#[test]
fn a_key_from_the_command_line_lives_and_dies() {
    let mut server = Setup::new().start();
    let (key, id) =
        created(&server, &["--client", "demo/assistant", "--label", "laptop", "--expires", "90d"]);
    let (_, other) = created(&server, &["--client", "other/assistant", "--trust", "high"]);
    let listed = server.command(&["key", "list"]).succeeded().stdout;
    let line = |id: &str| {
        let found = listed.lines().find(|line| line.starts_with(id));
        found.unwrap_or_else(|| panic!("{id} is not in\n{listed}")).to_owned()
    };
    for part in ["demo/assistant", "valid", "medium", "laptop"] {
        assert!(line(&id).contains(part), "{}", line(&id));
    }
    for part in ["never", "high"] {
        assert!(line(&other).contains(part), "{}", line(&other));
    }
    assert!(!listed.contains(secret_of(&key)), "a secret is listed");

    let client = Client::keyless(&server, "demo/assistant").with_key(&key);
    let session = client.in_session(NEWEST);
    let mut wire = session.connect();
    wire.ask(&session.message(&ping())).expect(200);
    let revoked = server.command(&["key", "revoke", &id]).succeeded().stdout;
    assert!(revoked.contains(&id) && revoked.contains("revoked"), "{revoked}");
    let refused = wire.ask(&session.message(&ping())).expect(401);
    assert!(refused.header("WWW-Authenticate").unwrap().contains("invalid_token"));
    for answer in [session.delete(), session.stream(None).err().unwrap()] {
        answer.expect(401);
    }
    server
        .command(&["key", "list"])
        .succeeded()
        .stdout
        .lines()
        .find(|line| line.starts_with(&id) && line.contains("revoked"))
        .expect("the key is listed as revoked");
    server.kill_and_restart();
    client.at(&server).post(&ping()).expect(401);
    server.command(&["key", "revoke", "nobody"]).failed_with(&["nobody", "key list"]);
}

#[test]
fn a_key_expires_on_an_open_connection() {
    let server = Setup::new().start();
    let body = json!({
        "tenant": "demo", "client_application": "assistant", "expires_seconds": 1,
    });
    let made = server.admin("POST", "/keys", Some(&body)).expect(200).json();
    let client = Client::keyless(&server, "demo/assistant").with_key(made["key"].as_str().unwrap());
    let mut wire = client.connect();
    wire.ask(&client.message(&ping())).expect(200);
    pause(Duration::from_millis(1100));
    wire.ask(&client.message(&ping())).expect(401);
    let listed = server.command(&["key", "list"]).succeeded().stdout;
    assert!(listed.contains("expired"), "{listed}");
}

#[test]
fn keys_are_for_one_client_application_that_exists() {
    let server = Setup::new().start();
    let desk = server.new_key("demo/desk");
    for of in ["demo/assistant", "other/assistant", "demo/nobody", "nobody/assistant"] {
        let answer = Client::keyless(&server, of).with_key(&desk).post(&ping()).expect(401);
        assert!(answer.header("WWW-Authenticate").is_some());
    }
    let unknown = server.command(&["key", "create", "--client", "demo/nobody"]);
    unknown.failed_with(&["demo", "nobody"]);
    server.command(&["key", "create", "--client", "demo"]).failed_with(&["TENANT/CLIENT"]);
    let odd = server.command(&["key", "create", "--client", "demo/desk", "--expires", "soon"]);
    odd.failed_with(&["90d"]);
}

#[test]
fn only_an_open_client_application_needs_no_key() {
    let server = Setup::new().start();
    let public = Client::keyless(&server, "demo/public");
    public.in_session(NEWEST).post(&ping()).expect(200);
    let closed = Client::keyless(&server, "demo/desk").post(&initialize(NEWEST)).expect(401);
    assert_eq!(closed.header("WWW-Authenticate"), Some("Bearer realm=\"ringway\""));
    // A credential that is presented must be good, even where none is needed.
    public.with_key("rw_000000000000_wrong").post(&ping()).expect(401);
}

#[test]
fn one_credential_in_one_of_two_headers() {
    let server = Setup::new().start();
    let (key, other) = (server.new_key("demo/desk"), server.new_key("demo/desk"));
    let client = Client::keyless(&server, "demo/desk");
    let ask = |headers: &[(&str, &str)]| {
        let mut request = Request::new("POST", &client.path).json(&ping());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        client.send(&request).status
    };
    let (bearer, another) = (format!("Bearer {key}"), format!("Bearer {other}"));
    assert_eq!(ask(&[("X-Api-Key", &key)]), 200);
    assert_eq!(ask(&[("authorization", &format!("bearer {key}"))]), 200);
    assert_eq!(ask(&[("Authorization", &bearer), ("X-Api-Key", &key)]), 200);
    assert_eq!(ask(&[("Authorization", &bearer), ("X-Api-Key", &other)]), 400);
    assert_eq!(ask(&[("Authorization", &bearer), ("Authorization", &another)]), 400);
    assert_eq!(ask(&[("Authorization", "Basic eDp5"), ("X-Api-Key", &key)]), 200);
    assert_eq!(ask(&[("Authorization", "Basic eDp5")]), 401);
}

#[test]
fn no_secret_is_kept_or_logged() {
    let mut server = Setup::new().set("telemetry.filter", "trace").start();
    let key = server.new_key("demo/assistant");
    let client = Client::keyless(&server, "demo/assistant").with_key(&key);
    client.in_session(NEWEST).post(&ping()).expect(200);
    client.with_key(&format!("{key}x")).post(&ping()).expect(401);
    server.stop();
    let secret = secret_of(&key);
    assert!(!server.log_text().contains(secret), "the log tells a key");
    assert!(!holds(server.data(), secret.as_bytes()), "the data directory holds a key");
}

/// The secret of `rwk_{id}_{secret}`, which may have `_` itself.
fn secret_of(key: &str) -> &str {
    let secret = key.splitn(3, '_').nth(2).unwrap();
    assert!(secret.len() > 20, "{secret}");
    secret
}

/// Whether any file below `folder` has these bytes in it.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return holds(&path, bytes);
        }
        let content = fs::read(&path).unwrap_or_default();
        content.windows(bytes.len()).any(|window| window == bytes)
    })
}
