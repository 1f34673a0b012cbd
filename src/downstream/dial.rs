//! Opening connections: judged by the egress policy, verified by the right roots.
//!
//! One dialer a core, for whatever is asked of somebody outside. What is read for it (roots, client
//! certificates) is read off the core and kept; a file that changes is read again within
//! [`LOOKED_AGAIN_AFTER`], for connections made from then on. One that cannot be read any more
//! leaves what was read before in use, and says so in the log.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::catalog::{ClientCertificate, CompiledConnection, Endpoint};
use crate::http::Limits;
use crate::rt::{self, ClientTls, ConnectError, ConnectTarget, Resolver, TlsError, WorkerPool};
use crate::settings::Network;

use super::egress::{Denied, Egress};
use super::error::Unreachable;
use super::pool::Line;
use super::secret_places::{self, Stamp};

/// How many sets of trust roots and certificates a core keeps ready.
const TRUSTS_MAX: usize = 256;
/// How old what is known of a file may be.
const LOOKED_AGAIN_AFTER: Duration = Duration::from_secs(3);

/// Whom to connect to, and on whose behalf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub(crate) is_https: bool,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) tenant: &'a str,
    pub(crate) allowances: &'a [Network],
    /// Trusted besides the system's.
    pub(crate) roots: &'a [PathBuf],
    /// Shown to whoever asks for one.
    pub(crate) certificate: Option<&'a ClientCertificate>,
}

impl<'a> Destination<'a> {
    /// The API of a connection.
    pub(crate) fn of(connection: &'a CompiledConnection) -> Self {
        Self {
            is_https: connection.is_https,
            host: &connection.host,
            port: connection.port,
            tenant: connection.tenant.as_str(),
            allowances: &connection.egress_allowances,
            roots: &connection.tls_roots,
            certificate: connection.client_certificate.as_ref(),
        }
    }

    /// Where a connection gets its tokens; only the API is shown the certificate.
    pub(crate) fn of_endpoint(endpoint: &'a Endpoint, connection: &'a CompiledConnection) -> Self {
        Self {
            is_https: endpoint.is_https,
            host: &endpoint.host,
            port: endpoint.port,
            certificate: None,
            ..Self::of(connection)
        }
    }
}

/// No connection was made. The detail is for the operator.
#[derive(Debug)]
pub(crate) enum Undialled {
    Unreachable {
        problem: Unreachable,
        detail: String,
    },
    /// The certificate to be shown is of no use.
    Certificate {
        detail: String,
    },
    Overloaded,
}

/// Opens connections from one core.
pub(crate) struct Dialer {
    egress: Egress,
    resolver: Resolver,
    workers: WorkerPool,
    extra_roots: Vec<PathBuf>,
    tls: Option<ClientTls>,
    trusts: RefCell<HashMap<String, Trust>>,
}

struct Trust {
    tls: ClientTls,
    stamps: Vec<Option<Stamp>>,
    looked_at: Instant,
}

impl Dialer {
    pub(crate) fn new(
        egress: Egress,
        resolver: Resolver,
        workers: WorkerPool,
        extra_roots: Vec<PathBuf>,
        tls: Option<ClientTls>,
    ) -> Self {
        Self { egress, resolver, workers, extra_roots, tls, trusts: RefCell::default() }
    }

    pub(crate) fn workers(&self) -> &WorkerPool {
        &self.workers
    }

    /// A fresh connection.
    ///
    /// # Cancel safety
    /// Dropping the future closes what was begun.
    pub(crate) async fn dial(
        &self,
        to: &Destination<'_>,
        limits: Limits,
        within: Duration,
    ) -> Result<Box<Line>, Undialled> {
        let tls = if to.is_https { Some(self.trust(to).await?) } else { None };
        let target = ConnectTarget { host: to.host, port: to.port, tls: tls.as_ref() };
        let denied: Cell<Option<Denied>> = Cell::new(None);
        let allowed = |address: IpAddr| match self.egress.judge(to.allowances, address) {
            Ok(()) => true,
            Err(reason) => {
                denied.set(Some(reason));
                false
            }
        };
        match rt::connect(&self.resolver, target, &allowed, within).await {
            Ok(connection) => Ok(Line::new(connection, limits)),
            Err(error) => {
                let detail = match (&error, denied.get()) {
                    (ConnectError::Refused { host }, Some(denied)) => {
                        format!("{host}: {}", denied.advice(to.tenant))
                    }
                    _ => error.to_string(),
                };
                Err(Undialled::Unreachable { problem: problem_of(&error), detail })
            }
        }
    }

    /// What a destination is verified with, read off the core the first time.
    async fn trust(&self, to: &Destination<'_>) -> Result<ClientTls, Undialled> {
        if to.roots.is_empty() && to.certificate.is_none() {
            let missing =
                Undialled::Unreachable { problem: Unreachable::NoTls, detail: String::new() };
            return self.tls.clone().ok_or(missing);
        }
        let files = Files::of(to, &self.extra_roots);
        let key = files.key();
        let now = Instant::now();
        let known = self.trusts.borrow_mut().get_mut(&key).map(|trust| {
            if now.duration_since(trust.looked_at) < LOOKED_AGAIN_AFTER {
                return (trust.tls.clone(), None);
            }
            // Whoever comes while this one looks is given what there is.
            trust.looked_at = now;
            (trust.tls.clone(), Some(trust.stamps.clone()))
        });
        let (old, stamps) = match known {
            Some((tls, None)) => return Ok(tls),
            Some((tls, Some(stamps))) => (Some(tls), Some(stamps)),
            None => (None, None),
        };
        let is_own = files.own.is_some();
        let read = self.workers.run(move || files.read(stamps.as_deref())).await;
        match (read.map_err(|_| Undialled::Overloaded)?, old) {
            (Ok(None), Some(old)) => Ok(old),
            (Ok(Some((tls, stamps))), _) => {
                let mut trusts = self.trusts.borrow_mut();
                if trusts.len() >= TRUSTS_MAX {
                    trusts.clear();
                }
                trusts.insert(key, Trust { tls: tls.clone(), stamps, looked_at: now });
                Ok(tls)
            }
            (Err(error), Some(old)) => {
                tracing::warn!("what was read before stays in use: {error}");
                Ok(old)
            }
            (Err(error), None) => {
                let detail = error.to_string();
                Err(if is_own {
                    Undialled::Certificate { detail }
                } else {
                    Undialled::Unreachable { problem: Unreachable::Untrusted, detail }
                })
            }
            // Nothing is unchanged that was not known.
            (Ok(None), None) => Err(Undialled::Overloaded),
        }
    }
}

/// The PEM files behind a destination.
struct Files {
    roots: Vec<PathBuf>,
    own: Option<ClientCertificate>,
}

type Read = (ClientTls, Vec<Option<Stamp>>);

impl Files {
    fn of(to: &Destination<'_>, extra_roots: &[PathBuf]) -> Self {
        let roots = extra_roots.iter().chain(to.roots).cloned().collect();
        Self { roots, own: to.certificate.cloned() }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        let own = self.own.iter().flat_map(|own| [&own.certificate, &own.key]);
        self.roots.iter().chain(own)
    }

    fn key(&self) -> String {
        let mark = if self.own.is_some() { "own" } else { "" };
        self.all().fold(mark.to_owned(), |key, path| key + "\n" + &path.to_string_lossy())
    }

    /// Nothing where the files look as they did.
    fn read(&self, before: Option<&[Option<Stamp>]>) -> Result<Option<Read>, TlsError> {
        let stamps: Vec<_> = self.all().map(|path| secret_places::stamp(path)).collect();
        if before == Some(&*stamps) {
            return Ok(None);
        }
        let tls = match &self.own {
            None => ClientTls::new(&self.roots),
            Some(own) => ClientTls::with_certificate(&self.roots, &own.certificate, &own.key),
        };
        Ok(Some((tls?, stamps)))
    }
}

fn problem_of(error: &ConnectError) -> Unreachable {
    match error {
        ConnectError::Resolve { .. } => Unreachable::Unresolved,
        ConnectError::Refused { .. } => Unreachable::Blocked,
        ConnectError::Connect { .. } => Unreachable::Unconnected,
        ConnectError::Tls { .. } => Unreachable::Untrusted,
        ConnectError::TimedOut { .. } => Unreachable::TimedOut,
    }
}
