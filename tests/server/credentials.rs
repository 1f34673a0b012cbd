//! What calls prove themselves with, and what of the client goes on: only what is written down.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    Asked, Client, Events, NEWEST, Plan, Request, Service, Setup, call, json_answer, pause,
};

const TOOL: (&str, &str, &str, &str) = ("look", "GET", "/look", "");

/// Headers that a client may send and that are nobody else's business.
const PERSONAL: [(&str, &str); 6] = [
    ("Cookie", "sid=client-cookie"),
    ("X-Forwarded-For", "203.0.113.7"),
    ("X-Forwarded-User", "root"),
    ("Forwarded", "for=203.0.113.7"),
    ("Connection", "keep-alive, X-Hop"),
    ("X-Hop", "one-hop"),
];

fn with(mut request: Request, headers: &[(&str, &str)]) -> Request {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request
}

/// Nothing of the client's but what was listed.
#[track_caller]
fn is_clean(asked: &Asked, key: &str) {
    for (name, value) in PERSONAL {
        let sent = asked.header(name).unwrap_or_default();
        assert!(!sent.contains(value), "{name}: {sent}");
    }
    assert!(asked.header("X-Hop").is_none() && asked.header("X-Api-Key").is_none());
    let authorization = asked.header("Authorization").unwrap_or_default();
    assert!(!authorization.contains(key), "{authorization}");
}

#[test]
fn headers_go_on_where_they_are_listed_over_every_transport() {
    let service = Service::echo();
    let connection = format!(
        "base_url = \"{}\"\nforward_headers = {{ X-Team = \"X-Their-Team\", X-Hop = \"X-Hop\" }}",
        service.base()
    );
    let server = Setup::new().api_with(&connection, &[TOOL]).start();
    let client = Client::new(&server, "demo/assistant");
    let key = client.key.clone().unwrap();
    let mut sent = PERSONAL.to_vec();
    sent.push(("X-Team", "blue"));
    let told = |request: Request| {
        client.send(&with(request, &sent)).expect(200);
        let asked = service.asked();
        assert_eq!(asked.header("X-Their-Team"), Some("blue"));
        assert!(asked.header("X-Team").is_none());
        is_clean(&asked, &key);
    };
    told(client.message(&call(1, "look", json!({}))));
    told(client.in_session(NEWEST).message(&call(1, "look", json!({}))));
    let facade = Client { path: client.path.replace("/mcp", "/tools/look"), ..client.clone() };
    told(facade.message(&json!({})));
    let by_key = Request::new("POST", &client.path)
        .header("X-Api-Key", &key)
        .header("Accept", "application/json, text/event-stream")
        .json(&call(1, "look", json!({})));
    told(by_key);

    let legacy = Client { path: client.path.replace("/mcp", "/sse"), ..client.clone() };
    let mut stream = Events::open(legacy.connect(), &legacy.get(None)).unwrap();
    let endpoint = stream.next().unwrap().data.unwrap();
    let path = client.path.replace("mcp", "") + &endpoint;
    let posted = Client { path, session: None, ..client.clone() };
    client.send(&with(posted.message(&call(7, "look", json!({}))), &sent)).expect(202);
    let asked = service.asked();
    assert_eq!(asked.header("X-Their-Team"), Some("blue"));
    is_clean(&asked, &key);
    assert!(stream.message().is_some());
}

#[test]
fn two_connections_of_one_view_get_their_own_credentials_only() {
    let (one, two) = (Service::echo(), Service::echo());
    let first = format!(
        "base_url = \"{}\"\ncredentials = [{{ kind = \"bearer\", token = \"s3cr3t-one\" }}]",
        one.base()
    );
    let second = format!(
        "[[connection]]\ntenant = \"demo\"\nid = \"second\"\nbase_url = \"{}\"\n\
         credentials = [{{ kind = \"api_key\", place = \"header\", name = \"X-Their-Key\", value = \
         \"s3cr3t-two\" }}, {{ kind = \"api_key\", place = \"cookie\", name = \"sid\", value = \
         \"s3cr3t-cookie\" }}]\n",
        two.base()
    );
    let other = ("other", "GET", "/other", "connection = \"second\"");
    let server = Setup::new().catalog(&second).api_with(&first, &[TOOL, other]).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    for _ in 0..2 {
        client.called("look", json!({}));
        let asked = one.asked();
        assert_eq!(asked.header("Authorization"), Some("Bearer s3cr3t-one"));
        assert!(asked.header("X-Their-Key").is_none() && asked.header("Cookie").is_none());
        client.called("other", json!({}));
        let asked = two.asked();
        assert_eq!(asked.header("X-Their-Key"), Some("s3cr3t-two"));
        assert_eq!(asked.header("Cookie"), Some("sid=s3cr3t-cookie"));
        assert!(asked.header("Authorization").is_none());
    }
    // The tool moves to the connection of its toolset, and back, without a restart.
    let moved = |connection: &str| {
        format!(
            "[[tool]]\ntenant = \"demo\"\ntoolset = \"api\"\nname = \"other\"\n\
             description = \"A tool.\"\nmethod = \"GET\"\npath = \"/other\"\n{connection}\n"
        )
    };
    server.apply(&moved(""));
    client.called("other", json!({}));
    assert_eq!(one.asked().header("Authorization"), Some("Bearer s3cr3t-one"));
    server.apply(&moved("connection = \"second\""));
    client.called("other", json!({}));
    assert_eq!(two.asked().header("X-Their-Key"), Some("s3cr3t-two"));
    // Another credential of that connection is in use at once.
    server.apply(&second.replace("s3cr3t-two", "s3cr3t-new"));
    client.called("other", json!({}));
    assert_eq!(two.asked().header("X-Their-Key"), Some("s3cr3t-new"));
    let nowhere = server.write("nowhere.toml", &moved("connection = \"nowhere\""));
    server.command(&["apply", &nowhere]).failed_with(&["there is no connection demo/nowhere"]);
}

#[test]
fn fifty_calls_on_two_cores_ask_for_one_token() {
    let given = Arc::new(AtomicUsize::new(0));
    let count = given.clone();
    let issuer = Service::start(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        pause(Duration::from_millis(100));
        Plan::Answer(json_answer(&format!(
            "{{\"access_token\":\"token-{number}\",\"token_type\":\"Bearer\",\"expires_in\":1}}"
        )))
    });
    let service = Service::echo();
    let connection = format!(
        "base_url = \"{}\"\ncredentials = [{{ kind = \"oauth_client_credentials\", token_url = \
         \"{}/token\", client_id = \"id\", client_secret = \"s3cr3t-client\" }}]",
        service.base(),
        issuer.base()
    );
    let server = Setup::new().api_with(&connection, &[TOOL]).start();
    let client = Client::keyless(&server, "demo/public");
    let facade = Client { path: client.path.replace("/mcp", "/tools/look"), ..client };
    let look = || facade.post(&json!({})).expect(200).json();
    assert_eq!(look()["isError"], false);
    assert_eq!(given.load(Ordering::SeqCst), 1);
    pause(Duration::from_millis(1050));
    thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                let result = look();
                assert_eq!(result["isError"], false, "{result}");
            });
        }
    });
    assert_eq!(given.load(Ordering::SeqCst), 2, "one for all of them");
    let expected = ["token-0"].into_iter().chain(std::iter::repeat_n("token-1", 50));
    for token in expected {
        let sent = format!("Bearer {token}");
        assert_eq!(service.asked().header("Authorization"), Some(&*sent));
    }
    let asked = issuer.asked();
    let form = String::from_utf8(asked.body.clone()).unwrap();
    assert_eq!((asked.method.as_str(), form.as_str()), ("POST", "grant_type=client_credentials"));
    assert_eq!(asked.header("Content-Type"), Some("application/x-www-form-urlencoded"));
}

#[test]
fn a_missing_secret_is_warned_of_and_ends_calls_not_the_server() {
    let service = Service::echo();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let connection = format!(
        "base_url = \"{}\"\ncredentials = [{{ kind = \"bearer\", token = {{ file = \"{}\" }} }}, \
         {{ kind = \"api_key\", place = \"header\", name = \"X-K\", value = {{ environment = \
         \"RINGWAY_TEST_NOBODY_SETS\" }} }}]",
        service.base(),
        file.display()
    );
    let server = Setup::new().api_with(&connection, &[TOOL]).start();
    let catalog = server.folder().join("catalog.toml").display().to_string();
    let checked = server.command(&["check", &catalog]).succeeded();
    for part in ["warning: ", "connection demo/api: credentials[0].token: the file", "NOBODY_SETS"]
    {
        assert!(checked.stderr.contains(part), "{}", checked.stderr);
    }
    assert!(
        server.command(&["apply", &catalog]).succeeded().stderr.contains("credentials[0].token")
    );
    let client = Client::keyless(&server, "demo/public");
    let text = |value: &Value| value["content"][0]["text"].as_str().unwrap().to_owned();
    let from = server.logged();
    let result = client.post(&call(1, "look", json!({}))).expect(200).result();
    assert!(text(&result).contains("connection \"api\" cannot prove itself"), "{result}");
    assert!(!text(&result).contains(file.to_str().unwrap()), "{result}");
    let line = server.wait_for_log(from, "downstream call failed");
    assert!(
        line.contains("credentials[0].token") && line.contains(file.to_str().unwrap()),
        "{line}"
    );
    assert!(service.is_quiet(), "nothing was sent");

    // It comes to be there, while the other one is taken out.
    fs::write(&file, "from-a-file\n").unwrap();
    let fixed = connection.split(", {").next().unwrap().to_owned() + "]";
    server.apply(&format!("[[connection]]\ntenant = \"demo\"\nid = \"api\"\n{fixed}\n"));
    crate::harness::eventually("the file is read again", || {
        let result = client.post(&call(1, "look", json!({}))).expect(200).result();
        result["isError"] == false
    });
    assert_eq!(service.asked().header("Authorization"), Some("Bearer from-a-file"));
}

#[test]
fn the_token_of_a_clients_user_goes_to_the_api_it_is_for_and_nowhere_else() {
    // {"alg":"RS256"}.{"aud":…}.signature, in base64url.
    const FOR_ORDERS: &str = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJodHRwczovL29yZGVycyJ9.c2lnbmF0dXJl";
    const FOR_OTHERS: &str = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJodHRwczovL290aGVycyJ9.c2lnbmF0dXJl";
    let service = Service::echo();
    let connection = format!(
        "base_url = \"{}\"\ncredentials = [{{ kind = \"pass_through\", audience = \"https://orders\" }}]",
        service.base()
    );
    let server = Setup::new().api_with(&connection, &[TOOL]).start();
    let client = Client::new(&server, "demo/assistant");
    let key = client.key.clone().unwrap();
    let ask = |token: &str, key: &str| {
        let request = Request::new("POST", &client.path)
            .header("Authorization", &format!("Bearer {token}"))
            .header("X-Api-Key", key)
            .header("Accept", "application/json, text/event-stream")
            .json(&call(1, "look", json!({})));
        client.send(&request)
    };
    assert_eq!(ask(FOR_ORDERS, &key).expect(200).result()["isError"], false);
    let asked = service.asked();
    assert_eq!(asked.header("Authorization"), Some(&*format!("Bearer {FOR_ORDERS}")));
    assert!(asked.header("X-Api-Key").is_none());
    // For somebody else it is of no use, and it opens nothing by itself.
    assert_eq!(ask(FOR_OTHERS, &key).expect(200).result()["isError"], true);
    ask(FOR_ORDERS, "rwk_none").expect(401);
    assert!(service.is_quiet());
}

#[test]
fn a_clients_own_key_is_not_passed_on() {
    let service = Service::echo();
    let connection = format!(
        "base_url = \"{}\"\ncredentials = [{{ kind = \"pass_through\", audience = \"https://o\" }}]",
        service.base()
    );
    let server = Setup::new().api_with(&connection, &[TOOL]).start();
    let client = Client::new(&server, "demo/assistant");
    let result = client.post(&call(1, "look", json!({}))).expect(200).result();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not a token for its audience"), "{text}");
    assert!(service.is_quiet());
}
