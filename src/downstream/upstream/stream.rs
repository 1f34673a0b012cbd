//! An event stream of a server, read as it comes.
//!
//! Nothing of it is kept but the event that is incomplete, and what its reader has not taken yet:
//! whoever does not ask for more, leaves the rest to the server.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::Proof;
use crate::downstream::error::CallError;
use crate::downstream::exchange::{Broken, take};
use crate::downstream::pool::Line;
use crate::downstream::rest::INLINE_BYTES_MAX;
use crate::http::ResponseProgress;
use crate::mcp::upstream::{EventReader, Received, StreamEvent};
use crate::rpc::RpcError;
use crate::rt::{self, WorkError};

use super::link::{Answer, Link, messages};

/// How long a stream may take to end behind its answer, and what may still come, for its connection
/// to be kept.
const ENDS_WITHIN: Duration = Duration::from_millis(250);
const LEFT_BYTES_MAX: usize = 16 * 1024;

/// What a stream brought.
#[derive(Debug)]
pub(super) enum Came {
    /// Messages, at least one.
    Messages(Vec<Received>),
    /// Where messages are to be posted.
    Endpoint(Box<str>),
    /// It ended, as a stream ends or in the middle.
    End,
}

type Reading = Pin<Box<dyn Future<Output = Result<Result<Vec<Received>, RpcError>, WorkError>>>>;

/// A stream.
pub(super) struct Stream {
    line: Box<Line>,
    proof: Arc<Proof>,
    /// All of the request was sent, so that its connection may carry another one.
    is_sent: bool,
    reader: EventReader,
    bytes: Vec<u8>,
    events: VecDeque<StreamEvent>,
    /// A large message that is read off the core.
    reading: Option<Reading>,
    is_over: bool,
    /// Why the last event was no message. It is passed over, as the SDKs do; where nothing follows,
    /// it was the answer.
    fault: Option<RpcError>,
    /// Where it went on, as long as it has said nothing itself.
    from: Option<String>,
    /// Whether anything has come.
    pub(super) has_spoken: bool,
}

impl Stream {
    pub(super) fn new(answer: Answer, event_bytes_max: usize) -> Self {
        let Answer { line, proof, is_sent } = answer;
        line.deadline.clear();
        Self {
            line,
            proof,
            is_sent,
            reader: EventReader::new(event_bytes_max),
            bytes: Vec::new(),
            events: VecDeque::new(),
            reading: None,
            is_over: false,
            fault: None,
            from: None,
            has_spoken: false,
        }
    }

    /// One that goes on behind this event.
    pub(super) fn resumed(answer: Answer, event_bytes_max: usize, from: String) -> Self {
        Self { from: Some(from), ..Self::new(answer, event_bytes_max) }
    }

    /// What comes next. Waits without limit: how long is for the reader to say.
    ///
    /// # Errors
    /// The stream is of no more use.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self, link: &Link<'_>) -> Result<Came, CallError> {
        loop {
            if let Some(reading) = &mut self.reading {
                let read = reading.as_mut().await;
                self.reading = None;
                match read.map_err(|_| CallError::Overloaded)? {
                    Ok(messages) => return Ok(self.came(messages)),
                    Err(fault) => self.fault = Some(fault),
                }
                continue;
            }
            match self.events.pop_front() {
                Some(StreamEvent::Endpoint(target)) => return Ok(Came::Endpoint(target)),
                Some(StreamEvent::Data(data)) if data.len() > INLINE_BYTES_MAX => {
                    self.reading = Some(self.elsewhere(link, data));
                    continue;
                }
                Some(StreamEvent::Data(data)) => {
                    match messages(&self.proof, data) {
                        Ok(messages) => return Ok(self.came(messages)),
                        Err(fault) => self.fault = Some(fault),
                    }
                    continue;
                }
                None if self.is_over => {
                    let fault = self.fault.take();
                    return fault.map_or(Ok(Came::End), |error| Err(link.invalid(&error.message)));
                }
                None => {}
            }
            match take(&mut self.line, &mut self.bytes).await {
                Ok(is_more) => self.is_over = !is_more,
                Err(Broken::Closed { .. }) => self.is_over = true,
                Err(broken) => return Err(link.broken(broken)),
            }
            self.has_spoken |= !self.bytes.is_empty();
            let mut events = Vec::new();
            let fed = self.reader.feed(&self.bytes, &mut events);
            self.bytes.clear();
            self.events.extend(events);
            if let Err(fault) = fed {
                let text = format!("{fault} (downstream.mcp.event_bytes_max)");
                return Err(link.invalid(&text));
            }
        }
    }

    fn came(&mut self, messages: Vec<Received>) -> Came {
        self.fault = None;
        Came::Messages(messages)
    }

    fn elsewhere(&self, link: &Link<'_>, data: Vec<u8>) -> Reading {
        let (workers, proof) = (link.reach.dialer.workers().clone(), Arc::clone(&self.proof));
        let tenant = link.connection.tenant.clone();
        Box::pin(
            async move { workers.run_for(tenant.as_str(), move || messages(&proof, data)).await },
        )
    }

    /// The answer has come. What is left of the stream should be its end: where that is there, or
    /// comes within a moment, its connection goes back into the pool.
    pub(super) fn part(self, link: &Link<'_>) {
        let Self { mut line, is_sent, mut bytes, .. } = self;
        let (reach, connection) = (Rc::clone(link.reach), Arc::clone(link.connection));
        if line.answers.take_body(&mut bytes) == Ok(ResponseProgress::Ready) {
            let is_reusable = is_sent && line.answers.keep_alive();
            return reach.give_back(&connection, line, is_reusable);
        }
        rt::spawn(async move {
            line.deadline.set(ENDS_WITHIN);
            while let Ok(is_more) = take(&mut line, &mut bytes).await {
                if !is_more {
                    let is_reusable = is_sent && line.answers.keep_alive();
                    return reach.give_back(&connection, line, is_reusable);
                }
                if bytes.len() > LEFT_BYTES_MAX {
                    return;
                }
            }
        });
    }

    /// Where to go on when it is broken.
    pub(super) fn last_event_id(&self) -> Option<&str> {
        self.reader.last_event_id().or(self.from.as_deref())
    }

    /// How long to wait before that.
    pub(super) fn retry_ms(&self) -> Option<u32> {
        self.reader.retry_ms()
    }
}
