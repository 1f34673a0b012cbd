//! Reading the log back, from the files and in little memory, also while it is written.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use super::AuditError;
use super::chain::{Line, read_line};
use super::directory::{Lines, Next, SegmentFile, segments};
use super::filter::{Filter, Sieve};

/// Reads the wanted entries of a log, the oldest segment first. At the end it can be asked again:
/// what has been written since comes then.
#[derive(Debug)]
pub struct Reader {
    directory: PathBuf,
    sieve: Sieve,
    /// Segments that are still to be read, and where in the first of them.
    waiting: VecDeque<SegmentFile>,
    begin: u64,
    current: Option<(SegmentFile, Lines)>,
}

impl Reader {
    /// Reads the log in `directory` from its begin.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(directory: &Path, filter: Filter) -> Result<Self, AuditError> {
        let waiting: VecDeque<_> = match segments(directory) {
            Ok(found) => found.into(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => VecDeque::new(),
            Err(source) => return Err(AuditError::io("read", directory, source)),
        };
        if waiting.is_empty() {
            return Err(AuditError::NoLog { directory: directory.to_owned() });
        }
        let directory = directory.to_owned();
        Ok(Self { directory, sieve: Sieve::new(filter), waiting, begin: 0, current: None })
    }

    /// Goes to where the last `count` wanted entries begin. Memory is in proportion to `count`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn seek_last(&mut self, count: usize) -> Result<(), AuditError> {
        let mut passed = Vec::new();
        let mut missing = count;
        self.begin = 0;
        while let Some(file) = self.waiting.pop_back() {
            let mut begins = VecDeque::new();
            if missing > 0 && self.may_have(&file)? {
                self.find(&file, missing, &mut begins)?;
            }
            missing -= begins.len();
            let begin = begins.front().copied();
            passed.push(file);
            if missing == 0 {
                // Nothing was wanted: only what comes.
                self.begin = begin.unwrap_or(u64::MAX);
                break;
            }
        }
        self.waiting = passed.into_iter().rev().collect();
        Ok(())
    }

    /// Where the last `count` wanted entries of one segment begin.
    fn find(
        &self,
        file: &SegmentFile,
        count: usize,
        begins: &mut VecDeque<u64>,
    ) -> Result<(), AuditError> {
        let Some(mut lines) = open(file, 0)? else { return Ok(()) };
        loop {
            let begin = lines.offset();
            match lines.next().map_err(|source| AuditError::io("read", &file.path, source))? {
                Next::Line(line) => {
                    if self.is_wanted(line) {
                        if begins.len() == count {
                            begins.pop_front();
                        }
                        begins.push_back(begin);
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn is_wanted(&self, line: &[u8]) -> bool {
        matches!(read_line(line), Some(Line::Record)) && self.sieve.takes(line)
    }

    /// Goes to the next wanted entry, for [`Reader::line`]. False: there is none yet.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn advance(&mut self) -> Result<bool, AuditError> {
        loop {
            let Some((file, lines)) = &mut self.current else {
                if self.open_next()? {
                    continue;
                }
                return Ok(false);
            };
            let failed = |source| AuditError::io("read", &file.path, source);
            let is_at_end = match lines.next().map_err(failed)? {
                Next::Line(line) => {
                    if matches!(read_line(line), Some(Line::Record)) && self.sieve.takes(line) {
                        return Ok(true);
                    }
                    false
                }
                Next::Torn(_) => {
                    // It may become whole; or be cut off and something else stand there.
                    *lines = Lines::open(&file.path, lines.offset()).map_err(failed)?;
                    true
                }
                Next::TooLong | Next::End => true,
            };
            if is_at_end && !self.leave()? {
                return Ok(false);
            }
        }
    }

    /// The entry [`Reader::advance`] went to, without its newline.
    pub fn line(&self) -> &[u8] {
        let whole = self.current.as_ref().map_or(&b""[..], |(_, lines)| lines.whole());
        whole.strip_suffix(b"\n").unwrap_or(whole)
    }

    /// At the end of a segment: leaves it, if there is a next one. That it was there when the next
    /// began is sure only when it is asked once more.
    fn leave(&mut self) -> Result<bool, AuditError> {
        let Some((file, lines)) = &mut self.current else { return Ok(true) };
        if self.waiting.is_empty() {
            let found = segments(&self.directory)
                .map_err(|source| AuditError::io("read", &self.directory, source))?;
            self.waiting.extend(found.into_iter().filter(|found| found > file));
            if self.waiting.is_empty() {
                return Ok(false);
            }
            // Begun since: what was written before that is there now.
            let Some(again) = open(file, lines.offset())? else {
                self.current = None;
                return Ok(true);
            };
            *lines = again;
            return Ok(true);
        }
        self.current = None;
        Ok(true)
    }

    fn open_next(&mut self) -> Result<bool, AuditError> {
        while let Some(file) = self.waiting.pop_front() {
            let begin = std::mem::take(&mut self.begin);
            if !self.may_have(&file)? {
                if self.waiting.is_empty() {
                    // The last one: what follows it is looked for from there.
                    let end = u64::MAX;
                    let Some(lines) = open(&file, end)? else { return Ok(false) };
                    self.current = Some((file, lines));
                    return Ok(true);
                }
                continue;
            }
            if let Some(lines) = open(&file, begin)? {
                self.current = Some((file, lines));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a segment can hold entries of the wanted time: of a closed one, its end says.
    fn may_have(&self, file: &SegmentFile) -> Result<bool, AuditError> {
        let filter = self.sieve.filter();
        if filter.from_ms.is_none() && filter.to_ms.is_none() {
            return Ok(true);
        }
        let end = match file.end() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            end => end.map_err(|source| AuditError::io("read", &file.path, source))?,
        };
        let Some(span) = end.and_then(|end| end.end) else { return Ok(true) };
        Ok(filter.from_ms.is_none_or(|from| span.to_ms >= from)
            && filter.to_ms.is_none_or(|to| span.from_ms < to))
    }
}

/// Opens a segment at `begin`, or at its end; `None` if it was deleted meanwhile.
fn open(file: &SegmentFile, begin: u64) -> Result<Option<Lines>, AuditError> {
    let failed = |source| AuditError::io("read", &file.path, source);
    let begin = match std::fs::metadata(&file.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => begin.min(found.map_err(failed)?.len()),
    };
    match Lines::open(&file.path, begin) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        lines => lines.map(Some).map_err(failed),
    }
}
