//! The second GET of a session: who keeps the standing stream.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::{Client, Events, Setup, Wire};

/// Carries bytes both ways until it freezes: then it neither reads nor writes nor closes, as a
/// machine that is gone or a suspended laptop.
struct Relay {
    address: SocketAddr,
    frozen: Arc<AtomicBool>,
}

impl Relay {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let frozen = Arc::new(AtomicBool::new(false));
        let stop = frozen.clone();
        thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                let far = small_window(server);
                carry(near.try_clone().unwrap(), far.try_clone().unwrap(), stop.clone());
                carry(far, near, stop.clone());
            }
        });
        Self { address, frozen }
    }

    fn freeze(&self) {
        self.frozen.store(true, Ordering::SeqCst);
    }
}

/// A connection whose receive buffer is soon full.
fn small_window(server: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(2048).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}

fn carry(mut from: TcpStream, mut to: TcpStream, frozen: Arc<AtomicBool>) {
    thread::spawn(move || {
        let mut bytes = [0; 1024];
        while let Ok(read) = from.read(&mut bytes) {
            while frozen.load(Ordering::SeqCst) {
                thread::park();
            }
            if read == 0 || to.write_all(&bytes[..read]).is_err() {
                return;
            }
        }
    });
}

/// One message reaches the stream, and nothing else until the session's end.
fn gets_one_copy(server: &crate::harness::Ringway, client: &Client, stream: &mut Events) {
    server.notify();
    let message = stream.message().unwrap();
    assert_eq!(message["method"], "notifications/tools/list_changed");
    client.delete().expect(204);
    assert_eq!(stream.rest().len(), 0, "a second copy");
}

#[test]
fn a_client_that_asks_again_gets_the_stream() {
    let server = Setup::new().start();
    let client = Client::open(&server);
    let mut first = client.standing();
    first.primed();
    client.stream(None).err().unwrap().expect(409);
    // The first goes on: a refusal takes nothing from it.
    server.notify();
    assert!(first.message().is_some());
    let mut second = client.standing();
    assert_eq!(first.rest().len(), 0, "the first ends properly");
    gets_one_copy(&server, &client, &mut second);
}

#[test]
fn who_presents_the_last_event_takes_over_at_once() {
    let server = Setup::new().start();
    let client = Client::open(&server);
    let mut first = client.standing();
    server.notify();
    let event = first.message_event().id.unwrap();
    let mut second = client.stream(Some(&event)).unwrap();
    assert!(first.breaks_off());
    gets_one_copy(&server, &client, &mut second);
}

#[test]
fn a_client_that_is_gone_holds_nothing() {
    let server = Setup::new().start();
    let client = Client::open(&server);
    for _ in 0..3 {
        drop(client.standing());
    }
    let mut last = client.standing();
    gets_one_copy(&server, &client, &mut last);
}

#[test]
fn a_frozen_relay_does_not_hold_the_stream() {
    let server = Setup::new().start();
    let client = Client::open(&server);
    let relay = Relay::to(server.address());
    let first = Events::open(Wire::tcp(relay.address), &client.get(None));
    first.unwrap().primed();
    relay.freeze();
    // The relay's kernel still acknowledges: as far as anybody can know its client lives.
    client.stream(None).err().unwrap().expect(409);
    let mut second = client.standing();
    gets_one_copy(&server, &client, &mut second);
}

#[test]
fn a_relay_that_acknowledges_nothing_is_dead() {
    let server = Setup::new().start();
    let client = Client::open(&server);
    let relay = Relay::to(server.address());
    let mut first = Events::open(Wire::tcp(relay.address), &client.get(None)).unwrap();
    first.primed();
    relay.freeze();
    // More than its receive buffer takes.
    for _ in 0..100 {
        server.notify();
    }
    let mut second = client.standing();
    gets_one_copy(&server, &client, &mut second);
}
