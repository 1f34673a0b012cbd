//! What writes cost; nothing is checked here.

use std::time::{Duration, Instant};

use super::*;

/// Prints what a write costs that somebody waits for.
#[test]
#[ignore = "measures"]
fn durable_writes_per_second() {
    for writers in [1u32, 64] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let start = Instant::now();
        thread::scope(|scope| {
            for writer in 0..writers {
                let store = &store;
                scope.spawn(move || {
                    for number in 0..1000u32 {
                        let key = hashed_key(&[&writer.to_le_bytes(), &number.to_le_bytes()]);
                        store.write_blocking(put(Tree::Keys, &key, &[0; 200])).unwrap();
                    }
                });
            }
        });
        let each = start.elapsed() / 1000;
        eprintln!("{writers} writers: {each:?} a write, {} ms flush", options().flush_ms);
        let start = Instant::now();
        store.stop().unwrap();
        eprintln!("stopped in {:?}", start.elapsed());
    }
}

/// Prints how many small batches a second are taken that nobody waits for, and what they cost.
#[test]
#[ignore = "measures"]
fn behind_writes_per_second() {
    const BATCHES: u32 = 150_000;
    for bytes in [200, 20] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let (start, used) = (Instant::now(), cpu_time());
        let mut waited = 0;
        for number in 0..BATCHES {
            let mut batch =
                put(Tree::Sessions, &hashed_key(&[&number.to_le_bytes()]), &[0; 200][..bytes]);
            while let Err(refused) = store.write_behind(batch) {
                batch = refused.batch;
                waited += 1;
                thread::park_timeout(Duration::from_millis(1));
            }
        }
        store.stop().unwrap();
        let (taken, used) = (start.elapsed(), cpu_time().saturating_sub(used));
        eprintln!(
            "{bytes} bytes: {:.0} batches/s, {:.2} us CPU each, queue full {waited} times",
            f64::from(BATCHES) / taken.as_secs_f64(),
            used.as_secs_f64() * 1e6 / f64::from(BATCHES),
        );
    }
    // A steady load far below what it can take.
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let (start, used) = (Instant::now(), cpu_time());
    for number in 0..40_000u32 {
        store
            .write_behind(put(Tree::Sessions, &hashed_key(&[&number.to_le_bytes()]), &[0; 200]))
            .unwrap();
        if number % 20 == 19 {
            let next = start + Duration::from_micros(u64::from(number + 1) * 50);
            thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
    }
    store.stop().unwrap();
    eprintln!(
        "20,000 batches/s for {:?}: {:?} CPU",
        start.elapsed(),
        cpu_time().saturating_sub(used)
    );
}

/// What this process has used so far.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_ascii_whitespace().skip(11);
    let ticks: u64 = fields.take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
