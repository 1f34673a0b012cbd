//! What belongs to the process as a whole. Each test starts this test binary again, for one test,
//! with an environment or sockets of its own.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output};
use std::time::Duration;

use super::super::*;
use super::on_core;

const ROLE: &str = "RINGWAY_TEST_ROLE";

/// A shell that becomes this binary again, running `test` alone in a role of its own. The shell
/// knows the process id before the binary starts, as a service manager does.
fn again(test: &str, before: &str, redirect: &str) -> Command {
    let binary = std::env::current_exe().unwrap();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!(
        "{before} exec '{}' --exact rt::tests::process::{test} --nocapture {redirect}",
        binary.display()
    ));
    shell.env(ROLE, test);
    shell
}

fn is_again(test: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|role| role == test)
}

fn succeeded(output: &Output) {
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{error}");
}

#[test]
fn sockets_come_from_the_service_manager_once() {
    const TEST: &str = "sockets_come_from_the_service_manager_once";
    if is_again(TEST) {
        let mut inherited = BoundListener::inherited().unwrap();
        assert!(BoundListener::inherited().unwrap().is_empty());
        let (name, listener) = inherited.pop().unwrap();
        assert!(inherited.is_empty());
        assert_eq!(name, "web");
        let ListenAddress::Tcp(address) = listener.local_address() else { panic!("not TCP") };
        on_core(async move {
            let stop = Stop::new();
            let stopping = stop.clone();
            let client = std::thread::spawn(move || {
                let mut rest = Vec::new();
                TcpStream::connect(address).unwrap().read_to_end(&mut rest).unwrap();
                rest
            });
            let serve = listener.serve(None, stop, move |mut connection| {
                let stopping = stopping.clone();
                async move {
                    let (deadline, within) = (Deadline::new(), Duration::from_secs(5));
                    let written = connection.writer.write_all(b"hi".to_vec(), &deadline, within);
                    written.await.0.unwrap();
                    stopping.stop();
                }
            });
            serve.await.unwrap();
            assert_eq!(client.join().unwrap(), b"hi");
        });
        return;
    }
    // Blocking, as a service manager passes it.
    let socket = OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    let environment = "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web";
    let output = again(TEST, environment, "3<&0").stdin(socket).output().unwrap();
    succeeded(&output);
}

#[test]
fn the_service_manager_is_told() {
    const TEST: &str = "the_service_manager_is_told";
    if is_again(TEST) {
        service_manager::ready("serving\nMAINPID=1");
        service_manager::keep_alive();
        service_manager::stopping();
        assert_eq!(service_manager::watchdog_interval(), Some(Duration::from_secs(3)));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let output = again(TEST, "WATCHDOG_PID=$$", "")
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "3000000")
        .output()
        .unwrap();
    succeeded(&output);
    let expected = ["READY=1\nSTATUS=serving MAINPID=1\n", "WATCHDOG=1\n", "STOPPING=1\n"];
    for text in expected {
        let mut message = [0; 200];
        let length = socket.recv(&mut message).unwrap();
        assert_eq!(String::from_utf8_lossy(&message[..length]), text);
    }
}

#[test]
fn outside_a_service_manager_nothing_happens() {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        service_manager::ready("serving");
        service_manager::keep_alive();
    }
    if std::env::var_os("WATCHDOG_USEC").is_none() {
        assert_eq!(service_manager::watchdog_interval(), None);
    }
}

#[test]
fn signals_reach_the_thread_that_waits() {
    const TEST: &str = "signals_reach_the_thread_that_waits";
    if is_again(TEST) {
        let mut signals = Signals::install().unwrap();
        for (number, expected) in [
            (signal_hook::consts::SIGHUP, Signal::Reload),
            (signal_hook::consts::SIGTERM, Signal::Terminate),
            (signal_hook::consts::SIGINT, Signal::Terminate),
        ] {
            let raising = std::thread::spawn(move || signal_hook::low_level::raise(number));
            assert_eq!(signals.wait(), expected);
            raising.join().unwrap().unwrap();
        }
        return;
    }
    succeeded(&again(TEST, "", "").output().unwrap());
}

#[test]
fn panics_of_a_core_are_silent_but_for_the_log() {
    const TEST: &str = "panics_of_a_core_are_silent_but_for_the_log";
    if is_again(TEST) {
        let cores = Cores::start(CoreOptions::default(), 1, |_| async {
            let secret = String::from("of a tenant");
            spawn(async move { panic!("data {secret}") });
            sleep(Duration::from_millis(5)).await;
        });
        cores.unwrap().join().unwrap();
        assert_eq!(panics_contained(), 1);
        return;
    }
    let output = again(TEST, "", "").output().unwrap();
    succeeded(&output);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("of a tenant"), "{error}");
}
