//! What servers say by themselves reaches whom it is for, and nobody else.

use parking_lot::Mutex;

use super::*;
use crate::{
    catalog::{Definitions, ToolKind, Upstream, UpstreamSessions, fixture},
    json::OwnedRaw,
    mcp::{AskMethod, LogLevel, Revision},
    rpc::Id,
    server::{
        conversation::answered,
        fixture::{Cores, on_cores},
        outlet::{OpenOutlet, Purpose},
        session,
        subscriptions::Subscriber,
    },
    streams::StreamKind,
};

/// A server behind the toolset `notes` of a tenant, all of whose callers share a session.
fn server(tenant: &str) -> Arc<UpstreamServer> {
    server_with(tenant, UpstreamSessions::Shared)
}

fn server_with(tenant: &str, sessions: UpstreamSessions) -> Arc<UpstreamServer> {
    let view = fixture::view(&(fixture::api("notes") + &fixture::tool("notes", "note")));
    let ToolKind::Rest { connection, .. } = &view.tools()[0].tool.kind else { panic!() };
    Arc::new(UpstreamServer {
        tenant: TenantId::new(tenant).unwrap(),
        toolset: ToolsetId::new("notes").unwrap(),
        connection: Arc::clone(connection),
        settings: Upstream { sessions, ..Upstream::default() },
        definitions: Arc::new(Definitions::default()),
    })
}

fn raw(text: &str) -> OwnedRaw {
    OwnedRaw::parse(text.as_bytes()).unwrap()
}

/// A stream of the session with a client that reads it.
fn stream(core: &Rc<Core>, session: &Session, kind: StreamKind) -> Rc<OpenOutlet> {
    let outlet = Rc::new(core.outlets.open(Purpose::Standing));
    let mut streams = core.streams.borrow_mut();
    let stream = streams.open(kind, session.key(), &[], 0).unwrap();
    streams.attach(stream, session.key(), None, outlet.id, 0);
    match kind {
        StreamKind::Standing => session.replace_standing(None, stream).unwrap(),
        _ => session.add_stream(stream).unwrap(),
    }
    let reader = Rc::clone(&outlet);
    rt::spawn(async move {
        loop {
            reader.woken().await;
            for probe in reader.take_probes() {
                let _ = probe.send(true);
            }
        }
    });
    outlet
}

/// What came, once nothing more comes.
async fn got(outlet: &OpenOutlet) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..5 {
        while let Some(frame) = outlet.pop() {
            let text = String::from_utf8_lossy(&frame).into_owned();
            let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
            all.extend(data.map(str::to_owned));
        }
        rt::sleep(Duration::from_millis(2)).await;
    }
    all
}

fn subscribe(cores: &Cores, subscriber: Subscriber, server: &UpstreamServer, uri: &str) {
    let (tenant, toolset) = (server.tenant.clone(), server.toolset.clone());
    let resource = Resource { tenant, toolset, uri: uri.into() };
    cores.all[0].shared.subscriptions.subscribe(subscriber, resource).unwrap();
}

#[test]
fn a_changed_resource_is_told_once_to_each_subscriber_of_the_servers_tenant() {
    on_cores(async |cores| {
        let [first, second] = &cores.all[..] else { panic!() };
        let [acme, other] = ["acme", "other"].map(server);
        let open = |tenant| cores.session(tenant, Revision::V20251125, ClientCapabilities::NONE);
        let (one, two, stranger) = (open("acme"), open("acme"), open("other"));
        // Each of the first session's streams is one it could be told on.
        let standing = stream(second, &one, StreamKind::Standing);
        let answering = stream(first, &one, StreamKind::Post);
        let other_standing = stream(first, &two, StreamKind::Standing);
        let strangers = stream(first, &stranger, StreamKind::Standing);
        let listening = first.outlets.open(Purpose::Standing);
        for session in [&one, &two] {
            subscribe(cores, Subscriber::Session(session.key()), &acme, "a:1");
        }
        subscribe(cores, Subscriber::Session(stranger.key()), &other, "a:1");
        subscribe(cores, Subscriber::Listening(listening.id, "7".into()), &acme, "a:1");
        let shared = &first.shared;
        let updated = |session| shared.heard(&acme, session, Heard::ResourceUpdated("a:1".into()));
        updated(None);
        shared.heard(&acme, None, Heard::ResourceUpdated("a:2".into()));
        let told = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1"}}"#;
        assert_eq!(got(&standing).await, [told]);
        assert_eq!(got(&answering).await, [""; 0]);
        assert_eq!(got(&other_standing).await, [told]);
        assert_eq!(got(&strangers).await, [""; 0]);
        let tagged = got(&listening).await;
        assert!(tagged.len() == 1 && tagged[0].contains("subscriptionId\":7"), "{tagged:?}");
        // Where each has a session of its own there, what is said in none of them is for none.
        let separate = server_with("acme", UpstreamSessions::Separate);
        shared.heard(&separate, None, Heard::ResourceUpdated("a:1".into()));
        assert_eq!(got(&standing).await, [""; 0]);
        assert_eq!(got(&listening).await.len(), 1);
        // Said in the session of one of them, it is for that one.
        updated(Some(one.key()));
        // Said in one that did not subscribe, or that is another tenant's, it is for nobody.
        updated(Some(stranger.key()));
        assert_eq!(got(&standing).await, [told]);
        for outlet in [&*other_standing, &*strangers, &listening] {
            assert_eq!(got(outlet).await, [""; 0]);
        }
        // A session that is over is told nothing more.
        assert!(session::end(first, one.key()));
        updated(None);
        assert_eq!(got(&standing).await, [""; 0]);
        assert_eq!(got(&other_standing).await, [told]);
    });
}

#[test]
fn what_is_told_outside_requests_goes_to_the_standing_stream_of_its_session() {
    on_cores(async |cores| {
        let [first, second] = &cores.all[..] else { panic!() };
        let acme = server("acme");
        let open = |tenant| cores.session(tenant, Revision::V20251125, ClientCapabilities::NONE);
        let (one, stranger) = (open("acme"), open("other"));
        let standing = stream(second, &one, StreamKind::Standing);
        let strangers = stream(second, &stranger, StreamKind::Standing);
        let message = |level: LogLevel| {
            let text = format!(r#"{{"level":"{}","data":"d"}}"#, level.name());
            Heard::Told(Told::Message(level, raw(&text)))
        };
        let progress = Heard::Told(Told::Progress(raw(r#"{"progress":1}"#)));
        for session in [Some(one.key()), Some(stranger.key()), None] {
            for heard in [message(LogLevel::Error), message(LogLevel::Debug), progress.clone()] {
                first.shared.heard(&acme, session, heard);
            }
        }
        let told = got(&standing).await;
        assert!(told.len() == 1 && told[0].contains(r#""level":"error""#), "{told:?}");
        // A server of one tenant says nothing in a session of another.
        assert_eq!(got(&strangers).await, [""; 0]);
    });
}

#[test]
fn a_question_outside_requests_is_put_on_the_standing_stream_and_answered_on_any_core() {
    on_cores(async |cores| {
        let [first, second] = &cores.all[..] else { panic!() };
        let acme = server("acme");
        let can = ClientCapabilities::ROOTS;
        let session = cores.session("acme", Revision::V20251125, can);
        let stranger = cores.session("other", Revision::V20251125, can);
        let deaf = cores.session("acme", Revision::V20251125, can);
        let ask = |session: Option<SessionKey>| {
            let (sender, answer) = rt::oneshot();
            let question = Ask { method: AskMethod::Roots, params: raw("{}") };
            let sender = Arc::new(Mutex::new(Some(sender)));
            first.shared.heard(&acme, session, Heard::Asked(question, sender));
            answer
        };
        let _strangers = stream(second, &stranger, StreamKind::Standing);
        // Nobody's, another tenant's, and one without a stream.
        for nobody in [None, Some(stranger.key()), Some(deaf.key())] {
            assert!(matches!(ask(nobody).await, Ok(AskOutcome::Unheard)));
        }
        let standing = stream(second, &session, StreamKind::Standing);
        let answer = ask(Some(session.key()));
        let question = got(&standing).await.remove(0);
        let (question, result) = (raw(&question), raw(r#"{"roots":[]}"#));
        let id = Id::of(question.as_raw().get("id").unwrap()).unwrap();
        answered(first, &session, id, mcp::answer(Ok(result.as_raw())));
        assert!(matches!(answer.await, Ok(AskOutcome::Answer(got)) if got == result));
        // One that its server takes back is taken back from the client.
        let (sender, _answer) = rt::oneshot();
        let sender = Arc::new(Mutex::new(Some(sender)));
        let ask = Ask { method: AskMethod::Roots, params: raw("{}") };
        first.shared.heard(&acme, Some(session.key()), Heard::Asked(ask, Arc::clone(&sender)));
        assert_eq!(got(&standing).await.len(), 1);
        sender.lock().take();
        rt::sleep(TAKEN_BACK_STEP * 3 / 2).await;
        assert!(got(&standing).await[0].contains("notifications/cancelled"));
    });
}
