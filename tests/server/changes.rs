//! The catalog over time: files applied, pruned and exported, the change log, the way back, and
//! files that change under a running server.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::harness::{Client, Output, Ringway, Service, Setup, eventually, rpc};

const SECRET: &str = "Bearer hidden-4711";

/// A toolset of `demo` with one tool, which `demo/assistant` gets.
fn more(description: &str) -> String {
    format!(
        "[[connection]]\ntenant = \"demo\"\nid = \"more\"\nbase_url = \"http://127.0.0.1:9\"\n\
         headers = {{ Authorization = \"{SECRET}\" }}\n\
         [[toolset]]\ntenant = \"demo\"\nid = \"more\"\nkind = \"rest\"\nconnection = \"more\"\n\
         [[assignment]]\ntenant = \"demo\"\nclient_application = \"assistant\"\n\
         toolset = \"more\"\n\
         [[tool]]\ntenant = \"demo\"\ntoolset = \"more\"\nname = \"more\"\n\
         description = \"{description}\"\nmethod = \"GET\"\npath = \"/more\"\n"
    )
}

/// The descriptions of `more`, as `demo/assistant` sees it: none or one.
fn seen(server: &Ringway) -> Vec<String> {
    let listed = Client::open(server).post(&rpc(1, "tools/list", json!({}))).result();
    let tools = listed["tools"].as_array().unwrap().iter();
    let tools = tools.filter(|tool| tool["name"] == "more");
    tools.map(|tool| tool["description"].as_str().unwrap().to_owned()).collect()
}

fn version(server: &Ringway) -> u64 {
    server.admin("GET", "/status", None).expect(200).json()["catalog_version"].as_u64().unwrap()
}

#[test]
fn apply_tells_what_differs_field_by_field_and_shows_no_secret() {
    let server = Setup::new().start();
    let file = server.write("more.toml", &more("One."));
    server.command(&["apply", &file]).succeeded();
    let newer = more("Two.").replace("hidden-4711", "hidden-4712");
    let file = server.write("more.toml", &newer);
    let dry = server.command(&["apply", "--dry-run", &file]).succeeded().stdout;
    let expected = "~ connection demo/more\n    headers.Authorization: *** -> ***\n\
                    ~ tool demo/more/more\n    description: \"One.\" -> \"Two.\"\n\
                    0 added, 2 changed, 0 removed. Nothing was changed (--dry-run).\n";
    assert_eq!(dry, expected);
    assert_eq!(seen(&server), ["One."]);
    let before = version(&server);
    let applied = server.command(&["apply", &file]).succeeded().stdout;
    assert!(applied.contains("description: \"One.\" -> \"Two.\""), "{applied}");
    assert!(applied.contains(&format!("The catalog is at version {}.", before + 1)), "{applied}");
    assert_eq!(seen(&server), ["Two."]);
}

#[test]
fn pruning_makes_the_catalog_what_the_files_say() {
    let server = Setup::new().start();
    let whole = server.folder().join("catalog.toml").display().to_string();
    let file = server.write("more.toml", &more("One."));
    server.command(&["apply", &file]).succeeded();
    let dry = server.command(&["apply", "--prune", "--dry-run", &whole]).succeeded().stdout;
    assert!(dry.contains("- tool demo/more/more\n"), "{dry}");
    assert!(dry.contains("0 added, 0 changed, 4 removed"), "{dry}");
    assert_eq!(seen(&server).len(), 1);
    server.command(&["apply", "--prune", &whole]).succeeded();
    assert_eq!(seen(&server).len(), 0);
    server.admin("GET", "/catalog/connections/demo/more", None).expect(404);
    let empty = server.write("empty.toml", "# nothing\n");
    server
        .command(&["apply", "--prune", &empty])
        .failed_with(&["declare nothing", "whole catalog"]);
    // What would leave others without what they need is refused whole.
    let part = "[[tenant]]\nid = \"demo\"\negress_allowances = [\"127.0.0.0/8\", \"::1/128\"]\n";
    let file = server.write("part.toml", part);
    server.command(&["apply", &file]).succeeded();
    assert_eq!(version(&server), 3);
}

#[test]
fn what_is_exported_is_applied_without_a_difference() {
    let service = Service::echo();
    let connection =
        format!("base_url = \"{}\"\nheaders = {{ Authorization = \"{SECRET}\" }}", service.base());
    let rules = "[[tool.fields]]\nsource_field_name = \"q\"\nlocation = \"query\"\n\
                 default = [1, 2.5, \"yes\", { a = \"b\" }]\ntype = \"array\"\n\
                 description = \"\"\"Lines,\nand \\\"quotes\\\": # none\"\"\"\n";
    let server = Setup::new().api_with(&connection, &[("find", "GET", "/find", rules)]).start();
    let at = |name: &str| server.folder().join(name).display().to_string();
    for path in ["all.toml", "all.yaml", "all.json", "folder"] {
        let path = at(path);
        server.command(&["export", &path]).succeeded();
        let pruned = server.command(&["apply", "--prune", &path]).succeeded().stdout;
        assert!(pruned.starts_with("0 added, 0 changed, 0 removed"), "{path}: {pruned}");
    }
    let file = server.folder().join("folder/demo.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains(SECRET));
    assert!(server.folder().join("folder/other.toml").exists());

    // To another server, as a whole.
    let fresh = Setup::default()
        .set("runtime.cores", 1)
        .set("runtime.pin", false)
        .set("listen.runtime", "127.0.0.1:0")
        .start();
    fresh.command(&["apply", &at("folder")]).succeeded();
    let stream = |server: &Ringway| server.command(&["export"]).succeeded().stdout;
    assert_eq!(stream(&fresh), stream(&server));

    // Masked, it keeps the secrets of a server that has them, and is refused by one that has not.
    let masked = server.command(&["export", "--mask", "--format", "yaml"]).succeeded().stdout;
    assert!(!masked.contains("hidden-4711"));
    let path = server.write("masked.yaml", &masked);
    let same = server.command(&["apply", "--prune", &path]).succeeded().stdout;
    assert!(same.starts_with("0 added, 0 changed, 0 removed"), "{same}");
    let folder = server.folder().join("other-data");
    let other =
        Setup::default().set("listen.runtime", "127.0.0.1:0").set("runtime.cores", 1).start();
    other.command(&["apply", &path]).failed_with(&["headers.Authorization", "masked.yaml"]);
    drop(folder);

    // What lies about and would be applied with it is refused.
    fs::write(server.folder().join("folder/old.toml"), "").unwrap();
    server.command(&["export", &at("folder")]).failed_with(&["old.toml", "remove it"]);
    server.command(&["export", &at("all.toml"), "--format", "json"]).failed_with(&["ending"]);
}

#[test]
fn history_tells_who_did_what_and_outlives_crashes() {
    let mut server = Setup::new().start();
    let file = server.write("more.toml", &more("One."));
    server
        .command(&["apply", "--author", "Ada", "--comment", "first & föremost", &file])
        .succeeded();
    server.kill();
    server.start();
    assert_eq!(version(&server), 2);
    let file = server.write("more.toml", &more("Two."));
    server.command(&["apply", &file]).succeeded();
    server.stop();
    server.start();
    assert_eq!(version(&server), 3);

    let history = server.command(&["history"]).succeeded().stdout;
    let lines: Vec<&str> = history.lines().collect();
    assert_eq!(lines.len(), 4, "{history}");
    assert!(lines[1].starts_with("3 ") && lines[1].contains("+0 ~1 -0"), "{history}");
    assert!(lines[2].starts_with("2 ") && lines[2].contains(" as \"Ada\""), "{history}");
    assert!(lines[2].contains("+4 ~0 -0") && lines[2].ends_with("first & föremost"), "{history}");
    assert!(
        lines[3].starts_with("1 ") && lines[3].contains("ringway ") && lines[3].contains("start"),
        "{history}"
    );
    let shown = server.command(&["history", "3"]).succeeded().stdout;
    assert!(
        shown.contains("~ tool demo/more/more\n    description: \"One.\" -> \"Two.\""),
        "{shown}"
    );
    let first = server.command(&["history", "--limit", "1"]).succeeded();
    assert!(first.stderr.contains("--limit"), "{}", first.stderr);
    server.command(&["history", "9"]).failed_with(&["no version 9", "from 1 to 3"]);

    let dry = server.command(&["rollback", "2", "--dry-run"]).succeeded().stdout;
    assert!(dry.contains("description: \"Two.\" -> \"One.\""), "{dry}");
    assert_eq!(seen(&server), ["Two."]);
    let back = server.command(&["rollback", "2", "--comment", "oops"]).succeeded().stdout;
    assert!(back.contains("The catalog is at version 4."), "{back}");
    assert_eq!(seen(&server), ["One."]);
    server.kill();
    server.start();
    assert_eq!((seen(&server), version(&server)), (vec!["One.".to_owned()], 4));
    let history = server.command(&["history", "--limit", "1"]).succeeded().stdout;
    assert!(history.contains("rollback to 2") && history.contains("oops"), "{history}");

    // Over everything that happened, and back again.
    server.command(&["rollback", "1"]).succeeded();
    assert_eq!(seen(&server).len(), 0);
    server.command(&["rollback", "3"]).succeeded();
    assert_eq!((seen(&server), version(&server)), (vec!["Two.".to_owned()], 6));
    let same = server.command(&["rollback", "6"]).succeeded().stdout;
    assert!(same.contains("0 added, 0 changed, 0 removed"), "{same}");
    server.command(&["rollback", "7"]).failed_with(&["no version 7"]);
    for arguments in [&["rollback", "0"][..], &["rollback", "0", "--dry-run"]] {
        server.command(arguments).failed_with(&["the catalog was empty at version 0"]);
    }
    for text in [history, shown, server.command(&["history", "2"]).succeeded().stdout] {
        assert!(!text.contains("hidden-4711"), "{text}");
    }
}

#[test]
fn the_log_is_bounded_and_says_how_far_it_reaches() {
    let server = Setup::new().set("runtime.history_max", 3).start();
    for number in 0..5 {
        let file = server.write("more.toml", &more(&format!("Number {number}.")));
        server.command(&["apply", &file]).succeeded();
    }
    let history = server.command(&["history"]).succeeded().stdout;
    assert_eq!(history.lines().count(), 4, "{history}");
    server.command(&["rollback", "2"]).failed_with(&["reaches from 3 to 6"]);
    server.command(&["rollback", "3"]).succeeded();
    assert_eq!(seen(&server), ["Number 1."]);
}

#[test]
fn a_change_that_is_cut_off_is_there_whole_or_not_at_all() {
    let mut server = Setup::new().start();
    for round in 0..4 {
        let applied = version(&server);
        let file = server.write("more.toml", &more(&format!("Round {round}.")));
        let settings = server.settings().to_vec();
        let applying = std::thread::spawn(move || Output::of(&["apply", &file], &settings));
        crate::harness::pause(std::time::Duration::from_millis(15 * round));
        server.kill();
        let is_done = applying.join().unwrap().code == Some(0);
        server.start();
        let now = version(&server);
        let described = seen(&server);
        if now == applied {
            assert!(!is_done, "it was confirmed and is lost");
            assert_ne!(described, [format!("Round {round}.")]);
        } else {
            assert_eq!(now, applied + 1);
            assert_eq!(described, [format!("Round {round}.")]);
            let shown = server.command(&["history", &now.to_string()]).succeeded().stdout;
            assert!(shown.contains("tool demo/more/more"), "{shown}");
        }
    }
}

#[test]
fn files_that_change_are_read_again_and_bad_ones_are_told_of() {
    let server = Setup::new().set("runtime.catalog_poll_ms", 100).start();
    let catalog = server.folder().join("catalog.toml");
    let base = fs::read_to_string(&catalog).unwrap();
    let ready = || server.admin("GET", "/readyz", None).expect(200).text();
    assert_eq!(ready(), "ready\n");

    fs::write(&catalog, base.clone() + &more("One.")).unwrap();
    eventually("the file is read", || seen(&server) == ["One."]);
    let at = version(&server);

    // A bad file: the running catalog stays, and everybody who should know is told.
    let bad = base.clone() + &more("Two.") + "[[tool]]\ncolour = \"red\"\n";
    fs::write(&catalog, &bad).unwrap();
    eventually("it is told", || server.metric("ringway_catalog_reload_bad") > 0.5);
    assert_eq!((seen(&server), version(&server)), (vec!["One.".to_owned()], at));
    let line = bad.lines().count();
    let status = server.command(&["status"]).succeeded().stdout;
    let place = format!("{}:{line}: tool: unknown field `colour`", catalog.display());
    assert!(status.contains(&place), "no {place} in:\n{status}");
    assert!(status.contains("bad since"), "{status}");
    let text = ready();
    assert!(text.starts_with("ready\n") && text.contains("catalog files are bad"), "{text}");
    assert!(!text.contains("catalog.toml"), "everybody may ask: {text}");
    // The same bad file is not read over and over.
    crate::harness::pause(std::time::Duration::from_millis(600));
    assert!((server.metric("ringway_catalog_reload_failures_total") - 1.0).abs() < 0.1);

    fs::write(&catalog, base.clone() + &more("Three.")).unwrap();
    eventually("the good file is read", || seen(&server) == ["Three."]);
    eventually("all is well", || server.metric("ringway_catalog_reload_bad") < 0.5);
    assert_eq!(ready(), "ready\n");
    assert!(server.command(&["status"]).succeeded().stdout.contains("good"));
    let history = server.command(&["history", "--limit", "1"]).succeeded().stdout;
    assert!(history.contains("reload"), "{history}");
}

#[test]
fn a_hangup_reads_the_files_again_where_nobody_looks_at_them() {
    let server = Setup::new().set("runtime.catalog_poll_ms", 0).start();
    let catalog = server.folder().join("catalog.toml");
    let base = fs::read_to_string(&catalog).unwrap();
    fs::write(&catalog, base.clone() + "[[tool]]\n").unwrap();
    let from = server.logged();
    server.signal("HUP");
    server.wait_for_log(from, "reload changed nothing");
    let status = server.admin("GET", "/status", None).expect(200).json();
    let problems = status["catalog_files"]["problems"].as_array().unwrap();
    assert!(problems[0].as_str().unwrap().contains("catalog.toml:"), "{status}");
    fs::write(&catalog, base + &more("One.")).unwrap();
    let from = server.logged();
    server.signal("HUP");
    server.wait_for_log(from, "catalog read again");
    assert_eq!(seen(&server), ["One."]);
    let status = server.admin("GET", "/status", None).expect(200).json();
    assert_eq!(status["catalog_files"], "good");
}
