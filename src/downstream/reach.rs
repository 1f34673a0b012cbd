//! What every call to the outside goes through on one core, whatever protocol it speaks: the pool,
//! the dialer, what proves who calls, and the limits.
//!
//! It must not know what is asked or answered.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::CompiledConnection;
use crate::http::Limits;
use crate::rt::{ClientTls, Resolver, WorkerPool};
use crate::settings;
use crate::telemetry::CoreMetrics;

use super::carried::Carried;
use super::dial::{Destination, Dialer, Undialled};
use super::egress::Egress;
use super::error::{CallError, CredentialProblem};
use super::exchange::{Broken, Budget};
use super::keyring::{Keyring, Proven, Proving};
use super::pool::{HostKey, Line, Pool};
use super::resilience::Conditions;
use super::upstream::AtServers;

/// What the cores have in common.
#[derive(Debug, Clone, Default)]
pub struct AcrossCores {
    /// Secrets and tokens.
    pub keyring: Keyring,
    /// How connections are.
    pub conditions: Conditions,
    /// Sessions at MCP servers.
    pub servers: AtServers,
}

/// The way outside from one core.
pub struct Reach {
    pub(crate) pool: Rc<Pool>,
    pub(crate) dialer: Rc<Dialer>,
    pub(crate) across: AcrossCores,
    pub(crate) limits: Limits,
    pub(crate) decoded_bytes_max: usize,
    connect_timeout: Duration,
    headers_timeout: Duration,
    total_timeout: Duration,
    pub(crate) metrics: Arc<CoreMetrics>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reach").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl Reach {
    /// With an empty pool. Without `tls`, nothing is reached by `https`.
    pub fn new(
        settings: &settings::Downstream,
        http: &settings::Http,
        resolver: Resolver,
        workers: WorkerPool,
        tls: Option<ClientTls>,
        across: AcrossCores,
        metrics: Arc<CoreMetrics>,
    ) -> Self {
        let egress = Egress::new(&settings.blocked_networks);
        let extra_roots = settings.extra_roots.clone();
        let idle_max = Duration::from_secs(settings.idle_connection_seconds);
        Self {
            pool: Pool::new(settings.idle_connections_max, idle_max),
            dialer: Rc::new(Dialer::new(egress, resolver, workers, extra_roots, tls)),
            across,
            limits: Limits {
                head_bytes_max: http.head_bytes_max,
                headers_max: http.headers_max,
                body_bytes_max: settings.response_bytes_max,
            },
            decoded_bytes_max: settings.decoded_bytes_max,
            connect_timeout: Duration::from_millis(settings.connect_timeout_ms),
            headers_timeout: Duration::from_millis(settings.headers_timeout_ms),
            total_timeout: Duration::from_millis(settings.total_timeout_ms),
            metrics,
        }
    }

    /// The time for something that begins now: as the connection says, else as the settings say.
    /// `total` is what has been said for the whole of it.
    pub(crate) fn budget(
        &self,
        connection: &CompiledConnection,
        total: Option<Duration>,
    ) -> Budget {
        Budget {
            started: Instant::now(),
            connect: connection.connect_timeout.unwrap_or(self.connect_timeout),
            headers: connection.headers_timeout.unwrap_or(self.headers_timeout),
            total: total.or(connection.total_timeout).unwrap_or(self.total_timeout),
        }
    }

    /// What a call proves itself with, where it has to be come by.
    ///
    /// # Cancel safety
    /// Dropping the future leaves what others wait for under way.
    pub(crate) async fn prove(
        &self,
        connection: &Arc<CompiledConnection>,
        carried: &Carried,
        budget: &Budget,
    ) -> Result<Proven, CallError> {
        let proving = Proving { dialer: &self.dialer, connection, carried, budget };
        // Boxed: most calls have no need of the room it takes.
        Box::pin(self.across.keyring.prove(proving)).await
    }

    /// A fresh connection to the server.
    ///
    /// # Cancel safety
    /// Dropping the future closes what was begun.
    pub(crate) async fn connect(
        &self,
        connection: &CompiledConnection,
        budget: &Budget,
    ) -> Result<Box<Line>, CallError> {
        let within = budget.connect.min(budget.left(Instant::now()));
        let to = Destination::of(connection);
        let dialled = self.dialer.dial(&to, self.limits, within).await;
        dialled.map_err(|error| undialled(connection, error))
    }

    /// Keeps a connection whose answer was read for the next call, or closes it.
    pub(crate) fn give_back(
        &self,
        connection: &CompiledConnection,
        mut line: Box<Line>,
        is_reusable: bool,
    ) {
        if is_reusable {
            line.answers.consume();
            self.pool.put(host_of(connection), line, Instant::now());
        }
    }
}

/// Whose connections are interchangeable with those of `connection`.
pub(crate) fn host_of(connection: &CompiledConnection) -> HostKey<'_> {
    HostKey { is_tls: connection.is_https, name: &connection.socket_key }
}

/// An exchange that brought no answer, in the words of a call.
pub(crate) fn broken(
    connection: &CompiledConnection,
    broken: Broken,
    budget: &Budget,
    repeatable: bool,
) -> CallError {
    let connection = connection.id.as_str().to_owned();
    match broken {
        Broken::TimedOut(awaited) => {
            let limit_ms = budget.limit_of(awaited).as_millis();
            let limit_ms = u64::try_from(limit_ms).unwrap_or(u64::MAX);
            CallError::TimedOut { connection, awaited, limit_ms, repeatable }
        }
        Broken::Closed { answering, is_unsent } => {
            CallError::Closed { connection, answering, repeatable: repeatable || is_unsent }
        }
        Broken::Http(error) => CallError::Refused { connection, reason: error },
    }
}

fn undialled(connection: &CompiledConnection, error: Undialled) -> CallError {
    let connection = connection.id.as_str().to_owned();
    match error {
        Undialled::Unreachable { problem, detail } => {
            CallError::Unreachable { connection, problem, detail }
        }
        Undialled::Certificate { detail } => {
            let problem = CredentialProblem::Certificate;
            CallError::Credential { connection, problem, detail }
        }
        Undialled::Overloaded => CallError::Overloaded,
    }
}
