//! Log-linear latency histogram: exact below 128 ns, within 0.8 % above.

use std::time::Duration;

const SUB_BITS: u32 = 7;
const SUB: usize = 1 << SUB_BITS;
const GROUPS: usize = 58;

pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    nanos_max: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; SUB * GROUPS], total: 0, nanos_max: 0 }
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
        self.nanos_max = self.nanos_max.max(nanos);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The microseconds that `per_mille` of the samples do not exceed; 0 without samples.
    pub(crate) fn quantile_us(&self, per_mille: u64) -> f64 {
        let wanted = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return micros(upper_bound(at).min(self.nanos_max));
            }
        }
        micros(self.nanos_max)
    }
}

#[expect(clippy::cast_precision_loss, reason = "latencies are far below 2^53 ns")]
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

fn bucket(nanos: u64) -> usize {
    if nanos < SUB as u64 {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - SUB_BITS;
    ((shift as usize + 1) << SUB_BITS) + ((nanos >> shift) as usize & (SUB - 1))
}

fn upper_bound(bucket: usize) -> u64 {
    if bucket < SUB {
        return bucket as u64;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    (((SUB + (bucket & (SUB - 1))) as u64 + 1) << shift) - 1
}
