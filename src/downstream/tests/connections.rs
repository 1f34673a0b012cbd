//! Connections: kept, lost, raced, given up.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::api::{Api, Talk, answer, json_answer, pause};
use super::support::{
    ENVIRONMENT, SECOND, call, caller, caller_with, declared, failure, get, json, on_a_core,
    posting, request, tool,
};
use crate::downstream::error::{Awaited, Blame, CallError};
use crate::rt::{self, Either};

#[test]
fn one_connection_serves_call_after_call() {
    let api = Api::answering(json_answer("200 OK", "{}"));
    let tool = tool(&api, "");
    on_a_core(async {
        let caller = caller();
        for _ in 0..50 {
            assert_eq!(caller.run(&tool, &posting(b"{}"), &ENVIRONMENT).await.result, json("{}"));
        }
        assert_eq!(caller.idle_connections(), 1);
    });
    assert_eq!(api.connections(), 1);
}

#[test]
fn a_connection_is_not_kept_where_the_api_or_the_bytes_say_so() {
    let surplus = json_answer("200 OK", "{}") + "HTTP/1.1 200 OK\r\n";
    let closing = answer("200 OK", "Connection: close\r\n", b"{}");
    let old = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_owned();
    for sent in [surplus, closing, old] {
        let api = Api::answering(sent.clone());
        let tool = tool(&api, "");
        on_a_core(async {
            let caller = caller();
            for _ in 0..3 {
                let outcome = caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await.result;
                assert_eq!(outcome, json("{}"), "{sent}");
                assert_eq!(caller.idle_connections(), 0, "{sent}");
            }
        });
        assert_eq!(api.connections(), 3, "{sent}");
    }
}

#[test]
fn idle_connections_are_bounded_in_number_and_time() {
    let api = Api::start(|_, talk| {
        while talk.request().is_some() {
            pause(Duration::from_millis(100));
            talk.say(json_answer("200 OK", "{}"));
        }
    });
    let tool = tool(&api, "");
    on_a_core(async {
        let caller = std::rc::Rc::new(caller_with(|settings| {
            settings.idle_connections_max = 2;
            settings.idle_connection_seconds = 1;
        }));
        for _ in 0..5 {
            let (caller, tool) = (std::rc::Rc::clone(&caller), Arc::clone(&tool));
            rt::spawn(async move {
                let outcome = caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await.result;
                assert_eq!(outcome, json("{}"));
            });
        }
        rt::sleep(Duration::from_millis(600)).await;
        assert_eq!(caller.idle_connections(), 2);
        rt::sleep(3 * SECOND).await;
        assert_eq!(caller.idle_connections(), 0);
    });
}

/// Answers once, says goodbye, and tells so; later connections answer for ever.
fn leaving(leave: impl Fn(&mut Talk) + Send + Sync + 'static) -> Api {
    Api::start(move |number, talk| {
        if number == 0 {
            talk.request();
            talk.say(json_answer("200 OK", "1"));
            leave(talk);
            return;
        }
        while talk.request().is_some() {
            talk.say(json_answer("200 OK", "2"));
        }
    })
}

#[test]
fn a_connection_that_ended_while_idle_is_not_used_again() {
    let goodbyes: [fn(&mut Talk); 3] = [
        |_| (),
        Talk::reset,
        |talk| {
            talk.say("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
            talk.gone_within(SECOND);
        },
    ];
    for goodbye in goodbyes {
        let api = leaving(goodbye);
        let tool = tool(&api, "");
        on_a_core(async {
            let caller = caller();
            // Not repeatable: only the look before the use can save it.
            assert_eq!(caller.run(&tool, &posting(b"{}"), &ENVIRONMENT).await.result, json("1"));
            rt::sleep(Duration::from_millis(100)).await;
            assert_eq!(caller.run(&tool, &posting(b"{}"), &ENVIRONMENT).await.result, json("2"));
        });
    }
}

#[test]
fn a_connection_lost_in_the_race_is_replaced_once_where_that_does_no_harm() {
    // Reads the second request and closes: what a client sees whose request crossed a goodbye.
    let racing = || {
        leaving(|talk| {
            talk.request();
        })
    };
    for (method, repeated) in [("GET", true), ("PUT", true), ("DELETE", true), ("POST", false)] {
        let api = racing();
        let base = format!("http://{}/v1/", api.address);
        let tool = declared(&base, "", &format!("method = \"{method}\"\npath = \"/anything\""));
        let outcome = on_a_core(async {
            let caller = caller();
            assert_eq!(
                caller.run(&tool, &request("GET", "/"), &ENVIRONMENT).await.result,
                json("1")
            );
            caller.run(&tool, &request(method, "/"), &ENVIRONMENT).await.result
        });
        if repeated {
            assert_eq!(outcome, json("2"), "{method}");
            assert_eq!(api.connections(), 2, "{method}");
        } else {
            let error = outcome.unwrap_err();
            assert!(matches!(error, CallError::Closed { answering: false, .. }), "{error}");
            assert!(!error.may_retry() && api.connections() == 1, "{error}");
        }
    }
}

#[test]
fn a_fresh_connection_that_fails_is_not_tried_again() {
    let api = Api::start(|_, talk| {
        talk.request();
    });
    let error = get(&api).unwrap_err();
    assert!(matches!(error, CallError::Closed { answering: false, repeatable: true, .. }));
    assert!(error.may_retry() && error.blame() == Blame::Downstream);
    assert_eq!(api.connections(), 1);
}

#[test]
fn half_an_answer_is_an_error_and_never_a_short_body() {
    let halves = [
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\"",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n",
    ];
    for half in halves {
        let api = Api::start(move |_, talk| {
            talk.request();
            talk.say(half);
        });
        let error = get(&api).unwrap_err();
        assert!(matches!(error, CallError::Closed { answering: true, .. }), "{half}: {error}");
        assert_eq!(api.connections(), 1, "{half}");
    }
}

#[test]
fn what_is_no_http_is_refused_with_its_reason() {
    for sent in [
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ] {
        let error = get(&Api::answering(sent)).unwrap_err();
        assert!(matches!(error, CallError::Refused { .. }), "{sent}: {error}");
    }
}

#[test]
fn an_api_may_answer_before_it_has_read_a_long_request() {
    let api = Api::start(|_, talk| {
        talk.sip();
        talk.say(answer("413 Content Too Large", "Connection: close\r\n", b"too long"));
        talk.gone_within(2 * SECOND);
    });
    let started = Instant::now();
    let body = vec![b' '; 8 << 20];
    let told = failure(call(&tool(&api, ""), &posting(&body)));
    assert!(told.starts_with("HTTP 413") && told.ends_with("too long"), "{told}");
    assert!(started.elapsed() < SECOND);
}

#[test]
fn a_long_request_arrives_whole_and_its_connection_is_kept() {
    let (seen, lengths) = channel();
    let api = Api::start(move |_, talk| {
        while let Some(request) = talk.request() {
            seen.send(request.len()).unwrap();
            talk.say(json_answer("200 OK", "{}"));
        }
    });
    let tool = tool(&api, "");
    on_a_core(async {
        let caller = caller();
        for _ in 0..3 {
            let body = vec![b' '; 3 << 20];
            assert_eq!(caller.run(&tool, &posting(&body), &ENVIRONMENT).await.result, json("{}"));
        }
    });
    assert_eq!(api.connections(), 1);
    assert!(lengths.recv().unwrap() > 3 << 20);
}

#[test]
fn slow_answers_run_into_their_limits() {
    let silent = Api::start(|_, talk| {
        talk.request();
        talk.gone_within(5 * SECOND);
    });
    let dripping = Api::start(|_, talk| {
        talk.request();
        talk.say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while talk.say("x") {
            pause(Duration::from_millis(30));
        }
    });
    let limits = "headers_timeout_ms = 200\ntotal_timeout_ms = 600";
    for (api, awaited, limit_ms) in [(silent, Awaited::Head, 200), (dripping, Awaited::Body, 600)] {
        let started = Instant::now();
        let error = call(&tool(&api, limits), &request("GET", "/")).unwrap_err();
        let CallError::TimedOut { awaited: for_what, limit_ms: limit, repeatable, .. } = error
        else {
            panic!("{error}")
        };
        assert_eq!((for_what, limit, repeatable), (awaited, limit_ms, true));
        let taken = started.elapsed();
        assert!(taken >= Duration::from_millis(limit_ms) && taken < SECOND, "{taken:?}");
    }
}

#[test]
fn an_api_that_takes_no_request_is_given_up() {
    let api = Api::start(|_, talk| {
        talk.sip();
        pause(3 * SECOND);
    });
    let body = vec![b' '; 16 << 20];
    let error = call(&tool(&api, "headers_timeout_ms = 300"), &posting(&body)).unwrap_err();
    assert!(
        matches!(error, CallError::TimedOut { awaited: Awaited::Request | Awaited::Head, .. }),
        "{error}"
    );
}

#[test]
fn dropping_a_call_closes_its_connection_at_once() {
    let (seen, gone) = channel();
    let api = Api::start(move |_, talk| {
        talk.request();
        talk.say("HTTP/1.1 200 OK\r\n");
        seen.send(None).unwrap();
        seen.send(talk.gone_within(5 * SECOND)).unwrap();
    });
    let tool = tool(&api, "");
    on_a_core(async {
        let caller = caller();
        let asked = request("GET", "/");
        let call = caller.run(&tool, &asked, &ENVIRONMENT);
        let cancelled = rt::sleep(Duration::from_millis(300));
        assert!(matches!(rt::race(call, cancelled).await, Either::Right(())));
        rt::sleep(Duration::from_millis(300)).await;
        assert_eq!(caller.idle_connections(), 0);
    });
    assert_eq!(gone.recv().unwrap(), None);
    let after = gone.recv().unwrap().expect("the API sees the end");
    assert!(after < Duration::from_millis(450), "{after:?}");
}
