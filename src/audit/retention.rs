//! Deleting old segments, whole ones and from the oldest on.
//!
//! Before the first file goes, a signed statement stands beside the segments: which block is the
//! last that was deleted, with its hash. The chain of what remains begins there. A deletion that
//! was interrupted is finished by the next one.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::chain::{Line, Link, Removal, read_line, read_removal};
use super::directory::{Lines, Next, REMOVED_NAME, SegmentFile, read_small, segments};
use super::key::{PublicKey, SigningKey};
use crate::rt::files::{replace, sync_names};
use crate::settings::Audit;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Retained {
    /// Segments that remain.
    pub(super) left: u64,
    /// Segments that were deleted now.
    pub(super) count: u64,
    /// The statement about it.
    pub(super) removed: Option<Removal>,
}

/// The signed statement in `directory`; `None` where there is none that `key` has signed.
pub(super) fn statement(directory: &Path, key: &PublicKey) -> io::Result<Option<Removal>> {
    let found = read_small(directory, REMOVED_NAME)?;
    Ok(found.and_then(|mut line| {
        line.push(b'\n');
        read_removal(&line, key)
    }))
}

/// The block before the first of a segment, as its header says.
fn before(segment: &SegmentFile) -> io::Result<Option<Link>> {
    let mut lines = Lines::open(&segment.path, 0)?;
    Ok(match lines.next()? {
        Next::Line(line) => match read_line(line) {
            Some(Line::Header(header)) => Some(header.after),
            _ => None,
        },
        _ => None,
    })
}

/// Deletes what is older than the settings keep, or more; never `current`.
pub(super) fn apply(
    directory: &Path,
    settings: &Audit,
    key: &SigningKey,
    current: Option<&SegmentFile>,
    now_ms: u64,
) -> io::Result<Retained> {
    let earlier = statement(directory, &key.public())?;
    let mut files = segments(directory)?;
    if let Some(earlier) = earlier {
        finish(directory, &mut files, earlier)?;
    }
    let sizes: Vec<u64> = files
        .iter()
        .map(|file| fs::metadata(&file.path).map(|found| found.len()))
        .collect::<Result<_, _>>()?;
    let mut total: u64 = sizes.iter().sum();
    let (mut count, mut bytes) = (0, 0);
    // The last one stays, current or not: it knows where the chain goes on.
    for (file, size) in files.iter().zip(&sizes).take(files.len().saturating_sub(1)) {
        let is_too_much = settings.keep_bytes_max > 0 && total > settings.keep_bytes_max;
        if current == Some(file) || !(is_too_much || is_too_old(file, settings, now_ms)?) {
            break;
        }
        total -= size;
        bytes += size;
        count += 1;
    }
    let mut done = Retained { left: (files.len() - count) as u64, ..Retained::default() };
    if count == 0 {
        return Ok(done);
    }
    let Some(through) = before(&files[count])? else {
        let path = files[count].path.display();
        return Err(io::Error::other(format!("the first line of {path} is not its header")));
    };
    let removal = Removal {
        through,
        time_ms: now_ms,
        segments: earlier.map_or(0, |earlier| earlier.segments) + count as u64,
        bytes: earlier.map_or(0, |earlier| earlier.bytes) + bytes,
    };
    let mut line = Vec::new();
    removal.write(&mut line, key);
    replace(directory, REMOVED_NAME, &line)?;
    finish(directory, &mut files, removal)?;
    done.count = count as u64;
    done.removed = Some(removal);
    Ok(done)
}

/// Deletes the segments that `removal` speaks of. One ends where the next begins.
fn finish(directory: &Path, files: &mut Vec<SegmentFile>, removal: Removal) -> io::Result<()> {
    let next_block = removal.through.block + 1;
    let count = files.iter().take_while(|file| file.first_block < next_block).count();
    let is_whole = files.get(count).is_some_and(|file| file.first_block == next_block);
    if count == 0 || !is_whole {
        return Ok(());
    }
    for file in files.drain(..count) {
        fs::remove_file(&file.path)?;
    }
    sync_names(directory)
}

/// By the time of its last record; of a segment without an end, by that of the file.
fn is_too_old(file: &SegmentFile, settings: &Audit, now_ms: u64) -> io::Result<bool> {
    let Some(keep) = settings.keep() else { return Ok(false) };
    let end_ms = if let Some(end) = file.end()? {
        end.time_ms
    } else {
        let changed = fs::metadata(&file.path)?.modified()?;
        let since = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    };
    Ok(u128::from(now_ms.saturating_sub(end_ms)) > keep.as_millis())
}
