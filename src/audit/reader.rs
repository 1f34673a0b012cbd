//! Reading the log back, from the files and in little memory, also while it is written.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use super::AuditError;
use super::chain::{Line, read_line};
use super::directory::{Lines, Next, SegmentFile, segments};
use super::filter::{Filter, Sieve};
use super::repeat::Whole;

/// Reads the wanted entries of a log, the oldest segment first. At the end it can be asked again:
/// what has been written since comes then.
#[derive(Debug)]
pub struct Reader {
    directory: PathBuf,
    sieve: Sieve,
    /// Segments that are still to be read, and where in the first of them.
    waiting: VecDeque<SegmentFile>,
    begin: Begin,
    current: Option<Current>,
}

/// Where reading begins in a segment.
#[derive(Debug, Clone, Copy, Default)]
struct Begin {
    /// The last line up to there that stands alone.
    alone: u64,
    /// The first line that may be wanted.
    wanted: u64,
}

/// The segment that is being read.
#[derive(Debug)]
struct Current {
    file: SegmentFile,
    lines: Lines,
    whole: Whole,
    /// Lines before that were passed already, and only tell what later ones refer to.
    wanted: u64,
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
        Ok(Self {
            directory,
            sieve: Sieve::new(filter),
            waiting,
            begin: Begin::default(),
            current: None,
        })
    }

    /// Goes to where the last `count` wanted entries begin. Memory is in proportion to `count`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn seek_last(&mut self, count: usize) -> Result<(), AuditError> {
        let mut passed = Vec::new();
        let mut missing = count;
        self.begin = Begin::default();
        while let Some(file) = self.waiting.pop_back() {
            let mut begins = VecDeque::new();
            let mut end = Begin { alone: u64::MAX, wanted: u64::MAX };
            if self.may_have(&file)? {
                end = self.find(&file, missing, &mut begins)?;
            }
            missing -= begins.len();
            let begin = begins.front().copied();
            passed.push(file);
            if missing == 0 {
                // Nothing was wanted: only what comes.
                self.begin = begin.unwrap_or(end);
                break;
            }
        }
        self.waiting = passed.into_iter().rev().collect();
        Ok(())
    }

    /// Where the last `count` wanted entries of one segment begin, and where what comes will.
    fn find(
        &self,
        file: &SegmentFile,
        count: usize,
        begins: &mut VecDeque<Begin>,
    ) -> Result<Begin, AuditError> {
        let mut begin = Begin::default();
        let Some(mut lines) = open(file, 0)? else { return Ok(begin) };
        let mut whole = Whole::default();
        loop {
            begin.wanted = lines.offset();
            match lines.next().map_err(|source| AuditError::io("read", &file.path, source))? {
                Next::Line(line) => {
                    let is_entry = matches!(read_line(line), Some(Line::Record));
                    if !is_entry {
                        whole.forget();
                    }
                    if !is_entry || whole.take(line) {
                        begin.alone = begin.wanted;
                    }
                    if is_entry && count > 0 && self.sieve.takes(whole.line()) {
                        if begins.len() == count {
                            begins.pop_front();
                        }
                        begins.push_back(begin);
                    }
                }
                _ => return Ok(begin),
            }
        }
    }

    /// Goes to the next wanted entry, for [`Reader::line`]. False: there is none yet.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn advance(&mut self) -> Result<bool, AuditError> {
        loop {
            let Some(Current { file, lines, whole, wanted }) = &mut self.current else {
                if self.open_next()? {
                    continue;
                }
                return Ok(false);
            };
            let failed = |source| AuditError::io("read", &file.path, source);
            let begin = lines.offset();
            let is_at_end = match lines.next().map_err(failed)? {
                Next::Line(line) => {
                    if matches!(read_line(line), Some(Line::Record)) {
                        whole.take(line);
                        if begin >= *wanted && self.sieve.takes(whole.line()) {
                            return Ok(true);
                        }
                    } else {
                        whole.forget();
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

    /// The entry [`Reader::advance`] went to, without its newline, and with everything that it has in
    /// common with those before it.
    pub fn line(&self) -> &[u8] {
        self.current.as_ref().map_or(&b""[..], |current| current.whole.line())
    }

    /// At the end of a segment: leaves it, if there is a next one. That it was there when the next
    /// began is sure only when it is asked once more.
    fn leave(&mut self) -> Result<bool, AuditError> {
        let Some(Current { file, lines, .. }) = &mut self.current else { return Ok(true) };
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
            let Begin { mut alone, wanted } = begin;
            if !self.may_have(&file)? {
                if !self.waiting.is_empty() {
                    continue;
                }
                // The last one: what follows it is looked for from there.
                alone = u64::MAX;
            }
            if let Some(lines) = open(&file, alone)? {
                self.current = Some(Current { file, lines, whole: Whole::default(), wanted });
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
