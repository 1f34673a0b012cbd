//! Connections to the outside: every address of the name, one after the other and overlapping.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use monoio::net::TcpStream;

use super::connection::Connection;
use super::resolver::Resolver;
use super::tls::ClientTls;
use super::{sleep, timeout, tls_session};

/// An address gets this long before the next one is tried beside it (RFC 8305, section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// Where to connect.
#[derive(Debug, Clone, Copy)]
pub struct ConnectTarget<'a> {
    /// A name or an address. With TLS, the certificate must be for it.
    pub host: &'a str,
    /// TCP port.
    pub port: u16,
    /// Speak TLS.
    pub tls: Option<&'a ClientTls>,
}

/// No connection was made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name could not be resolved.
    #[error("cannot resolve {host}: {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// What the system said.
        reason: String,
    },
    /// The name leads to addresses that may not be connected to, all of them.
    #[error("{host} leads to no address that connections are allowed to")]
    Refused {
        /// The name.
        host: String,
    },
    /// No address could be connected to.
    #[error("cannot connect to {host}: {source}")]
    Connect {
        /// The name.
        host: String,
        /// What the last address said.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("no TLS with {host}: {reason}")]
    Tls {
        /// The name.
        host: String,
        /// What was wrong.
        reason: String,
    },
    /// It took too long.
    #[error("no connection to {host} in time")]
    TimedOut {
        /// The name.
        host: String,
    },
}

/// Resolves the host, lets `allowed` judge each address, connects to what is left with a staggered
/// start, and speaks TLS if asked. Connects to exactly the addresses that were judged.
///
/// # Errors
///
/// See [`ConnectError`]; all of it takes at most `within`.
///
/// # Cancel safety
///
/// Dropping it closes whatever was begun.
pub async fn connect(
    resolver: &Resolver,
    target: ConnectTarget<'_>,
    allowed: &dyn Fn(IpAddr) -> bool,
    within: Duration,
) -> Result<Connection, ConnectError> {
    let until = Instant::now() + within;
    let host = || target.host.to_owned();
    let open = async {
        let addresses = resolver.resolve(target.host, target.port).await?;
        // An IPv4 address in IPv6 clothes is judged as what it is.
        let mut addresses: Vec<SocketAddr> = addresses
            .iter()
            .copied()
            .filter(|address| allowed(address.ip().to_canonical()))
            .collect();
        if addresses.is_empty() {
            return Err(ConnectError::Refused { host: host() });
        }
        // The last one is taken first.
        addresses.reverse();
        Attempts::new(addresses)
            .await
            .map_err(|source| ConnectError::Connect { host: host(), source })
    };
    let mut connection = Box::pin(timeout(within, open))
        .await
        .map_err(|_| ConnectError::TimedOut { host: host() })??;
    let Some(tls) = target.tls else { return Ok(connection) };
    let failed = |reason: String| ConnectError::Tls { host: host(), reason };
    let session = tls.session(without_brackets(target.host)).map_err(failed)?;
    let left = until.saturating_duration_since(Instant::now());
    // Boxed, like the attempts: the caller's future holds a pointer while it waits for a server.
    match Box::pin(tls_session::handshake(&mut connection, session, left)).await {
        Ok(()) => Ok(connection),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            Err(ConnectError::TimedOut { host: host() })
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// `[::1]` as an address is written in a URL.
pub(super) fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

type Attempt = Pin<Box<dyn Future<Output = io::Result<Connection>>>>;

/// Connects to several addresses; the first that answers wins, the others are dropped.
struct Attempts {
    /// Not tried yet, the next one last.
    waiting: Vec<SocketAddr>,
    running: Vec<Attempt>,
    next_start: Option<Pin<Box<dyn Future<Output = ()>>>>,
    last_error: Option<io::Error>,
}

impl Attempts {
    fn new(waiting: Vec<SocketAddr>) -> Self {
        Self { waiting, running: Vec::new(), next_start: None, last_error: None }
    }

    /// Starts the next address.
    fn start(&mut self) {
        let Some(address) = self.waiting.pop() else { return };
        self.running.push(Box::pin(connect_to(address)));
        self.next_start = (!self.waiting.is_empty())
            .then(|| Box::pin(sleep(STAGGER)) as Pin<Box<dyn Future<Output = ()>>>);
    }

    fn poll_running(&mut self, context: &mut Context<'_>) -> Option<Connection> {
        let mut index = 0;
        while let Some(attempt) = self.running.get_mut(index) {
            match attempt.as_mut().poll(context) {
                Poll::Pending => index += 1,
                Poll::Ready(Ok(connection)) => return Some(connection),
                Poll::Ready(Err(error)) => {
                    drop(self.running.swap_remove(index));
                    self.last_error = Some(error);
                    // A refusal is an answer: the next one need not wait.
                    self.next_start = None;
                }
            }
        }
        None
    }
}

impl Future for Attempts {
    type Output = io::Result<Connection>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(connection) = self.poll_running(context) {
                return Poll::Ready(Ok(connection));
            }
            let due = match &mut self.next_start {
                Some(timer) => timer.as_mut().poll(context).is_ready(),
                None => true,
            };
            if due && !self.waiting.is_empty() {
                self.start();
                continue;
            }
            if self.running.is_empty() {
                let error = self.last_error.take();
                return Poll::Ready(Err(error.unwrap_or_else(|| io::ErrorKind::NotFound.into())));
            }
            return Poll::Pending;
        }
    }
}

async fn connect_to(address: SocketAddr) -> io::Result<Connection> {
    let stream = TcpStream::connect_addr(address).await?;
    // On epoll a socket may look ready before it is connected; this tells.
    stream.peer_addr()?;
    stream.set_nodelay(true)?;
    Ok(Connection::tcp(stream, address))
}
