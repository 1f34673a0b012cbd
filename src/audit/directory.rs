//! The files of an audit log: their names, their modes, their lines.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::chain::{Checkpoint, Line, read_line};
use crate::rt::files::open_regular;

/// Signs checkpoints.
pub(super) const SIGNING_KEY_NAME: &str = "signing.key";
/// Checks them.
pub(super) const PUBLIC_KEY_NAME: &str = "signing.pub";
/// The last block under a checkpoint, signed.
pub(super) const HEAD_NAME: &str = "head";
/// What was deleted, signed.
pub(super) const REMOVED_NAME: &str = "removed";
/// Held by the process that writes.
pub(super) const LOCK_NAME: &str = "lock";

const SEGMENT_PREFIX: &str = "audit-";
const SEGMENT_SUFFIX: &str = ".jsonl";
/// What is put before the name of a file that cannot be gone on with and is in the way.
const ASIDE_PREFIX: &str = "aside.";

/// The longest line that is read: far above what a record with three payloads can have.
pub(super) const LINE_BYTES_MAX: usize = 8 << 20;

const READ_BYTES: usize = 64 << 10;
/// Where the last line of a closed segment begins at the latest, from its end.
const END_BYTES: u64 = 1024;

/// A segment's file, by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentFile {
    /// The first block in it.
    pub(super) first_block: u64,
    pub(super) path: PathBuf,
}

impl SegmentFile {
    /// The file of the segment that begins with `first_block`.
    pub(super) fn new(directory: &Path, first_block: u64) -> Self {
        // Ten digits: names sort like numbers for three hundred years at one block a second.
        let name = format!("{SEGMENT_PREFIX}{first_block:010}{SEGMENT_SUFFIX}");
        Self { first_block, path: directory.join(name) }
    }

    /// The checkpoint that closed it, its signature unchecked; `None` while it is open.
    pub(super) fn end(&self) -> io::Result<Option<Checkpoint>> {
        let mut file = open_regular(&self.path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(END_BYTES).read_to_end(&mut bytes)?;
        let Some(lines) = bytes.strip_suffix(b"\n") else { return Ok(None) };
        let last = memchr::memrchr(b'\n', lines).map_or(lines, |at| &lines[at + 1..]);
        Ok(match read_line(last) {
            Some(Line::Checkpoint(checkpoint)) if checkpoint.end.is_some() => Some(checkpoint),
            _ => None,
        })
    }

    /// Puts it aside under another name.
    pub(super) fn put_aside(&self) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let mut number = 0_u32;
        loop {
            let aside = self.path.with_file_name(format!("{ASIDE_PREFIX}{number}.{name}"));
            if !aside.exists() {
                return fs::rename(&self.path, aside);
            }
            number += 1;
        }
    }
}

/// Every segment in `directory`, the oldest first.
pub(super) fn segments(directory: &Path) -> io::Result<Vec<SegmentFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(SEGMENT_PREFIX)?.strip_suffix(SEGMENT_SUFFIX))
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok());
        if let Some(first_block) = number {
            found.push(SegmentFile { first_block, path: directory.join(&name) });
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The first line of a small file of the log, without its newline; `None` if there is no file.
pub(super) fn read_small(directory: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(&directory.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    first_line(file).map(Some)
}

/// The first line of a small file, without its newline.
pub(super) fn first_line(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(READ_BYTES as u64).read_to_end(&mut bytes)?;
    let end = memchr::memchr(b'\n', &bytes).unwrap_or(bytes.len());
    bytes.truncate(end);
    Ok(bytes)
}

/// The lines of one segment, one after the other, in little memory.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
    /// Where the next line begins.
    offset: u64,
    /// Number of the last line that was read, from 1.
    number: u64,
}

/// What stands next in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A whole line, without its newline.
    Line(&'a [u8]),
    /// Bytes at the end without a newline: so many.
    Torn(u64),
    /// A line that is longer than any of this log.
    TooLong,
    /// Nothing.
    End,
}

impl Lines {
    /// Reads from `offset` on, where a line must begin.
    pub(super) fn open(path: &Path, offset: u64) -> io::Result<Self> {
        let mut file = open_regular(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let reader = BufReader::with_capacity(READ_BYTES, file);
        Ok(Self { reader, line: Vec::new(), offset, number: 0 })
    }

    /// Where the next line begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of the last line that was read, from 1, counted from where reading began.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line. After `Torn` and `End` it may be asked again: the file may have grown.
    pub(super) fn next(&mut self) -> io::Result<Next<'_>> {
        if self.line.last() == Some(&b'\n') {
            self.line.clear();
        }
        loop {
            let available = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                return Ok(match self.line.len() {
                    0 => Next::End,
                    torn => Next::Torn(torn as u64),
                });
            }
            let end = memchr::memchr(b'\n', available).map(|at| at + 1);
            let taken = end.unwrap_or(available.len());
            self.line.extend_from_slice(&available[..taken]);
            self.reader.consume(taken);
            if self.line.len() > LINE_BYTES_MAX {
                return Ok(Next::TooLong);
            }
            if end.is_some() {
                self.offset += self.line.len() as u64;
                self.number += 1;
                return Ok(Next::Line(&self.line[..self.line.len() - 1]));
            }
        }
    }

    /// The last line, with its newline.
    pub(super) fn whole(&self) -> &[u8] {
        &self.line
    }
}
