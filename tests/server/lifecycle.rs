//! Start and stop: the service manager, its sockets, signals, clients that do not let go.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{
    Client, Events, NEWEST, PATIENCE, Request, Ringway, Service, Setup, Wire, call, eventually,
    ping, rpc,
};

const HOLD: (&str, &str, &str, &str) = ("hold", "GET", "/hold", "");

/// Hands the two sockets on as the service manager does: from descriptor 3 on, to this process.
const ACTIVATION: &str = "exec 3<&0 4<&1 </dev/null >/dev/null; \
    export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=runtime:admin; exec \"$0\" serve";

#[test]
fn sockets_of_the_service_manager_outlive_the_process() {
    let mut server = Setup::new().prepare();
    let runtime = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = server.folder().join("passed.sock");
    let admin = UnixListener::bind(&path).unwrap();
    let address = runtime.local_addr().unwrap();
    let start = |server: &mut Ringway| {
        let (runtime, admin) = (runtime.try_clone().unwrap(), admin.try_clone().unwrap());
        server.start_by(ACTIVATION, |command| {
            command.stdin(OwnedFd::from(runtime)).stdout(OwnedFd::from(admin));
        });
    };
    // Who comes before the process waits for it.
    let mut early = Wire::tcp(address);
    early.send(&Request::new("GET", "/readyz"));
    start(&mut server);
    early.answer().expect(200);
    assert_eq!(server.address(), address);
    server.wait_for_log(0, "listen.runtime does not");
    let status = Wire::unix(&path).ask(&Request::new("GET", "/status")).expect(200).json();
    assert_eq!(status["runtime_address"], address.to_string());
    assert!(!server.admin_socket().exists(), "a second admin socket");
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    server.stop();
    assert!(path.exists(), "the service manager's socket was removed");
    let mut between = Wire::tcp(address);
    between.send(&client.message(&ping()));
    start(&mut server);
    between.answer().expect(200);
}

#[test]
fn the_service_manager_is_told() {
    let mut server = Setup::new().prepare();
    let path = server.folder().join("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    server.start_by("exec \"$0\" serve", |command| {
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000");
    });
    let mut told = Vec::new();
    let mut wait_for = |what: &str| {
        let mut bytes = [0; 4096];
        while !told.last().is_some_and(|text: &String| text.contains(what)) {
            let read = manager.recv(&mut bytes).unwrap();
            told.push(String::from_utf8(bytes[..read].to_vec()).unwrap());
        }
        std::mem::take(&mut told).pop().unwrap()
    };
    let ready = wait_for("READY=1");
    assert!(ready.contains(&format!("STATUS=serving on {}", server.address())), "{ready}");
    // Twice: it goes on, not only begins. In time, or the service manager ends the process.
    let begin = Instant::now();
    wait_for("WATCHDOG=1");
    wait_for("WATCHDOG=1");
    assert!(begin.elapsed() < Duration::from_millis(1200), "{:?}", begin.elapsed());
    server.terminate();
    wait_for("STOPPING=1");
    assert!(server.ended().success());
}

#[test]
fn a_stop_ends_every_stream_properly() {
    let service = Service::holding();
    let mut server = Setup::new().set("runtime.cores", 3).api(&service.base(), &[HOLD]).start();
    let client = Client::new(&server, "demo/assistant");
    let sessions: Vec<Client> = (0..6).map(|_| client.in_session(NEWEST)).collect();
    let mut standing: Vec<Events> = sessions.iter().map(Client::standing).collect();
    let hold = call(1, "hold", json!({}));
    let mut posted: Vec<Events> =
        sessions.iter().map(|session| session.post_stream(&hold)).collect();
    for stream in standing.iter_mut().chain(&mut posted) {
        stream.primed();
    }
    let mut idle = client.connect();
    idle.ask(&client.message(&ping())).expect(200);
    server.terminate();
    for stream in &mut standing {
        assert_eq!(stream.rest().len(), 0, "ended properly, not cut off");
    }
    assert!(idle.is_closed());
    // Calls have the grace time.
    service.release();
    for stream in &mut posted {
        let rest = stream.rest();
        assert_eq!(rest[0]["result"]["isError"], false, "{rest:?}");
    }
    let status = server.ended();
    assert!(status.success(), "{status}");
}

#[test]
fn a_call_that_is_nearly_done_is_still_answered() {
    let service = Service::holding();
    let mut server = Setup::new().api(&service.base(), &[HOLD]).start();
    let client = Client::keyless(&server, "demo/public");
    let mut wire = client.connect();
    let request = Request::new("POST", &client.path).header("Accept", "application/json");
    wire.send(&request.json(&call(1, "hold", json!({}))));
    service.asked();
    let from = server.logged();
    server.terminate();
    server.wait_for_log(from, "stopping");
    service.release();
    assert_ne!(wire.answer().expect(200).result()["isError"], true);
    assert!(wire.is_closed(), "no further request is taken");
    assert!(server.ended().success());
}

#[test]
fn clients_that_do_not_let_go_are_left_within_the_grace_time() {
    let service = Service::holding();
    let mut server =
        Setup::new().set("runtime.shutdown_grace_ms", 500).api(&service.base(), &[HOLD]).start();
    let client = Client::keyless(&server, "demo/public");
    // One that asks for much and reads nothing, one in the middle of a request, one that waits for
    // an answer that does not come.
    let mut greedy = TcpStream::connect(server.address()).unwrap();
    greedy.set_nonblocking(true).unwrap();
    let ask = client.message(&rpc(1, "tools/list", json!({}))).bytes();
    let many = ask.repeat(20_000);
    let mut sent = 0;
    let begin = Instant::now();
    while sent < many.len() && begin.elapsed() < Duration::from_millis(500) {
        sent += greedy.write(&many[sent..]).unwrap_or(0);
    }
    let mut torn = TcpStream::connect(server.address()).unwrap();
    torn.write_all(&ask[..ask.len() - 1]).unwrap();
    let mut patient = client.connect();
    let request = Request::new("POST", &client.path).header("Accept", "application/json");
    patient.send(&request.json(&call(1, "hold", json!({}))));
    service.asked();
    let begin = Instant::now();
    server.terminate();
    assert!(server.ended().success());
    // The grace time, what it takes to end the tasks that are left, and what a busy machine adds;
    // the call alone would have taken longer.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn what_is_private_is_for_its_owner_only() {
    let mut server = Setup::new().start();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&server.admin_socket()), 0o600);
    assert_eq!(mode(server.data()), 0o700);
    // A socket that a crash left behind is no obstacle.
    server.kill();
    assert!(server.admin_socket().exists());
    server.start();
    assert_eq!(mode(&server.admin_socket()), 0o600);
    // Commands tell by it whether a server runs.
    server.stop();
    assert!(!server.admin_socket().exists(), "a stopped server's socket");
}

#[test]
fn a_reader_that_falls_behind_is_dropped_and_loses_nothing() {
    let server = Setup::new()
        .set("runtime.mcp.sse.outlet_bytes_max", 4096)
        // The window holds all there is, however much the kernel buffers for the reader.
        .set("runtime.mcp.sse.window_events_max", 100_000)
        .set("runtime.mcp.sse.window_bytes_max", 64_000_000)
        .set("http.write_timeout_ms", 1000)
        .start();
    let client = Client::open(&server);
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(2048).unwrap();
    socket.connect(&server.address().into()).unwrap();
    let socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut slow = Events::open(Wire::over(socket), &client.get(None)).unwrap();
    slow.primed();
    let mut notified = 0;
    while notified % 50 > 0 || server.metric("ringway_streams_open") > 0.5 {
        server.notify();
        notified += 1;
        assert!(notified < 100_000, "never dropped");
    }
    let mut received = 0;
    while let Ok(Some(event)) = slow.try_next() {
        received += usize::from(event.data.is_some_and(|data| !data.is_empty()));
    }
    assert!(received < notified);
    // What was read is known by its last whole event; the rest is replayed, each message once.
    let mut again = client.stream(slow.last.as_deref()).unwrap();
    client.delete().expect(204);
    received += again.rest().len();
    // Messages that came while nobody was attached are not kept: lists are read again. There are
    // fewer of them than two rounds: the count of open streams follows a stream's end.
    assert!(received <= notified && notified - received < 100, "{received} of {notified}");
}

#[test]
fn connections_over_the_limit_are_closed_and_operators_get_in() {
    let server = Setup::new().set("runtime.cores", 1).set("http.connections_max", 2).start();
    let client = Client::keyless(&server, "demo/public");
    let mut first = client.connect();
    first.ask(&client.message(&ping())).expect(200);
    let mut second = client.connect();
    second.ask(&client.message(&ping())).expect(200);
    assert!(client.connect().is_closed());
    first.ask(&client.message(&ping())).expect(200);
    server.command(&["status"]).succeeded();
    assert!(server.metric("ringway_connections_refused_total") > 0.5);
    drop(first);
    eventually("the place is free again", || {
        let mut wire = client.connect();
        wire.try_send(&client.message(&ping())) && !wire.is_closed()
    });
}

/// As the binary alone, with that many files open at most.
fn with_open_files(count: usize) -> String {
    format!("ulimit -n {count}; exec \"$0\" serve")
}

#[test]
fn clients_alone_do_not_use_up_what_files_may_be_open() {
    let mut server = Setup::new().set("runtime.cores", 1).prepare();
    server.start_by(&with_open_files(200), |_| {});
    server.wait_for_log(0, "fewer connections than set");
    let status = server.admin("GET", "/status", None).expect(200).json();
    let places = status["connections_max_per_core"].as_u64().unwrap() as usize;
    assert_eq!(places, (200 - 64 - 16) / 3 * 2);
    let client = Client::keyless(&server, "demo/public");
    let mut held: Vec<Wire> = (0..places)
        .map(|_| {
            let mut wire = client.connect();
            wire.ask(&client.message(&ping())).expect(200);
            wire
        })
        .collect();
    // More than there are descriptors.
    let over: Vec<Wire> = (0..300).map(|_| client.connect()).collect();
    for mut wire in over {
        assert!(wire.is_closed());
    }
    server.command(&["key", "create", "--client", "demo/assistant"]).succeeded();
    server.admin("GET", "/readyz", None).expect(200);
    for wire in &mut held {
        wire.ask(&client.message(&ping())).expect(200);
    }
    assert!(!server.log_text().contains("no client can be accepted"), "descriptors ran out");
    server.stop();
}

#[test]
fn too_few_files_are_refused_at_the_start() {
    let server = Setup::new().set("runtime.cores", 2).prepare();
    let mut command = std::process::Command::new("sh");
    command.envs(server.settings().iter().cloned());
    command.args(["-c", &with_open_files(64), env!("CARGO_BIN_EXE_ringway")]);
    let done = command.output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(!done.status.success() && said.contains("LimitNOFILE"), "{said}");
    assert!(said.contains("64 files open"), "{said}");
    assert!(!server.data().join("store").exists(), "something was written");
}
