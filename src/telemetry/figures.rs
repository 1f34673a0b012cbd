//! Numbers with one writer: the core they belong to. Anyone may read them.
//!
//! A load and a store instead of an atomic addition: the core is the only writer, so nothing is
//! lost, and it costs what a `Cell` costs. Called from another thread than the owner's, updates
//! may be lost; that is all that can happen.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Only ever rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `amount`.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.store(self.value().wrapping_add(amount), Ordering::Relaxed);
    }

    /// Its value now.
    #[inline]
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Rises and falls.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Adds `amount`, which may be negative.
    #[inline]
    pub fn add(&self, amount: i64) {
        self.0.store(self.value().wrapping_add(amount), Ordering::Relaxed);
    }

    /// Becomes `value`.
    #[inline]
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Its value now.
    #[inline]
    pub fn value(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the buckets of every [`Latency`], in microseconds; one more holds the rest.
pub const LATENCY_BOUNDS_MICROSECONDS: [u64; 20] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 60_000_000,
];

const BUCKETS: usize = LATENCY_BOUNDS_MICROSECONDS.len() + 1;

/// How long something took, in fixed buckets.
#[derive(Debug, Default)]
pub struct Latency {
    buckets: [Counter; BUCKETS],
    sum_microseconds: Counter,
}

impl Latency {
    /// Counts one that took `elapsed`.
    #[inline]
    pub fn record(&self, elapsed: Duration) {
        let microseconds = elapsed.as_micros() as u64;
        let bucket = LATENCY_BOUNDS_MICROSECONDS.partition_point(|&bound| bound < microseconds);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.increment();
        }
        self.sum_microseconds.add(microseconds);
    }

    /// Adds what it holds to `total`.
    pub(super) fn add_to(&self, total: &mut LatencyTotal) {
        for (sum, bucket) in total.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.value();
        }
        total.sum_microseconds += self.sum_microseconds.value();
    }
}

/// Several [`Latency`]s together.
#[derive(Debug, Default)]
pub(super) struct LatencyTotal {
    /// Of each bucket, not cumulated.
    pub(super) buckets: [u64; BUCKETS],
    pub(super) sum_microseconds: u64,
}

impl LatencyTotal {
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn total(latency: &Latency) -> LatencyTotal {
        let mut total = LatencyTotal::default();
        latency.add_to(&mut total);
        total
    }

    #[test]
    fn bounds_belong_to_the_bucket_below() {
        for (index, &bound) in LATENCY_BOUNDS_MICROSECONDS.iter().enumerate() {
            let latency = Latency::default();
            latency.record(Duration::from_micros(bound));
            latency.record(Duration::from_micros(bound + 1));
            let total = total(&latency);
            assert_eq!((total.buckets[index], total.buckets[index + 1]), (1, 1), "{bound}");
        }
        assert!(LATENCY_BOUNDS_MICROSECONDS.is_sorted());
    }

    #[test]
    fn counters_and_gauges_count() {
        let counter = Counter::default();
        counter.increment();
        counter.add(4);
        assert_eq!(counter.value(), 5);
        let gauge = Gauge::default();
        gauge.add(3);
        gauge.add(-5);
        assert_eq!(gauge.value(), -2);
        gauge.set(9);
        assert_eq!(gauge.value(), 9);
    }

    proptest! {
        #[test]
        fn every_duration_is_counted_once(elapsed: Duration) {
            let latency = Latency::default();
            latency.record(elapsed);
            prop_assert_eq!(total(&latency).count(), 1);
        }
    }
}
