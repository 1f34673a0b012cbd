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
