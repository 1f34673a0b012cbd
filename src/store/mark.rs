//! The mark of an orderly stop: how long the engine's log was, and its checksum.
//!
//! The engine takes a log that lacks its end, or has a bad record in the middle, for one whose
//! writer crashed, and silently drops everything from there on. After an orderly stop there is
//! nothing to drop: whatever differs then is damage.
//!
//! The mark is on the disk only while the log is, and is gone before the engine may write.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::files::{LOG_NAME, wait_until_released};
use crate::rt::files::{remove, replace};

pub(super) const CLOSED_NAME: &str = "closed";
const CHECKSUM_WORD: &str = "crc32";
const PART_BYTES: usize = 256 << 10;

/// What the mark says about the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The store was not closed in good order, or is new.
    Missing,
    /// The log is as it was.
    Holds,
    /// It is not.
    Broken(String),
}

/// Leaves the mark, after the engine was closed.
pub(super) fn write(directory: &Path) -> io::Result<()> {
    let log = File::open(directory.join(LOG_NAME))?;
    // sled's own threads may still be shortening it; they hold its lock as long.
    wait_until_released(&log)?;
    log.sync_all()?;
    let (length, checksum) = checksum(log)?;
    replace(directory, CLOSED_NAME, format!("{length} {CHECKSUM_WORD} {checksum:08x}\n").as_bytes())
}

/// Compares the log with the mark. Changes nothing.
pub(super) fn verify(directory: &Path) -> io::Result<Mark> {
    let text = match fs::read(directory.join(CLOSED_NAME)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Mark::Missing),
        Err(error) => return Err(error),
    };
    let Some((closed, expected)) = parse(&text) else {
        tracing::warn!("the mark of the last orderly stop cannot be read; going on without it");
        return Ok(Mark::Missing);
    };
    let log = match File::open(directory.join(LOG_NAME)) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Mark::Broken("its log is gone".to_owned()));
        }
        Err(error) => return Err(error),
    };
    let length = log.metadata()?.len();
    // A mark without a checksum is from a version that wrote none.
    let is_wrong = if expected.is_some() { length != closed } else { length < closed };
    if is_wrong {
        let detail = format!("its log had {closed} bytes when it was closed, now {length}");
        return Ok(Mark::Broken(detail));
    }
    if let Some(expected) = expected
        && checksum(log)?.1 != expected
    {
        let detail = "its log is not the one that was closed: the checksum differs".to_owned();
        return Ok(Mark::Broken(detail));
    }
    Ok(Mark::Holds)
}

/// Takes the mark away: from here on the log changes.
pub(super) fn clear(directory: &Path) -> io::Result<()> {
    remove(directory, CLOSED_NAME)
}

fn parse(text: &str) -> Option<(u64, Option<u32>)> {
    let mut words = text.split_ascii_whitespace();
    let length = words.next()?.parse().ok()?;
    let checksum = match words.next() {
        None => None,
        Some(CHECKSUM_WORD) => Some(u32::from_str_radix(words.next()?, 16).ok()?),
        Some(_) => return None,
    };
    words.next().is_none().then_some((length, checksum))
}

/// Bytes read and their checksum.
fn checksum(mut file: impl Read) -> io::Result<(u64, u32)> {
    let mut hasher = crc32fast::Hasher::new();
    let mut part = vec![0; PART_BYTES];
    let mut length = 0;
    loop {
        match file.read(&mut part) {
            Ok(0) => return Ok((length, hasher.finalize())),
            Ok(read) => {
                hasher.update(&part[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_both_kinds_are_read() {
        assert_eq!(parse("17 crc32 0000beef\n"), Some((17, Some(0xbeef))));
        assert_eq!(parse("17\n"), Some((17, None)));
        for bad in ["", "x", "17 crc32", "17 crc32 zz", "17 md5 00", "17 crc32 00 1", "-1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn any_changed_byte_breaks_the_mark() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join(LOG_NAME);
        let bytes: Vec<u8> = (0..600_000u32).map(|n| (n % 251) as u8).collect();
        assert_eq!(verify(directory.path()).unwrap(), Mark::Missing);
        fs::write(&log, &bytes).unwrap();
        write(directory.path()).unwrap();
        assert_eq!(verify(directory.path()).unwrap(), Mark::Holds);
        for place in [0, 262_143, 262_144, 599_999] {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            fs::write(&log, changed).unwrap();
            assert!(matches!(verify(directory.path()).unwrap(), Mark::Broken(_)), "{place}");
        }
        fs::write(&log, &bytes[..599_999]).unwrap();
        assert!(matches!(verify(directory.path()).unwrap(), Mark::Broken(_)));
        fs::remove_file(&log).unwrap();
        assert!(matches!(verify(directory.path()).unwrap(), Mark::Broken(_)));
        fs::write(&log, &bytes).unwrap();
        assert_eq!(verify(directory.path()).unwrap(), Mark::Holds);
        clear(directory.path()).unwrap();
        assert_eq!(verify(directory.path()).unwrap(), Mark::Missing);
    }
}
