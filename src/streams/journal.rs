//! The journal of a core's streams: what happened since the last flush, as one chunk of bytes.
//!
//! Layout of a chunk, little endian:
//!
//! ```text
//! version u8 | checksum u64 of what follows | sequence u64 | written_ms u64 | core u16 | entries
//! ```
//!
//! Within a chunk a stream is introduced by one `Declare` entry, which says all that is needed to
//! go on with it; later entries name it by the declaration's index. So a chunk makes sense without
//! those before it, and the ring may overwrite any of them.
//!
//! A chunk is checked whole when it is read: a torn, damaged or unknown one is an error value.

use std::sync::Arc;

use super::ids::{SessionKey, StreamId};
use super::stream::StreamKind;

/// The layout this code writes, and the only one it reads.
const VERSION: u8 = 1;
const CHECKED_FROM: usize = 9;
const HEADER_BYTES: usize = 27;
/// Most bytes that wait for a flush. What would exceed it is left out (and counted): after a crash
/// such a window has a gap and replays only what came after it.
pub(super) const PENDING_BYTES_MAX: usize = 8 << 20;

const DECLARE: u8 = 1;
const PUBLISH: u8 = 2;
const FINISH: u8 = 3;
const END: u8 = 4;
const TRIM: u8 = 5;

/// Why a chunk cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JournalError {
    /// Written by another version of the program. Nothing may be changed then.
    #[error("stream journal chunk has format version {version}; this program reads version 1")]
    UnknownVersion {
        /// What its first byte says.
        version: u8,
    },
    /// Shorter than its header, or its checksum does not fit: a write was cut short.
    #[error("stream journal chunk is torn or damaged")]
    Torn,
    /// The checksum fits and the entries make no sense.
    #[error("stream journal chunk has a malformed entry at byte {offset}")]
    Malformed {
        /// Where the entry starts.
        offset: usize,
    },
}

/// A chunk ready for the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedChunk {
    /// Rises with each chunk; the ring finds the slot with it.
    pub sequence: u64,
    /// The value to store.
    pub bytes: Vec<u8>,
}

/// A chunk read back and checked.
#[derive(Clone, Debug)]
pub struct Chunk<'a> {
    /// Its place among all chunks of the node.
    pub sequence: u64,
    /// When it was sealed.
    pub written_ms: u64,
    /// The core that wrote it.
    pub core: u16,
    pub(super) entries: Vec<Entry<'a>>,
}

/// Where the current chunk declares a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    sequence: u64,
    index: u32,
}

impl Declared {
    /// Not declared in any chunk of this run.
    pub(super) const NEVER: Self = Self { sequence: u64::MAX, index: 0 };
}

/// All that is needed to go on with a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Declaration<'a> {
    pub(super) id: StreamId,
    pub(super) kind: StreamKind,
    pub(super) session: SessionKey,
    pub(super) next_position: u64,
    pub(super) finished_ms: Option<u64>,
    pub(super) note: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry<'a> {
    Declare(Declaration<'a>),
    Publish { index: u32, position: u64, at_ms: u64, frame: &'a [u8] },
    Finish { index: u32, at_ms: u64 },
    End { index: u32 },
    Trim { index: u32, first_position: u64 },
}

/// What changes about a declared stream.
#[derive(Debug)]
pub(super) enum Change<'a> {
    /// Nothing yet: the declaration is all.
    Open,
    Publish {
        position: u64,
        at_ms: u64,
        frame: &'a Arc<Vec<u8>>,
    },
    Finish {
        at_ms: u64,
    },
    End,
    Trim {
        first_position: u64,
    },
}

/// Collects entries until they are sealed into a chunk.
#[derive(Debug)]
pub(super) struct Journal {
    sequence: u64,
    core: u16,
    pending: Vec<u8>,
    declared: u32,
    written_ms: u64,
    left_out: u64,
}

impl Journal {
    pub(super) fn new(core: u16, sequence: u64) -> Self {
        Self { sequence, core, pending: Vec::new(), declared: 0, written_ms: 0, left_out: 0 }
    }

    /// Entries left out since this was asked last, because nobody took the chunks.
    pub(super) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// Appends a change, with the stream's declaration where this chunk has none yet.
    /// `declaration` describes the stream before the change.
    pub(super) fn append(
        &mut self,
        place: &mut Declared,
        declaration: &Declaration<'_>,
        change: &Change<'_>,
    ) {
        let frame_bytes = if let Change::Publish { frame, .. } = change { frame.len() } else { 0 };
        let room = 128 + declaration.note.len() + frame_bytes;
        if self.pending.len() + room > PENDING_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        if self.pending.is_empty() {
            self.pending.resize(HEADER_BYTES, 0);
        }
        if place.sequence != self.sequence {
            *place = Declared { sequence: self.sequence, index: self.declared };
            self.declared += 1;
            declare(&mut self.pending, declaration);
        }
        write_change(&mut self.pending, place.index, change);
    }

    /// Closes the chunk; `None` where nothing happened.
    pub(super) fn seal(&mut self, now_ms: u64) -> Option<SealedChunk> {
        if self.pending.is_empty() {
            return None;
        }
        let capacity = self.pending.len().min(64 << 10);
        let mut bytes = std::mem::replace(&mut self.pending, Vec::with_capacity(capacity));
        let sequence = self.sequence;
        // Chunks age in the order they were written, whatever the clock does.
        self.written_ms = self.written_ms.max(now_ms);
        let mut header = [0_u8; HEADER_BYTES];
        header[0] = VERSION;
        header[9..17].copy_from_slice(&sequence.to_le_bytes());
        header[17..25].copy_from_slice(&self.written_ms.to_le_bytes());
        header[25..27].copy_from_slice(&self.core.to_le_bytes());
        bytes[..HEADER_BYTES].copy_from_slice(&header);
        let sum = checksum(&bytes[CHECKED_FROM..]);
        bytes[1..CHECKED_FROM].copy_from_slice(&sum.to_le_bytes());
        self.sequence += 1;
        self.declared = 0;
        Some(SealedChunk { sequence, bytes })
    }
}

impl<'a> Chunk<'a> {
    /// Reads and checks a stored chunk.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, JournalError> {
        let version = *bytes.first().ok_or(JournalError::Torn)?;
        if version != VERSION {
            return Err(JournalError::UnknownVersion { version });
        }
        let (sum, checked) =
            bytes.get(1..).and_then(<[u8]>::split_first_chunk::<8>).ok_or(JournalError::Torn)?;
        if u64::from_le_bytes(*sum) != checksum(checked) {
            return Err(JournalError::Torn);
        }
        let mut input = Input { bytes, at: CHECKED_FROM };
        let header = (|| Some((input.u64()?, input.u64()?, input.u16()?)))();
        let (sequence, written_ms, core) = header.ok_or(JournalError::Torn)?;
        let mut entries = Vec::new();
        let mut declared = 0;
        while input.at < bytes.len() {
            let offset = input.at;
            let entry = read_entry(&mut input, declared);
            let entry = entry.ok_or(JournalError::Malformed { offset })?;
            declared += u32::from(matches!(entry, Entry::Declare(_)));
            entries.push(entry);
        }
        Ok(Self { sequence, written_ms, core, entries })
    }
}

fn declare(out: &mut Vec<u8>, declaration: &Declaration<'_>) {
    let Declaration { id, kind, session, next_position, finished_ms, note } = declaration;
    out.push(DECLARE);
    out.extend_from_slice(&id.node.to_le_bytes());
    out.extend_from_slice(&id.core.to_le_bytes());
    out.extend_from_slice(&id.boot.to_le_bytes());
    out.extend_from_slice(&id.number.to_le_bytes());
    out.push(kind.code());
    out.extend_from_slice(session.as_bytes());
    out.extend_from_slice(&next_position.to_le_bytes());
    // No stream finishes in 1970: 0 stands for one that runs.
    out.extend_from_slice(&finished_ms.unwrap_or(0).to_le_bytes());
    // Notes are bounded when a stream is opened.
    out.extend_from_slice(&(note.len() as u16).to_le_bytes());
    out.extend_from_slice(note);
}

fn write_change(out: &mut Vec<u8>, index: u32, change: &Change<'_>) {
    let mut begin = |tag: u8| {
        out.push(tag);
        out.extend_from_slice(&index.to_le_bytes());
    };
    match change {
        Change::Open => {}
        Change::Publish { position, at_ms, frame } => {
            begin(PUBLISH);
            out.extend_from_slice(&position.to_le_bytes());
            out.extend_from_slice(&at_ms.to_le_bytes());
            // Under PENDING_BYTES_MAX, or it would have been left out.
            out.extend_from_slice(&(frame.len() as u32).to_le_bytes());
            out.extend_from_slice(frame);
        }
        Change::Finish { at_ms } => {
            begin(FINISH);
            out.extend_from_slice(&at_ms.to_le_bytes());
        }
        Change::End => begin(END),
        Change::Trim { first_position } => {
            begin(TRIM);
            out.extend_from_slice(&first_position.to_le_bytes());
        }
    }
}

fn read_entry<'a>(input: &mut Input<'a>, declared: u32) -> Option<Entry<'a>> {
    let tag = input.u8()?;
    if tag == DECLARE {
        return read_declaration(input).map(Entry::Declare);
    }
    let index = input.u32().filter(|index| *index < declared)?;
    Some(match tag {
        PUBLISH => {
            let (position, at_ms) = (input.u64()?, input.u64()?);
            let length = input.u32()? as usize;
            Entry::Publish { index, position, at_ms, frame: input.take(length)? }
        }
        FINISH => Entry::Finish { index, at_ms: input.u64()? },
        END => Entry::End { index },
        TRIM => Entry::Trim { index, first_position: input.u64()? },
        _ => return None,
    })
}

fn read_declaration<'a>(input: &mut Input<'a>) -> Option<Declaration<'a>> {
    let id = StreamId {
        node: input.u16()?,
        core: input.u16()?,
        boot: input.u32()?,
        number: input.u32()?,
    };
    let kind = StreamKind::from_code(input.u8()?)?;
    let session = SessionKey::from_slice(input.take(16)?)?;
    let next_position = input.u64()?;
    let finished_ms = Some(input.u64()?).filter(|ms| *ms != 0);
    let note_length = usize::from(input.u16()?);
    let note = input.take(note_length)?;
    Some(Declaration { id, kind, session, next_position, finished_ms, note })
}

/// Reads from the front; never past the end.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Finds torn writes and flipped bits, not forgery. Every step is a bijection of the state for a
/// given word and of the word for a given state, so one changed word always changes the result.
fn checksum(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = FACTOR ^ bytes.len() as u64;
    let mut step = |word: [u8; 8]| {
        sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR).rotate_left(29);
    };
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().copied().for_each(&mut step);
    let mut last = [0_u8; 8];
    for (place, byte) in last.iter_mut().zip(rest) {
        *place = *byte;
    }
    step(last);
    (sum ^ (sum >> 32)).wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn declaration(number: u32) -> Declaration<'static> {
        Declaration {
            id: StreamId { node: 1, core: 2, boot: 3, number },
            kind: StreamKind::Post,
            session: SessionKey::from_bytes([7; 16]),
            next_position: 1,
            finished_ms: None,
            note: b"\"a\"",
        }
    }

    fn sealed() -> SealedChunk {
        let mut journal = Journal::new(2, 40);
        assert_eq!(journal.seal(1), None);
        let (mut first, mut second) = (Declared::NEVER, Declared::NEVER);
        let frame = Arc::new(b"frame".to_vec());
        journal.append(&mut first, &declaration(1), &Change::Open);
        journal.append(
            &mut second,
            &declaration(2),
            &Change::Publish { position: 1, at_ms: 5, frame: &frame },
        );
        journal.append(&mut first, &declaration(1), &Change::Finish { at_ms: 9 });
        journal.append(&mut second, &declaration(2), &Change::Trim { first_position: 2 });
        journal.append(&mut second, &declaration(2), &Change::End);
        journal.seal(77).unwrap()
    }

    #[test]
    fn a_chunk_comes_back() {
        let sealed = sealed();
        let chunk = Chunk::decode(&sealed.bytes).unwrap();
        assert_eq!((chunk.sequence, chunk.written_ms, chunk.core), (40, 77, 2));
        let expected = [
            Entry::Declare(declaration(1)),
            Entry::Declare(declaration(2)),
            Entry::Publish { index: 1, position: 1, at_ms: 5, frame: b"frame" },
            Entry::Finish { index: 0, at_ms: 9 },
            Entry::Trim { index: 1, first_position: 2 },
            Entry::End { index: 1 },
        ];
        assert_eq!(chunk.entries, expected);
    }

    #[test]
    fn torn_and_unknown_chunks_are_error_values() {
        let good = sealed().bytes;
        for length in 0..good.len() {
            assert_eq!(Chunk::decode(&good[..length]).unwrap_err(), JournalError::Torn);
        }
        for at in 1..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(Chunk::decode(&bad).unwrap_err(), JournalError::Torn, "byte {at}");
            }
        }
        let mut longer = good.clone();
        longer.push(0);
        assert_eq!(Chunk::decode(&longer).unwrap_err(), JournalError::Torn);
        let mut newer = good;
        newer[0] = 2;
        let error = Chunk::decode(&newer).unwrap_err();
        assert_eq!(error, JournalError::UnknownVersion { version: 2 });
    }

    #[test]
    fn declarations_are_repeated_in_the_next_chunk() {
        let mut journal = Journal::new(0, 1);
        let mut place = Declared::NEVER;
        journal.append(&mut place, &declaration(1), &Change::Open);
        journal.seal(1).unwrap();
        journal.append(&mut place, &declaration(1), &Change::Finish { at_ms: 1 });
        let second = journal.seal(0).unwrap();
        let chunk = Chunk::decode(&second.bytes).unwrap();
        assert!(matches!(chunk.entries[..], [Entry::Declare(_), Entry::Finish { .. }]));
        assert_eq!((chunk.sequence, chunk.written_ms), (2, 1));
    }

    #[test]
    fn what_nobody_takes_is_bounded() {
        let mut journal = Journal::new(0, 1);
        let mut place = Declared::NEVER;
        let frame = Arc::new(vec![0; 1 << 20]);
        for position in 1..=20 {
            let change = Change::Publish { position, at_ms: 0, frame: &frame };
            journal.append(&mut place, &declaration(1), &change);
        }
        assert_eq!((journal.take_left_out(), journal.take_left_out()), (13, 0));
        assert!(journal.seal(0).unwrap().bytes.len() <= PENDING_BYTES_MAX);
    }

    proptest! {
        /// A fitting checksum around anything: no panic, and no entry names an undeclared stream.
        #[test]
        fn any_entries_are_read_or_refused(
            body in proptest::collection::vec(0_u8..8, 0..200)
        ) {
            let mut bytes = vec![0; HEADER_BYTES];
            bytes.extend_from_slice(&body);
            bytes[0] = VERSION;
            let sum = checksum(&bytes[CHECKED_FROM..]).to_le_bytes();
            bytes[1..CHECKED_FROM].copy_from_slice(&sum);
            match Chunk::decode(&bytes) {
                Ok(_) | Err(JournalError::Malformed { .. }) => {}
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
