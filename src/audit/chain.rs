//! The lines that make the log tamper-evident: headers, blocks, checkpoints, statements.
//!
//! A block line closes all bytes since the last one (or the begin of the segment): its hash is
//! SHA-256 over the hash of the block before and these bytes. A checkpoint is a signature over its
//! own line up to the signature, and so over the hash of the block before it.
//!
//! Each of these lines has one form only. Readers take what they find apart, write it anew and
//! compare: a line that says the same in another way is not one of ours.

use std::fmt;

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::key::{PublicKey, SigningKey};
use super::line::{RECORD_PREFIX, write_hex, write_number};

/// Version of the layout of segments.
pub(super) const FORMAT: u32 = 1;

const SIGNATURE_MEMBER: &[u8] = b",\"signature\":\"";

/// SHA-256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainHash([u8; 32]);

impl ChainHash {
    /// What the first block follows.
    pub(super) const FIRST: Self = Self([0; 32]);

    fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        let mut hash = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, digits) in hash.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |at: usize| char::from(digits[at]).to_digit(16);
            *byte = (digit(0)? << 4 | digit(1)?) as u8;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A place in the chain: a block's number and hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) block: u64,
    pub(super) hash: ChainHash,
}

impl Link {
    /// Before the first block.
    pub(super) const FIRST: Self = Self { block: 0, hash: ChainHash::FIRST };
}

/// The block that is being made: everything behind the last closed one.
#[derive(Clone)]
pub(super) struct Chain {
    last: Link,
    context: Context,
    records: u64,
}

impl Chain {
    /// Goes on behind `last`.
    pub(super) fn after(last: Link) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(&last.hash.0);
        Self { last, context, records: 0 }
    }

    /// The last closed block.
    pub(super) fn last(&self) -> Link {
        self.last
    }

    /// Records of the open block.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Takes bytes of the open block that hold `records` records.
    pub(super) fn cover(&mut self, bytes: &[u8], records: u64) {
        self.context.update(bytes);
        self.records += records;
    }

    /// Counts records whose bytes were taken with those of others.
    pub(super) fn count(&mut self, records: u64) {
        self.records += records;
    }

    /// Closes the block; its line.
    pub(super) fn close(&mut self) -> Block {
        let mut hash = [0; 32];
        let digest = std::mem::replace(&mut self.context, Context::new(&SHA256)).finish();
        hash.copy_from_slice(digest.as_ref());
        let last = Link { block: self.last.block + 1, hash: ChainHash(hash) };
        let block = Block { link: last, records: self.records };
        *self = Self::after(last);
        block
    }

    /// Begins a segment: what stands behind the last block is not covered there.
    pub(super) fn begin_segment(&mut self) {
        *self = Self::after(self.last);
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("last", &self.last).finish_non_exhaustive()
    }
}

/// The line that closes a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) link: Link,
    pub(super) records: u64,
}

/// The first line of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) time_ms: u64,
    /// The last block of the segment before.
    pub(super) after: Link,
    pub(super) key: PublicKey,
}

/// A signed line behind a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checkpoint {
    pub(super) link: Link,
    pub(super) time_ms: u64,
    /// Set in the last line of a closed segment.
    pub(super) end: Option<Span>,
}

/// The earliest and the latest time of the records of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
}

impl Span {
    /// Of no record.
    pub(super) const EMPTY: Self = Self { from_ms: u64::MAX, to_ms: 0 };

    pub(super) fn include(&mut self, time_ms: u64) {
        self.from_ms = self.from_ms.min(time_ms);
        self.to_ms = self.to_ms.max(time_ms);
    }
}

/// What was deleted so far, from the first block on; signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Removal {
    /// The last block that was deleted.
    pub(super) through: Link,
    pub(super) time_ms: u64,
    /// All segments that were ever deleted.
    pub(super) segments: u64,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// One line of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Header(Header),
    Record,
    Block(Block),
    /// The signature is not checked yet.
    Checkpoint(Checkpoint),
}

/// Reads a line without its newline; `None` if this log does not write such lines. A record is
/// known by its first member: its content is the block's to prove.
pub(super) fn read_line(line: &[u8]) -> Option<Line> {
    if line.starts_with(RECORD_PREFIX) {
        return line.ends_with(b"}").then_some(Line::Record);
    }
    let raw: RawLine<'_> = serde_json::from_slice(line).ok()?;
    let mut again = Vec::with_capacity(line.len() + 1);
    let read = if let Some(block) = raw.block {
        let block = Block { link: link(block, raw.hash?)?, records: raw.records? };
        block.write(&mut again);
        Line::Block(block)
    } else if let Some(block) = raw.checkpoint {
        let end = match (raw.end, raw.from, raw.to) {
            (Some("segment"), Some(from_ms), Some(to_ms)) => Some(Span { from_ms, to_ms }),
            (None, None, None) => None,
            _ => return None,
        };
        let checkpoint = Checkpoint { link: link(block, raw.hash?)?, time_ms: raw.time?, end };
        checkpoint.write_unsigned(&mut again);
        copy_signature(&mut again, raw.signature?);
        Line::Checkpoint(checkpoint)
    } else {
        raw.format.filter(|format| *format == FORMAT)?;
        let header = Header {
            time_ms: raw.time?,
            after: link(raw.after_block?, raw.after_hash?)?,
            key: PublicKey::parse(raw.public_key?)?,
        };
        header.write(&mut again);
        Line::Header(header)
    };
    (again.strip_suffix(b"\n")? == line).then_some(read)
}

/// Reads a statement about deleted segments whose signature `key` has made.
pub(super) fn read_removal(line: &[u8], key: &PublicKey) -> Option<Removal> {
    let raw: RawLine<'_> = serde_json::from_slice(line).ok()?;
    let removal = Removal {
        through: link(raw.removed_through?, raw.hash?)?,
        time_ms: raw.time?,
        segments: raw.segments?,
        bytes: raw.bytes?,
    };
    let mut again = Vec::new();
    removal.write_unsigned(&mut again);
    copy_signature(&mut again, raw.signature?);
    (again == line && is_signed(line, key)).then_some(removal)
}

/// Reads a statement about the last block whose signature `key` has made.
pub(super) fn read_head(line: &[u8], key: &PublicKey) -> Option<Link> {
    let raw: RawLine<'_> = serde_json::from_slice(line).ok()?;
    let link = link(raw.head?, raw.hash?)?;
    let mut again = Vec::new();
    write_unsigned_head(&mut again, link, raw.time?);
    copy_signature(&mut again, raw.signature?);
    (again.strip_suffix(b"\n")? == line && is_signed(line, key)).then_some(link)
}

/// Says that the log has that block, under a checkpoint.
pub(super) fn write_head(out: &mut Vec<u8>, link: Link, time_ms: u64, key: &SigningKey) {
    let begin = out.len();
    write_unsigned_head(out, link, time_ms);
    sign(out, begin, key);
}

fn write_unsigned_head(out: &mut Vec<u8>, link: Link, time_ms: u64) {
    number(out, b"{\"head\":", link.block);
    hash(out, b",\"hash\":\"", link.hash);
    number(out, b",\"time\":", time_ms);
}

/// Whether the signature in `line` is over what stands before it, by `key`.
pub(super) fn is_signed(line: &[u8], key: &PublicKey) -> bool {
    let Some(at) = memchr::memmem::rfind(line, SIGNATURE_MEMBER) else { return false };
    let (message, rest) = line.split_at(at);
    let text = rest.get(SIGNATURE_MEMBER.len()..).and_then(|rest| {
        let end = memchr::memchr(b'"', rest)?;
        rest.get(..end)
    });
    text.and_then(|text| STANDARD.decode(text).ok())
        .is_some_and(|signature| key.has_signed(message, &signature))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine<'a> {
    format: Option<u32>,
    after_block: Option<u64>,
    after_hash: Option<&'a str>,
    public_key: Option<&'a str>,
    block: Option<u64>,
    records: Option<u64>,
    hash: Option<&'a str>,
    checkpoint: Option<u64>,
    time: Option<u64>,
    end: Option<&'a str>,
    from: Option<u64>,
    to: Option<u64>,
    head: Option<u64>,
    removed_through: Option<u64>,
    segments: Option<u64>,
    bytes: Option<u64>,
    signature: Option<&'a str>,
}

fn link(block: u64, hash: &str) -> Option<Link> {
    Some(Link { block, hash: ChainHash::parse(hash)? })
}

impl Header {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        number(out, b"{\"format\":", u64::from(FORMAT));
        number(out, b",\"time\":", self.time_ms);
        number(out, b",\"after_block\":", self.after.block);
        hash(out, b",\"after_hash\":\"", self.after.hash);
        out.extend_from_slice(b",\"public_key\":\"");
        out.extend_from_slice(self.key.to_string().as_bytes());
        out.extend_from_slice(b"\"}\n");
    }
}

impl Block {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        number(out, b"{\"block\":", self.link.block);
        number(out, b",\"records\":", self.records);
        hash(out, b",\"hash\":\"", self.link.hash);
        out.extend_from_slice(b"}\n");
    }
}

impl Checkpoint {
    pub(super) fn write(&self, out: &mut Vec<u8>, key: &SigningKey) {
        let begin = out.len();
        self.write_unsigned(out);
        sign(out, begin, key);
    }

    fn write_unsigned(&self, out: &mut Vec<u8>) {
        number(out, b"{\"checkpoint\":", self.link.block);
        hash(out, b",\"hash\":\"", self.link.hash);
        number(out, b",\"time\":", self.time_ms);
        if let Some(span) = self.end {
            number(out, b",\"end\":\"segment\",\"from\":", span.from_ms);
            number(out, b",\"to\":", span.to_ms);
        }
    }
}

impl Removal {
    pub(super) fn write(&self, out: &mut Vec<u8>, key: &SigningKey) {
        let begin = out.len();
        self.write_unsigned(out);
        sign(out, begin, key);
    }

    fn write_unsigned(&self, out: &mut Vec<u8>) {
        number(out, b"{\"removed_through\":", self.through.block);
        hash(out, b",\"hash\":\"", self.through.hash);
        number(out, b",\"time\":", self.time_ms);
        number(out, b",\"segments\":", self.segments);
        number(out, b",\"bytes\":", self.bytes);
    }
}

fn number(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(name);
    write_number(out, value);
}

/// `name` includes the opening quote.
fn hash(out: &mut Vec<u8>, name: &[u8], hash: ChainHash) {
    out.extend_from_slice(name);
    write_hex(out, &hash.0);
    out.push(b'"');
}

/// Signs what stands in `out` from `begin` on and ends the line with it.
fn sign(out: &mut Vec<u8>, begin: usize, key: &SigningKey) {
    let signature = STANDARD.encode(key.sign(&out[begin..]));
    copy_signature(out, &signature);
}

fn copy_signature(out: &mut Vec<u8>, signature: &str) {
    out.extend_from_slice(SIGNATURE_MEMBER);
    out.extend_from_slice(signature.as_bytes());
    out.extend_from_slice(b"\"}\n");
}
