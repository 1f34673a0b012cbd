//! Accepting and connecting.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::super::*;
use super::{on_core, until};

const LONG: Duration = Duration::from_secs(10);

fn local() -> ListenAddress {
    ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn port_of(listener: &BoundListener) -> u16 {
    match listener.local_address() {
        ListenAddress::Tcp(address) => address.port(),
        ListenAddress::Unix(_) => panic!("not TCP"),
    }
}

#[test]
fn a_server_echoes_and_stops() {
    on_core(async {
        let listener = BoundListener::bind(&local(), 64).unwrap();
        let port = port_of(&listener);
        let stop = Stop::new();
        let ended = Rc::new(Cell::new(false));
        spawn({
            let (stop, ended) = (stop.clone(), Rc::clone(&ended));
            async move {
                listener.serve(None, stop, echo).await.unwrap();
                ended.set(true);
            }
        });
        let (sender, answer) = oneshot();
        std::thread::spawn(move || {
            let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
            client.write_all(b"hello").unwrap();
            let mut buf = [0; 5];
            client.read_exact(&mut buf).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).unwrap();
            sender.send((buf, rest)).unwrap();
        });
        assert_eq!(answer.await.unwrap(), (*b"hello", Vec::new()));
        stop.stop();
        until("serve ends", || ended.get()).await;
    });
}

async fn echo(connection: Connection) {
    let Connection { mut reader, mut writer, .. } = connection;
    let deadline = Deadline::new();
    let mut buf = Vec::new();
    loop {
        deadline.set(LONG);
        match reader.read(&mut buf, &deadline).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let (outcome, empty) = writer.write_all(buf, &deadline, LONG).await;
        buf = empty;
        if outcome.is_err() {
            break;
        }
    }
    let _ = writer.shutdown().await;
}

/// Trap 1: stopping a listener, or dropping it, leaks no client; those that wait are served.
#[test]
fn clients_that_wait_when_a_listener_stops_are_served() {
    super::leaks_nothing(|| {
        on_core(async {
            for round in 0..20 {
                let listener = BoundListener::bind(&local(), 64).unwrap();
                let port = port_of(&listener);
                let stop = Stop::new();
                let served = Rc::new(Cell::new(0));
                let handler = {
                    let served = Rc::clone(&served);
                    move |connection: Connection| {
                        served.set(served.get() + 1);
                        async move { drop(connection) }
                    }
                };
                spawn({
                    let stop = stop.clone();
                    async move { listener.serve(None, stop, handler).await.unwrap() }
                });
                sleep(Duration::from_millis(1)).await;
                if round % 2 == 0 {
                    // In the same turn: the client is there, and so is the stop.
                    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
                    stop.stop();
                    until("served", || served.get() == 1).await;
                    drop(client);
                } else {
                    end_tasks(LONG).await;
                    sleep(Duration::from_millis(2)).await;
                }
                until("it is closed", || TcpStream::connect(("127.0.0.1", port)).is_err()).await;
            }
        });
    });
}

/// Trap 11.
#[test]
fn an_inherited_listener_serves_several_cores_and_blocks_none() {
    on_core(async {
        let blocking = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = blocking.local_addr().unwrap().port();
        let listener = BoundListener::adopt(blocking.into()).unwrap();
        let stop = Stop::new();
        for _ in 0..2 {
            let (copy, stop) = (listener.duplicate().unwrap(), stop.clone());
            assert_eq!(copy.local_address(), listener.local_address());
            spawn(async move { copy.serve(None, stop, echo).await.unwrap() });
        }
        // A blocked core would not get here again.
        sleep(Duration::from_millis(5)).await;
        let client = std::thread::spawn(move || {
            for _ in 0..20 {
                let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
                client.write_all(b"x").unwrap();
                client.read_exact(&mut [0]).unwrap();
            }
        });
        until("all answered", || client.is_finished()).await;
        client.join().unwrap();
        stop.stop();
    });
    let not_listening = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(BoundListener::adopt(not_listening.into()).is_err());
}

#[test]
fn unix_sockets_replace_dead_files_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let address = ListenAddress::Unix(path.clone());
    let first = BoundListener::bind(&address, 8).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let error = BoundListener::bind(&address, 8).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains("socket"), "{error}");
    drop(first);
    let listener = BoundListener::bind(&address, 8).unwrap();
    on_core(async move {
        let stop = Stop::new();
        spawn({
            let stop = stop.clone();
            async move { listener.serve(None, stop, echo).await.unwrap() }
        });
        let client = std::thread::spawn(move || {
            let mut client = std::os::unix::net::UnixStream::connect(path).unwrap();
            client.write_all(b"hello").unwrap();
            let mut buf = [0; 5];
            client.read_exact(&mut buf).unwrap();
            buf
        });
        until("answered", || client.is_finished()).await;
        assert_eq!(client.join().unwrap(), *b"hello");
        stop.stop();
    });
    let plain = folder.path().join("file");
    std::fs::write(&plain, "not a socket").unwrap();
    assert!(BoundListener::bind(&ListenAddress::Unix(plain.clone()), 8).is_err());
    assert_eq!(std::fs::read(&plain).unwrap(), b"not a socket");
}

#[test]
fn errors_of_bind_name_the_address() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = BoundListener::bind(&ListenAddress::Tcp(address), 8).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[test]
fn connect_tries_all_addresses_and_only_those_allowed() {
    on_core(async {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = server.local_addr().unwrap();
        let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let resolver = Resolver::new(WorkerPool::start(1, 4).unwrap());
        resolver.pretend("two.example", 80, &[dead, good]);
        let target = ConnectTarget { host: "two.example", port: 80, tls: None };
        let connection = connect(&resolver, target, &|_| true, LONG).await.unwrap();
        assert_eq!(connection.peer, Peer::Ip(good));

        let error = connect(&resolver, target, &|_| false, LONG).await.unwrap_err();
        assert!(matches!(error, ConnectError::Refused { .. }), "{error}");

        resolver.pretend("dead.example", 80, &[dead]);
        let target = ConnectTarget { host: "dead.example", port: 80, tls: None };
        let error = connect(&resolver, target, &|_| true, LONG).await.unwrap_err();
        assert!(matches!(error, ConnectError::Connect { .. }), "{error}");

        // An IPv4 address in IPv6 clothes is judged as IPv4.
        let target = ConnectTarget { host: "[::ffff:127.0.0.1]", port: good.port(), tls: None };
        let judge = |address: IpAddr| !address.is_ipv4();
        let error = connect(&resolver, target, &judge, LONG).await.unwrap_err();
        assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    });
}

#[test]
fn connect_does_not_wait_for_an_address_that_is_silent() {
    on_core(async {
        // A listener whose queue is full answers nobody.
        let silent = BoundListener::bind(&local(), 0).unwrap();
        let ListenAddress::Tcp(silent_address) = silent.local_address() else { panic!() };
        let resolver = Resolver::new(WorkerPool::start(1, 4).unwrap());
        let mut held = Vec::new();
        resolver.pretend("silent.example", 80, &[silent_address]);
        let target = ConnectTarget { host: "silent.example", port: 80, tls: None };
        let short = Duration::from_millis(300);
        let error = loop {
            match connect(&resolver, target, &|_| true, short).await {
                Ok(connection) => held.push(connection),
                Err(error) => break error,
            }
            assert!(held.len() < 10);
        };
        assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = server.local_addr().unwrap();
        resolver.pretend("both.example", 80, &[silent_address, good]);
        let target = ConnectTarget { host: "both.example", port: 80, tls: None };
        let begun = Instant::now();
        let connection = connect(&resolver, target, &|_| true, LONG).await.unwrap();
        assert_eq!(connection.peer, Peer::Ip(good));
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(240) && took < Duration::from_secs(2), "{took:?}");
    });
}

#[test]
fn names_are_resolved_and_remembered() {
    on_core(async {
        let pool = WorkerPool::start(1, 4).unwrap();
        let resolver = Resolver::new(pool.clone());
        let found = resolver.resolve("localhost", 80).await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
        let missing = resolver.resolve("no-such-host.invalid", 80).await;
        assert!(matches!(missing, Err(ConnectError::Resolve { .. })));
        // Both answers are remembered: no worker is needed any more, nor for an address.
        pool.stop();
        assert_eq!(resolver.resolve("localhost", 80).await.unwrap(), found);
        assert!(resolver.resolve("no-such-host.invalid", 80).await.is_err());
        assert_eq!(resolver.resolve("[::1]", 8).await.unwrap()[0].port(), 8);
        assert!(resolver.resolve("localhost", 81).await.is_err());
        assert!(resolver.resolve(&"a".repeat(300), 81).await.is_err());
    });
}
