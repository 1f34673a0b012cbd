//! The servers under test: started on their own core, watched by what the kernel says of them,
//! and ended with the run.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const START_SECONDS_MAX: u64 = 20;
const STOP_SECONDS_MAX: u64 = 10;
/// `utime` and `stime` of `/proc/PID/stat` count in this unit on every Linux there is.
const TICK_NANOS: u64 = 10_000_000;

pub(crate) struct Server {
    child: Child,
}

impl Server {
    /// Starts `program` on `cpu` alone and waits until its port answers.
    pub(crate) fn start(
        cpu: usize,
        program: &Path,
        arguments: &[&OsStr],
        environment: &[(&str, &OsStr)],
        address: SocketAddr,
        log: &Path,
    ) -> io::Result<Self> {
        let log_file = fs::OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = Command::new("taskset");
        command
            .args(["-c", &cpu.to_string()])
            .arg(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(log_file.try_clone()?)
            .stderr(log_file);
        let mut server = Self { child: command.spawn()? };
        let deadline = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
        while std::net::TcpStream::connect(address).is_err() {
            let ended = server.child.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let why = fs::read_to_string(log).unwrap_or_default();
                let name = program.display();
                return Err(io::Error::other(format!("{name} did not start: {why}")));
            }
            pause(20);
        }
        Ok(server)
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage::of(self.child.id())
    }

    /// Resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        status
            .unwrap_or_default()
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok())
            .map_or(0, |kibibytes| kibibytes * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM first, through `kill`: a server should be able to end well even here.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").arg(&pid).stderr(Stdio::null()).status();
        let deadline = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            pause(20);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of a process since its start, user and system together.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    nanos: u64,
}

impl Usage {
    pub(crate) fn own() -> Self {
        Self::of(std::process::id())
    }

    fn of(pid: u32) -> Self {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let on_cpu: Option<u64> = tasks
            .map(|task| {
                let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
                text.split_whitespace().next()?.parse::<u64>().ok()
            })
            .sum();
        Self { nanos: on_cpu.filter(|nanos| *nanos > 0).unwrap_or_else(|| ticks(pid)) }
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos.saturating_sub(earlier.nanos))
    }
}

/// The same from `/proc/PID/stat`, in steps of 10 ms, for kernels without `schedstat`.
fn ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The command's name may have spaces; what follows its closing parenthesis has not.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = |at: usize| fields.split_whitespace().nth(at).and_then(|f| f.parse::<u64>().ok());
    (field(11).unwrap_or(0) + field(12).unwrap_or(0)) * TICK_NANOS
}

/// A loopback port that nobody uses now.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind(("127.0.0.1", 0))?.local_addr()
}

#[expect(clippy::disallowed_methods, reason = "a tool without cores of its own may sleep")]
pub(crate) fn pause(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}
