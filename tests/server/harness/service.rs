//! A scripted HTTP API on this machine: what a tool reaches.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::Value;

use super::PATIENCE;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What to do with a request.
pub(crate) enum Plan {
    /// These bytes.
    Answer(Vec<u8>),
    /// These bytes once `Service::release` is called.
    Held(Vec<u8>),
    /// These bytes, piece after piece, each when the one before is taken; then the end.
    Poured(Box<dyn Iterator<Item = Vec<u8>> + Send>),
    /// Nothing, ever.
    Silence,
}

/// What happened at the service.
#[derive(Debug)]
enum Happening {
    Asked(Asked),
    /// The other side closed the connection.
    Closed,
}

type Script = dyn Fn(&Asked) -> Plan + Send + Sync;

/// The running service. Its threads end with the test's process.
pub(crate) struct Service {
    address: SocketAddr,
    happenings: Mutex<Receiver<Happening>>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Service {
    pub(crate) fn start(script: impl Fn(&Asked) -> Plan + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, happenings) = mpsc::channel();
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let (script, opened): (Arc<Script>, _) = (Arc::new(script), gate.clone());
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (script, sender, gate) = (script.clone(), sender.clone(), opened.clone());
                thread::spawn(move || serve(socket.unwrap(), &*script, &sender, &gate));
            }
        });
        Self { address, happenings: Mutex::new(happenings), gate }
    }

    /// Answers every request with what it looked like.
    pub(crate) fn echo() -> Self {
        Self::start(|asked| {
            let body = serde_json::json!({ "method": asked.method, "target": asked.target });
            Plan::Answer(json_answer(&body.to_string()))
        })
    }

    /// Answers `{"held":true}` to a path with `hold` in it once released, others at once.
    pub(crate) fn holding() -> Self {
        Self::start(|asked| {
            let body = serde_json::json!({ "target": asked.target }).to_string();
            let answer = json_answer(&body);
            if asked.target.contains("hold") { Plan::Held(answer) } else { Plan::Answer(answer) }
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request; closed connections before it are passed over.
    pub(crate) fn asked(&self) -> Asked {
        loop {
            if let Happening::Asked(asked) = self.happening() {
                return asked;
            }
        }
    }

    /// Waits until a connection is closed by the other side.
    pub(crate) fn closed(&self) {
        while !matches!(self.happening(), Happening::Closed) {}
    }

    /// Whether nothing at all happened since it was last looked.
    pub(crate) fn is_quiet(&self) -> bool {
        self.happenings.lock().unwrap().try_recv().is_err()
    }

    /// Lets held answers go.
    pub(crate) fn release(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }

    fn happening(&self) -> Happening {
        self.happenings.lock().unwrap().recv_timeout(PATIENCE).expect("the service waits in vain")
    }
}

/// A whole answer.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !status.starts_with("204") {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    text += "\r\n";
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn json_answer(body: &str) -> Vec<u8> {
    answer("200 OK", &[("Content-Type", "application/json")], body.as_bytes())
}

fn serve(
    mut socket: TcpStream,
    script: &Script,
    happened: &Sender<Happening>,
    gate: &Arc<(Mutex<bool>, Condvar)>,
) {
    let mut received = Vec::new();
    while let Some(asked) = read_request(&mut socket, &mut received) {
        let plan = script(&asked);
        let _ = happened.send(Happening::Asked(asked));
        match plan {
            Plan::Answer(bytes) => {
                let _ = socket.write_all(&bytes);
            }
            Plan::Held(bytes) => {
                let (mut socket, gate) = (socket.try_clone().unwrap(), gate.clone());
                thread::spawn(move || {
                    let mut open = gate.0.lock().unwrap();
                    while !*open {
                        open = gate.1.wait(open).unwrap();
                    }
                    let _ = socket.write_all(&bytes);
                });
            }
            Plan::Poured(pieces) => {
                for piece in pieces {
                    if socket.write_all(&piece).is_err() {
                        break;
                    }
                }
                break;
            }
            Plan::Silence => {}
        }
    }
    let _ = happened.send(Happening::Closed);
}

/// The next request; `None` when the other side is gone.
fn read_request(socket: &mut TcpStream, received: &mut Vec<u8>) -> Option<Asked> {
    let mut bytes = [0; 16 * 1024];
    let end = loop {
        if let Some(at) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let read = socket.read(&mut bytes).ok().filter(|read| *read > 0)?;
        received.extend_from_slice(&bytes[..read]);
    };
    let head = String::from_utf8(received.drain(..end).collect()).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let mut words = lines.next().unwrap().split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut asked = Asked { method, target, headers, body: Vec::new() };
    let length = asked.header("Content-Length").map_or(0, |length| length.parse().unwrap());
    while received.len() < length {
        let read = socket.read(&mut bytes).ok().filter(|read| *read > 0)?;
        received.extend_from_slice(&bytes[..read]);
    }
    asked.body = received.drain(..length).collect();
    Some(asked)
}
