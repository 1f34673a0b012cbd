//! The next block: what stands in it, its hash, and the lines that close it.

use std::io::IoSlice;
use std::ops::Range;

use super::chain::{Chain, Checkpoint, Header, Link, Span};
use super::group::Group;
use super::key::SigningKey;

/// Lines of one block; a little more, by one run of them.
const BLOCK_BYTES: usize = 1 << 20;

/// A block as it will be written, and what is so once it is. The lines of cores stay where they
/// are: they are hashed and written from there.
pub(super) struct Pending {
    /// A header, and lines of the audit thread.
    head: Vec<u8>,
    /// Which runs of the group.
    pub(super) runs: Range<usize>,
    /// The block's line, and a checkpoint.
    tail: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) chain: Chain,
    pub(super) span: Span,
    pub(super) records: u64,
    /// The block that its checkpoint signs.
    pub(super) signed: Option<Link>,
    pub(super) ends_segment: bool,
}

/// What a block is made of and goes behind.
pub(super) struct Composition<'a> {
    pub(super) chain: &'a Chain,
    /// Of the segment so far; none where the block begins one.
    pub(super) segment: Option<SegmentSoFar>,
    pub(super) group: &'a Group,
    /// The first run that is not written.
    pub(super) next: usize,
    pub(super) notes: Vec<u8>,
    pub(super) note_count: u64,
    pub(super) key: &'a SigningKey,
    pub(super) now_ms: u64,
}

/// What is known of the segment a block goes into.
#[derive(Clone, Copy)]
pub(super) struct SegmentSoFar {
    pub(super) span: Span,
    pub(super) length: u64,
}

/// A block that is closed but for its checkpoint.
pub(super) struct Composed {
    pending: Pending,
    pub(super) link: Link,
}

impl Composition<'_> {
    /// Makes the block: notes, then lines of the group.
    pub(super) fn compose(self) -> Composed {
        let mut chain = self.chain.clone();
        let mut span = self.segment.map_or(Span::EMPTY, |segment| segment.span);
        let mut head = Vec::new();
        if self.segment.is_none() {
            chain.begin_segment();
            let (time_ms, after, key) = (self.now_ms, chain.last(), self.key.public());
            Header { time_ms, after, key }.write(&mut head);
        }
        let mut records = self.note_count;
        if records > 0 {
            span.include(self.now_ms);
        }
        head.extend_from_slice(&self.notes);
        chain.cover(&head, records);
        let mut lines = 0;
        let mut end = self.next;
        while head.len() + lines < BLOCK_BYTES
            && let Some(mark) = self.group.mark(end)
        {
            span.include(mark.span.from_ms);
            span.include(mark.span.to_ms);
            records += u64::from(mark.records);
            lines += mark.bytes as usize;
            end += 1;
        }
        let runs = self.next..end;
        self.group.pieces(runs.clone(), |piece| chain.cover(piece, 0));
        chain.count(records - self.note_count);
        let block = chain.close();
        let mut tail = Vec::with_capacity(512);
        block.write(&mut tail);
        let bytes = (head.len() + lines + tail.len()) as u64;
        let (signed, ends_segment) = (None, false);
        let pending =
            Pending { head, runs, tail, bytes, chain, span, records, signed, ends_segment };
        Composed { pending, link: block.link }
    }
}

impl Composed {
    /// Bytes of the segment once the block is in it.
    pub(super) fn length_behind(&self, segment: SegmentSoFar) -> u64 {
        segment.length + self.pending.bytes
    }

    /// Whether it ends the group.
    pub(super) fn is_last_of(&self, group: &Group) -> bool {
        self.pending.runs.end == group.runs()
    }

    /// Signs the block, and with it everything before it; `ends_segment`: as the last of a segment.
    pub(super) fn sign(&mut self, key: &SigningKey, now_ms: u64, ends_segment: bool) {
        let end = ends_segment.then_some(self.pending.span);
        self.pending.sign(self.link, end, key, now_ms);
    }

    pub(super) fn finish(self) -> Pending {
        self.pending
    }
}

impl Pending {
    /// A checkpoint alone, of the last block.
    pub(super) fn checkpoint(chain: &Chain, span: Span, key: &SigningKey, now_ms: u64) -> Self {
        let mut pending = Self {
            head: Vec::new(),
            runs: 0..0,
            tail: Vec::with_capacity(512),
            bytes: 0,
            chain: chain.clone(),
            span,
            records: 0,
            signed: None,
            ends_segment: false,
        };
        pending.sign(chain.last(), None, key, now_ms);
        pending
    }

    fn sign(&mut self, link: Link, end: Option<Span>, key: &SigningKey, now_ms: u64) {
        let begin = self.tail.len();
        Checkpoint { link, time_ms: now_ms, end }.write(&mut self.tail, key);
        let line = &self.tail[begin..];
        self.chain.cover(line, 0);
        self.bytes += line.len() as u64;
        self.signed = Some(link);
        self.ends_segment = end.is_some();
    }

    /// What is to be written, in order.
    pub(super) fn pieces<'a>(&'a self, group: &'a Group) -> Vec<IoSlice<'a>> {
        let mut pieces = vec![IoSlice::new(&self.head)];
        group.pieces(self.runs.clone(), |piece| pieces.push(IoSlice::new(piece)));
        pieces.push(IoSlice::new(&self.tail));
        pieces
    }
}
