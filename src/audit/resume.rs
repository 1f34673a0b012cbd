//! Going on with a log as a stop or a crash has left it.
//!
//! Nothing that was whole is ever cut off: only bytes behind the last block that are no lines of
//! this log. Whole lines there become part of the next block. Where the log ends before its last
//! known checkpoint, the chain goes on from that checkpoint in a new segment, so that what is
//! missing stays visible; where that checkpoint is not known, behind a gap.

use std::fs;
use std::io;
use std::path::Path;

use super::AuditError;
use super::chain::{Chain, Line, Link, Span, read_line};
use super::directory::{Lines, Next, SegmentFile, segments};
use super::head::Head;
use super::key::SigningKey;
use super::line;
use super::retention;
use super::segment::Segment;
use super::worker::now_ms;

/// Where writing goes on.
#[derive(Debug)]
pub(super) struct Resumed {
    pub(super) chain: Chain,
    pub(super) segment: Option<Segment>,
    /// The last block that is known to be under a checkpoint.
    pub(super) signed_block: u64,
    /// What the log has to say about it.
    pub(super) notes: Vec<u8>,
    pub(super) note_count: u64,
}

/// What stands at the end of a segment.
#[derive(Debug)]
struct Tail {
    /// The open block, behind the last closed one.
    chain: Chain,
    /// Bytes that can be gone on behind.
    good_bytes: u64,
    all_bytes: u64,
    begun_ms: u64,
    /// Of the whole segment.
    span: Span,
    is_closed: bool,
}

/// Finds the end of the log in `directory`.
pub(super) fn resume(directory: &Path, key: &SigningKey) -> Result<Resumed, AuditError> {
    let failed = |source| AuditError::io("read", directory, source);
    let head = Head::read(directory, key).map_err(failed)?;
    let mut files = segments(directory).map_err(failed)?;
    let mut cut_bytes = 0;
    let found = loop {
        let Some(file) = files.pop() else { break None };
        match tail(&file).map_err(failed)? {
            Found::Tail(tail) => break Some((file, *tail)),
            Found::Nothing { bytes } => {
                // A crash at its very begin.
                cut_bytes += bytes;
                fs::remove_file(&file.path).map_err(failed)?;
            }
            Found::Foreign => {
                tracing::error!(
                    file = %file.path.display(),
                    "is no segment of this audit log; put aside"
                );
                file.put_aside().map_err(failed)?;
            }
        }
    };
    let last = found.as_ref().map_or(Link::FIRST, |(_, tail)| tail.chain.last());
    let mut resumed = Resumed {
        chain: Chain::after(last),
        segment: None,
        signed_block: 0,
        notes: Vec::new(),
        note_count: 0,
    };
    match head {
        Head::At(known) => {
            resumed.signed_block = known.block;
            let differs = last.block == known.block && last.hash != known.hash;
            if last.block < known.block || differs {
                resumed.go_on_behind(known, last);
                return Ok(resumed);
            }
        }
        Head::Missing | Head::Changed => {
            resumed.leave_a_gap(last, head);
            return Ok(resumed);
        }
    }
    if let Some((file, tail)) = found {
        resumed.take_up(file, tail, cut_bytes).map_err(failed)?;
    } else if let Some(removed) = retention::statement(directory, &key.public()).map_err(failed)? {
        resumed.chain = Chain::after(removed.through);
    }
    Ok(resumed)
}

impl Resumed {
    /// The log ends before a block that it had.
    fn go_on_behind(&mut self, known: Link, last: Link) {
        tracing::error!(
            found_block = last.block,
            known_block = known.block,
            "the audit log ends before its last checkpoint: something was removed or changed"
        );
        self.chain = Chain::after(known);
        line::write_missing(&mut self.notes, now_ms(), last.block, known.block);
        self.note_count += 1;
    }

    /// Nobody knows what the log had. A block that never was is left out, so that checking finds
    /// the place however the log goes on.
    fn leave_a_gap(&mut self, last: Link, head: Head) {
        tracing::error!(
            found_block = last.block,
            "the audit log's head was {}: whether something is missing \
             behind its last block cannot be told",
            if head == Head::Missing { "removed" } else { "changed" }
        );
        self.chain = Chain::after(Link { block: last.block + 1, hash: Link::FIRST.hash });
        line::write_headless(&mut self.notes, now_ms(), last.block);
        self.note_count += 1;
    }

    fn take_up(&mut self, file: SegmentFile, tail: Tail, cut_bytes: u64) -> io::Result<()> {
        let cut_bytes = cut_bytes + (tail.all_bytes - tail.good_bytes);
        let kept_lines = tail.chain.records();
        if cut_bytes > 0 || kept_lines > 0 {
            tracing::warn!(kept_lines, cut_bytes, "the audit log was not closed in order");
            line::write_recovered(&mut self.notes, now_ms(), kept_lines, cut_bytes);
            self.note_count += 1;
        }
        self.chain = tail.chain;
        if !tail.is_closed {
            let segment = Segment::resume(file, tail.good_bytes, tail.begun_ms, tail.span)?;
            self.segment = Some(segment);
        }
        Ok(())
    }
}

enum Found {
    Tail(Box<Tail>),
    /// Not even a whole header.
    Nothing {
        bytes: u64,
    },
    /// Lines, but no header and no block.
    Foreign,
}

fn tail(file: &SegmentFile) -> io::Result<Found> {
    let all_bytes = fs::metadata(&file.path)?.len();
    let mut lines = Lines::open(&file.path, 0)?;
    let mut chain: Option<Chain> = None;
    let (mut begun_ms, mut span, mut is_closed) = (0, Span::EMPTY, false);
    // Where the first line is that is not ours, since the last block.
    let mut cut: Option<(u64, Chain)> = None;
    loop {
        let begin = lines.offset();
        let line = match lines.next()? {
            Next::Line(line) => read_line(line),
            Next::Torn(_) | Next::TooLong => {
                cut = cut.or_else(|| Some((begin, chain.clone()?)));
                break;
            }
            Next::End => break,
        };
        let whole = lines.whole();
        is_closed = false;
        match (line, &mut chain) {
            (Some(Line::Header(header)), none @ None) if begin == 0 => {
                begun_ms = header.time_ms;
                none.insert(Chain::after(header.after)).cover(whole, 0);
            }
            // Whatever stands before it is the block's to prove, not ours to cut.
            (Some(Line::Block(block)), chain) => {
                *chain = Some(Chain::after(block.link));
                cut = None;
            }
            (Some(Line::Record), Some(chain)) if cut.is_none() => {
                span.include(record_time(whole));
                chain.cover(whole, 1);
            }
            (Some(Line::Checkpoint(checkpoint)), Some(chain)) if cut.is_none() => {
                is_closed = checkpoint.end.is_some();
                chain.cover(whole, 0);
            }
            (Some(Line::Record), Some(_)) => span.include(record_time(whole)),
            (_, Some(chain)) => cut = cut.or_else(|| Some((begin, chain.clone()))),
            (_, None) => {}
        }
    }
    Ok(match (cut, chain) {
        (Some((good_bytes, chain)), _) => Found::Tail(Box::new(Tail {
            chain,
            good_bytes,
            all_bytes,
            begun_ms,
            span,
            is_closed: false,
        })),
        (None, Some(chain)) => Found::Tail(Box::new(Tail {
            chain,
            good_bytes: all_bytes,
            all_bytes,
            begun_ms,
            span,
            is_closed,
        })),
        (None, None) if lines.number() == 0 => Found::Nothing { bytes: all_bytes },
        (None, None) => Found::Foreign,
    })
}

/// The time at the begin of a record's line.
pub(super) fn record_time(line: &[u8]) -> u64 {
    let digits = line.get(line::RECORD_PREFIX.len()..).unwrap_or_default();
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |time, digit| {
        u64::wrapping_add(u64::wrapping_mul(time, 10), u64::from(digit - b'0'))
    })
}
