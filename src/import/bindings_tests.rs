//! Whose credentials a connection has.

use serde_json::json;

use super::*;

fn credentials(said: Value) -> Vec<Credential> {
    serde_json::from_value(said).unwrap()
}

#[test]
fn credentials_are_told_apart_by_what_they_are_for() {
    let secret = |name: &str| json!({ "environment": name });
    let key = |place: &str, name: &str, value: Value| {
        credentials(json!([{ "kind": "api_key", "place": place, "name": name, "value": value }]))
    };
    let bearer = |token: Value| credentials(json!([{ "kind": "bearer", "token": token }]));
    let client = |url: &str, id: &str, scopes: &[&str]| {
        credentials(json!([{
            "kind": "oauth_client_credentials", "token_url": url, "client_id": id,
            "client_secret": secret("A"), "scopes": scopes,
        }]))
    };
    let described = key("header", "X-Key", secret("A"));
    let file = json!({ "file": "/key" });
    for (there, described, expected) in [
        (key("header", "x-key", secret("A")), described.clone(), Likeness::Same),
        (key("header", "X-Key", file), described.clone(), Likeness::Alike),
        (key("header", "X-Key", secret("B")), described.clone(), Likeness::Other),
        (key("header", "X-Other", secret("A")), described.clone(), Likeness::Other),
        (key("query", "X-Key", secret("A")), described.clone(), Likeness::Other),
        (bearer(secret("A")), described.clone(), Likeness::Other),
        (vec![], described, Likeness::Other),
        (bearer(json!("text")), vec![], Likeness::Other),
        (vec![], vec![], Likeness::Same),
        (
            client("https://a.test", "me", &["x"]),
            client("https://a.test", "?", &[]),
            Likeness::Same,
        ),
        (client("https://a.test", "me", &[]), client("https://b.test", "me", &[]), Likeness::Other),
    ] {
        assert_eq!(likeness(&there, &described), expected, "{there:?} {described:?}");
    }
}
