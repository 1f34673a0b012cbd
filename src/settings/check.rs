//! Findings of `validate()`: what is wrong with which key, not yet where it was written.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// One value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The full key: `runtime.mcp.page_size`.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Collects what `validate()` of each section finds.
#[derive(Debug, Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Notes one finding.
    pub fn add(&mut self, key: &'static str, message: impl Into<String>) {
        self.0.push(Finding { key, message: message.into() });
    }

    /// Notes a finding unless `value` lies in `range`.
    pub fn within<T: PartialOrd + Display>(
        &mut self,
        key: &'static str,
        value: T,
        range: RangeInclusive<T>,
    ) {
        if !range.contains(&value) {
            let (low, high) = (range.start(), range.end());
            self.add(key, format!("{value} is out of range: {low} to {high}"));
        }
    }

    /// What was found, in the order of the sections.
    pub fn into_vec(self) -> Vec<Finding> {
        self.0
    }
}

/// Longest interval a setting may name: 30 days, far from every overflow.
pub(super) const SECONDS_MAX: u64 = 30 * 24 * 3600;
/// Longest time limit a setting may name in milliseconds: one day.
pub(super) const MILLISECONDS_MAX: u64 = 24 * 3600 * 1000;
/// Largest buffer a setting may name: 64 GiB.
pub(super) const BYTES_MAX: usize = 64 << 30;
