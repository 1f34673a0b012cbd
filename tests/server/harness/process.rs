//! The server's process: settings, start, signals, restarts, its log, its command line.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Answer, PATIENCE, Request, Wire};

const BINARY: &str = env!("CARGO_BIN_EXE_ringway");

/// What a server is started with.
#[derive(Debug, Default, Clone)]
pub(crate) struct Setup {
    settings: Vec<(String, String)>,
    catalog: String,
}

/// Tenants and client applications every test has: `demo` with three, `other` with one.
const BASE: &str = r#"
[[tenant]]
id = "demo"
egress_allowances = ["127.0.0.0/8", "::1/128"]
[[tenant]]
id = "other"
egress_allowances = ["127.0.0.0/8", "::1/128"]
[[client_application]]
tenant = "demo"
id = "assistant"
[[client_application]]
tenant = "demo"
id = "desk"
[[client_application]]
tenant = "demo"
id = "public"
open = true
[[client_application]]
tenant = "other"
id = "assistant"
[[toolset]]
tenant = "demo"
id = "appliance"
kind = "builtin"
[[assignment]]
tenant = "demo"
client_application = "assistant"
toolset = "appliance"
"#;

impl Setup {
    /// A server of two cores that are not pinned.
    pub(crate) fn new() -> Self {
        Self { catalog: BASE.to_owned(), ..Self::default() }
            .set("runtime.cores", 2)
            .set("runtime.pin", false)
            .set("listen.runtime", "127.0.0.1:0")
    }

    /// A setting, by its full key.
    pub(crate) fn set(mut self, key: &str, value: impl ToString) -> Self {
        let variable = format!("RINGWAY_{}", key.replace('.', "__").to_uppercase());
        self.settings.push((variable, value.to_string()));
        self
    }

    /// More of the catalog, as TOML.
    pub(crate) fn catalog(mut self, text: &str) -> Self {
        self.catalog += text;
        self
    }

    /// A REST toolset `api` at `base` for `demo/assistant` and `demo/public`, with these tools:
    /// name, method, path, and more lines of each.
    pub(crate) fn api(self, base: &str, tools: &[(&str, &str, &str, &str)]) -> Self {
        self.api_with(&format!("base_url = \"{base}\""), tools)
    }

    /// As `api`, with the lines of the connection.
    pub(crate) fn api_with(self, connection: &str, tools: &[(&str, &str, &str, &str)]) -> Self {
        let mut text = format!(
            "[[connection]]\ntenant = \"demo\"\nid = \"api\"\n{connection}\n\
             [[toolset]]\ntenant = \"demo\"\nid = \"api\"\nkind = \"rest\"\nconnection = \"api\"\n"
        );
        for client in ["assistant", "public"] {
            text += &format!(
                "[[assignment]]\ntenant = \"demo\"\nclient_application = \"{client}\"\n\
                 toolset = \"api\"\n"
            );
        }
        for (name, method, path, more) in tools {
            text += &format!(
                "[[tool]]\ntenant = \"demo\"\ntoolset = \"api\"\nname = \"{name}\"\n\
                 description = \"A tool.\"\nmethod = \"{method}\"\npath = \"{path}\"\n{more}\n"
            );
        }
        self.catalog(&text)
    }

    pub(crate) fn start(self) -> Ringway {
        let mut server = self.prepare();
        server.start();
        server
    }

    /// Everything but the process.
    pub(crate) fn prepare(self) -> Ringway {
        let folder = tempfile::Builder::new().prefix("ringway-").tempdir().unwrap();
        let catalog = folder.path().join("catalog.toml");
        fs::write(&catalog, &self.catalog).unwrap();
        let data = folder.path().join("data");
        let setup = self
            .set("runtime.catalog", catalog.display())
            .set("runtime.data_directory", data.display());
        Ringway { folder, data, settings: setup.settings, process: None, log: Arc::default() }
    }
}

/// The lines of a process's standard error, as they come.
#[derive(Debug, Default)]
struct Log {
    /// And how many processes still write some.
    lines: Mutex<(Vec<String>, usize)>,
    grown: Condvar,
}

impl Log {
    fn follow(self: &Arc<Self>, from: impl std::io::Read + Send + 'static) {
        self.lines.lock().unwrap().1 += 1;
        let log = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                log.lines.lock().unwrap().0.push(line);
                log.grown.notify_all();
            }
            log.lines.lock().unwrap().1 -= 1;
            log.grown.notify_all();
        });
    }

    /// The first line from `from` on with `part` in it; `None` when the process ends before.
    fn wait(&self, from: usize, part: &str) -> Option<String> {
        let begin = Instant::now();
        let mut lines = self.lines.lock().unwrap();
        loop {
            if let Some(line) = lines.0.iter().skip(from).find(|line| line.contains(part)) {
                return Some(line.clone());
            }
            if lines.1 == 0 || begin.elapsed() > PATIENCE {
                return None;
            }
            lines = self.grown.wait_timeout(lines, Duration::from_millis(500)).unwrap().0;
        }
    }

    fn len(&self) -> usize {
        self.lines.lock().unwrap().0.len()
    }

    fn text(&self) -> String {
        self.lines.lock().unwrap().0.join("\n")
    }
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Failed, with all of `parts` on standard error.
    #[track_caller]
    pub(crate) fn failed_with(self, parts: &[&str]) -> Self {
        assert!(self.code.is_some_and(|code| code != 0), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in:\n{}", self.stderr);
        }
        self
    }

    /// Runs the command with these variables besides.
    pub(crate) fn of<S: AsRef<OsStr>>(words: &[S], settings: &[(String, String)]) -> Self {
        // One that should end and does not must not hold the tests.
        let mut command = Command::new("timeout");
        clean(&mut command);
        command.envs(settings.iter().cloned()).args(["-k1", "60", BINARY]).args(words);
        let done = command.stdin(Stdio::null()).output().unwrap();
        Self {
            code: done.status.code(),
            stdout: String::from_utf8(done.stdout).unwrap(),
            stderr: String::from_utf8(done.stderr).unwrap(),
        }
    }
}

/// The binary, with no settings of the surroundings.
fn command(settings: &[(String, String)]) -> Command {
    let mut command = Command::new(BINARY);
    clean(&mut command);
    command.envs(settings.iter().cloned()).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RINGWAY_") {
            command.env_remove(name);
        }
    }
}

/// A server: its folder and, most of the time, its process.
pub(crate) struct Ringway {
    folder: TempDir,
    data: PathBuf,
    settings: Vec<(String, String)>,
    process: Option<(Child, SocketAddr)>,
    log: Arc<Log>,
}

impl Ringway {
    pub(crate) fn start(&mut self) {
        let mut command = command(&self.settings);
        command.arg("serve");
        self.start_as(command);
    }

    /// Starts by a script of `sh`, whose `$0` is the binary; `arrange` prepares the command.
    pub(crate) fn start_by(&mut self, script: &str, arrange: impl FnOnce(&mut Command)) {
        let mut command = Command::new("sh");
        clean(&mut command);
        command.envs(self.settings.iter().cloned()).args(["-c", script, BINARY]);
        arrange(&mut command);
        self.start_as(command);
    }

    /// Waits until the process says that it serves.
    fn start_as(&mut self, mut command: Command) {
        assert!(self.process.is_none(), "one process at a time");
        let before = self.log.len();
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        self.log.follow(child.stderr.take().unwrap());
        let line = self.log.wait(before, "serving");
        let address = line.as_deref().and_then(|line| {
            let (_, rest) = line.split_once("address=")?;
            rest.split_whitespace().next()?.parse().ok()
        });
        let Some(address) = address else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the server did not start");
        };
        self.process = Some((child, address));
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.process.as_ref().expect("the server runs").1
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").0.id()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// Changes a setting for the next start.
    pub(crate) fn set(&mut self, key: &str, value: impl ToString) {
        self.settings =
            Setup { settings: self.settings.clone(), ..Setup::default() }.set(key, value).settings;
    }

    pub(crate) fn admin_socket(&self) -> PathBuf {
        self.data.join("admin.sock")
    }

    /// Writes a file beside the catalog.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub(crate) fn kill(&mut self) {
        let (mut child, _) = self.process.take().expect("the server runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn kill_and_restart(&mut self) {
        self.flushed();
        self.kill();
        self.start();
    }

    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    pub(crate) fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.pid());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for the end of the process.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let (mut child, _) = self.process.take().expect("the server runs");
        child.wait().unwrap()
    }

    pub(crate) fn stop(&mut self) {
        self.terminate();
        assert!(self.ended().success());
    }

    /// What was written before is on disk: the store writes in order, and a key is on disk before
    /// it is confirmed. What a core still gathers is given the time the settings give it.
    pub(crate) fn flushed(&self) {
        super::pause(Duration::from_millis(120));
        self.new_key("demo/assistant");
    }

    /// How many lines the log has: where to look for what comes next.
    pub(crate) fn logged(&self) -> usize {
        self.log.len()
    }

    /// Waits for a line of the log.
    pub(crate) fn wait_for_log(&self, from: usize, part: &str) -> String {
        self.log.wait(from, part).unwrap_or_else(|| panic!("{part:?} was not logged"))
    }

    /// All that was logged.
    pub(crate) fn log_text(&self) -> String {
        self.log.text()
    }

    /// Runs `ringway` beside the server.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Output {
        Output::of(words, &self.settings)
    }

    /// A request to the admin socket.
    pub(crate) fn admin(&self, method: &str, target: &str, body: Option<&Value>) -> Answer {
        let mut request = Request::new(method, target).header("Connection", "close");
        if let Some(body) = body {
            request = request.json(body);
        }
        Wire::unix(&self.admin_socket()).ask(&request)
    }

    /// A new key of a `tenant/client`.
    pub(crate) fn new_key(&self, of: &str) -> String {
        let (tenant, client) = of.split_once('/').unwrap();
        let body = json!({ "tenant": tenant, "client_application": client });
        let created = self.admin("POST", "/keys", Some(&body)).expect(200).json();
        created["key"].as_str().unwrap().to_owned()
    }

    /// Makes these entities, as TOML, part of the catalog.
    pub(crate) fn apply(&self, text: &str) {
        let file = self.write("applied.toml", text);
        self.command(&["apply", &file]).succeeded();
    }

    /// All records of the audit log, in the order of one core, without those of the log about itself.
    pub(crate) fn records(&self) -> Vec<Value> {
        let text = self.command(&["audit", "export"]).succeeded().stdout;
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line.get("call_type").is_some())
            .collect()
    }

    /// Has every standing stream told that its tool list changed.
    pub(crate) fn notify(&self) {
        self.admin("POST", "/notify", None).expect(200);
    }

    /// A metric, summed over its labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.admin("GET", "/metrics", None).expect(200).text();
        page.lines()
            .filter_map(|line| line.strip_prefix(name))
            .filter(|rest| rest.starts_with([' ', '{']))
            .map(|rest| rest.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }
}

impl Drop for Ringway {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.process.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let log = self.log.text();
        if thread::panicking() {
            eprintln!("the server's log:\n{log}");
        } else {
            assert!(!log.contains("panicked"), "the server's log tells of a panic:\n{log}");
        }
    }
}
