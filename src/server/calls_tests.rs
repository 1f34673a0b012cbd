//! When an answer becomes an event stream, over a real connection.

use std::{cell::RefCell, future::pending, net::SocketAddr};

use super::*;
use crate::{
    rpc::{OwnedId, Reply, ResultBody},
    rt::{BoundListener, Connection, Deadline, ListenAddress, Resolver},
    server::{
        conversation::{Said, SaidKind, Way},
        fixture::{Cores, on_cores},
        running::Answered,
    },
    sessions::ClientCapabilities,
};

/// Both ends of a connection.
async fn connected(core: &Rc<Core>) -> (Wire, Connection) {
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = BoundListener::bind(&ListenAddress::Tcp(any), 4).unwrap();
    let ListenAddress::Tcp(address) = listener.local_address() else { panic!() };
    let accepted = Rc::new(RefCell::new(None));
    let place = Rc::clone(&accepted);
    rt::spawn(async move {
        let handler = move |connection| {
            place.replace(Some(connection));
            async {}
        };
        let _ = listener.serve(None, rt::Stop::new(), handler).await;
    });
    let client = connect(core, address).await;
    loop {
        if let Some(Connection { reader, writer, .. }) = accepted.take() {
            let deadline = Deadline::new();
            let wire = Wire { reader, writer, deadline, pipelined: Vec::new(), _place: None };
            return (wire, client);
        }
        rt::sleep(Duration::from_millis(1)).await;
    }
}

async fn connect(core: &Rc<Core>, address: SocketAddr) -> Connection {
    let resolver = Resolver::new(core.shared.workers.clone());
    let target = rt::ConnectTarget { host: "127.0.0.1", port: address.port(), tls: None };
    rt::connect(&resolver, target, &|_| true, Duration::from_secs(5)).await.unwrap()
}

fn id() -> OwnedId {
    let text = crate::json::OwnedRaw::parse(b"1").unwrap();
    crate::rpc::Id::of(text.as_raw()).unwrap().to_owned_id()
}

/// A call that says something and then goes on as `then` has it.
fn waiting(
    cores: &Cores,
    kind: AnswerKind,
    said: bool,
    ends: bool,
) -> (Box<Waiting>, Arc<Session>) {
    let core = &cores.all[0];
    let session = cores.session("acme", Revision::V20251125, ClientCapabilities::NONE);
    let way = Way::new(core);
    let speaks = Rc::clone(&way);
    let running = Running::Single(Box::pin(async move {
        if said {
            let payload = br#"{"said":1}"#.to_vec();
            speaks.say(Said { payload, kind: SaidKind::Told });
        }
        if !ends {
            pending::<()>().await;
        }
        Answered::Reply(Reply::new(id(), Ok(ResultBody::EMPTY)))
    }));
    let job = Job { running, progress_token: None, note: Vec::new(), way: Some(way) };
    let answering = Answering {
        kind,
        session: Some(Arc::clone(&session)),
        revision: session.revision(),
        header: None,
        echo: Echo { keep_alive: true, ..Echo::default() },
    };
    (Box::new(Waiting { job, answering }), session)
}

/// What is sent on the stream, until nothing more comes.
async fn sent(stream: &EventStream) -> String {
    let mut all = String::new();
    for _ in 0..5 {
        while let Some(frame) = stream.outlet.pop() {
            all.push_str(&String::from_utf8_lossy(&frame));
        }
        rt::sleep(Duration::from_millis(2)).await;
    }
    all
}

#[test]
fn what_is_said_before_the_answer_opens_the_stream_at_once() {
    on_cores(async |cores| {
        let core = &cores.all[0];
        let (mut wire, _client) = connected(core).await;
        let (waiting, _session) = waiting(cores, AnswerKind::Either, true, false);
        let (started, mut out) = (Instant::now(), Vec::new());
        let Settled::Stream(stream) = settle(core, waiting, &mut wire, &mut out).await else {
            panic!()
        };
        assert!(started.elapsed() < core.shared.timing.upgrade_after);
        assert!(String::from_utf8_lossy(&out).contains("text/event-stream"));
        assert!(sent(&stream).await.contains(r#"{"said":1}"#));
    });
}

#[test]
fn what_is_said_in_the_moment_of_the_answer_comes_before_it() {
    on_cores(async |cores| {
        let core = &cores.all[0];
        let (mut wire, _client) = connected(core).await;
        for kind in [AnswerKind::Either, AnswerKind::EventStream] {
            let (waiting, _session) = waiting(cores, kind, true, true);
            let mut out = Vec::new();
            let Settled::Stream(stream) = settle(core, waiting, &mut wire, &mut out).await else {
                panic!()
            };
            let sent = sent(&stream).await;
            let (said, answer) = (sent.find("said").unwrap(), sent.find("\"id\":1").unwrap());
            assert!(said < answer, "{sent}");
        }
    });
}

#[test]
fn where_only_json_is_taken_and_where_nothing_is_said_the_answer_is_json() {
    on_cores(async |cores| {
        let core = &cores.all[0];
        let (mut wire, _client) = connected(core).await;
        for (kind, said) in [(AnswerKind::Json, true), (AnswerKind::Either, false)] {
            let (waiting, _session) = waiting(cores, kind, said, true);
            let mut out = Vec::new();
            let settled = settle(core, waiting, &mut wire, &mut out).await;
            assert!(matches!(settled, Settled::Written { keep_alive: true }));
            let out = String::from_utf8_lossy(&out);
            assert!(out.contains("application/json") && !out.contains("said"), "{out}");
        }
    });
}
