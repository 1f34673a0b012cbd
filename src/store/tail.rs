//! The tail: what the engine is late with, beside its log, so that it outlives the process.
//!
//! The engine waits for the disk at every flush, and a disk can stall for seconds. Writes that
//! were accepted and should be with the kernel by now are then written here by a thread that
//! never touches the engine. At the next opening what the engine lacks is taken from here.
//!
//! Invariants worth naming:
//! - Nothing here is ever synced while the store is open: the page cache is enough to outlive the
//!   process, and no disk is waited for. The files have their room from the start, and are only
//!   ever overwritten or grown.
//! - A record is followed by the one of the next number, or the file ends there. The engine knows
//!   the number of the last write it has, for good together with that write: what follows it is
//!   new to the engine, and what does not follow it is none of its business.
//! - A part starts over only when the engine has all it holds. Two are written in turn, so that
//!   one can always start over: everything that is uncommitted fits into the queue's bounds.
//! - What is read may be torn, stale, of another store or hostile: it ends there, and is never
//!   an error.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Batch;
use super::queue::Shared;
use super::uncommitted::Entry;
use crate::rt::files::private;

pub(super) const TAIL_NAMES: [&str; 2] = ["tail.0", "tail.1"];

/// Room each part has from the start, and by how much it grows.
const ROOM_BYTES: u64 = 2 << 20;
/// A part that is longer leaves the next records to the other one if it can.
const TURN_BYTES: u64 = ROOM_BYTES;
/// A longer batch waits for the engine, and all behind it.
const RECORD_BYTES_MAX: usize = 64 << 20;
/// Written in one go, the last record apart.
const ROUND_BYTES: usize = 1 << 20;
/// How long a tail that cannot be written is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Which store the records are of.
pub(super) type Identity = [u8; 16];

const MAGIC: [u8; 8] = *b"rw tail1";
/// Magic, identity, checksum.
const HEAD_BYTES: usize = 8 + 16 + 4;
/// Length, number, checksum.
const RECORD_HEAD_BYTES: usize = 4 + 8 + 4;

/// Writes what is late until the store's thread has finished.
pub(super) fn run(shared: &Shared, mut tail: Tail) {
    let mut late = Vec::new();
    let mut retry = None;
    // What the engine has is never late, whatever its number.
    let mut written = 0;
    while let Some(round) = shared.wait_for_late(written, ROUND_BYTES, retry, &mut late) {
        match tail.write(round.first, &late, round.settled) {
            Ok(()) => {
                written = round.first + late.len() as u64 - 1;
                if retry.take().is_some() {
                    tracing::info!("writes that wait for the disk outlive the process again");
                }
            }
            Err(error) => {
                if retry.replace(RETRY_AFTER).is_none() {
                    tracing::warn!(
                        %error,
                        directory = %tail.directory.display(),
                        "writes that wait for the disk would not outlive the process now"
                    );
                }
            }
        }
        late.clear();
    }
}

/// The tail of an open store.
#[derive(Debug)]
pub(super) struct Tail {
    directory: PathBuf,
    identity: Identity,
    parts: [Part; 2],
    active: usize,
    buffer: Vec<u8>,
}

#[derive(Debug, Default)]
struct Part {
    /// None: it could not be opened.
    file: Option<File>,
    position: u64,
    room: u64,
    /// The last number in it; 0: none.
    last: u64,
}

impl Tail {
    /// Begins a new tail. What an earlier one holds is gone from here on: the engine has it, and
    /// has it on the disk.
    pub(super) fn begin(directory: &Path, identity: Identity) -> Self {
        let parts = TAIL_NAMES.map(|name| {
            Part::begin(&directory.join(name)).unwrap_or_else(|error| {
                tracing::warn!(%error, name, "no room for writes that wait for the disk");
                Part::default()
            })
        });
        Self { directory: directory.to_owned(), identity, parts, active: 0, buffer: Vec::new() }
    }

    /// Writes the entries, the first of which has number `first`. The engine has all up to
    /// `settled`.
    pub(super) fn write(&mut self, first: u64, entries: &[Entry], settled: u64) -> io::Result<()> {
        if self.parts[self.active].last <= settled {
            self.parts[self.active].position = 0;
        } else if self.parts[self.active].position > TURN_BYTES
            && self.parts[1 - self.active].last <= settled
        {
            self.active = 1 - self.active;
            self.parts[self.active].position = 0;
        }
        let part = &mut self.parts[self.active];
        self.buffer.clear();
        if part.position == 0 {
            self.buffer.extend_from_slice(&head(self.identity));
        }
        let mut number = first;
        for entry in entries {
            let bytes = entry.as_ref().map_or(&[][..], |batch| batch.encoded());
            record(&mut self.buffer, self.identity, number, bytes)?;
            number += 1;
        }
        if part.file.is_none() {
            *part = Part::begin(&self.directory.join(TAIL_NAMES[self.active]))?;
        }
        // Not in it any more, even where this fails halfway.
        if part.position == 0 {
            part.last = 0;
        }
        part.append(&self.buffer)?;
        part.last = number - 1;
        self.buffer.shrink_to(2 * ROUND_BYTES);
        Ok(())
    }
}

impl Part {
    /// An empty part with room. One that was not used is left as it is.
    fn begin(path: &Path) -> io::Result<Self> {
        let file = private().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut found = [0; HEAD_BYTES];
        let is_unused = file.metadata()?.len() == ROOM_BYTES
            && file.read_exact_at(&mut found, 0).is_ok()
            && found == [0; HEAD_BYTES];
        let mut part = Self { file: Some(file), ..Self::default() };
        if is_unused {
            part.room = ROOM_BYTES;
        } else if let Some(file) = &part.file {
            file.set_len(0)?;
            part.grow(ROOM_BYTES)?;
            // Numbers can be given again after a power failure, and then nothing old may be here.
            part.file.as_ref().map_or(Ok(()), File::sync_all)?;
        }
        Ok(part)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.position + bytes.len() as u64;
        if end > self.room {
            self.grow(end - self.room)?;
        }
        let Some(file) = &self.file else { return Err(io::ErrorKind::NotFound.into()) };
        file.write_all_at(bytes, self.position)?;
        self.position = end;
        Ok(())
    }

    /// At least `bytes` of room more. Where the file system cannot give it before it is used,
    /// that is left to the writing.
    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let bytes = bytes.next_multiple_of(ROOM_BYTES);
        let made =
            rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), self.room, bytes);
        match made {
            Ok(()) => self.room += bytes,
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                let zeros = vec![0; usize::try_from(bytes).unwrap_or_default()];
                file.write_all_at(&zeros, self.room)?;
                self.room += bytes;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

fn head(identity: Identity) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&MAGIC);
    head[8..24].copy_from_slice(&identity);
    let checksum = crc32fast::hash(&head[..24]);
    head[24..].copy_from_slice(&checksum.to_le_bytes());
    head
}

fn record(buffer: &mut Vec<u8>, identity: Identity, number: u64, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    if bytes.len() > RECORD_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(&number.to_le_bytes());
    buffer.extend_from_slice(&checksum(identity, length, number, bytes).to_le_bytes());
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// Of another store's record it is another one.
fn checksum(identity: Identity, length: u32, number: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&identity);
    hasher.update(&length.to_le_bytes());
    hasher.update(&number.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// What the tail in `directory` holds behind number `through`, in order, with their numbers.
pub(super) fn read(
    directory: &Path,
    identity: Identity,
    through: u64,
) -> impl Iterator<Item = (u64, Batch)> {
    let mut parts: Vec<_> = TAIL_NAMES
        .into_iter()
        .filter_map(|name| {
            let mut records = Records::open(&directory.join(name), identity)?.peekable();
            records.peek().map(|(first, _)| *first).map(|first| (first, records))
        })
        .collect();
    parts.sort_by_key(|(first, _)| *first);
    let mut next = through.checked_add(1);
    parts
        .into_iter()
        .flat_map(|(_, records)| records)
        .skip_while(move |(number, _)| *number <= through)
        .map_while(move |(number, batch)| {
            if Some(number) != next {
                return None;
            }
            next = number.checked_add(1);
            Some((number, batch))
        })
}

/// The records of one part, up to the first that is not whole.
struct Records {
    file: BufReader<File>,
    left: u64,
    identity: Identity,
    /// The number that has to come; none: any. Behind the newest record older ones may lie.
    next: Option<u64>,
}

impl Records {
    fn open(path: &Path, identity: Identity) -> Option<Self> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            opened => opened.and_then(|file| Ok((file.metadata()?.len(), file))),
        };
        let (length, file) = file
            .inspect_err(|error| {
                tracing::warn!(%error, path = %path.display(), "cannot be read; left out");
            })
            .ok()?;
        let mut file = BufReader::with_capacity(256 << 10, file);
        let mut found = [0; HEAD_BYTES];
        file.read_exact(&mut found).ok()?;
        let left = length.checked_sub(HEAD_BYTES as u64)?;
        (found == head(identity)).then_some(Self { file, left, identity, next: None })
    }
}

impl Iterator for Records {
    type Item = (u64, Batch);

    fn next(&mut self) -> Option<Self::Item> {
        let mut head = [0; RECORD_HEAD_BYTES];
        self.left = self.left.checked_sub(head.len() as u64)?;
        self.file.read_exact(&mut head).ok()?;
        let (length, rest) = head.split_first_chunk::<4>()?;
        let (number, expected) = rest.split_first_chunk::<8>()?;
        let length = u32::from_le_bytes(*length);
        let number = u64::from_le_bytes(*number);
        self.left = self.left.checked_sub(u64::from(length))?;
        let bytes_len = usize::try_from(length).ok().filter(|bytes| *bytes <= RECORD_BYTES_MAX)?;
        let mut bytes = vec![0; bytes_len];
        self.file.read_exact(&mut bytes).ok()?;
        if checksum(self.identity, length, number, &bytes).to_le_bytes() != expected {
            return None;
        }
        if self.next.is_some_and(|next| next != number) {
            return None;
        }
        self.next = Some(number.checked_add(1)?);
        Some((number, Batch::decode(bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::store::Tree;

    const ID: Identity = [7; 16];

    fn batch(number: u64) -> Arc<Batch> {
        let mut batch = Batch::new();
        batch.put(Tree::Sessions, &number.to_le_bytes(), &vec![number as u8; number as usize % 50]);
        Arc::new(batch)
    }

    fn write(tail: &mut Tail, numbers: std::ops::RangeInclusive<u64>, settled: u64) {
        let first = *numbers.start();
        let entries: Vec<_> = numbers.map(|number| Some(batch(number))).collect();
        tail.write(first, &entries, settled).unwrap();
    }

    fn found(directory: &Path, through: u64) -> Vec<u64> {
        read(directory, ID, through)
            .map(|(number, found)| {
                assert_eq!(found, *batch(number));
                number
            })
            .collect()
    }

    fn range(numbers: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        numbers.collect()
    }

    #[test]
    fn what_follows_the_engine_is_found_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(found(path, 0).is_empty());
        let mut tail = Tail::begin(path, ID);
        assert!(found(path, 0).is_empty());
        write(&mut tail, 1..=5, 0);
        write(&mut tail, 6..=9, 3);
        assert_eq!(found(path, 0), range(1..=9));
        assert_eq!(found(path, 6), range(7..=9));
        for through in [9, 10, u64::MAX] {
            assert!(found(path, through).is_empty());
        }
        assert_eq!(read(path, [8; 16], 0).count(), 0, "of another store");
        // It starts over, and old records lie behind the new ones.
        write(&mut tail, 12..=13, 11);
        assert_eq!(found(path, 11), range(12..=13));
        assert!(found(path, 0).is_empty(), "a gap");
        // Withdrawn: the number stays.
        tail.write(14, &[None, Some(batch(15))], 11).unwrap();
        let counts: Vec<_> =
            read(path, ID, 12).map(|(number, batch)| (number, batch.len())).collect();
        assert_eq!(counts, [(13, 1), (14, 0), (15, 1)]);
        // A new one begins empty, at its first size.
        Tail::begin(path, ID);
        assert!(found(path, 11).is_empty());
        assert_eq!(fs::metadata(path.join(TAIL_NAMES[0])).unwrap().len(), ROOM_BYTES);
    }

    #[test]
    fn old_records_of_the_same_shape_behind_new_ones_are_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let mut tail = Tail::begin(directory.path(), ID);
        // Numbers fifty apart have records of one length.
        write(&mut tail, 1..=40, 0);
        write(&mut tail, 51..=60, 50);
        assert_eq!(found(directory.path(), 50), range(51..=60));
        assert!(found(directory.path(), 10).is_empty());
    }

    #[test]
    fn two_parts_are_written_in_turn() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let mut tail = Tail::begin(path, ID);
        let large = |number: u64| {
            let mut batch = Batch::new();
            batch.put(Tree::Sessions, &number.to_le_bytes(), &vec![1; 300_000]);
            Some(Arc::new(batch))
        };
        // The engine is always five behind.
        for number in 1..=200u64 {
            let settled = number.saturating_sub(6);
            tail.write(number, &[large(number)], settled).unwrap();
            let numbers: Vec<_> = read(path, ID, settled).map(|(number, _)| number).collect();
            assert_eq!(numbers, range(settled + 1..=number));
        }
        for name in TAIL_NAMES {
            assert!(fs::metadata(path.join(name)).unwrap().len() <= 3 * ROOM_BYTES);
        }
        // With an engine that does nothing it grows.
        for number in 201..=240 {
            tail.write(number, &[large(number)], 195).unwrap();
        }
        let numbers: Vec<_> = read(path, ID, 195).map(|(number, _)| number).collect();
        assert_eq!(numbers, range(196..=240));
        tail.write(241, &[large(241)], 240).unwrap();
        assert_eq!(read(path, ID, 240).count(), 1);
    }

    #[test]
    fn a_file_cut_or_damaged_at_any_byte_gives_what_is_in_front_of_it() {
        let directory = crate::scratch::in_memory();
        let path = directory.path();
        let mut tail = Tail::begin(path, ID);
        write(&mut tail, 1..=12, 0);
        let name = path.join(TAIL_NAMES[0]);
        let whole = fs::read(&name).unwrap();
        let end = usize::try_from(tail.parts[0].position).unwrap();
        // Where each record ends.
        let mut ends = vec![HEAD_BYTES];
        for number in 1..=12 {
            let bytes = batch(number).encoded().len();
            ends.push(ends[ends.len() - 1] + RECORD_HEAD_BYTES + bytes);
        }
        assert_eq!(ends[12], end);
        for place in 0..end {
            let before = ends.iter().filter(|end| **end <= place).count().saturating_sub(1) as u64;
            let expected: Vec<u64> = (1..=before).collect();
            fs::write(&name, &whole[..place]).unwrap();
            assert_eq!(found(path, 0), expected, "cut at {place}");
            let mut zeroed = whole[..end].to_vec();
            zeroed[place..].fill(0);
            for (bit, mut damaged) in [(0, zeroed), (1, whole.clone()), (0x80, whole.clone())] {
                damaged[place] ^= bit;
                fs::write(&name, &damaged).unwrap();
                let found = found(path, 0);
                assert!(found == expected || damaged == whole, "{place} {bit}: {found:?}");
            }
        }
    }

    #[test]
    fn a_hostile_length_takes_no_memory() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join(TAIL_NAMES[1]);
        for length in [u32::MAX, 1 << 30, 0x7fff_ffff] {
            let mut bytes = head(ID).to_vec();
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&1u64.to_le_bytes());
            bytes.extend_from_slice(&[0; 40]);
            fs::write(&name, &bytes).unwrap();
            // Sparse: as long as it says.
            private().write(true).open(&name).unwrap().set_len(8 << 30).unwrap();
            assert!(found(directory.path(), 0).is_empty());
        }
        // The last number there is.
        let mut bytes = head(ID).to_vec();
        for number in [u64::MAX - 1, u64::MAX, 0] {
            record(&mut bytes, ID, number, batch(3).encoded()).unwrap();
        }
        fs::write(&name, &bytes).unwrap();
        assert!(read(directory.path(), ID, u64::MAX - 2).count() <= 2);
    }

    #[test]
    fn a_batch_that_is_too_long_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut tail = Tail::begin(directory.path(), ID);
        let mut batch = Batch::new();
        batch.put(Tree::Sessions, b"k", &vec![0; RECORD_BYTES_MAX]);
        assert!(tail.write(1, &[Some(Arc::new(batch))], 0).is_err());
        write(&mut tail, 2..=3, 1);
        assert_eq!(found(directory.path(), 1), [2, 3]);
    }
}
