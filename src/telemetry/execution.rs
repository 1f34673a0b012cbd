//! Ids of executions: what ties the log lines and the audit of one request together.

use std::fmt;

use uuid::{Builder, Uuid};

/// One request's id: a UUID of version 7 (RFC 9562 section 5.7). Not a secret, and guessable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionId(Uuid);

impl ExecutionId {
    /// Length of its text.
    pub const TEXT_BYTES: usize = 36;

    /// Of what runs on behalf of nobody.
    pub const NIL: Self = Self(Uuid::nil());

    /// Its sixteen bytes.
    pub const fn to_bytes(self) -> [u8; 16] {
        *self.0.as_bytes()
    }

    /// Its random bits: for what only has to differ from call to call.
    pub fn chance(self) -> u64 {
        self.0.as_u64_pair().1
    }

    /// Appends its text.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_text());
    }

    /// Its text, which is ASCII.
    pub fn to_text(self) -> [u8; Self::TEXT_BYTES] {
        let mut text = [0; Self::TEXT_BYTES];
        self.0.hyphenated().encode_lower(&mut text);
        text
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), f)
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Makes the ids of one core. Each is greater than the one before, also while the clock stands
/// still or steps back.
#[derive(Debug)]
pub struct ExecutionIds {
    random: u64,
    last_ms: u64,
    counter: u16,
}

/// The counter takes the twelve bits behind version and time (RFC 9562 section 6.2, method 1).
const COUNTER_MAX: u16 = 0x0fff;
/// A millisecond begins in the lower half, so that it has room to count.
const COUNTER_START_MAX: u16 = 0x07ff;

impl ExecutionIds {
    /// Each core needs a seed of its own.
    pub fn new(seed: u64) -> Self {
        Self { random: seed, last_ms: 0, counter: 0 }
    }

    /// The next id. No system call, no allocation.
    pub fn next(&mut self, now_ms: u64) -> ExecutionId {
        let random = self.random();
        if now_ms > self.last_ms {
            self.last_ms = now_ms;
            self.counter = (random >> 48) as u16 & COUNTER_START_MAX;
        } else if self.counter < COUNTER_MAX {
            self.counter += 1;
        } else {
            // Borrowed from the future; the clock catches up.
            self.last_ms += 1;
            self.counter = 0;
        }
        let mut tail = [0; 10];
        tail[..2].copy_from_slice(&self.counter.to_be_bytes());
        tail[2..].copy_from_slice(&random.to_be_bytes());
        ExecutionId(Builder::from_unix_timestamp_millis(self.last_ms, &tail).into_uuid())
    }

    /// `SplitMix64`: every state once in 2^64 steps.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: u64 = 1_796_000_000_000;

    #[test]
    fn is_a_version_7_uuid_of_its_time() {
        let id = ExecutionIds::new(7).next(NOW_MS);
        let text = id.to_string();
        assert_eq!(text.len(), ExecutionId::TEXT_BYTES);
        let mut written = Vec::new();
        id.write(&mut written);
        assert_eq!(written, text.as_bytes());
        let uuid = Uuid::parse_str(&text).unwrap();
        assert_eq!(uuid.get_version_num(), 7);
        assert_eq!(uuid.get_variant(), uuid::Variant::RFC4122);
        let milliseconds = u64::from_be_bytes(*uuid.as_bytes().first_chunk().unwrap()) >> 16;
        assert_eq!(milliseconds, NOW_MS);
    }

    #[test]
    fn rises_while_the_clock_stands_still() {
        let mut ids = ExecutionIds::new(1);
        let mut last = ids.next(NOW_MS);
        for _ in 0..20_000 {
            let next = ids.next(NOW_MS);
            assert!(next > last);
            last = next;
        }
    }

    #[test]
    fn cores_differ() {
        assert_ne!(ExecutionIds::new(1).next(NOW_MS), ExecutionIds::new(2).next(NOW_MS));
    }

    proptest! {
        #[test]
        fn rises_whatever_the_clock_does(seed: u64, times in vec(0u64..1 << 47, 1..200)) {
            let mut ids = ExecutionIds::new(seed);
            let made: Vec<_> = times.into_iter().map(|now_ms| ids.next(now_ms)).collect();
            prop_assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
