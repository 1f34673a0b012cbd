//! Both sides of what is said, with a client made of outlets and a server made of this file.

use std::{rc::Rc, sync::Arc, time::Duration};

use super::*;
use crate::{
    downstream::Client as _,
    identity::Caller,
    json::OwnedRaw,
    mcp::{AskMethod, Envelope},
    rpc::{Reply, ResultBody, RpcError},
    server::{
        fixture::{Cores, Request, on_cores, on_cores_with},
        outlet::{OpenOutlet, Purpose},
        running::{Answered, Single},
        session,
    },
    settings::Settings,
    streams::StreamKind,
};

type Can = ClientCapabilities;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",
    "arguments":{"x":1},"_meta":{"progressToken":"t"}}}"#;

fn raw(text: &str) -> OwnedRaw {
    OwnedRaw::parse(text.as_bytes()).unwrap()
}

fn elicitation() -> Ask {
    Ask { method: AskMethod::Elicitation, params: raw(r#"{"message":"Sure?"}"#) }
}

fn roots() -> Ask {
    Ask { method: AskMethod::Roots, params: raw("{}") }
}

fn progress(progress: &str) -> Told {
    Told::Progress(raw(&format!(r#"{{"progress":{progress}}}"#)))
}

fn log(level: LogLevel) -> Told {
    Told::Message(level, raw(&format!(r#"{{"level":"{}","data":1}}"#, level.name())))
}

/// What a client got, message by message.
fn got(outlet: &OpenOutlet) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(frame) = outlet.pop() {
        let text = String::from_utf8_lossy(&frame).into_owned();
        all.extend(text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned));
    }
    all
}

/// Waits for the next messages.
async fn next(outlet: &OpenOutlet) -> Vec<String> {
    loop {
        let messages = got(outlet);
        if !messages.is_empty() {
            return messages;
        }
        rt::sleep(Duration::from_millis(2)).await;
    }
}

fn id_in(message: &str) -> String {
    raw(message).as_raw().get("id").unwrap().text().to_owned()
}

/// Lets everything happen that waits for nothing.
async fn settle() {
    for _ in 0..5 {
        rt::sleep(Duration::from_millis(2)).await;
    }
}

/// A conversation of a session, and its way.
fn legacy(core: &Rc<Core>, session: &Arc<Session>) -> (Rc<Conversation>, Rc<Way>) {
    let request = Request {
        tenant: session.tenant(),
        caller: Caller::Open,
        revision: session.revision(),
        session: Some(session),
        envelope: None,
        text: CALL,
    };
    request.on(core, |asking, message| (Conversation::of(asking, message), Rc::clone(asking.way())))
}

fn open_outlet(core: &Rc<Core>, way: &Way) -> OpenOutlet {
    let outlet = core.outlets.open(Purpose::Answer);
    way.open(Sink::Outlet(Rc::clone(&outlet)));
    outlet
}

/// A standing stream of the session with a client that reads it.
fn standing(core: &Rc<Core>, session: &Session) -> Rc<OpenOutlet> {
    let outlet = Rc::new(core.outlets.open(Purpose::Standing));
    let mut streams = core.streams.borrow_mut();
    let stream = streams.open(StreamKind::Standing, session.key(), &[], 0).unwrap();
    streams.attach(stream, session.key(), None, outlet.id, 0);
    session.replace_standing(session.standing(), stream).unwrap();
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

/// Answers a question by a POST to a core.
fn post(core: &Rc<Core>, session: &Session, id: &str, outcome: &str) {
    let (id, outcome) = (raw(id), raw(outcome));
    let id = crate::rpc::Id::of(id.as_raw()).unwrap();
    answered(core, session, id, mcp::answer(Ok(outcome.as_raw())));
}

#[test]
fn a_client_with_a_session_is_asked_on_its_stream_and_answers_on_any_core() {
    on_cores(async |cores| {
        let [first, second] = &cores.all[..] else { panic!() };
        let session = cores.session("acme", Revision::V20251125, Can::ELICITATION_FORM);
        let (conversation, way) = legacy(first, &session);
        let (conversation, outlet) = (conversation, open_outlet(first, &way));
        let answer = async {
            let [question] = &next(&outlet).await[..] else { panic!() };
            assert!(question.contains(r#""method":"elicitation/create""#), "{question}");
            post(second, &session, &id_in(question), r#"{"action":"accept"}"#);
        };
        let (outcome, ()) = both(conversation.ask(elicitation()), answer).await;
        assert!(
            matches!(outcome, AskOutcome::Answer(answer) if answer == raw(r#"{"action":"accept"}"#))
        );
        settle().await;
        assert_eq!(got(&outlet), [""; 0]);
        assert!(session.take_questions().is_empty());
    });
}

/// Runs both to their ends.
async fn both<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    match rt::race(&mut first, &mut second).await {
        rt::Either::Left(one) => (one, second.await),
        rt::Either::Right(other) => (first.await, other),
    }
}

#[test]
fn an_answer_of_another_session_and_a_second_answer_count_for_nothing() {
    on_cores(async |cores| {
        let [first, second] = &cores.all[..] else { panic!() };
        let session = cores.session("acme", Revision::V20250618, Can::ROOTS);
        let neighbour = cores.session("acme", Revision::V20250618, Can::ROOTS);
        let stranger = cores.session("other", Revision::V20250618, Can::ROOTS);
        let (conversation, way) = legacy(first, &session);
        let outlet = open_outlet(first, &way);
        let answer = async {
            let id = id_in(&next(&outlet).await[0]);
            for foreign in [&neighbour, &stranger] {
                post(second, foreign, &id, r#"{"roots":["foreign"]}"#);
            }
            post(second, &session, "\"ringway-0-0-1\"", "{}");
            settle().await;
            post(second, &session, &id, r#"{"roots":[1]}"#);
            post(first, &session, &id, r#"{"roots":[2]}"#);
        };
        let (outcome, ()) = both(conversation.ask(roots()), answer).await;
        assert!(matches!(outcome, AskOutcome::Answer(answer) if answer == raw(r#"{"roots":[1]}"#)));
    });
}

#[test]
fn a_question_nobody_waits_for_is_taken_back() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20251125, Can::ROOTS);
        let (conversation, way) = legacy(first, &session);
        let outlet = open_outlet(first, &way);
        let question = {
            let asked = conversation.ask(roots());
            match rt::race(asked, next(&outlet)).await {
                rt::Either::Right(messages) => messages[0].clone(),
                rt::Either::Left(_) => panic!(),
            }
        };
        let [cancelled] = &got(&outlet)[..] else { panic!() };
        assert!(cancelled.contains("notifications/cancelled"), "{cancelled}");
        assert!(cancelled.contains(&format!("\"requestId\":{}", id_in(&question))), "{cancelled}");
        assert!(session.take_questions().is_empty());
    });
}

#[test]
fn who_does_not_answer_in_time_or_ends_the_session_is_not_heard() {
    let mut settings = Settings::default();
    settings.runtime.mcp.asking.answer_seconds = 1;
    on_cores_with(settings, async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20251125, Can::ROOTS);
        let (conversation, way) = legacy(first, &session);
        let outlet = open_outlet(first, &way);
        assert!(matches!(conversation.ask(roots()).await, AskOutcome::Unheard));
        let messages = got(&outlet);
        assert!(messages.len() == 2 && messages[1].contains("notifications/cancelled"));
        let end = async {
            next(&outlet).await;
            assert!(session::end(&cores.all[1], session.key()));
        };
        let (outcome, ()) = both(conversation.ask(roots()), end).await;
        assert!(matches!(outcome, AskOutcome::Unheard));
        // And from now on at once.
        assert!(matches!(conversation.ask(roots()).await, AskOutcome::Unheard));
    });
}

#[test]
fn a_request_asks_no_more_than_it_may() {
    let mut settings = Settings::default();
    settings.runtime.mcp.asking.questions_per_call_max = 2;
    on_cores_with(settings, async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20251125, Can::ROOTS);
        let (conversation, way) = legacy(first, &session);
        let outlet = open_outlet(first, &way);
        // What cannot be asked counts for nothing.
        assert!(matches!(conversation.ask(elicitation()).await, AskOutcome::Unheard));
        for _ in 0..2 {
            let answer = async { post(first, &session, &id_in(&next(&outlet).await[0]), "{}") };
            let (outcome, ()) = both(conversation.ask(roots()), answer).await;
            assert!(matches!(outcome, AskOutcome::Answer(_)));
        }
        let AskOutcome::Refused(refused) = conversation.ask(roots()).await else { panic!() };
        assert!(refused.message.contains("has asked its client 2 times"), "{refused}");
        assert_eq!(got(&outlet), [""; 0]);
        let (conversation, _way) = legacy(first, &session);
        assert!(conversation.count_question().is_ok(), "another request has its own");
    });
}

#[test]
fn nobody_is_asked_what_they_have_not_declared() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20251125, Can::SAMPLING);
        let (conversation, way) = legacy(first, &session);
        let outlet = open_outlet(first, &way);
        let with_tools = Ask { method: AskMethod::Sampling, params: raw(r#"{"tools":[]}"#) };
        for ask in [roots(), elicitation(), with_tools] {
            assert!(matches!(conversation.ask(ask).await, AskOutcome::Unheard));
        }
        assert_eq!(got(&outlet), [""; 0]);
    });
}

#[test]
fn where_only_json_is_taken_what_is_told_is_dropped_and_what_is_asked_goes_elsewhere() {
    on_cores(async |cores| {
        let [first, second] = &cores.all[..] else { panic!() };
        let session = cores.session("acme", Revision::V20251125, Can::ROOTS);
        let (conversation, way) = legacy(first, &session);
        way.only_json();
        conversation.tell(progress("1"));
        assert!(matches!(conversation.ask(roots()).await, AskOutcome::Unheard));
        let outlet = standing(second, &session);
        let answer = async {
            let messages = next(&outlet).await;
            assert_eq!(messages.len(), 1, "{messages:?}");
            post(first, &session, &id_in(&messages[0]), "{}");
        };
        let (outcome, ()) = both(conversation.ask(roots()), answer).await;
        assert!(matches!(outcome, AskOutcome::Answer(_)));
    });
}

#[test]
fn what_is_told_waits_for_the_stream_rises_and_ends_with_the_answer() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20250326, Can::NONE);
        let (conversation, way) = legacy(first, &session);
        assert!(conversation.wants_progress() && !way.reports());
        for report in ["0", "0.5", "0.5", "0.25", "\"x\"", "2"] {
            conversation.tell(progress(report));
        }
        rt::timeout(Duration::from_secs(1), way.wanted()).await.unwrap();
        assert!(way.reports());
        let outlet = open_outlet(first, &way);
        let told: Vec<_> = got(&outlet)
            .iter()
            .map(|message| {
                let message = raw(message);
                let params = message.as_raw().get("params").unwrap();
                assert_eq!(params.get("progressToken").unwrap().text(), "\"t\"");
                params.get("progress").unwrap().text().to_owned()
            })
            .collect();
        assert_eq!(told, ["0", "0.5", "2"]);
        conversation.tell(progress("3"));
        assert_eq!(got(&outlet).len(), 1);
        way.close();
        conversation.tell(progress("4"));
        conversation.tell(log(LogLevel::Emergency));
        assert_eq!(got(&outlet), [""; 0]);
    });
}

#[test]
fn what_waits_for_a_stream_is_bounded() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20250326, Can::NONE);
        let (conversation, way) = legacy(first, &session);
        for report in 0..1000 {
            conversation.tell(progress(&report.to_string()));
        }
        assert_eq!(got(&open_outlet(first, &way)).len(), 64);
    });
}

#[test]
fn log_messages_are_as_grave_as_the_client_wants() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        let session = cores.session("acme", Revision::V20251125, Can::NONE);
        let (conversation, way) = legacy(first, &session);
        let outlet = open_outlet(first, &way);
        let heard = || {
            for level in LogLevel::ALL {
                conversation.tell(log(level));
            }
            got(&outlet).len()
        };
        assert_eq!((conversation.log_level(), heard()), (Some(LogLevel::Info), 7));
        assert!(first.shared.sessions.set_log_level(&session, LogLevel::Alert.code()));
        assert_eq!((conversation.log_level(), heard()), (Some(LogLevel::Alert), 2));
        assert!(!first.shared.sessions.set_log_level(&session, LogLevel::Alert.code()));
        // It outlives the memory that it is in.
        let row = session.row();
        assert_eq!((row[0], row.last()), (2, Some(&LogLevel::Alert.code())));
    });
}

#[test]
fn only_a_client_that_can_be_sent_to_a_page_hears_that_its_user_was_there() {
    on_cores(async |cores| {
        let first = &cores.all[0];
        for (can, count) in [(Can::ELICITATION_URL, 1), (Can::ELICITATION_FORM, 0)] {
            let session = cores.session("acme", Revision::V20251125, can);
            let (conversation, way) = legacy(first, &session);
            let outlet = open_outlet(first, &way);
            conversation.tell(Told::ElicitationComplete(raw(r#"{"elicitationId":"e"}"#)));
            assert_eq!(got(&outlet).len(), count);
        }
    });
}

// ---- the era without sessions

/// A client of that era.
struct Modern<'a> {
    cores: &'a Cores,
    tenant: &'static str,
    caller: Caller,
    arguments: &'static str,
    log_level: Option<LogLevel>,
}

impl<'a> Modern<'a> {
    fn new(cores: &'a Cores) -> Self {
        let arguments = r#"{"x":1}"#;
        Self { cores, tenant: "acme", caller: Caller::Open, arguments, log_level: None }
    }

    fn send<T>(
        &self,
        core: usize,
        id: u32,
        answers: Option<(&str, &str)>,
        ask: impl FnOnce(&Asking<'_>, &Message<'_>) -> T,
    ) -> T {
        let (responses, state) = answers.unwrap_or(("{}", ""));
        let responses = raw(responses);
        let envelope = Envelope {
            capabilities: Can::ROOTS.with(Can::ELICITATION_FORM),
            log_level: self.log_level,
            input_responses: answers.map(|_| responses.as_raw()),
            request_state: answers.map(|_| state.into()),
            ..Envelope::default()
        };
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a","#)
                + &format!(
                    r#""arguments":{},"_meta":{{"progressToken":{id}}}}}}}"#,
                    self.arguments
                );
        let request = Request {
            tenant: self.tenant,
            caller: self.caller,
            revision: Revision::V20260728,
            session: None,
            envelope: Some(&envelope),
            text: &text,
        };
        request.on(&self.cores.all[core], ask)
    }

    /// Sends a request for the first time. `call` is what the server does about it.
    fn begin<F: Future<Output = String> + 'static>(
        &self,
        core: usize,
        id: u32,
        call: impl FnOnce(Rc<Conversation>) -> F,
    ) -> (Single, OpenOutlet) {
        self.send(core, id, None, |asking, message| {
            let conversation = Conversation::of(asking, message);
            let owned = message.request_id().unwrap().to_owned_id();
            let result = call(Rc::clone(&conversation));
            let reply_id = owned.clone();
            let single: Single = Box::pin(async move {
                let body = ResultBody::Owned(result.await.into_bytes());
                Answered::Reply(Reply::new(reply_id, Ok(body)))
            });
            let outlet = open_outlet(&self.cores.all[core], asking.way());
            (suspendable(&conversation, single, owned), outlet)
        })
    }

    /// Sends it again.
    fn again(
        &self,
        core: usize,
        id: u32,
        answers: &str,
        state: &str,
    ) -> Result<(Single, OpenOutlet), RpcError> {
        self.send(core, id, Some((answers, state)), |asking, message| {
            let id = message.request_id().unwrap();
            let single = resumed(asking, message, id)?.expect("a state of a request that waits");
            Ok((single, open_outlet(&self.cores.all[core], asking.way())))
        })
    }
}

async fn reply(single: Single) -> String {
    let Answered::Reply(reply) = single.await else { panic!() };
    let mut out = Vec::new();
    reply.write(&mut out);
    String::from_utf8(out).unwrap()
}

fn state_in(reply: &str) -> String {
    let reply = raw(reply);
    let result = reply.as_raw().get("result").unwrap();
    assert_eq!(result.get("resultType").unwrap().text(), "\"input_required\"", "{reply:?}");
    result.get("requestState").unwrap().as_str().unwrap().into_owned()
}

fn keys_in(reply: &str) -> Vec<String> {
    let reply = raw(reply);
    let asks = reply.as_raw().get("result").unwrap().get("inputRequests").unwrap();
    asks.entries().map(|(key, _)| key.into_owned()).collect()
}

fn shown(outcome: &AskOutcome) -> String {
    match outcome {
        AskOutcome::Answer(answer) => answer.as_raw().text().to_owned(),
        AskOutcome::Refused(_) => "\"refused\"".into(),
        AskOutcome::Unheard => "\"unheard\"".into(),
    }
}

/// Says on dropping that a call is over.
struct Alive(Rc<Cell<bool>>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

#[test]
fn a_request_that_asks_waits_and_goes_on_for_another_response_on_another_core() {
    on_cores(async |cores| {
        let client = Modern::new(cores);
        let (single, outlet) = client.begin(0, 1, async |conversation| {
            conversation.tell(progress("0.5"));
            conversation.tell(log(LogLevel::Emergency));
            let outcome = conversation.ask(elicitation()).await;
            conversation.tell(progress("0.25"));
            conversation.tell(log(LogLevel::Info));
            format!(r#"{{"heard":{}}}"#, shown(&outcome))
        });
        let asked = reply(single).await;
        assert!(asked.starts_with(r#"{"jsonrpc":"2.0","id":1,"#), "{asked}");
        // No level was given with the request, so it hears of no log.
        assert_eq!(got(&outlet).len(), 1);
        assert_eq!(cores.all[0].shared.suspended.count(), 1);
        let (key, state) = (keys_in(&asked).remove(0), state_in(&asked));
        let answers = format!(r#"{{"{key}":{{"action":"accept"}},"more":{{}}}}"#);
        let client = Modern { log_level: Some(LogLevel::Debug), ..client };
        let (single, outlet) = client.again(1, 2, &answers, &state).unwrap();
        let answer = reply(single).await;
        let expected = r#"{"jsonrpc":"2.0","id":2,"result":{"heard":{"action":"accept"}}}"#;
        assert_eq!(answer, expected);
        let told = got(&outlet);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains(r#""progressToken":2,"progress":0.25"#), "{told:?}");
        settle().await;
        assert_eq!(cores.all[0].shared.suspended.count(), 0);
        assert_eq!(cores.all[0].suspended.count(), 0);
        // It is over: whoever comes back once more is told so.
        let (single, _outlet) = client.again(1, 3, &answers, &state).unwrap();
        assert!(reply(single).await.contains("-32602"));
    });
}

#[test]
fn questions_are_put_together_and_those_not_answered_are_asked_again() {
    on_cores(async |cores| {
        let client = Modern::new(cores);
        let (single, _outlet) = client.begin(0, 1, async |conversation| {
            let (one, other) =
                both(conversation.ask(elicitation()), conversation.ask(roots())).await;
            format!("[{},{}]", shown(&one), shown(&other))
        });
        let asked = reply(single).await;
        let (keys, state) = (keys_in(&asked), state_in(&asked));
        assert_eq!(keys.len(), 2);
        let answers = format!(r#"{{"{}":{{"roots":[]}},"{}":"no object"}}"#, keys[1], "unknown");
        let (single, _outlet) = client.again(1, 2, &answers, &state).unwrap();
        let asked = reply(single).await;
        assert_eq!(keys_in(&asked), [keys[0].clone()]);
        let answers = format!(r#"{{"{}":{{"action":"decline"}}}}"#, keys[0]);
        let (single, _outlet) = client.again(0, 3, &answers, &state_in(&asked)).unwrap();
        let answer = reply(single).await;
        assert!(answer.ends_with(r#""result":[{"action":"decline"},{"roots":[]}]}"#), "{answer}");
    });
}

#[test]
fn a_state_is_good_for_its_caller_and_its_request_alone() {
    on_cores(async |cores| {
        let client = Modern::new(cores);
        let (single, _outlet) =
            client.begin(0, 1, async |conversation| shown(&conversation.ask(roots()).await));
        let asked = reply(single).await;
        let (key, state) = (keys_in(&asked).remove(0), state_in(&asked));
        let answers = format!(r#"{{"{key}":{{}}}}"#);
        let foreign = Modern { tenant: "other", ..Modern::new(cores) };
        let caller = Modern { caller: Caller::Operator, ..Modern::new(cores) };
        let other = Modern { arguments: r#"{"x":2}"#, ..Modern::new(cores) };
        for client in [foreign, caller, other] {
            assert_eq!(client.again(1, 2, &answers, &state).err().unwrap().code, -32602);
        }
        let cut = &state[1..];
        assert_eq!(client.again(0, 2, &answers, cut).err().unwrap().code, -32602);
        // Whom it was given to still can.
        let (single, _outlet) = client.again(0, 3, &answers, &state).unwrap();
        assert!(reply(single).await.ends_with(r#""result":{}}"#));
    });
}

#[test]
fn closing_the_response_ends_the_request_and_waiting_does_not() {
    on_cores(async |cores| {
        let client = Modern::new(cores);
        let alive = Rc::new(Cell::new(true));
        let held = Alive(Rc::clone(&alive));
        let (single, outlet) = client.begin(0, 1, async |conversation| {
            let _held = held;
            conversation.ask(roots()).await;
            std::future::pending::<()>().await;
            String::new()
        });
        let asked = reply(single).await;
        drop(outlet);
        settle().await;
        assert!(alive.get(), "no response is open, so none was closed");
        let answers = format!(r#"{{"{}":{{}}}}"#, keys_in(&asked)[0]);
        let (single, outlet) = client.again(1, 2, &answers, &state_in(&asked)).unwrap();
        drop((single, outlet));
        settle().await;
        assert!(!alive.get());
        assert_eq!(cores.all[0].shared.suspended.count(), 0);
    });
}

#[test]
fn a_request_that_is_not_sent_again_in_time_is_given_up() {
    let mut settings = Settings::default();
    settings.runtime.mcp.asking.answer_seconds = 1;
    on_cores_with(settings, async |cores| {
        let client = Modern::new(cores);
        let alive = Rc::new(Cell::new(true));
        let held = Alive(Rc::clone(&alive));
        let (single, _outlet) = client.begin(0, 1, async |conversation| {
            let _held = held;
            shown(&conversation.ask(roots()).await)
        });
        let asked = reply(single).await;
        rt::sleep(Duration::from_millis(1500)).await;
        assert!(!alive.get());
        assert_eq!(cores.all[0].suspended.count(), 0);
        let late = client.again(0, 2, "{}", &state_in(&asked)).err().unwrap();
        assert!(late.code == -32602 && late.message.contains("time to answer"), "{late}");
    });
}

#[test]
fn where_no_more_may_wait_a_request_goes_on_without_answers() {
    let mut settings = Settings::default();
    settings.runtime.mcp.asking.suspended_per_tenant_max = 1;
    on_cores_with(settings, async |cores| {
        let client = Modern::new(cores);
        let ask = async |conversation: Rc<Conversation>| {
            format!("[{}]", shown(&conversation.ask(roots()).await))
        };
        let (single, _outlet) = client.begin(0, 1, ask);
        state_in(&reply(single).await);
        let (single, _outlet) = client.begin(1, 2, ask);
        assert!(reply(single).await.ends_with(r#""result":["unheard"]}"#));
        // Another tenant has a share of its own.
        let other = Modern { tenant: "other", ..Modern::new(cores) };
        let (single, _outlet) = other.begin(1, 3, ask);
        state_in(&reply(single).await);
    });
}

#[test]
fn what_ends_while_it_waits_is_answered_when_it_is_sent_again() {
    on_cores(async |cores| {
        let client = Modern::new(cores);
        let (single, _outlet) = client.begin(0, 1, async |conversation| {
            // The server takes its question back.
            let asked = conversation.ask(roots());
            let _ = rt::timeout(Duration::from_millis(60), asked).await;
            "[]".to_owned()
        });
        let asked = reply(single).await;
        rt::sleep(Duration::from_millis(80)).await;
        let (single, _outlet) = client.again(1, 2, "{}", &state_in(&asked)).unwrap();
        assert!(reply(single).await.ends_with(r#""id":2,"result":[]}"#));
    });
}

#[test]
fn a_request_that_asks_nothing_is_answered_as_it_is() {
    on_cores(async |cores| {
        let client = Modern::new(cores);
        let (single, _outlet) = client.begin(0, 1, async |_| "{}".to_owned());
        assert!(reply(single).await.ends_with(r#""id":1,"result":{}}"#));
    });
}
