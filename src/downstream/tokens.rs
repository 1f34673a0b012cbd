//! Tokens of authorization servers: one for each client, shared by all cores.
//!
//! Invariants: of one client there is at most one request under way, whoever waits for it and
//! wherever; a token is asked for anew ahead of its expiry while the old one goes on serving; one
//! without a known expiry serves until the API refuses it; a failure is remembered for
//! [`FAILED_FOR`], so that calls do not storm a server that is down. Waiting and asking are apart:
//! a call that is dropped takes nobody's token with it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::catalog::Secret;
use crate::rt::{self, OneshotReceiver, OneshotSender};

use super::error::CredentialProblem;

/// How long a failure is the answer to whoever asks.
const FAILED_FOR: Duration = Duration::from_secs(5);
/// A token goes out of use this much before its end, or a quarter of its time if that is less.
const AHEAD_MAX: Duration = Duration::from_secs(60);
/// A token that the API refuses is given up at most this often.
const REFUSED_EVERY: Duration = Duration::from_secs(5);
/// How many clients are remembered.
const CLIENTS_MAX: usize = 4_096;

/// A token as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issued {
    pub(crate) token: Secret,
    /// Counted from when it was asked for.
    pub(crate) expires_in: Option<Duration>,
}

/// There is no token. The detail is for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoToken {
    pub(crate) problem: CredentialProblem,
    pub(crate) detail: Arc<str>,
}

type Outcome = Result<Secret, NoToken>;

/// The tokens there are. Shared by all cores.
#[derive(Clone, Default)]
pub(crate) struct Tokens {
    clients: Arc<Mutex<HashMap<[u8; 32], Client>>>,
}

#[derive(Default)]
struct Client {
    held: Option<Held>,
    /// Who waits for the request under way, where one is.
    waiting: Option<Vec<OneshotSender<Outcome>>>,
    failed: Option<(Instant, NoToken)>,
    refused_at: Option<Instant>,
}

struct Held {
    token: Secret,
    /// From when on a new one is asked for, and when this one is of no use any more.
    times: Option<(Instant, Instant)>,
}

/// What there is for whoever needs a token.
pub(crate) enum Look {
    Token(Secret),
    /// One that serves for a while; somebody has to ask for the next, and it is this one.
    Aging(Secret, Ticket),
    /// It is being asked for.
    Wait(OneshotReceiver<Outcome>),
    /// Somebody has to ask for it, and it is this one: then wait.
    Ask(Ticket, OneshotReceiver<Outcome>),
    Failed(NoToken),
}

impl Tokens {
    /// What there is of a client's tokens.
    pub(crate) fn look(&self, key: &[u8; 32], now: Instant) -> Look {
        let mut clients = self.clients.lock();
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(key) {
            clients.retain(|_, client| client.waiting.is_some());
        }
        let client = clients.entry(*key).or_default();
        let failed = client.failed.as_ref().filter(|(until, _)| *until > now);
        if let Some(held) = &client.held {
            match held.times {
                Some((_, end)) if end <= now => {}
                Some((again, _)) if again <= now => {
                    let token = held.token.clone();
                    if client.waiting.is_some() || failed.is_some() {
                        return Look::Token(token);
                    }
                    client.waiting = Some(Vec::new());
                    return Look::Aging(token, Ticket::new(self, *key));
                }
                _ => return Look::Token(held.token.clone()),
            }
        }
        let (sender, receiver) = rt::oneshot();
        if let Some(waiting) = &mut client.waiting {
            waiting.push(sender);
            return Look::Wait(receiver);
        }
        if let Some((_, failure)) = failed {
            return Look::Failed(failure.clone());
        }
        client.waiting = Some(vec![sender]);
        Look::Ask(Ticket::new(self, *key), receiver)
    }

    /// The API refused a token: it is given up, unless it was replaced meanwhile. Whether it is
    /// worth trying with what there is then.
    pub(crate) fn refused(&self, key: &[u8; 32], token: &Secret, now: Instant) -> bool {
        let mut clients = self.clients.lock();
        let Some(client) = clients.get_mut(key) else { return true };
        match &client.held {
            Some(held) if held.token == *token => {
                // An API that refuses every token must not make us ask for one with every call.
                let is_recent = |at: Instant| now.duration_since(at) < REFUSED_EVERY;
                if client.refused_at.is_some_and(is_recent) {
                    return false;
                }
                client.refused_at = Some(now);
                client.held = None;
                true
            }
            _ => true,
        }
    }

    fn finish(&self, key: [u8; 32], asked_at: Instant, outcome: Result<Issued, NoToken>) {
        let now = Instant::now();
        let mut clients = self.clients.lock();
        let client = clients.entry(key).or_default();
        let told = match outcome {
            Ok(Issued { token, expires_in }) => {
                let times = expires_in.map(|left| {
                    let ahead = AHEAD_MAX.min(left / 4);
                    (asked_at + (left - ahead), asked_at + left)
                });
                client.held = Some(Held { token: token.clone(), times });
                client.failed = None;
                Ok(token)
            }
            Err(failure) => {
                client.failed = Some((now + FAILED_FOR, failure.clone()));
                Err(failure)
            }
        };
        let waiting = client.waiting.take().unwrap_or_default();
        drop(clients);
        for sender in waiting {
            // Whoever is gone needs none.
            let _ = sender.send(told.clone());
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.clients.lock().len();
        formatter.debug_struct("Tokens").field("clients", &count).finish_non_exhaustive()
    }
}

/// The duty to ask for a token. Whoever drops it has failed.
pub(crate) struct Ticket {
    tokens: Tokens,
    key: [u8; 32],
    asked_at: Instant,
    is_done: bool,
}

impl Ticket {
    fn new(tokens: &Tokens, key: [u8; 32]) -> Self {
        Self { tokens: tokens.clone(), key, asked_at: Instant::now(), is_done: false }
    }

    /// Tells everybody who waits.
    pub(crate) fn finish(mut self, outcome: Result<Issued, NoToken>) {
        self.is_done = true;
        self.tokens.finish(self.key, self.asked_at, outcome);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_done {
            let detail = "the request for a token was broken off".into();
            let failure = NoToken { problem: CredentialProblem::TokenUnusable, detail };
            self.tokens.finish(self.key, self.asked_at, Err(failure));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn issued(token: &str, seconds: Option<u64>) -> Result<Issued, NoToken> {
        Ok(Issued { token: Secret::new(token), expires_in: seconds.map(Duration::from_secs) })
    }

    fn failure() -> NoToken {
        NoToken { problem: CredentialProblem::TokenUnusable, detail: "no".into() }
    }

    fn ask(tokens: &Tokens, now: Instant) -> (Ticket, OneshotReceiver<Outcome>) {
        match tokens.look(&KEY, now) {
            Look::Ask(ticket, receiver) => (ticket, receiver),
            _ => panic!("somebody has asked already"),
        }
    }

    fn token(tokens: &Tokens, now: Instant) -> Option<String> {
        match tokens.look(&KEY, now) {
            Look::Token(token) => Some(token.expose().to_owned()),
            _ => None,
        }
    }

    #[test]
    fn one_asks_and_all_are_told() {
        let tokens = Tokens::default();
        let now = Instant::now();
        let (ticket, first) = ask(&tokens, now);
        let others: Vec<_> = (0..50)
            .map(|_| match tokens.look(&KEY, now) {
                Look::Wait(receiver) => receiver,
                _ => panic!("a second one asks"),
            })
            .collect();
        ticket.finish(issued("one", Some(100)));
        for receiver in std::iter::once(first).chain(others) {
            assert_eq!(receiver.recv_blocking().unwrap().unwrap().expose(), "one");
        }
        assert_eq!(token(&tokens, now).as_deref(), Some("one"));
    }

    #[test]
    fn a_token_is_asked_for_ahead_of_its_end_by_one() {
        let tokens = Tokens::default();
        let now = Instant::now();
        ask(&tokens, now).0.finish(issued("one", Some(100)));
        assert!(token(&tokens, now + Duration::from_secs(70)).is_some());
        let later = now + Duration::from_secs(80);
        let Look::Aging(old, ticket) = tokens.look(&KEY, later) else { panic!() };
        assert_eq!(old.expose(), "one");
        assert_eq!(token(&tokens, later).as_deref(), Some("one"), "while the next is asked for");
        ticket.finish(Err(failure()));
        let failed_at = Instant::now();
        assert_eq!(
            token(&tokens, failed_at).as_deref(),
            Some("one"),
            "a failure costs nothing yet"
        );
        let end = now + Duration::from_secs(101);
        assert!(matches!(tokens.look(&KEY, end), Look::Ask(..)));
    }

    #[test]
    fn without_an_end_it_serves_until_it_is_refused() {
        let tokens = Tokens::default();
        let now = Instant::now();
        ask(&tokens, now).0.finish(issued("one", None));
        let day = now + Duration::from_secs(86_400);
        assert_eq!(token(&tokens, day).as_deref(), Some("one"));
        assert!(tokens.refused(&KEY, &Secret::new("older"), day), "there is another one already");
        assert_eq!(token(&tokens, day).as_deref(), Some("one"));
        assert!(tokens.refused(&KEY, &Secret::new("one"), day));
        ask(&tokens, day).0.finish(issued("two", None));
        assert!(!tokens.refused(&KEY, &Secret::new("two"), day), "not with every call");
        assert_eq!(token(&tokens, day).as_deref(), Some("two"));
        assert!(tokens.refused(&KEY, &Secret::new("two"), day + REFUSED_EVERY));
    }

    #[test]
    fn failures_are_remembered_shortly_and_broken_promises_are_failures() {
        let tokens = Tokens::default();
        let now = Instant::now();
        let (ticket, receiver) = ask(&tokens, now);
        drop(ticket);
        assert!(receiver.recv_blocking().unwrap().is_err());
        assert!(matches!(tokens.look(&KEY, Instant::now()), Look::Failed(_)));
        assert!(matches!(tokens.look(&KEY, Instant::now() + 2 * FAILED_FOR), Look::Ask(..)));
    }
}
