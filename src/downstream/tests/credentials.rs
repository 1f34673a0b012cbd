//! What calls prove themselves with, against real services.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::api::{Api, answer, json_answer, pause};
use super::support::{
    ENVIRONMENT, call, caller, caller_with, declared, json, on_a_core, posting, request, tool,
    tool_at,
};
use crate::downstream::error::{CallError, CredentialProblem, Unreachable};
use crate::rt;

/// An API that keeps what it was asked.
fn listening() -> (Api, Arc<Mutex<Vec<String>>>) {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&heard);
    let api = Api::start(move |_, talk| {
        while let Some(asked) = talk.request() {
            kept.lock().unwrap().push(asked);
            talk.say(json_answer("200 OK", "{}"));
        }
    });
    (api, heard)
}

/// An authorization server whose tokens are `token-1`, `token-2` and so on, and how many it gave.
fn issuing(seconds: &'static str, wait: Duration) -> (Api, Arc<AtomicUsize>) {
    let given = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&given);
    let server = Api::start(move |_, talk| {
        while let Some(asked) = talk.request() {
            assert!(asked.starts_with("POST /token HTTP/1.1"), "{asked}");
            // id:s3cr3t-client
            assert!(asked.contains("Basic aWQ6czNjcjN0LWNsaWVudA=="), "{asked}");
            assert!(asked.contains("grant_type=client_credentials&scope=a+b"), "{asked}");
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            pause(wait);
            let body = format!(
                "{{\"access_token\":\"token-{number}\",\"token_type\":\"Bearer\"{seconds}}}"
            );
            talk.say(json_answer("200 OK", &body));
        }
    });
    (server, given)
}

fn oauth(server: &Api) -> String {
    format!(
        "credentials = [{{ kind = \"oauth_client_credentials\", token_url = \
         \"http://{}/token\", client_id = \"id\", client_secret = \"s3cr3t-client\", scopes = \
         [\"a\", \"b\"] }}]",
        server.address
    )
}

#[test]
fn static_credentials_go_where_they_belong_and_nowhere_else() {
    let (api, heard) = listening();
    let keyed = tool(
        &api,
        "credentials = [{ kind = \"api_key\", place = \"query\", name = \"key\", value = \
         \"s3cr3t-query\" }, { kind = \"basic\", username = \"u\", password = \"s3cr3t-pass\" }]",
    );
    let bare = tool(&api, "");
    call(&keyed, &request("GET", "/x?a=b")).unwrap();
    call(&bare, &request("GET", "/x?a=b")).unwrap();
    let heard = heard.lock().unwrap();
    assert!(heard[0].starts_with("GET /v1/x?a=b&key=s3cr3t-query HTTP"), "{}", heard[0]);
    assert!(heard[0].contains("Authorization: Basic dTpzM2NyM3QtcGFzcw=="), "{}", heard[0]);
    assert!(heard[1].starts_with("GET /v1/x?a=b HTTP"), "{}", heard[1]);
    assert!(!heard[1].to_ascii_lowercase().contains("authorization"), "{}", heard[1]);
}

#[test]
fn a_key_in_the_query_shows_in_no_answer_and_follows_redirects_once() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&asked);
    let api = Api::start(move |_, talk| {
        while let Some(request) = talk.request() {
            let target = request.split(' ').nth(1).unwrap().to_owned();
            let is_first = target.starts_with("/v1/from");
            kept.lock().unwrap().push(target.clone());
            if is_first {
                let to = target.replace("/v1/from", "/v1/to");
                talk.say(answer("302 Found", &format!("Location: {to}\r\n"), b""));
            } else {
                talk.say(json_answer("200 OK", &format!("{{\"url\":\"{target}\"}}")));
            }
        }
    });
    let tool = tool(
        &api,
        "follow_redirects = true\ncredentials = [{ kind = \"api_key\", place = \"query\", name = \
         \"key\", value = \"s3cr3t-query\" }]",
    );
    let outcome = call(&tool, &request("GET", "/from?a=b"));
    assert_eq!(outcome, json("{\"url\":\"/v1/to?a=b&key=[removed]\"}"));
    let expected = ["/v1/from?a=b&key=s3cr3t-query", "/v1/to?a=b&key=s3cr3t-query"];
    assert_eq!(*asked.lock().unwrap(), expected);
}

#[test]
fn secrets_come_from_files_and_a_missing_one_is_named_for_the_operator() {
    let (api, heard) = listening();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, "from-a-file\n").unwrap();
    let tool = tool(
        &api,
        &format!(
            "credentials = [{{ kind = \"bearer\", token = {{ file = \"{}\" }} }}]",
            path.display()
        ),
    );
    call(&tool, &request("GET", "/")).unwrap();
    assert!(heard.lock().unwrap()[0].contains("Authorization: Bearer from-a-file\r\n"));
    std::fs::remove_file(&path).unwrap();
    let error = call(&tool, &request("GET", "/")).unwrap_err();
    assert!(error.to_string().contains("connection \"orders\""), "{error}");
    assert!(!error.to_string().contains("token\""), "{error}");
    let detail = error.detail();
    assert!(detail.contains("credentials[0].token") && detail.contains("/token: No"), "{detail}");
    assert_eq!(heard.lock().unwrap().len(), 1, "nothing was sent");
}

#[test]
fn fifty_calls_at_the_end_of_a_token_ask_for_one() {
    let (server, given) = issuing(",\"expires_in\":1", Duration::from_millis(200));
    let (api, heard) = listening();
    let tool = tool(&api, &oauth(&server));
    on_a_core(async {
        let caller = Rc::new(caller());
        caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await.result.unwrap();
        assert_eq!(given.load(Ordering::SeqCst), 1);
        rt::sleep(Duration::from_millis(1100)).await;
        let done = Rc::new(AtomicUsize::new(0));
        for _ in 0..50 {
            let (caller, tool, done) = (Rc::clone(&caller), Arc::clone(&tool), Rc::clone(&done));
            rt::spawn(async move {
                let outcome = caller.run(&tool, &posting(b"{}"), &ENVIRONMENT).await.result;
                assert_eq!(outcome, json("{}"));
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        while done.load(Ordering::SeqCst) < 50 {
            rt::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(given.load(Ordering::SeqCst), 2, "one for all of them");
    });
    let heard = heard.lock().unwrap();
    assert!(heard[0].contains("Authorization: Bearer token-1\r\n"), "{}", heard[0]);
    assert!(heard[1..].iter().all(|asked| asked.contains("Bearer token-2\r\n")));
}

#[test]
fn a_dropped_call_takes_nobodys_token_with_it() {
    let (server, given) = issuing("", Duration::from_millis(200));
    let (api, heard) = listening();
    let tool = tool(&api, &oauth(&server));
    on_a_core(async {
        let caller = caller();
        let asked = request("GET", "/");
        let first = caller.run(&tool, &asked, &ENVIRONMENT);
        assert!(rt::timeout(Duration::from_millis(50), first).await.is_err());
        caller.run(&tool, &asked, &ENVIRONMENT).await.result.unwrap();
        assert_eq!(given.load(Ordering::SeqCst), 1);
    });
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[test]
fn a_refused_token_is_replaced_once_even_for_a_post() {
    let (server, given) = issuing("", Duration::ZERO);
    let api = Api::start(|_, talk| {
        while let Some(asked) = talk.request() {
            if asked.contains("Bearer token-1\r\n") || asked.contains("never") {
                talk.say(json_answer("401 Unauthorized", "{\"detail\":\"token-2 is old\"}"));
            } else {
                talk.say(json_answer("200 OK", "{}"));
            }
        }
    });
    let tool = tool(&api, &oauth(&server));
    on_a_core(async {
        let caller = caller();
        let outcome = caller.run(&tool, &posting(b"{}"), &ENVIRONMENT).await;
        assert_eq!((outcome.result, outcome.status), (json("{}"), Some(200)));
        assert_eq!(given.load(Ordering::SeqCst), 2);
        // One that is refused again at once is not replaced with every call.
        for _ in 0..3 {
            let outcome = caller.run(&tool, &posting(b"\"never\""), &ENVIRONMENT).await;
            assert_eq!(outcome.status, Some(401));
            let text = super::support::failure(outcome.result);
            assert!(text.contains("was refused"), "{text}");
        }
        assert_eq!(given.load(Ordering::SeqCst), 2);
    });
}

/// The error of a call whose token endpoint answers so.
fn token_error(answered: String) -> CallError {
    let (api, heard) = listening();
    let server = Api::answering(answered);
    let error = call(&tool(&api, &oauth(&server)), &request("GET", "/")).unwrap_err();
    assert!(heard.lock().unwrap().is_empty(), "nothing was sent");
    let all = format!("{error} {error:?} {}", error.detail());
    assert!(!all.contains("s3cr3t") && !all.contains("czNjcjN0"), "{all}");
    error
}

#[test]
fn what_a_token_endpoint_does_wrong_is_told_without_secrets() {
    let body = "{\"error\":\"invalid_client\",\"error_description\":\"s3cr3t-client is wrong\"}";
    let refused = token_error(json_answer("401 Unauthorized", body));
    let expected = "connection \"orders\" cannot prove itself to its API: its token endpoint \
                    refused it: invalid_client";
    assert_eq!(refused.to_string(), expected);
    let moved = answer("307 Temporary Redirect", "Location: http://127.0.0.1:9/token\r\n", b"");
    let moved = token_error(moved);
    assert!(moved.detail().contains("redirects are not followed"), "{}", moved.detail());
    let large = "x".repeat(100 * 1024);
    let large = token_error(json_answer("200 OK", &large));
    let is_unusable = |error: &CallError| {
        matches!(error, CallError::Credential { problem: CredentialProblem::TokenUnusable, .. })
    };
    assert!(is_unusable(&large), "{large:?}");
    assert!(is_unusable(&token_error(json_answer("200 OK", "{\"access_token\":7}"))));
}

#[test]
fn a_failure_is_remembered_shortly() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = Api::start(move |_, talk| {
        while talk.request().is_some() {
            count.fetch_add(1, Ordering::SeqCst);
            talk.say(json_answer("400 Bad Request", "{\"error\":\"invalid_scope\"}"));
        }
    });
    let (api, _) = listening();
    let tool = tool(&api, &oauth(&server));
    on_a_core(async {
        let caller = caller();
        for _ in 0..10 {
            let outcome = caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await.result;
            assert!(outcome.unwrap_err().to_string().ends_with("refused it: invalid_scope"));
        }
    });
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn the_egress_policy_holds_for_token_endpoints_too() {
    let (api, heard) = listening();
    let connection = oauth(&api).replace(&api.address.to_string(), "169.254.169.254");
    let error = call(&tool(&api, &connection), &request("GET", "/")).unwrap_err();
    let blocked = CredentialProblem::TokenUnreachable(Unreachable::Blocked);
    assert!(
        matches!(&error, CallError::Credential { problem, .. } if *problem == blocked),
        "{error:?}"
    );
    assert!(!error.to_string().contains("169.254"), "{error}");
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn what_is_not_public_is_refused_without_an_allowance() {
    let (api, heard) = listening();
    for host in ["10.255.255.1", "[fd00::1]", "100.64.0.1", "0.0.0.0", "[::ffff:10.0.0.1]"] {
        let tool = tool_at(&format!("http://{host}:{}", api.address.port()), "");
        let error = call(&tool, &request("GET", "/")).unwrap_err();
        let is_blocked =
            matches!(error, CallError::Unreachable { problem: Unreachable::Blocked, .. });
        assert!(is_blocked, "{host}: {error}");
        assert!(error.to_string().ends_with("not allowed by the operator's egress policy"));
        let detail = error.detail();
        assert!(detail.contains("egress_allowances"), "{detail}");
        assert!(detail.contains("tenant `acme`"), "{detail}");
    }
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn settings_close_what_a_tenant_would_allow() {
    let (api, heard) = listening();
    let tool = tool(&api, "");
    on_a_core(async {
        let caller = caller_with(|settings| {
            settings.blocked_networks = vec!["127.0.0.0/8".parse().unwrap()];
        });
        let error = caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await.result.unwrap_err();
        assert!(error.detail().contains("downstream.blocked_networks"), "{}", error.detail());
    });
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn redirects_to_another_host_are_not_followed() {
    let location = "Location: http://169.254.169.254/latest/meta-data/\r\n";
    let api = Api::answering(answer("302 Found", location, b""));
    let tool = tool(&api, "follow_redirects = true");
    let text = super::support::failure(call(&tool, &request("GET", "/")));
    assert!(text.contains("which is not followed") && !text.contains("meta-data"), "{text}");
}

#[test]
fn a_pass_through_without_a_token_for_it_is_refused() {
    let (api, heard) = listening();
    let tool = declared(
        &format!("http://{}", api.address),
        "credentials = [{ kind = \"pass_through\", audience = \"https://orders\" }]",
        "method = \"GET\"\npath = \"/anything\"",
    );
    let error = call(&tool, &request("GET", "/")).unwrap_err();
    let problem = CredentialProblem::NotForAudience;
    assert!(matches!(&error, CallError::Credential { problem: p, .. } if *p == problem));
    assert!(heard.lock().unwrap().is_empty());
}
