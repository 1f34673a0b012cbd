//! Loading from files and variables, and the shipped file against the defaults.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use toml::{Table, Value};

use super::*;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/ringway.toml");

fn load(text: &str) -> Result<Settings, SettingsError> {
    load_with(text, &[])
}

fn load_with(text: &str, variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ringway.toml");
    fs::write(&path, text).unwrap();
    Settings::load(Some(&path), pairs(variables))
}

fn pairs(variables: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    let pairs: Vec<_> = variables.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
    pairs.into_iter()
}

fn problems(result: Result<Settings, SettingsError>) -> Vec<Problem> {
    match result {
        Err(SettingsError::Wrong(problems)) => problems,
        other => panic!("expected problems, got {other:?}"),
    }
}

/// The only problem, which must be at `line` (0: not in a file).
fn problem(result: Result<Settings, SettingsError>, at: usize) -> Problem {
    let mut problems = problems(result);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let problem = problems.remove(0);
    if let Origin::File { line, .. } = &problem.origin {
        assert_eq!(*line, at, "{problem}");
    } else {
        assert_eq!(at, 0, "{problem}");
    }
    problem
}

#[test]
fn the_shipped_file_is_the_defaults() {
    let shipped = Settings::load(Some(Path::new(SHIPPED)), std::iter::empty()).unwrap();
    assert_eq!(shipped, Settings::default());
}

#[test]
fn the_shipped_file_documents_every_key() {
    let text = fs::read_to_string(SHIPPED).unwrap();
    let written: Table = text.parse().unwrap();
    let known = Table::try_from(Settings::default()).unwrap();
    let mut keys = Vec::new();
    leaves("", &known, &mut keys);
    let mut written_keys = Vec::new();
    leaves("", &written, &mut written_keys);
    keys.sort();
    written_keys.sort();
    assert_eq!(keys, written_keys);
    assert!(keys.len() > 50, "{}", keys.len());

    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        assert!(line.len() < 100, "{line}");
        if let Some((key, _)) = line.split_once(" = ")
            && !line.starts_with('#')
        {
            let documented = number > 0 && lines[number - 1].starts_with("# ");
            assert!(documented, "{key} has no comment");
            let comment: String = lines[..number]
                .iter()
                .rev()
                .take_while(|line| line.starts_with('#'))
                .copied()
                .collect();
            let units = [("_ms", "milliseconds"), ("_seconds", "seconds"), ("_bytes_max", "ytes")];
            for (suffix, unit) in units {
                assert!(!key.ends_with(suffix) || comment.contains(unit), "{key} lacks {unit}");
            }
        }
    }
}

fn leaves(prefix: &str, table: &Table, out: &mut Vec<String>) {
    for (name, value) in table {
        let key = format!("{prefix}.{name}");
        match value {
            Value::Table(inner) => leaves(&key, inner, out),
            _ => out.push(key),
        }
    }
}

#[test]
fn defaults_are_valid() {
    assert_eq!(Settings::default().validate(), Vec::new());
    assert_eq!(Settings::load(None, std::iter::empty()).unwrap(), Settings::default());
}

#[test]
fn every_layer_wins_over_the_one_below() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ringway.toml");
    fs::write(&path, "[store]\nflush_ms = 1\nqueue_max = 100\n[http]\nheaders_max = 20\n").unwrap();
    fs::create_dir(directory.path().join("conf.d")).unwrap();
    let beside = |name: &str, text: &str| {
        fs::write(directory.path().join("conf.d").join(name), text).unwrap();
    };
    beside("20-later.toml", "store.flush_ms = 3");
    beside("10-first.toml", "store.flush_ms = 2\nstore.queue_max = 200");
    beside("ignored.toml.bak", "store.flush_ms = 9");
    let variables = pairs(&[
        ("RINGWAY_RUNTIME__MCP__SSE__REQUIRE_SESSION", "true"),
        ("RINGWAY_STORE__QUEUE_MAX", "300"),
        ("PATH", "/bin"),
    ]);
    let settings = Settings::load(Some(&path), variables).unwrap();
    assert_eq!(settings.http.headers_max, 20);
    assert_eq!(settings.store.flush_ms, 3);
    assert_eq!(settings.store.queue_max, 300);
    assert!(settings.runtime.mcp.sse.require_session);
}

#[test]
fn the_file_can_be_named_by_a_variable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.toml");
    fs::write(&path, "store.flush_ms = 7").unwrap();
    let path = path.to_str().unwrap();
    let settings = Settings::load(None, pairs(&[("RINGWAY_CONFIG", path)])).unwrap();
    assert_eq!(settings.store.flush_ms, 7);
    let settings = Settings::load(None, pairs(&[("RINGWAY_CONFIG", "")])).unwrap();
    assert_eq!(settings, Settings::default());
}

#[test]
fn a_missing_file_is_named() {
    let missing = Path::new("/nonexistent/ringway.toml");
    let error = Settings::load(Some(missing), std::iter::empty()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/ringway.toml"), "{error}");
}

#[test]
fn values_of_every_kind_are_read() {
    let settings = load(
        "[listen]\nruntime = \"[::]:80\"\nadmin_address = \"127.0.0.1:9\"\n\
         certificate = \"/c\"\nkey = \"/k\"\npublic_url = \"https://a.example/base\"\n\
         [runtime]\ndriver = \"epoll\"\nring = \"default\"\ncatalog = [\"a\", \"b\"]\n\
         allowed_origins = [\"https://a.example:8\", \"*\", \"vscode-webview://x\"]\n\
         [runtime.mcp.sse]\nconnected = \"off\"\n[telemetry]\nformat = \"json\"\n\
         filter = \"info,ringway::store=debug\"\n\
         [downstream]\nblocked_networks = [\"10.0.0.0/8\"]\n",
    )
    .unwrap();
    assert_eq!(settings.listen.runtime.port(), 80);
    assert_eq!(settings.listen.admin_address.unwrap().port(), 9);
    assert_eq!(settings.listen.certificate, Some(PathBuf::from("/c")));
    assert_eq!(settings.runtime.driver, Driver::Epoll);
    assert_eq!(settings.runtime.ring, Ring::Default);
    assert_eq!(settings.runtime.catalog, [PathBuf::from("a"), PathBuf::from("b")]);
    assert_eq!(settings.runtime.mcp.sse.connected, Connected::Off);
    assert_eq!(settings.telemetry.format, LogFormat::Json);
    assert_eq!(settings.downstream.blocked_networks.len(), 1);
}

/// Each line: the text, the line of the problem, its key, and what the message must say.
#[test]
fn bad_files_are_reported_with_line_and_key() {
    let table = [
        ("[store\n", 1, "", ""),
        ("\n\nflush_ms == 3", 3, "", ""),
        ("[store]\nflush_ms = 1\nflush_ms = 2", 3, "", "duplicate"),
        ("[stor]\n", 1, "stor", "did you mean `store`?"),
        ("[store]\nflush = 1", 2, "store.flush", "known in [store]: cache_bytes, flush_ms"),
        ("[runtime.mcp]\npagesize = 1", 2, "runtime.mcp.pagesize", "mean `page_size`?"),
        ("[runtime]\nmcp = 3", 2, "runtime.mcp", "[runtime.mcp]"),
        ("[store]\nflush_ms.x = 3", 2, "store.flush_ms", "must be an integer, not a table"),
        ("[store]\nflush_ms = \"50\"", 2, "store.flush_ms", "must be an integer, not a string"),
        ("[store]\nflush_ms = 1.5", 2, "store.flush_ms", "not a float"),
        ("[store]\nflush_ms = -1", 2, "store.flush_ms", "-1"),
        ("[store]\nflush_ms = 0", 2, "store.flush_ms", "1 to 60000"),
        ("[listen]\nbacklog = 4294967296", 2, "listen.backlog", "4294967296"),
        ("[listen]\nruntime = \"localhost:1\"", 2, "listen.runtime", "127.0.0.1:8420"),
        ("[listen]\nadmin_address = \"x\"", 2, "listen.admin_address", "127.0.0.1:8420"),
        ("[listen]\n\nadmin_address = \"0.0.0.0:1\"", 3, "listen.admin_address", "loopback"),
        ("[listen]\nadmin_address = \"127.0.0.1:8420\"", 2, "listen.admin_address", "runtime"),
        ("[listen]\ncertificate = \"c\"", 2, "listen.certificate", "both"),
        ("[listen]\nkey = \"c\"", 2, "listen.key", "both"),
        ("[listen]\npublic_url = \"ftp://x\"", 2, "listen.public_url", "http"),
        ("[listen]\npublic_url = \"https://x?y\"", 2, "listen.public_url", "only"),
        ("[runtime]\ndriver = \"kqueue\"", 2, "runtime.driver", "io_uring"),
        ("[runtime]\nring_entries = 1000", 2, "runtime.ring_entries", "power of two"),
        ("[runtime]\nallowed_origins = [\"https://x/\"]", 2, "runtime.allowed_origins", "origin"),
        ("[runtime]\ncatalog = [3]", 2, "runtime.catalog", "string"),
        ("[runtime]\ndata_directory = \"\"", 2, "runtime.data_directory", "empty"),
        (
            "[downstream]\nblocked_networks = [\"10.0.0.1/8\"]",
            2,
            "downstream.blocked_networks",
            "10.0.0.0/8",
        ),
        ("[telemetry]\nfilter = \"a=b=c\"", 2, "telemetry.filter", "a=b=c"),
        ("[telemetry]\nformat = \"xml\"", 2, "telemetry.format", "json"),
        ("[audit]\nkeep_bytes_max = 1", 2, "audit.keep_bytes_max", "two segments"),
        ("[audit]\npayload_bytes_max = 1_048_576", 2, "audit.payload_bytes_max", "eighth"),
        (
            "[runtime.mcp.sse]\nretained_bytes_max = 5000",
            2,
            "runtime.mcp.sse.retained_bytes_max",
            "window",
        ),
    ];
    for (text, line, key, message) in table {
        let problem = problem(load(text), line);
        assert_eq!(problem.key, key, "{text}: {problem}");
        assert!(problem.message.contains(message), "{text}: {problem}");
        assert!(problem.to_string().contains("ringway.toml:"), "{problem}");
    }
}

#[test]
fn bad_variables_are_reported_by_name() {
    let table = [
        ("RINGWAY_STORE__FLUSH_MS", "soon", "store.flush_ms", "must be an integer"),
        ("RINGWAY_STORE__FLUSH_MS", "0", "store.flush_ms", "1 to 60000"),
        ("RINGWAY_STORE__FLUSH", "1", "store.flush", "did you mean `flush_ms`?"),
        ("RINGWAY_STORE", "1", "store", "two underscores"),
        ("RINGWAY_STORE__FLUSH_MS__X", "1", "store.flush_ms", "unknown"),
        ("RINGWAY_FLUSH_MS", "1", "flush_ms", "known sections: audit, downstream, http"),
        ("RINGWAY_RUNTIME__PIN", "yes", "runtime.pin", "true or false"),
        ("RINGWAY_RUNTIME__CATALOG", "[\"a\"", "runtime.catalog", "list"),
        ("RINGWAY_RUNTIME__CATALOG", "[]\nx = 1", "runtime.catalog", "one list"),
        ("RINGWAY_RUNTIME__DRIVER", "x", "runtime.driver", "epoll"),
        ("RINGWAY_TELEMETRY__FILTER", "nfo", "telemetry.filter", "no level"),
        ("RINGWAY_TELEMETRY__FILTER", "info,rt", "telemetry.filter", "`rt=debug`"),
        ("RINGWAY_LISTEN__KEY", "/k", "listen.key", "certificate"),
        ("RINGWAY_", "", "", "unknown"),
    ];
    for (name, value, key, message) in table {
        let problem = problem(load_with("", &[(name, value)]), 0);
        assert_eq!(problem.origin, Origin::Variable(name.to_owned()));
        assert_eq!(problem.key, key, "{name}: {problem}");
        assert!(problem.message.contains(message), "{name}: {problem}");
        assert!(problem.to_string().contains(name), "{problem}");
    }
}

/// Brackets times dotted names: the parser bounds each, not both together.
#[test]
fn deep_nesting_is_refused_before_it_is_parsed() {
    let key = vec!["a"; 79].join(".");
    let deep = format!("{}{}", format!("{{ {key} = ").repeat(79), "}".repeat(79));
    let error = load_with(&format!("\n[runtime]\ncores = {deep}"), &[]).unwrap_err().to_string();
    assert!(error.contains("nested deeper than 128") && error.contains(":3"), "{error}");
    let list = format!("[{deep}]");
    let error = load_with("", &[("RINGWAY_RUNTIME__CATALOG", &list)]).unwrap_err().to_string();
    assert!(error.contains("nested deeper than 128"), "{error}");
}

#[test]
fn variables_of_a_cluster_are_no_settings() {
    let variables = [
        ("RINGWAY_SERVICE_HOST", "10.0.0.1"),
        ("RINGWAY_SERVICE_PORT_HTTP", "8420"),
        ("RINGWAY_PORT", "tcp://10.0.0.1:8420"),
        ("RINGWAY_PORT_8420_TCP_ADDR", "10.0.0.1"),
        ("RINGWAY_TELEMETRY__FILTER", "WARN,ringway::store=debug"),
    ];
    let settings = load_with("", &variables).unwrap();
    assert_eq!(settings.telemetry.filter, "WARN,ringway::store=debug");
}

#[test]
fn the_command_lines_own_variables_are_no_settings() {
    let variables = [("RINGWAY_ADMIN", "/tmp/x"), ("RINGWAYS", "1")];
    assert_eq!(load_with("", &variables).unwrap(), Settings::default());
}

#[test]
fn lists_in_variables_have_two_forms() {
    for text in ["a,b", " a , b ,", "[\"a\", \"b\"]"] {
        let settings = load_with("", &[("RINGWAY_RUNTIME__CATALOG", text)]).unwrap();
        assert_eq!(settings.runtime.catalog, [PathBuf::from("a"), PathBuf::from("b")], "{text}");
    }
    let text = "[runtime]\ncatalog = [\"x\"]";
    let settings = load_with(text, &[("RINGWAY_RUNTIME__CATALOG", "")]).unwrap();
    assert!(settings.runtime.catalog.is_empty());
}

#[test]
fn every_problem_is_reported_at_once() {
    let text = "[store]\nflush_ms = 0\nflash = 1\n[http]\nheaders_max = \"x\"";
    let problems = problems(load_with(text, &[("RINGWAY_NONSENSE", "1")]));
    assert_eq!(problems.len(), 4, "{problems:?}");
    let text = SettingsError::Wrong(problems).to_string();
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn a_pair_is_laid_at_the_later_writer() {
    let text = "[listen]\ncertificate = \"c\"";
    let settings = load_with(text, &[("RINGWAY_LISTEN__KEY", "k")]).unwrap();
    assert_eq!(settings.listen.key, Some(PathBuf::from("k")));
    let problem = problem(load_with(text, &[("RINGWAY_LISTEN__CERTIFICATE", "d")]), 0);
    assert_eq!(problem.origin, Origin::Variable("RINGWAY_LISTEN__CERTIFICATE".into()));
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,80}") {
        let _ = load(&text);
        let _ = load_with("", &[("RINGWAY_RUNTIME__CATALOG", &text)]);
        let name = format!("RINGWAY_{text}");
        let _ = load_with("", &[(&name, "x")]);
    }

    #[test]
    fn settings_survive_being_written(flush in 1u64..60_000, session: bool, port: u16) {
        let mut settings = Settings::default();
        settings.store.flush_ms = flush;
        settings.runtime.mcp.sse.require_session = session;
        settings.listen.runtime.set_port(port);
        let text = toml::to_string(&settings).unwrap();
        prop_assert_eq!(load(&text).unwrap(), settings);
    }
}
