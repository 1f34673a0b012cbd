//! A connection: a reader and a writer, the same for TCP, Unix sockets and TLS.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use monoio::buf::IoBuf;
use monoio::io::{AsyncReadRent, AsyncWriteRent, OwnedWriteHalf, Splitable};
use monoio::net::{TcpStream, UnixStream};

use super::deadline::Deadline;
use super::tls_session::TlsSession;
use super::{raw, tasks};

/// Size of the first read buffer, and of every further one unless reads come back full.
const READ_BYTES: usize = 4096;
/// Largest read buffer: where reads come back full, they double up to this.
const READ_BYTES_MAX: usize = 64 * 1024;
/// Reads that may find their bytes at once before other tasks get their turn. Only epoll has
/// such reads; on `io_uring` each waits for its completion.
const READY_IN_A_ROW_MAX: u8 = 32;
/// How long a TLS connection may take to say goodbye.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Both halves of a connection, and who is at the other end.
#[derive(Debug)]
pub struct Connection {
    /// Receives.
    pub reader: Reader,
    /// Sends.
    pub writer: Writer,
    /// The other end.
    pub peer: Peer,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A host.
    Ip(SocketAddr),
    /// A process on this machine.
    Unix {
        /// The user it runs as, where the system tells.
        user: Option<u32>,
    },
}

impl Connection {
    pub(super) fn tcp(stream: TcpStream, peer: SocketAddr) -> Self {
        let descriptor = stream.as_raw_fd();
        let (read, write) = stream.into_split();
        let half = WriteHalf::Tcp { half: write, descriptor };
        // An IPv4 client of a listener on `::` is named as what it is.
        let peer = Peer::Ip(SocketAddr::new(peer.ip().to_canonical(), peer.port()));
        Self { reader: Reader::new(read), writer: Writer::new(half), peer }
    }

    pub(super) fn unix(stream: UnixStream) -> Self {
        let user = stream.peer_cred().ok().map(|peer| peer.uid());
        let (read, write) = stream.into_split();
        let half = WriteHalf::Unix(write);
        Self { reader: Reader::new(read), writer: Writer::new(half), peer: Peer::Unix { user } }
    }

    /// From here on both halves speak through `session`.
    pub(super) fn encrypt(&mut self, session: Rc<RefCell<TlsSession>>) {
        self.reader.session = Some(Rc::clone(&session));
        self.writer.session = Some(session);
    }
}

/// The receiving half. An operation in flight stays in here when a call is dropped.
pub struct Reader {
    socket: SocketReader,
    session: Option<Rc<RefCell<TlsSession>>>,
    /// Received and not yet decrypted; empty without TLS.
    sealed: Vec<u8>,
}

impl Reader {
    fn new<H: AsyncReadRent + 'static>(half: H) -> Self {
        Self { socket: SocketReader::new(half), session: None, sealed: Vec::new() }
    }

    /// Appends what arrives, at least one byte, to `buf`. `Ok(0)` is the end of the stream: the
    /// peer will send nothing more, and may still receive.
    ///
    /// An empty `buf` with room is read into directly; otherwise the bytes go through a buffer of
    /// the reader.
    ///
    /// # Errors
    ///
    /// `TimedOut` when `deadline` expires first, and the reader can go on after it; `UnexpectedEof`
    /// when a TLS stream ends without a goodbye; `InvalidData` when it breaks the TLS protocol.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the operation stays in the reader and the next call goes
    /// on with it.
    pub async fn read(&mut self, buf: &mut Vec<u8>, deadline: &Deadline) -> io::Result<usize> {
        poll_fn(|context| self.poll_read(context, buf, deadline)).await
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buf: &mut Vec<u8>,
        deadline: &Deadline,
    ) -> Poll<io::Result<usize>> {
        let Some(session) = &self.session else {
            return self.socket.poll_read(context, buf, deadline);
        };
        let mut session = session.borrow_mut();
        let mut count = session.take_plaintext(buf)?;
        while count == 0 {
            if session.is_ended() {
                return Poll::Ready(Ok(0));
            }
            let Poll::Ready(received) =
                self.socket.poll_read(context, &mut self.sealed, deadline)?
            else {
                return Poll::Pending;
            };
            if received == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            let outcome = session.open(&self.sealed, buf);
            self.sealed.clear();
            count = outcome?;
        }
        Poll::Ready(Ok(count))
    }

    /// Receives bytes as they come from the socket, for the handshake.
    pub(super) fn poll_sealed(
        &mut self,
        context: &mut Context<'_>,
        deadline: &Deadline,
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_read(context, &mut self.sealed, deadline)
    }

    /// Size of the future that reads.
    #[cfg(test)]
    pub(super) fn pump_bytes(&self) -> usize {
        size_of_val(&*self.socket.pump)
    }

    pub(super) fn session(&self) -> Option<Rc<RefCell<TlsSession>>> {
        self.session.clone()
    }

    pub(super) fn sealed(&self) -> &[u8] {
        &self.sealed
    }

    pub(super) fn clear_sealed(&mut self) {
        self.sealed.clear();
    }

    /// Size of the reader's buffer from the next operation on: 4096 by default, 64 for a stream
    /// that only watches for the end of its client. Reads that come back full make it larger for a
    /// while.
    pub fn set_read_size(&mut self, bytes: usize) {
        self.socket.size = bytes.clamp(1, READ_BYTES_MAX);
        self.socket.size_now = self.socket.size;
        if self.socket.spare.capacity() > self.socket.size {
            self.socket.spare = Vec::new();
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Reader")
            .field("in_flight", &self.socket.in_flight)
            .field("tls", &self.session.is_some())
            .finish_non_exhaustive()
    }
}

/// Reads of one socket. The future that owns the socket's half is made once and asked for one read
/// after the other through `exchange`, so a read allocates nothing.
struct SocketReader {
    pump: Pin<Box<dyn Future<Output = ()>>>,
    exchange: Rc<Exchange>,
    in_flight: bool,
    ready_in_a_row: u8,
    size: usize,
    size_now: usize,
    spare: Vec<u8>,
}

#[derive(Default)]
struct Exchange {
    /// A buffer to read into.
    request: Cell<Option<Vec<u8>>>,
    /// The outcome, with the buffer.
    outcome: Cell<Option<(io::Result<usize>, Vec<u8>)>>,
}

async fn pump<H: AsyncReadRent>(mut half: H, exchange: Rc<Exchange>) {
    loop {
        let request = poll_fn(|_| exchange.request.take().map_or(Poll::Pending, Poll::Ready)).await;
        let outcome = half.read(request).await;
        exchange.outcome.set(Some(outcome));
    }
}

impl SocketReader {
    fn new<H: AsyncReadRent + 'static>(half: H) -> Self {
        let exchange = Rc::new(Exchange::default());
        Self {
            pump: Box::pin(pump(half, Rc::clone(&exchange))),
            exchange,
            in_flight: false,
            ready_in_a_row: 0,
            size: READ_BYTES,
            size_now: READ_BYTES,
            spare: Vec::new(),
        }
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buf: &mut Vec<u8>,
        deadline: &Deadline,
    ) -> Poll<io::Result<usize>> {
        if self.ready_in_a_row >= READY_IN_A_ROW_MAX {
            self.ready_in_a_row = 0;
            tasks::after_the_others(context);
            return Poll::Pending;
        }
        loop {
            if !self.in_flight {
                let buffer = self.choose_buffer(buf);
                self.exchange.request.set(Some(buffer));
                self.in_flight = true;
            }
            // Never ready: it waits for the next request after each outcome.
            let _ = self.pump.as_mut().poll(context);
            let Some((outcome, received)) = self.exchange.outcome.take() else {
                self.ready_in_a_row = 0;
                return deadline
                    .poll_expired(context)
                    .map(|()| Err(io::ErrorKind::TimedOut.into()));
            };
            self.in_flight = false;
            self.ready_in_a_row = self.ready_in_a_row.saturating_add(1);
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.spare = received,
                Err(error) => return Poll::Ready(Err(error)),
                Ok(count) => {
                    self.hand_over(received, count, buf);
                    return Poll::Ready(Ok(count));
                }
            }
        }
    }

    /// The caller's buffer when it is empty and large enough, else the spare one, else a new one.
    fn choose_buffer(&mut self, buf: &mut Vec<u8>) -> Vec<u8> {
        let spare = std::mem::take(&mut self.spare);
        if buf.is_empty() && buf.capacity() >= self.size_now {
            return std::mem::take(buf);
        }
        if spare.capacity() >= self.size_now {
            return spare;
        }
        Vec::with_capacity(self.size_now)
    }

    fn hand_over(&mut self, mut received: Vec<u8>, count: usize, buf: &mut Vec<u8>) {
        received.truncate(count);
        if count == received.capacity() {
            self.size_now = (self.size_now * 2).min(READ_BYTES_MAX);
        } else if count < self.size_now / 2 {
            self.size_now = self.size;
        }
        if buf.is_empty() {
            self.spare = std::mem::replace(buf, received);
        } else {
            buf.extend_from_slice(&received);
            self.spare = received;
        }
        self.spare.clear();
    }
}

enum WriteHalf {
    Tcp { half: OwnedWriteHalf<TcpStream>, descriptor: RawFd },
    Unix(OwnedWriteHalf<UnixStream>),
}

/// The sending half. Dropping it ends the stream in its direction.
pub struct Writer {
    half: WriteHalf,
    session: Option<Rc<RefCell<TlsSession>>>,
    /// Encrypted bytes on their way; empty without TLS.
    sealed: Vec<u8>,
    broken: bool,
}

impl Writer {
    fn new(half: WriteHalf) -> Self {
        Self { half, session: None, sealed: Vec::new(), broken: false }
    }

    /// Sends all of `buf`, and gives it back empty for reuse.
    ///
    /// # Errors
    ///
    /// `TimedOut` when `within` passes and nothing moved; the buffer that comes back is then a new
    /// one. After any error, and after a call that was dropped, the writer is broken: it fails with
    /// `BrokenPipe`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future breaks the writer: nobody knows how much was sent.
    pub async fn write_all(
        &mut self,
        buf: Vec<u8>,
        deadline: &Deadline,
        within: Duration,
    ) -> (io::Result<()>, Vec<u8>) {
        if self.session.is_some() {
            let outcome = self.write_sealed(&buf, deadline, within).await;
            return (outcome, cleared(buf));
        }
        match self.write_socket(buf, deadline, within).await {
            Ok(buf) => (Ok(()), cleared(buf)),
            Err(error) => (Err(error), Vec::new()),
        }
    }

    /// Sends all of a frame that others send too.
    ///
    /// # Errors
    ///
    /// As [`write_all`](Self::write_all).
    ///
    /// # Cancel safety
    ///
    /// As [`write_all`](Self::write_all).
    pub async fn write_shared(
        &mut self,
        frame: Arc<Vec<u8>>,
        deadline: &Deadline,
        within: Duration,
    ) -> io::Result<()> {
        if self.session.is_some() {
            return self.write_sealed(&frame, deadline, within).await;
        }
        self.write_socket(frame, deadline, within).await.map(drop)
    }

    /// Says goodbye (TLS) and ends the stream in this direction.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future breaks the writer.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        if let Some(session) = self.session.as_ref().filter(|_| !self.broken) {
            session.borrow_mut().say_goodbye();
            let deadline = Deadline::new();
            self.write_sealed(&[], &deadline, CLOSE_WITHIN).await?;
        }
        self.broken = true;
        match &mut self.half {
            WriteHalf::Tcp { half, .. } => half.shutdown().await,
            WriteHalf::Unix(half) => half.shutdown().await,
        }
    }

    /// Bytes that were sent and that the peer's kernel has not acknowledged: what does not shrink
    /// over time says that nobody is there. Always 0 on a Unix socket.
    pub fn unacknowledged_bytes(&self) -> io::Result<usize> {
        match &self.half {
            WriteHalf::Tcp { descriptor, .. } => raw::unacknowledged_bytes(*descriptor),
            WriteHalf::Unix(_) => Ok(0),
        }
    }

    /// Encrypts and sends, a piece at a time; with nothing to encrypt, what the session has to say.
    pub(super) async fn write_sealed(
        &mut self,
        mut plaintext: &[u8],
        deadline: &Deadline,
        within: Duration,
    ) -> io::Result<()> {
        loop {
            let mut sealed = std::mem::take(&mut self.sealed);
            if let Some(session) = &self.session {
                plaintext = session.borrow_mut().seal(plaintext, &mut sealed)?;
            }
            if !sealed.is_empty() {
                sealed = cleared(self.write_socket(sealed, deadline, within).await?);
            }
            self.sealed = sealed;
            if plaintext.is_empty() {
                return Ok(());
            }
        }
    }

    async fn write_socket<B: IoBuf>(
        &mut self,
        buf: B,
        deadline: &Deadline,
        within: Duration,
    ) -> io::Result<B> {
        if self.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.broken = true;
        let armed = Armed(deadline);
        let outcome = match &mut self.half {
            WriteHalf::Tcp { half, .. } => write_to_end(half, buf, deadline, within).await,
            WriteHalf::Unix(half) => write_to_end(half, buf, deadline, within).await,
        };
        drop(armed);
        self.broken = outcome.is_err();
        outcome
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Writer")
            .field("broken", &self.broken)
            .field("tls", &self.session.is_some())
            .finish_non_exhaustive()
    }
}

/// Takes the deadline back however a write ends: who shares it must not inherit it.
struct Armed<'a>(&'a Deadline);

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

fn cleared(mut buf: Vec<u8>) -> Vec<u8> {
    buf.clear();
    buf
}

async fn write_to_end<H: AsyncWriteRent, B: IoBuf>(
    half: &mut H,
    mut buf: B,
    deadline: &Deadline,
    within: Duration,
) -> io::Result<B> {
    let total = buf.bytes_init();
    let mut sent = 0;
    while sent < total {
        deadline.set(within);
        let (outcome, slice) = {
            let mut write = pin!(half.write(buf.slice(sent..total)));
            poll_fn(|context| match write.as_mut().poll(context) {
                Poll::Ready(done) => Poll::Ready(Ok(done)),
                Poll::Pending => deadline.poll_expired(context).map(Err),
            })
            .await
            // The kernel may still hold the buffer: it is freed when it lets go.
            .map_err(|()| io::Error::from(io::ErrorKind::TimedOut))?
        };
        buf = slice.into_inner();
        match outcome {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buf)
}
