//! One HTTP request to a server, and the head of its answer.
//!
//! It goes the way of every call: from the pool or over a fresh connection, with the connection's
//! proof, its headers and those of the client that go on. Refused with 401, it is sent once more
//! with another token. A redirect is followed only within the origin and with the method kept.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::{CompiledConnection, Proof};
use crate::downstream::answer::Head;
use crate::downstream::call::same_origin;
use crate::downstream::content::{Codings, ContentError};
use crate::downstream::correlation::Forwarded;
use crate::downstream::credentials::Credentials;
use crate::downstream::error::{CallError, UpstreamProblem};
use crate::downstream::exchange::{Broken, Budget, begin, finish};
use crate::downstream::keyring::Proven;
use crate::downstream::pool::Line;
use crate::downstream::reach::{Reach, broken, host_of};
use crate::downstream::request::Outgoing;
use crate::downstream::rest::{CallEnvironment, INLINE_BYTES_MAX};
use crate::http::{Known, Method};
use crate::mcp::upstream::{Received, receive};
use crate::rpc::RpcError;

const REDIRECTS_MAX: usize = 3;

/// What the requests of one call have in common.
#[derive(Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) reach: &'a Rc<Reach>,
    pub(super) connection: &'a Arc<CompiledConnection>,
    pub(super) environment: &'a CallEnvironment<'a>,
    pub(super) budget: Budget,
    /// Whether sending a request twice does what sending it once does.
    pub(super) is_repeatable: bool,
    /// How long the body of an answer may be silent.
    pub(super) silent: Option<Duration>,
}

/// A request.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) target: &'a str,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<&'a [u8]>,
}

/// What the body of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Json,
    Events,
    Other,
}

/// An answer whose head is there.
pub(super) struct Answer {
    pub(super) line: Box<Line>,
    pub(super) proof: Arc<Proof>,
    pub(super) is_sent: bool,
}

impl Answer {
    pub(super) fn status(&self) -> u16 {
        self.line.answers.status()
    }

    pub(super) fn is_success(&self) -> bool {
        (200..=299).contains(&self.status())
    }

    pub(super) fn content(&self) -> Content {
        let kind = self.line.answers.header(Known::ContentType).unwrap_or_default();
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let is = |name: &[u8]| kind.eq_ignore_ascii_case(name);
        if is(b"text/event-stream") {
            Content::Events
        } else if is(b"application/json") || kind.to_ascii_lowercase().ends_with(b"+json") {
            Content::Json
        } else {
            Content::Other
        }
    }

    /// The session it opens (MCP 2025-11-25, session management): visible ASCII.
    pub(super) fn session_id(&self) -> Option<Box<str>> {
        let id = self.line.answers.header(Known::McpSessionId)?;
        let is_usable = !id.is_empty() && id.iter().all(u8::is_ascii_graphic);
        std::str::from_utf8(id).ok().filter(|_| is_usable).map(Box::from)
    }
}

impl Link<'_> {
    /// Sends a request and waits for the head of its answer.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub(super) async fn send(&self, request: &Request<'_>) -> Result<Answer, CallError> {
        let (mut proof, mut token) = match &self.connection.credentials.ready {
            Some(proof) => (Arc::clone(proof), None),
            None => self.prove().await?,
        };
        let mut target = request.target.to_owned();
        let mut redirects_left = REDIRECTS_MAX;
        loop {
            let (line, is_sent) = self.answered(request, &target, &proof).await?;
            let status = line.answers.status();
            if status == 401
                && let Some(token) = token.take()
                && self.reach.across.keyring.may_renew(self.connection, &token)
            {
                (proof, _) = self.prove().await?;
                continue;
            }
            if matches!(status, 307 | 308)
                && redirects_left > 0
                && let Some(next) = self.redirect(&line, &proof, &target)
            {
                redirects_left -= 1;
                target = next;
                continue;
            }
            return Ok(Answer { line, proof, is_sent });
        }
    }

    fn redirect(&self, line: &Line, proof: &Proof, target: &str) -> Option<String> {
        let location = std::str::from_utf8(line.answers.header(Known::Location)?).ok()?;
        same_origin(location, self.connection, proof, target)
    }

    async fn prove(&self) -> Result<(Arc<Proof>, Option<crate::catalog::Secret>), CallError> {
        let carried = self.environment.carried;
        let Proven { proof, token } =
            self.reach.prove(self.connection, carried, &self.budget).await?;
        Ok((proof, token))
    }

    /// A connection with the head of the answer in it, and whether the request was all sent.
    async fn answered(
        &self,
        request: &Request<'_>,
        target: &str,
        proof: &Proof,
    ) -> Result<(Box<Line>, bool), CallError> {
        let mut kept = self.reach.pool.take(host_of(self.connection), Instant::now());
        let forwarded = Forwarded::of_connection(self.connection, self.environment);
        loop {
            let mut line = match kept.take() {
                Some(line) => line,
                None => self.reach.connect(self.connection, &self.budget).await?,
            };
            let outgoing = Outgoing {
                method: request.method.as_str(),
                host: &self.connection.authority,
                target,
                proof,
                mapped_headers: &request.headers,
                forwarded: &forwarded,
                content_type: request.body.map(|_| "application/json"),
                body: request.body,
            };
            let written = outgoing.write(&mut line.request);
            written.map_err(|reason| CallError::Unsendable { reason })?;
            match begin(&mut line, request.method, &self.budget).await {
                Ok(is_sent) => return Ok((line, is_sent)),
                // The server closed the connection while it was idle, before it saw this request.
                Err(Broken::Closed { answering: false, is_unsent })
                    if line.is_reused && (is_unsent || self.is_repeatable) => {}
                Err(ended) => return Err(self.broken(ended)),
            }
        }
    }

    /// The whole body of an answer, decoded. Its connection goes back into the pool.
    pub(super) async fn body(&self, answer: Answer) -> Result<Vec<u8>, CallError> {
        let Answer { mut line, is_sent, .. } = answer;
        let is_reusable = finish(&mut line, self.silent).await.map_err(|end| self.broken(end))?;
        let head = Head::of(&line.answers).map_err(|source| self.undecodable(source))?;
        let (codings, body) = (head.codings.clone(), line.answers.body().to_vec());
        drop(head);
        self.reach.give_back(self.connection, line, is_reusable && is_sent);
        if codings.is_identity() { Ok(body) } else { self.decoded(codings, body).await }
    }

    /// The plain body. A few bytes may unpack to many: what is not short is unpacked elsewhere.
    async fn decoded(&self, codings: Codings, body: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let bytes_max = self.reach.decoded_bytes_max;
        let inline_max = INLINE_BYTES_MAX.min(bytes_max);
        if body.len() <= INLINE_BYTES_MAX {
            match codings.decode(&body, inline_max) {
                Err(ContentError::TooLarge { .. }) if inline_max < bytes_max => {}
                decoded => return decoded.map_err(|source| self.undecodable(source)),
            }
        }
        let tenant = self.connection.tenant.as_str();
        let work = move || codings.decode(&body, bytes_max);
        let decoded = self.reach.dialer.workers().run_for(tenant, work).await;
        let decoded = decoded.map_err(|_| CallError::Overloaded)?;
        decoded.map_err(|source| self.undecodable(source))
    }

    fn undecodable(&self, source: ContentError) -> CallError {
        CallError::Content { connection: self.connection.id.as_str().to_owned(), source }
    }

    /// Leaves the rest of an answer to nobody. A short one is read, so that its connection can be
    /// used again.
    pub(super) async fn leave(&self, answer: Answer) {
        if answer.content() != Content::Events {
            // Whatever stands there is of no interest, and neither is that it cannot be read.
            let _ = self.body(answer).await;
        }
    }

    /// The messages of a body or an event; read elsewhere where that would take the core too long.
    pub(super) async fn messages(
        &self,
        proof: &Arc<Proof>,
        data: Vec<u8>,
    ) -> Result<Vec<Received>, CallError> {
        let read = if data.len() > INLINE_BYTES_MAX {
            let proof = Arc::clone(proof);
            let tenant = self.connection.tenant.as_str();
            let work = move || messages(&proof, data);
            let done = self.reach.dialer.workers().run_for(tenant, work).await;
            done.map_err(|_| CallError::Overloaded)?
        } else {
            messages(proof, data)
        };
        read.map_err(|error| self.invalid(&error.message))
    }

    pub(super) fn broken(&self, ended: Broken) -> CallError {
        broken(self.connection, ended, &self.budget, self.is_repeatable)
    }

    pub(super) fn problem(&self, problem: UpstreamProblem) -> CallError {
        CallError::Upstream { connection: self.connection.id.as_str().to_owned(), problem }
    }

    pub(super) fn invalid(&self, what: &str) -> CallError {
        self.problem(UpstreamProblem::Invalid(what.into()))
    }
}

/// Reads a message that may repeat a credential it was sent with.
pub(super) fn messages(proof: &Proof, data: Vec<u8>) -> Result<Vec<Received>, RpcError> {
    receive(&Credentials::of(proof, &[]).strike_json(data))
}
