//! One request and its answer over one connection.
//!
//! The common case is one write and one read. Everything is under a time limit: the request and the
//! head of the answer share one, the whole call has another.

use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use crate::http::{HttpError, Method, ResponseProgress, ResponseReader};
use crate::rt::{Either, race};

use super::error::Awaited;
use super::pool::Line;

/// A request up to this size goes into the empty send buffer of an idle socket whole or not at all,
/// so when writing it fails, none of it has left.
const SINGLE_SEND_BYTES_MAX: usize = 4096;
/// A request beyond this size may be answered before it is all sent.
const WATCHED_REQUEST_BYTES: usize = 16 * 1024;

/// The time one call has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) started: Instant,
    pub(crate) connect: Duration,
    pub(crate) headers: Duration,
    pub(crate) total: Duration,
}

impl Budget {
    /// What is left of the whole.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.total.saturating_sub(now.saturating_duration_since(self.started))
    }

    /// The limit that ends a wait for `awaited`, for the message.
    pub(crate) fn limit_of(&self, awaited: Awaited) -> Duration {
        match awaited {
            Awaited::Request | Awaited::Head => self.headers.min(self.total),
            Awaited::Body | Awaited::Work => self.total,
        }
    }
}

/// An exchange that brought no answer. Its connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    TimedOut(Awaited),
    /// The API closed the connection. `is_unsent`: before anything of the request left.
    Closed {
        answering: bool,
        is_unsent: bool,
    },
    Http(HttpError),
}

/// Sends `line.request` and reads the answer into `line.answers`. Whether the connection may be
/// used again.
///
/// # Cancel safety
/// Dropping the future leaves the line in the middle of an exchange: it must be dropped too, which
/// closes the socket and so tells the API at once.
pub(crate) async fn exchange(
    line: &mut Line,
    method: Method,
    budget: &Budget,
) -> Result<bool, Broken> {
    let is_sent = send(line, method, budget).await?;
    receive(line, budget).await?;
    // Some servers send a body after the head that HEAD asks for (RFC 9110 section 9.3.2 forbids
    // it). It may come after the connection was found quiet, and would answer the next call.
    Ok(is_sent && method != Method::Head && line.answers.keep_alive())
}

/// Sends `line.request` and waits for the head of the answer; the body is left where it is, for
/// [`finish`] or [`take`]. Whether all of the request was sent: else the connection must not be used
/// again.
///
/// # Cancel safety
/// As of [`exchange`].
pub(crate) async fn begin(
    line: &mut Line,
    method: Method,
    budget: &Budget,
) -> Result<bool, Broken> {
    let is_sent = send(line, method, budget).await?;
    let Line { connection, answers, deadline, .. } = line;
    while !answers.poll_head().map_err(Broken::Http)? {
        match connection.reader.read(answers.buffer(), deadline).await {
            Ok(0) => return Err(closed(answers, None)),
            Ok(_) => {}
            Err(error) => return Err(failed_read(answers, &error)),
        }
    }
    Ok(is_sent)
}

/// Reads the whole body of an answer whose head is there, which may be silent for so long. Whether
/// the connection may be used again.
///
/// # Cancel safety
/// As of [`exchange`].
pub(crate) async fn finish(line: &mut Line, silent: Option<Duration>) -> Result<bool, Broken> {
    let Line { connection, answers, deadline, .. } = line;
    loop {
        if answers.poll().map_err(Broken::Http)? == ResponseProgress::Ready {
            return Ok(answers.keep_alive());
        }
        match silent {
            Some(silent) => deadline.set(silent),
            None => deadline.clear(),
        }
        match connection.reader.read(answers.buffer(), deadline).await {
            Ok(0) => {
                return match answers.end_of_stream() {
                    Ok(_) => Ok(false),
                    Err(error) => Err(closed(answers, Some(error))),
                };
            }
            Ok(_) => {}
            Err(error) => return Err(failed_read(answers, &error)),
        }
    }
}

/// Appends what comes next of the body to `out`; whether there may be more. What has been taken is
/// not kept, so a body may be of any length.
///
/// # Cancel safety
/// Dropping the future loses nothing: the next call goes on with it.
pub(crate) async fn take(line: &mut Line, out: &mut Vec<u8>) -> Result<bool, Broken> {
    let Line { connection, answers, deadline, .. } = line;
    loop {
        let before = out.len();
        if answers.take_body(out).map_err(Broken::Http)? == ResponseProgress::Ready {
            return Ok(false);
        }
        if out.len() > before {
            return Ok(true);
        }
        match connection.reader.read(answers.buffer(), deadline).await {
            Ok(0) => {
                return match answers.end_of_taken() {
                    Ok(()) => Ok(false),
                    Err(error) => Err(closed(answers, Some(error))),
                };
            }
            Ok(_) => {}
            Err(error) => return Err(failed_read(answers, &error)),
        }
    }
}

/// Sends `line.request`, from when on the head of the answer is waited for. Whether all of it was
/// sent.
async fn send(line: &mut Line, method: Method, budget: &Budget) -> Result<bool, Broken> {
    line.answers.expect(method);
    let head_limit = budget.headers.min(budget.left(Instant::now()));
    line.deadline.set(head_limit);
    if line.request.len() > WATCHED_REQUEST_BYTES {
        send_watching(line, head_limit).await
    } else {
        send_at_once(line, head_limit).await
    }
}

/// Whether all of the request was sent.
async fn send_at_once(line: &mut Line, within: Duration) -> Result<bool, Broken> {
    let request = std::mem::take(&mut line.request);
    let is_single_send = request.len() <= SINGLE_SEND_BYTES_MAX;
    let writer = &mut line.connection.writer;
    let (sent, mut request) = writer.write_all(request, &line.sending, within).await;
    request.clear();
    line.request = request;
    match sent {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            Err(Broken::TimedOut(Awaited::Request))
        }
        Err(_) if is_single_send => Err(Broken::Closed { answering: false, is_unsent: true }),
        // The API may have answered before it closed.
        Err(_) => Ok(false),
    }
}

/// Sends a long request with an eye on the answer: an API that refuses it early need not take it
/// all.
async fn send_watching(line: &mut Line, within: Duration) -> Result<bool, Broken> {
    let Line { connection, answers, request, deadline, sending, .. } = line;
    let taken = std::mem::take(request);
    let mut write = pin!(connection.writer.write_all(taken, sending, within));
    loop {
        let read = connection.reader.read(answers.buffer(), deadline);
        match race(write.as_mut(), read).await {
            Either::Left((sent, mut buffer)) => {
                buffer.clear();
                *request = buffer;
                return match sent {
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                        Err(Broken::TimedOut(Awaited::Request))
                    }
                    sent => Ok(sent.is_ok()),
                };
            }
            Either::Right(Ok(1..)) => match answers.poll() {
                Ok(ResponseProgress::NeedMore) => {}
                Ok(ResponseProgress::Ready) => return Ok(false),
                Err(error) => return Err(Broken::Http(error)),
            },
            Either::Right(Ok(0)) => {
                return match answers.end_of_stream() {
                    Ok(_) => Ok(false),
                    Err(error) => Err(closed(answers, Some(error))),
                };
            }
            Either::Right(Err(error)) => return Err(failed_read(answers, &error)),
        }
    }
}

async fn receive(line: &mut Line, budget: &Budget) -> Result<(), Broken> {
    let Line { connection, answers, deadline, .. } = line;
    let mut in_body = false;
    loop {
        if answers.poll().map_err(Broken::Http)? == ResponseProgress::Ready {
            return Ok(());
        }
        if !in_body && answers.headers().next().is_some() {
            in_body = true;
            deadline.set(budget.left(Instant::now()));
        }
        match connection.reader.read(answers.buffer(), deadline).await {
            Ok(0) => {
                return match answers.end_of_stream() {
                    Ok(_) => Ok(()),
                    Err(error) => Err(closed(answers, Some(error))),
                };
            }
            Ok(_) => {}
            Err(error) => return Err(failed_read(answers, &error)),
        }
    }
}

fn failed_read(answers: &mut ResponseReader, error: &io::Error) -> Broken {
    if error.kind() != io::ErrorKind::TimedOut {
        return closed(answers, None);
    }
    let in_body = answers.headers().next().is_some();
    Broken::TimedOut(if in_body { Awaited::Body } else { Awaited::Head })
}

fn closed(answers: &mut ResponseReader, error: Option<HttpError>) -> Broken {
    match error {
        None | Some(HttpError::Closed | HttpError::Truncated) => {
            Broken::Closed { answering: !answers.buffer().is_empty(), is_unsent: false }
        }
        Some(other) => Broken::Http(other),
    }
}
