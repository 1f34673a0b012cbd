//! Requests of the era without sessions, which wait for their clients to send them again.

use super::*;

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
