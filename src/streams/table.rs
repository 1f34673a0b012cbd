//! The streams of one core.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::frame;
use super::ids::{EventId, SessionKey, StreamId};
use super::journal::{Change, Journal, SealedChunk};
use super::stream::{OutletId, Stream, StreamKind};
use super::window::{Window, WindowLimits};

/// What a stream costs beside its events, counted against the table's bytes.
const STREAM_OVERHEAD_BYTES: usize = 256;
/// Where a table lives: the front of its stream ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// This node.
    pub node: u16,
    /// This core.
    pub core: u16,
    /// This start of the process: another value with each start.
    pub boot: u32,
}

/// Bounds of one core's table.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// Bounds of each window.
    pub window: WindowLimits,
    /// How long a finished stream can still be resumed, in milliseconds.
    pub retention_ms: u64,
    /// Most bytes of all windows together, finished streams included.
    pub retained_bytes_max: usize,
    /// Most streams.
    pub streams_max: usize,
}

/// Why a stream was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// The core holds as many streams as it may.
    #[error("this core holds {streams} streams, the most it may")]
    AtCapacity {
        /// How many it holds.
        streams: usize,
    },
}

/// A published event.
#[derive(Clone, Debug)]
pub struct Published {
    /// The whole frame; see [`frame`].
    pub frame: Arc<Vec<u8>>,
    /// Whom to give it to, where the stream is attached.
    pub outlet: Option<OutletId>,
    /// The event's id.
    pub event: EventId,
}

/// What an attached connection starts with.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The frames to send first.
    pub replay: Vec<Arc<Vec<u8>>>,
    /// The connection that was attached so far, to be closed.
    pub displaced: Option<OutletId>,
    /// The stream is finished: after the replay nothing follows.
    pub finished: bool,
}

/// A stream that [`StreamTable::expire`] removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpiredStream {
    /// Its id.
    pub id: StreamId,
    /// Whose it was.
    pub session: SessionKey,
    /// What opened it.
    pub kind: StreamKind,
}

/// A POST stream whose answer a restart took away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnfinishedStream<'a> {
    /// Its id.
    pub id: StreamId,
    /// Whose it is.
    pub session: SessionKey,
    /// The note it was opened with.
    pub note: &'a [u8],
}

/// The streams of one core. See the room.
#[derive(Debug)]
pub struct StreamTable {
    pub(super) place: Place,
    pub(super) limits: StreamLimits,
    pub(super) streams: HashMap<StreamId, Stream, BuildHasherDefault<IdHasher>>,
    /// Finished streams, oldest first; may name streams that are gone.
    pub(super) finished: VecDeque<StreamId>,
    /// Standing streams without a connection and since when, oldest first; may name others.
    waiting: VecDeque<(StreamId, u64)>,
    /// Events of all windows, oldest first; may name events that are gone.
    pub(super) order: VecDeque<OrderedEvent>,
    events: usize,
    retained_bytes: usize,
    last_number: u32,
    pub(super) journal: Journal,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OrderedEvent {
    pub(super) id: StreamId,
    pub(super) position: u64,
    pub(super) at_ms: u64,
}

impl StreamTable {
    /// An empty table. `first_sequence` is the first chunk's: 1 above the highest one stored.
    pub fn new(place: Place, limits: StreamLimits, first_sequence: u64) -> Self {
        Self {
            place,
            limits,
            streams: HashMap::default(),
            finished: VecDeque::new(),
            waiting: VecDeque::new(),
            order: VecDeque::new(),
            events: 0,
            retained_bytes: 0,
            last_number: 0,
            journal: Journal::new(place.core, first_sequence),
        }
    }

    /// Opens a stream of `session`.
    ///
    /// `note` (up to 4 KiB) comes back from [`Self::unfinished`] after a restart. A POST stream
    /// notes the ids of the requests it answers, so that they can be answered with an error.
    pub fn open(
        &mut self,
        kind: StreamKind,
        session: SessionKey,
        note: &[u8],
        now_ms: u64,
    ) -> Result<StreamId, StreamError> {
        if self.streams.len() >= self.limits.streams_max {
            return Err(StreamError::AtCapacity { streams: self.streams.len() });
        }
        let id = self.next_id();
        let mut stream = Stream::new(kind, session, note, 1, now_ms);
        if kind.is_kept() {
            stream.log(&mut self.journal, id, &Change::Open);
        }
        self.insert(id, stream);
        self.enforce_bytes();
        Ok(id)
    }

    /// Publishes `data` (JSON text) as the stream's next event. `None`: no such stream, or it is
    /// finished.
    pub fn publish(&mut self, id: StreamId, data: &[u8], now_ms: u64) -> Option<Published> {
        self.append(id, None, data, now_ms)
    }

    /// Publishes the priming event: an id to resume from, `retry`, and empty data.
    pub fn prime(&mut self, id: StreamId, retry_ms: Option<u32>, now_ms: u64) -> Option<Published> {
        self.append(id, retry_ms, b"", now_ms)
    }

    /// Attaches a connection of `session`, in place of any other.
    ///
    /// With `after`, what followed that position is replayed; a position that left the window, or
    /// was never given out, replays nothing. `None`: this session has no such stream.
    pub fn attach(
        &mut self,
        id: StreamId,
        session: SessionKey,
        after: Option<u64>,
        outlet: OutletId,
        now_ms: u64,
    ) -> Option<Attached> {
        let limits = self.limits;
        let stream = self.streams.get_mut(&id).filter(|stream| stream.session == session)?;
        if stream.is_over(&limits, now_ms) {
            return None;
        }
        let displaced = stream.outlet.replace(outlet);
        let finished = stream.finished_ms.is_some();
        self.change_window(id, |window| window.drop_aged(now_ms, &limits.window));
        let window = self.streams.get(&id).map(|stream| &stream.window);
        let replay = match (after, window) {
            (Some(position), Some(window)) => window.after(position).cloned().collect(),
            _ => Vec::new(),
        };
        Some(Attached { replay, displaced, finished })
    }

    /// A connection is gone. `false` where another took its place already.
    pub fn detach(&mut self, id: StreamId, outlet: OutletId, now_ms: u64) -> bool {
        match self.streams.get_mut(&id) {
            Some(stream) if stream.outlet == Some(outlet) => {
                stream.outlet = None;
                stream.unattached_ms = now_ms;
            }
            _ => return false,
        }
        self.wait(id);
        true
    }

    /// The stream is complete. Its window is kept for the retention time; the attached connection,
    /// which is returned, is to be closed once it has sent what it was given.
    pub fn finish(&mut self, id: StreamId, now_ms: u64) -> Option<OutletId> {
        let stream = self.streams.get_mut(&id).filter(|stream| stream.finished_ms.is_none())?;
        let outlet = stream.outlet.take();
        stream.unattached_ms = now_ms;
        if !stream.kind.is_kept() {
            self.remove(id);
            return outlet;
        }
        stream.log(&mut self.journal, id, &Change::Finish { at_ms: now_ms });
        stream.finished_ms = Some(now_ms);
        self.finished.push_back(id);
        self.enforce_bytes();
        outlet
    }

    /// Ends the stream and forgets it. The attached connection, which is returned, is to be closed.
    pub fn end(&mut self, id: StreamId) -> Option<OutletId> {
        self.remove(id)?.outlet
    }

    /// Lets go of what is too old: events, finished streams, and standing streams whose client did
    /// not come back while there was something to replay. Cheap; to be called about once a second.
    pub fn expire(&mut self, now_ms: u64) -> Vec<ExpiredStream> {
        let mut expired = Vec::new();
        let limits = self.limits;
        while let Some(id) = self.finished.front().copied() {
            match self.streams.get(&id) {
                Some(stream) if !stream.is_over(&limits, now_ms) => break,
                _ => self.finished.pop_front(),
            };
            expired.extend(self.expire_one(id));
        }
        while let Some(event) = self.order.front().copied()
            && now_ms.saturating_sub(event.at_ms) > limits.window.age_ms_max
        {
            self.order.pop_front();
            self.change_window(event.id, |window| window.drop_before(event.position + 1));
        }
        while let Some((id, since_ms)) = self.waiting.front().copied()
            && now_ms.saturating_sub(since_ms) > limits.window.age_ms_max
        {
            self.waiting.pop_front();
            if self.streams.get(&id).is_some_and(|stream| stream.is_over(&limits, now_ms)) {
                expired.extend(self.expire_one(id));
            }
        }
        if self.streams.capacity() > 1024 && self.streams.capacity() / 4 > self.streams.len() {
            self.streams.shrink_to(self.streams.len() * 2);
        }
        expired
    }

    /// What happened since the last call, to be stored; `None` where nothing did.
    pub fn take_chunk(&mut self, now_ms: u64) -> Option<SealedChunk> {
        self.journal.seal(now_ms)
    }

    /// POST streams from before a restart whose answers nobody works on: each is to be answered
    /// with an error and finished.
    pub fn unfinished(&self) -> impl Iterator<Item = UnfinishedStream<'_>> {
        self.streams.iter().filter_map(|(id, stream)| {
            let lost =
                stream.recovered && stream.kind == StreamKind::Post && stream.finished_ms.is_none();
            let note = &stream.note;
            lost.then_some(UnfinishedStream { id: *id, session: stream.session, note })
        })
    }

    /// The attached connection of a stream.
    pub fn outlet(&self, id: StreamId) -> Option<OutletId> {
        self.streams.get(&id)?.outlet
    }

    /// What opened a stream.
    pub fn kind(&self, id: StreamId) -> Option<StreamKind> {
        self.streams.get(&id).map(|stream| stream.kind)
    }

    /// Whose stream it is.
    pub fn session(&self, id: StreamId) -> Option<SessionKey> {
        self.streams.get(&id).map(|stream| stream.session)
    }

    /// All streams that can still get events: id, session and kind.
    pub fn open_streams(&self) -> impl Iterator<Item = (StreamId, SessionKey, StreamKind)> {
        let open = self.streams.iter().filter(|(_, stream)| stream.finished_ms.is_none());
        open.map(|(id, stream)| (*id, stream.session, stream.kind))
    }

    /// Streams held, finished ones included.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no stream is held.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Bytes held by windows and finished streams.
    pub fn retained_bytes(&self) -> usize {
        self.retained_bytes
    }

    /// Journal entries left out since this was asked last, because no chunk was taken for too long.
    pub fn take_journal_left_out(&mut self) -> u64 {
        self.journal.take_left_out()
    }

    pub(super) fn insert(&mut self, id: StreamId, stream: Stream) {
        self.retained_bytes += STREAM_OVERHEAD_BYTES;
        self.streams.insert(id, stream);
        self.wait(id);
    }

    /// A standing stream without a connection waits for one until it is over.
    fn wait(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else { return };
        if stream.kind != StreamKind::Standing {
            return;
        }
        self.waiting.push_back((id, stream.unattached_ms));
        if self.waiting.len() > 1024 + 2 * self.streams.len() {
            let streams = &self.streams;
            self.waiting.retain(|(id, since_ms)| {
                streams.get(id).is_some_and(|stream| stream.unattached_ms == *since_ms)
            });
        }
    }

    /// Removes a stream, and says so in the journal.
    pub(super) fn remove(&mut self, id: StreamId) -> Option<Stream> {
        let mut stream = self.forget(id)?;
        if stream.kind.is_kept() {
            stream.log(&mut self.journal, id, &Change::End);
        }
        Some(stream)
    }

    fn forget(&mut self, id: StreamId) -> Option<Stream> {
        let stream = self.streams.remove(&id)?;
        self.retained_bytes -= STREAM_OVERHEAD_BYTES + stream.window.bytes();
        self.events -= stream.window.len();
        Some(stream)
    }

    /// Keeps a frame as the stream's next event.
    pub(super) fn keep(&mut self, id: StreamId, frame: Arc<Vec<u8>>, at_ms: u64) {
        let limits = self.limits.window;
        let mut kept = None;
        self.change_window(id, |window| {
            let position = window.next_position();
            window.push(frame, at_ms, &limits);
            kept = Some(position).filter(|position| *position >= window.first_position());
        });
        if let Some(position) = kept {
            self.order.push_back(OrderedEvent { id, position, at_ms });
        }
        if self.order.len() > 1024 + 2 * self.events {
            let streams = &self.streams;
            self.order.retain(|event| {
                let stream = streams.get(&event.id);
                stream.is_some_and(|stream| stream.window.first_position() <= event.position)
            });
            self.order.shrink_to(2 * self.order.len());
        }
    }

    /// Changes a window and keeps the table's sums right.
    pub(super) fn change_window(&mut self, id: StreamId, change: impl FnOnce(&mut Window)) {
        if let Some(stream) = self.streams.get_mut(&id) {
            let (bytes, events) = (stream.window.bytes(), stream.window.len());
            change(&mut stream.window);
            self.retained_bytes = self.retained_bytes - bytes + stream.window.bytes();
            self.events = self.events - events + stream.window.len();
        }
    }

    /// Over the table's bytes the oldest finished stream goes first, then the oldest event.
    pub(super) fn enforce_bytes(&mut self) {
        while self.retained_bytes > self.limits.retained_bytes_max {
            if let Some(id) = self.finished.pop_front() {
                self.remove(id);
            } else if let Some(event) = self.order.pop_front() {
                self.trim(event);
            } else {
                // What is left are open streams without events.
                break;
            }
        }
    }

    fn trim(&mut self, event: OrderedEvent) {
        let first_position = event.position + 1;
        let stream = self.streams.get_mut(&event.id);
        if let Some(stream) = stream.filter(|one| one.window.first_position() < first_position) {
            stream.log(&mut self.journal, event.id, &Change::Trim { first_position });
            self.change_window(event.id, |window| window.drop_before(first_position));
        }
    }

    fn append(
        &mut self,
        id: StreamId,
        retry_ms: Option<u32>,
        data: &[u8],
        now_ms: u64,
    ) -> Option<Published> {
        let stream = self.streams.get_mut(&id).filter(|stream| stream.finished_ms.is_none())?;
        let outlet = stream.outlet;
        let position = stream.window.next_position();
        let event = EventId { stream: id, position };
        if !stream.kind.is_kept() {
            stream.window.pass();
            let frame = Arc::new(frame::control(Some("message"), retry_ms, Some(data)));
            return Some(Published { frame, outlet, event });
        }
        let frame = Arc::new(frame::event(event, None, retry_ms, data));
        let change = Change::Publish { position, at_ms: now_ms, frame: &frame };
        stream.log(&mut self.journal, id, &change);
        self.keep(id, Arc::clone(&frame), now_ms);
        self.enforce_bytes();
        Some(Published { frame, outlet, event })
    }

    fn expire_one(&mut self, id: StreamId) -> Option<ExpiredStream> {
        // The end of a finished stream needs no entry: it follows from the time it finished.
        let finished = self.streams.get(&id)?.finished_ms.is_some();
        let stream = if finished { self.forget(id)? } else { self.remove(id)? };
        Some(ExpiredStream { id, session: stream.session, kind: stream.kind })
    }

    /// Numbers may wrap on a node that runs for long; those in use are skipped.
    fn next_id(&mut self) -> StreamId {
        let Place { node, core, boot } = self.place;
        loop {
            self.last_number = self.last_number.wrapping_add(1);
            let id = StreamId { node, core, boot, number: self.last_number };
            if !self.streams.contains_key(&id) {
                return id;
            }
        }
    }
}

/// Ids in the map are all our own: a multiplication spreads them well enough.
#[derive(Default, Debug)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}
