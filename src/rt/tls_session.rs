//! One TLS session between its two halves: bytes in, bytes out. It owns no socket, so a read or a
//! write that is dropped leaves it whole.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, BufRead, Write};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::connection::{Connection, Reader};
use super::deadline::Deadline;
use super::timeout;

/// Plaintext encrypted in one go, about what one write should carry.
const PIECE_BYTES: usize = 64 * 1024;

pub(super) struct TlsSession {
    session: rustls::Connection,
    /// Plaintext that came along with the end of the handshake.
    early: Vec<u8>,
    ended: bool,
}

impl TlsSession {
    fn new(session: rustls::Connection) -> Self {
        Self { session, early: Vec::new(), ended: false }
    }

    /// The peer has said goodbye.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Moves what was decrypted to `buf`.
    pub(super) fn take_plaintext(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        let mut count = self.early.len();
        if count > 0 {
            buf.append(&mut self.early);
            self.early = Vec::new();
        }
        let mut reader = self.session.reader();
        loop {
            match reader.fill_buf() {
                Ok([]) => {
                    self.ended = true;
                    return Ok(count);
                }
                Ok(chunk) => {
                    let length = chunk.len();
                    buf.extend_from_slice(chunk);
                    reader.consume(length);
                    count += length;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }

    /// Decrypts what was received and appends it to `buf`.
    pub(super) fn open(&mut self, mut sealed: &[u8], buf: &mut Vec<u8>) -> io::Result<usize> {
        let mut count = 0;
        while !sealed.is_empty() {
            // It takes a limited piece each time, and nothing at all after a goodbye.
            if self.session.read_tls(&mut sealed)? == 0 {
                break;
            }
            self.session
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            count += self.take_plaintext(buf)?;
        }
        Ok(count)
    }

    /// Encrypts the first piece of `plaintext` to `out` and returns the rest.
    pub(super) fn seal<'a>(
        &mut self,
        plaintext: &'a [u8],
        out: &mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        let (piece, _) = plaintext.split_at(plaintext.len().min(PIECE_BYTES));
        // A session that failed refuses all writes, but may still have an alert to send.
        let taken = if piece.is_empty() { 0 } else { self.session.writer().write(piece)? };
        while self.session.wants_write() {
            self.session.write_tls(out)?;
        }
        if taken == 0 && !piece.is_empty() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(plaintext.get(taken..).unwrap_or_default())
    }

    pub(super) fn say_goodbye(&mut self) {
        self.session.send_close_notify();
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsSession").field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// Makes the connection speak TLS.
///
/// # Errors
///
/// `TimedOut` after `within`, else what the socket or the protocol says.
///
/// # Cancel safety
///
/// Dropping the future leaves a connection of no use.
pub(super) async fn handshake(
    connection: &mut Connection,
    session: impl Into<rustls::Connection>,
    within: Duration,
) -> io::Result<()> {
    let session = Rc::new(RefCell::new(TlsSession::new(session.into())));
    connection.encrypt(Rc::clone(&session));
    let deadline = Deadline::new();
    let work = async {
        loop {
            connection.writer.write_sealed(&[], &deadline, within).await?;
            if !session.borrow().session.is_handshaking() {
                return Ok(());
            }
            let absorbed = poll_fn(|context| connection.reader.poll_absorb(context, &deadline));
            if let Err(error) = absorbed.await {
                // The peer is told why, if it still listens.
                let _ = connection.writer.write_sealed(&[], &deadline, within).await;
                return Err(error);
            }
        }
    };
    timeout(within, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

impl Reader {
    /// Receives for the handshake.
    fn poll_absorb(
        &mut self,
        context: &mut Context<'_>,
        deadline: &Deadline,
    ) -> Poll<io::Result<()>> {
        let Poll::Ready(received) = self.poll_sealed(context, deadline)? else {
            return Poll::Pending;
        };
        if received == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let Some(session) = self.session() else { return Poll::Ready(Ok(())) };
        let mut session = session.borrow_mut();
        let mut early = std::mem::take(&mut session.early);
        let outcome = session.open(self.sealed(), &mut early);
        session.early = early;
        drop(session);
        self.clear_sealed();
        Poll::Ready(outcome.map(drop))
    }
}
