//! Reads and writes.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::super::*;
use super::{on_core, until};

const LONG: Duration = Duration::from_secs(10);

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
        // Its deadline went with it.
        let armed_still = format!("{deadline:?}").contains("armed: true");
        assert!(!armed_still);
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

/// On epoll a client that sends without pause finds its reader always ready: other tasks and timers
/// get their turn all the same.
#[test]
fn a_client_that_never_pauses_keeps_nobody_waiting() {
    on_core(async {
        let (connection, mut peer) = pair().await;
        let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let flooding = std::thread::spawn({
            let over = std::sync::Arc::clone(&over);
            move || {
                let block = vec![0u8; 64 * 1024];
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    if peer.write_all(&block).is_err() {
                        break;
                    }
                }
            }
        });
        let reads = Rc::new(Cell::new(0u64));
        spawn({
            let reads = Rc::clone(&reads);
            async move {
                let mut connection = connection;
                let (deadline, mut buf) = (Deadline::new(), Vec::new());
                // Small reads, so that there is always more.
                connection.reader.set_read_size(1);
                while connection.reader.read(&mut buf, &deadline).await.is_ok_and(|count| count > 0)
                {
                    reads.set(reads.get() + 1);
                    buf = Vec::new();
                    connection.reader.set_read_size(1);
                }
            }
        });
        let begun = Instant::now();
        for _ in 0..10 {
            sleep(Duration::from_millis(2)).await;
        }
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        assert!(reads.get() > 0);
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        end_tasks(LONG).await;
        until("the flood ends", || flooding.is_finished()).await;
    });
}

/// Not run by default: it reads the memory of the whole process.
#[test]
#[ignore = "a measurement, for a process of its own"]
fn memory_of_idle_event_streams() {
    const STREAMS: usize = 2000;
    let resident = || -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    on_core(async {
        let mut peers = Vec::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let resolver = Resolver::new(WorkerPool::start(1, 4).unwrap());
        let mut before = 0;
        for count in 0..STREAMS + 200 {
            if count == 200 {
                before = resident();
            }
            let target = ConnectTarget { host: "127.0.0.1", port: address.port(), tls: None };
            let connection = connect(&resolver, target, &|_| true, LONG).await.unwrap();
            peers.push(listener.accept().unwrap().0);
            spawn(async move {
                let Connection { mut reader, mut writer, .. } = connection;
                let (watching, writing) = (Deadline::new(), Deadline::new());
                let queue = Notify::new();
                reader.set_read_size(64);
                let mut buf = Vec::new();
                loop {
                    let read = reader.read(&mut buf, &watching);
                    match race(read, queue.notified()).await {
                        Either::Left(_) => return,
                        Either::Right(()) => {
                            let _ = writer.write_all(Vec::new(), &writing, LONG).await;
                        }
                    }
                }
            });
        }
        sleep(Duration::from_millis(100)).await;
        println!("{} bytes a stream", (resident() - before) / STREAMS);
    });
}
