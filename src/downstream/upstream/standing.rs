//! What servers say by themselves: the streams that are held open for it, and where each message
//! goes.
//!
//! Up to 2025-11-25 a session has one such stream, which a GET opens and which a server need not
//! have; over HTTP+SSE the session hangs on it. From 2026-07-28 on it is the answer to
//! `subscriptions/listen`, which says what is wanted. Either way it is opened again when it breaks,
//! later each time, as long as something is wanted.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::UpstreamServer;
use crate::downstream::carried::Carried;
use crate::downstream::error::CallError;
use crate::downstream::resilience::pause;
use crate::downstream::rest::CallEnvironment;
use crate::http::Method;
use crate::json::{OwnedRaw, write_string};
use crate::mcp::upstream::{
    Meta, Posted, Received, UpstreamKind, request_headers, write_notification, write_request,
};
use crate::rt::{self, Deadline, Either, InboxReceiver, race};
use crate::sessions::{ClientCapabilities, SessionKey};
use crate::telemetry::ExecutionId;

use super::errand::Errand;
use super::link::{Content, Link, Request};
use super::office::{Office, headers_of};
use super::route::route;
use super::sessions::{Key, Passed, Session, Whose};
use super::stream::{Came, Stream};
use super::{SessionScope, Wanted};

/// How many servers are told at once that sessions are over.
const GOODBYES_AT_ONCE: usize = 16;
/// Between two tries to open a stream.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_mins(1);
/// A stream that is silent for so long is opened anew: its server may be gone without a word.
const SILENT_MAX: Duration = Duration::from_mins(15);
/// How often it is looked whether a session without a stream of its own is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// What a stream of MCP 2026-07-28 begins with.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// How holding a stream open ended.
enum Next {
    /// Something else is wanted.
    Wanted(Wanted),
    /// It is to be opened again; at once where it had brought something.
    Again { has_spoken: bool },
    /// Nothing is wanted any more.
    Over,
}

impl Office {
    pub(super) fn listen(
        self: &Rc<Self>,
        server: &Arc<UpstreamServer>,
        scope: SessionScope<'_>,
        capabilities: ClientCapabilities,
        wanted: Wanted,
        carried: &Carried,
    ) {
        let Some(key) = key_of(server, scope, capabilities) else { return };
        let execution_id = ExecutionId::NIL;
        let environment = CallEnvironment { execution_id, external_id: None, trace: None, carried };
        self.want(key, server, capabilities, &environment, |said, _| *said = wanted);
    }

    pub(super) fn want(
        self: &Rc<Self>,
        key: Key,
        server: &Arc<UpstreamServer>,
        capabilities: ClientCapabilities,
        environment: &CallEnvironment<'_>,
        change: impl FnOnce(&mut Wanted, &mut std::collections::BTreeSet<Box<str>>),
    ) {
        let Some(receiver) = self.servers().want(&key, change) else { return };
        let errand = Errand::new(self, server, environment);
        let standing = Standing { errand, key, capabilities };
        rt::spawn(async move { standing.run(receiver).await });
    }

    pub(super) fn roots_changed(self: &Rc<Self>, client: SessionKey) {
        for session in self.servers().open_of(client) {
            let mut body = Vec::new();
            write_notification(&mut body, "notifications/roots/list_changed", None);
            Errand::own(self, &session.server).post(&session, body);
        }
    }

    pub(super) async fn end_session(self: &Rc<Self>, client: SessionKey) {
        for session in self.servers().take_of(client) {
            session.end();
            Errand::own(self, &session.server).goodbye(&session).await;
        }
    }

    pub(super) async fn end_all(self: &Rc<Self>) {
        let left = Rc::new(RefCell::new(self.servers().take_all()));
        let lanes = GOODBYES_AT_ONCE.min(left.borrow().len());
        let ended: Vec<_> = (0..lanes)
            .map(|_| {
                let (sender, receiver) = rt::oneshot();
                let (office, left) = (Rc::clone(self), Rc::clone(&left));
                rt::spawn(async move {
                    let next = || left.borrow_mut().pop();
                    while let Some(session) = next() {
                        session.end();
                        Errand::own(&office, &session.server).goodbye(&session).await;
                    }
                    // Who waited may have gone.
                    let _ = sender.send(());
                });
                receiver
            })
            .collect();
        for lane in ended {
            let _ = lane.await;
        }
    }

    /// One core looks for sessions that nobody uses, as long as there are any.
    pub(super) fn start_sweeping(self: &Rc<Self>) {
        struct Sweeping(super::AtServers);
        impl Drop for Sweeping {
            fn drop(&mut self) {
                self.0.stop_sweeping();
            }
        }
        if !self.servers().start_sweeping() {
            return;
        }
        let sweeping = Sweeping(self.servers().clone());
        let office = Rc::clone(self);
        let interval =
            (self.session_idle / 4).clamp(Duration::from_millis(200), Duration::from_secs(15));
        rt::spawn(async move {
            loop {
                pause(interval).await;
                let (idle, are_left) = sweeping.0.take_idle(Instant::now(), office.session_idle);
                for session in idle {
                    session.end();
                    Errand::own(&office, &session.server).goodbye(&session).await;
                }
                if !are_left {
                    return;
                }
            }
        });
    }
}

pub(super) fn key_of(
    server: &UpstreamServer,
    scope: SessionScope<'_>,
    capabilities: ClientCapabilities,
) -> Option<Key> {
    let whose = Whose::of(scope, capabilities)?;
    Some(Key { tenant: server.tenant.clone(), toolset: server.toolset.clone(), whose })
}

/// The stream that a session over HTTP+SSE hangs on.
pub(super) struct Pump {
    pub(super) errand: Errand,
    pub(super) session: Arc<Session>,
}

impl Pump {
    /// Reads until it ends, or until the other end of `close` is gone.
    pub(super) fn start(self, mut stream: Stream, mut close: InboxReceiver<Passed>) {
        rt::spawn(async move {
            let Self { errand, session } = self;
            let environment = errand.environment();
            let link = errand.office.link(&errand.server.connection, &environment, None);
            let mut nothing = Vec::new();
            while let Either::Left(Ok(came)) =
                race(stream.next(&link), close.drain(&mut nothing)).await
            {
                match came {
                    Came::Messages(messages) => {
                        for message in messages {
                            route(&errand, &session, message).await;
                        }
                    }
                    Came::Endpoint(_) => {}
                    Came::End => break,
                }
            }
            errand.office.servers().forget(&session);
        });
    }
}

/// What is held open for what is wanted in a session.
struct Standing {
    errand: Errand,
    key: Key,
    capabilities: ClientCapabilities,
}

impl Standing {
    async fn run(self, mut receiver: InboxReceiver<Wanted>) {
        let mut wanted = Wanted::default();
        let mut wait = BACKOFF_MIN;
        let mut last_event: Option<(Arc<Session>, String)> = None;
        loop {
            let next = if wanted.is_nothing() {
                changed(&mut receiver).await
            } else {
                let held = self.hold(&mut wanted, &mut receiver, &mut last_event);
                Box::pin(held).await
            };
            match next {
                Next::Over => return,
                Next::Wanted(now) => wanted = now,
                Next::Again { has_spoken } => {
                    wait = if has_spoken { BACKOFF_MIN } else { (wait * 2).min(BACKOFF_MAX) };
                    match race(changed(&mut receiver), pause(wait)).await {
                        Either::Left(Next::Wanted(now)) => wanted = now,
                        Either::Left(_) => return,
                        Either::Right(()) => {}
                    }
                }
            }
        }
    }

    async fn hold(
        &self,
        wanted: &mut Wanted,
        receiver: &mut InboxReceiver<Wanted>,
        last_event: &mut Option<(Arc<Session>, String)>,
    ) -> Next {
        let Errand { office, server, .. } = &self.errand;
        let environment = self.errand.environment();
        let scope = match &self.key.whose {
            Whose::Session(key) => SessionScope::Session(*key),
            Whose::Shared(application, _) => SessionScope::Shared(application),
            Whose::Keeper => SessionScope::Keeper,
        };
        let opening = office.session(server, scope, self.capabilities, &environment);
        let session = match opening.await {
            Ok(opened) => opened.session,
            Err(error) => {
                let connection = server.connection.id.as_str();
                tracing::info!(connection, "nothing is heard of the MCP server: {error}");
                return Next::Again { has_spoken: false };
            }
        };
        let link = office.link(&server.connection, &environment, None);
        if session.revision.is_modern() {
            return self.modern(&link, &session, wanted, receiver).await;
        }
        self.subscribe(&session, wanted).await;
        if session.kind == UpstreamKind::Events || session.has_no_stream() {
            return self.stay(&session, wanted, receiver).await;
        }
        let last = last_event.take().filter(|(of, _)| Arc::ptr_eq(of, &session));
        let mut headers = headers_of(&session);
        headers.retain(|(name, _)| name != "Accept");
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        if let Some((_, id)) = last {
            headers.push(("Last-Event-ID".to_owned(), id));
        }
        let (method, target) = (Method::Get, &*session.target);
        let request = Request { method, target, headers, body: None };
        let answer = match link.send(&request).await {
            Ok(answer) if answer.is_success() && answer.content() == Content::Events => answer,
            Ok(answer) => {
                match answer.status() {
                    404 => {
                        office.servers().forget(&session);
                    }
                    // MCP 2025-11-25, listening for messages: there is no stream.
                    405 | 501 => session.note_no_stream(),
                    _ => {}
                }
                link.leave(answer).await;
                return Next::Again { has_spoken: session.has_no_stream() };
            }
            Err(_) => return Next::Again { has_spoken: false },
        };
        let mut stream = Stream::new(answer, office.event_bytes_max);
        let next = self.read(&link, &session, &mut stream, wanted, receiver).await;
        *last_event = stream.last_event_id().map(|id| (Arc::clone(&session), id.to_owned()));
        next
    }

    /// Reads a stream until it ends or nothing is wanted.
    async fn read(
        &self,
        link: &Link<'_>,
        session: &Arc<Session>,
        stream: &mut Stream,
        wanted: &mut Wanted,
        receiver: &mut InboxReceiver<Wanted>,
    ) -> Next {
        let alarm = Deadline::new();
        loop {
            if session.has_ended() {
                return Next::Again { has_spoken: stream.has_spoken };
            }
            alarm.set(SILENT_MAX);
            let others = race(changed(receiver), alarm.expired());
            match race(stream.next(link), others).await {
                Either::Left(Ok(Came::Messages(messages))) => {
                    for message in messages {
                        route(&self.errand, session, message).await;
                    }
                }
                Either::Left(Ok(Came::Endpoint(_))) => {}
                Either::Left(Ok(Came::End) | Err(_)) | Either::Right(Either::Right(())) => {
                    return Next::Again { has_spoken: stream.has_spoken };
                }
                Either::Right(Either::Left(Next::Wanted(now))) if !now.is_nothing() => {
                    *wanted = now;
                    self.subscribe(session, wanted).await;
                }
                Either::Right(Either::Left(next)) => return next,
            }
        }
    }

    /// Where there is no stream to be held.
    async fn stay(
        &self,
        session: &Arc<Session>,
        wanted: &mut Wanted,
        receiver: &mut InboxReceiver<Wanted>,
    ) -> Next {
        loop {
            match race(changed(receiver), pause(LOOK_INTERVAL)).await {
                Either::Left(Next::Wanted(now)) if !now.is_nothing() => {
                    *wanted = now;
                    self.subscribe(session, wanted).await;
                }
                Either::Left(next) => return next,
                Either::Right(()) if session.has_ended() => {
                    return Next::Again { has_spoken: true };
                }
                Either::Right(()) => {}
            }
        }
    }

    /// Up to 2025-11-25 each resource is subscribed to by itself; anew in each session.
    async fn subscribe(&self, session: &Session, wanted: &Wanted) {
        let (new, old): (Vec<Box<str>>, Vec<Box<str>>) = {
            let there = session.subscribed.lock();
            let new = wanted.uris.difference(&there).cloned().collect();
            (new, there.difference(&wanted.uris).cloned().collect())
        };
        let changes = new.iter().map(|uri| ("resources/subscribe", uri, true));
        let changes = changes.chain(old.iter().map(|uri| ("resources/unsubscribe", uri, false)));
        for (method, uri, is_new) in changes.filter(|_| session.facts.subscribes) {
            let mut params = b"{\"uri\":".to_vec();
            write_string(&mut params, uri);
            params.push(b'}');
            let Ok(params) = OwnedRaw::parse(&params) else { continue };
            let mut body = Vec::new();
            let meta = Meta::plain(session.revision);
            write_request(&mut body, session.next_id(), method, params.as_raw(), &meta);
            if !matches!(self.errand.deliver(session, &body).await, Ok(200..=299)) {
                continue;
            }
            let mut there = session.subscribed.lock();
            if is_new {
                there.insert(uri.clone());
            } else {
                there.remove(uri);
            }
        }
    }

    /// MCP 2026-07-28, subscriptions.
    async fn modern(
        &self,
        link: &Link<'_>,
        session: &Arc<Session>,
        wanted: &Wanted,
        receiver: &mut InboxReceiver<Wanted>,
    ) -> Next {
        let params = listened(wanted);
        let Some(said) = &params else { return changed(receiver).await };
        let mut body = Vec::new();
        let (method, id) = ("subscriptions/listen", session.next_id());
        write_request(&mut body, id, method, said.as_raw(), &Meta::plain(session.revision));
        let headers = request_headers(&Posted {
            revision: Some(session.revision),
            session: None,
            method: Some(method),
            params: None,
            schema: None,
        });
        let target = &*session.target;
        let request = Request { method: Method::Post, target, headers, body: Some(&body) };
        let answer = match link.send(&request).await {
            Ok(answer) if answer.is_success() && answer.content() == Content::Events => answer,
            Ok(answer) => {
                let status = answer.status();
                link.leave(answer).await;
                // It may be of another era by now.
                if status == 400 {
                    self.errand.office.servers().unlearn(&self.errand.server);
                }
                return Next::Again { has_spoken: false };
            }
            Err(_) => return Next::Again { has_spoken: false },
        };
        let mut stream = Stream::new(answer, self.errand.office.event_bytes_max);
        let alarm = Deadline::new();
        loop {
            alarm.set(SILENT_MAX);
            let others = race(changed(receiver), alarm.expired());
            let came: Result<Came, CallError> = match race(stream.next(link), others).await {
                Either::Left(came) => came,
                Either::Right(Either::Left(Next::Wanted(now))) if listened(&now) == params => {
                    continue;
                }
                Either::Right(Either::Left(next)) => return next,
                Either::Right(Either::Right(())) => return Next::Again { has_spoken: true },
            };
            let Ok(Came::Messages(messages)) = came else {
                return Next::Again { has_spoken: stream.has_spoken };
            };
            for message in messages {
                match message {
                    // The server ends it.
                    Received::Response { outcome, .. } => {
                        return Next::Again { has_spoken: outcome.is_ok() };
                    }
                    Received::Notification { method, .. } if *method == *ACKNOWLEDGED => {
                        self.errand.office.servers().note_acknowledged(&self.key, &wanted.uris);
                    }
                    other => self.hear(session, other),
                }
            }
        }
    }

    fn hear(&self, session: &Session, message: Received) {
        let Received::Notification { method, params } = message else { return };
        let Some(heard) = super::talk::said(&method, params.as_raw()) else { return };
        let client = session.client().or_else(|| self.key.whose.session());
        self.errand.office.listener.heard(&self.errand.server, client, heard);
    }
}

/// The newest of what is wanted.
async fn changed(receiver: &mut InboxReceiver<Wanted>) -> Next {
    let mut all = Vec::new();
    if !receiver.drain(&mut all).await {
        return Next::Over;
    }
    all.pop().map_or(Next::Again { has_spoken: false }, Next::Wanted)
}

/// What is said to be wanted; none where it is of a kind that there is no word for.
fn listened(wanted: &Wanted) -> Option<OwnedRaw> {
    let flags = [
        ("toolsListChanged", wanted.tools),
        ("promptsListChanged", wanted.prompts),
        ("resourcesListChanged", wanted.resources),
    ];
    let mut members: Vec<Vec<u8>> = Vec::new();
    for (name, _) in flags.iter().filter(|(_, is_wanted)| *is_wanted) {
        members.push(format!("\"{name}\":true").into_bytes());
    }
    if !wanted.uris.is_empty() {
        let mut list = b"\"resourceSubscriptions\":[".to_vec();
        for (place, uri) in wanted.uris.iter().enumerate() {
            if place > 0 {
                list.push(b',');
            }
            write_string(&mut list, uri);
        }
        list.push(b']');
        members.push(list);
    }
    if members.is_empty() {
        return None;
    }
    let text = [&b"{\"notifications\":{"[..], &members.join(&b','), b"}}"].concat();
    OwnedRaw::parse(&text).ok()
}
