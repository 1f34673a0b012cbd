//! Checking a log: every hash, every signature, the order of everything.
//!
//! What it proves, given a public key that is known to be right: from the first block that was not
//! deleted by a signed statement up to the last checkpoint, every line is the one that was written,
//! in its place, and none is missing. Behind the last checkpoint the hashes find accidents, but not
//! somebody who makes them anew. Somebody who puts back a log with its head as they once were is found
//! with a checkpoint that was kept elsewhere.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::AuditError;
use super::chain::{Chain, Line, Link, Removal, is_signed, read_head, read_line};
use super::directory::{
    HEAD_NAME, Lines, Next, PUBLIC_KEY_NAME, REMOVED_NAME, SIGNING_KEY_NAME, SegmentFile,
    first_line, read_small, segments,
};
use super::key::PublicKey;
use super::retention;

/// How often checking begins anew when segments are deleted meanwhile.
const ATTEMPTS: usize = 3;

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub what: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.what)
    }
}

/// A segment that is as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedSegment {
    /// Its file.
    pub path: PathBuf,
    /// Its first block.
    pub first_block: u64,
    /// Its last block.
    pub last_block: u64,
    /// Its records, events of the log among them.
    pub records: u64,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// The segments before the fault, or all.
    pub segments: Vec<VerifiedSegment>,
    /// Records in closed blocks.
    pub records: u64,
    /// The last block under a good signature, and when it was signed.
    pub signed: Option<(u64, u64)>,
    /// Records behind that.
    pub unsigned_records: u64,
    /// Lines and bytes behind the last block: being written, or left by a crash.
    pub open_records: u64,
    /// Bytes of a line that has no end.
    pub torn_bytes: u64,
    /// What was deleted by the log itself: segments, bytes, through which block, and when.
    pub removed: Option<(u64, u64, u64, u64)>,
    /// The first thing that is wrong.
    pub fault: Option<Fault>,
}

/// Checks the log in `directory` with the key in `public_key` (none: the one in the directory, which
/// whoever could change the log could have changed as well). `checkpoint` is a file with one line, a
/// checkpoint or head of this log that was kept elsewhere: the log must contain that block.
///
/// # Errors
/// There is no log, or it cannot be read. What is wrong with it is no error: see
/// [`Verified::fault`].
pub fn verify(
    directory: &Path,
    public_key: Option<&Path>,
    checkpoint: Option<&Path>,
) -> Result<Verified, AuditError> {
    let default = directory.join(PUBLIC_KEY_NAME);
    let has_segments = match segments(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        found => !found.map_err(|source| AuditError::io("read", directory, source))?.is_empty(),
    };
    let has = |name| directory.join(name).exists();
    if !has_segments && !has(HEAD_NAME) && !has(SIGNING_KEY_NAME) {
        return Err(AuditError::NoLog { directory: directory.to_owned() });
    }
    let key = PublicKey::read(public_key.unwrap_or(&default))?;
    let mut attempt = 1;
    loop {
        let mut check = Check::new(directory, key);
        match check.run(checkpoint) {
            // Deleted for its age while it was read: the statement says so by now.
            Err(Stop::Io(_, error))
                if error.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS =>
            {
                attempt += 1;
            }
            Err(Stop::Io(path, source)) => return Err(AuditError::io("read", &path, source)),
            Err(Stop::Fault(fault)) => {
                check.found.fault = Some(fault);
                return Ok(check.found);
            }
            Ok(()) => return Ok(check.found),
        }
    }
}

/// Why checking ends early.
enum Stop {
    Fault(Fault),
    Io(PathBuf, io::Error),
}

struct Check<'a> {
    directory: &'a Path,
    key: PublicKey,
    found: Verified,
    /// The block that was read last.
    last: Link,
    /// Blocks that are known to be in the log, or to have been, and who says so.
    known: Vec<(Link, String)>,
}

impl<'a> Check<'a> {
    fn new(directory: &'a Path, key: PublicKey) -> Self {
        Self { directory, key, found: Verified::default(), last: Link::FIRST, known: Vec::new() }
    }

    fn run(&mut self, checkpoint: Option<&Path>) -> Result<(), Stop> {
        // Before the segments: they only grow.
        let has_head = self.know_head()?;
        if let Some(path) = checkpoint {
            self.know_checkpoint(path)?;
        }
        let removal = self.removal()?;
        let failed = |source| Stop::Io(self.directory.to_owned(), source);
        let files = segments(self.directory).map_err(failed)?;
        for (at, file) in files.iter().enumerate() {
            if at == 0 {
                self.begin(file, removal)?;
            }
            Segment::open(self, file, at + 1 == files.len())?.check()?;
        }
        let missing = self.known.iter().find(|(link, _)| link.block > self.last.block);
        if let Some((link, who)) = missing {
            let what = format!(
                "the log ends at block {}, but {who} knows block {}: the end was cut off",
                self.last.block, link.block
            );
            return match files.last() {
                Some(file) => {
                    let lines = count_lines(file)?;
                    Err(fault(&file.path, lines, what))
                }
                None => Err(fault(self.directory, 0, what)),
            };
        }
        if !has_head {
            let what = format!(
                "is missing, which the log writes before anything else: somebody removed it, and \
                 whether the end behind block {} was cut off cannot be told",
                self.last.block
            );
            return Err(fault(&self.directory.join(HEAD_NAME), 1, what));
        }
        Ok(())
    }

    fn know_head(&mut self) -> Result<bool, Stop> {
        let path = self.directory.join(HEAD_NAME);
        let found = read_small(self.directory, HEAD_NAME)
            .map_err(|source| Stop::Io(path.clone(), source))?;
        let Some(line) = found else { return Ok(false) };
        let link = read_head(&line, &self.key).ok_or_else(|| {
            fault(&path, 1, "is no statement signed with the key of this log".into())
        })?;
        self.known.push((link, path.display().to_string()));
        Ok(true)
    }

    fn know_checkpoint(&mut self, path: &Path) -> Result<(), Stop> {
        // Whatever the caller names, a pipe as well.
        let line = File::open(path)
            .and_then(first_line)
            .map_err(|source| Stop::Io(path.to_owned(), source))?;
        let link = match read_line(&line) {
            Some(Line::Checkpoint(checkpoint)) if is_signed(&line, &self.key) => {
                Some(checkpoint.link)
            }
            _ => read_head(&line, &self.key),
        };
        let link = link.ok_or_else(|| {
            fault(path, 1, "is no checkpoint signed with the key of this log".into())
        })?;
        self.known.push((link, format!("the checkpoint in {}", path.display())));
        Ok(())
    }

    fn removal(&mut self) -> Result<Option<Removal>, Stop> {
        let path = self.directory.join(REMOVED_NAME);
        let failed = |source| Stop::Io(path.clone(), source);
        let removal = retention::statement(self.directory, &self.key).map_err(failed)?;
        if removal.is_none() && path.exists() {
            let what = "is no statement signed with the key of this log".into();
            return Err(fault(&path, 1, what));
        }
        self.found.removed = removal.map(|removal| {
            (removal.segments, removal.bytes, removal.through.block, removal.time_ms)
        });
        Ok(removal)
    }

    /// Where the chain of what is there begins.
    fn begin(&mut self, file: &SegmentFile, removal: Option<Removal>) -> Result<(), Stop> {
        let mut lines = open(file)?;
        let header = match next(&mut lines, file)? {
            Next::Line(line) => read_line(line),
            _ => None,
        };
        // Without a header the segment itself will be at fault.
        let Some(Line::Header(header)) = header else { return Ok(()) };
        let removed = removal.map_or(Link::FIRST, |removal| removal.through);
        if header.after.block > removed.block {
            let what = format!(
                "the blocks {} to {} before it are missing, and no signed statement says that \
                 they were deleted",
                removed.block + 1,
                header.after.block
            );
            return Err(fault(&file.path, 1, what));
        }
        if header.after.block == removed.block && header.after.hash != removed.hash {
            let what = "it does not follow the last block that was deleted".into();
            return Err(fault(&file.path, 1, what));
        }
        if header.after.block < removed.block {
            // Deleting was interrupted; what remains must still lead there.
            self.known.push((removed, "the statement about deleted segments".into()));
        }
        self.last = header.after;
        Ok(())
    }

    /// A block was read: is it the one that is known?
    fn meets(&self, link: Link) -> Option<&str> {
        let differs =
            |known: &&(Link, String)| known.0.block == link.block && known.0.hash != link.hash;
        self.known.iter().find(differs).map(|(_, who)| who.as_str())
    }
}

/// One segment that is being checked.
struct Segment<'c, 'd, 'f> {
    check: &'c mut Check<'d>,
    file: &'f SegmentFile,
    is_newest: bool,
    lines: Lines,
    chain: Chain,
    /// The first line of the open block.
    block_begin: u64,
    /// A block was closed, and nothing has come since.
    is_behind_block: bool,
    is_closed: bool,
    records: u64,
}

impl<'c, 'd, 'f> Segment<'c, 'd, 'f> {
    fn open(
        check: &'c mut Check<'d>,
        file: &'f SegmentFile,
        is_newest: bool,
    ) -> Result<Self, Stop> {
        let lines = open(file)?;
        let chain = Chain::after(check.last);
        Ok(Self {
            check,
            file,
            is_newest,
            lines,
            chain,
            block_begin: 1,
            is_behind_block: false,
            is_closed: false,
            records: 0,
        })
    }

    fn fault(&self, what: impl Into<String>) -> Stop {
        fault(&self.file.path, self.lines.number().max(1), what.into())
    }

    fn check(mut self) -> Result<(), Stop> {
        loop {
            let line = match next(&mut self.lines, self.file)? {
                Next::Line(line) => read_line(line),
                Next::Torn(bytes) => {
                    self.check.found.torn_bytes = bytes;
                    break;
                }
                Next::TooLong => {
                    return Err(fault(
                        &self.file.path,
                        self.lines.number() + 1,
                        "is longer than any line of this log".into(),
                    ));
                }
                Next::End => break,
            };
            if self.is_closed {
                return Err(self.fault("stands behind the end of the segment: it was inserted"));
            }
            match line {
                Some(Line::Header(header)) if self.lines.number() == 1 => {
                    self.header(header.after, header.key)?;
                }
                _ if self.lines.number() == 1 => {
                    return Err(self.fault("is not the header of a segment: it was changed"));
                }
                Some(Line::Record) => self.chain.cover(self.lines.whole(), 1),
                Some(Line::Block(block)) => {
                    self.block(block.link, block.records)?;
                    continue;
                }
                Some(Line::Checkpoint(checkpoint)) => {
                    self.checkpoint(checkpoint.link, checkpoint.time_ms)?;
                    self.is_closed = checkpoint.end.is_some();
                }
                Some(Line::Header(_)) | None => {
                    return Err(self.fault("is no line of this log: it was changed or inserted"));
                }
            }
            self.is_behind_block = false;
        }
        self.end()
    }

    fn header(&mut self, after: Link, key: PublicKey) -> Result<(), Stop> {
        let last = self.check.last;
        if key != self.check.key {
            return Err(
                self.fault("the segment names another key than the one that is checked with")
            );
        }
        if after.block > last.block {
            return Err(self.fault(format!(
                "the blocks {} to {} before it are missing: a segment was removed, or its end cut \
                 off",
                last.block + 1,
                after.block
            )));
        }
        if after != last || self.file.first_block != after.block + 1 {
            return Err(self.fault("the segment is not in its place: it does not follow the last"));
        }
        self.chain.cover(self.lines.whole(), 0);
        Ok(())
    }

    fn block(&mut self, link: Link, records: u64) -> Result<(), Stop> {
        let (first, last) = (self.block_begin, self.lines.number());
        let whole = self.chain.close();
        if link.block != whole.link.block {
            return Err(self.fault(format!(
                "block {} stands where block {} should: a block was removed, inserted or moved",
                link.block, whole.link.block
            )));
        }
        if records != whole.records {
            return Err(self.fault(format!(
                "block {} had {records} records and has {} (lines {first} to {last}): lines were \
                 removed or inserted",
                link.block, whole.records
            )));
        }
        if link.hash != whole.link.hash {
            return Err(fault(
                &self.file.path,
                first,
                format!("one of the lines {first} to {last} (block {}) was changed", link.block),
            ));
        }
        if let Some(who) = self.check.meets(link) {
            let what = format!("block {} is not the one that {who} knows", link.block);
            return Err(self.fault(what));
        }
        self.records += records;
        self.check.last = link;
        self.check.found.records += records;
        self.check.found.unsigned_records += records;
        self.block_begin = last + 1;
        self.is_behind_block = true;
        Ok(())
    }

    fn checkpoint(&mut self, link: Link, time_ms: u64) -> Result<(), Stop> {
        if !self.is_behind_block || link != self.check.last {
            return Err(self.fault("the checkpoint is not of the block before it"));
        }
        if !is_signed(self.lines.whole(), &self.check.key) {
            return Err(self.fault("the signature is not by the key of this log"));
        }
        self.chain.cover(self.lines.whole(), 0);
        self.check.found.signed = Some((link.block, time_ms));
        self.check.found.unsigned_records = 0;
        Ok(())
    }

    fn end(self) -> Result<(), Stop> {
        if self.is_newest {
            self.check.found.open_records = self.chain.records();
        } else if !self.is_closed {
            return Err(
                self.fault("the segment ends without its closing checkpoint: it was cut off")
            );
        }
        if self.lines.number() == 0 && !self.is_newest {
            return Err(self.fault("the segment is empty"));
        }
        self.check.found.segments.push(VerifiedSegment {
            path: self.file.path.clone(),
            first_block: self.file.first_block,
            last_block: self.check.last.block,
            records: self.records,
        });
        Ok(())
    }
}

fn fault(path: &Path, line: u64, what: String) -> Stop {
    Stop::Fault(Fault { path: path.to_owned(), line, what })
}

fn open(file: &SegmentFile) -> Result<Lines, Stop> {
    Lines::open(&file.path, 0).map_err(|source| Stop::Io(file.path.clone(), source))
}

fn next<'l>(lines: &'l mut Lines, file: &SegmentFile) -> Result<Next<'l>, Stop> {
    lines.next().map_err(|source| Stop::Io(file.path.clone(), source))
}

fn count_lines(file: &SegmentFile) -> Result<u64, Stop> {
    let mut lines = open(file)?;
    while matches!(next(&mut lines, file)?, Next::Line(_)) {}
    Ok(lines.number())
}
