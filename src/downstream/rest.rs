//! Calling an HTTP API.
//!
//! One [`RestCaller`] a core, with a pool of its own. A call takes the last used connection to its
//! host (or makes one), writes the request in one piece, reads the answer where it arrives, and
//! shapes it. Nothing of the client's goes out: only what the connection and the mapping say.
//!
//! Invariants: a request is sent again only when that cannot do harm (it never left, or its method
//! may be repeated) and only once, over a fresh connection; every wait has a limit; every body has
//! a limit, before and after decoding; large bodies are decoded and translated off the core.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::{CompiledConnection, CompiledTool, Proof, Secret};
use crate::http::{Known, Method};
use crate::mapping::OutgoingRequest;
use crate::mcp::ToolOutcome;
use crate::rt;
use crate::telemetry::{CoreMetrics, DownstreamLabel, ExecutionId, TraceParent};

use super::accepted::Accepted;
use super::answer::Head;
use super::call::{Call, answer_plan, asked, redirect};
use super::carried::Carried;
use super::content::ContentError;
use super::correlation::Forwarded;
use super::error::{Awaited, Blame, CallError};
use super::exchange::{Broken, Budget, exchange};
use super::keyring::Proven;
use super::messages::{self, AnswerPlan, Shaped};
use super::pool::Line;
use super::reach::Reach;
use super::request::join;
use super::resilience::{Attempts, Ended, pause};

/// A body up to this size is decoded, checked and translated on the core.
pub(super) const INLINE_BYTES_MAX: usize = 128 * 1024;
/// The API has taken the work on (RFC 9110 section 15.3.3).
const ACCEPTED: u16 = 202;
/// How often a connection that follows redirects does so in one call.
const REDIRECTS_MAX: usize = 3;

/// What a call has to know about the request that caused it.
#[derive(Debug, Clone, Copy)]
pub struct CallEnvironment<'a> {
    /// For the log, and for the API where its connection says so.
    pub execution_id: ExecutionId,
    /// The client's own id of its request, for the API where its connection says so.
    pub external_id: Option<&'a str>,
    /// The trace the request came in, for the API where its connection says so.
    pub trace: Option<TraceParent>,
    /// What of the client's request goes on to the API.
    pub carried: &'a Carried,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Its outcome, or why there was no usable answer. An answer that says no is an outcome.
    pub result: Result<ToolOutcome, CallError>,
    /// The status of the API's answer, where one came. A fault that a SOAP service sent as a success
    /// has the one it should have had.
    pub status: Option<u16>,
    /// How long that answer asks to be left alone.
    pub retry_after: Option<Duration>,
    /// From the first attempt to connect until the result was there.
    pub elapsed: Duration,
}

/// Calls HTTP APIs from one core.
#[derive(Debug)]
pub struct RestCaller {
    pub(super) reach: Rc<Reach>,
}

impl RestCaller {
    /// A caller that goes this way.
    pub fn new(reach: Reach) -> Self {
        Self { reach: Rc::new(reach) }
    }

    /// How many connections wait for the next call.
    pub fn idle_connections(&self) -> usize {
        self.reach.pool.idle_count()
    }

    /// Makes the call that `request` describes, for `tool`.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection it uses, which is how the API learns of it.
    pub async fn run(
        &self,
        tool: &Arc<CompiledTool>,
        request: &OutgoingRequest,
        environment: &CallEnvironment<'_>,
    ) -> Called {
        let Some(plan) = answer_plan(tool) else {
            let result = Err(CallError::NotRest);
            return Called { result, status: None, retry_after: None, elapsed: Duration::ZERO };
        };
        let connection = plan.connection;
        let budget = self.budget(tool, connection);
        let tally = Tally::start(&self.reach.metrics, budget.started);
        let mut told = Told::default();
        let result = match self.reach.across.conditions.begin(connection, budget.started) {
            Ok(attempts) => {
                let begun = Begun { tool, plan, request, budget, attempts };
                self.persist(begun, environment, &mut told).await
            }
            Err(rest) => {
                let connection = connection.id.as_str().to_owned();
                // Rounded up.
                Err(CallError::Resting { connection, seconds: rest.as_secs() + 1 })
            }
        };
        let elapsed = tally.end(label_of(told.status, &result));
        if let Err(error) = &result {
            log(error, connection, environment);
        }
        Called { result, status: told.status, retry_after: told.retry_after, elapsed }
    }

    /// Makes the call, and makes it again where that may be and helps.
    async fn persist(
        &self,
        begun: Begun<'_>,
        environment: &CallEnvironment<'_>,
        told: &mut Told,
    ) -> Result<ToolOutcome, CallError> {
        let Begun { tool, plan, request, budget, mut attempts } = begun;
        let connection = plan.connection;
        let (proof, token) = match &connection.credentials.ready {
            Some(proof) => (Cow::Borrowed(proof), None),
            None => self.prove(connection, environment, &budget).await?,
        };
        let mut call = Call {
            tool,
            connection,
            proof,
            token,
            plan,
            request,
            method: Method::of(&request.method),
            forwarded: Forwarded::of(connection, tool, environment),
            budget,
        };
        loop {
            let result = self.call(&mut call, environment, told).await;
            let Some(attempts) = &mut attempts else { return result };
            let now = Instant::now();
            let (ended, may_help) = judged(&call, told.status, &result);
            attempts.note(ended, now);
            if !may_help {
                return result;
            }
            let chance = environment.execution_id.chance();
            match attempts.next(chance, told.retry_after) {
                Some(wait) if wait < budget.left(now) => {
                    *told = Told::default();
                    pause(wait).await;
                }
                _ => return result,
            }
        }
    }

    fn budget(&self, tool: &CompiledTool, connection: &CompiledConnection) -> Budget {
        self.reach.budget(connection, tool.total_timeout)
    }

    /// What a call proves itself with, where it has to be come by.
    async fn prove<'a>(
        &self,
        connection: &Arc<CompiledConnection>,
        environment: &CallEnvironment<'_>,
        budget: &Budget,
    ) -> Result<(Cow<'a, Arc<Proof>>, Option<Secret>), CallError> {
        let Proven { proof, token } =
            self.reach.prove(connection, environment.carried, budget).await?;
        Ok((Cow::Owned(proof), token))
    }

    /// What the answer came to; its status is told as soon as there is one.
    async fn call(
        &self,
        call: &mut Call<'_>,
        environment: &CallEnvironment<'_>,
        told: &mut Told,
    ) -> Result<ToolOutcome, CallError> {
        let mut target = join(&call.connection.base_path, &call.request.target);
        let mut redirects_left = match call.method {
            Method::Get | Method::Head if call.connection.follow_redirects => REDIRECTS_MAX,
            _ => 0,
        };
        loop {
            let (line, is_reusable) = self.answered(call, &target).await?;
            if redirects_left > 0
                && let Some(next) = redirect(&line, call.connection, &call.proof, &target)
            {
                redirects_left -= 1;
                self.give_back(call, line, is_reusable);
                target = Cow::Owned(next);
                continue;
            }
            // Refused, so not done: it is asked once more, with another token.
            if line.answers.status() == 401
                && let Some(token) = call.token.take()
                && self.reach.across.keyring.may_renew(call.connection, &token)
            {
                self.give_back(call, line, is_reusable);
                (call.proof, _) = self.prove(call.connection, environment, &call.budget).await?;
                continue;
            }
            *told = Told::of(&line);
            if let Some(rule) = &call.tool.polling
                && told.status == Some(ACCEPTED)
            {
                let work = Accepted { call, rule, target: &target };
                return Box::pin(self.follow(work, line, is_reusable, told)).await;
            }
            let shaped = self.shape(call, line, is_reusable).await?;
            told.status = shaped.status.or(told.status);
            return Ok(shaped.outcome);
        }
    }

    /// A connection with the answer in it, and whether it may be used again.
    pub(super) async fn answered(
        &self,
        call: &Call<'_>,
        target: &str,
    ) -> Result<(Box<Line>, bool), CallError> {
        let mut kept = self.reach.pool.take(call.host(), call.budget.started);
        loop {
            let mut line = match kept.take() {
                Some(line) => line,
                None => self.reach.connect(call.connection, &call.budget).await?,
            };
            let signed = call.signed_body()?;
            call.outgoing(target, signed.as_deref())
                .write(&mut line.request)
                .map_err(|reason| CallError::Unsendable { reason })?;
            match exchange(&mut line, call.method, &call.budget).await {
                Ok(is_reusable) => return Ok((line, is_reusable)),
                // The API closed the connection while it was idle, before it saw this request. The
                // next one is fresh, so this happens once.
                Err(Broken::Closed { answering: false, is_unsent })
                    if line.is_reused && (is_unsent || call.is_repeatable()) => {}
                Err(broken) => return Err(call.broken(broken)),
            }
        }
    }

    /// The outcome of the answer in `line`, which goes back into the pool.
    pub(super) async fn shape(
        &self,
        call: &Call<'_>,
        line: Box<Line>,
        is_reusable: bool,
    ) -> Result<Shaped, CallError> {
        let body = line.answers.body();
        let head = Head::of(&line.answers).map_err(|source| call.undecodable(source))?;
        let inline_max = INLINE_BYTES_MAX.min(self.reach.decoded_bytes_max);
        let plain = match () {
            () if body.len() > INLINE_BYTES_MAX => None,
            () if head.codings.is_identity() => Some(Ok(Cow::Borrowed(body))),
            () => match head.codings.decode(body, inline_max) {
                Err(ContentError::TooLarge { .. }) if inline_max < self.reach.decoded_bytes_max => {
                    None
                }
                decoded => Some(decoded.map(Cow::Owned)),
            },
        };
        if let Some(plain) = plain {
            let plain = plain.as_ref().map(AsRef::as_ref).map_err(Clone::clone);
            let shaped = messages::shape(&head, plain, call.plan, call.asked());
            self.give_back(call, line, is_reusable);
            return shaped;
        }
        let (head, body) = (head.into_owned(), body.to_vec());
        self.give_back(call, line, is_reusable);
        self.shape_off_core(call, head, body).await
    }

    async fn shape_off_core(
        &self,
        call: &Call<'_>,
        head: Head<'static>,
        body: Vec<u8>,
    ) -> Result<Shaped, CallError> {
        let (tool, proof) = (Arc::clone(call.tool), Arc::clone(&call.proof));
        let bytes_max = self.reach.decoded_bytes_max;
        let work = move || {
            let plan = answer_plan(&tool)?;
            let plain = if head.codings.is_identity() {
                Ok(Cow::Borrowed(body.as_slice()))
            } else {
                head.codings.decode(&body, bytes_max).map(Cow::Owned)
            };
            let plain = plain.as_ref().map(AsRef::as_ref).map_err(Clone::clone);
            Some(messages::shape(&head, plain, plan, asked(&tool, plan.connection, &proof)))
        };
        self.off_core(call, work).await?.ok_or(CallError::Overloaded)?
    }

    /// Work with an answer that would take a core too long.
    pub(super) async fn off_core<T: Send + 'static>(
        &self,
        call: &Call<'_>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let done = self.reach.dialer.workers().run_for(call.connection.tenant.as_str(), work);
        match rt::timeout(call.budget.left(Instant::now()), done).await {
            Ok(done) => done.map_err(|_| CallError::Overloaded),
            Err(_) => Err(call.broken(Broken::TimedOut(Awaited::Body))),
        }
    }

    pub(super) fn give_back(&self, call: &Call<'_>, line: Box<Line>, is_reusable: bool) {
        self.reach.give_back(call.connection, line, is_reusable);
    }
}

/// A call before its first attempt.
struct Begun<'a> {
    tool: &'a Arc<CompiledTool>,
    plan: AnswerPlan<'a>,
    request: &'a OutgoingRequest,
    budget: Budget,
    attempts: Option<Attempts>,
}

/// What the last answer said besides what it is about.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
}

impl Told {
    pub(super) fn of(line: &Line) -> Self {
        let asked = line.answers.header(Known::RetryAfter);
        let seconds = asked.and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok());
        Self { status: Some(line.answers.status()), retry_after: seconds.map(Duration::from_secs) }
    }
}

/// What an attempt says of the connection, and whether another one may be made and help.
fn judged(
    call: &Call<'_>,
    status: Option<u16>,
    result: &Result<ToolOutcome, CallError>,
) -> (Ended, bool) {
    match (result, status) {
        (Err(error), None) => match (error, error.blame()) {
            (
                CallError::Unreachable { .. }
                | CallError::TimedOut { .. }
                | CallError::Closed { .. },
                Blame::Downstream,
            ) => (Ended::Failed, error.may_retry()),
            (_, Blame::Downstream) => (Ended::Well, false),
            // Nobody asked it.
            (_, Blame::Client | Blame::Us) => (Ended::Dropped, false),
        },
        // The way to the API, or the API itself, is not well for now.
        (Ok(_), Some(502..=504)) => (Ended::Failed, call.is_repeatable()),
        (Ok(_), Some(429)) => (Ended::Well, call.is_repeatable()),
        // It answered. Where there is an error nevertheless, it may have taken the work on: what
        // failed then is not the call.
        (Ok(_), _) | (Err(_), Some(_)) => (Ended::Well, false),
    }
}

/// What has to be put right here is a warning; what others did is information.
#[cold]
pub(super) fn log(
    error: &CallError,
    connection: &CompiledConnection,
    environment: &CallEnvironment<'_>,
) {
    let (execution_id, detail) = (environment.execution_id, error.detail());
    let (connection, blame) = (connection.id.as_str(), error.blame());
    let may_retry = error.may_retry();
    match blame {
        Blame::Us => tracing::warn!(
            %execution_id, connection, %blame, may_retry, detail, "downstream call failed: {error}"
        ),
        Blame::Client | Blame::Downstream => tracing::info!(
            %execution_id, connection, %blame, may_retry, detail, "downstream call failed: {error}"
        ),
    }
}

/// Counts a call once: by its end, or as cancelled when it was dropped before.
pub(super) struct Tally<'a> {
    metrics: &'a CoreMetrics,
    started: Instant,
    elapsed: Option<Duration>,
    label: DownstreamLabel,
}

impl<'a> Tally<'a> {
    pub(super) fn start(metrics: &'a CoreMetrics, started: Instant) -> Self {
        Self { metrics, started, elapsed: None, label: DownstreamLabel::Cancelled }
    }

    pub(super) fn end(mut self, label: DownstreamLabel) -> Duration {
        self.label = label;
        self.elapsed = Some(self.started.elapsed());
        self.elapsed.unwrap_or_default()
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        let elapsed = self.elapsed.unwrap_or_else(|| self.started.elapsed());
        self.metrics.downstream_call(self.label, elapsed);
    }
}

fn label_of(status: Option<u16>, result: &Result<ToolOutcome, CallError>) -> DownstreamLabel {
    match (result, status) {
        (Err(error), _) => error.label(),
        (Ok(_), Some(200..=299)) => DownstreamLabel::Ok,
        (Ok(_), Some(400..=499)) => DownstreamLabel::ClientError,
        (Ok(_), _) => DownstreamLabel::ServerError,
    }
}
