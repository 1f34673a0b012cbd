//! The processors this process may run on.

use std::{fs, thread};

/// Their numbers, in order. Where the kernel does not say, as many as the standard library finds.
pub(crate) fn allowed() -> Vec<usize> {
    fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            parse(list.trim())
        })
        .unwrap_or_else(|| (0..thread::available_parallelism().map_or(1, usize::from)).collect())
}

/// Reads the kernel's list form, `0-3,8`.
fn parse(list: &str) -> Option<Vec<usize>> {
    let mut processors = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        processors.extend(first..=last);
    }
    (!processors.is_empty()).then_some(processors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_read() {
        assert_eq!(parse("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse("5"), Some(vec![5]));
        assert_eq!(parse(""), None);
        assert_eq!(parse("a-b"), None);
        assert!(!allowed().is_empty());
    }
}
