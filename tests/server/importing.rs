//! Importing descriptions of APIs: what becomes of them in a running server, and in quickstart.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Client, Output, Plan, Ringway, Service, Setup, answer, call, json_answer};

/// An API with two operations, one of them with what no tool can do.
fn description(base: &str) -> Value {
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Pet Shop", "version": "1" },
        "servers": [{ "url": base }],
        "paths": {
            "/pets": {
                "get": {
                    "operationId": "listPets",
                    "summary": "Lists pets.",
                    "tags": ["pets"],
                    "parameters": [
                        { "name": "limit", "in": "query", "schema": { "type": "integer" } },
                    ],
                    "responses": { "200": { "description": "Pets." } },
                },
            },
            "/owners": {
                "$ref": "owners.json#/owners",
            },
        },
    })
}

fn owners() -> Value {
    json!({
        "owners": {
            "get": {
                "operationId": "listOwners",
                "summary": "Lists owners.",
                "responses": { "200": { "description": "Owners." } },
            },
        },
    })
}

struct Imported {
    server: Ringway,
    source: String,
    service: Service,
}

impl Imported {
    fn start() -> Self {
        let service = Service::echo();
        let server = Setup::new()
            .catalog("[[assignment]]\ntenant = \"demo\"\nclient_application = \"assistant\"\ntoolset = \"shop\"\n[[toolset]]\ntenant = \"demo\"\nid = \"shop\"\nkind = \"rest\"\nconnection = \"shop\"\n")
            .catalog(&format!("[[connection]]\ntenant = \"demo\"\nid = \"shop\"\nbase_url = \"{}\"\n", service.base()))
            .start();
        let source = server.write("shop.json", &description(&service.base()).to_string());
        server.write("owners.json", &owners().to_string());
        Self { server, source, service }
    }

    fn import(&self, more: &[&str]) -> Output {
        let words = ["import", "openapi", &self.source, "--toolset", "shop", "--tenant", "demo"];
        self.server.command(&[&words, more].concat())
    }

    fn report(&self, more: &[&str]) -> Value {
        let output = self.import(&[more, &["--json"]].concat()).succeeded();
        serde_json::from_str(&output.stdout).unwrap()
    }

    fn describe(&self, edit: impl FnOnce(&mut Value)) {
        let mut description = description(&self.service.base());
        edit(&mut description);
        self.server.write("shop.json", &description.to_string());
    }

    fn tools(&self) -> Vec<String> {
        let words = ["tools", "--client", "demo/assistant", "--json"];
        let listed: Value = serde_json::from_str(&self.server.command(&words).stdout).unwrap();
        let names = listed["tools"].as_array().unwrap().iter();
        let names = names.map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with("list") && !name.contains('_')).collect()
    }
}

#[test]
fn an_import_is_looked_at_then_published_then_called() {
    let imported = Imported::start();
    let dry = imported.import(&["--dry-run"]).succeeded().stdout;
    for part in
        ["GET /pets", "listPets", "added", "2 operations: 2 imported", "Nothing was changed"]
    {
        assert!(dry.contains(part), "no {part} in\n{dry}");
    }
    assert_eq!(imported.report(&["--dry-run"])["counts"]["added"], 2);
    // Not published without consent.
    imported.import(&[]).succeeded();
    assert_eq!(imported.tools(), Vec::<String>::new());
    let report = imported.report(&["--publish", "--comment", "why"]);
    assert_eq!(
        (&report["counts"]["published"], &report["counts"]["changed"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(imported.tools(), ["listOwners", "listPets"]);
    let client = Client::open(&imported.server);
    let called = client.post(&call(1, "listPets", json!({ "limit": 3 }))).result();
    assert_eq!(called["structuredContent"]["target"], "/pets?limit=3");
    // Again: nothing changes, the log of changes included.
    let again = imported.report(&["--publish"]);
    assert_eq!(again["counts"]["unchanged"], 2);
    assert_eq!(again["version"], report["version"]);
    let history = imported.server.command(&["history"]).succeeded().stdout;
    assert!(history.contains("why"), "{history}");
}

#[test]
fn changes_of_a_published_tool_are_told_and_wait_for_consent() {
    let imported = Imported::start();
    imported.import(&["--publish"]).succeeded();
    imported.describe(|description| {
        let get = &mut description["paths"]["/pets"]["get"];
        get["parameters"][0]["required"] = json!(true);
        description["paths"].as_object_mut().unwrap().remove("/owners");
    });
    let report = imported.report(&["--publish"]);
    let counts = &report["counts"];
    assert_eq!(
        (&counts["breaking"], &counts["removed"], &counts["held"]),
        (&json!(2), &json!(1), &json!(2))
    );
    let told = imported.import(&["--publish"]).succeeded().stdout;
    for part in ["fields/query/limit/required", "breaking:", "--accept-breaking", "gone"] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
    assert_eq!(imported.tools(), ["listOwners", "listPets"]);
    imported.import(&["--publish", "--accept-breaking"]).succeeded();
    assert_eq!(imported.tools(), ["listPets"]);
    let refused = imported.import(&["--accept-breaking"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn what_is_selected_is_imported_and_an_import_of_nothing_fails() {
    let imported = Imported::start();
    let report = imported.report(&["--publish", "--select", "tag:pets"]);
    assert_eq!(report["counts"]["not_selected"], 1);
    assert_eq!(imported.tools(), ["listPets"]);
    imported.import(&["--select", "nothing"]).failed_with(&["no operation was imported"]);
    let no_tenant = ["import", "openapi", &imported.source, "--toolset", "shop"];
    imported.server.command(&no_tenant).failed_with(&["--tenant", "demo, other"]);
    let wrong = imported.server.write("wrong.json", "{\"tenant\": []}");
    let words = ["import", "openapi", &wrong, "--toolset", "shop", "--tenant", "demo"];
    imported.server.command(&words).failed_with(&["wrong.json"]);
    let words = ["import", "openapi", "/nowhere", "--toolset", "shop", "--tenant", "demo"];
    imported.server.command(&words).failed_with(&["/nowhere"]);
}

#[test]
fn a_url_is_fetched_with_what_it_refers_to_and_a_file_fetches_nothing_unasked() {
    let server = Setup::new().start();
    let service = Service::start(move |asked| {
        Plan::Answer(match asked.target.as_str() {
            "/v1/shop.json" => json_answer(&description("/v1/api").to_string()),
            "/v1/owners.json" => json_answer(&owners().to_string()),
            _ => answer("404 Not Found", &[], b""),
        })
    });
    let url = format!("{}/v1/shop.json", service.base());
    let import = |source: &str, more: &[&str]| {
        let words =
            ["import", "openapi", source, "--toolset", "shop", "--tenant", "demo", "--json"];
        let output = server.command(&[&words, more].concat()).succeeded();
        serde_json::from_str::<Value>(&output.stdout).unwrap()
    };
    let report = import(&url, &[]);
    assert_eq!(report["counts"]["imported"], 2, "{report:#}");
    // Where the API is, is relative to where the description was.
    assert_eq!(report["connections"][0]["base_url"], format!("{}/v1/api", service.base()));
    let mut remote = description(&service.base());
    remote["paths"]["/owners"]["$ref"] =
        json!(format!("{}/v1/owners.json#/owners", service.base()));
    let file = server.write("remote.json", &remote.to_string());
    let report = import(&file, &["--dry-run"]);
    assert_eq!(report["counts"]["skipped"], 1, "{report:#}");
    assert!(report.to_string().contains("--allow-remote"), "{report:#}");
    // Allowed, but that host is not public, and nobody named it.
    remote["paths"]["/owners"]["$ref"] = json!("http://10.9.8.7/owners.json#/owners");
    let file = server.write("private.json", &remote.to_string());
    let report = import(&file, &["--dry-run", "--allow-remote"]);
    assert!(report.to_string().contains("egress_allowances"), "{report:#}");
}

#[test]
fn quickstart_publishes_an_api_from_its_description() {
    let service = Service::echo();
    let folder = Setup::new().prepare();
    let source = folder.write("shop.json", &description(&service.base()).to_string());
    folder.write("owners.json", &owners().to_string());
    let data = folder.folder().join("quick").display().to_string();
    let admin = format!("{data}/admin.sock");
    let run = |use_it: &dyn Fn(&str)| {
        let words = ["quickstart", "--data", &data, "--listen", "127.0.0.1:0", "--api", &source];
        let mut quickstart = Command::new(env!("CARGO_BIN_EXE_ringway"))
            .args(words)
            .env("RINGWAY_RUNTIME__PIN", "false")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(quickstart.stdout.take().unwrap()).lines();
        let mut printed = String::new();
        for line in lines.map_while(Result::ok) {
            printed += &format!("{line}\n");
            if line.contains("Ctrl-C") {
                break;
            }
        }
        use_it(&printed);
        quickstart.kill().unwrap();
        quickstart.wait().unwrap();
    };
    run(&|printed| {
        for part in ["Pet Shop: 2 of 2 operations are tools", "127.0.0.1/32", "MCP endpoint"] {
            assert!(printed.contains(part), "no {part} in\n{printed}");
        }
        let words = ["call", "listPets", "{\"limit\":2}", "--admin", &admin];
        let called = Output::of(&words, &[]).succeeded().stdout;
        assert!(called.contains("/pets?limit=2"), "{called}");
    });
    // The next start finds everything as it was.
    run(&|_| {
        let history = Output::of(&["history", "--admin", &admin], &[]).succeeded().stdout;
        assert_eq!(history.matches("import of").count(), 1, "{history}");
    });
    let mut broken = fs::File::create(&source).unwrap();
    broken.write_all(b"{\"openapi\": \"3.0.0\", \"paths\": {}}").unwrap();
    let words = ["quickstart", "--data", &data, "--listen", "127.0.0.1:0", "--api", &source];
    Output::of(&words, &[]).failed_with(&["error: "]);
}

#[test]
fn an_operation_of_another_server_or_key_is_called_with_nothing_of_the_first() {
    let (first, second) = (Service::echo(), Service::echo());
    let server = Setup::new().start();
    let get = |id: &str, scheme: &str| {
        json!({
            "operationId": id, "summary": id, "security": [{ scheme: [] }],
            "responses": { "200": { "description": "Done." } },
        })
    };
    let mut description = json!({
        "openapi": "3.0.3",
        "info": { "title": "Shop", "version": "1" },
        "servers": [{ "url": format!("{}/v1", first.base()) }],
        "components": { "securitySchemes": {
            "k1": { "type": "apiKey", "in": "header", "name": "X-Key" },
            "k2": { "type": "apiKey", "in": "header", "name": "X-Key" },
        } },
        "paths": { "/ok": { "get": get("listOk", "k1") } },
    });
    let import = |description: &Value| {
        let source = server.write("shop.json", &description.to_string());
        let words = ["import", "openapi", &source, "--toolset", "shop", "--tenant", "demo"];
        let words = [&words[..], &["--publish", "--json"]].concat();
        let output = server.command(&words).succeeded();
        serde_json::from_str::<Value>(&output.stdout).unwrap()
    };
    import(&description);
    // What is new stands before what is known.
    description["paths"]["/away"] = json!({
        "servers": [{ "url": format!("{}/other/", second.base()) }],
        "get": get("listAway", "k1"),
    });
    description["paths"]["/keyed"] = json!({ "get": get("listKeyed", "k2") });
    let report = import(&description);
    assert_eq!(report["counts"]["published"], 3, "{report:#}");
    // The server has the secrets from now on.
    let connections = report["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 3, "{report:#}");
    let export = server.command(&["export"]).succeeded().stdout;
    let mut keyed = export.clone();
    for (variable, key) in [("SHOP_K1", "first-secret-key"), ("SHOP_K2", "second-secret-key")] {
        let file = format!("file = {:?}", server.write(variable, key));
        keyed = keyed.replace(&format!("environment = {variable:?}"), &file);
    }
    assert_ne!(keyed, export, "{export}");
    let assignment = "\n[[assignment]]\ntenant = \"demo\"\nclient_application = \"assistant\"\ntoolset = \"shop\"\n";
    let file = server.write("keyed.toml", &(keyed + assignment));
    server.command(&["apply", &file]).succeeded();
    let client = Client::open(&server);
    for (tool, service, target, key) in [
        ("listOk", &first, "/v1/ok", "first-secret-key"),
        ("listKeyed", &first, "/v1/keyed", "second-secret-key"),
        ("listAway", &second, "/other/away", "first-secret-key"),
    ] {
        let called = client.post(&call(1, tool, json!({}))).result();
        assert_eq!(called["isError"], json!(false), "{called}");
        let asked = service.asked();
        assert_eq!((asked.target.as_str(), asked.header("x-key")), (target, Some(key)));
    }
    assert!(first.is_quiet() && second.is_quiet());
    // The keys that the operator wrote are those of their places.
    let report = import(&description);
    assert_eq!(report["counts"]["unchanged"], 3, "{report:#}");
    assert!(report["connections"].as_array().unwrap().iter().all(|one| one["is_new"] == false));
}
