//! Which rows hold the journal's chunks: a fixed ring of keys for each core.
//!
//! The store's engine keeps memory for every key that was ever inserted in rising order and removed
//! again, so chunks do not get rising keys: chunk `n` goes to slot `n % slots` and overwrites what
//! was there. Rows that are too old, or over the ring's bytes, are removed.

use std::collections::VecDeque;

/// The key of a slot's row: the writing core, then the slot.
pub fn slot_key(core: u16, slot: u32) -> [u8; 6] {
    let mut key = [0; 6];
    key[..2].copy_from_slice(&core.to_be_bytes());
    key[2..].copy_from_slice(&slot.to_be_bytes());
    key
}

/// Where a chunk goes, and which rows go away for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The slot to write.
    pub slot: u32,
    /// Slots whose rows to remove. Never the one to write.
    pub remove: Vec<u32>,
}

/// The rows of one core's journal. See the module.
#[derive(Debug)]
pub struct JournalRing {
    slots: u32,
    bytes_max: usize,
    seconds: u64,
    /// Oldest first.
    rows: VecDeque<Row>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    slot: u32,
    bytes: usize,
    written_ms: u64,
}

impl JournalRing {
    /// An empty ring. A chunk is kept until it is `seconds` old, until newer ones fill `bytes_max`,
    /// or until `slots` newer ones were written.
    pub fn new(slots: u32, bytes_max: usize, seconds: u64) -> Self {
        Self { slots: slots.max(1), bytes_max, seconds, rows: VecDeque::new(), bytes: 0 }
    }

    /// The ring of slots that a flush every `flush_ms` fills within `seconds`.
    pub fn slots_for(seconds: u64, flush_ms: u64) -> u32 {
        let flushes = seconds.saturating_mul(1000) / flush_ms.max(1);
        flushes.clamp(64, 65_536) as u32
    }

    /// Takes in a row found in the store at start: its slot, its chunk's time and its length.
    /// Rows must come in the order of their chunks' sequences.
    pub fn restore(&mut self, slot: u32, written_ms: u64, bytes: usize) {
        self.forget(slot);
        self.rows.push_back(Row { slot, bytes, written_ms });
        self.bytes += bytes;
    }

    /// Finds the place of chunk `sequence`, which has `bytes` bytes and was sealed at `now_ms`.
    pub fn place(&mut self, sequence: u64, bytes: usize, now_ms: u64) -> Placement {
        // Less than `slots`, so it fits.
        let slot = (sequence % u64::from(self.slots)) as u32;
        self.forget(slot);
        self.rows.push_back(Row { slot, bytes, written_ms: now_ms });
        self.bytes += bytes;
        let mut remove = self.expire(now_ms);
        while self.bytes > self.bytes_max && self.rows.len() > 1 {
            remove.extend(self.pop());
        }
        Placement { slot, remove }
    }

    /// Lets go of rows that are too old: the slots to remove.
    pub fn expire(&mut self, now_ms: u64) -> Vec<u32> {
        let mut removed = Vec::new();
        let keep_ms = self.seconds.saturating_mul(1000);
        while let Some(row) = self.rows.front()
            && now_ms.saturating_sub(row.written_ms) > keep_ms
        {
            removed.extend(self.pop());
        }
        removed
    }

    /// Bytes of the rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn pop(&mut self) -> Option<u32> {
        let row = self.rows.pop_front()?;
        self.bytes -= row.bytes;
        Some(row.slot)
    }

    /// The slot is overwritten. It is the oldest row's in a full ring, no row's in another, and in
    /// the middle only after the ring's size or the sequence jumped.
    fn forget(&mut self, slot: u32) {
        if let Some(at) = self.rows.iter().position(|row| row.slot == slot)
            && let Some(row) = self.rows.remove(at)
        {
            self.bytes -= row.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again() {
        let mut ring = JournalRing::new(4, 1000, 10);
        for sequence in 0..20 {
            let placement = ring.place(sequence, 10, sequence);
            let slot = (sequence % 4) as u32;
            assert_eq!(placement, Placement { slot, remove: vec![] });
            assert!(ring.bytes() <= 40);
        }
    }

    #[test]
    fn bytes_and_age_remove_the_oldest() {
        let mut ring = JournalRing::new(100, 100, 10);
        ring.place(1, 60, 0);
        ring.place(2, 30, 5000);
        assert_eq!(ring.place(3, 40, 6000).remove, [1]);
        assert_eq!(ring.place(4, 500, 7000).remove, [2, 3]);
        assert_eq!(ring.bytes(), 500);
        assert!(ring.expire(17_000).is_empty());
        assert_eq!(ring.expire(17_001), [4]);
        assert_eq!((ring.bytes(), ring.rows.len()), (0, 0));
    }

    #[test]
    fn rows_found_at_start_age_like_others() {
        let mut ring = JournalRing::new(4, 100, 10);
        ring.restore(3, 1000, 10);
        ring.restore(0, 2000, 20);
        ring.restore(3, 3000, 30);
        assert_eq!(ring.bytes(), 50);
        let placement = ring.place(8, 5, 4000);
        assert_eq!(placement, Placement { slot: 0, remove: vec![] });
        assert_eq!(ring.bytes(), 35);
        assert_eq!(ring.expire(13_001), [3]);
    }

    #[test]
    fn the_size_follows_from_the_settings() {
        assert_eq!(JournalRing::slots_for(300, 50), 6000);
        assert_eq!(JournalRing::slots_for(1, 1000), 64);
        assert_eq!(JournalRing::slots_for(u64::MAX, 0), 65_536);
        assert_eq!(slot_key(1, 258), [0, 1, 0, 0, 1, 2]);
    }
}
