//! Each way a policy decides, seen from all sides: the client, the audit log and `ringway explain`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::harness::{
    Client, NEWEST, Request, Ringway, Service, Setup, Wire, call, eventually, rpc,
};

const LOOK: (&str, &str, &str, &str) = ("look", "GET", "/look", "");
const SAVE: (&str, &str, &str, &str) = ("save", "POST", "/save", "");
const DROP: (&str, &str, &str, &str) = ("drop", "DELETE", "/drop", "");
/// What it does to the world depends on an argument.
const RUN: (&str, &str, &str, &str) = (
    "run",
    "POST",
    "/run",
    r#"fields = [{ source_field_name = "mode", location = "body", required = true }]
side_effect = "write"
side_effect_by = { argument = "mode", values = { show = "read", purge = "destructive" } }"#,
);

/// A server with `acme/app` under these policies.
fn server(service: &Service, tenant: &str, client: &str, assignment: &str) -> Ringway {
    let mut text = format!(
        "[[tenant]]\nid = \"acme\"\negress_allowances = [\"127.0.0.0/8\", \"::1/128\"]\n{tenant}\n\
         [[client_application]]\ntenant = \"acme\"\nid = \"app\"\n{client}\n\
         [[connection]]\ntenant = \"acme\"\nid = \"api\"\nbase_url = \"{}\"\n\
         [[toolset]]\ntenant = \"acme\"\nid = \"api\"\nkind = \"rest\"\nconnection = \"api\"\n\
         [[assignment]]\ntenant = \"acme\"\nclient_application = \"app\"\ntoolset = \"api\"\n\
         {assignment}\n",
        service.base()
    );
    for (name, method, path, more) in [LOOK, SAVE, DROP, RUN] {
        text += &format!(
            "[[tool]]\ntenant = \"acme\"\ntoolset = \"api\"\nname = \"{name}\"\n\
             description = \"A tool.\"\nmethod = \"{method}\"\npath = \"{path}\"\n{more}\n"
        );
    }
    Setup::new().set("runtime.cores", 1).catalog(&text).start()
}

/// A client with a key of this trust.
fn trusted(server: &Ringway, trust: &str) -> Client {
    let made = server.command(&["key", "create", "--client", "acme/app", "--trust", trust]);
    let key = made.succeeded().stdout;
    Client::keyless(server, "acme/app").with_key(key.trim()).in_session(NEWEST)
}

fn names(client: &Client) -> Vec<String> {
    let result = client.post(&rpc(1, "tools/list", json!({}))).expect(200).result();
    let tools = result["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// What the log says of the newest call of this tool: decision, reason and observed reason.
fn last(server: &Ringway, tool: &str) -> (String, String, Option<String>) {
    let newest = || {
        let mut records = server.records();
        records.retain(|record| record["tool"] == tool && record["call_type"] == "tool_execution");
        records.pop()
    };
    let text = |record: &Value, key: &str| record[key].as_str().map(str::to_owned);
    // Calls are made one after another, so that a record is of the last one once its mark is there.
    let record = newest().expect("a record");
    let observed = text(&record, "observed");
    (text(&record, "decision").unwrap(), text(&record, "reason").unwrap(), observed)
}

/// Calls over the protocol and plain HTTP, and gives the reason that the log has for both.
fn reason(server: &Ringway, client: &Client, tool: &str, arguments: &Value) -> String {
    let of_tool = |tool: &str| {
        let records = server.records();
        let mine = |record: &&Value| record["tool"] == tool && record["toolset"] != Value::Null;
        let mine = records.iter().filter(mine);
        mine.filter(|record| record["call_type"] != "schema_discovery").count()
    };
    let before = of_tool(tool);
    let reply = client.reply(&call(1, tool, arguments.clone()));
    let target = format!("/runtime/acme/app/tools/{tool}");
    let key = client.key.clone().unwrap();
    let request = Request::new("POST", &target)
        .json(arguments)
        .header("Authorization", &format!("Bearer {key}"));
    let plain = client.send(&request).json();
    eventually("both calls are recorded", || of_tool(tool) == before + 2);
    let records = server.records();
    let mut mine = records.iter().rev().filter(|record| record["tool"] == tool);
    let (one, other) = (mine.next().unwrap(), mine.next().unwrap());
    assert_eq!((&one["reason"], &one["decision"]), (&other["reason"], &other["decision"]));
    let code = one["reason"].as_str().unwrap().to_owned();
    let is_allowed = one["decision"] == "allowed";
    assert_eq!(is_allowed, code == "allowed");
    assert_eq!(plain["isError"], !is_allowed, "{plain}");
    let is_ran = reply["result"]["isError"] == false;
    assert_eq!(is_ran, is_allowed, "{reply}");
    code
}

/// The conclusion of `ringway explain`, and all of its text.
fn explained(server: &Ringway, tool: &str, trust: &str) -> (String, String) {
    let words = ["explain", "--client", "acme/app", "--tool", tool, "--trust", trust];
    let text = server.command(&words).succeeded().stdout;
    let mut words: Vec<&str> = words.into();
    words.push("--json");
    let json: Value = serde_json::from_str(&server.command(&words).succeeded().stdout).unwrap();
    (json["conclusion"].as_str().unwrap().to_owned(), text)
}

/// A clock time so many minutes from now, in UTC.
fn clock(minutes: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let minute = (i64::try_from(now / 60).unwrap() + minutes).rem_euclid(24 * 60);
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

#[test]
fn a_window_allows_while_it_is_open() {
    let service = Service::echo();
    let window = |from: i64, to: i64, more: &str| {
        format!(
            "policy = {{ rules = [{{ effect = \"allow\", tools = [\"api/s*\"], windows = [\
             {{ from = \"{}\", to = \"{}\"{more} }}] }}] }}",
            clock(from),
            clock(to)
        )
    };
    let server = server(&service, "", "", &window(-60, 60, ""));
    let client = trusted(&server, "medium");
    assert_eq!(reason(&server, &client, "save", &json!({})), "allowed");
    let assign = |policy: &str| {
        server.apply(&format!(
            "[[assignment]]\ntenant = \"acme\"\nclient_application = \"app\"\ntoolset = \"api\"\n\
             {policy}\n"
        ));
    };
    for closed in [
        window(60, 120, ""),
        // The same hours by the clock of another place, where it is later.
        window(-60, 60, ", utc_offset = \"+05:00\""),
    ] {
        assign(&closed);
        assert_eq!(reason(&server, &client, "save", &json!({})), "outside_window");
        let (conclusion, text) = explained(&server, "save", "medium");
        assert_eq!(conclusion, "refused");
        assert!(text.contains("outside_window") && text.contains("next from"), "{text}");
        // It is listed: it may be called at other times. Other tools are not concerned.
        assert!(names(&client).contains(&"save".to_owned()));
        assert_eq!(reason(&server, &client, "look", &json!({})), "allowed");
    }
    let before = server.records().len();
    let told = client.called("save", json!({}));
    assert!(told["content"][0]["text"].as_str().unwrap().contains("other times"), "{told}");
    eventually("the call is recorded", || server.records().len() == before + 1);
    assign(&window(-60 + 300, 60 + 300, ", utc_offset = \"+05:00\""));
    assert_eq!(reason(&server, &client, "save", &json!({})), "allowed");
}

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A place where it is shortly after midnight: its offset, and the days of yesterday and today there.
/// The next half hour does not change that.
fn after_midnight() -> (String, &'static str, &'static str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = i64::try_from(now / 60).unwrap();
    let (begin, day) = (10, 24 * 60);
    let minute = now.rem_euclid(day);
    // West of here, or east where that is nearer.
    let offset = if minute - begin <= day / 2 { begin - minute } else { begin - minute + day };
    let local = now + offset;
    assert_eq!(local.rem_euclid(day), begin);
    // 1970-01-01 was a Thursday.
    let weekday = |days: i64| WEEKDAYS[usize::try_from((days + 3).rem_euclid(7)).unwrap()];
    let sign = if offset < 0 { '-' } else { '+' };
    let text = format!("{sign}{:02}:{:02}", offset.abs() / 60, offset.abs() % 60);
    (text, weekday(local.div_euclid(day) - 1), weekday(local.div_euclid(day)))
}

#[test]
fn a_window_is_of_the_day_on_which_it_begins_also_over_midnight() {
    let service = Service::echo();
    let (offset, yesterday, today) = after_midnight();
    let window = |day: &str, from: &str, to: &str| {
        format!(
            "{{ days = [\"{day}\"], from = \"{from}\", to = \"{to}\", utc_offset = \"{offset}\" }}"
        )
    };
    let policy = |windows: &str| {
        format!(
            "policy = {{ rules = [{{ effect = \"allow\", tools = [\"save\"], \
             windows = [{windows}] }}] }}"
        )
    };
    let server = server(&service, "", "", "");
    let client = trusted(&server, "medium");
    let reason_under = |windows: &str| {
        server.apply(&format!(
            "[[assignment]]\ntenant = \"acme\"\nclient_application = \"app\"\ntoolset = \"api\"\n\
             {}\n",
            policy(windows)
        ));
        reason(&server, &client, "save", &json!({}))
    };
    // It is shortly after midnight, and the night began yesterday.
    assert_eq!(reason_under(&window(yesterday, "22:00", "06:00")), "allowed");
    // That of today begins tonight.
    assert_eq!(reason_under(&window(today, "22:00", "06:00")), "outside_window");
    let (conclusion, text) = explained(&server, "save", "medium");
    assert_eq!(conclusion, "refused");
    assert!(text.contains(&format!("{today} 22:00-06:00 {offset}")), "{text}");
    // Without midnight in between, today is today.
    assert_eq!(reason_under(&window(today, "00:00", "06:00")), "allowed");
    assert_eq!(reason_under(&window(yesterday, "00:00", "06:00")), "outside_window");
    // One of several is enough.
    let both = [window(yesterday, "00:00", "06:00"), window(yesterday, "22:00", "06:00")];
    assert_eq!(reason_under(&both.join(", ")), "allowed");
}

#[test]
fn a_key_may_do_what_its_trust_allows() {
    let service = Service::echo();
    let policy = "policy = { rules = [\
        { effect = \"allow\", side_effects = [\"destructive\"], required_trust = \"high\" },\
        { effect = \"allow\", side_effects = [\"write\"], required_trust = \"medium\" } ] }";
    let server = server(&service, "", policy, "");
    for (trust, look, save, drop) in [
        ("low", "allowed", "trust_too_low", "trust_too_low"),
        ("medium", "allowed", "allowed", "trust_too_low"),
        ("high", "allowed", "allowed", "allowed"),
    ] {
        let client = trusted(&server, trust);
        // Trust is of the caller, the list of the client application.
        assert_eq!(names(&client), ["drop", "look", "run", "save"]);
        for (tool, expected) in [("look", look), ("save", save), ("drop", drop)] {
            assert_eq!(reason(&server, &client, tool, &json!({})), expected, "{trust} {tool}");
            let (conclusion, text) = explained(&server, tool, trust);
            let is_allowed = expected == "allowed";
            assert_eq!(conclusion, if is_allowed { "allowed" } else { "refused" });
            assert!(text.contains(expected), "{text}");
        }
        let by = |mode: &str| reason(&server, &client, "run", &json!({ "mode": mode }));
        assert_eq!(
            (by("show").as_str(), by("x").as_str(), by("purge").as_str()),
            (look, save, drop)
        );
    }
    assert_eq!(explained(&server, "run", "low").0, "depends");
    // An operator is trusted most, unless he says what a key may.
    let operator = |more: &[&str]| {
        let words = ["call", "--client", "acme/app", "drop"];
        server.command(&[&words, more].concat())
    };
    operator(&[]).succeeded();
    operator(&["--trust", "high"]).succeeded();
    for trust in ["low", "medium"] {
        let refused = operator(&["--trust", trust]);
        refused.failed_with(&["the tool reported an error"]);
        eventually("the refusal is recorded", || last(&server, "drop").1 == "trust_too_low");
    }
    operator(&["--trust", "total"]).failed_with(&["low, medium and high"]);
    let request = Request::new("POST", "/runtime/acme/app/mcp")
        .json(&rpc(1, "tools/list", json!({})))
        .header("X-Trust", "total");
    let refused = Wire::unix(&server.admin_socket()).ask(&request).expect(400).text();
    assert!(refused.contains("X-Trust must be low, medium or high"), "{refused}");
    // Clients have the trust of their key, whatever they say.
    let key = trusted(&server, "low").key.unwrap();
    let request = Request::new("POST", "/runtime/acme/app/tools/drop")
        .json(&json!({}))
        .header("X-Api-Key", &key)
        .header("X-Trust", "high");
    let called = Wire::tcp(server.address()).ask(&request).json();
    assert_eq!(called["isError"], true, "{called}");
}

#[test]
fn what_no_rule_allows_is_not_there_where_a_tenant_denies_by_default() {
    let service = Service::echo();
    let policy = "policy = { rules = [{ effect = \"allow\", tools = [\"look\"] }] }";
    let server = server(&service, "default_deny = true", policy, policy);
    let client = trusted(&server, "high");
    assert_eq!(names(&client), ["look"]);
    assert_eq!(reason(&server, &client, "look", &json!({})), "allowed");
    assert_eq!(client.reply(&call(1, "save", json!({})))["error"]["code"], -32602);
    let (conclusion, text) = explained(&server, "save", "high");
    assert_eq!(conclusion, "hidden");
    assert!(text.contains("default_deny"), "{text}");
    // The client is told nothing, the log all: which tool it was, and that it was hidden.
    eventually("the refusal is recorded", || {
        server.records().iter().any(|record| record["tool"] == "save")
    });
    let (decision, reason, _) = last(&server, "save");
    assert_eq!((&*decision, &*reason), ("denied", "unknown_tool"));
    // Turned off, everything that no rule denies is there.
    server.apply("[[tenant]]\nid = \"acme\"\n");
    assert_eq!(names(&client).len(), 4);
}

#[test]
fn a_rule_that_denies_hides_and_says_so_to_the_operator_only() {
    let service = Service::echo();
    let policy = "policy = { rules = [{ effect = \"deny\", tools = [\"api/d*\"] }] }";
    let server = server(&service, "", "", policy);
    let client = trusted(&server, "high");
    assert_eq!(names(&client), ["look", "run", "save"]);
    let unknown = client.reply(&call(1, "dxyz", json!({})))["error"]["message"].clone();
    let hidden = client.reply(&call(1, "drop", json!({})))["error"]["message"].clone();
    assert_eq!(hidden.as_str().unwrap().replace("drop", "dxyz"), unknown.as_str().unwrap());
    let (conclusion, text) = explained(&server, "drop", "high");
    assert_eq!(conclusion, "hidden");
    assert!(text.contains("denied_by_rule") && text.contains("rule 1"), "{text}");
    assert_eq!(explained(&server, "dxyz", "high").0, "hidden");
    // One that allows some of what a tool can do, lets it be seen.
    server.apply(
        "[[assignment]]\ntenant = \"acme\"\nclient_application = \"app\"\ntoolset = \"api\"\n\
         policy = { rules = [{ effect = \"deny\", side_effects = [\"destructive\"] }] }\n",
    );
    assert_eq!(names(&client), ["look", "run", "save"]);
    assert_eq!(reason(&server, &client, "run", &json!({ "mode": "show" })), "allowed");
    assert_eq!(reason(&server, &client, "run", &json!({ "mode": "purge" })), "denied_by_rule");
    let told = client.called("run", json!({ "mode": "purge" }));
    assert!(told["content"][0]["text"].as_str().unwrap().contains("policy denies"), "{told}");
}

#[test]
fn a_policy_that_observes_records_what_it_would_have_done() {
    let service = Service::echo();
    let observing = |rules: &str| format!("policy = {{ mode = \"observe\", rules = [{rules}] }}");
    let closed = format!(
        "{{ effect = \"allow\", tools = [\"save\"], windows = [{{ from = \"{}\", to = \"{}\" }}] }}",
        clock(60),
        clock(120)
    );
    let rules = [
        "{ effect = \"deny\", tools = [\"drop\"] }",
        "{ effect = \"allow\", tools = [\"look\"], required_trust = \"high\" }",
        &closed,
    ];
    let server = server(&service, "", "", &observing(&rules.join(", ")));
    let client = trusted(&server, "medium");
    assert_eq!(names(&client).len(), 4, "nothing is hidden");
    for (tool, observed) in [
        ("drop", "observed_denied_by_rule"),
        ("look", "observed_trust_too_low"),
        ("save", "observed_outside_window"),
    ] {
        assert_eq!(reason(&server, &client, tool, &json!({})), "allowed");
        let (decision, _, found) = last(&server, tool);
        assert_eq!((&*decision, found.as_deref()), ("allowed", Some(observed)));
        let (conclusion, text) = explained(&server, tool, "medium");
        assert_eq!(conclusion, "allowed");
        assert!(text.contains("(observes)"), "{text}");
    }
    assert_eq!(reason(&server, &client, "run", &json!({ "mode": "x" })), "allowed");
    assert_eq!(last(&server, "run").2, None);
    // Found by what was observed.
    let words = ["audit", "query", "--reason", "observed_trust_too_low", "--json"];
    let found = server.command(&words).succeeded().stdout;
    assert!(found.lines().count() == 2 && found.contains("\"look\""), "{found}");
}

#[test]
fn plain_http_lists_and_describes_what_the_policy_leaves() {
    let service = Service::echo();
    let policy = "discovery_mode = \"lazy\"\n\
                  policy = { rules = [{ effect = \"deny\", tools = [\"drop\"] }] }";
    let server = server(&service, "", "", policy);
    let client = trusted(&server, "medium");
    let get = |path: &str| {
        let key = format!("Bearer {}", client.key.as_deref().unwrap());
        let request = Request::new("GET", &format!("/runtime/acme/app/{path}"));
        client.send(&request.header("Authorization", &key))
    };
    let listed = get("tools").expect(200).json();
    let listed: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert!(!listed.contains(&"drop".into()) && listed.contains(&"run".into()), "{listed:?}");
    get("tools/drop").expect(404);
    // One tool is told in full, as is the description: a program has to be written against it.
    let run = get("tools/run").expect(200).json();
    assert_eq!(run["inputSchema"]["required"], json!(["mode"]));
    let document = get("openapi.json").expect(200).json();
    let paths = document["paths"].as_object().unwrap();
    assert!(!paths.contains_key("/tools/drop") && !document.to_string().contains("/drop"));
    let body = &paths["/tools/run"]["post"]["requestBody"];
    assert!(body.to_string().contains("\"mode\""), "{body}");
    // Another policy, another description.
    server.apply(
        "[[assignment]]\ntenant = \"acme\"\nclient_application = \"app\"\ntoolset = \"api\"\n",
    );
    let document = get("openapi.json").expect(200).json();
    assert!(document["paths"]["/tools/drop"].is_object());
}

#[test]
fn a_list_says_what_each_tool_does_to_the_world_in_the_words_of_its_revision() {
    let service = Service::echo();
    let server = server(&service, "", "", "");
    let client = trusted(&server, "medium");
    let tool = |revision: &str, name: &str| {
        let client = client.in_session(revision);
        let result = client.post(&rpc(1, "tools/list", json!({}))).expect(200).result();
        let mut tools = result["tools"].as_array().unwrap().clone().into_iter();
        tools.find(|tool| tool["name"] == name).unwrap()
    };
    for (name, effect, is_reading, confirm) in [
        ("look", "read", true, false),
        ("save", "write", false, false),
        ("drop", "destructive", false, true),
    ] {
        let tool = tool(NEWEST, name);
        let safety = &tool["_meta"]["io.ringway/safety"];
        assert_eq!(safety["sideEffect"], effect);
        assert_eq!(safety["mutationIntent"], !is_reading);
        assert_eq!(safety["confirmationRecommended"], confirm, "{name}");
        // What a hint says by itself is not said.
        assert_eq!(tool["annotations"]["readOnlyHint"] == true, is_reading, "{tool}");
    }
    let drop = tool(NEWEST, "drop");
    assert_eq!(drop["annotations"]["destructiveHint"], true);
    assert_eq!(drop["annotations"]["idempotentHint"], true);
    let depends = json!({
        "argument": "mode", "values": { "show": "read", "purge": "destructive" },
    });
    assert_eq!(tool(NEWEST, "run")["_meta"]["io.ringway/safety"]["dependsOn"], depends);
    assert!(tool("2025-03-26", "drop")["annotations"].is_object());
    assert!(tool("2025-03-26", "drop").get("_meta").is_none());
    assert!(tool("2024-11-05", "drop").get("annotations").is_none());
}
