//! Sockets: reads, writes, accepting, connecting.

use std::cell::{Cell, RefCell};
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

/// A connection of a core and the plain socket at its other end.
async fn pair() -> (Connection, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let pool = WorkerPool::start(1, 4).unwrap();
    let resolver = Resolver::new(pool);
    let target = ConnectTarget { host: "127.0.0.1", port: address.port(), tls: None };
    let connection = connect(&resolver, target, &|_| true, LONG).await.unwrap();
    let (peer, _) = listener.accept().unwrap();
    (connection, peer)
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

#[test]
fn dropped_reads_lose_nothing() {
    on_core(async {
        let (mut connection, mut peer) = pair().await;
        let deadline = Deadline::new();
        let mut received = Vec::new();
        let mut expected = Vec::new();
        for round in 0..50u8 {
            // A read that is dropped, sometimes before, sometimes after its bytes have come.
            let mut other = Vec::new();
            if round % 2 == 0 {
                let read = connection.reader.read(&mut other, &deadline);
                assert!(timeout(Duration::from_millis(2), read).await.is_err());
            }
            let word = [round; 5];
            peer.write_all(&word).unwrap();
            expected.extend_from_slice(&word);
            let read = connection.reader.read(&mut received, &deadline);
            let _ = timeout(Duration::ZERO, read).await;
        }
        while received.len() < expected.len() {
            connection.reader.read(&mut received, &deadline).await.unwrap();
        }
        assert_eq!(received, expected);
    });
}

/// Trap 8.
#[test]
fn reads_append_and_grow_with_what_comes() {
    on_core(async {
        let (mut connection, mut peer) = pair().await;
        let sent: Vec<u8> = (0..300_000u32).map(|number| (number % 251) as u8).collect();
        let expected = sent.clone();
        std::thread::spawn(move || peer.write_all(&sent).unwrap());
        let deadline = Deadline::new();
        let mut buf = b"here before".to_vec();
        let mut largest = 0;
        loop {
            let before = buf.len();
            let count = connection.reader.read(&mut buf, &deadline).await.unwrap();
            assert_eq!(buf.len(), before + count);
            largest = largest.max(count);
            if count == 0 {
                break;
            }
        }
        assert_eq!(buf[..11], *b"here before");
        assert_eq!(buf[11..], expected);
        assert!(largest > 4096, "{largest}");
    });
}

#[test]
fn a_read_ends_with_its_deadline_and_goes_on_after_it() {
    on_core(async {
        let (mut connection, mut peer) = pair().await;
        let deadline = Deadline::new();
        deadline.set(Duration::from_millis(100));
        let mut buf = Vec::new();
        let error = connection.reader.read(&mut buf, &deadline).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        peer.write_all(b"late").unwrap();
        deadline.set(LONG);
        assert_eq!(connection.reader.read(&mut buf, &deadline).await.unwrap(), 4);
        assert_eq!(buf, b"late");
    });
}

#[test]
fn half_closed_both_ways() {
    on_core(async {
        let (mut connection, mut peer) = pair().await;
        let deadline = Deadline::new();
        // We end first and still receive.
        connection.writer.shutdown().await.unwrap();
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
        peer.write_all(b"still here").unwrap();
        let mut buf = Vec::new();
        connection.reader.read(&mut buf, &deadline).await.unwrap();
        assert_eq!(buf, b"still here");
        drop(peer);
        assert_eq!(connection.reader.read(&mut buf, &deadline).await.unwrap(), 0);
        let (outcome, _) = connection.writer.write_all(vec![1], &deadline, LONG).await;
        assert_eq!(outcome.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);

        // The peer ends first and still receives.
        let (mut connection, mut peer) = pair().await;
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(connection.reader.read(&mut Vec::new(), &deadline).await.unwrap(), 0);
        let (outcome, empty) =
            connection.writer.write_all(b"answer".to_vec(), &deadline, LONG).await;
        outcome.unwrap();
        assert!(empty.is_empty() && empty.capacity() >= 6);
        drop(connection);
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"answer");
    });
}

#[test]
fn a_reader_that_stalls_hits_the_write_deadline() {
    on_core(async {
        let (mut connection, peer) = pair().await;
        let deadline = Deadline::new();
        let frame = std::sync::Arc::new(vec![7u8; 32 * 1024 * 1024]);
        let begun = Instant::now();
        let within = Duration::from_millis(300);
        let outcome = connection.writer.write_shared(frame, &deadline, within).await;
        assert_eq!(outcome.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        let took = begun.elapsed();
        assert!((within..Duration::from_secs(3)).contains(&took), "{took:?}");
        assert!(connection.writer.unacknowledged_bytes().unwrap() > 0);
        let (outcome, _) = connection.writer.write_all(vec![1], &deadline, LONG).await;
        assert_eq!(outcome.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
        drop(peer);
    });
}

#[test]
fn a_dropped_write_breaks_the_writer() {
    on_core(async {
        let (mut connection, _peer) = pair().await;
        let deadline = Deadline::new();
        let write = connection.writer.write_all(vec![0; 32 * 1024 * 1024], &deadline, LONG);
        assert!(timeout(Duration::from_millis(20), write).await.is_err());
        let (outcome, _) = connection.writer.write_all(vec![1], &deadline, LONG).await;
        assert_eq!(outcome.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    });
}

#[test]
fn what_the_peer_acknowledged_is_told() {
    on_core(async {
        let (mut connection, _peer) = pair().await;
        let deadline = Deadline::new();
        connection.writer.write_all(vec![0; 1000], &deadline, LONG).await.0.unwrap();
        let mut left = usize::MAX;
        until("acknowledged", || {
            left = connection.writer.unacknowledged_bytes().unwrap();
            left == 0
        })
        .await;
    });
}

/// Readers and writers that are dropped with an operation in flight, and whole cores that end with
/// some, close what they hold.
#[test]
fn nothing_leaks_when_connections_are_dropped() {
    let run = || {
        on_core(async {
            let mut peers = Vec::new();
            for _ in 0..50 {
                let (mut connection, peer) = pair().await;
                let deadline = Deadline::new();
                let mut buf = Vec::new();
                let read = connection.reader.read(&mut buf, &deadline);
                let _ = timeout(Duration::ZERO, read).await;
                if peers.len() % 2 == 0 {
                    drop(connection);
                } else {
                    spawn(async move {
                        let mut connection = connection;
                        let _ = connection.reader.read(&mut Vec::new(), &Deadline::new()).await;
                    });
                }
                peers.push(peer);
            }
            sleep(Duration::from_millis(20)).await;
            end_tasks(LONG).await;
            for mut peer in peers {
                peer.set_read_timeout(Some(LONG)).unwrap();
                assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0, "the connection is still open");
            }
        });
    };
    super::leaks_nothing(run);
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

/// The tuned ring reaps its own completions: other threads that wake it without end must not keep
/// it from its sockets.
#[test]
fn sockets_are_served_under_a_flood_from_another_thread() {
    struct Word;
    impl Weigh for Word {
        fn bytes(&self) -> usize {
            1
        }
    }
    for tuned_ring in [true, false] {
        let options = CoreOptions { tuned_ring, ..CoreOptions::default() };
        run_once(options, async {
            let (sender, mut receiver) = inbox::<Word>(1, 1);
            let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let flood = std::thread::spawn({
                let over = std::sync::Arc::clone(&over);
                move || {
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        drop(sender.push(Word));
                    }
                }
            });
            spawn(async move {
                let mut out = Vec::new();
                while receiver.drain(&mut out).await {
                    out.clear();
                }
            });
            let (mut connection, mut peer) = pair().await;
            let echoing = std::thread::spawn(move || {
                let mut byte = [0];
                while peer.read_exact(&mut byte).is_ok() {
                    peer.write_all(&byte).unwrap();
                }
            });
            let deadline = Deadline::new();
            let begun = Instant::now();
            let mut buf = Vec::new();
            for _ in 0..200 {
                connection.writer.write_all(vec![1], &deadline, LONG).await.0.unwrap();
                deadline.set(LONG);
                connection.reader.read(&mut buf, &deadline).await.unwrap();
            }
            println!("tuned {tuned_ring}: 200 exchanges in {:?}", begun.elapsed());
            drop(connection);
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            until("both end", || flood.is_finished() && echoing.is_finished()).await;
        })
        .unwrap();
    }
}

/// What an idle event stream costs in this room: its task, a pending write or wait, a 64-byte read.
#[test]
fn an_idle_connection_is_small() {
    on_core(async {
        let (mut connection, _peer) = pair().await;
        let deadline = Deadline::new();
        let connection_bytes = size_of_val(&connection);
        let mut buf = Vec::new();
        let read = size_of_val(&connection.reader.read(&mut buf, &deadline));
        let write = size_of_val(&connection.writer.write_all(Vec::new(), &deadline, LONG));
        let pump = connection.reader.pump_bytes();
        println!("connection {connection_bytes}, read {read}, write {write}, pump {pump}");
        assert!(connection_bytes + read + pump + 64 + write < 1600);
    });
}
