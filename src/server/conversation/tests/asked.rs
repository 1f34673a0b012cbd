//! What a client with a session is asked, and who may answer.

use super::*;

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
