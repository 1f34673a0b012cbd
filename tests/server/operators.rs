//! The admin API, as two operators and their programs use it: entities, conditions, the
//! description that everything is held against.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{
    Answer, Client, Plan, Request, Ringway, Service, Setup, Wire, eventually, json_answer, rpc,
};

const SECRET: &str = "Bearer hidden-4711";
const MASK: &str = "***";
const FIND: (&str, &str, &str, &str) = ("find", "GET", "/find", "");

/// An operator, who notes what was asked and how it was answered.
struct Operator<'a> {
    server: &'a Ringway,
    seen: BTreeSet<(String, String, u16)>,
    texts: String,
}

impl<'a> Operator<'a> {
    fn new(server: &'a Ringway) -> Self {
        Self { server, seen: BTreeSet::new(), texts: String::new() }
    }

    fn send(&mut self, request: &Request, method: &str, template: &str) -> Answer {
        let answer = Wire::unix(&self.server.admin_socket()).ask(request);
        self.seen.insert((method.to_owned(), template.to_owned(), answer.status));
        if template != "/export" {
            self.texts += &answer.text();
        }
        answer
    }

    fn ask(&mut self, method: &str, target: &str, body: Option<&Value>) -> Answer {
        self.ask_if(method, target, &[], body)
    }

    fn ask_if(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let mut request = Request::new(method, target).header("Connection", "close");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        self.send(&request, method, &template(target))
    }
}

/// The path of a target as the description writes it.
fn template(target: &str) -> String {
    let path = target.split('?').next().unwrap();
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let names: &[&str] = match segments.as_slice() {
        ["catalog", "tenants", ..] | ["keys", ..] => &["id"],
        ["catalog", "tools", ..] => &["tenant", "toolset", "name"],
        ["catalog", "assignments", ..] => &["tenant", "client_application", "toolset"],
        ["catalog", ..] => &["tenant", "id"],
        ["changes", ..] => &["version"],
        ["upstreams", ..] => &["tenant", "toolset"],
        _ => &[],
    };
    let fixed = if segments[0] == "catalog" { 2 } else { 1 };
    let parts = segments.iter().enumerate().map(|(place, segment)| {
        match place.checked_sub(fixed).and_then(|place| names.get(place)) {
            Some(name) => format!("/{{{name}}}"),
            None => format!("/{segment}"),
        }
    });
    parts.collect()
}

/// One entity of each kind, none of which the server has, in the order in which they need each
/// other: the segment of its kind, its path, and its content.
fn one_of_each(base: &str) -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("tenants", "fresh", json!({ "id": "fresh", "egress_allowances": ["127.0.0.0/8"] })),
        ("client_applications", "fresh/app", json!({ "tenant": "fresh", "id": "app" })),
        (
            "connections",
            "fresh/api",
            json!({ "tenant": "fresh", "id": "api", "base_url": base,
                "headers": { "Authorization": SECRET } }),
        ),
        (
            "toolsets",
            "fresh/set",
            json!({ "tenant": "fresh", "id": "set", "kind": "rest", "connection": "api" }),
        ),
        (
            "tools",
            "fresh/set/one%3F",
            json!({ "tenant": "fresh", "toolset": "set", "name": "one?", "description": "One.",
                "method": "GET", "path": "/one" }),
        ),
        (
            "assignments",
            "fresh/app/set",
            json!({ "tenant": "fresh", "client_application": "app", "toolset": "set" }),
        ),
    ]
}

/// A field that every kind has room for, with a value it did not have.
fn patch_of(kind: &str) -> Value {
    match kind {
        "tools" | "assignments" => json!({ "enabled": false }),
        "connections" => json!({ "total_timeout_ms": 5000 }),
        _ => json!({ "title": "New" }),
    }
}

/// A patch that leaves no entity.
fn bad_patch() -> Value {
    json!({ "colour": "red" })
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, told to its end")]
fn everything_described_happens_and_nothing_else_and_no_secret_gets_out() {
    let server = Setup::new().unassigned_mcp("docs", "http://127.0.0.1:9/mcp", "", "").start();
    let mut it = Operator::new(&server);
    let entities = one_of_each("http://127.0.0.1:9");
    for (kind, path, content) in &entities {
        let (all, one) = (format!("/catalog/{kind}"), format!("/catalog/{kind}/{path}"));
        it.ask("GET", &one, None).expect(404);
        it.ask("PATCH", &one, Some(&patch_of(kind))).expect(404);
        it.ask("DELETE", &one, None).expect(404);
        it.ask("POST", &format!("{all}?dry_run=true"), Some(content)).expect(200);
        it.ask("GET", &one, None).expect(404);
        it.ask("PUT", &format!("{one}?dry_run=true"), Some(content)).expect(200);
        it.ask("POST", &all, Some(content)).expect(201);
        it.ask_if("DELETE", &one, &[("If-Match", "*")], None).expect(200);
        let put = it.ask_if("PUT", &one, &[("If-None-Match", "*")], Some(content)).expect(201);
        it.ask_if("PUT", &one, &[("If-None-Match", "*")], Some(content)).expect(412);
        assert!(put.header("ETag").is_some());
        it.ask("POST", &all, Some(content)).expect(409);
        it.ask("POST", &all, Some(&bad_patch())).expect(422);
        it.ask("POST", &format!("{all}?colour=red"), Some(content)).expect(400);
        it.ask("GET", &format!("{all}?colour=red"), None).expect(400);
        it.ask("GET", &format!("{one}?colour=red"), None).expect(400);

        let read = it.ask("GET", &one, None).expect(200);
        let tag = read.header("ETag").unwrap().to_owned();
        assert_eq!(put.header("ETag"), Some(&*tag));
        it.ask_if("GET", &one, &[("If-None-Match", &tag)], None).expect(304);
        let listed = it.ask("GET", &format!("{all}?tenant=fresh"), None).expect(200).json();
        assert_eq!(listed["items"][0]["entity"], read.json(), "{kind}");
        assert_eq!(listed["items"][0]["etag"], tag);

        let patch = patch_of(kind);
        let good = [("If-Match", &*tag)];
        for (method, body) in [("PUT", Some(content)), ("PATCH", Some(&patch)), ("DELETE", None)] {
            it.ask(method, &one, body).expect(428);
            it.ask_if(method, &one, &[("If-Match", "\"old\"")], body).expect(412);
            it.ask_if(method, &one, &[("If-Match", "old")], body).expect(400);
        }
        it.ask_if("PUT", &one, &good, Some(&bad_patch())).expect(422);
        it.ask_if("PATCH", &one, &good, Some(&bad_patch())).expect(422);
        let patched = it.ask_if("PATCH", &one, &good, Some(&patch)).expect(200).json();
        assert_ne!(patched["etag"], tag);
        it.ask_if("PATCH", &one, &good, Some(&patch)).expect(412);
        let put = it.ask_if("PUT", &one, &[("If-Match", "*")], Some(content)).expect(200);
        assert_eq!(put.header("ETag"), Some(&*tag), "the same content has the same tag");
    }

    // A tool is shown and hidden.
    let tool = "/catalog/tools/fresh/set/one%3F";
    for what in ["unpublish", "publish"] {
        let done = it.ask("POST", &format!("{tool}/{what}"), None).expect(200).json();
        assert_eq!(done["entity"]["enabled"], what == "publish");
        it.ask("POST", &format!("/catalog/tools/fresh/set/none/{what}"), None).expect(404);
        let stale = [("If-Match", "\"old\"")];
        it.ask_if("POST", &format!("{tool}/{what}"), &stale, None).expect(412);
        it.ask("POST", &format!("{tool}/{what}?dry_run=maybe"), None).expect(400);
    }

    // What others need cannot be deleted; from the other end on, everything can.
    for (kind, path, _) in &entities[..4] {
        let refused =
            it.ask_if("DELETE", &format!("/catalog/{kind}/{path}"), &[("If-Match", "*")], None);
        let text = refused.expect(422).text();
        assert!(text.contains("is still needed") && text.contains("there is no"), "{text}");
    }
    let before = it.ask("GET", "/status", None).expect(200).json()["catalog_version"].clone();
    for (kind, path, _) in entities.iter().rev() {
        let one = format!("/catalog/{kind}/{path}");
        it.ask_if("DELETE", &one, &[("If-Match", "*")], None).expect(200);
        it.ask("GET", &one, None).expect(404);
    }

    // The change log, and the way back.
    it.ask("GET", "/changes", None).expect(200);
    it.ask("GET", "/changes?limit=none", None).expect(400);
    it.ask("GET", "/changes/2", None).expect(200);
    it.ask("GET", "/changes/99999", None).expect(404);
    it.ask("GET", "/changes/two", None).expect(400);
    let rollback = format!("/changes/{before}/rollback");
    it.ask("POST", &format!("{rollback}?expected_version=1"), None).expect(412);
    it.ask("POST", &format!("{rollback}?expected_version=x"), None).expect(400);
    it.ask("POST", "/changes/99999/rollback", None).expect(404);
    it.ask("POST", &rollback, None).expect(200);
    it.ask("GET", "/catalog/connections/fresh/api", None).expect(200);

    // An upstream server of which nothing waits.
    it.ask("GET", "/upstreams?colour=red", None).expect(400);
    eventually("the server is known", || {
        it.ask("GET", "/upstreams", None).expect(200).json()["upstreams"] != json!([])
    });
    for (method, of) in
        [("GET", ""), ("POST", "/refresh"), ("POST", "/approve"), ("POST", "/refuse")]
    {
        let all = json!({ "definitions": [
            { "kind": "tool", "name": "none", "hash": "0".repeat(64) }
        ] });
        let body = Some(&all).filter(|_| of == "/approve" || of == "/refuse");
        it.ask(method, &format!("/upstreams/demo/none{of}"), body).expect(404);
        it.ask(method, &format!("/upstreams/demo/docs{of}?colour=red"), body).expect(400);
    }
    let docs = it.ask("GET", "/upstreams/demo/docs", None).expect(200);
    let tag = docs.header("ETag").unwrap().to_owned();
    it.ask("POST", "/upstreams/demo/docs/refresh", None).expect(200);
    for act in ["approve", "refuse"] {
        let target = format!("/upstreams/demo/docs/{act}");
        let named = |hash: &str| json!({ "definitions": [{ "kind": "tool", "name": "none", "hash": hash }] });
        let all = json!({ "all": true });
        it.ask("POST", &target, Some(&named(&"0".repeat(64)))).expect(412);
        it.ask("POST", &target, Some(&named("0"))).expect(400);
        it.ask("POST", &target, Some(&json!({}))).expect(400);
        it.ask("POST", &target, Some(&all)).expect(428);
        it.ask_if("POST", &target, &[("If-Match", "\"old\"")], Some(&all)).expect(412);
        it.ask_if("POST", &target, &[("If-Match", &tag)], Some(&all)).expect(200);
    }

    // The rest of what there is.
    let exported = it.ask("GET", "/export", None).expect(200);
    assert!(exported.text().contains(SECRET), "it could not be applied");
    let masked = it.ask("GET", "/export?mask=true", None).expect(200);
    assert!(!masked.text().contains("hidden-4711"));
    it.ask("GET", "/export?mask=yes", None).expect(400);
    let rows = exported.json()["rows"].clone();
    let same = it.ask("POST", "/apply", Some(&json!({ "rows": rows, "prune": true }))).expect(200);
    assert_eq!(same.json()["changes"], json!([]));
    let same = it.ask("POST", "/apply", Some(&masked.json())).expect(200);
    assert_eq!(same.json()["changes"], json!([]), "a mask keeps what is there");
    it.ask("POST", "/apply", Some(&json!({ "rows": {}, "prune": true }))).expect(422);
    it.ask("POST", "/apply", Some(&json!({ "rows": {}, "expected_version": 1 }))).expect(412);
    it.ask("POST", "/apply", Some(&json!({ "rows": {}, "colour": "red" }))).expect(400);
    it.ask("POST", "/reload", None).expect(200);
    it.ask("POST", "/reload?colour=red", None).expect(400);
    server.write("catalog.toml", "[[tenant]]\nid = 5\n");
    it.ask("POST", "/reload", None).expect(422);
    let key = json!({ "tenant": "fresh", "client_application": "app" });
    let made = it.ask("POST", "/keys", Some(&key)).expect(200).json();
    let id = made["id"].as_str().unwrap();
    it.ask("POST", "/keys", Some(&json!({ "tenant": "fresh" }))).expect(400);
    let none = json!({ "tenant": "fresh", "client_application": "none" });
    it.ask("POST", "/keys", Some(&none)).expect(404);
    let odd = json!({ "tenant": "FRESH", "client_application": "app" });
    it.ask("POST", "/keys", Some(&odd)).expect(422);
    it.ask("POST", &format!("/keys/{id}/revoke"), None).expect(200);
    it.ask("POST", "/keys/none/revoke", None).expect(404);
    for target in ["/sessions", "/keys", "/status", "/metrics", "/openapi.json"] {
        it.ask("GET", target, None).expect(200);
        it.ask("GET", &format!("{target}?colour=red"), None).expect(400);
        assert!(it.ask("TRACE", target, None).status >= 400);
    }
    it.ask("GET", "/explain?client=demo/assistant&tool=list_tools", None).expect(200);
    it.ask("GET", "/explain?colour=red", None).expect(400);
    it.ask("GET", "/explain?client=demo/none&tool=list_tools", None).expect(404);
    it.ask("POST", "/notify", None).expect(200);
    it.ask("POST", "/notify?colour=red", None).expect(400);
    it.ask("POST", &format!("/keys/{id}/revoke?colour=red"), None).expect(400);
    let stranger = [("X-Author", "a\tb")];
    it.ask_if("GET", "/status", &stranger, None).expect(400);

    let why = "/explain?client=fresh/app&tool=set/one%3F";
    it.ask("GET", why, None).expect(200);
    it.ask("GET", &format!("{why}&trust=total"), None).expect(400);
    it.ask("GET", "/explain?client=fresh/none&tool=one", None).expect(404);

    let large = json!({ "id": "large", "title": "x".repeat(8 << 20) });
    it.ask("POST", "/catalog/tenants", Some(&large)).expect(413);

    // All that is described was seen, but for what only a broken machine shows; and the other way.
    let description = it.ask("GET", "/openapi.json", None).expect(200).json();
    let mut described = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for status in operation["responses"].as_object().unwrap().keys() {
                let status: u16 = status.parse().unwrap();
                described.insert((method.to_uppercase(), path.clone(), status));
            }
        }
    }
    let rare = |status: u16| matches!(status, 413 | 500 | 503);
    let unseen: Vec<_> = described
        .iter()
        .filter(|entry| !rare(entry.2) && !it.seen.contains(*entry))
        // A patch or a deletion of what exists is tried for each kind; these need more.
        .filter(|(method, path, status)| !is_excused(method, path, *status))
        .collect();
    assert!(unseen.is_empty(), "described and never seen: {unseen:?}");
    let undescribed: Vec<_> =
        it.seen.iter().filter(|seen| seen.0 != "TRACE" && !described.contains(*seen)).collect();
    assert!(undescribed.is_empty(), "seen and not described: {undescribed:?}");

    assert!(it.texts.contains(MASK));
    assert!(!it.texts.contains("hidden-4711"), "a secret got out");
    assert!(!server.log_text().contains("hidden-4711"), "a secret is in the log");
}

/// What the catalog of the test cannot show.
fn is_excused(method: &str, path: &str, status: u16) -> bool {
    match (method, status) {
        // Nothing refers to assignments and tools.
        ("DELETE", 422) => {
            path.starts_with("/catalog/assign") || path.starts_with("/catalog/tools")
        }
        // A tool that cannot be compiled is refused hidden too; a state that was good once is.
        ("POST", 422) => path.ends_with("/rollback") || path.ends_with("publish"),
        _ => false,
    }
}

#[test]
fn two_operators_cannot_overwrite_each_other() {
    let server = Setup::new().start();
    let (mut one, mut other) = (Operator::new(&server), Operator::new(&server));
    let target = "/catalog/client_applications/demo/desk";
    let read = |operator: &mut Operator<'_>| {
        let answer = operator.ask("GET", target, None).expect(200);
        (answer.header("ETag").unwrap().to_owned(), answer.json())
    };
    let ((tag, _), (stale, content)) = (read(&mut one), read(&mut other));
    let title = json!({ "title": "Front desk" });
    one.ask_if("PATCH", target, &[("If-Match", &tag)], Some(&title)).expect(200);
    let mut content = content;
    content["instructions"] = json!("Be kind.");
    let refused = other.ask_if("PUT", target, &[("If-Match", &stale)], Some(&content)).expect(412);
    let text = refused.json()["error"].as_str().unwrap().to_owned();
    assert!(text.contains("client application demo/desk"), "{text}");
    assert!(text.contains("read it again"), "{text}");
    let (tag, mut content) = read(&mut other);
    content["instructions"] = json!("Be kind.");
    other.ask_if("PUT", target, &[("If-Match", &tag)], Some(&content)).expect(200);
    let (_, content) = read(&mut one);
    assert_eq!(
        (&content["title"], &content["instructions"]),
        (&json!("Front desk"), &json!("Be kind."))
    );

    // Of many who write at once, on what they all have read, one gets through.
    let (tag, _) = read(&mut one);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|number| {
                let (tag, server) = (&tag, &server);
                scope.spawn(move || {
                    let patch = json!({ "title": format!("Desk {number}") });
                    let mut operator = Operator::new(server);
                    operator.ask_if("PATCH", target, &[("If-Match", tag)], Some(&patch)).status
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 7, "{statuses:?}");
}

#[test]
fn a_mask_that_is_sent_back_keeps_the_secret() {
    let service = Service::start(|asked| {
        // Not the values themselves: they would be taken out of the answer.
        let sent = [("Authorization", SECRET), ("X-Old", "old-secret"), ("X-New", "new-secret")]
            .map(|(name, secret)| asked.header(name).map(|value| value == secret));
        Plan::Answer(json_answer(&json!({ "sent": sent }).to_string()))
    });
    let connection = format!(
        "base_url = \"{}\"\nheaders = {{ Authorization = \"{SECRET}\", X-Old = \"old-secret\" }}",
        service.base()
    );
    let server = Setup::new().api_with(&connection, &[FIND]).start();
    let mut it = Operator::new(&server);
    let target = "/catalog/connections/demo/api";
    let read = it.ask("GET", target, None).expect(200);
    let mut content = read.json();
    assert_eq!(content["headers"], json!({ "Authorization": MASK, "X-Old": MASK }));
    content["headers"] = json!({ "Authorization": MASK, "X-New": "new-secret" });
    content["total_timeout_ms"] = json!(4000);
    let if_match = [("If-Match", read.header("ETag").unwrap())];
    let told = it.ask_if("PUT", target, &if_match, Some(&content)).expect(200).json();
    let fields: Vec<&str> = told["changes"][0]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["headers.X-New", "headers.X-Old", "total_timeout_ms"]);
    let client = Client::open(&server);
    let called = client.post(&crate::harness::call(1, "find", json!({}))).result();
    assert_eq!(called["structuredContent"]["sent"], json!([true, null, true]));

    // A mask for nothing is refused; so is a secret in the wrong place, which is not quoted.
    let patch = json!({ "headers": { "X-None": MASK } });
    let refused = it.ask_if("PATCH", target, &[("If-Match", "*")], Some(&patch)).expect(422);
    assert!(refused.text().contains("headers.X-None"), "{}", refused.text());
    let patch = json!({ "headers": SECRET });
    it.ask_if("PATCH", target, &[("If-Match", "*")], Some(&patch)).expect(422);
    for secret in ["hidden-4711", "old-secret", "new-secret"] {
        assert!(!it.texts.contains(secret), "{secret} got out");
        assert!(!server.log_text().contains(secret), "{secret} is in the log");
    }
}

#[test]
fn clients_see_a_tool_while_it_is_published() {
    let service = Service::echo();
    let server = Setup::new().api(&service.base(), &[FIND]).start();
    let client = Client::open(&server);
    let mut standing = client.standing();
    let mut it = Operator::new(&server);
    let tools = || {
        let listed = client.post(&rpc(1, "tools/list", json!({}))).result();
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.filter(|tool| tool["name"] == "find").count()
    };
    assert_eq!(tools(), 1);
    for (what, seen) in [("unpublish", 0), ("publish", 1)] {
        it.ask("POST", &format!("/catalog/tools/demo/api/find/{what}?dry_run=true"), None)
            .expect(200);
        it.ask("POST", &format!("/catalog/tools/demo/api/find/{what}"), None).expect(200);
        assert_eq!(tools(), seen);
        assert_eq!(standing.message().unwrap()["method"], "notifications/tools/list_changed");
        // Again: nothing differs, so there is no new version and nobody is told.
        let again = it.ask("POST", &format!("/catalog/tools/demo/api/find/{what}"), None);
        assert_eq!(again.expect(200).json()["changes"], json!([]));
    }
}

#[test]
fn lists_come_in_pages() {
    let server = Setup::new().start();
    let mut it = Operator::new(&server);
    let mut keys = Vec::new();
    let mut target = "/catalog/client_applications?limit=2".to_owned();
    loop {
        let page = it.ask("GET", &target, None).expect(200).json();
        for item in page["items"].as_array().unwrap() {
            let entity = &item["entity"];
            keys.push(format!("{}/{}", entity["tenant"], entity["id"]).replace('"', ""));
        }
        let Some(next) = page["next"].as_str() else { break };
        target = format!("/catalog/client_applications?limit=2&after={}", next.replace('/', "%2F"));
    }
    assert_eq!(keys, ["demo/assistant", "demo/desk", "demo/public", "other/assistant"]);
    let one = it.ask("GET", "/catalog/client_applications?tenant=other", None).expect(200).json();
    assert_eq!(one["items"].as_array().unwrap().len(), 1);
    for bad in ["limit=0", "limit=1001", "limit=x", "limit=1&limit=2"] {
        it.ask("GET", &format!("/catalog/tools?{bad}"), None).expect(400);
    }
}

#[test]
fn a_body_that_says_two_things_of_one_key_is_refused() {
    let server = Setup::new().start();
    let create = Request::new("POST", "/catalog/tenants")
        .header("Connection", "close")
        .header("Content-Type", "application/json")
        .body(br#"{"id":"one","id":"two"}"#.as_slice());
    let refused = Wire::unix(&server.admin_socket()).ask(&create).expect(400);
    assert!(refused.text().contains("duplicate key"), "{refused:?}");
    for tenant in ["one", "two"] {
        server.admin("GET", &format!("/catalog/tenants/{tenant}"), None).expect(404);
    }
}

#[test]
fn what_has_no_effect_is_told_and_is_no_error() {
    let service = Service::echo();
    let find = (
        "find",
        "GET",
        "/find",
        r#"fields = [{ source_field_name = "q", location = "query" }]
response_fields = [{ source_field_name = "id" }]
redact = ["qq"]"#,
    );
    let server = Setup::new().api(&service.base(), &[find]).start();
    let told = |remarks: &Value| remarks.as_array().unwrap().len();
    let status = || server.admin("GET", "/status", None).expect(200).json();
    assert_eq!(told(&status()["catalog_remarks"]), 1, "{}", status());
    let lines = server.command(&["status"]).succeeded().stdout;
    assert!(lines.contains("tool demo/api/find: redact: nothing is at \"qq\""), "{lines}");
    let policy = "[[client_application]]\ntenant = \"demo\"\nid = \"public\"\nopen = true\n\
                  policy = { rules = [{ effect = \"deny\", tools = [\"fin\"] }] }\n";
    let file = server.write("policy.toml", policy);
    for more in [vec!["--dry-run"], vec![]] {
        let done = server.command(&[vec!["apply", &file], more].concat()).succeeded();
        let warning = "warning: ";
        assert!(done.stderr.contains(warning) && done.stderr.contains("`fin` fits no tool"));
        assert!(done.stderr.contains("policy.toml:1: client application demo/public"), "{done:?}");
    }
    assert_eq!(told(&status()["catalog_remarks"]), 2);
    let checked = server.command(&["check"]).succeeded();
    assert!(checked.stderr.contains("\"qq\""), "{checked:?}");
    // Over the API, and gone once it is put right.
    let patch = json!({ "redact": ["q"] });
    let request = Request::new("PATCH", "/catalog/tools/demo/api/find").header("If-Match", "*");
    let done = Wire::unix(&server.admin_socket()).ask(&request.json(&patch)).expect(200).json();
    assert_eq!(told(&done["remarks"]), 1, "{done}");
}

#[test]
fn what_a_tool_sends_as_its_credential_is_shown_to_nobody() {
    const SECRET: &str = "t0p-s3cret-4711";
    let service = Service::start(|asked| {
        let body = json!({ "key": asked.header("X-Api-Key"), "target": asked.target });
        Plan::Answer(json_answer(&body.to_string()))
    });
    let fields = format!(
        r#"fields = [
  {{ source_field_name = "X-Api-Key", location = "header", constant = "{SECRET}" }},
  {{ source_field_name = "token", location = "query", constant = "{SECRET}" }},
]
log_payloads = true"#
    );
    let server = Setup::new().api(&service.base(), &[("find", "GET", "/find", &fields)]).start();
    let client = Client::keyless(&server, "demo/public");
    let result = client.called("find", json!({}));
    assert!(result.to_string().contains("[removed]"), "{result}");
    assert!(!result.to_string().contains(SECRET), "{result}");
    let asked = service.asked();
    assert_eq!(asked.header("X-Api-Key"), Some(SECRET));
    assert!(asked.target.contains(SECRET));

    let path = "/catalog/tools/demo/api/find";
    let read = server.admin("GET", path, None).expect(200);
    let mut entity = read.json();
    assert_eq!(entity["fields"][0]["constant"], "***");
    // Written back as it was read, with something else changed.
    entity["description"] = "Another.".into();
    let request = Request::new("PUT", path).header("If-Match", read.header("ETag").unwrap());
    let done = Wire::unix(&server.admin_socket()).ask(&request.json(&entity)).expect(200);
    assert!(!done.text().contains(SECRET), "{}", done.text());
    client.called("find", json!({}));
    assert_eq!(service.asked().header("X-Api-Key"), Some(SECRET));

    let patch = json!({ "fields": [
        { "source_field_name": "X-Api-Key", "location": "header", "constant": "***" },
        { "source_field_name": "token", "location": "query", "constant": "other-s3cret" },
    ] });
    let request = Request::new("PATCH", path).header("If-Match", "*").json(&patch);
    let done = Wire::unix(&server.admin_socket()).ask(&request).expect(200);
    assert!(!done.text().contains("s3cret"), "{}", done.text());
    for words in [vec!["history", "3"], vec!["export", "--mask"], vec!["audit", "export"]] {
        let shown = server.command(&words).succeeded().stdout;
        assert!(!shown.contains("s3cret"), "{words:?}: {shown}");
    }
    assert!(!server.log_text().contains("s3cret"));
    // Whole, it goes to another server; masked, back to this one.
    let whole = server.command(&["export"]).succeeded().stdout;
    assert!(whole.contains(SECRET) && whole.contains("other-s3cret"));
    for text in [whole, server.command(&["export", "--mask"]).succeeded().stdout] {
        let file = server.write("exported.toml", &text);
        let same = server.command(&["apply", "--prune", &file]).succeeded().stdout;
        assert!(same.starts_with("0 added, 0 changed, 0 removed"), "{same}");
    }
}
