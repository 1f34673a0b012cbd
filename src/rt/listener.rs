//! Listening sockets: bound on the main thread, served by the cores.
//!
//! Sockets are accepted without blocking once the listener is readable. An accept is thus never in
//! flight, and none can be dropped with a socket in it.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::connection::Connection;
use super::notify::{Notify, Stop};
use super::time::Either;
use super::tls::ServerTls;
use super::{oneshot, race, raw, sleep, spawn, tls_session};

/// Sockets accepted in one go before other tasks get their turn.
const BATCH: usize = 16;
/// Sockets taken out of the queue when the listener stops.
const BATCH_AT_STOP: usize = 1024;
/// How often the log is told that clients cannot be accepted, however often it happens.
const EXHAUSTED_SAID_EVERY: Duration = Duration::from_mins(1);
/// Pause when the process or the system has no descriptor or memory left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// A client gets this long for its TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// TLS handshakes that run at once on one listener. Further clients wait in the kernel's queue: a
/// handshake comes before whatever the handler counts, so nothing else would bound it.
const HANDSHAKES_MAX: usize = 512;

/// Where a listener listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP port; with port 0 the system chooses one.
    Tcp(SocketAddr),
    /// The path of a socket file.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => address.fmt(formatter),
            ListenAddress::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// A socket that listens. Made on any thread, served on one core.
#[derive(Debug)]
pub struct BoundListener {
    socket: ListeningSocket,
    address: ListenAddress,
}

#[derive(Debug)]
enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// How often, and how long apart, a port is tried that another process seems to have.
const FREE_TRIES: u32 = 20;
const FREE_PAUSE: Duration = Duration::from_millis(50);

impl BoundListener {
    /// Binds and listens. TCP ports may be bound once by each core; the kernel spreads the clients.
    /// A Unix socket has mode 0600 and takes the place of a socket file that nobody serves.
    ///
    /// # Errors
    ///
    /// Name the address; `AddrInUse` when another process has it.
    pub fn bind(address: &ListenAddress, backlog: u32) -> io::Result<Self> {
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        let bound = match address {
            ListenAddress::Tcp(address) => bind_tcp(*address, backlog),
            ListenAddress::Unix(path) => bind_unix(path, backlog),
        };
        bound.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
        })
    }

    /// Makes sure that no other process listens on `address`. [`Self::bind`] alone would not notice:
    /// ports that are shared between cores can be shared between processes too. Waits a moment for
    /// a process that was just killed, whose port outlives it by some milliseconds. Blocks.
    ///
    /// # Errors
    ///
    /// `AddrInUse`, or whatever keeps this process from the address; both name it.
    pub fn check_free(address: SocketAddr) -> io::Result<()> {
        let mut last = Ok(());
        for _ in 0..FREE_TRIES {
            last = try_alone(address);
            match &last {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    std::thread::park_timeout(FREE_PAUSE);
                }
                _ => break,
            }
        }
        last.map_err(|error| {
            let kind = error.kind();
            let text = match kind {
                io::ErrorKind::AddrInUse => format!(
                    "cannot listen on {address}: another process does; stop it or choose another \
                     port"
                ),
                _ => format!("cannot listen on {address}: {error}"),
            };
            io::Error::new(kind, text)
        })
    }

    /// The sockets that the service manager passed to this process, with their names. They can be
    /// taken once; a second call finds none.
    ///
    /// # Errors
    ///
    /// When the environment is malformed or a descriptor is not a listening socket.
    pub fn inherited() -> io::Result<Vec<(String, Self)>> {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Ok(Vec::new());
        }
        sd_notify::listen_fds_with_names()?
            .map(|(descriptor, name)| {
                let descriptor = raw::own_inherited(descriptor)?;
                let listener = Self::adopt(descriptor).map_err(|error| {
                    io::Error::new(error.kind(), format!("inherited socket {name}: {error}"))
                })?;
                Ok((name, listener))
            })
            .collect()
    }

    /// Takes a descriptor that listens already.
    pub(super) fn adopt(descriptor: OwnedFd) -> io::Result<Self> {
        let socket = Socket::from(descriptor);
        if !socket.is_listener()? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it does not listen"));
        }
        // On epoll a blocking accept would hold the core.
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        if let Some(address) = address.as_socket() {
            let socket = ListeningSocket::Tcp(socket.into());
            return Ok(Self { socket, address: ListenAddress::Tcp(address) });
        }
        if !address.is_unix() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither TCP nor Unix"));
        }
        let path = address.as_pathname().map(Path::to_path_buf).unwrap_or_default();
        let socket = ListeningSocket::Unix(OwnedFd::from(socket).into());
        Ok(Self { socket, address: ListenAddress::Unix(path) })
    }

    /// Another handle of the same socket, for another core: both take from one queue of clients.
    ///
    /// # Errors
    ///
    /// When no descriptor is left.
    pub fn duplicate(&self) -> io::Result<Self> {
        let socket = match &self.socket {
            ListeningSocket::Tcp(socket) => ListeningSocket::Tcp(socket.try_clone()?),
            ListeningSocket::Unix(socket) => ListeningSocket::Unix(socket.try_clone()?),
        };
        Ok(Self { socket, address: self.address.clone() })
    }

    /// Where it listens; a port that the system chose is filled in.
    pub fn local_address(&self) -> ListenAddress {
        self.address.clone()
    }

    /// Serves clients until `stop`: each gets a task of its own with `handler`. With TLS, the
    /// handshake runs in that task, for at most ten seconds; a client over the limit of handshakes
    /// is not accepted until one of them has ended.
    ///
    /// # Errors
    ///
    /// When the listener itself is of no use. A client that went away again, or a lack of
    /// descriptors, is no error: the latter pauses it for a moment.
    ///
    /// # Cancel safety
    ///
    /// Dropping it stops listening; clients that were accepted are served on.
    pub async fn serve<H, F>(self, tls: Option<ServerTls>, stop: Stop, handler: H) -> io::Result<()>
    where
        H: Fn(Connection) -> F + Clone + 'static,
        F: Future<Output = ()> + 'static,
    {
        self.serve_within(HANDSHAKES_MAX, tls, stop, handler).await
    }

    /// As [`serve`](Self::serve), with at most `handshakes_max` handshakes at once, where that is
    /// less than a listener has anyway.
    ///
    /// # Errors
    ///
    /// Those of [`serve`](Self::serve).
    ///
    /// # Cancel safety
    ///
    /// That of [`serve`](Self::serve).
    pub async fn serve_within<H, F>(
        self,
        handshakes_max: usize,
        tls: Option<ServerTls>,
        stop: Stop,
        handler: H,
    ) -> io::Result<()>
    where
        H: Fn(Connection) -> F + Clone + 'static,
        F: Future<Output = ()> + 'static,
    {
        let mut said: Option<Instant> = None;
        let acceptor = Acceptor::new(self.socket)?;
        let handshakes = Rc::new(Handshakes::new(handshakes_max.min(HANDSHAKES_MAX)));
        let mut stopping = false;
        loop {
            if handshakes.is_full() && !stop.is_stopped() {
                race(stop.stopped(), handshakes.ended.notified()).await;
                continue;
            }
            if !stopping {
                match race(stop.stopped(), acceptor.readable()).await {
                    Either::Left(()) => {}
                    Either::Right(outcome) => outcome?,
                }
            }
            // Clients that wait already would be reset by the end of the listener: those are served
            // too, the handler says goodbye to them.
            stopping = stop.is_stopped();
            let batch = if stopping { BATCH_AT_STOP } else { BATCH };
            let mut is_queue_empty = false;
            for _ in 0..batch {
                if handshakes.is_full() {
                    break;
                }
                match acceptor.accept() {
                    Ok(connection) => match &tls {
                        None => start(connection, handler.clone()),
                        Some(tls) => {
                            let running = handshakes.begin();
                            start_tls(connection, tls.clone(), running, handler.clone());
                        }
                    },
                    Err(error) => match judge(&error) {
                        Verdict::Nobody => {
                            is_queue_empty = true;
                            break;
                        }
                        Verdict::Client => {}
                        Verdict::Exhausted => {
                            if said.is_none_or(|said| said.elapsed() >= EXHAUSTED_SAID_EVERY) {
                                said = Some(Instant::now());
                                tracing::warn!(%error, "no client can be accepted for now");
                            }
                            race(stop.stopped(), sleep(EXHAUSTED_PAUSE)).await;
                            break;
                        }
                        Verdict::Listener => return Err(error),
                    },
                }
            }
            if stopping {
                return Ok(());
            }
            // Where more clients wait the listener is readable at once: those that were accepted get
            // their turn first, or all of the queue would hold descriptors before any is looked at.
            if !is_queue_empty {
                others_first().await;
            }
        }
    }
}

/// Lets the tasks of this core run that wait for their turn. One that wakes itself would be the next
/// to run: so another one, behind all of them, does it.
async fn others_first() {
    let (turn, came) = oneshot();
    spawn(async move {
        let _ = turn.send(());
    });
    let _ = came.await;
}

fn start<H, F>(connection: Connection, handler: H)
where
    H: Fn(Connection) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    // Called in the task, so that a panic of the handler itself is contained there.
    spawn(async move { handler(connection).await });
}

fn start_tls<H, F>(mut connection: Connection, tls: ServerTls, running: Handshake, handler: H)
where
    H: Fn(Connection) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    spawn(async move {
        let session = match tls.session() {
            Ok(session) => session,
            Err(error) => {
                tracing::error!(%error, "no TLS session could be made");
                return;
            }
        };
        // Boxed, so that its size is not part of the task for the life of the connection.
        let handshake = tls_session::handshake(&mut connection, session, HANDSHAKE_WITHIN);
        let outcome = Box::pin(handshake).await;
        drop(running);
        match outcome {
            Ok(()) => handler(connection).await,
            Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
        }
    });
}

/// The TLS handshakes that one listener has running.
#[derive(Debug)]
struct Handshakes {
    running: Cell<usize>,
    running_max: usize,
    ended: Notify,
}

/// One of them, until dropped.
#[derive(Debug)]
struct Handshake(Rc<Handshakes>);

impl Handshakes {
    fn new(running_max: usize) -> Self {
        Self { running: Cell::new(0), running_max, ended: Notify::new() }
    }

    fn is_full(&self) -> bool {
        self.running.get() >= self.running_max
    }

    fn begin(self: &Rc<Self>) -> Handshake {
        self.running.set(self.running.get() + 1);
        Handshake(Rc::clone(self))
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
        self.0.ended.notify();
    }
}

/// A listening socket on its core: the runtime says when it is readable, the system call accepts.
enum Acceptor {
    Tcp { ready: monoio::net::TcpListener, socket: TcpListener },
    Unix { ready: monoio::net::UnixListener, socket: UnixListener },
}

impl Acceptor {
    fn new(socket: ListeningSocket) -> io::Result<Self> {
        Ok(match socket {
            ListeningSocket::Tcp(socket) => {
                let ready = monoio::net::TcpListener::from_std(socket.try_clone()?)?;
                Acceptor::Tcp { ready, socket }
            }
            ListeningSocket::Unix(socket) => {
                let ready = monoio::net::UnixListener::from_std(socket.try_clone()?)?;
                Acceptor::Unix { ready, socket }
            }
        })
    }

    async fn readable(&self) -> io::Result<()> {
        match self {
            Acceptor::Tcp { ready, .. } => ready.readable(false).await,
            Acceptor::Unix { ready, .. } => ready.readable(false).await,
        }
    }

    fn accept(&self) -> io::Result<Connection> {
        match self {
            Acceptor::Tcp { socket, .. } => {
                let (stream, peer) = socket.accept()?;
                prepare_tcp(&stream)?;
                Ok(Connection::tcp(monoio::net::TcpStream::from_std(stream)?, peer))
            }
            Acceptor::Unix { socket, .. } => {
                let (stream, _) = socket.accept()?;
                prepare_unix(&stream)?;
                Ok(Connection::unix(monoio::net::UnixStream::from_std(stream)?))
            }
        }
    }
}

fn prepare_tcp(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if monoio::utils::is_legacy() { stream.set_nonblocking(true) } else { Ok(()) }
}

fn prepare_unix(stream: &UnixStream) -> io::Result<()> {
    if monoio::utils::is_legacy() { stream.set_nonblocking(true) } else { Ok(()) }
}

/// Whom a failed accept is about.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Nobody waits.
    Nobody,
    /// The client, which is gone: the next one, please.
    Client,
    /// The process or the system has run out of something.
    Exhausted,
    /// The listener.
    Listener,
}

fn judge(error: &io::Error) -> Verdict {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Verdict::Nobody,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => Verdict::Exhausted,
        Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EOPNOTSUPP) => Verdict::Listener,
        // accept(2): errors pending on the new socket are passed on; treat them like EAGAIN and
        // try again. EINVAL is what setting an option on a socket that was reset says.
        _ => Verdict::Client,
    }
}

/// Binds without sharing, and lets go again.
fn try_alone(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address))
}

fn bind_tcp(address: SocketAddr, backlog: i32) -> io::Result<BoundListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(backlog)?;
    let socket = TcpListener::from(socket);
    let address = ListenAddress::Tcp(socket.local_addr()?);
    Ok(BoundListener { socket: ListeningSocket::Tcp(socket), address })
}

/// The socket is made under another name and moved into place once its mode is right: nobody can
/// connect in between, and a dead socket file is replaced in one step.
fn bind_unix(path: &Path, backlog: i32) -> io::Result<BoundListener> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is another file"));
        }
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        },
    }
    let mut made = path.as_os_str().to_owned();
    made.push(".new");
    let made = PathBuf::from(made);
    match std::fs::remove_file(&made) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(&made)?)?;
    let placed = std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| socket.listen(backlog))
        .and_then(|()| std::fs::rename(&made, path));
    if let Err(error) = placed {
        drop(std::fs::remove_file(&made));
        return Err(error);
    }
    let socket = ListeningSocket::Unix(OwnedFd::from(socket).into());
    Ok(BoundListener { socket, address: ListenAddress::Unix(path.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_errors_are_told_apart() {
        let judged = |code| judge(&io::Error::from_raw_os_error(code));
        assert_eq!(judged(libc::EAGAIN), Verdict::Nobody);
        assert_eq!(judged(libc::ECONNABORTED), Verdict::Client);
        assert_eq!(judged(libc::EINTR), Verdict::Client);
        assert_eq!(judged(libc::EMFILE), Verdict::Exhausted);
        assert_eq!(judged(libc::ENFILE), Verdict::Exhausted);
        assert_eq!(judged(libc::EBADF), Verdict::Listener);
    }
}
