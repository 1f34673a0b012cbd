//! The ledger: what must be found at the next start, kept beside the engine's log.
//!
//! The engine cuts its log at the first bad record and starts with what is in front of it. Every
//! flush counts up a sequence number that is the last record of its group, and the ledger notes
//! the number once the group is flushed. A number that is not found again is a lost group.
//!
//! Invariants worth naming:
//! - The ledger never promises more than is there: it is written after the flush it tells of. Rows
//!   are promised as a floor, which is lowered, and synced, before rows are removed.
//! - What is only with the kernel is promised to a start on the same run of the machine; what was
//!   synced, to every start.
//! - Two slots are written in turn, each with its checksum: a torn write costs the newest promise
//!   and never the one before it. No room is needed to write one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::Tree;
use crate::rt::files::{private, replace};

pub(super) const LEDGER_NAME: &str = "ledger";

/// Trees whose rows must never get fewer by themselves.
pub(super) const KEPT: [Tree; 3] = [Tree::Catalog, Tree::Keys, Tree::Meta];

/// What is in a store, or must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Holding {
    /// Number of the last flush.
    pub(super) sequence: u64,
    /// Rows of each tree of [`KEPT`].
    pub(super) rows: [u64; KEPT.len()],
}

impl Holding {
    /// What of `promised` is not here.
    fn lacks(&self, promised: &Self) -> Option<String> {
        if self.sequence < promised.sequence {
            let (found, promised) = (self.sequence, promised.sequence);
            return Some(format!(
                "its log ends at flush {found}, but flush {promised} was on the disk"
            ));
        }
        KEPT.into_iter().zip(self.rows.into_iter().zip(promised.rows)).find_map(
            |(tree, (found, promised))| {
                let name = tree.name();
                (found < promised)
                    .then(|| format!("{found} rows of `{name}` are left of {promised}"))
            },
        )
    }

    fn lower(&mut self, rows: [u64; KEPT.len()]) {
        for (floor, rows) in self.rows.iter_mut().zip(rows) {
            *floor = rows.min(*floor);
        }
    }
}

/// Version of a slot's layout, number of the write, two holdings, run of the machine, checksum.
const SLOT_BYTES: usize = 1 + 8 + 2 * HOLDING_BYTES + 16 + 4;
const HOLDING_BYTES: usize = 8 * (1 + KEPT.len());
const SLOT_VERSION: u8 = 1;
/// Slots lie in different blocks of any disk.
const SLOT_DISTANCE: usize = 4096;

/// One state of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    number: u64,
    /// Synced: survives a power failure.
    durable: Holding,
    /// With the kernel: survives the process.
    flushed: Holding,
    /// The run of the machine `flushed` is of.
    run: [u8; 16],
}

impl Slot {
    fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = Vec::with_capacity(SLOT_BYTES);
        bytes.push(SLOT_VERSION);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        for holding in [&self.durable, &self.flushed] {
            bytes.extend_from_slice(&holding.sequence.to_le_bytes());
            for rows in holding.rows {
                bytes.extend_from_slice(&rows.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&self.run);
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        let mut slot = [0; SLOT_BYTES];
        slot.copy_from_slice(&bytes);
        slot
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, checksum) = bytes.get(..SLOT_BYTES)?.split_last_chunk::<4>()?;
        if crc32fast::hash(bytes) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let (&version, rest) = bytes.split_first()?;
        if version != SLOT_VERSION {
            return None;
        }
        let (numbers, run) = rest.split_last_chunk::<16>()?;
        let mut numbers =
            numbers.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number));
        let number = numbers.next()?;
        let mut holding = || {
            let mut holding = Holding { sequence: numbers.next()?, ..Holding::default() };
            for rows in &mut holding.rows {
                *rows = numbers.next()?;
            }
            Some(holding)
        };
        Some(Self { number, durable: holding()?, flushed: holding()?, run: *run })
    }
}

/// What is found of a ledger.
#[derive(Debug)]
pub(super) enum Found {
    /// The store is new, or of a version that kept none.
    Missing,
    /// Both of its slots are damaged.
    Unreadable,
    /// It can be asked.
    Promises(Promises),
}

/// The promises of an earlier process.
#[derive(Debug)]
pub(super) struct Promises(Slot);

impl Promises {
    /// Why `found` is not what was promised; none: it is.
    pub(super) fn broken_by(&self, found: &Holding) -> Option<String> {
        let flushed = (is_known(self.0.run) && self.0.run == run_of_machine())
            .then(|| found.lacks(&self.0.flushed));
        found.lacks(&self.0.durable).or(flushed.flatten())
    }
}

/// Reads the ledger in `directory`.
pub(super) fn read(directory: &Path) -> io::Result<Found> {
    let bytes = match fs::read(directory.join(LEDGER_NAME)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing),
        Err(error) => return Err(error),
    };
    let newest = [0, SLOT_DISTANCE]
        .into_iter()
        .filter_map(|start| Slot::decode(bytes.get(start..)?))
        .max_by_key(|slot| slot.number);
    Ok(newest.map_or(Found::Unreadable, |slot| Found::Promises(Promises(slot))))
}

/// The ledger of an open store.
#[derive(Debug)]
pub(super) struct Ledger {
    file: File,
    slot: Slot,
}

impl Ledger {
    /// Goes on with the ledger in `directory`, or begins one. `holding` was found, keeps the
    /// promises, and is on the disk.
    pub(super) fn begin(directory: &Path, holding: Holding) -> io::Result<Self> {
        let run = run_of_machine();
        let number = match read(directory)? {
            Found::Promises(Promises(slot)) => slot.number,
            Found::Missing | Found::Unreadable => {
                let slot = Slot { number: 0, durable: holding, flushed: holding, run };
                let mut bytes = vec![0; 2 * SLOT_DISTANCE];
                for start in [0, SLOT_DISTANCE] {
                    bytes[start..start + SLOT_BYTES].copy_from_slice(&slot.encode());
                }
                replace(directory, LEDGER_NAME, &bytes)?;
                0
            }
        };
        let file = private().write(true).open(directory.join(LEDGER_NAME))?;
        Ok(Self { file, slot: Slot { number, durable: holding, flushed: holding, run } })
    }

    /// Promises what was flushed; `is_durable`: it is on the disk. Not synced.
    pub(super) fn promise(&mut self, holding: Holding, is_durable: bool) -> io::Result<()> {
        self.slot.flushed = holding;
        if is_durable {
            self.slot.durable = holding;
        }
        self.write()
    }

    /// Promises no more than `rows`, which are about to be what is left. Synced.
    pub(super) fn lower(&mut self, rows: [u64; KEPT.len()]) -> io::Result<()> {
        let before = self.slot;
        self.slot.durable.lower(rows);
        self.slot.flushed.lower(rows);
        if self.slot == before {
            return Ok(());
        }
        self.write()?;
        self.sync()
    }

    /// Brings the promises to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&mut self) -> io::Result<()> {
        self.slot.number += 1;
        let start = if self.slot.number.is_multiple_of(2) { 0 } else { SLOT_DISTANCE };
        self.file.write_all_at(&self.slot.encode(), start as u64)
    }
}

/// Which run of the machine this is; zeros where it does not say.
fn run_of_machine() -> [u8; 16] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    uuid::Uuid::parse_str(text.trim_end()).map_or([0; 16], uuid::Uuid::into_bytes)
}

fn is_known(run: [u8; 16]) -> bool {
    run != [0; 16]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(sequence: u64, rows: [u64; 3]) -> Holding {
        Holding { sequence, rows }
    }

    fn promises(directory: &Path) -> Promises {
        match read(directory).unwrap() {
            Found::Promises(promises) => promises,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fewer_than_promised_is_said() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(read(directory.path()).unwrap(), Found::Missing));
        let mut ledger = Ledger::begin(directory.path(), holding(0, [0; 3])).unwrap();
        ledger.promise(holding(7, [3, 2, 1]), true).unwrap();
        let broken =
            |sequence, rows| promises(directory.path()).broken_by(&holding(sequence, rows));
        assert_eq!(broken(7, [3, 2, 1]), None);
        assert_eq!(broken(9, [4, 2, 1]), None);
        let text = broken(6, [3, 2, 1]).unwrap();
        assert!(text.contains("flush 6") && text.contains("flush 7"), "{text}");
        let text = broken(7, [3, 1, 1]).unwrap();
        assert!(text.contains("1 rows of `keys` are left of 2"), "{text}");
    }

    #[test]
    fn removals_lower_the_promise_before_they_happen() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::begin(directory.path(), holding(1, [5, 5, 5])).unwrap();
        ledger.lower([5, 3, 9]).unwrap();
        for rows in [[5, 5, 5], [5, 3, 5]] {
            assert_eq!(promises(directory.path()).broken_by(&holding(1, rows)), None);
        }
        assert!(promises(directory.path()).broken_by(&holding(1, [5, 2, 5])).is_some());
        ledger.promise(holding(2, [5, 3, 9]), true).unwrap();
        assert!(promises(directory.path()).broken_by(&holding(2, [5, 3, 5])).is_some());
    }

    #[test]
    fn what_was_only_flushed_is_promised_to_this_run_of_the_machine() {
        let flushed = holding(9, [1, 2, 1]);
        let durable = holding(4, [1, 1, 1]);
        let run = run_of_machine();
        let here = Promises(Slot { number: 1, durable, flushed, run });
        let elsewhere = Promises(Slot { number: 1, durable, flushed, run: [7; 16] });
        if is_known(run) {
            assert!(here.broken_by(&durable).is_some());
        }
        assert_eq!(elsewhere.broken_by(&durable), None);
        assert!(elsewhere.broken_by(&holding(3, [1, 1, 1])).is_some());
    }

    #[test]
    fn a_torn_slot_leaves_the_promise_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(LEDGER_NAME);
        let mut ledger = Ledger::begin(directory.path(), holding(1, [1; 3])).unwrap();
        for sequence in 2..6 {
            ledger.promise(holding(sequence, [1; 3]), true).unwrap();
            let whole = fs::read(&path).unwrap();
            let newest = if ledger.slot.number.is_multiple_of(2) { 0 } else { SLOT_DISTANCE };
            let mut torn = whole.clone();
            torn[newest + 40..newest + SLOT_BYTES].fill(0);
            fs::write(&path, &torn).unwrap();
            assert_eq!(promises(directory.path()).0.durable.sequence, sequence - 1);
            torn.fill(0xff);
            fs::write(&path, &torn).unwrap();
            assert!(matches!(read(directory.path()).unwrap(), Found::Unreadable));
            fs::write(&path, &whole).unwrap();
            assert_eq!(promises(directory.path()).0.durable.sequence, sequence);
        }
    }

    #[test]
    fn a_ledger_goes_on_where_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::begin(directory.path(), holding(1, [1; 3])).unwrap();
        ledger.promise(holding(2, [1; 3]), true).unwrap();
        let mut ledger = Ledger::begin(directory.path(), holding(2, [1; 3])).unwrap();
        ledger.promise(holding(3, [1; 3]), false).unwrap();
        assert_eq!(promises(directory.path()).0.flushed.sequence, 3);
        assert_eq!(promises(directory.path()).0.durable.sequence, 2);
    }
}
