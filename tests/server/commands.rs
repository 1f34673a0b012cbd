//! The command line: what it prints, how it ends, and what its errors tell to do.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{
    Client, Output, Plan, Ringway, Service, Setup, answer, eventually, json_answer, ping,
};

const FIND: (&str, &str, &str, &str) = ("find", "GET", "/find", "");

/// A toolset of `demo` for `demo/assistant` with one tool.
fn one_more(base: &str, name: &str) -> String {
    format!(
        "[[connection]]\ntenant = \"demo\"\nid = \"more\"\nbase_url = \"{base}\"\n\
         [[toolset]]\ntenant = \"demo\"\nid = \"more\"\nkind = \"rest\"\nconnection = \"more\"\n\
         [[assignment]]\ntenant = \"demo\"\nclient_application = \"assistant\"\n\
         toolset = \"more\"\n\
         [[tool]]\ntenant = \"demo\"\ntoolset = \"more\"\nname = \"{name}\"\n\
         description = \"One more.\"\nmethod = \"GET\"\npath = \"/more\"\n"
    )
}

fn setting(key: &str, value: impl ToString) -> Vec<(String, String)> {
    vec![(key.to_owned(), value.to_string())]
}

#[test]
fn check_names_every_error_with_file_and_line() {
    let server = Setup::new().prepare();
    let catalog = server.write(
        "broken.toml",
        "[[tenant]]\nid = \"demo\"\n\
         [[client_application]]\ntenant = \"nobody\"\nid = \"assistant\"\n\
         [[toolset]]\ntenant = \"demo\"\nid = \"api\"\nkind = \"rest\"\nconnection = \"missing\"\n\
         [[tool]]\ntenant = \"demo\"\ntoolset = \"api\"\nname = \"find\"\ndescription = \"x\"\n\
         method = \"GET\"\npath = \"/{id}\"\n\
         [[tenant]]\nid = \"demo2\"\ncolour = \"red\"\n",
    );
    let failed = Output::of(&["check", &catalog], &[]).failed_with(&["found."]);
    for (line, part) in [(3, "nobody"), (6, "missing"), (11, "id"), (20, "colour")] {
        let place = format!("{catalog}:{line}");
        let found = failed.stderr.lines().any(|text| text.contains(&place) && text.contains(part));
        assert!(found, "no {place} with {part} in:\n{}", failed.stderr);
    }
    assert_eq!(failed.stdout, "");
    // What is missing may be in a running server; what is wrong by itself is wrong everywhere.
    assert!(failed.stderr.contains("a running server may have"), "{}", failed.stderr);
    assert!(!failed.stderr.contains("Nothing was changed"), "{}", failed.stderr);
    let catalog = server.write("wrong.toml", "[[tenant]]\nid = \"demo\"\ncolour = \"red\"\n");
    let failed = Output::of(&["check", &catalog], &[]).failed_with(&["1 problem found."]);
    assert!(!failed.stderr.contains("running server"), "{}", failed.stderr);

    let good = server.folder().join("catalog.toml").display().to_string();
    let output = Output::of(&["check", &good], &[]).succeeded();
    assert!(output.stdout.contains("good"), "{}", output.stdout);
}

#[test]
fn check_names_every_wrong_setting_with_file_and_line() {
    let server = Setup::new().prepare();
    let settings = server.write(
        "ringway.toml",
        "[listen]\nruntime = \"nowhere\"\n\n[runtime]\ncore = 2\nworker_threads = 0\n",
    );
    for words in [["check", "--config"], ["serve", "--config"]] {
        let failed = Output::of(&[words[0], words[1], &settings], &[]);
        let failed = failed.failed_with(&["runtime.core", "cores", "worker_threads"]);
        for line in [2, 5, 6] {
            let place = format!("{settings}:{line}");
            assert!(failed.stderr.contains(&place), "no {place} in:\n{}", failed.stderr);
        }
    }
    let failed = Output::of(&["check"], &setting("RINGWAY_RUNTIME__CORE", 2));
    failed.failed_with(&["RINGWAY_RUNTIME__CORE"]);
    Output::of(&["check", "--config", "/nowhere/ringway.toml"], &[])
        .failed_with(&["/nowhere/ringway.toml"]);
}

#[test]
fn apply_changes_what_clients_see_and_tells_those_concerned() {
    let service = Service::echo();
    let server = Setup::new().start();
    let (demo, other) = (Client::open(&server), Client::new(&server, "other/assistant"));
    let other = other.in_session("2025-06-18");
    let (mut concerned, mut unconcerned) = (demo.standing(), other.standing());
    let file = server.write("more.toml", &one_more(&service.base(), "more"));
    let admin = server.admin_socket().display().to_string();
    let tools = || {
        let listed = demo.post(&crate::harness::rpc(1, "tools/list", json!({}))).result();
        listed["tools"].as_array().unwrap().len()
    };
    let before = tools();

    let dry = Output::of(&["apply", "--admin", &admin, "--dry-run", &file], &[]).succeeded();
    assert!(dry.stdout.contains("+ tool demo/more/more"), "{}", dry.stdout);
    assert!(dry.stdout.contains("4 added, 0 changed, 0 removed"), "{}", dry.stdout);
    assert!(dry.stdout.contains("Nothing was changed"), "{}", dry.stdout);
    assert_eq!(tools(), before);

    let applied = server.command(&["apply", &file]).succeeded().stdout;
    assert!(applied.contains("+ tool demo/more/more"), "{applied}");
    assert_eq!(concerned.message().unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(tools(), before + 1);
    let called = demo.post(&crate::harness::call(2, "more", json!({}))).result();
    assert_eq!(called["structuredContent"]["target"], "/more");

    // Again: nothing differs. Changed: a sign for it. Nobody is told of what is the same.
    let again = server.command(&["apply", &file]).succeeded().stdout;
    assert!(again.contains("0 added, 0 changed, 0 removed"), "{again}");
    let renamed = one_more(&service.base(), "more").replace("One more.", "Another.");
    let file = server.write("more.toml", &renamed);
    let changed = server.command(&["apply", &file]).succeeded().stdout;
    assert!(changed.contains("~ tool demo/more/more"), "{changed}");
    assert!(concerned.message().is_some());

    demo.delete().expect(204);
    other.delete().expect(204);
    assert_eq!(concerned.rest().len(), 0, "told once for each change");
    assert_eq!(unconcerned.rest().len(), 0, "another tenant was told");
}

#[test]
fn what_was_applied_outlives_a_crash() {
    let service = Service::echo();
    let mut server = Setup::new().start();
    let file = server.write("more.toml", &one_more(&service.base(), "more"));
    server.command(&["apply", &file]).succeeded();
    server.kill();
    server.start();
    let listed = server.command(&["tools", "--client", "demo/assistant"]).succeeded().stdout;
    assert!(listed.lines().any(|line| line.starts_with("more ")), "{listed}");
}

#[test]
fn apply_refuses_what_names_missing_entities_and_changes_nothing() {
    let server = Setup::new().start();
    let text = one_more("http://127.0.0.1:9", "more").replace("assistant", "nobody");
    let file = server.write("more.toml", &text);
    let failed = server.command(&["apply", &file]).failed_with(&["nobody"]);
    assert!(!failed.stdout.contains('+'), "{}", failed.stdout);
    let status = server.admin("GET", "/status", None).expect(200).json();
    assert_eq!(status["tools"], 3);
    let file = server.write("more.toml", "[[tool]\n");
    server.command(&["apply", &file]).failed_with(&["more.toml:1"]);
    server.command(&["apply", "/nowhere.toml"]).failed_with(&["/nowhere.toml"]);
}

#[test]
fn the_catalog_is_read_again_on_sighup() {
    let service = Service::echo();
    let server = Setup::new().api(&service.base(), &[FIND]).start();
    let client = Client::open(&server);
    let mut stream = client.standing();
    stream.primed();
    let path = server.folder().join("catalog.toml");
    let good = fs::read_to_string(&path).unwrap();
    let from = server.logged();
    fs::write(&path, "[[tenant").unwrap();
    server.signal("HUP");
    let line = server.wait_for_log(from, "reload changed nothing");
    assert!(server.log_text().contains("catalog.toml:1"), "{line}");
    client.post(&crate::harness::call(1, "find", json!({}))).expect(200);
    fs::write(&path, good.replace("name = \"find\"", "name = \"look\"")).unwrap();
    server.signal("HUP");
    assert!(stream.message().is_some());
    let look = client.post(&crate::harness::call(1, "look", json!({}))).result();
    assert_eq!(look["structuredContent"]["target"], "/find");
}

#[test]
fn tools_and_call_are_what_a_client_sees() {
    let service = Service::start(|asked| {
        Plan::Answer(if asked.target.starts_with("/find") {
            json_answer("{\"id\":9007199254740993}")
        } else {
            answer("404 Not Found", &[("Content-Type", "text/plain")], b"no such pet")
        })
    });
    let fields =
        "fields = [{ source_field_name = \"name\", location = \"query\", required = true }]";
    let tools = [("find", "GET", "/find", fields), ("lose", "GET", "/lose", "")];
    let server = Setup::new().api(&service.base(), &tools).start();
    let client = ["--client", "demo/assistant"];
    let run = |words: &[&str]| server.command(&[words, &client].concat());

    let listed = run(&["tools"]).succeeded().stdout;
    for name in ["TOOL", "find", "lose", "runtime_status"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{listed}");
    }
    let listed: Value = serde_json::from_str(&run(&["tools", "--json"]).stdout).unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 5);

    let called = run(&["call", "find", "{\"name\":\"Rex\"}"]).succeeded();
    assert!(called.stdout.contains("9007199254740993"), "{}", called.stdout);
    assert_eq!(service.asked().target, "/find?name=Rex");
    let whole: Value =
        serde_json::from_str(&run(&["call", "find", "{\"name\":\"a\"}", "--json"]).stdout).unwrap();
    assert!(whole["structuredContent"]["id"].is_number());

    let failed = run(&["call", "lose"]);
    assert!(failed.stdout.contains("404") && failed.stdout.contains("no such pet"), "{failed:?}");
    assert_eq!(failed.code, Some(1));
    run(&["call", "find", "{}"]).failed_with(&["the tool reported an error"]);
    run(&["call", "nothing"]).failed_with(&["nothing"]);
    run(&["call", "find", "[1]"]).failed_with(&["JSON object"]);
    run(&["call", "find", "{name"]).failed_with(&["not JSON"]);
    let several = server.command(&["tools"]);
    several.failed_with(&["--client", "demo/assistant", "other/assistant"]);
    server.command(&["tools", "--client", "demo/nobody"]).failed_with(&["ringway status"]);
}

#[test]
fn status_and_sessions_tell_how_it_is() {
    let server = Setup::new().start();
    let client = Client::open(&server);
    let mut stream = client.standing();
    stream.primed();
    let status = server.command(&["status"]).succeeded().stdout;
    for part in
        [env!("CARGO_PKG_VERSION"), "healthy", "demo/assistant", &server.address().to_string()]
    {
        assert!(status.contains(part), "no {part} in\n{status}");
    }
    let status: Value =
        serde_json::from_str(&server.command(&["status", "--json"]).succeeded().stdout).unwrap();
    assert_eq!((&status["sessions"], &status["streams"]), (&json!(1), &json!(1)));
    assert_eq!(status["cores"], 2);

    let listed = server.command(&["sessions"]).succeeded();
    for part in ["demo/assistant", "2025-11-25", "integration 1"] {
        assert!(listed.stdout.contains(part), "no {part} in\n{}", listed.stdout);
    }
    assert!(listed.stderr.contains("1 of 1"), "{}", listed.stderr);
    let id = client.session.as_deref().unwrap();
    assert!(!listed.stdout.contains(id), "a session's id is a credential");
    drop(stream);
    eventually("the stream is gone", || server.metric("ringway_streams_open") < 1.0);
}

#[test]
fn without_a_server_commands_say_how_to_start_one() {
    let server = Setup::new().prepare();
    for words in [&["status"][..], &["tools"], &["key", "list"], &["sessions"]] {
        server.command(words).failed_with(&["no running server", "ringway serve", "admin.sock"]);
    }
}

/// A start that must fail, and what it says.
fn start_fails(server: &Ringway, more: &[(&str, &str)], parts: &[&str]) {
    let mut settings = server.settings().to_vec();
    settings.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Output::of(&["serve"], &settings).failed_with(parts);
}

#[test]
fn a_start_that_fails_says_what_to_do() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut server = Setup::new().prepare();
    start_fails(&server, &[("RINGWAY_LISTEN__RUNTIME", &address)], &[&address, "another port"]);

    let wrong = server.write("wrong.pem", "nothing of the kind\n");
    let tls = [("RINGWAY_LISTEN__CERTIFICATE", &*wrong), ("RINGWAY_LISTEN__KEY", &*wrong)];
    start_fails(&server, &tls, &["wrong.pem", "certificate"]);
    start_fails(&server, &tls[..1], &["listen.certificate", "`key`"]);
    let missing = server.folder().join("nothing.toml").display().to_string();
    start_fails(&server, &[("RINGWAY_RUNTIME__CATALOG", &missing)], &["nothing.toml"]);
    // Of its own: what a start has read stays in the store, and is referred to.
    let fresh = Setup::new().prepare();
    let broken = fresh.write("broken.toml", &one_more("http://127.0.0.1:9", "more"));
    start_fails(
        &fresh,
        &[("RINGWAY_RUNTIME__CATALOG", &broken)],
        &["broken.toml:", "assistant", "demo"],
    );

    server.start();
    let other = taken_by_another(&server);
    assert!(other.stderr.contains(&server.data().display().to_string()), "{}", other.stderr);
    server.command(&["status"]).succeeded();
    Client::open(&server).post(&ping()).expect(200);
}

#[test]
fn a_start_that_finds_its_port_taken_leaves_no_catalog_behind() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut server = Setup::new().prepare();
    let ghost = "[[tenant]]\nid = \"ghost\"\n\
                 [[client_application]]\ntenant = \"ghost\"\nid = \"one\"\nopen = true\n";
    let ghost = server.write("ghost.toml", ghost);
    let settings = [("RINGWAY_LISTEN__RUNTIME", &*address), ("RINGWAY_RUNTIME__CATALOG", &ghost)];
    start_fails(&server, &settings, &[&address]);
    server.start();
    let status = server.admin("GET", "/status", None).expect(200).json();
    let clients = status["client_applications"].to_string();
    assert!(clients.contains("demo/assistant") && !clients.contains("ghost"), "{clients}");
}

#[test]
fn a_file_larger_than_a_clients_body_is_applied() {
    const TOOLS: usize = 2000;
    let server = Setup::new().start();
    let mut text = one_more("http://127.0.0.1:9", "more");
    let description = "x".repeat(2900);
    for number in 0..TOOLS {
        text += &format!(
            "[[tool]]\ntenant = \"demo\"\ntoolset = \"more\"\nname = \"tool_{number}\"\n\
             description = \"{description}\"\nmethod = \"GET\"\npath = \"/more\"\n"
        );
    }
    assert!(text.len() > 5_900_000, "{} bytes", text.len());
    let file = server.write("large.toml", &text);
    let applied = server.command(&["apply", &file]).succeeded().stdout;
    assert!(applied.contains("2004 added"), "{}", &applied[applied.len().saturating_sub(200)..]);
    let status = server.admin("GET", "/status", None).expect(200).json();
    assert_eq!(status["tools"], TOOLS + 4);
}

/// A second process over the same data directory.
fn taken_by_another(server: &Ringway) -> Output {
    let socket = server.folder().join("second.sock").display().to_string();
    let mut settings = server.settings().to_vec();
    settings.push(("RINGWAY_LISTEN__ADMIN_SOCKET".to_owned(), socket));
    Output::of(&["serve"], &settings).failed_with(&["another process"])
}

#[test]
fn a_store_that_cannot_be_read_is_left_as_it_is() {
    let mut server = Setup::new().start();
    Client::open(&server);
    server.stop();
    let files = || {
        let mut found: Vec<(std::path::PathBuf, Vec<u8>)> = Vec::new();
        let mut waiting = vec![server.data().to_owned()];
        while let Some(folder) = waiting.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    waiting.push(path);
                } else if path.file_name().is_some_and(|name| name == "db" || name == "conf") {
                    found.push((path.clone(), fs::read(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    };
    let before = files();
    assert_eq!(before.len(), 2, "sled's files");
    for (path, bytes) in &before {
        let mut torn = bytes.clone();
        torn[..16].fill(0xff);
        fs::write(path, &torn).unwrap();
    }
    let torn = files();
    start_fails(&server, &[], &[&server.data().display().to_string()]);
    assert_eq!(files(), torn, "what cannot be read was written to");
    for (path, bytes) in &before {
        fs::write(path, bytes).unwrap();
    }
    server.start();
}

#[test]
fn quickstart_prints_what_works() {
    let service = Service::echo();
    let folder = Setup::new().prepare();
    let api = folder.write(
        "api.toml",
        &one_more(&service.base(), "more")
            .split("[[assignment]]")
            .map(|part| {
                part.split_once("toolset = \"more\"\n[[tool]]")
                    .map_or_else(|| part.to_owned(), |(_, tool)| format!("[[tool]]{tool}"))
            })
            .collect::<String>(),
    );
    let data = folder.folder().join("quick").display().to_string();
    let words = ["quickstart", "--data", &data, "--listen", "127.0.0.1:0", "--api", &api];
    let mut quickstart = Command::new(env!("CARGO_BIN_EXE_ringway"))
        .args(words)
        .env("RINGWAY_RUNTIME__PIN", "false")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut printed = String::new();
    let lines = std::io::BufReader::new(quickstart.stdout.take().unwrap());
    for line in std::io::BufRead::lines(lines) {
        let line = line.unwrap();
        printed += &format!("{line}\n");
        if line.contains("Ctrl-C") {
            break;
        }
    }
    let word_after = |label: &str| {
        let line = printed.lines().find(|line| line.trim_start().starts_with(label)).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    let (url, key) = (word_after("MCP endpoint"), word_after("API key"));
    let curl = printed.find("  curl ").unwrap();
    let curl = printed[curl..].split("\n\n").next().unwrap();
    assert!(curl.contains(&url) && curl.contains(&key), "{curl}");
    let listed = Command::new("sh").arg("-c").arg(format!("{curl} --noproxy '*'")).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    assert!(listed.contains("\"runtime_status\"") && listed.contains("\"more\""), "{listed}");

    let admin = format!("{data}/admin.sock");
    let called = Output::of(&["call", "more", "--admin", &admin], &[]).succeeded();
    assert!(called.stdout.contains("/more"), "{}", called.stdout);
    // Beside the data, for its owner only.
    let mode = |path: &str| {
        let meta = fs::metadata(path).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777
    };
    assert_eq!(mode(&format!("{data}/quickstart.key")), 0o600);
    assert_eq!(mode(&admin), 0o600);
    quickstart.kill().unwrap();
    quickstart.wait().unwrap();
}

#[test]
fn help_reads_well_and_wrong_words_are_usage_errors() {
    let help = Output::of(&["--help"], &[]).succeeded().stdout;
    for command in [
        "quickstart",
        "serve",
        "check",
        "apply",
        "import",
        "key",
        "tools",
        "call",
        "status",
        "sessions",
    ] {
        assert!(help.contains(&format!("  {command} ")), "no {command} in\n{help}");
        Output::of(&[command, "--help"], &[]).succeeded();
    }
    let wrong = Output::of(&["stauts"], &[]).failed_with(&["status"]);
    assert_eq!(wrong.code, Some(2));
}
